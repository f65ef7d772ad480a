//! `fuse-steps`: many steps in one call.
//!
//! In come any program and [`Options::fuse`]; out goes one whose step kernels take up to so many steps per call, so that
//! states stay in registers from step to step.
//! Never true here: a kernel with more than one body region is fused.
//!
//! With one body region that looks at its own cell only, each cell can run through all steps before the next cell
//! starts: no cell can tell. With edge regions before it the cells take each step together, and what is saved is the calls.
//! The caller may still ask for fewer steps.

use super::Options;
use crate::step::{Kernel, Phase, Program, Role};

/// Runs the pass.
pub fn run(program: &mut Program, options: &Options) {
    for kernel in program.kernels.iter_mut().filter(|k| k.role == Role::Step && is_fusable(k)) {
        kernel.steps = options.fuse.max(1);
    }
}

fn is_fusable(kernel: &Kernel) -> bool {
    kernel.regions.iter().filter(|r| r.phase == Phase::Body).count() == 1
}
