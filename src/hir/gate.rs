//! Gates: their kinetics, their fractions, and the equations that follow from them.
//!
//! In come gates of a channel; out go entries of its scope: `m` itself, and `m.alpha`, `m.beta`, `m.inf` and `m.tau`.
//! Never true here: a gate has a dimension.

use super::domain::Domain;
use super::error::{GateError, KeyError};
use super::expr::constant_of;
use super::keys::Block;
use super::lower::Lowerer;
use super::scope::{Entry, Role, Scope};
use super::{Expr, ExprKind, StateKind, SymbolId, Ty};
use crate::source::Span;
use crate::syntax::ast::{self, BinaryOp, GateMember};
use crate::units::Dim;

const ONE: Option<Ty> = Some(Ty::Real(Dim::ONE));

/// A gate whose symbols exist, but not yet its derivatives.
pub(super) struct PendingGate<'a> {
    pub value: SymbolId,
    /// The exponent in the implied current.
    pub power: u32,
    pub span: Span,
    /// The gate itself, or its fractions.
    parts: Vec<(SymbolId, Kinetics<'a>)>,
    /// Of fractions, how much each counts.
    weights: Vec<SymbolId>,
    instantaneous: bool,
}

impl<'a> PendingGate<'a> {
    fn new(
        g: &ast::Gate,
        value: SymbolId,
        parts: Vec<(SymbolId, Kinetics<'a>)>,
        weights: Vec<SymbolId>,
    ) -> PendingGate<'a> {
        let (power, span, instantaneous) = (g.power.map_or(1, |p| p.0), g.name.span, g.instantaneous.is_some());
        PendingGate { value, power, span, parts, weights, instantaneous }
    }
}

/// The kinetics of a gate or of a fraction of one.
#[derive(Default)]
struct Kinetics<'a> {
    alpha: Option<&'a ast::Let>,
    beta: Option<&'a ast::Let>,
    inf: Option<&'a ast::Let>,
    tau: Option<&'a ast::Let>,
    init: Option<&'a ast::Let>,
    q10: Option<(&'a ast::Expr, Option<&'a ast::Expr>, Span)>,
    fractions: Vec<(&'a ast::Expr, &'a [GateMember])>,
}

impl<'a> Kinetics<'a> {
    /// What of alpha, beta, inf and tau is given.
    fn given(&self) -> impl Iterator<Item = &'a ast::Let> + use<'a> {
        [self.alpha, self.beta, self.inf, self.tau].into_iter().flatten()
    }

    fn has_rates(&self) -> bool {
        self.alpha.is_some() && self.beta.is_some()
    }

    /// What is missing, if anything is.
    fn missing(&self, instantaneous: bool) -> Vec<&'static str> {
        if self.has_rates() || (self.inf.is_some() && (instantaneous || self.tau.is_some())) {
            return Vec::new();
        }
        let begun = match (self.alpha.is_some() || self.beta.is_some(), instantaneous) {
            (true, _) => vec![("`alpha`", self.alpha), ("`beta`", self.beta)],
            (false, true) => vec![("`inf`", self.inf)],
            (false, false) => vec![("`inf`", self.inf), ("`tau`", self.tau)],
        };
        begun.iter().filter(|key| key.1.is_none()).map(|key| key.0).collect()
    }

    /// The derivative of a gate or fraction, if nothing is wrong with what it follows from: without `inf` and `tau`,
    /// alpha (1 - x) - beta x, else (inf - x) / tau.
    fn rate(&self, scope: &Scope<'a>, id: SymbolId, span: Span) -> Option<Expr> {
        let name = &scope.entry(id).name;
        let symbol = |key: &str, dim| {
            let id = scope.get(&format!("{name}.{key}"))?;
            scope.entry(id).ty?;
            Some(Expr::symbol(id, Ty::Real(dim), span))
        };
        let x = Expr::symbol(id, Ty::Real(Dim::ONE), span);
        if self.inf.is_some() || self.tau.is_some() {
            let (inf, tau) = (symbol("inf", Dim::ONE)?, symbol("tau", Dim::TIME)?);
            return Some(Expr::binary(BinaryOp::Div, Expr::binary(BinaryOp::Sub, inf, x), tau));
        }
        let (alpha, beta) = (symbol("alpha", Dim::RATE)?, symbol("beta", Dim::RATE)?);
        let closed = Expr::binary(BinaryOp::Sub, Expr::number(1.0, Dim::ONE, span), x.clone());
        let opening = Expr::binary(BinaryOp::Mul, alpha, closed);
        Some(Expr::binary(BinaryOp::Sub, opening, Expr::binary(BinaryOp::Mul, beta, x)))
    }
}

