//! Tests of: training. Gradients that go back through spikes, synapses and delays, against PyTorch's; what learns, what is refused.

use crate::cli::{folder, neuroc};
use crate::models::root;
use neuroc::codegen::plan::Precision;
use neuroc::data::{Dataset, Kept as Split, Samples};
use neuroc::diag::Diagnostic;
use neuroc::discretize::Carried;
use neuroc::driver::{self, Checked, CompileOptions, EngineChoice, Experiment, Learner, Lesson, Read};
use neuroc::engine::native::NativeOptions;
use neuroc::engine::{Engine, EngineError, rustc};
use neuroc::hir::{self, Gradient, Learn, Readout, Sources, SweptNumber};
use neuroc::interp::Interp;
use neuroc::simulate::{Loss, RunOptions, Unwatched};
use neuroc::source::Span;
use neuroc::step::Surrogate;
use neuroc::train::{self, Judge, Kept, Reading, Session, Trained};
use serde_json::Value;
use std::path::Path;

pub const PIXELS: usize = 5;
pub const HIDDEN: usize = 4;
pub const OUT: usize = 3;
pub const TRIALS: usize = 3;
const STEPS: usize = 20;
const CLASSES: [usize; TRIALS] = [0, 1, 2];

pub fn interp() -> Result<EngineChoice, EngineError> {
    Ok(EngineChoice::Interp)
}

pub fn native() -> Result<EngineChoice, EngineError> {
    let cache = Some(Path::new(env!("CARGO_TARGET_TMPDIR")).join("kernels"));
    let compile = rustc::CompileOptions { cache, ..Default::default() };
    Ok(EngineChoice::Native(NativeOptions { threads: 2, arrangement: Default::default(), compile }))
}

/// XLA's CPU plugin, with its executables kept; none where there is no plugin.
#[cfg(feature = "xla")]
pub fn xla() -> Option<impl Fn() -> Result<EngineChoice, EngineError>> {
    let cache = Path::new(env!("CARGO_TARGET_TMPDIR")).join("executables");
    let compiler = neuroc::engine::executables::Compiler::new(crate::pjrt::cpu()?, cache);
    Some(move || Ok(EngineChoice::Xla(compiler.clone(), Default::default())))
}

/// Options of a compilation for XLA.
#[cfg(feature = "xla")]
pub fn for_xla() -> CompileOptions {
    CompileOptions { backend: neuroc::passes::Backend::Xla, ..CompileOptions::default() }
}

pub fn checked(text: &str) -> Checked {
    driver::check_text("net.neuro", &root().join("examples"), text, &Sources)
}

/// The net of `tests/reference/snntorch_nets.py`, with more in its `train` block or run.
fn net(reset: &str, more: &str) -> Checked {
    let checked = checked(&net_text(reset, more));
    assert!(checked.model.is_some(), "{:?}", checked.diagnostics);
    checked
}

fn net_text(reset: &str, more: &str) -> String {
    format!(
        "cell Pixel {{ param x = 0.5; state q = 0; q' = x / 1 ms; spike when q > 1 {{ q -= 1 }} }}
        cell Leaky {{
            param tau = 8 ms
            state v: mV = 0 mV
            v' = -v / tau
            spike when v > 1 mV {{ {reset} }}
        }}
        synapse Kick {{ on event(weight: mV) {{ v += weight }} }}
        network main {{
            param tau = 8 ms
            population pixels: Pixel[{PIXELS}]
            population hidden: Leaky[{HIDDEN}]
            population out: Leaky[{OUT}]
            param {{hidden, out}}.tau = tau
            connect pixels -> hidden via Kick {{ rule = all_to_all; weight ~ uniform(0 mV, 1 mV); delay = 1 ms }}
            connect hidden -> hidden via Kick {{ rule = all_to_all; weight ~ uniform(0 mV, 1 mV); delay = 2 ms }}
            connect hidden -> out via Kick {{ rule = all_to_all; weight ~ uniform(0 mV, 1 mV); delay = 1 ms }}
        }}
        run {{ duration = {STEPS} ms; dt = 1 ms; record spikes of {{pixels, hidden, out}} }}
        {more}"
    )
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

/// A `train` block of the net with a surrogate that is an expression.
fn training(surrogate: &str) -> String {
    format!(
        "train {{
            data = \"data/digits.npz\"
            input = pixels.x
            learn pixels.hidden.Kick.weight
            loss = cross_entropy(spike_count(out))
            surrogate = {surrogate}
        }}
        use std.surrogates.multi_gaussian"
    )
}

/// A loss of the reference, and what reads it out.
fn judge(text: &str) -> (Judge, Vec<Read>) {
    let (loss, readout) = match text {
        "cross_entropy(spike_count(out))" => (hir::Loss::CrossEntropy, Readout::SpikeCount),
        "mse(spike_count(out), correct = 8, incorrect = 2)" => {
            (hir::Loss::MeanSquare { correct: 8.0, incorrect: 2.0 }, Readout::SpikeCount)
        }
        "cross_entropy(mean(out.v))" => (hir::Loss::CrossEntropy, Readout::Mean),
        "cross_entropy(max(out.v))" => (hir::Loss::CrossEntropy, Readout::Max),
        "cross_entropy(every_step(out.v))" | "cross_entropy(every_step(out))" => {
            (hir::Loss::CrossEntropy, Readout::EveryStep)
        }
        "cross_entropy(first_spike(out))" => (hir::Loss::CrossEntropy, Readout::FirstSpike),
        _ => panic!("{text}"),
    };
    let read = match readout {
        Readout::SpikeCount => Read::SpikeCount("out".into()),
        Readout::FirstSpike => Read::Spikes("out".into()),
        Readout::EveryStep if !text.contains("out.v") => Read::Spikes("out".into()),
        Readout::EveryStep | Readout::Mean | Readout::Max | Readout::Last => Read::State("out.v".into()),
    };
    (judge_of(loss, readout), vec![read])
}

pub fn judge_of(loss: hir::Loss, readout: Readout) -> Judge {
    Judge { loss, unit: 1.0, read: Reading { readout, of: 0, cells: OUT }, kept: Vec::new(), dt: 1.0 }
}

/// Adds a `keep` line of the reference.
fn keep(text: &str, (judge, reads): &mut (Judge, Vec<Read>)) {
    let (readout, read) = match text {
        "keep spike_count(hidden) = 5 .. 8 within 4" => (Readout::SpikeCount, Read::SpikeCount("hidden".into())),
        "keep mean(hidden.v) = 0.5 .. 0.6 mV within 0.2 mV" => (Readout::Mean, Read::State("hidden.v".into())),
        _ => panic!("{text}"),
    };
    let number =
        |at: usize| text.split_whitespace().filter_map(|word| word.parse::<f64>().ok()).nth(at).expect("a number");
    let read_of = Reading { readout, of: reads.len(), cells: HIDDEN };
    judge.kept.push(Kept { read: read_of, low: number(0), high: number(1), within: number(2) });
    reads.push(read);
}

/// The edges of the reference by target and then by source, without those of a cell to itself.
fn edges(sources: usize, targets: usize, itself: bool) -> impl Iterator<Item = (usize, usize)> {
    (0..targets).flat_map(move |j| (0..sources).filter(move |&i| itself || i != j).map(move |i| (i, j)))
}

fn weights(sources: usize, targets: usize, phase: f64, itself: bool) -> Vec<f64> {
    let of = |(i, j): (usize, usize)| 0.45 * (1.7 * i as f64 + 2.3 * j as f64 + phase).sin() + 0.25;
    edges(sources, targets, itself).map(of).collect()
}

fn all_weights() -> [Vec<f64>; 3] {
    [weights(PIXELS, HIDDEN, 0.3, true), weights(HIDDEN, HIDDEN, 1.1, false), weights(HIDDEN, OUT, 2.0, true)]
}

pub fn input() -> Vec<f64> {
    let x = |b: usize, i: usize| 0.15 + 0.8 * ((3 * b + 2 * i) % 7) as f64 / 7.0;
    (0..TRIALS).flat_map(|b| (0..PIXELS).map(move |i| x(b, i))).collect()
}

/// What is read out, without places in a file.
pub fn placed(reads: Vec<Read>) -> Vec<(Read, Span)> {
    reads.into_iter().map(|read| (read, Span::default())).collect()
}

fn learner(
    checked: &Checked,
    read: Vec<Read>,
    carried: Carried,
    threads: usize,
    choice: &dyn Fn() -> Result<EngineChoice, EngineError>,
) -> Result<Learner, Vec<Diagnostic>> {
    learner_with(checked, &CompileOptions::default(), read, carried, (threads, Precision::F64), choice)
}

fn learner_with(
    checked: &Checked,
    options: &CompileOptions,
    read: Vec<Read>,
    carried: Carried,
    (threads, precision): (usize, Precision),
    choice: &dyn Fn() -> Result<EngineChoice, EngineError>,
) -> Result<Learner, Vec<Diagnostic>> {
    let learn = ["pixels.hidden.Kick.weight", "hidden.hidden.Kick.weight", "hidden.out.Kick.weight", "tau"];
    let learn = learn.map(Learn::of).to_vec();
    let lesson = Lesson {
        gradient: Gradient::Bptt,
        input: ("pixels.x".into(), Span::default()),
        example: input()[..PIXELS].into(),
        frame: None,
        learn,
        reads: placed(read),
        carried,
        trials: TRIALS,
        threads,
        precision,
    };
    let mut learner = Learner::new(checked, options, &lesson, choice)?;
    learner.set_learnt(&all_weights());
    Ok(learner)
}

#[test]
fn gradients_through_spikes_are_those_of_pytorch() {
    // All of them interpreted, some of them natively.
    agrees_with_pytorch(|_| true, (2, Precision::F64), &CompileOptions::default(), &interp);
    agrees_with_pytorch(|number| number % 9 == 0, (2, Precision::F64), &CompileOptions::default(), &native);
}

/// What is carried between cells in single precision; the cells are interpreted.
#[test]
fn what_is_carried_in_single_precision_is_close_to_pytorch() {
    agrees_with_pytorch(|_| true, (2, Precision::F32), &CompileOptions::default(), &interp);
}

/// Kernels, too. No cell comes so near to its threshold that precision decides whether it spikes, as some do with the input of the others.
#[test]
fn gradients_in_single_precision_are_close_to_double() {
    let input: Vec<f64> = input().iter().map(|x| x + 0.0137).collect();
    for (reset, detached) in [("v -= 1 mV", false), ("v = 0 mV", true)] {
        let checked = net(reset, "");
        for said in ["cross_entropy(spike_count(out))", "cross_entropy(mean(out.v))"] {
            let (judge, read) = judge(said);
            let [single, double] = [Precision::F32, Precision::F64].map(|precision| {
                let carried = Carried { surrogate: Surrogate::FastSigmoid(4.0), detached };
                let options = CompileOptions::default();
                let learner = learner_with(&checked, &options, read.clone(), carried, (2, precision), &native);
                let mut learner = learner.unwrap_or_else(|d| panic!("{d:?}"));
                let mut loss = |samples: &[Vec<f64>]| {
                    let judged = judge.judge(samples, TRIALS, &CLASSES);
                    Loss { value: judged.loss, slopes: judged.slopes }
                };
                learner.gradient(&[8.0], std::slice::from_ref(&input), &mut loss).unwrap()
            });
            assert!(single.spikes == double.spikes && single.edges != double.edges);
            let lists = [(vec![single.loss], vec![double.loss]), (single.parameters, double.parameters)];
            for (single, double) in single.edges.into_iter().zip(double.edges).chain(lists) {
                let most = double.iter().fold(0.0, |most: f64, x| most.max(x.abs()));
                assert!(most > 0.0, "{double:?}");
                single.iter().zip(&double).for_each(|(a, b)| assert!((a - b).abs() <= SINGLE * most, "{a} {b} {most}"));
            }
        }
    }
}

/// How far a loss or a derivative in single precision may be from that in double precision, for each unit of the largest of its list.
const SINGLE: f64 = 1e-5;

#[cfg(feature = "xla")]
#[test]
fn gradients_on_xla_are_those_of_pytorch() {
    let Some(xla) = xla() else { return };
    agrees_with_pytorch(
        |number| number % 7 == 0 || [64..69, 84..92].iter().any(|some| some.contains(&number)),
        (1, Precision::F64),
        &for_xla(),
        &xla,
    );
}

fn agrees_with_pytorch(
    which: impl Fn(usize) -> bool,
    (threads, precision): (usize, Precision),
    options: &CompileOptions,
    choice: &dyn Fn() -> Result<EngineChoice, EngineError>,
) {
    let text = std::fs::read_to_string(root().join("tests/reference/snntorch_nets.json")).unwrap();
    let reference: Value = serde_json::from_str(&text).unwrap();
    let cases = reference["cases"].as_array().unwrap();
    assert_eq!(cases.len(), 92);
    for (_, case) in cases.iter().enumerate().filter(|(number, _)| which(*number)) {
        let said = |key: &str| case[key].as_str().unwrap();
        let reset = if said("reset") == "subtract" { "v -= 1 mV" } else { "v = 0 mV" };
        // Those with an `x` are expressions, of the model.
        let (surrogate, more) = match said("surrogate") {
            written if written.contains('x') => (Surrogate::None, training(written)),
            named => (surrogate(named), String::new()),
        };
        let checked = net(reset, &more);
        let carried = Carried { surrogate, detached: case["detached"].as_bool().unwrap() };
        let mut both = judge(said("loss"));
        for line in case["keep"].as_array().into_iter().flatten() {
            keep(line.as_str().unwrap(), &mut both);
        }
        let (judge, read) = both;
        let learner = learner_with(&checked, options, read, carried, (threads, precision), choice);
        let mut learner = learner.unwrap_or_else(|d| panic!("{d:?}"));
        let mut loss = |samples: &[Vec<f64>]| {
            let judged = judge.judge(samples, TRIALS, &CLASSES);
            Loss { value: judged.loss, slopes: judged.slopes }
        };
        let found = learner.gradient(&[8.0], &[input()], &mut loss).unwrap();
        assert_eq!(found.spikes.iter().sum::<u64>(), case["spikes"].as_u64().unwrap());
        // Sums of what nearly cancels are as exact as what they are made of.
        let close = |a: f64, b: f64, most: f64| match precision {
            Precision::F64 => (a - b).abs() <= 1e-10 * b.abs().max(1e-3),
            Precision::F32 | Precision::Bf16 => (a - b).abs() <= SINGLE * most,
        };
        let close_alone = |a: f64, b: f64| close(a, b, b.abs().max(1e-3));
        assert!(close_alone(found.loss, case["value"].as_f64().unwrap()), "{case}");
        let tau = case["tau"].as_f64().unwrap();
        assert!(close_alone(found.parameters[0], tau), "{:?} {tau}\n{case}", found.parameters);
        let all = [("pixels", PIXELS, HIDDEN, true), ("recurrent", HIDDEN, HIDDEN, false), ("out", HIDDEN, OUT, true)];
        for (number, (name, sources, targets, itself)) in all.into_iter().enumerate() {
            let all: Vec<f64> = case[name].as_array().unwrap().iter().map(|x| x.as_f64().unwrap()).collect();
            let most = all.iter().fold(0.0, |most: f64, x| most.max(x.abs()));
            let found = learner.in_order(number, &found.edges[number]);
            for (a, (i, j)) in found.into_iter().zip(edges(sources, targets, itself)) {
                assert!(close(a, all[i * targets + j], most), "{name} {i} {j}: {a}\n{case}");
            }
        }
    }
}

/// Edges as matrices and as lists, one delay and many, kernels, several projections to one receptor, currents and noise in time, a state or spikes that are
/// read: on XLA there is what the interpreter and native code find, and another run has the same bits.
#[cfg(feature = "xla")]
#[test]
fn gradients_on_xla_are_those_of_other_engines() {
    let Some(xla) = xla() else { return };
    let nets = [
        (
            "population hidden: Leaky[300]
            population out: Leaky[3]
            connect pixels -> hidden via Kick { rule = fixed_in_degree(n = 5); weight ~ uniform(0 mV, 0.9 mV); delay = 2 ms }
            connect hidden -> hidden via Kick { rule = fixed_in_degree(n = 4); weight ~ uniform(-0.3 mV, 0.6 mV); delay ~ uniform(1 ms, 6 ms) }
            connect hidden -> out via Kick { rule = all_to_all; weight ~ uniform(-0.1 mV, 0.15 mV); delay ~ uniform(1 ms, 3 ms) }
            input wave: sine(delay = 1 ms, duration = 19 ms, amplitude = 0.05 mV/ms, period = 7 ms) -> hidden.drive
            input hum: noise(mean = 0 mV/ms, sd = 0.05 mV/ms, every = 2 ms) -> out.drive",
            &["pixels.hidden.Kick.weight", "hidden.hidden.Kick.weight", "hidden.out.Kick.weight", "hidden.tau"][..],
            Read::SpikeCount("out".into()),
        ),
        (
            "population hidden: Leaky[20, 20, 2]
            population out: Leaky[3]
            connect pixels -> hidden via Kick { rule = convolution(kernel = 3, padding = 1); weight ~ uniform(-0.2 mV, 0.5 mV); delay = 1 ms }
            connect hidden -> out via Kick { rule = all_to_all; weight ~ uniform(-0.02 mV, 0.03 mV); delay = 3 ms }
            connect pixels -> out via Kick { rule = all_to_all; weight ~ uniform(0 mV, 0.01 mV); delay = 1 ms }
            input step: pulse(delay = 5 ms, duration = 5 ms, amplitude = 0.02 mV/ms) -> out.drive",
            &["pixels.hidden.Kick.weight", "pixels.out.Kick.weight", "out.tau", "hidden.threshold"],
            Read::State("out.v".into()),
        ),
        (
            "population hidden: Leaky[7]
            population out: Leaky[3]
            connect pixels -> hidden via Kick { rule = probability(0.1); weight ~ uniform(0 mV, 0.2 mV); delay ~ uniform(1 ms, 4 ms) }
            connect hidden -> out via Kick { rule = all_to_all; weight ~ uniform(0 mV, 0.7 mV); delay = 2 ms }",
            &["pixels.hidden.Kick.weight", "hidden.tau"],
            Read::SpikeCount("out".into()),
        ),
    ];
    for (number, (network, learn, read)) in nets.into_iter().enumerate() {
        let text = format!(
            "cell Pixel {{ param x = 0.5; state q = 0; q' = x / 1 ms; spike when q > 1 {{ q -= 1 }} }}
            cell Leaky {{
                param tau = 8 ms
                param threshold = 1 mV
                input drive: mV/ms
                state v: mV = 0 mV
                v' = -v / tau + drive
                spike when v > threshold {{ v -= threshold }}
            }}
            synapse Kick {{ on event(weight: mV) {{ v += weight }} }}
            network main {{ population pixels: Pixel[20, 20]; {network} }}
            run {{ duration = {STEPS} ms; dt = 1 ms; seed = 5; record spikes of out }}"
        );
        let checked = checked(&text);
        assert!(checked.model.is_some(), "{:?}", checked.diagnostics);
        let x = |b: usize, i: usize| 0.05 + 0.8 * ((5 * b + 3 * i) % 11) as f64 / 11.0;
        let input = [(0..TRIALS).flat_map(|b| (0..400).map(move |i| x(b, i))).collect::<Vec<f64>>()];
        let lesson = Lesson {
            gradient: Gradient::Bptt,
            input: ("pixels.x".into(), Span::default()),
            example: input[0][..400].into(),
            frame: None,
            learn: learn.iter().map(|name| Learn::of(name)).collect(),
            reads: placed(vec![read.clone()]),
            carried: Carried { surrogate: Surrogate::FastSigmoid(2.0), detached: false },
            trials: TRIALS,
            threads: 1,
            precision: Precision::F64,
        };
        let readout = if matches!(read, Read::State(_)) { Readout::Max } else { Readout::SpikeCount };
        let judge = judge_of(hir::Loss::CrossEntropy, readout);
        let mut loss = |samples: &[Vec<f64>]| {
            let judged = judge.judge(samples, TRIALS, &CLASSES);
            Loss { value: judged.loss, slopes: judged.slopes }
        };
        let mut found = |options: CompileOptions, choice: &dyn Fn() -> Result<EngineChoice, EngineError>| {
            let mut learner = Learner::new(&checked, &options, &lesson, choice).unwrap_or_else(|d| panic!("{d:?}"));
            // Parameters move, too, so that what begins with them does.
            let parameters: Vec<f64> = learner.fitted().iter().map(|one| 0.95 * one.value.unwrap()).collect();
            let first = learner.gradient(&parameters, &input, &mut loss).unwrap();
            assert_eq!(learner.gradient(&parameters, &input, &mut loss).unwrap(), first);
            let (samples, spikes) = learner.samples(&parameters, &input).unwrap();
            assert_eq!((loss(&samples).value, spikes), (first.loss, first.spikes.clone()));
            first
        };
        let expected = found(CompileOptions::default(), &interp);
        let natively = found(CompileOptions::default(), &native);
        let on_xla = found(for_xla(), &xla);
        assert!(expected.spikes.iter().sum::<u64>() > 1000, "{number}: {:?} spikes", expected.spikes);
        for other in [natively, on_xla] {
            assert_eq!(other.spikes, expected.spikes, "{number}");
            let all = |found: &driver::Found| -> Vec<Vec<f64>> {
                found.edges.iter().cloned().chain([found.parameters.clone(), vec![found.loss]]).collect()
            };
            for (list, (a, b)) in all(&other).iter().zip(all(&expected)).enumerate() {
                assert_eq!(a.len(), b.len());
                let largest = b.iter().fold(0.0, |most: f64, x| most.max(x.abs()));
                assert!(largest > 0.0, "{number}, {list}: nothing moves the loss");
                let error = a.iter().zip(&b).fold(0.0, |most: f64, (a, b)| most.max((a - b).abs()));
                println!("{number}, {list}: {} numbers, up to {largest:.3e}, off by {error:.1e}", b.len());
                assert!(error <= 1e-10 * largest, "{number}, {list}: {error:e} of {largest:e}");
            }
        }
    }
}

