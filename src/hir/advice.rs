//! What to write instead: edits that make dimensions agree, computed from the source.
//!
//! In come expressions whose dimensions are wrong, with their text; out go edits in words.
//! Never true here: it is decided whether something is wrong.

use super::builtins::Builtin;
use super::error::DimensionError;
use super::expr::constant_of;
use super::lower::Lowerer;
use super::scope::{Entry, Role, Scope, ScopeKind};
use super::{Expr, ExprKind, SymbolId, Ty};
use crate::diag::Diagnostic;
use crate::source::Span;
use crate::syntax::ast::{BinaryOp, UnaryOp};
use crate::units::{Dim, Unit};

/// A quantity that was given as a bare number.
pub(super) struct Bare {
    /// The number.
    pub value: Span,
    /// The name that stands for it, and where that is used; `None` for a number that stands there itself.
    pub name: Option<(String, Span)>,
}

/// What is counted in Hz.
pub(super) const EVENT_RATE: &str = "the rate of events";

impl<'a> Lowerer<'a> {
    /// Is an expression a number without a unit, or the name of a parameter, a constant or a state that is one?
    pub(super) fn bare(&self, scope: &Scope<'a>, x: &Expr) -> Option<Bare> {
        if x.ty != Ty::Real(Dim::ONE) {
            return None;
        }
        let text = self.text(x.span);
        match &x.kind {
            ExprKind::Number(_) if starts_number(text) => Some(Bare { value: x.span, name: None }),
            ExprKind::Number(_) => {
                let constant = self.constant_item(scope.file, text)?;
                let value = constant.value.span;
                starts_number(self.text(value)).then(|| Bare { value, name: Some((text.to_string(), x.span)) })
            }
            ExprKind::Unary(UnaryOp::Neg, a) => {
                let inner = self.bare(scope, a)?;
                Some(if inner.name.is_none() { Bare { value: x.span, ..inner } } else { inner })
            }
            ExprKind::Symbol(id) | ExprKind::NetworkParam(id) => self.bare_entry(scope, *id, x.span),
            _ => None,
        }
    }

    /// Has a parameter or a state, which is used here, a number without a unit for its value? States between -1 and 1 are pure numbers more often than
    /// not: gates, traces and fractions.
    pub(super) fn bare_entry(&self, scope: &Scope<'a>, id: SymbolId, used: Span) -> Option<Bare> {
        let entry = scope.entries.get(id.0 as usize)?;
        let value = entry.value.as_ref()?;
        let is_literal = matches!(value.kind, ExprKind::Number(_)) && starts_number(self.text(value.span));
        let fits = match entry.role {
            Role::Param => is_literal,
            Role::State(_) => {
                starts_number(self.text(value.span).trim_start_matches('-')) && constant_of(value)?.abs() > 1.0
            }
            Role::Let | Role::Port(_) | Role::Voltage | Role::Pool => false,
        };
        let unitless = entry.unit.is_none() && entry.want.is_none();
        (fits && unitless).then(|| Bare { value: value.span, name: Some((entry.name.clone(), used)) })
    }

    /// The bare numbers among the factors of a product, with the sign of their power.
    fn bare_factors(&self, scope: &Scope<'a>, x: &Expr, sign: i32, out: &mut Vec<(Bare, i32)>) {
        if let Some(bare) = self.bare(scope, x) {
            out.push((bare, sign));
            return;
        }
        match &x.kind {
            ExprKind::Unary(UnaryOp::Neg, a) => self.bare_factors(scope, a, sign, out),
            ExprKind::Binary(BinaryOp::Mul, a, b) => {
                self.bare_factors(scope, a, sign, out);
                self.bare_factors(scope, b, sign, out);
            }
            ExprKind::Binary(BinaryOp::Div, a, b) => {
                self.bare_factors(scope, a, sign, out);
                self.bare_factors(scope, b, -sign, out);
            }
            ExprKind::Call(Builtin::ExpRate | Builtin::SigmoidRate | Builtin::ExpLinearRate, args) => {
                self.bare_factors(scope, &args[1], sign, out);
            }
            ExprKind::Call(Builtin::Pulse | Builtin::Sine, args) => self.bare_factors(scope, &args[2], sign, out),
            _ => {}
        }
    }

