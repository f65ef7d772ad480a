//! `fuse-regions`: one body region per kernel.
//!
//! In comes any program; out goes one in which every kernel has at most one body region, which reads each of its states
//! once, at its top, stores each field once, at its end, and uses no temp field but the sums of edge regions.
//! Never true here: regions are merged across an operation that looks at other cells.
//!
//! Merging is legal because all body regions of a kernel are elementwise over one space: whether each region sees all
//! cells before the next region starts, or each cell sees all regions, no cell can tell.

use super::{Options, fields};
use crate::step::{FieldId, FieldKind, Kernel, Op, OpKind, Phase, Program, Region, Role, ValueId};
use std::collections::{HashMap, HashSet};

/// Runs the pass.
pub fn run(program: &mut Program, _options: &Options) {
    let kinds: Vec<FieldKind> = program.fields.iter().map(|f| f.kind).collect();
    for kernel in &mut program.kernels {
        merge(kernel);
        let role = kernel.role;
        for region in kernel.regions.iter_mut().filter(|r| r.phase == Phase::Body) {
            let ops = std::mem::take(&mut region.ops);
            region.ops = forward(ops, role, &kinds);
        }
    }
    let named: HashSet<FieldId> = fields::ops_mut(program).filter_map(|op| op.kind.named_field()).collect();
    fields::retain(program, |f| !matches!(kinds[f.0 as usize], FieldKind::Temp(_)) || named.contains(&f));
}

/// Merges the body regions into the first of them.
fn merge(kernel: &mut Kernel) {
    let mut merged: Vec<Region> = Vec::new();
    for region in std::mem::take(&mut kernel.regions) {
        match merged.last_mut() {
            Some(last) if last.phase == Phase::Body && region.phase == Phase::Body => last.ops.extend(region.ops),
            Some(_) | None => merged.push(region),
        }
    }
    kernel.regions = merged;
}

fn forward(ops: Vec<Op>, role: Role, kinds: &[FieldKind]) -> Vec<Op> {
    let mut loads = Vec::new();
    let mut rest = Vec::new();
    let mut stores: Vec<(FieldId, Op)> = Vec::new();
    let mut content: HashMap<FieldId, ValueId> = HashMap::new();
    let mut renamed: HashMap<ValueId, ValueId> = HashMap::new();
    for mut op in ops {
        op.kind = op.kind.map_operands(|v| renamed.get(&v).copied().unwrap_or(v));
        match (op.kind, op.result) {
            (OpKind::Field(field), Some(result)) if changes(kinds[field.0 as usize], role) => {
                if let Some(&value) = content.get(&field) {
                    renamed.insert(result, value);
                } else {
                    content.insert(field, result);
                    loads.push(op);
                }
            }
            (OpKind::Store(field, value), _) => {
                content.insert(field, value);
                stores.retain(|(f, _)| *f != field);
                stores.push((field, op));
            }
            (
                OpKind::Field(_)
                | OpKind::There(_)
                | OpKind::Accumulate(..)
                | OpKind::Const(_)
                | OpKind::Bool(_)
                | OpKind::Time
                | OpKind::StepIndex
                | OpKind::Index
                | OpKind::Unary(..)
                | OpKind::Binary(..)
                | OpKind::Approximate(..)
                | OpKind::Fma(..)
                | OpKind::Select(..)
                | OpKind::Draw(..)
                | OpKind::Sample(..)
                | OpKind::Emit(..),
                _,
            ) => rest.push(op),
        }
    }
    // A temp field that is stored is stored before it is read, so every read of it has become a value.
    stores.retain(|(f, _)| !matches!(kinds[f.0 as usize], FieldKind::Temp(_)));
    loads.into_iter().chain(rest).chain(stores.into_iter().map(|(_, op)| op)).collect()
}

/// May a kernel of this role store fields of this kind and read them?
fn changes(kind: FieldKind, role: Role) -> bool {
    match kind {
        FieldKind::State(_) | FieldKind::Temp(_) => true,
        FieldKind::Cell(_) => role == Role::Init,
        FieldKind::Uniform
        | FieldKind::Series
        | FieldKind::Data(_)
        | FieldKind::Output(_)
        | FieldKind::Event(_)
        | FieldKind::Edges(_) => false,
    }
}
