//! Edges between the cells of a space, and what travels along them.
//!
//! In come [`Edges`], a list of sources for every target; out go tables that a kernel walks through with one target per lane,
//! and the values of other cells from step to step.
//! Never true here: that a sum depends on the number of lanes or of threads: the edges of a target keep their order.

use super::lanes::{Lanes, Scalar};
use super::threads::Barrier;
use std::ops::Range;
use std::sync::{Mutex, PoisonError};

/// Directed edges within a space, by target.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Edges {
    /// The edges of target `i` are `sources[offsets[i]..offsets[i + 1]]`; one more entry than there are cells.
    pub offsets: Vec<u32>,
    /// The source of every edge.
    pub sources: Vec<u32>,
}

impl Edges {
    /// Do they fit a space of so many cells?
    pub fn check(&self, cells: usize) -> Result<(), String> {
        let bounds =
            self.offsets.first() == Some(&0) && self.offsets.last().copied() == u32::try_from(self.sources.len()).ok();
        if self.offsets.len() != cells + 1 || !bounds || self.offsets.windows(2).any(|w| w[0] > w[1]) {
            return Err(format!("the edges are not those of {cells} cells"));
        }
        match self.sources.iter().find(|s| **s as usize >= cells) {
            Some(s) => Err(format!("an edge comes from cell {s}, but there are {cells} cells")),
            None => Ok(()),
        }
    }

    /// The sources of a target; none of a target that does not exist.
    fn of(&self, target: usize) -> &[u32] {
        match self.offsets.get(target..target + 2) {
            Some(bounds) => &self.sources[bounds[0] as usize..bounds[1] as usize],
            None => &[],
        }
    }
}

/// What connects the cells of a space.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Network {
    /// Its edges, one for each edges field; each of them fits the space.
    pub edges: Vec<Edges>,
    /// The state slots whose values travel along them.
    pub exchanged: Vec<usize>,
}

impl Network {
    /// How much a block of cells has to do, in about the time of one row of edges.
    fn work(&self, block: usize, lanes: usize) -> usize {
        // A cell's own update takes about as long as this many edges.
        const UPDATE: usize = 4;
        let rows = |edges: &Edges| (block * lanes..(block + 1) * lanes).map(|cell| edges.of(cell).len()).max();
        UPDATE + self.edges.iter().filter_map(rows).sum::<usize>()
    }

    /// Cuts blocks of cells into parts of about equal work: the first block of each part, and the number of blocks.
    pub fn cuts(&self, blocks: usize, lanes: usize, parts: usize) -> Vec<usize> {
        if self.edges.is_empty() {
            return (0..=parts).map(|part| blocks * part / parts).collect();
        }
        let work: Vec<usize> = (0..blocks).map(|block| self.work(block, lanes)).collect();
        let total: usize = work.iter().sum();
        let (mut cuts, mut done) = (vec![0], 0);
        for (block, work) in work.into_iter().enumerate() {
            // A block goes to the part in which its middle lies.
            while cuts.len() < parts && (2 * done + work) * parts >= 2 * total * cuts.len() {
                cuts.push(block);
            }
            done += work;
        }
        cuts.resize(parts, blocks);
        cuts.push(blocks);
        cuts
    }
}

/// The edges of the targets of one part, for lanes: each row of a block has one source for every lane. A lane that has no more
/// edges names its own cell.
#[derive(Debug)]
pub struct Table<T> {
    first: Vec<u32>,
    full: Vec<u32>,
    degrees: Vec<T>,
    sources: Vec<u32>,
}

impl<T: Scalar> Table<T> {
    /// The table of a range of blocks.
    pub fn new(edges: &Edges, blocks: Range<usize>, lanes: usize) -> Table<T> {
        let mut table = Table { first: vec![0], full: Vec::new(), degrees: Vec::new(), sources: Vec::new() };
        for block in blocks {
            let cells = block * lanes..(block + 1) * lanes;
            let degrees = || cells.clone().map(|cell| edges.of(cell).len());
            let rows = degrees().max().unwrap_or(0);
            for row in 0..rows {
                let source = |cell: usize| edges.of(cell).get(row).copied().unwrap_or(cell as u32);
                table.sources.extend(cells.clone().map(source));
            }
            table.full.push(degrees().min().unwrap_or(0) as u32);
            table.degrees.extend(degrees().map(|degree| T::from_f64(degree as f64)));
            table.first.push((table.sources.len() / lanes) as u32);
        }
        table
    }

