//! Linear equations, exactly: NEST's way for current-based synapses, Brian2's `exact` (Rotter and Diesmann, Biol Cybern 81:381-402, 1999).
//!
//! With x' = A x + c, where A and what drives from outside hold for a step h, x becomes e^(A h) x + (the integral of e^(A s) over the step) c. States
//! drive each other without loops, so an entry of e^(A h) is a sum over the paths from one state to another: the product of the couplings on the way,
//! times the divided difference of e^z at the decay rates of the states that the path goes through (Opitz 1964). A constant is a state that
//! does not decay. Everything but the states themselves is a number that is computed once in a run where parameters make it.

use super::exp_euler;
use super::stages::Stages;
use crate::ode::linear::{Row, rows};
use crate::ode::{Graph, Node, NodeId, StateId};
use crate::step::{BinaryOp, UnaryOp};
use crate::units::Dim;
use std::collections::BTreeMap;

pub(super) fn step(stages: &mut Stages<'_>) {
    let (dt, population) = (stages.dt, stages.population);
    // Models that are not linear have had an error.
    let Ok(rows) = rows(stages.model, population) else { return exp_euler::step(stages) };
    let mut updates = after(&mut stages.model.graph, &rows, dt);
    let rates: Vec<(StateId, NodeId)> = rows.keys().map(|&state| (state, stages.model.state(state).rate)).collect();
    if let Some((held, refractory)) = stages.held(rates) {
        // What does not move is a constant for all others.
        let g = &mut stages.model.graph;
        let still = |(&state, row): (&StateId, &Row)| match held.contains(&state) {
            true => (state, Row { coefficients: BTreeMap::new(), constant: None }),
            false => (state, row.clone()),
        };
        let still: BTreeMap<StateId, Row> = rows.iter().map(still).collect();
        let meanwhile = after(g, &still, dt);
        for ((state, value), (_, meanwhile)) in updates.iter_mut().zip(meanwhile) {
            if !held.contains(state) && *value != meanwhile {
                *value = g.select(refractory, meanwhile, *value);
            }
        }
    }
    stages.update(updates);
}

/// The values of states after some time.
pub(super) fn after(g: &mut Graph, rows: &BTreeMap<StateId, Row>, time: NodeId) -> Vec<(StateId, NodeId)> {
    let mut propagation = Propagation { g, rows, dt: time, sum: None };
    rows.keys().map(|&state| (state, propagation.of(state))).collect()
}

struct Propagation<'m> {
    g: &'m mut Graph,
    rows: &'m BTreeMap<StateId, Row>,
    dt: NodeId,
    /// The new value of a state, as far as it is added up.
    sum: Option<NodeId>,
}

impl Propagation<'_> {
    /// The new value of a state.
    fn of(&mut self, state: StateId) -> NodeId {
        self.sum = None;
        self.add(&mut vec![state], None);
        self.sum.unwrap_or_else(|| self.g.add(Node::State(state)))
    }

    /// Adds what reaches the first state of a path from its last one and from what drives that; `couplings` is the product on the way.
    fn add(&mut self, path: &mut Vec<StateId>, couplings: Option<NodeId>) {
        let rows = self.rows;
        let Some(row) = path.last().and_then(|last| rows.get(last)) else { return };
        let last = path[path.len() - 1];
        let mut points: Vec<Option<NodeId>> = path.iter().map(|state| self.rate(*state)).collect();
        let weight = divided_difference(self.g, &points);
        let state = self.g.add(Node::State(last));
        self.term([couplings, weight, Some(state)]);
        if let Some(constant) = row.constant {
            points.push(None);
            let weight = divided_difference(self.g, &points);
            let couplings = self.product([couplings, Some(self.dt), weight]);
            self.term([couplings, Some(constant), None]);
        }
        for (&next, &coupling) in row.coefficients.iter().filter(|(next, _)| **next != last) {
            path.push(next);
            let further = self.product([couplings, Some(coupling), Some(self.dt)]);
            self.add(path, further);
            path.pop();
        }
    }

    /// What a state decays or grows by in a step, as an exponent; `None` is 0.
    fn rate(&mut self, state: StateId) -> Option<NodeId> {
        let own = *self.rows[&state].coefficients.get(&state)?;
        Some(self.g.binary(BinaryOp::Mul, own, self.dt))
    }

    fn term(&mut self, factors: [Option<NodeId>; 3]) {
        let term = self.product(factors);
        self.sum = match (self.sum, term) {
            (Some(sum), Some(term)) => Some(self.g.binary(BinaryOp::Add, sum, term)),
            (sum, term) => sum.or(term),
        };
    }

    fn product(&mut self, factors: [Option<NodeId>; 3]) -> Option<NodeId> {
        factors.into_iter().flatten().reduce(|a, b| self.g.binary(BinaryOp::Mul, a, b))
    }
}

