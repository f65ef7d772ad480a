//! What a file of results holds, as far as it is known before the run.
//!
//! In come names, units, cells and parameters; out go the arrays of the [layout](super) and what `meta` says about them.
//! Never true here: a sample.

use super::array::{Numbers, Plan};
use super::{LAYOUT, ResultsError};
use serde_json::{Map, Value, json};
use std::collections::HashSet;
use std::sync::Arc;

/// Everything about results but their samples, spikes and facts about the run.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Contents {
    /// The sampled variables, in the order they were recorded; names are unique.
    pub series: Vec<SeriesHead>,
    /// The recorded spikes, one train per population; populations are unique.
    pub trains: Vec<TrainHead>,
    /// All populations of the model.
    pub populations: Vec<Population>,
    /// The values of the parameters, as far as they are numbers before the first step.
    pub parameters: Vec<Parameter>,
    /// Are samples kept in single precision?
    pub single: bool,
}

/// One recorded variable.
#[derive(Debug, Clone, PartialEq)]
pub struct SeriesHead {
    /// What the model says is recorded, such as `squid.soma.v` or `squid[0..10].soma.v`.
    pub name: String,
    /// The population, such as `squid`.
    pub population: String,
    /// The unit of the values, such as `mV`; `1` for dimensionless.
    pub unit: String,
    /// The cells of the population that the columns belong to, shape `[index]`.
    pub cells: Vec<u64>,
    /// The compartments of a cell, if it is of the compartments of cells: a cell has a column for each, in this order. Or the contacts of a probe.
    pub compartments: Option<Arc<[Compartment]>>,
    /// How many samples there are in the end, if nothing stops the run; none if nobody knows that before.
    pub samples: Option<u64>,
}

/// A compartment of cells of which something is recorded, or a contact of a probe.
#[derive(Debug, Clone, PartialEq)]
pub struct Compartment {
    /// Its name, such as `dend(0.25)`.
    pub name: String,
    /// The way along the sections from the middle of the root section to its middle, in um.
    pub distance: f64,
    /// The next one on the way to the root, by its place among those that are recorded; none if there is none among them.
    pub before: Option<u64>,
    /// Where it is in space, in um, if it is a contact: it is called so, its distance is the way along the probe from the first one, and the one before it is next.
    pub at: Option<[f64; 3]>,
}

/// The spikes of a population.
#[derive(Debug, Clone, PartialEq)]
pub struct TrainHead {
    /// The population.
    pub population: String,
    /// How many cells it has, spiking or not.
    pub cells: usize,
}

/// A population.
#[derive(Debug, Clone, PartialEq)]
pub struct Population {
    /// Its name.
    pub name: String,
    /// How many cells it has.
    pub cells: usize,
    /// The grid that they stand on, in NumPy's order (the last index is the fastest); the product is the number of cells.
    pub shape: Vec<usize>,
}

/// A parameter and its values.
#[derive(Debug, Clone, PartialEq)]
pub struct Parameter {
    /// Its full name, such as `squid.soma.Na.gbar`.
    pub name: String,
    /// The unit of the values.
    pub unit: String,
    /// One number, or one for each cell of a population.
    pub values: ParameterValues,
}

/// The values of a parameter.
#[derive(Debug, Clone, PartialEq)]
pub enum ParameterValues {
    /// For the whole run.
    One(f64),
    /// For each cell, shape `[cell]`.
    PerCell {
        /// Whose cells.
        population: String,
        /// In their order.
        values: Vec<f64>,
    },
}

/// Endings and beginnings of names of arrays. None can be part of a name in a model, where `t`, `cell` and `param` are taken.
pub(super) const TIMES: &str = ".t";
pub(super) const CELLS: &str = ".cell";
pub(super) const SPIKE_TIMES: &str = ".spikes.t";
pub(super) const SPIKE_CELLS: &str = ".spikes.i";
pub(super) const PARAMETER: &str = "param.";
/// What the layout says in `meta`.
pub(super) const KEYS: [&str; 5] = ["layout", "units", "records", "populations", "parameters"];

impl Contents {
    /// The series whose times are also `t`: the one with the most samples, of those of which that is known.
    pub(super) fn clock(&self) -> Option<usize> {
        let most = self.series.iter().map(|head| head.samples).max()?;
        self.series.iter().position(|head| head.samples == most)
    }

    /// Parameters with a value for each cell.
    pub(super) fn per_cell(&self) -> impl Iterator<Item = (&Parameter, &[f64])> {
        self.parameters.iter().filter_map(|p| match &p.values {
            ParameterValues::PerCell { values, .. } => Some((p, values.as_slice())),
            ParameterValues::One(_) => None,
        })
    }

