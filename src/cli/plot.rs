//! `neuroc plot`.

use super::{Exit, complain, say};
use crate::plot::{self, PlotError, PlotKind, PlotOptions};
use crate::results::RunResult;
use clap::ValueEnum;
use std::path::PathBuf;

/// Draw a result.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example: neuroc plot squid.npz -o squid.png --series soma.v")]
pub struct Args {
    /// What `neuroc run -o` wrote
    #[arg(value_name = "RESULT.npz")]
    file: PathBuf,
    /// The picture, .svg or .png; RESULT.svg by default
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// What to draw
    #[arg(long, value_enum, default_value = "all")]
    kind: Kind,
    /// Draw these quantities only (a name or the end of one, * for any text; repeatable)
    #[arg(long, value_name = "NAME")]
    series: Vec<String>,
    /// From this time on, in ms
    #[arg(long, value_name = "MS", value_parser = ms, allow_hyphen_values = true)]
    from: Option<f64>,
    /// Up to this time, in ms
    #[arg(long, value_name = "MS", value_parser = ms, allow_hyphen_values = true)]
    to: Option<f64>,
    /// Width in pixels
    #[arg(long, value_name = "PIXELS")]
    width: Option<u32>,
    /// Height in pixels
    #[arg(long, value_name = "PIXELS")]
    height: Option<u32>,
    /// Title instead of the model's name
    #[arg(long)]
    title: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Kind {
    /// Traces, rasters and rates
    All,
    /// Recorded quantities over time
    Traces,
    /// Spikes
    Raster,
    /// Population rates
    Rates,
}

/// Reads the result and draws it.
pub fn run(args: &Args) -> Exit {
    let result = match RunResult::read_npz(&args.file) {
        Ok(result) => result,
        Err(error) => {
            complain(error);
            return Exit::Model;
        }
    };
    let defaults = PlotOptions::default();
    let window = match (args.from, args.to) {
        (None, None) => None,
        (from, to) => Some((from.unwrap_or(f64::MIN), to.unwrap_or(f64::MAX))),
    };
    let options = PlotOptions {
        kind: match args.kind {
            Kind::All => PlotKind::All,
            Kind::Traces => PlotKind::Traces,
            Kind::Raster => PlotKind::Raster,
            Kind::Rates => PlotKind::Rates,
        },
        series: args.series.clone(),
        window,
        width: args.width.unwrap_or(defaults.width),
        height: args.height.or(defaults.height),
        title: args.title.clone(),
        ..defaults
    };
    let path = args.output.clone().unwrap_or_else(|| args.file.with_extension("svg"));
    match plot::draw(&result, &path, &options) {
        Ok(()) => {
            say(format!("drew {}", path.display()));
            Exit::Fine
        }
        Err(error) => {
            complain(&error);
            match error {
                PlotError::Extension(_) | PlotError::Options(_) => Exit::Usage,
                PlotError::Nothing(_) | PlotError::Results(_) | PlotError::Write { .. } | PlotError::Drawing(_) => {
                    Exit::Model
                }
            }
        }
    }
}

fn ms(text: &str) -> Result<f64, String> {
    text.parse().ok().filter(|x: &f64| x.is_finite()).ok_or("a number of ms is needed".into())
}
