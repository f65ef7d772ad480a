//! `safe-singularities`: rate functions that are 0/0 at one voltage become `linoid`.
//!
//! In comes a program with quotients such as `0.1 * (v + 40) / (1 - exp(-(v + 40) / 10))`; out goes
//! `c * linoid(u)`, with `linoid(u) = u / (e^u - 1)` and 1 at 0.
//! Never true here: a quotient is rewritten whose numerator is not provably a multiple of the exponent.
//!
//! Proof: both are brought to the normal form `k * (product of invariant factors) * (c0 + sum of ci * atom)`, where the
//! atoms are values and `k`, `c0`, `ci` numbers. They are proportional when the factors that vary agree and the sums
//! agree up to one common ratio, to 4 ulps (decimal constants such as 0.1 are not exact). Error: away from the
//! singularity rounding only; near it the quotient lost digits and `linoid` does not.

use super::Options;
use super::rewrite::{Rewriter, rewrite};
use crate::step::{BinaryOp, OpKind, Program, UnaryOp, ValueId};

/// Runs the pass.
pub fn run(program: &mut Program, _options: &Options) {
    for kernel in &mut program.kernels {
        rewrite(&program.fields, kernel, |rw, _, kind| match kind {
            OpKind::Binary(BinaryOp::Div, a, b) => quotient(rw, a, b),
            OpKind::Const(_)
            | OpKind::Bool(_)
            | OpKind::Field(_)
            | OpKind::There(_)
            | OpKind::Time
            | OpKind::StepIndex
            | OpKind::Index
            | OpKind::Unary(..)
            | OpKind::Binary(..)
            | OpKind::Approximate(..)
            | OpKind::Fma(..)
            | OpKind::Select(..)
            | OpKind::Draw(..)
            | OpKind::Sample(..)
            | OpKind::Store(..)
            | OpKind::Accumulate(..)
            | OpKind::Emit(..) => None,
        });
    }
}

/// `number * (product of invariant values to whole powers) * (constant + sum of coefficient * atom)`; the first atom's
/// coefficient is 1.
#[derive(Debug, Clone, PartialEq)]
struct Form {
    number: f64,
    factors: Vec<(ValueId, i32)>,
    constant: f64,
    atoms: Vec<(ValueId, f64)>,
}

impl Form {
    fn atom(v: ValueId) -> Form {
        Form { number: 1.0, factors: vec![], constant: 0.0, atoms: vec![(v, 1.0)] }
    }

    /// A form without atoms is a number, kept in `constant`.
    fn number(c: f64) -> Form {
        Form { number: 1.0, factors: vec![], constant: c, atoms: vec![] }
    }

    fn normal(mut self) -> Form {
        self.atoms.retain(|&(_, c)| c != 0.0);
        self.atoms.sort_by_key(|&(v, _)| v);
        if let Some(&(_, first)) = self.atoms.first() {
            self.number *= first;
            self.constant /= first;
            for (_, c) in &mut self.atoms {
                *c /= first;
            }
        } else {
            self.constant *= self.number;
            self.number = 1.0;
        }
        self
    }

    fn times(mut self, c: f64) -> Form {
        self.number *= c;
        self.normal()
    }

    fn by(mut self, v: ValueId, power: i32) -> Form {
        match self.factors.iter_mut().find(|f| f.0 == v) {
            Some(f) => f.1 += power,
            None => self.factors.push((v, power)),
        }
        self.factors.retain(|f| f.1 != 0);
        self.factors.sort_unstable();
        self
    }

    /// The sum, if both have the same invariant factors.
    fn plus(&self, other: &Form) -> Option<Form> {
        let is_zero = |f: &Form| f.atoms.is_empty() && f.constant == 0.0;
        if self.factors != other.factors && !is_zero(self) && !is_zero(other) {
            return None;
        }
        let mut sum = Form {
            number: 1.0,
            factors: if is_zero(self) { other.factors.clone() } else { self.factors.clone() },
            constant: self.number * self.constant + other.number * other.constant,
            atoms: self.atoms.iter().map(|&(v, c)| (v, self.number * c)).collect(),
        };
        for &(v, c) in &other.atoms {
            match sum.atoms.iter_mut().find(|a| a.0 == v) {
                Some(a) => a.1 += other.number * c,
                None => sum.atoms.push((v, other.number * c)),
            }
        }
        Some(sum.normal())
    }

