//! Text to tree and back.
//!
//! In comes the text of a `.neuro` file; out go its [`ast::File`], or the same text laid out canonically.
//! Never true here: a name is resolved, a unit is known to exist, or two mistakes are reported where one was made.

mod around;
pub mod ast;
mod build;
mod complain;
mod foreign;
mod format;
mod grammar;
mod parse;
mod recover;
mod words;

pub use around::{Around, Open, around};
pub use complain::form;
pub use format::format;
pub use grammar::{Token, TokenKind, is_reserved, tokens};
pub use parse::{mended, parse, read_text};
pub use recover::Block;
#[cfg(test)]
mod tests;
