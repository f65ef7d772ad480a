//! `affine`: sums of products with coefficients that do not vary, in as few operations as possible.
//!
//! In comes a program; out goes one in which `(v + 40) / -10 * c` is one `fma(v, A, B)`, with `A` and `B` computed outside
//! the loop, and a sum of conductance terms `g * w * (v - e)` is `fma(v, sum of g * w, sum of -g * e * w)`.
//! Never true here: the new form takes more operations than the old one, or a value with other uses is computed twice,
//! unless it was itself one operation.
//!
//! An infinite coefficient (a parameter of 0 that something is divided by) may turn an infinite sum into NaN.
//! Error: a few roundings of the largest term of the sum, which near a zero of the sum is larger than the sum:
//! `fma(v, A, B)` is off by an ulp of `B` where `(v + 40) * A` was exact at -40. Rates divide by no such sum.

use super::arithmetic::{Arithmetic, arithmetic};
use super::rewrite::{Rewriter, rewrite};
use super::{Options, fields};
use crate::step::{BinaryOp, OpKind, Program, UnaryOp, ValueId};

/// Sums with more terms than this stay as they are.
const MOST_TERMS: usize = 24;

/// Runs the pass.
pub fn run(program: &mut Program, _options: &Options) {
    fields::each_function(program, |program, function| {
        rewrite(program, function, |rw, _, kind| {
            let sum_or_product = matches!(kind, OpKind::Approximate(..)) || arithmetic(kind).is_some();
            if !sum_or_product || kind.operands().iter().all(|&v| rw.uniform(v)) {
                return None;
            }
            collapse(rw, kind)
        });
    });
}

/// Is this `x + c * x + ...`: a value and its small change? With `(1 + c) * x` the low digits of `c` would be lost in the
/// same way at every step, and in single precision a slow cell would come to rest elsewhere.
fn is_small_change(rw: &Rewriter<'_>, sum: &[Term]) -> bool {
    sum.iter().enumerate().any(|(i, bare)| match bare.atoms[..] {
        [x] => trivial(rw, bare.coefficient) && sum.iter().enumerate().any(|(j, t)| i != j && t.atoms.contains(&x)),
        _ => false,
    })
}

/// A sum of terms.
type Sum = Vec<Term>;

/// `coefficient * product of atoms`; the coefficient does not vary.
#[derive(Debug, Clone)]
struct Term {
    coefficient: ValueId,
    atoms: Vec<ValueId>,
}

/// How far a form may look into operands.
#[derive(Clone, Copy, PartialEq)]
enum Depth {
    /// A sum times a term is multiplied out. (Not two sums: where both are small, their products are differences of large numbers.)
    Expand,
    /// A sum that is a factor is an atom.
    Keep,
}

fn collapse(rw: &mut Rewriter<'_>, kind: OpKind) -> Option<ValueId> {
    let old = 1 + kind.operands().iter().map(|&v| cost_within(rw, v)).sum::<u32>()
        - u32::from(fusible(rw, kind))
        - u32::from(matches!(kind, OpKind::Unary(UnaryOp::Neg, _)));
    let mut best: Option<(u32, Sum)> = None;
    for depth in [Depth::Expand, Depth::Keep] {
        let Some(sum) = sum_of(rw, kind, depth) else { continue };
        if sum.len() > MOST_TERMS || is_small_change(rw, &sum) {
            continue;
        }
        let cost = cost(rw, &sum) + cost_of_atoms(rw, &sum);
        if best.as_ref().is_none_or(|b| cost < b.0) {
            best = Some((cost, sum));
        }
    }
    let (new, sum) = best?;
    let division = matches!(kind, OpKind::Binary(BinaryOp::Div, _, _));
    (new < old || (new == old && (division || is_line(&sum) && !already(rw, kind)))).then(|| emit(rw, &sum))
}

