//! Tests of: adaptive steps against closed forms, other programs and very small steps of other methods; events at their own times; how many steps it takes.

use crate::events::{checked, column, plain, series};
use neuroc::driver::{CompileOptions, Experiment, GivenTolerances, compile};
use neuroc::engine::Effort;
use neuroc::hir::Method;
use neuroc::results::RunResult;
use neuroc::simulate::{RunOptions, Unwatched};
use serde_json::Value;

/// A run and what it took.
fn solved(text: &str, options: CompileOptions) -> (RunResult, Effort) {
    let checked = checked(text);
    let say = |errors: Vec<neuroc::diag::Diagnostic>| -> ! {
        panic!("{}", neuroc::diag::render_human(&checked.sources, &errors, false))
    };
    let compiled = compile(&checked, &options, &mut |_, _, _| {}).unwrap_or_else(|e| say(e));
    let experiment = Experiment::new(compiled).unwrap_or_else(|e| say(e));
    let mut ready = experiment.interpreter().unwrap_or_else(|e| panic!("{e}"));
    let run = experiment.run(ready.engine.as_mut(), &RunOptions::default(), &mut Unwatched);
    let (result, outcome) = run.unwrap_or_else(|e| panic!("{e:?}"));
    assert_eq!(outcome.ending, neuroc::simulate::Ending::Done);
    (result, outcome.effort.unwrap_or_default())
}

fn within(rtol: f64) -> CompileOptions {
    let tolerances = GivenTolerances { rtol: Some(rtol), atol: Some(rtol), max_step: None };
    CompileOptions { method: Some(Method::Adaptive), tolerances, ..plain() }
}

fn adaptive(text: &str, rtol: f64) -> (RunResult, Effort) {
    solved(text, within(rtol))
}

fn spikes(result: &RunResult, population: &str, cell: u64) -> Vec<f64> {
    let train = result.spikes.iter().find(|train| train.population == population).expect("a train");
    train.t.iter().zip(&train.i).filter(|(_, i)| **i == cell).map(|(t, _)| *t).collect()
}

fn apart(a: &[f64], b: &[f64]) -> f64 {
    assert_eq!(a.len(), b.len());
    a.iter().zip(b).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max)
}

const LEAK: &str = "
channel Leak { param gbar = 0.1 mS/cm2; param erev = -65 mV }
cell Passive { compartment soma { area = 1000 um2; cm = 1 uF/cm2; v_init = -60 mV; insert Leak } }
";

#[test]
fn what_depends_on_the_time_is_recorded() {
    let text = "
        channel P { param gbar = 0.1 mS/cm2; param erev = -65 mV
            let drive = 1 uA/cm2 * sin(t / 1 ms)
            current i = gbar * (v - erev) + drive }
        cell C { compartment soma { area = 1000 um2; cm = 1 uF/cm2; v_init = -65 mV; insert P } }
        network main { population p: C; population held: C; clamp h: -65 mV + 3 mV * sin(t / 2 ms) -> held.soma }
        run { duration = 5 ms; dt = 0.1 ms; method = adaptive; record p.soma.{v, P.i}; record held.soma.i_clamp }";
    let (result, _) = adaptive(text, 1e-10);
    let all = |name: &str| {
        let series = result.series_named(name).expect("it is recorded");
        (0..series.t.len()).map(|row| series.values.get(row, 0)).collect::<Vec<f64>>()
    };
    let (v, i, clamp) = (all("p.soma.v"), all("p.soma.P.i"), all("held.soma.i_clamp"));
    assert_eq!(v.len(), 51);
    for (n, ((v, i), clamp)) in v.iter().zip(&i).zip(&clamp).enumerate() {
        let t = n as f64 * 0.1;
        assert!((i - (0.1 * (v + 65.0) + t.sin())).abs() < 1e-9, "{n}: {i}");
        let held = 0.1 * 3.0 * (t / 2.0).sin() + t.sin();
        assert!((clamp - held).abs() < 1e-8, "{n}: {clamp} {held}");
    }
}

