//! Engines: what can run a step program.
//!
//! In come a verified [`crate::step::Program`] and a [`Setup`]; out come field values and spikes.
//! Never true here: an engine decides about time, recording or files; `crate::simulate` does.

pub mod branches;
#[cfg(feature = "xla")]
pub mod course;
mod deliveries;
#[cfg(feature = "xla")]
pub mod descent;
#[cfg(feature = "xla")]
pub mod executables;
pub mod frames;
#[cfg(feature = "xla")]
pub mod inputs;
pub mod limits;
pub mod load;
pub mod moved;
pub mod native;
pub mod numbers;
pub mod rustc;
mod wiring;
#[cfg(feature = "xla")]
pub mod xla;

pub use crate::runtime::edges::Edges;
pub use deliveries::LONGEST;
pub use wiring::wiring;

use crate::codegen::plan::{Delivery, DeliveryForm, DeviceClass, DevicePlan, Effect, Plan, Traffic, Unplanned};
use crate::step::{FieldId, SpaceId};
use deliveries::EdgeValues;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

/// Everything a program needs besides itself: sizes and values, in canonical units.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Setup {
    /// The number of elements of each space, indexed by `SpaceId`.
    pub sizes: Vec<usize>,
    /// The sides of the grid that the cells of a space stand on, the fastest first; a space that is left out has none. Matters for
    /// speed alone.
    pub grids: Vec<Vec<usize>>,
    /// The value of every uniform field (`dt`, in ms, among them).
    pub uniforms: Vec<(FieldId, f64)>,
    /// The samples `(t in ms, value)` of every series field, with `t` increasing.
    pub series: Vec<(FieldId, Vec<(f64, f64)>)>,
    /// The values of every data field, one per element.
    pub data: Vec<(FieldId, Vec<f64>)>,
    /// The edges of every relation.
    pub edges: Vec<(SpaceId, Arc<Edges>)>,
    /// The tree of every space that is one: the parent of each element, which comes before it; a root names itself.
    pub trees: Vec<(SpaceId, Arc<[u32]>)>,
    /// The elements of every subset, in the whole; of a product, in the part that every element of the other space has.
    pub subsets: Vec<(SpaceId, Arc<[u32]>)>,
    /// The key of all random numbers.
    pub seed: u64,
}

impl Setup {
    /// The edges of a relation.
    pub fn edges_of(&self, relation: SpaceId) -> Option<&Arc<Edges>> {
        self.edges.iter().rfind(|(space, _)| *space == relation).map(|(_, edges)| edges)
    }

    /// What a device needs besides the plan.
    pub fn device_plan(&self, plan: &Plan, class: DeviceClass) -> Result<DevicePlan, EngineError> {
        self.device_plan_for(plan, class, &deliveries::all(plan, self)?)
    }

    /// The same where the values of the edges of all deliveries are known.
    pub(crate) fn device_plan_for(
        &self,
        plan: &Plan,
        class: DeviceClass,
        values: &[EdgeValues],
    ) -> Result<DevicePlan, EngineError> {
        let samples = |field: &FieldId| self.series.iter().rfind(|(id, _)| id == field).map_or(0, |(_, s)| s.len());
        let samples: Vec<usize> = plan.series.iter().map(samples).collect();
        let form = |(delivery, EdgeValues { delays, back, values }): (&Delivery, &EdgeValues)| {
            let wrong = |why: &str| EngineError(format!("the space `{}`: {why}", delivery.name));
            let edges = self.edges_of(delivery.space).ok_or_else(|| wrong("it has no edges"))?;
            let [senders, cells] = [delivery.from, delivery.to].map(|space| self.sizes[space.0 as usize]);
            let traffic = Traffic { edges, senders, cells, delays };
            let form = match (&delivery.effect, &values[..]) {
                (Effect::Adds { .. }, [carried]) => DeliveryForm::new(&traffic, carried, class),
                (Effect::Adds { .. }, _) => Err("its events carry nothing".into()),
                (Effect::Remembers(_), _) => DeliveryForm::remembered(&traffic, back),
            };
            form.map_err(|why| wrong(&why))
        };
        let forms = plan.deliveries.iter().zip(values).map(form).collect::<Result<_, _>>()?;
        let ties = plan.trees.iter().map(|trees| branches::ties(plan, trees, self)).collect::<Result<_, _>>()?;
        Ok(DevicePlan { ties, ..DevicePlan::new(plan, class, &self.sizes, &self.grids, &self.edges, &samples, forms) })
    }
}

/// What a run records, for engines that record by themselves.
#[derive(Debug, Clone, PartialEq)]
pub struct Recording {
    /// Steps between two samples; each thing that is recorded is due at multiples of this.
    pub every: u64,
    /// States and outputs, and which cells of them.
    pub fields: Vec<(FieldId, Range<usize>)>,
}

/// A spike.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Spike {
    /// The step in which it happened; its time is `(step + 1) * dt`, or `early` before that.
    pub step: u64,
    /// The event field.
    pub field: FieldId,
    /// The cell.
    pub cell: u64,
    /// How long before the end of its step it was, in parts of a step ([`Spike::PARTS`]): 0 where spikes belong to the ends of steps.
    pub early: u64,
}

/// An event that may not have reached the ends of all edges yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct UnderWay {
    /// The event field.
    pub field: FieldId,
    /// How many steps ago it was sent, from 1 on.
    pub ago: u64,
    /// The cell that sent it.
    pub cell: u64,
}

