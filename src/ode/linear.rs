//! Populations whose equations are linear in their states.
//!
//! In comes a model; out go, for each state of a population, what multiplies which state in its derivative and what is left, or why a derivative is
//! not such a sum.
//! Never true here: a coefficient reads a state that moves.

use super::{Graph, Model, Node, NodeId, StateId};
use crate::diag::{Code, Diagnostic};
use crate::hir::Method;
use crate::operators::{BinaryOp, UnaryOp};
use crate::source::Span;
use crate::units::Dim;
use std::collections::{BTreeMap, BTreeSet};

/// The derivative of a state, or what else is a sum over states or other leaves: of `coefficients[s] * s` and `constant`.
#[derive(Debug, Clone, PartialEq)]
pub struct Row<Leaf = StateId> {
    /// What multiplies which.
    pub coefficients: BTreeMap<Leaf, NodeId>,
    /// What is left, unless nothing is.
    pub constant: Option<NodeId>,
}

/// Why a population cannot be integrated as a whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotLinear {
    /// The derivative of the first state reads the second in another way.
    Bends(StateId, StateId),
    /// Two states drive each other, directly or through others.
    Loop(StateId, StateId),
    /// More states in a row drive a state than are followed.
    Long(StateId),
    /// What drives a state of an edge moves by itself.
    Driven(StateId),
}

/// How many states in a row are followed, counting a constant as one.
pub const LONGEST: usize = 3;

/// A row for each state of a population, in the order of the model.
pub fn rows(model: &mut Model, population: usize) -> Result<BTreeMap<StateId, Row>, NotLinear> {
    let states: Vec<StateId> = model.states_of(population).collect();
    rows_of(model, &states, &|_| true)
}

/// A row for each state of the edges of a projection. Between events nothing moves them but themselves.
pub fn rows_of_edges(model: &mut Model, projection: usize) -> Result<BTreeMap<StateId, Row>, NotLinear> {
    let states = model.projections[projection].plasticity.as_ref().map_or(Vec::new(), |p| p.states.clone());
    let stay: BTreeSet<StateId> =
        states.iter().copied().filter(|&s| model.graph.constant(model.state(s).rate) == Some(0.0)).collect();
    let mut rows = rows_of(model, &states, &|state| !stay.contains(&state))?;
    for row in rows.values_mut() {
        row.constant = row.constant.filter(|&constant| model.graph.constant(constant) != Some(0.0));
    }
    for (&state, row) in &rows {
        let parts = row.coefficients.values().copied().chain(row.constant);
        let still = |id: NodeId| match model.graph.node(id) {
            Node::Const(..)
            | Node::Bool(_)
            | Node::Param(_)
            | Node::Measure(_)
            | Node::Unary(..)
            | Node::Binary(..)
            | Node::Select(..) => true,
            // What a synapse has for itself may stand in its equations if only events change it.
            Node::State(state) => stay.contains(&state),
            Node::Next(_)
            | Node::Slope(..)
            | Node::Point(..)
            | Node::Refractory(_)
            | Node::Time
            | Node::StepTime
            | Node::StepLength
            | Node::White(_)
            | Node::Index
            | Node::Dv
            | Node::Junction(..)
            | Node::Conductance(_)
            | Node::Arrived(..)
            | Node::Amount(_)
            | Node::Since
            | Node::Beyond
            | Node::Outward(_)
            | Node::Draw(..)
            | Node::Data(_)
            | Node::Series(..)
            | Node::Noise(..)
            | Node::Events(..) => false,
        };
        if !row.coefficients.keys().all(|read| states.contains(read))
            || !model.graph.reachable(parts).into_iter().all(still)
        {
            return Err(NotLinear::Driven(state));
        }
    }
    Ok(rows)
}

/// The same of some states, with those as leaves that `moves` says; others are part of the coefficients.
fn rows_of(
    model: &mut Model,
    states: &[StateId],
    moves: &dyn Fn(StateId) -> bool,
) -> Result<BTreeMap<StateId, Row>, NotLinear> {
    let mut rows = BTreeMap::new();
    for &state in states {
        let rate = model.state(state).rate;
        let row = row(&mut model.graph, rate, moves).map_err(|read| NotLinear::Bends(state, read))?;
        rows.insert(state, row);
    }
    for &state in rows.keys() {
        follow(&rows, &mut vec![state])?;
    }
    Ok(rows)
}

