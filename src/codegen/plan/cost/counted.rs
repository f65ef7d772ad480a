//! A lane that counts what is done with it.
//!
//! In comes an elementary function of the runtime, written for any lanes; out goes how many operations one number costs.
//! Never true here: a table of counts that a change of the runtime could make false.

use crate::runtime::lanes::{Indices, Lanes, Mask, Scalar};
use std::cell::Cell;
use std::ops::{Add, Div, Mul, Neg, Sub};

/// Operations inside a function.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Inside {
    /// One rounding or none: sums, products, comparisons, selections, roundings, changes of exponent.
    pub plain: u32,
    /// Fused multiply-adds.
    pub fused: u32,
    /// Divisions and square roots.
    pub divisions: u32,
}

thread_local! {
    static COUNT: Cell<Inside> = const { Cell::new(Inside { plain: 0, fused: 0, divisions: 0 }) };
}

fn note(change: impl FnOnce(&mut Inside)) {
    COUNT.with(|count| {
        let mut now = count.get();
        change(&mut now);
        count.set(now);
    });
}

fn plain<R>(times: u32, result: R) -> R {
    note(|count| count.plain += times);
    result
}

fn division<R>(result: R) -> R {
    note(|count| count.divisions += 1);
    result
}

/// What a function of the runtime does to one number of type `T`. No function branches, except for angles past the limit of the quick reduction,
/// for as many terms as `poisson` sums, and for arguments of `exp2rel` above 1/2, which steps rarely have: so one argument tells all.
pub fn inside<T: Scalar>(function: impl FnOnce(Counted<T>) -> Counted<T>) -> Inside {
    COUNT.set(Inside::default());
    // A sign is counted with the operation that uses it, as the instructions have it.
    let Counted(_) = function(Counted(T::from_f64(0.375)));
    COUNT.get()
}

/// A number that counts.
#[derive(Clone, Copy)]
pub struct Counted<T>(pub T);

/// A truth value that counts.
#[derive(Clone, Copy)]
pub struct CountedMask(bool);

impl Mask for CountedMask {
    const LANES: usize = 1;

    fn and(self, other: Self) -> Self {
        plain(1, CountedMask(self.0 & other.0))
    }

    fn or(self, other: Self) -> Self {
        plain(1, CountedMask(self.0 | other.0))
    }

    fn not(self) -> Self {
        plain(1, CountedMask(!self.0))
    }

    // One test for all lanes: nothing for one number.
    fn any(self) -> bool {
        self.0
    }

    fn all(self) -> bool {
        self.0
    }

    fn bits(self) -> u64 {
        u64::from(self.0)
    }
}

impl<T: Scalar> Add for Counted<T> {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        plain(1, Counted(self.0 + other.0))
    }
}

impl<T: Scalar> Sub for Counted<T> {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        plain(1, Counted(self.0 - other.0))
    }
}

impl<T: Scalar> Mul for Counted<T> {
    type Output = Self;

    fn mul(self, other: Self) -> Self {
        plain(1, Counted(self.0 * other.0))
    }
}

impl<T: Scalar> Div for Counted<T> {
    type Output = Self;

    fn div(self, other: Self) -> Self {
        division(Counted(self.0 / other.0))
    }
}

impl<T: Scalar> Neg for Counted<T> {
    type Output = Self;

    // Fused with the operation that uses it.
    fn neg(self) -> Self {
        Counted(-self.0)
    }
}

impl<T: Scalar> Lanes for Counted<T> {
    type Scalar = T;
    type Mask = CountedMask;
    const LANES: usize = 1;

    fn splat(x: T) -> Self {
        Counted(x)
    }

    fn load(from: &[T]) -> Self {
        Counted(T::load(from))
    }

    fn store(self, to: &mut [T]) {
        self.0.store(to);
    }

    fn gather(from: &[T], index: Indices<'_>) -> Self {
        Counted(T::gather(from, index))
    }

    fn mul_add(self, factor: Self, term: Self) -> Self {
        note(|count| count.fused += 1);
        Counted(self.0.mul_add(factor.0, term.0))
    }

    fn min(self, other: Self) -> Self {
        plain(1, Counted(self.0.min(other.0)))
    }

    fn max(self, other: Self) -> Self {
        plain(1, Counted(self.0.max(other.0)))
    }

    fn abs(self) -> Self {
        plain(1, Counted(self.0.abs()))
    }

    fn sqrt(self) -> Self {
        division(Counted(self.0.sqrt()))
    }

    fn floor(self) -> Self {
        plain(1, Counted(self.0.floor()))
    }

    fn ceil(self) -> Self {
        plain(1, Counted(self.0.ceil()))
    }

    fn round_even(self) -> Self {
        plain(1, Counted(self.0.round_even()))
    }

    fn lt(self, other: Self) -> CountedMask {
        plain(1, CountedMask(Lanes::lt(self.0, other.0)))
    }

    fn le(self, other: Self) -> CountedMask {
        plain(1, CountedMask(Lanes::le(self.0, other.0)))
    }

    fn gt(self, other: Self) -> CountedMask {
        plain(1, CountedMask(Lanes::gt(self.0, other.0)))
    }

    fn ge(self, other: Self) -> CountedMask {
        plain(1, CountedMask(Lanes::ge(self.0, other.0)))
    }

    fn eq(self, other: Self) -> CountedMask {
        plain(1, CountedMask(Lanes::eq(self.0, other.0)))
    }

    fn ne(self, other: Self) -> CountedMask {
        plain(1, CountedMask(Lanes::ne(self.0, other.0)))
    }

    fn select(mask: CountedMask, yes: Self, no: Self) -> Self {
        plain(1, Counted(T::select(mask.0, yes.0, no.0)))
    }

    // One rounding and one difference.
    fn split_exp2(self) -> (Self, Self) {
        let (n, r) = self.0.split_exp2();
        plain(2, (Counted(n), Counted(r)))
    }

    fn scale(self, n: Self) -> Self {
        plain(1, Counted(self.0.scale(n.0)))
    }

    // The mantissa and the exponent.
    fn frexp(self) -> (Self, Self) {
        let (m, e) = self.0.frexp();
        plain(2, (Counted(m), Counted(e)))
    }
}
