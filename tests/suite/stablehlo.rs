//! StableHLO: what modules look like (snapshots, reviewed), that XLA accepts each of them, that the memory of states is reused, and the
//! files of `build --emit stablehlo`.

use neuroc::artefact;
use neuroc::codegen::plan::{DeviceClass, PlanOptions, Precision, Stretch, plan};
use neuroc::codegen::stablehlo::{Entry, Kind, Slot, mlir};
use neuroc::driver::{self, CompileOptions, EngineChoice, Experiment};
use neuroc::engine::executables::{Compiler, Spent};
use neuroc::engine::xla::XlaEngine;
use neuroc::engine::{Edges, Engine, Setup};
use neuroc::hir::Sources;
use neuroc::passes::Backend;
use neuroc::pjrt;
use neuroc::simulate::{Ending, RunOptions, Unwatched};
use neuroc::step::{self, FieldId, FieldKind, Space, SpaceId, SpaceKind, Verified};
use neuroc::{Model, Stage};
use std::path::{Path, PathBuf};
use std::sync::Arc;

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

fn models() -> Vec<PathBuf> {
    let folders = ["examples", "examples/inferior_olive"];
    let files = folders.iter().flat_map(|folder| std::fs::read_dir(root().join(folder)).unwrap());
    let paths = files.map(|file| file.unwrap().path());
    let mut models: Vec<PathBuf> = paths.filter(|path| path.extension().is_some_and(|e| e == "neuro")).collect();
    models.sort();
    models
}

/// Init, a stretch of four steps with two samples, and observe, as text. For devices other than processors with one step in a
/// line of the loop.
fn modules(program: &Verified, precision: Precision, class: DeviceClass, setup: &Setup) -> String {
    let plan = plan(program, &PlanOptions { precision, ..PlanOptions::default() }).unwrap();
    let series = plan.series.iter().map(|&field| (field, vec![(0.0, 0.0); 5])).collect();
    let setup = Setup { series, grids: Vec::new(), ..setup.clone() };
    let mut device = setup.device_plan(&plan, class).unwrap();
    match class {
        DeviceClass::Cpu => {}
        DeviceClass::Accelerator => device.unroll = 1,
    }
    let program = program.program();
    let sampled = program.fields_where(|field| matches!(field.kind, FieldKind::State | FieldKind::Output));
    let cells = |field: &FieldId| setup.sizes[program.field(*field).over.unwrap().0 as usize];
    let fields = sampled.into_iter().filter(|f| cells(f) > 0).map(|f| (f, 0..cells(&f))).collect();
    let kinds = [Kind::Init, Kind::Stretch(Stretch { every: 2, samples: 2, fields }), Kind::Observe];
    let functions = kinds.map(|kind| Entry::new(&plan, &device, kind.clone(), kind.name()).function);
    String::from_utf8(mlir::write(&plan.name, &functions, &plan.origins, mlir::Format::Plain)).unwrap()
}

fn keep(name: &str, text: &str) {
    let settings = || {
        let mut settings = insta::Settings::clone_current();
        settings.set_snapshot_path("../stablehlo");
        settings.set_prepend_module_to_snapshot(false);
        settings.set_omit_expression(true);
        settings
    };
    settings().bind(|| insta::assert_snapshot!(name, text));
}

/// Every program of `tests/ir`, which hold every operation, and two examples. A space has 3 cells or a few more, so that a shape says
/// what it is; edges are a ring.
#[test]
fn modules_are_as_reviewed() {
    let files = std::fs::read_dir(root().join("tests/ir")).unwrap().map(|file| file.unwrap().path());
    let mut files: Vec<PathBuf> = files.filter(|path| path.extension().is_some_and(|e| e == "ir")).collect();
    files.sort();
    assert!(files.len() >= 10);
    for path in files {
        let text = std::fs::read_to_string(&path).unwrap();
        let program = step::verify(step::parse(&text).unwrap()).unwrap();
        let spaces = &program.program().spaces;
        let sizes: Vec<usize> = (0..spaces.len()).map(|space| 3 + space).collect();
        let ring = |(number, space): (usize, &Space)| {
            let SpaceKind::Relation { from, to } = space.kind else { return None };
            let [senders, cells] = [from, to].map(|space| sizes[space.0 as usize] as u32);
            let beside = |cell: u32| [(cell + cells - 1) % cells % senders, (cell + 1) % cells % senders];
            let sources = (0..cells).flat_map(beside).collect();
            let edges = Edges { offsets: (0..=cells).map(|cell| 2 * cell).collect(), sources };
            Some((SpaceId(number as u32), Arc::new(edges)))
        };
        let edges: Vec<(SpaceId, Arc<Edges>)> = spaces.iter().enumerate().filter_map(ring).collect();
        let name = path.file_stem().unwrap().to_str().unwrap();
        let uniforms = program.program().fields_where(|field| field.kind == FieldKind::Uniform);
        let uniforms = uniforms.into_iter().map(|field| (field, 0.5)).collect();
        let setup = Setup { sizes, edges, uniforms, ..Setup::default() };
        keep(name, &modules(&program, Precision::F64, DeviceClass::Accelerator, &setup));
        if name == "deliveries" {
            keep("deliveries_cpu", &modules(&program, Precision::F64, DeviceClass::Cpu, &setup));
        }
        if name == "two_edges" {
            for (name, class) in
                [("two_edges_bf16", DeviceClass::Accelerator), ("two_edges_bf16_cpu", DeviceClass::Cpu)]
            {
                keep(name, &modules(&program, Precision::Bf16, class, &setup));
            }
        }
    }
    for name in ["squid", "inferior_olive/inferior_olive"] {
        let checked = driver::check_file(&root().join(format!("examples/{name}.neuro")));
        let name = name.rsplit('/').next().unwrap();
        let Experiment { compiled, setup, .. } = compiled(&checked, None);
        keep(name, &modules(&compiled.program, Precision::F64, DeviceClass::Accelerator, &setup));
        let on_cpu = modules(&compiled.program, Precision::F64, DeviceClass::Cpu, &setup);
        keep(&format!("{name}_cpu"), &on_cpu);
    }
}

