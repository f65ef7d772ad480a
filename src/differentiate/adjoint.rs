//! The adjoint of every operation.
//!
//! In come an operation, its operands and its value as they are in the reverse region, and the adjoint of the value; out go the adjoints of the
//! operands that move, or why there are none.
//! Never true here: a field is looked at.
//!
//! An adjoint that a selection has made 0 stays 0, whatever it is multiplied by: `if x > 0 then sqrt(x) else 0` has the derivative 0 at
//! 0, not NaN. Such an adjoint is [`masked`](Adjoint::masked).

use crate::step::{BinaryOp, Elementary, OpKind, RegionBuilder, Surrogate, UnaryOp, ValueId};
use rustc_hash::FxHashMap as HashMap;
use std::f64::consts::{LN_2, LN_10};

/// The derivative of the loss in a value.
#[derive(Debug, Clone, Copy)]
pub(super) struct Adjoint {
    pub value: ValueId,
    /// Has a selection made it 0 for some elements?
    pub masked: bool,
}

/// An operation in the reverse region.
pub(super) struct Differentiated<'a> {
    pub b: &'a mut RegionBuilder,
    pub kind: OpKind,
    /// Its operands.
    pub operands: &'a [ValueId],
    /// Which of them move.
    pub moves: &'a [bool],
    /// Its value.
    pub y: ValueId,
    /// The adjoint of that.
    pub g: Adjoint,
}

