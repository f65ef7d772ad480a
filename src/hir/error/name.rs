//! What can be wrong with names.

use crate::diag::{Code, Diagnostic};
use crate::source::Span;
use crate::syntax::ast::Name;

/// What may be meant by a name that is not known.
pub(in crate::hir) enum NameHelp {
    /// Another name.
    Meant(String),
    /// Something else.
    Said(String),
}

/// What is wrong with a name.
pub(in crate::hir) enum NameError<'e> {
    /// It is defined already, there if that has a place.
    Twice { name: &'e Name, first: Option<Span> },
    /// It has a fixed meaning, perhaps as a function.
    Reserved { name: &'e Name, function: bool },
    /// It means nothing where it is used.
    Unknown { name: &'e str, span: Span, help: Option<NameHelp> },
    /// It means something with quantities inside, not one of them.
    NotAValue { name: &'e str, span: Span, what: &'static str, inside: Vec<&'e str> },
    /// It means an item of the file that has no value.
    ItemWithoutValue { name: &'e str, span: Span, item: &'static str },
    /// `steady_state` of a state without a unit.
    SteadyStateOfWhat { span: Span },
    /// It has a meaning only while a model runs.
    NotConstant { name: &'e str, span: Span },
    /// What it means needs itself, by way of others; `user` closes the circle.
    Cycle {
        what: &'static str,
        first: &'e (String, Span),
        others: &'e [(String, Span)],
        user: Span,
        help: &'static str,
    },
}

impl From<NameError<'_>> for Diagnostic {
    fn from(error: NameError<'_>) -> Diagnostic {
        use NameError as E;
        match error {
            E::Twice { name, first } => {
                let message = format!("`{}` is defined twice", name.text);
                let d = Diagnostic::new(Code::DuplicateName, name.span, message, "defined again");
                first.into_iter().fold(d, |d, first| d.see(first, "first defined here"))
            }
            E::Reserved { name, function } => {
                let message = format!("`{}` has a fixed meaning and cannot be defined", name.text);
                let label = if function { "a built-in function" } else { reserved_meaning(&name.text) };
                Diagnostic::new(Code::ReservedName, name.span, message, label)
                    .help(format!("choose another name, such as `{}_0`", name.text))
            }
            E::Unknown { name, span, help } => {
                let d = Diagnostic::new(Code::UnknownName, span, format!("`{name}` is not known here"), "not defined");
                match help {
                    Some(NameHelp::Meant(near)) => d.did_you_mean(name, &near),
                    Some(NameHelp::Said(help)) => d.help(help),
                    None => d,
                }
            }
            E::NotAValue { name, span, what, inside } => {
                let message = format!("`{name}` is {what}, not a value");
                let d = Diagnostic::new(Code::NotAValue, span, message, "name one of its quantities");
                let paths: Vec<String> = inside.iter().map(|rest| format!("`{name}.{rest}`")).collect();
                if paths.is_empty() { d } else { d.help(format!("it has {}", paths.join(", "))) }
            }
            E::ItemWithoutValue { name, span, item } => {
                let message = format!("`{name}` is {item}, not a value");
                Diagnostic::new(Code::NotAValue, span, message, format!("{item} cannot be calculated with"))
            }
            E::SteadyStateOfWhat { span } => {
                let message = "the dimension of this state is not known";
                Diagnostic::new(Code::MissingUnit, span, message, "a steady state has the unit of its state")
                    .help("declare it: `state x: mV = steady_state`, `pool Ca: mM { init = steady_state; ... }`")
            }
            E::NotConstant { name, span } => {
                let message = format!("`{name}` is not known before the run");
                let label = format!("{} is not a constant", running_meaning(name));
                Diagnostic::new(Code::NotConstant, span, message, label)
                    .help("only numbers, functions and constants can stand here")
            }
            E::Cycle { what, first, others, user, help } => cycle(what, first, others, user).help(help),
        }
    }
}

/// What a reserved name means.
fn reserved_meaning(name: &str) -> &'static str {
    match name {
        "v" => "the voltage",
        "t" => "the time",
        "celsius" => "the temperature of the run",
        "pi" => "the number 3.14159...",
        "index" => "the number of a cell in its population",
        "dt" => "the time step of the run",
        "distance" => "how far it is between the two cells of a connection, or from the root of a cell",
        "cm" => "the capacitance of the membrane",
        "ra" => "the resistivity inside",
        "area" => "the membrane's area",
        "all" => "all sections of a cell",
        "i_syn" => "the input current of a point neuron",
        _ => "a reserved name",
    }
}

/// What a name means that is known while a model runs.
fn running_meaning(name: &str) -> &'static str {
    match name {
        "v" => "a voltage",
        "t" => "the time",
        "index" => "the number of a cell",
        _ => "the temperature of a run",
    }
}

fn cycle(what: &str, first: &(String, Span), others: &[(String, Span)], user: Span) -> Diagnostic {
    let (name, span) = first;
    let message = format!("{what}`{name}` depends on itself");
    let mut d = Diagnostic::new(Code::CyclicDefinition, *span, message, "defined here");
    if !others.is_empty() {
        let circle = [first].into_iter().chain(others).chain([first]);
        let names: Vec<String> = circle.map(|c| format!("`{}`", c.0)).collect();
        d = d.note(format!("{} (each needs the next)", names.join(" -> ")));
    }
    d.see(user, "needed here for its own value")
}
