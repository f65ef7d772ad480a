//! `separate`: keeps compilers from fusing exact products with the sums that they feed.
//!
//! In comes any program; out goes one in which an exact sum reads an exact product `m` as `m == m ? m : -m`, which is `m`, NaN or not.
//! Never true here: a value changes.
//!
//! XLA's compiler for processors fuses products with sums wherever it sees both, and rounds once: `a * x - a * y` is then not 0 where x
//! is y. Our own kernels fuse nothing that the program does not fuse.

use super::Options;
use crate::step::{BinaryOp, Kernel, Op, OpKind, Program, UnaryOp, ValueId};
use std::collections::{HashMap, HashSet};

/// Runs the pass.
pub fn run(program: &mut Program, _options: &Options) {
    for kernel in &mut program.kernels {
        separate(kernel);
    }
}

fn separate(kernel: &mut Kernel) {
    let products = products(kernel);
    let last = kernel.ops().filter_map(|op| op.result).map(|v| v.0).max();
    let mut next = last.map_or(0, |last| last + 1);
    let mut apart: HashMap<ValueId, ValueId> = HashMap::new();
    for region in &mut kernel.regions {
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
fn products(kernel: &Kernel) -> HashSet<ValueId> {
    let read: HashSet<ValueId> = kernel.ops().filter(|op| is_sum(op)).flat_map(|op| op.kind.operands()).collect();
    let products = kernel.ops().filter(|op| op.exact && matches!(op.kind, OpKind::Binary(BinaryOp::Mul, ..)));
    products.filter_map(|op| op.result).filter(|v| read.contains(v)).collect()
}
