//! The parser that pest generates from `grammar/neuro.pest`, and the tokens of any text.
//!
//! In comes text; out go pest's pairs, or tokens.
//! Never true here: a token is missing; every character that is not white space belongs to one.

// pest's derive makes an undocumented enum of the rules.
#![allow(missing_docs)]

use pest::Parser;

#[derive(pest_derive::Parser)]
#[grammar = "../grammar/neuro.pest"]
pub struct Grammar;

/// What kind of token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TokenKind {
    /// `// ...`, `/* ... */`
    Comment,
    /// `"..."`
    String,
    /// `0.5`
    Number,
    /// A name or keyword.
    Word,
    /// Anything else.
    Symbol,
}

/// A token of a text, whether or not the text makes sense.
#[derive(Debug, Clone, Copy)]
pub struct Token<'t> {
    /// What kind.
    pub kind: TokenKind,
    /// Its spelling.
    pub text: &'t str,
    /// Its first byte.
    pub start: usize,
    /// Is it the first on its line?
    pub first_on_line: bool,
}

impl Token<'_> {
    /// One past its last byte.
    pub fn end(&self) -> usize {
        self.start + self.text.len()
    }
}

/// Is a word one that the language reserves, so that nothing can be called so?
pub fn is_reserved(word: &str) -> bool {
    Grammar::parse(Rule::name, word).is_err()
}

/// All the tokens of any text, scanned by hand: the grammar is for texts that make sense, and far slower.
pub fn tokens(text: &str) -> Vec<Token<'_>> {
    let mut list = Vec::new();
    let mut first_on_line = true;
    let mut start = 0;
    while let Some(first) = text[start..].chars().next() {
        if matches!(first, ' ' | '\t' | '\r' | '\n' | '\u{FEFF}') {
            first_on_line |= first == '\n';
            start += first.len_utf8();
            continue;
        }
        let (kind, length) = token(&text[start..], first);
        let end = start + length;
        list.push(Token { kind, text: &text[start..end], start, first_on_line });
        first_on_line = false;
        start = end;
    }
    list
}

/// Symbols of more than one character, longer ones first.
const SYMBOLS: [&str; 14] = ["<->", "/*", "==", "!=", "<=", ">=", "+=", "-=", ":=", "->", "**", "&&", "||", ".."];

/// The token that a text begins with, and its length in bytes.
fn token(rest: &str, first: char) -> (TokenKind, usize) {
    if rest.starts_with("//") {
        return (TokenKind::Comment, rest.find('\n').unwrap_or(rest.len()));
    }
    if let Some(inside) = rest.strip_prefix("/*").and_then(|inside| inside.find("*/")) {
        return (TokenKind::Comment, inside + 4);
    }
    // What does not end on its line is no string.
    if let Some(inside) = rest.strip_prefix('"')
        && let Some(end) = inside.find(['"', '\n']).filter(|&end| inside.as_bytes()[end] == b'"')
    {
        return (TokenKind::String, end + 2);
    }
    if first == '_' || first.is_alphabetic() {
        let other = |c: char| !(c == '_' || c.is_ascii_digit() || c.is_alphabetic());
        return (TokenKind::Word, rest.find(other).unwrap_or(rest.len()));
    }
    if let Some(length) = numeral(rest.as_bytes()) {
        return (TokenKind::Number, length);
    }
    let symbol = SYMBOLS.iter().find(|symbol| rest.starts_with(**symbol));
    (TokenKind::Symbol, symbol.map_or(first.len_utf8(), |symbol| symbol.len()))
}

/// The length of the number that a text begins with, as the grammar's `numeral` matches it.
fn numeral(text: &[u8]) -> Option<usize> {
    let digits = |from: usize| text[from.min(text.len())..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    let mut end = digits(0);
    if text.get(end) == Some(&b'.') && digits(end + 1) > 0 {
        end += 1 + digits(end + 1);
    }
    if end == 0 {
        return None;
    }
    if matches!(text.get(end), Some(b'e' | b'E')) {
        let sign = usize::from(matches!(text.get(end + 1), Some(b'+' | b'-')));
        match digits(end + 1 + sign) {
            0 => {}
            count => end += 1 + sign + count,
        }
    }
    Some(end)
}
