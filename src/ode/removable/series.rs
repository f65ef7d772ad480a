//! Power series of expressions around the zero of a sum.
//!
//! In come an expression and a sum x; out goes the expression as a Laurent series in x, with numbers for coefficients.
//! Never true here: a parameter is taken for the number that it is now.

use super::Nodes;
use super::product::{Line, Product, along};
use crate::ode::{Node, NodeId};
use crate::operators::{BinaryOp, UnaryOp};
use rustc_hash::FxHashMap as HashMap;

/// How many coefficients a polynomial is made of.
pub const TERMS: usize = 26;

/// How many tell whether an expression vanishes or has a pole.
pub const FEW: usize = 8;

/// What is below this part of the largest terms that made it is rounding.
const ROUNDING: f64 = 1e-14;

/// `x^order * (c0 + c1 x + c2 x^2 + ...)` with `c0` not 0.
#[derive(Debug, Clone)]
pub struct Series {
    /// The power of the first term.
    pub order: i32,
    coefficients: Vec<f64>,
}

impl Series {
    /// A number other than 0.
    pub fn number(c: f64, terms: usize) -> Option<Series> {
        let mut coefficients = vec![0.0; terms];
        coefficients[0] = c;
        (c != 0.0 && c.is_finite()).then_some(Series { order: 0, coefficients })
    }

    /// `a x + b`
    fn line(a: f64, b: f64, terms: usize) -> Series {
        let mut coefficients = vec![0.0; terms];
        if b == 0.0 {
            coefficients[0] = a;
            return Series { order: 1, coefficients };
        }
        (coefficients[0], coefficients[1]) = (b, a);
        Series { order: 0, coefficients }
    }

    fn terms(&self) -> usize {
        self.coefficients.len()
    }

    /// The coefficient of `x^power`.
    fn at(&self, power: i32) -> f64 {
        usize::try_from(power - self.order).ok().and_then(|i| self.coefficients.get(i)).copied().unwrap_or(0.0)
    }

    fn scaled(&self, c: f64) -> Series {
        Series { order: self.order, coefficients: self.coefficients.iter().map(|x| c * x).collect() }
    }

    /// `self + c * other`; `None` if nothing is left within the terms that are known.
    fn plus(&self, other: &Series, c: f64) -> Option<Series> {
        let first = self.order.min(other.order);
        let last = self.order.max(other.order);
        let term = |power: i32| {
            let (a, b) = (self.at(power), c * other.at(power));
            let sum = a + b;
            if sum.abs() <= ROUNDING * (a.abs() + b.abs()) { 0.0 } else { sum }
        };
        let terms = self.terms() as i32;
        let order = (first..last + terms / 2).find(|&power| term(power) != 0.0)?;
        Some(Series { order, coefficients: (order..order + terms).map(term).collect() })
    }

    /// The product.
    pub fn times(&self, other: &Series) -> Series {
        let term = |n: usize| (0..=n).map(|k| self.coefficients[k] * other.coefficients[n - k]).sum();
        let coefficients = (0..self.terms()).map(term).collect();
        Series { order: self.order + other.order, coefficients }
    }

    fn over(&self, other: &Series) -> Series {
        let mut coefficients: Vec<f64> = Vec::with_capacity(self.terms());
        for n in 0..self.terms() {
            let known: f64 = (0..n).map(|k| coefficients[k] * other.coefficients[n - k]).sum();
            coefficients.push((self.coefficients[n] - known) / other.coefficients[0]);
        }
        Series { order: self.order - other.order, coefficients }
    }

    /// A whole power.
    pub fn power(&self, n: i32) -> Option<Series> {
        let one = Series::number(1.0, self.terms())?;
        let raised = (0..n.unsigned_abs()).fold(one.clone(), |p, _| p.times(self));
        Some(if n < 0 { one.over(&raised) } else { raised })
    }

    /// The value at x = 0 and the rest, which is `None` if it is 0; `None` at a pole.
    fn split(&self) -> Option<(f64, Option<Series>)> {
        if self.order < 0 {
            return None;
        }
        let value = self.at(0);
        if value == 0.0 {
            return Some((0.0, Some(self.clone())));
        }
        let minus = Series::number(-value, self.terms())?;
        Some((value, self.plus(&minus, 1.0)))
    }

    /// `f(self)`, where `taylor(x0, n)` is the n-th coefficient of f at x0.
    fn composed(&self, taylor: impl Fn(f64, usize) -> f64) -> Option<Series> {
        let (at, rest) = self.split()?;
        let terms = self.terms();
        let mut sum = Series::number(taylor(at, 0), terms);
        let Some(rest) = rest else { return sum };
        let mut power = Series::number(1.0, terms)?;
        for n in 1..terms {
            power = power.times(&rest);
            let coefficient = taylor(at, n);
            if coefficient == 0.0 {
                continue;
            }
            sum = match sum {
                None => Some(power.scaled(coefficient)),
                Some(sum) => Some(sum.plus(&power, coefficient)?),
            };
        }
        sum
    }

