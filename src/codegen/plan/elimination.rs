//! In which order the elements of a tree are eliminated on devices.
//!
//! In comes a tree, for each element its parent; out go stages, and tables for all cells of what an element needs of others in its stage.
//! Never true here: an element and one that it needs are of the same stage, or a stage waits for each element of a branch.
//!
//! A processor eliminates one element after the other, from the tips to the root (Hines 1984). A device that takes many at once would wait as often as
//! the longest path has elements. So a stage takes all elements at once that have one child or none and that are no neighbours: what is left is a tree
//! again, in which the child follows its parent's parent. A path is half as long after each stage (cyclic reduction), and a tip is gone in the first
//! (Miller and Reif 1985): stages are as many as the logarithm of the elements.

use super::ties::numbered;
use crate::runtime::branches::NONE;
use std::ops::Range;

/// The elements of a tree in their *places*: those that are eliminated last come first, so that what is left after a stage is what stands before it.
/// Of a place, the cells follow each other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Elimination {
    /// How many cells.
    cells: usize,
    /// For each place its element, of one cell.
    order: Vec<u32>,
    /// For each element its place.
    places: Vec<u32>,
    stages: Vec<Stage>,
    /// For each place the place of its parent when it is eliminated; [`NONE`] for roots, which are left.
    parents: Vec<u32>,
    /// For each place the place of its child then, or [`NONE`].
    children: Vec<u32>,
}

/// Elements that are eliminated at once.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Stage {
    /// How many places are left after it.
    left: usize,
    /// For each place that is left its parent, if that is eliminated.
    above: Vec<u32>,
    /// For each place that is left its children that are eliminated, by row.
    below: Vec<Vec<u32>>,
}

/// Where a stage is in values that stand place by place, and in its tables.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StageParts {
    /// What is eliminated; what is left stands before it.
    pub gone: Range<usize>,
    /// Of [`above`](Elimination::above); empty if all that is eliminated is a tip.
    pub above: Range<usize>,
    /// Rows of [`below`](Elimination::below), one after the other.
    pub below: Vec<Range<usize>>,
}

impl Elimination {
    /// That of a tree in which parents come before their children.
    pub fn new(cells: usize, parents: &[u32]) -> Elimination {
        let count = parents.len();
        let (mut up, mut left): (Vec<u32>, Vec<u32>) = (parents.to_vec(), (0..count as u32).collect());
        let mut found: Vec<Vec<Gone>> = Vec::new();
        loop {
            let stage = independent(&up, &left);
            if stage.is_empty() {
                break;
            }
            for gone in stage.iter().filter(|gone| gone.child != NONE) {
                up[gone.child as usize] = gone.parent;
            }
            let mut is_gone = vec![false; count];
            stage.iter().for_each(|gone| is_gone[gone.element as usize] = true);
            left.retain(|&element| !is_gone[element as usize]);
            found.push(stage);
        }
        let gone = || found.iter().rev().flatten();
        let order: Vec<u32> = left.iter().copied().chain(gone().map(|gone| gone.element)).collect();
        let mut places = vec![NONE; count];
        (0..).zip(&order).for_each(|(place, &element)| places[element as usize] = place);
        let place = |element: u32| if element == NONE { NONE } else { places[element as usize] };
        let roots = || left.iter().map(|_| NONE);
        let parents: Vec<u32> = roots().chain(gone().map(|gone| place(gone.parent))).collect();
        let children: Vec<u32> = roots().chain(gone().map(|gone| place(gone.child))).collect();
        let mut before = count;
        let stages = found.iter().map(|stage| {
            let left = before - stage.len();
            let stage = Stage::new(left, left..before, &parents, &children);
            before = left;
            stage
        });
        let stages = stages.collect();
        Elimination { cells, order, places, stages, parents, children }
    }

    /// Where its stages are, the first one first.
    pub fn stages(&self) -> Vec<StageParts> {
        let (mut before, mut above, mut below) = (self.order.len(), 0, 0);
        let next = |at: &mut usize, width: usize| {
            *at += width * self.cells;
            *at - width * self.cells..*at
        };
        let parts = |stage: &Stage| {
            let gone = stage.left * self.cells..before * self.cells;
            before = stage.left;
            let below = stage.below.iter().map(|_| next(&mut below, stage.left)).collect();
            StageParts { gone, above: next(&mut above, stage.above.len()), below }
        };
        self.stages.iter().map(parts).collect()
    }