impl Differentiated<'_> {
    /// The adjoints of operands, each with the number of the operand. A truth value counts as 1 or 0.
    pub(super) fn adjoints(mut self) -> Result<Vec<(usize, Adjoint)>, String> {
        match self.kind {
            OpKind::Unary(op, _) => self.unary(op),
            OpKind::Approximate(function, ..) => self.unary(match function {
                Elementary::Exp => UnaryOp::Exp,
                Elementary::Exp2 => UnaryOp::Exp2,
                Elementary::Expm1 => UnaryOp::Expm1,
                Elementary::Exp2m1 => UnaryOp::Exp2m1,
                Elementary::Exp2rel => UnaryOp::Exp2rel,
                Elementary::Ln => UnaryOp::Ln,
                Elementary::Log2 => UnaryOp::Log2,
                Elementary::Log10 => UnaryOp::Log10,
            }),
            OpKind::Binary(op, ..) => self.binary(op),
            OpKind::Fma(..) => {
                let (a, b, g) = (self.operands[0], self.operands[1], self.g.value);
                let mut out = Vec::new();
                if self.moves[0] {
                    let by = self.b.binary(BinaryOp::Mul, g, b);
                    out.push((0, self.kept(by)));
                }
                if self.moves[1] {
                    let by = self.b.binary(BinaryOp::Mul, g, a);
                    out.push((1, self.kept(by)));
                }
                if self.moves[2] {
                    out.push((2, self.g));
                }
                Ok(out)
            }
            OpKind::Select(..) => Ok(self.select()),
            OpKind::Spike(surrogate, _) => {
                let Some(slope) = surrogate_slope(self.b, surrogate, self.operands[0]) else { return Ok(Vec::new()) };
                let by = self.b.binary(BinaryOp::Mul, self.g.value, slope);
                Ok(vec![(0, self.kept(by))])
            }
            OpKind::SpikeBy(..) => {
                let by = self.b.binary(BinaryOp::Mul, self.g.value, self.operands[1]);
                Ok(vec![(0, self.kept(by))])
            }
            OpKind::Sample(..) => Err("the time at which a series is read depends on what is fitted".into()),
            OpKind::Const(_)
            | OpKind::Bool(_)
            | OpKind::Time
            | OpKind::StepIndex
            | OpKind::Index
            | OpKind::Draw(..)
            | OpKind::Field(_)
            | OpKind::Gather(..)
            | OpKind::Back(..)
            | OpKind::Store(..)
            | OpKind::Accumulate(..)
            | OpKind::Emit(..) => Ok(Vec::new()),
        }
    }

    /// An adjoint that was made of the value's by multiplying it: 0 where that is.
    fn kept(&mut self, value: ValueId) -> Adjoint {
        kept(self.b, self.g, value)
    }

    fn times(&mut self, factor: f64) -> ValueId {
        let factor = self.b.constant(factor);
        self.b.binary(BinaryOp::Mul, self.g.value, factor)
    }

    /// The adjoint where a condition holds, 0 elsewhere; or the other way round.
    fn where_(&mut self, condition: ValueId, holds: bool) -> Adjoint {
        let zero = self.b.constant(0.0);
        let (yes, no) = if holds { (self.g.value, zero) } else { (zero, self.g.value) };
        Adjoint { value: self.b.select(condition, yes, no), masked: true }
    }

    fn unary(&mut self, op: UnaryOp) -> Result<Vec<(usize, Adjoint)>, String> {
        let (x, y, g) = (self.operands[0], self.y, self.g.value);
        let b = &mut *self.b;
        let by = match op {
            UnaryOp::Neg => b.unary(UnaryOp::Neg, g),
            UnaryOp::Nonzero => return Ok(vec![(0, self.g)]),
            UnaryOp::Abs => {
                let zero = b.constant(0.0);
                let [below, above] = [BinaryOp::Lt, BinaryOp::Gt].map(|op| b.binary(op, x, zero));
                let minus = b.unary(UnaryOp::Neg, g);
                let corner = b.select(above, g, zero);
                b.select(below, minus, corner)
            }
            UnaryOp::Sqrt => {
                let twice = b.binary(BinaryOp::Add, y, y);
                b.binary(BinaryOp::Div, g, twice)
            }
            UnaryOp::Exp => b.binary(BinaryOp::Mul, g, y),
            UnaryOp::Exp2 => {
                let gy = b.binary(BinaryOp::Mul, g, y);
                let ln2 = b.constant(LN_2);
                b.binary(BinaryOp::Mul, gy, ln2)
            }
            // Not of `y + 1`, which has lost what is small.
            UnaryOp::Expm1 => {
                let e = b.unary(UnaryOp::Exp, x);
                b.binary(BinaryOp::Mul, g, e)
            }
            UnaryOp::Exp2m1 => {
                let e = b.unary(UnaryOp::Exp2, x);
                let ge = b.binary(BinaryOp::Mul, g, e);
                let ln2 = b.constant(LN_2);
                b.binary(BinaryOp::Mul, ge, ln2)
            }
            UnaryOp::Ln => b.binary(BinaryOp::Div, g, x),
            UnaryOp::Log2 | UnaryOp::Log10 => {
                let scaled = self.times(1.0 / if op == UnaryOp::Log2 { LN_2 } else { LN_10 });
                self.b.binary(BinaryOp::Div, scaled, x)
            }
            UnaryOp::Sin => {
                let cos = b.unary(UnaryOp::Cos, x);
                b.binary(BinaryOp::Mul, g, cos)
            }
            UnaryOp::Cos => {
                let sin = b.unary(UnaryOp::Sin, x);
                let minus = b.unary(UnaryOp::Neg, g);
                b.binary(BinaryOp::Mul, minus, sin)
            }
            UnaryOp::Tan => {
                let square = b.binary(BinaryOp::Mul, y, y);
                let slope = b.constant(1.0);
                let slope = b.binary(BinaryOp::Add, slope, square);
                b.binary(BinaryOp::Mul, g, slope)
            }
            UnaryOp::Sinh => {
                let cosh = b.unary(UnaryOp::Cosh, x);
                b.binary(BinaryOp::Mul, g, cosh)
            }
            UnaryOp::Cosh => {
                let sinh = b.unary(UnaryOp::Sinh, x);
                b.binary(BinaryOp::Mul, g, sinh)
            }
            // Not `1 - y^2`, which has lost what is small.
            UnaryOp::Tanh => {
                let cosh = b.unary(UnaryOp::Cosh, x);
                let once = b.binary(BinaryOp::Div, g, cosh);
                b.binary(BinaryOp::Div, once, cosh)
            }
            UnaryOp::Linoid => {
                let slope = linoid_slope(b, x, y);
                b.binary(BinaryOp::Mul, g, slope)
            }
            // ln 2 over the linoid of x ln 2.
            UnaryOp::Exp2rel => {
                let ln2 = b.constant(LN_2);
                let (in_e, linoid) = (b.binary(BinaryOp::Mul, x, ln2), b.binary(BinaryOp::Div, ln2, y));
                let slope = linoid_slope(b, in_e, linoid);
                let minus = b.unary(UnaryOp::Neg, g);
                let (by, square) = (b.binary(BinaryOp::Mul, minus, slope), b.binary(BinaryOp::Mul, y, y));
                b.binary(BinaryOp::Mul, by, square)
            }
            UnaryOp::Finite => {
                let none = b.binary(BinaryOp::Sub, x, x);
                let zero = b.constant(0.0);
                let finite = b.binary(BinaryOp::Eq, none, zero);
                return Ok(vec![(0, self.where_(finite, true))]);
            }
            UnaryOp::Narrow | UnaryOp::Widen => {
                return Err("numbers of single precision are not differentiated".into());
            }
            UnaryOp::Not => b.unary(UnaryOp::Neg, g),
            UnaryOp::Floor | UnaryOp::Ceil => return Ok(Vec::new()),
        };
        Ok(vec![(0, self.kept(by))])
    }

    fn binary(&mut self, op: BinaryOp) -> Result<Vec<(usize, Adjoint)>, String> {
        let ([x, z], y, g) = ([self.operands[0], self.operands[1]], self.y, self.g.value);
        let [of_x, of_z] = [self.moves[0], self.moves[1]];
        let mut out = Vec::new();
        match op {
            BinaryOp::Add => out.extend([(0, self.g), (1, self.g)]),
            BinaryOp::Sub => {
                out.push((0, self.g));
                if of_z {
                    let minus = self.b.unary(UnaryOp::Neg, g);
                    out.push((1, Adjoint { value: minus, ..self.g }));
                }
            }
            BinaryOp::Mul => {
                for (moves, number, other) in [(of_x, 0, z), (of_z, 1, x)] {
                    if moves {
                        let by = self.b.binary(BinaryOp::Mul, g, other);
                        out.push((number, self.kept(by)));
                    }
                }
            }
            BinaryOp::Div => {
                let by = self.b.binary(BinaryOp::Div, g, z);
                if of_x {
                    out.push((0, self.kept(by)));
                }
                if of_z {
                    let by = self.b.binary(BinaryOp::Mul, by, y);
                    let by = self.b.unary(UnaryOp::Neg, by);
                    out.push((1, self.kept(by)));
                }
            }
            BinaryOp::Pow => {
                if of_x {
                    let one = self.b.constant(1.0);
                    let less = self.b.binary(BinaryOp::Sub, z, one);
                    let power = self.b.binary(BinaryOp::Pow, x, less);
                    let slope = self.b.binary(BinaryOp::Mul, z, power);
                    let by = self.b.binary(BinaryOp::Mul, g, slope);
                    out.push((0, self.kept(by)));
                }
                if of_z {
                    let ln = self.b.unary(UnaryOp::Ln, x);
                    let slope = self.b.binary(BinaryOp::Mul, y, ln);
                    let by = self.b.binary(BinaryOp::Mul, g, slope);
                    // 0 to a power is 0 around it, too.
                    let zero = self.b.constant(0.0);
                    let some = self.b.binary(BinaryOp::Ne, y, zero);
                    let by = self.b.select(some, by, zero);
                    out.push((1, self.kept(by)));
                }
            }
            BinaryOp::Min | BinaryOp::Max => {
                let first = if op == BinaryOp::Min { BinaryOp::Lt } else { BinaryOp::Gt };
                let first = self.b.binary(first, x, z);
                out.extend([(0, self.where_(first, true)), (1, self.where_(first, false))]);
            }
            BinaryOp::Poisson => {
                return Err("how many events there are is drawn, with a mean that depends on what is fitted".into());
            }
            BinaryOp::Lt | BinaryOp::Le | BinaryOp::Gt | BinaryOp::Ge | BinaryOp::Eq | BinaryOp::Ne => {}
            // What the other one leaves open.
            BinaryOp::And | BinaryOp::Or => {
                for (moves, number, other) in [(of_x, 0, z), (of_z, 1, x)] {
                    if moves {
                        out.push((number, self.where_(other, op == BinaryOp::And)));
                    }
                }
            }
        }
        Ok(out)
    }

    fn select(&mut self) -> Vec<(usize, Adjoint)> {
        let [condition, yes, no] = [self.operands[0], self.operands[1], self.operands[2]];
        let mut out = vec![(1, self.where_(condition, true)), (2, self.where_(condition, false))];
        if self.moves[0] {
            let jump = self.b.binary(BinaryOp::Sub, yes, no);
            let by = self.b.binary(BinaryOp::Mul, self.g.value, jump);
            out.push((0, self.kept(by)));
        }
        out
    }
}

