//! Bits against the scalar, errors against double-double arithmetic (large angles: arbitrary precision), limits against the definition.

use super::*;
use crate::runtime::lanes::portable::Array;
use crate::runtime::lanes::tests::{check, for_every_body, same, same_in_lanes, samples};
use crate::runtime::lanes::{F32x16, F64x8, Pair};

mod double_double;
mod poisson;
use double_double::Dd;

fn functions<V: Lanes>() {
    same_in_lanes! { V:
        |x, _| exp2(x);
        |x, _| exp2m1(x);
        |x, _| exp2rel(x);
        |x, _| exp2rel(x * number(0.01));
        |x, _| exp(x);
        |x, _| expm1(x);
        |x, _| ln(x);
        |x, _| log2(x);
        |x, _| log10(x);
        |x, y| pow(x, y);
        |x, y| pow(x.abs(), y);
        |x, y| pow(x, y.round_even());
        |x, _| sin(x);
        |x, _| cos(x);
        |x, _| tan(x);
        |x, _| sinh(x);
        |x, _| cosh(x);
        |x, _| tanh(x);
        |x, _| linoid(x);
        |x, y| poisson(x, y);
        |x, y| poisson(x - x.floor(), y.abs());
    }
}

#[test]
fn every_function_is_the_scalar_one_in_each_lane() {
    for_every_body!(functions);
}

/// A function with its reference, the intervals where its error is stated (f64 then f32) and the bounds in ulp.
struct Stated {
    name: &'static str,
    f64: fn(f64) -> f64,
    f32: fn(f32) -> f32,
    exact: fn(Dd) -> Dd,
    ranges: [(f64, f64); 2],
    bounds: [f64; 2],
}

macro_rules! stated {
    ($($name:ident in $a:literal..$b:literal, f32 $c:literal..$d:literal: $e64:literal, $e32:literal;)*) => {
        [$(Stated {
            name: stringify!($name),
            f64: $name::<f64>,
            f32: $name::<f32>,
            exact: Dd::$name,
            ranges: [($a, $b), ($c, $d)],
            bounds: [$e64, $e32],
        }),*]
    };
}

/// A unit in the last place of `x`.
fn ulp(x: f64, mantissa: i32, lowest: i32) -> f64 {
    let exponent = (x.abs().log2().floor() as i32).max(lowest);
    ((exponent - mantissa) as f64).exp2()
}

/// The distance of `x` from `exact` in units of the last place of the exact result.
fn ulps(x: f64, exact: Dd, mantissa: i32, lowest: i32) -> f64 {
    ((x - exact.0) - exact.1) / ulp(exact.0, mantissa, lowest)
}

#[test]
fn errors_are_as_stated() {
    let table = stated! {
        exp2 in -1021.0..1024.0, f32 -125.0..128.0: 1.0, 2.0;
        exp2m1 in -60.0..1023.5, f32 -30.0..127.5: 2.5, 2.5;
        exp2rel in -1000.0..1023.5, f32 -120.0..127.5: 3.0, 3.0;
        exp in -708.0..709.7, f32 -87.0..88.7: 1.5, 1.5;
        expm1 in -40.0..709.7, f32 -20.0..88.7: 1.6, 1.5;
        ln in 1e-300..1e300, f32 1e-37..1e38: 1.5, 1.5;
        log2 in 1e-300..1e300, f32 1e-37..1e38: 2.0, 2.0;
        log10 in 1e-300..1e300, f32 1e-37..1e38: 2.0, 2.0;
        sin in -1e9..1e9, f32 -60000.0..60000.0: 2.0, 2.0;
        cos in -1e9..1e9, f32 -60000.0..60000.0: 2.0, 2.0;
        tan in -1e9..1e9, f32 -60000.0..60000.0: 3.5, 3.5;
        sinh in -709.0..709.0, f32 -89.0..89.0: 3.0, 3.0;
        cosh in -709.0..709.0, f32 -89.0..89.0: 1.5, 1.5;
        tanh in -30.0..30.0, f32 -15.0..15.0: 3.0, 3.0;
        linoid in -700.0..709.0, f32 -87.0..87.0: 2.5, 2.5;
    };
    let mut random = Random(1);
    let mut failures = String::new();
    for s in table {
        let mut worst = [(0.0f64, 0.0); 2];
        for k in 0..120_000 {
            for (wide, worst) in worst.iter_mut().enumerate() {
                let (low, high) = s.ranges[wide];
                // A third over the range, a third near zero or one, a third spread over the magnitudes.
                let x = match k % 3 {
                    0 => low + (high - low) * random.next(),
                    1 if low > 0.0 => 0.5 + 1.5 * random.next(),
                    1 => (2.0 * random.next() - 1.0) * high.min(1.5),
                    _ if low > 0.0 => (low.log2() + (high.log2() - low.log2()) * random.next()).exp2(),
                    _ => {
                        let size = (-40.0 + random.next() * (40.0 + high.log2())).exp2();
                        if random.next() < 0.5 && -size > low { -size } else { size }
                    }
                };
                let error = if wide == 0 {
                    ulps((s.f64)(x), (s.exact)(Dd(x, 0.0)), 52, -1022)
                } else {
                    let x = x as f32;
                    ulps(f64::from((s.f32)(x)), (s.exact)(Dd(f64::from(x), 0.0)), 23, -126)
                };
                if error.is_nan() || error.abs() > worst.0 {
                    *worst = (error.abs(), x);
                }
            }
        }
        println!("{:7} f64 {:.2} at {:e}, f32 {:.2} at {:e}", s.name, worst[0].0, worst[0].1, worst[1].0, worst[1].1);
        if !(worst[0].0 <= s.bounds[0] && worst[1].0 <= s.bounds[1]) {
            failures += &format!("{}: {worst:?}\n", s.name);
        }
    }
    assert!(failures.is_empty(), "{failures}");
}

