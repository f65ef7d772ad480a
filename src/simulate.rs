//! Runs a compiled model: set-up, the loop over windows of steps, recording, spikes, and the trap for NaN.
//!
//! In come a continuous model, its step program and an engine; out comes a [`RunResult`] or what went wrong, with all that
//! was recorded until then.
//! Never true here: a number is computed that belongs into a kernel.

use crate::connect::{self, ConnectError, RULES, Rule, Shape};
use crate::data;
use crate::diag::{Code, Diagnostic};
use crate::discretize::{edges_name, output_name};
use crate::engine::{Edges, Engine, EngineError, Recording, Setup, Spike};
use crate::hir::Method;
use crate::ode::{self, Connection, ConnectionRule, Model, Node, NodeId};
use crate::results::{RunResult, Samples, Series, SpikeTrain};
use crate::step::{FieldId, FieldKind, Program, Value};
use crate::units::DisplayUnit;
use ndarray::Array2;
use serde_json::Map;
use std::collections::{HashMap, VecDeque};
use std::ops::Range;
use std::sync::Arc;
use std::time::Instant;

/// The time grid of a run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Grid {
    /// The time step in ms.
    pub dt: f64,
    /// The number of steps.
    pub steps: u64,
}

/// The cells of every population, and the grid, checked.
#[derive(Debug, Clone, PartialEq)]
pub struct Extent {
    /// The sides of the grid of each population, the fastest first.
    pub grids: Vec<Vec<usize>>,
    /// Cells of each population.
    pub cells: Vec<usize>,
    /// The time grid.
    pub grid: Grid,
}

/// A number for a message: very large and very small ones with an exponent.
fn shown(x: f64) -> String {
    if x != 0.0 && x.is_finite() && !(1e-5..1e16).contains(&x.abs()) { format!("{x:e}") } else { x.to_string() }
}

/// The time of a step in ms, to twelve digits, which hide the rounding of the product.
pub(crate) fn moment(step: u64, dt: f64) -> String {
    let rounded = format!("{:.11e}", step as f64 * dt).parse();
    shown(rounded.expect("a number that was just printed"))
}

/// How many whole `dt` are in `time`, if it is a multiple (to 1e-6 of a step).
fn whole_steps(time: f64, dt: f64) -> Option<u64> {
    let steps = time / dt;
    let near = steps.round();
    ((steps - near).abs() <= 1e-6 * near.max(1.0) && near < MOST_STEPS).then_some(near as u64)
}

/// Step numbers up to here are exact as f64.
const MOST_STEPS: f64 = 9e15;

fn nearest_multiple(time: f64, dt: f64) -> f64 {
    (time / dt).round().max(1.0) * dt
}

/// Recording intervals that the time step does not divide, one error for each.
fn wrong_intervals(model: &Model) -> Vec<Diagnostic> {
    let mut errors: Vec<(f64, Diagnostic)> = Vec::new();
    for r in &model.records {
        let Some(every) = r.every.filter(|&e| whole_steps(e, model.dt).is_none_or(|n| n == 0)) else { continue };
        if let Some((_, error)) = errors.iter_mut().find(|e| e.0 == every) {
            *error = error.clone().see(r.span, "this too");
            continue;
        }
        let (shown_every, dt) = (shown(every), shown(model.dt));
        let message =
            format!("`{}` is recorded every {shown_every} ms, which is not a multiple of dt, {dt} ms", r.name);
        let help = format!("{} ms would be", shown(nearest_multiple(every, model.dt)));
        errors.push((every, Diagnostic::new(Code::BadValue, r.span, message, "recorded here").help(help)));
    }
    errors.into_iter().map(|e| e.1).collect()
}

