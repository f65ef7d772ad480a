//! What a run produced, and the files it is kept in.
//!
//! A run hands in sampled series, spike trains and free-form metadata, at once ([`RunResult`]) or while it goes on ([`Writer`]); out go
//! `.npz` archives, directories of `.npy` arrays and `.csv` tables, and the first two come back in. Data that contradict themselves are
//! never written. Nothing here simulates, converts a unit or chooses what to record.
//!
//! # The layout of archives, version 2
//!
//! | array | dtype, shape | meaning |
//! |---|---|---|
//! | `t` | `<f8`, `[time]` | sample times in ms of the records that are sampled most often |
//! | `NAME` | `<f4` or `<f8`, `[time, index]` | one record, named as the model names it: `squid.soma.v`, or with the cells that the model chooses: `squid[20].soma.v`, `squid[0..10].soma.v`. The name of a record does not depend on the others |
//! | `NAME.t` | `<f8`, `[time]` | its sample times in ms |
//! | `NAME.cell` | `<i8`, `[index]` | the cell of the population, or the synapse of the connection, that each column belongs to, from 0 |
//! | `param.PARAMETER` | `<f8`, `[cell]` | a parameter that may differ from cell to cell: set by index, drawn, or from a file |
//! | `param.CONNECTION.source`, `.target` | `<f8`, `[synapse]` | the cells that each synapse joins of which something is recorded |
//! | `POP.spikes.t` | `<f8`, `[spike]` | spike times in ms |
//! | `POP.spikes.i` | `<i8`, `[spike]` | the cell that fired, from 0 |
//! | `meta` | `<U…`, `[]` | JSON text: `json.loads(str(np.load(f)["meta"]))` |
//!
//! Five entries of `meta` describe the arrays, and are always there:
//!
//! | entry | meaning |
//! |---|---|
//! | `layout` | 2 |
//! | `units` | `{array: unit}` for every array with a unit |
//! | `records` | `{NAME: {"population": POP}}`; of what is recorded in each compartment of sections also `"compartments": {"name": [...], "distance_um": [...], "before": [...]}`, a number for each compartment of a cell: what it is called, how far it is from the middle of the root, and which of the list is the next on the way there. The columns are those of the first cell, then those of the second. Of what a probe hears, whose name stands for the population, these are its contacts, with their places `"at_um": [[x, y, z], ...]`, and `distance_um` is the way along the probe from the first one |
//! | `populations` | `{POP: {"cells": n, "shape": [...]}}`; a row `x` of a record of all cells is the grid `x.reshape(shape)` |
//! | `parameters` | `{PARAMETER: {"value": x, "unit": unit}}`, or `{"array": "param.PARAMETER", "unit": unit, "population": POP}` |
//!
//! The others are facts about the run (`steps` done, `first_step` of a run that goes on from a file, `complete`: false if it was stopped or is not at its end, source hash, options, seed, ...). The same data give the same
//! bytes.
//!
//! **While a run goes on** its archive grows, and is whole at any moment: after the first second it stands at its place and holds, whatever
//! becomes of the process, what was recorded until about a second before. It has room for all that is to come, as a sparse file; a run
//! that is stopped gives it back, one that is killed does not. What was there before a run stays until the first second is over.
//!
//! # Sweeps
//!
//! The runs of a sweep are one archive or directory, whose arrays have its axes in front, the last one the fastest:
//!
//! | array | dtype, shape | meaning |
//! |---|---|---|
//! | `sweep.NAME` | `<f8`, `[value]` | the values that were set, in the unit in which they were written; `sweep.sweep.NAME` where a record has that name |
//! | `NAME` | `<f4` or `<f8`, `[axes..., time, index]` | a record of all runs; NaN where a run was not done, or had failed |
//! | `NAME.t`, `NAME.cell`, `t` | as above | the same in all runs |
//! | `param.PARAMETER` | `<f8`, `[axes..., cell]` | a parameter that may differ from cell to cell |
//! | `POP.spikes.t`, `.i` | as above | the spikes of all runs, run by run |
//! | `POP.spikes.run` | `<i8`, `[spike]` | the run of each: `np.unravel_index(run, shape)` is its place along the axes |
//!
//! `meta` has an entry `sweep` besides: `shape`, how many values each axis has; `axes`, a list of `{"name", "parameter", "unit", "axis", "array"}`, in
//! which what is set together has the same `axis`; `steps`, how many steps each run has done, 0 if it was not done. In
//! `parameters`, one that differs from run to run has `values`, one for each run. There is no such table as `.csv`. The file appears when all runs are done or the sweep is stopped.
//!
//! # Directories
//!
//! A name that ends in `/` is a directory with one file `ARRAY.npy` for each of these arrays, which `np.load(..., mmap_mode="r")` maps.
//! They grow with the run. A directory that holds anything else is not touched.
//!
//! # The `.csv` layout
//!
//! One wide table, a row per sample time: `t_ms`, then a column for every cell of every record, named as a record of this cell alone:
//! `squid[3].soma.v (mV)`; for every contact of a probe, with its number: `shaft[3].potential (uV)`. A cell that a record before has names its record,
//! too: `squid[3].soma.v of squid[0..10].soma.v (mV)`. Where records have different sample times, the rows are the union of the times and an empty field means "no
//! sample at this time"; a value that is not a number is `nan`, `inf` or `-inf`. Numbers are the shortest text that reads back to the
//! same value; times are given to 12 digits. Spikes go to a second file, `STEM.spikes.csv`, with the columns `population,cell,t_ms`;
//! it is written when the run has a spike train, even one without spikes. `STEM.meta.json` has what `meta` has above. Lines are appended while
//! the run goes on.

