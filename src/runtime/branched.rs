//! Branched cells in memory: the elements of every cell in each space, and where maps lead.
//!
//! In come, for one cell, how many elements it has in each space and where maps lead; out go places, fields that all spaces of the cells
//! reach, and what kernels see of them.
//! Never true here: an element of one cell reaches another cell, or a number depends on how cells stand in memory.

use super::aligned::Aligned;
use super::branches::{Branches, NONE, Side, Tie};
use super::lanes::{Scalar, all_finite};
use super::order::Order;
use std::ops::Range;

/// Where a map leads from the elements of one cell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    /// The space that it leads from.
    pub from: usize,
    /// The space that it leads to.
    pub to: usize,
    /// For each element of a cell the element of the same cell, or [`NONE`].
    pub elements: Vec<u32>,
}

/// A field that maps or solutions reach.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field {
    /// Its space.
    pub space: usize,
    /// Is it a state?
    pub state: bool,
}

/// What happens in a step, or before it, one after the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Task {
    /// A sum begins at 0.
    Clear {
        /// The field.
        field: u32,
    },
    /// A kernel of a space.
    Kernel {
        /// The space.
        space: u32,
        /// Its pass.
        pass: u32,
    },
}

/// What kernels do one after the other in a step: a task for some cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// These of the numbers that maps reach begin at 0.
    Clear {
        /// The first one.
        start: usize,
        /// The one behind the last.
        end: usize,
    },
    /// A kernel, given one of the calls.
    Kernel {
        /// Its number.
        kernel: usize,
        /// The number of the call.
        call: usize,
    },
}

/// In how many passes a space does its tasks, at most.
pub fn passes(tasks: &[Vec<Task>; 3]) -> u32 {
    let passes = tasks.iter().flatten().map(|task| match task {
        Task::Kernel { pass, .. } => pass + 1,
        Task::Clear { .. } => 1,
    });
    passes.max().unwrap_or(1)
}

/// Cells of one kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Branched {
    /// How many, and how they stand.
    pub side: Side,
    /// How many elements a cell has, for each space of the group.
    pub each: Vec<(usize, usize)>,
    /// What maps and solutions reach.
    pub fields: Vec<Field>,
    /// The maps.
    pub links: Vec<Link>,
    /// What `init`, a step and `observe` do.
    pub tasks: [Vec<Task>; 3],
}

impl Branched {
    /// Puts the orders of its spaces, in blocks of so many lanes, among those of all spaces.
    pub fn arrange(&self, orders: &mut [Option<Order>], lanes: impl Fn(usize) -> usize) {
        for &(space, each) in &self.each {
            orders[space] = Some(order(self.side, each, lanes(space)));
        }
    }

    /// How many elements a cell has in a space.
    pub fn each(&self, space: usize) -> usize {
        self.each.iter().find(|(other, _)| *other == space).map_or(0, |(_, each)| *each)
    }
}

/// Bytes of cells that take many steps before the next ones do: what the second cache holds beside the rest.
const NEAR: usize = 512 << 10;

/// The cells of one part of a machine.
pub struct Own<T> {
    side: Side,
    /// Elements of each cell, and lanes of a block, for each space of the group.
    spaces: Vec<(usize, usize, usize)>,
    flat: Aligned<T>,
    at: Vec<usize>,
    /// For each field its space and the number of its elements, and whether it is a state.
    fields: Vec<(Field, usize)>,
    /// For each map what a [`Tie`] has.
    ties: Vec<[Vec<u32>; 3]>,
    /// How many cells take their steps together.
    together: usize,
}

impl<T: Scalar> Own<T> {
    /// Those of some of the cells. `lanes` are those of a block of each space, `bytes` what they all take beside the fields that maps reach.
    pub fn new(of: &Branched, cells: Range<usize>, lanes: impl Fn(usize) -> usize, bytes: usize) -> Own<T> {
        let side = Side { cells: cells.len(), width: of.side.width };
        let spaces: Vec<(usize, usize, usize)> =
            of.each.iter().map(|&(space, each)| (space, each, lanes(space))).collect();
        let mut size = 0;
        let (mut at, mut fields) = (Vec::new(), Vec::new());
        for &field in &of.fields {
            let elements = side.cells * of.each(field.space);
            at.push(size);
            fields.push((field, elements));
            // A vector may be loaded past the last element.
            size += elements.next_multiple_of(lanes(field.space)) + lanes(field.space);
        }
        let tie = |link: &Link| {
            let ([from, to], lanes) = ([link.from, link.to].map(|space| of.each(space)), lanes(link.from));
            let mut places = vec![NONE; side.cells * from];
            for cell in 0..side.cells {
                for (element, &leads) in link.elements.iter().enumerate().filter(|(_, leads)| **leads != NONE) {
                    places[side.place(cell, element, from)] = side.place(cell, leads as usize, to) as u32;
                }
            }
            let start = |block: &[u32]| {
                let follow = block.windows(2).all(|two| two[0] != NONE && two[0].checked_add(1) == Some(two[1]));
                if follow && block.len() == lanes { block[0] } else { NONE }
            };
            let inwards = if link.from == link.to { inwards(&link.elements) } else { Vec::new() };
            [places.chunks(lanes).map(start).collect(), places, inwards]
        };
        let ties = of.links.iter().map(tie).collect();
        // Whole blocks of every space.
        let unit = unit(side.width, spaces.iter().map(|(.., lanes)| *lanes));
        let of_cell = (size * size_of::<T>() + bytes) / side.cells.max(1);
        let together = (NEAR / of_cell.max(1) / unit * unit).max(unit);
        Own { side, spaces, flat: Aligned::new(size), at, fields, ties, together }
    }

