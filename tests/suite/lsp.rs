//! Tests of: the language server. A session over pipes as editors have it, and the answers for all models of the repository.
//!
//! In come models and edits of them; out go the protocol's answers, held against what the command line says.
//! Never true here: an editor has to be there.

use lsp_server::{Message, Notification, Request, RequestId};
use lsp_types::{
    CodeActionOrCommand, CompletionItem, Diagnostic, GotoDefinitionResponse, Hover, HoverContents, Location,
    NumberOrString, Position, PublishDiagnosticsParams, Range, TextDocumentContentChangeEvent, TextEdit, Uri,
    WorkspaceEdit,
};
use neuroc::diag::{Code, Fix};
use neuroc::driver::{check_file, check_whole};
use neuroc::editor::{Columns, Editor};
use neuroc::source::SourceMap;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::io::{BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::str::FromStr;
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

const PROGRAM: &str = env!("CARGO_BIN_EXE_neuroc");

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn models(folders: &[&str]) -> Vec<PathBuf> {
    let inside = |folder: &&str| fs::read_dir(root().join(folder)).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<PathBuf> =
        folders.iter().flat_map(inside).filter(|path| path.extension().is_some_and(|e| e == "neuro")).collect();
    files.sort();
    files
}

fn examples() -> Vec<PathBuf> {
    models(&["examples", "examples/inferior_olive"])
}

fn uri(path: &Path) -> Uri {
    Uri::from_str(&format!("file://{}", path.display())).unwrap()
}

/// An editor with one document, and its address.
fn opened(path: &Path, text: &str) -> (Editor, Uri) {
    let mut editor = Editor::new(Columns::Utf16);
    editor.open(uri(path), 1, text.to_string());
    (editor, uri(path))
}

fn told(editor: &mut Editor, uri: &Uri) -> Vec<Diagnostic> {
    let mut last = None;
    while let Some(told) = editor.tell() {
        if told.uri == *uri {
            last = Some(told.diagnostics);
        }
    }
    last.expect("something is told of the document")
}

/// The position of the `|` in a text, and the text without it.
fn cursor(text: &str) -> (String, Position) {
    let at = text.find('|').expect("a cursor");
    let before = &text[..at];
    let column = before.rsplit('\n').next().unwrap().encode_utf16().count();
    (text.replacen('|', "", 1), Position::new(before.matches('\n').count() as u32, column as u32))
}

fn position(text: &str, byte: usize) -> Position {
    cursor(&format!("{}|{}", &text[..byte], &text[byte..])).1
}

fn byte(text: &str, position: Position) -> usize {
    let start: usize = text.split_inclusive('\n').take(position.line as usize).map(str::len).sum();
    let mut column = 0;
    for (at, c) in text[start..].char_indices() {
        if column >= position.character {
            return start + at;
        }
        column += c.len_utf16() as u32;
    }
    text.len()
}

fn applied(text: &str, mut edits: Vec<TextEdit>) -> String {
    edits.sort_by_key(|edit| edit.range.start);
    let mut text = text.to_string();
    for edit in edits.iter().rev() {
        let range = byte(&text, edit.range.start)..byte(&text, edit.range.end);
        text.replace_range(range, &edit.new_text);
    }
    text
}

fn temporary(text: &str) -> (Editor, Uri) {
    opened(Path::new("/nowhere/model.neuro"), text)
}

/// A diagnostic by what both sides have: code, line and column from 0, first line of the words.
type Said = (String, u32, u32, String);

fn as_checked(path: &Path) -> Vec<Said> {
    let checked = check_whole(check_file(path));
    let main = path.display().to_string();
    let of = |d: &neuroc::diag::Diagnostic| {
        let code = d.code.id().to_string();
        let Some(label) = d.labels.first() else { return (code, 0, 0, d.message.clone()) };
        let file = checked.sources.file(label.span.file);
        // What stands in other files stands where they are brought in.
        if file.name != main {
            return (code, u32::MAX, 0, d.message.clone());
        }
        let at = position(&file.text, label.span.start as usize);
        (code, at.line, at.character, d.message.clone())
    };
    checked.diagnostics.iter().map(of).collect()
}

fn as_told(diagnostics: &[Diagnostic]) -> Vec<Said> {
    let of = |d: &Diagnostic| {
        let Some(NumberOrString::String(code)) = d.code.clone() else { panic!("a code has letters") };
        let message = d.message.lines().next().unwrap_or("").to_string();
        (code, d.range.start.line, d.range.start.character, message)
    };
    diagnostics.iter().map(of).collect()
}

#[test]
fn what_is_told_is_what_check_says() {
    let mut wrong = 0;
    for path in models(&["tests/errors", "examples", "examples/inferior_olive"]) {
        let Ok(text) = fs::read_to_string(&path) else { continue };
        let (mut editor, uri) = opened(&path, &text);
        let told = as_told(&told(&mut editor, &uri));
        let checked = as_checked(&path);
        assert_eq!(told.len(), checked.len(), "{}", path.display());
        for (told, checked) in told.iter().zip(&checked) {
            wrong += 1;
            if checked.1 == u32::MAX {
                assert!(told.3.ends_with(checked.3.lines().next().unwrap_or("")), "{}: {told:?}", path.display());
                continue;
            }
            let first = checked.3.lines().next().unwrap_or("").to_string();
            assert_eq!(told, &(checked.0.clone(), checked.1, checked.2, first), "{}", path.display());
        }
    }
    assert!(wrong > 400, "only {wrong} messages were compared");
}

#[test]
fn a_fix_mends_what_it_is_offered_for() {
    let (mut fixes, mut cases) = (0, 0);
    for path in models(&["tests/errors"]) {
        let Ok(text) = fs::read_to_string(&path) else { continue };
        let (mut editor, uri) = opened(&path, &text);
        let before = told(&mut editor, &uri);
        let all = Range::new(Position::new(0, 0), Position::new(10_000, 0));
        let actions = editor.actions(&uri, all).unwrap();
        cases += usize::from(!actions.is_empty());
        for action in actions {
            let CodeActionOrCommand::CodeAction(action) = action else { panic!("an action is an edit") };
            let mended = applied(&text, action.edit.unwrap().changes.unwrap().remove(&uri).unwrap());
            let of = action.diagnostics.unwrap().remove(0);
            let (mut editor, uri) = opened(&path, &mended);
            let after = told(&mut editor, &uri);
            let same = |d: &&Diagnostic| (&d.code, &d.message) == (&of.code, &of.message);
            let count = |list: &[Diagnostic]| list.iter().filter(same).count();
            assert!(count(&after) < count(&before), "{}: `{}` mends nothing:\n{mended}", path.display(), action.title);
            fixes += 1;
        }
    }
    assert!(fixes > 60 && cases > 50, "only {fixes} fixes in {cases} cases");
}

#[test]
fn a_missing_use_is_added_where_it_belongs() {
    let text = "//! A model.\n\n/// A cell.\ncell C {\n    compartment soma { area = 1000 um2; cm = 1 uF/cm2; v_init = -65 mV; insert Na }\n}\n";
    let (mut editor, uri) = temporary(text);
    let all = Range::new(Position::new(0, 0), Position::new(99, 0));
    let CodeActionOrCommand::CodeAction(first) = editor.actions(&uri, all).unwrap().remove(0) else {
        panic!("an edit")
    };
    assert_eq!(first.title, "Add `use std.channels.hh.{Na}`");
    let mended = applied(text, first.edit.unwrap().changes.unwrap().remove(&uri).unwrap());
    assert!(mended.starts_with("//! A model.\n\nuse std.channels.hh.{Na}\n\n/// A cell.\ncell C {"), "{mended}");
    editor.open(uri.clone(), 2, mended);
    assert_eq!(told(&mut editor, &uri), []);
}

#[test]
fn an_open_module_counts_more_than_its_file() {
    let folder = tempfile::tempdir().unwrap();
    let module = folder.path().join("mine.neuro");
    fs::write(&module, "const A = 1 mV\n").unwrap();
    let main = folder.path().join("main.neuro");
    let text = "use mine.{A, B}\n\nconst C = A + B\n";
    let (mut editor, main) = opened(&main, text);
    assert_eq!(told(&mut editor, &main).len(), 1, "`mine` has no B");
    editor.open(uri(&module), 1, "const A = 1 mV\nconst B = 2 mV\n".to_string());
    assert_eq!(told(&mut editor, &main), [], "the open text has one");
    let change = TextDocumentContentChangeEvent {
        range: None,
        range_length: None,
        text: "const A = 1 mV\nconst B = 2 ms\n".into(),
    };
    editor.change(&uri(&module), 2, vec![change]);
    let diagnostics = told(&mut editor, &main);
    assert_eq!(
        as_told(&diagnostics)[0].0,
        Code::DimensionMismatch.id(),
        "a change of a module is a change of its users"
    );
    editor.close(&uri(&module));
    assert_eq!(told(&mut editor, &main).len(), 1, "the file has none again");
}

#[test]
fn what_is_wrong_in_a_module_stands_where_it_is_brought_in() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("mine.neuro"), "\nconst A = 1 mV + 1 ms\n").unwrap();
    let (mut editor, main) = opened(&folder.path().join("main.neuro"), "use mine.{A}\n\nconst B = A\n");
    let diagnostics = told(&mut editor, &main);
    assert_eq!(diagnostics[0].range.start, Position::new(0, 4));
    let related = &diagnostics[0].related_information.as_ref().unwrap()[0].location;
    assert!(related.uri.as_str().ends_with("mine.neuro") && related.range.start.line == 1, "{related:?}");
}

