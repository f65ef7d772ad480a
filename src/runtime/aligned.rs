//! Buffers that begin where a line of the cache begins.
//!
//! In comes a length; out goes a slice of so many numbers, of which vectors at whole numbers of lanes lie in one line each.
//! Never true here: that a result depends on the alignment.

/// Numbers that start at a multiple of 64 bytes.
#[derive(Debug)]
pub struct Aligned<T> {
    store: Vec<T>,
    skip: usize,
    len: usize,
}

impl<T: Copy + Default> Aligned<T> {
    /// So many zeros.
    pub fn new(len: usize) -> Aligned<T> {
        let room = 64 / size_of::<T>();
        let store = vec![T::default(); len + room];
        // Where the alignment cannot be computed the numbers are right all the same.
        let skip = store.as_ptr().align_offset(64).min(room);
        Aligned { store, skip, len }
    }

    /// The numbers.
    pub fn get(&self) -> &[T] {
        &self.store[self.skip..self.skip + self.len]
    }

    /// The same, to be changed.
    pub fn get_mut(&mut self) -> &mut [T] {
        &mut self.store[self.skip..self.skip + self.len]
    }
}
