//! Neighbours on a torus, by shells of equal distance: the sampling of the inferior-olive benchmark of Landsmeer et al.
//! (Neurocomputing 598, 2024), with this program's own random numbers.
//!
//! - The radius `R` is `r_max`, or half the largest size (rounded down) if `r_max` is more than half of it.
//! - The offsets are the whole-numbered ones with `0 < r < R`, x slowest and z fastest. Along a dimension of size `s` they go
//!   to `(s - 1) / 2` at most (rounded down), so that no offset is its own opposite or another's; on a cube `R` alone says
//!   so already. A dimension of size 1 or 2, or one that is missing, has none.
//! - For junctions only the half space of offsets with `(z, y, x) < (0, 0, 0)` counts: each stands for its opposite too.
//! - The shell at the i-th distance weighs `exp(-(r_i / width)^2) * (r_(i+1) - r_(i-1)) / 2`, where 0 and `R` are the distances
//!   before the first and after the last, and its offsets share that evenly. Weights are scaled to a sum of 1.
//! - Of the `M` connections wanted, an offset gets its share rounded to the nearest whole number, and the last offset what the
//!   others left, if anything. So the total may exceed `M` by a few. `M` is `degree * N / 2` junctions, or
//!   `degree * N` directed entries.
//! - An offset of `c` connections joins `c` different cells A, chosen uniformly, each with the cell B at the offset from it.
//!
//! Ordered by offset, then by A, which is the target. The draws belong to the number of the offset.

use super::choose::Chooser;
use super::{ConnectError, Ends, Entry, Shape, room};
use crate::runtime::math;
use crate::runtime::rng::Draw;

pub(super) fn undirected(
    degree: f64,
    r_max: f64,
    width: f64,
    shape: &Shape,
    draw: Draw,
) -> Result<Vec<Entry>, ConnectError> {
    let wanted = degree * shape.cells() as f64 / 2.0;
    room(2.0 * wanted)?;
    let counted = counts(degree, wanted, &weighted_offsets(r_max, width, shape, true)?, shape.cells())?;
    Ok(sample(&counted, shape, draw))
}

pub(super) fn directed(
    degree: f64,
    r_max: f64,
    width: f64,
    ends: Ends<'_>,
    draw: Draw,
) -> Result<Vec<Entry>, ConnectError> {
    let shape = ends.grid("torus_radial")?;
    let wanted = degree * shape.cells() as f64;
    room(wanted)?;
    let counted = counts(degree, wanted, &weighted_offsets(r_max, width, shape, false)?, shape.cells())?;
    Ok(sample(&counted, shape, draw))
}

/// The offsets in order, each with its share of the connections.
pub(super) fn weighted_offsets(
    r_max: f64,
    width: f64,
    shape: &Shape,
    half_space: bool,
) -> Result<Vec<([i64; 3], f64)>, ConnectError> {
    let sizes = shape.padded();
    let largest = sizes.into_iter().fold(1, i64::max);
    let radius = if r_max <= largest as f64 / 2.0 { r_max } else { (largest / 2) as f64 };
    let square = |[x, y, z]: [i64; 3]| x * x + y * y + z * z;
    let [lx, ly, lz] = sizes.map(|s| ((s - 1) / 2).min(radius.floor() as i64));
    let mut offsets = Vec::new();
    for x in -lx..=lx {
        for y in -ly..=ly {
            for z in -lz..=lz {
                let inside = square([x, y, z]) > 0 && (square([x, y, z]) as f64).sqrt() < radius;
                if inside && (!half_space || [z, y, x] < [0, 0, 0]) {
                    offsets.push([x, y, z]);
                }
            }
        }
    }
    if offsets.is_empty() {
        return Err(ConnectError::NoNeighbours { radius, sizes: shape.sizes.clone() });
    }
    let mut squares: Vec<i64> = offsets.iter().copied().map(square).collect();
    squares.sort_unstable();
    let shells: Vec<(i64, usize)> = squares.chunk_by(|a, b| a == b).map(|s| (s[0], s.len())).collect();
    let distance = |shell: usize| (shells[shell].0 as f64).sqrt();
    let shares: Vec<f64> = (0..shells.len())
        .map(|i| {
            let before = if i == 0 { 0.0 } else { distance(i - 1) };
            let after = if i + 1 == shells.len() { radius } else { distance(i + 1) };
            let steps = distance(i) / width;
            math::exp(-steps * steps) * 0.5 * (after - before) / shells[i].1 as f64
        })
        .collect();
    let share = |offset| shares[shells.partition_point(|s| s.0 < square(offset))];
    let total: f64 = offsets.iter().map(|&o| share(o)).sum();
    if total > 0.0 {
        Ok(offsets.iter().map(|&o| (o, share(o) / total)).collect())
    } else {
        Err(ConnectError::WidthTooSmall { width })
    }
}

/// How many connections each offset has.
pub(super) fn counts(
    degree: f64,
    wanted: f64,
    offsets: &[([i64; 3], f64)],
    cells: usize,
) -> Result<Vec<([i64; 3], u32)>, ConnectError> {
    let largest = offsets.iter().map(|o| o.1).fold(0.0, f64::max);
    let mut others = 0.0;
    let mut out = Vec::with_capacity(offsets.len());
    for (i, &(offset, share)) in offsets.iter().enumerate() {
        let exact = if i + 1 == offsets.len() { (wanted - others).max(0.0) } else { share * wanted };
        let count = (exact + 0.5).floor();
        if count >= cells as f64 {
            // The largest share comes to less than cells - 1/2 connections.
            let most = degree * (cells as f64 - 0.5) / (largest * wanted);
            return Err(ConnectError::DegreeTooLarge { degree, offset, wanted: count as u64, cells, most });
        }
        others += count;
        out.push((offset, count as u32));
    }
    Ok(out)
}

fn sample(counted: &[([i64; 3], u32)], shape: &Shape, draw: Draw) -> Vec<Entry> {
    let (sizes, cells) = (shape.padded(), shape.cells());
    let mut entries = Vec::with_capacity(counted.iter().map(|o| o.1 as usize).sum());
    let mut chooser = Chooser::new(cells);
    for (number, &(offset, count)) in counted.iter().enumerate() {
        chooser.choose(draw, number as u32, cells as u32, count, |a| {
            entries.push((a, Shape::displaced(sizes, a, offset)));
        });
    }
    entries
}
