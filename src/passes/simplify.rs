//! `simplify`: identities, cheap powers, reciprocals of what does not vary.
//!
//! In comes any program; out goes one that computes the same numbers with cheaper operations.
//! Never true here: `x - x`, `0 * x` or `x / x` is folded (wrong for infinities and NaN), or `!(a < b)` becomes `a >= b`.
//!
//! Error: identities are exact but for the sign of a zero. `pow(x, n)` by repeated squaring is within about `n` half
//! ulps; `pow(x, 0.5)` as a root differs at -inf and -0 only. A division turned into a product with a reciprocal
//! gets a second rounding (1 ulp in all); a divisor below 1e-308 is left alone when it is a number, and overflows when
//! it is a parameter. `x / (c / y)` as `x * y / c` loses a rounding. `c1 * (c2 * x)` loses one rounding and gains
//! another, as does `c1 * c2 * (x * y)` for `(c1 * x) * (c2 * y)`, where `x * y` may overflow or underflow earlier. What
//! [`super::ranges`] proves to be far enough from 0, in f32 too, needs no `nonzero`.

use super::rewrite::{Rewriter, rewrite};
use super::{Options, fields};
use crate::step::{BinaryOp, OpKind, Phase, Program, UnaryOp, ValueId};

/// The largest whole exponent that becomes products.
const LARGEST_POWER: u32 = 32;

/// Runs the pass.
pub fn run(program: &mut Program, _options: &Options) {
    fields::each_function(program, |program, function| rewrite(program, function, |rw, _, kind| simplify(rw, kind)));
}

fn simplify(rw: &mut Rewriter<'_>, kind: OpKind) -> Option<ValueId> {
    if let OpKind::Unary(op, a) = kind {
        return unary(rw, op, a);
    }
    if let OpKind::Fma(a, b, c) = kind {
        return fma(rw, a, b, c);
    }
    if let OpKind::Select(c, a, b) = kind {
        return select(rw, c, a, b);
    }
    let OpKind::Binary(op, a, b) = kind else { return None };
    match op {
        BinaryOp::Add => add(rw, a, b),
        BinaryOp::Sub => sub(rw, a, b),
        BinaryOp::Mul => mul(rw, a, b),
        BinaryOp::Div => div(rw, a, b),
        BinaryOp::Pow => pow(rw, a, b),
        BinaryOp::Min | BinaryOp::Max => (a == b).then_some(a),
        BinaryOp::Lt | BinaryOp::Le | BinaryOp::Gt | BinaryOp::Ge => order(rw, op, a, b),
        BinaryOp::Eq | BinaryOp::Ne => equality(rw, op, a, b),
        BinaryOp::And | BinaryOp::Or => logic(rw, op, a, b),
        BinaryOp::Poisson => None,
    }
}

/// Would a factor on this value be a factor on a number inside it? Then that number and the rest.
fn numeric_factor(rw: &Rewriter<'_>, v: ValueId) -> Option<(f64, ValueId)> {
    let (a, b) = rw.as_binary(BinaryOp::Mul, v)?;
    match (rw.number(a), rw.number(b)) {
        (Some(c), None) => Some((c, b)),
        (None, Some(c)) => Some((c, a)),
        (Some(_), Some(_)) | (None, None) => None,
    }
}

fn unary(rw: &mut Rewriter<'_>, op: UnaryOp, a: ValueId) -> Option<ValueId> {
    match op {
        UnaryOp::Neg => {
            if let Some(x) = rw.as_unary(UnaryOp::Neg, a) {
                return Some(x);
            }
            if !rw.single(a) {
                return None;
            }
            if let Some((x, y)) = rw.as_binary(BinaryOp::Sub, a) {
                return Some(rw.sub(y, x));
            }
            if let Some((c, x)) = numeric_factor(rw, a) {
                let c = rw.constant(-c);
                return Some(rw.mul(c, x));
            }
            let (x, y) = rw.as_binary(BinaryOp::Div, a)?;
            let c = rw.number(x)?;
            let c = rw.constant(-c);
            Some(rw.div(c, y))
        }
        UnaryOp::Abs => match rw.as_unary(UnaryOp::Neg, a) {
            Some(x) => Some(rw.unary(UnaryOp::Abs, x)),
            None => rw.as_unary(UnaryOp::Abs, a).map(|_| a),
        },
        UnaryOp::Not => rw.as_unary(UnaryOp::Not, a),
        UnaryOp::Nonzero if rw.range(a).is_far_from_zero() => Some(a),
        // Whatever its sign, a number next to 0 stands for 0.
        UnaryOp::Nonzero => rw.as_unary(UnaryOp::Neg, a).map(|x| {
            let nonzero = rw.unary(UnaryOp::Nonzero, x);
            rw.neg(nonzero)
        }),
        UnaryOp::Sqrt
        | UnaryOp::Floor
        | UnaryOp::Ceil
        | UnaryOp::Exp
        | UnaryOp::Exp2
        | UnaryOp::Expm1
        | UnaryOp::Exp2m1
        | UnaryOp::Exp2rel
        | UnaryOp::Ln
        | UnaryOp::Log2
        | UnaryOp::Log10
        | UnaryOp::Sin
        | UnaryOp::Cos
        | UnaryOp::Tan
        | UnaryOp::Sinh
        | UnaryOp::Cosh
        | UnaryOp::Tanh
        | UnaryOp::Linoid
        | UnaryOp::Finite
        | UnaryOp::Narrow
        | UnaryOp::Widen => None,
    }
}

