//! 0/0 of exponentials: `u / (e^u - 1)` in every spelling.
//!
//! In comes a product; out goes the same value with `linoid(u)` in place of every `e^u - 1`, if no pole is left then. Where u is a product with such
//! a difference in it, as `tanh(x)` is, that one is a factor like any other, and what is left of it goes the same way.
//! Where the result has exponentials that may become too large or too small by themselves, it is used near the place only.
//! Never true here: a parameter has a value; what is a multiple of what holds for all of them.

use super::Nodes;
use super::product::{Base, Line, Product};
use crate::ode::{Node, NodeId};
use crate::operators::{BinaryOp, UnaryOp};

/// The same value without the 0/0, if the node has one that can be removed.
pub fn regular(nodes: &mut Nodes<'_>, id: NodeId) -> Option<NodeId> {
    let mut product = nodes.product(id);
    let mut found = product.cancelled;
    while let Some(next) = without_pole(nodes, &product) {
        product = next;
        found = true;
    }
    let dim = nodes.dim(id)?;
    if !found {
        return None;
    }
    let better = nodes.emit(&product, dim);
    Some(as_far_as_it_goes(nodes, &product, better, id))
}

/// How large an exponent may be in what stands for a 0/0. Further away no factor is 0, and what is written is better: two exponentials that
/// are divided by each other there, `sinh(x) / cosh(2 x)`, are neither too large nor too small by themselves.
const FAR: f64 = 16.0;

/// `if exponents are small then regular else original`, where the regular product has exponentials of its own.
pub(super) fn as_far_as_it_goes(nodes: &mut Nodes<'_>, product: &Product, regular: NodeId, original: NodeId) -> NodeId {
    let known = nodes.graph().reachable([original]);
    let inside = nodes.graph().reachable([regular]).into_iter().filter(|id| !known.contains(id));
    let inside: Vec<NodeId> = inside.collect();
    let exponent = |id: NodeId| match nodes.graph().node(id) {
        Node::Unary(UnaryOp::Exp, u) => Some(u),
        _ => None,
    };
    let factor = |(base, _): &(Base, i32)| match base {
        Base::Exp(u) => Some(*u),
        Base::Atom(_) | Base::Sum(_) | Base::Difference(_) => None,
    };
    let all = product.factors.iter().filter_map(factor).chain(inside.into_iter().filter_map(exponent));
    let mut exponents: Vec<NodeId> = all.filter(|u| nodes.varies(*u)).collect();
    exponents.sort_unstable();
    exponents.dedup();
    let far = nodes.number(FAR);
    let near = exponents.into_iter().map(|u| {
        let size = nodes.unary(UnaryOp::Abs, u);
        nodes.binary(BinaryOp::Lt, size, far)
    });
    let near: Vec<NodeId> = near.collect();
    match near.into_iter().reduce(|a, b| nodes.binary(BinaryOp::And, a, b)) {
        Some(near) => nodes.add(Node::Select(near, regular, original)),
        None => regular,
    }
}

/// The product with the differences of one direction as powers of it, if their pole is removed by that.
fn without_pole(nodes: &mut Nodes<'_>, p: &Product) -> Option<Product> {
    let lines: Vec<Line> = p.factors.iter().filter_map(|(base, _)| difference(base)).cloned().collect();
    lines.iter().find_map(|line| without(nodes, p, line))
}

/// The same along one of these differences.
fn without(nodes: &mut Nodes<'_>, p: &Product, line: &Line) -> Option<Product> {
    let is_sum = |base: &Base| matches!(base, Base::Sum(sum) if sum.primitive.is(&line.primitive));
    let has_sum = nodes.product(line.node).factors.iter().any(|(base, _)| is_sum(base));
    if has_sum { in_sum(nodes, p, line) } else { in_factors(nodes, p, line) }
}

fn difference(base: &Base) -> Option<&Line> {
    match base {
        Base::Difference(line) => Some(line),
        Base::Atom(_) | Base::Sum(_) | Base::Exp(_) => None,
    }
}

/// `e^u - 1` for the `u` that are multiples of one sum.
fn in_sum(nodes: &mut Nodes<'_>, p: &Product, line: &Line) -> Option<Product> {
    let along = |base: &Base| match base {
        Base::Sum(other) | Base::Difference(other) => other.primitive.is(&line.primitive),
        Base::Atom(_) | Base::Exp(_) => false,
    };
    let (own, others): (Vec<_>, Vec<_>) = p.factors.iter().cloned().partition(|(base, _)| along(base));
    let mut rest = Product { number: p.number, factors: others, cancelled: false };
    let mut order: i32 = own.iter().map(|(_, power)| power).sum();
    if own.iter().all(|(_, power)| *power > 0) {
        return None;
    }
    // Terms that only together are a multiple of the sum.
    let mut whole = Product::number(1.0);
    while order < 0 {
        let (at, quotient) = rest.factors.iter().enumerate().find_map(|(at, (base, power))| {
            let node = match base {
                Base::Atom(n) => *n,
                Base::Sum(line) => line.node,
                Base::Difference(_) | Base::Exp(_) => return None,
            };
            (*power > 0).then(|| divided(nodes, node, line)).flatten().map(|quotient| (at, quotient))
        })?;
        rest.factors[at].1 -= 1;
        rest.factors.retain(|(_, power)| *power != 0);
        let quotient = nodes.product(quotient);
        rest.push_all(nodes, quotient, 1);
        whole.push(nodes, Base::Sum(line.clone()), 1);
        order += 1;
    }
    for (base, power) in own {
        match base {
            Base::Difference(u) => {
                let linoid = nodes.unary(UnaryOp::Linoid, u.node);
                rest.push(nodes, Base::Atom(linoid), -power);
                whole.push(nodes, Base::Sum(u), power);
            }
            Base::Atom(_) | Base::Sum(_) | Base::Exp(_) => whole.push(nodes, base, power),
        }
    }
    rest.push_all(nodes, whole, 1);
    Some(rest)
}

