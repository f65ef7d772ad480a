//! What kernels see of branched cells: compartments, parts of them and what leads from one to the other.
//!
//! In come where the elements of cells stand and where maps lead; out go what elements have there, sums, and solutions along the tree.
//! Never true here: an element of one cell reaches another cell, or a number depends on how cells stand in memory.
//!
//! # Places
//!
//! As many cells as a vector has lanes stand side by side: of all of them the first element, then of all of them the second one. So a
//! vector has one element of each of them, and what leads from there leads to a vector again. The cells that are left over, fewer
//! than lanes, stand side by side as well; of a single cell the elements follow each other.

use super::lanes::{Lanes, Scalar};
use std::ops::Range;

/// Nowhere.
pub const NONE: u32 = u32::MAX;

/// Where the elements of cells stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Side {
    /// How many cells.
    pub cells: usize,
    /// How many of them stand side by side.
    pub width: usize,
}

impl Side {
    /// The first place of the group of a cell, and how many cells stand in it, of a space with `each` elements.
    fn group(self, cell: usize, each: usize) -> (usize, usize) {
        let first = cell / self.width * self.width;
        (first * each, self.width.min(self.cells - first))
    }

    /// The place of an element of a cell.
    pub fn place(self, cell: usize, element: usize, each: usize) -> usize {
        let (first, width) = self.group(cell, each);
        first + element * width + cell % self.width
    }
}

/// Where a map leads from the places of a part.
#[derive(Clone, Copy, Debug)]
pub struct Tie<'a> {
    /// For each block the first of the consecutive places that it leads to, if they are that and all are there; else [`NONE`].
    pub starts: &'a [u32],
    /// For each place the place it leads to, or [`NONE`]; only for places that are elements.
    pub places: &'a [u32],
    /// If it leads from the elements of a cell to others of them, these: from the farthest from the root to the root, those of the same depth from
    /// the last to the first.
    pub inwards: &'a [u32],
}

impl Tie<'_> {
    /// What the elements of a block have where the map leads; 0 where it leads nowhere.
    #[inline(always)]
    pub fn load<V: Lanes>(self, field: &[V::Scalar], block: usize) -> V {
        match self.starts[block] {
            NONE => self.load_each(field, block),
            start => V::load(&field[start as usize..]),
        }
    }

    #[inline(never)]
    fn load_each<V: Lanes>(self, field: &[V::Scalar], block: usize) -> V {
        let mut values = [V::Scalar::default(); 64];
        let places = &self.places[block * V::LANES..];
        for (value, &place) in values.iter_mut().zip(places).take(V::LANES) {
            if place != NONE {
                *value = field[place as usize];
            }
        }
        V::load(&values)
    }

    /// Adds what the elements of a block give where the map leads, one after the other.
    #[inline(always)]
    pub fn add<V: Lanes>(self, field: &mut [V::Scalar], block: usize, value: V) {
        match self.starts[block] {
            NONE => self.add_each(field, block, value),
            start => {
                let to = &mut field[start as usize..];
                (V::load(to) + value).store(to);
            }
        }
    }

    #[inline(never)]
    fn add_each<V: Lanes>(self, field: &mut [V::Scalar], block: usize, value: V) {
        let mut values = [V::Scalar::default(); 64];
        value.store(&mut values);
        let places = &self.places[block * V::LANES..];
        for (&value, &place) in values.iter().zip(places).take(V::LANES) {
            if place != NONE {
                let sum = &mut field[place as usize];
                *sum = *sum + value;
            }
        }
    }
}

/// What a kernel sees of the spaces of its cells.
pub struct Branches<'a, T> {
    /// The fields that maps or solutions reach, one behind the other.
    pub flat: &'a mut [T],
    /// Where each of them begins.
    pub at: &'a [usize],
    /// The maps.
    pub ties: &'a [Tie<'a>],
    /// Which blocks of the kernel's space it works on.
    pub blocks: Range<usize>,
    /// Which cells that are, of those of the part.
    pub cells: Range<usize>,
    /// How the cells of the part stand.
    pub side: Side,
}