/// Errors where equations are solved as a whole that are of another kind: those of cells where the model's method is [`Method::Exact`], and always
/// those of edges.
pub fn not_linear(model: &Model) -> Vec<Diagnostic> {
    let mut scratch = model.clone();
    let cells = if model.method == Method::Exact { model.populations.len() } else { 0 };
    let of_cells: Vec<NotLinear> = (0..cells).filter_map(|p| rows(&mut scratch, p).err()).collect();
    let of_edges: Vec<NotLinear> =
        (0..model.projections.len()).filter_map(|p| rows_of_edges(&mut scratch, p).err()).collect();
    let mut said: Vec<(Span, Diagnostic)> = Vec::new();
    for why in of_cells.into_iter().chain(of_edges) {
        let (span, message) = message(model, why);
        // Several projections through one synapse have its equations.
        if said.iter().all(|(other, _)| *other != span) {
            said.push((span, message));
        }
    }
    said.into_iter().map(|(_, message)| message).collect()
}

/// What to say, and where.
fn message(model: &Model, why: NotLinear) -> (Span, Diagnostic) {
    let name = |state: StateId| &model.state(state).name;
    let (NotLinear::Bends(at, _) | NotLinear::Loop(at, _) | NotLinear::Long(at) | NotLinear::Driven(at)) = why;
    let label = match why {
        NotLinear::Bends(at, read) if at == read => "its derivative is not linear in it".to_string(),
        NotLinear::Bends(_, read) => format!("its derivative is not linear in `{}`", name(read)),
        NotLinear::Loop(_, other) => format!("it and `{}` drive each other", name(other)),
        NotLinear::Long(_) => format!("what drives it is driven itself, more than {LONGEST} deep"),
        NotLinear::Driven(_) => "what drives it moves between events".to_string(),
    };
    let span = model.state(at).span;
    if model.state(at).edges.is_some() {
        let message = format!("the equation of `{}` cannot be solved from one event to the next", name(at));
        let d = Diagnostic::new(Code::NotLinear, span, message, label).note(
            "what every synapse has for itself moves by linear equations with constant coefficients, such as `x' = -x / tau`",
        );
        return (span, d);
    }
    let message = format!("`exact` cannot solve the equation of `{}`", name(at));
    let d = Diagnostic::new(Code::NotLinear, span, message, label);
    (span, d.help("`method = exp_euler` takes every equation, `rk4` follows smooth ones closely"))
}

/// Goes along what drives the last state of a path.
fn follow(rows: &BTreeMap<StateId, Row>, path: &mut Vec<StateId>) -> Result<(), NotLinear> {
    let (first, last) = (path[0], path[path.len() - 1]);
    // A state of the cell, which drives one of an edge, has none; that is refused.
    let Some(row) = rows.get(&last) else { return Ok(()) };
    if path.len() + usize::from(row.constant.is_some()) > LONGEST {
        return Err(NotLinear::Long(first));
    }
    for &next in row.coefficients.keys().filter(|next| **next != last) {
        if path.contains(&next) {
            return Err(NotLinear::Loop(next, last));
        }
        path.push(next);
        follow(rows, path)?;
        path.pop();
    }
    Ok(())
}

/// A derivative as a sum over the states that `of` takes, or the state of those that is read in another way.
pub fn row(g: &mut Graph, root: NodeId, of: &dyn Fn(StateId) -> bool) -> Result<Row, StateId> {
    let leaf = |node| match node {
        Node::State(state) => of(state).then_some(state),
        _ => None,
    };
    row_in(g, root, &leaf)
}