impl<'a> Lowerer<'a> {
    pub(super) fn add_gate(&mut self, scope: &mut Scope<'a>, g: &'a ast::Gate) -> Option<PendingGate<'a>> {
        self.check_reserved(&g.name);
        if let Some((0, span)) | Some((17.., span)) = g.power {
            self.error(GateError::Power { span });
        }
        let added = self.kinetics(&g.members).and_then(|k| self.add_kinetics(scope, g, k));
        if added.is_none() {
            poison(scope, &g.name);
        }
        added
    }

    /// What stands in a gate or a fraction.
    fn kinetics(&mut self, members: &'a [GateMember]) -> Option<Kinetics<'a>> {
        let mut k = Kinetics::default();
        let mut fine = true;
        for member in members {
            match member {
                GateMember::Key(l) => fine &= self.kinetics_key(&mut k, l),
                GateMember::Q10 { value, at, span } => {
                    if let Some((_, _, first)) = k.q10.replace((value, at.as_ref(), *span)) {
                        self.error(KeyError::Repeated { key: "q10", again: *span, first });
                    }
                }
                GateMember::Fraction { weight, members, .. } => k.fractions.push((weight, members)),
            }
        }
        fine.then_some(k)
    }

    fn kinetics_key(&mut self, k: &mut Kinetics<'a>, l: &'a ast::Let) -> bool {
        let slot = match l.name.text.as_str() {
            "alpha" => &mut k.alpha,
            "beta" => &mut k.beta,
            "inf" => &mut k.inf,
            "tau" => &mut k.tau,
            "init" => &mut k.init,
            _ => {
                self.unknown_key(&l.name, Block::Gate);
                return false;
            }
        };
        let first = slot.replace(l);
        if let Some(first) = first {
            self.duplicate_key(&l.name, first.name.span);
        }
        first.is_none()
    }

    fn add_kinetics(
        &mut self,
        scope: &mut Scope<'a>,
        g: &'a ast::Gate,
        kinetics: Kinetics<'a>,
    ) -> Option<PendingGate<'a>> {
        let instantaneous = g.instantaneous.is_some();
        self.no_q10(g, &kinetics);
        if !kinetics.fractions.is_empty() {
            return self.add_fractions(scope, g, &kinetics);
        }
        let value = self.add_part(scope, &g.name, &g.name.text, &kinetics, instantaneous)?;
        Some(PendingGate::new(g, value, vec![(value, kinetics)], Vec::new()))
    }

    /// Sees to it that only gates that take time have a factor of their rates.
    fn no_q10(&mut self, g: &'a ast::Gate, kinetics: &Kinetics<'a>) {
        if let (Some(_), Some((_, _, span))) = (&g.instantaneous, kinetics.q10) {
            self.error(GateError::Q10Instantaneous { gate: &g.name, span });
        }
    }

    /// Adds `m.1`, `m.2`, ..., what each counts (`m.1.weight`), and `m` as the sum of weight * fraction.
    fn add_fractions(
        &mut self,
        scope: &mut Scope<'a>,
        g: &'a ast::Gate,
        whole: &Kinetics<'a>,
    ) -> Option<PendingGate<'a>> {
        for l in whole.given() {
            self.error(GateError::OutsideFraction { key: &l.name });
        }
        let mut parts = Vec::new();
        let mut weights = Vec::new();
        for (k, &(weight, members)) in whole.fractions.iter().enumerate() {
            let mut part = self.kinetics(members)?;
            self.no_q10(g, &part);
            part.q10 = part.q10.or(whole.q10);
            part.init = part.init.or(whole.init);
            let name = format!("{}.{}", g.name.text, k + 1);
            let entry = Entry::pending(format!("{name}.weight"), weight.span, Role::Let, weight, "");
            let entry = Entry { used: true, written: false, ..entry.want(Dim::ONE, "the weight of a fraction") };
            weights.push(self.add(scope, &g.name, entry)?);
            let id = self.add_part(scope, &g.name, &name, &part, g.instantaneous.is_some())?;
            parts.push((id, part));
        }
        let symbol = |id: SymbolId, span| Expr::symbol(id, Ty::Real(Dim::ONE), span);
        let products = weights.iter().zip(&parts).map(|(&weight, part)| {
            Expr::binary(BinaryOp::Mul, symbol(weight, scope.entry(weight).span), symbol(part.0, g.name.span))
        });
        let sum = products.reduce(|a, b| Expr::binary(BinaryOp::Add, a, b))?;
        let entry = Entry::made(g.name.text.clone(), g.name.span, Role::Let, sum, weights.clone());
        Some(PendingGate::new(g, self.add(scope, &g.name, entry)?, parts, weights))
    }

    /// Weights that are known must have the sum 1.
    fn check_weights(&mut self, scope: &Scope<'a>, gate: &PendingGate<'a>) {
        let value =
            |&id: &SymbolId| Some((scope.entry(id).value.as_ref().and_then(constant_of)?, scope.entry(id).span));
        let known: Option<Vec<(f64, Span)>> = gate.weights.iter().map(value).collect();
        if let Some(known) = known
            && let Some((_, last)) = known.last()
            && (known.iter().map(|w| w.0).sum::<f64>() - 1.0).abs() > 1e-9
        {
            let last = self.text(*last);
            let name = &scope.entry(gate.value).name;
            self.error(GateError::FractionSum { gate: (name, gate.span), weights: &known, last });
        }
    }

    /// Adds the symbols of one set of kinetics: the state (or, if instantaneous, the value) and alpha, beta, inf, tau.
    fn add_part(
        &mut self,
        scope: &mut Scope<'a>,
        gate: &'a ast::Name,
        name: &str,
        k: &Kinetics<'a>,
        instantaneous: bool,
    ) -> Option<SymbolId> {
        let missing = k.missing(instantaneous);
        if !missing.is_empty() {
            self.error(GateError::Incomplete { gate, given: k.given().collect(), missing, instantaneous });
            return None;
        }
        if k.has_rates() && k.inf.is_some() && k.tau.is_some() {
            self.error(GateError::Twice { gate, given: k.given().collect() });
            return None;
        }
        if let (true, Some(tau)) = (instantaneous, k.tau) {
            self.error(GateError::TimeConstant { tau: &tau.name });
        }
        let prefix = format!("{name}.");
        add_given(scope, &prefix, k);
        if k.has_rates() {
            add_implied(scope, &prefix, gate.span)?;
        }
        let inf_id = scope.get(&format!("{prefix}inf"))?;
        let inf = Expr::symbol(inf_id, Ty::Real(Dim::ONE), gate.span);
        let role = if instantaneous { Role::Let } else { Role::State(StateKind::Gate) };
        let entry = match k.init {
            Some(init) if !instantaneous => {
                let entry = Entry::pending(name.into(), gate.span, role, &init.value, &prefix);
                entry.want(Dim::ONE, "the initial value of a gate")
            }
            _ if instantaneous => Entry::made(name.into(), gate.span, role, inf, vec![inf_id]),
            _ => Entry::ready(name.into(), gate.span, role, ONE, Some(inf)),
        };
        if let (true, Some(init)) = (instantaneous, k.init) {
            self.error(GateError::InitialValue { gate, init: &init.name });
        }
        self.add(scope, gate, Entry { written: true, ..entry })
    }

    /// Builds the derivatives of a gate's states, when the types of its members are known.
    pub(super) fn finish_gate(&mut self, scope: &mut Scope<'a>, gate: PendingGate<'a>) {
        self.check_weights(scope, &gate);
        if gate.instantaneous {
            return;
        }
        for (id, k) in gate.parts {
            let Some(rate) = k.rate(scope, id, gate.span) else { continue };
            let rate = match k.q10 {
                None => Some(rate),
                Some((value, at, span)) => {
                    self.q10(scope, value, at, span).map(|q| Expr::binary(BinaryOp::Mul, q, rate))
                }
            };
            scope.entry_mut(id).rate = rate;
        }
    }

    /// The factor of the rates: value, or value ^ ((celsius - at) / 10 K).
    pub(super) fn q10(
        &mut self,
        scope: &mut Scope<'a>,
        value: &'a ast::Expr,
        at: Option<&'a ast::Expr>,
        span: Span,
    ) -> Option<Expr> {
        const WHY: &str = "a factor of rates is above zero";
        let Some(at) = at else {
            let value = self.expr_of(scope, "", value, Dim::ONE, "`q10`");
            value.iter().for_each(|value| self.demand_now("q10", value, Domain::AboveZero, WHY));
            return value;
        };
        let (value, at) = (self.expr(scope, "", value), self.expr(scope, "", at));
        let (value, at) = (value?, at?);
        if value.ty == Ty::Real(Dim::TEMPERATURE) && at.ty == Ty::Real(Dim::ONE) {
            let [factor, temperature] = [at.span, value.span].map(|span| self.text(span));
            self.error(GateError::Q10Backwards { factor, temperature, span: value.span.to(at.span) });
            return None;
        }
        let value = self.expect(scope, value, Dim::ONE, "`q10`");
        let at = self.expect(scope, at, Dim::TEMPERATURE, "the temperature of `q10`");
        let (value, at) = (value?, at?);
        self.demand_now("q10", &value, Domain::AboveZero, WHY);
        let celsius = Expr { kind: ExprKind::Celsius, ty: Ty::Real(Dim::TEMPERATURE), span };
        let ten = Expr::number(10.0, Dim::TEMPERATURE, span);
        let exponent = Expr::binary(BinaryOp::Div, Expr::binary(BinaryOp::Sub, celsius, at), ten);
        Some(Expr::binary(BinaryOp::Pow, value, exponent))
    }
}

