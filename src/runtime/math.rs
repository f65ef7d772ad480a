//! Elementary functions, written once for every lane group.
//!
//! What comes in is one [`Lanes`] value, scalar or vector, in radians, octaves or plain numbers; what goes out is the function
//! of each lane, made of correctly rounded operations only, so that all bodies give the same bits.
//! Errors are in ulp (units in the last place of the exact result), measured by the tests of this module.
//! Never true here: that the platform's mathematics library is called, that rounding depends on the vector width, or that a
//! table is read, except for angles past 2^30 (f32: 2^16).
//!
//! | function | error in f64 | error in f32 | stated for |
//! |---|---|---|---|
//! | `exp2` | 1 | 2 | results that are normal numbers |
//! | `exp` | 1.5 | 1.5 | results that are normal numbers |
//! | `expm1` | 1.6 | 1.5 | arguments that are normal numbers |
//! | `exp2m1` | 2.5 | 2.5 | arguments that are normal numbers |
//! | `exp2rel` | 3 | 3 | results that are normal numbers |
//! | `ln` | 1.5 | 1.5 | all positive numbers |
//! | `log2`, `log10` | 2 | 2 | all positive numbers |
//! | `pow` | 2.5 | 2 | results that are normal numbers |
//! | `sin`, `cos` | 2 | 2 | all finite numbers, NaN at infinity |
//! | `tan` | 3.5 | 3.5 | all finite numbers, NaN at infinity |
//! | `sinh`, `tanh` | 3 | 3 | all numbers |
//! | `cosh` | 1.5 | 1.5 | all numbers |
//! | `linoid` | 2.5 | 2.5 | results that are normal numbers |
//!
//! [`poisson`] is no such function: it gives whole numbers, those that its sum in the precision of the lane leads to.
//!
//! NaN gives NaN everywhere but in `pow(x, 0) = pow(1, y) = 1`. The sign of a zero result is unspecified where the exact
//! function is zero, but the same on every machine.

use super::lanes::{Lanes, Mask, Scalar};

pub mod approximate;
mod payne_hanek;
mod poisson;

#[cfg(test)]
mod tests;

pub use poisson::{Poisson, poisson};

/// Polynomials and constants per number type. Polynomials are minimax, lowest power first; constants with a tail come as the
/// nearest number and the rest.
pub trait Coefficients: Sized + 'static {
    /// Whether [`approximate`] has shorter polynomials: where not, its functions are those of this module.
    const APPROXIMATES: bool;
    /// `(2^r - 1) / r` on `[-1/2, 1/2]`, least error of `2^r`.
    const EXP2: &'static [Self];
    /// `(2^r - 1) / r` on `[-1/2, 1/2]`, least relative error.
    const EXP2M1: &'static [Self];
    /// `(e^r - 1 - r) / r^2` on `[-ln 2 / 2, ln 2 / 2]`.
    const EXPM1: &'static [Self];
    /// `(2 artanh s - 2 s) / s^3` in `s^2`, for `|s| <= 1/5`.
    const LOG: &'static [Self];
    /// `(sin r - r) / r^3` in `r^2`, for `|r| <= pi / 4`.
    const SIN: &'static [Self];
    /// `(cos r - 1 + r^2 / 2) / r^4` in `r^2`, for `|r| <= pi / 4`.
    const COS: &'static [Self];
    /// `log2((1 + s) / (1 - s))` without the terms `s` and `s^3`, over `s^5`, in `s^2`, for `|s| <= 1/5`.
    const POW: &'static [Self];
    /// `ln 2` and its tail.
    const LN_2: [Self; 2];
    /// `log2 e` and its tail.
    const LOG2_E: [Self; 2];
    /// `log10 2` and its tail.
    const LOG10_2: [Self; 2];
    /// `log10 e` and its tail.
    const LOG10_E: [Self; 2];
    /// `pi / 2` in four parts.
    const HALF_PI: [Self; 4];
    /// `2 / ln 2` and `2 / (3 ln 2)`, each with its tail: the terms that `POW` leaves out.
    const POW_HEAD: [Self; 4];
    /// `2 / pi`.
    const TWO_OVER_PI: Self;
    /// Where `exp` is 0 below.
    const EXP_LOW: Self;
    /// Where `exp` overflows above.
    const EXP_HIGH: Self;
    /// Where `expm1` is -1 below.
    const EXPM1_LOW: Self;
    /// Where `expm1` overflows above.
    const EXPM1_HIGH: Self;
    /// Where `sinh` and `cosh` overflow above.
    const SINH_HIGH: Self;
    /// Where `tanh` is 1 above.
    const TANH_HIGH: Self;
    /// The power of two from which on `2^x - 1` overflows.
    const EXP2M1_HIGH: Self;
    /// The largest mean that [`poisson`] takes: `e^-mean` is still a normal number.
    const POISSON_HIGH: Self;
    /// The largest angle that the four parts of `HALF_PI` reduce; those past it are rare and cost more.
    const TRIGONOMETRIC_LIMIT: Self;
}

