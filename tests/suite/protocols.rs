//! Tests of: protocols and draws: clamps, trains and staircases, white noise, distributions, ions, initial values from outside, and
//! records of a part of the run. Each against what it is by definition.

use crate::models::{Way, run};
use neuroc::driver::{Checked, CompileOptions, check_text, compile};
use neuroc::hir::{Method, Sources};
use neuroc::results::{RunResult, Series, SpikeTrain};
use std::ops::Range;
use std::path::Path;

const METHODS: [Method; 6] =
    [Method::Euler, Method::ExpEuler, Method::Cnexp, Method::CrankNicolson, Method::Heun, Method::Rk4];

/// Every engine in double precision.
fn ways() -> Vec<Way> {
    #[allow(unused_mut)]
    let mut ways = vec![Way::Plain, Way::Optimized, Way::Native];
    #[cfg(feature = "xla")]
    if crate::pjrt::cpu().is_some() {
        ways.push(Way::Xla);
    }
    ways
}

fn checked(text: &str) -> Checked {
    let checked = check_text("m.neuro", Path::new(""), text.to_string(), &Sources);
    let said = neuroc::diag::render_human(&checked.sources, &checked.diagnostics, false);
    assert!(checked.model.is_some(), "{said}");
    checked
}

fn series<'r>(result: &'r RunResult, name: &str) -> &'r Series {
    result.series.iter().find(|series| series.name == name).unwrap_or_else(|| panic!("no {name}"))
}

/// The samples of one column.
fn column(result: &RunResult, name: &str, at: usize) -> Vec<f64> {
    let series = series(result, name);
    (0..series.t.len()).map(|row| series.values.get(row, at)).collect()
}

fn close(found: f64, expected: f64, within: f64, what: &str) {
    assert!((found - expected).abs() <= within * expected.abs().max(1.0), "{what}: {found}, not {expected}");
}

fn with(method: Method) -> CompileOptions {
    CompileOptions { method: Some(method), ..CompileOptions::default() }
}

/// A channel with a gate whose kinetics are simple functions of the voltage, in cells of which the first two are clamped.
const CLAMPED: &str = "
channel X {
    param gbar = 2 mS/cm2; param erev = -80 mV
    gate n^2 { inf = 1 / (1 + exp(-(v + 40 mV) / 9 mV)); tau = 1 ms + 4 ms / (1 + exp((v + 30 mV) / 7 mV)); init = 0.1 }
}
cell C { compartment s { area = 1000 um2; cm = 1 uF/cm2; v_init = -70 mV; insert X } }
network main {
    population c: C[4]
    clamp command: -70 mV + pulse(delay = 2 ms, duration = 3 ms, amplitude = 30 mV * (index + 1)) -> c[0..2].s
    input drive: 3 uA/cm2 -> c.s
}
run { duration = 8 ms; dt = 0.02 ms; record c.s.{v, i_clamp, X.n} }
";

#[test]
fn a_clamp_holds_what_it_says_and_tells_its_current() {
    let checked = checked(CLAMPED);
    let inf = |v: f64| 1.0 / (1.0 + (-(v + 40.0) / 9.0).exp());
    let tau = |v: f64| 1.0 + 4.0 / (1.0 + ((v + 30.0) / 7.0).exp());
    let later = |n: f64, v: f64, t: f64| inf(v) + (n - inf(v)) * (-t / tau(v)).exp();
    for way in ways() {
        for method in METHODS {
            let result = run(&checked, &with(method), way);
            let what = format!("{way:?}, {method:?}");
            // Exact where a gate relaxes at a fixed voltage; the others are as good as their order.
            let within = match method {
                Method::ExpEuler | Method::Cnexp | Method::CrankNicolson | Method::Exact => 1e-12,
                Method::Rk4 | Method::Adaptive => 1e-8,
                Method::Heun => 1e-4,
                Method::Euler => 2e-2,
            };
            for cell in 0..2 {
                let command = -70.0 + 30.0 * (cell + 1) as f64;
                let [v, i, n] = ["v", "i_clamp", "X.n"].map(|name| column(&result, &format!("c.s.{name}"), cell));
                for (step, &v) in v.iter().enumerate() {
                    let expected = if (100..250).contains(&step) { command } else { -70.0 };
                    assert_eq!(v, expected, "{what}: v of cell {cell} after {step} steps");
                }
                let first = later(0.1, -70.0, 2.0);
                let second = later(first, command, 3.0);
                let third = later(second, -70.0, 3.0);
                for (step, expected) in [(100, first), (250, second), (400, third)] {
                    close(n[step], expected, within, &format!("{what}: n of cell {cell} after {step} steps"));
                }
                for step in [50, 150, 300] {
                    let held = if step == 150 { command } else { -70.0 };
                    let ionic = 2.0 * n[step] * n[step] * (held + 80.0);
                    close(i[step], ionic - 3.0, 1e-9, &format!("{what}: i_clamp of cell {cell} after {step} steps"));
                }
            }
        }
    }
}

