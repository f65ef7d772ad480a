//! Habits of other languages, and near misses of the words of this one: each with what is written here instead.
//!
//! In come a complaint and where the grammar stopped in it; out goes a message with the edit, if what stands there is such a habit.
//! Never true here: a text that the grammar takes is complained about.

use super::{Block, Complaint, Expected, is_definition};
use crate::diag::{Diagnostic, nearest};
use crate::syntax::grammar::{Rule, TokenKind};
use crate::units::Unit;

/// What a spike does where it arrives, as it is written.
const EVENT: &str = "what a spike does where it arrives is written `on event(weight: nS) { g += weight }`";

impl Complaint<'_, '_> {
    /// What is said of a habit of another language.
    pub(super) fn habit(&self, index: usize, expected: &Expected) -> Option<Diagnostic> {
        if index < self.pieces.start {
            return None;
        }
        match self.text(self.pieces.start) {
            _ if self.block == Block::Kinetics => self.of_a_reaction(index, expected),
            "on" if self.block == Block::Synapse => self.of_an_event(index, expected),
            _ if self.block == Block::Synapse && self.is_event_in_one_word() => {
                let first = self.text(self.pieces.start);
                let message = format!("`{first}` does not begin a member of a synapse");
                let help = match first {
                    "on_post" | "post" => "what a spike of the target does is written `on post(weight: nS) { ... }`",
                    _ => EVENT,
                };
                Some(self.at(self.pieces.start, message, "").help(help))
            }
            "connect" => self.of_a_connection(index, expected),
            "couple" => self.both_ways(),
            // Not a key without its `=`.
            "plot" | "print" | "monitor" | "watch"
                if self.block == Block::Run && self.text(self.pieces.start + 1) != "=" =>
            {
                Some(self.no_member(self.pieces.start))
            }
            "param" | "population" | "insert" | "use" | "let" | "record" => self.of_a_line(index, expected),
            _ => None,
        }
        .or_else(|| self.anywhere(index, expected))
    }

    /// `~ C <-> O (a, b)`, `C + Ca <-> CaC (a, b)`, `2 C <-> D (a, b)`, `C <-> O`.
    fn of_a_reaction(&self, index: usize, expected: &Expected) -> Option<Diagnostic> {
        let (text, start) = (self.text(index), self.pieces.start);
        let counted = index == start && self.token(index).is_some_and(|t| t.kind == TokenKind::Number);
        if text == "~" && index == start {
            let message = "a reaction begins with the name of a state";
            return Some(self.at(index, message, "").help("leave out the `~`"));
        }
        if counted || text == "+" && (expected.has(Rule::both_arrow) || expected.has(Rule::lparen)) {
            let message = "a reaction leads from one state to one other";
            let help = "a concentration that it needs is a factor of its rate: `C <-> O (k_on * Ca, k_off)`";
            return Some(self.at(index, message, "").help(help));
        }
        if text == "<" && self.text(index + 1) == "-" && expected.has(Rule::both_arrow) {
            let help = format!("write `{} -> {} (rate)`", self.text(index + 2), self.text(start));
            return Some(self.at(index, "a reaction is written in the direction that it goes", "").help(help));
        }
        (expected.has(Rule::lparen) && self.text(start + 1).ends_with("->")).then(|| {
            let help = "write `C <-> O (forward, backward)` or `O -> I (rate)`";
            self.at(index.saturating_sub(1), "the rates of a reaction stand behind it, in brackets", "").help(help)
        })
    }

    fn is_event_in_one_word(&self) -> bool {
        let begun = ["(", "{"].contains(&self.text(self.pieces.start + 1));
        begun
            && matches!(
                self.text(self.pieces.start),
                "on_event" | "on_pre" | "on_post" | "on_spike" | "event" | "pre" | "post" | "spike" | "receive"
            )
    }

