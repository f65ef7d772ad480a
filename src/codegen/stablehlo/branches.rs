//! Branched cells: what maps lead to, sums along maps, and equations along trees.
//!
//! In come the maps of some branched cells and values per element; out go values per element.
//! Never true here: a sum depends on the order in which a device adds, or code grows with the elements.

use super::builder::{Binary, Builder, Compare, Element, Literal, TensorType, Value};
use super::entry::{Slots, whole};
use super::slot::{Fixed, Slot};
use crate::codegen::plan::{DevicePlan, Levels, Tie};

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

    fn levels(self, tie: u32) -> &'a Levels {
        self.tie(tie).levels.as_ref().expect("equations are solved along it")
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
        let (tree, levels) = (self.tree, self.levels(tie));
        let [count, width] = [levels.count(), levels.width()];
        let tables = [
            table(Fixed::Elements(tree, tie), &[count, width]),
            table(Fixed::Standing(tree, tie), &[self.tie(tie).from()]),
            table(Fixed::Parents(tree, tie), &[count, width]),
            table(Fixed::Children(tree, tie), &[count, levels.children, width]),
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

    /// The solution of the equations with these diagonals, elements beside them and right-hand sides (Hines 1984): level by level, from the
    /// last one to the root and back.
    pub fn solve(self, b: &mut Builder, slots: &Slots, tie: u32, [diag, off, rhs]: [Value; 3]) -> Value {
        let levels = self.levels(tie);
        let (count, width) = (levels.count() as u32, levels.width());
        let table = |fixed: fn(u32, u32) -> Fixed| slots[&Slot::Fixed(fixed(self.tree, tie))];
        let (elements, parents) = (table(Fixed::Elements), table(Fixed::Parents));
        // Where nobody has children nobody asks for them.
        let children = if levels.children == 0 { parents } else { table(Fixed::Children) };
        let by_level = [diag, off, rhs].map(|value| b.gather(value, elements));
        let real = b.of(diag).element;
        let empty = b.constant(Literal::Real(0.0), real, &[levels.count(), width]);
        let nothing = b.constant(Literal::Real(0.0), real, &[width]);
        let last = whole(b, count - 1);

        // The level; of each level the inverse diagonals and the right-hand sides; what the last level has for its parents; and what stays.
        let carried = [&[last, empty, empty, nothing, nothing, children], &by_level[..]].concat();
        let inside = |b: &mut Builder, given: &[Value]| {
            let zero = whole(b, 0);
            b.compare(Compare::Ge, given[0], zero)
        };
        let up = b.repeat(&carried, inside, |b, given| {
            let &[level, inverses, rights, for_diag, for_rhs, children, diag, off, rhs] = given else {
                panic!("the loop carries nine values")
            };
            let [mut own, beside, mut right] = [diag, off, rhs].map(|of| b.row(of, level));
            let children_of = b.row(children, level);
            for row in 0..levels.children {
                let places = table_row(b, children_of, row);
                let mut less = |of: Value, by: Value| {
                    let by = b.gather(by, places);
                    let less = b.binary(Binary::Subtract, of, by);
                    where_somewhere(b, places, less, of)
                };
                own = less(own, for_diag);
                right = less(right, for_rhs);
            }
            let one = b.constant(Literal::Real(1.0), real, &[width]);
            let inverse = b.binary(Binary::Divide, one, own);
            let factor = b.binary(Binary::Multiply, beside, inverse);
            let for_diag = b.binary(Binary::Multiply, factor, beside);
            let for_rhs = b.binary(Binary::Multiply, factor, right);
            let inverses = b.set_row(inverses, level, inverse);
            let rights = b.set_row(rights, level, right);
            let one = whole(b, 1);
            let above = b.binary(Binary::Subtract, level, one);
            vec![above, inverses, rights, for_diag, for_rhs, children, diag, off, rhs]
        });

        let first = whole(b, 0);
        // The level; of each level the solution; that of the last one; and what stays.
        let carried = [first, empty, nothing, parents, up[1], up[2], by_level[1]];
        let inside = |b: &mut Builder, given: &[Value]| {
            let end = whole(b, count);
            b.compare(Compare::Lt, given[0], end)
        };
        let down = b.repeat(&carried, inside, |b, given| {
            let &[level, solution, above, parents, inverses, rights, off] = given else {
                panic!("the loop carries seven values")
            };
            let [places, inverse, right, beside] = [parents, inverses, rights, off].map(|of| b.row(of, level));
            let of_parent = b.gather(above, places);
            let product = b.binary(Binary::Multiply, beside, of_parent);
            let less = b.binary(Binary::Subtract, right, product);
            let right = where_somewhere(b, places, less, right);
            let x = b.binary(Binary::Multiply, right, inverse);
            let solution = b.set_row(solution, level, x);
            let one = whole(b, 1);
            let below = b.binary(Binary::Add, level, one);
            vec![below, solution, x, parents, inverses, rights, off]
        });
        let solution = b.reshape(down[1], &[levels.count() * width]);
        b.gather(solution, table(Fixed::Standing))
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

/// One value where a table leads somewhere, another one elsewhere.
fn where_somewhere(b: &mut Builder, places: Value, there: Value, elsewhere: Value) -> Value {
    let dims = b.dims(places);
    let zero = b.constant(Literal::Whole(0), Element::I32, &dims);
    let somewhere = b.compare(Compare::Ge, places, zero);
    b.select(somewhere, there, elsewhere)
}