const CELL: &str = "\
use std.channels.hh.{Na, K}

/// A conductance.
const G = 0.3 mS/cm2

/// Lets through what flows.
channel Leak {
    param gbar = G
    param erev = -54.3 mV
}

function half(x: mV): mV = x / 2

cell Squid {
    compartment soma {
        area = 1000 um2
        cm = 1 uF/cm2
        v_init = -65 mV
        insert Na, K(gbar = 30 mS/cm2), Leak as leak
        let drive = half(v) - leak.erev
    }
    spike when soma.v crosses 0 mV
}

network main {
    param n = 3
    population squid: Squid[n]
    input step: pulse(delay = 5 ms, duration = 1 ms, amplitude = 0.1 nA) -> squid.soma
}

run {
    duration = 10 ms
    dt = 0.025 ms
    record squid.soma.{v, Na.m, leak.i, drive} every 0.1 ms
    celsius = 6.3 degC
}
";

/// The words that are shown at the `n`th occurrence of a text.
fn hover(editor: &mut Editor, uri: &Uri, text: &str, what: &str, n: usize) -> String {
    let at = text.match_indices(what).nth(n).unwrap_or_else(|| panic!("no `{what}`")).0;
    let hover: Option<Hover> = editor.hover(uri, position(text, at));
    match hover.unwrap_or_else(|| panic!("nothing at `{what}`")).contents {
        HoverContents::Markup(markup) => markup.value,
        HoverContents::Scalar(_) | HoverContents::Array(_) => panic!("markdown is shown"),
    }
}

#[test]
fn a_name_shows_its_value_unit_and_documentation() {
    let (mut editor, uri) = temporary(CELL);
    assert_eq!(told(&mut editor, &uri), []);
    let mut at = |what: &str, n: usize| hover(&mut editor, &uri, CELL, what, n);
    let constant = at("G\n", 0);
    assert!(constant.contains("const G: mS/cm2 = 0.3 mS/cm2") && constant.contains("A conductance."), "{constant}");
    assert!(at("Leak as", 0).contains("Lets through what flows."));
    let gate = at("m, leak", 0);
    assert!(gate.contains("gate m") && gate.contains("m' = "), "{gate}");
    assert!(gate.contains("channel `Na` of `std.channels.hh`"), "{gate}");
    assert!(at("half(v)", 0).contains("function half(x: mV): mV = x / 2"));
    assert!(at("erev\n    }\n    spike", 0).contains("param erev: mV = -54.3 mV"));
    assert!(at("v crosses", 0).contains("soma.v' = "), "the voltage has its equation");
    assert!(at("pulse", 0).contains("pulse(delay, duration, amplitude)"));
    assert!(at("mS/cm2", 0).contains("conductance"), "a unit has a dimension");
    assert!(
        at("gbar = 30", 0).contains("param gbar: mS/cm2 = 120")
            || at("gbar = 30", 0).contains("param gbar: mS/cm2 = 36")
    );
}

/// Where the name at the `n`th occurrence of a text is defined: its line, or the end of the file's name.
fn defined(editor: &mut Editor, uri: &Uri, text: &str, what: &str, n: usize) -> (String, u32) {
    let at = text.match_indices(what).nth(n).unwrap_or_else(|| panic!("no `{what}`")).0;
    let location: Option<Location> = editor.definition(uri, position(text, at));
    let location = location.unwrap_or_else(|| panic!("nothing at `{what}`"));
    let name = location.uri.as_str().rsplit('/').next().unwrap().to_string();
    (name, location.range.start.line)
}

#[test]
fn names_lead_to_their_definitions() {
    let (mut editor, uri) = temporary(CELL);
    let own = |line: u32| ("model.neuro".to_string(), line);
    for (what, line) in [
        ("G\n    param erev", 3),
        ("Leak as", 6),
        ("half(v)", 11),
        ("leak.erev", 18),
        ("leak.i", 18),
        ("soma.v crosses", 14),
        ("v crosses", 17),
        ("Squid[n]", 13),
        ("n]", 25),
        ("squid.soma\n", 26),
        ("soma\n}", 14),
        ("squid.soma.{", 26),
        ("drive}", 19),
    ] {
        assert_eq!(defined(&mut editor, &uri, CELL, what, 0), own(line), "{what}");
    }
    let (file, _) = defined(&mut editor, &uri, CELL, "Na, K(", 0);
    assert_eq!(file, "hh.neuro", "the library is a file that cannot be changed");
    let file =
        neuroc::cache::folder().unwrap().join("stdlib").join(env!("CARGO_PKG_VERSION")).join("std/channels/hh.neuro");
    assert!(fs::metadata(&file).unwrap().permissions().readonly());
    assert_eq!(fs::read_to_string(&file).unwrap(), neuroc::stdlib::source("std.channels.hh").unwrap());
}