    /// The arrays: `t`; three for each series; one for each parameter with a value for each cell; two for each train.
    pub(super) fn arrays(&self) -> Vec<Plan> {
        let vector = |name: String, numbers, rows| Plan { name, numbers, columns: None, rows, shape: Vec::new() };
        let samples = self.clock().map_or(Some(0), |series| self.series[series].samples);
        let mut plans = vec![vector("t".into(), Numbers::F64, samples)];
        for head in &self.series {
            let numbers = if self.single { Numbers::F32 } else { Numbers::F64 };
            let (name, cells) = (head.name.clone(), head.cells.len() as u64);
            plans.push(Plan { name, numbers, columns: Some(cells), rows: head.samples, shape: Vec::new() });
            plans.push(vector(format!("{}{TIMES}", head.name), Numbers::F64, head.samples));
            plans.push(vector(format!("{}{CELLS}", head.name), Numbers::I64, Some(cells)));
        }
        for (p, values) in self.per_cell() {
            plans.push(vector(format!("{PARAMETER}{}", p.name), Numbers::F64, Some(values.len() as u64)));
        }
        for train in &self.trains {
            plans.push(vector(format!("{}{SPIKE_TIMES}", train.population), Numbers::F64, None));
            plans.push(vector(format!("{}{SPIKE_CELLS}", train.population), Numbers::I64, None));
        }
        plans
    }

    /// How many bytes a file takes in the end, without its spikes, which nobody knows before.
    pub fn bytes(&self) -> f64 {
        let bytes = |plan: &Plan| plan.rows.unwrap_or(0) as f64 * plan.row() as f64;
        self.arrays().iter().map(bytes).sum()
    }

    /// What `meta` says about the arrays.
    pub(super) fn described(&self) -> Map<String, Value> {
        let mut units = Map::from_iter([("t".to_owned(), json!("ms"))]);
        let mut records = Map::new();
        for head in &self.series {
            units.insert(head.name.clone(), json!(head.unit));
            units.insert(format!("{}{TIMES}", head.name), json!("ms"));
            let mut record = json!({ "population": head.population });
            if let Some(compartments) = &head.compartments {
                let names: Vec<&str> = compartments.iter().map(|c| c.name.as_str()).collect();
                let distances: Vec<f64> = compartments.iter().map(|c| c.distance).collect();
                let before: Vec<Option<u64>> = compartments.iter().map(|c| c.before).collect();
                record["compartments"] = json!({ "name": names, "distance_um": distances, "before": before });
                let places: Option<Vec<[f64; 3]>> = compartments.iter().map(|c| c.at).collect();
                if let Some(places) = places {
                    record["compartments"]["at_um"] = json!(places);
                }
            }
            records.insert(head.name.clone(), record);
        }
        let mut parameters = Map::new();
        for p in &self.parameters {
            let entry = match &p.values {
                ParameterValues::One(value) => json!({ "value": value, "unit": p.unit }),
                ParameterValues::PerCell { population, .. } => {
                    let array = format!("{PARAMETER}{}", p.name);
                    units.insert(array.clone(), json!(p.unit));
                    json!({ "array": array, "unit": p.unit, "population": population })
                }
            };
            parameters.insert(p.name.clone(), entry);
        }
        for train in &self.trains {
            units.insert(format!("{}{SPIKE_TIMES}", train.population), json!("ms"));
        }
        let population = |p: &Population| (p.name.clone(), json!({ "cells": p.cells, "shape": p.shape }));
        let mut populations: Map<String, Value> = self.populations.iter().map(population).collect();
        for train in &self.trains {
            let alone = || json!({ "cells": train.cells, "shape": [train.cells] });
            populations.entry(train.population.clone()).or_insert_with(alone);
        }
        let values = [json!(LAYOUT), units.into(), records.into(), populations.into(), parameters.into()];
        KEYS.iter().map(|key| key.to_string()).zip(values).collect()
    }

    /// Checks what every file relies on: no two arrays get the same name, each name can be one, and shapes fit.
    ///
    /// # Errors
    /// [`ResultsError::Inconsistent`] with the first contradiction found.
    pub fn check(&self) -> Result<(), ResultsError> {
        self.contradiction().map_or(Ok(()), |what| Err(ResultsError::Inconsistent(what)))
    }

    pub(super) fn contradiction(&self) -> Option<String> {
        let mut names = HashSet::from(["meta".to_owned()]);
        for plan in self.arrays() {
            let name = plan.name;
            if name.is_empty() || name.starts_with('.') || name.contains(['/', '\\', '\0', '\n', '\r']) {
                return Some(format!("{name:?} cannot name an array"));
            }
            if names.contains(&name) {
                return Some(format!("two arrays are named `{name}`"));
            }
            names.insert(name);
        }
        let reserved = |head: &&SeriesHead| [SPIKE_TIMES, SPIKE_CELLS].iter().any(|end| head.name.ends_with(end));
        if let Some(head) = self.series.iter().find(reserved) {
            return Some(format!("series `{}` has a name kept for spikes", head.name));
        }
        for head in &self.series {
            let Some(compartments) = &head.compartments else { continue };
            let (each, columns) = (compartments.len(), head.cells.len());
            if each == 0 || !columns.is_multiple_of(each) {
                return Some(format!("series `{}` has {columns} columns of cells with {each} compartments", head.name));
            }
            let wrong = |(at, c): (usize, &Compartment)| c.before.is_some_and(|before| before >= at as u64);
            if compartments.iter().enumerate().any(wrong) {
                return Some(format!("the compartments of series `{}` are in no order", head.name));
            }
        }
        let wrong = |p: &&Population| p.shape.iter().try_fold(1usize, |n, &side| n.checked_mul(side)) != Some(p.cells);
        if let Some(p) = self.populations.iter().find(wrong) {
            return Some(format!("population `{}` has {} cells on a grid of {:?}", p.name, p.cells, p.shape));
        }
        None
    }
}
