//! Cells with sections: the populations that their compartments are, what flows through their membranes, and which ions diffuse along them.
//!
//! In come the morphologies of a checked network's cells; out go populations of compartments, parts and places, cables, and what diffuses.
//! Never true here: the equations of a channel are there more often than it is inserted.

use super::Builder;
use crate::hir::{self, Demand, End, Expr, ExprKind, Home, Morphology, RecordedAt, Sent, SymbolId, Ty, Whose};
use crate::morphology::space::lines;
use crate::ode::{
    Cable, Diffusion, Heard, Kind, MembraneCurrent, Node, NodeId, Population, Probe, Spike, Terminal, Through,
};
use crate::operators::{BinaryOp, UnaryOp};
use crate::source::Span;
use crate::units::Dim;
use std::sync::Arc;

/// Where the symbols of a population's cells have values.
pub(super) struct Homes {
    /// The population of its compartments.
    tree: usize,
    /// The populations of its parts, the same for those that are together.
    parts: Vec<usize>,
    /// The number of its cable.
    pub cable: u32,
}

impl<'m> Builder<'m> {
    fn morphology(&self, population: usize) -> Option<&'m Morphology> {
        self.cell(population).morphology.as_ref()
    }

    /// Adds the populations of compartments and of parts.
    pub(super) fn find_homes(&mut self) {
        let network = self.network;
        let mut cable = 0;
        for (population, p) in network.populations.iter().enumerate() {
            let Some(morphology) = self.morphology(population) else {
                self.homes.push(None);
                continue;
            };
            let kind = Kind::Tree { of: population, tree: morphology.tree.clone() };
            let tree = self.add_population(format!("{}.compartments", p.name), kind, p.span);
            let mut parts: Vec<usize> = Vec::new();
            for part in &morphology.parts {
                let first = morphology.parts[..parts.len()].iter().position(|p| p.together == part.together);
                parts.push(match first {
                    Some(first) => parts[first],
                    None => {
                        let kind = Kind::Part { of: tree, elements: part.elements.clone() };
                        let more = morphology.parts.iter().filter(|p| p.together == part.together).count() > 1;
                        let name = if more { "membrane" } else { &part.name };
                        self.add_population(format!("{}.{}.{name}", p.name, part.region), kind, part.span)
                    }
                });
            }
            self.homes.push(Some(Homes { tree, parts, cable }));
            cable += 1;
        }
    }

    fn add_population(&mut self, name: String, kind: Kind, span: Span) -> usize {
        self.extra.push(Population { name, kind, sizes: Vec::new(), spike: None, span });
        self.network.populations.len() + self.extra.len() - 1
    }

    /// The name of a population, one of the network or one behind those.
    pub(super) fn population_name(&self, population: usize) -> &str {
        let own = self.network.populations.get(population).map(|p| p.name.as_str());
        own.unwrap_or_else(|| &self.extra[population - self.network.populations.len()].name)
    }

    /// The population for whose elements a symbol of a cell has values.
    pub(super) fn home(&self, population: usize, symbol: SymbolId) -> usize {
        let (Some(morphology), Some(homes)) = (self.morphology(population), &self.homes[population]) else {
            return population;
        };
        match morphology.homes[symbol.0 as usize] {
            Home::Cell => population,
            Home::Tree => homes.tree,
            Home::Part(part) => homes.parts[part],
        }
    }

    /// Is a symbol computed from the shape and from other parameters, so that nobody sets it?
    pub(super) fn is_derived(&self, population: usize, symbol: SymbolId) -> bool {
        self.morphology(population).is_some_and(|m| m.is_derived(self.cell(population), symbol))
    }

    /// Is nothing demanded of a symbol: what a region says, which counts where the region is alone and is looked at there; and the area, which nodes
    /// do not have.
    pub(super) fn is_partial(&self, population: usize, symbol: SymbolId) -> bool {
        let partial = |m: &Morphology| {
            symbol == m.area || m.homes[symbol.0 as usize] == Home::Tree && !m.is_derived(self.cell(population), symbol)
        };
        self.morphology(population).is_some_and(partial)
    }

    /// What is demanded of a symbol that is in each compartment what a region says: of each region where it is the one that counts.
    pub(super) fn demands_of_regions(
        &mut self,
        population: usize,
        symbol: SymbolId,
        demand: &Demand<&Expr>,
        demands: &mut Vec<Demand<NodeId>>,
    ) {
        let (home, name) = (self.home(population, symbol), self.network.populations[population].name.clone());
        let mut said = Vec::new();
        symbols_of(demand.value, &mut said);
        for (id, span) in said {
            let own = only(demand.value, id);
            let value = self.expr(Some(population), &own);
            let span = self.setting_of(population, id.0 as usize).map_or(span, |set| set.value.span);
            let what = format!("{name}.{}", self.cell(population).symbol(id).name);
            demands.push(Demand { whose: Whose::Cells(home), span, ..demand.with(what, value) });
        }
    }

    /// The population of those elements of the tree in which a symbol is recorded; that of the cells for what is one value of the cell.
    pub(super) fn places_of(&mut self, population: usize, symbol: SymbolId, at: &RecordedAt) -> usize {
        let home = self.home(population, symbol);
        match &at.elements[..] {
            _ if home == population => population,
            [element] => self.place(population, home, *element as usize),
            elements => {
                // Where there are no nodes, all compartments are the tree.
                let whole = matches!(self.extra[home - self.network.populations.len()].kind, Kind::Tree { .. });
                let all = self.morphology(population).map_or(0, |m| m.tree.len());
                if whole && elements.len() == all { home } else { self.part(population, home, elements, &at.text) }
            }
        }
    }

    /// The place of an element of the tree in one of the populations of its compartments.
    fn place(&mut self, population: usize, home: usize, element: usize) -> usize {
        let name = self.morphology(population).map(|m| m.tree.name(element)).unwrap_or_default();
        self.part(population, home, &[element as u32], &name)
    }

    /// Some elements of the tree, of those that one of the populations of its compartments has.
    fn part(&mut self, population: usize, home: usize, elements: &[u32], name: &str) -> usize {
        let first = self.network.populations.len();
        let own: Arc<[u32]> = match &self.extra[home - first].kind {
            Kind::Part { elements: there, .. } => {
                let at = |e: &u32| there.binary_search(e).expect("what is recorded is there") as u32;
                elements.iter().map(at).collect()
            }
            Kind::Cells | Kind::Tree { .. } | Kind::Clock => elements.into(),
        };
        let key = (home, own.clone());
        if let Some(&known) = self.places.get(&key) {
            return known;
        }
        let kind = Kind::Part { of: home, elements: own };
        let whole = self.population_name(home);
        let span = self.network.populations[population].span;
        let name = format!("{}.{name}", whole.strip_suffix(".compartments").unwrap_or(whole));
        let place = self.add_population(name, kind, span);
        self.places.insert(key, place);
        place
    }

    /// What a symbol is called at a place: without its region.
    pub(super) fn quantity_name(&self, population: usize, symbol: SymbolId) -> String {
        let name = &self.cell(population).symbol(symbol).name;
        match self.morphology(population).map(|m| (m, m.homes[symbol.0 as usize])) {
            Some((morphology, Home::Part(part))) => name[morphology.parts[part].region.len() + 1..].to_string(),
            Some((_, Home::Cell | Home::Tree)) | None => name.clone(),
        }
    }

    /// Where an end of a connection is: cells, or a place of cells with sections.
    pub(super) fn terminal(&mut self, end: End) -> Option<Terminal> {
        let Some(Node::State(v)) = self.symbols[end.population][end.v.0 as usize].map(|n| self.graph.node(n)) else {
            return None;
        };
        let tree = self.homes[end.population].as_ref().map(|h| h.tree);
        let population = match (end.at, tree) {
            (Some(element), Some(tree)) => self.place(end.population, tree, element),
            _ => end.population,
        };
        Some(Terminal { population, v })
    }

    /// A spike rule that looks at a place stands there.
    pub(super) fn spikes_at(&mut self, population: usize, element: usize, spike: Spike) {
        let Some(tree) = self.homes[population].as_ref().map(|h| h.tree) else { return };
        let place = self.place(population, tree, element);
        let first = self.network.populations.len();
        self.extra[place - first].spike = Some(spike);
    }

    /// The population whose spikes are those of a population's cells.
    pub(super) fn spiking(&mut self, population: usize) -> usize {
        let at = self.cell(population).spike.as_ref().and_then(|s| s.at);
        match (at, self.homes[population].as_ref().map(|h| h.tree)) {
            (Some(element), Some(tree)) => self.place(population, tree, element),
            _ => population,
        }
    }

    /// The population whose elements send something through a graded synapse.
    pub(super) fn sending(&self, population: usize, sent: &Sent) -> usize {
        match (sent.part, &self.homes[population]) {
            (Some(part), Some(homes)) => homes.parts[part],
            _ => population,
        }
    }

    /// The cables of all cells with sections.
    pub(super) fn cables(&mut self) -> Vec<Cable> {
        let mut cables = Vec::new();
        for population in 0..self.network.populations.len() {
            let Some(morphology) = self.morphology(population) else { continue };
            let Some(tree) = self.homes[population].as_ref().map(|h| h.tree) else { continue };
            let known = self.symbols[population][morphology.v.0 as usize].map(|n| self.graph.node(n));
            let Some(Node::State(v)) = known else { continue };
            let [cm, ra, area] = [morphology.cm, morphology.ra, morphology.area].map(|s| self.symbol(population, s));
            let mut currents: Vec<MembraneCurrent> = Vec::new();
            for part in &morphology.parts {
                let Some(current) = part.current.map(|symbol| self.channel_current(population, symbol, area)) else {
                    continue;
                };
                // What flows through one membrane is one current.
                match currents.iter_mut().find(|c| c.population == current.population) {
                    Some(sum) => sum.outward = self.graph.binary(BinaryOp::Add, sum.outward, current.outward),
                    None => currents.push(current),
                }
            }
            let network = self.network;
            for input in network.inputs.iter().filter(|i| i.population == population) {
                let Some(element) = input.at else { continue };
                let place = self.place(population, tree, element);
                let value = self.expr(Some(population), &input.value);
                let mut value = self.hide_draws(place, value, &input.name, input.span);
                if input.area.is_some() {
                    value = self.graph.binary(BinaryOp::Div, value, area);
                }
                let none = self.graph.number(0.0, Dim::CURRENT_DENSITY);
                let through = if input.electrode { Through::Clamp } else { Through::Input };
                let value = self.for_cells(&input.cells, value, none);
                let outward = self.graph.unary(UnaryOp::Neg, value);
                currents.push(MembraneCurrent { population: place, outward, slope: None, through });
            }
            for (at, direction) in self.directions.clone().into_iter().enumerate() {
                let end = self.end_of(direction);
                let Some(element) = end.at.filter(|_| end.population == population) else { continue };
                let place = self.place(population, tree, element);
                let mut flows = [Node::Junction(at as u32, 0), Node::Conductance(at as u32)].map(|n| self.graph.add(n));
                if self.junction_is_a_current(direction) {
                    flows = flows.map(|flow| self.graph.binary(BinaryOp::Div, flow, area));
                }
                let ([outward, slope], through) = (flows, Through::Junction);
                currents.push(MembraneCurrent { population: place, outward, slope: Some(slope), through });
            }
            cables.push(Cable { population: tree, v, cm, ra, area, currents, span: self.cell(population).span });
        }
        cables
    }

    /// What diffuses along the cells with sections.
    pub(super) fn diffusions(&mut self) -> Vec<Diffusion> {
        let mut found = Vec::new();
        for population in 0..self.network.populations.len() {
            let Some(morphology) = self.morphology(population) else { continue };
            let Some(tree) = self.homes[population].as_ref().map(|h| h.tree) else { continue };
            for (diffusion, lumen) in morphology.diffusions.iter().zip(0..) {
                let state = |pool: &hir::DiffusingPool| {
                    let known = self.symbols[population][pool.pool.0 as usize].map(|n| self.graph.node(n));
                    if let Some(Node::State(state)) = known { Some(state) } else { None }
                };
                let pools = diffusion.pools.iter().filter_map(state).collect();
                let coefficient = self.symbol(population, diffusion.coefficient);
                let (name, span) = (diffusion.name.clone(), self.cell(population).span);
                found.push(Diffusion { name, population: tree, lumen, coefficient, pools, span });
            }
        }
        found
    }

    /// The probes of the network.
    pub(super) fn probes(&mut self) -> Vec<Probe> {
        let network = self.network;
        let probe = |p: &hir::Probe| {
            let heard = |&population: &usize| {
                let (morphology, homes) = (self.morphology(population)?, self.homes[population].as_ref()?);
                let compartments = homes.tree;
                let of = &network.populations[population];
                let spacing = of.spacing.as_ref().map(|spacing| self.expr(None, spacing));
                let offset = [0, 1, 2].map(|axis| of.offset[axis].as_ref().map(|x| self.expr(Some(population), x)));
                let lines = lines(&morphology.sections, &morphology.tree).into();
                Some(Heard { compartments, lines, spacing, offset })
            };
            let of = p.of.iter().filter_map(heard).collect();
            let sigma = self.expr(None, &p.sigma);
            let (name, contacts, sources, span) = (p.name.clone(), p.contacts.clone(), p.sources, p.span);
            Probe { name, contacts, sigma, sources, of, span }
        };
        network.probes.iter().map(probe).collect()
    }

    /// What flows in through the electrodes at an element of the tree.
    pub(super) fn through_electrodes(&mut self, population: usize, element: usize) -> NodeId {
        let Some(tree) = self.homes[population].as_ref().map(|h| h.tree) else {
            return self.graph.number(f64::NAN, Dim::CURRENT);
        };
        let (network, place) = (self.network, self.place(population, tree, element));
        let none = self.graph.number(0.0, Dim::CURRENT);
        let mut sum = None;
        for input in
            network.inputs.iter().filter(|i| i.electrode && i.population == population && i.at == Some(element))
        {
            let value = self.expr(Some(population), &input.value);
            let value = self.hide_draws(place, value, &input.name, input.span);
            let value = self.for_cells(&input.cells, value, none);
            sum = Some(sum.map_or(value, |sum| self.graph.binary(BinaryOp::Add, sum, value)));
        }
        sum.unwrap_or(none)
    }

    /// What flows out through the gap junctions at an element of the tree, currents.
    pub(super) fn through_junctions_at(&mut self, population: usize, element: usize) -> Vec<NodeId> {
        let mut all = Vec::new();
        for (at, direction) in self.directions.clone().into_iter().enumerate() {
            let end = self.end_of(direction);
            if (end.population, end.at) != (population, Some(element)) {
                continue;
            }
            let mut outward = self.graph.add(Node::Junction(at as u32, 0));
            if let (false, Some(morphology)) = (self.junction_is_a_current(direction), self.morphology(population)) {
                let area = self.symbol(population, morphology.area);
                outward = self.graph.binary(BinaryOp::Mul, outward, area);
            }
            all.push(outward);
        }
        all
    }

    fn channel_current(&mut self, population: usize, symbol: SymbolId, area: NodeId) -> MembraneCurrent {
        let mut outward = self.symbol(population, symbol);
        if self.cell(population).symbol(symbol).ty == Ty::Real(Dim::CURRENT) {
            outward = self.graph.binary(BinaryOp::Div, outward, area);
        }
        let home = self.home(population, symbol);
        MembraneCurrent { population: home, outward, slope: None, through: Through::Membrane }
    }
}

/// The symbols that stand for a value in the regions of a cell, and where their values stand.
fn symbols_of(value: &Expr, said: &mut Vec<(SymbolId, Span)>) {
    match &value.kind {
        ExprKind::Symbol(id) => said.push((*id, value.span)),
        ExprKind::If(_, yes, no) => [yes, no].into_iter().for_each(|e| symbols_of(e, said)),
        _ => (),
    }
}

/// The same value where that symbol stands for it, and elsewhere one that any domain has.
fn only(value: &Expr, id: SymbolId) -> Expr {
    match &value.kind {
        ExprKind::Symbol(other) if *other == id => value.clone(),
        ExprKind::If(condition, yes, no) => {
            let [yes, no] = [yes, no].map(|e| Arc::new(only(e, id)));
            Expr { kind: ExprKind::If(condition.clone(), yes, no), ..value.clone() }
        }
        _ => Expr::number(1.0, value.ty.dim(), value.span),
    }
}
