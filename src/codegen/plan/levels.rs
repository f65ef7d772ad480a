//! What maps of branched cells are on devices: tables of elements, and levels of a tree.
//!
//! In comes, for the elements of one cell, where a map leads; out go tables for all cells, whose elements are numbered cell by cell.
//! Never true here: the elements of a level need each other, or the tables grow with the square of the elements.
//!
//! Equations along a tree are solved level by level, from the farthest elements to the root and back: all elements of a level at once. Each
//! takes what its children have for it, the last one first, which is the order of a processor that goes through the elements one by one.

use crate::runtime::branches::NONE;

/// A map of branched cells.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tie {
    /// How many cells.
    pub cells: usize,
    /// How many elements a cell has in the space that it leads to.
    pub to: usize,
    /// For each element of a cell the element of the same cell, or [`NONE`].
    pub elements: Vec<u32>,
    /// Of the map to the parent that equations are solved along.
    pub levels: Option<Levels>,
}

impl Tie {
    /// Does it lead somewhere from every element?
    pub fn is_everywhere(&self) -> bool {
        !self.elements.contains(&NONE)
    }

    /// How many elements it leads from.
    pub fn from(&self) -> usize {
        self.cells * self.elements.len()
    }

    /// How many elements lead to the same one, at most.
    pub fn most(&self) -> usize {
        most(&self.elements, self.to)
    }

    /// For each element where it leads, or -1.
    pub fn targets(&self) -> Vec<i32> {
        let of_cell = |cell: usize| self.elements.iter().map(move |&to| numbered(to, cell, self.to));
        (0..self.cells).flat_map(of_cell).collect()
    }

    /// `[row, element]`: those that lead to each element in their order, or -1.
    pub fn givers(&self) -> Vec<i32> {
        let mut of_cell: Vec<Vec<u32>> = vec![Vec::new(); self.to];
        for (from, &to) in (0..).zip(&self.elements).filter(|(_, to)| **to != NONE) {
            of_cell[to as usize].push(from);
        }
        let each = self.elements.len();
        let row = |row: usize| {
            let giver =
                move |givers: &Vec<u32>, cell: usize| numbered(givers.get(row).copied().unwrap_or(NONE), cell, each);
            let of_cell = &of_cell;
            (0..self.cells).flat_map(move |cell| of_cell.iter().map(move |givers| giver(givers, cell)))
        };
        (0..self.most()).flat_map(row).collect()
    }
}

/// How many elements lead to the same one of so many, at most.
fn most(elements: &[u32], to: usize) -> usize {
    let mut counts = vec![0; to];
    elements.iter().filter(|to| **to != NONE).for_each(|&to| counts[to as usize] += 1);
    counts.into_iter().max().unwrap_or(0)
}

/// The number of an element of a cell among all, or -1.
fn numbered(element: u32, cell: usize, each: usize) -> i32 {
    if element == NONE { -1 } else { (cell * each + element as usize) as i32 }
}

/// The elements of a tree by their distance from the root. Of a level, first come the first elements of all cells, then their second ones.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Levels {
    /// How many cells.
    pub cells: usize,
    /// The most children of an element.
    pub children: usize,
    /// For each element of a cell its parent, or [`NONE`].
    parents: Vec<u32>,
    /// For each level its elements, of one cell.
    levels: Vec<Vec<u32>>,
    /// For each element its place in its level.
    places: Vec<u32>,
}

impl Levels {
    /// Those of a tree in which parents come before their children.
    pub fn new(cells: usize, parents: &[u32]) -> Levels {
        let mut level_of = vec![0usize; parents.len()];
        let mut levels: Vec<Vec<u32>> = Vec::new();
        let mut places = Vec::with_capacity(parents.len());
        for (element, &parent) in parents.iter().enumerate() {
            let level = if parent == NONE { 0 } else { level_of[parent as usize] + 1 };
            level_of[element] = level;
            if levels.len() == level {
                levels.push(Vec::new());
            }
            places.push(levels[level].len() as u32);
            levels[level].push(element as u32);
        }
        Levels { cells, children: most(parents, parents.len()), parents: parents.to_vec(), levels, places }
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.levels.len()
    }

    /// How many places a level has.
    pub fn width(&self) -> usize {
        self.cells * self.levels.iter().map(Vec::len).max().unwrap_or(0)
    }

    /// `[level, place]`: of each level for all places of its elements and all cells what `of` says, elsewhere -1.
    fn table(&self, of: impl Fn(u32, usize) -> i32) -> Vec<i32> {
        let mut table = Vec::with_capacity(self.count() * self.width());
        for elements in &self.levels {
            for &element in elements {
                table.extend((0..self.cells).map(|cell| of(element, cell)));
            }
            table.resize(table.len().next_multiple_of(self.width()), -1);
        }
        table
    }

