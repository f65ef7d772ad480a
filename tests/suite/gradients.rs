//! Tests of: gradients. Reverse mode against central differences in double precision, closed forms, and itself with less memory.

use crate::models::root;
use neuroc::diag::{Code, Diagnostic};
use neuroc::driver::{self, Checked, CompileOptions, Differentiable, EngineChoice, Fitted, check_text};
use neuroc::engine::native::NativeOptions;
use neuroc::engine::{EngineError, rustc};
use neuroc::hir::Sources;
use neuroc::ode;
use neuroc::simulate::Loss;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

const ALL: u64 = u64::MAX;

fn interp() -> Result<EngineChoice, EngineError> {
    Ok(EngineChoice::Interp)
}

fn native() -> Result<EngineChoice, EngineError> {
    let cache = Some(Path::new(env!("CARGO_TARGET_TMPDIR")).join("kernels"));
    let compile = rustc::CompileOptions { cache, ..Default::default() };
    Ok(EngineChoice::Native(NativeOptions { threads: 1, arrangement: Default::default(), compile }))
}

/// A loss that weighs every sample with a number of its own, and its square.
fn loss(samples: &[Vec<f64>]) -> Loss {
    let weight = |i: usize, at: usize| (1.0 + i as f64 + 0.37 * at as f64).sin();
    let all = || samples.iter().enumerate().flat_map(|(i, of)| of.iter().enumerate().map(move |(at, x)| (i, at, *x)));
    let value = all().map(|(i, at, x)| weight(i, at) * x + 0.01 * x * x).sum();
    let slopes = samples.iter().enumerate();
    let slopes = slopes.map(|(i, of)| of.iter().enumerate().map(|(at, x)| weight(i, at) + 0.02 * x).collect());
    Loss { value, slopes: slopes.collect() }
}

/// A few steps, all of which are sampled.
fn few_steps(checked: &Checked, steps: f64) -> Result<CompileOptions, Vec<Diagnostic>> {
    let model = checked.model.as_ref().ok_or_else(|| checked.diagnostics.clone())?;
    let (flat, _) = driver::flatten(model, &CompileOptions::default())?;
    Ok(CompileOptions { duration: Some(steps * flat.dt), every: Some(flat.dt), ..CompileOptions::default() })
}

/// Parameters that are one number and not 0: at most so many, from the whole list.
fn some_parameters(checked: &Checked, options: &CompileOptions, most: usize) -> Vec<String> {
    let Some(model) = &checked.model else { return Vec::new() };
    let Ok((flat, _)) = driver::flatten(model, options) else { return Vec::new() };
    let is_number = |p: &&ode::Param| {
        let value = ode::evaluate(&flat, p.value).ok().and_then(|x| x.real());
        p.settable && p.population.is_none() && value.is_some_and(|x| x != 0.0)
    };
    let names: Vec<String> = flat.params.iter().filter(is_number).map(|p| p.name.clone()).collect();
    let stride = names.len().div_ceil(most).max(1);
    names.into_iter().step_by(stride).collect()
}

type Run = (Differentiable, Vec<Fitted>, Vec<f64>);

/// Compiles a model with some of its parameters free, but for those that it says cannot be.
fn differentiable(
    checked: &Checked,
    options: &CompileOptions,
    mut names: Vec<String>,
    choice: &dyn Fn() -> Result<EngineChoice, EngineError>,
) -> Result<Run, Vec<Diagnostic>> {
    loop {
        let fitted = Differentiable::parameters(checked, options, &names)?;
        let values: Vec<f64> = fitted.iter().map(|one| one.value.expect("a number")).collect();
        match Differentiable::new(checked, options, &fitted, &values, choice, ALL) {
            Ok(run) => return Ok((run, fitted, values)),
            Err(errors) => {
                let sizes = |name: &String| {
                    errors.iter().any(|e| e.message.starts_with(&format!("`{name}` says how many cells")))
                };
                let before = names.len();
                names.retain(|name| !sizes(name));
                if names.len() == before {
                    return Err(errors);
                }
            }
        }
    }
}

/// The derivative in a parameter by central differences and Richardson's extrapolation.
fn difference(run: &mut Differentiable, values: &[f64], at: usize) -> f64 {
    let mut value = |by: f64| {
        let mut values = values.to_vec();
        values[at] *= 1.0 + by;
        loss(&run.samples(&values).unwrap_or_else(|e| panic!("{e}"))).value
    };
    let mut central = |h: f64| (value(h) - value(-h)) / (2.0 * h * values[at]);
    (4.0 * central(2e-4) - central(4e-4)) / 3.0
}

/// Compares all gradients of a run with differences.
fn check(name: &str, (mut run, fitted, values): Run) {
    let (found, gradient) = run.gradient(&values, &mut loss).unwrap_or_else(|e| panic!("{name}: {e}"));
    assert!(found.loss.is_finite(), "{name}");
    for (at, one) in fitted.iter().enumerate() {
        let expected = difference(&mut run, &values, at);
        // What rounding of the loss makes of differences.
        let noise = 1e-10 * (1.0 + found.loss.abs()) / values[at].abs();
        let within = 1e-6 * expected.abs() + noise;
        let error = (gradient[at] - expected).abs();
        assert!(error <= within, "{name}: `{}`: {}, not {expected}", one.name, gradient[at]);
    }
}

