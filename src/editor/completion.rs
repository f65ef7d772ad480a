//! What may be written next.
//!
//! In come an analysis, the text as it is now and a byte of it; out go the names, units, keys and words that can stand there, and what the arguments of a call are.
//! Never true here: a proposal that the place does not allow by its form.

use super::analysis::Analysis;
use super::declared::{Declared, What};
use super::{Editor, messages, names};
use crate::connect::RULES;
use crate::hir::{self, Arrivals, Coincident, FUNCTIONS, KeyBlock, Method, Symbol};
use crate::stdlib;
use crate::syntax::{Around, Block, Token, TokenKind, around};
use lsp_types::{
    CompletionItem, CompletionItemKind, Documentation, MarkupContent, MarkupKind, ParameterInformation, ParameterLabel,
    SignatureHelp, SignatureInformation, SymbolKind,
};
use std::collections::BTreeMap;

/// The units that people write.
const UNITS: &[&str] = &[
    "mV", "V", "ms", "s", "us", "nA", "pA", "uA", "mA", "uA/cm2", "nS", "pS", "uS", "mS", "mS/cm2", "S/cm2", "pF",
    "nF", "uF/cm2", "um", "cm", "um2", "cm2", "mM", "uM", "nM", "degC", "K", "Hz", "kHz", "/ms", "/s", "Mohm",
    "ohm*cm",
];

/// Proposals by their names: each name once.
#[derive(Default)]
struct Proposals {
    list: BTreeMap<String, CompletionItem>,
}

impl Proposals {
    fn add(&mut self, label: &str, kind: CompletionItemKind, detail: impl Into<String>, docs: &[String]) {
        let markdown = |value| Documentation::MarkupContent(MarkupContent { kind: MarkupKind::Markdown, value });
        let item = CompletionItem {
            label: label.to_string(),
            kind: Some(kind),
            detail: Some(detail.into()).filter(|text| !text.is_empty()),
            documentation: (!docs.is_empty()).then(|| markdown(docs.join("\n"))),
            ..CompletionItem::default()
        };
        self.list.entry(label.to_string()).or_insert(item);
    }

    fn words(&mut self, words: &[&str], kind: CompletionItemKind) {
        words.iter().for_each(|word| self.add(word, kind, "", &[]));
    }
}

/// What can stand at a byte of the document.
pub fn complete(editor: &Editor, analysis: &Analysis, text: &str, byte: usize) -> Vec<CompletionItem> {
    let place = around(text, byte);
    if place.inert {
        return Vec::new();
    }
    let mut out = Proposals::default();
    propose(editor, analysis, text, byte, &place, &mut out);
    out.list.into_values().collect()
}

