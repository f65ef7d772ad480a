//! Tests of: kinetic schemes. Against the matrix exponential, against gates that are the same channels, and against their own definition.

use crate::models::{Way, run};
use neuroc::driver::{Checked, CompileOptions, check_text, compile};
use neuroc::hir::{Method, Sources};
use neuroc::results::RunResult;
use std::path::Path;

/// Every engine in double precision.
fn ways() -> Vec<Way> {
    #[allow(unused_mut)]
    let mut ways = vec![Way::Plain, Way::Optimized, Way::Reread, Way::Native];
    #[cfg(feature = "xla")]
    if crate::pjrt::cpu().is_some() {
        ways.push(Way::Xla);
    }
    ways
}

fn checked(text: &str) -> Checked {
    let checked = check_text("m.neuro", Path::new(""), text.to_string(), &Sources);
    let said = neuroc::diag::render_human(&checked.sources, &checked.diagnostics, false);
    assert!(checked.model.is_some() && checked.diagnostics.is_empty(), "{said}");
    checked
}

/// The samples of one cell.
fn trace(result: &RunResult, name: &str, cell: usize) -> Vec<f64> {
    let series = result.series_named(name).unwrap_or_else(|| panic!("`{name}` is not recorded"));
    (0..series.t.len()).map(|row| series.values.get(row, cell)).collect()
}

fn with(method: Method, dt: f64) -> CompileOptions {
    CompileOptions { method: Some(method), dt: Some(dt), ..CompileOptions::default() }
}

/// The largest difference of two traces.
fn apart(a: &[f64], b: &[f64]) -> f64 {
    assert_eq!(a.len(), b.len());
    a.iter().zip(b).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max)
}

// ---------------------------------------------------------------------------------------------- the definition

/// Reactions from, to, rate at 0 mV (/ms) and how it grows with the voltage (/mV): a ring with a tail and a way that leads one way only.
const REACTIONS: &[(usize, usize, f64, f64)] = &[
    (0, 1, 3.0, 0.05),
    (1, 0, 0.5, -0.04),
    (1, 2, 20.0, 0.03),
    (2, 1, 8.0, -0.03),
    (2, 3, 0.4, 0.0),
    (3, 2, 0.01, -0.02),
    (3, 0, 0.3, -0.05),
    (2, 4, 150.0, 0.02),
    (4, 2, 90.0, -0.01),
    (4, 5, 1e-4, 0.0),
    (5, 0, 2e-3, 0.0),
];
const STATES: usize = 6;

/// The model: one cell for each command voltage, which steps from -30 mV.
fn clamped(members: &str) -> String {
    let reactions: String =
        REACTIONS.iter().map(|(a, b, k, s)| format!("S{a} -> S{b} ({k} /ms * exp({s} /mV * v))\n")).collect();
    format!(
        "channel X {{
            param gbar = 1 mS/cm2
            kinetics {{ {reactions} {members} }}
            current i = gbar * S4 * v
        }}
        cell C {{ compartment s {{ cm = 1 uF/cm2; v_init = -30 mV; insert X }} }}
        network main {{
            population c: C[3]
            clamp command: -30 mV + 25 mV * index + pulse(delay = 1 ms, duration = 10 ms, amplitude = 20 mV) -> c.s
        }}
        run {{ duration = 4 ms; dt = 0.01 ms; record c.s.X.{{S0, S1, S2, S3, S4, S5}} every 0.5 ms }}"
    )
}

