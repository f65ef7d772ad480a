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
    let mut live = Live { fields: &program.fields, of: HashSet::default() };
    for field in roots(program, options) {
        let of_all = (0..program.functions.len().max(1)).map(|number| live.key(number, field));
        live.of.extend(of_all.collect::<Vec<_>>());
    }
    // Each round adds fields that the live ones need; there are finitely many.
    loop {
        let before = live.of.len();
        for (number, function) in program.functions.iter().enumerate() {
            let needed = needed((number, function), &live);
            for stage in &function.stages {
                let read = reads((number, stage), &live, &needed);
                let read: Vec<_> = read.into_iter().map(|field| live.key(number, field)).collect();
                live.of.extend(read);
            }
        }
        if live.of.len() == before {
            break;
        }
    }
    for (number, function) in program.functions.iter_mut().enumerate() {
        let needed = needed((number, function), &live);
        function.stages.retain_mut(|stage| match stage {
            Stage::Region(region) => {
                region.ops.retain(|op| is_wanted((number, op), &live, &needed));
                !region.ops.is_empty()
            }
            Stage::Solve(solve) => live.has(number, solve.x),
        });
    }
    let kept: HashSet<FieldId> = live.of.into_iter().map(|(_, field)| field).collect();
    program.functions.retain(|f| !f.stages.is_empty());
    forget(program);
    fields::retain(program, |f| kept.contains(&f));
}

/// The fields that are live: a temp in some functions, by their numbers, since each stores it anew; all others in all of them.
struct Live<'a> {
    fields: &'a [Field],
    of: HashSet<(usize, FieldId)>,
}

impl Live<'_> {
    fn key(&self, function: usize, field: FieldId) -> (usize, FieldId) {
        let is_temp = self.fields[field.0 as usize].kind == FieldKind::Temp;
        (if is_temp { function } else { 0 }, field)
    }

    fn has(&self, function: usize, field: FieldId) -> bool {
        self.of.contains(&self.key(function, field))
    }
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
fn needed((number, function): (usize, &Function), live: &Live<'_>) -> HashSet<ValueId> {
    let mut needed = HashSet::default();
    for op in function.ops().rev() {
        if is_wanted((number, op), live, &needed) {
            needed.extend(op.kind.operands());
        }
    }
    needed
}

/// Does an operation of a function touch a live field, or compute a needed value?
fn is_wanted((number, op): (usize, &Op), live: &Live<'_>, needed: &HashSet<ValueId>) -> bool {
    match op.result {
        Some(value) => needed.contains(&value),
        None => op.kind.named_field().is_some_and(|f| live.has(number, f)),
    }
}

/// The fields that a stage of a function names for what is live and needed.
fn reads((number, stage): (usize, &Stage), live: &Live<'_>, needed: &HashSet<ValueId>) -> Vec<FieldId> {
    match stage {
        Stage::Region(region) => {
            let wanted: Vec<&Op> = region.ops.iter().filter(|op| is_wanted((number, op), live, needed)).collect();
            let guard = fields::of_guard(region).filter(|_| !wanted.is_empty());
            wanted.iter().filter_map(|op| op.kind.named_field()).chain(guard).collect()
        }
        Stage::Solve(solve) if live.has(number, solve.x) => solve.reads().collect(),
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
