//! A directory of `.npy` arrays, each whole at any moment of a run.
//!
//! In come arrays whose rows grow while the run goes on; out goes one file for each, which NumPy loads or maps after every
//! [`Folder::commit`], with the rows until then.
//! Never true here: a file is touched that no result put there.

use super::array::{Plan, kept};
use super::atomic::{Pending, WriteError, explain, is_temporary};
use super::npy;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// A directory in the making.
pub(super) struct Folder {
    path: PathBuf,
    arrays: Vec<Growing>,
    buffer: usize,
    /// Are its files there? Before the first commit those of an earlier result are.
    shown: bool,
    /// Was there no directory before?
    made: bool,
}

struct Growing {
    plan: Plan,
    pending: Pending,
    bytes: u64,
    buffer: Vec<u8>,
}

/// Can a result be written there: is nothing there, an empty directory, or one that holds an earlier result and nothing else? Answers its files.
pub(super) fn check(path: &Path) -> Result<Vec<PathBuf>, WriteError> {
    let wrong = |e: io::Error| explain(path, e);
    let mut entries = match fs::read_dir(path) {
        Ok(entries) => entries.map(|entry| entry.map(|e| e.path())).collect::<Result<Vec<_>, _>>().map_err(wrong)?,
        Err(e) if e.kind() == io::ErrorKind::NotFound => Vec::new(),
        Err(e) => return Err(wrong(e)),
    };
    // Those of a process that died, or of one that is about to write here.
    entries.retain(|entry| !is_temporary(entry));
    let array = |path: &PathBuf| {
        path.extension().is_some_and(|e| e == "npy") && fs::symlink_metadata(path).is_ok_and(|m| m.is_file())
    };
    if entries.is_empty() || (entries.iter().all(array) && entries.iter().any(|e| e.ends_with("meta.npy"))) {
        return Ok(entries);
    }
    Err(wrong(io::Error::other("it holds something else than a result; choose another directory")))
}

impl Folder {
    /// Makes the directory; an earlier result in it stays until the first commit.
    pub fn new(path: &Path, plans: Vec<Plan>) -> Result<Folder, WriteError> {
        check(path)?;
        let made = !path.exists();
        fs::create_dir_all(path).map_err(|e| explain(path, e))?;
        let buffer = kept(plans.len());
        let mut folder = Folder { path: path.to_owned(), arrays: Vec::new(), buffer, shown: false, made };
        for plan in plans {
            let pending = Pending::open(&path.join(format!("{}.npy", plan.name)))?;
            let mut array = Growing { plan, pending, bytes: 0, buffer: Vec::new() };
            array.header()?;
            folder.arrays.push(array);
        }
        Ok(folder)
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
        let meta = || Pending::new(&self.path.join("meta.npy"), |file| file.write_all(&text))?.commit();
        if self.shown {
            return meta();
        }
        // Whenever it ends, the directory is known to be one of a result.
        let earlier = check(&self.path)?;
        meta()?;
        for old in earlier.iter().filter(|old| !old.ends_with("meta.npy")) {
            fs::remove_file(old).map_err(|e| explain(old, e))?;
        }
        self.arrays.iter_mut().try_for_each(|array| array.pending.show())?;
        self.shown = true;
        Ok(())
    }

    /// Commits for the last time.
    pub fn finish(mut self, meta: &str) -> Result<(), WriteError> {
        self.commit(meta)?;
        self.arrays.iter_mut().try_for_each(|array| array.pending.fill(|_| Ok(())))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        if self.made && !self.shown {
            self.arrays.clear();
            // Where somebody has put something in it, it stays.
            let _ = fs::remove_dir(&self.path);
        }
    }
}

impl Growing {
    fn flush(&mut self) -> Result<(), WriteError> {
        self.pending.write_at(npy::SIZE + self.bytes, &self.buffer)?;
        self.bytes += self.buffer.len() as u64;
        self.buffer.clear();
        Ok(())
    }

    /// Rows that the header does not count yet are no part of the array.
    fn header(&mut self) -> Result<(), WriteError> {
        self.pending.write_at(0, &self.plan.header(self.bytes))
    }
}
