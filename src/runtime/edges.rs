//! Edges between cells, of one space or of two, and what travels along them.
//!
//! In come [`Edges`], a list of sources for every target; out go tables that a kernel walks through with one target per lane,
//! and the values of other cells from pass to pass.
//! Never true here: that a sum depends on the number of lanes or of threads: the edges of a target keep their order.

use super::aligned::Aligned;
use super::events::{PerEdge, Sent};
use super::lanes::{IndexTable, Scalar};
use super::machine::Bank;
use super::order::{Arrangement, Order};
use super::rows::{Links, Rows};
use super::threads::{Alone, Barrier};
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Bytes from which on it pays to ask for them ahead. Third-level caches have 32 MiB and more, but others use them, too: with 7
/// and 14 MB (64 000 and 125 000 olive cells in f32) asking costs 6 and 3 % of a step, with 29 MB it saves 28 %, with 110 MB 8 %.
pub const CACHED: usize = 16 << 20;

/// Directed edges, by target.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Edges {
    /// The edges of target `i` are `sources[offsets[i]..offsets[i + 1]]`; one more entry than there are cells.
    pub offsets: Vec<u32>,
    /// The source of every edge.
    pub sources: Vec<u32>,
}

impl Edges {
    /// Do they lead from a space of so many sources to one of so many targets?
    pub fn check(&self, targets: usize, sources: usize) -> Result<(), String> {
        let bounds =
            self.offsets.first() == Some(&0) && self.offsets.last().copied() == u32::try_from(self.sources.len()).ok();
        if self.offsets.len() != targets + 1 || !bounds || self.offsets.windows(2).any(|w| w[0] > w[1]) {
            return Err(format!("the edges are not those of {targets} cells"));
        }
        match self.sources.iter().find(|s| **s as usize >= sources) {
            Some(s) => Err(format!("an edge comes from cell {s}, but there are {sources} cells")),
            None => Ok(()),
        }
    }

    /// The edges of a target, by their numbers; none of a target that does not exist.
    pub fn range(&self, target: usize) -> Range<usize> {
        self.offsets.get(target..target + 2).map_or(0..0, |bounds| bounds[0] as usize..bounds[1] as usize)
    }

    /// The sources of a target.
    pub fn of(&self, target: usize) -> &[u32] {
        &self.sources[self.range(target)]
    }
}

/// Edges between the spaces of a machine.
#[derive(Debug, Clone, PartialEq)]
pub struct Relation {
    /// The number of the space of their sources.
    pub from: usize,
    /// The number of the space of their targets.
    pub to: usize,
    /// The edges, which fit these spaces.
    pub edges: Arc<Edges>,
    /// What each edge has for itself: for each number one for every edge.
    pub numbers: Vec<PerEdge<f64>>,
}

/// A field that edges read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shared {
    /// Where it is stored: states, or temps.
    pub bank: Bank,
    /// Its number there.
    pub slot: usize,
    /// The pass of a step that stores it.
    pub pass: usize,
}

/// The cells of a space as targets.
#[derive(Debug, Clone)]
pub struct Targets<'a> {
    /// The edges that lead to them, one list for each relation.
    pub edges: Vec<&'a Edges>,
    /// Where they stand in memory; in the order of their numbers if there is none.
    pub order: Option<&'a Order>,
}

