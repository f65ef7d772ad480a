//! What depends on what derivatives are taken in.
//!
//! In come a program and fields of it; out go all fields and values that move with them, a step or many steps later.
//! Never true here: a derivative that is not 0 goes unseen.

use crate::step::{BinaryOp, FieldId, Function, Op, OpKind, Program, Role, Stage, Surrogate, UnaryOp, ValueId};
use rustc_hash::{FxHashMap as HashMap, FxHashSet as HashSet};
use std::collections::BTreeSet;

/// The fields and values that move.
pub(super) struct Active {
    pub fields: BTreeSet<FieldId>,
    values: HashMap<Role, HashSet<ValueId>>,
}

impl Active {
    pub(super) fn new(program: &Program, wrt: &[FieldId]) -> Active {
        let mut active = Active { fields: wrt.iter().copied().collect(), values: HashMap::default() };
        // Each round adds fields; there are finitely many.
        loop {
            let before = active.fields.len();
            program.functions.iter().for_each(|function| active.function(function));
            if active.fields.len() == before {
                return active;
            }
        }
    }

    /// The values of a function that move.
    pub(super) fn values(&self, role: Role) -> impl Fn(ValueId) -> bool + use<'_> {
        let values = self.values.get(&role);
        move |value| values.is_some_and(|values| values.contains(&value))
    }

    fn function(&mut self, function: &Function) {
        let mut values = HashSet::default();
        for stage in &function.stages {
            match stage {
                Stage::Solve(solve) => {
                    if solve.reads().any(|f| self.fields.contains(&f)) {
                        self.fields.insert(solve.x);
                    }
                }
                Stage::Region(region) => region.ops.iter().for_each(|op| self.op(op, &mut values)),
            }
        }
        self.values.insert(function.role, values);
    }

    fn op(&mut self, op: &Op, values: &mut HashSet<ValueId>) {
        let of_operands = op.kind.operands().iter().any(|v| values.contains(v));
        let of_field = |fields: &BTreeSet<FieldId>, field| fields.contains(&field);
        let moves = match op.kind {
            OpKind::Const(_) | OpKind::Bool(_) | OpKind::Time | OpKind::StepIndex | OpKind::Index => false,
            OpKind::Field(field) | OpKind::Gather(field, _) => of_field(&self.fields, field),
            OpKind::Back(field, ..) => of_field(&self.fields, field),
            // They jump, and stand still in between.
            OpKind::Unary(UnaryOp::Floor | UnaryOp::Ceil, _) | OpKind::Draw(..) => false,
            OpKind::Binary(
                BinaryOp::Lt | BinaryOp::Le | BinaryOp::Gt | BinaryOp::Ge | BinaryOp::Eq | BinaryOp::Ne,
                ..,
            ) => false,
            // A spike without a surrogate is a comparison.
            OpKind::Spike(Surrogate::None, _) => false,
            OpKind::SpikeBy(x, _) => values.contains(&x),
            OpKind::Unary(..)
            | OpKind::Approximate(..)
            | OpKind::Binary(..)
            | OpKind::Fma(..)
            | OpKind::Select(..)
            | OpKind::Sample(..)
            | OpKind::Spike(..) => of_operands,
            OpKind::Store(field, value) | OpKind::Accumulate(field, _, value) => {
                if values.contains(&value) {
                    self.fields.insert(field);
                }
                false
            }
            OpKind::Emit(..) => false,
        };
        values.extend(op.result.filter(|_| moves));
    }
}
