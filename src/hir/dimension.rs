//! Checking of dimensions and units, and what is said when they do not fit.
//!
//! In come units and typed expressions; out goes the same, or a message with both dimensions side by side and an edit.
//! Never true here: a conversion between two dimensions.

use super::lower::Lowerer;
use super::scope::Scope;
use super::{Expr, Ty};
use crate::diag::{Code, Diagnostic, nearest};
use crate::syntax::ast::{self};
use crate::units::{Dim, Unit};

impl<'a> Lowerer<'a> {
    /// The unit of a unit expression; `None` (and said) if it is not one.
    pub(super) fn unit(&mut self, unit: &ast::UnitExpr) -> Option<Unit> {
        let mut factors = Vec::new();
        for (name, power) in &unit.factors {
            match Unit::named(&name.text) {
                Some(u) => factors.push((u, *power)),
                None => {
                    self.unknown_unit(name);
                    return None;
                }
            }
        }
        let product = Unit::product(factors);
        if product.is_none() {
            self.error(
                Diagnostic::new(
                    Code::UnknownUnit,
                    unit.span,
                    "this product of units cannot be used",
                    "degC cannot be part of a product, and powers go up to 9",
                )
                .help("use K for differences of temperature"),
            );
        }
        product
    }

    fn unknown_unit(&mut self, name: &ast::Name) {
        let all: Vec<String> = crate::units::BASE_UNITS
            .iter()
            .flat_map(|b| {
                let prefixes = if b.3 { crate::units::PREFIXES } else { &[] };
                std::iter::once(b.0.to_string()).chain(prefixes.iter().map(move |p| format!("{}{}", p.0, b.0)))
            })
            .collect();
        let mut d =
            Diagnostic::new(Code::UnknownUnit, name.span, format!("there is no unit `{}`", name.text), "not a unit");
        let spelled = match name.text.to_lowercase().trim_end_matches('s') {
            "msec" | "millisecond" => Some("ms"),
            "sec" | "second" => Some("s"),
            "usec" | "microsecond" => Some("us"),
            "min" | "minute" => Some("s"),
            "mho" | "siemen" => Some("S"),
            "mmho" | "millisiemen" => Some("mS"),
            "umho" | "microsiemen" => Some("uS"),
            "nanosiemen" => Some("nS"),
            "volt" => Some("V"),
            "millivolt" => Some("mV"),
            "amp" | "ampere" => Some("A"),
            "nanoamp" => Some("nA"),
            "picoamp" => Some("pA"),
            "microamp" => Some("uA"),
            "farad" => Some("F"),
            "megohm" => Some("Mohm"),
            "micron" | "micrometer" | "micrometre" => Some("um"),
            "molar" => Some("M"),
            "millimolar" => Some("mM"),
            "micromolar" => Some("uM"),
            "hertz" => Some("Hz"),
            "celsiu" | "deg" | "c" | "degree" => Some("degC"),
            "kelvin" => Some("K"),
            "coulomb" => Some("C"),
            _ => None,
        };
        // `mv` means mV, not MV: the prefix as it is written, the base unit in the right case.
        let same_letters = || all.iter().filter(|u| u.eq_ignore_ascii_case(&name.text));
        let first = |u: &&String| u.chars().next() == name.text.chars().next();
        let cased = same_letters().find(first).or_else(|| same_letters().next()).map(String::as_str);
        if let Some(near) = spelled.or(cased).or_else(|| nearest(&name.text, all.iter().map(String::as_str))) {
            d = d.help(format!("did you mean `{near}`?"));
        } else {
            d = d.note("units are written `mV`, `nA`, `mS/cm2`, `uF/cm2`, `ohm*cm`, `/ms`, `mM`, `degC`");
        }
        self.error(d);
    }

    /// Checks that an expression is a number of a dimension.
    pub(super) fn expect(&mut self, scope: &Scope<'a>, x: Expr, dim: Dim, why: &str) -> Option<Expr> {
        match x.ty {
            Ty::Bool => {
                self.error(
                    Diagnostic::new(
                        Code::WrongType,
                        x.span,
                        format!("{why} must be a number, not a condition"),
                        "a condition",
                    )
                    .help("choose with `if ... then ... else ...`"),
                );
                None
            }
            Ty::Real(got) if got == dim => Some(x),
            Ty::Real(got) => {
                self.wrong_dimension(scope, &x, got, dim, why);
                // What is needed is known: look on as if it were given.
                Some(Expr { ty: Ty::Real(dim), ..x })
            }
        }
    }