    /// The one bare number among the factors of `x` that would need a unit to make `x` have the dimension `want`, and
    /// the dimension it would have then. Names count before numbers that stand in the product itself.
    pub(super) fn bare_factor(&self, scope: &Scope<'a>, x: &Expr, want: Dim) -> Option<(Bare, Dim)> {
        let mut all = Vec::new();
        self.bare_factors(scope, x, 1, &mut all);
        let named = all.iter().filter(|b| b.0.name.is_some()).count();
        let mut fitting = all.into_iter().filter(|b| named == 0 || b.0.name.is_some());
        let (Some((bare, sign)), None) = (fitting.next(), fitting.next()) else { return None };
        let missing = want.over(x.ty.dim());
        Some((bare, if sign > 0 { missing } else { Dim::ONE.over(missing) }))
    }

    /// A draw of bare numbers with the unit that is expected, `normal(3 nS, 1 nS)` for `normal(3, 1)`, if only numbers stand in brackets.
    pub(super) fn drawn_with_unit(&self, x: &Expr, want: Dim) -> Option<String> {
        let (mut numbers, mut draws, mut whole): (Vec<Span>, bool, Span) = (Vec::new(), false, x.span);
        x.visit(&mut |e| match e.kind {
            ExprKind::Draw(..) => {
                draws = true;
                whole = whole.to(e.span);
            }
            ExprKind::Number(_) if starts_number(self.text(e.span)) && !numbers.contains(&e.span) => {
                numbers.push(e.span);
            }
            _ => {}
        });
        let text = self.text(whole);
        if !draws || text.contains('\n') {
            return None;
        }
        numbers.sort_by_key(|span| span.start);
        let (mut written, mut rest, mut at) = (String::new(), String::new(), whole.start);
        for span in numbers {
            let before = self.text(Span { start: at, end: span.start, ..whole });
            rest.push_str(before);
            written.push_str(&format!("{before}{}", self.with_unit(self.text(span), want)));
            at = span.end;
        }
        let last = self.text(Span { start: at, ..whole });
        rest.push_str(last);
        written.push_str(last);
        let known = ["", "normal", "uniform", "truncated", "draw", "mean", "sd", "low", "high"];
        rest.split([' ', '(', ')', ',', '=']).all(|word| known.contains(&word)).then_some(written)
    }

