//! Tests of: models. Models with known answers, on every engine; `tests/README.md` describes the files.

use neuroc::codegen::plan::Precision;
use neuroc::driver::{self, CompileOptions, Compiled, EngineChoice, Experiment, Passes};
use neuroc::engine::native::NativeOptions;
use neuroc::engine::rustc;
use neuroc::hir::{Method, Sources};
use neuroc::passes::{Backend, OptLevel};
use neuroc::results::{RunResult, Series};
use neuroc::simulate::{Ending, Outcome, RunOptions, Unwatched};
use neuroc::step::{self, Verified};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

pub fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// How a case is run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// The interpreter, without passes.
    Plain,
    /// The interpreter, with all passes.
    Optimized,
    /// As before, with the program printed and read back.
    Reread,
    /// Compiled to machine code, double precision.
    Native,
    /// Compiled to machine code, single precision.
    Single,
    /// Compiled by XLA for the processor, double precision.
    #[cfg(feature = "xla")]
    Xla,
    /// Compiled by XLA for the processor, single precision.
    #[cfg(feature = "xla")]
    XlaSingle,
}

/// Runs a checked model.
pub fn run(checked: &driver::Checked, options: &CompileOptions, way: Way) -> RunResult {
    let (result, outcome) = outcome(checked, options, way);
    assert_eq!(outcome.ending, Ending::Done);
    result
}

/// Runs a model in one way, however it ends.
pub fn outcome(checked: &driver::Checked, options: &CompileOptions, way: Way) -> (RunResult, Outcome) {
    let level = if way == Way::Plain { OptLevel::O0 } else { OptLevel::O2 };
    let backend = match way {
        Way::Plain | Way::Optimized | Way::Reread | Way::Native | Way::Single => Backend::Native,
        #[cfg(feature = "xla")]
        Way::Xla | Way::XlaSingle => Backend::Xla,
    };
    let options = CompileOptions { passes: Passes::Level(level), backend, ..options.clone() };
    let compiled = match driver::compile(checked, &options, &mut |_, _, _| {}) {
        Ok(compiled) => compiled,
        Err(d) => panic!("{}", neuroc::diag::render_human(&checked.sources, &d, false)),
    };
    let program = match way {
        Way::Reread => reread(&compiled.program),
        Way::Plain | Way::Optimized | Way::Native | Way::Single => compiled.program,
        #[cfg(feature = "xla")]
        Way::Xla | Way::XlaSingle => compiled.program,
    };
    let experiment = Experiment::new(Compiled { program, ..compiled }).unwrap_or_else(|d| panic!("{d:?}"));
    let (choice, precision) = match way {
        Way::Plain | Way::Optimized | Way::Reread => (EngineChoice::Interp, Precision::F64),
        Way::Native => (native(), Precision::F64),
        Way::Single => (native(), Precision::F32),
        #[cfg(feature = "xla")]
        Way::Xla => (xla(), Precision::F64),
        #[cfg(feature = "xla")]
        Way::XlaSingle => (xla(), Precision::F32),
    };
    // As crates and devices have it, whatever the size.
    let ready = match experiment.plan(precision) {
        Ok(plan) => experiment.engine(&plan, choice),
        Err(_) if choice.is_interpreter() => experiment.interpreter(),
        Err(d) => panic!("{d:?}"),
    };
    let mut engine = ready.unwrap_or_else(|e| panic!("{e}")).engine;
    let outcome = experiment.run(engine.as_mut(), &RunOptions::default(), &mut Unwatched);
    outcome.unwrap_or_else(|e| panic!("{e:?}"))
}

fn native() -> EngineChoice {
    let cache = Some(Path::new(env!("CARGO_TARGET_TMPDIR")).join("kernels"));
    let compile = rustc::CompileOptions { cache, ..Default::default() };
    EngineChoice::Native(NativeOptions { threads: 1, arrangement: Default::default(), compile })
}

#[cfg(feature = "xla")]
fn xla() -> EngineChoice {
    let client = crate::pjrt::cpu().unwrap_or_else(|| panic!("it was there a moment ago"));
    EngineChoice::Xla(client.into(), Default::default())
}

