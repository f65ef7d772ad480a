//! Files that appear complete or not at all.
//!
//! A path and a function that fills a file come in; out comes a finished temporary file in the same directory, synced
//! to disk, which [`Pending::commit`] renames into place. The file at the path is never opened for writing unless it is a
//! device or a pipe, and a dropped or failed [`Pending`] leaves nothing behind.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Seek};
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

/// A finished file that is not yet at its place.
pub(crate) struct Pending {
    target: PathBuf,
    /// Links followed: where the new file has to go.
    place: PathBuf,
    content: Content,
}

enum Content {
    /// To be renamed over `place`.
    Renamed(NamedTempFile),
    /// To be copied into a device or a pipe, which a rename would destroy.
    Copied(File),
}

/// A file that could not be written, and why.
#[derive(Debug)]
pub(crate) struct WriteError {
    pub path: PathBuf,
    /// Plain words.
    pub reason: String,
    pub source: io::Error,
}

impl Pending {
    /// Creates a temporary file beside `path`, fills it and syncs it.
    pub fn new(path: &Path, fill: impl FnOnce(&mut File) -> io::Result<()>) -> Result<Pending, WriteError> {
        Pending::build(path, fill).map_err(|source| explain(path, source))
    }

    fn build(path: &Path, fill: impl FnOnce(&mut File) -> io::Result<()>) -> io::Result<Pending> {
        let place = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        let existing = fs::metadata(&place).ok();
        let content = match existing {
            Some(m) if m.is_dir() => return Err(ErrorKind::IsADirectory.into()),
            Some(m) if !m.is_file() => {
                let mut file = tempfile::tempfile()?;
                fill(&mut file)?;
                Content::Copied(file)
            }
            existing => {
                let mut builder = tempfile::Builder::new();
                builder.prefix(".neuroc-").suffix(".part");
                #[cfg(unix)]
                builder.permissions({
                    use std::os::unix::fs::PermissionsExt;
                    // As a plain create would: the umask still applies.
                    fs::Permissions::from_mode(0o666)
                });
                let mut file = builder.tempfile_in(directory(&place))?;
                if let Some(existing) = existing {
                    file.as_file().set_permissions(existing.permissions())?;
                }
                fill(file.as_file_mut())?;
                file.as_file().sync_all()?;
                Content::Renamed(file)
            }
        };
        Ok(Pending { target: path.to_owned(), place, content })
    }

    /// Puts the file in its place, replacing what was there.
    pub fn commit(self) -> Result<(), WriteError> {
        let Pending { target, place, content } = self;
        let done = match content {
            Content::Renamed(file) => file.persist(&place).map_err(|e| e.error).map(|_| {
                // The rename is done; that it survives a power cut as well is worth asking for, not worth failing for.
                if let Ok(directory) = File::open(directory(&place)) {
                    let _ = directory.sync_all();
                }
            }),
            Content::Copied(mut file) => file.rewind().and_then(|()| {
                let mut device = File::options().write(true).open(&place)?;
                io::copy(&mut file, &mut device).map(|_| ())
            }),
        };
        done.map_err(|source| explain(&target, source))
    }
}

/// The directory a file is in; `.` for a bare name.
fn directory(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

fn explain(path: &Path, source: io::Error) -> WriteError {
    let parent = directory(path);
    let reason = match source.kind() {
        ErrorKind::NotFound => format!("the directory `{}` does not exist", parent.display()),
        ErrorKind::NotADirectory => format!("`{}` is not a directory", parent.display()),
        ErrorKind::IsADirectory => "it is a directory".to_owned(),
        ErrorKind::PermissionDenied => format!("no permission to write in `{}`", parent.display()),
        ErrorKind::ReadOnlyFilesystem => "the file system is read-only".to_owned(),
        ErrorKind::StorageFull => "the disk is full".to_owned(),
        ErrorKind::QuotaExceeded => "the disk quota is used up".to_owned(),
        ErrorKind::FileTooLarge => "the file system does not take a file this large".to_owned(),
        _ => source.to_string(),
    };
    WriteError { path: path.to_owned(), reason, source }
}
