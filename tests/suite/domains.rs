//! Tests of: domains. Values that come from outside: settings, steps, draws and data files. What stands in a file is in `tests/errors`.

use neuroc::diag::{Code, Diagnostic};
use neuroc::driver::{CompileOptions, Experiment, check_text, compile};
use neuroc::hir::Sources;
use std::path::Path;

const MODEL: &str = "
    channel Leak { param gbar = 0.3 mS/cm2; param erev = -65 mV }
    channel K { param gbar = 36 mS/cm2; param erev = -77 mV; param slow = 4 ms; gate n^4 { inf = 0.3; tau = slow } }
    cell C { compartment soma { cm = 1 uF/cm2; v_init = -65 mV; area = 1000 um2; insert Leak, K } }
    network main {
        param first = 0
        param spread = 3 mV
        population p: C[8]
        init p.soma.v ~ normal(-65 mV, spread)
        input step: pulse(delay = 1 ms, duration = 2 ms, amplitude = 1 uA/cm2) -> p[first..8].soma
    }
    run { duration = 10 ms; dt = 0.1 ms; record p.soma.v every 1 ms }";

/// Everything that is said of a model before it runs.
fn said(text: &str, folder: &Path, options: &CompileOptions) -> Vec<Diagnostic> {
    let checked = check_text("m.neuro", folder, text, &Sources);
    assert!(checked.model.is_some() && checked.diagnostics.is_empty(), "{:?}", checked.diagnostics);
    let compiled = match compile(&checked, options, &mut |_, _, _| {}) {
        Ok(compiled) => compiled,
        Err(errors) => return errors,
    };
    let warnings = compiled.warnings.clone();
    match Experiment::new(compiled) {
        Ok(experiment) => [warnings, experiment.warnings].concat(),
        Err(errors) => errors,
    }
}

#[test]
fn settings_from_outside_are_in_their_domains() {
    assert_eq!(said(MODEL, Path::new(""), &CompileOptions::default()), []);
    for (set, code, message) in [
        ("soma.cm=0uF/cm2", Code::OutOfDomain, "`p.soma.cm` is 0 uF/cm2"),
        ("area=-3um2", Code::OutOfDomain, "`p.soma.area` is -3 um2"),
        ("slow=0ms", Code::OutOfDomain, "`p.soma.K.n.tau` is 0 ms"),
        ("K.gbar=-1mS/cm2", Code::SuspiciousMagnitude, "`p.soma.K.gbar` is -1 mS/cm2"),
        ("spread=-3mV", Code::OutOfDomain, "`sd` of `normal` is -3 mV"),
        ("step.duration=0ms", Code::OutOfDomain, "`duration` of `pulse` is 0 ms"),
        ("step.delay=10ms", Code::NoEffect, "`delay` of `pulse` is 10 ms, after the end of the run"),
        ("first=8", Code::BadCells, "`p` has no such cells"),
        ("first=-1", Code::BadCells, "`p` has no such cells"),
        ("first=0.5", Code::BadCells, "`p` has no such cells"),
    ] {
        let options = CompileOptions { set: vec![set.into()], ..CompileOptions::default() };
        let said = said(MODEL, Path::new(""), &options);
        let [only] = &said[..] else { panic!("{set}: {said:?}") };
        assert_eq!((only.code, only.message.as_str()), (code, message), "{set}");
        let named = only.notes.iter().any(|note| note.contains(&format!("--set {set}")));
        assert!(named || code == Code::BadCells, "{set}: {:?}", only.notes);
    }
}

#[test]
fn a_step_that_is_too_long_has_one_that_would_do() {
    let slow = MODEL.replace("every 1 ms", "");
    for (dt, method, help) in [
        (0.5, "euler", None),
        (5.0, "euler", Some("try `dt = 0.25 ms`")),
        (1.0, "exp_euler", None),
        (2.5, "exp_euler", Some("try `dt = 0.25 ms`")),
        (2.5, "rk4", None),
    ] {
        let method = neuroc::hir::Method::named(method);
        let options = CompileOptions { dt: Some(dt), method, ..CompileOptions::default() };
        let mut said = said(&slow, Path::new(""), &options);
        // The pulse is not whole steps either.
        said.retain(|d| d.code != Code::DelayRounded);
        let found: Vec<&str> = said.iter().flat_map(|d| &d.help).map(String::as_str).collect();
        assert_eq!(found, help.into_iter().collect::<Vec<_>>(), "{dt} {method:?}: {said:?}");
        assert!(said.iter().all(|d| d.code == Code::StepTooLong), "{said:?}");
    }
}

#[test]
fn data_per_cell_is_in_its_domain_and_the_cell_is_named() {
    let folder = tempfile::tempdir().unwrap_or_else(|e| panic!("{e}"));
    let write =
        |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap_or_else(|e| panic!("{e}"));
    write("cm.csv", "1\n1\n0.9\n0\n1\n-1\n1\n1\n");
    write("g.csv", "1\n1\n1\n1\n1\n1\n1\n-2\n");
    let with = |line: &str| MODEL.replace("input step", &format!("{line}\n        input step"));
    let checked = |line: &str| said(&with(line), folder.path(), &CompileOptions::default());
    let found = checked("param p.soma.cm = file(\"cm.csv\") * 1 uF/cm2");
    let [only] = &found[..] else { panic!("{found:?}") };
    assert_eq!(only.message, "`p.soma.cm` of cell 3 of `p` is 0 uF/cm2");
    assert_eq!((only.code, only.notes[0].as_str()), (Code::OutOfDomain, "another cell has such a value, too"));
    let found = checked("param p.soma.K.gbar = file(\"g.csv\") * 36 mS/cm2");
    let [only] = &found[..] else { panic!("{found:?}") };
    assert_eq!(only.message, "`p.soma.K.gbar` of cell 7 of `p` is -72 mS/cm2");
    assert_eq!(only.code, Code::SuspiciousMagnitude);
    // Through a parameter: a time constant that follows from a draw.
    let found = checked("param p.soma.K.slow ~ uniform(-4 ms, 4 ms)");
    assert!(
        !found.is_empty() && found.iter().all(|d| d.code == Code::OutOfDomain && d.message.contains("n.tau` of cell")),
        "{found:?}"
    );
}
