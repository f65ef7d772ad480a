//! What a file of results says about a run besides samples and spikes: populations, and the values of parameters.
//!
//! In come a model with all settings applied, its extent and its records; out go [`Contents`].
//! Never true here: a value that is not known before the first step.

use super::extent::Extent;
use super::records::Records;
use crate::data;
use crate::discretize::projection_space;
use crate::ode::{self, Kind, Model, NodeId};
use crate::operators::Value;
use crate::results::{Contents, Parameter, ParameterValues, Population, SeriesHead, TrainHead};
use std::collections::BTreeSet;

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
        cells: {
            let each = r.compartments.as_ref().map_or(1, |compartments| compartments.len());
            r.cells.clone().map(|element| (element / each) as u64).collect()
        },
        compartments: r.compartments.clone(),
        samples: r.around.is_none().then(|| r.samples(start).1),
    };
    Contents {
        series: records.series.iter().map(head).collect(),
        trains: records.trains.iter().map(|t| TrainHead { population: t.population.clone(), cells: t.cells }).collect(),
        populations: model.populations.iter().zip(0..).filter(|(p, _)| p.kind != Kind::Clock).map(population).collect(),
        parameters: [parameters(model, extent), arguments(model, extent), ends(model, extent)].concat(),
        single,
    }
}

/// Where the edges lead of which something is recorded.
fn ends(model: &Model, extent: &Extent) -> Vec<Parameter> {
    let recorded: BTreeSet<usize> = model.records.iter().filter_map(|r| r.edges).collect();
    let mut ends = Vec::new();
    for projection in recorded {
        let space = projection_space(model, projection);
        let Some((_, edges)) = extent.edges.iter().find(|(other, _)| *other == space) else { continue };
        let population = &model.projections[projection].name;
        let mut push = |what: &str, values: Vec<f64>| {
            let values = ParameterValues::PerCell { population: population.clone(), values };
            ends.push(Parameter { name: format!("{population}.{what}"), unit: "1".into(), values });
        };
        let targets = edges.offsets.windows(2).enumerate();
        push("source", edges.sources.iter().map(|&source| f64::from(source)).collect());
        let to = model.projections[projection].to;
        let each = model.elements_per_cell(to);
        push("target", targets.clone().flat_map(|(at, b)| (b[0]..b[1]).map(move |_| (at / each) as f64)).collect());
        if let Some((_, elements)) = model.elements(to).filter(|_| each > 1) {
            // Which of the compartments of the cell.
            let place = |at: usize| f64::from(elements[at % each]);
            push("compartment", targets.flat_map(|(at, b)| (b[0]..b[1]).map(move |_| place(at))).collect());
        }
    }
    ends
}

/// The arguments of stimuli that differ from cell to cell.
fn arguments(model: &Model, extent: &Extent) -> Vec<Parameter> {
    let told = |a: &ode::Argument| {
        let values = per_cell(model, extent, a.value, a.population)?;
        let values = values.into_iter().map(|x| if a.unit.exponent == 0 { x } else { a.unit.show(x) }).collect();
        let values = ParameterValues::PerCell { population: model.populations[a.population].name.clone(), values };
        Some(Parameter { name: a.name.clone(), unit: a.unit.name.clone(), values })
    };
    model.arguments.iter().filter_map(told).collect()
}

/// The values of an expression for the cells of a population.
fn per_cell(model: &Model, extent: &Extent, value: NodeId, population: usize) -> Option<Vec<f64>> {
    let cells = extent.cells[population];
    let read = |of: Option<usize>, file: u32| {
        data::per_cell(&model.data[file as usize], extent.cells[of.unwrap_or(population)], model.seed).ok()
    };
    ode::cells::values(model, value, Some(population), cells, &read)
}

/// The parameters of a model with all settings applied, as far as they are numbers before the first step. Hidden ones have a `'` in their names, which no name of a user has.
pub fn parameters(model: &Model, extent: &Extent) -> Vec<Parameter> {
    let mut known = Vec::new();
    // The draws of inputs are told as the arguments that they make.
    let standard = |p: &&ode::Param| {
        let last = p.name.rsplit('.').next().and_then(|last| last.strip_prefix("draw"));
        !p.settable && last.is_some_and(|number| number.parse::<u32>().is_ok())
    };
    for p in model.params.iter().filter(|p| !p.name.contains('\'') && !standard(p)) {
        let show = |x: f64| if p.unit.exponent == 0 { x } else { p.unit.show(x) };
        let values = match p.population {
            None => match ode::evaluate(model, p.value) {
                Ok(Value::Real(x)) => ParameterValues::One(rounded(show(x))),
                Ok(Value::Single(_) | Value::Mask(_)) | Err(_) => continue,
            },
            Some(population) => {
                let Some(values) = per_cell(model, extent, p.value, population) else { continue };
                let values = values.into_iter().map(show).collect();
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
