//! Where samples and spikes go while a run goes on.
//!
//! In come rows and spikes, in the order of their time; [`Memory`] makes a [`RunResult`] of them, [`Stream`] writes them to a file.
//! Never true here: a sink asks the engine for something, or changes a number of the run.

use super::records::{Records, Train};
use super::time::Grid;
use crate::engine::Spike;
use crate::results::{Contents, ResultsError, RunResult, Samples, Series, SpikeTrain, Writer};
use crate::units::DisplayUnit;
use ndarray::Array2;
use serde_json::{Map, Value};
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

/// Takes what a run records. Which row and which train is which, [`Records`] say; what has been handed over is never taken back.
pub trait Sink {
    /// The cells of a record (by its place in [`Records::series`]) after so many steps, in canonical units.
    fn row(&mut self, record: usize, step: u64, values: &[f64]) -> Result<(), SinkError>;

    /// A spike of a train (by its place in [`Records::trains`]).
    fn spike(&mut self, train: usize, spike: Spike) -> Result<(), SinkError>;

    /// So many steps are done, and everything has been handed over that was recorded in them.
    fn reached(&mut self, _step: u64) -> Result<(), SinkError> {
        Ok(())
    }
}

/// A sink takes no more.
#[derive(Debug, Clone, PartialEq)]
pub struct SinkError(pub String);

impl fmt::Display for SinkError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for SinkError {}

impl From<ResultsError> for SinkError {
    fn from(error: ResultsError) -> SinkError {
        SinkError(error.to_string())
    }
}

/// Keeps nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Nowhere;

impl Sink for Nowhere {
    fn row(&mut self, _record: usize, _step: u64, _values: &[f64]) -> Result<(), SinkError> {
        Ok(())
    }

    fn spike(&mut self, _train: usize, _spike: Spike) -> Result<(), SinkError> {
        Ok(())
    }
}

/// Writes everything to a file, which holds all but the last moment of a run that ends before its time.
pub struct Stream {
    writer: Writer,
    units: Vec<DisplayUnit>,
    dt: f64,
    meta: Map<String, Value>,
    row: Vec<f64>,
}

impl Stream {
    /// Writes with `writer`, which got the contents of these records. `meta` are the facts about the run; `steps` and `complete` are added to them.
    pub fn new(writer: Writer, records: &Records, grid: Grid, meta: Map<String, Value>) -> Stream {
        let units = records.series.iter().map(|r| r.unit.clone()).collect();
        Stream { writer, units, dt: grid.dt, meta, row: Vec::new() }
    }

    /// Completes the file after so many steps. Answers which files hold the results.
    pub fn finish(mut self, steps: u64, complete: bool) -> Result<Vec<PathBuf>, ResultsError> {
        self.until(steps, complete);
        self.writer.finish(&self.meta)
    }

    fn until(&mut self, steps: u64, complete: bool) {
        self.meta.insert("steps".into(), steps.into());
        self.meta.insert("complete".into(), complete.into());
    }
}

impl Sink for Stream {
    fn row(&mut self, record: usize, step: u64, values: &[f64]) -> Result<(), SinkError> {
        let (unit, t) = (&self.units[record], step as f64 * self.dt);
        if unit.exponent == 0 {
            return Ok(self.writer.row(record, t, values)?);
        }
        self.row.clear();
        self.row.extend(values.iter().map(|&x| unit.show(x)));
        Ok(self.writer.row(record, t, &self.row)?)
    }

    fn spike(&mut self, train: usize, spike: Spike) -> Result<(), SinkError> {
        Ok(self.writer.spike(train, spike.time(self.dt), spike.cell)?)
    }

    fn reached(&mut self, step: u64) -> Result<(), SinkError> {
        if !self.writer.due() {
            return Ok(());
        }
        self.until(step, false);
        Ok(self.writer.commit(&self.meta)?)
    }
}

/// Keeps everything, for a [`RunResult`].
#[derive(Debug, Clone, PartialEq)]
pub struct Memory {
    contents: Contents,
    units: Vec<DisplayUnit>,
    series: Vec<Sampled>,
    trains: Vec<Events>,
}

/// The samples of a record, row by row, in its unit, and the steps after which they were taken where that is not known before.
#[derive(Debug, Clone, PartialEq)]
struct Sampled {
    values: Kept,
    steps: Option<Vec<u64>>,
}

#[derive(Debug, Clone, PartialEq)]
enum Kept {
    Single(Vec<f32>),
    Double(Vec<f64>),
}

/// The spikes of a train.
type Events = Vec<Spike>;

