//! `fold`: constant folding.
//!
//! In comes any program; out goes one in which no operation has constant operands only, no select, `and` or `or` has a
//! constant mask, and no event waits for a constant false.
//! Never true here: folding computes anything else than the interpreter does, both ask [`crate::step::eval`].

use super::Options;
use crate::step::{BinaryOp, Kernel, Op, OpKind, Program, Value, ValueId, eval};
use std::collections::HashMap;

/// Runs the pass.
pub fn run(program: &mut Program, _options: &Options) {
    for kernel in &mut program.kernels {
        let mut known = Known::default();
        fold(kernel, &mut known);
    }
}

#[derive(Default)]
struct Known {
    constants: HashMap<ValueId, Value>,
    renamed: HashMap<ValueId, ValueId>,
}

/// What becomes of an operation.
enum Folded {
    Stays(OpKind),
    Is(ValueId),
    Vanishes,
}

fn fold(kernel: &mut Kernel, known: &mut Known) {
    for region in &mut kernel.regions {
        region.ops.retain_mut(|op| {
            let kind = op.kind.map_operands(|v| known.renamed.get(&v).copied().unwrap_or(v));
            match known.fold(kind) {
                Folded::Stays(kind) => {
                    op.kind = kind;
                    known.learn(op);
                    true
                }
                Folded::Is(value) => {
                    known.renamed.extend(op.result.map(|result| (result, value)));
                    false
                }
                Folded::Vanishes => false,
            }
        });
    }
}

impl Known {
    fn fold(&self, kind: OpKind) -> Folded {
        let operands: Option<Vec<Value>> = kind.operands().iter().map(|v| self.constants.get(v).copied()).collect();
        let value = operands.and_then(|operands| eval(&kind, &operands));
        if let Some(constant) = value.and_then(Value::constant) {
            return Folded::Stays(constant);
        }
        match kind {
            OpKind::Select(c, a, b) => match self.mask(c) {
                Some(c) => Folded::Is(if c { a } else { b }),
                None => Folded::Stays(kind),
            },
            // What an operator gives with a mask known on either side: the other side, or the mask itself.
            OpKind::Binary(BinaryOp::And, a, b) => self.with_mask(kind, a, b, true),
            OpKind::Binary(BinaryOp::Or, a, b) => self.with_mask(kind, a, b, false),
            OpKind::Emit(_, mask) if self.mask(mask) == Some(false) => Folded::Vanishes,
            OpKind::Const(_)
            | OpKind::Bool(_)
            | OpKind::Field(_)
            | OpKind::There(_)
            | OpKind::Time
            | OpKind::StepIndex
            | OpKind::Index
            | OpKind::Unary(..)
            | OpKind::Binary(..)
            | OpKind::Approximate(..)
            | OpKind::Fma(..)
            | OpKind::Draw(..)
            | OpKind::Sample(..)
            | OpKind::Store(..)
            | OpKind::Accumulate(..)
            | OpKind::Emit(..) => Folded::Stays(kind),
        }
    }

    /// `and` (neutral: true) or `or` (neutral: false).
    fn with_mask(&self, kind: OpKind, a: ValueId, b: ValueId, neutral: bool) -> Folded {
        match (self.mask(a), self.mask(b)) {
            (Some(mask), _) if mask == neutral => Folded::Is(b),
            (_, Some(mask)) if mask == neutral => Folded::Is(a),
            (Some(mask), _) | (_, Some(mask)) => Folded::Stays(OpKind::Bool(mask)),
            (None, None) => Folded::Stays(kind),
        }
    }

    fn mask(&self, value: ValueId) -> Option<bool> {
        self.constants.get(&value).and_then(|v| v.mask())
    }

    fn learn(&mut self, op: &Op) {
        if let (Some(result), Some(value)) = (op.result, eval(&op.kind, &[])) {
            self.constants.insert(result, value);
        }
    }
}
