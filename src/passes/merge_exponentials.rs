//! `merge-exponentials`: products, quotients, powers and roots of exponentials become one exponential.
//!
//! In comes a program; out goes one with fewer exponentials and fewer divisions by them.
//! Never true here: there are more exponentials than before. So `1 / exp(x)` stays when `exp(x)` has another use: an
//! exponential costs more than the division that it would save.
//!
//! Error: `exp(a + b)` carries the rounding of `a + b`, `|a + b|` half ulps, instead of two roundings; it is
//! finite wherever `exp(a) * exp(b)` was.

use super::arithmetic::{Arithmetic, arithmetic};
use super::rewrite::{Rewriter, rewrite};
use super::{Options, fields};
use crate::step::{BinaryOp, OpKind, Program, UnaryOp, ValueId};

/// Runs the pass.
pub fn run(program: &mut Program, _options: &Options) {
    fields::each_function(program, |program, function| rewrite(program, function, |rw, _, kind| merge(rw, kind)));
}

fn merge(rw: &mut Rewriter<'_>, kind: OpKind) -> Option<ValueId> {
    if let OpKind::Binary(BinaryOp::Mul | BinaryOp::Div, _, _) = kind {
        return product(rw, kind);
    }
    let (base, power) = if let OpKind::Unary(UnaryOp::Sqrt, base) = kind {
        (base, None)
    } else if let OpKind::Binary(BinaryOp::Pow, base, n) = kind {
        rw.number(n)?;
        (base, Some(n))
    } else {
        return None;
    };
    let u = lone_exp(rw, base)?;
    let power = power.unwrap_or_else(|| rw.constant(0.5));
    let argument = rw.mul(u, power);
    Some(rw.unary(UnaryOp::Exp, argument))
}

/// The argument of an exponential that has no other use.
fn lone_exp(rw: &Rewriter<'_>, v: ValueId) -> Option<ValueId> {
    rw.as_unary(UnaryOp::Exp, v).filter(|_| rw.single(v))
}

/// A product taken apart: factors above and below the line.
#[derive(Default)]
struct Factors {
    above: Vec<ValueId>,
    below: Vec<ValueId>,
    negative: bool,
}

impl Factors {
    fn collect(&mut self, rw: &Rewriter<'_>, kind: OpKind, inverted: bool) {
        let Some(kind) = arithmetic(kind) else { return };
        match kind {
            Arithmetic::Mul(a, b) => {
                self.factor(rw, a, inverted);
                self.factor(rw, b, inverted);
            }
            Arithmetic::Div(a, b) => {
                self.factor(rw, a, inverted);
                self.factor(rw, b, !inverted);
            }
            Arithmetic::Neg(a) => {
                self.negative = !self.negative;
                self.factor(rw, a, inverted);
            }
            Arithmetic::Add(..) | Arithmetic::Sub(..) | Arithmetic::Fma(..) => {}
        }
    }

    fn factor(&mut self, rw: &Rewriter<'_>, v: ValueId, inverted: bool) {
        let kind = rw.def(v);
        let inner =
            matches!(kind, OpKind::Binary(BinaryOp::Mul | BinaryOp::Div, _, _) | OpKind::Unary(UnaryOp::Neg, _));
        if inner && rw.single(v) {
            self.collect(rw, kind, inverted);
        } else if inverted {
            self.below.push(v);
        } else {
            self.above.push(v);
        }
    }
}

/// Merges the exponentials of a product whose every use is in that product.
fn product(rw: &mut Rewriter<'_>, kind: OpKind) -> Option<ValueId> {
    let mut factors = Factors::default();
    factors.collect(rw, kind, false);
    let all_here = |v: ValueId, f: &Factors, rw: &Rewriter<'_>| {
        let here = f.above.iter().chain(&f.below).filter(|&&w| w == v).count();
        rw.as_unary(UnaryOp::Exp, v).is_some() && rw.uses(v) as usize <= here
    };
    let is_mine = |v: &ValueId| all_here(*v, &factors, rw);
    let above: Vec<ValueId> = factors.above.iter().copied().filter(is_mine).collect();
    let below: Vec<ValueId> = factors.below.iter().copied().filter(is_mine).collect();
    if above.len() + below.len() < 2 && below.is_empty() {
        return None;
    }
    let keep = |list: &[ValueId], gone: &[ValueId]| -> Vec<ValueId> {
        list.iter().copied().filter(|v| !gone.contains(v)).collect()
    };
    let (rest_above, rest_below) = (keep(&factors.above, &above), keep(&factors.below, &below));

    let mut exponent = None;
    for v in above {
        let u = rw.as_unary(UnaryOp::Exp, v)?;
        exponent = Some(exponent.map_or(u, |e| rw.add(e, u)));
    }
    for v in below {
        let u = rw.as_unary(UnaryOp::Exp, v)?;
        exponent = Some(match exponent {
            Some(e) => rw.sub(e, u),
            None => rw.neg(u),
        });
    }
    let mut result = rw.unary(UnaryOp::Exp, exponent?);
    for v in rest_above {
        result = rw.mul(v, result);
    }
    let mut divisor = None;
    for v in rest_below {
        divisor = Some(divisor.map_or(v, |d| rw.mul(d, v)));
    }
    if let Some(d) = divisor {
        result = rw.div(result, d);
    }
    Some(if factors.negative { rw.neg(result) } else { result })
}
