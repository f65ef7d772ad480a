//! The grammar's objection to a piece of text, in plain words.
//!
//! In come a piece of text and where the grammar stopped in it; out goes one diagnostic.
//! Never true here: a name of a rule appears in a message.

mod habits;

use super::grammar::{Grammar, Rule, Token, TokenKind};
use super::recover::{Block, Scene};
use super::words::{Words, of};
use crate::diag::{Code, Diagnostic, nearest};
use crate::source::Span;
use crate::units::Unit;
use pest::Parser;
use pest::error::{Error, ErrorVariant, InputLocation};
use std::ops::Range;

/// What is complained about: tokens that should be a member of a block.
pub struct Complaint<'s, 't> {
    pub scene: &'s Scene<'t>,
    pub block: Block,
    pub pieces: Range<usize>,
}

/// What the grammar would have taken.
struct Expected {
    rules: Vec<Rule>,
}

impl Expected {
    fn has(&self, rule: Rule) -> bool {
        self.rules.contains(&rule)
    }

    /// Could the member have ended?
    fn end(&self) -> bool {
        self.rules.iter().any(|&rule| ends_member(rule))
    }

    /// In words, without what could merely continue an expression.
    fn words(&self) -> Vec<String> {
        let mut list: Vec<String> = Vec::new();
        let mut add = |text: String| {
            if !list.contains(&text) {
                list.push(text);
            }
        };
        let signs = !self.has(Rule::expr) && !self.has(Rule::operand);
        let spoken = |rule: Rule| match rule {
            Rule::neg | Rule::kw_not => signs,
            _ => !continues(rule) && !ends_member(rule),
        };
        for &rule in self.rules.iter().filter(|&&rule| spoken(rule)) {
            match of(rule) {
                Words::Token(text) => add(format!("`{text}`")),
                Words::Form(text) => add(text.to_owned()),
                Words::Unmentioned => {}
            }
        }
        list
    }
}

/// Rules that may follow any complete expression, path or number.
fn continues(rule: Rule) -> bool {
    use Rule::*;
    matches!(
        rule,
        infix
            | dot
            | dots
            | caret
            | arguments
            | at_place
            | overrides
            | selection
            | section_index
            | sizes
            | semi
            | prime
            | unit_after
            | unit_after_slash
            | unit_first
            | unit_times
            | unit_per
            | unit_declared
            | known_unit
    )
}

/// Rules that begin the next member or end the block.
fn ends_member(rule: Rule) -> bool {
    use Rule::*;
    matches!(
        rule,
        EOI | close
            | item
            | channel_member
            | gate_member
            | kinetics_member
            | cell_member
            | compartment_member
            | pool_member
            | spike_action
            | junction_member
            | synapse_member
            | event_action
            | network_member
            | connect_key
            | run_member
            | lone_item
            | lone_channel
            | lone_gate
            | lone_kinetics
            | lone_cell
            | lone_compartment
            | lone_pool
            | lone_spike
            | lone_junction
            | lone_synapse
            | lone_event
            | lone_network
            | lone_connect
            | lone_run
    )
}

fn one_of(words: &[String]) -> String {
    match words {
        [] => "something else".to_owned(),
        [only] => only.clone(),
        [rest @ .., last] => format!("{} or {last}", rest.join(", ")),
    }
}

fn list_of(keywords: &[&str]) -> String {
    one_of(&keywords.iter().map(|k| format!("`{k}`")).collect::<Vec<_>>())
}

/// Does it follow a name in a definition, or in what was meant as one?
fn is_definition(symbol: &str) -> bool {
    matches!(symbol, "=" | ":=" | "==" | "'" | "+=" | "-=" | "(" | "[")
}

/// Is it a reserved word?
fn is_reserved(word: &str) -> bool {
    Grammar::parse(Rule::name, word).is_err()
}