#[test]
fn error_of_pow_is_as_stated() {
    let mut random = Random(2);
    let mut worst = [(0.0f64, 0.0, 0.0); 2];
    for k in 0..120_000 {
        let x = match k % 3 {
            0 => (random.next() * 200.0 - 100.0).exp2(),
            1 => 0.5 + random.next(),
            _ => 1.0 + (random.next() - 0.5) * 1e-3,
        };
        let y = (2.0 * random.next() - 1.0) * (1000.0 / x.log2().abs()).min(1e6);
        let error = ulps(pow(x, y), Dd(x, 0.0).pow(y), 52, -1022).abs();
        if error > worst[0].0 {
            worst[0] = (error, x, y);
        }
        let (x, y) = (x as f32, (y * 0.12) as f32);
        let exact = Dd(f64::from(x), 0.0).pow(f64::from(y));
        let error = ulps(f64::from(pow(x, y)), exact, 23, -126).abs();
        if error > worst[1].0 && exact.0 < 3e38 {
            worst[1] = (error, f64::from(x), f64::from(y));
        }
    }
    println!("pow f64 {:?}, f32 {:?}", worst[0], worst[1]);
    assert!(worst[0].0 <= 2.5 && worst[1].0 <= 2.0);
}

/// Angles with their sines and cosines, from arbitrary precision.
const LARGE_ANGLES: &str = include_str!("../../../tests/reference/large_angles.json");

/// The rows of a format: an angle, then the numbers that belong to it.
fn large_angles(format: &str) -> Vec<Vec<f64>> {
    let (_, rows) = LARGE_ANGLES.split_once(&format!("\"{format}\": {{\n")).expect("the format is there");
    let word = |c: char| c.is_ascii_alphanumeric() || "+-.".contains(c);
    let row = |line: &str| {
        let words = line.split(|c| !word(c)).filter(|word| !word.is_empty());
        words.map(|word| word.parse().expect("a number")).collect()
    };
    rows.lines().take_while(|line| line.contains('[')).map(row).collect()
}

#[test]
fn errors_at_large_angles_are_as_stated() {
    let mut worst = [[(0.0f64, 0.0); 3]; 2];
    let mut note = |wide: usize, x: f64, errors: [f64; 3]| {
        for (error, worst) in errors.iter().zip(&mut worst[wide]) {
            if error.is_nan() || error.abs() > worst.0 {
                *worst = (error.abs(), x);
            }
        }
    };
    let rows = large_angles("f64");
    assert!(rows.len() > 3000);
    for row in rows {
        let [x, sine, sine_tail, cosine, cosine_tail] = row[..] else { panic!("{row:?}") };
        let (sine, cosine) = (Dd(sine, sine_tail), Dd(cosine, cosine_tail));
        let error = |y: f64, exact: Dd| ulps(y, exact, 52, -1022);
        note(0, x, [error(sin(x), sine), error(cos(x), cosine), error(tan(x), sine / cosine)]);
        assert!(same(sin(-x), -sin(x)) && same(cos(-x), cos(x)) && same(tan(-x), -tan(x)), "{x:e}");
    }
    let rows = large_angles("f32");
    assert!(rows.len() > 1000);
    for row in rows {
        let [x, sine, cosine] = row[..] else { panic!("{row:?}") };
        let (sine, cosine) = (Dd(sine, 0.0), Dd(cosine, 0.0));
        let error = |f: fn(f32) -> f32, exact: Dd| ulps(f64::from(f(x as f32)), exact, 23, -126);
        note(1, x, [error(sin, sine), error(cos, cosine), error(tan, sine / cosine)]);
    }
    println!("sin, cos, tan at large angles: f64 {:?}, f32 {:?}", worst[0], worst[1]);
    assert!(worst.iter().flat_map(|format| format.iter().zip([2.0, 2.0, 3.5])).all(|(worst, bound)| worst.0 <= bound));
}

