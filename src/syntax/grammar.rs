//! The parser that pest generates from `grammar/neuro.pest`, and the tokens of a text.
//!
//! In comes text; out go pest's pairs, or tokens.
//! Never true here: a token is missing; every character that is not white space belongs to one.

// pest's derive makes an undocumented enum of the rules.
#![allow(missing_docs)]

use pest::Parser;
use pest::iterators::Pair;

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

/// All the tokens of any text.
pub fn tokens(text: &str) -> Vec<Token<'_>> {
    // The rule ends with ANY, so it matches every text.
    let pairs = Grammar::parse(Rule::tokens, text).expect("`tokens` matches any text");
    let mut list = Vec::new();
    let mut last_end = 0;
    for pair in pairs.flat_map(Pair::into_inner) {
        let kind = match pair.as_rule() {
            Rule::token_comment => TokenKind::Comment,
            Rule::token_string => TokenKind::String,
            Rule::token_number => TokenKind::Number,
            Rule::token_word => TokenKind::Word,
            Rule::token_symbol => TokenKind::Symbol,
            _ => continue,
        };
        let start = pair.as_span().start();
        let first_on_line = last_end == 0 || text[last_end..start].contains('\n');
        let token = Token { kind, text: pair.as_str(), start, first_on_line };
        last_end = token.end();
        list.push(token);
    }
    list
}
