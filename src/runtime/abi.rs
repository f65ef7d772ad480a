//! The binary interface between a compiled kernel library and the program that loads it.
//!
//! In and out go plain C structures with pointers and lengths; the two files that follow the pointers are the generated
//! `ffi_kernels.rs` and the compiler's `engine/load.rs`.
//! Never true here: that a layout changes without a new [`VERSION`].

use super::call::{Cells, Spike, Window};
use super::series::Sample;
use std::ffi::c_void;

/// Changes with every change of a structure or of the meaning of an entry point.
pub const VERSION: u32 = 1;

/// The library ran the kernel.
pub const DONE: i32 = 0;
/// The library has no such kernel.
pub const NO_KERNEL: i32 = 1;
/// The kernel panicked: a bug of the compiler.
pub const PANICKED: i32 = 2;

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

/// A [`super::call::Call`] in C.
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
    /// The numbers that all cells share; only read.
    pub uniforms: Buffer<f64>,
    /// The functions of time; only read.
    pub series: Buffer<Buffer<Sample>>,
    /// The time steps.
    pub window: Window,
    /// The cells.
    pub cells: Cells,
    /// What `emit` is given.
    pub sink: *mut c_void,
    /// Called at most once, with all spikes.
    pub emit: Sink,
}

/// The type of the entry point `neuroc_abi_version`.
pub type Version = extern "C" fn() -> u32;

/// The type of the entry point `neuroc_kernel`: runs one kernel (`3 * space + role`; init, step, observe) once.
pub type Entry<T> = unsafe extern "C" fn(kernel: usize, call: *const RawCall<T>) -> i32;