/// Checks sizes, time step, duration and recording intervals of a model (after overrides).
pub fn extent(model: &Model) -> Result<Extent, Vec<Diagnostic>> {
    let mut errors = Vec::new();
    let bad = |message: String| Diagnostic::without_place(Code::BadValue, message);
    if !(model.dt.is_finite() && model.dt > 0.0) {
        errors.push(bad(format!("dt is {} ms; it must be above zero", shown(model.dt))));
    }
    if !(model.duration.is_finite() && model.duration > 0.0) {
        errors.push(bad(format!("the duration is {} ms; it must be above zero", shown(model.duration))));
    }
    if !errors.is_empty() {
        return Err(errors);
    }
    let steps = whole_steps(model.duration, model.dt).filter(|&n| n > 0);
    if steps.is_none() {
        let (duration, dt) = (shown(model.duration), shown(model.dt));
        errors.push(if model.duration / model.dt >= MOST_STEPS {
            bad(format!("a duration of {duration} ms is too many steps of {dt} ms"))
        } else {
            bad(format!("the duration, {duration} ms, is not a multiple of dt, {dt} ms"))
                .help(format!("a duration of {} ms would be", shown(nearest_multiple(model.duration, model.dt))))
        });
    } else {
        errors.extend(wrong_intervals(model));
    }
    let (mut cells, mut grids) = (Vec::new(), Vec::new());
    for p in &model.populations {
        let mut grid = Vec::new();
        let mut count = 1.0;
        for &size in &p.sizes {
            match ode::evaluate(model, size) {
                Ok(Value::Real(n)) if n >= 0.0 && n.fract() == 0.0 => {
                    count *= n;
                    grid.push(n as usize);
                }
                Ok(Value::Real(n)) => {
                    let message = format!("population `{}` cannot have {} cells along one side", p.name, shown(n));
                    let label = "a whole number from 1 on is needed";
                    let error = Diagnostic::new(Code::BadValue, p.span, message, label);
                    // Several sides may have one size.
                    if !errors.contains(&error) {
                        errors.push(error);
                    }
                    count = f64::NAN;
                }
                Ok(Value::Single(_) | Value::Mask(_)) | Err(_) => {
                    let message = format!("the size of population `{}` is not known before the run", p.name);
                    let label = "it may depend on network parameters only";
                    errors.push(Diagnostic::new(Code::NotConstant, p.span, message, label));
                    count = f64::NAN;
                }
            }
        }
        if count == 0.0 {
            let message = format!("population `{}` has no cells", p.name);
            errors.push(Diagnostic::new(Code::BadValue, p.span, message, "one of its sizes is 0"));
        } else if count > 4e9 {
            let message = format!("population `{}` has {} cells", p.name, shown(count));
            errors.push(Diagnostic::new(Code::BadValue, p.span, message, "at most 4e9 are possible"));
        }
        cells.push(count as usize);
        grids.push(if grid.is_empty() { vec![1] } else { grid });
    }
    if errors.is_empty() {
        errors.extend(recorded(model, &cells).err().unwrap_or_default());
    }
    match steps {
        Some(steps) if errors.is_empty() => Ok(Extent { cells, grids, grid: Grid { dt: model.dt, steps } }),
        _ => Err(errors),
    }
}

/// The array name and the cells of every record of a model.
fn recorded(model: &Model, cells: &[usize]) -> Result<Vec<(String, Range<usize>)>, Vec<Diagnostic>> {
    let mut out: Vec<(String, Range<usize>)> = Vec::new();
    let mut errors = Vec::new();
    for r in &model.records {
        let all = cells[r.population];
        let chosen = match r.cells {
            None => 0..all,
            Some((first, end)) => match selection(model, r, first, end, all) {
                Ok(chosen) => chosen,
                Err(error) => {
                    errors.push(error);
                    continue;
                }
            },
        };
        let mut name = r.name.clone();
        if out.iter().any(|o| o.0 == name) {
            name = format!("{name}[{}..{}]", chosen.start, chosen.end);
        }
        if out.iter().any(|o| o.0 == name) {
            let message = format!("`{}` of the same cells is recorded twice", r.name);
            errors.push(Diagnostic::new(Code::DuplicateKey, r.span, message, "again"));
        }
        out.push((name, chosen));
    }
    if errors.is_empty() { Ok(out) } else { Err(errors) }
}

/// How many bytes a run takes, about: what the engine keeps for the cells in numbers of `real` bytes, and what is recorded.
pub fn memory(model: &Model, program: &Program, extent: &Extent, real: usize) -> (f64, f64) {
    let numbers = |kind: &FieldKind| match kind {
        // A copy is kept to find out where a value became NaN.
        FieldKind::State(_) => 2.0,
        FieldKind::Cell(_) | FieldKind::Output(_) | FieldKind::Data(_) => 1.0,
        FieldKind::Uniform | FieldKind::Series | FieldKind::Temp(_) | FieldKind::Event(_) | FieldKind::Edges(_) => 0.0,
    };
    let cells = |f: &crate::step::Field| f.kind.space().map_or(0.0, |s| extent.cells[s.0 as usize] as f64);
    let kept: f64 = program.fields.iter().map(|f| numbers(&f.kind) * cells(f)).sum();
    let Grid { dt, steps } = extent.grid;
    let samples: f64 = (model.records.iter().zip(recorded(model, &extent.cells).unwrap_or_default()))
        .map(|(r, (_, cells))| cells.len() as f64 * (steps / interval(r, dt) + 1) as f64)
        .sum();
    let connections = model.connections.iter().map(|c| {
        let cells = extent.cells[c.population] as f64;
        let edges = match &c.rule {
            ConnectionRule::Named(name, arguments) => match named_rule(model, name, arguments) {
                Ok(rule) => connect::expected_entries(&rule, cells),
                // What is wrong with it is said when the edges are made.
                Err(_) => 0.0,
            },
            ConnectionRule::File(file) => file_entries(&model.data[*file as usize]),
        };
        // The list and the table that a kernel reads; the order; and what travels, before and after a step.
        edges * 8.0 + cells * (16.0 + 3.0 * real as f64)
    });
    let connected: f64 = connections.sum();
    (kept * real as f64 + connected, samples * size_of::<f64>() as f64)
}