#[test]
fn references_are_all_uses_and_the_definition() {
    let (mut editor, uri) = temporary(CELL);
    let lines = |editor: &mut Editor, what: &str| -> Vec<u32> {
        let at = position(CELL, CELL.find(what).unwrap());
        editor.references(&uri, at, true).unwrap().iter().map(|l| l.range.start.line).collect()
    };
    assert_eq!(lines(&mut editor, "soma {"), [14, 21, 27, 33]);
    assert_eq!(lines(&mut editor, "squid: Squid"), [26, 27, 33]);
    assert_eq!(lines(&mut editor, "leak\n"), [18, 19, 33]);
    assert_eq!(lines(&mut editor, "x / 2"), [11, 11]);
    let at = position(CELL, CELL.find("soma {").unwrap());
    assert_eq!(editor.references(&uri, at, false).unwrap().len(), 3);
}

fn renamed(editor: &mut Editor, uri: &Uri, text: &str, what: &str, new: &str) -> Result<String, String> {
    let at = position(text, text.find(what).unwrap());
    editor.can_rename(uri, at)?;
    let edit: WorkspaceEdit = editor.rename(uri, at, new)?;
    Ok(applied(text, edit.changes.unwrap().remove(uri).unwrap()))
}

#[test]
fn a_name_is_changed_everywhere_or_nowhere() {
    let (mut editor, uri) = temporary(CELL);
    let all = renamed(&mut editor, &uri, CELL, "soma {", "body").unwrap();
    assert_eq!(all, CELL.replace("soma", "body"));
    let all = renamed(&mut editor, &uri, CELL, "leak.erev", "passive").unwrap();
    assert_eq!(all, CELL.replace("leak", "passive"));
    for (what, new, why) in [
        ("Na, K(", "Sodium", "standard library"),
        ("gbar = G", "g", ""),
        ("drive =", "v", ""),
        ("squid:", "n", ""),
        ("half(x", "exp", ""),
        ("G = 0.3", "if", ""),
        ("G = 0.3", "a b", "cannot be a name"),
        ("v_init", "start", ""),
    ] {
        let said = renamed(&mut editor, &uri, CELL, what, new).expect_err(what);
        assert!(said.contains(why), "{what}: {said}");
    }
}

#[test]
fn a_name_is_not_changed_to_one_that_hides_another() {
    let text = "const A = 2\n\nfunction f(x: 1) = x * A\n\nconst B = f(3)\n";
    let (mut editor, uri) = temporary(text);
    assert_eq!(told(&mut editor, &uri), []);
    let said = renamed(&mut editor, &uri, text, "x * A", "A").expect_err("`A * A` is something else");
    assert!(said.contains("something else would be meant"), "{said}");
    assert!(renamed(&mut editor, &uri, text, "A = 2", "x").is_err());
    assert_eq!(renamed(&mut editor, &uri, text, "f(x", "g").unwrap(), text.replace("f(", "g("));
}

#[test]
// The protocol's type: an address is compared by its text, which nobody changes.
#[allow(clippy::mutable_key_type)]
fn a_name_is_changed_in_files_that_are_not_open() {
    let folder = tempfile::tempdir().unwrap();
    let user = folder.path().join("user.neuro");
    fs::write(&user, "use mine.{A}\n\nconst B = 2 * A\n").unwrap();
    fs::write(folder.path().join("other.neuro"), "const A = 3 mV\n").unwrap();
    let text = "const A = 1 mV\n";
    let (mut editor, main) = opened(&folder.path().join("mine.neuro"), text);
    let changes = editor.rename(&main, position(text, 6), "Amplitude").unwrap().changes.unwrap();
    assert_eq!(changes.len(), 2, "{changes:?}");
    let there = applied(&fs::read_to_string(&user).unwrap(), changes[&uri(&user)].clone());
    assert_eq!(there, "use mine.{Amplitude}\n\nconst B = 2 * Amplitude\n");
    assert!(editor.rename(&main, position(text, 6), "B").is_err(), "the user has a `B`");
    let told = std::iter::from_fn(|| editor.tell()).count();
    assert_eq!(told, 1, "what is not open is not told of");
}

#[test]
// The protocol's type: an address is compared by its text, which nobody changes.
#[allow(clippy::mutable_key_type)]
fn a_name_is_changed_in_the_folders_that_are_open() {
    let folder = tempfile::tempdir().unwrap();
    let lib = folder.path().join("lib");
    fs::create_dir_all(&lib).unwrap();
    fs::create_dir_all(folder.path().join(".hidden")).unwrap();
    let user = folder.path().join("net.neuro");
    fs::write(&user, "use lib.mine.{A}\n\nconst B = 2 * A\n").unwrap();
    fs::write(folder.path().join(".hidden/net.neuro"), "use lib.mine.{A}\n").unwrap();
    let text = "const A = 1 mV\n";
    let main = uri(&lib.join("mine.neuro"));
    for (folders, files) in [(vec![], 1), (vec![uri(folder.path())], 2)] {
        let mut editor = Editor::new(Columns::Utf16).with_folders(&folders);
        editor.open(main.clone(), 1, text.to_string());
        let changes = editor.rename(&main, position(text, 6), "Amplitude").unwrap().changes.unwrap();
        assert_eq!(changes.len(), files, "{changes:?}");
        assert_eq!(editor.references(&main, position(text, 6), true).unwrap().len(), if files == 2 { 3 } else { 1 });
        if let Some(edits) = changes.get(&uri(&user)) {
            let there = applied(&fs::read_to_string(&user).unwrap(), edits.clone());
            assert_eq!(there, "use lib.mine.{Amplitude}\n\nconst B = 2 * Amplitude\n");
        }
    }
}

/// The voltage that an event moves is defined nowhere; it has the place of the synapse, and is not called so.
/// A line that cannot be read yet may name it.
#[test]
fn nothing_is_renamed_in_what_cannot_be_read() {
    let text = "cell P { state x = 1; x' = -x / 2 ms }\nnetwork n { population p: P }\nrun { record p.x every\n record p.x every 1 ms }";
    let (mut editor, uri) = temporary(text);
    let said = renamed(&mut editor, &uri, text, "p: P", "cells").expect_err("a line is not finished");
    assert!(said.contains("cannot be read"), "{said}");
    let whole = text.replace("every\n", "every 1 ms\n");
    let (mut editor, uri) = temporary(&whole);
    assert!(renamed(&mut editor, &uri, &whole, "p: P", "cells").unwrap().contains("record cells.x every 1 ms"));
}

