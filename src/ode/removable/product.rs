//! Expressions as products of powers.
//!
//! In comes a node; out goes `number * product of factor^power`, in which differences of exponentials stand as `e^u - 1`, and sums
//! and exponents in a form that shows which are multiples of each other.
//! Never true here: a product has another value than its node, but for rounding.

use super::Nodes;
use super::poly::{Content, MOST_POWER, Monomial, Poly, times};
use crate::ode::{Node, NodeId};
use crate::operators::{BinaryOp, UnaryOp};
use std::rc::Rc;

/// Products of more factors than this are not looked into.
const MOST_FACTORS: usize = 48;

/// What is multiplied.
#[derive(Debug, Clone)]
pub enum Base {
    /// Anything.
    Atom(NodeId),
    /// A sum.
    Sum(Line),
    /// `e^u - 1`.
    Difference(Line),
    /// `e^u`
    Exp(NodeId),
}

/// A node that is `content * primitive`.
#[derive(Debug, Clone)]
pub struct Line {
    /// The node.
    pub node: NodeId,
    /// Its common factor.
    pub content: Content,
    /// The rest; 1 if the node is a product of atoms.
    pub primitive: Rc<Poly>,
}

/// `number * product of base^power`
#[derive(Debug, Clone)]
pub struct Product {
    /// The number.
    pub number: f64,
    /// The powers, not 0.
    pub factors: Vec<(Base, i32)>,
    /// Has something that varies been divided by itself?
    pub cancelled: bool,
}

impl Product {
    /// A number.
    pub fn number(number: f64) -> Product {
        Product { number, factors: Vec::new(), cancelled: false }
    }

    /// One power.
    pub fn of(base: Base) -> Product {
        Product { number: 1.0, factors: vec![(base, 1)], cancelled: false }
    }

    /// `self * base^power`
    pub fn push(&mut self, nodes: &Nodes<'_>, base: Base, power: i32) {
        if power == 0 {
            return;
        }
        let found = self.factors.iter().position(|(known, _)| known.is(&base));
        let Some(at) = found else {
            self.factors.push((base, power));
            return;
        };
        // Two multiples of one sum: the other is so many times the known one.
        let ratio = match (&self.factors[at].0, &base) {
            (Base::Sum(known), Base::Sum(other)) => Some((
                other.content.number / known.content.number,
                times(&other.content.monomial, &known.content.monomial, -1),
            )),
            (_, _) => None,
        };
        let opposite = self.factors[at].1.signum() != power.signum();
        self.cancelled |= opposite && base.varies(nodes);
        self.factors[at].1 = self.factors[at].1.saturating_add(power);
        if self.factors[at].1 == 0 {
            self.factors.remove(at);
        }
        if let Some((number, monomial)) = ratio {
            self.number *= number.powi(power);
            self.push_monomial(nodes, &monomial, power);
        }
    }

    /// `self * monomial^power`
    pub fn push_monomial(&mut self, nodes: &Nodes<'_>, monomial: &Monomial, power: i32) {
        for &(atom, p) in monomial {
            self.push(nodes, nodes.factor(atom), p.saturating_mul(power));
        }
    }

    /// `self * other^power`
    pub fn push_all(&mut self, nodes: &Nodes<'_>, other: Product, power: i32) {
        self.number *= other.number.powi(power);
        self.cancelled |= other.cancelled;
        for (base, p) in other.factors {
            self.push(nodes, base, p.saturating_mul(power));
        }
    }
}

impl Base {
    /// The same, or a multiple that differs by a factor without sums?
    pub fn is(&self, other: &Base) -> bool {
        match (self, other) {
            (Base::Atom(a), Base::Atom(b)) | (Base::Exp(a), Base::Exp(b)) => a == b,
            (Base::Sum(a), Base::Sum(b)) => a.primitive.is(&b.primitive),
            (Base::Difference(a), Base::Difference(b)) => a.is(b),
            (Base::Atom(_) | Base::Sum(_) | Base::Difference(_) | Base::Exp(_), _) => false,
        }
    }

    /// Does it differ from cell to cell or from time to time?
    pub fn varies(&self, nodes: &Nodes<'_>) -> bool {
        match self {
            Base::Atom(n) | Base::Exp(n) => nodes.varies(*n),
            Base::Sum(line) | Base::Difference(line) => nodes.varies(line.node),
        }
    }
}

impl Line {
    /// Is it a product of atoms?
    pub fn is_monomial(&self) -> bool {
        self.primitive.constant().is_some()
    }

    fn is(&self, other: &Line) -> bool {
        let (a, b) = (self.content.number, other.content.number);
        (a - b).abs() <= 16.0 * f64::EPSILON * a.abs().max(b.abs()) && self.is_multiple(other)
    }

    /// Does it differ from another by a number only?
    pub fn is_multiple(&self, other: &Line) -> bool {
        self.content.monomial == other.content.monomial && self.primitive.is(&other.primitive)
    }
}

