//! Heun's explicit trapezoidal rule: x + dt/2 (f(x) + f(x + dt f(x))). Order 2.

use super::Update;
use super::euler::advance;
use super::rk4::stage;
use crate::ode::{Model, NodeId, StateId};
use crate::step::BinaryOp;
use crate::units::Dim;

pub(super) fn step(model: &mut Model, population: usize, dt: NodeId) -> Vec<Update> {
    let states: Vec<StateId> = model.states_of(population).collect();
    let k1: Vec<NodeId> = states.iter().map(|&s| model.state(s).rate).collect();
    let k2 = stage(model, &states, &k1, dt);
    let half = model.graph.number(0.5, Dim::ONE);
    let half = model.graph.binary(BinaryOp::Mul, half, dt);
    let mean = |model: &mut Model, i: usize| model.graph.binary(BinaryOp::Add, k1[i], k2[i]);
    let update = |(i, &s): (usize, &StateId)| {
        let sum = mean(model, i);
        (s, advance(model, s, half, sum))
    };
    vec![states.iter().enumerate().map(update).collect()]
}
