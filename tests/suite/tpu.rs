//! Compiling for TPUs through libtpu, without one; and the forms of gathers, on XLA's CPU plugin.

use neuroc::codegen::plan::{DeviceClass, GatherForm, PlanOptions, Precision, plan};
use neuroc::driver::{CompileOptions, Compiled, Draft, Experiment, check_file, compile};
use neuroc::engine::inputs::Inputs;
use neuroc::engine::native::{NativeEngine, NativeOptions};
use neuroc::engine::xla::XlaEngine;
use neuroc::engine::{Edges, Engine};
use neuroc::passes::Backend;
use neuroc::pjrt::{Client, Plugin};
use neuroc::plugins::{Kind, Search};
use neuroc::runtime::order::Arrangement;
use neuroc::tpu::{Job, Report, Target};
use std::path::Path;
use std::sync::Arc;

const TARGETS: [&str; 4] = ["tpu:v4", "tpu:v5e", "tpu:v5p", "tpu:v6e"];

fn plugin(kind: Kind) -> Option<Plugin> {
    match Search::everywhere().plugin(kind) {
        Ok(found) => Some(Plugin::load(&found.path).unwrap()),
        Err(why) => {
            crate::lacks(&format!("SKIPPED: {why}\n`make plugins` installs what the tests need"));
            None
        }
    }
}

fn compiled(file: &str, set: &[&str], backend: Backend) -> Compiled {
    let checked = check_file(&Path::new(env!("CARGO_MANIFEST_DIR")).join("examples").join(file));
    let set = set.iter().map(|s| s.to_string()).collect();
    let options = CompileOptions { set, backend, keep_all: true, ..CompileOptions::default() };
    compile(&checked, &options, &mut |_, _, _| {}).unwrap()
}

fn report(plugin: &Plugin, target: &str, compiled: &Compiled, precision: Precision) -> Report {
    let experiment = Experiment::new(compiled.clone()).unwrap();
    let plan = experiment.plan(precision).unwrap();
    let job = Job { experiment: &experiment, plan: &plan };
    job.compile(plugin, &Target::parse(target).unwrap()).unwrap().1
}

/// One of each kind: cells alone and connected, cables, spikes with delays, synapses that remember, networks that learn.
const EXAMPLES: [&str; 15] = [
    "ball_and_stick.neuro",
    "brunel.neuro",
    "calcium_ghk.neuro",
    "delays.neuro",
    "dendritic_calcium.neuro",
    "dendritic_junctions.neuro",
    "digits.neuro",
    "digits_convolution.neuro",
    "evidence.neuro",
    "fi_fit.neuro",
    "inferior_olive/hodgkin_huxley.neuro",
    "inferior_olive/lif.neuro",
    "izhikevich.neuro",
    "lfp.neuro",
    "short_term.neuro",
];

/// One chip for each, in turn.
#[test]
fn examples_compile_for_a_chip() {
    let Some(plugin) = plugin(Kind::Tpu) else { return };
    for (name, target) in EXAMPLES.into_iter().zip(TARGETS.into_iter().cycle()) {
        let compiled = compiled(name, &[], Backend::Xla);
        let report = report(&plugin, target, &compiled, Precision::F32);
        assert!(report.step.bytes > 0.0 && report.step.flops > 0.0, "{name} {target}");
        assert!(report.memory.len() >= 3, "{name} {target}");
        for memory in &report.memory {
            assert!(memory.serialized > 0 && memory.arguments >= 0, "{name} {target} {memory:?}");
            assert!((memory.total as f64) < report.hbm_bytes_of_device, "{name} {target} {memory:?}");
        }
        assert!(!report.advice.is_empty(), "{name} {target}");
    }
}

