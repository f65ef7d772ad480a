//! Tests of: random models. Expressions full of corners, and channels whose rates are 0/0 where they begin, made by a generator.
//!
//! `NEUROC_RANDOM=100000 cargo test --release --test suite random_models:: -- --nocapture` takes so many expressions (and a hundredth
//! as many channel models) instead of the few of an ordinary run. `NEUROC_RANDOM_COMPILED=5000` compiles the first so many of them, and not
//! half of all: what rustc takes for all of them is hours. `NEUROC_RANDOM_SEED=13` begins with another seed than 1; each is for a hundred
//! expressions.

use crate::models::root;
use neuroc::codegen::plan::Precision;
use neuroc::driver::{self, CompileOptions, EngineChoice, Experiment, Passes};
use neuroc::engine::native::NativeOptions;
use neuroc::engine::rustc;
use neuroc::hir::{Method, Sources};
use neuroc::passes::OptLevel;
use neuroc::results::RunResult;
use neuroc::simulate::{RunOptions, Unwatched};
use serde_json::Value;
use std::fmt::Write as _;
use std::path::Path;

/// How many expressions an ordinary run takes.
const EXPRESSIONS: usize = 1000;
/// Expressions of one model.
const TOGETHER: usize = 100;
/// How far rewriting may move a number that no corner decides about, relative to it or to 1.
const WITHIN: f64 = 1e-6;

fn asked(variable: &str) -> Option<usize> {
    std::env::var_os(variable).and_then(|text| text.to_str().and_then(|t| t.parse().ok()))
}

fn wanted() -> usize {
    asked("NEUROC_RANDOM").unwrap_or(EXPRESSIONS)
}

/// A generator of numbers (splitmix64).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, n: usize) -> usize {
        (self.next() % n as u64) as usize
    }

    fn of<'a, T>(&mut self, list: &'a [T]) -> &'a T {
        &list[self.below(list.len())]
    }
}

// ------------------------------------------------------------------------------------------------------ expressions

/// Numbers as people write them: differences of such numbers are 0 for decimals and nearly 0 in binary.
const NUMBERS: &[&str] = &["0", "1", "2", "0.5", "0.1", "0.3", "3", "0.7", "10", "-1", "-0.2", "1.7", "-50.1", "1e-3"];

fn expression(r: &mut Random, depth: usize) -> String {
    if depth == 0 || r.below(8) == 0 {
        return match r.below(7) {
            0..=2 => format!("x{}", r.below(4)),
            3..=4 => format!("p{}", r.below(6)),
            5 => format!("c{}", r.below(2)),
            _ => format!("({})", r.of(NUMBERS)),
        };
    }
    let e = |r: &mut Random| expression(r, depth - 1);
    let (a, b) = (e(r), e(r));
    match r.below(24) {
        0..=2 => format!("({a} + {b})"),
        3..=5 => format!("({a} - {b})"),
        6..=7 => format!("({a} * {b})"),
        8..=10 => format!("({a} / {b})"),
        11 => format!("max({a}, {b})"),
        12 => format!("min({a}, {b})"),
        13 => format!("(max({a}, {b}) - {b})"),
        14 => format!("floor({a})"),
        15 => format!("ceil({a})"),
        16 => format!("sqrt({a})"),
        17 => format!("abs({a})"),
        18 => format!("({a})^{}", r.of(&["2", "3", "0.5", "1.5", "-1", "2.5", "-0.5"])),
        19 => format!("exp(-abs({a}) / 100)"),
        20 => format!("tanh({a})"),
        21 => format!("heaviside({a})"),
        22 => format!("clamp({a}, 0, {b})"),
        _ => {
            let (c, d) = (e(r), e(r));
            let comparison = r.of(&["<", "<=", ">", ">=", "==", "!="]);
            format!("(if {a} {comparison} {b} then {c} else {d})")
        }
    }
}

