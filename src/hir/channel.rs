//! Channels: what stands in them, and the current.
//!
//! In come channels; out go their symbols, `i` the last of them.
//! Never true here: a channel knows the compartments it is inserted in.

use super::error::ChannelError;
use super::expr::constant_of;
use super::gate::PendingGate;
use super::items::{ItemKind, ItemRef, Kind};
use super::kinetics::PendingScheme;
use super::lower::{Definition, Lowerer, finish};
use super::scope::{Entry, Role, Scope, ScopeKind};
use super::{Channel, Expr, ExprKind, SymbolId, Ty};
use crate::diag::nearest;
use crate::source::Span;
use crate::syntax::ast::{self, BinaryOp, ChannelMember};
use crate::units::Dim;
use std::rc::Rc;

/// A channel in the making.
struct Draft<'a> {
    scope: Scope<'a>,
    equations: Vec<&'a ast::Equation>,
    gates: Vec<PendingGate<'a>>,
    schemes: Vec<PendingScheme<'a>>,
    current: Option<&'a ast::Let>,
    /// Is all of it there, as far as its current depends on it?
    whole: bool,
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
        let Draft { mut scope, equations, gates, schemes, current, whole } = self.channel_draft(item.file, c);
        let equations = self.find_states(&mut scope, equations, "");
        self.resolve_all(&mut scope);
        let factors: Vec<(SymbolId, u32)> = gates.iter().map(|g| (g.value, g.power)).collect();
        let places: Vec<Span> = gates.iter().map(|g| g.span).collect();
        for gate in gates {
            self.finish_gate(&mut scope, gate);
        }
        let states = schemes.iter().flat_map(|s| s.states.iter().copied()).collect::<Vec<_>>();
        for scheme in schemes {
            self.finish_scheme(&mut scope, scheme);
        }
        self.add_equations(&mut scope, equations, "");
        self.check_equations(&scope);
        let i = match current {
            Some(l) => self.given_current(&mut scope, l),
            None if !states.is_empty() => {
                let states = states.iter().map(|&id| scope.entry(id).name.as_str()).collect();
                self.error(ChannelError::WhichConducts { channel: &c.name, states });
                None
            }
            None if whole => self.implied_current(&mut scope, &c.name, &factors),
            None => None,
        };
        if let (Some(line), Some(i), true) = (current, &i, self.is_main(item.file)) {
            for (&(gate, power), &span) in factors.iter().zip(&places) {
                let counted = power_of(i, gate);
                if counted > 0 && counted < power {
                    let (gate, current) = (&scope.entry(gate).name[..], line.name.span);
                    self.error(ChannelError::PowerLost { gate, power, counted, span, current });
                }
            }
        }
        let span = current.map_or(c.name.span, |l| l.name.span);
        let ty = i.as_ref().map(|i| i.ty);
        if let Err(first) = scope.add(Entry::ready("i".into(), span, Role::Let, ty, i)) {
            self.error(ChannelError::CurrentTaken { first });
            if let Some(id) = scope.get("i") {
                scope.entry_mut(id).used = true;
            }
        }
        if self.is_main(item.file) {
            self.warn_unused(&scope, "channel", before);
        }
        let (symbols, sound, unknown) = finish(scope);
        self.note_block(c.name.span, &symbols, &unknown);
        self.warn_magnitudes(&symbols);
        self.check_params(&symbols);
        self.check_domains(&symbols, &unknown);
        let channel = Channel { name: c.name.text.clone(), span: c.name.span, docs: c.docs.clone(), symbols };
        Definition { item: channel, sound: sound && whole, unknown }
    }

    /// What stands in a channel.
    fn channel_draft(&mut self, file: usize, c: &'a ast::Channel) -> Draft<'a> {
        let scope = Scope::new(ScopeKind::Channel, file);
        let (equations, gates, schemes) = Default::default();
        let mut draft = Draft { scope, equations, gates, schemes, current: None, whole: true };
        let scope = &mut draft.scope;
        let v = Entry::ready("v".into(), c.name.span, Role::Voltage, Some(Ty::Real(Dim::VOLTAGE)), None);
        scope.add(v).ok();
        for member in &c.members {
            match member {
                ChannelMember::Param(p) => self.add_param(scope, p, ""),
                ChannelMember::Let(l) => self.add_let(scope, l, ""),
                ChannelMember::Reads(r) => self.add_pool_read(scope, r),
                ChannelMember::State(s) => self.add_state(scope, s, ""),
                ChannelMember::Equation(e) => draft.equations.push(e),
                ChannelMember::Gate(g) => {
                    let gate = self.add_gate(scope, g);
                    draft.whole &= gate.is_some();
                    draft.gates.extend(gate);
                }
                ChannelMember::Kinetics(k) => {
                    let scheme = self.add_scheme(scope, k);
                    draft.whole &= scheme.is_some();
                    draft.schemes.extend(scheme);
                }
                ChannelMember::Current(l) if l.name.text != "i" => {
                    self.error(ChannelError::CurrentName { current: &l.name });
                    draft.whole = false;
                }
                ChannelMember::Current(l) => match draft.current {
                    Some(first) => {
                        self.error(ChannelError::TwoCurrents { second: l.name.span, first: first.name.span });
                    }
                    None => draft.current = Some(l),
                },
            }
        }
        draft
    }

    fn add_pool_read(&mut self, scope: &mut Scope<'a>, r: &'a ast::Reads) {
        self.check_reserved(&r.name);
        let dim = match &r.unit {
            Some(unit) => self.unit(unit).map(|u| u.dim),
            None => Some(Dim::ONE),
        };
        let entry = Entry::ready(r.name.text.clone(), r.name.span, Role::Pool, dim.map(Ty::Real), None);
        self.add(scope, &r.name, Entry { written: true, ..entry });
    }

    /// The current of a `current` line: a density, or a current of the whole compartment.
    fn given_current(&mut self, scope: &mut Scope<'a>, l: &'a ast::Let) -> Option<Expr> {
        let x = self.expr(scope, "", &l.value)?;
        if x.ty == Ty::Real(Dim::CURRENT) {
            return Some(x);
        }
        self.expect(scope, x, Dim::CURRENT_DENSITY, "a channel's current")
    }

    /// gbar * product of gates * (v - erev).
    fn implied_current(
        &mut self,
        scope: &mut Scope<'a>,
        channel: &ast::Name,
        gates: &[(SymbolId, u32)],
    ) -> Option<Expr> {
        let absent = |p: &&str| scope.get(p).is_none() && !scope.is_poisoned("", p);
        let missing: Vec<&'static str> = ["gbar", "erev"].into_iter().filter(absent).collect();
        if !missing.is_empty() {
            self.no_current(scope, channel, &missing);
            return None;
        }
        let span = channel.span;
        let mut symbol = |name: &str| used_symbol(scope, name, span);
        let (gbar, erev, v) = (symbol("gbar")?, symbol("erev")?, symbol("v")?);
        if !self.conducts(scope, &gbar, &erev)? {
            return None;
        }
        let open = gates.iter().fold(gbar, |product, &(gate, power)| {
            scope.entry_mut(gate).used = true;
            let x = Expr::symbol(gate, Ty::Real(Dim::ONE), span);
            let x = match power {
                1 => x,
                n => Expr::binary(BinaryOp::Pow, x, Expr::number(f64::from(n), Dim::ONE, span)),
            };
            Expr::binary(BinaryOp::Mul, product, x)
        });
        Some(Expr::binary(BinaryOp::Mul, open, Expr::binary(BinaryOp::Sub, v, Expr { span, ..erev })))
    }

    /// Do `gbar` and `erev` have the dimensions that they need? What is said stands at their values, not at their names.
    fn conducts(&mut self, scope: &Scope<'a>, gbar: &Expr, erev: &Expr) -> Option<bool> {
        let value = |name: &str| {
            let id = scope.get(name)?;
            let entry = scope.entry(id);
            // A pool has no value here, but a place.
            entry.value.clone().or_else(|| Some(Expr::symbol(id, entry.ty?, entry.span)))
        };
        let (gbar_value, erev_value) = (value("gbar")?, value("erev")?);
        let reverses = self.expect(scope, erev_value, Dim::VOLTAGE, "`erev`").is_some();
        let whole = gbar.ty == Ty::Real(Dim::CONDUCTANCE);
        if !whole {
            self.expect(scope, gbar_value, Dim::CONDUCTANCE_DENSITY, "`gbar`")?;
        }
        let density = gbar.ty == Ty::Real(Dim::CONDUCTANCE_DENSITY);
        Some(reverses && erev.ty == Ty::Real(Dim::VOLTAGE) && (whole || density))
    }

    /// Says that nothing determines the current. A parameter that seems to have another name is not unused.
    fn no_current(&mut self, scope: &mut Scope<'a>, channel: &ast::Name, missing: &[&'static str]) {
        let similar = missing.iter().find_map(|m| Some((similar_param(scope, m)?, *m)));
        if let Some((id, _)) = similar {
            scope.entry_mut(id).used = true;
        }
        let similar = similar.map(|(id, wanted)| (scope.entry(id), wanted));
        self.error(ChannelError::NoCurrent { channel, missing, similar });
    }

    /// The channel that an `insert` names.
    pub(super) fn inserted_channel(&mut self, file: usize, name: &ast::Name) -> Option<Rc<Definition<Channel>>> {
        let item = self.find_item(file, name, Kind::Channel)?;
        let ItemKind::Channel(c) = item.kind else { return None };
        Some(self.channel(item, c))
    }

    /// The channel whose name is closest to a name that no channel has.
    pub(super) fn channel_near(&self, file: usize, name: &str) -> Option<String> {
        let names = self.names_of(file, Kind::Channel);
        nearest(name, names.iter().map(String::as_str)).map(str::to_string)
    }
}

