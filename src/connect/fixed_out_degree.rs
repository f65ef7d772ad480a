//! Every source has `n` targets, with the same exceptions as a fixed in-degree. Ordered by source, then by target. The draws belong to the source.
//! As junctions it means the same as a fixed in-degree.

use super::fixed_in_degree::pick;
use super::{ConnectError, Ends, Entry, Partners};
use crate::runtime::rng::Draw;

pub(super) fn directed(n: u64, partners: Partners, ends: Ends<'_>, draw: Draw) -> Result<Vec<Entry>, ConnectError> {
    let mut entries = Vec::new();
    let [sources, targets] = [ends.source(), ends.target()].map(|shape| shape.cells() as u32);
    pick(n, partners, [sources, targets], ends.within(), draw, |s, t| entries.push((t, s)))?;
    Ok(entries)
}
