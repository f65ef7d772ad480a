//! Synapses that remember: the states of their edges, and what events make of them.
//!
//! In come projections onto receptors with states of their own for every synapse; out go these states, what a spike brings the target, and what
//! becomes of the states when a cell on either side spikes.
//! Never true here: an assignment reads what a later one makes.

use super::Builder;
use crate::diag::{Code, Diagnostic};
use crate::hir::{self, Action, ActionOn, Coincident, ExprKind, GivenOf, StateKind, Symbol, SymbolId, SymbolKind};
use crate::ode::{Node, NodeId, Plasticity, Projection, Record, State, StateId};
use crate::operators::{BinaryOp, UnaryOp};
use crate::source::Span;
use crate::syntax::ast::AssignOp;
use crate::units::{Dim, DisplayUnit};
use rustc_hash::FxHashMap as HashMap;

/// What a synapse has for itself.
pub(super) struct Own<'m> {
    symbols: &'m [Symbol],
    /// The values of states, and of what has been computed of them since one of them changed.
    values: Vec<Option<NodeId>>,
}

impl<'m> Builder<'m> {
    /// The value of something that a synapse has for itself.
    pub(super) fn own_value(&mut self, population: Option<usize>, number: u32, dim: Dim) -> NodeId {
        let at = number as usize;
        let known = self.own.as_ref().map(|own| (own.symbols, own.values[at]));
        let value = match known {
            Some((_, Some(value))) => return value,
            Some((symbols, None)) => match &symbols[at].kind {
                SymbolKind::Let(value) => self.expr(population, value),
                // States have values; nothing else belongs to an edge.
                SymbolKind::State { .. }
                | SymbolKind::Param(_)
                | SymbolKind::Port(_)
                | SymbolKind::Voltage
                | SymbolKind::Pool => self.graph.number(f64::NAN, dim),
            },
            // Outside of events nothing reads it.
            None => self.graph.number(f64::NAN, dim),
        };
        if let Some(own) = &mut self.own {
            own.values[at] = Some(value);
        }
        value
    }

