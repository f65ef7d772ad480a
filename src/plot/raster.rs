//! Panels with one mark per spike, a row per cell.
//!
//! A spike train and a time window come in; out go a vertical axis and the drawing, cell 0 at the bottom. Spikes closer
//! than half a pixel share a mark, but a spike is never left out.

use std::collections::BTreeSet;

use plotters_backend::DrawingBackend;

use crate::results::SpikeTrain;

use super::axis::Axis;
use super::canvas::Canvas;
use super::figure::Frame;
use super::style;

/// The spikes of a population within the time shown.
pub struct Raster<'a> {
    population: &'a str,
    pub cells: usize,
    spikes: Vec<(f64, u64)>,
}

/// Half the width of a mark in pixels.
const HALF_WIDTH: f64 = 0.9;

impl<'a> Raster<'a> {
    pub fn new(train: &'a SpikeTrain, window: (f64, f64)) -> Raster<'a> {
        let spikes = train.t.iter().copied().zip(train.i.iter().copied());
        let spikes = spikes.filter(|(t, _)| (window.0..=window.1).contains(t)).collect();
        Raster { population: &train.population, cells: train.cells, spikes }
    }

    pub fn heading(&self) -> String {
        let plural = |n: usize| if n == 1 { "" } else { "s" };
        let (spikes, cells) = (self.spikes.len(), self.cells);
        format!("{} · {spikes} spike{} of {cells} cell{}", self.population, plural(spikes), plural(cells))
    }

    pub fn axis(&self, height: f64) -> Axis {
        Axis::rows(self.cells, (height / 30.0).clamp(2.0, 7.0) as usize)
    }

    pub fn draw<DB: DrawingBackend>(&self, canvas: &mut Canvas<DB>, frame: &Frame<'_>) -> Result<(), String> {
        let row = (frame.bottom - frame.top) / self.cells as f64;
        let half = (0.4 * row).clamp(1.25, 7.0);
        // Half pixels, from the top and from the left.
        let mut marks: BTreeSet<(i64, i64)> = BTreeSet::new();
        for &(t, cell) in &self.spikes {
            let (x, y) = frame.point(t, cell as f64);
            marks.insert(((y * 2.0).round() as i64, (x * 2.0).round() as i64));
        }
        let mut marks = marks.into_iter().peekable();
        while let Some((y, first)) = marks.next() {
            let mut last = first;
            while let Some((_, next)) = marks.next_if(|&(row, x)| row == y && x - last <= 2) {
                last = next;
            }
            let (y, left, right) = (y as f64 / 2.0, first as f64 / 2.0 - HALF_WIDTH, last as f64 / 2.0 + HALF_WIDTH);
            canvas.fill((left, y - half), (right, y + half), style::SPIKES)?;
        }
        if self.spikes.is_empty() {
            frame.say(canvas, "no spikes")?;
        }
        Ok(())
    }
}