impl Spike {
    /// So many parts has a step.
    pub const PARTS: f64 = (1u64 << 53) as f64;

    /// The same spike at a time of its step.
    pub fn at(self, t: f64, dt: f64) -> Spike {
        let early = ((self.step + 1) as f64 * dt - t) / dt;
        Spike { early: (early * Spike::PARTS).clamp(0.0, Spike::PARTS) as u64, ..self }
    }

    /// Its time (ms).
    pub fn time(self, dt: f64) -> f64 {
        (self.step + 1) as f64 * dt - self.early as f64 / Spike::PARTS * dt
    }
}

/// What it took an engine that chooses its steps.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Effort {
    /// Steps taken.
    pub steps: u64,
    /// Steps that were too long, and taken again.
    pub rejected: u64,
    /// How often the rates of all states were computed.
    pub rates: u64,
    /// How often their slopes were.
    pub slopes: u64,
    /// How often a matrix of these was factored.
    pub factored: u64,
}

/// An engine cannot do what it was asked for.
#[derive(Debug, Clone, PartialEq)]
pub struct EngineError(pub String);

impl fmt::Display for EngineError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for EngineError {}

impl From<Unplanned> for EngineError {
    fn from(why: Unplanned) -> EngineError {
        EngineError(why.to_string())
    }
}

/// How an engine records by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Stride {
    /// Steps from one sample to the next.
    pub every: u32,
    /// Samples of one call; 0 if the engine does not record by itself.
    pub samples: u32,
}

impl Stride {
    /// Steps of one call.
    pub fn steps(self) -> u64 {
        u64::from(self.every) * u64::from(self.samples)
    }
}

/// A program that is ready to run. State, cell parameters and outputs live inside.
pub trait Engine: Send {
    /// Runs the function `init`. A run that begins so again is the same run: nothing is left of the one before.
    fn init(&mut self) -> Result<(), EngineError>;

    /// Advances all spaces from `first_step` by `steps` steps and appends their spikes, sorted by
    /// `(step, field, cell)`.
    fn step(&mut self, first_step: u64, steps: u32, spikes: &mut Vec<Spike>) -> Result<(), EngineError>;

    /// Computes all output fields from the states as they are at the start of `step`.
    fn observe(&mut self, step: u64) -> Result<(), EngineError>;

    /// Appends the values of a state, cell or output field for a range of cells.
    fn read(&self, field: FieldId, cells: Range<usize>, out: &mut Vec<f64>) -> Result<(), EngineError>;

    /// Overwrites a state or cell field; `values` has one number per cell.
    fn write(&mut self, field: FieldId, values: &[f64]) -> Result<(), EngineError>;

    /// As [`read`](Engine::read), but appends the nearest numbers in single precision. Those of an engine in single precision go no other way.
    fn read_singles(&self, field: FieldId, cells: Range<usize>, out: &mut Vec<f32>) -> Result<(), EngineError> {
        let mut values = Vec::with_capacity(cells.len());
        self.read(field, cells, &mut values)?;
        out.extend(values.into_iter().map(|x| x as f32));
        Ok(())
    }

    /// As [`write`](Engine::write).
    fn write_singles(&mut self, field: FieldId, values: &[f32]) -> Result<(), EngineError> {
        self.write(field, &values.iter().map(|&x| f64::from(x)).collect::<Vec<f64>>())
    }

    /// Gives a uniform field another value, from the next call on. What [`init`](Engine::init) has computed of it stays until that runs again.
    fn set_uniform(&mut self, _field: FieldId, _value: f64) -> Result<(), EngineError> {
        Err(EngineError("this engine takes the values of parameters before a run only".into()))
    }

    /// Is every state of every cell finite?
    fn all_finite(&self) -> bool;

    /// What it took so far, if it chooses its steps.
    fn effort(&self) -> Option<Effort> {
        None
    }

    /// Does it know which events are on their way?
    fn knows_events(&self) -> bool {
        false
    }

    /// The events on their way before a step, the next one to be taken, in order.
    fn under_way(&self, _step: u64) -> Vec<UnderWay> {
        Vec::new()
    }

    /// Goes on at a step: these events are on their way, in order, and no others. States are left as they are.
    fn resume(&mut self, _step: u64, under_way: &[UnderWay]) -> Result<(), EngineError> {
        match under_way {
            [] => Ok(()),
            _ => Err(EngineError("this engine does not take up events that are on their way, in this version".into())),
        }
    }

    /// Gets ready to record by itself, in a run of so many steps. Answers which samples each [`record`](Engine::record)
    /// will take; none if the engine leaves recording to its caller.
    fn prepare(&mut self, _recording: &Recording, _steps: u64) -> Result<Stride, EngineError> {
        Ok(Stride::default())
    }

    /// Advances all spaces from `first_step` by the samples that [`prepare`](Engine::prepare) has answered and appends, for every
    /// field of the recording, its samples (`[sample][cell]`) to an entry of `samples`; and spikes as [`step`](Engine::step) does.
    fn record(
        &mut self,
        _first_step: u64,
        _samples: &mut [Vec<f64>],
        _spikes: &mut Vec<Spike>,
    ) -> Result<(), EngineError> {
        Err(EngineError("internal error: this engine leaves recording to its caller".into()))
    }
}