#[test]
fn cells_that_are_not_clamped_do_not_feel_that_others_are() {
    let free = checked(&CLAMPED.replace("clamp command", "// clamp command").replace("i_clamp, ", ""));
    let some = checked(CLAMPED);
    for method in METHODS {
        let (free, some) = (run(&free, &with(method), Way::Native), run(&some, &with(method), Way::Native));
        for name in ["c.s.v", "c.s.X.n"] {
            for cell in 2..4 {
                assert_eq!(column(&free, name, cell), column(&some, name, cell), "{method:?}: {name} of cell {cell}");
            }
        }
        assert!(column(&some, "c.s.i_clamp", 3).iter().all(|&i| i == 0.0));
    }
}

/// A clamp that changes all the time: gates see it at the times of the stages of a method.
#[test]
fn a_ramp_is_followed_with_the_order_of_the_method() {
    let text = CLAMPED.replace(
        "-70 mV + pulse(delay = 2 ms, duration = 3 ms, amplitude = 30 mV * (index + 1)) -> c[0..2].s",
        "-70 mV + sine(delay = 0 ms, duration = 1 s, amplitude = 30 mV, period = 9 ms) -> c.s",
    );
    let checked = checked(&text.replace("dt = 0.02 ms", "dt = 0.4 ms"));
    let n = |method, dt| {
        let options = CompileOptions { dt: Some(dt), ..with(method) };
        *column(&run(&checked, &options, Way::Optimized), "c.s.X.n", 0).last().unwrap()
    };
    let exact = n(Method::Rk4, 0.005);
    // A gate of Crank and Nicolson's is that of half a step later.
    for method in METHODS.into_iter().filter(|&method| method != Method::CrankNicolson) {
        let [coarse, fine] = [0.2, 0.1].map(|dt| (n(method, dt) - exact).abs());
        let order = (coarse / fine).log2();
        assert!(order > f64::from(method.order()) - 0.3, "{method:?}: {coarse:e}, then {fine:e}: order {order}");
    }
}

/// A state that is no voltage, from a file as well; two clamps of the same cells: the later one counts.
#[test]
fn any_state_is_clamped() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("s.csv"), "0,1\n10,3\n").unwrap();
    let text = "
        cell P { param tau = 5 ms; state x: mV = 1 mV; state y = 0; x' = -x / tau; y' = (x / 1 mV - y) / tau }
        network main {
            population p: P[3]
            clamp played: series(\"s.csv\") * 1 mV -> p.x
            clamp hold: 7 mV -> p[2].x
        }
        run { duration = 10 ms; dt = 0.1 ms; method = rk4; record p.{x, y} }";
    let checked = check_text("m.neuro", folder.path(), text.to_string(), &Sources);
    let result = run(&checked, &CompileOptions::default(), Way::Native);
    let (x, y, held) = (column(&result, "p.x", 0), column(&result, "p.y", 0), column(&result, "p.y", 2));
    for (step, x) in x.iter().enumerate() {
        close(*x, 1.0 + 0.02 * step as f64, 1e-12, "x");
    }
    assert_eq!(column(&result, "p.x", 2), vec![7.0; 101]);
    // y' = (1 + 0.2 t - y) / 5 from 0.
    let t: f64 = 10.0;
    close(y[100], 0.2 * t + (1.0 - (-t / 5.0).exp()) - 0.2 * 5.0 * (1.0 - (-t / 5.0).exp()), 1e-6, "y");
    close(held[100], 7.0 * (1.0 - (-2.0f64).exp()), 1e-6, "y of the cell that is held at another value");
}

