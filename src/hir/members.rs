//! Members that several blocks have: parameters, named expressions, states and their equations.
//!
//! In come members and the prefix of the names in their block; out go entries of its scope, and equations on their states.
//! Never true here: one of two definitions of a name wins silently.

use super::error::{About, MemberError};
use super::lower::Lowerer;
use super::scope::{Entry, Role, Scope, ScopeKind, Status};
use super::{Expr, ExprKind, PortKind, StateKind, Symbol, SymbolId, SymbolKind, Ty};
use crate::diag::{Diagnostic, nearest};
use crate::source::Span;
use crate::syntax::ast;
use crate::units::{Dim, DisplayUnit, Unit};

const OWN_STATE: Role = Role::State(StateKind::Plain);

/// Has it an equation that is written for it?
fn is_own(role: Role) -> bool {
    matches!(role, Role::State(StateKind::Plain | StateKind::Pool))
}

impl<'a> Lowerer<'a> {
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

    /// The full name of a member; nothing if it is reserved and there already, which is one mistake.
    pub(super) fn member_name(&mut self, scope: &Scope<'a>, name: &ast::Name, prefix: &str) -> Option<String> {
        let free = self.check_reserved(name);
        let full = format!("{prefix}{}", name.text);
        (free || scope.get(&full).is_none()).then_some(full)
    }

    /// The full name of a member that is no state: the potential of a cell may be given, too.
    fn name_or_potential(&mut self, scope: &Scope<'a>, name: &ast::Name, prefix: &str) -> Option<String> {
        match name.text == "v" && scope.kind == ScopeKind::Cell && prefix.is_empty() {
            true => Some(name.text.clone()),
            false => self.member_name(scope, name, prefix),
        }
    }

    pub(super) fn add_param(&mut self, scope: &mut Scope<'a>, p: &'a ast::Param, prefix: &str) {
        let Some(name) = self.name_or_potential(scope, &p.name, prefix) else { return };
        let entry = Entry::pending(name, p.name.span, Role::Param, &p.value, prefix).docs(&p.docs);
        let entry = match &p.unit {
            Some(unit) => self.declared(entry, unit, "the value of this parameter"),
            None => Entry { unit: self.unit_of_literal(&p.value), ..entry },
        };
        self.add(scope, &p.name, entry);
    }

