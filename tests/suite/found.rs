//! What users found: every row of what was found by use is a test here, or a case or a test elsewhere that this table names.
//!
//! Rows are f (an internal error, or wrong numbers), r (results), c (commands), m (messages that misled) and p (what papers needed).

use crate::cli::{Done, folder, neuroc};
use neuroc::results::{Checkpoint, ParameterValues, RunResult};
use std::fs;
use std::path::Path;
use tempfile::TempDir;

/// Rows that cases in `tests/errors` (by name) and tests (`file::name`) show.
#[rustfmt::skip]
const ROWS: &[(&str, &[&str])] = &[
    ("f1: what is called `i` replaced the current", &["names.rs::hidden_names_meet_no_name_of_a_model", "current_name_taken"]),
    ("f2: `refractory`, `spikes`, `i_b` as names of one's own", &["names.rs::a_parameter_refractory_and_a_state_spikes_are_the_users_own", "names.rs::hidden_names_meet_no_name_of_a_model"]),
    ("f3: a quotient by a temperature in degC", &["celsius_over_degc", "temperature_over_degc"]),
    ("f4: values that a quantity cannot have", &[
        "domain_cm_zero", "domain_tau_zero", "domain_tau_negative_at_v_init", "domain_rate_negative", "domain_normal_with_negative_sd", "domain_uniform_upside_down",
        "domain_drawn_conductance", "domain_noise_every_zero", "domain_noise_every_below_dt", "domain_pulse_of_negative_duration", "domain_pulse_after_the_end",
        "gate_not_in_the_current", "domains.rs::settings_from_outside_are_in_their_domains", "weight_drawn_negative", "truncated_never_met", "staircase_past_the_end",
    ]),
    ("f5: cells that a population does not have", &["cells_of_an_input", "cells_of_an_init", "cells_of_a_param", "cells_chosen_twice"]),
    ("f6: a time step that is far too long", &["step_too_long", "step_too_long_for_euler", "domains.rs::a_step_that_is_too_long_has_one_that_would_do"]),
    ("f7: mistakes that only a run told", &[
        "constant_reads_voltage", "data_file_missing", "connect_probability_above_one", "in_degree_above_the_population", "cable_with_runge_kutta", "logarithm_of_minus_one",
        "constant_divided_by_zero", "delay_drawn_below_dt",
    ]),
    ("f8: endless or enormous output", &["many_mistakes", "torture.rs::d11_large_files_are_read_in_time_that_they_are_worth"]),
    ("r1: which cells a result holds", &["cli.rs::names_of_records_and_their_times_do_not_depend_on_the_order", "cli.rs::results_hold_grids_parameters_and_drawn_values"]),
    ("r2: cells of plots", &["../../src/plot/tests.rs::cells_are_spread_chosen_and_have_one_colour", "../../src/plot/tests.rs::a_dense_raster_is_thinned_and_says_so", "../../src/plot/tests.rs::a_pdf_is_a_page_of_the_same_figure"]),
    ("c1: sizes told before the run", &["cli.rs::what_the_machine_cannot_hold_is_refused_with_numbers", "cli.rs::d4_results_larger_than_memory_are_written"]),
    ("c2: verify without a word", &["verify.rs::long_runs_are_announced_and_can_be_stopped", "verify.rs::chaos_is_told_from_faults"]),
    ("c3: initial values and intervals from outside", &["protocols.rs::initial_values_and_intervals_come_from_outside"]),
    ("c4: paths without a compartment", &["unknown_channel_recorded"]),
    ("c5: the C library", &["crates.rs::a_c_program_gets_the_interpreters_numbers"]),
    ("m1: decimal commas", &["decimal_comma", "decimal_comma_in_a_call"]),
    ("m2: products of units", &["unit_product_with_a_space", "unit_product_with_a_space_in_a_declaration", "power_of_a_unit_without_sign"]),
    ("m3: comments, invisible characters, ends of lines", &["comments_do_not_nest", "zero_width_space", "no_break_space", "torture.rs::d18_lines_of_old_files_end"]),
    ("m4: false second messages", &["comparisons_in_a_row", "sum_of_too_many_terms", "import_for_use", "connect_rules"]),
    ("m5: a pool of a channel's name", &["pool_of_the_name_of_a_channel"]),
    ("m6: a draw for a parameter of the network", &["param_of_itself", "tilde_without_draw"]),
    ("m7: a spike that nothing resets", &["reset_stays_above_threshold"]),
    ("m8: a rate at its own 0/0", &["rate_without_limit_at_v_init"]),
    ("m9: other languages", &["looks_like_nmodl", "looks_like_brian", "looks_like_neuroml", "looks_like_hoc"]),
    ("m10: help that gave wrong numbers", &[
        "weight_drawn_without_unit", "event_weight_without_unit", "clamp_through_a_conductance", "capacitance_without_area", "v_post_in_a_synapse",
        "int_of_a_number", "spike_level_of_a_section",
    ]),
    ("m11: what is written and does nothing", &["input_that_nothing_reads", "input_of_a_cell_that_reads_none", "gate_instantaneous_with_q10"]),
    ("m12: second messages that were false", &[
        "voltage_equation_with_a_draw", "capacitance_of_another_name", "graded_sum_added_to", "graded_delay_recorded",
    ]),
    ("m13: help that did not work", &[
        "white_noise_without_brackets", "clip_for_clamp", "pow_for_a_power", "event_weight_not_named", "graded_sum_without_weight",
        "section_with_a_number_it_has_not", "channel_reads_a_let", "record_of_the_sender", "record_edges_without_synapse", "record_edges_without_place",
        "let_in_a_network", "celsius_in_degrees", "record_of_what_comes_in", "spike_resets_a_time", "unknown_name_in_a_synapse",
    ]),
    ("m14: a time step that the file has wrong", &["duration_no_whole_steps"]),
    ("p1: clamps, trains, staircases", &["protocols.rs::a_clamp_holds_what_it_says_and_tells_its_current", "protocols.rs::trains_and_staircases_are_on_when_they_say"]),
    ("p2: nernst and ghk", &["protocols.rs::ions_follow_nernst_and_goldman"]),
    ("p3: noise scaled with the step", &["protocols.rs::white_noise_is_the_same_at_every_time_step"]),
    ("p4: other distributions", &["protocols.rs::draws_have_the_moments_of_their_distributions", "truncated_seldom_met"]),
    ("p5: an f-I curve", &["../../src/plot/tests.rs::rates_of_cells_are_drawn_against_what_they_have"]),
];

#[test]
fn every_row_has_its_case() {
    for (row, shown) in ROWS {
        for name in *shown {
            let there = match name.split_once("::") {
                Some((file, test)) => fs::read_to_string(Path::new("tests/suite").join(file))
                    .is_ok_and(|text| text.contains(&format!("fn {test}("))),
                None => Path::new("tests/errors").join(name).with_extension("neuro").exists(),
            };
            assert!(there, "{row}: there is no `{name}`");
        }
    }
}

/// A squid axon, as the first example of everyone.
const AXON: &str = "use std.channels.hh.{Na, K, Leak}
cell Axon {
    compartment soma { area = 1000 um2; cm = 1 uF/cm2; v_init = -65 mV; insert Na, K, Leak }
    spike when soma.v crosses 0 mV
}
network main {
    population hh: Axon
    input step: pulse(delay = 0.2 ms, duration = 0.5 ms, amplitude = 10 uA/cm2) -> hh.soma
}
run { duration = 1 ms; dt = 0.01 ms; celsius = 6.3 degC; record hh.soma.v every 0.1 ms }
";

/// A cell with sections whose axon is faster than its start tells.
const CABLE: &str = "use std.channels.hh.{Na, K, Leak}
channel Fast { param gbar = 0.01 mS/cm2; param erev = -70 mV; gate x { inf = 0.5; tau = if v > -20 mV then 0.02 ms else 2 ms } }
cell B {
    section soma { length = 20 um; diam = 20 um; compartments = 1 }
    section dend { from soma(1); length = 200 um; diam = 2 um; compartments = 5 }
    region all { cm = 1 uF/cm2; ra = 100 ohm*cm; v_init = -65 mV; insert Leak }
    region soma { insert Na, K, Fast }
    spike when soma(0.5).v crosses 0 mV
}
network main { population b: B[3]; input step: 0.3 nA -> b.soma(0.5) }
run { duration = 30 ms; dt = 0.025 ms; celsius = 6.3 degC; method = cnexp; record b.dend(0.5).v every 0.3 ms; record spikes of b }
";

/// What a command that should work says, and what one that should not.
fn says(arguments: &[&str], code: i32) -> String {
    let here = folder(&[("m.neuro", AXON)]);
    let done = neuroc(&here, arguments);
    assert_eq!(done.code, code, "{arguments:?}: {}", done.err);
    format!("{}{}", done.out, done.err)
}

#[test]
fn m14_a_time_step_of_the_file_is_the_models_fault() {
    let here = folder(&[("m.neuro", &AXON.replace("dt = 0.01 ms", "dt = 0.3 ms"))]);
    let done = neuroc(&here, &["check", "m.neuro"]);
    assert_eq!(done.code, 1, "{}", done.err);
    assert!(done.err.contains("m.neuro:10:") && done.err.contains("is not a multiple of dt"), "{}", done.err);
    says(&["run", "m.neuro", "--engine", "interp", "--dt", "0.3ms", "-o", "o.npz"], 2);
}

#[test]
fn f6_a_step_that_is_far_too_long_is_told_by_a_run() {
    let said = says(&["run", "m.neuro", "--engine", "interp", "--dt", "0.5ms", "--every", "0.5ms", "-o", "o.npz"], 0);
    assert!(said.contains("NU0406") && said.contains("try `dt = "), "{said}");
}

#[test]
fn f6_a_step_that_becomes_too_long_for_a_cell_with_sections_is_told() {
    let here = folder(&[("b.neuro", CABLE)]);
    let run = |dt: &str| {
        let done = neuroc(&here, &["run", "b.neuro", "--engine", "interp", "--dt", dt, "-o", "o.npz"]);
        assert_eq!(done.code, 0, "{}", done.err);
        done.err
    };
    let said = run("0.1ms");
    assert!(said.contains("`b.soma.Fast.x`") && said.contains("in soma(0.5) of cell "), "{said}");
    assert!(!run("0.05ms").contains("NU0406"));
}

#[test]
fn f6_a_step_that_becomes_too_long_is_told_after_the_run() {
    let run = |dt: &str, method: &str| {
        let run = [
            "run",
            "m.neuro",
            "--engine",
            "interp",
            "--duration",
            "10ms",
            "--dt",
            dt,
            "--method",
            method,
            "-o",
            "o.npz",
        ];
        says(&[&run[..], &["--every", "0.2ms", "--set", "step.duration=5ms"]].concat(), 0)
    };
    let said = run("0.2ms", "exp_euler");
    assert!(said.contains("NU0406") && said.contains("`hh.soma.v`") && said.contains("in cell 0 at t = "), "{said}");
    // The step that it asks for has no warning, and neither has what spikes are computed with mostly.
    assert!(said.contains("try `dt = 0.05 ms`"), "{said}");
    for dt in ["0.05ms", "0.025ms"] {
        assert!(!run(dt, "exp_euler").contains("NU0406"), "{dt}");
    }
}

#[test]
fn r3_arguments_of_stimuli_are_in_the_results() {
    let text = AXON
        .replace("population hh: Axon", "population hh: Axon[4]")
        .replace("amplitude = 10 uA/cm2) -> hh.soma", "amplitude = uniform(8 uA/cm2, 12 uA/cm2)) -> hh[1..4].soma")
        .replace("input step", "input late: pulse(delay = 0.1 ms * index, duration = 0.1 ms, amplitude = 1 uA/cm2) -> hh.soma\n    input step");
    let here = folder(&[("m.neuro", &text)]);
    let done = neuroc(&here, &["run", "m.neuro", "--engine", "interp", "-o", "o.npz"]);
    assert_eq!(done.code, 0, "{}", done.err);
    let result = RunResult::read_npz(&here.path().join("o.npz")).unwrap();
    let values = |name: &str| {
        let found = result.parameters.iter().find(|p| p.name == name).map(|p| &p.values);
        match found {
            Some(ParameterValues::PerCell { values, .. }) => values.clone(),
            Some(ParameterValues::One(_)) | None => panic!("{name} has no value for each cell"),
        }
    };
    let drawn = values("hh.step.amplitude");
    assert!(drawn[0].is_nan() && drawn[1..].iter().all(|x| (8.0..12.0).contains(x)), "{drawn:?}");
    assert!(drawn[1] != drawn[2]);
    let delays = values("hh.late.delay");
    assert!(delays.iter().zip([0.0, 0.1, 0.2, 0.3]).all(|(x, y)| (x - y).abs() < 1e-12), "{delays:?}");
    // Standard draws, which they are made of, are nobody's parameters.
    assert!(result.parameters.iter().all(|p| !p.name.contains(".draw")));
}

#[test]
fn c3_what_belongs_to_the_run_has_options() {
    let set =
        |what: &str, code: i32| says(&["run", "m.neuro", "--engine", "interp", "-o", "o.npz", "--set", what], code);
    for (what, option) in [("dt=0.1ms", "`--dt`"), ("every=1ms", "`--every`"), ("seed=3", "`--seed`")] {
        assert!(set(what, 2).contains(option), "{what}");
    }
    // The end of a name that fits is not taken for it.
    let said = set("duration=5ms", 2);
    assert!(said.contains("`--duration`") && said.contains("`step.duration`"), "{said}");
    for what in ["celsius=20degC", "hh.soma.v=-70mV", "step.duration=0.3ms", "soma.v_init=-70mV"] {
        set(what, 0);
    }
    assert!(set("Na.gbar=0,5mS/cm2", 2).contains("0.5mS/cm2"));
    for dt in ["10us", "10\u{b5}s", "10\u{3bc}s"] {
        says(&["run", "m.neuro", "--engine", "interp", "-o", "o.npz", "--dt", dt], 0);
    }
}

#[test]
fn c6_the_library_is_found_by_parts_of_its_names() {
    let modules = says(&["lib", "std.channels"], 0);
    assert!(modules.contains("std.channels.hh:") && !modules.contains("std.synapses:"), "{modules}");
    let item = says(&["lib", "std.channels.hh.K"], 0);
    assert!(item.contains("channel K {") && !item.contains("channel Na") && item.trim_end().ends_with('}'), "{item}");
    assert!(says(&["lib", "std.channels.hh.Kx"], 2).contains("no module"));
}

#[test]
fn c7_plots_take_times_with_units() {
    let here = folder(&[("m.neuro", AXON)]);
    assert_eq!(neuroc(&here, &["run", "m.neuro", "--engine", "interp", "-o", "o.npz"]).code, 0);
    assert_eq!(neuroc(&here, &["plot", "o.npz", "-o", "o.svg", "--from", "0.2ms"]).code, 0);
    let late = neuroc(&here, &["plot", "o.npz", "-o", "o.svg", "--from", "5000"]);
    assert!(late.err.contains("outside the run") && late.err.len() < 200, "{}", late.err);
}

#[test]
fn conditions_are_chosen_by_conditions() {
    let text = "cell Leaky { param tau = 8 ms; state v: mV = 0 mV; let on = if v > 0 mV then v > 1 mV else false
            v' = (2 mV - v) / tau; spike when on { v -= 1 mV } }
        network main { population plain: Leaky[4] }
        run { duration = 20 ms; dt = 1 ms; record spikes of plain }";
    let run = |text: &str| {
        let here = folder(&[("m.neuro", text)]);
        let done = neuroc(&here, &["run", "m.neuro", "--engine", "interp", "-o", "o.npz", "--json"]);
        assert_eq!(done.code, 0, "{}", done.err);
        let told: serde_json::Value = serde_json::from_str(&done.out).expect("JSON");
        told["spikes"].clone()
    };
    let spikes = run(text);
    assert!(
        spikes != serde_json::Value::Null
            && spikes == run(&text.replace("if v > 0 mV then v > 1 mV else false", "v > 1 mV"))
    );
}

#[test]
fn the_simplex_tells_what_cannot_run() {
    let here = folder(&[(
        "m.neuro",
        "cell C { state v: mV = 0 mV; v' = (-v - 100 Mohm * i_syn) / 20 ms; spike when v > 15 mV { v = 0 mV } }
        network main { param n = 4; population c: C[n]; input s: pulse(delay = 0 ms, duration = 100 ms, amplitude = 0.3 nA) -> c }
        run { duration = 100 ms; dt = 0.1 ms; record spikes of c }
        fit { free n = 1 .. 9; iterations = 30; target rate(c) = 50 Hz }",
    )]);
    let done = neuroc(&here, &["fit", "m.neuro", "--engine", "interp"]);
    assert_eq!(done.code, 1, "{}{}", done.out, done.err);
    assert!(done.err.contains("population `c` cannot have"), "{}", done.err);
}

#[test]
fn a_search_in_a_plain_says_so() {
    // No current in the bounds makes it spike, so that no run differs from another.
    let here = folder(&[(
        "m.neuro",
        "use std.cells.lif.{LifCond}
        network main { param i = 1 pA; population c: LifCond[4]; input s: i -> c }
        run { duration = 50 ms; dt = 0.1 ms; record spikes of c }
        fit { free i = 1 .. 2 pA; iterations = 5; target rate(c) = 50 Hz }",
    )]);
    let flat = "all runs had the same loss, so that nothing said where to go";
    let args = ["fit", "m.neuro", "--engine", "interp", "--json"];
    let done = neuroc(&here, &args);
    assert!(
        done.code == 0 && done.err.contains(flat) && done.out.contains("\"flat\":true"),
        "{}{}",
        done.out,
        done.err
    );
    assert!(!neuroc(&here, &[&args[..], &["--quiet"]].concat()).err.contains(flat));
    let done = neuroc(&here, &[&args[..], &["--free", "i=100..900pA"]].concat());
    assert!(
        done.code == 0 && !done.err.contains(flat) && done.out.contains("\"flat\":false"),
        "{}{}",
        done.out,
        done.err
    );
}

#[test]
fn a_rate_below_zero_is_named() {
    let here = folder(&[(
        "m.neuro",
        "use std.cells.lif.{LifCond}
        use std.synapses.{ExpCond}
        network main { population b: LifCond[2]
            drive b via ExpCond from poisson(rate = 50 Hz - 2 Hz * t / 1 ms) { weight = 1 nS } }
        run { duration = 50 ms; dt = 0.1 ms; record spikes of b }",
    )]);
    let done = neuroc(&here, &["run", "m.neuro", "--engine", "interp", "-o", "o.npz"]);
    assert!(
        done.code != 0 && done.err.contains("a Poisson number of events in a step whose mean is below 0"),
        "{}",
        done.err
    );
    assert!(
        done.err.contains("a rate must not fall below 0") && !done.err.contains("smaller time step"),
        "{}",
        done.err
    );
}

#[test]
fn lines_and_synapses_have_names_of_their_own() {
    let text = "use std.cells.lif.{LifCond}
        use std.cells.generators.{Regular}
        use std.plasticity.{Stdp}
        network main {
            population a: Regular[2]
            population b: LifCond[2]
            connect a -> b via Stdp(w_max = 10 nS) { rule = one_to_one; weight = 1 nS; delay = 1 ms }
            connect a -> b via Stdp(w_max = 10 nS) { rule = one_to_one; weight = 2 nS; delay = 1 ms }
            connect a -> b via Stdp(tau = 50 ms, w_max = 10 nS) { rule = one_to_one; weight = 3 nS; delay = 1 ms }
            connect a -> b via Stdp(tau = 50 ms, w_max = 10 nS) { rule = one_to_one; weight = 4 nS; delay = 1 ms }
        }
        run { duration = 2 ms; dt = 0.1 ms; record { a.b.Stdp.weight, a.b.Stdp_2.weight, a.b.Stdp_3.weight, a.b.Stdp_3_2.weight }
            record b.{Stdp.g, Stdp_3.g} }";
    let checked = neuroc::driver::check_text("lines.neuro", Path::new(""), text, &neuroc::hir::Sources);
    let said = neuroc::diag::render_human(&checked.sources, &checked.diagnostics, false);
    assert!(checked.model.is_some(), "{said}");
    let plain = neuroc::driver::CompileOptions::default();
    let (result, _) = crate::models::outcome(&checked, &plain, crate::models::Way::Optimized);
    let first = |name: &str| result.series_named(name).expect("it is recorded").values.get(0, 0);
    for (name, weight) in [("a.b.Stdp", 1.0), ("a.b.Stdp_2", 2.0), ("a.b.Stdp_3", 3.0), ("a.b.Stdp_3_2", 4.0)] {
        assert_eq!(first(&format!("{name}.weight")), weight, "{name}");
    }
}

/// What a refractory cell holds is held for all that reads it within a step: another state, gates, other cells, with every method.
#[test]
fn what_is_held_is_held_for_all() {
    let plain = neuroc::driver::CompileOptions::default();
    let last = |text: &str, name: &str, way: crate::models::Way| {
        let checked = neuroc::driver::check_text("held.neuro", Path::new(""), text, &neuroc::hir::Sources);
        let said = neuroc::diag::render_human(&checked.sources, &checked.diagnostics, false);
        assert!(checked.model.is_some(), "{said}");
        let (result, _) = crate::models::outcome(&checked, &plain, way);
        let series = result.series_named(name).expect("it is recorded");
        series.values.get(series.t.len() - 1, 0)
    };
    let follows = "cell C { state v: mV = 0 mV; state w: mV = 0 mV; v' = 10 mV/ms; w' = v / 1 ms
            spike when v > 0.5 mV { v = 0 mV; w = 0 mV; refractory 50 ms } }
        network main { population c: C }
        run { duration = 50 ms; dt = 0.1 ms; method = METHOD; record c.w every 10 ms }";
    // What is held lies a step above the threshold; the gate relaxes to where it is there.
    let gate = "channel M { param gbar = 0 mS/cm2; param erev = -90 mV
            gate m { inf = 1 / (1 + exp(-(v + 60 mV) / 1 mV)); tau = 2 ms } }
        cell C { compartment soma { cm = 1 uF/cm2; v_init = -60 mV; insert M }; spike when soma.v > -55 mV { refractory 90 ms } }
        network main { population c: C; input i: pulse(delay = 0 ms, duration = 100 ms, amplitude = 3 uA/cm2) -> c.soma }
        run { duration = 80 ms; dt = 0.5 ms; method = METHOD; record c.soma.M.m every 80 ms; record c.soma.v every 80 ms }";
    let feels = "junction Gap { param g = 10 nS; current i = g * dv }
        cell A { param drive = 1 mV/ms; state v: mV = -60 mV; v' = drive + (-60 mV - v) / 10 ms - i_syn / 100 pF
            spike when v > -55 mV { v = -60 mV; refractory 20 ms } }
        network main { population a: A; population b: A; param b.drive = 0 mV/ms; connect a -- b via Gap { rule = one_to_one } }
        run { duration = 30 ms; dt = 0.05 ms; method = METHOD; record b.v every 5 ms }";
    let reference = last(
        &feels.replace("METHOD", "exp_euler").replace("dt = 0.05", "dt = 0.005"),
        "b.v",
        crate::models::Way::Optimized,
    );
    for method in ["euler", "heun", "rk4", "exp_euler", "cnexp", "crank_nicolson", "exact"] {
        let of = |text: &str| text.replace("METHOD", method);
        for way in [crate::models::Way::Plain, crate::models::Way::Optimized] {
            assert_eq!(last(&of(follows), "c.w", way), 0.0, "{method}");
            if method == "exact" {
                continue;
            }
            let v = last(&of(gate), "c.soma.v", way);
            let (m, end) = (last(&of(gate), "c.soma.M.m", way), 1.0 / (1.0 + (-(v + 60.0)).exp()));
            assert!((m - end).abs() < 1e-12, "{method}: {m}, not {end}");
            let b = last(&of(feels), "b.v", way);
            assert!((b - reference).abs() < 2e-3, "{method}: {b}, not {reference}");
        }
    }
}