impl<'a> Targets<'a> {
    /// The cells of a space among others.
    pub fn new(relations: &'a [Relation], space: usize, order: Option<&'a Order>) -> Targets<'a> {
        let edges = relations.iter().filter(|relation| relation.to == space).map(|relation| &*relation.edges).collect();
        Targets { edges, order }
    }

    /// How many places the table of some edges has for `size` cells, those without an edge included.
    pub fn table_places(&self, edges: &Edges, size: usize, lanes: usize) -> usize {
        let degree = |place: usize| edges.of(Order::cell(self.order, place)).len();
        let rows = |block: usize| (block * lanes..(block + 1) * lanes).map(degree).max();
        (0..size.div_ceil(lanes)).filter_map(rows).sum::<usize>() * lanes
    }

    /// How much a block of cells has to do, in about the time of one row of edges.
    fn work(&self, block: usize, lanes: usize) -> usize {
        // A cell's own update takes about as long as this many edges.
        const UPDATE: usize = 4;
        let degree = |edges: &Edges, place: usize| edges.of(Order::cell(self.order, place)).len();
        let rows = |edges: &&Edges| (block * lanes..(block + 1) * lanes).map(|place| degree(edges, place)).max();
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

/// The orders of the cells of spaces, given by their sizes, grids and lanes: those that edges lead to are arranged in memory.
pub fn orders(
    arrangement: Arrangement,
    relations: &[Relation],
    spaces: &[(usize, &[usize], usize)],
) -> Vec<Option<Order>> {
    let order = |(at, &(size, grid, lanes)): (usize, &(usize, &[usize], usize))| {
        let of = |within: bool| -> Vec<&Edges> {
            let here = |relation: &&Relation| relation.to == at && (relation.from == at || !within);
            relations.iter().filter(here).map(|relation| &*relation.edges).collect()
        };
        let all = of(false);
        (!all.is_empty()).then(|| Order::new(arrangement, (&of(true), &all), size, grid, lanes))
    };
    spaces.iter().enumerate().map(order).collect()
}

/// The edges of the targets of one part, for lanes: each row of a block has one source for every lane. A lane that has no more
/// edges names its own cell, or the first cell of another space.
#[derive(Debug)]
pub struct Table<T> {
    first: Vec<u32>,
    full: Vec<u32>,
    degrees: Vec<T>,
    sources: IndexTable,
    numbers: Vec<T>,
    first_fresh: Vec<u32>,
    fresh: Vec<u32>,
}

impl<T: Scalar> Table<T> {
    /// The table of a range of blocks of targets. `orders` are those of the targets and of the sources.
    pub fn new(relation: &Relation, orders: [Option<&Order>; 2], blocks: Range<usize>, lanes: usize) -> Table<T> {
        let (mut first, mut full, mut degrees) = (vec![0], Vec::new(), Vec::new());
        let [targets, of_sources] = orders;
        let edges = |place: usize| relation.edges.of(Order::cell(targets, place));
        let mut rows = 0;
        for block in blocks.clone() {
            let of_block = || (block * lanes..(block + 1) * lanes).map(|place| edges(place).len());
            rows += of_block().max().unwrap_or(0);
            first.push(rows as u32);
            full.push(of_block().min().unwrap_or(0) as u32);
            degrees.extend(of_block().map(|degree| T::from_f64(degree as f64)));
        }
        let mut sources = Vec::with_capacity(rows * lanes);
        let (count, cell) = (relation.numbers.len(), |place: usize| Order::cell(targets, place));
        let mut numbers = vec![T::default(); rows * count * lanes];
        for (block, rows) in blocks.zip(first.windows(2)) {
            let places = block * lanes..(block + 1) * lanes;
            let none = |place: usize| if relation.from == relation.to { place as u32 } else { 0 };
            (rows[0]..rows[1]).for_each(|_| sources.extend(places.clone().map(none)));
            for (lane, place) in places.enumerate() {
                let begin = relation.edges.offsets.get(cell(place)).map_or(0, |&begin| begin as usize);
                for ((row, &source), edge) in (rows[0] as usize..).zip(edges(place)).zip(begin..) {
                    sources[row * lanes + lane] = Order::place(of_sources, source);
                    for (number, of) in relation.numbers.iter().enumerate() {
                        numbers[(row * count + number) * lanes + lane] = T::from_f64(of.of(edge));
                    }
                }
            }
        }
        let (first_fresh, fresh) = fresh(&sources, &first, lanes, 64 / size_of::<T>());
        Table { first, full, degrees, sources: IndexTable::new(sources), numbers, first_fresh, fresh }
    }

    /// The bytes that a step goes through.
    pub fn bytes(&self) -> usize {
        size_of_val(self.sources.all().list()) + size_of_val(&self.degrees[..]) + size_of_val(&self.numbers[..])
    }

    /// What a kernel sees of it, beside the values of the sources.
    pub fn view<'a>(&'a self, values: &'a [T]) -> Rows<'a, T> {
        Rows {
            values,
            first: &self.first,
            full: &self.full,
            degrees: &self.degrees,
            sources: self.sources.all(),
            numbers: &self.numbers,
            first_fresh: &self.first_fresh,
            fresh: &self.fresh,
        }
    }
}

/// The sources that each block reads and those shortly before it did not, one for every line of a cache: where the first of each block
/// are, and all of them.
fn fresh(sources: &[u32], first: &[u32], lanes: usize, line: usize) -> (Vec<u32>, Vec<u32>) {
    /// Blocks after which a line has made room for others.
    const FORGOTTEN: u32 = 128;
    let most = sources.iter().max().map_or(0, |&most| most as usize + 1);
    // The block after the one that read a line last.
    let mut read = vec![0u32; most.div_ceil(line)];
    let (mut first_fresh, mut fresh) = (vec![0], Vec::new());
    for (block, rows) in (1..).zip(first.windows(2)) {
        for &source in &sources[rows[0] as usize * lanes..rows[1] as usize * lanes] {
            let last = &mut read[source as usize / line];
            if *last == 0 || *last + FORGOTTEN < block {
                fresh.push(source);
            }
            *last = block;
        }
        first_fresh.push(fresh.len() as u32);
    }
    fresh.shrink_to_fit();
    (first_fresh, fresh)
}

/// Where the parts of a group of spaces meet after every pass.
pub struct Meeting<T> {
    /// Where they wait for each other.
    pub barrier: Barrier,
    /// For each part its number among those that have cells of the group.
    seats: Vec<Option<usize>>,
    /// `[space of the group][part]`.
    told: Vec<Vec<Told<T>>>,
    /// What the cells of each part have emitted, for even and for odd meetings.
    emitted: Vec<[Alone<Mutex<Vec<Sent>>>; 2]>,
}

/// What a part has to tell the others of a space.
struct Told<T> {
    /// Its places.
    places: Range<usize>,
    /// Those that others need.
    runs: Vec<Range<usize>>,
    /// `[shared field][place]` for even and for odd meetings: while some still read one, others write the other.
    values: [Alone<Mutex<Vec<T>>>; 2],
}

impl<T> Told<T> {
    fn lock(&self, turn: usize) -> MutexGuard<'_, Vec<T>> {
        self.values[turn].0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What one part sees of the shared fields of a space.
pub struct View<T> {
    part: usize,
    lanes: usize,
    shared: Vec<Shared>,
    /// How many values a field has in `now` and `next`: cells, rounded up to whole blocks.
    width: usize,
    /// The places of its own cells.
    places: Range<usize>,
    /// Of which other part it needs which places.
    needs: Vec<(usize, Vec<Range<usize>>)>,
    now: Aligned<T>,
    next: Aligned<T>,
}

/// The places that are marked, as ranges; a gap that is shorter than a line of a cache is copied along.
fn runs(marked: &[bool], places: Range<usize>) -> Vec<Range<usize>> {
    let mut runs: Vec<Range<usize>> = Vec::new();
    for place in places.filter(|place| marked[*place]) {
        match runs.last_mut() {
            Some(run) if place < run.end + 16 => run.end = place + 1,
            Some(_) | None => runs.push(place..place + 1),
        }
    }
    runs
}

impl<T: Scalar> View<T> {
    /// What a part sees of a space. `all` are the places of every part in blocks of `lanes`, `tables` those of the part that lead from the
    /// space; with `twice`, the values are kept as they are and as they become.
    pub fn new<'a>(
        shared: &[Shared],
        part: usize,
        (all, lanes): (&[Range<usize>], usize),
        tables: impl Iterator<Item = &'a Table<T>>,
        twice: bool,
    ) -> View<T>
    where
        T: 'a,
    {
        let width = all.iter().map(|places| places.end).max().unwrap_or(0);
        let mut marked = vec![false; width];
        tables.flat_map(|table| table.sources.all().list()).for_each(|&source| marked[source as usize] = true);
        let needs = all.iter().enumerate().filter(|(other, _)| *other != part);
        let needs = needs.map(|(other, of_other)| (other, runs(&marked, of_other.clone()))).collect();
        View {
            part,
            lanes,
            shared: shared.to_vec(),
            width,
            places: all[part].clone(),
            needs,
            now: Aligned::new(width * shared.len()),
            next: Aligned::new(if twice { width * shared.len() } else { 0 }),
        }
    }

    /// The bytes that one step goes through.
    pub fn bytes(&self) -> usize {
        size_of_val(self.now.get()) + size_of_val(self.next.get())
    }

    /// What is shared now.
    pub fn values(&self) -> &[T] {
        self.now.get()
    }

    /// Does a pass store anything of it?
    pub fn changes_in(&self, pass: usize) -> bool {
        self.shared.iter().any(|shared| shared.pass == pass)
    }

    /// Takes some fields from the buffers of its cells (`[block][slot][lane]`, so many slots).
    pub fn take<'b>(&mut self, which: impl Fn(&Shared) -> bool, bank: impl Fn(Bank) -> (&'b [T], usize))
    where
        T: 'b,
    {
        let View { lanes, shared, width, places, now, .. } = self;
        let fields = now.get_mut().chunks_mut((*width).max(1)).zip(&*shared);
        for (field, shared) in fields.filter(|(_, shared)| which(shared)) {
            let (buffer, slots) = bank(shared.bank);
            let blocks = field[places.clone()].chunks_mut(*lanes).zip(buffer.chunks(slots * *lanes));
            blocks.for_each(|(values, block)| values.copy_from_slice(&block[shared.slot * *lanes..][..*lanes]));
        }
    }

    /// The values at the end of so many steps become those at the start of the next.
    pub fn advance(&mut self, steps: u64) {
        if steps % 2 == 1 {
            std::mem::swap(&mut self.now, &mut self.next);
        }
    }

    /// Calls a kernel that takes all steps by itself with its links.
    pub fn with_links<R>(
        &mut self,
        meeting: &Meeting<T>,
        edges: &[Rows<'_, T>],
        far: bool,
        kernel: impl FnOnce(Links<'_, T>) -> R,
    ) -> R {
        let View { part, width, needs, now, next, .. } = self;
        let mut share = |values: &mut [T]| meeting.share(*part, &mut [Shown { width: *width, needs, values }]);
        kernel(Links { now: now.get_mut(), next: next.get_mut(), edges, far, share: &mut share })
    }
}

/// Values to complete.
struct Shown<'a, T> {
    width: usize,
    needs: &'a [(usize, Vec<Range<usize>>)],
    values: &'a mut [T],
}

