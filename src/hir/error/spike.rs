//! What can be wrong with a spike rule.

use super::member::no_change;
use crate::diag::{Code, Diagnostic, nearest};
use crate::hir::advice::usual_unit;
use crate::hir::scope::{Entry, Role, Scope};
use crate::hir::{Expr, Ty};
use crate::source::Span;
use crate::syntax::ast::Name;
use crate::units::Dim;

/// What is wrong with a spike rule.
pub(in crate::hir) enum SpikeError<'e> {
    /// The cell has one already.
    TwoRules { second: Span, first: Span },
    /// It says twice how long states are held.
    RefractoryTwice { span: Span },
    /// It sets or holds something of the cell that is no state.
    NotAState { name: &'e Name, does: &'static str, cell: &'e Scope<'e> },
    /// It holds a state twice.
    HeldTwice { name: &'e Name },
    /// It sets a state twice.
    SetTwice { name: &'e Name },
    /// It would spike in every step.
    NothingResets { span: Span, cell: &'e Scope<'e> },
    /// It waits for a condition to cross something.
    ConditionCrosses { span: Span },
    /// It waits for a quantity that is no condition.
    NotACondition { x: &'e Expr, cell: &'e Scope<'e> },
}

impl From<SpikeError<'_>> for Diagnostic {
    fn from(error: SpikeError<'_>) -> Diagnostic {
        use SpikeError as E;
        match error {
            E::TwoRules { second, first } => {
                Diagnostic::new(Code::BadSpike, second, "a cell has one `spike` rule", "the second")
                    .see(first, "the first")
                    .help("write one rule with two conditions: `spike when ... or ...`; a crossing stands alone")
            }
            E::RefractoryTwice { span } => {
                Diagnostic::new(Code::DuplicateKey, span, "`refractory` is given twice", "given again")
            }
            E::NotAState { name, does, cell } => not_a_state(name, does, cell),
            E::HeldTwice { name } => {
                Diagnostic::new(Code::DuplicateKey, name.span, format!("`{}` is held twice", name.text), "named again")
            }
            E::SetTwice { name } => {
                Diagnostic::new(Code::DuplicateKey, name.span, format!("`{}` is set twice", name.text), "set again")
            }
            E::NothingResets { span, cell } => {
                let message = "this condition would make a spike in every step in which it holds";
                let crossing = "write `x crosses level` to count upward crossings";
                // The voltages of compartments are not reset.
                let help = match a_state(cell).0 {
                    inside if inside.contains('.') => crossing.to_string(),
                    state => format!("{crossing}, or add a reset `{{ {state} = ... }}`"),
                };
                Diagnostic::new(Code::BadSpike, span, message, "nothing resets it").help(help)
            }
            E::ConditionCrosses { span } => {
                let message = "`crosses` compares two quantities, not conditions";
                Diagnostic::new(Code::WrongType, span, message, "a condition")
                    .help("write `spike when condition { v = ... }`")
            }
            E::NotACondition { x, cell } => {
                let message = "`spike when` needs a condition";
                let (state, level) = a_state(cell);
                let way = if state.contains('.') { "crosses" } else { ">" };
                Diagnostic::new(Code::WrongType, x.span, message, x.ty.dim().describe())
                    .help(format!("for example `spike when {state} {way} {level}`"))
            }
        }
    }
}

/// A state of a cell that spikes may depend on, a voltage if there is one, and a value of it.
fn a_state<'s>(cell: &'s Scope<'_>) -> (&'s str, String) {
    let dim = |e: &Entry<'_>| e.ty.map(Ty::dim).or(e.want.map(|want| want.0));
    let states = || cell.entries.iter().filter(|e| matches!(e.role, Role::State(_))).map(|e| (e.name.as_str(), dim(e)));
    let voltage = states().find(|state| state.1 == Some(Dim::VOLTAGE));
    match voltage.or_else(|| states().find(|state| state.1.is_some())) {
        Some((name, Some(Dim::VOLTAGE))) => (name, if name.contains('.') { "0 mV" } else { "-50 mV" }.into()),
        Some((name, Some(dim))) if dim.is_one() => (name, "1".into()),
        Some((name, Some(dim))) => (name, format!("1 {}", usual_unit(dim))),
        _ => ("v", "-50 mV".into()),
    }
}

fn not_a_state(name: &Name, does: &str, cell: &Scope<'_>) -> Diagnostic {
    let message = format!("a spike cannot {does} `{}`: it is not a state", name.text);
    let d = Diagnostic::new(Code::BadSpike, name.span, message, "not a state of this cell");
    let found = cell.get(&name.text).map(|id| cell.entry(id));
    if does == "hold" && found.is_some_and(|e| e.role == Role::Param) {
        return d.help("a parameter does not move: leave it out");
    }
    if let Some(param) = found.filter(|e| e.role == Role::Param) {
        let rate = no_change(param.ty);
        return d.help(format!("make it a state: `state {0} = ...` with `{0}' = {rate}`", name.text));
    }
    if name.text == "refractory" {
        return d.help("write `refractory 2 ms`, without a `=`");
    }
    if name.text == "v" && cell.not_values.values().any(|what| *what == "a compartment") {
        return d.help("only point neurons are reset; a compartment repolarizes by its channels");
    }
    let states = cell.entries.iter().filter(|e| matches!(e.role, Role::State { .. }));
    let states: Vec<&str> = states.map(|e| e.name.as_str()).collect();
    match nearest(&name.text, states.iter().copied()) {
        Some(near) => d.did_you_mean(&name.text, near),
        None if states.is_empty() => d,
        None => d.note(format!("its states are {}", states.join(", "))),
    }
}
