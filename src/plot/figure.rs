//! Where everything goes: panels, axes, headings and legends.
//!
//! Results and options come in; out goes a plan with a place for every panel, which any canvas can be handed to. Text
//! never overlaps other text and never leaves the figure: what is too long is shortened, and a figure with no room for its
//! panels is refused.

use plotters::style::RGBColor;
use plotters_backend::DrawingBackend;
use serde_json::{Map, Value};

use crate::results::{RunResult, SweepResult};

use super::axis::Axis;
use super::canvas::{Anchor, Canvas, shortened, text_width};
use super::panels::{Along, Body, Panel, select};
use super::scale::Scale;
use super::style::{
    self, FAINT_TEXT, FRAME, FRAME_WIDTH, GRID, HEADING_SIZE, LABEL_SIZE, LEGEND_SIZE, SPIKES, TEXT, TICK_LENGTH,
    TICK_SIZE, TITLE_SIZE,
};
use super::{PlotError, PlotOptions};

/// A figure that only has to be drawn.
pub struct Figure<'a> {
    width: u32,
    height: u32,
    title: Option<String>,
    window: (f64, f64),
    panels: Vec<Placed<'a>>,
    left: f64,
    right: f64,
    time: Axis,
    /// `ms` or `s`, and how many of it a millisecond is.
    time_unit: (&'static str, f64),
    /// What the shared axis shows, if it is not the time.
    along: Option<String>,
}

struct Placed<'a> {
    panel: Panel<'a>,
    top: f64,
    bottom: f64,
    y: Axis,
    label: String,
    legend: Vec<(Mark, String)>,
}

/// The inside of a panel, in pixels, and its axes.
pub struct Frame<'a> {
    pub left: f64,
    pub right: f64,
    pub top: f64,
    pub bottom: f64,
    /// First and last time shown in ms.
    pub window: (f64, f64),
    pub y: &'a Axis,
}

/// What stands before a line of the legend.
#[derive(Debug, Clone, Copy)]
pub enum Mark {
    Line(RGBColor),
    Spike,
    None,
}

const EDGE: f64 = 16.0;
const HEADING_ROOM: f64 = 30.0;
const TITLE_ROOM: f64 = 40.0;
const TIME_AXIS_ROOM: f64 = 62.0;
const LEGEND_ROW: f64 = 22.0;
const LEGEND_MARK: f64 = 30.0;
const LEGEND_GAP: f64 = 18.0;
const LEAST_PANEL: f64 = 40.0;
const MOST_PIXELS: u32 = 10_000;
const LEAST_WIDTH: u32 = 300;

