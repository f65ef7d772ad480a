//! The message about a value that became NaN or infinite.
//!
//! In come an engine whose states are not finite and the states before; out goes a [`Diagnostic`] that names the cell, the state, the
//! time and the expression.
//! Never true here: the engine takes a step.

use super::extent::Extent;
use super::pace::FAR;
use super::run::Ending;
use super::time::{moment, shown};
use super::trap::{History, States, states};
use crate::diag::{Code, Diagnostic};
use crate::engine::{Engine, EngineError};
use crate::hir::Method;
use crate::ode::{self, Kind, Model, Node, NodeId, State};
use crate::step::{Field, FieldId, Program, Source, Value};
use crate::units::Dim;

/// So many characters of an expression are shown.
const LONGEST_EXPRESSION: usize = 160;

/// A run that went wrong.
#[derive(Clone, Copy)]
pub(super) struct Scene<'a> {
    pub(super) model: &'a Model,
    pub(super) program: &'a Program,
    pub(super) extent: &'a Extent,
    pub(super) engine: &'a dyn Engine,
}

/// A value that is not finite.
struct Culprit {
    cell: usize,
    field: FieldId,
    value: f64,
}

/// A current that spoils the voltages of a whole cell, which are solved at once.
struct Spoilt {
    /// The compartment.
    compartment: usize,
    /// Where the current flows: a population and an element of it.
    at: (usize, usize),
    outward: NodeId,
}

