//! Panels of a sweep: rates over the values of one axis, a map over those of two, traces of several runs.
//!
//! The results of a sweep and options come in; out go panels, a range along which they stand, vertical axes and the drawing. A run that was not done
//! to its end has no rate.

use plotters::style::RGBColor;
use plotters_backend::DrawingBackend;
use serde_json::Value;

use crate::results::{RunResult, SpikeTrain, SweepResult, SweptAxis, spread};

use super::axis::{Axis, borders};
use super::canvas::Canvas;
use super::figure::{Frame, Mark};
use super::panels::{Along, Body, NO_CELL, Panel, matches, parts, within};
use super::rates::cells_of;
use super::scale::Scale;
use super::style;
use super::traces::{Line, Traces};
use super::{PlotError, PlotKind, PlotOptions};

/// Traces of more runs cannot be told apart.
const MOST_RUNS: usize = 24;
/// Dots are drawn for this many values at most; of more, the line says enough.
const MOST_DOTS: usize = 200;

/// Numbers of runs over the values of an axis.
pub struct Curves {
    lines: Vec<Curve>,
    /// What the numbers are, and their unit.
    quantity: String,
    unit: String,
    /// Does it begin at zero?
    from_zero: bool,
    /// What the lines differ in, if there are several.
    by: Option<String>,
    /// Does a line lead from a value to the next?
    joined: bool,
}

struct Curve {
    label: String,
    color: RGBColor,
    points: Vec<(f64, f64)>,
}

/// A number of each run over the values of two axes.
pub struct Map {
    /// The values along both axes, ascending, and a number for each pair, by the first axis.
    x: Vec<f64>,
    y: Vec<f64>,
    numbers: Vec<Vec<f64>>,
    pub scale: Scale,
}

/// The panels, and what they show along their axis.
pub fn select<'a>(sweep: &'a SweepResult, options: &PlotOptions) -> Result<(Vec<Panel<'a>>, Along), PlotError> {
    let axes: Vec<&SweptAxis> =
        (0..sweep.shape.len()).filter_map(|axis| sweep.axes.iter().find(|a| a.axis == axis)).collect();
    let drawn = || PlotError::Options("a sweep is drawn as rates or as traces (`--kind`)".into());
    if axes.is_empty() || axes.len() > 2 {
        let what = format!("a picture has one or two axes, and this sweep has {}", axes.len());
        return Err(PlotError::Options(format!("{what}; in Python, `neuroc.read` picks some of them")));
    }
    let Some(first) = sweep.runs.first() else { return Err(PlotError::Nothing("no run is there".into())) };
    let chosen = |name: &str| options.series.is_empty() || options.series.iter().any(|p| matches(p, name));
    let trains: Vec<usize> =
        (0..first.spikes.len()).filter(|&at| chosen(&format!("{}.spikes", first.spikes[at].population))).collect();
    let series: Vec<usize> = (0..first.series.len()).filter(|&at| chosen(&first.series[at].name)).collect();
    let of_spikes = match options.kind {
        // What is named is what is wanted.
        PlotKind::All => !trains.is_empty() && (options.series.is_empty() || series.is_empty()),
        PlotKind::Rates => true,
        PlotKind::Traces => false,
        PlotKind::Raster
        | PlotKind::Intervals
        | PlotKind::Correlations
        | PlotKind::Spectrum
        | PlotKind::Cells
        | PlotKind::Space => return Err(drawn()),
    };
    let numbers: Vec<Numbers> = if of_spikes {
        let counted = |train: &SpikeTrain| cells_of(train, &options.cells) > 0;
        let there = |at: &&usize| sweep.runs.iter().filter_map(|run| run.spikes.get(**at)).any(counted);
        trains.iter().filter(there).map(|&at| rates(sweep, at, options)).collect::<Result<_, _>>()?
    } else if axes.len() == 1 && options.kind != PlotKind::Rates {
        return traces(sweep, axes[0], &series, options);
    } else if options.kind == PlotKind::Traces {
        let what = "traces are drawn along one axis, and this sweep has two; `--kind rates` draws a map";
        return Err(PlotError::Options(what.into()));
    } else {
        let counted = |cell: &u64| options.cells.is_empty() || options.cells.contains(cell);
        let there = |at: &&usize| sweep.runs.iter().any(|run| run.series[**at].cells.iter().any(counted));
        series.iter().filter(there).map(|&at| largest(sweep, at, options)).collect::<Result<_, _>>()?
    };
    if numbers.is_empty() {
        let named = if of_spikes { &trains } else { &series };
        return Err(match (named.is_empty(), options.series.is_empty()) {
            (false, _) if !options.cells.is_empty() => PlotError::Nothing(NO_CELL.into()),
            (true, false) => no_name(of_spikes, options),
            (_, _) => {
                let what = if of_spikes { "spikes" } else { "series" };
                PlotError::Nothing(format!("the runs recorded no {what}"))
            }
        });
    }
    if let [axis] = axes[..] {
        let curve = |n: &Numbers| {
            let color = style::LINES[0];
            n.curves(axis, vec![Curve::new(String::new(), color, &axis.values, &n.values)], None, sweep)
        };
        return Ok((numbers.iter().map(curve).collect(), along(&axis.values, false, axis)));
    }
    let (a, b) = (axes[0], axes[1]);
    let Some(against) = &options.against else {
        let map = |n: &Numbers| {
            let map = Map::new(&a.values, &b.values, n);
            let what = style::quantity(&n.heading, &format!("{}{}", map.scale.factor(), n.unit));
            Panel { heading: format!("{what} over {} and {}", a.name, b.name), body: Body::Map(map, label(b)) }
        };
        return Ok((numbers.iter().map(map).collect(), along(&a.values, true, a)));
    };
    let (x, by, over_first) = match (matches(against, &a.name), matches(against, &b.name)) {
        (true, _) => (a, b, true),
        (false, true) => (b, a, false),
        (false, false) => {
            let what = format!("`{against}` is not swept; swept are {} and {}", a.name, b.name);
            return Err(PlotError::Options(what));
        }
    };
    let family = |n: &Numbers| {
        let curve = |line: usize| {
            let place = |k: usize| if over_first { k * b.values.len() + line } else { line * b.values.len() + k };
            let values: Vec<f64> = (0..x.values.len()).map(|k| n.values[place(k)]).collect();
            let color = shade(line, by.values.len());
            Curve::new(by.values[line].to_string(), color, &x.values, &values)
        };
        n.curves(x, spread(by.values.len(), MOST_RUNS).into_iter().map(curve).collect(), Some(label(by)), sweep)
    };
    Ok((numbers.iter().map(family).collect(), along(&x.values, false, x)))
}

