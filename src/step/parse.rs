//! The text form, read back.
//!
//! In comes a text of one declaration or operation per line; out goes the [`Program`] that it spells, or the first line
//! that spells nothing.
//! Never true here: a text makes it panic, or a program was verified; `verify` does that.

use super::print::{KINDS, is_bare_char};
use super::{
    BinaryOp, Distribution, Elementary, Field, FieldId, Function, Guard, Map, Op, OpKind, Origin, OriginId, Program,
    Rate, Region, Role, Solve, Source, Space, SpaceId, SpaceKind, Stage, Surrogate, Tolerance, UnaryOp, ValueId,
};
use rustc_hash::FxHashMap as HashMap;
use std::fmt;
use std::str::FromStr;

/// What is wrong with a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParseError {
    /// The line, counted from 1.
    pub line: usize,
    /// What is wrong there.
    pub message: String,
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.message)
    }
}

impl std::error::Error for ParseError {}

/// Reads a program.
pub fn parse(text: &str) -> Result<Program, ParseError> {
    let mut reader = Reader::default();
    let mut last = 0;
    for (i, line) in text.lines().enumerate() {
        last = i + 1;
        let tokens = tokens(line).map_err(|message| ParseError { line: last, message })?;
        if !tokens.is_empty() {
            let mut rest = Rest { tokens, at: 0 };
            reader.line(&mut rest).and_then(|()| rest.end()).map_err(|message| ParseError { line: last, message })?;
        }
    }
    reader.finish().map_err(|message| ParseError { line: last.max(1), message })
}

#[derive(Debug, Clone, PartialEq)]
enum Token {
    Word(String),
    Name(String),
    Value(u32),
    Origin(u32),
    Text(String),
    Punct(char),
}

impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Token::Word(w) => write!(f, "`{w}`"),
            Token::Name(n) => write!(f, "`@{n}`"),
            Token::Value(v) => write!(f, "`%{v}`"),
            Token::Origin(o) => write!(f, "`#{o}`"),
            Token::Text(t) => write!(f, "{t:?}"),
            Token::Punct(c) => write!(f, "`{c}`"),
        }
    }
}

type Chars<'a> = std::iter::Peekable<std::str::Chars<'a>>;

fn tokens(line: &str) -> Result<Vec<Token>, String> {
    let mut chars = line.chars().peekable();
    let mut out = Vec::new();
    while let Some(&c) = chars.peek() {
        if c.is_whitespace() {
            chars.next();
        } else if c == '/' {
            chars.next();
            if chars.peek() != Some(&'/') {
                return Err("a single `/` means nothing here; comments start with `//`".into());
            }
            break;
        } else if is_word_char(c) {
            out.push(Token::Word(take_while(&mut chars, is_word_char)));
        } else {
            chars.next();
            out.push(match c {
                '"' => Token::Text(text(&mut chars)?),
                '%' => Token::Value(index(&mut chars, '%')?),
                '#' => Token::Origin(index(&mut chars, '#')?),
                '@' => Token::Name(name(&mut chars)?),
                '{' | '}' | ',' | '=' | ':' => Token::Punct(c),
                other => return Err(format!("unexpected character {other:?}")),
            });
        }
    }
    Ok(out)
}

fn is_word_char(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-' | '+')
}

fn take_while(chars: &mut Chars<'_>, accept: impl Fn(char) -> bool) -> String {
    let mut out = String::new();
    while let Some(&c) = chars.peek() {
        if !accept(c) {
            break;
        }
        out.push(c);
        chars.next();
    }
    out
}

fn index(chars: &mut Chars<'_>, sigil: char) -> Result<u32, String> {
    let digits = take_while(chars, |c| c.is_ascii_alphanumeric());
    whole(&digits).ok_or_else(|| format!("expected a number from 0 to {} after `{sigil}`, found `{digits}`", u32::MAX))
}

