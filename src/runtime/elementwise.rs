//! Operations on lanes that are no instruction and no elementary function.
//!
//! In come lanes; out go lanes.
//! Never true here: that one lane sees another.

use super::lanes::{Lanes, Scalar};

/// `f(lane, x)` for every lane: the slow way, for what has no vector form.
#[inline(always)]
pub fn map<V: Lanes>(x: V, f: impl Fn(usize, V::Scalar) -> V::Scalar) -> V {
    let mut lanes = [V::Scalar::default(); 64];
    x.store(&mut lanes);
    for (lane, x) in lanes[..V::LANES].iter_mut().enumerate() {
        *x = f(lane, *x);
    }
    V::load(&lanes)
}

/// The same truth value in every lane.
#[inline(always)]
pub fn all_lanes<V: Lanes>(truth: bool) -> V::Mask {
    let zero = V::splat(V::Scalar::from_f64(0.0));
    let x = V::splat(V::Scalar::from_f64(f64::from(u8::from(truth))));
    x.gt(zero)
}
