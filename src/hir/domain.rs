//! Domains: which values a quantity can have at all.
//!
//! In come symbols of definitions, arguments of draws and stimuli; out goes for each the [`Domain`] it has, with why. What is constant in
//! the file is checked here, also through parameters; the rest is a [`Demand`] of the network, which is checked once settings and data are
//! known (`src/ode/domains.rs`).
//! Never true here: a domain is declared anywhere else, or two places say that one value is outside of it.

use super::builtins::Builtin;
use super::expr::constant_of;
use super::kinetics::REACTION;
use super::lower::Lowerer;
use super::{Expr, ExprKind, StateKind, Symbol, SymbolId, SymbolKind, Ty};
use crate::diag::Code;
use crate::runtime::math::Coefficients;
use crate::source::Span;
use crate::syntax::ast::{BinaryOp, UnaryOp};
use crate::units::{Dim, DisplayUnit};
use std::collections::HashSet;

/// The values that a quantity can have, in canonical units.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Domain {
    /// x > 0
    AboveZero,
    /// x >= 0
    NotNegative,
    /// 0 <= x <= 1
    Fraction,
    /// A time within the run.
    BeforeTheEnd,
    /// A time of a step or more.
    StepAtLeast,
    /// A delay of a step or more.
    Delay,
    /// A delay of a step or more, or none, with [`Arrivals::AfterThreshold`](super::Arrivals::AfterThreshold).
    DelayOrNone,
    /// 0, 1, 2, ... (or without an end)
    Count,
    /// 1, but for rounding.
    Whole,
    /// How far a draw is outside of its limits: 0 if one of those that were tried is within them.
    WithinLimits,
    /// Any number.
    Finite,
    /// Any number but 0.
    NotZero,
    /// A time of whole steps, but for a hundredth of it.
    Steps,
    /// A rate of Poisson events that can be drawn: 708 in a step at most, on average.
    Drawable,
}

impl Domain {
    /// Can it have a value, in a run of some step and duration (ms) if they are known?
    pub fn has(self, x: f64, run: Option<(f64, f64)>) -> bool {
        match (self, run) {
            (Domain::Finite, _) => x.is_finite(),
            // Of others it is told elsewhere why they are no numbers.
            _ if x.is_nan() => true,
            (Domain::AboveZero, _) => x > 0.0,
            (Domain::NotZero, _) => x != 0.0,
            (Domain::NotNegative, _) => x >= 0.0,
            (Domain::Fraction, _) => (0.0..=1.0).contains(&x),
            (Domain::Count, _) => x >= 0.0 && (x.fract() == 0.0 || x == f64::INFINITY),
            (Domain::Whole, _) => (x - 1.0).abs() < 1e-6,
            (Domain::WithinLimits, _) => x == 0.0,
            (Domain::BeforeTheEnd, Some((_, duration))) => x < duration,
            (Domain::StepAtLeast | Domain::Delay, Some((dt, _))) => x > dt * (1.0 - 1e-6),
            (Domain::DelayOrNone, _) if x == 0.0 => true,
            (Domain::DelayOrNone, _) => Domain::Delay.has(x, run),
            // What is negative is said to be so.
            (Domain::Steps, Some((dt, _))) => ((x / dt + 0.5).floor() * dt - x).abs() <= x.abs() / 100.0,
            (Domain::Drawable, Some((dt, _))) => x * dt <= f64::POISSON_HIGH,
            (Domain::BeforeTheEnd | Domain::StepAtLeast | Domain::Delay | Domain::Steps | Domain::Drawable, None) => {
                true
            }
        }
    }
}

/// What has a value that is demanded to be in a domain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Whose {
    /// The network: there is one value.
    Network,
    /// The cells of a population, by index.
    Cells(usize),
    /// The edges of a projection, by index.
    Edges(usize),
}

/// That a value is in a domain.
#[derive(Debug, Clone, PartialEq)]
pub struct Demand<T> {
    /// What the value is, as messages name it: `cm`, `sd` of `normal`.
    pub what: String,
    /// The value.
    pub value: T,
    /// Where it must be.
    pub domain: Domain,
    /// Why: what such quantities are.
    pub why: &'static str,
    /// How bad it is if it is not so: an error, or a warning.
    pub code: Code,
    /// The unit that values are shown in.
    pub unit: DisplayUnit,
    /// For what it may differ.
    pub whose: Whose,
    /// Where the value stands.
    pub span: Span,
}

impl<T> Demand<T> {
    /// The same of another value.
    pub fn with<U>(&self, what: String, value: U) -> Demand<U> {
        let Demand { domain, why, code, whose, span, .. } = *self;
        Demand { what, value, domain, why, code, unit: self.unit.clone(), whose, span }
    }
}

