//! So many connections, whose targets and sources are drawn one by one, uniformly: any pair may come several times, and a cell of one population may
//! meet itself (Potjans and Diesmann, Cereb Cortex 24:785-806, 2014). In the order in which they are drawn. The draws belong to the connection.
//! As junctions: the pairs of different cells among them, each once.

use super::choose::pair_below;
use super::{ConnectError, Ends, Entry, Shape, edges, room};
use crate::runtime::rng::Draw;

pub(super) fn directed(n: u64, ends: Ends<'_>, draw: Draw) -> Result<Vec<Entry>, ConnectError> {
    room(n as f64)?;
    let (targets, sources) = (ends.target().cells() as u32, ends.source().cells() as u32);
    Ok((0..n as u32).map(|i| pair_below(draw, i, targets, sources)).collect())
}

pub(super) fn undirected(n: u64, shape: &Shape, draw: Draw) -> Result<Vec<Entry>, ConnectError> {
    let mut pairs = directed(n, Ends::Within(shape), draw)?;
    pairs.retain(|(target, source)| target != source);
    Ok(edges::once(&pairs))
}
