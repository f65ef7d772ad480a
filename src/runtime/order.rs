//! The order in which the cells of a connected space stand in memory.
//!
//! In come the edges of a space and the grid that its cells stand on; out goes an [`Order`]: cells that are joined stand near each
//! other, and cells with as many edges side by side, so that lanes have little to wait for.
//! Never true here: that a number, a spike or a sum depends on the order; it is a matter of speed alone.

use super::edges::Edges;

/// Which order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrangement {
    /// The model's own.
    Listed,
    /// The one that reads the least memory, and within so many consecutive cells sorted by the number of edges.
    Local {
        /// Cells that are sorted together; rounded up to whole blocks.
        window: usize,
    },
}

impl Default for Arrangement {
    /// A window of 512 cells leaves 3 % of the lanes without work where the degree has the spread of chance, and the values that its
    /// cells read stay in the first cache.
    fn default() -> Arrangement {
        Arrangement::Local { window: 512 }
    }
}

/// A cell's place in memory, and back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Order {
    /// The cell at every place, up to whole blocks: a place past the last cell has its own number.
    cells: Vec<u32>,
    /// The place of every cell.
    places: Vec<u32>,
}

impl Order {
    /// The order of `size` cells in blocks of `lanes`, to which edges lead: those within the space, and all. `grid` are the sides of the
    /// grid that they stand on, the fastest first; the edges fit the space.
    pub fn new(
        arrangement: Arrangement,
        (edges, all): (&[&Edges], &[&Edges]),
        size: usize,
        grid: &[usize],
        lanes: usize,
    ) -> Order {
        let mut cells: Vec<u32> = (0..size as u32).collect();
        if let Arrangement::Local { window } = arrangement {
            let sides = grid.iter().filter(|side| **side > 1).count();
            let near = if sides > 1 && grid.iter().product::<usize>() == size {
                along_curve(grid)
            } else {
                by_neighbours(edges, size)
            };
            if lines(edges, &near) < lines(edges, &cells) {
                cells = near;
            }
            for (index, window) in cells.chunks_mut(window.max(1).next_multiple_of(lanes)).enumerate() {
                // Up and down by turns: where two windows meet, degrees are alike.
                match index % 2 {
                    0 => window.sort_by_key(|&cell| std::cmp::Reverse(degree(all, cell))),
                    _ => window.sort_by_key(|&cell| degree(all, cell)),
                }
            }
        }
        Order::given(cells, lanes)
    }

    /// An order that is known: the cell at every place.
    pub fn given(mut cells: Vec<u32>, lanes: usize) -> Order {
        let size = cells.len();
        let mut places = vec![0; size];
        cells.iter().enumerate().for_each(|(place, &cell)| places[cell as usize] = place as u32);
        cells.extend(size as u32..size.next_multiple_of(lanes) as u32);
        Order { cells, places }
    }

    /// The cell at every place, up to whole blocks; past the last cell, the place's own number.
    pub fn cells(&self) -> &[u32] {
        &self.cells
    }

    /// The place of every cell.
    pub fn places(&self) -> &[u32] {
        &self.places
    }

    /// The cell at a place; without an order the one of that number.
    pub fn cell(order: Option<&Order>, place: usize) -> usize {
        order.map_or(place, |order| order.cells[place] as usize)
    }

    /// The place of a cell; without an order its number.
    pub fn place(order: Option<&Order>, cell: u32) -> u32 {
        order.map_or(cell, |order| order.places[cell as usize])
    }
}

/// How many edges end at a cell.
fn degree(edges: &[&Edges], cell: u32) -> usize {
    edges.iter().map(|edges| edges.of(cell as usize).len()).sum()
}

/// The cells of a grid along a Z-order curve (Morton 1966): cells that are near on the grid are mostly near on the curve.
fn along_curve(grid: &[usize]) -> Vec<u32> {
    let size: usize = grid.iter().product();
    let key = |cell: usize| {
        let (mut rest, mut key) = (cell, 0u64);
        for (dimension, side) in grid.iter().enumerate() {
            let place = rest % side;
            rest /= side;
            for bit in 0..64 / grid.len() {
                key |= ((place >> bit & 1) as u64) << (bit * grid.len() + dimension);
            }
        }
        (key, cell as u32)
    };
    let mut keys: Vec<(u64, u32)> = (0..size).map(key).collect();
    keys.sort_unstable();
    keys.into_iter().map(|(_, cell)| cell).collect()
}

