//! The AVX-512 body: one 512-bit register per lane group.
//!
//! What comes in and goes out is [`F64x8`] and [`F32x16`]; each method is one to three instructions.
//! The module exists only in builds whose target has AVX-512 F and DQ.
//! Never true here: that memory is touched outside a checked slice.
//!
//! `std::arch` intrinsics are `unsafe` to call where the target feature comes from the build and not from an attribute, and a
//! method with that attribute could be neither `#[inline(always)]` nor a safe trait method.
#![allow(unsafe_code)]

use super::avx2::F32x8;
use super::{Indices, Join, Lanes, Mask, Narrow, Pair};
use std::arch::x86_64::*;
use std::ops::{Add, Div, Mul, Neg, Sub};

/// The name of this body.
pub const NAME: &str = "avx512";

const NEAREST: i32 = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC;
const DOWN: i32 = _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC;
const UP: i32 = _MM_FROUND_TO_POS_INF | _MM_FROUND_NO_EXC;

/// An intrinsic that works on registers only.
macro_rules! register {
    ($intrinsic:expr) => {
        // SAFETY: this module exists only where the build's target features include AVX-512 F and DQ, and the intrinsics
        // called through this macro take and give values, no pointers.
        unsafe { $intrinsic }
    };
}

/// One vector type and its mask. `$l` is the number of lanes; the rest are the intrinsics by what they do.
macro_rules! vector {
    (
        $(#[$doc:meta])* $vector:ident($register:ident) of $scalar:ident x $l:literal, mask $mask:ident($bits:ident),
        set1 $set1:ident, loadu $loadu:ident, storeu $storeu:ident, gather $gather:ident,
        add $add:ident, sub $sub:ident, mul $mul:ident, div $div:ident, xor $xor:ident, fmadd $fmadd:ident,
        min $min:ident, max $max:ident, abs $abs:ident, sqrt $sqrt:ident, roundscale $roundscale:ident, reduce $reduce:ident,
        scalef $scalef:ident, getexp $getexp:ident, getmant $getmant:ident, mask_add $mask_add:ident,
        cmp $cmp:ident, blend $blend:ident
    ) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug)]
        pub struct $vector($register);

        /// One bit per lane.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub struct $mask($bits);

        impl Mask for $mask {
            const LANES: usize = $l;

            #[inline(always)]
            fn and(self, other: Self) -> Self {
                Self(self.0 & other.0)
            }
            #[inline(always)]
            fn or(self, other: Self) -> Self {
                Self(self.0 | other.0)
            }
            #[inline(always)]
            fn not(self) -> Self {
                Self(!self.0)
            }
            #[inline(always)]
            fn any(self) -> bool {
                self.0 != 0
            }
            #[inline(always)]
            fn all(self) -> bool {
                self.0 == $bits::MAX
            }
            #[inline(always)]
            fn bits(self) -> u64 {
                u64::from(self.0)
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
                Self(register!($abs(self.0)))
            }
            #[inline(always)]
            fn sqrt(self) -> Self {
                Self(register!($sqrt(self.0)))
            }
            #[inline(always)]
            fn floor(self) -> Self {
                Self(register!($roundscale::<DOWN>(self.0)))
            }
            #[inline(always)]
            fn ceil(self) -> Self {
                Self(register!($roundscale::<UP>(self.0)))
            }
            #[inline(always)]
            fn round_even(self) -> Self {
                Self(register!($roundscale::<NEAREST>(self.0)))
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
                Self(register!($blend(mask.0, no.0, yes.0)))
            }
            #[inline(always)]
            fn split_exp2(self) -> (Self, Self) {
                // The reduced argument of an infinity is zero.
                (self.round_even(), Self(register!($reduce::<NEAREST>(self.0))))
            }
            #[inline(always)]
            fn scale(self, n: Self) -> Self {
                Self(register!($scalef(self.0, n.0)))
            }
            #[inline(always)]
            fn frexp(self) -> (Self, Self) {
                let m = Self(register!(
                    $getmant::<_MM_MANT_NORM_P75_1P5, _MM_MANT_SIGN_SRC>(self.0)
                ));
                let one = Self::splat(1.0);
                let e = register!($getexp(self.0));
                (m, Self(register!($mask_add(e, m.lt(one).0, e, one.0))))
            }
        }
    };
}

vector! {
    /// Eight `f64` lanes.
    F64x8(__m512d) of f64 x 8, mask Mask8(u8),
    set1 _mm512_set1_pd, loadu _mm512_loadu_pd, storeu _mm512_storeu_pd, gather gather_f64,
    add _mm512_add_pd, sub _mm512_sub_pd, mul _mm512_mul_pd, div _mm512_div_pd, xor _mm512_xor_pd, fmadd _mm512_fmadd_pd,
    min _mm512_min_pd, max _mm512_max_pd, abs _mm512_abs_pd, sqrt _mm512_sqrt_pd, roundscale _mm512_roundscale_pd, reduce _mm512_reduce_pd,
    scalef _mm512_scalef_pd, getexp _mm512_getexp_pd, getmant _mm512_getmant_pd, mask_add _mm512_mask_add_pd,
    cmp _mm512_cmp_pd_mask, blend _mm512_mask_blend_pd
}