#[allow(clippy::approx_constant)] // the constants come in two parts
impl Coefficients for f64 {
    const APPROXIMATES: bool = true;
    const EXP2: &'static [Self] = &[
        0.6931471805599454,
        0.2402265069591014,
        0.05550410866481459,
        0.009618129107590611,
        0.0013333558147993086,
        0.0001540353046186088,
        1.5252732378636058e-5,
        1.3215432834870204e-6,
        1.0178647360728368e-7,
        7.0742089567283746e-9,
        4.369256182549928e-10,
    ];
    const EXP2M1: &'static [Self] = &[
        0.6931471805599453,
        0.24022650695910125,
        0.05550410866482658,
        0.00961812910759198,
        0.001333355814474208,
        0.00015403530463927584,
        1.5252735771844397e-5,
        1.321543044932261e-6,
        1.0177151674196895e-7,
        7.074787849622516e-9,
        4.603538659693409e-10,
    ];
    const EXPM1: &'static [Self] = &[
        0.5000000000000006,
        0.1666666666666662,
        0.04166666666657233,
        0.008333333333361066,
        0.0013888888933028618,
        0.00019841269800237242,
        2.4801503480301655e-5,
        2.7557317416022336e-6,
        2.7626765830942945e-7,
        2.5087844749003177e-8,
    ];
    const LOG: &'static [Self] = &[
        0.666666666666666,
        0.4000000000005674,
        0.28571428555805733,
        0.22222224299477325,
        0.18181665678350045,
        0.1539111877602641,
        0.13173479789988118,
        0.13843872987520822,
    ];
    const SIN: &'static [Self] = &[
        -0.16666666666666632,
        0.00833333333332249,
        -0.0001984126982985756,
        2.7557313706823407e-6,
        -2.505076019881027e-8,
        1.589690596367915e-10,
    ];
    const COS: &'static [Self] = &[
        0.0416666666666666,
        -0.0013888888888874474,
        2.4801587289671364e-5,
        -2.7557314400914107e-7,
        2.0875729255714455e-9,
        -1.1359932421430666e-11,
    ];
    const POW: &'static [Self] = &[
        0.5770780163555813,
        0.41219858311331475,
        0.3205988975219635,
        0.2623082380857295,
        0.22195004230476612,
        0.19247286810199712,
        0.1672298005988624,
        0.18144488235240136,
    ];
    const LN_2: [Self; 2] = [0.6931471805599453, 2.3190468138462996e-17];
    const LOG2_E: [Self; 2] = [1.4426950408889634, 2.0355273740931033e-17];
    const LOG10_2: [Self; 2] = [0.3010299956639812, -2.8037281277851704e-18];
    const LOG10_E: [Self; 2] = [0.4342944819032518, 1.098319650216765e-17];
    const HALF_PI: [Self; 4] =
        [1.5707963267948966, 6.123233995736766e-17, -1.4973849048591698e-33, 5.562271104316826e-50];
    const POW_HEAD: [Self; 4] =
        [2.8853900817779268, 4.0710547481862066e-17, 0.9617966939259756, 5.0577616648125907e-17];
    const TWO_OVER_PI: Self = 0.6366197723675814;
    const EXP_LOW: Self = -746.0;
    const EXP_HIGH: Self = 710.0;
    const EXPM1_LOW: Self = -50.0;
    const EXPM1_HIGH: Self = 709.9;
    const SINH_HIGH: Self = 710.6;
    const TANH_HIGH: Self = 20.0;
    const EXP2M1_HIGH: Self = 1024.0;
    const POISSON_HIGH: Self = 708.0;
    const TRIGONOMETRIC_LIMIT: Self = 1_073_741_824.0;
}

