//! `exp2`: exponentials to the base 2.
//!
//! In comes a program with `exp(x)` and `expm1(x)`; out goes one with `exp2(x * log2 e)` and `exp2m1(x * log2 e)`, so that
//! the factor joins the coefficients of `x`. Where `expm1(z s)` is divided by `z`, as in a step by exponentials, `s log2 e exp2rel(z s log2 e)` takes
//! the place of the quotient: a polynomial as long as the exponent is small, and right at 0, so that a `nonzero` around `z` may go.
//! Never true here: an exponential of a constant changes (it folds as it stands), or a logarithm.
//!
//! Error: the rounding of the product, `|x|` half ulps of the result: what reducing `x` in the exponential itself
//! would have cost less.

use super::rewrite::{Rewriter, rewrite};
use super::{Options, fields};
use crate::step::{BinaryOp, OpKind, Program, UnaryOp, ValueId};

/// Runs the pass.
pub fn run(program: &mut Program, _options: &Options) {
    fields::each_function(program, |program, function| {
        rewrite(program, function, |rw, _, kind| match kind {
            OpKind::Unary(op @ (UnaryOp::Exp | UnaryOp::Expm1), x) if !rw.uniform(x) => {
                let y = in_octaves(rw, x);
                Some(rw.unary(if op == UnaryOp::Exp { UnaryOp::Exp2 } else { UnaryOp::Exp2m1 }, y))
            }
            OpKind::Binary(BinaryOp::Div, above, z) => relative(rw, above, z),
            _ => None,
        });
    });
}

fn in_octaves(rw: &mut Rewriter<'_>, x: ValueId) -> ValueId {
    let log2e = rw.constant(std::f64::consts::LOG2_E);
    rw.mul(x, log2e)
}

/// `expm1(z s) / z`, whose exponential is one to the base 2 already.
fn relative(rw: &mut Rewriter<'_>, above: ValueId, z: ValueId) -> Option<ValueId> {
    let exponent = rw.as_unary(UnaryOp::Exp2m1, above)?;
    let (x, _) = rw.as_binary(BinaryOp::Mul, exponent)?;
    let scale = beside(rw, x, z)?;
    let scale = in_octaves(rw, scale);
    let z = rw.as_unary(UnaryOp::Nonzero, z).unwrap_or(z);
    let exponent = rw.mul(z, scale);
    let quotient = rw.unary(UnaryOp::Exp2rel, exponent);
    Some(rw.mul(quotient, scale))
}

/// The other factor of a product with `z`.
fn beside(rw: &mut Rewriter<'_>, product: ValueId, z: ValueId) -> Option<ValueId> {
    if product == z {
        return Some(rw.constant(1.0));
    }
    if let Some(x) = rw.as_unary(UnaryOp::Neg, product) {
        let other = beside(rw, x, z)?;
        return Some(rw.neg(other));
    }
    let (a, b) = rw.as_binary(BinaryOp::Mul, product)?;
    let (part, other) = match beside(rw, a, z) {
        Some(part) => (part, b),
        None => (beside(rw, b, z)?, a),
    };
    Some(rw.mul(part, other))
}