/// How many edges a file has, about: two for a row of two numbers of four bytes. What cannot be read is said when it is.
fn file_entries(file: &crate::hir::DataFile) -> f64 {
    std::fs::metadata(data::path(file)).map_or(0.0, |file| file.len() as f64 / 4.0)
}

/// Steps between two samples.
fn interval(r: &ode::Record, dt: f64) -> u64 {
    r.every.map_or(Some(1), |e| whole_steps(e, dt)).unwrap_or(1).max(1)
}

/// Values of everything a program reads from outside: sizes, uniform parameters, data files.
pub fn setup(model: &Model, program: &Program, extent: &Extent) -> Result<Setup, Vec<Diagnostic>> {
    let mut setup =
        Setup { sizes: extent.cells.clone(), grids: extent.grids.clone(), seed: model.seed, ..Setup::default() };
    let mut errors = Vec::new();
    for (i, field) in program.fields.iter().enumerate() {
        let id = FieldId(i as u32);
        match field.kind {
            FieldKind::Uniform => {
                let value = if field.name == "dt" {
                    Ok(Value::Real(extent.grid.dt))
                } else {
                    match model.params.iter().find(|p| p.name == field.name) {
                        Some(p) => ode::evaluate(model, p.value),
                        None => Err(ode::EvalError::NotUniform),
                    }
                };
                match value {
                    Ok(Value::Real(x)) if x.is_finite() => setup.uniforms.push((id, x)),
                    other => errors.push(bad_param(model, &field.name, other)),
                }
            }
            FieldKind::Series => {
                let file = index_behind(&field.name, "series").and_then(|d| model.data.get(d));
                match file.map(|f| data::series(f, extent.grid.steps as f64 * extent.grid.dt)) {
                    Some(Ok(samples)) => setup.series.push((id, samples)),
                    Some(Err(error)) => errors.push(error),
                    None => errors.push(missing(&field.name)),
                }
            }
            FieldKind::Data(space) => {
                let file = index_behind(&field.name, ".file").and_then(|d| model.data.get(d));
                match file.map(|f| data::per_cell(f, extent.cells[space.0 as usize])) {
                    Some(Ok(values)) => setup.data.push((id, values)),
                    Some(Err(error)) => errors.push(error),
                    None => errors.push(missing(&field.name)),
                }
            }
            FieldKind::Cell(_)
            | FieldKind::State(_)
            | FieldKind::Temp(_)
            | FieldKind::Output(_)
            | FieldKind::Event(_) => {}
            FieldKind::Edges(_) => {
                let connection = model.connections.iter().find(|c| edges_name(&c.name) == field.name);
                match connection.map(|c| edges(model, extent, c)) {
                    Some(Ok(edges)) => setup.edges.push((id, Arc::new(edges))),
                    Some(Err(error)) => errors.push(error),
                    None => errors.push(missing(&field.name)),
                }
            }
        }
    }
    if errors.is_empty() { Ok(setup) } else { Err(errors) }
}

/// A rule with its arguments, or what is wrong with them.
fn named_rule(model: &Model, name: &str, arguments: &[NodeId]) -> Result<Rule, String> {
    let names = RULES.iter().find(|r| r.name == name).map_or(&[][..], |r| r.arguments);
    let number = |node| match ode::evaluate(model, node) {
        Ok(Value::Real(x)) => Ok(x),
        Ok(Value::Single(_) | Value::Mask(_)) | Err(_) => {
            Err("an argument of the rule is not known before the run".to_string())
        }
    };
    let given =
        names.iter().zip(arguments).map(|(n, &a)| Ok((n.name, number(a)?))).collect::<Result<Vec<_>, String>>()?;
    Rule::named(name, &given).map_err(|e| e.to_string())
}