#[allow(clippy::approx_constant)] // the constants come in two parts
impl Coefficients for f32 {
    const APPROXIMATES: bool = false;
    const EXP2: &'static [Self] = &[0.6931468, 0.24022236, 0.05550901, 0.009671808, 0.001322215];
    const EXP2M1: &'static [Self] = &[0.6931472, 0.24022649, 0.055503573, 0.009618238, 0.0013390735, 0.0001540349];
    const EXPM1: &'static [Self] = &[0.49999997, 0.16666539, 0.041667756, 0.008367127, 0.0013835597];
    const LOG: &'static [Self] = &[0.6666666, 0.40000933, 0.28503516, 0.2415159];
    const SIN: &'static [Self] = &[-0.16666655, 0.008332192, -0.00019518788];
    const COS: &'static [Self] = &[0.041666646, -0.0013887301, 2.443067e-5];
    const POW: &'static [Self] = &[0.5770837, 0.41153416, 0.34447423];
    const LN_2: [Self; 2] = [0.6931472, -1.9046542e-9];
    const LOG2_E: [Self; 2] = [1.442695, 1.925963e-8];
    const LOG10_2: [Self; 2] = [0.30103, -1.4320989e-8];
    const LOG10_E: [Self; 2] = [0.4342945, -1.010305e-8];
    const HALF_PI: [Self; 4] = [1.5707964, -4.371139e-8, -1.7151245e-15, 1.0562999e-23];
    const POW_HEAD: [Self; 4] = [2.88539, 3.851926e-8, 0.9617967, -7.028462e-9];
    const TWO_OVER_PI: Self = 0.63661975;
    const EXP_LOW: Self = -105.0;
    const EXP_HIGH: Self = 89.0;
    const EXPM1_LOW: Self = -20.0;
    const EXPM1_HIGH: Self = 88.8;
    const SINH_HIGH: Self = 89.5;
    const TANH_HIGH: Self = 10.0;
    const EXP2M1_HIGH: Self = 128.0;
    const POISSON_HIGH: Self = 87.0;
    const TRIGONOMETRIC_LIMIT: Self = 65_536.0;
}

/// The same small number in every lane.
#[inline(always)]
fn number<V: Lanes>(x: f64) -> V {
    V::splat(V::Scalar::from_f64(x))
}

/// The polynomial with these coefficients, lowest power first (Horner's scheme).
#[inline(always)]
fn polynomial<V: Lanes>(x: V, coefficients: &[V::Scalar]) -> V {
    let (&last, rest) = coefficients.split_last().expect("a coefficient");
    rest.iter().rev().fold(V::splat(last), |sum, &c| sum.mul_add(x, V::splat(c)))
}

/// `2^x`. Exact for integers; 0 and infinity outside the exponent range, with gradual underflow.
#[inline(always)]
pub fn exp2<V: Lanes>(x: V) -> V {
    let (n, r) = x.split_exp2();
    polynomial(r, V::Scalar::EXP2).mul_add(r, number(1.0)).scale(n)
}

