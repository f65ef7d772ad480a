//! Where a run begins, if not at its initial values, and what is left of one for another to begin there.
//!
//! In come an engine after some steps, or a [`Checkpoint`]; out goes a checkpoint, or a [`Start`] for this model, or what does not fit.
//! Never true here: a state of the model is missing, or one of another model is passed over.
//!
//! Everything that a step reads are states, uniform values, constants of cells, events on their way and its number: constants come from the
//! model's parameters and the seed, so that states, events, number and seed are all that a run needs to go on bit by bit.

use super::extent::Extent;
use super::time::{moment, whole_steps};
use super::trap::states;
use super::ways::{unchanged, ways};
use crate::engine::{Engine, EngineError, UnderWay};
use crate::ode::{Kind, Model, STRETCH};
use crate::results::{Checkpoint, Sent, Way};
use crate::step::{Field, FieldId, FieldKind, Function, Program, Role, Source};
use serde_json::{Map, Value};

/// How the name ends of what is left of refractory times: as files of older versions tell it, in ms, and now, in steps.
const IN_TIME: &str = "'refractory";
const IN_STEPS: &str = "'held";

/// Where a run begins.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Start {
    /// The steps that are done already.
    pub step: u64,
    /// The states that differ from the initial values, in canonical units.
    pub states: Vec<(FieldId, Vec<f64>)>,
    /// The events on their way, in order, if not those of the beginning.
    pub under_way: Option<Vec<UnderWay>>,
}

impl Start {
    /// Sets the initial values, and then these.
    pub(super) fn set(&self, engine: &mut dyn Engine) -> Result<(), EngineError> {
        engine.init()?;
        self.go_on(engine)
    }

    /// Sets these alone.
    pub(super) fn go_on(&self, engine: &mut dyn Engine) -> Result<(), EngineError> {
        self.states.iter().try_for_each(|(field, values)| engine.write(*field, values))?;
        self.under_way.iter().try_for_each(|events| engine.resume(self.step, events))
    }

    /// The states of a checkpoint; the error is a sentence.
    pub fn new(checkpoint: &Checkpoint, model: &Model, program: &Program, extent: &Extent) -> Result<Start, String> {
        let now = if checkpoint.ways.is_some() { ways(model, program, extent) } else { Vec::new() };
        Start::along(checkpoint, model, program, extent, &now)
    }

    /// As [`Start::new`], where the ways of events are known.
    pub(super) fn along(
        checkpoint: &Checkpoint,
        model: &Model,
        program: &Program,
        extent: &Extent,
        now: &[Way],
    ) -> Result<Start, String> {
        no_histories(program)?;
        let mut fields = program.fields_where(|field| field.kind == FieldKind::State);
        let mut start = Start { step: steps(checkpoint, extent)?, ..Start::default() };
        for (name, values) in &checkpoint.states {
            let old = name.strip_suffix(IN_TIME).map(|population| format!("{population}{IN_STEPS}"));
            let known = old.as_ref().unwrap_or(name);
            let at = fields.iter().position(|&field| program.field(field).name == *known);
            let at = at.ok_or_else(|| format!("it is of another model: this one has no state `{name}`"))?;
            let field = fields.remove(at);
            let cells = program.field(field).over.map_or(1, |space| extent.size(space));
            if values.len() != cells {
                // Of edges it is not their number that is told, if they are others.
                if program.field(field).over.is_some_and(|space| space.0 as usize >= extent.cells.len()) {
                    unchanged(checkpoint, model, program, now)?;
                }
                return Err(format!("`{name}` has {} values in it, but {cells} cells in this run", values.len()));
            }
            let mut values = values.clone();
            if matches!(program.field(field).source, Source::Refractory(_)) {
                let saved = checkpoint.t / checkpoint.step.max(1) as f64;
                if old.is_some() && saved > 0.0 {
                    values.iter_mut().for_each(|left| *left /= saved);
                }
                // What is left goes on in steps of this run; less than none says of the step before that it was free.
                if start.step != checkpoint.step {
                    let longer = saved / extent.grid.dt;
                    values.iter_mut().filter(|left| **left > 0.0).for_each(|left| *left *= longer);
                }
            }
            start.states.push((field, values));
        }
        if let Some(&field) = fields.first() {
            return Err(format!("it is of another model: it has no state `{}`", program.field(field).name));
        }
        if start.step != checkpoint.step {
            let counted = if checkpoint.events.iter().any(|sent| !sent.ago.is_empty()) {
                Some("events are on their way in it")
            } else {
                let seen = |field: &Field| field.kind == FieldKind::State && field.name.ends_with("'seen");
                program.fields.iter().any(seen).then_some("its synapses remember when they were last reached")
            };
            if let Some(counted) = counted {
                return Err(format!("{counted}, in steps: go on with the `dt` it was saved with"));
            }
        }
        unchanged(checkpoint, model, program, now)?;
        let (clocks, mut fields): (Vec<_>, Vec<_>) =
            travelling(program).into_iter().partition(|&event| is_of_clock(model, program, event));
        // Stretches of a clock are counted from the beginning, however long the run was that was saved.
        let stretch = start.step / u64::from(STRETCH);
        let ago = start.step - stretch * u64::from(STRETCH) + 1;
        let mut under_way: Vec<UnderWay> = clocks
            .iter()
            .filter(|&&event| stretch < program.field(event).over.map_or(0, |space| extent.size(space)) as u64)
            .map(|&field| UnderWay { field, ago, cell: stretch })
            .collect();
        let travels = !(clocks.is_empty() && fields.is_empty());
        for Sent { event, ago, cell } in &checkpoint.events {
            let at = fields.iter().position(|&field| program.field(field).name == *event);
            let at = at.ok_or_else(|| format!("it is of another model: no `{event}` are on their way in this one"))?;
            let field = fields.remove(at);
            let cells = program.field(field).over.map_or(1, |space| extent.size(space)) as u64;
            if let Some(cell) = cell.iter().find(|&&cell| cell >= cells) {
                return Err(format!("cell {cell} has sent `{event}`, but there are {cells} cells in this run"));
            }
            under_way.extend(ago.iter().zip(cell).map(|(&ago, &cell)| UnderWay { field, ago, cell }));
        }
        if let Some(&field) = fields.first() {
            let name = &program.field(field).name;
            return Err(format!("it is of another model: it does not say which `{name}` are on their way"));
        }
        under_way.sort_unstable();
        start.under_way = travels.then_some(under_way);
        Ok(start)
    }
}