/// The edges of a connection, in both directions, by target.
fn edges(model: &Model, extent: &Extent, c: &Connection) -> Result<Edges, Diagnostic> {
    let wrong = |why: String| Diagnostic::new(Code::BadValue, c.span, format!("`{}` cannot be connected", c.name), why);
    let shape = Shape { sizes: extent.grids[c.population].clone() };
    let fail = |e: ConnectError| wrong(e.to_string());
    let pairs = match &c.rule {
        ConnectionRule::Named(name, args) => {
            let rule = named_rule(model, name, args).map_err(wrong)?;
            let hash = blake3::hash(c.name.as_bytes());
            let mut stream = [0; 4];
            stream.copy_from_slice(&hash.as_bytes()[..4]);
            connect::undirected(&rule, &shape, model.seed, u32::from_le_bytes(stream)).map_err(fail)?
        }
        ConnectionRule::File(data) => {
            let csr = connect::read_junctions(&model.data[*data as usize], &shape)?;
            return Ok(Edges { offsets: csr.offsets, sources: csr.sources });
        }
    };
    let csr = connect::directed_csr(&pairs, shape.cells()).map_err(fail)?;
    Ok(Edges { offsets: csr.offsets, sources: csr.sources })
}

fn index_behind(name: &str, word: &str) -> Option<usize> {
    name[name.rfind(word)? + word.len()..].parse().ok()
}

fn missing(field: &str) -> Diagnostic {
    Diagnostic::without_place(Code::BadData, format!("no data for `{field}`"))
}

fn bad_param(model: &Model, name: &str, value: Result<Value, ode::EvalError>) -> Diagnostic {
    let what = match value {
        Ok(Value::Real(x)) => format!("parameter `{name}` is {x}"),
        Ok(Value::Single(x)) => format!("parameter `{name}` is {x}"),
        Ok(Value::Mask(_)) => format!("parameter `{name}` is a condition, not a number"),
        Err(ode::EvalError::Cyclic) => format!("parameter `{name}` depends on itself"),
        Err(ode::EvalError::NotUniform) => format!("parameter `{name}` is not known before the run"),
    };
    let Some(p) = model.params.iter().find(|p| p.name == name) else {
        return Diagnostic::without_place(Code::BadValue, what);
    };
    let d = Diagnostic::new(Code::BadValue, p.span, what, "a finite number is needed");
    let leaf = |node| match node {
        Node::Param(p) => ode::evaluate(model, model.param(p).value).ok(),
        _ => None,
    };
    match ode::fault(model, &parameters_too(model, p.value), leaf) {
        Some(fault) => {
            let d = d.note(said(&fault));
            fault.help.into_iter().fold(d, |d, help| d.help(help))
        }
        None => d,
    }
}

/// An expression, and those of all parameters that it depends on, behind what they are needed for.
fn parameters_too(model: &Model, root: NodeId) -> Vec<NodeId> {
    let (mut all, mut at) = (vec![root], 0);
    while let Some(&node) = all.get(at) {
        for n in model.graph.reachable([node]) {
            if let Node::Param(p) = model.graph.node(n)
                && !all.contains(&model.param(p).value)
            {
                all.push(model.param(p).value);
            }
        }
        at += 1;
    }
    all
}

/// What a caller wants to know while a run goes on.
pub trait Watcher {
    /// Called after every window with the steps done so far; `false` stops the run.
    fn step(&mut self, done: u64) -> bool;
}

/// A watcher that only lets run.
#[derive(Debug, Clone, Copy, Default)]
pub struct Unwatched;

impl Watcher for Unwatched {
    fn step(&mut self, _done: u64) -> bool {
        true
    }
}

/// How a run ended.
#[derive(Debug, Clone, PartialEq)]
pub enum Ending {
    /// At its end.
    Done,
    /// The watcher stopped it.
    Stopped,
    /// A value was not finite.
    NotFinite(Box<Diagnostic>),
}

/// A run and how it ended.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    /// What was recorded; `meta` is empty.
    pub result: RunResult,
    /// How it ended.
    pub ending: Ending,
    /// Steps done.
    pub steps: u64,
    /// All spikes, recorded or not.
    pub spikes: u64,
    /// Wall time of set-up (initial values), in s.
    pub init_s: f64,
    /// Wall time of the steps with recording, in s.
    pub run_s: f64,
}

/// Options of a run that change no number of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RunOptions {
    /// Steps between two looks at the clock and at Ctrl-C, at most.
    pub window: u32,
    /// Keep results in single precision.
    pub single: bool,
    /// After each window, look for NaN and infinities.
    pub trap: bool,
    /// How many of the last steps before a NaN to tell.
    pub trace: usize,
}

