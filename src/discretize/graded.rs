//! Graded synapses: what cells send at every moment, added up where it arrives.
//!
//! In come projections whose synapses are graded and the stages of a method; out go, for each stage, what cells send at what it looks at, and regions that
//! add it up for the cells behind.
//! Never true here: a cell reads a sum of another stage than that of its own derivative.

use super::stages::{Stage, Target};
use super::{Draft, Lowering, Values, population_space, projection_space};
use crate::ode::{Graph, Model, Node, NodeId, StateId};
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
    /// The same when a run begins.
    pub(super) begin: NodeId,
}

/// What is passed on, where that is carried from outside.
pub(super) fn passed(model: &mut Model) -> Vec<Passed> {
    let all = model.passed_on().into_iter();
    all.map(|(first, sent)| Passed { first, sent, begin: model.at_the_beginning(sent) }).collect()
}

impl Lowering<'_> {
    /// What cells pass on from the next step on, where that is carried from outside.
    pub(super) fn pass_on(
        &mut self,
        b: &mut RegionBuilder,
        values: &mut Values,
        population: usize,
        what: impl Fn(&Passed) -> NodeId,
    ) {
        let own = |passed: &&Passed| self.model.projections[passed.first].from == population;
        for passed in self.passed.iter().filter(own).copied().collect::<Vec<_>>() {
            let p = &self.model.projections[passed.first];
            let (source, name) = (Source::Sent(passed.first as u32, 0), format!("{}'sent", p.name));
            let value = self.lower(b, values, what(&passed));
            let field = self.field(source, name, FieldKind::State, Some(population_space(population)), p.span);
            b.store(field, value);
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
            let same = |other: &&Sent| model.projections[other.0].from == p.from && other.1 == value;
            let first = sent.iter().find(same).map_or(at, |first| first.0);
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
        match model.graph.node(value) {
            Node::State(state) => return self.state(state),
            Node::Point(state, stage) => return self.target(Target::Point(state, stage)),
            _ => {}
        }
        let p = &model.projections[first];
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
