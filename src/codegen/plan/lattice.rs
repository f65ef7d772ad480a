//! Edges as shifts of a lattice.
//!
//! In come the edges of a population and the sizes of its grid; out goes a [`Lattice`]: the displacements that occur, and for each
//! of them a bit of every cell that says whether it has that edge.
//! Never true here: that it matters which rule made the edges, or that an edge is lost: where the edges are no set of few
//! displacements, there is no lattice.
//!
//! # The layout
//!
//! Values that are looked up lie in planes with a halo: `[z, (y, x)]`, where the grid is continued, wrapped, by the largest
//! displacement along each dimension, and `y` and `x` are one flat dimension (rows of `width` values, one after the other). So every
//! displacement is a rectangle of that array, which no device needs to gather. What is computed from them has the shape
//! `[z, (y, x)]` of [`Lattice::dims`]: rows are `width` long, what lies behind the row of a grid is computed and dropped.
//!
//! Bits are in words of 32, and each word is an array of its own: the displacements of a word are computed together, and nothing else
//! is read for them than the word, the values and the sum so far.

use crate::runtime::edges::Edges;
use std::collections::BTreeMap;

/// Edges of a population on a grid, by displacements.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lattice {
    /// The sizes of the grid, x first; 1 for dimensions that it does not have.
    pub sizes: [usize; 3],
    /// The largest displacement along each dimension.
    pub halo: [usize; 3],
    /// The displacements from target to source, ordered by z, y, x; twice if a pair of cells can have two such edges, and so on.
    pub shifts: Vec<[i32; 3]>,
}

/// Bits in a word of a mask.
const WORD: usize = 32;

impl Lattice {
    /// Finds the displacements of edges; none if there are more than `most`, or no edges at all, or another number of cells.
    pub fn find(edges: &Edges, sizes: &[usize], most: usize) -> Option<Lattice> {
        let sizes: [usize; 3] = std::array::from_fn(|d| sizes.get(d).copied().unwrap_or(1));
        let cells: usize = sizes.iter().product();
        if edges.sources.is_empty() || edges.offsets.len() != cells + 1 {
            return None;
        }
        // For each displacement the most edges that one pair of cells has.
        let mut found: BTreeMap<[i32; 3], u32> = BTreeMap::new();
        let mut of_target: BTreeMap<[i32; 3], u32> = BTreeMap::new();
        for (target, bounds) in edges.offsets.windows(2).enumerate() {
            of_target.clear();
            for &source in &edges.sources[bounds[0] as usize..bounds[1] as usize] {
                let [x, y, z] = displacement(sizes, target, source as usize);
                *of_target.entry([z, y, x]).or_default() += 1;
            }
            for (&shift, &times) in &of_target {
                let most = found.entry(shift).or_default();
                *most = times.max(*most);
            }
            if found.values().map(|&times| times as usize).sum::<usize>() > most {
                return None;
            }
        }
        let repeated = found.iter().flat_map(|(&[z, y, x], &times)| std::iter::repeat_n([x, y, z], times as usize));
        let shifts: Vec<[i32; 3]> = repeated.collect();
        let halo =
            std::array::from_fn(|d| shifts.iter().map(|shift| shift[d].unsigned_abs()).max().unwrap_or(0) as usize);
        Some(Lattice { sizes, halo, shifts })
    }

    /// The length of a row with its halo.
    pub fn width(&self) -> usize {
        self.sizes[0] + 2 * self.halo[0]
    }

    /// The shape of what is computed at edges: planes, and the values of a plane.
    pub fn dims(&self) -> [usize; 2] {
        [self.sizes[2], self.sizes[1] * self.width()]
    }

    /// The shape of an array with its halo. Behind the last row there are as many values more as the last rectangle needs.
    pub fn padded(&self) -> [usize; 2] {
        let [_, y, z] = std::array::from_fn(|d| self.sizes[d] + 2 * self.halo[d]);
        [z, y * self.width() + 2 * self.halo[0]]
    }

