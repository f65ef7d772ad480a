//! `separate`: keeps compilers from computing exact operations in another way.
//!
//! In comes any program; out goes one in which an exact sum reads an exact product `m` as `m == m ? m : -m`, which is `m`, NaN or not, and
//! an exact quotient `x / c` by a constant is `x / (x == x ? c : x)`.
//! Never true here: a value changes.
//!
//! XLA's compiler for processors fuses products with sums wherever it sees both, and rounds once: `a * x - a * y` is then not 0 where x
//! is y. And it multiplies by the reciprocal of what it sees to be a constant: `x / 0.7` is then not what `y / 0.7` was folded to. Our
//! own kernels do neither but where the program does.

use super::Options;
use crate::step::{BinaryOp, Function, Op, OpKind, Program, UnaryOp, ValueId};
use rustc_hash::{FxHashMap as HashMap, FxHashSet as HashSet};

/// Runs the pass.
pub fn run(program: &mut Program, _options: &Options) {
    for function in &mut program.functions {
        separate(function);
    }
}

fn separate(function: &mut Function) {
    let products = products(function);
    let constants = constants(function);
    let mut next = function.next_value();
    let mut apart: HashMap<ValueId, ValueId> = HashMap::default();
    for region in function.regions_mut() {
        let mut ops = Vec::with_capacity(region.ops.len());
        let mut add = |ops: &mut Vec<Op>, kind: OpKind, origin| {
            let id = next;
            next = ValueId(id.0 + 1);
            ops.push(Op { result: Some(id), kind, origin, exact: true });
            id
        };
        for mut op in std::mem::take(&mut region.ops) {
            let Op { result, origin, .. } = op;
            if is_sum(&op) {
                op.kind = op.kind.map_operands(|v| apart.get(&v).copied().unwrap_or(v));
            }
            if let Some((x, c)) = quotient(&op, &constants) {
                let equal = add(&mut ops, OpKind::Binary(BinaryOp::Eq, x, x), origin);
                let divisor = add(&mut ops, OpKind::Select(equal, c, x), origin);
                op.kind = OpKind::Binary(BinaryOp::Div, x, divisor);
            }
            ops.push(op);
            if let Some(m) = result.filter(|v| products.contains(v)) {
                let equal = add(&mut ops, OpKind::Binary(BinaryOp::Eq, m, m), origin);
                let minus = add(&mut ops, OpKind::Unary(UnaryOp::Neg, m), origin);
                apart.insert(m, add(&mut ops, OpKind::Select(equal, m, minus), origin));
            }
        }
        region.ops = ops;
    }
}

fn is_sum(op: &Op) -> bool {
    op.exact && matches!(op.kind, OpKind::Binary(BinaryOp::Add | BinaryOp::Sub, ..))
}

/// Dividend and divisor of an exact quotient by a constant whose reciprocal is rounded.
fn quotient(op: &Op, constants: &HashMap<ValueId, f64>) -> Option<(ValueId, ValueId)> {
    let OpKind::Binary(BinaryOp::Div, x, c) = op.kind else { return None };
    let rounded = constants.get(&c).is_some_and(|c| c.abs().log2().fract() != 0.0);
    (op.exact && rounded && !constants.contains_key(&x)).then_some((x, c))
}

/// The constants of a function.
fn constants(function: &Function) -> HashMap<ValueId, f64> {
    let constant = |op: &Op| if let OpKind::Const(c) = op.kind { Some((op.result?, c)) } else { None };
    function.ops().filter_map(constant).collect()
}

/// The exact products that exact sums read.
fn products(function: &Function) -> HashSet<ValueId> {
    let read: HashSet<ValueId> = function.ops().filter(|op| is_sum(op)).flat_map(|op| op.kind.operands()).collect();
    let products = function.ops().filter(|op| op.exact && matches!(op.kind, OpKind::Binary(BinaryOp::Mul, ..)));
    products.filter_map(|op| op.result).filter(|v| read.contains(v)).collect()
}
