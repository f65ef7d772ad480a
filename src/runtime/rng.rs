//! Counter-based random numbers: Philox4x32-10 (Salmon, Moraes, Dror and Shaw, SC 2011).
//!
//! What comes in is a seed, a stream and two counters (the index of a cell, edge or compartment, and the time step); what goes
//! out is the draw that belongs to them, uniform, normal or exponential.
//! The vector draws equal the scalar ones bit for bit.
//! Never true here: that a draw depends on what was drawn before, the order, the threads or the machine.

use super::lanes::{F64x8, Lanes};
use super::math;
#[cfg(all(target_arch = "x86_64", target_feature = "avx512f", target_feature = "avx512dq"))]
use std::array::from_fn;

#[cfg(test)]
mod tests;

/// What a round multiplies two of the words with.
const FACTORS: [u32; 2] = [0xD251_1F53, 0xCD9E_8D57];
/// By how much the key grows after a round.
const STEPS: [u32; 2] = [0x9E37_79B9, 0xBB67_AE85];

/// Four random words from a counter and a key: Philox4x32 with 10 rounds.
#[inline(always)]
pub fn philox(counter: [u32; 4], key: [u32; 2]) -> [u32; 4] {
    let [mut a, mut b, mut c, mut d] = counter;
    let [mut k0, mut k1] = key;
    for _ in 0..10 {
        let left = u64::from(a) * u64::from(FACTORS[0]);
        let right = u64::from(c) * u64::from(FACTORS[1]);
        (a, b, c, d) = ((right >> 32) as u32 ^ b ^ k0, right as u32, (left >> 32) as u32 ^ d ^ k1, left as u32);
        k0 = k0.wrapping_add(STEPS[0]);
        k1 = k1.wrapping_add(STEPS[1]);
    }
    [a, b, c, d]
}

/// Draws that several steps share: they are computed again only where their counter changes.
#[derive(Clone, Copy, Debug)]
pub struct Held<V, F> {
    draw: F,
    drawn: Option<(u64, V)>,
}

impl<V: Copy, F: Fn(u64) -> V> Held<V, F> {
    /// Nothing is drawn yet; `draw` gives what belongs to a counter.
    #[inline(always)]
    pub fn new(draw: F) -> Held<V, F> {
        Held { draw, drawn: None }
    }

    /// What belongs to `counter`.
    #[inline(always)]
    pub fn at(&mut self, counter: u64) -> V {
        match self.drawn {
            Some((last, value)) if last == counter => value,
            _ => {
                let value = (self.draw)(counter);
                self.drawn = Some((counter, value));
                value
            }
        }
    }
}

/// A source of draws: one per random quantity of a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Draw {
    /// The seed of the run: the key of the generator.
    pub seed: u64,
    /// Which random quantity this is; different streams are independent.
    pub stream: u32,
}

impl Draw {
    /// The two 64-bit words that belong to `index` and `step`. The steps of one stream repeat after 2^64.
    #[inline(always)]
    pub fn words(self, index: u32, step: u64) -> [u64; 2] {
        let counter = [self.stream, index, step as u32, (step >> 32) as u32];
        let [a, b, c, d] = philox(counter, [self.seed as u32, (self.seed >> 32) as u32]);
        let word = |low: u32, high: u32| u64::from(high) << 32 | u64::from(low);
        [word(a, b), word(c, d)]
    }

    /// Uniform in `[0, 1)`: a multiple of 2^-53.
    #[inline(always)]
    pub fn uniform(self, index: u32, step: u64) -> f64 {
        unit(self.words(index, step)[0])
    }

    /// Normal with mean 0 and standard deviation 1 (Box and Muller 1958); at most 8.6 in magnitude.
    #[inline(always)]
    pub fn normal(self, index: u32, step: u64) -> f64 {
        let [radius, angle] = self.words(index, step);
        normal_of(unit(radius), unit(angle))
    }

    /// Exponential with mean 1; at most 36.8.
    #[inline(always)]
    pub fn exponential(self, index: u32, step: u64) -> f64 {
        -math::ln(1.0 - self.uniform(index, step))
    }