    /// Where, in an array with a halo, the rectangle of a displacement begins.
    pub fn start(&self, shift: [i32; 3]) -> [usize; 2] {
        let [x, y, z]: [usize; 3] = std::array::from_fn(|d| (self.halo[d] as i64 + i64::from(shift[d])) as usize);
        [z, y * self.width() + x]
    }

    /// The number of words of a mask.
    pub fn words(&self) -> usize {
        self.shifts.len().div_ceil(WORD)
    }

    /// The displacements of a word, and the bit of each.
    pub fn of_word(&self, word: usize) -> impl Iterator<Item = ([i32; 3], u32)> + '_ {
        let shifts = self.shifts.chunks(WORD).nth(word).unwrap_or_default();
        shifts.iter().enumerate().map(|(at, &shift)| (shift, 1 << at))
    }

    /// Which edges of a word's displacements there are: `[z, (y, x)]`. The edges are those that the lattice was found in.
    pub fn mask(&self, edges: &Edges, word: usize) -> Vec<u32> {
        let [planes, plane] = self.dims();
        let mut mask = vec![0; planes * plane];
        // Millions of edges look up their displacements, so these lie in a table, where others are never looked up.
        let across: [usize; 3] = std::array::from_fn(|d| 2 * self.halo[d] + 1);
        let entry = |shift: [i32; 3]| {
            let [x, y, z]: [usize; 3] = std::array::from_fn(|d| (self.halo[d] as i64 + i64::from(shift[d])) as usize);
            x + across[0] * (y + across[1] * z)
        };
        let mut first = vec![0; across.iter().product()];
        for (at, &shift) in self.shifts.iter().enumerate().rev() {
            first[entry(shift)] = at;
        }
        for (target, bounds) in edges.offsets.windows(2).enumerate() {
            let [x, y, z] = place(self.sizes, target);
            let cell = z * plane + y * self.width() + x;
            let sources = &edges.sources[bounds[0] as usize..bounds[1] as usize];
            for (nth, &source) in sources.iter().enumerate() {
                let shift = displacement(self.sizes, target, source as usize);
                let first = first[entry(shift)];
                // A second edge between the same cells has the next bit.
                let at = match self.shifts.get(first + 1) {
                    Some(&next) if next == shift => first + sources[..nth].iter().filter(|s| **s == source).count(),
                    Some(_) | None => first,
                };
                if at / WORD == word {
                    mask[cell] |= 1 << (at % WORD);
                }
            }
        }
        mask
    }
}

fn place(sizes: [usize; 3], cell: usize) -> [usize; 3] {
    [cell % sizes[0], cell / sizes[0] % sizes[1], cell / sizes[0] / sizes[1]]
}

