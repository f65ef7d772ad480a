//! The value of an expression that is known before a run.

use super::{Condition, Model, Node, NodeId};
use crate::operators::{Value, eval_binary, eval_unary};
use rustc_hash::FxHashMap as HashMap;

/// Why an expression has no value before a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EvalError {
    /// It reads a state, the time, the cell's index, a draw or a file.
    NotUniform,
    /// It reads itself.
    Cyclic,
}

/// The value (in canonical units) of an expression of uniform parameters.
pub fn evaluate(model: &Model, root: NodeId) -> Result<Value, EvalError> {
    let mut memo = HashMap::default();
    value(model, root, &mut memo, 0)
}

/// The intervals (in ms) at which the noise that a model reads is drawn anew.
pub fn noise_intervals(model: &Model) -> Vec<Result<Value, EvalError>> {
    let read = model.states.iter().map(|s| s.rate).chain(model.records.iter().map(|r| r.value));
    let read = read.chain(model.cables.iter().flat_map(|c| &c.currents).map(|current| current.outward));
    let read = read.chain(model.jumps.iter().map(|j| j.amount)).chain(model.modulators.iter().map(|m| m.amount));
    let conditions = model.populations.iter().filter_map(|p| match p.spike.as_ref()?.condition {
        Condition::Crosses(..) => None,
        Condition::When(condition) => Some(condition),
    });
    let read = read.chain(conditions);
    let interval = |node: NodeId| match model.graph.node(node) {
        // What is drawn in every step is drawn more often where steps are shorter.
        Node::Noise(_, every) if model.graph.node(every) == Node::StepLength => Some(Ok(Value::Real(0.0))),
        Node::Noise(_, every) => Some(evaluate(model, every)),
        Node::Const(..)
        | Node::Bool(_)
        | Node::Param(_)
        | Node::State(_)
        | Node::Next(_)
        | Node::Slope(..)
        | Node::Point(..)
        | Node::Refractory(_)
        | Node::Time
        | Node::StepTime
        | Node::StepLength
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
        | Node::Unary(..)
        | Node::Binary(..)
        | Node::Select(..)
        | Node::Draw(..)
        | Node::Data(_)
        | Node::Series(..) => None,
        // They are drawn in every step.
        Node::Events(..) | Node::White(_) => Some(Ok(Value::Real(0.0))),
    };
    model.graph.reachable(read).into_iter().filter_map(interval).collect()
}

fn value(model: &Model, id: NodeId, memo: &mut HashMap<NodeId, Value>, depth: usize) -> Result<Value, EvalError> {
    // Parameters refer to each other at most as often as there are parameters.
    if depth > model.params.len() {
        return Err(EvalError::Cyclic);
    }
    for n in model.graph.reachable([id]) {
        if memo.contains_key(&n) {
            continue;
        }
        let at = |n: NodeId| memo[&n];
        let ill_typed = EvalError::NotUniform;
        let v = match model.graph.node(n) {
            Node::Const(bits, _) => Value::Real(f64::from_bits(bits)),
            Node::Bool(b) => Value::Mask(b),
            Node::Param(p) => {
                if model.param(p).population.is_some() {
                    return Err(EvalError::NotUniform);
                }
                value(model, model.param(p).value, memo, depth + 1)?
            }
            Node::Unary(op, a) => eval_unary(op, at(a)).ok_or(ill_typed)?,
            Node::Binary(op, a, b) => eval_binary(op, at(a), at(b)).ok_or(ill_typed)?,
            Node::Select(c, a, b) => match at(c) {
                Value::Mask(true) => at(a),
                Value::Mask(false) => at(b),
                Value::Real(_) | Value::Single(_) => return Err(ill_typed),
            },
            Node::StepLength => Value::Real(model.dt),
            Node::State(_)
            | Node::Next(_)
            | Node::Slope(..)
            | Node::Point(..)
            | Node::Refractory(_)
            | Node::Time
            | Node::StepTime
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
            | Node::White(_)
            | Node::Events(..) => return Err(EvalError::NotUniform),
        };
        memo.insert(n, v);
    }
    Ok(memo[&id])
}
