//! Two vectors as one lane group.
//!
//! What comes in is any [`Lanes`]; what goes out has twice its lanes, the first half in field 0.
//! Independent chains of operations hide each other's latency; pairs nest, and small kernels with long chains gain from pairs of
//! pairs (at most 64 lanes in all, the width of a mask's bits).
//! Never true here: that the halves exchange anything.

use super::{Indices, Join, Lanes, Mask, Narrow};
use std::ops::{Add, Div, Mul, Neg, Sub};

/// Two lane groups side by side, the lanes of field 0 first; and the mask of such a pair.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pair<V>(pub V, pub V);

macro_rules! operators {
    ($($operator:ident $method:ident),*) => {$(
        impl<V: Lanes> $operator for Pair<V> {
            type Output = Self;
            #[inline(always)]
            fn $method(self, other: Self) -> Self {
                Self(self.0.$method(other.0), self.1.$method(other.1))
            }
        }
    )*};
}
operators!(Add add, Sub sub, Mul mul, Div div);

impl<V: Lanes> Neg for Pair<V> {
    type Output = Self;
    #[inline(always)]
    fn neg(self) -> Self {
        Self(-self.0, -self.1)
    }
}

impl<M: Mask> Mask for Pair<M> {
    const LANES: usize = 2 * M::LANES;

    #[inline(always)]
    fn and(self, other: Self) -> Self {
        Self(self.0.and(other.0), self.1.and(other.1))
    }
    #[inline(always)]
    fn or(self, other: Self) -> Self {
        Self(self.0.or(other.0), self.1.or(other.1))
    }
    #[inline(always)]
    fn not(self) -> Self {
        Self(self.0.not(), self.1.not())
    }
    #[inline(always)]
    fn any(self) -> bool {
        self.0.or(self.1).any()
    }
    #[inline(always)]
    fn all(self) -> bool {
        self.0.and(self.1).all()
    }
    #[inline(always)]
    fn bits(self) -> u64 {
        self.0.bits() | self.1.bits() << M::LANES
    }
}

/// Methods that apply the half's own method to both halves.
macro_rules! halves {
    ($(fn $name:ident(self $(, $argument:ident)*) -> $out:ty;)*) => {$(
        #[inline(always)]
        fn $name(self $(, $argument: Self)*) -> $out {
            Pair(self.0.$name($($argument.0),*), self.1.$name($($argument.1),*))
        }
    )*};
}

impl<V: Lanes> Lanes for Pair<V> {
    type Scalar = V::Scalar;
    type Mask = Pair<V::Mask>;
    const LANES: usize = 2 * V::LANES;

    #[inline(always)]
    fn splat(x: V::Scalar) -> Self {
        Self(V::splat(x), V::splat(x))
    }
    #[inline(always)]
    fn load(from: &[V::Scalar]) -> Self {
        Self(V::load(from), V::load(&from[V::LANES..]))
    }
    #[inline(always)]
    fn store(self, to: &mut [V::Scalar]) {
        self.0.store(to);
        self.1.store(&mut to[V::LANES..]);
    }
    #[inline(always)]
    fn gather(from: &[V::Scalar], index: Indices<'_>) -> Self {
        Self(V::gather(from, index), V::gather(from, index.part(V::LANES..2 * V::LANES)))
    }
    halves! {
        fn mul_add(self, factor, term) -> Self;
        fn min(self, other) -> Self;
        fn max(self, other) -> Self;
        fn abs(self) -> Self;
        fn sqrt(self) -> Self;
        fn floor(self) -> Self;
        fn ceil(self) -> Self;
        fn round_even(self) -> Self;
        fn lt(self, other) -> Self::Mask;
        fn le(self, other) -> Self::Mask;
        fn gt(self, other) -> Self::Mask;
        fn ge(self, other) -> Self::Mask;
        fn eq(self, other) -> Self::Mask;
        fn ne(self, other) -> Self::Mask;
        fn scale(self, n) -> Self;
    }
    #[inline(always)]
    fn select(mask: Self::Mask, yes: Self, no: Self) -> Self {
        Self(V::select(mask.0, yes.0, no.0), V::select(mask.1, yes.1, no.1))
    }
    #[inline(always)]
    fn split_exp2(self) -> (Self, Self) {
        let (n0, r0) = self.0.split_exp2();
        let (n1, r1) = self.1.split_exp2();
        (Self(n0, n1), Self(r0, r1))
    }
    #[inline(always)]
    fn frexp(self) -> (Self, Self) {
        let (m0, e0) = self.0.frexp();
        let (m1, e1) = self.1.frexp();
        (Self(m0, m1), Self(e0, e1))
    }
}

impl<V: Join> Join for Pair<V> {
    type Twice = Pair<Pair<V>>;

    #[inline(always)]
    fn join(self, other: Self) -> Self::Twice {
        Pair(self, other)
    }
    #[inline(always)]
    fn halves(twice: Self::Twice) -> (Self, Self) {
        (twice.0, twice.1)
    }
}

impl<V: Narrow<Single: Join>> Narrow for Pair<V> {
    type Single = <V::Single as Join>::Twice;

    #[inline(always)]
    fn narrow(self) -> Self::Single {
        self.0.narrow().join(self.1.narrow())
    }
    #[inline(always)]
    fn widen(single: Self::Single) -> Self {
        let (first, second) = V::Single::halves(single);
        Self(V::widen(first), V::widen(second))
    }
}
