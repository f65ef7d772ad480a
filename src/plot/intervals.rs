//! Panels with the intervals between spikes.
//!
//! A spike train and a time window come in; out go a histogram of the times from each spike of a cell to its next one, and what it says in numbers. An interval is never one between the spikes of different cells.

use crate::results::{ROUNDED_CV, SpikeTrain};

use super::histogram::Histogram;
use super::style::few;

/// The intervals between the spikes of cells, in ms, and their coefficient of variation.
pub struct Intervals {
    /// Those of all cells.
    pub histogram: Histogram,
    /// The mean over the cells with two intervals and more.
    cv: Option<f64>,
}

impl Intervals {
    /// Those that lie within a time window, of the given cells (all, if there are none).
    pub fn new(train: &SpikeTrain, window: (f64, f64), cells: &[u64]) -> Intervals {
        let mut last = vec![None; train.cells];
        let mut of_cells = vec![Vec::new(); train.cells];
        for (&t, &cell) in train.t.iter().zip(&train.i) {
            let shown = cells.is_empty() || cells.contains(&cell);
            if let (Some(last), Some(own)) = (last.get_mut(cell as usize), of_cells.get_mut(cell as usize))
                && shown
                && (window.0..=window.1).contains(&t)
            {
                own.extend(last.replace(t).map(|before: f64| t - before));
            }
        }
        let variations: Vec<f64> = of_cells.iter().filter_map(|intervals| variation(intervals)).collect();
        let cv = (!variations.is_empty()).then(|| variations.iter().sum::<f64>() / variations.len() as f64);
        Intervals { histogram: Histogram::new(of_cells.concat()), cv }
    }

    pub fn heading(&self, population: &str) -> String {
        match (self.histogram.mean_and_deviation(), self.histogram.all.len()) {
            (None, _) => format!("{population} · no cell spikes twice"),
            (Some((mean, _)), 1) => format!("{population} · one interval of {} ms", few(mean)),
            (Some((mean, _)), count) => {
                let cv = self.cv.map_or(String::new(), |cv| format!(", CV {}", few(cv)));
                format!("{population} · {count} intervals, mean {} ms{cv}", few(mean))
            }
        }
    }
}

/// The coefficient of variation of the intervals of a cell, if there are two of them and more; what their rounding leaves is nothing.
fn variation(intervals: &[f64]) -> Option<f64> {
    let count = intervals.len() as f64;
    let mean = intervals.iter().sum::<f64>() / count;
    let squares: f64 = intervals.iter().map(|x| (x - mean).powi(2)).sum();
    let cv = (squares / count).sqrt() / mean;
    (intervals.len() > 1 && cv.is_finite()).then_some(if cv < ROUNDED_CV { 0.0 } else { cv })
}
