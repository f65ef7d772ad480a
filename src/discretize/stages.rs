//! What a method does to a population in a step, in order.
//!
//! In come, from a method, new values of states and the derivatives at other values; out goes a list of [`Stage`]s.
//! Never true here: a stage of a connected population reads a voltage that the others do not have yet.
//!
//! Where nothing connects the cells of a population, all stages of a step are one expression for each state. Where junctions do, the
//! derivatives of a stage, and the values that the next one looks at, are stored: the currents of the next one depend on those of others.

#[cfg(doc)]
use super::diffusion;
use super::euler::advance;
use crate::hir::Method;
use crate::ode::{Connection, Model, Node, NodeId, StateId};
use crate::step::BinaryOp;
use crate::units::Dim;
use rustc_hash::FxHashMap as HashMap;

/// What is computed for a state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Target {
    /// Its new value.
    Next(StateId),
    /// Its derivative at the values that a stage looks at.
    Slope(StateId, u32),
    /// The value that a stage looks at.
    Point(StateId, u32),
}

/// Values that are computed from what there was before; those of later updates may read them, as [`Node::Next`], [`Node::Slope`] or [`Node::Point`].
#[derive(Debug, Clone)]
pub(super) struct Update {
    pub values: Vec<(Target, NodeId)>,
    /// Have they most of their expressions in common?
    pub together: bool,
}

/// What a pool whose ions diffuse would do by itself: it would move by `rate * reach`.
#[derive(Debug, Clone, Copy)]
pub(super) struct Flow {
    pub state: StateId,
    pub rate: NodeId,
    pub reach: NodeId,
}

/// The updates between two times at which the currents of junctions are summed.
#[derive(Debug, Clone, Default)]
pub(super) struct Stage {
    pub updates: Vec<Update>,
    /// The pools that are solved for along the sections then.
    pub flows: Vec<Flow>,
    /// The updates behind that.
    pub late: Vec<Update>,
    /// The time that it looks at, if that is not the one of the step's beginning.
    pub time: Option<NodeId>,
}

/// The stages of a step of a population in the making.
pub(super) struct Stages<'m> {
    pub model: &'m mut Model,
    pub population: usize,
    /// The time step.
    pub dt: NodeId,
    done: Vec<Stage>,
}

