//! Tests of: singular. Quotients that are 0/0 at one voltage, in every spelling of `tests/reference/singularities.json`: values and
//! one step of every method around that voltage, on every engine.

use crate::models::{Way, outcome, root, run};
use neuroc::driver::{self, CompileOptions};
use neuroc::hir::{Method, Sources};
use neuroc::simulate::Ending;
use serde_json::Value;
use std::fmt::Write as _;
use std::path::Path;

/// How far from the exact value a value may be, relative to it or to 1, in double and in single precision.
const VALUE_WITHIN: [f64; 2] = [2e-13, 3e-6];
/// How far from where it should be a step may lead, in mV.
const STEP_WITHIN: [f64; 2] = [2e-12, 1e-4];

fn table() -> Value {
    let path = root().join("tests/reference/singularities.json");
    let text = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    serde_json::from_str(&text).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

fn numbers(value: &Value) -> Vec<f64> {
    let list = value.as_array().unwrap_or_else(|| panic!("{value} is not a list"));
    list.iter().map(|x| x.as_f64().unwrap_or_else(|| panic!("{x} is not a number"))).collect()
}

/// A cell with a state for every spelling, whose voltages begin where the file `starts` says.
fn model(table: &Value, mid: f64) -> String {
    let parameter = |name: &str| table["parameters"][name].as_f64().unwrap_or(f64::NAN);
    let mut text = String::from("cell C {\n    param start = 0 mV\n");
    let _ =
        writeln!(text, "    param vh = {mid} mV; param k = {} mV; param a = {} /mV", parameter("k"), parameter("a"));
    let _ = writeln!(text, "    param c = {}; param s = {} mV", parameter("c"), parameter("s"));
    let _ = writeln!(text, "    param cin = {}; param cout = {}", parameter("cin"), parameter("cout"));
    let _ = writeln!(text, "    param eps = {}", parameter("eps"));
    let spellings = table["spellings"].as_object().unwrap_or_else(|| panic!("no spellings"));
    for (name, entry) in spellings {
        let expression = entry["expression"].as_str().unwrap_or_else(|| panic!("{name} has no expression"));
        // The unit has both letters in it.
        let expression = expression.replace("mV", "unit").replace('V', &format!("x_{name}"));
        let expression = expression.replace('M', &format!("({mid} mV)")).replace("unit", "mV");
        let _ = writeln!(text, "    state x_{name}: mV = start\n    let y_{name} = {expression}");
        let _ = writeln!(text, "    x_{name}' = 2 mV/ms - 0.05 /ms * y_{name} * (x_{name} - 50 mV)");
    }
    let names = |letter: &str| spellings.keys().map(|n| format!("{letter}_{n}")).collect::<Vec<_>>().join(", ");
    let cells = numbers(&table["offsets_mV"]).len();
    let _ = writeln!(text, "}}\nnetwork main {{\n    population p: C[{cells}]");
    let _ = writeln!(text, "    param p.start = file(\"starts.csv\") * 1 mV\n}}");
    let _ = writeln!(text, "run {{\n    duration = 0.5 ms\n    dt = 0.5 ms");
    let _ = writeln!(text, "    record p.{{{}}}\n    record p.{{{}}}\n}}", names("x"), names("y"));
    text
}

/// The entries of the table that a way of running misses, with its largest errors.
fn misses(table: &Value, way: Way) -> Vec<String> {
    let offsets = numbers(&table["offsets_mV"]);
    // What is compiled is the same program as what is interpreted with passes: one voltage will do, the one with the finest offsets.
    let (single, compiled) = match way {
        Way::Plain | Way::Optimized | Way::Reread => (false, false),
        Way::Native => (false, true),
        Way::Single => (true, true),
        #[cfg(feature = "xla")]
        Way::Xla => (false, true),
        #[cfg(feature = "xla")]
        Way::XlaSingle => (true, true),
    };
    let (value_within, step_within) = (VALUE_WITHIN[usize::from(single)], STEP_WITHIN[usize::from(single)]);
    let mut misses = Vec::new();
    let (mut worst_value, mut worst_step) = (0.0f64, 0.0f64);
    let mids = numbers(&table["mids_mV"]);
    for (at, &mid) in mids.iter().enumerate().take(if compiled { 1 } else { mids.len() }) {
        let folder = tempfile::tempdir().unwrap_or_else(|e| panic!("{e}"));
        let starts: String = offsets.iter().map(|o| format!("{}\n", mid + o)).collect();
        std::fs::write(folder.path().join("starts.csv"), starts).unwrap_or_else(|e| panic!("{e}"));
        let checked = driver::check_text("table.neuro", folder.path(), model(table, mid), &Sources);
        let said = neuroc::diag::render_human(&checked.sources, &checked.diagnostics, false);
        assert!(checked.diagnostics.is_empty(), "{said}");
        // Of the methods, too, one that has slopes of the equations and one of several stages.
        let here = |method: Method| !compiled || [Method::Cnexp, Method::Rk4].contains(&method);
        for &(method, name) in Method::ALL.iter().filter(|m| m.0.takes_every_model() && here(m.0)) {
            let options = CompileOptions { method: Some(method), ..CompileOptions::default() };
            let result = run(&checked, &options, way);
            let series = |letter: &str, spelling: &str| {
                let name = format!("p.{letter}_{spelling}");
                result.series_named(&name).unwrap_or_else(|| panic!("`{name}` is not recorded"))
            };
            for (spelling, entry) in table["spellings"].as_object().into_iter().flatten() {
                let (values, steps) = (numbers(&entry["values"][at]), numbers(&entry["steps"][name][at]));
                for (cell, offset) in offsets.iter().enumerate() {
                    let value = series("y", spelling).values.get(0, cell);
                    let error = (value - values[cell]).abs() / values[cell].abs().max(1.0);
                    worst_value = worst_value.max(error);
                    if error > value_within || error.is_nan() {
                        misses.push(format!("{spelling} at {mid} + {offset:e}: {value}, not {}", values[cell]));
                    }
                    let expected = mid + offset + steps[cell];
                    let reached = series("x", spelling).values.get(1, cell);
                    let error = (reached - expected).abs();
                    worst_step = worst_step.max(error);
                    if error > step_within || error.is_nan() {
                        misses.push(format!("{name} of {spelling} from {mid} + {offset:e}: {reached}, not {expected}"));
                    }
                }
            }
        }
    }
    println!("{way:?}: values within {worst_value:.1e}, steps within {worst_step:.1e} mV");
    misses
}

fn holds(way: Way) {
    let misses = misses(&table(), way);
    let first: Vec<&str> = misses.iter().take(20).map(String::as_str).collect();
    assert!(misses.is_empty(), "{} entries are beyond the tolerance:\n{}", misses.len(), first.join("\n"));
}

#[test]
fn the_table_is_large_enough() {
    let table = table();
    assert!(table["spellings"].as_object().is_some_and(|s| s.len() >= 40));
    assert!(numbers(&table["offsets_mV"]).contains(&0.0));
}

#[test]
fn interpreted_without_passes() {
    holds(Way::Plain);
}

#[test]
fn interpreted_with_passes() {
    holds(Way::Optimized);
}

// Natively double precision has the bits of the interpreter, and on XLA single precision is the harder one.
#[test]
fn native_f32() {
    holds(Way::Single);
}

#[cfg(feature = "xla")]
#[test]
fn xla_f32() {
    if crate::pjrt::cpu().is_some() {
        holds(Way::XlaSingle);
    }
}

// ----------------------------------------------------------------------------------------- everywhere in a model

/// Models with a linoid somewhere, begun where it is 0/0 or a little beside: `LINOID(x, midpoint, scale)`.
const PLACES: &[(&str, &str)] = &[
    (
        "junction",
        "cell C { compartment s { cm = 1 uF/cm2; v_init = -40 mV } }
        junction J { param g = 0.05 mS/cm2; param k = 5 mV; current i = g * k * LINOID(dv, 0 mV, k) }
        network main { population p: C[4]; init p.s.v = -40 mV + 1e-9 mV * index; connect p.s -- p.s via J { rule = all_to_all } }
        run { duration = 1 ms; dt = 0.1 ms; record p.s.v }",
    ),
    (
        "reset",
        "cell C { param vh = -40 mV; state v: mV = -40 mV; v' = 0 mV/ms
            spike when v >= -40 mV { v = -65 mV + 10 mV * LINOID(v, vh, 10 mV) } }
        network main { population p: C[4]; init p.v = -40 mV + 1e-9 mV * index }
        run { duration = 1 ms; dt = 0.1 ms; record p.v }",
    ),
    (
        "condition",
        "cell C { param vh = -40 mV; state v: mV = -40 mV; state n: 1 = 0; v' = 0 mV/ms; n' = 0 /ms
            spike when LINOID(v, vh, 10 mV) > 0.99 { n += 1; v -= 1 mV } }
        network main { population p: C[4]; init p.v = -40 mV + 1e-9 mV * index }
        run { duration = 1 ms; dt = 0.1 ms; record p.{v, n} }",
    ),
    (
        "level and refractory time",
        "cell C { param vh = -40 mV; state v: mV = -40.5 mV; v' = 0.5 mV/ms
            spike when v crosses vh * LINOID(v, vh, 10 mV) { v = -41 mV; refractory 2 ms * LINOID(v, vh, 10 mV) } }
        network main { population p: C }
        run { duration = 8 ms; dt = 0.5 ms; record p.v }",
    ),
    (
        "pool",
        "channel X { param vh = -40 mV; param g = 0.1 mS/cm2; current i = g * 10 mV * LINOID(v, vh, 10 mV) }
        cell C { compartment s {
            cm = 1 uF/cm2; v_init = -40 mV; insert X
            pool Ca: mM { init = 1 mM; Ca' = -0.1 mM/ms * LINOID(Ca, 1 mM, 0.3 mM) + 0.001 mM/ms * X.i / 1 uA/cm2 }
        } }
        network main { population p: C[3]; init p.s.v = -40 mV + 1e-10 mV * index }
        run { duration = 1 ms; dt = 0.1 ms; record p.s.{v, Ca} }",
    ),
    (
        "inf, tau and init",
        "channel X {
            param vh = -40 mV; param gbar = 0.3 mS/cm2; param erev = -90 mV
            gate m^2 { inf = 1 / (1 + LINOID(v, vh, 9 mV)); tau = 1 ms * LINOID(v, vh, -6 mV) }
            gate n { alpha = 1 /ms * LINOID(v, vh, 9 mV); beta = 0.3 /ms; tau = 1 ms * LINOID(v, vh, -6 mV) }
            gate h { inf = 0.5; tau = 2 ms; init = 0.3 * LINOID(v, vh, 9 mV) }
        }
        cell C { compartment s { cm = 1 uF/cm2; v_init = -40 mV; insert X } }
        network main { population p: C }
        run { duration = 1 ms; dt = 0.1 ms; record p.s.{v, X.m, X.n, X.h} }",
    ),
    (
        "initial values",
        "cell C {
            param vh = -40 mV; param v0 = -40 mV
            state v: mV = v0; state w: 1 = LINOID(v, vh, 10 mV); state u: 1 = LINOID(v0, vh, 10 mV)
            v' = 0.1 mV/ms; w' = 0 /ms; u' = 0 /ms
        }
        network main { population p: C[3]; init p.v = -40 mV + 1e-10 mV * index }
        run { duration = 1 ms; dt = 0.1 ms; record p.{v, w, u} }",
    ),
    (
        "parameters that are drawn",
        "channel X { param vh = -40 mV; param gbar = 0.3 mS/cm2; param erev = -90 mV; gate m^2 { alpha = 1 /ms * LINOID(v, vh, 9 mV); beta = 0.3 /ms * LINOID(v, vh, -9 mV) } }
        cell C { param vc = -40 mV; compartment s { cm = 1 uF/cm2; v_init = vc; insert X(vh = vc) } }
        network main { population p: C[4]; param p.vc ~ normal(-40 mV, 5 mV) }
        run { duration = 1 ms; dt = 0.1 ms; record p.s.{v, X.m} }",
    ),
    (
        "input, index and parameters of the network",
        "cell C { param a = 0; compartment s { cm = 1 uF/cm2; v_init = -40 mV }; state w: 1 = 0; w' = a * 1 /ms }
        network main {
            param x = 2 mV; param y = 2 mV; param r = LINOID(x, y, 3 mV)
            population p: C[5]; param p.a = r * LINOID(index, 3, 2)
            input q: 1 uA/cm2 * LINOID(t, 2 ms, 1 ms) -> p.s
        }
        run { duration = 5 ms; dt = 0.5 ms; record p.{s.v, w} }",
    ),
    (
        "conductances between compartments, and reversal potentials",
        "channel X { reads Ca: mM; param co = 2 mM; let e = 12.5 mV * ln(co / Ca); current i = 1 uA/cm2 * LINOID(v, e, 5 mV) }
        cell C {
            let f = LINOID(a.v, 0 mV, 5 mV)
            compartment a { cm = 1 uF/cm2; v_init = 0 mV; insert X; pool Ca: mM { init = 2 mM; Ca' = 0 mM/ms } }
            compartment b { cm = 1 uF/cm2; v_init = -50 mV }
            couple a <- b: 0.1 mS/cm2 * f; couple b <- a: 0.1 mS/cm2 * f
        }
        network main { population p: C[3]; init p.a.v = 1e-9 mV * index }
        run { duration = 1 ms; dt = 0.1 ms; record p.{a, b}.v }",
    ),
];

/// What stands for `LINOID(x, midpoint, scale)`, the first being the language's own function.
const WRITTEN: &[&str] = &[
    "exp_linear_rate(X, 1, M, K)",
    "((X - M) / K / (1 - exp(-(X - M) / K)))",
    "((X - M) / K * exp((X - M) / K) / (exp((X - M) / K) - 1))",
    "((X - M) / K / (1 - 1 / exp((X - M) / K)))",
];

/// The text with `LINOID(x, m, k)` written in another way.
fn written(text: &str, way: &str) -> String {
    let mut pieces = text.split("LINOID(");
    let mut whole = pieces.next().unwrap_or_default().to_string();
    for piece in pieces {
        let (arguments, rest) = piece.split_once(')').unwrap_or_else(|| panic!("no `)` in {piece}"));
        let arguments: Vec<&str> = arguments.split(", ").collect();
        let [x, m, k] = arguments[..] else { panic!("{arguments:?}") };
        whole += &way.replace('X', x).replace('M', m).replace('K', &format!("({k})"));
        whole += rest;
    }
    whole
}

#[test]
fn wherever_a_quotient_stands_it_is_right() {
    for &(place, text) in PLACES {
        for &(method, name) in Method::ALL.iter().filter(|m| m.0.takes_every_model()) {
            if place == "junction" && matches!(method, Method::Heun | Method::Rk4) {
                continue;
            }
            for way in [Way::Plain, Way::Optimized] {
                let values = |form: &str| {
                    let checked = driver::check_text("place.neuro", Path::new(""), written(text, form), &Sources);
                    let said = neuroc::diag::render_human(&checked.sources, &checked.diagnostics, false);
                    assert!(checked.model.is_some(), "{place}: {said}");
                    let options = CompileOptions { method: Some(method), ..CompileOptions::default() };
                    let series = run(&checked, &options, way).series;
                    let all = series.into_iter().flat_map(|s| {
                        let (rows, cells) = s.values.shape();
                        (0..rows * cells).map(move |i| s.values.get(i / cells, i % cells)).collect::<Vec<f64>>()
                    });
                    all.collect::<Vec<f64>>()
                };
                let exact = values(WRITTEN[0]);
                for form in &WRITTEN[1..] {
                    for (x, y) in exact.iter().zip(values(form)) {
                        let error = (x - y).abs() / x.abs().max(1.0);
                        assert!(error < 1e-12, "{place}, {name}, {way:?}, {form}: {y}, not {x}");
                    }
                }
            }
        }
    }
}

/// What is no removable singularity at x = 0, y = 0 (or not seen to be one), and what is said to be there.
const POLES: &[(&str, &str)] = &[
    ("1 / (exp(x) - 1)", "a division by 0"),
    ("x / (exp(x) - 1)^2", "0 / 0"),
    ("(x + 0.001) / (exp(x) - 1)", "a division by 0"),
    ("abs(x) / (exp(x) - 1)", "0 / 0"),
    ("cosh(x) / sinh(x)", "a division by 0"),
    ("1 / tanh(x)", "a division by 0"),
    ("x / x^2", "a division by 0"),
    ("(x^2 + x) / x^2", "0 / 0"),
    ("sin(x) / x^2", "0 / 0"),
    ("x / (1 - exp(-x^2))", "0 / 0"),
    ("sqrt(x) / x", "0 / 0"),
    ("floor(x) / x", "0 / 0"),
    ("(if x > 0 then x else 0) / x", "0 / 0"),
    ("max(x, 0) / x", "0 / 0"),
    ("x / abs(x)", "0 / 0"),
    ("x / (exp(y) - 1)", "0 / 0"),
    ("y / (exp(x) - 1)", "0 / 0"),
    ("(v - vh) / 10 mV / (1 - exp(-(v - v2) / k))", "0 / 0"),
    ("x^0.5 / (exp(x) - 1)", "0 / 0"),
    ("(cosh(x) - 1) / x^3", "0 / 0"),
    ("1 / (1 - exp(-x)) - 2 / x", "a division by 0"),
    ("x / (exp(x) - cosh(y))", "0 / 0"),
    ("(x - y) / (exp(x) - exp(2 * y))", "0 / 0"),
    ("x / (exp(abs(x)) - 1)", "0 / 0"),
    ("min(x, 0) / (exp(x) - 1)", "0 / 0"),
    ("x * (1 / y)", "a division by 0"),
    ("0 / x", "0 / 0"),
    ("ln(x)", "the logarithm of a number that is not positive"),
];

#[test]
fn a_pole_stays_one_and_is_named() {
    for &(expression, what) in POLES {
        let x = |text: &str| text.replace("exp", "e#p").replace("max", "ma#").replace('x', "((v - vh) / k)");
        let expression = x(expression).replace("e#p", "exp").replace("ma#", "max");
        let text = format!(
            "cell C {{
                param vh = -40 mV; param v2 = -40 mV; param k = 10 mV
                state v: mV = -40 mV; state y: 1 = 0; state s: 1 = 0.3
                v' = 0 mV/ms; y' = 0 /ms; s' = ({expression} - s) / 1 ms + 0 /ms * (v - v2) / k
            }}
            network main {{ population p: C }}
            run {{ duration = 0.2 ms; dt = 0.1 ms; record p.s }}"
        );
        let checked = driver::check_text("pole.neuro", Path::new(""), text, &Sources);
        let said = neuroc::diag::render_human(&checked.sources, &checked.diagnostics, false);
        assert!(checked.model.is_some(), "{expression}: {said}");
        for method in [Method::Euler, Method::ExpEuler, Method::Cnexp, Method::Rk4] {
            for way in [Way::Plain, Way::Optimized] {
                let options = CompileOptions { method: Some(method), ..CompileOptions::default() };
                match outcome(&checked, &options, way).1.ending {
                    Ending::NotFinite(why) => {
                        let named = why.notes.iter().any(|note| note.starts_with(&format!("{what} in `")));
                        assert!(named, "{expression}, {way:?}: {:?}", why.notes);
                    }
                    other => panic!("{expression}, {method:?}, {way:?}: {other:?}"),
                }
            }
        }
    }
}

