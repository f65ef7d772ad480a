//! Which panels a figure has, and what is in each.
//!
//! Results and options come in; out goes a list of panels from top to bottom, each with borrowed data, and the time they
//! share. A panel is never empty, and nothing here knows a pixel.

use crate::results::{ParameterValues, RunResult, Series, SpikeTrain, spread};

use super::cell_rates::CellRates;
use super::correlations::Correlations;
use super::intervals::Intervals;
use super::raster::Raster;
use super::rates::{Rate, unfit};
use super::scale::Scale;
use super::space::{Cell, Heat, Profile};
use super::spectrum::{self, Spectrum};
use super::style;
use super::sweep::{Curves, Map};
use super::traces::{Line, Traces};
use super::{PlotError, PlotKind, PlotOptions};

/// One set of axes.
pub struct Panel<'a> {
    pub heading: String,
    pub body: Body<'a>,
}

/// What a panel shows.
pub enum Body<'a> {
    Traces(Traces<'a>),
    Raster(Raster<'a>),
    Rate(Rate),
    Intervals(Intervals),
    Correlations(Correlations),
    Spectrum(Spectrum),
    CellRates(CellRates),
    Curves(Curves),
    /// With the label of the vertical axis.
    Map(Map, String),
    Profile(Profile<'a>),
    Heat(Heat<'a>),
}

impl Body<'_> {
    /// The colours of its numbers, if it has some.
    pub fn scale(&self) -> Option<&Scale> {
        match self {
            Body::Map(map, _) => Some(&map.scale),
            Body::Heat(heat) => Some(&heat.scale),
            Body::Traces(_)
            | Body::Raster(_)
            | Body::Rate(_)
            | Body::Intervals(_)
            | Body::Correlations(_)
            | Body::Spectrum(_)
            | Body::CellRates(_)
            | Body::Curves(_)
            | Body::Profile(_) => None,
        }
    }
}

/// What panels share: a range, and what it is.
#[derive(Debug, Clone, PartialEq)]
pub struct Along {
    pub range: (f64, f64),
    /// The label of the axis; `None` if it is the time in ms.
    pub label: Option<String>,
}

/// Population rates are drawn unasked from this many cells on.
const CELLS_FOR_A_RATE: usize = 20;

/// What is said where no chosen cell can be drawn.
pub const NO_CELL: &str = "none of these cells is there, or recorded";

/// The panels, and what they show along their axis.
pub fn select<'a>(result: &'a RunResult, options: &PlotOptions) -> Result<(Vec<Panel<'a>>, Along), PlotError> {
    let chosen = |name: &str| options.series.is_empty() || options.series.iter().any(|p| matches(p, name));
    let (want_series, want_spikes) = options.kind.shows();
    let mut series: Vec<&Series> = result.series.iter().filter(|s| want_series && chosen(&s.name)).collect();
    if options.kind == PlotKind::Space && series.iter().any(|s| s.compartments.is_some()) {
        series.retain(|s| s.compartments.is_some());
    }
    let trains: Vec<&SpikeTrain> =
        result.spikes.iter().filter(|s| want_spikes && s.cells > 0 && chosen(&spikes_name(s))).collect();
    if series.is_empty() && (trains.is_empty() || matches!(options.kind, PlotKind::Traces | PlotKind::Space)) {
        return Err(nothing(result, options));
    }
    // The spectrum of a rate is that of the whole run, whatever else was recorded when.
    let spans = if options.kind == PlotKind::Spectrum && !trains.is_empty() { &[][..] } else { &series[..] };
    let window = window(result, spans, &trains, options)?;
    // Whether traces, rasters and the rates of large populations are drawn.
    let (drawn, raster, rates) = match options.kind {
        PlotKind::Intervals => return Ok(intervals(&trains, window, options)),
        PlotKind::Correlations => return correlations(&trains, window, options),
        PlotKind::Spectrum => return spectra(&series, &trains, window, options),
        PlotKind::Cells => return cell_rates(result, &trains, window, options),
        PlotKind::Space => return space(&series, window, options),
        PlotKind::All => (true, true, CELLS_FOR_A_RATE),
        PlotKind::Traces => (true, false, usize::MAX),
        PlotKind::Raster => (false, true, usize::MAX),
        PlotKind::Rates => (false, false, 0),
    };
    let mut panels = Vec::new();
    for population in populations(&series, &trains) {
        let train = trains.iter().copied().find(|s| s.population == population);
        let own: Vec<&Series> = series.iter().copied().filter(|s| s.population == population).collect();
        let mut ticks = train.filter(|s| s.cells == 1);
        let mut shown = Vec::new();
        for group in groups(&own, window) {
            panels.extend(traces(&group, &mut shown, &mut ticks, window, &options.cells));
        }
        let Some(train) = train else { continue };
        let drawn_above_voltage = drawn && train.cells == 1 && ticks.is_none();
        let any = options.cells.is_empty() || options.cells.iter().any(|cell| *cell < train.cells as u64);
        if raster && any && !drawn_above_voltage {
            let raster = Raster::new(train, window, &options.cells);
            panels.push(Panel { heading: raster.heading(), body: Body::Raster(raster) });
        }
        if train.cells >= rates && any {
            let rate = Rate::new(train, window, options.bin, &options.cells).map_err(PlotError::Options)?;
            panels.push(Panel { heading: rate.heading(&train.population), body: Body::Rate(rate) });
        }
    }
    if panels.is_empty() {
        let why = match options.cells.is_empty() {
            true => "the series have no columns",
            false => NO_CELL,
        };
        return Err(PlotError::Nothing(why.to_owned()));
    }
    Ok((panels, Along { range: window, label: None }))
}

/// A histogram for each population, all over the same intervals.
fn intervals<'a>(trains: &[&SpikeTrain], window: (f64, f64), options: &PlotOptions) -> (Vec<Panel<'a>>, Along) {
    let mut all: Vec<(&str, Intervals)> =
        trains.iter().map(|s| (s.population.as_str(), Intervals::new(s, window, &options.cells))).collect();
    let longest = all.iter().filter_map(|(_, i)| i.histogram.range()).map(|(_, longest)| longest).fold(0.0, f64::max);
    let longest = if longest > 0.0 { longest } else { 1.0 };
    all.iter_mut().for_each(|(_, intervals)| intervals.histogram.count((0.0, longest)));
    let panel = |(population, intervals): (&str, Intervals)| Panel {
        heading: intervals.heading(population),
        body: Body::Intervals(intervals),
    };
    let along = Along { range: (0.0, longest), label: Some("interval between spikes (ms)".into()) };
    (all.into_iter().map(panel).collect(), along)
}

