//! A text with mistakes to the items that have none, and one message for each mistake.
//!
//! In come the tokens of a text that the grammar does not match as a whole; out go the sound items and the messages.
//! Every piece of text is judged by the grammar alone: what is guessed here is only where the next piece begins.
//! Never true here: a message about a piece that follows from a mistake in another piece.

use super::ast::{File, Name};
use super::build::Builder;
use super::complain::{Complaint, complain};
use super::grammar::{Grammar, Rule, Token, TokenKind};
use super::parse::too_deep;
use crate::diag::{Code, Diagnostic};
use crate::source::{FileId, Span};
use pest::Parser;
use std::ops::Range;

/// A kind of block, by what its members are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)] // `noun` says what each is
pub enum Block {
    File,
    Channel,
    Gate,
    Fraction,
    Kinetics,
    Cell,
    Compartment,
    Section,
    Compartments,
    Region,
    Pool,
    Spike,
    Junction,
    Synapse,
    Event,
    Network,
    Population,
    Connect,
    Drive,
    Probe,
    Run,
    Train,
    Fit,
}

impl Block {
    /// Every kind.
    pub const ALL: &'static [Block] = &[
        Block::File,
        Block::Channel,
        Block::Gate,
        Block::Fraction,
        Block::Kinetics,
        Block::Cell,
        Block::Compartment,
        Block::Section,
        Block::Compartments,
        Block::Region,
        Block::Pool,
        Block::Spike,
        Block::Junction,
        Block::Synapse,
        Block::Event,
        Block::Network,
        Block::Population,
        Block::Connect,
        Block::Drive,
        Block::Probe,
        Block::Run,
        Block::Train,
        Block::Fit,
    ];

    /// Is a word one that stands inside of a member?
    pub fn is_inner(word: &str) -> bool {
        is_operator_word(word)
            || matches!(word, "true" | "false" | "instantaneous" | "spikes" | "event" | "pre" | "post" | "modulator")
            || matches!(word, "in" | "steps" | "log" | "random" | "samples" | "within" | "holds")
    }

    /// The block that a member of this block opens, if its first word is `word`.
    pub fn opened_by(self, word: &str) -> Option<Block> {
        Some(match (self, word) {
            (Block::File, "channel") => Block::Channel,
            (Block::File, "cell") => Block::Cell,
            (Block::File, "junction") => Block::Junction,
            (Block::File, "synapse") => Block::Synapse,
            (Block::File, "network") => Block::Network,
            (Block::File, "run") => Block::Run,
            (Block::File, "train") => Block::Train,
            (Block::File, "fit") => Block::Fit,
            (Block::Channel, "gate") => Block::Gate,
            (Block::Gate | Block::Fraction, "fraction") => Block::Fraction,
            (Block::Channel, "kinetics") => Block::Kinetics,
            (Block::Cell, "compartment") => Block::Compartment,
            (Block::Cell, "section") => Block::Section,
            (Block::Cell, "compartments") => Block::Compartments,
            (Block::Cell, "region") => Block::Region,
            (Block::Cell, "spike") => Block::Spike,
            (Block::Compartment | Block::Region, "pool") => Block::Pool,
            (Block::Synapse, "on") => Block::Event,
            (Block::Network, "population") => Block::Population,
            (Block::Network, "drive") => Block::Drive,
            (Block::Network, "probe") => Block::Probe,
            (Block::Network, "connect") => Block::Connect,
            _ => return None,
        })
    }

    /// The rule of its members.
    fn members(self) -> Rule {
        match self {
            Block::File => Rule::lone_item,
            Block::Channel => Rule::lone_channel,
            Block::Gate | Block::Fraction => Rule::lone_gate,
            Block::Kinetics => Rule::lone_kinetics,
            Block::Cell => Rule::lone_cell,
            Block::Compartment => Rule::lone_compartment,
            Block::Section => Rule::lone_section,
            Block::Compartments => Rule::lone_compartments,
            Block::Region => Rule::lone_region,
            Block::Pool => Rule::lone_pool,
            Block::Spike => Rule::lone_spike,
            Block::Junction => Rule::lone_junction,
            Block::Synapse => Rule::lone_synapse,
            Block::Event => Rule::lone_event,
            Block::Network => Rule::lone_network,
            Block::Population | Block::Connect | Block::Drive => Rule::lone_connect,
            Block::Probe => Rule::lone_probe,
            Block::Run => Rule::lone_run,
            Block::Train => Rule::lone_train,
            Block::Fit => Rule::lone_fit,
        }
    }

    /// The rule of its first words up to the `{`.
    fn head(self) -> Rule {
        match self {
            Block::File => Rule::file,
            Block::Channel => Rule::channel_head,
            Block::Gate => Rule::gate_head,
            Block::Fraction => Rule::fraction_head,
            Block::Kinetics => Rule::kinetics_head,
            Block::Cell => Rule::cell_head,
            Block::Compartment => Rule::compartment_head,
            Block::Section => Rule::section_head,
            Block::Compartments => Rule::compartments_head,
            Block::Region => Rule::region_head,
            Block::Pool => Rule::pool_head,
            Block::Spike => Rule::spike_head,
            Block::Junction => Rule::junction_head,
            Block::Synapse => Rule::synapse_head,
            Block::Event => Rule::on_event_head,
            Block::Drive => Rule::drive_head,
            Block::Probe => Rule::probe_head,
            Block::Network => Rule::network_head,
            Block::Population => Rule::population_head,
            Block::Connect => Rule::connect_head,
            Block::Run => Rule::run_head,
            Block::Train => Rule::train_head,
            Block::Fit => Rule::fit_head,
        }
    }

    /// What it is called.
    pub fn noun(self) -> &'static str {
        match self {
            Block::File => "file",
            Block::Channel => "channel",
            Block::Gate => "gate",
            Block::Fraction => "fraction of a gate",
            Block::Kinetics => "`kinetics` block",
            Block::Cell => "cell",
            Block::Compartment => "compartment",
            Block::Section => "section",
            Block::Compartments => "`compartments` block",
            Block::Region => "region",
            Block::Pool => "pool",
            Block::Spike => "spike rule",
            Block::Junction => "junction",
            Block::Synapse => "synapse",
            Block::Event => "`on event` block",
            Block::Drive => "drive",
            Block::Probe => "probe",
            Block::Network => "network",
            Block::Population => "population",
            Block::Connect => "connection",
            Block::Run => "`run` block",
            Block::Train => "`train` block",
            Block::Fit => "`fit` block",
        }
    }

    /// The keywords that its members begin with.
    pub fn keywords(self) -> &'static [&'static str] {
        match self {
            Block::File => &[
                "use", "const", "function", "channel", "cell", "junction", "synapse", "network", "run", "train", "fit",
            ],
            Block::Channel => &["param", "let", "reads", "gate", "kinetics", "state", "current"],
            Block::Gate | Block::Fraction => &["q10", "fraction"],
            Block::Kinetics => &["conserve", "init", "q10"],
            Block::Cell => &[
                "param",
                "let",
                "state",
                "input",
                "compartment",
                "couple",
                "morphology",
                "section",
                "compartments",
                "region",
                "spike",
            ],
            Block::Compartment => &["param", "let", "insert", "pool"],
            Block::Section => &["from", "toward"],
            Block::Compartments => &[],
            Block::Region => &["insert", "pool"],
            Block::Pool => &[],
            Block::Spike => &["refractory"],
            Block::Junction => &["param", "let", "current"],
            Block::Synapse => &["param", "let", "state", "on", "sum", "current"],
            Block::Event => &[],
            Block::Network => &["param", "init", "population", "input", "clamp", "connect", "drive", "probe"],
            Block::Population | Block::Connect | Block::Drive => &[],
            Block::Probe => &["at", "from"],
            Block::Run => &["record", "sweep"],
            Block::Train => &["learn", "keep"],
            Block::Fit => &["free", "target"],
        }
    }

    /// Can a member be `name = value`?
    pub fn has_keys(self) -> bool {
        match self {
            Block::Gate
            | Block::Fraction
            | Block::Compartment
            | Block::Section
            | Block::Compartments
            | Block::Region
            | Block::Pool
            | Block::Population
            | Block::Connect
            | Block::Drive
            | Block::Probe
            | Block::Run
            | Block::Train
            | Block::Fit => true,
            Block::Spike | Block::Event => true,
            Block::File
            | Block::Channel
            | Block::Kinetics
            | Block::Cell
            | Block::Junction
            | Block::Synapse
            | Block::Network => false,
        }
    }
}

