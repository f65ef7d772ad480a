//! Compiled kernels in this process: the one place where pointers go to a loaded library.
//!
//! In come the path of a library and safe calls; out go the numbers that its kernels computed.
//! Never true here: that a library of another interface version, or for another number type, is called.
#![allow(unsafe_code)]

use crate::runtime::abi::{
    Buffer, CLEAR, DONE, Entry, PANICKED, RawBranches, RawCall, RawRows, RawTie, RawTurn, RawTurns, VERSION, Version,
};
use crate::runtime::branched::Turn;
use crate::runtime::branches::Tie;
use crate::runtime::call::{Call, Spike, Window};
use crate::runtime::machine::{Fault, Kernels};
use crate::runtime::rows::Rows;
use crate::runtime::series::Sample;
use std::ffi::c_void;
use std::fmt;
use std::path::Path;

/// A loaded library whose numbers are `T`.
pub struct Library<T> {
    entry: Entry<T>,
    // Keeps the code that `entry` points to in memory.
    _library: libloading::Library,
}

/// A library cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LoadError {
    /// It cannot be loaded, or lacks an entry point.
    Open(String),
    /// It was made for another interface version.
    Version(u32),
    /// Its numbers have this many bytes.
    RealSize(usize),
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LoadError::Open(why) => write!(f, "it cannot be loaded: {why}"),
            LoadError::Version(found) => write!(f, "it has interface version {found}, not {VERSION}"),
            LoadError::RealSize(size) => write!(f, "its numbers have {size} bytes"),
        }
    }
}

impl<T: 'static> Library<T> {
    /// Loads a library that this compiler made.
    pub fn open(path: &Path) -> Result<Library<T>, LoadError> {
        let broken = |error: libloading::Error| LoadError::Open(error.to_string());
        // SAFETY: the file is a library made from `kernel_files`, whose initialisation does nothing; its content was compared
        // with the checksum that was taken when it was made.
        let library = unsafe { libloading::Library::new(path) }.map_err(broken)?;
        // SAFETY: the symbol has this type in every version of the interface.
        let version = *unsafe { library.get::<Version>(b"neuroc_abi_version\0") }.map_err(broken)?;
        let version = version();
        if version != VERSION {
            return Err(LoadError::Version(version));
        }
        // SAFETY: the symbol has this type in this version of the interface.
        let size = *unsafe { library.get::<extern "C" fn() -> usize>(b"neuroc_real_size\0") }.map_err(broken)?;
        let size = size();
        if size != size_of::<T>() {
            return Err(LoadError::RealSize(size));
        }
        // SAFETY: the symbol has this type in this version of the interface, for numbers of this size.
        let entry = *unsafe { library.get::<Entry<T>>(b"neuroc_turns\0") }.map_err(broken)?;
        Ok(Library { entry, _library: library })
    }
}

fn shared<T, U>(numbers: &[T]) -> Buffer<U> {
    Buffer { start: numbers.as_ptr().cast_mut().cast(), len: numbers.len() }
}

fn exclusive<T>(numbers: &mut [T]) -> Buffer<T> {
    Buffer { start: numbers.as_mut_ptr(), len: numbers.len() }
}

/// Appends the spikes of one call to the vector behind `sink`.
unsafe extern "C" fn collect(sink: *mut c_void, spikes: *const Spike, len: usize) {
    // SAFETY: `run` passes its vector, which nothing else touches during the call.
    let sink = unsafe { &mut *sink.cast::<Vec<Spike>>() };
    // SAFETY: the library passes as many spikes as it says, alive until this returns.
    sink.extend_from_slice(unsafe { std::slice::from_raw_parts(spikes, len) });
}

/// The `share` of a call's links.
type Share<'a, T> = &'a mut dyn FnMut(&mut [T]) -> bool;