fn name(chars: &mut Chars<'_>) -> Result<String, String> {
    if chars.peek() == Some(&'"') {
        chars.next();
        return text(chars);
    }
    let bare = take_while(chars, is_bare_char);
    if bare.is_empty() { Err("expected a name after `@`".into()) } else { Ok(bare) }
}

fn text(chars: &mut Chars<'_>) -> Result<String, String> {
    let mut out = String::new();
    loop {
        match chars.next() {
            None => return Err("a quoted text does not end on its line".into()),
            Some('"') => return Ok(out),
            Some('\\') => out.push(escaped(chars)?),
            Some(c) => out.push(c),
        }
    }
}

fn escaped(chars: &mut Chars<'_>) -> Result<char, String> {
    match chars.next() {
        Some('n') => Ok('\n'),
        Some('t') => Ok('\t'),
        Some(c @ ('"' | '\\')) => Ok(c),
        Some('u') if chars.next() == Some('{') => {
            let digits = take_while(chars, |c| c.is_ascii_hexdigit());
            let closed = chars.next() == Some('}');
            let c = u32::from_str_radix(&digits, 16).ok().and_then(char::from_u32);
            c.filter(|_| closed).ok_or_else(|| format!("`\\u{{{digits}}}` is not a character"))
        }
        Some(_) | None => Err("the escapes are \\\" \\\\ \\n \\t and \\u{...}".into()),
    }
}

/// A whole number in plain digits (`from_str` alone would take a sign).
fn whole<T: FromStr>(digits: &str) -> Option<T> {
    if digits.bytes().all(|b| b.is_ascii_digit()) { digits.parse().ok() } else { None }
}

/// What is left of a line.
struct Rest {
    tokens: Vec<Token>,
    at: usize,
}

impl Rest {
    fn peek(&self) -> Option<&Token> {
        self.tokens.get(self.at)
    }

    fn unexpected<T>(&self, expected: &str) -> Result<T, String> {
        match self.peek() {
            Some(token) => Err(format!("expected {expected}, found {token}")),
            None => Err(format!("expected {expected} before the line ends")),
        }
    }

    /// The next token, if `pick` takes it.
    fn take<T>(&mut self, expected: &str, pick: impl Fn(&Token) -> Option<T>) -> Result<T, String> {
        match self.peek().and_then(pick) {
            Some(x) => {
                self.at += 1;
                Ok(x)
            }
            None => self.unexpected(expected),
        }
    }

    fn word(&mut self, expected: &str) -> Result<String, String> {
        self.take(expected, |t| if let Token::Word(w) = t { Some(w.clone()) } else { None })
    }

    fn keyword(&mut self, word: &str) -> Result<(), String> {
        self.take(&format!("`{word}`"), |t| (*t == Token::Word(word.into())).then_some(()))
    }

    /// Takes a word if it comes next.
    fn optional(&mut self, word: &str) -> bool {
        let found = self.peek() == Some(&Token::Word(word.into()));
        self.at += usize::from(found);
        found
    }

    fn punct(&mut self, c: char) -> Result<(), String> {
        self.take(&format!("`{c}`"), |t| (*t == Token::Punct(c)).then_some(()))
    }

    fn name(&mut self, expected: &str) -> Result<String, String> {
        self.take(expected, |t| if let Token::Name(n) = t { Some(n.clone()) } else { None })
    }

    fn text(&mut self, expected: &str) -> Result<String, String> {
        self.take(expected, |t| if let Token::Text(n) = t { Some(n.clone()) } else { None })
    }

    fn whole<T: FromStr>(&mut self, expected: &str) -> Result<T, String> {
        self.take(expected, |t| if let Token::Word(w) = t { whole(w) } else { None })
    }

    fn value(&mut self) -> Result<ValueId, String> {
        self.take("a value such as `%3`", |t| if let Token::Value(v) = t { Some(ValueId(*v)) } else { None })
    }

    fn comma_value(&mut self) -> Result<ValueId, String> {
        self.punct(',')?;
        self.value()
    }