/// Reserved words that begin a member or an item.
fn begins_member(word: &str) -> bool {
    begins_item(word)
        || [Block::Channel, Block::Cell, Block::Compartment, Block::Run].iter().any(|b| b.keywords().contains(&word))
            && !matches!(word, "kinetics" | "pool" | "morphology" | "section" | "compartments" | "region" | "sweep")
        || matches!(word, "population" | "connect")
}

fn begins_item(word: &str) -> bool {
    Block::File.keywords().contains(&word)
}

/// Words that stand inside a member.
fn is_operator_word(word: &str) -> bool {
    matches!(
        word,
        "and"
            | "or"
            | "not"
            | "if"
            | "then"
            | "else"
            | "at"
            | "every"
            | "around"
            | "of"
            | "via"
            | "modulating"
            | "from"
            | "to"
            | "crosses"
            | "when"
            | "as"
    )
}

/// Where the messages look things up.
pub struct Scene<'t> {
    pub text: &'t str,
    /// The tokens without comments.
    pub code: Vec<Token<'t>>,
    pub file: crate::source::FileId,
}

impl Scene<'_> {
    pub fn span(&self, token: &Token<'_>) -> Span {
        Span::new(self.file, token.start, token.end())
    }

    /// Column of a token, in bytes from 0.
    fn column(&self, token: &Token<'_>) -> usize {
        token.start - self.text[..token.start].rfind('\n').map_or(0, |i| i + 1)
    }

    /// Column of the first token on the line of `token`.
    fn indentation(&self, token: &Token<'_>) -> usize {
        let line = self.text[..token.start].rfind('\n').map_or(0, |i| i + 1);
        self.text[line..].bytes().take_while(|b| b" \t".contains(b)).count()
    }

    fn slice(&self, pieces: &Range<usize>) -> &str {
        &self.text[self.code[pieces.start].start..self.code[pieces.end - 1].end()]
    }

    fn is_symbol(&self, index: usize, symbol: &str) -> bool {
        self.code.get(index).is_some_and(|t| t.kind == TokenKind::Symbol && t.text == symbol)
    }

    /// The `}` of the `{` at `open`, if it is before `end`.
    fn matching_brace(&self, open: usize, end: usize) -> Option<usize> {
        let mut depth = 0;
        for index in open..end {
            if self.is_symbol(index, "{") {
                depth += 1;
            } else if self.is_symbol(index, "}") {
                depth -= 1;
                if depth == 0 {
                    return Some(index);
                }
            }
        }
        None
    }

    /// Could a statement end with this token?
    pub fn completes(&self, index: usize) -> bool {
        let token = &self.code[index];
        match token.kind {
            TokenKind::Word => !is_operator_word(token.text) && !begins_member(token.text),
            TokenKind::Number | TokenKind::String => true,
            TokenKind::Symbol => matches!(token.text, ")" | "]" | "}"),
            TokenKind::Comment => false,
        }
    }

    /// Does a member or an item begin at `index`, given the one before began at `start`?
    fn begins(&self, index: usize, start: usize, parentheses: usize) -> bool {
        let token = &self.code[index];
        if index == start || token.kind != TokenKind::Word || is_operator_word(token.text) {
            return false;
        }
        if self.is_symbol(index - 1, ";") {
            return true;
        }
        let keyword = begins_member(token.text);
        let key = ["=", "'", ":=", "+=", "-="].iter().any(|s| self.is_symbol(index + 1, s)) && parentheses == 0;
        let complete = self.completes(index - 1);
        if token.first_on_line {
            return complete || keyword || key;
        }
        // On one line a second key begins a member, a first one is the rest of a statement that went wrong before.
        let defined = || ["=", "'", "+=", "-="].iter().any(|s| (start..index).any(|i| self.is_symbol(i, s)));
        complete && (keyword || key && defined())
    }

    /// Cuts the tokens of a block's body into members.
    fn members(&self, body: Range<usize>) -> Vec<Range<usize>> {
        let mut list = Vec::new();
        let mut start = body.start;
        let (mut braces, mut parentheses) = (0usize, 0usize);
        for index in body.clone() {
            let token = &self.code[index];
            if braces == 0 && self.begins(index, start, parentheses) {
                list.push(start..index);
                start = index;
                parentheses = 0;
            }
            if token.kind == TokenKind::Symbol {
                match token.text {
                    "{" => braces += 1,
                    "}" => braces = braces.saturating_sub(1),
                    "(" | "[" => parentheses += 1,
                    ")" | "]" => parentheses = parentheses.saturating_sub(1),
                    _ => {}
                }
            }
        }
        if start < body.end {
            list.push(start..body.end);
        }
        list
    }

    /// Does the token look like the head of an item, in a place where a `}` may be missing before it?
    /// It does if it stands no further right than the item before, which begins at `start`.
    fn is_item_head(&self, index: usize, start: usize) -> bool {
        let token = &self.code[index];
        let named = self.code.get(index + 1).is_some_and(|t| t.kind == TokenKind::Word);
        token.first_on_line
            && self.column(token) <= self.column(&self.code[start])
            && match token.text {
                "channel" | "cell" | "junction" | "synapse" | "network" => named && self.is_symbol(index + 2, "{"),
                "function" => named && self.is_symbol(index + 2, "("),
                "use" => named && self.is_symbol(index + 2, "."),
                "run" => self.is_symbol(index + 1, "{"),
                _ => false,
            }
    }

    /// Cuts a file into items and what stands between them.
    fn items(&self) -> Vec<Range<usize>> {
        let mut list = Vec::new();
        let (mut start, mut braces, mut parentheses) = (0, 0usize, 0usize);
        for index in 0..self.code.len() {
            let token = &self.code[index];
            let closed = index > start && self.is_symbol(index - 1, "}");
            let here = match braces {
                0 => {
                    begins_item(token.text) && (index == start || token.first_on_line || self.completes(index - 1))
                        || closed
                        || self.begins(index, start, parentheses)
                        || self.is_symbol(index, "}")
                }
                _ => self.is_item_head(index, start),
            };
            if here && index > start {
                list.push(start..index);
                (start, braces, parentheses) = (index, 0, 0);
            }
            if token.kind == TokenKind::Symbol {
                match token.text {
                    "{" => braces += 1,
                    "}" => braces = braces.saturating_sub(1),
                    "(" | "[" => parentheses += 1,
                    ")" | "]" => parentheses = parentheses.saturating_sub(1),
                    _ => {}
                }
            }
        }
        if start < self.code.len() {
            list.push(start..self.code.len());
        }
        list
    }

    /// Puts blanks in the place of those members that the grammar of `outer` rejects, or of parts of them if they are blocks.
    fn mend(&self, outer: Block, pieces: &Range<usize>, blank: &mut impl FnMut(usize, usize)) {
        let (from, to) = (self.code[pieces.start].start, self.code[pieces.end - 1].end());
        let deep = too_deep(&self.code[pieces.clone()]).is_some();
        if !deep && Grammar::parse(outer.members(), self.slice(pieces)).is_ok() {
            return;
        }
        let open = pieces.clone().find(|&i| self.is_symbol(i, "{"));
        let block = outer.opened_by(self.code[pieces.start].text);
        let inside = match (block, open) {
            (Some(block), Some(open)) if !deep => self
                .matching_brace(open, pieces.end)
                .filter(|close| close + 1 == pieces.end)
                .filter(|_| self.is_head(block, pieces.start..open + 1))
                .map(|close| (block, open + 1..close)),
            _ => None,
        };
        match inside {
            Some((block, body)) if !body.is_empty() => {
                self.members(body).iter().for_each(|member| self.mend(block, member, blank));
            }
            Some(_) | None => blank(from, to),
        }
    }

    /// Are these the first words of a block?
    fn is_head(&self, block: Block, pieces: Range<usize>) -> bool {
        let end = self.code[pieces.end - 1].end() - self.code[pieces.start].start;
        Grammar::parse(block.head(), self.slice(&pieces)).is_ok_and(|mut pairs| {
            let last = pairs.next_back().map(|pair| pair.as_span().end());
            last == Some(end)
        })
    }

    /// The last token of a line that is the head of a block but for its `{`, if the next line stands inside.
    fn head_without_brace(&self, start: usize) -> Option<usize> {
        let first = self.code[start];
        let block = Block::ALL.iter().find_map(|outer| outer.opened_by(first.text)).filter(|_| first.first_on_line)?;
        let next = (start + 1..self.code.len()).find(|&i| self.code[i].first_on_line)?;
        let inside = self.column(&self.code[next]) > self.column(&first) && !self.is_symbol(next, "{");
        let head = format!("{} {{", self.slice(&(start..next)));
        let fits =
            |pairs: pest::iterators::Pairs<'_, Rule>| pairs.last().is_some_and(|p| p.as_span().end() == head.len());
        (inside && Grammar::parse(block.head(), &head).is_ok_and(fits)).then_some(next - 1)
    }

    /// The place of the mistake if a block in `pieces` lacks its `}`: the index of its `{`, and of the first token
    /// that stands outside judging by the indentation.
    fn unclosed(&self, pieces: &Range<usize>) -> Option<(usize, usize)> {
        let mut open: Vec<usize> = Vec::new();
        let mut suspect = None;
        for index in pieces.clone() {
            let token = &self.code[index];
            if token.first_on_line
                && suspect.is_none()
                && let Some(&block) = open.last()
            {
                let (inside, outside) = (self.indentation(&self.code[block]), self.column(token));
                let is_close = self.is_symbol(index, "}");
                let own_line = self.code[block + 1..index].iter().any(|t| t.first_on_line);
                if (is_close && outside < inside) || (!is_close && outside <= inside && own_line) {
                    suspect = Some((block, index));
                }
            }
            if self.is_symbol(index, "{") {
                open.push(index);
            } else if self.is_symbol(index, "}") {
                open.pop();
            }
        }
        let &innermost = open.last()?;
        Some(suspect.unwrap_or((innermost, pieces.end)))
    }
}

