//! Kinetic schemes: states of channels with reactions between them.
//!
//! In come `kinetics` blocks of a channel; out go entries of its scope: each state, which is the fraction of channels in it, and each rate.
//! Never true here: the sum of the states of a scheme changes.
//!
//! A state that several reactions lead to and from moves by the sum of what they bring, less what they take. That the states sum to 1 is
//! no equation of its own: each reaction takes from one state what it brings to another.

use super::error::{KeyError, KineticsError};
use super::expr::constant_of;
use super::lower::Lowerer;
use super::scope::{Entry, Role, Scope};
use super::{Expr, ExprKind, StateKind, SymbolId, Ty};
use crate::source::Span;
use crate::syntax::ast::{self, BinaryOp, KineticsMember, Name};
use crate::units::Dim;
use std::collections::HashMap;

/// What stands in the name of a rate, between those of two states. No name of a user has it.
pub(super) const REACTION: &str = "->";

/// The most states of a scheme.
const MOST: usize = 64;

const ONE: Ty = Ty::Real(Dim::ONE);

/// A scheme whose symbols exist, but not yet its derivatives.
pub(super) struct PendingScheme<'a> {
    /// Its states, in the order in which they are named.
    pub states: Vec<SymbolId>,
    reactions: Vec<Reaction>,
    q10: Option<Q10<'a>>,
    /// Where initial values stand.
    inits: Vec<Span>,
    span: Span,
}

/// A factor of all rates, with the temperature at which they were measured.
type Q10<'a> = (&'a ast::Expr, Option<&'a ast::Expr>, Span);

/// A reaction in one direction, between states by their number.
struct Reaction {
    from: usize,
    to: usize,
    rate: SymbolId,
}

/// A direction of a reaction as it is written.
struct Written<'a> {
    from: usize,
    to: usize,
    rate: &'a ast::Expr,
    span: Span,
}

/// A block, sorted.
#[derive(Default)]
struct Draft<'a> {
    names: Vec<&'a Name>,
    reactions: Vec<Written<'a>>,
    conserve: Option<(&'a [Name], &'a ast::Expr, Span)>,
    inits: Vec<&'a ast::Let>,
    q10: Option<Q10<'a>>,
}

impl<'a> Draft<'a> {
    fn number(&mut self, name: &'a Name) -> usize {
        self.numbered(name).unwrap_or_else(|| {
            self.names.push(name);
            self.names.len() - 1
        })
    }

    fn numbered(&self, name: &Name) -> Option<usize> {
        self.names.iter().position(|known| known.text == name.text)
    }

    /// What of some states is reached from a first one, by a step to other states.
    fn reached(&self, first: usize, step: impl Fn(&Written<'a>, usize) -> Option<usize>) -> Vec<bool> {
        let mut seen = vec![false; self.names.len()];
        let mut waiting = vec![first];
        while let Some(at) = waiting.pop() {
            if !std::mem::replace(&mut seen[at], true) {
                waiting.extend(self.reactions.iter().filter_map(|r| step(r, at)));
            }
        }
        seen
    }

    /// The states that end up in each other for ever, one for each such set.
    fn ends(&self) -> Vec<usize> {
        let forwards = |r: &Written<'_>, at| (r.from == at).then_some(r.to);
        let reached: Vec<Vec<bool>> = (0..self.names.len()).map(|at| self.reached(at, forwards)).collect();
        let together = |a: usize, b: usize| !reached[a][b] || reached[b][a];
        let is_end = |&at: &usize| (0..self.names.len()).all(|other| together(at, other));
        let first = |&at: &usize| (0..at).all(|earlier| !reached[at][earlier]);
        (0..self.names.len()).filter(|at| is_end(at) && first(at)).collect()
    }
}

impl<'a> Lowerer<'a> {
    /// Adds the states and the rates of a scheme.
    pub(super) fn add_scheme(&mut self, scope: &mut Scope<'a>, k: &'a ast::Kinetics) -> Option<PendingScheme<'a>> {
        let before = self.diagnostics.count();
        let draft = self.sorted(k);
        self.check_scheme(scope, &draft, k.span);
        let states = self.add_states(scope, &draft);
        if self.diagnostics.since(before).iter().any(crate::diag::Diagnostic::is_error) {
            // Of what is wrong in itself nothing else is said.
            for &id in states.iter().flatten() {
                scope.entry_mut(id).used = true;
                scope.entry_mut(id).rate = Some(Expr::number(0.0, Dim::RATE, k.span));
            }
            return None;
        }
        let states: Vec<SymbolId> = states.into_iter().collect::<Option<_>>()?;
        let first = *states.first()?;
        for &id in &states {
            let entry = scope.entry_mut(id);
            (entry.used, entry.scheme) = (true, Some(first));
        }
        let mut reactions = Vec::new();
        for r in &draft.reactions {
            let name = format!("{}{REACTION}{}", draft.names[r.from].text, draft.names[r.to].text);
            let entry = Entry::pending(name, r.span, Role::Let, r.rate, "").want(Dim::RATE, "the rate of a reaction");
            let rate = scope.add(Entry { used: true, written: false, ..entry }).ok()?;
            reactions.push(Reaction { from: r.from, to: r.to, rate });
        }
        let inits = draft.inits.iter().map(|l| l.value.span).collect();
        Some(PendingScheme { states, reactions, q10: draft.q10, inits, span: k.span })
    }

