//! `cse`: common subexpressions.
//!
//! In comes any program; out goes one in which no operation repeats one that its region can see: an earlier one of the
//! same region, or one of a phase that reaches it.
//! Never true here: a read is taken for another with a store to its field in between, or two effects for one.

use super::Options;
use crate::step::{BinaryOp, FieldId, Kernel, OpKind, Phase, Program, ValueId};
use std::collections::{HashMap, HashSet};
use std::mem::{Discriminant, discriminant};

/// Runs the pass.
pub fn run(program: &mut Program, _options: &Options) {
    for kernel in &mut program.kernels {
        kernel_run(kernel);
    }
}

/// Two operations with one key have one value.
#[derive(PartialEq, Eq, Hash)]
struct Key {
    kind: Discriminant<OpKind>,
    payload: [u64; 2],
    operands: Vec<ValueId>,
    /// How many stores to the field that is read came before.
    version: u32,
}

fn kernel_run(kernel: &mut Kernel) {
    let mut renamed: HashMap<ValueId, ValueId> = HashMap::new();
    let mut versions: HashMap<FieldId, u32> = HashMap::new();
    let mut finished: Vec<(Phase, HashMap<Key, ValueId>)> = Vec::new();
    // What stands for an exact operation is exact.
    let mut exact: HashSet<ValueId> = HashSet::new();
    for region in &mut kernel.regions {
        let mut here: HashMap<Key, ValueId> = HashMap::new();
        let seen: Vec<_> =
            finished.iter().filter(|(phase, _)| *phase != region.phase && phase.reaches(region.phase)).collect();
        region.ops.retain_mut(|op| {
            op.kind = op.kind.map_operands(|v| renamed.get(&v).copied().unwrap_or(v));
            if let OpKind::Store(field, _) | OpKind::Accumulate(field, _) = op.kind {
                *versions.entry(field).or_insert(0) += 1;
            }
            let Some(result) = op.result else { return true };
            let key = key(&op.kind, &versions);
            let earlier = here.get(&key).or_else(|| seen.iter().find_map(|(_, known)| known.get(&key)));
            match earlier {
                Some(&earlier) => {
                    renamed.insert(result, earlier);
                    if op.exact {
                        exact.insert(earlier);
                    }
                    false
                }
                None => {
                    here.insert(key, result);
                    true
                }
            }
        });
        finished.push((region.phase, here));
    }
    for op in kernel.regions.iter_mut().flat_map(|r| &mut r.ops) {
        op.exact |= op.result.is_some_and(|v| exact.contains(&v));
    }
}

fn key(kind: &OpKind, versions: &HashMap<FieldId, u32>) -> Key {
    let mut operands = kind.operands();
    let payload = match *kind {
        OpKind::Const(x) => [x.to_bits(), 0],
        OpKind::Bool(b) => [u64::from(b), 0],
        OpKind::Field(f)
        | OpKind::There(f)
        | OpKind::Sample(f, _)
        | OpKind::Store(f, _)
        | OpKind::Accumulate(f, _)
        | OpKind::Emit(f, _) => [u64::from(f.0), 0],
        OpKind::Unary(op, _) => [op as u64, 0],
        OpKind::Approximate(function, tolerance, _) => [function as u64, tolerance as u64],
        OpKind::Binary(op, ..) => [normalised(op, &mut operands) as u64, 0],
        OpKind::Draw(distribution, stream, _) => [distribution as u64, stream],
        OpKind::Fma(..) => {
            operands[..2].sort();
            [0, 0]
        }
        OpKind::Time | OpKind::StepIndex | OpKind::Index | OpKind::Select(..) => [0, 0],
    };
    let version = kind.named_field().and_then(|f| versions.get(&f).copied()).unwrap_or(0);
    Key { kind: discriminant(kind), payload, operands, version }
}

/// Sorts the operands of commutative operators and turns `>` into `<`. (`min` and `max` do not commute: they prefer
/// their second operand.)
fn normalised(op: BinaryOp, operands: &mut [ValueId]) -> BinaryOp {
    match op {
        BinaryOp::Add | BinaryOp::Mul | BinaryOp::Eq | BinaryOp::Ne | BinaryOp::And | BinaryOp::Or => {
            operands.sort();
            op
        }
        BinaryOp::Gt => {
            operands.reverse();
            BinaryOp::Lt
        }
        BinaryOp::Ge => {
            operands.reverse();
            BinaryOp::Le
        }
        BinaryOp::Sub | BinaryOp::Div | BinaryOp::Pow | BinaryOp::Min | BinaryOp::Max | BinaryOp::Lt | BinaryOp::Le => {
            op
        }
    }
}
