//! Numbers of a Poisson distribution by inversion: adding up probabilities until the sum exceeds a uniform number.
//!
//! What comes in is a uniform number and a mean per lane; what goes out is a whole number per lane, or NaN.
//! Never true here: a lane's number depends on its neighbours, or a term of the sum is 0 before the sum is complete.

use super::super::lanes::{Lanes, Mask};
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