/// A symbol that the implied current reads.
fn used_symbol(scope: &mut Scope<'_>, name: &str, span: Span) -> Option<Expr> {
    let id = scope.get(name)?;
    scope.entry_mut(id).used = true;
    Some(Expr::symbol(id, scope.entry(id).ty?, span))
}

/// The unused parameter that may be `gbar` or `erev` under another name.
fn similar_param(scope: &Scope<'_>, wanted: &str) -> Option<SymbolId> {
    let unused = scope.entries.iter().filter(|e| e.role == Role::Param && !e.used);
    let names: Vec<&str> = unused.map(|e| e.name.as_str()).collect();
    let like = |name: &&str| {
        let name = name.to_lowercase().replace('_', "");
        match wanted {
            "gbar" => name.starts_with('g') && (name.len() < 3 || name.contains("bar") || name.contains("max")),
            _ => name.starts_with('e') && name.len() < 6,
        }
    };
    let near = names.iter().copied().find(like).or_else(|| nearest(wanted, names.iter().copied()))?;
    scope.get(near)
}

/// How often a gate is a factor of a current, at most.
fn power_of(current: &Expr, gate: SymbolId) -> u32 {
    let is_gate = |e: &Expr| matches!(e.kind, ExprKind::Symbol(id) if id == gate);
    let (mut all, mut raised) = (0, 0);
    current.visit(&mut |e| {
        all += u32::from(is_gate(e));
        if let ExprKind::Binary(BinaryOp::Pow, base, power) = &e.kind
            && is_gate(base)
        {
            // What is raised to what is not known is raised enough.
            raised += constant_of(power).map_or(u32::MAX / 2, |power| power as u32).saturating_sub(1);
        }
    });
    all.saturating_add(raised)
}
