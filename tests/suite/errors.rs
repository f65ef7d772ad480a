//! Tests of messages: a corpus of wrong models with what is said about each, and mutated models that must never make
//! the compiler panic or fall silent.
//!
//! A case is a file `tests/errors/NAME.neuro`, named after the mistake in it, and its message in `NAME.snap`
//! (`INSTA_UPDATE=always cargo test` writes new ones; read them before you commit them).

use neuroc::diag::{Code, Diagnostic, render_human, render_json};
use neuroc::driver::{Checked, check_bytes, check_file, check_text, check_whole};
use neuroc::hir::Sources;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

const CORPUS: &str = "tests/errors";

/// Cases with more than one mistake, each independent of the others.
const SEVERAL: &[(&str, usize)] = &[
    ("fit", 15),
    ("rule_flags", 2),
    ("refractory_holds", 2),
    ("record_of_synapses_without_sender", 3),
    ("connection_gives_what_is_shared", 5),
    ("connection_parameters", 6),
    ("words_of_other_simulators", 5),
    ("cable_synapse_moves_voltage", 2),
    ("cable_reads_another_region", 6),
    ("cable_param_of_another_region", 3),
    ("input_and_junction_of_one_name", 2),
    ("path_with_two_places", 2),
    ("init_twice_after_a_part", 2),
    ("derivative_of_another_language", 2),
    ("spike_not_a_number", 3),
    ("distance_defined", 2),
    ("rate_function_without_scale", 3),
    ("pulse_of_no_whole_steps", 2),
    ("broken_cell_has_no_second_message", 2),
    ("given_potential_sends_no_spikes", 2),
    ("train_units", 4),
    ("train_readout_units", 2),
    ("train_delays", 9),
    ("train_keep", 6),
    ("train_keep_readout", 2),
    ("fit_names", 5),
    ("fit_ranges", 4),
    ("probe_recorded_wrongly", 2),
    ("probe_wrong", 14),
    ("section_toward_nothing", 6),
    ("modulator_changes_shared", 2),
    ("ornstein_uhlenbeck_arguments", 4),
    ("section_with_keys_of_neuron", 2),
    ("swc_of_wrong_lines", 5),
    ("drive_between_steps", 2),
    ("swc_of_wrong_parents", 2),
    ("celsius_minus_number", 2),
    ("gate_product_outside_channel", 2),
    ("input_delay_without_unit", 2),
    ("many_mistakes", 15),
    ("rate_function_midpoint_without_unit", 2),
    ("rates_without_units", 7),
    ("synapse_two_draws_without_tilde", 2),
    ("two_typos", 2),
    ("record_edges_that_are_not_there", 3),
    ("set_of_synapses", 2),
    ("sweep", 11),
    ("adaptive_tolerance", 2),
    ("train", 10),
    ("convolution_arguments", 2),
    ("max_pool_numbers", 6),
    ("train_names", 6),
    ("junction_with_two_voltages", 2),
    ("kinetics_one_rate", 3),
    ("kinetics_to_itself_and_twice", 2),
    ("kinetics_unknown_names", 2),
    ("kinetics_wrong_dimension", 3),
    ("words_of_blocks_alone", 11),
    ("fit_keys_that_are_none", 2),
    ("train_keys_that_are_none", 3),
];

/// Codes that no model file alone can produce, with the reason.
const NOT_HERE: &[(Code, &str)] = &[
    (Code::More, "a file with more than a hundred mistakes"),
    (Code::MoreWarnings, "a file with more than a hundred of them"),
    (Code::Internal, "a bug of the compiler"),
];

fn files(directory: &str) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(directory).expect("the directory is part of the repository");
    let mut files: Vec<PathBuf> =
        entries.map(|e| e.expect("readable").path()).filter(|p| p.extension().is_some_and(|e| e == "neuro")).collect();
    files.sort();
    files
}

fn stem(path: &Path) -> String {
    path.file_stem().expect("it has a name").to_string_lossy().into_owned()
}

fn check(path: &Path) -> Checked {
    match std::fs::read_to_string(path) {
        Ok(text) => {
            let name = path.file_name().expect("it has a name").to_string_lossy();
            check_whole(check_text(&name, Path::new(CORPUS), text, &Sources))
        }
        Err(_) => check_file(path),
    }
}

fn corpus() -> Vec<(String, Checked)> {
    files(CORPUS).iter().map(|p| (stem(p), check(p))).collect()
}

#[test]
fn what_is_said_about_each_mistake() {
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path(Path::new(env!("CARGO_MANIFEST_DIR")).join(CORPUS));
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    let _bound = settings.bind_to_scope();
    for (name, checked) in corpus() {
        insta::assert_snapshot!(name, render_human(&checked.sources, &checked.diagnostics, false));
    }
}

#[test]
fn every_snapshot_has_its_model() {
    for entry in std::fs::read_dir(CORPUS).expect("the corpus is part of the repository") {
        let path = entry.expect("readable").path();
        if path.extension().is_some_and(|e| e == "snap") {
            assert!(path.with_extension("neuro").exists(), "{} is left over", path.display());
        }
    }
}