    /// What a kernel sees of it.
    pub fn view(&self) -> Rows<'_, T> {
        Rows { first: &self.first, full: &self.full, degrees: &self.degrees, sources: &self.sources }
    }
}

/// The edges of the targets of one part, by block and row.
#[derive(Clone, Copy, Debug)]
pub struct Rows<'a, T> {
    /// The first row of every block, and the number of rows.
    pub first: &'a [u32],
    /// How many rows of a block have an edge in every lane.
    pub full: &'a [u32],
    /// How many edges every cell has.
    pub degrees: &'a [T],
    /// `[row][lane]`: the sources.
    pub sources: &'a [u32],
}

/// One edge of every cell of a block.
#[derive(Clone, Copy)]
pub struct Row<'a, V: Lanes> {
    /// The source of every lane's edge.
    pub sources: &'a [u32],
    /// The lanes that have this edge; none if all of them have.
    some: Option<V::Mask>,
}

impl<'a, T: Scalar> Rows<'a, T> {
    /// The rows of a block.
    #[inline(always)]
    pub fn rows<V: Lanes<Scalar = T>>(self, block: usize) -> impl Iterator<Item = Row<'a, V>> {
        let rows = self.first[block] as usize..self.first[block + 1] as usize;
        let full = self.full[block] as usize;
        let degrees = V::load(&self.degrees[block * V::LANES..]);
        let sources = self.sources[rows.start * V::LANES..rows.end * V::LANES].chunks_exact(V::LANES);
        sources.enumerate().map(move |(row, sources)| {
            let some = (row >= full).then_some(V::splat(T::from_f64(row as f64)).lt(degrees));
            Row { sources, some }
        })
    }
}

impl<V: Lanes> Row<'_, V> {
    /// `sum + x` in the lanes that have this edge.
    #[inline(always)]
    pub fn add(&self, sum: V, x: V) -> V {
        match self.some {
            None => sum + x,
            Some(mask) => V::select(mask, sum + x, sum),
        }
    }
}

/// What the cells of one part see of all others while a kernel takes its steps.
pub struct Links<'a, T> {
    /// `[exchanged field][cell]`: the values of all cells at the start of a step.
    pub now: &'a mut [T],
    /// The same at its end: a kernel writes those of its own cells.
    pub next: &'a mut [T],
    /// The tables, one for each edges field.
    pub edges: &'a [Rows<'a, T>],
    /// Completes `next` with the values of the other parts. False if one of them has failed: then the run is over.
    pub share: &'a mut dyn FnMut(&mut [T]) -> bool,
}

/// Where the parts of a space meet after every step.
pub struct Meeting<T> {
    /// Where they wait for each other.
    pub barrier: Barrier,
    /// What each part has to tell, for even and for odd meetings: while some still read one, others write the other.
    told: Vec<[Mutex<Vec<T>>; 2]>,
}

impl<T: Copy + Default> Meeting<T> {
    /// A meeting of parts, those without cells left out: `cells` are what each of them has, as places in `width` values.
    pub fn new(network: &Network, cells: &[Range<usize>]) -> Meeting<T> {
        let told = |cells: &Range<usize>| {
            let buffer = || Mutex::new(vec![T::default(); cells.len() * network.exchanged.len()]);
            [buffer(), buffer()]
        };
        let members = cells.iter().filter(|cells| !cells.is_empty()).count();
        Meeting { barrier: Barrier::new(members), told: cells.iter().map(told).collect() }
    }
}

/// One part's side of a [`Meeting`].
pub struct Member<T> {
    part: usize,
    lanes: usize,
    exchanged: Vec<usize>,
    /// How many values a field has in `now` and `next`: cells, rounded up to whole blocks.
    width: usize,
    /// Its own cells.
    cells: Range<usize>,
    /// Of which other part it needs which cells, besides the first cell of that part.
    needs: Vec<(usize, usize, Range<usize>)>,
    odd: bool,
    tables: Vec<Table<T>>,
    now: Vec<T>,
    next: Vec<T>,
}