/// `2^x - 1`, without cancellation near 0. Overflows half an octave early. In the subnormal range the last bit may be lost.
#[inline(always)]
pub fn exp2m1<V: Lanes>(x: V) -> V {
    let (n, r) = x.split_exp2();
    expanded_exp2m1(n, r, polynomial(r, V::Scalar::EXP2M1))
}

/// `2^(n + r) - 1`, given `(2^r - 1) / r`.
#[inline(always)]
fn expanded_exp2m1<V: Lanes>(n: V, r: V, quotient: V) -> V {
    // Half the power, so that it is finite where its double, the sum and so the result are infinite.
    let half_power = number::<V>(0.5).scale(n.min(V::splat(V::Scalar::EXP2M1_HIGH)));
    let less_one = quotient * (r + r);
    less_one.mul_add(half_power, half_power.mul_add(number(2.0), number(-1.0)))
}

/// `(2^x - 1) / x`, `ln 2` at 0. Overflows half an octave early; NaN at infinity. Where all lanes are at most 1/2 in magnitude, that is a polynomial.
#[inline(always)]
pub fn exp2rel<V: Lanes>(x: V) -> V {
    let (n, r) = x.split_exp2();
    expanded_exp2rel(x, n, r, polynomial(r, V::Scalar::EXP2M1))
}

/// `(2^x - 1) / x` for `x = n + r`, given that of `r`.
#[inline(always)]
fn expanded_exp2rel<V: Lanes>(x: V, n: V, r: V, quotient: V) -> V {
    let near = n.eq(number(0.0));
    if near.all() {
        return quotient;
    }
    V::select(near, quotient, expanded_exp2m1(n, r, quotient) / x)
}

/// `(n, r, e^r - 1 - r)` with `x = n ln 2 + r` and `|r| <= ln 2 / 2`, for `x` inside the exponent range.
#[inline(always)]
fn reduced_exp<V: Lanes>(x: V) -> (V, V, V) {
    let n = (x * V::splat(V::Scalar::LOG2_E[0])).round_even();
    let r = (-n).mul_add(V::splat(V::Scalar::LN_2[0]), x);
    let r = (-n).mul_add(V::splat(V::Scalar::LN_2[1]), r);
    (n, r, polynomial(r, V::Scalar::EXPM1) * (r * r))
}

/// `e^x`. Exactly 1 at 0; 0 and infinity outside the exponent range, with gradual underflow.
#[inline(always)]
pub fn exp<V: Lanes>(x: V) -> V {
    let x = V::splat(V::Scalar::EXP_LOW).max(V::splat(V::Scalar::EXP_HIGH).min(x));
    let (n, r, rest) = reduced_exp(x);
    ((r + rest) + number(1.0)).scale(n)
}

/// `(e^x - 1) / 2^shift` for `x <= high`, where `e^high / 2^shift` is still finite.
#[inline(always)]
fn scaled_expm1<V: Lanes>(x: V, high: V::Scalar, shift: f64) -> V {
    let x = V::splat(V::Scalar::EXPM1_LOW).max(V::splat(high).min(x));
    let (n, r, rest) = reduced_exp(x);
    // 2^n (1 + r) - 1 is nearly exact; the small rest comes last.
    let power = number::<V>((-shift).exp2()).scale(n);
    let main = r.mul_add(power, power - number((-shift).exp2()));
    rest.mul_add(power, main)
}

/// `e^x - 1`, without cancellation near 0. In the subnormal range the last bit may be lost.
#[inline(always)]
pub fn expm1<V: Lanes>(x: V) -> V {
    let half = scaled_expm1(x, V::Scalar::EXPM1_HIGH, 1.0);
    half + half
}

