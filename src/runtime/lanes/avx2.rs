//! The AVX2 body: two 256-bit registers per lane group.
//!
//! What comes in and goes out is [`F64x4`] and [`F32x8`], of which the lane groups are pairs.
//! The module exists only in builds whose target has AVX2 and FMA.
//! Never true here: that memory is touched outside a checked slice.
//!
//! `std::arch` intrinsics are `unsafe` to call where the target feature comes from the build and not from an attribute, and a
//! method with that attribute could be neither `#[inline(always)]` nor a safe trait method.
#![allow(unsafe_code)]

#[cfg(not(all(target_feature = "avx512f", target_feature = "avx512dq")))]
use super::Join;
use super::{Indices, Lanes, Mask, Narrow, Pair};
use std::arch::x86_64::*;
use std::ops::{Add, Div, Mul, Neg, Sub};

/// The name of this body.
pub const NAME: &str = "avx2";
/// Eight `f64` lanes: two registers.
pub type F64x8 = Pair<F64x4>;
/// Sixteen `f32` lanes: two registers.
pub type F32x16 = Pair<F32x8>;

const NEAREST: i32 = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC;
const DOWN: i32 = _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC;
const UP: i32 = _MM_FROUND_TO_POS_INF | _MM_FROUND_NO_EXC;

/// An intrinsic that works on registers only.
macro_rules! register {
    ($intrinsic:expr) => {
        // SAFETY: this module exists only where the build's target features include AVX2 and FMA, and the intrinsics
        // called through this macro take and give values, no pointers.
        unsafe { $intrinsic }
    };
}

