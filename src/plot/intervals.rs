//! Panels with the intervals between spikes.
//!
//! A spike train and a time window come in; out go a histogram of the times from each spike of a cell to its next one, what it says in numbers, a
//! vertical axis and the drawing. An interval is never one between the spikes of different cells.

use plotters_backend::DrawingBackend;

use crate::results::SpikeTrain;

use super::axis::{Axis, round_up};
use super::canvas::Canvas;
use super::figure::Frame;
use super::rates::bars;
use super::style::few;

/// The most bins.
const MOST_BINS: f64 = 100.0;

/// The intervals between the spikes of cells, in ms.
pub struct Intervals {
    all: Vec<f64>,
    edges: Vec<f64>,
    counts: Vec<f64>,
}

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
        Intervals { all, edges: Vec::new(), counts: Vec::new() }
    }

    /// The longest one.
    pub fn longest(&self) -> Option<f64> {
        self.all.iter().copied().reduce(f64::max)
    }

    /// Counts them in bins up to a longest interval.
    pub fn count(&mut self, longest: f64) {
        let bin = round_up(longest / MOST_BINS);
        let bins = (longest / bin + 1e-9).ceil().max(1.0) as usize;
        self.edges = (0..=bins).map(|k| (k as f64 * bin).min(longest)).collect();
        self.counts = vec![0.0; bins];
        for interval in &self.all {
            self.counts[((interval / bin) as usize).min(bins - 1)] += 1.0;
        }
    }

    /// The mean in ms, and the standard deviation in means.
    pub fn mean_and_cv(&self) -> Option<(f64, f64)> {
        let count = self.all.len() as f64;
        let mean = self.all.iter().sum::<f64>() / count;
        let variance = self.all.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / count;
        (count > 0.0).then(|| (mean, variance.sqrt() / mean))
    }

    pub fn heading(&self, population: &str) -> String {
        match (self.mean_and_cv(), self.all.len()) {
            (None, _) => format!("{population} · no cell spikes twice"),
            (Some((mean, _)), 1) => format!("{population} · one interval of {} ms", few(mean)),
            (Some((mean, cv)), count) => {
                format!("{population} · {count} intervals, mean {} ms, CV {}", few(mean), few(cv))
            }
        }
    }

    pub fn axis(&self, height: f64) -> Axis {
        let highest = self.counts.iter().copied().fold(1.0, f64::max);
        Axis::exact(0.0, 1.08 * highest, (height / 32.0).clamp(3.0, 6.0) as usize)
    }

    pub fn draw<DB: DrawingBackend>(&self, canvas: &mut Canvas<DB>, frame: &Frame<'_>) -> Result<(), String> {
        if self.all.is_empty() {
            return frame.say(canvas, "no intervals");
        }
        bars(canvas, frame, &self.edges, &self.counts)
    }
}