/// How many times a sum a factor is, if that does not vary.
pub fn along(nodes: &Nodes<'_>, factor: &Base, x: &Line) -> Option<Content> {
    let own = match factor {
        Base::Sum(line) if line.primitive.is(&x.primitive) => line.content.clone(),
        Base::Atom(n) if x.is_monomial() => Content { number: 1.0, monomial: vec![(*n, 1)] },
        Base::Atom(_) | Base::Sum(_) | Base::Difference(_) | Base::Exp(_) => return None,
    };
    let monomial = times(&own.monomial, &x.content.monomial, -1);
    let varies = monomial.iter().any(|(atom, _)| nodes.varies(*atom));
    (!varies).then(|| Content { number: own.number / x.content.number, monomial })
}

/// The product that a node is.
pub fn product(nodes: &mut Nodes<'_>, id: NodeId) -> Product {
    let atom = Product::of(Base::Atom(id));
    if let Some(c) = nodes.constant(id) {
        return if c != 0.0 && c.is_finite() { Product::number(c) } else { atom };
    }
    let zero = |nodes: &Nodes<'_>, n: NodeId| nodes.constant(n) == Some(0.0);
    let found = match nodes.graph().node(id) {
        Node::Binary(BinaryOp::Mul | BinaryOp::Div, a, b) if zero(nodes, a) || zero(nodes, b) => None,
        Node::Unary(UnaryOp::Neg, a) => {
            let mut inner = nodes.product(a);
            inner.number = -inner.number;
            Some(inner)
        }
        Node::Unary(UnaryOp::Exp, u) => Some(Product::of(Base::Exp(u))),
        // sinh x = e^-x (e^2x - 1) / 2, tanh x = (e^2x - 1) / (e^2x + 1)
        Node::Unary(UnaryOp::Sinh, x) => {
            let minus = nodes.unary(UnaryOp::Neg, x);
            let twice = difference(nodes, x, 2.0);
            let mut found = Product::number(0.5);
            found.push(nodes, twice, 1);
            found.push(nodes, Base::Exp(minus), 1);
            Some(found)
        }
        Node::Unary(UnaryOp::Tanh, x) => {
            let twice = difference(nodes, x, 2.0);
            let Base::Difference(Line { node, .. }) = twice else { return atom };
            let power = nodes.unary(UnaryOp::Exp, node);
            let one = nodes.number(1.0);
            let below = nodes.binary(BinaryOp::Add, power, one);
            let mut found = Product::of(twice);
            found.push(nodes, Base::Atom(below), -1);
            Some(found)
        }
        Node::Binary(BinaryOp::Mul, a, b) => Some(joined(nodes, a, b, 1)),
        Node::Binary(BinaryOp::Div, a, b) => Some(joined(nodes, a, b, -1)),
        Node::Binary(BinaryOp::Pow, a, n) => power(nodes, a, n),
        Node::Binary(BinaryOp::Add, a, b) => Some(sum(nodes, id, a, b, 1.0)),
        Node::Binary(BinaryOp::Sub, a, b) => Some(sum(nodes, id, a, b, -1.0)),
        _ => None,
    };
    let plain = |p: &Product| p.factors.len() <= MOST_FACTORS && p.factors.iter().all(|f| f.1.abs() <= MOST_POWER);
    found.filter(|p| plain(p) && p.number.is_finite() && p.number != 0.0).unwrap_or(atom)
}

fn joined(nodes: &mut Nodes<'_>, a: NodeId, b: NodeId, power: i32) -> Product {
    let mut whole = nodes.product(a);
    let other = nodes.product(b);
    whole.push_all(nodes, other, power);
    whole
}

/// A whole power of a product, or a number to a power that varies.
fn power(nodes: &mut Nodes<'_>, base: NodeId, exponent: NodeId) -> Option<Product> {
    if let Some(n) = nodes.constant(exponent) {
        let whole = n.fract() == 0.0 && n != 0.0 && n.abs() <= 16.0;
        return whole.then(|| {
            let inner = nodes.product(base);
            let mut found = Product::number(1.0);
            found.push_all(nodes, inner, n as i32);
            found
        });
    }
    let ln = nodes.constant(base).filter(|b| *b > 0.0 && *b != 1.0)?.ln();
    let factor = nodes.number(ln);
    let argument = nodes.binary(BinaryOp::Mul, exponent, factor);
    Some(Product::of(Base::Exp(argument)))
}

/// `e^(c x) - 1`
fn difference(nodes: &mut Nodes<'_>, x: NodeId, c: f64) -> Base {
    let factor = nodes.number(c);
    let scaled = nodes.binary(BinaryOp::Mul, x, factor);
    Base::Difference(nodes.line(scaled))
}