impl Memory {
    /// Room for all that is recorded, but for spikes; nothing is copied later.
    pub fn new(records: &Records, contents: Contents) -> Result<Memory, SinkError> {
        fn room<T>(numbers: Option<usize>) -> Result<Vec<T>, SinkError> {
            let mut room = Vec::new();
            let enough = numbers.is_some_and(|numbers| room.try_reserve_exact(numbers).is_ok());
            if enough { Ok(room) } else { Err(SinkError("there is no memory for what is recorded".into())) }
        }
        let kept = |head: &crate::results::SeriesHead| {
            let samples = usize::try_from(head.samples.unwrap_or(0)).ok();
            let numbers = samples.and_then(|samples| samples.checked_mul(head.cells.len()));
            let values = if contents.single { Kept::Single(room(numbers)?) } else { Kept::Double(room(numbers)?) };
            Ok(Sampled { values, steps: head.samples.is_none().then(Vec::new) })
        };
        let series = contents.series.iter().map(kept).collect::<Result<_, SinkError>>()?;
        let units = records.series.iter().map(|r| r.unit.clone()).collect();
        Ok(Memory { contents, units, series, trains: vec![Events::new(); records.trains.len()] })
    }

    /// What has come in, in the units of the records; `meta` is empty.
    pub fn result(self, records: Records, grid: Grid) -> RunResult {
        let mut times = Times { dt: grid.dt, known: Vec::new() };
        let mut series = Vec::new();
        for ((head, record), sampled) in self.contents.series.into_iter().zip(&records.series).zip(self.series) {
            let columns = head.cells.len();
            let rows = sampled.values.len() / columns.max(1);
            let values = match sampled.values {
                Kept::Single(x) => Samples::F32(Array2::from_shape_vec((rows, columns), x).unwrap_or_default()),
                Kept::Double(x) => Samples::F64(Array2::from_shape_vec((rows, columns), x).unwrap_or_default()),
            };
            let t = match sampled.steps {
                None => times.of(record.samples(0).0, record.every, rows),
                Some(steps) => Arc::new(steps.into_iter().map(|step| step as f64 * grid.dt).collect()),
            };
            series.push(Series {
                name: head.name,
                population: head.population,
                unit: head.unit,
                columns: (0..columns).collect(),
                whole: columns,
                cells: head.cells,
                compartments: head.compartments,
                t,
                values,
            });
        }
        let trains = records.trains.into_iter().zip(self.trains);
        RunResult {
            series,
            spikes: trains.map(|(train, events)| train_of(train, events, grid.dt)).collect(),
            populations: self.contents.populations,
            parameters: self.contents.parameters,
            meta: Map::new(),
        }
    }
}

impl Kept {
    fn len(&self) -> usize {
        match self {
            Kept::Single(x) => x.len(),
            Kept::Double(x) => x.len(),
        }
    }
}

impl Sink for Memory {
    fn row(&mut self, record: usize, step: u64, values: &[f64]) -> Result<(), SinkError> {
        let unit = &self.units[record];
        let shown = |x: &f64| if unit.exponent == 0 { *x } else { unit.show(*x) };
        let sampled = &mut self.series[record];
        if let Some(steps) = &mut sampled.steps {
            steps.push(step);
        }
        match &mut sampled.values {
            Kept::Single(kept) => kept.extend(values.iter().map(|x| shown(x) as f32)),
            Kept::Double(kept) => kept.extend(values.iter().map(shown)),
        }
        Ok(())
    }

    fn spike(&mut self, train: usize, spike: Spike) -> Result<(), SinkError> {
        self.trains[train].push(spike);
        Ok(())
    }
}

/// Sample times, which series share.
struct Times {
    dt: f64,
    known: Vec<Clock>,
}

/// The times of so many samples from a first one on, so many steps apart.
struct Clock {
    first: u64,
    every: u64,
    rows: usize,
    times: Arc<Vec<f64>>,
}

impl Times {
    fn of(&mut self, first: u64, every: u64, rows: usize) -> Arc<Vec<f64>> {
        let same = |clock: &&Clock| (clock.first, clock.every, clock.rows) == (first, every, rows);
        if let Some(clock) = self.known.iter().find(same) {
            return Arc::clone(&clock.times);
        }
        let times: Arc<Vec<f64>> = Arc::new((0..rows as u64).map(|i| (first + i * every) as f64 * self.dt).collect());
        self.known.push(Clock { first, every, rows, times: Arc::clone(&times) });
        times
    }
}

fn train_of(train: Train, events: Events, dt: f64) -> SpikeTrain {
    SpikeTrain {
        population: train.population,
        cells: train.cells,
        t: events.iter().map(|spike| spike.time(dt)).collect(),
        i: events.iter().map(|spike| spike.cell).collect(),
    }
}
