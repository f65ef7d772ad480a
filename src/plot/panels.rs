//! Which panels a figure has, and what is in each.
//!
//! Results and options come in; out goes a list of panels from top to bottom, each with borrowed data, and the time they
//! share. A panel is never empty, and nothing here knows a pixel.

use crate::results::{RunResult, Series, SpikeTrain};

use super::raster::Raster;
use super::rates::Rate;
use super::style;
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
}

/// Population rates are drawn unasked from this many cells on.
const CELLS_FOR_A_RATE: usize = 20;

/// The panels, and the first and last time they show in ms.
pub fn select<'a>(result: &'a RunResult, options: &PlotOptions) -> Result<(Vec<Panel<'a>>, (f64, f64)), PlotError> {
    let chosen = |name: &str| options.series.is_empty() || options.series.iter().any(|p| matches(p, name));
    let (want_series, want_spikes) = match options.kind {
        PlotKind::All => (true, true),
        // The spikes of a single cell are drawn above its voltage.
        PlotKind::Traces => (true, true),
        PlotKind::Raster | PlotKind::Rates => (false, true),
    };
    let series: Vec<&Series> = result.series.iter().filter(|s| want_series && chosen(&s.name)).collect();
    let trains: Vec<&SpikeTrain> =
        result.spikes.iter().filter(|s| want_spikes && s.cells > 0 && chosen(&spikes_name(s))).collect();
    if series.is_empty() && (trains.is_empty() || options.kind == PlotKind::Traces) {
        return Err(PlotError::Nothing(nothing(result, options)));
    }
    let window = window(&series, &trains, options)?;
    let mut panels = Vec::new();
    for population in populations(result, &series, &trains) {
        let train = trains.iter().copied().find(|s| s.population == population);
        let known_cells = result.spikes.iter().find(|s| s.population == population).map(|s| s.cells);
        let own: Vec<&Series> =
            series.iter().copied().filter(|s| population_of(result, &s.name) == population).collect();
        let mut ticks = train.filter(|s| s.cells == 1);
        for group in groups(&own, window) {
            panels.extend(traces(&group, known_cells, &mut ticks, window));
        }
        let Some(train) = train else { continue };
        let drawn_above_voltage = train.cells == 1 && ticks.is_none();
        let raster = match options.kind {
            PlotKind::All => !drawn_above_voltage,
            PlotKind::Raster => true,
            PlotKind::Traces | PlotKind::Rates => false,
        };
        let rate = match options.kind {
            PlotKind::All => train.cells >= CELLS_FOR_A_RATE,
            PlotKind::Rates => true,
            PlotKind::Traces | PlotKind::Raster => false,
        };
        if raster {
            let raster = Raster::new(train, window);
            panels.push(Panel { heading: raster.heading(), body: Body::Raster(raster) });
        }
        if rate {
            let rate = Rate::new(train, window, options.rate_bin).map_err(PlotError::Options)?;
            panels.push(Panel { heading: rate.heading(&train.population), body: Body::Rate(rate) });
        }
    }
    if panels.is_empty() {
        return Err(PlotError::Nothing("the series have no columns".to_owned()));
    }
    Ok((panels, window))
}

fn spikes_name(train: &SpikeTrain) -> String {
    format!("{}.spikes", train.population)
}