fn models() -> Vec<PathBuf> {
    let of = |folder: &str| {
        let files = std::fs::read_dir(root().join(folder)).expect("it is there");
        files.map(|f| f.expect("it can be read").path()).filter(|p| p.extension().is_some_and(|e| e == "neuro"))
    };
    let mut files: Vec<PathBuf> = of("tests/models").chain(of("examples")).collect();
    files.sort();
    files
}

#[test]
fn every_smooth_model_has_the_gradients_of_central_differences() {
    let mut told = String::new();
    for file in models() {
        let name = file.strip_prefix(root()).expect("it is below").display().to_string();
        let checked = driver::check_file(&file);
        if !checked.model.as_ref().is_some_and(|m| m.network.is_some() && m.run.is_some()) {
            continue;
        }
        let made = few_steps(&checked, 40.0).and_then(|options| {
            // Large nets have been told small ones.
            let small = ["n=3", "side=3"].map(String::from).into_iter();
            let model = checked.model.as_ref().ok_or_else(Vec::new)?;
            let takes = |set: &String| {
                driver::flatten(model, &CompileOptions { set: vec![set.clone()], ..options.clone() }).is_ok()
            };
            let options = CompileOptions { set: small.filter(takes).collect(), ..options.clone() };
            let names = some_parameters(&checked, &options, 5);
            differentiable(&checked, &options, names, &interp)
        });
        match made {
            Ok(run) => {
                let _ = writeln!(told, "{name}: {} parameters", run.1.len());
                check(&name, run);
            }
            Err(errors) => {
                assert!(errors.iter().all(|e| e.code != Code::Internal), "{name}: {errors:?}");
                let _ = writeln!(
                    told,
                    "{name}: {}",
                    errors.iter().map(|e| e.message.as_str()).collect::<Vec<_>>().join("; ")
                );
            }
        }
    }
    insta::assert_snapshot!(told);
}

#[test]
fn native_code_has_the_gradients_of_the_interpreter() {
    for file in ["examples/squid.neuro", "tests/models/passive.neuro", "tests/models/fitzhugh_nagumo.neuro"] {
        let checked = driver::check_file(&root().join(file));
        let options = few_steps(&checked, 400.0).unwrap_or_else(|d| panic!("{file}: {d:?}"));
        let names = some_parameters(&checked, &options, 12);
        let mut gradients = Vec::new();
        for choice in [interp, native] {
            let made = differentiable(&checked, &options, names.clone(), &choice);
            let (mut run, _, values) = made.unwrap_or_else(|d| panic!("{file}: {d:?}"));
            gradients.push(run.gradient(&values, &mut loss).unwrap_or_else(|e| panic!("{file}: {e}")).1);
        }
        let largest = gradients[0].iter().fold(0.0f64, |most, x| most.max(x.abs()));
        assert!(largest > 0.0, "{file}");
        for (a, b) in gradients[0].iter().zip(&gradients[1]) {
            assert!((a - b).abs() <= 1e-10 * a.abs().max(1e-6 * largest), "{file}: {a} and {b}");
        }
    }
}

#[test]
fn a_tape_with_less_memory_has_the_same_bits() {
    let checked = driver::check_file(&root().join("examples/squid.neuro"));
    let options = few_steps(&checked, 100.0).unwrap();
    let options = CompileOptions { set: vec!["n=2".into()], ..options };
    let names = ["Na.gbar", "K.gbar", "Leak.erev"].map(String::from);
    let fitted = Differentiable::parameters(&checked, &options, &names).unwrap();
    let values = [118.0, 37.0, -54.0];
    let mut whole = None;
    // Four states of two cells.
    let slot = 8 * 4 * 2;
    for (slots, most_steps) in [(101, 100), (20, 200), (6, 350), (2, 1500), (1, 5200)] {
        let mut run = Differentiable::new(&checked, &options, &fitted, &values, &interp, slots * slot).unwrap();
        assert!(run.memory() <= slots * slot);
        let (found, gradient) = run.gradient(&values, &mut loss).unwrap();
        assert!(found.kept <= slots * slot, "{} bytes in {slots} slots", found.kept);
        assert!(found.steps <= most_steps, "{} steps with {slots} slots", found.steps);
        let bits: Vec<u64> = gradient.iter().map(|x| x.to_bits()).collect();
        assert_eq!(*whole.get_or_insert(bits.clone()), bits, "{slots}");
    }
    let refused = Differentiable::new(&checked, &options, &fitted, &values, &interp, slot - 1).err().unwrap();
    assert_eq!(
        refused[0].message,
        "going back takes at least 64 bytes, for the states at one time, and 63 may be used; with 6464 it takes no step twice"
    );
}