fn add(rw: &mut Rewriter<'_>, a: ValueId, b: ValueId) -> Option<ValueId> {
    let zero = rw.number(a) == Some(0.0) || rw.number(b) == Some(0.0);
    let (x, y) = (rw.as_unary(UnaryOp::Neg, a), rw.as_unary(UnaryOp::Neg, b));
    if let (Some(x), Some(y)) = (x, y) {
        let sum = rw.add(x, y);
        return Some(rw.neg(sum));
    }
    (zero || x.is_some() || y.is_some()).then(|| rw.add(a, b))
}

fn sub(rw: &mut Rewriter<'_>, a: ValueId, b: ValueId) -> Option<ValueId> {
    if rw.number(a) == Some(0.0) || rw.number(b) == Some(0.0) || rw.as_unary(UnaryOp::Neg, b).is_some() {
        return Some(rw.sub(a, b));
    }
    if let Some(x) = rw.as_unary(UnaryOp::Neg, a) {
        let sum = rw.add(x, b);
        return Some(rw.neg(sum));
    }
    None
}

fn mul(rw: &mut Rewriter<'_>, a: ValueId, b: ValueId) -> Option<ValueId> {
    match (rw.number(a), rw.number(b)) {
        (Some(_), Some(_)) => return None,
        (Some(c), None) => return scaled(rw, c, b),
        (None, Some(c)) => return scaled(rw, c, a),
        (None, None) => {}
    }
    match (rw.as_unary(UnaryOp::Neg, a), rw.as_unary(UnaryOp::Neg, b)) {
        (Some(x), Some(y)) => Some(rw.mul(x, y)),
        (Some(x), None) => {
            let product = rw.mul(x, b);
            Some(rw.neg(product))
        }
        (None, Some(y)) => {
            let product = rw.mul(a, y);
            Some(rw.neg(product))
        }
        (None, None) => scaled_product(rw, a, b),
    }
}

/// `(c x) (d y)`, a square for example, as `c d (x y)`: a number that stands outside meets others there.
fn scaled_product(rw: &mut Rewriter<'_>, a: ValueId, b: ValueId) -> Option<ValueId> {
    let (c, x) = numeric_factor(rw, a)?;
    let (d, y) = numeric_factor(rw, b)?;
    let used_here = 1 + u32::from(a == b);
    if rw.uses(a) > used_here || rw.uses(b) > used_here || !(c * d).is_normal() {
        return None;
    }
    let (factor, product) = (rw.constant(c * d), rw.mul(x, y));
    Some(rw.mul(factor, product))
}

/// `c * x`, when that is simpler than it looks.
fn scaled(rw: &mut Rewriter<'_>, c: f64, x: ValueId) -> Option<ValueId> {
    if c == 1.0 || c == -1.0 {
        let c = rw.constant(c);
        return Some(rw.mul(c, x));
    }
    if let Some(y) = rw.as_unary(UnaryOp::Neg, x) {
        let c = rw.constant(-c);
        return Some(rw.mul(c, y));
    }
    if let Some((d, y)) = numeric_factor(rw, x)
        && (c * d).is_normal()
    {
        let product = rw.constant(c * d);
        return Some(rw.mul(product, y));
    }
    let (n, y) = rw.as_binary(BinaryOp::Div, x)?;
    let d = rw.number(n)?;
    if !rw.single(x) || !(c * d).is_normal() {
        return None;
    }
    let product = rw.constant(c * d);
    Some(rw.div(product, y))
}

