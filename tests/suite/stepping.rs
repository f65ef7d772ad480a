//! Tests of: runs that are taken step by step, and parameters that are set cell by cell in memory. What is changed between two steps
//! is what a run would have had that goes on from a checkpoint with other settings.

use neuroc::codegen::plan::Precision;
use neuroc::driver::{self, CompileOptions, EngineChoice, Experiment};
use neuroc::engine::native::NativeOptions;
use neuroc::engine::rustc::CompileOptions as RustcOptions;
use neuroc::hir::Sources;
use neuroc::ode::PerCell;
use neuroc::results::Checkpoint;
use neuroc::runtime::order::Arrangement;
use neuroc::simulate::{Ending, Nowhere, Quantity, RunError, RunOptions, Start, Stepping, Unwatched};
use std::path::{Path, PathBuf};

/// Parameters that others depend on, some of them for each cell; noise; gap junctions; a gate; a threshold that must be above zero.
const MODEL: &str = "junction Gap { param g = 0.01 mS/cm2; current i = g * dv }
    channel Leak { param g = 0.1 mS/cm2; param e = -65 mV; current i = g * (v - e) }
    channel K { param gbar = 5 mS/cm2; param erev = -77 mV; gate n^4 { inf = 0.5; tau = 3 ms } }
    cell Axon {
        param tau = 10 ms
        param twice = 2 * tau
        state x: mV = 1 mV
        x' = -x / twice
        compartment soma { area = 1000 um2; cm = 1 uF/cm2; v_init = -65 mV; insert Leak, K }
        spike when soma.v crosses -60 mV
    }
    network main {
        param n = 5
        param e0 = -65 mV
        param drive = 10 uA/cm2
        population a: Axon[n]
        param a.soma.Leak.g ~ uniform(0.05 mS/cm2, 0.2 mS/cm2)
        param a.soma.Leak.e = e0 + index * 1 mV
        input up: drive + noise(mean = 0 uA/cm2, sd = 3 uA/cm2, every = 0.5 ms) -> a.soma
        connect a.soma -- a.soma via Gap { rule = probability(0.6) }
    }
    run { duration = 20 ms; dt = 0.05 ms; seed = 3; record a.soma.v; record a.soma.Leak.i; record spikes of a }";

fn options(set: &[&str]) -> CompileOptions {
    CompileOptions { set: set.iter().map(|s| s.to_string()).collect(), keep_all: true, ..CompileOptions::default() }
}

fn experiment(text: &str, options: &CompileOptions) -> Experiment {
    let checked = driver::check_text("m.neuro", Path::new(""), text, &Sources);
    assert!(checked.model.is_some(), "{:#?}", checked.diagnostics);
    Experiment::new(driver::compile(&checked, options, &mut |_, _, _| {}).unwrap()).unwrap()
}

fn choices() -> [EngineChoice; 2] {
    let cache = Some(PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("kernels"));
    let compile = RustcOptions { cache, ..RustcOptions::default() };
    let native = NativeOptions { threads: 2, arrangement: Arrangement::default(), compile };
    [EngineChoice::Interp, EngineChoice::Native(native)]
}

fn stepping(text: &str, options: &CompileOptions, choice: EngineChoice) -> Stepping {
    let experiment = experiment(text, options);
    let plan = experiment.plan_for(&choice, Precision::F64).unwrap();
    let ready = experiment.engine(&plan, choice).unwrap();
    experiment.stepping(ready.engine, 7).unwrap()
}

/// What a whole run has come to, from `start` on.
fn whole(options: &CompileOptions, choice: EngineChoice, start: Option<&Checkpoint>) -> Checkpoint {
    let experiment = experiment(MODEL, options);
    let plan = experiment.plan_for(&choice, Precision::F64).unwrap();
    let mut ready = experiment.engine(&plan, choice).unwrap();
    let records = experiment.records().unwrap();
    let start = start.map_or_else(Start::default, |from| experiment.start(from).unwrap());
    let (engine, run) = (ready.engine.as_mut(), RunOptions::default());
    let outcome = experiment.run_into(&records, engine, &run, &mut Unwatched, &start, &mut Nowhere).unwrap();
    assert_eq!(outcome.ending, Ending::Done);
    experiment.checkpoint(ready.engine.as_ref(), outcome.steps, serde_json::Map::new()).unwrap()
}