    /// How far the function is from 1 for `|x| <= reach`, at most; `None` at a pole.
    pub fn distance_from_one(&self, reach: f64) -> Option<f64> {
        let at_zero = (self.order >= 0).then(|| (self.at(0) - 1.0).abs())?;
        Some(at_zero + (1..self.terms() as i32).map(|k| self.at(k).abs() * reach.powi(k)).sum::<f64>())
    }

    /// How far the series may stand for its function, to full precision, and the coefficients for that: of powers of x as a part of
    /// this radius, from 0 on. Terms behind the last one that is known may be larger than those before tell: `fits` looks at the function itself.
    pub fn polynomial(&self, mut fits: impl FnMut(f64, &[f64]) -> bool) -> Option<(f64, Vec<f64>)> {
        let powers = 0..self.order + self.terms() as i32;
        let all: Vec<f64> = powers.map(|power| self.at(power)).collect();
        let largest = all.iter().fold(0.0f64, |m, c| m.max(c.abs()));
        let scale = (1..all.len())
            .filter(|&k| all[k] != 0.0)
            .map(|k| (largest / all[k].abs()).powf(1.0 / k as f64))
            .fold(f64::INFINITY, f64::min);
        let scale = if scale.is_finite() { scale } else { 1.0 };
        [1.0, 0.7, 0.5, 0.35, 0.25, 0.18, 0.12, 0.08, 0.05, 0.03].into_iter().find_map(|part| {
            let radius = part * scale;
            let terms: Vec<f64> = (0..).zip(&all).map(|(k, c)| c * radius.powi(k)).collect();
            let most = terms.iter().fold(0.0f64, |m, c| m.max(c.abs()));
            let needed = terms.iter().rposition(|c| c.abs() > 1e-17 * most)? + 1;
            // That the last terms are small is known of three of them, not just assumed.
            let known = &terms[..needed];
            (needed + 3 <= terms.len() && fits(radius, known)).then(|| (radius, known.to_vec()))
        })
    }
}

/// The series of a node around `x = 0`, to so many terms.
pub fn series(nodes: &mut Nodes<'_>, id: NodeId, x: &Line, terms: usize) -> Option<Series> {
    let mut known: HashMap<NodeId, Option<Series>> = HashMap::default();
    let whole = nodes.poly(x.node);
    for n in nodes.graph().reachable([id]) {
        let poly = nodes.poly(n);
        let found = match poly.constant() {
            Some(c) => Series::number(c, terms),
            None => match poly.line_in(&whole) {
                Some((a, b)) => Some(Series::line(a, b, terms)),
                None => match nodes.graph().node(n) {
                    Node::Select(near, a, _) if is_small(nodes, near, &known) => known.get(&a).cloned().flatten(),
                    node => of_node(node, &known).or_else(|| of_powers(nodes, n, x, terms)),
                },
            },
        };
        known.insert(n, found);
    }
    known.remove(&id)?
}

/// Does a condition say of what it compares that it is small, and is it so at 0? There the first side of a choice holds.
fn is_small(nodes: &Nodes<'_>, condition: NodeId, known: &HashMap<NodeId, Option<Series>>) -> bool {
    match nodes.graph().node(condition) {
        Node::Binary(BinaryOp::And, a, b) => is_small(nodes, a, known) && is_small(nodes, b, known),
        Node::Binary(BinaryOp::Lt, size, most) => {
            let (Node::Unary(UnaryOp::Abs, u), Some(most)) = (nodes.graph().node(size), nodes.constant(most)) else {
                return false;
            };
            let there = known.get(&u).and_then(Option::as_ref);
            there.is_some_and(|s| s.order > 0 || s.split().is_some_and(|(value, _)| value.abs() < most))
        }
        _ => false,
    }
}

/// A number times a power of x, where parameters in the one cancel against those in the other.
fn of_powers(nodes: &mut Nodes<'_>, id: NodeId, x: &Line, terms: usize) -> Option<Series> {
    let p = nodes.product(id);
    let mut rest = Product::number(p.number);
    let mut order = 0;
    for (base, power) in p.factors {
        match along(nodes, &base, x) {
            Some(ratio) => {
                rest.number *= ratio.number.powi(power);
                rest.push_monomial(nodes, &ratio.monomial, power);
                order += power;
            }
            None => rest.push(nodes, base, power),
        }
    }
    let number = rest.factors.is_empty().then(|| Series::number(rest.number, terms))??;
    Some(Series { order, ..number })
}

