//! What can be wrong with dimensions and units.

use crate::diag::{Code, Diagnostic, nearest};
use crate::hir::advice::Bare;
use crate::hir::dimension::shown;
use crate::source::Span;
use crate::syntax::ast::Name;
use crate::units::{self, Dim};

/// What is wrong with a dimension or a unit. What would help is in the source, so it is given.
pub(in crate::hir) enum DimensionError<'e> {
    /// No unit has the name.
    UnknownUnit { name: &'e Name },
    /// A product of units that is none.
    UnusableUnit { span: Span },
    /// A condition where a number is needed, and for what.
    NotANumber { why: &'e str, span: Span },
    /// A quantity that is not what is needed, and for what.
    Unexpected { why: &'e str, want: Dim, got: Dim, span: Span, help: Option<String> },
    /// Two quantities that should be alike.
    Disagree { message: &'e str, left: (Dim, Span), right: (Dim, Span), help: Option<String> },
    /// An argument or an exponent that is not a pure number; a function's name stands in backquotes.
    NotPure { what: &'e str, dim: Dim, span: Span, help: String },
    /// A bare number where a quantity is needed: its text, for what, and how it is written.
    MissingUnit { bare: &'e Bare, text: &'e str, want: Dim, why: Option<&'e str>, value: String },
}

impl From<DimensionError<'_>> for Diagnostic {
    fn from(error: DimensionError<'_>) -> Diagnostic {
        use DimensionError as E;
        match error {
            E::UnknownUnit { name } => unknown_unit(name),
            E::UnusableUnit { span } => {
                let message = "this product of units cannot be used";
                let label = "degC cannot be part of a product, and powers go up to 9";
                Diagnostic::new(Code::UnknownUnit, span, message, label).help("use K for differences of temperature")
            }
            E::NotANumber { why, span } => {
                let message = format!("{why} must be a number, not a condition");
                Diagnostic::new(Code::WrongType, span, message, "a condition")
                    .help("choose with `if ... then ... else ...`")
            }
            E::Unexpected { why, want, got, span, help } => {
                let message = format!("{why} must be {}, not {}", want.describe(), got.describe());
                let d = Diagnostic::new(Code::DimensionMismatch, span, message, shown(got))
                    .note(columns(("expected", want), ("found", got)));
                help.into_iter().fold(d, Diagnostic::help)
            }
            E::Disagree { message, left: (x, a), right: (y, b), help } => {
                let d = Diagnostic::new(Code::DimensionMismatch, b, message, shown(y))
                    .see(a, shown(x))
                    .note(columns(("left", x), ("right", y)));
                help.into_iter().fold(d, Diagnostic::help)
            }
            E::NotPure { what, dim, span, help } => {
                let verb = if what.starts_with('`') { "takes" } else { "must be" };
                let message = format!("{what} {verb} a pure number, not {}", dim.describe());
                Diagnostic::new(Code::NotDimensionless, span, message, shown(dim)).help(help)
            }
            E::MissingUnit { bare, text, want, why, value } => missing_unit(bare, text, want, why, &value),
        }
    }
}

fn unknown_unit(name: &Name) -> Diagnostic {
    let message = format!("there is no unit `{}`", name.text);
    let d = Diagnostic::new(Code::UnknownUnit, name.span, message, "not a unit");
    if let "deg" | "degree" | "degrees" | "rad" = &name.text[..] {
        let d = d.help("angles are pure numbers, in radians: 90 degrees are `pi / 2`");
        return if name.text == "rad" { d } else { d.help("temperatures are in `degC`: `6.3 degC`") };
    }
    match name.text.trim_end_matches('s') {
        "min" | "minute" => return d.help("a minute is `60 s`"),
        "h" | "hr" | "hour" => return d.help("an hour is `3600 s`"),
        _ => {}
    }
    match &name.text[..] {
        "mmHg" | "Pa" | "kPa" | "bar" | "atm" | "T" | "mT" | "uT" | "Wb" | "H" | "mH" => {
            return d.note(
                "units are made of V, A, s, m, mol, K and g, and their like: there are none of pressures and magnets",
            );
        }
        "eV" | "meV" | "keV" => return d.help("an electron volt is `1.602176634e-19 J`"),
        "W" | "mW" | "uW" | "nW" => return d.help("a power is written in `J/s` or `nA*mV`"),
        "Osm" | "mOsm" => return d.help("an osmolarity is written in `mM`"),
        "ppm" | "ppb" => return d.help("a part is a number: a millionth is `1e-6`"),
        _ => {}
    }
    let all: Vec<String> = units::BASE_UNITS
        .iter()
        .flat_map(|b| {
            let prefixes = if b.3 { units::PREFIXES } else { &[] };
            std::iter::once(b.0.to_string()).chain(prefixes.iter().map(move |p| format!("{}{}", p.0, b.0)))
        })
        .collect();
    // `mv` means mV, not MV: the prefix as it is written, the base unit in the right case.
    let same_letters = || all.iter().filter(|u| u.eq_ignore_ascii_case(&name.text));
    let first = |u: &&String| u.chars().next() == name.text.chars().next();
    let cased = same_letters().find(first).or_else(|| same_letters().next()).map(String::as_str);
    let near = || nearest(&name.text, all.iter().map(String::as_str));
    match spelled_out(&name.text).or(cased).or_else(near) {
        Some(near) => d.did_you_mean(&name.text, near),
        None => d.note("units are written `mV`, `nA`, `mS/cm2`, `uF/cm2`, `ohm*cm`, `/ms`, `mM`, `degC`"),
    }
}

/// The unit that a word stands for.
fn spelled_out(word: &str) -> Option<&'static str> {
    Some(match word.to_lowercase().trim_end_matches('s') {
        "msec" | "millisecond" => "ms",
        "sec" | "second" => "s",
        "usec" | "microsecond" => "us",
        "mho" | "siemen" => "S",
        "mmho" | "millisiemen" => "mS",
        "umho" | "microsiemen" => "uS",
        "nanosiemen" => "nS",
        "volt" => "V",
        "millivolt" => "mV",
        "amp" | "ampere" => "A",
        "nanoamp" => "nA",
        "picoamp" => "pA",
        "microamp" => "uA",
        "farad" => "F",
        "megohm" => "Mohm",
        "micron" | "micrometer" | "micrometre" => "um",
        "molar" => "M",
        "millimolar" => "mM",
        "micromolar" => "uM",
        "hertz" => "Hz",
        "celsiu" | "deg" | "c" | "degree" => "degC",
        "kelvin" => "K",
        "coulomb" => "C",
        _ => return None,
    })
}

fn missing_unit(bare: &Bare, text: &str, want: Dim, why: Option<&str>, value: &str) -> Diagnostic {
    let message = match (&bare.name, why) {
        (Some((name, _)), _) => format!("`{}` needs a unit", name.rsplit('.').next().unwrap_or(name)),
        (None, Some(why)) => format!("{why} needs a unit"),
        (None, None) => format!("the number `{text}` needs a unit"),
    };
    let label = format!("a bare number, but {} is needed", want.describe());
    let mut d = Diagnostic::new(Code::MissingUnit, bare.value, message, label);
    if let Some((_, used)) = &bare.name
        && *used != bare.value
    {
        d = d.see(*used, format!("used as {} here", want.describe()));
    }
    let example = if matches!(text, "0" | "0.0") { "write" } else { "write the unit, for example" };
    d.help(format!("{example} `{value}`")).fix(bare.value, text, value)
}

/// Two dimensions side by side, factor below factor.
fn columns((left, x): (&str, Dim), (right, y): (&str, Dim)) -> String {
    let factors = |of: Dim, beside: Dim| match of.columns(beside) {
        none if none.is_empty() => "1".to_string(),
        some => some,
    };
    let (a, b) = (factors(x, y), factors(y, x));
    let width = left.chars().count().max(right.chars().count()) + 1;
    let columns = a.chars().count().max(b.chars().count());
    let name = |dim: Dim| {
        dim.quantity()
            .map(|q| format!("   [{}]", q.trim_start_matches("an ").trim_start_matches("a ")))
            .unwrap_or_default()
    };
    let line = |side: &str, text: &str, dim: Dim| {
        format!("{:<width$} {text:<columns$}{}", format!("{side}:"), name(dim)).trim_end().to_string()
    };
    format!("{}\n{}", line(left, &a, x), line(right, &b, y))
}