impl<T: Scalar> Meeting<T> {
    /// A meeting of all parts, those without cells left out: for each part its views of the spaces of a group.
    pub fn new(parts: &[Vec<&View<T>>]) -> Meeting<T> {
        let mut attending = 0;
        let mut seat = |views: &Vec<&View<T>>| {
            let has_cells = views.iter().any(|view| !view.places.is_empty());
            has_cells.then(|| {
                attending += 1;
                attending - 1
            })
        };
        let seats = parts.iter().map(&mut seat).collect();
        let told = |space: usize, part: usize| {
            let view = parts[part][space];
            let mut needed = vec![false; view.width];
            let of_others = parts.iter().flat_map(|views| &views[space].needs).filter(|(other, _)| *other == part);
            of_others.flat_map(|(_, runs)| runs).for_each(|run| needed[run.clone()].fill(true));
            let runs = runs(&needed, view.places.clone());
            let buffer = || Alone(Mutex::new(vec![T::default(); view.places.len() * view.shared.len()]));
            Told { places: view.places.clone(), runs, values: [buffer(), buffer()] }
        };
        let spaces = 0..parts.first().map_or(0, Vec::len);
        let told = spaces.map(|space| (0..parts.len()).map(|part| told(space, part)).collect()).collect();
        let list = || Alone(Mutex::new(Vec::new()));
        let emitted = parts.iter().map(|_| [list(), list()]).collect();
        Meeting { barrier: Barrier::new(attending), seats, told, emitted }
    }

