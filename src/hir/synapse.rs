//! Synapse models: what arriving events do, and the current that flows.
//!
//! In come synapses; out go their symbols, what an event adds to which state, and the current.
//! Never true here: it is known who sends the events, or where the synapse is.

use super::advice::usual_unit;
use super::calls::Env;
use super::error::SynapseError;
use super::graded::Summed;
use super::items::ItemRef;
use super::lower::{Definition, Lowerer, finish};
use super::members::changing;
use super::plasticity::Resolved;
use super::projection::mentions;
use super::scope::{Entry, Role, Scope, ScopeKind};
use super::{Expr, ExprKind, Plastic, PortKind, Symbol, SymbolId, SymbolKind, Synapse, Ty};
use crate::source::Span;
use crate::syntax::ast::{self, AssignOp, BinaryOp, EventOf, SynapseMember, UnaryOp};
use crate::units::Dim;
use std::rc::Rc;
use std::sync::Arc;

/// What the weight of an event is mostly called.
const WEIGHT: &str = "weight";

/// A synapse in the making.
struct Draft<'a> {
    scope: Scope<'a>,
    equations: Vec<&'a ast::Equation>,
    event: Option<&'a ast::OnEvent>,
    post: Option<&'a ast::OnEvent>,
    modulator: Option<&'a ast::OnEvent>,
    current: Option<&'a ast::Let>,
    sum: Option<&'a ast::Sum>,
    /// Is all of it there?
    whole: bool,
}

impl<'a> Lowerer<'a> {
    /// Lowers a synapse once.
    pub(super) fn synapse(&mut self, item: ItemRef<'a>, s: &'a ast::Synapse) -> Rc<Definition<Synapse>> {
        if let Some(known) = self.cached_synapse(item) {
            return known;
        }
        let synapse = self.synapse_uncached(item, s);
        self.keep_synapse(item, synapse)
    }

