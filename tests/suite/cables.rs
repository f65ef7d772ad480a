//! Tests of: cables. Cells with sections against NEURON, closed forms and a dense system; charge; orders in time and space.

use crate::events::native_run;
use crate::models::{Way, root, run};
use neuroc::codegen::plan::Precision;
use neuroc::driver::{self, Checked, CompileOptions};
#[cfg(feature = "xla")]
use neuroc::driver::{EngineChoice, Experiment};
use neuroc::hir::{Loader, Method, Sources};
use neuroc::morphology::Tree;
use neuroc::results::RunResult;
#[cfg(feature = "xla")]
use neuroc::simulate::{RunOptions, Unwatched};
use serde_json::Value;
use std::f64::consts::PI;
use std::path::Path;

pub fn checked(text: &str) -> Checked {
    let checked = driver::check_text("cable.neuro", Path::new(""), text, &Sources);
    let said = neuroc::diag::render_human(&checked.sources, &checked.diagnostics, false);
    assert!(checked.diagnostics.is_empty(), "{said}");
    checked
}

pub fn ran(text: &str, way: Way) -> RunResult {
    run(&checked(text), &CompileOptions::default(), way)
}

/// The samples of a record of one cell.
pub fn samples(result: &RunResult, name: &str) -> Vec<f64> {
    let s = result.series_named(name).unwrap_or_else(|| panic!("`{name}` is not recorded"));
    (0..s.t.len()).map(|row| s.values.get(row, 0)).collect()
}

fn reference(at: &str) -> Value {
    let text = std::fs::read_to_string(root().join("tests/reference/ball_and_stick_neuron.json")).unwrap();
    let all: Value = serde_json::from_str(&text).unwrap();
    all.pointer(at).unwrap_or_else(|| panic!("there is nothing at {at}")).clone()
}

pub fn numbers(value: &Value) -> Vec<f64> {
    value.as_array().unwrap().iter().map(|x| x.as_f64().unwrap()).collect()
}

/// The largest difference, of rows of the same length.
pub fn apart(a: &[f64], b: &[f64]) -> f64 {
    assert_eq!(a.len(), b.len());
    a.iter().zip(b).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max)
}

const PASSIVE: &str = "channel Leak {\n param gbar = 0.1 mS/cm2\n param erev = -65 mV\n}\n";

// ---------------------------------------------------------------------------------------------- NEURON

#[test]
fn the_ball_and_stick_is_that_of_neuron() {
    let file = root().join("examples/ball_and_stick.neuro");
    let checked = driver::check_file(&file);
    assert!(checked.diagnostics.is_empty(), "{:?}", checked.diagnostics);
    for way in [Way::Plain, Way::Optimized, Way::Reread] {
        let result = run(&checked, &CompileOptions::default(), way);
        for (name, at) in [("pyr.soma(0.5).v", "soma_mV"), ("pyr.dend(1).v", "dend_end_mV")] {
            let expected = numbers(&reference(&format!("/ball_and_stick/{at}")));
            let error = apart(&samples(&result, name), &expected);
            // Spikes amplify what is rounded.
            assert!(error < 1e-9, "{name}: {error:e} mV, {way:?}");
        }
        let spikes = numbers(&reference("/ball_and_stick/spikes_ms"));
        assert_eq!(result.spikes[0].t.len(), spikes.len());
        assert!(apart(&result.spikes[0].t, &spikes) < 1e-6);
    }
}

pub(super) const BRANCHED: &str = "
use std.channels.hh.{K, Leak, Na}
cell Branched {
    section spine { from right(0.5); length = 10 um; diam = 0.5 um; compartments = 1 }
    section soma { length = 25 um; diam = 18 um; compartments = 3 }
    section trunk { from soma(1); length = 150 um; diam = 3 um; compartments = 7 }
    section left { from trunk(1); length = 120 um; diam = 1.5 um; compartments = 5 }
    section right { from trunk(1); length = 200 um; diam = 1 um; compartments = 8 }
    section basal { from soma(0); length = 90 um; diam = 2 um; compartments = 4 }
    region all { ra = 100 ohm*cm; cm = 1 uF/cm2; v_init = -65 mV }
    region trunk { ra = 150 ohm*cm }
    region soma, left { insert Na, K, Leak(gbar = 0.3 mS/cm2, erev = -54.4 mV) }
    region trunk, right, basal, spine { insert Leak(gbar = 0.1 mS/cm2, erev = -67 mV) }
    spike when soma(0.5).v crosses -10 mV
}
network main {
    population pyr: Branched[2]
    input step: pulse(delay = 2 ms, duration = 15 ms, amplitude = 0.8 nA) -> pyr[1].trunk(0.5)
}
run {
    duration = 20 ms; dt = 0.025 ms; method = cnexp; celsius = 6.3 degC
    record pyr.{soma(0.5), trunk(0.5), left(0.9), right(0.9375), basal(0.875), spine(0.5)}.v every 0.1 ms
    record spikes of pyr
}";

#[test]
fn a_branched_cell_is_that_of_neuron() {
    let result = ran(BRANCHED, Way::Optimized);
    let (places, rows) = (reference("/branched/places"), reference("/branched/mV"));
    for (place, row) in places.as_array().unwrap().iter().zip(rows.as_array().unwrap()) {
        let name = format!("pyr.{}.v", place.as_str().unwrap());
        let s = result.series_named(&name).unwrap_or_else(|| panic!("`{name}` is not recorded"));
        let v: Vec<f64> = (0..s.t.len()).map(|i| s.values.get(i, 1)).collect();
        let error = apart(&v, &numbers(row));
        assert!(error < 1e-9, "{name}: {error:e} mV");
        // The first cell gets no current: it stays where it is, but for the leak.
        assert!((0..s.t.len()).all(|i| s.values.get(i, 0) < -60.0), "{name}");
    }
    let spikes = numbers(&reference("/branched/spikes_ms"));
    assert!(!spikes.is_empty() && result.spikes[0].i.iter().all(|cell| *cell == 1));
    assert!(apart(&result.spikes[0].t, &spikes) < 1e-6);
    let plain = ran(BRANCHED, Way::Plain);
    for (a, b) in plain.series.iter().zip(&result.series) {
        let rows = 0..a.t.len();
        let error = rows.map(|i| (a.values.get(i, 1) - b.values.get(i, 1)).abs()).fold(0.0, f64::max);
        assert!(error < 1e-9, "{}: {error:e} mV", a.name);
    }
}

/// The branched cell with another network.
fn branched_with(network: &str, run: &str) -> String {
    let cell = BRANCHED.split("network main").next().unwrap();
    format!("{cell}\n{network}\nrun {{\n dt = 0.025 ms; method = cnexp; celsius = 6.3 degC\n {run}\n}}")
}

#[test]
fn an_electrode_is_that_of_neuron() {
    let text = branched_with(
        "network main {\n population pyr: Branched
         clamp hold: -65 mV + pulse(delay = 2 ms, duration = 10 ms, amplitude = 45 mV) via 20 Mohm -> pyr.trunk(0.5)\n}",
        "duration = 20 ms\n record pyr.{soma(0.5), trunk(0.5), right(0.9375)}.v every 0.1 ms
         record pyr.trunk(0.5).i_clamp every 0.1 ms\n record spikes of pyr",
    );
    let second = CompileOptions { method: Some(Method::CrankNicolson), ..CompileOptions::default() };
    for (options, at, most) in
        [(CompileOptions::default(), "electrode", 1e-9), (second, "electrode_second_order", 1e-8)]
    {
        let (places, rows) = (reference(&format!("/{at}/places")), reference(&format!("/{at}/mV")));
        for way in [Way::Optimized, Way::Native] {
            let result = run(&checked(&text), &options, way);
            for (place, row) in places.as_array().unwrap().iter().zip(rows.as_array().unwrap()) {
                let name = format!("pyr.{}.v", place.as_str().unwrap());
                let error = apart(&samples(&result, &name), &numbers(row));
                assert!(error < most, "{at}, {name}: {error:e} mV, {way:?}");
            }
            assert!(apart(&result.spikes[0].t, &numbers(&reference(&format!("/{at}/spikes_ms")))) < 1e-6);
            // What flows is what the resistance lets through, in nA. Within the run a pulse begins with its first step.
            let (v, i) = (samples(&result, "pyr.trunk(0.5).v"), samples(&result, "pyr.trunk(0.5).i_clamp"));
            for (row, (v, i)) in v.iter().zip(&i).enumerate() {
                let held = if (20..120).contains(&row) { -20.0 } else { -65.0 };
                let expected = (held - v) / 20.0;
                assert!((i - expected).abs() < 1e-9, "sample {row}: {i} nA, not {expected}");
            }
        }
    }
}

/// Noise is drawn for the cell, also where the current is recorded: it has the sign of what it does to the voltage.
#[test]
fn an_electrode_that_is_noisy_records_what_flows() {
    let text = format!(
        "{PASSIVE}cell C {{
    section a {{ length = 20 um; diam = 20 um; compartments = 1 }}
    section b {{ from a(1); length = 200 um; diam = 2 um; compartments = 5 }}
    region all {{ ra = 100 ohm*cm; cm = 1 uF/cm2; v_init = -65 mV; insert Leak }}
}}
network main {{
    population c: C[3]
    clamp h: -65 mV + noise(mean = 0 mV, sd = 5 mV, every = 0.5 ms) via 5 Mohm -> c.b(0.5)
}}
run {{ duration = 5 ms; dt = 0.025 ms; method = cnexp\n record c.b(0.5).i_clamp every 0.5 ms\n record c.b(0.5).v every 0.5 ms }}"
    );
    // What differs from cell to cell by nothing has the same noise.
    let other = text.replace("-65 mV + noise", "-65 mV + 0 mV * index + noise");
    let [found, expected] = [&text, &other].map(|text| ran(text, Way::Optimized));
    same_bits(&expected, &found);
    let at = |name: &str, row: usize, cell: usize| found.series_named(name).unwrap().values.get(row, cell);
    let cells: Vec<f64> = (0..3).map(|cell| at("c.b(0.5).i_clamp", 4, cell)).collect();
    assert!(cells[0] != cells[1] && cells[1] != cells[2], "{cells:?}");
    // A current that is injected pulls the voltage to its side.
    let signs = (1..10).flat_map(|row| (0..3).map(move |cell| (row, cell)));
    let pulled = signs.filter(|&(row, cell)| {
        let [now, next] = [row, row + 1].map(|row| at("c.b(0.5).v", row, cell));
        (next - now) * at("c.b(0.5).i_clamp", row, cell) > 0.0
    });
    assert!(pulled.count() >= 22, "of 27");
}

