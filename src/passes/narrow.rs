//! `narrow`: rates in single precision around states in double precision.
//!
//! In comes a program and the tolerance 1e-6; out goes one in whose steps exponentials of a straight line in one value (a rate
//! function of the voltage), and products, quotients and sums of them and of constants, are singles.
//! Never true here: a state, or anything that is added to one, is a single; a single's relative error bound exceeds 1e-6; a
//! function that `cancellation` finds is narrowed; or a single leaves the range of normal numbers for arguments within 200.
//!
//! The bound counts the measured error of the exponential and half a unit of the last place for every operation. It is relative to
//! the rate at the voltage as rounded to single precision, which is off by less than 8e-6 mV below 128 mV.

use super::arithmetic::{Arithmetic, arithmetic};
use super::cancellation::cancelled;
use super::ranges::same_sign;
use super::rewrite::{Rewriter, rewrite};
use super::{Options, fields};
use crate::runtime::math::approximate::SINGLE_EXPONENTIAL;
use crate::step::{OpKind, Program, Role, Tolerance, UnaryOp, ValueId};
use rustc_hash::FxHashMap as HashMap;

/// The rounding of one operation in single precision.
const ROUNDING: f64 = 1.0 / (1u64 << 24) as f64;
/// The largest argument, in size, for which singles stay normal numbers: 200 mV, as for shared exponentials.
const ARGUMENT: f64 = 200.0;
/// The powers of two that a single may lie between.
const EXPONENTS: [f64; 2] = [-125.0, 126.0];

/// What is known of a single.
#[derive(Debug, Clone, Copy)]
struct Single {
    /// The bound of its relative error.
    error: f64,
    /// It lies between these powers of two, in size.
    least: f64,
    most: f64,
}

/// Runs the pass.
pub fn run(program: &mut Program, options: &Options) {
    if options.tolerance != Some(Tolerance::Micro) {
        return;
    }
    fields::each_function(program, |program, step| {
        if step.role != Role::Step {
            return;
        }
        let cancelled = cancelled(program, step);
        let mut chosen: HashMap<ValueId, Single> = HashMap::default();
        rewrite(program, step, |rw, id, kind| {
            let known = |v: ValueId| chosen.get(&v).copied().or_else(|| number(rw, v));
            let single =
                if cancelled.contains(&id) { None } else { single(rw, &kind, known, |v| chosen.contains_key(&v)) };
            let fits =
                |s: &Single| s.error <= Tolerance::Micro.bound() && s.least >= EXPONENTS[0] && s.most <= EXPONENTS[1];
            chosen.extend(single.filter(fits).map(|single| (id, single)));
            None
        });
        // The wide value that stands for a single, with the single.
        let mut narrow: HashMap<ValueId, ValueId> = HashMap::default();
        rewrite(program, step, |rw, id, kind| {
            chosen.get(&id)?;
            let single = match (kind, straight(rw, &kind)) {
                (OpKind::Unary(op, _), Some((x, slope, offset))) => {
                    let [x, slope, offset] = [x, slope, offset].map(|v| rw.unary(UnaryOp::Narrow, v));
                    let argument = rw.value(OpKind::Fma(x, slope, offset));
                    rw.unary(op, argument)
                }
                (_, _) => {
                    let kind = kind.map_operands(|v| match narrow.get(&v) {
                        Some(&single) => single,
                        None => rw.unary(UnaryOp::Narrow, v),
                    });
                    rw.value(kind)
                }
            };
            let wide = rw.unary(UnaryOp::Widen, single);
            narrow.insert(wide, single);
            Some(wide)
        });
    });
}

/// The argument of an exponential as a value, a slope and an offset, both constants.
fn straight(rw: &Rewriter<'_>, kind: &OpKind) -> Option<(ValueId, ValueId, ValueId)> {
    let OpKind::Unary(UnaryOp::Exp | UnaryOp::Exp2, argument) = *kind else { return None };
    let OpKind::Fma(a, b, offset) = rw.def(argument) else { return None };
    let (x, slope) = if rw.number(a).is_some() { (b, a) } else { (a, b) };
    (rw.number(slope).is_some() && rw.number(offset).is_some() && !rw.uniform(x)).then_some((x, slope, offset))
}

/// A constant as a single.
fn number(rw: &Rewriter<'_>, v: ValueId) -> Option<Single> {
    let size = rw.number(v).filter(|c| c.is_finite() && *c != 0.0)?.abs().log2();
    Some(Single { error: ROUNDING, least: size, most: size })
}

/// An operation in single precision, if it is one that may be.
fn single(
    rw: &Rewriter<'_>,
    kind: &OpKind,
    known: impl Fn(ValueId) -> Option<Single>,
    chosen: impl Fn(ValueId) -> bool,
) -> Option<Single> {
    if let Some((_, slope, offset)) = straight(rw, kind) {
        let (slope, offset) = (rw.number(slope)?.abs(), rw.number(offset)?);
        let octaves = if matches!(kind, OpKind::Unary(UnaryOp::Exp, _)) { std::f64::consts::LOG2_E } else { 1.0 };
        let (middle, half) = (offset * octaves, slope * ARGUMENT * octaves);
        return Some(Single { error: SINGLE_EXPONENTIAL, least: middle - half, most: middle + half });
    }
    if !kind.operands().into_iter().any(chosen) {
        return None;
    }
    let product =
        |a: Single, b: Single| Single { error: a.error + b.error, least: a.least + b.least, most: a.most + b.most };
    let sum = |a: Single, b: Single| Single {
        error: a.error.max(b.error),
        least: a.least.max(b.least),
        most: a.most.max(b.most) + 1.0,
    };
    let exact = match arithmetic(*kind)? {
        Arithmetic::Neg(a) => return known(a),
        Arithmetic::Mul(a, b) => product(known(a)?, known(b)?),
        Arithmetic::Div(a, b) => {
            let b = known(b)?;
            product(known(a)?, Single { least: -b.most, most: -b.least, ..b })
        }
        Arithmetic::Add(a, b) if same_sign(kind, |v| rw.range(v)) => sum(known(a)?, known(b)?),
        Arithmetic::Fma(a, b, c) if same_sign(kind, |v| rw.range(v)) => sum(product(known(a)?, known(b)?), known(c)?),
        Arithmetic::Add(..) | Arithmetic::Sub(..) | Arithmetic::Fma(..) => return None,
    };
    Some(Single { error: exact.error + ROUNDING, ..exact })
}