/// The divided difference of e^z at one to three points, of which `None` is 0; `None` is 1. Always accurate, however near the points are.
fn divided_difference(g: &mut Graph, points: &[Option<NodeId>]) -> Option<NodeId> {
    match *points {
        [Some(z)] => Some(g.unary(UnaryOp::Exp, z)),
        [Some(z), None] => Some(of_two_from_zero(g, z)),
        [x, y] => x.or(y).map(|_| {
            let [x, y] = [x, y].map(|z| at(g, z));
            of_two(g, x, y)
        }),
        [x, y, z] => {
            let [x, y, z] = [x, y, z].map(|z| at(g, z));
            Some(of_three(g, x, y, z))
        }
        _ => None,
    }
}

fn at(g: &mut Graph, z: Option<NodeId>) -> NodeId {
    z.unwrap_or_else(|| g.number(0.0, Dim::ONE))
}

/// `(e^z - 1) / z`
fn of_two_from_zero(g: &mut Graph, z: NodeId) -> NodeId {
    let z = g.unary(UnaryOp::Nonzero, z);
    let e = g.unary(UnaryOp::Expm1, z);
    g.binary(BinaryOp::Div, e, z)
}

/// `(e^x - e^y) / (x - y)`
fn of_two(g: &mut Graph, x: NodeId, y: NodeId) -> NodeId {
    if x == y {
        return g.unary(UnaryOp::Exp, x);
    }
    let (low, high) = ordered(g, x, y);
    of_ordered(g, low, high)
}

/// The lower and the higher of two points. Of equal ones each is one of both, so that derivatives reach each point once.
fn ordered(g: &mut Graph, x: NodeId, y: NodeId) -> (NodeId, NodeId) {
    (g.binary(BinaryOp::Min, x, y), g.binary(BinaryOp::Max, y, x))
}

fn of_ordered(g: &mut Graph, low: NodeId, high: NodeId) -> NodeId {
    let below = g.binary(BinaryOp::Sub, low, high);
    let (top, part) = (g.unary(UnaryOp::Exp, high), of_two_from_zero(g, below));
    g.binary(BinaryOp::Mul, top, part)
}

/// Points that are further apart than this have a quotient without loss; for others there is a series.
const APART: f64 = 0.5;
/// With so many terms behind the first, the series is complete in double precision.
const TERMS: u32 = 12;

/// The difference of [`of_two`] at the upper and at the lower two points, over the distance of the outer ones.
fn of_three(g: &mut Graph, x: NodeId, y: NodeId, z: NodeId) -> NodeId {
    let (less, more) = ordered(g, x, y);
    let (low, rest) = ordered(g, less, z);
    let (middle, high) = ordered(g, rest, more);
    let (upper, lower) = (of_ordered(g, middle, high), of_ordered(g, low, middle));
    let rise = g.binary(BinaryOp::Sub, upper, lower);
    let width = g.binary(BinaryOp::Sub, high, low);
    let nonzero = g.unary(UnaryOp::Nonzero, width);
    let quotient = g.binary(BinaryOp::Div, rise, nonzero);

    // e^middle times the sum of h(k) / (k + 2)!, where h(k) adds up below^i above^(k - i) for i from 0 to k.
    let (below, above) = (g.binary(BinaryOp::Sub, low, middle), g.binary(BinaryOp::Sub, high, middle));
    let (mut power, mut h) = (g.number(1.0, Dim::ONE), g.number(1.0, Dim::ONE));
    let mut factorial = 2.0;
    let mut sum = g.number(1.0 / factorial, Dim::ONE);
    for k in 1..=TERMS {
        power = g.binary(BinaryOp::Mul, power, above);
        h = g.binary(BinaryOp::Mul, h, below);
        h = g.binary(BinaryOp::Add, h, power);
        factorial *= f64::from(k + 2);
        let part = g.number(1.0 / factorial, Dim::ONE);
        let term = g.binary(BinaryOp::Mul, h, part);
        sum = g.binary(BinaryOp::Add, sum, term);
    }
    let top = g.unary(UnaryOp::Exp, middle);
    let near = g.binary(BinaryOp::Mul, top, sum);
    let apart = g.number(APART, Dim::ONE);
    let is_apart = g.binary(BinaryOp::Gt, width, apart);
    g.select(is_apart, quotient, near)
}
