//! Where samples and spikes go while a run goes on.
//!
//! In come rows and spikes, in the order of their time; [`Memory`] makes a [`RunResult`] of them.
//! Never true here: a sink asks the engine for something, or changes a number of the run.

use super::records::{Record, Records, Train};
use super::time::Grid;
use crate::results::{RunResult, Samples, Series, SpikeTrain};
use ndarray::Array2;
use serde_json::Map;
use std::fmt;
use std::sync::Arc;

/// Takes what a run records. Which row and which train is which, [`Records`] say; what has been handed over is never taken back.
pub trait Sink {
    /// The cells of a record (by its place in [`Records::series`]) after so many steps, in canonical units.
    fn row(&mut self, record: usize, step: u64, values: &[f64]) -> Result<(), SinkError>;

    /// A spike of a train (by its place in [`Records::trains`]) in a step; its time is the end of the step.
    fn spike(&mut self, train: usize, step: u64, cell: u64) -> Result<(), SinkError>;
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

/// Keeps everything, for a [`RunResult`].
#[derive(Debug, Clone, PartialEq)]
pub struct Memory {
    series: Vec<Vec<f64>>,
    trains: Vec<Events>,
}

/// Steps and cells of the spikes of a train.
#[derive(Debug, Clone, PartialEq, Default)]
struct Events {
    steps: Vec<u64>,
    cells: Vec<u64>,
}

impl Memory {
    /// Room for what is recorded.
    pub fn new(records: &Records) -> Memory {
        Memory { series: vec![Vec::new(); records.series.len()], trains: vec![Events::default(); records.trains.len()] }
    }

    /// What has come in, in the units of the records; `meta` is empty.
    pub fn result(self, records: Records, grid: Grid, single: bool) -> RunResult {
        let mut times = Times { dt: grid.dt, known: Vec::new() };
        let series = records.series.into_iter().zip(self.series);
        let trains = records.trains.into_iter().zip(self.trains);
        RunResult {
            series: series.map(|(record, values)| series_of(record, values, &mut times, single)).collect(),
            spikes: trains.map(|(train, events)| train_of(train, events, grid.dt)).collect(),
            meta: Map::new(),
        }
    }
}

impl Sink for Memory {
    fn row(&mut self, record: usize, _step: u64, values: &[f64]) -> Result<(), SinkError> {
        self.series[record].extend_from_slice(values);
        Ok(())
    }

    fn spike(&mut self, train: usize, step: u64, cell: u64) -> Result<(), SinkError> {
        self.trains[train].steps.push(step);
        self.trains[train].cells.push(cell);
        Ok(())
    }
}

/// Sample times, which series share.
struct Times {
    dt: f64,
    known: Vec<Clock>,
}

/// The times of so many samples, so many steps apart.
struct Clock {
    every: u64,
    rows: usize,
    times: Arc<Vec<f64>>,
}

impl Times {
    fn of(&mut self, every: u64, rows: usize) -> Arc<Vec<f64>> {
        if let Some(clock) = self.known.iter().find(|clock| (clock.every, clock.rows) == (every, rows)) {
            return Arc::clone(&clock.times);
        }
        let times: Arc<Vec<f64>> = Arc::new((0..rows as u64).map(|i| (i * every) as f64 * self.dt).collect());
        self.known.push(Clock { every, rows, times: Arc::clone(&times) });
        times
    }
}

fn series_of(record: Record, values: Vec<f64>, times: &mut Times, single: bool) -> Series {
    let (rows, columns) = (values.len() / record.cells.len().max(1), record.cells.len());
    let shown = |x: f64| if record.unit.exponent == 0 { x } else { record.unit.show(x) };
    let values = if single {
        let values = values.iter().map(|&x| shown(x) as f32).collect();
        Samples::F32(Array2::from_shape_vec((rows, columns), values).unwrap_or_default())
    } else {
        let values = values.iter().map(|&x| shown(x)).collect();
        Samples::F64(Array2::from_shape_vec((rows, columns), values).unwrap_or_default())
    };
    Series { name: record.name, unit: record.unit.name, t: times.of(record.every, rows), values }
}

fn train_of(train: Train, events: Events, dt: f64) -> SpikeTrain {
    SpikeTrain {
        population: train.population,
        cells: train.cells,
        t: events.steps.into_iter().map(|step| (step + 1) as f64 * dt).collect(),
        i: events.cells,
    }
}
