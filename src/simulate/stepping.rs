//! A run that its caller advances: some steps at a time, with states and parameters read and changed in between.
//!
//! In come what a [`Run`](super::Run) has, and wishes; out go values, spikes and checkpoints.
//! Never true here: a number is recorded, or a step computed with a parameter that the model would refuse.
//!
//! What changes between two steps changes nothing else: states keep their values when a parameter is set, and parameters when states are.

use super::checkpoint::{Start, past, reached};
use super::culprit::Scene;
use super::extent::Extent;
use super::records::{Record, Records, records};
use super::run::{Ending, RunError, Watcher};
use super::time::{MOST_STEPS, moment};
use super::trap::History;
use super::ways::ways;
use crate::data;
use crate::data::{DataFile, Numbers};
use crate::diag::{Code, Diagnostic};
use crate::engine::{Engine, EngineError, Spike};
use crate::hir::{StateKind, Whose, shown};
use crate::ode::{self, Graph, Model, Node, NodeId, Projection};
use crate::results::{Checkpoint, Way};
use crate::step::{FieldId, Program, Source, Value};
use crate::units::{Dim, DisplayUnit};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

/// A run between two steps.
pub struct Stepping {
    model: Model,
    program: Program,
    extent: Extent,
    records: Records,
    engine: Box<dyn Engine>,
    /// Steps of one call of the engine at most.
    window: u32,
    /// Steps done.
    now: u64,
    /// Those after which its files end; none if it has none.
    end: Option<u64>,
    spikes: Vec<Spike>,
    /// For which step outputs have been computed, if nothing has changed since.
    observed: Option<u64>,
    /// The expressions as they were in the beginning, and what parameters have been set since: expressions are never forgotten, so that
    /// now and then they are built again.
    graph: Graph,
    set: BTreeMap<usize, Given>,
    /// What depends on a parameter, as far as it has been asked for.
    effects: BTreeMap<usize, Arc<Effects>>,
    /// The ways that events take, once they have been asked for: nothing that is set changes them.
    ways: OnceLock<Vec<Way>>,
}

/// A value that can be read between two steps, and some of them written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Quantity {
    /// A state, by its place in the model.
    State(usize),
    /// A parameter, by its place in the model.
    Param(usize),
    /// What is recorded, by its place in the [`Records`].
    Record(usize),
}

/// What a parameter was set to.
#[derive(Debug, Clone, PartialEq)]
enum Given {
    One(f64),
    /// For each cell; and the place of these numbers among the model's data.
    PerCell(usize),
}

/// What changes with a parameter.
#[derive(Debug, Default)]
struct Effects {
    /// Parameters that engines have, this one among them.
    params: Vec<(usize, FieldId)>,
    /// What must hold.
    demands: Vec<usize>,
    /// Why it cannot be set, if it cannot.
    refused: Option<String>,
}

/// Expressions are built again when there are so many more than in the beginning.
const SPARE: usize = 10_000;

impl Stepping {
    /// Sets the initial values. A call of the engine takes at most `window` steps.
    pub fn new(
        model: Model,
        program: Program,
        extent: Extent,
        mut engine: Box<dyn Engine>,
        window: u32,
    ) -> Result<Stepping, RunError> {
        let records = records(&model, &program, &extent).map_err(RunError::Model)?;
        engine.init()?;
        let reads_series = program.fields.iter().any(|field| matches!(field.source, Source::Series(_)));
        let reads_spikes = model.populations.iter().any(|p| p.kind == ode::Kind::Clock);
        let end = (reads_series || reads_spikes).then_some(extent.grid.steps);
        let graph = model.graph.clone();
        let (set, effects) = (BTreeMap::new(), BTreeMap::new());
        let (spikes, observed) = (Vec::new(), None);
        let window = window.max(1);
        let made = Stepping {
            model,
            program,
            extent,
            records,
            engine,
            window,
            now: 0,
            end,
            spikes,
            observed,
            graph,
            set,
            effects,
            ways: OnceLock::new(),
        };
        match made.wrong()? {
            Some(diagnostic) => Err(RunError::Model(vec![diagnostic])),
            None => Ok(made),
        }
    }