#[test]
fn fractions_that_are_none_are_told() {
    // The rate is negative below -62 mV, where the ramp arrives after 2 ms.
    let told = |slope: &str, dt: f64| {
        let checked = checked(&format!(
            "channel K {{ param gbar = 0 mS/cm2
                kinetics {{ A <-> O (0.1 /ms/mV * (v + 62 mV), 2 /ms) }}
                current i = gbar * O * v }}
            cell C {{ compartment s {{ cm = 1 uF/cm2; v_init = -60 mV; insert K }} }}
            network main {{ population p: C; clamp h: -60 mV - {slope} * t -> p.s }}
            run {{ duration = 10 ms; dt = {dt} ms; record p.s.K.O }}"
        ));
        assert!(checked.model.is_some() && checked.diagnostics.is_empty(), "{:?}", checked.diagnostics);
        crate::models::outcome(&checked, &CompileOptions::default(), Way::Optimized).1.warning.map(|odd| odd.message)
    };
    let odd = told("1 mV/ms", 0.1).expect("a warning");
    assert!(odd.starts_with("`p.s.K.O` became -0.0") || odd.starts_with("`p.s.K.A` became 1.0"), "{odd}");
    assert!(odd.contains(", outside [0, 1], in cell 0 at t = "), "{odd}");
    assert_eq!(told("0.1 mV/ms", 0.1), None);
    // Where the time step is too long from the start, too.
    let odd = told("1 mV/ms", 0.5).expect("a warning");
    assert!(odd.contains(", outside [0, 1], in cell 0 at t = "), "{odd}");
}

type Matrix = [[f64; STATES]; STATES];

/// The rates at a voltage: what is beside the diagonal flows into a row.
fn rates(v: f64) -> Matrix {
    let mut a = Matrix::default();
    for &(from, to, rate, slope) in REACTIONS {
        a[to][from] += rate * (slope * v).exp();
        a[from][from] -= rate * (slope * v).exp();
    }
    a
}

fn product(a: &Matrix, b: &Matrix) -> Matrix {
    std::array::from_fn(|i| std::array::from_fn(|j| (0..STATES).map(|k| a[i][k] * b[k][j]).sum()))
}

/// The matrix exponential: a Taylor series of a small part, squared.
fn exponential(a: &Matrix, time: f64) -> Matrix {
    const HALVINGS: i32 = 24;
    let small = a.map(|row| row.map(|x| x * time / f64::from(1 << HALVINGS)));
    let unit: Matrix = std::array::from_fn(|i| std::array::from_fn(|j| f64::from(i == j)));
    // What differs from 1, so that nothing is lost when it is small: (1 + d)^2 - 1 = 2 d + d^2.
    let mut term = small;
    let mut less = small;
    for k in 2..8 {
        term = product(&term, &small).map(|row| row.map(|x| x / f64::from(k)));
        less = std::array::from_fn(|i| std::array::from_fn(|j| less[i][j] + term[i][j]));
    }
    for _ in 0..HALVINGS {
        let square = product(&less, &less);
        less = std::array::from_fn(|i| std::array::from_fn(|j| 2.0 * less[i][j] + square[i][j]));
    }
    std::array::from_fn(|i| std::array::from_fn(|j| unit[i][j] + less[i][j]))
}

fn applied(a: &Matrix, x: &[f64; STATES]) -> [f64; STATES] {
    std::array::from_fn(|i| (0..STATES).map(|j| a[i][j] * x[j]).sum())
}

/// The solution of a x = b, with pivots.
fn solved(mut a: Matrix, mut b: [f64; STATES]) -> [f64; STATES] {
    for k in 0..STATES {
        let pivot = (k..STATES).max_by(|&i, &j| a[i][k].abs().total_cmp(&a[j][k].abs())).unwrap_or(k);
        a.swap(k, pivot);
        b.swap(k, pivot);
        for i in k + 1..STATES {
            let factor = a[i][k] / a[k][k];
            let row = a[k];
            (0..STATES).for_each(|j| a[i][j] -= factor * row[j]);
            b[i] -= factor * b[k];
        }
    }
    for k in (0..STATES).rev() {
        let rest: f64 = (k + 1..STATES).map(|j| a[k][j] * b[j]).sum();
        b[k] = (b[k] - rest) / a[k][k];
    }
    b
}

