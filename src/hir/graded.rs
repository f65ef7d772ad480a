//! Graded synapses: what they pass on follows the voltage of the cell before them, without spikes.
//!
//! In comes a synapse with a `sum`, its names resolved; out go what each cell that sends has for it, and what each cell that receives has.
//! Never true here: what a cell sends depends on who receives it, but for the weight of a connection.
//!
//! What the sum is made of belongs to the cell before the synapse, all else to the cell behind it. Parameters that both read are there twice.

use super::error::SynapseError;
use super::lower::Lowerer;
use super::synapse::degree;
use super::{Expr, ExprKind, Graded, Symbol, SymbolId, SymbolKind};
use crate::source::Span;
use crate::syntax::ast;

/// A `sum` line whose names are resolved.
pub(super) struct Summed<'a> {
    /// The line.
    pub line: &'a ast::Sum,
    /// The sum among the symbols of the synapse.
    pub sum: SymbolId,
    /// What one connection brings.
    pub value: Expr,
    /// The weight of a connection among the symbols.
    pub weight: Option<SymbolId>,
}

/// A graded synapse, in two parts.
pub(super) struct Parted {
    /// What the cell behind it has.
    pub symbols: Vec<Symbol>,
    pub graded: Graded,
}

impl Lowerer<'_> {
    /// Parts a graded synapse; `v` and `v_pre` are the voltages among its symbols. `None` if something is wrong, which has been said.
    pub(super) fn graded(
        &mut self,
        symbols: &[Symbol],
        summed: &Summed<'_>,
        [v, v_pre]: [SymbolId; 2],
    ) -> Option<Parted> {
        let before = reached(symbols, reads(&summed.value));
        let own = |id: SymbolId| Some(id) == summed.weight || id == summed.sum || id == v_pre;
        let ids = || (0..symbols.len() as u32).map(SymbolId);
        let rest = ids().filter(|&id| !before[id.0 as usize] && !own(id)).map(|id| (id, symbols[id.0 as usize].span));
        let behind = reached(symbols, rest.collect());
        let all = |side: &[bool]| -> Vec<&Expr> {
            ids().filter(|id| side[id.0 as usize]).flat_map(|id| parts(&symbols[id.0 as usize])).collect()
        };
        let (of_before, of_behind) = (all(&before), all(&behind));
        let alone: Vec<bool> = behind.iter().zip(&before).map(|(behind, before)| *behind && !*before).collect();
        let of_alone = all(&alone);
        let mut fine = true;
        if let Some(weight) = summed.weight
            && let Some(span) = read(&of_before, weight).or_else(|| read(&of_behind, weight))
        {
            self.error(SynapseError::WeightOutsideSum { name: &symbols[weight.0 as usize].name, span });
            return None;
        }
        let sent = [&summed.value];
        if let Some(span) = read(&of_before, v).or_else(|| read(&sent, v)) {
            self.error(SynapseError::SendsVoltageBehind { span, sum: &summed.line.name });
            fine = false;
        }
        if let Some(span) = read(&of_before, summed.sum) {
            self.error(SynapseError::SumOfItself { span, sum: &summed.line.name });
            fine = false;
        }
        let is_state = |id: &SymbolId| matches!(symbols[id.0 as usize].kind, SymbolKind::State { .. });
        let of_sender = ids().filter(|id| before[id.0 as usize] && is_state(id)).chain([v_pre]);
        for id in of_sender {
            if let Some(span) = read(&of_alone, id).or_else(|| read(&of_behind, id)) {
                self.error(SynapseError::OfTheSender {
                    name: &symbols[id.0 as usize].name,
                    span,
                    sum: &summed.line.name,
                });
                fine = false;
                break;
            }
        }
        if fine && degree_of(&summed.value, summed.weight) != Some(u32::from(summed.weight.is_some())) {
            self.error(SynapseError::SumNotProportional { span: summed.value.span });
            fine = false;
        }
        fine.then(|| part(symbols, summed, v_pre, &before, &behind))
    }
}