/// Where more blocks are closed than opened and blocks are begun without their `{`: what to say of those, and the text with `{` for the blanks where they
/// belong, so that all else keeps its place.
pub fn opened(file: FileId, text: &str, tokens: &[Token<'_>]) -> Option<(Vec<Diagnostic>, String)> {
    let scene = Scene { text, code: code_of(text, tokens), file };
    let count = |symbol: &str| (0..scene.code.len()).filter(|&i| scene.is_symbol(i, symbol)).count();
    let missing = count("}").checked_sub(count("{")).filter(|missing| *missing > 0)?;
    let blank = |token: &Token<'_>| text.as_bytes().get(token.end()).is_some_and(u8::is_ascii_whitespace);
    let heads = (0..scene.code.len()).filter_map(|start| scene.head_without_brace(start).map(|last| scene.code[last]));
    let heads: Vec<Token<'_>> = heads.filter(blank).take(missing).collect();
    let mut bytes = text.as_bytes().to_vec();
    heads.iter().for_each(|head| bytes[head.end()] = b'{');
    let mistake = |head: &Token<'_>| {
        let message = format!("expected `{{` after `{}`", head.text);
        Diagnostic::new(Code::Syntax, scene.span(head), message, "the block begins here")
    };
    (!heads.is_empty()).then_some((heads.iter().map(mistake).collect(), String::from_utf8(bytes).ok()?))
}