    /// What the synapses of a projection remember, with the values that its line has given them.
    pub(super) fn plasticity(
        &mut self,
        at: usize,
        p: &'m hir::Projection,
        weight: NodeId,
        given: Vec<NodeId>,
    ) -> Option<Plasticity> {
        let network = self.network;
        self.sent.push(Vec::new());
        if p.modulates {
            return None;
        }
        let receptor = &network.populations[p.to].receptors[p.receptor];
        let plastic = receptor.plastic.as_ref()?;
        let modulator = self.modulated().iter().position(|at| *at == (p.to, p.receptor)).map(|at| at as u32);
        let (population, to) = (Some(p.to), self.receiving(p.to, p.receptor));
        let first = self.states.len();
        // Where nothing changes it, and it is the same for all, it needs no place.
        let keeps_weight = plastic.changes_weight() || self.graph.differs(weight);
        let mut declare =
            |name: &str, dim, unit, span| self.of_edges((at, to), format!("{}.{name}", p.name), dim, unit, span);
        let own_states = |s: &Symbol| {
            matches!(s.kind, SymbolKind::State { .. }).then(|| declare(&s.name, s.ty.dim(), s.display_unit(), s.span).1)
        };
        let values: Vec<Option<NodeId>> = plastic.own.iter().map(own_states).collect();
        let start = values.clone();
        let unit = p.unit.clone();
        let of_weight = keeps_weight.then(|| declare("weight", p.weight.ty.dim(), unit, p.weight.span));
        let shared = self.give(at, p, &given);
        self.own = Some(Own { symbols: &plastic.own, values });
        self.weight = Some(of_weight.map_or(weight, |(_, node)| node));
        for (number, (symbol, node)) in plastic.own.iter().zip(&start).enumerate() {
            let (SymbolKind::State { init, rate, .. }, Some(Node::State(state))) =
                (&symbol.kind, node.map(|n| self.graph.node(n)))
            else {
                continue;
            };
            let begins = |given: &hir::Given| given.of == GivenOf::State(number as u32);
            let own_init = p.given.iter().position(begins).map(|at| given[at]);
            if init.kind == ExprKind::SteadyState && own_init.is_none() {
                let message = format!("the steady state of `{}` is not known before the run", symbol.name);
                let d = Diagnostic::new(Code::BadValue, init.span, message, "every synapse has its own");
                self.diagnostics.push(d.help("give it a number"));
                self.failed = true;
            }
            let init = own_init.unwrap_or_else(|| self.expr(population, init));
            let rate = self.expr(population, rate);
            let state = &mut self.states[state.0 as usize];
            (state.init, state.rate) = (init, rate);
        }
        if let Some((state, _)) = of_weight {
            let still = self.graph.number(0.0, p.weight.ty.dim().over(Dim::TIME));
            let state = &mut self.states[state.0 as usize];
            (state.init, state.rate) = (weight, still);
        }

        let mut sent = Vec::new();
        let mut after = |b: &mut Builder<'m>, actions: &[Action]| {
            let begin = of_weight.map_or(weight, |(_, node)| node);
            b.own = Some(Own { symbols: &plastic.own, values: start.clone() });
            b.weight = Some(begin);
            for action in actions {
                b.act(at, p.to, action, &mut sent);
            }
            let values = b.own.take().map_or(Vec::new(), |own| own.values);
            let ends = values.iter().zip(&start).map(|(end, start)| (*start, *end));
            let ends = ends.chain([(of_weight.map(|(_, node)| node), b.weight)]);
            let changed = |(start, end): (Option<NodeId>, Option<NodeId>)| match (b.graph.node(start?), end?) {
                (Node::State(state), end) if Some(end) != start => Some((state, end)),
                _ => None,
            };
            ends.filter_map(changed).collect::<Vec<_>>()
        };
        let (mut pre, mut post) = (after(self, &plastic.pre), after(self, &plastic.post));
        self.amount = modulator;
        // Without a modulator nothing happens.
        let answered = plastic.modulator.as_ref().filter(|_| modulator.is_some());
        let modulated = answered.map_or(Vec::new(), |modulator| after(self, &modulator.actions));
        (self.own, self.weight, self.amount) = (None, None, None);
        let modulator = modulator.filter(|_| !modulated.is_empty());
        if self.run.coincident.0 == Coincident::Apart {
            self.keep_apart((at, to), &mut sent, &mut pre, &mut post);
        }
        let states: Vec<StateId> = (first..self.states.len()).map(|s| StateId(s as u32)).collect();
        let dendritic = p.dendritic.as_ref().map(|part| (self.expr(None, part), part.span));
        for (id, value) in shared {
            self.symbols[p.to][id.0 as usize] = value;
        }
        Some(Plasticity { states, sent, pre, post, modulated, modulator, dendritic })
    }

    /// Puts parameters that a line has given its synapses in the place of what the receptor says, also in what depends on these. What differs from edge to
    /// edge is a state that never moves. The answer is what stood there before.
    fn give(&mut self, at: usize, p: &'m hir::Projection, given: &[NodeId]) -> Vec<(SymbolId, Option<NodeId>)> {
        let to = self.receiving(p.to, p.receptor);
        let mut values: HashMap<SymbolId, Option<NodeId>> = HashMap::default();
        for (given, &value) in p.given.iter().zip(given) {
            let GivenOf::Param(id) = given.of else { continue };
            let mut own = value;
            if self.graph.differs(value) {
                let (dim, span) = (given.value.ty.dim(), given.value.span);
                let name = format!("{}.{}", p.name, given.name);
                let (state, node) = self.of_edges((at, to), name, dim, given.unit.clone(), span);
                let still = self.graph.number(0.0, dim.over(Dim::TIME));
                let state = &mut self.states[state.0 as usize];
                (state.init, state.rate, own) = (value, still, node);
            }
            values.insert(id, Some(own));
        }
        if values.is_empty() {
            return Vec::new();
        }
        // What names compute of them is computed anew; a name may stand before what it reads.
        let symbols = &self.cell(p.to).symbols;
        let mut found = true;
        while std::mem::take(&mut found) {
            for (at, symbol) in symbols.iter().enumerate() {
                let SymbolKind::Let(x) = &symbol.kind else { continue };
                let mut reads = false;
                x.visit(&mut |e| reads |= matches!(e.kind, ExprKind::Symbol(id) if values.contains_key(&id)));
                if reads && values.insert(SymbolId(at as u32), None).is_none() {
                    found = true;
                }
            }
        }
        let exchange = |(id, value): (SymbolId, Option<NodeId>)| {
            (id, std::mem::replace(&mut self.symbols[p.to][id.0 as usize], value))
        };
        values.into_iter().map(exchange).collect()
    }

    /// Declares a state that each edge of a projection has for itself. Its values are still to come.
    fn of_edges(
        &mut self,
        (projection, to): (usize, usize),
        name: String,
        dim: Dim,
        unit: DisplayUnit,
        span: Span,
    ) -> (StateId, NodeId) {
        let to_come = self.graph.add(Node::Bool(false));
        self.states.push(State {
            name,
            population: to,
            edges: Some(projection),
            init: to_come,
            rate: to_come,
            dim,
            unit,
            span,
            kind: StateKind::Plain,
            currents: Vec::new(),
            scheme: None,
            clamp: None,
            set: None,
        });
        let state = StateId(self.states.len() as u32 - 1);
        (state, self.graph.add(Node::State(state)))
    }

    /// Lets a spike that arrives see what only spikes of the target change as it was before one that comes to the synapse at the same time.
    fn keep_apart(
        &mut self,
        of: (usize, usize),
        sent: &mut [(NodeId, Dim)],
        pre: &mut [(StateId, NodeId)],
        post: &mut Vec<(StateId, NodeId)>,
    ) {
        let read = self.graph.reachable(sent.iter().map(|sent| sent.0).chain(pre.iter().map(|change| change.1)));
        let is_read = |state: StateId| read.iter().any(|&id| self.graph.node(id) == Node::State(state));
        let is_changed = |state: StateId| pre.iter().any(|change| change.0 == state);
        let seen: Vec<StateId> = post.iter().map(|change| change.0).filter(|&s| is_read(s) && !is_changed(s)).collect();
        let (since, at_once) = (self.graph.add(Node::Since), self.graph.number(0.0, Dim::TIME));
        let together = self.graph.binary(BinaryOp::Eq, since, at_once);
        let mut instead = HashMap::default();
        for state in seen {
            let State { name, init, dim, unit, span, .. } = self.states[state.0 as usize].clone();
            let (before, kept) = self.of_edges(of, format!("{name}'before"), dim, unit, span);
            let still = self.graph.number(0.0, dim.over(Dim::TIME));
            let own = &mut self.states[before.0 as usize];
            (own.init, own.rate) = (init, still);
            let now = self.graph.add(Node::State(state));
            post.push((before, now));
            instead.insert(Node::State(state), self.graph.select(together, kept, now));
        }
        let mut memo = HashMap::default();
        let mut replace = |value: &mut NodeId| {
            *value = self.graph.replace(*value, &|node| instead.get(&node).copied(), &mut memo);
        };
        sent.iter_mut().for_each(|sent| replace(&mut sent.0));
        pre.iter_mut().for_each(|change| replace(&mut change.1));
    }

    /// Does one assignment.
    fn act(&mut self, at: usize, population: usize, action: &Action, sent: &mut Vec<(NodeId, Dim)>) {
        let value = self.expr(Some(population), &action.value);
        let dim = action.value.ty.dim();
        let joined = |b: &mut Builder<'_>, before: Option<NodeId>| match (action.op, before) {
            (AssignOp::Add, Some(before)) => b.graph.binary(BinaryOp::Add, before, value),
            (AssignOp::Sub, Some(before)) => b.graph.binary(BinaryOp::Sub, before, value),
            (AssignOp::Set, _) | (AssignOp::Add | AssignOp::Sub, None) => value,
        };
        match action.on {
            ActionOn::Weight => self.weight = Some(joined(self, self.weight)),
            ActionOn::Own(number) => {
                let before = self.own.as_ref().and_then(|own| own.values[number as usize]);
                let value = joined(self, before);
                let Some(own) = &mut self.own else { return };
                // What was computed of states is computed anew.
                for (value, symbol) in own.values.iter_mut().zip(own.symbols) {
                    if matches!(symbol.kind, SymbolKind::Let(_)) {
                        *value = None;
                    }
                }
                own.values[number as usize] = Some(value);
            }
            ActionOn::Shared(symbol) => {
                let Some(Node::State(state)) = self.symbols[population][symbol.0 as usize].map(|n| self.graph.node(n))
                else {
                    return;
                };
                let value = match action.op {
                    AssignOp::Sub => self.graph.unary(UnaryOp::Neg, value),
                    AssignOp::Add | AssignOp::Set => value,
                };
                let known = sent.iter().position(|other| *other == (value, dim));
                let number = known.unwrap_or_else(|| {
                    sent.push((value, dim));
                    sent.len() - 1
                });
                self.sent[at].push((state, number as u32));
            }
        }
    }

    /// What edges have for themselves.
    pub(super) fn record_edges(
        &mut self,
        projections: &[Projection],
        r: &hir::Record,
        projection: usize,
        own: &str,
    ) -> Record {
        let name = format!("{}.{own}", projections[projection].name);
        let states = projections[projection].plasticity.iter().flat_map(|plasticity| &plasticity.states);
        let state = states.copied().find(|state| self.states[state.0 as usize].name == name);
        let (value, unit) = match state {
            Some(state) => (self.graph.add(Node::State(state)), self.states[state.0 as usize].unit.clone()),
            None => (self.graph.number(f64::NAN, Dim::ONE), Dim::ONE.display_unit()),
        };
        let (every, window, around, span) = (r.sampling.every, r.sampling.window, self.around(r), r.span);
        Record {
            name,
            population: r.population,
            edges: Some(projection),
            cells: None,
            value,
            probe: None,
            of_place: false,
            of_compartments: false,
            every,
            window,
            around,
            unit,
            span,
        }
    }
}