    /// What stands in a block, by kind.
    fn sorted(&mut self, k: &'a ast::Kinetics) -> Draft<'a> {
        let mut draft = Draft::default();
        for member in &k.members {
            match member {
                KineticsMember::Reaction { from, to, both, rates, span } => {
                    let (a, b) = (draft.number(from), draft.number(to));
                    let wanted = if *both { 2 } else { 1 };
                    if rates.len() != wanted {
                        let rates = rates.iter().map(|r| self.text(r.span)).collect();
                        self.error(KineticsError::Rates { from, to, both: *both, rates, span: *span });
                        continue;
                    }
                    if from.text == to.text {
                        self.error(KineticsError::ToItself { state: from, span: *span });
                        continue;
                    }
                    for ((from, to), rate) in [(a, b), (b, a)].into_iter().zip(rates) {
                        if let Some(first) = draft.reactions.iter().find(|r| (r.from, r.to) == (from, to)) {
                            let [from, to] = [from, to].map(|at| draft.names[at].text.as_str());
                            self.error(KineticsError::Twice { from, to, again: *span, first: first.span });
                            continue;
                        }
                        draft.reactions.push(Written { from, to, rate, span: *span });
                    }
                }
                KineticsMember::Conserve { states, sum, span } => {
                    if let Some((.., first)) = draft.conserve.replace((states, sum, *span)) {
                        self.error(KeyError::Repeated { key: "conserve", again: *span, first });
                    }
                }
                KineticsMember::Init(l) => match draft.inits.iter().find(|first| first.name.text == l.name.text) {
                    Some(first) => self.duplicate_key(&l.name, first.name.span),
                    None => draft.inits.push(l),
                },
                KineticsMember::Q10 { value, at, span } => {
                    if let Some((_, _, first)) = draft.q10.replace((value, at.as_ref(), *span)) {
                        self.error(KeyError::Repeated { key: "q10", again: *span, first });
                    }
                }
            }
        }
        draft
    }

    /// Says what a scheme cannot be.
    fn check_scheme(&mut self, scope: &mut Scope<'a>, draft: &Draft<'a>, span: Span) {
        let names: Vec<&str> = draft.names.iter().map(|n| n.text.as_str()).collect();
        let inits = draft.inits.iter().map(|l| &l.name);
        for name in draft.conserve.iter().flat_map(|c| c.0).chain(inits) {
            match draft.numbered(name) {
                Some(at) => self.note(name.span, draft.names[at].span),
                None => self.error(KineticsError::Unknown { name, states: &names }),
            }
        }
        if names.is_empty() {
            self.error(KineticsError::Empty { span });
            return;
        }
        // Reactions that are wrong join nothing.
        if self.diagnostics.has_error_in(span) {
            return;
        }
        if names.len() > MOST {
            self.error(KineticsError::TooMany { count: names.len(), most: MOST, span: draft.names[MOST].span });
            return;
        }
        let either = |r: &Written<'_>, at| match at {
            _ if r.from == at => Some(r.to),
            _ if r.to == at => Some(r.from),
            _ => None,
        };
        let reached = draft.reached(0, either);
        if let Some(apart) = reached.iter().position(|reached| !reached) {
            let of = |there: bool| reached.iter().zip(&names).filter(|(r, _)| **r == there).map(|(_, n)| *n).collect();
            self.error(KineticsError::Apart { first: of(true), others: of(false), apart: draft.names[apart] });
            return;
        }
        self.check_conserved(scope, draft, &names);
        let ends = draft.ends();
        if let (true, [a, b, ..]) = (draft.inits.is_empty(), &ends[..]) {
            self.error(KineticsError::NoRest { ends: [draft.names[*a], draft.names[*b]], span });
        }
    }

    /// A `conserve` line names all states, each once, and says that they are fractions.
    fn check_conserved(&mut self, scope: &mut Scope<'a>, draft: &Draft<'a>, names: &[&str]) {
        let Some((states, sum, span)) = draft.conserve else { return };
        if let Some((at, again)) =
            states.iter().enumerate().find(|(at, name)| states[..*at].iter().any(|n| n.text == name.text))
        {
            let first = states[..at].iter().find(|n| n.text == again.text).map_or(span, |n| n.span);
            self.error(KineticsError::CountedTwice { again, first });
            return;
        }
        if states.iter().any(|name| draft.numbered(name).is_none()) {
            return;
        }
        let is_in = |at: usize| states.iter().any(|name| name.text == names[at]);
        if let Some(r) = draft.reactions.iter().find(|r| is_in(r.from) != is_in(r.to)) {
            let missing = names.iter().enumerate().filter(|(at, _)| !is_in(*at)).map(|(_, n)| *n).collect();
            self.error(KineticsError::NotConserved { states, missing, reaction: r.span, span });
            return;
        }
        let Some(value) = self.expr_of(scope, "", sum, Dim::ONE, "the sum of the states") else { return };
        if constant_of(&value).is_none_or(|x| (x - 1.0).abs() > 1e-12) {
            self.error(KineticsError::NotWhole { span: sum.span });
        }
    }

