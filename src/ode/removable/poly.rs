//! Sums of products of powers: `2 v / k - 80 / k` is a polynomial in `v` and `1/k`.
//!
//! In come nodes of a graph as atoms; out go polynomials that can be compared up to a factor, whatever way they were written.
//! Never true here: two coefficients count as different because decimal numbers were rounded on the way.

use crate::ode::NodeId;
use std::collections::BTreeMap;

/// Products with more terms than this are not multiplied out.
const MOST_TERMS: usize = 24;

/// Atoms with their powers, which are not 0, in the order of their ids.
pub type Monomial = Vec<(NodeId, i32)>;

/// `a * b^power`
pub fn times(a: &[(NodeId, i32)], b: &[(NodeId, i32)], power: i32) -> Monomial {
    let mut product: BTreeMap<NodeId, i32> = a.iter().copied().collect();
    for &(atom, p) in b {
        *product.entry(atom).or_insert(0) += p * power;
    }
    product.into_iter().filter(|&(_, p)| p != 0).collect()
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
    terms: BTreeMap<Monomial, Coefficient>,
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
    /// One monomial.
    pub fn monomial(number: f64, monomial: Monomial) -> Poly {
        Poly { terms: BTreeMap::from([(monomial, Coefficient { value: number, size: number.abs() })]) }
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
            let constant = rest.terms.remove(&Vec::new());
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
        let mut sum = self.clone();
        for (monomial, &Coefficient { value, size }) in &other.terms {
            let entry = sum.terms.entry(monomial.clone()).or_insert(Coefficient { value: 0.0, size: 0.0 });
            *entry = Coefficient { value: entry.value + c * value, size: entry.size + (c * size).abs() };
        }
        sum.terms.retain(|_, c| !c.vanishes());
        sum
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
            product = product.plus(&Poly { terms: row.collect() }, 1.0);
        }
        Some(product)
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

    /// The common factor, and what is left.
    pub fn primitive(&self) -> (Content, Poly) {
        let mut common: BTreeMap<NodeId, i32> = BTreeMap::new();
        for atom in self.terms.keys().flatten().map(|(atom, _)| *atom) {
            if common.contains_key(&atom) {
                continue;
            }
            let power = |m: &Monomial| m.iter().find(|(a, _)| *a == atom).map_or(0, |(_, p)| *p);
            common.insert(atom, self.terms.keys().map(power).min().unwrap_or(0));
        }
        let monomial: Monomial = common.into_iter().filter(|(_, p)| *p != 0).collect();
        let mut rest: BTreeMap<Monomial, Coefficient> =
            self.terms.iter().map(|(m, c)| (times(m, &monomial, -1), *c)).collect();
        let number = rest.values().next_back().map_or(1.0, |c| c.value);
        for c in rest.values_mut() {
            *c = Coefficient { value: c.value / number, size: (c.size / number).abs() };
        }
        (Content { number, monomial }, Poly { terms: rest })
    }

    /// Are they equal, but for rounding?
    pub fn is(&self, other: &Poly) -> bool {
        self.terms.len() == other.terms.len()
            && self.terms.iter().all(|(m, c)| other.terms.get(m).is_some_and(|d| c.is(*d)))
    }
}