    /// The model with what has been set.
    pub fn model(&self) -> &Model {
        &self.model
    }

    /// The program that it runs.
    pub fn program(&self) -> &Program {
        &self.program
    }

    /// Its cells. The number of steps is that of the model, not of what may be done here.
    pub fn extent(&self) -> &Extent {
        &self.extent
    }

    /// What it can show besides states and parameters.
    pub fn records(&self) -> &Records {
        &self.records
    }

    /// The steps that are done.
    pub fn now(&self) -> u64 {
        self.now
    }

    /// The time in ms.
    pub fn time(&self) -> f64 {
        self.now as f64 * self.extent.grid.dt
    }

    /// The spikes of the last call of [`Stepping::step`].
    pub fn spikes(&self) -> &[Spike] {
        &self.spikes
    }

    /// Takes so many steps. When a state is not finite, it ends with a message; states are then as they are.
    pub fn step(&mut self, steps: u64, watcher: &mut dyn Watcher) -> Result<Ending, RunError> {
        self.spikes.clear();
        let last = self.now.saturating_add(steps);
        if self.end.is_some_and(|end| last > end) {
            let end = moment(self.end.unwrap_or_default(), self.extent.grid.dt);
            let message = format!("the files that the model reads are used up to {end} ms only, its duration");
            let d = Diagnostic::without_place(Code::BadValue, message).help("begin with a longer duration");
            return Err(RunError::Model(vec![d]));
        }
        if last as f64 > MOST_STEPS {
            let message = format!("{last} steps are more than can be told apart");
            return Err(RunError::Model(vec![Diagnostic::without_place(Code::BadValue, message)]));
        }
        self.observed = None;
        while self.now < last {
            let steps = u64::from(self.window).min(last - self.now);
            self.engine.step(self.now, steps as u32, &mut self.spikes)?;
            self.records.once(&mut self.spikes);
            self.now += steps;
            if let Some(mut diagnostic) = self.wrong()? {
                if steps > 1 {
                    let finite = moment(self.now - steps, self.extent.grid.dt);
                    let note =
                        format!("it was looked at after {steps} steps at once, and was finite at t = {finite} ms");
                    diagnostic = diagnostic.note(note);
                }
                return Ok(Ending::NotFinite(Box::new(diagnostic)));
            }
            if !watcher.step(self.now) {
                return Ok(Ending::Stopped);
            }
        }
        Ok(Ending::Done)
    }

    /// What is said if a state is not finite.
    fn wrong(&self) -> Result<Option<Diagnostic>, EngineError> {
        if self.engine.all_finite() {
            return Ok(None);
        }
        let Stepping { model, program, extent, engine, .. } = self;
        Scene { model, program, extent, engine: &**engine }.diagnostic(self.now, &History::new()).map(Some)
    }

    /// What a name, or the end of one, stands for: what is recorded, a state or a parameter.
    pub fn find(&self, name: &str) -> Result<Quantity, Diagnostic> {
        // Compartments that are recorded one by one are named by nothing else.
        let recorded = |r: &Record| r.name == name && (r.output || r.compartments.is_some());
        if let Some(at) = self.records.series.iter().position(recorded) {
            return Ok(Quantity::Record(at));
        }
        if let Some(state) = self.model.states.iter().position(|state| state.name == name) {
            return Ok(Quantity::State(state));
        }
        let full = ode::full_name(&self.model, name)?;
        let param = self.model.params.iter().position(|p| p.name == full).map(Quantity::Param);
        let state = || self.model.states.iter().position(|s| s.name == full).map(Quantity::State);
        let lost = || Diagnostic::without_place(Code::Internal, format!("`{full}` is lost"));
        param.or_else(state).ok_or_else(lost)
    }