/// One atom to the first power, and a number or parameter.
fn is_line(sum: &[Term]) -> bool {
    let mut atoms = sum.iter().flat_map(|t| &t.atoms);
    sum.iter().all(|t| t.atoms.len() <= 1) && atoms.next().is_some() && atoms.next().is_none()
}

/// Is it already an operation on an atom and coefficients?
fn already(rw: &Rewriter<'_>, kind: OpKind) -> bool {
    let varying: Vec<ValueId> = kind.operands().into_iter().filter(|&v| !rw.uniform(v)).collect();
    let within = |v: ValueId| !matches!(line_of(rw, v), None | Some((None, _)));
    !varying.iter().any(|&v| within(v))
}

/// Is the value an affine operation on one varying operand? Then that operand, if the others do not vary.
fn line_of(rw: &Rewriter<'_>, v: ValueId) -> Option<(Option<ValueId>, OpKind)> {
    let kind = rw.def(v);
    let affine = arithmetic(kind).is_some_and(|kind| match kind {
        Arithmetic::Div(_, b) => rw.uniform(b),
        Arithmetic::Neg(_) | Arithmetic::Add(..) | Arithmetic::Sub(..) | Arithmetic::Mul(..) | Arithmetic::Fma(..) => {
            true
        }
    });
    if !affine {
        return None;
    }
    let mut varying = kind.operands().into_iter().filter(|&v| !rw.uniform(v));
    let first = varying.next();
    Some((if varying.next().is_some() { None } else { first }, kind))
}

/// May a sum contain this operand's own terms instead of the operand? Not a product that others need, too: what one state loses and another gains
/// is one number, and with coefficients that are added up and rounded for each state their sum would drift.
fn open(rw: &Rewriter<'_>, v: ValueId) -> bool {
    if rw.uniform(v) {
        return false;
    }
    let shared_line =
        || matches!(line_of(rw, v), Some((Some(_), kind)) if !matches!(kind, OpKind::Binary(BinaryOp::Mul, ..)));
    rw.single(v) || shared_line()
}

/// The terms of an operation.
fn sum_of(rw: &mut Rewriter<'_>, kind: OpKind, depth: Depth) -> Option<Sum> {
    match arithmetic(kind)? {
        Arithmetic::Neg(a) => {
            let a = terms(rw, a, depth);
            let minus = rw.constant(-1.0);
            Some(scaled(rw, a, minus))
        }
        Arithmetic::Add(a, b) => {
            let (a, b) = (terms(rw, a, depth), terms(rw, b, depth));
            Some(plus(rw, a, b))
        }
        Arithmetic::Sub(a, b) => {
            let (a, b) = (terms(rw, a, depth), terms(rw, b, depth));
            let minus = rw.constant(-1.0);
            let b = scaled(rw, b, minus);
            Some(plus(rw, a, b))
        }
        Arithmetic::Mul(a, b) => {
            let (a, b) = (terms(rw, a, depth), terms(rw, b, depth));
            times(rw, a, b, depth)
        }
        Arithmetic::Div(a, b) if rw.uniform(b) => {
            let a = terms(rw, a, depth);
            let one = rw.constant(1.0);
            let reciprocal = rw.div(one, b);
            Some(scaled(rw, a, reciprocal))
        }
        Arithmetic::Fma(a, b, c) => {
            let (a, b, c) = (terms(rw, a, depth), terms(rw, b, depth), terms(rw, c, depth));
            let product = times(rw, a, b, depth)?;
            Some(plus(rw, product, c))
        }
        Arithmetic::Div(..) => None,
    }
}

/// The terms of an operand; what may not be opened is an atom.
fn terms(rw: &mut Rewriter<'_>, v: ValueId, depth: Depth) -> Sum {
    if rw.uniform(v) {
        return vec![Term { coefficient: v, atoms: vec![] }];
    }
    if open(rw, v)
        && let Some(sum) = sum_of(rw, rw.def(v), depth)
        && sum.len() <= MOST_TERMS
        && (rw.single(v) || sum.len() <= 2)
    {
        return sum;
    }
    let one = rw.constant(1.0);
    vec![Term { coefficient: one, atoms: vec![v] }]
}

