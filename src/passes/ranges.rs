//! How large values can be.
//!
//! In comes an operation and the ranges of its operands; out comes an interval that holds its value.
//! Never true here: something is assumed about a parameter (a uniform, constant or data field): those may be anything.
//!
//! The one assumption is that every state lies in [-500, 500] (membrane voltages in mV, gates, concentrations), be it
//! loaded or about to be stored. It shows that exponentials do not underflow. Never that terms of a sum do not cancel, because one of
//! them is larger than all states, nor a comparison that the model's author wrote about a state's size.

use crate::runtime::math;
use crate::step::{BinaryOp, Distribution, Elementary, Field, FieldKind, OpKind, UnaryOp, ValueId};

/// The closed interval `[lo, hi]`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Range {
    /// The least value.
    pub lo: f64,
    /// The greatest value.
    pub hi: f64,
}

/// How large a state is assumed to be at most.
pub const STATE_BOUND: f64 = 500.0;

impl Range {
    /// Anything.
    pub const ALL: Range = Range { lo: f64::NEG_INFINITY, hi: f64::INFINITY };

    /// What a state is assumed to be.
    pub const STATE: Range = Range { lo: -STATE_BOUND, hi: STATE_BOUND };

    /// All numbers that have the sign of one; `None` for 0 and NaN.
    pub fn of_sign(x: f64) -> Option<Range> {
        let positive = Range { lo: f64::MIN_POSITIVE, hi: f64::INFINITY };
        if x > 0.0 {
            return Some(positive);
        }
        (x < 0.0).then(|| positive.negated())
    }

    fn new(lo: f64, hi: f64) -> Range {
        // An operation such as 0 * infinity on bounds says nothing.
        if lo.is_nan() || hi.is_nan() { Range::ALL } else { Range { lo, hi } }
    }

    /// Is every value greater than 0, by more than underflow could take away?
    pub fn positive(self) -> bool {
        self.lo >= f64::MIN_POSITIVE
    }

    /// Is every value positive, or every value negative?
    pub fn excludes_zero(self) -> bool {
        self.positive() || self.negated().positive()
    }

    /// Is no value one that [`math::nonzero`] changes?
    pub fn is_far_from_zero(self) -> bool {
        self.lo >= math::NEARLY_ZERO || self.hi <= -math::NEARLY_ZERO
    }

    /// The greatest absolute value.
    pub fn magnitude(self) -> f64 {
        self.lo.abs().max(self.hi.abs())
    }

    /// What of this lies in the other; the other, if that is nothing.
    pub fn within(self, other: Range) -> Range {
        let (lo, hi) = (self.lo.max(other.lo), self.hi.min(other.hi));
        if lo <= hi { Range { lo, hi } } else { other }
    }

    fn hull(values: &[f64]) -> Range {
        if values.iter().any(|v| v.is_nan()) {
            return Range::ALL;
        }
        let lo = values.iter().copied().fold(f64::INFINITY, f64::min);
        let hi = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        Range { lo, hi }
    }

    /// The range of sums. Of terms that may differ in sign nothing tells which is larger: states may be larger than they are assumed to be.
    fn sum(self, other: Range) -> Range {
        let sum = self.shifted(other);
        if self.has_the_sign_of(other) || sum.lo <= 0.0 && sum.hi >= 0.0 {
            return sum;
        }
        Range { lo: -sum.magnitude(), hi: sum.magnitude() }
    }

    /// Have all values of both one sign?
    fn has_the_sign_of(self, other: Range) -> bool {
        self.lo >= 0.0 && other.lo >= 0.0 || self.hi <= 0.0 && other.hi <= 0.0
    }

    /// The range of sums that follows from the bounds of both.
    fn shifted(self, other: Range) -> Range {
        Range::new(self.lo + other.lo, self.hi + other.hi)
    }

    /// The range of products. (An infinite bound times one of 0 is 0: numbers come as near to both as they like, but not there.)
    pub fn times(self, other: Range) -> Range {
        let product = |a: f64, b: f64| if a == 0.0 || b == 0.0 { 0.0 } else { a * b };
        let (a, b) = (self, other);
        Range::hull(&[product(a.lo, b.lo), product(a.lo, b.hi), product(a.hi, b.lo), product(a.hi, b.hi)])
    }

    fn negated(self) -> Range {
        Range { lo: -self.hi, hi: -self.lo }
    }

