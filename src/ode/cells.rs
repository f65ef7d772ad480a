//! Values that differ from cell to cell, before the first step.
//!
//! In comes an expression of parameters, the index, draws and data files; out goes its value for every cell of a population.
//! Never true here: a state or the time is read, or memory grows with more than the cells and the expression apart.

use super::{Model, Node, NodeId, Param, evaluate};
use crate::operators::rows::{Column, Step, Steps};
use crate::operators::{BinaryOp, Distribution, UnaryOp, Value};
use crate::runtime::rng::Draw;
use rustc_hash::FxHashMap as HashMap;
use std::borrow::Cow;

/// The values of an expression for so many cells, which are those of a population if one is given; `data` gives the numbers of a file for the cells
/// of a population. `None` if it reads a state or the time, or data that are not there.
pub fn values(
    model: &Model,
    root: NodeId,
    population: Option<usize>,
    cells: usize,
    data: &dyn Fn(Option<usize>, u32) -> Option<Vec<f64>>,
) -> Option<Vec<f64>> {
    let mut program = Program { model, population, cells, data, steps: Steps::default(), places: HashMap::default() };
    program.add(root, 0)?;
    let asked = program.places[&root];
    let mut column = Column::new(&program.steps, asked);
    let mut all = Vec::with_capacity(cells);
    column.reals(0..cells, |_, x| all.push(x))?;
    Some(all)
}

/// What is computed for each cell, operands first, parameters before what reads them.
struct Program<'a> {
    model: &'a Model,
    population: Option<usize>,
    cells: usize,
    data: &'a dyn Fn(Option<usize>, u32) -> Option<Vec<f64>>,
    steps: Steps<'a>,
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
                if let Some(values) = self.of_whole_cells(model.param(p)) {
                    let place = self.steps.push(Step::Data(Cow::Owned(values?)));
                    self.places.insert(id, place);
                    continue;
                }
                self.add(model.param(p).value, depth + 1)?;
                self.places.insert(id, self.places[&model.param(p).value]);
                continue;
            }
            let at = |n: NodeId| self.places[&n];
            let step = match model.graph.node(id) {
                Node::Const(bits, _) => Step::Same(Value::Real(f64::from_bits(bits))),
                Node::Bool(b) => Step::Same(Value::Mask(b)),
                Node::Index => Step::Index,
                Node::Unary(op, a) => Step::Unary(op, at(a)),
                Node::Binary(op, a, b) => Step::Binary(op, at(a), at(b)),
                Node::Select(c, a, b) => Step::Select(at(c), at(a), at(b)),
                Node::Draw(distribution, stream) => {
                    let draw = Draw { seed: model.seed, stream: u32::try_from(stream).ok()? };
                    let first = self.steps.push(Step::Same(Value::Real(0.0)));
                    Step::Draw(distribution, draw, first)
                }
                Node::Measure(measure) => {
                    Step::Data(Cow::Owned(model.measures(self.population?, measure, self.cells)?))
                }
                Node::Data(file) => Step::Data(Cow::Owned((self.data)(self.population, file)?)),
                Node::Param(_)
                | Node::State(_)
                | Node::Next(_)
                | Node::Time
                | Node::StepTime
                | Node::StepLength
                | Node::White(_)
                | Node::Dv
                | Node::Slope(..)
                | Node::Point(..)
                | Node::Refractory(_)
                | Node::Junction(..)
                | Node::Conductance(_)
                | Node::Arrived(..)
                | Node::Amount(_)
                | Node::Since
                | Node::Beyond
                | Node::Outward(_)
                | Node::Series(..)
                | Node::Noise(..)
                | Node::Events(..) => return None,
            };
            let place = self.steps.push(step);
            self.places.insert(id, place);
        }
        Some(())
    }
}

impl Program<'_> {
    /// What the cells have that the elements belong to, for each element; `None` of what is not a parameter of theirs.
    fn of_whole_cells(&self, param: &Param) -> Option<Option<Vec<f64>>> {
        let (population, owner) = (self.population?, param.population?);
        if owner == population || owner != self.model.cells_of(population) {
            return None;
        }
        let each = self.model.elements_per_cell(population);
        let own = values(self.model, param.value, Some(owner), self.cells / each, self.data);
        Some(own.map(|own| own.iter().flat_map(|&x| std::iter::repeat_n(x, each)).collect()))
    }
}

