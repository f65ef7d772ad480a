//! Branched cells: what maps lead to, sums along maps, and equations along trees.
//!
//! In come the maps of some branched cells and values per element; out go values per element.
//! Never true here: a sum depends on the order in which a device adds, or code grows with the elements.

use super::builder::{Binary, Builder, Compare, Element, Literal, TensorType, Unary, Value};
use super::entry::Slots;
use super::slot::{Fixed, Slot};
use crate::codegen::plan::{DevicePlan, Elimination, StageParts, Tie};
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

    /// What [`solve`](Branches::solve) reads, where elements come `from` somewhere or from 0.
    pub fn tables_of_equations(self, tie: u32, from: bool) -> Vec<(Slot, TensorType)> {
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
        let of_flow = from.then(|| self.tables_along(tie).into_iter().chain(self.tables_of_sums(tie)));
        tables.into_iter().flatten().chain(of_flow.into_iter().flatten()).collect()
    }

    /// What each element has where a map leads; 0 where it leads nowhere.
    pub fn along(self, b: &mut Builder, slots: &Slots, tie: u32, value: Value) -> Value {
        let places = slots[&Slot::Fixed(Fixed::Tie(self.tree, tie))];
        let found = b.gather(value, places);
        if self.tie(tie).is_everywhere() {
            return found;
        }
        or_nothing(b, places, found)
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

    /// The solution of equations of what each element does by itself, what links it with its parent, and right-hand sides, from where the elements are:
    /// stage by stage of their elimination, and back. Where a stage takes the parent of an element, that is linked with the parent's parent.
    pub fn solve(
        self,
        b: &mut Builder,
        slots: &Slots,
        tie: u32,
        [own, link, rhs]: [Value; 3],
        from: Option<Value>,
    ) -> Value {
        // What flows along the links before anything moves.
        let rhs = from.map_or(rhs, |from| {
            let places = slots[&Slot::Fixed(Fixed::Tie(self.tree, tie))];
            let above = b.gather(from, places);
            let fall = b.binary(Binary::Subtract, above, from);
            let flow = b.binary(Binary::Multiply, link, fall);
            let flow = or_nothing(b, places, flow);
            let outward = b.unary(Unary::Negate, flow);
            let sum = b.binary(Binary::Add, rhs, flow);
            self.add(b, slots, tie, sum, outward)
        });
        let stages = self.elimination(tie).stages();
        let fixed = |fixed: fn(u32, u32) -> Fixed| slots[&Slot::Fixed(fixed(self.tree, tie))];
        let elements = fixed(Fixed::Elements);
        let mut now = [own, link, rhs].map(|value| b.gather(value, elements));
        let mut before = Vec::new();
        for stage in &stages {
            let [mut own, mut link, mut rhs] = now.map(|of| part(b, of, &(0..stage.gone.start)));
            let whole = whole(b, stage, fixed(Fixed::Children), now);
            before.push((now, whole));
            let linked = link;
            if !stage.above.is_empty() {
                let places = part(b, fixed(Fixed::Above), &stage.above);
                let [its, its_link, its_rhs] = now.map(|of| b.gather(of, places));
                let sum = b.binary(Binary::Add, its, its_link);
                let sum = b.binary(Binary::Add, sum, linked);
                let factor = b.binary(Binary::Divide, linked, sum);
                let [for_own, beyond, for_rhs] =
                    [its, its_link, its_rhs].map(|by| b.binary(Binary::Multiply, factor, by));
                own = more(b, places, own, for_own);
                rhs = more(b, places, rhs, for_rhs);
                link = where_somewhere(b, places, beyond, linked);
            }
            for row in &stage.below {
                let places = part(b, fixed(Fixed::Below), row);
                let [its, its_link, its_rhs] = now.map(|of| b.gather(of, places));
                let first = b.constant(Literal::Whole(stage.gone.start as u64), Element::I32, &b.dims(places));
                let of_gone = b.binary(Binary::Subtract, places, first);
                let sum = b.gather(whole, of_gone);
                let factor = b.binary(Binary::Divide, its_link, sum);
                let [for_own, for_rhs] = [its, its_rhs].map(|by| b.binary(Binary::Multiply, factor, by));
                own = more(b, places, own, for_own);
                rhs = more(b, places, rhs, for_rhs);
            }
            // Each stage is computed whole: one of the next ones reads it in several places.
            now = [own, link, rhs].map(|of| b.barrier(of));
        }
        let [own, _, rhs] = now;
        let mut solution = b.binary(Binary::Divide, rhs, own);
        for (stage, ([_, link, rhs], whole)) in stages.iter().zip(before).rev() {
            let [up, given] = [link, rhs].map(|of| part(b, of, &stage.gone));
            let parents = part(b, fixed(Fixed::Parents), &stage.gone);
            let of_parent = b.gather(solution, parents);
            let flow = b.binary(Binary::Multiply, up, of_parent);
            let mut right = b.binary(Binary::Add, given, flow);
            if !stage.above.is_empty() {
                let children = part(b, fixed(Fixed::Children), &stage.gone);
                let [down, of_child] = [link, solution].map(|of| b.gather(of, children));
                let flow = b.binary(Binary::Multiply, down, of_child);
                right = more(b, children, right, flow);
            }
            let gone = b.binary(Binary::Divide, right, whole);
            solution = b.concatenate(&[solution, gone], 0);
            solution = b.barrier(solution);
        }
        let moved = b.gather(solution, fixed(Fixed::Standing));
        from.map_or(moved, |from| b.binary(Binary::Add, from, moved))
    }
}

/// Of what a stage eliminates: what it does by itself and its links, together.
fn whole(b: &mut Builder, stage: &StageParts, children: Value, [own, link, _]: [Value; 3]) -> Value {
    let [its, up] = [own, link].map(|of| part(b, of, &stage.gone));
    let sum = b.binary(Binary::Add, its, up);
    if stage.above.is_empty() {
        return sum;
    }
    let children = part(b, children, &stage.gone);
    let down = b.gather(link, children);
    more(b, children, sum, down)
}

/// 0 where a table leads nowhere.
fn or_nothing(b: &mut Builder, places: Value, of: Value) -> Value {
    let ty = b.of(of).clone();
    let none = b.constant(Literal::Real(0.0), ty.element, &ty.dims);
    where_somewhere(b, places, of, none)
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

/// More by so much where a table leads somewhere.
fn more(b: &mut Builder, places: Value, of: Value, by: Value) -> Value {
    let more = b.binary(Binary::Add, of, by);
    where_somewhere(b, places, more, of)
}

/// One value where a table leads somewhere, another one elsewhere.
fn where_somewhere(b: &mut Builder, places: Value, there: Value, elsewhere: Value) -> Value {
    let dims = b.dims(places);
    let zero = b.constant(Literal::Whole(0), Element::I32, &dims);
    let somewhere = b.compare(Compare::Ge, places, zero);
    b.select(somewhere, there, elsewhere)
}