    /// Its full name, its dimension and the unit it is shown in.
    pub fn about(&self, what: Quantity) -> (&str, Option<Dim>, &DisplayUnit) {
        match what {
            Quantity::State(at) => {
                let state = &self.model.states[at];
                (&state.name, Some(state.dim), &state.unit)
            }
            Quantity::Param(at) => {
                let param = &self.model.params[at];
                (&param.name, Some(param.dim), &param.unit)
            }
            Quantity::Record(at) => {
                let record = &self.records.series[at];
                (&record.name, None, &record.unit)
            }
        }
    }

    /// The cells whose values [`Stepping::read`] gives; none of what is one number for the whole model.
    pub fn cells(&self, what: Quantity) -> Option<Range<usize>> {
        let all = |population: usize| 0..self.extent.cells[population];
        let of_state = |at: usize| 0..self.extent.elements(&self.model, &self.model.states[at]);
        match what {
            Quantity::State(at) => Some(of_state(at)),
            Quantity::Param(at) => self.model.params[at].population.map(all),
            Quantity::Record(at) => Some(self.records.series[at].cells.clone()),
        }
    }

    /// Appends the value, or that of each of its cells, in canonical units.
    pub fn read(&mut self, what: Quantity, out: &mut Vec<f64>) -> Result<(), EngineError> {
        match what {
            Quantity::State(at) => {
                let field = self.field_of(at)?;
                self.engine.read(field, 0..self.extent.elements(&self.model, &self.model.states[at]), out)
            }
            Quantity::Record(at) => {
                if self.observed != Some(self.now) {
                    self.engine.observe(self.now)?;
                    self.observed = Some(self.now);
                }
                let record = &self.records.series[at];
                let mut rows = Vec::new();
                for (field, elements) in record.fields() {
                    let mut row = Vec::new();
                    self.engine.read(field, elements, &mut row)?;
                    rows.push(row);
                }
                let rows: Vec<&[f64]> = rows.iter().map(Vec::as_slice).collect();
                out.extend(record.sample(&rows, &mut Vec::new()));
                Ok(())
            }
            Quantity::Param(at) => {
                let lost = || EngineError(format!("`{}` has no value before the run", self.model.params[at].name));
                match self.model.params[at].population {
                    Some(_) => out.extend(self.per_cell(at).ok_or_else(lost)?),
                    None => out.push(self.one(at).ok_or_else(lost)?),
                }
                Ok(())
            }
        }
    }

    fn field_of(&self, state: usize) -> Result<FieldId, EngineError> {
        let lost = || EngineError(format!("the program does not keep `{}`", self.model.states[state].name));
        self.program.bound(Source::State(state as u32)).ok_or_else(lost)
    }

    fn one(&self, param: usize) -> Option<f64> {
        match ode::evaluate(&self.model, self.model.params[param].value) {
            Ok(Value::Real(x)) => Some(x),
            Ok(Value::Single(_) | Value::Mask(_)) | Err(_) => None,
        }
    }

    fn per_cell(&self, param: usize) -> Option<Vec<f64>> {
        self.of_cells(self.model.params[param].value, self.model.params[param].population?)
    }

    fn of_cells(&self, value: NodeId, population: usize) -> Option<Vec<f64>> {
        let cells = self.extent.cells[population];
        let read = |of: Option<usize>, file: u32| {
            let cells = self.extent.cells[of.unwrap_or(population)];
            data::per_cell(&self.model.data[file as usize], cells, self.model.seed).ok()
        };
        ode::cells::values(&self.model, value, Some(population), cells, &read)
    }