    fn end(&self) -> Result<(), String> {
        if self.peek().is_some() { self.unexpected("the end of the line") } else { Ok(()) }
    }
}

/// What the lines so far have spelled.
#[derive(Default)]
struct Reader {
    program: Program,
    named: bool,
    spaces: HashMap<String, SpaceId>,
    fields: HashMap<String, FieldId>,
    function: Option<Function>,
    region: Option<Region>,
}

impl Reader {
    fn line(&mut self, rest: &mut Rest) -> Result<(), String> {
        if self.region.is_some() {
            self.in_region(rest)
        } else if self.function.is_some() {
            self.in_function(rest)
        } else {
            self.declaration(rest)
        }
    }

    fn finish(self) -> Result<Program, String> {
        if self.function.is_some() {
            Err("the text ends inside a function; `}` is missing".into())
        } else if !self.named {
            Err("the text does not say `program \"name\"`".into())
        } else {
            Ok(self.program)
        }
    }

    fn declaration(&mut self, rest: &mut Rest) -> Result<(), String> {
        let expected = "a declaration (program, origin, space, a kind of field, or fn)";
        let word = rest.word(expected)?;
        match word.as_str() {
            "program" if self.named => Err("the program has a name already".into()),
            "program" => {
                self.program.name = rest.text("the program's name in quotes")?;
                self.named = true;
                Ok(())
            }
            "origin" => self.origin_declaration(rest),
            "space" => self.space_declaration(rest),
            "fn" => self.function_heading(rest),
            kind => self.field_declaration(kind, rest),
        }
    }

    fn space_declaration(&mut self, rest: &mut Rest) -> Result<(), String> {
        let name = rest.name("a space's name such as `@squid`")?;
        let kind = if rest.optional("of") {
            SpaceKind::Product { of: self.space(rest)?, tree: rest.optional("tree") }
        } else if rest.optional("in") {
            SpaceKind::Subset { of: self.space(rest)? }
        } else if rest.optional("from") {
            let from = self.space(rest)?;
            rest.keyword("to")?;
            SpaceKind::Relation { from, to: self.space(rest)? }
        } else {
            SpaceKind::Plain
        };
        let id = SpaceId(self.program.spaces.len() as u32);
        if self.spaces.insert(name.clone(), id).is_some() {
            return Err(format!("the space `@{name}` is declared twice"));
        }
        self.program.spaces.push(Space { name, kind });
        Ok(())
    }

    fn origin_declaration(&mut self, rest: &mut Rest) -> Result<(), String> {
        let next = self.program.origins.len() as u32;
        let expected = format!("`#{next}` (origins are numbered in order)");
        rest.take(&expected, |t| (*t == Token::Origin(next)).then_some(()))?;
        let file = rest.text("a file name in quotes")?;
        rest.punct(':')?;
        let line = rest.whole("a line number")?;
        self.program.origins.push(Origin { file, line });
        Ok(())
    }

    fn field_declaration(&mut self, kind: &str, rest: &mut Rest) -> Result<(), String> {
        let Some(&(kind, _)) = KINDS.iter().find(|(_, word)| *word == kind) else {
            return Err(format!("`{kind}` does not declare anything"));
        };
        let name = rest.name("a field's name such as `@squid.soma.v`")?;
        let over = if rest.optional("over") { Some(self.space(rest)?) } else { None };
        let history = if rest.optional("history") { rest.whole("a number of steps")? } else { 0 };
        let source = source(rest)?;
        let origin = self.origin(rest)?;
        if self.fields.contains_key(&name) {
            return Err(format!("the field `@{name}` is declared twice"));
        }
        let id = FieldId(self.program.fields.len() as u32);
        self.fields.insert(name.clone(), id);
        self.program.fields.push(Field { name, kind, over, history, source, origin });
        Ok(())
    }

    fn space(&self, rest: &mut Rest) -> Result<SpaceId, String> {
        let name = rest.name("a space such as `@squid`")?;
        self.spaces.get(&name).copied().ok_or_else(|| format!("no space `@{name}` is declared above"))
    }

