//! `neuroc plot`.

mod cell;

use super::{Exit, complain, misused, say, writable};
use crate::plot::{self, PlotError, PlotKind, PlotOptions};
use crate::report::{self, About, Thinned};
use crate::results::{Found, Reading};
use clap::ValueEnum;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Draw a result, or the cell of a model.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example: neuroc plot squid.npz -o squid.png --series soma.v
         neuroc plot --morphology examples/pyramidal.neuro --colour Ih.gbar -o pyramidal.png")]
pub struct Args {
    /// What `neuroc run -o` wrote
    #[arg(value_name = "RESULT.npz", required_unless_present = "morphology")]
    file: Option<PathBuf>,
    /// Draw the shape of a cell of this model; with a RESULT in the colours of what was recorded in its compartments
    #[arg(long, value_name = "MODEL.neuro")]
    morphology: Option<PathBuf>,
    /// With --morphology: which population or cell; the first with sections by default
    #[arg(long, value_name = "NAME", requires = "morphology")]
    cell: Option<String>,
    /// With --morphology: the parameter (such as Ih.gbar), or of a RESULT the record (such as v), that the colours show; the regions without it
    #[arg(long, alias = "color", value_name = "NAME", requires = "morphology")]
    colour: Option<String>,
    /// With --morphology and a RESULT, or with --kind space: at this time (with --kind space, at these: 5ms,6ms)
    #[arg(long, value_name = "TIMES", value_parser = moment, value_delimiter = ',', allow_hyphen_values = true)]
    at: Vec<f64>,
    /// With --kind space: the section or compartment, such as apic[3] or "dend(0.25)", that the way leads to; the farthest by default
    #[arg(long, value_name = "PLACE")]
    along: Option<String>,
    /// The picture, .svg, .png or .pdf; RESULT.svg (MODEL.CELL.svg) by default. Or, of a RESULT alone, .html: a page with plots that zoom
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// What to draw
    #[arg(long, value_enum, default_value = "all")]
    kind: Kind,
    /// Draw these quantities only (a name or the end of one, * for any text; repeatable)
    #[arg(long, value_name = "NAME")]
    series: Vec<String>,
    /// Draw these cells only, such as 0,5,20..25 (the end is not included)
    #[arg(long, value_name = "CELLS", value_parser = cells)]
    cells: Option<Cells>,
    /// With --kind cells: the parameter to draw rates against (a name or the end of one); the number of the cell without it. Of a sweep of two axes:
    /// the one along which lines are drawn, instead of a map
    #[arg(long, value_name = "NAME")]
    against: Option<String>,
    /// From this time on, such as 20ms (a bare number: ms)
    #[arg(long, value_name = "TIME", value_parser = moment, allow_hyphen_values = true)]
    from: Option<f64>,
    /// Up to this time
    #[arg(long, value_name = "TIME", value_parser = moment, allow_hyphen_values = true)]
    to: Option<f64>,
    /// The width of the bins of rates, correlations and spectra, such as 2ms
    #[arg(long, value_name = "TIME", value_parser = moment)]
    bin: Option<f64>,
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
    /// Histograms of the intervals between spikes, with their mean and coefficient of variation
    Isi,
    /// Histograms of the correlations between the cells of a population: of their numbers of spikes in bins (--bin)
    Correlation,
    /// The power of population rates and of recorded quantities over frequencies
    Spectrum,
    /// The rate of each cell: an f-I curve
    Cells,
    /// What was recorded in the compartments of a cell (`record cells.all.v`), over time and distance or, with --at, over distance
    Space,
}

/// Numbers of cells, each once, in the order in which they are named.
#[derive(Debug, Clone)]
struct Cells(Vec<u64>);

