//! Compartments: their keys, pools and channels, and the equation of their voltage.
//!
//! In come compartments of a cell; out go entries of its scope, such as `soma.v` and `soma.Na.m`, and what drives the voltage.
//! Never true here: a compartment knows of another.

use super::error::{CellError, NameError};
use super::keys::Block;
use super::lower::Lowerer;
use super::scope::{Entry, Role, Scope};
use super::{Expr, PortKind, StateKind, SymbolId, Ty};
use crate::source::Span;
use crate::syntax::ast::{self, BinaryOp, CompartmentMember};
use crate::units::Dim;

const STATE: Role = Role::State(StateKind::Plain);
const POOL: Role = Role::State(StateKind::Pool);

/// A compartment in the making.
pub(super) struct CompartmentDraft {
    pub name: String,
    pub v: Option<SymbolId>,
    pub port: Option<SymbolId>,
    pub area: Option<SymbolId>,
    cm: Option<SymbolId>,
    /// Outward currents.
    pub currents: Vec<SymbolId>,
    pub span: Span,
    /// Is all of it there?
    pub whole: bool,
}

impl CompartmentDraft {
    pub(super) fn new(name: &ast::Name) -> CompartmentDraft {
        CompartmentDraft {
            name: name.text.clone(),
            v: None,
            port: None,
            area: None,
            cm: None,
            currents: Vec::new(),
            span: name.span,
            whole: true,
        }
    }
}

/// Equations of a pool, and the prefix of its compartment.
pub(super) type PoolEquations<'a> = (Vec<&'a ast::Equation>, String);

/// The keys of a pool, as they are written.
pub(super) struct PoolKeys<'a> {
    pub init: Option<&'a ast::Let>,
    pub diffusion: Option<&'a ast::Let>,
    pub shell: Option<&'a ast::Let>,
    /// Is each of them one of these?
    pub known: bool,
}

impl<'a> Lowerer<'a> {
    pub(super) fn add_compartment(
        &mut self,
        scope: &mut Scope<'a>,
        k: &'a ast::Compartment,
        equations: &mut Vec<PoolEquations<'a>>,
    ) -> Option<CompartmentDraft> {
        self.check_reserved(&k.name);
        let name = k.name.text.as_str();
        if scope.not_values.contains_key(name) || scope.get(name).is_some() {
            let first = scope.get(name).or_else(|| scope.get(&format!("{name}.<input>")));
            let first = first.map(|id| scope.entry(id).span);
            self.error(NameError::Twice { name: &k.name, first });
            return None;
        }
        scope.not_values.insert(name.to_string(), "a compartment");
        scope.places.insert(name.to_string(), k.name.span);
        let mut draft = CompartmentDraft::new(&k.name);
        // Keys and pools first: channels refer to them.
        for member in &k.members {
            self.compartment_member(scope, &mut draft, member, equations);
        }
        self.add_lacking(scope, &mut draft, &k.name);
        let ty = Some(Ty::Real(Dim::CURRENT_DENSITY));
        let port = Entry::ready(format!("{name}.<input>"), k.name.span, Role::Port(PortKind::Injected), ty, None);
        draft.port = scope.add(port).ok();
        if let (Some(v), Some(cm), Some(port)) = (draft.v, draft.cm, draft.port) {
            let role = Role::Port(PortKind::Clamp { v, cm, port });
            scope.add(Entry::ready(format!("{name}.<i_clamp>"), k.name.span, role, ty, None)).ok();
        }
        for member in &k.members {
            if let CompartmentMember::Insert { channel, alias, args, span } = member {
                let inserted = self.insert(scope, &mut draft, channel, alias.as_ref(), args, *span);
                draft.whole &= inserted.is_some();
            }
        }
        Some(draft)
    }

    fn compartment_member(
        &mut self,
        scope: &mut Scope<'a>,
        draft: &mut CompartmentDraft,
        member: &'a CompartmentMember,
        equations: &mut Vec<PoolEquations<'a>>,
    ) {
        let prefix = format!("{}.", draft.name);
        match member {
            CompartmentMember::Key(l) => self.compartment_key(scope, draft, l),
            CompartmentMember::Param(p) => self.add_param(scope, p, &prefix),
            CompartmentMember::Let(l) => self.add_let(scope, l, &prefix),
            CompartmentMember::Pool { name, unit, keys, equations: own, .. } => {
                if self.check_reserved(name) {
                    let keys = self.pool_keys(keys);
                    draft.whole &= self.stays(name, &keys);
                    draft.whole &= self.add_pool(scope, &prefix, name, unit.as_ref(), &keys);
                    equations.push((own.iter().collect(), prefix));
                } else {
                    draft.whole = false;
                }
            }
            CompartmentMember::Insert { .. } => {}
        }
    }

