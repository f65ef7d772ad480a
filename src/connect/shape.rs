//! The grid that the cells of a population stand on.
//!
//! In come one to three sizes; out go numbers of cells, places and displacements.
//! Never true here: that the grid has an edge; it is wrapped in every dimension.

use super::ConnectError;

/// One to three sizes; the cell at `(x, y, z)` has the number `x + sx * y + sx * sy * z`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shape {
    /// The sizes, x first.
    pub sizes: Vec<usize>,
}

/// The populations that a directed rule joins.
#[derive(Debug, Clone, Copy)]
pub enum Ends<'a> {
    /// One population with itself.
    Within(&'a Shape),
    /// Two populations.
    Between {
        /// Where connections come from.
        source: &'a Shape,
        /// Where they act.
        target: &'a Shape,
    },
}

impl Shape {
    /// A line of `n` cells.
    pub fn line(n: usize) -> Shape {
        Shape { sizes: vec![n] }
    }

    /// The number of cells.
    pub fn cells(&self) -> usize {
        self.sizes.iter().product()
    }

    pub(super) fn check(&self) -> Result<(), ConnectError> {
        if !(1..=3).contains(&self.sizes.len()) {
            return Err(ConnectError::Dimensions { count: self.sizes.len() });
        }
        if self.sizes.contains(&0) {
            return Err(ConnectError::NoCells { sizes: self.sizes.clone() });
        }
        let cells = self.sizes.iter().try_fold(1usize, |n, &s| n.checked_mul(s));
        match cells.map(u32::try_from) {
            Some(Ok(_)) => Ok(()),
            Some(Err(_)) | None => Err(ConnectError::TooManyCells { sizes: self.sizes.clone() }),
        }
    }

    /// The sizes, with 1 for the dimensions that are not there.
    pub(super) fn padded(&self) -> [i64; 3] {
        std::array::from_fn(|d| self.sizes.get(d).map_or(1, |&s| s as i64))
    }

    /// How far the cells of two grids are from each other that cover the same space, in steps of the second: along each dimension the shorter way round.
    ///
    /// A cell stands in the middle of its part of the space, so that cells of grids of one size have the distance of their places.
    pub fn distance(from: (&Shape, u32), to: (&Shape, u32)) -> f64 {
        let place = |(shape, cell): (&Shape, u32)| {
            let [sx, sy, sz] = shape.padded();
            let cell = i64::from(cell);
            ([cell % sx, cell / sx % sy, cell / sx / sy], [sx, sy, sz])
        };
        let ((a, many), (b, sizes)) = (place(from), place(to));
        let squares = (0..3).map(|d| {
            // In half steps of both grids, so that it is a whole number.
            let apart = ((2 * a[d] + 1) * sizes[d] - (2 * b[d] + 1) * many[d]).abs();
            let round = 2 * many[d] * sizes[d];
            let way = apart.min(round - apart) as f64 / (2 * many[d]) as f64;
            way * way
        });
        squares.sum::<f64>().sqrt()
    }

    /// Do two grids cover the same space, whose neighbours are so far from each other? Dimensions in which there is one cell at the end count for nothing.
    pub fn covers(&self, spacing: f64, other: &Shape, others: f64) -> bool {
        let dimensions = |shape: &Shape| shape.padded().iter().rposition(|&size| size > 1).map_or(0, |last| last + 1);
        let near = |(a, b): (i64, i64)| {
            let (a, b) = (a as f64 * spacing, b as f64 * others);
            (a - b).abs() <= 1e-9 * a.max(b)
        };
        let count = dimensions(self).max(dimensions(other));
        self.padded().into_iter().zip(other.padded()).take(count).all(near)
    }

    /// The cell that is `offset` away from `cell`, wrapped. No part of the offset may exceed the size.
    pub(super) fn displaced(sizes: [i64; 3], cell: u32, offset: [i64; 3]) -> u32 {
        let [sx, sy, _] = sizes.map(|s| s as u32);
        let place = [cell % sx, cell / sx % sy, cell / sx / sy];
        let mut to = [0; 3];
        for d in 0..3 {
            let moved = i64::from(place[d]) + offset[d];
            to[d] = if moved < 0 {
                moved + sizes[d]
            } else if moved >= sizes[d] {
                moved - sizes[d]
            } else {
                moved
            };
        }
        (to[0] + sizes[0] * (to[1] + sizes[1] * to[2])) as u32
    }
}

impl<'a> Ends<'a> {
    /// The ends of connections from one population to another, or `within` one: then both grids are the same.
    pub fn new(source: &'a Shape, target: &'a Shape, within: bool) -> Ends<'a> {
        if within { Ends::Within(target) } else { Ends::Between { source, target } }
    }

    /// The population that connections come from.
    pub fn source(self) -> &'a Shape {
        match self {
            Ends::Within(shape) => shape,
            Ends::Between { source, .. } => source,
        }
    }

    /// The population that they act on.
    pub fn target(self) -> &'a Shape {
        match self {
            Ends::Within(shape) => shape,
            Ends::Between { target, .. } => target,
        }
    }

    /// Are both the same population?
    pub fn within(self) -> bool {
        match self {
            Ends::Within(_) => true,
            Ends::Between { .. } => false,
        }
    }

    /// The grid that both share.
    pub(super) fn grid(self, rule: &'static str) -> Result<&'a Shape, ConnectError> {
        let (source, target) = (self.source(), self.target());
        if source.padded() == target.padded() {
            return Ok(target);
        }
        Err(ConnectError::DifferentGrids { rule, source: source.sizes.clone(), target: target.sizes.clone() })
    }
}