/// Numbers of an equation have the units that they count in.
#[test]
fn equations_are_shown_with_units() {
    let text = "cell P { state w: pA = 5 pA; w' = (20 pA - w) / 0.1 s }";
    let (mut editor, uri) = temporary(text);
    let shown = hover(&mut editor, &uri, text, "w: pA", 0);
    assert!(shown.contains("w' = (0.02 nA - w) / 100 ms"), "{shown}");
}

/// What begins with a population, and what only parameters can be.
#[test]
fn proposals_behind_record_and_sweep_are_what_can_stand_there() {
    let text = "cell P { param k = 1; state x = 1; x' = -k * x / 2 ms }\nnetwork n { population p: P\n input i:  -> p.x }\nrun { record \n sweep \n sweep p. }";
    let (mut editor, uri) = temporary(text);
    let mut at = |what: &str| -> Vec<String> {
        let all = editor.complete(&uri, position(text, text.find(what).unwrap() + what.len())).unwrap();
        all.into_iter().map(|item| item.label).collect()
    };
    assert_eq!(at("record "), ["p", "spikes"]);
    assert_eq!(at("sweep "), ["p"]);
    assert_eq!(at("sweep p."), ["k"]);
    let inputs = at("input i: ");
    assert!(inputs.contains(&"pulse".to_string()) && !inputs.contains(&"mV".to_string()), "{inputs:?}");
}

#[test]
fn a_synapse_that_moves_the_voltage_is_renamed_alone() {
    let path = root().join("examples/digits.neuro");
    let text = fs::read_to_string(&path).unwrap();
    let (mut editor, uri) = opened(&path, &text);
    let all = renamed(&mut editor, &uri, &text, "Kick {", "Push").unwrap();
    assert_eq!(all, text.replace("Kick", "Push"));
}

#[test]
fn what_learns_is_renamed_with_the_rest() {
    let path = root().join("examples/digits.neuro");
    let text = fs::read_to_string(&path).unwrap();
    let (mut editor, uri) = opened(&path, &text);
    let all = renamed(&mut editor, &uri, &text, "hidden: Leaky", "inner").unwrap();
    let head = text.find("network main").unwrap();
    assert_eq!(all, format!("{}{}", &text[..head], text[head..].replace("hidden", "inner")));
}

#[test]
fn every_name_of_the_examples_can_be_changed_or_says_why_not() {
    let mut done = 0;
    for path in examples().into_iter().step_by(3) {
        let text = fs::read_to_string(&path).unwrap();
        let (mut editor, uri) = opened(&path, &text);
        let before = told(&mut editor, &uri).len();
        let mut names: Vec<Position> = Vec::new();
        let mut inside = editor.symbols(&uri).unwrap();
        while let Some(symbol) = inside.pop() {
            names.push(symbol.selection_range.start);
            inside.extend(symbol.children.unwrap_or_default());
        }
        for at in names.into_iter().step_by(3) {
            let edit = match editor.rename(&uri, at, "quite_another") {
                Ok(edit) => edit,
                Err(why) => {
                    assert!(!why.contains("does not stand"), "{}: {at:?}: {why}", path.display());
                    continue;
                }
            };
            let changed = applied(&text, edit.changes.unwrap().remove(&uri).unwrap());
            let (mut other, uri) = opened(&path, &changed);
            let after = told(&mut other, &uri);
            assert!(after.len() <= before, "{}: {at:?}: {after:?}", path.display());
            done += 1;
        }
    }
    assert!(done > 20, "only {done} names were changed");
}

/// What is proposed at the `|` of a text.
fn proposed(text: &str) -> Vec<CompletionItem> {
    let (text, at) = cursor(text);
    let (mut editor, uri) = temporary(&text);
    editor.complete(&uri, at).unwrap()
}

#[test]
fn what_can_stand_somewhere_is_proposed_there() {
    let with = |from: &str, to: &str| {
        assert!(CELL.contains(from), "{from}");
        CELL.replacen(from, to, 1)
    };
    for (text, there, absent) in [
        ("|".to_string(), &["channel", "cell", "use"][..], &["insert", "exp"][..]),
        (with("    param n = 3\n", "    param n = 3\n    |\n"), &["population", "connect"], &["channel"]),
        (with("        cm = 1 uF/cm2\n", "        c|\n"), &["cm", "area", "insert"], &["duration"]),
        (with("    dt = 0.025 ms\n", "    dt = 0.025 |\n"), &["ms", "mV"], &["exp"]),
        (with("    dt = 0.025 ms\n", "    dt = 0.025 ms\n    method = |\n"), &["exp_euler", "rk4"], &["exp"]),
        (with("    dt = 0.025 ms\n", "    dt = 0.025 ms\n    arrivals = |\n"), &["after_threshold"], &["exp_euler"]),
        (with("half(v) - leak.erev", "half(|"), &["v", "half", "G", "exp", "leak.erev"], &["insert"]),
        (with("leak.erev\n", "leak.|\n"), &["erev", "gbar", "i"], &["exp", "Na"]),
        (with("when soma.v", "when soma.|"), &["v", "leak", "Na"], &["exp"]),
        (with("-> squid.soma\n", "-> squid.|\n"), &["soma"], &["exp", "G"]),
        (with("-> squid.soma\n", "-> |\n"), &["squid"], &[]),
        (with("soma.{v, Na.m", "soma.{v, |"), &["Na", "leak", "v"], &["exp"]),
        (with("insert Na, ", "insert Na, |"), &["Leak", "K", "Ih"], &["exp", "cm"]),
        (with("insert Na, ", "insert Na(|), "), &["gbar", "erev"], &["exp", "Leak"]),
        (with("insert Na, ", "insert Na(gbar = exp(1) * 1 mS/cm2, |), "), &["gbar", "erev"], &["exp"]),
        (with("insert Na, ", "insert Na as n(|), "), &["gbar"], &["exp"]),
        (with("insert Na, ", "insert Na(gbar = |), "), &["exp"], &["Leak"]),
        (with("squid: Squid[n]", "squid: |[n]"), &["Squid"], &["Leak", "exp"]),
        (with("use std.channels.hh.{Na, K}", "use std.channels.|"), &["hh"], &["exp"]),
        (with("use std.channels.hh.{Na, K}", "use std.channels.hh.{Na, |}"), &["K", "Leak"], &["exp"]),
        (with("/// A conductance.", "/// A |"), &[], &["channel", "exp"]),
        (with("    param n = 3", "    param |"), &[], &["exp", "cell"]),
    ] {
        let found: Vec<String> = proposed(&text).into_iter().map(|item| item.label).collect();
        for word in there {
            assert!(found.iter().any(|found| found == word), "`{word}` is missing at\n{text}\n{found:?}");
        }
        for word in absent {
            assert!(!found.iter().any(|found| found == word), "`{word}` is proposed at\n{text}");
        }
    }
}

