//! Figures of what a run produced: traces, spike rasters, population rates, intervals between spikes, correlations, spectra, rates of cells, values along a
//! cell; and of cells.
//!
//! Results and options come in; out goes one SVG, PNG or PDF file with panels stacked over a shared axis, mostly that of time. What is drawn is
//! thinned to what the eye can see, but an extreme value never vanishes, and a value that is not a number is a gap. The results are never changed, and no number is computed here that a figure does not show.
//!
//! # What is drawn
//!
//! - Series of one population with the same last name part and the same unit share a panel (`cell.soma.v` and
//!   `cell.dend.v`); dimensionless ones that stay within 0 to 1 (gates) share one as well. A panel shows at most eight
//!   lines: of more cells some from the first to the last, unless [`PlotOptions::cells`] says which, and the legend says "8 of 729 cells". Where every
//!   line is another cell, a cell has the same colour in all panels.
//! - Each population with recorded spikes has a raster. Of more than 20 000 spikes, those of every second (third, ...) cell are drawn, and the
//!   heading says so. The spikes of a single cell are ticks above its voltage instead,
//!   where that is drawn.
//! - Of a sweep, each population with recorded spikes has its mean rate over the values of one axis, or a map over those of two
//!   ([`PlotOptions::against`]: lines over one of them, coloured by the other). Where no spikes are recorded, traces of up to 24 runs of one axis are drawn,
//!   coloured by the value, and of two a map of the largest values.
//! - Each population of at least 20 cells has a rate in spikes per second and cell. Its bin is the smallest of 1, 2, 5,
//!   10, … ms that divides the time shown into at most 200 bins, unless [`PlotOptions::bin`] says otherwise; the
//!   panel's heading states it.
//!
//! - Correlations are those of the numbers of spikes in bins of 2 ms, of up to 200 cells with spikes; spectra those of rates in such bins, and of
//!   recorded variables averaged over them, by Welch's method: Hann's window, pieces that overlap by half, at least eight of them.
//!
//! In a PNG and a PDF, text is set in Ubuntu Light, which knows Latin, Greek and Cyrillic letters; in an SVG, in the viewer's
//! sans-serif.

mod axis;
mod canvas;
mod cell;
mod cell_rates;
mod correlations;
mod decimate;
mod figure;
mod histogram;
mod intervals;
mod panels;
mod pdf;
mod raster;
mod rates;
mod scale;
mod space;
mod spectrum;
mod style;
mod supersample;
mod sweep;
mod traces;

#[cfg(test)]
mod tests;

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

pub use cell::{CellColours, CellFigure, CellPiece, draw_cell, render_cell};

pub(crate) use axis::round_up;
pub(crate) use panels::{Group, common_parts, groups, parts};
pub(crate) use rates::bin_of;
pub(crate) use style::{quantity, unit};

use crate::results::{Found, Pending, ResultsError, RunResult};

/// Which panels a figure has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum PlotKind {
    /// Every panel the results have data for.
    #[default]
    All,
    /// Recorded variables over time.
    Traces,
    /// One mark per spike, a row per cell.
    Raster,
    /// Population rates, of populations of any size.
    Rates,
    /// Histograms of the intervals between the spikes of each cell.
    Intervals,
    /// Histograms of the correlations between the cells of a population.
    Correlations,
    /// The power of rates and recorded variables over frequencies.
    Spectrum,
    /// The rate of each cell, against a parameter or in the order of the cells: an f-I curve.
    Cells,
    /// What was recorded in the compartments of a cell, along the way from the root.
    Space,
}

impl PlotKind {
    /// Does it show recorded variables, and does it show spikes?
    fn shows(self) -> (bool, bool) {
        match self {
            // The spikes of a single cell are drawn above its voltage.
            PlotKind::All | PlotKind::Traces | PlotKind::Spectrum => (true, true),
            PlotKind::Space => (true, false),
            PlotKind::Raster | PlotKind::Rates | PlotKind::Intervals | PlotKind::Correlations | PlotKind::Cells => {
                (false, true)
            }
        }
    }
}

/// What to draw and how large.
#[derive(Debug, Clone, PartialEq)]
pub struct PlotOptions {
    /// Which panels to draw.
    pub kind: PlotKind,
    /// Only series and spike trains (named `POP.spikes`) that match one of these; all if empty. A pattern matches a
    /// whole name or its last parts (`soma.v`), and `*` stands for any text.
    pub series: Vec<String>,
    /// The cells whose traces, spikes and intervals are drawn, each named once; chosen for each panel if empty.
    pub cells: Vec<u64>,
    /// The parameter of the cells that their rates are drawn against; their numbers if `None`. Of a sweep of two axes, the one along which lines are drawn.
    pub against: Option<String>,
    /// Of [`PlotKind::Space`]: the times in ms at which values are drawn over the distance; at all times, in colours over time and distance, if empty.
    pub at: Vec<f64>,
    /// Of [`PlotKind::Space`]: the compartment, or the section, that the way leads to; the farthest if `None`.
    pub along: Option<String>,
    /// First and last time shown, in ms; everything if `None`.
    pub window: Option<(f64, f64)>,
    /// Width in pixels, 300 to 10000.
    pub width: u32,
    /// Height in pixels, at most 10000; if `None`, what the panels need.
    pub height: Option<u32>,
    /// Bin width of population rates, correlations and spectra in ms; see the [module](self) for `None`.
    pub bin: Option<f64>,
    /// Text above the figure; if `None`, the string `model` in the results' metadata.
    pub title: Option<String>,
}