/// What is named on no record.
fn no_name(of_spikes: bool, options: &PlotOptions) -> PlotError {
    let what = if of_spikes { "no spikes are" } else { "nothing is" };
    PlotError::Options(format!("{what} recorded whose name matches {}", options.series.join(" or ")))
}

/// The time that is shown of runs with samples from `low` to `high`.
fn shown(options: &PlotOptions, (low, high): (f64, f64)) -> Result<(f64, f64), PlotError> {
    let Some(asked) = options.window else { return Ok((low, high)) };
    let (from, to) = within(asked, (low, high), "runs")?;
    Ok((from.max(low), to.min(high)))
}

fn label(axis: &SweptAxis) -> String {
    style::quantity(&axis.name, &axis.unit)
}

fn along(values: &[f64], cells: bool, axis: &SweptAxis) -> Along {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let (low, high) = match cells {
        true => ends(&borders(&sorted)),
        false => ends(&sorted),
    };
    let range = if low < high { (low, high) } else { (low - 0.5, low + 0.5) };
    Along { range, label: Some(label(axis)) }
}

fn ends(sorted: &[f64]) -> (f64, f64) {
    (sorted.first().copied().unwrap_or(0.0), sorted.last().copied().unwrap_or(1.0))
}

/// The colour of a line: those too light for a white ground are left out.
fn shade(line: usize, of: usize) -> RGBColor {
    style::ramp(0.88 * line as f64 / (of.max(2) - 1) as f64)
}

/// A number of each run.
struct Numbers {
    heading: String,
    quantity: &'static str,
    unit: String,
    values: Vec<f64>,
    from_zero: bool,
}

impl Numbers {
    fn curves<'a>(&self, axis: &SweptAxis, lines: Vec<Curve>, by: Option<String>, sweep: &SweepResult) -> Panel<'a> {
        // Where several things are drawn together, the next value of one is no neighbour.
        let joined = sweep.axes.iter().filter(|other| other.axis == axis.axis).count() == 1;
        let (quantity, unit, from_zero) = (self.quantity.to_owned(), self.unit.clone(), self.from_zero);
        let body = Body::Curves(Curves { lines, quantity, unit, from_zero, by, joined });
        Panel { heading: format!("{} over {}", self.heading, axis.name), body }
    }
}

impl Curve {
    fn new(label: String, color: RGBColor, x: &[f64], y: &[f64]) -> Curve {
        let mut points: Vec<(f64, f64)> = x.iter().copied().zip(y.iter().copied()).collect();
        points.sort_by(|a, b| a.0.total_cmp(&b.0));
        Curve { label, color, points }
    }
}

fn complete(run: &RunResult) -> bool {
    run.meta.get("complete").and_then(Value::as_bool) == Some(true)
}

