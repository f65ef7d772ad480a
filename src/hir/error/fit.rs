//! What can be wrong with a fit block.

use super::instead;
use crate::diag::{Code, Diagnostic};
use crate::source::Span;
use crate::units::Dim;

/// What is wrong with a fit block.
pub(in crate::hir) enum FitError<'e> {
    /// There are two.
    TwoBlocks { second: Span, first: Span },
    /// No `free` line.
    NothingFree { span: Span },
    /// No `target` line.
    NoTarget { span: Span },
    /// A record without a file.
    NotAFile { of: &'e str, span: Span },
    /// A trace with `within`.
    TraceWithin { span: Span },
    /// A trace with a time window.
    TraceWindow { of: &'e str, span: Span },
    /// A time window without a time in it (ms).
    Window { first: f64, last: f64, span: Span },
    /// There is no feature of this name.
    UnknownFeature { name: &'e str, known: &'e [&'e str], span: Span },
    /// There is no search of this name.
    UnknownSearch { name: &'e str, known: &'e [&'e str], span: Span },
    /// A feature has no gradient.
    NoGradient { search: Span, target: Span },
    /// No number is known before the run.
    NotConstant { span: Span },
    /// A number has the wrong dimension.
    Dimension { got: Dim, wanted: Dim, span: Span },
    /// The numbers of a file have another dimension.
    FileDimension { got: Dim, wanted: Dim, span: Span },
    /// What is allowed is nothing.
    Within { span: Span },
    /// Zero, and nothing says what is near to it.
    NoWithin { feature: &'e str, of: &'e str, span: Span },
    /// No number to count with.
    Count { what: &'static str, value: f64, most: f64, span: Span },
}

impl From<FitError<'_>> for Diagnostic {
    fn from(error: FitError<'_>) -> Diagnostic {
        use FitError as E;
        match error {
            E::TwoBlocks { second, first } => {
                Diagnostic::new(Code::DuplicateKey, second, "there are two `fit` blocks", "the second")
                    .see(first, "the first")
            }
            E::NothingFree { span } => {
                Diagnostic::new(Code::MissingKey, span, "no parameter is free", "no `free` line in this block")
                    .help("add `free Na.gbar = 50 .. 300 mS/cm2`, with the name of a parameter")
            }
            E::NoTarget { span } => Diagnostic::new(
                Code::MissingKey,
                span,
                "there is nothing to come near to",
                "no `target` line in this block",
            )
            .help(
                "add `target squid.axon.v = \"trace.csv\"` for a trace, or `target rate(squid) = 40 Hz` for a number",
            ),
            E::NotAFile { of, span } => Diagnostic::new(
                Code::BadValue,
                span,
                format!("`{of}` needs the name of a file with its trace"),
                "not a text in quotes",
            )
            .help(format!(
                "write `\"trace.csv\"` here, or a number that is read out of it: `target max({of}) = 40 mV`"
            )),
            E::TraceWithin { span } => {
                Diagnostic::new(Code::BadValue, span, "a trace is compared by its variance", "not needed")
                    .help("leave `within` out")
            }
            E::TraceWindow { of, span } => {
                let message = "a trace is compared at the samples of its record";
                Diagnostic::new(Code::BadValue, span, message, "no time window of its own")
                    .help(format!("say in the run which times count: `record {of} from 20 ms to 80 ms`"))
            }
            E::Window { first, last, span } => {
                let message = format!("nothing can be read out from {first} ms to {last} ms");
                Diagnostic::new(Code::BadValue, span, message, "no such time window")
                    .help("a window begins at 0 ms or later, and ends after that: `from 100 ms to 200 ms`")
            }
            E::UnknownFeature { name, known, span } => {
                let message = format!("there is no `{name}` that is read out of a run");
                instead(Diagnostic::new(Code::BadValue, span, message, "not known"), name, known)
            }
            E::UnknownSearch { name, known, span } => {
                let message = match name {
                    "" => "this is no search".to_owned(),
                    name => format!("there is no search `{name}`"),
                };
                instead(Diagnostic::new(Code::BadValue, span, message, "not known"), name, known)
            }
            E::NoGradient { search, target } => {
                Diagnostic::new(Code::BadValue, search, "`lbfgs` needs gradients", "a search with gradients")
                    .see(target, "a number that is read out of a run has none")
                    .help("write `search = nelder_mead`")
            }
            E::NotConstant { span } => {
                Diagnostic::new(Code::BadValue, span, "a number is needed here", "not known before the run")
            }
            E::Dimension { got, wanted, span } => {
                let message = format!("this is {}, where {} is needed", got.describe(), wanted.describe());
                let d = Diagnostic::new(Code::DimensionMismatch, span, message, got.describe());
                match wanted.display_unit().name.as_str() {
                    "1" => d.help("write a number without a unit"),
                    unit => d.help(format!("write it in {unit}")),
                }
            }
            E::FileDimension { got, wanted, span } => {
                let message =
                    format!("a number of this file is {}, where {} is needed", got.describe(), wanted.describe());
                let unit = wanted.display_unit().name;
                Diagnostic::new(Code::DimensionMismatch, span, message, got.describe())
                    .help(format!("multiply by what its 1 means: `file(\"values.csv\") * 1 {unit}`"))
            }
            E::Within { span } => {
                Diagnostic::new(Code::BadValue, span, "`within` is greater than zero", "how far off counts 1")
            }
            E::NoWithin { feature, of, span } => Diagnostic::new(
                Code::MissingKey,
                span,
                "a tenth of zero says nothing of how near is near",
                "zero",
            )
            .help(format!(
                "say what counts as far behind the value, in its unit: `target {feature}({of}) = 0 ... within ...`"
            )),
            E::Count { what, value, most, span } => Diagnostic::new(
                Code::BadValue,
                span,
                format!("`{what}` cannot be {value}"),
                format!("a whole number from 1 to {most} is needed"),
            ),
        }
    }
}
