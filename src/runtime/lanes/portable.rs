//! The body without intrinsics: plain numbers as groups of one lane, and arrays of them.
//!
//! What comes in and goes out is `f64`, `f32` or [`Array`]; the scalar operations here define what every other body must give.
//! LLVM turns the array loops into whatever vectors the target has.
//! Never true here: that an operation differs between a scalar and an array lane.

use super::{Indices, Join, Lanes, Mask, Narrow, Pair, Scalar};
use std::array::from_fn;
use std::ops::{Add, Div, Mul, Neg, Sub};

/// The name of this body.
pub const NAME: &str = "portable";
/// Eight `f64` lanes.
pub type F64x8 = Array<f64, 8>;
/// Sixteen `f32` lanes.
pub type F32x16 = Array<f32, 16>;

impl Mask for bool {
    const LANES: usize = 1;

    #[inline(always)]
    fn and(self, other: Self) -> Self {
        self & other
    }
    #[inline(always)]
    fn or(self, other: Self) -> Self {
        self | other
    }
    #[inline(always)]
    fn not(self) -> Self {
        !self
    }
    #[inline(always)]
    fn any(self) -> bool {
        self
    }
    #[inline(always)]
    fn all(self) -> bool {
        self
    }
    #[inline(always)]
    fn bits(self) -> u64 {
        u64::from(self)
    }
}

/// One number as a group of one lane. `$limit` bounds the exponents that differ in their result, `$mantissa` is the number of
/// stored mantissa bits, `$bias` the exponent bias.
macro_rules! scalar {
    ($float:ident, $bits:ident, $int:ident, limit $limit:literal, mantissa $mantissa:literal, bias $bias:literal) => {
        impl Scalar for $float {
            #[inline(always)]
            fn from_f64(x: f64) -> Self {
                x as Self
            }
            #[inline(always)]
            fn to_f64(self) -> f64 {
                f64::from(self)
            }
        }

        impl Lanes for $float {
            type Scalar = Self;
            type Mask = bool;
            const LANES: usize = 1;

            #[inline(always)]
            fn splat(x: Self) -> Self {
                x
            }
            #[inline(always)]
            fn load(from: &[Self]) -> Self {
                from[0]
            }
            #[inline(always)]
            fn store(self, to: &mut [Self]) {
                to[0] = self;
            }
            #[inline(always)]
            fn gather(from: &[Self], index: Indices<'_>) -> Self {
                from[index.list()[0] as usize]
            }
            #[inline(always)]
            fn mul_add(self, factor: Self, term: Self) -> Self {
                $float::mul_add(self, factor, term)
            }
            #[inline(always)]
            fn min(self, other: Self) -> Self {
                if self < other { self } else { other }
            }
            #[inline(always)]
            fn max(self, other: Self) -> Self {
                if self > other { self } else { other }
            }
            #[inline(always)]
            fn abs(self) -> Self {
                $float::abs(self)
            }
            #[inline(always)]
            fn sqrt(self) -> Self {
                $float::sqrt(self)
            }
            #[inline(always)]
            fn floor(self) -> Self {
                $float::floor(self)
            }
            #[inline(always)]
            fn ceil(self) -> Self {
                $float::ceil(self)
            }
            #[inline(always)]
            fn round_even(self) -> Self {
                $float::round_ties_even(self)
            }
            #[inline(always)]
            fn lt(self, other: Self) -> bool {
                self < other
            }
            #[inline(always)]
            fn le(self, other: Self) -> bool {
                self <= other
            }
            #[inline(always)]
            fn gt(self, other: Self) -> bool {
                self > other
            }
            #[inline(always)]
            fn ge(self, other: Self) -> bool {
                self >= other
            }
            #[inline(always)]
            fn eq(self, other: Self) -> bool {
                self == other
            }
            #[inline(always)]
            fn ne(self, other: Self) -> bool {
                self != other
            }
            #[inline(always)]
            fn select(mask: bool, yes: Self, no: Self) -> Self {
                if mask { yes } else { no }
            }
            #[inline(always)]
            fn split_exp2(self) -> (Self, Self) {
                // In this order NaN passes both bounds.
                let x = Lanes::min($limit, Lanes::max(-$limit, self));
                let n = Lanes::round_even(x);
                (n, x - n)
            }
            #[inline(always)]
            fn scale(self, n: Self) -> Self {
                // Adding 1.5 * 2^mantissa leaves the integer n in the low bits, without a slow saturating conversion.
                const ROUNDER: $float = 1.5 * (1u64 << $mantissa) as $float;
                let n = (n + ROUNDER).to_bits().wrapping_sub(ROUNDER.to_bits()) as $int;
                // Two factors, because 2^n alone may lie outside the exponent range; the first product is exact.
                let power = |k: $int| $float::from_bits((k.wrapping_add($bias) as $bits) << $mantissa);
                let half = n >> 1;
                self * power(half) * power(n.wrapping_sub(half))
            }
            #[inline(always)]
            fn frexp(self) -> (Self, Self) {
                const MANY: $float = (1u64 << ($mantissa + 2)) as $float;
                const LOWEST: $int = $float::to_bits(0.75) as $int;
                let tiny = self < $float::MIN_POSITIVE;
                let (x, shift) = if tiny { (self * MANY, ($mantissa + 2) as $float) } else { (self, 0.0) };
                let bits = x.to_bits() as $int;
                let e = bits.wrapping_sub(LOWEST) >> $mantissa;
                let m = $float::from_bits(bits.wrapping_sub(e << $mantissa) as $bits);
                (m, e as $float - shift)
            }
        }
    };
}
scalar!(f64, u64, i64, limit 1100.0, mantissa 52, bias 1023);
scalar!(f32, u32, i32, limit 160.0, mantissa 23, bias 127);