/// What makes a domain a symbol's own.
type Row = (Kind, Dim, &'static str, Domain, Code, &'static str);

/// Which symbols a row is about.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Parameters whose last name begins so.
    Param,
    /// States, at the start.
    State,
    /// Gates, at the start.
    Gate,
    /// A member of a gate.
    OfGate,
    /// How fast a reaction is.
    Reaction,
}

/// Kind, dimension, how the last part of the name begins, domain, what it is to be outside, and why.
#[rustfmt::skip]
const ROWS: &[Row] = &[
    (Kind::Param, Dim::SPECIFIC_CAPACITANCE, "", Domain::AboveZero, Code::OutOfDomain, "a capacitance is above zero"),
    (Kind::Param, Dim::CAPACITANCE, "", Domain::AboveZero, Code::OutOfDomain, "a capacitance is above zero"),
    (Kind::Param, Dim::AREA, "", Domain::AboveZero, Code::OutOfDomain, "an area is above zero"),
    (Kind::Param, Dim::RESISTIVITY, "", Domain::AboveZero, Code::OutOfDomain, "a resistivity is above zero"),
    (Kind::Param, Dim::DIFFUSION, "diffusion", Domain::NotNegative, Code::OutOfDomain, "ions do not gather by themselves"),
    (Kind::Param, Dim::TIME, "tau", Domain::AboveZero, Code::OutOfDomain, "a time constant is above zero"),
    (Kind::OfGate, Dim::TIME, "tau", Domain::AboveZero, Code::OutOfDomain, "a time constant is above zero"),
    (Kind::OfGate, Dim::RATE, "alpha", Domain::NotNegative, Code::OutOfDomain, "a rate is not negative"),
    (Kind::OfGate, Dim::RATE, "beta", Domain::NotNegative, Code::OutOfDomain, "a rate is not negative"),
    (Kind::Reaction, Dim::RATE, "", Domain::NotNegative, Code::OutOfDomain, "a rate is not negative"),
    (Kind::OfGate, Dim::ONE, "inf", Domain::Fraction, Code::GateRange, "a gate is the fraction of open gates"),
    (Kind::Gate, Dim::ONE, "", Domain::Fraction, Code::GateRange, "a gate is the fraction of open gates"),
    (Kind::Param, Dim::CONDUCTANCE_DENSITY, "g", Domain::NotNegative, Code::SuspiciousMagnitude, "a conductance is not negative"),
    (Kind::Param, Dim::CONDUCTANCE, "g", Domain::NotNegative, Code::SuspiciousMagnitude, "a conductance is not negative"),
    (Kind::Param, Dim::CONCENTRATION, "", Domain::NotNegative, Code::SuspiciousMagnitude, "a concentration is not negative"),
    (Kind::State, Dim::CONCENTRATION, "", Domain::NotNegative, Code::SuspiciousMagnitude, "a concentration is not negative"),
    (Kind::Param, Dim::TEMPERATURE, "celsius", Domain::AboveZero, Code::OutOfDomain, "nothing is colder than -273.15 degC"),
];

/// The demand on a symbol among the symbols of its definition, if there is one: on its value, or where it is a state on its initial value.
pub fn demand<'s>(symbols: &'s [Symbol], symbol: &'s Symbol) -> Option<Demand<&'s Expr>> {
    let (kind, value) = match &symbol.kind {
        SymbolKind::Param(value) => (Kind::Param, value),
        SymbolKind::Let(value) if symbol.name.contains(REACTION) => (Kind::Reaction, value),
        SymbolKind::Let(value) => (Kind::OfGate, value),
        SymbolKind::State { init, kind: StateKind::Gate, .. } => (Kind::Gate, init),
        SymbolKind::State { init, .. } => (Kind::State, init),
        SymbolKind::Port(_) | SymbolKind::Voltage | SymbolKind::Pool => return None,
    };
    let (above, last) = symbol.name.rsplit_once('.').unwrap_or(("", &symbol.name));
    // What a gate is given, and not what follows from that.
    if kind == Kind::OfGate && (value.span == symbol.span || !symbols.iter().any(|s| s.name == above)) {
        return None;
    }
    row(kind, symbol.ty.dim(), last).map(|(_, _, _, domain, code, why)| Demand {
        what: symbol.name.clone(),
        value,
        domain,
        why,
        code,
        unit: symbol.display_unit(),
        whose: Whose::Network,
        span: value.span,
    })
}