/// The body of a loop counts once in XLA's cost analysis, whatever the number of iterations. Ten times the cells take ten times the
/// operations of one step; recording at every step, so that the loop has other lines, changes them little.
#[test]
fn costs_are_those_of_one_step() {
    let Some(plugin) = plugin(Kind::Tpu) else { return };
    let flops = |n: &str| {
        let compiled = compiled("squid.neuro", &[n], Backend::Xla);
        report(&plugin, "tpu:v5e", &compiled, Precision::F32)
    };
    let (few, many) = (flops("n=10240"), flops("n=102400"));
    assert!(few.steps_in_line > 1, "several steps in a line");
    let ratio = many.step.flops / few.step.flops;
    assert!((9.5..10.5).contains(&ratio), "{ratio}");
    // The squid axon has four states: no step of a cell takes thousands of operations, nor less than its states have.
    let of_cell = few.step.flops / 10240.0;
    assert!((20.0..500.0).contains(&of_cell), "{of_cell} operations per cell and step");
    assert!((3.0..30.0).contains(&(few.step.transcendentals / 10240.0)), "{:?}", few.step);
    let shown = many.to_string();
    for word in ["(1024 a tile)", "operations per byte", "https://cloud.google.com/tpu/docs/v5e", "Nothing ran"] {
        assert!(shown.contains(word), "{shown}");
    }
    let json: serde_json::Value = serde_json::from_str(&many.json()).unwrap();
    assert_eq!(json["chip"]["hbm_bytes_per_s"], 819e9);
    assert_eq!(json["padding"][0]["padded"], 102_400);
}

/// XLA's own account of memory has the padding that the report derives from the tiles.
#[test]
fn tiles_are_those_of_xla() {
    let Some(plugin) = plugin(Kind::Tpu) else { return };
    for (cells, padded) in [("n=1", 128), ("n=129", 256), ("n=600", 1024), ("n=10240", 10240), ("n=10241", 11264)] {
        let compiled = compiled("squid.neuro", &[cells], Backend::Xla);
        let report = report(&plugin, "tpu:v5e", &compiled, Precision::F32);
        assert_eq!(report.padding[0].padded, padded);
        let init = report.memory.iter().find(|memory| memory.entry == "init").unwrap();
        let states = compiled.ode.states.len();
        // Four bytes of a cell for every state and nothing else but a page of small things.
        let least = (states * padded * 4) as i64;
        assert!((least..least + 4096 * states as i64).contains(&init.outputs), "{} of {least}", init.outputs);
    }
}

#[test]
fn a_connected_olive_is_never_scattered_and_takes_the_cheapest_form() {
    let Some(plugin) = plugin(Kind::Tpu) else { return };
    let compiled = compiled("inferior_olive/inferior_olive.neuro", &["side=9"], Backend::Xla);
    for target in ["tpu:v5e", "tpu:v5p"] {
        let report = report(&plugin, target, &compiled, Precision::F32);
        let forms = &report.gathers[0].forms;
        assert!(forms.len() >= 4, "{forms:?}");
        let chosen = forms.iter().find(|form| form.chosen).unwrap().cost.as_ref().unwrap();
        let padded = forms[0].cost.as_ref().unwrap();
        assert!(chosen.bytes < padded.bytes / 5.0, "{target} {forms:?}");
        assert_eq!(report.step, *chosen);
    }
}

/// A twentieth of what gather and scatter-add over the list of edges would move.
#[test]
fn a_step_of_a_large_connected_olive_moves_few_bytes() {
    let Some(plugin) = plugin(Kind::Tpu) else { return };
    let compiled = compiled("inferior_olive/inferior_olive.neuro", &["side=50"], Backend::Xla);
    let report = report(&plugin, "tpu:v5e", &compiled, Precision::F32);
    assert!(report.step.bytes < 10.7e9 / 20.0, "{} bytes", report.step.bytes);
}