/// `(e, ln m)` with `x = m * 2^e` and `m` in `[3/4, 3/2)`, for positive finite `x`.
#[inline(always)]
fn reduced_ln<V: Lanes>(x: V) -> (V, V) {
    // ln(1 + f) = 2 artanh s with s = f / (2 + f); 2 s = f - s f; s f = f^2 / 2 - s f^2 / 2.
    let (m, e) = x.frexp();
    let f = m - number(1.0);
    let s = f / (f + number(2.0));
    let z = s * s;
    let rest = polynomial(z, V::Scalar::LOG) * z;
    let half_square = f * f * number(0.5);
    (e, f - (-s).mul_add(half_square + rest, half_square))
}

/// The value of a logarithm where `x` is positive and finite, and its limits elsewhere.
#[inline(always)]
fn with_limits<V: Lanes>(x: V, logarithm: V) -> V {
    let zero = number(0.0);
    let infinity = number::<V>(f64::INFINITY);
    let above = V::select(x.lt(infinity), logarithm, infinity);
    let below = V::select(x.eq(zero), -infinity, number(f64::NAN));
    V::select(x.gt(zero), above, below)
}

/// The natural logarithm: minus infinity at 0, NaN below.
#[inline(always)]
pub fn ln<V: Lanes>(x: V) -> V {
    let (e, ln_m) = reduced_ln(x);
    let low = e.mul_add(V::splat(V::Scalar::LN_2[1]), ln_m);
    with_limits(x, e.mul_add(V::splat(V::Scalar::LN_2[0]), low))
}

/// The logarithm to base 2: exact for powers of 2, minus infinity at 0, NaN below.
#[inline(always)]
pub fn log2<V: Lanes>(x: V) -> V {
    let (e, ln_m) = reduced_ln(x);
    let low = ln_m.mul_add(V::splat(V::Scalar::LOG2_E[1]), e);
    with_limits(x, ln_m.mul_add(V::splat(V::Scalar::LOG2_E[0]), low))
}

/// The logarithm to base 10: minus infinity at 0, NaN below.
#[inline(always)]
pub fn log10<V: Lanes>(x: V) -> V {
    let (e, ln_m) = reduced_ln(x);
    let low = e.mul_add(V::splat(V::Scalar::LOG10_2[1]), ln_m * V::splat(V::Scalar::LOG10_E[1]));
    let low = ln_m.mul_add(V::splat(V::Scalar::LOG10_E[0]), low);
    with_limits(x, e.mul_add(V::splat(V::Scalar::LOG10_2[0]), low))
}

/// `log2 x` for positive finite `x`, as the nearest number and a tail of about ten more bits.
#[inline(always)]
fn log2_with_tail<V: Lanes>(x: V) -> (V, V) {
    let one = number::<V>(1.0);
    let [a, a_tail, b, b_tail] = V::Scalar::POW_HEAD.map(V::splat);
    let (m, e) = x.frexp();
    // s = (m - 1) / (m + 1), with tails for the denominator and for s.
    let numerator = m - one;
    let denominator = m + one;
    let back = denominator - m;
    let denominator_tail = (m - (denominator - back)) + (one - back);
    let s = numerator / denominator;
    let remainder = (-s).mul_add(denominator, numerator);
    let s_tail = (-s).mul_add(denominator_tail, remainder) / denominator;
    // log2 m = s (a + b s^2 + s^4 POW(s^2)), the first two terms with tails.
    let z = s * s;
    let z_tail = s.mul_add(s, -z) + (s + s) * s_tail;
    let cubic = b * z;
    let cubic_tail = b.mul_add(z, -cubic) + b_tail.mul_add(z, b * z_tail);
    let cubic_tail = (z * z).mul_add(polynomial(z, V::Scalar::POW), cubic_tail);
    let factor = a + cubic;
    let factor_tail = (cubic - (factor - a)) + (cubic_tail + a_tail);
    let head = s * factor;
    let tail = s.mul_add(factor, -head) + s.mul_add(factor_tail, s_tail * factor);
    // |e| >= 1 > |head|, or e = 0: either way the sum's rounding error comes out exactly.
    let sum = e + head;
    let tail = (head - (sum - e)) + tail;
    let log = sum + tail;
    (log, tail - (log - sum))
}

