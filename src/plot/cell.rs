//! Figures of a cell: its shape, each compartment in a colour.
//!
//! Pieces of compartments come in, in um, with a colour or a number for each; out goes one SVG, PNG or PDF file with a legend or a bar of colours, and a line
//! that says how long something is.
//! Never true here: an axis of the cell is longer than the other, or a neurite is too thin to be seen.

use plotters::style::RGBColor;
use plotters_backend::DrawingBackend;
use std::path::Path;

use super::axis::round_down;
use super::canvas::{self, Anchor, Canvas, shortened, text_width};
use super::scale::Scale;
use super::style::{self, FAINT_TEXT, HEADING_SIZE, LEGEND_SIZE, NOTHING, TEXT, TITLE_SIZE};
use super::{ImageFormat, PlotError, pdf, supersample, write};

/// A frustum of a cell, seen from the side.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CellPiece {
    /// Where it begins and ends, in um, x to the right and y up.
    pub ends: [[f64; 2]; 2],
    /// The diameters there, in um.
    pub diam: [f64; 2],
    /// Whose colour it has: a place in the list of [`CellColours`].
    pub of: usize,
}

/// What the colours of a cell mean.
#[derive(Debug, Clone, PartialEq)]
pub enum CellColours {
    /// Each is a part of the cell with this name.
    Parts(Vec<String>),
    /// Each is a number. What is not a number is grey.
    Numbers {
        /// What they are, such as `v`.
        name: String,
        /// Their unit; `1` for pure numbers.
        unit: String,
        /// The numbers.
        values: Vec<f64>,
    },
}

/// A cell to be drawn.
#[derive(Debug, Clone, PartialEq)]
pub struct CellFigure {
    /// What stands above it.
    pub title: String,
    /// What stands below the title.
    pub heading: String,
    /// What is drawn, the last above all others.
    pub pieces: Vec<CellPiece>,
    /// Thin lines behind it, in um.
    pub joins: Vec<[[f64; 2]; 2]>,
    /// What its colours mean.
    pub colours: CellColours,
    /// Width in pixels, 300 to 10000; what the shape needs if `None`.
    pub width: Option<u32>,
    /// Height in pixels, 200 to 10000; what the shape needs if `None`.
    pub height: Option<u32>,
}

/// What stands on the right.
enum Key {
    Parts(Vec<(RGBColor, String)>),
    Bar(Scale, String),
}

/// A figure that only has to be drawn.
struct Plan<'a> {
    figure: &'a CellFigure,
    size: (u32, u32),
    /// Pixels to a um, and the pixels of the origin.
    scale: f64,
    origin: (f64, f64),
    key: Key,
    colors: Vec<RGBColor>,
}

const EDGE: f64 = 16.0;
const HEAD: f64 = 74.0;
/// Room for the line that says how long something is.
const FOOT: f64 = 56.0;
/// How long the longer side of a cell is where nobody says how large the figure is.
const LONGEST: f64 = 900.0;
const KEY_GAP: f64 = 28.0;
const ROW: f64 = 24.0;
const SWATCH: f64 = 14.0;
/// The height of the bar of colours.
const BAR: f64 = 240.0;
/// Nothing is drawn thinner.
const THINNEST: f64 = 1.5;
const LEAST_SIDE: (f64, f64) = (300.0, 200.0);
const MOST_SIDE: f64 = 10_000.0;

/// Draws a cell into the file `path`, replacing what was there in one step.
///
/// # Errors
/// See [`PlotError`]; nothing new is left on disk.
pub fn draw_cell(figure: &CellFigure, path: &Path) -> Result<(), PlotError> {
    write(path, &render_cell(figure, ImageFormat::of(path)?)?)
}

/// Draws a cell and returns the bytes of the file.
///
/// # Errors
/// As [`draw_cell`], except for those of writing.
pub fn render_cell(figure: &CellFigure, format: ImageFormat) -> Result<Vec<u8>, PlotError> {
    let plan = Plan::new(figure)?;
    let drawn = match format {
        ImageFormat::Svg => canvas::svg(plan.size, |canvas| plan.draw(canvas)),
        ImageFormat::Png => supersample::png(plan.size, |canvas| plan.draw(canvas)),
        ImageFormat::Pdf => pdf::pdf(plan.size, |canvas| plan.draw(canvas)),
    };
    drawn.map_err(PlotError::Drawing)
}