/// A model with many expressions, each recorded, and integrated.
fn corners(seed: u64, count: usize) -> String {
    let mut r = Random(seed);
    let mut text = String::from("cell C {\n");
    for i in 0..6 {
        let _ = writeln!(text, "    param p{i} = {}", r.of(NUMBERS));
    }
    // These differ from cell to cell.
    text += "    param c0 = 0\n    param c1 = 1\n";
    for i in 0..4 {
        let _ = writeln!(text, "    state x{i}: 1 = {}\n    x{i}' = 0 /ms", r.of(NUMBERS));
    }
    for i in 0..count {
        let _ = writeln!(text, "    let e{i} = {}", expression(&mut r, 4));
        let _ = writeln!(text, "    state s{i}: 1 = 0\n    s{i}' = (e{i} - s{i}) / 1 ms");
    }
    text += "}\nnetwork main {\n    population p: C[12]\n";
    for (name, what) in [("param p.c0", "0.1"), ("param p.c1", "0.3"), ("init p.x0", "0.1"), ("init p.x1", "-0.2")] {
        let _ = writeln!(text, "    {name} = {} + {what} * index", r.of(&["0", "-0.3", "1", "-50.1", "0.7"]));
    }
    let names = |letter: &str| (0..count).map(|i| format!("{letter}{i}")).collect::<Vec<_>>().join(", ");
    let _ = writeln!(text, "}}\nrun {{\n    duration = 0.3 ms\n    dt = 0.1 ms\n    method = euler");
    let _ = writeln!(text, "    record p.{{{}}}\n    record p.{{{}}}\n}}", names("e"), names("s"));
    text
}

/// Runs a model to its end, whatever becomes NaN.
fn run(checked: &driver::Checked, level: OptLevel, kernels: Option<&Path>) -> RunResult {
    let options = CompileOptions { passes: Passes::Level(level), ..CompileOptions::default() };
    let compiled = driver::compile(checked, &options, &mut |_, _, _| {});
    let compiled = compiled.unwrap_or_else(|d| panic!("{}", neuroc::diag::render_human(&checked.sources, &d, false)));
    let choice = match kernels {
        Some(kernels) => {
            let compile = rustc::CompileOptions { cache: Some(kernels.to_path_buf()), ..Default::default() };
            EngineChoice::Native(NativeOptions { threads: 1, arrangement: Default::default(), compile })
        }
        None => EngineChoice::Interp,
    };
    let experiment = Experiment::new(compiled).unwrap_or_else(|d| panic!("{d:?}"));
    let plan = experiment.plan(Precision::F64).unwrap_or_else(|d| panic!("{d:?}"));
    let mut engine = experiment.engine(&plan, choice).unwrap_or_else(|e| panic!("{e}")).engine;
    let options = RunOptions { trap: false, ..RunOptions::default() };
    let outcome = experiment.run(engine.as_mut(), &options, &mut Unwatched);
    outcome.unwrap_or_else(|e| panic!("{e:?}")).0
}

/// Where the second result differs from the first, and the first is finite.
fn differences(plain: &RunResult, other: &RunResult) -> Vec<String> {
    let mut found = Vec::new();
    for (a, b) in plain.series.iter().zip(&other.series) {
        let (rows, columns) = a.values.shape();
        for (row, cell) in (0..rows).flat_map(|row| (0..columns).map(move |cell| (row, cell))) {
            let (x, y) = (a.values.get(row, cell), b.values.get(row, cell));
            if x.is_finite() && ((x - y).abs() > WITHIN * x.abs().max(1.0) || y.is_nan()) {
                found.push(format!("{} of cell {cell} at step {row}: {x:e}, then {y:e}", a.name));
                break;
            }
        }
    }
    found
}

