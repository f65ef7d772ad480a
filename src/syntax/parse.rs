//! A text to the syntax tree.
//!
//! In come bytes or text; out go the tree and the mistakes.
//! Never true here: an item without a mistake is missing from the tree because another item has one.

use super::ast;
use super::build::Builder;
use super::foreign::foreign;
use super::grammar::{Grammar, Rule, Token, TokenKind, tokens};
use super::recover::{self, recover};
use crate::diag::{Code, Diagnostic, Diagnostics};
use crate::source::FileId;
use pest::Parser;
use pest::iterators::Pair;
use std::collections::HashMap;

/// The deepest nesting of brackets and conditionals.
pub const MAX_DEPTH: usize = 64;

/// The text of a file named `name`, or why it is not text.
pub fn read_text(name: &str, bytes: Vec<u8>) -> Result<String, Diagnostic> {
    if let Some(at) = bytes.iter().position(|&b| b == 0) {
        let line = bytes[..at].iter().filter(|&&b| b == b'\n').count() + 1;
        return Err(Diagnostic::without_place(Code::NotText, format!("`{name}` is not text"))
            .note(format!("byte {at} (in line {line}) is zero"))
            .help("save the file as UTF-8; a file in UTF-16 has zeros like this"));
    }
    let mut bytes = bytes;
    // Lines of old Macintoshes end with a carriage return alone.
    for at in 0..bytes.len() {
        if bytes[at] == b'\r' && bytes.get(at + 1) != Some(&b'\n') {
            bytes[at] = b'\n';
        }
    }
    String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        let byte = error.as_bytes()[at];
        let line = error.as_bytes()[..at].iter().filter(|&&b| b == b'\n').count() + 1;
        Diagnostic::without_place(Code::NotText, format!("`{name}` is not UTF-8 text"))
            .note(format!("byte {at} (0x{byte:02x}, in line {line}) does not belong to any character"))
            .help("save the file as UTF-8")
    })
}

/// Parses a text. Mistakes go to `diagnostics`; items without mistakes are in the tree in any case.
pub fn parse(file: FileId, text: &str, diagnostics: &mut Diagnostics) -> ast::File {
    let tokens = tokens(text);
    let docs = item_docs(&tokens);
    let mut builder = Builder { file, base: 0, docs: &docs, mistakes: Vec::new() };
    let mut tree = ast::File { docs: file_docs(&tokens), ..ast::File::default() };
    let whole = if too_deep(&tokens).is_none() { Grammar::parse(Rule::file, text).ok() } else { None };
    match whole {
        Some(pairs) => {
            let items = pairs.flat_map(Pair::into_inner).filter(|p| p.as_rule() == Rule::item);
            tree.items = items.map(|p| builder.item(p)).collect();
        }
        None => {
            if let Some(message) = foreign(file, text) {
                builder.mistakes.push(message);
            } else if let Some((mistakes, opened)) = recover::opened(file, text, &tokens) {
                mistakes.into_iter().for_each(|mistake| diagnostics.push(mistake));
                return parse(file, &opened, diagnostics);
            } else {
                recover(text, &tokens, &mut builder, &mut tree);
            }
        }
    }
    builder.mistakes.into_iter().for_each(|m| diagnostics.push(m));
    tree
}

/// A text with blanks in the place of what cannot be parsed, as long as before, so that the rest keeps its places. `None` if all of it can be.
pub fn mended(text: &str) -> Option<String> {
    let tokens = tokens(text);
    let sound = too_deep(&tokens).is_none() && Grammar::parse(Rule::file, text).is_ok();
    if sound {
        return None;
    }
    match recover::opened(FileId(0), text, &tokens) {
        Some((_, opened)) => mended(&opened).or(Some(opened)),
        None => recover::mended(text, &tokens),
    }
}

/// The first token that nests deeper than the grammar, which recurses, may follow.
///
/// Conditionals count until a token that no conditional contains at its own level of brackets.
pub fn too_deep<'t>(tokens: &[Token<'t>]) -> Option<Token<'t>> {
    let mut open_brackets = Vec::new();
    let mut conditionals = 0;
    for token in tokens {
        match (token.kind, token.text) {
            (TokenKind::Symbol, "(" | "[" | "{") => open_brackets.push(std::mem::take(&mut conditionals)),
            (TokenKind::Symbol, ")" | "]" | "}") => conditionals = open_brackets.pop().unwrap_or(0),
            (TokenKind::Symbol, "," | ";" | "=" | ":") => conditionals = 0,
            (TokenKind::Word, "if") => conditionals += 1,
            _ => continue,
        }
        if open_brackets.len() + open_brackets.iter().sum::<usize>() + conditionals > MAX_DEPTH {
            return Some(*token);
        }
    }
    None
}

fn doc_line<'t>(token: &Token<'t>, marker: &str) -> Option<&'t str> {
    let text = token.text.strip_prefix(marker).filter(|_| token.kind == TokenKind::Comment)?;
    Some(text.strip_prefix(' ').unwrap_or(text).trim_end())
}

/// The `//!` lines before the first item.
fn file_docs(tokens: &[Token<'_>]) -> Vec<String> {
    let head = tokens.iter().take_while(|t| t.kind == TokenKind::Comment);
    head.filter_map(|t| doc_line(t, "//!")).map(str::to_owned).collect()
}

/// The `///` lines by the start of the token that they stand before. Behind other tokens of a line they are mere
/// comments, and so are rulers of four slashes and more.
fn item_docs(tokens: &[Token<'_>]) -> HashMap<usize, Vec<String>> {
    let mut docs = HashMap::new();
    let mut pending = Vec::new();
    for token in tokens {
        if token.kind != TokenKind::Comment {
            if !pending.is_empty() {
                docs.insert(token.start, std::mem::take(&mut pending));
            }
        } else if let Some(line) =
            doc_line(token, "///").filter(|_| token.first_on_line && !token.text.starts_with("////"))
        {
            pending.push(line.to_owned());
        }
    }
    docs
}