/// No cell has a smaller value, whatever is drawn or read from files; negative infinity where nothing is known.
pub fn least(model: &Model, root: NodeId) -> f64 {
    bounds(model, root).0
}

/// Is it sure that all cells have finite values, as long as they are no larger than numbers can be: are they made of finite numbers without quotients by what
/// may be 0, powers, roots and logarithms?
pub fn is_finite(model: &Model, root: NodeId) -> bool {
    let is_known = |n: NodeId| matches!(evaluate(model, n), Ok(Value::Real(x)) if x.is_finite() && x != 0.0);
    model.graph.reachable([root]).into_iter().all(|id| match model.graph.node(id) {
        Node::Const(bits, _) => f64::from_bits(bits).is_finite(),
        Node::Param(p) => is_known(model.param(p).value) || is_finite(model, model.param(p).value),
        Node::Binary(BinaryOp::Div, _, b) => is_known(b),
        Node::Binary(BinaryOp::Pow, ..) => false,
        Node::Unary(op, _) => {
            matches!(op, UnaryOp::Neg | UnaryOp::Abs | UnaryOp::Floor | UnaryOp::Ceil | UnaryOp::Not | UnaryOp::Exp)
        }
        _ => true,
    })
}

/// The least and the largest value of a number.
fn bounds(model: &Model, root: NodeId) -> (f64, f64) {
    const ALL: (f64, f64) = (f64::NEG_INFINITY, f64::INFINITY);
    let mut known: HashMap<NodeId, (f64, f64)> = HashMap::default();
    for id in model.graph.reachable([root]) {
        let of = |n: NodeId| known.get(&n).copied().unwrap_or(ALL);
        let around = |values: [f64; 4]| {
            let ends = values.into_iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(a, b), x| (a.min(x), b.max(x)));
            if values.iter().any(|x| x.is_nan()) { ALL } else { ends }
        };
        let found = match model.graph.node(id) {
            Node::Const(bits, _) => (f64::from_bits(bits), f64::from_bits(bits)),
            Node::Param(p) => match evaluate(model, model.param(p).value) {
                Ok(Value::Real(x)) => (x, x),
                Ok(Value::Single(_) | Value::Mask(_)) | Err(_) => ALL,
            },
            Node::Draw(Distribution::Uniform, _) => (0.0, 1.0),
            Node::Draw(Distribution::Exponential, _) => (0.0, f64::INFINITY),
            Node::Unary(UnaryOp::Neg, a) => (-of(a).1, -of(a).0),
            Node::Binary(op, a, b) => {
                let ((a, b), (c, d)) = (of(a), of(b));
                match op {
                    BinaryOp::Add => around([a + c, a + c, b + d, b + d]),
                    BinaryOp::Sub => around([a - d, a - d, b - c, b - c]),
                    BinaryOp::Mul => around([a * c, a * d, b * c, b * d]),
                    BinaryOp::Min => (a.min(c), b.min(d)),
                    BinaryOp::Max => (a.max(c), b.max(d)),
                    BinaryOp::Div
                    | BinaryOp::Pow
                    | BinaryOp::Lt
                    | BinaryOp::Le
                    | BinaryOp::Gt
                    | BinaryOp::Ge
                    | BinaryOp::Eq
                    | BinaryOp::Ne
                    | BinaryOp::And
                    | BinaryOp::Or
                    | BinaryOp::Poisson => ALL,
                }
            }
            Node::Select(_, a, b) => (of(a).0.min(of(b).0), of(a).1.max(of(b).1)),
            Node::Bool(_)
            | Node::State(_)
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
            | Node::Unary(..)
            | Node::Draw(Distribution::Normal, _)
            | Node::Data(_)
            | Node::Series(..)
            | Node::Noise(..)
            | Node::Events(..) => ALL,
        };
        known.insert(id, found);
    }
    known.get(&root).copied().unwrap_or(ALL)
}
