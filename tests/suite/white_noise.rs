//! Tests of: white noise in equations (`xi()`): the variance that each method states, at any time step; Ito's integral, by geometric Brownian motion;
//! which sources are the same; channels, first passages, cables; the same numbers on every engine and after a checkpoint.

use crate::models::{Way, root, run};
use neuroc::driver::{Checked, CompileOptions, check_text};
use neuroc::hir::{Method, Sources};
use neuroc::results::{RunResult, Samples};
use std::process::Command;

fn checked(text: &str) -> Checked {
    let checked = check_text("noise.neuro", &root(), text.to_string(), &Sources);
    let say = neuroc::diag::render_human(&checked.sources, &checked.diagnostics, false);
    assert!(checked.model.is_some() && checked.diagnostics.is_empty(), "{say}");
    checked
}

fn with(method: Method, dt: f64) -> CompileOptions {
    CompileOptions { method: Some(method), dt: Some(dt), ..CompileOptions::default() }
}

/// A series as [time][cell].
fn rows(result: &RunResult, name: &str) -> Vec<Vec<f64>> {
    let series = result.series.iter().find(|series| series.name == name).unwrap_or_else(|| panic!("no {name}"));
    match &series.values {
        Samples::F64(values) => values.rows().into_iter().map(|row| row.to_vec()).collect(),
        Samples::F32(_) => panic!("{name} is in single precision"),
    }
}

fn mean(x: &[f64]) -> f64 {
    x.iter().sum::<f64>() / x.len() as f64
}

fn variance(x: &[f64]) -> f64 {
    let mean = mean(x);
    x.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / (x.len() - 1) as f64
}

fn correlation(x: &[f64], y: &[f64]) -> f64 {
    let (mx, my) = (mean(x), mean(y));
    let joint: f64 = x.iter().zip(y).map(|(x, y)| (x - mx) * (y - my)).sum();
    joint / ((x.len() - 1) as f64 * (variance(x) * variance(y)).sqrt())
}

const TAU: f64 = 10.0;
const SIGMA: f64 = 2.0;

/// Ornstein-Uhlenbeck processes of mean 0 and standard deviation 2 mV.
const PROCESS: &str = "cell Process {
    param tau = 10 ms
    param sigma = 2 mV
    state v: mV = 0 mV
    v' = -v / tau + sigma * sqrt(2 / tau) * xi()
}
network main { population cells: Process[400] }
run { duration = 200 ms; dt = 1 ms; method = euler; record cells.v }";

/// The random numbers of each step, from how a method is stated to move `v` by them.
fn numbers(text: &str, method: Method, dt: f64) -> Vec<Vec<f64>> {
    let (decay, spread) = stated(method, dt);
    let v = rows(&run(&checked(text), &with(method, dt), Way::Native), "cells.v");
    v.windows(2).map(|v| v[1].iter().zip(&v[0]).map(|(new, old)| (new - decay * old) / spread).collect()).collect()
}

/// What becomes of 1 mV in a step, and the standard deviation of what noise adds.
fn stated(method: Method, dt: f64) -> (f64, f64) {
    let (z, plain) = (-dt / TAU, SIGMA * (2.0 * dt / TAU).sqrt());
    match method {
        Method::Euler => (1.0 + z, plain),
        Method::ExpEuler => (z.exp(), SIGMA * (1.0 - (2.0 * z).exp()).sqrt()),
        Method::Cnexp => (1.0 / (1.0 - z), plain * (1.0 - z / 2.0).sqrt() / (1.0 - z)),
        _ => panic!("{method:?}"),
    }
}

