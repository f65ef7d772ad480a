//! The canonical layout of a text (`neuroc fmt`).
//!
//! In comes a text that parses; out goes the same sequence of tokens and comments with the user's line breaks, the
//! indentation that the brackets give, and canonical spaces.
//! Never true here: a token or a comment is added, dropped or moved to another line.

use super::grammar::{Grammar, Rule, TokenKind, tokens};
use super::parse::parse;
use crate::diag::Diagnostics;
use crate::source::FileId;
use pest::Parser;
use pest::iterators::Pair;
use std::collections::HashSet;

const INDENT: usize = 4;

/// The text in canonical layout, or `None` if it does not parse (which `diagnostics` then says).
pub fn format(file: FileId, text: &str, diagnostics: &mut Diagnostics) -> Option<String> {
    let mut found = Diagnostics::default();
    parse(file, text, &mut found);
    let broken = found.has_errors();
    found.sorted().into_iter().for_each(|d| diagnostics.push(d));
    if broken {
        return None;
    }
    let pairs = Grammar::parse(Rule::file, text).ok()?;
    let mut leaves = Leaves::default();
    pairs.for_each(|pair| leaves.collect(pair, Rule::file));
    for token in tokens(text).into_iter().filter(|t| t.kind == TokenKind::Comment) {
        let kind = if token.text.starts_with("//") { Kind::LineComment } else { Kind::BlockComment };
        leaves.list.push(Leaf { kind, start: token.start, text: token.text });
    }
    leaves.list.sort_by_key(|leaf| leaf.start);
    Some(Layout::default().print(text, &leaves))
}

/// What matters of a token for the spaces around it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// A name, a keyword, a number, a string, an operator.
    Word,
    /// A unit behind a number or a colon.
    Unit,
    /// `{` and `}` of a block.
    BlockOpen,
    BlockClose,
    /// Brackets that cling to what they contain.
    Open,
    Close,
    /// The bracket of a call or a selection, which also clings to the name before it.
    CallOpen,
    /// `,` `;` `:` `'`
    Stop,
    /// `.` and `..`
    Dot,
    /// The sign `-`.
    Sign,
    /// `^`
    Caret,
    LineComment,
    BlockComment,
}

struct Leaf<'t> {
    kind: Kind,
    start: usize,
    text: &'t str,
}

#[derive(Default)]
struct Leaves<'t> {
    list: Vec<Leaf<'t>>,
    /// Where items and members begin.
    statements: HashSet<usize>,
}

impl<'t> Leaves<'t> {
    fn collect(&mut self, pair: Pair<'t, Rule>, parent: Rule) {
        let rule = pair.as_rule();
        let (start, text) = (pair.as_span().start(), pair.as_str());
        if begins_statement(rule) {
            self.statements.insert(start);
        }
        let mut inner = pair.into_inner().peekable();
        let is_unit = matches!(rule, Rule::unit | Rule::unit_after | Rule::unit_after_slash);
        if !is_unit && inner.peek().is_some() {
            return inner.for_each(|pair| self.collect(pair, rule));
        }
        let in_group = matches!(parent, Rule::group | Rule::use_names);
        let kind = match rule {
            // The ends of a file, and lists without elements.
            _ if text.is_empty() => return,
            _ if is_unit => Kind::Unit,
            Rule::open if in_group => Kind::Open,
            Rule::close if in_group => Kind::Close,
            Rule::open => Kind::BlockOpen,
            Rule::close => Kind::BlockClose,
            Rule::lparen if matches!(parent, Rule::parenthesized | Rule::reaction | Rule::point) => Kind::Open,
            Rule::lbracket if parent == Rule::swept_list => Kind::Open,
            Rule::lparen | Rule::lbracket => Kind::CallOpen,
            Rule::rparen | Rule::rbracket => Kind::Close,
            Rule::comma | Rule::semi | Rule::colon | Rule::prime => Kind::Stop,
            Rule::dots if parent == Rule::swept_range => Kind::Word,
            Rule::dot | Rule::dots => Kind::Dot,
            Rule::neg => Kind::Sign,
            Rule::caret => Kind::Caret,
            _ => Kind::Word,
        };
        self.list.push(Leaf { kind, start, text });
    }
}

