//! Tests of: docs. What the documents say is tried, and what they must mention is looked for.

use neuroc::diag::Diagnostic;
use neuroc::driver::{self, CompileOptions};
use neuroc::hir::{FUNCTIONS, Method, RESERVED, Sources};
use neuroc::{Model, Stage};
use std::path::{Path, PathBuf};

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

/// All Markdown files of the repository, as paths from its root; what is built or generated is none of them.
fn documents() -> Vec<String> {
    fn walk(folder: &Path, out: &mut Vec<PathBuf>) {
        for entry in std::fs::read_dir(folder).expect("a folder").map(|e| e.expect("an entry")) {
            let name = entry.file_name().to_string_lossy().into_owned();
            let path = entry.path();
            // The pages of the gallery are written by the book's build.
            let generated = folder.ends_with("docs/gallery") && name != "index.md";
            if name.starts_with('.') || ["target", "node_modules"].contains(&name.as_str()) || generated {
                continue;
            }
            match entry.file_type().expect("a type").is_dir() {
                true => walk(&path, out),
                false if name.ends_with(".md") => out.push(path),
                false => {}
            }
        }
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut found = Vec::new();
    walk(root, &mut found);
    found.sort();
    found.iter().map(|p| p.strip_prefix(root).expect("inside").to_string_lossy().into_owned()).collect()
}

/// The lines that are no code, without what stands between backticks.
fn prose(text: &str) -> Vec<String> {
    let mut fence = None;
    let mut out = Vec::new();
    for line in text.lines() {
        let ticks = line.trim_start().chars().take_while(|c| *c == '`').count();
        match fence {
            None if ticks >= 3 => fence = Some(ticks),
            Some(open) if ticks >= open && line.trim().len() == ticks => fence = None,
            Some(_) => {}
            None => out.push(line.split('`').step_by(2).collect::<Vec<_>>().join("`")),
        }
    }
    out
}

/// What a document can be linked to by: its headings as GitHub and MyST name them, and anchors written by hand.
fn anchors(text: &str) -> Vec<String> {
    let mut out: Vec<String> = Vec::new();
    let mut fenced = false;
    for line in text.lines() {
        fenced ^= line.trim_start().starts_with("```");
        if fenced {
            continue;
        }
        if let Some(title) = line.strip_prefix('#').map(|l| l.trim_start_matches('#')).filter(|l| l.starts_with(' ')) {
            let kept = title.trim().to_lowercase();
            let kept = kept.chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c));
            let slug: String = kept.map(|c| if c == ' ' { '-' } else { c }).collect();
            let times = out.iter().filter(|a| **a == slug).count();
            out.push(if times == 0 { slug } else { format!("{slug}-{times}") });
        }
        let id = line.split_once("<a id=\"").and_then(|(_, rest)| rest.split_once('"'));
        out.extend(id.map(|(id, _)| id.to_string()));
    }
    out
}

#[test]
fn links_lead_somewhere() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let (mut count, mut wrong) = (0, Vec::new());
    for document in documents() {
        let folder = root.join(&document).parent().expect("a folder").to_path_buf();
        let text = read(&document);
        for line in prose(&text) {
            for (_, rest) in line.match_indices("](").map(|(at, _)| line.split_at(at + 2)) {
                let target = rest.split([')', ' ']).next().unwrap_or_default();
                if target.contains("://") || target.starts_with("mailto:") {
                    continue;
                }
                count += 1;
                let (path, anchor) = target.split_once('#').unwrap_or((target, ""));
                let mut file = if path.is_empty() { root.join(&document) } else { folder.join(path) };
                // A page of the gallery is made from the example of its name.
                let page = file.file_stem().map(PathBuf::from).unwrap_or_default();
                if path.contains("gallery/") && !file.ends_with("index.md") {
                    file = root.join("examples").join(page).with_extension("neuro");
                }
                if !file.exists() {
                    wrong.push(format!("{document}: {target} is not there"));
                } else if !anchor.is_empty()
                    && !anchors(&std::fs::read_to_string(&file).unwrap_or_default()).contains(&anchor.into())
                {
                    wrong.push(format!("{document}: {target} has no such heading"));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(count > 100, "{count} links");
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
    for document in documents() {
        for (_, text) in blocks(&read(&document)).into_iter().filter(|b| b.0 == "neuro") {
            let errors: Vec<_> = said(&text).into_iter().filter(Diagnostic::is_error).collect();
            assert!(errors.is_empty(), "{document}\n{text}\n{errors:#?}");
            count += 1;
        }
    }
    assert!(count >= 5, "{count} files shown");
}

#[test]
fn models_of_the_book_are_right() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/models");
    let files: Vec<_> = std::fs::read_dir(folder).expect("docs/models").map(|e| e.expect("an entry").path()).collect();
    assert!(files.len() >= 5, "{files:?}");
    for file in files {
        let said = said(&std::fs::read_to_string(&file).expect("a model"));
        assert!(said.is_empty(), "{}\n{said:#?}", file.display());
    }
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
    let page = read("docs/trust/verify.md");
    let shown = blocks(&page).into_iter().find(|b| b.0 == "text" && b.1.contains("verdict\n"));
    let (_, shown) = shown.expect("docs/trust/verify.md shows a verdict");
    // How the passes round is no promise.
    let promise = |line: &str| match line.split_once("agrees within ") {
        Some((engine, rest)) => format!("{engine}agrees within{}", rest.trim_start_matches(|c| c != ' ')),
        None => line.to_string(),
    };
    for line in shown.lines() {
        let found = printed.lines().any(|l| promise(l) == promise(line));
        assert!(found, "docs/trust/verify.md shows\n{line}\nbut this is printed:\n{printed}");
    }
}

#[test]
fn the_reference_is_complete() {
    let (reference, methods) = (reference(), read("docs/trust/methods.md"));
    for function in FUNCTIONS {
        let signature = format!("`{}({}", function.name, function.params.join(", "));
        assert!(reference.contains(&signature), "grammar/README.md lacks {signature}");
    }
    for name in RESERVED {
        assert!(reference.contains(&format!("`{name}`")), "grammar/README.md lacks `{name}`");
    }
    for (_, name) in Method::ALL {
        assert!(reference.contains(&format!("`{name}`")), "grammar/README.md lacks `{name}`");
        assert!(methods.contains(&format!("`{name}`")), "docs/trust/methods.md lacks `{name}`");
    }
}

#[test]
fn the_book_names_every_verb() {
    let commands = read("docs/reference/commands.md");
    let help = std::process::Command::new(env!("CARGO_BIN_EXE_neuroc")).arg("--help").output().expect("it runs");
    let help = String::from_utf8_lossy(&help.stdout).into_owned();
    let verbs = help.lines().skip_while(|l| *l != "Commands:").skip(1).take_while(|l| !l.is_empty());
    let verbs: Vec<&str> = verbs.filter_map(|l| l.split_whitespace().next()).filter(|v| *v != "help").collect();
    assert!(verbs.len() > 5, "{help}");
    for verb in verbs {
        assert!(commands.contains(&format!("| `neuroc {verb}")), "docs/reference/commands.md lacks `neuroc {verb}`");
    }
}

// What docs/howto/tests.md tells users to write.
#[test]
fn a_model_of_ones_own_in_three_lines() {
    let model = Model::from_file("tests/models/passive.neuro").unwrap();
    let text = model.stage(Stage::Ode).unwrap();
    let page = read("docs/howto/tests.md");
    assert!(page.contains("insta::assert_snapshot!(model.stage(neuroc::Stage::Ode).unwrap());"), "{page}");
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
