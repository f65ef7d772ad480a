//! What a kernel is given and what it gives back.
//!
//! In come the blocks of a contiguous range of cells, the numbers that all cells share and a window of time steps; out go new
//! states or outputs in the same blocks, and spikes.
//! Never true here: that a kernel sees cells outside its range but through its links, or that the lanes past the last cell mean anything.

use super::branches::Branches;
use super::elementwise::map;
use super::lanes::{F64x8, Lanes, Mask, Scalar};
use super::rng::Draw;
use super::rows::Links;
use super::series::Series;
use std::array::from_fn;

/// Everything that one run of a kernel reads and writes.
///
/// A buffer holds `[block][slot][lane]`: for each block of cells every slot (a field), for each slot one number per cell.
pub struct Call<'a, T> {
    /// The states.
    pub state: &'a mut [T],
    /// The numbers per cell that only `init` writes.
    pub cell: &'a mut [T],
    /// The recorded quantities.
    pub output: &'a mut [T],
    /// The numbers per cell that were loaded from files.
    pub data: &'a [T],
    /// What a pass of a step stores for a later one.
    pub temp: &'a mut [T],
    /// The numbers that all cells share.
    pub uniforms: &'a [f64],
    /// The functions of time.
    pub series: &'a [Series<'a>],
    /// The time steps.
    pub window: Window,
    /// The cells.
    pub cells: Cells,
    /// Spikes are appended here.
    pub spikes: &'a mut Vec<Spike>,
    /// Which cells they are, where the space has edges.
    pub order: Order<'a>,
    /// What edges connect the cells to; nothing where there are none.
    pub links: Links<'a, T>,
    /// What maps reach, where the cells have branches.
    pub branches: Branches<'a, T>,
}

impl<T> Call<'_, T> {
    /// The same call for one of its steps, with the numbers that maps reach.
    pub fn turn<'c>(&'c mut self, first_step: u64, flat: &'c mut [T]) -> Call<'c, T> {
        let Branches { at, ties, ref blocks, ref cells, side, .. } = self.branches;
        Call {
            state: self.state,
            cell: self.cell,
            output: self.output,
            data: self.data,
            temp: self.temp,
            uniforms: self.uniforms,
            series: self.series,
            window: Window { first_step, steps: 1, ..self.window },
            cells: self.cells,
            spikes: self.spikes,
            order: self.order,
            links: Links {
                now: self.links.now,
                next: self.links.next,
                edges: self.links.edges,
                far: self.links.far,
                share: self.links.share,
            },
            branches: Branches { flat, at, ties, blocks: blocks.clone(), cells: cells.clone(), side },
        }
    }
}

/// Consecutive time steps of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Window {
    /// The first step, counted from the start of the run.
    pub first_step: u64,
    /// How many steps.
    pub steps: u64,
    /// The key of all random numbers.
    pub seed: u64,
}

/// Consecutive places of a space; `first` starts a block. Where the space has no edges, a cell's place is its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Cells {
    /// The first place.
    pub first: u64,
    /// How many cells.
    pub count: u64,
}

/// A spike as a kernel reports it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(C)]
pub struct Spike {
    /// The step in which it happened.
    pub step: u64,
    /// The event field: its number among those of the space.
    pub event: u64,
    /// The cell: its place, counted from the first of the space.
    pub cell: u64,
}

/// The number of the cell at every place of a call, in whole blocks; see [`super::order`].
#[derive(Clone, Copy, Debug)]
pub struct Order<'a> {
    /// The numbers; none where the space has no edges.
    pub numbers: &'a [u32],
}

/// What knows the numbers of the cells of a block, and what belongs to them.
pub trait Numbering: Copy {
    /// The number of the cell in a lane of a block, which counts from the first of the call.
    fn number(self, block: usize, lanes: usize, lane: usize) -> u64;

    /// The numbers of the cells of a block.
    #[inline(always)]
    fn index<V: Lanes>(self, block: usize) -> V {
        let number = |lane, _| V::Scalar::from_f64(self.number(block, V::LANES, lane) as f64);
        map::<V>(V::splat(V::Scalar::default()), number)
    }

    /// The uniform draws of a block's cells.
    #[inline(always)]
    fn uniform<V: Lanes>(self, block: usize, draw: Draw, counter: u64) -> V {
        self.draws(block, |two| draw.uniform_lanes(two, counter), |one| draw.uniform_lanes(one, counter))
    }

