//! Channels: gates, named expressions and the current.

use super::lower::{ItemKind, ItemRef, Lowerer, finish};
use super::scope::{Entry, Role, Scope, ScopeKind};
use super::{Channel, Expr, ExprKind, SymbolId, SymbolKind, Ty};
use crate::diag::{Code, Diagnostic, nearest};
use crate::source::Span;
use crate::syntax::ast::{self, BinaryOp, ChannelMember, GateMember};
use crate::units::Dim;

/// The kinetics of a gate or of a fraction of one.
#[derive(Default)]
struct Kinetics<'a> {
    alpha: Option<&'a ast::Let>,
    beta: Option<&'a ast::Let>,
    inf: Option<&'a ast::Let>,
    tau: Option<&'a ast::Let>,
    init: Option<&'a ast::Let>,
    q10: Option<(&'a ast::Expr, Option<&'a ast::Expr>, Span)>,
    fractions: Vec<(&'a ast::Expr, &'a [GateMember], Span)>,
}

impl<'a> Lowerer<'a> {
    /// Lowers a channel once.
    pub(super) fn channel(&mut self, item: ItemRef<'a>, c: &'a ast::Channel) -> Option<Channel> {
        if let Some(known) = self.cached_channel(item) {
            return known.clone();
        }
        let channel = self.channel_uncached(item, c);
        self.keep_channel(item, channel.clone());
        channel
    }

    fn channel_uncached(&mut self, item: ItemRef<'a>, c: &'a ast::Channel) -> Option<Channel> {
        let mut scope = Scope::new(ScopeKind::Channel, item.file);
        let v = Entry::ready("v".into(), c.name.span, Role::Voltage, Some(Ty::Real(Dim::VOLTAGE)), None);
        scope.add(v).ok();
        let mut equations = Vec::new();
        let mut gates: Vec<(SymbolId, u32)> = Vec::new();
        let mut rates: Vec<(SymbolId, Expr)> = Vec::new();
        let mut pending_gates = Vec::new();
        let mut current = None;
        let mut whole = true;
        for member in &c.members {
            match member {
                ChannelMember::Param(p) => self.add_param(&mut scope, p, ""),
                ChannelMember::Let(l) => self.add_let(&mut scope, l, ""),
                ChannelMember::Reads(r) => {
                    let dim = match &r.unit {
                        Some(unit) => self.unit(unit).map(|u| u.dim),
                        None => Some(Dim::ONE),
                    };
                    let entry = Entry::ready(r.name.text.clone(), r.name.span, Role::Pool, dim.map(Ty::Real), None);
                    self.add(&mut scope, &r.name, Entry { written: true, ..entry });
                }
                ChannelMember::State(s) => self.add_state(&mut scope, s, ""),
                ChannelMember::Equation(e) => equations.push(e),
                ChannelMember::Gate(g) => match self.add_gate(&mut scope, g) {
                    Some(added) => {
                        gates.push((added.value, g.power.map_or(1, |p| p.0)));
                        pending_gates.push(added);
                    }
                    None => whole = false,
                },
                ChannelMember::Current(l) => {
                    if l.name.text != "i" {
                        self.error(Diagnostic::new(
                            Code::UnknownKey,
                            l.name.span,
                            format!("a channel's current is called `i`, not `{}`", l.name.text),
                            "write `current i = ...`",
                        ));
                        whole = false;
                    } else if current.is_some() {
                        self.error(Diagnostic::new(
                            Code::DuplicateKey,
                            l.name.span,
                            "a channel has one current",
                            "a second `current` line",
                        ));
                    } else {
                        current = Some(l);
                    }
                }
            }
        }
        self.resolve_all(&mut scope);
        for gate in pending_gates {
            self.finish_gate(&mut scope, gate, &mut rates);
        }
        for (id, rate) in rates {
            scope.entry_mut(id).rate = Some(rate);
        }
        self.add_equations(&mut scope, equations.into_iter(), "");
        self.check_equations(&mut scope);
        let i = match current {
            Some(l) => {
                let value = self.expr(&mut scope, "", &l.value);
                value.and_then(|x| self.current_dimension(x))
            }
            None if whole => self.implied_current(&mut scope, c, &gates),
            None => None,
        };
        let span = current.map_or(c.name.span, |l| l.name.span);
        let ty = i.as_ref().map(|i| i.ty);
        scope.add(Entry::ready("i".into(), span, Role::Let, ty, i)).ok();
        self.warn_unused(&scope, "channel");
        let symbols = finish(scope)?;
        Some(Channel { name: c.name.text.clone(), span: c.name.span, docs: c.docs.clone(), symbols })
    }

