//! Panels with the intervals between spikes.
//!
//! A spike train and a time window come in; out go a histogram of the times from each spike of a cell to its next one, and what it says in numbers. An interval is never one between the spikes of different cells.

use crate::results::SpikeTrain;

use super::histogram::Histogram;
use super::style::few;

/// The intervals between the spikes of cells, in ms.
pub struct Intervals(pub Histogram);

impl Intervals {
    /// Those that lie within a time window, of the given cells (all, if there are none).
    pub fn new(train: &SpikeTrain, window: (f64, f64), cells: &[u64]) -> Intervals {
        let mut last = vec![None; train.cells];
        let mut all = Vec::new();
        for (&t, &cell) in train.t.iter().zip(&train.i) {
            let shown = cells.is_empty() || cells.contains(&cell);
            if let Some(last) = last.get_mut(cell as usize)
                && shown
                && (window.0..=window.1).contains(&t)
            {
                all.extend(last.replace(t).map(|before: f64| t - before));
            }
        }
        Intervals(Histogram::new(all))
    }

    pub fn heading(&self, population: &str) -> String {
        match (self.0.mean_and_deviation(), self.0.all.len()) {
            (None, _) => format!("{population} · no cell spikes twice"),
            (Some((mean, _)), 1) => format!("{population} · one interval of {} ms", few(mean)),
            (Some((mean, deviation)), count) => {
                format!("{population} · {count} intervals, mean {} ms, CV {}", few(mean), few(deviation / mean))
            }
        }
    }
}
