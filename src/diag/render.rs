//! Diagnostics as text for people and as JSON for tools.

use super::excerpt::Excerpts;
use super::{Diagnostic, Severity};
use crate::source::SourceMap;
use codespan_reporting::diagnostic as cs;
use codespan_reporting::term::{self, termcolor};
use std::ops::Range;

/// Renders as compiler-style text; with `color` as ANSI colours.
pub fn render_human(sources: &SourceMap, diagnostics: &[Diagnostic], color: bool) -> String {
    let config = term::Config { chars: term::Chars::box_drawing(), ..term::Config::default() };
    let mut out = if color { termcolor::Buffer::ansi() } else { termcolor::Buffer::no_color() };
    for d in diagnostics {
        // Writing to memory cannot fail, and spans lie inside their files.
        let (files, labels) = Excerpts::new(sources, &d.labels);
        let _ = term::emit_to_write_style(&mut out, &config, &files, &to_codespan(d, labels));
    }
    String::from_utf8_lossy(out.as_slice()).into_owned()
}

/// Longer texts are cut: they repeat what is written, or list all there is.
const LONGEST: usize = 600;

fn short(text: &str) -> String {
    let text = harmless(text);
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{} ...", &text[..end]),
        None => text,
    }
}

/// Text that a terminal shows and does not obey, with as many bytes: a file may hold escapes that set a title or hide a line.
pub(crate) fn harmless(text: &str) -> String {
    let shown = |c: char| match c.len_utf8() {
        _ if is_harmless(c) => c,
        1 => '?',
        2 => '\u{a4}',
        _ => '\u{fffd}',
    };
    text.chars().map(shown).collect()
}

/// Does a terminal show a character where it stands, and do nothing else?
pub(super) fn is_harmless(c: char) -> bool {
    let turns = matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    matches!(c, '\n' | '\t' | '\r') || !(c.is_control() || turns)
}

fn to_codespan(d: &Diagnostic, labels: Vec<(usize, Range<usize>, usize)>) -> cs::Diagnostic<usize> {
    let severity = match d.code.severity() {
        Severity::Error => cs::Severity::Error,
        Severity::Warning => cs::Severity::Warning,
    };
    let label = |(of, range, file): (usize, Range<usize>, usize)| {
        let l = &d.labels[of];
        let style = if l.primary { cs::LabelStyle::Primary } else { cs::LabelStyle::Secondary };
        cs::Label::new(style, file, range).with_message(short(&l.message))
    };
    let labels = labels.into_iter().map(label).collect();
    let notes = d.notes.iter().map(|n| short(n)).chain(d.help.iter().map(|h| format!("help: {}", short(h)))).collect();
    cs::Diagnostic::new(severity)
        .with_code(d.code.id())
        .with_message(short(&d.message))
        .with_labels(labels)
        .with_notes(notes)
}

/// Renders as JSON, one object a line: `severity`, `code`, `message`, `labels` (file, line, column,
/// byte range, message, primary), `notes`, `help`.
pub fn render_json(sources: &SourceMap, diagnostics: &[Diagnostic]) -> String {
    let mut out = String::new();
    for d in diagnostics {
        let labels: Vec<_> = d
            .labels
            .iter()
            .map(|l| {
                let (line, column) = sources.position(l.span);
                serde_json::json!({
                    "file": sources.file(l.span.file).name,
                    "line": line,
                    "column": column,
                    "start": l.span.start,
                    "end": l.span.end,
                    "message": short(&l.message),
                    "primary": l.primary,
                })
            })
            .collect();
        let object = serde_json::json!({
            "severity": match d.code.severity() { Severity::Error => "error", Severity::Warning => "warning" },
            "code": d.code.id(),
            "message": short(&d.message),
            "labels": labels,
            "notes": d.notes.iter().map(|n| short(n)).collect::<Vec<_>>(),
            "help": d.help.iter().map(|h| short(h)).collect::<Vec<_>>(),
        });
        out.push_str(&object.to_string());
        out.push('\n');
    }
    out
}
