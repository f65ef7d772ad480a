//! Steps as long as the error allows: reference solutions of one cell or a small network.
//!
//! In come a continuous model with [`Method::Adaptive`](crate::hir::Method), its parameters and edges, and an engine that knows initial values and what is
//! recorded; out goes another engine. Never true here: a step of the model's grid is taken. The grid is where a run looks at the solution, which is
//! interpolated in between.
//!
//! All equations are taken together ([`equations`]), with exact slopes, sparse ([`sparse`]), by a Rosenbrock method of order 5 ([`rodas`]). A step ends where
//! something jumps: where a pulse begins or ends ([`switches`]), where what is no line jumps or has moved far ([`ahead`]), where an event arrives, and where a cell spikes, which is found by steps that end nearer and
//! nearer to it. What events bring and what spikes reset happens between two steps, in the order of the times, which no grid rounds.

pub mod ahead;
pub mod equations;
pub mod events;
mod refuse;
pub mod rodas;
pub mod sparse;
pub mod switches;
pub mod tape;

pub use refuse::refused;

use crate::discretize::{connection_space, diffusion, projection_space};
use crate::engine::{Effort, Engine, EngineError, Setup, Spike};
use crate::ode::{self, Condition, Kind, Model, Node, NodeId, Tolerances};
use crate::operators::{BinaryOp, UnaryOp};
use crate::step::{FieldId, Program, Source, Value};
use crate::units::Dim;
use ahead::Conditions;
use equations::Equations;
use events::{Events, TINY_TIME};
use rodas::Equations as _;
use rustc_hash::FxHashMap as HashMap;
use std::cmp::Reverse;
use std::ops::Range;
use std::sync::Arc;
use switches::Switches;
use tape::{Changes, Ground, changes};

/// What drives take for the length of a step, in ms: a power of 2.
const TINY: f64 = 7.450580596923828e-9;
/// A step is at most so many times as long as the one before, and at least this part of one that was too long.
const GROWS: (f64, f64) = (0.15, 6.0);
/// How far the length of the next step stays below what the error allows.
const SAFETY: f64 = 0.9;
/// No step is shorter (ms). Some are too short to be told from none: a cell whose spike is an exponential reaches any threshold in next to no time.
const SHORTEST: f64 = 1e-30;
/// So many steps come at least [`LEAST`] further in all, or one of them ends where an event or a spike does: else no step gets anywhere.
const STUCK: u32 = 10_000;
/// See [`STUCK`] (ms): where a rate of 1 mV/ms turns round at a threshold, they come a fifth as far.
const LEAST: f64 = 0.01;
/// So many times at most is a step done again.
const TRIES: u32 = 60;

/// An engine that chooses its steps.
pub struct Adaptive {
    model: Model,
    setup: Setup,
    inner: Box<dyn Engine>,
    /// The fields of the states, parameters, cables and edges in the program.
    fields: HashMap<Source, FieldId>,
    states: HashMap<FieldId, usize>,
    tolerances: Tolerances,
    running: Option<Running>,
}

/// A run that has begun.
struct Running {
    ground: Ground,
    equations: Equations,
    switches: Vec<Switches>,
    /// When steps end besides, in order, because of the time alone.
    ahead: Vec<f64>,
    /// What may become true or false within a step.
    conditions: Vec<Conditions>,
    events: Events,
    /// What errors of each unknown are measured by besides its value, by state: the largest value so far, or 1.
    scales: Vec<Scale>,
    y: Vec<f64>,
    t: f64,
    /// Where the run stands: at `t`, or within the last step.
    now: f64,
    /// The length of the next step.
    h: f64,
    /// Until when the run had come some way, and its steps since then.
    stuck: (f64, u32),
    /// Do steps end where the caller looks, because it may change what it sees?
    watched: bool,
    /// When something jumps next.
    piece_end: f64,
    step: rodas::Step,
    rates: Vec<f64>,
    in_time: Vec<f64>,
    room: Vec<f64>,
    /// Spikes behind `now`.
    waiting: Vec<(f64, FieldId, u64)>,
    effort: Effort,
}