#[test]
fn a_model_of_the_library_brings_its_use_line() {
    let text = CELL.replacen("insert Na, ", "insert Na, |", 1);
    let (text, at) = cursor(&text);
    let (mut editor, uri) = temporary(&text);
    let item = editor.complete(&uri, at).unwrap().into_iter().find(|item| item.label == "Ih").unwrap();
    let changed = applied(&text, item.additional_text_edits.unwrap());
    assert!(
        changed.lines().nth(1).unwrap().starts_with("use std.") && changed.lines().nth(1).unwrap().ends_with("{Ih}"),
        "{changed}"
    );
}

#[test]
fn a_call_shows_its_parameters() {
    for (call, label, active) in [
        ("half(|", "half(x)", 0),
        ("exp_rate(v, |", "exp_rate(v, rate, midpoint, scale)", 1),
        ("exp(half(1 mV) / |", "exp(x)", 0),
    ] {
        let (text, at) = cursor(&CELL.replacen("half(v) - leak.erev", call, 1));
        let (mut editor, uri) = temporary(&text);
        let help = editor.signature(&uri, at).unwrap_or_else(|| panic!("nothing at `{call}`"));
        assert_eq!((help.signatures[0].label.as_str(), help.active_parameter), (label, Some(active)));
    }
}

#[test]
fn the_form_of_a_text_is_told() {
    let (mut editor, uri) = temporary(CELL);
    let names: Vec<String> = editor.symbols(&uri).unwrap().into_iter().map(|s| s.name).collect();
    assert_eq!(names, ["G", "Leak", "half", "Squid", "main", "run"]);
    let folds: Vec<(u32, u32)> = editor.folds(&uri).unwrap().iter().map(|f| (f.start_line, f.end_line)).collect();
    assert_eq!(folds, [(6, 8), (14, 19), (13, 21), (24, 27), (30, 34)]);
    let all = Range::new(Position::new(0, 0), Position::new(99, 0));
    let hints = editor.hints(&uri, all).unwrap();
    assert_eq!(hints.len(), 1);
    assert_eq!(hints[0].position, Position::new(19, 17));
    assert_eq!(editor.formatted(&uri), Some(Vec::new()), "it is formatted already");
    let loose = CELL.replace("    param n = 3", "  param   n=3");
    let (mut editor, uri) = temporary(&loose);
    assert_eq!(applied(&loose, editor.formatted(&uri).unwrap()), CELL);
    let (mut editor, uri) = temporary("cell {");
    assert_eq!(editor.formatted(&uri), None, "what is wrong is not laid out");
}

/// Words of the models that have a fixed meaning there, or are keys: what they are is the grammar's business.
const FIXED: &str = "v_pre all i i_syn data input loss optimizer surrogate batch epochs test cross_entropy spike_count adam lr slope fast_sigmoid area distance spacing ra amplitude cells channels celsius cm column count delay degree duration dt dv edges index i_clamp \
    mean method morphology n p per period phase pi poisson probability r_max rate rule sd seed start finish std swc times \
    v weight width torus_radial all_to_all fixed_in_degree fixed_out_degree fixed_total_number one_to_one convolution kernel padding pool pooling schedule cosine floor euler exp_euler \
    cnexp crank_nicolson exact heun rk4 inferior_olive rallpack2 edge_file max_length d_lambda frame last clip delay_lr max first_spike interval iterations starts";

#[test]
fn every_name_of_the_examples_means_something() {
    use neuroc::syntax::{TokenKind, tokens};
    let mut seen = 0;
    for path in examples() {
        let text = fs::read_to_string(&path).unwrap();
        let (mut editor, uri) = opened(&path, &text);
        let (mut line, mut start) = (0, 0);
        let mut known = BTreeMap::new();
        for word in editor.words(&uri).unwrap() {
            start = if word.delta_line > 0 { word.delta_start } else { start + word.delta_start };
            line += word.delta_line;
            known.insert((line, start), word.token_type);
        }
        // Sections of a shape file are defined nowhere in the model.
        let sections = text.contains("swc(");
        for token in tokens(&text).iter().filter(|t| t.kind == TokenKind::Word) {
            let at = position(&text, token.start);
            let fixed = FIXED.split_whitespace().any(|word| word == token.text);
            let unit = neuroc::units::Unit::parse(token.text).is_some();
            let means = known.contains_key(&(at.line, at.character));
            seen += usize::from(means);
            assert!(means || fixed || unit || sections, "{}:{}: `{}`", path.display(), at.line + 1, token.text);
        }
    }
    assert!(seen > 3000, "only {seen} words have a meaning");
}

/// A number that looks random, and is the same in every run.
fn next(state: &mut u64) -> usize {
    *state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
    (*state >> 33) as usize
}

/// Edits that people make, and some that nobody does.
const PIECES: &[&str] = &[
    "{",
    "}",
    "(",
    ")",
    "\"",
    "/*",
    "//",
    "\n",
    ".",
    ",",
    ":",
    "=",
    "'",
    "cell",
    "insert ",
    "let x = ",
    "mV",
    "1",
    "µ",
    "𝜇",
    "if ",
    "use std.",
    "->",
    "v",
    "\r",
    "gate m {",
    "param a = 1 ms\n",
];

/// Edits a text at random `edits` times, asking one thing after each; nothing may panic. Gives how many answers there were.
fn edited(path: &Path, edits: usize, seed: u64) -> usize {
    let whole = fs::read_to_string(path).unwrap();
    let (mut editor, uri) = opened(path, &whole);
    let (mut text, mut state, mut answers) = (whole.clone(), seed, 0);
    for version in 0..edits {
        let mut from = next(&mut state) % (text.len() + 1);
        let mut to = (from + [0, 1, 2, 30][next(&mut state) % 4]).min(text.len());
        while !text.is_char_boundary(from) {
            from -= 1;
        }
        while !text.is_char_boundary(to) {
            to += 1;
        }
        let piece = PIECES[next(&mut state) % PIECES.len()];
        let range = Some(Range::new(position(&text, from), position(&text, to)));
        text.replace_range(from..to, piece);
        let change = TextDocumentContentChangeEvent { range, range_length: None, text: piece.to_string() };
        editor.change(&uri, version as i32 + 2, vec![change]);
        let at = position(&text, from + piece.len());
        let there = Range::new(Position::new(0, 0), at);
        let told = editor.tell().expect("a change is told of");
        assert_eq!(told.version, version as i32 + 2, "what is told is of the newest text");
        answers += match next(&mut state) % 9 {
            0 => usize::from(editor.hover(&uri, at).is_some()),
            1 => usize::from(editor.definition(&uri, at).is_some()),
            2 => usize::from(editor.references(&uri, at, true).is_some()),
            3 => usize::from(editor.rename(&uri, at, "other").is_ok()),
            4 => editor.complete(&uri, at).expect("an answer").len(),
            5 => usize::from(editor.signature(&uri, at).is_some()),
            6 => editor.actions(&uri, there).expect("an answer").len(),
            7 => editor.words(&uri).expect("an answer").len(),
            _ => editor.symbols(&uri).expect("an answer").len() + editor.folds(&uri).expect("an answer").len(),
        };
        // From time to time back to a sound text, so that not all is wrong.
        if version % 25 == 24 {
            text.clone_from(&whole);
            editor.open(uri.clone(), version as i32 + 2, whole.clone());
        }
    }
    answers
}

