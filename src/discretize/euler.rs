//! Forward Euler: x + dt f(x). Order 1.

use super::stages::Stages;
use crate::ode::{Model, NodeId, StateId};
use crate::step::BinaryOp;

pub(super) fn step(stages: &mut Stages<'_>) {
    let (states, dt, model) = (stages.states(), stages.dt, &mut *stages.model);
    let update = |s: StateId| (s, advance(model, s, dt, model.state(s).rate));
    let updates = states.into_iter().map(update).collect();
    stages.update(updates);
}

/// `x + dt * rate`.
pub(super) fn advance(model: &mut Model, state: StateId, dt: NodeId, rate: NodeId) -> NodeId {
    let x = model.graph.add(crate::ode::Node::State(state));
    let change = model.graph.binary(BinaryOp::Mul, dt, rate);
    model.graph.binary(BinaryOp::Add, x, change)
}
