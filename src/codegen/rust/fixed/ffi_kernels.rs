//! The entry points that the native engine of neuroc calls: kernels behind plain pointers.
//!
//! In come pointers and lengths; out go the numbers behind them, and spikes through a function of the caller's.
//! Never true here: that a pointer is used after the call, or that a panic leaves the library.
#![allow(unsafe_code)]

use crate::kernels::{KERNELS, Real};
use crate::runtime::abi::{Buffer, CLEAR, DONE, PANICKED, RawCall, RawRows, RawTie, RawTurns, VERSION};
use crate::runtime::branches::{Branches, Side, Tie};
use crate::runtime::call::{Call, Order, Spike, Window};
use crate::runtime::lanes::Indices;
use crate::runtime::rows::{Links, Rows};
use crate::runtime::series::Series;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// The version of the structures that [`neuroc_turns`] understands.
#[unsafe(no_mangle)]
pub extern "C" fn neuroc_abi_version() -> u32 {
    VERSION
}

/// The bytes of one number of a state: 8 or 4.
#[unsafe(no_mangle)]
pub extern "C" fn neuroc_real_size() -> usize {
    size_of::<Real>()
}

/// Lets kernels take turns until all steps are done; their numbers count through the rows of [`KERNELS`].
///
/// # Safety
/// `turns` points to [`RawTurns`] of this library's number type, whose turns name calls that there are. Each buffer of these starts at an aligned address that is
/// not null and has `len` initialised elements, which nothing else touches until this function returns, nor another buffer but for the numbers that
/// maps reach, which all calls share; the samples of the series and the buffers of the edges likewise, and all sources are below the bound that is
/// given with them. `emit` may be called with `sink`, `share` with `share_with` and the buffer `now` or `next`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn neuroc_turns(turns: *const RawTurns<Real>) -> i32 {
    let ran = catch_unwind(AssertUnwindSafe(|| {
        // SAFETY: the caller vouches for the pointer.
        let raw = unsafe { &*turns };
        // SAFETY: the caller vouches for the elements of this and of the following buffers, and they do not overlap.
        let (turns, calls) = unsafe { (slice(raw.turns), slice(raw.calls)) };
        // SAFETY: see above.
        let mut ready: Vec<Ready<'_>> = calls.iter().map(|call| unsafe { Ready::new(call) }).collect();
        let end = raw.window.first_step + raw.window.steps;
        for first_step in (raw.window.first_step..end).step_by(raw.at_once.max(1) as usize) {
            let window = Window { first_step, steps: raw.at_once.min(end - first_step), ..raw.window };
            for turn in turns {
                if turn.kernel == CLEAR {
                    // SAFETY: see above.
                    let flat = unsafe { slice_mut(calls[turn.call].branches.flat) };
                    flat[turn.clear[0]..turn.clear[1]].fill(0.0);
                } else if let Some(Some(run)) = KERNELS.as_flattened().get(turn.kernel) {
                    // SAFETY: see above; the numbers that maps reach are seen by one kernel at a time.
                    unsafe { ready[turn.call].run(*run, &calls[turn.call], window) };
                }
            }
        }
        for (raw, Ready { spikes, .. }) in calls.iter().zip(&ready).filter(|(_, ready)| !ready.spikes.is_empty()) {
            // SAFETY: the caller allows this call; the spikes live until it returns.
            unsafe { (raw.emit)(raw.sink, spikes.as_ptr(), spikes.len()) };
        }
    }));
    if ran.is_ok() { DONE } else { PANICKED }
}

/// What all turns of a call need.
struct Ready<'a> {
    series: Vec<Series<'a>>,
    edges: Vec<Rows<'a, Real>>,
    ties: Vec<Tie<'a>>,
    spikes: Vec<Spike>,
}

