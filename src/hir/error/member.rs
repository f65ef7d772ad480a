//! What can be wrong with parameters, named expressions, states and equations.

use crate::diag::{Code, Diagnostic};
use crate::hir::scope::{Entry, Role};
use crate::hir::{StateKind, Ty};
use crate::source::Span;
use crate::syntax::ast::Name;
use crate::units::{Dim, DisplayUnit};

/// What is wrong with a member of a channel, a cell or a network.
pub(in crate::hir) enum MemberError<'e> {
    /// A state begins with nothing.
    NoInitialValue { state: &'e Name, unit: Option<&'e str> },
    /// An equation is not that of a state.
    NotAState { equation: &'e Name, about: About<'e> },
    /// A state has two equations.
    TwoEquations { equation: &'e Name, first: Span },
    /// A state has none.
    NoEquation { state: &'e Entry<'e> },
    /// Nothing depends on a member of the block.
    Unused { member: &'e Entry<'e>, block: &'static str },
    /// A parameter depends on what changes in a run.
    Changes { parameter: &'e str, what: &'e str, place: Span },
    /// A value is far from what neurons have; `hint` says what they have.
    Unusual { name: &'e str, value: (f64, DisplayUnit), hint: &'static str, span: Span },
}

/// What an equation that is not that of a state is about.
pub(in crate::hir) enum About<'e> {
    /// Something else of this name.
    Other(&'e Entry<'e>),
    /// Probably this state, which has no equation.
    State(&'e str, Span),
    /// The voltage of a compartment.
    Voltage,
    /// Nothing that is known.
    Unknown,
}

impl From<MemberError<'_>> for Diagnostic {
    fn from(error: MemberError<'_>) -> Diagnostic {
        use MemberError as E;
        match error {
            E::NoInitialValue { state, unit } => no_initial_value(state, unit),
            E::NotAState { equation, about } => not_a_state(equation, &about),
            E::TwoEquations { equation, first } => {
                let message = format!("`{}` has two equations", equation.text);
                Diagnostic::new(Code::DuplicateKey, equation.span, message, "a second equation")
                    .see(first, "the first")
                    .help("add both right-hand sides in one equation")
            }
            E::NoEquation { state } => no_equation(state),
            E::Unused { member, block } => unused(member, block),
            E::Changes { parameter, what, place } => {
                let message = format!("parameter `{parameter}` depends on `{what}`, which changes in a run");
                let d = Diagnostic::new(Code::NotConstant, place, message, "not known before the run");
                match parameter {
                    "cm" | "ra" | "area" | "v_init" => d.help(format!("`{parameter}` is one number for the whole run")),
                    _ => d.help(format!("a quantity that follows from states is a `let`: `let {parameter} = ...`")),
                }
            }
            E::Unusual { name, value: (value, unit), hint, span } => {
                let shown = format!("{} {}", unit.show(value), unit.name);
                let message = format!("`{name}` = {shown} is far from what is usual");
                Diagnostic::new(Code::SuspiciousMagnitude, span, message, format!("this is {shown}")).help(hint)
            }
        }
    }
}

fn no_initial_value(state: &Name, unit: Option<&str>) -> Diagnostic {
    let message = format!("state `{}` has no initial value", state.text);
    let declared = unit.map(|u| format!(": {u}")).unwrap_or_default();
    let value = match unit {
        Some("mV") => "-65 mV".to_string(),
        Some("1") => "0".to_string(),
        Some(u) => format!("0 {u}"),
        None => "...".to_string(),
    };
    Diagnostic::new(Code::MissingInit, state.span, message, "there are no silent zeros")
        .help(format!("write it behind the state: `state {}{declared} = {value}`", state.text))
}

fn not_a_state(equation: &Name, about: &About<'_>) -> Diagnostic {
    let name = equation.text.as_str();
    let message = format!("`{name}` is not a state");
    let d = Diagnostic::new(Code::EquationWithoutState, equation.span, message, "an equation needs a state");
    match about {
        About::Other(Entry { role: Role::Voltage, .. }) => {
            d.help("a channel contributes a current; the compartment's voltage follows from all of them")
        }
        About::Other(entry) => {
            let (is, help) = instead_of_a_state(entry.role, name);
            d.see(entry.span, format!("it is {is}")).help(help)
        }
        About::State(near, span) => d
            .see(*span, "this state has no equation")
            .help(format!("did you mean `{near}'`?"))
            .fix(equation.span, name, *near),
        About::Voltage => {
            d.help("the voltage of a compartment follows from its `cm` and its currents and needs no equation")
        }
        About::Unknown => {
            let example = if name.starts_with(['v', 'V']) { "mV = -65 mV" } else { "nA = 0 nA" };
            d.help(format!("declare it with its unit and initial value, for example `state {name}: {example}`"))
        }
    }
}

/// What something is that has an equation but is no state, and what is done about it.
fn instead_of_a_state(role: Role, name: &str) -> (&'static str, String) {
    match role {
        Role::Param => {
            ("a parameter", format!("make it a state: `state {name} = ...` instead of `param {name} = ...`"))
        }
        Role::Let => {
            ("a named expression", "a named expression follows from others and has no equation of its own".into())
        }
        Role::State(StateKind::Gate) => {
            ("a gate", "a gate's equation follows from its `alpha` and `beta`, or `inf` and `tau`".into())
        }
        Role::Pool => ("a pool", "the pool's equation stands in its compartment".into()),
        Role::Port(_) => ("an input", "an input is driven by the network".into()),
        Role::Voltage => ("the voltage", String::new()),
        Role::State(StateKind::Plain | StateKind::Pool) => ("a state", String::new()),
    }
}

fn no_equation(state: &Entry<'_>) -> Diagnostic {
    let message = format!("state `{}` has no equation", state.name);
    let short = state.short_name();
    let zero = no_change(state.ty);
    Diagnostic::new(Code::MissingEquation, state.span, message, "it would never change")
        .help(format!("write `{short}' = ...`; if only spikes change it, write `{short}' = {zero}`"))
}

/// The rate of something of a type that does not change.
pub(super) fn no_change(ty: Option<Ty>) -> String {
    match ty {
        // A time per time.
        Some(Ty::Real(Dim::TIME)) => "0".to_string(),
        Some(Ty::Real(dim)) => format!("0 {}", dim.over(Dim::TIME).display_unit().name),
        Some(Ty::Bool) | None => "0 /ms".to_string(),
    }
}

fn unused(member: &Entry<'_>, block: &str) -> Diagnostic {
    let short = member.short_name();
    let (kind, help) = match member.role {
        Role::Param => ("parameter", format!("remove it, or use `{short}` in an expression")),
        Role::Pool => ("pool", format!("remove `reads {short}`")),
        Role::Port(_) => ("input", format!("remove it, or use `{short}` in an equation: what drives it does nothing")),
        Role::State(StateKind::Gate) => ("gate", format!("use `{short}` in the `current` line, or remove it")),
        Role::Let | Role::State { .. } | Role::Voltage => {
            ("named expression", format!("remove it, or use `{short}` in an expression"))
        }
    };
    let message = format!("{kind} `{}` is never used", member.name);
    let label = format!("nothing in this {block} depends on it");
    Diagnostic::new(Code::Unused, member.span, message, label).help(help)
}