fn propose(editor: &Editor, analysis: &Analysis, text: &str, byte: usize, place: &Around<'_>, out: &mut Proposals) {
    let words: Vec<&str> = place.statement.iter().map(|t| t.text).collect();
    let block = place.block();
    let in_braces = place.open.last().is_some_and(|open| open.block.is_none());
    let of_use = place.open.last().filter(|_| in_braces).map(|open| &text[open.start..byte]);
    if let Some(line) = of_use.filter(|line| line.starts_with("use ")) {
        return module_items(analysis, line, out);
    }
    if let [last] = &words[words.len().saturating_sub(1)..]
        && place.statement.last().is_some_and(|t| t.kind == TokenKind::Number)
        && !last.is_empty()
        && !text[place.statement[words.len() - 1].end()..byte].contains('\n')
    {
        return out.words(UNITS, CompletionItemKind::UNIT);
    }
    match (&words[..], block) {
        (["use", path @ ..], Block::File) => return modules(analysis, path, out),
        ([.., "method", "="], Block::Run) => {
            return Method::ALL.iter().for_each(|m| out.add(m.1, CompletionItemKind::ENUM_MEMBER, "", &[]));
        }
        ([.., "arrivals", "="], Block::Run) => {
            return Arrivals::ALL.iter().for_each(|a| out.add(a.1, CompletionItemKind::ENUM_MEMBER, "", &[]));
        }
        ([.., "coincident", "="], Block::Run) => {
            return Coincident::ALL.iter().for_each(|c| out.add(c.1, CompletionItemKind::ENUM_MEMBER, "", &[]));
        }
        ([.., "rule", "=" | "~"], Block::Connect) => {
            RULES.iter().for_each(|r| out.add(r.name, CompletionItemKind::FUNCTION, r.arguments_shown(), &[]));
            return out.add("edges", CompletionItemKind::FUNCTION, "edges(\"file.csv\")", &[]);
        }
        ([.., "network", "="], Block::Run) => return items(analysis, &[What::Network], out),
        (["insert", ..], Block::Compartment | Block::Region) if starts_name(&words) => {
            return with_library(editor, analysis, &[What::Channel], out);
        }
        (["insert", ..], Block::Compartment | Block::Region) => {
            if let Some(channel) = inserted(analysis, &place.statement) {
                return channel.inside.iter().filter(|d| d.what == What::Parameter).for_each(|d| add_declared(d, out));
            }
        }
        ([.., "via"], _) => return with_library(editor, analysis, &[What::Synapse, What::Junction], out),
        ([.., "modulating"], _) => return items(analysis, &[What::Synapse], out),
        (["population", _, ":"], _) => return with_library(editor, analysis, &[What::Cell], out),
        (["input", _, ":"], Block::Network) => return values(analysis, place, out),
        (["param" | "state" | "reads" | "input" | "pool", _, ":"], _) => {
            return out.words(UNITS, CompletionItemKind::UNIT);
        }
        (["on"], Block::Synapse) => {
            return out.words(&["event", "pre", "post", "modulator"], CompletionItemKind::KEYWORD);
        }
        (["refractory", .., "holds"], Block::Spike) => {
            out.words(&["nothing"], CompletionItemKind::KEYWORD);
            return states(analysis, out);
        }
        (["spike"], Block::Cell) => return out.words(&["when"], CompletionItemKind::KEYWORD),
        ([], _) if !in_braces => {
            if let (Block::Connect, Some(open)) = (block, place.open.last()) {
                of_each_synapse(analysis, &text[open.start..byte], out);
            }
            return members(analysis, block, out);
        }
        _ => {}
    }
    if words.last() == Some(&".") || in_braces {
        behind_a_dot(analysis, place, text, byte, out);
        // Only parameters are set, swept and fitted.
        if matches!(words.first(), Some(&("param" | "sweep" | "free"))) && !words.contains(&"=") {
            let moves = |item: &CompletionItem| {
                !matches!(item.kind, Some(CompletionItemKind::FIELD | CompletionItemKind::VARIABLE))
            };
            out.list.retain(|_, item| moves(item));
        }
        return;
    }
    // What is recorded, connected or driven begins with a population.
    let of_network = matches!(block, Block::Network | Block::Run | Block::Fit);
    if of_network && matches!(words[..], ["record" | "connect" | "drive"] | ["record", "spikes", "of"] | [.., "->"]) {
        if words == ["record"] {
            out.words(&["spikes"], CompletionItemKind::KEYWORD);
        }
        return populations(analysis, out);
    }
    if matches!(words[..], ["sweep" | "free"]) && matches!(block, Block::Run | Block::Fit) {
        populations(analysis, out);
        items(analysis, &[What::Channel, What::Synapse, What::Junction], out);
        let network = analysis.own().iter().filter(|d| d.what == What::Network).flat_map(|d| &d.inside);
        return network.filter(|d| matches!(d.what, What::Parameter | What::Input)).for_each(|d| add_declared(d, out));
    }
    // Nothing is proposed where a name is made up.
    if let [_] = &words[..]
        && !matches!(
            words[0],
            "record"
                | "sweep"
                | "learn"
                | "keep"
                | "free"
                | "target"
                | "drive"
                | "connect"
                | "init"
                | "region"
                | "from"
                | "couple"
                | "refractory"
        )
        && !words[0].starts_with(|c: char| !c.is_alphabetic())
    {
        return;
    }
    match block {
        Block::Network
        | Block::Population
        | Block::Connect
        | Block::Drive
        | Block::Probe
        | Block::Run
        | Block::Train
        | Block::Fit => {
            populations(analysis, out);
            if block == Block::Fit {
                out.words(&["within"], CompletionItemKind::KEYWORD);
            }
            if block == Block::Run {
                let words: &[&str] = match place.statement.first().map(|t| t.text) {
                    Some("sweep") => &["in", "steps", "samples", "log", "random"],
                    _ => &["every", "from", "to", "around", "spikes", "of"],
                };
                out.words(words, CompletionItemKind::KEYWORD);
            }
        }
        Block::Cell | Block::Section | Block::Region => cell_parts(analysis, place, out),
        Block::File
        | Block::Channel
        | Block::Gate
        | Block::Fraction
        | Block::Kinetics
        | Block::Compartment
        | Block::Compartments
        | Block::Pool
        | Block::Spike
        | Block::Junction
        | Block::Synapse
        | Block::Event => {}
    }
    values(analysis, place, out);
}

