//! Runs in which a parameter of cells changes from frame to frame, as a sample says.
//!
//! In come an engine and frames; out goes an engine that gives the parameter the values of a frame before its first step.
//! Never true here: a frame is changed within a call, or depends on how many steps calls take.

use super::{Effort, Engine, EngineError, Spike, UnderWay};
use crate::step::FieldId;
use std::ops::Range;

/// An engine whose cells see frames.
pub struct Frames {
    engine: Box<dyn Engine>,
    /// The parameter.
    field: FieldId,
    /// Its values, frame by frame; the last one stays.
    frames: Vec<Vec<f64>>,
    /// How many steps a frame lasts.
    steps: u64,
    /// The frame that the engine has.
    now: Option<usize>,
}

impl Frames {
    /// Frames that last so many steps each, one at least.
    pub fn new(engine: Box<dyn Engine>, field: FieldId, frames: Vec<Vec<f64>>, steps: usize) -> Frames {
        Frames { engine, field, frames, steps: steps.max(1) as u64, now: None }
    }

    /// Gives the engine the frame of a step.
    fn show(&mut self, step: u64) -> Result<(), EngineError> {
        let frame = ((step / self.steps) as usize).min(self.frames.len().saturating_sub(1));
        if let Some(values) = self.frames.get(frame).filter(|_| self.now != Some(frame)) {
            self.engine.write(self.field, values)?;
            self.now = Some(frame);
        }
        Ok(())
    }
}

impl Engine for Frames {
    fn init(&mut self) -> Result<(), EngineError> {
        self.now = None;
        self.engine.init()
    }

    fn step(&mut self, first_step: u64, steps: u32, spikes: &mut Vec<Spike>) -> Result<(), EngineError> {
        let (mut step, end) = (first_step, first_step + u64::from(steps));
        while step < end {
            self.show(step)?;
            let next = ((step / self.steps + 1) * self.steps).min(end);
            self.engine.step(step, (next - step) as u32, spikes)?;
            step = next;
        }
        Ok(())
    }

    fn observe(&mut self, step: u64) -> Result<(), EngineError> {
        self.show(step)?;
        self.engine.observe(step)
    }

    fn read(&self, field: FieldId, cells: Range<usize>, out: &mut Vec<f64>) -> Result<(), EngineError> {
        self.engine.read(field, cells, out)
    }

    fn write(&mut self, field: FieldId, values: &[f64]) -> Result<(), EngineError> {
        self.engine.write(field, values)
    }

    fn set_uniform(&mut self, field: FieldId, value: f64) -> Result<(), EngineError> {
        self.engine.set_uniform(field, value)
    }

    fn all_finite(&self) -> bool {
        self.engine.all_finite()
    }

    fn knows_events(&self) -> bool {
        self.engine.knows_events()
    }

    fn under_way(&self, step: u64) -> Vec<UnderWay> {
        self.engine.under_way(step)
    }

    fn resume(&mut self, step: u64, under_way: &[UnderWay]) -> Result<(), EngineError> {
        self.engine.resume(step, under_way)
    }

    fn effort(&self) -> Option<Effort> {
        self.engine.effort()
    }
}