/// The whole text that a user sees is what XLA is given, but for source places.
#[test]
fn the_stage_has_all_entry_points() {
    let model = Model::from_file(root().join("examples/squid.neuro")).unwrap();
    let text = model.stage(Stage::Stablehlo).unwrap();
    for name in ["@init(", "@step(", "@stretch(", "@observe("] {
        assert_eq!(text.matches(&format!("func.func {name}")).count(), 1, "{name}");
    }
}

/// A model compiled for XLA, and what it needs.
fn compiled(checked: &driver::Checked, duration: Option<f64>) -> Experiment {
    let options = CompileOptions { backend: Backend::Xla, duration, ..CompileOptions::default() };
    let compiled = driver::compile(checked, &options, &mut |_, _, _| {})
        .unwrap_or_else(|d| panic!("{}", neuroc::diag::render_human(&checked.sources, &d, false)));
    Experiment::new(compiled).unwrap()
}

/// Each in one precision, in turn: what examples have in common is checked in all of them.
#[test]
fn xla_compiles_and_runs_every_example() {
    let Some(client) = crate::pjrt::cpu() else { return };
    let precisions = [Precision::F64, Precision::F32, Precision::Bf16];
    for (path, precision) in models().into_iter().zip(precisions.into_iter().cycle()) {
        let checked = driver::check_file(&path);
        let experiment = compiled(&checked, Some(20.0));
        let plan = experiment.plan(precision).unwrap();
        let choice = EngineChoice::Xla(client.clone().into(), Default::default());
        let ready = experiment.engine(&plan, choice);
        let mut engine = ready.unwrap_or_else(|e| panic!("{}: {e}", path.display())).engine;
        let (_, outcome) = experiment.run(engine.as_mut(), &RunOptions::default(), &mut Unwatched).unwrap();
        assert_eq!(outcome.ending, Ending::Done, "{} in {}", path.display(), precision.name());
    }
}

#[test]
fn the_memory_of_states_is_reused() {
    let Some(client) = crate::pjrt::cpu() else { return };
    let Experiment { compiled, setup, recording, .. } =
        compiled(&driver::check_file(&root().join("examples/inferior_olive/inferior_olive.neuro")), None);
    let plan = plan(&compiled.program, &PlanOptions::default()).unwrap();
    let device = setup.device_plan(&plan, DeviceClass::Cpu).unwrap();
    let stretch = Stretch::new(&plan, &device, recording.every, &recording.fields, 40).unwrap();
    for kind in [Kind::Step, Kind::Stretch(stretch)] {
        let entry = Entry::new(&plan, &device, kind, "main");
        let module = mlir::write("m", std::slice::from_ref(&entry.function), &plan.origins, mlir::Format::Bytecode);
        let program = client.compile(&module, &pjrt::CompileOptions::default()).unwrap();
        let states = entry.arguments.iter().filter(|port| matches!(port.slot, Slot::State(..)));
        let bytes: usize = states.map(|port| port.ty.bytes()).sum();
        assert_eq!(bytes, 64 * 14 * 8);
        assert_eq!(program.memory().unwrap().aliased as usize, bytes);
    }
}

