//! `divisions`: fewer divisions by what varies.
//!
//! In comes a program; out goes one in which products and quotients are taken apart, cancelled and put together with at
//! most one division each, equal divisors share one reciprocal, and a gate's update divides once.
//! Never true here: a product of divisors can overflow or vanish for any |v| <= 500 mV (see [`super::ranges`]); where that
//! cannot be shown, as with parameters in the divisors, the divisions stay apart.
//!
//! The gate: its rates are quotients, `a = N / D`, its time constant is `1 / s` with `s = a + b`, and its update
//! needs `s` and `(a - s * m) / s = a / s - m`. With `P = N + b * D`, so that `s = P / D`, and `R = 1 / (D * P)`:
//! `s = P * (P * R)` and `a / s = N * (D * R)`, one division instead of two (of three, where `b` is a quotient too).
//!
//! A factor that cancels is taken to be neither 0 nor infinite: where it is, the program had NaN and now has a number.
//! Error: every quotient that becomes products is within about 3 ulps instead of half an ulp.

use super::Options;
use super::rewrite::{Rewriter, rewrite};
use crate::step::{BinaryOp, Kernel, OpKind, Program, UnaryOp, ValueId};
use std::collections::{HashMap, HashSet};

/// Products of divisors stay between this and its reciprocal.
const LARGEST: f64 = 1e300;

/// Runs the pass.
pub fn run(program: &mut Program, _options: &Options) {
    for kernel in &mut program.kernels {
        let survey = Survey::of(program.fields.as_slice(), kernel);
        let mut known = Known::default();
        rewrite(&program.fields, kernel, |rw, id, kind| {
            known.enter(rw.place());
            if survey.inner.contains(&id) {
                return None;
            }
            match kind {
                OpKind::Binary(BinaryOp::Add, a, b) if survey.gates.contains(&id) => gate_sum(rw, &mut known, a, b),
                OpKind::Binary(BinaryOp::Add, a, b) => common_divisor(rw, BinaryOp::Add, a, b),
                OpKind::Binary(BinaryOp::Sub, a, b) => common_divisor(rw, BinaryOp::Sub, a, b),
                OpKind::Binary(BinaryOp::Mul, _, _) => product(rw, &survey, &mut known, kind),
                OpKind::Binary(BinaryOp::Div, a, b) => {
                    let result = product(rw, &survey, &mut known, kind)?;
                    if rw.uniform(a) {
                        // A time constant: dividing by it is multiplying with what it is the reciprocal of.
                        known.quotients.insert(result, (a, b));
                    }
                    Some(result)
                }
                OpKind::Const(_)
                | OpKind::Bool(_)
                | OpKind::Field(_)
                | OpKind::Time
                | OpKind::StepIndex
                | OpKind::Index
                | OpKind::Unary(..)
                | OpKind::Binary(..)
                | OpKind::Fma(..)
                | OpKind::Select(..)
                | OpKind::Draw(..)
                | OpKind::Sample(..)
                | OpKind::Store(..)
                | OpKind::Emit(..) => None,
            }
        });
    }
}

/// `number * (product of values to whole powers)`.
#[derive(Debug, Clone)]
struct Product {
    number: f64,
    factors: Vec<(ValueId, i32)>,
    /// How many divisions by what varies it took.
    divisions: usize,
}

impl Product {
    fn of(rw: &Rewriter<'_>, kind: OpKind) -> Product {
        let mut product = Product { number: 1.0, factors: vec![], divisions: 0 };
        product.take_apart(rw, kind, 1);
        product
    }

    /// A value as a factor: taken apart only as far as nobody else uses it.
    fn of_factor(rw: &Rewriter<'_>, v: ValueId) -> Product {
        let mut product = Product { number: 1.0, factors: vec![], divisions: 0 };
        product.include(rw, v, 1);
        product
    }

    /// A value taken apart, even if it has other uses.
    fn of_value(rw: &Rewriter<'_>, v: ValueId) -> Product {
        let kind = rw.def(v);
        if is_product(&kind) { Product::of(rw, kind) } else { Product::of_factor(rw, v) }
    }

