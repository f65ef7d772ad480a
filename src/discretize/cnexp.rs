//! NEURON's default: backward Euler for potentials, then exact exponentials for all else. Order 1, stable for stiff membranes.
//!
//! A potential, a state in mV, with x' = n s and b the derivative of n in x, moves by n s dt / (1 - b s dt), a pool beside it with the currents of the step's
//! beginning; gates, conductances of synapses and other states follow with the new potentials and concentrations (Hines 1984; NEURON calls their part cnexp). Where n bends, that is the linearly implicit step (NEURON
//! takes the same derivative, from a difference of 0.001 mV). A b s dt that is positive, growth, counts as 1/2 at most: at 1 the
//! quotient has a pole and beyond it the wrong sign. Kinetic schemes follow with the gates, by backward Euler (NEURON's `sparse`). Couplings between compartments enter explicitly.

use super::exp_euler::{peel, tangent};
use super::order::{Order, Pools};
use super::stages::Stages;
use super::{kinetics, noise};
use crate::hir::StateKind;
use crate::ode::{Graph, Node, NodeId, State, StateId, depends, derivative};
use crate::step::BinaryOp;
use crate::units::Dim;

pub(super) fn step(stages: &mut Stages<'_>) {
    Order {
        late,
        potential: implicit,
        spread: noise::implicit,
        schemes: &kinetics::BACKWARD_EULER,
        pools: Pools::Held,
    }
    .step(stages);
}

/// Does a state follow with the new potentials? Neither these nor pools, which have been moved from the old ones.
pub(super) fn late(state: &State) -> bool {
    state.kind == StateKind::Gate || (state.kind == StateKind::Plain && state.dim != Dim::VOLTAGE)
}

fn implicit(g: &mut Graph, state: StateId, rate: NodeId, dt: NodeId) -> NodeId {
    let x = g.add(Node::State(state));
    let (n, step) = peel(g, rate, state, dt);
    let mut change = g.binary(BinaryOp::Mul, n, step);
    if let Some(b) = derivative(g, n, state) {
        let one = g.number(1.0, Dim::ONE);
        let z = tangent(g, b, step, 0.5, depends(g, b, state));
        let damping = g.binary(BinaryOp::Sub, one, z);
        change = g.binary(BinaryOp::Div, change, damping);
    }
    g.binary(BinaryOp::Add, x, change)
}
