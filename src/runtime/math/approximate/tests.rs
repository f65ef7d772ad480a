//! Errors measured against the accurate functions, limits, and bits against the scalar.

use super::super::super::lanes::portable::Array;
use super::super::super::lanes::tests::{check, for_every_body, same_in_lanes};
use super::super::super::lanes::{F32x16, F64x8, Lanes, Pair};
use super::*;

/// The accurate function.
fn accurate(function: Function, x: f64) -> f64 {
    match function {
        Function::Exp => super::super::exp(x),
        Function::Exp2 => super::super::exp2(x),
        Function::Expm1 => super::super::expm1(x),
        Function::Exp2m1 => super::super::exp2m1(x),
        Function::Exp2rel => super::super::exp2rel(x),
        Function::Ln => super::super::ln(x),
        Function::Log2 => super::super::log2(x),
        Function::Log10 => super::super::log10(x),
    }
}

fn is_logarithm(function: Function) -> bool {
    matches!(function, Function::Ln | Function::Log2 | Function::Log10)
}

/// Arguments all over the range where the function is a normal number, dense where polynomials meet and near 0 or 1.
fn arguments(function: Function) -> Vec<f64> {
    let mut out = Vec::new();
    for i in 0..400_000 {
        let at = f64::from(i) / 400_000.0;
        if is_logarithm(function) {
            out.extend([(2040.0 * at - 1020.0).exp2(), 0.5 + at, 1.0 + (at - 0.5) * 1e-3]);
        } else {
            let octave = if matches!(function, Function::Exp | Function::Expm1) { std::f64::consts::LN_2 } else { 1.0 };
            let small = (-60.0 * at).exp2();
            out.extend([2042.0 * at - 1020.0, 8.0 * at - 4.0, 2.0 * at - 1.0, small, -small].map(|x| x * octave));
        }
    }
    out
}

#[test]
fn errors_are_those_of_the_table() {
    for (function, name) in Function::ALL {
        for (tolerance, within) in Tolerance::ALL {
            let mut worst: f64 = 0.0;
            for x in arguments(function) {
                let (exact, found) = (accurate(function, x), function.of(tolerance, x));
                if exact == 0.0 || exact.is_infinite() {
                    assert_eq!(found, exact, "{name} {within} at {x:e}");
                    continue;
                }
                // Half an octave below the largest number `2^x - 1` overflows.
                let error = ((found - exact) / exact).abs();
                let early = matches!(function, Function::Expm1 | Function::Exp2m1) && exact > f64::MAX / 1.5;
                if !(early && found.is_infinite()) {
                    assert!(error.is_finite(), "{name} {within} at {x:e}: {found:e} for {exact:e}");
                    worst = worst.max(error);
                }
            }
            println!("{name} within {within}: {worst:.2e}, degree {}", function.degree(tolerance));
            let stated = function.error(tolerance);
            assert!(worst <= stated && stated <= 1.1 * worst, "{name} {within}: measured {worst:e}, stated {stated:e}");
            assert!(stated <= tolerance.bound());
        }
    }
}

#[test]
fn error_of_exponentials_in_single_precision_is_as_stated() {
    let mut worst: f64 = 0.0;
    for i in 0..2_000_000 {
        let x = (251.0 * f64::from(i) / 2e6 - 125.0) as f32;
        for x in [x, x / 100.0] {
            let exact = super::super::exp2(f64::from(x));
            worst = worst.max(((f64::from(super::super::exp2(x)) - exact) / exact).abs());
            let exact = super::super::exp(f64::from(x) * 0.69);
            let found = super::super::exp((f64::from(x) * 0.69) as f32);
            let rounded = super::super::exp(f64::from((f64::from(x) * 0.69) as f32));
            assert!(((exact - rounded) / exact).abs() < 1e-5);
            worst = worst.max(((f64::from(found) - rounded) / rounded).abs());
        }
    }
    println!("{worst:e}");
    assert!(worst <= SINGLE_EXPONENTIAL && SINGLE_EXPONENTIAL <= 1.2 * worst, "{worst:e}");
}

#[test]
fn limits_are_those_of_the_accurate_functions() {
    let (inf, nan) = (f64::INFINITY, f64::NAN);
    for (function, name) in Function::ALL {
        for (tolerance, within) in Tolerance::ALL {
            for x in [nan, inf, -inf, 1e30, -1e30, 0.0, -0.0, -1e5, 1e5] {
                let (exact, found) = (accurate(function, x), function.of(tolerance, x));
                let same = exact == found || exact.is_nan() && found.is_nan();
                let close = ((found - exact) / exact).abs() <= tolerance.bound();
                assert!(same || close, "{name} {within} at {x}: {found}, not {exact}");
            }
            // Where results are subnormal, and where arguments are.
            for x in [-1023.5, -1060.25, -1074.0, -1080.0, 5e-324, -5e-324, 1e-310] {
                let (exact, found) = (accurate(function, x), function.of(tolerance, x));
                let error = (found - exact).abs();
                let small = 1e-323 + exact.abs() * tolerance.bound();
                assert!(
                    error <= small || exact.is_nan() && found.is_nan(),
                    "{name} {within} at {x:e}: {found:e}, not {exact:e}"
                );
            }
        }
    }
    for (tolerance, _) in Tolerance::ALL {
        for n in -1022..1024 {
            let power = exp2(tolerance, f64::from(n));
            assert_eq!(power, f64::from(n).exp2());
            assert_eq!(log2(tolerance, power), f64::from(n));
        }
        assert_eq!(exp(tolerance, 0.0), 1.0);
        assert_eq!(ln(tolerance, 1.0), 0.0);
        assert!(expm1(tolerance, 709.0) < inf && expm1(tolerance, 709.5) == inf);
        assert!(exp2m1(tolerance, 1023.49) < inf && exp2m1(tolerance, 1023.51) == inf);
    }
}

#[test]
fn other_lanes_than_f64_are_accurate() {
    for i in -1000..1000 {
        let x = i as f32 * 0.08;
        for (tolerance, _) in Tolerance::ALL {
            assert_eq!(exp2(tolerance, x), super::super::exp2(x));
            assert_eq!(exp(tolerance, x), super::super::exp(x));
            assert_eq!(expm1(tolerance, x), super::super::expm1(x));
            assert_eq!(exp2rel(tolerance, x), super::super::exp2rel(x));
            assert_eq!(ln(tolerance, x.abs()), super::super::ln(x.abs()));
        }
    }
}

fn functions<V: Lanes>() {
    use Tolerance::{Micro, Nano};
    same_in_lanes! { V:
        |x, _| exp(Nano, x);
        |x, _| exp(Micro, x);
        |x, _| exp2(Nano, x);
        |x, _| exp2(Micro, x);
        |x, _| expm1(Nano, x);
        |x, _| expm1(Micro, x);
        |x, _| exp2m1(Nano, x);
        |x, _| exp2m1(Micro, x);
        |x, _| exp2rel(Nano, x);
        |x, _| exp2rel(Micro, x);
        |x, _| ln(Nano, x);
        |x, _| ln(Micro, x);
        |x, _| log2(Nano, x);
        |x, _| log2(Micro, x);
        |x, _| log10(Nano, x);
        |x, _| log10(Micro, x);
    }
}

#[test]
fn every_function_is_the_scalar_one_in_each_lane() {
    for_every_body!(functions);
}