impl Default for RunOptions {
    fn default() -> RunOptions {
        RunOptions { window: 40, single: false, trap: true, trace: 1 }
    }
}

/// Something that is recorded.
struct Recorder {
    name: String,
    unit: DisplayUnit,
    field: FieldId,
    output: bool,
    cells: Range<usize>,
    every: u64,
    values: Vec<f64>,
}

/// Runs a model on an engine from its initial values to its end.
pub fn run(
    model: &Model,
    program: &Program,
    extent: &Extent,
    engine: &mut dyn Engine,
    options: &RunOptions,
    watcher: &mut dyn Watcher,
) -> Result<Outcome, RunError> {
    let Grid { dt, steps } = extent.grid;
    let mut recorders = recorders(model, program, extent)?;
    let recording = recording_of(&recorders, steps);
    let stride = engine.prepare(&recording, steps)?;
    let mut samples: Vec<Vec<f64>> = vec![Vec::new(); recorders.len()];
    let begin = Instant::now();
    engine.init()?;
    let init_s = begin.elapsed().as_secs_f64();
    let begin = Instant::now();
    let mut spikes: Vec<Spike> = Vec::new();
    let mut trains = trains(model, program, extent);
    let mut count = 0;
    let mut now = 0;
    let mut ending = Ending::Done;
    if options.trap && !engine.all_finite() {
        ending = Ending::NotFinite(Box::new(culprit(model, program, extent, engine, 0, &History::new())?));
    } else {
        sample(engine, &mut recorders, 0)?;
    }
    let mut careful_until = 0;
    while now < steps && ending == Ending::Done {
        let long = stride.steps();
        if long > 0 && now >= careful_until && now + long <= steps && now.is_multiple_of(u64::from(stride.every)) {
            if options.trap {
                engine.save();
            }
            spikes.clear();
            samples.iter_mut().for_each(Vec::clear);
            engine.record(now, &mut samples, &mut spikes)?;
            if options.trap && !engine.all_finite() {
                // Once more in short windows, which find the step.
                engine.restore();
                careful_until = now + long;
                continue;
            }
            for (r, values) in recorders.iter_mut().zip(&samples) {
                for (at, row) in values.chunks_exact(r.cells.len()).enumerate() {
                    if (now + (at as u64 + 1) * u64::from(stride.every)).is_multiple_of(r.every) {
                        r.values.extend_from_slice(row);
                    }
                }
            }
            now += long;
            count += keep_spikes(&spikes, &mut trains, dt);
            if !watcher.step(now) {
                ending = Ending::Stopped;
            }
            continue;
        }
        let due = recorders.iter().map(|r| (now / r.every + 1) * r.every).min().unwrap_or(steps).min(steps);
        let window = (due - now).min(u64::from(options.window.max(1))) as u32;
        if options.trap {
            engine.save();
        }
        spikes.clear();
        engine.step(now, window, &mut spikes)?;
        if options.trap && !engine.all_finite() {
            // The steps before the first value that is not finite count, and so do their spikes. No sample was due in them.
            let last = find_culprit(engine, now, window, &mut spikes)?;
            let history = history(program, extent, engine, last, options)?;
            ending = Ending::NotFinite(Box::new(culprit(model, program, extent, engine, last + 1, &history)?));
            now = last;
        } else {
            now += u64::from(window);
            sample(engine, &mut recorders, now)?;
            if !watcher.step(now) {
                ending = Ending::Stopped;
            }
        }
        count += keep_spikes(&spikes, &mut trains, dt);
    }
    let run_s = begin.elapsed().as_secs_f64();
    let result = RunResult {
        series: series(recorders, dt, options.single),
        spikes: model.spikes.iter().filter_map(|&p| trains.remove(&event(model, program, p)?)).collect(),
        meta: Map::new(),
    };
    Ok(Outcome { result, ending, steps: now, spikes: count, init_s, run_s })
}

/// Adds spikes to their trains, if they are recorded; tells how many there are.
fn keep_spikes(spikes: &[Spike], trains: &mut HashMap<FieldId, SpikeTrain>, dt: f64) -> u64 {
    for s in spikes {
        if let Some(train) = trains.get_mut(&s.field) {
            train.t.push((s.step + 1) as f64 * dt);
            train.i.push(s.cell);
        }
    }
    spikes.len() as u64
}

/// What a run of a model records, in the order of its records.
pub fn recording(model: &Model, program: &Program, extent: &Extent) -> Result<Recording, Vec<Diagnostic>> {
    match recorders(model, program, extent) {
        Ok(recorders) => Ok(recording_of(&recorders, extent.grid.steps)),
        Err(RunError::Model(errors)) => Err(errors),
        Err(RunError::Engine(error)) => Err(vec![Diagnostic::without_place(Code::Internal, error.0)]),
    }
}

