//! The meaning of operators on single values.
//!
//! In come an operator and its operands; out goes the result, bit for bit what the runtime computes in one lane.
//! Never true here: an ill-typed operand is guessed at (the result is `None`).

use super::{BinaryOp, UnaryOp};
use crate::runtime::lanes::{Lanes, Scalar};
use crate::runtime::math;

/// A value of either type.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Value {
    /// A real number.
    Real(f64),
    /// A real number of single precision.
    Single(f32),
    /// A truth value.
    Mask(bool),
}

impl Value {
    /// The number of double precision, unless it is something else.
    pub fn real(self) -> Option<f64> {
        match self {
            Value::Real(x) => Some(x),
            Value::Single(_) | Value::Mask(_) => None,
        }
    }

    /// The truth value, unless it is a number.
    pub fn mask(self) -> Option<bool> {
        match self {
            Value::Real(_) | Value::Single(_) => None,
            Value::Mask(b) => Some(b),
        }
    }
}

/// The result of a unary operation, or `None` if the operand has the wrong type.
pub fn eval_unary(op: UnaryOp, operand: Value) -> Option<Value> {
    match (op, operand) {
        (UnaryOp::Not, Value::Mask(b)) => Some(Value::Mask(!b)),
        (UnaryOp::Narrow, Value::Real(x)) => Some(Value::Single(x as f32)),
        (UnaryOp::Widen, Value::Single(x)) => Some(Value::Real(f64::from(x))),
        (_, Value::Real(x)) => unary(op, x).map(Value::Real),
        (_, Value::Single(x)) => unary(op, x).map(Value::Single),
        (_, Value::Mask(_)) => None,
    }
}

/// A function from numbers to numbers.
fn unary<S: Scalar>(op: UnaryOp, x: S) -> Option<S> {
    Some(match op {
        UnaryOp::Neg => -x,
        UnaryOp::Abs => Lanes::abs(x),
        UnaryOp::Sqrt => Lanes::sqrt(x),
        UnaryOp::Floor => Lanes::floor(x),
        UnaryOp::Ceil => Lanes::ceil(x),
        UnaryOp::Exp => math::exp(x),
        UnaryOp::Exp2 => math::exp2(x),
        UnaryOp::Expm1 => math::expm1(x),
        UnaryOp::Exp2m1 => math::exp2m1(x),
        UnaryOp::Exp2rel => math::exp2rel(x),
        UnaryOp::Ln => math::ln(x),
        UnaryOp::Log2 => math::log2(x),
        UnaryOp::Log10 => math::log10(x),
        UnaryOp::Sin => math::sin(x),
        UnaryOp::Cos => math::cos(x),
        UnaryOp::Tan => math::tan(x),
        UnaryOp::Sinh => math::sinh(x),
        UnaryOp::Cosh => math::cosh(x),
        UnaryOp::Tanh => math::tanh(x),
        UnaryOp::Linoid => math::linoid(x),
        UnaryOp::Nonzero => math::nonzero(x),
        UnaryOp::Finite => math::finite(x),
        UnaryOp::Narrow | UnaryOp::Widen | UnaryOp::Not => return None,
    })
}

/// The result of a binary operation, or `None` if an operand has the wrong type.
///
/// Comparisons with NaN are false, but `ne` is true; `min` and `max` are those of the runtime's lanes: the second operand
/// where either is NaN or both are zeros.
#[inline(always)]
pub fn eval_binary(op: BinaryOp, left: Value, right: Value) -> Option<Value> {
    if let (Value::Single(a), Value::Single(b)) = (left, right) {
        return single_binary(op, a, b).map(Value::Single);
    }
    let reals = || Some((left.real()?, right.real()?));
    let masks = || Some((left.mask()?, right.mask()?));
    Some(match op {
        BinaryOp::Add => reals().map(|(a, b)| Value::Real(a + b))?,
        BinaryOp::Sub => reals().map(|(a, b)| Value::Real(a - b))?,
        BinaryOp::Mul => reals().map(|(a, b)| Value::Real(a * b))?,
        BinaryOp::Div => reals().map(|(a, b)| Value::Real(a / b))?,
        BinaryOp::Pow => reals().map(|(a, b)| Value::Real(math::pow(a, b)))?,
        BinaryOp::Min => reals().map(|(a, b)| Value::Real(if a < b { a } else { b }))?,
        BinaryOp::Max => reals().map(|(a, b)| Value::Real(if a > b { a } else { b }))?,
        BinaryOp::Lt => reals().map(|(a, b)| Value::Mask(a < b))?,
        BinaryOp::Le => reals().map(|(a, b)| Value::Mask(a <= b))?,
        BinaryOp::Gt => reals().map(|(a, b)| Value::Mask(a > b))?,
        BinaryOp::Ge => reals().map(|(a, b)| Value::Mask(a >= b))?,
        BinaryOp::Eq => reals().map(|(a, b)| Value::Mask(a == b))?,
        BinaryOp::Ne => reals().map(|(a, b)| Value::Mask(a != b))?,
        BinaryOp::And => masks().map(|(a, b)| Value::Mask(a && b))?,
        BinaryOp::Or => masks().map(|(a, b)| Value::Mask(a || b))?,
        BinaryOp::Poisson => reals().map(|(a, b)| Value::Real(math::poisson(a, b)))?,
    })
}

