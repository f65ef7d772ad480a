//! A directory of `.npy` arrays, each whole at any moment of a run.
//!
//! In come arrays whose rows grow while the run goes on; out goes one file for each, which NumPy loads or maps after every
//! [`Folder::commit`], with the rows until then.
//! Never true here: a file is touched that no result put there.

use super::array::{Plan, kept};
use super::atomic::{Pending, WriteError, explain};
use super::npy;
use std::fs::{self, File};
use std::io::{self, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

/// A directory in the making.
pub(super) struct Folder {
    path: PathBuf,
    arrays: Vec<Growing>,
    buffer: usize,
}

struct Growing {
    plan: Plan,
    file: File,
    path: PathBuf,
    bytes: u64,
    buffer: Vec<u8>,
}

/// Can a result be written there: is nothing there, an empty directory, or one that holds an earlier result and nothing else?
pub(super) fn check(path: &Path) -> Result<Vec<PathBuf>, WriteError> {
    let wrong = |e: io::Error| explain(path, e);
    let entries = match fs::read_dir(path) {
        Ok(entries) => entries.map(|entry| entry.map(|e| e.path())).collect::<Result<Vec<_>, _>>().map_err(wrong)?,
        Err(e) if e.kind() == io::ErrorKind::NotFound => Vec::new(),
        Err(e) => return Err(wrong(e)),
    };
    let array = |path: &PathBuf| {
        path.extension().is_some_and(|e| e == "npy") && fs::symlink_metadata(path).is_ok_and(|m| m.is_file())
    };
    if entries.is_empty() || (entries.iter().all(array) && entries.iter().any(|e| e.ends_with("meta.npy"))) {
        return Ok(entries);
    }
    Err(wrong(io::Error::other("it holds something else than a result; choose another directory")))
}

impl Folder {
    /// Makes the directory; an earlier result in it is removed.
    pub fn new(path: &Path, plans: Vec<Plan>) -> Result<Folder, WriteError> {
        for old in check(path)? {
            fs::remove_file(&old).map_err(|e| explain(&old, e))?;
        }
        fs::create_dir_all(path).map_err(|e| explain(path, e))?;
        let buffer = kept(plans.len());
        let open = |plan: Plan| {
            let path = path.join(format!("{}.npy", plan.name));
            let file = File::create_new(&path).map_err(|e| explain(&path, e))?;
            let mut array = Growing { plan, file, path, bytes: 0, buffer: Vec::new() };
            array.flush().and_then(|()| array.header())?;
            Ok(array)
        };
        let arrays = plans.into_iter().map(open).collect::<Result<_, _>>()?;
        Ok(Folder { path: path.to_owned(), arrays, buffer })
    }

    /// Appends numbers to an array.
    pub fn append(&mut self, array: usize, values: &[f64]) -> Result<(), WriteError> {
        let array = &mut self.arrays[array];
        array.plan.numbers.put(values, &mut array.buffer);
        if array.buffer.len() >= self.buffer { array.flush() } else { Ok(()) }
    }

    /// The files hold everything that was appended, and this text.
    pub fn commit(&mut self, meta: &str) -> Result<(), WriteError> {
        for array in &mut self.arrays {
            array.flush()?;
            array.header()?;
        }
        let text = npy::text(meta);
        Pending::new(&self.path.join("meta.npy"), |file| file.write_all(&text))?.commit()
    }

    /// Commits for the last time.
    pub fn finish(mut self, meta: &str) -> Result<(), WriteError> {
        self.commit(meta)?;
        self.arrays.iter().try_for_each(|array| array.file.sync_all().map_err(|e| explain(&array.path, e)))
    }
}

impl Growing {
    fn at(&mut self, place: u64, header: bool) -> Result<(), WriteError> {
        let bytes = if header { &self.plan.header(self.bytes) } else { &self.buffer };
        let done = self.file.seek(SeekFrom::Start(place)).and_then(|_| self.file.write_all(bytes));
        done.map_err(|e| explain(&self.path, e))
    }

    fn flush(&mut self) -> Result<(), WriteError> {
        self.at(npy::SIZE + self.bytes, false)?;
        self.bytes += self.buffer.len() as u64;
        self.buffer.clear();
        Ok(())
    }

    /// Rows that the header does not count yet are no part of the array.
    fn header(&mut self) -> Result<(), WriteError> {
        self.at(0, true)
    }
}
