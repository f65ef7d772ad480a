//! Lines through graded synapses: what cells pass on at every moment, without spikes.
//!
//! In come `connect a -> b` lines whose synapse is graded; out go receptors and, as parts of the cells before them, what these send.
//! Never true here: a line reads the voltage of more than one place of the cell that sends.

use super::{Found, Has, Instance, Joins, Seat, copied};
use crate::hir::error::SynapseError;
use crate::hir::lower::{Definition, Lowerer};
use crate::hir::network::NetworkDraft;
use crate::hir::place::{FlatPath, Place, flatten};
use crate::hir::{Cell, ConnectionRule, Expr, Projection, Sent, SymbolId, SymbolKind, Synapse, Ty, advice};
use crate::source::Span;
use crate::syntax::ast::{self, ConnectKey, Through};
use crate::units::Dim;
use std::rc::Rc;

impl<'a> Lowerer<'a> {
    /// `connect a -> b via S { ... }` through a graded synapse: one projection for each source and target.
    pub(super) fn graded_projection(
        &mut self,
        draft: &mut NetworkDraft<'a>,
        (from, to): (&'a ast::Path, &'a ast::Path),
        via: &'a Through,
        synapse: &Rc<Definition<Synapse>>,
        keys: &'a [ConnectKey],
        (rule, span): (&ConnectionRule, Span),
    ) -> Option<()> {
        if let Some(delay) = keys.iter().find(|key| key.name.text == "delay") {
            self.error(SynapseError::GradedDelay { span: delay.name.span });
            return None;
        }
        self.no_dendrite(keys, via, false)?;
        self.may_differ(keys, via, &synapse.item)?;
        if let (Some(graded), None, Some(key)) =
            (&synapse.item.graded, synapse.item.weight, keys.iter().find(|key| key.name.text == "weight"))
        {
            let unit = if graded.sent.ty == Ty::Real(Dim::ONE) { ": nS" } else { "" };
            let value = advice::wrap_sum(self.text(graded.sent.span));
            let (sum, span) = (&synapse.item.symbols[graded.sum.0 as usize].name, key.name.span);
            self.error(SynapseError::SumWithoutWeight { synapse: &via.model, sum, value: &value, unit, span });
            return None;
        }
        let max_pool = self.max_pool(rule)?;
        if max_pool > 1 {
            self.error(SynapseError::PooledGraded { synapse: &via.model, span });
            return None;
        }
        for source in flatten(from) {
            for target in flatten(to) {
                let ends = [&source, &target].map(|flat| self.place_within(&mut draft.scope, &draft.populations, flat));
                let [before, behind] = ends;
                let (before, behind) = (before?, behind?);
                if let Some((_, flat)) =
                    [(&before, &source), (&behind, &target)].iter().find(|end| end.0.cells.is_some())
                {
                    self.error(SynapseError::Selection { span: flat.span });
                    return None;
                }
                let sends = self.sending_seat(draft, (&before, &source), &synapse.item)?;
                let receives = self.receiving_seat(draft, (&behind, &target), &synapse.item)?;
                let (from, to) = (before.population, behind.population);
                let args = draft.said_of_both([(from, &sends), (to, &receives)], via);
                let receptor = self.receptor(draft, (to, &receives), (via, args), synapse)?;
                let sent = Some(self.sender(draft, (from, &sends), (via, args), synapse)?);
                let name = draft.line_name([from, to], receptor);
                let joins = Joins { rule, ends: [from, to], names: &[] };
                let weight = self.weight(draft, &name, (synapse.item.weight, via), keys, Some(joins), span);
                draft.demand_of_edges(std::mem::take(&mut self.demands));
                let (weight, delay) = (weight?, Expr::number(0.0, Dim::TIME, span));
                let (modulates, rule, unit) = (false, rule.clone(), synapse.item.unit_of(&weight));
                draft.projections.push(Projection {
                    name,
                    from,
                    to,
                    receptor,
                    modulates,
                    sent,
                    weight,
                    unit,
                    delay,
                    dendritic: None,
                    given: Vec::new(),
                    rule,
                    max_pool,
                    span,
                });
            }
        }
        Some(())
    }

