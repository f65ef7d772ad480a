//! Sums of products of powers: `2 v / k - 80 / k` is a polynomial in `v` and `1/k`.
//!
//! In come nodes of a graph as atoms; out go polynomials that can be compared up to a factor, whatever way they were written.
//! Never true here: two coefficients count as different because decimal numbers were rounded on the way.

use crate::ode::NodeId;
use std::cmp::Ordering;
use std::collections::BTreeMap;

/// Products with more terms than this are not multiplied out.
const MOST_TERMS: usize = 24;

/// Higher powers are not looked into.
pub const MOST_POWER: i32 = 1 << 16;

/// Atoms with their powers, which are not 0, in the order of their ids.
pub type Monomial = Vec<(NodeId, i32)>;

/// `a * b^power`
pub fn times(a: &[(NodeId, i32)], b: &[(NodeId, i32)], power: i32) -> Monomial {
    let mut product = Monomial::with_capacity(a.len() + b.len());
    let (mut a, mut b) =
        (a.iter().copied().peekable(), b.iter().map(|&(atom, p)| (atom, p.saturating_mul(power))).peekable());
    loop {
        let next = match (a.peek(), b.peek()) {
            (Some(x), Some(y)) if x.0 == y.0 => (x.0, x.1.saturating_add(y.1)),
            (Some(x), Some(y)) => *x.min(y),
            (Some(one), None) | (None, Some(one)) => *one,
            (None, None) => return product,
        };
        a.next_if(|x| x.0 == next.0);
        b.next_if(|y| y.0 == next.0);
        if next.1 != 0 {
            product.push(next);
        }
    }
}

/// Which of two products comes first where powers of earlier atoms count more; it stays so if both are multiplied by a third.
fn order(a: &Monomial, b: &Monomial) -> Ordering {
    times(a, b, -1).first().map_or(Ordering::Equal, |(_, power)| power.cmp(&0))
}

/// A coefficient, and the sum of the sizes of what was added up to it.
#[derive(Debug, Clone, Copy)]
struct Coefficient {
    value: f64,
    size: f64,
}

impl Coefficient {
    /// Is it nothing but rounding?
    fn vanishes(self) -> bool {
        self.value.abs() <= 16.0 * f64::EPSILON * self.size
    }

    fn is(self, other: Coefficient) -> bool {
        (self.value - other.value).abs() <= 16.0 * f64::EPSILON * self.size.max(other.size)
    }
}

/// A sum of monomials with coefficients.
#[derive(Debug, Clone, Default)]
pub struct Poly {
    /// In the order of the monomials, each of which is there once.
    terms: Vec<(Monomial, Coefficient)>,
}

/// A polynomial as `number * monomial * primitive`, where the primitive has no common factor and begins with 1.
#[derive(Debug, Clone)]
pub struct Content {
    /// The number.
    pub number: f64,
    /// The common monomial.
    pub monomial: Monomial,
}

impl Poly {
    /// Different monomials in any order.
    fn of(mut terms: Vec<(Monomial, Coefficient)>) -> Poly {
        terms.sort_by(|(a, _), (b, _)| a.cmp(b));
        Poly { terms }
    }

    /// One monomial.
    pub fn monomial(number: f64, monomial: Monomial) -> Poly {
        Poly { terms: vec![(monomial, Coefficient { value: number, size: number.abs() })] }
    }

    /// A number.
    pub fn number(c: f64) -> Poly {
        Poly::monomial(c, Vec::new())
    }

    /// One atom.
    pub fn atom(id: NodeId) -> Poly {
        Poly::monomial(1.0, vec![(id, 1)])
    }

    /// Its monomials with their coefficients.
    pub fn terms(&self) -> impl Iterator<Item = (&Monomial, f64)> {
        self.terms.iter().map(|(m, c)| (m, c.value))
    }

    /// Its only monomial with its coefficient.
    pub fn single(&self) -> Option<(f64, &Monomial)> {
        let mut terms = self.terms.iter();
        let (monomial, coefficient) = terms.next()?;
        terms.next().is_none().then_some((coefficient.value, monomial))
    }

    /// Its two monomials with their coefficients, if these are all.
    pub fn two(&self) -> Option<[(f64, Monomial); 2]> {
        let mut terms = self.terms.iter().map(|(monomial, c)| (c.value, monomial.clone()));
        let both = [terms.next()?, terms.next()?];
        terms.next().is_none().then_some(both)
    }

    /// Is it 0?
    pub fn is_zero(&self) -> bool {
        self.terms.is_empty()
    }

    /// The number, if it has no atoms.
    pub fn constant(&self) -> Option<f64> {
        if self.is_zero() {
            return Some(0.0);
        }
        self.single().filter(|(_, m)| m.is_empty()).map(|(c, _)| c)
    }

    /// `(a, b)` if it is `a x + b` with numbers.
    pub fn line_in(&self, x: &Poly) -> Option<(f64, f64)> {
        let split = |p: &Poly| {
            let mut rest = p.clone();
            // The number is the first of all terms.
            let constant = rest.terms.first().filter(|(monomial, _)| monomial.is_empty()).map(|(_, c)| *c);
            rest.terms.retain(|(monomial, _)| !monomial.is_empty());
            (constant.unwrap_or(Coefficient { value: 0.0, size: 0.0 }), rest)
        };
        let ((own, rest), (of_x, rest_of_x)) = (split(self), split(x));
        if rest.is_zero() || rest_of_x.is_zero() {
            return None;
        }
        let ((content, primitive), (content_x, primitive_x)) = (rest.primitive(), rest_of_x.primitive());
        if !primitive.is(&primitive_x) || content.monomial != content_x.monomial {
            return None;
        }
        let a = content.number / content_x.number;
        let b = Coefficient { value: own.value - a * of_x.value, size: own.size + (a * of_x.size).abs() };
        Some((a, if b.vanishes() { 0.0 } else { b.value }))
    }