/// What the errors of a state are measured by.
#[derive(Debug, Clone)]
struct Scale {
    unknowns: Range<usize>,
    /// Is it 1: mV, or a number without a unit?
    fixed: bool,
    largest: f64,
}

impl Adaptive {
    /// Of a model and its program, which an engine runs that knows its `init` and its `observe`.
    pub fn new(model: &Model, program: &Program, setup: &Setup, inner: Box<dyn Engine>) -> Adaptive {
        let named = program.fields.iter().zip(0..).map(|(field, id)| (field.source, FieldId(id)));
        let fields: HashMap<Source, FieldId> = named.filter(|(source, _)| *source != Source::None).collect();
        let state = |(source, id): (&Source, &FieldId)| match *source {
            Source::State(s) => Some((*id, s as usize)),
            _ => None,
        };
        let states = fields.iter().filter_map(state).collect();
        let (model, setup, tolerances) = (model.clone(), setup.clone(), model.tolerances);
        Adaptive { model, setup, inner, fields, states, tolerances, running: None }
    }

    /// The values of a constant field or a state.
    fn values(&self, source: Source, count: usize) -> Result<Vec<f64>, EngineError> {
        let field = self.fields.get(&source).ok_or_else(|| lost("a field"))?;
        let mut values = Vec::new();
        self.inner.read(*field, 0..count, &mut values)?;
        Ok(values)
    }

    fn ground(&self) -> Result<Ground, EngineError> {
        let model = &self.model;
        let sizes: Vec<usize> = self.setup.sizes[..model.populations.len()].to_vec();
        let mut next = 0;
        let unknowns = model.states.iter().map(|state| {
            let first = next;
            state.edges.is_none().then(|| next += sizes[state.population]).map(|()| first)
        });
        let unknowns = unknowns.collect();
        let mut params = Vec::new();
        for (param, number) in model.params.iter().zip(0..) {
            params.push(match param.population {
                Some(population) => self.values(Source::Param(number), sizes[population])?,
                None => match ode::evaluate(model, param.value) {
                    Ok(Value::Real(x)) => vec![x],
                    _ => Vec::new(),
                },
            });
        }
        let samples = |file: u32| {
            let field = self.fields.get(&Source::Series(file));
            let known = self.setup.series.iter().find(|(id, _)| Some(id) == field);
            known.map(|(_, samples)| samples.clone()).unwrap_or_default()
        };
        let series = (0..model.data.len() as u32).map(samples).collect();
        Ok(Ground { sizes, unknowns, params, series })
    }

