//! `approximate`: functions with shorter polynomials.
//!
//! In comes a program and a tolerance; out goes one in whose steps exponentials and logarithms of what differs between cells are
//! within the tolerance.
//! Never true here: divisions, roots, trigonometric functions or powers change, or `init` and `observe`, which run once.
//!
//! A function that reaches a difference with a number is computed within 1e-9 at 1e-6 too, because the difference magnifies its
//! error (see `cancellation`). Division stays as it is: were it as fast as a product, an olive cell at 1e-9 would gain 4 % and a squid
//! axon 23 %, of which estimates, their refinement and their limits would take most.

use super::cancellation::cancelled;
use super::rewrite::rewrite;
use super::{Options, fields};
use crate::step::{Elementary, OpKind, Program, Role, Tolerance, UnaryOp};

/// Runs the pass.
pub fn run(program: &mut Program, options: &Options) {
    let Some(tolerance) = options.tolerance else { return };
    fields::each_function(program, |program, step| {
        if step.role != Role::Step {
            return;
        }
        let cancelled = cancelled(program, step);
        rewrite(program, step, |rw, id, kind| {
            let OpKind::Unary(op, x) = kind else { return None };
            let function = function(op).filter(|_| !rw.uniform(x))?;
            let tolerance = if cancelled.contains(&id) { Tolerance::Nano } else { tolerance };
            Some(rw.value(OpKind::Approximate(function, tolerance, x)))
        });
    });
}

/// The function of an operator, if it has shorter polynomials.
pub(super) fn function(op: UnaryOp) -> Option<Elementary> {
    match op {
        UnaryOp::Exp => Some(Elementary::Exp),
        UnaryOp::Exp2 => Some(Elementary::Exp2),
        UnaryOp::Expm1 => Some(Elementary::Expm1),
        UnaryOp::Exp2m1 => Some(Elementary::Exp2m1),
        UnaryOp::Exp2rel => Some(Elementary::Exp2rel),
        UnaryOp::Ln => Some(Elementary::Ln),
        UnaryOp::Log2 => Some(Elementary::Log2),
        UnaryOp::Log10 => Some(Elementary::Log10),
        UnaryOp::Neg
        | UnaryOp::Abs
        | UnaryOp::Sqrt
        | UnaryOp::Floor
        | UnaryOp::Ceil
        | UnaryOp::Sin
        | UnaryOp::Cos
        | UnaryOp::Tan
        | UnaryOp::Sinh
        | UnaryOp::Cosh
        | UnaryOp::Tanh
        | UnaryOp::Linoid
        | UnaryOp::Nonzero
        | UnaryOp::Finite
        | UnaryOp::Narrow
        | UnaryOp::Widen
        | UnaryOp::Not => None,
    }
}