/// A gate is a pure number, whatever is wrong with its kinetics; nothing is known of those.
fn poison(scope: &mut Scope<'_>, gate: &ast::Name) {
    scope.add(Entry::ready(gate.text.clone(), gate.span, Role::Let, ONE, None)).ok();
    for key in ["alpha", "beta", "inf", "tau", "1", "2", "3", "4"] {
        let full = format!("{}.{key}", gate.text);
        if scope.get(&full).is_none() {
            scope.poisoned.insert(full);
        }
    }
}

/// Adds what is given of alpha, beta, inf and tau.
fn add_given<'a>(scope: &mut Scope<'a>, prefix: &str, k: &Kinetics<'a>) {
    for (given, dim, why) in [
        (k.alpha, Dim::RATE, "`alpha`"),
        (k.beta, Dim::RATE, "`beta`"),
        (k.inf, Dim::ONE, "`inf`"),
        (k.tau, Dim::TIME, "`tau`"),
    ] {
        if let Some(l) = given {
            let name = format!("{prefix}{}", l.name.text);
            let entry = Entry::pending(name, l.name.span, Role::Let, &l.value, prefix);
            scope.add(Entry { used: true, ..entry.want(dim, why) }).ok();
        }
    }
}

/// Adds inf = alpha / (alpha + beta) and tau = 1 / (alpha + beta), where they are not given.
fn add_implied(scope: &mut Scope<'_>, prefix: &str, span: Span) -> Option<()> {
    let ids = [scope.get(&format!("{prefix}alpha"))?, scope.get(&format!("{prefix}beta"))?];
    let [alpha, beta] = ids.map(|id| Expr::symbol(id, Ty::Real(Dim::RATE), span));
    let sum = Expr::binary(BinaryOp::Add, alpha.clone(), beta);
    let tau = Expr::binary(BinaryOp::Div, Expr::number(1.0, Dim::ONE, span), sum.clone());
    let inf = Expr::binary(BinaryOp::Div, alpha, sum);
    for (key, value) in [("inf", inf), ("tau", tau)] {
        scope.add(Entry::made(format!("{prefix}{key}"), span, Role::Let, value, ids.to_vec())).ok();
    }
    Some(())
}