    /// `on events(...)`, `on event(weight: nS, delay: ms)`.
    fn of_an_event(&self, index: usize, expected: &Expected) -> Option<Diagnostic> {
        let text = self.text(index);
        if index == self.pieces.start + 1 && self.token(index).is_some_and(|t| t.kind == TokenKind::Word) {
            let message = format!("expected `event`, `pre` or `post` behind `on`, found `{text}`");
            let help = match nearest(text, ["event", "pre", "post"]) {
                Some(word) => format!("did you mean `on {word}`?"),
                None => EVENT.to_owned(),
            };
            return Some(self.at(index, message, "").help(help));
        }
        (text == "," && expected.has(Rule::rparen) && !expected.has(Rule::comma)).then(|| {
            self.at(index, "an event carries one number, its weight", "")
                .help("what else the synapse needs is a `param` of it")
        })
    }

    /// `connect a to b with S`, `connect a -> b { ... }`.
    fn of_a_connection(&self, index: usize, expected: &Expected) -> Option<Diagnostic> {
        let text = self.text(index);
        if expected.has(Rule::to_arrow) && expected.has(Rule::dashes) && index < self.pieces.end {
            let message = format!("expected `->` or `--`, found `{text}`");
            let help = "write `connect a -> b via Synapse { ... }` for spikes, `connect a -- b via Junction { ... }` for gap junctions";
            return Some(self.at(index, message, "").help(help));
        }
        if index >= self.pieces.start + 2 && self.text(index - 2) == "modulating" && matches!(text, "(" | "as") {
            let message = "`modulating` names synapses that are there";
            let help = "their arguments and their name stand in the line that connects them: `connect a -> b via Synapse as name(...) { ... }`";
            return Some(self.at(index, message, "").help(help));
        }
        if text == "as" && index > self.pieces.start && self.text(index - 1) == ")" {
            let message = "the name of a synapse stands before its arguments";
            let help = "write `via Synapse as name(...)`";
            return Some(self.at(index, message, "").help(help));
        }
        if !expected.has(Rule::kw_via) || index >= self.pieces.end {
            return None;
        }
        let (message, help) = match text {
            "{" => ("what connects the cells is missing".to_owned(), "name the synapse: `via Synapse { ... }`"),
            _ => (format!("expected `via`, found `{text}`"), "the synapse stands behind `via`: `via Synapse { ... }`"),
        };
        Some(self.at(index, message, "").help(help))
    }

    /// `couple a <-> b: g`.
    fn both_ways(&self) -> Option<Diagnostic> {
        let at = self.pieces.start + 2;
        let arrow = [self.text(at), self.text(at + 1)].concat();
        arrow.starts_with("<->").then(|| {
            self.at(at, "a coupling leads one way", "").help(
                "write a line for each: `couple a <- b: g` and `couple b <- a: g`, each `g` per area of its own side",
            )
        })
    }

    /// Lines that are written in another way elsewhere.
    fn of_a_line(&self, index: usize, expected: &Expected) -> Option<Diagnostic> {
        let (first, text, next) = (self.text(self.pieces.start), self.text(index), self.text(index + 1));
        let closed = self.open_bracket(index).is_none();
        let (message, help) = match (first, text) {
            ("param", "..") => (
                "a parameter is one number, not a range".to_owned(),
                "it is drawn for each cell in the network: `param cells.name ~ uniform(low, high)`".to_owned(),
            ),
            ("param", "*" | "/") if next == "=" => self.changed(&format!("{text}=")),
            ("param", "+=" | "-=") => self.changed(text),
            ("population", "(") if self.text(index.saturating_sub(1)) == "]" => {
                let population = self.text(self.pieces.start + 1);
                let message = "parameters of a population have lines of their own";
                (message.to_owned(), format!("write `param {population}.{next} = ...` behind it"))
            }
            ("population", "(") => {
                let (cell, size) = (self.text(index.saturating_sub(1)), next);
                ("the size of a population stands in square brackets".to_owned(), format!("write `{cell}[{size}]`"))
            }
            ("insert", "{") => (
                "the parameters of a channel stand in round brackets".to_owned(),
                format!("write `insert {}(gbar = ...)`", self.text(index.saturating_sub(1))),
            ),
            ("use", _) if self.token(index).is_some_and(|t| t.kind == TokenKind::String) => {
                let stem = text.trim_matches('"').trim_end_matches(".neuro").replace('/', ".");
                (
                    "a module has no quotes".to_owned(),
                    format!("write `use {stem}.{{Name}}`, with the names that it brings"),
                )
            }
            ("use", "*") => {
                ("every item is brought in by its name".to_owned(), "write `use a.b.{Name, Other}`".to_owned())
            }
            ("let", ":") => {
                ("a `let` has no unit of its own".to_owned(), "leave it out: the unit is that of the value".to_owned())
            }
            ("record", ",") if closed && expected.end() => {
                let braces = match self.text(self.pieces.start + 1) {
                    "spikes" => "record spikes of {a, b}",
                    _ => "record {a.v, b.v}",
                };
                (
                    "one `record` has one path".to_owned(),
                    format!("write a line for each, or put the paths into braces: `{braces}`"),
                )
            }
            ("population" | "param", ",") if closed && expected.end() => {
                ("unexpected `,`".to_owned(), format!("write a line for each, with its own `{first}`"))
            }
            _ => return None,
        };
        Some(self.at(index, message, "").help(help))
    }