/// `x^y`: 1 for `y = 0` or `x = 1`, NaN for negative `x` and fractional `y`; `-0` counts as 0.
#[inline(always)]
pub fn pow<V: Lanes>(x: V, y: V) -> V {
    let zero = number::<V>(0.0);
    let one = number::<V>(1.0);
    let infinity = number::<V>(f64::INFINITY);
    let size = x.abs();
    let (log, log_tail) = log2_with_tail(size);
    let log = with_limits(size, log);
    let exponent = y * log;
    let tail = y.mul_add(log, -exponent) + y * log_tail;
    // Past the exponent range the tail may be no number; there the result is 0 or infinity without it.
    let tail = V::select(exponent.abs().lt(number(10_000.0)), tail, zero);
    let (n, r) = exponent.split_exp2();
    let r = r + tail;
    let power = polynomial(r, V::Scalar::EXP2).mul_add(r, one).scale(n);
    let power = V::select(y.eq(zero).or(size.eq(one).and(x.eq(x))), one, power);
    let half = y * number(0.5);
    let integer = y.floor().eq(y);
    let odd = integer.and(half.floor().ne(half)).and(y.abs().lt(infinity));
    let signed = V::select(odd, -power, power);
    let of_negative = V::select(integer, signed, number(f64::NAN));
    V::select(x.lt(zero), of_negative, power)
}

/// `(q, r)` with `x = n pi / 2 + r`, `|r| <= pi / 4`, and `q` in `{-2, -1, 0, 1, 2}` equal to `n` modulo 4. Infinity
/// and NaN give NaN.
#[inline(always)]
fn reduced_angle<V: Lanes>(x: V) -> (V, V) {
    // The parts of pi / 2 one after the other (Cody and Waite 1980).
    let n = (x * V::splat(V::Scalar::TWO_OVER_PI)).round_even();
    let r = V::Scalar::HALF_PI.iter().fold(x, |r, &part| (-n).mul_add(V::splat(part), r));
    let turns = (n * number(0.25)).round_even();
    let q = turns.mul_add(number(-4.0), n);
    if x.abs().gt(V::splat(V::Scalar::TRIGONOMETRIC_LIMIT)).any() {
        let [mut angles, mut all_q, mut all_r] = [[V::Scalar::default(); 64]; 3];
        x.store(&mut angles);
        q.store(&mut all_q);
        r.store(&mut all_r);
        reduce_large(&angles[..V::LANES], &mut all_q, &mut all_r);
        return (V::load(&all_q), V::load(&all_r));
    }
    (q, r)
}

/// Puts [`reduced_angle`] of the finite angles past the limit in place of what is there. Neither inlined nor compiled for each
/// lane group: to the loops around a sine it is one test.
#[cold]
#[inline(never)]
fn reduce_large<S: Scalar>(angles: &[S], q: &mut [S], r: &mut [S]) {
    for (lane, x) in angles.iter().map(|x| x.to_f64()).enumerate() {
        if x.is_finite() && x.abs() > S::TRIGONOMETRIC_LIMIT.to_f64() {
            let reduced = payne_hanek::reduce(x);
            (q[lane], r[lane]) = (S::from_f64(reduced.0), S::from_f64(reduced.1));
        }
    }
}

/// `(q, sin r, cos r)` with `q` and `r` of [`reduced_angle`].
#[inline(always)]
fn quadrant<V: Lanes>(x: V) -> (V, V, V) {
    let (q, r) = reduced_angle(x);
    let z = r * r;
    let sin = (r * z).mul_add(polynomial(z, V::Scalar::SIN), r);
    let cos = polynomial(z, V::Scalar::COS).mul_add(z, number(-0.5)).mul_add(z, number(1.0));
    (q, sin, cos)
}

