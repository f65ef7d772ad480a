//! `fuse-steps`: many steps in one call.
//!
//! In come any program and [`Options::fuse`]; out goes one whose step function takes up to so many steps per call, so that
//! states stay in registers from step to step.
//! Never true here: a function with more than one body region over a space of cells without branches is fused.
//!
//! With one body region that looks at its own cell only, each cell can run through all steps before the next cell
//! starts: no cell can tell. With regions over relations before it the cells take each step together, and what is saved is the calls;
//! so do the stages of branched cells, a few cells after the others.
//! The caller may still ask for fewer steps.

use super::{Options, fields};
use crate::step::{Function, Phase, Program, Role, SpaceId, SpaceKind};
use rustc_hash::FxHashSet as HashSet;

/// Runs the pass.
pub fn run(program: &mut Program, options: &Options) {
    fields::each_function(program, |program, function| {
        if function.role == Role::Step && is_fusable(program, function) {
            function.steps = options.fuse.max(1);
        }
    });
}

/// Has it a body, and over no space of cells without branches more than one?
fn is_fusable(program: &Program, function: &Function) -> bool {
    let relation = |space: SpaceId| matches!(program.space(space).kind, SpaceKind::Relation { .. });
    let bodies = function.regions().filter(|r| r.phase() == Phase::Body).filter_map(|r| r.over);
    let bodies: Vec<SpaceId> = bodies.filter(|&space| !relation(space)).collect();
    let alone: Vec<SpaceId> = bodies.iter().copied().filter(|&space| !program.is_branched(space)).collect();
    let spaces: HashSet<SpaceId> = alone.iter().copied().collect();
    !bodies.is_empty() && spaces.len() == alone.len()
}
