//! Networks: populations and their sizes, values per cell.
//!
//! In come networks; out go their parameters (those of inputs and junctions among them), populations and settings.
//! Never true here: a size depends on what happens in a run.

use super::error::{Meant, NetworkError, UnknownPopulation};
use super::expr::constant_of;
use super::items::{ItemKind, Kind};
use super::junction::Joined;
use super::keys::Block;
use super::lower::{Lowerer, finish};
use super::place::{FlatPath, Place, Wanted, flatten};
use super::projection::Instance;
use super::scope::{Entry, Scope, ScopeKind};
use super::{
    Clamp, Connection, Demand, Domain, Drive, Expr, ExprKind, Input, Network, Population, Probe, Projection, Setting,
    Symbol, SymbolId, SymbolKind, Whose, said_by_all_lines,
};
use crate::source::Span;
use crate::syntax::ast::{self, ConnectKey, Name, NetworkMember};
use crate::units::Dim;
use std::collections::HashSet;

/// A network in the making.
pub(super) struct NetworkDraft<'a> {
    pub scope: Scope<'a>,
    pub populations: Vec<Population>,
    settings: Vec<Setting>,
    pub inputs: Vec<Input>,
    pub clamps: Vec<Clamp>,
    pub input_names: Vec<&'a Name>,
    pub(super) connections: Vec<Connection>,
    pub projections: Vec<Projection>,
    pub drives: Vec<Drive>,
    pub instances: Vec<Instance<'a>>,
    pub probes: Vec<Probe>,
    demands: Vec<Demand<Expr>>,
    /// Is all of it there?
    pub whole: bool,
}

/// A lowered network, with what is wrong in it.
pub(super) struct Lowered {
    pub network: Network,
    pub sound: bool,
    /// Populations and parameters that nothing is known about because of a mistake that has been said.
    pub unknown: HashSet<String>,
}

impl NetworkDraft<'_> {
    /// Keeps what is demanded of values of the edges of the next projection.
    pub fn demand_of_edges(&mut self, demands: Vec<Demand<Expr>>) {
        let projection = self.projections.len();
        self.demands.extend(demands.into_iter().map(|d| Demand { whose: Whose::Edges(projection), ..d }));
    }

    /// Keeps what is demanded of values of the network.
    pub fn keep_demands(&mut self, demands: &mut Vec<Demand<Expr>>) {
        self.demands.append(demands);
    }

    /// Keeps what is demanded of values of a population's cells.
    pub fn demand_of(&mut self, demands: Vec<Demand<Expr>>, population: usize) {
        self.demands.extend(demands.into_iter().map(|d| Demand { whose: Whose::Cells(population), ..d }));
    }
}

impl<'a> Lowerer<'a> {
    /// Lowers a network.
    pub(super) fn network(&mut self, n: &'a ast::Network) -> Lowered {
        let before = self.diagnostics.count();
        self.start_streams(&n.name.text);
        let mut draft = NetworkDraft {
            scope: Scope::new(ScopeKind::Network, 0),
            populations: Vec::new(),
            settings: Vec::new(),
            inputs: Vec::new(),
            clamps: Vec::new(),
            input_names: Vec::new(),
            connections: Vec::new(),
            projections: Vec::new(),
            drives: Vec::new(),
            instances: Vec::new(),
            probes: Vec::new(),
            demands: Vec::new(),
            whole: true,
        };
        let junctions = self.network_params(&mut draft.scope, n);
        self.populations(&mut draft, n);
        self.synapses(&mut draft, n);
        self.what_happens(&mut draft, n, junctions);
        self.held_from_the_start(&draft);
        if draft.whole {
            self.without_modulator(&draft);
            self.said_by_all_lines(&draft);
        }
        self.warn_unused(&draft.scope, "network", before);
        let NetworkDraft { scope, populations, settings, inputs, clamps, connections, demands, whole, .. } = draft;
        let (projections, drives, probes) = (draft.projections, draft.drives, draft.probes);
        let (params, sound, unknown) = finish(scope);
        self.note_block(n.name.span, &params, &unknown);
        for population in &populations {
            let cell = self.lowered_cell(population.cell);
            self.note_block(population.span, &cell.item.symbols, &cell.unknown);
        }
        self.warn_magnitudes(&params);
        self.warn_stimuli(&params);
        self.check_domains(&params, &unknown);
        let (name, span) = (n.name.text.clone(), n.name.span);
        let network = Network {
            name,
            params,
            populations,
            settings,
            inputs,
            clamps,
            connections,
            projections,
            drives,
            probes,
            demands,
            span,
        };
        Lowered { network, sound: sound && whole, unknown }
    }