    /// A bound of 0 is one that was reached by underflow: its reciprocal is infinite, with the sign of the others.
    fn reciprocal(self) -> Range {
        if self.lo >= 0.0 {
            Range::new(1.0 / self.hi, 1.0 / self.lo.abs())
        } else if self.hi <= 0.0 {
            Range::new(-1.0 / self.hi.abs(), 1.0 / self.lo)
        } else {
            Range::ALL
        }
    }
}

/// The range of an operation's value; truth values get no useful one.
pub fn of(kind: &OpKind, fields: &[Field], range: impl Fn(ValueId) -> Range) -> Range {
    match *kind {
        OpKind::Const(c) => Range::new(c, c),
        OpKind::Field(f) | OpKind::Gather(f, _) | OpKind::Back(f, ..) => match fields[f.0 as usize].kind {
            FieldKind::State => Range::STATE,
            FieldKind::Uniform
            | FieldKind::Series
            | FieldKind::Data
            | FieldKind::Const
            | FieldKind::Temp
            | FieldKind::Output
            | FieldKind::Event => Range::ALL,
        },
        OpKind::Time | OpKind::StepIndex | OpKind::Index => Range { lo: 0.0, hi: f64::INFINITY },
        OpKind::Draw(distribution, _, _) => match distribution {
            Distribution::Uniform => Range { lo: 0.0, hi: 1.0 },
            Distribution::Exponential => Range { lo: 0.0, hi: f64::INFINITY },
            Distribution::Normal => Range::ALL,
        },
        OpKind::Unary(op, a) => unary(op, range(a)),
        OpKind::Approximate(function, _, _) => match function {
            Elementary::Exp | Elementary::Exp2 | Elementary::Exp2rel => Range { lo: 0.0, hi: f64::INFINITY },
            Elementary::Expm1 | Elementary::Exp2m1 | Elementary::Ln | Elementary::Log2 | Elementary::Log10 => {
                Range::ALL
            }
        },
        OpKind::Binary(BinaryOp::Mul, a, b) if a == b => {
            let size = range(a).magnitude();
            Range::new(0.0, size * size)
        }
        OpKind::Binary(op, a, b) => binary(op, range(a), range(b)),
        OpKind::Fma(a, b, c) => range(a).times(range(b)).sum(range(c)),
        OpKind::Select(_, a, b) => {
            let (a, b) = (range(a), range(b));
            Range::hull(&[a.lo, a.hi, b.lo, b.hi])
        }
        OpKind::Bool(_)
        | OpKind::Spike(..)
        | OpKind::SpikeBy(..)
        | OpKind::Sample(..)
        | OpKind::Store(..)
        | OpKind::Accumulate(..)
        | OpKind::Emit(..) => Range::ALL,
    }
}

/// Do both sides of a sum have one sign, whatever the cell?
pub fn same_sign(kind: &OpKind, range: impl Fn(ValueId) -> Range) -> bool {
    if let OpKind::Binary(op @ (BinaryOp::Add | BinaryOp::Sub), a, b) = *kind {
        let second = if op == BinaryOp::Add { range(b) } else { range(b).negated() };
        return range(a).has_the_sign_of(second);
    }
    matches!(*kind, OpKind::Fma(a, b, c) if range(a).times(range(b)).has_the_sign_of(range(c)))
}

fn unary(op: UnaryOp, a: Range) -> Range {
    let log2e = std::f64::consts::LOG2_E;
    match op {
        UnaryOp::Neg => a.negated(),
        UnaryOp::Abs => {
            let least = if a.lo > 0.0 { a.lo } else { (-a.hi).max(0.0) };
            Range::new(least, a.magnitude())
        }
        UnaryOp::Sqrt => Range::new(0.0, a.hi.max(1.0)),
        UnaryOp::Floor => Range::new(a.lo - 1.0, a.hi),
        UnaryOp::Ceil => Range::new(a.lo, a.hi + 1.0),
        UnaryOp::Exp2 => Range::new(power_of_two((a.lo).floor()), power_of_two((a.hi).ceil())),
        UnaryOp::Exp => unary(UnaryOp::Exp2, Range::new(a.lo * log2e, a.hi * log2e)),
        UnaryOp::Exp2m1 => unary(UnaryOp::Exp2, a).shifted(Range { lo: -1.0, hi: -1.0 }),
        // It rises from 0 to infinity.
        UnaryOp::Exp2rel => Range { lo: 0.0, hi: f64::INFINITY },
        UnaryOp::Expm1 => unary(UnaryOp::Exp, a).shifted(Range { lo: -1.0, hi: -1.0 }),
        UnaryOp::Linoid => linoid(a),
        UnaryOp::Finite => Range::new(a.lo.min(0.0), a.hi.max(0.0)),
        UnaryOp::Nonzero => Range::new(a.lo.min(math::NEARLY_ZERO), a.hi.max(math::NEARLY_ZERO)),
        UnaryOp::Sin | UnaryOp::Cos | UnaryOp::Tanh => Range { lo: -1.0, hi: 1.0 },
        UnaryOp::Cosh => Range { lo: 1.0, hi: f64::INFINITY },
        UnaryOp::Narrow | UnaryOp::Widen => rounded(a),
        UnaryOp::Ln | UnaryOp::Log2 | UnaryOp::Log10 | UnaryOp::Tan | UnaryOp::Sinh | UnaryOp::Not => Range::ALL,
    }
}

