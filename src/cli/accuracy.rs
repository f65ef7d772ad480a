//! What an accuracy did to a model, in words.
//!
//! In come a program after passes and what was asked for; out go lines for people.
//! Never true here: a number that is not counted in the program or read from the tables of the runtime.

use super::settings::{AccuracyName, PrecisionName};
use crate::runtime::math::approximate::SINGLE_EXPONENTIAL;
use crate::step::{
    BinaryOp, Elementary, Map, OpKind, Phase, Program, Region, Role, SpaceId, SpaceKind, Tolerance, UnaryOp, ValueId,
};
use std::collections::{BTreeMap, HashSet};
use std::fmt::Write;

/// What functions are computed how, for every population.
pub fn explain(program: &Program, accuracy: AccuracyName, precision: PrecisionName) -> String {
    // Writing to a string cannot fail.
    let mut out = format!("accuracy {}", accuracy.name());
    match (accuracy, precision == PrecisionName::F64) {
        (AccuracyName::Exact, _) => out.push_str(": functions are accurate to the last places of the numbers"),
        (AccuracyName::Micro, false) => {
            let name = precision.name();
            let _ =
                write!(out, ": with `--precision {name}` everything is computed in f32 anyway, and nothing changes");
        }
        (AccuracyName::Nano | AccuracyName::Micro, _) => {
            out.push_str(": errors are relative to the exact function, measured; what the model makes of them depends on the model");
        }
    }
    for space in (0..program.spaces.len() as u32).map(SpaceId) {
        let regions: Vec<&Region> = match program.function(Role::Step) {
            Some(function) => function.regions().filter(|region| concerns(program, region, space)).collect(),
            None => continue,
        };
        if regions.iter().any(|region| region.over == Some(space)) && program.space(space).kind == SpaceKind::Plain {
            // Writing to a string cannot fail.
            let _ = step(&mut out, &regions, &program.space(space).name);
        }
    }
    out
}

/// Is a region one of a population, of edges that lead to it, or of what all share?
fn concerns(program: &Program, region: &Region, population: SpaceId) -> bool {
    match region.over {
        None => true,
        Some(space) => space == population || program.map(space, Map::Target) == Some(population),
    }
}

/// What the step of a population computes for every cell.
fn step(out: &mut String, regions: &[&Region], name: &str) -> std::fmt::Result {
    let mut singles: HashSet<ValueId> = HashSet::new();
    let mut within: BTreeMap<(Elementary, Tolerance), u32> = BTreeMap::new();
    let mut in_single: BTreeMap<&str, u32> = BTreeMap::new();
    let (mut values, mut narrow, mut accurate, mut divisions) = (0, 0, 0, 0);
    for region in regions {
        let of_cells = region.phase() == Phase::Body;
        for op in &region.ops {
            let Some(result) = op.result else { continue };
            let operand = op.kind.operands().first().is_some_and(|v| singles.contains(v));
            let single = match op.kind {
                OpKind::Unary(op, _) => op == UnaryOp::Narrow || operand && op != UnaryOp::Widen,
                OpKind::Const(_)
                | OpKind::Bool(_)
                | OpKind::Field(_)
                | OpKind::Gather(..)
                | OpKind::Back(..)
                | OpKind::Spike(..)
                | OpKind::SpikeBy(..)
                | OpKind::Time
                | OpKind::StepIndex
                | OpKind::Index
                | OpKind::Approximate(..)
                | OpKind::Binary(..)
                | OpKind::Fma(..)
                | OpKind::Select(..)
                | OpKind::Draw(..)
                | OpKind::Sample(..)
                | OpKind::Store(..)
                | OpKind::Accumulate(..)
                | OpKind::Emit(..) => operand,
            };
            if single {
                singles.insert(result);
            }
            if !of_cells || matches!(op.kind, OpKind::Field(_) | OpKind::Gather(..) | OpKind::Back(..)) {
                continue;
            }
            values += 1;
            narrow += u32::from(single);
            if let OpKind::Approximate(function, tolerance, _) = op.kind {
                *within.entry((function, tolerance)).or_default() += 1;
            }
            if let OpKind::Unary(op, _) = op.kind
                && is_function(op)
            {
                if single { *in_single.entry(op.name()).or_default() += 1 } else { accurate += 1 }
            }
            divisions += u32::from(matches!(op.kind, OpKind::Binary(BinaryOp::Div, ..)));
        }
    }
    write!(out, "\n  {name}, per cell and step:")?;
    for (function, count) in in_single {
        write!(out, "\n    {count} {function} in f32: error up to {SINGLE_EXPONENTIAL:.1e}")?;
    }
    for ((function, tolerance), count) in within {
        let (degree, error) = (function.degree(tolerance), function.error(tolerance));
        write!(out, "\n    {count} {} by a polynomial of degree {degree}: error up to {error:.1e}", function.name())?;
    }
    write!(out, "\n    {accurate} elementary functions at full accuracy")?;
    write!(out, "\n    {divisions} divisions, rounded correctly")?;
    write!(out, "\n    {narrow} of {values} computed values in f32")
}

/// Is it an elementary function?
fn is_function(op: UnaryOp) -> bool {
    match op {
        UnaryOp::Exp
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
        UnaryOp::Neg
        | UnaryOp::Abs
        | UnaryOp::Sqrt
        | UnaryOp::Floor
        | UnaryOp::Ceil
        | UnaryOp::Nonzero
        | UnaryOp::Finite
        | UnaryOp::Narrow
        | UnaryOp::Widen
        | UnaryOp::Not => false,
    }
}
