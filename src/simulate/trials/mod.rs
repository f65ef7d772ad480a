//! Many trials of a network at once, forward and back.
//!
//! In come an engine of a program whose events are carried ([`crate::discretize::discretize_carried`]) for all trials together, an engine of the program
//! that goes back, the edges between cells and a loss of what the trials read out; out go the loss and its gradients.
//! Never true here: trials know of each other, or the order of a sum depends on the number of threads.
//!
//! The cells of a population stand trial by trial: those of trial `b` are `b * cells .. (b + 1) * cells`. In step `k` there arrives what was sent in
//! step `k - d` along an edge with a delay of `d` steps, as in any run.

mod tract;

pub use tract::{Sent, Tract};

use super::Loss;
use crate::engine::{Engine, EngineError};
use crate::step::FieldId;
use std::collections::VecDeque;

/// A field of the program that goes forward, and what it is in the one that goes back, if that has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Both {
    /// Forward.
    pub forward: FieldId,
    /// Back.
    pub back: Option<FieldId>,
}

/// A projection.
#[derive(Debug, Clone)]
pub struct Route {
    /// Its edges.
    pub tract: Tract,
    /// The sender among the populations that spike.
    pub from: usize,
    /// What arrives at the targets of all trials: the state, and its adjoint.
    pub arrived: Both,
    /// How many targets there are in all trials.
    pub targets: usize,
    /// Are derivatives in its weights wanted?
    pub learns: bool,
}

/// A population that spikes.
#[derive(Debug, Clone, Copy)]
pub struct Spiking {
    /// Its cells.
    pub cells: usize,
    /// Whether they have spiked: the state, and its adjoint.
    pub spiked: Both,
}

/// What a loss reads.
#[derive(Debug, Clone, Copy)]
pub enum Readout {
    /// How often each cell of one of the populations that spike has spiked: one sample.
    Count(usize),
    /// A state after each step: as many samples as steps. With the number of its values, and the seed.
    State(Both, usize),
}

/// A network in many trials.
pub struct Trials {
    /// Forward.
    pub forward: Box<dyn Engine>,
    /// Back.
    pub back: Box<dyn Engine>,
    /// The states that going back reads, with the number of values in all trials.
    pub states: Vec<(Both, usize)>,
    /// What cells and states begin with, for all trials.
    pub begin: Vec<(Both, Vec<f64>)>,
    /// The populations that spike.
    pub spiking: Vec<Spiking>,
    /// The projections.
    pub routes: Vec<Route>,
    /// What the loss reads.
    pub readout: Readout,
    /// For each parameter that is free the fields of its gradient, with the number of values.
    pub gradients: Vec<Vec<(FieldId, usize)>>,
    /// How many trials there are.
    pub trials: usize,
    /// How many steps they take.
    pub steps: usize,
    /// How many threads carry events.
    pub threads: usize,
}

/// The derivatives of a loss.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Slopes {
    /// The loss.
    pub loss: f64,
    /// In what learns of each projection, in the order of [`Tract::change`]; empty where it is not wanted.
    pub weights: Vec<Vec<f64>>,
    /// For each free parameter what every element contributes.
    pub parameters: Vec<Vec<f64>>,
    /// How many spikes there were.
    pub spikes: u64,
}

/// What happened on the way forward.
struct Ran {
    /// For each population that spikes and every step who has sent; nobody in step 0.
    sent: Vec<Vec<Sent>>,
    /// The states after each step, in the order of [`Trials::states`].
    states: Vec<Vec<Vec<f64>>>,
    samples: Vec<f64>,
}

impl Trials {
    /// Runs all trials; the answer are the samples of the readout, `[sample][trial][cell]`, and the number of spikes. `given` are values of cells that
    /// differ from trial to trial.
    pub fn samples(&mut self, given: &[(Both, Vec<f64>)]) -> Result<(Vec<f64>, u64), EngineError> {
        let ran = self.forward(given, false)?;
        Ok((ran.samples, spikes(&ran.sent)))
    }

    /// Runs all trials forward and back. `loss` gets the samples of the readout, `[sample][trial][cell]`, and answers with one vector of slopes in the same shape.
    pub fn slopes(
        &mut self,
        given: &[(Both, Vec<f64>)],
        loss: &mut dyn FnMut(&[f64]) -> Loss,
    ) -> Result<Slopes, EngineError> {
        let ran = self.forward(given, true)?;
        let found = loss(&ran.samples);
        let of_samples = found.slopes.concat();
        self.back.init()?;
        for (field, values) in self.begin.iter().chain(given) {
            if let Some(field) = field.back {
                self.back.write(field, values)?;
            }
        }
        let mut weights: Vec<Vec<f64>> =
            self.routes.iter().map(|route| vec![0.0; if route.learns { route.tract.edges() } else { 0 }]).collect();
        // What arrives one step later, two steps later, ...
        let mut later: Vec<VecDeque<Vec<f64>>> = vec![VecDeque::new(); self.routes.len()];
        let mut nothing = Vec::new();
        for step in (0..=self.steps).rev() {
            for ((field, _), values) in self.states.iter().zip(&ran.states[step]) {
                if let Some(field) = field.back {
                    self.back.write(field, values)?;
                }
            }
            if let Readout::State(Both { back: Some(seed), .. }, count) = self.readout {
                let slopes = step.checked_sub(1).and_then(|at| of_samples.get(at * count..(at + 1) * count));
                match slopes {
                    Some(slopes) => self.back.write(seed, slopes)?,
                    None => self.back.write(seed, &vec![0.0; count])?,
                }
            }
            self.back.step(step as u64, 1, &mut nothing)?;
            nothing.clear();
            for (route, later) in self.routes.iter().zip(&mut later) {
                let Some(adjoint) = route.arrived.back else { continue };
                let mut values = if later.len() < route.tract.longest() {
                    Vec::with_capacity(route.targets)
                } else {
                    later.pop_back().unwrap_or_default()
                };
                values.clear();
                self.back.read(adjoint, 0..route.targets, &mut values)?;
                later.push_front(values);
            }
            self.send_back(step, &ran, &later, &of_samples, &mut weights)?;
        }
        self.back.observe(0)?;
        let read = |of: &Vec<(FieldId, usize)>| {
            let mut all = Vec::new();
            for &(field, count) in of {
                self.back.read(field, 0..count, &mut all)?;
            }
            Ok(all)
        };
        let weights = self.routes.iter().zip(weights).map(|(route, slopes)| route.tract.of_numbers(slopes)).collect();
        let parameters = self.gradients.iter().map(read).collect::<Result<_, EngineError>>()?;
        Ok(Slopes { loss: found.value, weights, parameters, spikes: spikes(&ran.sent) })
    }