#[test]
fn trains_and_staircases_are_on_when_they_say() {
    let text = "
        cell P { input drive: 1/ms; input stairs: 1/ms; input on: 1/ms; state x = 0; state y = 0; state z = 0
                 x' = drive; y' = stairs; z' = on }
        network main {
            population p: P
            input pulses: train(delay = 1 ms, duration = 0.2 ms, amplitude = 1 /ms, period = 0.5 ms, count = 3) -> p.drive
            input always: train(delay = 1 ms, duration = 0.3 ms, amplitude = 1 /ms, period = 0.7 ms) -> p.on
            input steps: staircase(delay = 0.5 ms, duration = 0.4 ms, start = -1 /ms, increment = 2 /ms, count = 4) -> p.stairs
        }
        run { duration = 5 ms; dt = 0.1 ms; method = euler; record p.{x, y, z} }";
    let checked = checked(text);
    for way in ways() {
        let result = run(&checked, &CompileOptions::default(), way);
        let rates = |name: &str| -> Vec<i64> {
            column(&result, name, 0).windows(2).map(|w| ((w[1] - w[0]) * 10.0).round() as i64).collect()
        };
        let pulses = |step: usize| (0..3).any(|k| (10 + 5 * k..12 + 5 * k).contains(&step));
        assert_eq!(rates("p.x"), (0..50).map(|step| i64::from(pulses(step))).collect::<Vec<_>>(), "{way:?}");
        let always = |step: usize| step >= 10 && (step - 10) % 7 < 3;
        assert_eq!(rates("p.z"), (0..50).map(|step| i64::from(always(step))).collect::<Vec<_>>(), "{way:?}");
        let stairs = |step: usize| match step {
            5..21 => -1 + 2 * ((step - 5) / 4) as i64,
            _ => 0,
        };
        assert_eq!(rates("p.y"), (0..50).map(stairs).collect::<Vec<_>>(), "{way:?}");
    }
    // Arguments are parameters.
    let set =
        CompileOptions { set: vec!["pulses.count=1".into(), "steps.increment=0/ms".into()], ..Default::default() };
    let result = run(&checked, &set, Way::Optimized);
    close(*column(&result, "p.x", 0).last().unwrap(), 0.2, 1e-12, "one pulse");
    close(*column(&result, "p.y", 0).last().unwrap(), -1.6, 1e-12, "no stairs");
}

/// A leaky integrator of white noise has, at every time step, the variance that the noise says: sd^2 per tau / 2 (Gardiner 2009).
#[test]
fn white_noise_is_the_same_at_every_time_step() {
    let text = "
        cell P { input drive: mV/ms; state v: mV = 0 mV; v' = -v / 10 ms + drive }
        network main { population p: P[2000]; input hum: white_noise(mean = 0.5 mV/ms, sd = 2 mV/ms, per = 1 ms) -> p.drive }
        run { duration = 60 ms; dt = 0.1 ms; seed = 11; record p.v every 60 ms }";
    let checked = checked(text);
    for dt in [0.05, 0.2, 0.5] {
        let options = CompileOptions { dt: Some(dt), ..CompileOptions::default() };
        let result = run(&checked, &options, Way::Native);
        if dt > 0.3 {
            assert_eq!(result, run(&checked, &options, Way::Optimized), "dt = {dt}");
        }
        let v: Vec<f64> = (0..2000).map(|cell| series(&result, "p.v").values.get(1, cell)).collect();
        let mean = v.iter().sum::<f64>() / 2000.0;
        let variance = v.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / 1999.0;
        // Six standard errors, and what is left of the beginning.
        let (expected, end) = (2.0 * 2.0 * 1.0 * 10.0 / 2.0, (-6.0f64).exp());
        assert!((mean - 5.0 * (1.0 - end)).abs() < 6.0 * (expected / 2000.0f64).sqrt(), "dt = {dt}: mean {mean}");
        // A step that holds its noise has it a little smaller: tanh(dt / 2 tau) / (dt / 2 tau).
        let held = (dt / 20.0f64).tanh() / (dt / 20.0);
        let band = 6.0 * expected * (2.0f64 / 1999.0).sqrt();
        assert!((variance - expected * held * (1.0 - end * end)).abs() < band, "dt = {dt}: variance {variance}");
    }
}

/// Noise that remembers has, with every method and at every time step, however long, the mean, the variance and the correlations that are asked for, from
/// the start on (Gardiner 2009); and the same bits on every engine.
#[test]
fn ornstein_uhlenbeck_noise_is_exact_at_every_time_step() {
    let text = "
        cell P { input drive: mV; let x = drive; state v: mV = 0 mV; v' = (x - v) / 10 ms }
        network main { population p: P[3000]; input hum: ornstein_uhlenbeck(mean = 3 mV, sigma = 2 mV, tau = 5 ms) -> p.drive }
        run { duration = 60 ms; dt = 0.1 ms; seed = 11; record p.{x, v} every 20 ms }";
    let checked = checked(text);
    let cells = 3000.0f64;
    for (dt, every) in [(0.05, 2.5), (0.5, 2.5), (2.5, 2.5), (5.0, 5.0)] {
        let options = CompileOptions { dt: Some(dt), every: Some(every), ..CompileOptions::default() };
        let result = run(&checked, &options, Way::Native);
        if dt > 1.0 {
            assert_eq!(result, run(&checked, &options, Way::Optimized), "dt = {dt}");
            let plain = run(&checked, &options, Way::Plain);
            for method in METHODS.into_iter().chain([Method::Exact]) {
                let other = run(&checked, &CompileOptions { method: Some(method), ..options.clone() }, Way::Plain);
                assert_eq!(series(&plain, "p.x").values, series(&other, "p.x").values, "{method:?}");
            }
        }
        let x = series(&result, "p.x");
        let at = |row: usize| (0..3000).map(|cell| x.values.get(row, cell)).collect::<Vec<f64>>();
        let rows: Vec<Vec<f64>> = (0..x.t.len()).map(at).collect();
        for (row, values) in rows.iter().enumerate() {
            // Six standard errors.
            let mean = values.iter().sum::<f64>() / cells;
            assert!((mean - 3.0).abs() < 6.0 * 2.0 / cells.sqrt(), "dt = {dt}, row {row}: mean {mean}");
            let variance = values.iter().map(|v| (v - 3.0).powi(2)).sum::<f64>() / cells;
            assert!(
                (variance - 4.0).abs() < 6.0 * 4.0 * (2.0 / cells).sqrt(),
                "dt = {dt}, row {row}: variance {variance}"
            );
            for (lag, later) in rows[row..].iter().enumerate().skip(1).take(4) {
                let together = values.iter().zip(later).map(|(a, b)| (a - 3.0) * (b - 3.0)).sum::<f64>() / cells;
                let expected = 4.0 * (-(lag as f64) * every / 5.0).exp();
                // The variance of the product of two normal numbers.
                let error = ((16.0 + expected * expected) / cells).sqrt();
                assert!((together - expected).abs() < 6.0 * error, "dt = {dt}, rows {row} and {lag} on: {together}");
            }
        }
    }
}

/// Such noise in a clamp, at a place of a branched cell, as the rate of a drive, and with values that differ from cell to cell; a run in two parts has the same numbers.
#[test]
fn ornstein_uhlenbeck_noise_stands_wherever_inputs_do() {
    let text = "
        use std.channels.hh.{Leak}
        synapse Count { state n: 1 = 0; n' = 0 / 1 ms; on event(weight) { n += weight } current i = n * 0 nA }
        cell P { input drive: mV; let x = drive; state v: mV = 0 mV; state y: mV = 0 mV; v' = (x - v - i_syn * 1 Mohm) / 10 ms; y' = (v - y) / 5 ms }
        cell Tree {
            section soma { length = 20 um; diam = 20 um; compartments = 1 }
            section dend { from soma(1); length = 100 um; diam = 2 um; compartments = 3 }
            region all { ra = 100 ohm*cm; cm = 1 uF/cm2; v_init = -65 mV; insert Leak(gbar = 0.3 mS/cm2, erev = -65 mV) }
        }
        network main {
            population p: P[500]
            population trees: Tree[20]
            input one: ornstein_uhlenbeck(mean = 1 mV * index, sigma = uniform(1 mV, 2 mV), tau = 1 ms + 0.1 ms * index) -> p[0..300].drive
            clamp hold: ornstein_uhlenbeck(mean = 0 mV, sigma = 2 mV, tau = 5 ms) -> p[400..500].v
            input flow: ornstein_uhlenbeck(mean = 0.01 nA, sigma = 0.02 nA, tau = 3 ms) -> trees.dend(0.5)
            drive p via Count from poisson(rate = max(ornstein_uhlenbeck(mean = 2 kHz, sigma = 1 kHz, tau = 4 ms), 0 Hz)) { weight = 1 }
        }
        run { duration = 20 ms; dt = 0.1 ms; method = cnexp; seed = 2; record p.{x, v, y, Count.n}; record trees.{soma(0.5), dend(0.5)}.v }";
    let checked = checked(text);
    let plain = run(&checked, &CompileOptions::default(), Way::Plain);
    let optimized = run(&checked, &CompileOptions::default(), Way::Optimized);
    assert_eq!(optimized, run(&checked, &CompileOptions::default(), Way::Native));
    let column = |name: &str, cell: usize| {
        let of = series(&plain, name);
        (0..of.t.len()).map(|row| of.values.get(row, cell)).collect::<Vec<f64>>()
    };
    assert!(column("p.x", 350).iter().all(|x| *x == 0.0) && column("p.x", 30)[50] != column("p.x", 30)[51]);
    assert!((column("p.x", 200).iter().sum::<f64>() / 201.0 - 200.0).abs() < 10.0);
    // What is clamped moves as the noise does, from where that begins.
    let held: Vec<Vec<f64>> = (400..500).map(|cell| column("p.v", cell)).collect();
    let mean = |of: &dyn Fn(&[f64]) -> f64| held.iter().map(|v| of(v)).sum::<f64>() / 100.0;
    for row in [0, 1, 2, 100, 199] {
        let variance = mean(&|v| v[row] * v[row]);
        assert!((variance - 4.0).abs() < 6.0 * 4.0 * (2.0f64 / 100.0).sqrt(), "row {row}: {variance}");
        let next = mean(&|v| (v[row + 1] - v[row]).powi(2));
        let expected = 2.0 * 4.0 * (1.0 - (-0.1f64 / 5.0).exp());
        assert!((next - expected).abs() < 6.0 * expected * (2.0f64 / 100.0).sqrt(), "row {row}: {next}");
    }
    assert!(column("trees.dend(0.5).v", 3)[200] != column("trees.dend(0.5).v", 4)[200]);
    let n: f64 = (0..500).map(|cell| column("p.Count.n", cell)[200]).sum();
    // A rate whose mean is a little above 2 kHz, since it is cut off at 0.
    assert!((n / 500.0 / 20.0 - 2.0).abs() < 0.2, "{n}");
}

/// Mean, standard deviation and limits of every distribution, and the same draws on every engine.
#[test]
fn draws_have_the_moments_of_their_distributions() {
    const CELLS: usize = 10_000;
    let text = "
        cell P { param a = 1; param b = 1 mV; param c = 1; param d = 1 mV; param e = 1; state x = 0
                 x' = (a + b / 1 mV + c + d / 1 mV + e - x) / 1 ms }
        network main {
            population p: P[10000]
            param p.a ~ lognormal(mean = 2, sd = 1.5)
            param p.b ~ gamma(shape = 0.5, scale = 2 mV)
            param p.c ~ gamma(3, 1.5)
            param p.d ~ truncated(normal(1.5 mV, 0.75 mV), 0.1 mV, 2.25 mV)
            param p.e ~ truncated(exponential(1), low = 0.5, high = 1)
        }
        run { duration = 1 ms; dt = 1 ms; seed = 5; record p.{a, b, c, d, e} every 1 ms }";
    let checked = checked(text);
    let results: Vec<RunResult> =
        ways().into_iter().map(|way| run(&checked, &CompileOptions::default(), way)).collect();
    let drawn = |result: &RunResult, name: &str| -> Vec<f64> {
        (0..CELLS).map(|cell| series(result, &format!("p.{name}")).values.get(0, cell)).collect()
    };
    // Moments of the normal distribution between limits, by the midpoint rule.
    let (mut chance, mut first, mut square) = (0.0, 0.0, 0.0);
    for k in 0..100_000 {
        let x = 0.1 + 2.15 * (f64::from(k) + 0.5) / 1e5;
        let density = (-((x - 1.5) / 0.75_f64).powi(2) / 2.0).exp();
        (chance, first, square) = (chance + density, first + density * x, square + density * x * x);
    }
    let mean_d = first / chance;
    let sd_d = (square / chance - mean_d * mean_d).sqrt();
    // An exponential distribution between 0.5 and 1 begins again at 0.5.
    let q = 1.0 - (-0.5f64).exp();
    let mean_e = 0.5 + 1.0 - 0.5 * (1.0 - q) / q;
    let second: f64 = 2.0 - (0.25 + 1.0 + 2.0) * (1.0 - q);
    let sd_e = (second / q - (mean_e - 0.5).powi(2)).sqrt();
    for (name, mean, sd, least, most) in [
        ("a", 2.0, 1.5, 0.0, f64::INFINITY),
        ("b", 1.0, 2.0f64.sqrt(), 0.0, f64::INFINITY),
        ("c", 4.5, 1.5 * 3.0f64.sqrt(), 0.0, f64::INFINITY),
        ("d", mean_d, sd_d, 0.1, 2.25),
        ("e", mean_e, sd_e, 0.5, 1.0),
    ] {
        let values = drawn(&results[0], name);
        let found = values.iter().sum::<f64>() / CELLS as f64;
        let spread = (values.iter().map(|x| (x - found).powi(2)).sum::<f64>() / CELLS as f64).sqrt();
        assert!((found - mean).abs() < 5.0 * sd / (CELLS as f64).sqrt(), "{name}: mean {found}, not {mean}");
        assert!((spread - sd).abs() < 0.05 * sd, "{name}: standard deviation {spread}, not {sd}");
        assert!(values.iter().all(|x| (least..=most).contains(x)), "{name}: {values:?}");
        for other in &results[1..] {
            for (x, y) in values.iter().zip(drawn(other, name)) {
                close(y, *x, 1e-12, name);
            }
        }
    }
}

#[test]
fn ions_follow_nernst_and_goldman() {
    let text = "
        use std.ions.{nernst, ghk, ghk_potential, F, R}
        channel Ca {
            param p = 1e-5 cm/s; reads ca: mM
            gate m { inf = 0.5; tau = 1 ms }
            current i = m * ghk(v, p, 2, ca, 2 mM)
        }
        cell C {
            let e_K = nernst(1, 140 mM, 4 mM)
            let e_Cl = nernst(-1, 10 mM, 120 mM)
            let rest = ghk_potential(1, 140 mM, 4 mM, 0.04, 12 mM, 145 mM, 0.45, 10 mM, 120 mM)
            let scale = R * celsius / F
            compartment s { cm = 1 uF/cm2; v_init = -65 mV; insert Ca; pool ca: mM { init = 1e-4 mM; ca' = -ca / 1 s } }
        }
        network main { population c: C[7]; clamp hold: (index - 3) * 20 mV -> c.s }
        run { duration = 0.01 ms; dt = 0.01 ms; celsius = 37 degC; record c.{e_K, e_Cl, rest, scale, s.Ca.i} }";
    let result = run(&checked(text), &CompileOptions::default(), Way::Native);
    let rt_f = 8.314_462_618_153_24 * 310.15 / 96_485.332_12 * 1000.0;
    close(column(&result, "c.scale", 0)[0], rt_f, 1e-13, "RT / F");
    close(column(&result, "c.e_K", 0)[0], rt_f * (4.0f64 / 140.0).ln(), 1e-13, "potassium");
    close(column(&result, "c.e_Cl", 0)[0], -rt_f * (12.0f64).ln(), 1e-13, "chloride");
    let inward: f64 = 4.0 + 0.04 * 145.0 + 0.45 * 10.0;
    let outward = 140.0 + 0.04 * 12.0 + 0.45 * 120.0;
    close(column(&result, "c.rest", 0)[0], rt_f * (inward / outward).ln(), 1e-13, "rest");
    for cell in 0..7 {
        let v = (cell as f64 - 3.0) * 20.0;
        let u = 2.0 * v / rt_f;
        // cm/s C/mol mol/L is 1e-3 A/cm2, so mM are 1 uA/cm2.
        let whole = 1e-5 * 2.0 * 96_485.332_12;
        let expected = if cell == 3 { 1e-4 - 2.0 } else { u * (1e-4 - 2.0 * (-u).exp()) / (1.0 - (-u).exp()) };
        close(column(&result, "c.s.Ca.i", cell)[0], 0.5 * whole * expected, 1e-11, &format!("calcium at {v} mV"));
    }
}

/// What is set from outside is what the file could say: gates that begin at rest follow the voltage.
#[test]
fn initial_values_and_intervals_come_from_outside() {
    let model = |v: &str, every: &str| {
        checked(&format!(
            "use std.channels.hh.{{Na, K, Leak}}
             cell S {{ compartment soma {{ cm = 1 uF/cm2; v_init = {v}; insert Na, K, Leak }} }}
             network main {{ population s: S[2] }}
             run {{ duration = 2 ms; dt = 0.02 ms; celsius = 6.3 degC; record s.soma.{{v, Na.m, K.n}} every {every} }}"
        ))
    };
    let written = run(&model("-50 mV", "0.4 ms"), &CompileOptions::default(), Way::Native);
    for name in ["s.soma.v=-50mV", "soma.v=-50 mV", "v_init=-50mV", "soma.v_init=-0.05V"] {
        let set = CompileOptions { set: vec![name.into()], every: Some(0.4), ..CompileOptions::default() };
        assert_eq!(run(&model("-65 mV", "0.1 ms"), &set, Way::Native).series, written.series, "{name}");
    }
    let refused = |set: &str| {
        let options = CompileOptions { set: vec![set.into()], ..CompileOptions::default() };
        let errors = compile(&model("-65 mV", "0.1 ms"), &options, &mut |_, _, _| {}).expect_err("it is wrong");
        format!("{errors:?}")
    };
    assert!(refused("soma.v=5").contains("is a voltage"), "{}", refused("soma.v=5"));
    let options = CompileOptions { set: vec!["Na.m=1.5".into()], ..CompileOptions::default() };
    let odd = compile(&model("-65 mV", "0.1 ms"), &options, &mut |_, _, _| {}).expect("it can run").warnings;
    assert!(format!("{odd:?}").contains("a gate is the fraction of open gates"), "{odd:?}");
    assert!(refused("dt=0.1ms").contains("write `--dt`"));
    assert!(refused("every=0.1ms").contains("write `--every`"));
    let file = "cell P { state x = 1; x' = -x / 1 ms } network main { population p: P } run { duration = 1 ms; dt = 1 ms; record p.x }";
    let options = CompileOptions { set: vec!["celsius=20degC".into()], ..CompileOptions::default() };
    let errors = compile(&checked(file), &options, &mut |_, _, _| {}).expect_err("it has none");
    assert!(format!("{errors:?}").contains("nothing in this model depends on the temperature"));
}

#[test]
fn a_window_records_a_part_of_the_whole() {
    let model = |window: &str| {
        checked(&format!(
            "cell P {{ state x = 1; x' = -x / 1 ms; spike when x crosses 2 }}
             network main {{ population p: P[3]; init p.x = 1 + index }}
             run {{ duration = 2 ms; dt = 0.02 ms; record p.x every 0.1 ms {window}; record p[1].x every 0.06 ms }}"
        ))
    };
    let whole = run(&model(""), &CompileOptions::default(), Way::Optimized);
    for (window, first, end) in [
        ("from 0.5 ms", 5, 21),
        ("to 1 ms", 0, 11),
        ("from 0.35 ms to 1.25 ms", 4, 13),
        ("from 1.9 ms to 5 ms", 19, 21),
        ("from 0.51 ms to 0.59 ms", 6, 6),
    ] {
        for way in ways() {
            let part = run(&model(window), &CompileOptions::default(), way);
            assert_eq!(series(&part, "p.x").t[..], series(&whole, "p.x").t[first..end], "{window}, {way:?}");
            for cell in 0..3 {
                for (x, y) in column(&part, "p.x", cell).iter().zip(&column(&whole, "p.x", cell)[first..end]) {
                    close(*x, *y, 1e-12, window);
                }
            }
            assert_eq!(series(&part, "p[1].x").t.len(), 34, "{window}, {way:?}");
        }
    }
}

/// Of a record around spikes those samples are there that the whole has in a window of one of them, by the trigger of the model and by its cells.
#[test]
fn a_record_around_spikes_is_the_part_of_the_whole_that_is_near_them() {
    let model = |around: &str, last: &str| {
        checked(&format!(
            "use std.channels.hh.{{Na, K, Leak}}
             cell P {{ param rate = 0.13 /ms; state x = 0; x' = rate; spike when x crosses 1 {{ x = 0 }} }}
             cell B {{
                 section soma {{ length = 20 um; diam = 20 um; compartments = 1 }}
                 section dend {{ from soma(1); length = 200 um; diam = 2 um; compartments = 3 }}
                 region all {{ cm = 1 uF/cm2; ra = 100 ohm*cm; v_init = -65 mV; insert Na, K, Leak }}
                 spike when soma(0.5).v crosses 0 mV
             }}
             network main {{
                 population p: P[3]; population b: B
                 param p.rate = 0.05 /ms + 0.04 /ms * index
                 input step: 0.5 nA -> b.soma(0.5)
             }}
             run {{
                 duration = 30 ms; dt = 0.02 ms; celsius = 6.3 degC; method = cnexp
                 record p.x {around}
                 record b.dend(0.5).v {last}
                 record spikes of {{p, b}}
             }}"
        ))
    };
    let whole = run(&model("every 0.1 ms", ""), &CompileOptions::default(), Way::Optimized);
    let near = |t: f64, (from, to): (f64, f64), train: &SpikeTrain, cells: &Range<u64>| {
        let mut spikes = train.t.iter().zip(&train.i).filter(|spike| cells.contains(spike.1));
        spikes.any(|(s, _)| s + from - 1e-9 <= t && t <= s + to + 1e-9)
    };
    let b = "around spikes of b from -1 ms to 1.5 ms";
    for (every, around, of, cells, (first, last), window) in [
        (0.1, "every 0.1 ms around spikes of p from -0.5 ms to 1 ms", 0, 0..3, (0.0, 30.0), (-0.5, 1.0)),
        (0.1, "around spikes of p[1] from -0.53 ms to -0.07 ms every 0.1 ms", 0, 1..2, (0.0, 30.0), (-0.53, -0.07)),
        (0.1, "every 0.1 ms around spikes of p[0..2] from 0.1 ms to 0.3 ms", 0, 0..2, (0.0, 30.0), (0.1, 0.3)),
        (
            0.2,
            "from 10 ms to 25 ms every 0.2 ms around spikes of b from -4 ms to 0 ms",
            1,
            0..1,
            (10.0, 25.0),
            (-4.0, 0.0),
        ),
        (0.1, "every 0.1 ms around spikes of b from -1000 ms to 1000 ms", 1, 0..1, (0.0, 30.0), (-1e3, 1e3)),
    ] {
        let (model, train, all) = (model(around, b), &whole.spikes[of], series(&whole, "p.x"));
        let on_clock = |t: f64| (t / every - (t / every).round()).abs() < 1e-6;
        let expected: Vec<usize> = (0..all.t.len())
            .filter(|&row| on_clock(all.t[row]) && (first - 1e-9..=last + 1e-9).contains(&all.t[row]))
            .filter(|&row| near(all.t[row], window, train, &cells))
            .collect();
        assert!(expected.len() > 3, "{around}");
        let v = &series(&whole, "b.dend(0.5).v").t;
        let near_b: Vec<usize> =
            (0..v.len()).filter(|&row| near(v[row], (-1.0, 1.5), &whole.spikes[1], &(0..1))).collect();
        for way in ways() {
            let part = run(&model, &CompileOptions::default(), way);
            assert_eq!(part.spikes.len(), 2);
            for (name, expected) in [("p.x", &expected), ("b.dend(0.5).v", &near_b)] {
                let (part, all) = (series(&part, name), series(&whole, name));
                let times: Vec<f64> = expected.iter().map(|&row| all.t[row]).collect();
                assert_eq!(part.t[..], times, "{around}, {name}, {way:?}");
                for (at, &row) in expected.iter().enumerate() {
                    for column in 0..all.cells.len() {
                        close(part.values.get(at, column), all.values.get(row, column), 1e-9, around);
                    }
                }
            }
        }
    }
}

/// The steady state of a pool and of a state of a point neuron, where the derivative is linear, is where nothing moves.
#[test]
fn a_state_begins_at_its_steady_state() {
    let text = "
        channel Ca { param gbar = 0.1 mS/cm2; param erev = 120 mV; gate m { inf = 1 / (1 + exp(-(v + 20 mV) / 9 mV)); tau = 1 ms } }
        cell C {
            compartment s {
                cm = 1 uF/cm2; v_init = -50 mV; insert Ca
                pool ca: mM { init = steady_state; ca' = -0.01 mM*cm2/uA/ms * Ca.i - (ca - 5e-5 mM) / 80 ms }
            }
        }
        cell P {
            param a = 3 mV; param tau = 7 ms
            state x: mV = steady_state
            state y: mV = steady_state
            x' = (a - x) / tau; y' = (x - 2 * y) / tau
        }
        network main { population c: C[3]; population p: P[3]; param p.a = 1 mV * (index + 1); clamp hold: -50 mV + 10 mV * index -> c.s }
        run { duration = 5 ms; dt = 0.1 ms; method = rk4; record c.s.{ca, Ca.i}; record p.{x, y} }";
    for way in ways() {
        let result = run(&checked(text), &CompileOptions::default(), way);
        for cell in 0..3 {
            let (ca, i) = (column(&result, "c.s.ca", cell), column(&result, "c.s.Ca.i", cell));
            close(ca[0], 5e-5 - 80.0 * 0.01 * i[0], 1e-12, "calcium at rest");
            ca.iter().for_each(|x| close(*x, ca[0], 1e-12, "calcium stays"));
            for (name, expected) in [("p.x", cell as f64 + 1.0), ("p.y", (cell as f64 + 1.0) / 2.0)] {
                column(&result, name, cell).iter().for_each(|x| close(*x, expected, 1e-12, name));
            }
        }
    }
    for (equation, why) in [
        ("x' = 1 mV / tau", "its derivative does not depend on it"),
        ("x' = (a - x * x / 1 mV) / tau", "its derivative is not linear in it"),
    ] {
        let text = format!(
            "cell P {{ param a = 3 mV; param tau = 7 ms; state x: mV = steady_state; {equation} }}
             network main {{ population p: P }} run {{ duration = 1 ms; dt = 1 ms; record p.x }}"
        );
        let errors =
            compile(&checked(&text), &CompileOptions::default(), &mut |_, _, _| {}).expect_err("there is none");
        assert!(format!("{errors:?}").contains(why), "{errors:?}");
    }
}
