//! The values that a program reads from outside: sizes, uniform parameters, data files, edges.
//!
//! In come a model, a program of it and its extent; out goes a [`Setup`], or everything that is wrong with the values.
//! Never true here: a field is left without a value, or gets one that nobody gave.

use super::edges::edges;
use super::extent::Extent;
use crate::data::{self, DataFile};
use crate::diag::{Code, Diagnostic};
use crate::discretize::edges_name;
use crate::engine::Setup;
use crate::ode::{self, Model};
use crate::step::{FieldId, FieldKind, Program, Value};
use std::sync::Arc;

/// Values of everything a program reads from outside: sizes, uniform parameters, data files.
pub fn setup(model: &Model, program: &Program, extent: &Extent) -> Result<Setup, Vec<Diagnostic>> {
    let mut setup =
        Setup { sizes: extent.cells.clone(), grids: extent.grids.clone(), seed: model.seed, ..Setup::default() };
    let mut errors = Vec::new();
    for (i, field) in program.fields.iter().enumerate() {
        let id = FieldId(i as u32);
        let added = match field.kind {
            FieldKind::Uniform => uniform(model, extent, &field.name).map(|x| setup.uniforms.push((id, x))),
            FieldKind::Series => {
                let duration = extent.grid.steps as f64 * extent.grid.dt;
                let samples = file(model, &field.name, "series").and_then(|file| data::series(file, duration));
                samples.map(|samples| setup.series.push((id, samples)))
            }
            FieldKind::Data(space) => {
                let cells = extent.cells[space.0 as usize];
                let values = file(model, &field.name, ".file").and_then(|file| data::per_cell(file, cells));
                values.map(|values| setup.data.push((id, values)))
            }
            FieldKind::Edges(_) => {
                let connection = model.connections.iter().find(|c| edges_name(&c.name) == field.name);
                let edges = connection.ok_or_else(|| missing(&field.name)).and_then(|c| edges(model, extent, c));
                edges.map(|edges| setup.edges.push((id, Arc::new(edges))))
            }
            FieldKind::Cell(_)
            | FieldKind::State(_)
            | FieldKind::Temp(_)
            | FieldKind::Output(_)
            | FieldKind::Event(_) => Ok(()),
        };
        errors.extend(added.err());
    }
    if errors.is_empty() { Ok(setup) } else { Err(errors) }
}

fn uniform(model: &Model, extent: &Extent, name: &str) -> Result<f64, Diagnostic> {
    let value = if name == "dt" {
        Ok(Value::Real(extent.grid.dt))
    } else {
        match model.params.iter().find(|p| p.name == name) {
            Some(p) => ode::evaluate(model, p.value),
            None => Err(ode::EvalError::NotUniform),
        }
    };
    match value {
        Ok(Value::Real(x)) if x.is_finite() => Ok(x),
        other => Err(bad_param(model, name, other)),
    }
}

/// The data file of a field, whose number stands behind a word in the field's name.
fn file<'m>(model: &'m Model, name: &str, word: &str) -> Result<&'m DataFile, Diagnostic> {
    let number = name.rfind(word).and_then(|at| name[at + word.len()..].parse::<usize>().ok());
    number.and_then(|number| model.data.get(number)).ok_or_else(|| missing(name))
}

fn missing(field: &str) -> Diagnostic {
    Diagnostic::without_place(Code::BadData, format!("no data for `{field}`"))
}

fn bad_param(model: &Model, name: &str, value: Result<Value, ode::EvalError>) -> Diagnostic {
    let what = match value {
        Ok(Value::Real(x)) => format!("parameter `{name}` is {x}"),
        Ok(Value::Single(x)) => format!("parameter `{name}` is {x}"),
        Ok(Value::Mask(_)) => format!("parameter `{name}` is a condition, not a number"),
        Err(ode::EvalError::Cyclic) => format!("parameter `{name}` depends on itself"),
        Err(ode::EvalError::NotUniform) => format!("parameter `{name}` is not known before the run"),
    };
    match model.params.iter().find(|p| p.name == name) {
        Some(p) => Diagnostic::new(Code::BadValue, p.span, what, "a finite number is needed"),
        None => Diagnostic::without_place(Code::BadValue, what),
    }
}
