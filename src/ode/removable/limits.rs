//! 0/0 of any functions of one sum, such as `sin(x) / x`, `ln(1 + x) / x` or `1 / (1 - exp(-x)) - 1 / x`.
//!
//! In come nodes, operands first; out goes for one that has a limit where it is 0/0 another that is a polynomial near that place.
//! Never true here: a pole is taken for a limit, or a polynomial reaches so far that it is off by more than rounding.

use super::Nodes;
use super::exponentials::as_far_as_it_goes;
use super::product::{Base, Line, Product, along};
use super::series::{FEW, Series, TERMS, series};
use crate::ode::{Node, NodeId};
use crate::operators::{BinaryOp, UnaryOp};
use crate::units::Dim;
use rustc_hash::FxHashMap as HashMap;

/// Divisors of more nodes than this are not looked into.
const MOST_NODES: usize = 100;

/// The sums at whose zeros a node has a pole, for every node that has one.
#[derive(Default)]
pub struct Poles(HashMap<NodeId, Vec<Line>>);

impl Poles {
    /// The same value without a 0/0 at any of its places; the poles that it has are remembered.
    pub fn without(&mut self, nodes: &mut Nodes<'_>, mut id: NodeId) -> NodeId {
        while let Some(better) = self.regular(nodes, id) {
            id = better;
        }
        id
    }

    /// The same value without the 0/0 at one place, if a node has one; otherwise its poles are remembered.
    fn regular(&mut self, nodes: &mut Nodes<'_>, id: NodeId) -> Option<NodeId> {
        let Node::Binary(op @ (BinaryOp::Add | BinaryOp::Sub | BinaryOp::Mul | BinaryOp::Div), a, b) =
            nodes.graph().node(id)
        else {
            return None;
        };
        let mut places: Vec<Line> = Vec::new();
        let known = [self.0.get(&a), self.0.get(&b)].into_iter().flatten().flatten().cloned().collect();
        let zeros = if op == BinaryOp::Div { zeros(nodes, id, b) } else { Vec::new() };
        for line in [known, zeros].concat() {
            if !places.iter().any(|p| p.is_multiple(&line)) {
                places.push(line);
            }
        }
        for place in &places {
            let found = match op {
                BinaryOp::Mul | BinaryOp::Div => of_product(nodes, id, place),
                _ => of_sum(nodes, id, place),
            };
            if found.is_some() {
                return found;
            }
        }
        if !places.is_empty() {
            self.0.insert(id, places);
        }
        None
    }
}

/// The sums with which the divisor of a quotient vanishes.
fn zeros(nodes: &mut Nodes<'_>, quotient: NodeId, divisor: NodeId) -> Vec<Line> {
    if !nodes.varies(divisor) {
        return Vec::new();
    }
    let inside = nodes.graph().reachable([quotient]);
    if inside.len() > MOST_NODES {
        return Vec::new();
    }
    let factors: Vec<Base> =
        nodes.product(divisor).factors.into_iter().filter(|(_, power)| *power > 0).map(|(base, _)| base).collect();
    let mut found: Vec<Line> = Vec::new();
    for node in inside {
        if !nodes.varies(node) || !is_straight(nodes, node) {
            continue;
        }
        let line = nodes.line(node);
        if !found.iter().any(|known| known.is_multiple(&line)) && factors.iter().any(|f| vanishes(nodes, f, &line)) {
            found.push(line);
        }
    }
    found
}

/// Is the factor 0 where the sum is?
fn vanishes(nodes: &mut Nodes<'_>, factor: &Base, x: &Line) -> bool {
    if along(nodes, factor, x).is_some() {
        return true;
    }
    let node = node_of(nodes, factor);
    series(nodes, node, x, FEW).is_some_and(|s| s.order > 0)
}

/// Is it a sum of numbers and parameters times things that vary, at least one of them no function?
fn is_straight(nodes: &mut Nodes<'_>, node: NodeId) -> bool {
    let poly = nodes.poly(node);
    let mut leaf = false;
    let linear = poly.terms().all(|(monomial, _)| {
        let varying: Vec<_> = monomial.iter().filter(|(atom, _)| nodes.varies(*atom)).collect();
        match varying[..] {
            [] => true,
            [(atom, power)] => {
                leaf |= nodes.graph().operands(*atom).is_empty();
                *power == 1
            }
            _ => false,
        }
    });
    linear && leaf
}

