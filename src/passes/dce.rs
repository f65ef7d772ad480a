//! `dce`: dead code, dead states, unused fields.
//!
//! In come any program and [`Options::keep`]; out goes one in which every operation helps an output, an event or a kept
//! field, and every field but these and `dt` is named by an operation. Fields are numbered anew.
//! Never true here: an output, an event, an origin or a space is removed.
//!
//! A state is dead if nothing kept depends on it, even if it depends on itself; then its `init` is dead too.

use super::{Keep, Options, fields};
use crate::step::{FieldId, FieldKind, Kernel, OpKind, Phase, Program, ValueId};
use std::collections::HashSet;

/// Runs the pass.
pub fn run(program: &mut Program, options: &Options) {
    let mut live = roots(program, options);
    // Each round adds fields that the live ones need; there are finitely many.
    let needed = loop {
        let needed: Vec<_> = program.kernels.iter().map(|k| needed(k, &live)).collect();
        let before = live.len();
        for (kernel, needed) in program.kernels.iter().zip(&needed) {
            let ops = kernel.ops().filter(|op| op.result.is_some_and(|v| needed.contains(&v)));
            live.extend(ops.filter_map(|op| op.kind.named_field()));
            for region in &kernel.regions {
                if let Phase::Edge(edges) = region.phase
                    && region.ops.iter().any(|op| op.result.is_none() && is_live(&op.kind, &live))
                {
                    live.insert(edges);
                }
            }
        }
        if live.len() == before {
            break needed;
        }
    };
    for (kernel, needed) in program.kernels.iter_mut().zip(&needed) {
        for region in &mut kernel.regions {
            region.ops.retain(|op| match op.result {
                Some(value) => needed.contains(&value),
                None => is_live(&op.kind, &live),
            });
        }
        kernel.regions.retain(|r| !r.ops.is_empty());
    }
    program.kernels.retain(|k| !k.regions.is_empty());
    fields::retain(program, |f| live.contains(&f));
}

/// The fields that are live whatever the kernels do.
fn roots(program: &Program, options: &Options) -> HashSet<FieldId> {
    let root = |id: &FieldId| {
        let field = program.field(*id);
        let named = match &options.keep {
            Keep::AllStates => false,
            Keep::Only(names) => names.contains(&field.name),
        };
        named
            || match field.kind {
                FieldKind::Output(_) | FieldKind::Event(_) => true,
                FieldKind::State(_) => options.keep == Keep::AllStates,
                // The host needs the time step, even of a program that does not look at it.
                FieldKind::Uniform => field.name == "dt",
                FieldKind::Series
                | FieldKind::Data(_)
                | FieldKind::Cell(_)
                | FieldKind::Temp(_)
                | FieldKind::Edges(_) => false,
            }
    };
    program.fields_where(|_| true).into_iter().filter(root).collect()
}

/// The values that the effects on live fields depend on.
fn needed(kernel: &Kernel, live: &HashSet<FieldId>) -> HashSet<ValueId> {
    let mut needed = HashSet::new();
    let ops: Vec<_> = kernel.ops().collect();
    for op in ops.into_iter().rev() {
        let wanted = match op.result {
            Some(value) => needed.contains(&value),
            None => is_live(&op.kind, live),
        };
        if wanted {
            needed.extend(op.kind.operands());
        }
    }
    needed
}

/// Does an effect touch a live field?
fn is_live(kind: &OpKind, live: &HashSet<FieldId>) -> bool {
    kind.named_field().is_some_and(|f| live.contains(&f))
}
