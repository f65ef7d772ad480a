//! The meaning of every pure operation on single values.
//!
//! In come an operation and the values of its operands; out goes its result.
//! Never true here: a field, a cell or a time is looked at, or an ill-typed operand is guessed at (the result is `None`).

use super::OpKind;
use crate::operators::{Value, eval_binary, eval_fma, eval_unary};

impl Value {
    /// The operation that defines it without operands; a single has none.
    pub fn constant(self) -> Option<OpKind> {
        match self {
            Value::Real(x) => Some(OpKind::Const(x)),
            Value::Single(_) => None,
            Value::Mask(b) => Some(OpKind::Bool(b)),
        }
    }
}

/// The result of an operation whose operands are all known, or `None` if it is not pure or ill-typed.
pub fn eval(kind: &OpKind, operands: &[Value]) -> Option<Value> {
    match (*kind, operands) {
        (OpKind::Const(x), []) => Some(Value::Real(x)),
        (OpKind::Bool(b), []) => Some(Value::Mask(b)),
        (OpKind::Unary(op, _), &[a]) => eval_unary(op, a),
        (OpKind::Approximate(function, tolerance, _), &[a]) => Some(Value::Real(function.of(tolerance, a.real()?))),
        (OpKind::Binary(op, ..), &[a, b]) => eval_binary(op, a, b),
        (OpKind::Fma(..), &[a, b, c]) => eval_fma(a, b, c),
        (OpKind::Select(..), &[c, a, b]) => {
            let chosen = if c.mask()? { a } else { b };
            Some(Value::Real(chosen.real()?))
        }
        (OpKind::Spike(..), &[x]) | (OpKind::SpikeBy(..), &[x, _]) => Some(Value::Mask(x.real()? > 0.0)),
        (
            OpKind::Const(_)
            | OpKind::Bool(_)
            | OpKind::Unary(..)
            | OpKind::Approximate(..)
            | OpKind::Binary(..)
            | OpKind::Fma(..)
            | OpKind::Select(..)
            | OpKind::Spike(..)
            | OpKind::SpikeBy(..),
            _,
        ) => None,
        (
            OpKind::Field(_)
            | OpKind::Gather(..)
            | OpKind::Back(..)
            | OpKind::Time
            | OpKind::StepIndex
            | OpKind::Index
            | OpKind::Draw(..)
            | OpKind::Sample(..)
            | OpKind::Store(..)
            | OpKind::Accumulate(..)
            | OpKind::Emit(..),
            _,
        ) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Value::{Mask, Real, Single};

    #[test]
    fn spikes_are_what_is_above_zero() {
        use crate::step::{Surrogate, ValueId};
        for surrogate in [Surrogate::None, Surrogate::FastSigmoid(25.0), Surrogate::StraightThrough] {
            let spike = |x| eval(&OpKind::Spike(surrogate, ValueId(0)), &[x]);
            for (x, fires) in [(1e-300, true), (f64::INFINITY, true), (0.0, false), (-0.0, false), (-1.0, false)] {
                assert_eq!(spike(Real(x)), Some(Mask(fires)), "{x}");
            }
            assert_eq!(spike(Real(f64::NAN)), Some(Mask(false)));
            assert_eq!(spike(Single(1.0)), None);
            assert_eq!(spike(Mask(true)), None);
        }
    }
}