fn reread(program: &Verified) -> Verified {
    let text = step::print(program.program());
    let parsed = step::parse(&text).unwrap_or_else(|e| panic!("{e}\n{text}"));
    assert_eq!(&parsed, program.program());
    step::verify(parsed).unwrap_or_else(|e| panic!("{e}"))
}

// ---------------------------------------------------------------------------------------------- expectations

/// Numbers as written, or taken from tests/reference: `{"file": "x.json", "at": "/a/b"}`.
fn resolve(value: &Value) -> Value {
    match value {
        Value::Object(o) if o.contains_key("file") => {
            let (Some(file), Some(at)) = (o["file"].as_str(), o["at"].as_str()) else { panic!("{value}") };
            let path = root().join("tests/reference").join(file);
            let text = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
            let all: Value = serde_json::from_str(&text).unwrap_or_else(|e| panic!("{file}: {e}"));
            all.pointer(at).unwrap_or_else(|| panic!("{file} has nothing at {at}")).clone()
        }
        Value::Object(o) if o.contains_key("difference") => {
            let [a, b] = numbers(&o["difference"])[..] else { panic!("{value}") };
            Value::from(a - b)
        }
        Value::Array(list) => list.iter().map(resolve).collect(),
        other => other.clone(),
    }
}

fn number(value: &Value) -> f64 {
    resolve(value).as_f64().unwrap_or_else(|| panic!("{value} is not a number"))
}

fn numbers(value: &Value) -> Vec<f64> {
    let resolved = resolve(value);
    let Some(list) = resolved.as_array() else { panic!("{value} is not a list") };
    list.iter().map(number).collect()
}

/// How far a number may be from what is expected.
#[derive(Debug, Clone, Copy, Default)]
struct Tolerance {
    abs: f64,
    rel: f64,
}

impl Tolerance {
    fn of(value: &Value) -> Tolerance {
        let read = |key: &str| value.get(key).map_or(0.0, number);
        Tolerance { abs: read("abs"), rel: read("rel") }
    }
}

/// The largest error of a check, as part of what is tolerated.
struct Worst {
    part: f64,
    error: f64,
    text: String,
}

impl Worst {
    fn see(&mut self, got: f64, expected: f64, tolerance: Tolerance, place: impl FnOnce() -> String) {
        let error = (got - expected).abs();
        let allowed = tolerance.abs + tolerance.rel * expected.abs();
        let part = if error == 0.0 { 0.0 } else { error / allowed };
        if part > self.part || part.is_nan() {
            let relative = error / expected.abs();
            let place = place();
            let text = format!("{place}: {got}, expected {expected} (off by {error:.3e}, relative {relative:.1e})");
            *self = Worst { part, error, text };
        }
    }
}

fn series<'r>(result: &'r RunResult, name: &str) -> &'r Series {
    let known: Vec<&str> = result.series.iter().map(|s| s.name.as_str()).collect();
    result.series_named(name).unwrap_or_else(|| panic!("`{name}` is not recorded; there are {known:?}"))
}

fn row(s: &Series, t: f64) -> usize {
    let found = s.t.iter().position(|x| (x - t).abs() <= 1e-6);
    found.unwrap_or_else(|| panic!("`{}` has no sample at {t} ms", s.name))
}

