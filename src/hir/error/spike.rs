//! What can be wrong with a spike rule.

use super::member::no_change;
use crate::diag::{Code, Diagnostic, nearest};
use crate::hir::Expr;
use crate::hir::scope::{Role, Scope};
use crate::source::Span;
use crate::syntax::ast::Name;

/// What is wrong with a spike rule.
pub(in crate::hir) enum SpikeError<'e> {
    /// The cell has one already.
    TwoRules { second: Span, first: Span },
    /// It says twice how long states are held.
    RefractoryTwice { span: Span },
    /// It sets something of the cell that is no state.
    NotAState { name: &'e Name, cell: &'e Scope<'e> },
    /// It sets a state twice.
    SetTwice { name: &'e Name },
    /// It would spike in every step.
    NothingResets { span: Span },
    /// It waits for a condition to cross something.
    ConditionCrosses { span: Span },
    /// It waits for a quantity that is no condition.
    NotACondition { x: &'e Expr },
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
            E::NotAState { name, cell } => not_a_state(name, cell),
            E::SetTwice { name } => {
                Diagnostic::new(Code::DuplicateKey, name.span, format!("`{}` is set twice", name.text), "set again")
            }
            E::NothingResets { span } => {
                let message = "this condition would make a spike in every step in which it holds";
                Diagnostic::new(Code::BadSpike, span, message, "nothing resets it")
                    .help("write `x crosses level` to count upward crossings, or add a reset `{ v = ... }`")
            }
            E::ConditionCrosses { span } => {
                let message = "`crosses` compares two quantities, not conditions";
                Diagnostic::new(Code::WrongType, span, message, "a condition")
                    .help("write `spike when condition { v = ... }`")
            }
            E::NotACondition { x } => {
                let message = "`spike when` needs a condition";
                Diagnostic::new(Code::WrongType, x.span, message, x.ty.dim().describe())
                    .help("for example `spike when v > -50 mV` or `spike when soma.v crosses 0 mV`")
            }
        }
    }
}

fn not_a_state(name: &Name, cell: &Scope<'_>) -> Diagnostic {
    let message = format!("a spike cannot set `{}`: it is not a state", name.text);
    let d = Diagnostic::new(Code::BadSpike, name.span, message, "not a state of this cell");
    let found = cell.get(&name.text).map(|id| cell.entry(id));
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
