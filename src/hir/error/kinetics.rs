//! What can be wrong with a kinetic scheme.

use super::instead;
use crate::diag::{Code, Diagnostic};
use crate::source::Span;
use crate::syntax::ast::Name;

/// What is wrong with a kinetic scheme.
pub(in crate::hir) enum KineticsError<'e> {
    /// A reaction has more rates than directions, or fewer. They are given as they are written.
    Rates { from: &'e Name, to: &'e Name, both: bool, rates: Vec<&'e str>, span: Span },
    /// A reaction leads from a state to the same.
    ToItself { state: &'e Name, span: Span },
    /// Two reactions lead from one state to the same other.
    Twice { from: &'e str, to: &'e str, again: Span, first: Span },
    /// It has no reactions.
    Empty { span: Span },
    /// It has too many states.
    TooMany { count: usize, most: usize, span: Span },
    /// A line names a state that is in no reaction.
    Unknown { name: &'e Name, states: &'e [&'e str] },
    /// There is no way from some states to others.
    Apart { first: Vec<&'e str>, others: Vec<&'e str>, apart: &'e Name },
    /// What is said to be conserved is not: a reaction leads out of it, or into it.
    NotConserved { states: &'e [Name], missing: Vec<&'e str>, reaction: Span, span: Span },
    /// A sum has a state twice.
    CountedTwice { again: &'e Name, first: Span },
    /// The sum is not 1.
    NotWhole { span: Span },
    /// It may end in one state or in another.
    NoRest { ends: [&'e Name; 2], span: Span },
    /// Its initial values do not sum to 1.
    Starts { sum: f64, places: Vec<Span> },
    /// A clamp holds one of the states.
    Held { name: &'e str, span: Span },
    /// A rate reads a state.
    ReadsAState { name: &'e str, place: Span },
}

impl From<KineticsError<'_>> for Diagnostic {
    fn from(error: KineticsError<'_>) -> Diagnostic {
        use KineticsError as E;
        let new = |span, message: String, label: &str| Diagnostic::new(Code::BadScheme, span, message, label);
        match error {
            E::Rates { from, to, both, rates, span } => rates_of(from, to, both, &rates, span),
            E::ToItself { state, span } => {
                let message = format!("a reaction leads from `{}` to itself", state.text);
                new(span, message, "nothing changes").help("leave it out, or name the state that it leads to")
            }
            E::Twice { from, to, again, first } => {
                let message = format!("two reactions lead from `{from}` to `{to}`");
                new(again, message, "the second").see(first, "the first").help("write one, with the sum of the rates")
            }
            E::Empty { span } => new(span, "the scheme has no reactions".into(), "nothing happens here")
                .help("write `C <-> O (alpha, beta)`, with the rates there and back"),
            E::TooMany { count, most, span } => {
                let message = format!("a scheme has {most} states at most, this one has {count}");
                new(span, message, "one too many")
            }
            E::Unknown { name, states } => {
                let message = format!("no reaction has a state `{}`", name.text);
                instead(new(name.span, message, "not a state of this scheme"), &name.text, states)
            }
            E::Apart { first, others, apart } => {
                let [first, others] = [first, others].map(|names| listed(&names));
                let message = format!("no reaction joins {first} to {others}");
                new(apart.span, message, "out of reach")
                    .help("if they have nothing to do with each other, give each a `kinetics` block of its own")
            }
            E::NotConserved { states, missing, reaction, span } => {
                let sum: Vec<&str> = states.iter().map(|n| n.text.as_str()).collect();
                let message = format!("`{}` is not conserved", sum.join(" + "));
                let all: Vec<&str> = sum.into_iter().chain(missing).collect();
                new(span, message, "this sum changes")
                    .see(reaction, "this reaction changes it")
                    .help(format!("write `conserve {} = 1`", all.join(" + ")))
            }
            E::CountedTwice { again, first } => {
                let message = format!("`{}` is in the sum twice", again.text);
                new(again.span, message, "counted again").see(first, "here already")
            }
            E::NotWhole { span } => {
                new(span, "the states of a scheme are fractions, which sum to 1".into(), "this is something else")
                    .help("write `= 1`; what is a multiple of a fraction, such as a conductance, is computed from it")
            }
            E::NoRest { ends: [a, b], span } => {
                let message = format!("the scheme may end in `{}` or in `{}`", a.text, b.text);
                new(span, message, "has no steady state to begin in")
                    .see(a.span, "nothing leads from here to there")
                    .see(b.span, "or from here to there")
                    .help("say where the channels are at the start: `init C = 1`, for a state `C`")
            }
            E::Starts { sum, places } => {
                let shown = (sum * 1e9).round() / 1e9;
                let message = format!("the initial values of the states sum to {shown}, not to 1");
                let mut places = places.into_iter();
                let first = places.next().unwrap_or_default();
                let d = new(first, message, "");
                let d = places.fold(d, |d, span| d.see(span, ""));
                d.note("states without an `init` line begin at 0 where others have one")
            }
            E::Held { name, span } => {
                let message = format!("`{name}` is a state of a kinetic scheme and cannot be held alone");
                new(span, message, "the others would not sum to 1 with it")
                    .help("hold the voltage or a concentration that the rates read")
            }
            E::ReadsAState { name, place } => {
                let message = format!("a rate reads `{name}`, a state of its scheme");
                new(place, message, "read here")
                    .help("rates depend on the voltage, on pools and on other states; for other equations, write `state x` and `x' = ...`")
            }
        }
    }
}

fn rates_of(from: &Name, to: &Name, both: bool, rates: &[&str], span: Span) -> Diagnostic {
    let (from, to) = (&from.text, &to.text);
    let (arrow, needs) = if both { ("<->", "two rates, there and back") } else { ("->", "one rate") };
    let has = match rates.len() {
        1 => "one".to_string(),
        2 => "two".to_string(),
        3 => "three".to_string(),
        more => more.to_string(),
    };
    let message = format!("`{from} {arrow} {to}` needs {needs}, and has {has}");
    let d = Diagnostic::new(Code::BadScheme, span, message, "");
    match (both, rates) {
        (true, [rate]) => {
            d.help(format!("write `{from} <-> {to} ({rate}, back)`, or `{from} -> {to} ({rate})` if none lead back"))
        }
        (false, [there, back]) => d.help(format!("write `{from} <-> {to} ({there}, {back})`")),
        _ => d,
    }
}

/// Names with commas; of many only the first ones.
fn listed(names: &[&str]) -> String {
    let shown: Vec<String> = names.iter().take(6).map(|n| format!("`{n}`")).collect();
    let more = if names.len() > 6 { ", ..." } else { "" };
    format!("{}{more}", shown.join(", "))
}