/// `(e^z - 1) / b` with `z = b s`, or with `z = b`: what methods go by that follow linear equations. Part by part its derivative would be the small
/// difference of large numbers where `z` is small.
pub(super) struct Relative {
    z: ValueId,
    b: ValueId,
    s: Option<ValueId>,
}

impl Relative {
    /// Is an operation one?
    pub(super) fn of(kind: &OpKind, definition: &HashMap<ValueId, &OpKind>) -> Option<Relative> {
        let OpKind::Binary(BinaryOp::Div, e, b) = *kind else { return None };
        let Some(OpKind::Unary(UnaryOp::Expm1, z)) = definition.get(&e) else { return None };
        let s = match definition.get(z) {
            _ if *z == b => None,
            Some(OpKind::Binary(BinaryOp::Mul, x, y)) if *x == b => Some(*y),
            Some(OpKind::Binary(BinaryOp::Mul, x, y)) if *y == b => Some(*x),
            Some(_) | None => return None,
        };
        Some(Relative { z: *z, b, s })
    }

    /// What it is made of: `b` and `s`.
    pub(super) fn operands(&self) -> impl Iterator<Item = ValueId> + use<> {
        [Some(self.b), self.s].into_iter().flatten()
    }

    /// The adjoints of `b` and `s`; `values` has them in the reverse region.
    pub(super) fn adjoints(
        &self,
        b: &mut RegionBuilder,
        values: &HashMap<ValueId, ValueId>,
        g: Adjoint,
    ) -> Vec<(ValueId, Adjoint)> {
        let z = values[&self.z];
        let slope = relative_slope(b, z);
        let by = b.binary(BinaryOp::Mul, g.value, slope);
        let Some(s) = self.s else { return vec![(self.b, kept(b, g, by))] };
        let by = b.binary(BinaryOp::Mul, by, values[&s]);
        let of_b = b.binary(BinaryOp::Mul, by, values[&s]);
        let e = b.unary(UnaryOp::Exp, z);
        let of_s = b.binary(BinaryOp::Mul, g.value, e);
        vec![(self.b, kept(b, g, of_b)), (s, kept(b, g, of_s))]
    }
}