/// The demand on a parameter that has a name only.
pub fn of_param(name: &str, dim: Dim) -> Option<(Domain, Code, &'static str)> {
    let last = name.rsplit('.').next().unwrap_or(name);
    row(Kind::Param, dim, last).map(|(_, _, _, domain, code, why)| (domain, code, why))
}

fn row(kind: Kind, dim: Dim, last: &str) -> Option<Row> {
    ROWS.iter().find(|r| r.0 == kind && r.1 == dim && last.starts_with(r.2)).copied()
}

/// What arguments of built-in functions are demanded to be: function, argument, domain and why. For `low` and `high`, see `uniform`.
const ARGUMENTS: &[(&str, &str, Domain, &str)] = &[
    ("normal", "sd", Domain::NotNegative, "a standard deviation is not negative"),
    ("noise", "sd", Domain::NotNegative, "a standard deviation is not negative"),
    ("noise", "every", Domain::AboveZero, "noise is drawn anew after each interval"),
    ("noise", "every", Domain::StepAtLeast, "noise is drawn anew after each interval"),
    ("white_noise", "sd", Domain::NotNegative, "a standard deviation is not negative"),
    ("white_noise", "per", Domain::AboveZero, "a time to take the mean over is above zero"),
    ("ornstein_uhlenbeck", "sigma", Domain::NotNegative, "a standard deviation is not negative"),
    ("ornstein_uhlenbeck", "tau", Domain::AboveZero, "a time constant is above zero"),
    ("exponential", "mean", Domain::AboveZero, "the mean of what is never negative is above zero"),
    (
        "lognormal",
        "mean",
        Domain::AboveZero,
        "`mean` and `sd` are those of what is drawn, which is above zero, not of its logarithm",
    ),
    ("lognormal", "sd", Domain::NotNegative, "a standard deviation is not negative"),
    ("gamma", "shape", Domain::AboveZero, "the shape of a gamma distribution is above zero"),
    ("train", "delay", Domain::BeforeTheEnd, "nothing happens in this run"),
    ("train", "duration", Domain::AboveZero, "a stimulus lasts some time"),
    ("train", "period", Domain::AboveZero, "a period is above zero"),
    ("train", "count", Domain::Count, "pulses are counted in whole numbers"),
    ("staircase", "delay", Domain::BeforeTheEnd, "nothing happens in this run"),
    ("staircase", "duration", Domain::AboveZero, "a stimulus lasts some time"),
    ("staircase", "count", Domain::Count, "steps are counted in whole numbers"),
    ("train", "duration", Domain::Steps, WHOLE),
    ("staircase", "duration", Domain::Steps, WHOLE),
    ("pulse", "duration", Domain::Steps, WHOLE),
    ("pulse", "delay", Domain::BeforeTheEnd, "nothing happens in this run"),
    ("sine", "delay", Domain::BeforeTheEnd, "nothing happens in this run"),
    ("ramp", "delay", Domain::BeforeTheEnd, "nothing happens in this run"),
    ("pulse", "duration", Domain::AboveZero, "a stimulus lasts some time"),
    ("sine", "duration", Domain::AboveZero, "a stimulus lasts some time"),
    ("ramp", "duration", Domain::AboveZero, "a stimulus lasts some time"),
    ("sine", "period", Domain::AboveZero, "a period is above zero"),
];

/// Why the duration of what is on or off is a number of steps.
const WHOLE: &str = "what is on is on for whole steps";

/// Why a range from `low` to `high` is not negative.
const LOW_FIRST: &str = "the lower limit comes first";

