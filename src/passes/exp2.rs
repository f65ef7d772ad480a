//! `exp2`: exponentials to the base 2.
//!
//! In comes a program with `exp(x)` and `expm1(x)`; out goes one with `exp2(x * log2 e)` and `exp2m1(x * log2 e)`, so that
//! the factor joins the coefficients of `x`.
//! Never true here: an exponential of a constant changes (it folds as it stands), or a logarithm.
//!
//! Error: the rounding of the product, `|x|` half ulps of the result: what reducing `x` in the exponential itself
//! would have cost less.

use super::rewrite::rewrite;
use super::{Options, fields};
use crate::step::{OpKind, Program, UnaryOp};

/// Runs the pass.
pub fn run(program: &mut Program, _options: &Options) {
    fields::each_function(program, |program, function| {
        rewrite(program, function, |rw, _, kind| {
            let OpKind::Unary(op @ (UnaryOp::Exp | UnaryOp::Expm1), x) = kind else { return None };
            if rw.uniform(x) {
                return None;
            }
            let log2e = rw.constant(std::f64::consts::LOG2_E);
            let y = rw.mul(x, log2e);
            Some(rw.unary(if op == UnaryOp::Exp { UnaryOp::Exp2 } else { UnaryOp::Exp2m1 }, y))
        });
    });
}