/// What makes a cell spike, as it is written.
const SPIKE: &str = "what makes it spike is written `spike when v >= -50 mV { v = -65 mV; refractory 2 ms }`";

/// What follows a word that begins a member or an item and could be a name elsewhere.
pub fn form(keyword: &str) -> Option<&'static str> {
    Some(match keyword {
        "train" => "train { ... }",
        "fit" => "fit { ... }",
        "kinetics" => "kinetics { ... }",
        "conserve" => "conserve c + o = 1",
        "init" => "init path = value",
        "q10" => "q10 = 3 at 36 degC",
        "fraction" => "fraction 0.8 { ... }",
        "morphology" => "morphology = swc(\"file.swc\")",
        "section" => "section name { ... }",
        "compartments" => "compartments { ... }",
        "region" => "region section, section { ... }",
        "pool" => "pool name: unit { ... }",
        "refractory" => "refractory 2 ms",
        "toward" => "toward (0 um, 100 um, 0 um)",
        "on" => "on event(weight: unit) { ... }",
        "sum" => "sum name = ...",
        "clamp" => "clamp name: value -> path",
        "drive" => "drive path via synapse from source",
        "probe" => "probe name of population { ... }",
        "sweep" => "sweep path = 1 .. 2 nS in 3 steps",
        "learn" => "learn path",
        "keep" => "keep spike_count(path) = 1 .. 5 within 1",
        "free" => "free path = 1 .. 2 nS",
        "target" => "target rate(path) = 5 Hz",
        _ => return None,
    })
}

/// Words for the grammar's objection `error` to the text that begins at byte `base`.
pub fn complain(complaint: &Complaint<'_, '_>, error: &Error<Rule>, base: usize) -> Diagnostic {
    let scene = complaint.scene;
    let (InputLocation::Pos(at) | InputLocation::Span((at, _))) = error.location;
    let rules = match &error.variant {
        ErrorVariant::ParsingError { positives, .. } => positives.clone(),
        ErrorVariant::CustomError { .. } => Vec::new(),
    };
    let mut expected = Expected { rules };
    let mut index = scene.code.partition_point(|t| t.end() <= base + at);
    if complaint.is_stray_word(index, &expected) {
        index -= 1;
        expected.rules = vec![Rule::EOI];
    }
    let diagnostic = complaint.slip(index, &expected).unwrap_or_else(|| complaint.plain(index, &expected));
    match complaint.form_begun(index) {
        Some(form) if diagnostic.help.is_empty() => diagnostic.help(format!("it is written `{form}`")),
        _ => diagnostic,
    }
}