#[test]
fn each_method_moves_a_state_by_normal_numbers_as_it_says() {
    let of_euler = numbers(PROCESS, Method::Euler, 1.0);
    for method in [Method::ExpEuler, Method::Cnexp] {
        let others = numbers(PROCESS, method, 1.0);
        let off =
            of_euler.iter().flatten().zip(others.iter().flatten()).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
        assert!(off < 1e-10, "{method:?}: the same numbers but for {off}");
    }
    // 80 000 numbers: one standard error of the mean is 0.0035, of the variance 0.005, of the fourth moment 0.035.
    let all: Vec<f64> = of_euler.iter().flatten().copied().collect();
    let fourth = mean(&all.iter().map(|x| x.powi(4)).collect::<Vec<_>>());
    assert!(mean(&all).abs() < 0.014, "{}", mean(&all));
    assert!((variance(&all) - 1.0).abs() < 0.02, "{}", variance(&all));
    assert!((fourth - 3.0).abs() < 0.14, "{fourth}");
    // Neither the next step nor the next cell has anything of it.
    let flat = |steps: &[Vec<f64>], from: usize, to: usize| -> Vec<f64> {
        steps.iter().flat_map(|cells| cells[from..to].to_vec()).collect()
    };
    let steps = of_euler.len();
    assert!(correlation(&flat(&of_euler[1..], 0, 400), &flat(&of_euler[..steps - 1], 0, 400)).abs() < 0.014);
    assert!(correlation(&flat(&of_euler, 1, 400), &flat(&of_euler, 0, 399)).abs() < 0.014);
}

#[test]
fn a_linear_state_has_its_variance_at_every_time_step() {
    let text = PROCESS.replace("[400]", "[4000]");
    for method in [Method::ExpEuler, Method::Cnexp, Method::Euler] {
        for dt in [0.5, 5.0, 20.0] {
            // That of Euler-Maruyama's steps, which are no longer than 2 tau.
            let expected = match method {
                Method::Euler if dt > 10.0 => continue,
                Method::Euler => SIGMA.powi(2) / (1.0 - dt / (2.0 * TAU)),
                _ => SIGMA.powi(2),
            };
            let v = rows(&run(&checked(&text), &with(method, dt), Way::Native), "cells.v");
            let got = variance(v.last().expect("samples"));
            // Four standard errors.
            assert!(
                (got / expected - 1.0).abs() < 4.0 * (2.0f64 / 4000.0).sqrt(),
                "{method:?}, {dt} ms: {got}, not {expected}"
            );
        }
    }
}

/// Geometric Brownian motion, and the noise that it had.
const GEOMETRIC: &str = "cell Walk {
    let dw = xi()
    state x = 1
    x' = 0.02 /ms * x + sqrt(0.05 /ms) * x * dw
    state w: ms = 0 ms
    w' = sqrt(1 ms) * dw
}
network main { population cells: Walk[1000] }
run { duration = 10 ms; dt = 1 ms; method = euler; record cells.x; record cells.w }";

#[test]
fn noise_that_depends_on_the_state_is_itos_and_converges_with_the_root_of_dt() {
    for method in [Method::Euler, Method::ExpEuler, Method::Cnexp] {
        let far = |dt: f64| {
            let result = run(&checked(GEOMETRIC), &with(method, dt), Way::Native);
            let (x, w) = (rows(&result, "cells.x"), rows(&result, "cells.w"));
            let (x, w) = (x.last().expect("samples"), w.last().expect("samples"));
            // `w` is in ms: sqrt(ms) times the Brownian motion.
            let exact = |w: f64| ((0.02 - 0.05 / 2.0) * 10.0 + 0.05f64.sqrt() * w).exp();
            let off: Vec<f64> = x.iter().zip(w).map(|(x, &w)| (x - exact(w)).abs()).collect();
            mean(&off)
        };
        let (coarse, fine) = (far(0.2), far(0.0125));
        let order = (coarse / fine).ln() / 16.0f64.ln();
        assert!((0.4..0.65).contains(&order), "{method:?}: {coarse} and {fine}, order {order}");
        assert!(fine < 0.02, "{method:?}: {fine}");
    }
}