    /// `self + c * other`
    pub fn plus(&self, other: &Poly, c: f64) -> Poly {
        let mut terms = Vec::with_capacity(self.terms.len() + other.terms.len());
        let mut own = self.terms.iter().peekable();
        for (monomial, Coefficient { value, size }) in &other.terms {
            while let Some(before) = own.next_if(|(known, _)| known < monomial) {
                terms.push(before.clone());
            }
            let same = own.next_if(|(known, _)| known == monomial).map(|(_, c)| *c);
            let entry = same.unwrap_or(Coefficient { value: 0.0, size: 0.0 });
            let sum = Coefficient { value: entry.value + c * value, size: entry.size + (c * size).abs() };
            terms.push((monomial.clone(), sum));
        }
        terms.extend(own.cloned());
        terms.retain(|(_, c)| !c.vanishes());
        Poly { terms }
    }

    /// The product, unless it has too many terms.
    pub fn by(&self, other: &Poly) -> Option<Poly> {
        if self.terms.len() * other.terms.len() > MOST_TERMS {
            return None;
        }
        let mut product = Poly::default();
        for (a, x) in &self.terms {
            let row = other.terms.iter().map(|(b, y)| {
                let coefficient = Coefficient { value: x.value * y.value, size: x.size * y.size };
                (times(a, b, 1), coefficient)
            });
            product = product.plus(&Poly::of(row.collect()), 1.0);
        }
        Some(product)
    }

    /// Are its powers small enough to be counted?
    pub fn is_low(&self) -> bool {
        self.terms.iter().all(|(monomial, _)| monomial.iter().all(|(_, power)| power.abs() <= MOST_POWER))
    }

    /// A whole power, if it is a polynomial without too many terms.
    pub fn power(&self, n: i32) -> Option<Poly> {
        if let Some((c, monomial)) = self.single() {
            return Some(Poly::monomial(c.powi(n), times(&[], monomial, n)));
        }
        match n {
            1 => Some(self.clone()),
            2..=8 => self.power(n - 1)?.by(self),
            _ => None,
        }
    }

    /// What multiplies the highest power of chosen atoms.
    pub fn leading(&self, chosen: impl Fn(NodeId) -> bool) -> Poly {
        let part = |m: &Monomial| m.iter().copied().filter(|(atom, _)| chosen(*atom)).collect::<Monomial>();
        let Some(highest) = self.terms.iter().map(|(m, _)| part(m)).max_by(order) else { return Poly::default() };
        let terms = self.terms.iter().filter(|(m, _)| part(m) == highest);
        Poly::of(terms.map(|(m, c)| (times(m, &highest, -1), *c)).collect())
    }

    /// The quotient of two polynomials without negative powers, if nothing is left over.
    pub fn over(&self, divisor: &Poly) -> Option<Poly> {
        let first = |p: &Poly| p.terms.iter().max_by(|a, b| order(&a.0, &b.0)).map(|(m, c)| (m.clone(), c.value));
        let (highest, coefficient) = first(divisor)?;
        let (mut rest, mut quotient) = (self.clone(), Poly::default());
        for _ in 0..MOST_TERMS {
            let Some((monomial, c)) = first(&rest) else { return Some(quotient) };
            let monomial = times(&monomial, &highest, -1);
            if monomial.iter().any(|(_, power)| *power < 0) {
                return None;
            }
            let term = Poly::monomial(c / coefficient, monomial);
            rest = rest.plus(&divisor.by(&term)?, -1.0);
            quotient = quotient.plus(&term, 1.0);
        }
        None
    }

    /// The common factor, and what is left.
    pub fn primitive(&self) -> (Content, Poly) {
        // For each atom its smallest power, and in how many terms it is.
        let mut common: BTreeMap<NodeId, (i32, usize)> = BTreeMap::new();
        for &(atom, power) in self.terms.iter().flat_map(|(monomial, _)| monomial) {
            let known = common.entry(atom).or_insert((power, 0));
            *known = (known.0.min(power), known.1 + 1);
        }
        let all = self.terms.len();
        let least =
            |(atom, (power, terms)): (NodeId, (i32, usize))| (atom, if terms == all { power } else { power.min(0) });
        let monomial: Monomial = common.into_iter().map(least).filter(|(_, p)| *p != 0).collect();
        let mut rest = Poly::of(self.terms.iter().map(|(m, c)| (times(m, &monomial, -1), *c)).collect());
        let number = rest.terms.last().map_or(1.0, |(_, c)| c.value);
        for (_, c) in &mut rest.terms {
            *c = Coefficient { value: c.value / number, size: (c.size / number).abs() };
        }
        (Content { number, monomial }, rest)
    }

    /// Are they equal, but for rounding?
    pub fn is(&self, other: &Poly) -> bool {
        self.terms.len() == other.terms.len()
            && self.terms.iter().zip(&other.terms).all(|((m, c), (n, d))| m == n && c.is(*d))
    }
}
