//! Numbers that learn and live where steps are taken, as arrays.
//!
//! In come what routes carry; out go descriptions of their arrays, for functions that move them.
//! Never true here: how they move is known, or a place without an edge gets a number.

use super::{Net, Tract};
use crate::codegen::stablehlo::builder::{Binary, Builder, Compare, Function, Literal, TensorType, Value};
use crate::engine::EngineError;

/// Which places of an array stand for no edge. There stands 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Gaps {
    /// None.
    None,
    /// The last, for which there is no slope.
    Last,
    /// Those where a mask is false.
    Masked,
}

/// An array of numbers that learn.
#[derive(Debug, Clone, PartialEq)]
pub struct Held {
    /// The array.
    pub ty: TensorType,
    /// Its places without an edge.
    pub gaps: Gaps,
    /// The least and the most that a number may be.
    pub range: [f64; 2],
    /// What one of the unit in which a number moves is in that of the array.
    pub unit: f64,
}

impl Held {
    /// The type of the slopes.
    pub fn slopes(&self) -> TensorType {
        let mut ty = self.ty.clone();
        if self.gaps == Gaps::Last {
            ty.dims[0] -= 1;
        }
        ty
    }

    /// Slopes with 0 where there is no edge.
    pub fn filled(&self, b: &mut Builder, slopes: Value, mask: Option<Value>) -> Value {
        match self.gaps {
            Gaps::Last => {
                let none = b.constant(Literal::Real(0.0), self.ty.element, &[1]);
                b.concatenate(&[slopes, none], 0)
            }
            Gaps::None | Gaps::Masked => self.only(b, slopes, mask),
        }
    }

    /// Values with 0 where there is no edge.
    pub fn only(&self, b: &mut Builder, values: Value, mask: Option<Value>) -> Value {
        let zeros = |b: &mut Builder, dims: &[usize]| b.constant(Literal::Real(0.0), self.ty.element, dims);
        match (self.gaps, mask) {
            (Gaps::Last, _) => {
                let edges = b.slice(values, &[0], &[self.ty.len() - 1]);
                let none = zeros(b, &[1]);
                b.concatenate(&[edges, none], 0)
            }
            (Gaps::Masked, Some(mask)) => {
                let zeros = zeros(b, &self.ty.dims);
                b.select(mask, values, zeros)
            }
            (Gaps::None | Gaps::Masked, _) => values,
        }
    }

    /// Values times a number that is one where their unit is that of the array.
    pub fn times(&self, b: &mut Builder, values: Value, by: f64) -> Value {
        if by == 1.0 {
            return values;
        }
        let by = b.constant(Literal::Real(by), self.ty.element, &self.ty.dims);
        b.binary(Binary::Multiply, values, by)
    }

    /// Values of which those that have left the range are back at its end.
    pub fn held(&self, b: &mut Builder, mut values: Value) -> Value {
        for (end, beyond) in self.range.into_iter().zip([Compare::Lt, Compare::Gt]) {
            if end.is_finite() {
                let end = b.constant(Literal::Real(end), self.ty.element, &self.ty.dims);
                let beyond = b.compare(beyond, values, end);
                values = b.select(beyond, end, values);
            }
        }
        values
    }

    /// What edges carry, an array of this type, if each place is the weight of one edge that learns for itself; with the mask, if it has one.
    pub fn of(tract: &Tract, ty: &TensorType, route: &Settling) -> Option<(Held, Option<Vec<bool>>)> {
        let filled = tract.filled()?;
        let gaps = match (tract.are_matrices(), filled.iter().all(|there| *there)) {
            (false, _) => Gaps::Last,
            (true, true) => Gaps::None,
            (true, false) => Gaps::Masked,
        };
        let Settling { range, unit, .. } = *route;
        Some((Held { ty: ty.clone(), gaps, range, unit }, (gaps == Gaps::Masked).then_some(filled)))
    }
}

/// A route whose weights may live where steps are taken.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Settling {
    /// Its number.
    pub route: usize,
    /// The least and the most that a weight may be.
    pub range: [f64; 2],
    /// What one of the unit in which it moves is in canonical units.
    pub unit: f64,
}

/// Makes the function that moves arrays.
pub type Update<'a> = &'a dyn Fn(&[Held]) -> Function;

/// Numbers that live where steps are taken, by the routes whose edges carry them. Lists of numbers are in the order of gradients.
pub trait Settled {
    /// The weights of a route become those of the net; what is remembered of them becomes these lists.
    fn bring_up(&mut self, net: &Net, route: usize, remembered: &[&[f64]]) -> Result<(), EngineError>;

    /// The weights of a route, and the lists that are remembered.
    fn bring_down(&mut self, net: &Net, route: usize) -> Result<Vec<Vec<f64>>, EngineError>;

    /// Moves all of them against the slopes found last, with the numbers that the function takes; the answer is its last result, if that is a single number.
    fn descend(&mut self, numbers: &[f64]) -> Result<Option<f64>, EngineError>;
}
