//! Tests of: training. Gradients that go back through spikes, synapses and delays, against PyTorch's.

use crate::models::root;
use neuroc::codegen::plan::Precision;
use neuroc::diag::Diagnostic;
use neuroc::discretize::Carried;
use neuroc::driver::{self, Checked, CompileOptions, EngineChoice, Learner, Lesson, Read};
use neuroc::engine::native::NativeOptions;
use neuroc::engine::{EngineError, rustc};
use neuroc::hir::Sources;
use neuroc::simulate::Loss;
use neuroc::step::Surrogate;
use serde_json::Value;
use std::path::Path;

const PIXELS: usize = 5;
const HIDDEN: usize = 4;
const OUT: usize = 3;
const TRIALS: usize = 3;
const STEPS: usize = 20;

fn interp() -> Result<EngineChoice, EngineError> {
    Ok(EngineChoice::Interp)
}

fn native(threads: usize) -> Result<EngineChoice, EngineError> {
    let cache = Some(Path::new(env!("CARGO_TARGET_TMPDIR")).join("kernels"));
    let compile = rustc::CompileOptions { cache, ..Default::default() };
    Ok(EngineChoice::Native(NativeOptions { threads, arrangement: Default::default(), compile }))
}

/// The net of `tests/reference/snntorch_nets.py`.
fn net(reset: &str) -> Checked {
    let text = format!(
        "cell Pixel {{ param x = 0.5; state q = 0; q' = x / 1 ms; spike when q > 1 {{ q -= 1 }} }}
        cell Leaky {{ param tau = 8 ms; state v: mV = 0 mV; v' = -v / tau; spike when v > 1 mV {{ {reset} }} }}
        synapse Kick {{ on event(weight: mV) {{ v += weight }} }}
        network main {{
            population pixels: Pixel[{PIXELS}]
            population hidden: Leaky[{HIDDEN}]
            population out: Leaky[{OUT}]
            connect pixels -> hidden via Kick {{ rule = all_to_all; weight ~ uniform(0 mV, 1 mV); delay = 1 ms }}
            connect hidden -> hidden via Kick {{ rule = all_to_all; weight ~ uniform(0 mV, 1 mV); delay = 2 ms }}
            connect hidden -> out via Kick {{ rule = all_to_all; weight ~ uniform(0 mV, 1 mV); delay = 1 ms }}
        }}
        run {{ duration = {STEPS} ms; dt = 1 ms; record spikes of {{pixels, hidden, out}} }}"
    );
    let checked = driver::check_text("net.neuro", &root(), text, &Sources);
    assert!(checked.model.is_some(), "{:?}", checked.diagnostics);
    checked
}

fn surrogate(text: &str) -> Surrogate {
    let slope = text.split_once('=').map(|(_, slope)| slope.trim_matches([' ', ')']).parse().unwrap());
    match (text.split('(').next().unwrap(), slope) {
        ("fast_sigmoid", Some(slope)) => Surrogate::FastSigmoid(slope),
        ("arctan", Some(slope)) => Surrogate::Arctan(slope),
        ("sigmoid", Some(slope)) => Surrogate::Sigmoid(slope),
        ("straight_through", None) => Surrogate::StraightThrough,
        _ => panic!("{text}"),
    }
}

/// Weights of the reference, by target and then by source, without those of a cell to itself.
fn weights(sources: usize, targets: usize, phase: f64, itself: bool) -> Vec<f64> {
    let of = |i: usize, j: usize| 0.45 * (1.7 * i as f64 + 2.3 * j as f64 + phase).sin() + 0.25;
    (0..targets).flat_map(|j| (0..sources).filter(move |&i| itself || i != j).map(move |i| of(i, j))).collect()
}

fn input() -> Vec<f64> {
    let x = |b: usize, i: usize| 0.15 + 0.8 * ((3 * b + 2 * i) % 7) as f64 / 7.0;
    (0..TRIALS).flat_map(|b| (0..PIXELS).map(move |i| x(b, i))).collect()
}

fn learner(
    checked: &Checked,
    read: Read,
    carried: Carried,
    choice: &dyn Fn() -> Result<EngineChoice, EngineError>,
) -> Result<Learner, Vec<Diagnostic>> {
    let lesson = Lesson {
        input: "pixels.x".into(),
        example: input()[..PIXELS].into(),
        learn: ["pixels.hidden.Kick.weight", "hidden.hidden.Kick.weight", "hidden.out.Kick.weight"]
            .map(String::from)
            .to_vec(),
        read,
        carried,
        trials: TRIALS,
        threads: 2,
        precision: Precision::F64,
    };
    Learner::new(checked, &CompileOptions::default(), &lesson, choice)
}

#[test]
fn gradients_through_spikes_are_those_of_pytorch() {
    let text = std::fs::read_to_string(root().join("tests/reference/snntorch_nets.json")).unwrap();
    let reference: Value = serde_json::from_str(&text).unwrap();
    let cases = reference["cases"].as_array().unwrap();
    assert_eq!(cases.len(), 64);
    let case = cases.iter().find(|case| case["loss"] == "cross_entropy(spike_count(out))").unwrap();
    let checked = net("v -= 1 mV");
    let carried = Carried {
        surrogate: surrogate(case["surrogate"].as_str().unwrap()),
        detached: case["detached"].as_bool().unwrap(),
    };
    for choice in [&interp as &dyn Fn() -> _, &|| native(2)] {
        let mut learner =
            learner(&checked, Read::SpikeCount("out".into()), carried, choice).unwrap_or_else(|d| panic!("{d:?}"));
        learner.set_weights(&[
            weights(PIXELS, HIDDEN, 0.3, true),
            weights(HIDDEN, HIDDEN, 1.1, false),
            weights(HIDDEN, OUT, 2.0, true),
        ]);
        let mut loss = |counts: &[f64]| {
            let mut value = 0.0;
            let mut slopes = vec![0.0; counts.len()];
            for b in 0..TRIALS {
                let row = &counts[b * OUT..(b + 1) * OUT];
                let sum: f64 = row.iter().map(|x| x.exp()).sum();
                value += (sum.ln() - row[b % OUT]) / TRIALS as f64;
                for (j, x) in row.iter().enumerate() {
                    slopes[b * OUT + j] = (x.exp() / sum - f64::from(j == b % OUT)) / TRIALS as f64;
                }
            }
            Loss { value, slopes: vec![slopes] }
        };
        let found = learner.gradient(&[], &input(), &mut loss).unwrap();
        assert_eq!(found.spikes, case["spikes"].as_u64().unwrap());
        assert!((found.loss - case["value"].as_f64().unwrap()).abs() < 1e-12);
        let expected = |name: &str, sources: usize, targets: usize, itself: bool| -> Vec<f64> {
            let all: Vec<f64> = case[name].as_array().unwrap().iter().map(|x| x.as_f64().unwrap()).collect();
            (0..targets)
                .flat_map(|j| (0..sources).filter(move |&i| itself || i != j).map(move |i| (i, j)))
                .map(|(i, j)| all[i * targets + j])
                .collect()
        };
        let all = [
            expected("pixels", PIXELS, HIDDEN, true),
            expected("recurrent", HIDDEN, HIDDEN, false),
            expected("out", HIDDEN, OUT, true),
        ];
        for (number, expected) in all.iter().enumerate() {}
        for (number, expected) in all.iter().enumerate() {
            let found = learner.in_order(number, &found.weights[number]);
            for (a, b) in found.iter().zip(expected) {
                assert!((a - b).abs() <= 1e-10 * b.abs().max(1e-3), "{number}: {found:?}\n{expected:?}");
            }
        }
    }
}
