//! Ions that diffuse along sections: one system of linear equations for each kind of them, cell and step.
//!
//! In come the ions of the model, and what their pools would do by themselves; out go, in `init`, what lets them pass between compartments, and in `step` the
//! rows of the system and its solution. Never true here: a pool without neighbours moves otherwise than by itself.
//!
//! A pool of volume `V` that would move by `f h` in the step, `f` its rate and `h` what its exponential makes of the time step, has the row
//!
//! ```text
//! V / h (c' - c) + sum of G (c' - c'_neighbour) = V f
//! ```
//!
//! so that diffusion and what happens in the compartment are solved for together, with order 1. With `crank_nicolson` the solution is that of the middle of the step,
//! with half of `h` and the rate there, and pools go as far again. What currents and other pools read of them in that middle is
//! predicted at the step's beginning, from the rates there, by the same system: what flows is part of it, so that the order stays 2.
//!
//! A node has no volume: what flows in flows out. Where there are no such ions the solution is 0.

use super::exp_euler::exponential;
use super::stages::{Flow, Stage};
use super::{Draft, Lowering, Values, population_space};
use crate::hir::Method;
use crate::morphology::Measure;
use crate::ode::{Model, Node, NodeId};
use crate::step::{BinaryOp, FieldId, FieldKind, Map, Role, Solve, Source, Stage as StepStage};
use crate::units::Dim;

/// The number of the point that pools are predicted to be at in the middle of a step.
pub(super) const PREDICTED: u32 = 1;

/// That of the point that they are solved for at.
pub(super) const SOLVED: u32 = 2;

/// What a node does by itself, in cm3/ms, that nothing leads to from its parent: next to nothing, so that there is a solution where nothing leads to it
/// from its children either.
const LEAST: f64 = 1e-30;

/// What a field is to ions that diffuse.
#[derive(Clone, Copy)]
enum Part {
    /// The conductance between each compartment and its parent.
    Link,
    /// What an element does by itself that has no such ions.
    Spare,
    /// The coefficient of each compartment; of nodes 1.
    Passes,
    /// The volume of each element.
    Volume,
    /// Of the solve for a point: one over how far the rate of a pool reaches.
    Held(u32),
    /// That rate.
    Rate(u32),
    /// What each element does.
    Own(u32),
    /// The right-hand side.
    Rhs(u32),
    /// Where each element comes from.
    From(u32),
    /// The solution.
    X(u32),
}

impl Part {
    fn number(self) -> u32 {
        match self {
            Part::Link => 0,
            Part::Spare => 1,
            Part::Passes => 2,
            Part::Volume => 3,
            Part::Held(point) => 6 * point,
            Part::Rate(point) => 6 * point + 1,
            Part::Own(point) => 6 * point + 2,
            Part::Rhs(point) => 6 * point + 3,
            Part::From(point) => 6 * point + 4,
            Part::X(point) => 6 * point + 5,
        }
    }

    fn name(self) -> String {
        let of_point = |name: &str, point: u32| if point == SOLVED { name.into() } else { format!("{name}{point}") };
        match self {
            Part::Link => "link".into(),
            Part::Spare => "spare".into(),
            Part::Passes => "passes".into(),
            Part::Volume => "volume".into(),
            Part::Held(point) => of_point("held", point),
            Part::Rate(point) => of_point("rate", point),
            Part::Own(point) => of_point("own", point),
            Part::Rhs(point) => of_point("rhs", point),
            Part::From(point) => of_point("from", point),
            Part::X(point) => of_point("solved", point),
        }
    }

    fn kind(self) -> FieldKind {
        match self {
            Part::Link | Part::Spare | Part::Passes | Part::Volume => FieldKind::Const,
            _ => FieldKind::Temp,
        }
    }
}

/// Stands for the conductances of ions between compartments and their parents, in cm3/ms.
pub fn link(diffusion: usize) -> Source {
    Source::Diffusion(diffusion as u32, Part::Link.number())
}

/// What pools would do by themselves in the first half of a step, if something reads where they are in its middle.
pub(super) fn predicted(model: &mut Model, stages: &[Vec<Stage>], dt: NodeId) -> Vec<Flow> {
    if model.method != Method::CrankNicolson || model.diffusions.is_empty() {
        return Vec::new();
    }
    let stages = || stages.iter().flatten();
    let updates = stages().flat_map(|stage| stage.updates.iter().chain(&stage.late));
    let mut roots: Vec<NodeId> = updates.flat_map(|update| update.values.iter().map(|value| value.1)).collect();
    roots.extend(stages().flat_map(|stage| &stage.flows).flat_map(|flow| [flow.rate, flow.reach]));
    let currents = model.cables.iter().flat_map(|cable| &cable.currents);
    roots.extend(currents.flat_map(|current| current.slope.into_iter().chain([current.outward])));
    let read = model.graph.reachable(roots);
    let is_read = |state| read.iter().any(|&node| model.graph.node(node) == Node::Point(state, PREDICTED));
    let read: Vec<bool> = model.diffusions.iter().map(|d| d.pools.iter().any(|&pool| is_read(pool))).collect();
    let two = model.graph.number(2.0, Dim::ONE);
    let half = model.graph.binary(BinaryOp::Div, dt, two);
    let mut flows = Vec::new();
    for (diffusion, _) in model.diffusions.iter().zip(read).filter(|(_, read)| *read) {
        for &state in &diffusion.pools {
            let rate = model.states[state.0 as usize].rate;
            let (rate, reach) = exponential(&mut model.graph, state, rate, half);
            flows.push(Flow { state, rate, reach });
        }
    }
    flows
}