/// The mean rate of the cells of a population in each run.
fn rates(sweep: &SweepResult, train: usize, options: &PlotOptions) -> Result<Numbers, PlotError> {
    let number = |value: Option<&Value>| value.and_then(Value::as_f64);
    let dt = sweep.meta.get("options").and_then(|options| number(options.get("dt_ms"))).unwrap_or(f64::NAN);
    let end = number(sweep.meta.get("steps")).unwrap_or(f64::NAN) * dt;
    let (from, to) = shown(options, (0.0, end))?;
    if options.window.is_some() && from >= to {
        let why = format!("the time window has no length within the runs, from 0 ms to {end} ms");
        return Err(PlotError::Nothing(why));
    }
    let counted = |cell: &u64| options.cells.is_empty() || options.cells.contains(cell);
    let rate = |run: &RunResult| {
        let Some(train) = run.spikes.get(train).filter(|_| complete(run)) else { return f64::NAN };
        let spikes = train.t.iter().zip(&train.i).filter(|(t, i)| (from..=to).contains(*t) && counted(i)).count();
        spikes as f64 / cells_of(train, &options.cells) as f64 / (1e-3 * (to - from))
    };
    let train = &sweep.runs[0].spikes[train];
    let of = match (train.cells, &options.cells[..]) {
        (1, _) => "rate".to_owned(),
        (all, []) => format!("mean rate of {all} cells"),
        (all, chosen) => format!("mean rate of {} of {all} cells", cells_of(train, chosen)),
    };
    Ok(Numbers {
        heading: format!("{} · {of}", train.population),
        quantity: "rate",
        unit: "spikes/s".into(),
        values: sweep.runs.iter().map(rate).collect(),
        from_zero: true,
    })
}

/// The largest value of a series in each run.
fn largest(sweep: &SweepResult, series: usize, options: &PlotOptions) -> Result<Numbers, PlotError> {
    let s = &sweep.runs[0].series[series];
    let times = || sweep.runs.iter().flat_map(|run| run.series[series].t.iter().copied());
    let ends = times().fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), t| (low.min(t), high.max(t)));
    if options.window.is_some() {
        let (from, to) = shown(options, ends)?;
        if !times().any(|t| (from..=to).contains(&t)) {
            return Err(PlotError::Nothing(format!("no sample of `{}` lies within the time window", s.name)));
        }
    }
    let most = |run: &RunResult| {
        let s = &run.series[series];
        let (rows, columns) = s.values.shape();
        let shown = |t: f64| options.window.is_none_or(|(from, to)| (from..=to).contains(&t));
        let counted = |column: &usize| options.cells.is_empty() || options.cells.contains(&s.cells[*column]);
        let all = (0..columns)
            .filter(counted)
            .flat_map(|column| (0..rows).filter(|&row| shown(s.t[row])).map(move |row| s.values.get(row, column)));
        let most = all.filter(|x| x.is_finite()).fold(f64::NAN, f64::max);
        if complete(run) { most } else { f64::NAN }
    };
    Ok(Numbers {
        heading: format!("{} · largest value", s.name),
        quantity: "largest value",
        unit: s.unit.clone(),
        values: sweep.runs.iter().map(most).collect(),
        from_zero: false,
    })
}

/// The traces of some runs, from the first to the last, a panel for each series.
fn traces<'a>(
    sweep: &'a SweepResult,
    axis: &SweptAxis,
    series: &[usize],
    options: &PlotOptions,
) -> Result<(Vec<Panel<'a>>, Along), PlotError> {
    let count = sweep.runs.len();
    let runs = spread(count, MOST_RUNS);
    let named = spread(runs.len(), style::MOST_LINES);
    let (mut low, mut high) = (f64::INFINITY, f64::NEG_INFINITY);
    let mut panels = Vec::new();
    for &at in series {
        let s = &sweep.runs[0].series[at];
        let column = match options.cells.first() {
            None => Some(0).filter(|_| !s.cells.is_empty()),
            Some(cell) => s.cells.iter().position(|c| c == cell),
        };
        let (Some(column), Some(first), Some(last)) = (column, s.t.first(), s.t.last()) else { continue };
        (low, high) = (low.min(*first), high.max(*last));
        let line = |(place, &run): (usize, &usize)| {
            let label = if named.contains(&place) { axis.values[run].to_string() } else { String::new() };
            Line { label, series: &sweep.runs[run].series[at], column, color: shade(run, count) }
        };
        let lines: Vec<Line<'a>> = runs.iter().enumerate().map(line).collect();
        let cell = if s.cells.len() > 1 { format!(", {} {}", s.element(), s.cells[column]) } else { String::new() };
        let of = if runs.len() < count { format!("{} of {count}", runs.len()) } else { count.to_string() };
        let heading = format!("{}{cell} · {of} values of {}", s.name, label(axis));
        let quantity = parts(&s.name).pop().unwrap_or(&s.name).to_owned();
        let unit = s.unit.clone();
        let traces = Traces { quantity, unit, lines, note: None, spikes: None, fraction: false };
        panels.push(Panel { heading, body: Body::Traces(traces) });
    }
    if panels.is_empty() || low > high {
        return Err(match (series.is_empty(), options.series.is_empty()) {
            (true, false) => no_name(false, options),
            (_, _) => PlotError::Nothing("no series of that name and cell is recorded".into()),
        });
    }
    let (from, to) = shown(options, (low, high))?;
    let range = if from < to { (from, to) } else { (from, from + 1.0) };
    Ok((panels, Along { range, label: None }))
}