    /// [`uniform`](Draw::uniform) of eight indices, so many times.
    #[inline(always)]
    pub fn uniform_lanes<const N: usize>(self, index: [[u32; 8]; N], step: u64) -> [F64x8; N] {
        self.units(index, step)[0]
    }

    /// [`normal`](Draw::normal) of eight indices, so many times.
    #[inline(always)]
    pub fn normal_lanes<const N: usize>(self, index: [[u32; 8]; N], step: u64) -> [F64x8; N] {
        // Loops, because a closure of an array would not become part of a function that may use all vectors.
        let [mut normal, angles] = self.units(index, step);
        for (radius, angle) in normal.iter_mut().zip(angles) {
            *radius = normal_of(*radius, angle);
        }
        normal
    }

    /// [`exponential`](Draw::exponential) of eight indices, so many times.
    #[inline(always)]
    pub fn exponential_lanes<const N: usize>(self, index: [[u32; 8]; N], step: u64) -> [F64x8; N] {
        let mut all = self.uniform_lanes(index, step);
        for unit in &mut all {
            *unit = -math::ln(F64x8::splat(1.0) - *unit);
        }
        all
    }

    /// The first words of all indices as numbers in `[0, 1)`, and the second ones: [`philox`] in eight lanes. Each round waits for the one before,
    /// so that a processor does little at a time where `N` is 1.
    #[cfg(all(target_arch = "x86_64", target_feature = "avx512f", target_feature = "avx512dq"))]
    #[inline(always)]
    fn units<const N: usize>(self, index: [[u32; 8]; N], step: u64) -> [[F64x8; N]; 2] {
        use super::lanes::avx512::U32x8;
        let all = |word| [U32x8::splat(word); N];
        let (mut a, mut b) = (all(self.stream), index.map(U32x8::load));
        let (mut c, mut d) = (all(step as u32), all((step >> 32) as u32));
        let [mut k0, mut k1] = [self.seed as u32, (self.seed >> 32) as u32];
        for _ in 0..10 {
            let (left, right) = (a.map(|a| a.times(FACTORS[0])), c.map(|c| c.times(FACTORS[1])));
            a = from_fn(|i| right[i].upper().xor(b[i], U32x8::splat(k0)));
            c = from_fn(|i| left[i].upper().xor(d[i], U32x8::splat(k1)));
            (b, d) = (right, left);
            k0 = k0.wrapping_add(STEPS[0]);
            k1 = k1.wrapping_add(STEPS[1]);
        }
        [from_fn(|i| U32x8::unit(b[i], a[i])), from_fn(|i| U32x8::unit(d[i], c[i]))]
    }

    /// The first words of all indices as numbers in `[0, 1)`, and the second ones. LLVM makes vectors of it, where they pay.
    #[cfg(not(all(target_arch = "x86_64", target_feature = "avx512f", target_feature = "avx512dq")))]
    #[inline(always)]
    fn units<const N: usize>(self, index: [[u32; 8]; N], step: u64) -> [[F64x8; N]; 2] {
        let mut all = [[F64x8::splat(0.0); N]; 2];
        for (i, index) in index.into_iter().enumerate() {
            let (mut left, mut right) = ([0.0; 8], [0.0; 8]);
            for ((left, right), index) in left.iter_mut().zip(&mut right).zip(index) {
                let words = self.words(index, step);
                *left = unit(words[0]);
                *right = unit(words[1]);
            }
            (all[0][i], all[1][i]) = (F64x8::load(&left), F64x8::load(&right));
        }
        all
    }
}

/// The upper 53 bits as a number in `[0, 1)`.
#[inline(always)]
fn unit(word: u64) -> f64 {
    (word >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
}

/// A standard normal number from two uniform ones in `[0, 1)`.
#[inline(always)]
fn normal_of<V: Lanes<Scalar = f64>>(radius: V, angle: V) -> V {
    let length = (math::ln(V::splat(1.0) - radius) * V::splat(-2.0)).sqrt();
    length * math::cos(angle * V::splat(std::f64::consts::TAU))
}
