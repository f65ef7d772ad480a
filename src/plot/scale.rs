//! Colours of numbers: a bar with an axis that says which colour is which number.
//!
//! The least and the largest number come in; out go colours, and the drawing of the bar.
//! Never true here: a number outside the bar has a colour of its own.

use plotters::style::RGBColor;
use plotters_backend::DrawingBackend;

use super::axis::Axis;
use super::canvas::{Anchor, Canvas, text_width};
use super::style::{self, FRAME, FRAME_WIDTH, LEGEND_SIZE, TEXT, TICK_LENGTH};

/// Numbers as colours.
pub struct Scale {
    axis: Axis,
}

/// How wide a bar is in pixels.
const BAR: f64 = 16.0;
/// How many colours a bar shows.
const STEPS: usize = 128;

impl Scale {
    /// From the least to the largest of some numbers; those that are not finite do not count.
    pub fn of(values: impl Iterator<Item = f64>, most: usize) -> Scale {
        let finite = values.filter(|x| x.is_finite());
        let (low, high) = finite.fold((f64::INFINITY, f64::NEG_INFINITY), |(a, b), x| (a.min(x), b.max(x)));
        let (low, high) = if low <= high { (low, high) } else { (0.0, 1.0) };
        Scale { axis: Axis::exact(low, high, most) }
    }

    /// Where a number is, 0 the least and 1 the largest.
    pub fn place(&self, value: f64) -> f64 {
        self.axis.place(value)
    }

    pub fn color(&self, value: f64) -> RGBColor {
        style::ramp(self.axis.place(value))
    }

    /// What the labels of the bar leave out, such as `×1e−6 ` or nothing.
    pub fn factor(&self) -> String {
        self.axis.factor()
    }

    /// The width of the bar with its labels in pixels.
    pub fn width(&self) -> f64 {
        let labels = self.axis.ticks.iter().map(|(_, text)| text_width(text, LEGEND_SIZE));
        BAR + TICK_LENGTH + 4.0 + labels.fold(0.0, f64::max)
    }

    /// Draws the bar, its lower end at `bottom`.
    pub fn draw<DB: DrawingBackend>(
        &self,
        canvas: &mut Canvas<DB>,
        left: f64,
        (top, bottom): (f64, f64),
    ) -> Result<(), String> {
        let height = |place: f64| bottom - place * (bottom - top);
        for k in 0..STEPS {
            let part = |k: usize| k as f64 / STEPS as f64;
            // A little higher, or the background shines through between two steps.
            let above = (height(part(k + 1)) - 0.5).max(top);
            canvas.fill((left, above), (left + BAR, height(part(k))), style::ramp(part(k) + 0.5 / STEPS as f64))?;
        }
        let corners = [(left, top), (left + BAR, top), (left + BAR, bottom), (left, bottom), (left, top)];
        canvas.line(&corners, FRAME, FRAME_WIDTH)?;
        for (value, text) in &self.axis.ticks {
            let (x, y) = (left + BAR, height(self.axis.place(*value)));
            canvas.line(&[(x, y), (x + TICK_LENGTH, y)], FRAME, FRAME_WIDTH)?;
            canvas.text(text, (x + TICK_LENGTH + 4.0, y), Anchor::Left, LEGEND_SIZE, TEXT)?;
        }
        Ok(())
    }
}