fn check(c: &Value, result: &RunResult, tolerance: Tolerance) -> Worst {
    let mut worst = Worst { part: 0.0, error: 0.0, text: String::new() };
    let cell = c.get("cell").map_or(0, |x| number(x) as usize);
    let after = c.get("after").map_or(f64::NEG_INFINITY, number);
    if let Some(name) = c.get("value").and_then(Value::as_str) {
        let s = series(result, name);
        if let Some(extreme) = ["min", "max"].iter().find(|k| c.get(**k).is_some()) {
            let values = s.t.iter().enumerate().filter(|x| *x.1 >= after).map(|(i, _)| s.values.get(i, cell));
            let best =
                if *extreme == "min" { values.fold(f64::MAX, f64::min) } else { values.fold(f64::MIN, f64::max) };
            worst.see(best, number(&c[*extreme]), tolerance, || format!("{extreme} of {name}"));
            return worst;
        }
        let times = numbers(&c["t"]);
        let expected = resolve(&c["expected"]);
        let all = c.get("cells").is_some();
        let Some(rows) = expected.as_array() else { panic!("{c}") };
        assert_eq!(times.len(), rows.len(), "{c}");
        for (&t, expected) in times.iter().zip(rows) {
            let i = row(s, t);
            let expected = if all { numbers(expected) } else { vec![number(expected)] };
            assert!(!all || expected.len() == s.values.shape().1, "{name}: {} cells", s.values.shape().1);
            for (k, &x) in expected.iter().enumerate() {
                let at = if all { k } else { cell };
                worst.see(s.values.get(i, at), x, tolerance, || format!("{name}[{at}] at {t} ms"));
            }
        }
        return worst;
    }
    let Some(population) = c.get("spikes").and_then(Value::as_str) else { panic!("not a check: {c}") };
    let Some(train) = result.spikes.iter().find(|s| s.population == population) else {
        panic!("spikes of `{population}` are not recorded")
    };
    let mut got: Vec<f64> =
        train.t.iter().zip(&train.i).filter(|x| *x.1 == cell as u64 && *x.0 > after).map(|x| *x.0).collect();
    if let Some(period) = c.get("period") {
        let mean = (got[got.len() - 1] - got[0]) / (got.len() - 1) as f64;
        worst.see(mean, number(period), tolerance, || format!("period of {population} over {} spikes", got.len()));
    } else if let Some(intervals) = c.get("intervals") {
        let intervals = numbers(intervals);
        assert!(got.len() > 2 * intervals.len(), "{population}: {} spikes", got.len());
        for (k, pair) in got.windows(2).enumerate() {
            let expected = intervals[k % intervals.len()];
            worst.see(pair[1] - pair[0], expected, tolerance, || format!("interval {k} of {population}"));
        }
    } else {
        let mut expected = match (c.get("expected"), c.get("steps")) {
            (Some(times), None) => numbers(times),
            (None, Some(steps)) => numbers(steps).iter().map(|s| s * number(&c["dt"])).collect(),
            _ => panic!("not a check: {c}"),
        };
        match c.get("first").map(|x| number(x) as usize) {
            Some(n) if n <= expected.len() => {
                expected.truncate(n);
                got.truncate(n);
            }
            _ => {}
        }
        assert_eq!(got.len(), expected.len(), "{population}[{cell}]: spikes at {got:?}, expected at {expected:?}");
        for (k, (&a, &b)) in got.iter().zip(&expected).enumerate() {
            worst.see(a, b, tolerance, || format!("spike {k} of {population}[{cell}]"));
        }
    }
    worst
}

/// Runs a case in every way, prints the largest error of each, and fails with all that is wrong.
fn case(name: &str) {
    let file = root().join(format!("tests/models/{name}.json"));
    let text = std::fs::read_to_string(&file).unwrap_or_else(|e| panic!("{}: {e}", file.display()));
    let wanted: Value = serde_json::from_str(&text).unwrap_or_else(|e| panic!("{}: {e}", file.display()));
    let own = format!("{name}.neuro");
    let model = root().join("tests/models").join(wanted.get("model").and_then(Value::as_str).unwrap_or(&own));
    let checked = driver::check_file(&model);
    let said = neuroc::diag::render_human(&checked.sources, &checked.diagnostics, false);
    assert!(checked.diagnostics.is_empty(), "{said}");
    let Some(checks) = wanted["checks"].as_array() else { panic!("{name}: no checks") };
    let mut failures = String::new();
    let ways = [Way::Plain, Way::Optimized, Way::Reread, Way::Native, Way::Single];
    #[cfg(feature = "xla")]
    let ways: Vec<Way> = ways.into_iter().chain(crate::pjrt::cpu().map(|_| Way::Xla)).collect();
    for way in ways {
        let due = |c: &&Value| way != Way::Single || c.get("f32").is_some();
        if !checks.iter().any(|c| due(&c)) {
            continue;
        }
        let result = run(&checked, &CompileOptions::default(), way);
        let mut closest = Worst { part: -1.0, error: 0.0, text: String::new() };
        for c in checks.iter().filter(due) {
            let worst = check(c, &result, Tolerance::of(if way == Way::Single { &c["f32"] } else { c }));
            if worst.part > 1.0 || worst.part.is_nan() {
                writeln!(failures, "{way:?}: {}", worst.text).ok();
            }
            if worst.part > closest.part {
                closest = worst;
            }
        }
        println!(
            "{name} {way:?}: {} checks, tightest {:.2e} of {:.3}: {}",
            checks.iter().filter(due).count(),
            closest.error,
            closest.part,
            closest.text
        );
    }
    assert!(failures.is_empty(), "{name}:\n{failures}");
}

