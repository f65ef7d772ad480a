//! What a file of results says about a run besides samples and spikes: populations, and the values of parameters.
//!
//! In come a model with all settings applied, its extent and its records; out go [`Contents`].
//! Never true here: a value that is not known before the first step.

use super::extent::Extent;
use super::records::Records;
use crate::data;
use crate::ode::{self, Model, Node, NodeId};
use crate::operators::{Distribution, Value, eval_binary, eval_unary};
use crate::results::{Contents, Parameter, ParameterValues, Population, SeriesHead, TrainHead};
use crate::runtime::rng;
use std::collections::HashMap;

/// What a file of results of a run holds that begins after `start` steps; `single`: its samples are in single precision.
pub fn contents(model: &Model, extent: &Extent, records: &Records, start: u64, single: bool) -> Contents {
    let population = |(p, cells): (&ode::Population, usize)| Population {
        name: p.name.clone(),
        cells: extent.cells[cells],
        // NumPy's last index is the fastest.
        shape: extent.grids[cells].iter().rev().copied().collect(),
    };
    let head = |r: &super::Record| SeriesHead {
        name: r.name.clone(),
        population: r.population.clone(),
        unit: r.unit.name.clone(),
        cells: r.cells.clone().map(|cell| cell as u64).collect(),
        samples: r.samples(start).1,
    };
    Contents {
        series: records.series.iter().map(head).collect(),
        trains: records.trains.iter().map(|t| TrainHead { population: t.population.clone(), cells: t.cells }).collect(),
        populations: model.populations.iter().zip(0..).map(population).collect(),
        parameters: parameters(model, extent),
        single,
    }
}

/// The parameters of a model. Hidden ones have a `'` in their names, which no name of a user has.
fn parameters(model: &Model, extent: &Extent) -> Vec<Parameter> {
    let mut files = HashMap::new();
    let mut known = Vec::new();
    for p in model.params.iter().filter(|p| !p.name.contains('\'')) {
        let show = |x: f64| if p.unit.exponent == 0 { x } else { p.unit.show(x) };
        let values = match p.population {
            None => match ode::evaluate(model, p.value) {
                Ok(Value::Real(x)) => ParameterValues::One(rounded(show(x))),
                Ok(Value::Single(_) | Value::Mask(_)) | Err(_) => continue,
            },
            Some(population) => {
                let cells = extent.cells[population];
                let mut evaluation = Evaluation { model, cells, files: &mut files, values: HashMap::new() };
                let Some(column) = evaluation.column(p.value, 0) else { continue };
                let real = |cell: usize| column.at(cell).real().map(show);
                let Some(values) = (0..cells).map(real).collect() else { continue };
                ParameterValues::PerCell { population: model.populations[population].name.clone(), values }
            }
        };
        known.push(Parameter { name: p.name.clone(), unit: p.unit.name.clone(), values });
    }
    known
}

/// To 15 digits, which hide the rounding of units.
fn rounded(x: f64) -> f64 {
    format!("{x:.14e}").parse().unwrap_or(x)
}

/// A value for all cells, or for each.
#[derive(Clone)]
enum Column {
    All(Value),
    Each(std::rc::Rc<Vec<Value>>),
}

impl Column {
    fn at(&self, cell: usize) -> Value {
        match self {
            Column::All(value) => *value,
            Column::Each(values) => values[cell],
        }
    }
}

/// Computes expressions of the cells of a population that nothing but parameters, indices, draws and files are read by.
struct Evaluation<'a> {
    model: &'a Model,
    cells: usize,
    files: &'a mut HashMap<(u32, usize), Option<Column>>,
    values: HashMap<NodeId, Column>,
}

impl Evaluation<'_> {
    fn each(&self, f: impl Fn(usize) -> Option<Value>) -> Option<Column> {
        Some(Column::Each(std::rc::Rc::new((0..self.cells).map(f).collect::<Option<_>>()?)))
    }

    fn column(&mut self, root: NodeId, depth: usize) -> Option<Column> {
        // Parameters refer to each other at most as often as there are parameters.
        if depth > self.model.params.len() {
            return None;
        }
        for id in self.model.graph.reachable([root]) {
            if self.values.contains_key(&id) {
                continue;
            }
            let of = |n: NodeId| self.values.get(&n);
            let column = match self.model.graph.node(id) {
                Node::Const(bits, _) => Column::All(Value::Real(f64::from_bits(bits))),
                Node::Bool(b) => Column::All(Value::Mask(b)),
                Node::Param(p) => self.column(self.model.param(p).value, depth + 1)?,
                Node::Index => self.each(|cell| Some(Value::Real(cell as f64)))?,
                Node::Unary(op, a) => match of(a)? {
                    Column::All(a) => Column::All(eval_unary(op, *a)?),
                    a => self.each(|cell| eval_unary(op, a.at(cell)))?,
                },
                Node::Binary(op, a, b) => match (of(a)?, of(b)?) {
                    (Column::All(a), Column::All(b)) => Column::All(eval_binary(op, *a, *b)?),
                    (a, b) => self.each(|cell| eval_binary(op, a.at(cell), b.at(cell)))?,
                },
                Node::Select(c, a, b) => {
                    let (c, a, b) = (of(c)?, of(a)?, of(b)?);
                    self.each(|cell| Some(if c.at(cell).mask()? { a.at(cell) } else { b.at(cell) }))?
                }
                Node::Draw(distribution, stream) => {
                    let draw = rng::Draw { seed: self.model.seed, stream: u32::try_from(stream).ok()? };
                    self.each(|cell| {
                        let cell = u32::try_from(cell).ok()?;
                        Some(Value::Real(match distribution {
                            Distribution::Uniform => draw.uniform(cell, 0),
                            Distribution::Normal => draw.normal(cell, 0),
                            Distribution::Exponential => draw.exponential(cell, 0),
                        }))
                    })?
                }
                Node::Data(file) => {
                    let (model, cells) = (self.model, self.cells);
                    let read = || {
                        let values = data::per_cell(&model.data[file as usize], cells).ok()?;
                        Some(Column::Each(std::rc::Rc::new(values.into_iter().map(Value::Real).collect())))
                    };
                    self.files.entry((file, cells)).or_insert_with(read).clone()?
                }
                Node::State(_)
                | Node::Next(_)
                | Node::Time
                | Node::StepTime
                | Node::StepLength
                | Node::Dv
                | Node::Slope(..)
                | Node::Point(..)
                | Node::Junction(..)
                | Node::Series(..)
                | Node::Noise(..) => return None,
            };
            self.values.insert(id, column);
        }
        self.values.get(&root).cloned()
    }
}