#[test]
fn spikes_are_counted_once() {
    let here = folder(&[
        ("one.csv", "t,cell\n50.4,0\n"),
        (
            "m.neuro",
            "use std.synapses.{Delta}
            use std.cells.generators.{Relay}
            network main { population p: Relay; drive p via Delta from spikes(\"one.csv\") { weight = 1 mV } }
            run { duration = 1 s; dt = 0.1 ms; record spikes of p }",
        ),
    ]);
    let done = neuroc(&here, &["run", "m.neuro", "--engine", "interp", "-o", "o.npz", "--json"]);
    assert_eq!(done.code, 0, "{}", done.err);
    let told: serde_json::Value = serde_json::from_str(&done.out).expect("JSON");
    assert_eq!(told["spikes"], 1);
}

#[test]
fn what_is_no_finite_number_is_told_where_it_stands() {
    let text = "use std.synapses.{ExpCond, Delta}
        use std.cells.lif.{LifCond}
        use std.cells.generators.{Relay}
        network main {
            param z = 0
            population r: Relay[2] { spacing = 10 um }
            population b: LifCond[2] { spacing = 10 um }
            drive r via Delta from times(1 ms) { weight = 1 mV; delay = 0.1 ms }
            connect r -> b via ExpCond { rule = all_to_all; weight = 1 nS; delay = 1 ms }
        }
        run { duration = 5 ms; dt = 0.1 ms; record b.v every 1 ms }";
    let said = |from: &str, to: &str| {
        let here = folder(&[("m.neuro", &text.replace(from, to))]);
        let done = neuroc(&here, &["run", "m.neuro", "--engine", "interp", "-o", "o.npz"]);
        (done.code, done.err)
    };
    let (code, err) = said("z = 0", "z = 1");
    assert_eq!(code, 0, "{err}");
    for (from, to, expected) in [
        ("weight = 1 nS", "weight = 1 nS / z", "`weight` of `r.b.ExpCond` is infinite"),
        ("weight = 1 nS", "weight = 0 nS / z", "`weight` of `r.b.ExpCond` is not a number"),
        ("weight = 1 nS", "weight = 1 nS * (1 um) / distance", "`weight` of `r.b.ExpCond` of edge 0 is infinite"),
        ("weight = 1 mV", "weight = 1 mV / z", "is infinite"),
        ("times(1 ms)", "times(0 ms / z)", "`t` of `times` is not a number"),
        ("delay = 0.1 ms", "delay = 0 ms / z", "is not a number"),
        ("delay = 1 ms", "delay = 0 ms / z", "`delay` of `r.b.ExpCond` is not a number"),
        ("delay = 1 ms", "delay = 1 ms / z", "`delay` of `r.b.ExpCond` is infinite"),
    ] {
        let (code, err) = said(from, to);
        assert!(code == 1 && err.contains(expected) && err.contains("m.neuro:"), "{to}: {err}");
    }
}

/// Derivatives know nothing of edges in time: who moves one is told so, and the simplex finds it.
#[test]
fn what_moves_a_switch_has_no_gradient() {
    let text = "cell C { state v: mV = 0 mV; v' = -v / 8 ms + inj; input inj: mV/ms }
        network main { population c: C
            input rp: ramp(delay = 2 ms, duration = 9 ms, start = 0 mV/ms, finish = 0.3 mV/ms) -> c.inj }
        run { duration = 20 ms; dt = 0.1 ms; record c.v }
        fit { free rp.duration = 4 .. 14 ms; target c.v = \"rp.csv\" }";
    let here = folder(&[("rp.neuro", text)]);
    let run = ["run", "rp.neuro", "--engine", "interp", "--set", "rp.duration=7ms", "-o", "rp.csv", "--quiet"];
    assert_eq!(neuroc(&here, &run).code, 0);
    let fit =
        |more: &[&str]| neuroc(&here, &[&["fit", "rp.neuro", "--engine", "interp", "-o", "x.set"], more].concat());
    let refused = fit(&[]);
    assert!(
        refused.code != 0
            && refused.err.contains("`rp.duration` moves the time at which something is switched, and has no gradient")
            && refused.err.contains("search = nelder_mead")
            && refused.err.contains("rp.neuro:5"),
        "{}",
        refused.err
    );
    assert_eq!(fit(&["--search", "nelder-mead"]).code, 0);
    let found = fs::read_to_string(here.path().join("x.set")).unwrap();
    let duration: f64 =
        found.split(['=', ' ']).find_map(|word| word.trim().trim_end_matches("ms").parse().ok()).unwrap();
    assert!((duration - 7.0).abs() < 0.06, "{found}");
    // The heights of the ramp have gradients.
    assert_eq!(fit(&["--free", "rp.finish=0.1..1 mV/ms"]).code, 0);
}

#[test]
fn traces_have_the_units_and_times_that_they_say() {
    let text = "channel L { param gbar = 0.2 mS/cm2; current i = gbar * (v + 60 mV) }
        cell C { compartment s { cm = 1 uF/cm2; v_init = -70 mV; insert L } }
        network main { population c: C }
        run { duration = 10 ms; dt = 0.05 ms; record c.s.v every 0.5 ms from 2 ms }
        fit { free L.gbar = 0.05 .. 1 mS/cm2; target c.s.v = \"v.csv\" }";
    let here = folder(&[("m.neuro", text)]);
    let run = ["run", "m.neuro", "--engine", "interp", "--set", "L.gbar=0.4mS/cm2", "-o", "v.csv", "--quiet"];
    assert_eq!(neuroc(&here, &run).code, 0);
    let written = fs::read_to_string(here.path().join("v.csv")).unwrap();
    let fit = || neuroc(&here, &["fit", "m.neuro", "--engine", "interp", "-o", "x.set", "--json"]);
    let found = || {
        let done = fit();
        assert_eq!(done.code, 0, "{}", done.err);
        let set = fs::read_to_string(here.path().join("x.set")).unwrap();
        assert!(set.contains("0.4"), "{set}");
    };
    found();
    let rows: Vec<[f64; 2]> = written
        .lines()
        .filter_map(|line| line.split_once(',').and_then(|(t, v)| Some([t.parse().ok()?, v.parse().ok()?])))
        .collect();
    let table = |heading: &str, by: [f64; 2]| {
        let rows: Vec<String> = rows.iter().map(|row| format!("{:e},{:e}", row[0] * by[0], row[1] * by[1])).collect();
        fs::write(here.path().join("v.csv"), format!("{heading}\n{}\n", rows.join("\n"))).unwrap();
    };
    table("t (s),v (V)", [1e-3, 1e-3]);
    found();
    table("t_us,v (uV)", [1e3, 1e3]);
    found();
    table("t (ms),i (nA)", [1.0, 1.0]);
    let refused = fit();
    assert!(refused.code != 0 && refused.err.contains("has a current"), "{}", refused.err);
}

#[test]
fn results_and_artefacts_go_where_they_are_sent() {
    let text = "cell C { state v: mV = 1 mV; v' = -v / 8 ms } network main { population c: C }
        run { duration = 1 ms; dt = 0.1 ms; record c.v }";
    let here = folder(&[("net.v1.neuro", text), ("net.v2.neuro", text)]);
    for name in ["net.v1", "net.v2"] {
        let done = neuroc(&here, &["run", &format!("{name}.neuro"), "--engine", "interp"]);
        assert!(done.code == 0 && here.path().join(format!("{name}.npz")).exists(), "{}", done.err);
    }
    let emitted = neuroc(&here, &["emit", "net.v1.neuro", "--stage", "ir", "-o", "-"]);
    assert!(emitted.out.contains("fn step") && !here.path().join("-").exists(), "{}", emitted.err);
    let nowhere = neuroc(&here, &["fit", "net.v1.neuro", "-o", "nowhere/x.set"]);
    assert!(nowhere.code == 2 && nowhere.err.contains("the directory `nowhere` does not exist"), "{}", nowhere.err);
    let nowhere = neuroc(&here, &["train", "net.v1.neuro", "-o", "nowhere/x.npz"]);
    assert!(nowhere.code == 2 && nowhere.err.contains("the directory `nowhere` does not exist"), "{}", nowhere.err);
}

#[test]
fn bounds_and_goals_of_fits_are_possible() {
    let text = "channel L { param gbar = 0.2 mS/cm2; current i = gbar * (v + 60 mV) }
        cell C { compartment s { cm = 1 uF/cm2; v_init = -70 mV; insert L }
            spike when s.v crosses 0 mV }
        network main { population c: C }
        run { duration = 10 ms; dt = 0.05 ms; record c.s.v every 0.5 ms; record spikes of c }
        fit { free L.gbar = 0.05 .. 1 mS/cm2
            target mean(c.s.v) = -65 mV within 1 mV }";
    let said = |from: &str, to: &str, command: &str| {
        let here = folder(&[("m.neuro", &text.replace(from, to))]);
        let done = neuroc(&here, &[command, "m.neuro"]);
        (done.code, done.err)
    };
    assert_eq!(said("", "", "check"), (0, String::new()));
    // The bound is named, where it stands.
    let (code, err) = said("free L.gbar = 0.05 .. 1 mS/cm2", "free s.cm = -1 .. 2 uF/cm2", "check");
    assert!(
        code == 1 && err.contains("a bound of `c.s.cm`") && err.contains("free s.cm = -1 ..") && !err.contains("--set"),
        "{err}"
    );
    let (code, err) = said("0.05 .. 1", "-1 .. 1", "check");
    assert!(code == 0 && err.contains("NU0402") && err.contains("a bound of `c.s.L.gbar`"), "{err}");
    for (goal, expected) in [
        ("spike_count(c) = -3", "`spike_count(c)` is not negative"),
        ("first_spike(c) = 30 ms", "`first_spike(c)` is a time within the run"),
    ] {
        let (code, err) = said("mean(c.s.v) = -65 mV within 1 mV", goal, "fit");
        assert!(code == 1 && err.contains(expected), "{err}");
    }
}

/// Gradients of more parameters than few go back, where the engine can; natively it cannot through junctions between dendrites. Places have the names that
/// the file gives them, also in settings.
#[test]
fn places_have_their_names_and_gradients_their_ways() {
    let text = "use std.synapses.{ExpCond}
        channel L { param gbar = 0.2 mS/cm2; param erev = -60 mV; current i = gbar * (v - erev) }
        cell P { section a { length = 50 um; diam = 5 um; compartments = 1 }
            section b { from a(1); length = 100 um; diam = 2 um; compartments = 2 }
            region all { ra = 150 ohm*cm; cm = 1 uF/cm2; v_init = -65 mV; insert L } }
        junction Gap { param g = 1 nS; current i = g * dv }
        network main { population p: P
            population q: P
            drive p.b(0.9) via ExpCond from times(1 ms) { weight = 1 nS }
            connect p.b(0.9) -- q.b(0.9) via Gap { rule = all_to_all } }
        run { duration = 5 ms; dt = 0.05 ms; method = cnexp; record q.a(0.5).v every 0.5 ms }
        fit { free Gap.g = 0.1 .. 10 nS, p.all.ra = 50 .. 300 ohm*cm, p.all.cm = 0.5 .. 2 uF/cm2, p.all.L.gbar = 0.05 .. 1 mS/cm2
            free q.all.L.gbar = 0.05 .. 1 mS/cm2, p.all.L.erev = -80 .. -40 mV, q.all.L.erev = -80 .. -40 mV
            iterations = 1
            target q.a(0.5).v = \"q.csv\" }";
    let here = folder(&[("m.neuro", text)]);
    let run =
        |set: &str| neuroc(&here, &["run", "m.neuro", "--engine", "interp", "--set", set, "-o", "q.csv", "--quiet"]);
    for place in ["0.9", "0.75", "0.6"] {
        let done = run(&format!("p.b({place}).ExpCond.tau=3ms"));
        assert_eq!(done.code, 0, "{}", done.err);
    }
    let unknown = run("p.b(0.9).ExpCond.tua=3ms");
    assert!(unknown.code == 2 || unknown.code == 1, "{}", unknown.err);
    assert!(unknown.err.contains("did you mean") && !unknown.err.contains("`5)."), "{}", unknown.err);
    let fit = neuroc(&here, &["fit", "m.neuro", "-o", "x.set"]);
    assert!(fit.code == 0 && fit.err.contains("gradients go forward with the run"), "{}", fit.err);
}

/// What a file says and nobody understands is an error, and no number is lost.
#[test]
fn headings_and_shapes_of_data_are_understood_or_refused() {
    let model = "cell C { param a = 1; param b: mV = 0 mV; state x = a; input q: /ms; x' = q
            state v: mV = 0 mV; v' = -v / 10 ms; spike when v > 1 mV { v = 0 mV } }
        synapse Kick { on event(weight: mV) { v += weight } }
        network main { population c: C[5, 2]; population d: C[3]; population e: C[4]; LINE }
        run { duration = 10 ms; dt = 0.1 ms; method = euler; record c.x every 10 ms }";
    let here = folder(&[
        ("sec.csv", "t (sec),q\n0,0\n100,1\n"),
        ("swapped.csv", "q,t\n0,0\n100,1\n"),
        ("volt.csv", "T (s),q (apples)\n0,0\n100,1\n"),
        ("fine.csv", "Time (s),q\n0,0\n0.1,1\n"),
        ("comma.csv", "a\n1,5\n2,5\n"),
        ("twice.csv", "a,a\n1,2\n"),
        ("inf.csv", "a,inf\n1,2\n2,3\n3,4\n4,5\n5,6\n6,7\n7,8\n8,9\n9,10\n10,11\n"),
    ]);
    let array = |name: &str, shape: (usize, usize)| {
        let file = fs::File::create(here.path().join(name)).unwrap();
        ndarray_npy::WriteNpyExt::write_npy(&ndarray::Array2::<f64>::ones(shape), file).unwrap();
    };
    for (name, shape) in [("three_four.npy", (3, 4)), ("four_three.npy", (4, 3)), ("five_two.npy", (5, 2))] {
        array(name, shape);
    }
    array("two_five.npy", (2, 5));
    array("ten_one.npy", (10, 1));
    let of = |line: &str| {
        fs::write(here.path().join("m.neuro"), model.replace("LINE", line)).unwrap();
        neuroc(&here, &["run", "m.neuro", "--engine", "interp", "--quiet", "-o", "o.csv"])
    };
    let series = |name: &str| of(&format!("input i: series(\"{name}.csv\") * 1 /ms -> c.q"));
    let matrix = |name: &str| {
        of(&format!(
            "connect d -> e via Kick {{ rule = all_to_all; weight = file(\"{name}.npy\") * 1 mV; delay = 1 ms }}"
        ))
    };
    for (done, why) in [
        (series("sec"), "its first column is called `t (sec)`, which is no time"),
        (series("swapped"), "its first column is called `q`, which is no time"),
        (series("volt"), "and `apples` is no unit"),
        (of("param c.a = file(\"comma.csv\", column = \"a\")"), "a decimal point is a `.`, not a `,`"),
        (of("param c.a = file(\"twice.csv\", column = \"a\")"), "it has several columns `a`"),
        (of("param c.a = file(\"five_two.npy\")"), "its shape is [5, 2], but [2, 5] is needed"),
        (matrix("three_four"), "its shape is [3, 4], but [4, 3] is needed: by target"),
    ] {
        assert!(done.code == 1 && done.err.contains(why), "no `{why}` in {}", done.err);
    }
    let fine = [
        series("fine"),
        of("param c.a = file(\"inf.csv\", column = \"a\")"),
        of("param c.a = file(\"two_five.npy\")"),
        of("param c.a = file(\"ten_one.npy\")"),
        matrix("four_three"),
    ];
    fine.iter().for_each(|done| assert_eq!(done.code, 0, "{}", done.err));
}

/// Which cells junctions join depends on no other line; and other populations are joined in other ways.
#[test]
fn junctions_are_drawn_for_the_populations_that_they_join() {
    let flows = |lines: &str| {
        let text = format!(
            "cell P {{ state v: mV = -60 mV; v' = (-60 mV - v - 100 Mohm * i_syn) / 10 ms }}
            junction Gap {{ param g = 1 nS; current i = g * dv }}
            network main {{
                population a: P[8]; population b: P[8]
                init a.v = -60 mV + index * 1 mV; init b.v = -60 mV + index * 1 mV
                {lines}
            }}
            run {{ duration = 1 ms; dt = 0.1 ms; record {{a, b}}.i_gap }}"
        );
        let checked = neuroc::driver::check_text("m.neuro", Path::new(""), text, &neuroc::hir::Sources);
        let (result, _) = crate::models::outcome(&checked, &Default::default(), crate::models::Way::Optimized);
        ["a.i_gap", "b.i_gap"].map(|name| {
            let series = result.series_named(name).expect("it is recorded");
            (0..8).map(|cell| series.values.get(0, cell)).collect::<Vec<f64>>()
        })
    };
    let own = "connect a -- a via Gap { rule = probability(0.5) }";
    let [alone, _] = flows(&format!("{own}; connect b -- b via Gap {{ rule = all_to_all }}"));
    for before in
        ["connect b -- b via Gap { rule = all_to_all }", "connect b -- b via Gap(g = 2 nS) { rule = probability(0.5) }"]
    {
        assert_eq!(flows(&format!("{before}; {own}"))[0], alone, "{before}");
    }
    let [a, b] = flows(&format!("{own}; connect b -- b via Gap {{ rule = probability(0.5) }}"));
    assert!(a == alone && a != b);
    // A second line between the same cells draws again.
    assert!(
        flows(&format!("{own}; {own}; connect b -- b via Gap {{ rule = all_to_all }}"))[0]
            != alone.iter().map(|x| 2.0 * x).collect::<Vec<f64>>()
    );
}

/// The pictures of networks, with bins of one's own.
#[test]
fn correlations_and_spectra_are_drawn() {
    let here = folder(&[(
        "m.neuro",
        "cell C { state v: mV = 0 mV; v' = -v / 10 ms; spike when poisson(100 Hz) }
        network main { population c: C[30] }
        run { duration = 500 ms; dt = 0.5 ms; record spikes of c }",
    )]);
    assert_eq!(neuroc(&here, &["run", "m.neuro", "--engine", "interp", "--quiet", "-o", "o.npz"]).code, 0);
    for (kind, bin, said) in [
        ("correlation", "4ms", "435 pairs of 30 cells with spikes, bins of 4 ms"),
        ("spectrum", "1ms", "rate of c · power in bins of 1 ms and pieces of 64 ms"),
        ("rates", "50ms", "rate per cell in bins of 50 ms"),
    ] {
        let done = neuroc(&here, &["plot", "o.npz", "--kind", kind, "--bin", bin, "-o", "o.svg"]);
        assert_eq!(done.code, 0, "{}", done.err);
        let picture = fs::read_to_string(here.path().join("o.svg")).unwrap();
        assert!(picture.contains(said), "{kind}: no `{said}`");
    }
    assert_eq!(neuroc(&here, &["plot", "o.npz", "--kind", "spectrum", "--bin", "900ms", "-o", "o.svg"]).code, 2);
}

/// A training that goes on keeps what is best, whatever comes after it.
#[test]
fn a_training_that_goes_on_keeps_its_best() {
    use ndarray::{Array1, arr2};
    let text = "cell C { param x = 0; param k = 0.1; state v: mV = 0 mV; v' = (k * x * 1 mV - v) / 5 ms }
        network main { population c: C[2] }
        run { duration = 5 ms; dt = 1 ms; record c.v }
        train { data = \"d.npz\"; input = c.x; learn c.k; loss = mse(last(c.v), correct = 1 mV, incorrect = 0 mV)
            optimizer = adam(lr = 0.2); epochs = 40; test = 0.5; patience = 3 }";
    let here = folder(&[("m.neuro", text)]);
    let mut npz = ndarray_npy::NpzWriter::new(fs::File::create(here.path().join("d.npz")).unwrap());
    npz.add_array("x", &arr2(&[[1.0, 0.0], [0.0, 1.0], [1.0, 0.1], [0.1, 1.2]])).unwrap();
    npz.add_array("y", &Array1::from(vec![0_i64, 1, 0, 1])).unwrap();
    npz.finish().unwrap();
    let train = |more: &[&str]| {
        let done = neuroc(&here, &[&["train", "m.neuro", "--engine", "interp"], more].concat());
        assert_eq!(done.code, 0, "{}", done.err);
        done.err
    };
    let said = train(&["-o", "whole.npz"]);
    train(&["-o", "some.npz", "--epochs", "2"]);
    assert!(train(&["-o", "rest.npz", "--resume", "some.npz"]).contains("was least in epoch"), "{said}");
    let read = |name: &str| neuroc::train::Trained::read(&here.path().join(name)).unwrap();
    assert_eq!(read("rest.npz"), read("whole.npz"));
    assert!(read("some.npz") != read("whole.npz"));
}

/// Whatever delay it has, what arrives in the last step in which a cell is refractory is lost.
#[test]
fn arrivals_in_the_last_refractory_step_are_lost() {
    for delay in ["0 ms", "1 ms", "2 ms"] {
        let text = format!(
            "cell Src {{ param tw = 5.5 ms; state q: ms = 0 ms; q' = 1; spike when q > tw {{ q = -1000 ms }} }}
            cell Lif {{ state v: mV = 0 mV; v' = 0 mV/ms; spike when v > 1 mV {{ v = 0 mV; refractory 3 ms }} }}
            synapse Kick {{ on event(weight: mV) {{ v += weight }} }}
            network main {{
                population aa: Src
                population src: Src[12]
                param src.tw = 0.5 ms + 1 ms * index - {delay}
                population b: Lif[12]
                param aa.tw = 3.5 ms
                connect aa -> b via Kick {{ rule = all_to_all; weight = 2 mV; delay = 1 ms }}
                connect src -> b via Kick as late {{ rule = one_to_one; weight = 0.5 mV; delay = {delay} }}
            }}
            run {{ duration = 16 ms; dt = 1 ms; arrivals = after_threshold; record b.v; record spikes of b }}"
        );
        let checked = neuroc::driver::check_text("m.neuro", Path::new(""), &text, &neuroc::hir::Sources);
        let (result, _) = crate::models::outcome(&checked, &Default::default(), crate::models::Way::Optimized);
        let v = result.series_named("b.v").expect("it is recorded");
        let last = v.t.len() - 1;
        // All spike in step 6, and wait until step 9; the source of cell k sends k + 1 steps after the start, less the delay.
        let lost = |cell: usize| v.values.get(last, cell) == 0.0;
        assert!((5..9).all(lost) && !lost(9) && !lost(10), "{delay}: {:?}", (0..12).map(lost).collect::<Vec<_>>());
    }
}

/// What is timed for `bench` are edges among the cells of one space, and populations have several sizes.
#[test]
fn bench_takes_populations_of_different_sizes() {
    let here = folder(&[(
        "m.neuro",
        "cell P { state v: mV = -62 mV; v' = (-(v + 62 mV) * 5 nS - i_syn) / 100 pF }
        junction Lin { param g = 0.8 nS; current i = g * dv }
        network main { population w: P[2]; population x: P[3]; connect w -- x via Lin { rule = all_to_all } }
        run { duration = 40 ms; dt = 0.1 ms; record x.v every 1 ms }",
    )]);
    let cache = std::path::PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("kernels").display().to_string();
    let done =
        neuroc(&here, &["bench", "m.neuro", "--steps", "40", "--repeat", "1", "--threads", "1", "--cache", &cache]);
    assert_eq!(done.code, 0, "{}", done.err);
}

#[test]
fn a_sweep_over_seeds_has_one_number_of_recorded_edges() {
    let model = |rule: &str| {
        format!(
            "use std.cells.generators.Poisson
            use std.cells.lif.Lif
            use std.plasticity.Stdp
            network main {{
                population s: Poisson[6]; population c: Lif[4]; param s.rate = 200 Hz
                connect s -> c via Stdp(w_max = 2 nS) {{ rule = {rule}; weight = 1 nS; delay = 0.1 ms }}
            }}
            run {{ duration = 1 ms; dt = 0.1 ms; record s.c.Stdp.weight; sweep seed = 1 .. 5 in 5 steps }}"
        )
    };
    let run = ["run", "m.neuro", "--engine", "interp", "-o", "o.npz"];
    let here = folder(&[("m.neuro", &model("probability(p = 0.4)"))]);
    let done = neuroc(&here, &run);
    assert_eq!(done.code, 1, "{}", done.err);
    for part in
        ["`s.c.Stdp.weight` is recorded of ", "in the run with seed = ", "edges are drawn anew", "`fixed_in_degree`"]
    {
        assert!(done.err.contains(part), "no `{part}` in {}", done.err);
    }
    assert!(!here.path().join("o.npz").exists() && !done.err.contains("contradict"), "{}", done.err);
    fs::write(here.path().join("m.neuro"), model("fixed_in_degree(n = 3)")).unwrap();
    let done = neuroc(&here, &run);
    assert_eq!(done.code, 0, "{}", done.err);
}

/// One spike that a method misses is little time, but no small thing.
#[test]
fn verify_tells_a_spike_that_a_long_step_misses() {
    let here = folder(&[(
        "m.neuro",
        "use std.cells.squid.SquidAxon
        network main {
            population squid: SquidAxon
            input volley: 400 uA/cm2 * exp(-((t - 405.22 ms) / 0.1 ms)^2) -> squid.soma
        }
        run { duration = 1 s; dt = 2 ms; celsius = 6.3 degC; record spikes of squid }",
    )]);
    let cache = std::path::PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("kernels").display().to_string();
    let done = neuroc(&here, &["verify", "m.neuro", "--other", "adaptive", "--cache", &cache]);
    assert_eq!(done.code, 1, "{}{}", done.out, done.err);
    let said = "SPIKES ARE MISSING: exp_euler has 0 spikes of `squid` and adaptive has 1, from 405";
    assert!(done.out.contains(said) && done.out.contains("exp_euler misses something"), "{}", done.out);
    assert!(done.err.contains("one method has spikes that the other one lacks"), "{}", done.err);
}

#[test]
fn info_counts_the_edges_of_a_file() {
    let edges = "source,target\n0,1\n1,2\n2,3\n3,4\n4,5\n5,6\n6,7\n7,8\n8,9\n9,10\n10,11\n11,0\n";
    let model = "cell P { state v: mV = -62 mV; v' = (-(v + 62 mV) * 5 nS - i_syn) / 100 pF }
        junction Lin { param g = 0.8 nS; current i = g * dv }
        network main { population w: P[12]; connect w -- w via Lin { rule = edges(\"e.csv\") } }
        run { duration = 1 ms; dt = 0.1 ms; record w.v }";
    let here = folder(&[("m.neuro", model), ("e.csv", edges)]);
    let done = neuroc(&here, &["info", "m.neuro"]);
    assert!(done.code == 0 && done.out.lines().any(|line| line == "24 connections"), "{}{}", done.out, done.err);
}

/// What every synapse has for itself is solved from one event to the next.
#[test]
fn a_step_is_not_too_long_for_what_synapses_remember() {
    let here = folder(&[(
        "m.neuro",
        "use std.cells.generators.Poisson
        use std.cells.lif.Lif
        use std.plasticity.TsodyksMarkram
        network main {
            population a: Poisson; population b: Lif; param a.rate = 20 Hz
            connect a -> b via TsodyksMarkram(tau_facil = 0.01 ms) { rule = all_to_all; weight = 1 nS; delay = 1 ms }
        }
        run { duration = 10 ms; dt = 0.1 ms; record b.v }",
    )]);
    let done = neuroc(&here, &["check", "m.neuro"]);
    assert!(done.code == 0 && !done.err.contains("NU0406"), "{}", done.err);
    let done = neuroc(&here, &["run", "m.neuro", "--engine", "interp", "-o", "o.npz"]);
    assert!(done.code == 0 && !done.err.contains("NU0406"), "{}", done.err);
}

/// Defaults are told as the model has them.
#[test]
fn a_crate_tells_its_defaults_as_they_were_written() {
    let here = folder(&[(
        "m.neuro",
        "cell P { param g = 0.8 nS; param c = 0.3 pF; state v: mV = -62 mV; v' = -(v + 62 mV) * g / c }
        network main { population w: P[2] }
        run { duration = 1 ms; dt = 0.1 ms; record w.v }",
    )]);
    let done = neuroc(&here, &["build", "m.neuro", "-o", "made"]);
    assert_eq!(done.code, 0, "{}", done.err);
    let readme = fs::read_to_string(here.path().join("made/README.md")).unwrap();
    for row in ["| nS | 0.8 |", "| pF | 0.3 |"] {
        assert!(readme.contains(row), "no `{row}` in {readme}");
    }
}

/// What arrives is set to 0 by the kernel that reads it where that is its only reader: of point neurons and of places on branched cells, not of cells that
/// no events come to.
#[test]
fn sums_of_arrivals_are_cleared_by_their_only_reader() {
    for (example, sums) in [
        ("vogels_abbott_cuba", &["0 e.e.excitation'arrived, 1 i.e.inhibition'arrived", "0 e.i.excitation'arrived"][..]),
        ("dendritic_ring", &["0 ring.ring.dend(0.5).ExpCond'arrived"]),
        ("squid", &[]),
    ] {
        let model = format!("{}/examples/{example}.neuro", env!("CARGO_MANIFEST_DIR"));
        let done = neuroc(&folder(&[]), &["emit", &model, "--stage", "plan"]);
        assert_eq!(done.code, 0, "{}", done.err);
        let plan = done.out;
        assert_eq!(plan.contains("read once, then 0: "), !sums.is_empty(), "{example}");
        for sum in sums {
            assert!(plan.contains(&format!("read once, then 0: {sum}")), "{example}: {plan}");
        }
    }
}

const DECAY: &str = "cell P { state x = 1; x' = -x / 2 ms }
        network main { population p: P }
        run { duration = 2 ms; dt = 0.1 ms; record p.x }";

/// Nothing that a run is made from is lost to what it writes.
#[test]
fn no_output_takes_the_place_of_an_input() {
    let driven = "use std.cells.lif.Lif
        use std.synapses.ExpCond
        network main { population b: Lif; drive b via ExpCond from spikes(\"in.csv\") { weight = 20 nS } }
        run { duration = 5 ms; dt = 0.1 ms; record b.v }";
    let here = folder(&[("m.neuro", DECAY), ("d.neuro", driven), ("in.csv", "t,i\n1,0\n"), ("p.set", "x = 2\n")]);
    let texts = || ["m.neuro", "in.csv", "p.set"].map(|name| fs::read(here.path().join(name)).unwrap());
    let before = texts();
    for arguments in [
        &["run", "m.neuro", "--save", "m.neuro"][..],
        &["emit", "m.neuro", "--stage", "ir", "-o", "./m.neuro"],
        &["run", "d.neuro", "-o", "in.csv"],
        &["run", "m.neuro", "--params", "p.set", "--save", "p.set"],
    ] {
        let done = neuroc(&here, arguments);
        assert!(done.code == 2 && done.err.contains("it is read for this, and would be lost"), "{}", done.err);
        assert_eq!(texts(), before, "{arguments:?}");
    }
    // A fit may go on from its own result, and leaves the trace that it comes near to.
    let decays = "cell P { param k = 0.5 /ms; state x = 1; x' = -k * x }
        network main { population p: P }
        run { duration = 2 ms; dt = 0.1 ms; record p.x }";
    let trace: String =
        (0..=20).map(|i| format!("{:.1},{}\n", f64::from(i) / 10.0, (-f64::from(i) / 25.0).exp())).collect();
    fs::write(here.path().join("f.neuro"), decays).unwrap();
    fs::write(here.path().join("t.csv"), &trace).unwrap();
    let fit = |more: &[&str]| {
        let first = ["fit", "f.neuro", "--engine", "interp", "--free", "k=0.1..1/ms", "--target", "p.x=t.csv", "-o"];
        neuroc(&here, &[&first[..], more].concat())
    };
    let done = fit(&["t.csv"]);
    assert!(done.code == 2 && done.err.contains("would be lost"), "{}", done.err);
    assert_eq!(fs::read_to_string(here.path().join("t.csv")).unwrap(), trace);
    for more in [&["f.set"][..], &["f.set", "--params", "f.set"]] {
        let done = fit(more);
        assert_eq!(done.code, 0, "{}", done.err);
    }
    // A chain of runs has one checkpoint.
    assert_eq!(neuroc(&here, &["run", "m.neuro", "--save", "s.npz", "-o", "a.npz"]).code, 0);
    assert_eq!(neuroc(&here, &["run", "m.neuro", "--load", "s.npz", "-o", "s.npz"]).code, 2);
    let done =
        neuroc(&here, &["run", "m.neuro", "--duration", "4ms", "--load", "s.npz", "--save", "s.npz", "-o", "b.npz"]);
    assert_eq!(done.code, 0, "{}", done.err);
}

/// Runs with other tolerances are other runs, and their results and pages say so.
#[test]
fn results_say_with_which_tolerances_they_were_made() {
    let here = folder(&[("m.neuro", DECAY)]);
    let arguments =
        ["--method", "adaptive", "--rtol", "1e-4", "--max-step", "0.5ms", "-o", "o.npz", "--report", "o.html"];
    let done = neuroc(&here, &[&["run", "m.neuro"][..], &arguments].concat());
    assert_eq!(done.code, 0, "{}", done.err);
    let result = neuroc::results::RunResult::read_npz(&here.path().join("o.npz")).unwrap();
    let options = &result.meta["options"];
    assert_eq!((options["rtol"].as_f64(), options["max_step_ms"].as_f64()), (Some(1e-4), Some(0.5)));
    let page = fs::read_to_string(here.path().join("o.html")).unwrap();
    assert!(page.contains("2 ms · adaptive · rtol 0.0001 · ") && !page.contains("in steps of"));
    assert_eq!(neuroc(&here, &["run", "m.neuro", "-o", "e.npz"]).code, 0);
    let result = neuroc::results::RunResult::read_npz(&here.path().join("e.npz")).unwrap();
    assert!(result.meta["options"].get("rtol").is_none());
}

/// What compares nothing does not say that all is well.
#[test]
fn verify_refuses_what_compares_nothing() {
    let here = folder(&[("m.neuro", DECAY)]);
    let done = neuroc(&here, &["verify", "m.neuro", "--method", "heun", "--other", "heun"]);
    assert!(done.code == 2 && done.err.contains("`--other heun` compares nothing"), "{}", done.err);
    let done = neuroc(&here, &["verify", "m.neuro", "--precision", "f32", "--within", "1e-30"]);
    assert!(done.code == 2 && done.err.contains("double precision"), "{}", done.err);
}

/// Habits of others, and a help that would have made the mistake worse.
#[test]
fn help_for_habits_is_not_another_mistake() {
    for (model, said) in [
        ("const x = |2|\n", "write `abs(x)`"),
        (
            "cell P { state x = 1; x' = -x / 2 ms }\nnetwork n { population p: P }\nrun { record p.x every = 0.1 ms }",
            "it has no `=`",
        ),
        (
            "cell P { param k = 1; state x = 1; x' = -k * x / 2 ms }\nnetwork n { population p: P }\nrun { sweep p.k = 1, 2 }",
            "in brackets",
        ),
        (
            "use std.synapses.ExpCond\nuse std.cells.lif.Lif\nnetwork n { population p: Lif[2]\n connect p -> p via ExpCond { rule = all_to_all; weight ~ gaussian(1 nS, 0.1 nS) } }\nrun { record p.v }",
            "`normal(1 nS, 0.1 nS)`",
        ),
    ] {
        let done = neuroc(&folder(&[("m.neuro", model)]), &["check", "m.neuro"]);
        assert!(done.code == 1 && done.err.contains(said), "{model}: {}", done.err);
    }
    let channel = "channel L { param gbar = 1 mS/cm2; param erev = 1 mV; current i = gbar * v * erev }";
    let done = neuroc(&folder(&[("m.neuro", channel)]), &["check", "m.neuro"]);
    assert!(done.code == 1 && !done.err.contains("erev / erev"), "{}", done.err);
}

/// A checkpoint without spikes on their way is for every engine; with some, XLA refuses it.
#[cfg(feature = "xla")]
#[test]
fn xla_goes_on_where_no_spike_is_on_its_way() {
    if crate::pjrt::cpu().is_none() {
        return;
    }
    let here = folder(&[(
        "m.neuro",
        "use std.cells.lif.Lif
        use std.synapses.ExpCond
        network main {
            population a: Lif[3]
            connect a -> a via ExpCond { rule = all_to_all; weight = 1 nS; delay = 0.5 ms }
            drive a via ExpCond from times(10 ms, 10.5 ms, 11 ms) { weight = 60 nS }
        }
        run { duration = 20 ms; dt = 0.1 ms; record a.v; record spikes of a }",
    )]);
    let ran = |arguments: &[&str]| neuroc(&here, &[&["run", "m.neuro"][..], arguments].concat());
    let read = |name: &str| neuroc::results::RunResult::read_npz(&here.path().join(name)).unwrap();
    assert_eq!(ran(&["-o", "whole.npz"]).code, 0);
    let first = read("whole.npz").spikes[0].t[0];
    let just_behind = format!("{:.1}ms", first + 0.2);
    assert_eq!(ran(&["--duration", "5ms", "--save", "s.npz", "-o", "a.npz"]).code, 0);
    assert_eq!(ran(&["--duration", &just_behind, "--save", "late.npz", "-o", "b.npz"]).code, 0);
    let done = ran(&["--engine", "xla", "--precision", "f64", "--load", "s.npz", "-o", "x.npz"]);
    assert_eq!(done.code, 0, "{}", done.err);
    assert_eq!(ran(&["--load", "s.npz", "-o", "n.npz"]).code, 0);
    assert_eq!(read("x.npz").spikes, read("n.npz").spikes);
    let done = ran(&["--engine", "xla", "--precision", "f64", "--load", "late.npz", "-o", "y.npz"]);
    assert!(done.code == 1 && done.err.contains("on their way"), "{}", done.err);
}

/// Numbers that a file gives one by one belong to cells, whichever of their compartments an edge is drawn to.
#[test]
fn what_files_say_of_edges_finds_them_in_sections() {
    let text = "use std.synapses.{ExpCond}
        use std.channels.hh.{Leak}
        cell Source { state v: mV = 0 mV; v' = 1 mV/ms; spike when v > 1 mV { v = -1000 mV } }
        cell Branched {
            section soma { length = 20 um; diam = 20 um; compartments = 1 }
            section d { from soma(1); length = 200 um; diam = 2 um; compartments = 10 }
            region all { ra = 100 ohm*cm; cm = 1 uF/cm2; v_init = -65 mV; insert Leak(gbar = 0.1 mS/cm2, erev = -65 mV) }
        }
        network main {
            population a: Source[2, 2]
            population p: Branched[GRID]
            init a.v = -2 mV * index
            connect a -> p.d via ExpCond(tau = 1000 s) { RULE }
        }
        run { duration = 20 ms; dt = 0.1 ms; method = cnexp; record p.d.ExpCond.g every 1 ms }";
    // Source 0 to 3, and to which of two cells it has which weight and delay.
    let lines = [(3, 0), (0, 0), (1, 0), (2, 0), (0, 1), (1, 1), (3, 1), (2, 1)];
    let weight = |source: usize, target: usize| (1 + source + 4 * target) as f64;
    let mut listed = "source,target,weight,delay\n".to_string();
    for (source, target) in lines {
        listed += &format!("{source},{target},{},{}\n", weight(source, target), 1 + target);
    }
    let by_target: Vec<f64> = (0..2).flat_map(|target| (0..4).map(move |source| weight(source, target))).collect();
    let vector = format!("w\n{}\n", by_target.iter().map(f64::to_string).collect::<Vec<_>>().join("\n"));
    let here = folder(&[("e.csv", &listed), ("w.csv", &vector), ("k.csv", "w\n1\n2\n3\n4\n")]);
    let matrix = ndarray::Array2::from_shape_vec((2, 4), by_target).unwrap();
    ndarray_npy::write_npy(here.path().join("w.npy"), &matrix).unwrap();
    // What arrives at a cell in all, after each source.
    let arrived = |rule: &str, grid: &str, cells: usize| -> Vec<Vec<f64>> {
        let model = text.replace("RULE", rule).replace("GRID", grid);
        fs::write(here.path().join("m.neuro"), model).unwrap();
        let done = neuroc(&here, &["run", "m.neuro", "--engine", "interp", "-o", "o.npz"]);
        assert_eq!(done.code, 0, "{rule}: {}", done.err);
        let result = RunResult::read_npz(&here.path().join("o.npz")).unwrap();
        let series = &result.series[0];
        let width = series.values.shape().1 / cells;
        let sum = |row: usize, cell: usize| (0..width).map(|at| series.values.get(row, cell * width + at)).sum::<f64>();
        // Sources spike after 1, 3, 5 and 7 ms.
        (0..4)
            .map(|source| (0..cells).map(|cell| sum(3 + 2 * source, cell) - sum(1 + 2 * source, cell)).collect())
            .collect()
    };
    let expected: Vec<Vec<f64>> = (0..4).map(|source| vec![weight(source, 0), weight(source, 1)]).collect();
    let near = |found: &[Vec<f64>], expected: &[Vec<f64>], rule: &str| {
        for (found, expected) in found.iter().flatten().zip(expected.iter().flatten()) {
            assert!((found - expected).abs() < 1e-3 * expected.max(1.0), "{rule}: {found}, not {expected}");
        }
    };
    for rule in [
        "rule = edges(\"e.csv\"); weight = file(\"e.csv\", column = \"weight\") * 1 nS; delay = 0.5 ms",
        "rule = all_to_all; weight = file(\"w.csv\") * 1 nS; delay = 0.5 ms",
        "rule = all_to_all; weight = file(\"w.npy\") * 1 nS; delay = 0.5 ms",
    ] {
        near(&arrived(rule, "2", 2), &expected, rule);
    }
    // A kernel of two by two cells sees each source with a number of its own.
    let rule = "rule = convolution(kernel = 2); weight = file(\"k.csv\") * 1 nS; delay = 0.5 ms";
    near(&arrived(rule, "1, 1", 1), &[vec![1.0], vec![2.0], vec![3.0], vec![4.0]], rule);
    // The second cell hears each source a step of records later.
    let rule = "rule = edges(\"e.csv\"); weight = 1 nS; delay = (file(\"e.csv\", column = \"delay\") - 0.5) * 1 ms * 2";
    let late = arrived(rule, "2", 2);
    near(&late, &[vec![1.0, 0.0], vec![1.0, 1.0], vec![1.0, 1.0], vec![1.0, 1.0]], rule);
}

/// The last number of each column, of a run of the interpreter.
fn last_of(model: &str, arguments: &[&str]) -> Vec<f64> {
    last_by(model, &[&["--engine", "interp"], arguments].concat())
}

fn last_by(model: &str, arguments: &[&str]) -> Vec<f64> {
    let here = folder(&[("m.neuro", model)]);
    let done = neuroc(&here, &[&["run", "m.neuro", "-o", "o.npz"], arguments].concat());
    assert_eq!(done.code, 0, "{model}: {}", done.err);
    let result = RunResult::read_npz(&here.path().join("o.npz")).unwrap();
    let last = |series: &neuroc::results::Series| {
        let (rows, columns) = series.values.shape();
        (0..columns).map(|column| series.values.get(rows - 1, column)).collect::<Vec<_>>()
    };
    result.series.iter().flat_map(last).collect()
}

/// What a junction model says of its parameters holds in its own lines, whatever the network has.
#[test]
fn defaults_of_junctions_name_their_own() {
    let model = |params: &str, lines: &str| {
        format!(
            "junction Gap {{ param g = 1 nS; param h = 2 * g; current i = h * dv }}
            cell C {{ state v: mV = 0 mV; v' = -i_syn / 100 pF }}
            network main {{ {params} population a: C; population b: C; init a.v = 10 mV; {lines} }}
            run {{ duration = 5 ms; dt = 0.1 ms; record {{a, b}}.v every 5 ms }}"
        )
    };
    let line = "connect a -- b via Gap { rule = one_to_one }";
    let alone = last_of(&model("", line), &[]);
    let same = |a: &[f64], b: &[f64]| assert!(a.iter().zip(b).all(|(a, b)| (a - b).abs() < 1e-12), "{a:?} {b:?}");
    // Of 2 nS and 100 pF on both sides.
    let expected = 5.0 + 5.0 * (-4.0f64 * 5.0 / 100.0).exp();
    assert!((alone[0] - expected).abs() < 0.01, "{alone:?}, not {expected}");
    same(&last_of(&model("param big = 50 nS * 1;", line), &[]), &alone);
    same(&last_of(&model("param pure = 3;", line), &[]), &alone);
    let closed = format!("connect a -- b via Gap as A(g = 50 nS, h = 0 nS) {{ rule = one_to_one }}\n{line}");
    same(&last_of(&model("", &closed), &[]), &alone);
    // What follows from a parameter follows what it is set to.
    let given = "connect a -- b via Gap(g = 3 nS) { rule = one_to_one }";
    let set = last_of(&model("", line), &["--set", "Gap.g=3nS"]);
    same(&last_of(&model("", given), &[]), &set);
    assert!((set[0] - alone[0]).abs() > 1.0, "{set:?}");
    // The second line takes a name that no other has.
    let named = format!("connect a -- b via Gap as Gap_2(h = 0 nS) {{ rule = one_to_one }}\n{line}\n{line}");
    let twice = format!("{line}\n{line}");
    same(&last_of(&model("", &named), &[]), &last_of(&model("", &twice), &[]));
}

/// Arguments that say the same are the same, numbers or not.
#[test]
fn lines_with_one_argument_share_a_receptor() {
    let model = |tau: &str| {
        format!(
            "use std.cells.generators.Regular
            use std.cells.lif.LifCond
            use std.synapses.ExpCond
            network main {{
                param tt = 5 ms
                population a: Regular[1]
                population b: Regular[1]
                population c: LifCond[1]
                connect a -> c via ExpCond as S(tau = {tau}) {{ rule = all_to_all; weight = 1 nS; delay = 1 ms }}
                connect b -> c via ExpCond as S(tau = {tau}) {{ rule = all_to_all; weight = 1 nS; delay = 1 ms }}
            }}
            run {{ duration = 30 ms; dt = 0.1 ms; record c.S.g }}"
        )
    };
    assert_eq!(last_of(&model("tt"), &[]), last_of(&model("5 ms"), &[]));
    assert_eq!(last_of(&model("2 * tt / 2"), &[]), last_of(&model("5 ms"), &[]));
}

/// What gates have without saying so hides no name of the channel.
#[test]
fn a_gate_reads_the_names_of_its_channel() {
    let model = |members: &str| {
        format!(
            "channel X {{ param gbar = 0.1 mS/cm2; param erev = 20 mV; {members} }}
            cell C {{ compartment soma {{ cm = 1 uF/cm2; v_init = -65 mV; insert X }} }}
            network main {{ population c: C }}
            run {{ duration = 5 ms; dt = 0.1 ms; record c.soma.{{v, X.m}} }}"
        )
    };
    let literal = last_of(&model("gate m { alpha = 0.2 / 3 ms; beta = (1 - 0.2) / 3 ms; init = 0.35 }"), &[]);
    let named =
        "param inf = 0.2; param tau = 3 ms; gate m { alpha = inf / tau; beta = (1 - inf) / tau; init = inf + 0.15 }";
    assert_eq!(last_of(&model(named), &[]), literal);
    // Weights of fractions may come later.
    let fractions = "gate m { fraction w { inf = 0.2; tau = 3 ms } fraction 1 - w { inf = 0.7; tau = 1 ms } }";
    let before = last_of(&model(&format!("param w = 0.3; {fractions}")), &[]);
    assert_eq!(last_of(&model(&format!("{fractions} param w = 0.3")), &[]), before);
}

/// What was refused, or warned of, and is right.
#[test]
fn what_can_be_known_before_the_run_is() {
    let here = folder(&[(
        "m.neuro",
        "use std.channels.hh.Leak
        const side = sqrt(1000 um2 / pi)
        const span = max(1 ms, if side > 10 um then 2 ms else 1 ms)
        function dw(s: mV, tau: ms): mV/ms = s * sqrt(2 / tau) * xi()
        function weak(i: nA): nA = i * uniform(0.4, 0.6)
        cell Noisy { state v: mV = 0 mV; v' = -v / 10 ms + dw(1 mV, 10 ms) }
        cell Ball {
            section soma { length = side; diam = side; compartments = 1 }
            region all { ra = 100 ohm*cm; cm = 1 uF/cm2; v_init = -65 mV; insert Leak(gbar = 0.1 mS/cm2, erev = -65 mV) }
        }
        network main {
            population n: Noisy[2]
            population p: Ball[2]
            input s: pulse(delay = 100 ms, duration = 2 ms, amplitude = weak(1 nA)) -> p.soma(0.5)
        }
        run { duration = span; dt = 0.1 ms; method = cnexp; record n.v; record p.soma(0.5).v }",
    )]);
    let run = |arguments: &[&str]| {
        neuroc(&here, &[&["run", "m.neuro", "--engine", "interp", "-o", "o.npz"], arguments].concat())
    };
    let done = run(&[]);
    assert!(done.code == 0 && done.err.contains("after the end of the run"), "{}", done.err);
    let done = run(&["--set", "s.delay=1ms"]);
    assert!(done.code == 0 && !done.err.contains("after the end of the run"), "{}", done.err);
}

/// Random numbers of an input are its own, though a parameter has its name.
#[test]
fn an_input_and_a_parameter_of_one_name_draw_apart() {
    let here = folder(&[(
        "m.neuro",
        "cell C { param drive: nA = 0 nA; state v: mV = 0 mV; v' = -i_syn / 100 pF + 0 * drive / 1 pF }
        network main {
            population p: C[8]
            param p.drive ~ uniform(0 nA, 1 nA)
            input drive: pulse(delay = 0 ms, duration = 1 ms, amplitude = uniform(0 nA, 1 nA)) -> p
        }
        run { duration = 1 ms; dt = 0.1 ms; record p.v every 1 ms }",
    )]);
    let done = neuroc(&here, &["run", "m.neuro", "--engine", "interp", "-o", "o.npz"]);
    assert_eq!(done.code, 0, "{}", done.err);
    let result = RunResult::read_npz(&here.path().join("o.npz")).unwrap();
    let drawn = result.parameters.iter().find(|p| p.name == "p.drive").map(|p| &p.values);
    let Some(ParameterValues::PerCell { values, .. }) = drawn else { panic!("p.drive differs from cell to cell") };
    for (cell, drive) in values.iter().enumerate() {
        // 1 nA into 100 pF gives 10 mV in 1 ms.
        let v = result.series[0].values.get(1, cell);
        assert!(v.abs() > 1e-3 && (v.abs() - 10.0 * drive).abs() > 1e-9, "{drive}: {v}");
    }
}

/// A quotient that is 0/0 at one place is right there, however far that is from what states usually are; and roots of what may become 0.
#[test]
fn a_limit_is_right_wherever_it_is() {
    let quotient = "cell C { state n = 590; state y = 0; n' = 1 /ms
            y' = (0.1 * (n - 600) / (1 - exp(-(n - 600) / 10)) - y) / 1 ms }
        network main { population c: C }
        run { duration = 11 ms; dt = 1 ms; method = euler; record c.y every 11 ms }";
    let root = "cell C { state s: ms = 590 ms; state z = 0; s' = if s < 600 ms then 1 else 0; z' = (sqrt((600 ms - s) / 7 ms) - z) / 1 ms }
        network main { population c: C }
        run { duration = 15 ms; dt = 1 ms; method = euler; record c.z every 15 ms }";
    for (model, expected) in [(quotient, 1.0), (root, 0.0)] {
        for level in ["0", "2"] {
            let found = last_of(model, &["-O", level])[0];
            assert!((found - expected).abs() < 1e-12, "-O {level}: {found}, not {expected}");
        }
    }
}

/// Where a refractory cell holds its potential, pools of crank_nicolson see it, whether or not a gate does.
#[test]
fn pools_of_refractory_cells_see_the_potential_that_is_held() {
    let model = |insert: &str| {
        format!(
            "channel CaL {{ param gbar = 1 mS/cm2; param erev = 120 mV; gate m instantaneous {{ inf = 1 / (1 + exp(-(v + 20 mV) / 5 mV)) }} }}
            channel Lk {{ param gbar = 0.3 mS/cm2; param erev = -20 mV; current i = gbar * (v - erev) }}
            channel None {{ param gbar = 0 mS/cm2; param erev = 0 mV; gate n {{ inf = 1 / (1 + exp(-v / 5 mV)); tau = 1 ms }} }}
            cell C {{
                compartment soma {{
                    cm = 1 uF/cm2; v_init = -65 mV; insert CaL, Lk{insert}
                    pool Ca: mM {{ init = 1e-4 mM; Ca' = -CaL.i * 1e-4 mM/ms / (1 uA/cm2) - (Ca - 1e-4 mM) / 20 ms }}
                }}
                spike when soma.v crosses -30 mV {{ refractory 5 ms }}
            }}
            network main {{ population c: C }}
            run {{ duration = 8 ms; dt = 0.1 ms; method = crank_nicolson; record c.soma.Ca every 8 ms }}"
        )
    };
    let (bare, with_gate) = (last_of(&model(""), &[])[0], last_of(&model(", None"), &[])[0]);
    assert!(bare > 2e-4 && (bare - with_gate).abs() < 1e-9 * bare, "{bare} {with_gate}");
}

/// Memory and numbers of connections are estimated as they are, and not refused for what no engine makes.
#[test]
fn estimates_are_near() {
    let near = "use std.cells.lif.LifCond
        use std.synapses.ExpCond
        network main {
            population a: LifCond[100, 100]
            population b: LifCond[100, 100]
            connect a -> b via ExpCond { rule = distance(p_max = 0.5, sigma = 1.5); weight = 1 nS; delay = 1 ms }
        }
        run { duration = 1 ms; dt = 0.1 ms; record spikes of b }";
    let told = neuroc(&folder(&[("m.neuro", near)]), &["info", "m.neuro"]);
    let about = told
        .out
        .lines()
        .find_map(|line| line.strip_prefix("about ")?.strip_suffix(" connections")?.parse::<f64>().ok());
    // pi sigma^2 p_max for each cell, at least.
    assert!(about.is_some_and(|about| (30_000.0..200_000.0).contains(&about)), "{}", told.out);
    let late = "use std.cells.lif.LifCond
        use std.synapses.ExpCond
        network main {
            population a: LifCond
            population b: LifCond[20000]
            connect a -> b via ExpCond { rule = all_to_all; weight = 1 nS; delay = 10 s }
        }
        run { duration = 1 ms; dt = 0.01 ms; record spikes of b }";
    let done = neuroc(&folder(&[("m.neuro", late)]), &["run", "m.neuro", "--engine", "interp", "-o", "o.npz"]);
    assert_eq!(done.code, 0, "{}", done.err);
}

/// A column of words does not keep one of numbers from being read.
#[test]
fn a_column_is_read_beside_words() {
    let model = "use std.cells.lif.LifCond
        network main { population a: LifCond[2]; param a.v_threshold = file(\"c.csv\", column = \"level\") * 1 mV }
        run { duration = 1 ms; dt = 0.1 ms; record spikes of a }";
    let run = |csv: &str| {
        neuroc(&folder(&[("m.neuro", model), ("c.csv", csv)]), &["run", "m.neuro", "--engine", "interp", "-o", "o.npz"])
    };
    let done = run("kind,level\nexc,-50\ninh,-52\n");
    assert_eq!(done.code, 0, "{}", done.err);
    let done = run("kind,level\nexc,-50\ninh,high\n");
    assert!(done.code == 1 && done.err.contains("line 3 is not numbers"), "{}", done.err);
}

/// Where nothing is on its way, another time step may go on.
#[test]
fn a_checkpoint_without_events_takes_another_step() {
    let model = |weight: &str| {
        format!(
            "use std.cells.lif.LifCond
            use std.synapses.ExpCond
            network main {{
                population a: LifCond[2]
                connect a -> a via ExpCond {{ rule = all_to_all; weight = 1 nS; delay = 5 ms }}
                drive a via ExpCond from times(4 ms) {{ weight = {weight} }}
            }}
            run {{ duration = 10 ms; dt = 0.1 ms; record a.v; record spikes of a }}"
        )
    };
    for (weight, fine) in [("1 nS", true), ("900 nS", false)] {
        let here = folder(&[("m.neuro", &model(weight))]);
        let run = |arguments: &[&str]| neuroc(&here, &[&["run", "m.neuro", "--engine", "interp"], arguments].concat());
        assert_eq!(run(&["--duration", "6ms", "--save", "s.npz", "-o", "a.npz"]).code, 0);
        let done = run(&["--load", "s.npz", "--dt", "0.05ms", "-o", "b.npz"]);
        assert!((done.code == 0) == fine && (fine || done.err.contains("events are on their way")), "{}", done.err);
    }
}

/// Nothing is written over what a command reads: data of a `train` block, traces of a `fit`, files beside a table, files in a directory; and no two
/// outputs over each other.
#[test]
fn no_result_takes_the_place_of_what_is_read() {
    let learning = "cell In { param x = 0; param g = 1; state y = 0; y' = (g * x - y) / 1 ms }
        network main { population pixels: In[2] }
        run { duration = 2 ms; dt = 0.1 ms; record pixels.y }
        train { data = \"samples.npz\"; input = pixels.x; loss = cross_entropy(mean(pixels.y)); learn pixels.g; epochs = 1 }";
    let driven = "use std.cells.lif.LifCond
        use std.synapses.ExpCond
        network main { population a: LifCond[2]; drive a via ExpCond from spikes(\"o.spikes.csv\") { weight = 1 nS } }
        run { duration = 2 ms; dt = 0.1 ms; record a.v; record spikes of a }";
    let scaled = "cell C { param z = 1; state v = 0; v' = (z - v) / 1 ms }
        network main { population a: C[3]; param a.z = file(\"rr/z.npy\") * 2 }
        run { duration = 1 ms; dt = 0.1 ms; record a.v }";
    let here = folder(&[
        ("learn.neuro", learning),
        ("drv.neuro", driven),
        ("o.spikes.csv", "population,cell,t_ms\na,0,1\n"),
        ("dir.neuro", scaled),
        ("free.neuro", &scaled.replace("file(\"rr/z.npy\") * 2", "2")),
    ]);
    let mut samples = ndarray_npy::NpzWriter::new(fs::File::create(here.path().join("samples.npz")).unwrap());
    samples.add_array("x", &ndarray::Array2::<f64>::eye(2)).unwrap();
    samples.add_array("y", &ndarray::arr1(&[0i64, 1])).unwrap();
    samples.finish().unwrap();
    // A directory that holds an earlier result.
    let first = neuroc(&here, &["run", "free.neuro", "--engine", "interp", "-o", "rr/"]);
    assert_eq!(first.code, 0, "{}", first.err);
    ndarray_npy::write_npy(here.path().join("rr/z.npy"), &ndarray::arr1(&[1.0, 2.0, 3.0])).unwrap();
    let run = |arguments: &[&str]| neuroc(&here, &[&["run"], arguments, &["--engine", "interp"]].concat());
    for (arguments, kept) in [
        (&["learn.neuro", "-o", "samples.npz"][..], "samples.npz"),
        (&["drv.neuro", "-o", "o.csv"], "o.spikes.csv"),
        (&["dir.neuro", "-o", "rr/"], "rr/z.npy"),
    ] {
        let before = fs::read(here.path().join(kept)).unwrap();
        let done = run(arguments);
        assert!(
            done.code == 2 && done.err.contains("is read for this, and would be lost"),
            "{arguments:?}: {}",
            done.err
        );
        assert_eq!(fs::read(here.path().join(kept)).unwrap(), before, "{kept}");
    }
    for arguments in [
        ["-o", "a.npz", "--save", "./a.npz"],
        ["--save", "x.svg", "--plot", "x.svg"],
        ["--save", "x.html", "--report", "x.html"],
        ["-o", "b.csv", "--save", "b.meta.json"],
        ["-o", "rr/", "--plot", "rr/x.svg"],
    ] {
        let done = run(&[&["free.neuro"], &arguments[..]].concat());
        assert!(done.code == 2 && done.err.contains("cannot both be written"), "{arguments:?}: {}", done.err);
    }
    // Spikes of an earlier table are not those of this one.
    assert_eq!(run(&["drv.neuro", "-o", "p.csv"]).code, 0);
    assert!(here.path().join("p.spikes.csv").exists());
    assert_eq!(run(&["free.neuro", "-o", "p.csv"]).code, 0);
    assert!(!here.path().join("p.spikes.csv").exists());
}

/// A training goes on with the parameters of the same names, in whatever order they learn.
#[test]
fn a_training_that_goes_on_knows_its_parameters_by_name() {
    use ndarray::{Array1, arr2};
    let text = |learn: &str| {
        format!(
            "cell In {{ param x = 0; param ga = 3; param gb = 50; state v = 0; v' = (ga * x - v / gb * 10) / 1 ms }}
            network main {{ population c: In[2] }}
            run {{ duration = 5 ms; dt = 1 ms; record c.v }}
            train {{ data = \"d.npz\"; input = c.x; {learn}; loss = mse(last(c.v), correct = 1, incorrect = 0)
                optimizer = adam(lr = 0.001); epochs = 4; test = 0 }}"
        )
    };
    let here = folder(&[
        ("ab.neuro", &text("learn c.ga; learn c.gb")),
        ("ba.neuro", &text("learn c.gb; learn c.ga")),
        ("a.neuro", &text("learn c.ga")),
        ("b.neuro", &text("learn c.gb")),
    ]);
    let mut npz = ndarray_npy::NpzWriter::new(fs::File::create(here.path().join("d.npz")).unwrap());
    npz.add_array("x", &arr2(&[[1.0, 0.0], [0.0, 1.0], [1.0, 0.1], [0.1, 1.2]])).unwrap();
    npz.add_array("y", &Array1::from(vec![0_i64, 1, 0, 1])).unwrap();
    npz.finish().unwrap();
    let train = |more: &[&str]| neuroc(&here, &[&["train", "--engine", "interp"], more].concat());
    for (arguments, code) in [
        (&["ab.neuro", "-o", "whole.npz"][..], 0),
        (&["ab.neuro", "-o", "some.npz", "--epochs", "2"], 0),
        (&["ba.neuro", "-o", "rest.npz", "--resume", "some.npz"], 0),
        (&["a.neuro", "-o", "one.npz"], 0),
    ] {
        let done = train(arguments);
        assert_eq!(done.code, code, "{arguments:?}: {}", done.err);
    }
    let read = |name: &str| neuroc::train::Trained::read(&here.path().join(name)).unwrap().parameters;
    let mut turned = read("rest.npz");
    turned.reverse();
    assert_eq!(turned, read("whole.npz"));
    let done = train(&["b.neuro", "-o", "x.npz", "--resume", "one.npz"]);
    assert!(
        done.code != 0 && done.err.contains("other weights, delays and parameters have learnt there"),
        "{}",
        done.err
    );
}

/// What a spike rule reads moves with a stimulus, too: a parameter that moves such an edge has no slope there.
#[test]
fn what_moves_a_switch_of_a_spike_rule_does_not_learn() {
    use ndarray::{Array1, arr2};
    let text = |spike: &str| {
        format!(
            "cell C {{ param x = 0; input bump: mV; state v: mV = 0 mV; v' = (x * 9 mV - v) / 5 ms; spike when {spike} }}
            network main {{ population c: C[2]
                input r: ramp(delay = 1 ms, duration = 3 ms, start = 0 mV, finish = 2 mV) -> c.bump }}
            run {{ duration = 5 ms; dt = 1 ms; record c.v; record spikes of c }}
            train {{ data = \"d.npz\"; input = c.x; learn r.delay; loss = cross_entropy(spike_count(c)); epochs = 1 }}"
        )
    };
    let here = folder(&[
        ("condition.neuro", &text("v + bump > 5 mV { v = 0 mV }")),
        ("level.neuro", &text("v crosses 5 mV - bump { v = 0 mV }")),
        ("reset.neuro", &text("v > 5 mV { v = bump }")),
    ]);
    let mut npz = ndarray_npy::NpzWriter::new(fs::File::create(here.path().join("d.npz")).unwrap());
    npz.add_array("x", &arr2(&[[1.0, 0.0], [0.0, 1.0]])).unwrap();
    npz.add_array("y", &Array1::from(vec![0_i64, 1])).unwrap();
    npz.finish().unwrap();
    for file in ["condition.neuro", "level.neuro", "reset.neuro"] {
        let done = neuroc(&here, &["train", file, "--engine", "interp", "-o", "w.npz"]);
        let said = "`r.delay` moves the time at which something is switched, and cannot learn";
        assert!(done.code != 0 && done.err.contains(said), "{file}: {}", done.err);
    }
    // When a drive sends something is such an edge, too.
    let text = "cell C { state v: mV = 0 mV; v' = -v / 5 ms }
        synapse Kick { on event(weight: mV) { v += weight } }
        network main { param t0 = 3 ms; population p: C; drive p via Kick from times(t0) { weight = 1 mV } }
        run { duration = 10 ms; dt = 0.1 ms; record p.v }";
    let here = folder(&[("t.neuro", text), ("v.csv", "t,v\n0,0\n10,1\n")]);
    let free = ["--free", "t0=2..6ms", "--target", "p.v=v.csv"];
    let done = neuroc(&here, &[&["fit", "t.neuro", "--engine", "interp", "-o", "x.set"][..], &free].concat());
    let said = "`t0` moves the time at which something is switched, and has no gradient";
    assert!(done.code != 0 && done.err.contains(said), "{}", done.err);
}

/// A fit begins with what the model has, wherever between the bounds it lies, and ends with nothing worse; no value is beyond a bound by rounding.
#[test]
fn a_fit_begins_with_the_values_of_its_model() {
    let text = |param: &str, rate: &str| {
        format!(
            "cell C {{ param {param}; state v = 1; v' = {rate} / 10 ms }}
            network main {{ population c: C }}
            run {{ duration = 20 ms; dt = 0.5 ms; record c.v }}"
        )
    };
    let here = folder(&[("g.neuro", &text("g = 0.3", "-g * v")), ("p.neuro", &text("p = 0.5", "p"))]);
    let fit = |file: &str, more: &[&str]| {
        let rest = ["--engine", "interp", "-o", "x.set", "--json"];
        let done = neuroc(&here, &[&["fit", file][..], more, &rest].concat());
        assert_eq!(done.code, 0, "{more:?}: {}", done.err);
        serde_json::from_str::<serde_json::Value>(&done.out).unwrap()
    };
    assert_eq!(neuroc(&here, &["run", "g.neuro", "--engine", "interp", "-o", "own.csv", "--quiet"]).code, 0);
    for search in ["lbfgs", "nelder-mead"] {
        for bounds in ["c.g=0..100", "c.g=0.3..100", "c.g=0..0.30000001"] {
            let target = ["--free", bounds, "--target", "c.v=own.csv", "--search", search, "--iterations", "1"];
            let said = fit("g.neuro", &target);
            assert_eq!(
                (&said["values"]["c.g"], &said["starts"][0]["from"]["c.g"]),
                (&0.3.into(), &0.3.into()),
                "{said}"
            );
            assert!(said["loss"].as_f64().unwrap() < 1e-9, "{search} {bounds}: {said}");
        }
    }
    // A target that no value between the bounds reaches: the nearest is a bound, and the next fit goes on from there.
    fs::write(here.path().join("far.csv"), "t,v\n0,1\n20,9\n").unwrap();
    let target = ["--free", "c.p=0.3..0.9", "--target", "c.v=far.csv", "--search", "nelder-mead"];
    let first = fit("p.neuro", &target);
    assert!(first["values"]["c.p"].as_f64().is_some_and(|p| p > 0.899 && p <= 0.9), "{first}");
    let set = format!("c.p={}", first["values"]["c.p"]);
    let next = fit("p.neuro", &[&target[..], &["--set", &set, "--iterations", "1"]].concat());
    assert_eq!(next["starts"][0]["from"], first["values"], "{next}");
    assert!(next["loss"].as_f64() <= first["loss"].as_f64(), "{first} {next}");
}

/// Three cells that spike, with a result `r.npz` and sweeps `one.npz` and `two.npz` of one and of two axes.
fn plotted() -> tempfile::TempDir {
    let here = folder(&[(
        "m.neuro",
        "use std.cells.lif.Lif
        network main {
            population a: Lif[3]
            param a.r_m ~ uniform(80 Mohm, 120 Mohm)
            input step: pulse(delay = 1 ms, duration = 90 ms, amplitude = 0.3 nA) -> a
        }
        run { duration = 100 ms; dt = 0.1 ms; seed = 3; record a.v every 1 ms; record spikes of a }",
    )]);
    let (tau, amplitude) = ("tau_m=10,20ms", "step.amplitude=0.2,0.3nA");
    for (name, sweep) in
        [("r.npz", &[][..]), ("one.npz", &["--sweep", tau]), ("two.npz", &["--sweep", tau, "--sweep", amplitude])]
    {
        let run = ["run", "m.neuro", "--engine", "interp", "--quiet", "-o", name];
        let done = neuroc(&here, &[&run[..], sweep].concat());
        assert_eq!(done.code, 0, "{}", done.err);
    }
    here
}

/// A cell that is named twice is one cell, and one that is not there is none.
#[test]
fn cells_that_are_named_twice_are_drawn_and_counted_once() {
    let here = plotted();
    let draw = |result: &str, cells: &str, kind: &str| {
        let done = neuroc(&here, &["plot", result, "-o", "p.svg", "--cells", cells, "--kind", kind]);
        assert_eq!(done.code, 0, "{result} {cells} {kind}: {}", done.err);
        fs::read_to_string(here.path().join("p.svg")).unwrap()
    };
    for kind in ["rates", "spectrum", "raster", "traces", "all"] {
        assert!(draw("r.npz", "0,0", kind) == draw("r.npz", "0", kind), "{kind}");
        assert!(draw("r.npz", "0..2,1", kind) == draw("r.npz", "0,1", kind), "{kind}");
        assert!(draw("r.npz", "0,7", kind) == draw("r.npz", "0", kind), "{kind}");
    }
    assert!(draw("r.npz", "0,0", "traces").contains("1 of 3 cells"));
    assert!(draw("r.npz", "0,7", "raster").contains("of 1 chosen cells"));
    for cells in ["0,0", "0,7"] {
        assert!(draw("one.npz", cells, "rates").contains("mean rate of 1 of 3 cells"), "{cells}");
        assert!(draw("two.npz", cells, "rates") == draw("two.npz", "0", "rates"), "{cells}");
    }
}

/// A picture of a sweep has numbers, or there is none and the reason is said.
#[test]
fn sweeps_are_not_drawn_over_times_and_cells_that_are_not_there() {
    let here = plotted();
    let says = |arguments: &[&str], code: i32, said: &str| {
        let done = neuroc(&here, &[&["plot"], arguments, &["-o", "p.svg"]].concat());
        assert!(done.code == code && done.err.contains(said), "{arguments:?}: {} {}", done.code, done.err);
    };
    for result in ["one.npz", "two.npz"] {
        says(&[result, "--from", "200"], 1, "from 200 ms on is outside the runs, from 0 ms to 100 ms");
        says(&[result, "--to=-5"], 1, "up to -5 ms is outside the runs");
        says(&[result, "--from", "50", "--to", "20"], 2, "from 50 ms to 20 ms is empty");
        says(&[result, "--from", "100"], 1, "no length within the runs");
        says(&[result, "--cells", "7"], 1, "none of these cells is there");
        says(&[result, "--from", "50", "--to", "200"], 0, "");
    }
    // The largest values of two axes.
    let series: &[&str] = &["two.npz", "--series", "a.v"];
    let largest = |arguments: &[&str], code, said| says(&[series, arguments].concat(), code, said);
    largest(&["--from", "200"], 1, "outside the runs");
    largest(&["--from", "50", "--to", "20"], 2, "is empty");
    largest(&["--from", "50.2", "--to", "50.8"], 1, "no sample of `a.v`");
    largest(&["--cells", "7"], 1, "none of these cells is there");
    largest(&["--from", "50", "--to", "60", "--cells", "2"], 0, "");
}

/// Options of plots are for what they change, and a name that nothing has is a wrong command line.
#[test]
fn plots_refuse_options_and_names_without_a_meaning() {
    let here = plotted();
    let says = |arguments: &[&str], code: i32, said: &str| {
        let done = neuroc(&here, &[&["plot"], arguments, &["-o", "p.svg"]].concat());
        assert!(done.code == code && done.err.contains(said), "{arguments:?}: {} {}", done.code, done.err);
    };
    for kind in ["traces", "raster", "isi", "cells", "space"] {
        says(&["r.npz", "--kind", kind, "--bin", "3"], 2, "`--bin` is for --kind rates");
    }
    says(&["one.npz", "--bin", "3"], 2, "`--bin` is for single runs");
    says(&["r.npz", "--kind", "traces", "--against", "r_m"], 2, "`--against` is for --kind cells");
    says(&["r.npz", "--against", "r_m"], 2, "`--against` is for --kind cells");
    says(&["r.npz", "--kind", "rates", "--against", "r_m"], 2, "`--against` is for --kind cells");
    says(&["one.npz", "--against", "tau_m"], 2, "`--against` is for --kind cells");
    says(&["r.npz", "--morphology", "m.neuro", "--at", "1ms", "--cells", "0,1"], 2, "one cell");
    for (fits, result) in [(&["--kind", "rates", "--bin", "3"][..], "r.npz"), (&["--against", "tau_m"], "two.npz")] {
        says(&[&[result], fits].concat(), 0, "");
    }
    says(&["r.npz", "--kind", "cells", "--against", "r_m"], 0, "");
    says(&["r.npz", "--kind", "cells", "--against", "nosuch"], 2, "`nosuch`");
    for result in ["r.npz", "one.npz", "two.npz"] {
        says(&[result, "--series", "nosuch"], 2, "nosuch");
    }
    // What the results hold is not the fault of the command line.
    says(&["r.npz", "--kind", "space"], 1, "nothing was recorded in the compartments");
}

/// Numbers that say where cells are, for a probe, are read as others are.
#[test]
fn a_probe_tells_which_file_does_not_fit() {
    let model = "use std.channels.hh.Leak
        cell Ball {
            section soma { length = 20 um; diam = 20 um; compartments = 1; toward (0, 1, 0) }
            region all { ra = 100 ohm*cm; cm = 1 uF/cm2; v_init = -65 mV; insert Leak(gbar = 0.1 mS/cm2, erev = -65 mV) }
        }
        network main {
            population balls: Ball[3] { x = file(\"x.csv\") * 1 um }
            probe near of balls { from (10 um, 0 um, 0 um) to (10 um, 50 um, 0 um) in 2; sigma = 0.3 S/m }
        }
        run { duration = 1 ms; dt = 0.1 ms; method = cnexp; record near.potential }";
    for (csv, said) in
        [("1\n2\n", "it has 2 numbers, but the population has 3 cells"), ("1\n2\nx\n", "line 3 is not numbers")]
    {
        let done = neuroc(
            &folder(&[("m.neuro", model), ("x.csv", csv)]),
            &["run", "m.neuro", "--engine", "interp", "-o", "o.npz"],
        );
        assert!(done.code == 1 && done.err.contains(said), "{}", done.err);
    }
}

/// A polynomial stands for a quotient that is 0/0 as far as it is that quotient, however far its powers are apart; a guard falls where nothing is 0/0
/// any more on the side that stays, and where both sides are one function.
#[test]
fn limits_and_guards_are_their_functions() {
    let q_at = |q: &str, x: f64| {
        let model = format!(
            "cell C {{ state x = 0; x' = 0 /ms; state z = 2; z' = 0 /ms; state w = 0; w' = 0 /ms
                let r = (z - 1) / (1 - exp(-(z - 1)))
                let p = x / (1 - exp(-x))
                let u = x * z + w
                let q = {q} }}
            network main {{ population c: C; init c.x = {x} }}
            run {{ duration = 1 ms; dt = 0.1 ms; method = euler; record c.q every 1 ms }}"
        );
        last_of(&model, &[])[0]
    };
    let r = 1.0 / (1.0 - (-1.0f64).exp());
    let p = |x: f64| x / (1.0 - (-x).exp());
    for (q, x, expected) in [
        ("sin(x^7) / x^7", 1.0, 1.0f64.sin()),
        ("sin(x^7) / x^7", 0.0, 1.0),
        ("(sin(x) + (x / 0.5)^32) / x", 1.0, 1.0f64.sin() + 2.0f64.powi(32)),
        ("(sin(x) + (x / 0.5)^32) / x", 0.6, (0.6f64.sin() + 1.2f64.powi(32)) / 0.6),
        ("(sin(x) + (x / 0.5)^32) / x", 0.0, 1.0),
        ("(sin(x) + 5 * x^28) / x", 1.0, 1.0f64.sin() + 5.0),
        ("x / (exp(x) - 1 + x^28)", 0.8, 0.8 / (0.8f64.exp_m1() + 0.8f64.powi(28))),
        ("if abs(x) < 1 then p else p * (1 + x^30)", 0.98, p(0.98)),
        ("if abs(x) < 0.9 then p else p + x^28 * 1e3 * p", 0.8, p(0.8)),
        ("if abs(u) < 1e-4 then r * 0.5 else r * (1 - cos(u)) / u^2", 5e-10, 0.5 * r),
        ("if abs(u) < 1e-4 then r * 0.5 else r * (1 - cos(u)) / u^2", 0.0, 0.5 * r),
        ("if abs(u) < 1e-7 then r else r * sin(u) / u", 0.0, r),
        ("if abs(x) < 1e-4 then 1 + x / 2 else x / (1 - exp(-x))", 0.0, 1.0),
        // So high a power is none of those that are looked into.
        ("((((((((x^16)^16)^16)^16)^16)^16)^16)^16) / (x + 1)", 0.5, 0.0),
    ] {
        let found = q_at(q, x);
        assert!((found - expected).abs() <= 1e-12 * expected.abs(), "{q} at {x}: {found}, not {expected}");
    }
}

/// No name of a model is one that generated code uses.
#[test]
fn names_of_functions_in_generated_code_are_free() {
    let model = "junction Gap { param g = 1 nS; current i = g * dv }
        cell C {
            param ask_for = 0.01; param all_lanes = 0.3; param lim = 0.2
            compartment m { cm = 1 uF/cm2; area = 1000 um2; v_init = -60 mV }
            state w = 0
            w' = (if all_lanes > lim then exp(m.v / (100 mV)) * ask_for - w else sin(m.v / (1 mV))) / (10 ms)
        }
        network main {
            population c: C[20]
            init c.m.v = -60 mV + 1 mV * index
            connect c.m -- c.m via Gap { rule = edges(\"e.csv\") }
        }
        run { duration = 1 ms; dt = 0.1 ms; record c.w every 1 ms }";
    let here = folder(&[("m.neuro", model), ("e.csv", "source,target\n0,1\n1,2\n5,19\n")]);
    let cache = Path::new(env!("CARGO_TARGET_TMPDIR")).join("kernels").display().to_string();
    for engine in [&["--engine", "native", "--cache", &cache][..], &["--engine", "interp"]] {
        let done = neuroc(&here, &[&["run", "m.neuro", "-o", "o.npz"], engine].concat());
        assert_eq!(done.code, 0, "{}", done.err);
    }
}

/// Whoever writes a stimulus of another simulator is given one that is taken as it stands.
#[test]
fn help_for_stimuli_of_others_is_taken() {
    let checked = |stimulus: &str| {
        let model = format!(
            "cell C {{ state v: mV = 0 mV; v' = -v / 10 ms - i_syn / 100 pF }}
            network main {{ population c: C; input s: {stimulus} -> c }}
            run {{ duration = 1 ms; dt = 0.1 ms; record c.v }}"
        );
        neuroc(&folder(&[("m.neuro", &model)]), &["check", "m.neuro"])
    };
    for foreign in ["dc(amplitude = 300 pA)", "ac_generator(10)"] {
        let told = checked(foreign);
        let help = told.err.split("= help: ").nth(1).and_then(|help| help.split('`').nth(1)).unwrap_or_default();
        // A point neuron takes currents.
        let done = checked(&help.replace("uA/cm2", "nA"));
        assert!(told.code == 1 && done.code == 0, "{help}: {}{}", told.err, done.err);
    }
}

/// What `check` says of a model.
fn told_of(model: &str) -> String {
    neuroc(&folder(&[("m.neuro", model)]), &["check", "m.neuro"]).err
}

/// A word behind a number is a unit, or the name of a value, and never silently one of the two where it could be both.
#[test]
fn units_and_names_are_told_apart() {
    let channel = |current: &str| {
        format!(
            "channel K {{
                param V = 5 mV
                param V2 = 5 mV
                param s = 3
                param cm = 1 uF/cm2
                param erev = -77 mV
                gate m {{ alpha = 0.1 /ms; beta = 0.2 /ms }}
                let used = (V + V2) / 1 mV * s * m * cm / 1 uF/cm^2
                current i = used * {current}
            }}"
        )
    };
    for (current, written) in [
        ("(10 nS*V)", "10 nS * V"),
        ("-10 nS*V^2 / 1 mV", "10 nS * V^2"),
        ("10 nS*V2", "10 nS * V2"),
        ("1 nA/V*(v-erev)", "1 nA / V"),
        ("120 mS/cm2*m^3*(v-erev)", "120 mS/cm2 * m^3"),
    ] {
        let told = told_of(&channel(current));
        assert!(told.contains("is read as a unit here") && told.contains(&format!("`{written}`")), "{current}: {told}");
        if !current.contains("V^2") {
            let separate = current.replace(written.replace(" * ", "*").replace(" / ", "/").as_str(), written);
            assert!(!told_of(&channel(&separate)).contains("is read as a unit"), "{separate}");
        }
    }
    // Units whose names only look like those of values.
    for current in ["0.5 mV*cm^-2 * 1 mS", "1 uA/cm^2 * 1 s^2 * 1 /s^2", "1 uA/cm2/s * 1 s"] {
        let told = told_of(&channel(current));
        assert_eq!(told.matches("error").count(), 0, "{current}: {told}");
    }
    // A digit that makes no power makes a name.
    let model = "cell C { param V1 = 5 mV; state x: nA = 0 nA; let i0 = 10 nS*V1; x' = (i0 - x) / 1 ms }
        network main { population c: C }
        run { duration = 1 ms; dt = 0.1 ms; method = euler; record c.i0 every 1 ms }";
    assert!((last_of(model, &[])[0] - 0.05).abs() < 1e-12);
    // Constants and parameters of functions are values, too.
    let told = told_of("const V = 5 mV\nfunction f(S: nS) = 3 mV*S\nconst x = 10 nS*V\nconst J = 1 J/s * 1 s");
    assert_eq!(told.matches("is read as a unit here").count(), 2, "{told}");
}

/// Names of a junction differ, and none of them has a fixed meaning.
#[test]
fn names_of_a_junction_are_its_own() {
    for (members, says) in [
        ("param g = 1 nS; let k = g; let k = 2 * g; current i = k * dv", "`k` is defined twice"),
        ("param g = 1 nS; let g = 2 nS; current i = g * dv", "`g` is defined twice"),
        ("param g = 1 nS; current g = g * dv", "`g` is defined twice"),
        ("param g = 1 nS; current dv = g * dv", "`dv` has a fixed meaning"),
        ("param g = 1 nS; let t = g; current i = t * dv", "`t` has a fixed meaning"),
    ] {
        let told = told_of(&format!("junction Gap {{ {members} }}"));
        assert!(told.contains(says) && told.matches("error[").count() == 1, "{members}: {told}");
    }
}

/// What is written has an effect, or is refused.
#[test]
fn nothing_that_is_written_is_dropped() {
    let decay = |run: &str| {
        format!(
            "cell C {{ param tau = 10 ms; state v: mV = 1 mV; v' = -v / tau }}
            network main {{ population cells: C[2] }}
            run {{ duration = 1 ms; dt = 0.1 ms; record cells.v; {run} }}"
        )
    };
    for (run, says) in [
        ("sweep cells.tau = [10 ms, 20 ms] s", "units of their own"),
        ("sweep = 3", "it is written `sweep path = "),
        ("sweep cells.tau // why?\n = 8 .. 12 ms in 3 steps", ""),
    ] {
        let told = told_of(&decay(run));
        assert_eq!(told.is_empty(), says.is_empty(), "{run}: {told}");
        assert!(told.contains(says), "{run}: {told}");
    }
    // A carriage return ends a line, and the comment on it.
    let told = told_of(&decay("// The time.\r dt = 0.2 ms\n"));
    assert!(told.contains("`dt` is given twice"), "{told}");
}

/// Help that is followed gives a model that is taken, with the numbers that were meant.
#[test]
fn help_that_is_followed_is_right() {
    let value = |e: &str| {
        let model = format!(
            "cell C {{ param x = 0.5; param y = 2; state z = 0; let q = {e}; z' = (q + x + y - z) / 1 ms }}
            network main {{ population c: C }}
            run {{ duration = 1 ms; dt = 0.1 ms; method = euler; record c.q every 1 ms }}"
        );
        last_of(&model, &[])[0]
    };
    let x = 0.5f64;
    for (call, expected) in [
        ("sign(x)", 1.0),
        ("exp2(x)", x.exp2()),
        ("exp10(x)", 10f64.powf(x)),
        ("expm1(x)", x.exp_m1()),
        ("exprel(x)", x.exp_m1() / x),
        ("log2(x)", x.log2()),
        ("log1p(x)", x.ln_1p()),
        ("cbrt(x)", x.cbrt()),
        ("hypot(x, y)", x.hypot(2.0)),
        ("fmod(y, x)", 0.0),
        ("nint(x)", 1.0),
        ("sinc(x)", x.sin() / x),
    ] {
        let told = told_of(&format!("cell C {{ param x = 0.5; param y = 2; let q = {call} }}"));
        let help = told.split("= help: ").nth(1).and_then(|help| help.split('`').nth(1)).unwrap_or_default();
        assert!((value(help) - expected).abs() < 1e-12, "{call}: {help}");
    }
    for call in ["asin(x)", "atan2(x, y)", "arccos(x)"] {
        let told = told_of(&format!("cell C {{ param x = 0.5; param y = 2; let q = {call} }}"));
        assert!(told.contains("there are no inverses") && !told.contains("did you mean"), "{told}");
    }
}

/// Messages that led astray.
#[test]
fn messages_lead_where_they_say() {
    let cell = |members: &str| format!("cell C {{ {members} }}");
    let region = "region soma { cm = 1 uF/cm2; v_init = -65 mV; ra = 100 ohm*cm }";
    for (model, says, never) in [
        ("const a = 3 mS/cm-2", "`3 mS/cm2`", "//"),
        ("const a = 3 uF*cm-2", "`3 uF/cm2`", "//"),
        ("const a = 3 mV/ms-1", "`3 mV/ms`", "//"),
        ("const a = 3 /ms-1", "`3 /ms`", "//"),
        ("const a = 3 cm^2-2", "`3 /cm2`", "//"),
        ("const a = 0.1 ms-1", "`0.1 /ms`", "//"),
        (&cell("state v: mV = 0 mV; v' = -v / (10 ms) + 3 * xi()"), "`3 mV / sqrt(1 ms)`", "`3 mV/ms^0.5`"),
        ("const a = 5 % 3", "floor(a / b)", "0.05"),
        ("const a = (5 %)", "`0.05`", "floor"),
        (&cell("foo"), "`foo` does not begin a member of a cell", "something else"),
        (
            &cell(&format!("section soma {{ length = 20 um; diam = 20 um; parent = soma }} {region}")),
            "`from soma(1)`",
            "did you mean",
        ),
        (
            &cell(&format!("section soma {{ length = 20 um; diam = 20 um; direction = 1 }} {region}")),
            "`toward (0 um",
            "did you mean",
        ),
        (
            "channel K { gate m { alpha = 1 /ms; beta = 1 /ms; fraction = 3 } current i = m * 1 uA/cm2 }",
            "`fraction 0.8 { ... }`",
            "has no `fraction`",
        ),
        (
            &cell("compartment s { cm = 1 uF/cm2; v_init = -65 mV; pool = 3 }"),
            "`pool name: unit { ... }`",
            "has no `pool`",
        ),
        (
            &cell(
                "compartment s { cm = 1 uF/cm2; v_init = -65 mV; pool Ca: mM { init = 1 mM; let x = 1; Ca' = -Ca / 1 ms } }",
            ),
            "around the pool",
            "a pool has no",
        ),
        (&cell("state w: nS = 0 nS; w' = -w / 1 ms; spike when w"), "`spike when w > 1 nS`", "mV"),
        (&cell("state w: nS = 0 nS; w' = -w / 1 ms; spike when w > 1 nS"), "`{ w = ... }`", "{ v"),
        (&cell("state v mV = 3 mV"), "`v: mV`", "let mV"),
        ("junction Gap { state x = 0 }", "a channel, a cell or a synapse", "did you mean"),
        ("const a = 3 mT", "not a unit", "mV`?"),
        ("const a = 3 mW", "`nA*mV`", "did you mean"),
        ("const a = 3 eV", "J", "did you mean"),
        ("const a = 3 mmHg", "not a unit", "did you mean"),
        ("const a = 3 ppm", "`1e-6`", "did you mean"),
        ("const a = 1 mV + 1 /mV", "[one over a voltage]", "[over a voltage]"),
    ] {
        let told = told_of(model);
        assert!(told.contains(says) && !told.contains(never), "{model}: {told}");
    }
    let sections = "section up { length = 20 um; diam = 2 um } section down { length = 20 um; diam = 2 um; from up(1) }
        section up_down { length = 20 um; diam = 2 um; from up(1) }";
    let told =
        told_of(&cell(&format!("{sections} region up, down {{ cm = 1 uF/cm2 }} region up_down {{ cm = 1 uF/cm2 }}")));
    assert!(told.contains("in another order"), "{told}");
    let told = told_of(&format!("const a = {}", ["1"; 300].join(" + ")));
    assert!(told.contains("operations") && !told.contains("functions"), "{told}");
}

/// Places that are far from each other in a long line are both shown, and a long line with a mistake is read in the time of a short one.
#[test]
fn long_lines_are_shown_and_read() {
    let model = format!("const a = 1 {} const a = 2", "/* . */".repeat(60));
    let told = told_of(&model);
    assert!(told.contains("defined again") && told.contains("first defined here"), "{told}");
    let cells: String = (0..4000).map(|i| format!("cell C{i} {{ state v: mV = 0 mV; v' = -v / 1 ms }} ")).collect();
    let begin = std::time::Instant::now();
    neuroc::driver::check_text(
        "m.neuro",
        Path::new("."),
        format!("{cells} cell D {{ foo bar }}"),
        &neuroc::hir::NoFiles,
    );
    let one_line = begin.elapsed();
    let begin = std::time::Instant::now();
    let lines = cells.replace("} cell", "}\ncell");
    neuroc::driver::check_text(
        "m.neuro",
        Path::new("."),
        format!("{lines}\ncell D {{ foo bar }}"),
        &neuroc::hir::NoFiles,
    );
    let most = 5 * begin.elapsed() + std::time::Duration::from_secs(1);
    assert!(one_line < most, "{one_line:?}");
}

/// A spike that a drive lists arrives once, and when one of a file does: wherever in a step it stands, however long the run is and in whichever precision.
#[test]
fn a_listed_spike_arrives_once_and_when_one_of_a_file_does() {
    const PARTS: &str = "cell T { state v: mV = 0 mV; v' = 0 mV/ms }
        synapse Kick { on event(weight: mV) { v += weight } }";
    for (dt, delay) in [("0.1", "0 ms"), ("0.2", "0.5 ms"), ("0.025", "0.3 ms"), ("0.07", "0.1 ms")] {
        let step: f64 = dt.parse().unwrap();
        // The middles of steps, what is next to them, and twice the same.
        let at = |k: i32| [f64::from(k) + 0.5, f64::from(k) + 0.499].map(|x| format!("{:.6}", x * step));
        let times: Vec<String> = (0..97).flat_map(at).chain(["1".to_string(), "1".to_string()]).collect();
        let file: String = times.iter().map(|t| format!("{t},0\n")).collect();
        let list: Vec<String> = times.iter().map(|t| format!("{t} ms")).collect();
        let model = format!(
            "{PARTS}
            network main {{ population y: T; population z: T
                drive y via Kick from times({}) {{ weight = 1 mV; delay = {delay} }}
                drive z via Kick from spikes(\"s.csv\") {{ weight = 1 mV; delay = {delay} }} }}
            run {{ duration = {} ms; dt = {dt} ms; record y.v; record z.v }}",
            list.join(", "),
            step * 120.0
        );
        let here = folder(&[("m.neuro", &model), ("s.csv", &format!("t,cell\n{file}"))]);
        let done = neuroc(&here, &["run", "m.neuro", "--engine", "interp", "-o", "o.npz"]);
        assert_eq!(done.code, 0, "{}", done.err);
        let result = RunResult::read_npz(&here.path().join("o.npz")).unwrap();
        let [y, z] = [0, 1].map(|series| {
            let values = &result.series[series].values;
            (0..values.shape().0).map(|row| values.get(row, 0)).collect::<Vec<f64>>()
        });
        assert_eq!(y, z, "{dt}");
        assert_eq!(*y.last().unwrap(), times.len() as f64, "{dt}");
    }
    // Adaptive steps round no time.
    let model = "cell F { state v: mV = 0 mV; v' = 0 mV/ms; spike when v > 0.5 mV { v = 0 mV } }
        synapse Kick { on event(weight: mV) { v += weight } }
        network main { population f: F; drive f via Kick from times(1.23456789 ms) { weight = 1 mV; delay = 0.3333333333 ms } }
        run { duration = 2 ms; dt = 0.1 ms; method = adaptive; record spikes of f }";
    let here = folder(&[("m.neuro", model)]);
    let done = neuroc(&here, &["run", "m.neuro", "-o", "o.npz"]);
    assert_eq!(done.code, 0, "{}", done.err);
    let result = RunResult::read_npz(&here.path().join("o.npz")).unwrap();
    let at = result.spikes[0].t[0];
    assert!((at - 1.567_901_223_3).abs() < 1e-11, "{at}");
    // Late in a long run single precision has no half steps, and delays differ from cell to cell.
    let cache = Path::new(env!("CARGO_TARGET_TMPDIR")).join("kernels").display().to_string();
    let times: Vec<String> = (0..30).map(|k| format!("{:.1} ms", 700_000.0 + 1.3 * f64::from(k))).collect();
    let model = format!(
        "{PARTS}
        network main {{ population y: T[40]
            drive y via Kick from times({}) {{ weight = 1 mV; delay ~ uniform(0 ms, 20 ms) }} }}
        run {{ duration = 701 s; dt = 0.1 ms; record y.v every 701 s }}",
        times.join(", ")
    );
    let here = folder(&[("m.neuro", &model)]);
    let options = ["--engine", "native", "--precision", "f32", "--cache", &cache, "-o", "o.npz"];
    let done = neuroc(&here, &[&["run", "m.neuro"], &options[..]].concat());
    assert_eq!(done.code, 0, "{}", done.err);
    let result = RunResult::read_npz(&here.path().join("o.npz")).unwrap();
    let values = &result.series[0].values;
    let last: Vec<f64> = (0..40).map(|cell| values.get(values.shape().0 - 1, cell)).collect();
    assert_eq!(last, [30.0; 40]);
}

/// Whenever a run ends, its tables hold what the text beside them says, in columns that have names of their own; where one of the files cannot be
/// written, there is no run.
#[test]
fn tables_and_their_text_go_together() {
    use neuroc::results::{Contents, SeriesHead, TrainHead, Writer};
    use serde_json::Map;
    let here = tempfile::tempdir().unwrap();
    let head = |name: &str, cells: Vec<u64>| SeriesHead {
        name: name.into(),
        population: "c".into(),
        unit: "mV".into(),
        cells,
        compartments: None,
        samples: None,
    };
    let contents = Contents {
        series: vec![head("c.v", vec![0, 1]), head("c[1].v", vec![1])],
        trains: vec![TrainHead { population: "c".into(), cells: 2 }],
        ..Contents::default()
    };
    let [table, spikes] = ["r.csv", "r.spikes.csv"].map(|name| here.path().join(name));
    let mut writer = Writer::new(&table, contents, false).unwrap();
    let mut step = 0;
    let mut some = |writer: &mut Writer, steps: u32| {
        for _ in 0..steps {
            let t = f64::from(step);
            writer.row(0, t, &[t, -t]).unwrap();
            writer.row(1, t, &[t]).unwrap();
            writer.spike(0, t, 1).unwrap();
            step += 1;
        }
    };
    some(&mut writer, 10);
    writer.commit(&Map::new()).unwrap();
    let shown = || [&table, &spikes].map(|file| fs::read_to_string(file).unwrap());
    let before = shown();
    assert!(before[0].starts_with("t_ms,c[0].v (mV),c[1].v (mV),c[1].v of c[1].v (mV)\n"), "{}", before[0]);
    some(&mut writer, 100_000);
    assert_eq!(shown(), before);
    writer.finish(&Map::new()).unwrap();
    let lines = shown().map(|text| text.lines().count());
    assert_eq!(lines, [100_011; 2]);

    let model = "cell C { state v: mV = 0 mV; v' = 0 mV/ms }
        network main { population c: C }
        run { duration = 1 ms; dt = 0.1 ms; record c.v }";
    let here = folder(&[("m.neuro", model)]);
    fs::create_dir(here.path().join("o.meta.json")).unwrap();
    let done = neuroc(&here, &["run", "m.neuro", "--engine", "interp", "-o", "o.csv"]);
    assert!(done.code != 0 && done.err.contains("o.meta.json`: it is a directory"), "{}", done.err);
    assert!(!here.path().join("o.csv").exists());
}

/// Small integers are numbers of cells, headings are read in any case, and a population without spikes is told apart from a file without any.
#[test]
fn small_numbers_and_other_populations_of_files_are_read() {
    let model = |projection: &str| {
        format!(
            "cell T {{ state v: mV = 0 mV; v' = 0 mV/ms; spike when v > 1 V {{ v = 0 mV }} }}
            synapse Kick {{ on event(weight: mV) {{ v += weight }} }}
            network main {{ population y: T[3]; {projection} }}
            run {{ duration = 1 ms; dt = 0.1 ms; record y.v every 1 ms }}"
        )
    };
    let run = |projection: &str, heading: &str| {
        let here = folder(&[("m.neuro", &model(projection)), ("s.csv", &format!("{heading}\ne,0.5,0\ni,0.5,1\n"))]);
        ndarray_npy::write_npy(here.path().join("e.npy"), &ndarray::arr2(&[[0i8, 1], [1, 2]])).unwrap();
        neuroc(&here, &["run", "m.neuro", "--engine", "interp", "-o", "o.npz"])
    };
    let heading = "population,t,cell";
    let done = run("connect y -> y via Kick { rule = edges(\"e.npy\"); weight = 1 mV; delay = 1 ms }", heading);
    assert_eq!(done.code, 0, "{}", done.err);
    let drive =
        |column: &str| format!("drive y via Kick from spikes(\"s.csv\", column = \"{column}\") {{ weight = 1 mV }}");
    let done = run(&drive("i"), "Population,T,Cell");
    assert!(done.code == 0 && !done.err.contains("NU0407"), "{}", done.err);
    let done = run(&drive("typo"), heading);
    let said = ["`s.csv` has no spikes of `typo`", "it has spikes of `e`, `i`"];
    assert!(done.code == 0 && said.iter().all(|said| done.err.contains(said)), "{}", done.err);
}

/// What would take too many steps along an edge is told where it stands, whatever the engine; connections take memory, too.
#[test]
fn delays_and_connections_have_their_limits() {
    let model = |synapse: &str, more: &str| {
        format!(
            "use std.plasticity.{{Stdp}}; use std.cells.lif.{{LifCond}}; use std.synapses.{{ExpCond}}
            network main {{ population s: LifCond[40]; population z: LifCond[40]
                connect s -> z via {synapse} {{ rule = all_to_all; weight = 1 nS; {more} }} }}
            run {{ duration = 1 ms; dt = 0.1 ms; record z.v every 1 ms }}"
        )
    };
    let run = |text: &str, more: &[&str]| {
        let here = folder(&[("m.neuro", text), ("d.csv", &format!("{}110000\n", "1\n".repeat(1599)))]);
        neuroc(&here, &[&["run", "m.neuro", "--engine", "interp", "-o", "o.npz"], more].concat())
    };
    for (synapse, more, said) in [
        ("ExpCond", "delay = 110 s", ["the delay of `s.z.ExpCond` is 110000 ms", "make it 104857.6 ms at most"]),
        (
            "Stdp",
            "delay = 60 s; dendritic_fraction = 1",
            ["the delay of `s.z.Stdp` is 60000 ms", "make it 52428.8 ms at most"],
        ),
        (
            "ExpCond",
            "delay = file(\"d.csv\") * 1 ms",
            ["the delay of edge 1599 of `s.z.ExpCond` is 110000 ms", "make it 104857.6 ms at most"],
        ),
    ] {
        let done = run(&model(synapse, more), &[]);
        assert!(done.code != 0 && said.iter().all(|said| done.err.contains(said)), "{more}: {}", done.err);
    }
    let done = run(&model("ExpCond", "delay = 1 ms"), &["--memory", "10kB"]);
    let said = ["of memory for its cells and connections, but", "help: take fewer cells or connections"];
    assert!(done.code != 0 && said.iter().all(|said| done.err.contains(said)), "{}", done.err);
}

/// A rhythm with three values to sweep, and names whose ends are those of others.
const RHYTHM: &str = "cell C {
        param rate = 0.3; param a = 1; param b = 1
        state w = 0; w' = rate * a * b / (1 ms)
        spike when w > 1 { w = 0 }
    }
    network main { population c: C; population d: C }
    run { duration = 10 ms; dt = 0.1 ms; record c.w every 1 ms; record spikes of c }";

/// What a sweep cannot be is said before its first run; what it was tells as much as one run.
#[test]
fn sweeps_are_refused_before_they_begin_and_tell_as_much_as_runs() {
    let here = folder(&[("m.neuro", RHYTHM)]);
    let run = ["run", "m.neuro", "--engine", "interp", "--sweep", "c.rate=0.2,0.3"];
    let more = ["--sweep", "c.a=1,2", "--sweep", "c.b=1,2"];
    let done = neuroc(&here, &[&run[..], &more, &["--plot", "m.svg"]].concat());
    let said = "a picture has one or two axes, and this sweep has 3: write it as .npz (`-o`), and leave out `--plot`";
    assert!(done.code == 2 && done.err.contains(said) && !done.err.contains("done in"), "{}", done.err);
    let done = neuroc(&here, &[&run[..], &more, &["-o", "m.npz"]].concat());
    assert_eq!(done.code, 0, "{}", done.err);
    let done = neuroc(&here, &["plot", "m.npz", "-o", "m.html"]);
    assert!(done.code != 0 && done.err.contains("draws it as .svg, .png or .pdf"), "{}", done.err);

    let done = neuroc(&here, &[&run[..], &["--json"]].concat());
    let line: serde_json::Value = serde_json::from_str(&done.out).unwrap();
    for key in ["compile_s", "run_s", "realtime_factor", "cell_steps_per_s"] {
        assert!(line[key].as_f64().is_some_and(|x| x > 0.0), "{key}: {line}");
    }
}

/// A name that is asked for instead is one that can be given.
#[test]
fn the_name_that_was_meant_is_one() {
    let here = folder(&[("m.neuro", RHYTHM)]);
    // `rate` alone fits both populations.
    for (given, meant) in [("rat", None), ("c.rat", Some("c.rate"))] {
        let done = neuroc(&here, &["run", "m.neuro", "--engine", "interp", "--set", &format!("{given}=1")]);
        let help = done.err.split("did you mean `").nth(1).and_then(|rest| rest.split('`').next());
        assert_eq!((done.code, help), (2, meant), "{given}: {}", done.err);
        if let Some(name) = help {
            let run = ["run", "m.neuro", "--engine", "interp", "-o", "m.npz", "--set", &format!("{name}=1")];
            assert_eq!(neuroc(&here, &run).code, 0, "{name}");
        }
    }
    let text = "channel Leak { param gbar = 0.1 mS/cm2; param erev = -65 mV }
        cell C { compartment soma { area = 1000 um2; cm = 1 uF/cm2; v_init = -60 mV; insert Leak } }
        network main { population c: C }
        run { duration = 1 ms; dt = 0.1 ms; record c.soma.v }";
    let here = folder(&[("m.neuro", text)]);
    let done = neuroc(&here, &["run", "m.neuro", "--engine", "interp", "--set", "c.erev=-70mV"]);
    assert!(done.err.contains("did you mean `c.soma.Leak.erev`?"), "{}", done.err);
    let done = neuroc(&here, &["run", "m.neuro", "--dt", "1e400ms"]);
    assert!(done.code == 2 && done.err.contains("`1e400` is too large a number"), "{}", done.err);
}

/// A run that is stopped before there is anything to draw has been stopped.
#[cfg(target_os = "linux")]
#[test]
fn a_stopped_run_without_a_picture_is_stopped() {
    use std::process::{Command, Stdio};
    let text = RHYTHM.replace("every 1 ms; record spikes of c", "every 1 ms from 900 s").replace("10 ms", "1000 s");
    let here = folder(&[("m.neuro", &text)]);
    let child = Command::new(env!("CARGO_BIN_EXE_neuroc"))
        .current_dir(here.path())
        .args(["run", "m.neuro", "--engine", "interp", "--plot", "m.svg"])
        .stdin(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    crate::cli::catches_interrupts(child.id());
    assert!(Command::new("sh").args(["-c", &format!("kill -INT {}", child.id())]).status().unwrap().success());
    let done = child.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&done.stderr);
    assert!(said.contains("nothing was recorded"), "{said}");
    assert_eq!(done.status.code(), Some(130), "{said}");
}

/// A cell with two sections, and what a test does with it.
fn two_sections(network: &str, run: &str) -> String {
    format!(
        "use std.synapses.{{ExpCond}}
        channel Leak {{ param gbar = 0.1 mS/cm2; param erev = -65 mV }}
        cell C {{
            section soma {{ length = 20 um; diam = 20 um; compartments = 1 }}
            section dend {{ from soma(1); length = 100 um; diam = 2 um; compartments = 3 }}
            region all {{ ra = 100 ohm*cm; cm = 1 uF/cm2; v_init = -65 mV; insert Leak }}
        }}
        network main {{ population c: C[2]; {network} }}
        run {{ duration = 1 ms; dt = 0.1 ms; method = cnexp; {run} }}"
    )
}

/// A synapse that sits at a place is the one that is recorded there, whatever another line has put in all of a region.
#[test]
fn what_sits_at_a_place_is_recorded_there() {
    let everywhere = "drive c.all via ExpCond(tau = 2 ms) from times(0.2 ms) { weight = 1 nS }";
    let there = "drive c.dend(0.5) via ExpCond(tau = 4 ms) from times(0.2 ms) { weight = 4 nS }";
    for lines in [[everywhere, there], [there, everywhere]] {
        let record = "record c.soma(0.5).ExpCond.tau every 1 ms; record c.dend(0.5).ExpCond.tau every 1 ms";
        assert_eq!(last_of(&two_sections(&lines.join("\n"), record), &[]), [2.0, 2.0, 4.0, 4.0], "{lines:?}");
    }
}

/// The two sides of a graded synapse have what the line says that named it first.
#[test]
fn both_sides_of_a_graded_synapse_have_its_arguments() {
    let model = "use std.synapses.Graded
        channel Leak { param gbar = 0.1 mS/cm2; param erev = -40 mV }
        cell N { compartment soma { area = 1000 um2; cm = 1 uF/cm2; v_init = -50 mV; insert Leak } }
        network main {
            population a: N; population b: N; population c: N
            connect a -> b via Graded as ACh(erev = -80 mV, k_minus = 0.01 /ms) { rule = all_to_all; weight = 30 nS }
            connect a -> c via Graded as ACh { rule = all_to_all; weight = 30 nS }
            connect c -> b via Graded as ACh { rule = all_to_all; weight = 30 nS }
        }
        run { duration = 1 ms; dt = 0.1 ms; record {b, c}.soma.ACh.erev; record {a, c}.soma.ACh.pre.k_minus }";
    assert_eq!(last_of(model, &[]), [-80.0, -80.0, 0.01, 0.01]);
}

/// What is an argument of a function is drawn again, too, where it is outside of limits.
#[test]
fn truncated_draws_again_in_a_function() {
    let model = "function tr(x) = truncated(x, -0.5, 0.5)
        cell P { param r = 1; state x = 0; x' = (r - x) / 1 ms }
        network main { population a: P[20]; param a.r ~ tr(normal(0, 1)) }
        run { duration = 1 ms; dt = 0.5 ms; method = euler; record a.r every 1 ms }";
    let drawn = last_of(model, &[]);
    assert!(drawn.len() == 20 && drawn.iter().all(|x| x.abs() < 0.5), "{drawn:?}");
}

/// Inputs whose names are those of axes have random numbers of their own.
#[test]
fn inputs_and_places_are_drawn_apart() {
    let model = "cell C { state v: mV = 0 mV; v' = -v / 10 ms - i_syn / 100 pF }
        network main { population c: C[3] { x ~ normal(0 um, 1 um) }; input x: 1 nA * normal(0, 1) -> c }
        run { duration = 1 ms; dt = 0.1 ms; record c.v }";
    let checked = crate::training::checked(model);
    let network = checked.model.and_then(|model| model.network).expect("it is sound");
    let streams = |x: &neuroc::hir::Expr| {
        let mut found = Vec::new();
        x.visit(&mut |e| {
            if let neuroc::hir::ExprKind::Draw(_, stream) = e.kind {
                found.push(stream);
            }
        });
        found
    };
    let place = network.populations[0].offset[0].as_ref().map(streams);
    let input = streams(&network.inputs[0].value);
    assert!(input.len() == 1 && place.as_ref().is_some_and(|place| *place != input), "{place:?} {input:?}");
}

/// An argument of a stimulus may change in time, as the stimulus may that is part of an expression.
#[test]
fn arguments_of_stimuli_change_in_time() {
    let model = |stimulus: &str| {
        format!(
            "cell C {{ state v: mV = 0 mV; v' = -v / 10 ms - i_syn / 100 pF }}
            network main {{ param amp = 1 nA; population c: C[2]; input s: {stimulus} -> c }}
            run {{ duration = 2 ms; dt = 0.1 ms; record c.v every 2 ms }}"
        )
    };
    for amplitude in [
        "amp * sin(t / 1 ms)",
        "amp * sine(0 ms, 5 ms, 1, 3 ms)",
        "noise(mean = 0 nA, sd = 1 nA, every = 0.5 ms)",
        "white_noise(mean = 0 nA, sd = 1 nA, per = 1 ms)",
        "ornstein_uhlenbeck(mean = 0 nA, sigma = 1 nA, tau = 2 ms)",
    ] {
        let pulse = format!("pulse(delay = 0 ms, duration = 1 ms, amplitude = {amplitude})");
        let [alone, within] = [pulse.clone(), format!("1 * {pulse}")].map(|stimulus| last_of(&model(&stimulus), &[]));
        let same = alone.iter().zip(&within).all(|(a, b)| (a - b).abs() < 1e-12 && *a != 0.0);
        assert!(same, "{amplitude}: {alone:?} {within:?}");
    }
}

/// A number of an optimizer, a surrogate or a schedule that stands first needs no name.
#[test]
fn the_first_number_of_a_train_key_needs_no_name() {
    let trained = |keys: &str| {
        let model = format!(
            "cell Pixel {{ param x = 0.5; state q = 0; q' = x / 1 ms; spike when q > 1 {{ q -= 1 }} }}
            cell Out {{ state v: mV = 0 mV; v' = -v / 8 ms }}
            synapse Kick {{ on event(weight: mV) {{ v += weight }} }}
            network main {{
                population pixels: Pixel[4]; population out: Out[2]
                connect pixels -> out via Kick {{ rule = all_to_all; weight = 0.1 mV; delay = 1 ms }}
            }}
            run {{ duration = 10 ms; dt = 1 ms; record out.v every 1 ms }}
            train {{
                data = \"d.npz\"; input = pixels.x; learn pixels.out.Kick.weight; loss = cross_entropy(mean(out.v))
                {keys}
            }}"
        );
        let checked = crate::training::checked(&model);
        let train = checked.model.and_then(|model| model.train);
        let train = train.unwrap_or_else(|| panic!("{keys}: {:?}", checked.diagnostics));
        format!("{:?} {:?} {:?}", train.optimizer, train.surrogate, train.schedule)
    };
    for (short, long, other) in [
        ("optimizer = adam(2e-3)", "optimizer = adam(lr = 2e-3)", "optimizer = adam"),
        ("optimizer = sgd(0.1, momentum = 0.5)", "optimizer = sgd(momentum = 0.5, lr = 0.1)", "optimizer = sgd"),
        ("surrogate = fast_sigmoid(5)", "surrogate = fast_sigmoid(slope = 5)", "surrogate = fast_sigmoid"),
        ("schedule = exponential(0.5)", "schedule = exponential(factor = 0.5)", "schedule = exponential(0.9)"),
    ] {
        let [short, long, other] = [short, long, other].map(trained);
        assert!(short == long && short != other, "{short} {long} {other}");
    }
}

/// Quotients that are 0/0 at one place have their limit there, and so they have as near to it as numbers come.
#[test]
fn quotients_have_their_limits_at_subnormal_numbers() {
    let model = "cell C {
            state c = 1; state x = 0; state y = 0; state z = 0
            let r = exp_linear_rate(c, 1 /ms, 0, 1)
            c' = -c / 0.3 ms
            x' = (1 - exp(-c)) / c / 1 ms
            y' = 1 / 1 ms - c * y / 1 ms
            z' = r - z / 1 ms
        }
        network main { population p: C }
        run { duration = 300 ms; dt = 0.1 ms; method = exp_euler; record p.{x, y, z} every 0.1 ms }";
    let values = |arguments: &[&str]| {
        let here = folder(&[("m.neuro", model)]);
        let done = neuroc(&here, &[&["run", "m.neuro", "-o", "o.npz"], arguments].concat());
        assert_eq!(done.code, 0, "{}", done.err);
        let result = RunResult::read_npz(&here.path().join("o.npz")).unwrap();
        let column = |series: &neuroc::results::Series| {
            (0..series.values.shape().0).map(|row| series.values.get(row, 0)).collect::<Vec<f64>>()
        };
        result.series.iter().map(column).collect::<Vec<_>>()
    };
    let cache = Path::new(env!("CARGO_TARGET_TMPDIR")).join("kernels").display().to_string();
    let interp = ["--engine", "interp", "-O0"];
    let native = ["--engine", "native", "--cache", &cache];
    for (arguments, within) in [
        (&interp[..], 1e-9),
        (&["--engine", "interp"], 1e-9),
        (&native, 1e-9),
        (&[&native[..], &["--precision", "f32"]].concat(), 1e-3),
    ] {
        let [x, y, z] = &values(arguments)[..] else { panic!("three series") };
        // From 20 ms on c is as good as 0: all of them are lines.
        for at in 200..x.len() {
            for (name, series, rise) in [("x", x, 0.1), ("y", y, 0.1), ("z", z, 0.0)] {
                let change = series[at] - series[at - 1];
                assert!((change - rise).abs() < within, "{arguments:?}: {name} at {at}: {change}");
            }
        }
    }
    // A linoid far from 0.
    let far = "cell C { param big = 1e39; state v = 0; let r = exp_linear_rate(-big, 1 /ms, 0, 1); v' = r - v / 1 ms }
        network main { population p: C[2]; param p.big = 1e308 * (1 + index) }
        run { duration = 1 ms; dt = 0.1 ms; method = exp_euler; record p.v }";
    assert_eq!(last_of(far, &[]), [0.0, 0.0]);
}

/// A slope that is infinite says nothing: a state that begins there moves, with adaptive steps and in cells with sections, through junctions too.
#[test]
fn states_leave_vertical_tangents() {
    let roots = "cell A { state x = 0; state y = 0; x' = (1 - sqrt(x)) / 1 ms; y' = (1 - y^0.7) / 1 ms }
        network main { population a: A }
        run { duration = 3 ms; dt = 0.001 ms; method = adaptive; record a.{x, y} every 3 ms }";
    let adaptive = last_of(roots, &[]);
    let stepped = last_of(&roots.replace("adaptive", "euler"), &[]);
    assert!(adaptive[0] > 0.5 && adaptive[1] > 0.5, "{adaptive:?}");
    for (a, b) in adaptive.iter().zip(&stepped) {
        assert!((a - b).abs() < 1e-3, "{adaptive:?} {stepped:?}");
    }
    let cells = "channel Odd { param gbar = 0.1 mS/cm2; param erev = 0 mV; current i = gbar * sqrt(abs(v + 65 mV) / 1 mV) * 1 mV }
        cell S {
            section soma { length = 20 um; diam = 20 um; compartments = 1 }
            region all { ra = 100 ohm*cm; cm = 1 uF/cm2; v_init = -65 mV; insert Odd }
        }
        cell Q {
            section soma { length = 20 um; diam = 20 um; compartments = 1 }
            region all { ra = 100 ohm*cm; cm = 1 uF/cm2; v_init = -65 mV }
        }
        junction J { param g = 1 nS; current i = g * sqrt(abs(dv) / 1 mV) * 1 mV }
        network main {
            population s: S; population q: Q[3]
            connect q.soma(0.5) -- q.soma(0.5) via J { rule = all_to_all }
            input a: 0.01 nA -> s.soma(0.5); input b: 0.01 nA -> q[0].soma(0.5)
        }
        run { duration = 1 ms; dt = 0.1 ms; method = cnexp; record s.soma(0.5).v; record q.soma(0.5).v }";
    for method in ["cnexp", "crank_nicolson"] {
        let found = last_of(&cells.replace("cnexp", method), &[]);
        assert!(found[0] > -65.0 && found[1] > -65.0 && found.iter().all(|v| v.abs() < 70.0), "{method}: {found:?}");
    }
}

/// In single precision: what one state of a scheme loses another gains, in every step; and a product of two small differences is small.
#[test]
fn single_precision_loses_neither_channels_nor_differences() {
    let scheme = "channel M {
            param gbar = 0.5 mS/cm2; param erev = -90 mV; param fast = 1000
            let a = 0.3 /ms * exp((v + 40 mV) / 15 mV)
            let b = 0.2 /ms * exp(-(v + 40 mV) / 20 mV)
            kinetics {
                C <-> O (a, b)
                O <-> I (2 /ms * fast, 0.5 /ms * fast)
                I <-> C (0.02 /ms, 0 /ms)
                conserve C + O + I = 1
            }
            current i = gbar * O * (v - erev)
        }
        cell A { compartment soma { area = 1000 um2; cm = 1 uF/cm2; v_init = -60 mV; insert M } }
        network main { population c: A }
        run { duration = 5000 ms; dt = 0.05 ms; method = cnexp; record c.soma.{M.C, M.O, M.I} every 5000 ms }";
    let differences = "cell A { state x = 1000.2; x' = (x - 1000) * (1001 - x) / 1 ms }
        network main { population a: A }
        run { duration = 1 ms; dt = 0.05 ms; method = euler; record a.x every 1 ms }";
    let cache = Path::new(env!("CARGO_TARGET_TMPDIR")).join("kernels").display().to_string();
    let single = ["--engine", "native", "--precision", "f32", "--cache", &cache];
    let sum: f64 = last_by(scheme, &single).iter().sum();
    assert!((sum - 1.0).abs() < 1e-3, "{sum}");
    let (x, expected) = (last_by(differences, &single)[0], last_of(differences, &[])[0]);
    assert!((x - expected).abs() < 2e-3, "{x}, not {expected}");
}

/// In single precision, stimuli whose times differ from cell to cell are on for as many steps as they say; a delay that is no whole number of
/// steps means what it means elsewhere.
#[test]
fn times_of_cells_are_whole_steps_in_single_precision() {
    let model = "cell C { state a = 0; state b = 0; state d = 0; state e = 0
            input ii: 1/ms; input jj: 1/ms; input kk: 1/ms; input ll: 1/ms
            a' = ii; b' = jj; d' = kk; e' = ll }
        network main {
            population c: C[65]
            input a1: pulse(delay = 1 ms + 0.1 ms * index, duration = 0.3 ms + 0.1 ms * index, amplitude = 1 /ms) -> c.ii
            input a2: train(delay = 0.7 ms + 0.1 ms * index, duration = 0.3 ms, amplitude = 1 /ms, period = 0.7 ms + 0.1 ms * index) -> c.jj
            input a3: staircase(delay = 0.1 ms * index, duration = 0.3 ms + 0.1 ms * index, start = 0.1 /ms, increment = 0.05 /ms, count = 5) -> c.kk
            input a4: noise(mean = 0 /ms, sd = 1 /ms, every = 0.3 ms + 0.1 ms * index) -> c.ll
        }
        run { duration = 900 ms; dt = 0.1 ms; method = euler; record c.{a, b, d, e} every 900 ms }";
    let between = "cell C { state q = 0; input i: 1/ms; q' = i }
        network main {
            population c: C[4]
            input p: pulse(delay = 0.15 ms + 0.001 ms * index, duration = 0.3 ms, amplitude = 1 /ms) -> c.i
        }
        run { duration = 1 ms; dt = 0.1 ms; method = euler; record c.q every 0.2 ms }";
    let cache = Path::new(env!("CARGO_TARGET_TMPDIR")).join("kernels").display().to_string();
    let single = ["--engine", "native", "--precision", "f32", "--cache", &cache];
    let (found, expected) = (last_by(model, &single), last_of(model, &[]));
    for (at, (a, b)) in found.iter().zip(&expected).enumerate() {
        assert!((a - b).abs() < 2e-3 * b.abs().max(1.0), "{at}: {a}, not {b}");
    }
    for arguments in [&["--engine", "interp"][..], &single] {
        let late = last_by(&between.replace("duration = 1 ms", "duration = 0.2 ms"), arguments);
        assert_eq!(late, [0.0; 4], "{arguments:?}");
        assert!(last_by(between, arguments).iter().all(|q| (q - 0.3).abs() < 1e-6), "{arguments:?}");
    }
}

/// A run of a model.
fn done(model: &str, arguments: &[&str]) -> crate::cli::Done {
    neuroc(&folder(&[("m.neuro", model)]), arguments)
}

/// Where a solution ends, a run with adaptive steps ends as others do: at once, where it is said, with what it has recorded.
#[test]
fn adaptive_steps_end_where_a_solution_does() {
    let model = |rate: &str| {
        format!(
            "cell C {{ param p = 0.5 /mV/ms; state v: mV = 1 mV; v' = {rate} }}
            network main {{ population c: C }}
            run {{ duration = 5 ms; dt = 0.01 ms; method = adaptive; record c.v every 0.1 ms }}"
        )
    };
    // It falls to 0 with a rate that has no end, runs away, or is driven back whenever it goes on.
    let ends = [("-1 mV * 1 mV/ms / v", 0.5), ("p * v * v", 2.0), ("if v > 1.3 mV then -1 mV/ms else 1 mV/ms", 0.3)];
    for (rate, end) in ends {
        let here = folder(&[("m.neuro", &model(rate))]);
        let done = neuroc(&here, &["run", "m.neuro", "--engine", "interp", "-o", "o.npz"]);
        let said = "`c.v` of cell 0 became NaN (not a number) at t = ";
        assert!(
            done.code == 1
                && done.err.contains(said)
                && done.err.contains("m.neuro:1:")
                && done.err.contains("no step is short enough"),
            "{rate}: {}",
            done.err
        );
        let kept = RunResult::read_npz(&here.path().join("o.npz")).unwrap();
        let rows = kept.series[0].values.shape().0;
        assert!((rows as f64 - end * 10.0).abs() < 1.5, "{rate}: {rows}");
    }
    // One run of a sweep, and bad runs of a search.
    let away = model("p * v * v");
    let here = folder(&[("m.neuro", &away)]);
    let sweep = "p=0.02/mV/ms,0.5/mV/ms,0.1/mV/ms";
    let swept = neuroc(&here, &["run", "m.neuro", "--engine", "interp", "-o", "o.npz", "--sweep", sweep]);
    assert!(swept.code == 1 && here.path().join("o.npz").exists(), "{}", swept.err);
    let fine = neuroc(
        &here,
        &["run", "m.neuro", "--engine", "interp", "-o", "t.csv", "--set", "p=0.1/mV/ms", "--sweep", "none"],
    );
    assert_eq!(fine.code, 0, "{}", fine.err);
    let (p, fit) = found_by(&here, &["--free", "p=0.02..0.3/mV/ms", "--search", "nelder-mead"]);
    assert!(fit.code == 0 && (p - 0.1).abs() < 1e-4, "{p} {}", fit.err);
}

/// The one parameter that a fit of `m.neuro` to `t.csv` finds.
fn found_by(here: &TempDir, arguments: &[&str]) -> (f64, Done) {
    let fit = ["fit", "m.neuro", "--engine", "interp", "--target", "c.v=t.csv", "-o", "x.set"];
    let fit = neuroc(here, &[&fit, arguments].concat());
    let found = fs::read_to_string(here.path().join("x.set")).unwrap_or_default();
    let number = found.rsplit(['=', ' ', '/']).find_map(|word| word.trim().parse().ok());
    (number.unwrap_or(f64::NAN), fit)
}

/// A gradient is the same whichever way it is found: a selection that makes a slope 0 keeps it 0.
#[test]
fn what_a_selection_makes_0_stays_0_forward() {
    let model =
        "cell C { param p = 1; state v: mV = 5 mV; v' = -v / 5 ms + 0.1 mV/ms * sqrt(max(p * v / 1 mV - 3, 0)) }
        network main { population c: C }
        run { duration = 20 ms; dt = 0.1 ms; method = exp_euler; record c.v every 1 ms }";
    let here = folder(&[("m.neuro", model)]);
    let run = ["run", "m.neuro", "--engine", "interp", "--set", "p=1.3", "-o", "t.csv"];
    assert_eq!(neuroc(&here, &run).code, 0);
    for mode in ["forward", "reverse"] {
        let (p, fit) = found_by(&here, &["--free", "p=0.5..2", "--mode", mode]);
        assert!(fit.code == 0 && (p - 1.3).abs() < 0.02, "{mode}: {p} {}", fit.err);
    }
}

/// Only what nothing depends on is said to be so, and who moves a threshold is told that.
#[test]
fn what_targets_depend_on_is_known() {
    let model = |equation: &str| {
        format!(
            "cell C {{ param tau = 10 ms; param th = 1 mV; param k = 2 mV; param unread = 1; state v: mV = 5 mV; {equation}; input inj: mV/ms }}
            network main {{ param n = 1; population c: C[n]; input s: sine(delay = 1 ms, duration = 15 ms, amplitude = 1 mV/ms, period = 5 ms, phase = 0) -> c.inj }}
            run {{ duration = 20 ms; dt = 0.1 ms; record c.v every 1 ms }}"
        )
    };
    let fit = |equation: &str, free: &str, more: &[&str]| {
        let here = folder(&[("m.neuro", &model(equation))]);
        let run = neuroc(&here, &["run", "m.neuro", "--engine", "interp", "-o", "t.csv"]);
        assert_eq!(run.code, 0, "{}", run.err);
        let fit = ["fit", "m.neuro", "--engine", "interp", "--target", "c.v=t.csv", "-o", "x.set", "--free", free];
        neuroc(&here, &[&fit, more].concat())
    };
    let decay = "v' = -v / tau + inj";
    // The middle of the bounds is the best value; around a 0/0 the sides meet; nobody sees which turn of a sine it is.
    let guarded = "let x = (v - th) / k; v' = -v / tau + inj + 0.1 mV/ms * (if abs(x) < 1e-6 then 1 - x / 2 else x / (exp(x) - 1))";
    let fine = [
        (decay, "c.tau=5..15ms"),
        (guarded, "c.th=0.5..2mV"),
        (guarded, "c.k=1..4mV"),
        (decay, "s.period=4..7ms"),
        ("v' = if v < th then 0 mV/ms else -v / tau", "c.tau=5..15ms"),
    ];
    for (equation, free) in fine {
        let done = fit(equation, free, &[]);
        assert_eq!(done.code, 0, "{free}: {}", done.err);
    }
    let unread = fit(decay, "c.unread=1..3", &[]);
    assert!(unread.code == 2 && unread.err.contains("no target depends on `c.unread`"), "{}", unread.err);
    let step = "v' = if v < th then 0 mV/ms else -v / tau";
    let moved = fit(step, "c.th=0.5..2mV", &[]);
    let said = "`c.th` moves the time at which something is switched, and has no gradient";
    assert!(moved.code == 1 && moved.err.contains(said) && moved.err.contains("nelder_mead"), "{}", moved.err);
    assert_eq!(fit(step, "c.th=0.5..2mV", &["--search", "nelder-mead"]).code, 0);
    // No search tries whole numbers.
    let size = fit(decay, "n=1..5", &[]);
    assert!(size.code == 1 && size.err.contains("`--sweep n=...`"), "{}", size.err);
}

/// With adaptive steps an event arrives any time later, however short `dt` is; what comes at once has help that can be followed.
#[test]
fn adaptive_steps_take_any_delay() {
    let model = |weight: &str, delay: &str| {
        format!(
            "synapse Kick {{ on event(weight: mV) {{ v += weight }} }}
            cell Lif {{ state v: mV = -60 mV; v' = (-40 mV - v) / 10 ms; spike when v >= -50 mV {{ v = -60 mV }} }}
            network main {{ population b: Lif[2]; init b.v = -60 mV - 1 mV * index
                connect b -> b via Kick {{ rule = all_to_all(); weight = {weight}; delay = {delay} }} }}
            run {{ duration = 10 ms; dt = 0.1 ms; method = adaptive; record b.v every 10 ms }}"
        )
    };
    assert_eq!(last_of(&model("1 mV", "0.01 ms"), &[]).len(), 2);
    let run = |weight: &str, delay: &str| done(&model(weight, delay), &["run", "m.neuro", "-o", "o.npz"]);
    let none = run("1 mV", "0 ms");
    let said = "with adaptive steps a spike arrives any time later, but later";
    assert!(none.code == 1 && none.err.contains(said) && !none.err.contains("after_threshold"), "{}", none.err);
    // Who answers itself at next to no time does so without end.
    let endless = run("15 mV", "1e-14 ms");
    assert!(endless.code == 1 && endless.err.contains("spikes make each other without end"), "{}", endless.err);
}

/// What a command line sets in a model that is right without is its fault, wherever the message points.
#[test]
fn a_right_model_is_not_at_fault() {
    let model = |degree: &str, dt: &str| {
        format!(
            "synapse Kick {{ on event(weight: mV) {{ v += weight }} }}
            cell Lif {{ param tau = 20 ms; state v: mV = 0 mV; v' = -v / tau; spike when v >= 20 mV {{ v = 0 mV }} }}
            network main {{ param n = 4; population b: Lif[n]
                drive b via Kick from poisson(rate = 1 kHz * {degree}) {{ weight = 20 mV / n }} }}
            run {{ duration = 1 ms; dt = {dt}; record b[0..2].v every 0.5 ms }}"
        )
    };
    let code = |model: &str, more: &[&str]| {
        let args = [&["run", "m.neuro", "--engine", "interp", "-o", "o.npz"], more].concat();
        let done = done(model, &args);
        assert!(done.code == 0 || done.err.contains("error"), "{more:?}: {}", done.err);
        done.code
    };
    let right = model("n", "0.1 ms");
    for (more, expected) in [
        (&["--set", "n=3"][..], 0),
        (&["--set", "n=0"], 2),
        (&["--set", "n=-1"], 2),
        (&["--every", "0.03ms"], 2),
        (&["--dt", "0.3ms"], 2),
        (&["--sweep", "n=2,3"], 2),
        (&["--sweep", "tau=-1..1ms:2"], 2),
        (&["--sweep", "tau=10..20ms:2"], 0),
    ] {
        assert_eq!(code(&right, more), expected, "{more:?}");
    }
    // A model that is wrong as it is written is, whatever is set.
    for wrong in [model("(n - 5)", "0.1 ms"), model("n", "0.3 ms")] {
        for more in [&[][..], &["--set", "n=3"], &["--every", "0.03ms"]] {
            assert_eq!(code(&wrong, more), 1, "{more:?}");
        }
    }
}

/// What a synapse remembers of its weight has the unit that the synapse gives it.
#[test]
fn a_weight_that_is_recorded_has_its_declared_unit() {
    for (unit, current) in [("pA", "g"), ("uS", "g * 1 mV"), ("nA", "g")] {
        let text = format!(
            "synapse P {{
                state g: {unit} = 0 {unit}
                g' = -g / 5 ms
                on pre(weight: {unit}) {{ g += weight }}
                on post(weight: {unit}) {{ weight += 0.5 {unit} }}
                current i = {current}
            }}
            cell C {{ state v: mV = 0 mV; v' = 1 mV/ms - i_syn / 1 F; spike when v > 0.95 mV {{ v = 0 mV }} }}
            network main {{
                population a: C[2]
                population b: C[2]
                connect a -> b via P {{ rule = one_to_one; weight = 2 {unit}; delay = 1 ms }}
            }}
            run {{ duration = 1.5 ms; dt = 0.1 ms; record a.b.P.weight }}"
        );
        let here = folder(&[("m.neuro", &text)]);
        let done = neuroc(&here, &["run", "m.neuro", "--engine", "interp", "-o", "o.npz"]);
        assert_eq!(done.code, 0, "{}", done.err);
        let result = RunResult::read_npz(&here.path().join("o.npz")).unwrap();
        let weight = &result.series[0];
        let last = weight.values.get(weight.values.shape().0 - 1, 0);
        assert_eq!((weight.unit.as_str(), weight.values.get(0, 0)), (unit, 2.0));
        assert!((last - 2.5).abs() < 1e-12, "{last} {unit}");
    }
}

/// Cells that spike every ten steps, and wait for 0, 11, 22 and 33 ms.
const WAITING: &str = "cell C {
    param wait = 0 ms
    state v: mV = 0 mV
    v' = 1 mV / 0.001 ms
    spike when v > 9.5 mV { v = 0 mV; refractory wait }
}
network main { population c: C[4]; param c.wait = 11 ms * index }
run { duration = 34 ms; dt = 0.001 ms; method = euler; record spikes of c }";

fn spikes_of(here: &TempDir, more: &[&str]) -> Vec<(u64, f64)> {
    let done = neuroc(here, &[&["run", "m.neuro", "-o", "o.npz"], more].concat());
    assert_eq!(done.code, 0, "{more:?}: {}", done.err);
    let result = RunResult::read_npz(&here.path().join("o.npz")).unwrap();
    let spikes = &result.spikes[0];
    spikes.i.iter().copied().zip(spikes.t.iter().copied()).collect()
}

/// Refractory times are counted in steps, which are exact in single precision, too.
#[test]
fn long_refractory_times_end_in_their_step_in_single_precision() {
    let here = folder(&[("m.neuro", WAITING)]);
    let double = spikes_of(&here, &["--engine", "interp"]);
    for cell in 1..4 {
        let times: Vec<f64> = double.iter().filter(|spike| spike.0 == cell).map(|spike| spike.1).collect();
        let second = 0.02 + 11.0 * cell as f64;
        assert!((times[0] - 0.01).abs() < 1e-9 && (times[1] - second).abs() < 1e-9, "{cell}: {times:?}");
    }
    assert_eq!(double.iter().filter(|spike| spike.0 == 0).count(), 3400);
    assert!(double == spikes_of(&here, &["--precision", "f32"]));
}

/// A checkpoint of an older version says in ms how long cells are refractory still; one that is new, in steps, which other steps take over.
#[test]
fn checkpoints_know_how_long_cells_are_refractory() {
    let here = folder(&[("m.neuro", WAITING)]);
    let interp = ["--engine", "interp"];
    let whole = spikes_of(&here, &interp);
    spikes_of(&here, &[&interp[..], &["--duration", "5ms", "--save", "s.npz"]].concat());
    let path = here.path().join("s.npz");
    let mut saved = Checkpoint::read(&path).unwrap();
    let rest: Vec<(u64, f64)> = whole.into_iter().filter(|spike| spike.1 > 5.0005).collect();
    assert!(rest == spikes_of(&here, &[&interp[..], &["--load", "s.npz"]].concat()));
    for (name, values) in &mut saved.states {
        if name == "c'held" {
            *name = "c'refractory".into();
            values.iter_mut().for_each(|left| *left *= 0.001);
        }
    }
    saved.write(&path).unwrap();
    assert!(rest == spikes_of(&here, &[&interp[..], &["--load", "s.npz"]].concat()));
    let longer = spikes_of(&here, &[&interp[..], &["--load", "s.npz", "--dt", "0.002ms"]].concat());
    for cell in 1..4 {
        let first = longer.iter().find(|spike| spike.0 == cell).map_or(0.0, |spike| spike.1);
        assert!((first - 0.02 - 11.0 * cell as f64).abs() < 1e-9, "{cell}: {first}");
    }
}

/// The help against spikes of the target that come too early, where a modulator reaches the synapses, is one that works.
#[test]
fn modulated_synapses_tell_spikes_apart_without_a_delay() {
    let text = "use std.plasticity.{RewardStdp}
        cell Lif { state v: mV = -60 mV; v' = (10 nS * (-60 mV - v) - i_syn) / 200 pF; spike when v > -50 mV { v = -60 mV } }
        network main {
            population n: Lif[4]
            connect n -> n via RewardStdp { rule = all_to_all; weight = 0.5 nS; delay = 0 ms }
            connect n -> n modulating RewardStdp { rule = all_to_all; weight = 1; delay = 1 ms }
        }
        run { duration = 1 ms; dt = 0.1 ms; arrivals = after_threshold; coincident = apart; record spikes of n }";
    for text in [text.to_string(), text.replace("apart", "post_first")] {
        let here = folder(&[("m.neuro", &text)]);
        let done = neuroc(&here, &["run", "m.neuro", "--engine", "interp", "-o", "o.npz"]);
        assert_eq!(done.code, 0, "{}", done.err);
    }
}

/// What a cell resists is told of the middle of its root section, however many compartments that has.
#[test]
fn info_tells_of_the_middle_of_the_root() {
    for (count, place) in [(3, "soma(0.5)"), (4, "soma(0.625)"), (1, "soma(0.5)")] {
        let text = CABLE.replace("diam = 20 um; compartments = 1", &format!("diam = 20 um; compartments = {count}"));
        let text = text.replace("soma(0.5)", place);
        let here = folder(&[("m.neuro", &text)]);
        let done = neuroc(&here, &["info", "m.neuro"]);
        assert_eq!(done.code, 0, "{}", done.err);
        for what in ["input resistance", "membrane time constant"] {
            assert!(done.out.contains(&format!("{what} at {place}: ")), "{}", done.out);
        }
        assert!(done.out.contains("from there to dend(1)"), "{}", done.out);
    }
}

/// Quotients that are 0/0 one inside another, with sums of parameters, or several in one fraction: at the place and near it, in single precision too.
#[test]
fn nested_and_joined_quotients_are_regular() {
    let quotients: [(&str, f64); 16] = [
        ("tanh(x) / (exp(tanh(x)) - 1)", 1.0),
        ("tanh(k * x) / (exp(tanh(k * x)) - 1)", 1.0),
        ("x / (exp(tanh(k * x)) - 1)", 1.0 / 0.8),
        ("(exp(k * x) - 1) / (exp(exp(k * x) - 1) - 1)", 1.0),
        ("x / (exp(exp(tanh(k * x)) - 1) - 1)", 1.0 / 0.8),
        ("(exp(tanh(k * x)) - 1) / (exp(m * x) - 1)", 0.8 / 0.3),
        ("x / (exp(k * x) - exp(m * x))", 2.0),
        ("x / (exp(k * x) * exp(m * x) - 1)", 1.0 / 1.1),
        ("x / (exp((k - m) * x) - 1)", 2.0),
        ("(k * x - m * x) / (exp(k * x) - exp(m * x))", 1.0),
        ("k * (x - y) / (exp(k * (x - y)) - exp(m * (x - y)))", 0.8 / 0.5),
        ("x^2 / ((exp(k * x) - exp(m * x)) * (exp(x) - 1))", 2.0),
        ("x * y / ((exp(x) - 1) * (exp(y) - 1))", 1.0),
        ("sin(x) * sin(y) / (x * y)", 1.0),
        ("sin(x) * y / (x * (exp(y) - 1))", 1.0),
        ("tanh(x * y) / (exp(tanh(x * y)) - 1)", 1.0),
    ];
    let mut text = String::from("cell C { param k = 0.8; param m = 0.3; state x = 0; state y = 0\n");
    text += "x' = 0 /ms; y' = 0 /ms\n";
    let mut names = Vec::new();
    for (at, (quotient, _)) in quotients.iter().enumerate() {
        text += &format!("let q{at} = {quotient}\n");
        names.push(format!("q{at}"));
    }
    let names = names.join(", ");
    text += &format!(
        "}}\nnetwork main {{ population p: C[3]; init p.x = 1e-7 * (index - 1); init p.y = 1e-6 * (index - 1) }}\nrun {{ duration = 0.2 ms; dt = 0.1 ms; record p.{{{names}}} }}"
    );
    let here = folder(&[("m.neuro", &text)]);
    for (more, off) in [(&["--engine", "interp"][..], 3e-6), (&["--precision", "f32"], 5e-6)] {
        let done = neuroc(&here, &[&["run", "m.neuro", "-o", "o.npz"], more].concat());
        assert_eq!(done.code, 0, "{more:?}: {}", done.err);
        let result = RunResult::read_npz(&here.path().join("o.npz")).unwrap();
        for (series, (quotient, limit)) in result.series.iter().zip(quotients) {
            for cell in 0..3 {
                let found = series.values.get(1, cell);
                assert!((found / limit - 1.0).abs() < off, "{more:?}: {quotient} is {found} in cell {cell}");
            }
        }
    }
    // Poles stay, and so does what isn't seen.
    for quotient in ["1 / (exp(tanh(k * x)) - 1)", "x / (exp(tanh(k * x)) - 1)^2", "sin(k * x) / sin(m * x)"] {
        let text = format!(
            "cell C {{ param k = 0.8; param m = 0.3; state x = 0; x' = 0 /ms; let q = {quotient} }}
            network main {{ population p: C[1] }}
            run {{ duration = 0.2 ms; dt = 0.1 ms; record p.q }}"
        );
        let here = folder(&[("m.neuro", &text)]);
        let done = neuroc(&here, &["run", "m.neuro", "--engine", "interp", "-o", "o.npz"]);
        assert!(done.code == 1 && done.err.contains("NU0501"), "{quotient}: {}", done.err);
    }
}

/// A synapse, a cell with a time constant, and a network whose degree is a parameter.
fn kicked(degree: &str, end: &str) -> String {
    format!(
        "synapse Kick {{ on event(weight: mV) {{ v += weight }} }}
        cell Lif {{ param tau = 20 ms; state v: mV = 0 mV; v' = (25 mV - v) / tau; spike when v >= 20 mV {{ v = 0 mV }} }}
        network main {{
            param n = 2
            param d = 1 ms
            population a: Lif[6]
            connect a -> a via Kick {{ rule = fixed_in_degree({degree}); weight = 0.1 mV; delay ~ uniform(d, 2 ms) }}
        }}
        run {{ duration = 50 ms; dt = 0.1 ms; record a.v; record spikes of a {end} }}"
    )
}

/// Bounds of fits, swept names that are set, and what is found out while edges are drawn: the command line is at fault where the model is right without it.
#[test]
fn bounds_and_drawn_edges_are_blamed_on_who_set_them() {
    let code = |model: &str, args: &[&str]| {
        let done = done(model, args);
        assert!(done.code == 0 || done.err.contains("error"), "{args:?}: {}", done.err);
        done.code
    };
    let fit = |model: &str, more: &[&str]| {
        code(model, &[&["fit", "m.neuro", "--engine", "interp", "--iterations", "1"], more].concat())
    };
    let target = ["--target", "rate(a)=40Hz"];
    let right = kicked("n", "");
    for (free, expected) in [("tau=10..20ms", 0), ("tau=-10..20ms", 2), ("tau=0..20ms", 2), ("none=1..2", 2)] {
        assert_eq!(fit(&right, &[&["--free", free][..], &target].concat()), expected, "{free}");
    }
    let block = |low: &str| format!("{}\nfit {{ free tau = {low} .. 20 ms; target rate(a) = 40 Hz }}", kicked("n", ""));
    assert_eq!(fit(&block("10"), &[]), 0);
    assert_eq!(fit(&block("-10"), &[]), 1);
    assert_eq!(fit(&block("-10"), &["--set", "n=3"]), 1);
    assert_eq!(fit(&block("10"), &["--set", "n=-3"]), 2);
    let run = |model: &str, more: &[&str]| {
        code(model, &[&["run", "m.neuro", "--engine", "interp", "-o", "o.npz"], more].concat())
    };
    // What is drawn is known when edges are.
    for (set, expected) in [("n=3", 0), ("n=50", 2), ("d=-1ms", 2)] {
        assert_eq!(run(&right, &["--set", set]), expected, "{set}");
        assert_eq!(run(&kicked("n", "sweep tau = [10, 20] ms"), &["--set", set]), expected, "{set}");
    }
    assert_eq!(run(&right, &["--sweep", "n=50,51"]), 2);
    assert_eq!(run(&right.replace("n = 2", "n = 50"), &["--set", "tau=10ms"]), 1);
    let swept = kicked("n", "sweep tau = [10, 20] ms");
    assert_eq!(run(&swept, &[]), 0);
    assert_eq!(run(&swept, &["--set", "tau=5ms"]), 2);
    assert_eq!(run(&swept, &["--set", "n=-2"]), 2);
    let wrong = kicked("n", "sweep tau = [-10, 20] ms");
    assert_eq!(run(&wrong, &[]), 1);
    assert_eq!(run(&wrong, &["--set", "n=3"]), 1);
    let twice = kicked("n", "sweep tau = [10, 20] ms; sweep tau = [10, 20] ms");
    assert_eq!(run(&twice, &["--set", "tau=5ms"]), 1);
}

/// A population may be called `sweep`, and what it records is beside what is swept.
#[test]
fn a_population_may_be_called_sweep() {
    let text = "cell C { param g = 1 /ms; state v = 0; v' = g }
        network main { population sweep: C[2] }
        run { duration = 0.2 ms; dt = 0.1 ms; record sweep.v; sweep v = [1, 2] }";
    for swept in ["v", "sweep.v"] {
        let here = folder(&[("m.neuro", &text.replace("sweep v", &format!("sweep {swept}")))]);
        let done = neuroc(&here, &["run", "m.neuro", "--engine", "interp", "-o", "o.npz"]);
        assert_eq!(done.code, 0, "{}", done.err);
        let found =
            neuroc::results::Found::read(&here.path().join("o.npz"), &neuroc::results::Reading::default()).unwrap();
        let neuroc::results::Found::Sweep(sweep) = found else { panic!("no sweep") };
        assert_eq!((&sweep.axes[0].name[..], &sweep.axes[0].values[..]), (swept, &[1.0, 2.0][..]));
        for (run, first) in sweep.runs.iter().zip([1.0, 2.0]) {
            assert_eq!((&run.series[0].name[..], run.series[0].values.get(0, 1)), ("sweep.v", first));
        }
    }
}

/// The command line takes targets in the words of a `fit` block.
#[test]
fn targets_on_the_command_line_have_windows_and_columns() {
    let here = folder(&[
        ("m.neuro", &kicked("n", "")),
        ("two.csv", "t,first,second\n0,0,1\n25,5,2\n50,1,2\n"),
        ("each.csv", "20\n30\n40\n20\n30\n40\n"),
    ]);
    let fit = |targets: &[&str]| {
        let mut args = vec![
            "fit",
            "m.neuro",
            "--engine",
            "interp",
            "--iterations",
            "1",
            "--free",
            "tau=10..20ms",
            "--search",
            "nelder-mead",
        ];
        targets.iter().for_each(|target| args.extend(["--target", target]));
        neuroc(&here, &args)
    };
    for (target, shown) in [
        ("rate(a) = 40 Hz from 20 ms to 45 ms within 2 Hz", "rate(a) from 20 ms to 45 ms is off"),
        ("rate(a)=40Hz", "rate(a) is off"),
        ("max(a.v) = 0 mV within 1 mV", "max(a.v) is off"),
        ("rate(a) = file(\"each.csv\") * 1 Hz", "rate(a) is off"),
        ("a.v = file(\"two.csv\", column = \"second\")", "a.v is off"),
    ] {
        let done = fit(&[target]);
        assert!(done.code == 0 && done.out.contains(shown), "{target}: {}{}", done.out, done.err);
    }
    let done = fit(&["rate(a) = 40 Hz from 1 ms to 20 ms", "rate(a) = 40 Hz from 20 ms to 40 ms"]);
    assert_eq!(done.code, 0, "{}", done.err);
    let done = fit(&["a.v = \"two.csv\""]);
    assert!(done.code == 1 && done.err.contains("column = "), "{}", done.err);
    for (target, said) in [
        ("rate(a) = 40 Hz from 20 mV", "error"),
        ("rate(a) = 40 Hz within", "error"),
        ("rate(a) = 40 Hz; starts = 3", "is more than a target"),
        ("rate(a) = 40 Hz }", "error"),
        ("max(a.v)=0mV", "within 1 mV"),
    ] {
        let done = fit(&[target]);
        assert!(done.code == 2 && done.err.contains(said), "{target}: {} {}", done.code, done.err);
    }
}

/// What stands for a 0/0 near its place is not used where its exponentials leave the range of numbers, though what is written does not.
#[test]
fn quotients_are_right_far_from_their_place() {
    let far = |x: f64| {
        [
            ("(exp(k * x) - exp(m * x)) / (exp(x) - exp(-x))", (-0.2 * x).exp() - (-0.7 * x).exp(), 0.25),
            ("k * x / (exp(k * x) - exp(-m * x))", 0.8 * x * (-0.8 * x).exp(), 0.8 / 1.1),
            ("x / (exp(tanh(x)) - 1)", x / 1.0f64.exp_m1(), 1.0),
            ("x / (exp(exp(tanh(k * x)) - 1) - 1)", x / 1.0f64.exp_m1().exp_m1(), 1.25),
            ("x / (1 - exp(-tanh(x)))", x / (1.0 - (-1.0f64).exp()), 1.0),
            ("tanh(x) / x", 1.0 / x, 1.0),
            ("clamp(tanh(x) / x, 0, 0.9)", 1.0 / x, 0.9),
            ("x / tanh(x)", x, 1.0),
            ("sin(x) / tanh(x)", x.sin(), 1.0),
            ("x * cosh(x) / sinh(x)", x, 1.0),
            ("2 * x / (exp(x / 2) - exp(-x / 2))", 2.0 * x * (-x / 2.0).exp(), 2.0),
            ("if abs(x) < 1e-6 then 1 - x^2 / 6 else x / sinh(x)", 2.0 * x * (-x).exp(), 1.0),
        ]
    };
    for (more, x, off) in [(&["--engine", "interp"][..], 400.0, 1e-12), (&["--precision", "f32"], 50.0, 1e-5)] {
        let all = far(x);
        let lets: String = (0..).zip(all).map(|(at, (quotient, ..))| format!("let q{at} = {quotient}\n")).collect();
        let names = (0..all.len()).map(|at| format!("q{at}")).collect::<Vec<_>>().join(", ");
        let text = format!(
            "cell C {{ param k = 0.8; param m = 0.3; state x = 0; x' = 0 /ms
            {lets} }}
            network main {{ population p: C[2]; init p.x = {x} * index }}
            run {{ duration = 0.2 ms; dt = 0.1 ms; record p.{{{names}}} }}"
        );
        let here = folder(&[("m.neuro", &text)]);
        let done = neuroc(&here, &[&["run", "m.neuro", "-o", "o.npz"], more].concat());
        assert_eq!(done.code, 0, "{more:?}: {}", done.err);
        let result = RunResult::read_npz(&here.path().join("o.npz")).unwrap();
        for (series, (quotient, there, limit)) in result.series.iter().zip(all) {
            for (cell, expected) in [(0, limit), (1, there)] {
                let found = series.values.get(1, cell);
                let is_right =
                    (found / expected - 1.0).abs() < off || x < 100.0 && expected.abs() < 1e-37 && found.abs() < 1e-37;
                assert!(is_right, "{more:?}: {quotient} is {found}, not {expected}, in cell {cell}");
            }
        }
    }
}

/// What one of several regions says is told of that region: where it stands, who sets it, and that it is a bound.
#[test]
fn what_a_region_says_is_told_where_it_stands() {
    let model = "use std.channels.hh.Leak
        cell C {
            section soma { length = 20 um; diam = 20 um; compartments = 1 }
            section dend { from soma(1); length = 100 um; diam = 2 um }
            compartments { max_length = 20 um }
            region soma { cm = 1 uF/cm2; ra = 100 ohm*cm; insert Leak; v_init = -65 mV
                pool Ca: mM { init = 1 mM; diffusion = 0.2 um2/ms; Ca' = 0 mM/ms } }
            region dend { cm = 2 uF/cm2; ra = 120 ohm*cm; insert Leak; v_init = -65 mV
                pool Ca: mM { init = 1 mM; diffusion = 0.3 um2/ms; Ca' = 0 mM/ms } }
        }
        network main { population p: C[1] }
        run { duration = 1 ms; dt = 0.1 ms; method = cnexp; record p.soma(0.5).v }";
    for (set, line) in [
        ("p.soma.cm=-1 uF/cm2", "region soma { cm"),
        ("p.dend.cm=-1 uF/cm2", "region dend { cm"),
        ("p.soma.ra=0 ohm*cm", "region soma { cm"),
        ("p.soma.Ca.diffusion=-1 um2/ms", "diffusion = 0.2"),
        ("p.dend.Ca.diffusion=-1 um2/ms", "diffusion = 0.3"),
    ] {
        let name = set.split('=').next().unwrap();
        let told = done(model, &["run", "m.neuro", "--set", set, "-o", "o.npz"]);
        let said = told.err.contains(&format!("`{name}` of ")) && told.err.contains(line);
        assert!(told.code == 2 && said && told.err.contains("it is set from outside"), "{set}: {}", told.err);
        let (name, low) = set.split_once('=').unwrap();
        let free = format!("{name}={low}..{}", low.replace("-1", "1").replace("0 ohm", "200 ohm"));
        let trace = "t,v\n0,-65\n0.5,-65\n1,-65\n";
        let here = folder(&[("m.neuro", model), ("t.csv", trace)]);
        let fit = ["fit", "m.neuro", "--engine", "interp", "--target", "p.soma(0.5).v=t.csv", "--free", &free];
        let told = neuroc(&here, &fit);
        let said = told.err.contains(&format!("`{name}` of ")) && told.err.contains("this is a bound of");
        assert!(told.code == 2 && said, "{free}: {}", told.err);
    }
}

/// Spikes of adaptive steps stand in the order of their times, also where several happen between two samples.
#[test]
fn spikes_of_adaptive_steps_stand_in_the_order_of_their_times() {
    let model = "cell C { state v: mV = 0 mV; v' = (25 mV - v) / 10 ms
            spike when v >= 15 mV { v = 0 mV } }
        network main { population p: C[5]; population q: C[2]; init p.v = 1 mV * index; init q.v = 2.5 mV * index }
        run { duration = 60 ms; dt = 4 ms; method = adaptive; record spikes of p; record spikes of q }";
    let here = folder(&[("m.neuro", model)]);
    let done = neuroc(&here, &["run", "m.neuro", "-o", "o.npz"]);
    assert_eq!(done.code, 0, "{}", done.err);
    let result = RunResult::read_npz(&here.path().join("o.npz")).unwrap();
    for (train, (cells, each)) in result.spikes.iter().zip([(5_u32, 1.0), (2, 2.5)]) {
        assert!(train.t.len() > 10 && train.t.is_sorted(), "{:?}", train.t);
        // The cell that begins nearest to its threshold spikes first, and so on.
        for (at, cell) in (0..cells).rev().enumerate() {
            let time = 10.0 * ((25.0 - each * f64::from(cell)) / 10.0).ln();
            let (t, found) = (train.t[at], train.i[at]);
            assert!(found == u64::from(cell) && (t - time).abs() < 1e-3, "{found} at {t}, not {cell} at {time}");
        }
    }
}
