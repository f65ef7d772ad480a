//! Histograms: how many numbers lie in each of some bins.
//!
//! Numbers and a range come in; out go bins of a round width, their counts, a vertical axis and the drawing, and what the numbers have in common.
//! Never true here: a number is in two bins, or in none.

use plotters_backend::DrawingBackend;

use super::axis::{Axis, round_up};
use super::canvas::Canvas;
use super::figure::Frame;
use super::rates::bars;

/// The most bins.
const MOST_BINS: f64 = 100.0;

/// Some numbers, and how many of them are in each bin.
pub struct Histogram {
    pub all: Vec<f64>,
    edges: Vec<f64>,
    counts: Vec<f64>,
}

impl Histogram {
    /// Without bins.
    pub fn new(all: Vec<f64>) -> Histogram {
        Histogram { all, edges: Vec::new(), counts: Vec::new() }
    }

    /// The least and the largest number.
    pub fn range(&self) -> Option<(f64, f64)> {
        let low = self.all.iter().copied().reduce(f64::min)?;
        Some((low, self.all.iter().copied().reduce(f64::max)?))
    }

    /// Counts them in bins over a range that has all of them.
    pub fn count(&mut self, (low, high): (f64, f64)) {
        let bin = round_up((high - low) / MOST_BINS);
        let bins = ((high - low) / bin + 1e-9).ceil().max(1.0) as usize;
        self.edges = (0..=bins).map(|k| (low + k as f64 * bin).min(high)).collect();
        self.counts = vec![0.0; bins];
        for x in &self.all {
            self.counts[(((x - low) / bin) as usize).min(bins - 1)] += 1.0;
        }
    }

    /// The mean, and the standard deviation.
    pub fn mean_and_deviation(&self) -> Option<(f64, f64)> {
        let count = self.all.len() as f64;
        let mean = self.all.iter().sum::<f64>() / count;
        let variance = self.all.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / count;
        (count > 0.0).then(|| (mean, variance.sqrt()))
    }

    pub fn axis(&self, height: f64) -> Axis {
        let highest = self.counts.iter().copied().fold(1.0, f64::max);
        Axis::exact(0.0, 1.08 * highest, (height / 32.0).clamp(3.0, 6.0) as usize)
    }

    /// Draws the bins, or says that there is nothing.
    pub fn draw<DB: DrawingBackend>(
        &self,
        canvas: &mut Canvas<DB>,
        frame: &Frame<'_>,
        nothing: &str,
    ) -> Result<(), String> {
        if self.all.is_empty() {
            return frame.say(canvas, nothing);
        }
        bars(canvas, frame, &self.edges, &self.counts)
    }
}