/// A gate that reads the new voltage, and a reset: what is 0/0 in them is named, too.
#[test]
fn a_0_over_0_that_is_not_seen_is_named_wherever_it_is() {
    let quotient = "(v - v1) / 10 mV / (1 - exp(-(v - v2) / 10 mV))";
    for text in [
            format!(
                "channel X {{ param v1 = -39.5 mV; param v2 = -39.5 mV; gate m {{ inf = 0.5; tau = 1 ms * {quotient}; init = 0.1 }}; current i = 0 mS/cm2 * m * v }}
                cell C {{ compartment s {{ cm = 1 uF/cm2; v_init = -40 mV; insert X }} }}
                network main {{ population p: C; input q: 1 uA/cm2 -> p.s }}
                run {{ duration = 2 ms; dt = 0.5 ms; record p.s.X.m }}"
            ),
            format!(
                "cell C {{ param v1 = -40 mV; param v2 = -40 mV; state v: mV = -40 mV; state n: 1 = 0; v' = 0 mV/ms; n' = 0 /ms
                    spike when v >= -40 mV {{ n = {quotient}; v = -60 mV }} }}
                network main {{ population p: C }}
                run {{ duration = 2 ms; dt = 0.5 ms; record p.n }}"
            ),
    ] {
        let checked = driver::check_text("named.neuro", Path::new(""), text, &Sources);
        let said = neuroc::diag::render_human(&checked.sources, &checked.diagnostics, false);
        assert!(checked.model.is_some(), "{said}");
        let Ending::NotFinite(why) = outcome(&checked, &CompileOptions::default(), Way::Optimized).1.ending else {
            panic!("it ended well")
        };
        assert!(why.notes.iter().any(|note| note.starts_with("0 / 0 in `")), "{:?}", why.notes);
    }
}
