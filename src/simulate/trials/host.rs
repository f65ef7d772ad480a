//! Trials whose steps engines take one by one, and whose events the host carries.
//!
//! In come an engine of each direction; out go what trials read out, and slopes.
//! Never true here: the order of a sum depends on the number of threads.

use super::{Both, Net, Readout, Route, Runner, Sent, Slopes};
use crate::engine::{Engine, EngineError};
use crate::simulate::Loss;
use crate::step::FieldId;
use std::collections::VecDeque;

/// The engines of both directions.
pub struct Host {
    /// Forward.
    pub forward: Box<dyn Engine>,
    /// Back.
    pub back: Box<dyn Engine>,
    /// How many threads carry events.
    pub threads: usize,
}

/// What happened on the way forward.
struct Ran {
    /// For each population that spikes and every step who has sent; nobody in step 0.
    sent: Vec<Vec<Sent>>,
    /// The states after each step, in the order of [`Net::states`].
    states: Vec<Vec<Vec<f64>>>,
    samples: Vec<f64>,
}

impl Runner for Host {
    fn samples(&mut self, net: &Net, given: &[Vec<f64>]) -> Result<(Vec<f64>, u64), EngineError> {
        let ran = self.forward(net, given, false)?;
        Ok((ran.samples, spikes(&ran.sent)))
    }

    fn slopes(
        &mut self,
        net: &Net,
        given: &[Vec<f64>],
        loss: &mut dyn FnMut(&[f64]) -> Loss,
    ) -> Result<Slopes, EngineError> {
        let ran = self.forward(net, given, true)?;
        let found = loss(&ran.samples);
        let of_samples = found.slopes.concat();
        self.back.init()?;
        for (field, values) in &net.begin {
            if let Some(field) = field.back {
                self.back.write(field, values)?;
            }
        }
        let mut frame = None;
        let mut weights: Vec<Vec<f64>> =
            net.routes.iter().map(|route| vec![0.0; if route.learns { route.tract.edges() } else { 0 }]).collect();
        // What arrives one step later, two steps later, ...
        let mut later: Vec<VecDeque<Vec<f64>>> = vec![VecDeque::new(); net.routes.len()];
        let mut nothing = Vec::new();
        for step in (0..=net.steps).rev() {
            let is = net.given.at(step);
            if let Some(field) = net.given.of.back.filter(|_| frame != Some(is)) {
                self.back.write(field, &given[is])?;
                frame = Some(is);
            }
            for ((field, _), values) in net.states.iter().zip(&ran.states[step]) {
                if let Some(field) = field.back {
                    self.back.write(field, values)?;
                }
            }
            if let Readout::State(Both { back: Some(seed), .. }, count) = net.readout {
                let slopes = step.checked_sub(1).and_then(|at| of_samples.get(at * count..(at + 1) * count));
                match slopes {
                    Some(slopes) => self.back.write(seed, slopes)?,
                    None => self.back.write(seed, &vec![0.0; count])?,
                }
            }
            self.back.step(step as u64, 1, &mut nothing)?;
            nothing.clear();
            for (route, later) in net.routes.iter().zip(&mut later) {
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
            self.send_back(net, step, &ran, &later, &of_samples, &mut weights)?;
        }
        self.back.observe(0)?;
        let read = |of: &Vec<(FieldId, usize)>| {
            let mut all = Vec::new();
            for &(field, count) in of {
                self.back.read(field, 0..count, &mut all)?;
            }
            Ok(all)
        };
        let edges = net.routes.iter().zip(weights).map(|(route, slopes)| route.tract.of_numbers(slopes)).collect();
        let parameters = net.gradients.iter().map(read).collect::<Result<_, EngineError>>()?;
        Ok(Slopes { loss: found.value, edges, parameters, spikes: spikes(&ran.sent) })
    }

    fn set_uniform(&mut self, forward: Option<FieldId>, back: Option<FieldId>, value: f64) -> Result<(), EngineError> {
        if let Some(field) = forward {
            self.forward.set_uniform(field, value)?;
        }
        if let Some(field) = back {
            self.back.set_uniform(field, value)?;
        }
        Ok(())
    }

    /// The states that are kept on the way forward.
    fn bytes(&self, net: &Net) -> f64 {
        let values: usize = net.states.iter().map(|(_, count)| count).sum();
        8.0 * values as f64 * (net.steps as f64 + 1.0)
    }
}

impl Host {
    /// From what arrives later back to who has sent in a step.
    fn send_back(
        &mut self,
        net: &Net,
        step: usize,
        ran: &Ran,
        later: &[VecDeque<Vec<f64>>],
        of_samples: &[f64],
        weights: &mut [Vec<f64>],
    ) -> Result<(), EngineError> {
        for ((route, later), weights) in net.routes.iter().zip(later).zip(weights) {
            let later: Vec<&[f64]> = later.iter().map(Vec::as_slice).collect();
            if route.learns {
                route.tract.back_to_weights(&ran.sent[route.from][step], &later, weights, self.threads);
            }
        }
        for (number, spiking) in net.spiking.iter().enumerate() {
            let Some(adjoint) = spiking.spiked.back else { continue };
            let mut sum = match net.readout {
                Readout::Count(of) if of == number && step > 0 => of_samples.to_vec(),
                Readout::Count(_) | Readout::State(..) => vec![0.0; spiking.cells * net.trials],
            };
            for (route, later) in net.routes.iter().zip(later).filter(|(route, _)| route.from == number) {
                let later: Vec<&[f64]> = later.iter().map(Vec::as_slice).collect();
                route.tract.back_to_senders(&later, &mut sum, self.threads);
            }
            self.back.write(adjoint, &sum)?;
        }
        Ok(())
    }

