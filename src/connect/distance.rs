//! Every pair independently with the chance `p_max * exp(-(d / sigma)^2)`.
//!
//! `d` is the Euclidean distance in grid steps on the torus: along each dimension the shorter way round. Two populations must
//! stand on the same grid; there, cells at the same place have distance 0. Ordered by the displacement of the source from the
//! target (x fastest, none first), then by target; the draws belong to the displacement.

use super::choose::by_chance;
use super::{ConnectError, Ends, Entry, Shape, room};
use crate::runtime::math;
use crate::runtime::rng::Draw;

pub(super) fn undirected(p_max: f64, sigma: f64, shape: &Shape, draw: Draw) -> Result<Vec<Entry>, ConnectError> {
    let sizes = shape.padded();
    check_room(p_max, sigma, shape)?;
    let mut pairs = Vec::new();
    for (number, offset) in displacements(sizes) {
        let back = Shape::displaced(sizes, 0, offset.map(|d| -d));
        // Of a displacement and its opposite one is enough. One that is its own opposite meets every pair twice.
        if number == 0 || number > back {
            continue;
        }
        by_chance(draw, number, chance(p_max, sigma, sizes, offset), shape.cells() as u64, |a| {
            let b = Shape::displaced(sizes, a as u32, offset);
            if number < back || (a as u32) < b {
                pairs.push((a as u32, b));
            }
        });
    }
    Ok(pairs)
}

pub(super) fn directed(p_max: f64, sigma: f64, ends: Ends<'_>, draw: Draw) -> Result<Vec<Entry>, ConnectError> {
    let shape = ends.grid("distance")?;
    let sizes = shape.padded();
    check_room(p_max, sigma, shape)?;
    let mut entries = Vec::new();
    for (number, offset) in displacements(sizes).skip(usize::from(ends.within())) {
        by_chance(draw, number, chance(p_max, sigma, sizes, offset), shape.cells() as u64, |target| {
            entries.push((target as u32, Shape::displaced(sizes, target as u32, offset)));
        });
    }
    Ok(entries)
}

fn check_room(p_max: f64, sigma: f64, shape: &Shape) -> Result<(), ConnectError> {
    let sizes = shape.padded();
    let mean: f64 = displacements(sizes).map(|(_, offset)| chance(p_max, sigma, sizes, offset)).sum();
    room(mean * shape.cells() as f64)
}

/// All displacements, each coordinate from 0 to its size, with their numbers.
fn displacements([sx, sy, sz]: [i64; 3]) -> impl Iterator<Item = (u32, [i64; 3])> {
    let all = (0..sz).flat_map(move |z| (0..sy).flat_map(move |y| (0..sx).map(move |x| [x, y, z])));
    all.enumerate().map(|(number, offset)| (number as u32, offset))
}

fn chance(p_max: f64, sigma: f64, sizes: [i64; 3], offset: [i64; 3]) -> f64 {
    let squares = (0..3).map(|d| {
        let way = offset[d].min(sizes[d] - offset[d]) as f64 / sigma;
        way * way
    });
    p_max * math::exp(-squares.sum::<f64>())
}
