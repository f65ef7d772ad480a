//! From checked definitions to the flat model.
//!
//! In come checked cells, networks and a run; out go parameters, states with their derivatives, and what is recorded, over one graph.
//! Never true here: a setting from outside, or an initial value in place of a state.

mod cables;
mod calls;
mod clamps;
mod events;
mod kinetics;
mod plasticity;

use super::parity::Parity;
use super::{
    Argument, Around, Cable, CellRange, Condition, Connection, Graph, Kind, Model, Node, NodeId, Param, ParamId,
    Population, Projection, Record, Side, Spike, State, StateId, Wait, removable,
};
use crate::data::DataFile;
use crate::diag::{Code, Diagnostic, Diagnostics};
use crate::hir::{
    self, Demand, Domain, End, Expr, ExprKind, PortKind, Quantity, StateKind, SymbolId, SymbolKind, Ty, Whose,
};
use crate::operators::{BinaryOp, UnaryOp};
use crate::source::Span;
use crate::syntax::ast;
use crate::units::{Dim, DisplayUnit};
use cables::Homes;
use plasticity::Own;
use rustc_hash::FxHashMap as HashMap;
use std::sync::Arc;

/// So many named expressions may name each other without a thought for the stack.
const LONG_CHAIN: usize = 256;

/// Flattens a checked model; its initial values may read states. `None` if it cannot run (and that has been said).
pub fn build(model: &hir::Model, diagnostics: &mut Diagnostics) -> Option<Model> {
    let (Some(network), Some(run)) = (&model.network, &model.run) else {
        let missing = if model.network.is_none() { "`network`" } else { "`run`" };
        diagnostics.push(
            Diagnostic::without_place(Code::NoNetwork, format!("the model has no {missing} block, so it cannot run"))
                .help("a model that runs has `network main { population cells: Cell[10] }` and `run { ... }`"),
        );
        return None;
    };
    let mut b = Builder {
        model,
        network,
        run,
        diagnostics,
        graph: Graph::default(),
        params: Vec::new(),
        states: Vec::new(),
        network_params: Vec::new(),
        symbols: Vec::new(),
        directions: Vec::new(),
        weight: None,
        own: None,
        amount: None,
        sent: Vec::new(),
        waits: Vec::new(),
        noise_of: None,
        celsius: None,
        failed: false,
        hidden: HashMap::default(),
        resting: HashMap::default(),
        wandering: HashMap::default(),
        free: HashMap::default(),
        homes: Vec::new(),
        extra: Vec::new(),
        places: HashMap::default(),
        data: model.data.clone(),
        kernels: HashMap::default(),
        distance: None,
        distances: HashMap::default(),
    };
    b.network_params();
    b.find_homes();
    b.directions = network.connections.iter().enumerate().flat_map(|(at, c)| b.directions(at, c)).collect();
    for population in 0..network.populations.len() {
        b.declare(population);
    }
    for population in 0..network.populations.len() {
        b.define(population);
        b.clamps(population);
    }
    let mut populations: Vec<Population> = (0..network.populations.len()).map(|p| b.population(p)).collect();
    let cables: Vec<Cable> = b.cables();
    let diffusions = b.diffusions();
    let spikes = run.spikes.iter().map(|&p| b.spiking(p)).collect();
    let connections = (0..b.directions.len()).filter_map(|at| b.connection(at)).collect();
    let projections = b.projections();
    let jumps = b.jumps();
    let modulators = b.modulators();
    let records = run.records.iter().map(|r| b.record(&projections, r)).collect();
    let probes = b.probes();
    let demands = b.demands();
    let arguments = b.arguments();
    let ranges = b.ranges();
    let surrogate = model.train.as_ref().and_then(|train| b.surrogate(train));
    if b.failed {
        return None;
    }
    populations.append(&mut b.extra);
    let mut flat = Model {
        name: model.name.clone(),
        graph: b.graph,
        params: b.params,
        states: b.states,
        populations,
        cables,
        diffusions,
        connections,
        projections,
        jumps,
        modulators,
        waits: b.waits,
        records,
        probes,
        spikes,
        demands,
        arguments,
        ranges,
        data: b.data,
        duration: run.duration,
        dt: run.dt,
        method: run.method,
        names_method: run.names_method,
        tolerances: run.tolerances,
        arrivals: run.arrivals,
        coincident: run.coincident,
        surrogate,
        seed: run.seed,
    };
    // Before initial values take the place of states: at the voltage where a rate is 0/0, nothing else tells what it is a multiple of.
    removable::recognise(&mut flat);
    Some(flat)
}

/// A connection as one side sees it.
#[derive(Clone, Copy)]
struct Direction {
    /// Its number among the connections of the network.
    junctions: usize,
    side: Side,
    /// What flows out of that side.
    current: NodeId,
}

struct Builder<'m> {
    model: &'m hir::Model,
    network: &'m hir::Network,
    run: &'m hir::Run,
    diagnostics: &'m mut Diagnostics,
    graph: Graph,
    params: Vec<Param>,
    states: Vec<State>,
    /// The data files of the file, and what is drawn for kernels.
    data: Vec<DataFile>,
    /// Draws of weights that edges share, and the data that they have become.
    kernels: HashMap<Node, NodeId>,
    /// How far the cells of the edges are from each other that are being built.
    distance: Option<NodeId>,
    /// The same for each projection, and the spacings of its populations.
    distances: HashMap<usize, (NodeId, [NodeId; 2])>,
    /// Nodes of the network's parameters.
    network_params: Vec<NodeId>,
    /// For each population, the nodes of the cell's symbols as they become known.
    symbols: Vec<Vec<Option<NodeId>>>,
    /// The connections of the model in the making.
    directions: Vec<Direction>,
    /// What the events carry whose effect is being built.
    weight: Option<NodeId>,
    /// What the synapse has for itself whose events are being built.
    own: Option<Own<'m>>,
    /// While a modulator changes what synapses remember: which.
    amount: Option<u32>,
    /// For each projection, which of what its synapses send is added to which state.
    sent: Vec<Vec<(StateId, u32)>>,
    /// How long the events of drives take.
    waits: Vec<Wait>,
    celsius: Option<NodeId>,
    /// The symbol whose white noise is being built, and the sources in it so far.
    noise_of: Option<(String, Vec<u32>)>,
    failed: bool,
    /// Draws and files of inputs, which become parameters of the cells.
    hidden: HashMap<(usize, Node), NodeId>,
    /// Where kinetic schemes are at rest, by the population and their first state.
    resting: HashMap<(usize, SymbolId), Vec<NodeId>>,
    /// Ornstein-Uhlenbeck processes, by the population and the stream of their steps.
    wandering: HashMap<(usize, u64), NodeId>,
    /// How clamped states would move if they were not.
    free: HashMap<StateId, NodeId>,
    /// Of each population of the network with sections, where its symbols have values.
    homes: Vec<Option<Homes>>,
    /// The populations behind those of the network: compartments, parts, places.
    extra: Vec<Population>,
    /// The places among them, by the whole and the elements that a cell has in it.
    places: HashMap<(usize, Arc<[u32]>), usize>,
}