    /// Is it the other one times a number and invariant factors?
    fn proportional(&self, other: &Form) -> bool {
        let near = |x: f64, y: f64| (x - y).abs() <= 4.0 * f64::EPSILON * x.abs().max(y.abs());
        let atoms = self.atoms.iter().zip(&other.atoms);
        !self.atoms.is_empty()
            && self.atoms.len() == other.atoms.len()
            && near(self.constant, other.constant)
            && atoms.into_iter().all(|(a, b)| a.0 == b.0 && near(a.1, b.1))
    }
}

/// The normal form of a value; what is not affine is an atom.
fn form(rw: &Rewriter<'_>, v: ValueId) -> Form {
    let found = match rw.def(v) {
        OpKind::Const(c) => Some(Form::number(c)),
        OpKind::Unary(UnaryOp::Neg, a) => Some(form(rw, a).times(-1.0)),
        OpKind::Binary(BinaryOp::Add, a, b) => form(rw, a).plus(&form(rw, b)),
        OpKind::Binary(BinaryOp::Sub, a, b) => form(rw, a).plus(&form(rw, b).times(-1.0)),
        OpKind::Binary(BinaryOp::Mul, a, b) => match (rw.number(a), rw.number(b)) {
            (Some(c), _) => Some(form(rw, b).times(c)),
            (_, Some(c)) => Some(form(rw, a).times(c)),
            (None, None) if rw.uniform(a) => Some(form(rw, b).by(a, 1)),
            (None, None) if rw.uniform(b) => Some(form(rw, a).by(b, 1)),
            (None, None) => None,
        },
        OpKind::Binary(BinaryOp::Div, a, b) => match (rw.number(b), reciprocal(rw, b)) {
            (Some(c), _) => Some(form(rw, a).times(1.0 / c)),
            (None, Some(u)) => Some(form(rw, a).by(u, 1)),
            (None, None) if rw.uniform(b) && rw.number(a) != Some(1.0) => Some(form(rw, a).by(b, -1)),
            (None, None) => None,
        },
        OpKind::Bool(_)
        | OpKind::Field(_)
        | OpKind::There(_)
        | OpKind::Time
        | OpKind::StepIndex
        | OpKind::Index
        | OpKind::Unary(..)
        | OpKind::Binary(..)
        | OpKind::Approximate(..)
        | OpKind::Fma(..)
        | OpKind::Select(..)
        | OpKind::Draw(..)
        | OpKind::Sample(..)
        | OpKind::Store(..)
        | OpKind::Accumulate(..)
        | OpKind::Emit(..) => None,
    };
    found.unwrap_or_else(|| Form::atom(v))
}

/// The invariant value whose reciprocal this is.
fn reciprocal(rw: &Rewriter<'_>, v: ValueId) -> Option<ValueId> {
    let (one, u) = rw.as_binary(BinaryOp::Div, v)?;
    (rw.number(one) == Some(1.0) && rw.uniform(u)).then_some(u)
}

/// A denominator `sign * product of outer values * (e^u - 1)`.
struct Singular {
    exponent: ValueId,
    negative: bool,
    outer: Vec<ValueId>,
}

