//! Addresses of documents and paths of files.
//!
//! In come addresses as clients write them, and names of files as messages show them; out goes the other. Modules of the standard library, which are no
//! files, are written to the cache, where no editor may change them.
//! Never true here: two addresses of one file are taken for two files because one writes a character as a number.

use crate::cache;
use crate::stdlib;
use lsp_types::Uri;
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// The path of an address, if it is that of a file.
pub fn path_of(uri: &Uri) -> Option<PathBuf> {
    let rest = uri.as_str().strip_prefix("file://")?;
    let path = rest.find('/').map(|at| &rest[at..])?;
    let decoded = decoded(path)?;
    // `/c:/models` on Windows.
    let drive = decoded.as_bytes().get(2) == Some(&b':') && cfg!(windows);
    Some(PathBuf::from(if drive { &decoded[1..] } else { &decoded[..] }))
}

/// The text of an address with its numbers in the place of `%41`.
fn decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::new();
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        match byte {
            b'%' => {
                let digit = |c: u8| (c as char).to_digit(16);
                bytes.push((digit(rest.next()?)? * 16 + digit(rest.next()?)?) as u8);
            }
            _ => bytes.push(byte),
        }
    }
    String::from_utf8(bytes).ok()
}

/// The address of a path.
pub fn uri_of(path: &Path) -> Option<Uri> {
    let text = path.to_str()?.replace('\\', "/");
    let slash = if text.starts_with('/') { "" } else { "/" };
    let mut out = format!("file://{slash}");
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'-' | b'.' | b'_' | b'~' => out.push(byte as char),
            _ => out.push_str(&format!("%{byte:02X}")),
        }
    }
    Uri::from_str(&out).ok()
}

/// The module of the library behind a name such as `<std.channels.hh>`.
pub fn library_module(name: &str) -> Option<&str> {
    name.strip_prefix('<')?.strip_suffix('>').filter(|module| module.starts_with("std."))
}

/// Where modules of the library are written to for editors: each version of the compiler has a folder.
pub fn library_folder() -> Option<PathBuf> {
    Some(cache::folder()?.join("stdlib").join(env!("CARGO_PKG_VERSION")))
}

/// A file with the text of a module of the library.
pub fn library_file(module: &str) -> Option<PathBuf> {
    let text = stdlib::source(module)?;
    let file = library_folder()?.join(module.replace('.', "/")).with_extension("neuro");
    if std::fs::read_to_string(&file).is_ok_and(|there| there == text) {
        return Some(file);
    }
    std::fs::create_dir_all(file.parent()?).ok()?;
    let mut fresh = tempfile::NamedTempFile::new_in(file.parent()?).ok()?;
    std::io::Write::write_all(&mut fresh, text.as_bytes()).ok()?;
    let mut permissions = fresh.as_file().metadata().ok()?.permissions();
    permissions.set_readonly(true);
    fresh.as_file().set_permissions(permissions).ok()?;
    fresh.persist(&file).ok()?;
    Some(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_comes_back_from_its_address() {
        for path in ["/home/a b/µ.neuro", "/x/100%/{c}.neuro"] {
            let uri = uri_of(Path::new(path)).unwrap();
            assert_eq!(path_of(&uri), Some(PathBuf::from(path)));
        }
        assert_eq!(uri_of(Path::new("/a b")).unwrap().as_str(), "file:///a%20b");
    }

    #[test]
    fn what_is_no_file_has_no_path() {
        for uri in ["untitled:Untitled-1", "https://example.org/a.neuro", "file:///a%zz"] {
            assert_eq!(Uri::from_str(uri).ok().as_ref().and_then(path_of), None);
        }
    }
}