/// `N` numbers side by side; each operation is the scalar's, lane by lane.
#[derive(Clone, Copy, Debug, PartialEq)]
#[repr(align(64))]
pub struct Array<T, const N: usize>(pub [T; N]);

/// `N` truth values side by side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ArrayMask<const N: usize>([bool; N]);

macro_rules! operators {
    ($($operator:ident $method:ident),*) => {$(
        impl<T: Scalar, const N: usize> $operator for Array<T, N> {
            type Output = Self;
            #[inline(always)]
            fn $method(self, other: Self) -> Self {
                Self(from_fn(|i| self.0[i].$method(other.0[i])))
            }
        }
    )*};
}
operators!(Add add, Sub sub, Mul mul, Div div);

impl<T: Scalar, const N: usize> Neg for Array<T, N> {
    type Output = Self;
    #[inline(always)]
    fn neg(self) -> Self {
        Self(from_fn(|i| -self.0[i]))
    }
}

impl<const N: usize> Mask for ArrayMask<N> {
    const LANES: usize = N;

    #[inline(always)]
    fn and(self, other: Self) -> Self {
        Self(from_fn(|i| self.0[i] & other.0[i]))
    }
    #[inline(always)]
    fn or(self, other: Self) -> Self {
        Self(from_fn(|i| self.0[i] | other.0[i]))
    }
    #[inline(always)]
    fn not(self) -> Self {
        Self(from_fn(|i| !self.0[i]))
    }
    #[inline(always)]
    fn any(self) -> bool {
        self.0.iter().fold(false, |any, &lane| any | lane)
    }
    #[inline(always)]
    fn all(self) -> bool {
        self.0.iter().fold(true, |all, &lane| all & lane)
    }
    #[inline(always)]
    fn bits(self) -> u64 {
        (0..N).fold(0, |bits, i| bits | u64::from(self.0[i]) << i)
    }
}

/// Methods that apply the scalar's own method to every lane.
macro_rules! lanewise {
    ($(fn $name:ident(self $(, $argument:ident)*) -> $wrapper:ident;)*) => {$(
        #[inline(always)]
        fn $name(self $(, $argument: Self)*) -> $wrapper!() {
            $wrapper!(from_fn(|i| Lanes::$name(self.0[i] $(, $argument.0[i])*)))
        }
    )*};
}

macro_rules! numbers {
    () => {
        Self
    };
    ($lanes:expr) => {
        Self($lanes)
    };
}

macro_rules! truths {
    () => { ArrayMask<N> };
    ($lanes:expr) => { ArrayMask($lanes) };
}

impl<T: Scalar, const N: usize> Lanes for Array<T, N> {
    type Scalar = T;
    type Mask = ArrayMask<N>;
    const LANES: usize = N;

    #[inline(always)]
    fn splat(x: T) -> Self {
        Self([x; N])
    }
    #[inline(always)]
    fn load(from: &[T]) -> Self {
        let from = &from[..N];
        Self(from_fn(|i| from[i]))
    }
    #[inline(always)]
    fn store(self, to: &mut [T]) {
        to[..N].copy_from_slice(&self.0);
    }
    #[inline(always)]
    fn gather(from: &[T], index: Indices<'_>) -> Self {
        let index = &index.list()[..N];
        Self(from_fn(|i| from[index[i] as usize]))
    }
    lanewise! {
        fn mul_add(self, factor, term) -> numbers;
        fn min(self, other) -> numbers;
        fn max(self, other) -> numbers;
        fn abs(self) -> numbers;
        fn sqrt(self) -> numbers;
        fn floor(self) -> numbers;
        fn ceil(self) -> numbers;
        fn round_even(self) -> numbers;
        fn lt(self, other) -> truths;
        fn le(self, other) -> truths;
        fn gt(self, other) -> truths;
        fn ge(self, other) -> truths;
        fn eq(self, other) -> truths;
        fn ne(self, other) -> truths;
        fn scale(self, n) -> numbers;
    }
    #[inline(always)]
    fn select(mask: ArrayMask<N>, yes: Self, no: Self) -> Self {
        Self(from_fn(|i| T::select(mask.0[i], yes.0[i], no.0[i])))
    }
    #[inline(always)]
    fn split_exp2(self) -> (Self, Self) {
        let both: [(T, T); N] = from_fn(|i| self.0[i].split_exp2());
        (Self(both.map(|x| x.0)), Self(both.map(|x| x.1)))
    }
    #[inline(always)]
    fn frexp(self) -> (Self, Self) {
        let both: [(T, T); N] = from_fn(|i| self.0[i].frexp());
        (Self(both.map(|x| x.0)), Self(both.map(|x| x.1)))
    }
}

impl Narrow for f64 {
    type Single = f32;

    #[inline(always)]
    fn narrow(self) -> f32 {
        self as f32
    }
    #[inline(always)]
    fn widen(single: f32) -> f64 {
        f64::from(single)
    }
}

impl<const N: usize> Narrow for Array<f64, N> {
    type Single = Array<f32, N>;

    #[inline(always)]
    fn narrow(self) -> Array<f32, N> {
        Array(self.0.map(|x| x as f32))
    }
    #[inline(always)]
    fn widen(single: Array<f32, N>) -> Self {
        Array(single.0.map(f64::from))
    }
}

impl<const N: usize> Join for Array<f32, N> {
    type Twice = Pair<Self>;

    #[inline(always)]
    fn join(self, other: Self) -> Pair<Self> {
        Pair(self, other)
    }
    #[inline(always)]
    fn halves(twice: Pair<Self>) -> (Self, Self) {
        (twice.0, twice.1)
    }
}
