//! `lower-linoid`: `linoid` becomes a quotient that is right at 0.
//!
//! In comes a program with `linoid(x)`; out goes one with `y * ln 2 / (2^y - 1)`, where `y = x * log2 e`, and
//! 2^-60 instead of what is nearer to 0.
//! Never true here: the quotient is 0/0, or infinite over infinite. `exp2m1` is accurate near 0 as long as numbers are normal, and
//! with 2^-60 the quotient is 1 to rounding, in f32 too. From 2^1024 on the denominator is infinite, so that `y` needs to be no larger.
//!
//! Error: the rounding of `y`, `|x|` half ulps, and that of the quotient.

use super::rewrite::{Rewriter, rewrite};
use super::{Options, fields};
use crate::step::{BinaryOp, OpKind, Program, UnaryOp, ValueId};

/// A power of two that overflows in f64, and in f32.
const HIGHEST: f64 = 1024.0;

/// Runs the pass.
pub fn run(program: &mut Program, _options: &Options) {
    fields::each_function(program, |program, function| {
        rewrite(program, function, |rw, _, kind| {
            if let OpKind::Unary(UnaryOp::Linoid, x) = kind { Some(quotient(rw, x)) } else { None }
        });
    });
}

fn quotient(rw: &mut Rewriter<'_>, x: ValueId) -> ValueId {
    let log2e = rw.constant(std::f64::consts::LOG2_E);
    let ln2 = rw.constant(std::f64::consts::LN_2);
    let y = rw.mul(x, log2e);
    let y = if rw.range(y).hi < HIGHEST {
        y
    } else {
        let most = rw.constant(HIGHEST);
        rw.value(OpKind::Binary(BinaryOp::Min, most, y))
    };
    let y = rw.unary(UnaryOp::Nonzero, y);
    let above = rw.mul(y, ln2);
    let below = rw.unary(UnaryOp::Exp2m1, y);
    rw.div(above, below)
}
