//! Memory that is asked for before it is read.
//!
//! In come numbers and which of them; nothing goes out: they are on their way into the cache.
//! Never true here: that a result depends on it, or that a build without vector instructions does without it.
#![allow(unsafe_code)]

/// Asks for the memory of `len` numbers from `start` on, if they are there: reading them soon will not have to wait.
#[inline(always)]
pub fn ask_for<T>(numbers: &[T], start: usize, len: usize) {
    if let Some(numbers) = numbers.get(start..start + len) {
        numbers.chunks(64 / size_of::<T>()).for_each(|line| prefetch(&line[0]));
    }
}

/// Asks for the line of a number in memory. Other machines are asked in other ways: there nobody asks.
#[inline(always)]
fn prefetch<T>(number: &T) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: an address is all that it takes, this one is valid, and every x86-64 has the instruction.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(number).cast()) }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = number;
}
