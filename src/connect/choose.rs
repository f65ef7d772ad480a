//! Random subsets.
//!
//! In come a draw and the index that it is drawn for; out go members of `0..n`, ascending.
//! Never true here: that a member of a set comes twice, or that the draws of two indices are shared.

use crate::runtime::math;
use crate::runtime::rng::Draw;

/// Chooses sets of fixed size; keeps one bit per member, all clear between the calls.
pub(super) struct Chooser {
    taken: Vec<u64>,
}

impl Chooser {
    /// For sets out of up to `most` members.
    pub fn new(most: usize) -> Chooser {
        Chooser { taken: vec![0; most.div_ceil(64)] }
    }

    /// Gives `count` different members of `0..n` to `each`, ascending; every set is equally likely (Floyd's method: Bentley
    /// and Floyd 1987). Takes time in proportion to `count`, or to `n / 64` if that is more than `count`'s sort is worth.
    pub fn choose(&mut self, draw: Draw, index: u32, n: u32, count: u32, mut each: impl FnMut(u32)) {
        assert!(count <= n && n as usize <= 64 * self.taken.len());
        let scanned = (n / 64) as u64 <= 4 * u64::from(count);
        let mut members = Vec::with_capacity(if scanned { 0 } else { count as usize });
        for (step, last) in (n - count..n).enumerate() {
            let drawn = below(draw, index, step as u64, last + 1);
            let member = if self.is_taken(drawn) { last } else { drawn };
            self.taken[member as usize / 64] |= 1 << (member % 64);
            if !scanned {
                members.push(member);
            }
        }
        if scanned {
            for (i, word) in self.taken.iter_mut().take((n as usize).div_ceil(64)).enumerate() {
                while *word != 0 {
                    each(i as u32 * 64 + word.trailing_zeros());
                    *word &= *word - 1;
                }
            }
        } else {
            members.sort_unstable();
            for member in members {
                self.taken[member as usize / 64] = 0;
                each(member);
            }
        }
    }

    fn is_taken(&self, member: u32) -> bool {
        self.taken[member as usize / 64] >> (member % 64) & 1 == 1
    }
}

/// Gives `count` members of `0..n` to `each`, ascending; each is drawn by itself, so that one may come several times.
pub(super) fn any(draw: Draw, index: u32, n: u32, count: u32, each: impl FnMut(u32)) {
    let mut members: Vec<u32> = (0..u64::from(count)).map(|step| below(draw, index, step, n)).collect();
    members.sort_unstable();
    members.into_iter().for_each(each);
}

/// A number below `n`: the upper half of a 64-bit word times `n`.
fn below(draw: Draw, index: u32, step: u64, n: u32) -> u32 {
    ((u128::from(draw.words(index, step)[0]) * u128::from(n)) >> 64) as u32
}

/// Two numbers below `n` and `m`, from both words of one draw.
pub(super) fn pair_below(draw: Draw, index: u32, n: u32, m: u32) -> (u32, u32) {
    let of = |word: u64, n: u32| ((u128::from(word) * u128::from(n)) >> 64) as u32;
    let [first, second] = draw.words(index, 0);
    (of(first, n), of(second, m))
}

/// Gives each member of `0..n` to `each` with the chance `p`, ascending. The gaps between members are geometric, so this takes
/// time in proportion to what it gives.
pub(super) fn by_chance(draw: Draw, index: u32, p: f64, n: u64, mut each: impl FnMut(u64)) {
    if p <= 0.0 {
        return;
    }
    if p >= 1.0 {
        return (0..n).for_each(each);
    }
    // ln(1 - p), whose first two terms are exact enough where 1 - p is not.
    let miss = if p < 1e-6 { -p - 0.5 * p * p } else { math::ln(1.0 - p) };
    let mut next = 0;
    for step in 0.. {
        let gap = (math::ln(1.0 - draw.uniform(index, step)) / miss).floor();
        if gap >= (n - next) as f64 {
            return;
        }
        next += gap as u64;
        each(next);
        next += 1;
    }
}