fn begins_statement(rule: Rule) -> bool {
    matches!(
        rule,
        Rule::item
            | Rule::channel_member
            | Rule::gate_member
            | Rule::kinetics_member
            | Rule::cell_member
            | Rule::compartment_member
            | Rule::section_member
            | Rule::compartments_member
            | Rule::region_member
            | Rule::pool_member
            | Rule::spike_action
            | Rule::junction_member
            | Rule::synapse_member
            | Rule::event_action
            | Rule::network_member
            | Rule::connect_key
            | Rule::probe_member
            | Rule::run_member
            | Rule::train_member
            | Rule::fit_member
    )
}

/// The number of spaces between two leaves on one line.
fn spaces(before: Option<&Leaf<'_>>, left: &Leaf<'_>, right: &Leaf<'_>, gap: &str) -> usize {
    use Kind::*;
    match (left.kind, right.kind) {
        // Columns of trailing comments stay as the user aligned them.
        (_, LineComment) => gap.chars().count().max(1),
        (LineComment | BlockComment, _) | (_, BlockComment) => 1,
        (BlockOpen, BlockClose) => 0,
        (Open | CallOpen | Dot | Sign, _) | (_, Close | CallOpen | Stop | Dot) => 0,
        // `2 mV^2` is a unit, `2 mV ^ 2` a power of a quantity.
        (Unit, Caret) => 1,
        (_, Caret) => 0,
        (Caret, _) => usize::from(before.is_none_or(|b| matches!(b.kind, Unit | LineComment | BlockComment))),
        (Word | Unit | BlockOpen | BlockClose | Close | Stop, _) => 1,
    }
}

/// The state of the printer.
#[derive(Default)]
struct Layout {
    out: String,
    /// For each open bracket, the indentation of what it closes with.
    brackets: Vec<(Kind, usize)>,
    /// The indentation of this line, and of the one where the innermost statement began.
    line: usize,
    statement: usize,
}

impl Layout {
    fn print(mut self, text: &str, leaves: &Leaves<'_>) -> String {
        let list = &leaves.list;
        for (i, leaf) in list.iter().enumerate() {
            let begins_statement = leaves.statements.contains(&leaf.start);
            match i.checked_sub(1).map(|i| &list[i]) {
                None => self.break_line(text, &list[i..], 0, begins_statement),
                Some(left) => {
                    let gap = &text[left.start + left.text.len()..leaf.start];
                    match gap.matches('\n').count() {
                        0 => {
                            let before = i.checked_sub(2).map(|i| &list[i]);
                            self.out.extend(std::iter::repeat_n(' ', spaces(before, left, leaf, gap)));
                        }
                        breaks => {
                            let apart = breaks > 1 && left.kind != Kind::BlockOpen && leaf.kind != Kind::BlockClose;
                            self.break_line(text, &list[i..], 1 + usize::from(apart), begins_statement);
                        }
                    }
                }
            }
            if begins_statement {
                self.statement = self.line;
            }
            match leaf.kind {
                Kind::BlockOpen => self.brackets.push((leaf.kind, self.statement)),
                Kind::Open | Kind::CallOpen => self.brackets.push((leaf.kind, self.line)),
                Kind::BlockClose | Kind::Close => {
                    self.brackets.pop();
                }
                _ => {}
            }
            match leaf.kind {
                Kind::LineComment => self.out.push_str(leaf.text.trim_end()),
                Kind::BlockComment => self.out.push_str(&leaf.text.replace("\r\n", "\n")),
                _ => self.out.push_str(leaf.text),
            }
        }
        if !self.out.is_empty() {
            self.out.push('\n');
        }
        self.out
    }

    /// Begins a line with the first of `leaves`.
    fn break_line(&mut self, text: &str, leaves: &[Leaf<'_>], breaks: usize, begins_statement: bool) {
        let closers = leaves.iter().enumerate().take_while(|(i, leaf)| {
            let same_line = *i == 0 || !text[leaves[0].start..leaf.start].contains('\n');
            same_line && matches!(leaf.kind, Kind::BlockClose | Kind::Close)
        });
        let closers = closers.count();
        self.line = if closers > 0 {
            self.brackets[self.brackets.len() - closers].1
        } else {
            let in_block = self.brackets.last().is_none_or(|&(kind, _)| kind == Kind::BlockOpen);
            let is_own = begins_statement
                || matches!(leaves[0].kind, Kind::LineComment | Kind::BlockComment | Kind::BlockOpen | Kind::Stop);
            let base = self.brackets.last().map_or(0, |&(_, indentation)| indentation + INDENT);
            if in_block && !is_own { base + INDENT } else { base }
        };
        self.out.extend(std::iter::repeat_n('\n', breaks));
        self.out.extend(std::iter::repeat_n(' ', self.line));
    }
}
