//! `hoist`: every operation in the earliest phase that allows it.
//!
//! In comes any program; out goes one in which every function begins with at most one region that runs once, one that runs once over
//! each space and one that runs every step, in which nothing uniform is computed per element and nothing that does not depend on
//! time is computed per step.
//! Never true here: an operation moves to a later phase, or an effect or the read of a state moves at all.
//!
//! What is uniform always moves: it is computed once instead of once per element. What differs between cells but not
//! between steps moves to the region that runs once over their space only in a step function (the others run for one step anyway), only
//! from bodies without a guard over a plain space (see [`phase::keeps_for_cells`]) and only if it
//! belongs to a chain with something expensive in it (a division, a root, a transcendental function, a random number):
//! such a value has to be kept for every cell, and that costs as much as an addition saves.

use super::{Options, fields, phase};
use crate::step::{
    BinaryOp, Function, Op, OpKind, Phase, Program, Rate, Region, Role, SpaceId, Stage, UnaryOp, ValueId,
};
use rustc_hash::{FxHashMap as HashMap, FxHashSet as HashSet};
use std::collections::BTreeMap;

/// Runs the pass.
pub fn run(program: &mut Program, _options: &Options) {
    fields::each_function(program, hoist);
}

/// The regions at the head of a function.
#[derive(Default)]
struct Head {
    once: Vec<Op>,
    once_over: BTreeMap<SpaceId, Vec<Op>>,
    every: Vec<Op>,
}

fn hoist(program: &Program, function: &mut Function) {
    let worthwhile = worthwhile(program, function);
    let mut phases: HashMap<ValueId, Phase> = HashMap::default();
    let mut head = Head::default();
    let mut stages = Vec::new();
    for stage in std::mem::take(&mut function.stages) {
        let mut region = match stage {
            Stage::Region(region) => region,
            Stage::Solve(_) => {
                stages.push(stage);
                continue;
            }
        };
        let mut body = Vec::new();
        for op in std::mem::take(&mut region.ops) {
            let mut phase = earliest(program, function.role, &region, &op.kind, |v| phases[&v]);
            let stays = region.rate == Rate::Every && phase == Phase::Cell;
            if stays && !op.result.is_some_and(|v| worthwhile.contains(&v)) {
                phase = Phase::Body;
            }
            phases.extend(op.result.map(|v| (v, phase)));
            match (phase, region.over) {
                (Phase::Call, _) => head.once.push(op),
                (Phase::Time, _) => head.every.push(op),
                (Phase::Cell, Some(space)) => head.once_over.entry(space).or_default().push(op),
                (Phase::Cell, None) | (Phase::Body, _) => body.push(op),
            }
        }
        if region.phase() == Phase::Body || !body.is_empty() {
            stages.push(Stage::Region(Region { ops: body, ..region }));
        }
    }
    function.stages = head.stages().into_iter().chain(stages).collect();
}

impl Head {
    /// Those of its regions in which something is computed.
    fn stages(self) -> Vec<Stage> {
        let region = |rate, over, ops| Region { rate, over, guard: None, ops };
        let once = region(Rate::Once, None, self.once);
        let once_over = self.once_over.into_iter().map(|(space, ops)| region(Rate::Once, Some(space), ops));
        let every = region(Rate::Every, None, self.every);
        let all = [once].into_iter().chain(once_over).chain([every]);
        all.filter(|r| !r.ops.is_empty()).map(Stage::Region).collect()
    }
}

/// The earliest phase for an operation of a region, given those of its operands. What a region computes once is never late.
fn earliest(
    program: &Program,
    role: Role,
    region: &Region,
    kind: &OpKind,
    phase_of: impl Fn(ValueId) -> Phase,
) -> Phase {
    match (phase::earliest(kind, role, &program.fields, phase_of), region.rate) {
        (phase @ (Phase::Call | Phase::Time), _) => phase,
        (Phase::Cell | Phase::Body, Rate::Once) => region.phase(),
        (phase @ (Phase::Cell | Phase::Body), Rate::Every) => phase,
    }
}

/// The values of bodies that do not depend on time and belong to a chain with something expensive in it.
fn worthwhile(program: &Program, function: &Function) -> HashSet<ValueId> {
    let mut phases: HashMap<ValueId, Phase> = HashMap::default();
    let mut chosen = HashSet::default();
    if function.role != Role::Step {
        return chosen;
    }
    // Downwards: what is expensive or uses something that is.
    for region in function.regions() {
        let may_move = region.rate == Rate::Once || phase::keeps_for_cells(program, region);
        for op in &region.ops {
            let phase = earliest(program, function.role, region, &op.kind, |v| phases[&v]);
            let phase = if phase == Phase::Cell && !may_move { Phase::Body } else { phase };
            let Some(result) = op.result else { continue };
            phases.insert(result, phase);
            let uses_chosen = op.kind.operands().iter().any(|v| chosen.contains(v));
            if phase == Phase::Cell && (is_expensive(&op.kind) || uses_chosen) {
                chosen.insert(result);
            }
        }
    }
    // Upwards: what the chosen ones need.
    for op in function.ops().rev() {
        if op.result.is_some_and(|v| chosen.contains(&v)) {
            chosen.extend(op.kind.operands().into_iter().filter(|v| phases[v] == Phase::Cell));
        }
    }
    chosen
}

/// Does it take much longer than an addition?
fn is_expensive(kind: &OpKind) -> bool {
    if let OpKind::Unary(op, _) = kind {
        return match op {
            UnaryOp::Neg
            | UnaryOp::Abs
            | UnaryOp::Floor
            | UnaryOp::Ceil
            | UnaryOp::Nonzero
            | UnaryOp::Finite
            | UnaryOp::Narrow
            | UnaryOp::Widen
            | UnaryOp::Not => false,
            UnaryOp::Sqrt
            | UnaryOp::Exp
            | UnaryOp::Exp2
            | UnaryOp::Expm1
            | UnaryOp::Exp2m1
            | UnaryOp::Exp2rel
            | UnaryOp::Ln
            | UnaryOp::Log2
            | UnaryOp::Log10
            | UnaryOp::Sin
            | UnaryOp::Cos
            | UnaryOp::Tan
            | UnaryOp::Sinh
            | UnaryOp::Cosh
            | UnaryOp::Tanh
            | UnaryOp::Linoid => true,
        };
    }
    if let OpKind::Binary(op, ..) = kind {
        return match op {
            BinaryOp::Div | BinaryOp::Pow | BinaryOp::Poisson => true,
            BinaryOp::Add
            | BinaryOp::Sub
            | BinaryOp::Mul
            | BinaryOp::Min
            | BinaryOp::Max
            | BinaryOp::Lt
            | BinaryOp::Le
            | BinaryOp::Gt
            | BinaryOp::Ge
            | BinaryOp::Eq
            | BinaryOp::Ne
            | BinaryOp::And
            | BinaryOp::Or => false,
        };
    }
    matches!(kind, OpKind::Approximate(..) | OpKind::Draw(..) | OpKind::Sample(..))
}