    /// The part of an expression that gives it its dimension: the amplitude of a stimulus, the rate of a rate function.
    pub(super) fn blame<'e>(&self, x: &'e Expr) -> &'e Expr {
        match &x.kind {
            ExprKind::Call(Builtin::ExpRate | Builtin::SigmoidRate | Builtin::ExpLinearRate, args) => {
                self.blame(&args[1])
            }
            ExprKind::Call(Builtin::Pulse | Builtin::Sine | Builtin::Ramp, args) => self.blame(&args[2]),
            _ => x,
        }
    }

    /// A number with the unit that is expected, `-65 mV` for `-65` or `-65 ms`.
    pub(super) fn with_unit(&self, literal: &str, want: Dim) -> String {
        let (number, unit) = split_literal(literal);
        if want.is_one() {
            return number.to_string();
        }
        // A frequency for a period.
        if let ("Hz" | "kHz", Dim::TIME, Ok(rate)) = (unit, want, number.parse::<f64>())
            && rate > 0.0
        {
            let per_ms = if unit == "Hz" { 1000.0 } else { 1.0 };
            return format!("{} ms", per_ms / rate);
        }
        if let Some(turned) = turned_over(number, unit, want) {
            return turned;
        }
        let name = self.unit_like(unit, want).unwrap_or_else(|| usual_unit(want));
        format!("{number} {name}")
    }

    /// A unit of the dimension `want` that looks like `unit`: other case, with or without the area, upside down.
    pub(super) fn unit_like(&self, unit: &str, want: Dim) -> Option<String> {
        if unit.is_empty() || want.is_one() {
            return None;
        }
        // A density is not ten nanosiemens per cm2: only units that densities have are likely to lack the area.
        let of_densities = |unit: &str| ["S", "mS", "uF", "uA", "mA"].contains(&unit);
        let density = of_densities(unit);
        let swapped: String = unit
            .chars()
            .map(|c| match c {
                's' => 'S',
                'S' => 's',
                c => c,
            })
            .collect();
        let without_area = ["/cm2", "/cm^2", "/um2", "/um^2", "/m2", "/m^2", "_per_cm2", "_per_m2"]
            .iter()
            .find_map(|a| unit.strip_suffix(a))
            .unwrap_or(unit);
        let candidates = [
            swapped.clone(),
            if density { format!("{unit}/cm2") } else { String::new() },
            without_area.to_string(),
            format!("/{unit}"),
            unit.strip_prefix('/').unwrap_or("").to_string(),
            format!("{unit}/ms"),
            if of_densities(&swapped) { format!("{swapped}/cm2") } else { String::new() },
        ];
        candidates.into_iter().find(|c| c != unit && Unit::parse(c).is_some_and(|u| u.dim == want))
    }

    /// The text of a number with a unit, if the expression is one.
    pub(super) fn literal(&self, x: &Expr) -> Option<&'a str> {
        let text = self.text(x.span);
        (matches!(x.kind, ExprKind::Number(_)) && starts_number(text) && !text.contains('\n')).then_some(text)
    }

    /// The name of a quantity of a dimension that can be used in a scope.
    fn named(&self, scope: &Scope<'a>, dim: Dim, but_not: &[&str]) -> Option<String> {
        let fits = |e: &&Entry<'a>| {
            e.ty == Some(Ty::Real(dim))
                && e.written
                && !(scope.kind == ScopeKind::Channel && e.name.contains('.'))
                && matches!(e.role, Role::Param | Role::Let)
                && !but_not.contains(&e.name.as_str())
        };
        let mut all = scope.entries.iter().filter(fits);
        let first = all.next()?;
        // With several to choose from, a guess would be noise.
        (all.count() < 3).then(|| first.name.clone())
    }

    /// What a bare number among the factors of a product may be.
    pub(super) fn factor_help(&self, bare: &Bare, dim: Dim) -> String {
        let number = self.text(bare.value);
        let is = dim.quantity().map_or_else(|| "has a unit".to_string(), |q| format!("is {q}"));
        // A factor is a difference of temperatures, never a temperature on the Celsius scale.
        let value = match dim {
            Dim::TEMPERATURE => format!("{number} K"),
            _ => self.with_unit(number, dim),
        };
        format!("if `{number}` {is}, write it: `{value}`")
    }

    /// An edit that turns `x` into a quantity of the dimension `want`.
    pub(super) fn edit(&self, scope: &Scope<'a>, x: &Expr, want: Dim) -> Option<String> {
        let got = x.ty.dim();
        if let Some(literal) = self.literal(x) {
            return self.edit_literal(literal, got, want);
        }
        let text = self.text(x.span);
        let short = (text.len() < 50 && !text.contains('\n') && !text.is_empty()).then_some(text);
        let factor = || {
            let (bare, dim) = self.bare_factor(scope, x, want).filter(|b| b.0.name.is_none())?;
            Some(self.factor_help(&bare, dim))
        };
        let by_name = || self.edit_by_name(scope, short?, got, want);
        let first = if got.is_one() { factor().or_else(by_name) } else { by_name().or_else(factor) };
        first.or_else(|| edit_by_dimension(scope.kind, short, got, want))
    }

    /// Another unit of a number, or an area that is missing.
    fn edit_literal(&self, literal: &str, got: Dim, want: Dim) -> Option<String> {
        let (number, unit) = split_literal(literal);
        if let Some(turned) = turned_over(number, unit, want) {
            return Some(format!("write it as {}: `{turned}`", want.describe()));
        }
        if self.unit_like(unit, want).is_some() {
            return Some(format!("write `{}`", self.with_unit(literal, want)));
        }
        let per_area = want.over(got) == Dim::ONE.over(Dim::AREA);
        per_area.then(|| format!("divide by the area of the membrane, as in `{literal} / 1000 um2`"))
    }

    /// A factor that has a name in the scope, or the reciprocal.
    fn edit_by_name(&self, scope: &Scope<'a>, text: &str, got: Dim, want: Dim) -> Option<String> {
        let (up, down) = (want.over(got), got.over(want));
        let wrapped = wrap_sum(text);
        if up == Dim::VOLTAGE && scope.kind == ScopeKind::Channel && scope.get("erev").is_some() {
            return Some(format!("multiply by the driving force: `{wrapped} * (v - erev)`"));
        }
        if up.is_one() {
            return None;
        }
        // What is a factor already would only go away.
        let factors: Vec<&str> = text.split(['*', ' ', '(', ')', '/']).collect();
        if let Some(name) = self.named(scope, down, &[&[text], &factors[..]].concat()) {
            return Some(format!("divide by {}: `{wrapped} / {name}`", down.describe()));
        }
        if let Some(name) = self.named(scope, up, &[text]) {
            return Some(format!("multiply by {}: `{wrapped} * {name}`", up.describe()));
        }
        (want == Dim::ONE.over(got)).then(|| format!("turn it over: `1 / {}`", wrap(text)))
    }

    /// An edit that makes the two sides of a sum or comparison agree.
    pub(super) fn edit_pair(&self, scope: &Scope<'a>, a: &Expr, b: &Expr) -> Option<String> {
        let (x, y) = (a.ty.dim(), b.ty.dim());
        let literals = [(b, x), (a, y)].into_iter().find_map(|(e, want)| {
            let literal = self.literal(e)?;
            let (_, unit) = split_literal(literal);
            self.unit_like(unit, want).map(|_| format!("write `{}`", self.with_unit(literal, want)))
        });
        let bare = || {
            [(a, y), (b, x)].into_iter().find_map(|(e, want)| {
                let (bare, _) = self.bare_factor(scope, e, want)?;
                if bare.name.is_some() { None } else { self.edit(scope, e, want) }
            })
        };
        // A quantity that has a name is more likely right than one that has none.
        let odd = x.quantity().is_none() && y.quantity().is_some();
        let first = if odd { self.edit(scope, a, y) } else { None };
        literals.or(first).or_else(|| self.edit(scope, b, x)).or_else(bare)
    }

    /// Says that a state whose value is a bare number needs a unit, if it gets something of another dimension than that of a `pure` state.
    pub(super) fn needs_unit(&mut self, scope: &Scope<'a>, id: SymbolId, used: Span, (given, pure): (Ty, Dim)) -> bool {
        let Some(bare) = self.bare_entry(scope, id, used) else { return false };
        let needs = given != Ty::Bool && given.dim() != pure;
        if needs {
            self.error(self.missing_unit(&bare, given.dim().over(pure), None));
        }
        needs
    }

    /// The message for a bare number where a quantity is needed.
    pub(super) fn missing_unit(&self, bare: &Bare, want: Dim, why: Option<&str>) -> Diagnostic {
        let text = self.text(bare.value);
        let value = match why {
            Some(EVENT_RATE) => format!("{text} Hz"),
            _ => self.with_unit(text, want),
        };
        DimensionError::MissingUnit { bare, text, want, why, value }.into()
    }
}

