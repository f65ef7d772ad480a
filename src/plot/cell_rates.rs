//! Panels with the rate of every cell: f-I curves.
//!
//! A spike train, a time window and a number for each cell come in; out go spikes per second over these numbers, a vertical axis and the drawing.
//! A cell that does not spike is never left out.

use plotters_backend::DrawingBackend;

use crate::results::SpikeTrain;

use super::axis::Axis;
use super::canvas::Canvas;
use super::figure::Frame;
use super::style;

/// Dots are drawn for this many cells at most; of more, the line says enough.
const MOST_DOTS: usize = 200;

/// Rates of cells over a number that each of them has.
pub struct CellRates {
    /// In the order of the numbers.
    points: Vec<(f64, f64)>,
}

impl CellRates {
    /// Counts the spikes of the given cells (all, if there are none) within a window; `of_cell` are the numbers of the cells.
    pub fn new(train: &SpikeTrain, window: (f64, f64), cells: &[u64], of_cell: &[f64]) -> CellRates {
        let mut counts = vec![0u64; train.cells];
        for (t, &cell) in train.t.iter().zip(&train.i) {
            if let Some(count) = counts.get_mut(cell as usize)
                && (window.0..=window.1).contains(t)
            {
                *count += 1;
            }
        }
        let seconds = 1e-3 * (window.1 - window.0);
        let shown = |&(cell, _): &(u64, &u64)| cells.is_empty() || cells.contains(&cell);
        let of = |(cell, &count): (u64, &u64)| Some((*of_cell.get(cell as usize)?, count as f64 / seconds));
        let mut points: Vec<(f64, f64)> = (0..).zip(&counts).filter(shown).filter_map(of).collect();
        points.sort_by(|a, b| a.0.total_cmp(&b.0));
        CellRates { points }
    }

    /// The least and the largest number.
    pub fn range(&self) -> Option<(f64, f64)> {
        Some((self.points.first()?.0, self.points.last()?.0))
    }

    pub fn heading(&self, population: &str) -> String {
        let rates = || self.points.iter().map(|p| p.1);
        let mean = rates().sum::<f64>() / self.points.len().max(1) as f64;
        let most = rates().fold(0.0, f64::max);
        let least = rates().fold(f64::INFINITY, f64::min).min(most);
        let count = self.points.len();
        let [mean, least, most] = [mean, least, most].map(style::few);
        format!("{population} · rates of {count} cells: mean {mean} spikes/s, from {least} to {most}")
    }

    pub fn axis(&self, height: f64) -> Axis {
        let highest = self.points.iter().map(|p| p.1).fold(0.0, f64::max);
        let high = if highest > 0.0 { 1.08 * highest } else { 1.0 };
        Axis::exact(0.0, high, (height / 32.0).clamp(3.0, 6.0) as usize)
    }

    pub fn draw<DB: DrawingBackend>(&self, canvas: &mut Canvas<DB>, frame: &Frame<'_>) -> Result<(), String> {
        let points: Vec<(f64, f64)> = self.points.iter().map(|&(x, rate)| frame.point(x, rate)).collect();
        canvas.line(&points, style::LINES[0], style::LINE_WIDTH)?;
        if points.len() <= MOST_DOTS {
            for &(x, y) in &points {
                canvas.fill((x - 2.5, y - 2.5), (x + 2.5, y + 2.5), style::LINES[0])?;
            }
        }
        Ok(())
    }
}
