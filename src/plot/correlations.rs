//! Panels with the correlations between cells.
//!
//! A spike train, a time window and a bin width come in; out go the coefficients of correlation (Pearson's) of the numbers of spikes that pairs of cells have
//! in the bins, and a histogram of them. A pair is never counted twice, and a cell without spikes, which has no coefficient, is in none.

use crate::results::{SpikeTrain, spread};

use super::histogram::Histogram;
use super::rates::binned;
use super::style::few;

/// Of more cells with spikes, so many from the first to the last are looked at.
const MOST_CELLS: usize = 200;

/// The coefficients of the pairs of a population.
pub struct Correlations {
    /// Bin width in ms.
    bin: f64,
    /// Cells that were looked at, of so many that spike.
    cells: (usize, usize),
    pub histogram: Histogram,
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
        Correlations { bin, cells: of, histogram: Histogram::new(all) }
    }

    pub fn heading(&self, population: &str) -> String {
        let Some((mean, spread)) = self.histogram.mean_and_deviation() else {
            return format!("{population} · no two cells with spikes");
        };
        let of = match self.cells {
            (n, all) if n < all => format!("{n} of {all} cells with spikes"),
            (n, _) => format!("{n} cells with spikes"),
        };
        let (pairs, bin) = (self.histogram.all.len(), self.bin);
        format!(
            "{population} · {pairs} pairs of {of}, bins of {bin} ms: mean {}, standard deviation {}",
            few(mean),
            few(spread)
        )
    }
}