    /// From what arrives later back to who has sent in a step.
    fn send_back(
        &mut self,
        step: usize,
        ran: &Ran,
        later: &[VecDeque<Vec<f64>>],
        of_samples: &[f64],
        weights: &mut [Vec<f64>],
    ) -> Result<(), EngineError> {
        for ((route, later), weights) in self.routes.iter().zip(later).zip(weights) {
            let later: Vec<&[f64]> = later.iter().map(Vec::as_slice).collect();
            if route.learns {
                route.tract.back_to_weights(&ran.sent[route.from][step], &later, weights, self.threads);
            }
        }
        for (number, spiking) in self.spiking.iter().enumerate() {
            let Some(adjoint) = spiking.spiked.back else { continue };
            let mut sum = match self.readout {
                Readout::Count(of) if of == number && step > 0 => of_samples.to_vec(),
                Readout::Count(_) | Readout::State(..) => vec![0.0; spiking.cells * self.trials],
            };
            for (route, later) in self.routes.iter().zip(later).filter(|(route, _)| route.from == number) {
                let later: Vec<&[f64]> = later.iter().map(Vec::as_slice).collect();
                route.tract.back_to_senders(&later, &mut sum, self.threads);
            }
            self.back.write(adjoint, &sum)?;
        }
        Ok(())
    }

    fn forward(&mut self, given: &[(Both, Vec<f64>)], keep: bool) -> Result<Ran, EngineError> {
        self.forward.init()?;
        for (field, values) in self.begin.iter().chain(given) {
            self.forward.write(field.forward, values)?;
        }
        let nobody: Sent = vec![Vec::new(); self.trials];
        let mut ran = Ran {
            sent: self.spiking.iter().map(|_| vec![nobody.clone()]).collect(),
            states: Vec::new(),
            samples: match self.readout {
                Readout::Count(of) => vec![0.0; self.spiking[of].cells * self.trials],
                Readout::State(..) => Vec::new(),
            },
        };
        let mut values = Vec::new();
        let mut nothing = Vec::new();
        for step in 0..=self.steps {
            for (number, first) in self.routes.iter().enumerate() {
                let together = |other: &&Route| other.arrived.forward == first.arrived.forward;
                // Of those that lead to one receptor, the first one brings what arrives through all of them.
                if self.routes[..number].iter().any(|other| together(&other)) {
                    continue;
                }
                values.clear();
                values.resize(first.targets, 0.0);
                for route in self.routes[number..].iter().filter(together) {
                    route.tract.arrive(&ran.sent[route.from], step + 1, &mut values, self.threads);
                }
                self.forward.write(first.arrived.forward, &values)?;
            }
            if keep {
                ran.states.push(self.read_states()?);
            }
            if step == self.steps {
                break;
            }
            self.forward.step(step as u64, 1, &mut nothing)?;
            nothing.clear();
            for (number, spiking) in self.spiking.iter().enumerate() {
                values.clear();
                self.forward.read(spiking.spiked.forward, 0..spiking.cells * self.trials, &mut values)?;
                if let Readout::Count(of) = self.readout
                    && of == number
                {
                    ran.samples.iter_mut().zip(&values).for_each(|(count, x)| *count += x);
                }
                let sent = values.chunks(spiking.cells.max(1)).map(|trial| {
                    let spiked = trial.iter().zip(0..).filter(|(x, _)| **x > 0.5);
                    spiked.map(|(_, cell)| cell).collect()
                });
                ran.sent[number].push(sent.collect());
            }
            if let Readout::State(field, count) = self.readout {
                self.forward.read(field.forward, 0..count, &mut ran.samples)?;
            }
        }
        if !self.forward.all_finite() {
            return Err(EngineError("a state is no longer a finite number".into()));
        }
        Ok(ran)
    }

    fn read_states(&self) -> Result<Vec<Vec<f64>>, EngineError> {
        let read = |(field, count): &(Both, usize)| {
            let mut values = Vec::with_capacity(*count);
            self.forward.read(field.forward, 0..*count, &mut values)?;
            Ok(values)
        };
        self.states.iter().map(read).collect()
    }
}

fn spikes(sent: &[Vec<Sent>]) -> u64 {
    sent.iter().flatten().flatten().map(|cells| cells.len() as u64).sum()
}
