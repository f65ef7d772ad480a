//! Tests of: torture. Models that once gave wrong numbers without a word, by the number of the defect.

use crate::models::{Way, run};
use neuroc::driver::{self, Checked, CompileOptions};
use neuroc::hir::{Method, Sources};
use std::path::Path;

fn checked(text: &str) -> Checked {
    let checked = driver::check_text("torture.neuro", Path::new(""), text, &Sources);
    let said = neuroc::diag::render_human(&checked.sources, &checked.diagnostics, false);
    assert!(checked.model.is_some() && checked.diagnostics.is_empty(), "{said}");
    checked
}

/// The last sample of every cell of a recorded quantity.
fn last(checked: &Checked, options: &CompileOptions, way: Way, name: &str) -> Vec<f64> {
    let result = run(checked, options, way);
    let series = result.series_named(name).unwrap_or_else(|| panic!("`{name}` is not recorded"));
    let (rows, columns) = series.values.shape();
    (0..columns).map(|cell| series.values.get(rows - 1, cell)).collect()
}

fn with(method: Method) -> CompileOptions {
    CompileOptions { method: Some(method), ..CompileOptions::default() }
}

/// A persistent sodium current with an instantaneous gate, whose rates are written by hand.
#[test]
fn d1_a_textbook_rate_does_not_freeze_the_voltage() {
    let model = checked(
        "channel NaP {
            param gbar = 0.1 mS/cm2
            param erev = 50 mV
            gate m instantaneous {
                alpha = 0.1 /ms/mV * (v + 40 mV) / (1 - exp(-(v + 40 mV) / 10 mV))
                beta = 4 /ms * exp(-(v + 65 mV) / 18 mV)
            }
        }
        channel Leak { param gbar = 0.3 mS/cm2; param erev = -65 mV }
        cell C { compartment soma { cm = 1 uF/cm2; v_init = -65 mV; insert NaP, Leak } }
        network main {
            population p: C
            input up: ramp(delay = 0 ms, duration = 1000 ms, start = 0 uA/cm2, finish = 5 uA/cm2) -> p.soma
        }
        run { duration = 1000 ms; dt = 0.1 ms; record p.soma.v every 100 ms }",
    );
    let exact = last(&model, &with(Method::Rk4), Way::Optimized, "p.soma.v")[0];
    assert!((exact + 28.465).abs() < 1e-3, "{exact}");
    for &(method, name) in Method::ALL {
        let v = last(&model, &with(method), Way::Optimized, "p.soma.v")[0];
        assert!((v - exact).abs() < 0.02, "{name}: {v}, not {exact}");
    }
}

/// The calcium current of Goldman, Hodgkin and Katz, from voltages near 0: they all move alike.
#[test]
fn d1_a_textbook_calcium_current_does_not_jump() {
    let model = checked(
        "channel CaGHK {
            param p = 0.02 mS/cm2
            param cin = 0.0001
            param cout = 2.0
            let u = v / 12.5 mV
            gate m { inf = 0.8; tau = 1 ms; init = 0.8 }
            current i = p * m^2 * 12.5 mV * u * (cin - cout * exp(-u)) / (1 - exp(-u))
        }
        cell Axon { compartment soma { cm = 1 uF/cm2; v_init = 0 mV; insert CaGHK } }
        network main {
            population a: Axon[41]
            init a.soma.v = (index - 20) * (if index < 20 then 0.0003 mV else 0.000001 mV)
        }
        run { duration = 0.01 ms; dt = 0.01 ms; record a.soma.v }",
    );
    for way in [Way::Plain, Way::Optimized, Way::Native, Way::Single] {
        for &(method, name) in Method::ALL {
            for (cell, v) in last(&model, &with(method), way, "a.soma.v").into_iter().enumerate() {
                let begin = (cell as f64 - 20.0) * if cell < 20 { 0.0003 } else { 0.000001 };
                assert!((v - begin - 0.0032).abs() < 1e-5, "{way:?}, {name}: from {begin} to {v}");
            }
        }
    }
}

