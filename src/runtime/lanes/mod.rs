//! Groups of SIMD lanes with one meaning on every machine.
//!
//! What comes in is elementwise code written once over [`Lanes`]; what goes out is the same arithmetic on one number (`f64`,
//! `f32`), on one vector register ([`F64x8`], [`F32x16`]) or on two ([`Pair`]).
//! The bodies (AVX-512, AVX2 with FMA, plain arrays) are chosen by the target features of the build, and the code around them
//! does not change.
//! Never true here: that a lane sees its neighbours, that a result depends on the body (NaN payloads and signs excepted), or
//! that a comparison with NaN is anything but false (`ne`: true).

use std::ops::{Add, Div, Mul, Neg, Sub};

#[cfg(all(target_arch = "x86_64", target_feature = "avx2", target_feature = "fma"))]
pub mod avx2;
#[cfg(all(target_arch = "x86_64", target_feature = "avx512f", target_feature = "avx512dq"))]
pub mod avx512;
mod indices;
mod pair;
pub mod portable;
mod prefetch;
#[cfg(test)]
pub(crate) mod tests;

#[cfg(all(target_arch = "x86_64", target_feature = "avx512f", target_feature = "avx512dq"))]
pub use avx512 as body;

#[cfg(all(
    target_arch = "x86_64",
    target_feature = "avx2",
    target_feature = "fma",
    not(all(target_feature = "avx512f", target_feature = "avx512dq"))
))]
pub use avx2 as body;

#[cfg(not(all(
    target_arch = "x86_64",
    any(
        all(target_feature = "avx512f", target_feature = "avx512dq"),
        all(target_feature = "avx2", target_feature = "fma")
    )
)))]
pub use portable as body;

pub use body::{F32x16, F64x8};
pub use indices::{IndexTable, Indices};
pub use pair::Pair;
pub use prefetch::ask_for;

/// The number type of a lane: `f64` or `f32`, itself a group of one lane.
pub trait Scalar: Lanes<Scalar = Self, Mask = bool> + PartialOrd + Default + super::math::Coefficients {
    /// The nearest number of this type (exact for `f64`).
    fn from_f64(x: f64) -> Self;
    /// The same number as `f64` (exact).
    fn to_f64(self) -> f64;
}

/// Are all of them finite? Looks at many together, which vectors do.
pub fn all_finite<T: Scalar>(numbers: &[T]) -> bool {
    let finite = |all: bool, x: &T| all & x.to_f64().is_finite();
    numbers.chunks(256).all(|some| some.iter().fold(true, finite))
}

/// A truth value per lane.
pub trait Mask: Copy {
    /// How many lanes there are: at most 64.
    const LANES: usize;

    /// True where both are.
    fn and(self, other: Self) -> Self;
    /// True where either is.
    fn or(self, other: Self) -> Self;
    /// True where this is false.
    fn not(self) -> Self;
    /// Whether some lane is true.
    fn any(self) -> bool;
    /// Whether every lane is true.
    fn all(self) -> bool;
    /// Lane `i` as bit `i`; the bits past the last lane are zero.
    fn bits(self) -> u64;
}

/// A group of `f64` lanes that has a group of as many `f32` lanes, for what need not be computed in double precision.
pub trait Narrow: Lanes<Scalar = f64> {
    /// The group of as many `f32` lanes.
    type Single: Lanes<Scalar = f32>;

    /// The nearest `f32` of every lane.
    fn narrow(self) -> Self::Single;
    /// The same number in every lane (exact).
    fn widen(single: Self::Single) -> Self;
}

/// A group of `f32` lanes that joins another one to a group of twice as many, such as [`Pair`] or a wider register.
pub trait Join: Lanes<Scalar = f32> {
    /// The group of twice as many lanes.
    type Twice: Join;

    /// Both, the lanes of `self` first.
    fn join(self, other: Self) -> Self::Twice;
    /// The halves.
    fn halves(twice: Self::Twice) -> (Self, Self);
}

