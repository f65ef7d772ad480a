//! What kernels see of edges: rows of sources with one target per lane, and the values of other cells.
//!
//! In come tables that are made of edges once; out go sums over the edges of each target.
//! Never true here: that a sum depends on the number of lanes or of threads: the edges of a target keep their order.

use super::lanes::{Indices, Lanes, Scalar, ask_for};

/// Bytes that a cache near the processor holds: the second-level caches of today have one or two MiB.
const NEAR: usize = 1 << 20;

/// The edges of the targets of one part, by block and row.
#[derive(Clone, Copy, Debug)]
pub struct Rows<'a, T> {
    /// `[shared field][place]`: what the space of the sources shares, as it was before the pass. Nothing where a kernel takes all steps by
    /// itself: it has `now`.
    pub values: &'a [T],
    /// The first row of every block, and the number of rows.
    pub first: &'a [u32],
    /// How many rows of a block have an edge in every lane.
    pub full: &'a [u32],
    /// How many edges every cell has.
    pub degrees: &'a [T],
    /// `[row][lane]`: the sources.
    pub sources: Indices<'a>,
    /// `[row][number][lane]`: what each edge has for itself.
    pub numbers: &'a [T],
    /// Where the entries of every block in `fresh` begin.
    pub first_fresh: &'a [u32],
    /// Sources that a block is the first in a while to read, one for every line of a cache.
    pub fresh: &'a [u32],
}

/// Which lanes of a block have one more edge.
#[derive(Clone, Copy)]
pub struct Row<V: Lanes> {
    /// None if all of them have.
    some: Option<V::Mask>,
    /// Its number among all rows.
    at: usize,
}

/// How many rows ahead the values of sources are read. A processor looks some hundred instructions ahead, and reading the
/// values of a row takes fifty: what is done with them is best done while those of other rows are on their way.
const ROWS_AHEAD: usize = 2;

/// The values of the sources, row by row through all blocks.
pub struct Arrivals<'a, V: Lanes, const FIELDS: usize> {
    fields: [&'a [V::Scalar]; FIELDS],
    sources: Indices<'a>,
    ahead: [[V; FIELDS]; ROWS_AHEAD],
}

impl<V: Lanes, const FIELDS: usize> Arrivals<'_, V, FIELDS> {
    /// The values of the next row, one of each field; past the last row unspecified numbers.
    #[inline(always)]
    pub fn next_row(&mut self) -> [V; FIELDS] {
        let values = self.ahead[0];
        self.ahead.rotate_left(1);
        if let Some(sources) = self.sources.take_first(V::LANES) {
            self.ahead[ROWS_AHEAD - 1] = self.fields.map(|field| V::gather(field, sources));
        }
        values
    }
}

impl<'a, T: Scalar> Rows<'a, T> {
    /// The rows of a block.
    #[inline(always)]
    pub fn rows<V: Lanes<Scalar = T>>(self, block: usize) -> impl Iterator<Item = Row<V>> {
        let rows = (self.first[block + 1] - self.first[block]) as usize;
        let full = self.full[block] as usize;
        let degrees = V::load(&self.degrees[block * V::LANES..]);
        let first = self.first[block] as usize;
        (0..rows).map(move |row| Row {
            some: (row >= full).then_some(V::splat(T::from_f64(row as f64)).lt(degrees)),
            at: first + row,
        })
    }

    /// What the edges of a row have for themselves: one of so many numbers.
    #[inline(always)]
    pub fn number<V: Lanes<Scalar = T>>(self, row: &Row<V>, number: usize, count: usize) -> V {
        V::load(&self.numbers[(row.at * count + number) * V::LANES..])
    }

    /// The same for what arrives from a block on.
    #[inline(always)]
    pub fn from_block<V: Lanes>(self, block: usize) -> Rows<'a, T> {
        let begin = self.first[block] as usize * V::LANES;
        Rows { sources: self.sources.part(begin..self.sources.list().len()), ..self }
    }

    /// What arrives at the first row of the first block, and then at all others: values of fields, of all cells each.
    #[inline(always)]
    pub fn arrivals<V: Lanes<Scalar = T>, const FIELDS: usize>(
        self,
        fields: [&'a [T]; FIELDS],
    ) -> Arrivals<'a, V, FIELDS> {
        let zero = V::splat(T::from_f64(0.0));
        let mut arrivals = Arrivals { fields, sources: self.sources, ahead: [[zero; FIELDS]; ROWS_AHEAD] };
        (0..ROWS_AHEAD).for_each(|_| {
            arrivals.next_row();
        });
        arrivals
    }

    /// Asks for the rows of a block that is soon to come, and for what they read of `now`, which holds so many fields.
    #[inline(always)]
    pub fn ask_for<V: Lanes>(self, block: usize, now: &[T], fields: usize) {
        if size_of_val(now) > NEAR
            && let Some(fresh) = self.first_fresh.get(block..block + 2)
        {
            for &source in &self.fresh[fresh[0] as usize..fresh[1] as usize] {
                (0..fields).for_each(|field| ask_for(now, field * (now.len() / fields) + source as usize, 1));
            }
        }
        if let Some(rows) = self.first.get(block..block + 2) {
            ask_for(self.degrees, block * V::LANES, V::LANES);
            (rows[0]..rows[1]).for_each(|row| ask_for(self.sources.list(), row as usize * V::LANES, V::LANES));
            if !self.numbers.is_empty() {
                let count = self.numbers.len() / self.sources.list().len().max(1);
                let all = rows[0] as usize * count..rows[1] as usize * count;
                all.for_each(|row| ask_for(self.numbers, row * V::LANES, V::LANES));
            }
        }
    }
}

impl<V: Lanes> Row<V> {
    /// `sum + x` in the lanes that have this edge.
    #[inline(always)]
    pub fn add(&self, sum: V, x: V) -> V {
        match self.some {
            None => sum + x,
            Some(mask) => V::select(mask, sum + x, sum),
        }
    }
}

/// What the cells of one part see of all others.
pub struct Links<'a, T> {
    /// `[shared field][place]`: the values of all cells of the space at the start of a step, where a kernel takes all steps by itself.
    pub now: &'a mut [T],
    /// The same at its end: a kernel writes those of its own cells.
    pub next: &'a mut [T],
    /// The tables, one for each relation that leads to the space.
    pub edges: &'a [Rows<'a, T>],
    /// Whether all parts together have more numbers than the caches hold: then it pays to ask for them ahead.
    pub far: bool,
    /// Completes `next` with the values of the other parts. False if one of them has failed: then the run is over.
    pub share: &'a mut dyn FnMut(&mut [T]) -> bool,
}

impl<'a, T> Links<'a, T> {
    /// Calls a kernel with what it needs for one pass: it shares nothing by itself.
    pub fn apart<R>(edges: &'a [Rows<'a, T>], far: bool, kernel: impl FnOnce(Links<'_, T>) -> R) -> R {
        let mut alone = |_: &mut [T]| true;
        kernel(Links { now: &mut [], next: &mut [], edges, far, share: &mut alone })
    }
}