/// The derivative of `(e^z - 1) / z`: `(e^z - (e^z - 1) / z) / z`, near 0 its series, the sum of `(k + 1) z^k / (k + 2)!`.
fn relative_slope(b: &mut RegionBuilder, z: ValueId) -> ValueId {
    let (power, less) = (b.unary(UnaryOp::Exp, z), b.unary(UnaryOp::Expm1, z));
    let ratio = b.binary(BinaryOp::Div, less, z);
    let rest = b.binary(BinaryOp::Sub, power, ratio);
    let far = b.binary(BinaryOp::Div, rest, z);
    // 1/2, 2/3!, 3/4!, ...
    let series: Vec<f64> = (0..12)
        .scan(1.0, |factorial, k| {
            Some(
                (f64::from(k) + 1.0) / {
                    *factorial *= f64::from(k) + 2.0;
                    *factorial
                },
            )
        })
        .collect();
    let mut near = b.constant(series[11]);
    for coefficient in series[..11].iter().rev() {
        let coefficient = b.constant(*coefficient);
        near = b.value(OpKind::Fma(near, z, coefficient));
    }
    let size = b.unary(UnaryOp::Abs, z);
    let limit = b.constant(0.5);
    let is_near = b.binary(BinaryOp::Lt, size, limit);
    b.select(is_near, near, far)
}

