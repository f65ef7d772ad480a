//! The gradient of a loss: a run that carries derivatives along.
//!
//! In come an engine of a program with tangents ([`crate::differentiate::forward`]) and a loss of what is sampled; out go the loss and its derivative
//! along each direction.
//! Never true here: a derivative is computed, or anything is kept but what is sampled.

use super::backward::Gradient;
use super::sampling::{Loss, Sampled, Sampling};
use crate::engine::{Engine, EngineError};
use crate::step::{FieldId, Program};

/// A run with derivatives along directions.
pub struct Along {
    /// What the loss reads, and behind that the tangents of it.
    sampling: Sampling,
    /// How much the loss reads.
    values: usize,
    /// By direction: for everything that the loss reads, where its tangent stands; none if it does not move.
    tangents: Vec<Vec<Option<usize>>>,
    steps: u64,
}

impl Along {
    /// A run of so many steps. `tangents` has for each direction the fields of the program that are the tangents of what is sampled, if it moves.
    pub fn new(program: &Program, sampled: Vec<Sampled>, tangents: &[Vec<Option<FieldId>>], steps: u64) -> Along {
        let values = sampled.len();
        let mut all = sampled.clone();
        let of_direction = |of: &Vec<Option<FieldId>>| {
            let place = |(field, sampled): (&Option<FieldId>, &Sampled)| {
                field.map(|field| {
                    all.push(Sampled { field, ..sampled.clone() });
                    all.len() - 1
                })
            };
            of.iter().zip(&sampled).map(place).collect()
        };
        let tangents = tangents.iter().map(of_direction).collect();
        Along { sampling: Sampling::new(program, all), values, tangents, steps }
    }

    /// The samples of each, `[sample][cell]`.
    pub fn samples(&self, engine: &mut dyn Engine) -> Result<Vec<Vec<f64>>, EngineError> {
        let mut samples = self.sampling.run(engine, self.steps)?;
        samples.truncate(self.values);
        Ok(samples)
    }

    /// Runs from the initial values to the end. `loss` gets the samples of each, `[sample][cell]`.
    pub fn run(
        &self,
        engine: &mut dyn Engine,
        loss: &mut dyn FnMut(&[Vec<f64>]) -> Loss,
    ) -> Result<Gradient, EngineError> {
        let samples = self.sampling.run(engine, self.steps)?;
        let loss = loss(&samples[..self.values]);
        let of_direction = |tangents: &Vec<Option<usize>>| {
            let moves =
                loss.slopes.iter().zip(tangents).filter_map(|(slopes, &at)| Some(slopes.iter().zip(&samples[at?])));
            // What the loss does not look at does not count, finite or not.
            let part = |(slope, tangent): (&f64, &f64)| if *slope == 0.0 { 0.0 } else { slope * tangent };
            let sum = moves.flatten().map(part).sum();
            if tangents.iter().all(Option::is_none) { Vec::new() } else { vec![(0, vec![sum])] }
        };
        let parts = self.tangents.iter().map(of_direction).collect();
        Ok(Gradient { loss: loss.value, parts, kept: 0, steps: self.steps })
    }
}
