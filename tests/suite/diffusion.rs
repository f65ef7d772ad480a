//! Tests of: ions that diffuse along sections. Closed forms, orders in time and space, what is kept, adaptive steps, engines and gradients.

use crate::cables::{checked, numbers, ran, samples};
use crate::models::{Way, root, run};
use neuroc::driver::{CompileOptions, GivenTolerances};
use neuroc::hir::Method;
use neuroc::results::RunResult;
use std::f64::consts::PI;

/// Steps of a length (ms) of a method.
fn steps(method: Method, dt: f64) -> CompileOptions {
    CompileOptions { method: Some(method), dt: Some(dt), ..CompileOptions::default() }
}

/// Steps as long as errors allow.
fn adaptive() -> CompileOptions {
    let tolerances = GivenTolerances { rtol: Some(1e-10), atol: Some(1e-10), max_step: None };
    CompileOptions { method: Some(Method::Adaptive), tolerances, ..CompileOptions::default() }
}

/// The last row of a record: a number for each compartment, or for each cell.
fn last(result: &RunResult, name: &str) -> Vec<f64> {
    let s = result.series_named(name).unwrap_or_else(|| panic!("`{name}` is not recorded"));
    (0..s.columns.len()).map(|column| s.values.get(s.t.len() - 1, column)).collect()
}

/// The same of a run.
fn end(text: &str, options: &CompileOptions, name: &str) -> Vec<f64> {
    last(&run(&checked(text), options, Way::Optimized), name)
}

fn apart(a: &[f64], b: &[f64]) -> f64 {
    crate::cables::apart(a, b)
}

const LEAK: &str = "channel Leak {\n param gbar = 0.1 mS/cm2\n param erev = -65 mV\n}\n";

// ---------------------------------------------------------------------------------------------- closed forms

const LENGTH: f64 = 100.0;
const D: f64 = 2.0;

/// A sealed rod of `count` compartments; the concentration begins as one and a half of a cosine of one wave along it, with the middle on its crest.
fn rod(count: usize) -> String {
    format!(
        "{LEAK}cell Rod {{
            section rod {{ length = {LENGTH} um; diam = 2 um; compartments = {count} }}
            region all {{
                ra = 100 ohm*cm; cm = 1 uF/cm2; v_init = -65 mV; insert Leak
                pool Ca: mM {{
                    init = 1 mM + 0.5 mM * cos(2 * {PI} * distance / {LENGTH} um)
                    diffusion = {D} um2/ms
                    Ca' = -(Ca - 1 mM) / 100 ms
                }}
            }}
        }}
        network main {{ population c: Rod }}
        run {{ duration = 100 ms; dt = 1 ms; method = cnexp; record c.all.Ca every 100 ms }}"
    )
}

/// What it is after 100 ms, where the wave falls by this rate (per ms) besides the pump.
fn wave(count: usize, rate: f64) -> Vec<f64> {
    let middle = |i: usize| LENGTH * ((i as f64 + 0.5) / count as f64 - 0.5);
    let amplitude = 0.5 * (-(rate + 0.01) * 100.0).exp();
    (0..count).map(|i| 1.0 + amplitude * (2.0 * PI * middle(i) / LENGTH).cos()).collect()
}

#[test]
fn a_wave_in_a_sealed_rod_falls_with_the_order_of_the_method() {
    let count = 40;
    let h = LENGTH / count as f64;
    // It is an eigenvector of the compartments, too.
    let expected = wave(count, 2.0 * D / (h * h) * (1.0 - (2.0 * PI * h / LENGTH).cos()));
    let error = |options| apart(&end(&rod(count), &options, "c.all.Ca"), &expected);
    for (method, order, most) in [(Method::Cnexp, 2.0, 1e-3), (Method::CrankNicolson, 4.0, 1e-5)] {
        let [first, second] = [1.0, 0.5].map(|dt| error(steps(method, dt)));
        let ratio = first / second;
        assert!((ratio / order - 1.0).abs() < 0.02 && first < most, "{method:?}: {first:e}, {ratio}");
    }
    let error = error(adaptive());
    assert!(error < 1e-9, "{error:e}");
}

#[test]
fn more_compartments_approach_the_wave_with_order_2() {
    let error = |count| {
        let found = end(&rod(count), &steps(Method::CrankNicolson, 0.05), "c.all.Ca");
        apart(&found, &wave(count, D * (2.0 * PI / LENGTH).powi(2)))
    };
    let (first, second) = (error(20), error(40));
    assert!((first / second / 4.0 - 1.0).abs() < 0.03, "{first:e}, {second:e}");
}