impl<'t> Complaint<'_, 't> {
    fn token(&self, index: usize) -> Option<&Token<'t>> {
        self.scene.code.get(index)
    }

    fn text(&self, index: usize) -> &'t str {
        self.token(index).map_or("", |t| t.text)
    }

    fn before(&self, index: usize) -> Option<&Token<'t>> {
        index.checked_sub(1).filter(|&i| i >= self.pieces.start).and_then(|i| self.token(i))
    }

    fn span(&self, index: usize) -> Span {
        match (self.token(index), self.scene.code.last()) {
            (Some(token), _) => self.scene.span(token),
            (None, Some(last)) => self.scene.span(last),
            (None, None) => Span::new(self.scene.file, 0, 0),
        }
    }

    fn at(&self, index: usize, message: impl Into<String>, label: impl Into<String>) -> Diagnostic {
        Diagnostic::new(Code::Syntax, self.span(index), message, label)
    }

    /// How the member is written of which no more than the first two words stand before `index`.
    fn form_begun(&self, index: usize) -> Option<&'static str> {
        let first = self.text(self.pieces.start);
        let here = index > self.pieces.start && index - self.pieces.start <= 2;
        form(first).filter(|_| here && self.block.keywords().contains(&first))
    }

    /// Did the grammar take a stray word before `index` for the name of the next member on the same line?
    fn is_stray_word(&self, index: usize, expected: &Expected) -> bool {
        let names = |rule: &Rule| matches!(rule, Rule::eq | Rule::prime | Rule::assign_op);
        index > self.pieces.start + 1
            && expected.rules.iter().all(names)
            && self.before(index).is_some_and(|t| t.kind == TokenKind::Word && !t.first_on_line)
            && self.scene.completes(index - 2)
            && !is_definition(self.text(index))
    }

    /// "expected this, found that".
    fn plain(&self, index: usize, expected: &Expected) -> Diagnostic {
        let words = expected.words();
        let end = expected.end() && index > self.pieces.start;
        if expected.end() && index == self.pieces.start {
            return self.no_member(index);
        }
        if words.is_empty() && index == self.pieces.start + 1 && index >= self.pieces.end {
            return self.no_member(self.pieces.start);
        }
        let next_line = index >= self.pieces.end && self.token(index).is_none_or(|t| t.first_on_line);
        let diagnostic = match self.before(index) {
            Some(before) if next_line => {
                let message = format!("expected {} after `{}`", one_of(&words), before.text);
                self.at(index - 1, message, "the line ends too early")
            }
            _ => {
                let found = self.token(index).map_or("the end of the file".to_owned(), |t| format!("`{}`", t.text));
                if !end && words.is_empty() {
                    self.at(index, format!("unexpected {found}"), "")
                } else if !end && words.len() <= 6 {
                    let label = if words.len() == 1 { format!("expected {}", words[0]) } else { String::new() };
                    let said = self.at(index, format!("expected {}, found {found}", one_of(&words)), label);
                    // Two letters are near to any others.
                    let letters = |word: &&str| word.len() > 2 && word.bytes().all(|b| b.is_ascii_alphabetic());
                    let keywords = words.iter().map(|word| word.trim_matches('`')).filter(letters);
                    match nearest(self.text(index), keywords).filter(|_| self.text(index).len() > 2) {
                        Some(word) => said.help(format!("did you mean `{word}`?")),
                        None => said,
                    }
                } else {
                    let mut diagnostic =
                        self.at(index, format!("unexpected {found}"), "the statement is complete before this");
                    if let Some(help) = self.help_behind(index) {
                        return diagnostic.help(help);
                    }
                    if !words.is_empty() && words.len() <= 6 {
                        diagnostic = diagnostic.note(format!("it could go on with {}", one_of(&words)));
                    }
                    diagnostic
                }
            }
        };
        if expected.has(Rule::rparen)
            && let Some(open) = self.open_bracket(index)
        {
            return diagnostic.see(self.span(open), "opened here");
        }
        diagnostic
    }

    /// What to write where a statement goes on in the manner of another language.
    fn help_behind(&self, index: usize) -> Option<&'static str> {
        let token = self.token(index)?;
        match token.text {
            "if" => Some("a choice is `if condition then a else b`"),
            _ if token.kind == TokenKind::Number => {
                Some("put `*` between factors; a unit stands right behind its number: `0.07 /ms`")
            }
            _ => None,
        }
    }

    /// The innermost bracket that is open at `index`.
    fn open_bracket(&self, index: usize) -> Option<usize> {
        let mut open = Vec::new();
        for i in self.pieces.start..index.min(self.pieces.end) {
            match self.text(i) {
                "(" | "[" => open.push(i),
                ")" | "]" => {
                    open.pop();
                }
                _ => {}
            }
        }
        open.pop()
    }

    /// The end of a comment with another one in it, if the token stands behind one.
    fn nested_comment(&self, index: usize) -> Option<Span> {
        let before = self.scene.text.get(..self.token(index)?.start)?.trim_end();
        let inside = &before[before.rfind("/*")?..];
        let outer = &before[..before.len() - inside.len()];
        let open = outer.rfind("/*").is_some_and(|open| !outer[open..].contains("*/"));
        (open && before.ends_with("*/")).then(|| Span::new(self.scene.file, before.len() - 2, before.len()))
    }

    /// What is meant if the token is the comma of `0,3`.
    fn decimal_comma(&self, index: usize) -> Option<String> {
        let (before, comma, behind) = (self.before(index)?, self.token(index)?, self.token(index + 1)?);
        let digits = |text: &str| text.bytes().all(|b| b.is_ascii_digit());
        let numbers = before.kind == TokenKind::Number && behind.kind == TokenKind::Number;
        let touch = before.end() == comma.start && comma.end() == behind.start;
        // `[0,0]` means a cell of a grid.
        let cell = index >= 2 && self.text(index - 2) == "[";
        if comma.text != "," || !numbers || !touch || !digits(before.text) || cell {
            return None;
        }
        Some(match behind.text.len() {
            3 if digits(behind.text) => {
                format!("write `{0}{1}` for thousands, `{0}.{1}` for a part", before.text, behind.text)
            }
            _ => format!("write `{}.{}`", before.text, behind.text),
        })
    }

    /// What is meant if the token is the second unit of `1 uF cm-2` or of `x: mV ms-1`.
    fn product_of_units(&self, index: usize) -> Option<String> {
        let (first, second) = (self.before(index)?, self.token(index)?);
        let unit = |token: &Token<'_>| token.kind == TokenKind::Word && Unit::parse(token.text).is_some();
        let begun =
            self.before(index - 1).is_some_and(|t| t.kind == TokenKind::Number || [":", "*", "/"].contains(&t.text));
        if !unit(first) || !unit(second) || !begun || second.first_on_line || index >= self.pieces.end {
            return None;
        }
        let negative = self.text(index + 1) == "-" && self.token(index + 1)?.start == second.end();
        let power = if negative { self.token(index + 2).filter(|t| t.kind == TokenKind::Number)?.text } else { "" };
        let power = if power == "1" { "" } else { power };
        let sign = if negative { '/' } else { '*' };
        Some(format!("write `{}{sign}{}{power}`", first.text, second.text))
    }

    /// The first token does not begin a member of the block.
    fn no_member(&self, index: usize) -> Diagnostic {
        let block = self.block;
        let text = self.text(index);
        if block == Block::Network && text == "clamp" {
            return self.at(index, "a clamp has a name", "").help("write `clamp hold: -60 mV -> cells.soma`");
        }
        let what = if block == Block::File { "an item".to_owned() } else { format!("a member of a {}", block.noun()) };
        if text == "}" {
            return self
                .at(index, "this `}` closes nothing", "no block is open here")
                .help("delete it, or look for a block that was closed too early");
        }
        if block.keywords().contains(&text)
            && let Some(form) = form(text)
        {
            let message = format!("expected `{form}`, found `{text} {}`", self.text(index + 1));
            return self.at(index, message, "this is written another way");
        }
        let message = match block {
            Block::Run | Block::Train | Block::Fit => format!("`{text}` does not begin a member of a {}", block.noun()),
            _ => format!("`{text}` does not begin {what}"),
        };
        let mut keywords = list_of(block.keywords());
        if block.has_keys() {
            keywords = if block.keywords().is_empty() {
                "`name = value`".into()
            } else {
                format!("`name = value`, {keywords}")
            };
        }
        let diagnostic = self.at(index, message, "").note(format!("expected {keywords}"));
        if let Some(ended) = self.nested_comment(index) {
            return diagnostic
                .see(ended, "a comment ends here")
                .help("comments do not nest: write `//` before each line");
        }
        let diagnostic = match index.checked_sub(1).and_then(|i| self.token(i)) {
            Some(close)
                if block == Block::File && close.text == "}" && (is_reserved(text) || self.text(index + 1) == "=") =>
            {
                diagnostic.see(self.scene.span(close), "the item before ends here")
            }
            _ => diagnostic,
        };
        let old = match text {
            "NEURON" | "PARAMETER" | "STATE" | "ASSIGNED" | "BREAKPOINT" | "INITIAL" | "DERIVATIVE" | "UNITS"
            | "PROCEDURE" => Some(
                "NMODL's blocks do not exist here: a mechanism is `channel Name { param ...; gate m { ... }; current i = ... }`",
            ),
            "def" | "fn" | "func" | "FUNCTION" => Some("a function is written `function f(x: mV): 1/ms = ...`"),
            "import" | "include" | "from" => Some("items of another file are brought in by `use file.{Name}`"),
            "class" | "model" | "neuron" => Some("a cell model is written `cell Name { ... }`"),
            "parameter" | "parameters" | "params" => Some("parameters are written `param name = value`, one by one"),
            "var" | "double" | "float" => {
                Some("a named value is written `let name = value`, a state `state name: unit = value`")
            }
            "stimulus" | "stim" | "inject" | "iclamp" | "IClamp" | "current" if block == Block::Network => Some(
                "a current is sent by `input step: pulse(delay = 5 ms, duration = 20 ms, amplitude = 0.3 nA) -> cells.soma`",
            ),
            "synapses" | "projection" | "projections" | "netcon" | "NetCon" if block == Block::Network => {
                Some("cells are connected by `connect a -> b via Synapse { ... }`")
            }
            "plot" | "print" | "monitor" | "watch" if block == Block::Run => {
                Some("write `record a.soma.v`; what is recorded is drawn by `neuroc run FILE --plot FILE.png`")
            }
            "threshold" | "reset" if block == Block::Cell => Some(SPIKE),
            _ => None,
        };
        if let Some(help) = old {
            return diagnostic.help(help);
        }
        if block == Block::File && ["=", ":="].contains(&self.text(index + 1)) {
            return diagnostic.help("put it in a block such as `run { ... }`, or write `const` before it");
        }
        let home = [
            Block::File,
            Block::Channel,
            Block::Cell,
            Block::Compartment,
            Block::Network,
            Block::Run,
            Block::Gate,
            Block::Spike,
        ];
        match home.iter().find(|b| b.keywords().contains(&text)) {
            Some(Block::File) => {
                diagnostic.help(format!("items do not nest: move the `{text}` out of the {}", block.noun()))
            }
            Some(_) if (text, block) == ("connect", Block::Cell) => {
                diagnostic.help("a section says where it begins: `section dend { from soma(1); ... }`")
            }
            Some(_) if (text, block) == ("let", Block::Network) => {
                let name = self.text(index + 1);
                diagnostic.help(format!("a value of a network is a parameter: `param {name} = ...`"))
            }
            Some(_) if (text, block) == ("let", Block::Pool) => {
                diagnostic.help("a `let` stands in the compartment or the cell around the pool")
            }
            Some(_) if text == "state" => diagnostic.help("`state` belongs to a channel, a cell or a synapse"),
            Some(home) => diagnostic.help(format!("`{text}` belongs to a {}", home.noun())),
            None => match nearest(text, block.keywords().iter().copied()) {
                Some(word) => diagnostic.did_you_mean(text, word),
                None => diagnostic,
            },
        }
    }

    /// The commonest slips, each with the edit that mends it.
    fn slip(&self, index: usize, expected: &Expected) -> Option<Diagnostic> {
        let text = self.text(index);
        let before = self.before(index).map_or("", |t| t.text);
        let after_number = self.before(index).is_some_and(|t| t.kind == TokenKind::Number);
        let touches = self.before(index).zip(self.token(index)).is_some_and(|(a, b)| a.end() == b.start);
        let wants_value = [Rule::expr, Rule::operand, Rule::argument].iter().any(|&r| expected.has(r));
        let wants_eq = expected.has(Rule::eq) || expected.has(Rule::assign_op);

        if let Some((name, help)) = invisible(text) {
            let code = text.chars().next().map_or(0, u32::from);
            let message = format!("the invisible character U+{code:04X} ({name}) has no meaning here");
            return Some(self.at(index, message, "").help(help));
        }
        if let Some(help) = odd_character(text) {
            let d = self.at(index, format!("the character `{text}` has no meaning here"), "");
            let meant = help.strip_prefix("write `").and_then(|rest| rest.strip_suffix('`')).map(str::to_owned);
            let d = d.help(help);
            return Some(meant.into_iter().fold(d, |d, meant| d.fix(self.span(index), text, meant)));
        }
        if let Some(help) = self.decimal_comma(index) {
            return Some(self.at(index, "a decimal point is a `.`, not a `,`", "").help(help));
        }
        if let Some(said) = self.habit(index, expected) {
            return Some(said);
        }
        let words: Vec<&str> = self.pieces.clone().take(2).map(|at| self.text(at)).collect();
        let slip = match (text, before) {
            (":", _) if expected.has(Rule::rbracket) => {
                Some(("cells are counted with `..`", "write `[0..2]`; the end is not included"))
            }
            ("'", _) if self.block == Block::Gate => Some((
                "a gate has no equation of its own",
                "a gate has `alpha` and `beta`, or `inf` and `tau`; an equation goes with a `state`",
            )),
            ("refractory", "}") => {
                Some(("`refractory` stands within the braces", "write `{ v = ...; refractory 2 ms }`"))
            }
            ("to" | ":" | "-", _) if words.first() == Some(&"free") => {
                Some(("the ends of a range stand around two dots", "write `free x = 1 .. 5 mV`"))
            }
            ("to" | ":" | "-", _) if words.first() == Some(&"sweep") => {
                Some(("the ends of a range stand around two dots", "write `sweep x = 1 .. 5 mV in 9 steps`"))
            }
            (",", _)
                if words.first() == Some(&"sweep")
                    && self.text(index + 1).starts_with(|c: char| c.is_ascii_digit()) =>
            {
                Some(("the values of a sweep stand in brackets", "write `sweep x = [1, 2, 5] mV`"))
            }
            ("from" | "to" | "every" | "around", _) if words == ["record", "spikes"] => {
                let help = "remove the time window; in a `fit` block a `target` can have one";
                Some(("spikes are recorded from the start to the end", help))
            }
            _ => None,
        };
        if let Some((message, help)) = slip {
            return Some(self.at(index, message, "").help(help));
        }
        if let Some(help) = self.product_of_units(index) {
            return Some(
                self.at(index, "units are multiplied with `*` and divided with `/`, without spaces", "").help(help),
            );
        }
        let first = self.token(self.pieces.start).filter(|t| t.kind == TokenKind::Word);
        if let Some(first) = first
            && index == self.pieces.start + 1
            && text == "/"
            && self.text(index + 1) == "dt"
            && let Some(state) = first.text.strip_prefix('d')
        {
            let help = format!("write `{state}' = ...`");
            return Some(self.at(self.pieces.start, "an equation is written with a prime", "").help(help));
        }
        if let Some(first) = first
            && index == self.pieces.start + 1
            && text == "("
            && matches!(first.text, "d" | "der" | "ddt" | "diff")
        {
            let help = format!("write `{}' = ...`", self.text(index + 1));
            return Some(self.at(self.pieces.start, "an equation is written with a prime", "").help(help));
        }
        if let Some(first) = first
            && index == self.pieces.start + 2
            && (self.text(index - 1), text) == ("'", "'")
        {
            let state = first.text;
            let help =
                format!("give the first derivative a name: `state rate = ...`, `{state}' = rate` and `rate' = ...`");
            return Some(self.at(index, "equations are of the first order", "a second prime").help(help));
        }
        if let Some(first) = first
            && index == self.pieces.start + 1
            && index < self.pieces.end
            && !is_reserved(first.text)
            && !is_definition(text)
        {
            let known = nearest(first.text, self.block.keywords().iter().copied());
            if known.is_some() || !self.block.has_keys() {
                return Some(self.no_member(self.pieces.start));
            }
        }
        if text == "=" && expected.has(Rule::prime) && !wants_eq {
            let message = format!("`{before} = ...` is not a member of a {}", self.block.noun());
            let key = match before {
                "capacitance" | "Cm" | "C_m" => "cm",
                before => before,
            };
            if self.block == Block::Cell && matches!(key, "cm" | "area" | "v_init" | "ra") {
                return Some(
                    self.at(index - 1, message, "")
                        .help(format!("`{key}` belongs to a compartment: `compartment soma {{ {key} = ... }}`")),
                );
            }
            if self.block == Block::Cell && matches!(before, "threshold" | "v_threshold" | "v_reset" | "refractory") {
                return Some(self.at(index - 1, message, "").help(SPIKE));
            }
            let help = format!(
                "write `let {before} = ...` to name a value, `param {before} = ...` for a parameter, `{before}' = ...` for the equation of a state"
            );
            return Some(self.at(index, message, "").help(help));
        }
        let found = |message: &str, help: &str| Some(self.at(index, message, "").help(help));
        let instead =
            |message: &str, help: &str, new: &str| found(message, help).map(|d| d.fix(self.span(index), text, new));
        match text {
            ":=" => return instead("expected `=`, found `:=`", "a definition is written with `=`", "="),
            "==" if wants_eq => {
                return instead("expected `=`, found `==`", "`==` compares; a definition is written with one `=`", "=");
            }
            "=" if expected.has(Rule::infix) && !wants_eq => {
                return found(
                    "a `=` cannot stand in an expression",
                    "comparisons are written `==`; separate statements on one line with `;`",
                );
            }
            "**" => return instead("there is no operator `**`", "a power is written `x^2`", "^"),
            "&&" | "&" => return instead("there is no operator `&&`", "write `and`", "and"),
            "|" if wants_value => return found("there are no bars around a value", "write `abs(x)`"),
            "||" | "|" => return instead("there is no operator `||`", "write `or`", "or"),
            "!" => return instead("there is no operator `!`", "write `not`", "not "),
            "%" => return found("there is no operator `%`", "percentages are written as numbers: `0.5`"),
            "#" => return found("there is no `#` in the language", "comments begin with `//`"),
            "\"" => return found("this string is not closed", "a string ends with `\"` on the line where it began"),
            "'" if wants_value => return found("a string has double quotes", "write `\"...\"`"),
            "+" if wants_value => return found("there is no sign `+`", "leave it out"),
            "if" if wants_value => {
                return found("an `if` inside an expression needs parentheses", "write `x + (if c then a else b)`");
            }
            "elif" | "elseif" => return found("there is no `elif`", "write `else if`"),
            "~" if expected.has(Rule::eq) => {
                return found(
                    "nothing is drawn here",
                    "parameters are drawn in the network, for each cell: `param cells.name ~ normal(mean, sd)`",
                );
            }
            "->" if expected.has(Rule::from_arrow) => {
                return found(
                    "expected `<-`, found `->`",
                    "`couple a <- b: g` gives `a` a current from `b`; write the other direction as a line of its own",
                );
            }
            "/" | "*" if expected.has(Rule::eq) || expected.has(Rule::colon) => {
                return found("a unit is written without spaces", "for example `mS/cm2`, `ohm*cm`");
            }
            "." if after_number && touches => {
                return found("a decimal point needs digits behind it", "write `1.0` or `1`");
            }
            "," if expected.end() && self.open_bracket(index).is_none() => {
                return found("unexpected `,`", "statements are separated by a new line or `;`");
            }
            _ => {}
        }
        if after_number && touches && text.starts_with('_') {
            return found("digits are not grouped", "write the number without `_`");
        }
        if expected.rules == [Rule::EOI] {
            let diagnostic = self.plain(index, expected);
            if before == "spikes" {
                return Some(diagnostic.help(format!("write `record spikes of {text}`")));
            }
            if let Some(word) = nearest(text, ["every", "at", "as", "crosses", "and", "or", "via"]) {
                return Some(diagnostic.did_you_mean(text, word));
            }
            if first.is_some_and(|f| matches!(f.text, "input" | "reads" | "state")) {
                return Some(diagnostic.help(format!("a unit stands behind a colon: `{before}: {text}`")));
            }
            return Some(diagnostic);
        }
        if after_number && (text == "(" || text == "[") {
            let close = (index..self.pieces.end).find(|&i| [")", "]"].contains(&self.text(i)))?;
            let unit: String = (index + 1..close).map(|i| self.text(i)).collect();
            if !unit.is_empty() {
                let sign = if self.text(index.saturating_sub(2)) == "-" { "-" } else { "" };
                let help = format!("write `{sign}{before} {unit}`");
                return Some(self.at(index, "a unit is written without brackets", "").help(help));
            }
        }
        if expected.has(Rule::name)
            && self.token(index).is_some_and(|t| t.kind == TokenKind::Word)
            && index < self.pieces.end
            && is_reserved(text)
        {
            let message = format!("`{text}` is a reserved word and cannot be a name");
            return Some(
                self.at(index, message, "expected a name").help(format!("choose another name, such as `{text}_1`")),
            );
        }
        if expected.has(Rule::kw_else) && index >= self.pieces.end {
            let diagnostic = self.plain(index, expected);
            return Some(diagnostic.help("an `if` always has an `else`: there is no value without it"));
        }
        if expected.has(Rule::eq)
            && index < self.pieces.end
            && self.token(index).is_some_and(|t| t.kind == TokenKind::Number || t.text == "-")
            && self.form_begun(index).is_none()
        {
            let diagnostic = self.plain(index, expected);
            return Some(diagnostic.help(format!("put a `=` between `{before}` and the value")));
        }
        None
    }
}

