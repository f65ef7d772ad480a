//! Every target has `n` sources, different ones unless a pair may come several times, and within one population not itself unless that may be. Ordered by target, then by source. The draws belong to the target.
//! As junctions: every cell picks `n` others, and two that pick each other share one junction, so degrees vary from `n` up.

use super::choose::{Chooser, any};
use super::{ConnectError, Ends, Entry, Partners, room};
use crate::runtime::rng::Draw;

pub(super) fn directed(n: u64, partners: Partners, ends: Ends<'_>, draw: Draw) -> Result<Vec<Entry>, ConnectError> {
    let mut entries = Vec::new();
    let [targets, sources] = [ends.target(), ends.source()].map(|shape| shape.cells() as u32);
    pick(n, partners, [targets, sources], ends.within(), draw, |t, s| entries.push((t, s)))?;
    Ok(entries)
}

/// Each of the `pickers` picks `n` of the `pool`, ascending.
pub(super) fn pick(
    n: u64,
    partners: Partners,
    [pickers, pool]: [u32; 2],
    within: bool,
    draw: Draw,
    mut each: impl FnMut(u32, u32),
) -> Result<(), ConnectError> {
    let without_self = within && !partners.autapses;
    let others = pool - u32::from(without_self);
    let count = match u32::try_from(n) {
        Ok(count) if count <= others || partners.multapses && others > 0 => count,
        Ok(_) | Err(_) => {
            return Err(ConnectError::TooFewPartners { wanted: n, partners: u64::from(others), within: without_self });
        }
    };
    room(f64::from(pickers) * f64::from(count))?;
    let mut chooser = Chooser::new(others as usize);
    for picker in 0..pickers {
        let found = |other: u32| each(picker, other + u32::from(without_self && other >= picker));
        match partners.multapses {
            true => any(draw, picker, others, count, found),
            false => chooser.choose(draw, picker, others, count, found),
        }
    }
    Ok(())
}
