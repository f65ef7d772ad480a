//! Edges as slabs: cells with about as many edges side by side, and a list of sources for each edge of a slab.
//!
//! In come the edges that lead to a population and the sizes of its grid; out go [`Slabs`]: an order of the cells, cut into slabs of equal
//! width, and how many rows of sources each slab has.
//! Never true here: that an edge is lost, or that results stand in this order: sums go back to the order of the model.

use crate::runtime::edges::Edges;
use crate::runtime::order::{Arrangement, Order};
use std::sync::Arc;

/// Edges of a population by slabs of cells.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Slabs {
    /// Cells in a slab.
    pub width: usize,
    /// For each slab how many rows of sources it has: the most edges that one of its cells has.
    pub rows: Vec<usize>,
    order: Arc<Order>,
}

/// Cells in a slab: what a row computes stays in the first cache, and is long against the time it takes to begin a row (0.2 us).
/// With 8000 olive cells of ten junctions each, 256 to 1024 are equally fast within 4 %, and 2048 cost 15 % for what they pad.
const WIDTH: usize = 512;
/// Cells that are sorted together by their degree: many slabs, so that few rows are not full (2 % of the olive's), and so few that what
/// they read lies in the second cache.
const WINDOW: usize = 1 << 15;
/// A source that is none.
const NONE: i32 = -1;

impl Slabs {
    /// Orders and cuts the cells; `sizes` are those of their grid. Edges `within` one population say which of its cells belong together.
    pub fn new(edges: &Edges, sizes: &[usize], within: bool) -> Slabs {
        let cells = edges.offsets.len() - 1;
        let width = WIDTH.min(cells.max(1));
        let all = [edges];
        let near = if within { &all[..] } else { &[] };
        let order = Order::new(Arrangement::Local { window: WINDOW }, (near, &all), cells, sizes, width);
        let degree = |&cell: &u32| edges.of(cell as usize).len();
        let rows = order.cells().chunks(width).map(|slab| slab.iter().map(degree).max().unwrap_or(0)).collect();
        Slabs { width, rows, order: Arc::new(order) }
    }

    /// How many rows there are in all.
    pub fn all_rows(&self) -> usize {
        self.rows.iter().sum()
    }

    /// The cell at every place, `[slab, place]`; past the last cell some cell.
    pub fn cells(&self) -> Vec<i32> {
        let last = self.order.places().len().saturating_sub(1) as u32;
        self.order.cells().iter().map(|&cell| cell.min(last) as i32).collect()
    }

    /// The place of every cell, counted through all slabs.
    pub fn places(&self) -> Vec<i32> {
        self.order.places().iter().map(|&place| place as i32).collect()
    }

    /// The slab of every row.
    pub fn slab_of_row(&self) -> Vec<i32> {
        (0..).zip(&self.rows).flat_map(|(slab, &rows)| std::iter::repeat_n(slab, rows)).collect()
    }

    /// The source of an edge of every cell, `[row, place]`; a negative number where a cell has fewer. The edges are those that the
    /// slabs were made of.
    pub fn sources(&self, edges: &Edges) -> Vec<i32> {
        self.by_row(edges, NONE, |edge| edges.sources[edge] as i32)
    }

    /// What an edge of every cell has, `[row, place]`, or `none`, where a cell has fewer.
    pub fn by_row<T: Copy>(&self, edges: &Edges, none: T, of: impl Fn(usize) -> T) -> Vec<T> {
        let mut all = Vec::with_capacity(self.all_rows() * self.width);
        for (cells, &rows) in self.order.cells().chunks(self.width).zip(&self.rows) {
            for row in 0..rows {
                // Past the last cell there are no edges.
                all.extend(cells.iter().map(|&cell| edges.range(cell as usize).nth(row).map_or(none, &of)));
            }
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_edge_is_in_one_row_of_its_cell_in_the_order_of_the_list() {
        for cells in [1usize, 7, 511, 512, 513, 1500] {
            let mut edges = Edges { offsets: vec![0], sources: Vec::new() };
            for cell in 0..cells {
                let degree = cell * 7 % 5;
                edges.sources.extend((0..degree).map(|k| ((cell * 3 + k * k) % cells) as u32));
                edges.offsets.push(edges.sources.len() as u32);
            }
            let slabs = Slabs::new(&edges, &[cells], true);
            let (order, places, sources) = (slabs.cells(), slabs.places(), slabs.sources(&edges));
            assert_eq!(order.len(), slabs.rows.len() * slabs.width);
            assert_eq!(sources.len(), slabs.all_rows() * slabs.width);
            assert!(order.iter().all(|&cell| (cell as usize) < cells));
            let mut found = vec![Vec::new(); cells];
            for (row, &slab) in slabs.slab_of_row().iter().enumerate() {
                for at in 0..slabs.width {
                    let place = slab as usize * slabs.width + at;
                    let source = sources[row * slabs.width + at];
                    if source >= 0 {
                        found[order[place] as usize].push(source as u32);
                    }
                }
            }
            for (cell, found) in found.iter().enumerate() {
                assert_eq!(found, edges.of(cell), "{cell} of {cells}");
                assert_eq!(order[places[cell] as usize], cell as i32);
            }
        }
    }
}
