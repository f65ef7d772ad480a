//! White noise in equations: what it adds in a step.
//!
//! In come derivatives with noise; out go derivatives without, and what noise adds behind the step that these make.
//! Never true here: what multiplies noise is taken at another time than the step's beginning (Ito; Maruyama 1955).

use crate::ode::{Graph, Model, NodeId, StateId, depends, derivative, noisy};
use crate::step::{BinaryOp, UnaryOp};
use crate::units::Dim;
use rustc_hash::FxHashMap as HashMap;

/// By what noise is multiplied, besides the root of dt, for z, the slope of the drift times dt, so that a state that is linear and has noise of
/// constant strength has its variance at every step.
pub(super) type Spread = fn(&mut Graph, NodeId) -> NodeId;

/// For a step by exponentials: the root of expm1(2 z) / (2 z).
pub(super) fn exponential(g: &mut Graph, z: NodeId) -> NodeId {
    let z = g.unary(UnaryOp::Nonzero, z);
    let twice = g.binary(BinaryOp::Add, z, z);
    let e = g.unary(UnaryOp::Expm1, twice);
    let square = g.binary(BinaryOp::Div, e, twice);
    g.unary(UnaryOp::Sqrt, square)
}

/// For backward Euler: the root of 1 - z / 2, over 1 - z.
pub(super) fn implicit(g: &mut Graph, z: NodeId) -> NodeId {
    let (one, half, most) = (g.number(1.0, Dim::ONE), g.number(0.5, Dim::ONE), g.number(0.5, Dim::ONE));
    let z = g.binary(BinaryOp::Min, z, most);
    let part = g.binary(BinaryOp::Mul, half, z);
    let square = g.binary(BinaryOp::Sub, one, part);
    let (root, damping) = (g.unary(UnaryOp::Sqrt, square), g.binary(BinaryOp::Sub, one, z));
    g.binary(BinaryOp::Div, root, damping)
}

/// Takes noise out of the derivatives of a population, and gives what it adds to each state.
pub(super) fn take(
    model: &mut Model,
    population: usize,
    dt: NodeId,
    spread: impl Fn(&Model, StateId) -> Spread,
) -> HashMap<StateId, NodeId> {
    let states: Vec<StateId> = model.states_of(population).collect();
    let mut added = HashMap::default();
    for s in states {
        let (rate, dim, spread) = (model.state(s).rate, model.state(s).dim, spread(model, s));
        let g = &mut model.graph;
        let Some(parts) = noisy(g, rate) else { continue };
        let drift = parts.drift.unwrap_or_else(|| g.number(0.0, dim.over(Dim::TIME)));
        let each = |g: &mut Graph, (white, by)| g.binary(BinaryOp::Mul, by, white);
        let first = each(g, parts.sources[0]);
        let sum = parts.sources[1..].iter().fold(first, |sum, &source| {
            let next = each(g, source);
            g.binary(BinaryOp::Add, sum, next)
        });
        let mut change = g.binary(BinaryOp::Mul, sum, dt);
        if let Some(b) = derivative(g, drift, s).filter(|&b| !depends(g, b, s)) {
            let z = g.binary(BinaryOp::Mul, b, dt);
            let factor = spread(g, z);
            change = g.binary(BinaryOp::Mul, change, factor);
        }
        let currents = model.state(s).currents.clone();
        let quiet = |current| noisy(&mut model.graph, current).and_then(|parts| parts.drift).unwrap_or(current);
        let currents = currents.into_iter().map(quiet).collect();
        let state = &mut model.states[s.0 as usize];
        (state.rate, state.currents) = (drift, currents);
        added.insert(s, change);
    }
    added
}

/// Adds noise to new values.
pub(super) fn add(g: &mut Graph, noise: &HashMap<StateId, NodeId>, updates: &mut [(StateId, NodeId)]) {
    for (state, value) in updates {
        if let Some(&change) = noise.get(state) {
            *value = g.binary(BinaryOp::Add, *value, change);
        }
    }
}