/// The text with blanks in the place of what no grammar fits, as long as before: what is left can be parsed. `None` if nothing is wrong with it.
pub fn mended(text: &str, tokens: &[Token<'_>]) -> Option<String> {
    let mut bytes = text.as_bytes().to_vec();
    let mut changed = false;
    let mut blank = |from: usize, to: usize| {
        changed = true;
        // Line ends stay, so that places keep their lines.
        bytes[from..to].iter_mut().filter(|b| !matches!(b, b'\n' | b'\r')).for_each(|b| *b = b' ');
    };
    let endless = tokens.iter().find(|t| t.kind == TokenKind::Symbol && t.text == "/*");
    let end = endless.map_or(text.len(), |t| t.start);
    if end < text.len() {
        blank(end, text.len());
    }
    let scene = Scene { text, code: code_of(text, tokens), file: crate::source::FileId(0) };
    for pieces in scene.items() {
        scene.mend(Block::File, &pieces, &mut blank);
    }
    changed.then(|| String::from_utf8(bytes).ok()).flatten()
}

/// The tokens up to a comment without an end, without comments.
pub fn code_of<'t>(text: &str, tokens: &[Token<'t>]) -> Vec<Token<'t>> {
    let mut code: Vec<Token<'_>> = Vec::new();
    for token in tokens.iter().take_while(|t| !(t.kind == TokenKind::Symbol && t.text == "/*")) {
        if token.kind != TokenKind::Comment {
            let before = code.last().map_or(0, Token::end);
            let first_on_line = code.is_empty() || text[before..token.start].contains('\n');
            code.push(Token { first_on_line, ..*token });
        }
    }
    code
}