    /// `[place]`: the number of each element among all.
    pub fn elements(&self) -> Vec<i32> {
        let each = self.order.len();
        let of_place = |&element: &u32| (0..self.cells).map(move |cell| numbered(element, cell, each));
        self.order.iter().flat_map(of_place).collect()
    }

    /// `[element]`: where it stands in that table.
    pub fn standing(&self) -> Vec<i32> {
        (0..self.cells).flat_map(|cell| self.places.iter().map(move |&place| self.at(place, cell))).collect()
    }

    /// `[place]`: where the parent stands when a place is eliminated, or -1.
    pub fn parents(&self) -> Vec<i32> {
        self.all(&self.parents)
    }

    /// `[place]`: where the child stands then, or -1.
    pub fn children(&self) -> Vec<i32> {
        self.all(&self.children)
    }

    /// `[stage, place]`: of what is left after a stage, where the parent stands that it eliminates, or -1.
    pub fn above(&self) -> Vec<i32> {
        self.stages.iter().flat_map(|stage| self.all(&stage.above)).collect()
    }

    /// `[stage, row, place]`: of what is left after a stage, where the children stand that it eliminates, or -1.
    pub fn below(&self) -> Vec<i32> {
        self.stages.iter().flat_map(|stage| &stage.below).flat_map(|row| self.all(row)).collect()
    }

    fn all(&self, places: &[u32]) -> Vec<i32> {
        places.iter().flat_map(|&place| (0..self.cells).map(move |cell| self.at(place, cell))).collect()
    }

    fn at(&self, place: u32, cell: usize) -> i32 {
        if place == NONE { -1 } else { (place as usize * self.cells + cell) as i32 }
    }
}

impl Stage {
    fn new(left: usize, gone: Range<usize>, parents: &[u32], children: &[u32]) -> Stage {
        let mut above = vec![NONE; left];
        let mut below: Vec<Vec<u32>> = Vec::new();
        let mut rows = vec![0; left];
        for place in gone {
            let parent = parents[place] as usize;
            if below.len() == rows[parent] {
                below.push(vec![NONE; left]);
            }
            below[rows[parent]][parent] = place as u32;
            rows[parent] += 1;
            if children[place] != NONE {
                above[children[place] as usize] = place as u32;
            }
        }
        if above.iter().all(|&place| place == NONE) {
            above.clear();
        }
        Stage { left, above, below }
    }
}

/// An element that is eliminated, and its neighbours.
struct Gone {
    element: u32,
    parent: u32,
    child: u32,
}