impl<'m> Builder<'m> {
    fn cell(&self, population: usize) -> &'m hir::Cell {
        &self.model.cells[self.network.populations[population].cell]
    }

    fn add_param(&mut self, param: Param) -> NodeId {
        self.params.push(param);
        self.graph.add(Node::Param(ParamId(self.params.len() as u32 - 1)))
    }

    fn network_params(&mut self) {
        // In the order of their dependences: a parameter may refer to one that is defined later.
        let placeholder = self.graph.add(Node::Bool(false));
        for p in &self.network.params {
            let node = self.add_param(Param {
                name: p.name.clone(),
                value: placeholder,
                population: None,
                home: None,
                dim: p.ty.dim(),
                unit: p.display_unit(),
                span: p.span,
                docs: p.docs.clone(),
                settable: true,
                set: None,
            });
            self.network_params.push(node);
        }
        for (i, p) in self.network.params.iter().enumerate() {
            if let SymbolKind::Param(value) = &p.kind {
                self.params[i].value = self.expr(None, value);
            }
        }
    }

    /// Makes parameters and states known, so that expressions can name them.
    fn declare(&mut self, population: usize) {
        let name = self.network.populations[population].name.clone();
        let placeholder = self.graph.add(Node::Bool(false));
        let mut nodes = Vec::new();
        for (i, s) in self.cell(population).symbols.iter().enumerate() {
            let full = format!("{name}.{}", s.name);
            let home = self.home(population, SymbolId(i as u32));
            nodes.push(match &s.kind {
                SymbolKind::Param(value) => {
                    let id = SymbolId(i as u32);
                    let taken = hir::said_by_all_lines(&self.network.projections, population, id).is_none();
                    let settable = taken && !self.is_derived(population, id);
                    Some(self.add_param(Param {
                        name: full,
                        value: placeholder,
                        population: None,
                        home: Some(home),
                        dim: s.ty.dim(),
                        unit: s.display_unit(),
                        span: value.span,
                        docs: s.docs.clone(),
                        settable,
                        set: None,
                    }))
                }
                SymbolKind::State { kind, scheme, .. } => {
                    // The states of a scheme follow its first one.
                    let first = scheme.and_then(|first| nodes.get(first.0 as usize).copied().flatten());
                    let first = match first.map(|node| self.graph.node(node)) {
                        Some(Node::State(first)) => Some(first),
                        _ => scheme.map(|_| StateId(self.states.len() as u32)),
                    };
                    self.states.push(State {
                        name: full,
                        population: home,
                        edges: None,
                        init: placeholder,
                        rate: placeholder,
                        dim: s.ty.dim(),
                        unit: s.display_unit(),
                        span: s.span,
                        kind: *kind,
                        currents: Vec::new(),
                        scheme: first,
                        clamp: None,
                        set: None,
                    });
                    Some(self.graph.add(Node::State(StateId(self.states.len() as u32 - 1))))
                }
                SymbolKind::Let(_) | SymbolKind::Port(_) | SymbolKind::Voltage | SymbolKind::Pool => None,
            });
        }
        self.symbols.push(nodes);
    }

    /// Builds named expressions, those first that others name, where chains of them may be long. (Else they are built where they are first needed, which
    /// keeps what is computed near to where it is used.)
    fn name_all(&mut self, population: usize) {
        let cell = self.cell(population);
        if cell.symbols.iter().filter(|s| matches!(s.kind, SymbolKind::Let(_))).count() < LONG_CHAIN {
            return;
        }
        let named = |at: usize| match &cell.symbols[at].kind {
            SymbolKind::Let(value) => {
                let mut read = Vec::new();
                value.visit(&mut |e| {
                    if let ExprKind::Symbol(id) = e.kind {
                        read.push(id.0 as usize);
                    }
                });
                read
            }
            SymbolKind::Param(_)
            | SymbolKind::State { .. }
            | SymbolKind::Port(_)
            | SymbolKind::Voltage
            | SymbolKind::Pool => Vec::new(),
        };
        let mut seen = vec![false; cell.symbols.len()];
        for at in 0..cell.symbols.len() {
            let mut waiting = vec![(at, if seen[at] { Vec::new() } else { named(at) })];
            seen[at] = true;
            while let Some((top, read)) = waiting.last_mut() {
                let next = read.pop();
                match next {
                    Some(next) if !std::mem::replace(&mut seen[next], true) => waiting.push((next, named(next))),
                    Some(_) => {}
                    None => {
                        if matches!(cell.symbols[*top].kind, SymbolKind::Let(_)) {
                            self.symbol(population, SymbolId(*top as u32));
                        }
                        waiting.pop();
                    }
                }
            }
        }
    }

    fn define(&mut self, population: usize) {
        self.name_all(population);
        let cell = self.cell(population);
        for (i, s) in cell.symbols.iter().enumerate() {
            let id = SymbolId(i as u32);
            match &s.kind {
                SymbolKind::Param(value) => {
                    let default = self.expr(Some(population), value);
                    let value = self.settings(population, id, false, default);
                    if let Some(Node::Param(p)) = self.symbols[population][i].map(|n| self.graph.node(n)) {
                        self.params[p.0 as usize].value = value;
                        if let Some(set) = self.setting_of(population, i) {
                            self.params[p.0 as usize].span = set.value.span;
                        }
                    }
                }
                SymbolKind::State { init, rate, kind, .. } => {
                    let span = init.span;
                    let default = match init.kind {
                        ExprKind::SteadyState if matches!(s.kind, SymbolKind::State { scheme: Some(_), .. }) => {
                            self.at_rest(population, id)
                        }
                        ExprKind::SteadyState => {
                            let rate = self.of_symbol(population, id, rate);
                            self.steady_state(population, i, rate, init.span)
                        }
                        _ => {
                            let value = self.of_symbol(population, id, init);
                            self.without_noise(value, s.ty.dim(), &s.name, init.span)
                        }
                    };
                    let init = self.settings(population, id, true, default);
                    let init = self.known_at_first(init, s.ty.dim(), &s.name, span);
                    let currents = match kind {
                        StateKind::Pool => self.currents_in(population, rate),
                        StateKind::Gate | StateKind::Plain => Vec::new(),
                    };
                    let rate = self.of_symbol(population, id, rate);
                    if let Some(Node::State(s)) = self.symbols[population][i].map(|n| self.graph.node(n)) {
                        let state = &mut self.states[s.0 as usize];
                        (state.init, state.rate, state.currents) = (init, rate, currents);
                    }
                }
                SymbolKind::Let(_) | SymbolKind::Port(_) | SymbolKind::Voltage | SymbolKind::Pool => {}
            }
        }
        self.classify();
    }

    /// The named currents that an expression reads, such as those of channels.
    fn currents_in(&mut self, population: usize, root: &Expr) -> Vec<NodeId> {
        let mut read = Vec::new();
        root.visit(&mut |e| {
            if let ExprKind::Symbol(id) = e.kind
                && [Dim::CURRENT, Dim::CURRENT_DENSITY].contains(&e.ty.dim())
                && matches!(self.cell(population).symbols[id.0 as usize].kind, SymbolKind::Let(_))
            {
                read.push(e.clone());
            }
        });
        read.iter().map(|e| self.expr(Some(population), e)).collect()
    }

    /// The value after the network's settings; later ones win.
    fn settings(&mut self, population: usize, symbol: SymbolId, init: bool, default: NodeId) -> NodeId {
        let mut value = default;
        let network = self.network;
        for s in &network.settings {
            if s.population == population && s.symbol == symbol && s.init == init {
                let new = self.expr(Some(population), &s.value);
                if self.home(population, symbol) != population {
                    value = self.of_whole_cells(population, symbol, s, new, value);
                    continue;
                }
                value = self.for_cells(&s.cells, new, value);
            }
        }
        value
    }

    /// The same for a quantity of compartments, which a cell has one value of: what differs from cell to cell becomes parameters of the cells.
    fn of_whole_cells(
        &mut self,
        population: usize,
        symbol: SymbolId,
        s: &hir::Setting,
        inside: NodeId,
        outside: NodeId,
    ) -> NodeId {
        let name = format!("{}.{}", self.population_name(population), self.cell(population).symbol(symbol).name);
        let inside = self.of_cells(population, inside, &name, s.value.ty.dim(), s.span);
        let Some(cells) = &s.cells else { return inside };
        let is_chosen = self.is_of_one_of(population, cells, &name, s.span);
        self.graph.select(is_chosen, inside, outside)
    }

    /// Does an element belong to one of some cells? A parameter of the cells tells.
    pub(super) fn is_of_one_of(&mut self, population: usize, cells: &(Expr, Expr), name: &str, span: Span) -> NodeId {
        let selected = self.is_one_of(cells);
        let [yes, no] = [1.0, 0.0].map(|x| self.graph.number(x, Dim::ONE));
        let chosen = self.graph.select(selected, yes, no);
        let chosen = self.of_cells(population, chosen, name, Dim::ONE, span);
        self.graph.binary(BinaryOp::Gt, chosen, no)
    }

    /// What differs from cell to cell as a parameter of the cells; `name` is that of what it is for.
    pub(super) fn of_cells(&mut self, population: usize, value: NodeId, name: &str, dim: Dim, span: Span) -> NodeId {
        let differs = |n: NodeId| matches!(self.graph.node(n), Node::Index | Node::Draw(..) | Node::Data(_));
        if !self.graph.reachable([value]).into_iter().any(differs) {
            return value;
        }
        self.add_param(Param {
            name: format!("{name}'cells{}", self.params.len()),
            value,
            population: Some(population),
            home: Some(population),
            dim,
            unit: dim.display_unit(),
            span,
            docs: Vec::new(),
            settable: false,
            set: None,
        })
    }

    /// `inside` for the selected cells, else `outside`.
    fn for_cells(&mut self, cells: &Option<(Expr, Expr)>, inside: NodeId, outside: NodeId) -> NodeId {
        let Some(cells) = cells else { return inside };
        let selected = self.is_one_of(cells);
        self.graph.select(selected, inside, outside)
    }

    /// Is a cell one of those from a first one up to another?
    pub(super) fn is_one_of(&mut self, (first, end): &(Expr, Expr)) -> NodeId {
        let (first, end) = (self.expr(None, first), self.expr(None, end));
        let index = self.graph.add(Node::Index);
        let from = self.graph.binary(BinaryOp::Ge, index, first);
        let to = self.graph.binary(BinaryOp::Lt, index, end);
        self.graph.binary(BinaryOp::And, from, to)
    }

    fn classify(&mut self) {
        classify(&self.graph, &mut self.params);
    }

    fn population(&mut self, population: usize) -> Population {
        let network = self.network;
        let p = &network.populations[population];
        let sizes = p.sizes.iter().map(|s| self.expr(None, s)).collect();
        let rule = self.cell(population).spike.as_ref();
        let spike = rule.map(|s| self.spike(population, s));
        let spike = match (rule.and_then(|s| s.at), spike) {
            (Some(element), Some(spike)) => {
                self.spikes_at(population, element, spike);
                None
            }
            (_, spike) => spike,
        };
        Population { name: p.name.clone(), kind: Kind::Cells, sizes, spike, span: p.span }
    }

    fn spike(&mut self, population: usize, s: &hir::Spike) -> Spike {
        let at = Some(population);
        let condition = match &s.condition {
            hir::SpikeCondition::Crosses(a, b) => Condition::Crosses(self.expr(at, a), self.expr(at, b)),
            hir::SpikeCondition::When(e) => Condition::When(self.expr(at, e)),
        };
        let named = match &s.holds {
            None => condition.reads(),
            Some(names) => names.iter().map(|id| self.symbol(population, *id)).collect(),
        };
        let held = self.graph.states_read(named);
        let resets = s
            .resets
            .iter()
            .filter_map(|(id, e)| {
                let value = self.expr(at, e);
                match self.symbols[population][id.0 as usize].map(|n| self.graph.node(n)) {
                    Some(Node::State(state)) => Some((state, value)),
                    _ => None,
                }
            })
            .collect();
        let refractory = s.refractory.as_ref().map(|e| self.expr(at, e));
        Spike { condition, resets, refractory, held, span: s.span }
    }

    /// The directions in which a connection's current is summed: one if both sides are the same and feel the same, two otherwise.
    fn directions(&mut self, junctions: usize, c: &hir::Connection) -> Vec<Direction> {
        let current = self.expr(None, &c.current);
        let [left, right] = c.ends;
        if left == right && self.graph.parity(current) == Some(Parity::Odd) {
            return vec![Direction { junctions, side: Side::Both, current }];
        }
        // Here is the right side, so that what the junction calls dv is there minus here.
        let dv = self.graph.add(Node::Dv);
        let turned = self.graph.unary(UnaryOp::Neg, dv);
        let opposite =
            self.graph.replace(current, &|node| (node == Node::Dv).then_some(turned), &mut HashMap::default());
        let inward = self.graph.unary(UnaryOp::Neg, opposite);
        [(Side::Left, current), (Side::Right, inward)]
            .map(|(side, current)| Direction { junctions, side, current })
            .into()
    }

    /// The end that a direction's current flows out of.
    fn end_of(&self, direction: Direction) -> End {
        self.network.connections[direction.junctions].ends[usize::from(direction.side == Side::Right)]
    }

    /// Do junctions carry a current, or its density?
    fn junction_is_a_current(&self, direction: Direction) -> bool {
        self.network.connections[direction.junctions].current.ty == Ty::Real(Dim::CURRENT)
    }

    fn connection(&mut self, direction: usize) -> Option<Connection> {
        let Direction { junctions, side, current } = self.directions[direction];
        let c = &self.network.connections[junctions];
        let [left, right] = c.ends.map(|end| self.terminal(end));
        if left.is_none() || right.is_none() {
            let message = format!("`{}` does not join voltages", c.name);
            self.diagnostics.push(Diagnostic::new(Code::Internal, c.span, message, "here"));
            self.failed = true;
        }
        let (here, there, name) = match side {
            Side::Both => (left?, right?, c.name.clone()),
            Side::Left => (left?, right?, format!("{}.left", c.name)),
            Side::Right => (right?, left?, format!("{}.right", c.name)),
        };
        let Ty::Real(dim) = c.current.ty else { panic!("the checked model has real currents") };
        let rule = self.rule(&c.rule);
        let (junctions, stream) = (c.name.clone(), c.stream.clone());
        Some(Connection { name, here, there, current, dim, side, junctions, stream, rule, span: c.span })
    }

    /// What is demanded of the symbols of cells, of the network's parameters, and of arguments in the network.
    fn demands(&mut self) -> Vec<Demand<NodeId>> {
        let network = self.network;
        let mut demands = Vec::new();
        for (i, p) in network.params.iter().enumerate() {
            if let Some(d) = hir::demand(&network.params, p) {
                demands.push(d.with(p.name.clone(), self.network_params[i]));
            }
        }
        for (population, p) in network.populations.iter().enumerate() {
            let cell = self.cell(population);
            for (i, symbol) in cell.symbols.iter().enumerate() {
                if self.is_partial(population, SymbolId(i as u32)) {
                    continue;
                }
                let Some(d) = hir::demand(&cell.symbols, symbol) else { continue };
                if self.is_derived(population, SymbolId(i as u32)) {
                    self.demands_of_regions(population, SymbolId(i as u32), &d, &mut demands);
                    continue;
                }
                let set = self.setting_of(population, i);
                if set.is_none() && d.code == Code::GateRange && matches!(d.value.kind, ExprKind::Symbol(_)) {
                    // A gate without an initial value of its own starts at `inf`.
                    continue;
                }
                let span = set.map_or(d.span, |s| s.value.span);
                let value = self.symbol(population, SymbolId(i as u32));
                let d = d.with(format!("{}.{}", p.name, symbol.name), value);
                let home = self.home(population, SymbolId(i as u32));
                demands.push(Demand { whose: Whose::Cells(home), span, ..d });
            }
            demands.extend(self.wholes(population));
            if let Some(spike) = &cell.spike {
                const FINITE: &str = "a finite number is needed";
                let mut of_spike = |what: String, e: &Expr, domain, why| {
                    let (value, unit) = (self.expr(Some(population), e), e.ty.dim().display_unit());
                    // Of a state it is told elsewhere that it is no finite number.
                    let is_state = |n: NodeId| matches!(self.graph.node(n), Node::State(_));
                    if domain == Domain::Finite && self.graph.reachable([value]).into_iter().any(is_state) {
                        return;
                    }
                    let (code, whose, span) = (Code::OutOfDomain, Whose::Cells(population), e.span);
                    demands.push(Demand { what, value, domain, why, code, unit, whose, span });
                };
                for rate in rates(spike) {
                    let what = format!("rate` of `poisson` in `{}", p.name);
                    of_spike(what.clone(), rate, Domain::Finite, FINITE);
                    of_spike(what, rate, Domain::NotNegative, "a rate is not negative");
                }
                for compared in compared(spike) {
                    of_spike(format!("threshold` of `{}", p.name), compared, Domain::Finite, FINITE);
                }
                if let Some(refractory) = &spike.refractory {
                    let what = format!("{}.refractory", p.name);
                    of_spike(what.clone(), refractory, Domain::Finite, FINITE);
                    of_spike(what, refractory, Domain::NotNegative, "a refractory time is not negative");
                }
            }
        }
        for d in &network.demands {
            self.distance = match d.whose {
                Whose::Edges(projection) => self.distances.get(&projection).map(|known| known.0),
                Whose::Network | Whose::Cells(_) => None,
            };
            let value = self.expr(None, &d.value);
            self.distance = None;
            let value = self.of_the_kernel(value);
            demands.push(d.with(d.what.clone(), value));
        }
        if let Some(celsius) = self.celsius
            && let Node::Param(p) = self.graph.node(celsius)
            && let Some((domain, code, why)) = hir::demand_of_param("celsius", Dim::TEMPERATURE)
        {
            let (what, unit, span) =
                ("celsius".into(), Dim::TEMPERATURE.display_unit(), self.params[p.0 as usize].span);
            demands.push(Demand { what, value: celsius, domain, why, code, unit, whose: Whose::Network, span });
        }
        demands
    }

    /// What the network sets a symbol to, last.
    fn setting_of(&self, population: usize, symbol: usize) -> Option<&'m hir::Setting> {
        let of_symbol = |s: &&hir::Setting| s.population == population && s.symbol.0 as usize == symbol;
        self.network.settings.iter().rfind(of_symbol)
    }

    /// The arguments of stimuli that differ from cell to cell. (What is one number is a parameter.)
    fn arguments(&mut self) -> Vec<Argument> {
        let network = self.network;
        let inputs = network.inputs.iter().map(|i| (&i.name, i.population, &i.cells, &i.value));
        let clamps = network.clamps.iter().map(|c| (&c.name, c.population, &c.cells, &c.value));
        let mut arguments: Vec<Argument> = Vec::new();
        for (stimulus, population, cells, value) in inputs.chain(clamps) {
            // What reaches a place of a cell with sections is not told.
            if self.cell(population).morphology.is_some() {
                continue;
            }
            let ExprKind::Call(function, values) = &value.kind else { continue };
            let named = hir::stimulus_params(*function).iter().zip(values);
            for (param, value) in named.filter(|(_, value)| !matches!(value.kind, ExprKind::NetworkParam(_))) {
                let name = format!("{}.{stimulus}.{param}", self.population_name(population));
                let mut differs = false;
                value.visit(&mut |e| {
                    differs |= matches!(e.kind, ExprKind::Index | ExprKind::Draw(..) | ExprKind::File(_));
                });
                if !differs || arguments.iter().any(|a| a.name == name) {
                    continue;
                }
                let dim = value.ty.dim();
                let (value, none) = (self.expr(Some(population), value), self.graph.number(f64::NAN, dim));
                let value = self.for_cells(cells, value, none);
                arguments.push(Argument { name, population, value, unit: dim.display_unit() });
            }
        }
        arguments
    }

    /// The cells that lines of the network and of the run name.
    fn ranges(&mut self) -> Vec<CellRange> {
        let network = self.network;
        let settings = network.settings.iter().map(|s| (s.population, &s.cells, s.span));
        let inputs = network.inputs.iter().map(|i| (i.population, &i.cells, i.span));
        let clamps = network.clamps.iter().map(|c| (c.population, &c.cells, c.span));
        let drives = network.drives.iter().map(|d| (d.population, &d.cells, d.span));
        let arounds = self.run.records.iter().filter_map(|r| r.sampling.around.as_ref());
        let arounds = arounds.map(|around| (around.population, &around.cells, around.span));
        let records = self.run.records.iter().map(|r| (r.population, &r.cells, r.span));
        let of_network = settings.chain(inputs).chain(clamps).chain(drives);
        let named: Vec<_> = of_network.chain(records).chain(arounds).collect();
        let range = |(population, cells, span): (usize, &Option<(Expr, Expr)>, Span)| {
            let (first, end) = cells.as_ref()?;
            let (first, end) = (self.expr(None, first), self.expr(None, end));
            Some(CellRange { population, first, end, span })
        };
        named.into_iter().filter_map(range).collect()
    }

    fn record(&mut self, projections: &[Projection], r: &hir::Record) -> Record {
        let symbol = match r.quantity {
            Quantity::OfCells(symbol) | Quantity::Junctions(symbol) => symbol,
            Quantity::Potential(probe) => return self.record_potential(r, probe),
            Quantity::Weight(p) => return self.record_edges(projections, r, p, "weight"),
            Quantity::Given(p, number) => {
                let given = &self.network.projections[p].given[number as usize].name;
                return self.record_edges(projections, r, p, given);
            }
            Quantity::Own(p, number) => {
                let projection = &self.network.projections[p];
                let receptor = &self.network.populations[projection.to].receptors[projection.receptor];
                let own = receptor.plastic.as_ref().map_or("", |plastic| &plastic.own[number as usize].name);
                return self.record_edges(projections, r, p, own);
            }
        };
        let id = symbol;
        let electrode = self.cell(r.population).symbol(symbol).kind == SymbolKind::Port(PortKind::Electrode);
        let junctions_at = r.at.as_ref().filter(|_| matches!(r.quantity, Quantity::Junctions(_)));
        let value = match (r.quantity, &r.at) {
            (Quantity::Junctions(port), at) => {
                let outward = match at {
                    Some(at) => self.through_junctions_at(r.population, at.elements[0] as usize),
                    None => self.through_junctions(r.population, port),
                };
                let add = |sum: NodeId, out: NodeId| self.graph.binary(BinaryOp::Add, sum, out);
                outward.into_iter().reduce(add).unwrap_or_else(|| panic!("the checked model has junctions there"))
            }
            (_, Some(at)) if electrode => self.through_electrodes(r.population, at.elements[0] as usize),
            _ => self.symbol(r.population, symbol),
        };
        let symbol = self.cell(r.population).symbol(symbol);
        let cells = r.cells.as_ref().map(|(a, b)| (self.expr(None, a), self.expr(None, b)));
        // That of a clamp is hidden behind brackets.
        let quantity = match (r.quantity, symbol.name.rsplit_once('.')) {
            (Quantity::Junctions(_), Some((compartment, _))) => format!("{compartment}.i_gap"),
            (Quantity::Junctions(_), None) => "i_gap".to_string(),
            _ => symbol.name.replace(['<', '>'], ""),
        };
        let cells_name = &self.network.populations[r.population].name;
        let (name, population) = match &r.at {
            None => (format!("{cells_name}.{quantity}"), r.population),
            Some(at) => {
                let quantity = match junctions_at {
                    Some(_) => quantity,
                    None => self.quantity_name(r.population, id).replace(['<', '>'], ""),
                };
                (format!("{cells_name}.{}.{quantity}", at.text), self.places_of(r.population, id, at))
            }
        };
        Record {
            name,
            population,
            edges: None,
            cells,
            value,
            probe: None,
            of_place: electrode || junctions_at.is_some(),
            of_compartments: r.at.as_ref().is_some_and(|at| at.each),
            every: r.sampling.every,
            window: r.sampling.window,
            around: self.around(r),
            unit: if junctions_at.is_some() { Dim::CURRENT.display_unit() } else { symbol.display_unit() },
            span: r.span,
        }
    }

    /// What a probe hears.
    fn record_potential(&mut self, r: &hir::Record, probe: usize) -> Record {
        Record {
            name: format!("{}.potential", self.network.probes[probe].name),
            population: r.population,
            edges: None,
            cells: None,
            value: self.graph.number(0.0, Dim::VOLTAGE),
            probe: Some(probe),
            of_place: false,
            of_compartments: false,
            every: r.sampling.every,
            window: r.sampling.window,
            around: self.around(r),
            unit: DisplayUnit { name: "uV".into(), exponent: -3 },
            span: r.span,
        }
    }

    /// The spikes around which something is recorded.
    fn around(&mut self, r: &hir::Record) -> Option<Around> {
        let around = r.sampling.around.as_ref()?;
        let cells = around.cells.as_ref().map(|(a, b)| (self.expr(None, a), self.expr(None, b)));
        Some(Around { population: self.spiking(around.population), cells, window: around.window })
    }

    /// The node of a cell's symbol.
    fn symbol(&mut self, population: usize, id: SymbolId) -> NodeId {
        if let Some(known) = self.symbols[population][id.0 as usize] {
            return known;
        }
        let symbol = self.cell(population).symbol(id);
        let node = match &symbol.kind {
            SymbolKind::Let(value) => self.of_symbol(population, id, value),
            SymbolKind::Port(kind) => self.port(population, id, *kind, symbol.ty.dim()),
            // Known since `declare`, or never part of a cell.
            SymbolKind::Param(_) | SymbolKind::State { .. } | SymbolKind::Voltage | SymbolKind::Pool => {
                self.graph.number(f64::NAN, symbol.ty.dim())
            }
        };
        self.symbols[population][id.0 as usize] = Some(node);
        node
    }

    /// The value or the derivative of a symbol, which the white noise in it is named after.
    pub(super) fn of_symbol(&mut self, population: usize, id: SymbolId, value: &Expr) -> NodeId {
        let name = format!("{}.{}", self.population_name(population), self.cell(population).symbol(id).name);
        let outer = self.noise_of.replace((name, Vec::new()));
        let node = self.expr(Some(population), value);
        self.noise_of = outer;
        node
    }

    /// A value at one time, unless white noise is in it, which has none.
    fn without_noise(&mut self, value: NodeId, dim: Dim, name: &str, span: Span) -> NodeId {
        let is_noise = |id: NodeId| matches!(self.graph.node(id), Node::White(_));
        if !self.graph.reachable([value]).into_iter().any(is_noise) {
            return value;
        }
        let message = format!("the initial value of `{name}` has white noise in it, which has no value at one time");
        let d = Diagnostic::new(Code::BadNoise, span, message, "it reads `xi()`");
        self.diagnostics.push(
            d.help("values that differ from cell to cell are drawn in the network: `init cells.v ~ normal(mean, sd)`"),
        );
        self.graph.number(f64::NAN, dim)
    }

    /// An initial value, unless it reads what is known from the first step on.
    fn known_at_first(&mut self, value: NodeId, dim: Dim, name: &str, span: Span) -> NodeId {
        let reached = self.graph.reachable([value]);
        let Some(what) = reached.into_iter().find_map(|id| known_later(self.graph.node(id))) else { return value };
        let message = format!("the initial value of `{name}` reads {what}");
        let d = Diagnostic::new(Code::BadValue, span, message, "this is known from the first step on");
        self.diagnostics.push(d.help("give it a number, or what is known before the run"));
        self.failed = true;
        self.graph.number(f64::NAN, dim)
    }

    /// White noise. Its random numbers depend on the symbol in which it stands, and on how many stand there before it: what is added
    /// elsewhere does not change them, and each population and each channel of a cell has its own.
    fn white(&mut self, population: Option<usize>, number: u32) -> NodeId {
        let name = population.map(|p| self.population_name(p).to_string()).unwrap_or_default();
        let (name, before) = self.noise_of.get_or_insert((name, Vec::new()));
        let at = before.iter().position(|&other| other == number).unwrap_or_else(|| {
            before.push(number);
            before.len() - 1
        });
        let hash = blake3::hash(format!("xi {at} of {name}").as_bytes());
        let mut bytes = [0; 4];
        bytes.copy_from_slice(&hash.as_bytes()[..4]);
        self.graph.add(Node::White(u64::from(u32::from_le_bytes(bytes))))
    }

    /// The sum of the inputs to a port.
    fn port(&mut self, population: usize, id: SymbolId, kind: PortKind, dim: Dim) -> NodeId {
        if let PortKind::Clamp { v, cm, port } = kind {
            let held = self.current_of_clamp(population, v, cm);
            let electrodes = |i: &hir::Input| i.electrode && i.population == population && i.port == port;
            return match self.injected(population, dim, electrodes) {
                Some(through) => self.graph.binary(BinaryOp::Add, held, through),
                None => held,
            };
        }
        let zero = self.graph.number(0.0, dim);
        if kind == PortKind::Summed {
            return self.summed(population, id).unwrap_or(zero);
        }
        let mut sum = self.injected(population, dim, |i| i.population == population && i.port == id);
        // What flows out through junctions is not injected.
        for out in self.through_junctions(population, id) {
            sum = Some(self.taken(sum, out));
        }
        sum = self.receptor_currents(population, id, sum);
        match (sum, kind) {
            (None, _) => zero,
            (Some(sum), PortKind::Outward) => self.graph.unary(UnaryOp::Neg, sum),
            (
                Some(sum),
                PortKind::Injected
                | PortKind::Declared
                | PortKind::Clamp { .. }
                | PortKind::Electrode
                | PortKind::Summed,
            ) => sum,
        }
    }

    /// What flows out at a port through junctions, connection by connection.
    fn through_junctions(&mut self, population: usize, port: SymbolId) -> Vec<NodeId> {
        let mut all = Vec::new();
        for (at, direction) in self.directions.clone().into_iter().enumerate() {
            let end = self.end_of(direction);
            if end.population == population && end.port == port {
                let mut out = self.graph.add(Node::Junction(at as u32, 0));
                if let (true, Some(area)) = (self.junction_is_a_current(direction), end.area) {
                    let area = self.symbol(population, area);
                    out = self.graph.binary(BinaryOp::Div, out, area);
                }
                all.push(out);
            }
        }
        all
    }

    /// The sum of some inputs of a population.
    fn injected(&mut self, population: usize, dim: Dim, which: impl Fn(&hir::Input) -> bool) -> Option<NodeId> {
        let network = self.network;
        let zero = self.graph.number(0.0, dim);
        let mut sum = None;
        for input in network.inputs.iter().filter(|i| which(i)) {
            let mut value = self.expr(Some(population), &input.value);
            value = self.hide_draws(population, value, &input.name, input.span);
            if let Some(area) = input.area {
                let area = self.symbol(population, area);
                value = self.graph.binary(BinaryOp::Div, value, area);
            }
            value = self.for_cells(&input.cells, value, zero);
            sum = Some(match sum {
                None => value,
                Some(sum) => self.graph.binary(BinaryOp::Add, sum, value),
            });
        }
        sum
    }

    /// What flows in, without what flows out.
    fn taken(&mut self, sum: Option<NodeId>, out: NodeId) -> NodeId {
        match sum {
            None => self.graph.unary(UnaryOp::Neg, out),
            Some(sum) => self.graph.binary(BinaryOp::Sub, sum, out),
        }
    }

    /// Draws and files in an input are the same at all times: they become parameters of the cells.
    fn hide_draws(&mut self, population: usize, value: NodeId, input: &str, span: Span) -> NodeId {
        let mut replaced = HashMap::default();
        for id in self.graph.reachable([value]) {
            let node = self.graph.node(id);
            if let Node::Draw(..) | Node::Data(_) = node {
                let known = self.hidden.get(&(population, node)).copied();
                let param = known.unwrap_or_else(|| {
                    let name = self.population_name(population).to_string();
                    let count = self.hidden.len() + 1;
                    let param = self.add_param(Param {
                        name: format!("{name}.{input}.draw{count}"),
                        value: id,
                        population: Some(population),
                        home: Some(population),
                        dim: Dim::ONE,
                        unit: Dim::ONE.display_unit(),
                        span,
                        docs: Vec::new(),
                        settable: false,
                        set: None,
                    });
                    self.hidden.insert((population, node), param);
                    param
                });
                replaced.insert(node, param);
            }
        }
        self.graph.replace(value, &|node| replaced.get(&node).copied(), &mut HashMap::default())
    }

    fn celsius(&mut self, span: Span) -> NodeId {
        if let Some(known) = self.celsius {
            return known;
        }
        let value = match self.run.celsius {
            Some(kelvin) => self.graph.number(kelvin, Dim::TEMPERATURE),
            None => {
                self.diagnostics.push(
                    Diagnostic::new(
                        Code::MissingKey,
                        self.run.span,
                        "the model depends on temperature, but the run does not say which",
                        "`celsius` is missing",
                    )
                    .see(span, "temperature is used here")
                    .help("add `celsius = 6.3 degC`"),
                );
                self.failed = true;
                self.graph.number(f64::NAN, Dim::TEMPERATURE)
            }
        };
        let node = self.add_param(Param {
            name: "celsius".into(),
            value,
            population: None,
            home: None,
            dim: Dim::TEMPERATURE,
            unit: DisplayUnit { name: "K".into(), exponent: 0 },
            span,
            docs: vec!["Temperature of the run.".into()],
            settable: true,
            set: None,
        });
        self.celsius = Some(node);
        node
    }

    /// What stands for the derivative of a spike, if it is written as an expression.
    fn surrogate(&mut self, train: &hir::Train) -> Option<NodeId> {
        let hir::Slope::Written(slope) = &train.surrogate else { return None };
        Some(self.expr(None, slope))
    }

    fn expr(&mut self, population: Option<usize>, e: &Expr) -> NodeId {
        let dim = e.ty.dim();
        match &e.kind {
            ExprKind::Number(x) => self.graph.number(*x, dim),
            ExprKind::Bool(b) => self.graph.add(Node::Bool(*b)),
            ExprKind::Symbol(id) => match population {
                Some(p) => self.symbol(p, *id),
                None => self.graph.number(f64::NAN, dim),
            },
            ExprKind::NetworkParam(id) => self.network_params[id.0 as usize],
            ExprKind::Time => self.graph.add(Node::Time),
            ExprKind::StepLength => self.graph.add(Node::StepLength),
            ExprKind::Xi(number) => self.white(population, *number),
            // An initial value as a whole, never a part of one.
            ExprKind::SteadyState => self.graph.number(f64::NAN, dim),
            ExprKind::Celsius => self.celsius(e.span),
            ExprKind::Index => self.graph.add(Node::Index),
            // Outside of edges nothing reads it.
            ExprKind::Distance => self.distance.unwrap_or_else(|| self.graph.number(f64::NAN, dim)),
            ExprKind::Dv => self.graph.add(Node::Dv),
            ExprKind::Beyond => self.graph.add(Node::Beyond),
            ExprKind::Measure(measure) => self.graph.add(Node::Measure(*measure)),
            ExprKind::Outward => {
                let cable = population.and_then(|p| Some(self.homes[p].as_ref()?.cable));
                match cable {
                    Some(cable) => self.graph.add(Node::Outward(cable)),
                    None => self.graph.number(f64::NAN, dim),
                }
            }
            // Outside of events nothing reads it.
            ExprKind::Weight => self.weight.unwrap_or_else(|| self.graph.number(f64::NAN, dim)),
            ExprKind::Amount => match self.amount {
                Some(modulator) => self.graph.add(Node::Amount(modulator)),
                None => self.graph.number(f64::NAN, dim),
            },
            ExprKind::OfEdge(number) => self.own_value(population, *number, dim),
            ExprKind::Unary(op, a) => {
                let a = self.expr(population, a);
                let op = match op {
                    ast::UnaryOp::Neg => UnaryOp::Neg,
                    ast::UnaryOp::Not => UnaryOp::Not,
                };
                self.graph.unary(op, a)
            }
            ExprKind::Binary(op, a, b) => {
                let (a, b) = (self.expr(population, a), self.expr(population, b));
                self.graph.binary(binary_op(*op), a, b)
            }
            ExprKind::If(c, a, b) => {
                let (c, a, b) = (self.expr(population, c), self.expr(population, a), self.expr(population, b));
                match e.ty {
                    Ty::Real(_) => self.graph.select(c, a, b),
                    // What is selected are numbers.
                    Ty::Bool => {
                        let then = self.graph.binary(BinaryOp::And, c, a);
                        let not = self.graph.unary(UnaryOp::Not, c);
                        let otherwise = self.graph.binary(BinaryOp::And, not, b);
                        self.graph.binary(BinaryOp::Or, then, otherwise)
                    }
                }
            }
            ExprKind::Call(builtin, args) => {
                let dims: Vec<Dim> = args.iter().map(|a| a.ty.dim()).collect();
                let args: Vec<NodeId> = args.iter().map(|a| self.expr(population, a)).collect();
                self.call(*builtin, &args, &dims)
            }
            ExprKind::Draw(d, stream) => self.graph.add(Node::Draw(*d, *stream)),
            ExprKind::File(d) => self.graph.add(Node::Data(d.0)),
            ExprKind::Series(d) => {
                let time = self.graph.add(Node::Time);
                self.graph.add(Node::Series(d.0, time))
            }
            ExprKind::Chance(number, rate) => {
                let rate = self.expr(population, rate);
                self.by_chance(population, *number, rate)
            }
            ExprKind::Noise(stream, every) => {
                let every = self.expr(population, every);
                self.graph.add(Node::Noise(*stream, every))
            }
            ExprKind::Wanders(streams, tau) => match population {
                Some(population) => self.wanders(population, *streams, tau, e.span),
                None => self.graph.number(f64::NAN, dim),
            },
        }
    }
}

