//! Exponential Euler: x + n expm1(b s dt) / b for x' = n s, where b is the slope of n in x and s does not depend on x.
//! Exact for states that are linear in themselves while everything else is held; order 1.
//! (Rush and Larsen 1978; MacGregor 1987.)

use super::slope::{depends, slope};
use crate::ode::{Graph, Model, Node, NodeId, StateId};
use crate::step::{BinaryOp, UnaryOp};
use crate::units::Dim;

pub(super) fn step(model: &mut Model, population: usize, dt: NodeId) -> Vec<(StateId, NodeId)> {
    let states: Vec<StateId> = model.states_of(population).collect();
    states
        .into_iter()
        .map(|s| {
            let rate = model.state(s).rate;
            (s, advance(&mut model.graph, s, dt, rate))
        })
        .collect()
}

fn advance(g: &mut Graph, state: StateId, dt: NodeId, rate: NodeId) -> NodeId {
    let x = g.add(Node::State(state));
    let (linear, scale) = peel(g, rate, state);
    let step = match scale {
        None => dt,
        Some(s) => g.binary(BinaryOp::Mul, s, dt),
    };
    let change = match slope(g, linear, state) {
        None => step,
        Some(b) => {
            let z = g.binary(BinaryOp::Mul, b, step);
            let e = g.unary(UnaryOp::Expm1, z);
            let quotient = g.binary(BinaryOp::Div, e, b);
            if g.constant(b).is_some_and(|b| b != 0.0) {
                quotient
            } else {
                // The limit for b = 0.
                let zero = g.number(0.0, Dim::ONE);
                let none = g.binary(BinaryOp::Eq, b, zero);
                g.select(none, step, quotient)
            }
        }
    };
    let change = g.binary(BinaryOp::Mul, linear, change);
    g.binary(BinaryOp::Add, x, change)
}

/// `rate = n * s` with everything that does not depend on the state, and only multiplies or divides, in `s`.
fn peel(g: &mut Graph, rate: NodeId, state: StateId) -> (NodeId, Option<NodeId>) {
    match g.node(rate) {
        Node::Binary(BinaryOp::Mul, a, b) => {
            let (inner, factor) = match (depends(g, a, state), depends(g, b, state)) {
                (true, false) => (a, b),
                (false, true) => (b, a),
                _ => return (rate, None),
            };
            let (n, s) = peel(g, inner, state);
            let s = match s {
                None => factor,
                Some(s) => g.binary(BinaryOp::Mul, s, factor),
            };
            (n, Some(s))
        }
        Node::Binary(BinaryOp::Div, a, b) if depends(g, a, state) && !depends(g, b, state) => {
            let (n, s) = peel(g, a, state);
            let s = match s {
                None => {
                    let one = g.number(1.0, Dim::ONE);
                    g.binary(BinaryOp::Div, one, b)
                }
                Some(s) => g.binary(BinaryOp::Div, s, b),
            };
            (n, Some(s))
        }
        _ => (rate, None),
    }
}