    /// The number of a field at a place.
    pub fn value(&mut self, field: usize, place: usize) -> &mut T {
        &mut self.flat.get_mut()[self.at[field] + place]
    }

    /// Are all states finite?
    pub fn all_finite(&self) -> bool {
        let mut states = self.at.iter().zip(&self.fields).filter(|(_, (field, _))| field.state);
        states.all(|(&at, &(_, elements))| all_finite(&self.flat.get()[at..at + elements]))
    }

    /// Lets some cells after the others do some tasks: `run` is given the turns of a step, with the numbers that `number` has for the kernels of a space
    /// and a pass, for each space what its kernels see, without numbers that maps reach, and these.
    ///
    /// # Errors
    /// The first one of `run`.
    pub fn run<E>(
        &mut self,
        tasks: &[Task],
        number: impl Fn(usize, usize) -> usize,
        mut run: impl FnMut(&[Turn], Vec<(usize, Branches<'_, T>)>, &mut [T]) -> Result<(), E>,
    ) -> Result<(), E> {
        let Own { side, spaces, flat, at, fields, ties, together } = self;
        let ties: Vec<Tie<'_>> = ties.iter().map(|[starts, places, inwards]| Tie { starts, places, inwards }).collect();
        let place = |space: usize| spaces.iter().position(|(other, ..)| *other == space);
        for first in (0..side.cells).step_by(*together) {
            let cells = first..side.cells.min(first + *together);
            let turn = |&task: &Task| match task {
                Task::Clear { field } => {
                    let (field, at) = (fields[field as usize].0, at[field as usize]);
                    let each = place(field.space).map_or(0, |place| spaces[place].1);
                    Some(Turn::Clear { start: at + cells.start * each, end: at + cells.end * each })
                }
                Task::Kernel { space, pass } => {
                    let kernel = number(space as usize, pass as usize);
                    place(space as usize).map(|call| Turn::Kernel { kernel, call })
                }
            };
            let turns: Vec<Turn> = tasks.iter().filter_map(turn).collect();
            let seen = |&(space, each, lanes): &(usize, usize, usize)| {
                let blocks = cells.start * each / lanes..(cells.end * each).div_ceil(lanes);
                (space, Branches { flat: &mut [], at, ties: &ties, blocks, cells: cells.clone(), side: *side })
            };
            run(&turns, spaces.iter().map(seen).collect(), flat.get_mut())?;
        }
        Ok(())
    }
}

/// The elements of a cell from the farthest from the root to the root, given the parent of each, which comes before it.
fn inwards(parents: &[u32]) -> Vec<u32> {
    let mut depths = vec![0_u32; parents.len()];
    for (element, &parent) in parents.iter().enumerate() {
        depths[element] = depths.get(parent as usize).map_or(0, |depth| depth + 1);
    }
    let mut elements: Vec<u32> = (0..parents.len() as u32).rev().collect();
    // Stable: what is added to one parent keeps its order.
    elements.sort_by_key(|&element| std::cmp::Reverse(depths[element as usize]));
    elements
}

/// The order of all elements, which are numbered cell by cell, in blocks of `lanes`.
fn order(side: Side, each: usize, lanes: usize) -> Order {
    let mut cells = vec![0; side.cells * each];
    for cell in 0..side.cells {
        for element in 0..each {
            cells[side.place(cell, element, each)] = (cell * each + element) as u32;
        }
    }
    Order::given(cells, lanes)
}

/// As many cells as fill whole blocks of every space, whatever the number of elements: blocks have a whole number of vectors.
pub fn unit(width: usize, lanes: impl Iterator<Item = usize>) -> usize {
    lanes.max().unwrap_or(width).next_multiple_of(width)
}

#[cfg(test)]
mod tests {
    use super::super::branches::{System, solve};
    use super::super::lanes::F64x8;
    use super::*;

    /// A root with two children, the second of which has a child.
    const PARENTS: [u32; 4] = [NONE, 0, 0, 2];

    /// A kernel of the space 2, which has the other maps and fields at hand, too.
    const TASK: [Task; 1] = [Task::Kernel { space: 2, pass: 0 }];

    fn branched(cells: usize) -> Branched {
        Branched {
            side: Side { cells, width: 8 },
            each: vec![(0, 1), (1, 4), (2, 2)],
            fields: vec![Field { space: 1, state: true }; 4],
            links: vec![
                Link { from: 1, to: 1, elements: PARENTS.to_vec() },
                Link { from: 2, to: 1, elements: vec![1, 3] },
            ],
            tasks: Default::default(),
        }
    }

    #[test]
    fn every_element_has_a_place_of_its_own() {
        for cells in [1, 3, 8, 21] {
            let side = Side { cells, width: 8 };
            let mut places: Vec<usize> =
                (0..cells).flat_map(|cell| (0..4).map(move |element| side.place(cell, element, 4))).collect();
            places.sort_unstable();
            assert_eq!(places, (0..4 * cells).collect::<Vec<_>>());
            let order = order(side, 4, 8);
            assert_eq!(order.cells()[side.place(cells - 1, 2, 4)] as usize, 4 * (cells - 1) + 2);
        }
    }

    #[test]
    fn what_maps_lead_to_is_read_and_added_to() {
        for cells in [1, 3, 8, 21] {
            let of = branched(cells);
            let mut own: Own<f64> = Own::new(&of, 0..cells, |_| 8, 0);
            for cell in 0..cells {
                for element in 0..4 {
                    *own.value(0, of.side.place(cell, element, 4)) = (10 * cell + element) as f64;
                }
            }
            let ran = own.run(
                &TASK,
                |space, _| space,
                |turns, mut seen, flat| {
                    assert_eq!(turns, [Turn::Kernel { kernel: 2, call: 2 }]);
                    let (_, Branches { at, ties, blocks, .. }) = seen.remove(2);
                    for block in blocks {
                        let there: F64x8 = ties[1].load(&flat[at[0]..], block);
                        ties[1].add(&mut flat[at[1]..], block, there);
                        ties[1].add(&mut flat[at[1]..], block, there);
                    }
                    Ok::<(), ()>(())
                },
            );
            assert_eq!(ran, Ok(()));
            for cell in 0..cells {
                let sums: Vec<f64> = (0..4).map(|e| *own.value(1, of.side.place(cell, e, 4))).collect();
                let of_cell = |element: usize| 2.0 * (10 * cell + element) as f64;
                assert_eq!(sums, [0.0, of_cell(1), 0.0, of_cell(3)]);
            }
        }
    }

    /// Each element by itself and its link with its parent, with `x = (1, 2, 3, 4) + cell`.
    #[test]
    fn systems_are_solved_along_the_tree() {
        for cells in [1, 3, 8, 21] {
            let of = branched(cells);
            let mut own: Own<f64> = Own::new(&of, 0..cells, |_| 8, 0);
            // That of the root does not matter.
            let (by_itself, link) = ([2.0, 2.0, 0.0, 4.0], [9.0, 1.0, 1.0, 2.0]);
            for cell in 0..cells {
                let x = |element: usize| (element + 1 + cell) as f64;
                for element in 0..4 {
                    let place = of.side.place(cell, element, 4);
                    let mut right = by_itself[element] * x(element);
                    if PARENTS[element] != NONE {
                        right += link[element] * (x(element) - x(PARENTS[element] as usize));
                    }
                    for child in (0..4).filter(|&child| PARENTS[child] == element as u32) {
                        right += link[child] * (x(element) - x(child));
                    }
                    *own.value(0, place) = by_itself[element];
                    *own.value(1, place) = link[element];
                    *own.value(2, place) = right;
                }
            }
            let ran = own.run(
                &TASK,
                |space, _| space,
                |_, mut seen, flat| {
                    let (_, Branches { at, ties, cells, side, .. }) = seen.remove(2);
                    let system = System { own: at[0], link: at[1], rhs: at[2], from: None, x: at[3] };
                    solve::<F64x8, F64x8>(flat, system, ties[0], side, cells);
                    Ok::<(), ()>(())
                },
            );
            assert_eq!(ran, Ok(()));
            for cell in 0..cells {
                for element in 0..4 {
                    let x = *own.value(3, of.side.place(cell, element, 4));
                    assert!((x - (element + 1 + cell) as f64).abs() < 1e-12, "{x}");
                }
            }
        }
    }
}
