//! Compares runs of one model: engines, methods, time steps, and states that were moved.
//!
//! In come the results of runs that recorded the same; out go how far they are apart, and what that means.
//! Never true here: something is run, or shown to anybody.
//!
//! How far two runs are apart is a table of [`Differences`]. What it means is decided in [`judge`], by what a numerical
//! analyst would ask:
//!
//! - **Does the method converge?** The step is halved twice. The differences must fall, in the linear regime: while they are
//!   small beside what the quantity does at all.
//! - **To the solution?** Another method goes to the same limit, whatever its order. Where two methods have settled (halving their
//!   steps changes little) and are still apart, no step is at fault.
//! - **How sensitive is the model?** What becomes of states that are moved by
//!   [`MOVED`](crate::engine::moved::MOVED) is no fault of anything, and neither is what becomes of an engine's rounding.

pub mod judge;
mod quantity;

#[cfg(test)]
mod tests;

pub use quantity::Kind;

use crate::results::{RunResult, Series, SpikeTrain};

/// How a run differs from another one.
#[derive(Debug, Clone, PartialEq)]
pub struct Differences {
    /// For each recorded variable.
    pub variables: Vec<Difference>,
    /// For each population whose spikes are recorded.
    pub spikes: Vec<Shift>,
}

/// How a variable differs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Difference {
    /// The largest difference, in the variable's unit; NaN where a value is.
    pub apart: f64,
    /// The same as part of the variable's largest value.
    pub part: f64,
}

/// How spikes differ.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Shift {
    /// The same number in every cell; how far the most distant pair is apart, in ms.
    By(f64),
    /// Not the same number in some cell: how many there are.
    Count(usize),
}

/// How `found` differs from `expected`.
pub fn differences(expected: &RunResult, found: &RunResult) -> Differences {
    Differences {
        variables: expected.series.iter().zip(&found.series).map(|(e, f)| difference(e, f)).collect(),
        spikes: expected.spikes.iter().zip(&found.spikes).map(|(e, f)| shift(e, f)).collect(),
    }
}

fn difference(expected: &Series, found: &Series) -> Difference {
    let (rows, columns) = expected.values.shape();
    let (mut largest, mut apart) = (0.0f64, 0.0f64);
    for (row, column) in (0..rows).flat_map(|row| (0..columns).map(move |column| (row, column))) {
        let (e, f) = (expected.values.get(row, column), found.values.get(row, column));
        largest = largest.max(e.abs());
        // `max` would lose a NaN.
        apart = if (e - f).abs() > apart || (e - f).is_nan() { (e - f).abs() } else { apart };
    }
    Difference { apart, part: if apart == 0.0 { 0.0 } else { apart / largest } }
}

/// The spikes of each cell, one after the other, compared in pairs.
fn shift(expected: &SpikeTrain, found: &SpikeTrain) -> Shift {
    let sorted = |train: &SpikeTrain| {
        let mut spikes: Vec<(u64, f64)> = train.i.iter().copied().zip(train.t.iter().copied()).collect();
        spikes.sort_by(|a, b| a.0.cmp(&b.0).then(a.1.total_cmp(&b.1)));
        spikes
    };
    let (expected, found) = (sorted(expected), sorted(found));
    if expected.len() != found.len() || expected.iter().zip(&found).any(|(e, f)| e.0 != f.0) {
        return Shift::Count(found.len());
    }
    Shift::By(expected.iter().zip(&found).map(|(e, f)| (e.1 - f.1).abs()).fold(0.0, f64::max))
}
