//! `exp2`: exponentials to the base 2.
//!
//! In comes a program with `exp(x)` and `expm1(x)`; out goes one with `exp2(x * log2 e)` and `exp2m1(x * log2 e)`, so that
//! the factor joins the coefficients of `x`.
//! Never true here: an exponential of a constant changes (it folds as it stands), or a logarithm.
//!
//! Error: the rounding of the product, `|x|` half ulps of the result: what reducing `x` in the exponential itself
//! would have cost less.

use super::Options;
use super::rewrite::rewrite;
use crate::step::{OpKind, Program, UnaryOp};

/// Runs the pass.
pub fn run(program: &mut Program, _options: &Options) {
    for kernel in &mut program.kernels {
        rewrite(&program.fields, kernel, |rw, _, kind| {
            let (op, x) = match kind {
                OpKind::Unary(UnaryOp::Exp, x) => (UnaryOp::Exp2, x),
                OpKind::Unary(UnaryOp::Expm1, x) => (UnaryOp::Exp2m1, x),
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
            if rw.uniform(x) {
                return None;
            }
            let log2e = rw.constant(std::f64::consts::LOG2_E);
            let y = rw.mul(x, log2e);
            Some(rw.unary(op, y))
        });
    }
}
