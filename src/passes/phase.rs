//! The earliest phase in which an operation can run.
//!
//! In comes an operation and the phases of its operands; out goes the earliest phase that sees what it needs.
//! Never true here: what reaches other elements, or what a function changes, is early.

use crate::step::{Field, FieldKind, OpClass, OpKind, Phase, Program, Rate, Region, Role, SpaceKind, ValueId};

/// The earliest phase in which an operation can run, given those of its operands.
pub fn earliest(kind: &OpKind, role: Role, fields: &[Field], phase_of: impl Fn(ValueId) -> Phase) -> Phase {
    kind.operands().into_iter().map(phase_of).fold(alone(kind, role, fields), join)
}

/// The same whatever its operands are.
fn alone(kind: &OpKind, role: Role, fields: &[Field]) -> Phase {
    match kind.class() {
        OpClass::Leaf if matches!(kind, OpKind::Time | OpKind::StepIndex) => Phase::Time,
        OpClass::Leaf if matches!(kind, OpKind::Index) => Phase::Cell,
        OpClass::Leaf | OpClass::Pure => Phase::Call,
        OpClass::Read => read(kind, role, fields),
        OpClass::Draw => Phase::Cell,
        OpClass::Write => Phase::Body,
    }
}

fn read(kind: &OpKind, role: Role, fields: &[Field]) -> Phase {
    if matches!(kind, OpKind::Sample(..)) {
        return Phase::Call;
    }
    // What is gathered or from the past stays where it is read.
    let OpKind::Field(f) = *kind else { return Phase::Body };
    match fields[f.0 as usize].kind {
        FieldKind::Uniform => Phase::Call,
        FieldKind::Data => Phase::Cell,
        FieldKind::Const if role != Role::Init => Phase::Cell,
        FieldKind::Const
        | FieldKind::Series
        | FieldKind::State
        | FieldKind::Temp
        | FieldKind::Output
        | FieldKind::Event => Phase::Body,
    }
}

/// The earliest phase that sees both.
fn join(a: Phase, b: Phase) -> Phase {
    if a.reaches(b) {
        b
    } else if b.reaches(a) {
        a
    } else {
        Phase::Body
    }
}

/// May what does not depend on time leave this region for one that runs once? Only if it is the body of a plain space: other elements are
/// many for each cell, and what a guard spares is not computed for all.
pub fn keeps_for_cells(program: &Program, region: &Region) -> bool {
    let plain = region.over.is_some_and(|space| program.space(space).kind == SpaceKind::Plain);
    region.rate == Rate::Every && region.guard.is_none() && plain
}