    fn begin(&mut self) -> Result<Running, EngineError> {
        let ground = self.ground()?;
        let edges = |space| self.setup.edges_of(space).cloned().ok_or_else(|| lost("edges"));
        let joined: Vec<Arc<_>> = (0..self.model.connections.len())
            .map(|c| edges(connection_space(&self.model, c)))
            .collect::<Result<_, _>>()?;
        let mut axial = Vec::new();
        for (cable, number) in self.model.cables.iter().zip(0..) {
            axial.push(self.values(Source::Axial(number), ground.sizes[cable.population])?);
        }
        let mut passages = Vec::new();
        for (number, diffusion) in self.model.diffusions.iter().enumerate() {
            passages.push(self.values(diffusion::link(number), ground.sizes[diffusion.population])?);
        }
        let mut lines = Vec::new();
        for p in 0..self.model.projections.len() {
            let edges = edges(projection_space(&self.model, p))?;
            let count = edges.sources.len();
            let weights = self.values(Source::Weight(p as u32), count)?;
            let delays = self.values(Source::Delay(p as u32), count)?;
            lines.push(events::Lines { edges, weights, delays });
        }
        let equations = Equations::new(&mut self.model, &ground, &joined, &axial, &passages)?;
        let model = &mut self.model;
        let (mut switches, mut ahead, mut conditions) = (Vec::new(), Vec::new(), Vec::new());
        for population in 0..model.populations.len() {
            let mut roots = equations::timed(model, &ground, population)?;
            // Not those of spike rules: whether a cell spikes is looked at within every step.
            conditions.extend(Conditions::new(model, &ground, population, &roots)?);
            roots.extend(events::read(model, population)?);
            switches.extend(Switches::new(model, &ground, population, &roots)?);
            ahead.extend(ahead::times(model, &ground, population, &roots)?);
        }
        ahead.sort_by(f64::total_cmp);
        let events = Events::new(model, &ground, &self.fields, &lines)?;
        let size = equations::size(model, &ground);
        let mut y = vec![0.0; size];
        let mut scales = Vec::new();
        for (number, (state, first)) in model.states.iter().zip(&ground.unknowns).enumerate() {
            let Some(first) = *first else { continue };
            let unknowns = first..first + ground.sizes[state.population];
            let field = self.fields.get(&Source::State(number as u32)).ok_or_else(|| lost("a state"))?;
            let mut values = Vec::new();
            self.inner.read(*field, 0..unknowns.len(), &mut values)?;
            y[unknowns.clone()].copy_from_slice(&values);
            let fixed = state.dim == Dim::VOLTAGE || state.dim == Dim::ONE;
            scales.push(Scale { unknowns, fixed, largest: if fixed { 1.0 } else { 0.0 } });
        }
        let room = || vec![0.0; size];
        let mut running = Running {
            ground,
            equations,
            switches,
            ahead,
            conditions,
            events,
            scales,
            y,
            t: 0.0,
            now: 0.0,
            h: 0.0,
            stuck: (0.0, 0),
            watched: false,
            piece_end: f64::NEG_INFINITY,
            step: rodas::Step::new(size),
            rates: room(),
            in_time: room(),
            room: room(),
            waiting: Vec::new(),
            effort: Effort::default(),
        };
        if running.is_finite() {
            running.switch()?;
            running.events.begin(&running.y, running.t, running.equations.switched);
            running.happen()?;
            running.h = running.first_step(&self.tolerances);
        }
        Ok(running)
    }
}

impl Running {
    fn is_finite(&self) -> bool {
        self.y.iter().all(|x| x.is_finite())
    }

    /// A piece of time begins in which nothing jumps that depends on the time alone.
    fn switch(&mut self) -> Result<(), EngineError> {
        let beyond = self.t + TINY_TIME * self.t.abs().max(1.0);
        let ahead = self.ahead.get(self.ahead.partition_point(|at| *at <= beyond)).copied();
        self.piece_end = self.switches.iter().map(|s| s.after(self.t)).chain(ahead).fold(f64::INFINITY, f64::min);
        let end = if self.piece_end.is_finite() { self.piece_end } else { self.t + 1.0 };
        self.equations.switched = 0.5 * (self.t + end);
        self.equations.settle(self.t, &mut self.y, &mut self.room)
    }

    /// What is due now happens: events arrive, cells spike, are reset and wake up, until nothing more is due.
    fn happen(&mut self) -> Result<(), EngineError> {
        let Running { equations, events, y, t, waiting, room, .. } = self;
        if events.happen(*t, equations.switched, y, &mut equations.still, waiting)? {
            equations.settle(*t, y, room)?;
        }
        Ok(())
    }

    /// What the error of an unknown is measured by.
    fn weights<'a>(&'a self, tolerances: &'a Tolerances) -> impl Iterator<Item = (usize, f64)> + 'a {
        self.scales.iter().flat_map(move |scale| {
            let least = tolerances.atol * scale.largest;
            let (y, after) = (&self.y, &self.step.after);
            let weight = move |i: usize| tolerances.rtol * y[i].abs().max(after[i].abs()) + least;
            scale.unknowns.clone().map(move |i| (i, weight(i)))
        })
    }

    /// The error of the step that was just tried, in units of what is allowed, and the unknown that has it.
    fn error(&mut self, tolerances: &Tolerances) -> (f64, usize) {
        for scale in self.scales.iter_mut().filter(|scale| !scale.fixed) {
            let values = self.step.after[scale.unknowns.clone()].iter().chain(&self.y[scale.unknowns.clone()]);
            scale.largest = values.fold(scale.largest, |most, x| if x.is_finite() { most.max(x.abs()) } else { most });
        }
        let mut worst = (0.0, 0);
        for (i, weight) in self.weights(tolerances) {
            let (error, value) = (self.step.error[i], self.step.after[i]);
            let part = if error == 0.0 && value.is_finite() { 0.0 } else { error.abs() / weight };
            let part = if part.is_nan() || !value.is_finite() { f64::INFINITY } else { part };
            if part > worst.0 {
                worst = (part, i);
            }
        }
        worst
    }