/// Bins of correlations and spectra, in ms.
const BIN: f64 = 2.0;

/// The width of these bins.
fn bin(window: (f64, f64), options: &PlotOptions) -> Result<f64, PlotError> {
    let bin = options.bin.unwrap_or(BIN);
    unfit(bin, window).map_or(Ok(bin), |why| Err(PlotError::Options(why)))
}

/// A histogram for each population, all over the same coefficients.
fn correlations<'a>(
    trains: &[&SpikeTrain],
    window: (f64, f64),
    options: &PlotOptions,
) -> Result<(Vec<Panel<'a>>, Along), PlotError> {
    let bin = bin(window, options)?;
    let several = trains.iter().filter(|train| train.cells > 1);
    let mut all: Vec<(&str, Correlations)> =
        several.map(|s| (s.population.as_str(), Correlations::new(s, window, bin, &options.cells))).collect();
    let ranges = all.iter().filter_map(|(_, c)| c.histogram.range());
    let Some((low, high)) = ranges.reduce(|a, b| (a.0.min(b.0), a.1.max(b.1))) else {
        return Err(PlotError::Nothing("in no population do two cells spike".to_owned()));
    };
    let range = if low < high { (low, high) } else { (low - 0.5, high + 0.5) };
    all.iter_mut().for_each(|(_, correlations)| correlations.histogram.count(range));
    let panel = |(population, correlations): (&str, Correlations)| Panel {
        heading: correlations.heading(population),
        body: Body::Correlations(correlations),
    };
    let along = Along { range, label: Some("correlation of numbers of spikes".into()) };
    Ok((all.into_iter().map(panel).collect(), along))
}

