//! Panels with spectra.
//!
//! The rate of a population or what was recorded, with a time window and a bin width, comes in; out goes its power over frequencies, by Welch's method: of
//! halves that overlap, each less its mean and under Hann's window. The power of all frequencies together is the variance. A value that is not a
//! number is in no spectrum.

use plotters_backend::DrawingBackend;
use rustfft::{FftPlanner, num_complex::Complex};

use crate::results::{Series, SpikeTrain};

use super::axis::Axis;
use super::canvas::Canvas;
use super::figure::Frame;
use super::rates::{binned, cells_of};
use super::style::{self, few};

/// Fewer bins than this have no spectrum.
const LEAST_BINS: usize = 16;
/// So many pieces at least, which overlap by half, are averaged over.
const PIECES: usize = 8;

/// Power over frequencies.
pub struct Spectrum {
    /// Bin width in ms.
    bin: f64,
    /// How long a piece is, in bins.
    piece: usize,
    /// The square of this per hertz.
    unit: String,
    /// Frequency in Hz, and power.
    points: Vec<(f64, f64)>,
}

/// Do samples follow each other at equal distances, but for their rounding?
pub fn is_even(t: &[f64]) -> bool {
    let gaps = || t.windows(2).map(|pair| pair[1] - pair[0]);
    gaps().fold(0.0, f64::max) <= 1.5 * gaps().fold(f64::INFINITY, f64::min)
}

impl Spectrum {
    /// Of the rate of the given cells (all, if there are none) in spikes per second and cell; `None` if the window is too short.
    pub fn of_spikes(train: &SpikeTrain, window: (f64, f64), bin: f64, cells: &[u64]) -> Option<Spectrum> {
        let bins = whole_bins(window, bin)?;
        let mut rate = vec![0.0; bins];
        let each = 1e3 / bin / cells_of(train, cells).max(1) as f64;
        for (at, _) in binned(train, window, bin, cells).filter(|(at, _)| *at < bins) {
            rate[at] += each;
        }
        Spectrum::of(&[rate], bin, "spikes/s")
    }

    /// Of what was recorded, the mean of the spectra of its columns. A bin that is shorter than the way between samples becomes as long.
    pub fn of_series(series: &Series, window: (f64, f64), bin: f64, cells: &[u64]) -> Option<Spectrum> {
        let (first, last) = (series.t.first()?, series.t.last()?);
        let window = (window.0.max(*first), window.1.min(*last));
        let gap = series.t.windows(2).map(|pair| pair[1] - pair[0]).fold(0.0, f64::max);
        let bin = bin.max(gap * (1.0 + 1e-9));
        let bins = whole_bins(window, bin)?;
        let (rows, width) = series.values.shape();
        let wanted =
            |column: &usize| cells.is_empty() || series.cells.get(*column).is_some_and(|cell| cells.contains(cell));
        let binned = |column: usize| {
            let (mut sums, mut counts) = (vec![0.0; bins], vec![0.0; bins]);
            for row in 0..rows {
                let at = (series.t[row] - window.0) / bin;
                if at >= 0.0 && (at as usize) < bins {
                    sums[at as usize] += series.values.get(row, column);
                    counts[at as usize] += 1.0;
                }
            }
            let means: Vec<f64> = sums.iter().zip(&counts).map(|(sum, count)| sum / count).collect();
            means.iter().all(|x| x.is_finite()).then_some(means)
        };
        let columns: Vec<Vec<f64>> = (0..width).filter(wanted).filter_map(binned).collect();
        Spectrum::of(&columns, bin, &style::unit(&series.unit))
    }

    fn of(signals: &[Vec<f64>], bin: f64, unit: &str) -> Option<Spectrum> {
        let bins = signals.first()?.len();
        // The largest power of two of which enough pieces fit in.
        let piece = 1usize << (2 * bins / (PIECES + 1)).max(LEAST_BINS / 2).ilog2();
        let hann: Vec<f64> =
            (0..piece).map(|k| 0.5 - 0.5 * (2.0 * std::f64::consts::PI * k as f64 / piece as f64).cos()).collect();
        let per_second = 1e3 / bin;
        let scale = 1.0 / (per_second * hann.iter().map(|w| w * w).sum::<f64>());
        let fft = FftPlanner::new().plan_fft_forward(piece);
        let mut power = vec![0.0; piece / 2 + 1];
        let mut pieces = 0.0;
        for signal in signals {
            for part in (0..=bins - piece).step_by(piece / 2).map(|at| &signal[at..at + piece]) {
                let mean = part.iter().sum::<f64>() / piece as f64;
                let mut values: Vec<Complex<f64>> =
                    part.iter().zip(&hann).map(|(x, w)| Complex::new((x - mean) * w, 0.0)).collect();
                fft.process(&mut values);
                // Both signs of a frequency are one, but for those that have only one.
                for (k, power) in power.iter_mut().enumerate() {
                    let twice = if k == 0 || k == piece / 2 { 1.0 } else { 2.0 };
                    *power += twice * scale * values[k].norm_sqr();
                }
                pieces += 1.0;
            }
        }
        let frequency = |k: usize| k as f64 * per_second / piece as f64;
        // The mean, which was taken off, has no power.
        let points = power.iter().enumerate().skip(1).map(|(k, p)| (frequency(k), p / pieces)).collect();
        Some(Spectrum { bin, piece, unit: unit.to_owned(), points })
    }

    /// The highest frequency, in Hz.
    pub fn highest(&self) -> f64 {
        self.points.last().map_or(0.0, |p| p.0)
    }

    /// Frequency in Hz, and power.
    #[cfg(test)]
    pub fn points(&self) -> &[(f64, f64)] {
        &self.points
    }

    pub fn heading(&self, name: &str) -> String {
        let (frequency, most) = self.points.iter().fold((0.0, 0.0), |a, &p| if p.1 > a.1 { p } else { a });
        let (bin, piece) = (few(self.bin), few(self.bin * self.piece as f64));
        let peak = if most > 0.0 { format!("most at {} Hz", few(frequency)) } else { "none".to_owned() };
        format!("{name} · power in bins of {bin} ms and pieces of {piece} ms: {peak}")
    }

    pub fn label(&self, axis: &Axis) -> String {
        let unit = if self.unit == "1" { "1/Hz".to_owned() } else { format!("({})²/Hz", self.unit) };
        format!("power ({}{unit})", axis.factor())
    }

    pub fn axis(&self, height: f64) -> Axis {
        let most = self.points.iter().map(|p| p.1).fold(0.0, f64::max);
        let high = if most > 0.0 { 1.08 * most } else { 1.0 };
        Axis::exact(0.0, high, (height / 32.0).clamp(3.0, 6.0) as usize)
    }

    pub fn draw<DB: DrawingBackend>(&self, canvas: &mut Canvas<DB>, frame: &Frame<'_>) -> Result<(), String> {
        let points: Vec<(f64, f64)> = self.points.iter().map(|&(f, power)| frame.point(f, power)).collect();
        canvas.line(&points, style::LINES[0], style::LINE_WIDTH)
    }
}

/// How many whole bins a window has, if these are enough.
fn whole_bins(window: (f64, f64), bin: f64) -> Option<usize> {
    let bins = ((window.1 - window.0) / bin + 1e-9).floor();
    (bins >= LEAST_BINS as f64).then_some(bins as usize)
}