    /// The length of the first step: a hundredth of the time in which something changes by its own size.
    fn first_step(&mut self, tolerances: &Tolerances) -> f64 {
        let Running { equations, y, t, rates, .. } = self;
        equations.rates(*t, y, rates);
        self.step.after.copy_from_slice(&self.y);
        let (mut size, mut speed) = (0.0f64, 0.0f64);
        for (i, weight) in self.weights(tolerances).filter(|(_, weight)| *weight > 0.0) {
            size = size.max(self.y[i].abs() / weight);
            if self.equations.mass()[i] != 0.0 {
                speed = speed.max(self.rates[i].abs() / weight);
            }
        }
        let h = if size > 1e-5 && speed > 1e-5 { 0.01 * size / speed } else { 1e-4 };
        h.clamp(1e-9, 0.1).min(tolerances.max_step)
    }

    /// One step, on the way to `end`; what is due at its end has happened when it is done.
    fn advance(&mut self, dt: f64, tolerances: &Tolerances, end: f64) -> Result<(), EngineError> {
        let end = if self.watched { end } else { f64::INFINITY };
        let stop = self.piece_end.min(self.events.next()).min(end);
        let t = self.t;
        self.step.t = t;
        self.step.before.copy_from_slice(&self.y);
        let Running { equations, y, rates, .. } = &mut *self;
        equations.rates(t, y, rates);
        equations.slopes(t, y);
        let mut h = self.h.min(tolerances.max_step);
        let mut in_time_of = None;
        let (mut failed, mut worst) = (false, 0);
        for _ in 0..TRIES {
            let to_stop = stop - t;
            let ends = h * 1.01 >= to_stop;
            if ends {
                h = to_stop;
            } else if h * 2.0 > to_stop {
                h = 0.5 * to_stop;
            }
            if h < SHORTEST {
                break;
            }
            if self.equations.in_time && in_time_of.is_none_or(|of: f64| h < 0.1 * of) {
                self.slopes_in_time(h);
                in_time_of = Some(h);
            }
            if !self.equations.factor(h) {
                (h, failed) = (0.5 * h, true);
                continue;
            }
            self.take(h);
            let (error, of) = self.error(tolerances);
            worst = of;
            let factor = (SAFETY * error.powf(-0.2)).clamp(GROWS.0, GROWS.1);
            if error > 1.0 || error.is_nan() {
                self.effort.rejected += 1;
                (h, failed) = (h * if error.is_finite() { factor.min(0.9) } else { GROWS.0 }, true);
                continue;
            }
            self.step.prepare();
            if let Some(steady) = self.steady(dt) {
                self.effort.rejected += 1;
                (h, failed) = (if failed { steady.min(0.5 * h) } else { steady }, true);
                continue;
            }
            self.effort.steps += 1;
            let wanted = h * if failed { factor.min(1.0) } else { factor };
            // A step that was cut short says little of the next.
            self.h = if ends { wanted.max(self.h) } else { wanted };
            let crossed = self.first_crossing(dt);
            self.t = match crossed {
                Some(part) => self.land(part * h)?,
                None if ends => stop,
                None => t + h,
            };
            self.y.copy_from_slice(&self.step.after);
            // Events and spikes follow each other as closely as they like, but not without end at one time.
            let comes = self.t > self.stuck.0 + LEAST || (self.t > t && (ends || crossed.is_some()));
            self.stuck = if comes { (self.t, 0) } else { (self.stuck.0, self.stuck.1 + 1) };
            if self.stuck.1 > STUCK {
                break;
            }
            if self.t >= self.piece_end {
                self.switch()?;
            }
            return self.happen();
        }
        // No step is short enough: what is off the most is no number any more, which ends the run.
        self.y.get_mut(worst).map(|x| *x = f64::NAN).ok_or_else(|| lost("a state"))
    }