    /// Writes a state or a parameter, in canonical units: a number for all cells, or one for each. What does not fit is said, and nothing is
    /// changed.
    pub fn write(&mut self, what: Quantity, values: &[f64]) -> Result<(), RunError> {
        let refused = |d: Diagnostic| RunError::Model(vec![d]);
        let (name, _, unit) = self.about(what);
        let place = |cell: usize| if values.len() == 1 { String::new() } else { format!(" of cell {cell}") };
        if let Some(cell) = values.iter().position(|x| !x.is_finite()) {
            let what = if values[cell].is_nan() { "NaN" } else { "infinite" };
            let message = format!("the value for `{name}`{} is {what}; a finite number is needed", place(cell));
            return Err(refused(Diagnostic::without_place(Code::BadValue, message)));
        }
        let cells = self.cells(what).map(|cells| cells.len());
        if values.len() != 1 && Some(values.len()) != cells {
            let (count, is) = (values.len(), "is one number in this run");
            let message = match cells {
                Some(cells) => format!("`{name}` has {cells} cells, but {count} numbers are given"),
                None => format!("`{name}` {is}, but {count} numbers are given"),
            };
            let d = Diagnostic::without_place(Code::BadValue, message);
            let help = "set it cell by cell before the run begins; then it stays so";
            return Err(refused(if cells.is_none() { d.help(help) } else { d }));
        }
        match what {
            Quantity::Record(_) => {
                let message = format!("`{name}` is computed for being recorded, and cannot be written");
                Err(refused(Diagnostic::without_place(Code::BadTarget, message)))
            }
            Quantity::State(at) => {
                let state = &self.model.states[at];
                if state.clamp.is_some_and(|clamp| clamp.cells.is_none()) {
                    let message = format!("`{name}` is held by a clamp, and cannot be written");
                    return Err(refused(Diagnostic::without_place(Code::BadTarget, message)));
                }
                if let Some(cell) =
                    values.iter().position(|x| state.kind == StateKind::Gate && !(0.0..=1.0).contains(x))
                {
                    let shown = shown(values[cell], unit);
                    let message = format!("the value for `{name}`{} is {shown}", place(cell));
                    let d = Diagnostic::without_place(Code::BadValue, message);
                    return Err(refused(d.help("a gate is the fraction of open gates, from 0 to 1")));
                }
                let field = self.field_of(at)?;
                let all = self.extent.elements(&self.model, state);
                let same = if values.len() == all { None } else { Some(vec![values[0]; all]) };
                let values = same.as_deref().unwrap_or(values);
                self.engine.write(field, values)?;
                // Edges see what a place has.
                for (field, of) in (0..).map(FieldId).zip(&self.program.fields) {
                    let Source::There(place, _) = of.source else { continue };
                    if of.source != Source::There(place, at as u32) {
                        continue;
                    }
                    let place = place as usize;
                    let of = |cell: usize| self.model.element_in(state.population, place, cell).map(|at| values[at]);
                    let there: Option<Vec<f64>> = (0..self.extent.cells[place]).map(of).collect();
                    if let Some(there) = there {
                        self.engine.write(field, &there)?;
                    }
                }
                self.observed = None;
                Ok(())
            }
            Quantity::Param(at) => self.set_param(at, values),
        }
    }

    fn set_param(&mut self, param: usize, values: &[f64]) -> Result<(), RunError> {
        let effects = self.effects(param);
        if let Some(why) = &effects.refused {
            let d = Diagnostic::without_place(Code::BadTarget, why.clone());
            return Err(RunError::Model(vec![d.help("set it before the run begins")]));
        }
        let before = (self.set.get(&param).cloned(), self.model.params[param].value, self.data_of(param));
        self.put(param, values);
        if let Some(wrong) = effects.demands.iter().find_map(|&demand| self.broken(demand)) {
            let (given, value, data) = before;
            if let (Some(&Given::PerCell(at)), Some(data)) = (self.set.get(&param), data) {
                self.model.data[at].numbers = data;
            }
            match given {
                // Expressions may have been built again.
                Some(given) => {
                    self.model.params[param].value = self.node(param, &given);
                    self.set.insert(param, given);
                }
                None => {
                    self.model.params[param].value = value;
                    self.set.remove(&param);
                }
            }
            return Err(RunError::Model(vec![wrong]));
        }
        for &(at, field) in &effects.params {
            let lost = || EngineError(format!("`{}` has no value", self.model.params[at].name));
            match self.model.params[at].population {
                None => {
                    let value = self.one(at).ok_or_else(lost)?;
                    self.engine.set_uniform(field, value)?;
                }
                Some(_) => {
                    let values = self.per_cell(at).ok_or_else(lost)?;
                    self.engine.write(field, &values)?;
                }
            }
        }
        self.observed = None;
        Ok(())
    }

