//! The inferior-olive network of `../shared/data/io` (64 cells, 640 directed junctions): initial states and edges are read
//! from files, and states after 1, 10, 100 and 1000 ms must be those of the reference run, on every engine.

use ndarray::{Array1, Array2, Array3};
use ndarray_npy::{NpzReader, write_npy};
#[cfg(feature = "xla")]
use neuroc::codegen::plan::Precision;
use neuroc::codegen::plan::{Plan, PlanOptions, plan};
use neuroc::driver::{CompileOptions, Experiment, check_text, compile};
use neuroc::engine::Engine;
use neuroc::engine::native::{NativeEngine, NativeOptions};
#[cfg(feature = "xla")]
use neuroc::engine::xla::XlaEngine;
use neuroc::hir::Sources;
use neuroc::interp::Interp;
#[cfg(feature = "xla")]
use neuroc::pjrt::Client;
use neuroc::runtime::order::Arrangement;
use neuroc::simulate;
use neuroc::step::Program;
use std::fs::File;
use std::path::Path;

/// The states of a cell as the model names them, in the order of the data's rows and of the model's description.
pub const STATES: [&str; 14] = [
    "soma.v",
    "soma.CaL.k",
    "soma.CaL.l",
    "soma.NaS.h",
    "soma.Kdr.n",
    "soma.K.x",
    "axon.v",
    "axon.NaA.h",
    "axon.K.x",
    "dend.v",
    "dend.Ca",
    "dend.CaH.r",
    "dend.KCa.s",
    "dend.H.q",
];

struct Reference {
    init: Array2<f64>,
    pairs: Array2<i32>,
    times: Array1<f64>,
    states: Array3<f64>,
}

/// The data, or `None` (and said) where it is absent.
fn reference() -> Option<Reference> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/data/io/io_n64_seed42.npz");
    let Ok(file) = File::open(&path) else {
        println!("SKIPPED: {} is absent, so the reference network is not tested", path.display());
        return None;
    };
    let mut npz = NpzReader::new(file).unwrap();
    let source: Array1<i32> = npz.by_name("gj_src").unwrap();
    let target: Array1<i32> = npz.by_name("gj_tgt").unwrap();
    let pairs = ndarray::stack![ndarray::Axis(1), target, source];
    Some(Reference {
        init: npz.by_name("init").unwrap(),
        pairs,
        times: npz.by_name("t_ms").unwrap(),
        states: npz.by_name("state").unwrap(),
    })
}

/// The example's model with initial states and edges from files.
fn model(reference: &Reference, directory: &Path, record_to: f64) -> String {
    let example = include_str!("../../examples/inferior_olive/inferior_olive.neuro");
    let mut text = String::new();
    for line in example.lines() {
        if line.trim_start().starts_with("init ") || line.trim_start().starts_with("record ") {
            continue;
        }
        text.push_str(line);
        text.push('\n');
    }
    for (row, name) in STATES.iter().enumerate() {
        let values = reference.init.row(row).to_owned();
        write_npy(directory.join(format!("{row}.npy")), &values).unwrap();
        let unit = if name.ends_with(".v") { " * 1 mV" } else { "" };
        let init = format!("    init io.{name} = file(\"{row}.npy\"){unit}\n    connect");
        text = text.replacen("    connect", &init, 1);
    }
    write_npy(directory.join("edges.npy"), &reference.pairs).unwrap();
    text = text.replace("torus_radial(degree = 10, r_max = 4, width = 4)", "edges(\"edges.npy\")");
    let records: String = STATES.iter().map(|name| format!("    record io.{name} every 1 ms\n")).collect();
    text.replace("    duration = 1 s\n", &format!("    duration = {record_to} ms\n{records}"))
}

fn case(reference: &Reference, duration: f64, options: &CompileOptions) -> Experiment {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(
        directory.path().join("olive_cell.neuro"),
        include_str!("../../examples/inferior_olive/olive_cell.neuro"),
    )
    .unwrap();
    let text = model(reference, directory.path(), duration);
    let checked = check_text("olive.neuro", directory.path(), text, &Sources);
    let say = neuroc::diag::render_human(&checked.sources, &checked.diagnostics, false);
    assert!(checked.model.is_some(), "{say}");
    let compiled = compile(&checked, options, &mut |_, _, _| {}).unwrap();
    Experiment::new(compiled).unwrap()
}

