//! What can be wrong with a cell and its compartments.

use super::instead;
use crate::diag::{Code, Diagnostic};
use crate::source::Span;
use crate::syntax::ast::Name;

/// What is wrong with a cell or a compartment.
pub(in crate::hir) enum CellError<'e> {
    /// It has neither a compartment nor a state.
    Nothing { cell: &'e Name },
    /// A compartment lacks a key.
    Lacks { compartment: &'e Name, key: &'static str, example: &'static str },
    /// A compartment lacks its area, and has a current that is no density.
    LacksArea { compartment: &'e str, span: Span, current: Span },
    /// A pool begins with nothing.
    EmptyPool { pool: &'e Name, unit: Option<&'e str> },
    /// Ions of a compartment that is written by hand diffuse.
    DiffusesNowhere { pool: &'e Name, key: &'e Name },
    /// A coupling names no compartment.
    UnknownCompartment { name: &'e Name, known: &'e [&'e str] },
    /// A coupling of a compartment with itself; `other` is another one, if there is one.
    CoupledToItself { into: &'e Name, other: Option<&'e str>, conductance: &'e str, span: Span },
    /// A coupling is there already.
    CoupledTwice { into: &'e Name, from: &'e Name, again: Span, first: Span },
    /// A coupling without one of the other direction; as it is written.
    OneDirection { into: &'e Name, from: &'e Name, conductance: &'e str, span: Span },
    /// Something of the compartment has the name of the current of a coupling.
    CouplingTaken { into: &'e Name, from: &'e Name, coupling: Span, taken: Span },
}

impl From<CellError<'_>> for Diagnostic {
    fn from(error: CellError<'_>) -> Diagnostic {
        use CellError as E;
        match error {
            E::Nothing { cell } => {
                let message = format!("cell `{}` has neither a compartment nor a state", cell.text);
                Diagnostic::new(Code::MissingKey, cell.span, message, "nothing would change in time")
                    .help("add `compartment soma { ... }`, or `state v: mV = -65 mV` and `v' = ...`")
            }
            E::Lacks { compartment, key, example } => {
                let message = format!("compartment `{}` lacks `{key}`", compartment.text);
                Diagnostic::new(Code::MissingKey, compartment.span, message, "needed to integrate its voltage")
                    .help(format!("add `{example}`"))
            }
            E::LacksArea { compartment, span, current } => {
                let message = format!("compartment `{compartment}` lacks `area`");
                let label = "needed to turn a current into a current density";
                Diagnostic::new(Code::MissingKey, span, message, label)
                    .see(current, "this is a current, not a density")
                    .help("add `area = 1000 um2`")
            }
            E::EmptyPool { pool, unit } => {
                let message = format!("pool `{}` has no initial value", pool.text);
                let example = unit.map_or("0.05".to_string(), |unit| format!("0 {unit}"));
                Diagnostic::new(Code::MissingInit, pool.span, message, "there are no silent zeros")
                    .help(format!("add `init = {example}` to it"))
            }
            E::DiffusesNowhere { pool, key } => {
                let message = format!("the ions of pool `{}` have no section to diffuse along", pool.text);
                let pool = &pool.text;
                Diagnostic::new(Code::BadMorphology, key.span, message, "only in a region of a cell with sections")
                    .note("compartments that are written by hand have no length, and `couple` couples their voltages alone")
                    .help(format!("write what flows as part of the equation: `{pool}' = ... + k * (other.{pool} - {pool})`"))
            }
            E::UnknownCompartment { name, known } => {
                let message = format!("the cell has no compartment `{}`", name.text);
                let d = Diagnostic::new(Code::BadCoupling, name.span, message, "no such compartment");
                instead(d, &name.text, known)
            }
            E::CoupledToItself { into, other, conductance, span } => {
                let message = format!("`{}` is coupled to itself", into.text);
                let other = other.unwrap_or("dend");
                Diagnostic::new(Code::BadCoupling, span, message, "two compartments are needed")
                    .help(format!("for example `couple {} <- {other}: {conductance}`", into.text))
            }
            E::OneDirection { into, from, conductance, span } => {
                let (into, from) = (&into.text, &from.text);
                let message = format!("`{into}` is coupled to `{from}`, but not `{from}` to `{into}`");
                let label = format!("`{from}` does not lose what `{into}` gets");
                Diagnostic::new(Code::OneDirection, span, message, label)
                    .help(format!("add `couple {from} <- {into}: {conductance}`, as a density of `{from}`"))
            }
            E::CouplingTaken { into, from, coupling, taken } => {
                let message = format!("`i_{}` in `{}` is the current of a coupling", from.text, into.text);
                Diagnostic::new(Code::DuplicateName, taken, message, "this name is taken")
                    .see(coupling, "the current of this coupling")
                    .help(format!("choose another name, such as `i_{}_0`", from.text))
            }
            E::CoupledTwice { into, from, again, first } => {
                let message = format!("`{}` is coupled to `{}` twice", into.text, from.text);
                Diagnostic::new(Code::BadCoupling, again, message, "again")
                    .see(first, "first")
                    .help(format!("the other direction is `couple {} <- {}: g`", from.text, into.text))
            }
        }
    }
}