    /// The numbers for the cells that a parameter was set to.
    fn data_of(&self, param: usize) -> Option<Numbers> {
        match self.set.get(&param)? {
            Given::One(_) => None,
            Given::PerCell(at) => Some(self.model.data[*at].numbers.clone()),
        }
    }

    /// Gives a parameter its value in the model.
    fn put(&mut self, param: usize, values: &[f64]) {
        if self.model.graph.len() > self.graph.len() + SPARE {
            self.model.graph = self.graph.clone();
            for (param, given) in self.set.clone() {
                self.model.params[param].value = self.node(param, &given);
            }
        }
        let given = match self.model.params[param].population {
            None => Given::One(values[0]),
            Some(population) => {
                let all = self.extent.cells[population];
                let values: Arc<[f64]> = if values.len() == all { values.into() } else { vec![values[0]; all].into() };
                let known = match self.set.get(&param) {
                    Some(Given::PerCell(at)) => Some(*at),
                    Some(Given::One(_)) | None => None,
                };
                let at = known.unwrap_or(self.model.data.len());
                if at == self.model.data.len() {
                    let p = &self.model.params[param];
                    let (name, directory) = (format!("{} for each cell", p.name), PathBuf::new());
                    self.model.data.push(DataFile {
                        name,
                        directory,
                        column: None,
                        span: p.span,
                        numbers: Numbers::File,
                    });
                }
                self.model.data[at].numbers = Numbers::Given(values);
                Given::PerCell(at)
            }
        };
        self.model.params[param].value = self.node(param, &given);
        self.set.insert(param, given);
    }

    fn node(&mut self, param: usize, given: &Given) -> NodeId {
        let dim = self.model.params[param].dim;
        let graph = &mut self.model.graph;
        match given {
            Given::One(x) => graph.number(*x, dim),
            Given::PerCell(at) => {
                let (data, one) = (graph.add(Node::Data(*at as u32)), graph.number(1.0, dim));
                graph.add(Node::Binary(crate::operators::BinaryOp::Mul, data, one))
            }
        }
    }

    /// What is said of a demand that does not hold.
    fn broken(&self, demand: usize) -> Option<Diagnostic> {
        let demand = &self.model.demands[demand];
        let times = Some((self.model.dt, self.model.duration));
        let wrong = |x: f64, cell: Option<usize>| {
            let whose = match (demand.whose, cell) {
                (Whose::Cells(at), Some(cell)) => Some(format!("cell {cell} of `{}`", self.model.populations[at].name)),
                (Whose::Cells(_) | Whose::Edges(_) | Whose::Network, _) => None,
            };
            let found = (!demand.domain.has(x, times)).then(|| demand.outside(x, whose.as_deref(), None));
            found.filter(Diagnostic::is_error)
        };
        match (ode::evaluate(&self.model, demand.value), demand.whose) {
            (Ok(Value::Real(x)), _) => wrong(x, None),
            (Ok(Value::Single(_) | Value::Mask(_)) | Err(_), Whose::Cells(population)) => {
                let values = self.of_cells(demand.value, population)?;
                values.iter().enumerate().find_map(|(cell, &x)| wrong(x, Some(cell)))
            }
            (Ok(Value::Single(_) | Value::Mask(_)) | Err(_), Whose::Network | Whose::Edges(_)) => None,
        }
    }