/// A junction takes its own voltage from the end of the step, as the membrane does, and the other one from its beginning.
#[test]
fn junctions_between_branches_are_those_of_neuron() {
    let network = "
junction Gap { param g = 4 nS\n current i = g * dv }
cell BallAndStick {
    section ball { length = 20 um; diam = 20 um; compartments = 1 }
    section stick { from ball(1); length = 400 um; diam = 2 um; compartments = 21 }
    region all { ra = 100 ohm*cm; cm = 1 uF/cm2; v_init = -65 mV }
    region ball { insert Na, K, Leak(gbar = 0.3 mS/cm2, erev = -54.4 mV) }
    region stick { insert Leak(gbar = 0.05 mS/cm2, erev = -65 mV) }
}
network main {
    population pyr: Branched[2]
    population ball: BallAndStick
    connect pyr.left(0.9) -- pyr.left(0.9) via Gap { rule = all_to_all }
    connect pyr.trunk(0.5) -- ball.stick(0.5) via Gap as Other(g = 10 nS) { rule = all_to_all }
    input step: pulse(delay = 2 ms, duration = 25 ms, amplitude = 1.2 nA) -> pyr[0].trunk(0.5)
}";
    let places = "record {pyr.soma(0.5), pyr.left(0.9), ball.stick(0.5), ball.ball(0.5)}.v every 0.1 ms";
    let text = branched_with(network, &format!("duration = 30 ms\n {places}"));
    let (places, rows) = (reference("/junctions/places"), reference("/junctions/mV"));
    for way in [Way::Plain, Way::Optimized, Way::Native] {
        let result = ran(&text, way);
        for (place, row) in places.as_array().unwrap().iter().zip(rows.as_array().unwrap()) {
            let (population, rest) = place.as_str().unwrap().split_once('[').unwrap();
            let (cell, place) = rest.split_once("].").unwrap();
            let s = result.series_named(&format!("{population}.{place}.v")).unwrap();
            let cell: usize = cell.parse().unwrap();
            let v: Vec<f64> = (0..s.t.len()).map(|i| s.values.get(i, cell)).collect();
            let error = apart(&v, &numbers(row));
            assert!(error < 1e-8, "{population}[{cell}].{place}: {error:e} mV, {way:?}");
        }
    }
}

// ---------------------------------------------------------------------------------------------- closed forms

/// With `secondorder = 2`.
#[test]
fn the_second_order_is_that_of_neuron() {
    let second = CompileOptions { method: Some(Method::CrankNicolson), ..CompileOptions::default() };
    let ball = driver::check_file(&root().join("examples/ball_and_stick.neuro"));
    for way in [Way::Plain, Way::Optimized, Way::Native] {
        let result = run(&ball, &second, way);
        for (name, at) in [("pyr.soma(0.5).v", "soma_mV"), ("pyr.dend(1).v", "dend_end_mV")] {
            let expected = numbers(&reference(&format!("/ball_and_stick_second_order/{at}")));
            let error = apart(&samples(&result, name), &expected);
            assert!(error < 1e-8, "{name}: {error:e} mV, {way:?}");
        }
        let spikes = numbers(&reference("/ball_and_stick_second_order/spikes_ms"));
        assert!(apart(&result.spikes[0].t, &spikes) < 1e-6, "{:?} {spikes:?}", result.spikes[0].t);
    }
    let result = run(&checked(BRANCHED), &second, Way::Optimized);
    let rows = reference("/branched_second_order/mV");
    let places = reference("/branched_second_order/places");
    for (place, row) in places.as_array().unwrap().iter().zip(rows.as_array().unwrap()) {
        let name = format!("pyr.{}.v", place.as_str().unwrap());
        let s = result.series_named(&name).unwrap();
        let v: Vec<f64> = (0..s.t.len()).map(|i| s.values.get(i, 1)).collect();
        let error = apart(&v, &numbers(row));
        assert!(error < 1e-8, "{name}: {error:e} mV");
    }
}

/// A cable of `n` compartments, 1 mm long and 1 um thick, with a current of 0.1 nA at its start.
fn rallpack(n: usize, dt: f64, duration: f64) -> String {
    format!(
        "{PASSIVE}
        cell Cable {{
            section a {{ length = 1 mm; diam = 1 um; compartments = {n} }}
            region all {{ ra = 100 ohm*cm; cm = 1 uF/cm2; v_init = -65 mV; insert Leak(gbar = 0.025 mS/cm2) }}
        }}
        network main {{ population c: Cable\n input step: 0.1 nA -> c.a(0) }}
        run {{ duration = {duration} ms; dt = {dt} ms; method = cnexp\n record c.{{a(0), a(1)}}.v every 5 ms }}"
    )
}

/// The voltage above rest (mV) of a sealed cable of this length and diameter (cm), at `x` of its length, after a current of 0.1 nA into its
/// start for `t` ms: the sum over the modes `cos(k pi x)`, with the steady state of each (Rall 1969, Biophys J 9:1483).
fn sealed_cable((length, diam): (f64, f64), x: f64, t: f64) -> f64 {
    let (area, ra, g): (f64, f64, f64) = (PI * diam * length, 0.1, 0.025); // cm2, kohm cm, mS/cm2
    let axial = PI * diam * diam / 4.0 / (ra * length); // mS
    (0..2000)
        .map(|k| {
            let weight = if k == 0 { 1.0 } else { 2.0 };
            let conductance = g * area + axial * (f64::from(k) * PI).powi(2); // mS
            let rate = conductance / area; // 1/ms, at 1 uF/cm2
            1e-4 / conductance * weight * (f64::from(k) * PI * x).cos() * (1.0 - (-rate * t).exp())
        })
        .sum()
}

/// How far a record is from that, as a root of the mean square, over the largest voltage above rest.
fn from_closed_form(result: &RunResult, name: &str, cable: (f64, f64), x: f64) -> f64 {
    let s = result.series_named(name).unwrap();
    let (mut square, mut norm) = (0.0, 0.0f64);
    for (i, &t) in s.t.iter().enumerate().skip(1) {
        let exact = sealed_cable(cable, x, t);
        square += (s.values.get(i, 0) + 65.0 - exact).powi(2);
        norm = norm.max(exact);
    }
    (square / (s.t.len() - 1) as f64).sqrt() / norm
}

/// An example, as it stands.
fn example(name: &str) -> Checked {
    let checked = driver::check_file(&root().join(format!("examples/{name}.neuro")));
    assert!(checked.diagnostics.is_empty(), "{:?}", checked.diagnostics);
    checked
}

/// Rallpack 1 (Bhalla, Bilitch and Bower 1992, Trends Neurosci 15:453) as the example has it, and with a twentieth of its compartments.
#[test]
fn rallpack_1_follows_the_closed_form() {
    let result = run(&example("rallpack1"), &CompileOptions::default(), Way::Native);
    for (name, x) in [("axon.cable(0).v", 0.0005), ("axon.cable(1).v", 0.9995)] {
        let rms = from_closed_form(&result, name, (0.1, 1e-4), x);
        println!("{name}: {rms:e} of the largest voltage");
        assert!(rms < 3e-4, "{name}: {rms:e} of the largest voltage");
    }
    let n = 60;
    let result = ran(&rallpack(n, 0.1, 100.0), Way::Optimized);
    let half = 0.5 / n as f64;
    for (name, x) in [("c.a(0).v", half), ("c.a(1).v", 1.0 - half)] {
        let rms = from_closed_form(&result, name, (0.1, 1e-4), x);
        assert!(rms < 1e-3, "{name}: {rms:e} of the largest voltage");
    }
}

/// Ten generations of forks, 1023 compartments, each 0.008 of its length constant long; diameters follow the law of the power 3/2, so that
/// the whole is a cable as thick as the trunk (Rall 1959, Exp Neurol 1:491; Bhalla, Bilitch and Bower 1992, Trends Neurosci 15:453).
#[test]
fn rallpack_2_follows_the_closed_form() {
    let checked = example("rallpack2");
    let result = run(&checked, &CompileOptions::default(), Way::Native);
    for (name, x) in [("cells.g0(0.5).v", 0.05), ("cells.g9_0(0.5).v", 0.95), ("cells.g9_341(0.5).v", 0.95)] {
        let rms = from_closed_form(&result, name, (0.032, 16e-4), x);
        println!("{name}: {rms:e} of the largest voltage");
        assert!(rms < 1e-3, "{name}: {rms:e} of the largest voltage");
    }
    let model = checked.model.unwrap();
    let tree = &model.cells.iter().find(|cell| cell.name == "Tree").unwrap().morphology.as_ref().unwrap().tree;
    assert_eq!((tree.sections.len(), (0..tree.len()).filter(|&e| tree.is_compartment(e)).count()), (1023, 1023));
    // The law, at every fork.
    let sections = &model.cells.iter().find(|cell| cell.name == "Tree").unwrap().morphology.as_ref().unwrap().sections;
    for (at, parent) in sections.iter().enumerate() {
        let children = sections.iter().filter(|s| s.from.is_some_and(|from| from.0 == at));
        let sum: f64 = children.map(|s| s.frusta[0].diam[0].powf(1.5)).sum();
        let own = parent.frusta[0].diam[1].powf(1.5);
        assert!(sum == 0.0 || (sum / own - 1.0).abs() < 1e-9, "{}", parent.name);
    }
}

