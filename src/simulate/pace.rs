//! The shortest time constant that a run meets, and fractions of kinetic schemes that are none.
//!
//! In come a model and an engine that goes on; out goes a warning if the time step was too long for what was seen, or the rates of a scheme
//! were negative: a cell now and then, and cells that have just spiked.
//! Never true here: more than some looks are taken, however long the run, or a number of the run depends on them.

use super::extent::Extent;
use crate::diag::{Code, Diagnostic};
use crate::engine::{Engine, Spike};
use crate::ode::{self, Graph, Kind, Model, Node, NodeId, StateId};
use crate::operators::{Value, eval_binary, eval_unary};
use crate::step::{Program, Source};
use crate::units::Dim;
use std::collections::HashMap;

/// No cell has a voltage (mV) like this: it has run away.
pub(super) const FAR: f64 = 1e4;

/// So many looks are spread over a run, and as many are for cells that spike.
const LOOKS: u64 = 48;

/// In models with more nodes than this nothing is looked at.
const MOST_NODES: usize = 100_000;

/// Fractions are outside [0, 1] that are so far out; what is less may be the method, or single precision.
const OUTSIDE: f64 = 0.01;

/// What has been seen of the time constants and fractions of a run.
pub(super) struct Pace {
    graph: Graph,
    /// Of each population: slopes, and all nodes that they need, operands first.
    populations: Vec<Slopes>,
    shortest: Option<Shortest>,
    outside: Option<Outside>,
    /// When the next look is due, and how many there were at spikes.
    due: u64,
    at_spikes: u64,
    looked: u64,
}

struct Slopes {
    population: usize,
    slopes: Vec<(StateId, NodeId)>,
    order: Vec<NodeId>,
    /// The states of kinetic schemes.
    fractions: Vec<StateId>,
}

/// A fraction that is none.
struct Outside {
    state: StateId,
    cell: usize,
    step: u64,
    value: f64,
}

struct Shortest {
    state: StateId,
    cell: usize,
    step: u64,
    tau: f64,
}

impl Pace {
    /// Looks at a run of a model; `None` if there is nothing to look at. How long the time step is has been said where it was too long from the start.
    pub fn new(model: &Model) -> Option<Pace> {
        if model.graph.len() > MOST_NODES {
            return None;
        }
        let (graph, mut slopes) = ode::slopes(model);
        if ode::step_too_long(model).is_some() {
            slopes.clear();
        }
        let of_population = |population: usize| {
            let own = |s: &&(StateId, NodeId)| {
                let state = model.state(s.0);
                state.population == population && state.edges.is_none()
            };
            let slopes: Vec<(StateId, NodeId)> = slopes.iter().filter(own).copied().collect();
            let order = graph.reachable(slopes.iter().map(|s| s.1));
            let ids = (0..model.states.len() as u32).map(StateId);
            let fractions = ids.filter(|id| {
                let state = model.state(*id);
                state.population == population && state.scheme.is_some()
            });
            Slopes { population, slopes, order, fractions: fractions.collect() }
        };
        let populations = (0..model.populations.len()).map(of_population);
        let populations: Vec<Slopes> =
            populations.filter(|s| !(s.slopes.is_empty() && s.fractions.is_empty())).collect();
        (!populations.is_empty()).then_some(Pace {
            graph,
            populations,
            shortest: None,
            outside: None,
            due: 0,
            at_spikes: 0,
            looked: 0,
        })
    }

    /// Looks after a call of the engine, if it is time for it.
    pub fn look(&mut self, run: (&Model, &Program, &Extent), engine: &dyn Engine, now: u64, spikes: &[Spike]) {
        let (model, program, extent) = run;
        if let Some(spike) = spikes.last()
            && self.at_spikes < LOOKS
        {
            self.at_spikes += 1;
            let place = program.field(spike.field).over.map_or(0, |space| space.0 as usize);
            for at in 0..self.populations.len() {
                if let Some(element) = there(model, self.populations[at].population, place, spike.cell as usize) {
                    self.look_at(at, element, model, program, engine, now);
                }
            }
        }
        if now < self.due {
            return;
        }
        self.due = now + (extent.grid.steps / LOOKS).max(1);
        self.looked += 1;
        for at in 0..self.populations.len() {
            let cells = extent.cells[self.populations[at].population] as u64;
            // Cells that are far from each other, all of them in the end.
            let cell = (self.looked * 7919) % cells.max(1);
            if cells > 0 {
                self.look_at(at, cell as usize, model, program, engine, now);
            }
        }
    }