    fn effects(&mut self, param: usize) -> Arc<Effects> {
        if let Some(known) = self.effects.get(&param) {
            return Arc::clone(known);
        }
        let found = Arc::new(self.find_effects(param));
        self.effects.insert(param, Arc::clone(&found));
        found
    }

    fn find_effects(&self, param: usize) -> Effects {
        let model = &self.model;
        let mut moved = BTreeSet::from([param]);
        let reads = |root: NodeId, moved: &BTreeSet<usize>| {
            let param = |n| match model.graph.node(n) {
                Node::Param(p) => moved.contains(&(p.0 as usize)),
                _ => false,
            };
            model.graph.reachable([root]).into_iter().any(param)
        };
        loop {
            let next = |at: &usize| !moved.contains(at) && reads(model.params[*at].value, &moved);
            let Some(next) = (0..model.params.len()).find(next) else { break };
            moved.insert(next);
        }
        let any = |roots: &[NodeId]| roots.iter().any(|&root| reads(root, &moved));
        let sizes = model.populations.iter().any(|p| any(&p.sizes))
            || model.ranges.iter().any(|range| any(&[range.first, range.end]));
        let rules = model.connections.iter().any(|c| any(&c.rule.arguments()))
            || model.projections.iter().any(|p| any(&p.rule.arguments()));
        let dendritic = |p: &Projection| Some(p.plasticity.as_ref()?.dendritic?.0);
        let carried = model
            .projections
            .iter()
            .any(|p| any(&[p.weight, p.delay]) || dendritic(p).is_some_and(|part| any(&[part])));
        let field = |&at: &usize| Some((at, self.program.bound(Source::Param(at as u32))?));
        let params: Vec<(usize, FieldId)> = moved.iter().filter_map(field).collect();
        let demands = (0..model.demands.len()).filter(|&at| reads(model.demands[at].value, &moved)).collect();
        let name = &model.params[param].name;
        let refused = if !model.params[param].settable {
            Some(format!("`{name}` cannot be set from outside"))
        } else if sizes {
            Some(format!("`{name}` says how many cells there are, or which; that is fixed once a run has begun"))
        } else if rules {
            Some(format!("`{name}` says which cells are connected; that is fixed once a run has begun"))
        } else if carried {
            Some(format!("`{name}` is part of a weight or a delay, which are computed before a run begins"))
        } else if params.is_empty() {
            Some(format!("nothing that a step computes depends on `{name}`"))
        } else {
            None
        };
        Effects { params, demands, refused }
    }

    /// What it has come to, to go on from there; the error is a sentence.
    pub fn save(&self) -> Result<Checkpoint, String> {
        past(&self.program, &*self.engine)?;
        let Stepping { model, program, extent, engine, now, .. } = self;
        let reached = reached(model, program, extent, &**engine, *now).map_err(|error| error.0)?;
        Ok(Checkpoint { ways: Some(self.ways().to_vec()), ..reached })
    }

    fn ways(&self) -> &[Way] {
        self.ways.get_or_init(|| ways(&self.model, &self.program, &self.extent))
    }

    /// Goes on from a checkpoint, earlier or later than now; parameters stay as they are. The error is a sentence, and nothing is changed.
    pub fn restore(&mut self, from: &Checkpoint) -> Result<(), String> {
        if from.seed != self.model.seed {
            return Err(format!(
                "it was saved in a run with the seed {}, and this one has {}",
                from.seed, self.model.seed
            ));
        }
        let mut extent = self.extent.clone();
        // It may go on as long as it wants.
        extent.grid.steps = self.end.map_or(MOST_STEPS as u64, |end| end + 1);
        let start = Start::along(from, &self.model, &self.program, &extent, self.ways())?;
        past(&self.program, &*self.engine)?;
        start.go_on(&mut *self.engine).map_err(|e| e.0)?;
        self.now = start.step;
        self.observed = None;
        self.spikes.clear();
        Ok(())
    }
}
