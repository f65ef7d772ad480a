//! Writing results while a run goes on.
//!
//! In come [`Contents`], then rows and spikes in the order of their times; out go files in the [layout](super) that are whole whenever the
//! process may end, with what had come in about a second before.
//! Never true here: memory that grows with the run.

use super::archive::Archive;
use super::array::Plan;
use super::csv::Csv;
use super::folder::Folder;
use super::{Contents, FileFormat, ResultsError, csv, folder};
use serde_json::{Map, Value};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Files show what has come in at least this long ago, and more seldom where that takes long.
const AGE: Duration = Duration::from_secs(1);

/// A file of results in the making.
pub struct Writer {
    path: PathBuf,
    form: Form,
    contents: Contents,
    described: Map<String, Value>,
    clock: Option<usize>,
    last: Instant,
    pause: Duration,
}

pub(super) enum Form {
    Archive(Box<Archive>),
    Folder(Folder),
    Csv(Box<Csv>),
}

impl Writer {
    /// Begins a file of the format that the extension of `path` asks for. With `compress` an archive is packed when it is finished. What
    /// was at `path` stays until the first commit.
    ///
    /// # Errors
    /// [`ResultsError::Inconsistent`] if [`Contents::check`] fails, [`ResultsError::Write`] if the file cannot be written,
    /// [`ResultsError::Extension`] for an unknown extension.
    pub fn new(path: &Path, contents: Contents, compress: bool) -> Result<Writer, ResultsError> {
        contents.check()?;
        let mut form = match FileFormat::of(path)? {
            FileFormat::Npz => Form::archive(path, contents.arrays(), compress)?,
            FileFormat::Folder => Form::folder(path, contents.arrays())?,
            FileFormat::Csv => Form::Csv(Box::new(Csv::new(path, &contents)?)),
        };
        let mut array = 1;
        for head in &contents.series {
            let cells: Vec<f64> = head.cells.iter().map(|&cell| cell as f64).collect();
            form.append(array + 2, &cells)?;
            array += 3;
        }
        for (_, values) in contents.per_cell() {
            form.append(array, values)?;
            array += 1;
        }
        let (described, clock) = (contents.described(), contents.clock());
        Ok(Writer { path: path.to_owned(), form, contents, described, clock, last: Instant::now(), pause: AGE })
    }

    /// A sample of a series (by its place in [`Contents::series`]) at a time in ms, which is not before that of any row before: one
    /// number per cell, in the unit of the series.
    pub fn row(&mut self, series: usize, t: f64, values: &[f64]) -> Result<(), ResultsError> {
        if let Form::Csv(csv) = &mut self.form {
            return Ok(csv.row(series, t, values)?);
        }
        let array = 1 + 3 * series;
        self.form.append(array, values)?;
        self.form.append(array + 1, &[t])?;
        if self.clock == Some(series) { self.form.append(0, &[t]) } else { Ok(()) }
    }

    /// A spike of a train (by its place in [`Contents::trains`]): its time in ms, and the cell.
    pub fn spike(&mut self, train: usize, t: f64, cell: u64) -> Result<(), ResultsError> {
        if let Form::Csv(csv) = &mut self.form {
            return Ok(csv.spike(train, t, cell)?);
        }
        let array = 1 + 3 * self.contents.series.len() + self.contents.per_cell().count() + 2 * train;
        self.form.append(array, &[t])?;
        self.form.append(array + 1, &[cell as f64])
    }

    /// Is it time for a [`Writer::commit`]?
    pub fn due(&self) -> bool {
        self.last.elapsed() >= self.pause || matches!(&self.form, Form::Csv(csv) if csv.full())
    }

    /// From now on the file is there and holds what has come in, with these facts about the run so far.
    pub fn commit(&mut self, meta: &Map<String, Value>) -> Result<(), ResultsError> {
        let begin = Instant::now();
        let meta = self.text(meta);
        match &mut self.form {
            Form::Archive(archive) => archive.commit(&meta)?,
            Form::Folder(folder) => folder.commit(&meta)?,
            Form::Csv(csv) => csv.commit(&meta)?,
        }
        self.last = Instant::now();
        self.pause = AGE.max(20 * (self.last - begin));
        Ok(())
    }

    /// Completes the file. Answers which files hold the results. The same data give the same bytes.
    pub fn finish(self, meta: &Map<String, Value>) -> Result<Vec<PathBuf>, ResultsError> {
        let meta = self.text(meta);
        let tables = self.form.finish(&meta)?;
        Ok(if tables.is_empty() { vec![self.path] } else { tables })
    }

    /// Facts about the run, and about the arrays.
    fn text(&self, meta: &Map<String, Value>) -> String {
        let mut all = meta.clone();
        all.extend(self.described.clone());
        Value::Object(all).to_string()
    }
}

impl Form {
    pub fn archive(path: &Path, plans: Vec<Plan>, compress: bool) -> Result<Form, ResultsError> {
        Ok(Form::Archive(Box::new(Archive::new(path, plans, compress)?)))
    }

    pub fn folder(path: &Path, plans: Vec<Plan>) -> Result<Form, ResultsError> {
        Ok(Form::Folder(Folder::new(path, plans)?))
    }

    /// Completes the files; answers those of tables.
    pub fn finish(self, meta: &str) -> Result<Vec<PathBuf>, ResultsError> {
        match self {
            Form::Archive(archive) => archive.finish(meta)?,
            Form::Folder(folder) => folder.finish(meta)?,
            Form::Csv(csv) => return Ok(csv.finish(meta)?),
        }
        Ok(Vec::new())
    }

    pub fn append(&mut self, array: usize, values: &[f64]) -> Result<(), ResultsError> {
        match self {
            Form::Archive(archive) => Ok(archive.append(array, values)?),
            Form::Folder(folder) => Ok(folder.append(array, values)?),
            // Tables have no arrays.
            Form::Csv(_) => Ok(()),
        }
    }
}

/// See [`super::check_destination`].
pub(super) fn check(path: &Path) -> Result<(), ResultsError> {
    match FileFormat::of(path)? {
        FileFormat::Npz => drop(super::Pending::open(path)?),
        FileFormat::Csv => {
            for file in csv::files(path) {
                drop(super::Pending::open(&file)?);
            }
        }
        FileFormat::Folder => {
            let there = folder::check(path)?;
            let parent = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
            let within = if there.is_empty() && !path.exists() { parent } else { path };
            drop(super::Pending::open(&within.join("meta.npy"))?);
        }
    }
    Ok(())
}