/// How many edits `random_edits_of_the_examples_are_answered` makes; `NEUROC_EDITS=100000` for a long night.
fn edits() -> usize {
    std::env::var("NEUROC_EDITS").ok().and_then(|text| text.parse().ok()).unwrap_or(400)
}

#[test]
fn random_edits_of_the_examples_are_answered() {
    std::panic::set_hook(Box::new(|info| eprintln!("{info}")));
    let files = examples();
    let each = edits().div_ceil(files.len());
    let began = Instant::now();
    let answers: usize = files.iter().zip(1..).map(|(path, seed)| edited(path, each, seed)).sum();
    println!("{} edits of {} files in {:?}: {answers} answers", each * files.len(), files.len(), began.elapsed());
    assert!(answers > edits(), "only {answers} answers");
}

/// A session with the program over pipes.
struct Session {
    child: Child,
    input: ChildStdin,
    messages: Receiver<Message>,
    last: i32,
    told: Vec<PublishDiagnosticsParams>,
}

impl Session {
    fn new() -> Session {
        let mut child = Command::new(PROGRAM).arg("lsp").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        let (send, messages) = channel();
        std::thread::spawn(move || {
            while let Ok(Some(message)) = Message::read(&mut output) {
                if send.send(message).is_err() {
                    break;
                }
            }
        });
        let input = child.stdin.take().unwrap();
        Session { child, input, messages, last: 0, told: Vec::new() }
    }

    fn notify(&mut self, method: &str, params: Value) {
        Message::from(Notification::new(method.to_string(), params)).write(&mut self.input).unwrap();
        self.input.flush().unwrap();
    }

    fn message(&mut self) -> Message {
        self.messages.recv_timeout(Duration::from_secs(60)).expect("the server answers")
    }

    fn request(&mut self, method: &str, params: Value) -> Result<Value, String> {
        self.last += 1;
        let id = RequestId::from(self.last);
        Message::from(Request::new(id.clone(), method.to_string(), params)).write(&mut self.input).unwrap();
        self.input.flush().unwrap();
        loop {
            match self.message() {
                Message::Response(response) => {
                    assert_eq!(response.id, id, "answers come in order");
                    return response.response_result.map_err(|error| error.message);
                }
                Message::Notification(n) => self.told.push(serde_json::from_value(n.params).unwrap()),
                Message::Request(_) => panic!("nothing is asked of this client"),
            }
        }
    }

    /// What is wrong with a version of the document.
    fn told_of(&mut self, version: i32) -> Vec<Diagnostic> {
        loop {
            if let Some(at) = self.told.iter().position(|told| told.version == Some(version)) {
                return self.told.remove(at).diagnostics;
            }
            match self.message() {
                Message::Notification(n) => self.told.push(serde_json::from_value(n.params).unwrap()),
                Message::Response(_) | Message::Request(_) => panic!("nothing was asked"),
            }
        }
    }
}

#[test]
fn a_session_over_pipes() {
    let mut session = Session::new();
    let began =
        session.request("initialize", json!({ "capabilities": {}, "processId": null, "rootUri": null })).unwrap();
    assert_eq!(began["capabilities"]["positionEncoding"], "utf-16");
    assert_eq!(began["serverInfo"]["name"], "neuroc");
    session.notify("initialized", json!({}));
    // What is no message is left out.
    session.input.write_all(b"Content-Length: 5\r\n\r\n{bad}").unwrap();
    let uri = "file:///nowhere/model.neuro";
    let document = json!({ "uri": uri, "languageId": "neuro", "version": 1, "text": CELL });
    session.notify("textDocument/didOpen", json!({ "textDocument": document }));
    assert_eq!(session.told_of(1), []);

    // Ten changes at once: the last one counts, and older ones need not be told of.
    let at = position(CELL, CELL.find("leak.erev\n").unwrap() + "leak.erev".len());
    for version in 2..12 {
        let change = json!({ "range": { "start": at, "end": at }, "text": "v" });
        let document = json!({ "uri": uri, "version": version });
        session.notify("textDocument/didChange", json!({ "textDocument": document, "contentChanges": [change] }));
    }
    let wrong = session.told_of(11);
    assert_eq!(as_told(&wrong)[0].0, "NU0101");
    assert!(wrong[0].message.contains("erevvvvvvvvvv") && wrong[0].message.contains("neuroc explain NU0101"));
    let end = Position::new(at.line, at.character + 10);
    let change = json!({ "range": { "start": at, "end": end }, "text": "" });
    let document = json!({ "uri": uri, "version": 12 });
    session.notify("textDocument/didChange", json!({ "textDocument": document, "contentChanges": [change] }));
    assert_eq!(session.told_of(12), []);

    let place =
        |what: &str| json!({ "textDocument": { "uri": uri }, "position": position(CELL, CELL.find(what).unwrap()) });
    let hover = session.request("textDocument/hover", place("Leak as")).unwrap();
    assert!(hover["contents"]["value"].as_str().unwrap().contains("Lets through what flows."));
    let found = session.request("textDocument/definition", place("Leak as")).unwrap();
    let GotoDefinitionResponse::Scalar(found) = serde_json::from_value(found).unwrap() else { panic!("one place") };
    assert_eq!(found.range.start, Position::new(6, 8));
    let mut rename = place("soma {");
    rename["newName"] = "body".into();
    let edit: WorkspaceEdit =
        serde_json::from_value(session.request("textDocument/rename", rename.clone()).unwrap()).unwrap();
    assert_eq!(applied(CELL, edit.changes.unwrap().into_values().next().unwrap()), CELL.replace("soma", "body"));
    rename["newName"] = "v".into();
    rename["position"] = json!(position(CELL, CELL.find("drive =").unwrap()));
    assert!(session.request("textDocument/rename", rename).is_err());
    assert!(session.request("textDocument/moniker", place("soma {")).unwrap_err().contains("does not know"));
    assert!(session.request("textDocument/hover", json!({ "nothing": 1 })).unwrap_err().contains("parameters"));
    session.notify("textDocument/didClose", json!({ "textDocument": { "uri": uri } }));
    assert_eq!(session.request("shutdown", Value::Null), Ok(Value::Null));
    let late = session.request("textDocument/hover", Value::Null);
    assert!(late.is_err_and(|why| why.contains("shut down")));
    session.notify("exit", Value::Null);
    assert!(session.child.wait().unwrap().success());
    // Who ends without a word before is told so by the exit code.
    let mut rude = Session::new();
    rude.request("initialize", json!({ "capabilities": {} })).unwrap();
    rude.notify("initialized", json!({}));
    rude.notify("exit", Value::Null);
    assert_eq!(rude.child.wait().unwrap().code(), Some(1));
}

