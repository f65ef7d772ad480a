//! Kinetic schemes: where they are at rest, and their linear equations, unrolled.
//!
//! In come the flows between the states of a scheme; out go expressions without loops and without pivots, over the flows that there are.
//! Never true here: a number is subtracted from another one of its size.
//!
//! With `q` the rate from one state to another, the matrix `A` has these beside its diagonal, which makes its columns sum to 0. Whoever is
//! eliminated hands what flows into it on to where it flows: only sums, products and quotients of rates, so that each state has all its
//! digits however small it is, as long as rates are not negative (Grassmann, Taksar and Heyman, Oper Res 33:1107-1116, 1985). States with few
//! neighbours go first, which keeps schemes that are chains or trees as sparse as they are.

use super::{Graph, Model, NodeId, StateId, linear};
use crate::operators::BinaryOp;
use crate::units::Dim;
use std::collections::BTreeMap;

/// What flows from a state to another, by their numbers: a rate, which multiplies the first.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Flow {
    /// Where it comes from.
    pub from: usize,
    /// Where it goes.
    pub to: usize,
    /// How much of what is there, per time.
    pub rate: NodeId,
}

/// A scheme of a model.
#[derive(Debug, Clone, PartialEq)]
pub struct Scheme {
    /// Its states.
    pub states: Vec<StateId>,
    /// What flows between them.
    pub flows: Vec<Flow>,
}

/// The schemes of a population.
pub fn schemes(model: &mut Model, population: usize) -> Vec<Scheme> {
    let mut states: BTreeMap<StateId, Vec<StateId>> = BTreeMap::new();
    for state in model.states_of(population) {
        if let Some(first) = model.state(state).scheme {
            states.entry(first).or_default().push(state);
        }
    }
    states.into_values().filter_map(|states| of_states(model, states)).collect()
}

/// The scheme that some states are. Rates that read a state of theirs make no scheme; that has been said.
fn of_states(model: &mut Model, states: Vec<StateId>) -> Option<Scheme> {
    let mut flows = Vec::new();
    for (to, &state) in states.iter().enumerate() {
        let rate = model.state(state).rate;
        for (from, rate) in linear::row(&mut model.graph, rate, &|s| states.contains(&s)).ok()?.coefficients {
            let from = states.iter().position(|&s| s == from)?;
            if from != to {
                flows.push(Flow { from, to, rate });
            }
        }
    }
    Some(Scheme { states, flows })
}

/// The states of a scheme at rest, which sum to 1; none if it may come to rest in several places.
pub fn at_rest(g: &mut Graph, count: usize, flows: &[Flow]) -> Option<Vec<NodeId>> {
    let root = end(count, flows)?;
    let mut elimination = Elimination::new(flows, BTreeMap::new());
    let order = elimination.order(count, Some(root));
    let mut gone: Vec<Gone> = Vec::new();
    for &at in &order[..count - 1] {
        gone.push(elimination.eliminate(g, at)?);
    }
    // Backwards: what flows into a state, over what flows out of it.
    let mut weights: Vec<Option<NodeId>> = vec![None; count];
    weights[root] = Some(g.number(1.0, Dim::ONE));
    for step in gone.iter().rev() {
        let inflow = step.from.iter().filter_map(|&(from, share)| Some((weights[from]?, share)));
        let inflow: Vec<(NodeId, NodeId)> = inflow.collect();
        weights[step.at] = Some(dot(g, &inflow).unwrap_or_else(|| g.number(0.0, Dim::ONE)));
    }
    let weights: Vec<NodeId> = weights.into_iter().collect::<Option<_>>()?;
    let sum = weights.iter().copied().reduce(|a, b| g.binary(BinaryOp::Add, a, b))?;
    Some(weights.into_iter().map(|w| g.binary(BinaryOp::Div, w, sum)).collect())
}

/// The state with the smallest number of those that all others lead to, if there are such.
fn end(count: usize, flows: &[Flow]) -> Option<usize> {
    let leads_to = |end: usize| {
        let mut seen = vec![false; count];
        let mut waiting = vec![end];
        while let Some(at) = waiting.pop() {
            if !std::mem::replace(&mut seen[at], true) {
                waiting.extend(flows.iter().filter(|f| f.to == at).map(|f| f.from));
            }
        }
        seen.into_iter().all(|seen| seen)
    };
    (0..count).find(|&end| leads_to(end))
}

/// `1 - A step`, eliminated once, for any number of right sides.
pub struct Resolvent {
    gone: Vec<Gone>,
    count: usize,
}

impl Resolvent {
    /// Of a scheme, whose flows are numbers already: rates times the step.
    pub fn new(g: &mut Graph, count: usize, flows: &[Flow]) -> Option<Resolvent> {
        let one = g.number(1.0, Dim::ONE);
        let mut elimination = Elimination::new(flows, (0..count).map(|at| (at, one)).collect());
        let order = elimination.order(count, None);
        let gone = order.iter().map(|&at| elimination.eliminate(g, at)).collect::<Option<_>>()?;
        Some(Resolvent { gone, count })
    }