    fn origin(&self, rest: &mut Rest) -> Result<Option<OriginId>, String> {
        let Some(&Token::Origin(id)) = rest.peek() else { return Ok(None) };
        if id as usize >= self.program.origins.len() {
            return Err(format!("no origin `#{id}` is declared above"));
        }
        rest.at += 1;
        Ok(Some(OriginId(id)))
    }

    fn function_heading(&mut self, rest: &mut Rest) -> Result<(), String> {
        let role = match rest.word("`init`, `step` or `observe`")?.as_str() {
            "init" => Role::Init,
            "step" => Role::Step,
            "observe" => Role::Observe,
            other => return Err(format!("`{other}` is no function; they are `init`, `step` and `observe`")),
        };
        let steps = if rest.optional("steps") { rest.whole("a number of steps")? } else { 1 };
        rest.punct('{')?;
        self.function = Some(Function { role, steps, stages: Vec::new() });
        Ok(())
    }

    fn in_function(&mut self, rest: &mut Rest) -> Result<(), String> {
        if rest.peek() == Some(&Token::Punct('}')) {
            rest.at += 1;
            self.program.functions.extend(self.function.take());
            return Ok(());
        }
        let (rate, over) = match rest.word("a stage (`once`, `every`, `over` or `solve`) or `}`")?.as_str() {
            "solve" => {
                let solve = Stage::Solve(self.solve(rest)?);
                self.stage(solve);
                return Ok(());
            }
            "once" if rest.optional("over") => (Rate::Once, Some(self.space(rest)?)),
            "once" => (Rate::Once, None),
            "every" => (Rate::Every, None),
            "over" => (Rate::Every, Some(self.space(rest)?)),
            other => return Err(format!("`{other}` is no stage; they are `once`, `every`, `over` and `solve`")),
        };
        let guard = if rest.optional("when") { Some(self.guard(rest)?) } else { None };
        rest.punct('{')?;
        self.region = Some(Region { rate, over, guard, ops: Vec::new() });
        Ok(())
    }

    fn stage(&mut self, stage: Stage) {
        if let Some(function) = &mut self.function {
            function.stages.push(stage);
        }
    }

    fn guard(&self, rest: &mut Rest) -> Result<Guard, String> {
        let event = self.field(rest)?;
        let along = along(rest)?;
        let delay = if rest.optional("delay") { Some(self.field(rest)?) } else { None };
        Ok(Guard { event, along, delay })
    }

    fn solve(&self, rest: &mut Rest) -> Result<Solve, String> {
        rest.keyword("tree")?;
        let x = self.field(rest)?;
        rest.punct(':')?;
        rest.keyword("own")?;
        let own = self.field(rest)?;
        rest.punct(',')?;
        rest.keyword("link")?;
        let link = self.field(rest)?;
        rest.punct(',')?;
        rest.keyword("rhs")?;
        let rhs = self.field(rest)?;
        let mut from = None;
        if rest.peek() == Some(&Token::Punct(',')) {
            rest.punct(',')?;
            rest.keyword("from")?;
            from = Some(self.field(rest)?);
        }
        Ok(Solve { x, own, link, rhs, from, origin: self.origin(rest)? })
    }

    fn in_region(&mut self, rest: &mut Rest) -> Result<(), String> {
        if rest.peek() == Some(&Token::Punct('}')) {
            rest.at += 1;
            if let Some(region) = self.region.take() {
                self.stage(Stage::Region(region));
            }
            return Ok(());
        }
        let op = self.op(rest)?;
        if let Some(region) = &mut self.region {
            region.ops.push(op);
        }
        Ok(())
    }

    fn op(&self, rest: &mut Rest) -> Result<Op, String> {
        let result = match rest.peek() {
            Some(&Token::Value(v)) => {
                rest.at += 1;
                rest.punct('=')?;
                Some(ValueId(v))
            }
            Some(_) | None => None,
        };
        let mut word = rest.word("an operation or `}`")?;
        let exact = word == "exact";
        if exact {
            word = rest.word("an operation")?;
        }
        let kind = self.op_kind(&word, rest)?;
        let origin = self.origin(rest)?;
        Ok(Op { result, kind, exact, origin })
    }

