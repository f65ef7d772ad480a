//! Files that appear whole or not at all.
//!
//! A path comes in; out comes a temporary file in the same directory, which its owner fills, and which [`Pending::commit`] renames into
//! place, or [`Pending::show`] does while it still grows. The file at the path is never opened for writing unless it is a
//! device or a pipe, and a dropped or failed [`Pending`] that was not shown leaves nothing behind. Temporary files are locked
//! while they are written, so that those of processes that died are known, and swept away.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use tempfile::TempPath;

/// A file that may not yet be at its place.
pub(crate) struct Pending {
    target: PathBuf,
    /// Links followed: where the new file has to go.
    place: PathBuf,
    content: Content,
}

enum Content {
    /// To be renamed over `place` from a temporary name, or there already.
    Beside(File, Option<TempPath>),
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

const BEGIN: &str = ".neuroc-";
const END: &str = ".part";
/// A temporary file that is not locked is swept away after this time: it takes less to lock a new one.
const FRESH: Duration = Duration::from_secs(60);

impl Pending {
    /// Creates a temporary file beside `path`, fills it and syncs it.
    pub fn new(path: &Path, fill: impl FnOnce(&mut File) -> io::Result<()>) -> Result<Pending, WriteError> {
        let mut pending = Pending::open(path)?;
        pending.fill(fill)?;
        Ok(pending)
    }

    /// Creates a temporary file beside `path`.
    pub fn open(path: &Path) -> Result<Pending, WriteError> {
        Pending::opened(path).map_err(|source| explain(path, source))
    }

    /// Another file for the same place.
    pub fn another(&self) -> Result<Pending, WriteError> {
        Pending::open(&self.target)
    }

    fn opened(path: &Path) -> io::Result<Pending> {
        let place = followed(path)?;
        let existing = match fs::metadata(&place) {
            Ok(existing) => Some(existing),
            Err(e) if e.kind() == ErrorKind::NotFound => None,
            Err(e) => return Err(e),
        };
        let content = match existing {
            Some(m) if m.is_dir() => return Err(ErrorKind::IsADirectory.into()),
            Some(m) if !m.is_file() => Content::Copied(tempfile::tempfile()?),
            existing => {
                sweep(directory(&place));
                let mut builder = tempfile::Builder::new();
                builder.prefix(BEGIN).suffix(END);
                #[cfg(unix)]
                builder.permissions({
                    use std::os::unix::fs::PermissionsExt;
                    // As a plain create would: the umask still applies.
                    fs::Permissions::from_mode(0o666)
                });
                let file = builder.tempfile_in(directory(&place))?;
                // Where a file system knows no locks, files are swept away by their age.
                let _ = file.as_file().try_lock();
                if let Some(existing) = existing {
                    file.as_file().set_permissions(existing.permissions())?;
                }
                let (file, name) = file.into_parts();
                Content::Beside(file, Some(name))
            }
        };
        Ok(Pending { target: path.to_owned(), place, content })
    }

    /// Fills it and syncs it.
    pub fn fill(&mut self, fill: impl FnOnce(&mut File) -> io::Result<()>) -> Result<(), WriteError> {
        let file = self.file();
        let done = fill(file).and_then(|()| file.sync_all());
        done.map_err(|e| explain(&self.target, e))
    }

    fn file(&mut self) -> &mut File {
        match &mut self.content {
            Content::Beside(file, _) | Content::Copied(file) => file,
        }
    }

    /// Writes bytes at a place of the file.
    pub fn write_at(&mut self, place: u64, bytes: &[u8]) -> Result<(), WriteError> {
        let file = self.file();
        let done = file.seek(SeekFrom::Start(place)).and_then(|_| file.write_all(bytes));
        done.map_err(|e| explain(&self.target, e))
    }

    /// Appends bytes.
    pub fn append(&mut self, bytes: &[u8]) -> Result<(), WriteError> {
        self.file().write_all(bytes).map_err(|e| explain(&self.target, e))
    }

    /// Reads bytes at a place of the file.
    pub fn read_at(&mut self, place: u64, bytes: &mut [u8]) -> Result<(), WriteError> {
        let done = self.read(place, bytes);
        done.map_err(|e| explain(&self.target, e))
    }

    /// Reads bytes at a place of the file.
    pub fn read(&mut self, place: u64, bytes: &mut [u8]) -> io::Result<()> {
        let file = self.file();
        file.seek(SeekFrom::Start(place))?;
        file.read_exact(bytes)
    }

    /// Makes the file so many bytes long.
    pub fn cut(&mut self, length: u64) -> Result<(), WriteError> {
        self.file().set_len(length).map_err(|e| explain(&self.target, e))
    }