/// The spectrum of each rate and each recorded variable, all over the same frequencies.
fn spectra<'a>(
    series: &[&Series],
    trains: &[&SpikeTrain],
    window: (f64, f64),
    options: &PlotOptions,
) -> Result<(Vec<Panel<'a>>, Along), PlotError> {
    let bin = bin(window, options)?;
    let (whole, pieces): (Vec<&Series>, Vec<&Series>) = series.iter().partition(|s| spectrum::is_even(&s.t));
    let of_series = whole.iter().map(|s| (s.name.clone(), Spectrum::of_series(s, window, bin, &options.cells)));
    let of_spikes = trains
        .iter()
        .map(|s| (format!("rate of {}", s.population), Spectrum::of_spikes(s, window, bin, &options.cells)));
    let all: Vec<(String, Spectrum)> =
        of_series.chain(of_spikes).filter_map(|(name, spectrum)| Some((name, spectrum?))).collect();
    let highest = all.iter().map(|(_, spectrum)| spectrum.highest()).fold(0.0, f64::max);
    if let (true, Some(piece)) = (all.is_empty(), pieces.first()) {
        let why = format!("`{}` was recorded in pieces: a spectrum is that of samples at equal distances", piece.name);
        return Err(PlotError::Nothing(why));
    }
    if all.is_empty() {
        let why = format!("in bins of {bin} ms, the time that is shown is too short for a spectrum");
        return Err(PlotError::Nothing(why));
    }
    let panel = |(name, spectrum): (String, Spectrum)| Panel {
        heading: spectrum.heading(&name),
        body: Body::Spectrum(spectrum),
    };
    let along = Along { range: (0.0, highest), label: Some("frequency (Hz)".into()) };
    Ok((all.into_iter().map(panel).collect(), along))
}

/// The rates of the cells of each population, over their numbers or over a parameter.
fn cell_rates<'a>(
    result: &RunResult,
    trains: &[&SpikeTrain],
    window: (f64, f64),
    options: &PlotOptions,
) -> Result<(Vec<Panel<'a>>, Along), PlotError> {
    let mut label = "cell".to_owned();
    let mut found: Vec<(&str, CellRates)> = Vec::new();
    for train in trains {
        let of_cell = match &options.against {
            None => (0..train.cells).map(|cell| cell as f64).collect(),
            Some(pattern) => {
                let of_population = result.parameters.iter().find_map(|p| match &p.values {
                    ParameterValues::PerCell { population, values }
                        if *population == train.population && matches(pattern, &p.name) =>
                    {
                        Some((style::quantity(&p.name, &p.unit), values.clone()))
                    }
                    ParameterValues::PerCell { .. } | ParameterValues::One(_) => None,
                });
                let Some((name, values)) = of_population else { continue };
                label = name;
                values
            }
        };
        found.push((&train.population, CellRates::new(train, window, &options.cells, &of_cell)));
    }
    let ranges = found.iter().filter_map(|(_, rates)| rates.range());
    let Some((low, high)) = ranges.reduce(|a, b| (a.0.min(b.0), a.1.max(b.1))) else {
        let each = |p: &&crate::results::Parameter| matches!(p.values, ParameterValues::PerCell { .. });
        let names: Vec<&str> = result.parameters.iter().filter(each).map(|p| p.name.as_str()).collect();
        return Err(match (&options.against, names.is_empty()) {
            (Some(name), true) => {
                PlotError::Nothing(format!("no parameter differs from cell to cell, `{name}` neither"))
            }
            (Some(name), false) => PlotError::Options(format!(
                "no parameter that differs from cell to cell is called `{name}`: there are {}",
                names.join(", ")
            )),
            (None, _) => PlotError::Nothing("none of these cells spikes".to_owned()),
        });
    };
    let range = if low < high { (low, high) } else { (low - 0.5, low + 0.5) };
    let panel = |(population, rates): (&str, CellRates)| Panel {
        heading: rates.heading(population),
        body: Body::CellRates(rates),
    };
    Ok((found.into_iter().map(panel).collect(), Along { range, label: Some(label) }))
}

