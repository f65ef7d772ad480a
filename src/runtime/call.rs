//! What a kernel is given and what it gives back.
//!
//! In come the blocks of a contiguous range of cells, the numbers that all cells share and a window of time steps; out go new
//! states or outputs in the same blocks, and spikes.
//! Never true here: that a kernel sees cells outside its range, or that the lanes past the last cell mean anything.

use super::elementwise::map;
use super::lanes::{F64x8, Lanes, Mask, Scalar};
use super::rng::Draw;
use super::series::Series;

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

/// Consecutive cells of a space; `first` starts a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Cells {
    /// The first cell.
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
    /// The cell, counted from the first of the space.
    pub cell: u64,
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

    /// The numbers of the cells of a block.
    #[inline(always)]
    pub fn index<V: Lanes>(self, block: usize) -> V {
        let first = self.start(block, V::LANES);
        map::<V>(V::splat(V::Scalar::default()), |lane, _| V::Scalar::from_f64((first + lane as u64) as f64))
    }

    /// The uniform draws of a block's cells.
    #[inline(always)]
    pub fn uniform<V: Lanes>(self, block: usize, draw: Draw, counter: u64) -> V {
        self.draws(block, |first| draw.uniform_lanes(first, counter))
    }

    /// The normal draws of a block's cells.
    #[inline(always)]
    pub fn normal<V: Lanes>(self, block: usize, draw: Draw, counter: u64) -> V {
        self.draws(block, |first| draw.normal_lanes(first, counter))
    }

    /// The exponential draws of a block's cells.
    #[inline(always)]
    pub fn exponential<V: Lanes>(self, block: usize, draw: Draw, counter: u64) -> V {
        self.draws(block, |first| draw.exponential_lanes(first, counter))
    }

    /// [`uniform`](Cells::uniform) with a counter per cell.
    #[inline(always)]
    pub fn uniform_each<V: Lanes>(self, block: usize, draw: Draw, counter: V) -> V {
        self.draw_each(block, counter, |cell, counter| draw.uniform(cell, counter))
    }

    /// [`normal`](Cells::normal) with a counter per cell.
    #[inline(always)]
    pub fn normal_each<V: Lanes>(self, block: usize, draw: Draw, counter: V) -> V {
        self.draw_each(block, counter, |cell, counter| draw.normal(cell, counter))
    }

    /// [`exponential`](Cells::exponential) with a counter per cell.
    #[inline(always)]
    pub fn exponential_each<V: Lanes>(self, block: usize, draw: Draw, counter: V) -> V {
        self.draw_each(block, counter, |cell, counter| draw.exponential(cell, counter))
    }

    /// Draws in `f64`, rounded once: the same numbers in both precisions.
    #[inline(always)]
    fn draws<V: Lanes>(self, block: usize, of: impl Fn(u32) -> F64x8) -> V {
        let first = self.start(block, V::LANES) as u32;
        let mut exact = [0.0; 64];
        for (eight, first) in exact[..V::LANES].chunks_exact_mut(8).zip((first..).step_by(8)) {
            of(first).store(eight);
        }
        map::<V>(V::splat(V::Scalar::default()), |lane, _| V::Scalar::from_f64(exact[lane]))
    }

    #[inline(always)]
    fn draw_each<V: Lanes>(self, block: usize, counter: V, of: impl Fn(u32, u64) -> f64) -> V {
        let first = self.start(block, V::LANES) as u32;
        map(counter, |lane, counter| V::Scalar::from_f64(of(first.wrapping_add(lane as u32), counter.to_f64() as u64)))
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
