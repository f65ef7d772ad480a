//! Which methods solve cables.
//!
//! In comes a flat model with its method; out goes an error for each cable that it does not solve.
//! Never true here: a method is replaced by another.

use super::Model;
use crate::diag::{Code, Diagnostic};
use crate::hir::Method;

/// Errors where a cell has sections and the method does not solve cables.
pub fn not_solved(model: &Model) -> Vec<Diagnostic> {
    match model.method {
        Method::Cnexp | Method::CrankNicolson | Method::Adaptive => return Vec::new(),
        Method::Euler | Method::ExpEuler | Method::Exact | Method::Heun | Method::Rk4 => {}
    }
    let error = |cable: &super::Cable| {
        let name = &model.populations[model.cells_of(cable.population)].name;
        let message = format!("`{}` does not solve the cables of `{name}`", model.method.name());
        let d = Diagnostic::new(Code::CableMethod, cable.span, message, "a cell with sections");
        let d = match model.method {
            Method::ExpEuler if !model.names_method => d.note("`exp_euler` is the method of a run that names none"),
            _ => d,
        };
        d
            .help("write `method = cnexp`: backward Euler along the cable, exponentials for gates; `crank_nicolson` is of order 2")
    };
    model.cables.iter().map(error).collect()
}
