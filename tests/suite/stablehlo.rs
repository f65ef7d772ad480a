//! StableHLO: what modules look like (snapshots, reviewed), that XLA accepts each of them, that the memory of states is reused, and the
//! files of `build --emit stablehlo`.

use neuroc::codegen::plan::{PlanOptions, Precision, plan};
use neuroc::codegen::stablehlo::{Entry, Kind, Slot, mlir};
use neuroc::driver::{self, CompileOptions};
use neuroc::engine::xla::XlaEngine;
use neuroc::engine::{Engine, Setup};
use neuroc::hir::Sources;
use neuroc::passes::Backend;
use neuroc::pjrt;
use neuroc::simulate::{self, Ending, RunOptions, Unwatched};
use neuroc::{Model, Stage};
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

fn models() -> Vec<PathBuf> {
    let files = std::fs::read_dir(root().join("examples")).unwrap().map(|file| file.unwrap().path());
    let mut models: Vec<PathBuf> = files.filter(|path| path.extension().is_some_and(|e| e == "neuro")).collect();
    models.sort();
    models
}

/// Models whose modules are kept and read: few enough cells that a shape says what it is.
const KEPT: &[(&str, &[&str])] = &[
    ("squid", &["n=3"]),
    ("a_current", &[]),
    ("adex", &[]),
    ("calcium_adaptation", &[]),
    ("cortical_rs", &[]),
    ("inferior_olive", &[]),
    ("izhikevich", &[]),
    ("lif_fi_curve", &["n=5"]),
    ("nmda_spike", &[]),
    ("noise_and_files", &[]),
];

#[test]
fn modules_are_as_reviewed() {
    for &(name, settings) in KEPT {
        let model = Model::from_file(root().join(format!("examples/{name}.neuro"))).unwrap();
        let model = settings.iter().fold(model, |model, setting| model.set(*setting));
        let text = model.stage(Stage::Stablehlo).unwrap();
        insta::with_settings!({ snapshot_path => "../stablehlo", prepend_module_to_snapshot => false, omit_expression => true }, {
            insta::assert_snapshot!(name, text);
        });
    }
}

/// A model compiled for XLA, and what it needs.
fn compiled(checked: &driver::Checked, duration: Option<f64>) -> (driver::Compiled, simulate::Extent, Setup) {
    let options = CompileOptions { backend: Backend::Xla, duration, ..CompileOptions::default() };
    let compiled = driver::compile(checked, &options, &mut |_, _, _| {})
        .unwrap_or_else(|d| panic!("{}", neuroc::diag::render_human(&checked.sources, &d, false)));
    let extent = simulate::extent(&compiled.ode).unwrap();
    let setup = simulate::setup(&compiled.ode, compiled.program.program(), &extent).unwrap();
    (compiled, extent, setup)
}

#[test]
fn xla_compiles_and_runs_every_example() {
    let Some(client) = crate::pjrt::cpu() else { return };
    for path in models() {
        let (compiled, extent, setup) = compiled(&driver::check_file(&path), None);
        for precision in [Precision::F64, Precision::F32] {
            let plan = plan(&compiled.program, &PlanOptions { precision, ..PlanOptions::default() });
            let mut engine =
                XlaEngine::new(&plan, &setup, client.clone()).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
            let program = compiled.program.program();
            let options = RunOptions::default();
            let outcome =
                simulate::run(&compiled.ode, program, &extent, &mut engine, &options, &mut Unwatched).unwrap();
            assert_eq!(outcome.ending, Ending::Done, "{}", path.display());
        }
    }
}

#[test]
fn the_memory_of_states_is_reused() {
    let Some(client) = crate::pjrt::cpu() else { return };
    let (compiled, extent, setup) = compiled(&driver::check_file(&root().join("examples/inferior_olive.neuro")), None);
    let plan = plan(&compiled.program, &PlanOptions::default());
    let device = setup.device_plan(&plan);
    let recording = simulate::recording(&compiled.ode, compiled.program.program(), &extent).unwrap();
    let stretch = neuroc::codegen::plan::Stretch::new(&plan, &device, recording.every, &recording.fields, 40).unwrap();
    for kind in [Kind::Step, Kind::Stretch(stretch)] {
        let entry = Entry::new(&plan, &device, kind, "main");
        let module = mlir::write("m", std::slice::from_ref(&entry.function), &plan.origins, mlir::Format::Bytecode);
        let program = client.compile(&module, &pjrt::CompileOptions::default()).unwrap();
        let states = entry.arguments.iter().filter(|port| matches!(port.slot, Slot::State(..)));
        let bytes: usize = states.map(|port| port.ty.bytes()).sum();
        assert!(bytes > 64 * 14 * 8);
        assert_eq!(program.memory().unwrap().aliased as usize, bytes);
    }
}

/// A value that becomes infinite is found in the step where it does, also within a stretch that was recorded.
#[test]
fn a_value_that_is_not_finite_is_found() {
    let Some(client) = crate::pjrt::cpu() else { return };
    let text = "cell Grow { state x = 1; x' = x * 1 /ms }
        network main { population cells: Grow[3] }
        run { duration = 2000 ms; dt = 0.5 ms; method = euler; record cells.x every 1 ms }";
    let checked = driver::check_text("grow.neuro", Path::new(""), text, &Sources);
    let (compiled, extent, setup) = compiled(&checked, None);
    let mut engine = XlaEngine::new(&plan(&compiled.program, &PlanOptions::default()), &setup, client).unwrap();
    let program = compiled.program.program();
    let outcome =
        simulate::run(&compiled.ode, program, &extent, &mut engine, &RunOptions::default(), &mut Unwatched).unwrap();
    // 1.5^n passes the largest f64 at n = 1751.
    assert_eq!(outcome.steps, 1750);
    let Ending::NotFinite(why) = outcome.ending else { panic!("{:?}", outcome.ending) };
    assert!(why.message.contains("became infinite at t = 875.5 ms"), "{}", why.message);
    assert_eq!(engine.all_finite(), false);
}