    fn take(&mut self, h: f64) {
        let Running { equations, step, rates, in_time, .. } = self;
        let slopes = equations.in_time.then_some(&in_time[..]);
        step.take(equations, h, rates, slopes);
    }

    /// The slopes of the rates in the time, from two later times within a step.
    fn slopes_in_time(&mut self, h: f64) {
        let Running { equations, step, y, rates, in_time, room, .. } = self;
        let apart = 1e-4 * h;
        equations.rates(step.t + apart, y, in_time);
        equations.rates(step.t + 2.0 * apart, y, room);
        for ((slope, later), now) in in_time.iter_mut().zip(&*room).zip(&*rates) {
            *slope = (4.0 * (*slope - now) - (later - now)) / (2.0 * apart);
        }
    }

    /// How long a step may be at most, if a condition changes within the one that was just tried, and it is longer than `dt`: as long as no condition
    /// changes, or `dt`.
    fn steady(&mut self, dt: f64) -> Option<f64> {
        if self.conditions.is_empty() || self.step.h <= dt * 1.01 {
            return None;
        }
        let Running { equations, conditions, step, room, .. } = self;
        let mut truths = |y: &[f64], t: f64| -> Vec<_> {
            conditions.iter_mut().map(|conditions| conditions.at(y, t, equations.switched)).collect()
        };
        let before = truths(&step.before, step.t);
        let points = (step.h / dt * (1.0 - 1e-9)).floor() as u64;
        for point in 1..=points {
            let t = step.t + point as f64 * dt;
            (0..room.len()).for_each(|i| room[i] = step.at(i, t));
            if truths(room, t) != before {
                return Some(dt * point.saturating_sub(1).max(1) as f64);
            }
        }
        // What changes behind the last of these points does so within less than `dt`.
        let steady = points as f64 * dt;
        let changes = points > 0 && steady < step.h * (1.0 - 1e-6);
        (changes && truths(&step.after, step.t + step.h) != before).then_some(steady)
    }

    /// The part of the step that was just taken after which a cell spikes first, if one does.
    fn first_crossing(&mut self, dt: f64) -> Option<f64> {
        if !self.events.any_spikes() {
            return None;
        }
        let parts = (self.step.h / dt).ceil().max(4.0);
        let part = |number: u64| (number as f64 / parts).min(1.0);
        let over = (1..=parts as u64).find(|&number| self.within(part(number), Events::over))?;
        let (mut low, mut high) = (part(over - 1), part(over));
        for _ in 0..60 {
            let middle = 0.5 * (low + high);
            if self.within(middle, Events::over) {
                high = middle
            } else {
                low = middle
            }
            if high - low < 1e-13 {
                break;
            }
        }
        Some(high)
    }

    /// What is seen after a part of the step.
    fn within<T>(&mut self, part: f64, look: fn(&mut Events, &[f64], f64, f64) -> T) -> T {
        let Running { equations, events, step, room, .. } = self;
        let t = step.t + part * step.h;
        if part == 1.0 {
            return look(events, &step.after, t, equations.switched);
        }
        (0..room.len()).for_each(|i| room[i] = step.at(i, t));
        look(events, room, t, equations.switched)
    }

    /// Takes the step again so that it ends where a cell spikes, and no earlier. Answers when that is.
    fn land(&mut self, near: f64) -> Result<f64, EngineError> {
        let least = 0.5 * TINY_TIME * self.step.t.abs().max(1.0);
        let (mut low, mut high) = (0.0, self.step.h);
        let part = near / self.step.h;
        let [before, there] = [part * (1.0 - 1e-4), part].map(|part| self.within(part, Events::margin));
        let slope = (there - before) / (1e-4 * near);
        let mut last: Option<(f64, f64)> = None;
        let mut h = near;
        for _ in 0..60 {
            if !self.equations.factor(h) {
                return Err(lost("a pivot"));
            }
            self.take(h);
            let (over, margin) = (self.within(1.0, Events::over), self.within(1.0, Events::margin));
            // What is no number has gone too far.
            if over || margin.is_nan() {
                high = h
            } else {
                low = h
            }
            let slope = last.map_or(slope, |(before, then)| (margin - then) / (h - before));
            let slope = Some(slope).filter(|slope| *slope > 0.0 && slope.is_finite() && margin.is_finite());
            if over && (high - low <= least || slope.is_some_and(|slope| margin / slope <= least)) {
                break;
            }
            last = margin.is_finite().then_some((h, margin));
            // Where a line through the last two ends says, and not before it.
            h = match slope {
                Some(slope) => h - margin / slope + 0.5 * least,
                None => 0.5 * (low + high),
            };
            if h <= low || h >= high {
                h = 0.5 * (low + high);
            }
            if h <= low || h >= high {
                // There is nothing between them.
                if self.equations.factor(high) {
                    self.take(high);
                }
                break;
            }
        }
        self.step.prepare();
        Ok(self.step.t + self.step.h)
    }