    /// Completes the views that a part has of the spaces of the group with what the other parts have. False if one of them has failed.
    pub fn exchange(&self, part: usize, views: &mut [&mut View<T>]) -> bool {
        let mut shown: Vec<Shown<'_, T>> = views
            .iter_mut()
            .map(|view| Shown { width: view.width, needs: &view.needs, values: view.now.get_mut() })
            .collect();
        self.share(part, &mut shown)
    }
}

impl<T: Copy> Meeting<T> {
    /// Tells the others what the cells of a part have emitted, and adds what theirs have. False if one of them has failed.
    pub fn tell(&self, part: usize, sent: &mut Vec<Sent>) -> bool {
        let Some(seat) = self.seats[part].filter(|_| self.barrier.members() > 1) else { return true };
        let turn = self.barrier.met(seat) % 2;
        let list = |part: usize| self.emitted[part][turn].0.lock().unwrap_or_else(PoisonError::into_inner);
        list(part).clone_from(sent);
        if !self.barrier.wait(seat) {
            return false;
        }
        for other in (0..self.seats.len()).filter(|other| *other != part && self.seats[*other].is_some()) {
            sent.extend_from_slice(&list(other));
        }
        true
    }

    fn share(&self, part: usize, spaces: &mut [Shown<'_, T>]) -> bool {
        let Some(seat) = self.seats[part].filter(|_| self.barrier.members() > 1) else { return true };
        let turn = self.barrier.met(seat) % 2;
        for (told, shown) in self.told.iter().zip(&*spaces) {
            let told = &told[part];
            let start = told.places.start;
            let fields = told.lock(turn);
            write(fields, told.places.len(), shown, |told_values, field| {
                for run in &told.runs {
                    told_values[run.start - start..run.end - start].copy_from_slice(&field[run.clone()]);
                }
            });
        }
        if !self.barrier.wait(seat) {
            return false;
        }
        for (told, shown) in self.told.iter().zip(spaces) {
            for (other, runs) in shown.needs.iter().filter(|(_, runs)| !runs.is_empty()) {
                let told = &told[*other];
                let start = told.places.start;
                for (field, told_values) in
                    shown.values.chunks_mut(shown.width).zip(told.lock(turn).chunks(told.places.len()))
                {
                    for run in runs {
                        field[run.clone()].copy_from_slice(&told_values[run.start - start..run.end - start]);
                    }
                }
            }
        }
        true
    }
}

/// Goes through what a part tells, field by field; a part without cells tells nothing.
fn write<T>(
    mut told: MutexGuard<'_, Vec<T>>,
    places: usize,
    shown: &Shown<'_, T>,
    mut each: impl FnMut(&mut [T], &[T]),
) {
    if places > 0 {
        told.chunks_mut(places).zip(shown.values.chunks(shown.width)).for_each(|(told, field)| each(told, field));
    }
}

#[cfg(test)]
mod tests {
    use super::super::lanes::{F64x8, Lanes};
    use super::*;

