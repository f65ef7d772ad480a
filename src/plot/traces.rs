//! Panels with recorded variables over time.
//!
//! Lines of samples come in, with ticks for spikes where a single cell fired; out go a vertical axis, a legend and the
//! drawing. A sample outside the time shown is never drawn, and neighbours of a gap are never joined.

use std::ops::Range;

use plotters::style::RGBColor;
use plotters_backend::DrawingBackend;

use crate::results::Series;

use super::axis::Axis;
use super::canvas::Canvas;
use super::decimate::decimate;
use super::figure::{Frame, Mark};
use super::style;

/// Lines with one vertical axis.
pub struct Traces<'a> {
    /// The last part of the name of the series.
    pub quantity: String,
    pub unit: String,
    /// At least one.
    pub lines: Vec<Line<'a>>,
    /// What the legend says below the lines, such as `8 of 729 cells`.
    pub note: Option<String>,
    /// Spike times in ms to mark above the lines.
    pub spikes: Option<Vec<f64>>,
    /// Whether the values are within 0 to 1.
    pub fraction: bool,
}

/// One column of one series.
pub struct Line<'a> {
    pub label: String,
    pub series: &'a Series,
    pub column: usize,
    /// Which colour it has.
    pub color: RGBColor,
}

/// The height of the strip above the lines that spikes are marked in, in pixels.
const SPIKE_STRIP: f64 = 20.0;

impl Line<'_> {
    /// The samples within a time window.
    fn samples(&self, window: (f64, f64)) -> Range<usize> {
        let t = &self.series.t;
        let first = t.partition_point(|t| *t < window.0);
        first..t.partition_point(|t| *t <= window.1).max(first)
    }

    /// The lowest and the highest finite sample within a time window.
    pub fn extremes(&self, window: (f64, f64)) -> Option<(f64, f64)> {
        let values = self.samples(window).map(|k| self.series.values.get(k, self.column));
        values.filter(|v| v.is_finite()).fold(None, |found, v| {
            let (low, high) = found.unwrap_or((v, v));
            Some((v.min(low), v.max(high)))
        })
    }
}

impl Traces<'_> {
    /// The vertical axis; `None` stands for a panel without a single number to show.
    pub fn axis(&self, window: (f64, f64), height: f64) -> Axis {
        let most = (height / 32.0).clamp(3.0, 7.0) as usize;
        let extremes = self.lines.iter().filter_map(|l| l.extremes(window));
        let range = extremes.reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)));
        let axis = match range {
            _ if self.fraction => Axis::exact(-0.05, 1.05, most),
            Some((low, high)) => Axis::around(low, high, most),
            None => Axis { low: 0.0, high: 1.0, ticks: Vec::new(), exponent: 0 },
        };
        if self.spikes.is_none() || height < 3.0 * SPIKE_STRIP {
            return axis;
        }
        let strip = (axis.high - axis.low) * SPIKE_STRIP / (height - SPIKE_STRIP);
        Axis::exact(axis.low, axis.high + strip, most)
    }

    /// The label of the vertical axis.
    pub fn label(&self, axis: &Axis) -> String {
        style::label(&self.quantity, &self.unit, &axis.factor())
    }

    /// The legend, from top to bottom; empty where the heading says it all.
    pub fn legend(&self) -> Vec<(Mark, String)> {
        let mut legend = Vec::new();
        if self.lines.len() > 1 {
            // Lines without a label are between others.
            let named = self.lines.iter().filter(|line| !line.label.is_empty());
            legend.extend(named.map(|line| (Mark::Line(line.color), line.label.clone())));
        }
        legend.extend(self.spikes.as_ref().map(|spikes| (Mark::Spike, format!("spikes ({})", spikes.len()))));
        legend.extend(self.note.clone().map(|note| (Mark::None, note)));
        legend
    }

    pub fn draw<DB: DrawingBackend>(&self, canvas: &mut Canvas<DB>, frame: &Frame<'_>) -> Result<(), String> {
        let columns = ((frame.right - frame.left) * 2.0) as usize;
        let mut empty = true;
        for line in &self.lines {
            let value = |k| line.series.values.get(k, line.column);
            for run in decimate(&line.series.t, value, line.samples(frame.window), frame.window, columns) {
                let points: Vec<(f64, f64)> = run.into_iter().map(|(t, v)| frame.point(t, v)).collect();
                canvas.line(&points, line.color, style::LINE_WIDTH)?;
                empty = false;
            }
        }
        if empty {
            frame.say(canvas, "no values")?;
        }
        for &t in self.spikes.iter().flatten() {
            let (x, _) = frame.point(t, frame.y.low);
            canvas.line(&[(x, frame.top + 4.0), (x, frame.top + 14.0)], style::SPIKES, 1.5)?;
        }
        Ok(())
    }
}