/// The shortest way from target to source; forwards where both ways are equally long.
fn displacement(sizes: [usize; 3], target: usize, source: usize) -> [i32; 3] {
    let (from, to) = (place(sizes, target), place(sizes, source));
    std::array::from_fn(|d| {
        let ahead = (to[d] + sizes[d] - from[d]) % sizes[d];
        if ahead > sizes[d] / 2 { ahead as i32 - sizes[d] as i32 } else { ahead as i32 }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The sources of a target, read back from the mask as a device would.
    fn sources(lattice: &Lattice, masks: &[Vec<u32>], target: usize) -> Vec<u32> {
        let [_, plane] = lattice.dims();
        let [x, y, z] = place(lattice.sizes, target);
        let mut found = Vec::new();
        for (word, mask) in masks.iter().enumerate() {
            for (shift, bit) in lattice.of_word(word) {
                if mask[z * plane + y * lattice.width() + x] & bit != 0 {
                    let to: [usize; 3] = std::array::from_fn(|d| {
                        ([x, y, z][d] as i64 + i64::from(shift[d])).rem_euclid(lattice.sizes[d] as i64) as usize
                    });
                    found.push((to[0] + lattice.sizes[0] * (to[1] + lattice.sizes[1] * to[2])) as u32);
                }
            }
        }
        found.sort_unstable();
        found
    }

    fn masks(lattice: &Lattice, edges: &Edges) -> Vec<Vec<u32>> {
        (0..lattice.words()).map(|word| lattice.mask(edges, word)).collect()
    }

    fn edges(lists: &[Vec<u32>]) -> Edges {
        let mut edges = Edges { offsets: vec![0], sources: Vec::new() };
        for list in lists {
            edges.sources.extend(list);
            edges.offsets.push(edges.sources.len() as u32);
        }
        edges
    }

    #[test]
    fn every_edge_of_a_lattice_comes_back() {
        // Even, odd, small and missing dimensions; the step of 7 reaches far cells, both halves of the torus, and the cell itself.
        for sizes in [vec![4, 4, 4], vec![5, 3, 2], vec![6, 5], vec![9], vec![1], vec![2, 1, 3]] {
            let cells: usize = sizes.iter().product();
            let lists: Vec<Vec<u32>> =
                (0..cells).map(|cell| (0..cell % 4).map(|k| ((cell * 5 + 7 * k) % cells) as u32).collect()).collect();
            let edges = edges(&lists);
            let Some(lattice) = Lattice::find(&edges, &sizes, 1000) else {
                assert!(edges.sources.is_empty());
                continue;
            };
            let masks = masks(&lattice, &edges);
            for (target, list) in lists.iter().enumerate() {
                let mut expected = list.clone();
                expected.sort_unstable();
                assert_eq!(sources(&lattice, &masks, target), expected, "{sizes:?} {target}");
            }
            let bits: u32 = masks.iter().flatten().map(|word| word.count_ones()).sum();
            assert_eq!(bits as usize, edges.sources.len(), "a bit for an edge, none elsewhere");
        }
    }

    #[test]
    fn a_pair_with_two_edges_has_two_bits() {
        let edges = edges(&[vec![1, 1, 2], vec![2], vec![]]);
        let lattice = Lattice::find(&edges, &[3], 10).expect("three displacements");
        assert_eq!(lattice.shifts, [[-1, 0, 0], [1, 0, 0], [1, 0, 0]]);
        assert_eq!(sources(&lattice, &masks(&lattice, &edges), 0), [1, 1, 2]);
    }

    #[test]
    fn edges_between_two_cells_cross_the_border_of_words() {
        let edges = edges(&[vec![1; 40], vec![0; 33], vec![]]);
        let lattice = Lattice::find(&edges, &[3], 100).expect("two displacements");
        assert_eq!((lattice.shifts.len(), lattice.words()), (73, 3));
        let masks = masks(&lattice, &edges);
        assert_eq!([0, 1, 2].map(|target| sources(&lattice, &masks, target)), [vec![1; 40], vec![0; 33], vec![]]);
    }

    #[test]
    fn rectangles_lie_within_the_halo() {
        let edges = edges(&(0..60).map(|cell| vec![(cell + 13) % 60, (cell + 47) % 60]).collect::<Vec<_>>());
        let lattice = Lattice::find(&edges, &[5, 4, 3], 1000).expect("few displacements");
        let (dims, padded) = (lattice.dims(), lattice.padded());
        for &shift in &lattice.shifts {
            let start = lattice.start(shift);
            assert!(start[0] + dims[0] <= padded[0] && start[1] + dims[1] <= padded[1], "{shift:?}");
        }
    }

    #[test]
    fn too_many_displacements_are_no_lattice() {
        let edges = edges(&(0..50u32).map(|cell| vec![cell * cell % 50]).collect::<Vec<_>>());
        assert!(Lattice::find(&edges, &[50], 5).is_none());
        assert!(Lattice::find(&edges, &[50], 50).is_some());
        assert!(Lattice::find(&edges, &[49], 50).is_none(), "another number of cells");
        assert!(Lattice::find(&Edges { offsets: vec![0, 0], sources: vec![] }, &[1], 5).is_none(), "no edges");
    }
}
