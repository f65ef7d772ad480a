//! NEURON's default: backward Euler for potentials, then exact exponentials for gates. Order 1, stable for stiff membranes.
//!
//! A state that is not a gate, with x' = n s and b the slope of n in x, moves by n s dt / (1 - b s dt); gates follow with the
//! new potentials (Hines 1984; NEURON calls the gates' part cnexp). Couplings between compartments enter explicitly.

use super::exp_euler::{gates_last, peel};
use super::slope::slope;
use crate::ode::{Graph, Model, Node, NodeId, StateId};
use crate::step::BinaryOp;
use crate::units::Dim;

pub(super) fn step(model: &mut Model, population: usize, dt: NodeId) -> Vec<(StateId, NodeId)> {
    gates_last(model, population, dt, |g, state, rate| implicit(g, state, dt, rate))
}

fn implicit(g: &mut Graph, state: StateId, dt: NodeId, rate: NodeId) -> NodeId {
    let x = g.add(Node::State(state));
    let (linear, step) = peel(g, rate, state, dt);
    let mut change = g.binary(BinaryOp::Mul, linear, step);
    if let Some(b) = slope(g, linear, state) {
        let one = g.number(1.0, Dim::ONE);
        let z = g.binary(BinaryOp::Mul, b, step);
        let damping = g.binary(BinaryOp::Sub, one, z);
        change = g.binary(BinaryOp::Div, change, damping);
    }
    g.binary(BinaryOp::Add, x, change)
}