#[test]
fn a_scheme_under_clamp_is_the_matrix_exponential() {
    let checked = checked(&clamped("init S0 = 0.75; init S3 = 0.25"));
    // The fastest states decay at 600 /ms and more, which Runge and Kutta's method must follow.
    for (method, dt, within) in
        [(Method::ExpEuler, 0.01, 1e-7), (Method::ExpEuler, 0.0025, 1e-11), (Method::Rk4, 0.001, 1e-4)]
    {
        for way in ways() {
            let result = run(&checked, &with(method, dt), way);
            for cell in 0..3 {
                let v = -30.0 + 25.0 * cell as f64;
                let mut x = [0.75, 0.0, 0.0, 0.25, 0.0, 0.0];
                for row in 0..9 {
                    if row > 0 {
                        let v = if row > 2 { v + 20.0 } else { v };
                        x = applied(&exponential(&rates(v), 0.5), &x);
                    }
                    for (state, &exact) in x.iter().enumerate() {
                        let found = trace(&result, &format!("c.s.X.S{state}"), cell)[row];
                        let error = (found - exact).abs() / exact.max(1e-9);
                        assert!(error < within, "{method:?} {way:?} S{state} of cell {cell}, {row}: {found} {exact}");
                    }
                }
            }
        }
    }
}

#[test]
fn cnexp_takes_steps_of_backward_euler() {
    let checked = checked(&clamped("init S0 = 0.75; init S3 = 0.25"));
    let dt = 0.05;
    for way in ways() {
        let result = run(&checked, &with(Method::Cnexp, dt), way);
        for cell in 0..3 {
            let v = -30.0 + 25.0 * cell as f64;
            let mut x = [0.75, 0.0, 0.0, 0.25, 0.0, 0.0];
            for row in 0..9 {
                let found: Vec<f64> =
                    (0..STATES).map(|state| trace(&result, &format!("c.s.X.S{state}"), cell)[row]).collect();
                // A clamp changes with the step that begins at its time.
                for (found, exact) in found.iter().zip(x) {
                    let error = (found - exact).abs() / exact.max(1e-9);
                    assert!(error < 1e-11, "{way:?}, cell {cell}, row {row}: {found} {exact}");
                }
                for _ in 0..10 {
                    let a = rates(if row >= 2 { v + 20.0 } else { v });
                    let step: Matrix =
                        std::array::from_fn(|i| std::array::from_fn(|j| f64::from(i == j) - dt * a[i][j]));
                    x = solved(step, x);
                }
            }
        }
    }
}

#[test]
fn a_scheme_begins_at_rest() {
    let checked = checked(&clamped(""));
    for way in ways() {
        let result = run(&checked, &with(Method::ExpEuler, 0.01), way);
        for cell in 0..3 {
            let at = |row: usize| -> Vec<f64> {
                (0..STATES).map(|state| trace(&result, &format!("c.s.X.S{state}"), cell)[row]).collect()
            };
            // One row of the matrix is a sum of the others: in its place stands that all are 1.
            let mut a = rates(-30.0 + 25.0 * cell as f64);
            a[0] = [1.0; STATES];
            let exact = solved(a, [1.0, 0.0, 0.0, 0.0, 0.0, 0.0]);
            for (state, (found, exact)) in at(0).iter().zip(exact).enumerate() {
                assert!((found / exact - 1.0).abs() < 1e-9, "{way:?} S{state} of cell {cell}: {found} {exact}");
            }
            // Nothing moves before the step.
            assert!(apart(&at(0), &at(2)) < 1e-13, "{way:?}: {:?} {:?}", at(0), at(2));
        }
    }
}