fn of_node(node: Node, known: &HashMap<NodeId, Option<Series>>) -> Option<Series> {
    let at = |n: NodeId| known.get(&n).and_then(Option::as_ref);
    match node {
        Node::Unary(op, a) => unary(op, at(a)?),
        Node::Binary(op, a, b) => {
            let (a, b) = (at(a)?, at(b)?);
            match op {
                BinaryOp::Add => a.plus(b, 1.0),
                BinaryOp::Sub => a.plus(b, -1.0),
                BinaryOp::Mul => Some(a.times(b)),
                BinaryOp::Div => Some(a.over(b)),
                BinaryOp::Pow => {
                    let (n, None) = b.split()? else { return None };
                    if n.fract() == 0.0 && n.abs() <= 32.0 { a.power(n as i32) } else { power(a, n) }
                }
                BinaryOp::Min
                | BinaryOp::Max
                | BinaryOp::Lt
                | BinaryOp::Le
                | BinaryOp::Gt
                | BinaryOp::Ge
                | BinaryOp::Eq
                | BinaryOp::Ne
                | BinaryOp::And
                | BinaryOp::Or
                | BinaryOp::Poisson => None,
            }
        }
        Node::Const(..)
        | Node::Bool(_)
        | Node::Param(_)
        | Node::State(_)
        | Node::Next(_)
        | Node::Slope(..)
        | Node::Point(..)
        | Node::Refractory(_)
        | Node::Time
        | Node::StepTime
        | Node::StepLength
        | Node::White(_)
        | Node::Index
        | Node::Dv
        | Node::Junction(..)
        | Node::Conductance(_)
        | Node::Arrived(..)
        | Node::Amount(_)
        | Node::Since
        | Node::Beyond
        | Node::Measure(_)
        | Node::Outward(_)
        | Node::Draw(..)
        | Node::Data(_)
        | Node::Series(..)
        | Node::Noise(..)
        | Node::Events(..)
        | Node::Select(..) => None,
    }
}

/// `a^n` for a positive value at 0.
fn power(a: &Series, n: f64) -> Option<Series> {
    if a.split()?.0 <= 0.0 {
        return None;
    }
    a.composed(|x0, k| (0..k).map(|j| (n - j as f64) / (j + 1) as f64).product::<f64>() * x0.powf(n - k as f64))
}

fn factorial(n: usize) -> f64 {
    (1..=n).map(|k| k as f64).product()
}

fn unary(op: UnaryOp, a: &Series) -> Option<Series> {
    let exp = |a: &Series| a.composed(|x0, n| x0.exp() / factorial(n));
    let wave = |shift: f64| {
        move |x0: f64, n: usize| match (n + shift as usize) % 4 {
            0 => x0.sin() / factorial(n),
            1 => x0.cos() / factorial(n),
            2 => -x0.sin() / factorial(n),
            _ => -x0.cos() / factorial(n),
        }
    };
    let hyperbolic =
        |odd: usize| move |x0: f64, n: usize| (if n % 2 == odd { x0.sinh() } else { x0.cosh() }) / factorial(n);
    let ln = |a: &Series| {
        (a.split()?.0 > 0.0).then_some(())?;
        // 4/3 - 1/3, rounded, is 1, too.
        let at = |x0: f64| if (x0 - 1.0).abs() < ROUNDING { 0.0 } else { x0.ln() };
        a.composed(|x0, n| if n == 0 { at(x0) } else { -(-1.0 / x0).powi(n as i32) / n as f64 })
    };
    match op {
        UnaryOp::Neg => Some(a.scaled(-1.0)),
        UnaryOp::Sqrt => power(a, 0.5),
        UnaryOp::Exp => exp(a),
        UnaryOp::Ln => ln(a),
        UnaryOp::Log10 => Some(ln(a)?.scaled(std::f64::consts::LOG10_E)),
        UnaryOp::Sin => a.composed(wave(0.0)),
        UnaryOp::Cos => a.composed(wave(1.0)),
        UnaryOp::Tan => Some(a.composed(wave(0.0))?.over(&a.composed(wave(1.0))?)),
        UnaryOp::Sinh => a.composed(hyperbolic(0)),
        UnaryOp::Cosh => a.composed(hyperbolic(1)),
        UnaryOp::Tanh => Some(a.composed(hyperbolic(0))?.over(&a.composed(hyperbolic(1))?)),
        UnaryOp::Linoid => {
            let minus_one = Series::number(-1.0, a.terms())?;
            Some(a.over(&exp(a)?.plus(&minus_one, 1.0)?))
        }
        UnaryOp::Abs
        | UnaryOp::Floor
        | UnaryOp::Ceil
        | UnaryOp::Exp2
        | UnaryOp::Expm1
        | UnaryOp::Exp2m1
        | UnaryOp::Exp2rel
        | UnaryOp::Log2
        | UnaryOp::Nonzero
        | UnaryOp::Finite
        | UnaryOp::Narrow
        | UnaryOp::Widen
        | UnaryOp::Not => None,
    }
}
