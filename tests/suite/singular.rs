//! Tests of: singular. Quotients that are 0/0 at one voltage, in every spelling of `tests/reference/singularities.json`: values and
//! one step of every method around that voltage, on every engine.

use crate::models::{Way, root, run};
use neuroc::driver::{self, CompileOptions};
use neuroc::hir::{Method, Sources};
use serde_json::Value;
use std::fmt::Write as _;

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
        for &(method, name) in Method::ALL {
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

#[test]
fn native_f64() {
    holds(Way::Native);
}

#[test]
fn native_f32() {
    holds(Way::Single);
}

#[cfg(feature = "xla")]
#[test]
fn xla_f64() {
    if crate::pjrt::cpu().is_some() {
        holds(Way::Xla);
    }
}

#[cfg(feature = "xla")]
#[test]
fn xla_f32() {
    if crate::pjrt::cpu().is_some() {
        holds(Way::XlaSingle);
    }
}