#[test]
fn a_passive_cell_under_a_pulse_is_its_closed_form() {
    let text = format!(
        "{LEAK}
        network main {{
            population cells: Passive[1]
            input step: pulse(delay = 3.0137 ms, duration = 20.0021 ms, amplitude = 1 uA/cm2) -> cells.soma
        }}
        run {{ duration = 60 ms; dt = 0.25 ms; method = adaptive; rtol = 1e-10; atol = 1e-10; record cells.soma.v }}"
    );
    let (result, effort) = solved(&text, plain());
    let (tau, amplitude, on, off) = (10.0, 10.0, 3.0137, 3.0137 + 20.0021);
    let decays = |from: f64, since: f64| from * f64::exp(-since / tau);
    let rises = |t: f64, from: f64| if t > from { amplitude * (1.0 - f64::exp(-(t - from) / tau)) } else { 0.0 };
    for (t, v) in series(&result, "cells.soma.v").t.iter().zip(column(&result, "cells.soma.v", 0)) {
        let exact = -65.0 + decays(5.0, *t) + rises(*t, on) - rises(*t, off);
        assert!((v - exact).abs() < 2e-8, "{v} is not {exact} at {t} ms");
    }
    // 240 samples and both edges of the pulse, in far fewer steps.
    assert!(effort.steps < 150, "{effort:?}");
}

const LIF: &str = "
cell Lif {
    param tau = 20 ms
    param drive = 30 mV
    state v: mV = 0 mV
    v' = (drive - v) / tau
    spike when v >= 20 mV { v = 1 mV; refractory 2.3 ms }
}";

#[test]
fn intervals_of_integrate_and_fire_neurons_are_exact() {
    let text = format!(
        "{LIF}
        network main {{ population cells: Lif[2]; param cells.drive = if index == 0 then 30 mV else 21 mV }}
        run {{ duration = 500 ms; dt = 1 ms; method = adaptive; record spikes of cells }}"
    );
    let (result, _) = solved(&text, plain());
    for (cell, drive) in [(0, 30.0f64), (1, 21.0)] {
        let times = spikes(&result, "cells", cell);
        assert!(times.len() > 5);
        let first = 20.0 * (drive / (drive - 20.0)).ln();
        let interval = 2.3 + 20.0 * ((drive - 1.0) / (drive - 20.0)).ln();
        let exact: Vec<f64> = (0..times.len()).map(|k| first + k as f64 * interval).collect();
        // Where the threshold is touched flat, an error of v is a larger one of the time.
        let off = apart(&times, &exact);
        let intervals: Vec<f64> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
        let worst = apart(&intervals, &vec![interval; intervals.len()]);
        println!("drive {drive} mV: spikes within {off:.1e} ms, intervals within {worst:.1e} ms");
        assert!(worst < 1e-8, "intervals are off by {worst}");
    }
    let (result, _) = adaptive(&text, 1e-11);
    for (cell, drive) in [(0, 30.0f64), (1, 21.0)] {
        let times = spikes(&result, "cells", cell);
        let interval = 2.3 + 20.0 * ((drive - 1.0) / (drive - 20.0)).ln();
        let intervals: Vec<f64> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
        let worst = apart(&intervals, &vec![interval; intervals.len()]);
        println!("at 1e-11, drive {drive} mV: intervals within {worst:.1e} ms");
        assert!(worst < 1e-9, "intervals are off by {worst}");
    }
}

