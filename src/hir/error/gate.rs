//! What can be wrong with a gate.

use crate::diag::{Code, Diagnostic};
use crate::source::Span;
use crate::syntax::ast::{Let, Name};

/// What is wrong with a gate.
pub(in crate::hir) enum GateError<'e> {
    /// `q10 = 20 degC at 3`.
    Q10Backwards { factor: &'e str, temperature: &'e str, span: Span },
    /// Its power is no small number.
    Power { span: Span },
    /// Its kinetics are given in part.
    Incomplete { gate: &'e Name, given: Vec<&'e Let>, missing: Vec<&'static str>, instantaneous: bool },
    /// Its kinetics are given twice.
    Twice { gate: &'e Name, given: Vec<&'e Let> },
    /// It has fractions, and a key that belongs to one of them.
    OutsideFraction { key: &'e Name },
    /// Its fractions are not a whole: weights with their places, and the last as it is written.
    FractionSum { gate: (&'e str, Span), weights: &'e [(f64, Span)], last: &'e str },
    /// It follows at once, and has a time constant.
    TimeConstant { tau: &'e Name },
    /// It follows at once, and has an initial value.
    InitialValue { gate: &'e Name, init: &'e Name },
    /// It follows at once, and has a factor of its rates.
    Q10Instantaneous { gate: &'e Name, span: Span },
}

impl From<GateError<'_>> for Diagnostic {
    fn from(error: GateError<'_>) -> Diagnostic {
        use GateError as E;
        match error {
            E::Q10Backwards { factor, temperature, span } => {
                Diagnostic::new(Code::DimensionMismatch, span, "the factor of `q10` comes before the temperature", "")
                    .help(format!("write `q10 = {factor} at {temperature}`"))
            }
            E::Power { span } => {
                let message = "a gate's power is a whole number from 1 to 16";
                Diagnostic::new(Code::BadValue, span, message, "this is not")
            }
            E::Incomplete { gate, given, missing, instantaneous } => incomplete(gate, &given, &missing, instantaneous),
            E::Twice { gate, given } => {
                let message = format!("the kinetics of gate `{}` are given twice", gate.text);
                let label = "a gate needs `alpha` and `beta`, or `inf` and `tau`";
                let d = Diagnostic::new(Code::IncompleteGate, gate.span, message, label);
                let d = given.iter().fold(d, |d, l| d.see(l.name.span, format!("`{}` is given", l.name.text)));
                d.help("remove one pair: `inf` = alpha / (alpha + beta), `tau` = 1 / (alpha + beta)")
            }
            E::OutsideFraction { key } => {
                let message = format!("a gate with fractions has no `{}` of its own", key.text);
                Diagnostic::new(Code::IncompleteGate, key.span, message, "belongs inside a fraction")
            }
            E::FractionSum { gate, weights, last } => fraction_sum(gate, weights, last),
            E::TimeConstant { tau } => {
                let message = "an instantaneous gate has no time constant";
                let label = "remove `tau`, or the word `instantaneous`";
                Diagnostic::new(Code::IncompleteGate, tau.span, message, label)
            }
            E::InitialValue { gate, init } => {
                let message = format!("gate `{}` is instantaneous and has no initial value", gate.text);
                Diagnostic::new(Code::IncompleteGate, init.span, message, "it always equals `inf`")
                    .help("remove `init`, or the word `instantaneous`")
            }
            E::Q10Instantaneous { gate, span } => {
                let message = format!("gate `{}` is instantaneous and has no rates that `q10` makes faster", gate.text);
                Diagnostic::new(Code::IncompleteGate, span, message, "it always equals `inf`")
                    .help("remove `q10`, or the word `instantaneous`")
            }
        }
    }
}

fn incomplete(gate: &Name, given: &[&Let], missing: &[&str], instantaneous: bool) -> Diagnostic {
    let name = &gate.text;
    let message = match given.is_empty() && !instantaneous {
        true => format!("gate `{name}` has no kinetics"),
        false => format!("gate `{name}` lacks {}", missing.join(" and ")),
    };
    let label = match instantaneous {
        true => "an instantaneous gate needs `inf`",
        false => "a gate needs `alpha` and `beta`, or `inf` and `tau`",
    };
    let mut d = Diagnostic::new(Code::IncompleteGate, gate.span, message, label);
    for l in given {
        d = d.see(l.name.span, format!("`{}` is given", l.name.text));
    }
    let has = |key: &str| given.iter().any(|l| l.name.text == key);
    if has("inf") && !has("tau") && !instantaneous {
        d = d.help(format!("for a gate that follows at once, write `gate {name} instantaneous {{ ... }}`"));
    }
    d
}

fn fraction_sum((gate, span): (&str, Span), weights: &[(f64, Span)], last: &str) -> Diagnostic {
    let sum: f64 = weights.iter().map(|w| w.0).sum();
    let message = format!("the fractions of gate `{gate}` sum to {}, not to 1", rounded(sum));
    let mut d = Diagnostic::new(Code::IncompleteGate, span, message, "");
    for (_, span) in weights {
        d = d.see(*span, "");
    }
    let rest = weights.last().map_or(0.0, |last| 1.0 - (sum - last.0));
    if rest > 0.0 { d.help(format!("write `{}` instead of `{last}`", rounded(rest))) } else { d }
}

/// A number without the noise of binary fractions.
fn rounded(x: f64) -> f64 {
    (x * 1e9).round() / 1e9
}