/// `a + sign b`: a difference of exponentials that vanishes somewhere, a sum with its common factor taken out, or an atom.
fn sum(nodes: &mut Nodes<'_>, id: NodeId, a: NodeId, b: NodeId, sign: f64) -> Product {
    let (left, mut right) = (nodes.product(a), nodes.product(b));
    right.number *= sign;
    match (nodes.constant(a), nodes.constant(b)) {
        (Some(0.0), _) => return right,
        (_, Some(0.0)) => return left,
        (_, _) => {}
    }
    if let Some(found) = of_exponentials(nodes, left, right) {
        return found;
    }
    if let Some([left, right]) = nodes.poly(id).two().map(|terms| terms.map(|term| expanded(nodes, term)))
        && let Some(found) = of_exponentials(nodes, left, right)
    {
        return found;
    }
    let line = nodes.line(id);
    if line.is_monomial() {
        let mut found = Product::number(line.content.number);
        found.push_monomial(nodes, &line.content.monomial, 1);
        return found;
    }
    // What varies in all terms alike stands outside.
    let common: Monomial = line.content.monomial.iter().copied().filter(|(atom, _)| nodes.varies(*atom)).collect();
    if common.is_empty() {
        return Product::of(Base::Sum(line));
    }
    let rest = nodes.poly(id).by(&Poly::monomial(1.0, times(&[], &common, -1)));
    let Some(rest) = rest.and_then(|rest| nodes.quotient(&rest, id, &common)) else {
        return Product::of(Base::Sum(line));
    };
    let mut found = nodes.product(rest);
    found.push_monomial(nodes, &common, 1);
    found
}

/// A monomial with the products that its atoms are.
fn expanded(nodes: &mut Nodes<'_>, (number, monomial): (f64, Monomial)) -> Product {
    let mut whole = Product::number(number);
    for (atom, power) in monomial {
        let factor = nodes.product(atom);
        whole.push_all(nodes, factor, power);
    }
    whole
}

/// `a + b` where both differ by a number and an exponential only, of opposite signs: a multiple of `e^u - 1`.
fn of_exponentials(nodes: &mut Nodes<'_>, a: Product, b: Product) -> Option<Product> {
    if a.number * b.number > 0.0 || !same_but_exponentials(&a, &b) {
        return None;
    }
    let (exponent_a, exponent_b) = (exponent(nodes, &a), exponent(nodes, &b));
    let bare = |p: &Product| !p.factors.iter().any(|(base, _)| matches!(base, Base::Exp(_)));
    // base * (ratio e^(difference) - 1), with the simpler one as the base.
    let (base, other, difference) =
        if bare(&a) { (a, b, exponent_b.plus(&exponent_a, -1.0)) } else { (b, a, exponent_a.plus(&exponent_b, -1.0)) };
    let ratio = -other.number / base.number;
    if difference.constant().is_some() || !ratio.is_finite() || ratio <= 0.0 {
        return None;
    }
    let one = (ratio - 1.0).abs() <= 4.0 * f64::EPSILON;
    let as_written = match &other.factors.iter().filter(|(f, _)| matches!(f, Base::Exp(_))).collect::<Vec<_>>()[..] {
        [(Base::Exp(u), 1)] if one && bare(&base) => Some(*u),
        [(Base::Exp(u), -1)] if one && bare(&base) => Some(nodes.unary(UnaryOp::Neg, *u)),
        _ => None,
    };
    let u = match as_written {
        Some(u) => u,
        None => {
            let shifted = if one { difference } else { difference.plus(&Poly::number(ratio.ln()), 1.0) };
            nodes.pure(&shifted)?
        }
    };
    let mut found = base;
    found.number = -found.number;
    let line = nodes.line(u);
    found.push(nodes, Base::Difference(line), 1);
    Some(found)
}

fn same_but_exponentials(a: &Product, b: &Product) -> bool {
    fn rest(p: &Product) -> Vec<&(Base, i32)> {
        p.factors.iter().filter(|(base, _)| !matches!(base, Base::Exp(_))).collect()
    }
    let (a, b) = (rest(a), rest(b));
    let equal = |x: &(Base, i32), y: &(Base, i32)| {
        x.1 == y.1
            && match (&x.0, &y.0) {
                (Base::Sum(x), Base::Sum(y)) => x.is(y),
                (x, y) => x.is(y),
            }
    };
    a.len() == b.len() && a.iter().all(|x| b.iter().any(|y| equal(x, y)))
}

/// The sum of all exponents.
fn exponent(nodes: &mut Nodes<'_>, p: &Product) -> Poly {
    let exponents = p.factors.iter().filter_map(|(base, power)| match base {
        Base::Exp(u) => Some((*u, *power)),
        Base::Atom(_) | Base::Sum(_) | Base::Difference(_) => None,
    });
    let mut sum = Poly::default();
    for (u, power) in exponents {
        let of_one = nodes.poly(u);
        sum = sum.plus(&of_one, f64::from(power));
    }
    sum
}