fn scaled(rw: &mut Rewriter<'_>, sum: Sum, by: ValueId) -> Sum {
    let scale = |t: Term| Term { coefficient: rw.mul(t.coefficient, by), atoms: t.atoms };
    sum.into_iter().map(scale).collect()
}

fn plus(rw: &mut Rewriter<'_>, a: Sum, b: Sum) -> Sum {
    let mut sum = a;
    for term in b {
        match sum
            .iter_mut()
            .find(|t| t.atoms == term.atoms && trivial(rw, t.coefficient) == trivial(rw, term.coefficient))
        {
            Some(t) => t.coefficient = rw.add(t.coefficient, term.coefficient),
            None => sum.push(term),
        }
    }
    sum.retain(|t| rw.number(t.coefficient) != Some(0.0));
    sum
}

/// The product, if it is one term, or may be multiplied out.
fn times(rw: &mut Rewriter<'_>, a: Sum, b: Sum, depth: Depth) -> Option<Sum> {
    let scales = |s: &Sum| s.len() == 1 && s[0].atoms.is_empty();
    let single = |s: &Sum| s.len() == 1;
    if a.is_empty() || b.is_empty() {
        return None;
    }
    let may = match depth {
        Depth::Expand => single(&a) || single(&b),
        Depth::Keep => scales(&a) || scales(&b) || (single(&a) && single(&b)),
    };
    if !may {
        return None;
    }
    let mut product = Sum::new();
    for x in &a {
        let mut row = Sum::new();
        for y in &b {
            let mut atoms = [x.atoms.clone(), y.atoms.clone()].concat();
            atoms.sort_unstable();
            row.push(Term { coefficient: rw.mul(x.coefficient, y.coefficient), atoms });
        }
        product = plus(rw, product, row);
    }
    Some(product)
}

/// How many operations an operand's own tree takes, as far as nobody else needs them.
fn cost_within(rw: &Rewriter<'_>, v: ValueId) -> u32 {
    if rw.uniform(v) || !rw.single(v) {
        return 0;
    }
    let kind = rw.def(v);
    let own = match arithmetic(kind) {
        Some(Arithmetic::Neg(_)) => 0,
        Some(Arithmetic::Div(_, b)) if !rw.uniform(b) => return 0,
        Some(
            Arithmetic::Add(..) | Arithmetic::Sub(..) | Arithmetic::Mul(..) | Arithmetic::Div(..) | Arithmetic::Fma(..),
        ) => 1,
        None => return 0,
    };
    own + kind.operands().iter().map(|&v| cost_within(rw, v)).sum::<u32>() - u32::from(fusible(rw, kind))
}

/// Will `contract` make one operation of this sum and one of its operands?
fn fusible(rw: &Rewriter<'_>, kind: OpKind) -> bool {
    let product = |v: ValueId| rw.single(v) && !rw.uniform(v) && rw.as_binary(BinaryOp::Mul, v).is_some();
    matches!(kind, OpKind::Binary(BinaryOp::Add | BinaryOp::Sub, a, b) if product(a) || product(b))
}

/// A sum split by its most frequent atom: `atom * with + without`.
fn split(sum: &[Term]) -> Option<(ValueId, Sum, Sum)> {
    let mut counts: Vec<(ValueId, usize)> = Vec::new();
    for term in sum {
        let mut seen = Vec::new();
        for &atom in &term.atoms {
            if seen.contains(&atom) {
                continue;
            }
            seen.push(atom);
            match counts.iter_mut().find(|c| c.0 == atom) {
                Some(c) => c.1 += 1,
                None => counts.push((atom, 1)),
            }
        }
    }
    let most = counts.iter().map(|c| c.1).max()?;
    let atom = counts.iter().filter(|c| c.1 == most).map(|c| c.0).min()?;
    let (mut with, mut without) = (Sum::new(), Sum::new());
    for term in sum {
        match term.atoms.iter().position(|&a| a == atom) {
            Some(at) => {
                let mut atoms = term.atoms.clone();
                atoms.remove(at);
                with.push(Term { coefficient: term.coefficient, atoms });
            }
            None => without.push(term.clone()),
        }
    }
    Some((atom, with, without))
}