/// Detailed balance: the states of a chain are products of ratios of rates, over 200 powers of ten.
#[test]
fn small_states_have_all_their_digits() {
    let chain: String = (0..20).map(|k| format!("S{k} <-> S{} (1e-6 /ms, 1e4 /ms)\n", k + 1)).collect();
    let checked = checked(&format!(
        "channel X {{ param g = 1 mS/cm2; kinetics {{ {chain} }} current i = g * S20 * v }}
        cell C {{ compartment s {{ cm = 1 uF/cm2; v_init = -30 mV; insert X }} }}
        network main {{ population c: C }}
        run {{ duration = 1 ms; dt = 0.1 ms; record c.s.X.{{S0, S7, S20}} }}"
    ));
    for way in ways() {
        for method in [Method::ExpEuler, Method::Cnexp] {
            let result = run(&checked, &with(method, 0.1), way);
            for state in [0, 7, 20] {
                for found in trace(&result, &format!("c.s.X.S{state}"), 0) {
                    let exact = 1e-10f64.powi(state) * (1.0 - 1e-10);
                    let what = format!("{way:?} {method:?} S{state}: {found} {exact}");
                    // What is subnormal in a step has fewer digits.
                    assert!((found / exact - 1.0).abs() < 1e-9, "{what}");
                }
            }
        }
    }
}

// ---------------------------------------------------------------------------------------------- the same channels

/// The squid's sodium and potassium channels as gates, and as what they mean: three sensors and a particle, and four sensors.
const SQUIDS: &str = "
use std.channels.hh.{Na, K, Leak}
channel Sodium {
    param gbar = 120 mS/cm2; param erev = 50 mV
    let a = exp_linear_rate(v, 1 /ms, -40 mV, 10 mV)
    let b = exp_rate(v, 4 /ms, -65 mV, -18 mV)
    let close = exp_rate(v, 0.07 /ms, -65 mV, -20 mV)
    let open = sigmoid_rate(v, 1 /ms, -35 mV, 10 mV)
    kinetics {
        q10 = 3 at 6.3 degC
        C0 <-> C1 (3 * a, b); C1 <-> C2 (2 * a, 2 * b); C2 <-> O (a, 3 * b)
        I0 <-> I1 (3 * a, b); I1 <-> I2 (2 * a, 2 * b); I2 <-> I3 (a, 3 * b)
        I0 <-> C0 (close, open); I1 <-> C1 (close, open); I2 <-> C2 (close, open); I3 <-> O (close, open)
        conserve C0 + C1 + C2 + O + I0 + I1 + I2 + I3 = 1
    }
    current i = gbar * O * (v - erev)
}
channel Potassium {
    param gbar = 36 mS/cm2; param erev = -77 mV
    let a = exp_linear_rate(v, 0.1 /ms, -55 mV, 10 mV)
    let b = exp_rate(v, 0.125 /ms, -65 mV, -80 mV)
    kinetics {
        q10 = 3 at 6.3 degC
        C0 <-> C1 (4 * a, b); C1 <-> C2 (3 * a, 2 * b); C2 <-> C3 (2 * a, 3 * b); C3 <-> O (a, 4 * b)
    }
    current i = gbar * O * (v - erev)
}
cell Gates { compartment soma { cm = 1 uF/cm2; v_init = -65 mV; insert Na, K, Leak } }
cell Schemes { compartment soma { cm = 1 uF/cm2; v_init = -65 mV; insert Sodium, Potassium, Leak } }
cell Branched {
    section soma { length = 20 um; diam = 20 um }
    section dend { from soma(1); length = 200 um; diam = 2 um }
    compartments { max_length = 50 um }
    region all { ra = 100 ohm*cm; cm = 1 uF/cm2; v_init = -65 mV; insert Sodium, Potassium, Leak }
}
network main {
    population g: Gates
    population s: Schemes
    input up: 10 uA/cm2 -> g.soma
    input down: 10 uA/cm2 -> s.soma
}
run { duration = 20 ms; dt = 0.01 ms; celsius = 10 degC; record g.soma.v; record s.soma.v; record s.soma.Sodium.{C0, C1, C2, O, I0, I1, I2, I3} }";

#[test]
fn independent_gates_are_a_scheme() {
    let checked = checked(SQUIDS);
    for (method, dt, within) in [(Method::Rk4, 0.005, 1e-4), (Method::ExpEuler, 0.01, 1e-4)] {
        for way in ways() {
            let result = run(&checked, &with(method, dt), way);
            let [gates, scheme] = ["g.soma.v", "s.soma.v"].map(|name| trace(&result, name, 0));
            assert!(gates.iter().any(|&v| v > 30.0), "it spikes");
            let difference = apart(&gates, &scheme);
            assert!(difference < within, "{method:?} {way:?}: {difference}");
        }
    }
}

