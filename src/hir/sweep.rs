//! What a sweep says: which things are set along its axes, and to what.
//!
//! In come `sweep` lines of a run, or the text of an option `--sweep`; out go [`Sweep`]s, the same whichever they came from.
//! Never true here: a name is looked up, or a value is computed.

use super::lower::Lowerer;
use crate::diag::{Code, Diagnostic};
use crate::source::Span;
use crate::syntax::ast::{self, RunMember};
use std::fmt;

/// An axis of a sweep.
#[derive(Debug, Clone, PartialEq)]
pub struct Sweep {
    /// What is set along it: one thing, or several together.
    pub swept: Vec<Swept>,
    /// Where the values of ranges lie; whole numbers if absent.
    pub spacing: Option<Spacing>,
    /// Where it stands, if in a file.
    pub span: Option<Span>,
}

/// A parameter, an initial value or the seed, and what it is set to.
#[derive(Debug, Clone, PartialEq)]
pub struct Swept {
    /// The name as it is written.
    pub name: String,
    /// The values.
    pub values: SweptValues,
    /// Where the name stands, if in a file.
    pub span: Option<Span>,
}

/// The values of something that is swept, as they are written.
#[derive(Debug, Clone, PartialEq)]
pub enum SweptValues {
    /// From the first to the last.
    Range(SweptNumber, SweptNumber),
    /// These.
    List(Vec<SweptNumber>),
}

/// A number and its unit, as they are written; both are read where the name is known.
#[derive(Debug, Clone, PartialEq)]
pub struct SweptNumber {
    /// The number with its sign.
    pub number: String,
    /// The unit; in a list or range, numbers without one have that of the last.
    pub unit: Option<String>,
    /// Where it stands, if in a file.
    pub span: Option<Span>,
}

/// How many values there are between two ends, and where.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Spacing {
    /// How many.
    pub count: u64,
    /// Are neighbours a factor apart, not a difference?
    pub log: bool,
    /// Where they lie.
    pub way: Way,
    /// Where it stands, if in a file.
    pub span: Option<Span>,
}

/// Where the values of a range lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// As far from each other, both ends among them.
    Steps,
    /// One in each of as many parts of the range, drawn there (McKay, Beckman and Conover, Technometrics 21:239, 1979).
    LatinHypercube,
    /// Drawn independently.
    Random,
}

impl fmt::Display for SweptNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.unit {
            Some(unit) => write!(f, "{} {unit}", self.number),
            None => f.write_str(&self.number),
        }
    }
}

impl fmt::Display for Sweep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, swept) in self.swept.iter().enumerate() {
            let comma = if at > 0 { ", " } else { "" };
            match &swept.values {
                SweptValues::Range(low, high) => write!(f, "{comma}{} = {low} .. {high}", swept.name)?,
                SweptValues::List(values) => {
                    let values: Vec<String> = values.iter().map(SweptNumber::to_string).collect();
                    write!(f, "{comma}{} = [{}]", swept.name, values.join(", "))?;
                }
            }
        }
        let Some(Spacing { count, log, way, .. }) = self.spacing else { return Ok(()) };
        let what = match way {
            Way::Steps => "steps",
            Way::LatinHypercube => "samples",
            Way::Random => "random samples",
        };
        write!(f, " in {count} {}{what}", if log { "log " } else { "" })
    }
}