impl Lowerer<'_> {
    /// Says which symbols of a definition have values outside of their domains, as far as the file tells.
    pub(super) fn check_domains(&mut self, symbols: &[Symbol], unknown: &HashSet<String>) {
        let known = symbols.iter().filter(|symbol| !unknown.contains(&symbol.name));
        for demand in known.filter_map(|symbol| demand(symbols, symbol)) {
            // A gate without an initial value of its own starts at `inf`.
            if matches!(demand.value.kind, ExprKind::Symbol(_)) && demand.code == Code::GateRange {
                continue;
            }
            // What is odd in a library is not the user's.
            let said = demand.code.severity() == crate::diag::Severity::Error || self.is_main_place(demand.span);
            if let Some(x) = fold(symbols, demand.value, 0)
                && said
                && !self.diagnostics.has_error_at(demand.span)
            {
                self.outside(&demand, x);
            }
        }
        let values = symbols.iter().flat_map(|symbol| match &symbol.kind {
            SymbolKind::Param(x) | SymbolKind::Let(x) => vec![x],
            SymbolKind::State { init, rate, .. } => vec![init, rate],
            SymbolKind::Port(_) | SymbolKind::Voltage | SymbolKind::Pool => vec![],
        });
        self.check_limits(symbols, values);
    }

    /// Says which `clamp` has its limits in the wrong order, as far as the file tells.
    pub(super) fn check_limits<'e>(&mut self, symbols: &[Symbol], values: impl Iterator<Item = &'e Expr>) {
        let mut wrong = Vec::new();
        for value in values {
            value.visit(&mut |e| {
                let ExprKind::Call(Builtin::Clamp, args) = &e.kind else { return };
                let [_, low, high] = &args[..] else { return };
                let (Some(a), Some(b)) = (fold(symbols, low, 0), fold(symbols, high, 0)) else { return };
                let span = low.span.to(high.span);
                if a > b && !wrong.iter().any(|(_, other): &(_, Expr)| other.span == span) {
                    wrong.push((b - a, Expr { span, ..low.clone() }));
                }
            });
        }
        // It is its upper limit, whatever comes in; and what parameters say may be set otherwise where the model is used.
        let code = Code::NoEffect;
        wrong.retain(|(_, value)| self.is_main_place(value.span));
        for (width, value) in wrong {
            let (unit, span) = (value.ty.dim().display_unit(), value.span);
            let (what, why) = ("high - low` of `clamp".to_string(), LOW_FIRST);
            let (domain, whose) = (Domain::NotNegative, Whose::Network);
            self.outside(&Demand { what, value, domain, why, code, unit, whose, span }, width);
        }
    }

    /// Demands what the arguments of a built-in function must be.
    pub(super) fn demand_arguments(&mut self, function: &str, params: &[&str], values: &[Expr]) {
        for &(_, argument, domain, why) in ARGUMENTS.iter().filter(|row| row.0 == function) {
            let Some(value) = params.iter().position(|p| *p == argument).and_then(|at| values.get(at)) else {
                continue;
            };
            self.demand(format!("{argument}` of `{function}"), value.clone(), domain, why);
        }
        if let ("train", [_, duration, _, period, ..]) = (function, values)
            && fold(&[], period, 0).is_none_or(|period| period > 0.0)
        {
            let rest = Expr::binary(BinaryOp::Sub, period.clone(), duration.clone());
            let rest = Expr { span: duration.span, ..rest };
            self.demand(
                "period - duration` of `train".into(),
                rest,
                Domain::NotNegative,
                "a pulse ends before the next one begins",
            );
        }
        // How often it comes, and from when on the last one is there.
        let repeated = match (function, values) {
            ("train", [delay, _, _, period, count]) => Some(("pulse", delay, period, count)),
            ("staircase", [delay, duration, _, _, count]) => Some(("step", delay, duration, count)),
            _ => None,
        };
        if let Some((one, delay, each, count)) = repeated
            && fold(&[], count, 0).is_none_or(|count| count >= 1.0 && count.is_finite())
        {
            let before = Expr::binary(BinaryOp::Sub, count.clone(), Expr::number(1.0, Dim::ONE, count.span));
            let last = Expr::binary(BinaryOp::Mul, before, each.clone());
            let last = Expr { span: count.span, ..Expr::binary(BinaryOp::Add, delay.clone(), last) };
            let what = format!("start of the last {one}` of `{function}");
            self.demand(what, last, Domain::BeforeTheEnd, "so many do not fit into this run");
        }
        if let ("uniform", [low, high]) | ("truncated", [_, low, high]) = (function, values) {
            let width = Expr::binary(BinaryOp::Sub, high.clone(), low.clone());
            let width = Expr { span: low.span.to(high.span), ..width };
            self.demand(format!("high - low` of `{function}"), width, Domain::NotNegative, LOW_FIRST);
        }
    }

    /// Says that a number of the file is outside of its domain. What it is where it is no plain number is not known.
    pub(super) fn demand_now(&mut self, what: &str, value: &Expr, domain: Domain, why: &'static str) {
        if let Some(x) = fold(&[], value, 0) {
            let (unit, whose, what) = (value.ty.dim().display_unit(), Whose::Network, what.to_string());
            let code = Code::OutOfDomain;
            self.outside(&Demand { what, value, domain, why, code, unit, whose, span: value.span }, x);
        }
    }

    /// Demands that a value is in a domain.
    pub(super) fn demand(&mut self, what: String, value: Expr, domain: Domain, why: &'static str) {
        let (unit, span) = (value.ty.dim().display_unit(), value.span);
        let code = match domain {
            Domain::BeforeTheEnd => Code::NoEffect,
            Domain::Steps => Code::DelayRounded,
            _ => Code::OutOfDomain,
        };
        self.keep_demand(Demand { what, value, domain, why, code, unit, whose: Whose::Network, span });
    }

    /// Demands of a value that it is in the domain of the parameter or state that it is given to.
    pub(super) fn demand_as_declared(&mut self, what: String, value: &Expr, symbol: &Symbol) {
        if let Some(declared) = demand(&[], symbol) {
            self.keep_demand(Demand { span: value.span, ..declared.with(what, value.clone()) });
        }
    }

    /// Says what is outside of its domain already; the rest is demanded of the network.
    fn keep_demand(&mut self, demand: Demand<Expr>) {
        match fold(&[], &demand.value, 0) {
            Some(x) if !demand.domain.has(x, None) => self.outside(&demand, x),
            _ => self.demands.push(demand),
        }
    }

    fn outside<T>(&mut self, demand: &Demand<T>, x: f64) {
        if !demand.domain.has(x, None) {
            self.error(demand.outside(x, None, None));
        }
    }
}

