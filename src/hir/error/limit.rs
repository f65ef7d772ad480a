//! What is too much.

use crate::diag::{Code, Diagnostic};
use crate::source::Span;

/// What the compiler gives up.
pub(in crate::hir) enum LimitError {
    /// Functions expand to more than fits a model.
    Large { span: Span },
    /// Functions expand to expressions of more operations on top of each other than `most`.
    High { span: Span, most: usize },
    /// Definitions contain each other too often.
    Deep { span: Span },
}

impl From<LimitError> for Diagnostic {
    fn from(error: LimitError) -> Diagnostic {
        use LimitError as E;
        match error {
            E::Large { span } => {
                let message = "the model becomes too large when its functions are expanded";
                Diagnostic::new(Code::TooDeep, span, message, "given up here")
            }
            E::High { span, most } => {
                let message = format!("more than {most} operations stand on top of each other");
                Diagnostic::new(Code::TooDeep, span, message, "given up here").help("name parts of it with `let`")
            }
            E::Deep { span } => {
                let message = "definitions or operations are nested too deeply";
                Diagnostic::new(Code::TooDeep, span, message, "given up here")
                    .help("define what is used before what uses it, and name parts of a long expression with `let`")
            }
        }
    }
}
