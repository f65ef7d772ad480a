//! The form of a text: what it defines, what can be folded, what each word is, units that are not written, and the same text laid out.
//!
//! In come an analysis and the text; out go the protocol's answers.
//! Never true here: a text with mistakes is laid out.

use super::analysis::Analysis;
use super::declared::{Declared, What};
use super::names::typed;
use super::positions::{Columns, Lines};
use crate::diag::Diagnostics;
use crate::hir::FUNCTIONS;
use crate::source::SourceMap;
use crate::syntax::{self, Block, TokenKind, tokens};
use crate::units::Unit;
use lsp_types::{
    DocumentSymbol, FoldingRange, FoldingRangeKind, InlayHint, InlayHintKind, InlayHintLabel, Position, Range,
    SemanticToken, SemanticTokenType, TextEdit,
};
use std::collections::BTreeMap;

/// What the text defines, nested.
pub fn symbols(analysis: &Analysis, lines: &Lines<'_>) -> Vec<DocumentSymbol> {
    analysis.own().iter().map(|d| symbol(d, lines)).collect()
}

// `deprecated` is a field that cannot be left out.
#[allow(deprecated)]
fn symbol(d: &Declared, lines: &Lines<'_>) -> DocumentSymbol {
    let children: Vec<DocumentSymbol> = d.inside.iter().map(|d| symbol(d, lines)).collect();
    DocumentSymbol {
        name: d.name.clone(),
        detail: Some(d.what.word().to_string()),
        kind: d.what.kind(),
        tags: None,
        deprecated: None,
        range: lines.range(d.whole.range()),
        selection_range: lines.range(d.span.range()),
        children: Some(children).filter(|list| !list.is_empty()),
    }
}

/// Blocks in braces and comments of several lines.
pub fn folds(text: &str, lines: &Lines<'_>) -> Vec<FoldingRange> {
    let fold =
        |start: u32, end: u32, kind| FoldingRange { start_line: start, end_line: end, kind, ..FoldingRange::default() };
    let line = |byte: usize| lines.position(byte).line;
    let mut out = Vec::new();
    let mut open = Vec::new();
    let mut comment: Option<(u32, u32)> = None;
    let end_comment = |comment: &mut Option<(u32, u32)>, out: &mut Vec<FoldingRange>| {
        if let Some((start, end)) = comment.take().filter(|(start, end)| end > start) {
            out.push(fold(start, end, Some(FoldingRangeKind::Comment)));
        }
    };
    for token in tokens(text) {
        if token.kind == TokenKind::Comment {
            let (start, end) = (line(token.start), line(token.end()));
            match &mut comment {
                Some((_, last)) if start == *last + 1 => *last = end,
                _ => {
                    end_comment(&mut comment, &mut out);
                    comment = Some((start, end));
                }
            }
            continue;
        }
        end_comment(&mut comment, &mut out);
        match (token.kind, token.text) {
            (TokenKind::Symbol, "{") => open.push(line(token.start)),
            (TokenKind::Symbol, "}") => {
                let end = line(token.start);
                // The line of the brace stays.
                if let Some(start) = open.pop().filter(|start| end > start + 1) {
                    out.push(fold(start, end - 1, None));
                }
            }
            _ => {}
        }
    }
    end_comment(&mut comment, &mut out);
    out
}

/// The kinds of words, in the order in which answers number them.
pub const KINDS: &[SemanticTokenType] = &[
    SemanticTokenType::KEYWORD,
    SemanticTokenType::COMMENT,
    SemanticTokenType::STRING,
    SemanticTokenType::NUMBER,
    SemanticTokenType::FUNCTION,
    SemanticTokenType::CLASS,
    SemanticTokenType::PARAMETER,
    SemanticTokenType::VARIABLE,
    SemanticTokenType::PROPERTY,
    SemanticTokenType::NAMESPACE,
    SemanticTokenType::STRUCT,
    SemanticTokenType::MACRO,
];

/// The number of a definition's kind.
fn kind_of(what: What) -> u32 {
    match what {
        What::Function => 4,
        What::Channel | What::Cell | What::Junction | What::Synapse => 5,
        What::Argument | What::Parameter | What::Weight | What::Amount => 6,
        What::Let | What::Current | What::Sum | What::Reads | What::Input | What::Clamp | What::Probe | What::Port => 7,
        What::State | What::Gate | What::Pool | What::Key => 8,
        What::Network | What::Run | What::Train | What::Fit => 9,
        What::Compartment | What::Instance | What::Section | What::Population => 10,
        What::Constant => 11,
    }
}