/// A membrane with a leak, whose potential is known: `e + (v0 - e) exp(-t g / c)`.
const LEAKY: &str = "cell Leaky {
    param g = 0.1 /ms; param e = -60 mV; param v0 = -70 mV
    state v: mV = v0
    v' = g * (e - v)
}
network main { population c: Leaky[2] }
run { duration = 5 ms; dt = 0.5 ms; method = exact; record c.v }";

#[test]
fn the_gradient_of_a_leaky_cell_is_known() {
    let checked = check_text("leaky.neuro", Path::new(""), LEAKY, &Sources);
    let options = CompileOptions::default();
    let names = ["c.g", "c.e", "c.v0"].map(String::from);
    let fitted = Differentiable::parameters(&checked, &options, &names).unwrap();
    let values: Vec<f64> = fitted.iter().map(|one| one.value.unwrap()).collect();
    let mut run = Differentiable::new(&checked, &options, &fitted, &values, &interp, ALL).unwrap();
    // The sum of both cells at the end.
    let mut last = |samples: &[Vec<f64>]| {
        let v = &samples[0];
        let mut slopes = vec![0.0; v.len()];
        let end = v.len() - 2;
        slopes[end..].fill(1.0);
        Loss { value: v[end..].iter().sum(), slopes: vec![slopes] }
    };
    for [g, e, v0] in [[0.1, -60.0, -70.0], [0.7, -55.0, -80.0]] {
        let (found, gradient) = run.gradient(&[g, e, v0], &mut last).unwrap();
        let (t, decay) = (5.0, (-5.0 * g).exp());
        let expected = [-2.0 * t * (v0 - e) * decay, 2.0 * (1.0 - decay), 2.0 * decay];
        assert!((found.loss - 2.0 * (e + (v0 - e) * decay)).abs() < 1e-12);
        for (found, expected) in gradient.iter().zip(expected) {
            assert!((found - expected).abs() <= 1e-12 * expected.abs().max(1.0), "{found}, not {expected}");
        }
    }
}

#[test]
fn parameters_of_parameters_count() {
    let text = LEAKY.replace("param g = 0.1 /ms", "param tau = 10 ms; param g = 1 / tau");
    let checked = check_text("leaky.neuro", Path::new(""), text, &Sources);
    let options = CompileOptions::default();
    let run = differentiable(&checked, &options, vec!["c.tau".into()], &interp).unwrap_or_else(|d| panic!("{d:?}"));
    check("leaky", run);
}

#[test]
fn junctions_have_gradients() {
    let text = "cell Leaky {
    compartment soma { area = 1000 um2; cm = 1 uF/cm2; v_init = -65 mV; insert Leak }
}
channel Leak { param gbar = 0.3 mS/cm2; param erev = -54 mV }
junction Gap { param g = 0.05 mS/cm2; current i = g * dv * (0.2 + 0.8 * exp(-(dv / 10 mV)^2)) }
network main {
    population io: Leaky[5]
    init io.soma.v ~ uniform(-80 mV, -50 mV)
    connect io.soma -- io.soma via Gap { rule = ring(1) }
}
run { duration = 2 ms; dt = 0.1 ms; record io.soma.v }";
    let checked = check_text("gap.neuro", Path::new(""), text, &Sources);
    let said = neuroc::diag::render_human(&checked.sources, &checked.diagnostics, false);
    assert!(checked.model.is_some(), "{said}");
    let options = CompileOptions::default();
    let names = some_parameters(&checked, &options, 9);
    assert!(names.iter().any(|name| name.ends_with("Gap.g") || name.ends_with(".g")), "{names:?}");
    check("gap", differentiable(&checked, &options, names, &interp).unwrap_or_else(|d| panic!("{d:?}")));
}

#[test]
fn what_cannot_be_fitted_is_named() {
    let refused = |text: &str, name: &str| {
        let checked = check_text("m.neuro", Path::new(""), text, &Sources);
        let options = CompileOptions::default();
        let errors = Differentiable::parameters(&checked, &options, &[name.to_string()]).and_then(|fitted| {
            let values: Vec<f64> = fitted.iter().map(|one| one.value.unwrap_or(1.0)).collect();
            Differentiable::new(&checked, &options, &fitted, &values, &interp, ALL)
        });
        errors.err().expect("it is refused").iter().map(|d| d.message.clone()).collect::<Vec<_>>().join("; ")
    };
    assert_eq!(refused(LEAKY, "c.v"), "`c.v` is an initial value; so far parameters alone are fitted");
    assert_eq!(refused(LEAKY, "c.x"), "the model has no parameter `c.x`");
    let sized = LEAKY.replace("population c: Leaky[2]", "param n = 2; population c: Leaky[n]");
    assert_eq!(
        refused(&sized, "n"),
        "`n` says how many cells there are, who is connected or when events arrive, and cannot be fitted"
    );
    let reset =
        LEAKY.replace("(e - v)\n", "(e - v)\n    spike when v > -65 mV { v = v0 }\n").replace("exact", "exp_euler");
    let said = refused(&reset, "c.g");
    assert!(said.starts_with("`c` changes by a jump when it spikes (m.neuro:"), "{said}");
    assert!(said.ends_with("which has no gradient so far"), "{said}");
}