impl<'a> Figure<'a> {
    /// Decides everything about a figure.
    pub fn plan(result: &'a RunResult, options: &PlotOptions) -> Result<Figure<'a>, PlotError> {
        Figure::of(select(result, options)?, &result.meta, options)
    }

    /// The same for a sweep.
    pub fn plan_sweep(sweep: &'a SweepResult, options: &PlotOptions) -> Result<Figure<'a>, PlotError> {
        Figure::of(super::sweep::select(sweep, options)?, &sweep.meta, options)
    }

    fn of(
        (panels, along): (Vec<Panel<'a>>, Along),
        meta: &Map<String, Value>,
        options: &PlotOptions,
    ) -> Result<Figure<'a>, PlotError> {
        if !(LEAST_WIDTH..=MOST_PIXELS).contains(&options.width) {
            let width = options.width;
            let what = format!("a width of {width} pixels is not within {LEAST_WIDTH} to {MOST_PIXELS}");
            return Err(PlotError::Options(what));
        }
        let Along { range: window, label: along } = along;
        let title = options.title.as_deref().or_else(|| meta.get("model").and_then(Value::as_str));
        let title = title.filter(|t| !t.is_empty()).map(str::to_owned);
        let top = EDGE + if title.is_some() { TITLE_ROOM } else { 0.0 };
        let around = top + TIME_AXIS_ROOM + panels.len() as f64 * HEADING_ROOM;
        let wanted: Vec<f64> = panels.iter().map(wanted_height).collect();
        let total: f64 = wanted.iter().sum();
        let height = match options.height {
            Some(height) => f64::from(height),
            None => (around + total).ceil(),
        };
        if height > f64::from(MOST_PIXELS) {
            let (n, what) = (panels.len(), "choose some of them by name, or a smaller height");
            return Err(PlotError::Options(format!(
                "{n} panels would be {height} pixels high, more than {MOST_PIXELS}; {what}"
            )));
        }
        let inside = height - around;
        let least = (around + LEAST_PANEL * panels.len() as f64).ceil();
        if height < least {
            let n = panels.len();
            return Err(PlotError::Options(format!("{n} panels need a height of at least {least} pixels")));
        }
        // Each panel gets the least, and of what is left a share by what it would like to have.
        let spare = inside - LEAST_PANEL * panels.len() as f64;
        let like: f64 = wanted.iter().map(|w| w - LEAST_PANEL).sum();
        let mut y = top;
        let mut placed = Vec::new();
        for (panel, wanted) in panels.into_iter().zip(wanted) {
            let top = y + HEADING_ROOM;
            let bottom = top + LEAST_PANEL + spare * (wanted - LEAST_PANEL) / like;
            y = bottom;
            placed.push(place(panel, top, bottom, window));
        }
        let (left, right) = margins(&placed, f64::from(options.width));
        let seconds = along.is_none() && (window.1 - window.0 >= 10_000.0 || window.1.abs() >= 100_000.0);
        let time_unit = if seconds { ("s", 1e-3) } else { ("ms", 1.0) };
        let most = ((right - left) / 75.0).clamp(2.0, 12.0) as usize;
        let time = Axis::exact(window.0 * time_unit.1, window.1 * time_unit.1, most);
        let height = height as u32;
        Ok(Figure { width: options.width, height, title, window, panels: placed, left, right, time, time_unit, along })
    }

    /// Width and height in pixels.
    pub fn size(&self) -> (u32, u32) {
        (self.width, self.height)
    }

    pub fn draw<DB: DrawingBackend>(&self, canvas: &mut Canvas<DB>) -> Result<(), String> {
        if let Some(title) = &self.title {
            let title = shortened(title, TITLE_SIZE, f64::from(self.width) - self.left - EDGE);
            canvas.text(&title, (self.left, EDGE + TITLE_ROOM / 2.0 - 4.0), Anchor::Left, TITLE_SIZE, TEXT)?;
        }
        for placed in &self.panels {
            self.draw_panel(canvas, placed)?;
        }
        self.draw_time_axis(canvas)
    }

    fn draw_panel<DB: DrawingBackend>(&self, canvas: &mut Canvas<DB>, placed: &Placed<'_>) -> Result<(), String> {
        let Placed { panel, top, bottom, y, label, legend } = placed;
        let (top, bottom) = (*top, *bottom);
        let frame = Frame { left: self.left, right: self.right, top, bottom, window: self.window, y };
        for (t, _) in &self.time.ticks {
            let x = self.time_place(*t);
            canvas.line(&[(x, top), (x, bottom)], GRID, FRAME_WIDTH)?;
        }
        for (value, _) in &y.ticks {
            let at = frame.height_of(*value);
            canvas.line(&[(self.left, at), (self.right, at)], GRID, FRAME_WIDTH)?;
        }
        match &panel.body {
            Body::Traces(traces) => traces.draw(canvas, &frame)?,
            Body::Raster(raster) => raster.draw(canvas, &frame)?,
            Body::Rate(rate) => rate.draw(canvas, &frame)?,
            Body::Intervals(intervals) => intervals.histogram.draw(canvas, &frame, "no intervals")?,
            Body::Correlations(correlations) => correlations.histogram.draw(canvas, &frame, "no pairs")?,
            Body::Spectrum(spectrum) => spectrum.draw(canvas, &frame)?,
            Body::CellRates(rates) => rates.draw(canvas, &frame)?,
            Body::Curves(curves) => curves.draw(canvas, &frame)?,
            Body::Map(map, _) => map.draw(canvas, &frame)?,
            Body::Profile(profile) => profile.draw(canvas, &frame)?,
            Body::Heat(heat) => heat.draw(canvas, &frame)?,
        }
        if let Some(scale) = panel.body.scale() {
            scale.draw(canvas, self.right + LEGEND_GAP, (top, bottom))?;
        }
        canvas.line(&[(self.left, top), (self.left, bottom), (self.right, bottom)], FRAME, FRAME_WIDTH)?;
        for (t, _) in &self.time.ticks {
            let x = self.time_place(*t);
            canvas.line(&[(x, bottom), (x, bottom + TICK_LENGTH)], FRAME, FRAME_WIDTH)?;
        }
        for (value, text) in &y.ticks {
            let at = frame.height_of(*value);
            canvas.line(&[(self.left - TICK_LENGTH, at), (self.left, at)], FRAME, FRAME_WIDTH)?;
            canvas.text(text, (self.left - TICK_LENGTH - 4.0, at), Anchor::Right, TICK_SIZE, TEXT)?;
        }
        let label = shortened(label, LABEL_SIZE, bottom - top + HEADING_ROOM - 8.0);
        let label_at = (EDGE + 0.72 * LABEL_SIZE, (top + bottom) / 2.0);
        canvas.text(&label, label_at, Anchor::Upwards, LABEL_SIZE, TEXT)?;
        let heading = shortened(&panel.heading, HEADING_SIZE, self.right - self.left);
        canvas.text(&heading, (self.left, top - 11.0), Anchor::Left, HEADING_SIZE, FAINT_TEXT)?;
        self.draw_legend(canvas, legend, top, bottom)
    }

    fn draw_legend<DB: DrawingBackend>(
        &self,
        canvas: &mut Canvas<DB>,
        legend: &[(Mark, String)],
        top: f64,
        bottom: f64,
    ) -> Result<(), String> {
        let row = LEGEND_ROW.min((bottom - top + 10.0) / legend.len().max(1) as f64);
        let size = LEGEND_SIZE.min(0.85 * row);
        let left = self.right + LEGEND_GAP;
        let room = f64::from(self.width) - EDGE - left - LEGEND_MARK;
        for (k, (mark, text)) in legend.iter().enumerate() {
            let y = top + (k as f64 + 0.5) * row;
            let text_left = match mark {
                Mark::Line(color) => {
                    canvas.line(&[(left, y), (left + LEGEND_MARK - 8.0, y)], *color, 2.5)?;
                    left + LEGEND_MARK
                }
                Mark::Spike => {
                    let x = left + (LEGEND_MARK - 8.0) / 2.0;
                    canvas.line(&[(x, y - 0.3 * row), (x, y + 0.3 * row)], SPIKES, 1.5)?;
                    left + LEGEND_MARK
                }
                Mark::None => left,
            };
            let color = if matches!(mark, Mark::None) { FAINT_TEXT } else { TEXT };
            let text = shortened(text, size, room + left + LEGEND_MARK - text_left);
            canvas.text(&text, (text_left, y), Anchor::Left, size, color)?;
        }
        Ok(())
    }

    fn draw_time_axis<DB: DrawingBackend>(&self, canvas: &mut Canvas<DB>) -> Result<(), String> {
        let Some(last) = self.panels.last() else {
            return Ok(());
        };
        let below = last.bottom + TICK_LENGTH + 4.0;
        let mut free = f64::NEG_INFINITY;
        for (t, text) in &self.time.ticks {
            let x = self.time_place(*t);
            let half = text_width(text, TICK_SIZE) / 2.0;
            if x - half < free {
                continue;
            }
            free = x + half + 8.0;
            canvas.text(text, (x, below), Anchor::Below, TICK_SIZE, TEXT)?;
        }
        let (unit, _) = self.time_unit;
        let label = match (&self.along, self.time.factor().as_str()) {
            (None, factor) => format!("time ({factor}{unit})"),
            (Some(label), "") => label.clone(),
            (Some(label), factor) => format!("{label}, {}", factor.trim_end()),
        };
        let middle = (self.left + self.right) / 2.0;
        canvas.text(&label, (middle, below + TICK_SIZE + 8.0), Anchor::Below, LABEL_SIZE, TEXT)
    }

    /// Where a time in the unit of the axis is.
    fn time_place(&self, t: f64) -> f64 {
        self.left + self.time.place(t) * (self.right - self.left)
    }
}

impl Frame<'_> {
    /// Where a time in ms and a value are, in pixels.
    pub fn point(&self, t: f64, value: f64) -> (f64, f64) {
        let along = (t - self.window.0) / (self.window.1 - self.window.0);
        (self.left + along * (self.right - self.left), self.height_of(value))
    }

    fn height_of(&self, value: f64) -> f64 {
        // Only values too large for an axis are outside it.
        self.bottom - self.y.place(value).clamp(0.0, 1.0) * (self.bottom - self.top)
    }

    /// Says in the middle of the panel why it is empty.
    pub fn say<DB: DrawingBackend>(&self, canvas: &mut Canvas<DB>, text: &str) -> Result<(), String> {
        let x = (self.left + self.right - text_width(text, LABEL_SIZE)) / 2.0;
        canvas.text(text, (x, (self.top + self.bottom) / 2.0), Anchor::Left, LABEL_SIZE, FAINT_TEXT)
    }
}

/// The height a panel would like to have, above the least.
fn wanted_height(panel: &Panel<'_>) -> f64 {
    match &panel.body {
        Body::Traces(traces) => {
            let plain = if traces.fraction { 170.0 } else { 220.0 };
            f64::max(plain, LEGEND_ROW * traces.legend().len() as f64 - 10.0)
        }
        Body::Raster(raster) => (3.0 * raster.cells as f64).clamp(80.0, 300.0),
        Body::Rate(_) => 140.0,
        Body::Intervals(_) | Body::Correlations(_) => 180.0,
        Body::Spectrum(_) => 200.0,
        Body::CellRates(_) => 220.0,
        Body::Curves(curves) => f64::max(260.0, LEGEND_ROW * curves.legend().len() as f64),
        Body::Map(..) => 420.0,
        Body::Profile(_) => 300.0,
        Body::Heat(_) => 320.0,
    }
}

fn place(panel: Panel<'_>, top: f64, bottom: f64, window: (f64, f64)) -> Placed<'_> {
    let (y, label, legend) = match &panel.body {
        Body::Traces(traces) => {
            let y = traces.axis(window, bottom - top);
            let label = traces.label(&y);
            (y, label, traces.legend())
        }
        Body::Raster(raster) => (raster.axis(bottom - top), "cell".to_owned(), Vec::new()),
        Body::Rate(rate) => {
            let y = rate.axis(bottom - top);
            let label = format!("rate ({}spikes/s)", y.factor());
            (y, label, Vec::new())
        }
        Body::Intervals(intervals) => {
            let y = intervals.histogram.axis(bottom - top);
            let label = style::label("intervals", "1", &y.factor());
            (y, label, Vec::new())
        }
        Body::Correlations(correlations) => {
            let y = correlations.histogram.axis(bottom - top);
            let label = style::label("pairs", "1", &y.factor());
            (y, label, Vec::new())
        }
        Body::Spectrum(spectrum) => {
            let y = spectrum.axis(bottom - top);
            let label = spectrum.label(&y);
            (y, label, Vec::new())
        }
        Body::Curves(curves) => {
            let y = curves.axis(bottom - top);
            let label = curves.label(&y);
            (y, label, curves.legend())
        }
        Body::Map(map, label) => (map.axis(bottom - top), label.clone(), Vec::new()),
        Body::CellRates(rates) => {
            let y = rates.axis(bottom - top);
            let label = format!("rate ({}spikes/s)", y.factor());
            (y, label, Vec::new())
        }
        Body::Profile(profile) => {
            let y = profile.axis(bottom - top);
            let label = profile.label(&y);
            (y, label, profile.legend())
        }
        Body::Heat(heat) => {
            let y = heat.axis(bottom - top);
            let label = format!("distance ({}um)", y.factor());
            (y, label, Vec::new())
        }
    };
    Placed { panel, top, bottom, y, label, legend }
}

/// The left and right ends of the panels: room for the widest tick label and the widest legend, within limits.
fn margins(panels: &[Placed<'_>], width: f64) -> (f64, f64) {
    let ticks = panels.iter().flat_map(|p| &p.y.ticks).map(|(_, text)| text_width(text, TICK_SIZE));
    let left = EDGE + LABEL_SIZE + 10.0 + ticks.fold(0.0, f64::max) + TICK_LENGTH + 4.0;
    let legend_width = |(mark, text): &(Mark, String)| {
        text_width(text, LEGEND_SIZE) + if matches!(mark, Mark::None) { 0.0 } else { LEGEND_MARK }
    };
    let bars = panels.iter().filter_map(|p| p.panel.body.scale()).map(Scale::width);
    let legend = panels.iter().flat_map(|p| &p.legend).map(legend_width).chain(bars).fold(0.0, f64::max);
    let beside = if legend > 0.0 { LEGEND_GAP + legend.min(0.3 * width) + 1.0 + EDGE } else { 0.0 };
    // The last label of the time axis is centred below the end of the axis.
    (left.min(0.3 * width), width - beside.max(2.0 * EDGE))
}
