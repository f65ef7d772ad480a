//! Panels with the rate of a population.
//!
//! A spike train, a time window and a bin width come in; out go spikes per second and cell for each bin, a vertical axis
//! and the drawing. A bin is never counted over a time that is not shown: a last one cut short is divided by what is left
//! of it, or joined with the one before where less than half is left.

use plotters_backend::DrawingBackend;

use crate::results::SpikeTrain;

use super::axis::{Axis, round_up};
use super::canvas::Canvas;
use super::figure::Frame;
use super::style;

/// The most bins a width is chosen for, and the most that one can be asked for.
const MOST_BINS: f64 = 200.0;
const MOST_BINS_ASKED_FOR: f64 = 100_000.0;

/// A population rate over time.
pub struct Rate {
    /// Bin width in ms.
    bin: f64,
    /// Where the bins start and the last one ends, in ms; one more than there are rates.
    edges: Vec<f64>,
    /// Spikes per second and cell.
    rates: Vec<f64>,
}

/// The number of the bin of a spike. Its time is that at which its step ends, so a bin has its end, not its beginning.
pub fn bin_of(t: f64, start: f64, bin: f64) -> usize {
    (((t - start) / bin - 1e-9).ceil() as usize).saturating_sub(1)
}

/// The spikes of the given cells (of all, if there are none) within a window: the numbers of their bins and of their cells. A spike where the window
/// begins is one of the bin before, unless there is none.
pub fn binned<'a>(
    train: &'a SpikeTrain,
    (begin, end): (f64, f64),
    bin: f64,
    cells: &'a [u64],
) -> impl Iterator<Item = (usize, usize)> + 'a {
    let least = if begin > 0.0 { begin + 1e-9 * bin } else { begin };
    let within = move |t: f64| (least..=end).contains(&t);
    let shown = move |(t, cell): &(&f64, &u64)| within(**t) && (cells.is_empty() || cells.contains(cell));
    let of = move |(t, cell): (&f64, &u64)| (bin_of(*t, begin, bin), *cell as usize);
    train.t.iter().zip(&train.i).filter(shown).map(of)
}

/// How many of the given cells, each of them named once (of all, if there are none), a train is of.
pub fn cells_of(train: &SpikeTrain, cells: &[u64]) -> usize {
    match cells {
        [] => train.cells,
        some => some.iter().filter(|&&cell| cell < train.cells as u64).count(),
    }
}

/// Why a bin width cannot be, if so.
pub fn unfit(bin: f64, window: (f64, f64)) -> Option<String> {
    let span = window.1 - window.0;
    let fits = bin > 0.0 && bin <= span && span / bin <= MOST_BINS_ASKED_FOR;
    (!fits)
        .then(|| format!("a bin of {bin} ms does not divide the {span} ms shown into 1 to {MOST_BINS_ASKED_FOR} bins"))
}

impl Rate {
    /// Counts the spikes of the given cells (all, if there are none) within the window; the error says why a bin width cannot be.
    pub fn new(train: &SpikeTrain, window: (f64, f64), bin: Option<f64>, cells: &[u64]) -> Result<Rate, String> {
        let span = window.1 - window.0;
        if let Some(why) = bin.and_then(|bin| unfit(bin, window)) {
            return Err(why);
        }
        let bin = bin.unwrap_or_else(|| round_up(span / MOST_BINS).max(1.0));
        let whole = (span / bin + 1e-9).floor();
        let rest = span - whole * bin;
        let count = if rest > 0.5 * bin || whole == 0.0 { whole + 1.0 } else { whole } as usize;
        let mut edges: Vec<f64> = (0..count).map(|k| window.0 + k as f64 * bin).collect();
        edges.push(window.1);
        let mut counts = vec![0u64; count];
        // The last bin may be longer than the others.
        for (at, _) in binned(train, window, bin, cells) {
            counts[at.min(count - 1)] += 1;
        }
        let of = cells_of(train, cells);
        let rate = |(k, n): (usize, &u64)| *n as f64 / of as f64 / (1e-3 * (edges[k + 1] - edges[k]));
        let rates = counts.iter().enumerate().map(rate).collect();
        Ok(Rate { bin, edges, rates })
    }

    pub fn heading(&self, population: &str) -> String {
        format!("{population} · rate per cell in bins of {} ms", self.bin)
    }

    /// Spikes per second and cell, bin by bin.
    #[cfg(test)]
    pub fn rates(&self) -> &[f64] {
        &self.rates
    }

    pub fn axis(&self, height: f64) -> Axis {
        let highest = self.rates.iter().copied().fold(0.0, f64::max);
        let high = if highest > 0.0 { 1.08 * highest } else { 1.0 };
        Axis::exact(0.0, high, (height / 32.0).clamp(3.0, 6.0) as usize)
    }

    pub fn draw<DB: DrawingBackend>(&self, canvas: &mut Canvas<DB>, frame: &Frame<'_>) -> Result<(), String> {
        bars(canvas, frame, &self.edges, &self.rates)
    }
}

/// Bars between edges, with an outline.
pub fn bars<DB: DrawingBackend>(
    canvas: &mut Canvas<DB>,
    frame: &Frame<'_>,
    edges: &[f64],
    heights: &[f64],
) -> Result<(), String> {
    let mut outline = Vec::with_capacity(2 * heights.len());
    for (edges, &height) in edges.windows(2).zip(heights) {
        let (left, right) = (frame.point(edges[0], height), frame.point(edges[1], height));
        if height > 0.0 {
            // Half a pixel wider, or the background shines through between bars; the outline covers it.
            let over = (right.0 + 0.5).min(frame.right);
            canvas.fill(left, (over, frame.bottom), style::RATE_FILL)?;
        }
        outline.extend([left, right]);
    }
    canvas.line(&outline, style::RATE, style::LINE_WIDTH)
}