#[test]
fn one_mistake_makes_one_message() {
    for (name, checked) in corpus() {
        let expected = SEVERAL.iter().find(|s| s.0 == name).map_or(1, |s| s.1);
        let text = render_human(&checked.sources, &checked.diagnostics, false);
        assert_eq!(checked.diagnostics.len(), expected, "{name}:\n{text}");
        let wrong = checked.diagnostics.iter().any(Diagnostic::is_error);
        assert_eq!(checked.model.is_none(), wrong, "{name}: a model with warnings is a model");
    }
}

#[test]
fn every_code_has_a_case() {
    let seen: BTreeSet<Code> = corpus().iter().flat_map(|(_, c)| c.diagnostics.iter().map(|d| d.code)).collect();
    for &code in Code::ALL {
        let elsewhere = NOT_HERE.iter().find(|n| n.0 == code);
        match elsewhere {
            None => assert!(seen.contains(&code), "{} ({}) has no case in {CORPUS}", code.id(), code.title()),
            Some((_, why)) => assert!(!seen.contains(&code), "{} has a case, but is listed: {why}", code.id()),
        }
    }
}

#[test]
fn messages_have_one_style() {
    for (name, checked) in corpus() {
        for d in &checked.diagnostics {
            let texts = d.notes.iter().chain(&d.help).chain(d.labels.iter().map(|l| &l.message)).chain([&d.message]);
            for text in texts {
                assert!(!text.ends_with('.'), "{name}: `{text}` ends with a full stop");
                assert!(!text.contains("  ") || text.contains('\n') || text.contains('['), "{name}: `{text}`");
                assert!(!text.starts_with(|c: char| c.is_uppercase()), "{name}: `{text}` begins with a capital");
            }
            let primary = d.labels.first().is_none_or(|l| l.primary);
            assert!(primary, "{name}: the first place must be that of the mistake");
            for label in &d.labels {
                let source = checked.sources.text(label.span);
                assert_eq!(
                    source,
                    source.trim_end_matches([' ', '\t', '\n']),
                    "{name}: the place `{source}` has blanks behind it"
                );
            }
        }
    }
}

#[test]
fn codes_are_explained_in_plain_words() {
    let mut ids = BTreeMap::new();
    for &code in Code::ALL {
        assert!(ids.insert(code.id(), code).is_none(), "{} is given twice", code.id());
        let text = code.explanation();
        assert!(text.len() > 60, "{} is hardly explained", code.id());
        assert!(text.lines().all(|l| l.chars().count() <= 120), "{}: a line is too long for a terminal", code.id());
        assert!(!text.contains("  wrong") || text.contains("  right"), "{} says only what is wrong", code.id());
    }
}

#[test]
fn json_has_a_fixed_shape() {
    for (name, checked) in corpus() {
        let json = render_json(&checked.sources, &checked.diagnostics);
        assert_eq!(json.lines().count(), checked.diagnostics.len(), "{name}: one line a message");
        for (line, d) in json.lines().zip(&checked.diagnostics) {
            let value: serde_json::Value = serde_json::from_str(line).expect("each line is a JSON object");
            let object = value.as_object().expect("an object");
            let keys: Vec<&str> = object.keys().map(String::as_str).collect();
            assert_eq!(keys, ["code", "help", "labels", "message", "notes", "severity"], "{name}");
            assert_eq!(value["code"], d.code.id());
            assert_eq!(value["message"], d.message.as_str());
            assert!(["error", "warning"].contains(&value["severity"].as_str().expect("a text")));
            for (label, l) in value["labels"].as_array().expect("a list").iter().zip(&d.labels) {
                let number = |key: &str| label[key].as_u64().expect("a number");
                assert!(number("line") >= 1 && number("column") >= 1, "{name}: lines and columns count from 1");
                assert_eq!(number("start"), u64::from(l.span.start));
                assert_eq!(number("end"), u64::from(l.span.end));
                assert_eq!(label["primary"], l.primary);
                assert_eq!(label["message"], l.message.as_str());
                assert_eq!(label["file"], checked.sources.file(l.span.file).name.as_str());
            }
        }
    }
}

// ---------------------------------------------------------------------------------------------- hard cases

fn checked(text: &str) -> Checked {
    check_text("hard.neuro", Path::new(CORPUS), text, &Sources)
}

fn codes(text: &str) -> Vec<&'static str> {
    checked(text).diagnostics.iter().map(|d| d.code.id()).collect()
}

