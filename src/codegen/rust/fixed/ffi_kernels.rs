//! The entry points that the native engine of neuroc calls: kernels behind plain pointers.
//!
//! In come pointers and lengths; out go the numbers behind them, and spikes through a function of the caller's.
//! Never true here: that a pointer is used after the call, or that a panic leaves the library.
#![allow(unsafe_code)]

use crate::kernels::{KERNELS, Real};
use crate::runtime::abi::{Buffer, DONE, NO_KERNEL, PANICKED, RawCall, RawRows, RawTie, VERSION};
use crate::runtime::branches::{Branches, Side, Tie};
use crate::runtime::call::{Call, Order};
use crate::runtime::edges::{Links, Rows};
use crate::runtime::lanes::Indices;
use crate::runtime::series::Series;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// The version of the structures that [`neuroc_kernel`] understands.
#[unsafe(no_mangle)]
pub extern "C" fn neuroc_abi_version() -> u32 {
    VERSION
}

/// The bytes of one number of a state: 8 or 4.
#[unsafe(no_mangle)]
pub extern "C" fn neuroc_real_size() -> usize {
    size_of::<Real>()
}

/// Runs a kernel once: its number counts through the rows of [`KERNELS`].
///
/// # Safety
/// `call` points to a [`RawCall`] of this library's number type. Each of its buffers starts at an aligned address that is not
/// null and has `len` initialised elements, which nothing else touches until this function returns; the samples of the series
/// and the buffers of the edges likewise, and all sources are below the bound that is given with them. `emit` may be called with `sink`, `share` with `share_with` and the buffer `now` or `next`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn neuroc_kernel(kernel: usize, call: *const RawCall<Real>) -> i32 {
    let Some(Some(run)) = KERNELS.as_flattened().get(kernel) else {
        return NO_KERNEL;
    };
    let ran = catch_unwind(AssertUnwindSafe(|| {
        // SAFETY: the caller vouches for the pointer.
        let raw = unsafe { &*call };
        // SAFETY: the caller vouches for the elements of this and of the following buffers, and they do not overlap.
        let series = unsafe { slice(raw.series) };
        // SAFETY: see above.
        let series: Vec<Series> = series.iter().map(|samples| Series::new(unsafe { slice(*samples) })).collect();
        let mut spikes = Vec::new();
        // SAFETY: see above.
        let edges = unsafe { slice(raw.edges) };
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
            first_fresh: unsafe { slice(rows.first_fresh) },
            // SAFETY: see above.
            fresh: unsafe { slice(rows.fresh) },
        };
        let edges: Vec<Rows<'_, Real>> = edges.iter().map(rows).collect();
        // SAFETY: the caller allows this call; the kernel passes `now` or `next` as a whole.
        let mut share = |next: &mut [Real]| unsafe { (raw.share)(raw.share_with, next.as_mut_ptr(), next.len()) != 0 };
        let branches = &raw.branches;
        // SAFETY: see above.
        let ties = unsafe { slice(branches.ties) };
        // SAFETY: see above.
        let tie = |tie: &RawTie| unsafe { Tie { starts: slice(tie.starts), places: slice(tie.places) } };
        let ties: Vec<Tie<'_>> = ties.iter().map(tie).collect();
        run(Call {
            // SAFETY: see above.
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
            series: &series,
            window: raw.window,
            cells: raw.cells,
            spikes: &mut spikes,
            // SAFETY: see above.
            order: Order { numbers: unsafe { slice(raw.numbers) } },
            links: Links {
                // SAFETY: see above.
                now: unsafe { slice_mut(raw.now) },
                // SAFETY: see above.
                next: unsafe { slice_mut(raw.next) },
                edges: &edges,
                far: raw.far,
                share: &mut share,
            },
            branches: Branches {
                // SAFETY: see above.
                flat: unsafe { slice_mut(branches.flat) },
                // SAFETY: see above.
                at: unsafe { slice(branches.at) },
                ties: &ties,
                blocks: branches.blocks[0]..branches.blocks[1],
                cells: branches.cells[0]..branches.cells[1],
                side: Side { cells: branches.side[0], width: branches.side[1] },
            },
        });
        if !spikes.is_empty() {
            // SAFETY: the caller allows this call; the spikes live until it returns.
            unsafe { (raw.emit)(raw.sink, spikes.as_ptr(), spikes.len()) };
        }
    }));
    if ran.is_ok() { DONE } else { PANICKED }
}

/// # Safety
/// As for [`neuroc_kernel`].
unsafe fn slice<'a, T>(buffer: Buffer<T>) -> &'a [T] {
    // SAFETY: the caller vouches for it.
    unsafe { std::slice::from_raw_parts(buffer.start, buffer.len) }
}

/// # Safety
/// As for [`neuroc_kernel`].
unsafe fn slice_mut<'a, T>(buffer: Buffer<T>) -> &'a mut [T] {
    // SAFETY: the caller vouches for it.
    unsafe { std::slice::from_raw_parts_mut(buffer.start, buffer.len) }
}