impl<'a> Plan<'a> {
    fn new(figure: &'a CellFigure) -> Result<Plan<'a>, PlotError> {
        let (low, high) = extent(figure).ok_or_else(|| PlotError::Nothing("the cell has no compartment".into()))?;
        let (colors, key) = colors(&figure.colours);
        let beside = KEY_GAP + key.width() + EDGE;
        let (wide, tall) = ((high[0] - low[0]).max(1e-6), (high[1] - low[1]).max(1e-6));
        for (side, given, least) in [("width", figure.width, LEAST_SIDE.0), ("height", figure.height, LEAST_SIDE.1)] {
            if let Some(pixels) = given.filter(|&pixels| !(least..=MOST_SIDE).contains(&f64::from(pixels))) {
                let what = format!("a {side} of {pixels} pixels is not within {least} to {MOST_SIDE}");
                return Err(PlotError::Options(what));
            }
        }
        let [width, height] = [figure.width, figure.height].map(|pixels| pixels.map(f64::from));
        let inside = [width.map(|w| w - EDGE - beside), height.map(|h| h - HEAD - FOOT)];
        if inside.iter().flatten().any(|&pixels| pixels < 40.0) {
            return Err(PlotError::Options("there is no room for a cell beside the legend".into()));
        }
        let scale = match inside {
            [None, None] => LONGEST / wide.max(tall),
            [Some(w), None] => (w / wide).min(LONGEST.max(w) / tall),
            [None, Some(h)] => (h / tall).min(LONGEST.max(h) / wide),
            [Some(w), Some(h)] => (w / wide).min(h / tall),
        };
        let heading = text_width(&figure.heading, HEADING_SIZE) + 2.0 * EDGE;
        let least = (EDGE + beside + 200.0).max(heading.min(900.0));
        let width = width.unwrap_or_else(|| (EDGE + scale * wide + beside).max(least).ceil());
        let height = height.unwrap_or_else(|| (HEAD + (scale * tall).max(key.height()) + FOOT).ceil());
        // In the middle of the room that there is.
        let room = (width - EDGE - beside, height - HEAD - FOOT);
        let left = EDGE + 0.5 * (room.0 - scale * wide) - scale * low[0];
        let top = HEAD + 0.5 * (room.1 - scale * tall) + scale * high[1];
        let size = (width.min(MOST_SIDE) as u32, height.min(MOST_SIDE) as u32);
        Ok(Plan { figure, size, scale, origin: (left, top), key, colors })
    }

    fn place(&self, at: [f64; 2]) -> (f64, f64) {
        (self.origin.0 + self.scale * at[0], self.origin.1 - self.scale * at[1])
    }

    fn draw<DB: DrawingBackend>(&self, canvas: &mut Canvas<DB>) -> Result<(), String> {
        let width = f64::from(self.size.0);
        let title = shortened(&self.figure.title, TITLE_SIZE, width - 2.0 * EDGE);
        canvas.text(&title, (EDGE, EDGE + 14.0), Anchor::Left, TITLE_SIZE, TEXT)?;
        let heading = shortened(&self.figure.heading, HEADING_SIZE, width - 2.0 * EDGE);
        canvas.text(&heading, (EDGE, EDGE + 40.0), Anchor::Left, HEADING_SIZE, FAINT_TEXT)?;
        for join in &self.figure.joins {
            canvas.line(&join.map(|at| self.place(at)), NOTHING, 1.5)?;
        }
        let mut before: Option<&CellPiece> = None;
        for piece in &self.figure.pieces {
            let color = self.colors.get(piece.of).copied().unwrap_or(NOTHING);
            self.piece(canvas, piece, color)?;
            // Where two pieces meet at an angle a wedge between them is open.
            if let Some(before) = before.filter(|before| before.ends[1] == piece.ends[0] && bend(before, piece)) {
                let thin = before.diam[1].min(piece.diam[0]);
                canvas.disc(self.place(piece.ends[0]), 0.5 * (self.scale * thin).max(THINNEST), color)?;
            }
            before = Some(piece);
        }
        self.length(canvas)?;
        self.legend(canvas)
    }

    fn piece<DB: DrawingBackend>(
        &self,
        canvas: &mut Canvas<DB>,
        piece: &CellPiece,
        color: RGBColor,
    ) -> Result<(), String> {
        let [(x0, y0), (x1, y1)] = piece.ends.map(|at| self.place(at));
        let length = (x1 - x0).hypot(y1 - y0);
        if length < 1e-9 {
            return Ok(());
        }
        let (across, up) = ((y0 - y1) / length, (x1 - x0) / length);
        let [a, b] = piece.diam.map(|diam| 0.5 * (self.scale * diam).max(THINNEST));
        let corner = |x: f64, y: f64, half: f64| (x + half * across, y + half * up);
        let corners = [corner(x0, y0, a), corner(x1, y1, b), corner(x1, y1, -b), corner(x0, y0, -a)];
        canvas.polygon(&corners, color)
    }

    /// A line of a round length.
    fn length<DB: DrawingBackend>(&self, canvas: &mut Canvas<DB>) -> Result<(), String> {
        let um = round_down(160.0 / self.scale);
        let (left, y) = (EDGE, f64::from(self.size.1) - EDGE - 22.0);
        let right = left + um * self.scale;
        canvas.line(&[(left, y), (right, y)], TEXT, 2.5)?;
        canvas.text(&format!("{} um", style::few(um)), (left, y + 16.0), Anchor::Left, LEGEND_SIZE, TEXT)
    }

    fn legend<DB: DrawingBackend>(&self, canvas: &mut Canvas<DB>) -> Result<(), String> {
        let left = f64::from(self.size.0) - EDGE - self.key.width();
        match &self.key {
            Key::Parts(parts) => {
                for (at, (color, name)) in parts.iter().enumerate() {
                    let y = HEAD + (at as f64 + 0.5) * ROW;
                    canvas.fill((left, y - 0.5 * SWATCH), (left + SWATCH, y + 0.5 * SWATCH), *color)?;
                    canvas.text(name, (left + SWATCH + 8.0, y), Anchor::Left, LEGEND_SIZE, TEXT)?;
                }
                Ok(())
            }
            Key::Bar(scale, label) => {
                canvas.text(label, (left, HEAD + 8.0), Anchor::Left, LEGEND_SIZE, TEXT)?;
                scale.draw(canvas, left, (HEAD + 30.0, HEAD + 30.0 + BAR))
            }
        }
    }
}

impl Key {
    fn width(&self) -> f64 {
        match self {
            Key::Parts(parts) => {
                let widest = parts.iter().map(|(_, name)| text_width(name, LEGEND_SIZE)).fold(0.0, f64::max);
                if parts.is_empty() { 0.0 } else { SWATCH + 8.0 + widest }
            }
            Key::Bar(scale, label) => scale.width().max(text_width(label, LEGEND_SIZE)),
        }
    }

