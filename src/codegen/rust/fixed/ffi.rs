//! The model for C: what `include/NAME.h` declares.
//!
//! In come handles, C strings, pointers and lengths; out go numbers and, for each failure, a message.
//! Never true here: that a null pointer is followed, or that a panic leaves the library.
#![allow(unsafe_code)]

use crate::model::{Model, SPEC};
use crate::runtime::named::Error;
use std::ffi::{CStr, CString, c_char, c_int};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// The version of this interface.
pub const VERSION: u32 = 1;

/// A model and what was wrong last.
pub struct Handle {
    model: Model,
    error: CString,
}

/// The version of this interface that the library has.
#[unsafe(export_name = "NAME_abi_version")]
pub extern "C" fn abi_version() -> u32 {
    VERSION
}

/// A new model, or null.
///
/// # Safety
/// `sizes` is null or points to `populations` numbers.
#[unsafe(export_name = "NAME_create")]
pub unsafe extern "C" fn create(sizes: *const usize, populations: usize, threads: usize) -> *mut Handle {
    let defaults: Vec<usize> = SPEC.populations().map(|space| space.size).collect();
    // SAFETY: the caller vouches for the array.
    let sizes = if sizes.is_null() { &defaults } else { unsafe { slice(sizes, populations) } };
    let model = catch_unwind(AssertUnwindSafe(|| Model::with_sizes(sizes, threads)));
    match model {
        Ok(Ok(model)) => Box::into_raw(Box::new(Handle { model, error: CString::default() })),
        Ok(Err(_)) | Err(_) => std::ptr::null_mut(),
    }
}

/// Frees a model.
///
/// # Safety
/// `handle` is null or came from [`create`] and is not used any more.
#[unsafe(export_name = "NAME_destroy")]
pub unsafe extern "C" fn destroy(handle: *mut Handle) {
    if !handle.is_null() {
        // SAFETY: the caller gives back what [`create`] gave.
        drop(unsafe { Box::from_raw(handle) });
    }
}

/// What the last failed call found wrong.
///
/// # Safety
/// `handle` is null or came from [`create`].
#[unsafe(export_name = "NAME_error")]
pub unsafe extern "C" fn error(handle: *const Handle) -> *const c_char {
    // SAFETY: the caller vouches for the handle.
    match unsafe { handle.as_ref() } {
        Some(handle) => handle.error.as_ptr(),
        None => c"there is no model".as_ptr(),
    }
}

/// Sets a parameter.
///
/// # Safety
/// `handle` came from [`create`]; `name` ends in a zero byte.
#[unsafe(export_name = "NAME_set_param")]
pub unsafe extern "C" fn set_param(handle: *mut Handle, name: *const c_char, value: f64) -> c_int {
    // SAFETY: the caller vouches for both.
    unsafe { with(handle, |model| model.set_param(text(name)?, value)) }
}

/// Sets a function of time.
///
/// # Safety
/// As for [`set_param`]; `t` and `value` point to `len` numbers.
#[unsafe(export_name = "NAME_set_series")]
pub unsafe extern "C" fn set_series(
    handle: *mut Handle,
    name: *const c_char,
    t: *const f64,
    value: *const f64,
    len: usize,
) -> c_int {
    // SAFETY: the caller vouches for the pointers.
    unsafe {
        with(handle, |model| {
            let (t, value) = (slice(t, len), slice(value, len));
            let samples: Vec<(f64, f64)> = t.iter().copied().zip(value.iter().copied()).collect();
            model.set_series(text(name)?, &samples)
        })
    }
}

/// Connects cells anew.
///
/// # Safety
/// As for [`set_param`]; `offsets` points to `offsets_len` numbers, `sources` to `sources_len`.
#[unsafe(export_name = "NAME_set_edges")]
pub unsafe extern "C" fn set_edges(
    handle: *mut Handle,
    name: *const c_char,
    offsets: *const u32,
    offsets_len: usize,
    sources: *const u32,
    sources_len: usize,
) -> c_int {
    // SAFETY: the caller vouches for the pointers.
    unsafe {
        with(handle, |model| model.set_edges(text(name)?, slice(offsets, offsets_len), slice(sources, sources_len)))
    }
}

/// Sets the seed.
///
/// # Safety
/// `handle` came from [`create`].
#[unsafe(export_name = "NAME_set_seed")]
pub unsafe extern "C" fn set_seed(handle: *mut Handle, seed: u64) -> c_int {
    // SAFETY: the caller vouches for it.
    unsafe {
        with(handle, |model| {
            model.set_seed(seed);
            Ok(())
        })
    }
}

