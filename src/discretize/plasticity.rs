//! Synapses that remember.
//!
//! In come the states of a projection's edges, and what events make of them; out go a stage for the spikes that arrive, one for those of the
//! cells behind, and one for a modulator.
//! Never true here: an edge does anything in a step in which no event comes to it. Between events its states move by linear equations, which are
//! solved as a whole when the next one comes; so every edge knows when it has seen its last one.

use super::exact::after;
use super::{Draft, Lowering, Values, output, population_space, projection_space};
use crate::ode::linear::rows_of_edges;
use crate::ode::{Model, Node, NodeId, StateId};
use crate::source::Span;
use crate::step::{BinaryOp, FieldId, FieldKind, Guard, Map, OpKind, RegionBuilder, Role, Source, UnaryOp, ValueId};
use rustc_hash::FxHashMap as HashMap;

/// What events make of the states of edges, as functions of the states after the last event and of [`Node::Since`].
pub(super) struct Remembered {
    /// The states when the next event comes.
    now: Vec<(StateId, NodeId)>,
    sent: Vec<NodeId>,
    pre: Vec<(StateId, NodeId)>,
    post: Vec<(StateId, NodeId)>,
    modulated: Vec<(StateId, NodeId)>,
}

impl Remembered {
    /// None where synapses remember nothing.
    pub fn new(model: &mut Model, projection: usize) -> Option<Remembered> {
        let plasticity = model.projections[projection].plasticity.clone()?;
        let since = model.graph.add(Node::Since);
        // What is not linear has had an error.
        let rows = rows_of_edges(model, projection).unwrap_or_default();
        let now = after(&mut model.graph, &rows, since);
        let values: HashMap<StateId, NodeId> = now.iter().copied().collect();
        let leaf = |node: Node| match node {
            Node::State(state) => values.get(&state).copied(),
            _ => None,
        };
        let mut memo = HashMap::default();
        let mut at_event = |value: NodeId| model.graph.replace(value, &leaf, &mut memo);
        let sent = plasticity.sent.iter().map(|&(value, _)| at_event(value)).collect();
        let mut changes = |changes: &[(StateId, NodeId)]| changes.iter().map(|&(s, x)| (s, at_event(x))).collect();
        let [pre, post, modulated] = [&plasticity.pre, &plasticity.post, &plasticity.modulated].map(|all| changes(all));
        Some(Remembered { now, sent, pre, post, modulated })
    }

    /// The states of an edge after an event.
    fn after<'r>(&'r self, changes: &'r [(StateId, NodeId)]) -> impl Iterator<Item = (StateId, NodeId)> + 'r {
        let changed = move |state: StateId| changes.iter().find(|change| change.0 == state).map(|change| change.1);
        self.now.iter().map(move |&(state, now)| (state, changed(state).unwrap_or(now)))
    }
}