/// The resistance that a conductance is, `10 Mohm` for `0.1 uS`, or the other way round.
fn turned_over(number: &str, unit: &str, want: Dim) -> Option<String> {
    let own = Unit::parse(unit).filter(|own| own.dim == Dim::ONE.over(want))?;
    if !matches!(want, Dim::RESISTANCE | Dim::CONDUCTANCE) {
        return None;
    }
    let value = own.canonical(number).filter(|value| *value > 0.0)?;
    let shown = want.display_unit();
    // Without the noise of binary fractions.
    let turned: f64 = format!("{:.11e}", shown.show(1.0 / value)).parse().ok()?;
    Some(format!("{turned} {}", shown.name))
}

/// What a quantity is divided by or multiplied with to have another dimension; its text, if that is short.
fn edit_by_dimension(kind: ScopeKind, text: Option<&str>, got: Dim, want: Dim) -> Option<String> {
    let (up, down) = (want.over(got), got.over(want));
    if down == Dim::TIME {
        let example = text.map(|text| format!(", for example `{} / 10 ms`", wrap_sum(text))).unwrap_or_default();
        return Some(format!("divide by a time constant{example}"));
    }
    if down == Dim::AREA || up == Dim::AREA {
        let verb = if down == Dim::AREA { "divide" } else { "multiply" };
        let area =
            if matches!(kind, ScopeKind::Cell | ScopeKind::Spiking) { ", such as that of the compartment" } else { "" };
        return Some(format!("one is per area, the other is not: {verb} by an area{area}"));
    }
    let sensible = |dim: Dim| {
        matches!(
            dim,
            Dim::CONDUCTANCE
                | Dim::CONDUCTANCE_DENSITY
                | Dim::RESISTANCE
                | Dim::CAPACITANCE
                | Dim::SPECIFIC_CAPACITANCE
                | Dim::VOLTAGE
                | Dim::CONCENTRATION
        )
    };
    // A pure number becomes what is needed by what has its dimension.
    if got.is_one() && sensible(up) {
        return Some(format!("multiply by {} ({})", up.describe(), up.display_unit().name));
    }
    if sensible(down) {
        return Some(format!("divide by {} ({})", down.describe(), down.display_unit().name));
    }
    sensible(up).then(|| format!("multiply by {} ({})", up.describe(), up.display_unit().name))
}