fn recording_of(recorders: &[Recorder], steps: u64) -> Recording {
    fn common(a: u64, b: u64) -> u64 {
        if b == 0 { a } else { common(b, a % b) }
    }
    // Where nothing is sampled, the whole run is one interval.
    let every = recorders.iter().map(|r| r.every).reduce(common).unwrap_or(steps);
    Recording { every, fields: recorders.iter().map(|r| (r.field, r.cells.clone())).collect() }
}

/// A run could not begin or go on.
#[derive(Debug, Clone, PartialEq)]
pub enum RunError {
    /// The engine cannot do it.
    Engine(EngineError),
    /// The model asks for something impossible.
    Model(Vec<Diagnostic>),
}

impl From<EngineError> for RunError {
    fn from(error: EngineError) -> RunError {
        RunError::Engine(error)
    }
}

fn event(model: &Model, program: &Program, population: usize) -> Option<FieldId> {
    program.find_field(&format!("{}.spikes", model.populations[population].name))
}

fn trains(model: &Model, program: &Program, extent: &Extent) -> HashMap<FieldId, SpikeTrain> {
    model
        .spikes
        .iter()
        .filter_map(|&p| {
            let population = model.populations[p].name.clone();
            let train = SpikeTrain { population, cells: extent.cells[p], t: Vec::new(), i: Vec::new() };
            Some((event(model, program, p)?, train))
        })
        .collect()
}

fn recorders(model: &Model, program: &Program, extent: &Extent) -> Result<Vec<Recorder>, RunError> {
    let chosen = recorded(model, &extent.cells).map_err(RunError::Model)?;
    let mut out = Vec::new();
    for (r, (name, cells)) in model.records.iter().zip(chosen) {
        let (field, output) = match model.graph.node(r.value) {
            Node::State(s) => (model.state(s).name.clone(), false),
            _ => (output_name(&r.name), true),
        };
        let Some(field) = program.find_field(&field) else {
            return Err(EngineError(format!("internal error: the program lost the recorded field `{field}`")).into());
        };
        let every = interval(r, extent.grid.dt);
        out.push(Recorder { name, unit: r.unit.clone(), field, output, cells, every, values: Vec::new() });
    }
    Ok(out)
}

fn selection(
    model: &Model,
    r: &ode::Record,
    first: NodeId,
    end: NodeId,
    all: usize,
) -> Result<Range<usize>, Diagnostic> {
    let number = |node| match ode::evaluate(model, node) {
        Ok(Value::Real(x)) if x >= 0.0 && x.fract() == 0.0 => Some(x as usize),
        _ => None,
    };
    match (number(first), number(end)) {
        (Some(a), Some(b)) if a < b && b <= all => Ok(a..b),
        _ => {
            let message = format!("`{}` has no such cells", model.populations[r.population].name);
            let label = match all {
                1 => "it has one cell, number 0".to_string(),
                _ => format!("cells are counted from 0 to {}", all - 1),
            };
            Err(Diagnostic::new(Code::BadTarget, r.span, message, label))
        }
    }
}

fn sample(engine: &mut dyn Engine, recorders: &mut [Recorder], step: u64) -> Result<(), EngineError> {
    if recorders.iter().any(|r| r.output && step.is_multiple_of(r.every)) {
        engine.observe(step)?;
    }
    for r in recorders.iter_mut().filter(|r| step.is_multiple_of(r.every)) {
        engine.read(r.field, r.cells.clone(), &mut r.values)?;
    }
    Ok(())
}

fn series(recorders: Vec<Recorder>, dt: f64, single: bool) -> Vec<Series> {
    let mut times: HashMap<(u64, usize), Arc<Vec<f64>>> = HashMap::new();
    recorders
        .into_iter()
        .map(|r| {
            let (rows, columns) = (r.values.len() / r.cells.len().max(1), r.cells.len());
            let t = times
                .entry((r.every, rows))
                .or_insert_with(|| Arc::new((0..rows as u64).map(|i| (i * r.every) as f64 * dt).collect()))
                .clone();
            let shown = |x: f64| if r.unit.exponent == 0 { x } else { r.unit.show(x) };
            let values = if single {
                let values = r.values.iter().map(|&x| shown(x) as f32).collect();
                Samples::F32(Array2::from_shape_vec((rows, columns), values).unwrap_or_default())
            } else {
                let values = r.values.iter().map(|&x| shown(x)).collect();
                Samples::F64(Array2::from_shape_vec((rows, columns), values).unwrap_or_default())
            };
            Series { name: r.name, unit: r.unit.name, t, values }
        })
        .collect()
}

