//! Crank and Nicolson's rule for potentials (1947), then exact exponentials for all else: NEURON's `secondorder = 2`. Order 2.
//!
//! A potential, a state in mV, with x' = n s and b the derivative of n in x, goes half a step by backward Euler and then as far again: it moves
//! by n s dt / (1 - b s dt / 2), with what depends on the time taken in the middle of the step. Gates, conductances of synapses,
//! concentrations and other states are known half a step later than potentials, in the middle of the next step, and follow with
//! the new potentials and with what depends on the time at the end of the step (Hines 1984). So the order is 2 where they begin at rest, and
//! where nothing jumps; a step of an input that begins and ends with steps is exact. As in `cnexp`, growth counts as 1/2 at most in
//! the half step. Kinetic schemes follow with the gates, each as a whole (`kinetics.rs`). Couplings between compartments written by hand,
//! junctions and other states in mV enter explicitly, with order 1.

use super::exp_euler::{gates_last, peel, tangent};
use super::kinetics;
use super::stages::Stages;
use crate::ode::{Graph, Model, Node, NodeId, State, StateId, depends, derivative};
use crate::step::BinaryOp;
use crate::units::Dim;
use rustc_hash::FxHashMap as HashMap;

pub(super) fn step(stages: &mut Stages<'_>) {
    let dt = stages.dt;
    let late = |state: &State| state.gate || state.dim != Dim::VOLTAGE;
    let g = &mut stages.model.graph;
    let time = g.add(Node::Time);
    let later = g.binary(BinaryOp::Add, time, dt);
    gates_last(stages, late, |g, state, rate| implicit(g, state, dt, rate), &kinetics::ORDER_5, Some(later));
}

fn implicit(g: &mut Graph, state: StateId, dt: NodeId, rate: NodeId) -> NodeId {
    let x = g.add(Node::State(state));
    let half = half(g, dt);
    let rate = in_the_middle(g, half, rate);
    let (n, step) = peel(g, rate, state, dt);
    let mut change = g.binary(BinaryOp::Mul, n, step);
    if let Some(b) = derivative(g, n, state) {
        let (one, two) = (g.number(1.0, Dim::ONE), g.number(2.0, Dim::ONE));
        let half_step = g.binary(BinaryOp::Div, step, two);
        let z = tangent(g, b, half_step, 0.5, depends(g, b, state));
        let damping = g.binary(BinaryOp::Sub, one, z);
        change = g.binary(BinaryOp::Div, change, damping);
    }
    g.binary(BinaryOp::Add, x, change)
}

fn half(g: &mut Graph, dt: NodeId) -> NodeId {
    let two = g.number(2.0, Dim::ONE);
    g.binary(BinaryOp::Div, dt, two)
}

/// An expression in the middle of a step, as far as it depends on the time.
fn in_the_middle(g: &mut Graph, half: NodeId, root: NodeId) -> NodeId {
    let time = g.add(Node::Time);
    let later = g.binary(BinaryOp::Add, time, half);
    let leaf = |node: Node| (node == Node::Time).then_some(later);
    g.replace(root, &leaf, &mut HashMap::default())
}

/// What flows through the membranes of cables in the middle of a step.
pub(super) fn membranes_in_the_middle(model: &mut Model, dt: NodeId) {
    let half = half(&mut model.graph, dt);
    for cable in 0..model.cables.len() {
        for current in 0..model.cables[cable].currents.len() {
            let outward = model.cables[cable].currents[current].outward;
            model.cables[cable].currents[current].outward = in_the_middle(&mut model.graph, half, outward);
        }
    }
}
