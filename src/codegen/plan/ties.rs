//! What maps of branched cells are on devices: tables of elements.
//!
//! In comes, for the elements of one cell, where a map leads; out go tables for all cells, whose elements are numbered cell by cell.
//! Never true here: the tables grow with the square of the elements.

use super::elimination::Elimination;
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
    pub elimination: Option<Elimination>,
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
pub(super) fn numbered(element: u32, cell: usize, each: usize) -> i32 {
    if element == NONE { -1 } else { (cell * each + element as usize) as i32 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_leads_to_an_element_is_listed_in_its_order() {
        let tie = Tie { cells: 2, to: 3, elements: vec![2, 0, 2, NONE], elimination: None };
        assert_eq!(tie.targets(), [2, 0, 2, -1, 5, 3, 5, -1]);
        assert_eq!((tie.from(), tie.most(), tie.is_everywhere()), (8, 2, false));
        assert_eq!(tie.givers(), [1, -1, 0, 5, -1, 4, -1, -1, 2, -1, -1, 6]);
    }
}