/// Arithmetic of singles.
fn single_binary(op: BinaryOp, a: f32, b: f32) -> Option<f32> {
    match op {
        BinaryOp::Add => Some(a + b),
        BinaryOp::Sub => Some(a - b),
        BinaryOp::Mul => Some(a * b),
        BinaryOp::Div => Some(a / b),
        BinaryOp::Pow => Some(math::pow(a, b)),
        BinaryOp::Min => Some(Lanes::min(a, b)),
        BinaryOp::Max => Some(Lanes::max(a, b)),
        BinaryOp::Poisson => Some(math::poisson(a, b)),
        BinaryOp::Lt
        | BinaryOp::Le
        | BinaryOp::Gt
        | BinaryOp::Ge
        | BinaryOp::Eq
        | BinaryOp::Ne
        | BinaryOp::And
        | BinaryOp::Or => None,
    }
}

/// `a * b + c`, rounded once, or `None` if the operands are not of one number type.
pub fn eval_fma(a: Value, b: Value, c: Value) -> Option<Value> {
    if let (Value::Single(a), Value::Single(b), Value::Single(c)) = (a, b, c) {
        return Some(Value::Single(a.mul_add(b, c)));
    }
    Some(Value::Real(a.real()?.mul_add(b.real()?, c.real()?)))
}

/// A series at a time: linear between samples, constant before the first and after the last, `None` without samples.
///
/// At a time where two samples stand (a jump) the later one holds; a NaN time gives the last sample.
pub fn eval_series(samples: &[(f64, f64)], t: f64) -> Option<f64> {
    let &(_, last) = samples.last()?;
    // In order of time; nothing is later than NaN.
    let after = samples.partition_point(|&(at, _)| at <= t || t.is_nan());
    let Some(&(t1, y1)) = samples.get(after) else { return Some(last) };
    let Some(&(t0, y0)) = after.checked_sub(1).and_then(|i| samples.get(i)) else { return Some(y1) };
    Some(y0 + (y1 - y0) * ((t - t0) / (t1 - t0)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operators::Type;
    use Value::{Mask, Real, Single};

    #[test]
    fn every_operator_has_its_types() {
        for &(op, name) in UnaryOp::ALL {
            let (from, to) = op.types();
            for value in [Real(0.5), Single(0.5), Mask(true)] {
                let result = eval_unary(op, value).map(type_of);
                let single = matches!(value, Single(_)) && (from, to) == (Type::Real, Type::Real);
                let expected = if single { Some(Type::Single) } else { (type_of(value) == from).then_some(to) };
                assert_eq!(result, expected, "{name}");
            }
        }
        for &(op, name) in BinaryOp::ALL {
            let (from, to) = op.types();
            for value in [Real(0.5), Single(0.5), Mask(true)] {
                let result = eval_binary(op, value, value).map(type_of);
                let single = matches!(value, Single(_)) && (from, to) == (Type::Real, Type::Real);
                let expected = if single { Some(Type::Single) } else { (type_of(value) == from).then_some(to) };
                assert_eq!(result, expected, "{name}");
            }
            assert_eq!(eval_binary(op, Real(1.0), Mask(true)), None, "{name}");
            assert_eq!(eval_binary(op, Real(1.0), Single(1.0)), None, "{name}");
        }
    }

    fn type_of(value: Value) -> Type {
        match value {
            Real(_) => Type::Real,
            Single(_) => Type::Single,
            Mask(_) => Type::Mask,
        }
    }

    #[test]
    fn min_and_max_take_the_second_in_doubt() {
        let nan = f64::NAN;
        let bits = |op, a, b| eval_binary(op, Real(a), Real(b)).and_then(Value::real).map(f64::to_bits);
        for op in [BinaryOp::Min, BinaryOp::Max] {
            assert_eq!(bits(op, nan, 1.0), Some(1f64.to_bits()));
            assert_eq!(bits(op, 1.0, nan), Some(nan.to_bits()));
            assert_eq!(bits(op, 0.0, -0.0), Some((-0f64).to_bits()));
            assert_eq!(bits(op, -0.0, 0.0), Some(0f64.to_bits()));
        }
        assert_eq!(bits(BinaryOp::Min, 1.0, 2.0), Some(1f64.to_bits()));
        assert_eq!(bits(BinaryOp::Max, 1.0, 2.0), Some(2f64.to_bits()));
    }

    #[test]
    fn linoid_is_smooth_at_zero() {
        assert_eq!(eval_unary(UnaryOp::Linoid, Real(0.0)), Some(Real(1.0)));
        let near = eval_unary(UnaryOp::Linoid, Real(1e-9)).and_then(Value::real).unwrap_or(f64::NAN);
        assert!((near - (1.0 - 0.5e-9)).abs() < 1e-15);
    }

    #[test]
    fn series_are_linear_and_constant_outside() {
        let series = [(0.0, 1.0), (2.0, 3.0), (2.0, 10.0), (4.0, 0.0)];
        let at = |t| eval_series(&series, t);
        assert_eq!([-1.0, 0.0, 1.0, 2.0, 3.0, 4.0, 9.0].map(at), [1.0, 1.0, 2.0, 10.0, 5.0, 0.0, 0.0].map(Some));
        assert_eq!(eval_series(&[], 0.0), None);
    }
}