#[test]
fn what_is_left_of_large_angles_is_as_stated() {
    let mut worst = (0.0f64, 0.0);
    for row in large_angles("f64") {
        let [x, sine, sine_tail, cosine, cosine_tail] = row[..] else { panic!("{row:?}") };
        let (q, r) = payne_hanek::reduce(x);
        assert!(r.abs() <= std::f64::consts::FRAC_PI_4);
        let exact = match q {
            0.0 => Dd(sine, sine_tail),
            1.0 => -Dd(cosine, cosine_tail),
            2.0 | -2.0 => -Dd(sine, sine_tail),
            -1.0 => Dd(cosine, cosine_tail),
            _ => panic!("{x:e} is in quadrant {q}"),
        };
        // The slope of the sine is at most 1, so this is no more than the error of r.
        let error = (Dd(r, 0.0).sin() - exact).0.abs() / ulp(r, 52, -1022);
        if error.is_nan() || error > worst.0 {
            worst = (error, x);
        }
    }
    println!("what is left: {:.4} at {:e}", worst.0, worst.1);
    assert!(worst.0 <= 0.51);
}

#[test]
fn digits_of_two_over_pi_are_the_exact_ones() {
    let [zeros, digits @ ..] = &payne_hanek::TWO_OVER_PI;
    let words: Vec<String> = digits.iter().map(|word| format!("\"{word:016x}\"")).collect();
    assert!(*zeros == 0 && LARGE_ANGLES.contains(&format!("[{}]", words.join(", "))));
}