/// What is rectified is 0 below the threshold, whatever the decimals are.
#[test]
fn d2_an_exact_zero_stays_one() {
    for (vt, k) in [("-60", "0.7"), ("-50.1", "3"), ("-50", "3"), ("-40", "0.3"), ("-61.7", "1.1")] {
        for (what, exact) in [
            ("sqrt(REST)", 0.0),
            ("REST^0.5", 0.0),
            ("REST^1.5", 0.0),
            ("(if REST > 0 then 1 else 0)", 0.0),
            ("(if REST == 0 then 0 else 1)", 0.0),
            ("floor(REST)", 0.0),
            ("ceil(REST)", 0.0),
            ("heaviside(REST)", 1.0),
            ("clamp(ln(1 + REST), 0, 1)", 0.0),
        ] {
            let model = checked(&format!(
                "cell C {{
                    param vt = {vt} mV
                    param k = {k} mV
                    state v: mV = -70 mV
                    state s: 1 = 0
                    v' = 0 mV/ms
                    s' = ({} - s) / 1 ms
                }}
                network main {{ population p: C }}
                run {{ duration = 0.5 ms; dt = 0.01 ms; record p.s }}",
                what.replace("REST", "((max(v, vt) - vt) / k)")
            ));
            let plain = last(&model, &CompileOptions::default(), Way::Plain, "p.s")[0];
            assert!((plain - exact * (1.0 - (-0.5f64).exp())).abs() < 1e-12, "{what}: {plain}");
            let optimized = last(&model, &CompileOptions::default(), Way::Optimized, "p.s")[0];
            assert!((plain - optimized).abs() < 1e-12, "{what} with vt {vt} and k {k}: {plain}, then {optimized}");
        }
    }
}

/// In single precision, too, and where the threshold is divided by itself: what depends on no cell is rounded as what cells compute.
#[test]
fn d2_an_exact_zero_stays_one_in_single_precision() {
    let rest = [
        "(max(v, VT) - VT) / K",
        "max(v, VT) / K - VT / K",
        "(VT - min(v + 40 mV, VT)) / K",
        "max(v + VT, 2 * VT) / K - 2 * VT / K",
    ];
    let told = [
        "sqrt(REST)",
        "(if REST > 0 then 1 else 0)",
        "floor(REST)",
        "ceil(REST)",
        "REST^0.5",
        "(if REST == 0 then 0 else 1)",
    ];
    let mut cells = String::new();
    let mut network = String::new();
    let mut records = Vec::new();
    for (vt, k) in [("-60", "0.7"), ("-50.1", "3"), ("-50", "3"), ("-40.3", "0.3"), ("-61.7", "1.1")] {
        for written in [false, true] {
            for rest in rest {
                let at = records.len();
                let (params, vt, k) = match written {
                    false => (format!("param vt = {vt} mV; param k = {k} mV;"), "vt".to_string(), "k".to_string()),
                    true => (String::new(), format!("({vt} mV)"), format!("{k} mV")),
                };
                let rest = rest.replace("VT", &vt).replace('K', &k);
                let states: String = (0..told.len()).map(|n| format!("state s{n}: 1 = 0\n")).collect();
                let equations = told.iter().enumerate().map(|(n, told)| {
                    format!("s{n}' = ({} - s{n}) / 1 ms\n", told.replace("REST", &format!("({rest})")))
                });
                let equations: String = equations.collect();
                cells +=
                    &format!("cell C{at} {{ {params} state v: mV = -70 mV\n{states}v' = 0 mV/ms\n{equations} }}\n");
                network += &format!("population p{at}: C{at}\n");
                records.push((format!("p{at}"), format!("{rest} with {vt}, {k}")));
            }
        }
    }
    let recorded: String =
        records.iter().flat_map(|(name, _)| (0..told.len()).map(move |n| format!("record {name}.s{n}\n"))).collect();
    let model = checked(&format!(
        "{cells} network main {{ {network} }}\nrun {{ duration = 0.5 ms; dt = 0.01 ms; method = euler\n{recorded} }}"
    ));
    #[cfg(feature = "xla")]
    let xla = crate::pjrt::cpu().map(|_| Way::XlaSingle);
    #[cfg(not(feature = "xla"))]
    let xla = None;
    for way in [Way::Optimized, Way::Single].into_iter().chain(xla) {
        let result = run(&model, &CompileOptions::default(), way);
        for (name, what) in &records {
            for (n, told) in told.iter().enumerate() {
                let series = result.series_named(&format!("{name}.s{n}")).unwrap_or_else(|| panic!("{name}.s{n}"));
                let last = series.values.get(series.values.shape().0 - 1, 0);
                assert!(last == 0.0, "{way:?}: {told} of {what} gave {last}");
            }
        }
    }
}

