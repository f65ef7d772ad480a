//! What is probably wrong: magnitudes far outside of what neurons have.

use super::error::MemberError;
use super::lower::Lowerer;
use super::{Expr, StateKind, Symbol, SymbolKind};
use crate::units::Dim;

/// What is not known by its name alone: the amplitude of a stimulus, and the measures of a section.
const STIMULUS: &str = "stimulus.amplitude";
pub(super) const DIAMETER: &str = "section.diam";
pub(super) const LENGTH: &str = "section.length";

/// Dimension, last part of the name ("" for any), lowest and highest usual magnitude in canonical units, and the mistake
/// that is usually behind it.
const USUAL: &[(Dim, &str, f64, f64, &str)] = &[
    (Dim::CONDUCTANCE_DENSITY, "gbar", 0.0, 10000.0, "densities are mostly below 1 S/cm2; was mS/cm2 meant?"),
    (Dim::SPECIFIC_CAPACITANCE, "cm", 0.1, 20.0, "membranes have about 1 uF/cm2"),
    (Dim::VOLTAGE, "", 0.0, 500.0, "potentials of cells lie between -200 mV and 200 mV; was mV meant?"),
    (Dim::AREA, "area", 1e-9, 1.0, "cells have about 100 um2 to 100000 um2"),
    (Dim::CURRENT, STIMULUS, 0.0, 5.0, "currents into cells are mostly below 10 nA; was nA meant?"),
    (Dim::CURRENT_DENSITY, STIMULUS, 0.0, 5000.0, "membranes get about 1 to 100 uA/cm2; was uA/cm2 meant?"),
    (Dim::LENGTH, DIAMETER, 1e-6, 0.2, "diameters are mostly between 0.1 um and 100 um; was um meant?"),
    (Dim::LENGTH, LENGTH, 1e-6, 100.0, "sections are mostly between 1 um and 10 mm long; was um meant?"),
    (Dim::TEMPERATURE, "", 263.0, 323.0, "living tissue is between 0 and 45 degC; was degC meant?"),
];

impl Lowerer<'_> {
    /// Warns of parameters and initial values of the main file with suspicious magnitudes.
    pub(super) fn warn_magnitudes(&mut self, symbols: &[Symbol]) {
        for symbol in symbols {
            match &symbol.kind {
                SymbolKind::Param(e) | SymbolKind::State { init: e, kind: StateKind::Plain | StateKind::Pool, .. } => {
                    let name = symbol.name.rsplit('.').next().unwrap_or(&symbol.name);
                    self.warn_magnitude(name, e, symbol.ty.dim());
                }
                SymbolKind::Let(_)
                | SymbolKind::State { kind: StateKind::Gate, .. }
                | SymbolKind::Port(_)
                | SymbolKind::Voltage
                | SymbolKind::Pool => {}
            }
        }
    }

    /// The same of stimuli, whose arguments are parameters of a network with a dot in their names.
    pub(super) fn warn_stimuli(&mut self, params: &[Symbol]) {
        for param in params.iter().filter(|param| param.name.ends_with(".amplitude")) {
            if let SymbolKind::Param(e) = &param.kind {
                self.warn_magnitude(STIMULUS, e, param.ty.dim());
            }
        }
    }

    /// Warns of a value with a suspicious magnitude.
    pub(super) fn warn_magnitude(&mut self, name: &str, e: &Expr, own: Dim) {
        let Some(value) = super::expr::constant_of(e) else { return };
        // A value that is wrong has no magnitude.
        if !self.is_main_place(e.span) || self.diagnostics.has_error_at(e.span) {
            return;
        }
        for &(dim, last, low, high, hint) in USUAL {
            let fits = own == dim && (last.is_empty() || last == name);
            // What is negative is outside of its domain, which is said.
            let magnitude = if dim == Dim::VOLTAGE { value.abs() } else { value };
            if fits && magnitude > 0.0 && !(low..=high).contains(&magnitude) {
                let value = (value, dim.display_unit());
                let name = name.rsplit('.').next().unwrap_or(name);
                self.error(MemberError::Unusual { name, value, hint, span: e.span });
            }
        }
    }
}