    /// Demands the unit that an entry is declared with.
    pub(super) fn declared(&mut self, entry: Entry<'a>, unit: &ast::UnitExpr, why: &'static str) -> Entry<'a> {
        match self.unit(unit) {
            Some(u) => Entry { unit: Some(u.display(self.text(unit.span).trim())), ..entry.want(u.dim, why) },
            None => Entry { status: Status::Done, ..entry },
        }
    }

    /// The unit that a literal default was written with, to show values in it again.
    pub(super) fn unit_of_literal(&self, e: &ast::Expr) -> Option<DisplayUnit> {
        let e = match &e.kind {
            ast::ExprKind::Unary(ast::UnaryOp::Neg, a) => a,
            _ => e,
        };
        let ast::ExprKind::Number { unit: Some(unit), .. } = &e.kind else { return None };
        let text = self.text(unit.span).trim();
        Unit::parse(&text.replace(' ', "")).map(|u| u.display(text))
    }

    pub(super) fn add_let(&mut self, scope: &mut Scope<'a>, l: &'a ast::Let, prefix: &str) {
        let Some(name) = self.name_or_potential(scope, &l.name, prefix) else { return };
        self.add(scope, &l.name, Entry::pending(name, l.name.span, Role::Let, &l.value, prefix));
    }

    pub(super) fn add_state(&mut self, scope: &mut Scope<'a>, s: &'a ast::State, prefix: &str) {
        // Point neurons call their potential v.
        let name = match s.name.text == "v" && scope.kind == ScopeKind::Cell {
            true => Some(format!("{prefix}v")),
            false => self.member_name(scope, &s.name, prefix),
        };
        let Some(name) = name else { return };
        let entry = match (&s.init, &s.unit) {
            (Some(init), Some(unit)) => {
                let entry = Entry::pending(name, s.name.span, OWN_STATE, init, prefix);
                self.declared(entry, unit, "the initial value of this state")
            }
            (Some(init), None) => {
                let entry = Entry::pending(name, s.name.span, OWN_STATE, init, prefix);
                Entry { unit: self.unit_of_literal(init), ..entry }
            }
            (None, unit) => {
                let text = unit.as_ref().map(|u| self.text(u.span).trim());
                self.error(MemberError::NoInitialValue { state: &s.name, unit: text });
                let ty = unit.as_ref().and_then(|u| self.unit(u)).map(|u| Ty::Real(u.dim));
                Entry { written: true, ..Entry::ready(name, s.name.span, OWN_STATE, ty, None) }
            }
        };
        self.add(scope, &s.name, entry);
    }

    /// The states of `x' = ...` lines; says which have none.
    pub(super) fn find_states(
        &mut self,
        scope: &mut Scope<'a>,
        equations: Vec<&'a ast::Equation>,
        prefix: &str,
    ) -> Vec<(SymbolId, &'a ast::Equation)> {
        let mut found = Vec::new();
        let mut lost = Vec::new();
        for e in equations {
            let id = scope.get(&format!("{prefix}{}", e.name.text));
            if let Some(id) = id {
                self.note_state(&e.name, scope.entry(id).span);
            }
            match id.filter(|id| is_own(scope.entry(*id).role)) {
                Some(id) => found.push((id, e)),
                None => lost.push(e),
            }
        }
        for e in lost {
            self.lost_equation(scope, &e.name, prefix, &found);
        }
        found
    }

    /// Says that an equation has no state.
    fn lost_equation(
        &mut self,
        scope: &mut Scope<'a>,
        equation: &ast::Name,
        prefix: &str,
        found: &[(SymbolId, &'a ast::Equation)],
    ) {
        let full = format!("{prefix}{}", equation.text);
        if let Some(id) = scope.get(&full) {
            self.error(MemberError::NotAState { equation, about: About::Other(scope.entry(id)) });
        } else if let Some(id) = near_state(scope, &equation.text, prefix, found) {
            let state = scope.entry(id);
            let near = state.name.strip_prefix(prefix).unwrap_or(&state.name);
            self.error(MemberError::NotAState { equation, about: About::State(near, state.span) });
            // That the state lacks an equation is the same mistake.
            scope.entry_mut(id).rate = Some(Expr::number(0.0, Dim::ONE, equation.span));
        } else {
            let voltage = equation.text == "v" && scope.kind == ScopeKind::Cell && !scope.not_values.is_empty();
            let about = if voltage { About::Voltage } else { About::Unknown };
            self.error(MemberError::NotAState { equation, about });
            scope.poisoned.insert(full);
        }
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
                self.error(MemberError::TwoEquations { equation: &e.name, first: scope.entry(id).span });
                continue;
            }
            let rate = self.expr(scope, prefix, &e.value);
            let ty = self.resolve(scope, id, None);
            let rate = if let (Some(rate), Some(Ty::Real(dim))) = (rate, ty) {
                // Keeps the place of the equation for messages at run time.
                scope.entry_mut(id).span = e.name.span;
                let dim = dim.over(Dim::TIME);
                let rate = if self.needs_unit(scope, id, e.name.span, (rate.ty, Dim::ONE.over(Dim::TIME))) {
                    None
                } else {
                    self.expect(scope, rate, dim, &format!("the derivative of `{}`", e.name.text))
                };
                rate.unwrap_or_else(|| Expr::number(0.0, dim, e.name.span))
            } else {
                Expr::number(0.0, Dim::ONE, e.name.span)
            };
            scope.entry_mut(id).rate = Some(rate);
        }
    }

    /// Says which states have no equation.
    pub(super) fn check_equations(&mut self, scope: &Scope<'a>) {
        for state in &scope.entries {
            if is_own(state.role) && state.rate.is_none() && state.written {
                self.error(MemberError::NoEquation { state });
            }
        }
    }

    /// Warns of names that influence nothing, unless the definition has mistakes: what they hide may use the names.
    pub(super) fn warn_unused(&mut self, scope: &Scope<'a>, block: &'static str, before: usize) {
        let broken = scope.entries.iter().any(|e| e.ty.is_none());
        if broken || self.diagnostics.since(before).iter().any(Diagnostic::is_error) {
            return;
        }
        for member in &scope.entries {
            let is_gate = member.role == Role::State(StateKind::Gate) && !member.name.contains('.');
            // What a potential that is given is good for, synapses know.
            let is_given = matches!(member.role, Role::Param | Role::Let) && member.name == "v";
            let is_port = member.role == Role::Port(PortKind::Declared);
            let nameable =
                is_gate || is_port || matches!(member.role, Role::Param | Role::Let | Role::Pool) && !is_given;
            if (member.written || is_port)
                && !member.used
                && nameable
                && member.ty.is_some()
                && !self.is_recorded(&member.name)
            {
                self.error(MemberError::Unused { member, block });
            }
        }
    }
}

impl Lowerer<'_> {
    /// Says which parameters depend on what changes in a run.
    pub(super) fn check_params(&mut self, symbols: &[Symbol]) {
        for symbol in symbols {
            let SymbolKind::Param(value) = &symbol.kind else { continue };
            if let Some((what, place)) = changing(symbols, value, 0)
                && !self.diagnostics.has_error_at(place)
            {
                let name = symbol.name.rsplit('.').next().unwrap_or(&symbol.name);
                self.error(MemberError::Changes { parameter: name, what: &what, place });
            }
        }
    }
}

/// What of a value changes in a run: its name, and the place that depends on it.
pub(super) fn changing(symbols: &[Symbol], value: &Expr, depth: usize) -> Option<(String, Span)> {
    let mut found = None;
    value.visit(&mut |e| {
        if found.is_some() || depth > symbols.len() {
            return;
        }
        found = match e.kind {
            ExprKind::Time => Some(("t".to_string(), e.span)),
            ExprKind::Xi(_) => Some(("xi()".to_string(), e.span)),
            ExprKind::Symbol(id) => symbols.get(id.0 as usize).and_then(|s| match &s.kind {
                SymbolKind::State { .. } | SymbolKind::Voltage | SymbolKind::Pool | SymbolKind::Port(_) => {
                    Some((s.name.clone(), e.span))
                }
                SymbolKind::Let(inner) => changing(symbols, inner, depth + 1).map(|(what, _)| (what, e.span)),
                SymbolKind::Param(_) => None,
            }),
            _ => None,
        };
    });
    found
}

/// The state without an equation whose name is near that of an equation without a state.
fn near_state(scope: &Scope<'_>, name: &str, prefix: &str, found: &[(SymbolId, &ast::Equation)]) -> Option<SymbolId> {
    let lacking = scope.ids().filter(|id| {
        let e = scope.entry(*id);
        is_own(e.role) && e.written && e.rate.is_none() && !found.iter().any(|f| f.0 == *id)
    });
    let names: Vec<&str> = lacking.filter_map(|id| scope.entry(id).name.strip_prefix(prefix)).collect();
    scope.get(&format!("{prefix}{}", nearest(name, names)?))
}
