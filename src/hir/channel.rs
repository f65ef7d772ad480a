//! Channels: gates, named expressions and the current.

use super::lower::{Definition, ItemKind, ItemRef, Lowerer, finish};
use super::scope::{Entry, Role, Scope, ScopeKind, Status};
use super::{Channel, Expr, ExprKind, SymbolId, SymbolKind, Ty};
use crate::diag::{Code, Diagnostic, nearest};
use crate::source::Span;
use crate::syntax::ast::{self, BinaryOp, ChannelMember, GateMember};
use crate::units::Dim;
use std::rc::Rc;

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
    pub(super) fn channel(&mut self, item: ItemRef<'a>, c: &'a ast::Channel) -> Rc<Definition<Channel>> {
        if let Some(known) = self.cached_channel(item) {
            return known;
        }
        let channel = self.channel_uncached(item, c);
        self.keep_channel(item, channel)
    }

    fn channel_uncached(&mut self, item: ItemRef<'a>, c: &'a ast::Channel) -> Definition<Channel> {
        let before = self.diagnostics.count();
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
                    self.check_reserved(&r.name);
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
                        self.error(
                            Diagnostic::new(
                                Code::UnknownKey,
                                l.name.span,
                                format!("a channel's current is called `i`, not `{}`", l.name.text),
                                "the ion is known from the channel's name",
                            )
                            .help("write `current i = ...`"),
                        );
                        whole = false;
                    } else if current.is_some() {
                        let first: &ast::Let = current.unwrap_or(l);
                        self.error(
                            Diagnostic::new(
                                Code::DuplicateKey,
                                l.name.span,
                                "a channel has one current",
                                "a second `current` line",
                            )
                            .see(first.name.span, "the first")
                            .help("add them up in one line, or write two channels"),
                        );
                    } else {
                        current = Some(l);
                    }
                }
            }
        }
        let equations = self.find_states(&mut scope, equations, "");
        self.resolve_all(&mut scope);
        for gate in pending_gates {
            self.finish_gate(&mut scope, gate, &mut rates);
        }
        for (id, rate) in rates {
            scope.entry_mut(id).rate = Some(rate);
        }
        self.add_equations(&mut scope, equations, "");
        self.check_equations(&mut scope);
        let i = match current {
            Some(l) => {
                let value = self.expr(&mut scope, "", &l.value);
                value.and_then(|x| self.current_dimension(&scope, x))
            }
            None if whole => self.implied_current(&mut scope, c, &gates),
            None => None,
        };
        let span = current.map_or(c.name.span, |l| l.name.span);
        let ty = i.as_ref().map(|i| i.ty);
        if let Err(first) = scope.add(Entry::ready("i".into(), span, Role::Let, ty, i)) {
            let message = "`i` is a channel's current and cannot be defined otherwise";
            self.error(
                Diagnostic::new(Code::ReservedName, first, message, "something else of this name")
                    .help("choose another name, such as `i_0`; what the current is, `current i = ...` says"),
            );
        }
        if self.is_main(item.file) {
            self.warn_unused(&scope, "channel", before);
        }
        let (symbols, sound, unknown) = finish(scope);
        self.warn_magnitudes(&symbols);
        let channel = Channel { name: c.name.text.clone(), span: c.name.span, docs: c.docs.clone(), symbols };
        Definition { item: channel, sound: sound && whole, unknown }
    }

    fn current_dimension(&mut self, scope: &Scope<'a>, x: Expr) -> Option<Expr> {
        if x.ty == Ty::Real(Dim::CURRENT) {
            return Some(x);
        }
        self.expect(scope, x, Dim::CURRENT_DENSITY, "a channel's current")
    }

    /// gbar * product of gates * (v - erev).
    fn implied_current(
        &mut self,
        scope: &mut Scope<'a>,
        c: &'a ast::Channel,
        gates: &[(SymbolId, u32)],
    ) -> Option<Expr> {
        let absent = |p: &&str| scope.get(p).is_none() && !scope.is_poisoned("", p);
        let missing: Vec<_> = ["gbar", "erev"].into_iter().filter(absent).collect();
        if !missing.is_empty() {
            let list = missing.iter().map(|m| format!("`{m}`")).collect::<Vec<_>>().join(" and ");
            let examples: Vec<&str> = missing
                .iter()
                .map(|m| if *m == "gbar" { "`param gbar = 1 mS/cm2`" } else { "`param erev = -65 mV`" })
                .collect();
            let mut d = Diagnostic::new(
                Code::MissingCurrent,
                c.name.span,
                format!("the current of channel `{}` is not determined", c.name.text),
                format!("no {list}, and no `current` line"),
            );
            let similar = missing.iter().find_map(|m| {
                let own = scope.entries.iter().filter(|e| e.role == Role::Param && !e.used);
                let like = |n: &&str| {
                    let n = n.to_lowercase().replace('_', "");
                    match *m {
                        "gbar" => n.starts_with('g') && (n.len() < 3 || n.contains("bar") || n.contains("max")),
                        _ => n.starts_with('e') && n.len() < 6,
                    }
                };
                let names: Vec<&str> = own.map(|e| e.name.as_str()).collect();
                let near = names.iter().copied().find(|n| like(n)).or_else(|| nearest(m, names.iter().copied()))?;
                Some((scope.entry(scope.get(near)?).span, near.to_string(), *m))
            });
            match similar {
                Some((at, near, wanted)) => {
                    if let Some(id) = scope.get(&near) {
                        scope.entry_mut(id).used = true;
                    }
                    d = d.see(at, format!("is this the `{wanted}`?")).help(format!("rename `{near}` to `{wanted}`"));
                }
                None => d = d.help(format!("add {}, or `current i = ...`", examples.join(" and "))),
            }
            self.error(d);
            return None;
        }
        let span = c.name.span;
        let mut symbol = |name: &str| {
            let id = scope.get(name)?;
            scope.entry_mut(id).used = true;
            Some(Expr::symbol(id, scope.entry(id).ty?, span))
        };
        let (gbar, erev, v) = (symbol("gbar")?, symbol("erev")?, symbol("v")?);
        // The message stands at the value, not at the name.
        let value = |name: &str| scope.get(name).and_then(|id| scope.entry(id).value.clone());
        let (gbar_value, erev_value) = (value("gbar")?, value("erev")?);
        let fine =
            self.expect(scope, erev_value, Dim::VOLTAGE, "`erev`").is_some_and(|_| erev.ty == Ty::Real(Dim::VOLTAGE));
        if gbar.ty != Ty::Real(Dim::CONDUCTANCE) {
            self.expect(scope, gbar_value, Dim::CONDUCTANCE_DENSITY, "`gbar`")?;
        }
        let gbar_known = [Dim::CONDUCTANCE, Dim::CONDUCTANCE_DENSITY].iter().any(|d| gbar.ty == Ty::Real(*d));
        if !fine || !gbar_known {
            return None;
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
                "this is not",
            ));
        }
        let name = g.name.text.as_str();
        let added = self.kinetics(&g.members).and_then(|k| self.add_kinetics(scope, g, k));
        if added.is_none() {
            // A gate is a pure number, whatever is wrong with its kinetics; nothing is known of those.
            let entry = Entry::ready(name.into(), g.name.span, Role::Let, Some(Ty::Real(Dim::ONE)), None);
            scope.add(entry).ok();
            for key in ["alpha", "beta", "inf", "tau", "1", "2", "3", "4"] {
                let full = format!("{name}.{key}");
                if scope.get(&full).is_none() {
                    scope.poisoned.insert(full);
                }
            }
        }
        added
    }

    fn add_kinetics(
        &mut self,
        scope: &mut Scope<'a>,
        g: &'a ast::Gate,
        kinetics: Kinetics<'a>,
    ) -> Option<PendingGate<'a>> {
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
            let mut d = Diagnostic::new(
                Code::IncompleteGate,
                g.name.span,
                format!("the fractions of gate `{name}` sum to {}, not to 1", rounded(sum)),
                "",
            );
            for part in &parts {
                if let Some(w) = &part.1 {
                    d = d.see(w.span, "");
                }
            }
            if let Some((last, Some(x))) = parts.last().map(|p| (p, p.1.as_ref().and_then(super::expr::constant_of)))
                && 1.0 - (sum - x) > 0.0
                && let Some(w) = &last.1
            {
                d = d.help(format!("write `{}` instead of `{}`", rounded(1.0 - (sum - x)), self.text(w.span)));
            }
            self.error(d);
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
            let nothing = k.alpha.is_none() && k.beta.is_none() && k.inf.is_none() && k.tau.is_none();
            let message = match (nothing, instantaneous) {
                (true, false) => format!("gate `{}` has no kinetics", gate.text),
                _ => format!("gate `{}` lacks {list}", gate.text),
            };
            let label = match instantaneous {
                true => "an instantaneous gate needs `inf`",
                false => "a gate needs `alpha` and `beta`, or `inf` and `tau`",
            };
            let mut d = Diagnostic::new(Code::IncompleteGate, gate.span, message, label);
            for l in [k.alpha, k.beta, k.inf, k.tau].into_iter().flatten() {
                d = d.see(l.name.span, format!("`{}` is given", l.name.text));
            }
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
        if instantaneous && let Some(init) = k.init {
            let message = format!("gate `{}` is instantaneous and has no initial value", gate.text);
            let d = Diagnostic::new(Code::IncompleteGate, init.name.span, message, "it always equals `inf`");
            self.error(d.help("remove `init`, or the word `instantaneous`"));
        }
        let entry = Entry { written: true, ..entry };
        self.add(scope, gate, entry)
    }

    /// Warns of a gate that starts with a number outside [0, 1].
    fn check_gate_init(&mut self, scope: &Scope<'a>, id: SymbolId, init: &ast::Let) {
        let value = scope.entry(id).value.as_ref().and_then(super::expr::constant_of);
        if let Some(value) = value
            && !(0.0..=1.0).contains(&value)
        {
            let message = format!("gate `{}` starts at {value}, outside [0, 1]", scope.entry(id).name);
            let d = Diagnostic::new(Code::GateRange, init.value.span, message, "a gate is the fraction of open gates");
            self.error(d.help("leave `init` out to start at the steady state"));
        }
    }

    /// Builds the derivatives of a gate's states, when the types of its members are known.
    fn finish_gate(&mut self, scope: &mut Scope<'a>, gate: PendingGate<'a>, rates: &mut Vec<(SymbolId, Expr)>) {
        if gate.instantaneous {
            return;
        }
        let span = gate.name.span;
        for (id, _, k) in gate.parts {
            if let Some(init) = k.init {
                self.check_gate_init(scope, id, init);
            }
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
                    if let Some((_, _, first)) = k.q10.replace((value, at.as_ref(), *span)) {
                        let d = Diagnostic::new(Code::DuplicateKey, *span, "`q10` is given twice", "given again");
                        self.error(d.see(first, "first given here"));
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
        let meant = match (what, name.text.to_lowercase().as_str()) {
            ("a gate", "steady_state" | "steadystate" | "minf" | "hinf" | "ninf" | "x_inf" | "infinity") => Some("inf"),
            ("a gate", "mtau" | "htau" | "ntau" | "time_constant") => Some("tau"),
            ("a gate", "a" | "alphan" | "forward" | "forwardrate") => Some("alpha"),
            ("a gate", "b" | "betan" | "reverse" | "reverserate") => Some("beta"),
            ("a compartment", "v0" | "v" | "e_m" | "vinit" | "v_rest") => Some("v_init"),
            ("a compartment", "c" | "c_m" | "capacitance") => Some("cm"),
            ("a run", "tstop" | "t_stop" | "tend" | "t_end" | "length" | "time" | "stop") => Some("duration"),
            ("a run", "step" | "timestep" | "time_step" | "delta_t") => Some("dt"),
            ("a run", "temperature" | "temp" | "temperature_c") => Some("celsius"),
            ("a run", "solver" | "integrator" | "integration") => Some("method"),
            ("a run", "random_seed" | "rng") => Some("seed"),
            _ => None,
        };
        if let Some(near) = meant.or_else(|| nearest(&name.text, keys.iter().copied())) {
            d = d.help(format!("did you mean `{near}`?"));
        } else if what == "a compartment" && matches!(name.text.as_str(), "diam" | "length" | "L" | "radius") {
            d = d.help("a compartment has a surface, not a shape: `area = 1000 um2`");
        } else if what == "a compartment" && matches!(name.text.as_str(), "ra" | "Ra") {
            d = d.help("the conductance between compartments is given by `couple a <- b: g`");
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
        let free = self.check_reserved(&p.name);
        let name = format!("{prefix}{}", p.name.text);
        if !free && scope.get(&name).is_some() {
            return;
        }
        let mut entry = Entry::pending(name, p.name.span, Role::Param, &p.value, prefix).docs(&p.docs);
        if let Some(unit) = &p.unit {
            match self.unit(unit) {
                Some(u) => {
                    entry = entry.want(u.dim, "the value of this parameter");
                    entry.unit = Some(u.display(self.text(unit.span).trim()));
                }
                None => entry.status = Status::Done,
            }
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
        let free = self.check_reserved(&l.name);
        let name = format!("{prefix}{}", l.name.text);
        if free || scope.get(&name).is_none() {
            self.add(scope, &l.name, Entry::pending(name, l.name.span, Role::Let, &l.value, prefix));
        }
    }

    pub(super) fn add_state(&mut self, scope: &mut Scope<'a>, s: &'a ast::State, prefix: &str) {
        // Point neurons call their potential v.
        let name = format!("{prefix}{}", s.name.text);
        if (s.name.text != "v" || scope.kind != ScopeKind::Cell)
            && !self.check_reserved(&s.name)
            && scope.get(&name).is_some()
        {
            return;
        }
        let Some(init) = &s.init else {
            let unit = s.unit.as_ref().map(|u| self.text(u.span).trim());
            let declared = unit.map(|u| format!(": {u}")).unwrap_or_default();
            let value = match unit {
                Some("mV") => "-65 mV".to_string(),
                Some("1") => "0".to_string(),
                Some(u) => format!("0 {u}"),
                None => "...".to_string(),
            };
            self.error(
                Diagnostic::new(
                    Code::MissingInit,
                    s.name.span,
                    format!("state `{}` has no initial value", s.name.text),
                    "there are no silent zeros",
                )
                .help(format!("write it behind the state: `state {}{declared} = {value}`", s.name.text)),
            );
            let ty = s.unit.as_ref().and_then(|u| self.unit(u)).map(|u| Ty::Real(u.dim));
            let entry = Entry::ready(name, s.name.span, Role::State { gate: false }, ty, None);
            self.add(scope, &s.name, Entry { written: true, ..entry });
            return;
        };
        let mut entry = Entry::pending(name, s.name.span, Role::State { gate: false }, init, prefix);
        if let Some(unit) = &s.unit {
            match self.unit(unit) {
                Some(u) => {
                    entry = entry.want(u.dim, "the initial value of this state");
                    entry.unit = Some(u.display(self.text(unit.span).trim()));
                }
                None => entry.status = Status::Done,
            }
        } else {
            entry.unit = self.unit_of_literal(init);
        }
        self.add(scope, &s.name, entry);
    }

    /// The states of `x' = ...` lines; says which have none.
    pub(super) fn find_states(
        &mut self,
        scope: &mut Scope<'a>,
        equations: Vec<&'a ast::Equation>,
        prefix: &str,
    ) -> Vec<(SymbolId, &'a ast::Equation)> {
        let mut out = Vec::new();
        let mut lost: Vec<&'a ast::Equation> = Vec::new();
        for e in equations {
            let full = format!("{prefix}{}", e.name.text);
            match scope.get(&full).filter(|id| matches!(scope.entry(*id).role, Role::State { gate: false })) {
                Some(id) => out.push((id, e)),
                None => lost.push(e),
            }
        }
        for e in lost {
            let full = format!("{prefix}{}", e.name.text);
            let other = scope.get(&full).map(|id| (scope.entry(id).role, scope.entry(id).span));
            let without: Vec<(SymbolId, String, Span)> = scope
                .ids()
                .filter(|id| !out.iter().any(|o| o.0 == *id))
                .map(|id| (id, scope.entry(id)))
                .filter(|(_, s)| s.role == Role::State { gate: false } && s.written && s.rate.is_none())
                .filter_map(|(id, s)| Some((id, s.name.strip_prefix(prefix)?.to_string(), s.span)))
                .collect();
            let message = format!("`{}` is not a state", e.name.text);
            let mut d = Diagnostic::new(Code::EquationWithoutState, e.name.span, message, "an equation needs a state");
            let near = nearest(&e.name.text, without.iter().map(|w| w.1.as_str()));
            if let (Some(near), None) = (near, other)
                && let Some((id, _, span)) = without.iter().find(|w| w.1 == near)
            {
                d = d.see(*span, "this state has no equation").help(format!("did you mean `{near}'`?"));
                // That the state lacks an equation is the same mistake.
                let place = e.name.span;
                scope.entry_mut(*id).rate = Some(Expr::number(0.0, Dim::ONE, place));
            } else if let Some((role, span)) = other {
                let (is, help) = match role {
                    Role::Param => (
                        "a parameter",
                        format!("make it a state: `state {0} = ...` instead of `param {0} = ...`", e.name.text),
                    ),
                    Role::Let => (
                        "a named expression",
                        "a named expression follows from others and has no equation of its own".into(),
                    ),
                    Role::State { gate: true } => {
                        ("a gate", "a gate's equation follows from its `alpha` and `beta`, or `inf` and `tau`".into())
                    }
                    Role::Voltage => (
                        "the voltage",
                        "a channel contributes a current; the compartment's voltage follows from all of them".into(),
                    ),
                    Role::Pool => ("a pool", "the pool's equation stands in its compartment".into()),
                    Role::Port(_) => ("an input", "an input is driven by the network".into()),
                    Role::State { gate: false } => ("a state", String::new()),
                };
                if role != Role::Voltage {
                    d = d.see(span, format!("it is {is}"));
                }
                d = d.help(help);
            } else if e.name.text == "v" && scope.kind == ScopeKind::Cell && !scope.not_values.is_empty() {
                d = d.help("the voltage of a compartment follows from its `cm` and its currents and needs no equation");
                scope.poisoned.insert(full);
            } else {
                d = d.help(format!(
                    "declare it with its unit and initial value, for example `state {}`",
                    if e.name.text.starts_with(['v', 'V']) {
                        format!("{}: mV = -65 mV", e.name.text)
                    } else {
                        format!("{}: nA = 0 nA", e.name.text)
                    }
                ));
                scope.poisoned.insert(full);
            }
            self.error(d);
        }
        out
    }

    /// Lowers `x' = ...` lines onto their states.
    pub(super) fn add_equations(
        &mut self,
        scope: &mut Scope<'a>,
        equations: Vec<(SymbolId, &'a ast::Equation)>,
        prefix: &str,
    ) {
        for (id, e) in equations {
            if scope.entry(id).rate.is_some() {
                let first = scope.entry(id).span;
                let message = format!("`{}` has two equations", e.name.text);
                self.error(
                    Diagnostic::new(Code::DuplicateKey, e.name.span, message, "a second equation")
                        .see(first, "the first")
                        .help("add both right-hand sides in one equation"),
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
                let zero = Expr::number(0.0, dim.over(Dim::TIME), e.name.span);
                let rate = self.expect(scope, rate, dim.over(Dim::TIME), &why).unwrap_or(zero);
                scope.entry_mut(id).rate = Some(rate);
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
                    .help(format!(
                        "write `{short}' = ...`; if only spikes change it, write `{short}' = {}`",
                        match entry.ty {
                            Some(Ty::Real(dim)) if !dim.is_one() => {
                                format!("0 {}", dim.over(Dim::TIME).display_unit().name)
                            }
                            _ => "0 /ms".to_string(),
                        }
                    )),
                );
            }
        }
    }

    /// Warns of names that influence nothing, unless the definition has mistakes: what they hide may use the names.
    pub(super) fn warn_unused(&mut self, scope: &Scope<'a>, what: &str, before: usize) {
        if self.diagnostics.since(before).iter().any(Diagnostic::is_error) {
            return;
        }
        for entry in &scope.entries {
            let nameable = matches!(entry.role, Role::Param | Role::Let | Role::Pool);
            if entry.written && !entry.used && nameable && entry.ty.is_some() {
                let short = entry.name.rsplit('.').next().unwrap_or(&entry.name);
                let (kind, help) = match entry.role {
                    Role::Param => ("parameter", format!("remove it, or use `{short}` in an expression")),
                    Role::Pool => ("pool", format!("remove `reads {short}`")),
                    Role::Let | Role::State { .. } | Role::Port(_) | Role::Voltage => {
                        ("named expression", format!("remove it, or use `{short}` in an expression"))
                    }
                };
                self.error(
                    Diagnostic::new(
                        Code::Unused,
                        entry.span,
                        format!("{kind} `{}` is never used", entry.name),
                        format!("nothing in this {what} depends on it"),
                    )
                    .help(help),
                );
            }
        }
    }

    /// The channel that an `insert` names.
    pub(super) fn inserted_channel(&mut self, file: usize, name: &ast::Name) -> Option<Rc<Definition<Channel>>> {
        let item = self.find_item(file, name, "a channel", |k| matches!(k, ItemKind::Channel(_)))?;
        let ItemKind::Channel(c) = item.kind else { return None };
        Some(self.channel(item, c))
    }

    /// The channel whose name is closest to a name that no channel has.
    pub(super) fn channel_near(&self, file: usize, name: &str) -> Option<String> {
        let names = self.names_where(file, |k| matches!(k, ItemKind::Channel(_)));
        nearest(name, names.iter().map(String::as_str)).map(str::to_string)
    }
}

/// A number without the noise of binary fractions.
fn rounded(x: f64) -> f64 {
    (x * 1e9).round() / 1e9
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
    is_unknown: impl Fn(&str) -> bool,
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
        let ty = (!is_unknown(&s.name)).then_some(s.ty);
        let mut entry = Entry::ready(format!("{prefix}{}", s.name), s.span, role, ty, value);
        entry.rate = rate;
        entry.unit = s.unit.clone();
        entry.docs = s.docs.clone();
        out.push(entry);
    }
    out
}
