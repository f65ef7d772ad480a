//! Crank and Nicolson's rule for potentials (1947), then exact exponentials for all else: NEURON's `secondorder = 2`. Order 2.
//!
//! A potential, a state in mV, with x' = n s and b the derivative of n in x, goes half a step by backward Euler and then as far again: it moves
//! by n s dt / (1 - b s dt / 2), with what depends on the time, and the pools that currents read, taken in the middle of the step. So do pools, with the mean of
//! the old and the new potential. Gates, conductances of synapses
//! and other states are known half a step later than potentials and pools, in the middle of the next step, and follow with
//! the new ones and with what depends on the time at the end of the step (Hines 1984). So the order is 2 where they begin at rest, and
//! where nothing jumps; a step of an input that begins and ends with steps is exact. As in `cnexp`, growth counts as 1/2 at most in
//! the half step. Kinetic schemes follow with the gates, each as a whole (`kinetics.rs`). Couplings between compartments written by hand,
//! junctions and other states in mV enter explicitly, with order 1.

use super::cnexp::late;
use super::exp_euler::{peel, tangent};
use super::order::{Middle, Order, Pools};
use super::stages::Stages;
use super::{kinetics, noise};
use crate::ode::{Graph, Model, Node, NodeId, StateId, depends, derivative};
use crate::step::BinaryOp;
use crate::units::Dim;

pub(super) fn step(stages: &mut Stages<'_>) {
    Order { late, potential: implicit, spread: noise::implicit, schemes: &kinetics::ORDER_5, pools: Pools::Middle }
        .step(stages);
}

/// The new value of a potential, from its rate in the middle of the step.
fn implicit(g: &mut Graph, state: StateId, rate: NodeId, dt: NodeId) -> NodeId {
    let x = g.add(Node::State(state));
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

/// What flows through the membranes of cables in the middle of a step. The slope is that at the pools' old values.
pub(super) fn membranes_in_the_middle(model: &mut Model, dt: NodeId) {
    for cable in 0..model.cables.len() {
        for current in 0..model.cables[cable].currents.len() {
            let (v, mut m) = (model.cables[cable].v, model.cables[cable].currents[current]);
            let middle = Middle::of(model, m.population, dt);
            let outward = middle.of_time(&mut model.graph, m.outward);
            m.slope = m.slope.or_else(|| derivative(&mut model.graph, outward, v));
            m.outward = middle.of_pools(&mut model.graph, outward);
            model.cables[cable].currents[current] = m;
        }
    }
}
