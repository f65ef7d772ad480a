//! Compressed lists: for every target its sources.
//!
//! In come entries in some order; out go lists in which every target's sources stand in that order.
//! Never true here: that entries are merged, dropped or reordered beyond the grouping by target.

use super::{ConnectError, Entry, edges, room};

/// Sources by target: those of target `t` are `sources[offsets[t]..offsets[t + 1]]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Csr {
    /// One more than there are targets.
    pub offsets: Vec<u32>,
    /// All sources.
    pub sources: Vec<u32>,
}

/// Both directions of junctions `(A, B)` among `cells` cells. The order is that of the list of all `A <- B` followed by all
/// `B <- A`: a target has first its partners in pairs where it comes first, then those in pairs where it comes second.
pub fn directed_csr(pairs: &[Entry], cells: usize) -> Result<Csr, ConnectError> {
    edges::check_range(pairs, cells, cells)?;
    edges::check_no_self(pairs)?;
    group(cells, pairs.iter().copied().chain(pairs.iter().map(|&(a, b)| (b, a))))
}

/// The entries of a list of junctions that has both directions already, as it stands. A cell joined with itself is an
/// error; [`Csr::from_entries`] allows it.
pub fn directed_from_entries(entries: &[Entry], cells: usize) -> Result<Csr, ConnectError> {
    edges::check_no_self(entries)?;
    Csr::from_entries(entries, cells, cells)
}

impl Csr {
    /// The entries `(target, source)` as they stand.
    pub fn from_entries(entries: &[Entry], targets: usize, sources: usize) -> Result<Csr, ConnectError> {
        edges::check_range(entries, targets, sources)?;
        group(targets, entries.iter().copied())
    }

    /// The number of targets.
    pub fn targets(&self) -> usize {
        self.offsets.len() - 1
    }

    /// The sources of a target.
    pub fn sources_of(&self, target: usize) -> &[u32] {
        &self.sources[self.offsets[target] as usize..self.offsets[target + 1] as usize]
    }

    /// The entries `(target, source)` in order.
    pub fn entries(&self) -> impl Iterator<Item = Entry> + Clone + '_ {
        (0..self.targets()).flat_map(|t| self.sources_of(t).iter().map(move |&s| (t as u32, s)))
    }

    /// Puts the sources of every target into ascending order, which reads memory best; sums over them then round differently.
    pub fn sort_sources(&mut self) {
        for ends in self.offsets.windows(2) {
            self.sources[ends[0] as usize..ends[1] as usize].sort_unstable();
        }
    }

    /// Is every entry there in the other direction too, equally often?
    pub fn is_symmetric(&self) -> bool {
        self.unmatched().is_none()
    }

    /// The first entry `(target, source)` that is there more often than its opposite.
    pub fn unmatched(&self) -> Option<Entry> {
        let cells = self.targets();
        if let Some(entry) = self.entries().find(|&(_, s)| s as usize >= cells) {
            return Some(entry);
        }
        let mut sorted = self.clone();
        sorted.sort_sources();
        // Grouped from entries in ascending order of (target, source), the opposite's sources ascend too.
        let opposite = group(cells, sorted.entries().map(|(t, s)| (s, t))).ok()?;
        (0..cells).find_map(|t| {
            let (here, there) = (sorted.sources_of(t), opposite.sources_of(t));
            let count = |list: &[u32], s: u32| list.partition_point(|&x| x <= s) - list.partition_point(|&x| x < s);
            let more = |s: &&u32| count(here, **s) > count(there, **s);
            if here == there { None } else { here.iter().find(more).map(|&s| (t as u32, s)) }
        })
    }
}

/// A stable counting sort by target; all targets are in range.
fn group(targets: usize, entries: impl Iterator<Item = Entry> + Clone) -> Result<Csr, ConnectError> {
    let mut offsets = vec![0u32; targets + 1];
    let mut count = 0u64;
    for (target, _) in entries.clone() {
        // Cannot wrap unnoticed: the count is checked before the offsets are used.
        offsets[target as usize] = offsets[target as usize].wrapping_add(1);
        count += 1;
    }
    room(count as f64)?;
    let mut sum = 0;
    for offset in &mut offsets {
        sum += std::mem::replace(offset, sum);
    }
    let mut sources = vec![0u32; count as usize];
    for (target, source) in entries {
        let place = &mut offsets[target as usize];
        sources[*place as usize] = source;
        *place += 1;
    }
    // Every offset now stands where the next one began.
    offsets.rotate_right(1);
    offsets[0] = 0;
    Ok(Csr { offsets, sources })
}
