//! Which functions reach a difference that magnifies their error.
//!
//! In comes a function; out go the exponentials and logarithms whose value, by itself or through products, quotients and sums
//! of such values and numbers, is subtracted from a number, as in `e^x - 1`.
//! Never true here: the difference of a rate and a state counts (`m_inf - m`), since there a small error of the rate is a small
//! error of the rate, whatever is left of the difference.

use super::approximate::function;
use super::arithmetic::arithmetic;
use super::ranges::same_sign;
use super::rewrite::{Rewriter, rewrite};
use crate::step::{BinaryOp, Function, OpKind, Program, UnaryOp, ValueId};
use rustc_hash::{FxHashMap as HashMap, FxHashSet as HashSet};

/// What is known of a value that was made of functions and numbers alone.
struct Made {
    function: bool,
    /// The operands that are made of functions, too.
    from: Vec<ValueId>,
}

/// The functions, and what is made of them on the way to the difference.
pub fn cancelled(program: &Program, step: &mut Function) -> HashSet<ValueId> {
    let mut made: HashMap<ValueId, Made> = HashMap::default();
    let mut waiting = Vec::new();
    rewrite(program, step, |rw, id, kind| {
        if matches!(kind, OpKind::Unary(op, x) if function(op).is_some() && !rw.uniform(x)) {
            made.insert(id, Made { function: true, from: Vec::new() });
            return None;
        }
        let operands = kind.operands();
        let from: Vec<ValueId> = operands.iter().copied().filter(|v| made.contains_key(v)).collect();
        let known = operands.iter().all(|v| made.contains_key(v) || rw.uniform(*v));
        if from.is_empty() || !known || !keeps_errors(kind) {
            return None;
        }
        if with_number(rw, &kind, &from) && !same_sign(&kind, |v| rw.range(v)) {
            waiting.extend(&from);
        }
        made.insert(id, Made { function: false, from });
        None
    });
    let mut found = HashSet::default();
    while let Some(value) = waiting.pop() {
        if found.insert(value) {
            waiting.extend(&made[&value].from);
        }
    }
    debug_assert!(found.iter().all(|value| made[value].function || !made[value].from.is_empty()));
    found
}

fn keeps_errors(kind: OpKind) -> bool {
    matches!(kind, OpKind::Unary(UnaryOp::Abs | UnaryOp::Sqrt, _) | OpKind::Binary(BinaryOp::Min | BinaryOp::Max, ..))
        || arithmetic(kind).is_some()
}

/// Is it a sum of which one side is a number?
fn with_number(rw: &Rewriter<'_>, kind: &OpKind, from: &[ValueId]) -> bool {
    if let OpKind::Binary(BinaryOp::Add | BinaryOp::Sub, a, b) = *kind {
        return rw.uniform(a) || rw.uniform(b);
    }
    matches!(*kind, OpKind::Fma(a, b, c) if rw.uniform(c) || !from.contains(&a) && !from.contains(&b))
}