#[test]
fn expressions_with_corners_mean_the_same_at_every_level() {
    let (wanted, mut done, mut compiled, mut finite, mut failures) = (wanted(), 0, 0, 0, Vec::new());
    let to_compile = asked("NEUROC_RANDOM_COMPILED").unwrap_or(wanted / 2);
    let mut seed = asked("NEUROC_RANDOM_SEED").map_or(0, |seed| seed as u64 - 1);
    while done < wanted {
        seed += 1;
        let count = TOGETHER.min(wanted - done);
        let text = corners(seed, count);
        let checked = driver::check_text("corners.neuro", Path::new(""), text, &Sources);
        let errors: Vec<_> = checked.diagnostics.iter().filter(|d| d.is_error()).cloned().collect();
        assert!(errors.is_empty(), "seed {seed}: {}", neuroc::diag::render_human(&checked.sources, &errors, false));
        let plain = run(&checked, OptLevel::O0, None);
        // Nobody wants these kernels again.
        let kernels = tempfile::tempdir().unwrap_or_else(|e| panic!("{e}"));
        finite += plain.series.iter().filter(|s| s.name.starts_with("p.e") && s.values.get(0, 0).is_finite()).count();
        let mut others = vec![("interpreted, -O2", run(&checked, OptLevel::O2, None))];
        if compiled < to_compile {
            others.push(("native, -O2", run(&checked, OptLevel::O2, Some(kernels.path()))));
            compiled += count;
        }
        for (name, other) in others {
            failures.extend(differences(&plain, &other).into_iter().map(|d| format!("seed {seed}, {name}: {d}")));
        }
        done += count;
    }
    let differences = failures.len();
    println!("{done} expressions, {compiled} compiled, {finite} finite in cell 0, {differences} differences");
    assert!(failures.is_empty(), "{} differences:\n{}", failures.len(), failures[..failures.len().min(30)].join("\n"));
}

// --------------------------------------------------------------------------------------------------------- channels

/// Spellings that are positive everywhere, so that they can be rates.
const RATES: &[&str] = &[
    "expm1",
    "expm1_turned",
    "hodgkin_huxley",
    "hodgkin_huxley_turned",
    "decimal_offset",
    "over_reciprocal",
    "reciprocal_of_reciprocal",
    "times_reciprocal",
    "product_of_exponentials",
    "quotient_of_exponentials",
    "halved",
    "scaled_difference",
    "squared",
    "x_over_tanh",
    "tanh_over_x",
    "x_over_sinh",
    "coth",
    "guarded",
];

/// A compartment whose rates are 0/0 at the voltage where it begins, or beside it.
fn singular(seed: u64, spellings: &Value) -> String {
    let mut r = Random(seed ^ 0x5151);
    let mid = *r.of(&["-40", "-53.7", "0", "-61.25", "-0.1"]);
    let offset = *r.of(&["0", "0", "0", "1e-14", "-1e-13", "1e-9", "-1e-6", "0.001", "-0.3"]);
    let start = mid.parse::<f64>().unwrap_or(f64::NAN) + offset.parse::<f64>().unwrap_or(f64::NAN);
    let rate = |r: &mut Random, names: &[&str]| {
        let name = r.of(names);
        let expression = spellings[*name]["expression"].as_str().unwrap_or_else(|| panic!("no spelling {name}"));
        expression.replace("mV", "unit").replace('V', "v").replace('M', &format!("({mid} mV)")).replace("unit", "mV")
    };
    let all = spellings.as_object().unwrap_or_else(|| panic!("no spellings"));
    let currents: Vec<&str> = all.keys().map(String::as_str).filter(|n| n.starts_with("ghk")).collect();
    let (alpha, beta, inf, direct) =
        (rate(&mut r, RATES), rate(&mut r, RATES), rate(&mut r, RATES), rate(&mut r, &currents));
    let numbers: Vec<f64> = (0..5).map(|_| 0.2 + r.below(100) as f64 / 100.0).collect();
    format!(
        "channel X {{
    param gbar = {:?} mS/cm2; param erev = {} mV; param vh = {mid} mV; param k = 10 mV; param a = 0.1 /mV
    param c = 2; param s = 0 mV; param cin = 0.05; param cout = 2; param perm = {:?} uA/cm2
    gate m {{ alpha = {:?} /ms * ({alpha}); beta = {:?} /ms * ({beta}); init = 0.4 }}
    let f = {inf}
    gate q instantaneous {{ inf = f / (1 + f) }}
    let direct = {direct}
    current i = gbar * m^2 * q * (v - erev) + perm * direct * (1 + vh / vh * 0 + a * k * 0 + c * 0 + s / k + cin * 0 + cout * 0)
}}
cell C {{ compartment s {{ cm = 1 uF/cm2; v_init = {start:?} mV; insert X }} }}
network main {{ population p: C; input i: {:?} uA/cm2 -> p.s }}
run {{ duration = 1.6 ms; dt = 0.1 ms; record p.s.{{v, X.m}} every 1.6 ms }}
",
        numbers[0],
        if r.below(2) == 0 { 50 } else { -80 },
        numbers[1],
        numbers[2],
        numbers[3],
        4.0 * (numbers[4] - 0.7),
    )
    .replace("vh / vh * 0 + ", if mid == "0" { "" } else { "vh / vh * 0 + " })
}

