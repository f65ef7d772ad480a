//! Guards: `if abs(x) < 1e-6 then 1 - x / 2 else x / (exp(x) - 1)`.
//!
//! In comes a choice one side of which was 0/0 and no longer is; out goes that side alone, if the condition holds only near that place
//! and the other side is the same function there.
//! Never true here: what is near is told by a parameter, which may become large; or two sides that differ are taken for one.

use super::Nodes;
use super::limits::factors;
use super::product::{Base, Line};
use crate::ode::{Node, NodeId};
use crate::operators::{BinaryOp, UnaryOp};

/// How far the two sides of a guard may be apart, relatively, and still mean one function.
const GUARD_WITHIN: f64 = 1e-6;

/// Differences of exponentials that may be larger than this tell nothing of what is in the exponent.
const SMALL: f64 = 0.1;

/// How far beside its place a guard is looked at that holds at this place only.
const SMALLEST: f64 = 1e-9;

/// Where a sum is near 0.
struct Near {
    sum: NodeId,
    /// How far it may be from 0.
    reach: f64,
}

/// The regular side of `if c then a else b`, if `c` asks whether a sum is (nearly) 0 and the other side is the same function there.
pub fn without_guard(nodes: &mut Nodes<'_>, c: NodeId, a: NodeId, b: NodeId) -> Option<NodeId> {
    // `if c then a else if d then a else b`
    let (c, b) = match nodes.graph().node(b) {
        Node::Select(d, same, b) if same == a => (nodes.binary(BinaryOp::Or, c, d), b),
        _ => (c, b),
    };
    let (near, inside, outside) = match near(nodes, c, true) {
        Some(near) => (near, a, b),
        None => (near(nodes, c, false)?, b, a),
    };
    let x = nodes.line(near.sum);
    let ratio = nodes.binary(BinaryOp::Div, outside, inside);
    let ratio = factors(nodes, ratio, &x)?;
    let same =
        ratio.distance_from_one(near.reach)? <= GUARD_WITHIN && is_same(nodes, [inside, outside], &x, near.reach);
    same.then_some(outside)
}

/// Are both sides one function at the place, beside it and as far as the guard reaches? Where something else is 0/0 still, they are not.
fn is_same(nodes: &mut Nodes<'_>, [inside, outside]: [NodeId; 2], x: &Line, reach: f64) -> bool {
    let reach = if reach > 0.0 { reach } else { SMALLEST };
    let parts = [0.0, 1e-12, 1e-9, 1e-6, 1e-3, 1.0];
    parts.into_iter().flat_map(|part| [part * reach, -part * reach]).all(|place| {
        nodes.beside([inside, outside], x, place).is_some_and(|(_, [a, b])| (a - b).abs() <= GUARD_WITHIN * a.abs())
    })
}

/// What is near 0 where a condition is true, or where it is not.
fn near(nodes: &mut Nodes<'_>, condition: NodeId, truth: bool) -> Option<Near> {
    match nodes.graph().node(condition) {
        Node::Unary(UnaryOp::Not, a) => near(nodes, a, !truth),
        Node::Binary(op @ (BinaryOp::And | BinaryOp::Or), a, b) => {
            let sides = [near(nodes, a, truth), near(nodes, b, truth)];
            match ((op == BinaryOp::And) == truth, sides) {
                (true, [None, None]) => between(nodes, a, b, truth),
                (true, [a, b]) => a.or(b),
                (false, [Some(a), Some(b)]) if a.sum == b.sum => Some(Near { reach: a.reach.max(b.reach), ..a }),
                (false, _) => None,
            }
        }
        Node::Binary(op @ (BinaryOp::Eq | BinaryOp::Ne), a, b) if (op == BinaryOp::Eq) == truth => {
            let zero = nodes.constant(b) == Some(0.0);
            Some(Near { sum: if zero { a } else { nodes.binary(BinaryOp::Sub, a, b) }, reach: 0.0 })
        }
        _ => {
            let (small, large) = ordered(nodes, condition, truth)?;
            let limit = nodes.constant(large).filter(|limit| *limit >= 0.0)?;
            small_where(nodes, small, limit)
        }
    }
}

/// The sides of a comparison, the one that is not the larger first.
fn ordered(nodes: &Nodes<'_>, condition: NodeId, truth: bool) -> Option<(NodeId, NodeId)> {
    let Node::Binary(op, a, b) = nodes.graph().node(condition) else { return None };
    let upwards = match op {
        BinaryOp::Lt | BinaryOp::Le => true,
        BinaryOp::Gt | BinaryOp::Ge => false,
        BinaryOp::Add
        | BinaryOp::Sub
        | BinaryOp::Mul
        | BinaryOp::Div
        | BinaryOp::Pow
        | BinaryOp::Min
        | BinaryOp::Max
        | BinaryOp::Eq
        | BinaryOp::Ne
        | BinaryOp::And
        | BinaryOp::Or
        | BinaryOp::Poisson => return None,
    };
    Some(if upwards == truth { (a, b) } else { (b, a) })
}

/// `-1e-6 < x` and `x < 1e-6`
fn between(nodes: &mut Nodes<'_>, a: NodeId, b: NodeId, truth: bool) -> Option<Near> {
    let (a, b) = (ordered(nodes, a, truth)?, ordered(nodes, b, truth)?);
    let (below, above) = if nodes.constant(a.0).is_some() { (a, b) } else { (b, a) };
    let (least, most) = (nodes.constant(below.0)?, nodes.constant(above.1)?);
    (below.1 == above.0 && least <= most).then(|| Near { sum: above.0, reach: least.abs().max(most.abs()) })
}

/// What is near 0 where `|x|`, `x * x` or `|e^x - 1|` is not above a limit.
fn small_where(nodes: &mut Nodes<'_>, small: NodeId, limit: f64) -> Option<Near> {
    match nodes.graph().node(small) {
        Node::Unary(UnaryOp::Abs, inside) => {
            let p = nodes.product(inside);
            let [(Base::Difference(line), 1)] = &p.factors[..] else {
                return Some(Near { sum: inside, reach: limit });
            };
            // |e^u - 1| is at least |u| (1 - |u| / 2).
            let most = limit / p.number.abs();
            (most <= SMALL).then_some(Near { sum: line.node, reach: most / (1.0 - most) })
        }
        Node::Binary(BinaryOp::Mul, a, b) if a == b => {
            let root = limit.sqrt();
            let size = nodes.unary(UnaryOp::Abs, a);
            small_where(nodes, size, root)
        }
        Node::Binary(BinaryOp::Pow, a, n) => {
            let n = nodes.constant(n).filter(|n| *n > 0.0 && n % 2.0 == 0.0)?;
            let size = nodes.unary(UnaryOp::Abs, a);
            small_where(nodes, size, limit.powf(1.0 / n))
        }
        _ => None,
    }
}