fn go(run: &mut Stepping, steps: u64) {
    assert_eq!(run.step(steps, &mut Unwatched).unwrap(), Ending::Done);
}

fn write(run: &mut Stepping, name: &str, values: &[f64]) -> Result<(), String> {
    let what = run.find(name).map_err(|d| d.message)?;
    run.write(what, values).map_err(|error| match error {
        RunError::Model(diagnostics) => diagnostics[0].message.clone(),
        RunError::Engine(error) => panic!("{error}"),
        RunError::Sink(error) => panic!("{error}"),
    })
}

fn read(run: &mut Stepping, name: &str) -> Vec<f64> {
    let what = run.find(name).unwrap();
    let mut values = Vec::new();
    run.read(what, &mut values).unwrap();
    values
}

/// Edges have a copy of what a place has, which follows what is written.
#[test]
fn junctions_of_branched_cells_see_voltages_that_are_written() {
    const CELLS: &str = "junction Gap { param g = 2 nS; current i = g * dv }
        channel Leak { param g = 0.1 mS/cm2; param e = -65 mV; current i = g * (v - e) }
        cell C {
            section soma { length = 20 um; diam = 20 um; compartments = 1 }
            section dend { from soma(1); length = 100 um; diam = 2 um; compartments = 3 }
            region all { ra = 100 ohm*cm; cm = 1 uF/cm2; v_init = -65 mV; insert Leak }
        }
        network main {
            population c: C[2]
            connect c.dend(0.5) -- c.soma(0.5) via Gap { rule = all_to_all }
            init c[1].v = -50 mV
        }
        run { duration = 5 ms; dt = 0.05 ms; method = cnexp; record c.{soma(0.5), dend(0.5)}.v }";
    for choice in [0, 1] {
        let choice = || choices().into_iter().nth(choice).unwrap();
        let mut expected = stepping(CELLS, &options(&[]), choice());
        let mut run = stepping(&CELLS.replace("init c[1].v = -50 mV", ""), &options(&[]), choice());
        let begin = read(&mut expected, "c.v");
        assert!(begin[..4].iter().all(|v| *v == -65.0) && begin[4..].iter().all(|v| *v == -50.0));
        write(&mut run, "c.v", &begin).unwrap();
        go(&mut expected, 20);
        go(&mut run, 20);
        let (a, b) = (read(&mut expected, "c.v"), read(&mut run, "c.v"));
        assert!(a == b && a[0] > -64.9, "{a:?} and {b:?}");
    }
}

#[test]
fn many_small_steps_are_one_run() {
    for choice in [0, 1] {
        let choice = || choices().into_iter().nth(choice).unwrap();
        let mut run = stepping(MODEL, &options(&[]), choice());
        let mut spikes = 0;
        for steps in [1, 0, 6, 7, 8, 100, 278] {
            go(&mut run, steps);
            spikes += run.spikes().len();
        }
        assert_eq!((run.now(), run.time()), (400, 20.0));
        assert!(spikes > 0, "cells spike");
        assert_eq!(run.save().unwrap().states, whole(&options(&[]), choice(), None).states);
        // And it goes on behind the duration of the model.
        go(&mut run, 100);
        assert_eq!(run.now(), 500);
    }
}