mod archive;
mod array;
mod atomic;
mod checkpoint;
mod contents;
mod csv;
mod folder;
pub(crate) mod npy;
mod read;
mod sweep;
mod writer;

#[cfg(test)]
mod tests;

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ndarray::Array2;
use serde_json::{Map, Value};

pub(crate) use atomic::Pending;
pub use checkpoint::{Checkpoint, Sent, Way};
pub use contents::{Compartment, Contents, Parameter, ParameterValues, Population, SeriesHead, TrainHead};
pub(crate) use read::spread;
pub use read::{Reading, thin};
pub use sweep::{Found, SweepResult, SweepWriter, SweptAxis, sweep_bytes};
pub use writer::Writer;

/// The version of the layout that is written and read.
pub const LAYOUT: u32 = 2;

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
    /// The populations of the model.
    pub populations: Vec<Population>,
    /// The parameters of the model.
    pub parameters: Vec<Parameter>,
    /// Facts about the run (source hash, compiler version, options, seed). `model`, if it is a string, titles figures.
    pub meta: Map<String, Value>,
}

/// One recorded variable over time.
#[derive(Debug, Clone, PartialEq)]
pub struct Series {
    /// What the model says is recorded, such as `squid.soma.v` or `squid[0..10].soma.v`.
    pub name: String,
    /// The population, such as `squid`; of synapses the connection, such as `e.i.Stdp`, which has dots.
    pub population: String,
    /// The cells of the population, or the synapses of the connection, that the columns belong to, shape `[index]`.
    pub cells: Vec<u64>,
    /// Which columns of the record these are: all, from 0 on, but where some were left out in reading.
    pub columns: Vec<usize>,
    /// How many columns the record has.
    pub whole: usize,
    /// The compartments of a cell, if the columns belong to compartments.
    pub compartments: Option<Arc<[Compartment]>>,
    /// The unit of the values, such as `mV`; `1` for dimensionless.
    pub unit: String,
    /// Sample times in ms, finite and never decreasing, shape `[time]`.
    pub t: Arc<Vec<f64>>,
    /// The samples, shape `[time, index]`.
    pub values: Samples,
}

