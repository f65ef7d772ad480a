//! Tests of: extracellular potentials. Against NEURON and LFPykit, and what a line and charge demand; cells in space; engines.

use crate::cables::{BRANCHED, apart, checked, numbers, ran, samples};
use crate::events::{native_run, same};
use crate::models::{Way, root, run};
use neuroc::codegen::plan::Precision;
use neuroc::driver::{self, CompileOptions, Experiment};
use neuroc::hir::{Loader, Method};
use neuroc::results::RunResult;
use neuroc::simulate::{Stepping, Unwatched};
use neuroc::step::Source;
use serde_json::Value;
use std::f64::consts::PI;
use std::path::Path;

fn reference() -> Value {
    let text = std::fs::read_to_string(root().join("tests/reference/lfp_neuron.json")).unwrap();
    serde_json::from_str(&text).unwrap()
}

/// The contacts of the reference as members of a probe.
fn contacts(reference: &Value) -> String {
    let at = |contact: &Value| {
        let [x, y, z] = numbers(contact)[..] else { panic!("a contact has three coordinates") };
        format!("at ({x} um, {y} um, {z} um); ")
    };
    reference["contacts_um"].as_array().unwrap().iter().map(at).collect()
}

/// What each contact of a probe hears, from the second sample on.
fn heard(result: &RunResult, name: &str) -> Vec<Vec<f64>> {
    let s = result.series_named(name).unwrap_or_else(|| panic!("`{name}` is not recorded"));
    assert_eq!((s.unit.as_str(), s.element()), ("uV", "contact"));
    (0..s.cells.len()).map(|contact| (1..s.t.len()).map(|row| s.values.get(row, contact)).collect()).collect()
}

/// Compares potentials (uV) with those of the reference (mV): the largest difference by the largest value, for each contact.
fn compare(result: &RunResult, expected: &Value, within: f64, what: &str) {
    let (here, there) = (heard(result, "all.potential"), expected.as_array().unwrap());
    assert_eq!(here.len(), there.len());
    for (contact, (here, there)) in here.iter().zip(there).enumerate() {
        let there: Vec<f64> = numbers(there).iter().map(|x| 1e3 * x).collect();
        let largest = there.iter().fold(0.0, |most: f64, x| most.max(x.abs()));
        let error = apart(here, &there) / largest;
        assert!(largest > 0.1 && error < within, "{what}, contact {contact}: {error:e} of {largest} uV");
    }
}

/// The branched cell of the reference in space.
fn branched(contacts: &str, source: &str) -> String {
    let directions = [
        ("soma", "0, 1, 0"),
        ("trunk", "0, 1, 0"),
        ("left", "-1, 1, 0.5"),
        ("right", "1, 2, 0"),
        ("basal", "0, -1, 0.5"),
        ("spine", "1, -1, 1"),
    ];
    let mut text = format!("use std.synapses.{{ExpCond}}\n{BRANCHED}");
    for (name, direction) in directions {
        let head = format!("section {name} {{");
        assert!(text.contains(&head));
        text = text.replace(&head, &format!("{head} toward ({direction});"));
    }
    let record = text.split("    record").nth(1).unwrap().to_string();
    text.replace("Branched[2]", "Branched")
        .replace("pyr[1]", "pyr")
        .replace(&record, " all.potential every 0.1 ms\n")
        .replace(
            "network main {",
            &format!(
                "network main {{
            drive pyr.right(0.9375) via ExpCond(tau = 2 ms, erev = 0 mV) from times(4 ms) {{ weight = 5 nS }}
            clamp hold: -60 mV via 50 Mohm -> pyr.left(0.9)
            probe all of pyr {{ {contacts} sigma = 0.3 S/m; source = {source} }}"
            ),
        )
}