impl<'m> Stages<'m> {
    /// No stage so far.
    pub fn new(model: &'m mut Model, population: usize, dt: NodeId) -> Stages<'m> {
        Stages { model, population, dt, done: vec![Stage::default()] }
    }

    /// The stages of a whole step.
    pub fn finish(self) -> Vec<Stage> {
        self.done
    }

    /// The states of the population.
    pub fn states(&self) -> Vec<StateId> {
        self.model.states_of(self.population).collect()
    }

    /// Updates states, each from the values that they have before all of these.
    pub fn update(&mut self, updates: Vec<(StateId, NodeId)>) {
        self.store(updates.into_iter().map(|(state, value)| (Target::Next(state), value)).collect(), false);
    }

    /// The same of states whose new values have most of their expressions in common.
    pub fn update_together(&mut self, updates: Vec<(StateId, NodeId)>) {
        self.store(updates.into_iter().map(|(state, value)| (Target::Next(state), value)).collect(), true);
    }

    fn store(&mut self, values: Vec<(Target, NodeId)>, together: bool) {
        let together = together || matches!(self.model.method, Method::Heun | Method::Rk4);
        let stage = self.done.last_mut().expect("there is a stage");
        let updates = if stage.flows.is_empty() { &mut stage.updates } else { &mut stage.late };
        updates.push(Update { values, together });
    }

    /// Has pools solved for, whose new values the updates behind this one read as [`Node::Point`] with the number [`diffusion::SOLVED`].
    pub fn diffuse(&mut self, flows: Vec<Flow>) {
        self.done.last_mut().expect("there is a stage").flows.extend(flows);
    }

    /// Does it feel the currents of junctions, or what comes through graded synapses; or do others feel it so?
    fn is_connected(&self) -> bool {
        let here = |c: &Connection| [c.here, c.there].iter().any(|end| end.population == self.population);
        let graded = || self.model.graded().any(|(_, p, _)| [p.from, p.to].contains(&self.population));
        self.model.connections.iter().any(here) || graded()
    }

    /// The states that refractory cells keep, where one of these rates reads them or others feel them; and whether a cell is refractory.
    pub fn held(&mut self, rates: impl IntoIterator<Item = (StateId, NodeId)>) -> Option<(Vec<StateId>, NodeId)> {
        let spike =
            self.model.populations[self.population].spike.as_ref().filter(|spike| spike.refractory.is_some())?;
        let held = spike.held.clone();
        let moving = rates.into_iter().filter(|(state, _)| !held.contains(state)).map(|(_, rate)| rate);
        let read = |node: NodeId| matches!(self.model.graph.node(node), Node::State(s) if held.contains(&s));
        let matters = self.is_connected() || self.model.graph.reachable(moving).into_iter().any(read);
        matters.then(|| (held, self.model.graph.add(Node::Refractory(self.population as u32))))
    }

    /// Rates of all states, those of what refractory cells keep being 0 there.
    fn still(&mut self, mut rates: Vec<NodeId>) -> Vec<NodeId> {
        let states = self.states();
        let Some((held, refractory)) = self.held(states.iter().copied().zip(rates.iter().copied())) else {
            return rates;
        };
        for (&state, rate) in states.iter().zip(&mut rates).filter(|(state, _)| held.contains(state)) {
            let zero = self.model.graph.number(0.0, self.model.state(state).dim.over(Dim::TIME));
            *rate = self.model.graph.select(refractory, zero, *rate);
        }
        rates
    }

    /// The derivatives of all states at the start of the step.
    pub fn slopes(&mut self) -> Vec<NodeId> {
        let rates = self.states().into_iter().map(|s| self.model.state(s).rate).collect();
        let rates = self.still(rates);
        self.kept(rates)
    }

    /// The derivatives at `x + step * slope` and time `t + step`.
    pub fn slopes_at(&mut self, slopes: &[NodeId], step: NodeId) -> Vec<NodeId> {
        let states = self.states();
        let moved = |(&s, &slope): (&StateId, &NodeId)| advance(self.model, s, step, slope);
        let mut points: Vec<NodeId> = states.iter().zip(slopes).map(moved).collect();
        let mut number = 0;
        if self.is_connected() {
            number = self.done.len() as u32;
            self.store(
                states.iter().zip(&points).map(|(&s, &point)| (Target::Point(s, number), point)).collect(),
                false,
            );
            self.done.push(Stage::default());
            points = states.iter().map(|&s| self.model.graph.add(Node::Point(s, number))).collect();
        }
        let points: HashMap<StateId, NodeId> = states.iter().copied().zip(points).collect();
        let g = &mut self.model.graph;
        let time = g.add(Node::Time);
        let later = g.binary(BinaryOp::Add, time, step);
        if let Some(stage) = self.done.last_mut().filter(|_| number > 0) {
            stage.time = Some(later);
        }
        let sums: Vec<NodeId> =
            (0..self.model.connections.len()).map(|c| g.add(Node::Junction(c as u32, number))).collect();
        let arrived: Vec<NodeId> =
            (0..self.model.projections.len()).map(|p| g.add(Node::Arrived(p as u32, number))).collect();
        let leaf = |node: Node| match node {
            Node::State(s) => points.get(&s).copied(),
            Node::Time => Some(later),
            Node::Junction(c, _) => Some(sums[c as usize]),
            Node::Arrived(p, _) => Some(arrived[p as usize]),
            _ => None,
        };
        let mut memo = HashMap::default();
        let rates: Vec<NodeId> = states.iter().map(|&s| self.model.state(s).rate).collect();
        let rates = self.still(rates);
        let rates = rates.into_iter().map(|rate| self.model.graph.replace(rate, &leaf, &mut memo)).collect();
        self.kept(rates)
    }

    /// The derivatives of a stage, stored if stages are apart.
    fn kept(&mut self, rates: Vec<NodeId>) -> Vec<NodeId> {
        if !self.is_connected() {
            return rates;
        }
        let (states, stage) = (self.states(), self.done.len() as u32 - 1);
        self.store(states.iter().zip(rates).map(|(&s, rate)| (Target::Slope(s, stage), rate)).collect(), false);
        states.iter().map(|&s| self.model.graph.add(Node::Slope(s, stage))).collect()
    }
}