/// Is a new name of an `insert` line to come?
fn starts_name(words: &[&str]) -> bool {
    let open = words.iter().filter(|w| **w == "(").count();
    let close = words.iter().filter(|w| **w == ")").count();
    open == close && matches!(words.last(), Some(&"insert") | Some(&","))
}

/// The channel in whose parentheses the name of a parameter is to come.
fn inserted<'n>(analysis: &'n Analysis, statement: &[Token<'_>]) -> Option<&'n Declared> {
    let (open, _) = open_call(statement)?;
    let model = match &statement[..open] {
        [.., model, renamed, _] if renamed.text == "as" => model,
        [.., model] => model,
        [] => return None,
    };
    let fresh = matches!(statement.last()?.text, "(" | ",");
    let is_meant = |d: &&Declared| d.what == What::Channel && d.name == model.text;
    analysis.declared.iter().flatten().find(is_meant).filter(|_| fresh)
}

/// The innermost parenthesis that is open at the end of a statement, and how many commas stand in it.
fn open_call(statement: &[Token<'_>]) -> Option<(usize, u32)> {
    let (mut depth, mut commas) = (0usize, 0u32);
    for (at, token) in statement.iter().enumerate().rev().filter(|(_, t)| t.kind == TokenKind::Symbol) {
        match token.text {
            ")" | "]" => depth += 1,
            "(" | "[" if depth > 0 => depth -= 1,
            "(" => return Some((at, commas)),
            "," if depth == 0 => commas += 1,
            _ => {}
        }
    }
    None
}

/// Words and keys that begin a member of a block.
fn members(analysis: &Analysis, block: Block, out: &mut Proposals) {
    out.words(block.keywords(), CompletionItemKind::KEYWORD);
    let keys = match block {
        Block::Gate | Block::Fraction => KeyBlock::Gate,
        Block::Compartment => KeyBlock::Compartment,
        Block::Section => KeyBlock::Section,
        Block::Compartments => KeyBlock::Compartments,
        Block::Region => KeyBlock::Region,
        Block::Pool => KeyBlock::Pool,
        Block::Population => KeyBlock::Population,
        Block::Connect => KeyBlock::Projection,
        Block::Drive => KeyBlock::Drive,
        Block::Probe => KeyBlock::Probe,
        Block::Run => KeyBlock::Run,
        Block::Train => KeyBlock::Train,
        Block::Fit => KeyBlock::Fit,
        Block::Spike | Block::Event | Block::Kinetics => return states(analysis, out),
        Block::File | Block::Channel | Block::Cell | Block::Junction | Block::Synapse | Block::Network => return,
    };
    out.words(keys.keys(), CompletionItemKind::PROPERTY);
}

/// What a connection, given as far as it is written, can say of each of its synapses.
fn of_each_synapse(analysis: &Analysis, written: &str, out: &mut Proposals) {
    let head = written.split('{').next().unwrap_or_default();
    let Some((_, behind)) = head.split_once(" via ") else { return };
    let model = behind.trim_start().split(|c: char| c.is_whitespace() || c == '(').next().unwrap_or_default();
    let is_meant = |d: &&Declared| d.what == What::Synapse && d.name == model;
    let Some(synapse) = analysis.declared.iter().flatten().find(is_meant) else { return };
    let remembers = |d: &&Declared| matches!(d.what, What::Parameter | What::State);
    synapse.inside.iter().filter(remembers).for_each(|d| add_declared(d, out));
}

/// States that an event or a spike may change.
fn states(analysis: &Analysis, out: &mut Proposals) {
    for d in analysis.own().iter().flat_map(Declared::all).filter(|d| matches!(d.what, What::State | What::Weight)) {
        out.add(&d.name, CompletionItemKind::FIELD, d.what.word(), &d.docs);
    }
}

/// Modules, or items of one, behind `use std.`.
fn modules(analysis: &Analysis, path: &[&str], out: &mut Proposals) {
    let written: String = path.concat();
    for module in stdlib::modules() {
        if let Some(rest) = module.strip_prefix(&written)
            && let Some(next) = rest.split('.').next().filter(|next| !next.is_empty())
        {
            out.add(next, CompletionItemKind::MODULE, "", &[]);
        }
    }
    module_items(analysis, &format!("use {written}"), out);
}

/// The items of the module of a `use` line.
fn module_items(analysis: &Analysis, line: &str, out: &mut Proposals) {
    let path: String = line.trim_start_matches("use").split('{').next().unwrap_or("").split_whitespace().collect();
    let path = path.trim_end_matches('.');
    for item in stdlib::source(path).map(stdlib::items).unwrap_or_default() {
        if let Some((kind, name)) = item.split_once(' ') {
            out.add(name, CompletionItemKind::CLASS, kind, &[]);
        }
    }
    // A file beside this one that is read already.
    let file = format!("{}.neuro", path.replace('.', "/"));
    for (loaded, declared) in analysis.files.iter().zip(&analysis.declared).skip(1) {
        if analysis.sources.file(loaded.id).name.ends_with(&file) {
            declared.iter().for_each(|d| add_declared(d, out));
        }
    }
}

fn add_declared(d: &Declared, out: &mut Proposals) {
    out.add(&d.name, item_kind(d.what.kind()), d.what.word(), &d.docs);
}

fn item_kind(kind: SymbolKind) -> CompletionItemKind {
    match kind {
        SymbolKind::FUNCTION => CompletionItemKind::FUNCTION,
        SymbolKind::CONSTANT => CompletionItemKind::CONSTANT,
        SymbolKind::CLASS => CompletionItemKind::CLASS,
        SymbolKind::MODULE => CompletionItemKind::MODULE,
        SymbolKind::PROPERTY | SymbolKind::KEY => CompletionItemKind::PROPERTY,
        SymbolKind::FIELD => CompletionItemKind::FIELD,
        SymbolKind::STRUCT | SymbolKind::OBJECT | SymbolKind::ARRAY => CompletionItemKind::STRUCT,
        // The protocol's kinds are no enum.
        _ => CompletionItemKind::VARIABLE,
    }
}

/// Items of the file, and those that it brings in.
fn items(analysis: &Analysis, wanted: &[What], out: &mut Proposals) {
    for d in analysis.own().iter().filter(|d| wanted.contains(&d.what)) {
        add_declared(d, out);
    }
    let uses = analysis.files.first().into_iter().flat_map(|file| file.ast.uses());
    let brought = uses.map(|u| u.names.iter().chain(u.path.last().filter(|_| u.names.is_empty())));
    for name in brought.flatten() {
        let definition = analysis.definition(analysis.uses.definition(name.span));
        definition.into_iter().filter(|d| wanted.contains(&d.what)).for_each(|d| add_declared(d, out));
    }
}

/// The same, and those of the library, which bring a `use` line with them.
fn with_library(editor: &Editor, analysis: &Analysis, wanted: &[What], out: &mut Proposals) {
    items(analysis, wanted, out);
    for module in stdlib::modules() {
        for item in stdlib::source(&module).map(stdlib::items).unwrap_or_default() {
            let Some((kind, name)) = item.split_once(' ') else { continue };
            if !wanted.iter().any(|what| what.word() == kind) || out.list.contains_key(name) {
                continue;
            }
            let line = format!("use {module}.{{{name}}}");
            let edit = messages::brought_in(editor, analysis, &line);
            let item = CompletionItem {
                label: name.to_string(),
                kind: Some(CompletionItemKind::CLASS),
                detail: Some(format!("{kind} of {module}")),
                additional_text_edits: Some(vec![edit]),
                sort_text: Some(format!("~{name}{module}")),
                ..CompletionItem::default()
            };
            // Modules may have items of the same name: each is a proposal of its own.
            out.list.insert(format!("{name} {module}"), item);
        }
    }
}

/// The names of populations.
fn populations(analysis: &Analysis, out: &mut Proposals) {
    for d in analysis.own().iter().filter(|d| d.what == What::Network).flat_map(|d| &d.inside) {
        if d.what == What::Population {
            add_declared(d, out);
        }
    }
}

/// Compartments and sections of the cell that is being written.
fn cell_parts(analysis: &Analysis, place: &Around<'_>, out: &mut Proposals) {
    let Some(cell) = item_around(analysis, place) else { return };
    for d in cell.inside.iter().filter(|d| matches!(d.what, What::Compartment | What::Section)) {
        add_declared(d, out);
    }
}

/// The item that is being written, as it was understood.
fn item_around<'n>(analysis: &'n Analysis, place: &Around<'_>) -> Option<&'n Declared> {
    let open = place.open.first()?;
    let of_name = |d: &&Declared| d.name == open.name;
    let of_run = |d: &&Declared| d.what == What::Network && open.block == Some(Block::Run);
    analysis.own().iter().find(of_name).or_else(|| analysis.own().iter().find(of_run))
}

/// The symbols that expressions of the item see.
fn symbols<'n>(analysis: &'n Analysis, place: &Around<'_>) -> &'n [Symbol] {
    item_around(analysis, place).and_then(|item| analysis.uses.block(item.span)).map_or(&[], |block| &block.symbols)
}

/// What stands inside of the names before a dot.
fn behind_a_dot(analysis: &Analysis, place: &Around<'_>, text: &str, byte: usize, out: &mut Proposals) {
    let end = byte - place.word.len();
    let brace = place.open.last().filter(|open| open.block.is_none()).is_some();
    let before = if brace { text[..end].rfind('{').map_or("", |at| &text[..at]) } else { &text[..end] };
    let path = path_before(before);
    let Some((first, rest)) = path.split_first() else { return };
    let network = analysis.own().iter().filter(|d| d.what == What::Network).flat_map(|d| &d.inside);
    let population = network.into_iter().find(|d| d.what == What::Population && d.name == *first);
    let (symbols, rest) = match population.and_then(|d| analysis.uses.block(d.span)) {
        Some(block) => (&block.symbols[..], rest),
        None => (symbols(analysis, place), &path[..]),
    };
    let prefix = rest.iter().map(|name| format!("{name}.")).collect::<String>();
    let compartment = || place.open.get(1).map(|open| format!("{}.{prefix}", open.name));
    let inside = |prefix: &str| symbols.iter().any(|s| s.name.starts_with(prefix));
    let prefix = if inside(&prefix) { prefix } else { compartment().unwrap_or(prefix) };
    for s in symbols {
        let Some(rest) = s.name.strip_prefix(prefix.as_str()).filter(|rest| !rest.starts_with('<')) else { continue };
        match rest.split_once('.') {
            Some((name, _)) => out.add(name, CompletionItemKind::STRUCT, "", &[]),
            None => add_symbol(rest, s, out),
        }
    }
}

/// The names before a dot at the end of a text: `a[0].b.` has two.
fn path_before(text: &str) -> Vec<&str> {
    let mut path = Vec::new();
    let mut rest = text.trim_end();
    while let Some(before) = rest.strip_suffix('.') {
        let mut before = before.trim_end();
        for (open, close) in [('[', ']'), ('(', ')')] {
            if before.ends_with(close) {
                before = before.rfind(open).map_or("", |at| &before[..at]).trim_end();
            }
        }
        let start = before
            .rfind(|c: char| !(c.is_alphanumeric() || c == '_'))
            .map_or(0, |at| at + before[at..].chars().next().map_or(1, char::len_utf8));
        if start == before.len() {
            break;
        }
        path.insert(0, &before[start..]);
        rest = before[..start].trim_end();
    }
    path
}

fn add_symbol(name: &str, s: &Symbol, out: &mut Proposals) {
    let kind = match s.kind {
        hir::SymbolKind::Param(_) => CompletionItemKind::PROPERTY,
        hir::SymbolKind::State { .. } => CompletionItemKind::FIELD,
        hir::SymbolKind::Let(_) | hir::SymbolKind::Port(_) | hir::SymbolKind::Voltage | hir::SymbolKind::Pool => {
            CompletionItemKind::VARIABLE
        }
    };
    let unit = names::typed(s).map_or_else(|| "a pure number".to_string(), |unit| unit[2..].to_string());
    out.add(name, kind, unit, &s.docs);
}

/// All that an expression can name.
fn values(analysis: &Analysis, place: &Around<'_>, out: &mut Proposals) {
    let inner = place.open.get(1).map(|open| format!("{}.", open.name));
    for s in symbols(analysis, place).iter().filter(|s| !s.name.contains(['<', '\''])) {
        let short = inner.as_deref().and_then(|inner| s.name.strip_prefix(inner));
        add_symbol(short.unwrap_or(&s.name), s, out);
    }
    let all = analysis.own().iter().filter(|d| place.open.first().is_some_and(|open| open.name == d.name));
    for d in all.flat_map(|d| &d.inside).filter(|d| matches!(d.what, What::Weight | What::Amount | What::Argument)) {
        add_declared(d, out);
    }
    // A sum that is being written is not known yet.
    let words: Vec<&str> = place.statement.iter().map(|token| token.text).collect();
    if let ["sum", _, rest @ ..] = &words[..] {
        out.add("v_pre", CompletionItemKind::VARIABLE, "the voltage of the cell before the synapse", &[]);
        if let ["(", weight, ..] = rest {
            out.add(weight, CompletionItemKind::PROPERTY, What::Weight.word(), &[]);
        }
    }
    items(analysis, &[What::Constant, What::Function], out);
    for f in FUNCTIONS {
        let signature = format!("{}({})", f.name, f.params.join(", "));
        out.add(f.name, CompletionItemKind::FUNCTION, signature, &[f.doc.to_string()]);
    }
    for (name, meaning) in [("pi", "3.14159..."), ("celsius", "the temperature of the run")] {
        out.add(name, CompletionItemKind::CONSTANT, meaning, &[]);
    }
    let running =
        matches!(place.open.first().and_then(|open| open.block), Some(Block::Channel | Block::Cell | Block::Synapse));
    if running {
        out.add("t", CompletionItemKind::CONSTANT, "the time", &[]);
    }
    out.words(&["if", "then", "else", "and", "or", "not", "true", "false"], CompletionItemKind::KEYWORD);
}

/// The parameters of the call that a byte is in.
pub fn signature(analysis: &Analysis, text: &str, byte: usize) -> Option<SignatureHelp> {
    let place = around(text, byte);
    let (open, commas) = open_call(&place.statement)?;
    let name = place.statement.get(open.checked_sub(1)?)?;
    let (params, docs): (Vec<String>, String) = match FUNCTIONS.iter().find(|f| f.name == name.text) {
        Some(f) => (f.params.iter().map(|p| p.to_string()).collect(), f.doc.to_string()),
        None => {
            // A call that is not finished has no tree: its function is found by its name among those that the file knows.
            let known = analysis.definitions().find(|d| d.what == What::Function && d.name == name.text)?;
            (known.inside.iter().map(|p| p.name.clone()).collect(), known.docs.join("\n"))
        }
    };
    let label = format!("{}({})", name.text, params.join(", "));
    let parameters = params
        .into_iter()
        .map(|p| ParameterInformation { label: ParameterLabel::Simple(p), documentation: None })
        .collect();
    let signature = SignatureInformation {
        label,
        documentation: Some(Documentation::String(docs)),
        parameters: Some(parameters),
        active_parameter: Some(commas),
    };
    Some(SignatureHelp { signatures: vec![signature], active_signature: Some(0), active_parameter: Some(commas) })
}
