//! Every pair independently with the chance `p`. Ordered by target, then by source; junctions `(a, b)` have `a > b`.
//! The draws belong to the target.

use super::choose::by_chance;
use super::{ConnectError, Ends, Entry, Shape, room};
use crate::runtime::rng::Draw;

pub(super) fn undirected(p: f64, shape: &Shape, draw: Draw) -> Result<Vec<Entry>, ConnectError> {
    let cells = shape.cells() as u32;
    room(p * f64::from(cells) * f64::from(cells - 1))?;
    let mut pairs = Vec::new();
    for a in 0..cells {
        by_chance(draw, a, p, u64::from(a), |b| pairs.push((a, b as u32)));
    }
    Ok(pairs)
}

pub(super) fn directed(p: f64, ends: Ends<'_>, draw: Draw) -> Result<Vec<Entry>, ConnectError> {
    let (targets, sources) = (ends.target().cells() as u32, ends.source().cells() as u32);
    room(p * f64::from(targets) * f64::from(sources))?;
    let mut entries = Vec::new();
    for target in 0..targets {
        // Within one population the target itself is left out of the count.
        let others = sources - u32::from(ends.within());
        by_chance(draw, target, p, u64::from(others), |s| {
            let skips_self = ends.within() && s >= u64::from(target);
            entries.push((target, s as u32 + u32::from(skips_self)));
        });
    }
    Ok(entries)
}