    fn synapse_uncached(&mut self, item: ItemRef<'a>, s: &'a ast::Synapse) -> Definition<Synapse> {
        let before = self.diagnostics.count();
        let Draft { mut scope, equations, event, post, modulator, current, sum, whole } =
            self.synapse_draft(item.file, s);
        let equations = self.find_states(&mut scope, equations, "");
        self.resolve_all(&mut scope);
        self.add_equations(&mut scope, equations, "");
        self.check_equations(&scope);
        let mut events = [event, post, modulator];
        let mut weights = events.map(|e| self.carried(e.and_then(|e| e.weight.as_ref())));
        let of_sum = sum.and_then(|sum| self.carried(sum.weight.as_ref()));
        let weight = weights.into_iter().find_map(|weight| weight).or(of_sum);
        for (event, own) in events.iter_mut().zip(&mut weights) {
            if let (Some(Some(first)), Some(Some(other)), Some((name, _))) =
                (weight, *own, event.and_then(|e| e.weight.as_ref()))
                && first != other
            {
                self.error(SynapseError::TwoWeights { name });
                *own = Some(None);
            }
            if *own == Some(None) {
                *event = None;
            }
        }
        let amount = self.amount(&events);
        let whole = whole && amount.is_some();
        let amount = amount.flatten();
        let actions = match event {
            _ if sum.is_some() => Some(Vec::new()),
            Some(_) => self.actions(&mut scope, events, (weight, amount)),
            None => {
                self.error(SynapseError::NoEvent { synapse: &s.name });
                None
            }
        };
        let i = current.map(|l| self.synaptic_current(&mut scope, l));
        let mut has_current = false;
        if let (Some(l), Some(i)) = (current, &i) {
            let entry = Entry::ready("i".into(), l.name.span, Role::Let, i.as_ref().map(|i| i.ty), i.clone());
            match scope.add(Entry { used: true, ..entry }) {
                Ok(_) => has_current = true,
                Err(first) => self.error(SynapseError::CurrentTaken { first }),
            }
        }
        if self.is_main(item.file) {
            self.warn_unused(&scope, "synapse", before);
        }
        let whole = whole && actions.is_some() && i.is_none_or(|i| i.is_some()) && !weights.contains(&Some(None));
        let whole = whole && of_sum != Some(None);
        let summed = sum.and_then(|line| summed(&scope, line));
        let (mut symbols, sound, unknown) = finish(scope);
        self.warn_magnitudes(&symbols);
        self.check_params(&symbols);
        self.check_domains(&symbols, &unknown);
        let actions = actions.unwrap_or_default();
        self.check_limits(&symbols, actions.iter().map(|action| &action.value));
        let is_voltage = |id: SymbolId| symbols[id.0 as usize].kind == SymbolKind::Voltage;
        let on_voltage = actions.iter().any(|action| action.state.is_some_and(is_voltage));
        let mut fine = sound && whole;
        self.note_block(s.name.span, &symbols, &unknown);
        let (mut jumps, mut plastic, mut graded) = (Vec::new(), None, None);
        if let (true, Some(summed)) = (fine, &summed) {
            match self.graded(&symbols, summed, [SymbolId(0), SymbolId(1)]) {
                Some(parted) => (symbols, graded) = (parted.symbols, Some(parted.graded)),
                None => fine = false,
            }
        }
        let split = if fine && sum.is_none() { self.plastic(&symbols, &actions, amount, &mut fine) } else { None };
        match split {
            Some(split) => (symbols, plastic) = (split.symbols, Some(split.plastic)),
            None if fine && sum.is_none() => match self.jumps(&symbols, &actions, weight.is_some()) {
                Some(found) => jumps = found,
                None => fine = false,
            },
            None => {}
        }
        if fine && !has_current && !on_voltage {
            self.error(SynapseError::NoEffect { synapse: &s.name });
            fine = false;
        }
        let current = has_current.then(|| SymbolId(symbols.len() as u32 - 1));
        let weight = weight.flatten();
        let written = [event, post, modulator].into_iter().flatten().find_map(|e| e.weight.as_ref());
        let written = written.or_else(|| sum?.weight.as_ref()).filter(|_| weight.is_some());
        let unit = written.and_then(|(_, unit)| unit.as_ref());
        let unit = unit.and_then(|unit| Some(self.unit(unit)?.display(self.text(unit.span).trim())));
        let (name, span) = (s.name.text.clone(), s.name.span);
        let synapse = Synapse { name, span, symbols, weight, unit, jumps, current, plastic, graded };
        Definition { item: synapse, sound: fine, unknown }
    }