    /// `param cells.tau *= 2`.
    fn changed(&self, sign: &str) -> (String, String) {
        (
            format!("a parameter is set, and not changed with `{sign}`"),
            "write what it is: `param cells.name = ...`; several of them follow a `param` of the network".to_owned(),
        )
    }

    /// What is written in another way in many places.
    fn anywhere(&self, index: usize, expected: &Expected) -> Option<Diagnostic> {
        let text = self.text(index);
        let found = |message: String, help: String| Some(self.at(index, message, "").help(help));
        if text == "?" {
            return found("there is no `?`".into(), "write `if condition then a else b`".into());
        }
        if text == "{" && expected.has(Rule::kw_then) {
            return found(
                "expected `then`, found `{`".into(),
                "write `if condition then a else b`, without braces".into(),
            );
        }
        let next = self.token(index + 1).filter(|t| index + 1 < self.pieces.end && !t.first_on_line);
        let operand = |kind: TokenKind| matches!(kind, TokenKind::Number | TokenKind::Word);
        if text == "%" && next.is_some_and(|t| operand(t.kind) || t.text == "(") {
            let help = "what is left of a division by `b` is `a - b * floor(a / b)`";
            return found("there is no operator `%`".into(), help.into());
        }
        if text == "%"
            && let Some(Ok(percent)) = self.before(index).map(|t| t.text.parse::<f64>())
        {
            return found("there is no operator `%`".into(), format!("write `{}`", percent / 100.0));
        }
        if let Some(at) = self.unit_behind_a_bracket(index) {
            let unit = self.text(at);
            let message = format!("a unit stands behind a number, not behind a `)`: `{unit}`");
            let help = format!("put it to the numbers in the brackets, or write `* 1 {unit}`");
            return Some(self.at(at, message, "").help(help));
        }
        if text == "," && expected.has(Rule::rbracket) && expected.has(Rule::dots) {
            return found(
                "cells are counted with one number, in a grid too".into(),
                "of a grid of n cells in a row, the one in column i and row j is `[i + n * j]`".into(),
            );
        }
        let state = text == "=" && index == self.pieces.start + 3 && self.text(self.pieces.start) == "state";
        if state && Unit::parse(self.text(index - 1)).is_some() {
            let (name, unit) = (self.text(index - 2), self.text(index - 1));
            let said = self.at(index - 1, format!("expected a `:`, found `{unit}`"), "");
            return Some(said.help(format!("a unit stands behind a colon: `{name}: {unit}`")));
        }
        let is_unit = || Unit::parse(text).is_some() && self.before(index).is_some_and(|t| t.kind == TokenKind::Word);
        if expected.has(Rule::colon) && index < self.pieces.end && is_unit() {
            let before = self.text(index - 1);
            let message = format!("expected a `:`, found `{text}`");
            return found(message, format!("a unit stands behind a colon: `{before}: {text}`"));
        }
        None
    }

    /// The unit of `normal(6, 1) nS`.
    fn unit_behind_a_bracket(&self, index: usize) -> Option<usize> {
        let is = |at: usize| {
            let unit = self.token(at)?;
            let here = at > self.pieces.start && at < self.pieces.end && self.text(at - 1) == ")";
            let word = unit.kind == TokenKind::Word && !unit.first_on_line && !is_definition(self.text(at + 1));
            (here && word && Unit::parse(unit.text).is_some()).then_some(at)
        };
        is(index).or_else(|| is(index.checked_sub(1)?))
    }
}
