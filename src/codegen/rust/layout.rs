//! Lines of Rust, broken as `rustfmt` breaks them.
//!
//! In come statements; out go lines with indentation, vertical where they would be too wide.
//! Never true here: a line depends on anything but the statement and its depth.

use std::borrow::Cow;

/// The width of a line; `rustfmt.toml` of a generated crate says the same.
pub const WIDTH: usize = 120;

/// Text of a model or a path as a part of one line of generated text: what ends a line, or what reads otherwise than it is written
/// (control characters, marks of direction), is spelt out.
pub fn plain(text: &str) -> Cow<'_, str> {
    let unsafe_here = |c: char| {
        let marks = ['\u{61c}', '\u{200e}', '\u{200f}', '\u{2028}', '\u{2029}', '\u{feff}'];
        c.is_control() || marks.contains(&c) || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    if !text.contains(unsafe_here) {
        return Cow::Borrowed(text);
    }
    let spelt = |c: char| if unsafe_here(c) { c.escape_unicode().to_string() } else { c.to_string() };
    Cow::Owned(text.chars().map(spelt).collect())
}

/// A template with all of its words replaced at once: what stands for one is not looked at again.
pub fn filled(template: &str, words: &[(&str, &str)]) -> String {
    let mut out = String::new();
    let mut rest = template;
    while let Some(c) = rest.chars().next() {
        match words.iter().find(|(word, _)| rest.starts_with(word)) {
            Some((word, value)) => {
                out.push_str(value);
                rest = &rest[word.len()..];
            }
            None => {
                out.push(c);
                rest = &rest[c.len_utf8()..];
            }
        }
    }
    out
}

/// Source text under construction.
#[derive(Debug, Default)]
pub struct Text {
    out: String,
    depth: usize,
}

impl Text {
    /// Text that starts `depth` levels deep.
    pub fn at(depth: usize) -> Text {
        Text { out: String::new(), depth }
    }

    /// One line, or an empty one; whatever is in it, it stays one.
    pub fn line(&mut self, line: impl AsRef<str>) {
        let line = &plain(line.as_ref());
        if !line.is_empty() {
            for _ in 0..self.depth {
                self.out.push_str("    ");
            }
            self.out.push_str(line);
        }
        self.out.push('\n');
    }

    /// A line that opens a block.
    pub fn open(&mut self, line: impl AsRef<str>) {
        self.line(line);
        self.depth += 1;
    }

    /// The line that closes it.
    pub fn close(&mut self, line: impl AsRef<str>) {
        self.depth -= 1;
        self.line(line);
    }

    /// `head(a, b)tail` or `head{ a, b }tail`, one item per line if it is too wide.
    fn list(&mut self, head: &str, brackets: (&str, &str), items: &[String], tail: &str) {
        let pad = if brackets.0.ends_with('{') { " " } else { "" };
        let flat = format!("{head}{}{pad}{}{pad}{}{tail}", brackets.0, items.join(", "), brackets.1);
        if 4 * self.depth + flat.chars().count() <= WIDTH {
            self.line(flat);
            return;
        }
        // On a line of its own what is assigned may fit.
        if let Some((name, value)) = flat.split_once(" = ")
            && head.contains(" = ")
            && 4 * (self.depth + 1) + value.chars().count() <= WIDTH
        {
            self.open(format!("{name} ="));
            self.line(value);
            self.depth -= 1;
            return;
        }
        self.open(format!("{head}{}", brackets.0));
        for item in items {
            self.line(format!("{item},"));
        }
        self.close(format!("{}{tail}", brackets.1));
    }

    /// A line that imports those names of a module of the runtime that are needed, if any is; they come in order.
    pub fn import(&mut self, module: &str, names: &[(&str, bool)]) {
        let needed: Vec<&str> = names.iter().filter(|(_, needed)| *needed).map(|(name, _)| *name).collect();
        match needed[..] {
            [] => {}
            [name] => self.line(format!("use crate::runtime::{module}::{name};")),
            _ => {
                let line = format!("use crate::runtime::{module}::{{{}}};", needed.join(", "));
                // As rustfmt has it: two characters fewer than elsewhere, and of a list one, but behind its last name.
                if line.len() <= WIDTH - 2 {
                    self.line(line);
                    return;
                }
                self.open(format!("use crate::runtime::{module}::{{"));
                let mut line = String::new();
                for (at, name) in needed.iter().enumerate() {
                    let room = if at + 1 == needed.len() { WIDTH } else { WIDTH - 1 };
                    if 4 * self.depth + line.len() + name.len() + ",".len() > room {
                        self.line(line.trim_end());
                        line.clear();
                    }
                    line += &format!("{name}, ");
                }
                self.line(line.trim_end());
                self.close("};");
            }
        }
    }

    /// A statement that ends in a call.
    pub fn call(&mut self, head: &str, arguments: &[String], tail: &str) {
        self.list(head, ("(", ")"), arguments, tail);
    }

    /// A statement that ends in a call with one list.
    pub fn call_with_list(&mut self, head: &str, items: &[String], tail: &str) {
        self.list(head, ("([", "])"), items, tail);
    }

    /// A statement that ends in a struct.
    pub fn record(&mut self, head: &str, fields: &[String], tail: &str) {
        self.list(head, ("{", "}"), fields, tail);
    }

    /// Text made at the right depth already.
    pub fn append(&mut self, text: &Text) {
        self.out.push_str(&text.out);
    }

    /// Text that is there already, as it stands.
    pub fn append_text(&mut self, text: &str) {
        self.out.push_str(text);
    }

    /// Does a word occur as a whole?
    pub fn mentions(&self, word: &str) -> bool {
        let part_of_word = |c: char| c.is_alphanumeric() || c == '_';
        self.out.match_indices(word).any(|(at, _)| {
            let (before, after) = (&self.out[..at], self.out[at + word.len()..].chars().next());
            // A field of a struct is another word; the end of a range is this one.
            let of_struct = before.ends_with('.') && !before.ends_with("..");
            !of_struct && !before.ends_with(part_of_word) && !after.is_some_and(part_of_word)
        })
    }

    /// Does one of these pieces occur?
    pub fn out_has(&self, pieces: &[&str]) -> bool {
        pieces.iter().any(|piece| self.out.contains(piece))
    }

    /// The text.
    pub fn finish(self) -> String {
        self.out
    }
}