impl Default for PlotOptions {
    fn default() -> Self {
        PlotOptions {
            kind: PlotKind::All,
            series: Vec::new(),
            cells: Vec::new(),
            against: None,
            at: Vec::new(),
            along: None,
            window: None,
            width: 1200,
            height: None,
            bin: None,
            title: None,
        }
    }
}

/// A file format figures can be written in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ImageFormat {
    /// Vector graphics.
    Svg,
    /// Pixels.
    Png,
    /// Vector graphics on one page, a point to a pixel; text as outlines.
    Pdf,
}

impl ImageFormat {
    /// The format a file name asks for by its extension, in any case.
    ///
    /// # Errors
    /// [`PlotError::Extension`] for any other extension.
    pub fn of(path: &Path) -> Result<ImageFormat, PlotError> {
        let extension = path.extension().map(|e| e.to_string_lossy().to_lowercase());
        match extension.as_deref() {
            Some("svg") => Ok(ImageFormat::Svg),
            Some("png") => Ok(ImageFormat::Png),
            Some("pdf") => Ok(ImageFormat::Pdf),
            _ => Err(PlotError::Extension(path.to_owned())),
        }
    }
}

/// Why a figure was not drawn.
#[derive(Debug)]
pub enum PlotError {
    /// The file name ends in something other than `.svg`, `.png` or `.pdf`.
    Extension(PathBuf),
    /// The options ask for something that cannot be drawn; the text says what.
    Options(String),
    /// The results, or what is left of them after the options, have nothing to draw; the text says why.
    Nothing(String),
    /// The results contradict themselves.
    Results(ResultsError),
    /// The file could not be written; whatever stood at `path` before is untouched.
    Write {
        /// The file that was to be written.
        path: PathBuf,
        /// The cause in plain words.
        reason: String,
        /// The cause as the operating system gave it.
        source: io::Error,
    },
    /// The drawing library failed.
    Drawing(String),
}

impl fmt::Display for PlotError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PlotError::Extension(path) => {
                write!(f, "cannot draw `{}`: the name must end in .svg, .png or .pdf", path.display())
            }
            PlotError::Options(what) => write!(f, "cannot draw this figure: {what}"),
            PlotError::Nothing(why) => write!(f, "there is nothing to draw: {why}"),
            PlotError::Results(e) => e.fmt(f),
            PlotError::Write { path, reason, .. } => {
                write!(f, "cannot write `{}`: {reason}", path.display())
            }
            PlotError::Drawing(what) => write!(f, "drawing failed: {what}"),
        }
    }
}

impl std::error::Error for PlotError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            PlotError::Results(e) => Some(e),
            PlotError::Write { source, .. } => Some(source),
            PlotError::Extension(_) | PlotError::Options(_) | PlotError::Nothing(_) | PlotError::Drawing(_) => None,
        }
    }
}

/// Draws a figure of `result` into the file `path`, replacing what was there in one step.
///
/// # Errors
/// See [`PlotError`]; nothing new is left on disk.
pub fn draw(result: &RunResult, path: &Path, options: &PlotOptions) -> Result<(), PlotError> {
    write(path, &render(result, ImageFormat::of(path)?, options)?)
}

/// Draws a figure of what a file holds, as [`draw`].
///
/// # Errors
/// See [`PlotError`]; nothing new is left on disk.
pub fn draw_found(found: &Found, path: &Path, options: &PlotOptions) -> Result<(), PlotError> {
    match found {
        Found::Run(result) => draw(result, path, options),
        Found::Sweep(sweep) => {
            let format = ImageFormat::of(path)?;
            write(path, &drawn(&figure::Figure::plan_sweep(sweep, options)?, format)?)
        }
    }
}

fn write(path: &Path, image: &[u8]) -> Result<(), PlotError> {
    Pending::new(path, |file| io::Write::write_all(file, image))
        .and_then(Pending::commit)
        .map_err(|e| PlotError::Write { path: e.path, reason: e.reason, source: e.source })
}

/// Draws a figure of `result` and returns the bytes of the file.
///
/// # Errors
/// As [`draw`], except for those of writing.
pub fn render(result: &RunResult, format: ImageFormat, options: &PlotOptions) -> Result<Vec<u8>, PlotError> {
    result.check().map_err(PlotError::Results)?;
    drawn(&figure::Figure::plan(result, options)?, format)
}

fn drawn(figure: &figure::Figure<'_>, format: ImageFormat) -> Result<Vec<u8>, PlotError> {
    let drawn = match format {
        ImageFormat::Svg => canvas::svg(figure.size(), |canvas| figure.draw(canvas)),
        ImageFormat::Png => supersample::png(figure.size(), |canvas| figure.draw(canvas)),
        ImageFormat::Pdf => pdf::pdf(figure.size(), |canvas| figure.draw(canvas)),
    };
    drawn.map_err(PlotError::Drawing)
}