/// The name of a character that nobody sees, and what to do.
fn invisible(text: &str) -> Option<(&'static str, &'static str)> {
    const DELETE: &str = "delete it: it came with text that was copied";
    const SPACE: &str = "type an ordinary space";
    Some(match text.chars().next()? {
        '\u{a0}' | '\u{202f}' => ("no-break space", SPACE),
        '\u{2000}'..='\u{200a}' | '\u{205f}' | '\u{3000}' => ("a wide or narrow space", SPACE),
        '\u{200b}' => ("zero width space", DELETE),
        '\u{200c}' | '\u{200d}' => ("zero width joiner", DELETE),
        '\u{feff}' => ("byte order mark", DELETE),
        '\u{ad}' => ("soft hyphen", DELETE),
        '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{2069}' => {
            ("a sign for the direction of text", DELETE)
        }
        '\r' => ("carriage return", "end all lines in one way"),
        c if c.is_control() => ("a control character", DELETE),
        _ => return None,
    })
}

/// Characters that look like one that is meant.
fn odd_character(text: &str) -> Option<String> {
    let meant = match text {
        "−" | "–" | "—" => "-",
        "×" | "·" | "⋅" => "*",
        "÷" => "/",
        "’" | "‘" | "′" => "'",
        "“" | "”" => "\"",
        "≤" => "<=",
        "≥" => ">=",
        "≠" => "!=",
        "²" => "^2",
        "³" => "^3",
        "°" => return Some("temperatures are written `6.3 degC`".to_owned()),
        _ => {
            let letter = text.chars().find(|c| !c.is_ascii() && c.is_alphabetic())?;
            return Some(format!("names are made of the letters a-z and A-Z, digits and `_`; spell `{letter}` out"));
        }
    };
    Some(format!("write `{meant}`"))
}