/// What a spike rule compares with.
fn compared(spike: &hir::Spike) -> Vec<&Expr> {
    fn walk<'e>(e: &'e Expr, found: &mut Vec<&'e Expr>) {
        match &e.kind {
            ExprKind::Binary(ast::BinaryOp::Lt | ast::BinaryOp::Le | ast::BinaryOp::Gt | ast::BinaryOp::Ge, a, b) => {
                found.extend([&**a, &**b])
            }
            ExprKind::Unary(_, a) => walk(a, found),
            ExprKind::Binary(_, a, b) => [a, b].into_iter().for_each(|e| walk(e, found)),
            ExprKind::If(c, a, b) => [c, a, b].into_iter().for_each(|e| walk(e, found)),
            _ => {}
        }
    }
    match &spike.condition {
        hir::SpikeCondition::Crosses(a, level) => vec![a, level],
        hir::SpikeCondition::When(condition) => {
            let mut found = Vec::new();
            walk(condition, &mut found);
            found
        }
    }
}

/// The rates of spikes that come by chance.
fn rates(spike: &hir::Spike) -> Vec<&Expr> {
    fn walk<'e>(e: &'e Expr, found: &mut Vec<&'e Expr>) {
        match &e.kind {
            ExprKind::Chance(_, rate) => found.push(rate),
            ExprKind::Unary(_, a) => walk(a, found),
            ExprKind::Binary(_, a, b) => [a, b].into_iter().for_each(|e| walk(e, found)),
            ExprKind::If(c, a, b) => [c, a, b].into_iter().for_each(|e| walk(e, found)),
            _ => {}
        }
    }
    let mut found = Vec::new();
    if let hir::SpikeCondition::When(condition) = &spike.condition {
        walk(condition, &mut found);
    }
    found
}

