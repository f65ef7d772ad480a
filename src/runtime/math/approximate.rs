//! Elementary functions within a tolerance: the same reductions with shorter polynomials.
//!
//! What comes in is `f64` lanes, a [`Function`] and a [`Tolerance`]; what goes out is within the tolerance of the exact function,
//! relative to it, wherever that is a normal number, and has the limits of the accurate function (infinities, zeros, NaN).
//! Never true here: that an error in [`TABLE`] is a guess. The tests measure each and compare.
//!
//! Exponentials to base e go through base 2. `exp2m1`, `expm1` and `exp2rel` overflow half an octave early. Other lanes than `f64` have no
//! shorter polynomials: there every function is the accurate one.

use super::super::lanes::Lanes;
use super::{Coefficients, number, with_limits};

/// How far a result may be from the exact one, relative to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Tolerance {
    /// 1e-9
    Nano,
    /// 1e-6
    Micro,
}

/// A function that has shorter polynomials.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Function {
    /// `e^x`
    Exp,
    /// `2^x`
    Exp2,
    /// `e^x - 1`
    Expm1,
    /// `2^x - 1`
    Exp2m1,
    /// `(2^x - 1) / x`
    Exp2rel,
    /// The natural logarithm.
    Ln,
    /// The logarithm to base 2.
    Log2,
    /// The logarithm to base 10.
    Log10,
}

impl Tolerance {
    /// Both with their names.
    pub const ALL: [(Tolerance, &'static str); 2] = [(Tolerance::Nano, "1e-9"), (Tolerance::Micro, "1e-6")];

    /// As it is written.
    pub fn name(self) -> &'static str {
        Tolerance::ALL[self as usize].1
    }

    /// As a number.
    pub fn bound(self) -> f64 {
        match self {
            Tolerance::Nano => 1e-9,
            Tolerance::Micro => 1e-6,
        }
    }
}

impl Function {
    /// All with their names.
    pub const ALL: [(Function, &'static str); 8] = [
        (Function::Exp, "exp"),
        (Function::Exp2, "exp2"),
        (Function::Expm1, "expm1"),
        (Function::Exp2m1, "exp2m1"),
        (Function::Exp2rel, "exp2rel"),
        (Function::Ln, "ln"),
        (Function::Log2, "log2"),
        (Function::Log10, "log10"),
    ];

    /// Its name.
    pub fn name(self) -> &'static str {
        Function::ALL[self as usize].1
    }

    /// Its value within a tolerance.
    #[inline(always)]
    pub fn of<V: Lanes>(self, tolerance: Tolerance, x: V) -> V {
        match self {
            Function::Exp => exp(tolerance, x),
            Function::Exp2 => exp2(tolerance, x),
            Function::Expm1 => expm1(tolerance, x),
            Function::Exp2m1 => exp2m1(tolerance, x),
            Function::Exp2rel => exp2rel(tolerance, x),
            Function::Ln => ln(tolerance, x),
            Function::Log2 => log2(tolerance, x),
            Function::Log10 => log10(tolerance, x),
        }
    }

    /// The degree of its polynomial within a tolerance: in the reduced argument of an exponential, in `s` of a logarithm.
    pub fn degree(self, tolerance: Tolerance) -> usize {
        match self {
            Function::Exp | Function::Exp2 => EXP2[tolerance as usize].len(),
            Function::Expm1 | Function::Exp2m1 | Function::Exp2rel => EXP2M1[tolerance as usize].len(),
            Function::Ln | Function::Log2 | Function::Log10 => 2 * LOG[tolerance as usize].len() + 1,
        }
    }

