//! Lists of edges that are given, not made.
//!
//! In come entries `(target, source)`; out go the same entries, or the row that cannot be.
//! Never true here: that a wrong row is skipped.

use super::{ConnectError, Ends, Entry, Shape};

/// Each pair of cells once, in the order of the list; an entry may have its opposite in the list, but no second of its own.
pub(super) fn undirected(entries: &[Entry], shape: &Shape) -> Result<Vec<Entry>, ConnectError> {
    check_range(entries, shape.cells(), shape.cells())?;
    check_no_self(entries)?;
    let mut rows: Vec<(Entry, usize)> = entries.iter().copied().zip(0..).collect();
    rows.sort_unstable();
    let twice = rows.windows(2).filter(|w| w[0].0 == w[1].0).min_by_key(|w| w[1].1);
    if let Some(&[((target, source), first), (_, row)]) = twice {
        return Err(ConnectError::Repeated { row, first, source, target });
    }
    Ok(once(entries))
}

/// The list, if all its cells are there.
pub(super) fn directed(entries: &[Entry], ends: Ends<'_>) -> Result<Vec<Entry>, ConnectError> {
    check_range(entries, ends.target().cells(), ends.source().cells())?;
    Ok(entries.to_vec())
}

/// The first entry of each unordered pair, in the order of the list.
pub(super) fn once(entries: &[Entry]) -> Vec<Entry> {
    let mut rows: Vec<(Entry, usize)> = entries.iter().map(|&(t, s)| (t.min(s), t.max(s))).zip(0..).collect();
    rows.sort_unstable();
    rows.dedup_by_key(|r| r.0);
    let mut kept: Vec<usize> = rows.into_iter().map(|r| r.1).collect();
    kept.sort_unstable();
    kept.into_iter().map(|row| entries[row]).collect()
}

pub(super) fn check_range(entries: &[Entry], targets: usize, sources: usize) -> Result<(), ConnectError> {
    let wrong = |row, end, value, size| Err(ConnectError::OutOfRange { row, end, value, size });
    for (row, &(target, source)) in entries.iter().enumerate() {
        if source as usize >= sources {
            return wrong(row, "source", source, sources);
        }
        if target as usize >= targets {
            return wrong(row, "target", target, targets);
        }
    }
    Ok(())
}

pub(super) fn check_no_self(entries: &[Entry]) -> Result<(), ConnectError> {
    match entries.iter().position(|(t, s)| t == s) {
        Some(row) => Err(ConnectError::SelfConnection { row, cell: entries[row].0 }),
        None => Ok(()),
    }
}