/// What bf16 is for: halos and gathered voltages are half as large. (Of few cells, all pairs are taken, whose table outweighs voltages.)
#[test]
fn storage_in_bf16_moves_fewer_bytes() {
    let Some(plugin) = plugin(Kind::Tpu) else { return };
    let compiled = compiled("inferior_olive/inferior_olive.neuro", &["side=22"], Backend::Xla);
    let of = |precision| report(&plugin, "tpu:v5e", &compiled, precision);
    let (single, stored) = (of(Precision::F32), of(Precision::Bf16));
    println!("{} of {} bytes", stored.step.bytes, single.step.bytes);
    assert!(stored.step.bytes < 0.9 * single.step.bytes, "{} {}", stored.step.bytes, single.step.bytes);
    assert!(stored.to_string().contains("for tpu:v5e:2x2, bf16"), "{stored}");
}

/// States of the olive after some steps, with edges in each form, against the native engine.
#[test]
fn forms_of_gathers_agree() {
    let Some(plugin) = plugin(Kind::Cpu) else { return };
    let client = Client::new(&plugin, Kind::Cpu.client_options()).unwrap();
    for (side, steps) in [("side=4", 4000), ("side=9", 400)] {
        let xla = compiled("inferior_olive/inferior_olive.neuro", &[side], Backend::Xla);
        let native = compiled("inferior_olive/inferior_olive.neuro", &[side], Backend::Native);
        let of = |c: &Compiled| Experiment::new(c.clone()).unwrap().setup;
        let setup = of(&native);
        let options = PlanOptions::default();
        let mut reference =
            NativeEngine::new(&plan(&native.program, &options).unwrap(), &setup, &native_options()).unwrap();
        let expected = run(&mut reference, &native, steps);
        // Junctions matter in this run.
        let mut alone = setup.clone();
        alone.edges.iter_mut().for_each(|(_, edges)| {
            *edges = Arc::new(Edges { offsets: vec![0; edges.offsets.len()], sources: Vec::new() });
        });
        let mut unconnected =
            NativeEngine::new(&plan(&native.program, &options).unwrap(), &alone, &native_options()).unwrap();
        let without = run(&mut unconnected, &native, steps);
        let effect = expected.iter().zip(&without).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
        assert!(effect > 1e-3, "{side}: junctions change states by {effect:e}");
        let (plan, setup) = (plan(&xla.program, &options).unwrap(), of(&xla));
        let grid = setup.grids[0].clone();
        let forms = GatherForm::candidates(&setup.edges[0].1, &grid, plan.relation(0), DeviceClass::Cpu);
        assert_eq!(forms.len(), 5, "{side}");
        for form in forms {
            let mut inputs = Inputs::new(&plan, &setup, DeviceClass::Cpu).unwrap();
            inputs.device.gathers[0][0] = form.clone();
            let mut engine = XlaEngine::with_forms(&setup, inputs, client.clone()).unwrap();
            let states = run(&mut engine, &xla, steps);
            let difference =
                expected.iter().zip(&states).map(|(a, b)| (a - b).abs() / a.abs().max(1e-3)).fold(0.0, f64::max);
            let sum: f64 = states.iter().sum();
            println!("{effect} {sum:.17e} {side}, {} steps, {}: {difference:e}", steps, form.name());
            assert!(difference < 1e-9, "{side} {}: {difference:e}", form.name());
        }
    }
}

fn native_options() -> NativeOptions {
    NativeOptions {
        threads: 1,
        arrangement: Arrangement::default(),
        compile: neuroc::engine::rustc::CompileOptions::default(),
    }
}

fn run(engine: &mut dyn Engine, compiled: &Compiled, steps: u32) -> Vec<f64> {
    engine.init().unwrap();
    engine.step(0, steps, &mut Vec::new()).unwrap();
    let program = compiled.program.program();
    let cells = Draft::new(compiled.clone()).unwrap().extent.cells[0];
    let mut values = Vec::new();
    for state in &compiled.ode.states {
        let field = program.find_field(&state.name).unwrap();
        engine.read(field, 0..cells, &mut values).unwrap();
    }
    values
}
