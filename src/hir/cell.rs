//! Cells: compartments and their couplings, or point neurons.
//!
//! In come cells; out go their symbols with the equations of all states, and the spike rule.
//! Never true here: a channel is apart from the compartment it is inserted in.

use super::compartment::{CompartmentDraft, PoolEquations};
use super::error::{CellError, SpikeError};
use super::items::ItemRef;
use super::lower::{Definition, Lowerer, finish};
use super::morphology::has_sections;
use super::scope::{Entry, Role, Scope, ScopeKind};
use super::{Cell, Compartment, Expr, PortKind, Spike, Ty};
use crate::diag::Diagnostic;
use crate::source::Span;
use crate::syntax::ast::{self, BinaryOp, CellMember, Name};
use crate::units::Dim;

/// A cell in the making.
struct Draft<'a> {
    scope: Scope<'a>,
    compartments: Vec<CompartmentDraft>,
    equations: Vec<&'a ast::Equation>,
    pool_equations: Vec<PoolEquations<'a>>,
    couplings: Vec<Coupling<'a>>,
    spikes: Vec<&'a ast::Spike>,
    /// Is all of it there?
    whole: bool,
}

/// A `couple` line.
struct Coupling<'a> {
    into: &'a Name,
    from: &'a Name,
    conductance: &'a ast::Expr,
    span: Span,
}

impl<'a> Lowerer<'a> {
    /// Lowers a cell once; gives its index among all cells.
    pub(super) fn cell(&mut self, item: ItemRef<'a>, c: &'a ast::Cell) -> usize {
        if let Some(known) = self.cell_index(item) {
            return known;
        }
        let cell = match has_sections(c) {
            true => self.morphology(item, c),
            false => self.cell_uncached(item, c),
        };
        self.keep_cell(item, cell)
    }

    fn cell_uncached(&mut self, item: ItemRef<'a>, c: &'a ast::Cell) -> Definition<Cell> {
        let before = self.diagnostics.count();
        let mut draft = self.cell_draft(item.file, c);
        self.cell_equations(&mut draft);
        let spike = self.spike_rule(&mut draft);
        let has_state = draft.scope.entries.iter().any(|e| matches!(e.role, Role::State { .. }));
        let gives = draft.scope.entries.iter().any(|e| e.name == "v" && matches!(e.role, Role::Param | Role::Let));
        let idle = !has_state && spike.is_none() && !gives;
        if is_point(c) && idle && !self.diagnostics.since(before).iter().any(Diagnostic::is_error) {
            self.error(CellError::Nothing { cell: &c.name });
            draft.whole = false;
        }
        let Draft { scope, compartments, spikes, whole, .. } = draft;
        if self.is_main(item.file) {
            self.warn_unused(&scope, "cell", before);
        }
        self.note_places(c.name.span, scope.places.clone());
        // What reads it may be what is wrong.
        let wrong = self.diagnostics.since(before).iter().any(Diagnostic::is_error);
        let reads_current = scope.get("i_syn").is_some_and(|port| scope.entry(port).used);
        let (symbols, sound, mut unknown) = finish(scope);
        unknown.extend((wrong && reads_current).then(|| "i_syn".to_string()));
        self.note_block(c.name.span, &symbols, &unknown);
        self.warn_magnitudes(&symbols);
        self.check_params(&symbols);
        self.check_domains(&symbols, &unknown);
        let compartments: Option<Vec<Compartment>> = compartments
            .into_iter()
            .map(|d| Some(Compartment { name: d.name, v: d.v?, port: d.port?, area: d.area }))
            .collect();
        let sound = sound && whole && compartments.is_some() && (spike.is_some() || spikes.is_empty());
        let cell = Cell {
            name: c.name.text.clone(),
            span: c.name.span,
            docs: c.docs.clone(),
            symbols,
            compartments: compartments.unwrap_or_default(),
            spike,
            morphology: None,
        };
        Definition { item: cell, sound, unknown }
    }