impl Lowerer<'_> {
    /// The `sweep` lines of a run.
    pub(super) fn sweeps(&mut self, run: &ast::Run) -> Vec<Sweep> {
        let mut sweeps = Vec::new();
        for member in &run.members {
            let RunMember::Sweep(sweep) = member else { continue };
            let count = match &sweep.count {
                None => Ok(None),
                Some(c) => {
                    let way = match (c.samples, c.random) {
                        (true, false) => Ok(Way::LatinHypercube),
                        (true, true) => Ok(Way::Random),
                        (false, false) => Ok(Way::Steps),
                        (false, true) => Err("write `random samples`"),
                    };
                    way.map(|way| Some(Spacing { count: number(&c.count), log: c.log, way, span: Some(c.span) }))
                        .map_err(|help| (c.span, help))
                }
            };
            match count {
                Ok(spacing) => sweeps.push(Sweep {
                    swept: sweep.swept.iter().map(swept).collect(),
                    spacing,
                    span: Some(sweep.span),
                }),
                Err((span, help)) => {
                    let message = "steps are not random";
                    let d = Diagnostic::new(Code::BadValue, span, message, "samples are drawn").help(help);
                    self.error(d);
                }
            }
        }
        sweeps
    }
}

/// Digits as a number; more than can be counted are the most.
fn number(digits: &str) -> u64 {
    digits.parse().unwrap_or(u64::MAX)
}

/// What is set along an axis, or free in a range.
pub(super) fn swept(swept: &ast::Swept) -> Swept {
    Swept {
        name: swept.name.text.clone(),
        values: match &swept.values {
            ast::SweptValues::Range(low, high) => SweptValues::Range(written(low), written(high)),
            ast::SweptValues::List(values) => SweptValues::List(values.iter().map(written).collect()),
        },
        span: Some(swept.name.span),
    }
}

/// A number as it is written.
pub(super) fn written(n: &ast::SweptNumber) -> SweptNumber {
    SweptNumber { number: n.number.clone(), unit: n.unit.clone(), span: Some(n.span) }
}

impl Sweep {
    /// Reads `NAME=1,2,5mV`, `NAME=LOW..HIGHmV:41`, `seed=1..20`; behind the colon `7log`, `100samples` or `100random`. Further names
    /// behind a comma are set together.
    pub fn parse(text: &str) -> Result<Sweep, Diagnostic> {
        let wrong = |why: String| {
            Diagnostic::without_place(Code::BadValue, format!("`--sweep {text}` is no sweep: {why}"))
                .help("write `--sweep Na.gbar=80..160mS/cm2:41` (41 values), `--sweep Na.gbar=80,120,160mS/cm2` or `--sweep seed=1..20`")
        };
        let (values, spacing) = match text.split_once(':') {
            None => (text, None),
            Some((values, spacing)) => (values, Some(parse_spacing(spacing).map_err(wrong)?)),
        };
        let mut swept: Vec<Swept> = Vec::new();
        let mut ended = false;
        for piece in values.split(',') {
            let value = match (piece.split_once('='), swept.last()) {
                (Some((name, _)), _) if name.trim().is_empty() => {
                    return Err(wrong("there is no name before the `=`".into()));
                }
                (Some((name, value)), _) => {
                    let (name, values) = (name.trim().to_owned(), SweptValues::List(Vec::new()));
                    swept.push(Swept { name, values, span: None });
                    ended = false;
                    value
                }
                (None, None) => return Err(wrong("there is no `=`".into())),
                (None, Some(_)) => piece,
            };
            let Some(last) = swept.last_mut() else { continue };
            let missing = |what: &str| wrong(format!("there is no number {what} `{}`", value.trim()));
            match value.split_once("..") {
                Some(_) if ended || !matches!(&last.values, SweptValues::List(v) if v.is_empty()) => {
                    return Err(wrong("a list has numbers, no range".into()));
                }
                Some((low, high)) => {
                    let [low, high] = [low, high].map(parse_number);
                    last.values =
                        SweptValues::Range(low.ok_or_else(|| missing("before"))?, high.ok_or_else(|| missing("in"))?);
                    ended = true;
                }
                None => match &mut last.values {
                    SweptValues::List(values) => values.push(parse_number(value).ok_or_else(|| missing("in"))?),
                    SweptValues::Range(..) => return Err(wrong("a range has two ends".into())),
                },
            }
        }
        Ok(Sweep { swept, spacing, span: None })
    }
}

