//! Tests of: names. Whatever a model calls its own, the compiler's hidden names do not meet it: it runs, or a message stands at a name.

use neuroc::diag::Code;
use neuroc::driver::{self, CompileOptions, Experiment, Passes};
use neuroc::hir::Sources;
use neuroc::interp::Interp;
use neuroc::passes::OptLevel;
use neuroc::simulate::{RunOptions, Unwatched};
use std::path::Path;

/// What the compiler calls things of its own, and what people call theirs.
const NAMES: &[&str] = &[
    "refractory",
    "spikes",
    "next",
    "sum",
    "edges",
    "out",
    "file0",
    "series0",
    "i",
    "i_a",
    "i_b",
    "ica",
    "i_syn",
    "dt",
    "t",
    "v",
    "dv",
    "index",
    "celsius",
    "init",
    "step",
    "observe",
    "state",
    "input",
    "draw0",
    "gap",
    "p",
    "a",
    "b",
    "X",
    "area",
    "cm",
    "m",
    "tau",
    "inf",
    "erev",
    "gbar",
    "weight",
    "delay",
    "now",
    "fn",
    "self",
    "type",
];

/// Models with a name in some place.
fn models(name: &str) -> Vec<(&'static str, String)> {
    let run = "run { duration = 0.2 ms; dt = 0.1 ms }";
    let point = |member: &str, use_of_it: &str| {
        format!(
            "cell P {{
                {member}
                state u: mV = -60 mV
                u' = (-50 mV - u) / 10 ms {use_of_it}
                spike when u > -59.95 mV {{ u = -65 mV; refractory 2 ms }}
            }}
            network main {{ population q: P[2] }}
            run {{ duration = 2 ms; dt = 0.1 ms; record q.u; record spikes of q }}"
        )
    };
    let channel = |member: &str, current: &str| {
        format!(
            "channel X {{
                param gbar = 0.1 mS/cm2
                param erev = -50 mV
                {member}
                current i = gbar * {current} (v - erev)
            }}
            cell C {{
                compartment a {{ cm = 1 uF/cm2; v_init = -65 mV; insert X }}
                compartment b {{ cm = 1 uF/cm2; v_init = -60 mV }}
                couple a <- b: 0.1 mS/cm2
                couple b <- a: 0.1 mS/cm2
                spike when a.v crosses -55 mV
            }}
            network main {{ population q: C[2] }}
            {run}"
        )
    };
    let compartments = |cell: &str, network: &str, population: &str| {
        format!(
            "cell C {{
                compartment a {{ cm = 1 uF/cm2; v_init = -65 mV; {cell} }}
                compartment b {{ cm = 1 uF/cm2; v_init = -60 mV }}
                couple a <- b: 0.1 mS/cm2
                couple b <- a: 0.1 mS/cm2
            }}
            junction gap {{ param g = 0.05 mS/cm2; current i = g * dv }}
            network main {{
                {network}
                population {population}: C[3]
                connect {population}.a -- {population}.a via gap {{ rule = all_to_all }}
            }}
            {run}"
        )
    };
    vec![
        ("param of a point cell", point(&format!("param {name} = 3 mV"), &format!("+ {name} / 10 ms"))),
        ("let of a point cell", point(&format!("let {name} = 3 mV"), &format!("+ {name} / 10 ms"))),
        ("state of a point cell", point(&format!("state {name}: mV = 1 mV\n{name}' = -{name} / 5 ms"), "")),
        ("input of a point cell", point(&format!("input {name}: mV/ms"), &format!("+ {name}"))),
        ("param of a channel", channel(&format!("param {name} = 0.5"), &format!("{name} *"))),
        ("let of a channel", channel(&format!("let {name} = 0.5"), &format!("{name} *"))),
        ("gate", channel(&format!("gate {name} {{ inf = 0.5; tau = 2 ms }}"), &format!("{name} *"))),
        ("state of a channel", channel(&format!("state {name} = 0.5\n{name}' = -{name} / 5 ms"), &format!("{name} *"))),
        ("pool", compartments(&format!("pool {name} {{ init = 1; {name}' = -{name} / 5 ms }}"), "", "q")),
        ("network parameter", compartments("", &format!("param {name} = 2"), "q")),
        ("population", compartments("", "", name)),
        (
            "cell",
            format!("cell {name} {{ state u = 1\nu' = -u / 1 ms }} network main {{ population q: {name} }} {run}"),
        ),
        (
            "compartment",
            format!(
                "cell C {{ compartment {name} {{ cm = 1 uF/cm2; v_init = -65 mV }} }}
                network main {{ population q: C }} {run}"
            ),
        ),
    ]
}