    fn op_kind(&self, word: &str, rest: &mut Rest) -> Result<OpKind, String> {
        if let Some(&(op, _)) = UnaryOp::ALL.iter().find(|(_, n)| *n == word) {
            return Ok(OpKind::Unary(op, rest.value()?));
        }
        if let Some(&(op, _)) = BinaryOp::ALL.iter().find(|(_, n)| *n == word) {
            return Ok(OpKind::Binary(op, rest.value()?, rest.comma_value()?));
        }
        Ok(match word {
            "const" => OpKind::Const(number(rest)?),
            "bool" => OpKind::Bool(rest.take("`true` or `false`", |t| match t {
                Token::Word(w) => w.parse().ok(),
                Token::Name(_) | Token::Value(_) | Token::Origin(_) | Token::Text(_) | Token::Punct(_) => None,
            })?),
            "field" => OpKind::Field(self.field(rest)?),
            "gather" => {
                let field = self.field(rest)?;
                rest.keyword("along")?;
                OpKind::Gather(field, map(rest)?)
            }
            "back" => OpKind::Back(self.field(rest)?, along(rest)?, rest.comma_value()?),
            "accumulate" => OpKind::Accumulate(self.field(rest)?, along(rest)?, rest.comma_value()?),
            "spike_by" => OpKind::SpikeBy(rest.value()?, rest.comma_value()?),
            "spike" => OpKind::Spike(surrogate(rest)?, rest.value()?),
            "time" => OpKind::Time,
            "step_index" => OpKind::StepIndex,
            "index" => OpKind::Index,
            "approximate" => OpKind::Approximate(
                named(rest, &Elementary::ALL, "a function such as `exp2`")?,
                named(rest, &Tolerance::ALL, "`1e-9` or `1e-6`")?,
                rest.comma_value()?,
            ),
            "fma" => OpKind::Fma(rest.value()?, rest.comma_value()?, rest.comma_value()?),
            "select" => OpKind::Select(rest.value()?, rest.comma_value()?, rest.comma_value()?),
            "draw" => OpKind::Draw(distribution(rest)?, rest.whole("a stream number")?, rest.comma_value()?),
            "sample" => OpKind::Sample(self.field(rest)?, rest.comma_value()?),
            "store" => OpKind::Store(self.field(rest)?, rest.comma_value()?),
            "emit" => OpKind::Emit(self.field(rest)?, rest.comma_value()?),
            other => return Err(format!("there is no operation `{other}`")),
        })
    }

    fn field(&self, rest: &mut Rest) -> Result<FieldId, String> {
        let name = rest.name("a field such as `@squid.soma.v`")?;
        self.fields.get(&name).copied().ok_or_else(|| format!("no field `@{name}` is declared above"))
    }
}

fn number(rest: &mut Rest) -> Result<f64, String> {
    let word = rest.word("a number")?;
    match word.as_str() {
        "inf" => Ok(f64::INFINITY),
        "-inf" => Ok(f64::NEG_INFINITY),
        "nan" => Ok(f64::NAN),
        // The letters of `infinity` and the like are left to the three words above.
        w if w.bytes().all(|b| b.is_ascii_digit() || b"+-.eE".contains(&b)) => {
            w.parse().map_err(|_| format!("`{w}` is not a number"))
        }
        w => Err(format!("`{w}` is not a number")),
    }
}

/// What has this name.
fn named<T: Copy>(rest: &mut Rest, all: &[(T, &str)], expected: &str) -> Result<T, String> {
    let find = |word: &String| all.iter().find(|(_, name)| name == word).map(|(it, _)| *it);
    rest.take(expected, |t| if let Token::Word(w) = t { find(w) } else { None })
}