#[test]
fn a_name_is_one_source_and_each_call_is_another() {
    let text = "channel Jitter {
    state s = 0
    s' = -s / 5 ms + sqrt(2 / 5 ms) * xi()
    current i = 0 uA/cm2 * s
}
cell Two {
    let dw = xi()
    state a: ms = 0 ms
    a' = sqrt(1 ms) * dw
    state b: ms = 0 ms
    b' = 2 * sqrt(1 ms) * dw
    state c: ms = 0 ms
    c' = sqrt(1 ms) * xi()
    state d: ms = 0 ms
    d' = sqrt(1 ms) * (xi() - xi())
}
cell Patch {
    compartment soma { area = 100 um2; cm = 1 uF/cm2; v_init = -65 mV; insert Jitter; insert Jitter as other }
}
network main { population one: Two[1]; population two: Two[1]; population patch: Patch[1] }
run { duration = 1000 ms; dt = 1 ms; method = exp_euler; record one.{a, b, c, d}; record two.a; record patch.soma.{Jitter.s, other.s} }";
    let result = run(&checked(text), &CompileOptions::default(), Way::Native);
    let steps = |name: &str| -> Vec<f64> {
        let x: Vec<f64> = rows(&result, name).into_iter().map(|cells| cells[0]).collect();
        x.windows(2).map(|x| x[1] - x[0]).collect()
    };
    let [a, b, c, d] = ["a", "b", "c", "d"].map(|name| steps(&format!("one.{name}")));
    assert!(a.iter().zip(&b).all(|(a, b)| (2.0 * a - b).abs() < 1e-12));
    assert!((variance(&d) - 2.0).abs() < 0.4, "two calls: {}", variance(&d));
    // A thousand steps each: five standard errors.
    let others = [c, d, steps("two.a"), steps("patch.soma.Jitter.s"), steps("patch.soma.other.s")];
    for (at, one) in others.iter().enumerate() {
        for other in others[..at].iter().chain([&a]) {
            assert!(correlation(one, other).abs() < 0.16, "{at}: {}", correlation(one, other));
        }
    }
}

#[test]
fn noise_elsewhere_leaves_numbers_as_they_are() {
    let more = PROCESS
        .replace("    state v:", "    state u = 0\n    u' = sqrt(1 /ms^1) * xi() - u / tau\n    state v:")
        .replace("/ms^1", "/ms")
        .replace("population cells", "population others: Process[3]; population cells");
    let [plain, more] =
        [PROCESS, &more].map(|text| rows(&run(&checked(text), &with(Method::ExpEuler, 1.0), Way::Native), "cells.v"));
    assert!(plain == more && variance(&plain[100]) > 1.0);
}

/// Gates with the noise of a number of channels (Fox and Lu 1994): the variance of the open part is that of the binomial distribution.
#[test]
fn channels_fluctuate_as_a_binomial_distribution() {
    let text = "cell Channels {
    param number = 250
    let a = 0.3 /ms
    let b = 0.1 /ms
    state n = 0.75
    n' = a * (1 - n) - b * n + sqrt(max(a * (1 - n) + b * n, 0 /ms) / number) * xi()
}
network main { population cells: Channels[4000] }
run { duration = 20 ms; dt = 0.1 ms; method = exp_euler; record cells.n every 20 ms }";
    let n = rows(&run(&checked(text), &CompileOptions::default(), Way::Native), "cells.n");
    let (n, expected) = (n.last().expect("samples"), 0.75 * 0.25 / 250.0f64);
    assert!((mean(n) - 0.75).abs() < 4.0 * (expected / 4000.0).sqrt(), "{}", mean(n));
    assert!((variance(n) / expected - 1.0).abs() < 4.0 * (2.0f64 / 4000.0).sqrt(), "{} of {expected}", variance(n));
}

/// From the reset to the threshold a perfect integrator with drift mu and noise sigma takes theta / mu in the mean, and the coefficient of variation of this is
/// sigma / sqrt(mu theta) (Tuckwell 1988). Steps see the threshold late: as if it was 0.5826 sigma sqrt(dt) higher (Siegmund 1985).
#[test]
fn first_passages_are_inverse_gaussian() {
    let text = "cell Integrator {
    state v: mV = 0 mV
    v' = 0.5 mV/ms + 1 mV * sqrt(1 /ms) * xi()
    spike when v >= 10 mV { v = 0 mV }
}
network main { population cells: Integrator[200] }
run { duration = 4000 ms; dt = 0.05 ms; method = euler; record spikes of cells }";
    let result = run(&checked(text), &CompileOptions::default(), Way::Native);
    let train = &result.spikes[0];
    let mut times: Vec<Vec<f64>> = vec![Vec::new(); 200];
    train.t.iter().zip(&train.i).for_each(|(&t, &cell)| times[cell as usize].push(t));
    let intervals: Vec<f64> =
        times.iter().flat_map(|t| t.windows(2).map(|t| t[1] - t[0]).collect::<Vec<_>>()).collect();
    let theta = 10.0 + 0.5826 * 0.05f64.sqrt();
    let (expected, cv) = (theta / 0.5, 1.0 / (0.5 * theta).sqrt());
    assert!(intervals.len() > 35_000, "{}", intervals.len());
    // Four standard errors of the mean.
    let error = 4.0 * cv * expected / (intervals.len() as f64).sqrt();
    assert!((mean(&intervals) - expected).abs() < error, "{} of {expected}", mean(&intervals));
    let got = variance(&intervals).sqrt() / mean(&intervals);
    assert!((got / cv - 1.0).abs() < 0.03, "{got} of {cv}");
}