/// `-65 mV`, `5e-3mS/cm2`; nothing if it does not begin with a number.
fn parse_number(text: &str) -> Option<SweptNumber> {
    let text = text.trim();
    let digits = text.len() - text.strip_prefix(['-', '+']).unwrap_or(text).len();
    let ends = text.char_indices().skip(digits).find(|&(at, c)| {
        let rest = &text[at + c.len_utf8()..];
        let sign = matches!(c, '-' | '+') && text[..at].ends_with(['e', 'E']);
        let exponent = matches!(c, 'e' | 'E')
            && rest.strip_prefix(['-', '+']).unwrap_or(rest).starts_with(|c: char| c.is_ascii_digit());
        !(c.is_ascii_digit() || c == '.' || sign || exponent)
    });
    let (number, unit) = text.split_at(ends.map_or(text.len(), |(at, _)| at));
    number.parse::<f64>().ok()?;
    let unit = Some(unit.trim().to_owned()).filter(|unit| !unit.is_empty());
    Some(SweptNumber { number: number.to_owned(), unit, span: None })
}

/// `41`, `7log`, `100samples`, `100 log samples`, `100random`; the error says what is wrong.
fn parse_spacing(text: &str) -> Result<Spacing, String> {
    let text = text.trim();
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (digits, words) = text.split_at(end);
    if digits.is_empty() {
        return Err("behind the `:` stands how many values there are".into());
    }
    let (mut log, mut samples, mut random) = (false, false, false);
    for word in words.split([' ', '-']).filter(|word| !word.is_empty()) {
        match word {
            "steps" => {}
            "log" => log = true,
            "samples" => samples = true,
            "random" => (samples, random) = (true, true),
            _ if words.contains('=') => {
                let why =
                    "names behind a comma go together, and their number stands at the end: `a=1..20mV,b=3..4nS:5`";
                return Err(format!("{why}; each axis of a grid has a `--sweep` of its own"));
            }
            _ => return Err(format!("behind the number of values stands `log`, `samples` or `random`, not `{word}`")),
        }
    }
    let way = match (samples, random) {
        (_, true) => Way::Random,
        (true, false) => Way::LatinHypercube,
        (false, false) => Way::Steps,
    };
    Ok(Spacing { count: number(digits), log, way, span: None })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_read() {
        let shown = |text: &str| Sweep::parse(text).map(|s| s.to_string()).map_err(|d| d.message);
        for (text, is) in [
            ("Na.gbar=80..160mS/cm2:41", "Na.gbar = 80 .. 160 mS/cm2 in 41 steps"),
            ("soma.v=-80..-60 mV : 5", "soma.v = -80 .. -60 mV in 5 steps"),
            ("a=1e-3..1e3/ms:7log", "a = 1e-3 .. 1e3 /ms in 7 log steps"),
            ("a=1,2,5 mV", "a = [1, 2, 5 mV]"),
            ("a=1,2 mV,b=3,4nS", "a = [1, 2 mV], b = [3, 4 nS]"),
            ("a=1..2mV,b=3..4nS:100samples", "a = 1 .. 2 mV, b = 3 .. 4 nS in 100 samples"),
            ("a=1..2:10log-random", "a = 1 .. 2 in 10 log random samples"),
            ("seed=1..20", "seed = 1 .. 20"),
            ("n=10", "n = [10]"),
            ("x=0.5..1.5:3", "x = 0.5 .. 1.5 in 3 steps"),
        ] {
            assert_eq!(shown(text), Ok(is.to_string()), "{text}");
        }
        for text in [
            "",
            "a",
            "=1",
            "a=",
            "a=1..",
            "a=..2mV:3",
            "a=1..2mV:",
            "a=1..2mV:many",
            "a=1..2mV:5lin",
            "a=1,2..3",
            "a=1..2,3",
            "1,2",
        ] {
            assert!(Sweep::parse(text).is_err(), "{text}");
        }
    }
}
