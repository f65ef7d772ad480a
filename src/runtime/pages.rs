//! Pages of memory for large arrays that are read here and there.
//!
//! In come numbers that nobody has written yet; nothing goes out: where the system can, they will lie in large pages, of which the processor knows
//! many more places by heart.
//! Never true here: that a result depends on it, or that a system without large pages does without it.
#![allow(unsafe_code)]

/// What is smaller has few pages of any size.
const LARGE: usize = 1 << 23;

/// Asks for large pages.
pub fn ask_for_large<T>(numbers: &mut [T]) {
    let bytes = size_of_val(numbers);
    if bytes >= LARGE {
        advise(numbers.as_mut_ptr().cast(), bytes);
    }
}

/// Linux gives them to who asks.
#[cfg(target_os = "linux")]
fn advise(begin: *mut u8, bytes: usize) {
    use std::ffi::{c_int, c_void};
    unsafe extern "C" {
        fn madvise(begin: *mut c_void, bytes: usize, advice: c_int) -> c_int;
    }
    const MADV_HUGEPAGE: c_int = 14;
    /// It takes whole small pages, which are no larger than this on any machine.
    const PAGE: usize = 1 << 16;
    let skip = begin.align_offset(PAGE);
    if let Some(whole) = bytes.checked_sub(skip).map(|rest| rest / PAGE * PAGE) {
        // SAFETY: the range is inside of the numbers, and what they are does not change. Where the advice is not taken, all is as it was.
        unsafe { madvise(begin.wrapping_add(skip).cast(), whole, MADV_HUGEPAGE) };
    }
}

/// Elsewhere nobody is asked.
#[cfg(not(target_os = "linux"))]
fn advise(_: *mut u8, _: usize) {}