    fn look_at(&mut self, at: usize, cell: usize, model: &Model, program: &Program, engine: &dyn Engine, now: u64) {
        let Slopes { slopes, order, fractions, .. } = &self.populations[at];
        let here = self.populations[at].population;
        let read = |source: Source, of: usize| {
            let cell = model.element_in(of, here, cell)?;
            let mut value = Vec::new();
            engine.read(program.bound(source)?, cell..cell + 1, &mut value).ok()?;
            value.first().copied().map(Value::Real)
        };
        let leaf = |node: Node| match node {
            Node::Param(p) if model.param(p).population.is_none() => ode::evaluate(model, model.param(p).value).ok(),
            Node::Param(p) => read(Source::Param(p.0), model.param(p).population?),
            Node::State(s) => read(Source::State(s.0), model.state(s).population),
            Node::Time | Node::StepTime => Some(Value::Real(now as f64 * model.dt)),
            Node::StepLength => Some(Value::Real(model.dt)),
            Node::Index => Some(Value::Real(cell as f64)),
            Node::Const(bits, _) => Some(Value::Real(f64::from_bits(bits))),
            Node::Bool(b) => Some(Value::Mask(b)),
            Node::Next(_)
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
        };
        let mut known: HashMap<NodeId, Value> = HashMap::with_capacity(order.len());
        for &id in order {
            let value = |n: NodeId| known.get(&n).copied();
            let found = match self.graph.node(id) {
                Node::Unary(op, a) => value(a).and_then(|a| eval_unary(op, a)),
                Node::Binary(op, a, b) => value(a).zip(value(b)).and_then(|(a, b)| eval_binary(op, a, b)),
                Node::Select(condition, a, b) => {
                    value(condition).and_then(Value::mask).and_then(|yes| value(if yes { a } else { b }))
                }
                node => leaf(node),
            };
            if let Some(found) = found {
                known.insert(id, found);
            }
        }
        // What has run away says nothing about the model.
        let is_far = |id: &NodeId| {
            matches!(self.graph.node(*id), Node::State(s) if model.state(s).dim == Dim::VOLTAGE
            && known.get(id).is_some_and(|x| matches!(x, Value::Real(x) if x.abs() > FAR)))
        };
        if order.iter().any(is_far) {
            return;
        }
        for state in fractions.iter().filter(|_| self.outside.is_none()) {
            if let Some(Value::Real(value)) = read(Source::State(state.0), here)
                && !(-OUTSIDE..=1.0 + OUTSIDE).contains(&value)
            {
                self.outside = Some(Outside { state: *state, cell, step: now, value });
                break;
            }
        }
        for (state, slope) in slopes {
            if let Some(Value::Real(x)) = known.get(slope)
                && *x < 0.0
                && x.is_finite()
                && self.shortest.as_ref().is_none_or(|s| -1.0 / x < s.tau)
            {
                self.shortest = Some(Shortest { state: *state, cell, step: now, tau: -1.0 / x });
            }
        }
    }

    /// A warning if a fraction was none, or the step was too long for what was seen.
    pub fn warning(&self, model: &Model) -> Option<Diagnostic> {
        let when = |state: StateId, cell: usize, step: u64| {
            let cell = model.element_name(model.state(state).population, cell);
            format!("in {cell} at t = {} ms", super::time::moment(step, model.dt))
        };
        if let Some(Outside { state, cell, step, value }) = self.outside {
            let (s, when) = (model.state(state), when(state, cell, step));
            let message = format!("`{}` became {}, outside [0, 1], {when}", s.name, super::time::shown(value));
            let d = Diagnostic::new(Code::GateRange, s.span, message, "a fraction of channels");
            return Some(
                d.help("the rates of the scheme must not be negative at any voltage or concentration that is met"),
            );
        }
        let Shortest { state, cell, step, tau } = *self.shortest.as_ref()?;
        ode::step_became_too_long(model, state, tau, &when(state, cell, step))
    }
}

/// The element of a population that is where a place spiked: the place itself, or the same compartment of its cell.
fn there(model: &Model, population: usize, place: usize, element: usize) -> Option<usize> {
    if population == place {
        return Some(element);
    }
    let Kind::Part { of: tree, .. } = model.populations[place].kind else { return None };
    let compartment = model.element_in(tree, place, element)?;
    let each = model.elements_per_cell(population);
    let cell = element / model.elements_per_cell(place);
    (cell * each..(cell + 1) * each).find(|&own| model.element_in(tree, population, own) == Some(compartment))
}
