//! `share-exponentials`: exponentials whose exponents are multiples of each other become powers of one.
//!
//! In comes a program with `exp(u)` and `linoid(u)` where the `u` are straight lines in one value; out goes one in which
//! `exp(n * a * v + c)` is `e^d * exp(a * v + b)^n`, for whole `n` that take at most three products.
//! Never true here: a slope or an offset is a parameter, a family has fewer than two members, or an exponent can leave
//! the range in which f32 (|v| <= 200) and f64 (|v| <= 500) are finite.
//!
//! A `linoid` that joins a family costs no exponential of its own: for |u| < 0.1 it is the series
//! `1 - u/2 + u^2/12 - u^4/720 + u^6/30240` (truncated below 1e-14), elsewhere `u / (E - 1)`, where the subtraction loses
//! at most one digit. Both branches share one division. Error: `n` times that of the exponential, about 10 ulps for
//! the eighth power; ten times that for a `linoid` at |u| = 0.1: 1e-14 in f64, 1e-5 in f32, less everywhere else.

use super::line::line;
use super::ranges::STATE_BOUND;
use super::rewrite::{Rewriter, rewrite};
use super::{Options, fields};
use crate::step::{BinaryOp, OpKind, Program, UnaryOp, ValueId};
use rustc_hash::FxHashMap as HashMap;
use std::collections::BTreeMap;

/// Powers that take at most three products.
const POWERS: [u32; 7] = [1, 2, 3, 4, 5, 6, 8];

/// Where the series takes over from the quotient.
const SERIES_BELOW: f64 = 0.1;

/// One exponential or linoid of a straight line.
#[derive(Debug, Clone, Copy)]
struct Member {
    id: ValueId,
    linoid: bool,
    slope: f64,
    offset: f64,
}

/// Members that are powers of one exponential.
struct Family {
    slope: f64,
    offset: f64,
    members: Vec<(Member, u32)>,
}

/// How to compute a member.
#[derive(Debug, Clone, Copy)]
struct Share {
    atom: ValueId,
    slope: f64,
    offset: f64,
    power: u32,
    /// The member is `exp(shift) * base^power`.
    shift: f64,
}

/// Runs the pass.
pub fn run(program: &mut Program, _options: &Options) {
    fields::each_function(program, |program, function| {
        let mut members: BTreeMap<(usize, ValueId), Vec<Member>> = BTreeMap::new();
        rewrite(program, function, |rw, id, kind| {
            if let Some((atom, member)) = member(rw, id, kind) {
                members.entry((rw.place(), atom)).or_default().push(member);
            }
            None
        });
        let mut shares = HashMap::default();
        for ((_, atom), members) in members {
            for family in families(members) {
                plan(atom, &family, &mut shares);
            }
        }
        rewrite(program, function, |rw, id, kind| {
            let share = shares.get(&id)?;
            let OpKind::Unary(op @ (UnaryOp::Exp | UnaryOp::Linoid), u) = kind else { return None };
            Some(if op == UnaryOp::Exp { shared_exp(rw, share) } else { shared_linoid(rw, share, u) })
        });
    });
}

/// A varying exponential of a straight line that is safe to take powers of.
fn member(rw: &Rewriter<'_>, id: ValueId, kind: OpKind) -> Option<(ValueId, Member)> {
    let OpKind::Unary(op, u) = kind else { return None };
    if !matches!(op, UnaryOp::Exp | UnaryOp::Linoid) || rw.uniform(u) {
        return None;
    }
    let line = line(rw, u);
    let (slope, offset) = (line.slope, line.offset);
    (slope != 0.0 && fits(slope, offset)).then_some(())?;
    Some((line.atom?, Member { id, linoid: op == UnaryOp::Linoid, slope, offset }))
}

/// Does the exponent stay where f32 and f64 are finite and not zero?
fn fits(slope: f64, offset: f64) -> bool {
    slope.abs() * STATE_BOUND + offset.abs() < 600.0 && slope.abs() * 200.0 + offset.abs() < 80.0
}

/// Groups members around the smallest slopes.
fn families(mut members: Vec<Member>) -> Vec<Family> {
    members.sort_by(|a, b| a.slope.abs().total_cmp(&b.slope.abs()).then(a.linoid.cmp(&b.linoid)));
    let mut families: Vec<Family> = Vec::new();
    for member in members {
        let home = families
            .iter_mut()
            .filter_map(|f| Some((power_of(member.slope / f.slope)?, f)))
            .filter(|(n, f)| fits(0.0, member.offset - f64::from(*n) * f.offset))
            .min_by_key(|(n, _)| *n);
        match home {
            Some((n, family)) => family.members.push((member, n)),
            None => {
                let (slope, offset) = (member.slope, member.offset);
                families.push(Family { slope, offset, members: vec![(member, 1)] });
            }
        }
    }
    families
}

/// The cheap power that a ratio of slopes is, to 4 ulps.
fn power_of(ratio: f64) -> Option<u32> {
    POWERS.into_iter().find(|&n| (ratio - f64::from(n)).abs() <= 4.0 * f64::EPSILON * f64::from(n))
}

fn plan(atom: ValueId, family: &Family, shares: &mut HashMap<ValueId, Share>) {
    if family.members.len() < 2 {
        return;
    }
    let (slope, offset) = (family.slope, family.offset);
    for &(member, power) in &family.members {
        let shift = member.offset - f64::from(power) * offset;
        shares.insert(member.id, Share { atom, slope, offset, power, shift });
    }
}

/// `exp(shift) * exp(slope * atom + offset)^power`
fn shared_exp(rw: &mut Rewriter<'_>, share: &Share) -> ValueId {
    let atom = rw.current(share.atom);
    let (slope, offset) = (rw.constant(share.slope), rw.constant(share.offset));
    let scaled = rw.mul(atom, slope);
    let exponent = rw.add(scaled, offset);
    let base = rw.unary(UnaryOp::Exp, exponent);
    let power = rw.power(base, share.power);
    if share.shift == 0.0 {
        return power;
    }
    let shift = rw.constant(share.shift);
    let factor = rw.unary(UnaryOp::Exp, shift);
    rw.mul(power, factor)
}

/// `linoid(u)` from an exponential that is there anyway.
fn shared_linoid(rw: &mut Rewriter<'_>, share: &Share, u: ValueId) -> ValueId {
    let e = shared_exp(rw, share);
    let one = rw.constant(1.0);
    let expm1 = rw.sub(e, one);
    let size = rw.unary(UnaryOp::Abs, u);
    let limit = rw.constant(SERIES_BELOW);
    let near = rw.value(OpKind::Binary(BinaryOp::Lt, size, limit));

    // The series of x / (e^x - 1): its coefficients are the Bernoulli numbers B_k / k!.
    let square = rw.mul(u, u);
    let mut series = rw.constant(1.0 / 30240.0);
    for coefficient in [-1.0 / 720.0, 1.0 / 12.0] {
        let coefficient = rw.constant(coefficient);
        series = rw.fma(series, square, coefficient);
    }
    let half = rw.constant(-0.5);
    let start = rw.fma(u, half, one);
    let series = rw.fma(series, square, start);

    let above = rw.select(near, series, u);
    let below = rw.select(near, one, expm1);
    rw.div(above, below)
}