#[test]
fn potentials_of_a_branched_cell_are_those_of_neuron_and_lfpykit() {
    let reference = reference();
    for (source, ways) in [
        ("line", &[Way::Plain, Way::Optimized, Way::Reread, Way::Native][..]),
        ("point", &[Way::Native]),
        ("root_as_point", &[Way::Native]),
    ] {
        let checked = checked(&branched(&contacts(&reference), source));
        for &way in ways {
            let result = run(&checked, &CompileOptions::default(), way);
            compare(&result, &reference["branched"]["mV"][source], 1e-9, &format!("{source}, {way:?}"));
        }
        let second = CompileOptions { method: Some(Method::CrankNicolson), ..CompileOptions::default() };
        let result = run(&checked, &second, Way::Native);
        compare(&result, &reference["branched_second_order"]["mV"][source], 1e-9, source);
    }
}

struct Shape(String);

impl Loader for Shape {
    fn read(&self, _path: &Path) -> std::io::Result<Vec<u8>> {
        Ok(self.0.clone().into_bytes())
    }
}

#[test]
fn potentials_of_a_cell_of_a_file_are_those_of_neuron_and_lfpykit() {
    let reference = reference();
    let text = format!(
        "use std.channels.hh.{{K, Leak, Na}}
        cell C {{
            morphology = swc(\"cell.swc\")
            region all {{ ra = 150 ohm*cm; cm = 1 uF/cm2; v_init = -65 mV }}
            region soma, axon {{ insert Na, K, Leak(gbar = 0.3 mS/cm2, erev = -54.4 mV) }}
            region dend, apic, type5 {{ insert Leak(gbar = 0.1 mS/cm2, erev = -65 mV) }}
        }}
        network main {{
            population p: C
            input step: pulse(delay = 1 ms, duration = 10 ms, amplitude = 0.5 nA) -> p.dend[0](0.5)
            probe all of p {{ {} source = root_as_point }}
        }}
        run {{
            duration = 15 ms; dt = 0.025 ms; method = cnexp; celsius = 6.3 degC
            record all.potential every 0.1 ms
        }}",
        contacts(&reference)
    );
    let file = &reference["file"];
    let checked = driver::check_text("c.neuro", Path::new(""), text, &Shape(file["swc"].as_str().unwrap().into()));
    assert!(checked.diagnostics.is_empty(), "{:?}", checked.diagnostics);
    let result = run(&checked, &CompileOptions::default(), Way::Native);
    // NEURON keeps points in single precision.
    compare(&result, &file["mV"], 2e-6, "a file");
}

/// Three compartments along y, with a current into the first.
const STICK: &str = "
channel Leak { param gbar = 0.1 mS/cm2; param erev = -65 mV }
cell Stick {
    section a { toward (0, 2, 0); length = 300 um; diam = 2 um; compartments = 3 }
    region all { ra = 100 ohm*cm; cm = 1 uF/cm2; v_init = -65 mV; insert Leak }
}
network main {
    population c: Stick
    input step: pulse(delay = 1 ms, duration = 5 ms, amplitude = 0.1 nA) -> c.a(0)
    probe p of c { from (40 um, -150 um, 0 um) to (40 um, 150 um, 0 um) in 4 }
}
run { duration = 10 ms; dt = 0.1 ms; method = cnexp; record c.all.v; record p.potential }";

#[test]
fn a_straight_cable_makes_what_the_formula_says() {
    let result = ran(STICK, Way::Optimized);
    let v = result.series_named("c.all.v").unwrap();
    let potentials = heard(&result, "p.potential");
    // uA for 1 mV: a cylinder of 100 um with a radius of 1 um, at 0.1 kohm cm.
    let axial = PI * 1e-8 / (0.1 * 1e-2);
    for row in 1..v.t.len() {
        let [a, b, c] = [0, 1, 2].map(|column| v.values.get(row, column));
        // The step that ends at this time: the pulse is on in those that begin from 1 ms to 5.9 ms.
        let injected = if row > 10 && row <= 60 { 1e-4 } else { 0.0 };
        let currents = [axial * (b - a) + injected, axial * (a - 2.0 * b + c), axial * (b - c)];
        for (contact, heard) in potentials.iter().enumerate() {
            let y = -150.0 + 100.0 * contact as f64;
            // The antiderivative of 1 / sqrt(x^2 + 40^2), in um.
            let line = |start: f64| ((start + 100.0 - y) / 40.0).asinh() - ((start - y) / 40.0).asinh();
            let sum: f64 = currents.iter().zip([-150.0, -50.0, 50.0]).map(|(i, start)| i * line(start) / 0.01).sum();
            let expected = 1e3 * sum / (4.0 * PI * 3.0);
            let error = (heard[row - 1] - expected).abs();
            assert!(error < 1e-9, "contact {contact}, sample {row}: {} uV, not {expected}", heard[row - 1]);
        }
    }
}

/// The currents through the membranes of a model (uA), step by step, for each of the cells.
fn currents(text: &str, method: Method, steps: u64) -> Vec<Vec<f64>> {
    let options = CompileOptions { method: Some(method), ..CompileOptions::default() };
    let compiled = driver::compile(&checked(text), &options, &mut |_, _, _| {}).unwrap_or_else(|d| panic!("{d:?}"));
    let experiment = Experiment::new(compiled).unwrap_or_else(|d| panic!("{d:?}"));
    let field = experiment.program().bound(Source::Transmembrane(0)).expect("what is heard");
    let compartments = experiment.extent.size(experiment.program().field(field).over.unwrap());
    let mut engine = experiment.interpreter().unwrap_or_else(|e| panic!("{e}")).engine;
    engine.init().unwrap();
    let step = |now| {
        engine.step(now, 1, &mut Vec::new()).unwrap();
        let mut out = Vec::new();
        engine.read(field, 0..compartments, &mut out).unwrap();
        out
    };
    (0..steps).map(step).collect()
}

#[test]
fn what_electrodes_inject_flows_out_through_the_membrane() {
    let text =
        branched("at (10 um, 0 um, 0 um);", "line").replace("clamp hold: -60 mV via 50 Mohm -> pyr.left(0.9)", "");
    for method in [Method::Cnexp, Method::CrankNicolson] {
        for (step, currents) in currents(&text, method, 800).iter().enumerate() {
            let injected = if (80..680).contains(&step) { 0.8e-3 } else { 0.0 };
            let (sum, all) = (currents.iter().sum::<f64>(), currents.iter().map(|i| i.abs()).sum::<f64>());
            assert!((sum - injected).abs() < 1e-14 * all.max(1.0), "{method:?}, step {step}: {sum:e} uA of {all:e}");
        }
    }
}

#[test]
fn what_flows_through_a_junction_is_no_membrane_current_of_either_cell() {
    let text = STICK
        .replace("population c: Stick", "population c: Stick[2] { spacing = 50 um }")
        .replace("-> c.a(0)", "-> c[0].a(0)\n junction_here")
        .replace("cell Stick", "junction Gap { param g = 5 nS; current i = g * dv }\ncell Stick")
        .replace("junction_here", "connect c.a(1) -- c.a(1) via Gap { rule = all_to_all() }");
    let of = currents(&text, Method::Cnexp, 40);
    let cells = |row: &Vec<f64>| [row[..3].iter().sum::<f64>(), row[3..].iter().sum::<f64>()];
    let [first, second] = cells(&of[35]);
    // Some of what is injected into the first flows out of the second.
    assert!(first < 0.99e-4 && second > 1e-6, "{first} {second}");
}

#[test]
fn potentials_of_cells_add_up_wherever_they_are() {
    let at = |population: &str, probe: &str| {
        let text = STICK
            .replace("population c: Stick", &format!("population c: Stick{population}"))
            .replace("from (40 um, -150 um, 0 um) to (40 um, 150 um, 0 um) in 4", probe);
        heard(&ran(&text, Way::Native), "p.potential").remove(0)
    };
    let alone = |x: f64, y: f64, z: f64| at("", &format!("at ({x} um, {y} um, {z} um)"));
    let sum = |of: &[Vec<f64>]| (0..of[0].len()).map(|i| of.iter().map(|x| x[i]).sum()).collect::<Vec<f64>>();
    // A grid of two by two begins at the origin.
    let grid = at("[2, 2] { spacing = 30 um }", "at (40 um, 10 um, 5 um)");
    let expected =
        sum(&[alone(40.0, 10.0, 5.0), alone(10.0, 10.0, 5.0), alone(40.0, -20.0, 5.0), alone(10.0, -20.0, 5.0)]);
    assert!(apart(&grid, &expected) < 1e-9);
    // Beside it, and away from it, each cell for itself.
    let moved = at("[2] { spacing = 30 um; x = 5 um; z = -10 um * index }", "at (40 um, 10 um, 5 um)");
    assert!(apart(&moved, &sum(&[alone(35.0, 10.0, 5.0), alone(5.0, 10.0, 15.0)])) < 1e-9);
    let placed = at("[2] { y = if index > 0 then 100 um else -20 um }", "at (40 um, 10 um, 5 um)");
    assert!(apart(&placed, &sum(&[alone(40.0, 30.0, 5.0), alone(40.0, -90.0, 5.0)])) < 1e-9);
    // Draws depend on the seed.
    let drawn = |seed: u32| {
        let text = STICK
            .replace("population c: Stick", "population c: Stick[5] { x ~ uniform(-20 um, 20 um) }")
            .replace("run {", &format!("run {{ seed = {seed};"));
        heard(&ran(&text, Way::Optimized), "p.potential").remove(0)
    };
    assert!(drawn(1) == drawn(1) && drawn(1) != drawn(2));
}

#[test]
fn cells_that_are_nowhere_are_not_heard() {
    let text = STICK.replace("population c: Stick", "population c: Stick[5]");
    let compiled = driver::compile(&checked(&text), &CompileOptions::default(), &mut |_, _, _| {}).unwrap();
    let errors = Experiment::new(compiled).expect_err("no place for five cells");
    let [error] = &errors[..] else { panic!("{errors:?}") };
    assert_eq!(error.message, "it is not known where the 5 cells of `c` are");
    assert!(error.help.iter().any(|help| help.contains("spacing = 50 um")), "{error:?}");
}

#[test]
fn a_probe_hears_several_populations_at_once() {
    let two = STICK
        .replace("population c: Stick", "population c: Stick\n population d: Stick { x = 80 um }")
        .replace("-> c.a(0)", "-> c.a(0)\n input other: pulse(delay = 3 ms, duration = 5 ms, amplitude = -0.05 nA) -> d.a(1)")
        .replace("probe p of c {", "probe q of c { at (40 um, 60 um, 0 um) }\n probe r of d { at (40 um, 60 um, 0 um) }\n probe p of {c, d} { at (40 um, 60 um, 0 um);")
        .replace("record p.potential", "record {p.potential, q.potential, r.potential}");
    for way in [Way::Optimized, Way::Native] {
        let result = ran(&two, way);
        let [p, q, r] = ["p", "q", "r"].map(|name| heard(&result, &format!("{name}.potential")).remove(0));
        let sum: Vec<f64> = q.iter().zip(&r).map(|(q, r)| q + r).collect();
        assert!(apart(&p, &sum) < 1e-12 && q != r);
    }
}

#[test]
fn every_engine_and_every_number_of_threads_hears_the_same_bits() {
    let text = branched("from (30 um, -100 um, 0 um) to (30 um, 300 um, 0 um) in 5;", "line")
        .replace(
            "population pyr: Branched",
            "population pyr: Branched[20] { x ~ normal(0 um, 50 um); z ~ uniform(-50 um, 50 um) }",
        )
        .replace("duration = 20 ms", "duration = 8 ms");
    let checked = checked(&text);
    let one = native_run(&checked, Precision::F64, 1);
    same(&one, &native_run(&checked, Precision::F64, 3), "three threads");
    same(&one, &run(&checked, &CompileOptions::default(), Way::Optimized), "the interpreter");
}

#[cfg(feature = "xla")]
#[test]
fn xla_hears_the_same() {
    let checked = checked(&branched("from (30 um, -100 um, 0 um) to (30 um, 300 um, 0 um) in 5;", "line"));
    let [a, b] =
        [Way::Optimized, Way::Xla].map(|way| heard(&run(&checked, &CompileOptions::default(), way), "all.potential"));
    a.iter().zip(&b).for_each(|(a, b)| assert!(apart(a, b) < 1e-6));
}

#[test]
fn nothing_is_computed_that_nobody_hears() {
    let text = STICK.replace("; record p.potential", "");
    let compiled = driver::compile(&checked(&text), &CompileOptions::default(), &mut |_, _, _| {}).unwrap();
    assert_eq!(compiled.plain.program().bound(Source::Transmembrane(0)), None);
    let with = ran(STICK, Way::Native);
    assert_eq!(samples(&ran(&text, Way::Native), "c.all.v"), samples(&with, "c.all.v"));
}

#[test]
fn results_know_where_contacts_are() {
    let result = ran(STICK, Way::Optimized);
    let s = result.series_named("p.potential").unwrap();
    assert_eq!((s.population.as_str(), s.column(1)), ("p", "(40, -50, 0)".to_string()));
    let places: Vec<_> = s.compartments.as_ref().unwrap().iter().map(|c| (c.at.unwrap(), c.distance)).collect();
    let at = |y: f64| ([40.0, y, 0.0], y + 150.0);
    assert_eq!(places, [at(-150.0), at(-50.0), at(50.0), at(150.0)]);
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("lfp");
    std::fs::create_dir_all(&folder).unwrap();
    let file = folder.join("stick.npz");
    result.write(&file).unwrap();
    let back = RunResult::read_npz(&file).unwrap();
    assert_eq!(back.series_named("p.potential"), Some(s));
    let file = folder.join("stick.csv");
    result.write(&file).unwrap();
    let table = std::fs::read_to_string(&file).unwrap();
    assert!(
        table
            .lines()
            .next()
            .unwrap()
            .ends_with("p[0].potential (uV),p[1].potential (uV),p[2].potential (uV),p[3].potential (uV)")
    );
}

#[test]
fn it_is_heard_between_two_steps_and_after_a_checkpoint() {
    let whole = heard(&ran(STICK, Way::Optimized), "p.potential");
    let compiled = driver::compile(&checked(STICK), &CompileOptions::default(), &mut |_, _, _| {}).unwrap();
    let experiment = Experiment::new(compiled).unwrap();
    let ready = experiment.interpreter().unwrap_or_else(|e| panic!("{e}"));
    let mut stepping = experiment.stepping(ready.engine, 7).unwrap_or_else(|e| panic!("{e:?}"));
    let potential = stepping.find("p.potential").unwrap();
    let after = |steps: u64, stepping: &mut Stepping| {
        stepping.step(steps, &mut Unwatched).unwrap();
        let mut out = Vec::new();
        stepping.read(potential, &mut out).unwrap();
        out
    };
    let first = after(20, &mut stepping);
    let saved = stepping.save().unwrap();
    let second = after(10, &mut stepping);
    stepping.restore(&saved).unwrap();
    let mut now = Vec::new();
    stepping.read(potential, &mut now).unwrap();
    assert_eq!((now, after(10, &mut stepping)), (first.clone(), second.clone()));
    for (contact, whole) in whole.iter().enumerate() {
        assert!((1e3 * first[contact] - whole[19]).abs() < 1e-9 && (1e3 * second[contact] - whole[29]).abs() < 1e-9);
    }
}