    fn current_dimension(&mut self, x: Expr) -> Option<Expr> {
        if x.ty == Ty::Real(Dim::CURRENT) {
            return Some(x);
        }
        self.expect(x, Dim::CURRENT_DENSITY, "a channel's current")
    }

    /// gbar * product of gates * (v - erev).
    fn implied_current(
        &mut self,
        scope: &mut Scope<'a>,
        c: &'a ast::Channel,
        gates: &[(SymbolId, u32)],
    ) -> Option<Expr> {
        let missing: Vec<_> = ["gbar", "erev"].into_iter().filter(|p| scope.get(p).is_none()).collect();
        if !missing.is_empty() {
            let list = missing.iter().map(|m| format!("`{m}`")).collect::<Vec<_>>().join(" and ");
            self.error(
                Diagnostic::new(
                    Code::MissingCurrent,
                    c.name.span,
                    format!("the current of channel `{}` is not determined", c.name.text),
                    format!("no {list}, and no `current` line"),
                )
                .help("add `param gbar = ... mS/cm2` and `param erev = ... mV`, or `current i = ...`"),
            );
            return None;
        }
        let span = c.name.span;
        let mut symbol = |name: &str| {
            let id = scope.get(name)?;
            scope.entry_mut(id).used = true;
            Some(Expr::symbol(id, scope.entry(id).ty?, span))
        };
        let (gbar, erev, v) = (symbol("gbar")?, symbol("erev")?, symbol("v")?);
        let gbar_at = scope.entry(scope.get("gbar")?).span;
        let erev = self.expect(Expr { span: scope.entry(scope.get("erev")?).span, ..erev }, Dim::VOLTAGE, "`erev`")?;
        if gbar.ty != Ty::Real(Dim::CONDUCTANCE) {
            self.expect(Expr { span: gbar_at, ..gbar.clone() }, Dim::CONDUCTANCE_DENSITY, "`gbar`")?;
        }
        let mut product = gbar;
        for &(gate, power) in gates {
            scope.entry_mut(gate).used = true;
            let mut x = Expr::symbol(gate, Ty::Real(Dim::ONE), span);
            if power != 1 {
                x = Expr::binary(BinaryOp::Pow, x, Expr::number(f64::from(power), Dim::ONE, span));
            }
            product = Expr::binary(BinaryOp::Mul, product, x);
        }
        Some(Expr::binary(BinaryOp::Mul, product, Expr::binary(BinaryOp::Sub, v, Expr { span, ..erev })))
    }