impl Scene<'_> {
    /// Names the first cell, and in it the first state, that is not finite after so many steps; `history` goes to the step before.
    pub(super) fn diagnostic(self, step: u64, history: &History) -> Result<Diagnostic, EngineError> {
        let mut culprit = self.culprit()?;
        let before = history.back().map(|(at, states)| (*at, states));
        // One bad current spoils the voltages of its whole cell.
        let spoilt = self.spoilt(&culprit, before);
        if let Some(spoilt) = &spoilt {
            culprit.cell = spoilt.compartment;
        }
        let name = &self.program.field(culprit.field).name;
        let what = if culprit.value.is_nan() { "NaN (not a number)" } else { "infinite" };
        let message = match step {
            0 => format!("the initial value of `{name}` of {} is {what}", self.element(&culprit)),
            _ => {
                let t = moment(step, self.extent.grid.dt);
                format!("`{name}` of {} became {what} at t = {t} ms", self.element(&culprit))
            }
        };
        let state = self.state(self.program.field(culprit.field));
        let mut d = match state {
            Some(s) => Diagnostic::new(Code::NotFinite, s.span, message, "this state"),
            None => Diagnostic::without_place(Code::NotFinite, message),
        };
        for (at, before) in history {
            d = d.note(self.told(&culprit, *at, before));
        }
        let roots: Vec<NodeId> = match (state, before) {
            _ if spoilt.is_some() => spoilt.iter().map(|s| s.outward).collect(),
            // What an edge has changes with events.
            (Some(s), _) if s.edges.is_some() => vec![],
            (Some(s), None) => vec![s.init],
            (Some(s), Some(_)) => [self.events(culprit.field), vec![s.rate], self.resets(culprit.field)].concat(),
            (None, _) => vec![],
        };
        // Where later stages and spikes read new values, these are to blame.
        let after = match before {
            Some((at, old)) => Some((at + 1, self.finite(old, culprit.cell)?)),
            None => None,
        };
        let at = spoilt.as_ref().map_or((self.population(&culprit), culprit.cell), |spoilt| spoilt.at);
        let fault = |states| ode::fault(self.model, &roots, |node| self.value(node, at, states));
        let fault = fault(before).or_else(|| after.as_ref().and_then(|(at, states)| fault(Some((*at, states)))));
        if let Some(fault) = fault {
            d = d.note(said(&fault));
            if let Some(help) = fault.help {
                return Ok(d.help(help));
            }
        }
        if step > 0 && self.model.method == Method::Adaptive {
            let what =
                "it changes too fast, has no finite rate, or is driven back over a threshold whenever it crosses it";
            d = d.note(format!("no step is short enough for the tolerances: {what}"));
        }
        let far = |s: &State| {
            let at_last = before.and_then(|(_, states)| states.get(&culprit.field)?.get(culprit.cell));
            s.dim == Dim::VOLTAGE && at_last.is_some_and(|x| x.abs() > FAR)
        };
        if state.is_some_and(far) {
            let sign = "it ran away before: currents are outward positive, so look for one whose sign is turned";
            return Ok(d.help(sign).help(format!("if there is none, {}", self.advice())));
        }
        Ok(if step > 0 { d.help(self.advice()) } else { d })
    }

    /// The numbers of events that drives bring to a state.
    fn events(self, field: FieldId) -> Vec<NodeId> {
        let of_field =
            self.model.jumps.iter().filter(|jump| self.program.bound(Source::State(jump.state.0)) == Some(field));
        let read = self.model.graph.reachable(of_field.map(|jump| jump.amount));
        read.into_iter().filter(|&node| matches!(self.model.graph.node(node), Node::Events(..))).collect()
    }

    /// What spikes set a state to.
    fn resets(self, field: FieldId) -> Vec<NodeId> {
        let all = self.model.populations.iter().filter_map(|p| p.spike.as_ref()).flat_map(|spike| &spike.resets);
        let of_field = all.filter(|(state, _)| self.program.bound(Source::State(state.0)) == Some(field));
        of_field.map(|(_, value)| *value).collect()
    }

    /// The new states of all cells, but for those that are not finite in this cell: of these the old ones.
    fn finite(self, old: &States, cell: usize) -> Result<States, EngineError> {
        let new = states(self.program, self.extent, self.engine)?;
        let kept = new.into_iter().filter(|(_, values)| values.get(cell).is_some_and(|x| x.is_finite()));
        Ok(old.clone().into_iter().chain(kept).collect())
    }

    /// How a run ends in which a recorded expression is not finite after so many steps.
    pub(super) fn recorded(self, record: usize, cell: usize, value: f64, step: u64) -> Result<Ending, EngineError> {
        let record = &self.model.records[record];
        let what = if value.is_nan() { "NaN (not a number)" } else { "infinite" };
        let t = moment(step, self.extent.grid.dt);
        let whose = if record.edges.is_some() { "synapse" } else { "cell" };
        let message = format!("the recorded `{}` of {whose} {cell} is {what} at t = {t} ms", record.name);
        let mut d = Diagnostic::new(Code::NotFinite, record.span, message, "recorded here");
        if record.edges.is_some() {
            return Ok(Ending::NotFinite(Box::new(d)));
        }
        let now = states(self.program, self.extent, self.engine)?;
        // What is recorded at a place is computed in the whole that it is a part of.
        let at = match self.model.populations[record.population].kind {
            Kind::Part { of, .. } => (of, self.model.element_in(of, record.population, cell).unwrap_or(cell)),
            Kind::Cells | Kind::Tree { .. } | Kind::Clock => (record.population, cell),
        };
        if let Some(fault) = ode::fault(self.model, &[record.value], |node| self.value(node, at, Some((step, &now)))) {
            d = d.note(said(&fault));
            d = fault.help.into_iter().fold(d, |d, help| d.help(help));
        }
        Ok(Ending::NotFinite(Box::new(d)))
    }

    /// The population of a culprit.
    fn population(self, culprit: &Culprit) -> usize {
        self.program.field(culprit.field).over.map_or(0, |space| space.0 as usize)
    }

    /// What the cell, compartment or edge of a culprit is called.
    fn element(self, culprit: &Culprit) -> String {
        if self.population(culprit) >= self.model.populations.len() {
            return format!("synapse {}", culprit.cell);
        }
        self.model.element_name(self.population(culprit), culprit.cell)
    }

    /// The first current with a fault in the cell of a culprit, if that is the voltage of a cable.
    fn spoilt(self, culprit: &Culprit, before: Option<(u64, &States)>) -> Option<Spoilt> {
        let (model, before) = (self.model, before?);
        let source = self.program.field(culprit.field).source;
        let cable = model.cables.iter().find(|cable| source == Source::State(cable.v.0))?;
        let cell = culprit.cell / model.elements_per_cell(cable.population);
        let faults =
            |outward: NodeId, at| ode::fault(model, &[outward], |node| self.value(node, at, Some(before))).is_some();
        cable.currents.iter().find_map(|current| {
            let (population, per_cell) = (current.population, model.elements_per_cell(current.population));
            let mut elements = cell * per_cell..(cell + 1) * per_cell;
            let at = (population, elements.find(|&element| faults(current.outward, (population, element)))?);
            let compartment = model.element_in(cable.population, population, at.1)?;
            Some(Spoilt { compartment, at, outward: current.outward })
        })
    }

    fn culprit(self) -> Result<Culprit, EngineError> {
        let now = states(self.program, self.extent, self.engine)?;
        let mut found: Option<Culprit> = None;
        for field in (0..self.program.fields.len() as u32).map(FieldId) {
            let Some(values) = now.get(&field) else { continue };
            if let Some(cell) = values.iter().position(|x| !x.is_finite())
                && found.as_ref().is_none_or(|f| cell < f.cell)
            {
                found = Some(Culprit { cell, field, value: values[cell] });
            }
        }
        found.ok_or_else(|| EngineError("internal error: a value was not finite, but none is found".into()))
    }

    /// All states of the cell at the start of a step.
    fn told(self, culprit: &Culprit, at: u64, before: &States) -> String {
        let space = self.program.field(culprit.field).over;
        let mut values: Vec<String> = Vec::new();
        for (i, f) in self.program.fields.iter().enumerate() {
            if f.over == space
                && let Some(x) = before.get(&FieldId(i as u32)).and_then(|v| v.get(culprit.cell))
            {
                let unit = self.state(f).map(|s| s.unit.clone());
                values.push(match unit {
                    Some(u) if u.name != "1" => format!("{} = {} {}", f.name, shown(u.show(*x)), u.name),
                    _ => format!("{} = {}", f.name, shown(*x)),
                });
            }
        }
        format!("at t = {} ms: {}", moment(at, self.extent.grid.dt), values.join(", "))
    }

    /// The state of the model that a field stands for.
    fn state(&self, field: &Field) -> Option<&State> {
        match field.source {
            Source::State(s) => Some(&self.model.states[s as usize]),
            _ => None,
        }
    }

    fn advice(self) -> String {
        let smaller = format!("try a smaller time step (`--dt {}ms`)", shown(self.extent.grid.dt / 2.0));
        let other = match self.model.method {
            // Its steps are no time steps of the model.
            Method::Adaptive => return "try a larger `atol` (`--atol 1e-5`)".into(),
            Method::Euler | Method::Heun | Method::Rk4 => Method::ExpEuler,
            // What integrates junctions is as stable as these.
            Method::ExpEuler | Method::Cnexp | Method::CrankNicolson | Method::Exact
                if !(self.model.connections.is_empty() && self.model.cables.is_empty()) =>
            {
                return smaller;
            }
            Method::ExpEuler | Method::Cnexp | Method::CrankNicolson | Method::Exact => Method::Rk4,
        };
        format!("{smaller} or another method (`--method {}`)", other.name())
    }

    /// What an expression of a cell reads: at the start of a step, or before the first.
    fn value(self, node: Node, at: (usize, usize), before: Option<(u64, &States)>) -> Option<Value> {
        let (population, cell) = at;
        let of_cell = |source: Source, of: usize| {
            let field = self.program.bound(source)?;
            let cell = self.model.element_in(of, population, cell)?;
            let mut value = Vec::new();
            self.engine.read(field, cell..cell + 1, &mut value).ok()?;
            value.first().copied()
        };
        let model = self.model;
        match node {
            Node::Param(p) if model.param(p).population.is_none() => ode::evaluate(model, model.param(p).value).ok(),
            Node::Param(p) => of_cell(Source::Param(p.0), model.param(p).population?).map(Value::Real),
            Node::State(s) => {
                let field = self.program.bound(Source::State(s.0))?;
                let cell = model.element_in(model.state(s).population, population, cell)?;
                before?.1.get(&field)?.get(cell).copied().map(Value::Real)
            }
            Node::Time | Node::StepTime => Some(Value::Real(before?.0 as f64 * self.extent.grid.dt)),
            Node::StepLength => Some(Value::Real(self.extent.grid.dt)),
            Node::Index => Some(Value::Real(cell as f64)),
            Node::Const(..)
            | Node::Bool(_)
            | Node::Next(_)
            | Node::Slope(..)
            | Node::Point(..)
            | Node::Refractory(_)
            | Node::Dv
            | Node::Junction(..)
            | Node::Conductance(_)
            | Node::Arrived(..)
            | Node::Amount(_)
            | Node::Since
            | Node::Beyond
            | Node::Measure(_)
            | Node::Outward(_)
            | Node::Unary(..)
            | Node::Binary(..)
            | Node::Select(..)
            | Node::Draw(..)
            | Node::Data(_)
            | Node::Series(..)
            | Node::Noise(..)
            | Node::White(_)
            | Node::Events(..) => None,
        }
    }
}

/// A fault as a note, its expression cut short.
pub(crate) fn said(fault: &ode::Fault) -> String {
    let mut text = fault.text.clone();
    if let Some((end, _)) = text.char_indices().nth(LONGEST_EXPRESSION) {
        text.truncate(end);
        text.truncate(text.trim_end().len());
        text.push_str(" ...");
    }
    format!("{} in `{text}`", fault.what)
}
