//! What a run produced, and the files it is kept in.
//!
//! A run hands in sampled series, spike trains and free-form metadata; out go `.npz` and `.csv` files, and `.npz` files
//! come back in. A file is never left half-written, and data that contradict themselves are never written. Nothing here
//! simulates, converts a unit or chooses what to record.
//!
//! # The `.npz` layout
//!
//! | array | dtype, shape | meaning |
//! |---|---|---|
//! | `t` | `<f8`, `[time]` | sample times in ms, shared by the series |
//! | `NAME` | `<f4` or `<f8`, `[time, index]` | one series, named as in the model, in the unit `meta` states |
//! | `NAME.t` | `<f8`, `[time]` | sample times in ms, only for a series that does not use `t` |
//! | `POP.spikes.t` | `<f8`, `[spike]` | spike times in ms |
//! | `POP.spikes.i` | `<u8`, `[spike]` | the cell that fired, from 0 |
//! | `meta` | `<U…`, `[]` | JSON text: `json.loads(str(np.load(f)["meta"]))` |
//!
//! To what the caller put in `meta`, two entries are added: `units`, `{array name: unit}` for every array with a unit,
//! and `populations`, `{population: {"cells": n}}` for every spike train. The same data give the same bytes.
//!
//! # The `.csv` layout
//!
//! One wide table, a row per sample time: `t_ms`, then `NAME[index] (unit)` for every column of every series. Where
//! series have different sample times, the rows are the union of the times and an empty field means "no sample at this
//! time"; a value that is not a number is `nan`, `inf` or `-inf`. Numbers are the shortest text that reads back to the
//! same value. Spikes go to a second file, `STEM.spikes.csv`, with the columns `population,cell,t_ms`; it is written
//! when the run has a spike train, even one without spikes. Metadata is not stored in `.csv`.

mod atomic;
mod csv;
mod npz;

#[cfg(test)]
mod tests;

use std::collections::HashSet;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ndarray::Array2;
use serde_json::{Map, Value};

pub(crate) use atomic::Pending;

/// Replaces a file's content at once: on any error the old content stays. The error names the cause.
pub fn replace_file(path: &Path, bytes: &[u8]) -> Result<(), String> {
    Pending::new(path, |file| io::Write::write_all(file, bytes)).and_then(Pending::commit).map_err(|e| e.reason)
}

/// Everything a run recorded.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RunResult {
    /// The sampled variables, in the order they were recorded; names are unique.
    pub series: Vec<Series>,
    /// The recorded spikes, one train per population; populations are unique.
    pub spikes: Vec<SpikeTrain>,
    /// Facts about the run (source hash, compiler version, options, seed). `model`, if it is a string, titles figures.
    pub meta: Map<String, Value>,
}

/// One recorded variable over time.
#[derive(Debug, Clone, PartialEq)]
pub struct Series {
    /// The variable as the model names it, such as `squid.soma.v`.
    pub name: String,
    /// The unit of the values, such as `mV`; `1` for dimensionless.
    pub unit: String,
    /// Sample times in ms, finite and never decreasing, shape `[time]`.
    pub t: Arc<Vec<f64>>,
    /// The samples, shape `[time, index]`.
    pub values: Samples,
}

/// Samples in the precision they were recorded in, shape `[time, index]`.
#[derive(Debug, Clone, PartialEq)]
pub enum Samples {
    /// Single precision.
    F32(Array2<f32>),
    /// Double precision.
    F64(Array2<f64>),
}

/// The spikes of one population.
#[derive(Debug, Clone, PartialEq)]
pub struct SpikeTrain {
    /// The population as the model names it, such as `squid`.
    pub population: String,
    /// How many cells the population has, spiking or not.
    pub cells: usize,
    /// Spike times in ms, finite, in the order they were recorded, shape `[spike]`.
    pub t: Vec<f64>,
    /// The cell that fired, from 0 and below `cells`, shape `[spike]`.
    pub i: Vec<u64>,
}

impl Samples {
    /// Number of sample times and number of indices.
    pub fn shape(&self) -> (usize, usize) {
        match self {
            Samples::F32(a) => a.dim(),
            Samples::F64(a) => a.dim(),
        }
    }