/// Of those that are left, some that are no neighbours and have a parent and no more than one child: from the tips, every other one of a path.
fn independent(up: &[u32], left: &[u32]) -> Vec<Gone> {
    let (mut counts, mut child, mut chosen) = (vec![0; up.len()], vec![NONE; up.len()], vec![false; up.len()]);
    for &element in left.iter().filter(|element| up[**element as usize] != NONE) {
        let parent = up[element as usize] as usize;
        counts[parent] += 1;
        child[parent] = element;
    }
    let mut stage = Vec::new();
    for &element in left.iter().rev() {
        let (parent, child) = (up[element as usize], child[element as usize]);
        let alone = child == NONE || !chosen[child as usize];
        if parent != NONE && counts[element as usize] <= 1 && alone {
            chosen[element as usize] = true;
            stage.push(Gone { element, parent, child });
        }
    }
    stage
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Eliminates and goes back with the tables of a device, as `src/codegen/stablehlo/branches.rs` says it in StableHLO.
    fn solved(elimination: &Elimination, equations: [&[f64]; 3]) -> Vec<f64> {
        let at = |of: &[f64]| elimination.elements().iter().map(|&element| of[element as usize]).collect::<Vec<f64>>();
        let [mut e, mut g, mut r] = equations.map(at);
        let (above, below) = (elimination.above(), elimination.below());
        let (parents, children) = (elimination.parents(), elimination.children());
        let mut kept = Vec::new();
        for stage in elimination.stages() {
            let mut all = e.clone();
            for place in stage.gone.clone() {
                all[place] += g[place] + usize::try_from(children[place]).map_or(0.0, |child| g[child]);
            }
            kept.push((e.clone(), g.clone(), r.clone(), all));
            let (was_e, was_g, was_r, all) = kept.last().unwrap();
            let left = stage.gone.start;
            for (place, &up) in above[stage.above.clone()].iter().enumerate().filter(|(_, up)| **up >= 0) {
                let up = up as usize;
                let factor = was_g[place] / all[up];
                e[place] += factor * was_e[up];
                r[place] += factor * was_r[up];
                g[place] = factor * was_g[up];
            }
            for row in &stage.below {
                for (place, &child) in below[row.clone()].iter().enumerate().filter(|(_, child)| **child >= 0) {
                    let child = child as usize;
                    let factor = was_g[child] / all[child];
                    e[place] += factor * was_e[child];
                    r[place] += factor * was_r[child];
                }
            }
            for of in [&mut e, &mut g, &mut r] {
                of.truncate(left);
            }
        }
        let mut x: Vec<f64> = r.iter().zip(&e).map(|(r, e)| r / e).collect();
        for (stage, (_, g, r, all)) in elimination.stages().iter().zip(&kept).rev() {
            assert_eq!(x.len(), stage.gone.start);
            for place in stage.gone.clone() {
                let mut right = r[place] + g[place] * x[parents[place] as usize];
                if let Ok(child) = usize::try_from(children[place]) {
                    right += g[child] * x[child];
                }
                x.push(right / all[place]);
            }
        }
        elimination.standing().iter().map(|&place| x[place as usize]).collect()
    }

    /// The largest difference between the two sides of the equations.
    fn wrong(parents: &[u32], cells: usize) -> f64 {
        let each = parents.len();
        let number = |i: usize| (i as f64 * 0.7).sin();
        let numbers = |first: f64, from: usize| (0..cells * each).map(|i| first + number(i + from)).collect();
        let (own, link): (Vec<f64>, Vec<f64>) = (vec![0.1; cells * each], numbers(1.5, 0));
        let rhs: Vec<f64> = numbers(0.0, 5);
        let ends = |i: usize| (i, i - i % each + parents[i % each] as usize);
        let edges: Vec<(usize, usize)> = (0..cells * each).filter(|i| parents[i % each] != NONE).map(ends).collect();
        let x = solved(&Elimination::new(cells, parents), [&own, &link, &rhs]);
        let mut sides: Vec<f64> = (0..cells * each).map(|i| own[i] * x[i] - rhs[i]).collect();
        for &(i, parent) in &edges {
            sides[i] += link[i] * (x[i] - x[parent]);
            sides[parent] += link[i] * (x[parent] - x[i]);
        }
        sides.iter().fold(0.0, |worst, side| side.abs().max(worst))
    }

    /// A root with two children, the second of which has two, the first of these one.
    const BRANCHED: [u32; 6] = [NONE, 0, 0, 2, 2, 3];

    #[test]
    fn equations_along_any_tree_are_solved() {
        let path: Vec<u32> = (0..1000).map(|i: u32| i.checked_sub(1).unwrap_or(NONE)).collect();
        let star: Vec<u32> = (0..30).map(|i| if i == 0 { NONE } else { 0 }).collect();
        let binary: Vec<u32> = (0..511).map(|i: u32| i.checked_sub(1).map_or(NONE, |i| i / 2)).collect();
        let forest = [NONE, NONE, 0, 1, 3, 2, 5];
        // Each one hangs on one of all before it.
        let wild: Vec<u32> = (0..777u32).map(|i| if i == 0 { NONE } else { (i * 7919 + 13) % i }).collect();
        for (tree, cells) in
            [(&path[..], 1), (&star, 2), (&binary, 1), (&forest, 3), (&BRANCHED, 4), (&wild, 2), (&[NONE], 3)]
        {
            let off = wrong(tree, cells);
            assert!(off < 1e-12, "{} elements: {off:e}", tree.len());
        }
    }

    #[test]
    fn stages_are_as_many_as_the_logarithm_of_a_path() {
        let stages = |parents: &[u32]| Elimination::new(1, parents).stages().len();
        let path: Vec<u32> = (0..1025).map(|i: u32| i.checked_sub(1).unwrap_or(NONE)).collect();
        assert_eq!(stages(&path), 11);
        assert_eq!(stages(&BRANCHED), 3);
        assert_eq!(stages(&[NONE]), 0);
    }
}