#[test]
fn hidden_names_meet_no_name_of_a_model() {
    let (mut runs, mut messages) = (0, 0);
    for name in NAMES {
        for (place, text) in models(name) {
            let checked = driver::check_text("names.neuro", Path::new(""), text.clone(), &Sources);
            let said = |diagnostics: &[neuroc::diag::Diagnostic]| {
                for d in diagnostics.iter().filter(|d| d.is_error()) {
                    let shown = neuroc::diag::render_human(&checked.sources, diagnostics, false);
                    assert!(d.code != Code::Internal && !d.labels.is_empty(), "{place} `{name}`: {shown}\n{text}");
                }
            };
            said(&checked.diagnostics);
            if checked.model.is_none() {
                messages += 1;
                continue;
            }
            let mut results = Vec::new();
            for level in [OptLevel::O0, OptLevel::O2] {
                let options = CompileOptions { passes: Passes::Level(level), ..CompileOptions::default() };
                let compiled = match driver::compile(&checked, &options, &mut |_, _, _| {}) {
                    Ok(compiled) => compiled,
                    Err(errors) => {
                        said(&errors);
                        panic!("{place} `{name}`: {}", neuroc::diag::render_human(&checked.sources, &errors, false));
                    }
                };
                let experiment = Experiment::new(compiled).unwrap_or_else(|e| panic!("{place} `{name}`: {e:?}"));
                let program = experiment.compiled.program.clone();
                let mut engine = Interp::new(program, &experiment.setup).unwrap_or_else(|e| panic!("{e}"));
                let ran = experiment.run(&mut engine, &RunOptions::default(), &mut Unwatched);
                results.push(ran.unwrap_or_else(|e| panic!("{place} `{name}`: {e:?}")).0);
            }
            for (plain, other) in results[0].series.iter().zip(&results[1].series) {
                let (rows, columns) = plain.values.shape();
                for (row, cell) in (0..rows).flat_map(|row| (0..columns).map(move |cell| (row, cell))) {
                    let (x, y) = (plain.values.get(row, cell), other.values.get(row, cell));
                    assert!((x - y).abs() < 1e-9, "{place} `{name}`: {x} and {y}");
                }
            }
            assert_eq!(results[0].spikes, results[1].spikes, "{place} `{name}`");
            runs += 1;
        }
    }
    println!("{runs} models run, {messages} have a message at a name");
    assert!(runs > 300, "{runs}");
}

/// A user's `refractory` and `spikes` and the hidden ones keep apart: each does what it says.
#[test]
fn a_parameter_refractory_and_a_state_spikes_are_the_users_own() {
    let text = "cell P {
            param refractory = 3 mV
            state spikes = 0
            state u: mV = -60 mV
            spikes' = 1 /ms
            u' = (-50 mV + refractory - u) / 10 ms
            spike when u > -58 mV { u = -60 mV; refractory 2 ms }
        }
        network main { population q: P }
        run { duration = 10 ms; dt = 0.1 ms; method = euler; record q.{u, spikes} every 10 ms; record spikes of q }";
    let checked = driver::check_text("names.neuro", Path::new(""), text, &Sources);
    let said = neuroc::diag::render_human(&checked.sources, &checked.diagnostics, false);
    let compiled = driver::compile(&checked, &CompileOptions::default(), &mut |_, _, _| {});
    let experiment = Experiment::new(compiled.unwrap_or_else(|_| panic!("{said}"))).unwrap_or_else(|e| panic!("{e:?}"));
    let program = experiment.compiled.program.clone();
    let mut engine = Interp::new(program, &experiment.setup).unwrap_or_else(|e| panic!("{e}"));
    let ran = experiment.run(&mut engine, &RunOptions::default(), &mut Unwatched);
    let result = ran.unwrap_or_else(|e| panic!("{e:?}")).0;
    let (u, count) = (result.series_named("q.u"), result.series_named("q.spikes"));
    assert!((count.map_or(f64::NAN, |s| s.values.get(1, 0)) - 10.0).abs() < 1e-9);
    assert!(u.is_some_and(|s| s.values.get(1, 0) < -57.9));
    // u goes to -47 mV: from -60 to -58 mV in 1.67 ms, then 2 ms of rest.
    let spikes: Vec<f64> = result.spikes[0].t.clone();
    assert_eq!(spikes.len(), 3, "{spikes:?}");
    for (k, t) in spikes.iter().enumerate() {
        assert!((t - (1.7 + 3.7 * k as f64)).abs() < 0.11, "{spikes:?}");
    }
}