    fn take_apart(&mut self, rw: &Rewriter<'_>, kind: OpKind, power: i32) {
        if let OpKind::Binary(op, a, b) = kind {
            let divided = op == BinaryOp::Div;
            self.divisions += usize::from(divided && !rw.uniform(b));
            self.include(rw, a, power);
            self.include(rw, b, if divided { -power } else { power });
        } else if let OpKind::Unary(UnaryOp::Neg, a) = kind {
            self.number = -self.number;
            self.include(rw, a, power);
        }
    }

    fn include(&mut self, rw: &Rewriter<'_>, v: ValueId, power: i32) {
        let kind = rw.def(v);
        if let OpKind::Const(c) = kind
            && c != 0.0
        {
            self.number *= c.powi(power);
        } else if let OpKind::Unary(UnaryOp::Neg, a) = kind {
            self.number = -self.number;
            self.include(rw, a, power);
        } else if !rw.uniform(v) && is_product(&kind) && (rw.single(v) || free_to_invert(rw, kind, power)) {
            self.take_apart(rw, kind, power);
        } else {
            self.raise(v, power);
        }
    }

    fn raise(&mut self, v: ValueId, power: i32) {
        match self.factors.iter_mut().find(|f| f.0 == v) {
            Some(f) => f.1 += power,
            None => self.factors.push((v, power)),
        }
        self.factors.retain(|f| f.1 != 0);
    }

    fn power(&self, v: ValueId) -> i32 {
        self.factors.iter().find(|f| f.0 == v).map_or(0, |f| f.1)
    }

    /// The varying factors to negative powers.
    fn divisors(&self, rw: &Rewriter<'_>) -> Vec<(ValueId, u32)> {
        let below = self.factors.iter().filter(|f| f.1 < 0 && !rw.uniform(f.0));
        below.map(|f| (f.0, f.1.unsigned_abs())).collect()
    }

    /// Everything above the line, and what does not vary below it.
    fn above(&self, rw: &mut Rewriter<'_>) -> ValueId {
        let mut scale = rw.constant(self.number);
        let mut varying = None;
        for &(v, power) in &self.factors {
            let uniform = rw.uniform(v);
            if power < 0 && !uniform {
                continue;
            }
            let factor = rw.power(v, power.unsigned_abs());
            if !uniform {
                varying = Some(varying.map_or(factor, |x| rw.mul(x, factor)));
            } else if power > 0 {
                scale = rw.mul(scale, factor);
            } else {
                scale = rw.div(scale, factor);
            }
        }
        varying.map_or(scale, |x| rw.mul(scale, x))
    }

    /// The product of the divisors.
    fn below(&self, rw: &mut Rewriter<'_>) -> Option<ValueId> {
        let mut product = None;
        for (v, power) in self.divisors(rw) {
            let factor = rw.power(v, power);
            product = Some(product.map_or(factor, |x| rw.mul(x, factor)));
        }
        product
    }
}

fn is_product(kind: &OpKind) -> bool {
    matches!(kind, OpKind::Binary(BinaryOp::Mul | BinaryOp::Div, _, _) | OpKind::Unary(UnaryOp::Neg, _))
}

/// Does dividing by this cost no more when it is taken apart, although it has other uses? `x / (u / y) = x * y / u`
/// and `x / (u * y) = (x / u) / y`, where `u` does not vary.
fn free_to_invert(rw: &Rewriter<'_>, kind: OpKind, power: i32) -> bool {
    let OpKind::Binary(op, a, b) = kind else { return false };
    power < 0 && (rw.uniform(a) || (op == BinaryOp::Mul && rw.uniform(b)))
}

/// What has to be known about a kernel before it is rewritten.
struct Survey {
    /// Parts of larger products.
    inner: HashSet<ValueId>,
    /// How many products divide by a value.
    divided_by: HashMap<ValueId, usize>,
    /// Sums `s` to be written as quotients, because all uses of their quotient terms get divided by `s`.
    gates: HashSet<ValueId>,
}