/// What was recorded in compartments, over their distance.
fn space<'a>(
    series: &[&'a Series],
    window: (f64, f64),
    options: &PlotOptions,
) -> Result<(Vec<Panel<'a>>, Along), PlotError> {
    let cells: Vec<Cell<'a>> = series.iter().filter_map(|s| Cell::of(s, &options.cells)).collect();
    if cells.is_empty() {
        let of_compartments = series.iter().any(|s| s.compartments.is_some());
        return Err(PlotError::Nothing(match of_compartments {
            true => NO_CELL.into(),
            false => "nothing was recorded in the compartments of sections, as `record cells.all.v` does".into(),
        }));
    }
    if options.at.is_empty() {
        let heat = |cell| {
            let heat = Heat::new(cell, options, window)?;
            Ok(Panel { heading: heat.heading(), body: Body::Heat(heat) })
        };
        let panels = cells.into_iter().map(heat).collect::<Result<_, PlotError>>()?;
        return Ok((panels, Along { range: window, label: None }));
    }
    let profiles: Vec<Profile<'a>> = cells.into_iter().map(|c| Profile::new(c, options)).collect::<Result<_, _>>()?;
    let reach = profiles
        .iter()
        .map(Profile::reach)
        .fold((f64::INFINITY, f64::NEG_INFINITY), |a, b| (a.0.min(b.0), a.1.max(b.1)));
    let range = if reach.0 < reach.1 { reach } else { (reach.0 - 1.0, reach.0 + 1.0) };
    let panel = |profile: Profile<'a>| Panel { heading: profile.heading(), body: Body::Profile(profile) };
    Ok((profiles.into_iter().map(panel).collect(), Along { range, label: Some("distance (um)".into()) }))
}

fn spikes_name(train: &SpikeTrain) -> String {
    format!("{}.spikes", train.population)
}

/// Why there is nothing: the results hold none of it, or none of the name that is asked for.
fn nothing(result: &RunResult, options: &PlotOptions) -> PlotError {
    let (of_series, of_spikes) = options.kind.shows();
    // Spikes alone are no traces.
    let of_spikes = of_spikes && options.kind != PlotKind::Traces;
    let series = result.series.iter().filter(|_| of_series).map(|s| s.name.clone());
    let mut names: Vec<String> = series.chain(result.spikes.iter().filter(|_| of_spikes).map(spikes_name)).collect();
    let what = match (of_series, of_spikes) {
        (true, true) => "series and no spikes",
        (true, false) => "series",
        (false, _) => "spikes",
    };
    if names.is_empty() || options.series.is_empty() {
        return PlotError::Nothing(format!("the results hold no {what}"));
    }
    let more = names.len().saturating_sub(20);
    names.truncate(20);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    let (asked, names) = (options.series.join(" or "), names.join(", "));
    PlotError::Options(format!("no name matches {asked}; there are {names}{more}"))
}

/// Whether a pattern with `*` for any text matches the whole name or its last parts.
pub fn matches(pattern: &str, name: &str) -> bool {
    let ends = name.match_indices('.').map(|(dot, _)| &name[dot + 1..]);
    std::iter::once(name).chain(ends).any(|end| glob(pattern, end))
}

fn glob(pattern: &str, text: &str) -> bool {
    let Some((start, rest)) = pattern.split_once('*') else {
        return pattern == text;
    };
    let Some(mut text) = text.strip_prefix(start) else {
        return false;
    };
    let mut pieces: Vec<&str> = rest.split('*').collect();
    let end = pieces.pop().unwrap_or("");
    for piece in pieces {
        let Some(at) = text.find(piece) else {
            return false;
        };
        text = &text[at + piece.len()..];
    }
    text.ends_with(end)
}