/// An expression as a sum over some of its leaves, or the one of those that is read in another way.
pub fn row_in<Leaf: Ord + Copy>(
    g: &mut Graph,
    root: NodeId,
    of: &dyn Fn(Node) -> Option<Leaf>,
) -> Result<Row<Leaf>, Leaf> {
    let mut memo: BTreeMap<NodeId, Row<Leaf>> = BTreeMap::new();
    for id in g.reachable([root]) {
        if let Some(leaf) = of(g.node(id)) {
            let one = g.number(1.0, Dim::ONE);
            memo.insert(id, Row { coefficients: [(leaf, one)].into(), constant: None });
            continue;
        }
        let done = match g.node(id) {
            Node::Unary(UnaryOp::Neg, a) => memo[&a].clone().map(g, |g, x| g.unary(UnaryOp::Neg, x)),
            Node::Binary(op @ (BinaryOp::Add | BinaryOp::Sub), a, b) => memo[&a].clone().plus(g, op, &memo[&b]),
            Node::Binary(BinaryOp::Mul, a, b) if !memo[&b].reads() => {
                memo[&a].clone().map(g, |g, x| g.binary(BinaryOp::Mul, x, b))
            }
            Node::Binary(BinaryOp::Mul, a, b) if !memo[&a].reads() => {
                memo[&b].clone().map(g, |g, x| g.binary(BinaryOp::Mul, a, x))
            }
            Node::Binary(BinaryOp::Div, a, b) if !memo[&b].reads() => {
                memo[&a].clone().map(g, |g, x| g.binary(BinaryOp::Div, x, b))
            }
            Node::Select(c, a, b) if !memo[&c].reads() => select(g, c, &memo[&a], &memo[&b]),
            Node::Const(..)
            | Node::Bool(_)
            | Node::Param(_)
            | Node::Next(_)
            | Node::Slope(..)
            | Node::Point(..)
            | Node::Refractory(_)
            | Node::Time
            | Node::StepTime
            | Node::StepLength
            | Node::White(_)
            | Node::Index
            | Node::Dv
            | Node::Junction(..)
            | Node::Conductance(_)
            | Node::Arrived(..)
            | Node::Amount(_)
            | Node::Since
            | Node::Beyond
            | Node::Measure(_)
            | Node::Outward(_)
            | Node::Draw(..)
            | Node::Data(_)
            | Node::Series(..)
            | Node::Noise(..)
            | Node::Events(..)
            | Node::Unary(..)
            | Node::Binary(..)
            | Node::Select(..)
            | Node::State(_) => match g.operands(id).iter().find_map(|a| memo[a].coefficients.keys().next()) {
                Some(&state) => return Err(state),
                None => Row { coefficients: BTreeMap::new(), constant: Some(id) },
            },
        };
        // One node instead of a sum of parts.
        let done = if done.reads() { done } else { Row { constant: Some(id), ..done } };
        memo.insert(id, done);
    }
    Ok(memo.remove(&root).unwrap_or(Row { coefficients: BTreeMap::new(), constant: Some(root) }))
}

/// `c ? a : b`
fn select<Leaf: Ord + Copy>(g: &mut Graph, c: NodeId, a: &Row<Leaf>, b: &Row<Leaf>) -> Row<Leaf> {
    let zero = g.number(0.0, Dim::ONE);
    let mut either = |x: Option<&NodeId>, y: Option<&NodeId>| {
        let (x, y) = (x.copied().unwrap_or(zero), y.copied().unwrap_or(zero));
        g.select(c, x, y)
    };
    let states = a.coefficients.keys().chain(b.coefficients.keys());
    let coefficients = states.map(|s| (*s, either(a.coefficients.get(s), b.coefficients.get(s)))).collect();
    let any = a.constant.is_some() || b.constant.is_some();
    let constant = any.then(|| either(a.constant.as_ref(), b.constant.as_ref()));
    Row { coefficients, constant }
}

impl<Leaf: Ord + Copy> Row<Leaf> {
    fn reads(&self) -> bool {
        !self.coefficients.is_empty()
    }

    fn map(self, g: &mut Graph, mut f: impl FnMut(&mut Graph, NodeId) -> NodeId) -> Row<Leaf> {
        let coefficients = self.coefficients.into_iter().map(|(state, x)| (state, f(g, x))).collect();
        Row { coefficients, constant: self.constant.map(|x| f(g, x)) }
    }

    /// The sum or difference.
    fn plus(mut self, g: &mut Graph, op: BinaryOp, other: &Row<Leaf>) -> Row<Leaf> {
        let mut join = |a: Option<NodeId>, b: NodeId| match a {
            Some(a) => g.binary(op, a, b),
            None if op == BinaryOp::Sub => g.unary(UnaryOp::Neg, b),
            None => b,
        };
        for (&state, &b) in &other.coefficients {
            let joined = join(self.coefficients.get(&state).copied(), b);
            self.coefficients.insert(state, joined);
        }
        self.constant = other.constant.map_or(self.constant, |b| Some(join(self.constant, b)));
        self
    }
}
