//! What several runs have of one recorded thing, side by side.
//!
//! In come results of runs that recorded the same; out go quantities, traces or spikes, and how the distance of two runs adds up from
//! row to row.
//! Never true here: a distance is judged.
//!
//! Distances add up over time, as the area between two traces does, and are the mean over cells. Where a trace leaps, as it does at
//! spikes, the area falls with the step like everything else; the largest difference does not.

use crate::results::{RunResult, Samples, SpikeTrain};
use std::collections::{BTreeMap, BTreeSet};

/// What a quantity is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A recorded variable: a row for each sample.
    Trace,
    /// The spikes of a population: a row for each spike of the first run, and one for the end.
    Spikes,
}

/// What runs have of one recorded thing.
pub struct Quantity<'r> {
    /// The variable, or the population.
    pub name: String,
    /// Its unit; ms for spikes.
    pub unit: String,
    /// What it is.
    pub kind: Kind,
    /// The time of each row, in ms.
    pub t: Vec<f64>,
    /// Its largest value in the first run; 0 for spikes.
    pub largest: f64,
    /// How far it moves in the first run, in the cell where it moves most; for spikes, the mean interval.
    pub range: f64,
    /// How far it is from its mean over time, on average over time and cells; for spikes, the mean interval.
    pub spread: f64,
    /// The distance between two runs, in one row, if one cell leaps in one of them, or spikes, and not in the other.
    pub leap: f64,
    runs: Runs<'r>,
}

/// The numbers of each run.
enum Runs<'r> {
    Samples(Vec<&'r Samples>),
    /// The times (ms) of each cell's spikes, in their order; and how far two spikes can be apart at most.
    Times(Vec<Cells>, f64),
}

type Cells = BTreeMap<u64, Vec<f64>>;

/// What runs have recorded, in its order: variables, then spikes. A run lasts for `duration` ms.
pub fn quantities<'r>(runs: &[&'r RunResult], duration: f64) -> Vec<Quantity<'r>> {
    let Some(first) = runs.first() else { return Vec::new() };
    let traces = (0..first.series.len()).map(|at| trace(runs, at));
    traces.chain((0..first.spikes.len()).map(|at| spikes(runs, at, duration))).collect()
}

fn trace<'r>(runs: &[&'r RunResult], at: usize) -> Quantity<'r> {
    let first = &runs[0].series[at];
    let (rows, columns) = first.values.shape();
    let value = |r: usize, c: usize| first.values.get(r, c);
    let (mut largest, mut range, mut spread, mut leap) = (0.0f64, 0.0f64, 0.0, 0.0f64);
    for c in 0..columns {
        let mean = (0..rows).map(|r| value(r, c)).sum::<f64>() / rows.max(1) as f64;
        let most = (0..rows).map(|r| value(r, c)).fold(f64::NEG_INFINITY, f64::max);
        let least = (0..rows).map(|r| value(r, c)).fold(f64::INFINITY, f64::min);
        largest = largest.max(most).max(-least);
        range = range.max(most - least);
        spread += (0..rows).map(|r| (value(r, c) - mean).abs()).sum::<f64>() / (rows * columns).max(1) as f64;
        leap = (1..rows).map(|r| (value(r, c) - value(r - 1, c)).abs()).fold(leap, f64::max);
    }
    Quantity {
        name: first.name.clone(),
        unit: first.unit.clone(),
        kind: Kind::Trace,
        t: first.t.to_vec(),
        largest,
        range,
        spread,
        leap: leap / columns.max(1) as f64,
        runs: Runs::Samples(runs.iter().map(|run| &run.series[at].values).collect()),
    }
}

fn spikes<'r>(runs: &[&'r RunResult], at: usize, duration: f64) -> Quantity<'r> {
    let trains: Vec<Cells> = runs.iter().map(|run| by_cell(&run.spikes[at])).collect();
    let first = &runs[0].spikes[at];
    let mut t = first.t.clone();
    t.sort_by(f64::total_cmp);
    t.push(duration);
    let interval = duration * trains[0].len().max(1) as f64 / first.t.len().max(1) as f64;
    // A spike that another run lacks is as far from it as spikes are from each other.
    let most = interval.min(duration / 10.0);
    Quantity {
        name: first.population.clone(),
        unit: "ms".into(),
        kind: Kind::Spikes,
        t,
        largest: 0.0,
        range: interval,
        spread: interval,
        leap: most,
        runs: Runs::Times(trains, most),
    }
}

fn by_cell(train: &SpikeTrain) -> Cells {
    let mut cells = Cells::new();
    for (&cell, &t) in train.i.iter().zip(&train.t) {
        cells.entry(cell).or_default().push(t);
    }
    cells.values_mut().for_each(|times| times.sort_by(f64::total_cmp));
    cells
}