#[test]
fn a_parameter_changes_what_depends_on_it_and_nothing_else() {
    let settings: [(&str, f64, &str); 4] = [
        ("drive", 25.0, "drive=25uA/cm2"),
        // The reversal potential of each cell depends on it.
        ("e0", -60.0, "e0=-60mV"),
        // `twice` depends on it.
        ("a.tau", 3.0, "a.tau=3ms"),
        ("K.gbar", 1.0, "K.gbar=1mS/cm2"),
    ];
    for choice in [0, 1] {
        let choice = || choices().into_iter().nth(choice).unwrap();
        for (name, value, set) in settings {
            let mut run = stepping(MODEL, &options(&[]), choice());
            go(&mut run, 150);
            let middle = run.save().unwrap();
            write(&mut run, name, &[value]).unwrap();
            assert_eq!(run.save().unwrap(), middle, "{name}: states stay");
            assert_eq!(read(&mut run, name), [value]);
            go(&mut run, 250);
            let expected = whole(&options(&[set]), choice(), Some(&middle));
            assert_eq!(run.save().unwrap().states, expected.states, "{name}");
            assert_ne!(expected.states, whole(&options(&[]), choice(), Some(&middle)).states, "{name} matters");
        }
    }
}

#[test]
fn cells_are_set_one_by_one() {
    let own = [0.05, 0.1, 0.15, 0.2, 0.25];
    for choice in [0, 1] {
        let choice = || choices().into_iter().nth(choice).unwrap();
        let mut run = stepping(MODEL, &options(&[]), choice());
        go(&mut run, 150);
        let middle = run.save().unwrap();
        write(&mut run, "Leak.g", &own).unwrap();
        assert_eq!(read(&mut run, "Leak.g"), own);
        go(&mut run, 250);
        let given = PerCell { name: "a.soma.Leak.g".into(), values: own.into() };
        let set = CompileOptions { per_cell: vec![given], ..options(&[]) };
        assert_eq!(run.save().unwrap().states, whole(&set, choice(), Some(&middle)).states);
        // A state is written cell by cell, or at once; the current follows.
        write(&mut run, "soma.v", &[-65.0]).unwrap();
        assert_eq!(read(&mut run, "a.soma.v"), [-65.0; 5]);
        write(&mut run, "soma.v", &[-65.0, -64.0, -63.0, -62.0, -61.0]).unwrap();
        let expected: Vec<f64> =
            own.iter().enumerate().map(|(i, g)| g * ((-65.0 + i as f64) - (-65.0 + i as f64))).collect();
        let found = read(&mut run, "a.soma.Leak.i");
        assert!(found.iter().zip(&expected).all(|(a, b)| (a - b).abs() < 1e-12), "{found:?} {expected:?}");
    }
}

#[test]
fn what_cannot_be_written_is_refused_and_changes_nothing() {
    let mut run = stepping(MODEL, &options(&[]), EngineChoice::Interp);
    go(&mut run, 10);
    let before = run.save().unwrap();
    let cases: [(&str, &[f64], &str); 9] = [
        ("n", &[6.0], "how many cells"),
        ("a.soma.Leak.i", &[1.0], "computed for being recorded"),
        ("K.n", &[1.5], "is 1.5"),
        ("soma.v", &[f64::NAN], "is NaN"),
        ("soma.v", &[1.0, 2.0], "5 cells, but 2"),
        ("drive", &[1.0, 2.0], "one number"),
        ("a.tau", &[-1.0], "a.tau"),
        ("K.gbr", &[1.0], "no parameter `K.gbr`"),
        ("Leak.g", &[1.0, 1.0, 1.0, 1.0, f64::INFINITY], "of cell 4 is infinite"),
    ];
    for (name, values, said) in cases {
        let message = write(&mut run, name, values).unwrap_err();
        assert!(message.contains(said), "{name}: {message}");
    }
    assert_eq!(run.save().unwrap(), before);
    assert_eq!(read(&mut run, "a.tau"), [10.0]);
    assert_eq!(read(&mut run, "drive"), [10.0]);
    let param = run.find("drive").unwrap();
    assert!(matches!(param, Quantity::Param(_)) && run.cells(param).is_none());
}