/// The module that moves weights: a matrix with gaps, and a list with bounds.
#[cfg(feature = "xla")]
fn update() -> String {
    use neuroc::codegen::stablehlo::builder::{Element, TensorType};
    use neuroc::codegen::stablehlo::mlir;
    use neuroc::simulate::trials::{Gaps, Held};
    let held = |dims: &[usize], gaps, range| Held { ty: TensorType::new(Element::F32, dims), gaps, range, unit: 1.0 };
    let arrays =
        [held(&[2, 3], Gaps::Masked, [f64::NEG_INFINITY, f64::INFINITY]), held(&[7], Gaps::Last, [0.1, f64::INFINITY])];
    let how = hir::Optimizer::Adam { lr: 1e-3, beta1: 0.9, beta2: 0.999, epsilon: 1e-8, weight_decay: 0.01 };
    let module = mlir::write("update", &[train::update(how, true, &arrays)], &[], mlir::Format::Plain);
    String::from_utf8(module).unwrap()
}

/// The modules of both directions, to be read: matrices with a state that is read out, and lists with counts; and the module that moves weights.
#[cfg(feature = "xla")]
#[test]
fn modules_of_training_are_as_reviewed() {
    let of_net = |network: &str, read: Read| {
        let checked = checked(&format!(
            "cell Pixel {{ param x = 0.5; state q = 0; q' = x / 1 ms; spike when q > 1 {{ q -= 1 }} }}
            cell Leaky {{ param tau = 8 ms; state v: mV = 0 mV; v' = -v / tau; spike when v > 1 mV {{ v -= 1 mV }} }}
            synapse Kick {{ on event(weight: mV) {{ v += weight }} }}
            network main {{ {network} }}
            run {{ duration = 5 ms; dt = 1 ms; record spikes of out }}"
        ));
        assert!(checked.model.is_some(), "{:?}", checked.diagnostics);
        let lesson = Lesson {
            gradient: Gradient::Bptt,
            input: ("pixels.x".into(), Span::default()),
            frame: None,
            example: vec![0.5; if network.contains("[300]") { 300 } else { 4 }].into(),
            learn: ["Kick.weight", "out.tau"].map(Learn::of).to_vec(),
            reads: placed(vec![read]),
            carried: Carried { surrogate: Surrogate::FastSigmoid(2.0), detached: true },
            trials: 2,
            threads: 1,
            precision: Precision::F64,
        };
        Learner::modules(&checked, &for_xla(), &lesson).unwrap_or_else(|d| panic!("{d:?}"))
    };
    let matrices = "population pixels: Pixel[4]
        population out: Leaky[3]
        connect pixels -> out via Kick { rule = all_to_all; weight = 0.5 mV; delay = 2 ms }";
    let lists = "population pixels: Pixel[300]
        population out: Leaky[300]
        connect pixels -> out via Kick { rule = fixed_in_degree(n = 2); weight = 0.5 mV; delay = 1 ms }";
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path("../stablehlo");
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(|| {
        insta::assert_snapshot!("training_matrices", of_net(matrices, Read::State("out.v".into())));
        insta::assert_snapshot!("training_lists", of_net(lists, Read::SpikeCount("out".into())));
        insta::assert_snapshot!("training_update", update());
    });
}

#[test]
fn any_number_of_threads_has_the_same_bits() {
    let checked = net("v -= 1 mV", "");
    let carried = Carried { surrogate: Surrogate::FastSigmoid(4.0), detached: false };
    let (judge, read) = judge("cross_entropy(spike_count(out))");
    let found = [1, 2, 5].map(|threads| {
        let mut learner = learner(&checked, read.clone(), carried, threads, &native).unwrap();
        let mut loss = |samples: &[Vec<f64>]| {
            let judged = judge.judge(samples, TRIALS, &CLASSES);
            Loss { value: judged.loss, slopes: judged.slopes }
        };
        learner.gradient(&[8.0], &[input()], &mut loss).unwrap()
    });
    assert_eq!(found[0], found[1]);
    assert_eq!(found[0], found[2]);
}

/// With room for all states, for two of them and for some numbers between these there are the same bits.
pub fn any_room_has_the_same_bits(learner: &mut Learner, gradient: &mut dyn FnMut(&mut Learner) -> driver::Found) {
    let whole = learner.limit(f64::INFINITY).unwrap();
    let expected = gradient(learner);
    assert_eq!((whole.kept, whole.again), (learner.steps() as u64 + 1, 0));
    let least = learner.limit(0.0).unwrap_err();
    assert!(learner.limit(0.999 * least).is_err());
    let mut before = u64::MAX;
    for share in [0.0, 0.1, 0.3, 0.6, 0.999] {
        let budget = least + share * (whole.bytes - least);
        let room = learner.limit(budget).unwrap();
        assert!(room.bytes <= budget && room.again > 0 && room.again <= before, "{room:?} in {budget}");
        before = room.again;
        assert_eq!(gradient(learner), expected, "{room:?}");
        assert_eq!(gradient(learner), expected, "{room:?}, the second time");
    }
    assert_eq!(learner.limit(whole.bytes), Ok(whole));
    assert_eq!(gradient(learner), expected);
}

#[test]
fn steps_that_are_taken_again_have_the_same_bits() {
    let noisy = net_text("v -= 1 mV", "").replace("v' = -v / tau", "v' = -v / tau + 0.1 mV * sqrt(2 / tau) * xi()");
    assert!(noisy.contains("xi()"));
    let carried = Carried { surrogate: Surrogate::FastSigmoid(4.0), detached: false };
    let (judge, read) = judge("cross_entropy(every_step(out.v))");
    let mut gradient = |learner: &mut Learner| learner.gradient(&[8.0], &[input()], &mut of_trials(&judge)).unwrap();
    for (choice, precision) in [
        (&interp as &dyn Fn() -> Result<EngineChoice, EngineError>, Precision::F64),
        (&native, Precision::F64),
        (&native, Precision::F32),
    ] {
        let options = CompileOptions::default();
        let learner = learner_with(&checked(&noisy), &options, read.clone(), carried, (2, precision), choice);
        any_room_has_the_same_bits(&mut learner.unwrap_or_else(|d| panic!("{d:?}")), &mut gradient);
    }
    // What is passed on is read where weights learn.
    let mut learner = rates(RATES, &RATES_LEARN, &CompileOptions::default(), (1, Precision::F64), &interp);
    let begin: Vec<f64> = learner.fitted().iter().map(|one| one.value.unwrap()).collect();
    any_room_has_the_same_bits(&mut learner, &mut |learner| of_rates(learner, &begin));
}

/// The projections of [`net`] with delays between steps: how many edges end where, and whether cells reach themselves.
const PROJECTIONS: [(&str, usize, usize, f64, bool); 3] = [
    ("pixels.hidden", PIXELS, HIDDEN, 0.3, true),
    ("hidden.hidden", HIDDEN, HIDDEN, 1.1, false),
    ("hidden.out", HIDDEN, OUT, 2.0, true),
];

/// All of [`net`] but its parameter, with the weights and delays of `tests/reference/jax_delays.py`.
fn delayed(
    checked: &Checked,
    options: &CompileOptions,
    read: Vec<Read>,
    detached: bool,
    threads: usize,
    choice: &dyn Fn() -> Result<EngineChoice, EngineError>,
) -> Learner {
    let ms = |number: &str| SweptNumber { number: number.into(), unit: Some("ms".into()), span: None };
    let range = Some((ms("1"), ms("5")));
    let both = |(name, ..): &(&str, usize, usize, f64, bool)| {
        let [weight, delay] = ["weight", "delay"].map(|key| Learn::of(&format!("{name}.Kick.{key}")));
        [weight, Learn { range: range.clone(), ..delay }]
    };
    let lesson = Lesson {
        gradient: Gradient::Bptt,
        input: ("pixels.x".into(), Span::default()),
        example: input()[..PIXELS].into(),
        frame: None,
        learn: PROJECTIONS.iter().flat_map(both).collect(),
        reads: placed(read),
        carried: Carried { surrogate: Surrogate::FastSigmoid(4.0), detached },
        trials: TRIALS,
        threads,
        precision: Precision::F64,
    };
    let learner = Learner::new(checked, options, &lesson, choice);
    let mut learner = learner.unwrap_or_else(|d| panic!("{d:?}"));
    let both = |&(_, sources, targets, phase, itself): &(&str, usize, usize, f64, bool)| {
        let delay = |(i, j): (usize, usize)| 3.0 + 1.9 * (1.3 * i as f64 + 0.7 * j as f64 + phase).sin();
        [weights(sources, targets, phase, itself), edges(sources, targets, itself).map(delay).collect()]
    };
    learner.set_learnt(&PROJECTIONS.iter().flat_map(both).collect::<Vec<_>>());
    learner
}

pub fn of_trials(judge: &Judge) -> impl FnMut(&[Vec<f64>]) -> Loss {
    move |samples| {
        let judged = judge.judge(samples, TRIALS, &CLASSES);
        Loss { value: judged.loss, slopes: judged.slopes }
    }
}

#[test]
fn gradients_of_delays_are_those_of_jax() {
    let text = std::fs::read_to_string(root().join("tests/reference/jax_delays.json")).unwrap();
    let reference: Value = serde_json::from_str(&text).unwrap();
    let checked = net("v -= 1 mV", "");
    for case in reference["cases"].as_array().unwrap() {
        let (judge, read) = judge(case["loss"].as_str().unwrap());
        let detached = case["detached"].as_bool().unwrap();
        let found_by = |choice: &dyn Fn() -> _, options: &CompileOptions, threads: usize| {
            let mut learner = delayed(&checked, options, read.clone(), detached, threads, choice);
            let mut found = learner.gradient(&[], &[input()], &mut of_trials(&judge)).unwrap();
            found.edges = (0..).zip(&found.edges).map(|(at, values)| learner.in_order(at, values)).collect();
            found
        };
        let engines: [(&dyn Fn() -> _, usize); 4] = [(&interp, 1), (&native, 1), (&native, 2), (&native, 5)];
        let found = engines.map(|(choice, threads)| found_by(choice, &CompileOptions::default(), threads));
        assert!(found.iter().all(|other| *other == found[0]), "{case}");
        let all = found[..1].to_vec();
        #[cfg(feature = "xla")]
        let all: Vec<_> = all.into_iter().chain(xla().map(|xla| found_by(&xla, &for_xla(), 1))).collect();
        for found in all {
            let close = |a: f64, b: f64| (a - b).abs() <= 1e-10 * b.abs().max(1e-3);
            assert_eq!(found.spikes.iter().sum::<u64>(), case["spikes"].as_u64().unwrap());
            assert!(close(found.loss, case["value"].as_f64().unwrap()), "{case}");
            let mut lists = found.edges.iter();
            for (name, (_, sources, targets, _, itself)) in ["pixels", "recurrent", "out"].into_iter().zip(PROJECTIONS)
            {
                for key in ["weights", "delays"] {
                    let all = case[name][key].as_array().unwrap().iter().map(|x| x.as_f64().unwrap());
                    let all: Vec<f64> = all.collect();
                    assert!(all.iter().any(|x| x.abs() > 1e-3), "{name} {key}");
                    for (&a, (i, j)) in lists.next().unwrap().iter().zip(edges(sources, targets, itself)) {
                        let b = all[i * targets + j];
                        assert!(close(a, b), "{name} {key} {i} {j}: {a} {b}");
                    }
                }
            }
        }
    }
}

/// The loss of a membrane that does not spike is smooth in the delays of what reaches it, from step to step, and has two slopes at a whole step.
#[test]
fn gradients_of_delays_are_central_differences() {
    let text = net_text("v -= 1 mV", "").replace("out: Leaky", "out: Quiet").replace(
        "synapse Kick",
        "cell Quiet { param tau = 8 ms; state v: mV = 0 mV; v' = -v / tau }
        synapse Kick",
    );
    let checked = checked(&text.replace("{pixels, hidden, out} }", "{pixels, hidden} }"));
    let (judge, read) = judge("cross_entropy(max(out.v))");
    let mut learner = delayed(&checked, &CompileOptions::default(), read, true, 2, &native);
    let at = |learner: &mut Learner| learner.gradient(&[], &[input()], &mut of_trials(&judge)).unwrap();
    let number = 5;
    assert!(learner.are_delays(number));
    let begin: Vec<Vec<f64>> = learner.learnt().into_iter().map(|(_, values)| values).collect();
    let found = at(&mut learner);
    let slopes = learner.in_order(number, &found.edges[number]);
    let mut moved = |edge: usize, to: f64| {
        let mut all = begin.clone();
        all[number][edge] = to;
        learner.set_learnt(&all);
        let found = at(&mut learner);
        (found.loss, learner.in_order(number, &found.edges[number])[edge])
    };
    for (edge, &slope) in slopes.iter().enumerate() {
        let (x, h) = (begin[number][edge], 1e-5);
        let near = (moved(edge, x + h).0 - moved(edge, x - h).0) / (2.0 * h);
        assert!(slope.abs() > 1e-6 && (near - slope).abs() < 1e-6 * slope.abs().max(1e-3), "{edge}: {near} {slope}");
        // At a whole step the slope is that of the step which follows.
        let whole = x.floor();
        let (loss, slope) = moved(edge, whole);
        let [behind, before] = [h, -h].map(|h| (moved(edge, whole + h).0 - loss) / h);
        assert!((behind - slope).abs() < 1e-3 * slope.abs().max(1e-2), "{edge}: {behind} {slope}");
        assert!(whole == 1.0 || (before - slope).abs() > 1e-4 * slope.abs(), "{edge}: {before} {slope}");
    }
}

/// What cells begin with follows the parameters that learn, and what a sample gives its cells, also where it differs from cell to cell by its number or by
/// chance: all trials have the same cells.
#[test]
fn what_cells_begin_with_follows_parameters_and_samples() {
    let each =
        ["= 2 * slow", "= 2 * slow * (1 + index)", "~ uniform(4 ms, slow)", "= if index == 0 then slow else 9 ms"];
    each.into_iter().for_each(begins_with);
}

fn begins_with(of_cells: &str) {
    let text = "cell Pixel { param x = 0.5; param y = 2 * x; state q = x; q' = y / 1 ms; spike when q > 1 { q -= 1 } }
        cell Quiet {
            param tau = 8 ms
            param v0 = 0.5 mV
            param w0 = 3 * v0
            state v: mV = v0
            input drive: mV/ms
            v' = (w0 - v) / tau + drive
        }
        synapse Kick { on event(weight: mV) { v += weight } }
        network main {
            param slow = 8 ms
            population pixels: Pixel[5]
            population out: Quiet[3]
            param out.tau OF_CELLS
            input slope: pulse(delay = 2 ms, duration = 9 ms, amplitude = 0.03 mV/ms * index) -> out.drive
            connect pixels -> out via Kick { rule = all_to_all; weight ~ uniform(0 mV, 1 mV); delay = 1 ms }
        }
        run { duration = 20 ms; dt = 1 ms; seed = 3; record out.v every 1 ms; record spikes of pixels }";
    let checked = checked(&text.replace("OF_CELLS", of_cells));
    assert!(checked.model.is_some(), "{:?}", checked.diagnostics);
    let judge = judge_of(hir::Loss::MeanSquare { correct: 1.0, incorrect: 0.0 }, Readout::Mean);
    let reads = vec![Read::State("out.v".into())];
    let learner = |choice: &dyn Fn() -> _, options: &CompileOptions| {
        let lesson = Lesson {
            gradient: Gradient::Bptt,
            input: ("pixels.x".into(), Span::default()),
            example: input()[..PIXELS].into(),
            frame: None,
            learn: ["Kick.weight", "out.v0", "slow"].map(Learn::of).to_vec(),
            reads: placed(reads.clone()),
            carried: Carried { surrogate: Surrogate::FastSigmoid(4.0), detached: true },
            trials: TRIALS,
            threads: 1,
            precision: Precision::F64,
        };
        Learner::new(&checked, options, &lesson, choice).unwrap_or_else(|d| panic!("{d:?}"))
    };
    let mut engines = vec![learner(&interp, &CompileOptions::default()), learner(&native, &CompileOptions::default())];
    #[cfg(feature = "xla")]
    engines.extend(xla().map(|xla| learner(&xla, &for_xla())));
    for learner in &mut engines {
        let mut at = |v0: f64, slow: f64| learner.gradient(&[v0, slow], &[input()], &mut of_trials(&judge)).unwrap();
        for (v0, slow) in [(0.5, 8.0), (0.9, 5.0)] {
            let (found, h) = (at(v0, slow), 1e-5);
            let near = [(at(v0 + h, slow), at(v0 - h, slow)), (at(v0, slow + h), at(v0, slow - h))];
            for (slope, (more, less)) in found.parameters.iter().zip(near) {
                let near = (more.loss - less.loss) / (2.0 * h);
                assert!(slope.abs() > 1e-4 && (near - slope).abs() < 1e-6 * slope.abs().max(1e-2), "{near} {slope}");
            }
        }
        // Every trial is a run of its own.
        let samples = learner.samples(&[0.5, 8.0], &[input()]).unwrap();
        for trial in 0..TRIALS {
            let values = input()[trial * PIXELS..(trial + 1) * PIXELS].into();
            let per_cell = vec![neuroc::ode::PerCell { name: "pixels.x".into(), values }];
            let weights = learner.learnt()[0].1.clone();
            let per_cell = [
                per_cell,
                vec![neuroc::ode::PerCell { name: "pixels.out.Kick.weight".into(), values: weights.into() }],
            ]
            .concat();
            let options = CompileOptions { per_cell, ..CompileOptions::default() };
            let result = crate::models::run(&checked, &options, crate::models::Way::Optimized);
            let v = crate::events::series(&result, "out.v");
            for (step, cell) in (1..=STEPS).flat_map(|step| (0..OUT).map(move |cell| (step, cell))) {
                let own = samples.0[0][(step - 1) * TRIALS * OUT + trial * OUT + cell];
                assert!((own - v.values.get(step, cell)).abs() < 1e-12, "trial {trial}, step {step}: {own}");
            }
        }
    }
}

/// Whatever a step has in it, what trials read out is what a run records, sample by sample. Where there is chance, this is so of the first trial.
#[test]
fn trials_are_runs() {
    let run = "run { duration = 20 ms; dt = 1 ms;";
    let after = (run, "run { arrivals = after_threshold; duration = 20 ms; dt = 1 ms;");
    let synapse = "synapse Kick { on event(weight: mV) { v += weight } }";
    let currents = "synapse Kick { state c: nA = 0 nA; c' = -c / 3 ms; on event(weight: mV) { c += weight * 1 nF / 1 ms }; current i = -c }";
    let driven = ("v' = -v / tau", "v' = -v / tau - i_syn / 1 nF");
    let out = "connect hidden -> out via Kick";
    let more = |line: &str| format!("{line}\n            {out}");
    let analog = format!(
        "cell Light {{ param x = 0.5; let v = x * 1 mV }}
        synapse Analog {{ sum s(weight: nA) = weight * v_pre / 1 mV; current i = -s }}
        {synapse}"
    );
    let light = format!(
        "population light: Light[3]
            param light.x = 0.4 * (1 + index)
            connect light -> hidden via Analog {{ rule = all_to_all; weight ~ uniform(0 nA, 0.2 nA) }}
            {out}"
    );
    let none: &[(&str, &str)] = &[];
    let at_once: &[(&str, &str)] = &[after, ("delay = 1 ms", "delay = 0 ms"), ("delay = 2 ms", "delay = 0 ms")];
    // What a spike does to its cell, other words of the net, and how many trials are runs.
    type Case<'a> = (&'a str, &'a [(&'a str, &'a str)], usize);
    let cases: &[Case<'_>] = &[
        ("v -= 1 mV", none, TRIALS),
        ("v = 0 mV", none, TRIALS),
        ("v = 0 mV; refractory 3 ms", none, TRIALS),
        ("v = 0 mV", &[after], TRIALS),
        ("v -= 1 mV", at_once, TRIALS),
        ("v = 0 mV", at_once, TRIALS),
        ("v = 0 mV; refractory 2 ms", at_once, TRIALS),
        ("v = 0 mV", &[("spike when v > 1 mV", "spike when v crosses 1 mV")], TRIALS),
        ("v = 0 mV", &[("dt = 1 ms;", "dt = 0.25 ms;")], TRIALS),
        ("v -= 1 mV", &[("dt = 1 ms;", "dt = 1 ms; method = rk4;")], TRIALS),
        ("v -= 1 mV", &[(synapse, &analog), driven, (out, &light)], TRIALS),
        (
            "v = 0 mV",
            &[(synapse, &analog), driven, (out, &light), ("dt = 1 ms;", "dt = 0.5 ms; method = euler;")],
            TRIALS,
        ),
        ("v -= 1 mV", &[("dt = 1 ms;", "dt = 0.5 ms; method = euler;")], TRIALS),
        ("v -= 1 mV", &[(synapse, currents), driven, ("dt = 1 ms;", "dt = 0.5 ms; method = exact;")], TRIALS),
        ("v = 0 mV", &[(synapse, currents), driven, ("dt = 1 ms;", "dt = 0.5 ms; method = cnexp;")], TRIALS),
        ("v = 0 mV", &[(synapse, currents), driven, ("dt = 1 ms;", "dt = 0.5 ms; method = crank_nicolson;")], TRIALS),
        ("v = 0 mV", &[(synapse, currents), driven, ("dt = 1 ms;", "dt = 0.5 ms; method = heun;")], TRIALS),
        (
            "v = 0 mV",
            &[
                ("v' = -v / tau", "input drive: mV/ms; v' = -v / tau + drive"),
                (out, &more("input hum: noise(mean = 0.1 mV/ms, sd = 0.3 mV/ms, every = 1 ms) -> {hidden, out}.drive")),
            ],
            1,
        ),
        ("v = 0 mV", &[("v' = -v / tau", "v' = -v / tau + 0.2 mV * xi() / sqrt(1 ms)")], 1),
        (
            "v = 0 mV",
            &[(
                out,
                &more("drive {hidden, out} via Kick from poisson(rate = 200 Hz) { weight = 0.4 mV; delay = 1 ms }"),
            )],
            1,
        ),
        (
            "v = 0 mV",
            &[
                ("synapse Kick", "cell Chance { spike when poisson(300 Hz) } synapse Kick"),
                (
                    out,
                    &more(
                        "population chance: Chance[6]\n connect chance -> hidden via Kick { rule = all_to_all; weight = 0.3 mV; delay = 3 ms }",
                    ),
                ),
            ],
            1,
        ),
        (
            "v = 0 mV",
            &[
                ("v' = -v / tau", "input drive: mV/ms; v' = -v / tau + drive"),
                (
                    out,
                    &more(
                        "input wave: sine(delay = 2 ms, duration = 15 ms, amplitude = 0.3 mV/ms, period = 7 ms) -> {hidden, out}.drive",
                    ),
                ),
            ],
            TRIALS,
        ),
        (
            "v = 0 mV",
            &[(
                "rule = all_to_all; weight ~ uniform(0 mV, 1 mV); delay = 1 ms",
                "rule = probability(p = 0.6); weight ~ uniform(0 mV, 1 mV); delay ~ uniform(1 ms, 4 ms)",
            )],
            TRIALS,
        ),
    ];
    for (number, &(reset, others, trials)) in cases.iter().enumerate() {
        let text = others.iter().fold(net_text(reset, ""), |text, (old, new)| {
            assert!(text.contains(old), "{number}: no `{old}`");
            text.replace(old, new)
        });
        let text = text.replace("record spikes of", "record out.v; record spikes of");
        is_a_run(number, &text, ("out.v", "hidden.out.Kick.weight"), trials);
    }
}

/// Behind the threshold or ahead of it, with a delay and without: the loss of a membrane that does not spike is smooth in the weights that lead to it.
#[test]
fn gradients_of_weights_are_central_differences_wherever_events_arrive() {
    let after = ("dt = 1 ms;", "dt = 1 ms; arrivals = after_threshold;");
    let at_once = ("delay = 1 ms", "delay = 0 ms");
    for others in [&[][..], &[after], &[after, at_once, ("delay = 2 ms", "delay = 0 ms")]] {
        let text = net_text("v -= 1 mV", "").replace("out: Leaky", "out: Quiet").replace(
            "synapse Kick",
            "cell Quiet { param tau = 8 ms; state v: mV = 0 mV; v' = -v / tau }
            synapse Kick",
        );
        let text = others.iter().fold(text, |text, (old, new)| text.replace(old, new));
        let checked = checked(&text.replace("{pixels, hidden, out} }", "{pixels, hidden} }"));
        assert!(checked.model.is_some(), "{:?}", checked.diagnostics);
        let (judge, read) = judge("cross_entropy(mean(out.v))");
        let carried = Carried { surrogate: Surrogate::FastSigmoid(4.0), detached: true };
        let mut learner = learner(&checked, read, carried, 1, &interp).unwrap_or_else(|d| panic!("{d:?}"));
        let (begin, h) = (all_weights(), 1e-5);
        let found = learner.gradient(&[8.0], &[input()], &mut of_trials(&judge)).unwrap();
        let slopes = learner.in_order(2, &found.edges[2]);
        for (edge, &slope) in slopes.iter().enumerate() {
            let mut loss = |by: f64| {
                let mut all = begin.clone();
                all[2][edge] += by;
                learner.set_learnt(&all);
                learner.gradient(&[8.0], &[input()], &mut of_trials(&judge)).unwrap().loss
            };
            let near = (loss(h) - loss(-h)) / (2.0 * h);
            assert!(slope.abs() > 1e-6 && (near - slope).abs() < 1e-7, "{others:?}, {edge}: {near} {slope}");
        }
    }
}

/// Compares so many trials with runs, which record the voltage of this name; weights of that name learn.
pub fn is_a_run(number: usize, text: &str, (voltage, learnt): (&str, &str), trials: usize) {
    let checked = checked(text);
    assert!(checked.model.is_some(), "{number}: {:?}", checked.diagnostics);
    let carried = Carried { surrogate: Surrogate::FastSigmoid(4.0), detached: true };
    let read = vec![Read::State(voltage.into()), Read::Spikes("out".into()), Read::SpikeCount("hidden".into())];
    let lesson = Lesson {
        gradient: Gradient::Bptt,
        input: ("pixels.x".into(), Span::default()),
        example: input()[..PIXELS].into(),
        frame: None,
        learn: vec![Learn::of(learnt)],
        reads: placed(read),
        carried,
        trials: TRIALS,
        threads: 1,
        precision: Precision::F64,
    };
    let choices: [&dyn Fn() -> _; 2] = [&interp, &native];
    for choice in choices.into_iter().take(if number.is_multiple_of(4) { 2 } else { 1 }) {
        let learner = Learner::new(&checked, &CompileOptions::default(), &lesson, choice);
        let mut learner = learner.unwrap_or_else(|d| panic!("{number}: {d:?}"));
        let (samples, _) = learner.samples(&[], &[input()]).unwrap();
        for trial in 0..trials {
            let values = input()[trial * PIXELS..(trial + 1) * PIXELS].into();
            let per_cell = vec![neuroc::ode::PerCell { name: "pixels.x".into(), values }];
            let options = CompileOptions { per_cell, ..CompileOptions::default() };
            let result = crate::models::run(&checked, &options, crate::models::Way::Plain);
            let v = crate::events::series(&result, voltage);
            let spikes = |population: &str| {
                let train = result.spikes.iter().find(|train| train.population == population).unwrap();
                train.t.iter().copied().zip(train.i.iter().map(|&i| i as usize)).collect::<Vec<(f64, usize)>>()
            };
            let steps = v.t.len() - 1;
            assert!(!spikes("out").is_empty() || number == 6, "{number}: nothing spikes");
            for (step, cell) in (1..=steps).flat_map(|step| (0..OUT).map(move |cell| (step, cell))) {
                let at = (step - 1) * TRIALS * OUT + trial * OUT + cell;
                let (own, run) = (samples[0][at], v.values.get(step, cell));
                assert!(
                    (own - run).abs() < 1e-11,
                    "{number}: trial {trial}, step {step}, cell {cell}: {own}, not {run}"
                );
                let spiked = spikes("out").iter().any(|&(t, i)| i == cell && (t - v.t[step]).abs() < 1e-9);
                assert_eq!(samples[1][at] > 0.5, spiked, "{number}: trial {trial}, step {step}, cell {cell}");
            }
            let count = |cell: usize| spikes("hidden").iter().filter(|spike| spike.1 == cell).count() as f64;
            let counts: Vec<f64> = (0..HIDDEN).map(count).collect();
            assert_eq!(samples[2][trial * HIDDEN..(trial + 1) * HIDDEN], counts, "{number}: trial {trial}");
        }
    }
}

/// Trials that nothing is learnt from have delays of whole steps, as a run that takes what was learnt.
#[test]
fn trials_with_learnt_delays_are_runs() {
    let checked = net("v -= 1 mV", "");
    let mut learner =
        delayed(&checked, &CompileOptions::default(), vec![Read::SpikeCount("out".into())], true, 1, &interp);
    let learnt = |learner: &Learner| -> Vec<neuroc::ode::PerCell> {
        let all = learner.learnt().into_iter();
        all.map(|(name, values)| neuroc::ode::PerCell { name: name.into(), values: values.into() }).collect()
    };
    let before = learnt(&learner);
    let (counts, _) = learner.samples(&[], &[input()]).unwrap();
    assert_eq!(learnt(&learner), before);
    let found = learner.gradient(&[], &[input()], &mut |samples| {
        assert_ne!(samples, counts);
        Loss { value: 0.0, slopes: vec![vec![0.0; samples.len()]] }
    });
    assert!(found.unwrap().edges.iter().flatten().all(|slope| *slope == 0.0));
    for trial in 0..TRIALS {
        assert_eq!(counted(&checked, &before, trial), counts[0][trial * OUT..(trial + 1) * OUT], "trial {trial}");
    }
}

/// How often the cells of `out` spike in a run with these weights and delays, for the input of a trial.
fn counted(checked: &Checked, edges: &[neuroc::ode::PerCell], trial: usize) -> [f64; OUT] {
    let mut per_cell = edges.to_vec();
    let values = input()[trial * PIXELS..(trial + 1) * PIXELS].into();
    per_cell.push(neuroc::ode::PerCell { name: "pixels.x".into(), values });
    let options = CompileOptions { per_cell, ..CompileOptions::default() };
    let compiled = driver::compile(checked, &options, &mut |_, _, _| {}).unwrap();
    let experiment = Experiment::new(compiled).unwrap();
    let mut engine = experiment.interpreter().unwrap().engine;
    let (result, _) = experiment.run(engine.as_mut(), &RunOptions::default(), &mut Unwatched).unwrap();
    let out = result.spikes.iter().find(|train| train.population == "out").unwrap();
    let mut found = [0.0; OUT];
    out.i.iter().for_each(|&cell| found[cell as usize] += 1.0);
    found
}

const TRAIN: &str = "train {
    data = \"data/digits.npz\"
    input = pixels.x
    learn pixels.out.Kick.weight
    loss = cross_entropy(mean(out.v))
    optimizer = adam(lr = 0.05)
    batch = 64
    epochs = 2
}";

/// A network without hidden cells that learns digits, with some of its text replaced.
fn digits(pixels: usize, train: &str) -> String {
    format!(
        "cell Pixel {{ param x = 8; state q = 0; q' = x / 32 ms; spike when q > 1 {{ q -= 1 }} }}
        cell Readout {{ param tau = 10 ms; state v: mV = 0 mV; v' = -v / tau }}
        synapse Kick {{ on event(weight: mV) {{ v += weight }} }}
        network main {{
            population pixels: Pixel[{pixels}]
            population out: Readout[10]
            connect pixels -> out via Kick {{ rule = all_to_all; weight = 0 mV; delay = 1 ms }}
        }}
        run {{ duration = 10 ms; dt = 1 ms; record out.v every 1 ms }}
        {train}"
    )
}

fn session(text: &str) -> Result<Session, Vec<Diagnostic>> {
    let checked = checked(text);
    Session::new(&checked, &CompileOptions::default(), &native, 2, Precision::F64, 1e9)
}

#[cfg(feature = "xla")]
fn session_on_xla(text: &str, xla: &dyn Fn() -> Result<EngineChoice, EngineError>) -> Session {
    Session::new(&checked(text), &for_xla(), xla, 1, Precision::F64, 1e9).unwrap_or_else(|d| panic!("{d:?}"))
}

/// The example, as far as it comes in two epochs of one batch each.
#[cfg(feature = "xla")]
#[test]
fn digits_are_learnt_on_xla_as_natively() {
    let Some(xla) = xla() else { return };
    for name in ["digits", "digits_convolution", "digits_direct", "spike_order"] {
        let text = std::fs::read_to_string(root().join(format!("examples/{name}.neuro"))).unwrap();
        let text = text.replace("batch = 32", "batch = 60").replace("test = 0.2", "test = 0.9");
        let learns = |mut session: Session| {
            let mut score = || {
                let seen = session.epoch(&mut train::Unwatched).unwrap().unwrap();
                (seen, session.test().unwrap().unwrap())
            };
            [score(), score()]
        };
        let natively = learns(session(&text).unwrap_or_else(|d| panic!("{d:?}")));
        let on_xla = learns(session_on_xla(&text, &xla));
        for ((a, a_test), (b, b_test)) in on_xla.iter().zip(&natively) {
            for (a, b) in [(a, b), (a_test, b_test)] {
                assert!((a.loss - b.loss).abs() < 1e-9 * b.loss, "{name}: {a:?} {b:?}");
                assert_eq!((a.accuracy, a.spikes, a.samples), (b.accuracy, b.spikes, b.samples));
            }
        }
        assert!(on_xla[1].0.loss < on_xla[0].0.loss, "{name}: {on_xla:?}");
    }
}

/// Parameters that each cell has for itself: where all begin alike, their derivatives add up to that in the one that all share, which is PyTorch's.
#[test]
fn derivatives_in_what_each_cell_has_add_up() {
    let own = "param hidden.tau ~ normal(8 ms, 0 ms)\n            param out.tau ~ normal(8 ms, 0 ms)";
    let text = net_text("v -= 1 mV", "");
    let alone = checked(&text.replace("param {hidden, out}.tau = tau", own));
    let shared = checked(&text);
    let (judge, read) = judge("cross_entropy(spike_count(out))");
    let carried = Carried { surrogate: Surrogate::FastSigmoid(4.0), detached: false };
    let weights = ["pixels.hidden.Kick.weight", "hidden.hidden.Kick.weight", "hidden.out.Kick.weight"];
    let found_of = |checked: &Checked, learn: &[&str], threads, options: &CompileOptions, choice: &dyn Fn() -> _| {
        let lesson = Lesson {
            gradient: Gradient::Bptt,
            input: ("pixels.x".into(), Span::default()),
            example: input()[..PIXELS].into(),
            frame: None,
            learn: weights.iter().chain(learn).map(|name| Learn::of(name)).collect(),
            reads: placed(read.clone()),
            carried,
            trials: TRIALS,
            threads,
            precision: Precision::F64,
        };
        let mut learner = Learner::new(checked, options, &lesson, choice).unwrap_or_else(|d| panic!("{d:?}"));
        let mut all = all_weights().to_vec();
        all.extend(learner.learnt()[3..].iter().map(|(_, values)| values.clone()));
        learner.set_learnt(&all);
        let parameters: Vec<f64> = learner.fitted().iter().map(|one| one.value.unwrap()).collect();
        learner.gradient(&parameters, &[input()], &mut of_trials(&judge)).unwrap()
    };
    let plain = CompileOptions::default();
    let one = found_of(&shared, &["tau"], 1, &plain, &interp);
    let all: Vec<(&dyn Fn() -> _, usize, CompileOptions)> =
        vec![(&interp, 1, plain.clone()), (&native, 1, plain.clone()), (&native, 2, plain)];
    #[cfg(feature = "xla")]
    let xla = xla();
    #[cfg(feature = "xla")]
    let all: Vec<_> = all.into_iter().chain(xla.iter().map(|xla| (xla as &dyn Fn() -> _, 1, for_xla()))).collect();
    let mut first = None;
    for (choice, threads, options) in &all {
        let found = found_of(&alone, &["hidden.tau", "out.tau"], *threads, options, choice);
        let close = |a: f64, b: f64| (a - b).abs() <= 1e-10 * b.abs().max(1e-3);
        assert!(close(found.loss, one.loss) && found.spikes == one.spikes && found.parameters.is_empty());
        let [hidden, out] = [&found.edges[3], &found.edges[4]];
        assert_eq!((hidden.len(), out.len()), (HIDDEN, OUT));
        let sum: f64 = hidden.iter().chain(out).sum();
        assert!(close(sum, one.parameters[0]), "{sum} {:?}", one.parameters);
        assert!(hidden.iter().skip(1).all(|x| (x - hidden[0]).abs() > 1e-6), "{hidden:?}");
        for (own, shared) in found.edges.iter().zip(&one.edges) {
            own.iter().zip(shared).for_each(|(a, b)| assert!(close(*a, *b), "{a} {b}"));
        }
        match &first {
            Some(first) if *threads > 1 => assert_eq!(found, *first),
            Some(_) => {}
            None => first = Some(found),
        }
    }
}

/// Time constants of each cell learn, with the weights: natively what they learn on XLA, after an interruption what they learn without, and a run takes them.
#[test]
fn each_cell_learns_numbers_of_its_own() {
    let text = std::fs::read_to_string(root().join("examples/digits_direct.neuro")).unwrap();
    let text = text
        .replace("    connect pixels", "    param hidden.tau ~ uniform(8 ms, 12 ms)\n    connect pixels")
        .replace("learn {", "learn hidden.tau = 7.99 .. 12.01 ms\n    learn {")
        .replace("test = 0.2", "test = 0.9")
        .replace("batch = 32", "batch = 60");
    let epochs = |session: &mut Session, count: usize| -> Vec<f64> {
        (0..count).map(|_| session.epoch(&mut train::Unwatched).unwrap().unwrap().loss).collect()
    };
    let begin = || session(&text).unwrap_or_else(|d| panic!("{d:?}"));
    let mut whole = begin();
    assert_eq!(whole.count(), 6400 + 1000 + 100);
    let before = whole.trained().unwrap().edges[2].clone();
    let losses = epochs(&mut whole, 3);
    let trained = whole.trained().unwrap();
    let tau = &trained.edges[2];
    assert_eq!((tau.name.as_str(), tau.values.len()), ("hidden.tau", 100));
    assert!(tau.values.iter().all(|tau| (7.99..=12.01).contains(tau)), "{tau:?}");
    let moved = tau.values.iter().zip(before.values.iter()).filter(|(a, b)| a != b).count();
    assert!(moved > 50 && tau.values.iter().any(|tau| *tau > 8.1) && losses[2] < losses[0], "{moved} {losses:?}");
    #[cfg(feature = "xla")]
    if let Some(xla) = xla() {
        let on_xla = epochs(&mut session_on_xla(&text, &xla), 3);
        on_xla.iter().zip(&losses).for_each(|(a, b)| assert!((a - b).abs() < 1e-9 * b, "{on_xla:?} {losses:?}"));
    }
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("each_cell_learns.npz");
    let mut first = begin();
    epochs(&mut first, 2);
    first.trained().unwrap().write(&path).unwrap();
    let mut second = begin();
    second.resume(&Trained::read(&path).unwrap()).unwrap();
    assert_eq!(epochs(&mut second, 1), losses[2..]);
    assert_eq!(second.trained().unwrap(), trained);
    let options = CompileOptions { per_cell: trained.edges.clone(), ..CompileOptions::default() };
    let compiled = driver::compile(&checked(&text), &options, &mut |_, _, _| {}).unwrap();
    let experiment = Experiment::new(compiled).unwrap();
    let field = experiment.program().find_field("hidden.tau").unwrap();
    let mut run = Interp::new(experiment.compiled.program.clone(), &experiment.setup).unwrap();
    run.init().unwrap();
    let mut values = Vec::new();
    run.read(field, 0..100, &mut values).unwrap();
    assert_eq!(values, tau.values.to_vec());
}

/// Weights move in the unit of their synapse, parameters in that which they are written in: Adam's first step is as long as the learning rate.
#[test]
fn what_learns_moves_in_units_of_its_own() {
    let text = std::fs::read_to_string(root().join("examples/digits_direct.neuro")).unwrap();
    let text = text.replace("test = 0.2", "test = 0.9").replace("batch = 32", "batch = 180");
    let text = text.replace("learn {", "learn hidden.r\n    learn {");
    let mut session = session(&text).unwrap_or_else(|d| panic!("{d:?}"));
    let before = session.trained().unwrap();
    session.epoch(&mut train::Unwatched).unwrap().unwrap();
    let after = session.trained().unwrap();
    assert!(session.data().train().len() <= 180, "one batch");
    let units = [("pixels.hidden.Bright.weight", 1e-6), ("hidden.out.Kick.weight", 1.0)];
    for ((name, unit), (old, new)) in units.into_iter().zip(before.edges.iter().zip(&after.edges)) {
        assert_eq!(old.name, name);
        let moved: Vec<f64> = old.values.iter().zip(new.values.iter()).map(|(a, b)| (a - b).abs() / unit).collect();
        let as_far = moved.iter().filter(|step| (**step - 2e-3).abs() < 2e-5).count();
        assert!(moved.iter().all(|step| *step < 2.001e-3) && 2 * as_far > moved.len(), "{name}: {as_far}");
    }
    let number = |trained: &Trained| -> f64 {
        let text = trained.parameters[0].strip_prefix("hidden.r=").unwrap();
        text.strip_suffix(" GOhm").unwrap_or_else(|| panic!("{text}")).parse().unwrap()
    };
    let step = (number(&after) - number(&before)).abs();
    assert!((step - 2e-3).abs() < 2e-5, "{step}");
}

#[test]
fn digits_are_learnt_and_kept() {
    let mut session = session(&digits(64, TRAIN)).unwrap_or_else(|d| panic!("{d:?}"));
    assert_eq!(session.count(), 640);
    assert_eq!((session.data().train().len(), session.data().test().len()), (1438, 359));
    let before = session.test().unwrap().unwrap();
    let scores: Vec<_> = (0..3).map(|_| session.epoch(&mut train::Unwatched).unwrap().unwrap()).collect();
    let after = session.test().unwrap().unwrap();
    assert!(before.accuracy < 0.2 && after.accuracy > 0.85, "{before:?} {after:?}");
    assert!(scores[2].loss < 0.6 * scores[0].loss, "{scores:?}");
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("digits_are_learnt.npz");
    let trained = session.trained().unwrap();
    trained.write(&path).unwrap();
    assert_eq!(Trained::read(&path).unwrap(), trained);
}

/// What is learnt in two epochs of a batch each, which is plain descent: by so much, and by so much again.
#[test]
fn schedules_and_clipping_reach_what_learns() {
    let learnt = |more: &str| {
        let train =
            TRAIN.replace("adam(lr = 0.05)", "sgd(lr = 0.1)").replace("batch = 64", &format!("batch = 2000\n{more}"));
        let mut session = session(&digits(64, &train)).unwrap_or_else(|d| panic!("{d:?}"));
        let mut epoch = || {
            session.epoch(&mut train::Unwatched).unwrap().unwrap();
            session.trained().unwrap().edges[0].values.to_vec()
        };
        let first = epoch();
        let second: Vec<f64> = epoch().iter().zip(&first).map(|(x, y)| x - y).collect();
        (first, second)
    };
    let norm = |x: &[f64]| x.iter().map(|x| x * x).sum::<f64>().sqrt();
    let (first, second) = learnt("");
    assert!(norm(&first) > 1e-3 && norm(&second) > 1e-3);
    let (as_before, less) = learnt("schedule = step(every = 1, factor = 0.25)");
    assert_eq!(as_before, first);
    assert!((norm(&less) / norm(&second) - 0.25).abs() < 1e-12);
    let (first, second) = learnt("clip = 1e-3");
    for step in [first, second] {
        // The norm is a hair less, by what keeps it from 0 where it divides.
        assert!((norm(&step) / 1e-4 - 1.0).abs() < 1e-2, "{}", norm(&step));
    }
}

/// The example after some epochs with other words in its `train` block: the losses of all epochs, and how many spikes of hidden cells a test sample has.
fn of_digits(others: &[(&str, &str)]) -> (Vec<f64>, f64) {
    let text = std::fs::read_to_string(root().join("examples/digits.neuro")).unwrap();
    let text = others.iter().chain(&[("test = 0.2", "test = 0.7")]).fold(text, |text, (old, new)| {
        assert!(text.contains(old), "no `{old}`");
        text.replace(old, new)
    });
    let mut session = session(&text).unwrap_or_else(|d| panic!("{d:?}"));
    let losses = (0..3).map(|_| session.epoch(&mut train::Unwatched).unwrap().unwrap().loss).collect();
    (losses, session.test().unwrap().unwrap().spikes)
}

#[test]
fn activity_is_kept_within_bounds() {
    let with = |line: &str| of_digits(&[("batch = 32", &format!("{line}\nbatch = 32"))]);
    let (_, spikes) = with("");
    let (few_losses, few) = with("keep spike_count(hidden) = 0 .. 0.2 within 0.2");
    let (many_losses, many) = with("keep spike_count(hidden) = 12 .. 13 within 1");
    assert!(few < 0.8 * spikes && many > 1.2 * spikes, "{few}, {spikes} and {many} spikes");
    for losses in [few_losses, many_losses] {
        assert!(losses[2] < 0.8 * losses[0], "{losses:?}");
    }
    // Where it is anyway it costs nothing.
    assert_eq!(with("keep spike_count(hidden) = 0 .. 1000 within 1"), with(""));
}

#[test]
fn losses_of_every_step_and_of_first_spikes_are_learnt() {
    for (loss, least) in [("every_step(out)", 0.97), ("every_step(out.v)", 0.9), ("first_spike(out)", 0.9)] {
        let (losses, _) = of_digits(&[("cross_entropy(spike_count(out))", &format!("cross_entropy({loss})"))]);
        assert!(losses[2] < least * losses[0], "{loss}: {losses:?}");
    }
}

#[test]
fn what_cannot_learn_is_refused() {
    let said = |text: &str| {
        let checked = checked(text);
        match checked.model {
            None => checked.diagnostics.iter().map(|d| format!("{}; ", d.message)).collect(),
            Some(_) => match session(text) {
                Ok(_) => String::from("fine"),
                Err(errors) => errors
                    .iter()
                    .map(|d| format!("{} ({:?}); ", d.message, d.labels.first().map(|l| &l.message)))
                    .collect(),
            },
        }
    };
    assert_eq!(said(&digits(64, TRAIN)), "fine");
    let with = |from: &str, to: &str| said(&digits(64, &TRAIN.replace(from, to)));
    let cases = [
        (said(&digits(60, TRAIN)), "a sample has 64 values, but `pixels` has 60 cells"),
        (with("pixels.out.Kick", "pixels.ou.Kick"), "there is no projection `pixels.ou.Kick`"),
        (with("pixels.out.Kick.weight", "pixels.q"), "`pixels.q` is an initial value"),
        (
            with("Kick.weight", "Kick.weight = 0.1 .. 1 mV"),
            "a weight of `pixels.out.Kick` begins at 0 mV, but learns from 0.1 mV to 1 mV",
        ),
        (with("pixels.x", "pixels.y"), "`pixels.y`"),
        (with("mean(out.v)", "mean(out.w)"), "there is no state `out.w`"),
        (with("mean(out.v)", "spike_count(out)"), "`out` does not spike, so that nothing can be counted"),
        (with("digits.npz", "digit.npz"), "cannot read"),
        (with("digits.npz", "ring.csv"), "neither an .npz archive nor an .npy file"),
        (with("cross_entropy(mean(out.v))", "cross_entropi(mean(out.v))"), "there is no loss `cross_entropi`"),
        (with("cross_entropy(mean(out.v))", "mse(mean(out.v))"), "`mse` needs what the readout shall be"),
        (with("cross_entropy(mean(out.v))", "cross_entropy"), "`cross_entropy` reads nothing"),
        (with("lr = 0.05", "lr = -1"), "`lr` cannot be -1"),
        (with("lr = 0.05", "rate = 1"), "`adam` has no argument `rate`"),
        (with("batch = 64", "clip = 0"), "`clip` cannot be 0"),
        (with("batch = 64", "schedule = linear"), "there is no schedule `linear`"),
        (with("batch = 64", "schedule = exponential"), "`exponential` needs `factor`"),
        (with("batch = 64", "schedule = step(factor = 0.5)"), "`step` needs `every`"),
        (with("batch = 64", "schedule = step(every = 1.5)"), "`every` cannot be 1.5"),
        (with("batch = 64", "schedule = cosine(2)"), "`floor` cannot be 2"),
        (with("batch = 64", "schedule = cosine(0, 2)"), "`cosine` takes fewer arguments"),
        (with("batch = 64", "surrogate = straight_through(2)"), "`straight_through` takes fewer arguments"),
        (with("batch = 64", "surrogate = arctan(-2)"), "`slope` cannot be -2"),
        (with("lr = 0.05", "-1"), "`lr` cannot be -1"),
        (with("lr = 0.05", "lr = 0.05, lr = 0.1"), "`lr` is given twice"),
        (with("lr = 0.05", "0.05, lr = 0.1"), "`lr` is given twice"),
        (with("batch = 64", "schedule = cosine(floor = 2)"), "`floor` cannot be 2"),
        (with("batch = 64", "batch = 0.5"), "`batch` cannot be 0.5"),
        (with("batch = 64", "bach = 64"), "`bach`"),
        (with("learn pixels.out.Kick.weight", ""), "nothing learns"),
        (with("loss = cross_entropy(mean(out.v))", ""), "has no `loss`"),
        (with("cross_entropy(mean(out.v))", "cross_entropy(first_spike(out))"), "`out` does not spike"),
        (with("cross_entropy(mean(out.v))", "cross_entropy(every_step(out))"), "`out` does not spike"),
        (with("batch = 64", "keep mean(out.v) = -1 .. 1 mV within 2 mV"), "fine"),
        (with("batch = 64", "keep mean(out.v) = -1 .. 1 within 2 mV"), "but `1` is a pure number"),
        (with("batch = 64", "keep mean(out.v) = -1 .. 1 mV within 2 nS"), "but `2nS` is"),
        (with("batch = 64", "keep mean(out.v) = -1 .. 1 mV within 0 mV"), "`within` says how far off costs 1"),
        (with("batch = 64", "keep mean(out.v) = 2 .. 1 mV within 2 mV"), "`mean(out.v)` cannot lie between 2 and 1 mV"),
        (with("batch = 64", "keep every_step(out.v) = 0 .. 1 mV within 2 mV"), "there is no readout `every_step`"),
        (with("batch = 64", "keep mean(oat.v) = 0 .. 1 mV within 2 mV"), "there is no state `oat.v`"),
        (with("batch = 64", "keep spike_count(pixels) = 0 .. 1"), "`within"),
        (
            said(&digits(64, TRAIN).replace("Readout[10]", "Readout[9]")),
            "there are 10 classes, but 9 cells are read out",
        ),
        (said(&digits(64, "")), "this model has no `train` block"),
        (
            with("Kick.weight", "Kick.delay = 3 .. 5 ms"),
            "the delay of edge 0 of `pixels.out.Kick` begins at 1 ms, but learns from 3 to 5 ms",
        ),
        (with("Kick.weight", "Kick.delay = 0 .. 5 ms"), "the delays of `pixels.out.Kick` may fall to 0 ms"),
        (
            said(&digits(64, TRAIN).replace("Kick.weight", "Kick.delay = 1 .. 5 ms").replace("delay = 1 ms", "delay = 0 ms")),
            "`delay` of `pixels.out.Kick` is 0 ms",
        ),
        (
            said(&digits(64, &TRAIN.replace("pixels.out.Kick", "{pixels.out, pixels.idle}.Kick")).replace(
                "connect pixels -> out",
                "population idle: Readout[2]\n connect pixels -> idle via Kick { rule = all_to_all; weight = 0 mV; delay = 1 ms }\n connect pixels -> out",
            )),
            "the weights of `pixels.idle.Kick` cannot learn: nothing that is read out depends on them",
        ),
    ];
    for (found, expected) in cases {
        assert!(found.contains(expected), "{found}, not {expected}");
    }
    let set = |set: &str| {
        let options = CompileOptions { set: vec![set.into()], ..CompileOptions::default() };
        Session::new(&checked(&digits(64, TRAIN)), &options, &native, 1, Precision::F64, 1e9).err()
    };
    assert!(set("out.tau=5 ms").is_none());
    assert_eq!(set("x=5").unwrap()[0].message, "samples give `pixels.x`, so that setting it has no effect");
    let digits = std::fs::read_to_string(root().join("examples/digits.neuro")).unwrap();
    let small = Session::new(&checked(&digits), &CompileOptions::default(), &interp, 1, Precision::F64, 1e4);
    let errors = small.err().unwrap();
    assert!(errors[0].message.contains("going back keeps at least"), "{errors:?}");
}

/// A slope without a limit leaves everything as it was.
#[test]
fn what_learns_stays_finite() {
    let text = digits(64, &TRAIN.replace("learn pixels.out.Kick.weight", "learn {pixels.out.Kick.weight, out.k}"));
    let text = text.replace("v' = -v / tau", "param k = 0; v' = -v / tau + sqrt(k) * v / 20 ms");
    let mut session = session(&text.replace("weight = 0 mV", "weight ~ uniform(0 mV, 1 mV)")).expect("it can learn");
    let error = session.epoch(&mut train::Unwatched).expect_err("nothing is learnt").to_string();
    assert!(error.contains("the derivative of the loss in `out.k` is ") && error.contains("in epoch 1"), "{error}");
    assert!(session.trained().is_ok());
}

/// What a run would refuse ends the training: numbers that all cells share, those that follow them, those that each cell has, and conductances of synapses.
#[test]
fn what_learns_stays_what_a_run_takes() {
    let text = digits(64, &TRAIN.replace("learn pixels.out.Kick.weight", "learn {pixels.out.Kick.weight, TAU}"));
    let text = text
        .replace("optimizer = adam(lr = 0.05)", "optimizer = adam(lr = 3)")
        .replace("weight = 0", "weight ~ uniform(0 mV, 0.1 mV); weight = 0");
    let text = text.replace("; weight = 0 mV", "").replace("batch = 64", "batch = 200");
    let ends = |text: &str| {
        let mut session = session(text).unwrap_or_else(|d| panic!("{d:?}"));
        let mut epoch = || {
            session.epoch(&mut train::Unwatched)?;
            session.trained()
        };
        (0..6).find_map(|_| epoch().err()).expect("it ends").to_string()
    };
    let of = |tau: &str, more: &str| {
        ends(&text.replace("TAU", tau).replace("network main {", &format!("network main {{ {more}")))
    };
    for said in [
        of("out.tau", ""),
        of("slow", "param slow = 10 ms; param out.tau = slow * (1 + index)"),
        of("out.tau", "param out.tau ~ uniform(9 ms, 11 ms)"),
    ] {
        assert!(said.contains("a run would refuse what is learnt") && said.contains("tau"), "{said}");
    }
    let conductances = text
        .replace(
            "on event(weight: mV) { v += weight }",
            "state g: nS = 0 nS; g' = -g / 5 ms; on event(weight: nS) { g += weight }; current i = g * (v - 70 mV)",
        )
        .replace("v' = -v / tau", "v' = (-v - i_syn * 1 GOhm) / tau")
        .replace(".1 mV)", ".1 nS)")
        .replace("0 mV, ", "0 nS, ")
        .replace(", TAU", "");
    let said = ends(&conductances);
    assert!(said.contains("a run would refuse what is learnt") && said.contains("Kick"), "{said}");
}

/// Weights and delays of a small net that learns in one epoch after the other: bounds hold, and half of the epochs, kept and resumed, lead to the same bits.
#[test]
fn delays_are_learnt_between_bounds_and_kept() {
    let train = TRAIN
        .replace("learn pixels.out.Kick.weight", "learn pixels.out.Kick.weight = -0.02 .. 0.02 mV\nlearn pixels.out.Kick.delay = 1.5 .. 4 ms\nlearn out.tau = 9 .. 10.5 ms")
        .replace("batch = 64", "delay_lr = 0.5\nbatch = 200\ntest = 0.2");
    let text = digits(64, &train)
        .replace("delay = 1 ms", "delay ~ uniform(1.5 ms, 4 ms)")
        .replace("duration = 10", "duration = 14");
    let begin = || session(&text).unwrap_or_else(|d| panic!("{d:?}"));
    let mut whole = begin();
    assert_eq!(whole.count(), 2 * 640 + 1);
    let epochs = |session: &mut Session, count: usize| {
        (0..count).map(|_| session.epoch(&mut train::Unwatched).unwrap().unwrap().loss).collect::<Vec<f64>>()
    };
    let losses = epochs(&mut whole, 4);
    assert!(losses[3] < 0.98 * losses[0], "{losses:?}");
    let trained = whole.trained().unwrap();
    let [weights, delays] = [0, 1].map(|at| trained.edges[at].values.to_vec());
    assert_eq!(trained.edges[1].name, "pixels.out.Kick.delay");
    let ends = |values: &[f64], low: f64, high: f64| {
        assert!(values.iter().all(|x| (low..=high).contains(x)), "{values:?}");
        [low, high].map(|end| values.iter().filter(|x| **x == end).count())
    };
    assert!(ends(&weights, -0.02, 0.02).iter().all(|count| *count > 5), "{weights:?}");
    assert!(ends(&delays, 1.5, 4.0).iter().all(|count| *count > 5), "{delays:?}");
    assert!(delays.iter().any(|delay| delay.fract() > 0.01 && delay.fract() < 0.49), "{delays:?}");
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("delays_are_learnt.npz");
    let mut first = begin();
    epochs(&mut first, 2);
    first.trained().unwrap().write(&path).unwrap();
    let mut second = begin();
    second.resume(&Trained::read(&path).unwrap()).unwrap();
    assert_eq!(epochs(&mut second, 2), losses[2..]);
    assert_eq!(second.trained().unwrap(), trained);
    // A run has whole steps, the nearest ones, and says so.
    let options = CompileOptions { per_cell: trained.edges, ..CompileOptions::default() };
    let compiled = driver::compile(&checked(&text), &options, &mut |_, _, _| {}).unwrap();
    let experiment = Experiment::new(compiled).unwrap();
    let message = &experiment.warnings[0].message;
    assert!(message.contains("delays of `pixels.out.Kick` are not whole numbers of steps"), "{message}");
}

/// The example and the same without delays that learn, for five epochs.
#[test]
fn where_order_matters_delays_are_worth_learning() {
    let text = std::fs::read_to_string(root().join("examples/spike_order.neuro")).unwrap();
    let alone: String =
        text.split_inclusive('\n').filter(|l| !l.contains("delay_lr") && !l.contains("Kick.delay")).collect();
    let [both, alone] = [text, alone].map(|text| {
        let mut session = session(&text).unwrap_or_else(|d| panic!("{d:?}"));
        session.plan(5);
        for _ in 0..5 {
            session.epoch(&mut train::Unwatched).unwrap();
        }
        session.test().unwrap().unwrap().accuracy
    });
    assert!(both > 0.9 && alone < 0.8, "{both} {alone}");
}

/// An archive whose header promises more than there is, and weights for another network.
#[test]
fn what_has_been_learnt_is_believed_as_far_as_it_goes() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("weights.npz");
    let weight =
        |count: usize| neuroc::ode::PerCell { name: "pixels.out.Kick.weight".into(), values: vec![0.5; count].into() };
    let trained = Trained { edges: vec![weight(3)], parameters: vec!["out.tau=9 ms".into()], progress: None };
    trained.write(&path).unwrap();
    assert_eq!(Trained::read(&path).unwrap(), trained);
    let options = CompileOptions { per_cell: trained.edges, ..CompileOptions::default() };
    let compiled = driver::compile(&checked(&digits(64, TRAIN)), &options, &mut |_, _, _| {}).unwrap();
    let errors = Experiment::new(compiled).err().unwrap();
    let label = &errors[0].labels[0].message;
    assert!(label.contains("it has 3 numbers, but the projection has 640 edges"), "{errors:?}");
    let mut bytes = std::fs::read(&path).unwrap();
    let at = bytes.windows(4).position(|w| w == b"(3,)").unwrap();
    bytes.splice(at..at + 4, *b"(9,)");
    std::fs::write(&path, &bytes).unwrap();
    let said = Trained::read(&path).unwrap_err();
    assert!(said.contains("is not what `neuroc train` writes"), "{said}");
    std::fs::write(&path, "no archive").unwrap();
    assert!(Trained::read(&path).unwrap_err().contains("it is no .npz archive"));
}

/// Two epochs, a file, and two more are four epochs, to the last bit.
fn goes_on(session: &dyn Fn(&str) -> Session) -> (String, Trained) {
    let train = TRAIN
        .replace("learn pixels.out.Kick.weight", "learn pixels.out.Kick.weight\nlearn out.tau")
        .replace("adam(lr = 0.05)", "adamw(lr = 0.05, weight_decay = 0.01)")
        .replace("batch = 64", "batch = 500\nschedule = cosine(floor = 0.1)");
    let text = digits(64, &train);
    let learns = |session: &mut Session, epochs: usize| {
        session.plan(4);
        (0..epochs).for_each(|_| assert!(session.epoch(&mut train::Unwatched).unwrap().is_some()));
    };
    let mut whole = session(&text);
    learns(&mut whole, 4);
    let mut first = session(&text);
    learns(&mut first, 2);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("weights.npz");
    first.trained().unwrap().write(&path).unwrap();
    let kept = Trained::read(&path).unwrap();
    assert_eq!(kept, first.trained().unwrap());
    let mut second = session(&text);
    second.resume(&kept).unwrap();
    assert_eq!(second.epochs(), 2);
    learns(&mut second, 2);
    assert_eq!(second.trained().unwrap(), whole.trained().unwrap());
    assert_ne!(second.trained().unwrap(), kept);
    let other = session(&text.replace("adamw(lr = 0.05, weight_decay = 0.01)", "sgd(lr = 0.05)")).resume(&kept);
    assert_eq!(other.unwrap_err(), "another optimizer has learnt there, which remembers other numbers");
    (text, kept)
}

#[cfg(feature = "xla")]
#[test]
fn a_training_on_xla_that_goes_on_has_the_same_bits() {
    let Some(xla) = xla() else { return };
    for precision in [Precision::F64, Precision::F32] {
        for more in ["", "\nclip = 0.01"] {
            goes_on(&|text| {
                let text = text.replace("epochs = 2", &format!("epochs = 2{more}"));
                Session::new(&checked(&text), &for_xla(), &xla, 1, precision, 1e9).unwrap_or_else(|d| panic!("{d:?}"))
            });
        }
    }
}

/// Weights of matrices with and without gaps and of lists, and kernels and a parameter that stay on the host: after several batches all are as they are
/// natively, whichever optimizer moves them.
#[cfg(feature = "xla")]
#[test]
fn what_learns_on_xla_is_what_learns_natively() {
    let Some(xla) = xla() else { return };
    let text = |optimizer: &str, unit: &str| {
        let text = format!(
            "cell Pixel {{ param x = 8; state q = 0; q' = x / 32 ms; spike when q > 1 {{ q -= 1 }} }}
            cell Leaky {{ param tau = 10 ms; state v: mV = 0 mV; v' = -v / tau; spike when v > 0.5 mV {{ v -= 0.5 mV }} }}
            cell Readout {{ param tau = 10 ms; state v: mV = 0 mV; v' = -v / tau }}
            synapse Kick {{ on event(weight: mV) {{ v += weight }} }}
            network main {{
                population pixels: Pixel[8, 8]
                population many: Leaky[1100]
                population few: Leaky[20]
                population out: Readout[10]
                population seen: Leaky[6, 6, 2]
                connect pixels -> many via Kick {{ rule = probability(p = 0.02); weight ~ uniform(0.1 mV, 0.6 mV); delay ~ uniform(1 ms, 2 ms) }}
                connect pixels -> few via Kick {{ rule = probability(p = 0.5); weight ~ uniform(-0.1 mV, 0.3 mV); delay = 1 ms }}
                connect pixels -> seen via Kick {{ rule = convolution(kernel = 3); weight ~ uniform(-0.1 mV, 0.3 mV); delay = 1 ms }}
                connect many -> out via Kick {{ rule = all_to_all; weight ~ uniform(-0.05 mV, 0.05 mV); delay = 1 ms }}
                connect few -> out via Kick {{ rule = all_to_all; weight ~ uniform(-0.2 mV, 0.2 mV); delay = 1 ms }}
                connect seen -> out via Kick {{ rule = all_to_all; weight ~ uniform(-0.1 mV, 0.1 mV); delay = 1 ms }}
            }}
            run {{ duration = 10 ms; dt = 1 ms; record out.v every 1 ms }}
            train {{
                data = \"data/digits.npz\"
                input = pixels.x
                learn pixels.many.Kick.weight = 0.1 .. 0.6 mV
                learn pixels.few.Kick.weight = -0.1 .. 0.3 mV
                learn {{pixels.seen, many.out, few.out, seen.out}}.Kick.weight
                learn out.tau
                loss = cross_entropy(mean(out.v))
                surrogate = fast_sigmoid(slope = 5)
                optimizer = {optimizer}
                batch = 24
                epochs = 2
                test = 0.92
            }}"
        );
        // A time constant would move too far where weights move in small units.
        match unit {
            "mV" => text,
            unit => {
                text.replace("on event(weight: mV)", &format!("on event(weight: {unit})")).replace("learn out.tau", "")
            }
        }
    };
    let cases = [
        ("sgd(lr = 0.3)", "mV", 5, 1e-10),
        ("sgd(lr = 0.1, momentum = 0.9)\nclip = 0.2", "mV", 5, 1e-10),
        ("adam(lr = 0.01)", "mV", 5, 1e-10),
        ("adam(lr = 10)\nclip = 0.05", "uV", 5, 1e-10),
        ("adamw(lr = 0.01, weight_decay = 0.1)\nclip = 0.05\nschedule = exponential(factor = 0.5)", "mV", 5, 1e-10),
    ];
    for (optimizer, unit, settled, within) in cases {
        let text = text(optimizer, unit);
        let learns = |mut session: Session| {
            let scores = [0, 1].map(|_| session.epoch(&mut train::Unwatched).unwrap().unwrap());
            (scores, session.trained().unwrap(), session.settled())
        };
        let (there, natively, none) = learns(session(&text).unwrap_or_else(|d| panic!("{d:?}")));
        let (here, on_xla, own) = learns(session_on_xla(&text, &xla));
        assert_eq!((none, own), (0, settled), "{optimizer}");
        assert!(there[0].samples > 5 * 24 && there[1].loss < there[0].loss, "{optimizer}: {there:?}");
        let close = |what: &str, a: &[f64], b: &[f64]| {
            assert_eq!(a.len(), b.len(), "{what}");
            let largest = b.iter().fold(0.0_f64, |most, x| most.max(x.abs()));
            let off = a.iter().zip(b).fold(0.0_f64, |most, (a, b)| most.max((a - b).abs()));
            assert!(off <= within * largest, "{optimizer}, {what}: {off:e} of {largest}");
        };
        for (a, b) in here.iter().zip(&there) {
            close("loss", &[a.loss], &[b.loss]);
            assert_eq!((a.accuracy, a.spikes), (b.accuracy, b.spikes), "{optimizer}");
        }
        for (a, b) in on_xla.edges.iter().zip(&natively.edges) {
            assert_eq!(a.name, b.name);
            close(&a.name, &a.values, &b.values);
        }
        // Some have reached the ends of their ranges.
        for (at, ends) in [(0, [0.1, 0.6]), (1, [-0.1, 0.3])] {
            let values = &on_xla.edges[at].values;
            assert!(values.iter().all(|x| (ends[0]..=ends[1]).contains(x)), "{optimizer}");
            assert!(values.iter().any(|x| ends.contains(x)), "{optimizer}: {}", on_xla.edges[at].name);
        }
        let (a, b) = (on_xla.progress.unwrap(), natively.progress.unwrap());
        close("parameters", &a.parameters, &b.parameters);
        assert_eq!((a.steps, a.remembered.len()), (b.steps, b.remembered.len()));
        for (a, b) in a.remembered.iter().flatten().zip(b.remembered.iter().flatten()) {
            close("what is remembered", a, b);
        }
    }
}

/// The function for devices and the host's rule, step for step.
#[cfg(feature = "xla")]
#[test]
fn steps_on_a_device_are_those_of_the_host() {
    use neuroc::codegen::stablehlo::builder::{Element, TensorType};
    use neuroc::engine::descent::Descent;
    use neuroc::hir::Optimizer;
    use neuroc::simulate::trials::{Gaps, Held};
    let Some(client) = crate::pjrt::cpu() else { return };
    let adam = |weight_decay| Optimizer::Adam { lr: 0.03, beta1: 0.9, beta2: 0.999, epsilon: 1e-8, weight_decay };
    let all =
        [Optimizer::Sgd { lr: 0.1, momentum: 0.0 }, Optimizer::Sgd { lr: 0.1, momentum: 0.9 }, adam(0.0), adam(0.1)];
    let mask = [true, false, true, true, false, true];
    let range = [-0.4, f64::INFINITY];
    for (element, within) in [(Element::F64, 1e-12), (Element::F32, 1e-5)] {
        let held = |dims: &[usize], gaps, range| Held { ty: TensorType::new(element, dims), gaps, range, unit: 1.0 };
        let arrays = [
            held(&[2, 3], Gaps::Masked, range),
            held(&[7], Gaps::Last, range),
            held(&[6], Gaps::None, [f64::NEG_INFINITY, f64::INFINITY]),
        ];
        for (how, most) in all.into_iter().flat_map(|how| [None, Some(0.5), Some(1e9)].map(|most| (how, most))) {
            let function = train::update(how, most.is_some(), &arrays);
            let compiler = client.clone().into();
            let mut descent = Descent::new(&compiler, &function, &[mask.to_vec()]).unwrap();
            let number = |at: usize| (at as f64 * 1.7).sin();
            let mut values: Vec<Vec<f64>> = (0..3).map(|k| (0..6).map(|at| number(6 * k + at)).collect()).collect();
            let only = |values: &mut [f64]| values.iter_mut().zip(mask).filter(|(_, m)| !m).for_each(|(x, _)| *x = 0.0);
            only(&mut values[0]);
            let mut moving: Vec<train::Moving> = (0..3).map(|_| train::Moving::new(how, 6)).collect();
            let lists = 1 + how.remembers();
            for (k, values) in values.iter().enumerate() {
                let padded: Vec<f64> = values.iter().copied().chain((k == 1).then_some(0.0)).collect();
                descent.set(k * lists, &padded).unwrap();
                (1..lists).for_each(|list| descent.set(k * lists + list, &vec![0.0; padded.len()]).unwrap());
            }
            for step in 0..5 {
                let mut slopes: Vec<Vec<f64>> =
                    (0..3).map(|k| (0..6).map(|at| number(100 + 18 * step + 6 * k + at)).collect()).collect();
                let buffers: Vec<_> = (slopes.iter().zip(&arrays))
                    .map(|(slopes, held)| match element {
                        Element::F32 => {
                            let slopes: Vec<f32> = slopes.iter().map(|&x| x as f32).collect();
                            client.buffer(&slopes, &held.slopes().dims).unwrap()
                        }
                        _ => client.buffer(slopes, &held.slopes().dims).unwrap(),
                    })
                    .collect();
                only(&mut slopes[0]);
                // One more slope is elsewhere.
                let mut elsewhere = [0.7];
                let (share, squares) = (0.5 + 0.1 * step as f64, 0.7 * 0.7);
                let by = descent.step(&buffers, &moving[0].numbers(share, most, squares)).unwrap();
                assert_eq!(by.is_some(), most.is_some());
                if let (Some(most), Some(by)) = (most, by) {
                    let mut all: Vec<&mut [f64]> = slopes.iter_mut().map(Vec::as_mut_slice).collect();
                    all.push(&mut elsewhere);
                    train::clip(&mut all, most);
                    assert!((elsewhere[0] / 0.7 - by).abs() < within && (by < 1.0) == (most < 1.0));
                }
                for (k, held) in arrays.iter().enumerate() {
                    moving[k].step(&mut values[k], &slopes[k], share);
                    values[k].iter_mut().for_each(|x| *x = x.clamp(held.range[0], held.range[1]));
                    if k == 0 {
                        only(&mut values[k]);
                    }
                    let remembered = moving[k].memory().1;
                    let expected = [&values[k], remembered[0], remembered[1]];
                    for (list, expected) in expected.into_iter().take(lists).enumerate() {
                        let found = descent.values(k * lists + list).unwrap();
                        assert!(held.gaps != Gaps::Last || found.get(6) == Some(&0.0), "{how:?}: {found:?}");
                        for (a, b) in found.iter().zip(expected) {
                            assert!((a - b).abs() < within, "{how:?} {element:?} {k} {list}: {found:?} {expected:?}");
                        }
                    }
                }
            }
        }
    }
}

#[test]
fn a_training_that_goes_on_has_the_same_bits() {
    let (text, kept) = goes_on(&|text| session(text).unwrap());
    goes_on(&|text| {
        let options = CompileOptions::default();
        Session::new(&checked(text), &options, &native, 2, Precision::F32, 1e9).unwrap_or_else(|d| panic!("{d:?}"))
    });
    // Other models, and files that say less.
    let refused = |text: &str, trained: &Trained| session(text).unwrap().resume(trained).unwrap_err();
    assert!(refused(&digits(64, TRAIN), &kept).contains("other weights, delays and parameters have learnt there"));
    assert!(refused(&text, &Trained { progress: None, ..kept.clone() }).contains("does not say how far"));
    let other = text.replace("dt = 1 ms", "dt = 1 ms; seed = 5");
    assert!(refused(&other, &kept).contains("its seed was 0, and is 5 now"));
    let options = CompileOptions { set: vec!["out.tau=5 ms".into()], ..CompileOptions::default() };
    let set = Session::new(&checked(&text), &options, &native, 1, Precision::F64, 1e9);
    let said = set.unwrap_or_else(|d| panic!("{d:?}")).resume(&kept).unwrap_err();
    assert_eq!(said, "`out.tau` is set, but would go on with what has been learnt there");
}

/// Samples that change half way are those of cells that change by themselves then.
#[test]
fn samples_in_frames_are_inputs_that_change() {
    let net = |param: &str, x: &str, set: &str| {
        let text = format!(
            "cell Pixel {{ param x = 0.5{param}; state q = 0; q' = {x} / 1 ms; spike when q > 1 {{ q -= 1 }} }}
            cell Leaky {{ param tau = 8 ms; state v: mV = 0 mV; v' = -v / tau; spike when v > 1 mV {{ v -= 1 mV }} }}
            synapse Kick {{ on event(weight: mV) {{ v += weight }} }}
            network main {{
                param tau = 8 ms
                population pixels: Pixel[{PIXELS}]
                population hidden: Leaky[{HIDDEN}]
                population out: Leaky[{OUT}]
                param {{hidden, out}}.tau = tau
                {set}
                connect pixels -> hidden via Kick {{ rule = all_to_all; weight ~ uniform(0 mV, 1 mV); delay = 1 ms }}
                connect hidden -> hidden via Kick {{ rule = all_to_all; weight ~ uniform(0 mV, 1 mV); delay = 2 ms }}
                connect hidden -> out via Kick {{ rule = all_to_all; weight ~ uniform(0 mV, 1 mV); delay = 1 ms }}
            }}
            run {{ duration = {STEPS} ms; dt = 1 ms; record spikes of {{pixels, hidden, out}} }}"
        );
        checked(&text)
    };
    let half = STEPS / 2;
    let alone =
        net("; param y = 0.5", &format!("(if t < {half} ms then x else y)"), "param pixels.y = 0.2 + 0.1 * index");
    let framed = net("", "x", "");
    let later: Vec<f64> = (0..TRIALS).flat_map(|_| (0..PIXELS).map(|cell| 0.2 + 0.1 * cell as f64)).collect();
    let judge = judge_of(hir::Loss::CrossEntropy, Readout::SpikeCount);
    let learner = |checked: &Checked, frames: usize, choice: &dyn Fn() -> _, options: &CompileOptions| {
        let carried = Carried { surrogate: Surrogate::FastSigmoid(5.0), detached: true };
        let lesson = Lesson {
            gradient: Gradient::Bptt,
            input: ("pixels.x".into(), Span::default()),
            example: input()[..PIXELS].into(),
            frame: (frames > 1).then_some(half),
            learn: ["pixels.hidden.Kick.weight", "tau"].map(Learn::of).to_vec(),
            reads: placed(vec![Read::SpikeCount("out".into())]),
            carried,
            trials: TRIALS,
            threads: 1,
            precision: Precision::F64,
        };
        Learner::new(checked, options, &lesson, choice).unwrap_or_else(|d| panic!("{d:?}"))
    };
    let plain = CompileOptions::default();
    any_room_has_the_same_bits(&mut learner(&framed, 2, &interp, &plain), &mut |learner| {
        learner.gradient(&[8.0], &[input(), later.clone()], &mut of_trials(&judge)).unwrap()
    });
    let found = |checked: &Checked, frames: &[Vec<f64>], choice: &dyn Fn() -> _, options: &CompileOptions| {
        let mut learner = learner(checked, frames.len(), choice, options);
        learner.gradient(&[8.0], frames, &mut of_trials(&judge)).unwrap()
    };
    let expected = found(&alone, &[input()], &interp, &plain);
    assert!(expected.spikes.iter().sum::<u64>() > 50 && expected.parameters[0] != 0.0, "{expected:?}");
    assert_ne!(found(&framed, &[input()], &interp, &plain).spikes, expected.spikes);
    let mut all: Vec<(&dyn Fn() -> _, CompileOptions)> = vec![(&interp, plain.clone()), (&native, plain)];
    #[cfg(feature = "xla")]
    let xla = xla();
    #[cfg(feature = "xla")]
    all.extend(xla.iter().map(|xla| (xla as &dyn Fn() -> _, for_xla())));
    for (choice, options) in all.drain(..) {
        let found = found(&framed, &[input(), later.clone()], choice, &options);
        assert_eq!(found.spikes, expected.spikes);
        let close = |a: f64, b: f64| (a - b).abs() <= 1e-10 * b.abs().max(1e-3);
        assert!(close(found.loss, expected.loss) && close(found.parameters[0], expected.parameters[0]), "{found:?}");
        found.edges[0].iter().zip(&expected.edges[0]).for_each(|(&a, &b)| assert!(close(a, b), "{a} {b}"));
    }
}

/// The net of `tests/reference/torch_analog.py`.
const ANALOG: &str = "
    cell Pixel { param v: mV = 1 mV }
    cell Leaky {
        state v: mV = 0 mV
        v' = (-v - i_syn * 1 GOhm) / 8 ms
        spike when v > 1 mV { v -= 1 mV }
    }
    cell Readout { state v: mV = 0 mV; v' = -v / 8 ms; spike when v > 1 mV { v -= 1 mV } }
    synapse Analog { sum s(weight: pA) = weight * v_pre / 1 mV; current i = -s }
    synapse Kick { on event(weight: mV) { v += weight } }
    network main {
        population pixels: Pixel[4, 4]
        population one: Pixel[1]
        population hidden: Leaky[2, 2, 2]
        population out: Readout[3]
        param one.v = 0.5 mV
        connect pixels -> hidden via Analog { rule = all_to_all; weight ~ normal(0 pA, 1 pA) }
        connect one -> hidden via Analog { rule = all_to_all; weight ~ normal(0 pA, 1 pA) }
        connect pixels -> hidden via Analog as features {
            rule = convolution(kernel = 3, padding = 1, pool = 2)
            weight ~ normal(0 pA, 1 pA)
        }
        connect hidden -> out via Kick { rule = all_to_all; weight ~ normal(0 mV, 1 mV); delay = 1 ms }
    }
    run { duration = 20 ms; dt = 1 ms; seed = 3; record spikes of {hidden, out} }";

/// The names of what learns there, and of its derivatives in the reference.
const ANALOG_LEARNS: [(&str, &str, usize, f64); 4] = [
    ("pixels.hidden.Analog.weight", "dense", 128, 0.3),
    ("one.hidden.Analog.weight", "bias", 8, 0.9),
    ("pixels.hidden.features.weight", "kernel", 18, 1.3),
    ("hidden.out.Kick.weight", "out", 24, 2.0),
];

fn analog_frame(number: usize) -> Vec<f64> {
    let x = |b: usize, i: usize| 0.2 + 2.5 * ((3 * b + 2 * i + 5 * number) % 7) as f64 / 7.0;
    (0..TRIALS).flat_map(|b| (0..16).map(move |i| x(b, i))).collect()
}

fn analog_learner(
    frames: usize,
    (threads, precision): (usize, Precision),
    options: &CompileOptions,
    choice: &dyn Fn() -> Result<EngineChoice, EngineError>,
) -> Learner {
    let lesson = Lesson {
        gradient: Gradient::Bptt,
        input: ("pixels.v".into(), Span::default()),
        example: analog_frame(0)[..16].into(),
        frame: (frames > 1).then_some(STEPS / frames),
        learn: ANALOG_LEARNS.map(|(name, ..)| Learn::of(name)).to_vec(),
        reads: placed(vec![Read::SpikeCount("out".into())]),
        carried: Carried { surrogate: Surrogate::FastSigmoid(4.0), detached: false },
        trials: TRIALS,
        threads,
        precision,
    };
    let learner = Learner::new(&checked(ANALOG), options, &lesson, choice);
    let mut learner = learner.unwrap_or_else(|d| panic!("{d:?}"));
    let names: Vec<&str> = learner.learnt().into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, ANALOG_LEARNS.map(|(name, ..)| name));
    // Millionths of a uA, or mV.
    let number = |unit: f64, i: usize, phase: f64| unit * (0.5 * (1.7 * i as f64 + phase).sin() + 0.1);
    let all = ANALOG_LEARNS.map(|(_, key, count, phase)| -> Vec<f64> {
        let unit = if key == "out" { 1.0 } else { 1e-6 };
        (0..count).map(|i| number(unit, i, phase)).collect()
    });
    learner.set_learnt(&all);
    learner
}

/// Dense layers with biases and convolutions of numbers that samples give, which stay or change: PyTorch's spikes, losses and gradients.
#[test]
fn gradients_of_what_numbers_bring_are_those_of_pytorch() {
    let text = std::fs::read_to_string(root().join("tests/reference/torch_analog.json")).unwrap();
    let reference: Value = serde_json::from_str(&text).unwrap();
    let cases = reference["cases"].as_array().unwrap();
    assert_eq!(cases.len(), 2);
    let plain = CompileOptions::default;
    let (double, single) = (Precision::F64, Precision::F32);
    let all: Vec<(&dyn Fn() -> _, usize, Precision, CompileOptions)> = vec![
        (&interp, 1, double, plain()),
        (&native, 1, double, plain()),
        (&native, 2, double, plain()),
        (&native, 2, single, plain()),
    ];
    #[cfg(feature = "xla")]
    let xla = xla();
    #[cfg(feature = "xla")]
    let own = xla.iter().map(|xla| (xla as &dyn Fn() -> _, 1, double, for_xla()));
    #[cfg(feature = "xla")]
    let all: Vec<_> = all.into_iter().chain(own).collect();
    for case in cases {
        let numbers =
            |key: &str| -> Vec<f64> { case[key].as_array().unwrap().iter().map(|x| x.as_f64().unwrap()).collect() };
        let frames = case["frames"].as_u64().unwrap() as usize;
        let input: Vec<Vec<f64>> = (0..frames).map(analog_frame).collect();
        let mut first = None;
        for (choice, threads, precision, options) in &all {
            let mut learner = analog_learner(frames, (*threads, *precision), options, choice);
            let mut counted = Vec::new();
            let mut loss = |samples: &[Vec<f64>]| {
                counted = samples.to_vec();
                let judged = judge_of(hir::Loss::CrossEntropy, Readout::SpikeCount).judge(samples, TRIALS, &CLASSES);
                Loss { value: judged.loss, slopes: judged.slopes }
            };
            let found = learner.gradient(&[], &input, &mut loss).unwrap();
            let spikes: u64 = found.spikes.iter().sum();
            assert_eq!((spikes, counted), (case["spikes"].as_u64().unwrap(), vec![numbers("counts")]));
            let part = if *precision == double { 1e-10 } else { SINGLE };
            let close =
                |a: f64, b: f64, most: f64| (a - b).abs() <= part * b.abs().max(if part < 1e-9 { 1e-3 } else { most });
            assert!(close(found.loss, case["value"].as_f64().unwrap(), 1.0), "{found:?}");
            for (number, (_, key, count, _)) in ANALOG_LEARNS.into_iter().enumerate() {
                let (found, expected) = (learner.in_order(number, &found.edges[number]), numbers(key));
                assert_eq!((found.len(), expected.len()), (count, count));
                let most = expected.iter().fold(0.0, |most: f64, x| most.max(x.abs()));
                assert!(most > 1e-3, "{key}");
                found.iter().zip(expected).for_each(|(&a, b)| assert!(close(a, b, most), "{key} {frames}: {a} {b}"));
            }
            // The interpreter, and native code with one thread and with two: the same bits.
            match &first {
                Some(first) if *threads > 1 && *precision == double => assert_eq!(found, *first),
                Some(_) => {}
                None => first = Some(found),
            }
        }
    }
}

/// The net of `tests/reference/torch_convolution.py`.
const GRIDS: &str = "
    cell Pixel { param x = 0.5; state q = 0; q' = x / 1 ms; spike when q > 1 { q -= 1 } }
    cell Leaky { state v: mV = 0 mV; v' = -v / 8 ms; spike when v > 1 mV { v -= 1 mV } }
    synapse Kick { on event(weight: mV) { v += weight } }
    network main {
        population pixels: Pixel[6, 5, 2]
        population hidden: Leaky[3, 2, 3]
        population out: Leaky[1, 1, 4]
        connect pixels -> hidden via Kick {
            rule = convolution(kernel = 3, padding = 1, pool = 2)
            weight ~ normal(0 mV, 1 mV)
            delay = 1 ms
        }
        connect hidden -> out via Kick { rule = convolution(kernel = 2, stride = 2); weight = 0.1 mV; delay = 2 ms }
    }
    run { duration = 20 ms; dt = 1 ms; seed = 3; record spikes of {pixels, hidden, out} }";

/// A run that is shown a sample in frames has the spikes that it says and the same voltages, whatever the engine and the steps of a call.
#[test]
fn a_run_is_shown_frames() {
    let text = std::fs::read_to_string(root().join("examples/spike_order.neuro")).unwrap();
    let checked = checked(&text);
    let model = checked.model.as_ref().unwrap();
    let train = model.train.as_ref().unwrap();
    let flat = driver::flatten(model, &CompileOptions::default()).unwrap().0;
    let sample = driver::sample(&flat, train, 5).unwrap();
    assert_eq!((sample.parameter.as_str(), sample.frames.len(), sample.steps), ("inputs.x", 50, 1));
    let at = |(step, frame): (usize, &Vec<f64>)| -> Vec<(u64, u32)> {
        let cells = (0..).zip(frame).filter(|(_, x)| **x == 1.0);
        cells.map(|(cell, _)| (step as u64 + 1, cell)).collect()
    };
    let expected: Vec<(u64, u32)> = sample.frames.iter().enumerate().flat_map(at).collect();
    assert!(expected.len() > 8);
    let options = CompileOptions { per_cell: vec![sample.first()], ..CompileOptions::default() };
    let compiled = driver::compile(&checked, &options, &mut |_, _, _| {}).unwrap();
    let experiment = Experiment::new(compiled).unwrap();
    let mut voltages = Vec::new();
    for (choice, window) in [(interp(), 1), (interp(), 7), (native(), 64), (native(), 1)] {
        let choice = choice.unwrap();
        let plan = experiment.plan_for(&choice, Precision::F64).unwrap();
        let ready = experiment.engine(&plan, choice).unwrap();
        let mut engine = sample.shown(experiment.program(), ready.engine).unwrap();
        let options = RunOptions { window, ..RunOptions::default() };
        let (result, _) = experiment.run(engine.as_mut(), &options, &mut Unwatched).unwrap();
        let spikes = result.spikes.iter().find(|train| train.population == "inputs").unwrap();
        let found: Vec<(u64, u32)> =
            spikes.t.iter().map(|t| t.round() as u64).zip(spikes.i.iter().map(|&i| i as u32)).collect();
        assert_eq!(found, expected);
        voltages.push(result.series.iter().find(|s| s.name == "out.v").unwrap().clone());
    }
    assert!(voltages.iter().all(|other| *other == voltages[0]));
    let wrong = driver::sample(&flat, train, 1600).unwrap_err();
    assert_eq!(wrong[0].message, "there is no sample 1600: `data/order.npz` has 1600");
}

/// The net of `tests/reference/torch_max_pooling.py`.
const POOLED: &str = "
    cell Pixel { param x = 0.5; state q = 0; q' = x / 1 ms; spike when q > 1 { q -= 1 } }
    cell Leaky { state v: mV = 0 mV; v' = -v / 8 ms; spike when v > 1 mV { v -= 1 mV } }
    synapse Kick { on event(weight: mV) { v += weight } }
    network main {
        population pixels: Pixel[6, 5, 2]
        population hidden: Leaky[3, 2, 3]
        population fewer: Leaky[1, 1, 3]
        population out: Leaky[1, 1, 4]
        connect pixels -> hidden via Kick {
            rule = convolution(kernel = 3, padding = 1, max_pool = 2)
            weight ~ normal(0 mV, 1 mV)
            delay = 1 ms
        }
        connect hidden -> fewer via Kick { rule = convolution(kernel = 1, max_pool = 2); weight = 0.2 mV; delay = 2 ms }
        connect fewer -> out via Kick { rule = convolution(kernel = 1); weight = 0.1 mV; delay = 1 ms }
    }
    run { duration = 20 ms; dt = 1 ms; seed = 3; record spikes of {pixels, hidden, fewer, out} }";

#[test]
fn gradients_of_kernels_are_those_of_pytorch() {
    let learn = ["pixels.hidden.Kick.weight", "hidden.out.Kick.weight"];
    let found = kernels_as_in_pytorch(GRIDS, "torch_convolution", &learn, &[(54, 0.3), (48, 1.1)]);
    assert_eq!(found[1], vec![0.1; 48]);
}

/// Of places with the largest sums, the first of those that are the same: there are 167 such ones in this net.
#[test]
fn gradients_through_the_largest_of_places_are_those_of_pytorch() {
    let learn = ["pixels.hidden.Kick.weight", "hidden.fewer.Kick.weight", "fewer.out.Kick.weight"];
    let found = kernels_as_in_pytorch(POOLED, "torch_max_pooling", &learn, &[(54, 0.3), (9, 0.7), (12, 1.1)]);
    assert_eq!(found[1], vec![0.2; 9]);
}

/// Compares spikes, loss and gradients of the kernels that learn, each given as a count and a phase; answers what these were before.
fn kernels_as_in_pytorch(text: &str, reference: &str, learn: &[&str], kernels: &[(usize, f64)]) -> Vec<Vec<f64>> {
    let file = root().join(format!("tests/reference/{reference}.json"));
    let checked = checked(text);
    let text = std::fs::read_to_string(file).unwrap();
    let reference: Value = serde_json::from_str(&text).unwrap();
    let numbers =
        |key: &str| -> Vec<f64> { reference[key].as_array().unwrap().iter().map(|x| x.as_f64().unwrap()).collect() };
    let kernel = |count: usize, phase: f64| -> Vec<f64> {
        (0..count).map(|i| 0.5 * (1.7 * i as f64 + phase).sin() + 0.1).collect()
    };
    let input: Vec<f64> =
        (0..TRIALS).flat_map(|b| (0..60).map(move |i| 0.1 + 0.5 * ((3 * b + 2 * i) % 7) as f64 / 7.0)).collect();
    let mut before = Vec::new();
    let mut first: Option<neuroc::driver::Found> = None;
    let plain = CompileOptions::default;
    let all: Vec<(&dyn Fn() -> _, usize, CompileOptions)> =
        vec![(&interp, 1, plain()), (&native, 1, plain()), (&native, 2, plain())];
    #[cfg(feature = "xla")]
    let xla = xla();
    #[cfg(feature = "xla")]
    let all = all.into_iter().chain(xla.iter().map(|xla| (xla as &dyn Fn() -> _, 1, for_xla())));
    for (choice, threads, options) in all {
        let lesson = Lesson {
            gradient: Gradient::Bptt,
            input: ("pixels.x".into(), Span::default()),
            example: input[..60].into(),
            frame: None,
            learn: learn.iter().copied().map(Learn::of).collect(),
            reads: placed(vec![Read::SpikeCount("out".into())]),
            carried: Carried { surrogate: Surrogate::FastSigmoid(4.0), detached: false },
            trials: TRIALS,
            threads,
            precision: Precision::F64,
        };
        let mut learner = Learner::new(&checked, &options, &lesson, choice).unwrap();
        before = learner.learnt().into_iter().map(|(_, values)| values).collect::<Vec<_>>();
        assert!(before.iter().zip(kernels).all(|(values, (count, _))| values.len() == *count));
        let given: Vec<Vec<f64>> = kernels.iter().map(|&(count, phase)| kernel(count, phase)).collect();
        learner.set_learnt(&given);
        let mut counted = Vec::new();
        let mut loss = |samples: &[Vec<f64>]| {
            counted = samples.to_vec();
            let mut judge = judge_of(hir::Loss::CrossEntropy, Readout::SpikeCount);
            judge.read.cells = 4;
            let judged = judge.judge(samples, TRIALS, &CLASSES);
            Loss { value: judged.loss, slopes: judged.slopes }
        };
        let found = learner.gradient(&[], std::slice::from_ref(&input), &mut loss).unwrap();
        let spikes: u64 = found.spikes.iter().sum();
        assert_eq!((spikes, counted), (reference["spikes"].as_u64().unwrap(), vec![numbers("counts")]));
        let close = |a: f64, b: f64| (a - b).abs() <= 1e-10 * b.abs().max(1e-3);
        assert!(close(found.loss, reference["value"].as_f64().unwrap()), "{found:?}");
        for (of, key) in found.edges.iter().zip(["first", "second", "third"]) {
            let expected = numbers(key);
            assert_eq!(of.len(), expected.len());
            of.iter().zip(expected).for_each(|(&a, b)| assert!(close(a, b), "{key}: {a} {b}"));
        }
        // The interpreter, and native code with one thread and with two: the same bits.
        match &first {
            Some(first) if threads > 1 => assert_eq!(found, *first),
            Some(_) => {}
            None => first = Some(found),
        }
    }
    before
}

/// What a target gets in a step is the largest of the sums at its places, through each line for itself: by hand, in every engine.
#[test]
fn a_run_takes_the_largest_of_places() {
    // Cells 0 and 2 spike in the steps 1, 3, 5, 7; cell 1 in 1 and 5; cell 3 in 3, 5, 7. Windows are one cell wide: places are cells.
    let text = "
        cell Sender { param x = 0; param q0 = 0; state q = q0; q' = x / 1 ms; spike when q > 1 { q -= 2 } }
        cell Receiver { state v: mV = 0 mV; v' = 0 mV/ms }
        synapse Kick { on event(weight: mV) { v += weight } }
        network main {
            population a: Sender[2, 2]
            population b: Receiver[1, 1, 2]
            connect a -> b via Kick { rule = convolution(kernel = 1, max_pool = 2); weight = 1 mV; delay = 1 ms }
            connect a -> b via Kick { rule = convolution(kernel = 1, max_pool = 2); weight = 0.25 mV; delay = 2 ms }
            connect a -> b via Kick { rule = convolution(kernel = 1, pool = 2); weight = 0.5 mV; delay = 1 ms }
            param a.x = if index == 1 then 0.5 else 1
            param a.q0 = if index == 1 then 0.75 else if index == 3 then -1.5 else 0.5
        }
        run { duration = 8 ms; dt = 1 ms; record b.v every 1 ms }";
    let given = neuroc::ode::PerCell { name: "a.b.Kick.weight".into(), values: vec![1.0, -1.0].into() };
    let options = CompileOptions { per_cell: vec![given], ..CompileOptions::default() };
    let experiment = Experiment::new(driver::compile(&checked(text), &options, &mut |_, _, _| {}).unwrap()).unwrap();
    // The second channel gets -1 mV only where all places do, in step 6: nothing is more than a negative sum.
    let expected =
        [[0.0, 0.0, 1.375, 1.625, 3.0, 3.25, 4.75, 5.0, 6.375], [0.0, 0.0, 0.375, 0.625, 1.0, 1.25, 0.75, 1.0, 1.375]];
    for choice in [interp(), native()] {
        let choice = choice.unwrap();
        let plan = experiment.plan_for(&choice, Precision::F64).unwrap();
        let mut engine = experiment.engine(&plan, choice).unwrap().engine;
        let (result, _) = experiment.run(engine.as_mut(), &RunOptions::default(), &mut Unwatched).unwrap();
        for (cell, expected) in expected.iter().enumerate() {
            let found: Vec<f64> = (0..9).map(|row| result.series[0].values.get(row, cell)).collect();
            assert_eq!(found, expected);
        }
    }
}

/// The numbers of a kernel that are drawn, given again, change no spike; others do, and as many as there are must be given.
#[test]
fn a_run_takes_the_numbers_of_a_kernel() {
    let checked = checked(GRIDS);
    let experiment = |per_cell: Vec<neuroc::ode::PerCell>| {
        let options = CompileOptions { per_cell, ..CompileOptions::default() };
        Experiment::new(driver::compile(&checked, &options, &mut |_, _, _| {}).unwrap())
    };
    let spikes = |per_cell: Vec<neuroc::ode::PerCell>| {
        let experiment = experiment(per_cell).unwrap();
        let engines = [interp(), native()].map(|choice| {
            let choice = choice.unwrap();
            let plan = experiment.plan_for(&choice, Precision::F64).unwrap();
            experiment.engine(&plan, choice).unwrap().engine
        });
        let found = engines.map(|mut engine| {
            let (result, _) = experiment.run(engine.as_mut(), &RunOptions::default(), &mut Unwatched).unwrap();
            result.spikes.iter().map(|train| train.i.to_vec()).collect::<Vec<_>>()
        });
        assert_eq!(found[0], found[1]);
        found[0].clone()
    };
    let drawn = spikes(Vec::new());
    assert!(drawn.iter().all(|train| train.len() > 10), "{drawn:?}");
    let given = |values: Vec<f64>| {
        vec![neuroc::ode::PerCell { name: "pixels.hidden.Kick.weight".into(), values: values.into() }]
    };
    let model = &experiment(Vec::new()).unwrap();
    let kernel = neuroc::simulate::shared(&model.compiled.ode, &model.extent, &model.compiled.ode.projections[0]);
    let neuroc::simulate::Shared { values: kernel, of, share } = kernel.unwrap().unwrap();
    assert_eq!(share, 0.25);
    assert_eq!((kernel.len(), of.len()), (54, model.setup.edges[0].1.sources.len()));
    assert_eq!(spikes(given(kernel)), drawn);
    assert_ne!(spikes(given(vec![0.5; 54])), drawn);
    let error = experiment(given(vec![0.5; 55])).unwrap_err().swap_remove(0);
    assert!(error.labels[0].message.contains("the kernel has 54: for 3 channels from 2 channels"), "{error:?}");
}

/// Cells that compute and pass on what they compute at every moment, some of them through a state of the synapse before: no cell spikes but the pixels.
const RATES: &str = "
    cell Pixel { param x = 0.5; state q = 0; q' = x / 1 ms; spike when q > 1 { q -= 1 } }
    cell Rate {
        param tau = 8 ms
        param v0 = 0.5 mV
        state v: mV = v0
        v' = -v / tau - i_syn / 1 nF
    }
    synapse Kick { on event(weight: mV) { v += weight } }
    synapse Analog {
        param gain = 0.5 /mV
        sum s(weight: nA) = weight / (1 + exp(-gain * v_pre))
        current i = -s
    }
    synapse Slow {
        param tau = 5 ms
        state a = 0.2
        a' = (v_pre / 1 mV - a) / tau
        sum s(weight: nA) = weight * a
        state f: nA = 0 nA
        f' = (s - f) / 3 ms
        current i = -f
    }
    network main {
        population pixels: Pixel[5]
        population hidden: Rate[4]
        population out: Rate[3]
        init out.v ~ uniform(0 mV, 0.5 mV)
        connect pixels -> hidden via Kick { rule = all_to_all; weight ~ uniform(0 mV, 1 mV); delay = 1 ms }
        connect hidden -> hidden via Analog { rule = all_to_all; weight ~ uniform(-0.4 nA, 0.4 nA) }
        connect hidden -> out via Analog { rule = probability(p = 0.8); weight ~ uniform(0.1 nA, 0.5 nA) }
        connect hidden -> out via Slow { rule = all_to_all; weight ~ uniform(0 nA, 0.2 nA) }
    }
    run { duration = 20 ms; dt = 0.5 ms; seed = 3; record out.v; record spikes of {pixels, hidden, out} }";

fn rates(
    text: &str,
    learn: &[&str],
    options: &CompileOptions,
    (threads, precision): (usize, Precision),
    choice: &dyn Fn() -> Result<EngineChoice, EngineError>,
) -> Learner {
    let lesson = Lesson {
        gradient: Gradient::Bptt,
        input: ("pixels.x".into(), Span::default()),
        example: input()[..PIXELS].into(),
        frame: None,
        learn: learn.iter().map(|name| Learn::of(name)).collect(),
        reads: placed(vec![Read::State("out.v".into())]),
        carried: Carried { surrogate: Surrogate::FastSigmoid(4.0), detached: true },
        trials: TRIALS,
        threads,
        precision,
    };
    let text = text.replace("{pixels, hidden, out} }", "pixels }");
    Learner::new(&checked(&text), options, &lesson, choice).unwrap_or_else(|d| panic!("{d:?}"))
}

const RATES_LEARN: [&str; 7] = [
    "pixels.hidden.Kick.weight",
    "hidden.hidden.Analog.weight",
    "hidden.out.Analog.weight",
    "hidden.out.Slow.weight",
    "hidden.v0",
    "hidden.Analog.pre.gain",
    "hidden.Slow.pre.tau",
];

fn of_rates(learner: &mut Learner, values: &[f64]) -> driver::Found {
    let judge = judge_of(hir::Loss::MeanSquare { correct: 1.0, incorrect: 0.0 }, Readout::Mean);
    learner.gradient(values, &[input()], &mut of_trials(&judge)).unwrap()
}

#[test]
fn what_cells_compute_goes_through_graded_synapses() {
    // With spikes, so that resets are passed on, too.
    let spiking = RATES.replace(
        "v' = -v / tau - i_syn / 1 nF",
        "v' = -v / tau - i_syn / 1 nF\n        spike when v > 0.8 mV { v -= 0.8 mV }",
    );
    for (number, method) in ["exp_euler", "euler", "cnexp", "crank_nicolson"].into_iter().enumerate() {
        let text = spiking.replace("dt = 0.5 ms;", &format!("dt = 0.5 ms; method = {method};"));
        is_a_run(4 * number, &text, ("out.v", "hidden.out.Slow.weight"), TRIALS);
    }
    // From and to places of cells with sections.
    let rate = "cell Rate {";
    let branched = "channel Leak { param gbar = 0.1 mS/cm2; param erev = 0 mV }
    cell Branched {
        section s { length = 50 um; diam = 4 um; compartments = 3 }
        region all { ra = 100 ohm*cm; cm = 1 uF/cm2; v_init = 0.2 mV; insert Leak }
        spike when s(0.5).v crosses 0.8 mV
    }
    synapse Current {
        state c: nA = 0 nA
        c' = -c / 2 ms
        on event(weight: nA) { c += weight }
        current i = -c
    }
    cell Rate {";
    let text = spiking
        .replace(rate, branched)
        .replace("dt = 0.5 ms;", "dt = 0.5 ms; method = cnexp;")
        .replace("hidden: Rate[4]", "hidden: Branched[4]; init hidden.v ~ uniform(0 mV, 0.5 mV)")
        .replace("pixels -> hidden via Kick", "pixels -> hidden.s(0.1) via Current")
        .replace("uniform(0 mV, 1 mV)", "uniform(0 nA, 1e-3 nA)")
        .replace("hidden -> hidden via", "hidden.s(0.9) -> hidden.s(0.5) via")
        .replace("uniform(-0.4 nA, 0.4 nA)", "uniform(-4e-4 nA, 4e-4 nA)")
        .replace("hidden -> out via", "hidden.s(0.9) -> out via");
    is_a_run(16, &text, ("out.v", "hidden.out.Slow.weight"), TRIALS);
    let learn = ["hidden.s(0.8333).Analog.pre.gain", "hidden.s(0.8333).Slow.pre.tau"];
    let mut learner = rates(&text, &learn, &CompileOptions::default(), (1, Precision::F64), &native);
    let begin: Vec<f64> = learner.fitted().iter().map(|one| one.value.unwrap()).collect();
    let found = of_rates(&mut learner, &begin).parameters;
    for (at, &slope) in found.iter().enumerate() {
        let h = 1e-5 * begin[at];
        let mut loss = |by: f64| {
            let mut values = begin.clone();
            values[at] += by;
            of_rates(&mut learner, &values).loss
        };
        let near = (loss(h) - loss(-h)) / (2.0 * h);
        assert!(slope.abs() > 1e-7 && (near - slope).abs() < 1e-5 * slope.abs(), "{at}: {near} {slope}");
    }
}

#[test]
fn gradients_through_what_cells_compute_are_central_differences() {
    let none = CompileOptions::default();
    for method in ["exp_euler", "euler"] {
        let text = RATES.replace("dt = 0.5 ms;", &format!("dt = 0.5 ms; method = {method};"));
        let mut learner = rates(&text, &RATES_LEARN, &none, (1, Precision::F64), &interp);
        let begin: Vec<f64> = learner.fitted().iter().map(|one| one.value.unwrap()).collect();
        let found = of_rates(&mut learner, &begin);
        for (at, &slope) in found.parameters.iter().enumerate() {
            let h = 1e-5 * begin[at];
            let mut loss = |by: f64| {
                let mut values = begin.clone();
                values[at] += by;
                of_rates(&mut learner, &values).loss
            };
            let near = (loss(h) - loss(-h)) / (2.0 * h);
            assert!(
                slope.abs() > 1e-5 && (near - slope).abs() < 1e-7 * slope.abs().max(0.1),
                "{method}, {at}: {near} {slope}"
            );
        }
        let weights: Vec<Vec<f64>> = learner.learnt().into_iter().map(|(_, values)| values).collect();
        for number in 0..weights.len() {
            let slopes = learner.in_order(number, &found.edges[number]);
            // Derivatives are in the units of the synapses: mV, and nA, which are 1e-3 uA.
            let unit = if number == 0 { 1.0 } else { 1e-3 };
            for (edge, &slope) in slopes.iter().enumerate() {
                let mut loss = |by: f64| {
                    let mut all = weights.clone();
                    all[number][edge] += by;
                    learner.set_learnt(&all);
                    of_rates(&mut learner, &begin).loss
                };
                let h = 1e-4 * unit;
                let near = (loss(h) - loss(-h)) / (2.0 * h) * unit;
                assert!(
                    slope.abs() > 1e-6 && (near - slope).abs() < 1e-7,
                    "{method}, {number}, {edge}: {near} {slope}"
                );
            }
            learner.set_learnt(&weights);
        }
        // On every engine.
        let mut others = Vec::from([
            (rates(&text, &RATES_LEARN, &none, (1, Precision::F64), &native), 1e-10),
            (rates(&text, &RATES_LEARN, &none, (3, Precision::F64), &native), 1e-10),
            (rates(&text, &RATES_LEARN, &none, (1, Precision::F32), &native), 1e-4),
        ]);
        #[cfg(feature = "xla")]
        others.extend(xla().map(|xla| (rates(&text, &RATES_LEARN, &for_xla(), (1, Precision::F64), &xla), 1e-10)));
        let all = |found: &driver::Found| [found.edges.concat(), found.parameters.clone(), vec![found.loss]].concat();
        let most = all(&found).iter().fold(0.0, |most: f64, x| most.max(x.abs()));
        let mut natively = Vec::new();
        for (number, (learner, tolerance)) in others.iter_mut().enumerate() {
            let other = of_rates(learner, &begin);
            for (other, own) in all(&other).iter().zip(all(&found)) {
                assert!((other - own).abs() < *tolerance * most, "{method}, {number}: {other}, not {own}");
            }
            natively.push(other);
        }
        assert_eq!(natively[0], natively[1], "threads change nothing");
    }
}

/// How far a cell is above its threshold is the same number, however the condition is written.
#[test]
fn surrogates_see_which_side_of_the_threshold_a_cell_is_on() {
    let slope = "if x > 0 then 1 / (1 + x) else 1 / (1 - 4 * x)^2";
    let (judge, read) = judge("cross_entropy(spike_count(out))");
    let gradient = |condition: &str| {
        let text =
            net_text("v -= 1 mV", &training(slope)).replace("spike when v > 1 mV", &format!("spike when {condition}"));
        let carried = Carried { surrogate: Surrogate::None, detached: false };
        let mut learner =
            learner(&checked(&text), read.clone(), carried, 1, &interp).unwrap_or_else(|d| panic!("{d:?}"));
        let mut loss = |samples: &[Vec<f64>]| {
            let judged = judge.judge(samples, TRIALS, &CLASSES);
            Loss { value: judged.loss, slopes: judged.slopes }
        };
        let found = learner.gradient(&[8.0], &[input()], &mut loss).unwrap();
        (found.edges, found.parameters)
    };
    let wanted = gradient("v > 1 mV");
    for condition in ["v >= 1 mV", "1 mV < v", "1 mV <= v", "not (v <= 1 mV)", "not v < 1 mV"] {
        assert_eq!(gradient(condition), wanted, "{condition}");
    }
}

/// An array as IDX has it, in bytes.
fn idx(shape: &[usize], numbers: &[f64]) -> Vec<u8> {
    let sides = shape.iter().flat_map(|&side| (side as u32).to_be_bytes());
    [0, 0, 8, shape.len() as u8].into_iter().chain(sides).chain(numbers.iter().map(|&x| x as u8)).collect()
}

#[test]
fn samples_may_be_files_of_arrays() {
    let folder = tempfile::tempdir().unwrap();
    let archive = root().join("examples/data/digits.npz");
    let place = |path: &Path| (path.to_owned(), Span::default());
    let read = |data: &Samples, test: &Split| Dataset::read(data, false, test, 1);
    let of_archive = Samples { file: place(&archive), labels: None };
    let wanted = read(&of_archive, &Split::Share(0.2)).unwrap();
    let numbers = |from: usize, to: usize| {
        let x: Vec<f64> = (from..to).flat_map(|sample| wanted.frame(sample, 0).to_vec()).collect();
        let y: Vec<f64> = (from..to).map(|sample| wanted.class(sample) as f64).collect();
        (x, y)
    };
    let files = |from: usize, to: usize, name: &str| {
        let (x, y) = numbers(from, to);
        let paths = ["images", "labels"].map(|what| folder.path().join(format!("{name}-{what}-ubyte")));
        std::fs::write(&paths[0], idx(&[to - from, 8, 8], &x)).unwrap();
        std::fs::write(&paths[1], idx(&[to - from], &y)).unwrap();
        Samples { file: place(&paths[0]), labels: Some(place(&paths[1])) }
    };
    let all = wanted.count();
    let found = read(&files(0, all, "all"), &Split::Share(0.2)).unwrap();
    assert_eq!((found.train(), found.test(), found.shape()), (wanted.train(), wanted.test(), &[8, 8][..]));
    assert!((0..all).all(|sample| found.frame(sample, 0) == wanted.frame(sample, 0)));
    assert!((0..all).all(|sample| found.class(sample) == wanted.class(sample)));
    // Test samples of their own come last.
    let (first, rest) = (files(0, 1500, "train"), files(1500, all, "t10k"));
    let parts = read(&first, &Split::Samples(rest.clone())).unwrap();
    assert_eq!((parts.train(), parts.test()), (&*(0..1500).collect::<Vec<_>>(), &*(1500..all).collect::<Vec<_>>()));
    assert!((0..all).all(|sample| parts.frame(sample, 0) == wanted.frame(sample, 0)));
    // .npy and the classes of an archive.
    let (x, _) = numbers(0, all);
    let path = folder.path().join("x.npy");
    ndarray_npy::write_npy(&path, &ndarray::Array2::from_shape_vec((all, 64), x).unwrap()).unwrap();
    let mixed = Samples { file: place(&path), labels: Some(place(&archive)) };
    assert_eq!(read(&mixed, &Split::Share(0.2)).unwrap(), wanted);
    // What is wrong is told of the file that is wrong.
    let why = |samples: &Samples, test: &Split| {
        let d = read(samples, test).unwrap_err();
        format!("{} ({})", d.message, d.labels[0].message)
    };
    let alone = Samples { labels: None, ..mixed.clone() };
    assert!(why(&alone, &Split::Share(0.0)).contains("say where their classes are"));
    assert!(why(&first, &Split::Samples(mixed)).contains("its samples have the shape [64], those of"));
    let crossed = Samples { labels: rest.labels, ..first };
    let said = why(&crossed, &Split::Share(0.0));
    assert!(
        said.contains("t10k-labels") && said.contains("`x` has 1500 samples, but the shape of `y` is [297]"),
        "{said}"
    );
}

/// The learner of [`learner_with`] in which derivatives go back as e-prop adds them up.
fn eprop(
    checked: &Checked,
    options: &CompileOptions,
    read: Vec<Read>,
    choice: &dyn Fn() -> Result<EngineChoice, EngineError>,
) -> Learner {
    let learn = ["pixels.hidden.Kick.weight", "hidden.hidden.Kick.weight", "hidden.out.Kick.weight", "tau"];
    let lesson = Lesson {
        input: ("pixels.x".into(), Span::default()),
        example: input()[..PIXELS].into(),
        frame: None,
        learn: learn.map(Learn::of).to_vec(),
        reads: placed(read),
        carried: Carried { surrogate: Surrogate::FastSigmoid(4.0), detached: true },
        gradient: Gradient::Eprop,
        trials: TRIALS,
        threads: 2,
        precision: Precision::F64,
    };
    let mut learner = Learner::new(checked, options, &lesson, choice).unwrap_or_else(|d| panic!("{d:?}"));
    learner.set_learnt(&all_weights());
    learner
}

fn agrees_with_eligibility_traces(options: &CompileOptions, choice: &dyn Fn() -> Result<EngineChoice, EngineError>) {
    let text = std::fs::read_to_string(root().join("tests/reference/eprop.json")).unwrap();
    let reference: Value = serde_json::from_str(&text).unwrap();
    let cases = reference["cases"].as_array().unwrap();
    assert_eq!(cases.len(), 4);
    for case in cases {
        let reset = if case["reset"] == "subtract" { "v -= 1 mV" } else { "v = 0 mV" };
        let (judge, read) = judge(case["loss"].as_str().unwrap());
        let mut learner = eprop(&net(reset, ""), options, read, choice);
        let mut loss = |samples: &[Vec<f64>]| {
            let judged = judge.judge(samples, TRIALS, &CLASSES);
            Loss { value: judged.loss, slopes: judged.slopes }
        };
        let found = learner.gradient(&[8.0], &[input()], &mut loss).unwrap();
        let numbers =
            |name: &str| -> Vec<f64> { case[name].as_array().unwrap().iter().map(|x| x.as_f64().unwrap()).collect() };
        let close = |a: f64, b: f64| assert!((a - b).abs() <= 1e-11 * b.abs().max(1e-2), "{a} {b}\n{case}");
        close(found.loss, numbers("value")[0]);
        close(found.parameters[0], numbers("tau")[0]);
        let all = [("pixels", PIXELS, HIDDEN, true), ("recurrent", HIDDEN, HIDDEN, false), ("out", HIDDEN, OUT, true)];
        for (number, (name, sources, targets, itself)) in all.into_iter().enumerate() {
            let wanted = numbers(name);
            let found = learner.in_order(number, &found.edges[number]);
            for (a, (i, j)) in found.into_iter().zip(edges(sources, targets, itself)) {
                close(a, wanted[i * targets + j]);
            }
        }
    }
}

#[test]
fn eprop_is_what_eligibility_traces_add_up() {
    agrees_with_eligibility_traces(&CompileOptions::default(), &interp);
    agrees_with_eligibility_traces(&CompileOptions::default(), &native);
}

#[cfg(feature = "xla")]
#[test]
fn eprop_on_xla_is_what_eligibility_traces_add_up() {
    let Some(xla) = xla() else { return };
    agrees_with_eligibility_traces(&for_xla(), &xla);
}

/// The derivatives in parameters of a net without spikes, which must be central differences; `input` gives `c.x` of two trials, of two cells each.
fn are_central_differences(
    text: &str,
    names: &[&str],
    options: &CompileOptions,
    choice: &dyn Fn() -> Result<EngineChoice, EngineError>,
) {
    let checked = checked(text);
    assert!(checked.model.is_some(), "{:?}", checked.diagnostics);
    let input = vec![0.0, 1.0, 1.0, 0.5];
    let lesson = Lesson {
        input: ("c.x".into(), Span::default()),
        example: input[..2].into(),
        frame: None,
        learn: names.iter().map(|name| Learn::of(name)).collect(),
        reads: placed(vec![Read::State("c.v".into())]),
        carried: Carried { surrogate: Surrogate::FastSigmoid(4.0), detached: true },
        gradient: Gradient::Bptt,
        trials: 2,
        threads: 1,
        precision: Precision::F64,
    };
    let mut learner = Learner::new(&checked, options, &lesson, choice).unwrap_or_else(|d| panic!("{d:?}"));
    let judge = Judge {
        loss: hir::Loss::MeanSquare { correct: 1.0, incorrect: -0.3 },
        unit: 1.0,
        read: Reading { readout: Readout::Mean, of: 0, cells: 2 },
        kept: Vec::new(),
        dt: 1.0,
    };
    let mut loss = |samples: &[Vec<f64>]| {
        let judged = judge.judge(samples, 2, &[0, 1]);
        Loss { value: judged.loss, slopes: judged.slopes }
    };
    let begin: Vec<f64> = learner.fitted().iter().map(|one| one.value.unwrap()).collect();
    let mut of = |values: &[f64]| learner.gradient(values, std::slice::from_ref(&input), &mut loss).unwrap();
    let found = of(&begin).parameters;
    for (at, &slope) in found.iter().enumerate() {
        let h = 1e-4 * begin[at];
        let mut moved = |by: f64| {
            let mut values = begin.clone();
            values[at] += by;
            of(&values).loss
        };
        let near = (moved(h) - moved(-h)) / (2.0 * h);
        assert!(
            slope != 0.0 && (near - slope).abs() < 1e-6 * slope.abs().max(1e-2),
            "{at}: {slope}, not {near}\n{text}"
        );
    }
}

/// What cells begin with, and parameters of their own, may be made of samples and of what learns together.
#[test]
fn what_samples_and_learnt_numbers_make_together_has_slopes_of_all_samples() {
    let run = "run { duration = 10 ms; dt = 1 ms; record c.v }";
    let texts = [
        "cell C { param x = 0.3; param v0 = 0.4 mV; state v: mV = v0 * (1 + 0.5 * x); v' = -v / 10 ms }
        network main { population c: C[2] }",
        "cell C { param x = 0.3; param v0 = 0.4 mV; param y: mV = v0 * (1 + 0.5 * x); state v: mV = 0 mV; v' = (y - v) / 10 ms }
        network main { population c: C[2] }",
        "cell C { param x = 0.3; param v0 = 0.4 mV; param y: mV = v0 * (1 + 0.5 * x); state v: mV = 0 mV; v' = (y + x * v0 - v) / 10 ms }
        network main { population c: C[2] }",
    ];
    for text in texts {
        let text = format!("{text}\n{run}");
        are_central_differences(&text, &["c.v0"], &CompileOptions::default(), &interp);
        are_central_differences(&text, &["c.v0"], &CompileOptions::default(), &native);
        #[cfg(feature = "xla")]
        if let Some(xla) = xla() {
            are_central_differences(&text, &["c.v0"], &for_xla(), &xla);
        }
    }
}

/// Of two decay rates that are equal each has its part of the derivative.
#[test]
fn equal_decay_rates_have_slopes_of_their_own() {
    for (two, deep) in [("5 ms", false), ("6 ms", false), ("5 ms", true), ("6 ms", true)] {
        let (state, drive) = if deep { ("state b: mV = 0 mV; b' = (a - b) / tb;", "b") } else { ("", "a") };
        let text = format!(
            "cell C {{ param x = 0.3; param tau = 5 ms; param ta = {two}; param tb = 5 ms
                state v: mV = 0 mV; state a: mV = (0.2 + x) * 1 mV; {state}
                v' = -v / tau + {drive} / ta
                a' = -a / ta }}
            network main {{ population c: C[2] }}
            run {{ duration = 10 ms; dt = 1 ms; method = exact; record c.v }}"
        );
        let learn: &[&str] = if deep { &["c.tau", "c.ta", "c.tb"] } else { &["c.tau", "c.ta"] };
        are_central_differences(&text, learn, &CompileOptions::default(), &interp);
        are_central_differences(&text, learn, &CompileOptions::default(), &native);
    }
}

/// Who trains is told which state is lost, and with which sample.
#[test]
fn a_state_that_is_lost_is_named_with_its_sample() {
    let text = digits(64, TRAIN).replace("q' = x / 32 ms", "q' = sqrt(15.5 - x) / 32 ms");
    let mut session = session(&text).unwrap_or_else(|d| panic!("{d:?}"));
    let said = session.epoch(&mut train::Unwatched).unwrap_err().0;
    let number = |before: &str| -> usize {
        let rest = said.split_once(before).unwrap_or_else(|| panic!("{said}")).1;
        rest.split(|c: char| !c.is_ascii_digit()).next().unwrap().parse().unwrap()
    };
    assert!(said.contains("of `pixels.q` is no longer a finite number in epoch 1"), "{said}");
    let (pixel, sample) = (number("number "), number("with sample "));
    assert!(session.data().frame(sample, 0)[pixel] > 15.5, "{said}");
}

/// What fills the last batch up to its size counts no spikes.
#[test]
fn spikes_are_those_of_the_samples_that_are_there() {
    let scores = |batch: usize, session: &dyn Fn(&str) -> Session| {
        let mut session = session(&digits(64, &TRAIN.replace("batch = 64", &format!("batch = {batch}"))));
        let seen = session.epoch(&mut train::Unwatched).unwrap().unwrap();
        (seen.spikes, session.test().unwrap().unwrap().spikes)
    };
    let natively = |text: &str| session(text).unwrap_or_else(|d| panic!("{d:?}"));
    // Of 1438 samples that are learnt from and 359 for testing, batches of 719 and 359 leave none over.
    let wanted = (scores(719, &natively).0, scores(359, &natively).1);
    assert!(wanted.0 > 10.0 && wanted.1 > 10.0, "{wanted:?}");
    assert_eq!(scores(1000, &natively), wanted);
    #[cfg(feature = "xla")]
    if let Some(xla) = xla() {
        assert_eq!(scores(1000, &|text| session_on_xla(text, &xla)), wanted);
    }
}

/// Spikes that were recorded are booleans more often than numbers, and classes of two are.
#[test]
fn samples_may_be_booleans() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let read = |x: &str, y: &str| {
        let [x, y] = [x, y].map(|name| (path(name), Span::default()));
        Dataset::read(&Samples { file: x, labels: Some(y) }, false, &Split::Share(0.5), 1)
    };
    let x = ndarray::Array2::from_shape_fn((4, 3), |(sample, value)| (sample + value) % 3 == 0);
    let y = ndarray::Array1::from_shape_fn(4, |sample| sample % 2 == 1);
    let number = |x: &bool| if *x { 1.0 } else { 0.0 };
    ndarray_npy::write_npy(path("x.npy"), &x).unwrap();
    ndarray_npy::write_npy(path("y.npy"), &y).unwrap();
    ndarray_npy::write_npy(path("numbers.npy"), &x.map(number)).unwrap();
    ndarray_npy::write_npy(path("classes.npy"), &y.map(number)).unwrap();
    assert_eq!(read("x.npy", "y.npy").unwrap(), read("numbers.npy", "classes.npy").unwrap());
    // NumPy's halves are as long as these.
    ndarray_npy::write_npy(path("short.npy"), &x.map(|x| u16::from(*x))).unwrap();
    let mut bytes = std::fs::read(path("short.npy")).unwrap();
    let at = bytes.windows(3).position(|w| w == b"<u2").unwrap();
    bytes[at + 1] = b'f';
    std::fs::write(path("half.npy"), &bytes).unwrap();
    let said = read("half.npy", "y.npy").unwrap_err().labels[0].message.clone();
    assert_eq!(said, "its numbers are float16: save `x.astype('float32')`");
}

/// In a `train` block initial values are not said to be fitted, and memory is told as elsewhere.
#[test]
fn what_is_refused_is_told_in_the_words_of_training() {
    let text = digits(64, &TRAIN.replace("pixels.out.Kick.weight", "out.v"));
    let said = &session(&text).err().unwrap()[0];
    assert_eq!(said.message, "`out.v` is an initial value; so far parameters alone are learnt");
    let small = Session::new(&checked(&digits(64, TRAIN)), &CompileOptions::default(), &interp, 1, Precision::F64, 3e4);
    let said = &small.err().unwrap()[0];
    assert!(said.message.ends_with(" kB, and 30.0 kB may be used"), "{said:?}");
    assert!(said.labels[0].message.contains(" kB; `batch = "), "{said:?}");
}

/// A share that is less than a sample is warned of, where the file is checked and where it is learnt from.
#[test]
fn a_share_that_keeps_no_sample_is_warned_of() {
    let with = |test: &str| digits(64, &TRAIN.replace("batch = 64", &format!("batch = 64\ntest = {test}")));
    let warned = |test: &str| {
        let session = session(&with(test)).unwrap_or_else(|d| panic!("{d:?}"));
        let checked = driver::check_whole(checked(&with(test)));
        assert!(checked.model.is_some(), "{:?}", checked.diagnostics);
        assert_eq!(session.warning(), checked.diagnostics.first());
        session.warning().map(|d| d.message.clone())
    };
    assert_eq!(warned("0.0005").as_deref(), Some("`test = 0.0005` of 1797 samples keeps none for testing"));
    assert_eq!((warned("0"), warned("0.001")), (None, None));
}

/// What was learnt from is not tested later: a larger share is refused, less of the same and another batch are fine.
#[test]
fn what_was_learnt_from_is_never_tested() {
    let with = |test: &str, batch: usize| {
        let train = TRAIN.replace("batch = 64", &format!("batch = {batch}\ntest = {test}"));
        session(&digits(64, &train)).unwrap_or_else(|d| panic!("{d:?}"))
    };
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("weights.npz");
    with("0.25", 64).trained().unwrap().write(&path).unwrap();
    let kept = Trained::read(&path).unwrap();
    let goes_on = |test: &str, batch: usize| with(test, batch).resume(&kept);
    for (test, batch) in [("0.25", 64), ("0.25", 10), ("0.1", 64), ("0", 64)] {
        assert_eq!(goes_on(test, batch), Ok(()), "{test}");
    }
    let said = "449 of 1797 samples were kept for testing, and 539 of 1797 are now: samples that it has learnt from would be tested";
    assert_eq!(goes_on("0.3", 64), Err(said.to_owned()));
    // Files that are older do not say it.
    let mut older = kept.clone();
    older.progress.as_mut().unwrap().split = None;
    older.write(&path).unwrap();
    assert_eq!(Trained::read(&path).unwrap(), older);
    assert_eq!(with("0.3", 64).resume(&older), Ok(()));
}

/// What is read out of spikes and records may be that of a time window: of the time in which a current flows, not of the run.
#[test]
fn targets_have_windows_of_time() {
    let model = |target: &str| {
        format!(
            "cell C {{ state v = 0; v' = inj; input inj: 1/ms; spike when v > 1 {{ v -= 1 }} }}
            network main {{ population c: C
                input step: pulse(delay = 20 ms, duration = 60 ms, amplitude = 0.1 /ms) -> c.inj }}
            run {{ duration = 100 ms; dt = 0.1 ms; record spikes of c; record c.v }}
            fit {{ free step.amplitude = 0.05 .. 0.5 /ms; search = nelder_mead; iterations = 40; {target} }}"
        )
    };
    let fit = |target: &str| {
        let here = folder(&[("m.neuro", &model(target))]);
        let done = neuroc(&here, &["fit", "m.neuro", "--engine", "interp", "-o", "x.set"]);
        let amplitude = std::fs::read_to_string(here.path().join("x.set")).unwrap_or_default();
        let number =
            amplitude.split(['=', ' ']).find_map(|word| word.trim().trim_end_matches("/ms").parse::<f64>().ok());
        (number, done.out, done.err)
    };
    let (found, out, err) = fit("target rate(c) = 200 Hz from 20 ms to 80 ms within 1 Hz");
    assert!(found.is_some_and(|x| (0.19..0.22).contains(&x)), "{found:?}{out}{err}");
    assert!(out.contains("rate(c) from 20 ms to 80 ms"), "{out}");
    // Two windows are two targets; one end is enough.
    let two = "target spike_count(c) = 12 from 20 ms; target spike_count(c) = 0 to 20 ms within 1";
    let (found, out, err) = fit(two);
    assert!(found.is_some_and(|x| (0.19..0.22).contains(&x)), "{found:?}{out}{err}");
    for (target, said) in [
        ("target rate(c) = 200 Hz from 100 ms", "`rate(c) from 100 ms` cannot be read out: the run ends at 100 ms"),
        ("target rate(c) = 200 Hz from 20 ms to 101 ms", "cannot be read out: the run ends at 100 ms"),
        ("target mean(c.v) = 1 from 20.02 ms to 20.08 ms", "has no sample for"),
        ("target first_spike(c) = 90 ms from 20 ms to 80 ms", "is a time within its window"),
        ("target rate(c) = 200 Hz from 80 ms to 20 ms", "nothing can be read out from 80 ms to 20 ms"),
        ("target rate(c) = 200 Hz from 20 mV", "this is a voltage, where a time is needed"),
        ("target rate(c) = 200 Hz to 20 ms to 30 ms", "`to` is given twice"),
        ("target c.v = \"m.csv\" from 20 ms", "a trace is compared at the samples of its record"),
    ] {
        let (found, _, err) = fit(target);
        assert!(found.is_none() && err.contains(said), "{target}: {err}");
    }
}

/// What a run has written has a column for each cell; the trace of a fit is one of them.
#[test]
fn a_trace_may_be_a_column_of_several() {
    let text = "cell C { param tau = 8 ms; state v: mV = 1 mV; v' = -v / tau }
        network main { population c: C[3]; param c.tau = 4 ms * (1 + index) }
        run { duration = 20 ms; dt = 0.1 ms; record c.v }";
    let fit = |target: &str| {
        format!(
            "cell C {{ param tau = 9 ms; state v: mV = 1 mV; v' = -v / tau }}
            network main {{ population c: C }}
            run {{ duration = 20 ms; dt = 0.1 ms; record c.v }}
            fit {{ free c.tau = 1 .. 20 ms; target c.v = {target} }}"
        )
    };
    let named = fit("file(\"run.csv\", column = \"COLUMN\")");
    let here = folder(&[("run.neuro", text), ("none.neuro", &fit("\"run.csv\""))]);
    assert_eq!(neuroc(&here, &["run", "run.neuro", "--engine", "interp", "-o", "run.csv", "--quiet"]).code, 0);
    let heading = std::fs::read_to_string(here.path().join("run.csv")).unwrap();
    let column = heading.lines().next().unwrap().split(',').nth(2).unwrap().to_owned();
    let with = |column: &str| {
        std::fs::write(here.path().join("fit.neuro"), named.replace("COLUMN", column)).unwrap();
        neuroc(&here, &["fit", "fit.neuro", "--engine", "interp", "-o", "x.set"])
    };
    let done = with(&column);
    let found = std::fs::read_to_string(here.path().join("x.set")).unwrap_or_default();
    let tau = found.split(['=', ' ']).find_map(|word| word.trim().trim_end_matches("ms").parse::<f64>().ok());
    assert!(tau.is_some_and(|tau| (tau - 8.0).abs() < 1e-3), "{column}: {found}{}", done.err);
    let other = with("c[7].v (mV)");
    assert!(other.code != 0 && other.err.contains("it has no column `c[7].v (mV)`, but"), "{}", other.err);
    let none = neuroc(&here, &["fit", "none.neuro", "--engine", "interp", "-o", "x.set"]);
    assert!(none.err.contains("4 columns, not two") && none.err.contains("column = \"...\""), "{}", none.err);
}