impl Survey {
    fn of(fields: &[crate::step::Field], kernel: &mut Kernel) -> Survey {
        let mut survey = Survey { inner: HashSet::new(), divided_by: HashMap::new(), gates: HashSet::new() };
        let mut products = Vec::new();
        rewrite(fields, kernel, |rw, id, kind| {
            if is_product(&kind) {
                let parts = kind.operands().into_iter().filter(|&v| is_product(&rw.def(v)) && rw.single(v));
                survey.inner.extend(parts);
                products.push(id);
            }
            None
        });
        let mut cancelled: HashMap<(ValueId, ValueId), u32> = HashMap::new();
        rewrite(fields, kernel, |rw, id, kind| {
            if products.contains(&id) && !survey.inner.contains(&id) {
                let product = Product::of(rw, kind);
                for (s, _) in product.divisors(rw) {
                    *survey.divided_by.entry(s).or_insert(0) += 1;
                    for &(f, power) in &product.factors {
                        if power != 1 {
                            continue;
                        }
                        // Both a / s and (a - s * m) / s use a up.
                        let used = over(rw, f, s).map_or(f, |o| o.constant);
                        let mut parts: Vec<ValueId> =
                            Product::of_factor(rw, used).factors.iter().map(|f| f.0).collect();
                        if !parts.contains(&used) {
                            parts.push(used);
                        }
                        for a in parts {
                            *cancelled.entry((a, s)).or_insert(0) += 1;
                        }
                    }
                }
            }
            None
        });
        rewrite(fields, kernel, |rw, id, kind| {
            if let OpKind::Binary(BinaryOp::Add, a, b) = kind
                && survey.divided_by.contains_key(&id)
            {
                let quotient = |v: ValueId| !Product::of_value(rw, v).divisors(rw).is_empty();
                let used_up = |v: ValueId| rw.uses(v) <= 1 + cancelled.get(&(v, id)).copied().unwrap_or(0);
                if [a, b].into_iter().any(quotient) && [a, b].into_iter().all(|v| !quotient(v) || used_up(v)) {
                    survey.gates.insert(id);
                }
            }
            None
        });
        survey
    }
}

/// `f = constant + sign * s * rest`, so that `f / s = constant / s + sign * rest`.
struct Over {
    constant: ValueId,
    rest: ValueId,
    minus: bool,
}

fn over(rw: &Rewriter<'_>, f: ValueId, s: ValueId) -> Option<Over> {
    let cofactor = |v: ValueId| {
        let (a, b) = rw.as_binary(BinaryOp::Mul, v)?;
        if a == s { Some(b) } else { (b == s).then_some(a) }
    };
    if !rw.single(f) {
        return None;
    }
    if let Some((a, b)) = rw.as_binary(BinaryOp::Sub, f) {
        let rest = cofactor(b)?;
        return Some(Over { constant: a, rest, minus: true });
    }
    let (a, b) = rw.as_binary(BinaryOp::Add, f)?;
    match (cofactor(a), cofactor(b)) {
        (_, Some(rest)) => Some(Over { constant: a, rest, minus: false }),
        (Some(rest), None) => Some(Over { constant: b, rest, minus: false }),
        (None, None) => None,
    }
}

/// What the pass has found out about values of the region in hand.
#[derive(Default)]
struct Known {
    place: usize,
    /// Values that are `above / below`.
    quotients: HashMap<ValueId, (ValueId, ValueId)>,
    /// Values whose reciprocal exists.
    reciprocals: HashMap<ValueId, ValueId>,
}

impl Known {
    fn enter(&mut self, place: usize) {
        if self.place != place {
            *self = Known { place, ..Known::default() };
        }
    }
}

/// Rewrites a whole product.
fn product(rw: &mut Rewriter<'_>, survey: &Survey, known: &mut Known, kind: OpKind) -> Option<ValueId> {
    let mut product = Product::of(rw, kind);
    if product.divisions == 0 {
        return None;
    }
    let before = product.divisions;
    let distributed = distribute(rw, known, &mut product);
    let cancelled = cancel(known, &mut product);

    let mut reused = false;
    for (v, power) in product.divisors(rw) {
        let shared = survey.divided_by.get(&v).is_some_and(|&n| n > 1);
        if shared && !known.reciprocals.contains_key(&v) {
            let one = rw.constant(1.0);
            let reciprocal = rw.div(one, v);
            known.reciprocals.insert(v, reciprocal);
        }
        if let Some(&reciprocal) = known.reciprocals.get(&v) {
            product.raise(v, power as i32);
            product.raise(reciprocal, power as i32);
            reused = true;
        }
    }
    let divisors = product.divisors(rw);
    let after = usize::from(!divisors.is_empty());
    if !(distributed || cancelled || reused || after < before) {
        return None;
    }
    let together = divisors.len() < 2 || safe(rw, &divisors);
    let gains = distributed || cancelled || reused || divisors.len() < before;
    if !(together || gains) {
        return None;
    }
    let above = product.above(rw);
    if together {
        return Some(match product.below(rw) {
            Some(below) => rw.div(above, below),
            None => above,
        });
    }
    Some(divisors.iter().fold(above, |x, &(v, power)| {
        let divisor = rw.power(v, power);
        rw.div(x, divisor)
    }))
}