macro_rules! cases {
    ($($name:ident)*) => {
        $(#[test] fn $name() { case(stringify!($name)); })*
        const CASES: &[&str] = &[$(stringify!($name)),*];
    };
}

cases! {
    adex bursting_cells butera_channels ca1_channels ca3_channels clamped_gates column_channels connor_stevens_channels
    cortical_rs cortical_tables encoders fitzhugh_nagumo fractions_and_pools generators granule_channels hh_facts hindmarsh_rose inputs
    integrate_and_fire izhikevich_2003 izhikevich_2007 library_cells library_synapses lif_fi morris_lecar_channels moving_thresholds nmda_channels olive_cell
    passive pinsky_rinzel_channels plant_channels purkinje_channels pyramidal_channels refractory squid_cnexp
    squid_exp_euler squid_neuron squid_scipy stomatogastric_channels surrogates thalamus_channels wang_buzsaki_channels
}

fn files(folder: &str, ending: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut todo = vec![root().join(folder)];
    while let Some(folder) = todo.pop() {
        for entry in std::fs::read_dir(&folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display())) {
            let path = entry.unwrap_or_else(|e| panic!("{e}")).path();
            if path.is_dir() {
                todo.push(path);
            } else if path.extension().is_some_and(|e| e == ending) {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

#[test]
fn every_case_is_run() {
    let there: BTreeSet<String> = files("tests/models", "json")
        .iter()
        .chain(&files("tests/models", "neuro"))
        .map(|p| p.file_stem().unwrap_or_default().to_string_lossy().into_owned())
        .collect();
    let run: BTreeSet<String> = CASES.iter().map(|c| c.to_string()).collect();
    assert_eq!(there, run);
}

// ---------------------------------------------------------------------------------------------- library and examples

#[test]
fn library_and_examples_check_without_a_word() {
    let mut said = String::new();
    for path in files("stdlib", "neuro").iter().chain(&files("examples", "neuro")) {
        let checked = driver::check_file(path);
        said += &neuroc::diag::render_human(&checked.sources, &checked.diagnostics, false);
        if checked.model.is_none() && checked.diagnostics.is_empty() {
            writeln!(said, "{}: no model", path.display()).ok();
        }
    }
    assert!(said.is_empty(), "{said}");
}

#[test]
fn examples_are_short_and_say_what_they_show() {
    for path in files("examples", "neuro") {
        let text = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{e}"));
        // One has a published table of 55 connections, and what others use of data/ is written by programs.
        let most = match path.parent().is_some_and(|folder| folder.ends_with("data")) {
            true => usize::MAX,
            false if path.ends_with("microcircuit.neuro") => 150,
            false => 80,
        };
        assert!(text.lines().count() <= most, "{}: {} lines", path.display(), text.lines().count());
        assert!(text.lines().all(|l| l.chars().count() <= 120), "{}: a line is too long", path.display());
        assert!(text.starts_with("//! "), "{}: does not say what it shows", path.display());
    }
    for path in files("stdlib", "neuro") {
        let text = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{e}"));
        assert!(text.starts_with("//! "), "{}: has no description", path.display());
        let lines: Vec<&str> = text.lines().collect();
        for pair in lines.windows(2) {
            let item = ["channel ", "cell ", "function ", "const ", "junction ", "    param "];
            if item.iter().any(|i| pair[1].starts_with(i)) {
                assert!(pair[0].trim_start().starts_with("///"), "{}: `{}` is not described", path.display(), pair[1]);
            }
        }
    }
}

#[test]
fn everything_in_the_library_is_used() {
    let users: Vec<String> = files("examples", "neuro")
        .iter()
        .chain(&files("tests/models", "neuro"))
        .map(|p| std::fs::read_to_string(p).unwrap_or_else(|e| panic!("{e}")))
        .collect();
    for path in files("stdlib", "neuro") {
        let module = path.strip_prefix(root().join("stdlib")).unwrap_or(&path).with_extension("");
        let module = format!("use std.{}.{{", module.to_string_lossy().replace(['/', '\\'], "."));
        let used: BTreeSet<&str> = users
            .iter()
            .flat_map(|text| text.lines())
            .filter_map(|l| l.strip_prefix(module.as_str())?.strip_suffix('}'))
            .flat_map(|names| names.split(", "))
            .collect();
        let text = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{e}"));
        for line in text.lines() {
            let mut words = line.split([' ', '(']);
            let kind = words.next().unwrap_or("");
            if ["channel", "cell", "junction", "synapse", "const", "function"].contains(&kind) {
                let name = words.next().unwrap_or("");
                assert!(used.contains(name), "{}: nothing uses `{name}`", path.display());
            }
        }
    }
}

#[test]
fn every_example_runs() {
    for path in files("examples", "neuro") {
        let checked = driver::check_file(&path);
        // What others use of data/ runs nothing by itself.
        let runs = checked.model.as_ref().is_none_or(|m| m.run.is_some());
        if !runs && path.parent().is_some_and(|folder| folder.ends_with("data")) {
            continue;
        }
        let begin = std::time::Instant::now();
        let result = run(&checked, &CompileOptions::default(), Way::Native);
        result.check().unwrap_or_else(|e| panic!("{e}"));
        let spikes: Vec<usize> = result.spikes.iter().map(|s| s.t.len()).collect();
        println!("{}: {:.2} s with compiling, spikes {spikes:?}", path.display(), begin.elapsed().as_secs_f64());
    }
}

// ---------------------------------------------------------------------------------------------- order of convergence

/// A patch of squid axon on its way through a spike: nothing in it is discontinuous.
const SMOOTH: &str = "
    use std.channels.hh.{Na, K, Leak}
    cell Squid { compartment soma { cm = 1 uF/cm2; v_init = -50 mV; insert Na, K, Leak } }
    network main { population squid: Squid }
    run { duration = 2 ms; dt = 0.01 ms; celsius = 6.3 degC; record squid.soma.{v, Na.m, Na.h, K.n} every 2 ms }
";

/// The state after 2 ms.
fn end(method: Method, dt: f64) -> Vec<f64> {
    let checked = driver::check_text("smooth.neuro", Path::new(""), SMOOTH, &Sources);
    let options = CompileOptions { dt: Some(dt), method: Some(method), ..CompileOptions::default() };
    let result = run(&checked, &options, Way::Optimized);
    result.series.iter().map(|s| s.values.get(1, 0)).collect()
}

#[test]
fn methods_have_their_order() {
    let exact = end(Method::Rk4, 0.0005);
    // Of those that take every model; Crank and Nicolson's has its order where gates begin at rest, which is another test.
    let methods = Method::ALL.iter().filter(|m| m.0.takes_every_model() && m.0 != Method::CrankNicolson);
    for &(method, _) in methods {
        let order = f64::from(method.order());
        let dt = match method {
            Method::Euler | Method::ExpEuler | Method::Cnexp | Method::Exact => 0.002,
            Method::CrankNicolson | Method::Heun => 0.004,
            Method::Rk4 => 0.02,
            // It does not take every model.
            Method::Adaptive => continue,
        };
        let error = |dt: f64| end(method, dt).iter().zip(&exact).map(|(a, b)| ((a - b) / b).abs()).fold(0.0, f64::max);
        let (coarse, fine) = (error(dt), error(dt / 2.0));
        let measured = (coarse / fine).log2();
        println!("{method:?}: order {measured:.3} (relative error {fine:.1e} at dt {} ms)", dt / 2.0);
        assert!((measured - order).abs() < 0.1, "{method:?} has order {measured}, not {order}");
    }
}
