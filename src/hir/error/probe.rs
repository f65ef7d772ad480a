//! What can be wrong with probes, and with what is recorded of them.

use crate::diag::{Code, Diagnostic};
use crate::morphology::space::Sources;
use crate::source::Span;
use crate::syntax::ast::Name;

/// What is wrong with a probe.
pub(in crate::hir) enum ProbeError<'e> {
    /// It has no contact.
    NoContact { probe: &'e Name },
    /// A row of contacts has too few of them, or too many.
    Count { span: Span, most: usize },
    /// The contacts of a row are all at one place.
    OnePlace { span: Span },
    /// A coordinate is known in a run only.
    NotConstant { span: Span },
    /// `source` is none of those that there are.
    Source { span: Span },
    /// It is to hear a part of a population.
    Part { population: &'e str, span: Span },
    /// It is to hear a population twice.
    HeardTwice { population: &'e str, again: Span, first: Span },
    /// It is to hear cells without sections.
    NoSections { population: &'e str, cell: &'e str, span: Span },
    /// It is to hear cells of which a section has no place in space.
    NoPlace { cell: &'e str, section: &'e str, here: Span, span: Span },
    /// Something else than its potential is recorded.
    NotRecorded { probe: &'e str, span: Span },
    /// A section has no direction in `toward (0, 0, 0)`.
    NoDirection { span: Span },
}

impl From<ProbeError<'_>> for Diagnostic {
    fn from(error: ProbeError<'_>) -> Diagnostic {
        use ProbeError as E;
        match error {
            E::NoContact { probe } => {
                let message = format!("the probe `{}` has no contact", probe.text);
                Diagnostic::new(Code::MissingKey, probe.span, message, "it hears nothing").help(
                    "write `at (50 um, 0 um, 0 um)`, or a row of them: `from (50 um, -200 um, 0 um) to (50 um, 400 um, 0 um) in 16`",
                )
            }
            E::Count { span, most } => {
                let message = format!("a row has 2 to {most} contacts, both ends among them");
                Diagnostic::new(Code::BadValue, span, message, "no such number")
            }
            E::OnePlace { span } => Diagnostic::new(
                Code::BadValue,
                span,
                "a row of contacts begins where it ends",
                "both ends are one place",
            ),
            E::NotConstant { span } => {
                let message = "a place of a contact, or a direction, is not known before the run";
                Diagnostic::new(Code::NotConstant, span, message, "a number is needed, or a `const`")
            }
            E::Source { span } => {
                let known: Vec<String> = Sources::ALL.iter().map(|(name, _)| format!("`{name}`")).collect();
                let message = "this is not what compartments can be to a probe";
                Diagnostic::new(Code::BadValue, span, message, "no such source")
                    .help(format!("it is one of {}", known.join(", ")))
            }
            E::Part { population, span } => {
                let message = "a probe hears whole populations";
                Diagnostic::new(Code::BadTarget, span, message, "name the population only")
                    .help(format!("write `of {population}`"))
            }
            E::HeardTwice { population, again, first } => {
                let message = format!("the probe hears `{population}` already");
                Diagnostic::new(Code::DuplicateKey, again, message, "again").see(first, "named here")
            }
            E::NoSections { population, cell, span } => {
                let message = format!("there is no potential around `{population}`: `{cell}` has no sections");
                Diagnostic::new(Code::BadTarget, span, message, "cells without a shape")
                    .note("what flows into a cell of one point flows out of it at the same place")
                    .help("give the cell sections: `section dend { from soma(1); toward (0, 1, 0); length = 200 um; diam = 2 um }`")
            }
            E::NoPlace { cell, section, here, span } => {
                let message = format!("the section `{section}` of `{cell}` has no place in space");
                Diagnostic::new(Code::BadMorphology, span, message, "a probe hears where currents flow")
                    .see(here, "no place")
                    .help("say in which direction it goes, such as `toward (0, 1, 0)`, and so for those that it begins at")
            }
            E::NotRecorded { probe, span } => {
                Diagnostic::new(Code::UnknownName, span, "a probe has its potential only", "nothing that it hears")
                    .help(format!("write `record {probe}.potential`"))
            }
            E::NoDirection { span } => {
                Diagnostic::new(Code::BadMorphology, span, "(0, 0, 0) is no direction", "it leads nowhere")
                    .help("along y it is `toward (0, 1, 0)`; how long the vector is does not count")
            }
        }
    }
}