/// An adjoint that was made of another one by multiplying it: 0 where that is.
fn kept(b: &mut RegionBuilder, g: Adjoint, value: ValueId) -> Adjoint {
    if !g.masked {
        return Adjoint { value, masked: false };
    }
    let zero = b.constant(0.0);
    let there = b.binary(BinaryOp::Ne, g.value, zero);
    Adjoint { value: b.select(there, value, zero), masked: true }
}

/// What stands for the derivative of a spike at `x`, as [`Surrogate`] says; none if it is 0. Written so that it does not overflow.
fn surrogate_slope(b: &mut RegionBuilder, surrogate: Surrogate, x: ValueId) -> Option<ValueId> {
    let one = b.constant(1.0);
    let scaled = |b: &mut RegionBuilder, k: f64| {
        let k = b.constant(k);
        b.binary(BinaryOp::Mul, k, x)
    };
    Some(match surrogate {
        Surrogate::None => return None,
        Surrogate::FastSigmoid(k) => {
            let kx = scaled(b, k);
            let kx = b.unary(UnaryOp::Abs, kx);
            let d = b.binary(BinaryOp::Add, one, kx);
            let once = b.binary(BinaryOp::Div, one, d);
            b.binary(BinaryOp::Mul, once, once)
        }
        Surrogate::Arctan(k) => {
            let kx = scaled(b, k);
            let d = b.binary(BinaryOp::Mul, kx, kx);
            let d = b.binary(BinaryOp::Add, one, d);
            b.binary(BinaryOp::Div, one, d)
        }
        // 4 s (1 - s) is 1 / cosh(k x / 2)^2.
        Surrogate::Sigmoid(k) => {
            let half = scaled(b, k / 2.0);
            let cosh = b.unary(UnaryOp::Cosh, half);
            let once = b.binary(BinaryOp::Div, one, cosh);
            b.binary(BinaryOp::Mul, once, once)
        }
        Surrogate::Triangular(k) => {
            let kx = scaled(b, k);
            let kx = b.unary(UnaryOp::Abs, kx);
            let height = b.binary(BinaryOp::Sub, one, kx);
            let zero = b.constant(0.0);
            b.binary(BinaryOp::Max, height, zero)
        }
        Surrogate::StraightThrough => one,
    })
}

/// The derivative of `y = x / (e^x - 1)`: `y (1 - y - x) / x`, near 0 its series, whose coefficients are Bernoulli's numbers by factorials.
fn linoid_slope(b: &mut RegionBuilder, x: ValueId, y: ValueId) -> ValueId {
    let one = b.constant(1.0);
    let rest = b.binary(BinaryOp::Sub, one, y);
    let rest = b.binary(BinaryOp::Sub, rest, x);
    let ratio = b.binary(BinaryOp::Div, y, x);
    let far = b.binary(BinaryOp::Mul, ratio, rest);
    let square = b.binary(BinaryOp::Mul, x, x);
    let odd = [1.0 / 6.0, -1.0 / 180.0, 1.0 / 5040.0, -1.0 / 151_200.0, 1.0 / 4_790_016.0];
    let mut sum = b.constant(odd[4]);
    for coefficient in odd[..4].iter().rev() {
        let coefficient = b.constant(*coefficient);
        sum = b.value(OpKind::Fma(sum, square, coefficient));
    }
    let half = b.constant(-0.5);
    let near = b.value(OpKind::Fma(sum, x, half));
    let size = b.unary(UnaryOp::Abs, x);
    let limit = b.constant(0.25);
    let is_near = b.binary(BinaryOp::Lt, size, limit);
    b.select(is_near, near, far)
}