/// Says, as an error, what a step of a program reads of earlier ones that a checkpoint of this engine does not hold.
pub fn past(program: &Program, engine: &dyn Engine) -> Result<(), String> {
    no_histories(program)?;
    if !travelling(program).is_empty() && !engine.knows_events() {
        return Err(
            "spikes on their way are not kept by this engine in this version; `--engine native` keeps them".into()
        );
    }
    Ok(())
}

fn no_histories(program: &Program) -> Result<(), String> {
    match program.fields.iter().find(|field| field.history > 0 && field.kind != FieldKind::Event) {
        Some(field) => Err(format!("`{}` has a past, which is not kept in this version", field.name)),
        None => Ok(()),
    }
}

/// Does a clock emit it?
fn is_of_clock(model: &Model, program: &Program, event: FieldId) -> bool {
    let population = program.field(event).over.and_then(|space| model.populations.get(space.0 as usize));
    population.is_some_and(|population| population.kind == Kind::Clock)
}

/// The events that go along edges and take their time.
fn travelling(program: &Program) -> Vec<FieldId> {
    let regions = program.function(Role::Step).into_iter().flat_map(Function::regions);
    let guards = regions.filter_map(|region| region.guard.filter(|guard| guard.delay.is_some()));
    let mut all: Vec<FieldId> = guards.map(|guard| guard.event).collect();
    all.sort_unstable();
    all.dedup();
    all
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
    let reached = reached(model, program, extent, engine, step)?;
    Ok(Checkpoint { ways: Some(ways(model, program, extent)), meta, ..reached })
}

/// As [`checkpoint`], but without the ways of events and facts about the run.
pub(super) fn reached(
    model: &Model,
    program: &Program,
    extent: &Extent,
    engine: &dyn Engine,
    step: u64,
) -> Result<Checkpoint, EngineError> {
    let now = states(program, extent, engine)?;
    past(program, engine).map_err(EngineError)?;
    let mut states: Vec<_> = now.into_iter().collect();
    states.sort_by_key(|(field, _)| *field);
    let named = |(field, values): (FieldId, Vec<f64>)| (program.field(field).name.clone(), values);
    let under_way = engine.under_way(step);
    let sent = |event: FieldId| {
        let own = under_way.iter().filter(|sent| sent.field == event);
        let (ago, cell) = own.map(|sent| (sent.ago, sent.cell)).unzip();
        Sent { event: program.field(event).name.clone(), ago, cell }
    };
    let (t, seed) = (step as f64 * extent.grid.dt, model.seed);
    let events =
        travelling(program).into_iter().filter(|&event| !is_of_clock(model, program, event)).map(sent).collect();
    let states = states.into_iter().map(named).collect();
    Ok(Checkpoint { step, t, seed, states, events, ..Checkpoint::default() })
}