/// The unit that people write for a dimension.
pub(super) fn usual_unit(dim: Dim) -> String {
    // A unit has no half power: `mV/ms^0.5` is written with a root.
    let half = dim.over(Dim::RATE.root().unwrap_or(Dim::ONE));
    match dim.display_unit().name {
        _ if dim == Dim::TEMPERATURE => "degC".into(),
        name if !name.contains(".5") => name,
        _ if half.is_one() => "/ sqrt(1 ms)".into(),
        _ => format!("{} / sqrt(1 ms)", half.display_unit().name),
    }
}

fn starts_number(text: &str) -> bool {
    text.trim_start_matches(['-', ' ', '(']).starts_with(|c: char| c.is_ascii_digit() || c == '.')
}

/// The number and the unit of a literal.
fn split_literal(text: &str) -> (&str, &str) {
    let text = text.trim();
    let bytes = text.as_bytes();
    let mut end = 0;
    while end < bytes.len() {
        let c = bytes[end];
        let exponent_sign = matches!(c, b'+' | b'-') && end > 0 && matches!(bytes[end - 1], b'e' | b'E');
        let exponent = matches!(c, b'e' | b'E')
            && bytes.get(end + 1).is_some_and(|n| n.is_ascii_digit() || matches!(n, b'+' | b'-'));
        if !(c.is_ascii_digit() || c == b'.' || exponent || exponent_sign || (end == 0 && c == b'-')) {
            break;
        }
        end += 1;
    }
    (&text[..end], text[end..].trim())
}

/// Puts parentheses around a sum or a condition, so that it can be followed by `*` or `/`.
pub(super) fn wrap_sum(text: &str) -> String {
    let mut depth = 0;
    let mut sum = text.contains(" if ") || text.starts_with("if ");
    for (at, c) in text.char_indices() {
        match c {
            '(' => depth += 1,
            ')' => depth -= 1,
            '+' | '-' | '<' | '>' | '=' if depth == 0 && at > 0 => sum = true,
            _ => {}
        }
    }
    if sum { format!("({text})") } else { text.to_string() }
}

/// Puts parentheses around everything but names, calls and what has them already.
pub(super) fn wrap(text: &str) -> String {
    let closed = text.starts_with('(') && text.ends_with(')') && !text[1..text.len() - 1].contains(['(', ')']);
    let simple = text.chars().all(|c| c.is_alphanumeric() || "._".contains(c));
    let call = text.ends_with(')')
        && text.find('(').is_some_and(|at| {
            let inner = &text[at + 1..text.len() - 1];
            text[..at].chars().all(|c| c.is_alphanumeric() || c == '_') && !inner.contains(['(', ')'])
        });
    if closed || simple || call { text.to_string() } else { format!("({text})") }
}