impl Series {
    /// A whole record of cells, each with a column.
    pub fn of_cells(name: &str, unit: &str, cells: Vec<u64>, t: Arc<Vec<f64>>, values: Samples) -> Series {
        let population = name.split(['.', '[']).next().unwrap_or(name).to_owned();
        let (columns, whole) = ((0..cells.len()).collect(), cells.len());
        let (name, unit, compartments) = (name.to_owned(), unit.to_owned(), None);
        Series { name, population, cells, columns, whole, compartments, unit, t, values }
    }

    /// What a column belongs to: a cell, a compartment of one, a contact of a probe, or a synapse.
    pub fn element(&self) -> &'static str {
        match &self.compartments {
            Some(contacts) if contacts.iter().any(|c| c.at.is_some()) => "contact",
            Some(_) => "compartment",
            None if self.population.contains('.') => "synapse",
            None => "cell",
        }
    }

    /// The compartment that a column belongs to, by its place among those that are recorded of a cell.
    pub fn compartment(&self, column: usize) -> Option<(usize, &Compartment)> {
        let compartments = self.compartments.as_ref()?;
        let at = self.columns.get(column)?.checked_rem(compartments.len())?;
        Some((at, compartments.get(at)?))
    }

    /// What a column belongs to, such as `cell 3`, `dend(0.25)` or, where there are several cells, `dend(0.25) of cell 3`.
    pub fn column(&self, column: usize) -> String {
        let cell = self.cells.get(column).copied().unwrap_or(column as u64);
        match (self.compartment(column), &self.compartments) {
            (Some((_, compartment)), Some(all)) if self.whole == all.len() => compartment.name.clone(),
            (Some((_, compartment)), _) => format!("{} of cell {cell}", compartment.name),
            (None, _) => format!("{} {cell}", self.element()),
        }
    }
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
    /// The file name ends in something other than `.npz`, `.csv` or `/`.
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
                let name = path.display();
                write!(f, "cannot write results to `{name}`: the name must end in .npz, .csv or / (a directory)")?;
                let hdf5 = path.extension().is_some_and(|e| e == "h5" || e == "hdf5");
                if hdf5 {
                    write!(f, "; in Python, `neuroc.read(...).to_sonata(...)` makes HDF5 of them")
                } else {
                    Ok(())
                }
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
    /// A directory of NumPy's arrays.
    Folder,
    /// Comma-separated text.
    Csv,
}

impl FileFormat {
    /// The format a file name asks for by its extension, in any case, or by a `/` at its end.
    ///
    /// # Errors
    /// [`ResultsError::Extension`] for any other extension.
    pub fn of(path: &Path) -> Result<FileFormat, ResultsError> {
        let extension = path.extension().map(|e| e.to_string_lossy().to_lowercase());
        if path.as_os_str().as_encoded_bytes().ends_with(b"/") {
            return Ok(FileFormat::Folder);
        }
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
    writer::check(path)
}

/// The files that a result is written to, if it is one; of a directory that alone.
pub fn files(path: &Path) -> Vec<PathBuf> {
    match FileFormat::of(path) {
        Ok(FileFormat::Csv) => csv::files(path).to_vec(),
        Ok(FileFormat::Npz | FileFormat::Folder) | Err(_) => vec![path.to_owned()],
    }
}

/// Can a file be written there? Nothing is left behind; the error names the cause.
pub fn check_writable(path: &Path) -> Result<(), String> {
    Pending::new(path, |_| Ok(())).map(drop).map_err(|e| e.reason)
}

/// A coefficient of variation of intervals that is below this is what their rounding leaves of none.
pub const ROUNDED_CV: f64 = 1e-6;

/// The fact that says with which step a run begins that goes on from a file; other runs begin with 0.
pub const FIRST_STEP: &str = "first_step";

impl RunResult {
    /// From where the run began, in ms, to the last step that is done, as far as its facts tell.
    pub fn extent(&self) -> (f64, Option<f64>) {
        let dt = self.meta.get("options").and_then(|options| options.get("dt_ms")?.as_f64());
        let at = |step: &str| Some(self.meta.get(step)?.as_f64()? * dt?);
        (at(FIRST_STEP).unwrap_or(0.0), at("steps"))
    }