/// The sine of `x` radians; NaN at infinity.
#[inline(always)]
pub fn sin<V: Lanes>(x: V) -> V {
    let (q, sin, cos) = quadrant(x);
    let odd = q.abs().eq(number(1.0));
    let negative = q.abs().eq(number(2.0)).or(q.eq(number(-1.0)));
    let size = V::select(odd, cos, sin);
    V::select(negative, -size, size)
}

/// The cosine of `x` radians; NaN at infinity.
#[inline(always)]
pub fn cos<V: Lanes>(x: V) -> V {
    let (q, sin, cos) = quadrant(x);
    let odd = q.abs().eq(number(1.0));
    let negative = q.abs().eq(number(2.0)).or(q.eq(number(1.0)));
    let size = V::select(odd, sin, cos);
    V::select(negative, -size, size)
}

/// The tangent of `x` radians; NaN at infinity.
#[inline(always)]
pub fn tan<V: Lanes>(x: V) -> V {
    let (q, sin, cos) = quadrant(x);
    let odd = q.abs().eq(number(1.0));
    V::select(odd, -cos, sin) / V::select(odd, sin, cos)
}

/// The hyperbolic sine.
#[inline(always)]
pub fn sinh<V: Lanes>(x: V) -> V {
    // With h = (e^|x| - 1) / 2: sinh |x| = h + h / (2 h + 1).
    let quarter = scaled_expm1(x.abs(), V::Scalar::SINH_HIGH, 2.0);
    let half = quarter + quarter;
    let size = half + quarter / (half + number(0.5));
    V::select(x.lt(number(0.0)), -size, size)
}

/// The hyperbolic cosine.
#[inline(always)]
pub fn cosh<V: Lanes>(x: V) -> V {
    let size = V::splat(V::Scalar::SINH_HIGH).min(x.abs());
    let (n, r, rest) = reduced_exp(size);
    let half = ((r + rest) + number(1.0)).scale(n - number(1.0));
    half + number::<V>(0.25) / half
}

/// The hyperbolic tangent.
#[inline(always)]
pub fn tanh<V: Lanes>(x: V) -> V {
    // With h = (e^|2 x| - 1) / 2: tanh |x| = h / (h + 1).
    let size = V::splat(V::Scalar::TANH_HIGH).min(x.abs());
    let half = scaled_expm1(size + size, V::Scalar::EXPM1_HIGH, 1.0);
    let size = half / (half + number(1.0));
    V::select(x.lt(number(0.0)), -size, size)
}

/// What [`nonzero`] gives for 0 and what is nearer to it than this: its square is still a normal `f32`, and `x / (e^x - 1)` rounds to 1 there
/// and below, where quotients of subnormal numbers would have lost their digits.
pub const NEARLY_ZERO: f64 = 1.0 / (1u64 << 60) as f64;

/// The number itself, but [`NEARLY_ZERO`] for what is nearer to 0: what may be divided by.
#[inline(always)]
pub fn nonzero<V: Lanes>(x: V) -> V {
    V::select(x.abs().lt(number(NEARLY_ZERO)), number(NEARLY_ZERO), x)
}

/// The number itself, but 0 for infinities and NaN.
#[inline(always)]
pub fn finite<V: Lanes>(x: V) -> V {
    V::select(x.abs().lt(number(f64::INFINITY)), x, number(0.0))
}

/// `x / (e^x - 1)`: 1 at 0, 0 at infinity.
#[inline(always)]
pub fn linoid<V: Lanes>(x: V) -> V {
    // The bound keeps infinity out of the numerator; past it the denominator is infinite.
    let quotient = V::splat(V::Scalar::EXP2M1_HIGH).min(x) / expm1(x);
    V::select(x.abs().lt(number(NEARLY_ZERO)), number(1.0), quotient)
}