impl<T: Scalar> Member<T> {
    /// The side of a part. `all` are the cells of every part, in whole blocks.
    pub fn new(network: &Network, part: usize, all: &[Range<usize>], lanes: usize) -> Member<T> {
        let cells = all[part].clone();
        let width = all.iter().map(|cells| cells.end).max().unwrap_or(0);
        let blocks = cells.start / lanes..cells.end / lanes;
        let table = |edges: &Edges| Table::<T>::new(edges, blocks.clone(), lanes);
        let tables: Vec<Table<T>> = network.edges.iter().map(table).collect();
        let need = |(other, of_other): (usize, &Range<usize>)| {
            let sources = tables.iter().flat_map(|table| &table.sources).map(|&source| source as usize);
            let (low, high) = sources
                .filter(|source| of_other.contains(source))
                .fold((usize::MAX, 0), |(low, high), source| (low.min(source), high.max(source + 1)));
            (other != part && low < high).then_some((other, of_other.start, low..high))
        };
        let needs = all.iter().enumerate().filter_map(need).collect();
        let buffer = || vec![T::default(); width * network.exchanged.len()];
        let exchanged = network.exchanged.clone();
        Member { part, lanes, exchanged, width, cells, needs, odd: false, now: buffer(), next: buffer(), tables }
    }

    /// Takes the values of exchanged fields from the states (`[block][slot][lane]`, so many slots) of its cells, and from the
    /// other members.
    pub fn refill(&mut self, state: &[T], slots: usize, meeting: &Meeting<T>) {
        let Member { part, lanes, exchanged, width, cells, needs, odd, now, .. } = self;
        for (field, &slot) in now.chunks_mut((*width).max(1)).zip(&*exchanged) {
            let blocks = field[cells.clone()].chunks_mut(*lanes).zip(state.chunks(slots * *lanes));
            blocks.for_each(|(values, block)| values.copy_from_slice(&block[slot * *lanes..][..*lanes]));
        }
        if !exchanged.is_empty() {
            meeting.share(*part, *width, cells, needs, odd, now);
        }
    }

    /// The values at the end of so many steps become those at the start of the next.
    pub fn advance(&mut self, steps: u64) {
        if steps % 2 == 1 {
            std::mem::swap(&mut self.now, &mut self.next);
        }
    }

    /// Calls a kernel with its links.
    pub fn with_links<R>(&mut self, meeting: &Meeting<T>, kernel: impl FnOnce(Links<'_, T>) -> R) -> R {
        let Member { part, width, cells, needs, odd, tables, now, next, .. } = self;
        let edges: Vec<Rows<'_, T>> = tables.iter().map(Table::view).collect();
        let mut share = |values: &mut [T]| meeting.share(*part, *width, cells, needs, odd, values);
        kernel(Links { now, next, edges: &edges, share: &mut share })
    }
}

impl<T: Copy> Meeting<T> {
    fn share(
        &self,
        part: usize,
        width: usize,
        cells: &Range<usize>,
        needs: &[(usize, usize, Range<usize>)],
        odd: &mut bool,
        values: &mut [T],
    ) -> bool {
        if self.barrier.members() < 2 {
            return true;
        }
        let lock = |part: usize| self.told[part][usize::from(*odd)].lock().unwrap_or_else(PoisonError::into_inner);
        {
            let mut told = lock(part);
            for (told, field) in told.chunks_mut(cells.len()).zip(values.chunks(width)) {
                told.copy_from_slice(&field[cells.clone()]);
            }
        }
        if !self.barrier.wait() {
            return false;
        }
        for (other, start, range) in needs {
            let told = lock(*other);
            let size = told.len() / (values.len() / width);
            for (field, told) in values.chunks_mut(width).zip(told.chunks(size)) {
                field[range.clone()].copy_from_slice(&told[range.start - start..range.end - start]);
            }
        }
        *odd = !*odd;
        true
    }
}