/// Sets numbers per cell.
///
/// # Safety
/// As for [`set_param`]; `values` points to `len` numbers.
#[unsafe(export_name = "NAME_write")]
pub unsafe extern "C" fn write(handle: *mut Handle, name: *const c_char, values: *const f64, len: usize) -> c_int {
    // SAFETY: the caller vouches for the pointers.
    unsafe { with(handle, |model| model.write(text(name)?, slice(values, len))) }
}

/// Sets cell parameters and initial states.
///
/// # Safety
/// `handle` came from [`create`].
#[unsafe(export_name = "NAME_init")]
pub unsafe extern "C" fn init(handle: *mut Handle) -> c_int {
    // SAFETY: the caller vouches for it.
    unsafe { with(handle, |model| model.init()) }
}

/// Advances by time steps.
///
/// # Safety
/// `handle` came from [`create`].
#[unsafe(export_name = "NAME_step")]
pub unsafe extern "C" fn step(handle: *mut Handle, steps: u64) -> c_int {
    // SAFETY: the caller vouches for it.
    unsafe { with(handle, |model| model.step(steps)) }
}

/// Reads numbers per cell.
///
/// # Safety
/// As for [`set_param`]; `values` points to `room` numbers and `len` to one.
#[unsafe(export_name = "NAME_read")]
pub unsafe extern "C" fn read(
    handle: *mut Handle,
    name: *const c_char,
    values: *mut f64,
    room: usize,
    len: *mut usize,
) -> c_int {
    // SAFETY: the caller vouches for the pointers.
    unsafe {
        with(handle, |model| {
            let read = model.read(text(name)?)?;
            for (place, value) in slice_mut(values, room).iter_mut().zip(&read) {
                *place = *value;
            }
            tell(len, read.len());
            Ok(())
        })
    }
}

/// Reads events.
///
/// # Safety
/// As for [`set_param`]; `steps` and `cells` point to `room` numbers each and `len` to one.
#[unsafe(export_name = "NAME_spikes")]
pub unsafe extern "C" fn spikes(
    handle: *mut Handle,
    name: *const c_char,
    steps: *mut u64,
    cells: *mut u64,
    room: usize,
    len: *mut usize,
) -> c_int {
    // SAFETY: the caller vouches for the pointers.
    unsafe {
        with(handle, |model| {
            let spikes = model.spikes(text(name)?)?;
            let places = slice_mut(steps, room).iter_mut().zip(slice_mut(cells, room));
            for ((step_place, cell_place), (step, cell)) in places.zip(&spikes) {
                (*step_place, *cell_place) = (*step, *cell);
            }
            tell(len, spikes.len());
            Ok(())
        })
    }
}

/// Runs something on the model and keeps its error.
///
/// # Safety
/// `handle` is null or came from [`create`], and nothing else uses it.
unsafe fn with(handle: *mut Handle, run: impl FnOnce(&mut Model) -> Result<(), Error>) -> c_int {
    // SAFETY: the caller vouches for the handle.
    let Some(handle) = (unsafe { handle.as_mut() }) else { return 1 };
    let message = match catch_unwind(AssertUnwindSafe(|| run(&mut handle.model))) {
        Ok(Ok(())) => return 0,
        Ok(Err(error)) => error.to_string(),
        Err(_) => "the model panicked, which is a bug of neuroc".to_string(),
    };
    handle.error = CString::new(message.replace('\0', " ")).unwrap_or_default();
    1
}

/// # Safety
/// `name` is null or ends in a zero byte.
unsafe fn text<'a>(name: *const c_char) -> Result<&'a str, Error> {
    if name.is_null() {
        return Err(Error("a name is missing".to_string()));
    }
    // SAFETY: the caller vouches for it.
    unsafe { CStr::from_ptr(name) }.to_str().map_err(|_| Error("a name is not UTF-8".to_string()))
}

/// # Safety
/// `start` is null or points to `len` elements.
unsafe fn slice<'a, T>(start: *const T, len: usize) -> &'a [T] {
    // SAFETY: the caller vouches for it.
    if start.is_null() { &[] } else { unsafe { std::slice::from_raw_parts(start, len) } }
}

/// # Safety
/// `start` is null or points to `len` elements.
unsafe fn slice_mut<'a, T>(start: *mut T, len: usize) -> &'a mut [T] {
    // SAFETY: the caller vouches for it.
    if start.is_null() { &mut [] } else { unsafe { std::slice::from_raw_parts_mut(start, len) } }
}

/// # Safety
/// `place` is null or points to a number.
unsafe fn tell(place: *mut usize, number: usize) {
    // SAFETY: the caller vouches for it.
    if let Some(place) = unsafe { place.as_mut() } {
        *place = number;
    }
}