/// A product in which factors vanish at one place and others have poles there.
fn of_product(nodes: &mut Nodes<'_>, id: NodeId, x: &Line) -> Option<NodeId> {
    let p = nodes.product(id);
    // With few terms: which factors vanish or have a pole, and does a quotient of them have a limit?
    let (mut part, mut rest) = (Vec::new(), Product::number(p.number));
    let (mut order, mut pole) = (0, false);
    for (base, power) in &p.factors {
        let node = match along(nodes, base, x) {
            Some(ratio) => {
                rest.number *= ratio.number.powi(*power);
                rest.push_monomial(nodes, &ratio.monomial, *power);
                x.node
            }
            None => node_of(nodes, base),
        };
        match series(nodes, node, x, FEW).filter(|s| s.order != 0) {
            Some(found) => {
                order += found.order * power;
                pole |= found.order * power < 0;
                part.push((node, *power));
            }
            None => rest.push(nodes, base.clone(), *power),
        }
    }
    if !pole || order < 0 {
        return None;
    }
    let mut whole: Option<Series> = None;
    let mut quotient = Product::number(1.0);
    let mut dim = Dim::ONE;
    for (node, power) in part {
        let raised = series(nodes, node, x, TERMS)?.power(power)?;
        whole = Some(whole.map_or(raised.clone(), |w| w.times(&raised)));
        dim = dim.times(nodes.dim(node)?.power(power));
        quotient.push(nodes, Base::Atom(node), power);
    }
    let quotient = nodes.emit(&quotient, dim);
    let safe = near(nodes, &whole?, x, quotient)?;
    rest.push(nodes, Base::Atom(safe), 1);
    let dim = nodes.dim(id)?;
    let better = nodes.emit(&rest, dim);
    Some(as_far_as_it_goes(nodes, &rest, better, id))
}

/// A sum of terms that have poles at one place, and has a limit itself.
fn of_sum(nodes: &mut Nodes<'_>, id: NodeId, x: &Line) -> Option<NodeId> {
    let regular = series(nodes, id, x, FEW)?.order >= 0;
    let whole = if regular { series(nodes, id, x, TERMS) } else { None };
    near(nodes, &whole?, x, id)
}

/// The series of a node all of whose factors have one.
pub fn factors(nodes: &mut Nodes<'_>, id: NodeId, x: &Line) -> Option<Series> {
    let p = nodes.product(id);
    let mut whole = Series::number(p.number, TERMS)?;
    for (base, power) in &p.factors {
        let node = node_of(nodes, base);
        whole = whole.times(&series(nodes, node, x, TERMS)?.power(*power)?);
    }
    Some(whole)
}

/// A node for one factor.
fn node_of(nodes: &mut Nodes<'_>, base: &Base) -> NodeId {
    match base {
        Base::Atom(n) => *n,
        Base::Sum(line) => line.node,
        Base::Difference(_) | Base::Exp(_) => nodes.emit(&Product::of(base.clone()), Dim::ONE),
    }
}

/// How far a polynomial may be off its function, as a part of its largest term: what cancels in the function may be rounded by as much.
const OFF: f64 = 1e-9;

/// Is a polynomial in parts of a radius its function, on both sides and not only near the middle?
fn fits(nodes: &mut Nodes<'_>, original: NodeId, x: &Line, radius: f64, coefficients: &[f64]) -> bool {
    let most = coefficients.iter().fold(0.0f64, |m, c| m.max(c.abs()));
    [-1.0, -0.5, 0.5, 1.0].into_iter().all(|part| {
        let Some((place, [exact])) = nodes.beside([original], x, part * radius) else { return true };
        let sum = coefficients.iter().rev().fold(0.0, |sum, c| sum * place / radius + c);
        (sum - exact).abs() <= OFF * most
    })
}

/// `if |x| < radius then polynomial else original`
fn near(nodes: &mut Nodes<'_>, whole: &Series, x: &Line, original: NodeId) -> Option<NodeId> {
    let (radius, coefficients) = whole.polynomial(|radius, known| fits(nodes, original, x, radius, known))?;
    let (dim, dim_x) = (nodes.dim(original)?, nodes.dim(x.node)?);
    let border = nodes.add(Node::Const(radius.to_bits(), dim_x));
    let part = nodes.binary(BinaryOp::Div, x.node, border);
    let mut sum = None;
    for c in coefficients.iter().rev() {
        let c = nodes.add(Node::Const(c.to_bits(), dim));
        sum = Some(match sum {
            None => c,
            Some(sum) => {
                let product = nodes.binary(BinaryOp::Mul, sum, part);
                nodes.binary(BinaryOp::Add, product, c)
            }
        });
    }
    let (size, one) = (nodes.unary(UnaryOp::Abs, part), nodes.number(1.0));
    let close = nodes.binary(BinaryOp::Lt, size, one);
    Some(nodes.add(Node::Select(close, sum?, original)))
}