    /// The place of an element in its level.
    fn place(&self, element: u32, cell: usize) -> i32 {
        (self.places[element as usize] as usize * self.cells + cell) as i32
    }

    /// `[level, place]`: the number of each element among all, or -1.
    pub fn elements(&self) -> Vec<i32> {
        self.table(|element, cell| numbered(element, cell, self.parents.len()))
    }

    /// `[element]`: where it stands in that table.
    pub fn standing(&self) -> Vec<i32> {
        let mut level_of = vec![0; self.parents.len()];
        for (level, elements) in self.levels.iter().enumerate() {
            elements.iter().for_each(|&element| level_of[element as usize] = level);
        }
        let (each, width) = (self.parents.len() as u32, self.width());
        let of_cell = |cell: usize| {
            let level_of = &level_of;
            (0..each).map(move |element| (level_of[element as usize] * width) as i32 + self.place(element, cell))
        };
        (0..self.cells).flat_map(of_cell).collect()
    }

    /// `[level, place]`: the place of the parent in the level above, or -1.
    pub fn parents(&self) -> Vec<i32> {
        self.table(|element, cell| match self.parents[element as usize] {
            NONE => -1,
            parent => self.place(parent, cell),
        })
    }

    /// `[level, row, place]`: the places of the children in the level below, the last child first, or -1.
    pub fn children(&self) -> Vec<i32> {
        let mut children: Vec<Vec<u32>> = vec![Vec::new(); self.parents.len()];
        for (element, &parent) in self.parents.iter().enumerate().rev().filter(|(_, parent)| **parent != NONE) {
            children[parent as usize].push(element as u32);
        }
        let width = self.width();
        let rows: Vec<Vec<i32>> = (0..self.children)
            .map(|row| {
                self.table(|element, cell| match children[element as usize].get(row) {
                    None => -1,
                    Some(&child) => self.place(child, cell),
                })
            })
            .collect();
        (0..self.count())
            .flat_map(|level| rows.iter().flat_map(move |row| &row[level * width..][..width]))
            .copied()
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A root with two children, the second of which has two, the first of these one.
    const PARENTS: [u32; 6] = [NONE, 0, 0, 2, 2, 3];

    #[test]
    fn levels_hold_every_element_once() {
        let levels = Levels::new(2, &PARENTS);
        assert_eq!((levels.count(), levels.width(), levels.children), (4, 4, 2));
        assert_eq!(levels.elements(), [0, 6, -1, -1, 1, 7, 2, 8, 3, 9, 4, 10, 5, 11, -1, -1]);
        let (elements, standing) = (levels.elements(), levels.standing());
        assert!((0..12).all(|element| elements[standing[element] as usize] == element as i32));
    }

    #[test]
    fn parents_and_children_find_each_other() {
        let levels = Levels::new(3, &PARENTS);
        let (elements, parents, children, width) =
            (levels.elements(), levels.parents(), levels.children(), levels.width());
        let mut seen = 0;
        for at in (0..elements.len()).filter(|at| elements[*at] >= 0) {
            let (cell, element) = (elements[at] / 6, elements[at] % 6);
            let (level, above) = (at / width, PARENTS[element as usize]);
            match parents[at] {
                -1 => assert_eq!(above, NONE),
                place => assert_eq!(elements[(level - 1) * width + place as usize], 6 * cell + above as i32),
            }
            let below: Vec<i32> = (0..levels.children)
                .map(|row| children[(level * levels.children + row) * width + at % width])
                .filter(|place| *place >= 0)
                .map(|place| elements[(level + 1) * width + place as usize] - 6 * cell)
                .collect();
            let expected: Vec<i32> = (0..6).rev().filter(|child| PARENTS[*child as usize] == element as u32).collect();
            assert_eq!(below, expected);
            seen += 1;
        }
        assert_eq!(seen, 18);
    }

    #[test]
    fn what_leads_to_an_element_is_listed_in_its_order() {
        let tie = Tie { cells: 2, to: 3, elements: vec![2, 0, 2, NONE], levels: None };
        assert_eq!(tie.targets(), [2, 0, 2, -1, 5, 3, 5, -1]);
        assert_eq!((tie.from(), tie.most(), tie.is_everywhere()), (8, 2, false));
        assert_eq!(tie.givers(), [1, -1, 0, 5, -1, 4, -1, -1, 2, -1, -1, 6]);
    }
}