/// What stands for an element of the matrix is never kept in 16 bits: a cable at rest stays there.
#[test]
fn what_spoils_a_cable_is_named_where_it_is() {
    // The pool of the tip alone falls below nothing; the voltages of the whole cell are solved at once.
    let text = "
        use std.ions.{nernst, F}
        channel P { param gbar = 0.1 mS/cm2; param erev = -70 mV }
        channel CaT { param gbar = 1 mS/cm2; reads Ca: mM; current i = gbar * (v - nernst(2, Ca, 2 mM)) }
        channel Out { param j = 20 uA/cm2; current i = j }
        cell C {
            section soma { length = 20 um; diam = 20 um; compartments = 1 }
            section tip { from soma(1); length = 200 um; diam = 1 um; compartments = 3 }
            region all { ra = 100 ohm*cm; cm = 1 uF/cm2; v_init = -65 mV; insert P }
            region tip { insert CaT, Out; pool Ca: mM { init = 1e-4 mM; Ca' = -Out.i / (2 * F * 10 um) } }
        }
        network main { population p: C[2] }
        run { duration = 20 ms; dt = 0.025 ms; method = cnexp; celsius = 20 degC; record p.soma(0.5).v }";
    let checked = driver::check_text("spoilt.neuro", Path::new(""), text, &Sources);
    let (_, outcome) = crate::models::outcome(&checked, &CompileOptions::default(), Way::Optimized);
    let neuroc::simulate::Ending::NotFinite(why) = outcome.ending else { panic!("it ended well") };
    assert!(why.message.starts_with("`p.v` of tip(0.1667) of cell 0 became NaN"), "{}", why.message);
    assert!(why.notes.iter().any(|note| note.starts_with("ln(") || note.contains(" in `")), "{:?}", why.notes);
    assert!(why.help.iter().all(|help| !help.contains("smaller time step")), "{:?}", why.help);
}

#[cfg(feature = "xla")]
#[test]
fn a_cable_at_rest_stays_there_in_16_bits() {
    let Some(client) = crate::pjrt::cpu() else { return };
    let text = "use std.channels.hh.Leak
        cell Cable {
            section a { length = 200 um; diam = 2 um .. 1.3 um; compartments = 10 }
            region all { ra = 100 ohm*cm; cm = 1 uF/cm2; v_init = -65 mV; insert Leak(gbar = 0.05 mS/cm2, erev = -65 mV) }
        }
        network main { population c: Cable }
        run { duration = 100 ms; dt = 0.05 ms; method = cnexp; record c.{a(0), a(0.5), a(1)}.v every 10 ms }";
    let compiled = driver::compile(&checked(text), &CompileOptions::default(), &mut |_, _, _| {}).unwrap();
    let experiment = Experiment::new(compiled).unwrap();
    let plan = experiment.plan(Precision::Bf16).unwrap();
    let mut engine = experiment.engine(&plan, EngineChoice::Xla(client.into(), Default::default())).unwrap().engine;
    let result = experiment.run(engine.as_mut(), &RunOptions::default(), &mut Unwatched).unwrap().0;
    for series in &result.series {
        assert!((0..series.t.len()).all(|row| (series.values.get(row, 0) + 65.0).abs() < 0.1), "{}", series.name);
    }
}

/// What follows potentials is driven by the time at the end of a step, and comes to them in the middle of the next one.
#[test]
fn states_driven_by_the_time_keep_the_second_order() {
    let v = |dt: f64, method: Method| {
        let text = format!(
            "cell P {{ state g = 0; state v: mV = 0 mV; g' = -g / 4 ms + sin(t / 3 ms) / 2 ms; v' = (-v + 10 mV * g) / 5 ms }}
            network main {{ population p: P }}
            run {{ duration = 20 ms; dt = {dt} ms; record p.v every 20 ms }}"
        );
        let options = CompileOptions { method: Some(method), ..CompileOptions::default() };
        *samples(&run(&checked(&text), &options, Way::Optimized), "p.v").last().unwrap()
    };
    let exact = v(0.01, Method::Rk4);
    let [coarse, fine] = [0.5, 0.25].map(|dt| (v(dt, Method::CrankNicolson) - exact).abs());
    assert!((coarse / fine).log2() > 1.8, "{coarse:e}, then {fine:e}");
}

/// A squid axon of 1000 compartments, the example for 500 ms (Bhalla, Bilitch and Bower 1992): 35 spikes, each within 0.1 ms of a run with steps a
/// quarter as long.
#[test]
fn rallpack_3_has_its_spikes() {
    let checked = example("rallpack3");
    let own = checked.model.as_ref().unwrap().run.as_ref().unwrap();
    assert_eq!((own.dt, own.method, own.duration), (0.01, Method::CrankNicolson, 250.0));
    let run = |method: Method, dt: f64| {
        let (duration, every) = (Some(500.0), Some(500.0));
        let options =
            CompileOptions { method: Some(method), dt: Some(dt), duration, every, ..CompileOptions::default() };
        run(&checked, &options, Way::Native).spikes[0].t.clone()
    };
    let converged = run(Method::CrankNicolson, 0.0025);
    assert_eq!(converged.len(), 35);
    let late = |method: Method, dt: f64| apart(&run(method, dt), &converged);
    let [second, first] = [Method::CrankNicolson, Method::Cnexp].map(|method| late(method, 0.01));
    println!("crank_nicolson: {second} ms, cnexp: {first} ms");
    assert!(second < 0.1, "{second} ms");
    // Of order 1, spikes come later and later.
    assert!(first > 5.0 * second, "{first} ms");
}

/// The exponent of the order, from runs whose steps or compartments differ by a factor.
pub fn order(coarse: f64, middle: f64, fine: f64, factor: f64) -> f64 {
    ((coarse - middle) / (middle - fine)).abs().ln() / factor.ln()
}

#[test]
fn the_order_is_one_or_two_in_time_and_two_in_space() {
    let end = |n: usize, dt: f64| *samples(&ran(&rallpack(n, dt, 10.0), Way::Optimized), "c.a(1).v").last().unwrap();
    let [a, b, c] = [0.5, 0.25, 0.125].map(|dt| end(9, dt));
    assert!((order(a, b, c, 2.0) - 1.0).abs() < 0.05, "{}", order(a, b, c, 2.0));
    let end = |dt: f64| {
        let text = rallpack(9, dt, 10.0).replace("cnexp", "crank_nicolson");
        *samples(&ran(&text, Way::Optimized), "c.a(1).v").last().unwrap()
    };
    let [a, b, c] = [0.5, 0.25, 0.125].map(end);
    assert!((order(a, b, c, 2.0) - 2.0).abs() < 0.05, "{}", order(a, b, c, 2.0));
    // The middle of the cable is that of a compartment where their number is odd.
    let middle = |n: usize| {
        let text = rallpack(n, 0.5, 10.0).replace("a(1)", "a(0.5)");
        *samples(&ran(&text, Way::Optimized), "c.a(0.5).v").last().unwrap()
    };
    let [a, b, c] = [3, 9, 27].map(middle);
    assert!((order(a, b, c, 3.0) - 2.0).abs() < 0.1, "{}", order(a, b, c, 3.0));
}

// ---------------------------------------------------------------------------------------------- a dense system

/// Solves `a x = b` by Gauss's elimination with pivots.
fn dense(mut a: Vec<Vec<f64>>, mut b: Vec<f64>) -> Vec<f64> {
    let n = b.len();
    for i in 0..n {
        let pivot = (i..n).max_by(|&p, &q| a[p][i].abs().total_cmp(&a[q][i].abs())).unwrap();
        a.swap(i, pivot);
        b.swap(i, pivot);
        for r in i + 1..n {
            let factor = a[r][i] / a[i][i];
            let (above, below) = a.split_at_mut(r);
            below[0].iter_mut().zip(&above[i]).for_each(|(x, y)| *x -= factor * y);
            b[r] -= factor * b[i];
        }
    }
    for i in (0..n).rev() {
        let known: f64 = (i + 1..n).map(|j| a[i][j] * b[j]).sum();
        b[i] = (b[i] - known) / a[i][i];
    }
    b
}

/// A fork: a root of two compartments, a taper of two at its end, a cylinder of one beside it, one at its start; every property differs.
const FORK: &str = "
cell Fork {
    section a { length = 40 um; diam = 4 um; compartments = 2 }
    section b { from a(1); length = 60 um; diam = 3 um .. 1 um; compartments = 2 }
    section c { from a(1); length = 30 um; diam = 2 um; compartments = 1 }
    section d { from a(0); length = 20 um; diam = 1 um; compartments = 1 }
    region all { ra = 120 ohm*cm; cm = 1 uF/cm2; v_init = -65 mV; insert Leak }
    region b { ra = 80 ohm*cm; cm = 2 uF/cm2; v_init = -50 mV }
    region c { ra = 200 ohm*cm }
}
network main { population p: Fork\n input step: 0.05 nA -> p.c(0.5) }
run { duration = 2 ms; dt = 0.5 ms; method = cnexp\n record p.{a(0.2), a(0.8), b(0.2), b(0.8), c(0.5), d(0.5)}.v }";

#[test]
fn a_fork_is_what_a_dense_system_gives() {
    // Elements: a0 a1 b0 b1 c d and the node at the end of a. Lengths in cm, areas in cm2, conductances in mS.
    let mantle = |l: f64, d: [f64; 2]| PI * 0.5 * (d[0] + d[1]) * 1e-8 * l.hypot(0.5 * (d[1] - d[0]));
    let area = [
        mantle(20.0, [4.0, 4.0]),
        mantle(20.0, [4.0, 4.0]),
        mantle(30.0, [3.0, 2.0]),
        mantle(30.0, [2.0, 1.0]),
        mantle(30.0, [2.0, 2.0]),
        mantle(20.0, [1.0, 1.0]),
        0.0,
    ];
    let cm = [1.0, 1.0, 2.0, 2.0, 1.0, 1.0, 1.0];
    // In kohm.
    let r = |ra: f64, l: f64, d: [f64; 2]| ra * 1e-3 * l * 1e4 * 4.0 / (PI * d[0] * d[1]);
    let joined = [
        (0, 1, r(120.0, 20.0, [4.0, 4.0])),
        (1, 6, r(120.0, 10.0, [4.0, 4.0])),
        (6, 2, r(80.0, 15.0, [3.0, 2.5])),
        (2, 3, r(80.0, 15.0, [2.5, 2.0]) + r(80.0, 15.0, [2.0, 1.5])),
        (6, 4, r(200.0, 15.0, [2.0, 2.0])),
        (0, 5, r(120.0, 10.0, [4.0, 4.0]) + r(120.0, 10.0, [1.0, 1.0])),
    ];
    let (dt, g, e) = (0.5, 0.1, -65.0);
    let mut matrix = vec![vec![0.0; 7]; 7];
    for i in 0..7 {
        matrix[i][i] = area[i] * (cm[i] / dt + g);
    }
    for (i, j, resistance) in joined {
        let conductance = 1.0 / resistance;
        matrix[i][i] += conductance;
        matrix[j][j] += conductance;
        matrix[i][j] -= conductance;
        matrix[j][i] -= conductance;
    }
    let text = format!("{PASSIVE}{FORK}");
    let result = ran(&text, Way::Plain);
    let names = ["a(0.2)", "a(0.8)", "b(0.2)", "b(0.8)", "c(0.5)", "d(0.5)"];
    let got: Vec<Vec<f64>> = names.iter().map(|n| samples(&result, &format!("p.{n}.v"))).collect();
    let mut v = [-65.0, -65.0, -50.0, -50.0, -65.0, -65.0, -65.0].to_vec();
    for step in 1..=4 {
        let mut right: Vec<f64> = (0..7).map(|i| area[i] * (cm[i] / dt * v[i] + g * e)).collect();
        right[4] += 0.05e-3; // uA
        v = dense(matrix.clone(), right);
        for ((name, row), expected) in names.iter().zip(&got).zip(&v) {
            assert!((row[step] - expected).abs() < 1e-10, "{name}: {} is not {expected} in step {step}", row[step]);
        }
    }
    assert!(v[4] > -60.0, "the current does something");
}

#[test]
fn what_flows_in_stays_there() {
    let text = FORK.replace("; insert Leak", "").replace(
        "record p.{a(0.2)",
        "record p.{a(0.2), a(0.8), b(0.2), b(0.8), c(0.5), d(0.5)}.{area, cm}\n record p.{a(0.2)",
    );
    let result = ran(&text, Way::Optimized);
    let mut charge = 0.0;
    for place in ["a(0.2)", "a(0.8)", "b(0.2)", "b(0.8)", "c(0.5)", "d(0.5)"] {
        let [v, area, cm] = ["v", "area", "cm"].map(|of| samples(&result, &format!("p.{place}.{of}")));
        // um2 uF/cm2 mV = 1e-8 nC
        charge += area[0] * cm[0] * (v[4] - v[0]) * 1e-8;
    }
    // 0.05 nA for 2 ms.
    assert!((charge - 0.05 * 2e-3).abs() < 1e-15, "{charge} nC");
}

// ---------------------------------------------------------------------------------------------- properties of places

#[test]
fn values_may_depend_on_the_distance() {
    let text = format!(
        "{PASSIVE}
        cell C {{
            section soma {{ length = 20 um; diam = 20 um; compartments = 1 }}
            section dend {{ from soma(1); length = 100 um; diam = 2 um; compartments = 5 }}
            param g0 = 0.1 mS/cm2
            region all {{ ra = 100 ohm*cm; cm = 1 uF/cm2; v_init = -65 mV }}
            region dend {{ cm = 1 uF/cm2 + 0.01 uF/cm2 * (distance / 1 um); insert Leak(gbar = g0 * exp(-distance / 50 um)) }}
        }}
        network main {{ population p: C[3] }}
        run {{ duration = 1 ms; dt = 0.5 ms; method = cnexp\n record p.dend(0.5).{{distance, cm, Leak.gbar}}\n record p.soma(0.5).cm }}"
    );
    let checked = checked(&text);
    let got = |options: &CompileOptions, name: &str| samples(&run(&checked, options, Way::Optimized), name)[0];
    let options = CompileOptions::default();
    let close = |a: f64, b: f64| assert!((a - b).abs() < 1e-12 * b.abs(), "{a} is not {b}");
    close(got(&options, "p.dend(0.5).distance"), 60.0);
    close(got(&options, "p.dend(0.5).cm"), 1.6);
    close(got(&options, "p.soma(0.5).cm"), 1.0);
    close(got(&options, "p.dend(0.5).Leak.gbar"), 0.1 * (-1.2f64).exp());
    let set = CompileOptions { set: vec!["g0=0.3 mS/cm2".into(), "all.cm=2 uF/cm2".into()], ..options };
    close(got(&set, "p.dend(0.5).Leak.gbar"), 0.3 * (-1.2f64).exp());
    close(got(&set, "p.soma(0.5).cm"), 2.0);
    close(got(&set, "p.dend(0.5).cm"), 1.6);
}

#[test]
fn the_program_does_not_grow_with_compartments() {
    let text = |n: usize| {
        let checked = checked(&rallpack(n, 0.1, 1.0).replace("every 5 ms", ""));
        let compiled = driver::compile(&checked, &CompileOptions::default(), &mut |_, _, _| {}).unwrap();
        neuroc::step::print(compiled.program.program())
    };
    // The last compartment has another name.
    let lines = |n: usize| text(n).lines().map(|l| l.split('"').next().unwrap().to_string()).collect::<Vec<_>>();
    assert_eq!(lines(10), lines(1000));
}

/// Every number and every spike.
fn same_bits(a: &RunResult, b: &RunResult) {
    let bits = |r: &RunResult| -> Vec<Vec<u64>> {
        let values = r.series.iter().map(|s| {
            (0..s.t.len())
                .flat_map(|row| (0..s.cells.len()).map(move |cell| s.values.get(row, cell).to_bits()))
                .collect()
        });
        let spikes = r.spikes.iter().map(|s| s.t.iter().map(|x| x.to_bits()).chain(s.i.iter().copied()).collect());
        values.chain(spikes).collect()
    };
    assert!(bits(a) == bits(b), "numbers differ");
}

/// Cells of two kinds, more than fill vectors and fewer, with branches, tapers, places, values of regions and cells, and others that they
/// send to.
const MIXED: &str = "
use std.channels.hh.{K, Leak, Na}
cell Branched {
    section spine { from right(0.5); length = 10 um; diam = 0.5 um; compartments = 1 }
    section soma { length = 25 um; diam = 18 um; compartments = 3 }
    section trunk { from soma(1); length = 150 um; diam = 3 um .. 2 um; compartments = 7 }
    section left { from trunk(1); length = 120 um; diam = 1.5 um; compartments = 5 }
    section right { from trunk(1); length = 200 um; diam = 1 um; compartments = 8 }
    section basal { from soma(0); length = 90 um; diam = 2 um; compartments = 4 }
    region all { ra = 100 ohm*cm; cm = 1 uF/cm2; v_init = -65 mV - 1 mV * distance / 100 um }
    region trunk { ra = 150 ohm*cm; cm = 2 uF/cm2 }
    region soma, left { insert Na(gbar = 120 mS/cm2 * exp(-distance / 200 um)), K, Leak(gbar = 0.3 mS/cm2, erev = -54.4 mV) }
    region trunk, right, basal, spine { insert Leak(gbar = 0.1 mS/cm2, erev = -67 mV) }
    spike when soma(0.5).v crosses -10 mV
}
cell Ball {
    section soma { length = 20 um; diam = 20 um; compartments = 1 }
    section dend { from soma(1); length = 400 um; diam = 2 um; compartments = 20 }
    region all { ra = 100 ohm*cm; cm = 1 uF/cm2; v_init = -65 mV; insert Na, K, Leak(gbar = 0.3 mS/cm2, erev = -54.4 mV) }
    spike when soma(0.5).v crosses -10 mV
}
cell P {
    state v: mV = -65 mV
    v' = (-65 mV - v) / 10 ms
    spike when v > -60 mV { v = -65 mV }
}
synapse Kick { on event(weight: mV) { v += weight } }
network main {
    population pyr: Branched[43]
    population p: P[11]
    population ball: Ball[3]
    input step: pulse(delay = 2 ms, duration = 15 ms, amplitude = 0.8 nA) -> pyr[1..40].trunk(0.5)
    input other: pulse(delay = 1 ms, duration = 15 ms, amplitude = 0.3 nA) -> ball.soma(0.5)
    connect pyr -> p via Kick { rule = all_to_all(); weight = 0.25 mV; delay = 1 ms }
}
run {
    duration = 20 ms; dt = 0.025 ms; method = cnexp; celsius = 6.3 degC
    record pyr.{soma(0.5), trunk(0.5), left(0.9), right(0.9375), basal(0.875), spine(0.5)}.v every 0.1 ms
    record pyr.soma(0.5).{Na.m, Na.i} every 0.1 ms
    record ball.dend(1).v every 0.1 ms
    record p.v every 0.1 ms
    record spikes of pyr
    record spikes of p
    record spikes of ball
}";

#[test]
fn native_cables_give_the_bits_of_the_interpreter() {
    let checked = checked(MIXED);
    let expected = run(&checked, &CompileOptions::default(), Way::Optimized);
    assert!(expected.spikes.iter().all(|s| !s.t.is_empty()), "all kinds of cells spike");
    for threads in [1, 2, 3] {
        same_bits(&expected, &native_run(&checked, Precision::F64, threads));
    }
    let single = native_run(&checked, Precision::F32, 1);
    same_bits(&single, &native_run(&checked, Precision::F32, 3));
    for (a, b) in expected.spikes.iter().zip(&single.spikes) {
        assert_eq!(a.t.len(), b.t.len(), "{}", a.population);
        assert!(apart(&a.t, &b.t) < 0.026, "{}", a.population);
    }
}

/// The mixed network for a shorter time with other records.
fn mixed_with(records: &str) -> String {
    let whole = MIXED.replace("duration = 20 ms; dt", "duration = 4 ms; dt");
    let before = whole.split("    record pyr").next().unwrap();
    format!("{before}\n{records}\n}}")
}

#[test]
fn what_is_recorded_in_sections_is_what_their_places_have() {
    let sections = checked(&mixed_with(
        "record pyr.all.v every 0.5 ms\n record pyr.left.{Na.m, Na.i, Na.gbar} every 0.5 ms\n
        record pyr[1..4].right.{v, Leak.i} every 0.5 ms\n record ball.all.{v, distance} every 0.5 ms\n record spikes of pyr",
    ));
    let result = run(&sections, &CompileOptions::default(), Way::Optimized);
    same_bits(&result, &native_run(&sections, Precision::F64, 2));
    same_bits(&result, &run(&sections, &CompileOptions::default(), Way::Reread));
    let all = result.series_named("pyr.all.v").unwrap().compartments.clone().unwrap();
    // 28 compartments; nodes are not recorded.
    assert_eq!((all.len(), result.series_named("pyr.all.v").unwrap().cells.len()), (28, 28 * 43));
    let places: Vec<String> = all.iter().map(|c| format!("record pyr.{}.v every 0.5 ms", c.name)).collect();
    let mut places = places.join("\n");
    for x in [0.1, 0.3, 0.5, 0.7, 0.9] {
        places += &format!("\nrecord pyr.left({x}).{{Na.m, Na.i, Na.gbar}} every 0.5 ms");
    }
    places += "\nrecord pyr[1..4].right(0.1875).Leak.i every 0.5 ms\nrecord ball.dend(0.525).v every 0.5 ms\nrecord spikes of pyr";
    let alone = run(&checked(&mixed_with(&places)), &CompileOptions::default(), Way::Optimized);
    let column = |s: &neuroc::results::Series, column: usize| -> Vec<u64> {
        (0..s.t.len()).map(|row| s.values.get(row, column).to_bits()).collect()
    };
    let mut compared = 0;
    for s in result.series.iter().filter(|s| !s.name.ends_with("distance")) {
        let quantity = s.name.split('.').skip(if s.name.contains('[') { 4 } else { 2 }).collect::<Vec<_>>().join(".");
        let cells = s.name.split(']').next().filter(|begin| begin.len() < s.name.len());
        let population = cells.map_or(s.population.clone(), |begin| format!("{begin}]"));
        for at in 0..s.cells.len() {
            let (place, compartment) = s.compartment(at).unwrap();
            assert_eq!(at, (s.cells[at] - s.cells[0]) as usize * s.compartments.as_ref().unwrap().len() + place);
            let Some(other) = alone.series_named(&format!("{population}.{}.{quantity}", compartment.name)) else {
                continue;
            };
            let cell = other.cells.iter().position(|cell| *cell == s.cells[at]).unwrap();
            assert!(column(s, at) == column(other, cell), "{} of {}", s.name, s.column(at));
            compared += 1;
        }
    }
    assert_eq!(compared, 28 * 43 + 3 * 5 * 43 + 3 + 3);
}

#[test]
fn results_know_where_compartments_are() {
    let text = branched_with(
        "network main { population pyr: Branched[2] }",
        "duration = 1 ms; record pyr.all.distance every 1 ms; record pyr.right.v every 1 ms; record pyr[1].soma.v every 1 ms",
    );
    let result = ran(&text, Way::Optimized);
    let folder = tempfile::tempdir().unwrap();
    for file in ["r.npz", "r/"] {
        let path = folder.path().join(file);
        result.write(&path).unwrap();
        let again = RunResult::read_npz(&path).unwrap();
        for s in &result.series {
            assert_eq!(again.series_named(&s.name), Some(s), "{file}");
        }
    }
    // What the model calls the distance.
    let s = result.series_named("pyr.all.distance").unwrap();
    let compartments = s.compartments.clone().unwrap();
    for at in 0..s.cells.len() {
        assert!((s.values.get(0, at) - s.compartment(at).unwrap().1.distance).abs() < 1e-9, "{}", s.column(at));
    }
    let before = |name: &str| {
        let at = compartments.iter().position(|c| c.name == name).unwrap();
        compartments[at].before.map(|before| compartments[before as usize].name.as_str())
    };
    // Nodes are passed over.
    assert_eq!(before("trunk(0.0714)"), Some("soma(0.8333)"));
    assert_eq!([before("left(0.1)"), before("right(0.0625)")], [Some("trunk(0.9286)"); 2]);
    assert_eq!([before("basal(0.125)"), before("soma(0.1667)")], [Some("soma(0.1667)"), None]);
    let s = result.series_named("pyr.right.v").unwrap();
    assert_eq!((s.column(0), s.column(15)), ("right(0.0625) of cell 0".into(), "right(0.9375) of cell 1".into()));
    let s = result.series_named("pyr[1].soma.v").unwrap();
    assert_eq!((s.column(0), &s.cells[..]), ("soma(0.1667)".into(), &[1, 1, 1][..]));
    // As tables: a column for each compartment, named as if it was recorded alone.
    result.write(&folder.path().join("r.csv")).unwrap();
    let table = std::fs::read_to_string(folder.path().join("r.csv")).unwrap();
    let heads: Vec<&str> = table.lines().next().unwrap().split(',').collect();
    assert_eq!(heads.len(), 1 + 2 * 28 + 2 * 8 + 3);
    assert!(heads.contains(&"pyr[1].right(0.9375).v (mV)") && heads.contains(&"pyr[1].soma(0.5).v (mV)"), "{heads:?}");
}

#[test]
fn a_ring_of_synapses_on_dendrites_is_that_of_neuron() {
    let checked = driver::check_file(&root().join("examples/dendritic_ring.neuro"));
    assert!(checked.diagnostics.is_empty(), "{:?}", checked.diagnostics);
    let result = native_run(&checked, Precision::F64, 2);
    for (name, at) in [("ring.soma(0.5).v", "soma_mV"), ("ring.dend(0.5).v", "dend_mV")] {
        let s = result.series_named(name).unwrap();
        for (cell, row) in reference(&format!("/ring/{at}")).as_array().unwrap().iter().enumerate() {
            let v: Vec<f64> = (0..row.as_array().unwrap().len()).map(|at| s.values.get(at, cell)).collect();
            let error = apart(&v, &numbers(row));
            assert!(error < 1e-9, "{name} of {cell}: {error:e} mV");
        }
    }
    let of_4: Vec<f64> = result.spikes[0]
        .t
        .iter()
        .zip(&result.spikes[0].i)
        .filter(|(t, i)| **i == 4 && **t < 40.0)
        .map(|x| *x.0)
        .collect();
    assert!(apart(&of_4, &numbers(&reference("/ring/spikes_of_4_ms"))) < 1e-6);
}

/// The same cells with synapses at places and in whole sections.
fn with_synapses() -> String {
    MIXED
        .replace(
            "    connect pyr -> p",
            "    connect pyr -> ball.dend(0.5) via E(tau = 3 ms) { rule = all_to_all(); weight ~ uniform(0.1 nS, 0.4 nS); delay ~ uniform(0.1 ms, 3 ms) }
    connect ball -> pyr.{left(0.5), right(1), soma(0.5)} via E(tau = 2 ms) { rule = probability(p = 0.5); weight = 2 nS; delay = 1 ms }
    connect pyr -> pyr.basal(0.4) via E(tau = 2 ms) { rule = probability(p = 0.1); weight = 1 nS; delay = 0.5 ms }
    connect p -> ball.soma(0.5) via E(tau = 2 ms) { rule = all_to_all(); weight = 1 nS; delay = 0.5 ms }
    drive pyr[3..30].spine(0.5) via E(tau = 2 ms) from poisson(rate = 200 Hz) { weight = 0.5 nS }
    connect pyr -> p",
        )
        .replace(
            "synapse Kick",
            "synapse E {
    param tau = 1 ms
    param top = 0 mV
    state x: nS = 0 nS
    state g: nS = 0 nS
    x' = -x / tau
    g' = (x - g) / tau
    on event(weight: nS) { x += exp(1) * weight }
    current i = g * (v - top)
}
synapse Kick",
        )
        .replace("duration = 20 ms", "duration = 12 ms")
        .replace("record p.v", "record pyr.{left(0.5), basal(0.4), spine(0.5)}.E.g every 0.1 ms\n    record p.v")
}

#[test]
fn synapses_on_branches_give_the_same_bits() {
    let checked = checked(&with_synapses());
    let expected = run(&checked, &CompileOptions::default(), Way::Optimized);
    let most = |name: &str| samples(&expected, name).into_iter().fold(0.0, f64::max);
    assert!(most("pyr.left(0.5).E.g") > 0.1, "events arrive");
    for threads in [1, 2, 3] {
        same_bits(&expected, &native_run(&checked, Precision::F64, threads));
    }
}

/// The same cells with junctions between them and to cells of one compartment, electrodes, and values that differ from cell to cell.
fn with_junctions() -> String {
    with_synapses()
        .replace(
            "cell P {",
            "junction Gap { param g = 1 nS\n current i = g * dv }
junction Rectifying { current i = if dv > 0 mV then 0.5 nS * dv else 0.1 nS * dv }
cell Compartment { compartment soma { area = 1000 um2; cm = 1 uF/cm2; v_init = -65 mV; insert Leak(gbar = 0.1 mS/cm2, erev = -65 mV) } }
cell P {",
        )
        .replace(
            "    input other",
            "    population point: Compartment[9]
    connect pyr.right(0.9375) -- pyr.right(0.9375) via Gap { rule = probability(p = 0.1) }
    connect pyr.basal(0.9) -- pyr.spine(0.5) via Gap as Small(g = 0.05 nS) { rule = fixed_in_degree(2) }
    connect pyr.basal(0.9) -- ball.dend(0.5) via Rectifying { rule = all_to_all }
    connect point.soma -- pyr.trunk(0.9) via Gap as Point(g = 0.2 nS) { rule = all_to_all }
    connect pyr -> pyr.trunk via E(tau = 3 ms) { rule = fixed_in_degree(5); weight ~ uniform(0.1 nS, 0.4 nS); delay ~ uniform(0.1 ms, 3 ms) }
    drive pyr[3..30].left via E(tau = 2 ms) from poisson(rate = 20 Hz + 1 Hz * index) { weight ~ uniform(0.1 nS, 0.5 nS) }
    clamp hold: -65 mV + pulse(delay = 3 ms, duration = 4 ms, amplitude = 20 mV + 1 mV * index) via 10 Mohm -> ball[1..3].dend(1)
    param pyr.soma_left.K.gbar ~ truncated(normal(36 mS/cm2, 3 mS/cm2), 10 mS/cm2, 60 mS/cm2)
    param pyr[5..20].trunk.cm = 1.5 uF/cm2
    param pyr.trunk_right_basal_spine.Leak.gbar = 0.1 mS/cm2 + 0.001 mS/cm2 * index
    init pyr.v ~ normal(-65 mV, 2 mV)
    init ball[2].v = -60 mV
    input other",
        )
        .replace("record p.v", "record ball.{dend(1).i_clamp, soma(0.5).v} every 0.1 ms\n    record point.soma.v every 0.1 ms\n    record p.v")
}

#[test]
fn junctions_and_electrodes_on_branches_give_the_same_bits() {
    let checked = checked(&with_junctions());
    let expected = run(&checked, &CompileOptions::default(), Way::Optimized);
    let held = expected.series_named("ball.dend(1).i_clamp").unwrap();
    let largest = |cell: usize| (0..held.t.len()).map(|row| held.values.get(row, cell).abs()).fold(0.0, f64::max);
    assert!(largest(0) == 0.0 && largest(1) > 0.5 && largest(2) > 0.5, "two of three cells are clamped");
    let point = samples(&expected, "point.soma.v");
    assert!(point.iter().fold(-65.0f64, |a, &v| a.max(v)) > -60.0, "what spikes pulls on the others");
    for threads in [1, 2, 3] {
        same_bits(&expected, &native_run(&checked, Precision::F64, threads));
    }
    let single = native_run(&checked, Precision::F32, 1);
    same_bits(&single, &native_run(&checked, Precision::F32, 3));
}

/// Cells that are many take their steps some after others: what comes through junctions reaches those that it is for.
#[test]
fn junctions_of_many_cells_lead_where_they_should() {
    let text = format!(
        "{PASSIVE}junction Gap {{ param g = 5 nS; current i = g * dv }}
        cell Cable {{
            section d {{ length = 400 um; diam = 2 um; compartments = 41 }}
            region all {{ ra = 100 ohm*cm; cm = 1 uF/cm2; v_init = -65 mV; insert Leak }}
        }}
        network main {{
            population p: Cable[250]
            init p.v = -65 mV + 5 mV * index / 250
            connect p.d(0.5) -- p.d(0.5) via Gap {{ rule = fixed_in_degree(n = 1) }}
        }}
        run {{ duration = 0.5 ms; dt = 0.025 ms; method = METHOD; record p.d(0.5).v every 0.1 ms }}"
    );
    for method in ["cnexp", "crank_nicolson"] {
        let checked = checked(&text.replace("METHOD", method));
        let plain =
            CompileOptions { passes: driver::Passes::Level(neuroc::passes::OptLevel::O0), ..Default::default() };
        let expected = run(&checked, &plain, Way::Optimized);
        for threads in [1, 2] {
            let found = native_run(&checked, Precision::F64, threads);
            let (a, b) = (&found.series[0], &expected.series[0]);
            let rows = 0..a.t.len();
            let worst = rows.flat_map(|row| (0..250).map(move |cell| (row, cell)));
            let worst = worst.map(|at| (a.values.get(at.0, at.1) - b.values.get(at.0, at.1)).abs()).fold(0.0, f64::max);
            assert!(worst < 1e-11, "{method}, {threads} threads: {worst} mV");
        }
        // They do matter.
        let first = expected.series[0].values.get(5, 0) - expected.series[0].values.get(0, 0);
        assert!(first.abs() > 1e-3, "{first}");
    }
}

/// A state may be a conductance or a current itself: what it brings to a compartment is of one time on all engines.
#[test]
fn states_that_are_conductances_or_currents_count_as_products_with_them() {
    let text = "channel Pas { param gbar = 0.08 mS/cm2; param erev = -67 mV }
        channel St { state x: mS/cm2 = 0.3 mS/cm2; x' = (0.02 mS/cm2 - x) / 3 ms; current i = ONE * x * (v + 30 mV) }
        channel Sc { state y: uA/cm2 = -10 uA/cm2; y' = -y / 2 ms; current i = ONE * y }
        synapse Cur { state c: uA/cm2 = 0 uA/cm2; c' = -c / 2 ms; on event(weight: uA/cm2) { c -= weight } current i = ONE * c }
        cell B {
            section s { length = 20 um; diam = 15 um; compartments = 1 }
            section d { from s(1); length = 100 um; diam = 2 um; compartments = 4 }
            region all { ra = 120 ohm*cm; cm = 1 uF/cm2; v_init = -67 mV; insert Pas }
            region d { insert St }
            region s { insert Sc }
        }
        network main { population b: B
            drive b.s(0.5) via Cur from times(1 ms) { weight = 10 uA/cm2 } }
        run { duration = 5 ms; dt = 0.1 ms; method = METHOD; record b.all.v every 0.5 ms }";
    for method in ["cnexp", "crank_nicolson"] {
        let of = |one: &str, way| ran(&text.replace("METHOD", method).replace("ONE", one), way);
        let reference = of("1", Way::Plain);
        for way in [Way::Optimized, Way::Native] {
            let found = of("1", way);
            for row in 0..11 {
                for column in 0..5 {
                    let [a, b] = [&found, &reference].map(|r| r.series[0].values.get(row, column));
                    assert!((a - b).abs() < 1e-11, "{method}, {way:?}, {row}: {a} and {b}");
                }
            }
        }
        // A factor that no pass takes away.
        let product = of("exp(0 * v / 1 mV)", Way::Plain);
        let [a, b] = [&product, &reference].map(|r| r.series[0].values.get(10, 0));
        assert!((a - b).abs() < 1e-9, "{method}: {a} and {b}");
    }
}

/// What differs from cell to cell is what cells of their own kinds have.
#[test]
fn values_of_cells_are_those_of_all_their_compartments() {
    let cell = "cell C {
    section soma { length = 20 um; diam = 20 um; compartments = 1 }
    section dend { from soma(1); length = 200 um; diam = 2 um; compartments = 5 }
    region all { ra = 100 ohm*cm; cm = 1 uF/cm2; v_init = -65 mV }
    region soma { insert Leak }
    region dend { insert Leak(gbar = 0.05 mS/cm2 * exp(-distance / 100 um)) }
}\n";
    let tail = "input step: 0.1 nA -> c.soma(0.5)\n}
run { duration = 5 ms; dt = 0.025 ms; method = cnexp\n record c.{soma(0.5), dend(0.9)}.v\n}";
    let of_all = |settings: &str| {
        let text = format!("{PASSIVE}{cell}network main {{ population c: C[4]\n {settings}\n {tail}");
        ran(&text, Way::Optimized)
    };
    let together = of_all(
        "param c.soma.Leak.gbar = 0.1 mS/cm2 + 0.1 mS/cm2 * index\n param c[1..3].dend.Leak.gbar = 0.2 mS/cm2
         param c[3].all.cm = 2 uF/cm2\n param c[2].all.ra = 300 ohm*cm\n init c[0..2].v = -70 mV",
    );
    for alone in 0..4 {
        let mut settings =
            vec![format!("param c.soma.Leak.gbar = {} mS/cm2", [0.1, 0.2, 0.30000000000000004, 0.4][alone])];
        if (1..3).contains(&alone) {
            settings.push("param c.dend.Leak.gbar = 0.2 mS/cm2".into());
        }
        if alone == 3 {
            settings.push("param c.all.cm = 2 uF/cm2".into());
        }
        if alone == 2 {
            settings.push("param c.all.ra = 300 ohm*cm".into());
        }
        if alone < 2 {
            settings.push("init c.v = -70 mV".into());
        }
        let expected = of_all(&settings.join("\n"));
        for (a, b) in together.series.iter().zip(&expected.series) {
            for row in 0..a.t.len() {
                let (a, b) = (a.values.get(row, alone), b.values.get(row, 0));
                assert!((a - b).abs() < 1e-11, "cell {alone}, sample {row}: {a} and {b}");
            }
        }
    }
}

/// In a cell of one compartment a place is the cell: synapses that remember do the same there, with what the target's spikes change.
#[test]
fn synapses_that_remember_do_on_branches_what_they_do_on_points() {
    let branched = "cell C {
    section soma { length = 20 um; diam = 20 um; compartments = 1 }
    region all { ra = 100 ohm*cm; cm = 1 uF/cm2; v_init = -65 mV; insert Na, K, Leak }
    spike when soma(0.5).v crosses -10 mV
}\n";
    let point = format!(
        "cell C {{ compartment soma {{ area = {:.13} um2; cm = 1 uF/cm2; v_init = -65 mV; insert Na, K, Leak }}
    spike when soma.v crosses -10 mV\n}}\n",
        400.0 * PI
    );
    let text = |cell: &str, place: &str| {
        format!(
            "use std.channels.hh.{{K, Leak, Na}}\n{cell}
synapse S {{
    param w_max = 20 nS
    state g: nS = 0 nS
    state left = 1
    state x = 0
    state y = 0
    g' = -g / 5 ms
    left' = (1 - left) / 50 ms
    x' = -x / 20 ms
    y' = -y / 20 ms
    on event(weight: nS) {{
        g += weight * left; left -= 0.3 * left; x += 1
        weight = clamp(weight - 0.0105 * w_max * y * (if v > -60 mV then 1 else 0.5), 0 nS, w_max)
    }}
    on post(weight: nS) {{ y += 1; weight = clamp(weight + 0.01 * w_max * x * (if v > -50 mV then 1 else 0.5), 0 nS, w_max) }}
    current i = g * v
}}
network main {{
    population c: C[20]
    connect c -> c.{place} via S {{ rule = all_to_all; weight = 0.6 nS; delay = 1.5 ms }}
    input step: pulse(delay = 1 ms + 0.1 ms * index, duration = 30 ms, amplitude = 0.1 nA + 0.01 nA * index) -> c.{place}
}}
run {{
    duration = 40 ms; dt = 0.025 ms; method = cnexp; celsius = 6.3 degC
    record c.{place}.v every 1 ms
    record c.c.{place}.S.weight every 5 ms
    record spikes of c
}}"
        )
    };
    let [here, there] = [text(branched, "soma(0.5)"), text(&point, "soma")].map(|text| checked(&text));
    let found = run(&here, &CompileOptions::default(), Way::Optimized);
    let expected = run(&there, &CompileOptions::default(), Way::Optimized);
    assert!(expected.spikes[0].t.len() > 40);
    assert_eq!((&found.spikes[0].t, &found.spikes[0].i), (&expected.spikes[0].t, &expected.spikes[0].i));
    assert_eq!(found.series.len(), 2);
    for (a, b) in found.series.iter().zip(&expected.series) {
        let last = a.t.len() - 1;
        let edges = a.cells.len();
        let changed = (0..edges).any(|at| (b.values.get(last, at) - b.values.get(0, at)).abs() > 0.1);
        assert!(changed && edges == b.cells.len(), "{}", a.name);
        for (row, at) in (0..=last).flat_map(|row| (0..edges).map(move |at| (row, at))) {
            let (a, b) = (a.values.get(row, at), b.values.get(row, at));
            // Spikes amplify what is rounded.
            assert!((a - b).abs() < 1e-8, "sample {row} of {at}: {a} and {b}");
        }
    }
    #[cfg(feature = "xla")]
    if crate::pjrt::cpu().is_some() {
        crate::events::close(&found, &run(&here, &CompileOptions::default(), Way::Xla), 1e-8, "XLA");
    }
    for threads in [1, 2, 3] {
        same_bits(&found, &native_run(&here, Precision::F64, threads));
    }
}

/// Each edge leads to one compartment, in proportion to its length; the sum over all is what one place would get.
#[test]
fn synapses_are_spread_over_sections_by_length() {
    let text = |place: &str, records: &str| {
        format!(
            "cell Source {{ state v: mV = 0 mV\n v' = 1 mV / 1 ms\n spike when v crosses 0.35 mV\n}}
{PASSIVE}
cell C {{
    section soma {{ length = 20 um; diam = 20 um; compartments = 1 }}
    section dend {{ from soma(1); length = 200 um; diam = 2 um; compartments = 4 }}
    region all {{ ra = 100 ohm*cm; cm = 1 uF/cm2; v_init = -65 mV; insert Leak }}
}}
synapse S {{
    state g: nS = 0 nS
    state n = 0
    g' = -g / 1000 s
    n' = 0 / 1 ms
    on event(weight: nS) {{ g += weight; n = n + 1 }}
    current i = 0 * g * v
}}
network main {{
    population source: Source[100]
    population c: C[3]
    connect source -> c.{place} via S {{ rule = all_to_all; weight = 1 nS; delay = 0.5 ms }}
}}
run {{ duration = 2 ms; dt = 0.1 ms; method = cnexp\n record {records}\n record source.c.{place}.S.n }}"
        )
    };
    let places = ["soma(0.5)", "dend(0.125)", "dend(0.375)", "dend(0.625)", "dend(0.875)"];
    let records: Vec<String> = places.iter().map(|place| format!("{place}.S.g")).collect();
    let spread = ran(&text("all", &format!("c.{{{}}}", records.join(", "))), Way::Optimized);
    for cell in 0..3 {
        let got: Vec<f64> = records
            .iter()
            .map(|name| {
                let s = spread.series_named(&format!("c.{name}")).unwrap();
                s.values.get(s.t.len() - 1, cell)
            })
            .collect();
        assert!((got.iter().sum::<f64>() - 100.0).abs() < 1e-3, "{got:?}");
        // 20 of 220 um, and four times 50; five standard deviations.
        for (at, &count) in got.iter().enumerate() {
            let p: f64 = if at == 0 { 20.0 / 220.0 } else { 50.0 / 220.0 };
            let far = 5.0 * (100.0 * p * (1.0 - p)).sqrt();
            assert!((count - 100.0 * p).abs() < far, "cell {cell}: {got:?}");
        }
    }
    let edges = spread.series_named("source.c.all.S.n").unwrap();
    assert_eq!(edges.cells.len(), 300);
    let once = |at: usize| edges.values.get(edges.t.len() - 1, at);
    assert!((0..300).all(|at| once(at) == 1.0), "an event comes along every edge");
    same_bits(
        &spread,
        &native_run(&checked(&text("all", &format!("c.{{{}}}", records.join(", ")))), Precision::F64, 2),
    );
}

#[test]
fn a_long_cable_of_one_cell_is_the_same_natively() {
    let text = rallpack(1000, 0.05, 5.0);
    let checked = checked(&text);
    let expected = run(&checked, &CompileOptions::default(), Way::Optimized);
    same_bits(&expected, &native_run(&checked, Precision::F64, 2));
}

/// A body with twelve neurites, one of which has a fork of three.
#[cfg(feature = "xla")]
const STAR: &str = "
use std.channels.hh.{K, Leak, Na}
cell Star {
    section soma { length = 20 um; diam = 20 um; compartments = 1 }
NEURITES
    region all { ra = 100 ohm*cm; cm = 1 uF/cm2; v_init = -65 mV; insert Na, K, Leak(gbar = 0.3 mS/cm2, erev = -54.4 mV) }
    spike when soma(0.5).v crosses -10 mV
}
network main {
    population star: Star[5]
    input step: pulse(delay = 1 ms, duration = 9 ms, amplitude = 1 nA) -> star[1..4].n0(0.9)
}
run {
    duration = 10 ms; dt = 0.025 ms; method = cnexp; celsius = 6.3 degC
    record star.{soma(0.5), n0(0.9), n11(0.5), tip2(1)}.v every 0.1 ms
    record spikes of star
}";

/// As close as sums in another order are; spikes in the same steps.
#[cfg(feature = "xla")]
#[test]
fn xla_cables_have_the_numbers_of_the_interpreter() {
    if crate::pjrt::cpu().is_none() {
        return;
    }
    let neurite = |n: usize| {
        format!(
            "    section n{n} {{ from soma({}); length = {} um; diam = 1.5 um; compartments = {} }}\n",
            n % 2,
            60 + 20 * n,
            1 + n % 4
        )
    };
    let tip =
        |n: usize| format!("    section tip{n} {{ from n7(1); length = 80 um; diam = 1 um; compartments = 3 }}\n");
    let neurites: String = (0..12).map(neurite).chain((0..3).map(tip)).collect();
    let one = rallpack(1, 0.05, 5.0).replace("{a(0), a(1)}", "a(0.5)");
    for text in [
        MIXED,
        &with_synapses(),
        &with_junctions(),
        &STAR.replace("NEURITES\n", &neurites),
        &rallpack(300, 0.05, 5.0),
        &one,
    ] {
        let checked = checked(text);
        let expected = run(&checked, &CompileOptions::default(), Way::Optimized);
        let found = run(&checked, &CompileOptions::default(), Way::Xla);
        assert_eq!(expected.series.len(), found.series.len());
        for (a, b) in expected.series.iter().zip(&found.series) {
            let values = |s: &neuroc::results::Series| -> Vec<f64> {
                let rows = 0..s.t.len();
                rows.flat_map(|row| (0..s.cells.len()).map(move |cell| s.values.get(row, cell))).collect()
            };
            let (a, b, name) = (values(a), values(b), &a.name);
            let largest = a.iter().fold(0.0f64, |most, x| most.max(x.abs()));
            assert!(apart(&a, &b) <= 1e-9 * largest.max(1e-3), "{name}: {:e}", apart(&a, &b));
        }
        for (a, b) in expected.spikes.iter().zip(&found.spikes) {
            assert_eq!((&a.t, &a.i), (&b.t, &b.i), "{}", a.population);
        }
    }
}

#[test]
fn spikes_of_a_place_are_sent_to_others() {
    let text = BRANCHED
        .replace(
            "network main {",
            "cell P { state v: mV = -65 mV\n v' = (-65 mV - v) / 10 ms }
            synapse Kick { on event(weight: mV) { v += weight } }
            network main {\n population p: P[2]
            connect pyr -> p via Kick { rule = one_to_one; weight = 1 mV; delay = 1 ms }",
        )
        .replace("record spikes of pyr", "record spikes of pyr\n record p.v");
    let checked = checked(&text);
    let result = run(&checked, &CompileOptions::default(), Way::Optimized);
    for threads in [1, 2] {
        same_bits(&result, &native_run(&checked, Precision::F64, threads));
    }
    let sent = result.spikes[0].t[0];
    let v = result.series_named("p.v").unwrap();
    let first = (0..v.t.len()).find(|&i| v.values.get(i, 1) > -65.0).unwrap();
    assert!((v.t[first] - sent - 1.0).abs() < 0.026, "{} after {sent}", v.t[first]);
    assert!((0..v.t.len()).all(|i| v.values.get(i, 0) == -65.0));
}

#[test]
fn a_value_that_cannot_be_is_told_with_its_place() {
    let text = rallpack(4, 0.5, 5.0).replace("1 uF/cm2", "1 uF/cm2 * (3 - distance / 100 um)");
    let said = driver::check_whole(driver::check_text("c.neuro", Path::new(""), text, &Sources));
    let messages: Vec<&str> = said.diagnostics.iter().map(|d| d.message.as_str()).collect();
    assert_eq!(messages, ["`c.all.cm` of a(0.125) of cell 0 is -0.75 uF/cm2"]);
}

// ---------------------------------------------------------------------------------------------- shapes from files

/// A file that is not there.
struct Shape(String);

impl Loader for Shape {
    fn read(&self, _path: &Path) -> std::io::Result<Vec<u8>> {
        Ok(self.0.clone().into_bytes())
    }
}

const RECONSTRUCTED: &str = "
cell C {
    morphology = swc(\"cell.swc\")
    param c = 1 uF/cm2
    region all { ra = 150 ohm*cm; cm = c; v_init = -65 mV; insert Leak }
}
network main { population p: C\n input step: 0.1 nA -> p.soma(0.5) }
run { duration = 1 ms; dt = 0.1 ms; method = cnexp\n record p.soma(0.5).v }";

/// The tree of a shape.
fn tree(swc: &str, text: &str) -> std::sync::Arc<Tree> {
    let text = format!("{PASSIVE}{text}");
    let checked = driver::check_text("c.neuro", Path::new(""), text, &Shape(swc.into()));
    let said = neuroc::diag::render_human(&checked.sources, &checked.diagnostics, false);
    let model = checked.model.unwrap_or_else(|| panic!("{said}"));
    model.cells[0].morphology.as_ref().unwrap().tree.clone()
}

#[test]
fn compartments_of_files_are_those_of_neuron() {
    let text = std::fs::read_to_string(root().join("tests/reference/swc_neuron.json")).unwrap();
    let reference: Value = serde_json::from_str(&text).unwrap();
    let mut compared = 0;
    for (shape, file) in reference["shapes"].as_object().unwrap() {
        let text = RECONSTRUCTED.replace("p.soma(", if shape.ends_with("branches") { "p.soma[0](" } else { "p.soma(" });
        let tree = tree(file["scrambled"].as_str().unwrap(), &text);
        let somas = tree.sections.iter().filter(|s| s.name.starts_with("soma")).count();
        let sections = file["sections"].as_array().unwrap();
        let here = |name: &str| {
            somas == 1 && sections.iter().filter(|s| s["name"].as_str().unwrap().starts_with("soma")).count() == 1
                || !name.starts_with("soma")
        };
        for section in sections.iter().filter(|s| here(s["name"].as_str().unwrap())) {
            let name = section["name"].as_str().unwrap().replace("dend_", "type");
            let name = if name == "soma[0]" { "soma".into() } else { name };
            let piece = tree.sections.iter().find(|s| s.name == name).unwrap_or_else(|| panic!("{shape}: no {name}"));
            assert_eq!(piece.count as u64, section["cut"].as_u64().unwrap(), "{shape}, {name}");
            let (areas, to_parent) = (numbers(&section["areas_um2"]), numbers(&section["to_parent_Mohm"]));
            for i in 0..piece.count {
                let e = piece.first + i;
                let area = tree.area[e] * 1e8;
                assert!(
                    (area - areas[i]).abs() < 1e-6 * areas[i],
                    "{shape}, {name} {i}: {area} is not {} um2",
                    areas[i]
                );
                // NEURON's resistance of the first is that to the border.
                let way = tree.near[e] + if i == 0 { 0.0 } else { tree.far[e] };
                let resistance = way * 150e-6;
                let expected = to_parent[i];
                assert!(
                    (resistance - expected).abs() < 1e-6 * expected,
                    "{shape}, {name} {i}: {resistance} is not {expected} Mohm"
                );
                compared += 1;
            }
        }
    }
    assert!(compared > 200, "{compared}");
}

/// A ring at the end of a section belongs to its last compartment, however many there are.
#[test]
fn rings_at_ends_are_in_every_cut() {
    let swc = "1 1 0 0 0 10 -1\n2 3 10 0 0 1 1\n3 3 73.3 0 0 1 2\n4 3 110.7 0 0 0.7 3\n5 3 110.7 0 0 2.1 4\n";
    let areas = (1..60).map(|n| {
        let cut = "param c = 1 uF/cm2\n    compartments { count = N }".replace('N', &n.to_string());
        let tree = tree(swc, &RECONSTRUCTED.replace("param c = 1 uF/cm2", &cut));
        let section = tree.sections.iter().find(|s| s.name.starts_with("dend")).expect("a dendrite");
        tree.area[section.first..section.first + section.count].iter().sum::<f64>() * 1e8
    });
    let areas: Vec<f64> = areas.collect();
    assert!(areas.iter().all(|area| (area - areas[0]).abs() < 1e-9), "{areas:?}");
}

#[test]
fn a_cell_of_a_file_spikes_as_in_neuron() {
    let text = std::fs::read_to_string(root().join("tests/reference/swc_neuron.json")).unwrap();
    let reference: Value = serde_json::from_str(&text).unwrap();
    let text = "
        use std.channels.hh.{K, Leak, Na}
        cell C {
            morphology = swc(\"cell.swc\")
            region all { ra = 150 ohm*cm; cm = 1 uF/cm2; v_init = -65 mV }
            region soma, axon { insert Na, K, Leak(gbar = 0.3 mS/cm2, erev = -54.4 mV) }
            region dend, apic, type5 { insert Leak(gbar = 0.1 mS/cm2, erev = -65 mV) }
            spike when soma(0.5).v crosses -10 mV
        }
        network main {
            population p: C
            input step: pulse(delay = 1 ms, duration = 10 ms, amplitude = 0.5 nA) -> p.dend[0](0.5)
        }
        run {
            duration = 15 ms; dt = 0.025 ms; method = cnexp; celsius = 6.3 degC
            record p.{soma(0.5), axon[1](0.5), dend[0](0.5), apic[1](0.5), type5[0](0.5)}.v every 0.1 ms
            record spikes of p
        }";
    let swc = reference["shapes"]["types_change"]["scrambled"].as_str().unwrap();
    let checked = driver::check_text("c.neuro", Path::new(""), text, &Shape(swc.into()));
    let result = run(&checked, &CompileOptions::default(), Way::Optimized);
    let expected = &reference["voltages"];
    for (place, row) in expected["places"].as_array().unwrap().iter().zip(expected["mV"].as_array().unwrap()) {
        let place = place.as_str().unwrap().replace("soma[0]", "soma").replace("dend_", "type");
        // NEURON keeps points in single precision.
        let error = apart(&samples(&result, &format!("p.{place}.v")), &numbers(row));
        assert!(error < 1e-5, "{place}: {error:e} mV");
    }
    let spikes = numbers(&expected["spikes_ms"]);
    assert!(!spikes.is_empty() && apart(&result.spikes[0].t, &spikes) < 1e-6);
}

#[test]
fn a_spike_begins_in_the_axon_and_runs_back() {
    let checked = driver::check_file(&root().join("examples/pyramidal.neuro"));
    assert!(checked.diagnostics.is_empty(), "{:?}", checked.diagnostics);
    let result = run(&checked, &CompileOptions::default(), Way::Optimized);
    // The time and the height of the first spike.
    let peak = |name: &str| {
        let v = samples(&result, name);
        let until = v.len() * 3 / 4;
        (0..until).fold((0, f64::MIN), |best, i| if v[i] > best.1 { (i, v[i]) } else { best })
    };
    let places = ["axon[0](0.5)", "soma(0.5)", "apic[0](0.5)", "apic[12](1)"].map(|p| peak(&format!("pyr.{p}.v")));
    assert!(places.windows(2).all(|w| w[0].0 < w[1].0 && w[0].1 > w[1].1), "{places:?}");
    assert!(places[3].1 > -20.0 && result.spikes[0].t.len() == 2);
}

const STICK: &str = "1 1 0 0 0 10 -1\n2 3 10 0 0 1 1\n3 3 210 0 0 1 2\n4 3 310 0 0 0.5 3\n5 3 210 100 0 0.5 3\n6 4 -10 0 0 2 1\n7 4 -410 0 0 2 6\n";

#[test]
fn regions_say_how_their_sections_are_cut() {
    let counts = |text: &str| tree(STICK, text).sections.iter().map(|s| s.count).collect::<Vec<_>>();
    assert_eq!(counts(RECONSTRUCTED), [1, 7, 5, 5, 9]);
    let with = |lines: &str| RECONSTRUCTED.replace("    region all", &format!("    {lines}\n    region all"));
    assert_eq!(counts(&with("compartments { d_lambda = 0.05 }")), [1, 13, 7, 7, 19]);
    assert_eq!(counts(&with("compartments { count = 2 }")), [2, 2, 2, 2, 2]);
    let text = with(
        "compartments { max_length = 30 um }\n region dend { count = 4 }\n region dend[1], apic { d_lambda = 0.1 }",
    );
    assert_eq!(counts(&text), [1, 4, 5, 4, 9]);
    // Four times the capacitance halves the length constants.
    assert_eq!(counts(&with("").replace("cm = c", "cm = 4 * c")), [1, 13, 7, 7, 19]);
    let far = "cm = if distance > 150 um then 4 * c else c";
    assert_eq!(counts(&with("").replace("cm = c", far)), [1, 7, 7, 7, 19]);
    let far = "cm = if distance > 210 um then 4 * c else c";
    assert_eq!(counts(&with("").replace("cm = c", far)), [1, 7, 7, 7, 9]);
    // A section of one's own at a shape from a file.
    assert_eq!(
        counts(&with("section stub { from dend[2](1); length = 5 um; diam = 1 um; compartments = 2 }")),
        [1, 7, 5, 5, 9, 2]
    );
}

#[test]
fn the_order_of_the_lines_of_a_file_changes_nothing() {
    let text = std::fs::read_to_string(root().join("tests/reference/swc_neuron.json")).unwrap();
    let reference: Value = serde_json::from_str(&text).unwrap();
    for (shape, file) in reference["shapes"].as_object().unwrap() {
        let text = RECONSTRUCTED.replace("p.soma(", if shape.ends_with("branches") { "p.soma[0](" } else { "p.soma(" });
        let [a, b] = ["swc", "scrambled"].map(|key| tree(file[key].as_str().unwrap(), &text));
        assert_eq!(a, b, "{shape}");
    }
}

#[test]
fn a_cell_of_a_file_is_one_written_by_hand() {
    let from_file = RECONSTRUCTED
        .replace("record p.soma(0.5).v", "record p.{soma(0.5), dend[0](0.5), dend[1](1), apic[0](0.9)}.{v, distance}");
    let by_hand = from_file
        .replace(
            "morphology = swc(\"cell.swc\")",
            "section soma { length = 20 um; diam = 20 um; compartments = 1 }
            section trunk { from soma(0.5); length = 200 um; diam = 2 um; compartments = 7 }
            section left { from trunk(1); length = 100 um; diam = 2 um .. 1 um; compartments = 5 }
            section right { from trunk(1); length = 100 um; diam = 2 um .. 1 um; compartments = 5 }
            section apical { from soma(0.5); length = 400 um; diam = 4 um; compartments = 9 }",
        )
        .replace("dend[0](", "trunk(")
        .replace("dend[1](", "left(")
        .replace("apic[0](", "apical(");
    let checked = driver::check_text("c.neuro", Path::new(""), format!("{PASSIVE}{from_file}"), &Shape(STICK.into()));
    let a = run(&checked, &CompileOptions::default(), Way::Optimized);
    let b = ran(&format!("{PASSIVE}{by_hand}"), Way::Optimized);
    assert_eq!(a.series.len(), 8);
    for (a, b) in a.series.iter().zip(&b.series) {
        let apart = (0..a.t.len()).map(|i| (a.values.get(i, 0) - b.values.get(i, 0)).abs()).fold(0.0, f64::max);
        assert!(apart < 1e-10, "{}: {apart:e}", a.name);
    }
}

// ---------------------------------------------------------------------------------------------- the membrane at rest

#[test]
fn a_cable_resists_as_in_closed_form() {
    let checked = checked(&rallpack(2001, 0.1, 1.0));
    let (flat, _) = driver::flatten(checked.model.as_ref().unwrap(), &CompileOptions::default()).unwrap();
    let cable = &flat.cables[0];
    let passive = neuroc::ode::Passive::of(&flat, cable).unwrap();
    let tree = flat.elements(cable.population).unwrap().0;
    // One length constant, sealed: r coth(1), with r of a cable without end (Rall 1959), in kohm.
    let (diam, rm, ra) = (1e-4, 40.0, 0.1);
    let endless: f64 = 2.0 / PI * f64::sqrt(rm * ra) * f64::powf(diam, -1.5);
    let expected = endless / 1f64.tanh();
    // The middle of the first compartment is a four-thousandth inside.
    let inside = ra * 0.1 / 4002.0 / (PI * diam * diam / 4.0);
    let got = passive.input_resistance(tree, 0).unwrap() + inside;
    assert!((got - expected).abs() < 1e-5 * expected, "{got} is not {expected} kohm");
    // In the middle two halves lead away.
    let (got, expected) = (passive.input_resistance(tree, 1000).unwrap(), 0.5 * endless / 0.5f64.tanh());
    assert!((got - expected).abs() < 1e-5 * expected, "{got} is not {expected} kohm");
    let lengths: f64 = passive.electrotonic(tree).unwrap().iter().sum();
    assert!((lengths - 1.0).abs() < 1e-12, "{lengths}");
    assert!(passive.conductance.iter().all(|g| (g - 0.025).abs() < 1e-15));
}

#[test]
fn gates_are_held_where_they_begin() {
    let file = root().join("examples/ball_and_stick.neuro");
    let checked = driver::check_file(&file);
    let (flat, _) = driver::flatten(checked.model.as_ref().unwrap(), &CompileOptions::default()).unwrap();
    let passive = neuroc::ode::Passive::of(&flat, &flat.cables[0]).unwrap();
    // Hodgkin and Huxley's gates at -65 mV.
    let gate = |alpha: f64, beta: f64| alpha / (alpha + beta);
    let rate = |x: f64| x / (1.0 - (-x).exp());
    let (m, h) = (gate(rate(-2.5), 4.0), gate(0.07, 1.0 / (1.0 + 3f64.exp())));
    let n = gate(0.1 * rate(-1.0), 0.125);
    let expected = 120.0 * m.powi(3) * h + 36.0 * n.powi(4) + 0.3;
    assert!((passive.conductance[0] - expected).abs() < 1e-12, "{} is not {expected}", passive.conductance[0]);
    assert!(passive.conductance[1..].iter().all(|g| (g - 0.05).abs() < 1e-15));
}

/// In single precision weak leaks count beside strong links: cut finely, cells are what they are in double precision.
#[test]
fn fine_compartments_do_not_spoil_single_precision() {
    let text = |method: &str| {
        format!(
            "{PASSIVE}cell C {{
                section soma {{ length = 30 um; diam = 30 um; compartments = 31 }}
                section dend {{ from soma(1); length = 300 um; diam = 4 um; compartments = 61 }}
                region all {{ ra = 70 ohm*cm; cm = 1 uF/cm2; v_init = -65 mV; insert Leak }} }}
            network main {{ population c: C
                input i: pulse(delay = 1 ms, duration = 90 ms, amplitude = 0.2 nA) -> c.dend(0.9) }}
            run {{ duration = 100 ms; dt = 0.025 ms; method = {method}; record c.{{soma(0.5), dend(0.9)}}.v every 1 ms }}"
        )
    };
    for method in ["cnexp", "crank_nicolson"] {
        let double = ran(&text(method), Way::Plain);
        let largest = samples(&double, "c.dend(0.9).v").into_iter().fold(f64::NEG_INFINITY, f64::max);
        assert!(largest > -40.0, "{largest} mV");
        let single = [
            Way::Single,
            #[cfg(feature = "xla")]
            Way::XlaSingle,
        ];
        for way in single {
            let single = ran(&text(method), way);
            for place in ["c.soma(0.5).v", "c.dend(0.9).v"] {
                let error = apart(&samples(&single, place), &samples(&double, place));
                println!("{method}, {way:?}, {place}: {error:.1e} mV");
                assert!(error < 2e-3, "{method}, {way:?}, {place}: {error:e} mV");
            }
        }
    }
}