vector! {
    /// Sixteen `f32` lanes.
    F32x16(__m512) of f32 x 16, mask Mask16(u16),
    set1 _mm512_set1_ps, loadu _mm512_loadu_ps, storeu _mm512_storeu_ps, gather gather_f32,
    add _mm512_add_ps, sub _mm512_sub_ps, mul _mm512_mul_ps, div _mm512_div_ps, xor _mm512_xor_ps, fmadd _mm512_fmadd_ps,
    min _mm512_min_ps, max _mm512_max_ps, abs _mm512_abs_ps, sqrt _mm512_sqrt_ps, roundscale _mm512_roundscale_ps, reduce _mm512_reduce_ps,
    scalef _mm512_scalef_ps, getexp _mm512_getexp_ps, getmant _mm512_getmant_ps, mask_add _mm512_mask_add_ps,
    cmp _mm512_cmp_ps_mask, blend _mm512_mask_blend_ps
}

/// Eight whole numbers of 32 bits for random numbers, each in the lower half of 64 bits. What is in the upper halves is of no account.
#[derive(Clone, Copy, Debug)]
pub struct U32x8(__m512i);

impl U32x8 {
    /// The same number eight times.
    #[inline(always)]
    pub fn splat(x: u32) -> Self {
        Self(register!(_mm512_set1_epi64(i64::from(x))))
    }
    /// Eight numbers.
    #[inline(always)]
    pub fn load(from: [u32; 8]) -> Self {
        // SAFETY: `from` holds all that is read; unaligned addresses are allowed.
        let narrow = unsafe { _mm256_loadu_si256(from.as_ptr().cast()) };
        Self(register!(_mm512_cvtepu32_epi64(narrow)))
    }
    /// Every number times a factor, in 64 bits: the lower half counts as the number, [`upper`](U32x8::upper) gives the other.
    #[inline(always)]
    pub fn times(self, factor: u32) -> Self {
        Self(register!(_mm512_mul_epu32(self.0, Self::splat(factor).0)))
    }
    /// The upper halves. A shuffle, because shifts wait for the port of the products.
    #[inline(always)]
    pub fn upper(self) -> Self {
        Self(register!(_mm512_shuffle_epi32::<0b11_11_01_01>(self.0)))
    }
    /// The exclusive or of three.
    #[inline(always)]
    pub fn xor(self, second: Self, third: Self) -> Self {
        Self(register!(_mm512_ternarylogic_epi64::<0b1001_0110>(self.0, second.0, third.0)))
    }
    /// The upper 53 bits of two words as a number in `[0, 1)`.
    #[inline(always)]
    pub fn unit(upper: Self, lower: Self) -> F64x8 {
        let upper = register!(_mm512_slli_epi64::<32>(upper.0));
        let word = register!(_mm512_mask_blend_epi32(0b0101_0101_0101_0101, upper, lower.0));
        let number = register!(_mm512_cvtepu64_pd(_mm512_srli_epi64::<11>(word)));
        F64x8(number) * F64x8::splat(1.0 / (1u64 << 53) as f64)
    }
}

/// Loads one by one, which is faster than the gather instruction.
///
/// # Safety
/// All indices are below the length.
#[inline(always)]
unsafe fn gather_f64(from: &[f64], index: &[u32; 8]) -> __m512d {
    // SAFETY: the caller vouches for it.
    let at = |lane: usize| unsafe { *from.get_unchecked(index[lane] as usize) };
    register!(_mm512_set_pd(at(7), at(6), at(5), at(4), at(3), at(2), at(1), at(0)))
}

/// See [`gather_f64`].
///
/// # Safety
/// All indices are below the length.
#[inline(always)]
unsafe fn gather_f32(from: &[f32], index: &[u32; 16]) -> __m512 {
    // SAFETY: the caller vouches for it.
    let at = |lane: usize| unsafe { *from.get_unchecked(index[lane] as usize) };
    register!(_mm512_set_ps(
        at(15),
        at(14),
        at(13),
        at(12),
        at(11),
        at(10),
        at(9),
        at(8),
        at(7),
        at(6),
        at(5),
        at(4),
        at(3),
        at(2),
        at(1),
        at(0)
    ))
}

impl Narrow for F64x8 {
    type Single = F32x8;

    #[inline(always)]
    fn narrow(self) -> F32x8 {
        F32x8(register!(_mm512_cvtpd_ps(self.0)))
    }
    #[inline(always)]
    fn widen(single: F32x8) -> F64x8 {
        F64x8(register!(_mm512_cvtps_pd(single.0)))
    }
}

impl Join for F32x8 {
    type Twice = F32x16;

    #[inline(always)]
    fn join(self, other: Self) -> F32x16 {
        F32x16(register!(_mm512_insertf32x8::<1>(_mm512_castps256_ps512(self.0), other.0)))
    }
    #[inline(always)]
    fn halves(twice: F32x16) -> (Self, Self) {
        let first = register!(_mm512_castps512_ps256(twice.0));
        let second = register!(_mm512_extractf32x8_ps::<1>(twice.0));
        (F32x8(first), F32x8(second))
    }
}

impl Join for F32x16 {
    type Twice = Pair<F32x16>;

    #[inline(always)]
    fn join(self, other: Self) -> Pair<F32x16> {
        Pair(self, other)
    }
    #[inline(always)]
    fn halves(twice: Pair<F32x16>) -> (Self, Self) {
        (twice.0, twice.1)
    }
}