/// The words of the grammar, by their rules.
fn grammar_words() -> Vec<String> {
    let grammar = fs::read_to_string(root().join("grammar/neuro.pest")).unwrap();
    let word = |line: &str| {
        let (_, rest) = line.strip_prefix("kw_")?.split_once('"')?;
        Some(rest.split('"').next()?.to_string())
    };
    grammar.lines().filter_map(word).collect()
}

#[test]
fn the_files_of_editors_know_every_word_of_the_grammar() {
    let words = grammar_words();
    assert!(words.len() > 50, "{words:?}");
    let read = |file: &str| fs::read_to_string(root().join(file)).unwrap();
    let coloured: Value = serde_json::from_str(&read("editors/vscode/syntaxes/neuro.tmLanguage.json")).unwrap();
    let mut patterns = Vec::new();
    let mut values = vec![&coloured];
    while let Some(value) = values.pop() {
        match value {
            Value::Object(members) => {
                patterns.extend(members.get("match").and_then(Value::as_str));
                values.extend(members.values());
            }
            Value::Array(items) => values.extend(items),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
    // Words in brackets, with bars between them.
    let known: Vec<&str> =
        patterns.iter().flat_map(|p| p.split(|c: char| !c.is_ascii_alphanumeric() && c != '_')).collect();
    let vim = read("editors/nvim/neuro.lua");
    let in_vim: Vec<&str> =
        vim.lines().filter(|l| l.contains("syntax keyword")).flat_map(str::split_whitespace).collect();
    for word in &words {
        // `\\b` before the first of them leaves a `b`.
        assert!(
            known.iter().any(|k| k == word || k.strip_prefix('b') == Some(word)),
            "`{word}` has no colour in VS Code"
        );
        assert!(in_vim.contains(&word.as_str()), "`{word}` has no colour in Neovim");
    }
}

/// Fixes hold what stands at their place, so that no edit is made of another text.
#[test]
fn fixes_know_what_they_replace() {
    let mut seen = 0;
    for path in models(&["tests/errors"]) {
        let checked = check_whole(check_file(&path));
        let sources: &SourceMap = &checked.sources;
        for fix in checked.diagnostics.iter().flat_map(|d| d.fixes.iter()) {
            if let Fix::Replace { span, old, new } = fix {
                // A path in braces has its parts in two places: no edit is offered there.
                seen += usize::from(sources.text(*span) == old);
                assert_ne!(old, new);
            }
        }
    }
    assert!(seen > 50, "only {seen} fixes fit");
}

/// A graded synapse, with what its sum is made of.
#[test]
fn sums_have_names() {
    let text = "synapse Graded {
    param half = -40 mV
    let inf = 1 / (1 + exp((half - v_pre) / 5 mV))
    state s = 0
    s' = (inf - s) / 20 ms
    sum g(weight: nS) = weight * s
    current i = g * (v + 80 mV)
}

cell Cell { state v: mV = 0 mV; v' = -(v + 1 Mohm * i_syn) / 1 ms }

network main {
    population e: Cell[10]
    connect e -> e via Graded { rule = all_to_all; weight = 0.5 nS }
}

run { duration = 10 ms; dt = 0.1 ms; record e.{v, Graded.pre.s} }
";
    let (mut editor, uri) = temporary(text);
    assert_eq!(told(&mut editor, &uri), []);
    let sum = hover(&mut editor, &uri, text, "g * (v", 0);
    assert!(sum.contains("sum g"), "{sum}");
    assert_eq!(defined(&mut editor, &uri, text, "g * (v", 0), ("model.neuro".to_string(), 5));
    assert_eq!(defined(&mut editor, &uri, text, "weight * s", 0), ("model.neuro".to_string(), 5));
    assert_eq!(defined(&mut editor, &uri, text, "s} }", 0), ("model.neuro".to_string(), 3));
    let labels = |from: &str, to: &str| -> Vec<String> {
        proposed(&text.replacen(from, to, 1)).into_iter().map(|item| item.label).collect()
    };
    let members = labels("    sum g", "    |\n    sum g");
    assert!(members.contains(&"sum".to_string()), "{members:?}");
    let inside = labels("weight * s", "weight * |");
    assert!(["s", "v_pre", "weight"].iter().all(|name| inside.contains(&name.to_string())), "{inside:?}");
}

/// A synapse that a modulator reaches, with both names of its block.
#[test]
fn what_modulates_has_names() {
    let text = "use std.plasticity.{RewardStdp}

synapse Learns {
    state g: nS = 0 nS
    g' = -g / 5 ms
    state c = 0
    c' = -c / 1 s
    on event(weight: nS) { g += weight; c += 1 }
    on modulator(weight: nS, dose: 1) { weight += c * dose * 1 nS }
    current i = g * v
}

cell Cell { state v: mV = 0 mV; v' = -(v + 1 Mohm * i_syn) / 1 ms; spike when v > 1 mV { v = 0 mV } }

network main {
    population e: Cell[10]
    connect e -> e via Learns as own { rule = all_to_all; weight = 0.5 nS; delay = 1 ms }
    drive e modulating own from times(1 ms) { weight = 1 }
}

run { duration = 10 ms; dt = 0.1 ms; record spikes of e }
";
    let (mut editor, uri) = temporary(text);
    assert_eq!(told(&mut editor, &uri), []);
    let dose = hover(&mut editor, &uri, text, "dose: 1", 0);
    assert!(dose.contains("amount of a modulator dose"), "{dose}");
    assert_eq!(defined(&mut editor, &uri, text, "dose * 1 nS", 0), ("model.neuro".to_string(), 8));
    assert_eq!(defined(&mut editor, &uri, text, "own from", 0), ("model.neuro".to_string(), 16));
    let labels = |from: &str, to: &str| -> Vec<String> {
        proposed(&text.replacen(from, to, 1)).into_iter().map(|item| item.label).collect()
    };
    let blocks = labels("    on event", "    on |\n    on event");
    assert!(blocks.contains(&"modulator".to_string()), "{blocks:?}");
    let inside = labels("c * dose", "c * |");
    assert!(inside.contains(&"dose".to_string()) && inside.contains(&"weight".to_string()), "{inside:?}");
    let named = labels("modulating own", "modulating |");
    assert!(named.contains(&"Learns".to_string()) && named.contains(&"RewardStdp".to_string()), "{named:?}");
    assert!(!named.contains(&"Cell".to_string()), "{named:?}");
}

/// Editors write some characters of an address in other ways.
#[test]
// The protocol's type: an address is compared by its text, which nobody changes.
#[allow(clippy::mutable_key_type)]
fn a_file_that_is_open_has_one_address() {
    let folder = tempfile::tempdir().unwrap();
    let inside = folder.path().join("a(1)+@,=b");
    fs::create_dir_all(&inside).unwrap();
    let (module, user) = (inside.join("mine.neuro"), inside.join("user.neuro"));
    let texts = ["const A = 1 mV\n", "use mine.{A}\n\nconst B = 2 * A\n"];
    fs::write(&module, texts[0]).unwrap();
    fs::write(&user, texts[1]).unwrap();
    let (mut editor, main) = opened(&module, texts[0]);
    editor.open(uri(&user), 1, texts[1].to_string());
    for (from, at) in [(&main, position(texts[0], 6)), (&uri(&user), position(texts[1], 10))] {
        let changes = editor.rename(from, at, "Amplitude").unwrap().changes.unwrap();
        let counts: Vec<usize> = [&main, &uri(&user)].iter().map(|uri| changes[*uri].len()).collect();
        assert_eq!((changes.len(), counts), (2, vec![1, 2]), "{changes:?}");
        assert_eq!(editor.references(from, at, true).unwrap().len(), 3);
        assert_eq!(editor.definition(from, at).unwrap().uri, main);
    }
}

/// A file is one that uses a name however it is laid out, and beside however many others.
#[test]
// The protocol's type: an address is compared by its text, which nobody changes.
#[allow(clippy::mutable_key_type)]
fn no_file_that_uses_a_name_is_missed() {
    let folder = tempfile::tempdir().unwrap();
    let texts = [
        "  use mine.{A}\n\nconst B = 2 * A\n",
        "\tuse\tmine . {A}\n\nconst B = 2 * A\n",
        "\u{FEFF}use mine.{A}\n\nconst B = 2 * A\n",
        "use mine\n    .{A}\n\nconst B = 2 * A\n",
        "/* all */ use /* of */ mine /* mine */ .A const B = 2 * A\n",
        "// All.\ruse mine.{A}\rconst B = 2 * A\r",
    ];
    let user = |at: usize| folder.path().join(format!("user{at}.neuro"));
    for (at, text) in texts.iter().enumerate() {
        fs::write(user(at), text).unwrap();
    }
    // These do not use it.
    for at in 0..600 {
        fs::write(folder.path().join(format!("a{at}.neuro")), "// do not use mine.{A} here\nconst A = 1 mV\n").unwrap();
    }
    let text = "const A = 1 mV\n";
    let (mut editor, main) = opened(&folder.path().join("mine.neuro"), text);
    let changes = editor.rename(&main, position(text, 6), "Amplitude").unwrap().changes.unwrap();
    assert_eq!(changes.len(), 1 + texts.len(), "{:?}", changes.keys());
    for at in 0..texts.len() {
        assert_eq!(changes[&uri(&user(at))].len(), 2, "{:?}", texts[at]);
    }
    let last = &changes[&uri(&user(texts.len() - 1))];
    let places: Vec<Position> = last.iter().map(|edit| edit.range.start).collect();
    assert!(places.contains(&Position::new(1, 10)) && places.contains(&Position::new(2, 14)), "{places:?}");
    // So many users are not looked at.
    for at in 0..500 {
        fs::write(folder.path().join(format!("a{at}.neuro")), "use mine.{A}\nconst B = A\n").unwrap();
    }
    let said = editor.rename(&main, position(text, 6), "Amplitude").expect_err("some would be missed");
    assert_eq!(said, "too many files may use it to look at all of them: open a smaller folder");
}

/// What is behind a `use`, or before the first item, is not parted.
#[test]
fn a_missing_use_parts_nothing() {
    let cell =
        "cell C {\n    compartment soma { area = 1000 um2; cm = 1 uF/cm2; v_init = -65 mV; insert Na; insert K }\n}\n";
    for (before, mended) in [
        ("use std.channels.hh.{K} // potassium\n", "use std.channels.hh.{K} // potassium\nuse std.channels.hh.{Na}\n"),
        (
            "use std.channels.hh.{K} /* of\n    the squid */\n",
            "use std.channels.hh.{K}\nuse std.channels.hh.{Na} /* of\n    the squid */\n",
        ),
        ("use std.channels.hh.{K} ", "use std.channels.hh.{K}\nuse std.channels.hh.{Na} "),
        (
            "/* Of\n    the squid. */ use std.channels.hh.{K}\n",
            "/* Of\n    the squid. */ use std.channels.hh.{K}\nuse std.channels.hh.{Na}\n",
        ),
    ] {
        let text = format!("{before}{cell}");
        let (mut editor, uri) = temporary(&text);
        let all = Range::new(Position::new(0, 0), Position::new(99, 0));
        let mut actions = editor.actions(&uri, all).unwrap();
        let CodeActionOrCommand::CodeAction(first) = actions.remove(0) else { panic!("an edit") };
        let there = applied(&text, first.edit.unwrap().changes.unwrap().remove(&uri).unwrap());
        assert_eq!(there, format!("{mended}{cell}"));
        editor.open(uri.clone(), 2, there);
        assert_eq!(told(&mut editor, &uri), []);
    }
    let text = format!("/* Of\n    the squid. */ {}", cell.replace("; insert K", ""));
    let (mut editor, uri) = temporary(&text);
    let mut actions = editor.actions(&uri, Range::new(Position::new(0, 0), Position::new(99, 0))).unwrap();
    let CodeActionOrCommand::CodeAction(first) = actions.remove(0) else { panic!("an edit") };
    let there = applied(&text, first.edit.unwrap().changes.unwrap().remove(&uri).unwrap());
    editor.open(uri.clone(), 2, there);
    assert_eq!(told(&mut editor, &uri), []);
}

/// What a connection can say of each of its synapses is proposed beside weight and delay, and leads to where the synapse declares it.
#[test]
fn connections_have_the_names_of_their_synapse() {
    let text = "use std.plasticity.{TsodyksMarkram}
use std.cells.lif.{LifCond}

network main {
    population e: LifCond[4]
    connect e -> e via TsodyksMarkram as tired(tau = 3 ms) {
        rule = all_to_all; weight = 1 nS; delay = 1 ms
        U ~ uniform(0.1, 0.9)
    }
}

run { duration = 10 ms; dt = 0.1 ms; record spikes of e }
";
    let (mut editor, uri) = temporary(text);
    assert_eq!(told(&mut editor, &uri), []);
    let (file, _) = defined(&mut editor, &uri, text, "U ~", 0);
    assert!(file.contains("plasticity"), "{file}");
    let labels: Vec<String> =
        proposed(&text.replacen("U ~ uniform(0.1, 0.9)", "|", 1)).into_iter().map(|item| item.label).collect();
    for name in ["U", "tau_rec", "x", "weight", "dendritic_fraction"] {
        assert!(labels.iter().any(|label| label == name), "{name}: {labels:?}");
    }
}
