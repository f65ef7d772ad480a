//! Values that differ from cell to cell, before the first step.
//!
//! In comes an expression of parameters, the index, draws and data files; out goes its value for every cell of a population.
//! Never true here: a state or the time is read, or memory grows with more than the cells and the expression apart.

use super::{Model, Node, NodeId};
use crate::operators::{BinaryOp, Distribution, UnaryOp, Value, eval_binary, eval_unary};
use crate::runtime::rng::Draw;
use std::collections::HashMap;

/// A node, its operands by their places among those before it.
enum Step {
    Value(Value),
    Index,
    Same(usize),
    Unary(UnaryOp, usize),
    Binary(BinaryOp, usize, usize),
    Select(usize, usize, usize),
    Draw(Distribution, Draw),
    Data(Vec<f64>),
}

/// The values of an expression for so many cells; `data` gives the numbers of a file. `None` if it reads a state or the time, or data
/// that are not there.
pub fn values(model: &Model, root: NodeId, cells: usize, data: &dyn Fn(u32) -> Option<Vec<f64>>) -> Option<Vec<f64>> {
    let mut program = Program { model, data, steps: Vec::new(), places: HashMap::new() };
    program.add(root, 0)?;
    let asked = program.places[&root];
    let mut now: Vec<Value> = Vec::with_capacity(program.steps.len());
    let mut out = Vec::with_capacity(cells);
    for cell in 0..cells {
        now.clear();
        for step in &program.steps {
            let value = match step {
                Step::Value(value) => *value,
                Step::Index => Value::Real(cell as f64),
                Step::Same(a) => now[*a],
                Step::Unary(op, a) => eval_unary(*op, now[*a])?,
                Step::Binary(op, a, b) => eval_binary(*op, now[*a], now[*b])?,
                Step::Select(c, a, b) => now[if now[*c].mask()? { *a } else { *b }],
                Step::Draw(distribution, draw) => Value::Real(distribution.draw(*draw, u32::try_from(cell).ok()?, 0)),
                Step::Data(values) => Value::Real(*values.get(cell)?),
            };
            now.push(value);
        }
        out.push(now[asked].real()?);
    }
    Some(out)
}

/// What is computed for each cell, operands first, parameters before what reads them.
struct Program<'a> {
    model: &'a Model,
    data: &'a dyn Fn(u32) -> Option<Vec<f64>>,
    steps: Vec<Step>,
    places: HashMap<NodeId, usize>,
}

impl Program<'_> {
    fn add(&mut self, root: NodeId, depth: usize) -> Option<()> {
        let model = self.model;
        // Parameters refer to each other at most as often as there are parameters.
        if depth > model.params.len() {
            return None;
        }
        for id in model.graph.reachable([root]) {
            if self.places.contains_key(&id) {
                continue;
            }
            if let Node::Param(p) = model.graph.node(id) {
                self.add(model.param(p).value, depth + 1)?;
            }
            let at = |n: NodeId| self.places[&n];
            let step = match model.graph.node(id) {
                Node::Const(bits, _) => Step::Value(Value::Real(f64::from_bits(bits))),
                Node::Bool(b) => Step::Value(Value::Mask(b)),
                Node::Index => Step::Index,
                Node::Param(p) => Step::Same(at(model.param(p).value)),
                Node::Unary(op, a) => Step::Unary(op, at(a)),
                Node::Binary(op, a, b) => Step::Binary(op, at(a), at(b)),
                Node::Select(c, a, b) => Step::Select(at(c), at(a), at(b)),
                Node::Draw(distribution, stream) => {
                    Step::Draw(distribution, Draw { seed: model.seed, stream: u32::try_from(stream).ok()? })
                }
                Node::Data(file) => Step::Data((self.data)(file)?),
                Node::State(_)
                | Node::Next(_)
                | Node::Time
                | Node::StepTime
                | Node::StepLength
                | Node::Dv
                | Node::Slope(..)
                | Node::Point(..)
                | Node::Junction(..)
                | Node::Arrived(_)
                | Node::Series(..)
                | Node::Noise(..)
                | Node::Events(..) => return None,
            };
            self.places.insert(id, self.steps.len());
            self.steps.push(step);
        }
        Some(())
    }
}