/// The node divided by a sum, if all its terms are multiples of the sum: another node.
fn divided(nodes: &mut Nodes<'_>, node: NodeId, by: &Line) -> Option<NodeId> {
    if let Node::Binary(op @ (BinaryOp::Add | BinaryOp::Sub), a, b) = nodes.graph().node(node) {
        let (a, b) = (divided(nodes, a, by)?, divided(nodes, b, by)?);
        return Some(nodes.binary(op, a, b));
    }
    let mut p = nodes.product(node);
    let (at, factor) = p.factors.iter().enumerate().find_map(|(at, (base, power))| match base {
        Base::Sum(line) | Base::Difference(line) if *power > 0 && line.primitive.is(&by.primitive) => {
            Some((at, base.clone()))
        }
        Base::Atom(_) | Base::Sum(_) | Base::Difference(_) | Base::Exp(_) => None,
    })?;
    p.factors[at].1 -= 1;
    p.factors.retain(|(_, power)| *power != 0);
    if let Base::Difference(u) = factor {
        // (e^u - 1) / u = 1 / linoid(u)
        let linoid = nodes.unary(UnaryOp::Linoid, u.node);
        p.push(nodes, Base::Atom(linoid), -1);
        p.push(nodes, Base::Sum(u), 1);
        p.push(nodes, Base::Sum(by.clone()), -1);
    } else {
        p.push(nodes, factor, 1);
        p.push(nodes, Base::Sum(by.clone()), -1);
    }
    let dim = nodes.dim(node)?.over(nodes.dim(by.node)?);
    Some(nodes.emit(&p, dim))
}

/// `e^u - 1` for a `u` that is a product: its factors are then factors like any other.
fn in_factors(nodes: &mut Nodes<'_>, p: &Product, line: &Line) -> Option<Product> {
    let vanishing = vanishing(nodes, line);
    let is_one = |base: &Base| vanishing.iter().any(|v| v.is(base));
    let own = |nodes: &mut Nodes<'_>, base: &Base| !is_one(base) && is_along(nodes, base, &vanishing);
    let (mut waiting, others): (Vec<_>, Vec<_>) = p.factors.iter().cloned().partition(|(base, _)| own(nodes, base));
    if !waiting.iter().any(|(_, power)| *power < 0) && !others.iter().any(|(base, power)| *power < 0 && is_one(base)) {
        return None;
    }
    let mut whole = Product { number: p.number, factors: others, cancelled: false };
    while let Some((base, power)) = waiting.pop() {
        match difference(&base) {
            Some(u) if own(nodes, &base) => {
                let factors = nodes.product(u.node);
                let linoid = nodes.unary(UnaryOp::Linoid, u.node);
                whole.push(nodes, Base::Atom(linoid), -power);
                whole.number *= factors.number.powi(power);
                waiting.extend(factors.factors.into_iter().map(|(base, p)| (base, p.saturating_mul(power))));
            }
            Some(_) | None => whole.push(nodes, base, power),
        }
    }
    // What is left of it is 0/0 in turn, or a pole.
    for base in &vanishing {
        if whole.factors.iter().any(|(left, power)| *power < 0 && left.is(base)) {
            whole = without(nodes, &whole, difference(base)?)?;
        }
    }
    Some(whole)
}

/// Does a factor vanish with one of these, if not for another reason?
fn is_along(nodes: &mut Nodes<'_>, base: &Base, vanishing: &[Base]) -> bool {
    let inside = difference(base).map(|u| nodes.product(u.node).factors).unwrap_or_default();
    vanishing.iter().any(|v| v.is(base))
        || inside.iter().any(|(base, power)| *power > 0 && is_along(nodes, base, vanishing))
}

/// The factors whose zeros make a product vanish: those that vary, or all if none does.
fn vanishing(nodes: &mut Nodes<'_>, line: &Line) -> Vec<Base> {
    let factors = nodes.product(line.node).factors;
    let vanish = |(base, power): &(Base, i32)| *power > 0 && !matches!(base, Base::Exp(_));
    let above: Vec<Base> = factors.into_iter().filter(vanish).map(|(base, _)| base).collect();
    let varying: Vec<Base> = above.iter().filter(|base| base.varies(nodes)).cloned().collect();
    if varying.is_empty() { above } else { varying }
}