    /// Adds the parameters of a network, of its inputs and of its junctions; gives the junctions of its `connect` lines.
    fn network_params(&mut self, scope: &mut Scope<'a>, n: &'a ast::Network) -> Vec<Option<Joined<'a>>> {
        let mut junctions = Vec::new();
        let mut joined = Vec::new();
        let mut inputs: Vec<&str> = Vec::new();
        for member in &n.members {
            match member {
                NetworkMember::Param(p) => {
                    self.check_not(&["distance"], &p.name);
                    self.add_param(scope, p, "");
                }
                NetworkMember::Input { name, value, electrode, .. } => {
                    let taken = self.add_stimulus_params(scope, name, value, electrode.as_ref());
                    // A second input of one name is told where inputs lead to something.
                    if let Some(first) = taken.filter(|_| !inputs.contains(&name.text.as_str())) {
                        self.duplicate(name, first);
                    }
                    inputs.push(&name.text);
                }
                NetworkMember::Connect { directed: false, via, span, .. } => {
                    junctions.push(self.junction_params(scope, via, *span, &mut joined));
                }
                NetworkMember::Connect { directed: true, .. }
                | NetworkMember::Drive { .. }
                | NetworkMember::Population { .. }
                | NetworkMember::Probe(_)
                | NetworkMember::Set { .. } => {}
            }
        }
        self.resolve_all(scope);
        junctions
    }

    fn populations(&mut self, draft: &mut NetworkDraft<'a>, n: &'a ast::Network) {
        for member in &n.members {
            if let NetworkMember::Population { name, cell, sizes, keys, span } = member {
                self.population(draft, (name, cell), sizes, keys, *span);
            }
        }
        if draft.populations.is_empty() && draft.whole {
            let cells = self.names_of(0, Kind::Cell);
            let cell = cells.first().map_or("Cell", String::as_str);
            self.error(NetworkError::NoPopulation { network: &n.name, cell });
            draft.whole = false;
        }
    }

    fn population(
        &mut self,
        draft: &mut NetworkDraft<'a>,
        (name, cell): (&'a Name, &'a Name),
        sizes: &'a [ast::Expr],
        keys: &'a [ConnectKey],
        span: Span,
    ) {
        self.check_reserved(name);
        if let Some(first) = draft.populations.iter().find(|p| p.name == name.text) {
            self.duplicate(name, first.span);
            return;
        }
        if let Some(first) = draft.scope.get(&name.text) {
            self.duplicate(name, draft.scope.entry(first).span);
        }
        let item = self.find_item(0, cell, Kind::Cell);
        if sizes.len() > 3 {
            self.error(NetworkError::Dimensions { count: sizes.len(), span });
            draft.whole = false;
        }
        let known: Vec<Expr> = sizes.iter().filter_map(|size| self.size(&mut draft.scope, size)).collect();
        draft.whole &= known.len() == sizes.len();
        let spacing = self.spacing(draft, name, keys);
        let cell = match item.map(|item| (item, item.kind)) {
            Some((item, ItemKind::Cell(c))) => Some(self.cell(item, c)),
            Some(_) | None => None,
        };
        let offset = ["x", "y", "z"].map(|axis| self.offset(draft, (name, cell), keys, axis));
        if let Some(cell) = cell {
            draft.populations.push(Population {
                name: name.text.clone(),
                cell,
                sizes: known,
                spacing,
                offset,
                receptors: Vec::new(),
                span: name.span,
            });
        } else {
            draft.whole = false;
            draft.scope.poisoned.insert(name.text.clone());
        }
    }

    /// A size of a population; what is wrong with its value is said, and the value is given all the same.
    fn size(&mut self, scope: &mut Scope<'a>, size: &'a ast::Expr) -> Option<Expr> {
        let x = self.expr_of(scope, "", size, Dim::ONE, "the size of a population")?;
        if let Some(value) = constant_of(&x)
            && (value < 0.0 || value.fract() != 0.0)
        {
            self.error(NetworkError::Size { value, span: x.span });
        }
        if let Some((what, span)) = not_constant(&x) {
            self.error(NetworkError::SizeNotConstant { what, span });
        }
        Some(x)
    }

    /// How far neighbours of a population are from each other, if it says so.
    fn spacing(&mut self, draft: &mut NetworkDraft<'a>, name: &Name, keys: &'a [ConnectKey]) -> Option<Expr> {
        for (i, key) in keys.iter().enumerate() {
            match keys[..i].iter().find(|first| first.name.text == key.name.text) {
                _ if !Block::Population.keys().contains(&key.name.text.as_str()) => {
                    self.unknown_key(&key.name, Block::Population);
                }
                Some(first) => self.duplicate_key(&key.name, first.name.span),
                None => {}
            }
        }
        let key = keys.iter().find(|key| key.name.text == "spacing")?;
        if key.random {
            self.error(NetworkError::TildeWithoutDraw { span: key.value.span });
        }
        let x = self.expr_of(&mut draft.scope, "", &key.value, Dim::LENGTH, "the spacing of a population");
        draft.whole &= x.is_some();
        let x = x?;
        self.demand(format!("spacing` of `{}", name.text), x.clone(), Domain::AboveZero, "neighbours are apart");
        draft.demands.append(&mut self.demands);
        Some(x)
    }

    /// How far each cell of a population stands along an axis, if it says so.
    fn offset(
        &mut self,
        draft: &mut NetworkDraft<'a>,
        (name, cell): (&Name, Option<usize>),
        keys: &'a [ConnectKey],
        axis: &str,
    ) -> Option<Expr> {
        let key = keys.iter().find(|key| key.name.text == axis)?;
        // What is called so in the cell has random numbers of its own.
        let has = |cell: usize| self.lowered_cell(cell).item.find(axis).is_some();
        let own = if cell.is_some_and(has) { "'place" } else { "" };
        let target = format!("{}.{axis}{own}", name.text);
        let x = self.per_cell(&mut draft.scope, &target, &key.value, Dim::LENGTH, "a place in space");
        let demands = std::mem::take(&mut self.demands);
        draft.demand_of(demands, draft.populations.len());
        let x = x.filter(|x| self.draws_as_written(x, key.random, key.value.span));
        draft.whole &= x.is_some();
        x
    }

    /// Settings, inputs and connections, which name populations.
    fn what_happens(&mut self, draft: &mut NetworkDraft<'a>, n: &'a ast::Network, junctions: Vec<Option<Joined<'a>>>) {
        let mut junctions = junctions.into_iter();
        for member in &n.members {
            self.of_no_cell(draft, member);
            match member {
                NetworkMember::Param(_)
                | NetworkMember::Population { .. }
                | NetworkMember::Connect { directed: true, .. }
                | NetworkMember::Drive { .. } => {}
                NetworkMember::Probe(p) => self.probe(draft, p),
                NetworkMember::Set { init, target, random, value, span } => {
                    self.setting(draft, *init, target, *random, value, *span);
                }
                NetworkMember::Input { clamp: false, name, value, target, span, .. } => {
                    self.input(draft, name, value, target, *span);
                }
                NetworkMember::Input { name, value, electrode: Some(_), target, span, .. } => {
                    self.electrode(draft, name, value, target, *span);
                }
                NetworkMember::Input { clamp: true, name, value, electrode: None, target, span } => {
                    self.clamp(draft, name, value, target, *span);
                }
                NetworkMember::Connect { directed: false, via, .. } if self.is_synapse(via) => {
                    // That has been said.
                    junctions.next();
                    draft.whole = false;
                }
                NetworkMember::Connect { directed: false, from, to, keys, span, .. } => {
                    let junction = junctions.next().flatten();
                    let connection = self.connection(draft, junction, from, to, keys, *span);
                    draft.whole &= connection.is_some();
                    draft.connections.extend(connection);
                }
            }
        }
    }

    /// Sees to it that no parameter of an input or a junction has the full name of something of a cell.
    fn of_no_cell(&mut self, draft: &NetworkDraft<'a>, member: &'a NetworkMember) {
        let name = match member {
            NetworkMember::Input { name, .. } => name,
            NetworkMember::Connect { directed: false, via, .. } => via.alias.as_ref().unwrap_or(&via.model),
            _ => return,
        };
        let Some(population) = draft.populations.iter().find(|p| p.name == name.text) else { return };
        let cell = &self.lowered_cell(population.cell).item;
        let below = format!("{}.", name.text);
        let of_cell = |entry: &Entry<'_>| entry.name.strip_prefix(&below).is_some_and(|rest| cell.find(rest).is_some());
        if draft.scope.entries.iter().any(of_cell) {
            self.duplicate(name, population.span);
        }
    }

    /// Warns of initial values of states that a clamp holds from the start.
    fn held_from_the_start(&mut self, draft: &NetworkDraft<'a>) {
        for setting in draft.settings.iter().filter(|s| s.init) {
            let holds = |c: &&Clamp| {
                (c.population, c.state) == (setting.population, setting.symbol)
                    && c.cells.as_ref().is_none_or(|cells| Some(cells) == setting.cells.as_ref())
            };
            if let Some(clamp) = draft.clamps.iter().find(holds) {
                self.error(NetworkError::HeldFromTheStart { clamp: &clamp.name, init: setting.span, held: clamp.span });
            }
        }
    }

    /// `param cells.x = ...`, `init cells.v ~ ...`: one setting per place that the path leads to.
    fn setting(
        &mut self,
        draft: &mut NetworkDraft<'a>,
        init: bool,
        target: &'a ast::Path,
        random: bool,
        value: &'a ast::Expr,
        span: Span,
    ) {
        let wanted = if init { Wanted::State } else { Wanted::Parameter };
        for flat in flatten(target) {
            if let ([name], false) = (&flat.names[..], init)
                && !draft.populations.iter().any(|p| p.name == name.text)
                && !draft.scope.is_poisoned("", &name.text)
            {
                // `param scale ~ normal(1, 0.1)`
                let known: Vec<&str> = draft.populations.iter().map(|p| p.name.as_str()).collect();
                self.error(UnknownPopulation { name, rest: String::new(), meant: Meant::Parameter, known: &known });
                return;
            }
            let Some(place) = self.place(&mut draft.scope, &draft.populations, &flat) else { return };
            let definition = self.lowered_cell(draft.populations[place.population].cell);
            let cell = &definition.item;
            let symbol = cell.find(&place.rest).filter(|id| wanted.fits(cell.symbol(*id)));
            // What follows from the shape and from the regions is not set.
            let derived = |id: &SymbolId| !init && cell.morphology.as_ref().is_some_and(|m| m.is_derived(cell, *id));
            let Some(symbol) = symbol.filter(|id| !derived(id)) else {
                if !self.of_synapses(draft, &flat, &place, wanted) {
                    self.bad_target(&definition, &place, wanted);
                }
                continue;
            };
            if definition.is_unknown(&place.rest) || definition.is_unknown(&cell.name) {
                continue;
            }
            let name = format!("{}.{}", draft.populations[place.population].name, place.rest);
            let why = format!("the value of `{}`", place.rest);
            let dim = cell.symbol(symbol).ty.dim();
            let Some(x) = self.per_cell(&mut draft.scope, &name, value, dim, &why) else { return };
            draft.demand_of(std::mem::take(&mut self.demands), place.population);
            if !self.draws_as_written(&x, random, value.span) {
                return;
            }
            let (population, cells) = (place.population, place.cells);
            let setting = Setting { population, cells, symbol, init, value: x, span };
            if let Some(first) = draft.settings.iter().find(|s| is_same_whole(s, &setting)) {
                self.error(NetworkError::SetTwice { target: &name, again: span, first: first.span });
                return;
            }
            if let Some(first) = draft.settings.iter().find(|s| is_lost(s, &setting)) {
                self.error(NetworkError::SetByAll { target: &name, lost: first.span, all: span });
            }
            draft.settings.push(setting);
        }
    }

    /// Warns of settings that no line takes, because each says the parameter for its own synapses.
    fn said_by_all_lines(&mut self, draft: &NetworkDraft<'a>) {
        for setting in draft.settings.iter().filter(|setting| !setting.init) {
            if let Some(line) = said_by_all_lines(&draft.projections, setting.population, setting.symbol) {
                let synapse = &draft.populations[line.to].receptors[line.receptor].name;
                self.error(NetworkError::SaidByAllLines { synapse, span: setting.span, line: line.span });
            }
        }
    }

    /// Says of a path to synapses, or to what each of them has for itself, why nothing of them is set, if it is one.
    fn of_synapses(
        &mut self,
        draft: &NetworkDraft<'a>,
        flat: &FlatPath<'a>,
        place: &Place<'a>,
        wanted: Wanted,
    ) -> bool {
        let ends = self.ends_of_edges(&draft.populations, flat);
        let (to, rest) = ends.as_ref().map_or((place.population, &place.rest), |ends| (ends.to, &ends.rest));
        let behind = &draft.populations[to];
        let definition = self.lowered_cell(behind.cell);
        if definition.is_unknown(rest) {
            return true;
        }
        let (synapse, name) = rest.rsplit_once('.').unwrap_or(("", rest));
        let own = behind.receptors.iter().filter(|r| r.name == synapse).filter_map(|r| r.plastic.as_ref());
        let is_own = |s: &Symbol| s.name == name && matches!(s.kind, SymbolKind::State { .. });
        if wanted == Wanted::State && own.into_iter().any(|plastic| plastic.own.iter().any(is_own)) {
            self.error(NetworkError::OfEachSynapse { synapse, name, span: flat.span });
            return true;
        }
        let Some(ends) = &ends else { return false };
        let there = definition.item.find(&ends.rest);
        let there = there.filter(|id| wanted.fits(definition.item.symbol(*id)));
        if let Some(id) = there {
            let path = format!("{}.{}", behind.name, definition.item.symbol(id).name);
            self.error(NetworkError::OfReceptor { name, path: &path, wanted: wanted.name(), span: flat.span });
        }
        there.is_some()
    }

    /// A value per cell. Each target has draws of its own, that do not depend on other lines.
    pub(super) fn per_cell(
        &mut self,
        scope: &mut Scope<'a>,
        target: &str,
        value: &'a ast::Expr,
        dim: Dim,
        why: &str,
    ) -> Option<Expr> {
        self.known_before(scope, ScopeKind::PerCell, target, value, (dim, why))
    }

    /// A value of each cell or edge.
    pub(super) fn known_before(
        &mut self,
        scope: &mut Scope<'a>,
        kind: ScopeKind,
        target: &str,
        value: &'a ast::Expr,
        (dim, why): (Dim, &str),
    ) -> Option<Expr> {
        self.start_streams(target);
        scope.kind = kind;
        let x = self.expr_of(scope, "", value, dim, why);
        scope.kind = ScopeKind::Network;
        x
    }

    /// Draws are written with `~`, and only draws; if it is not so, says it.
    pub(super) fn draws_as_written(&mut self, x: &Expr, random: bool, span: Span) -> bool {
        let mut draws = false;
        x.visit(&mut |e| draws |= matches!(e.kind, ExprKind::Draw(..)));
        match (draws, random) {
            (true, false) => self.error(NetworkError::DrawWithoutTilde { span }),
            (false, true) => self.error(NetworkError::TildeWithoutDraw { span }),
            (true, true) | (false, false) => return true,
        }
        false
    }
}

/// Do two settings give the same quantity to cells of a population?
fn is_same(a: &Setting, b: &Setting) -> bool {
    a.population == b.population && a.symbol == b.symbol && a.init == b.init
}

/// The same to all of them?
fn is_same_whole(a: &Setting, b: &Setting) -> bool {
    is_same(a, b) && a.cells.is_none() && b.cells.is_none()
}

/// Does a later setting give another value to all cells of which the first one gives it to some?
fn is_lost(first: &Setting, later: &Setting) -> bool {
    is_same(first, later) && first.cells.is_some() && later.cells.is_none()
}

/// What the size of a population depends on that is known only while the model runs: sizes are needed before.
fn not_constant(x: &Expr) -> Option<(&'static str, Span)> {
    let mut found = None;
    x.visit(&mut |e| match e.kind {
        ExprKind::Celsius => found = Some(("the temperature", e.span)),
        ExprKind::Time => found = Some(("the time", e.span)),
        _ => {}
    });
    found
}
