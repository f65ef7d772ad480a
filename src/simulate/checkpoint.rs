//! Where a run begins, if not at its initial values, and what is left of one for another to begin there.
//!
//! In come an engine after some steps, or a [`Checkpoint`]; out goes a checkpoint, or a [`Start`] for this model, or what does not fit.
//! Never true here: a state of the model is missing, or one of another model is passed over.
//!
//! Everything that a step reads are states, uniform values, constants of cells and its number: constants come from the model's
//! parameters and the seed, so that states, number and seed are all that a run needs to go on bit by bit.

use super::extent::Extent;
use super::time::{moment, whole_steps};
use super::trap::states;
use crate::engine::{Engine, EngineError};
use crate::ode::Model;
use crate::results::Checkpoint;
use crate::step::{FieldId, FieldKind, Function, Program, Role};
use serde_json::{Map, Value};

/// Where a run begins.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Start {
    /// The steps that are done already.
    pub step: u64,
    /// The states that differ from the initial values, in canonical units.
    pub states: Vec<(FieldId, Vec<f64>)>,
}

impl Start {
    /// Sets the initial values, and then these.
    pub(super) fn set(&self, engine: &mut dyn Engine) -> Result<(), EngineError> {
        engine.init()?;
        self.states.iter().try_for_each(|(field, values)| engine.write(*field, values))
    }

    /// The states of a checkpoint; the error is a sentence.
    pub fn new(checkpoint: &Checkpoint, program: &Program, extent: &Extent) -> Result<Start, String> {
        past(program)?;
        let mut fields = program.fields_where(|field| field.kind == FieldKind::State);
        let mut start = Start { step: steps(checkpoint, extent)?, states: Vec::new() };
        for (name, values) in &checkpoint.states {
            let at = fields.iter().position(|&field| program.field(field).name == *name);
            let at = at.ok_or_else(|| format!("it is of another model: this one has no state `{name}`"))?;
            let field = fields.remove(at);
            let cells = program.field(field).over.map_or(1, |space| extent.size(space));
            if values.len() != cells {
                return Err(format!("`{name}` has {} values in it, but {cells} cells in this run", values.len()));
            }
            start.states.push((field, values.clone()));
        }
        match fields.first() {
            Some(&field) => Err(format!("it is of another model: it has no state `{}`", program.field(field).name)),
            None => Ok(start),
        }
    }
}

/// Says, as an error, what else than states a step of a program reads of earlier ones.
pub fn past(program: &Program) -> Result<(), String> {
    if let Some(field) = program.fields.iter().find(|field| field.history > 0) {
        return Err(format!("`{}` has a past, which is not kept in this version", field.name));
    }
    let guards = program.function(Role::Step).into_iter().flat_map(Function::regions).filter_map(|region| region.guard);
    match guards.into_iter().find(|guard| guard.delay.is_some()) {
        Some(guard) => {
            let name = &program.field(guard.event).name;
            Err(format!("events of `{name}` are on their way, which is not kept in this version"))
        }
        None => Ok(()),
    }
}

/// The steps of this run that are done at the time of a checkpoint.
fn steps(checkpoint: &Checkpoint, extent: &Extent) -> Result<u64, String> {
    let grid = extent.grid;
    let same = checkpoint.step as f64 * grid.dt == checkpoint.t;
    let step = if same { Some(checkpoint.step) } else { whole_steps(checkpoint.t, grid.dt) };
    let t = checkpoint.t;
    let step = step.ok_or_else(|| format!("it was saved at {t} ms, which is no multiple of dt, {} ms", grid.dt))?;
    if step >= grid.steps {
        let end = moment(grid.steps, grid.dt);
        let t = moment(step, grid.dt);
        return Err(format!(
            "it was saved at {t} ms, but the run ends at {end} ms; `--duration` is the time from 0 on"
        ));
    }
    Ok(step)
}

/// What a run has come to after so many steps.
pub fn checkpoint(
    model: &Model,
    program: &Program,
    extent: &Extent,
    engine: &dyn Engine,
    step: u64,
    meta: Map<String, Value>,
) -> Result<Checkpoint, EngineError> {
    let now = states(program, extent, engine)?;
    past(program).map_err(EngineError)?;
    let mut states: Vec<_> = now.into_iter().collect();
    states.sort_by_key(|(field, _)| *field);
    let named = |(field, values): (FieldId, Vec<f64>)| (program.field(field).name.clone(), values);
    let (t, seed) = (step as f64 * extent.grid.dt, model.seed);
    Ok(Checkpoint { step, t, seed, states: states.into_iter().map(named).collect(), meta })
}