    /// The value of an unknown where the run stands.
    fn value(&self, unknown: usize) -> f64 {
        if self.now >= self.t { self.y[unknown] } else { self.step.at(unknown, self.now) }
    }
}

impl Engine for Adaptive {
    fn init(&mut self) -> Result<(), EngineError> {
        self.inner.init()?;
        self.running = Some(self.begin()?);
        Ok(())
    }

    fn step(&mut self, first_step: u64, steps: u32, spikes: &mut Vec<Spike>) -> Result<(), EngineError> {
        let Adaptive { model, running, tolerances, .. } = self;
        let running =
            running.as_mut().ok_or_else(|| EngineError("a step was asked for before the states were set".into()))?;
        let dt = model.dt;
        if (first_step as f64 * dt - running.now).abs() > 1e-6 * dt {
            return Err(EngineError("a run with adaptive steps begins at its beginning".into()));
        }
        let end = (first_step + u64::from(steps)) as f64 * dt;
        if running.events.end_at(model.duration).is_some_and(|last| end > last + 0.5 * dt) {
            return Err(EngineError("drives are known up to the duration of the run only".into()));
        }
        while running.t < end && running.is_finite() {
            running.advance(dt, tolerances, end)?;
        }
        running.now = end;
        let mut found = Vec::new();
        running.waiting.retain(|&(t, field, cell)| {
            if t > end {
                return true;
            }
            let mut step = (t / dt).ceil().max(1.0) as u64 - 1;
            if ((step + 1) as f64 * dt) < t {
                step += 1;
            }
            found.push(Spike { step: step.min(first_step + u64::from(steps) - 1), field, cell, early: 0 }.at(t, dt));
            false
        });
        // Of one step in the order of their times.
        found.sort_by_key(|spike| (spike.step, Reverse(spike.early), spike.field, spike.cell));
        spikes.extend(found);
        running.effort.rates = running.equations.work.rates;
        running.effort.slopes = running.equations.work.slopes;
        running.effort.factored = running.equations.work.factored;
        Ok(())
    }

    fn observe(&mut self, step: u64) -> Result<(), EngineError> {
        let Some(running) = &self.running else {
            return Err(EngineError("outputs were asked for before the states were set".into()));
        };
        for (&field, &state) in &self.states {
            let Some(first) = running.ground.unknowns[state] else { continue };
            let count = running.ground.sizes[self.model.states[state].population];
            let values: Vec<f64> = (first..first + count).map(|at| running.value(at)).collect();
            self.inner.write(field, &values)?;
        }
        // Places of cells with sections have copies, which what comes from elsewhere reads.
        for (&source, &field) in &self.fields {
            let Source::There(place, state) = source else { continue };
            let (place, state) = (place as usize, state as usize);
            let Some(first) = running.ground.unknowns[state] else { continue };
            let of = self.model.states[state].population;
            let element = |at| self.model.element_in(of, place, at).ok_or_else(|| lost("a place"));
            let copied = |at| Ok(running.value(first + element(at)?));
            let values = (0..running.ground.sizes[place]).map(copied).collect::<Result<Vec<f64>, EngineError>>()?;
            self.inner.write(field, &values)?;
        }
        self.inner.observe(step)
    }

