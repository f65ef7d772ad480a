//! Exponential Euler, gates after potentials. Formally of order 1; potentials are mostly far more accurate.
//!
//! A state with x' = n s, where b is the derivative of n in x and s does not depend on x, moves by n expm1(b s dt) / b: exact for
//! states that are linear in themselves while everything else is held (Rush and Larsen 1978; MacGregor 1987). Where n bends, that
//! is the step of the equation linearized at x (the exponential Rosenbrock-Euler method; Hochbruck and Ostermann 2010, Acta Numerica 19),
//! of order 2 in that state alone. There growth is bounded: a tangent that grows by more than e in a step says nothing of
//! where the step leads, so b s dt counts as 1 at most. Potentials and all other states that are not gates move first; gates follow with
//! the new potentials, as if they were known at the middle of the next step (Hines 1984); so do kinetic schemes, each as a whole (`kinetics.rs`).

use super::order::{Order, Pools};
use super::stages::Stages;
use super::{kinetics, noise};
use crate::hir::StateKind;
use crate::ode::{Graph, Node, NodeId, State, StateId, depends, derivative, linear};
use crate::step::{BinaryOp, UnaryOp};
use crate::units::Dim;

pub(super) fn step(stages: &mut Stages<'_>) {
    let late = |state: &State| state.kind == StateKind::Gate;
    Order { late, potential: advance, spread: noise::exponential, schemes: &kinetics::ORDER_5, pools: Pools::Free }
        .step(stages);
}

/// `x + n expm1(b s dt) / b`.
pub(super) fn advance(g: &mut Graph, state: StateId, rate: NodeId, dt: NodeId) -> NodeId {
    let x = g.add(Node::State(state));
    let (n, step) = peel(g, rate, state, dt);
    let (n, reach) = exponential(g, state, n, step);
    let change = g.binary(BinaryOp::Mul, n, reach);
    g.binary(BinaryOp::Add, x, change)
}

/// `(n, expm1(b s dt) / b)`, whose product is what a state moves by; `n` may be written in another way.
pub(super) fn exponential(g: &mut Graph, state: StateId, mut n: NodeId, step: NodeId) -> (NodeId, NodeId) {
    let reach = match derivative(g, n, state) {
        None => step,
        Some(b) if depends(g, b, state) => {
            let z = tangent(g, b, step, 1.0, true);
            let z = g.unary(UnaryOp::Nonzero, z);
            let e = g.unary(UnaryOp::Expm1, z);
            let quotient = g.binary(BinaryOp::Div, e, z);
            g.binary(BinaryOp::Mul, quotient, step)
        }
        Some(b) => {
            // `b` is needed anyway: with it, `a + b x` takes fewer operations than the equation as it was written.
            if let Ok(row) = linear::row(g, n, &|s| s == state) {
                let x = g.add(Node::State(state));
                let along = g.binary(BinaryOp::Mul, b, x);
                n = row.constant.map_or(along, |a| g.binary(BinaryOp::Add, a, along));
            }
            let b = if g.constant(b).is_some_and(|b| b != 0.0) { b } else { g.unary(UnaryOp::Nonzero, b) };
            let z = g.binary(BinaryOp::Mul, b, step);
            let e = g.unary(UnaryOp::Expm1, z);
            g.binary(BinaryOp::Div, e, b)
        }
    };
    (n, reach)
}

/// `b step`, but not above `most`; where the tangent is one of a curve (it `bends`) and vertical, 0, which makes Euler's step.
pub(super) fn tangent(g: &mut Graph, b: NodeId, step: NodeId, most: f64, bends: bool) -> NodeId {
    let mut z = g.binary(BinaryOp::Mul, b, step);
    if bends {
        z = g.unary(UnaryOp::Finite, z);
    }
    let most = g.number(most, Dim::ONE);
    g.binary(BinaryOp::Min, z, most)
}

/// `(n, s dt)` for `rate = n s`, with all in `s` that does not depend on the state and only multiplies or divides.
pub(super) fn peel(g: &mut Graph, rate: NodeId, state: StateId, dt: NodeId) -> (NodeId, NodeId) {
    let (n, scale) = factors(g, rate, state);
    let step = match scale {
        None => dt,
        Some(s) => g.binary(BinaryOp::Mul, s, dt),
    };
    (n, step)
}

fn factors(g: &mut Graph, rate: NodeId, state: StateId) -> (NodeId, Option<NodeId>) {
    match g.node(rate) {
        Node::Binary(BinaryOp::Mul, a, b) => {
            let (inner, factor) = match (depends(g, a, state), depends(g, b, state)) {
                (true, false) => (a, b),
                (false, true) => (b, a),
                (true, true) | (false, false) => return (rate, None),
            };
            let (n, s) = factors(g, inner, state);
            let s = match s {
                None => factor,
                Some(s) => g.binary(BinaryOp::Mul, s, factor),
            };
            (n, Some(s))
        }
        Node::Binary(BinaryOp::Div, a, b) if depends(g, a, state) && !depends(g, b, state) => {
            let (n, s) = factors(g, a, state);
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