/// How many operations `emit` will leave in the loop.
fn cost(rw: &Rewriter<'_>, sum: &[Term]) -> u32 {
    if let [term] = sum {
        let scale = u32::from(!term.atoms.is_empty() && !trivial(rw, term.coefficient));
        return scale + power_cost(&term.atoms);
    }
    let Some((_, with, without)) = split(sum) else { return 0 };
    let one = with.len() == 1 && with[0].atoms.is_empty() && trivial(rw, with[0].coefficient);
    let own = u32::from(!(one && without.is_empty()));
    own + cost(rw, &with) + cost(rw, &without)
}

/// What it takes to compute the atoms that nobody else needs.
fn cost_of_atoms(rw: &Rewriter<'_>, sum: &[Term]) -> u32 {
    let mut atoms: Vec<ValueId> = sum.iter().flat_map(|t| t.atoms.iter().copied()).collect();
    atoms.sort_unstable();
    atoms.dedup();
    atoms.into_iter().map(|v| cost_within(rw, v)).sum()
}

fn trivial(rw: &Rewriter<'_>, v: ValueId) -> bool {
    matches!(rw.number(v), Some(c) if c == 1.0 || c == -1.0)
}

fn power_cost(atoms: &[ValueId]) -> u32 {
    let groups = powers(atoms);
    let each = groups.iter().map(|&(_, n)| n.ilog2() + n.count_ones() - 1).sum::<u32>();
    each + (groups.len() as u32).saturating_sub(1)
}

fn powers(atoms: &[ValueId]) -> Vec<(ValueId, u32)> {
    let mut groups: Vec<(ValueId, u32)> = Vec::new();
    for &atom in atoms {
        match groups.iter_mut().find(|g| g.0 == atom) {
            Some(g) => g.1 += 1,
            None => groups.push((atom, 1)),
        }
    }
    groups
}

/// Writes a sum down.
fn emit(rw: &mut Rewriter<'_>, sum: &[Term]) -> ValueId {
    if let [term] = sum {
        return emit_term(rw, term);
    }
    match split(sum) {
        Some((atom, with, without)) => {
            let slope = emit(rw, &with);
            if without.is_empty() {
                rw.mul(atom, slope)
            } else {
                let offset = emit(rw, &without);
                rw.fma(atom, slope, offset)
            }
        }
        None => {
            let zero = rw.constant(0.0);
            sum.iter().fold(zero, |x, t| rw.add(x, t.coefficient))
        }
    }
}

/// A product; its coefficient goes into a factor that is `x * a + b` with coefficients of its own, where it costs nothing.
fn emit_term(rw: &mut Rewriter<'_>, term: &Term) -> ValueId {
    let mut coefficient = term.coefficient;
    let mut product = None;
    for (atom, n) in powers(&term.atoms) {
        let mut factor = atom;
        if let OpKind::Fma(x, a, b) = rw.def(atom)
            && n == 1
            && rw.single(atom)
            && rw.uniform(a)
            && rw.uniform(b)
            && !trivial(rw, coefficient)
        {
            let (a, b) = (rw.mul(a, coefficient), rw.mul(b, coefficient));
            factor = rw.fma(x, a, b);
            coefficient = rw.constant(1.0);
        }
        let power = rw.power(factor, n);
        product = Some(product.map_or(power, |p| rw.mul(p, power)));
    }
    product.map_or(coefficient, |p| rw.mul(p, coefficient))
}
