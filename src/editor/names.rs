//! Names of a text: what they mean, where they are defined, where they are used, and other names for them.
//!
//! In come analyses and places; out go the protocol's answers.
//! Never true here: a name is looked up by its spelling. The compiler has done that.

use super::analysis::Analysis;
use super::declared::{Declared, What};
use super::positions::Lines;
use super::{Editor, addresses, messages};
use crate::hir::{self, FUNCTIONS, Symbol, SymbolKind, Ty, shown};
use crate::source::Span;
use crate::syntax::{Token, TokenKind, tokens};
use crate::units::Unit;
use lsp_types::{
    Hover, HoverContents, Location, MarkupContent, MarkupKind, Position, Range, TextEdit, Uri, WorkspaceEdit,
};
use std::collections::{BTreeMap, HashMap};
use std::path::Path;

/// What the name at a byte means.
pub fn hover(editor: &Editor, analysis: &Analysis, text: &str, byte: usize) -> Option<Hover> {
    let lines = Lines::new(text, editor.columns());
    let (span, value) = match analysis.name_at(byte) {
        Some((at, definition)) => (at.range(), described(analysis, definition)?),
        None => word(text, byte)?,
    };
    let contents = HoverContents::Markup(MarkupContent { kind: MarkupKind::Markdown, value });
    Some(Hover { contents, range: Some(lines.range(span)) })
}

/// A definition in words.
pub fn described(analysis: &Analysis, definition: Span) -> Option<String> {
    let declared = analysis.definition(definition);
    let has_value = declared.is_none_or(|d| d.what.has_value());
    let symbol = analysis.uses.symbol(definition).filter(|_| has_value);
    let mut line = match (declared, symbol) {
        (Some(d), _) => format!("{} {}", d.what.word(), d.name),
        (None, Some((_, s))) => s.name.clone(),
        // The beginning of a file stands for its module.
        (None, None) => return module(analysis, definition),
    };
    let mut more = Vec::new();
    match symbol {
        Some((block, s)) => {
            let known = !block.unknown.contains(&s.name);
            line.push_str(&typed(s).filter(|_| known).unwrap_or_default());
            if let Some(value) = value(analysis, block, s).filter(|_| known) {
                line.push_str(&format!(" = {value}"));
            }
            if let (SymbolKind::State { rate, .. }, true) = (&s.kind, known) {
                more.push(format!("{}' = {}", s.name, hir::equation(rate, &block.symbols)));
            }
        }
        None => line = head(analysis, declared?),
    }
    let mut out = format!("```neuro\n{line}\n");
    for line in more.iter().filter(|line| line.len() < 2000) {
        out.push_str(&format!("{line}\n"));
    }
    out.push_str("```\n");
    if let Some((_, s)) = symbol
        && let Ty::Real(dim) = s.ty
        && let Some(quantity) = dim.quantity()
    {
        out.push_str(&format!("\n{quantity}\n"));
    }
    let docs = declared.map_or(&[][..], |d| &d.docs);
    if !docs.is_empty() {
        out.push_str(&format!("\n{}\n", docs.join("\n")));
    }
    let item = analysis.item_of(definition).filter(|item| item.span != definition);
    let of_item = item.map(|item| format!("{} `{}`", item.what.word(), item.name));
    let file = &analysis.sources.file(definition.file).name;
    let of_file = (definition.file != analysis.main()).then(|| match addresses::library_module(file) {
        Some(module) => format!("`{module}`"),
        None => format!("`{}`", Path::new(file).file_name().unwrap_or_default().to_string_lossy()),
    });
    let place: Vec<String> = of_item.into_iter().chain(of_file).collect();
    if !place.is_empty() {
        out.push_str(&format!("\n*in {}*\n", place.join(" of ")));
    }
    Some(out)
}

/// The documentation of a module.
fn module(analysis: &Analysis, definition: Span) -> Option<String> {
    let at = analysis.files.iter().position(|file| file.id == definition.file && definition.end == 0)?;
    let names: Vec<String> = analysis.declared[at].iter().map(|d| format!("{} {}", d.what.word(), d.name)).collect();
    Some(format!("```neuro\n{}\n```\n\n{}\n", names.join("\n"), analysis.files[at].ast.docs.join("\n")))
}

