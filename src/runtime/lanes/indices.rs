//! Indices that are checked once and used many times.
//!
//! In comes a list of indices; out goes the same list with a bound that all of them keep, for [`gather`](super::Lanes::gather).
//! Never true here: that an index is not below the bound.
#![allow(unsafe_code)]

use std::ops::Range;

/// A list of indices and a bound.
#[derive(Debug)]
pub struct IndexTable {
    list: Vec<u32>,
    below: usize,
}

impl IndexTable {
    /// Finds the bound.
    pub fn new(list: Vec<u32>) -> IndexTable {
        let below = Indices::new(&list).below;
        IndexTable { list, below }
    }

    /// All of them.
    pub fn all(&self) -> Indices<'_> {
        Indices { list: &self.list, below: self.below }
    }
}

/// Indices and a bound.
#[derive(Clone, Copy, Debug)]
pub struct Indices<'a> {
    list: &'a [u32],
    below: usize,
}

impl<'a> Indices<'a> {
    /// Finds the bound.
    pub fn new(list: &'a [u32]) -> Indices<'a> {
        let below = list.iter().max().map_or(0, |&most| most as usize + 1);
        Indices { list, below }
    }

    /// Indices whose bound is known.
    ///
    /// # Safety
    /// All of them are below it.
    pub unsafe fn known(list: &'a [u32], below: usize) -> Indices<'a> {
        Indices { list, below }
    }

    /// Some of them.
    #[inline(always)]
    pub fn part(self, range: Range<usize>) -> Indices<'a> {
        Indices { list: &self.list[range], below: self.below }
    }

    /// Takes so many from the front, if there are as many.
    #[inline(always)]
    pub fn take_first(&mut self, size: usize) -> Option<Indices<'a>> {
        let (list, rest) = self.list.split_at_checked(size)?;
        self.list = rest;
        Some(Indices { list, below: self.below })
    }

    /// The indices.
    #[inline(always)]
    pub fn list(self) -> &'a [u32] {
        self.list
    }

    /// All are below this.
    #[inline(always)]
    pub fn below(self) -> usize {
        self.below
    }
}
