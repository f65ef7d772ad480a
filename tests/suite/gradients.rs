//! Tests of: gradients. Reverse mode against central differences in double precision, closed forms, and itself with less memory.

use crate::models::root;
use neuroc::diag::{Code, Diagnostic};
use neuroc::driver::{self, Checked, CompileOptions, Differentiable, EngineChoice, Fitted, Mode, Ways, check_text};
use neuroc::engine::native::NativeOptions;
use neuroc::engine::{EngineError, rustc};
use neuroc::hir::Sources;
use neuroc::ode;
use neuroc::simulate::Loss;
use std::path::{Path, PathBuf};

/// Back from the loss, with every state kept.
const BACK: Ways = Ways { mode: Mode::Reverse, memory: u64::MAX };
/// Beside the run.
const FORWARD: Ways = Ways { mode: Mode::Forward, memory: 0 };

/// Back, with so many bytes of states.
fn kept(memory: u64) -> Ways {
    Ways { memory, ..BACK }
}

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
        // When an input begins and ends changes a run by jumps, from one step to the next.
        let is_moment = p.name.ends_with(".delay") || p.name.ends_with(".duration");
        p.settable && !is_moment && p.population.is_none() && value.is_some_and(|x| x != 0.0)
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
    ways: Ways,
) -> Result<Run, Vec<Diagnostic>> {
    loop {
        let fitted = parameters(checked, options, &names)?;
        let values: Vec<f64> = fitted.iter().map(|one| one.value.expect("a number")).collect();
        match Differentiable::new(checked, options, &fitted, &values, choice, ways) {
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

/// The derivative in a parameter by central differences over such a distance and half of it, extrapolated as Richardson does.
fn extrapolated(run: &mut Differentiable, values: &[f64], at: usize, h: f64) -> f64 {
    let mut value = |by: f64| {
        let mut values = values.to_vec();
        values[at] *= 1.0 + by;
        loss(&run.samples(&values).unwrap_or_else(|e| panic!("{e}"))).value
    };
    let mut central = |h: f64| (value(h) - value(-h)) / (2.0 * h * values[at]);
    (4.0 * central(h / 2.0) - central(h)) / 3.0
}

/// Of several distances those two neighbours that agree best.
fn difference(run: &mut Differentiable, values: &[f64], at: usize) -> f64 {
    // Long ones too: along a fine cable the rounding of a step is a millionth of a loss.
    let found = [1e-2, 2e-3, 5e-4, 1e-4, 2e-5].map(|h| extrapolated(run, values, at, h));
    let pairs = found.windows(2).map(|w| ((w[1] - w[0]).abs(), w[1]));
    pairs.min_by(|a, b| a.0.total_cmp(&b.0)).map_or(f64::NAN, |best| best.1)
}

/// What differs between the gradients of a run and differences.
fn wrong(name: &str, (mut run, fitted, values): Run) -> Vec<String> {
    let (found, gradient) = run.gradient(&values, &mut loss).unwrap_or_else(|e| panic!("{name}: {e}"));
    let mut wrong = Vec::new();
    if !found.loss.is_finite() {
        wrong.push(format!("{name}: the loss is {}", found.loss));
    }
    for (at, one) in fitted.iter().enumerate() {
        // What rounding of the loss makes of differences.
        let noise = 1e-10 * (1.0 + found.loss.abs()) / values[at].abs();
        let differs = |expected: f64| {
            let within = 1e-6 * expected.abs() + noise;
            let error = (gradient[at] - expected).abs();
            error.is_nan() || error > within
        };
        // One distance does for most; others say what is wrong, or that the first was too long or too short.
        if !differs(extrapolated(&mut run, &values, at, 5e-4)) {
            continue;
        }
        let expected = difference(&mut run, &values, at);
        if differs(expected) {
            wrong.push(format!("{name}: `{}`: {}, not {expected}; the loss is {}", one.name, gradient[at], found.loss));
        }
    }
    wrong
}

/// Compares all gradients of a run with differences.
fn check(name: &str, run: Run) {
    assert_eq!(wrong(name, run), Vec::<String>::new());
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
    half_of_the_models(0);
}

#[test]
fn every_other_smooth_model_has_them_too() {
    half_of_the_models(1);
}

/// Most of the time goes into differences, on one thread: two tests share the models.
fn half_of_the_models(half: usize) {
    let (mut smooth, mut all_wrong) = (0, Vec::new());
    for file in models().into_iter().skip(half).step_by(2) {
        let name = file.strip_prefix(root()).expect("it is below").display().to_string();
        let checked = driver::check_file(&file);
        if !checked.model.as_ref().is_some_and(|m| m.network.is_some() && m.run.is_some()) {
            continue;
        }
        let made = few_steps(&checked, 20.0).and_then(|options| {
            // Large populations do with three cells.
            let model = checked.model.as_ref().ok_or_else(Vec::new)?;
            let (flat, _) = driver::flatten(model, &options)?;
            let sized = flat.params.iter().any(|p| p.name == "n");
            let options = CompileOptions { set: sized.then(|| "n=3".into()).into_iter().collect(), ..options };
            let names = some_parameters(&checked, &options, 4);
            let back = differentiable(&checked, &options, names.clone(), &interp, BACK)?;
            Ok((back, differentiable(&checked, &options, names, &interp, FORWARD)?))
        });
        match made {
            Ok((mut back, mut forward)) => {
                smooth += 1;
                let [of_back, of_forward] = [&mut back, &mut forward].map(|(run, _, values)| {
                    run.gradient(values, &mut loss).unwrap_or_else(|e| panic!("{name}: {e}")).1
                });
                let largest = of_back.iter().fold(0.0f64, |most, x| most.max(x.abs()));
                for (a, b) in of_back.iter().zip(&of_forward) {
                    // Along a fine cable, whose stiffness is a millionfold, roundings grow.
                    if (a - b).abs() > 1e-8 * a.abs().max(1e-3 * largest) {
                        all_wrong.push(format!("{name}: {a} back, {b} forward"));
                    }
                }
                all_wrong.extend(wrong(&name, back));
            }
            Err(errors) => {
                assert!(errors.iter().all(|e| e.code != Code::Internal), "{name}: {errors:?}");
            }
        }
    }
    assert!(all_wrong.is_empty(), "{all_wrong:#?}");
    assert!(smooth >= 8, "{smooth} models have gradients");
}

#[test]
fn native_code_has_the_gradients_of_the_interpreter() {
    let files = ["examples/squid", "examples/ball_and_stick", "tests/models/passive", "tests/models/fitzhugh_nagumo"];
    for file in files.map(|file| format!("{file}.neuro")) {
        let checked = driver::check_file(&root().join(&file));
        let options = few_steps(&checked, 400.0).unwrap_or_else(|d| panic!("{file}: {d:?}"));
        let names = some_parameters(&checked, &options, 12);
        let mut gradients = Vec::new();
        let choices: [fn() -> Result<EngineChoice, EngineError>; 2] = [interp, native];
        for (choice, ways) in [BACK, FORWARD].into_iter().flat_map(|ways| choices.map(|choice| (choice, ways))) {
            let made = differentiable(&checked, &options, names.clone(), &choice, ways);
            let (mut run, _, values) = made.unwrap_or_else(|d| panic!("{file}: {d:?}"));
            gradients.push(run.gradient(&values, &mut loss).unwrap_or_else(|e| panic!("{file}: {e}")).1);
        }
        let largest = gradients[0].iter().fold(0.0f64, |most, x| most.max(x.abs()));
        assert!(largest > 0.0, "{file}");
        for (a, b) in gradients[1..].iter().flat_map(|other| gradients[0].iter().zip(other)) {
            assert!((a - b).abs() <= 1e-10 * a.abs().max(1e-6 * largest), "{file}: {a} and {b}");
        }
    }
}

#[cfg(feature = "xla")]
#[test]
fn xla_has_the_gradients_of_the_interpreter_forward() {
    let Some(client) = crate::pjrt::cpu() else { return };
    let cache = Path::new(env!("CARGO_TARGET_TMPDIR")).join("executables");
    let compiler = neuroc::engine::executables::Compiler::new(client, cache);
    let xla = || Ok(EngineChoice::Xla(compiler.clone(), Default::default()));
    let files = ["examples/squid", "examples/ball_and_stick", "tests/models/passive", "tests/models/fitzhugh_nagumo"];
    let texts = [("gap", JOINED), ("graded", GRADED)].map(|(name, text)| {
        (name.to_string(), check_text(&format!("{name}.neuro"), Path::new(""), text.to_string(), &Sources))
    });
    let files = files.map(|file| (file.to_string(), driver::check_file(&root().join(format!("{file}.neuro")))));
    for (name, checked) in files.into_iter().chain(texts) {
        let options = few_steps(&checked, 100.0).unwrap_or_else(|d| panic!("{name}: {d:?}"));
        let for_xla = CompileOptions { backend: neuroc::passes::Backend::Xla, ..options.clone() };
        let names = some_parameters(&checked, &options, 6);
        let found = |options: &CompileOptions, choice: &dyn Fn() -> Result<EngineChoice, EngineError>, ways| {
            let made = differentiable(&checked, options, names.clone(), choice, ways);
            let (mut run, _, values) = made.unwrap_or_else(|d| panic!("{name}: {d:?}"));
            run.gradient(&values, &mut loss).unwrap_or_else(|e| panic!("{name}: {e}")).1
        };
        let of_interp = found(&options, &interp, BACK);
        let of_xla = found(&for_xla, &xla, Ways { mode: Mode::Auto, ..BACK });
        let largest = of_interp.iter().fold(0.0f64, |most, x| most.max(x.abs()));
        assert!(largest > 0.0, "{name}");
        for (a, b) in of_interp.iter().zip(&of_xla) {
            assert!((a - b).abs() <= 1e-9 * a.abs().max(1e-6 * largest), "{name}: {a} and {b}");
        }
        let refused = differentiable(&checked, &for_xla, names.clone(), &xla, BACK).err();
        let said = refused.map(|errors| errors[0].message.clone());
        assert!(said.is_some_and(|said| said.contains("gradients go forward on XLA")), "{name}");
    }
}

#[test]
fn a_tape_with_less_memory_has_the_same_bits() {
    let checked = driver::check_file(&root().join("examples/squid.neuro"));
    let options = few_steps(&checked, 100.0).unwrap();
    let options = CompileOptions { set: vec!["n=2".into()], ..options };
    let names = ["Na.gbar", "K.gbar", "Leak.erev"].map(String::from);
    let fitted = parameters(&checked, &options, &names).unwrap();
    let values = [118.0, 37.0, -54.0];
    let mut whole = None;
    // Four states of two cells.
    let slot = 8 * 4 * 2;
    for (slots, most_steps) in [(101, 100), (20, 200), (6, 350), (2, 1500), (1, 5200)] {
        let mut run = Differentiable::new(&checked, &options, &fitted, &values, &interp, kept(slots * slot)).unwrap();
        assert!(run.memory().is_some_and(|memory| memory <= slots * slot));
        let (found, gradient) = run.gradient(&values, &mut loss).unwrap();
        assert!(found.kept <= slots * slot, "{} bytes in {slots} slots", found.kept);
        assert!(found.steps <= most_steps, "{} steps with {slots} slots", found.steps);
        let bits: Vec<u64> = gradient.iter().map(|x| x.to_bits()).collect();
        assert_eq!(*whole.get_or_insert(bits.clone()), bits, "{slots}");
    }
    let refused = Differentiable::new(&checked, &options, &fitted, &values, &interp, kept(slot - 1)).err().unwrap();
    assert_eq!(
        refused[0].message,
        "going back takes at least 64 bytes, for the states at one time, and 63 may be used; with 6464 it takes no step twice"
    );
}

#[test]
fn states_that_no_derivative_reads_are_kept_as_well() {
    // The derivative of `v'` does not depend on `x`, but where a run goes on from a kept state `v` does.
    let text = LEAKY
        .replace("    v' = g * (e - v)", "    state x: mV/ms = 2 mV/ms\n    x' = -x / 3 ms\n    v' = g * (e - v) + x");
    let checked = check_text("driven.neuro", Path::new(""), text, &Sources);
    let options = CompileOptions::default();
    let fitted = parameters(&checked, &options, &["c.g".to_string()]).unwrap();
    let gradient = |budget: u64| {
        let mut run = Differentiable::new(&checked, &options, &fitted, &[0.1], &interp, kept(budget)).unwrap();
        run.gradient(&[0.1], &mut loss).unwrap().1[0].to_bits()
    };
    for slots in 1..5 {
        assert_eq!(gradient(u64::MAX), gradient(slots * 8 * 2 * 2), "{slots}");
    }
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
    let fitted = parameters(&checked, &options, &names).unwrap();
    let values: Vec<f64> = fitted.iter().map(|one| one.value.unwrap()).collect();
    let mut run = Differentiable::new(&checked, &options, &fitted, &values, &interp, BACK).unwrap();
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
    let run =
        differentiable(&checked, &options, vec!["c.tau".into()], &interp, BACK).unwrap_or_else(|d| panic!("{d:?}"));
    check("leaky", run);
}

/// Cells that differ, joined by junctions whose current is not linear.
const JOINED: &str = "channel Leak { param gbar = 0.3 mS/cm2; param erev = -54 mV }
cell Leaky {
    compartment soma { area = 1000 um2; cm = 1 uF/cm2; v_init = -65 mV; insert Leak }
}
junction Gap { param g = 0.05 mS/cm2; current i = g * dv * (0.2 + 0.8 * exp(-(dv / 10 mV)^2)) }
network main {
    population io: Leaky[5]
    init io.soma.v ~ uniform(-80 mV, -50 mV)
    connect io.soma -- io.soma via Gap { rule = fixed_in_degree(n = 2) }
}
run { duration = 2 ms; dt = 0.1 ms; record io.soma.v }";

#[test]
fn junctions_have_gradients() {
    let checked = check_text("gap.neuro", Path::new(""), JOINED, &Sources);
    let said = neuroc::diag::render_human(&checked.sources, &checked.diagnostics, false);
    assert!(checked.model.is_some(), "{said}");
    let options = CompileOptions::default();
    let names = some_parameters(&checked, &options, 9);
    assert!(names.iter().any(|name| name.ends_with(".g")), "{names:?}");
    check("gap", differentiable(&checked, &options, names.clone(), &interp, BACK).unwrap_or_else(|d| panic!("{d:?}")));
    // Natively, too: what goes back to sources goes along edges that are turned round.
    let gradient = |choice: &dyn Fn() -> Result<EngineChoice, EngineError>| {
        let made = differentiable(&checked, &options, names.clone(), choice, BACK);
        let (mut run, _, values) = made.unwrap_or_else(|d| panic!("{d:?}"));
        run.gradient(&values, &mut loss).unwrap_or_else(|e| panic!("{e}")).1
    };
    for (a, b) in gradient(&interp).into_iter().zip(gradient(&native)) {
        assert!((a - b).abs() <= 1e-10 * a.abs().max(1e-6), "{a} and {b}");
    }
}

/// Calcium of a branch with a taper, and of a spine: with two coefficients, and currents that read it.
const DIFFUSING: &str = "use std.ions.{nernst, F}
channel CaL {
    param gbar = 0.2 mS/cm2
    reads Ca: mM
    let erev = nernst(2, Ca, 2 mM)
    gate m^2 { inf = 1 / (1 + exp(-(v + 55 mV) / 9 mV)); tau = 2 ms }
    current i = gbar * m^2 * (v - erev)
}
cell Stick {
    section dend { length = 20 um; diam = 2 um .. 1 um; compartments = 4 }
    section spine { from dend(1); length = 2 um; diam = 0.3 um; compartments = 2 }
    section other { from dend(1); length = 5 um; diam = 0.5 um; compartments = 2 }
    region all { ra = 100 ohm*cm; cm = 1 uF/cm2; v_init = -55 mV }
    region dend, other { pool Ca: mM { init = 5e-4 mM; diffusion = 0.3 um2/ms; shell = 0.3 um; Ca' = -CaL.i / (2 * F * 0.2 um) - Ca / 20 ms }; insert CaL }
    region spine { pool Ca: mM { init = 5e-3 mM; diffusion = 0.1 um2/ms; Ca' = -CaL.i / (2 * F * 0.2 um) - Ca / 5 ms }; insert CaL }
}
network main { population c: Stick[3]; init c.spine.Ca ~ uniform(1e-3 mM, 1e-2 mM) }
run { duration = 2 ms; dt = 0.1 ms; method = METHOD; celsius = 20 degC; record c.{spine(0.9), dend(0.9), other(0.9)}.Ca; record c.dend(0.1).v }";

#[test]
fn ions_that_diffuse_have_gradients() {
    for method in ["cnexp", "crank_nicolson"] {
        let text = DIFFUSING.replace("METHOD", method);
        let checked = check_text("diffusing.neuro", Path::new(""), &text, &Sources);
        let said = neuroc::diag::render_human(&checked.sources, &checked.diagnostics, false);
        assert!(checked.model.is_some(), "{said}");
        let options = CompileOptions::default();
        let names = ["c.dend_other.Ca.diffusion", "c.spine.Ca.diffusion", "c.dend_other.CaL.gbar", "c.all.ra"];
        let names: Vec<String> = names.map(str::to_string).into();
        let mut gradients = Vec::new();
        for (choice, ways) in [(&interp as &dyn Fn() -> _, BACK), (&interp, FORWARD), (&native, BACK)] {
            let made =
                differentiable(&checked, &options, names.clone(), choice, ways).unwrap_or_else(|d| panic!("{d:?}"));
            assert_eq!(made.1.len(), names.len());
            if gradients.is_empty() {
                check(
                    method,
                    differentiable(&checked, &options, names.clone(), choice, ways).unwrap_or_else(|d| panic!("{d:?}")),
                );
            }
            let (mut run, _, values) = made;
            gradients.push(run.gradient(&values, &mut loss).unwrap_or_else(|e| panic!("{e}")).1);
        }
        for other in &gradients[1..] {
            for (a, b) in gradients[0].iter().zip(other) {
                assert!(*a != 0.0 && (a - b).abs() <= 1e-9 * a.abs(), "{method}: {a} and {b}");
            }
        }
    }
}

/// Cells that inhibit each other through graded synapses, with a state and without one.
const GRADED: &str = "use std.synapses.{Graded}
synapse Fast { param half = -40 mV; sum g(weight: nS) = weight / (1 + exp((half - v_pre) / 5 mV)); current i = g * (v + 80 mV) }
cell Cell { param drive = 300 pA; state v: mV = -60 mV; v' = (drive - 4 nS * (v + 60 mV) - 0.01 nS/mV * (v + 60 mV)^2 - i_syn) / 100 pF }
network main {
    population a: Cell[3]
    population b: Cell[2]
    init a.v ~ uniform(-60 mV, -30 mV)
    connect a -> b via Graded { rule = all_to_all; weight = 1 nS }
    connect b -> a via Graded { rule = all_to_all; weight = 2 nS }
    connect a -> a via Fast { rule = all_to_all; weight = 1 nS }
}
run { duration = 1 ms; dt = 0.05 ms; record a.v; record b.v }";

/// The same from and to places of cells with sections.
const GRADED_AT_PLACES: &str = "use std.channels.hh.{Leak}
use std.synapses.{Graded}
synapse Fast { param half = -40 mV; sum g(weight: nS) = weight / (1 + exp((half - v_pre) / 5 mV)); current i = g * (v + 80 mV) }
cell Cell {
    section s { length = 30 um; diam = 10 um; compartments = 3 }
    region all { ra = 100 ohm*cm; cm = 1 uF/cm2; v_init = -60 mV; insert Leak }
}
network main {
    param amplitude = 0.03 nA
    population a: Cell[3]
    population b: Cell[2]
    input drive: amplitude -> a.s(0.1)
    connect a.s(0.9) -> b.s(0.5) via Graded { rule = all_to_all; weight = 1 nS }
    connect b.s(0.5) -> a.s(0.1) via Graded { rule = all_to_all; weight = 2 nS }
    connect a.s(0.5) -> a.s(0.9) via Fast { rule = all_to_all; weight = 1 nS }
}
run { duration = 1 ms; dt = 0.05 ms; method = cnexp; record a.s(0.1).v; record b.s(0.9).v }";

#[test]
fn graded_synapses_have_gradients() {
    let names = ["a.drive", "a.Graded.pre.midpoint", "b.Graded.pre.k_minus", "a.Fast.pre.half", "b.Graded.erev"];
    graded_have_gradients(GRADED, &names, true);
    // Edges with weights of their own are not turned round.
    graded_have_gradients(&GRADED.replace("weight = 1 nS", "weight ~ uniform(0.5 nS, 1.5 nS)"), &names, false);
    let names = [
        "amplitude",
        "a.s(0.8333).Graded.pre.midpoint",
        "b.s(0.5).Graded.pre.k_minus",
        "a.s(0.5).Fast.pre.half",
        "b.s(0.5).Graded.erev",
    ];
    graded_have_gradients(GRADED_AT_PLACES, &names, false);
}

fn graded_have_gradients(text: &str, names: &[&str], natively: bool) {
    let checked = check_text("graded.neuro", Path::new(""), text, &Sources);
    let said = neuroc::diag::render_human(&checked.sources, &checked.diagnostics, false);
    assert!(checked.model.is_some(), "{said}");
    let options = CompileOptions::default();
    let names: Vec<String> = names.iter().map(|name| name.to_string()).collect();
    check(
        "graded",
        differentiable(&checked, &options, names.clone(), &interp, BACK).unwrap_or_else(|d| panic!("{d:?}")),
    );
    let gradient = |choice: &dyn Fn() -> Result<EngineChoice, EngineError>| {
        let made = differentiable(&checked, &options, names.clone(), choice, BACK);
        let (mut run, _, values) = made.unwrap_or_else(|d| panic!("{d:?}"));
        run.gradient(&values, &mut loss).unwrap_or_else(|e| panic!("{e}")).1
    };
    let first = gradient(&interp);
    assert!(first.iter().all(|x| *x != 0.0), "{first:?}");
    if !natively {
        return;
    }
    let second = gradient(&native);
    for (a, b) in first.into_iter().zip(second) {
        assert!((a - b).abs() <= 1e-10 * a.abs().max(1e-6), "{a} and {b}");
    }
}

#[test]
fn what_cannot_be_fitted_is_named() {
    let refused = |text: &str, name: &str| {
        let checked = check_text("m.neuro", Path::new(""), text, &Sources);
        let options = CompileOptions::default();
        let errors = parameters(&checked, &options, &[name.to_string()]).and_then(|fitted| {
            let values: Vec<f64> = fitted.iter().map(|one| one.value.unwrap_or(1.0)).collect();
            Differentiable::new(&checked, &options, &fitted, &values, &interp, BACK)
        });
        errors.err().expect("it is refused").iter().map(|d| d.message.clone()).collect::<Vec<_>>().join("; ")
    };
    assert_eq!(refused(LEAKY, "c.v"), "`c.v` is an initial value; so far parameters alone are fitted");
    assert_eq!(refused(LEAKY, "c.x"), "the model has no parameter `c.x`");
    let sized = LEAKY.replace("population c: Leaky[2]", "param n = 2; population c: Leaky[n]");
    assert_eq!(
        refused(&sized, "n"),
        "`n` says how many cells there are, who is connected, how strongly or when events arrive, and has no gradient"
    );
    let reset =
        LEAKY.replace("(e - v)\n", "(e - v)\n    spike when v > -65 mV { v = v0 }\n").replace("exact", "exp_euler");
    let said = refused(&reset, "c.g");
    assert!(said.starts_with("`c` changes by a jump when it spikes (m.neuro:"), "{said}");
    assert!(said.ends_with("which has no gradient so far"), "{said}");
}

/// What parameters of these names are.
fn parameters(checked: &Checked, options: &CompileOptions, names: &[String]) -> Result<Vec<Fitted>, Vec<Diagnostic>> {
    let names: Vec<_> = names.iter().map(|name| (name.clone(), None)).collect();
    Differentiable::parameters(checked, options, &names)
}

/// Runs the program; the answer are its exit code, what it prints, and what it says.
fn neuroc(args: &[&str]) -> (Option<i32>, String, String) {
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_neuroc"));
    let output = command.args(args).current_dir(root()).output().expect("it runs");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

#[test]
fn conductances_are_recovered_from_a_trace() {
    let folder = tempfile::tempdir().unwrap();
    let cache = Path::new(env!("CARGO_TARGET_TMPDIR")).join("kernels").display().to_string();
    let file = folder.path().join("squid.set").display().to_string();
    let args = ["fit", "examples/squid_fit.neuro", "--free", "Na.gbar=50..300mS/cm2", "--free", "K.gbar=10..80 mS/cm2"];
    let target =
        ["--target", "axon.v=examples/data/squid_fit.csv", "--set", "Na.gbar=90mS/cm2", "--set", "K.gbar=25mS/cm2"];
    let rest = ["--cache", &cache, "--threads", "1", "-o", &file, "--json"];
    let (code, out, err) = neuroc(&[&args[..], &target, &rest].concat());
    assert_eq!(code, Some(0), "{err}");
    let said: serde_json::Value = serde_json::from_str(&out).unwrap();
    for (name, value) in [("squid.axon.Na.gbar", 120.0), ("squid.axon.K.gbar", 36.0)] {
        let found = said["values"][name].as_f64().unwrap();
        assert!((found - value).abs() < 1e-5 * value, "{name}: {found}");
        assert_eq!(said["units"][name], "mS/cm2");
    }
    // `run` takes what was found, and makes the trace again.
    let again = folder.path().join("again.csv").display().to_string();
    let run = ["run", "examples/squid_fit.neuro", "--params", &file, "-o", &again, "--cache", &cache, "--quiet"];
    let (code, _, err) = neuroc(&run);
    assert_eq!(code, Some(0), "{err}");
    let read = |path: &Path| -> Vec<f64> {
        let text = std::fs::read_to_string(path).unwrap();
        text.lines().skip(1).map(|line| line.split(',').nth(1).unwrap().parse().unwrap()).collect()
    };
    let (found, trace) = (read(Path::new(&again)), read(&root().join("examples/data/squid_fit.csv")));
    assert_eq!(found.len(), trace.len());
    assert!(found.iter().zip(&trace).all(|(a, b)| (a - b).abs() < 1e-4));
}

#[test]
fn the_file_says_what_is_fitted() {
    let folder = tempfile::tempdir().unwrap();
    let cache = Path::new(env!("CARGO_TARGET_TMPDIR")).join("kernels").display().to_string();
    let file = folder.path().join("squid.set").display().to_string();
    let set = ["--set", "Na.gbar=90mS/cm2", "--set", "K.gbar=25mS/cm2"];
    let rest = ["--cache", &cache, "--threads", "1", "-o", &file, "--json"];
    let fit = |more: &[&str]| {
        let (code, out, err) = neuroc(&[&["fit", "examples/squid_fit.neuro"], &set[..], &rest, more].concat());
        assert_eq!(code, Some(0), "{err}");
        serde_json::from_str::<serde_json::Value>(&out).unwrap()
    };
    let said = fit(&[]);
    assert_eq!(said["starts"].as_array().map(Vec::len), Some(2));
    for (name, value) in [("squid.axon.Na.gbar", 120.0), ("squid.axon.K.gbar", 36.0), ("squid.axon.Leak.gbar", 0.3)] {
        let found = said["values"][name].as_f64().unwrap();
        assert!((found - value).abs() < 1e-3 * value, "{name}: {found}");
    }
    // The command line says it anew.
    let said = fit(&["--free", "Na.gbar=50..300mS/cm2", "--starts", "1", "--iterations", "3"]);
    assert_eq!(said["starts"].as_array().map(Vec::len), Some(1));
    assert_eq!(said["values"].as_object().map(serde_json::Map::len), Some(1));
}

/// A leaky cell that is driven fires after `tau ln(i r / (i r - threshold))` and then as often: two numbers give both.
#[test]
fn numbers_of_a_cell_that_resets_give_its_parameters() {
    let folder = tempfile::tempdir().unwrap();
    let model = folder.path().join("lif.neuro");
    let text = |targets: &str| {
        format!(
            "cell Lif {{
    param tau = 10 ms
    param drive = 30 mV
    state v: mV = 0 mV
    v' = (drive - v) / tau
    spike when v > 20 mV {{ v = 0 mV }}
}}
network one {{ population cells: Lif[2] }}
run {{ duration = 200 ms; dt = 0.01 ms; method = exact; record cells.v from 1 ms to 1 ms; record spikes of cells }}
fit {{
    free cells.tau = 5 .. 40 ms, cells.drive = 21 .. 60 mV
    {targets}
    starts = 2
    iterations = 200
}}
"
        )
    };
    let (tau, drive) = (17.0, 26.0f64);
    let first = tau * (drive / (drive - 20.0)).ln();
    // After 1 ms the voltage tells how steep it is.
    let after = drive * (1.0 - (-1.0 / tau).exp());
    let targets =
        format!("target interval(cells) = {first} ms within 0.1 ms\n target last(cells.v) = {after} mV within 0.01 mV");
    std::fs::write(&model, text(&targets)).unwrap();
    let file = folder.path().join("lif.set").display().to_string();
    let model = model.display().to_string();
    let args = ["fit", &model, "--engine", "interp", "-o", &file, "--json"];
    let (code, out, err) = neuroc(&args);
    assert_eq!(code, Some(0), "{err}");
    let said: serde_json::Value = serde_json::from_str(&out).unwrap();
    // Spikes are on the grid of steps, 0.01 ms.
    for (name, value) in [("cells.tau", tau), ("cells.drive", drive)] {
        let found = said["values"][name].as_f64().unwrap();
        assert!((found - value).abs() < 2e-3 * value, "{name}: {found}");
    }
    assert!(said["off"]["interval(cells)"]["rms"].as_f64().unwrap() < 0.02, "{out}");
    assert_eq!(said["off"]["last(cells.v)"]["unit"], "mV");

    // From the command line; a cell that does not spike has no such number.
    let free = ["--free", "cells.drive=1..5mV", "--iterations", "2", "--starts", "1"];
    let target = ["--target", "first_spike(cells)=9ms"];
    let (code, out, err) = neuroc(&[&args[..6], &free, &target].concat());
    assert_eq!(code, Some(0), "{err}");
    assert!(out.contains("first_spike(cells) is not there, in one cell at least"), "{out}");
    for (wrong, what) in [
        (&["--target", "first_spke(cells)=9ms"][..], "there is no `first_spke`"),
        (&["--target", "max(cells.v)=0mV"], "within 1 mV"),
        (&["--target", "rate(cells)=40Hz", "--search", "lbfgs"], "--search nelder-mead"),
        (&["--target", "rate(cells)=40mV"], "`rate(cells)` is in Hz, but its value here is a voltage"),
    ] {
        let (code, _, err) = neuroc(&[&args[..6], wrong].concat());
        assert!(code.is_some_and(|code| code > 0) && err.contains(what), "{what}: {err}");
    }
}

/// An exponential integrate-and-fire neuron has the f-I curve of the cell of Wang and Buzsaki with about the parameters that Fourcaud-Trocme et al. (2003) have found.
#[test]
fn a_curve_of_rates_gives_a_neuron() {
    let folder = tempfile::tempdir().unwrap();
    let cache = Path::new(env!("CARGO_TARGET_TMPDIR")).join("kernels").display().to_string();
    let file = folder.path().join("fi.set").display().to_string();
    let rest = ["--cache", &cache, "--threads", "1", "-o", &file, "--json"];
    let (code, out, err) = neuroc(&[&["fit", "examples/fi_fit.neuro"], &rest[..]].concat());
    assert_eq!(code, Some(0), "{err}");
    let said: serde_json::Value = serde_json::from_str(&out).unwrap();
    for (name, value, far) in [("v_t", -59.9, 0.5), ("delta_t", 3.48, 0.3), ("t_ref", 1.7, 0.1)] {
        let found = said["values"][format!("cells.{name}")].as_f64().unwrap();
        assert!((found - value).abs() < far, "{name}: {found}");
    }
    // 1 Hz is 0.001 /ms.
    assert!(said["off"]["rate(cells)"]["rms"].as_f64().unwrap() < 2e-4, "{out}");

    // What is wrong with a file.
    let text = std::fs::read_to_string(root().join("examples/fi_fit.neuro")).unwrap();
    let model = folder.path().join("m.neuro");
    std::fs::create_dir(folder.path().join("data")).unwrap();
    let data = folder.path().join("data/wang_buzsaki_fi.csv");
    for (numbers, text, what) in [
        ("rate_Hz\n1\n2\n3\n", text.clone(), "it has 3 numbers, but there are 12 cells to come near to them"),
        ("rate\n1\n", text.clone(), "it has no column `rate_Hz`"),
        (&format!("rate_Hz\n{}", "0\n".repeat(12)), text.replace(" within 1 Hz", ""), "such as `within 2 Hz`"),
        (&format!("rate_Hz\n{}nan\n", "0\n".repeat(11)), text.clone(), "number 12 of 12 is NaN"),
    ] {
        std::fs::write(&data, numbers).unwrap();
        std::fs::write(&model, text).unwrap();
        let (code, _, err) = neuroc(&["fit", &model.display().to_string(), "--engine", "interp", "-o", &file]);
        assert!(code == Some(1) && err.contains(what), "{what}: {err}");
    }
}

#[test]
fn the_simplex_recovers_a_conductance_without_gradients() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("squid.set").display().to_string();
    let args = ["fit", "examples/squid_fit.neuro", "--free", "Na.gbar=50..300mS/cm2", "--search", "nelder-mead"];
    let rest = ["--target", "axon.v=examples/data/squid_fit.csv", "--set", "Na.gbar=100mS/cm2", "--engine", "interp"];
    let (code, out, err) = neuroc(&[&args[..], &rest, &["-o", &file, "--duration", "6ms"]].concat());
    assert_eq!(code, Some(0), "{err}");
    assert!(out.lines().nth(1).is_some_and(|line| line.starts_with("squid.axon.Na.gbar    120 ")), "{out}");
    assert_eq!(std::fs::read_to_string(&file).unwrap().lines().count(), 2);
}

#[test]
fn what_is_wrong_with_a_fit_is_said() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("squid.set").display().to_string();
    let base = ["fit", "examples/squid_fit.neuro", "--engine", "interp", "-o", &file];
    let said = |args: &[&str]| {
        let (code, _, err) = neuroc(&[&base[..], args].concat());
        (code, err)
    };
    let free = ["--free", "Na.gbar=50..300mS/cm2"];
    let target = ["--target", "squid.axon.v=examples/data/squid_fit.csv"];
    let with_free = |free: &[&str]| said(&[free, &target[..]].concat());
    let cases = [
        (with_free(&["--free", "Na.gbar"]), 2, "there is no `=`"),
        (with_free(&["--free", "Na.gbar=5mS/cm2"]), 2, "there is no `..` between two numbers"),
        (with_free(&["--free", "Na.gbar=300..50mS/cm2"]), 2, "the first bound must be less than the second"),
        (with_free(&["--free", "Na.gbar=50..300mV"]), 2, "is a conductance density, but"),
        (with_free(&["--free", "Na.gbr=50..300mS/cm2"]), 2, "did you mean `Na.gbar`?"),
        (with_free(&["--free", "axon.v=-70..-60mV"]), 1, "is an initial value"),
        (
            with_free(&["--free", "low.delay=0.5..1.2ms"]),
            1,
            "`low.delay` moves the time at which something is switched",
        ),
        (said(&[&free[..], &["--target", "squid.axon.w=x.csv"]].concat()), 2, "the run does not record `squid.axon.w`"),
        (said(&[&free[..], &["--target", "squid.axon.v=none.csv"]].concat()), 2, "cannot read `none.csv`"),
        (said(&[&free[..], &target, &["--mode", "reverse", "--memory", "8B"]].concat()), 2, "may be used"),
        (said(&[&free[..], &target, &["--precision", "f32"]].concat()), 2, "the interpreter computes in f64 only"),
    ];
    for ((code, err), expected, what) in cases {
        assert_eq!(code, Some(expected), "{what}: {err}");
        assert!(err.contains(what), "{what}: {err}");
    }
}