    fn compartment_key(&mut self, scope: &mut Scope<'a>, draft: &mut CompartmentDraft, l: &'a ast::Let) {
        let (name, role, dim, why, slot) = match l.name.text.as_str() {
            "v_init" => ("v", STATE, Dim::VOLTAGE, "`v_init`", &mut draft.v),
            "cm" => ("cm", Role::Param, Dim::SPECIFIC_CAPACITANCE, "`cm`", &mut draft.cm),
            "area" => ("area", Role::Param, Dim::AREA, "`area`", &mut draft.area),
            _ => {
                self.unknown_key(&l.name, Block::Compartment);
                draft.whole = false;
                return;
            }
        };
        let prefix = format!("{}.", draft.name);
        let entry = Entry::pending(format!("{prefix}{name}"), l.name.span, role, &l.value, &prefix);
        match scope.add(Entry { used: true, written: false, ..entry.want(dim, why) }) {
            Ok(id) => *slot = Some(id),
            Err(first) => self.duplicate_key(&l.name, first),
        }
    }

    /// Says what a compartment lacks, unless one of its members is wrong, which may be what is meant. What is missing is
    /// still known to be a voltage and a capacitance.
    fn add_lacking(&mut self, scope: &mut Scope<'a>, draft: &mut CompartmentDraft, compartment: &ast::Name) {
        let said = !draft.whole;
        for (slot, key, example, name, role, dim) in [
            (&mut draft.cm, "cm", "cm = 1 uF/cm2", "cm", Role::Param, Dim::SPECIFIC_CAPACITANCE),
            (&mut draft.v, "v_init", "v_init = -65 mV", "v", STATE, Dim::VOLTAGE),
        ] {
            if slot.is_some() {
                continue;
            }
            if !said {
                self.error(CellError::Lacks { compartment, key, example });
            }
            draft.whole = false;
            let name = format!("{}.{name}", compartment.text);
            *slot = scope.add(Entry::ready(name, compartment.span, role, Some(Ty::Real(dim)), None)).ok();
        }
    }

    /// Does nothing say of a pool that ions diffuse? They do so along sections only.
    fn stays(&mut self, pool: &ast::Name, keys: &PoolKeys<'a>) -> bool {
        let along = keys.diffusion.or(keys.shell);
        if let Some(key) = along {
            self.error(CellError::DiffusesNowhere { pool, key: &key.name });
        }
        along.is_none()
    }

    /// Adds the state of a pool; false if something is wrong with its keys.
    pub(super) fn add_pool(
        &mut self,
        scope: &mut Scope<'a>,
        prefix: &str,
        name: &'a ast::Name,
        unit: Option<&'a ast::UnitExpr>,
        keys: &PoolKeys<'a>,
    ) -> bool {
        let &PoolKeys { init, known, .. } = keys;
        let full = format!("{prefix}{}", name.text);
        let entry = match init {
            Some(init) => {
                let entry = Entry::pending(full, name.span, POOL, &init.value, prefix);
                match unit {
                    Some(unit) => self.declared(entry, unit, "the initial value of this pool"),
                    None => entry,
                }
            }
            None => {
                let ty = unit.and_then(|u| self.unit(u)).map(|u| Ty::Real(u.dim));
                if known {
                    let unit = unit.map(|u| self.text(u.span).trim());
                    self.error(CellError::EmptyPool { pool: name, unit });
                }
                Entry { written: true, ..Entry::ready(full, name.span, POOL, ty, None) }
            }
        };
        self.add(scope, name, entry);
        known && init.is_some()
    }

    /// The keys of a pool.
    pub(super) fn pool_keys(&mut self, keys: &'a [ast::Let]) -> PoolKeys<'a> {
        let mut found = PoolKeys { init: None, diffusion: None, shell: None, known: true };
        for key in keys {
            let slot = match key.name.text.as_str() {
                "init" => &mut found.init,
                "diffusion" => &mut found.diffusion,
                "shell" => &mut found.shell,
                _ => {
                    self.unknown_key(&key.name, Block::Pool);
                    found.known = false;
                    continue;
                }
            };
            match slot {
                Some(first) => self.duplicate_key(&key.name, first.name.span),
                None => *slot = Some(key),
            }
        }
        found
    }

    /// cm v' = injected - sum of outward currents.
    pub(super) fn voltage_equation(&mut self, scope: &mut Scope<'a>, draft: &CompartmentDraft) -> Option<()> {
        let span = draft.span;
        let (v, cm) = (draft.v?, draft.cm?);
        let mut total = Expr::symbol(draft.port?, Ty::Real(Dim::CURRENT_DENSITY), span);
        for &id in &draft.currents {
            let entry = scope.entry(id);
            let mut i = Expr::symbol(id, entry.ty?, span);
            if i.ty == Ty::Real(Dim::CURRENT) {
                let Some(area) = draft.area else {
                    self.error(CellError::LacksArea { compartment: &draft.name, span, current: entry.span });
                    return None;
                };
                i = Expr::binary(BinaryOp::Div, i, Expr::symbol(area, Ty::Real(Dim::AREA), span));
            }
            total = Expr::binary(BinaryOp::Sub, total, i);
        }
        let cm = Expr::symbol(cm, Ty::Real(Dim::SPECIFIC_CAPACITANCE), span);
        scope.entry_mut(v).rate = Some(Expr::binary(BinaryOp::Div, total, cm));
        Some(())
    }
}