    fn height(&self) -> f64 {
        match self {
            Key::Parts(parts) => ROW * parts.len() as f64,
            Key::Bar(..) => BAR + 40.0,
        }
    }
}

/// Do two pieces that follow each other go in different directions?
fn bend(before: &CellPiece, piece: &CellPiece) -> bool {
    let [a, b] = [before, piece].map(|p| [0, 1].map(|axis| p.ends[1][axis] - p.ends[0][axis]));
    let (cross, dot) = (a[0] * b[1] - a[1] * b[0], a[0] * b[0] + a[1] * b[1]);
    cross.abs() > 1e-3 * dot
}

/// The lower left and the upper right corner of what is drawn.
fn extent(figure: &CellFigure) -> Option<([f64; 2], [f64; 2])> {
    let mut extent: Option<([f64; 2], [f64; 2])> = None;
    for piece in &figure.pieces {
        let [[x0, y0], [x1, y1]] = piece.ends;
        let length = (x1 - x0).hypot(y1 - y0);
        // How far a mantle reaches beyond its axis, in x and in y.
        let (across, up) = if length > 0.0 { ((y1 - y0).abs() / length, (x1 - x0).abs() / length) } else { (1.0, 1.0) };
        for ([x, y], diam) in piece.ends.into_iter().zip(piece.diam) {
            let reach = [0.5 * diam * across, 0.5 * diam * up];
            let (low, high) = extent.get_or_insert(([x, y], [x, y]));
            for (axis, at) in [x, y].into_iter().enumerate() {
                low[axis] = low[axis].min(at - reach[axis]);
                high[axis] = high[axis].max(at + reach[axis]);
            }
        }
    }
    extent
}

fn colors(colours: &CellColours) -> (Vec<RGBColor>, Key) {
    match colours {
        CellColours::Parts(names) => {
            let color = |at: usize| style::LINES[at % style::LINES.len()];
            let names: Vec<(RGBColor, String)> =
                names.iter().enumerate().map(|(at, name)| (color(at), shortened(name, LEGEND_SIZE, 220.0))).collect();
            (names.iter().map(|(color, _)| *color).collect(), Key::Parts(names))
        }
        CellColours::Numbers { name, unit, values } => {
            let scale = Scale::of(values.iter().copied(), 6);
            let label = shortened(&style::label(name, unit, &scale.factor()), LEGEND_SIZE, 220.0);
            (values.iter().map(|&x| scale.color(x)).collect(), Key::Bar(scale, label))
        }
    }
}