#[test]
fn events_arrive_at_their_own_times_and_in_their_order() {
    let text = format!(
        "{LIF}
        synapse Kick {{ on event(weight: mV) {{ v += weight }} }}
        cell Listener {{ state v: mV = 0 mV; v' = -v / 10 ms; spike when v >= 100 mV {{ v = 0 mV }} }}
        network main {{
            population a: Lif[1]
            population b: Listener[1]
            population c: Listener[2]
            connect a -> b via Kick {{ rule = all_to_all; weight = 5 mV; delay = 1.23456 ms }}
            drive b via Kick from times(33.3333 ms, 7.77 ms) {{ weight = 2 mV }}
            drive c[1..2] via Kick from times(12.0005 ms) {{ weight = 3 mV; delay = 0.7777 ms }}
        }}
        run {{
            duration = 100 ms; dt = 0.5 ms; method = adaptive; rtol = 1e-10; atol = 1e-10
            record b.v; record c.v; record spikes of a
        }}"
    );
    let (result, _) = solved(&text, plain());
    let sent = spikes(&result, "a", 0);
    assert!(sent.len() >= 3);
    let own: Vec<(f64, f64)> = sent.iter().map(|t| (t + 1.23456, 5.0)).chain([(33.3333, 2.0), (7.77, 2.0)]).collect();
    let other = vec![(12.0005 + 0.7777, 3.0)];
    for (name, cell, kicks) in [("b.v", 0, own), ("c.v", 1, other), ("c.v", 0, Vec::new())] {
        for (t, v) in series(&result, name).t.iter().zip(column(&result, name, cell)) {
            let exact: f64 =
                kicks.iter().filter(|(at, _)| at < t).map(|(at, weight)| weight * f64::exp(-(t - at) / 10.0)).sum();
            assert!((v - exact).abs() < 1e-8, "{name} of cell {cell}: {v} is not {exact} at {t} ms");
        }
    }
}

/// The squid of the examples.
fn squid() -> String {
    std::fs::read_to_string("examples/squid.neuro").expect("the example")
}

#[test]
fn a_squid_spikes_when_scipy_says_and_errors_follow_the_tolerances() {
    let reference: Value =
        serde_json::from_str(&std::fs::read_to_string("tests/reference/squid_scipy.json").expect("a file"))
            .expect("json");
    let exact: Vec<f64> =
        reference["spike_times_ms"].as_array().expect("times").iter().filter_map(Value::as_f64).collect();
    let mut before = f64::INFINITY;
    for (rtol, most) in [(1e-6, 5e-4), (1e-8, 1e-5), (1e-10, 1e-7)] {
        let (result, effort) = adaptive(&squid(), rtol);
        let off = apart(&spikes(&result, "squid", 0), &exact);
        println!("rtol {rtol:e}: {} steps, {} evaluations, spikes within {off:.1e} ms", effort.steps, effort.rates);
        assert!(off < most && off < before, "spikes are off by {off} ms at {rtol:e}");
        before = off;
    }
}

#[test]
fn rest_takes_few_steps() {
    let text = squid().replace("amplitude = 10 uA/cm2", "amplitude = 0 uA/cm2");
    let options = CompileOptions { duration: Some(1000.0), every: Some(1000.0), ..within(1e-8) };
    let (_, effort) = solved(&text, options);
    println!("1000 ms of rest: {effort:?}");
    assert!(effort.steps < 400, "{effort:?}");
}

/// A ball and a stick with channels and a branch, so that there is a node.
const BRANCHED: &str = "
use std.channels.hh.{Na, K}
channel Leak { param gbar = 0.3 mS/cm2; param erev = -54.4 mV }
cell Branched {
    section soma { length = 20 um; diam = 20 um }
    section dend { from soma(1); length = 200 um; diam = 2 um }
    section left { from dend(1); length = 100 um; diam = 1 um }
    section right { from dend(1); length = 150 um; diam = 1.3 um }
    compartments { max_length = 20 um }
    region all { ra = 100 ohm*cm; cm = 1 uF/cm2; v_init = -65 mV; insert Leak }
    region soma { insert Na, K }
    spike when soma(0.5).v crosses -10 mV
}
network main {
    population cells: Branched[2]
    input step: pulse(delay = 1 ms, duration = 5 ms, amplitude = 0.3 nA) -> cells[0..1].left(0.9)
}
run {
    duration = 12 ms; dt = 0.01 ms; method = crank_nicolson; celsius = 6.3 degC
    record cells.soma(0.5).v every 0.5 ms
    record cells.right(0.9).v every 0.5 ms
}
";

#[test]
fn a_branched_cell_is_what_small_steps_converge_to() {
    let text = BRANCHED;
    let names = ["cells.soma(0.5).v", "cells.right(0.9).v"];
    let (fine, effort) = adaptive(text, 1e-10);
    let (coarse, less) = adaptive(text, 1e-7);
    println!("{effort:?} and {less:?}");
    assert!(less.steps < effort.steps);
    // Richardson's extrapolation of a method of order 2.
    let steps = |dt: f64| solved(text, CompileOptions { dt: Some(dt), every: Some(0.5), ..plain() }).0;
    let (one, two) = (steps(0.01), steps(0.005));
    for name in names {
        for cell in 0..2 {
            let of = |result: &RunResult| column(result, name, cell);
            let limit: Vec<f64> = of(&one).iter().zip(of(&two)).map(|(a, b)| b + (b - a) / 3.0).collect();
            let (off, second) = (apart(&of(&fine), &limit), apart(&of(&two), &limit));
            println!(
                "{name}[{cell}]: {off:.1e} from the limit, 0.005 ms {second:.1e}, 1e-7 {:.1e}",
                apart(&of(&coarse), &of(&fine))
            );
            assert!(
                off < 0.2 * second + 1e-6,
                "{name} of cell {cell} is off by {off}, with steps of 0.005 ms {second}"
            );
            assert!(apart(&of(&coarse), &of(&fine)) < 2e-2);
        }
    }
}

fn reference(at: &str) -> Value {
    let text = std::fs::read_to_string("tests/reference/adaptive_neuron.json").expect("a file");
    let all: Value = serde_json::from_str(&text).expect("json");
    all.pointer(at).unwrap_or_else(|| panic!("no {at}")).clone()
}

fn numbers(at: &str) -> Vec<f64> {
    reference(at).as_array().expect("a list").iter().filter_map(Value::as_f64).collect()
}

#[test]
fn cvode_says_the_same() {
    let options = CompileOptions { every: Some(5.0), ..within(1e-10) };
    let (result, _) = solved(&squid(), options);
    let off = apart(&column(&result, "squid.soma.v", 0), &numbers("/squid/v_mV"));
    let late = apart(&spikes(&result, "squid", 0), &numbers("/squid/spikes_ms"));
    println!("squid: {off:.1e} mV, spikes {late:.1e} ms");
    assert!(off < 1e-4 && late < 1e-6, "squid: {off} mV, {late} ms");
    let options = CompileOptions { every: Some(0.5), dt: Some(0.5), ..within(1e-10) };
    let (result, effort) = solved(crate::cables::BRANCHED, options);
    let places = reference("/branched/places");
    for (at, place) in places.as_array().expect("names").iter().enumerate() {
        let v = column(&result, &format!("pyr.{}.v", place.as_str().expect("a name")), 1);
        let off = apart(&v, &numbers(&format!("/branched/mV/{at}")));
        println!("{place}: {off:.1e} mV");
        assert!(off < 1e-4, "{place}: {off} mV");
    }
    let late = apart(&result.spikes[0].t, &numbers("/branched/spikes_ms"));
    println!("branched: spikes {late:.1e} ms, {effort:?}");
    assert!(late < 1e-6, "{late} ms");
}

/// Channels of a voltage that is held: a gate and a scheme of three states, whose equations are linear.
const HELD: &str = "
channel X {
    gate n { inf = 1 / (1 + exp(-(v + 40 mV) / 9 mV)); tau = 1.7 ms }
    current i = 0 uA/cm2 * n
}
channel S {
    param gbar = 1 mS/cm2; param erev = 0 mV
    kinetics { A <-> B (2 /ms, 0.7 /ms); B <-> C (0.3 /ms, 1.1 /ms); conserve A + B + C = 1 }
    current i = gbar * C * (v - erev)
}
cell Cell { compartment s { area = 1000 um2; cm = 1 uF/cm2; v_init = -70 mV; insert X, S } }
network main {
    population c: Cell
    init c.s.S.A = 1; init c.s.S.B = 0; init c.s.S.C = 0
    clamp hold: -70 mV + pulse(delay = 1.03 ms, duration = 4 ms, amplitude = 50 mV) -> c.s
}
run { duration = 8 ms; dt = 0.1 ms; method = adaptive; rtol = 1e-10; atol = 1e-10; record c.s.{v, X.n, S.A, S.C} }
";

#[test]
fn gates_and_schemes_relax_at_a_held_voltage_as_exponentials() {
    let (result, _) = solved(HELD, plain());
    let inf = |v: f64| 1.0 / (1.0 + (-(v + 40.0) / 9.0).exp());
    let later = |n: f64, v: f64, t: f64| inf(v) + (n - inf(v)) * (-t / 1.7).exp();
    // The scheme by its eigenvalues: rates of A and C, with B = 1 - A - C.
    let (a, b) = ([[-2.7, -0.7], [-0.3, -1.4]], [0.7, 0.3]);
    let (trace, det): (f64, f64) = (a[0][0] + a[1][1], a[0][0] * a[1][1] - a[0][1] * a[1][0]);
    let root = (trace * trace / 4.0 - det).sqrt();
    let rest = [(-b[0] * a[1][1] + b[1] * a[0][1]) / det, (-b[1] * a[0][0] + b[0] * a[1][0]) / det];
    let scheme = |t: f64| -> [f64; 2] {
        let [fast, slow] = [trace / 2.0 - root, trace / 2.0 + root].map(|l| (l, (l * t).exp()));
        let begin = [1.0 - rest[0], -rest[1]];
        std::array::from_fn(|i| {
            let moved = a[i][0] * begin[0] + a[i][1] * begin[1];
            let of = |(_, e): (f64, f64), (other, _): (f64, f64), l: f64| e * (moved - other * begin[i]) / (l - other);
            rest[i] + of(fast, slow, fast.0) + of(slow, fast, slow.0)
        })
    };
    let of = |name: &str| column(&result, &format!("c.s.{name}"), 0);
    let (v, n, s_a, s_c) = (of("v"), of("X.n"), of("S.A"), of("S.C"));
    for (row, &t) in series(&result, "c.s.v").t.iter().enumerate() {
        let held = if t > 1.03 && t < 5.03 { -20.0 } else { -70.0 };
        assert!((v[row] - held).abs() < 1e-9, "{} mV at {t} ms", v[row]);
        let up = later(inf(-70.0), -20.0, (t - 1.03).clamp(0.0, 4.0));
        let exact = if t > 5.03 { later(up, -70.0, t - 5.03) } else { up };
        assert!((n[row] - exact).abs() < 1e-8, "{} is not {exact} at {t} ms", n[row]);
        let exact = scheme(t);
        assert!((s_a[row] - exact[0]).abs() < 1e-8 && (s_c[row] - exact[1]).abs() < 1e-8, "{exact:?} at {t} ms");
    }
}

#[test]
fn a_pool_and_gap_junctions_are_what_small_steps_converge_to() {
    // `rk4` is of order 4: at 0.002 ms it is exact to the digits that are compared.
    let pool = std::fs::read_to_string("examples/calcium_adaptation.neuro").expect("the example");
    let pool = pool.replace("delay = 50 ms", "delay = 2.01 ms");
    let junctions = "
use std.channels.hh.{K, Leak, Na}
junction Gap { param g = 1.5 nS; let x = dv / 20 mV; current i = g * dv * (0.3 + 0.7 * exp(-x^2)) }
junction Rectifier { param g = 2 uS/cm2; current i = if dv > 0 mV then g * dv else 0.1 * g * dv }
cell A { compartment soma { area = 1000 um2; cm = 1 uF/cm2; v_init = -65 mV; insert Na, K, Leak } }
network main {
    population a: A[3]
    connect a -- a via Gap { rule = all_to_all }
    connect a -- a via Rectifier { rule = all_to_all }
    input step: pulse(delay = 1 ms, duration = 5 ms, amplitude = 10 uA/cm2) -> a[0..1].soma
}
run { duration = 30 ms; dt = 0.002 ms; celsius = 6.3 degC; record a.soma.{v, Na.m} every 0.5 ms }
";
    for (text, names, cells) in
        [(&pool[..], ["cells.soma.v", "cells.soma.Ca"], 1), (junctions, ["a.soma.v", "a.soma.Na.m"], 3)]
    {
        let options = CompileOptions { duration: Some(30.0), every: Some(0.5), dt: Some(0.002), ..plain() };
        let steps = CompileOptions { method: Some(Method::Rk4), ..options.clone() };
        let (small, _) = solved(text, steps);
        let (own, effort) = solved(text, CompileOptions { dt: Some(0.5), ..options_of(within(1e-10), options) });
        for name in names {
            for cell in 0..cells {
                let (own, small) = (column(&own, name, cell), column(&small, name, cell));
                let largest = small.iter().fold(0.0f64, |a, b| a.max(b.abs()));
                let off = apart(&own, &small) / largest;
                println!("{name}[{cell}]: {off:.1e} of its largest value, {effort:?}");
                assert!(off < 1e-6, "{name} of cell {cell} is off by {off}");
            }
        }
    }
}

/// What flows through a junction is told of the voltages on both sides, also where one is a place of a cell with sections.
#[test]
fn currents_through_junctions_are_of_both_sides() {
    let text = "
channel Leak { param gbar = 0.1 mS/cm2; param erev = -65 mV }
junction Gap { param g = 1 nS; current i = g * dv }
cell P { state v: mV = -58 mV; v' = (-64 mV - v) / 12 ms - i_syn / (30 pF) }
cell D {
    section d { length = 50 um; diam = 2 um; compartments = 3 }
    region all { ra = 100 ohm*cm; cm = 1 uF/cm2; v_init = -65 mV; insert Leak }
}
network main {
    population p: P
    population d: D
    connect p -- d.d(0.5) via Gap { rule = one_to_one }
}
run { duration = 4 ms; dt = 0.025 ms; method = adaptive; record p.v every 0.5 ms; record p.i_gap every 0.5 ms; record d.d(0.5).{v, i_gap} every 0.5 ms }";
    let (result, _) = solved(text, within(1e-9));
    let [v, flow, there] = ["p.v", "p.i_gap", "d.d(0.5).v"].map(|name| column(&result, name, 0));
    let back = column(&result, "d.d(0.5).i_gap", 0);
    for row in 0..v.len() {
        assert_eq!(back[row], -flow[row]);
        // 1 nS times mV, in nA.
        let through = 1e-3 * (v[row] - there[row]);
        assert!((flow[row] - through).abs() < 1e-9 * through.abs(), "{row}: {} is not {through} nA", flow[row]);
    }
    assert!(there[8] > there[0] + 0.5, "{there:?}");
}

/// The duration and the interval of some options, in others.
fn options_of(options: CompileOptions, from: CompileOptions) -> CompileOptions {
    CompileOptions { duration: from.duration, every: from.every, ..options }
}

#[test]
fn spikes_of_a_file_come_when_the_file_says() {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("spikes.csv"), "t,cell\n0.01234,0\n700.00071,0\n3.3,1\n").expect("a file");
    let text = "
synapse Kick { on event(weight: mV) { v += weight } }
cell Listener { state v: mV = 0 mV; v' = -v / 10 ms; spike when v >= 100 mV { v = 0 mV } }
network main {
    population c: Listener[2]
    drive c via Kick from spikes(\"spikes.csv\") { weight = 3 mV; delay = 0.7777 ms }
}
run { duration = 750 ms; dt = 0.25 ms; method = adaptive; rtol = 1e-10; atol = 1e-10; record c.v }";
    let checked = crate::events::checked_in(folder.path(), text);
    let compiled = compile(&checked, &plain(), &mut |_, _, _| {}).expect("it compiles");
    let experiment = Experiment::new(compiled).expect("it has values");
    let mut ready = experiment.interpreter().expect("an engine");
    let (result, _) = experiment.run(ready.engine.as_mut(), &RunOptions::default(), &mut Unwatched).expect("it runs");
    for (cell, kicks) in [(0, vec![0.01234 + 0.7777, 700.00071 + 0.7777]), (1, vec![3.3 + 0.7777])] {
        for (t, v) in series(&result, "c.v").t.iter().zip(column(&result, "c.v", cell)) {
            let exact: f64 = kicks.iter().filter(|at| *at < t).map(|at| 3.0 * f64::exp(-(t - at) / 10.0)).sum();
            assert!((v - exact).abs() < 1e-8, "cell {cell}: {v} is not {exact} at {t} ms");
        }
    }
}

/// What is on only for a while, by another function of the time than a line or by states, is on for exactly so long; steps grow to seconds otherwise.
#[test]
fn what_is_on_for_a_while_is_not_stepped_over() {
    let on = |condition: &str, clock: &str| {
        format!(
            "cell P {{ state x = 0; {clock} x' = if {condition} then 1 /ms else 0 /ms }}
            network main {{ population p: P }}
            run {{ duration = 1 s; dt = 0.1 ms; record p.x every 100 ms }}"
        )
    };
    for (condition, clock, wanted) in [
        ("abs(t - 400 ms) < 5 ms", "", 10.0),
        ("(t - 400 ms)^2 < 25 ms^2", "", 10.0),
        ("t * t > 40000 ms^2", "", 800.0),
        ("exp(-t / 200 ms) > 0.3", "", -200.0 * 0.3_f64.ln()),
        ("sqrt(t / 1 ms) > 20", "", 600.0),
        ("sin(2 * pi * t / 100 ms) > 0.5", "", 1000.0 / 3.0),
        (
            "floor(1.5 * sin(2 * pi * t / 400 ms)) == 1",
            "",
            600.0 * (1.0 - (2.0_f64 / 3.0).asin() / std::f64::consts::FRAC_PI_2),
        ),
        ("k > 395 ms and k < 405 ms", "state k: ms = 0 ms; k' = 1;", 10.0),
    ] {
        let (result, _) = adaptive(&on(condition, clock), 1e-8);
        let x = result.series_named("p.x").unwrap();
        let found = x.values.get(x.t.len() - 1, 0);
        assert!((found - wanted).abs() < 1e-4, "{condition}: {found}, not {wanted}");
    }
    // A smooth current that lasts for a while.
    let text = "cell P { state v: mV = -70 mV; v' = (-5 nS * (v + 70 mV) - i_syn) / 100 pF }
        network main { population p: P; input s: 200 pA * exp(-((t - 400 ms) / 20 ms)^2) -> p }
        run { duration = 1 s; dt = 0.1 ms; record p.v every 1 ms }";
    let highest = |method: Option<Method>| {
        let (result, _) = solved(text, CompileOptions { method, ..within(1e-8) });
        let v = result.series_named("p.v").unwrap();
        (0..v.t.len()).map(|at| v.values.get(at, 0)).fold(f64::NEG_INFINITY, f64::max)
    };
    let (own, steps) = (highest(Some(Method::Adaptive)), highest(Some(Method::Rk4)));
    assert!((own - steps).abs() < 1e-5 && own > -43.0, "{own} {steps}");
    // Spikes whose condition is a function of the time.
    let text = "cell P { state n = 0; state r: ms = 0 ms; r' = 1; n' = 0 /ms
            spike when sin(2 * pi * t / 50 ms) > 0.5 and r > 30 ms { n += 1; r = 0 ms } }
        network main { population p: P }
        run { duration = 500 ms; dt = 0.1 ms; record spikes of p }";
    assert_eq!(spikes(&adaptive(text, 1e-8).0, "p", 0).len(), 9);
}

fn rule(cell: &str, network: &str, duration: u32) -> String {
    format!(
        "cell C {{ {cell} }}
        network main {{ population p: C {network} }}
        run {{ duration = {duration} ms; dt = 0.01 ms; record p.v; record spikes of p }}"
    )
}

/// Whether a condition is true says whether there is a spike, also where both sides are equal.
#[test]
fn a_strict_condition_is_not_fulfilled_by_equals() {
    let text = "cell R { param on = 0; state v: mV = -60 mV; v' = (-40 mV - v) / 10 ms
            spike when v > -50 mV and on > 0 { v = -60 mV } }
        network main { population r: R[2]; param r.on = index }
        run { duration = 30 ms; dt = 0.1 ms; record spikes of r }";
    let (result, _) = adaptive(text, 1e-10);
    let period = 10.0 * 2_f64.ln();
    let wanted: Vec<f64> = (1..=4).map(|n| f64::from(n) * period).collect();
    assert_eq!(spikes(&result, "r", 0), [0.0; 0]);
    assert!(apart(&spikes(&result, "r", 1), &wanted) < 1e-6);
    // What no state decides may be any condition.
    let same = adaptive(&text.replace("on > 0", "not (on == 0)"), 1e-10).0;
    assert_eq!(same.spikes, result.spikes);

    let relay = |condition: &str| {
        let text = format!(
            "cell C {{ state v: mV = 0 mV; v' = -v / 1 ms; spike when {condition} {{ v = 0 mV }} }}
            synapse Kick {{ on event(weight: mV) {{ v += weight }} }}
            network main {{ population p: C; drive p via Kick from times(10.03 ms, 20 ms) {{ weight = 1 mV }} }}
            run {{ duration = 30 ms; dt = 0.1 ms; record spikes of p }}"
        );
        spikes(&adaptive(&text, 1e-8).0, "p", 0)
    };
    assert!(apart(&relay("v > 0 mV"), &[10.03, 20.0]) < 1e-9);
    assert!(apart(&relay("not (v <= 0 mV)"), &[10.03, 20.0]) < 1e-9);
    assert!(apart(&relay("v >= 1 mV"), &[10.03, 20.0]) < 1e-9);
}

/// Whatever a spike rule reads of the time is what it is then, as with steps.
#[test]
fn what_a_spike_rule_reads_of_the_time_moves() {
    let cell = |more: &str, condition: &str, does: &str| {
        format!("{more} state v: mV = -60 mV; v' = -(v + 40 mV) / 10 ms; spike when {condition} {{ {does} }}")
    };
    let bump = "input bump: mV; ";
    let pulse = "; input n: pulse(delay = 4 ms, duration = 1 ms, amplitude = 5 mV) -> p.bump";
    let times = |text: &str| spikes(&adaptive(text, 1e-10).0, "p", 0);
    let period = 10.0 * 2_f64.ln();
    let after = |first: f64, period: f64, count: u32| -> Vec<f64> {
        (0..count).map(|n| first + f64::from(n) * period).collect()
    };
    let text = rule(&cell(bump, "v + bump > -50 mV", "v = -60 mV"), pulse, 25);
    let (spiked, steps) =
        (times(&text), spikes(&solved(&text, CompileOptions { method: Some(Method::Rk4), ..plain() }).0, "p", 0));
    // The pulse brings the cell over its threshold at once: it is at -53.4 mV.
    assert!(apart(&spiked, &after(4.0, period, 4)) < 1e-6, "{spiked:?}");
    assert!(apart(&spiked, &steps) < 0.05, "{spiked:?} {steps:?}");
    // What crosses a level that jumps.
    let text = rule(&cell(bump, "v crosses -50 mV - bump", "v = -60 mV"), pulse, 25);
    assert!(apart(&times(&text), &after(4.0, period, 4)) < 1e-6);
    // From then on half of the way, which takes less time, to reset to.
    let text = rule(&cell("param t_on = 4 ms; ", "v > -50 mV", "v = if t > t_on then -55 mV else -60 mV"), "", 20);
    assert!(apart(&times(&text), &after(period, 10.0 * 1.5_f64.ln(), 4)) < 1e-6);
    // A refractory time that is longer for a while.
    let long = pulse.replace("duration = 1 ms", "duration = 10 ms").replace("mV)", "ms)");
    let text = rule(&cell("input bump: ms; ", "v > -50 mV", "v = -60 mV; refractory 1 ms + bump"), &long, 25);
    assert!(apart(&times(&text), &after(period, period + 6.0, 2)) < 1e-6);
    // The time alone.
    let text = rule(&cell("", "t > 3.3 ms and v < -50 mV", "v += 0 mV"), "", 25);
    assert!(apart(&times(&text), &[3.3]) < 1e-9);
}

/// Without a refractory time a cell does not wake up when it spikes, and spikes once.
#[test]
fn a_refractory_time_of_nothing_is_none() {
    let cell =
        |time: &str| format!("state v: mV = -60 mV; v' = 1 mV/ms; spike when v > -50 mV {{ refractory {time} }}");
    for time in ["0 ms", "1e-13 ms"] {
        assert!(apart(&spikes(&adaptive(&rule(&cell(time), "", 12), 1e-8).0, "p", 0), &[10.0]) < 1e-6, "{time}");
    }
}

/// A clamp moves what it holds in a refractory time, too.
#[test]
fn a_clamped_cell_may_be_refractory() {
    let cell = "state v: mV = -60 mV; v' = -(v + 60 mV) / 10 ms; spike when v crosses -50 mV { refractory 2 ms }";
    let ramp = "; clamp h: -60 mV + ramp(delay = 0 ms, duration = 20 ms, start = 0 mV, finish = 40 mV) -> p.v";
    let (result, _) = adaptive(&rule(cell, ramp, 12), 1e-8);
    assert!(apart(&spikes(&result, "p", 0), &[5.0]) < 1e-6);
    for (t, v) in series(&result, "p.v").t.iter().zip(column(&result, "p.v", 0)) {
        assert!((v - (-60.0 + 2.0 * t)).abs() < 1e-6, "{v} at {t} ms");
    }
}

/// Spikes that noise makes are refused before the run.
#[test]
fn spikes_by_chance_are_refused() {
    let noise = "; input n: noise(mean = 0 mV, sd = 1 mV, every = 1 ms) -> p.bump";
    let cell =
        |rule: &str| format!("input bump: mV; state v: mV = -60 mV; v' = -(v + 40 mV) / 10 ms; spike when {rule}");
    let poisson = "use std.cells.generators.Poisson
        network main { population p: Poisson[2] }
        run { duration = 10 ms; dt = 0.1 ms; record spikes of p }";
    for (text, reads) in [
        (poisson.to_string(), "Poisson events, which are"),
        (rule(&cell("v + bump > -50 mV { v = -60 mV }"), noise, 10), "noise, which is"),
        (rule(&cell("v crosses -50 mV + bump { v = -60 mV }"), noise, 10), "noise, which is"),
        (rule(&cell("v > -50 mV { v = -60 mV + bump }"), noise, 10), "noise, which is"),
        (rule(&cell("v > -50 mV { refractory 1 ms + bump * 1 ms / 1 mV; v = -60 mV }"), noise, 10), "noise, which is"),
    ] {
        let errors = compile(&checked(&text), &within(1e-8), &mut |_, _, _| {}).map(|_| ()).unwrap_err();
        let said = format!("`adaptive` does not solve this: the spike rule of `p` reads {reads} drawn");
        let [error] = &errors[..] else { panic!("{errors:?}") };
        assert!(error.message.starts_with(&said) && !error.labels.is_empty(), "{error:?}");
    }
}
