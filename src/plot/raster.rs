//! Panels with one mark per spike, a row per cell.
//!
//! A spike train and a time window come in; out go a vertical axis and the drawing, cell 0 at the bottom. Spikes closer
//! than half a pixel share a mark. A spike is never left out without a word: of very many, those of every k-th cell are drawn, and the heading says so.

use std::collections::BTreeSet;

use plotters_backend::DrawingBackend;

use crate::results::SpikeTrain;

use super::axis::Axis;
use super::canvas::Canvas;
use super::figure::Frame;
use super::rates::cells_of;
use super::style;

/// The spikes of a population within the time shown.
pub struct Raster<'a> {
    population: &'a str,
    pub cells: usize,
    /// Spikes within the window, drawn or not.
    count: usize,
    /// The cells that are drawn, if not all are.
    note: Option<String>,
    spikes: Vec<(f64, u64)>,
}

/// How many spikes are drawn, about.
const MOST_SPIKES: usize = 20_000;

/// Half the width of a mark in pixels.
const HALF_WIDTH: f64 = 0.9;

impl<'a> Raster<'a> {
    pub fn new(train: &'a SpikeTrain, window: (f64, f64), cells: &[u64]) -> Raster<'a> {
        let spikes = train.t.iter().copied().zip(train.i.iter().copied());
        let inside = spikes.filter(|(t, _)| (window.0..=window.1).contains(t));
        let mut spikes: Vec<(f64, u64)> = match cells.is_empty() {
            true => inside.collect(),
            false => inside.filter(|(_, cell)| cells.contains(cell)).collect(),
        };
        let count = spikes.len();
        let mut note = (!cells.is_empty()).then(|| format!("of {} chosen cells", cells_of(train, cells)));
        let each = count.div_ceil(MOST_SPIKES).min(train.cells) as u64;
        if each > 1 && cells.is_empty() {
            spikes.retain(|(_, cell)| cell.is_multiple_of(each));
            note = Some(match each {
                2 => "every second cell drawn".into(),
                3 => "every third cell drawn".into(),
                each => format!("every {each}th cell drawn"),
            });
        }
        Raster { population: &train.population, cells: train.cells, count, note, spikes }
    }

    pub fn heading(&self) -> String {
        let plural = |n: usize| if n == 1 { "" } else { "s" };
        let (spikes, cells) = (self.count, self.cells);
        let note = self.note.as_ref().map_or(String::new(), |note| format!(", {note}"));
        format!("{} · {spikes} spike{} of {cells} cell{}{note}", self.population, plural(spikes), plural(cells))
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