/// A group of `LANES` numbers that are computed with together.
///
/// `+ - * /`, [`mul_add`](Lanes::mul_add) and [`sqrt`](Lanes::sqrt) are those of IEEE 754, rounded to nearest even, per lane.
/// On a target without a fused multiply-add instruction `mul_add` is still fused (a library call, slow).
///
/// On a plain `f64` or `f32` the inherent `min`, `max`, `floor` and so on of `std` hide those of this trait; write
/// `Lanes::min(a, b)` where the type is not generic, since `min` and `max` differ on NaN.
pub trait Lanes:
    Copy + Add<Output = Self> + Sub<Output = Self> + Mul<Output = Self> + Div<Output = Self> + Neg<Output = Self>
{
    /// The number type of one lane.
    type Scalar: Scalar;
    /// One truth value per lane.
    type Mask: Mask;
    /// How many lanes there are.
    const LANES: usize;

    /// The same number in every lane.
    fn splat(x: Self::Scalar) -> Self;
    /// The first `LANES` numbers of `from`. Panics if there are fewer.
    fn load(from: &[Self::Scalar]) -> Self;
    /// Writes the lanes to the first `LANES` places of `to`. Panics if there are fewer.
    fn store(self, to: &mut [Self::Scalar]);
    /// Lane `i` is `from[index[i]]`. Panics if `index` is shorter than `LANES` or `from` ends before the bound of `index`.
    fn gather(from: &[Self::Scalar], index: Indices<'_>) -> Self;

    /// `self * factor + term`, rounded once.
    fn mul_add(self, factor: Self, term: Self) -> Self;
    /// `if self < other { self } else { other }`: `other` where either is NaN or both are zeros.
    fn min(self, other: Self) -> Self;
    /// `if self > other { self } else { other }`: `other` where either is NaN or both are zeros.
    fn max(self, other: Self) -> Self;
    /// The sign bit cleared.
    fn abs(self) -> Self;
    /// The square root, correctly rounded; NaN below zero.
    fn sqrt(self) -> Self;
    /// The largest integer not above.
    fn floor(self) -> Self;
    /// The smallest integer not below.
    fn ceil(self) -> Self;
    /// The nearest integer, ties to even.
    fn round_even(self) -> Self;

    /// `self < other`; false with NaN.
    fn lt(self, other: Self) -> Self::Mask;
    /// `self <= other`; false with NaN.
    fn le(self, other: Self) -> Self::Mask;
    /// `self > other`; false with NaN.
    fn gt(self, other: Self) -> Self::Mask;
    /// `self >= other`; false with NaN.
    fn ge(self, other: Self) -> Self::Mask;
    /// `self == other`; false with NaN.
    fn eq(self, other: Self) -> Self::Mask;
    /// `self != other`; true with NaN.
    fn ne(self, other: Self) -> Self::Mask;
    /// `if mask { yes } else { no }`, lane by lane.
    fn select(mask: Self::Mask, yes: Self, no: Self) -> Self;

    /// `(n, r)` with `n` the nearest integer (ties to even), `r = self - n` (exact, in `[-0.5, 0.5]`), made for
    /// `p(r).scale(n)`.
    ///
    /// Far outside the exponent range (beyond ±1100 for `f64`, ±160 for `f32`) `n` may be any integer or infinity past that
    /// bound and `r` any number in `[-0.5, 0.5]`: after [`scale`](Lanes::scale) the result is 0 or infinity all the same.
    /// NaN gives NaN twice.
    fn split_exp2(self) -> (Self, Self);
    /// `self * 2^n`, rounded once, gradual underflow and overflow to infinity included.
    ///
    /// `n` is an integer in `[-2044, 2046]` (`f32`: `[-252, 254]`), or came from [`split_exp2`](Lanes::split_exp2); for finite,
    /// normal `self` with magnitude in `[2^-100, 2^100]` (`f32`: `[2^-20, 2^20]`) or zero, and NaN for NaN. With other operands
    /// the result is unspecified and may differ between bodies.
    fn scale(self, n: Self) -> Self;
    /// `(m, e)` with `self = m * 2^e`, `m` in `[0.75, 1.5)` and `e` an integer, for positive finite numbers, subnormal ones
    /// included; unspecified numbers for the rest.
    fn frexp(self) -> (Self, Self);
}
