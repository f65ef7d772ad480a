//! What is too much, or not compiled.

use crate::diag::{Code, Diagnostic};
use crate::source::Span;

/// What the compiler gives up.
pub(in crate::hir) enum LimitError {
    /// Functions expand to more than fits a model.
    TooLarge { span: Span },
    /// Functions expand to expressions of more operations on top of each other than `most`.
    TooHigh { span: Span, most: usize },
    /// Definitions contain each other too often.
    TooDeep { span: Span },
    /// The language has it, this version has not.
    Unsupported { what: &'static str, span: Span },
}

impl From<LimitError> for Diagnostic {
    fn from(error: LimitError) -> Diagnostic {
        use LimitError as E;
        match error {
            E::TooLarge { span } => {
                let message = "the model becomes too large when its functions are expanded";
                Diagnostic::new(Code::TooDeep, span, message, "given up here")
            }
            E::TooHigh { span, most } => {
                let message =
                    format!("more than {most} operations stand on top of each other when functions are expanded");
                Diagnostic::new(Code::TooDeep, span, message, "given up here").help("name parts of it with `let`")
            }
            E::TooDeep { span } => {
                let message = "definitions are nested too deeply";
                Diagnostic::new(Code::TooDeep, span, message, "given up here")
                    .help("define what is used before what uses it")
            }
            E::Unsupported { what, span } => {
                let message = format!("{what} cannot be compiled by this version");
                Diagnostic::new(Code::Unsupported, span, message, "understood, but not compiled")
            }
        }
    }
}