fn window(
    result: &RunResult,
    series: &[&Series],
    trains: &[&SpikeTrain],
    options: &PlotOptions,
) -> Result<(f64, f64), PlotError> {
    let mut low = f64::INFINITY;
    let mut high = f64::NEG_INFINITY;
    for s in series {
        low = s.t.first().map_or(low, |t| low.min(*t));
        high = s.t.last().map_or(high, |t| high.max(*t));
    }
    // A run starts before anything fired.
    if series.is_empty() {
        let (first, last) = result.extent();
        (low, high) = (first, last.unwrap_or(first));
    }
    for t in trains.iter().flat_map(|s| &s.t) {
        (low, high) = (low.min(*t), high.max(*t));
    }
    if low > high {
        return Err(PlotError::Nothing("the run recorded no sample".to_owned()));
    }
    let (first, last) = options.window.map_or(Ok((low, high)), |asked| within(asked, (low, high), "run"))?;
    Ok(if first < last { (first, last) } else { (first, first + 1.0) })
}

/// The time window that is asked for, of what (a run, or runs) has samples from `low` to `high`. An end that is not given
/// is that of the samples.
pub fn within((first, last): (f64, f64), (low, high): (f64, f64), what: &str) -> Result<(f64, f64), PlotError> {
    if !(first.is_finite() && last.is_finite() && first < last) {
        return Err(PlotError::Options(format!("a time window from {first} ms to {last} ms is empty")));
    }
    let asked = match (first, last) {
        (first, f64::MAX) => format!("from {first} ms on"),
        (f64::MIN, last) => format!("up to {last} ms"),
        (first, last) => format!("from {first} ms to {last} ms"),
    };
    if last < low || first > high {
        let why = format!("the time window {asked} is outside the {what}, from {low} ms to {high} ms");
        return Err(PlotError::Nothing(why));
    }
    Ok((if first == f64::MIN { low } else { first }, if last == f64::MAX { high } else { last }))
}

/// The populations in the order in which they were recorded.
fn populations<'a>(series: &[&'a Series], trains: &[&'a SpikeTrain]) -> Vec<&'a str> {
    let mut all: Vec<&str> = Vec::new();
    let of_series = series.iter().map(|s| s.population.as_str());
    for population in of_series.chain(trains.iter().map(|s| s.population.as_str())) {
        if !all.contains(&population) {
            all.push(population);
        }
    }
    all
}

fn quantity_of(name: &str) -> &str {
    parts(name).pop().unwrap_or(name)
}

/// Series that share a panel, and whether they share it because they are fractions.
pub struct Group<'a> {
    pub series: Vec<&'a Series>,
    pub fraction: bool,
}

/// The series of a population, as they share panels.
pub fn groups<'a>(series: &[&'a Series], window: (f64, f64)) -> Vec<Group<'a>> {
    let mut groups: Vec<Group<'a>> = Vec::new();
    for &s in series {
        let fraction = s.unit == "1" && is_fraction(s, window);
        let alike = |g: &Group| {
            let first = g.series[0];
            let same = quantity_of(&first.name) == quantity_of(&s.name);
            // What is of compartments has a panel of its own.
            let alike = first.unit == s.unit && first.compartments.is_some() == s.compartments.is_some();
            g.fraction == fraction && (fraction || same) && alike
        };
        match groups.iter_mut().find(|g| alike(g) && g.series.len() < style::MOST_LINES) {
            Some(group) => group.series.push(s),
            None => groups.push(Group { series: vec![s], fraction }),
        }
    }
    groups
}

/// Whether all samples that could be drawn are within 0 to 1, but for rounding.
fn is_fraction(s: &Series, window: (f64, f64)) -> bool {
    let (_, width) = s.values.shape();
    let line = |column| Line { label: String::new(), series: s, column, color: style::LINES[0] };
    (0..width.min(style::MOST_LINES))
        .filter_map(|column| line(column).extremes(window))
        .all(|(low, high)| low >= -0.01 && high <= 1.01)
}

