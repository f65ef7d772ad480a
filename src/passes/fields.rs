//! Finding and removing fields.
//!
//! In come a program and the fields to keep; out goes the program with the kept fields numbered anew, everywhere.
//! Never true here: a removed field is still named by an operation, a guard or a solve.

use super::Options;
use crate::step::{FieldId, FieldKind, Function, Op, Program, Region, Source, Stage};
use rustc_hash::FxHashMap as HashMap;

/// Calls `change` with every function and the program that it belongs to (without its functions).
pub fn each_function(program: &mut Program, mut change: impl FnMut(&Program, &mut Function)) {
    let mut functions = std::mem::take(&mut program.functions);
    for function in &mut functions {
        change(program, function);
    }
    program.functions = functions;
}

/// The field that stands for something; the time step of a program that was written by hand is the uniform `dt`.
pub fn bound(program: &Program, source: Source) -> Option<FieldId> {
    match source {
        Source::None => None,
        Source::Dt => program
            .bound(source)
            .or_else(|| program.find_field("dt").filter(|&f| program.field(f).kind == FieldKind::Uniform)),
        Source::Param(..)
        | Source::State(..)
        | Source::Next(..)
        | Source::Slope(..)
        | Source::Point(..)
        | Source::Sum(..)
        | Source::Slopes(..)
        | Source::There(..)
        | Source::Told(..)
        | Source::Arrived(..)
        | Source::Sent(..)
        | Source::Amount(_)
        | Source::Modulated(_)
        | Source::Weight(..)
        | Source::Delay(..)
        | Source::Back(..)
        | Source::Seen(..)
        | Source::Refractory(..)
        | Source::Spiked(..)
        | Source::Spikes(..)
        | Source::Data(..)
        | Source::Series(..)
        | Source::Output(..)
        | Source::Observed(..)
        | Source::Measure(..)
        | Source::Axial(..)
        | Source::Membrane(..)
        | Source::Conductance(..)
        | Source::Own(..)
        | Source::Rhs(..)
        | Source::Middle(..)
        | Source::Transmembrane(..)
        | Source::Escaping(..)
        | Source::Injected(..)
        | Source::InjectedSlope(..)
        | Source::Diffusion(..)
        | Source::Adjoint(..)
        | Source::Seed(..)
        | Source::Gradient(..)
        | Source::Tangent(..) => program.bound(source),
    }
}

/// The uniform field that stands for something.
pub fn uniform(program: &Program, source: Source) -> Option<FieldId> {
    bound(program, source).filter(|&f| program.field(f).kind == FieldKind::Uniform)
}

/// What uniform fields are worth whose values are known now.
pub fn values_now(program: &Program, options: &Options) -> HashMap<FieldId, f64> {
    options.uniforms.iter().filter_map(|&(source, x)| Some((uniform(program, source)?, x))).collect()
}

/// The fields that a stage names, once or more often.
pub fn named(stage: &Stage) -> Vec<FieldId> {
    match stage {
        Stage::Region(region) => {
            let ops = region.ops.iter().filter_map(|op| op.kind.named_field());
            ops.chain(of_guard(region)).collect()
        }
        Stage::Solve(solve) => [solve.x].into_iter().chain(solve.reads()).collect(),
    }
}

/// The fields that decide for which elements a region runs.
pub fn of_guard(region: &Region) -> impl Iterator<Item = FieldId> + use<> {
    let fields = region.guard.map(|g| [Some(g.event), g.delay]);
    fields.into_iter().flatten().flatten()
}

/// Keeps the fields that `keep` accepts, in order. No stage may name any other.
pub fn retain(program: &mut Program, keep: impl Fn(FieldId) -> bool) {
    let mut kept = 0;
    let number = (0..program.fields.len() as u32).map(|i| {
        kept += u32::from(keep(FieldId(i)));
        keep(FieldId(i)).then(|| FieldId(kept - 1))
    });
    let new: Vec<Option<FieldId>> = number.collect();
    let mut i = 0;
    program.fields.retain(|_| {
        i += 1;
        new[i - 1].is_some()
    });
    let renumbered = |f: FieldId| new[f.0 as usize].expect("stages name kept fields only");
    for stage in program.functions.iter_mut().flat_map(|f| &mut f.stages) {
        match stage {
            Stage::Region(region) => {
                for op in &mut region.ops {
                    op.kind = op.kind.map_field(renumbered);
                }
                if let Some(guard) = &mut region.guard {
                    guard.event = renumbered(guard.event);
                    guard.delay = guard.delay.map(renumbered);
                }
            }
            Stage::Solve(solve) => *solve = solve.map_fields(renumbered),
        }
    }
}

/// All operations of a program.
pub fn ops_mut(program: &mut Program) -> impl Iterator<Item = &mut Op> {
    program.functions.iter_mut().flat_map(|f| f.regions_mut()).flat_map(|r| &mut r.ops)
}