    pub(super) fn wrong_dimension(&mut self, scope: &Scope<'a>, x: &Expr, got: Dim, want: Dim, why: &str) {
        if let Some(bare) = self.bare(scope, x) {
            let d = self.missing_unit(&bare, want, Some(why));
            self.error(d);
            return;
        }
        if let Some((bare, dim)) = self.bare_factor(scope, x, want)
            && (bare.name.is_some() || self.blame(x).span == bare.value)
        {
            let d = self.missing_unit(&bare, dim, None);
            self.error(if bare.name.is_some() { d } else { d.note(format!("{why} must be {}", want.describe())) });
            return;
        }
        let x = self.blame(x);
        let d = Diagnostic::new(
            Code::DimensionMismatch,
            x.span,
            format!("{why} must be {}, not {}", want.describe(), got.describe()),
            shown(got),
        );
        let mut d = with_columns(d, "expected", want, "found", got);
        let literal = self.literal(x).map(|l| self.with_unit(l, want));
        if want.is_one() && literal.is_none() {
            // Nothing to divide by is better than any other.
        } else if let Some(help) = self.edit(scope, x, want) {
            d = d.help(help);
        } else if let Some(value) = literal {
            d = d.help(match want.is_one() {
                true => format!("leave the unit out: `{value}`"),
                false => format!("write {}, for example `{value}`", want.describe()),
            });
        }
        self.error(d);
    }

    pub(super) fn same_dimension(&mut self, scope: &Scope<'a>, a: &Expr, b: &Expr, message: &str) -> Option<()> {
        let (x, y) = match (a.ty, b.ty) {
            (Ty::Real(x), Ty::Real(y)) => (x, y),
            (Ty::Bool, Ty::Bool) => return Some(()),
            (Ty::Bool, Ty::Real(_)) | (Ty::Real(_), Ty::Bool) => {
                self.wrong_type(b, &format!("{message} one is a condition, the other a number"));
                return None;
            }
        };
        if x == y {
            return Some(());
        }
        for (side, other) in [(a, y), (b, x)] {
            if let Some(bare) = self.bare(scope, side) {
                let d = self.missing_unit(&bare, other, None);
                let d = if bare.name.is_none() {
                    let at = if side.span == a.span { b.span } else { a.span };
                    d.see(at, shown(other))
                } else {
                    d
                };
                self.error(d);
                return Some(());
            }
        }
        for (side, other) in [(a, y), (b, x)] {
            if let Some((bare, dim)) = self.bare_factor(scope, side, other)
                && bare.name.is_some()
                && dim.quantity().is_some()
            {
                let d = self.missing_unit(&bare, dim, None);
                self.error(d);
                return None;
            }
        }
        let message = if message.ends_with(':') {
            format!("{message} {} and {}", x.describe(), y.describe())
        } else {
            message.to_string()
        };
        let d = Diagnostic::new(Code::DimensionMismatch, b.span, message, shown(y)).see(a.span, shown(x));
        let d = with_columns(d, "left", x, "right", y);
        let d = match self.edit_pair(scope, a, b) {
            Some(help) => d.help(help),
            None => d,
        };
        self.error(d);
        None
    }
}

/// How a label calls a quantity.
pub(super) fn shown(dim: Dim) -> String {
    if dim.is_one() {
        return dim.describe();
    }
    let unit = dim.display_unit().name;
    if dim.quantity().is_some() { format!("{} ({unit})", dim.describe()) } else { dim.describe() }
}

pub(super) fn with_columns(d: Diagnostic, left: &str, x: Dim, right: &str, y: Dim) -> Diagnostic {
    let width = left.chars().count().max(right.chars().count()) + 1;
    let (a, b) = (x.columns(y), y.columns(x));
    let (a, b) = (if a.is_empty() { "1".into() } else { a }, if b.is_empty() { "1".into() } else { b });
    let columns = a.chars().count().max(b.chars().count());
    let name =
        |dim: Dim| dim.quantity().map(|q| format!("   [{}]", q.split_once(' ').map_or(q, |s| s.1))).unwrap_or_default();
    let line = |side: &str, text: &str, dim: Dim| {
        format!("{:<width$} {text:<columns$}{}", format!("{side}:"), name(dim)).trim_end().to_string()
    };
    d.note(format!("{}\n{}", line(left, &a, x), line(right, &b, y)))
}
