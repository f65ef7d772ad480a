//! Panels with the correlations between cells.
//!
//! A spike train, a time window and a bin width come in; out go the coefficients of correlation (Pearson's) of the numbers of spikes that pairs of cells have
//! in the bins, a histogram of them, a vertical axis and the drawing. A pair is never counted twice, and a cell without spikes, which has no coefficient, is in none.

use plotters_backend::DrawingBackend;

use crate::results::{SpikeTrain, spread};

use super::axis::{Axis, round_up};
use super::canvas::Canvas;
use super::figure::Frame;
use super::rates::{bars, binned};
use super::style::few;

/// Of more cells with spikes, so many from the first to the last are looked at.
const MOST_CELLS: usize = 200;
/// The most bins of the histogram.
const MOST_BINS: f64 = 100.0;

/// The coefficients of the pairs of a population.
pub struct Correlations {
    /// Bin width in ms.
    bin: f64,
    /// Cells that were looked at, of so many that spike.
    cells: (usize, usize),
    all: Vec<f64>,
    edges: Vec<f64>,
    counts: Vec<f64>,
}

impl Correlations {
    /// Of the given cells (all, if there are none), within a window that is cut into whole bins.
    pub fn new(train: &SpikeTrain, window: (f64, f64), bin: f64, cells: &[u64]) -> Correlations {
        let bins = ((window.1 - window.0) / bin + 1e-9).floor().max(1.0) as usize;
        let mut spikes: Vec<Vec<usize>> = vec![Vec::new(); train.cells];
        for (at, cell) in binned(train, window, bin, cells).filter(|(at, _)| *at < bins) {
            spikes[cell].push(at);
        }
        spikes.retain(|own| !own.is_empty());
        let chosen = spread(spikes.len(), MOST_CELLS);
        let of = (chosen.len(), spikes.len());
        // A bin has few spikes: sums go over what is there, not over all bins.
        let mut counted: Vec<(usize, usize)> =
            chosen.iter().enumerate().flat_map(|(k, &cell)| spikes[cell].iter().map(move |&bin| (bin, k))).collect();
        counted.sort_unstable();
        let n = chosen.len();
        let mut products = vec![0u64; n * n];
        for together in counted.chunk_by(|a, b| a.0 == b.0) {
            for (_, a) in together {
                for (_, b) in together {
                    products[a * n + b] += 1;
                }
            }
        }
        let mean: Vec<f64> = chosen.iter().map(|&cell| spikes[cell].len() as f64 / bins as f64).collect();
        let covariance = |a: usize, b: usize| products[a * n + b] as f64 / bins as f64 - mean[a] * mean[b];
        let coefficient = |a: usize, b: usize| covariance(a, b) / (covariance(a, a) * covariance(b, b)).sqrt();
        // As many spikes in every bin vary with nothing.
        let varies: Vec<usize> = (0..n).filter(|&a| covariance(a, a) > 1e-12 * mean[a] * mean[a]).collect();
        let pairs = varies.iter().enumerate().flat_map(|(k, &a)| varies[..k].iter().map(move |&b| (b, a)));
        let all = pairs.map(|(a, b)| coefficient(a, b)).collect();
        Correlations { bin, cells: of, all, edges: Vec::new(), counts: Vec::new() }
    }

    /// The least and the largest coefficient.
    pub fn range(&self) -> Option<(f64, f64)> {
        let low = self.all.iter().copied().reduce(f64::min)?;
        Some((low, self.all.iter().copied().reduce(f64::max)?))
    }

    /// Counts them in bins over a range.
    pub fn count(&mut self, (low, high): (f64, f64)) {
        let bin = round_up((high - low) / MOST_BINS);
        let bins = ((high - low) / bin + 1e-9).ceil().max(1.0) as usize;
        self.edges = (0..=bins).map(|k| (low + k as f64 * bin).min(high)).collect();
        self.counts = vec![0.0; bins];
        for r in &self.all {
            self.counts[(((r - low) / bin) as usize).min(bins - 1)] += 1.0;
        }
    }

    /// The mean of all, and their standard deviation.
    pub fn mean_and_spread(&self) -> Option<(f64, f64)> {
        let count = self.all.len() as f64;
        let mean = self.all.iter().sum::<f64>() / count;
        let variance = self.all.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / count;
        (count > 0.0).then(|| (mean, variance.sqrt()))
    }

    pub fn heading(&self, population: &str) -> String {
        let Some((mean, spread)) = self.mean_and_spread() else {
            return format!("{population} · no two cells with spikes");
        };
        let of = match self.cells {
            (n, all) if n < all => format!("{n} of {all} cells with spikes"),
            (n, _) => format!("{n} cells with spikes"),
        };
        let (pairs, bin) = (self.all.len(), self.bin);
        format!(
            "{population} · {pairs} pairs of {of}, bins of {bin} ms: mean {}, standard deviation {}",
            few(mean),
            few(spread)
        )
    }

    pub fn axis(&self, height: f64) -> Axis {
        let highest = self.counts.iter().copied().fold(1.0, f64::max);
        Axis::exact(0.0, 1.08 * highest, (height / 32.0).clamp(3.0, 6.0) as usize)
    }

    pub fn draw<DB: DrawingBackend>(&self, canvas: &mut Canvas<DB>, frame: &Frame<'_>) -> Result<(), String> {
        if self.all.is_empty() {
            return frame.say(canvas, "no pairs");
        }
        bars(canvas, frame, &self.edges, &self.counts)
    }
}