fn traces<'a>(
    group: &Group<'a>,
    shown: &mut Vec<u64>,
    ticks: &mut Option<&'a SpikeTrain>,
    window: (f64, f64),
    cells: &[u64],
) -> Option<Panel<'a>> {
    let names: Vec<Vec<&str>> = group.series.iter().map(|s| parts(&s.name)).collect();
    let (before, after) = common_parts(&names);
    let most = (style::MOST_LINES / names.len()).max(1);
    let widest_of = group.series.iter().copied().max_by_key(|s| s.whole).unwrap_or(group.series[0]);
    let widest = widest_of.whole;
    let mut lines = Vec::new();
    for (series, parts) in group.series.iter().zip(&names) {
        let (_, width) = series.values.shape();
        let own = parts[before..parts.len() - after].join(".");
        let chosen: Vec<usize> = match cells.is_empty() {
            true => spread(width, most),
            false => {
                let of =
                    |cell: &u64| -> Vec<usize> { (0..width).filter(|&c| series.cells.get(c) == Some(cell)).collect() };
                let all: Vec<usize> = cells.iter().flat_map(of).collect();
                // Of several cells the first are drawn, of compartments some from the first to the last.
                match series.compartments {
                    None => all.into_iter().take(most).collect(),
                    Some(_) => spread(all.len(), most).into_iter().map(|k| all[k]).collect(),
                }
            }
        };
        for column in chosen {
            let cell = series.cells.get(column).copied().unwrap_or(column as u64);
            let label = match (width, names.len()) {
                (1, _) if series.whole == 1 => own.clone(),
                (_, 1) => series.column(column),
                (_, _) if series.compartments.is_some() => format!("{own}: {}", series.column(column)),
                (_, _) => format!("{own} [{cell}]"),
            };
            // A cell has one colour, unless it has several lines here.
            let of_cells = series.compartments.is_none();
            let color = if names.len() == 1 && width > 1 && of_cells { place_of(shown, cell) } else { lines.len() };
            let color = style::LINES[color % style::LINES.len()];
            lines.push(Line { label, series, column, color });
        }
    }
    let first = group.series[0];
    let heading = match names.as_slice() {
        [_] => first.name.clone(),
        [parts, ..] => parts[..before].join("."),
        [] => String::new(),
    };
    let quantity = quantity_of(&first.name);
    let same_quantity = group.series.iter().all(|s| quantity_of(&s.name) == quantity);
    let is_voltage = quantity == "v" || quantity == "V" || matches!(first.unit.as_str(), "mV" | "V");
    let spikes = if is_voltage { ticks.take() } else { None };
    let drawn = lines.len() / names.len().max(1);
    let note = (widest > drawn).then(|| format!("{drawn} of {widest} {}s", widest_of.element()));
    let traces = Traces {
        quantity: if same_quantity { quantity.to_owned() } else { "gates".to_owned() },
        unit: first.unit.clone(),
        spikes: spikes.map(|s| s.t.iter().copied().filter(|t| (window.0..=window.1).contains(t)).collect()),
        fraction: group.fraction,
        lines,
        note,
    };
    if traces.lines.is_empty() { None } else { Some(Panel { heading, body: Body::Traces(traces) }) }
}

/// Where a cell is among those that are shown, at the end if it is new.
fn place_of(shown: &mut Vec<u64>, cell: u64) -> usize {
    let known = shown.iter().position(|c| *c == cell);
    known.unwrap_or_else(|| {
        shown.push(cell);
        shown.len() - 1
    })
}

/// The parts of a name between dots; those within brackets (`squid[0..10]`, `dend(0.5)`) part nothing.
pub fn parts(name: &str) -> Vec<&str> {
    let mut inside = false;
    name.split(|c| {
        inside = (inside || matches!(c, '[' | '(')) && !matches!(c, ']' | ')');
        c == '.' && !inside
    })
    .collect()
}

/// How many parts all names share at the beginning and, beyond those, at the end; each keeps at least one of its own.
pub fn common_parts(names: &[Vec<&str>]) -> (usize, usize) {
    let shortest = names.iter().map(Vec::len).min().unwrap_or(1);
    let shared = |part: &dyn Fn(&Vec<&str>) -> String| {
        let mut parts = names.iter().map(part);
        let first = parts.next();
        parts.all(|p| Some(p) == first)
    };
    if names.len() == 1 {
        return (shortest - 1, 0);
    }
    let before = (0..shortest - 1).take_while(|&k| shared(&|n| n[k].to_owned())).count();
    let after = (0..shortest - 1 - before).take_while(|&k| shared(&|n| n[n.len() - 1 - k].to_owned())).count();
    (before, after)
}
