//! Every target has `n` different sources. Ordered by target, then by source. The draws belong to the target.
//! As junctions: every cell picks `n` others, and two that pick each other share one junction, so degrees vary from `n` up.

use super::choose::Chooser;
use super::{ConnectError, Ends, Entry, room};
use crate::runtime::rng::Draw;

pub(super) fn directed(n: u64, ends: Ends<'_>, draw: Draw) -> Result<Vec<Entry>, ConnectError> {
    let mut entries = Vec::new();
    pick(n, ends.target().cells() as u32, ends.source().cells() as u32, ends.within(), draw, |t, s| {
        entries.push((t, s));
    })?;
    Ok(entries)
}

/// Each of the `pickers` picks `n` different ones of the `pool`; within one population never itself.
pub(super) fn pick(
    n: u64,
    pickers: u32,
    pool: u32,
    within: bool,
    draw: Draw,
    mut each: impl FnMut(u32, u32),
) -> Result<(), ConnectError> {
    let partners = pool - u32::from(within);
    let count = match u32::try_from(n) {
        Ok(count) if count <= partners => count,
        Ok(_) | Err(_) => {
            return Err(ConnectError::TooFewPartners { wanted: n, partners: u64::from(partners), within });
        }
    };
    room(f64::from(pickers) * f64::from(count))?;
    let mut chooser = Chooser::new(partners as usize);
    for picker in 0..pickers {
        chooser.choose(draw, picker, partners, count, |other| {
            each(picker, other + u32::from(within && other >= picker));
        });
    }
    Ok(())
}