/// `(a - s * m) / s` becomes `a / s - m`.
fn distribute(rw: &mut Rewriter<'_>, known: &Known, product: &mut Product) -> bool {
    for (s, _) in product.divisors(rw) {
        for (f, power) in product.factors.clone() {
            if power != 1 {
                continue;
            }
            let Some(parts) = over(rw, f, s) else { continue };
            let mut fraction = Product::of_factor(rw, parts.constant);
            fraction.raise(s, -1);
            let fraction = simple_quotient(rw, known, fraction);
            product.raise(f, -1);
            product.raise(s, 1);
            // The sign goes to the side where it costs nothing.
            let term = if parts.minus && product.number < 0.0 {
                product.number = -product.number;
                rw.sub(parts.rest, fraction)
            } else if parts.minus {
                rw.sub(fraction, parts.rest)
            } else {
                rw.add(fraction, parts.rest)
            };
            product.raise(term, 1);
            return true;
        }
    }
    false
}

/// A quotient with what is known of its parts.
fn simple_quotient(rw: &mut Rewriter<'_>, known: &Known, mut product: Product) -> ValueId {
    cancel(known, &mut product);
    for (v, power) in product.divisors(rw) {
        if let Some(&reciprocal) = known.reciprocals.get(&v) {
            product.raise(v, power as i32);
            product.raise(reciprocal, power as i32);
        }
    }
    let mut result = product.above(rw);
    for (v, power) in product.divisors(rw) {
        let divisor = rw.power(v, power);
        result = rw.div(result, divisor);
    }
    result
}

/// Replaces known quotients where that cancels a divisor.
fn cancel(known: &Known, product: &mut Product) -> bool {
    let mut any = false;
    for (v, power) in product.factors.clone() {
        if let Some(&(above, below)) = known.quotients.get(&v)
            && (power < 0 || product.power(below) > 0)
        {
            product.raise(v, -power);
            product.raise(above, power);
            product.raise(below, -power);
            any = true;
        }
    }
    // The terms of a gate's sum come after the sum itself in no fixed order: try once more.
    for (v, power) in product.factors.clone() {
        if let Some(&(above, below)) = known.quotients.get(&v)
            && power > 0
            && product.power(below) > 0
        {
            product.raise(v, -power);
            product.raise(above, power);
            product.raise(below, -power);
            any = true;
        }
    }
    any
}

/// `a / d + b / d` becomes `(a + b) / d`.
fn common_divisor(rw: &mut Rewriter<'_>, op: BinaryOp, a: ValueId, b: ValueId) -> Option<ValueId> {
    let (x, d) = rw.as_binary(BinaryOp::Div, a)?;
    let (y, e) = rw.as_binary(BinaryOp::Div, b)?;
    if d != e || !rw.single(a) || !rw.single(b) {
        return None;
    }
    let sum = if op == BinaryOp::Add { rw.add(x, y) } else { rw.sub(x, y) };
    Some(rw.div(sum, d))
}

