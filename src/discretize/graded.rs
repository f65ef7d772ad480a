//! Graded synapses: what cells send at every moment, added up where it arrives.
//!
//! In come projections whose synapses are graded and the stages of a method; out go, for each stage, what cells send at what it looks at, and regions that
//! add it up for the cells behind. Where something leads to places of branched cells, or from them, what is sent is computed at the end of the step before.
//! Never true here: a cell reads a sum of another stage than that of its own derivative.

use super::stages::{Stage, Target};
use super::{Draft, Lowering, Values, population_space, projection_space};
use crate::ode::{Graph, Kind, Model, Node, NodeId, StateId};
use crate::step::{BinaryOp, FieldId, FieldKind, Map, RegionBuilder, Role, Source, ValueId};
use rustc_hash::FxHashMap as HashMap;

/// Which projection, and what its cells send.
pub(super) type Sent = (usize, NodeId);

/// What is sent in each stage of a step, given those of each population.
pub(super) fn sent(model: &mut Model, stages: &[Vec<Stage>]) -> Vec<Vec<Sent>> {
    let all: Vec<Sent> = model.graded().map(|(at, _, graded)| (at, graded.sent)).collect();
    let count = stages.iter().map(Vec::len).max().unwrap_or(0);
    let of_stage = |stage: usize| {
        let time = stages.iter().filter_map(|stages| stages.get(stage)?.time).next();
        let g = &mut model.graph;
        all.iter()
            .map(|&(at, sent)| (at, if stage == 0 { sent } else { looked_at(g, sent, stage as u32, time) }))
            .collect()
    };
    (0..count).map(of_stage).collect()
}

/// An expression at what a later stage looks at.
fn looked_at(g: &mut Graph, root: NodeId, stage: u32, time: Option<NodeId>) -> NodeId {
    let mut memo = HashMap::default();
    for id in g.reachable([root]) {
        let there = match g.node(id) {
            Node::State(state) => Some(g.add(Node::Point(state, stage))),
            Node::Time => time,
            _ => None,
        };
        memo.extend(there.map(|there| (id, there)));
    }
    g.replace(root, &|_| None, &mut memo)
}

/// What cells pass on through graded synapses.
#[derive(Debug, Clone, Copy)]
pub(super) struct Passed {
    /// The first projection that it goes along.
    first: usize,
    sent: NodeId,
    /// The same when a run begins, where it is carried from outside.
    pub(super) begin: NodeId,
}

/// What is passed on, where that is carried from outside.
pub(super) fn passed(model: &mut Model) -> Vec<Passed> {
    let all = model.passed_on().into_iter();
    all.map(|(first, sent)| Passed { first, sent, begin: model.at_the_beginning(sent) }).collect()
}

/// What is passed on where something is to places of branched cells, or by them: these see what there was when the step began.
pub(super) fn passed_within(model: &Model, sent: &[Sent]) -> Vec<Passed> {
    let is_place = |population: usize| model.populations[population].kind != Kind::Cells;
    let leads_to_places =
        |&(at, _): &Sent| [model.projections[at].from, model.projections[at].to].into_iter().any(is_place);
    if !sent.iter().any(leads_to_places) {
        return Vec::new();
    }
    let mut all: Vec<Passed> = Vec::new();
    for &(at, value) in sent {
        let from = model.projections[at].from;
        let is_there =
            matches!(model.graph.node(value), Node::State(s) if model.state(s).population == from && !is_place(from));
        let first = first_of(model, sent, (at, value));
        if !is_there && all.iter().all(|passed| passed.first != first) {
            all.push(Passed { first, sent: value, begin: value });
        }
    }
    all
}

/// The first projection along which the same cells send the same.
fn first_of(model: &Model, sent: &[Sent], (at, value): Sent) -> usize {
    let from = |at: usize| model.projections[at].from;
    sent.iter().find(|other| from(other.0) == from(at) && other.1 == value).map_or(at, |first| first.0)
}

