//! What a kernel is given and what it gives back.
//!
//! In come the blocks of a contiguous range of cells, the numbers that all cells share and a window of time steps; out go new
//! states or outputs in the same blocks, and spikes.
//! Never true here: that a kernel sees cells outside its range, or that the lanes past the last cell mean anything.

use super::lanes::{Lanes, Mask};
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
    pub series: &'a [Series],
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
        use super::lanes::Scalar;
        let first = self.start(block, V::LANES);
        map::<V>(V::splat(V::Scalar::default()), |lane, _| V::Scalar::from_f64((first + lane as u64) as f64))
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

/// `f(lane, x)` for every lane: the slow way, for what has no vector form.
#[inline(always)]
pub fn map<V: Lanes>(x: V, f: impl Fn(usize, V::Scalar) -> V::Scalar) -> V {
    let mut lanes = [V::Scalar::default(); 64];
    x.store(&mut lanes);
    for (lane, x) in lanes[..V::LANES].iter_mut().enumerate() {
        *x = f(lane, *x);
    }
    V::load(&lanes)
}

/// The same truth value in every lane.
#[inline(always)]
pub fn all_lanes<V: Lanes>(truth: bool) -> V::Mask {
    use super::lanes::Scalar;
    let zero = V::splat(V::Scalar::from_f64(0.0));
    V::splat(V::Scalar::from_f64(f64::from(u8::from(truth)))).gt(zero)
}