/// An executable is compiled once, made again where its entry is broken, and does without a folder that cannot be written. One that
/// was found computes the same and reuses the memory of states.
#[test]
fn executables_are_kept() {
    let Some(client) = crate::pjrt::cpu() else { return };
    let checked = driver::check_file(&root().join("examples/squid.neuro"));
    let Experiment { compiled, setup, .. } = compiled(&checked, None);
    let plan = plan(&compiled.program, &PlanOptions::default()).unwrap();
    let v = compiled.program.program().find_field("squid.soma.v").unwrap();
    let run = |compiler: Compiler| {
        let mut engine = XlaEngine::new(&plan, &setup, compiler.clone()).unwrap();
        engine.init().unwrap();
        engine.step(0, 100, &mut Vec::new()).unwrap();
        let mut values = Vec::new();
        engine.read(v, 0..1, &mut values).unwrap();
        let Spent { made, found, .. } = compiler.spent();
        (values, made, found)
    };
    let folder = tempfile::tempdir().unwrap();
    let cache = folder.path().join("deep/cache");
    let (values, ..) = run(client.clone().into());
    let kept = || Compiler::new(client.clone(), cache.clone());
    assert_eq!(run(kept()), (values.clone(), 3, 0));
    assert_eq!(run(kept()), (values.clone(), 0, 3));
    let entries: Vec<PathBuf> = std::fs::read_dir(&cache).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert_eq!(entries.len(), 3);
    let mut bytes = std::fs::read(&entries[0]).unwrap();
    let last = bytes.len() - 1;
    bytes[last] ^= 1;
    std::fs::write(&entries[0], bytes).unwrap();
    std::fs::write(&entries[1], b"short").unwrap();
    assert_eq!(run(kept()), (values.clone(), 2, 1));
    assert_eq!(run(kept()), (values.clone(), 0, 3));
    let file = folder.path().join("file");
    std::fs::write(&file, "").unwrap();
    assert_eq!(run(Compiler::new(client.clone(), file.join("cache"))), (values, 3, 0));

    let entry = Entry::new(&plan, &setup.device_plan(&plan, DeviceClass::Cpu).unwrap(), Kind::Step, "main");
    let module = mlir::write("m", std::slice::from_ref(&entry.function), &plan.origins, mlir::Format::Bytecode);
    let compile = || kept().compile(&module, &pjrt::CompileOptions::default()).unwrap();
    let (made, found) = (compile(), compile());
    assert!(made.memory().unwrap().aliased > 0);
    assert_eq!(made.memory().unwrap().aliased, found.memory().unwrap().aliased);
}

/// A value that becomes infinite is found in the step where it does, also within a stretch that was recorded.
#[test]
fn a_value_that_is_not_finite_is_found() {
    let Some(client) = crate::pjrt::cpu() else { return };
    let text = "cell Grow { state x = 1; x' = x * 1 /ms }
        network main { population cells: Grow[3] }
        run { duration = 2000 ms; dt = 0.5 ms; method = euler; record cells.x every 1 ms }";
    let checked = driver::check_text("grow.neuro", Path::new(""), text, &Sources);
    let experiment = compiled(&checked, None);
    let plan = experiment.plan(Precision::F64).unwrap();
    let choice = EngineChoice::Xla(client.into(), Default::default());
    let mut engine = experiment.engine(&plan, choice).unwrap().engine;
    let (_, outcome) = experiment.run(engine.as_mut(), &RunOptions::default(), &mut Unwatched).unwrap();
    // 1.5^n passes the largest f64 at n = 1751.
    assert_eq!(outcome.steps, 1750);
    let Ending::NotFinite(why) = outcome.ending else { panic!("{:?}", outcome.ending) };
    assert!(why.message.contains("became infinite at t = 875.5 ms"), "{}", why.message);
    assert!(!engine.all_finite());
}

/// What is observed may depend on the time: the numbers of the artefact have a row for every step, and for the end.
#[test]
fn what_is_observed_has_the_numbers_of_every_step() {
    let text = "cell Wave { state x = 1; let w = sin(t * 1 /ms) + x; x' = -0.5 /ms * x }
        network main { population p: Wave }
        run { duration = 10 ms; dt = 0.1 ms; method = euler; record p.{x, w} }";
    let checked = driver::check_text("wave.neuro", Path::new(""), text, &Sources);
    let experiment = compiled(&checked, None);
    let files = artefact::files(&experiment, &experiment.plan(Precision::F64).unwrap(), DeviceClass::Cpu).unwrap();
    let bytes = |name: &str| files.iter().find(|file| file.name == name).unwrap().bytes.clone();
    let manifest: serde_json::Value = serde_json::from_slice(&bytes("manifest.json")).unwrap();
    let arguments = manifest["functions"]["observe"]["arguments"].as_array().unwrap();
    let rows: Vec<_> = arguments.iter().filter(|a| a["from"] == "steps").collect();
    assert!(!rows.is_empty(), "{arguments:?}");
    let mut inputs = ndarray_npy::NpzReader::new(std::io::Cursor::new(bytes("inputs.npz"))).unwrap();
    for argument in rows {
        let key = argument["key"].as_str().unwrap();
        let all: ndarray::Array2<f64> = inputs.by_name(key).unwrap();
        assert_eq!((all.nrows(), &argument["shape"][0]), (101, &serde_json::json!(1)));
        assert!(all.column(0).iter().zip(all.column(0).iter().skip(1)).any(|(a, b)| a != b), "{key}");
    }
}