    fn add_gate(&mut self, scope: &mut Scope<'a>, g: &'a ast::Gate) -> Option<PendingGate<'a>> {
        self.check_reserved(&g.name);
        if let Some((0, span)) | Some((17.., span)) = g.power {
            self.error(Diagnostic::new(
                Code::BadValue,
                span,
                "a gate's power is a whole number from 1 to 16",
                "out of range",
            ));
        }
        let kinetics = self.kinetics(&g.members)?;
        let name = g.name.text.as_str();
        if kinetics.fractions.is_empty() {
            let value = self.add_part(scope, &g.name, name, &kinetics, g.instantaneous.is_some())?;
            return Some(PendingGate {
                name: &g.name,
                value,
                parts: vec![(value, None, kinetics)],
                instantaneous: g.instantaneous.is_some(),
            });
        }
        // Fractions: name = sum of weight * part.
        for (key, given) in
            [("alpha", kinetics.alpha), ("beta", kinetics.beta), ("inf", kinetics.inf), ("tau", kinetics.tau)]
        {
            if let Some(l) = given {
                let message = format!("a gate with fractions has no `{key}` of its own");
                self.error(Diagnostic::new(Code::IncompleteGate, l.name.span, message, "belongs inside a fraction"));
            }
        }
        let mut parts = Vec::new();
        for (k, &(weight, members, _)) in kinetics.fractions.iter().enumerate() {
            let mut part = self.kinetics(members)?;
            part.q10 = part.q10.or(kinetics.q10);
            part.init = part.init.or(kinetics.init);
            let part_name = format!("{name}.{}", k + 1);
            let weight = self.expr_of(scope, "", weight, Dim::ONE, "the weight of a fraction")?;
            let value = self.add_part(scope, &g.name, &part_name, &part, g.instantaneous.is_some())?;
            parts.push((value, Some(weight), part));
        }
        let constant: Option<Vec<f64>> =
            parts.iter().map(|p| p.1.as_ref().and_then(super::expr::constant_of)).collect();
        if let Some(weights) = constant
            && (weights.iter().sum::<f64>() - 1.0).abs() > 1e-9
        {
            let sum: f64 = weights.iter().sum();
            self.error(Diagnostic::new(
                Code::IncompleteGate,
                g.name.span,
                format!("the fractions of gate `{name}` sum to {sum}, not to 1"),
                "weights of the fractions",
            ));
        }
        let sum = parts
            .iter()
            .map(|(id, weight, _)| {
                let part = Expr::symbol(*id, Ty::Real(Dim::ONE), g.name.span);
                match weight {
                    Some(w) => Expr::binary(BinaryOp::Mul, w.clone(), part),
                    None => part,
                }
            })
            .reduce(|a, b| Expr::binary(BinaryOp::Add, a, b))?;
        let entry = Entry::ready(name.into(), g.name.span, Role::Let, Some(Ty::Real(Dim::ONE)), Some(sum));
        let value = self.add(scope, &g.name, entry)?;
        Some(PendingGate { name: &g.name, value, parts, instantaneous: g.instantaneous.is_some() })
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
        let rates = k.alpha.is_some() && k.beta.is_some();
        let complete = match instantaneous {
            true => rates || k.inf.is_some(),
            false => rates || (k.inf.is_some() && k.tau.is_some()),
        };
        if !complete {
            let has = |x: Option<&ast::Let>, n| if x.is_some() { None } else { Some(n) };
            let missing = match (k.alpha.is_some() || k.beta.is_some(), instantaneous) {
                (true, _) => [has(k.alpha, "`alpha`"), has(k.beta, "`beta`")],
                (false, true) => [has(k.inf, "`inf`"), None],
                (false, false) => [has(k.inf, "`inf`"), has(k.tau, "`tau`")],
            };
            let list = missing.into_iter().flatten().collect::<Vec<_>>().join(" and ");
            let mut d = Diagnostic::new(
                Code::IncompleteGate,
                gate.span,
                format!("gate `{}` lacks {list}", gate.text),
                "a gate needs `alpha` and `beta`, or `inf` and `tau`",
            );
            if k.inf.is_some() && k.tau.is_none() && !instantaneous {
                d = d.help(format!(
                    "for a gate that follows at once, write `gate {} instantaneous {{ ... }}`",
                    gate.text
                ));
            }
            self.error(d);
            return None;
        }
        if let (true, Some(tau)) = (instantaneous, k.tau) {
            self.error(Diagnostic::new(
                Code::IncompleteGate,
                tau.name.span,
                "an instantaneous gate has no time constant",
                "remove `tau`, or the word `instantaneous`",
            ));
        }
        let prefix = format!("{name}.");
        for (given, dim, why) in [
            (k.alpha, Dim::RATE, "`alpha`"),
            (k.beta, Dim::RATE, "`beta`"),
            (k.inf, Dim::ONE, "`inf`"),
            (k.tau, Dim::TIME, "`tau`"),
        ] {
            if let Some(l) = given {
                let entry =
                    Entry::pending(format!("{prefix}{}", l.name.text), l.name.span, Role::Let, &l.value, &prefix);
                scope.add(Entry { used: true, ..entry.want(dim, why) }).ok();
            }
        }
        if rates {
            let symbol = |key: &str| {
                scope.get(&format!("{prefix}{key}")).map(|id| Expr::symbol(id, Ty::Real(Dim::RATE), gate.span))
            };
            let (alpha, beta) = (symbol("alpha")?, symbol("beta")?);
            let sum = Expr::binary(BinaryOp::Add, alpha.clone(), beta);
            let tau = Expr::binary(BinaryOp::Div, Expr::number(1.0, Dim::ONE, gate.span), sum.clone());
            let made = [("inf", Dim::ONE, Expr::binary(BinaryOp::Div, alpha, sum)), ("tau", Dim::TIME, tau)];
            for (key, dim, value) in made {
                let ty = Some(Ty::Real(dim));
                // An `inf` or `tau` that is given stays.
                scope.add(Entry::ready(format!("{prefix}{key}"), gate.span, Role::Let, ty, Some(value))).ok();
            }
        }
        let inf = scope.get(&format!("{prefix}inf"))?;
        let inf = Expr::symbol(inf, Ty::Real(Dim::ONE), gate.span);
        let one = Some(Ty::Real(Dim::ONE));
        let entry = if instantaneous {
            Entry::ready(name.into(), gate.span, Role::Let, one, Some(inf))
        } else {
            match k.init {
                Some(init) => Entry::pending(name.into(), gate.span, Role::State { gate: true }, &init.value, &prefix)
                    .want(Dim::ONE, "the initial value of a gate"),
                None => Entry::ready(name.into(), gate.span, Role::State { gate: true }, one, Some(inf)),
            }
        };
        let entry = Entry { written: true, ..entry };
        self.add(scope, gate, entry)
    }

    /// Builds the derivatives of a gate's states, when the types of its members are known.
    fn finish_gate(&mut self, scope: &mut Scope<'a>, gate: PendingGate<'a>, rates: &mut Vec<(SymbolId, Expr)>) {
        if gate.instantaneous {
            return;
        }
        let span = gate.name.span;
        for (id, _, k) in gate.parts {
            let name = scope.entry(id).name.clone();
            let symbol = |key: &str, dim| {
                let id = scope.get(&format!("{name}.{key}"))?;
                scope.entry(id).ty?;
                Some(Expr::symbol(id, Ty::Real(dim), span))
            };
            let x = Expr::symbol(id, Ty::Real(Dim::ONE), span);
            let rate = if k.inf.is_none() && k.tau.is_none() {
                // alpha (1 - x) - beta x
                let (Some(alpha), Some(beta)) = (symbol("alpha", Dim::RATE), symbol("beta", Dim::RATE)) else {
                    continue;
                };
                let one = Expr::number(1.0, Dim::ONE, span);
                let open = Expr::binary(BinaryOp::Mul, alpha, Expr::binary(BinaryOp::Sub, one, x.clone()));
                Expr::binary(BinaryOp::Sub, open, Expr::binary(BinaryOp::Mul, beta, x))
            } else {
                let (Some(inf), Some(tau)) = (symbol("inf", Dim::ONE), symbol("tau", Dim::TIME)) else { continue };
                Expr::binary(BinaryOp::Div, Expr::binary(BinaryOp::Sub, inf, x), tau)
            };
            let rate = match k.q10 {
                None => Some(rate),
                Some((value, at, q_span)) => {
                    self.q10(scope, value, at, q_span).map(|q| Expr::binary(BinaryOp::Mul, q, rate))
                }
            };
            if let Some(rate) = rate {
                rates.push((id, rate));
            }
        }
    }

    /// The factor of the rates: value, or value ^ ((celsius - at) / 10 K).
    fn q10(
        &mut self,
        scope: &mut Scope<'a>,
        value: &'a ast::Expr,
        at: Option<&'a ast::Expr>,
        span: Span,
    ) -> Option<Expr> {
        let value = self.expr_of(scope, "", value, Dim::ONE, "`q10`")?;
        let Some(at) = at else { return Some(value) };
        let at = self.expr_of(scope, "", at, Dim::TEMPERATURE, "the temperature of `q10`")?;
        let celsius = Expr { kind: ExprKind::Celsius, ty: Ty::Real(Dim::TEMPERATURE), span };
        let ten = Expr::number(10.0, Dim::TEMPERATURE, span);
        let exponent = Expr::binary(BinaryOp::Div, Expr::binary(BinaryOp::Sub, celsius, at), ten);
        Some(Expr::binary(BinaryOp::Pow, value, exponent))
    }

    fn kinetics(&mut self, members: &'a [GateMember]) -> Option<Kinetics<'a>> {
        let mut k = Kinetics::default();
        let mut fine = true;
        for member in members {
            match member {
                GateMember::Key(l) => {
                    let slot = match l.name.text.as_str() {
                        "alpha" => &mut k.alpha,
                        "beta" => &mut k.beta,
                        "inf" => &mut k.inf,
                        "tau" => &mut k.tau,
                        "init" => &mut k.init,
                        _ => {
                            self.unknown_key(
                                &l.name,
                                "a gate",
                                &["alpha", "beta", "inf", "tau", "init", "q10", "fraction"],
                            );
                            fine = false;
                            continue;
                        }
                    };
                    if let Some(first) = slot.replace(l) {
                        self.duplicate_key(&l.name, first.name.span);
                        fine = false;
                    }
                }
                GateMember::Q10 { value, at, span } => {
                    if k.q10.replace((value, at.as_ref(), *span)).is_some() {
                        self.error(Diagnostic::new(Code::DuplicateKey, *span, "`q10` is given twice", "given again"));
                    }
                }
                GateMember::Fraction { weight, members, span } => k.fractions.push((weight, members, *span)),
            }
        }
        fine.then_some(k)
    }

    pub(super) fn unknown_key(&mut self, name: &ast::Name, what: &str, keys: &[&str]) {
        let message = format!("{what} has no `{}`", name.text);
        let mut d = Diagnostic::new(Code::UnknownKey, name.span, message, "no such key");
        if let Some(near) = nearest(&name.text, keys.iter().copied()) {
            d = d.help(format!("did you mean `{near}`?"));
        } else {
            d = d.note(format!("it can have {}", keys.join(", ")));
        }
        self.error(d);
    }

    pub(super) fn duplicate_key(&mut self, name: &ast::Name, first: Span) {
        self.error(
            Diagnostic::new(Code::DuplicateKey, name.span, format!("`{}` is given twice", name.text), "given again")
                .see(first, "first given here"),
        );
    }

    /// Adds an entry under its user's name, or says that the name is taken.
    pub(super) fn add(&mut self, scope: &mut Scope<'a>, name: &ast::Name, entry: Entry<'a>) -> Option<SymbolId> {
        match scope.add(entry) {
            Ok(id) => Some(id),
            Err(first) => {
                self.duplicate(name, first);
                None
            }
        }
    }

    pub(super) fn add_param(&mut self, scope: &mut Scope<'a>, p: &'a ast::Param, prefix: &str) {
        self.check_reserved(&p.name);
        let name = format!("{prefix}{}", p.name.text);
        let mut entry = Entry::pending(name, p.name.span, Role::Param, &p.value, prefix).docs(&p.docs);
        if let Some(unit) = &p.unit {
            let Some(u) = self.unit(unit) else { return };
            entry = entry.want(u.dim, "the value of this parameter");
            entry.unit = Some(u.display(self.text(unit.span).trim()));
        } else {
            entry.unit = self.unit_of_literal(&p.value);
        }
        self.add(scope, &p.name, entry);
    }

    /// The unit that a literal default was written with, to show values in it again.
    fn unit_of_literal(&self, e: &ast::Expr) -> Option<crate::units::DisplayUnit> {
        let e = match &e.kind {
            ast::ExprKind::Unary(ast::UnaryOp::Neg, a) => a,
            _ => e,
        };
        let ast::ExprKind::Number { unit: Some(unit), .. } = &e.kind else { return None };
        let text = self.text(unit.span).trim();
        crate::units::Unit::parse(&text.replace(' ', "")).map(|u| u.display(text))
    }

    pub(super) fn add_let(&mut self, scope: &mut Scope<'a>, l: &'a ast::Let, prefix: &str) {
        self.check_reserved(&l.name);
        let name = format!("{prefix}{}", l.name.text);
        self.add(scope, &l.name, Entry::pending(name, l.name.span, Role::Let, &l.value, prefix));
    }

    pub(super) fn add_state(&mut self, scope: &mut Scope<'a>, s: &'a ast::State, prefix: &str) {
        // Point neurons call their potential v.
        if s.name.text != "v" || scope.kind != ScopeKind::Cell {
            self.check_reserved(&s.name);
        }
        let name = format!("{prefix}{}", s.name.text);
        let Some(init) = &s.init else {
            self.error(
                Diagnostic::new(
                    Code::MissingInit,
                    s.name.span,
                    format!("state `{}` has no initial value", s.name.text),
                    "there are no silent zeros",
                )
                .help(format!("write `state {}: unit = value`", s.name.text)),
            );
            let ty = s.unit.as_ref().and_then(|u| self.unit(u)).map(|u| Ty::Real(u.dim));
            let entry = Entry::ready(name, s.name.span, Role::State { gate: false }, ty, None);
            self.add(scope, &s.name, Entry { written: true, ..entry });
            return;
        };
        let mut entry = Entry::pending(name, s.name.span, Role::State { gate: false }, init, prefix);
        if let Some(unit) = &s.unit {
            let Some(u) = self.unit(unit) else { return };
            entry = entry.want(u.dim, "the initial value of this state");
            entry.unit = Some(u.display(self.text(unit.span).trim()));
        } else {
            entry.unit = self.unit_of_literal(init);
        }
        self.add(scope, &s.name, entry);
    }

    /// Lowers `x' = ...` lines onto their states.
    pub(super) fn add_equations(
        &mut self,
        scope: &mut Scope<'a>,
        equations: impl Iterator<Item = &'a ast::Equation>,
        prefix: &str,
    ) {
        for e in equations {
            let state = scope.get(&format!("{prefix}{}", e.name.text));
            let state = state.filter(|id| matches!(scope.entry(*id).role, Role::State { .. }));
            let Some(id) = state else {
                let mut d = Diagnostic::new(
                    Code::EquationWithoutState,
                    e.name.span,
                    format!("`{}` is not a state", e.name.text),
                    "an equation needs a state",
                )
                .help(format!("declare it: `state {}: unit = value`", e.name.text));
                let states = scope.entries.iter().filter(|s| matches!(s.role, Role::State { .. }));
                let names: Vec<&str> = states.map(|s| s.name.strip_prefix(prefix).unwrap_or(&s.name)).collect();
                if let Some(near) = nearest(&e.name.text, names.iter().copied()) {
                    d = d.help(format!("did you mean `{near}'`?"));
                }
                self.error(d);
                continue;
            };
            if scope.entry(id).rate.is_some() {
                let first = scope.entry(id).span;
                let message = format!("`{}` has two equations", e.name.text);
                self.error(
                    Diagnostic::new(Code::DuplicateKey, e.name.span, message, "a second equation")
                        .see(first, "the state"),
                );
                continue;
            }
            let rate = self.expr(scope, prefix, &e.value);
            let ty = self.resolve(scope, id, None);
            if let (Some(rate), Some(Ty::Real(dim))) = (rate, ty) {
                let why = format!("the derivative of `{}`", e.name.text);
                let entry = scope.entry_mut(id);
                // Keeps the place of the equation for messages at run time.
                entry.span = e.name.span;
                entry.rate = self
                    .expect(rate, dim.over(Dim::TIME), &why)
                    .or_else(|| Some(Expr::number(0.0, dim.over(Dim::TIME), e.name.span)));
            } else {
                scope.entry_mut(id).rate = Some(Expr::number(0.0, Dim::ONE, e.name.span));
            }
        }
    }

    /// Says which states have no equation.
    pub(super) fn check_equations(&mut self, scope: &mut Scope<'a>) {
        for entry in &scope.entries {
            let missing = matches!(entry.role, Role::State { gate: false }) && entry.rate.is_none();
            if missing && entry.written {
                let short = entry.name.rsplit('.').next().unwrap_or(&entry.name);
                self.error(
                    Diagnostic::new(
                        Code::MissingEquation,
                        entry.span,
                        format!("state `{}` has no equation", entry.name),
                        "it would never change",
                    )
                    .help(format!("write `{short}' = ...`; if only spikes change it, write `{short}' = 0`")),
                );
            }
        }
    }

    pub(super) fn warn_unused(&mut self, scope: &Scope<'a>, what: &str) {
        for entry in &scope.entries {
            let nameable = matches!(entry.role, Role::Param | Role::Let | Role::Pool);
            if entry.written && !entry.used && nameable && entry.ty.is_some() {
                let kind = match entry.role {
                    Role::Param => "parameter",
                    Role::Pool => "pool",
                    Role::Let | Role::State { .. } | Role::Port(_) | Role::Voltage => "named expression",
                };
                self.error(Diagnostic::new(
                    Code::Unused,
                    entry.span,
                    format!("{kind} `{}` is never used", entry.name),
                    format!("nothing in this {what} depends on it"),
                ));
            }
        }
    }

    /// The channel that an `insert` names.
    pub(super) fn inserted_channel(&mut self, file: usize, name: &ast::Name) -> Option<Channel> {
        let item = self.find_item(file, name, "a channel", |k| matches!(k, ItemKind::Channel(_)))?;
        let ItemKind::Channel(c) = item.kind else { return None };
        self.channel(item, c)
    }
}

