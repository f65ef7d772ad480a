//! When what depends on the time alone jumps or bends: pulses, trains, staircases, samples of files.
//!
//! In come expressions; out goes, for a time, the next one at which one of them may not be smooth.
//! Never true here: a state is looked at. (Where a state makes something jump, the error control finds it.)
//!
//! Every expression is followed as a straight line from the time on, as far as it is one: a comparison of two lines changes where they meet, `floor` where a
//! line reaches a whole number. What is no line (`sin`) may be compared, too: [`super::ahead`] looks for these places.

use super::tape::{Changes, Ground, Tape, changes, is_comparison, is_instant};
use crate::engine::EngineError;
use crate::ode::{Model, Node, NodeId};
use crate::operators::{BinaryOp, UnaryOp, Value, eval_binary, eval_series, eval_unary};
use rustc_hash::FxHashMap as HashMap;

/// Times that are nearer to each other than this (ms, or so much of the time) are one.
const SAME: f64 = 1e-13;

/// The expressions of a population that depend on the time alone.
#[derive(Debug, Clone)]
pub struct Switches {
    nodes: Vec<(NodeId, Node)>,
    /// What they read that does not change, for every element.
    still: HashMap<NodeId, Vec<f64>>,
    /// Elements that differ in it; one, if all are the same.
    elements: usize,
    series: Vec<Vec<(f64, f64)>>,
}

/// A line from a time on.
#[derive(Debug, Clone, Copy)]
struct Line {
    value: f64,
    /// None if it is no line.
    slope: Option<f64>,
}

impl Switches {
    /// Those of some expressions; none if nothing of them may jump.
    pub fn new(
        model: &Model,
        ground: &Ground,
        population: usize,
        roots: &[NodeId],
    ) -> Result<Option<Switches>, EngineError> {
        let known = changes(model, roots);
        let order = model.graph.reachable(roots.iter().copied());
        let timed: Vec<NodeId> = order.iter().copied().filter(|id| known[id] == Changes::InTime).collect();
        let jumps = |id: &NodeId| match model.graph.node(*id) {
            Node::Series(..) => true,
            Node::Unary(op, _) => matches!(op, UnaryOp::Floor | UnaryOp::Ceil | UnaryOp::Abs),
            Node::Binary(op, ..) => is_comparison(op) || matches!(op, BinaryOp::Min | BinaryOp::Max),
            _ => false,
        };
        if !timed.iter().any(jumps) {
            return Ok(None);
        }
        let mut read: Vec<NodeId> = timed.iter().flat_map(|id| model.graph.operands(*id)).collect();
        read.retain(|id| known[id] == Changes::Never);
        read.sort_unstable();
        read.dedup();
        let nothing = super::tape::Scene { y: &[], t: 0.0, switched: 0.0, junctions: &[], arrived: &[], across: &[] };
        let values = Tape::new(model, ground, population, &read)?.values(&nothing);
        let differ = values.iter().any(|values| values.windows(2).any(|pair| pair[0] != pair[1]));
        let elements = if differ { ground.sizes[population] } else { ground.sizes[population].min(1) };
        // The instant is looked at apart.
        let node = |id: NodeId| match model.graph.node(id) {
            Node::Binary(BinaryOp::Add, x, y) if is_instant(model, x, y) => (id, Node::StepTime),
            node => (id, node),
        };
        Ok(Some(Switches {
            nodes: timed.into_iter().map(node).collect(),
            still: read.into_iter().zip(values).collect(),
            elements,
            series: ground.series.clone(),
        }))
    }

    /// The first time after `t` at which something may not be smooth.
    pub fn after(&self, t: f64) -> f64 {
        (0..self.elements).map(|element| self.of_element(element, t)).fold(f64::INFINITY, f64::min)
    }