/// Potentials and schemes are known at times that are half a step apart: together they are of order 2.
#[test]
fn schemes_are_of_order_2_beside_potentials() {
    let checked = checked(SQUIDS);
    let v = |method, dt| {
        let options = CompileOptions { every: Some(0.5), ..with(method, dt) };
        trace(&run(&checked, &options, Way::Native), "s.soma.v", 0)
    };
    let exact = v(Method::Rk4, 0.0005);
    // Before the first spike, where a difference in time is not yet one of tens of millivolts.
    let early = |trace: &[f64]| apart(&trace[..4], &exact[..4]);
    let [coarse, fine] = [0.02, 0.01].map(|dt| early(&v(Method::ExpEuler, dt)));
    let ratio = coarse / fine;
    assert!((3.0..5.0).contains(&ratio), "{coarse} {fine}");
    let [coarse, fine] = [0.02, 0.01].map(|dt| early(&v(Method::Cnexp, dt)));
    assert!((1.5..2.5).contains(&(coarse / fine)), "{coarse} {fine}");
}

#[cfg(feature = "xla")]
fn on_xla() -> Vec<(Way, f64)> {
    crate::pjrt::cpu().map_or(Vec::new(), |_| vec![(Way::Xla, 1e-13), (Way::XlaSingle, 2e-5)])
}

#[cfg(not(feature = "xla"))]
fn on_xla() -> Vec<(Way, f64)> {
    Vec::new()
}

#[test]
fn the_states_of_a_scheme_sum_to_one() {
    let checked = checked(SQUIDS);
    let ways = [(Way::Optimized, 1e-13), (Way::Native, 1e-13), (Way::Single, 2e-5)].into_iter().chain(on_xla());
    for (way, within) in ways {
        // Methods are discretized before engines see anything: one of one stage and one of several will do for compiled code.
        let here = |method: Method| way == Way::Optimized || [Method::Cnexp, Method::Rk4].contains(&method);
        for &(method, name) in Method::ALL.iter().filter(|m| m.0.takes_every_model() && here(m.0)) {
            let options = CompileOptions { duration: Some(50.0), every: Some(5.0), ..with(method, 0.01) };
            let result = run(&checked, &options, way);
            let states: Vec<Vec<f64>> = ["C0", "C1", "C2", "O", "I0", "I1", "I2", "I3"]
                .iter()
                .map(|s| trace(&result, &format!("s.soma.Sodium.{s}"), 0))
                .collect();
            for row in 0..states[0].len() {
                let sum: f64 = states.iter().map(|s| s[row]).sum();
                assert!((sum - 1.0).abs() < within, "{way:?} {name}: {sum}");
                assert!(states.iter().all(|s| s[row] > -within), "{way:?} {name}: {row}");
            }
        }
    }
}

/// A short cable that is one compartment is the compartment.
#[test]
fn schemes_are_the_same_in_sections() {
    let text = SQUIDS
        .replace("compartments { max_length = 50 um }", "compartments { max_length = 500 um }")
        .replace("section dend { from soma(1); length = 200 um; diam = 2 um }\n", "")
        .replace("population g: Gates", "population g: Branched")
        .replace("g.soma.v", "g.soma(0.5).v")
        .replace("input up: 10 uA/cm2 -> g.soma", "input up: 10 uA/cm2 -> g.soma(0.5)");
    let checked = checked(&text);
    for way in [Way::Plain, Way::Optimized, Way::Reread, Way::Native] {
        let result = run(&checked, &with(Method::Cnexp, 0.025), way);
        let [cable, point] = ["g.soma(0.5).v", "s.soma.v"].map(|name| trace(&result, name, 0));
        assert!(point.iter().any(|&v| v > 30.0), "it spikes");
        let difference = apart(&cable, &point);
        assert!(difference < 1e-7, "{way:?}: {difference}");
    }
}