fn div(rw: &mut Rewriter<'_>, a: ValueId, b: ValueId) -> Option<ValueId> {
    match (rw.as_unary(UnaryOp::Neg, a), rw.as_unary(UnaryOp::Neg, b)) {
        (Some(x), Some(y)) => return Some(rw.div(x, y)),
        (Some(x), None) => {
            let quotient = rw.div(x, b);
            return Some(rw.neg(quotient));
        }
        (None, Some(y)) => {
            let quotient = rw.div(a, y);
            return Some(rw.neg(quotient));
        }
        (None, None) => {}
    }
    if rw.number(a).is_some() && rw.number(b).is_some() {
        return None;
    }
    if let Some(c) = rw.number(b) {
        if !c.is_normal() || !(1.0 / c).is_normal() {
            return None;
        }
        let reciprocal = rw.constant(1.0 / c);
        return Some(rw.mul(a, reciprocal));
    }
    let gains = |rw: &Rewriter<'_>, divisor: Phase, user: Phase| {
        divisor != user && divisor.reaches(user) && matches!(rw.phase(a), Phase::Cell | Phase::Body)
    };
    if gains(rw, rw.phase(b), rw.phase(a)) {
        let one = rw.constant(1.0);
        let reciprocal = rw.div(one, b);
        return Some(rw.mul(a, reciprocal));
    }
    // x / (c / y) = x * y / c: a time constant is often the reciprocal of a rate.
    if let Some((c, y)) = rw.as_binary(BinaryOp::Div, b)
        && let Some(c) = rw.number(c).filter(|c| c.is_normal() && (1.0 / c).is_normal())
    {
        let scale = rw.constant(1.0 / c);
        let scaled = rw.mul(a, scale);
        return Some(rw.mul(scaled, y));
    }
    // x / (u * y) = (x / u) / y: the division by what does not vary leaves the loop.
    let (x, y) = rw.as_binary(BinaryOp::Mul, b)?;
    let (u, y) = match (rw.uniform(x), rw.uniform(y)) {
        (true, false) => (x, y),
        (false, true) => (y, x),
        (true, true) | (false, false) => return None,
    };
    if !rw.uniform(a) || !rw.single(b) {
        return None;
    }
    let outer = rw.div(a, u);
    Some(rw.div(outer, y))
}

fn pow(rw: &mut Rewriter<'_>, x: ValueId, y: ValueId) -> Option<ValueId> {
    let n = rw.number(y)?;
    if n == 0.0 {
        return Some(rw.constant(1.0));
    }
    let size = n.abs();
    let power = if size == 0.5 {
        let root = rw.unary(UnaryOp::Sqrt, x);
        // The root of -0 is -0, the power 0, which a division tells.
        if rw.range(x).positive() { root } else { rw.unary(UnaryOp::Abs, root) }
    } else if size == 1.5 {
        let root = rw.unary(UnaryOp::Sqrt, x);
        rw.mul(x, root)
    } else if size.fract() == 0.0 && size <= f64::from(LARGEST_POWER) {
        rw.power(x, size as u32)
    } else {
        return None;
    };
    if n > 0.0 {
        return Some(power);
    }
    let one = rw.constant(1.0);
    Some(rw.div(one, power))
}

/// `a > b` is written `b < a`, and `-a < c` is `-c < a`.
fn order(rw: &mut Rewriter<'_>, op: BinaryOp, a: ValueId, b: ValueId) -> Option<ValueId> {
    let (op, a, b, turned) = match op {
        BinaryOp::Gt => (BinaryOp::Lt, b, a, true),
        BinaryOp::Ge => (BinaryOp::Le, b, a, true),
        BinaryOp::Lt
        | BinaryOp::Le
        | BinaryOp::Add
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
        | BinaryOp::Poisson => (op, a, b, false),
    };
    match (rw.as_unary(UnaryOp::Neg, a), rw.as_unary(UnaryOp::Neg, b)) {
        (Some(x), Some(y)) => Some(rw.value(OpKind::Binary(op, y, x))),
        (Some(x), None) if rw.number(b).is_some() => {
            let limit = rw.neg(b);
            Some(rw.value(OpKind::Binary(op, limit, x)))
        }
        (None, Some(y)) if rw.number(a).is_some() => {
            let limit = rw.neg(a);
            Some(rw.value(OpKind::Binary(op, y, limit)))
        }
        (_, _) => turned.then(|| rw.value(OpKind::Binary(op, a, b))),
    }
}

/// The number goes to the right.
fn equality(rw: &mut Rewriter<'_>, op: BinaryOp, a: ValueId, b: ValueId) -> Option<ValueId> {
    (rw.number(a).is_some() && rw.number(b).is_none()).then(|| rw.value(OpKind::Binary(op, b, a)))
}

fn logic(rw: &mut Rewriter<'_>, op: BinaryOp, a: ValueId, b: ValueId) -> Option<ValueId> {
    if a == b {
        return Some(a);
    }
    let (known, other) = match (rw.def(a), rw.def(b)) {
        (OpKind::Bool(x), _) => (x, b),
        (_, OpKind::Bool(y)) => (y, a),
        (_, _) => return None,
    };
    let neutral = op == BinaryOp::And;
    Some(if known == neutral { other } else { rw.value(OpKind::Bool(known)) })
}

fn fma(rw: &mut Rewriter<'_>, a: ValueId, b: ValueId, c: ValueId) -> Option<ValueId> {
    let numbers = (rw.number(a), rw.number(b));
    let trivial = |x: Option<f64>| x == Some(1.0) || x == Some(-1.0);
    let gains = trivial(numbers.0) || trivial(numbers.1) || rw.number(c) == Some(0.0);
    gains.then(|| rw.fma(a, b, c))
}

fn select(rw: &mut Rewriter<'_>, c: ValueId, a: ValueId, b: ValueId) -> Option<ValueId> {
    if a == b {
        return Some(a);
    }
    if let OpKind::Bool(known) = rw.def(c) {
        return Some(if known { a } else { b });
    }
    let opposite = rw.as_unary(UnaryOp::Not, c)?;
    Some(rw.select(opposite, b, a))
}