    /// Where the side that sends sits: on a cell with sections at one place.
    fn sending_seat(
        &mut self,
        draft: &NetworkDraft<'a>,
        (place, flat): (&Place<'a>, &FlatPath<'a>),
        synapse: &Synapse,
    ) -> Option<Seat> {
        let definition = self.lowered_cell(draft.populations[place.population].cell);
        let cell = &definition.item;
        if let Some(morphology) = &cell.morphology {
            let element = self.driven_place(&definition, morphology, place, "a graded synapse", flat)?;
            let (compartment, elements) = (Some(morphology.tree.name(element)), Some([element as u32].into()));
            return Some(Seat { compartment, v: Some(morphology.v), port: None, area: None, elements });
        }
        let seat = self.seat_only(&definition, (place, flat))?;
        // A sender's potential may be given, too.
        let is_given = |id: &SymbolId| matches!(cell.symbol(*id).kind, SymbolKind::Param(_) | SymbolKind::Let(_));
        let of_voltage = |id: &SymbolId| cell.symbol(*id).ty == Ty::Real(Dim::VOLTAGE);
        let v = seat.v.or_else(|| cell.find("v").filter(is_given).filter(of_voltage));
        if let (None, Some(graded)) = (v, &synapse.graded) {
            let (cell, read, span) = (&cell.name[..], graded.sent.span, place.rest_span);
            self.error(SynapseError::NoVoltage { cell, read, span, sends: true });
            return None;
        }
        Some(Seat { v, ..seat })
    }

    /// The side before a graded synapse that a line means: one that is there, or a new one.
    fn sender(
        &mut self,
        draft: &mut NetworkDraft<'a>,
        (population, seat): (usize, &Seat),
        (via, args): (&'a Through, &'a [(ast::Name, ast::Expr)]),
        synapse: &Rc<Definition<Synapse>>,
    ) -> Option<Sent> {
        let graded = synapse.item.graded.as_ref()?;
        let definition = self.lowered_cell(draft.populations[population].cell);
        let cell = &definition.item;
        let values = self.values(draft, args, &graded.symbols)?;
        let wanted = via.alias.as_ref().unwrap_or(&via.model);
        let path = seat.path(&wanted.text);
        let path = match self.instance(draft, (population, true), (path, cell), via, &values)? {
            Found::Known(Has::Sender(sent)) => return Some(sent),
            Found::Known(Has::Receptor(_)) => return None,
            Found::New(path) => path,
        };
        let below = format!("{path}.pre");
        let (symbols, map) = copied(&graded.symbols, &below, seat.v, &values, cell.symbols.len());
        let part = seat.part(&below, None, via.model.span);
        let number = cell.morphology.as_ref().map(|morphology| morphology.parts.len());
        let sent = Sent { value: graded.sent.map_symbols(&|id| map[id.0 as usize]), part: number };
        self.note_places(cell.span, [(below, wanted.span)].into());
        let morphology = cell.morphology.clone().map(|known| match part {
            Some(part) => known.with_part(part, symbols.len()),
            None => known,
        });
        let cell = Cell { symbols: [cell.symbols.clone(), symbols].concat(), morphology, ..cell.clone() };
        let changed = Definition { item: cell, sound: definition.sound, unknown: definition.unknown.clone() };
        self.put_on(draft, population, changed);
        let (model, has, span) = (synapse.item.name.clone(), Has::Sender(sent.clone()), synapse.item.span);
        draft.instances.push(Instance { population, path, model, args, values, has, span });
        Some(sent)
    }
}

impl<'a> NetworkDraft<'a> {
    /// What is said of both sides of a graded synapse, the one that sends and the one that receives: by the line, or, if that only names it, by the line
    /// that made one of them.
    fn said_of_both(&self, ends: [(usize, &Seat); 2], via: &'a Through) -> &'a [(ast::Name, ast::Expr)] {
        let Some(alias) = via.alias.as_ref().filter(|_| via.args.is_empty()) else { return &via.args };
        let is_known = |known: &&Instance<'a>| {
            let (population, seat) = ends[usize::from(matches!(known.has, Has::Receptor(_)))];
            (known.population, &known.model, &known.path) == (population, &via.model.text, &seat.path(&alias.text))
        };
        self.instances.iter().find(is_known).map_or(&via.args, |known| known.args)
    }
}