/// Goes back to the start of a window and on step by step. Tells the last step at whose start all is finite; `spikes` are
/// those until then.
fn find_culprit(engine: &mut dyn Engine, now: u64, window: u32, spikes: &mut Vec<Spike>) -> Result<u64, EngineError> {
    engine.restore();
    spikes.clear();
    for step in now..now + u64::from(window) {
        let before = spikes.len();
        engine.save();
        engine.step(step, 1, spikes)?;
        if !engine.all_finite() {
            spikes.truncate(before);
            return Ok(step);
        }
    }
    Err(EngineError("internal error: a window of steps was not finite, but each of its steps is".into()))
}

/// The states at the start of the step `last`, which the engine has just saved, and of as many steps before as were asked for.
fn history(
    program: &Program,
    extent: &Extent,
    engine: &mut dyn Engine,
    last: u64,
    options: &RunOptions,
) -> Result<History, EngineError> {
    let mut history = History::new();
    let mut spikes = Vec::new();
    let mut now = last;
    if options.trace > 1 {
        // A run is the same every time: doing it again costs nothing while all goes well.
        engine.init()?;
        let first = (last + 1).saturating_sub(options.trace as u64);
        now = 0;
        while now < first {
            let window = (first - now).min(u64::from(options.window.max(1)));
            engine.step(now, window as u32, &mut spikes)?;
            spikes.clear();
            now += window;
        }
    } else {
        engine.restore();
    }
    for step in now..=last {
        history.push_back((step, states(program, extent, engine)?));
        engine.step(step, 1, &mut spikes)?;
    }
    Ok(history)
}

/// The states of all cells at the start of some steps.
type History = VecDeque<(u64, HashMap<FieldId, Vec<f64>>)>;

fn states(program: &Program, extent: &Extent, engine: &dyn Engine) -> Result<HashMap<FieldId, Vec<f64>>, EngineError> {
    program
        .fields_where(|k| matches!(k, FieldKind::State(_)))
        .into_iter()
        .map(|field| {
            let cells = program.field(field).kind.space().map_or(0, |s| extent.cells[s.0 as usize]);
            let mut values = Vec::new();
            engine.read(field, 0..cells, &mut values)?;
            Ok((field, values))
        })
        .collect()
}

/// Names the first cell, and in it the first state, that is not finite.
fn culprit(
    model: &Model,
    program: &Program,
    extent: &Extent,
    engine: &dyn Engine,
    step: u64,
    history: &History,
) -> Result<Diagnostic, EngineError> {
    let now = states(program, extent, engine)?;
    let mut found: Option<(usize, FieldId, f64)> = None;
    for (field, _) in program.fields.iter().enumerate() {
        let field = FieldId(field as u32);
        let Some(values) = now.get(&field) else { continue };
        if let Some(cell) = values.iter().position(|x| !x.is_finite())
            && found.is_none_or(|f| cell < f.0)
        {
            found = Some((cell, field, values[cell]));
        }
    }
    let Some((cell, field, value)) = found else {
        return Err(EngineError("internal error: a value was not finite, but none is found".into()));
    };
    let name = &program.field(field).name;
    let t = moment(step, extent.grid.dt);
    let what = if value.is_nan() { "NaN (not a number)" } else { "infinite" };
    let message = match step {
        0 => format!("the initial value of `{name}` of cell {cell} is {what}"),
        _ => format!("`{name}` of cell {cell} became {what} at t = {t} ms"),
    };
    let state = model.states.iter().find(|s| &s.name == name);
    let mut d = match state {
        Some(s) => Diagnostic::new(Code::NotFinite, s.span, message, "this state"),
        None => Diagnostic::without_place(Code::NotFinite, message),
    };
    let space = program.field(field).kind.space();
    for (at, before) in history {
        let mut values: Vec<String> = Vec::new();
        for (i, f) in program.fields.iter().enumerate() {
            if f.kind.space() == space
                && let Some(x) = before.get(&FieldId(i as u32)).and_then(|v| v.get(cell))
            {
                let unit = model.states.iter().find(|s| s.name == f.name).map(|s| s.unit.clone());
                values.push(match unit {
                    Some(u) if u.name != "1" => format!("{} = {} {}", f.name, shown(u.show(*x)), u.name),
                    _ => format!("{} = {}", f.name, shown(*x)),
                });
            }
        }
        d = d.note(format!("at t = {} ms: {}", moment(*at, extent.grid.dt), values.join(", ")));
    }
    let before = history.back().map(|(at, states)| (*at, states));
    let roots: Vec<NodeId> = match (state, before) {
        (Some(s), None) => vec![s.init],
        (Some(s), Some(_)) => [vec![s.rate], resets(model, name)].concat(),
        (None, _) => vec![],
    };
    // Where later stages and spikes read new values, these are to blame.
    let after = before.map(|(at, old)| (at + 1, finite(&now, old, cell)));
    let leaf = |node, states| value_of(model, program, extent, engine, node, cell, states);
    let fault = ode::fault(model, &roots, |node| leaf(node, before)).or_else(|| {
        let (at, states) = after.as_ref()?;
        ode::fault(model, &roots, |node| leaf(node, Some((*at, states))))
    });
    if let Some(fault) = fault {
        d = d.note(said(&fault));
        if let Some(help) = fault.help {
            return Ok(d.help(help));
        }
    }
    if step > 0 {
        let other = match model.method {
            Method::Euler | Method::Heun | Method::Rk4 => Method::ExpEuler,
            Method::ExpEuler | Method::Cnexp => Method::Rk4,
        };
        d = d.help(format!(
            "try a smaller time step (`--dt {}ms`) or another method (`--method {}`)",
            shown(extent.grid.dt / 2.0),
            other.name()
        ));
    }
    Ok(d)
}