fn run(case: &Experiment, program: &Program, engine: &mut dyn Engine) -> neuroc::results::RunResult {
    let options = simulate::RunOptions::default();
    let watcher = &mut simulate::Unwatched;
    let model = &case.compiled.ode;
    let (result, outcome) = simulate::run(model, program, &case.extent, engine, &options, watcher).unwrap();
    assert_eq!(outcome.ending, simulate::Ending::Done);
    result
}

/// The largest relative difference at the reference's times, up to the last that was run.
fn difference(reference: &Reference, result: &neuroc::results::RunResult) -> f64 {
    let mut worst: f64 = 0.0;
    for (at, &time) in reference.times.iter().enumerate() {
        for (row, name) in STATES.iter().enumerate() {
            let series = result.series_named(&format!("io.{name}")).unwrap();
            let Some(sample) = series.t.iter().position(|t| (t - time).abs() < 1e-9) else { continue };
            for cell in 0..64 {
                let (got, want) = (series.values.get(sample, cell), reference.states[[at, row, cell]]);
                worst = worst.max((got - want).abs() / want.abs());
            }
        }
    }
    worst
}

fn native(case: &Experiment, options: &PlanOptions, threads: usize, arrangement: Arrangement) -> NativeEngine {
    let plan: Plan = plan(&case.compiled.program, options).unwrap();
    let cache = std::env::temp_dir().join(format!("neuroc-olive-tests-{}", std::process::id()));
    let compile = neuroc::engine::rustc::CompileOptions { cache: Some(cache), ..Default::default() };
    NativeEngine::new(&plan, &case.setup, &NativeOptions { threads, arrangement, compile }).unwrap()
}

#[test]
fn the_interpreter_gives_the_reference_states() {
    let Some(reference) = reference() else { return };
    let o0 =
        CompileOptions { passes: neuroc::driver::Passes::Level(neuroc::passes::OptLevel::O0), ..Default::default() };
    for options in [o0, CompileOptions::default()] {
        let case = case(&reference, 1.0, &options);
        let mut engine = Interp::new(case.compiled.program.clone(), &case.setup).unwrap();
        let worst = difference(&reference, &run(&case, case.program(), &mut engine));
        assert!(worst < 1e-9, "{worst:e}");
    }
}

#[test]
fn native_kernels_give_the_reference_states_for_any_number_of_threads() {
    let Some(reference) = reference() else { return };
    let case = case(&reference, 1000.0, &CompileOptions::default());
    let sizes = Some(case.setup.sizes.clone());
    let options = PlanOptions { sizes, ..PlanOptions::default() };
    let mut results = Vec::new();
    // Windows of whole blocks; 64 cells are too few for a second thread.
    for (threads, window) in [(1, 512), (2, 8), (1, 24)] {
        let mut engine = native(&case, &options, threads, Arrangement::Local { window });
        let result = run(&case, case.program(), &mut engine);
        let worst = difference(&reference, &result);
        assert!(worst < 1e-9, "{worst:e}");
        results.push(result);
    }
    let mut listed = native(&case, &options, 1, Arrangement::Listed);
    let listed = run(&case, case.program(), &mut listed);
    assert!(results.iter().all(|result| *result == listed));
}

#[cfg(feature = "xla")]
fn xla(reference: &Reference, precision: Precision, client: &Client) -> (neuroc::results::RunResult, f64) {
    let options = CompileOptions { backend: neuroc::passes::Backend::Xla, ..CompileOptions::default() };
    let case = case(reference, 1000.0, &options);
    let plan: Plan = plan(&case.compiled.program, &PlanOptions { precision, ..PlanOptions::default() }).unwrap();
    let mut engine = XlaEngine::new(&plan, &case.setup, client.clone()).unwrap();
    let result = run(&case, case.program(), &mut engine);
    let worst = difference(reference, &result);
    (result, worst)
}

