//! Branched cells: what maps lead to, sums along maps, and equations along trees.
//!
//! In come the maps of some branched cells and values per element; out go values per element.
//! Never true here: a sum depends on the order in which a device adds, or code grows with the elements.

use super::builder::{Binary, Builder, Compare, Element, Literal, TensorType, Unary, Value};
use super::entry::Slots;
use super::slot::{Fixed, Slot};
use crate::codegen::plan::{DevicePlan, Elimination, Tie};
use std::ops::Range;

/// Branched cells of a plan, by their number.
#[derive(Clone, Copy)]
pub(super) struct Branches<'a> {
    pub device: &'a DevicePlan,
    pub tree: u32,
}

impl<'a> Branches<'a> {
    fn tie(self, tie: u32) -> &'a Tie {
        &self.device.ties[self.tree as usize][tie as usize]
    }

    fn elimination(self, tie: u32) -> &'a Elimination {
        self.tie(tie).elimination.as_ref().expect("equations are solved along it")
    }

    /// What [`along`](Branches::along) reads.
    pub fn tables_along(self, tie: u32) -> Vec<(Slot, TensorType)> {
        table(Fixed::Tie(self.tree, tie), &[self.tie(tie).from()])
    }

    /// What [`add`](Branches::add) reads.
    pub fn tables_of_sums(self, tie: u32) -> Vec<(Slot, TensorType)> {
        let map = self.tie(tie);
        table(Fixed::Givers(self.tree, tie), &[map.most(), map.cells * map.to])
    }

    /// What [`solve`](Branches::solve) reads.
    pub fn tables_of_equations(self, tie: u32) -> Vec<(Slot, TensorType)> {
        let elements = self.tie(tie).from();
        let stages = self.elimination(tie).stages();
        let above = stages.iter().map(|stage| stage.above.end).max().unwrap_or(0);
        let below = stages.iter().flat_map(|stage| &stage.below).map(|row| row.end).max().unwrap_or(0);
        let one = |fixed: fn(u32, u32) -> Fixed, count| table(fixed(self.tree, tie), &[count]);
        let tables = [
            one(Fixed::Elements, elements),
            one(Fixed::Standing, elements),
            one(Fixed::Parents, elements),
            one(Fixed::Children, elements),
            one(Fixed::Above, above),
            one(Fixed::Below, below),
        ];
        tables.into_iter().flatten().collect()
    }

    /// What each element has where a map leads; 0 where it leads nowhere.
    pub fn along(self, b: &mut Builder, slots: &Slots, tie: u32, value: Value) -> Value {
        let places = slots[&Slot::Fixed(Fixed::Tie(self.tree, tie))];
        let found = b.gather(value, places);
        if self.tie(tie).is_everywhere() {
            return found;
        }
        let ty = b.of(found).clone();
        let none = b.constant(Literal::Real(0.0), ty.element, &ty.dims);
        where_somewhere(b, places, found, none)
    }

    /// A sum per element with what others give whom a map leads there, one after the other.
    pub fn add(self, b: &mut Builder, slots: &Slots, tie: u32, sum: Value, value: Value) -> Value {
        let map = self.tie(tie);
        if map.most() == 0 {
            return sum;
        }
        let givers = slots[&Slot::Fixed(Fixed::Givers(self.tree, tie))];
        (0..map.most()).fold(sum, |sum, at| {
            let places = table_row(b, givers, at);
            let given = b.gather(value, places);
            let more = b.binary(Binary::Add, sum, given);
            where_somewhere(b, places, more, sum)
        })
    }

    /// The solution of the equations with these diagonals, elements beside them (of each element and its parent) and right-hand sides: stage by
    /// stage of their elimination, and back. Where a stage takes the parent of an element, the element then stands beside the parent's parent.
    pub fn solve(self, b: &mut Builder, slots: &Slots, tie: u32, equations: [Value; 3]) -> Value {
        let stages = self.elimination(tie).stages();
        let fixed = |fixed: fn(u32, u32) -> Fixed| slots[&Slot::Fixed(fixed(self.tree, tie))];
        let elements = fixed(Fixed::Elements);
        let mut now = equations.map(|value| b.gather(value, elements));
        let mut before = Vec::new();
        for stage in &stages {
            before.push(now);
            let [mut diag, mut off, mut rhs] = now.map(|of| part(b, of, &(0..stage.gone.start)));
            let own = off;
            if !stage.above.is_empty() {
                let places = part(b, fixed(Fixed::Above), &stage.above);
                let [its_diag, its_off, its_rhs] = now.map(|of| b.gather(of, places));
                let factor = b.binary(Binary::Divide, own, its_diag);
                let [for_diag, for_off, for_rhs] =
                    [own, its_off, its_rhs].map(|by| b.binary(Binary::Multiply, factor, by));
                diag = less(b, places, diag, for_diag);
                rhs = less(b, places, rhs, for_rhs);
                let beside = b.unary(Unary::Negate, for_off);
                off = where_somewhere(b, places, beside, own);
            }
            for row in &stage.below {
                let places = part(b, fixed(Fixed::Below), row);
                let [its_diag, its_off, its_rhs] = now.map(|of| b.gather(of, places));
                let factor = b.binary(Binary::Divide, its_off, its_diag);
                let [for_diag, for_rhs] = [its_off, its_rhs].map(|by| b.binary(Binary::Multiply, factor, by));
                diag = less(b, places, diag, for_diag);
                rhs = less(b, places, rhs, for_rhs);
            }
            // Each stage is computed whole: one of the next ones reads it in several places.
            now = [diag, off, rhs].map(|of| b.barrier(of));
        }
        let [diag, _, rhs] = now;
        let mut solution = b.binary(Binary::Divide, rhs, diag);
        for (stage, before) in stages.iter().zip(before).rev() {
            let [diag, off, rhs] = before.map(|of| part(b, of, &stage.gone));
            let parents = part(b, fixed(Fixed::Parents), &stage.gone);
            let of_parent = b.gather(solution, parents);
            let product = b.binary(Binary::Multiply, off, of_parent);
            let mut right = b.binary(Binary::Subtract, rhs, product);
            if !stage.above.is_empty() {
                let children = part(b, fixed(Fixed::Children), &stage.gone);
                let [off, of_child] = [before[1], solution].map(|of| b.gather(of, children));
                let product = b.binary(Binary::Multiply, off, of_child);
                right = less(b, children, right, product);
            }
            let gone = b.binary(Binary::Divide, right, diag);
            solution = b.concatenate(&[solution, gone], 0);
            solution = b.barrier(solution);
        }
        b.gather(solution, fixed(Fixed::Standing))
    }
}

