//! What a long step could pass by: what changes with the time in another way than a straight line, and conditions that states fulfil for a while.
//!
//! In come the expressions of a population; out go times at which steps end because of the time alone, and, for a step that was tried, how far none of the
//! conditions has changed. Both are looked for on the grid of the run's `dt`: what begins and ends between two of its points may be missed.
//! Never true here: a line is looked for ([`super::switches`] knows where lines meet).

use super::tape::{Changes, Ground, Scene, Tape, changes, is_instant, jumps};
use crate::engine::EngineError;
use crate::ode::{Model, Node, NodeId};
use crate::operators::{BinaryOp, UnaryOp};
use rustc_hash::FxHashMap as HashMap;

/// A step ends where something has moved by this part of the way between its least and its greatest value.
const PART: f64 = 1.0 / 16.0;

/// How an expression of the time goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Shape {
    /// It stays between jumps.
    Steps,
    /// As a line, between jumps and bends.
    Line,
    /// In another way.
    Curve,
}

/// The shapes of all expressions of the time among some.
fn shapes(model: &Model, order: &[NodeId], known: &HashMap<NodeId, Changes>) -> HashMap<NodeId, Shape> {
    let mut shapes: HashMap<NodeId, Shape> = HashMap::default();
    for &id in order.iter().filter(|id| known[id] == Changes::InTime) {
        let of = |id: NodeId| shapes.get(&id).copied().unwrap_or(Shape::Steps);
        let shape = match model.graph.node(id) {
            Node::Time | Node::StepTime => Shape::Line,
            Node::Unary(UnaryOp::Neg, x) => of(x),
            Node::Unary(UnaryOp::Not | UnaryOp::Floor | UnaryOp::Ceil, _) => Shape::Steps,
            Node::Unary(UnaryOp::Abs, x) => of(x),
            Node::Unary(_, x) if of(x) == Shape::Steps => Shape::Steps,
            Node::Binary(BinaryOp::Add, x, y) if is_instant(model, x, y) => Shape::Line,
            Node::Binary(op, x, y) => match op {
                BinaryOp::Lt | BinaryOp::Le | BinaryOp::Gt | BinaryOp::Ge | BinaryOp::Eq | BinaryOp::Ne => Shape::Steps,
                BinaryOp::And | BinaryOp::Or => Shape::Steps,
                BinaryOp::Add | BinaryOp::Sub | BinaryOp::Min | BinaryOp::Max => of(x).max(of(y)),
                BinaryOp::Mul if (of(x), of(y)) == (Shape::Line, Shape::Line) => Shape::Curve,
                BinaryOp::Mul => of(x).max(of(y)),
                BinaryOp::Div if of(y) == Shape::Steps => of(x),
                BinaryOp::Pow | BinaryOp::Poisson if of(x).max(of(y)) == Shape::Steps => Shape::Steps,
                BinaryOp::Div | BinaryOp::Pow | BinaryOp::Poisson => Shape::Curve,
            },
            Node::Select(_, x, y) => of(x).max(of(y)),
            _ => Shape::Curve,
        };
        shapes.insert(id, shape);
    }
    shapes
}

/// The times, in order, at which steps have to end because something that depends on the time alone, and is no line, jumps or has moved far.
pub fn times(model: &Model, ground: &Ground, population: usize, roots: &[NodeId]) -> Result<Vec<f64>, EngineError> {
    let known = changes(model, roots);
    let order = model.graph.reachable(roots.iter().copied());
    let shapes = shapes(model, &order, &known);
    let is_curve = |id: NodeId| shapes.get(&id) == Some(&Shape::Curve);
    let operands = |id: NodeId| model.graph.operands(id);
    let jumping = order.iter().copied().filter(|&id| known[&id] == Changes::InTime && jumps(model.graph.node(id)));
    let jumping: Vec<NodeId> = jumping.filter(|&id| operands(id).into_iter().any(is_curve)).collect();
    // What states are changed by, or what is compared with them.
    let of_states = order.iter().copied().filter(|id| known[id] == Changes::Always).flat_map(operands);
    let mut moving: Vec<NodeId> = of_states.chain(roots.iter().copied()).filter(|&id| is_curve(id)).collect();
    moving.sort_unstable();
    moving.dedup();
    if jumping.is_empty() && moving.is_empty() {
        return Ok(Vec::new());
    }
    let count = jumping.len();
    let all: Vec<NodeId> = jumping.into_iter().chain(moving).collect();
    let mut tape = Tape::new(model, ground, population, &all)?;
    let mut at = |t: f64| tape.values(&Scene { y: &[], t, switched: t, junctions: &[], arrived: &[], across: &[] });
    let grid = (0..=(model.duration / model.dt).ceil() as u64).map(|step| step as f64 * model.dt);
    let mut ranges = vec![(f64::INFINITY, f64::NEG_INFINITY); all.len()];
    for t in grid.clone() {
        for (range, values) in ranges.iter_mut().zip(at(t)) {
            *range = values.iter().fold(*range, |(low, high), x| (low.min(*x), high.max(*x)));
        }
    }
    let far: Vec<f64> = ranges.iter().map(|(low, high)| PART * (high - low)).collect();
    let mut found: Vec<f64> = Vec::new();
    let (mut before, mut last) = (0.0, at(0.0));
    let mut left = last.clone();
    for t in grid.skip(1) {
        let now = at(t);
        for root in 0..count {
            for element in (0..now[root].len()).filter(|&element| now[root][element] != last[root][element]) {
                // The first time at which it is no longer what it was.
                let (mut low, mut high) = (before, t);
                while high - low > 1e-13 * high.max(1.0) {
                    let middle = 0.5 * (low + high);
                    let same = at(middle)[root][element] == last[root][element];
                    *(if same { &mut low } else { &mut high }) = middle;
                }
                found.push(high);
            }
        }
        let moved = |root: usize| now[root].iter().zip(&left[root]).any(|(now, left)| (now - left).abs() > far[root]);
        if (count..all.len()).any(moved) {
            found.push(t);
            left.clone_from(&now);
        }
        (before, last) = (t, now);
    }
    found.sort_by(f64::total_cmp);
    found.dedup();
    Ok(found)
}

/// Conditions that states fulfil.
#[derive(Debug, Clone)]
pub struct Conditions {
    tape: Tape,
}

impl Conditions {
    /// Those of some expressions of a population; none if there are none.
    pub fn new(
        model: &Model,
        ground: &Ground,
        population: usize,
        roots: &[NodeId],
    ) -> Result<Option<Conditions>, EngineError> {
        let known = changes(model, roots);
        let reads_others = |id: NodeId| {
            let read = model.graph.reachable([id]);
            read.into_iter().any(|id| matches!(model.graph.node(id), Node::Junction(..) | Node::Arrived(..) | Node::Dv))
        };
        let mut all = model.graph.reachable(roots.iter().copied());
        all.retain(|&id| known[&id] == Changes::Always && jumps(model.graph.node(id)) && !reads_others(id));
        let tape = (!all.is_empty()).then(|| Tape::new(model, ground, population, &all)).transpose()?;
        Ok(tape.map(|tape| Conditions { tape }))
    }

    /// What is true at a time.
    pub fn at(&mut self, y: &[f64], t: f64, switched: f64) -> Vec<Vec<f64>> {
        self.tape.values(&Scene { y, t, switched, junctions: &[], arrived: &[], across: &[] })
    }
}
