//! `dce`: dead code, dead states, unused fields.
//!
//! In come any program and [`Options::keep`]; out goes one in which every operation helps an output, an event or a kept
//! field, every field but these and `dt` is named by a stage, and what nothing goes back to is not remembered. Fields are numbered anew.
//! Never true here: an output, an event, an origin or a space is removed.
//!
//! A state is dead if nothing kept depends on it, even if it depends on itself; then its `init` is dead too.

use super::{Keep, Options, fields};
use crate::step::{Field, FieldId, FieldKind, Function, Op, OpKind, Program, Source, Stage, ValueId};
use rustc_hash::FxHashSet as HashSet;

/// Runs the pass.
pub fn run(program: &mut Program, options: &Options) {
    let mut live = roots(program, options);
    // Each round adds fields that the live ones need; there are finitely many.
    loop {
        let before = live.len();
        for function in &program.functions {
            let needed = needed(function, &live);
            for stage in &function.stages {
                live.extend(reads(stage, &live, &needed));
            }
        }
        if live.len() == before {
            break;
        }
    }
    for function in &mut program.functions {
        let needed = needed(function, &live);
        function.stages.retain_mut(|stage| match stage {
            Stage::Region(region) => {
                region.ops.retain(|op| is_wanted(op, &live, &needed));
                !region.ops.is_empty()
            }
            Stage::Solve(solve) => live.contains(&solve.x),
        });
    }
    program.functions.retain(|f| !f.stages.is_empty());
    forget(program);
    fields::retain(program, |f| live.contains(&f));
}

/// The fields that are live whatever the functions do.
fn roots(program: &Program, options: &Options) -> HashSet<FieldId> {
    let kept = |field: &Field| match &options.keep {
        Keep::AllStates => field.kind == FieldKind::State,
        Keep::Only(sources) => field.source != Source::None && sources.contains(&field.source),
    };
    // The host needs the time step, even of a program that does not look at it.
    let dt = |field: &Field| field.source == Source::Dt || field.kind == FieldKind::Uniform && field.name == "dt";
    let seen = |field: &Field| matches!(field.kind, FieldKind::Output | FieldKind::Event);
    program.fields_where(|field| kept(field) || seen(field) || dt(field)).into_iter().collect()
}

/// The values that the effects on live fields depend on.
fn needed(function: &Function, live: &HashSet<FieldId>) -> HashSet<ValueId> {
    let mut needed = HashSet::default();
    for op in function.ops().rev() {
        if is_wanted(op, live, &needed) {
            needed.extend(op.kind.operands());
        }
    }
    needed
}

/// Does an operation touch a live field, or compute a needed value?
fn is_wanted(op: &Op, live: &HashSet<FieldId>, needed: &HashSet<ValueId>) -> bool {
    match op.result {
        Some(value) => needed.contains(&value),
        None => op.kind.named_field().is_some_and(|f| live.contains(&f)),
    }
}

/// The fields that a stage names for what is live and needed.
fn reads(stage: &Stage, live: &HashSet<FieldId>, needed: &HashSet<ValueId>) -> Vec<FieldId> {
    match stage {
        Stage::Region(region) => {
            let wanted: Vec<&Op> = region.ops.iter().filter(|op| is_wanted(op, live, needed)).collect();
            let guard = fields::of_guard(region).filter(|_| !wanted.is_empty());
            wanted.iter().filter_map(|op| op.kind.named_field()).chain(guard).collect()
        }
        Stage::Solve(solve) if live.contains(&solve.x) => solve.reads().to_vec(),
        Stage::Solve(_) => vec![],
    }
}

/// A field that nothing goes back to needs no history.
fn forget(program: &mut Program) {
    let regions = || program.functions.iter().flat_map(Function::regions);
    let back = |op: &Op| if let OpKind::Back(f, ..) = op.kind { Some(f) } else { None };
    let delayed = regions().filter_map(|r| r.guard.filter(|g| g.delay.is_some()).map(|g| g.event));
    let remembered: HashSet<FieldId> = regions().flat_map(|r| &r.ops).filter_map(back).chain(delayed).collect();
    for (i, field) in program.fields.iter_mut().enumerate() {
        if !remembered.contains(&FieldId(i as u32)) {
            field.history = 0;
        }
    }
}
