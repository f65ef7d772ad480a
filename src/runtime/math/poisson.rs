//! Numbers of a Poisson distribution by inversion: adding up probabilities until the sum exceeds a uniform number.
//!
//! What comes in is a uniform number and a mean per lane, or a mean for all lanes; what goes out is a whole number per lane, or NaN.
//! Never true here: a lane's number depends on its neighbours, or a term of the sum is 0 before the sum is complete.

use super::super::lanes::{Lanes, Mask, Scalar};
use super::{Coefficients, exp, number};

/// The smallest whole number `k` with `u < P(N <= k)`, where `N` is Poisson with this mean, all in the lane's precision:
/// `p[0] = e^-mean`, `p[k] = p[k-1] * (mean / k)`, added up from the first on.
///
/// Where the sum does not change any more, it is complete, and `k` the last that changed it: what numbers below 1 that no sum
/// exceeds get, and numbers from 1 on. Those below 0 get 0. NaN, means below 0 and means above
/// [`POISSON_HIGH`](Coefficients::POISSON_HIGH) give NaN.
#[inline(always)]
pub fn poisson<V: Lanes>(u: V, mean: V) -> V {
    let known = u.eq(u).and(mean.ge(number(0.0))).and(mean.le(V::splat(V::Scalar::POISSON_HIGH)));
    let mut term = exp(-mean);
    let (mut sum, mut active) = (term, known);
    let (mut count, mut next) = (number::<V>(0.0), number::<V>(1.0));
    // It ends: past twice the mean a term is less than half the one before, so that soon none changes the sum.
    // It does not end too early: up to the mean no term is less than those before it, which are too few to hide it in their sum.
    loop {
        term = term * (mean / next);
        let more = sum + term;
        active = active.and(u.ge(sum)).and(more.gt(sum));
        if !active.any() {
            return V::select(known, count, number(f64::NAN));
        }
        count = V::select(active, next, count);
        sum = more;
        next = next + number(1.0);
    }
}

/// How many sums of a distribution are kept: all, of a mean up to about 50.
const MOST: usize = 128;

/// The sums of one distribution, for many uniform numbers: those up to a number are counted.
#[derive(Clone, Debug)]
pub struct Poisson<S> {
    mean: S,
    /// What a number counts from: 0, or NaN where the mean is none that [`poisson`] takes.
    origin: S,
    /// Those that another one exceeds: `P(N <= 0)`, `P(N <= 1)`, ...
    sums: [S; MOST],
    /// How many they are; none if they are too many.
    count: Option<usize>,
}

impl<S: Scalar> Poisson<S> {
    /// Adds up the probabilities for a mean.
    pub fn new(mean: S) -> Poisson<S> {
        let (zero, one) = (S::from_f64(0.0), S::from_f64(1.0));
        let known = mean >= zero && mean <= S::POISSON_HIGH;
        let origin = if known { zero } else { S::from_f64(f64::NAN) };
        let mut all = Poisson { mean, origin, sums: [zero; MOST], count: None };
        let (mut term, mut next) = (exp(-mean), one);
        let mut sum = term;
        for (count, place) in all.sums.iter_mut().enumerate() {
            term = term * (mean / next);
            let more = sum + term;
            if !(known && more > sum) {
                all.count = Some(count);
                break;
            }
            *place = sum;
            sum = more;
            next = next + one;
        }
        all
    }

    /// What [`poisson`] gives for this mean, bit for bit.
    #[inline(always)]
    pub fn number<V: Lanes<Scalar = S>>(&self, u: V) -> V {
        let Some(sums) = self.count.and_then(|count| self.sums.get(..count)) else {
            return poisson(u, V::splat(self.mean));
        };
        let mut count = V::splat(self.origin);
        for &sum in sums {
            let reached = u.ge(V::splat(sum));
            if !reached.any() {
                break;
            }
            count = V::select(reached, count + number(1.0), count);
        }
        V::select(u.eq(u), count, number(f64::NAN))
    }
}