    /// The solution for a right side.
    pub fn solve(&self, g: &mut Graph, right: &[NodeId]) -> Vec<NodeId> {
        let mut right = right.to_vec();
        for step in &self.gone {
            for &(to, share) in &step.to {
                let moved = g.binary(BinaryOp::Mul, share, right[step.at]);
                right[to] = g.binary(BinaryOp::Add, right[to], moved);
            }
        }
        let mut solved = right.clone();
        for step in self.gone.iter().rev() {
            let own = g.binary(BinaryOp::Mul, right[step.at], step.inverse);
            let inflow: Vec<(NodeId, NodeId)> = step.from.iter().map(|&(from, share)| (solved[from], share)).collect();
            solved[step.at] = match dot(g, &inflow) {
                Some(inflow) => g.binary(BinaryOp::Add, own, inflow),
                None => own,
            };
        }
        debug_assert_eq!(solved.len(), self.count);
        solved
    }
}

/// A state that has been eliminated.
struct Gone {
    at: usize,
    /// One over the diagonal.
    inverse: NodeId,
    /// Where what is in it goes, each with its part of all.
    to: Vec<(usize, NodeId)>,
    /// Where what is in it comes from: flows over the diagonal.
    from: Vec<(usize, NodeId)>,
}

/// The rows that are left.
struct Elimination {
    flows: BTreeMap<(usize, usize), NodeId>,
    /// What the diagonal has over the flows out of a state.
    rest: BTreeMap<usize, NodeId>,
}

impl Elimination {
    fn new(flows: &[Flow], rest: BTreeMap<usize, NodeId>) -> Elimination {
        Elimination { flows: flows.iter().map(|f| ((f.from, f.to), f.rate)).collect(), rest }
    }

    /// The states with the fewest neighbours first, where each that goes makes neighbours of its own; `last` goes last.
    fn order(&self, count: usize, last: Option<usize>) -> Vec<usize> {
        let mut beside = vec![std::collections::BTreeSet::new(); count];
        for &(from, to) in self.flows.keys() {
            beside[from].insert(to);
            beside[to].insert(from);
        }
        let mut left: Vec<usize> = (0..count).collect();
        let mut order = Vec::new();
        while let Some(&next) = left.iter().min_by_key(|&&at| (Some(at) == last, beside[at].len(), at)) {
            left.retain(|&at| at != next);
            let around = std::mem::take(&mut beside[next]);
            for &a in &around {
                beside[a].remove(&next);
                beside[a].extend(around.iter().copied().filter(|&b| b != a));
            }
            order.push(next);
        }
        order
    }

    /// Takes a state out. None if nothing is on its diagonal.
    fn eliminate(&mut self, g: &mut Graph, at: usize) -> Option<Gone> {
        let out: Vec<(usize, NodeId)> =
            self.flows.iter().filter(|(k, _)| k.0 == at).map(|(k, &rate)| (k.1, rate)).collect();
        let into: Vec<(usize, NodeId)> =
            self.flows.iter().filter(|(k, _)| k.1 == at).map(|(k, &rate)| (k.0, rate)).collect();
        self.flows.retain(|k, _| k.0 != at && k.1 != at);
        let rest = self.rest.remove(&at);
        let diagonal = rest.into_iter().chain(out.iter().map(|o| o.1)).reduce(|a, b| g.binary(BinaryOp::Add, a, b))?;
        let one = g.number(1.0, Dim::ONE);
        let inverse = g.binary(BinaryOp::Div, one, diagonal);
        let to: Vec<(usize, NodeId)> =
            out.into_iter().map(|(to, rate)| (to, g.binary(BinaryOp::Mul, rate, inverse))).collect();
        for &(from, rate) in &into {
            for &(to, share) in to.iter().filter(|t| t.0 != from) {
                let through = g.binary(BinaryOp::Mul, rate, share);
                let all = match self.flows.get(&(from, to)) {
                    Some(&direct) => g.binary(BinaryOp::Add, direct, through),
                    None => through,
                };
                self.flows.insert((from, to), all);
            }
            if let (Some(rest), Some(&own)) = (rest, self.rest.get(&from)) {
                let part = g.binary(BinaryOp::Mul, rest, inverse);
                let lost = g.binary(BinaryOp::Mul, rate, part);
                self.rest.insert(from, g.binary(BinaryOp::Add, own, lost));
            }
        }
        let from = into.into_iter().map(|(from, rate)| (from, g.binary(BinaryOp::Mul, rate, inverse))).collect();
        Some(Gone { at, inverse, to, from })
    }
}

/// The sum of products.
fn dot(g: &mut Graph, pairs: &[(NodeId, NodeId)]) -> Option<NodeId> {
    let products: Vec<NodeId> = pairs.iter().map(|&(a, b)| g.binary(BinaryOp::Mul, a, b)).collect();
    products.into_iter().reduce(|a, b| g.binary(BinaryOp::Add, a, b))
}