    /// Twenty cells in blocks of eight, of which the second has no edges: what arrives is what the lists say.
    #[test]
    fn arrivals_are_the_values_of_sources_row_by_row() {
        let degree = |cell: usize| if (8..16).contains(&cell) { 0 } else { cell % 5 };
        let of = |cell: usize| (0..degree(cell)).map(move |edge| ((7 * cell + 3 * edge) % 20) as u32);
        let sources: Vec<u32> = (0..20).flat_map(of).collect();
        let offsets = (0..=20).map(|cell| (0..cell).map(degree).sum::<usize>() as u32).collect();
        let edges = Edges { offsets, sources };
        edges.check(20, 20).unwrap();
        let numbers = [1.0, 1000.0].map(|scale| PerEdge::Each((0..23).map(|edge| scale * f64::from(edge)).collect()));
        let relation = Relation { from: 0, to: 0, edges: Arc::new(edges), numbers: numbers.to_vec() };
        let table = Table::<f64>::new(&relation, [None, None], 0..3, 8);
        let fields: [Vec<f64>; 2] = [1.0, -100.0].map(|scale| (0..24).map(|cell| scale * f64::from(cell)).collect());

        let rows = table.view(&[]);
        let mut arrivals = rows.arrivals::<F64x8, 2>([&fields[0], &fields[1]]);
        let (mut found, mut expected) = (Vec::new(), Vec::new());
        for block in 0..3 {
            for row in rows.rows::<F64x8>(block) {
                let values = arrivals.next_row();
                let there = row.add(F64x8::splat(0.0), F64x8::splat(1.0));
                let own = [0, 1].map(|number| rows.number(&row, number, 2));
                let [a, b, there, own, scaled] = [values[0], values[1], there, own[0], own[1]].map(|lanes| {
                    let mut numbers = [0.0; 8];
                    lanes.store(&mut numbers);
                    numbers
                });
                let of_lane = |lane: usize| {
                    assert_eq!(scaled[lane], 1000.0 * own[lane]);
                    (block * 8 + lane, a[lane], b[lane], own[lane])
                };
                found.extend((0..8).filter(|lane| there[*lane] == 1.0).map(of_lane));
            }
        }
        for cell in 0..20 {
            expected.extend(of(cell).map(|source| (cell, f64::from(source), -100.0 * f64::from(source))));
        }
        found.sort_by_key(|at| at.0);
        // Edges are numbered by target.
        let expected: Vec<_> =
            expected.into_iter().zip(0..).map(|((cell, a, b), edge)| (cell, a, b, f64::from(edge))).collect();
        assert_eq!(found, expected);
        assert_eq!(expected.len(), 23);
    }
}