/// Parses item by item.
pub fn recover(text: &str, tokens: &[Token<'_>], builder: &mut Builder<'_>, tree: &mut File) {
    let endless = tokens.iter().find(|t| t.kind == TokenKind::Symbol && t.text == "/*").copied();
    let scene = Scene { text, code: code_of(text, tokens), file: builder.file };
    if let Some(token) = endless {
        let diagnostic =
            Diagnostic::new(Code::Syntax, scene.span(&token), "this comment is never closed", "opened here");
        builder.mistakes.push(diagnostic.help("close it with `*/`"));
    }
    let mut lost = false;
    for pieces in scene.items() {
        let first = scene.code[pieces.start];
        if begins_item(first.text) {
            lost = false;
        } else if lost {
            continue;
        }
        let deep = too_deep(&scene.code[pieces.clone()]);
        if let Some(token) = deep {
            let message =
                format!("brackets or conditionals are nested more than {} levels deep", super::parse::MAX_DEPTH);
            let diagnostic = Diagnostic::new(Code::TooDeep, scene.span(&token), message, "this is one too many");
            builder.mistakes.push(diagnostic.help("name parts of the expression with `let` and use the names"));
        } else {
            builder.base = first.start;
            match Grammar::parse(Rule::lone_item, scene.slice(&pieces)) {
                Ok(pairs) => {
                    let items = pairs.flat_map(|p| p.into_inner()).filter(|p| p.as_rule() == Rule::item);
                    tree.items.extend(items.map(|p| builder.item(p)));
                    continue;
                }
                // What an endless comment swallowed is not the item's fault.
                Err(_) if endless.is_some() && pieces.end == scene.code.len() => {}
                Err(error) => explain(&scene, Block::File, &pieces, error, &mut builder.mistakes),
            }
        }
        lost = !begins_item(first.text);
        if matches!(first.text, "import" | "include" | "from" | "using" | "require") {
            // What it should have brought in is not missing besides.
            let words = scene.code[pieces.clone()].iter().filter(|t| t.kind == TokenKind::Word);
            tree.broken.extend(words.map(|t| Name { text: t.text.to_owned(), span: scene.span(t) }));
        }
        if let Some(name) = scene.code[pieces].get(1).filter(|t| begins_item(first.text) && t.kind == TokenKind::Word) {
            tree.broken.push(Name { text: name.text.to_owned(), span: scene.span(name) });
        }
    }
}

type PestError = pest::error::Error<Rule>;

/// Says what is wrong with one member of `outer` that the grammar rejected with `error`.
fn explain(scene: &Scene<'_>, outer: Block, pieces: &Range<usize>, error: PestError, mistakes: &mut Vec<Diagnostic>) {
    let first = scene.code[pieces.start];
    let complaint = Complaint { scene, block: outer, pieces: pieces.clone() };
    let opens = outer.opened_by(first.text).filter(|_| pieces.clone().any(|i| scene.is_symbol(i, "{")));
    let Some(block) = opens else {
        return mistakes.push(complain(&complaint, &error, first.start));
    };
    if outer == Block::File
        && let Some((open, outside)) = scene.unclosed(pieces)
    {
        return mistakes.push(missing_brace(scene, open, outside, pieces));
    }
    let before = mistakes.len();
    let open = match Grammar::parse(block.head(), scene.slice(pieces)) {
        Ok(pairs) => {
            let end = first.start + pairs.last().map_or(0, |p| p.as_span().end());
            pieces.clone().find(|&i| scene.code[i].end() == end)
        }
        Err(head_error) => {
            mistakes.push(complain(&complaint, &head_error, first.start));
            // The braces of a connection may be those of a path.
            pieces.clone().find(|&i| scene.is_symbol(i, "{")).filter(|_| block != Block::Connect)
        }
    };
    let body = open.and_then(|open| Some(open + 1..scene.matching_brace(open, pieces.end)?));
    for member in body.map(|body| scene.members(body)).unwrap_or_default() {
        if let Err(error) = Grammar::parse(block.members(), scene.slice(&member)) {
            explain(scene, block, &member, error, mistakes);
        }
    }
    if mistakes.len() == before {
        mistakes.push(complain(&complaint, &error, first.start));
    }
}

/// The head of the block whose `{` is at `open`, as written.
fn head_of(scene: &Scene<'_>, open: usize, pieces: &Range<usize>) -> Range<usize> {
    let mut start = open;
    while start > pieces.start
        && !scene.code[start].first_on_line
        && !["{", "}", ";"].iter().any(|s| scene.is_symbol(start - 1, s))
    {
        start -= 1;
    }
    start..open
}

fn missing_brace(scene: &Scene<'_>, open: usize, outside: usize, pieces: &Range<usize>) -> Diagnostic {
    let head = head_of(scene, open, pieces);
    let name = if head.is_empty() { "the block".to_owned() } else { format!("`{}`", scene.slice(&head)) };
    let last = &scene.code[outside - 1];
    let line = scene.text[..scene.code[open].start].matches('\n').count() + 1;
    let message = format!("a `}}` is missing to close {name}, opened in line {line}");
    let (span, label) = match scene.code.get(outside).filter(|_| outside < pieces.end) {
        Some(next) => (scene.span(next), "expected `}` before this"),
        None => (scene.span(last), "expected `}` after this"),
    };
    Diagnostic::new(Code::Syntax, span, message, label).see(scene.span(&scene.code[open]), "opened here")
}
