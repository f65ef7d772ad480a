//! Tests of: training of cells with sections. Trials are runs; gradients are central differences, and the same on every engine.

use crate::training::{
    OUT, PIXELS, TRIALS, any_room_has_the_same_bits, checked, input, interp, is_a_run, judge_of, native, of_trials,
    placed,
};
use neuroc::codegen::plan::Precision;
use neuroc::diag::Diagnostic;
use neuroc::discretize::Carried;
use neuroc::driver::{CompileOptions, EngineChoice, Found, Learner, Lesson, Read};
use neuroc::engine::EngineError;
use neuroc::hir::{self, Gradient, Learn, Readout};
use neuroc::source::Span;
use neuroc::step::Surrogate;

/// Point cells that spike, branched cells that do, and some that answer; `{input}` and `{more}` stand for lines of the network.
const NET: &str = "
use std.channels.hh.{K, Leak, Na}

cell Pixel { param x = 0.5; state q = 0; q' = x / 1 ms; spike when q > 1 { q -= 1 } }
cell Branched {
    param shift = 0 mV
    section soma { length = 20 um; diam = 20 um; compartments = 1 }
    section dend { from soma(1); length = 200 um; diam = 2 um .. 1 um }
    section side { from dend(0.5); length = 100 um; diam = 1 um }
    compartments { max_length = 50 um }
    region all { ra = 100 ohm*cm; cm = 1 uF/cm2; v_init = -65 mV }
    region soma { insert Na, K, Leak(gbar = 0.3 mS/cm2, erev = -54.4 mV + shift) }
    region dend { insert Leak(gbar = 0.05 mS/cm2, erev = -65 mV) }
    region side { insert Leak(gbar = 0.05 mS/cm2, erev = -65 mV) }
    spike when soma(0.5).v crosses -10 mV
}
cell Answer {
    section soma { length = 20 um; diam = 20 um; compartments = 1 }
    section dend { from soma(1); length = 100 um; diam = 2 um }
    compartments { max_length = 50 um }
    region all { ra = 100 ohm*cm; cm = 1 uF/cm2; v_init = -65 mV; insert Leak(gbar = 0.1 mS/cm2, erev = -65 mV) }
    spike when soma(0.5).v crosses -62 mV
}
synapse Kick {
    param tau = 2 ms
    state g: nS = 0 nS
    g' = -g / tau
    on event(weight: nS) { g += weight }
    current i = g * (v - 0 mV)
}
junction Gap { current i = 0.4 nS * dv }
network main {
    population pixels: Pixel[5]
    population hidden: Branched[4]
    population out: Answer[3]
    connect pixels -> hidden.dend(0.9) via Kick { rule = all_to_all; weight ~ uniform(0.5 nS, 1.5 nS); delay ~ uniform(1 ms, 3 ms) }
    connect hidden -> out.dend(0.7) via Kick { rule = all_to_all; weight ~ uniform(1 nS, 4 nS); delay = 1 ms }
}
run { duration = 15 ms; dt = 0.1 ms; method = cnexp; celsius = 6.3 degC; seed = 5; record out.soma(0.5).v; record spikes of {pixels, hidden, out} }";

fn net(others: &[(&str, &str)]) -> String {
    others.iter().fold(NET.to_string(), |text, (old, new)| {
        assert!(text.contains(old), "no `{old}`");
        text.replace(old, new)
    })
}

#[test]
fn trials_are_runs() {
    let out = "population out: Answer[3]\n";
    let more = |line: &str| format!("{out}    {line}\n");
    let step = more("input step: pulse(delay = 1 ms, duration = 5 ms, amplitude = 0.1 nA) -> hidden.soma(0.5)");
    let gaps = more("connect hidden.side(1) -- hidden.side(0.5) via Gap { rule = all_to_all }");
    let differ = more("param hidden.shift ~ normal(0 mV, 1 mV)\n    init hidden.v ~ uniform(-70 mV, -60 mV)");
    let cases: &[&[(&str, &str)]] = &[
        &[],
        &[("method = cnexp", "method = crank_nicolson")],
        &[("hidden.dend(0.9)", "hidden.side"), ("out.dend(0.7)", "out.dend")],
        // Going back through junctions of branched cells is for the interpreter alone, which takes all of these but every fourth.
        &[(out, &gaps)],
        &[(out, &step)],
        &[(out, &differ)],
        &[("dt = 0.1 ms;", "dt = 0.1 ms; arrivals = after_threshold;")],
    ];
    for (number, others) in cases.iter().enumerate() {
        let learnt = if number == 2 { "hidden.out.dend.Kick.weight" } else { "hidden.out.Kick.weight" };
        is_a_run(number, &net(others), ("out.soma(0.5).v", learnt), TRIALS);
    }
}

const LEARN: [&str; 9] = [
    "pixels.hidden.dend(0.9).Kick.weight",
    "hidden.out.Kick.weight",
    "hidden.all.ra",
    "hidden.all.cm",
    "hidden.all.v_init",
    "hidden.soma.Na.gbar",
    "hidden.dend.Leak.gbar",
    "out.all.Leak.erev",
    "hidden.dend(0.9).Kick.tau",
];

fn lesson(learn: &[&str], read: &str, (threads, precision): (usize, Precision)) -> Lesson {
    Lesson {
        gradient: Gradient::Bptt,
        input: ("pixels.x".into(), Span::default()),
        example: input()[..PIXELS].into(),
        frame: None,
        learn: learn.iter().map(|name| Learn::of(name)).collect(),
        reads: placed(vec![Read::State(read.into())]),
        carried: Carried { surrogate: Surrogate::FastSigmoid(0.2), detached: true },
        trials: TRIALS,
        threads,
        precision,
    }
}

fn learner(
    text: &str,
    learn: &[&str],
    (options, threads, precision): (&CompileOptions, usize, Precision),
    choice: &dyn Fn() -> Result<EngineChoice, EngineError>,
) -> Result<Learner, Vec<Diagnostic>> {
    let checked = checked(text);
    assert!(checked.model.is_some(), "{:?}", checked.diagnostics);
    let lesson = lesson(learn, "out.soma(0.5).v", (threads, precision));
    Learner::new(&checked, options, &lesson, choice)
}

fn gradient(learner: &mut Learner, parameters: &[f64]) -> Found {
    let judge = judge_of(hir::Loss::MeanSquare { correct: -55.0, incorrect: -64.0 }, Readout::Mean);
    learner.gradient(parameters, &[input()], &mut of_trials(&judge)).unwrap()
}

/// Where branched cells do not spike, all is smooth: what spikes are those of the pixels, which nothing that learns reaches.
#[test]
fn gradients_are_central_differences() {
    let quiet = [
        ("hidden -> out", "pixels -> out"),
        ("spike when soma(0.5).v crosses -62 mV\n", ""),
        ("{pixels, hidden, out}", "{pixels, hidden}"),
    ];
    let gaps = (
        "population out: Answer[3]\n",
        "population out: Answer[3]\n    connect hidden.side(1) -- out.dend(0.5) via Gap { rule = all_to_all }\n",
    );
    let learn = LEARN.map(|name| if name.starts_with("hidden.out") { "pixels.out.Kick.weight" } else { name });
    // What cells begin with at junctions does not learn.
    let without: Vec<&str> = learn.into_iter().filter(|name| !name.ends_with("v_init")).collect();
    let alone = ["pixels.out.Kick.weight", "out.all.v_init", "out.all.ra", "out.all.Leak.erev"];
    // The method, other words of the net, and what learns.
    type Case<'a> = (&'a str, &'a [(&'a str, &'a str)], &'a [&'a str]);
    let cases: [Case<'_>; 3] = [
        ("method = cnexp", &[gaps], &without),
        ("method = crank_nicolson", &[gaps], &without),
        ("method = cnexp", &[], &alone),
    ];
    for (method, more, learn) in cases {
        let others = [&quiet[..], more, &[("method = cnexp", method)]].concat();
        let options = CompileOptions::default();
        let mut learner =
            learner(&net(&others), learn, (&options, 1, Precision::F64), &interp).unwrap_or_else(|d| panic!("{d:?}"));
        let begin: Vec<f64> = learner.fitted().iter().map(|one| one.value.unwrap()).collect();
        let found = gradient(&mut learner, &begin);
        let numbers = learner.learnt().len();
        for (at, &slope) in found.parameters.iter().enumerate() {
            let h = 1e-5 * begin[at].abs();
            let mut loss = |by: f64| {
                let mut values = begin.clone();
                values[at] += by;
                gradient(&mut learner, &values).loss
            };
            let near = (loss(h) - loss(-h)) / (2.0 * h);
            let scale = (slope * begin[at]).abs();
            assert!(scale > 1e-3, "{method}, {}: {slope}", learn[at + numbers]);
            assert!(
                (near - slope).abs() * begin[at].abs() < 1e-6 * scale.max(1.0),
                "{method}, {}: {near} {slope}",
                learn[at + numbers]
            );
        }
        let weights: Vec<Vec<f64>> = learner.learnt().into_iter().map(|(_, values)| values).collect();
        for number in 0..numbers {
            let slopes = learner.in_order(number, &found.edges[number]);
            for (edge, &slope) in slopes.iter().enumerate().step_by(8) {
                let mut loss = |by: f64| {
                    let mut all = weights.clone();
                    all[number][edge] += by;
                    learner.set_learnt(&all);
                    gradient(&mut learner, &begin).loss
                };
                // Derivatives are in nS, weights in mS.
                let h = 1e-5 * weights[number][edge];
                let near = (loss(h) - loss(-h)) / (2.0 * h) * 1e-6;
                assert!(
                    slope.abs() > 1e-5 && (near - slope).abs() < 1e-6 * slope.abs().max(1.0),
                    "{method}, {number}, {edge}: {near} {slope}"
                );
            }
            learner.set_learnt(&weights);
        }
    }
}

#[test]
fn gradients_are_the_same_on_every_engine() {
    let options = CompileOptions::default();
    let text = net(&[]);
    let of = |options: &CompileOptions, threads, precision, choice: &dyn Fn() -> Result<EngineChoice, EngineError>| {
        let mut learner =
            learner(&text, &LEARN, (options, threads, precision), choice).unwrap_or_else(|d| panic!("{d:?}"));
        let begin: Vec<f64> = learner.fitted().iter().map(|one| one.value.unwrap()).collect();
        gradient(&mut learner, &begin)
    };
    let expected = of(&options, 1, Precision::F64, &interp);
    assert!(expected.spikes.iter().sum::<u64>() > 40, "{:?}", expected.spikes);
    assert!(
        expected.edges.iter().flatten().chain(&expected.parameters).all(|slope| *slope != 0.0 && slope.is_finite())
    );
    let near = |found: &Found, tolerance: f64, what: &str| {
        assert_eq!(found.spikes, expected.spikes, "{what}");
        let both = found.edges.iter().flatten().zip(expected.edges.iter().flatten());
        let largest = expected.edges.iter().flatten().fold(0.0, |most: f64, x| most.max(x.abs()));
        for (found, expected) in both {
            assert!((found - expected).abs() < tolerance * largest, "{what}: {found}, not {expected}");
        }
        for (found, expected) in found.parameters.iter().zip(&expected.parameters) {
            assert!((found - expected).abs() < tolerance * expected.abs(), "{what}: {found}, not {expected}");
        }
    };
    let one = of(&options, 1, Precision::F64, &native);
    near(&one, 1e-9, "native");
    near(&of(&options, 2, Precision::F32, &native), 2e-3, "single precision");
    assert_eq!(one, of(&options, 3, Precision::F64, &native));
    let mut native = learner(&text, &LEARN, (&options, 1, Precision::F64), &native).unwrap_or_else(|d| panic!("{d:?}"));
    let begin: Vec<f64> = native.fitted().iter().map(|one| one.value.unwrap()).collect();
    any_room_has_the_same_bits(&mut native, &mut |learner| gradient(learner, &begin));
    #[cfg(feature = "xla")]
    if let Some(xla) = crate::training::xla() {
        near(&of(&crate::training::for_xla(), 1, Precision::F64, &xla), 1e-9, "XLA");
    }
}

#[test]
fn what_is_wrong_with_places_is_told() {
    let said = |read: &str, learn: &[&str], others: &[(&str, &str)]| {
        let checked = checked(&net(others));
        assert!(checked.model.is_some(), "{:?}", checked.diagnostics);
        let lesson = lesson(learn, read, (1, Precision::F64));
        match Learner::new(&checked, &CompileOptions::default(), &lesson, &interp) {
            Ok(learner) => format!("fine: {:?}", learner.outputs()),
            Err(errors) => errors
                .iter()
                .flat_map(|d| std::iter::once(&d.message).chain(&d.help))
                .cloned()
                .collect::<Vec<_>>()
                .join("; "),
        }
    };
    let weights = ["hidden.out.Kick.weight"];
    assert_eq!(said("out.soma(0.5).v", &weights, &[]), format!("fine: [{OUT}]"));
    assert_eq!(said("hidden.side(1).v", &["pixels.hidden.Kick.weight"], &[]), "fine: [4]");
    assert_eq!(said("hidden.soma(0.5).Na.m", &["pixels.hidden.Kick.weight"], &[]), "fine: [4]");
    let cases = [
        (said("out.v", &weights, &[]), "`out.v` has a value in each compartment; say where: `out.soma(0.5).v`"),
        (said("out.axon(0.5).v", &weights, &[]), "the cells of `out` have no section `axon`"),
        (said("out.soma(2).v", &weights, &[]), "a place in `soma` is a number from 0 to 1"),
        (said("pixels.soma(0.5).v", &weights, &[]), "the cells of `pixels` have no sections"),
        (said("oat.soma(0.5).v", &weights, &[]), "there is no population `oat`"),
        (said("out.dend(0.5).m", &weights, &[]), "there is no state `m` at `dend(0.75)`"),
        (said("out.soma(0.5).v", &["pixels.hidden.soma(0.5).Kick.weight"], &[]), "there is no projection"),
    ];
    for (found, expected) in cases {
        assert!(found.contains(expected), "{found}, not {expected}");
    }
}
