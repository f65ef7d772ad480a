//! Every source has `n` different targets. Ordered by source, then by target. The draws belong to the source.
//! As junctions it means the same as a fixed in-degree.

use super::fixed_in_degree::pick;
use super::{ConnectError, Ends, Entry};
use crate::runtime::rng::Draw;

pub(super) fn directed(n: u64, ends: Ends<'_>, draw: Draw) -> Result<Vec<Entry>, ConnectError> {
    let mut entries = Vec::new();
    pick(n, ends.source().cells() as u32, ends.target().cells() as u32, ends.within(), draw, |s, t| {
        entries.push((t, s));
    })?;
    Ok(entries)
}