/// Vectors of which some lanes or all are large angles, the others numbers of every kind.
fn mixed_angles<V: Lanes>() {
    type Named<V, S> = (&'static str, fn(V) -> V, fn(S) -> S);
    let functions: [Named<V, V::Scalar>; 3] = [("sin", sin, sin), ("cos", cos, cos), ("tan", tan, tan)];
    let format = if size_of::<V::Scalar>() == 8 { "f64" } else { "f32" };
    let large: Vec<V::Scalar> = large_angles(format).iter().map(|row| V::Scalar::from_f64(row[0])).collect();
    let others = samples::<V::Scalar>();
    let mut random = Random(3);
    let mut y = vec![V::Scalar::default(); V::LANES];
    for share in [0.02, 0.1, 0.5, 1.0] {
        for _ in 0..300 {
            let mut lane = || {
                let from = if random.next() < share { &large } else { &others };
                from[(random.next() * from.len() as f64) as usize]
            };
            let x: Vec<V::Scalar> = (0..V::LANES).map(|_| lane()).collect();
            for (name, vector, scalar) in functions {
                vector(V::load(&x)).store(&mut y);
                for (i, (&x, &y)) in x.iter().zip(&y).enumerate() {
                    let group = std::any::type_name::<V>();
                    assert!(same(y, scalar(x)), "{name} of {:e}: {:e} in lane {i} of {group}", x.to_f64(), y.to_f64());
                }
            }
        }
    }
}

#[test]
fn large_angles_are_the_scalar_ones_in_any_lane() {
    for_every_body!(mixed_angles);
}

fn limits<S: Scalar>() {
    let number = S::from_f64;
    let is = |x: S, want: f64| {
        assert!(x.to_f64() == want || x.to_f64().is_nan() && want.is_nan(), "{} is not {want}", x.to_f64())
    };
    let (inf, nan, zero, one) = (f64::INFINITY, f64::NAN, number(0.0), number(1.0));
    // That these are right is tested with the other large angles.
    let [sine, cosine, tangent] = [sin::<S>, cos, tan].map(|f| f(number(1e30)).to_f64());
    let functions: [fn(S) -> S; 15] =
        [exp2, exp2m1, exp2rel, exp, expm1, ln, log2, log10, sin, cos, tan, sinh, cosh, tanh, linoid];
    let at = [
        // at minus infinity, at infinity, at a large negative number, at a large number, at zero
        [0.0, inf, 0.0, inf, 1.0],
        [-1.0, inf, -1.0, inf, 0.0],
        [0.0, nan, (one / number(1e30)).to_f64(), inf, number(std::f64::consts::LN_2).to_f64()],
        [0.0, inf, 0.0, inf, 1.0],
        [-1.0, inf, -1.0, inf, 0.0],
        [nan, inf, nan, 1e30f64.ln(), -inf],
        [nan, inf, nan, 1e30f64.log2(), -inf],
        [nan, inf, nan, 30.0, -inf],
        [nan, nan, -sine, sine, 0.0],
        [nan, nan, cosine, cosine, 1.0],
        [nan, nan, -tangent, tangent, 0.0],
        [-inf, inf, -inf, inf, 0.0],
        [inf, inf, inf, inf, 1.0],
        [-1.0, 1.0, -1.0, 1.0, 0.0],
        [inf, 0.0, number(1e30).to_f64(), 0.0, 1.0],
    ];
    for (i, (f, want)) in functions.iter().zip(at).enumerate() {
        is(f(number(nan)), nan);
        is(f(number(-inf)), want[0]);
        is(f(number(inf)), want[1]);
        is(f(number(-1e30)), want[2]);
        is(f(zero), want[4]);
        let large = f(number(1e30)).to_f64();
        assert!(
            large == want[3] || large.is_nan() && want[3].is_nan() || (large - want[3]).abs() < 1e-5 * want[3],
            "{i}: {large}"
        );
    }
    for n in -140..128 {
        let power = exp2(number(f64::from(n)));
        is(power, f64::from(n).exp2());
        is(log2(power), f64::from(n));
    }
    is(ln(one), 0.0);
    is(log10(one), 0.0);

    let p = |x: f64, y: f64| pow(number(x), number(y));
    for (x, y, want) in [
        (nan, 0.0, 1.0),
        (1.0, nan, 1.0),
        (nan, 1.0, nan),
        (2.0, nan, nan),
        (0.0, 0.0, 1.0),
        (0.0, 2.0, 0.0),
        (0.0, -1.0, inf),
        (inf, 0.5, inf),
        (inf, -2.0, 0.0),
        (2.0, inf, inf),
        (2.0, -inf, 0.0),
        (0.5, inf, 0.0),
        (0.5, -inf, inf),
        (1.0, inf, 1.0),
        (-2.0, 3.0, -8.0),
        (-2.0, 2.0, 4.0),
        (-2.0, 0.5, nan),
        (-2.0, -1.0, -0.5),
        (-1.0, inf, 1.0),
        (-inf, 3.0, -inf),
        (3.0, 4.0, 81.0),
        (10.0, 2.0, 100.0),
        (4.0, 0.5, 2.0),
        (2.0, 1e30, inf),
        (2.0, -1e30, 0.0),
        (-2.0, 1e30, inf),
        (7.25, 1.0, 7.25),
        (1e-30, 1.0, number(1e-30).to_f64()),
    ] {
        let got = p(x, y).to_f64();
        assert!(got == want || got.is_nan() && want.is_nan(), "pow({x}, {y}) = {got}");
    }
}

#[test]
fn limits_are_right() {
    limits::<f64>();
    limits::<f32>();
    assert_eq!(exp2(-1074.0), f64::from_bits(1));
    assert_eq!(exp2(1023.999), 2f64.powf(1023.999));
    assert_eq!(exp2(1024.0), f64::INFINITY);
    assert_eq!(exp2(-149.0f32), f32::from_bits(1));
    assert!(exp(709.78f64) < f64::INFINITY && exp(709.79f64) == f64::INFINITY);
    assert!(expm1(709.78f64) < f64::INFINITY && expm1(709.79f64) == f64::INFINITY);
    assert!(exp2m1(1023.4999f64) < f64::INFINITY && exp2m1(1023.5001f64) == f64::INFINITY);
    assert!(exp2m1(127.499f32) < f32::INFINITY && exp2m1(127.501f32) == f32::INFINITY);
    assert!([700.0, 1500.0].iter().all(|&x| exp2m1(x as f32) == f32::INFINITY && exp2m1(2.0 * x) == f64::INFINITY));
    assert!(sinh(710.47f64) < f64::INFINITY && sinh(710.48f64) == f64::INFINITY);
    assert!(cosh(89.41f32) < f32::INFINITY && cosh(89.42f32) == f32::INFINITY);
    assert_eq!(exp(-746.0f64), 0.0);
    assert_eq!(exp(-744.0f64), 1e-323);
}

struct Random(u64);

impl Random {
    /// Uniform in `[0, 1)`.
    fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 11) as f64 / (1u64 << 53) as f64
    }
}