    /// The normal draws of a block's cells.
    #[inline(always)]
    fn normal<V: Lanes>(self, block: usize, draw: Draw, counter: u64) -> V {
        self.draws(block, |two| draw.normal_lanes(two, counter), |one| draw.normal_lanes(one, counter))
    }

    /// The exponential draws of a block's cells.
    #[inline(always)]
    fn exponential<V: Lanes>(self, block: usize, draw: Draw, counter: u64) -> V {
        self.draws(block, |two| draw.exponential_lanes(two, counter), |one| draw.exponential_lanes(one, counter))
    }

    /// [`uniform`](Numbering::uniform) with a counter per cell.
    #[inline(always)]
    fn uniform_each<V: Lanes>(self, block: usize, draw: Draw, counter: V) -> V {
        self.draw_each(block, counter, |cell, counter| draw.uniform(cell, counter))
    }

    /// [`normal`](Numbering::normal) with a counter per cell.
    #[inline(always)]
    fn normal_each<V: Lanes>(self, block: usize, draw: Draw, counter: V) -> V {
        self.draw_each(block, counter, |cell, counter| draw.normal(cell, counter))
    }

    /// [`exponential`](Numbering::exponential) with a counter per cell.
    #[inline(always)]
    fn exponential_each<V: Lanes>(self, block: usize, draw: Draw, counter: V) -> V {
        self.draw_each(block, counter, |cell, counter| draw.exponential(cell, counter))
    }

    /// Draws in `f64` for eight lanes at a time, rounded once: the same numbers in both precisions. Two eights at a time, where there are two.
    #[inline(always)]
    fn draws<V: Lanes>(
        self,
        block: usize,
        two: impl Fn([[u32; 8]; 2]) -> [F64x8; 2],
        one: impl Fn([[u32; 8]; 1]) -> [F64x8; 1],
    ) -> V {
        let mut exact = [0.0; 64];
        let eight = |first| from_fn(|lane| self.number(block, V::LANES, first + lane) as u32);
        let (pairs, last) = exact[..V::LANES].as_chunks_mut::<16>();
        for (pair, first) in pairs.iter_mut().zip((0..).step_by(16)) {
            let [left, right] = two([eight(first), eight(first + 8)]);
            left.store(&mut pair[..8]);
            right.store(&mut pair[8..]);
        }
        if !last.is_empty() {
            one([eight(V::LANES - 8)])[0].store(last);
        }
        map::<V>(V::splat(V::Scalar::default()), |lane, _| V::Scalar::from_f64(exact[lane]))
    }

    /// Draws with a counter per cell.
    #[inline(always)]
    fn draw_each<V: Lanes>(self, block: usize, counter: V, of: impl Fn(u32, u64) -> f64) -> V {
        let number = |lane| self.number(block, V::LANES, lane) as u32;
        map(counter, |lane, counter| V::Scalar::from_f64(of(number(lane), counter.to_f64() as u64)))
    }
}

impl Numbering for Cells {
    #[inline(always)]
    fn number(self, block: usize, lanes: usize, lane: usize) -> u64 {
        self.start(block, lanes) + lane as u64
    }
}

impl Numbering for Order<'_> {
    #[inline(always)]
    fn number(self, block: usize, lanes: usize, lane: usize) -> u64 {
        u64::from(self.numbers[block * lanes + lane])
    }
}

impl Cells {
    /// How many blocks of `lanes` cells there are; the last one may be partly filled.
    pub fn blocks(self, lanes: usize) -> usize {
        (self.count as usize).div_ceil(lanes)
    }

    /// The first cell of a block.
    pub fn start(self, block: usize, lanes: usize) -> u64 {
        self.first + (block * lanes) as u64
    }

    /// Appends a spike for every cell of a block where the mask is true; lanes past the last cell are left out.
    #[cold]
    pub fn emit<M: Mask>(self, spikes: &mut Vec<Spike>, block: usize, step: u64, event: u64, mask: M) {
        let first = self.start(block, M::LANES);
        for lane in 0..M::LANES as u64 {
            if mask.bits() >> lane & 1 == 1 && first + lane < self.first + self.count {
                spikes.push(Spike { step, event, cell: first + lane });
            }
        }
    }
}