    /// The same of one element.
    pub fn of_element(&self, element: usize, t: f64) -> f64 {
        let same = SAME * t.abs().max(1.0);
        let mut next = f64::INFINITY;
        let mut lines: HashMap<NodeId, Line> = HashMap::default();
        let element = element.min(self.elements.saturating_sub(1));
        for &(id, node) in &self.nodes {
            let of = |id: NodeId| {
                let still = || Line { value: self.still[&id][element], slope: Some(0.0) };
                lines.get(&id).copied().unwrap_or_else(still)
            };
            let mut meets = |distance: f64, slope: f64| {
                let at = t - distance / slope;
                if at > t + same && at < next {
                    next = at;
                }
            };
            let line = match node {
                Node::Time | Node::StepTime => Line { value: t, slope: Some(1.0) },
                Node::Unary(op, x) => {
                    let x = of(x);
                    match (op, x.slope) {
                        (UnaryOp::Neg, slope) => Line { value: -x.value, slope: slope.map(|s| -s) },
                        (UnaryOp::Not, _) => Line { value: 1.0 - x.value, slope: Some(0.0) },
                        (UnaryOp::Floor, Some(slope)) if slope != 0.0 => {
                            let whole = settled(x.value, slope).floor();
                            meets(x.value - (whole + if slope > 0.0 { 1.0 } else { 0.0 }), slope);
                            Line { value: whole, slope: Some(0.0) }
                        }
                        (UnaryOp::Ceil, Some(slope)) if slope != 0.0 => {
                            let whole = settled(x.value, slope).ceil();
                            meets(x.value - (whole - if slope > 0.0 { 0.0 } else { 1.0 }), slope);
                            Line { value: whole, slope: Some(0.0) }
                        }
                        (UnaryOp::Abs, Some(slope)) if slope != 0.0 => {
                            meets(x.value, slope);
                            // On which side it is from now on.
                            let side = if x.value.abs() <= same * slope.abs() { slope } else { x.value };
                            Line { value: x.value.abs(), slope: Some(if side < 0.0 { -slope } else { slope }) }
                        }
                        (_, slope) => {
                            let value = eval_unary(op, Value::Real(x.value)).and_then(Value::real);
                            let slope = slope.filter(|s| *s == 0.0);
                            Line { value: value.unwrap_or(f64::NAN), slope }
                        }
                    }
                }
                Node::Binary(op, x, y) => {
                    let (x, y) = (of(x), of(y));
                    let apart = x.slope.zip(y.slope).map(|(a, b)| a - b);
                    let distance = x.value - y.value;
                    let near = SAME * (x.value.abs() + y.value.abs());
                    // Which is more, from now on.
                    let side = if distance.abs() <= near { apart.unwrap_or(0.0) } else { distance };
                    if let Some(slope) = apart.filter(|slope| *slope != 0.0)
                        && (is_comparison(op) || matches!(op, BinaryOp::Min | BinaryOp::Max))
                    {
                        meets(distance, slope);
                    }
                    let truth = |x: bool| Line { value: f64::from(x), slope: Some(0.0) };
                    match op {
                        BinaryOp::Add => {
                            Line { value: x.value + y.value, slope: x.slope.zip(y.slope).map(|(a, b)| a + b) }
                        }
                        BinaryOp::Sub => Line { value: distance, slope: apart },
                        BinaryOp::Mul => {
                            let slope = match (x.slope, y.slope) {
                                (Some(a), Some(0.0)) => Some(a * y.value),
                                (Some(0.0), Some(b)) => Some(b * x.value),
                                _ => None,
                            };
                            Line { value: x.value * y.value, slope }
                        }
                        BinaryOp::Div => {
                            let slope = x.slope.zip(y.slope).filter(|s| s.1 == 0.0).map(|s| s.0 / y.value);
                            Line { value: x.value / y.value, slope }
                        }
                        BinaryOp::Lt => truth(side < 0.0),
                        BinaryOp::Le => truth(side <= 0.0),
                        BinaryOp::Gt => truth(side > 0.0),
                        BinaryOp::Ge => truth(side >= 0.0),
                        BinaryOp::Eq => truth(side == 0.0),
                        BinaryOp::Ne => truth(side != 0.0),
                        BinaryOp::And => truth(x.value != 0.0 && y.value != 0.0),
                        BinaryOp::Or => truth(x.value != 0.0 || y.value != 0.0),
                        BinaryOp::Min => {
                            if side <= 0.0 {
                                x
                            } else {
                                y
                            }
                        }
                        BinaryOp::Max => {
                            if side >= 0.0 {
                                x
                            } else {
                                y
                            }
                        }
                        BinaryOp::Pow | BinaryOp::Poisson => {
                            let value = eval_binary(op, Value::Real(x.value), Value::Real(y.value));
                            let slope = x.slope.zip(y.slope).filter(|s| *s == (0.0, 0.0)).map(|_| 0.0);
                            Line { value: value.and_then(Value::real).unwrap_or(f64::NAN), slope }
                        }
                    }
                }
                Node::Select(c, x, y) => {
                    if of(c).value != 0.0 {
                        of(x)
                    } else {
                        of(y)
                    }
                }
                Node::Series(file, x) => {
                    let (x, samples) = (of(x), &self.series[file as usize]);
                    if let Some(slope) = x.slope.filter(|s| *s != 0.0) {
                        let at = settled_in(samples, x.value, slope);
                        let knots = [at, at.wrapping_sub(1), at + 1].into_iter().filter_map(|k| samples.get(k));
                        knots.for_each(|&(knot, _)| meets(x.value - knot, slope));
                    }
                    Line { value: eval_series(samples, x.value).unwrap_or(f64::NAN), slope: None }
                }
                _ => Line { value: f64::NAN, slope: None },
            };
            lines.insert(id, line);
        }
        next
    }
}

/// A number that is going on from here: nearly whole ones are past what they are near to.
fn settled(x: f64, slope: f64) -> f64 {
    let whole = x.round();
    if (x - whole).abs() <= SAME * x.abs().max(1.0) { whole + 0.5 * slope.signum() } else { x }
}

/// The sample after which, going on, a time is.
fn settled_in(samples: &[(f64, f64)], x: f64, slope: f64) -> usize {
    let beyond = x + SAME * x.abs().max(1.0) * slope.signum();
    samples.partition_point(|&(at, _)| at <= beyond)
}
