//! What can be wrong with junction models and with `connect` lines.

use super::instead;
use crate::connect::RULES;
use crate::diag::{Code, Diagnostic, nearest};
use crate::hir::Cell;
use crate::source::Span;
use crate::syntax::ast::Name;

/// What is wrong with a junction model or where it is used.
pub(in crate::hir) enum JunctionError<'e> {
    /// The current does not depend on a parameter.
    Unused { param: &'e Name },
    /// The model has no such parameter.
    UnknownParameter { junction: &'e Name, argument: &'e Name, known: &'e [&'e str] },
    /// A named expression of the model needs itself.
    NeedsItself { name: &'e Name },
    /// The model has no current.
    NoCurrent { junction: &'e Name },
    /// The model has two.
    TwoCurrents { second: Span },
    /// A side of a connection has several compartments.
    SeveralCompartments { side: Span },
    /// A side of a connection selects cells.
    Selection { side: Span },
    /// A side of a connection is no compartment.
    NotACompartment { cell: &'e Cell, path: &'e str, span: Span },
    /// A current flows into a compartment whose area is not known.
    NoArea { compartment: &'e str, side: Span },
    /// A current per area flows into a point neuron.
    OfArea { side: Span },
    /// A point neuron has no state `v`.
    NoVoltage { cell: &'e str, span: Span },
    /// What flows into a point neuron reaches none of its equations.
    NoCurrentRead { cell: &'e str, span: Span },
    /// A connection has no rule.
    NoRule { span: Span },
    /// The value of `rule` is none.
    NotARule { span: Span },
    /// An argument of a rule that says whether something may be is given in another way.
    NotYesOrNo { argument: &'static str, span: Span },
    /// No rule has the name.
    UnknownRule { name: &'e str, span: Span },
    /// `edges` without a file's name; one that stands near may be meant.
    NotAFile { example: Option<&'e str>, span: Span },
}

impl From<JunctionError<'_>> for Diagnostic {
    fn from(error: JunctionError<'_>) -> Diagnostic {
        use JunctionError as E;
        match error {
            E::Unused { param } => {
                let message = format!("parameter `{}` is never used", param.text);
                Diagnostic::new(Code::Unused, param.span, message, "the current does not depend on it")
            }
            E::UnknownParameter { junction, argument, known } => {
                let message = format!("junction `{}` has no parameter `{}`", junction.text, argument.text);
                let d = Diagnostic::new(Code::UnknownParameter, argument.span, message, "no such parameter");
                instead(d, &argument.text, known)
            }
            E::NeedsItself { name } => {
                let message = format!("`{}` depends on itself", name.text);
                Diagnostic::new(Code::CyclicDefinition, name.span, message, "needs its own value")
            }
            E::NoCurrent { junction } => {
                let message = format!("junction `{}` has no current", junction.text);
                Diagnostic::new(Code::MissingCurrent, junction.span, message, "no `current` line")
                    .help("add `current i = g * dv`, where dv is the voltage here minus the voltage there")
            }
            E::TwoCurrents { second } => {
                Diagnostic::new(Code::DuplicateKey, second, "a junction has one current", "a second `current` line")
            }
            E::SeveralCompartments { side } => {
                Diagnostic::new(Code::BadTarget, side, "each side of a connection is one compartment", "several")
            }
            E::Selection { side } => {
                let message = "the rule decides which cells are connected";
                Diagnostic::new(Code::BadTarget, side, message, "no selection of cells can stand here")
                    .help("give the pairs in a file: `rule = edges(\"pairs.csv\")`")
            }
            E::NotACompartment { cell, path, span } => not_a_compartment(cell, path, span),
            E::NoArea { compartment, side } => {
                let message =
                    format!("a current needs the area of the membrane, and compartment `{compartment}` has none");
                Diagnostic::new(Code::BadTarget, side, message, "no `area`")
                    .help("add an area such as `area = 1000 um2` to the compartment, or make the junction's current one per area")
            }
            E::OfArea { side } => {
                let message = "this current is one per area of the membrane, and a point neuron has none";
                Diagnostic::new(Code::BadTarget, side, message, "no area")
                    .help("make the junction's current one in amperes: `param g = 1 nS; current i = g * dv`")
            }
            E::NoVoltage { cell, span } => {
                let message = format!("a junction joins potentials, and cell `{cell}` has none");
                Diagnostic::new(Code::BadTarget, span, message, "no compartment, and no state `v` in mV")
            }
            E::NoCurrentRead { cell, span } => {
                let message = format!("what flows through this junction does not reach cell `{cell}`");
                Diagnostic::new(Code::BadTarget, span, message, "the cell does not read `i_syn`").help(
                    "`i_syn` is the sum of all currents out of a point neuron: `v' = (-g_l * (v - e_l) - i_syn) / c`",
                )
            }
            E::NoRule { span } => Diagnostic::new(Code::MissingKey, span, "which cells are connected?", "no `rule`")
                .help("say it in the braces of the line, such as `{ rule = one_to_one }`")
                .note(the_rules()),
            E::NotARule { span } => {
                Diagnostic::new(Code::BadValue, span, "this is not a connection rule", "not a rule").note(the_rules())
            }
            E::NotYesOrNo { argument, span } => {
                let message = format!("`{argument}` is not said by this");
                Diagnostic::new(Code::BadValue, span, message, "`true` or `false`")
                    .help(format!("write `{argument} = true`"))
            }
            E::UnknownRule { name, span } => {
                let message = format!("there is no connection rule `{name}`");
                let d = Diagnostic::new(Code::UnknownFunction, span, message, "not a rule");
                match nearest(name, RULES.iter().map(|r| r.name).chain(["edges"])) {
                    Some(near) => d.did_you_mean(name, near),
                    None => d.note(the_rules()),
                }
            }
            E::NotAFile { example, span } => {
                let (message, file) = ("`edges` needs the name of a file in quotes", example.unwrap_or("pairs.csv"));
                Diagnostic::new(Code::WrongArguments, span, message, "not a file's name").help(format!(
                    "write `edges(\"{file}\")`, or `edges(\"{file}\", column = \"gj\")` for one of several lists"
                ))
            }
        }
    }
}

fn not_a_compartment(cell: &Cell, path: &str, span: Span) -> Diagnostic {
    let known: Vec<&str> = cell.compartments.iter().map(|c| c.name.as_str()).collect();
    let lacks = match (path, &known[..]) {
        ("", []) => "none".to_string(),
        ("", _) => "several: name one".to_string(),
        (path, _) => format!("no `{path}`"),
    };
    let message = format!("a junction joins compartments, and cell `{}` has {lacks}", cell.name);
    let d = Diagnostic::new(Code::BadTarget, span, message, "not a compartment");
    match (path, &known[..]) {
        ("", []) => d,
        ("", known) => d.note(format!("it has {}", known.join(", "))),
        (path, known) => instead(d, path, known),
    }
}

fn the_rules() -> String {
    let names: Vec<&str> = RULES.iter().map(|r| r.name).collect();
    format!("the rules are {} and edges", names.join(", "))
}
