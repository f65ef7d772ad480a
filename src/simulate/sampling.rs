//! What a loss reads of a run, taken while an engine goes forward.
//!
//! In come an engine of a program and what is read of it after which steps; out go the samples.
//! Never true here: a loss is chosen, or a step is taken twice unless somebody has set the engine back.

use crate::engine::{Engine, EngineError};
use crate::step::{FieldId, FieldKind, Program};
use std::ops::Range;

/// What a loss reads of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sampled {
    /// A state or an output of the program that goes forward.
    pub field: FieldId,
    /// Which elements.
    pub cells: Range<usize>,
    /// After which steps, in order.
    pub steps: Vec<u64>,
}

/// A loss and its derivatives.
#[derive(Debug, Clone, PartialEq)]
pub struct Loss {
    /// The loss.
    pub value: f64,
    /// Its derivative in every sample, in the shape of the samples.
    pub slopes: Vec<Vec<f64>>,
}

/// All that is read of a run.
pub(super) struct Sampling {
    pub sampled: Vec<Sampled>,
    /// Is it an output?
    outputs: Vec<bool>,
}

/// How far an engine has come.
pub(super) struct Course {
    /// After how many steps it is.
    pub at: u64,
    /// How many it has taken.
    pub steps: u64,
    /// The next sample of each.
    due: Vec<usize>,
}

impl Sampling {
    pub(super) fn new(program: &Program, sampled: Vec<Sampled>) -> Sampling {
        let outputs = sampled.iter().map(|s| program.field(s.field).kind == FieldKind::Output).collect();
        Sampling { sampled, outputs }
    }

    /// A run from the initial values on: the samples of each, `[sample][cell]`.
    pub(super) fn run(&self, engine: &mut dyn Engine, steps: u64) -> Result<Vec<Vec<f64>>, EngineError> {
        engine.init()?;
        let mut course = Course::new(self);
        let mut samples = vec![Vec::new(); self.sampled.len()];
        course.sample(self, engine, &mut samples)?;
        course.forward(self, engine, steps, Some(&mut samples))?;
        Ok(samples)
    }
}

impl Course {
    /// At the initial values.
    pub(super) fn new(of: &Sampling) -> Course {
        Course { at: 0, steps: 0, due: vec![0; of.sampled.len()] }
    }

    /// Lets the engine take steps, and samples on the way.
    pub(super) fn forward(
        &mut self,
        of: &Sampling,
        engine: &mut dyn Engine,
        to: u64,
        mut samples: Option<&mut Vec<Vec<f64>>>,
    ) -> Result<(), EngineError> {
        let mut spikes = Vec::new();
        while self.at < to {
            let due = of.sampled.iter().zip(&self.due).filter_map(|(s, &due)| s.steps.get(due));
            let next = if samples.is_some() { due.copied().min().unwrap_or(to).min(to) } else { to };
            // No call takes more steps than a number of 32 bits tells.
            let steps = (next - self.at).min(1 << 20) as u32;
            engine.step(self.at, steps, &mut spikes)?;
            spikes.clear();
            self.at += u64::from(steps);
            self.steps += u64::from(steps);
            if let Some(samples) = samples.as_deref_mut() {
                self.sample(of, engine, samples)?;
            }
        }
        Ok(())
    }

    /// Takes the samples that are due.
    pub(super) fn sample(
        &mut self,
        of: &Sampling,
        engine: &mut dyn Engine,
        samples: &mut [Vec<f64>],
    ) -> Result<(), EngineError> {
        let is_due = |(i, s): (usize, &Sampled)| s.steps.get(self.due[i]) == Some(&self.at);
        let due: Vec<usize> = of.sampled.iter().enumerate().filter(|&(i, s)| is_due((i, s))).map(|(i, _)| i).collect();
        if due.iter().any(|&i| of.outputs[i]) {
            engine.observe(self.at)?;
        }
        for i in due {
            let sampled = &of.sampled[i];
            engine.read(sampled.field, sampled.cells.clone(), &mut samples[i])?;
            self.due[i] += 1;
        }
        Ok(())
    }
}