    /// Its greatest relative error within a tolerance, as measured.
    pub fn error(self, tolerance: Tolerance) -> f64 {
        TABLE[self as usize][tolerance as usize]
    }
}

/// The greatest relative error of every function (in the order of [`Function::ALL`]) within both tolerances, as measured by the
/// tests, rounded up.
pub const TABLE: [[f64; 2]; 8] = [
    [4.7e-11, 9.2e-8],
    [4.7e-11, 9.2e-8],
    [3.3e-10, 6.2e-7],
    [3.3e-10, 6.2e-7],
    [3.3e-10, 6.2e-7],
    [3.2e-11, 5.2e-7],
    [3.2e-11, 5.2e-7],
    [3.2e-11, 5.2e-7],
];

/// The greatest relative error of `exp2` and `exp` in `f32` lanes, for normal results, as measured by the tests, rounded up.
pub const SINGLE_EXPONENTIAL: f64 = 1.7e-7;

/// `(2^r - 1) / r` on `[-1/2, 1/2]`, least relative error of `2^r`, lowest power first.
const EXP2: [&[f64]; 2] = [
    &[
        0.6931471807045304,
        0.24022651066560244,
        0.055504103659944286,
        0.009618038132111524,
        0.0013333935054021806,
        0.0001546675631433131,
        1.5196156822745597e-5,
    ],
    &[0.6931469775951457, 0.2402224208473759, 0.05550733747164887, 0.009671512670871836, 0.001326472631325977],
];

/// `(2^r - 1) / r` on `[-1/2, 1/2]`, least relative error.
const EXP2M1: [&[f64]; 2] = [
    &[
        0.6931471805815689,
        0.240226509200507,
        0.05550410727601118,
        0.009618057037223158,
        0.001333366944613294,
        0.0001546132983303243,
        1.5252721376980476e-5,
    ],
    &[0.6931471435075824, 0.24022351342618042, 0.05550500210042079, 0.009666245455021063, 0.001333353988901283],
];

/// `(2 artanh s - 2 s) / s^3` in `s^2`, for `|s| <= 1/5`.
const LOG: [&[f64]; 2] = [
    &[0.6666666309605066, 0.4000086076272894, 0.28507129085934796, 0.2409851677137417],
    &[0.666459549174799, 0.41650674495593376],
];

/// The polynomial with these coefficients (Horner's scheme).
#[inline(always)]
fn polynomial<V: Lanes>(x: V, coefficients: &[f64]) -> V {
    let (&last, rest) = coefficients.split_last().expect("a coefficient");
    rest.iter().rev().fold(number(last), |sum, &c| sum.mul_add(x, number(c)))
}

/// `2^x` within a tolerance. Exact for integers.
#[inline(always)]
pub fn exp2<V: Lanes>(tolerance: Tolerance, x: V) -> V {
    if !V::Scalar::APPROXIMATES {
        return super::exp2(x);
    }
    let (n, r) = x.split_exp2();
    polynomial(r, EXP2[tolerance as usize]).mul_add(r, number(1.0)).scale(n)
}

/// `e^x` within a tolerance. Exactly 1 at 0.
#[inline(always)]
pub fn exp<V: Lanes>(tolerance: Tolerance, x: V) -> V {
    if !V::Scalar::APPROXIMATES {
        return super::exp(x);
    }
    exp2(tolerance, x * V::splat(V::Scalar::LOG2_E[0]))
}

/// `2^x - 1` within a tolerance, near 0 too.
#[inline(always)]
pub fn exp2m1<V: Lanes>(tolerance: Tolerance, x: V) -> V {
    if !V::Scalar::APPROXIMATES {
        return super::exp2m1(x);
    }
    let (n, r) = x.split_exp2();
    super::expanded_exp2m1(n, r, polynomial(r, EXP2M1[tolerance as usize]))
}

/// `(2^x - 1) / x` within a tolerance.
#[inline(always)]
pub fn exp2rel<V: Lanes>(tolerance: Tolerance, x: V) -> V {
    if !V::Scalar::APPROXIMATES {
        return super::exp2rel(x);
    }
    let (n, r) = x.split_exp2();
    super::expanded_exp2rel(x, n, r, polynomial(r, EXP2M1[tolerance as usize]))
}

/// `e^x - 1` within a tolerance, near 0 too.
#[inline(always)]
pub fn expm1<V: Lanes>(tolerance: Tolerance, x: V) -> V {
    if !V::Scalar::APPROXIMATES {
        return super::expm1(x);
    }
    exp2m1(tolerance, x * V::splat(V::Scalar::LOG2_E[0]))
}

/// `(e, ln m)` with `x = m * 2^e`, for positive finite `x`.
#[inline(always)]
fn reduced_ln<V: Lanes>(tolerance: Tolerance, x: V) -> (V, V) {
    let (m, e) = x.frexp();
    let f = m - number(1.0);
    let s = f / (f + number(2.0));
    let z = s * s;
    (e, s * polynomial(z, LOG[tolerance as usize]).mul_add(z, number(2.0)))
}

/// The natural logarithm within a tolerance: minus infinity at 0, NaN below.
#[inline(always)]
pub fn ln<V: Lanes>(tolerance: Tolerance, x: V) -> V {
    if !V::Scalar::APPROXIMATES {
        return super::ln(x);
    }
    let (e, ln_m) = reduced_ln(tolerance, x);
    with_limits(x, e.mul_add(V::splat(V::Scalar::LN_2[0]), ln_m))
}

/// The logarithm to base 2 within a tolerance: exact for powers of 2.
#[inline(always)]
pub fn log2<V: Lanes>(tolerance: Tolerance, x: V) -> V {
    if !V::Scalar::APPROXIMATES {
        return super::log2(x);
    }
    let (e, ln_m) = reduced_ln(tolerance, x);
    with_limits(x, ln_m.mul_add(V::splat(V::Scalar::LOG2_E[0]), e))
}

/// The logarithm to base 10 within a tolerance.
#[inline(always)]
pub fn log10<V: Lanes>(tolerance: Tolerance, x: V) -> V {
    if !V::Scalar::APPROXIMATES {
        return super::log10(x);
    }
    let (e, ln_m) = reduced_ln(tolerance, x);
    with_limits(x, e.mul_add(V::splat(V::Scalar::LOG10_2[0]), ln_m * V::splat(V::Scalar::LOG10_E[0])))
}

#[cfg(test)]
mod tests;
