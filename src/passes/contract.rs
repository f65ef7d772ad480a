//! `contract`: a product and the sum it feeds become one fused operation.
//!
//! In comes a program; out goes one with `fma(a, b, c)` for `a * b + c`, and with negated operands for the differences.
//! Never true here: a product that has another use is computed twice.
//!
//! Error: one rounding less. Of two products in one sum the left one is fused, so that the choice is the same every
//! time.

use super::Options;
use super::rewrite::{Rewriter, rewrite};
use crate::step::{BinaryOp, OpKind, Program, ValueId};

/// Runs the pass.
pub fn run(program: &mut Program, _options: &Options) {
    for kernel in &mut program.kernels {
        rewrite(&program.fields, kernel, |rw, _, kind| match kind {
            OpKind::Binary(BinaryOp::Add, a, b) => match (product(rw, a), product(rw, b)) {
                (Some((x, y)), _) => Some(rw.fma(x, y, b)),
                (None, Some((x, y))) => Some(rw.fma(x, y, a)),
                (None, None) => None,
            },
            OpKind::Binary(BinaryOp::Sub, a, b) => match (product(rw, a), product(rw, b)) {
                (Some((x, y)), _) => {
                    let minus = rw.neg(b);
                    Some(rw.fma(x, y, minus))
                }
                (None, Some((x, y))) => {
                    let minus = rw.neg(x);
                    Some(rw.fma(minus, y, a))
                }
                (None, None) => None,
            },
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

/// The factors of a product with one use that is computed in the loop.
fn product(rw: &Rewriter<'_>, v: ValueId) -> Option<(ValueId, ValueId)> {
    let (a, b) = rw.as_binary(BinaryOp::Mul, v)?;
    // A number or a value that does not vary goes first, where negating it costs nothing in the loop.
    let (a, b) = if rw.uniform(b) && !rw.uniform(a) { (b, a) } else { (a, b) };
    (rw.single(v) && !rw.uniform(v)).then_some((a, b))
}