/// `tests/reference/kinetics_neuron.py`: the same channels in a soma with a dendrite.
#[test]
fn schemes_in_branched_cells_are_those_of_neuron() {
    let text = SQUIDS
        .replace(
            "section dend { from soma(1); length = 200 um; diam = 2 um }",
            "section dend { from soma(1); length = 200 um; diam = 2 um; compartments = 4 }",
        )
        .replace("compartments { max_length = 50 um }", "compartments { max_length = 500 um }")
        .replace(
            "insert Sodium, Potassium, Leak }\n}",
            "insert Sodium, Potassium, Leak(gbar = 0.3 mS/cm2, erev = -54.4 mV) }\n}",
        );
    let (model, _) = text.split_once("network main").unwrap();
    let checked = checked(&format!(
        "{}
        network main {{
            population b: Branched
            input step: pulse(delay = 2 ms, duration = 30 ms, amplitude = 0.4 nA) -> b.soma(0.5)
        }}
        run {{
            duration = 20 ms; dt = 0.025 ms; method = cnexp; celsius = 6.3 degC
            record b.{{soma(0.5).{{v, Sodium.O, Sodium.C0}}, dend(0.875).v}} every 0.1 ms
        }}",
        model
            .replace("use std.channels.hh.{Na, K, Leak}", "use std.channels.hh.{Leak}")
            .replace("cell Gates { compartment soma { cm = 1 uF/cm2; v_init = -65 mV; insert Na, K, Leak } }", "")
    ));
    let reference = std::fs::read_to_string("tests/reference/kinetics_neuron.json").unwrap();
    let reference: serde_json::Value = serde_json::from_str(&reference).unwrap();
    for way in [Way::Plain, Way::Optimized, Way::Reread, Way::Native] {
        let result = run(&checked, &CompileOptions::default(), way);
        for (name, key, within) in [
            ("b.soma(0.5).v", "soma_mV", 1e-8),
            ("b.dend(0.875).v", "dend_mV", 1e-8),
            ("b.soma(0.5).Sodium.O", "open", 1e-10),
            ("b.soma(0.5).Sodium.C0", "closed", 1e-10),
        ] {
            let expected: Vec<f64> = reference[key].as_array().unwrap().iter().map(|x| x.as_f64().unwrap()).collect();
            let found = trace(&result, name, 0);
            let error = apart(&found, &expected);
            assert!(error < within, "{name}, {way:?}: {error:e}");
        }
        assert!(trace(&result, "b.soma(0.5).v", 0).iter().any(|&v| v > 20.0), "it spikes");
    }
}

// ---------------------------------------------------------------------------------------------- what is refused

/// What is said when a model is compiled.
fn refused(text: &str, set: &[&str]) -> String {
    let checked = checked(text);
    let set = set.iter().map(|s| s.to_string()).collect();
    let options = CompileOptions { set, ..CompileOptions::default() };
    let told = match compile(&checked, &options, &mut |_, _, _| {}) {
        Err(d) => d,
        Ok(compiled) => match neuroc::driver::Experiment::new(compiled) {
            Err(d) => d,
            Ok(_) => panic!("it is not refused"),
        },
    };
    neuroc::diag::render_human(&checked.sources, &told, false)
}

#[test]
fn what_begins_as_no_whole_is_refused() {
    let said = refused(&clamped(""), &["c.s.X.S1=0.9"]);
    assert!(
        said.contains("the states of `c.s.X` of cell 0 of `c` sum to 1.67930397884 at the start, not to 1"),
        "{said}"
    );
    let settable =
        clamped("").replace("param gbar", "param k = -1 /ms; param gbar").replace("S0 -> S1 (3 /ms", "S0 -> S1 (k");
    let said = refused(&settable, &[]);
    assert!(said.contains("a rate is not negative"), "{said}");
}