/// A sigmoid without a width is a step.
#[test]
fn d2_a_slope_of_0_is_a_step() {
    let model = checked(
        "cell C {
            param width = 0 mV
            state v: mV = -70 mV
            state s: 1 = 0.5
            v' = 0 mV/ms
            s' = (sigmoid_rate(v, 1, -40 mV, width) - s) / 1 ms
        }
        network main { population p: C[2]; init p.v = -70 mV + index * 60 mV }
        run { duration = 40 ms; dt = 0.1 ms; record p.s }",
    );
    for way in [Way::Plain, Way::Optimized, Way::Native, Way::Single] {
        let s = last(&model, &CompileOptions::default(), way, "p.s");
        assert!(s[0].abs() < 1e-6 && (s[1] - 1.0).abs() < 1e-6, "{way:?}: {s:?}");
    }
}

/// A sine whose phase differs from cell to cell goes on past 65536 rad in single precision.
#[test]
fn d3_a_late_sine_is_right() {
    let model = checked(
        "cell L { state v: mV = 0 mV; input drive: mV/ms; v' = (drive * 1 ms - v) / 1 ms }
        network main {
            population a: L[8]
            input s: sine(delay = 0 ms, duration = 1e9 ms, amplitude = 3 mV/ms, period = 1 ms, phase = index) -> a.drive
        }
        run { duration = 11000.25 ms; dt = 0.25 ms; method = euler; record a.v every 0.25 ms }",
    );
    let exact = last(&model, &CompileOptions::default(), Way::Plain, "a.v");
    for (way, within) in [(Way::Native, 1e-9), (Way::Single, 1e-5)] {
        for (cell, v) in last(&model, &CompileOptions::default(), way, "a.v").into_iter().enumerate() {
            assert!((v - exact[cell]).abs() < within, "{way:?}, cell {cell}: {v}, not {}", exact[cell]);
        }
    }
}

/// Forms of 0/0 at the voltage where a gate begins.
#[test]
fn d6_gates_at_0_over_0_stay_gates() {
    let model = checked(
        "channel X {
            param gbar = 0.01 mS/cm2
            param erev = -40 mV
            let x = (v + 40 mV) / 10 mV
            gate m { alpha = 1 /ms * (exp(x) - 1) / x; beta = 1 /ms }
            gate n { alpha = 1 /ms / ((1 - exp(-x)) / x); beta = 1 /ms }
            gate k { alpha = 0.1 /ms/mV * (v + 40 mV) / (1 - 1 / exp((v + 40 mV) / 10 mV)); beta = 1 /ms; init = 0.1 }
        }
        cell C { compartment s { cm = 1 uF/cm2; v_init = -40 mV; insert X } }
        network main { population p: C }
        run { duration = 10 ms; dt = 0.01 ms; record p.s.X.{m, n, k} }",
    );
    for way in [Way::Plain, Way::Optimized, Way::Native, Way::Single] {
        for gate in ["p.s.X.m", "p.s.X.n", "p.s.X.k"] {
            let value = last(&model, &CompileOptions::default(), way, gate)[0];
            assert!((value - 0.5).abs() < 1e-6, "{way:?}: {gate} is {value}");
        }
    }
}