#[test]
fn long_chains_of_definitions_do_not_overflow() {
    let chain = |define: &dyn Fn(usize, usize) -> String, n: usize| -> String {
        (0..n).map(|i| define(i, i + 1)).collect::<Vec<_>>().join("\n")
    };
    let constants = chain(&|i, next| format!("const c{i} = c{next} + 1"), 5000) + "\nconst c5000 = 1";
    assert!(codes(&constants).contains(&"NU0003"));
    let lets = chain(&|i, next| format!("let x{i} = x{next} + 1"), 5000);
    let cell = format!("cell A {{\n{lets}\nlet x5000 = 1\nstate s = 0\ns' = x0 / 1 ms\n}}");
    // Those of a cell may be as long as one likes.
    assert_eq!(codes(&cell), ["NU0310"; 0]);
    let functions = chain(&|i, next| format!("function f{i}(x) = f{next}(x) + f{next}(x)"), 60);
    let functions = format!("{functions}\nfunction f60(x) = x\nconst y = f0(1)");
    assert!(codes(&functions).contains(&"NU0003"));
    let doubling = chain(&|i, next| format!("const d{next} = d{i} + d{i}"), 60);
    assert!(codes(&format!("const d0 = 1\n{doubling}")).contains(&"NU0003"));
}

#[test]
fn odd_numbers_and_names_are_errors_and_no_panic() {
    for text in [
        "const x = 1e99999999999999999999",
        "const x = 1e-99999999999999999999",
        "const x = 123456789012345678901234567890123456789012345678901234567890",
        "const x = 1 mV^99",
        "const x = 1 mV^-99 * 1 mV^99",
        "const x = (1 mV)^9^9^9",
        "const x = 0 ^ 0",
        "const x = 1 / 0",
        "channel Ä { param gbar = 1 mS/cm2 }",
        "const 膜 = 1",
        "const x = 1 µS",
        "const x = 1 \u{212a}",
        "const x = \"\u{1F9E0}\"",
        "run { duration = 1 ms / 0; dt = 1e-300 ms }",
        "run { duration = 1e300 s; dt = 1e-300 ms; seed = 1e300 }",
        "cell A { state a: mV^9^9 = 1 }",
        "function f() = f()\nconst x = f()",
        "function f(x, x) = x\nconst y = f(1, 2)",
        "use std\nuse .{A}\nuse std.{A}",
    ] {
        let c = checked(text);
        let _ = render_human(&c.sources, &c.diagnostics, true);
        assert!(c.model.is_some() || c.diagnostics.iter().any(Diagnostic::is_error), "silent about {text}");
    }
}

#[test]
fn library_items_are_not_warned_about() {
    let text = "use std.channels.hh.{Na, K, Leak}\n\ncell A {\n    compartment soma { cm = 1 uF/cm2; v_init = -65 mV; insert Na, K, Leak }\n}";
    assert_eq!(codes(text), Vec::<&str>::new());
}

/// Many mistakes and long lines: the output stays small, and the time grows with the input and no faster.
#[test]
fn messages_are_capped_and_long_lines_cut() {
    let many = |count: usize| {
        let terms: Vec<String> = (0..count).map(|n| format!("max(a{n}, b{n})")).collect();
        format!("cell C {{ state v: mV = 0 mV; v' = 0 mV/ms; let x = max({}) }}", terms.join(", "))
    };
    for count in [500, 5_000] {
        let checked = check_text("many.neuro", Path::new(""), many(count), &Sources);
        assert!(checked.diagnostics.len() <= 101, "{}", checked.diagnostics.len());
        let more = checked.diagnostics.last().unwrap_or_else(|| panic!("nothing is said"));
        assert_eq!(more.code, Code::More);
        let human = render_human(&checked.sources, &checked.diagnostics, false);
        let json = render_json(&checked.sources, &checked.diagnostics);
        assert!(human.len() < 200_000 && json.len() < 200_000, "{} and {} bytes", human.len(), json.len());
        assert!(human.contains("many.neuro:1:"), "{}", &human[..600]);
    }
    let long = format!("cell C {{ state v: mV = 0 mV; v' = 0 mV/ms {} let x = unknown }}", "/* long */".repeat(20_000));
    let checked = check_text("long.neuro", Path::new(""), long, &Sources);
    let human = render_human(&checked.sources, &checked.diagnostics, false);
    assert!(human.len() < 2_000 && human.contains("unknown") && human.contains("long.neuro:1:2000"), "{human}");
}

/// Lines of old Macintoshes end with a carriage return alone: comments end there, too, and lines are counted.
#[test]
fn lines_may_end_with_a_carriage_return_alone() {
    let text = "cell C {\r  // a comment\r  compartment soma { cm = 1 uF/cm2; v_init = -65 mV; insert Na }\r}\r";
    let checked = check_bytes("old.neuro", Path::new(""), text.into());
    let human = render_human(&checked.sources, &checked.diagnostics, false);
    assert!(checked.diagnostics.len() == 1 && human.contains("old.neuro:3:61"), "{human}");
}

#[test]
fn a_decimal_comma_of_a_setting_is_told() {
    let Err(error) = neuroc::ode::parse_override("Na.gbar=0,3mS/cm2") else { panic!("it was read") };
    assert!(error.message.contains("write `0.3mS/cm2`"), "{}", error.message);
}