/// How two runs go apart.
pub struct Distance {
    /// The distances until each row, added up; infinite from a NaN on.
    pub sum: Vec<f64>,
    /// The largest one of any cell until each row.
    pub most: Vec<f64>,
}

impl Distance {
    /// From the mean and the largest distance of each row.
    fn new(rows: impl Iterator<Item = (f64, f64)>) -> Distance {
        let mut distance = Distance { sum: Vec::new(), most: Vec::new() };
        let (mut sum, mut most) = (0.0, 0.0f64);
        for (mean, largest) in rows {
            sum += mean;
            most = most.max(largest);
            distance.sum.push(sum);
            distance.most.push(most);
        }
        distance
    }
}

/// Spikes that one of two runs has and the other has not.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Missing {
    /// How many at least.
    pub count: usize,
    /// How many spikes each run has in the cells that differ.
    pub spikes: [usize; 2],
    /// The first of them, in ms.
    pub since: f64,
}

impl Quantity<'_> {
    /// Which spikes are missing in one of two runs. What is within `margin` ms of the end may have come later in the other run.
    pub fn missing(&self, a: usize, b: usize, margin: f64) -> Option<Missing> {
        let Runs::Times(runs, most) = &self.runs else { return None };
        let end = self.t.last().copied().unwrap_or(0.0) - margin;
        let mut found: Option<Missing> = None;
        let cells: BTreeSet<u64> = runs[a].keys().chain(runs[b].keys()).copied().collect();
        for cell in cells {
            let [a, b] = [a, b].map(|run| runs[run].get(&cell).map_or(&[][..], Vec::as_slice));
            let before = |times: &[f64]| times.partition_point(|&t| t < end);
            let count = before(a).saturating_sub(b.len()).max(before(b).saturating_sub(a.len()));
            if count == 0 {
                continue;
            }
            let differs = |at: &usize| match (a.get(*at), b.get(*at)) {
                (Some(a), Some(b)) => (a - b).abs() >= *most,
                (None, _) | (_, None) => true,
            };
            let first = (0..a.len().max(b.len())).find(differs).unwrap_or(0);
            let at = |times: &[f64]| times.get(first).copied().unwrap_or(f64::INFINITY);
            let since = at(a).min(at(b));
            let so_far = found.unwrap_or(Missing { count: 0, spikes: [0; 2], since });
            found = Some(Missing {
                count: so_far.count + count,
                spikes: [so_far.spikes[0] + a.len(), so_far.spikes[1] + b.len()],
                since: so_far.since.min(since),
            });
        }
        found
    }

    /// How two of the runs go apart.
    pub fn distance(&self, a: usize, b: usize) -> Distance {
        match &self.runs {
            Runs::Samples(runs) => {
                let columns = runs[a].shape().1;
                let row = |r: usize| {
                    let apart = (0..columns).map(|c| apart(runs[a].get(r, c), runs[b].get(r, c)));
                    let (sum, most) = apart.fold((0.0, 0.0f64), |(sum, most), x| (sum + x, most.max(x)));
                    (sum / columns.max(1) as f64, most)
                };
                Distance::new((0..self.t.len()).map(row))
            }
            Runs::Times(runs, most) => {
                let mut all = shifts(&runs[a], &runs[b], *most);
                all.extend(shifts(&runs[b], &runs[a], *most));
                all.sort_by(|x, y| x.0.total_cmp(&y.0));
                let mut all = all.into_iter().peekable();
                Distance::new(self.t.iter().map(|&t| {
                    let (mut sum, mut most) = (0.0, 0.0f64);
                    while let Some((_, shift)) = all.next_if(|&(at, _)| at <= t) {
                        // Each pair is met from both sides.
                        sum += shift / 2.0;
                        most = most.max(shift);
                    }
                    (sum, most)
                }))
            }
        }
    }
}

fn apart(a: f64, b: f64) -> f64 {
    let apart = (a - b).abs();
    if apart.is_nan() { f64::INFINITY } else { apart }
}

/// The time of each spike, and how far the nearest spike of the same cell in the other run is.
fn shifts(of: &Cells, from: &Cells, most: f64) -> Vec<(f64, f64)> {
    let near = |cell: &u64, t: f64| {
        let Some(others) = from.get(cell) else { return most };
        let after = others.partition_point(|&other| other < t);
        let neighbours = &others[after.saturating_sub(1)..others.len().min(after + 1)];
        neighbours.iter().map(|&other| (t - other).abs()).fold(most, f64::min)
    };
    of.iter().flat_map(|(cell, times)| times.iter().map(move |&t| (t, near(cell, t)))).collect()
}