/// Bounds that hold after rounding to single precision, or after arithmetic that rounded.
fn rounded(a: Range) -> Range {
    if a.lo >= 0.0 { Range { lo: 0.0, hi: f64::INFINITY } } else { Range::ALL }
}

/// `x / (e^x - 1)` falls from below `1 - x` (x < 0) through 1 to above `e^-x` (x > 0).
fn linoid(x: Range) -> Range {
    let least = power_of_two((-x.hi.max(0.0) * std::f64::consts::LOG2_E).floor());
    Range::new(least, 2.0 - x.lo.min(0.0))
}

fn binary(op: BinaryOp, a: Range, b: Range) -> Range {
    match op {
        BinaryOp::Add => a.sum(b),
        BinaryOp::Sub => a.sum(b.negated()),
        BinaryOp::Mul => a.times(b),
        BinaryOp::Div => a.times(b.reciprocal()),
        BinaryOp::Min => Range::new(a.lo.min(b.lo), a.hi.min(b.hi)),
        BinaryOp::Max => Range::new(a.lo.max(b.lo), a.hi.max(b.hi)),
        BinaryOp::Poisson => Range { lo: 0.0, hi: f64::INFINITY },
        BinaryOp::Pow
        | BinaryOp::Lt
        | BinaryOp::Le
        | BinaryOp::Gt
        | BinaryOp::Ge
        | BinaryOp::Eq
        | BinaryOp::Ne
        | BinaryOp::And
        | BinaryOp::Or => Range::ALL,
    }
}

/// `2^n` for a whole number, 0 or infinity beyond the normal numbers.
fn power_of_two(n: f64) -> f64 {
    if n < -1022.0 {
        0.0
    } else if n > 1023.0 {
        f64::INFINITY
    } else {
        f64::from_bits(((n as i64 + 1023) as u64) << 52)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exponentials_of_bounded_values_are_positive() {
        let x = Range { lo: -50.0, hi: 50.0 };
        assert!(unary(UnaryOp::Exp, x).positive());
        assert!(unary(UnaryOp::Linoid, x).positive());
        let sigmoid = Range { lo: 1.0, hi: 1.0 }.sum(unary(UnaryOp::Exp, x)).reciprocal();
        assert!(sigmoid.positive() && sigmoid.hi <= 1.0);
    }

    #[test]
    fn nothing_is_claimed_beyond_underflow() {
        assert!(!unary(UnaryOp::Exp, Range { lo: -800.0, hi: 0.0 }).positive());
        assert!(!unary(UnaryOp::Exp, Range::ALL).positive());
        assert!(!unary(UnaryOp::Expm1, Range { lo: 0.0, hi: 1.0 }).positive());
    }

    #[test]
    fn a_number_larger_than_all_states_cancels_no_less() {
        let constant = |x: f64| Range { lo: x, hi: x };
        for x in [600.0, -600.0, 0.0] {
            let sum = Range::STATE.sum(constant(x));
            assert!(!sum.excludes_zero() && sum.lo < 0.0 && sum.hi > 0.0, "{sum:?}");
        }
        assert!(constant(1.0).sum(unary(UnaryOp::Exp, Range::STATE)).positive());
    }

    #[test]
    fn a_square_is_not_negative_but_may_vanish() {
        let x = ValueId(0);
        let square = of(&OpKind::Binary(BinaryOp::Mul, x, x), &[], |_| Range { lo: -2.0, hi: 1.0 });
        assert_eq!(square, Range { lo: 0.0, hi: 4.0 });
        assert!(!square.positive());
    }
}