/// The first words of a definition that has no value of its own.
fn head(analysis: &Analysis, d: &Declared) -> String {
    let text = |span: Span| analysis.sources.text(span).split_whitespace().collect::<Vec<_>>().join(" ");
    match d.what {
        What::Function => format!("function {}", text(d.whole)),
        What::Instance => format!("{} {}", d.what.word(), d.detail.map(text).unwrap_or_default()),
        What::Population => format!("population {}", text(d.whole)),
        What::Input => format!("input {}: {}", d.name, d.detail.map(text).unwrap_or_default()),
        What::Probe => format!("probe {} of {}", d.name, d.detail.map(text).unwrap_or_default()),
        What::Clamp => format!("clamp {}: {}", d.name, d.detail.map(text).unwrap_or_default()),
        What::Constant
        | What::Argument
        | What::Channel
        | What::Cell
        | What::Junction
        | What::Synapse
        | What::Network
        | What::Run
        | What::Train
        | What::Fit
        | What::Parameter
        | What::Let
        | What::State
        | What::Current
        | What::Gate
        | What::Key
        | What::Reads
        | What::Pool
        | What::Port
        | What::Compartment
        | What::Section
        | What::Sum
        | What::Weight
        | What::Amount => format!("{} {}", d.what.word(), d.name),
    }
}

/// `: mV`, if it is no pure number.
pub fn typed(s: &Symbol) -> Option<String> {
    match s.ty {
        Ty::Bool => Some(": condition".to_string()),
        Ty::Real(dim) if dim.is_one() => None,
        Ty::Real(_) => Some(format!(": {}", s.display_unit().name)),
    }
}

/// The value of a symbol: a number where it is one, else as it is written.
fn value(analysis: &Analysis, block: &hir::Block, s: &Symbol) -> Option<String> {
    let e = match &s.kind {
        SymbolKind::Param(e) | SymbolKind::Let(e) => e,
        SymbolKind::State { init, .. } => init,
        SymbolKind::Port(_) | SymbolKind::Voltage | SymbolKind::Pool => return None,
    };
    if let hir::ExprKind::Number(x) = e.kind {
        return Some(shown(x, &s.display_unit()));
    }
    let written = analysis.sources.text(e.span).split_whitespace().collect::<Vec<_>>().join(" ");
    // What the compiler has made stands at the name of what it was made for.
    let made = written.is_empty() || e.span == s.span || e.span == block.name;
    Some(if made { hir::equation(e, &block.symbols) } else { written }).filter(|text| text.len() < 500)
}

/// A word with a fixed meaning, or a unit, with its place.
fn word(text: &str, byte: usize) -> Option<(std::ops::Range<usize>, String)> {
    let tokens = tokens(text);
    let at = tokens.iter().position(|t| t.start <= byte && byte <= t.end() && t.kind == TokenKind::Word)?;
    let token = tokens[at];
    let told = |value: String| Some((token.start..token.end(), value));
    if let Some(f) = FUNCTIONS.iter().find(|f| f.name == token.text && follows(&tokens, at, "(")) {
        return told(format!("```neuro\n{}({})\n```\n\n{}\n", f.name, f.params.join(", "), f.doc));
    }
    if let Some(rule) = crate::connect::RULES.iter().find(|r| r.name == token.text) {
        return told(format!("```neuro\nrule = {}({})\n```\n\n{}\n", rule.name, rule.arguments_shown(), rule.doc));
    }
    let number = at.checked_sub(1).map(|before| tokens[before]).filter(|t| t.kind == TokenKind::Number);
    if let (Some(number), Some(unit)) = (number, Unit::parse(token.text))
        && !text[number.end()..token.start].contains('\n')
    {
        return told(format!("`{}`: {}", token.text, unit.dim.describe()));
    }
    let fixed = match token.text {
        "t" => "the time",
        "v" => "the voltage, in mV",
        "celsius" => "the temperature of the run",
        "pi" => "the number 3.14159...",
        "index" => "the number of a cell in its population",
        "i_syn" => "the current of all synapses and inputs of a point neuron, in nA",
        "dv" => "in a junction: the voltage here minus the voltage there",
        _ => return None,
    };
    told(fixed.to_string())
}