fn binary_op(op: ast::BinaryOp) -> BinaryOp {
    match op {
        ast::BinaryOp::Add => BinaryOp::Add,
        ast::BinaryOp::Sub => BinaryOp::Sub,
        ast::BinaryOp::Mul => BinaryOp::Mul,
        ast::BinaryOp::Div => BinaryOp::Div,
        ast::BinaryOp::Pow => BinaryOp::Pow,
        ast::BinaryOp::Lt => BinaryOp::Lt,
        ast::BinaryOp::Le => BinaryOp::Le,
        ast::BinaryOp::Gt => BinaryOp::Gt,
        ast::BinaryOp::Ge => BinaryOp::Ge,
        ast::BinaryOp::Eq => BinaryOp::Eq,
        ast::BinaryOp::Ne => BinaryOp::Ne,
        ast::BinaryOp::And => BinaryOp::And,
        ast::BinaryOp::Or => BinaryOp::Or,
    }
}

/// Decides which parameters differ from cell to cell: those whose value reads the cell's index, draws, files, or another
/// parameter that differs.
pub(super) fn classify(graph: &Graph, params: &mut [Param]) {
    loop {
        let mut changed = false;
        for i in 0..params.len() {
            if params[i].population.is_some() {
                continue;
            }
            let varies = graph.reachable([params[i].value]).into_iter().any(|n| match graph.node(n) {
                Node::Index | Node::Draw(..) | Node::Data(_) | Node::Measure(_) => true,
                Node::Param(p) => params[p.0 as usize].population.is_some(),
                _ => false,
            });
            if varies {
                // What is of no population, such as a parameter of the network, does not vary.
                params[i].population = params[i].home;
                changed |= params[i].population.is_some();
            }
        }
        if !changed {
            return;
        }
    }
}

/// What a node stands for, if that is known from the first step of a run on only.
fn known_later(node: Node) -> Option<&'static str> {
    match node {
        Node::Noise(..) => Some("noise"),
        Node::Series(..) => Some("a series"),
        Node::Events(..) => Some("events"),
        Node::Junction(..) => Some("the current of junctions"),
        Node::Arrived(..) => Some("what arrives from other cells"),
        Node::Amount(_) => Some("a modulator"),
        _ => None,
    }
}
