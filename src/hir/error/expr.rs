//! What can be wrong with an expression by itself.

use crate::diag::{Code, Diagnostic};
use crate::hir::advice::{usual_unit, wrap};
use crate::hir::dimension::shown;
use crate::hir::{Expr, Ty};
use crate::source::Span;
use crate::syntax::ast::Name;

/// What is wrong with an expression.
pub(in crate::hir) enum ExprError<'e> {
    /// A text where a number is needed.
    Text { span: Span },
    /// A number that the machine does not have.
    TooLarge { span: Span },
    /// A number where a condition is needed, or the other way round; its text, if that is short and no number.
    WrongType { message: &'e str, x: &'e Expr, text: Option<&'e str> },
    /// `0.1 ms-1`: a power of a unit without `^`.
    PowerWithoutSign { number: &'e str, unit: &'e str, power: &'e str, span: Span },
    /// A unit that is the name of a value besides, and how the value is written.
    UnitOrValue { name: &'e Name, value: Span, written: String },
    /// A temperature below absolute zero.
    TooCold { span: Span },
    /// A temperature is divided by one, a number written in degC, where only a difference of temperatures can be meant.
    NoDifference { number: &'e str, written: Span, span: Span },
    /// A power of a quantity, whose dimension is not known: the texts of both.
    Power { base: (&'e Expr, &'e str), exponent: (&'e Expr, &'e str) },
}

impl From<ExprError<'_>> for Diagnostic {
    fn from(error: ExprError<'_>) -> Diagnostic {
        use ExprError as E;
        match error {
            E::Text { span } => Diagnostic::new(Code::WrongType, span, "a text is not a number", "a text")
                .help("texts only name files, as in `file(\"v0.npy\")`"),
            E::TooLarge { span } => {
                Diagnostic::new(Code::BadValue, span, "this number is too large", "cannot be represented")
            }
            E::PowerWithoutSign { number, unit, power, span } => {
                let message = format!("`{number}-{power}` is {number} minus {power}");
                let value = number.strip_suffix(unit).unwrap_or(number).trim_end();
                let power = if power == "1" { "" } else { power };
                // The unit before the power is below a line: `mS/cm-2`, `uF*cm-2` and `ms-1` are `mS/cm2`, `uF/cm2` and `/ms`.
                let (before, last) = unit.rsplit_once(['*', '/']).unwrap_or(("", unit));
                let last = last.split('^').next().unwrap_or(last).trim_end_matches(|c: char| c.is_ascii_digit());
                Diagnostic::new(Code::UnknownUnit, span, message, "no power of a unit")
                    .help(format!("a negative power stands behind a `/`: `{value} {before}/{last}{power}`"))
            }
            E::UnitOrValue { name, value, written } => {
                let message = format!("`{}` is read as a unit here, and is the name of a value, too", name.text);
                let help = format!("write `{written}` for the value; for the unit, give the value another name");
                Diagnostic::new(Code::UnknownUnit, name.span, message, "a unit").see(value, "the value").help(help)
            }
            E::TooCold { span } => {
                let message = "this temperature is below absolute zero";
                Diagnostic::new(Code::OutOfDomain, span, message, "nothing is colder than -273.15 degC")
            }
            E::NoDifference { number, written, span } => {
                let message = format!("{number} degC is a temperature, not a difference of temperatures");
                let kelvin = number.parse().map_or(f64::NAN, |x: f64| ((x + 273.15) * 1e6).round() / 1e6);
                let d = Diagnostic::new(Code::DimensionMismatch, span, message, format!("{kelvin} K"));
                let d = if written == span { d } else { d.see(written, "written here") };
                d.help(format!("a difference is written in kelvin: `{number} K`"))
            }
            E::WrongType { message, x, text } => wrong_type(message, x, text),
            E::Power { base: (a, a_text), exponent: (b, b_text) } => {
                let dim = a.ty.dim();
                let message = format!("{} can only be raised to a constant whole power", dim.describe());
                let (unit, power) = (dim.display_unit().name, wrap(b_text));
                let one = if unit.contains(".5") { format!("(1 {})", usual_unit(dim)) } else { format!("1 {unit}") };
                Diagnostic::new(Code::BadPower, b.span, message, "not a constant whole number from -9 to 9")
                    .see(a.span, shown(dim))
                    .help(format!("make it a pure number first: `({a_text} / {one})^{power}`"))
            }
        }
    }
}

fn wrong_type(message: &str, x: &Expr, text: Option<&str>) -> Diagnostic {
    match (x.ty, text) {
        (Ty::Bool, _) => Diagnostic::new(Code::WrongType, x.span, message, "a condition")
            .help("choose a number with `if ... then ... else ...`"),
        (Ty::Real(dim), Some(text)) => {
            let zero = if dim.is_one() { "0".to_string() } else { format!("0 {}", usual_unit(dim)) };
            Diagnostic::new(Code::WrongType, x.span, message, dim.describe())
                .help(format!("compare it: `{text} > {zero}`"))
        }
        (Ty::Real(dim), None) => Diagnostic::new(Code::WrongType, x.span, message, dim.describe())
            .help("compare it with something, as in `v > -40 mV`"),
    }
}