/// Reads the result and draws it.
pub fn run(args: &Args) -> Exit {
    if let Some(model) = &args.morphology {
        return cell::run(args, model);
    }
    let Some(file) = &args.file else { return Exit::Usage };
    let space = args.kind == Kind::Space;
    let binned = matches!(args.kind, Kind::All | Kind::Rates | Kind::Correlation | Kind::Spectrum);
    let against = matches!(args.kind, Kind::All | Kind::Rates | Kind::Cells);
    for (option, given, fits, meant) in [
        ("--at", !args.at.is_empty(), space, "--kind space"),
        ("--along", args.along.is_some(), space, "--kind space"),
        ("--bin", args.bin.is_some(), binned, "--kind rates, correlation and spectrum"),
        ("--against", args.against.is_some(), against, AGAINST),
    ] {
        if given && !fits {
            complain(format!("`{option}` is for {meant}"));
            return Exit::Usage;
        }
    }
    if args.along.is_some() && !args.at.is_empty() {
        complain("`--along` is for all times: with --at, all compartments are drawn");
        return Exit::Usage;
    }
    if let Some(path) = args.output.as_deref().filter(|path| report::is_page(path)) {
        return page(args, file, path);
    }
    // All of what is drawn but of chosen parts, where more than is seen at once may be needed.
    let few = args.cells.is_none() && args.from.is_none() && args.to.is_none() && !space;
    let (samples, columns) = super::run::DRAWN;
    let reading = Reading {
        // What is thinned has other frequencies.
        samples: (few && args.kind != Kind::Spectrum).then_some(samples),
        columns: few.then_some(columns),
        no_parameters: args.against.is_none(),
    };
    let result = match Found::read(file, &reading) {
        Ok(result) => result,
        Err(error) => return misused(error),
    };
    let (axes, cells) = match &result {
        Found::Run(_) => (0, args.kind == Kind::Cells),
        Found::Sweep(sweep) => (sweep.shape.len(), false),
    };
    if args.against.is_some() && axes != 2 && !cells {
        complain(format!("`--against` is for {AGAINST}"));
        return Exit::Usage;
    }
    if args.bin.is_some() && axes > 0 {
        complain("`--bin` is for single runs: of a sweep, rates are those of the whole time that is shown");
        return Exit::Usage;
    }
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
            Kind::Isi => PlotKind::Intervals,
            Kind::Correlation => PlotKind::Correlations,
            Kind::Spectrum => PlotKind::Spectrum,
            Kind::Cells => PlotKind::Cells,
            Kind::Space => PlotKind::Space,
        },
        series: args.series.clone(),
        cells: args.cells.as_ref().map_or(Vec::new(), |cells| cells.0.clone()),
        against: args.against.clone(),
        at: args.at.clone(),
        along: args.along.clone(),
        window,
        bin: args.bin,
        width: args.width.unwrap_or(defaults.width),
        height: args.height.or(defaults.height),
        title: args.title.clone(),
    };
    let path = args.output.clone().unwrap_or_else(|| file.with_extension("svg"));
    drawn(&path, || plot::draw_found(&result, &path, &options))
}

/// What `--against` is for.
const AGAINST: &str = "--kind cells, and for rates or largest values of a sweep of two axes";

/// Draws, and says what became of it.
fn drawn(path: &Path, draw: impl FnOnce() -> Result<(), PlotError>) -> Exit {
    if let Err(exit) = writable(path) {
        return exit;
    }
    match draw() {
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

/// Reads the result and writes a page of all of it.
fn page(args: &Args, file: &Path, path: &Path) -> Exit {
    let chosen = [
        ("--kind", args.kind != Kind::All),
        ("--series", !args.series.is_empty()),
        ("--cells", args.cells.is_some()),
        ("--against", args.against.is_some()),
        ("--from", args.from.is_some()),
        ("--to", args.to.is_some()),
        ("--bin", args.bin.is_some()),
        ("--width", args.width.is_some()),
        ("--height", args.height.is_some()),
    ];
    if let Some((option, _)) = chosen.iter().find(|(_, given)| *given) {
        complain(format!("`{option}` is for pictures (.svg, .png, .pdf): a page shows everything, and zooms"));
        return Exit::Usage;
    }
    let about = About { title: args.title.clone(), ..About::default() };
    let thinned = Thinned::read(file).map_err(|error| error.to_string());
    match thinned.and_then(|thinned| report::write(path, &thinned, &about)) {
        Ok(()) => {
            say(format!("wrote {}", path.display()));
            Exit::Fine
        }
        Err(message) => misused(message),
    }
}

/// A time in ms: with a unit, or a bare number of ms.
fn moment(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(x) if x.is_finite() => Ok(x),
        Ok(_) => Err("it is not a time".into()),
        Err(_) => super::settings::moment(text),
    }
}

fn cells(text: &str) -> Result<Cells, String> {
    const MOST: u64 = 100_000;
    let number =
        |text: &str| text.trim().parse::<u64>().map_err(|_| format!("`{}` is no number of a cell", text.trim()));
    let mut all = Vec::new();
    for part in text.split(',') {
        match part.split_once("..") {
            None => all.push(number(part)?),
            Some((first, end)) => {
                let (first, end) = (number(first)?, number(end)?);
                if first >= end || end - first > MOST {
                    return Err(format!("`{}` is no range of 1 to {MOST} cells", part.trim()));
                }
                all.extend(first..end);
            }
        }
    }
    // A cell that is named twice is one cell; the first that is named is drawn where one alone is.
    let mut known = BTreeSet::new();
    all.retain(|cell| known.insert(*cell));
    Ok(Cells(all))
}