    fn forward(&mut self, net: &Net, given: &[Vec<f64>], keep: bool) -> Result<Ran, EngineError> {
        self.forward.init()?;
        for (field, values) in &net.begin {
            self.forward.write(field.forward, values)?;
        }
        let mut frame = None;
        let nobody: Sent = vec![Vec::new(); net.trials];
        let mut ran = Ran {
            sent: net.spiking.iter().map(|_| vec![nobody.clone()]).collect(),
            states: Vec::new(),
            samples: match net.readout {
                Readout::Count(of) => vec![0.0; net.spiking[of].cells * net.trials],
                Readout::State(..) => Vec::new(),
            },
        };
        let mut values = Vec::new();
        let mut nothing = Vec::new();
        for step in 0..=net.steps {
            for (number, first) in net.routes.iter().enumerate() {
                let together = |other: &&Route| other.arrived.forward == first.arrived.forward;
                // Of those that lead to one receptor, the first one brings what arrives through all of them.
                if net.routes[..number].iter().any(|other| together(&other)) {
                    continue;
                }
                values.clear();
                values.resize(first.targets, 0.0);
                for route in net.routes[number..].iter().filter(together) {
                    route.tract.arrive(&ran.sent[route.from], step + 1, &mut values, self.threads);
                }
                self.forward.write(first.arrived.forward, &values)?;
            }
            if keep {
                ran.states.push(self.read_states(net)?);
            }
            if step == net.steps {
                break;
            }
            let is = net.given.at(step);
            if frame != Some(is) {
                self.forward.write(net.given.of.forward, &given[is])?;
                frame = Some(is);
            }
            self.forward.step(step as u64, 1, &mut nothing)?;
            nothing.clear();
            for (number, spiking) in net.spiking.iter().enumerate() {
                values.clear();
                self.forward.read(spiking.spiked.forward, 0..spiking.cells * net.trials, &mut values)?;
                if let Readout::Count(of) = net.readout
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
            if let Readout::State(field, count) = net.readout {
                self.forward.read(field.forward, 0..count, &mut ran.samples)?;
            }
        }
        if !self.forward.all_finite() {
            return Err(EngineError("a state is no longer a finite number".into()));
        }
        Ok(ran)
    }

    fn read_states(&self, net: &Net) -> Result<Vec<Vec<f64>>, EngineError> {
        let read = |(field, count): &(Both, usize)| {
            let mut values = Vec::with_capacity(*count);
            self.forward.read(field.forward, 0..*count, &mut values)?;
            Ok(values)
        };
        net.states.iter().map(read).collect()
    }
}

fn spikes(sent: &[Vec<Sent>]) -> u64 {
    sent.iter().flatten().flatten().map(|cells| cells.len() as u64).sum()
}
