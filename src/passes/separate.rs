//! `separate`: keeps compilers from fusing exact products with the sums that they feed.
//!
//! In comes any program; out goes one in which an exact sum reads an exact product `m` as `m == m ? m : -m`, which is `m`, NaN or not.
//! Never true here: a value changes.
//!
//! XLA's compiler for processors fuses products with sums wherever it sees both, and rounds once: `a * x - a * y` is then not 0 where x
//! is y. Our own kernels fuse nothing that the program does not fuse.

use super::Options;
use crate::step::{BinaryOp, Function, Op, OpKind, Program, UnaryOp, ValueId};
use std::collections::{HashMap, HashSet};

/// Runs the pass.
pub fn run(program: &mut Program, _options: &Options) {
    for function in &mut program.functions {
        separate(function);
    }
}

fn separate(function: &mut Function) {
    let products = products(function);
    let mut next = function.next_value().0;
    let mut apart: HashMap<ValueId, ValueId> = HashMap::new();
    for region in function.regions_mut() {
        for mut op in std::mem::take(&mut region.ops) {
            if is_sum(&op) {
                op.kind = op.kind.map_operands(|v| apart.get(&v).copied().unwrap_or(v));
            }
            let (result, origin) = (op.result, op.origin);
            region.ops.push(op);
            let Some(m) = result.filter(|v| products.contains(v)) else { continue };
            let [equal, minus, same] = [next, next + 1, next + 2].map(ValueId);
            next += 3;
            for (result, kind) in [
                (equal, OpKind::Binary(BinaryOp::Eq, m, m)),
                (minus, OpKind::Unary(UnaryOp::Neg, m)),
                (same, OpKind::Select(equal, m, minus)),
            ] {
                region.ops.push(Op { result: Some(result), kind, origin, exact: true });
            }
            apart.insert(m, same);
        }
    }
}

fn is_sum(op: &Op) -> bool {
    op.exact && matches!(op.kind, OpKind::Binary(BinaryOp::Add | BinaryOp::Sub, ..))
}

/// The exact products that exact sums read.
fn products(function: &Function) -> HashSet<ValueId> {
    let read: HashSet<ValueId> = function.ops().filter(|op| is_sum(op)).flat_map(|op| op.kind.operands()).collect();
    let products = function.ops().filter(|op| op.exact && matches!(op.kind, OpKind::Binary(BinaryOp::Mul, ..)));
    products.filter_map(|op| op.result).filter(|v| read.contains(v)).collect()
}