fn table(fixed: Fixed, dims: &[usize]) -> Vec<(Slot, TensorType)> {
    let ty = TensorType::new(Element::I32, dims);
    // Nothing is handed over where there is nothing, and nothing reads it.
    if ty.is_empty() { Vec::new() } else { vec![(Slot::Fixed(fixed), ty)] }
}

/// A row of a table whose number is known.
fn table_row(b: &mut Builder, table: Value, row: usize) -> Value {
    let width = b.dims(table)[1];
    let one = b.slice(table, &[row, 0], &[row + 1, width]);
    b.reshape(one, &[width])
}

/// Some of a row.
fn part(b: &mut Builder, of: Value, range: &Range<usize>) -> Value {
    b.slice(of, &[range.start], &[range.end])
}

/// Less by so much where a table leads somewhere.
fn less(b: &mut Builder, places: Value, of: Value, by: Value) -> Value {
    let less = b.binary(Binary::Subtract, of, by);
    where_somewhere(b, places, less, of)
}

/// One value where a table leads somewhere, another one elsewhere.
fn where_somewhere(b: &mut Builder, places: Value, there: Value, elsewhere: Value) -> Value {
    let dims = b.dims(places);
    let zero = b.constant(Literal::Whole(0), Element::I32, &dims);
    let somewhere = b.compare(Compare::Ge, places, zero);
    b.select(somewhere, there, elsewhere)
}