impl Lowering<'_> {
    /// A field over the compartments that ions diffuse along.
    fn of_ions(&mut self, diffusion: usize, part: Part) -> FieldId {
        let d = &self.model.diffusions[diffusion];
        let name = format!("{}'{}'{}", self.model.populations[d.population].name, d.name, part.name());
        let source = Source::Diffusion(diffusion as u32, part.number());
        self.field(source, name, part.kind(), Some(population_space(d.population)), d.span)
    }

    /// What lets ions pass between compartments: half of each resists.
    pub(super) fn passages(&mut self, draft: &mut Draft, diffusion: usize) {
        let model = self.model;
        let d = &model.diffusions[diffusion];
        let (space, origin) = (population_space(d.population), self.origin(d.span));
        // Nodes let everything pass.
        let passes = self.of_ions(diffusion, Part::Passes);
        let mut b = draft.over(space);
        b.set_origin(origin);
        let area = self.measured(&mut b, space, Measure::Area);
        let coefficient = self.lower(&mut b, &mut Values::new(space, Role::Step), d.coefficient);
        let (none, one) = (b.constant(0.0), b.constant(1.0));
        let is_node = b.binary(BinaryOp::Le, area, none);
        let value = b.select(is_node, one, coefficient);
        b.store(passes, value);
        draft.push(b);
        let [link, spare, volumes] = [Part::Link, Part::Spare, Part::Volume].map(|part| self.of_ions(diffusion, part));
        let mut b = draft.over(space);
        b.set_origin(origin);
        let near = self.measured(&mut b, space, Measure::IonsNear(d.lumen));
        let far = self.measured(&mut b, space, Measure::IonsFar(d.lumen));
        let joined = self.measured(&mut b, space, Measure::Joined);
        let (own, above) = (b.field(passes), b.gather(passes, Map::Parent));
        let product = b.binary(BinaryOp::Mul, own, above);
        let near = b.binary(BinaryOp::Mul, near, above);
        let far = b.binary(BinaryOp::Mul, far, own);
        let resists = b.binary(BinaryOp::Add, near, far);
        let (none, one, least) = (b.constant(0.0), b.constant(1.0), b.constant(LEAST));
        // Where one of them lets nothing pass, the other one may resist by nothing.
        let flows = b.binary(BinaryOp::Gt, resists, none);
        let resists = b.select(flows, resists, one);
        let product = b.binary(BinaryOp::Mul, joined, product);
        let conductance = b.binary(BinaryOp::Div, product, resists);
        b.store(link, conductance);
        let area = self.measured(&mut b, space, Measure::Area);
        let volume = self.measured(&mut b, space, Measure::Volume(d.lumen));
        let [has, joined, is_node] = [
            b.binary(BinaryOp::Gt, volume, none),
            b.binary(BinaryOp::Gt, conductance, none),
            b.binary(BinaryOp::Le, area, none),
        ];
        let of_node = b.select(joined, none, least);
        let of_others = b.select(is_node, of_node, one);
        let by_itself = b.select(has, none, of_others);
        b.store(spare, by_itself);
        b.store(volumes, volume);
        draft.push(b);
    }

    /// Solves for the pools of some flows at a point.
    pub(super) fn diffuse(&mut self, draft: &mut Draft, flows: &[Flow], point: u32) {
        let model = self.model;
        for (diffusion, d) in model.diffusions.iter().enumerate() {
            let own = |flow: &&Flow| d.pools.contains(&flow.state);
            let flows: Vec<&Flow> = flows.iter().filter(own).collect();
            if flows.is_empty() {
                continue;
            }
            let space = population_space(d.population);
            let [held, rates, from] =
                [Part::Held(point), Part::Rate(point), Part::From(point)].map(|part| self.of_ions(diffusion, part));
            let [link, spare, volume] =
                [Part::Link, Part::Spare, Part::Volume].map(|part| self.of_ions(diffusion, part));
            let [own, rhs, x] =
                [Part::Own(point), Part::Rhs(point), Part::X(point)].map(|part| self.of_ions(diffusion, part));
            for flow in &flows {
                let space = population_space(model.state(flow.state).population);
                let origin = self.origin(model.state(flow.state).span);
                let mut b = draft.over(space);
                b.set_origin(origin);
                let mut values = Values::new(space, Role::Step);
                let [rate, reach] = [flow.rate, flow.reach].map(|node| self.lower(&mut b, &mut values, node));
                let state = self.state(flow.state);
                let old = b.field(state);
                let one = b.constant(1.0);
                let by_itself = b.binary(BinaryOp::Div, one, reach);
                for (field, value) in [(held, by_itself), (rates, rate), (from, old)] {
                    b.accumulate(field, Some(Map::In), value);
                }
                draft.push(b);
            }
            let origin = self.origin(d.span);
            let mut b = draft.over(space);
            b.set_origin(origin);
            let (volume, spare) = (b.field(volume), b.field(spare));
            let [held, rate] = [held, rates].map(|field| {
                let value = b.field(field);
                b.binary(BinaryOp::Mul, volume, value)
            });
            let held = b.binary(BinaryOp::Add, held, spare);
            b.store(own, held);
            b.store(rhs, rate);
            draft.push(b);
            draft.stages.push(StepStage::Solve(Solve { x, own, link, rhs, from: Some(from), origin }));
            for flow in &flows {
                let space = population_space(model.state(flow.state).population);
                let origin = self.origin(model.state(flow.state).span);
                let mut b = draft.over(space);
                b.set_origin(origin);
                let solved = b.gather(x, Map::In);
                let there = self.target(super::Target::Point(flow.state, point));
                b.store(there, solved);
                draft.push(b);
            }
        }
    }
}
