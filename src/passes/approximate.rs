//! `approximate`: functions with shorter polynomials.
//!
//! In comes a program and a tolerance; out goes one in whose steps exponentials and logarithms of what differs between cells are
//! within the tolerance.
//! Never true here: divisions, roots, trigonometric functions or powers change, or `init` and `observe`, which run once.
//!
//! A function that reaches a difference with a number is computed within 1e-9 at 1e-6 too, because the difference magnifies its
//! error (see `cancellation`). Division stays as it is: were it as fast as a product, an olive cell at 1e-9 would gain 4 % and a squid
//! axon 23 %, of which estimates, their refinement and their limits would take most.

use super::Options;
use super::cancellation::cancelled;
use super::rewrite::rewrite;
use crate::step::{Function, OpKind, Program, Role, Tolerance, UnaryOp};

/// Runs the pass.
pub fn run(program: &mut Program, options: &Options) {
    let Some(tolerance) = options.tolerance else { return };
    for kernel in program.kernels.iter_mut().filter(|kernel| kernel.role == Role::Step) {
        let cancelled = cancelled(&program.fields, kernel);
        rewrite(&program.fields, kernel, |rw, id, kind| {
            let OpKind::Unary(op, x) = kind else { return None };
            let function = function(op).filter(|_| !rw.uniform(x))?;
            let tolerance = if cancelled.contains(&id) { Tolerance::Nano } else { tolerance };
            Some(rw.value(OpKind::Approximate(function, tolerance, x)))
        });
    }
}

/// The function of an operator, if it has shorter polynomials.
pub(super) fn function(op: UnaryOp) -> Option<Function> {
    match op {
        UnaryOp::Exp => Some(Function::Exp),
        UnaryOp::Exp2 => Some(Function::Exp2),
        UnaryOp::Expm1 => Some(Function::Expm1),
        UnaryOp::Exp2m1 => Some(Function::Exp2m1),
        UnaryOp::Ln => Some(Function::Ln),
        UnaryOp::Log2 => Some(Function::Log2),
        UnaryOp::Log10 => Some(Function::Log10),
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
