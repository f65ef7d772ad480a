//! Counter-based random numbers: Philox4x32-10 (Salmon, Moraes, Dror and Shaw, SC 2011).
//!
//! What comes in is a seed, a stream and two counters (the index of a cell, edge or compartment, and the time step); what goes
//! out is the draw that belongs to them, uniform, normal or exponential.
//! The vector draws equal the scalar ones bit for bit.
//! Never true here: that a draw depends on what was drawn before, the order, the threads or the machine.

use super::lanes::Lanes;
use super::math;

#[cfg(test)]
mod tests;

/// Four random words from a counter and a key: Philox4x32 with 10 rounds.
#[inline(always)]
pub fn philox(counter: [u32; 4], key: [u32; 2]) -> [u32; 4] {
    let [mut a, mut b, mut c, mut d] = counter;
    let [mut k0, mut k1] = key;
    for _ in 0..10 {
        let left = u64::from(a) * 0xD251_1F53;
        let right = u64::from(c) * 0xCD9E_8D57;
        (a, b, c, d) = ((right >> 32) as u32 ^ b ^ k0, right as u32, (left >> 32) as u32 ^ d ^ k1, left as u32);
        k0 = k0.wrapping_add(0x9E37_79B9);
        k1 = k1.wrapping_add(0xBB67_AE85);
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

    /// [`uniform`](Draw::uniform) for the index of every lane.
    #[inline(always)]
    pub fn uniform_lanes<V: Lanes<Scalar = f64>>(self, index: impl Fn(usize) -> u32, step: u64) -> V {
        self.unit_lanes(index, step)[0]
    }

    /// [`normal`](Draw::normal) for the index of every lane.
    #[inline(always)]
    pub fn normal_lanes<V: Lanes<Scalar = f64>>(self, index: impl Fn(usize) -> u32, step: u64) -> V {
        let [radius, angle] = self.unit_lanes(index, step);
        normal_of(radius, angle)
    }

    /// [`exponential`](Draw::exponential) for the index of every lane.
    #[inline(always)]
    pub fn exponential_lanes<V: Lanes<Scalar = f64>>(self, index: impl Fn(usize) -> u32, step: u64) -> V {
        -math::ln(V::splat(1.0) - self.uniform_lanes(index, step))
    }

    /// Both words of every lane's draw as numbers in `[0, 1)`.
    #[inline(always)]
    fn unit_lanes<V: Lanes<Scalar = f64>>(self, index: impl Fn(usize) -> u32, step: u64) -> [V; 2] {
        let (mut left, mut right) = ([0.0; 64], [0.0; 64]);
        for (i, (left, right)) in left.iter_mut().zip(&mut right).enumerate().take(V::LANES) {
            let words = self.words(index(i), step);
            *left = unit(words[0]);
            *right = unit(words[1]);
        }
        [V::load(&left), V::load(&right)]
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