    /// Puts the file in its place, replacing what was there; it may grow further. In a device or a pipe nothing is shown before the end.
    pub fn show(&mut self) -> Result<(), WriteError> {
        if let Content::Beside(_, name) = &mut self.content
            && let Some(name) = name.take()
        {
            name.persist(&self.place).map_err(|e| explain(&self.target, e.error))?;
        }
        Ok(())
    }

    /// Is it in its place already?
    pub fn is_shown(&self) -> bool {
        matches!(self.content, Content::Beside(_, None))
    }

    /// Puts the file in its place, replacing what was there.
    pub fn commit(self) -> Result<(), WriteError> {
        let Pending { target, place, content } = self;
        let done = match content {
            Content::Beside(file, name) => file.sync_all().and_then(|()| {
                if let Some(name) = name {
                    name.persist(&place).map_err(|e| e.error)?;
                }
                // The rename is done; that it survives a power cut as well is worth asking for, not worth failing for.
                if let Ok(directory) = File::open(directory(&place)) {
                    let _ = directory.sync_all();
                }
                Ok(())
            }),
            Content::Copied(mut file) => copied(&mut file, &place),
        };
        done.map_err(|source| explain(&target, source))
    }

    /// As [`Pending::commit`]; what a device or a pipe does not take is kept in a file in the temporary directory, which the error names.
    pub fn commit_or_keep(self) -> Result<(), WriteError> {
        let Pending { target, place, mut content } = self;
        let Content::Copied(file) = &mut content else { return Pending { target, place, content }.commit() };
        let Err(source) = copied(file, &place) else { return Ok(()) };
        let mut error = explain(&target, source);
        let extension = target.extension().map(|e| format!(".{}", e.to_string_lossy())).unwrap_or_default();
        let refuge = tempfile::Builder::new().prefix("neuroc-").suffix(&extension).tempfile();
        let kept = refuge.and_then(|mut refuge| {
            file.rewind()?;
            io::copy(file, refuge.as_file_mut())?;
            Ok(refuge.keep()?.1)
        });
        if let Ok(path) = kept {
            error.reason += &format!("; the results are kept in `{}`", path.display());
        }
        Err(error)
    }
}

fn copied(file: &mut File, place: &Path) -> io::Result<()> {
    file.rewind()?;
    let mut device = File::options().write(true).open(place)?;
    io::copy(file, &mut device).map(drop)
}

/// Where a path leads, if it is a link; what it leads to need not be there.
fn followed(path: &Path) -> io::Result<PathBuf> {
    let mut place = path.to_owned();
    for _ in 0..40 {
        match fs::read_link(&place) {
            Ok(link) => place = directory(&place).join(link),
            Err(e) if matches!(e.kind(), ErrorKind::InvalidInput | ErrorKind::NotFound) => return Ok(place),
            Err(e) => return Err(e),
        }
    }
    Err(io::Error::other("its links lead in a circle"))
}

/// Is it the name of a temporary file?
pub(super) fn is_temporary(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    name.starts_with(BEGIN) && name.ends_with(END)
}

/// Removes the temporary files of processes that are no more.
fn sweep(directory: &Path) {
    let Ok(entries) = fs::read_dir(directory) else { return };
    for entry in entries.flatten() {
        if !is_temporary(&entry.path()) {
            continue;
        }
        let old = entry
            .metadata()
            .is_ok_and(|m| m.is_file() && m.modified().is_ok_and(|t| t.elapsed().is_ok_and(|t| t > FRESH)));
        if old && File::open(entry.path()).is_ok_and(|file| file.try_lock().is_ok()) {
            let _ = fs::remove_file(entry.path());
        }
    }
}

/// The directory a file is in; `.` for a bare name.
fn directory(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

pub(super) fn explain(path: &Path, source: io::Error) -> WriteError {
    let parent = directory(path);
    let reason = match source.kind() {
        ErrorKind::NotFound => format!("the directory `{}` does not exist", parent.display()),
        ErrorKind::NotADirectory => format!("`{}` is not a directory", parent.display()),
        ErrorKind::IsADirectory => "it is a directory".to_owned(),
        ErrorKind::PermissionDenied => format!("no permission to write in `{}`", parent.display()),
        ErrorKind::ReadOnlyFilesystem => "the file system is read-only".to_owned(),
        ErrorKind::StorageFull => "the disk is full".to_owned(),
        ErrorKind::QuotaExceeded => "the disk quota is used up".to_owned(),
        ErrorKind::InvalidFilename => "its name is too long, or no name of a file".to_owned(),
        ErrorKind::FileTooLarge => "the file system does not take a file this large".to_owned(),
        _ => source.to_string(),
    };
    WriteError { path: path.to_owned(), reason, source }
}