/// The value of an expression of numbers and of symbols that are such expressions.
fn fold(symbols: &[Symbol], e: &Expr, depth: usize) -> Option<f64> {
    fold_at(symbols, e, None, depth)
}

/// Does a state begin at 0 and stay there, if nothing but its equation moves it?
pub(super) fn stays_at_zero(symbols: &[Symbol], state: SymbolId) -> bool {
    let Some(SymbolKind::State { init, rate, .. }) = symbols.get(state.0 as usize).map(|s| &s.kind) else {
        return false;
    };
    constant_of(init) == Some(0.0) && fold_at(symbols, rate, Some(state), 0) == Some(0.0)
}

/// The same where a state is 0, and whatever parameters are set to.
fn fold_at(symbols: &[Symbol], e: &Expr, zero: Option<SymbolId>, depth: usize) -> Option<f64> {
    let fold = |symbols, e, depth| fold_at(symbols, e, zero, depth);
    if depth > symbols.len() || e.ty == Ty::Bool {
        return None;
    }
    match &e.kind {
        ExprKind::Number(x) => Some(*x),
        ExprKind::Symbol(id) if zero == Some(*id) => Some(0.0),
        ExprKind::Symbol(id) => match &symbols.get(id.0 as usize)?.kind {
            SymbolKind::Param(_) if zero.is_some() => None,
            SymbolKind::Param(value) | SymbolKind::Let(value) => fold(symbols, value, depth + 1),
            SymbolKind::State { .. } | SymbolKind::Port(_) | SymbolKind::Voltage | SymbolKind::Pool => None,
        },
        ExprKind::Unary(UnaryOp::Neg, a) => fold(symbols, a, depth).map(|x| -x),
        ExprKind::Binary(op, a, b) => {
            let (a, b) = (fold(symbols, a, depth), fold(symbols, b, depth));
            let nothing = (zero.is_some(), op, a, b);
            if let (true, BinaryOp::Mul | BinaryOp::Div, Some(0.0), _) | (true, BinaryOp::Mul, _, Some(0.0)) = nothing {
                return Some(0.0);
            }
            let (a, b) = (a?, b?);
            match op {
                BinaryOp::Add => Some(a + b),
                BinaryOp::Sub => Some(a - b),
                BinaryOp::Mul => Some(a * b),
                BinaryOp::Div => Some(a / b),
                BinaryOp::Pow => Some(a.powf(b)),
                BinaryOp::Lt
                | BinaryOp::Le
                | BinaryOp::Gt
                | BinaryOp::Ge
                | BinaryOp::Eq
                | BinaryOp::Ne
                | BinaryOp::And
                | BinaryOp::Or => None,
            }
        }
        ExprKind::Bool(_)
        | ExprKind::NetworkParam(_)
        | ExprKind::Time
        | ExprKind::StepLength
        | ExprKind::Xi(_)
        | ExprKind::SteadyState
        | ExprKind::Celsius
        | ExprKind::Index
        | ExprKind::Dv
        | ExprKind::Beyond
        | ExprKind::Distance
        | ExprKind::Measure(_)
        | ExprKind::Outward
        | ExprKind::Weight
        | ExprKind::Amount
        | ExprKind::OfEdge(_)
        | ExprKind::Unary(UnaryOp::Not, _)
        | ExprKind::If(..)
        | ExprKind::Call(..)
        | ExprKind::Draw(..)
        | ExprKind::File(_)
        | ExprKind::Noise(..)
        | ExprKind::Chance(..)
        | ExprKind::Wanders(..)
        | ExprKind::Series(_) => None,
    }
}