/// The sum of a gate's rates as a quotient with one division; see the module documentation.
fn gate_sum(rw: &mut Rewriter<'_>, known: &mut Known, a: ValueId, b: ValueId) -> Option<ValueId> {
    let sum = crate::passes::ranges::of(&OpKind::Binary(BinaryOp::Add, a, b), &[], |v| rw.range(v));
    let (left, right) = (Product::of_value(rw, a), Product::of_value(rw, b));
    let divisors = [left.divisors(rw), right.divisors(rw)].concat();
    // s = P / D, so P is at least as far from 0 as D * s.
    let (least, most) = bounds(rw, &divisors)?;
    let greatest = most * most * (sum.magnitude() * sum.magnitude()).max(1.0);
    let smallest = least * least * sum.lo;
    if !sum.positive() || greatest.is_nan() || greatest > LARGEST || smallest < 1.0 / LARGEST {
        return None;
    }
    let (n1, n2) = (left.above(rw), right.above(rw));
    let (p, d) = match (left.below(rw), right.below(rw)) {
        (Some(d1), Some(d2)) => {
            let (x, y) = (rw.mul(n1, d2), rw.mul(n2, d1));
            let d = rw.mul(d1, d2);
            known.quotients.insert(a, (x, d));
            known.quotients.insert(b, (y, d));
            (rw.add(x, y), d)
        }
        (Some(d), None) => {
            known.quotients.insert(a, (n1, d));
            let y = rw.mul(n2, d);
            (rw.add(n1, y), d)
        }
        (None, Some(d)) => {
            known.quotients.insert(b, (n2, d));
            let x = rw.mul(n1, d);
            (rw.add(x, n2), d)
        }
        (None, None) => return None,
    };
    let one = rw.constant(1.0);
    let both = rw.mul(d, p);
    let reciprocal = rw.div(one, both);
    let (over_p, over_d) = (rw.mul(d, reciprocal), rw.mul(p, reciprocal));
    let s = rw.mul(p, over_d);
    known.quotients.insert(s, (p, d));
    known.reciprocals.insert(p, over_p);
    known.reciprocals.insert(d, over_d);
    Some(s)
}

/// Is the product of divisors neither too large nor too small?
fn safe(rw: &Rewriter<'_>, divisors: &[(ValueId, u32)]) -> bool {
    bounds(rw, divisors).is_some_and(|(least, most)| least > 1.0 / LARGEST && most < LARGEST)
}

/// The least (but for an exact 0) and greatest absolute value of a product.
fn bounds(rw: &Rewriter<'_>, factors: &[(ValueId, u32)]) -> Option<(f64, f64)> {
    let mut bounds = (1.0, 1.0);
    for &(v, power) in factors {
        let least = floor(rw, v)?;
        for _ in 0..power {
            bounds = (bounds.0 * least, bounds.1 * rw.range(v).magnitude());
        }
    }
    (!bounds.1.is_nan() && bounds.0 > 0.0).then_some(bounds)
}

/// What the absolute value cannot go below without being exactly 0, by the spacing of the numbers it is made from.
fn floor(rw: &Rewriter<'_>, v: ValueId) -> Option<f64> {
    let range = rw.range(v);
    if range.lo > 0.0 || range.hi < 0.0 {
        return Some(range.lo.abs().min(range.hi.abs()));
    }
    match rw.def(v) {
        OpKind::Unary(UnaryOp::Neg | UnaryOp::Abs, a) => floor(rw, a),
        OpKind::Unary(UnaryOp::Expm1 | UnaryOp::Exp2m1, a) => floor(rw, a).map(|x| (x / 4.0).min(0.25)),
        // Next to a number c of size 1, x + c is 0 or at least the spacing of the numbers just below c.
        OpKind::Binary(BinaryOp::Add | BinaryOp::Sub, a, b) => {
            let c = rw.number(a).or(rw.number(b))?.abs();
            (c > 0.0).then_some(c * f64::EPSILON / 4.0)
        }
        OpKind::Binary(BinaryOp::Mul, a, b) => Some(floor(rw, a)? * floor(rw, b)?),
        OpKind::Select(_, a, b) => Some(floor(rw, a)?.min(floor(rw, b)?)),
        OpKind::Const(_)
        | OpKind::Bool(_)
        | OpKind::Field(_)
        | OpKind::Time
        | OpKind::StepIndex
        | OpKind::Index
        | OpKind::Unary(..)
        | OpKind::Binary(..)
        | OpKind::Fma(..)
        | OpKind::Draw(..)
        | OpKind::Sample(..)
        | OpKind::Store(..)
        | OpKind::Emit(..) => None,
    }
}
