//! What is wrong with a text, as clients show it, and the edits that mend it.
//!
//! In comes an analysis; out go the protocol's diagnostics and code actions.
//! Never true here: a message has other words than on the command line.

use super::analysis::Analysis;
use super::positions::Lines;
use super::{Editor, addresses};
use crate::diag::{Code, Diagnostic, Fix, Severity};
use crate::source::Span;
use crate::syntax::{TokenKind, tokens};
use lsp_types::{
    CodeAction, CodeActionKind, CodeActionOrCommand, DiagnosticRelatedInformation, DiagnosticSeverity, DiagnosticTag,
    Location, NumberOrString, Range, TextEdit, Uri, WorkspaceEdit,
};
use std::collections::HashMap;

/// What is wrong, for the document at `uri`.
pub fn diagnostics(editor: &Editor, uri: &Uri, analysis: &Analysis) -> Vec<lsp_types::Diagnostic> {
    analysis.diagnostics.iter().map(|d| diagnostic(editor, uri, analysis, d)).collect()
}

fn diagnostic(editor: &Editor, uri: &Uri, analysis: &Analysis, d: &Diagnostic) -> lsp_types::Diagnostic {
    let severity = match d.code.severity() {
        Severity::Error => DiagnosticSeverity::ERROR,
        Severity::Warning => DiagnosticSeverity::WARNING,
    };
    let first = d.labels.first();
    let mut message = match first {
        Some(label) if label.span.file != analysis.main() => {
            format!("{}: {}", analysis.said_in.place(label.span), d.message)
        }
        Some(_) | None => d.message.clone(),
    };
    let said = first.map(|label| label.message.as_str()).filter(|text| !text.is_empty());
    let notes = d.notes.iter().map(|note| format!("note: {note}"));
    let help = d.help.iter().map(|help| format!("help: {help}"));
    for line in said.map(str::to_string).into_iter().chain(notes).chain(help) {
        message.push('\n');
        message.push_str(&line);
    }
    message.push_str(&format!("\nmore: neuroc explain {}", d.code.id()));
    // What is wrong in another file stands where that is brought in, too.
    let elsewhere = first.is_some_and(|label| label.span.file != analysis.main());
    let labels = d.labels.iter().skip(usize::from(!elsewhere));
    let related = labels.filter_map(|label| {
        let location = location(editor, uri, analysis, label.span)?;
        let message = if label.message.is_empty() { "here".to_string() } else { label.message.clone() };
        Some(DiagnosticRelatedInformation { location, message })
    });
    lsp_types::Diagnostic {
        range: first.map(|label| range_of(editor, analysis, label.span)).unwrap_or_default(),
        severity: Some(severity),
        code: Some(NumberOrString::String(d.code.id().to_string())),
        code_description: None,
        source: Some("neuroc".to_string()),
        message,
        related_information: Some(related.collect()),
        tags: (d.code == Code::Unused).then(|| vec![DiagnosticTag::UNNECESSARY]),
        data: None,
    }
}

/// Where a message stands in the main file.
fn range_of(editor: &Editor, analysis: &Analysis, span: Span) -> Range {
    let text = &analysis.said_in.file(analysis.main()).text;
    let lines = Lines::new(text, editor.columns());
    if span.file == analysis.main() {
        return lines.range(span.range());
    }
    let brings_in = |(at, means): &(Span, Span)| at.file == analysis.main() && means.file == span.file;
    analysis.uses.all().find(brings_in).map(|(at, _)| lines.range(at.range())).unwrap_or_default()
}

/// The place of a span of the texts that messages stand in.
fn location(editor: &Editor, uri: &Uri, analysis: &Analysis, span: Span) -> Option<Location> {
    let file = analysis.said_in.file(span.file);
    let range = Lines::new(&file.text, editor.columns()).range(span.range());
    let uri = if span.file == analysis.main() { uri.clone() } else { address(editor, &file.name)? };
    Some(Location { uri, range })
}