/// `along` and a map, if it comes next.
fn along(rest: &mut Rest) -> Result<Option<Map>, String> {
    if rest.optional("along") { map(rest).map(Some) } else { Ok(None) }
}

fn map(rest: &mut Rest) -> Result<Map, String> {
    named(rest, Map::ALL, "a map (`source`, `target`, `of`, `parent` or `in`)")
}

/// `=` and what a field stands for, if it comes next.
fn source(rest: &mut Rest) -> Result<Source, String> {
    if rest.peek() != Some(&Token::Punct('=')) {
        return Ok(Source::None);
    }
    rest.at += 1;
    let two = |rest: &mut Rest, source: fn(u32, u32) -> Source| {
        Ok(source(rest.whole("a number")?, rest.whole("a second number")?))
    };
    let numbered: fn(u32) -> Source = match rest.word("what the field stands for, such as `param 3`")?.as_str() {
        "dt" => return Ok(Source::Dt),
        "param" => Source::Param,
        "state" => Source::State,
        "next" => Source::Next,
        "weight" => Source::Weight,
        "delay" => Source::Delay,
        "back" => Source::Back,
        "seen" => Source::Seen,
        "amount" => Source::Amount,
        "modulated" => Source::Modulated,
        "refractory" => Source::Refractory,
        "spiked" => Source::Spiked,
        "spikes" => Source::Spikes,
        "slope" => return two(rest, Source::Slope),
        "point" => return two(rest, Source::Point),
        "sum" => return two(rest, Source::Sum),
        "sent" => return two(rest, Source::Sent),
        "arrived" => return two(rest, Source::Arrived),
        "data" => return two(rest, Source::Data),
        "series" => Source::Series,
        "output" => Source::Output,
        "observed" => Source::Observed,
        "measure" => return two(rest, Source::Measure),
        "slopes" => Source::Slopes,
        "there" => return two(rest, Source::There),
        "told" => Source::Told,
        "axial" => Source::Axial,
        "membrane" => Source::Membrane,
        "conductance" => Source::Conductance,
        "own" => Source::Own,
        "rhs" => Source::Rhs,
        "middle" => Source::Middle,
        "transmembrane" => Source::Transmembrane,
        "escaping" => Source::Escaping,
        "injected" => Source::Injected,
        "injected_slope" => Source::InjectedSlope,
        "diffusion" => return two(rest, Source::Diffusion),
        "adjoint" => Source::Adjoint,
        "seed" => Source::Seed,
        "gradient" => return two(rest, Source::Gradient),
        "tangent" => return two(rest, Source::Tangent),
        other => return Err(format!("a field cannot stand for `{other}`")),
    };
    Ok(numbered(rest.whole("a number")?))
}

/// What differentiation sees of a spike, and a comma, if it comes next.
fn surrogate(rest: &mut Rest) -> Result<Surrogate, String> {
    let Some(Token::Word(word)) = rest.peek().cloned() else { return Ok(Surrogate::None) };
    rest.at += 1;
    let surrogate = match word.as_str() {
        "fast_sigmoid" => Surrogate::FastSigmoid(number(rest)?),
        "arctan" => Surrogate::Arctan(number(rest)?),
        "sigmoid" => Surrogate::Sigmoid(number(rest)?),
        "triangular" => Surrogate::Triangular(number(rest)?),
        "straight_through" => Surrogate::StraightThrough,
        other => return Err(format!("there is no surrogate `{other}`")),
    };
    rest.punct(',')?;
    Ok(surrogate)
}

fn distribution(rest: &mut Rest) -> Result<Distribution, String> {
    let word = rest.word("`uniform`, `normal` or `exponential`")?;
    match word.as_str() {
        "uniform" => Ok(Distribution::Uniform),
        "normal" => Ok(Distribution::Normal),
        "exponential" => Ok(Distribution::Exponential),
        w => Err(format!("`{w}` is no distribution; they are `uniform`, `normal` and `exponential`")),
    }
}
