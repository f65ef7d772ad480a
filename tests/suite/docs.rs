//! Tests of: docs. What the documents say is tried, and what they must mention is looked for.

use neuroc::driver::{self, CompileOptions};
use neuroc::hir::{FUNCTIONS, Method, RESERVED, Sources};
use neuroc::{Model, Stage};
use std::path::Path;

const README: &str = include_str!("../../README.md");
const REFERENCE: &str = include_str!("../../grammar/README.md");

/// What stands behind the opening fence of each block, and the block.
fn blocks(text: &str) -> Vec<(&str, String)> {
    let mut out: Vec<(&str, String)> = Vec::new();
    let mut inside = false;
    for line in text.lines() {
        match line.strip_prefix("```") {
            Some(info) if !inside => out.push((info, String::new())),
            Some(_) => {}
            None if inside => {
                if let Some((_, block)) = out.last_mut() {
                    *block += line;
                    block.push('\n');
                }
            }
            None => {}
        }
        inside ^= line.starts_with("```");
    }
    out
}

/// All messages about a file that a document shows; it stands in the folder of the examples.
fn said(text: &str) -> Vec<neuroc::diag::Diagnostic> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples");
    let checked = driver::check_text("shown.neuro", &folder, text, &Sources);
    let mut said = checked.diagnostics.clone();
    if let Some(model) = checked.model.as_ref().filter(|m| m.network.is_some() && m.run.is_some()) {
        match driver::flatten(model, &CompileOptions::default()) {
            Ok((flat, warnings)) => {
                said.extend(warnings);
                said.extend(neuroc::simulate::extent(&flat).err().unwrap_or_default());
            }
            Err(errors) => said.extend(errors),
        }
    }
    said
}

#[test]
fn shown_files_are_right() {
    let mut count = 0;
    for (_, text) in blocks(README).into_iter().chain(blocks(REFERENCE)).filter(|b| b.0 == "neuro") {
        let errors: Vec<_> = said(&text).into_iter().filter(neuroc::diag::Diagnostic::is_error).collect();
        assert!(errors.is_empty(), "{text}\n{errors:#?}");
        count += 1;
    }
    assert!(count >= 6, "{count} files shown");
}

#[test]
fn the_readme_shows_the_example_as_it_is() {
    let example = include_str!("../../examples/squid.neuro");
    assert!(blocks(README).iter().any(|b| b.0 == "neuro" && b.1 == example), "README.md lacks examples/squid.neuro");
}

#[test]
fn the_shown_message_is_the_compilers() {
    let example = include_str!("../../examples/squid.neuro");
    let wrong = example.replacen("param erev = 50 mV", "param erev = 50 mS", 1);
    let wrong = wrong.replacen("insert Na, K, Leak", "insert Na, K, Lek", 1);
    let checked = driver::check_text("squid.neuro", Path::new(""), wrong, &Sources);
    let message = neuroc::diag::render_human(&checked.sources, &checked.diagnostics, false);
    let shown = blocks(README).iter().any(|b| b.0 == "text" && b.1.trim_end() == message.trim_end());
    assert!(shown, "README.md should show\n{message}");
}

#[test]
fn the_reference_is_complete() {
    for function in FUNCTIONS {
        let signature = format!("`{}({}", function.name, function.params.join(", "));
        assert!(REFERENCE.contains(&signature), "grammar/README.md lacks {signature}");
    }
    for name in RESERVED {
        assert!(REFERENCE.contains(&format!("`{name}`")), "grammar/README.md lacks `{name}`");
    }
    for (_, name) in Method::ALL {
        assert!(REFERENCE.contains(&format!("`{name}`")), "grammar/README.md lacks `{name}`");
        assert!(README.contains(&format!("`{name}`")), "README.md lacks `{name}`");
    }
}

#[test]
fn the_readme_names_every_verb() {
    for file in std::fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("src/cli")).expect("src/cli") {
        let name =
            file.expect("an entry").file_name().to_string_lossy().replace(".rs", "").replace("lib_browser", "lib");
        if !["mod", "settings"].contains(&name.as_str()) {
            assert!(README.contains(&format!("neuroc {name}")), "README.md lacks `neuroc {name}`");
        }
    }
}

// What README.md tells users to write.
#[test]
fn a_model_of_ones_own_in_three_lines() {
    let model = Model::from_file("tests/models/passive.neuro").unwrap();
    let text = model.stage(Stage::Ode).unwrap();
    insta::assert_snapshot!(text);
}

#[test]
fn every_stage_of_a_source_is_text() {
    let source = include_str!("../../examples/squid.neuro");
    let model = Model::from_source(source).unwrap().set("n=3");
    for stage in [Stage::Ast, Stage::Hir, Stage::Ode, Stage::Ir, Stage::IrOpt, Stage::Plan, Stage::Rust] {
        let text = model.stage(stage).unwrap();
        assert!(text.ends_with('\n') && text.len() > 200, "{stage:?}: {text}");
        assert!(!text.contains(env!("CARGO_MANIFEST_DIR")), "{stage:?} tells where it was made");
    }
    assert_eq!(model.warnings(), "");
    let error = Model::from_source(source).unwrap().set("Na.gbr=1mS/cm2").stage(Stage::Ode).unwrap_err();
    assert!(error.to_string().contains("did you mean `Na.gbar`?"), "{error}");
    assert!(Model::from_file("no/such.neuro").unwrap_err().to_string().starts_with("error[NU0004]"));
}