impl<'a> Ready<'a> {
    /// # Safety
    /// As for [`neuroc_turns`].
    unsafe fn new(raw: &'a RawCall<Real>) -> Ready<'a> {
        // SAFETY: the caller vouches for the elements of all buffers.
        let (series, edges, ties) = unsafe { (slice(raw.series), slice(raw.edges), slice(raw.branches.ties)) };
        let rows = |rows: &RawRows<Real>| Rows {
            // SAFETY: see above.
            values: unsafe { slice(rows.values) },
            // SAFETY: see above.
            first: unsafe { slice(rows.first) },
            // SAFETY: see above.
            full: unsafe { slice(rows.full) },
            // SAFETY: see above.
            degrees: unsafe { slice(rows.degrees) },
            // SAFETY: see above.
            sources: unsafe { Indices::known(slice(rows.sources), rows.below) },
            // SAFETY: see above.
            numbers: unsafe { slice(rows.numbers) },
            // SAFETY: see above.
            first_fresh: unsafe { slice(rows.first_fresh) },
            // SAFETY: see above.
            fresh: unsafe { slice(rows.fresh) },
        };
        // SAFETY: see above.
        let tie = |tie: &RawTie| unsafe {
            Tie { starts: slice(tie.starts), places: slice(tie.places), inwards: slice(tie.inwards) }
        };
        Ready {
            // SAFETY: see above.
            series: series.iter().map(|samples| Series::new(unsafe { slice(*samples) })).collect(),
            edges: edges.iter().map(rows).collect(),
            ties: ties.iter().map(tie).collect(),
            spikes: Vec::new(),
        }
    }

    /// Runs a kernel.
    ///
    /// # Safety
    /// As for [`neuroc_turns`].
    unsafe fn run(&mut self, kernel: fn(Call<'_, Real>), raw: &RawCall<Real>, window: Window) {
        // SAFETY: the caller allows this call; the kernel passes `now` or `next` as a whole.
        let mut share = |next: &mut [Real]| unsafe { (raw.share)(raw.share_with, next.as_mut_ptr(), next.len()) != 0 };
        let branches = &raw.branches;
        kernel(Call {
            // SAFETY: the caller vouches for the elements of this and of the following buffers.
            state: unsafe { slice_mut(raw.state) },
            // SAFETY: see above.
            cell: unsafe { slice_mut(raw.cell) },
            // SAFETY: see above.
            output: unsafe { slice_mut(raw.output) },
            // SAFETY: see above.
            data: unsafe { slice(raw.data) },
            // SAFETY: see above.
            temp: unsafe { slice_mut(raw.temp) },
            // SAFETY: see above.
            uniforms: unsafe { slice(raw.uniforms) },
            series: &self.series,
            window,
            cells: raw.cells,
            spikes: &mut self.spikes,
            // SAFETY: see above.
            order: Order { numbers: unsafe { slice(raw.numbers) } },
            links: Links {
                // SAFETY: see above.
                now: unsafe { slice_mut(raw.now) },
                // SAFETY: see above.
                next: unsafe { slice_mut(raw.next) },
                edges: &self.edges,
                far: raw.far,
                share: &mut share,
            },
            branches: Branches {
                // SAFETY: see above.
                flat: unsafe { slice_mut(branches.flat) },
                // SAFETY: see above.
                at: unsafe { slice(branches.at) },
                ties: &self.ties,
                blocks: branches.blocks[0]..branches.blocks[1],
                cells: branches.cells[0]..branches.cells[1],
                side: Side { cells: branches.side[0], width: branches.side[1] },
            },
        });
    }
}

/// # Safety
/// As for [`neuroc_turns`].
unsafe fn slice<'a, T>(buffer: Buffer<T>) -> &'a [T] {
    // SAFETY: the caller vouches for it.
    unsafe { std::slice::from_raw_parts(buffer.start, buffer.len) }
}

/// # Safety
/// As for [`neuroc_turns`].
unsafe fn slice_mut<'a, T>(buffer: Buffer<T>) -> &'a mut [T] {
    // SAFETY: the caller vouches for it.
    unsafe { std::slice::from_raw_parts_mut(buffer.start, buffer.len) }
}