/// Calls the function behind `share_with`.
unsafe extern "C" fn share<T>(share_with: *mut c_void, next: *mut T, len: usize) -> i32 {
    // SAFETY: `run` passes a function that lives, and that nothing else touches, during the call.
    let share = unsafe { &mut *share_with.cast::<Share<'_, T>>() };
    // SAFETY: the library passes one of the two buffers that it was given, and does not touch it until this returns.
    i32::from(share(unsafe { std::slice::from_raw_parts_mut(next, len) }))
}

/// What a call of the library points to, in C.
struct Ready<T> {
    series: Vec<Buffer<Sample>>,
    edges: Vec<RawRows<T>>,
    ties: Vec<RawTie>,
}

impl<T> Ready<T> {
    fn new(call: &Call<'_, T>) -> Ready<T> {
        let rows = |rows: &Rows<'_, T>| RawRows {
            values: shared(rows.values),
            first: shared(rows.first),
            full: shared(rows.full),
            degrees: shared(rows.degrees),
            sources: shared(rows.sources.list()),
            below: rows.sources.below(),
            numbers: shared(rows.numbers),
            first_fresh: shared(rows.first_fresh),
            fresh: shared(rows.fresh),
        };
        let tie = |tie: &Tie<'_>| RawTie {
            starts: shared(tie.starts),
            places: shared(tie.places),
            inwards: shared(tie.inwards),
        };
        Ready {
            series: call.series.iter().map(|series| shared(series.samples())).collect(),
            edges: call.links.edges.iter().map(rows).collect(),
            ties: call.branches.ties.iter().map(tie).collect(),
        }
    }

    /// The call itself, with the numbers that maps reach.
    fn call(&self, call: &mut Call<'_, T>, flat: Buffer<T>) -> RawCall<T>
    where
        T: 'static,
    {
        let links = &mut call.links;
        let branches = &call.branches;
        let sink: *mut Vec<Spike> = &mut *call.spikes;
        let share_with: *mut Share<'_, T> = (&raw mut links.share).cast();
        RawCall {
            state: exclusive(call.state),
            cell: exclusive(call.cell),
            output: exclusive(call.output),
            data: shared(call.data),
            temp: exclusive(call.temp),
            uniforms: shared(call.uniforms),
            series: shared(&self.series),
            cells: call.cells,
            sink: sink.cast(),
            emit: collect,
            numbers: shared(call.order.numbers),
            now: exclusive(links.now),
            next: exclusive(links.next),
            edges: shared(&self.edges),
            far: links.far,
            share_with: share_with.cast(),
            share: share::<T>,
            branches: RawBranches {
                flat,
                at: shared(branches.at),
                ties: shared(&self.ties),
                blocks: [branches.blocks.start, branches.blocks.end],
                cells: [branches.cells.start, branches.cells.end],
                side: [branches.side.cells, branches.side.width],
            },
        }
    }
}

impl<T: 'static> Library<T> {
    /// Lets kernels take turns, each for so many steps at once.
    fn turns(&self, turns: &[RawTurn], calls: &[RawCall<T>], window: Window, at_once: u64) -> Result<(), Fault> {
        let turns = RawTurns { turns: shared(turns), calls: shared(calls), window, at_once };
        // SAFETY: every buffer is a live slice (never null, aligned, initialised), the mutable ones exclusive, all borrowed
        // until this returns; `collect` takes `sink`, `share` takes `share_with`.
        match unsafe { (self.entry)(&turns) } {
            DONE => Ok(()),
            PANICKED => Err(Fault::Kernel("it panicked".into())),
            code => Err(Fault::Kernel(format!("it answered {code}"))),
        }
    }
}

impl<T: Send + Sync + 'static> Kernels<T> for Library<T> {
    fn run(&self, kernel: usize, mut call: Call<'_, T>) -> Result<(), Fault> {
        let window = call.window;
        let ready = Ready::new(&call);
        let flat = exclusive(std::mem::take(&mut call.branches.flat));
        let raw = ready.call(&mut call, flat);
        self.turns(&[RawTurn { kernel, call: 0, clear: [0, 0] }], &[raw], window, window.steps)
    }

    fn take_turns(&self, turns: &[Turn], calls: &mut [Call<'_, T>], flat: &mut [T]) -> Result<(), Fault> {
        let Some(window) = calls.first().map(|call| call.window) else { return Ok(()) };
        let ready: Vec<Ready<T>> = calls.iter().map(Ready::new).collect();
        let raw = |(ready, call): (&Ready<T>, &mut Call<'_, T>)| ready.call(call, exclusive(flat));
        let raw: Vec<RawCall<T>> = ready.iter().zip(calls).map(raw).collect();
        let turn = |&turn: &Turn| match turn {
            Turn::Clear { start, end } => RawTurn { kernel: CLEAR, call: 0, clear: [start, end] },
            Turn::Kernel { kernel, call } => RawTurn { kernel, call, clear: [0, 0] },
        };
        self.turns(&turns.iter().map(turn).collect::<Vec<_>>(), &raw, window, 1)
    }
}
