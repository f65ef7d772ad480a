//! What stands around a place of a text that is being written.
//!
//! In come a text, finished or not, and a byte; out go the blocks that are open there, and the tokens of the statement up to it.
//! Never true here: the text has to be sound.

use super::grammar::{Token, TokenKind, tokens};
use super::recover::{Block, code_of};

/// A block that is open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Open<'t> {
    /// Its kind; none for the braces of a path or a `use` line.
    pub block: Option<Block>,
    /// The word behind the one that it begins with, such as the name of a cell.
    pub name: &'t str,
    /// The place of its first word.
    pub start: usize,
}

/// What stands before a place.
#[derive(Debug, Clone)]
pub struct Around<'t> {
    /// The open blocks, from the outermost on.
    pub open: Vec<Open<'t>>,
    /// The tokens of the statement before the place, without the word that is being written there.
    pub statement: Vec<Token<'t>>,
    /// That word; empty if none is.
    pub word: &'t str,
    /// Is the place in a comment or in a string?
    pub inert: bool,
}

impl Around<'_> {
    /// The innermost block.
    pub fn block(&self) -> Block {
        self.open.iter().rev().find_map(|open| open.block).unwrap_or(Block::File)
    }
}

/// What stands around byte `at` of a text.
pub fn around(text: &str, at: usize) -> Around<'_> {
    let all = tokens(text);
    let inside = |t: &Token<'_>| t.start < at && (at < t.end() || at == t.end() && t.text.starts_with("//"));
    let endless = |t: &Token<'_>| t.kind == TokenKind::Symbol && t.text == "/*" && t.end() <= at;
    let quote = |t: &Token<'_>| t.text == "\"" && t.end() <= at && !text[t.end()..at].contains('\n');
    let covered = |t: &Token<'_>| matches!(t.kind, TokenKind::Comment | TokenKind::String) && inside(t);
    let inert = all.iter().any(|t| covered(t) || endless(t) || quote(t));
    let here = all.iter().find(|t| t.kind == TokenKind::Word && t.start < at && at <= t.end());
    let word = here.map_or("", |t| &text[t.start..at]);
    let end = here.map_or(at, |t| t.start);
    let before: Vec<Token<'_>> = all.iter().take_while(|t| t.end() <= end).copied().collect();
    let code = code_of(text, &before);
    let mut open: Vec<Open<'_>> = Vec::new();
    for (index, token) in code.iter().enumerate().filter(|(_, t)| t.kind == TokenKind::Symbol) {
        match token.text {
            "{" => {
                let head = &code[statement_start(&code, index)..index];
                let outer = open.iter().rev().find_map(|open| open.block).unwrap_or(Block::File);
                let word = |at: usize| head.get(at).map_or("", |t| t.text);
                // The braces of a path stand behind a dot.
                let path = head.last().is_some_and(|t| t.text == ".");
                let block = if path { None } else { outer.opened_by(word(0)) };
                open.push(Open { block, name: word(1), start: head.first().map_or(token.start, |t| t.start) });
            }
            "}" => {
                open.pop();
            }
            _ => {}
        }
    }
    let statement = code[statement_start(&code, code.len())..].to_vec();
    // What stands on a line of its own behind a complete statement begins another.
    let line_between = statement.last().is_some_and(|last| text[last.end()..end].contains('\n'));
    let fresh = line_between && statement.last().is_some_and(completes);
    Around { open, statement: if fresh { Vec::new() } else { statement }, word, inert }
}

/// Could a statement end with a token?
fn completes(token: &Token<'_>) -> bool {
    match token.kind {
        TokenKind::Word | TokenKind::Number | TokenKind::String | TokenKind::Comment => true,
        TokenKind::Symbol => matches!(token.text, ")" | "]" | "}" | "'"),
    }
}

/// Where the statement begins that ends before the token `end`.
fn statement_start(code: &[Token<'_>], end: usize) -> usize {
    let (mut start, mut braces) = (end, 0usize);
    while start > 0 {
        let before = &code[start - 1];
        match (before.kind, before.text) {
            // The braces of a path belong to the statement, those of a block end another.
            (TokenKind::Symbol, "}") if code.get(start).is_some_and(|t| t.text == "." || t.text == "->") => braces += 1,
            (TokenKind::Symbol, "{") if braces > 0 => braces -= 1,
            (TokenKind::Symbol, "{" | "}" | ";") => break,
            _ => {}
        }
        let new_line = code.get(start).is_some_and(|t| t.first_on_line);
        if new_line && braces == 0 && completes(before) && start < end {
            break;
        }
        start -= 1;
    }
    start
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at_bar(text: &str) -> (String, usize) {
        let at = text.find('|').unwrap();
        (text.replace('|', ""), at)
    }

    #[test]
    fn blocks_are_known_while_they_are_written() {
        let (text, at) = at_bar("cell C {\n  compartment soma {\n    cm = 1 uF/cm2\n    ins|\n");
        let found = around(&text, at);
        assert_eq!(found.block(), Block::Compartment);
        assert_eq!(found.open[0].name, "C");
        assert_eq!((found.word, found.statement.len()), ("ins", 0));
    }

    #[test]
    fn a_statement_goes_on_behind_an_operator() {
        let (text, at) = at_bar("channel X {\n  let a = 1 +\n    b * |\n}");
        let words: Vec<&str> = around(&text, at).statement.iter().map(|t| t.text).collect();
        assert_eq!(words, ["let", "a", "=", "1", "+", "b", "*"]);
    }

    #[test]
    fn comments_and_strings_are_inert() {
        for text in ["// a |b", "let x = file(\"a|b\")", "/* a | b", "x = \"a|"] {
            let (text, at) = at_bar(text);
            assert!(around(&text, at).inert, "{text}");
        }
        let (text, at) = at_bar("// a\n|");
        assert!(!around(&text, at).inert);
    }
}