    /// What stands in a synapse.
    fn synapse_draft(&mut self, file: usize, s: &'a ast::Synapse) -> Draft<'a> {
        let scope = Scope::new(ScopeKind::Channel, file);
        let mut draft = Draft {
            scope,
            equations: Vec::new(),
            event: None,
            post: None,
            modulator: None,
            current: None,
            sum: None,
            whole: true,
        };
        let scope = &mut draft.scope;
        let v = Entry::ready("v".into(), s.name.span, Role::Voltage, Some(Ty::Real(Dim::VOLTAGE)), None);
        scope.add(v).ok();
        if s.members.iter().any(|member| matches!(member, SynapseMember::Sum(_))) {
            let v_pre = Entry::ready("v_pre".into(), s.name.span, Role::Voltage, Some(Ty::Real(Dim::VOLTAGE)), None);
            scope.add(v_pre).ok();
        }
        for member in &s.members {
            match member {
                SynapseMember::Param(p) => self.add_param(scope, p, ""),
                SynapseMember::Let(l) => self.add_let(scope, l, ""),
                SynapseMember::State(s) => self.add_state(scope, s, ""),
                SynapseMember::Equation(e) => draft.equations.push(e),
                SynapseMember::Current(l) if l.name.text != "i" => {
                    self.error(SynapseError::CurrentName { current: &l.name });
                    draft.whole = false;
                }
                SynapseMember::Current(l) => match draft.current {
                    Some(first) => self.duplicate_key(&l.name, first.name.span),
                    None => draft.current = Some(l),
                },
                SynapseMember::Event(e) => {
                    let place = match e.of {
                        EventOf::Pre => &mut draft.event,
                        EventOf::Post => &mut draft.post,
                        EventOf::Modulator => &mut draft.modulator,
                    };
                    match place {
                        Some(first) => self.error(SynapseError::TwoEvents { second: e.span, first: first.span }),
                        None => *place = Some(e),
                    }
                }
                SynapseMember::Sum(sum) => match draft.sum {
                    Some(first) => self.error(SynapseError::TwoSums { second: sum.span, first: first.span }),
                    None => {
                        draft.sum = Some(sum);
                        self.add_sum(scope, sum);
                    }
                },
            }
        }
        let events = [draft.event, draft.post, draft.modulator];
        if let (Some(sum), Some(event)) = (draft.sum, events.into_iter().flatten().next()) {
            self.error(SynapseError::SumAndEvent { sum: sum.span, event: event.span });
            draft.whole = false;
        }
        draft
    }

    /// Makes a sum known, and the weight that it names.
    fn add_sum(&mut self, scope: &mut Scope<'a>, sum: &'a ast::Sum) {
        let role = Role::Port(PortKind::Summed);
        if let Some(name) = self.member_name(scope, &sum.name, "") {
            self.add(scope, &sum.name, Entry::pending(name, sum.name.span, role, &sum.value, ""));
        }
        let Some((name, _)) = &sum.weight else { return };
        let ty = self.carried(sum.weight.as_ref()).flatten().map(Ty::Real);
        if let Some(full) = self.member_name(scope, name, "") {
            self.add(scope, name, Entry::ready(full, name.span, role, ty, None));
        }
    }

    /// The current of a `current` line: that of one synapse, or of all on an area.
    fn synaptic_current(&mut self, scope: &mut Scope<'a>, l: &'a ast::Let) -> Option<Expr> {
        let x = self.expr(scope, "", &l.value)?;
        if x.ty == Ty::Real(Dim::CURRENT_DENSITY) {
            return Some(x);
        }
        self.expect(scope, x, Dim::CURRENT, "a synapse's current")
    }

    /// The dimension of what an event carries: nothing if it carries nothing, `Some(None)` if something is wrong with it.
    fn carried(&mut self, what: Option<&'a (ast::Name, Option<ast::UnitExpr>)>) -> Option<Option<Dim>> {
        what.map(|(_, unit)| match unit {
            Some(unit) => self.unit(unit).map(|u| u.dim),
            None => Some(Dim::ONE),
        })
    }

    /// The dimension of how much there is of a modulator, if the synapse answers one; nothing if something is wrong.
    fn amount(&mut self, events: &[Option<&'a ast::OnEvent>]) -> Option<Option<Dim>> {
        let mut found = None;
        for event in events.iter().flatten() {
            match (event.of, &event.amount) {
                (EventOf::Modulator, None) => {
                    self.error(SynapseError::NoAmount { span: event.span });
                    return None;
                }
                (EventOf::Modulator, Some(_)) => found = Some(self.carried(event.amount.as_ref())??),
                (EventOf::Pre | EventOf::Post, Some((name, _))) => {
                    self.error(SynapseError::TwoCarried { name });
                    return None;
                }
                (EventOf::Pre | EventOf::Post, None) => {}
            }
        }
        Some(found)
    }

    /// What events assign, with names resolved.
    fn actions(
        &mut self,
        scope: &mut Scope<'a>,
        events: [Option<&'a ast::OnEvent>; 3],
        (weight, amount): (Option<Option<Dim>>, Option<Dim>),
    ) -> Option<Vec<Resolved<'a>>> {
        let mut actions = Vec::new();
        for event in events.into_iter().flatten() {
            // All that the synapse has, and the weight.
            let symbol = |id: SymbolId| {
                let entry = scope.entry(id);
                (entry.name.clone(), entry.ty.map(|ty| Expr::symbol(id, ty, entry.span)))
            };
            let mut env: Env = scope.ids().map(symbol).collect();
            let carried =
                [(&event.weight, weight.flatten(), ExprKind::Weight), (&event.amount, amount, ExprKind::Amount)];
            for (what, dim, kind) in carried {
                let Some((name, _)) = what else { continue };
                let first =
                    event.weight.as_ref().filter(|(first, _)| first.text == name.text && first.span != name.span);
                let taken = scope.get(&name.text).map(|taken| scope.entry(taken).span);
                if let Some(taken) = taken.or(first.map(|(first, _)| first.span)) {
                    self.duplicate(name, taken);
                    return None;
                }
                let value = dim.map(|dim| Expr { kind, ty: Ty::Real(dim), span: name.span });
                env.insert(name.text.clone(), value);
            }
            actions.extend(event.actions.iter().map(|action| self.action(scope, event, action, &env)));
            if event.actions.is_empty() {
                self.error(SynapseError::EventDoesNothing { span: event.span });
                return None;
            }
        }
        actions.into_iter().collect()
    }

    fn action(
        &mut self,
        scope: &mut Scope<'a>,
        event: &'a ast::OnEvent,
        action: &'a ast::Assign,
        env: &Env,
    ) -> Option<Resolved<'a>> {
        let name = &action.name;
        let is_weight = event.weight.as_ref().is_some_and(|(weight, _)| weight.text == name.text);
        let is_state = |id: &SymbolId| matches!(scope.entry(*id).role, Role::State { .. } | Role::Voltage);
        let state = scope.get(&name.text).filter(is_state);
        if let Some(id) = state {
            self.note_state(name, scope.entry(id).span);
        } else if let (true, Some((weight, _))) = (is_weight, &event.weight) {
            self.note(name.span, weight.span);
        }
        let ty = match state {
            Some(id) => {
                scope.entry_mut(id).used = true;
                self.resolve(scope, id, None)?
            }
            None if is_weight => env.get(&name.text)?.as_ref()?.ty,
            None => {
                if !scope.is_poisoned("", &name.text) {
                    let weight = event.weight.as_ref().map(|(weight, _)| weight.text.as_str());
                    self.error(SynapseError::NotAState { name, synapse: scope, weight });
                }
                return None;
            }
        };
        if event.weight.is_none() && scope.get(WEIGHT).is_none() && mentions(&action.value, WEIGHT) {
            if scope.poisoned.insert(WEIGHT.into()) {
                let head = self.text(event.span).split('{').next().unwrap_or_default().trim();
                let (unit, span) = (unit_of_weight(ty.dim()), action.value.span);
                self.error(SynapseError::WeightNotNamed { head, unit: &unit, span });
            }
            return None;
        }
        let value = self.expr_in(scope, "", &action.value, Some(env))?;
        if let (Some((weight, None)), Ty::Real(got)) = (&event.weight, value.ty)
            && got != ty.dim()
            && degree(&value) == Some(1)
        {
            if !self.diagnostics.has_error_at(weight.span) {
                let (unit, span) = (unit_of_weight(ty.dim().over(got)), value.span);
                self.error(SynapseError::WeightWithoutUnit { weight, unit: &unit, span });
            }
            return None;
        }
        value.visit(&mut |e| {
            if let ExprKind::Symbol(id) = e.kind {
                scope.entry_mut(id).used = true;
            }
        });
        let what = match action.op {
            AssignOp::Set => format!("the new value of `{}`", name.text),
            AssignOp::Add | AssignOp::Sub => format!("what is added to `{}`", name.text),
        };
        let value = self.expect(scope, value, ty.dim(), &what)?;
        Some(Resolved { of: event.of, name, state, op: action.op, value })
    }

    /// What events add to which state where no synapse remembers anything, a function of [`ExprKind::Weight`] that is proportional to it: events that
    /// arrive together are added up before they act.
    fn jumps(
        &mut self,
        symbols: &[Symbol],
        actions: &[Resolved<'a>],
        has_weight: bool,
    ) -> Option<Vec<(SymbolId, Expr)>> {
        let jump = |action: &Resolved<'a>| {
            if let Some((what, span)) = changing(symbols, &action.value, 0) {
                self.error(SynapseError::EventReads { what: &what, span });
                return None;
            }
            let (state, x) = (action.state?, action.value.clone());
            let ty = x.ty;
            let x = match action.op {
                AssignOp::Sub => Expr { kind: ExprKind::Unary(UnaryOp::Neg, Arc::new(x.clone())), ..x },
                AssignOp::Add | AssignOp::Set => x,
            };
            match (degree(&x), has_weight) {
                (Some(1), true) => Some((state, x)),
                (Some(0), false) => {
                    let one = Expr { kind: ExprKind::Weight, ty: Ty::Real(Dim::ONE), span: x.span };
                    Some((state, Expr { ty, ..Expr::binary(BinaryOp::Mul, x, one) }))
                }
                (Some(_) | None, _) => {
                    self.error(SynapseError::NotProportional { span: action.value.span });
                    None
                }
            }
        };
        let jumps: Vec<_> = actions.iter().map(jump).collect();
        jumps.into_iter().collect()
    }

    /// Where a synapse's placeholder for the voltage is read, if it is.
    pub(super) fn reads_voltage(synapse: &Synapse) -> Option<Span> {
        let v = synapse.symbols.iter().position(|s| s.kind == SymbolKind::Voltage)?;
        let mut read = None;
        let mut look = |e: &Expr| {
            e.visit(&mut |e| {
                if e.kind == ExprKind::Symbol(SymbolId(v as u32)) {
                    read = Some(e.span);
                }
            });
        };
        for symbol in &synapse.symbols {
            match &symbol.kind {
                SymbolKind::Param(x) | SymbolKind::Let(x) => look(x),
                SymbolKind::State { init, rate, .. } => {
                    look(init);
                    look(rate);
                }
                SymbolKind::Port(_) | SymbolKind::Voltage | SymbolKind::Pool => {}
            }
        }
        synapse.plastic.iter().flat_map(Plastic::actions).for_each(|action| look(&action.value));
        read.or(synapse.moves_voltage())
    }
}

/// How the unit of a weight of a dimension stands behind its name.
fn unit_of_weight(dim: Dim) -> String {
    if dim.is_one() { String::new() } else { format!(": {}", usual_unit(dim)) }
}

/// A `sum` line with what its names have become, if it is sound.
fn summed<'a>(scope: &Scope<'a>, line: &'a ast::Sum) -> Option<Summed<'a>> {
    let sum = scope.get(&line.name.text)?;
    let value = scope.entry(sum).value.clone()?;
    let weight = line.weight.as_ref().and_then(|(name, _)| scope.get(&name.text));
    Some(Summed { line, sum, value, weight })
}

/// The power of the weight that an expression is a multiple of, if it is one.
pub(super) fn degree(e: &Expr) -> Option<u32> {
    match &e.kind {
        ExprKind::Weight => Some(1),
        ExprKind::Number(_)
        | ExprKind::Bool(_)
        | ExprKind::Amount
        | ExprKind::Symbol(_)
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
        | ExprKind::OfEdge(_)
        | ExprKind::Measure(_)
        | ExprKind::Outward
        | ExprKind::Draw(..)
        | ExprKind::File(_)
        | ExprKind::Series(_) => Some(0),
        ExprKind::Unary(_, a) => degree(a),
        ExprKind::Noise(_, a) | ExprKind::Wanders(_, a) | ExprKind::Chance(_, a) => degree(a).filter(|d| *d == 0),
        ExprKind::Binary(op, a, b) => {
            let (a, b) = (degree(a)?, degree(b)?);
            match op {
                BinaryOp::Add | BinaryOp::Sub => (a == b).then_some(a),
                BinaryOp::Mul => Some(a + b),
                BinaryOp::Div => (b == 0).then_some(a),
                BinaryOp::Pow
                | BinaryOp::Lt
                | BinaryOp::Le
                | BinaryOp::Gt
                | BinaryOp::Ge
                | BinaryOp::Eq
                | BinaryOp::Ne
                | BinaryOp::And
                | BinaryOp::Or => (a == 0 && b == 0).then_some(0),
            }
        }
        ExprKind::If(c, a, b) => {
            let (c, a, b) = (degree(c)?, degree(a)?, degree(b)?);
            (c == 0 && a == b).then_some(a)
        }
        ExprKind::Call(_, args) => args.iter().all(|a| degree(a) == Some(0)).then_some(0),
    }
}
