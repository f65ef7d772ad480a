//! What can be wrong with a train block.

use super::instead;
use crate::diag::{Code, Diagnostic};
use crate::source::Span;

/// What is wrong with a train block.
pub(in crate::hir) enum TrainError<'e> {
    /// There are two.
    TwoBlocks { second: Span, first: Span },
    /// A key is missing.
    NoKey { key: &'static str, example: &'static str, span: Span },
    /// No `learn` line.
    NothingLearns { span: Span },
    /// Some cells of what learns are chosen.
    PartOf { span: Span },
    /// `data` is no text.
    NotAFile { key: &'static str, example: &'static str, span: Span },
    /// A frame does not last for a time.
    NotATime { span: Span },
    /// A name of the network is needed.
    NotAName { span: Span },
    /// There is no loss, readout, optimizer, schedule or surrogate of this name.
    Unknown { what: &'static str, name: &'e str, known: &'e [&'static str], span: Span },
    /// No argument has the name.
    Argument { of: &'e str, name: &'e str, known: &'e [&'e str], span: Span },
    /// There is a second argument without a name; one that has a name.
    TooMany { name: &'e str, example: Option<&'e str>, span: Span },
    /// A loss without what it reads.
    NoReadout { loss: &'e str, span: Span },
    /// A mean square without what it compares with.
    NoTargets { span: Span },
    /// An argument that has no usual value is missing.
    Missing { of: &'e str, argument: &'e str, span: Span },
    /// `reset` is neither of two words.
    Reset { span: Span },
    /// `gradient` is neither of two words.
    Gradient { span: Span },
    /// A learning rate of delays, of which none learn.
    NoDelays { span: Span },
    /// The loss of test samples is waited for, and there are none.
    NoTests { span: Span },
    /// The classes of test samples that have no file.
    LabelsOfNone { span: Span },
    /// A number is out of its range.
    Number { what: &'e str, value: f64, needed: &'static str, span: Span },
    /// No number is known before the run.
    NotConstant { what: &'e str, span: Span },
}

impl From<TrainError<'_>> for Diagnostic {
    fn from(error: TrainError<'_>) -> Diagnostic {
        use TrainError as E;
        match error {
            E::TwoBlocks { second, first } => {
                Diagnostic::new(Code::DuplicateKey, second, "there are two `train` blocks", "the second")
                    .see(first, "the first")
            }
            E::NoKey { key, example, span } => {
                Diagnostic::new(Code::MissingKey, span, format!("the `train` block has no `{key}`"), "in this block")
                    .help(format!("add `{example}`"))
            }
            E::NothingLearns { span } => {
                Diagnostic::new(Code::MissingKey, span, "nothing learns", "no `learn` line in this block")
                    .help("add `learn a.b.Synapse.weight`, with the names of a connection")
            }
            E::PartOf { span } => {
                Diagnostic::new(Code::BadTarget, span, "all of a projection learns, or nothing", "a part is chosen")
            }
            E::NotAFile { key, example, span } => {
                let message = format!("`{key}` must be the name of a file");
                Diagnostic::new(Code::BadValue, span, message, "not a text in quotes")
                    .help(format!("write `{example}`"))
            }
            E::NotATime { span } => {
                Diagnostic::new(Code::BadValue, span, "a frame lasts for a time above zero", "not such a time")
                    .help("write `frame = 1 ms`")
            }
            E::NotAName { span } => {
                Diagnostic::new(Code::BadTarget, span, "a name of the network is needed here", "this is none")
                    .help("write names with dots, such as `pixels.x` or `out`")
            }
            E::Unknown { what, name, known, span } => {
                let message = match name {
                    "" => format!("this is no {what}"),
                    name => format!("there is no {what} `{name}`"),
                };
                let d = Diagnostic::new(Code::BadValue, span, message, "not known");
                match crate::diag::nearest(name, known.iter().copied()) {
                    Some(near) => d.help(format!("did you mean `{near}`?")),
                    None if what == "surrogate" => d.note(format!(
                        "there are {}, or an expression of `x`, how far a cell is above its threshold",
                        known.join(", ")
                    )),
                    None => d.note(format!("there are {}", known.join(", "))),
                }
            }
            E::Argument { of, name, known, span } => {
                let d = Diagnostic::new(Code::BadValue, span, format!("`{of}` has no argument `{name}`"), "not known");
                instead(d, name, known)
            }
            E::TooMany { name, example, span } => {
                let message = format!("`{name}` takes fewer arguments");
                let d = Diagnostic::new(Code::BadValue, span, message, "one too many");
                example.into_iter().fold(d, |d, known| d.help(format!("all but the first have a name: `{known} = ...`")))
            }
            E::NoReadout { loss, span } => Diagnostic::new(
                Code::BadValue,
                span,
                format!("`{loss}` reads nothing"),
                "what is compared with the classes?",
            )
            .help(format!("write `{loss}(spike_count(out))`")),
            E::NoTargets { span } => {
                let message = "`mse` needs what the readout shall be";
                Diagnostic::new(Code::BadValue, span, message, "for the right class, and for the others")
                    .help("write `mse(spike_count(out), correct = 20, incorrect = 5)`")
            }
            E::Missing { of, argument, span } => {
                Diagnostic::new(Code::BadValue, span, format!("`{of}` needs `{argument}`"), "not said here").help(
                    if argument == "every" {
                        "write `step(every = 5, factor = 0.1)`"
                    } else {
                        "write `exponential(factor = 0.9)`"
                    },
                )
            }
            E::Gradient { span } => Diagnostic::new(
                Code::BadValue,
                span,
                "`gradient` is `bptt` or `eprop`",
                "along which ways derivatives go back",
            )
            .help("`bptt` goes back along all; `eprop` within each cell, and to those that send to the cells that the loss reads"),
            E::Reset { span } => {
                Diagnostic::new(Code::BadValue, span, "`reset` is `detached` or `attached`", "neither of them")
                    .note("detached: that a spike resets the cell has no part in the derivative")
            }
            E::NoDelays { span } => Diagnostic::new(
                Code::BadValue,
                span,
                "no delays learn, so that they have no learning rate",
                "of nothing",
            )
            .help("add `learn a.b.Synapse.delay = 1 .. 20 ms`, or leave this out"),
            E::NoTests { span } => {
                let message = "`patience` waits for the loss of the test samples to become less";
                Diagnostic::new(Code::BadValue, span, message, "`test = 0` keeps none")
                    .help("keep some, such as `test = 0.2`, or leave `patience` out")
            }
            E::LabelsOfNone { span } => {
                let message = "`test_labels` are classes of samples in a file that `test` names";
                Diagnostic::new(Code::BadValue, span, message, "`test` names no file")
                    .help("write `test = \"t10k-images-idx3-ubyte\"`, or leave `test_labels` out: `labels` are those of all samples")
            }
            E::Number { what, value, needed, span } => Diagnostic::new(
                Code::BadValue,
                span,
                format!("`{what}` cannot be {value}"),
                format!("{needed} is needed"),
            ),
            E::NotConstant { what, span } => Diagnostic::new(
                Code::NotConstant,
                span,
                format!("`{what}` must be a number"),
                "not known before the run",
            ),
        }
    }
}
