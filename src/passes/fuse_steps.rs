//! `fuse-steps`: many steps in one call.
//!
//! In come any program and [`Options::fuse`]; out goes one whose step kernels take up to so many steps per call, so that
//! states stay in registers from step to step.
//! Never true here: a kernel with more than one body region, or with an operation that looks at other cells, is fused.
//!
//! With one body region that looks at its own cell only, each cell can run through all steps before the next cell
//! starts: no cell can tell. The caller may still ask for fewer steps.

use super::Options;
use crate::step::{Kernel, OpKind, Phase, Program, Role};

/// Runs the pass.
pub fn run(program: &mut Program, options: &Options) {
    for kernel in program.kernels.iter_mut().filter(|k| k.role == Role::Step && is_fusable(k)) {
        kernel.steps = options.fuse.max(1);
    }
}

fn is_fusable(kernel: &Kernel) -> bool {
    let bodies = kernel.regions.iter().filter(|r| r.phase == Phase::Body).count();
    bodies == 1 && !kernel.ops().any(|op| crosses_cells(&op.kind))
}

/// Does an operation look at other cells than its own?
fn crosses_cells(kind: &OpKind) -> bool {
    match kind {
        OpKind::Const(_)
        | OpKind::Bool(_)
        | OpKind::Field(_)
        | OpKind::There(_)
        | OpKind::Time
        | OpKind::StepIndex
        | OpKind::Index
        | OpKind::Unary(..)
        | OpKind::Binary(..)
        | OpKind::Fma(..)
        | OpKind::Select(..)
        | OpKind::Draw(..)
        | OpKind::Sample(..)
        | OpKind::Store(..)
        | OpKind::Accumulate(..)
        | OpKind::Emit(..) => false,
    }
}
