//! `cse`: common subexpressions.
//!
//! In comes any program; out goes one in which no operation repeats one that its region can see: an earlier one of the
//! same region, or one of a region of an earlier phase that reaches it.
//! Never true here: a read is taken for another with a store to its field in between, or two effects for one.

use super::Options;
use crate::step::{BinaryOp, FieldId, Function, Map, OpKind, Program, Region, Stage, Surrogate, ValueId};
use rustc_hash::{FxHashMap as HashMap, FxHashSet as HashSet};
use std::mem::{Discriminant, discriminant};

/// Runs the pass.
pub fn run(program: &mut Program, _options: &Options) {
    for function in &mut program.functions {
        function_run(function);
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

/// The values of an earlier region, by how they are computed.
struct Finished {
    /// The region, without its operations.
    region: Region,
    known: HashMap<Key, ValueId>,
}

fn function_run(function: &mut Function) {
    let mut renamed: HashMap<ValueId, ValueId> = HashMap::default();
    let mut versions: HashMap<FieldId, u32> = HashMap::default();
    let mut finished: Vec<Finished> = Vec::new();
    // What stands for an exact operation is exact.
    let mut exact: HashSet<ValueId> = HashSet::default();
    for stage in &mut function.stages {
        let region = match stage {
            Stage::Region(region) => region,
            Stage::Solve(solve) => {
                *versions.entry(solve.x).or_insert(0) += 1;
                continue;
            }
        };
        let mut known: HashMap<Key, ValueId> = HashMap::default();
        let visible = |f: &&Finished| f.region.phase() != region.phase() && f.region.reaches(region);
        let seen: Vec<&Finished> = finished.iter().filter(visible).collect();
        let mut ops = std::mem::take(&mut region.ops);
        ops.retain_mut(|op| {
            op.kind = op.kind.map_operands(|v| renamed.get(&v).copied().unwrap_or(v));
            if let OpKind::Store(field, _) | OpKind::Accumulate(field, ..) = op.kind {
                *versions.entry(field).or_insert(0) += 1;
            }
            let Some(result) = op.result else { return true };
            let key = key(&op.kind, &versions);
            let earlier = known.get(&key).or_else(|| seen.iter().find_map(|f| f.known.get(&key)));
            match earlier {
                Some(&earlier) => {
                    renamed.insert(result, earlier);
                    if op.exact {
                        exact.insert(earlier);
                    }
                    false
                }
                None => {
                    known.insert(key, result);
                    true
                }
            }
        });
        finished.push(Finished { region: region.clone(), known });
        region.ops = ops;
    }
    for op in function.regions_mut().flat_map(|r| &mut r.ops) {
        op.exact |= op.result.is_some_and(|v| exact.contains(&v));
    }
}

fn key(kind: &OpKind, versions: &HashMap<FieldId, u32>) -> Key {
    let mut operands = kind.operands();
    let mut payload = payload(kind);
    if let OpKind::Binary(op, ..) = *kind {
        payload[0] = normalised(op, &mut operands) as u64;
    }
    if let OpKind::Fma(..) = kind {
        operands[..2].sort();
    }
    let version = kind.named_field().and_then(|f| versions.get(&f).copied()).unwrap_or(0);
    Key { kind: discriminant(kind), payload, operands, version }
}

/// What an operation is besides its name and its operands.
pub(super) fn payload(kind: &OpKind) -> [u64; 2] {
    let place = |map: Option<Map>| map.map_or(0, |map| 1 + map as u64);
    match *kind {
        OpKind::Const(x) => [x.to_bits(), 0],
        OpKind::Bool(b) => [u64::from(b), 0],
        OpKind::Field(f) | OpKind::Sample(f, _) | OpKind::Store(f, _) | OpKind::Emit(f, _) => [u64::from(f.0), 0],
        OpKind::Gather(f, along) => [u64::from(f.0), place(Some(along))],
        OpKind::Back(f, along, _) | OpKind::Accumulate(f, along, _) => [u64::from(f.0), place(along)],
        OpKind::Unary(op, _) => [op as u64, 0],
        OpKind::Approximate(function, tolerance, _) => [function as u64, tolerance as u64],
        OpKind::Binary(op, ..) => [op as u64, 0],
        OpKind::Spike(surrogate, _) => shape(surrogate),
        OpKind::Draw(distribution, stream, _) => [distribution as u64, stream],
        OpKind::Time
        | OpKind::StepIndex
        | OpKind::Index
        | OpKind::Fma(..)
        | OpKind::Select(..)
        | OpKind::SpikeBy(..) => [0, 0],
    }
}

/// Two surrogates with one shape are the same.
fn shape(surrogate: Surrogate) -> [u64; 2] {
    match surrogate {
        Surrogate::None => [0, 0],
        Surrogate::FastSigmoid(slope) => [1, slope.to_bits()],
        Surrogate::Arctan(slope) => [2, slope.to_bits()],
        Surrogate::Sigmoid(slope) => [3, slope.to_bits()],
        Surrogate::Triangular(slope) => [4, slope.to_bits()],
        Surrogate::StraightThrough => [5, 0],
    }
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
        BinaryOp::Sub
        | BinaryOp::Div
        | BinaryOp::Pow
        | BinaryOp::Min
        | BinaryOp::Max
        | BinaryOp::Lt
        | BinaryOp::Le
        | BinaryOp::Poisson => op,
    }
}