fn singular(rw: &Rewriter<'_>, v: ValueId) -> Option<Singular> {
    let exp = |x: ValueId| rw.as_unary(UnaryOp::Exp, x);
    let found = |exponent: Option<ValueId>, negative: bool| {
        exponent.map(|exponent| Singular { exponent, negative, outer: vec![] })
    };
    match rw.def(v) {
        OpKind::Unary(UnaryOp::Expm1, u) => found(Some(u), false),
        OpKind::Unary(UnaryOp::Neg, a) => {
            let inner = singular(rw, a)?;
            Some(Singular { negative: !inner.negative, ..inner })
        }
        OpKind::Binary(BinaryOp::Sub, a, b) => match (rw.number(a), rw.number(b)) {
            (None, Some(1.0)) => found(exp(a), false),
            (Some(1.0), None) => found(exp(b), true),
            (_, _) => None,
        },
        OpKind::Binary(BinaryOp::Add, a, b) => match (rw.number(a), rw.number(b)) {
            (None, Some(-1.0)) => found(exp(a), false),
            (Some(-1.0), None) => found(exp(b), false),
            (Some(1.0), None) => found(rw.as_unary(UnaryOp::Neg, b).and_then(exp), true),
            (None, Some(1.0)) => found(rw.as_unary(UnaryOp::Neg, a).and_then(exp), true),
            (_, _) => None,
        },
        OpKind::Binary(BinaryOp::Mul, a, b) => {
            let (mut inner, other) = match singular(rw, a) {
                Some(inner) => (inner, b),
                None => (singular(rw, b)?, a),
            };
            inner.outer.push(other);
            Some(inner)
        }
        OpKind::Const(_)
        | OpKind::Bool(_)
        | OpKind::Field(_)
        | OpKind::There(_)
        | OpKind::Time
        | OpKind::StepIndex
        | OpKind::Index
        | OpKind::Unary(..)
        | OpKind::Binary(..)
        | OpKind::Approximate(..)
        | OpKind::Fma(..)
        | OpKind::Select(..)
        | OpKind::Draw(..)
        | OpKind::Sample(..)
        | OpKind::Store(..)
        | OpKind::Accumulate(..)
        | OpKind::Emit(..) => None,
    }
}

/// A numerator: the part proportional to the exponent, and the other factors (below the line when true).
struct Numerator {
    part: Form,
    others: Vec<(ValueId, bool)>,
}

/// Looks for a factor of the numerator that is proportional to the exponent.
fn numerator(rw: &Rewriter<'_>, v: ValueId, exponent: &Form) -> Option<Numerator> {
    let whole = form(rw, v);
    if whole.proportional(exponent) {
        return Some(Numerator { part: whole, others: vec![] });
    }
    let (found, other, below) = match rw.def(v) {
        OpKind::Binary(BinaryOp::Mul, a, b) => match numerator(rw, a, exponent) {
            Some(found) => (found, b, false),
            None => (numerator(rw, b, exponent)?, a, false),
        },
        OpKind::Binary(BinaryOp::Div, a, b) => (numerator(rw, a, exponent)?, b, true),
        OpKind::Unary(UnaryOp::Neg, a) => {
            let mut found = numerator(rw, a, exponent)?;
            found.part = found.part.times(-1.0);
            return Some(found);
        }
        OpKind::Const(_)
        | OpKind::Bool(_)
        | OpKind::Field(_)
        | OpKind::There(_)
        | OpKind::Time
        | OpKind::StepIndex
        | OpKind::Index
        | OpKind::Unary(..)
        | OpKind::Binary(..)
        | OpKind::Approximate(..)
        | OpKind::Fma(..)
        | OpKind::Select(..)
        | OpKind::Draw(..)
        | OpKind::Sample(..)
        | OpKind::Store(..)
        | OpKind::Accumulate(..)
        | OpKind::Emit(..) => return None,
    };
    let mut found = found;
    found.others.push((other, below));
    Some(found)
}

fn quotient(rw: &mut Rewriter<'_>, a: ValueId, b: ValueId) -> Option<ValueId> {
    let below = singular(rw, b)?;
    let exponent = form(rw, below.exponent);
    let above = numerator(rw, a, &exponent)?;

    // a / b = (part / exponent) * others / outer * linoid(exponent)
    let sign = if below.negative { -1.0 } else { 1.0 };
    let mut scale = rw.constant(sign * above.part.number / exponent.number);
    let mut powers = above.part.clone();
    for &(v, power) in &exponent.factors {
        powers = powers.by(v, -power);
    }
    for (v, power) in powers.factors {
        let factor = rw.power(v, power.unsigned_abs());
        scale = if power > 0 { rw.mul(scale, factor) } else { rw.div(scale, factor) };
    }
    let linoid = rw.unary(UnaryOp::Linoid, below.exponent);
    let mut result = rw.mul(scale, linoid);
    for (v, inverted) in above.others {
        result = if inverted { rw.div(result, v) } else { rw.mul(result, v) };
    }
    for v in below.outer {
        result = rw.div(result, v);
    }
    Some(result)
}