/// The power of the weight that a value is a multiple of.
fn degree_of(value: &Expr, weight: Option<SymbolId>) -> Option<u32> {
    degree(&value.map_leaves(&|id| if Some(id) == weight { ExprKind::Weight } else { ExprKind::Symbol(id) }))
}

fn part(symbols: &[Symbol], summed: &Summed<'_>, v_pre: SymbolId, before: &[bool], behind: &[bool]) -> Parted {
    let own = |id: usize| Some(SymbolId(id as u32)) == summed.weight;
    let is_before = |id: usize| before[id] && !own(id) || id == v_pre.0 as usize;
    let is_behind = |id: usize| {
        (behind[id] || id == summed.sum.0 as usize || symbols[id].kind == SymbolKind::Voltage)
            && !own(id)
            && id != v_pre.0 as usize
    };
    let of = |is_in: &dyn Fn(usize) -> bool| -> (Vec<Symbol>, Vec<SymbolId>) {
        let mut next = 0;
        let place = |id| {
            let place = SymbolId(next);
            next += u32::from(is_in(id));
            place
        };
        let places: Vec<SymbolId> = (0..symbols.len()).map(place).collect();
        let moved = |x: &Expr| x.map_symbols(&|id| places[id.0 as usize]);
        let kind = |kind: &SymbolKind| match kind {
            SymbolKind::Param(x) => SymbolKind::Param(moved(x)),
            SymbolKind::Let(x) => SymbolKind::Let(moved(x)),
            // Schemes are of channels.
            SymbolKind::State { init, rate, kind, .. } => {
                SymbolKind::State { init: moved(init), rate: moved(rate), kind: *kind, scheme: None }
            }
            SymbolKind::Port(port) => SymbolKind::Port(*port),
            SymbolKind::Voltage => SymbolKind::Voltage,
            SymbolKind::Pool => SymbolKind::Pool,
        };
        let chosen = symbols.iter().enumerate().filter(|(id, _)| is_in(*id));
        (chosen.map(|(_, s)| Symbol { kind: kind(&s.kind), ..s.clone() }).collect(), places)
    };
    let (sender, places) = of(&is_before);
    let sent = summed.value.map_leaves(&|id| match Some(id) == summed.weight {
        true => ExprKind::Weight,
        false => ExprKind::Symbol(places[id.0 as usize]),
    });
    let (receiver, places) = of(&is_behind);
    Parted { symbols: receiver, graded: Graded { symbols: sender, sent, sum: places[summed.sum.0 as usize] } }
}

/// What a symbol is computed of.
fn parts(symbol: &Symbol) -> Vec<&Expr> {
    match &symbol.kind {
        SymbolKind::Param(x) | SymbolKind::Let(x) => vec![x],
        SymbolKind::State { init, rate, .. } => vec![init, rate],
        SymbolKind::Port(_) | SymbolKind::Voltage | SymbolKind::Pool => Vec::new(),
    }
}

/// The symbols that an expression names, with the places.
fn reads(e: &Expr) -> Vec<(SymbolId, Span)> {
    let mut found = Vec::new();
    e.visit(&mut |e| {
        if let ExprKind::Symbol(id) = e.kind {
            found.push((id, e.span));
        }
    });
    found
}

/// Where one of some expressions names a symbol.
fn read(all: &[&Expr], symbol: SymbolId) -> Option<Span> {
    all.iter().flat_map(|e| reads(e)).find(|(id, _)| *id == symbol).map(|(_, span)| span)
}

/// Which symbols are needed for some.
fn reached(symbols: &[Symbol], mut waiting: Vec<(SymbolId, Span)>) -> Vec<bool> {
    let mut found = vec![false; symbols.len()];
    while let Some((id, _)) = waiting.pop() {
        if !std::mem::replace(&mut found[id.0 as usize], true) {
            waiting.extend(parts(&symbols[id.0 as usize]).into_iter().flat_map(reads));
        }
    }
    found
}
