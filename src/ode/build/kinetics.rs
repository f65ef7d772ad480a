//! Kinetic schemes of a cell: where they begin, and what is demanded of that.
//!
//! In come the symbols of a cell; out go the steady states of its schemes, and that the states of each sum to 1 at the start.
//! Never true here: a scheme begins in a steady state of something else than its own rates.

use super::Builder;
use crate::diag::Code;
use crate::hir::{Demand, Domain, SymbolId, SymbolKind, Whose};
use crate::ode::scheme::{Flow, at_rest};
use crate::ode::{Node, NodeId, StateId, linear};
use crate::operators::BinaryOp;
use crate::units::Dim;

impl Builder<'_> {
    /// The states of the scheme that begins with a symbol.
    fn states_of_scheme(&self, population: usize, first: SymbolId) -> Vec<SymbolId> {
        let symbols = &self.cell(population).symbols;
        let is_of = |id: &SymbolId| matches!(symbols[id.0 as usize].kind, SymbolKind::State { scheme: Some(of), .. } if of == first);
        (0..symbols.len() as u32).map(SymbolId).filter(is_of).collect()
    }

    /// The value of a state where its scheme is at rest.
    pub(super) fn at_rest(&mut self, population: usize, symbol: SymbolId) -> NodeId {
        let cell = self.cell(population);
        let none = self.graph.number(f64::NAN, Dim::ONE);
        let SymbolKind::State { scheme: Some(first), .. } = cell.symbol(symbol).kind else { return none };
        let of_scheme = self.states_of_scheme(population, first);
        if let Some(known) = self.resting.get(&(population, first)) {
            return of_scheme.iter().position(|&id| id == symbol).map_or(none, |at| known[at]);
        }
        let mut states: Vec<StateId> = Vec::new();
        let mut flows = Vec::new();
        for &id in &of_scheme {
            let node = self.symbols[population][id.0 as usize].map(|n| self.graph.node(n));
            let Some(Node::State(state)) = node else { return none };
            states.push(state);
        }
        for (to, &id) in of_scheme.iter().enumerate() {
            let SymbolKind::State { rate, .. } = &cell.symbol(id).kind else { return none };
            let rate = self.expr(Some(population), rate);
            let Ok(row) = linear::row(&mut self.graph, rate, &|s| states.contains(&s)) else { return none };
            flows.extend(row.coefficients.iter().filter_map(|(from, &rate)| {
                let from = states.iter().position(|state| state == from)?;
                (from != to).then_some(Flow { from, to, rate })
            }));
        }
        let resting = at_rest(&mut self.graph, states.len(), &flows).unwrap_or_else(|| vec![none; states.len()]);
        let value = of_scheme.iter().position(|&id| id == symbol).map_or(none, |at| resting[at]);
        self.resting.insert((population, first), resting);
        value
    }

    /// That the states of each scheme of a cell sum to 1 at the start.
    pub(super) fn wholes(&mut self, population: usize) -> Vec<Demand<NodeId>> {
        let cell = self.cell(population);
        let mut demands = Vec::new();
        for (at, symbol) in cell.symbols.iter().enumerate() {
            let first = SymbolId(at as u32);
            if !matches!(symbol.kind, SymbolKind::State { scheme: Some(of), .. } if of == first) {
                continue;
            }
            let states = self.states_of_scheme(population, first);
            let set = states.iter().find_map(|id| self.setting_of(population, id.0 as usize));
            let nodes: Vec<NodeId> = states.iter().map(|&id| self.symbol(population, id)).collect();
            let Some(sum) = nodes.into_iter().reduce(|a, b| self.graph.binary(BinaryOp::Add, a, b)) else { continue };
            let above = symbol.name.rsplit_once('.').map_or("", |(above, _)| above);
            let name = &self.network.populations[population].name;
            demands.push(Demand {
                what: format!("{name}.{above}"),
                value: sum,
                domain: Domain::Whole,
                why: "the states of a scheme are the fractions of channels that are in them",
                code: Code::BadScheme,
                unit: Dim::ONE.display_unit(),
                whose: Whose::Cells(self.home(population, first)),
                span: set.map_or(symbol.span, |s| s.value.span),
            });
        }
        demands
    }
}
