//! `fold`: constant folding.
//!
//! In comes any program; out goes one in which no operation has constant operands only, no select, `and` or `or` has a
//! constant mask, and no event that no guard waits for is emitted where the mask is a constant false.
//! Never true here: folding computes anything else than the interpreter does, both ask [`crate::step::eval`].

use super::Options;
use crate::step::{BinaryOp, FieldId, Function, Op, OpKind, Program, Value, ValueId, eval};
use std::collections::{HashMap, HashSet};

/// Runs the pass.
pub fn run(program: &mut Program, _options: &Options) {
    let guards = program.functions.iter().flat_map(Function::regions).filter_map(|r| r.guard);
    let awaited: HashSet<FieldId> = guards.map(|guard| guard.event).collect();
    for function in &mut program.functions {
        fold(function, &awaited);
    }
}

struct Known<'a> {
    constants: HashMap<ValueId, Value>,
    renamed: HashMap<ValueId, ValueId>,
    /// The events that guards wait for: something must emit them, were it never.
    awaited: &'a HashSet<FieldId>,
}

/// What becomes of an operation.
enum Folded {
    Stays(OpKind),
    Is(ValueId),
    Vanishes,
}

fn fold(function: &mut Function, awaited: &HashSet<FieldId>) {
    let mut known = Known { constants: HashMap::new(), renamed: HashMap::new(), awaited };
    for region in function.regions_mut() {
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

impl Known<'_> {
    fn fold(&self, kind: OpKind) -> Folded {
        let operands: Option<Vec<Value>> = kind.operands().iter().map(|v| self.constants.get(v).copied()).collect();
        let value = operands.and_then(|operands| eval(&kind, &operands));
        if let Some(constant) = value.and_then(Value::constant) {
            return Folded::Stays(constant);
        }
        if let OpKind::Select(c, a, b) = kind
            && let Some(c) = self.mask(c)
        {
            return Folded::Is(if c { a } else { b });
        }
        // What an operator gives with a mask known on either side: the other side, or the mask itself.
        if let OpKind::Binary(op @ (BinaryOp::And | BinaryOp::Or), a, b) = kind {
            return self.with_mask(kind, a, b, op == BinaryOp::And);
        }
        if matches!(kind, OpKind::Emit(event, mask) if self.mask(mask) == Some(false) && !self.awaited.contains(&event))
        {
            return Folded::Vanishes;
        }
        Folded::Stays(kind)
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
