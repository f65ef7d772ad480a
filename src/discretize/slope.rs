//! How an expression depends on a state.

use crate::ode::{Graph, Node, NodeId, StateId};
use crate::step::{BinaryOp, UnaryOp};
use crate::units::Dim;

/// Does `root` read the state?
pub(super) fn depends(g: &Graph, root: NodeId, state: StateId) -> bool {
    g.reachable([root]).into_iter().any(|n| g.node(n) == Node::State(state))
}

/// The slope of `root` in the state, where nonlinear functions of it (rate functions, powers, conditions) count as
/// constant; `None` if it is zero. For expressions linear in the state this is the derivative. (A conductance that depends
/// on the voltage is a constant here: its current has the slope of an ohmic one.)
pub(super) fn slope(g: &mut Graph, root: NodeId, state: StateId) -> Option<NodeId> {
    if !depends(g, root, state) {
        return None;
    }
    match g.node(root) {
        Node::State(_) => Some(g.number(1.0, Dim::ONE)),
        Node::Unary(UnaryOp::Neg, a) => {
            let a = slope(g, a, state)?;
            Some(negate(g, a))
        }
        Node::Binary(op @ (BinaryOp::Add | BinaryOp::Sub), a, b) => match (slope(g, a, state), slope(g, b, state)) {
            (None, None) => None,
            (Some(a), None) => Some(a),
            (None, Some(b)) if op == BinaryOp::Add => Some(b),
            (None, Some(b)) => Some(negate(g, b)),
            (Some(a), Some(b)) => Some(g.binary(op, a, b)),
        },
        Node::Binary(BinaryOp::Mul, a, b) => match (slope(g, a, state), slope(g, b, state)) {
            (None, None) => None,
            (Some(x), None) => Some(times(g, x, b)),
            (None, Some(y)) => Some(times(g, y, a)),
            (Some(x), Some(y)) => {
                let (left, right) = (times(g, x, b), times(g, y, a));
                Some(g.binary(BinaryOp::Add, left, right))
            }
        },
        Node::Binary(BinaryOp::Div, a, b) => {
            let a = slope(g, a, state)?;
            Some(g.binary(BinaryOp::Div, a, b))
        }
        Node::Select(c, a, b) => match (slope(g, a, state), slope(g, b, state)) {
            (None, None) => None,
            (x, y) => {
                let zero = g.number(0.0, Dim::ONE);
                Some(g.select(c, x.unwrap_or(zero), y.unwrap_or(zero)))
            }
        },
        _ => None,
    }
}

fn negate(g: &mut Graph, a: NodeId) -> NodeId {
    match g.constant(a) {
        Some(x) => g.number(-x, Dim::ONE),
        None => g.unary(UnaryOp::Neg, a),
    }
}

fn times(g: &mut Graph, slope: NodeId, factor: NodeId) -> NodeId {
    match g.constant(slope) {
        Some(1.0) => factor,
        Some(-1.0) => negate_factor(g, factor),
        _ => g.binary(BinaryOp::Mul, slope, factor),
    }
}

fn negate_factor(g: &mut Graph, factor: NodeId) -> NodeId {
    match g.node(factor) {
        // Keeps the dimension of a number.
        Node::Const(bits, dim) => g.number(-f64::from_bits(bits), dim),
        _ => g.unary(UnaryOp::Neg, factor),
    }
}
