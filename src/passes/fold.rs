//! `fold`: constant folding.
//!
//! In comes any program; out goes one in which no operation has constant operands only (but for exact ones that kernels in single
//! precision would compute with another result), no select, `and` or `or` has a constant mask, and no event that no guard waits for is emitted where the mask is a constant false.
//! Never true here: folding computes anything else than the interpreter does, both ask [`crate::step::eval`].

use super::Options;
use crate::step::{BinaryOp, FieldId, Function, Op, OpKind, Program, Role, Value, ValueId, eval};
use rustc_hash::{FxHashMap as HashMap, FxHashSet as HashSet};

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
    let mut known = Known { constants: HashMap::default(), renamed: HashMap::default(), awaited };
    // `init` computes numbers in double precision whatever the kernel.
    let in_lanes = function.role != Role::Init;
    for region in function.regions_mut() {
        region.ops.retain_mut(|op| {
            let kind = op.kind.map_operands(|v| known.renamed.get(&v).copied().unwrap_or(v));
            match known.fold(kind, op.exact && in_lanes) {
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

/// Is a value, rounded to single precision, what single precision makes of the rounded operands? Else `x / 0.7 - 50.1 / 0.7` is 0 at
/// 50.1 in double precision only.
fn same_in_singles(kind: &OpKind, operands: &[Value], value: Value) -> bool {
    let rounded = |value: Value| if let Value::Real(x) = value { Value::Single(x as f32) } else { value };
    let singles: Vec<Value> = operands.iter().map(|&operand| rounded(operand)).collect();
    // A choice rounds nothing.
    matches!(kind, OpKind::Select(..)) || eval(kind, &singles) == Some(rounded(value))
}

impl Known<'_> {
    fn fold(&self, kind: OpKind, told: bool) -> Folded {
        let operands: Option<Vec<Value>> = kind.operands().iter().map(|v| self.constants.get(v).copied()).collect();
        if let Some(operands) = operands
            && let Some(value) = eval(&kind, &operands)
            && let Some(constant) = value.constant()
        {
            let folds = !told || operands.is_empty() || same_in_singles(&kind, &operands, value);
            return Folded::Stays(if folds { constant } else { kind });
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