fn follows(tokens: &[Token<'_>], at: usize, symbol: &str) -> bool {
    tokens.get(at + 1).is_some_and(|next| next.text == symbol)
}

/// Where a span of an analysis is.
pub fn location(editor: &Editor, uri: &Uri, analysis: &Analysis, span: Span) -> Option<Location> {
    let file = analysis.sources.file(span.file);
    let range = Lines::new(&file.text, editor.columns()).range(span.range());
    let uri = if span.file == analysis.main() { uri.clone() } else { messages::address(editor, &file.name)? };
    Some(Location { uri, range })
}

/// Where the name at a byte is defined.
pub fn definition(editor: &Editor, uri: &Uri, analysis: &Analysis, byte: usize) -> Option<Location> {
    let (_, definition) = analysis.name_at(byte)?;
    location(editor, uri, analysis, definition)
}

/// A file of an analysis, by what all analyses call it.
fn file_key(analysis: &Analysis, uri: &Uri, span: Span) -> String {
    if span.file == analysis.main() {
        return addresses::path_of(uri).map_or_else(|| uri.as_str().to_string(), |path| path.display().to_string());
    }
    analysis.sources.file(span.file).name.clone()
}

/// All places in all open documents, and in the files that these use, that mean what the name at a byte of the document means.
pub fn references(editor: &Editor, uri: &Uri, analysis: &Analysis, byte: usize) -> Option<(Span, Vec<Location>)> {
    let (_, definition) = analysis.name_at(byte)?;
    let wanted = (file_key(analysis, uri, definition), definition.start, definition.end);
    let mut found: BTreeMap<(String, Position), Location> = BTreeMap::new();
    editor.each(&mut |other_uri, other| {
        // The same place, as the other knows it.
        let same = other.files.iter().map(|file| Span { file: file.id, ..definition });
        let Some(definition) = same.into_iter().find(|span| file_key(other, other_uri, *span) == wanted.0) else {
            return;
        };
        for span in other.references(definition) {
            if let Some(location) = location(editor, other_uri, other, span) {
                found.insert((location.uri.as_str().to_string(), location.range.start), location);
            }
        }
    });
    Some((definition, found.into_values().collect()))
}

/// The name that can be changed at a byte.
pub fn can_rename(editor: &Editor, analysis: &Analysis, byte: usize) -> Result<Range, String> {
    let (at, definition) = analysis.name_at(byte).ok_or("there is no name here that can be changed")?;
    let file = analysis.sources.file(definition.file);
    if addresses::library_module(&file.name).is_some() {
        return Err(format!("`{}` is a name of the standard library", analysis.sources.text(at)));
    }
    let fixed = |d: &Declared| matches!(d.what, What::Key | What::Current | What::Run | What::Train | What::Fit);
    if analysis.definition(definition).is_some_and(fixed) {
        return Err(format!("`{}` has a fixed meaning here", analysis.sources.text(at)));
    }
    if definition.end == 0 {
        return Err("a module is called as its file is".to_string());
    }
    if analysis.sources.text(at) != analysis.sources.text(definition) || analysis.sources.text(at).contains('[') {
        return Err(format!("`{}` is not called so where it is defined", analysis.sources.text(at)));
    }
    Ok(Lines::new(&analysis.sources.file(at.file).text, editor.columns()).range(at.range()))
}

/// The edits that give a name another spelling, or why that cannot be.
// The protocol's type: an address is compared by its text, which nobody changes.
#[allow(clippy::mutable_key_type)]
pub fn rename(
    editor: &Editor,
    uri: &Uri,
    analysis: &Analysis,
    byte: usize,
    new: &str,
) -> Result<WorkspaceEdit, String> {
    can_rename(editor, analysis, byte)?;
    let is_word = tokens(new).len() == 1
        && new.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && new.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    if !is_word {
        return Err(format!("`{new}` cannot be a name"));
    }
    let (definition, places) = references(editor, uri, analysis, byte).ok_or("there is no name here")?;
    // What cannot be read may name it, too.
    if let Some(broken) = editor.broken(&places) {
        return Err(format!("something in `{broken}` cannot be read: mend that first"));
    }
    let old = analysis.sources.text(definition);
    let mut changes: HashMap<Uri, Vec<TextEdit>> = HashMap::new();
    for place in places {
        changes.entry(place.uri).or_default().push(TextEdit { range: place.range, new_text: new.to_string() });
    }
    editor.keeps_meaning(&changes, old, new)?;
    Ok(WorkspaceEdit { changes: Some(changes), ..WorkspaceEdit::default() })
}