    fn read(&self, field: FieldId, cells: Range<usize>, out: &mut Vec<f64>) -> Result<(), EngineError> {
        let state = self.states.get(&field).copied();
        let (Some(running), Some(state)) = (&self.running, state) else {
            return self.inner.read(field, cells, out);
        };
        let Some(first) = running.ground.unknowns[state] else { return self.inner.read(field, cells, out) };
        out.extend(cells.map(|cell| running.value(first + cell)));
        Ok(())
    }

    fn write(&mut self, field: FieldId, values: &[f64]) -> Result<(), EngineError> {
        let Some(running) = &mut self.running else { return self.inner.write(field, values) };
        if running.t > running.now {
            let why = "with adaptive steps, who changes states begins to do so before the first step";
            return Err(EngineError(why.into()));
        }
        running.watched = true;
        let state = self.states.get(&field).copied();
        if let Some(first) = state.and_then(|state| running.ground.unknowns[state]) {
            running.y[first..first + values.len()].copy_from_slice(values);
            running.events.begin(&running.y, running.t, running.equations.switched);
            return running.equations.settle(running.t, &mut running.y, &mut running.room);
        }
        self.inner.write(field, values)
    }

    fn all_finite(&self) -> bool {
        self.running.as_ref().is_none_or(Running::is_finite)
    }

    fn effort(&self) -> Option<Effort> {
        self.running.as_ref().map(|running| running.effort)
    }
}

fn lost(what: &str) -> EngineError {
    EngineError(format!("internal error: adaptive steps have lost {what}"))
}

/// What makes the cells of a population spike, and how far they are above it, if they have a rule.
fn spiking(model: &mut Model, population: usize) -> Result<Option<[NodeId; 2]>, EngineError> {
    let Some(spike) = &model.populations[population].spike else { return Ok(None) };
    let truth = match spike.condition {
        Condition::Crosses(x, level) => model.graph.binary(BinaryOp::Ge, x, level),
        Condition::When(condition) => condition,
    };
    let margin = margin_of(model, truth).ok_or_else(|| lost("what makes a spike"))?;
    Ok(Some([truth, margin]))
}

/// How far a condition is fulfilled: a number that is 0 where it becomes true and more behind. None if it is no comparison of numbers.
///
/// It says where to look for a spike, and not whether there is one: at 0 it does not know `>` from `>=`.
fn margin_of(model: &mut Model, condition: NodeId) -> Option<NodeId> {
    let known = changes(model, &[condition]);
    margin_in(model, &known, condition)
}

fn margin_in(model: &mut Model, known: &HashMap<NodeId, Changes>, condition: NodeId) -> Option<NodeId> {
    let g = &mut model.graph;
    match g.node(condition) {
        // What no state decides does not change within a step, and is never nearly true.
        node if known[&condition] == Changes::Never || (known[&condition] == Changes::InTime && is_order(node)) => {
            let [least, most] = [f64::NEG_INFINITY, f64::INFINITY].map(|x| g.number(x, Dim::ONE));
            Some(g.select(condition, most, least))
        }
        Node::Binary(BinaryOp::Ge | BinaryOp::Gt, x, y) => Some(g.binary(BinaryOp::Sub, x, y)),
        Node::Binary(BinaryOp::Le | BinaryOp::Lt, x, y) => Some(g.binary(BinaryOp::Sub, y, x)),
        Node::Binary(op @ (BinaryOp::And | BinaryOp::Or), x, y) => {
            let (x, y) = (margin_in(model, known, x)?, margin_in(model, known, y)?);
            let op = if op == BinaryOp::And { BinaryOp::Min } else { BinaryOp::Max };
            Some(model.graph.binary(op, x, y))
        }
        Node::Unary(UnaryOp::Not, x) => {
            let x = margin_in(model, known, x)?;
            Some(model.graph.unary(UnaryOp::Neg, x))
        }
        _ => None,
    }
}

/// Does it say which of two numbers is more?
fn is_order(node: Node) -> bool {
    matches!(node, Node::Binary(BinaryOp::Ge | BinaryOp::Gt | BinaryOp::Le | BinaryOp::Lt, ..))
}

/// Is it a clock of the spikes of a file?
fn is_clock(model: &Model, population: usize) -> bool {
    model.populations[population].kind == Kind::Clock
}
