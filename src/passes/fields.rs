//! Removing fields.
//!
//! In come a program and the fields to keep; out goes the program with the kept fields numbered anew, everywhere.
//! Never true here: a removed field is still named by an operation.

use crate::step::{FieldId, Op, Phase, Program};

/// Keeps the fields that `keep` accepts, in order. No operation and no region may name any other.
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
    let renumbered = |f: FieldId| new[f.0 as usize].expect("operations and regions name kept fields only");
    for op in ops_mut(program) {
        op.kind = op.kind.map_field(renumbered);
    }
    for region in program.kernels.iter_mut().flat_map(|k| &mut k.regions) {
        if let Phase::Edge(edges) = &mut region.phase {
            *edges = renumbered(*edges);
        }
    }
}

/// All operations of a program.
pub fn ops_mut(program: &mut Program) -> impl Iterator<Item = &mut Op> {
    program.kernels.iter_mut().flat_map(|k| &mut k.regions).flat_map(|r| &mut r.ops)
}