impl Lowering<'_> {
    /// When the edges of a projection have seen their last event, in steps.
    fn seen(&mut self, projection: usize) -> FieldId {
        let p = &self.model.projections[projection];
        let space = projection_space(self.model, projection);
        let name = format!("{}'seen", p.name);
        self.field(Source::Seen(projection as u32), name, FieldKind::State, Some(space), p.span)
    }

    /// What edges begin with.
    pub(super) fn remember(&mut self, b: &mut RegionBuilder, values: &mut Values, projection: usize) {
        let model = self.model;
        if let Some(plasticity) = &model.projections[projection].plasticity {
            for &state in &plasticity.states {
                let value = self.lower(b, values, model.state(state).init);
                let field = self.state(state);
                b.store(field, value);
            }
        }
        let seen = self.seen(projection);
        let zero = b.constant(0.0);
        b.store(seen, zero);
    }

    /// The spikes that arrive.
    pub(super) fn pre(&mut self, draft: &mut Draft, projection: usize, remembered: &Remembered) {
        let number = projection as u32;
        let p = &self.model.projections[projection];
        let Some(spike) = &self.model.populations[p.from].spike else { return };
        let event = self.spikes(p.from, spike.span);
        let delay = self.of_edges(number, Source::Delay(number), "delay");
        let guard = Guard { event, along: Some(Map::Source), delay: Some(delay) };
        self.at_event(draft, projection, guard, (&remembered.pre, &remembered.sent), remembered);
    }

    /// The spikes of the cells that the edges lead to.
    pub(super) fn post(&mut self, draft: &mut Draft, projection: usize, remembered: &Remembered) {
        let to = self.model.projections[projection].to;
        let spikes = self.model.spikes_elsewhere(to).unwrap_or(to);
        let Some(spike) = self.model.populations[spikes].spike.as_ref().filter(|_| !remembered.post.is_empty()) else {
            return;
        };
        let event = self.spikes(to, spike.span);
        let guard = self.told_of(projection, event);
        // Only a spike that arrives brings something.
        self.at_event(draft, projection, guard, (&remembered.post, &[]), remembered);
    }

    /// What a modulator brings the elements that the edges lead to.
    pub(super) fn modulated(&mut self, draft: &mut Draft, projection: usize, remembered: &Remembered) {
        let modulator = self.model.projections[projection].plasticity.as_ref().and_then(|p| p.modulator);
        let Some(modulator) = modulator else { return };
        let event = self.modulates(modulator);
        let guard = self.told_of(projection, event);
        self.at_event(draft, projection, guard, (&remembered.modulated, &[]), remembered);
    }

    /// The guard of what edges are told of the element that they lead to.
    fn told_of(&mut self, projection: usize, event: FieldId) -> Guard {
        let back = Source::Back(projection as u32);
        let delay = self.takes_time(projection).then(|| self.of_edges(projection as u32, back, "back"));
        Guard { event, along: Some(Map::Target), delay }
    }

    /// Are edges told of the element that they lead to in a later step? Behind a dendrite they are; and what arrives between two steps is found by the
    /// second one.
    fn takes_time(&self, projection: usize) -> bool {
        let plasticity = &self.model.projections[projection].plasticity;
        self.between[projection] || plasticity.as_ref().is_some_and(|plasticity| plasticity.has_dendrite(self.model))
    }

    /// How many steps it takes until edges are told, where events take `steps` along them.
    pub(super) fn back(&mut self, b: &mut RegionBuilder, values: &mut Values, projection: usize, steps: ValueId) {
        let Some(plasticity) = &self.model.projections[projection].plasticity else { return };
        if !self.takes_time(projection) {
            return;
        }
        // To the synapse, and on to the soma.
        let mut back = b.constant(0.5);
        if let Some((part, _)) = plasticity.dendritic {
            let part = self.lower(b, values, part);
            let two = b.constant(2.0);
            let ways = b.binary(BinaryOp::Mul, two, part);
            let ways = b.binary(BinaryOp::Mul, ways, steps);
            back = b.binary(BinaryOp::Add, ways, back);
        }
        let mut back = b.unary(UnaryOp::Floor, back);
        if self.between[projection] {
            let one = b.constant(1.0);
            back = b.binary(BinaryOp::Add, back, one);
        }
        let field = self.of_edges(projection as u32, Source::Back(projection as u32), "back");
        b.store(field, back);
    }

    /// How much of a modulator has reached the synapses of an element in this step.
    pub(super) fn amount(&mut self, modulator: u32) -> FieldId {
        let m = &self.model.modulators[modulator as usize];
        let (name, space) = (format!("{}'amount", m.name), population_space(m.population));
        self.field(Source::Amount(modulator), name, FieldKind::State, Some(space), m.span)
    }

    /// Whom a modulator has reached.
    fn modulates(&mut self, modulator: u32) -> FieldId {
        let m = &self.model.modulators[modulator as usize];
        let (name, space) = (format!("{}'modulated", m.name), population_space(m.population));
        self.field(Source::Modulated(modulator), name, FieldKind::Event, Some(space), m.span)
    }

    /// Adds up how much of a modulator arrives, and tells the edges if it is not nothing.
    pub(super) fn modulate(&mut self, draft: &mut Draft, modulator: usize) {
        let m = &self.model.modulators[modulator];
        let space = population_space(m.population);
        let mut b = draft.over(space);
        let origin = self.origin(m.span);
        b.set_origin(origin);
        let value = self.lower(&mut b, &mut Values::new(space, Role::Step), m.amount);
        let amount = self.amount(modulator as u32);
        b.store(amount, value);
        let none = b.constant(0.0);
        let some = b.binary(BinaryOp::Ne, value, none);
        let event = self.modulates(modulator as u32);
        b.effect(OpKind::Emit(event, some));
        draft.push(b);
    }

    /// Whether the cells of a population have spiked in this step.
    pub(super) fn told(&mut self, cells: usize, span: Span) -> FieldId {
        let name = format!("{}'told", self.model.populations[cells].name);
        self.field(Source::Told(cells as u32), name, FieldKind::Temp, Some(population_space(cells)), span)
    }

    /// The spikes of cells with sections, once more at a place that edges lead to.
    pub(super) fn tell(&mut self, draft: &mut Draft, place: usize, spiking: usize) {
        let model = self.model;
        let Some(spike) = &model.populations[spiking].spike else { return };
        let mut b = draft.over(population_space(place));
        let origin = self.origin(spike.span);
        b.set_origin(origin);
        let told = self.told(model.cells_of(place), spike.span);
        let (told, none) = (b.gather(told, Map::Of), b.constant(0.0));
        let spiked = b.binary(BinaryOp::Gt, told, none);
        let event = self.spikes(place, spike.span);
        b.effect(OpKind::Emit(event, spiked));
        draft.push(b);
    }

    /// What an event makes of the states of edges, and what it sends. It is one of the end of the step; of the beginning, if it comes between two steps.
    fn at_event(
        &mut self,
        draft: &mut Draft,
        projection: usize,
        guard: Guard,
        (changes, sent): (&[(StateId, NodeId)], &[NodeId]),
        remembered: &Remembered,
    ) {
        let (model, space) = (self.model, projection_space(self.model, projection));
        let mut b = draft.over(space);
        b.set_guard(guard);
        let origin = self.origin(model.projections[projection].span);
        b.set_origin(origin);
        let mut values = Values::new(space, Role::Step);
        let mut now = b.value(OpKind::StepIndex);
        if !self.between[projection] {
            let one = b.constant(1.0);
            now = b.binary(BinaryOp::Add, now, one);
        }
        let seen = self.seen(projection);
        let last = b.field(seen);
        self.since(&mut b, &mut values, now, last);
        let after: Vec<(StateId, NodeId)> = remembered.after(changes).collect();
        let sum = |(at, &value)| (self.arrived(projection as u32, at), value);
        let sent: Vec<(FieldId, NodeId)> = (0..).zip(sent).map(sum).collect();
        let sent: Vec<(FieldId, ValueId)> =
            sent.into_iter().map(|(sum, value)| (sum, self.lower(&mut b, &mut values, value))).collect();
        let after: Vec<(FieldId, ValueId)> = after
            .into_iter()
            .filter(|&(state, value)| model.graph.node(value) != Node::State(state))
            .map(|(state, value)| (self.state(state), self.lower(&mut b, &mut values, value)))
            .collect();
        after.into_iter().for_each(|(field, value)| b.store(field, value));
        b.store(seen, now);
        sent.into_iter().for_each(|(sum, value)| b.accumulate(sum, Some(Map::Target), value));
        draft.push(b);
    }

    /// What is recorded of edges and moves between events, as it is at the beginning of a step.
    pub(super) fn observe_edges(&mut self, draft: &mut Draft, projection: usize, remembered: &Remembered) {
        let (model, space) = (self.model, projection_space(self.model, projection));
        let mut b = draft.over(space);
        let mut values = Values::new(space, Role::Observe);
        let mut any = false;
        for (at, record) in model.records.iter().enumerate().filter(|(_, r)| r.edges == Some(projection)) {
            let (Node::State(state), None) = (model.graph.node(record.value), model.recorded_state(record)) else {
                continue;
            };
            let Some(&(_, now)) = remembered.now.iter().find(|(other, _)| *other == state) else { continue };
            let origin = self.origin(record.span);
            b.set_origin(origin);
            if !any {
                let now = b.value(OpKind::StepIndex);
                let seen = self.seen(projection);
                let last = b.field(seen);
                self.since(&mut b, &mut values, now, last);
                any = true;
            }
            let value = self.lower(&mut b, &mut values, now);
            let name = format!("{}'out", record.name);
            let field = self.field(output(model, at), name, FieldKind::Output, Some(space), record.span);
            b.store(field, value);
        }
        if any {
            draft.push(b);
        }
    }

    /// Makes known how long ago an edge has seen its last event.
    fn since(&mut self, b: &mut RegionBuilder, values: &mut Values, now: ValueId, last: ValueId) {
        // Late in a long run both are large; their difference need not be.
        let steps = b.exact(OpKind::Binary(BinaryOp::Sub, now, last));
        let dt = self.lower(b, values, self.dt);
        let since = b.binary(BinaryOp::Mul, steps, dt);
        for id in (0..self.model.graph.len() as u32).map(NodeId) {
            if self.model.graph.node(id) == Node::Since {
                values.memo.insert(id, since);
            }
        }
    }
}