/// The address of a file that is not the main one: of an open one as the editor writes it.
pub fn address(editor: &Editor, name: &str) -> Option<Uri> {
    let path = match addresses::library_module(name) {
        Some(module) => addresses::library_file(module)?,
        None => name.into(),
    };
    let open = editor.documents.values().find(|document| document.path.as_ref() == Some(&path));
    open.map(|document| document.uri.clone()).or_else(|| addresses::uri_of(&path))
}

/// The edits that mend what is wrong in a range of the main file.
pub fn actions(editor: &Editor, uri: &Uri, analysis: &Analysis, range: Range) -> Vec<CodeActionOrCommand> {
    let mut list = Vec::new();
    for d in &analysis.diagnostics {
        let shown = diagnostic(editor, uri, analysis, d);
        if shown.range.end < range.start || range.end < shown.range.start {
            continue;
        }
        let edits: Vec<_> = d.fixes.iter().filter_map(|fix| edit(editor, analysis, fix)).collect();
        let one = edits.len() == 1;
        for (title, edit) in edits {
            list.push(CodeActionOrCommand::CodeAction(CodeAction {
                title,
                kind: Some(CodeActionKind::QUICKFIX),
                diagnostics: Some(vec![shown.clone()]),
                edit: Some(in_document(uri, vec![edit])),
                is_preferred: Some(one),
                ..CodeAction::default()
            }));
        }
    }
    list
}

/// Edits of one document.
// The protocol's type: an address is compared by its text, which nobody changes.
#[allow(clippy::mutable_key_type)]
pub fn in_document(uri: &Uri, edits: Vec<TextEdit>) -> WorkspaceEdit {
    WorkspaceEdit { changes: Some(HashMap::from([(uri.clone(), edits)])), ..WorkspaceEdit::default() }
}

fn edit(editor: &Editor, analysis: &Analysis, fix: &Fix) -> Option<(String, TextEdit)> {
    let text = &analysis.said_in.file(analysis.main()).text;
    match fix {
        Fix::Replace { span, old, new } => {
            let stands = span.file == analysis.main() && analysis.said_in.text(*span) == old;
            let range = Lines::new(text, editor.columns()).range(span.range());
            stands.then(|| (format!("Replace `{old}` by `{}`", new.trim()), TextEdit { range, new_text: new.clone() }))
        }
        Fix::Use(line) => Some((format!("Add `{line}`"), brought_in(editor, analysis, line))),
    }
}

/// A `use` line behind the others, or before the first item. A `//` stays with its line; what else follows on a line is moved to the next.
pub fn brought_in(editor: &Editor, analysis: &Analysis, line: &str) -> TextEdit {
    let text = &analysis.said_in.file(analysis.main()).text;
    let lines = Lines::new(text, editor.columns());
    let file = analysis.files.first();
    let last = file.and_then(|file| file.ast.uses().next_back()).map(|u| u.span.end as usize);
    let (at, new_text) = match last {
        Some(end) => {
            let rest = text[end..].split('\n').next().unwrap_or("");
            let is_whole = rest.trim().is_empty() || rest.trim_start().starts_with("//");
            (if is_whole { end + rest.len() } else { end }, format!("\n{line}"))
        }
        None => (first_item(text), format!("{line}\n\n")),
    };
    TextEdit { range: lines.range(at..at), new_text }
}

/// Where the first item of a text begins, its documentation included.
fn first_item(text: &str) -> usize {
    let mut start = text.len();
    for token in tokens(text).iter().rev() {
        let documents = token.kind == TokenKind::Comment && token.text.starts_with("///");
        if token.kind != TokenKind::Comment || documents {
            start = token.start;
        }
    }
    let line = text[..start].rfind('\n').map_or(0, |at| at + 1);
    // Before it on its line may be the end of a comment.
    if text[line..start].trim().is_empty() { line } else { start }
}