/// A gate whose symbols exist, but not yet its derivatives.
struct PendingGate<'a> {
    name: &'a ast::Name,
    value: SymbolId,
    parts: Vec<(SymbolId, Option<Expr>, Kinetics<'a>)>,
    instantaneous: bool,
}

/// The places where a channel's symbols go in a cell.
pub(super) fn instantiate<'a>(
    channel: &Channel,
    prefix: &str,
    place: impl Fn(usize) -> Option<SymbolId>,
    base: usize,
) -> Vec<Entry<'a>> {
    // Symbols that stand for the compartment's own are not copied; the others follow each other from `base` on.
    let mut map = Vec::new();
    let mut next = base;
    for (i, _) in channel.symbols.iter().enumerate() {
        map.push(place(i).unwrap_or_else(|| {
            next += 1;
            SymbolId(next as u32 - 1)
        }));
    }
    let f = |id: SymbolId| map[id.0 as usize];
    let mut out = Vec::new();
    for (i, s) in channel.symbols.iter().enumerate() {
        if place(i).is_some() {
            continue;
        }
        let (role, value, rate) = match &s.kind {
            SymbolKind::Param(e) => (Role::Param, Some(e.map_symbols(&f)), None),
            SymbolKind::Let(e) => (Role::Let, Some(e.map_symbols(&f)), None),
            SymbolKind::State { init, rate, gate } => {
                (Role::State { gate: *gate }, Some(init.map_symbols(&f)), Some(rate.map_symbols(&f)))
            }
            SymbolKind::Port(kind) => (Role::Port(*kind), None, None),
            SymbolKind::Voltage => (Role::Voltage, None, None),
            SymbolKind::Pool => (Role::Pool, None, None),
        };
        let mut entry = Entry::ready(format!("{prefix}{}", s.name), s.span, role, Some(s.ty), value);
        entry.rate = rate;
        entry.unit = s.unit.clone();
        entry.docs = s.docs.clone();
        out.push(entry);
    }
    out
}
