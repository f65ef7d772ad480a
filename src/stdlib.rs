//! The standard library: .neuro files that are part of the compiler.
//!
//! In come module paths such as `std.channels.hh`; out go source texts.
//! Never true here: a module that does not compile by itself (a test checks each).

use include_dir::{Dir, include_dir};

static FILES: Dir<'static> = include_dir!("$CARGO_MANIFEST_DIR/stdlib");

/// The text of a module.
pub fn source(path: &str) -> Option<&'static str> {
    let file = format!("{}.neuro", path.strip_prefix("std.")?.replace('.', "/"));
    FILES.get_file(file)?.contents_utf8()
}

/// The paths of all modules, sorted.
pub fn modules() -> Vec<String> {
    fn walk(dir: &Dir<'_>, out: &mut Vec<String>) {
        for file in dir.files() {
            if let Some(stem) = file.path().to_str().and_then(|p| p.strip_suffix(".neuro")) {
                out.push(format!("std.{}", stem.replace(['/', '\\'], ".")));
            }
        }
        dir.dirs().for_each(|d| walk(d, out));
    }
    let mut out = Vec::new();
    walk(&FILES, &mut out);
    out.sort();
    out
}

/// The items of a module's text: kind and name, such as `channel Na`.
pub fn items(text: &str) -> Vec<String> {
    text.lines()
        .filter_map(|line| {
            let (kind, rest) = line.split_once(' ')?;
            let known = ["channel", "cell", "junction", "synapse", "function", "const"].contains(&kind);
            let name: String = rest.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
            known.then(|| format!("{kind} {name}"))
        })
        .collect()
}
