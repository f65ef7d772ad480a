//! Texts of models as markup.
//!
//! In comes the text of a file; out goes HTML, a `span` for each line, with comments, words of the language, numbers and strings marked.
//! Never true here: a character of the text is left out, or is markup.

use super::html::escaped;
use crate::syntax::{Token, TokenKind, is_reserved, tokens};

/// The lines of a text, within `pre`.
pub fn lines(text: &str) -> String {
    let mut out = String::with_capacity(2 * text.len());
    let mut at = 0;
    let all = tokens(text);
    out += "<span class=\"l\">";
    for (k, token) in all.iter().enumerate() {
        put(&mut out, &text[at..token.start], None);
        put(&mut out, token.text, class(token, all.get(k + 1)));
        at = token.end();
    }
    put(&mut out, text[at..].trim_end(), None);
    out + "</span>"
}

/// A piece of the text; a line that ends within it closes its marks.
fn put(out: &mut String, text: &str, class: Option<&str>) {
    for (k, line) in text.split('\n').enumerate() {
        if k > 0 {
            *out += "</span><span class=\"l\">";
        }
        let line = escaped(line.trim_end_matches('\r'));
        match class {
            Some(class) if !line.is_empty() => *out += &format!("<span class=\"{class}\">{line}</span>"),
            Some(_) | None => *out += &line,
        }
    }
}

fn class(token: &Token<'_>, next: Option<&Token<'_>>) -> Option<&'static str> {
    match token.kind {
        TokenKind::Comment => Some("c"),
        TokenKind::String => Some("s"),
        TokenKind::Number => Some("d"),
        TokenKind::Word if is_reserved(token.text) || begins_a_block(token, next) => Some("k"),
        TokenKind::Word | TokenKind::Symbol => None,
    }
}

/// Words that mean something in one kind of block only stand before a name or a brace: `section dend {`, `kinetics {`.
fn begins_a_block(token: &Token<'_>, next: Option<&Token<'_>>) -> bool {
    token.first_on_line
        && next.is_some_and(|next| !next.first_on_line && (next.kind == TokenKind::Word || next.text == "{"))
}
