//! Forward Euler: x + dt f(x). Order 1.

use super::Update;
use crate::ode::{Model, NodeId, StateId};
use crate::step::BinaryOp;

pub(super) fn step(model: &mut Model, population: usize, dt: NodeId) -> Vec<Update> {
    let states: Vec<StateId> = model.states_of(population).collect();
    vec![states.into_iter().map(|s| (s, advance(model, s, dt, model.state(s).rate))).collect()]
}

/// `x + dt * rate`.
pub(super) fn advance(model: &mut Model, state: StateId, dt: NodeId, rate: NodeId) -> NodeId {
    let x = model.graph.add(crate::ode::Node::State(state));
    let change = model.graph.binary(BinaryOp::Mul, dt, rate);
    model.graph.binary(BinaryOp::Add, x, change)
}
