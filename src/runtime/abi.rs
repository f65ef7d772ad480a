//! The binary interface between a compiled kernel library and the program that loads it.
//!
//! In and out go plain C structures with pointers and lengths; the two files that follow the pointers are the generated
//! `ffi_kernels.rs` and the compiler's `engine/load.rs`.
//! Never true here: that a layout changes without a new [`VERSION`].

use super::call::{Cells, Spike, Window};
use super::series::Sample;
use std::ffi::c_void;

/// Changes with every change of a structure or of the meaning of an entry point.
pub const VERSION: u32 = 7;

/// The library ran the kernels.
pub const DONE: i32 = 0;
/// A kernel panicked: a bug of the compiler.
pub const PANICKED: i32 = 1;
/// In place of a kernel: numbers that maps reach begin at 0.
pub const CLEAR: usize = usize::MAX;

/// Numbers that a kernel reads and writes.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Buffer<T> {
    /// The first number; never null.
    pub start: *mut T,
    /// How many.
    pub len: usize,
}

/// Takes the spikes of one run of a kernel: what `RawCall::sink` holds, the first spike and how many there are.
pub type Sink = unsafe extern "C" fn(sink: *mut c_void, spikes: *const Spike, len: usize);

/// Completes the values of shared fields: what `RawCall::share_with` holds, the first value and how many there are. Answers 0
/// if the run is over.
pub type Share<T> = unsafe extern "C" fn(share_with: *mut c_void, next: *mut T, len: usize) -> i32;

/// A [`super::rows::Rows`] in C; only read.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct RawRows<T> {
    /// The values of the sources.
    pub values: Buffer<T>,
    /// The first row of every block, and the number of rows.
    pub first: Buffer<u32>,
    /// How many rows of a block have an edge in every lane.
    pub full: Buffer<u32>,
    /// How many edges every cell has.
    pub degrees: Buffer<T>,
    /// The sources.
    pub sources: Buffer<u32>,
    /// All sources are below this.
    pub below: usize,
    /// What each edge has for itself.
    pub numbers: Buffer<T>,
    /// Where the entries of every block in `fresh` begin.
    pub first_fresh: Buffer<u32>,
    /// Sources that a block is the first in a while to read.
    pub fresh: Buffer<u32>,
}

/// A [`super::branches::Tie`] in C; only read.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct RawTie {
    /// For each block the first of the consecutive places that it leads to.
    pub starts: Buffer<u32>,
    /// For each place the place that it leads to.
    pub places: Buffer<u32>,
    /// The elements of a cell, if it leads to others of them.
    pub inwards: Buffer<u32>,
}

/// A [`super::branches::Branches`] in C.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct RawBranches<T> {
    /// The fields that maps or solutions reach.
    pub flat: Buffer<T>,
    /// Where each of them begins; only read.
    pub at: Buffer<usize>,
    /// The maps; only read.
    pub ties: Buffer<RawTie>,
    /// The first block, and the one behind the last.
    pub blocks: [usize; 2],
    /// The first cell, and the one behind the last.
    pub cells: [usize; 2],
    /// How many cells there are, and how many of them stand side by side.
    pub side: [usize; 2],
}

/// A [`super::call::Call`] in C.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct RawCall<T> {
    /// The states.
    pub state: Buffer<T>,
    /// The numbers per cell.
    pub cell: Buffer<T>,
    /// The recorded quantities.
    pub output: Buffer<T>,
    /// The loaded numbers per cell; only read.
    pub data: Buffer<T>,
    /// What a pass of a step stores for a later one.
    pub temp: Buffer<T>,
    /// The numbers that all cells share; only read.
    pub uniforms: Buffer<f64>,
    /// The functions of time; only read.
    pub series: Buffer<Buffer<Sample>>,
    /// The cells.
    pub cells: Cells,
    /// What `emit` is given.
    pub sink: *mut c_void,
    /// Called at most once, with all spikes.
    pub emit: Sink,
    /// The number of the cell at every place; only read.
    pub numbers: Buffer<u32>,
    /// The values of shared fields at the start of a step.
    pub now: Buffer<T>,
    /// The same at its end.
    pub next: Buffer<T>,
    /// The edges; only read.
    pub edges: Buffer<RawRows<T>>,
    /// Whether it pays to ask for memory ahead.
    pub far: bool,
    /// What `share` is given.
    pub share_with: *mut c_void,
    /// Called with `now` or `next`, as a whole, at the end of every step of a kernel with edges that takes all steps by itself.
    pub share: Share<T>,
    /// What maps reach, where the cells have branches.
    pub branches: RawBranches<T>,
}

/// A [`super::branched::Turn`] in C.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct RawTurn {
    /// The kernel, by its [`Numbering`](super::machine::Numbering), or [`CLEAR`]. One that does not exist does nothing.
    pub kernel: usize,
    /// The number of the call that it is given.
    pub call: usize,
    /// Which of the numbers that maps reach begin at 0: the first one, and the one behind the last.
    pub clear: [usize; 2],
}

/// Kernels that take turns.
#[repr(C)]
pub struct RawTurns<T> {
    /// The turns; only read.
    pub turns: Buffer<RawTurn>,
    /// The calls, whose numbers that maps reach are the same; only read.
    pub calls: Buffer<RawCall<T>>,
    /// All time steps.
    pub window: Window,
    /// How many of them a turn is for.
    pub at_once: u64,
}

/// The type of the entry point `neuroc_abi_version`.
pub type Version = extern "C" fn() -> u32;

/// The type of the entry point `neuroc_turns`: lets kernels take turns until all steps are done.
pub type Entry<T> = unsafe extern "C" fn(turns: *const RawTurns<T>) -> i32;