    /// Adds the states, each with its value at the start.
    fn add_states(&mut self, scope: &mut Scope<'a>, draft: &Draft<'a>) -> Vec<Option<SymbolId>> {
        let mut ids = Vec::new();
        for name in &draft.names {
            self.check_reserved(name);
            let role = Role::State(StateKind::Gate);
            let entry = match draft.inits.iter().find(|l| l.name.text == name.text) {
                Some(l) => {
                    let entry = Entry::pending(name.text.clone(), name.span, role, &l.value, "");
                    entry.want(Dim::ONE, "the initial value of a state")
                }
                None => {
                    let init = match draft.inits.is_empty() {
                        true => Expr { kind: ExprKind::SteadyState, ty: ONE, span: name.span },
                        false => Expr::number(0.0, Dim::ONE, name.span),
                    };
                    Entry::ready(name.text.clone(), name.span, role, Some(ONE), Some(init))
                }
            };
            ids.push(self.add(scope, name, Entry { written: true, ..entry }));
        }
        ids
    }

    /// Builds the derivatives of a scheme's states, when the types of its rates are known.
    pub(super) fn finish_scheme(&mut self, scope: &mut Scope<'a>, scheme: PendingScheme<'a>) {
        let PendingScheme { states, reactions, q10, inits, span } = scheme;
        let given: Option<f64> = states.iter().map(|&id| scope.entry(id).value.as_ref().and_then(constant_of)).sum();
        if let (Some(sum), false) = (given.filter(|sum| (sum - 1.0).abs() > 1e-6), inits.is_empty()) {
            self.error(KineticsError::Starts { sum, places: inits });
        }
        let factor = match q10 {
            Some((value, at, span)) => self.q10(scope, value, at, span).map(Some),
            None => Some(None),
        };
        let rates = reactions.iter().filter_map(|r| scope.entry(r.rate).value.as_ref());
        let mut factors = rates.chain(factor.iter().flatten());
        if let Some((state, place)) = factors.find_map(|e| state_in(scope, e, &states, 0)) {
            let name = scope.entry(state).name.clone();
            self.error(KineticsError::ReadsAState { name: &name, place });
            for &id in &states {
                scope.entry_mut(id).rate = Some(Expr::number(0.0, Dim::RATE, span));
            }
            return;
        }
        let Some(factor) = factor else { return };
        if reactions.iter().any(|r| scope.entry(r.rate).ty.is_none()) {
            return;
        }
        let moved = |r: &Reaction| {
            let rate = Expr::symbol(r.rate, Ty::Real(Dim::RATE), span);
            Expr::binary(BinaryOp::Mul, rate, Expr::symbol(states[r.from], ONE, span))
        };
        let mut rates: HashMap<usize, Expr> = HashMap::new();
        for (leads_to, op) in [(true, BinaryOp::Add), (false, BinaryOp::Sub)] {
            for r in &reactions {
                let (at, moved) = (if leads_to { r.to } else { r.from }, moved(r));
                let rate = match rates.remove(&at) {
                    Some(rate) => Expr::binary(op, rate, moved),
                    None if leads_to => moved,
                    None => {
                        let none = Expr::number(0.0, Dim::RATE, span);
                        Expr::binary(op, none, moved)
                    }
                };
                rates.insert(at, rate);
            }
        }
        for (at, &id) in states.iter().enumerate() {
            let rate = rates.remove(&at).map(|rate| match &factor {
                Some(q) => Expr::binary(BinaryOp::Mul, q.clone(), rate),
                None => rate,
            });
            scope.entry_mut(id).rate = rate;
        }
    }
}

/// A state of those that an expression reads, itself or through what it names, and where it does so.
fn state_in(scope: &Scope<'_>, e: &Expr, states: &[SymbolId], depth: usize) -> Option<(SymbolId, Span)> {
    let mut found = None;
    e.visit(&mut |e| {
        let ExprKind::Symbol(id) = e.kind else { return };
        if found.is_some() || depth > scope.entries.len() {
            return;
        }
        found = match (states.contains(&id), scope.entry(id).role) {
            (true, _) => Some((id, e.span)),
            (false, Role::Let) => {
                let value = scope.entry(id).value.as_ref();
                value.and_then(|value| state_in(scope, value, states, depth + 1)).map(|(id, _)| (id, e.span))
            }
            (false, Role::Param | Role::State { .. } | Role::Port(_) | Role::Voltage | Role::Pool) => None,
        };
    });
    found
}