    /// One sample, widened to double precision.
    ///
    /// # Panics
    /// If `time` or `index` is outside [`Samples::shape`].
    pub fn get(&self, time: usize, index: usize) -> f64 {
        match self {
            Samples::F32(a) => f64::from(a[[time, index]]),
            Samples::F64(a) => a[[time, index]],
        }
    }
}

/// Why results were not written or not read.
#[derive(Debug)]
pub enum ResultsError {
    /// The data contradict themselves; the text says how.
    Inconsistent(String),
    /// The file name ends in something other than `.npz` or `.csv`.
    Extension(PathBuf),
    /// A file could not be written; whatever stood at `path` before is untouched.
    Write {
        /// The file that was to be written.
        path: PathBuf,
        /// The cause in plain words.
        reason: String,
        /// The cause as the operating system gave it.
        source: io::Error,
    },
    /// A file could not be read as results.
    Read {
        /// The file that was read.
        path: PathBuf,
        /// The cause in plain words.
        reason: String,
    },
}

impl fmt::Display for ResultsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ResultsError::Inconsistent(what) => {
                write!(f, "the results contradict themselves: {what}")
            }
            ResultsError::Extension(path) => {
                write!(f, "cannot write results to `{}`: the name must end in .npz or .csv", path.display())
            }
            ResultsError::Write { path, reason, .. } => {
                write!(f, "cannot write `{}`: {reason}", path.display())
            }
            ResultsError::Read { path, reason } => {
                write!(f, "cannot read `{}`: {reason}", path.display())
            }
        }
    }
}

impl std::error::Error for ResultsError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            ResultsError::Write { source, .. } => Some(source),
            ResultsError::Inconsistent(_) | ResultsError::Extension(_) | ResultsError::Read { .. } => None,
        }
    }
}

impl From<atomic::WriteError> for ResultsError {
    fn from(e: atomic::WriteError) -> Self {
        ResultsError::Write { path: e.path, reason: e.reason, source: e.source }
    }
}

/// A file format results can be written in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileFormat {
    /// NumPy's archive of arrays.
    Npz,
    /// Comma-separated text.
    Csv,
}

impl FileFormat {
    /// The format a file name asks for by its extension, in any case.
    ///
    /// # Errors
    /// [`ResultsError::Extension`] for any other extension.
    pub fn of(path: &Path) -> Result<FileFormat, ResultsError> {
        let extension = path.extension().map(|e| e.to_string_lossy().to_lowercase());
        match extension.as_deref() {
            Some("npz") => Ok(FileFormat::Npz),
            Some("csv") => Ok(FileFormat::Csv),
            _ => Err(ResultsError::Extension(path.to_owned())),
        }
    }
}

/// Says, before a long run, whether its results could be written to `path`: the extension is known, the directory exists
/// and takes a new file. Leaves nothing behind.
///
/// # Errors
/// What [`RunResult::write`] would fail with.
pub fn check_destination(path: &Path) -> Result<(), ResultsError> {
    FileFormat::of(path)?;
    Pending::new(path, |_| Ok(()))?;
    Ok(())
}

/// Can a file be written there? Nothing is left behind; the error names the cause.
pub fn check_writable(path: &Path) -> Result<(), String> {
    Pending::new(path, |_| Ok(())).map(drop).map_err(|e| e.reason)
}

impl RunResult {
    /// The series of that name.
    pub fn series_named(&self, name: &str) -> Option<&Series> {
        self.series.iter().find(|s| s.name == name)
    }

    /// Writes the results in the format the extension of `path` asks for and says which files now hold them.
    ///
    /// # Errors
    /// See [`RunResult::write_npz`]; [`ResultsError::Extension`] when the extension is neither `.npz` nor `.csv`.
    pub fn write(&self, path: &Path) -> Result<Vec<PathBuf>, ResultsError> {
        match FileFormat::of(path)? {
            FileFormat::Npz => self.write_npz(path).map(|()| vec![path.to_owned()]),
            FileFormat::Csv => self.write_csv(path),
        }
    }