/// One vector type and its mask. `$l` is the number of lanes; the rest are the intrinsics by what they do.
macro_rules! vector {
    (
        $(#[$doc:meta])* $vector:ident($register:ident) of $scalar:ident x $l:literal, mask $mask:ident,
        set1 $set1:ident, loadu $loadu:ident, storeu $storeu:ident, gather $gather:ident,
        add $add:ident, sub $sub:ident, mul $mul:ident, div $div:ident, xor $xor:ident, fmadd $fmadd:ident,
        min $min:ident, max $max:ident, sqrt $sqrt:ident, round $round:ident,
        and $and:ident, or $or:ident, andnot $andnot:ident, movemask $movemask:ident, cmp $cmp:ident, blend $blend:ident,
        limit $limit:literal, power $power:ident
    ) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug)]
        pub struct $vector(pub(super) $register);

        /// All bits of a lane set, or none.
        #[derive(Clone, Copy, Debug)]
        pub struct $mask($register);

        impl Mask for $mask {
            const LANES: usize = $l;

            #[inline(always)]
            fn and(self, other: Self) -> Self {
                Self(register!($and(self.0, other.0)))
            }
            #[inline(always)]
            fn or(self, other: Self) -> Self {
                Self(register!($or(self.0, other.0)))
            }
            #[inline(always)]
            fn not(self) -> Self {
                Self(register!($xor(self.0, $cmp::<_CMP_TRUE_UQ>(self.0, self.0))))
            }
            #[inline(always)]
            fn any(self) -> bool {
                self.bits() != 0
            }
            #[inline(always)]
            fn all(self) -> bool {
                self.bits() == (1 << $l) - 1
            }
            #[inline(always)]
            fn bits(self) -> u64 {
                register!($movemask(self.0)) as u64
            }
        }

        impl Add for $vector {
            type Output = Self;
            #[inline(always)]
            fn add(self, other: Self) -> Self {
                Self(register!($add(self.0, other.0)))
            }
        }
        impl Sub for $vector {
            type Output = Self;
            #[inline(always)]
            fn sub(self, other: Self) -> Self {
                Self(register!($sub(self.0, other.0)))
            }
        }
        impl Mul for $vector {
            type Output = Self;
            #[inline(always)]
            fn mul(self, other: Self) -> Self {
                Self(register!($mul(self.0, other.0)))
            }
        }
        impl Div for $vector {
            type Output = Self;
            #[inline(always)]
            fn div(self, other: Self) -> Self {
                Self(register!($div(self.0, other.0)))
            }
        }
        impl Neg for $vector {
            type Output = Self;
            #[inline(always)]
            fn neg(self) -> Self {
                Self(register!($xor(self.0, $set1(-0.0))))
            }
        }

        impl Lanes for $vector {
            type Scalar = $scalar;
            type Mask = $mask;
            const LANES: usize = $l;

            #[inline(always)]
            fn splat(x: $scalar) -> Self {
                Self(register!($set1(x)))
            }
            #[inline(always)]
            fn load(from: &[$scalar]) -> Self {
                let from = &from[..$l];
                // SAFETY: `from` holds all the lanes that are read; unaligned addresses are allowed.
                Self(unsafe { $loadu(from.as_ptr()) })
            }
            #[inline(always)]
            fn store(self, to: &mut [$scalar]) {
                let to = &mut to[..$l];
                // SAFETY: `to` holds all the lanes that are written; unaligned addresses are allowed.
                unsafe { $storeu(to.as_mut_ptr(), self.0) }
            }
            #[inline(always)]
            fn gather(from: &[$scalar], index: Indices<'_>) -> Self {
                assert!(index.below() <= from.len(), "an index is out of bounds");
                let index = index.list().first_chunk().expect("there is an index for every lane");
                // SAFETY: all indices are below the length.
                Self(unsafe { $gather(from, index) })
            }
            #[inline(always)]
            fn mul_add(self, factor: Self, term: Self) -> Self {
                Self(register!($fmadd(self.0, factor.0, term.0)))
            }
            #[inline(always)]
            fn min(self, other: Self) -> Self {
                Self(register!($min(self.0, other.0)))
            }
            #[inline(always)]
            fn max(self, other: Self) -> Self {
                Self(register!($max(self.0, other.0)))
            }
            #[inline(always)]
            fn abs(self) -> Self {
                Self(register!($andnot($set1(-0.0), self.0)))
            }
            #[inline(always)]
            fn sqrt(self) -> Self {
                Self(register!($sqrt(self.0)))
            }
            #[inline(always)]
            fn floor(self) -> Self {
                Self(register!($round::<DOWN>(self.0)))
            }
            #[inline(always)]
            fn ceil(self) -> Self {
                Self(register!($round::<UP>(self.0)))
            }
            #[inline(always)]
            fn round_even(self) -> Self {
                Self(register!($round::<NEAREST>(self.0)))
            }
            #[inline(always)]
            fn lt(self, other: Self) -> $mask {
                $mask(register!($cmp::<_CMP_LT_OQ>(self.0, other.0)))
            }
            #[inline(always)]
            fn le(self, other: Self) -> $mask {
                $mask(register!($cmp::<_CMP_LE_OQ>(self.0, other.0)))
            }
            #[inline(always)]
            fn gt(self, other: Self) -> $mask {
                $mask(register!($cmp::<_CMP_GT_OQ>(self.0, other.0)))
            }
            #[inline(always)]
            fn ge(self, other: Self) -> $mask {
                $mask(register!($cmp::<_CMP_GE_OQ>(self.0, other.0)))
            }
            #[inline(always)]
            fn eq(self, other: Self) -> $mask {
                $mask(register!($cmp::<_CMP_EQ_OQ>(self.0, other.0)))
            }
            #[inline(always)]
            fn ne(self, other: Self) -> $mask {
                $mask(register!($cmp::<_CMP_NEQ_UQ>(self.0, other.0)))
            }
            #[inline(always)]
            fn select(mask: $mask, yes: Self, no: Self) -> Self {
                Self(register!($blend(no.0, yes.0, mask.0)))
            }
            #[inline(always)]
            fn split_exp2(self) -> (Self, Self) {
                // In this order NaN passes both bounds.
                let x = Self::splat($limit).min(Self::splat(-$limit).max(self));
                let n = x.round_even();
                (n, x - n)
            }
            #[inline(always)]
            fn scale(self, n: Self) -> Self {
                // Two factors, because 2^n alone may lie outside the exponent range; the first product is exact.
                let half = (n * Self::splat(0.5)).floor();
                self * $power(half) * $power(n - half)
            }
            #[inline(always)]
            fn frexp(self) -> (Self, Self) {
                let (mut m, mut e) = ([0.0; $l], [0.0; $l]);
                self.store(&mut m);
                for i in 0..$l {
                    (m[i], e[i]) = m[i].frexp();
                }
                (Self::load(&m), Self::load(&e))
            }
        }
    };
}

