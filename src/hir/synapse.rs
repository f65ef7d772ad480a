//! Synapse models: what arriving events do, and the current that flows.
//!
//! In come synapses; out go their symbols, what an event adds to which state, and the current.
//! Never true here: it is known who sends the events, or where the synapse is.

use super::calls::Env;
use super::error::SynapseError;
use super::items::ItemRef;
use super::lower::{Definition, Lowerer, finish};
use super::members::changing;
use super::scope::{Entry, Role, Scope, ScopeKind};
use super::{Expr, ExprKind, SymbolId, SymbolKind, Synapse, Ty};
use crate::source::Span;
use crate::syntax::ast::{self, AssignOp, BinaryOp, SynapseMember, UnaryOp};
use crate::units::Dim;
use std::rc::Rc;

/// A synapse in the making.
struct Draft<'a> {
    scope: Scope<'a>,
    equations: Vec<&'a ast::Equation>,
    event: Option<&'a ast::OnEvent>,
    current: Option<&'a ast::Let>,
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
        let Draft { mut scope, equations, event, current, whole } = self.synapse_draft(item.file, s);
        let equations = self.find_states(&mut scope, equations, "");
        self.resolve_all(&mut scope);
        self.add_equations(&mut scope, equations, "");
        self.check_equations(&scope);
        let weight = event.and_then(|e| e.weight.as_ref()).map(|(_, unit)| match unit {
            Some(unit) => self.unit(unit).map(|u| u.dim),
            None => Some(Dim::ONE),
        });
        let jumps = match event {
            Some(event) => self.jumps(&mut scope, event, weight),
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
        let whole = whole && jumps.is_some() && i.is_none_or(|i| i.is_some()) && weight != Some(None);
        let (symbols, sound, unknown) = finish(scope);
        self.warn_magnitudes(&symbols);
        self.check_params(&symbols);
        self.check_domains(&symbols);
        let jumps = jumps.unwrap_or_default();
        let read = jumps.iter().find_map(|(_, x)| changing(&symbols, x, 0));
        if let Some((what, span)) = &read {
            self.error(SynapseError::EventReads { what, span: *span });
        }
        let on_voltage = jumps.iter().any(|(state, _)| symbols[state.0 as usize].kind == SymbolKind::Voltage);
        let mut fine = sound && whole && read.is_none();
        if fine && !has_current && !on_voltage {
            self.error(SynapseError::NoEffect { synapse: &s.name });
            fine = false;
        }
        let current = has_current.then(|| SymbolId(symbols.len() as u32 - 1));
        let weight = weight.flatten();
        let synapse = Synapse { name: s.name.text.clone(), span: s.name.span, symbols, weight, jumps, current };
        Definition { item: synapse, sound: fine, unknown }
    }

    /// What stands in a synapse.
    fn synapse_draft(&mut self, file: usize, s: &'a ast::Synapse) -> Draft<'a> {
        let scope = Scope::new(ScopeKind::Channel, file);
        let mut draft = Draft { scope, equations: Vec::new(), event: None, current: None, whole: true };
        let scope = &mut draft.scope;
        let v = Entry::ready("v".into(), s.name.span, Role::Voltage, Some(Ty::Real(Dim::VOLTAGE)), None);
        scope.add(v).ok();
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
                SynapseMember::Event(e) => match draft.event {
                    Some(first) => self.error(SynapseError::TwoEvents { second: e.span, first: first.span }),
                    None => draft.event = Some(e),
                },
            }
        }
        draft
    }

    /// The current of a `current` line: that of one synapse, or of all on an area.
    fn synaptic_current(&mut self, scope: &mut Scope<'a>, l: &'a ast::Let) -> Option<Expr> {
        let x = self.expr(scope, "", &l.value)?;
        if x.ty == Ty::Real(Dim::CURRENT_DENSITY) {
            return Some(x);
        }
        self.expect(scope, x, Dim::CURRENT, "a synapse's current")
    }

    /// What an event adds to which state, a function of [`ExprKind::Weight`] that is proportional to it.
    fn jumps(
        &mut self,
        scope: &mut Scope<'a>,
        event: &'a ast::OnEvent,
        weight: Option<Option<Dim>>,
    ) -> Option<Vec<(SymbolId, Expr)>> {
        // All that the synapse has, and the weight.
        let symbol = |id: SymbolId| {
            let entry = scope.entry(id);
            (entry.name.clone(), entry.ty.map(|ty| Expr::symbol(id, ty, entry.span)))
        };
        let mut env: Env = scope.ids().map(symbol).collect();
        if let Some((name, _)) = &event.weight {
            if let Some(taken) = scope.get(&name.text) {
                self.duplicate(name, scope.entry(taken).span);
                return None;
            }
            let dim = weight.flatten();
            let weight = dim.map(|dim| Expr { kind: ExprKind::Weight, ty: Ty::Real(dim), span: name.span });
            env.insert(name.text.clone(), weight);
        }
        let jumps: Vec<Option<(SymbolId, Expr)>> =
            event.actions.iter().map(|action| self.jump(scope, action, &env, event.weight.is_some())).collect();
        if jumps.is_empty() {
            self.error(SynapseError::EventDoesNothing { span: event.span });
            return None;
        }
        jumps.into_iter().collect()
    }

    fn jump(
        &mut self,
        scope: &mut Scope<'a>,
        action: &'a ast::Assign,
        env: &Env,
        has_weight: bool,
    ) -> Option<(SymbolId, Expr)> {
        let name = &action.name;
        let is_state = |id: &SymbolId| matches!(scope.entry(*id).role, Role::State { .. } | Role::Voltage);
        let Some(id) = scope.get(&name.text).filter(is_state) else {
            if !scope.is_poisoned("", &name.text) {
                self.error(SynapseError::NotAState { name, synapse: scope });
            }
            return None;
        };
        let ty = self.resolve(scope, id, None)?;
        scope.entry_mut(id).used = true;
        let x = self.expr_in(scope, "", &action.value, Some(env))?;
        x.visit(&mut |e| {
            if let ExprKind::Symbol(id) = e.kind {
                scope.entry_mut(id).used = true;
            }
        });
        let x = self.expect(scope, x, ty.dim(), &format!("what is added to `{}`", name.text))?;
        let x = match action.op {
            AssignOp::Set => {
                self.error(SynapseError::Sets { name });
                return None;
            }
            AssignOp::Add => x,
            AssignOp::Sub => Expr { kind: ExprKind::Unary(UnaryOp::Neg, Box::new(x.clone())), ..x },
        };
        match (degree(&x), has_weight) {
            (Some(1), true) => Some((id, x)),
            (Some(0), false) => {
                let one = Expr { kind: ExprKind::Weight, ty: Ty::Real(Dim::ONE), span: x.span };
                Some((id, Expr { ty, ..Expr::binary(BinaryOp::Mul, x, one) }))
            }
            (Some(_) | None, _) => {
                self.error(SynapseError::NotProportional { span: action.value.span });
                None
            }
        }
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
        let added = synapse.jumps.iter().find(|(state, _)| state.0 as usize == v).map(|(_, x)| x.span);
        read.or(added)
    }
}

/// The power of the weight that an expression is a multiple of, if it is one.
fn degree(e: &Expr) -> Option<u32> {
    match &e.kind {
        ExprKind::Weight => Some(1),
        ExprKind::Number(_)
        | ExprKind::Bool(_)
        | ExprKind::Symbol(_)
        | ExprKind::NetworkParam(_)
        | ExprKind::Time
        | ExprKind::StepLength
        | ExprKind::SteadyState
        | ExprKind::Celsius
        | ExprKind::Index
        | ExprKind::Dv
        | ExprKind::Measure(_)
        | ExprKind::Outward
        | ExprKind::Draw(..)
        | ExprKind::File(_)
        | ExprKind::Series(_) => Some(0),
        ExprKind::Unary(_, a) => degree(a),
        ExprKind::Noise(_, a) => degree(a).filter(|d| *d == 0),
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