    /// Writes one `.npz` file in the layout of the [module](self), replacing what was there in one step.
    ///
    /// # Errors
    /// [`ResultsError::Inconsistent`] when [`RunResult::check`] fails; [`ResultsError::Write`] when the file cannot be
    /// written, and then nothing new is left on disk.
    pub fn write_npz(&self, path: &Path) -> Result<(), ResultsError> {
        self.check()?;
        Pending::new(path, |file| npz::encode(self, file))?.commit()?;
        Ok(())
    }

    /// Writes the series to `path` and the spikes, if any train was recorded, to `STEM.spikes.csv` beside it, in the
    /// layout of the [module](self). Returns the files written. Neither file appears unless both are complete.
    ///
    /// # Errors
    /// As [`RunResult::write_npz`].
    pub fn write_csv(&self, path: &Path) -> Result<Vec<PathBuf>, ResultsError> {
        self.check()?;
        let mut written = vec![path.to_owned()];
        let table = Pending::new(path, |file| csv::encode_series(&self.series, file))?;
        if self.spikes.is_empty() {
            table.commit()?;
            return Ok(written);
        }
        let spikes_path = path.with_extension("spikes.csv");
        let spikes = Pending::new(&spikes_path, |file| csv::encode_spikes(&self.spikes, file))?;
        table.commit()?;
        spikes.commit()?;
        written.push(spikes_path);
        Ok(written)
    }

    /// Reads a file that [`RunResult::write_npz`] wrote. The entries the writer added to `meta` are taken out again, so
    /// that what was written comes back equal.
    ///
    /// # Errors
    /// [`ResultsError::Read`], saying whether the file is missing, not an archive, lacks `t` or another array, holds an
    /// array of the wrong dtype or shape, or has damaged metadata.
    pub fn read_npz(path: &Path) -> Result<RunResult, ResultsError> {
        npz::read(path).map_err(|reason| ResultsError::Read { path: path.to_owned(), reason })
    }

    /// Checks what every file relies on: times and values have the same length, times are finite and in order, spikes
    /// name existing cells, and no two arrays would get the same name.
    ///
    /// # Errors
    /// [`ResultsError::Inconsistent`] with the first contradiction found.
    pub fn check(&self) -> Result<(), ResultsError> {
        self.contradiction().map_or(Ok(()), |what| Err(ResultsError::Inconsistent(what)))
    }

    fn contradiction(&self) -> Option<String> {
        let mut arrays: HashSet<String> = HashSet::from(["t".to_owned(), "meta".to_owned()]);
        let mut claim = |name: String| match name.is_empty() || name.contains(['/', '\\', '\0', '\n', '\r']) {
            true => Some(format!("{name:?} cannot name an array")),
            false if arrays.contains(&name) => Some(format!("two arrays are named `{name}`")),
            false => {
                arrays.insert(name);
                None
            }
        };
        for s in &self.series {
            let clash = claim(s.name.clone()).or_else(|| claim(format!("{}.t", s.name)));
            if clash.is_some() {
                return clash;
            }
            if [".spikes.t", ".spikes.i"].iter().any(|reserved| s.name.ends_with(reserved)) {
                return Some(format!("series `{}` has a name kept for spikes", s.name));
            }
            let (rows, _) = s.values.shape();
            if rows != s.t.len() {
                return Some(format!("series `{}` has {rows} samples at {} times", s.name, s.t.len()));
            }
            if s.t.iter().any(|t| !t.is_finite()) {
                return Some(format!("series `{}` has a sample time that is not a number", s.name));
            }
            if !s.t.is_sorted() {
                return Some(format!("the sample times of series `{}` go backwards", s.name));
            }
        }
        for train in &self.spikes {
            let population = &train.population;
            let clash = claim(format!("{population}.spikes.t")).or_else(|| claim(format!("{population}.spikes.i")));
            if clash.is_some() {
                return clash;
            }
            if train.t.len() != train.i.len() {
                return Some(format!(
                    "population `{population}` has {} spike times and {} spiking cells",
                    train.t.len(),
                    train.i.len()
                ));
            }
            if let Some(i) = train.i.iter().find(|&&i| i >= train.cells as u64) {
                return Some(format!("cell {i} of `{population}` fired, but it has {} cells", train.cells));
            }
            if train.t.iter().any(|t| !t.is_finite()) {
                return Some(format!("population `{population}` has a spike time that is not a number"));
            }
        }
        None
    }
}