impl<T> Branches<'_, T> {
    /// Where there are none.
    pub fn none() -> Branches<'static, T> {
        let side = Side { cells: 0, width: 1 };
        Branches { flat: &mut [], at: &[], ties: &[], blocks: 0..0, cells: 0..0, side }
    }
}

/// The fields of a system of equations along a tree: where they begin.
#[derive(Clone, Copy, Debug)]
pub struct System {
    /// What each element does by itself; used up.
    pub own: usize,
    /// Between each element and its parent.
    pub link: usize,
    /// The right-hand side; used up.
    pub rhs: usize,
    /// Where each element comes from; from 0 if absent.
    pub from: Option<usize>,
    /// What becomes the solution.
    pub x: usize,
}

/// Solves the systems of some cells (Hines 1984): from the leaves to the root, and back. Of cells that are left over `W` of them are taken together
/// as long as there are enough; there the branches of a cell take turns, element by element, so that a processor need not wait for each quotient.
#[inline(always)]
pub fn solve<V: Lanes, W: Lanes<Scalar = V::Scalar>>(
    flat: &mut [V::Scalar],
    system: System,
    parent: Tie<'_>,
    side: Side,
    cells: Range<usize>,
) {
    let each = parent.places.len() / side.cells.max(1);
    for cell in cells.step_by(side.width) {
        let (first, width) = side.group(cell, each);
        let places = first..first + each * width;
        if width == V::LANES {
            let inwards = places.step_by(width).rev();
            solve_along::<V>(flat, system, parent.places, inwards.clone(), inwards.rev());
            continue;
        }
        let inwards = |lane: usize| parent.inwards.iter().map(move |&element| first + lane + element as usize * width);
        let whole = width / W::LANES * W::LANES;
        for lane in (0..whole).step_by(W::LANES) {
            solve_along::<W>(flat, system, parent.places, inwards(lane), inwards(lane).rev());
        }
        for lane in whole..width {
            solve_along::<V::Scalar>(flat, system, parent.places, inwards(lane), inwards(lane).rev());
        }
    }
}

/// Solves the system of one vector of cells, given the places of their elements towards the root and away from it.
#[inline(always)]
fn solve_along<V: Lanes>(
    flat: &mut [V::Scalar],
    System { own, link, rhs, from, x }: System,
    parents: &[u32],
    inwards: impl Iterator<Item = usize>,
    outwards: impl Iterator<Item = usize>,
) {
    let one = V::splat(V::Scalar::from_f64(1.0));
    let begin = |flat: &[V::Scalar], at: usize| match from {
        Some(from) => V::load(&flat[from + at..]),
        None => V::splat(V::Scalar::default()),
    };
    for at in inwards {
        let by_itself = V::load(&flat[own + at..]);
        let parent = parents[at];
        if parent == NONE {
            (one / by_itself).store(&mut flat[own + at..]);
            continue;
        }
        let above = parent as usize;
        let beside = V::load(&flat[link + at..]);
        let inverse = one / (by_itself + beside);
        inverse.store(&mut flat[own + at..]);
        // The quotient comes last into both products: they are ready when it is.
        let sum = V::load(&flat[own + above..]) + beside * by_itself * inverse;
        sum.store(&mut flat[own + above..]);
        let right = V::load(&flat[rhs + at..]) + by_itself * (begin(flat, at) - begin(flat, above));
        let sum = V::load(&flat[rhs + above..]) + beside * right * inverse;
        sum.store(&mut flat[rhs + above..]);
    }
    for at in outwards {
        let (mut right, start) = (V::load(&flat[rhs + at..]), begin(flat, at));
        let parent = parents[at];
        if parent != NONE {
            right = right + V::load(&flat[link + at..]) * (V::load(&flat[x + parent as usize..]) - start);
        }
        (start + right * V::load(&flat[own + at..])).store(&mut flat[x + at..]);
    }
}