fn nothing(result: &RunResult, options: &PlotOptions) -> String {
    let mut names: Vec<String> = match options.kind {
        PlotKind::All | PlotKind::Traces => result.series.iter().map(|s| s.name.clone()).collect(),
        PlotKind::Raster | PlotKind::Rates => Vec::new(),
    };
    if options.kind != PlotKind::Traces {
        names.extend(result.spikes.iter().map(spikes_name));
    }
    let what = match options.kind {
        PlotKind::All => "series and no spikes",
        PlotKind::Traces => "series",
        PlotKind::Raster | PlotKind::Rates => "spikes",
    };
    if names.is_empty() {
        return format!("the results hold no {what}");
    }
    let more = names.len().saturating_sub(20);
    names.truncate(20);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("no name matches {}; there are {}{more}", options.series.join(" or "), names.join(", "))
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

fn window(series: &[&Series], trains: &[&SpikeTrain], options: &PlotOptions) -> Result<(f64, f64), PlotError> {
    let mut low = f64::INFINITY;
    let mut high = f64::NEG_INFINITY;
    for s in series {
        low = s.t.first().map_or(low, |t| low.min(*t));
        high = s.t.last().map_or(high, |t| high.max(*t));
    }
    // A run starts at 0 even if nothing fired then.
    if series.is_empty() {
        (low, high) = (0.0, 0.0);
    }
    for t in trains.iter().flat_map(|s| &s.t) {
        (low, high) = (low.min(*t), high.max(*t));
    }
    if low > high {
        return Err(PlotError::Nothing("the run recorded no sample".to_owned()));
    }
    let Some((first, last)) = options.window else {
        return Ok(if low < high { (low, high) } else { (low, low + 1.0) });
    };
    if !(first.is_finite() && last.is_finite() && first < last) {
        return Err(PlotError::Options(format!("a time window from {first} ms to {last} ms is empty")));
    }
    if last < low || first > high {
        return Err(PlotError::Nothing(format!(
            "the time window from {first} ms to {last} ms is outside the run, from {low} ms to {high} ms"
        )));
    }
    Ok((first, last))
}

/// The populations in the order in which they were recorded.
fn populations<'a>(result: &'a RunResult, series: &[&'a Series], trains: &[&'a SpikeTrain]) -> Vec<&'a str> {
    let mut all: Vec<&str> = Vec::new();
    let of_series = series.iter().map(|s| population_of(result, &s.name));
    for population in of_series.chain(trains.iter().map(|s| s.population.as_str())) {
        if !all.contains(&population) {
            all.push(population);
        }
    }
    all
}

/// The population a series belongs to: one with spikes if its name fits, otherwise the first part of the name.
fn population_of<'a>(result: &'a RunResult, name: &'a str) -> &'a str {
    let fits = |p: &&str| name.strip_prefix(*p).is_some_and(|rest| rest.starts_with('.'));
    let longest = result.spikes.iter().map(|s| s.population.as_str()).filter(fits).max_by_key(|p| p.len());
    longest.unwrap_or_else(|| name.split('.').next().unwrap_or(name))
}

fn quantity_of(name: &str) -> &str {
    name.rsplit('.').next().unwrap_or(name)
}

/// Series that share a panel, and whether they share it because they are fractions.
struct Group<'a> {
    series: Vec<&'a Series>,
    fraction: bool,
}

fn groups<'a>(series: &[&'a Series], window: (f64, f64)) -> Vec<Group<'a>> {
    let mut groups: Vec<Group<'a>> = Vec::new();
    for &s in series {
        let fraction = s.unit == "1" && is_fraction(s, window);
        let alike = |g: &Group| {
            let first = g.series[0];
            let same = quantity_of(&first.name) == quantity_of(&s.name);
            g.fraction == fraction && (fraction || same) && first.unit == s.unit
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
    let line = |column| Line { label: String::new(), series: s, column };
    (0..width.min(style::MOST_LINES))
        .filter_map(|column| line(column).extremes(window))
        .all(|(low, high)| low >= -0.01 && high <= 1.01)
}

fn traces<'a>(
    group: &Group<'a>,
    known_cells: Option<usize>,
    ticks: &mut Option<&'a SpikeTrain>,
    window: (f64, f64),
) -> Option<Panel<'a>> {
    let names: Vec<Vec<&str>> = group.series.iter().map(|s| s.name.split('.').collect()).collect();
    let (before, after) = common_parts(&names);
    let most = (style::MOST_LINES / names.len()).max(1);
    let widest = group.series.iter().map(|s| s.values.shape().1).max().unwrap_or(0);
    // An index is known to be a cell where a spike train counts as many cells.
    let are_cells = known_cells == Some(widest);
    let mut lines = Vec::new();
    for (series, parts) in group.series.iter().zip(&names) {
        let (_, width) = series.values.shape();
        let own = parts[before..parts.len() - after].join(".");
        for column in 0..width.min(most) {
            let label = match (width, names.len()) {
                (1, _) => own.clone(),
                (_, 1) if are_cells => format!("cell {column}"),
                (_, 1) => format!("[{column}]"),
                (_, _) => format!("{own} [{column}]"),
            };
            lines.push(Line { label, series, column });
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
    let noun = if are_cells || known_cells.is_none() { "cells" } else { "traces" };
    let note = (widest > most).then(|| format!("{most} of {widest} {noun}"));
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

/// How many parts all names share at the beginning and, beyond those, at the end; each keeps at least one of its own.
fn common_parts(names: &[Vec<&str>]) -> (usize, usize) {
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