/// What spikes set a state to.
fn resets(model: &Model, name: &str) -> Vec<NodeId> {
    let all = model.populations.iter().filter_map(|p| p.spike.as_ref()).flat_map(|spike| &spike.resets);
    all.filter(|(state, _)| model.state(*state).name == name).map(|(_, value)| *value).collect()
}

/// The new states of all cells, but for those that are not finite in this cell: of these the old ones.
fn finite(
    new: &HashMap<FieldId, Vec<f64>>,
    old: &HashMap<FieldId, Vec<f64>>,
    cell: usize,
) -> HashMap<FieldId, Vec<f64>> {
    let of_cell = |values: &Vec<f64>| values.get(cell).is_some_and(|x| x.is_finite());
    let kept = new.iter().filter(|(_, values)| of_cell(values)).map(|(field, values)| (*field, values.clone()));
    old.clone().into_iter().chain(kept).collect()
}

/// A fault as a note, its expression cut short.
fn said(fault: &ode::Fault) -> String {
    let mut text = fault.text.clone();
    if let Some((end, _)) = text.char_indices().nth(LONGEST_EXPRESSION) {
        text.truncate(end);
        text.push_str(" ...");
    }
    format!("{} in `{text}`", fault.what)
}

/// So many characters of an expression are shown.
const LONGEST_EXPRESSION: usize = 160;

/// What an expression of a cell reads: at the start of a step, or before the first.
fn value_of(
    model: &Model,
    program: &Program,
    extent: &Extent,
    engine: &dyn Engine,
    node: Node,
    cell: usize,
    before: Option<(u64, &HashMap<FieldId, Vec<f64>>)>,
) -> Option<Value> {
    let of_cell = |name: &str| {
        let field = program.find_field(name)?;
        let mut value = Vec::new();
        engine.read(field, cell..cell + 1, &mut value).ok()?;
        value.first().copied()
    };
    match node {
        Node::Param(p) if model.param(p).population.is_none() => ode::evaluate(model, model.param(p).value).ok(),
        Node::Param(p) => of_cell(&model.param(p).name).map(Value::Real),
        Node::State(s) => {
            let field = program.find_field(&model.state(s).name)?;
            before?.1.get(&field)?.get(cell).copied().map(Value::Real)
        }
        Node::Time | Node::StepTime => Some(Value::Real(before?.0 as f64 * extent.grid.dt)),
        Node::Index => Some(Value::Real(cell as f64)),
        Node::Const(..)
        | Node::Bool(_)
        | Node::Next(_)
        | Node::Dv
        | Node::Junction(_)
        | Node::Unary(..)
        | Node::Binary(..)
        | Node::Select(..)
        | Node::Draw(..)
        | Node::Data(_)
        | Node::Series(..)
        | Node::Noise(..) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::moment;

    #[test]
    fn moments_hide_the_rounding_of_steps() {
        assert_eq!((200_148.0 * 0.025).to_string(), "5003.700000000001");
        assert_eq!(moment(200_148, 0.025), "5003.7");
        assert_eq!(moment(0, 0.025), "0");
        assert_eq!(moment(3, 0.1), "0.3");
        assert_eq!(moment(7_200_000_001, 0.025), "180000000.025");
    }
}