/// A source that holds 1 mM, and a long branch in which calcium is pumped out; ions are in all of it, or beneath the membrane.
fn decays(compartments: usize, within: &str) -> String {
    format!(
        "{LEAK}cell Long {{
            section source {{ length = 1 um; diam = 2 um; compartments = 1 }}
            section dend {{ from source(1); length = 150 um; diam = 2 um; compartments = {compartments} }}
            region all {{ ra = 100 ohm*cm; cm = 1 uF/cm2; v_init = -65 mV; insert Leak }}
            region source {{ pool Ca: mM {{ init = 1 mM; diffusion = 2 um2/ms; {within}; Ca' = (1 mM - Ca) / 1 us }} }}
            region dend {{ pool Ca: mM {{ init = 0 mM; diffusion = 2 um2/ms; {within}; Ca' = -Ca / 50 ms }} }}
        }}
        network main {{ population c: Long }}
        run {{ duration = 1000 ms; dt = 1 ms; method = cnexp; record c.dend.Ca every 1000 ms }}"
    )
}

#[test]
fn what_is_pumped_out_falls_by_e_in_each_length_constant() {
    // The root of diffusion times time constant.
    let lambda: f64 = 10.0;
    let error = |compartments: usize, within: &str| {
        let found = end(&decays(compartments, within), &CompileOptions::default(), "c.dend.Ca");
        let h = 150.0 / compartments as f64;
        let at = |x: f64| (x / h - 0.5).round() as usize;
        // From 5 um to 45 um.
        let fell = found[at(45.0 + 0.5 * h)] / found[at(5.0 + 0.5 * h)];
        fell / (-40.0 / lambda).exp() - 1.0
    };
    let (first, second) = (error(75, ""), error(150, ""));
    assert!(second.abs() < 2e-3 && (first / second / 4.0 - 1.0).abs() < 0.05, "{first:e}, {second:e}");
    // How deep a shell is does not matter along a cylinder.
    let shell = error(150, "shell = 0.2 um");
    assert!((shell - second).abs() < 1e-9, "{shell:e}, {second:e}");
}

// ---------------------------------------------------------------------------------------------- NEURON

#[test]
fn a_cylinder_is_that_of_neuron() {
    let text = std::fs::read_to_string(root().join("tests/reference/diffusion_neuron.json")).unwrap();
    let reference: serde_json::Value = serde_json::from_str(&text).unwrap();
    for (within, at) in [("", "whole"), ("shell = 0.2 um", "shell")] {
        let pool = |rate: &str| {
            format!(
                "pool Ca: mM {{ init = 1 mM + 1 mM * exp(-distance / 20 um); diffusion = 0.6 um2/ms; {within}; Ca' = {rate} }}"
            )
        };
        let text = format!(
            "{LEAK}cell Stem {{
                section stem {{ length = 100 um; diam = 2 um; compartments = 10 }}
                section branch {{ from stem(1); length = 60 um; diam = 2 um; compartments = 4 }}
                region all {{ ra = 100 ohm*cm; cm = 1 uF/cm2; v_init = -65 mV; insert Leak }}
                region stem {{ {} }}
                region branch {{ {} }}
            }}
            network main {{ population c: Stem }}
            run {{ duration = 50 ms; dt = 0.1 ms; method = cnexp; record c.{{PLACES}}.Ca every 10 ms }}",
            pool("0.01 mM/ms"),
            pool("0 mM/ms")
        );
        let stem = (0..10).map(|i| format!("stem({})", (i as f64 * 10.0 + 5.0) / 100.0));
        let places: Vec<String> = stem.chain((0..4).map(|i| format!("branch({})", (i as f64 + 0.5) / 4.0))).collect();
        let result = ran(&text.replace("PLACES", &places.join(", ")), Way::Optimized);
        for (place, row) in places.iter().zip(reference[at].as_array().unwrap()) {
            let error = apart(&samples(&result, &format!("c.{place}.Ca")), &numbers(row));
            assert!(error < 1e-9, "{at}, {place}: {error:e} mM");
        }
    }
}

// ---------------------------------------------------------------------------------------------- what is kept

/// Branches that taper, meet in nodes and in the middle of another, some with shells that fill a thin end; more coefficients than one.
const BRANCHED: &str = "
cell Branched {
    section spine { from right(0.5); length = 2 um; diam = 0.5 um; compartments = 2 }
    section soma { length = 25 um; diam = 8 um .. 12 um; compartments = 3 }
    section trunk { from soma(1); length = 50 um; diam = 3 um .. 1.5 um; compartments = 7 }
    section left { from trunk(1); length = 40 um; diam = 1.5 um .. 0.3 um; compartments = 5 }
    section right { from trunk(1); length = 60 um; diam = 1 um; compartments = 8 }
    section basal { from soma(0); length = 30 um; diam = 2 um .. 1 um; compartments = 4 }
    section other { from soma(0); length = 20 um; diam = 1 um; compartments = 2 }
    region all { ra = 100 ohm*cm; cm = 1 uF/cm2; v_init = -65 mV; insert Leak }
    region soma, basal { pool Ca: mM { init = 1e-4 mM; diffusion = 0.2 um2/ms; shell = 0.5 um; Ca' = 0 mM/ms } }
    region trunk { pool Ca: mM { init = 5e-3 mM; diffusion = 0.5 um2/ms; Ca' = 0 mM/ms } }
    region left, right, spine {
        pool Ca: mM {
            init = 1e-3 mM * exp(-distance / 40 um); diffusion = 0.4 um2/ms * exp(-distance / 100 um); shell = 0.4 um; Ca' = 0 mM/ms
        }
    }
    region other { pool Ca: mM { init = 7e-3 mM; Ca' = 0 mM/ms } }
}
network main { population c: Branched }
run {
    duration = 40 ms; dt = 0.25 ms; method = cnexp
    record c.soma_basal.Ca every 4 ms
    record c.trunk.Ca every 4 ms
    record c.left_right_spine.Ca every 4 ms
    record c.other.Ca every 4 ms
}";

fn branched() -> String {
    format!(
        "{LEAK}{}",
        BRANCHED
            .replace("c.soma_basal.Ca", "{c.soma.Ca, c.basal.Ca}")
            .replace("c.left_right_spine.Ca", "{c.left.Ca, c.right.Ca, c.spine.Ca}")
    )
}

const RECORDS: [&str; 6] = ["c.soma.Ca", "c.basal.Ca", "c.trunk.Ca", "c.left.Ca", "c.right.Ca", "c.spine.Ca"];

/// How many ions there are in each sample, in mM cm3.
fn ions(text: &str, result: &RunResult) -> Vec<f64> {
    let checked = checked(text);
    let model = checked.model.expect("a model");
    let morphology =
        model.cells[model.network.expect("a network").populations[0].cell].morphology.as_ref().expect("sections");
    let tree = &morphology.tree;
    let rows = result.series_named(RECORDS[0]).expect("a record").t.len();
    let in_row = |row: usize| {
        let of = |name: &&str| {
            let section = tree.sections.iter().find(|s| name.contains(&s.name)).expect("a section");
            let values = &result.series_named(name).expect("a record").values;
            (0..section.count).map(|i| values.get(row, i) * tree.lumens[0].volume[section.first + i]).sum::<f64>()
        };
        RECORDS.iter().map(of).sum()
    };
    (0..rows).map(in_row).collect()
}

#[test]
fn ions_are_kept_to_rounding() {
    let text = branched();
    for options in [steps(Method::Cnexp, 0.25), steps(Method::CrankNicolson, 0.25)] {
        for way in [Way::Plain, Way::Optimized, Way::Native] {
            let result = run(&checked(&text), &options, way);
            let ions = ions(&text, &result);
            for now in &ions {
                assert!((now / ions[0] - 1.0).abs() < 1e-13, "{:?}, {way:?}: {ions:?}", options.method);
            }
            // They move, but for those that are shut in.
            let moved = |name: &str| {
                let values = &result.series_named(name).expect("a record").values;
                (values.get(10, 0) / values.get(0, 0) - 1.0).abs()
            };
            assert!(moved("c.trunk.Ca") > 0.01 && moved("c.spine.Ca") > 0.01);
            assert_eq!(moved("c.other.Ca"), 0.0);
        }
    }
}

#[test]
fn a_tree_moves_as_adaptive_steps_say_with_the_order_of_the_method() {
    let text = branched();
    let all = |options: &CompileOptions| {
        let result = run(&checked(&text), options, Way::Optimized);
        RECORDS.iter().flat_map(|name| last(&result, name)).collect::<Vec<f64>>()
    };
    let expected = all(&adaptive());
    for (method, order) in [(Method::Cnexp, 2.0), (Method::CrankNicolson, 4.0)] {
        let [first, second] = [0.25, 0.125].map(|dt| apart(&all(&steps(method, dt)), &expected));
        let ratio = first / second;
        assert!((ratio / order - 1.0).abs() < 0.1, "{method:?}: {first:e}, {second:e}, {ratio}");
    }
}

#[test]
fn nothing_passes_where_nothing_diffuses() {
    // A soma without the pool keeps branches apart that meet in a node with it; two of them are joined there.
    let text = |diffusion: &str| {
        format!(
            "{LEAK}cell Apart {{
                section soma {{ length = 20 um; diam = 20 um; compartments = 1 }}
                section a {{ from soma(1); length = 20 um; diam = 1 um; compartments = 3 }}
                section b {{ from soma(1); length = 20 um; diam = 1 um; compartments = 3 }}
                section c {{ from soma(0); length = 20 um; diam = 1 um; compartments = 3 }}
                region all {{ ra = 100 ohm*cm; cm = 1 uF/cm2; v_init = -65 mV; insert Leak }}
                region a {{ pool Ca: mM {{ init = 1 mM; diffusion = {diffusion}; Ca' = 0 mM/ms }} }}
                region b {{ pool Ca: mM {{ init = 0 mM; diffusion = {diffusion}; Ca' = 0 mM/ms }} }}
                region c {{ pool Ca: mM {{ init = 2 mM; diffusion = {diffusion}; Ca' = 0 mM/ms }} }}
            }}
            network main {{ population x: Apart[2] }}
            run {{ duration = 2000 ms; dt = 1 ms; method = cnexp; record {{x[1].a.Ca, x[1].b.Ca, x[1].c.Ca}} every 2000 ms }}"
        )
    };
    let (joined, still) = (text("4 um2/ms"), text("0 um2/ms"));
    for options in [CompileOptions::default(), steps(Method::CrankNicolson, 1.0), adaptive()] {
        for (text, a, b) in [(&joined, 0.5, 0.5), (&still, 1.0, 0.0)] {
            for (name, expected) in [("x[1].a.Ca", a), ("x[1].b.Ca", b), ("x[1].c.Ca", 2.0)] {
                let found = end(text, &options, name);
                assert!(found.iter().all(|x| (x - expected).abs() < 1e-9), "{name}: {found:?}, {:?}", options.method);
            }
        }
    }
}

// ---------------------------------------------------------------------------------------------- with currents

/// Calcium comes in through a channel whose reversal potential follows it, and a pump that saturates brings it out.
fn with_currents(diffusion: &str, compartments: usize, method: &str) -> String {
    format!(
        "use std.ions.{{nernst, F}}
        {LEAK}
        channel CaL {{
            param gbar = 0.05 mS/cm2
            reads Ca: mM
            let erev = nernst(2, Ca, 2 mM)
            gate m^2 {{ inf = 1 / (1 + exp(-(v + 45 mV) / 9 mV)); tau = 2 ms }}
            current i = gbar * m^2 * (v - erev)
        }}
        cell Stick {{
            section dend {{ length = 60 um; diam = 2 um .. 1 um; compartments = {compartments} }}
            region all {{
                ra = 100 ohm*cm; cm = 1 uF/cm2; v_init = -65 mV; insert Leak
                pool Ca: mM {{
                    init = 5e-5 mM; {diffusion}
                    Ca' = -CaL.i / (2 * F * 0.2 um) * exp(-distance / 10 um) - 2e-4 mM/ms * Ca / (Ca + 1e-3 mM)
                }}
                insert CaL
            }}
        }}
        network main {{ population c: Stick; input hold: sine(delay = 0 ms, duration = 20 ms, amplitude = 0.05 nA, period = 10 ms) -> c.dend(0.1) }}
        run {{ duration = 20 ms; dt = 0.05 ms; method = {method}; celsius = 20 degC; record {{c.all.Ca, c.all.v}} every 20 ms }}"
    )
}

#[test]
fn a_pool_without_neighbours_takes_its_own_step() {
    for method in ["cnexp", "crank_nicolson"] {
        let [with, without] = ["diffusion = 0.2 um2/ms", ""].map(|diffusion| {
            let result = ran(&with_currents(diffusion, 1, method), Way::Plain);
            [last(&result, "c.all.Ca")[0], last(&result, "c.all.v")[0]]
        });
        assert!(with.iter().zip(without).all(|(a, b)| (a / b - 1.0).abs() < 1e-12), "{with:?}, {without:?}");
    }
}

#[test]
fn currents_that_read_what_diffuses_keep_the_order() {
    let text = |method| with_currents("diffusion = 0.5 um2/ms; shell = 0.3 um", 9, method);
    let both = |options: &CompileOptions, method| {
        let result = run(&checked(&text(method)), options, Way::Optimized);
        ["c.all.Ca", "c.all.v"].map(|name| last(&result, name))
    };
    let expected = both(&adaptive(), "cnexp");
    for (method, order) in [(Method::Cnexp, 2.0), (Method::CrankNicolson, 4.0)] {
        let errors = [0.05, 0.025].map(|dt| {
            let found = both(&steps(method, dt), "cnexp");
            [0, 1].map(|i| apart(&found[i], &expected[i]))
        });
        for (first, second) in errors[0].into_iter().zip(errors[1]) {
            let ratio = first / second;
            assert!((ratio / order - 1.0).abs() < 0.15, "{method:?}: {errors:?}, {ratio}");
        }
    }
}

// ---------------------------------------------------------------------------------------------- populations and engines

/// Cells of two shapes, in each of which the cells differ in how fast calcium goes.
const MANY: &str = "
cell Thick {
    section soma { length = 10 um; diam = 10 um; compartments = 2 }
    section dend { from soma(1); length = 50 um; diam = 2 um; compartments = 6 }
    region all {
        ra = 100 ohm*cm; cm = 1 uF/cm2; v_init = -65 mV; insert Leak
        pool Ca: mM { init = 1e-3 mM * exp(-distance / 10 um); diffusion = 0.3 um2/ms; shell = 0.2 um; Ca' = -Ca / 50 ms }
    }
}
cell Thin {
    section dend { length = 40 um; diam = 1 um; compartments = 5 }
    section one { from dend(1); length = 20 um; diam = 0.5 um; compartments = 2 }
    section two { from dend(1); length = 30 um; diam = 0.7 um; compartments = 3 }
    region all {
        ra = 100 ohm*cm; cm = 1 uF/cm2; v_init = -65 mV; insert Leak
        pool Ca: mM { init = 1e-3 mM * exp(-distance / 10 um); diffusion = 0.3 um2/ms; Ca' = -Ca / 50 ms }
    }
}
network main {
    population a: Thick[COUNT]
    population b: Thin[COUNT]
    param a.all.Ca.diffusion = (0.1 + 0.05 * index) * 1 um2/ms
    param b.all.Ca.diffusion = (0.1 + 0.05 * index) * 1 um2/ms
}
run {
    duration = 10 ms; dt = 0.1 ms; method = cnexp
    record {a.dend(0.7).Ca, b.two(0.9).Ca} every 10 ms
}";

#[test]
fn cells_that_differ_are_solved_each_by_itself_on_every_engine() {
    let text = format!("{LEAK}{}", MANY.replace("COUNT", "19"));
    for method in [Method::Cnexp, Method::CrankNicolson] {
        let plain = run(&checked(&text), &steps(method, 0.1), Way::Plain);
        for name in ["a.dend(0.7).Ca", "b.two(0.9).Ca"] {
            let all = last(&plain, name);
            for (way, most) in
                [(Way::Optimized, 1e-13), (Way::Reread, 1e-13), (Way::Native, 1e-13), (Way::Single, 1e-4)]
            {
                let found = last(&run(&checked(&text), &steps(method, 0.1), way), name);
                let error = all.iter().zip(&found).map(|(a, b)| (a / b - 1.0).abs()).fold(0.0, f64::max);
                assert!(error < most, "{name}, {way:?}: {error:e}");
            }
            for index in [0, 7, 18] {
                let one = text.replace("[19]", "").replace("* index", &format!("* {index}"));
                let found = end(&one, &steps(method, 0.1), name);
                assert!((found[0] / all[index] - 1.0).abs() < 1e-12, "{name} {index}: {found:?}, {}", all[index]);
            }
        }
    }
}