#[cfg(feature = "xla")]
#[test]
fn xla_gives_the_reference_states() {
    let Some(reference) = reference() else { return };
    let Some(client) = crate::pjrt::cpu() else { return };
    let (exact, worst) = xla(&reference, Precision::F64, &client);
    println!("f64: {worst:.1e} relative");
    assert!(worst < 1e-9, "{worst:e}");
    let (single, _) = xla(&reference, Precision::F32, &client);
    let mut worst: f64 = 0.0;
    for name in STATES.iter().filter(|name| name.ends_with(".v")) {
        let series =
            |result: &neuroc::results::RunResult| result.series_named(&format!("io.{name}")).unwrap().values.clone();
        let (exact, single) = (series(&exact), series(&single));
        for sample in 0..=1000 {
            for cell in 0..64 {
                worst = worst.max((exact.get(sample, cell) - single.get(sample, cell)).abs());
            }
        }
    }
    println!("f32: {worst:.1e} mV");
    assert!(worst < 0.05, "{worst} mV");
}

/// The example of 9^3 cells, with the network that its rule and its seed make.
#[cfg(feature = "xla")]
fn generated(backend: neuroc::passes::Backend) -> Experiment {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/inferior_olive/inferior_olive.neuro");
    let options = CompileOptions { backend, set: vec!["side=9".into()], ..CompileOptions::default() };
    let compiled = compile(&neuroc::driver::check_file(&path), &options, &mut |_, _, _| {}).unwrap();
    Experiment::new(compiled).unwrap()
}

/// Somata at every millisecond of a second: relative 1e-9 in f64, 0.05 mV in f32.
#[cfg(feature = "xla")]
#[test]
fn xla_stays_with_native_for_a_second_of_729_generated_cells() {
    let Some(client) = crate::pjrt::cpu() else { return };
    let somata = |result: &neuroc::results::RunResult| {
        let series = result.series_named("io.soma.v").unwrap();
        (0..=1000)
            .flat_map(|at| (0..729).map(move |cell| (at, cell)))
            .map(|(at, cell)| series.values.get(at, cell))
            .collect()
    };
    let case = generated(neuroc::passes::Backend::Native);
    let edges = &case.setup.edges[0].1;
    assert_eq!((case.extent.cells[0], edges.offsets.len()), (729, 730));
    let expected: Vec<f64> = {
        let mut engine = native(&case, &PlanOptions::default(), 1, Arrangement::default());
        somata(&run(&case, case.program(), &mut engine))
    };
    let case = generated(neuroc::passes::Backend::Xla);
    let on_xla = |precision: Precision| -> Vec<f64> {
        let plan: Plan = plan(&case.compiled.program, &PlanOptions { precision, ..PlanOptions::default() }).unwrap();
        let mut engine = XlaEngine::new(&plan, &case.setup, client.clone()).unwrap();
        somata(&run(&case, case.program(), &mut engine))
    };
    let worst = |got: &[f64], of: fn(f64, f64) -> f64| {
        assert_eq!(got.len(), expected.len());
        got.iter().zip(&expected).map(|(&got, &want)| of(got, want)).fold(0.0, f64::max)
    };
    let relative = worst(&on_xla(Precision::F64), |got, want| (got - want).abs() / want.abs());
    let single = worst(&on_xla(Precision::F32), |got, want| (got - want).abs());
    println!("f64: {relative:.1e} relative, f32: {single:.1e} mV");
    assert!(relative < 1e-9, "{relative:e}");
    assert!(single < 0.05, "{single} mV");
}

#[test]
fn junction_currents_cancel() {
    let Some(reference) = reference() else { return };
    let v: Vec<f64> = reference.init.row(9).to_vec();
    let mut sums = vec![0.0; 64];
    for pair in reference.pairs.rows() {
        let (target, source) = (pair[0] as usize, pair[1] as usize);
        let d: f64 = v[source] - v[target];
        sums[target] += 0.05 * d * (0.2 + 0.8 * (-d * d / 100.0).exp());
    }
    // Golden values of the model's specification, section 12 B.
    for (got, want) in sums.iter().zip([-0.015095159008, 0.423025235921, 0.895633873038, 0.236567723692]) {
        assert!((got - want).abs() < 1e-11, "{got} {want}");
    }
    assert!(sums.iter().sum::<f64>().abs() < 1e-12);
}