impl Curves {
    pub fn axis(&self, height: f64) -> Axis {
        let most = (height / 32.0).clamp(3.0, 7.0) as usize;
        let all = self.lines.iter().flat_map(|line| &line.points).map(|p| p.1).filter(|y| y.is_finite());
        let (low, high) = all.fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), y| (l.min(y), h.max(y)));
        match (low <= high, self.from_zero) {
            (false, _) => Axis { low: 0.0, high: 1.0, ticks: Vec::new(), exponent: 0 },
            (true, true) => Axis::exact(0.0, if high > 0.0 { 1.08 * high } else { 1.0 }, most),
            (true, false) => Axis::around(low, high, most),
        }
    }

    pub fn label(&self, axis: &Axis) -> String {
        style::quantity(&self.quantity, &format!("{}{}", axis.factor(), self.unit))
    }

    pub fn legend(&self) -> Vec<(Mark, String)> {
        let Some(by) = &self.by else { return Vec::new() };
        let some = spread(self.lines.len(), style::MOST_LINES);
        let lines = some.into_iter().map(|k| (Mark::Line(self.lines[k].color), self.lines[k].label.clone()));
        [(Mark::None, by.clone())].into_iter().chain(lines).collect()
    }

    pub fn draw<DB: DrawingBackend>(&self, canvas: &mut Canvas<DB>, frame: &Frame<'_>) -> Result<(), String> {
        let mut empty = true;
        for line in &self.lines {
            let dots = line.points.len() <= MOST_DOTS || !self.joined;
            for part in line.points.split(|p| !p.1.is_finite()).filter(|part| !part.is_empty()) {
                empty = false;
                let points: Vec<(f64, f64)> = part.iter().map(|&(x, y)| frame.point(x, y)).collect();
                if self.joined {
                    canvas.line(&points, line.color, style::LINE_WIDTH)?;
                }
                for &(x, y) in points.iter().filter(|_| dots) {
                    canvas.fill((x - 2.5, y - 2.5), (x + 2.5, y + 2.5), line.color)?;
                }
            }
        }
        if empty { frame.say(canvas, "no run was done to its end") } else { Ok(()) }
    }
}

impl Map {
    fn new(x: &[f64], y: &[f64], numbers: &Numbers) -> Map {
        let order = |values: &[f64]| {
            let mut order: Vec<usize> = (0..values.len()).collect();
            order.sort_by(|&a, &b| values[a].total_cmp(&values[b]));
            order
        };
        let (columns, rows) = (order(x), order(y));
        let column = |&a: &usize| rows.iter().map(|&b| numbers.values[a * y.len() + b]).collect();
        Map {
            x: columns.iter().map(|&a| x[a]).collect(),
            y: rows.iter().map(|&b| y[b]).collect(),
            numbers: columns.iter().map(column).collect(),
            scale: Scale::of(numbers.values.iter().copied(), 6),
        }
    }

    pub fn axis(&self, height: f64) -> Axis {
        let (low, high) = ends(&borders(&self.y));
        Axis::exact(low, high, (height / 32.0).clamp(3.0, 9.0) as usize)
    }

    pub fn draw<DB: DrawingBackend>(&self, canvas: &mut Canvas<DB>, frame: &Frame<'_>) -> Result<(), String> {
        if !self.numbers.iter().flatten().any(|number| number.is_finite()) {
            return frame.say(canvas, "no run was done to its end");
        }
        let (x, y) = (borders(&self.x), borders(&self.y));
        for (x, column) in x.windows(2).zip(&self.numbers) {
            for (y, &number) in y.windows(2).zip(column) {
                if number.is_finite() {
                    canvas.fill(frame.point(x[0], y[1]), frame.point(x[1], y[0]), self.scale.color(number))?;
                }
            }
        }
        Ok(())
    }
}
