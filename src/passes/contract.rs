//! `contract`: a product and the sum it feeds become one fused operation.
//!
//! In comes a program; out goes one with `fma(a, b, c)` for `a * b + c`, and with negated operands for the differences.
//! Never true here: a product that has another use is computed twice.
//!
//! Error: one rounding less. Of two products in one sum the left one is fused, so that the choice is the same every
//! time.

use super::rewrite::{Rewriter, rewrite};
use super::{Options, fields};
use crate::step::{BinaryOp, OpKind, Program, ValueId};

/// Runs the pass.
pub fn run(program: &mut Program, _options: &Options) {
    fields::each_function(program, |program, function| {
        rewrite(program, function, |rw, _, kind| {
            let OpKind::Binary(op @ (BinaryOp::Add | BinaryOp::Sub), a, b) = kind else { return None };
            match (product(rw, a), product(rw, b)) {
                (Some((x, y)), _) => {
                    let b = if op == BinaryOp::Sub { rw.neg(b) } else { b };
                    Some(rw.fma(x, y, b))
                }
                (None, Some((x, y))) => {
                    let x = if op == BinaryOp::Sub { rw.neg(x) } else { x };
                    Some(rw.fma(x, y, a))
                }
                (None, None) => None,
            }
        });
    });
}

/// The factors of a product with one use that is computed in the loop.
fn product(rw: &Rewriter<'_>, v: ValueId) -> Option<(ValueId, ValueId)> {
    let (a, b) = rw.as_binary(BinaryOp::Mul, v)?;
    // A number or a value that does not vary goes first, where negating it costs nothing in the loop.
    let (a, b) = if rw.uniform(b) && !rw.uniform(a) { (b, a) } else { (a, b) };
    (rw.single(v) && !rw.uniform(v)).then_some((a, b))
}
