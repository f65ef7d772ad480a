//! The classical Runge-Kutta method. Order 4 (Kutta 1901).

use super::Update;
use super::euler::advance;
use crate::ode::{Model, Node, NodeId, StateId};
use crate::step::BinaryOp;
use crate::units::Dim;
use std::collections::HashMap;

pub(super) fn step(model: &mut Model, population: usize, dt: NodeId) -> Vec<Update> {
    let states: Vec<StateId> = model.states_of(population).collect();
    let half = model.graph.number(0.5, Dim::ONE);
    let half = model.graph.binary(BinaryOp::Mul, half, dt);
    let k1: Vec<NodeId> = states.iter().map(|&s| model.state(s).rate).collect();
    let k2 = stage(model, &states, &k1, half);
    let k3 = stage(model, &states, &k2, half);
    let k4 = stage(model, &states, &k3, dt);
    let two = model.graph.number(2.0, Dim::ONE);
    let sixth = model.graph.number(6.0, Dim::ONE);
    let sixth = model.graph.binary(BinaryOp::Div, dt, sixth);
    let update = |(i, &s): (usize, &StateId)| {
        let g = &mut model.graph;
        let middle = g.binary(BinaryOp::Add, k2[i], k3[i]);
        let middle = g.binary(BinaryOp::Mul, two, middle);
        let ends = g.binary(BinaryOp::Add, k1[i], k4[i]);
        let sum = g.binary(BinaryOp::Add, ends, middle);
        (s, advance(model, s, sixth, sum))
    };
    vec![states.iter().enumerate().map(update).collect()]
}

/// The derivatives at `x + step * slope` and time `t + step`.
pub(super) fn stage(model: &mut Model, states: &[StateId], slopes: &[NodeId], step: NodeId) -> Vec<NodeId> {
    let moved: HashMap<StateId, NodeId> =
        states.iter().zip(slopes).map(|(&s, &k)| (s, advance(model, s, step, k))).collect();
    let time = model.graph.add(Node::Time);
    let later = model.graph.binary(BinaryOp::Add, time, step);
    let leaf = |node: Node| match node {
        Node::State(s) => moved.get(&s).copied(),
        Node::Time => Some(later),
        _ => None,
    };
    let mut memo = HashMap::new();
    let rates: Vec<NodeId> = states.iter().map(|&s| model.state(s).rate).collect();
    rates.into_iter().map(|rate| model.graph.replace(rate, &leaf, &mut memo)).collect()
}