/// The cells by breadth-first search from one end of each connected part, those with few edges first (Cuthill and McKee 1969).
fn by_neighbours(edges: &[&Edges], size: usize) -> Vec<u32> {
    let mut starts: Vec<u32> = (0..size as u32).collect();
    starts.sort_by_key(|&cell| degree(edges, cell));
    let mut order: Vec<u32> = Vec::with_capacity(size);
    // The search that found a cell; each part is searched twice, the second time from where the first one ended.
    let mut found = vec![0u32; size];
    let mut search = |order: &mut Vec<u32>, start: u32, number: u32| {
        let mut next = order.len();
        order.push(start);
        found[start as usize] = number;
        while next < order.len() {
            let (cell, first) = (order[next], order.len());
            for &source in edges.iter().flat_map(|edges| edges.of(cell as usize)) {
                if found[source as usize] < number {
                    found[source as usize] = number;
                    order.push(source);
                }
            }
            order[first..].sort_by_key(|&cell| degree(edges, cell));
            next += 1;
        }
    };
    let mut done = vec![false; size];
    for start in starts {
        if done[start as usize] {
            continue;
        }
        let first = order.len();
        search(&mut order, start, 1);
        let end = order[order.len() - 1];
        order.truncate(first);
        search(&mut order, end, 2);
        if !order[first..].contains(&start) {
            // Edges go one way: from the end the start is not reached.
            search(&mut order, start, 2);
        }
        order[first..].iter().for_each(|&cell| done[cell as usize] = true);
    }
    order
}

/// How many lines of a cache the cells read from others, in groups of as many as a first cache has room for.
fn lines(edges: &[&Edges], cells: &[u32]) -> usize {
    const GROUP: usize = 512;
    const LINE: u32 = 16;
    let mut places = vec![0; cells.len()];
    cells.iter().zip(0..).for_each(|(&cell, place)| places[cell as usize] = place);
    let mut seen = vec![usize::MAX; cells.len().div_ceil(LINE as usize)];
    let mut count = 0;
    for (group, cells) in cells.chunks(GROUP).enumerate() {
        for &source in cells.iter().flat_map(|&cell| edges.iter().flat_map(move |edges| edges.of(cell as usize))) {
            let line = &mut seen[(places[source as usize] / LINE) as usize];
            if *line != group {
                *line = group;
                count += 1;
            }
        }
    }
    count
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edges(lists: &[&[u32]]) -> Edges {
        let mut edges = Edges { offsets: vec![0], sources: Vec::new() };
        for list in lists {
            edges.sources.extend_from_slice(list);
            edges.offsets.push(edges.sources.len() as u32);
        }
        edges
    }

    #[test]
    fn every_cell_has_one_place_whatever_the_grid_and_the_window() {
        for (size, grid) in [(60, vec![3, 4, 5]), (60, vec![60]), (60, vec![]), (7, vec![7, 1]), (64, vec![4, 4, 4])] {
            // One way round, with cells that none reaches.
            let lists: Vec<Vec<u32>> =
                (0..size).map(|c: u32| (0..c % 4).map(|k| (c * 7 + k * 11) % size).collect()).collect();
            let lists: Vec<&[u32]> = lists.iter().map(|list| &list[..]).collect();
            let edges = edges(&lists);
            for arrangement in
                [Arrangement::Listed, Arrangement::Local { window: 1 }, Arrangement::Local { window: 20 }]
            {
                let order = Order::new(arrangement, (&[&edges], &[&edges]), size as usize, &grid, 8);
                let mut sorted = order.cells().to_vec();
                sorted.sort_unstable();
                assert_eq!(sorted, (0..size.next_multiple_of(8)).collect::<Vec<u32>>());
                let back = |cell: u32| order.cells()[order.places()[cell as usize] as usize];
                assert!((0..size).all(|cell| back(cell) == cell));
            }
        }
    }

    #[test]
    fn a_line_in_disorder_is_found_again() {
        // Place i of the line is cell 37 i mod 101: what is next to each other is far apart in the model.
        let cell = |place: u32| place % 101 * 37 % 101;
        let mut lists = vec![Vec::new(); 101];
        for place in 0..100 {
            lists[cell(place) as usize].push(cell(place + 1));
            lists[cell(place + 1) as usize].push(cell(place));
        }
        let lists: Vec<&[u32]> = lists.iter().map(|list| &list[..]).collect();
        let found = by_neighbours(&[&edges(&lists)], 101);
        let line: Vec<u32> = (0..101).map(cell).collect();
        assert!(found == line || found.iter().rev().eq(&line));
    }

    #[test]
    fn neighbours_on_a_grid_are_near_on_the_curve() {
        assert_eq!(along_curve(&[4, 2]), [0, 1, 4, 5, 2, 3, 6, 7]);
        assert_eq!(along_curve(&[3, 3]), [0, 1, 3, 4, 2, 5, 6, 7, 8]);
    }

    #[test]
    fn windows_are_sorted_by_degree() {
        let lists: Vec<Vec<u32>> = (0..32).map(|c: u32| vec![c; (c * 5 % 8) as usize]).collect();
        let lists: Vec<&[u32]> = lists.iter().map(|list| &list[..]).collect();
        let edges = edges(&lists);
        let order = Order::new(Arrangement::Local { window: 16 }, (&[&edges], &[&edges]), 32, &[], 8);
        let degrees: Vec<usize> = order.cells().iter().map(|&cell| edges.of(cell as usize).len()).collect();
        assert!(degrees[..16].is_sorted_by(|a, b| a >= b) && degrees[16..].is_sorted(), "{degrees:?}");
    }
}
