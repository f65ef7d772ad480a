//! States that are held, and states that begin at rest.
//!
//! In come the clamps of a network and the words `steady_state`; out go what holds a state, the current that it takes, and initial values.
//! Never true here: a clamped state moves by its own equation.

use super::{Builder, known_later};
use crate::diag::{Code, Diagnostic};
use crate::hir::{Expr, StateKind, Symbol, SymbolId};
use crate::ode::{Clamp, Node, NodeId, State, StateId, depends, derivative};
use crate::operators::{BinaryOp, Distribution, UnaryOp};
use crate::source::Span;
use crate::units::Dim;
use rustc_hash::FxHashMap as HashMap;
use std::collections::BTreeMap;

impl Builder<'_> {
    /// Holds the states of a population that are clamped: equations read the value of the clamp, which is that of the stage's own time.
    pub(super) fn clamps(&mut self, population: usize) {
        let network = self.network;
        let mut held = BTreeMap::new();
        for clamp in network.clamps.iter().filter(|c| c.population == population) {
            let known = self.symbols[population][clamp.state.0 as usize].map(|n| self.graph.node(n));
            let Some(Node::State(state)) = known else { continue };
            let value = self.expr(Some(population), &clamp.value);
            let value = self.hide_draws(population, value, &clamp.name, clamp.span);
            let cells = clamp.cells.as_ref().map(|cells| self.is_one_of(cells));
            // It begins where it is held, as far as that is known before the first step.
            let later = |node: NodeId| known_later(self.graph.node(node)).is_some();
            if !self.graph.reachable([value]).into_iter().any(later) {
                let init = self.states[state.0 as usize].init;
                self.states[state.0 as usize].init = cells.map_or(value, |cells| self.graph.select(cells, value, init));
            }
            // Of two clamps of some cells, the later one counts.
            let before = self.states[state.0 as usize].clamp;
            let both = match (before, cells) {
                (Some(before), Some(of_these)) => Clamp {
                    cells: before.cells.map(|others| self.graph.binary(BinaryOp::Or, others, of_these)),
                    value: self.graph.select(of_these, value, before.value),
                },
                (None, _) | (Some(_), None) => Clamp { cells, value },
            };
            self.states[state.0 as usize].clamp = Some(both);
            held.insert(state, both);
        }
        if held.is_empty() {
            return;
        }
        let seen: HashMap<StateId, NodeId> = held
            .iter()
            .map(|(&state, clamp)| {
                let free = self.graph.add(Node::State(state));
                (state, clamp.cells.map_or(clamp.value, |cells| self.graph.select(cells, clamp.value, free)))
            })
            .collect();
        let leaf = |node: Node| match node {
            Node::State(s) => seen.get(&s).copied(),
            _ => None,
        };
        let mut memo = HashMap::default();
        for at in 0..self.states.len() {
            let (state, State { population: of, rate, dim, .. }) = (StateId(at as u32), &self.states[at]);
            if *of != population {
                continue;
            }
            let (rate, dim) = (*rate, *dim);
            let mut new = self.graph.replace(rate, &leaf, &mut memo);
            if let Some(clamp) = held.get(&state) {
                self.free.insert(state, rate);
                let still = self.graph.number(0.0, dim.over(Dim::TIME));
                new = clamp.cells.map_or(still, |cells| self.graph.select(cells, still, new));
            }
            self.states[at].rate = new;
            let mut currents = std::mem::take(&mut self.states[at].currents);
            currents.iter_mut().for_each(|current| *current = self.graph.replace(*current, &leaf, &mut memo));
            self.states[at].currents = currents;
        }
        self.classify();
    }

    /// An Ornstein-Uhlenbeck process of mean 0 and variance 1: a hidden state of each cell, which begins as it stays, and at the end of every step is held at
    /// what its exact solution makes of it, z exp(-dt / tau) + n sqrt(1 - exp(-2 dt / tau)), whatever the method. Within a step it does not move.
    pub(super) fn wanders(&mut self, population: usize, [begin, steps]: [u64; 2], tau: &Expr, span: Span) -> NodeId {
        if let Some(&known) = self.wandering.get(&(population, steps)) {
            return known;
        }
        let tau = self.expr(Some(population), tau);
        let name = format!("{}'ornstein_uhlenbeck{}", self.population_name(population), self.wandering.len() + 1);
        let tau = self.hide_draws(population, tau, "ornstein_uhlenbeck", span);
        let g = &mut self.graph;
        let id = StateId(self.states.len() as u32);
        let z = g.add(Node::State(id));
        let (dt, one) = (g.add(Node::StepLength), g.number(1.0, Dim::ONE));
        let passed = g.binary(BinaryOp::Div, dt, tau);
        let passed = g.unary(UnaryOp::Neg, passed);
        let kept = g.unary(UnaryOp::Exp, passed);
        let square = g.binary(BinaryOp::Mul, kept, kept);
        let new = g.binary(BinaryOp::Sub, one, square);
        let new = g.unary(UnaryOp::Sqrt, new);
        let noise = g.add(Node::Noise(steps, dt));
        let noise = g.binary(BinaryOp::Mul, new, noise);
        let old = g.binary(BinaryOp::Mul, kept, z);
        let value = g.binary(BinaryOp::Add, old, noise);
        self.states.push(State {
            name,
            population,
            edges: None,
            init: g.add(Node::Draw(Distribution::Normal, begin)),
            rate: g.number(0.0, Dim::ONE.over(Dim::TIME)),
            dim: Dim::ONE,
            unit: Dim::ONE.display_unit(),
            span,
            kind: StateKind::Plain,
            currents: Vec::new(),
            scheme: None,
            clamp: Some(Clamp { cells: None, value }),
            set: None,
        });
        self.wandering.insert((population, steps), z);
        z
    }

    /// The current density that holds a voltage, positive inwards: what the capacitance would take if it were free, with the opposite sign.
    pub(super) fn current_of_clamp(&mut self, population: usize, v: SymbolId, cm: SymbolId) -> NodeId {
        let none = self.graph.number(0.0, Dim::CURRENT_DENSITY);
        let known = self.symbols[population][v.0 as usize].map(|n| self.graph.node(n));
        let Some(Node::State(state)) = known else { return none };
        let (Some(clamp), Some(&free)) = (self.states[state.0 as usize].clamp, self.free.get(&state)) else {
            return none;
        };
        let cm = self.symbol(population, cm);
        let charge = self.graph.binary(BinaryOp::Mul, cm, free);
        let current = self.graph.unary(UnaryOp::Neg, charge);
        clamp.cells.map_or(current, |cells| self.graph.select(cells, current, none))
    }

    /// Where the derivative of a state is zero, all others being what they are at the start: -n / b where it is n + b x.
    pub(super) fn steady_state(&mut self, population: usize, symbol: usize, rate: NodeId, span: Span) -> NodeId {
        let Symbol { name, ty, .. } = &self.cell(population).symbols[symbol];
        let none = self.graph.number(f64::NAN, ty.dim());
        let known = self.symbols[population][symbol].map(|n| self.graph.node(n));
        let Some(Node::State(state)) = known else { return none };
        // At rest in the mean.
        let quiet = self.graph.number(0.0, Dim::WHITE);
        let silent = |node: Node| matches!(node, Node::White(_)).then_some(quiet);
        let rate = self.graph.replace(rate, &silent, &mut HashMap::default());
        let slope = derivative(&mut self.graph, rate, state);
        let later = |node: NodeId| known_later(self.graph.node(node)).is_some();
        let why = match slope {
            None => "its derivative does not depend on it",
            Some(slope) if depends(&self.graph, slope, state) => "its derivative is not linear in it",
            Some(_) if self.graph.reachable([rate]).into_iter().any(later) => {
                "its derivative reads what is known from the first step on"
            }
            Some(slope) => {
                let zero = self.graph.number(0.0, ty.dim());
                let leaf = |node: Node| (node == Node::State(state)).then_some(zero);
                let rest = self.graph.replace(rate, &leaf, &mut HashMap::default());
                let quotient = self.graph.binary(BinaryOp::Div, rest, slope);
                return self.graph.unary(UnaryOp::Neg, quotient);
            }
        };
        let message = format!("the steady state of `{name}` is not known before the run: {why}");
        let d = Diagnostic::new(Code::BadValue, span, message, "no steady state");
        self.diagnostics.push(
            d.help("give it a number, and go on from the end of a run: `--save rest.npz`, then `--load rest.npz`"),
        );
        self.failed = true;
        none
    }
}
