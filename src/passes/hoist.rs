//! `hoist`: every operation in the earliest phase that allows it.
//!
//! In comes any program; out goes one with at most one call, one time and one cell region per kernel, in which nothing
//! uniform is computed per cell and nothing that does not depend on time is computed per step.
//! Never true here: an operation moves to a later phase, or an effect or the read of a state moves at all.
//!
//! What is uniform always moves: it is computed once instead of once per cell. What differs between cells but not
//! between steps moves to the cell region only in a step kernel (the others run for one step anyway) and only if it
//! belongs to a chain with something expensive in it (a division, a root, a transcendental function, a random number):
//! such a value has to be kept for every cell, and that costs as much as an addition saves.

use super::Options;
use crate::step::{BinaryOp, Field, FieldKind, Kernel, Op, OpKind, Phase, Program, Region, Role, UnaryOp, ValueId};
use std::collections::{HashMap, HashSet};

/// Runs the pass.
pub fn run(program: &mut Program, _options: &Options) {
    for kernel in &mut program.kernels {
        hoist(kernel, &program.fields);
    }
}

fn hoist(kernel: &mut Kernel, fields: &[Field]) {
    let worthwhile = worthwhile(kernel, fields);
    let mut phases: HashMap<ValueId, Phase> = HashMap::new();
    let mut early: [Vec<Op>; 3] = Default::default();
    let mut bodies = Vec::new();
    for region in std::mem::take(&mut kernel.regions) {
        let mut body = Vec::new();
        for op in region.ops {
            let mut phase = earliest(&op.kind, kernel.role, fields, |v| phases[&v]);
            let edge = matches!(region.phase, Phase::Edge(_)) && !matches!(phase, Phase::Call | Phase::Time);
            if edge || phase == Phase::Cell && !op.result.is_some_and(|v| worthwhile.contains(&v)) {
                phase = region.phase;
            }
            phases.extend(op.result.map(|v| (v, phase)));
            match phase {
                Phase::Call => early[0].push(op),
                Phase::Time => early[1].push(op),
                Phase::Cell => early[2].push(op),
                Phase::Edge(_) | Phase::Body => body.push(op),
            }
        }
        if let Phase::Edge(_) | Phase::Body = region.phase {
            bodies.push(Region { phase: region.phase, ops: body });
        }
    }
    let early = [Phase::Call, Phase::Time, Phase::Cell].into_iter().zip(early);
    let early = early.filter(|(_, ops)| !ops.is_empty()).map(|(phase, ops)| Region { phase, ops });
    kernel.regions = early.chain(bodies).collect();
}

/// The earliest phase in which an operation can run, given those of its operands.
fn earliest(kind: &OpKind, role: Role, fields: &[Field], phase_of: impl Fn(ValueId) -> Phase) -> Phase {
    let own = match *kind {
        OpKind::Const(_)
        | OpKind::Bool(_)
        | OpKind::Unary(..)
        | OpKind::Binary(..)
        | OpKind::Approximate(..)
        | OpKind::Fma(..)
        | OpKind::Select(..)
        | OpKind::Sample(..) => Phase::Call,
        OpKind::Time | OpKind::StepIndex => Phase::Time,
        OpKind::Index | OpKind::Draw(..) => Phase::Cell,
        OpKind::Field(field) => match fields[field.0 as usize].kind {
            FieldKind::Uniform => Phase::Call,
            FieldKind::Data(_) => Phase::Cell,
            FieldKind::Cell(_) if role != Role::Init => Phase::Cell,
            FieldKind::Cell(_)
            | FieldKind::Series
            | FieldKind::State(_)
            | FieldKind::Temp(_)
            | FieldKind::Output(_)
            | FieldKind::Event(_)
            | FieldKind::Edges(_) => Phase::Body,
        },
        OpKind::There(_) | OpKind::Store(..) | OpKind::Accumulate(..) | OpKind::Emit(..) => Phase::Body,
    };
    kind.operands().into_iter().map(phase_of).fold(own, join)
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

/// The values of the cell phase that belong to a chain with something expensive in it.
fn worthwhile(kernel: &Kernel, fields: &[Field]) -> HashSet<ValueId> {
    let mut phases: HashMap<ValueId, Phase> = HashMap::new();
    let mut chosen = HashSet::new();
    if kernel.role != Role::Step {
        return chosen;
    }
    let edges = kernel.regions.iter().filter(|r| matches!(r.phase, Phase::Edge(_)));
    let in_edge: HashSet<ValueId> = edges.flat_map(|r| &r.ops).filter_map(|op| op.result).collect();
    // Downwards: what is expensive or uses something that is.
    for op in kernel.ops() {
        let phase = earliest(&op.kind, kernel.role, fields, |v| phases[&v]);
        let Some(result) = op.result else { continue };
        phases.insert(result, phase);
        let uses_chosen = op.kind.operands().iter().any(|v| chosen.contains(v));
        if phase == Phase::Cell && !in_edge.contains(&result) && (is_expensive(&op.kind) || uses_chosen) {
            chosen.insert(result);
        }
    }
    // Upwards: what the chosen ones need.
    let all: Vec<&Op> = kernel.ops().collect();
    for op in all.into_iter().rev() {
        if op.result.is_some_and(|v| chosen.contains(&v)) {
            chosen.extend(op.kind.operands().into_iter().filter(|v| phases[v] == Phase::Cell));
        }
    }
    chosen
}

/// Does it take much longer than an addition?
fn is_expensive(kind: &OpKind) -> bool {
    match kind {
        OpKind::Approximate(..) | OpKind::Draw(..) | OpKind::Sample(..) => true,
        OpKind::Unary(op, _) => match op {
            UnaryOp::Neg
            | UnaryOp::Abs
            | UnaryOp::Floor
            | UnaryOp::Ceil
            | UnaryOp::Nonzero
            | UnaryOp::Finite
            | UnaryOp::Narrow
            | UnaryOp::Widen
            | UnaryOp::Not => false,
            UnaryOp::Sqrt
            | UnaryOp::Exp
            | UnaryOp::Exp2
            | UnaryOp::Expm1
            | UnaryOp::Exp2m1
            | UnaryOp::Ln
            | UnaryOp::Log2
            | UnaryOp::Log10
            | UnaryOp::Sin
            | UnaryOp::Cos
            | UnaryOp::Tan
            | UnaryOp::Sinh
            | UnaryOp::Cosh
            | UnaryOp::Tanh
            | UnaryOp::Linoid => true,
        },
        OpKind::Binary(op, ..) => match op {
            BinaryOp::Div | BinaryOp::Pow => true,
            BinaryOp::Add
            | BinaryOp::Sub
            | BinaryOp::Mul
            | BinaryOp::Min
            | BinaryOp::Max
            | BinaryOp::Lt
            | BinaryOp::Le
            | BinaryOp::Gt
            | BinaryOp::Ge
            | BinaryOp::Eq
            | BinaryOp::Ne
            | BinaryOp::And
            | BinaryOp::Or => false,
        },
        OpKind::Const(_)
        | OpKind::Bool(_)
        | OpKind::Field(_)
        | OpKind::There(_)
        | OpKind::Time
        | OpKind::StepIndex
        | OpKind::Index
        | OpKind::Fma(..)
        | OpKind::Select(..)
        | OpKind::Store(..)
        | OpKind::Accumulate(..)
        | OpKind::Emit(..) => false,
    }
}