/// What each word of the text is.
pub fn words(analysis: &Analysis, text: &str, columns: Columns) -> Vec<SemanticToken> {
    let meaning = meanings(analysis);
    let all = tokens(text);
    let keyword = |word: &str| Block::ALL.iter().any(|block| block.keywords().contains(&word)) || Block::is_inner(word);
    let mut out = Vec::new();
    let (mut last_line, mut last_start) = (0, 0);
    let (mut line, mut line_start) = (0u32, 0usize);
    let mut scanned = 0;
    let mut put = |from: usize, piece: &str, kind: u32| {
        // From token to token, so that no line is counted twice.
        for (at, _) in text[scanned..from].match_indices('\n') {
            line += 1;
            line_start = scanned + at + 1;
        }
        scanned = from;
        let start = columns.width(&text[line_start..from]);
        let delta_start = if line == last_line { start - last_start } else { start };
        let (delta_line, length) = (line - last_line, columns.width(piece));
        out.push(SemanticToken { delta_line, delta_start, length, token_type: kind, token_modifiers_bitset: 0 });
        (last_line, last_start) = (line, start);
    };
    for (at, token) in all.iter().enumerate() {
        let number = at.checked_sub(1).map(|before| all[before]).filter(|t| t.kind == TokenKind::Number);
        let kind = match token.kind {
            TokenKind::Comment => 1,
            TokenKind::String => 2,
            TokenKind::Number => 3,
            TokenKind::Symbol => continue,
            TokenKind::Word => match meaning.get(&token.start) {
                Some(kind) => *kind,
                None if number.is_some() && Unit::parse(token.text).is_some() => 3,
                None if keyword(token.text) => 0,
                None if FUNCTIONS.iter().any(|f| f.name == token.text) => 4,
                None => continue,
            },
        };
        let mut from = token.start;
        for piece in token.text.split_inclusive('\n') {
            put(from, piece.trim_end_matches(['\n', '\r']), kind);
            from += piece.len();
        }
    }
    out
}

/// The kinds of the names of the main file, by their first bytes.
fn meanings(analysis: &Analysis) -> BTreeMap<usize, u32> {
    let kinds: BTreeMap<_, u32> = analysis.definitions().map(|d| (d.span, kind_of(d.what))).collect();
    let mut out: BTreeMap<usize, u32> = BTreeMap::new();
    for d in
        analysis.own().iter().flat_map(Declared::all).filter(|d| !matches!(d.what, What::Run | What::Train | What::Fit))
    {
        out.insert(d.span.start as usize, kind_of(d.what));
    }
    for (at, definition) in analysis.uses.all().filter(|(at, _)| at.file == analysis.main()) {
        let module = (definition.end == 0).then_some(9);
        if let Some(kind) = kinds.get(&definition).copied().or(module) {
            out.insert(at.start as usize, kind);
        }
    }
    out
}

/// The units of values that are named without one.
pub fn hints(analysis: &Analysis, lines: &Lines<'_>, wanted: Range) -> Vec<InlayHint> {
    let mut out = Vec::new();
    for d in analysis
        .own()
        .iter()
        .flat_map(Declared::all)
        .filter(|d| matches!(d.what, What::Let | What::Current | What::Sum))
    {
        let position = lines.position(d.span.end as usize);
        let outside = position < wanted.start || wanted.end < position;
        let Some((block, s)) = analysis.uses.symbol(d.span).filter(|_| !outside) else { continue };
        if let Some(unit) = typed(s).filter(|_| !block.unknown.contains(&s.name)) {
            out.push(InlayHint {
                position,
                label: InlayHintLabel::String(unit),
                kind: Some(InlayHintKind::TYPE),
                text_edits: None,
                tooltip: None,
                padding_left: None,
                padding_right: None,
                data: None,
            });
        }
    }
    out
}

/// The edit that lays the text out as `neuroc fmt` does; none if it has mistakes, or is so already.
pub fn formatted(text: &str, lines: &Lines<'_>) -> Option<Vec<TextEdit>> {
    let mut sources = SourceMap::default();
    let file = sources.add("", "", text);
    let new_text = syntax::format(file, text, &mut Diagnostics::default())?;
    if new_text == text {
        return Some(Vec::new());
    }
    let range = Range::new(Position::new(0, 0), lines.position(text.len()));
    Some(vec![TextEdit { range, new_text }])
}
