//! Every cell with every other. Ordered by target, then by source; junctions `(a, b)` have `a < b`.

use super::{ConnectError, Ends, Entry, Shape, room};

pub(super) fn undirected(shape: &Shape) -> Result<Vec<Entry>, ConnectError> {
    let cells = shape.cells() as u32;
    room(f64::from(cells) * f64::from(cells - 1))?;
    Ok((0..cells).flat_map(|a| (a + 1..cells).map(move |b| (a, b))).collect())
}

pub(super) fn directed(ends: Ends<'_>) -> Result<Vec<Entry>, ConnectError> {
    let (targets, sources) = (ends.target().cells() as u32, ends.source().cells() as u32);
    room(f64::from(targets) * f64::from(sources))?;
    let wanted = |t: u32, s: u32| !ends.within() || t != s;
    Ok((0..targets).flat_map(|t| (0..sources).filter(move |&s| wanted(t, s)).map(move |s| (t, s))).collect())
}
