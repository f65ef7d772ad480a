//! Tests of: `method = exact`: chains of linear equations against integrals, with decay rates far apart, near each other and equal, whatever the step.

use crate::models::{Way, run};
use neuroc::driver::{CompileOptions, check_text};
use neuroc::hir::{Method, Sources};
use std::path::Path;

const WAYS: [Way; 4] = [Way::Plain, Way::Optimized, Way::Reread, Way::Native];

/// A potential driven by a current that is driven by another one, by a second current, and by a constant; a sum and an oscillator's part beside them.
fn chain(tau_m: f64, tau_g: f64, tau_x: f64) -> String {
    format!(
        "cell Chain {{
    param tau_m = {tau_m} ms; param tau_g = {tau_g} ms; param tau_x = {tau_x} ms
    state x: mV/ms = 1 mV/ms
    state g: mV/ms = 0 mV/ms
    state h: mV/ms = 0.25 mV/ms
    state v: mV = -3 mV
    state total: mV*ms = 0 mV*ms
    x' = -x / tau_x
    g' = (x - g) / tau_g
    h' = (0.5 mV/ms - h) / tau_g
    v' = (2 mV - v) / tau_m + g - 2 * h
    total' = v
}}
network main {{ population c: Chain }}
run {{ duration = 24 ms; dt = 1 ms; method = exact; record c.{{x, g, h, v}} }}"
    )
}

/// The integral of `f` from 0 to `t`: Gauss and Legendre with three points in each of many parts.
fn integral(t: f64, f: impl Fn(f64) -> f64) -> f64 {
    const PARTS: usize = 4000;
    let h = t / PARTS as f64;
    let at = 0.6f64.sqrt();
    let part = |i: usize| {
        let middle = (i as f64 + 0.5) * h;
        (5.0 * f(middle - at * h / 2.0) + 8.0 * f(middle) + 5.0 * f(middle + at * h / 2.0)) / 18.0 * h
    };
    (0..PARTS).map(part).sum()
}

/// `[g, h, v]` at a time; `g` is the integral of what `x` puts in.
fn solution(t: f64, tau_m: f64, tau_g: f64, tau_x: f64) -> [f64; 3] {
    let k = 1.0 / tau_x - 1.0 / tau_g;
    let g = |s: f64| {
        let driven = if (k * s).abs() < 1e-300 { s } else { -(-k * s).exp_m1() / k };
        (-s / tau_g).exp() * driven / tau_g
    };
    let h = |s: f64| 0.5 + (0.25 - 0.5) * (-s / tau_g).exp();
    let free = 2.0 + (-3.0 - 2.0) * (-t / tau_m).exp();
    [g(t), h(t), free + integral(t, |s| (-(t - s) / tau_m).exp() * (g(s) - 2.0 * h(s)))]
}

#[test]
fn chains_of_linear_equations_are_followed_exactly() {
    let taus = [
        [10.0, 2.0, 5.0],
        [10.0, 10.0, 10.0],
        [10.0, 10.0, 3.0],
        [3.0, 10.0, 10.0],
        [10.0, 3.0, 10.0],
        [10.0, 10.0001, 9.9999],
        [10.0, 9.9999999999, 10.0000001],
        [2.0, 2.5, 2.2],
        [1.0, 1.5, 3.0],
        [20.0, 0.5, 0.4],
    ];
    for [tau_m, tau_g, tau_x] in taus {
        // What is driven by the potential would be too deep: `g` is driven by `x`, and `h` by a constant.
        let text = chain(tau_m, tau_g, tau_x)
            .replace("    state total: mV*ms = 0 mV*ms\n", "")
            .replace("    total' = v\n", "");
        let checked = check_text("m.neuro", Path::new(""), text, &Sources);
        for (way, dt) in WAYS.into_iter().flat_map(|way| [(way, 1.0), (way, 4.0), (way, 0.25)]) {
            let options = CompileOptions { dt: Some(dt), ..CompileOptions::default() };
            let result = run(&checked, &options, way);
            let last = |name: &str| {
                let series = result.series.iter().find(|s| s.name == name).unwrap_or_else(|| panic!("no {name}"));
                series.values.get(series.t.len() - 1, 0)
            };
            let expected = solution(24.0, tau_m, tau_g, tau_x);
            for (name, expected) in ["c.g", "c.h", "c.v"].into_iter().zip(expected) {
                let (found, taus) = (last(name), [tau_m, tau_g, tau_x]);
                let error = (found - expected).abs() / expected.abs().max(1.0);
                assert!(error < 2e-14 * (24.0 / dt), "{way:?} {taus:?} dt {dt}: {name} is {found:e}, not {expected:e}");
            }
        }
    }
}

#[test]
fn what_is_not_linear_is_refused_from_outside_too() {
    let text = chain(10.0, 2.0, 5.0).replace("method = exact", "method = exp_euler");
    let checked = check_text("m.neuro", Path::new(""), text, &Sources);
    let options = CompileOptions { method: Some(Method::Exact), ..CompileOptions::default() };
    let Err(found) = neuroc::driver::compile(&checked, &options, &mut |_, _, _| {}) else { panic!("it compiles") };
    let said: Vec<&str> = found.iter().map(|d| d.message.as_str()).collect();
    assert_eq!(said, ["`exact` cannot solve the equation of `c.total`"]);
}

/// Paths among many states that all drive each other are not counted.
#[test]
fn many_states_that_drive_each_other_are_refused_at_once() {
    let states: String = (0..60).map(|i| format!("    state s{i}: 1 = 0\n")).collect();
    let sum = |i: usize| (0..i).map(|j| format!(" + s{j}")).collect::<String>();
    let equations: String = (0..60).map(|i| format!("    s{i}' = (0 - s{i}{}) / 5 ms\n", sum(i))).collect();
    let text = format!(
        "cell C {{\n{states}{equations}}}\nnetwork main {{ population c: C }}\n\
         run {{ duration = 1 ms; dt = 0.1 ms; method = exact; record c.s0 }}"
    );
    let checked = check_text("m.neuro", Path::new(""), text, &Sources);
    let Err(found) = neuroc::driver::compile(&checked, &CompileOptions::default(), &mut |_, _, _| {}) else {
        panic!("it compiles")
    };
    assert!(found[0].message.starts_with("`exact` cannot solve the equation of `c.s"), "{found:?}");
}