    /// The series of that name.
    pub fn series_named(&self, name: &str) -> Option<&Series> {
        self.series.iter().find(|s| s.name == name)
    }

    /// Everything but samples, spikes and facts about the run.
    pub fn contents(&self) -> Contents {
        let head = |s: &Series| SeriesHead {
            name: s.name.clone(),
            population: s.population.clone(),
            unit: s.unit.clone(),
            cells: s.cells.clone(),
            // Of what was thinned it is not said: the columns that are left are in no order.
            compartments: s.compartments.clone().filter(|_| s.whole == s.cells.len()),
            samples: Some(s.t.len() as u64),
        };
        let single = |s: &Series| matches!(s.values, Samples::F32(_));
        Contents {
            series: self.series.iter().map(head).collect(),
            trains: self
                .spikes
                .iter()
                .map(|s| TrainHead { population: s.population.clone(), cells: s.cells })
                .collect(),
            populations: self.populations.clone(),
            parameters: self.parameters.clone(),
            single: !self.series.is_empty() && self.series.iter().all(single),
        }
    }

    /// Writes the results in the format that `path` asks for and says which files now hold them. What was there is replaced
    /// in one step.
    ///
    /// # Errors
    /// [`ResultsError::Inconsistent`] when [`RunResult::check`] fails; [`ResultsError::Extension`] when the name ends in none that is
    /// known; [`ResultsError::Write`] when a file cannot be written, and then nothing new is left on disk.
    pub fn write(&self, path: &Path) -> Result<Vec<PathBuf>, ResultsError> {
        self.check()?;
        let mut writer = Writer::new(path, self.contents(), false)?;
        let mut next = vec![0; self.series.len()];
        let mut row = Vec::new();
        loop {
            let waiting = self.series.iter().zip(&next).filter_map(|(s, &row)| s.t.get(row));
            let Some(t) = waiting.copied().min_by(f64::total_cmp) else { break };
            for (at, (s, next)) in self.series.iter().zip(&mut next).enumerate() {
                if s.t.get(*next) == Some(&t) {
                    row.clear();
                    row.extend((0..s.values.shape().1).map(|column| s.values.get(*next, column)));
                    writer.row(at, t, &row)?;
                    *next += 1;
                }
            }
        }
        for (at, train) in self.spikes.iter().enumerate() {
            for (&t, &cell) in train.t.iter().zip(&train.i) {
                writer.spike(at, t, cell)?;
            }
        }
        writer.finish(&self.meta)
    }

    /// Reads an archive or a directory that [`RunResult::write`] or a [`Writer`] wrote. What the layout says in `meta` is taken out of it,
    /// so that what was written comes back equal.
    ///
    /// # Errors
    /// [`ResultsError::Read`], saying whether the file is missing, of another layout, or lacks an array, holds an
    /// array of the wrong dtype or shape, or has damaged metadata.
    pub fn read_npz(path: &Path) -> Result<RunResult, ResultsError> {
        RunResult::read(path, &Reading::default())
    }

    /// As [`RunResult::read_npz`], but for what is left out.
    ///
    /// # Errors
    /// As [`RunResult::read_npz`].
    pub fn read(path: &Path, reading: &Reading) -> Result<RunResult, ResultsError> {
        read::read(path, reading).map_err(|reason| ResultsError::Read { path: path.to_owned(), reason })
    }

    /// How many samples and columns each series of a file has, in the order in which [`RunResult::read`] hands them over.
    ///
    /// # Errors
    /// As [`RunResult::read_npz`], as far as it is seen without reading samples.
    pub fn shapes(path: &Path) -> Result<Vec<(usize, usize)>, ResultsError> {
        read::shapes(path).map_err(|reason| ResultsError::Read { path: path.to_owned(), reason })
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
        let contradiction = self.contents().contradiction();
        if contradiction.is_some() {
            return contradiction;
        }
        for s in &self.series {
            let (rows, columns) = s.values.shape();
            if columns != s.cells.len() || columns != s.columns.len() {
                return Some(format!("series `{}` has {columns} columns of {} cells", s.name, s.cells.len()));
            }
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