#[test]
fn saved_states_are_gone_back_to() {
    let mut run = stepping(MODEL, &options(&[]), EngineChoice::Interp);
    go(&mut run, 100);
    let saved = run.save().unwrap();
    go(&mut run, 100);
    let later = run.save().unwrap();
    run.restore(&saved).unwrap();
    assert_eq!((run.now(), run.time()), (100, 5.0));
    go(&mut run, 100);
    assert_eq!(run.save().unwrap(), later);
    let other = Checkpoint { seed: 4, ..saved };
    assert!(run.restore(&other).unwrap_err().contains("seed"));
    assert_eq!(run.save().unwrap(), later);
}

#[test]
fn a_parameter_may_be_set_very_often() {
    let mut run = stepping(MODEL, &options(&[]), EngineChoice::Interp);
    let begin = run.model().graph.len();
    for i in 0..25_000 {
        write(&mut run, "drive", &[f64::from(i) * 1e-3]).unwrap();
        write(&mut run, "a.tau", &[f64::from(i) + 1.0]).unwrap();
        write(&mut run, "a.tau", &[-f64::from(i) - 1.0]).unwrap_err();
        assert_eq!(read(&mut run, "a.tau"), [f64::from(i) + 1.0]);
    }
    assert_eq!(read(&mut run, "drive"), [24.999]);
    assert!(run.model().graph.len() < begin + 11_000, "{} expressions", run.model().graph.len());
}

#[test]
fn arrays_are_what_files_would_be() {
    let folder = tempfile::tempdir().unwrap();
    let text = "cell P { param tau = 10 ms; state x: mV = 1 mV; x' = -x / tau }
        network main { population p: P[4] }
        run { duration = 5 ms; dt = 0.1 ms; record p.x }";
    let with = |setting: &str| text.replace("population p: P[4]", &format!("population p: P[4]; {setting}"));
    std::fs::write(folder.path().join("tau.csv"), "5\n6\n7\n8.5\n").unwrap();
    let file = with("param p.tau = file(\"tau.csv\") * 1 ms");
    let checked = driver::check_text("m.neuro", folder.path(), file, &Sources);
    let compiled = driver::compile(&checked, &CompileOptions::default(), &mut |_, _, _| {}).unwrap();
    let from_file = Experiment::new(compiled).unwrap();
    let per_cell = vec![PerCell { name: "tau".into(), values: [5.0, 6.0, 7.0, 8.5].into() }];
    let given = experiment(text, &CompileOptions { per_cell, ..CompileOptions::default() });
    let run = |experiment: &Experiment| {
        let plan = experiment.plan_for(&EngineChoice::Interp, Precision::F64).unwrap();
        let mut ready = experiment.engine(&plan, EngineChoice::Interp).unwrap();
        experiment.run(ready.engine.as_mut(), &RunOptions::default(), &mut Unwatched).unwrap().0
    };
    let (a, b) = (run(&from_file), run(&given));
    assert_eq!((a.series, a.parameters), (b.series, b.parameters));

    let checked = driver::check_text("m.neuro", Path::new(""), text, &Sources);
    let wrong = |name: &str, values: &[f64]| {
        let per_cell = vec![PerCell { name: name.into(), values: values.into() }];
        let options = CompileOptions { per_cell, ..CompileOptions::default() };
        let compiled = driver::compile(&checked, &options, &mut |_, _, _| {});
        let errors = compiled.and_then(Experiment::new).map(drop).unwrap_err();
        format!("{} {}", errors[0].message, errors[0].labels.first().map_or("", |l| &l.message))
    };
    assert!(wrong("tau", &[1.0, 2.0]).contains("it has 2 numbers, but the population has 4 cells"));
    assert!(wrong("tau", &[1.0, 2.0, f64::NAN, 4.0]).contains("number 3 of 4 is NaN"));
    assert!(wrong("tu", &[1.0; 4]).contains("no parameter `tu`"));
    assert!(wrong("tau", &[1.0, 2.0, -3.0, 4.0]).contains("cell 2"), "{}", wrong("tau", &[1.0, 2.0, -3.0, 4.0]));
}