/// Voltage and gate at the end.
fn end(checked: &driver::Checked, method: Method, dt: f64, level: OptLevel) -> Vec<f64> {
    let options = CompileOptions {
        dt: Some(dt),
        method: Some(method),
        passes: Passes::Level(level),
        ..CompileOptions::default()
    };
    let way = if level == OptLevel::O0 { crate::models::Way::Plain } else { crate::models::Way::Optimized };
    let result = crate::models::run(checked, &options, way);
    result.series.iter().map(|s| s.values.get(1, 0)).collect()
}

fn apart(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| (a - b).abs() / b.abs().max(1.0)).fold(0.0, f64::max)
}

#[test]
fn methods_converge_where_rates_are_0_over_0() {
    let path = root().join("tests/reference/singularities.json");
    let text = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let table: Value = serde_json::from_str(&text).unwrap_or_else(|e| panic!("{e}"));
    let (models, mut failures) = ((wanted() / 100).max(20), Vec::new());
    for seed in 0..models as u64 {
        let text = singular(seed, &table["spellings"]);
        let checked = driver::check_text("singular.neuro", Path::new(""), text.clone(), &Sources);
        let said = neuroc::diag::render_human(&checked.sources, &checked.diagnostics, false);
        assert!(checked.model.is_some(), "seed {seed}: {said}");
        let exact = end(&checked, Method::Rk4, 0.0125, OptLevel::O2);
        for (method, order) in [
            (Method::Euler, 1.0),
            (Method::ExpEuler, 1.0),
            (Method::Cnexp, 1.0),
            (Method::Heun, 2.0),
            (Method::Rk4, 4.0),
        ] {
            let [coarse, fine] = [0.1, 0.05].map(|dt| end(&checked, method, dt, OptLevel::O2));
            let (before, after) = (apart(&coarse, &exact), apart(&fine, &exact));
            // Small errors have several causes, which may cancel at one of the steps.
            if after > 1e-6 && (before / after).log2() < order - 0.5 {
                failures.push(format!("seed {seed}: {} is off by {before:e}, then {after:e}\n{text}", method.name()));
            }
            let plain = end(&checked, method, 0.1, OptLevel::O0);
            if apart(&plain, &coarse) > 1e-10 {
                failures
                    .push(format!("seed {seed}: {} without passes {plain:?}, with {coarse:?}\n{text}", method.name()));
            }
        }
    }
    println!("{models} models, {} failures", failures.len());
    assert!(failures.is_empty(), "{} failures:\n{}", failures.len(), failures[..failures.len().min(5)].join("\n"));
}