vector! {
    /// Four `f64` lanes.
    F64x4(__m256d) of f64 x 4, mask Mask4,
    set1 _mm256_set1_pd, loadu _mm256_loadu_pd, storeu _mm256_storeu_pd, gather gather_f64,
    add _mm256_add_pd, sub _mm256_sub_pd, mul _mm256_mul_pd, div _mm256_div_pd, xor _mm256_xor_pd, fmadd _mm256_fmadd_pd,
    min _mm256_min_pd, max _mm256_max_pd, sqrt _mm256_sqrt_pd, round _mm256_round_pd,
    and _mm256_and_pd, or _mm256_or_pd, andnot _mm256_andnot_pd, movemask _mm256_movemask_pd, cmp _mm256_cmp_pd, blend _mm256_blendv_pd,
    limit 1100.0, power power_f64
}

vector! {
    /// Eight `f32` lanes.
    F32x8(__m256) of f32 x 8, mask Mask8,
    set1 _mm256_set1_ps, loadu _mm256_loadu_ps, storeu _mm256_storeu_ps, gather gather_f32,
    add _mm256_add_ps, sub _mm256_sub_ps, mul _mm256_mul_ps, div _mm256_div_ps, xor _mm256_xor_ps, fmadd _mm256_fmadd_ps,
    min _mm256_min_ps, max _mm256_max_ps, sqrt _mm256_sqrt_ps, round _mm256_round_ps,
    and _mm256_and_ps, or _mm256_or_ps, andnot _mm256_andnot_ps, movemask _mm256_movemask_ps, cmp _mm256_cmp_ps, blend _mm256_blendv_ps,
    limit 160.0, power power_f32
}

/// `2^k` for integers `k` in the range of normal exponents.
#[inline(always)]
fn power_f64(k: F64x4) -> F64x4 {
    // Adding 1.5 * 2^52 leaves k + 1023 in the low bits, from where the shift takes it to the exponent.
    let biased = k + F64x4::splat(6_755_399_441_055_744.0 + 1023.0);
    F64x4(register!(_mm256_castsi256_pd(_mm256_slli_epi64::<52>(_mm256_castpd_si256(biased.0)))))
}

/// `2^k` for integers `k` in the range of normal exponents.
#[inline(always)]
fn power_f32(k: F32x8) -> F32x8 {
    // Adding 1.5 * 2^23 leaves k + 127 in the low bits, from where the shift takes it to the exponent.
    let biased = k + F32x8::splat(12_582_912.0 + 127.0);
    F32x8(register!(_mm256_castsi256_ps(_mm256_slli_epi32::<23>(_mm256_castps_si256(biased.0)))))
}

/// Loads one by one, which is faster than the gather instruction.
///
/// # Safety
/// All indices are below the length.
#[inline(always)]
unsafe fn gather_f64(from: &[f64], index: &[u32; 4]) -> __m256d {
    // SAFETY: the caller vouches for it.
    let at = |lane: usize| unsafe { *from.get_unchecked(index[lane] as usize) };
    register!(_mm256_set_pd(at(3), at(2), at(1), at(0)))
}

/// See [`gather_f64`].
///
/// # Safety
/// All indices are below the length.
#[inline(always)]
unsafe fn gather_f32(from: &[f32], index: &[u32; 8]) -> __m256 {
    // SAFETY: the caller vouches for it.
    let at = |lane: usize| unsafe { *from.get_unchecked(index[lane] as usize) };
    register!(_mm256_set_ps(at(7), at(6), at(5), at(4), at(3), at(2), at(1), at(0)))
}

impl Narrow for F64x8 {
    type Single = F32x8;

    #[inline(always)]
    fn narrow(self) -> F32x8 {
        let [low, high] = [self.0, self.1].map(|half| register!(_mm256_cvtpd_ps(half.0)));
        F32x8(register!(_mm256_set_m128(high, low)))
    }
    #[inline(always)]
    fn widen(single: F32x8) -> F64x8 {
        let low = register!(_mm256_castps256_ps128(single.0));
        let high = register!(_mm256_extractf128_ps::<1>(single.0));
        let [low, high] = [low, high].map(|half| F64x4(register!(_mm256_cvtps_pd(half))));
        Pair(low, high)
    }
}

// With AVX-512, two of them are one register of that body.
#[cfg(not(all(target_feature = "avx512f", target_feature = "avx512dq")))]
impl Join for F32x8 {
    type Twice = Pair<F32x8>;

    #[inline(always)]
    fn join(self, other: Self) -> Pair<F32x8> {
        Pair(self, other)
    }
    #[inline(always)]
    fn halves(twice: Pair<F32x8>) -> (Self, Self) {
        (twice.0, twice.1)
    }
}
