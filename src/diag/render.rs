//! Diagnostics as text for people and as JSON for tools.

use super::{Diagnostic, Severity};
use crate::source::{FileId, SourceMap};
use codespan_reporting::diagnostic as cs;
use codespan_reporting::files::SimpleFiles;
use codespan_reporting::term::{self, termcolor};

/// Renders as compiler-style text; with `color` as ANSI colours.
pub fn render_human(sources: &SourceMap, diagnostics: &[Diagnostic], color: bool) -> String {
    let mut files = SimpleFiles::new();
    for (_, file) in sources.files() {
        files.add(file.name.clone(), file.text.clone());
    }
    let config = term::Config { chars: term::Chars::box_drawing(), ..term::Config::default() };
    let mut out = if color { termcolor::Buffer::ansi() } else { termcolor::Buffer::no_color() };
    for d in diagnostics {
        // Writing to memory cannot fail, and spans lie inside their files.
        let _ = term::emit_to_write_style(&mut out, &config, &files, &to_codespan(d));
    }
    String::from_utf8_lossy(out.as_slice()).into_owned()
}

fn to_codespan(d: &Diagnostic) -> cs::Diagnostic<usize> {
    let severity = match d.code.severity() {
        Severity::Error => cs::Severity::Error,
        Severity::Warning => cs::Severity::Warning,
    };
    let labels = d
        .labels
        .iter()
        .map(|l| {
            let FileId(file) = l.span.file;
            let style = if l.primary { cs::LabelStyle::Primary } else { cs::LabelStyle::Secondary };
            cs::Label::new(style, file as usize, l.span.range()).with_message(&l.message)
        })
        .collect();
    let notes = d.notes.iter().cloned().chain(d.help.iter().map(|h| format!("help: {h}"))).collect();
    cs::Diagnostic::new(severity).with_code(d.code.id()).with_message(&d.message).with_labels(labels).with_notes(notes)
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
                    "message": l.message,
                    "primary": l.primary,
                })
            })
            .collect();
        let object = serde_json::json!({
            "severity": match d.code.severity() { Severity::Error => "error", Severity::Warning => "warning" },
            "code": d.code.id(),
            "message": d.message,
            "labels": labels,
            "notes": d.notes,
            "help": d.help,
        });
        out.push_str(&object.to_string());
        out.push('\n');
    }
    out
}