/// A cable of one compartment is a cell of one; noise in its channel moves it as it moves that, but for how the step is solved.
#[test]
fn a_cable_hears_the_noise_of_its_channels() {
    let text = "channel Hum {
    param erev = -65 mV
    param gbar = 0.1 mS/cm2
    current i = gbar * (v - erev) + 0.1 uA/cm2 * sqrt(20 ms) * xi()
}
cell Stick {
    section dend { length = 100 um; diam = 2 um; compartments = 1 }
    region dend { cm = 1 uF/cm2; ra = 100 ohm*cm; v_init = -65 mV; insert Hum }
}
network main { population cells: Stick[2000] }
run { duration = 60 ms; dt = 0.1 ms; method = cnexp; record cells.dend(0.5).v every 60 ms }";
    let v = rows(&run(&checked(text), &CompileOptions::default(), Way::Native), "cells.dend(0.5).v");
    // tau = cm / gbar = 10 ms; sigma^2 = (0.1 uA/cm2 / cm)^2 * 20 ms * tau / 2, by backward Euler over 1 + dt / (2 tau).
    let expected = 0.01 * 20.0 * 5.0 / (1.0 + 0.1 / 20.0) * (1.0 - (-12.0f64).exp());
    let got = variance(v.last().expect("samples"));
    assert!((got / expected - 1.0).abs() < 4.0 * (2.0f64 / 2000.0).sqrt(), "{got} of {expected}");
}

#[test]
fn every_engine_draws_the_same() {
    for text in [PROCESS, GEOMETRIC] {
        let text = text.replace("[400]", "[50]").replace("[1000]", "[50]");
        for method in [Method::Euler, Method::ExpEuler, Method::Cnexp] {
            let [a, b, c] = [Way::Plain, Way::Optimized, Way::Native].map(|way| {
                let result = run(&checked(&text), &with(method, 0.5), way);
                rows(&result, &result.series[0].name)
            });
            assert!(b == c, "{method:?}: kernels");
            let off = a.iter().flatten().zip(b.iter().flatten()).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
            assert!(off < 1e-11, "{method:?}: passes move it by {off}");
            #[cfg(feature = "xla")]
            if crate::pjrt::cpu().is_some() {
                let result = run(&checked(&text), &with(method, 0.5), Way::Xla);
                let d = rows(&result, &result.series[0].name);
                let off = a.iter().flatten().zip(d.iter().flatten()).map(|(a, d)| (a - d).abs()).fold(0.0, f64::max);
                assert!(off < 1e-11, "{method:?}: XLA is off by {off}");
            }
        }
    }
}

#[test]
fn threads_and_checkpoints_leave_noise_as_it_is() {
    let folder = tempfile::tempdir().expect("a folder");
    let text = PROCESS.replace("[400]", "[3000]").replace("record cells.v", "record cells.v every 50 ms");
    std::fs::write(folder.path().join("m.neuro"), text).expect("written");
    let go = |args: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_neuroc"));
        command.current_dir(folder.path()).args(["run", "m.neuro", "--quiet", "--method", "exp_euler"]).args(args);
        let done = command.output().expect("it starts");
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    };
    go(&["--threads", "1", "-o", "one.npz"]);
    go(&["--threads", "2", "-o", "two.npz"]);
    go(&["--threads", "2", "--duration", "100ms", "--save", "state.npz", "-o", "first.npz"]);
    go(&["--engine", "interp", "--load", "state.npz", "-o", "second.npz"]);
    let last = |name: &str| {
        let read = RunResult::read_npz(&folder.path().join(name)).expect("a result");
        rows(&read, "cells.v").pop().expect("samples")
    };
    let one = last("one.npz");
    assert!(one == last("two.npz") && one == last("second.npz") && one != last("first.npz"));
}
