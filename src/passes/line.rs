//! Straight lines: values of the form `slope * atom + offset` with numbers for coefficients.
//!
//! In comes a value; out goes the line it is, if it is one.
//! Never true here: a coefficient is a parameter; `affine` handles those.

use super::arithmetic::{Arithmetic, arithmetic};
use super::rewrite::Rewriter;
use crate::step::ValueId;

/// `slope * atom + offset`; without an atom a number.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Line {
    /// What it is a line in.
    pub atom: Option<ValueId>,
    /// Its slope, 0 without an atom.
    pub slope: f64,
    /// Its value at 0.
    pub offset: f64,
}

impl Line {
    /// The line times a number.
    pub fn scaled(self, c: f64) -> Line {
        Line { atom: self.atom, slope: self.slope * c, offset: self.offset * c }
    }

    /// The sum, if both are lines in the same value.
    pub fn plus(self, other: Line) -> Option<Line> {
        let atom = match (self.atom, other.atom) {
            (a, None) => a,
            (None, b) => b,
            (Some(a), Some(b)) => (a == b).then_some(Some(a))?,
        };
        Some(Line { atom, slope: self.slope + other.slope, offset: self.offset + other.offset })
    }
}

/// The line that a value is; every value is at least a line in itself.
pub fn line(rw: &Rewriter<'_>, v: ValueId) -> Line {
    if let Some(c) = rw.number(v) {
        return Line { atom: None, slope: 0.0, offset: c };
    }
    let found = arithmetic(rw.def(v)).and_then(|kind| match kind {
        Arithmetic::Neg(a) => Some(line(rw, a).scaled(-1.0)),
        Arithmetic::Add(a, b) => line(rw, a).plus(line(rw, b)),
        Arithmetic::Sub(a, b) => line(rw, a).plus(line(rw, b).scaled(-1.0)),
        Arithmetic::Mul(a, b) => match (rw.number(a), rw.number(b)) {
            (Some(c), _) => Some(line(rw, b).scaled(c)),
            (_, Some(c)) => Some(line(rw, a).scaled(c)),
            (None, None) => None,
        },
        Arithmetic::Div(a, b) => rw.number(b).map(|c| line(rw, a).scaled(1.0 / c)),
        Arithmetic::Fma(..) => None,
    });
    found.unwrap_or(Line { atom: Some(v), slope: 1.0, offset: 0.0 })
}
