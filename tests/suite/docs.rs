//! Tests of: docs. What the documents say is tried, and what they must mention is looked for.

use neuroc::diag::Diagnostic;
use neuroc::driver::{self, CompileOptions};
use neuroc::hir::{FUNCTIONS, Method, RESERVED, Sources};
use neuroc::{Model, Stage};
use std::path::Path;

/// A file of the repository, read when the test runs.
fn read(name: &str) -> String {
    std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(name)).unwrap_or_else(|e| panic!("{name}: {e}"))
}

fn readme() -> String {
    read("README.md")
}

fn reference() -> String {
    read("grammar/README.md")
}

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
fn said(text: &str) -> Vec<Diagnostic> {
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
    for document in [readme(), reference()] {
        for (_, text) in blocks(&document).into_iter().filter(|b| b.0 == "neuro") {
            let errors: Vec<_> = said(&text).into_iter().filter(Diagnostic::is_error).collect();
            assert!(errors.is_empty(), "{text}\n{errors:#?}");
            count += 1;
        }
    }
    assert!(count >= 5, "{count} files shown");
}

#[test]
fn the_readme_shows_the_example_as_it_is() {
    let example = read("examples/squid.neuro");
    assert!(blocks(&readme()).iter().any(|b| b.0 == "neuro" && b.1 == example), "README.md lacks examples/squid.neuro");
}

#[test]
fn the_shown_message_is_the_compilers() {
    let example = read("examples/squid.neuro");
    let wrong = example.replacen("param erev = 50 mV", "param erev = 50 mS", 1);
    let wrong = wrong.replacen("insert Na, K, Leak", "insert Na, K, Lek", 1);
    let checked = driver::check_text("squid.neuro", Path::new(""), wrong, &Sources);
    let message = neuroc::diag::render_human(&checked.sources, &checked.diagnostics, false);
    let shown = blocks(&readme()).iter().any(|b| b.0 == "text" && b.1.trim_end() == message.trim_end());
    assert!(shown, "README.md should show\n{message}");
}

#[test]
fn the_shown_verdict_is_what_verify_prints() {
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_neuroc"));
    command.args(["verify", "examples/squid.neuro", "--cache"]).current_dir(env!("CARGO_MANIFEST_DIR"));
    let output = command.arg(Path::new(env!("CARGO_TARGET_TMPDIR")).join("kernels")).output().expect("it runs");
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    let readme = readme();
    let shown = blocks(&readme).into_iter().find(|b| b.0 == "text" && b.1.contains("verdict\n"));
    let (_, shown) = shown.expect("README.md shows a verdict");
    // How the passes round is no promise.
    let promise = |line: &str| match line.split_once("agrees within ") {
        Some((engine, rest)) => format!("{engine}agrees within{}", rest.trim_start_matches(|c| c != ' ')),
        None => line.to_string(),
    };
    for line in shown.lines() {
        let found = printed.lines().any(|l| promise(l) == promise(line));
        assert!(found, "README.md shows\n{line}\nbut this is printed:\n{printed}");
    }
}

#[test]
fn the_reference_is_complete() {
    let (reference, readme) = (reference(), readme());
    for function in FUNCTIONS {
        let signature = format!("`{}({}", function.name, function.params.join(", "));
        assert!(reference.contains(&signature), "grammar/README.md lacks {signature}");
    }
    for name in RESERVED {
        assert!(reference.contains(&format!("`{name}`")), "grammar/README.md lacks `{name}`");
    }
    for (_, name) in Method::ALL {
        assert!(reference.contains(&format!("`{name}`")), "grammar/README.md lacks `{name}`");
        assert!(readme.contains(&format!("`{name}`")), "README.md lacks `{name}`");
    }
}

#[test]
fn the_readme_names_every_verb() {
    let help = std::process::Command::new(env!("CARGO_BIN_EXE_neuroc")).arg("--help").output().expect("it runs");
    let help = String::from_utf8_lossy(&help.stdout).into_owned();
    let verbs = help.lines().skip_while(|l| *l != "Commands:").skip(1).take_while(|l| !l.is_empty());
    let verbs: Vec<&str> = verbs.filter_map(|l| l.split_whitespace().next()).filter(|v| *v != "help").collect();
    assert!(verbs.len() > 5, "{help}");
    for verb in verbs {
        assert!(readme().contains(&format!("neuroc {verb}")), "README.md lacks `neuroc {verb}`");
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
    let source = read("examples/squid.neuro");
    let model = Model::from_source(source.as_str()).unwrap().set("n=3");
    let stages = [
        Stage::Ast,
        Stage::Hir,
        Stage::Ode,
        Stage::Ir,
        Stage::IrOpt,
        Stage::Plan,
        Stage::Rust,
        #[cfg(feature = "xla")]
        Stage::Stablehlo,
    ];
    for stage in stages {
        let text = model.stage(stage).unwrap();
        assert!(text.ends_with('\n') && text.len() > 200, "{stage:?}: {text}");
        assert!(!text.contains(env!("CARGO_MANIFEST_DIR")), "{stage:?} tells where it was made");
    }
    assert_eq!(model.warnings(), "");
    let error = Model::from_source(source.as_str()).unwrap().set("Na.gbr=1mS/cm2").stage(Stage::Ode).unwrap_err();
    assert!(error.to_string().contains("did you mean `Na.gbar`?"), "{error}");
    assert!(Model::from_file("no/such.neuro").unwrap_err().to_string().starts_with("error[NU0004]"));
}