    /// What stands in a cell.
    fn cell_draft(&mut self, file: usize, c: &'a ast::Cell) -> Draft<'a> {
        let mut draft = Draft {
            scope: Scope::new(ScopeKind::Cell, file),
            compartments: Vec::new(),
            equations: Vec::new(),
            pool_equations: Vec::new(),
            couplings: Vec::new(),
            spikes: Vec::new(),
            whole: true,
        };
        let scope = &mut draft.scope;
        if is_point(c) {
            let ty = Some(Ty::Real(Dim::CURRENT));
            scope.add(Entry::ready("i_syn".into(), c.name.span, Role::Port(PortKind::Outward), ty, None)).ok();
        }
        for member in &c.members {
            match member {
                CellMember::Param(p) => self.add_param(scope, p, ""),
                CellMember::Let(l) => self.add_let(scope, l, ""),
                CellMember::State(s) => self.add_state(scope, s, ""),
                CellMember::Equation(e) => draft.equations.push(e),
                CellMember::Port { name, unit } => self.add_port(scope, name, unit.as_ref()),
                CellMember::Compartment(k) => {
                    let compartment = self.add_compartment(scope, k, &mut draft.pool_equations);
                    draft.whole &= compartment.as_ref().is_some_and(|k| k.whole);
                    draft.compartments.extend(compartment);
                }
                CellMember::Couple { into, from, conductance, span } => {
                    draft.couplings.push(Coupling { into, from, conductance, span: *span });
                }
                CellMember::Spike(s) => draft.spikes.push(s),
                // They make another form of cell.
                CellMember::Morphology { .. }
                | CellMember::Section(_)
                | CellMember::Compartments { .. }
                | CellMember::Region(_) => {}
            }
        }
        draft
    }

    /// `input i_app: nA`.
    fn add_port(&mut self, scope: &mut Scope<'a>, name: &'a Name, unit: Option<&'a ast::UnitExpr>) {
        let Some(full) = self.member_name(scope, name, "") else { return };
        let (ty, shown) = match unit {
            None => (Some(Ty::Real(Dim::ONE)), None),
            Some(unit) => match self.unit(unit) {
                Some(u) => (Some(Ty::Real(u.dim)), Some(u.display(self.text(unit.span).trim()))),
                None => (None, None),
            },
        };
        let entry = Entry::ready(full, name.span, Role::Port(PortKind::Declared), ty, None);
        self.add(scope, name, Entry { unit: shown, ..entry });
    }

    /// Gives all states their equations.
    fn cell_equations(&mut self, draft: &mut Draft<'a>) {
        let scope = &mut draft.scope;
        let equations = self.find_states(scope, std::mem::take(&mut draft.equations), "");
        let pools = std::mem::take(&mut draft.pool_equations).into_iter();
        let pools: Vec<_> = pools.map(|(own, prefix)| (self.find_states(scope, own, &prefix), prefix)).collect();
        self.resolve_all(scope);
        self.add_equations(scope, equations, "");
        for (own, prefix) in pools {
            self.add_equations(scope, own, &prefix);
        }
        self.check_equations(scope);
        let mut sound = true;
        for coupling in &draft.couplings {
            sound &= self.couple(scope, &mut draft.compartments, coupling).is_some();
            sound &= !self.diagnostics.has_error_at(coupling.span);
        }
        if sound {
            self.warn_one_direction(&draft.couplings);
        }
        for compartment in &draft.compartments {
            self.voltage_equation(scope, compartment);
        }
    }

    /// Warns of couplings that have none of the other direction.
    fn warn_one_direction(&mut self, couplings: &[Coupling<'a>]) {
        for &Coupling { into, from, conductance, span } in couplings {
            if !couplings.iter().any(|back| back.into.text == from.text && back.from.text == into.text) {
                let conductance = self.text(conductance.span);
                self.error(CellError::OneDirection { into, from, conductance, span });
            }
        }
    }

    fn spike_rule(&mut self, draft: &mut Draft<'a>) -> Option<Spike> {
        if let [first, second, ..] = draft.spikes[..] {
            self.error(SpikeError::TwoRules { second: second.span, first: first.span });
        }
        self.spike(&mut draft.scope, draft.spikes.first()?)
    }

    /// `couple a <- b: g` is a current g (v_a - v_b) out of a.
    fn couple(
        &mut self,
        scope: &mut Scope<'a>,
        compartments: &mut [CompartmentDraft],
        coupling: &Coupling<'a>,
    ) -> Option<()> {
        let &Coupling { into, from, conductance, span } = coupling;
        let (a, b) = (self.coupled(compartments, into), self.coupled(compartments, from));
        let (a, b) = (a?, b?);
        if a == b {
            let other = compartments.iter().map(|k| k.name.as_str()).find(|name| *name != into.text);
            let conductance = self.text(conductance.span);
            self.error(CellError::CoupledToItself { into, other, conductance, span });
            return None;
        }
        let g = self.expr_of(scope, "", conductance, Dim::CONDUCTANCE_DENSITY, "the conductance of a coupling")?;
        let volt = |id| Expr::symbol(id, Ty::Real(Dim::VOLTAGE), span);
        let difference = Expr::binary(BinaryOp::Sub, volt(compartments[a].v?), volt(compartments[b].v?));
        let current = Expr::binary(BinaryOp::Mul, g, difference);
        let name = format!("{}.i_{}", into.text, from.text);
        let entry = Entry::ready(name, span, Role::Let, Some(Ty::Real(Dim::CURRENT_DENSITY)), Some(current));
        match scope.add(entry) {
            Ok(id) => compartments[a].currents.push(id),
            // Couplings have places of their own, and begin with a word of their own.
            Err(first) if self.text(first).starts_with("couple") => {
                self.error(CellError::CoupledTwice { into, from, again: span, first });
            }
            Err(taken) => self.error(CellError::CouplingTaken { into, from, coupling: span, taken }),
        }
        Some(())
    }

    /// The compartment that a coupling names.
    fn coupled(&mut self, compartments: &[CompartmentDraft], name: &Name) -> Option<usize> {
        let known: Vec<&str> = compartments.iter().map(|k| k.name.as_str()).collect();
        let at = known.iter().position(|n| *n == name.text);
        if let Some(at) = at {
            self.note(name.span, compartments[at].span);
        }
        if at.is_none() {
            self.error(CellError::UnknownCompartment { name, known: &known });
        }
        at
    }
}

/// Is a cell a point neuron?
fn is_point(c: &ast::Cell) -> bool {
    !c.members.iter().any(|m| matches!(m, CellMember::Compartment(_)))
}
