//! What is probably wrong: magnitudes far outside of what neurons have.

use super::{Expr, Model, Symbol, SymbolKind};
use crate::diag::{Code, Diagnostic, Diagnostics};
use crate::units::Dim;

/// Dimension, last part of the name ("" for any), lowest and highest usual magnitude in canonical units, and the mistake
/// that is usually behind it.
const USUAL: &[(Dim, &str, f64, f64, &str)] = &[
    (Dim::CONDUCTANCE_DENSITY, "gbar", 0.0, 5000.0, "densities are mostly below 1 S/cm2; was mS/cm2 meant?"),
    (Dim::SPECIFIC_CAPACITANCE, "cm", 0.1, 20.0, "membranes have about 1 uF/cm2"),
    (Dim::VOLTAGE, "", 0.0, 500.0, "potentials of cells lie between -200 mV and 200 mV; was mV meant?"),
    (Dim::AREA, "area", 1e-9, 1.0, "cells have about 100 um2 to 100000 um2"),
    (Dim::TEMPERATURE, "", 263.0, 323.0, "living tissue is between 0 and 45 degC; was degC meant?"),
];

/// Warns about parameters and initial values with suspicious magnitudes.
pub(super) fn magnitudes(model: &Model, diagnostics: &mut Diagnostics) {
    let symbols = model
        .channels
        .iter()
        .flat_map(|c| &c.symbols)
        .chain(model.cells.iter().flat_map(|c| &c.symbols))
        .chain(model.network.iter().flat_map(|n| &n.params));
    for symbol in symbols {
        match &symbol.kind {
            SymbolKind::Param(e) | SymbolKind::State { init: e, gate: false, .. } => check(symbol, e, diagnostics),
            SymbolKind::Let(_)
            | SymbolKind::State { gate: true, .. }
            | SymbolKind::Port(_)
            | SymbolKind::Voltage
            | SymbolKind::Pool => {}
        }
    }
}

fn check(symbol: &Symbol, e: &Expr, diagnostics: &mut Diagnostics) {
    let Some(value) = super::expr::constant_of(e) else { return };
    let name = symbol.name.rsplit('.').next().unwrap_or(&symbol.name);
    for &(dim, last, low, high, hint) in USUAL {
        let fits = symbol.ty.dim() == dim && (last.is_empty() || last == name);
        if fits && value != 0.0 && !(low..=high).contains(&value.abs()) {
            let unit = dim.display_unit();
            let shown = format!("{} {}", unit.show(value), unit.name);
            diagnostics.push(
                Diagnostic::new(
                    Code::SuspiciousMagnitude,
                    e.span,
                    format!("`{}` = {shown} is far from what is usual", symbol.name),
                    format!("this is {shown}"),
                )
                .help(hint),
            );
        }
    }
}