impl Lowering<'_> {
    /// What cells pass on from the next step on, where that is kept.
    pub(super) fn pass_on(
        &mut self,
        b: &mut RegionBuilder,
        values: &mut Values,
        population: usize,
        what: impl Fn(&Passed) -> NodeId,
    ) {
        let own = |passed: &&Passed| self.model.projections[passed.first].from == population;
        for passed in self.passed.iter().filter(own).copied().collect::<Vec<_>>() {
            let value = self.lower(b, values, what(&passed));
            let field = self.kept(passed.first);
            b.store(field, value);
        }
    }

    /// The field of what is passed on in the next step.
    fn kept(&mut self, first: usize) -> FieldId {
        let p = &self.model.projections[first];
        let (source, space) = (Source::Sent(first as u32, 0), population_space(p.from));
        self.field(source, format!("{}'sent", p.name), FieldKind::State, Some(space), p.span)
    }

    /// Does a population pass on what is kept?
    pub(super) fn passes(&self, population: usize) -> bool {
        self.passed.iter().any(|passed| self.model.projections[passed.first].from == population)
    }

    /// What cells pass on in the first step: when all states have begun.
    pub(super) fn first(&mut self, draft: &mut Draft) {
        for population in
            (0..self.model.populations.len()).filter(|&population| self.passes(population)).collect::<Vec<_>>()
        {
            let space = population_space(population);
            let mut b = draft.over(space);
            self.pass_on(&mut b, &mut Values::new(space, Role::Observe), population, |passed| passed.sent);
            draft.push(b);
        }
    }

    /// What cells pass on when all else of a step is known.
    pub(super) fn last(&mut self, b: &mut RegionBuilder, population: usize, after: &[(StateId, ValueId)]) {
        if self.passed.is_empty() {
            return;
        }
        let dt = self.lower(b, &mut Values::new(population_space(population), Role::Step), self.dt);
        let mut last = self.with_states(b, population, dt, after);
        self.pass_on(b, &mut last, population, |passed| passed.sent);
    }

    /// Adds up what arrives at each cell in a stage.
    pub(super) fn graded(&mut self, draft: &mut Draft, role: Role, stage: u32, sent: &[Sent]) {
        let model = self.model;
        for &(at, value) in sent {
            let p = &model.projections[at];
            let first = first_of(model, sent, (at, value));
            let there = self.sent(draft, role, stage, (at, first), value);
            let (space, origin) = (projection_space(model, at), self.origin(p.span));
            let mut b = draft.over(space);
            b.set_origin(origin);
            let there = b.gather(there, Map::Source);
            let weight = match model.graph.differs(p.weight) {
                true => {
                    let weight = self.of_edges(at as u32, Source::Weight(at as u32), "weight");
                    b.field(weight)
                }
                false => self.lower_weight(&mut b, &mut Values::new(space, role), p),
            };
            let brought = b.binary(BinaryOp::Mul, weight, there);
            let sum = self.arrived(p.arrives, stage);
            b.accumulate(sum, Some(Map::Target), brought);
            draft.push(b);
        }
    }

    /// The field of what cells send; computed for the first projection that sends it.
    fn sent(
        &mut self,
        draft: &mut Draft,
        role: Role,
        stage: u32,
        (at, first): (usize, usize),
        value: NodeId,
    ) -> FieldId {
        let model = self.model;
        if self.passed.iter().any(|passed| passed.first == first) {
            debug_assert_eq!(stage, 0, "methods of one stage solve cables");
            return self.kept(first);
        }
        let p = &model.projections[first];
        let is_own = |state: StateId| model.state(state).population == p.from;
        match model.graph.node(value) {
            Node::State(state) if is_own(state) => return self.state(state),
            Node::Point(state, stage) if is_own(state) => return self.target(Target::Point(state, stage)),
            _ => {}
        }
        let (source, space) = (Source::Sent(first as u32, stage), population_space(p.from));
        let number = if stage == 0 { String::new() } else { stage.to_string() };
        let field = self.field(source, format!("{}'sent{number}", p.name), FieldKind::Temp, Some(space), p.span);
        if at == first {
            let origin = self.origin(p.span);
            let mut b = draft.over(space);
            b.set_origin(origin);
            let value = self.lower(&mut b, &mut Values::new(space, role), value);
            b.store(field, value);
            draft.push(b);
        }
        field
    }
}
