//! Trials whose steps engines take one by one, and whose events the host carries.
//!
//! In come an engine of each direction; out go what trials read out, and slopes.
//! Never true here: the order of a sum depends on the number of threads.
//!
//! States, what arrives and what comes back have the numbers of the engines. What learns is in double precision (in a [`super::Tract`]) and rounded once
//! for each run; derivatives in parameters are added up in double precision over cells and trials.

use super::given::{Brought, brought};
use super::number::Number;
use super::tape::Tape;
use super::tract::Carrier;
use super::{Both, Lost, Net, Origin, Readout, Room, Route, Runner, Sent, Slopes};
use crate::engine::{Engine, EngineError};
use crate::simulate::Loss;
use crate::step::FieldId;
use std::collections::VecDeque;

/// The engines of both directions, and what is kept of a run on the way forward.
pub struct Host<T> {
    forward: Box<dyn Engine>,
    back: Box<dyn Engine>,
    threads: usize,
    tape: Tape<T>,
    /// The frame that the engine that goes forward has.
    frame: Option<usize>,
    lost: Option<Lost>,
}

/// What happened on the way forward.
struct Ran {
    /// For each population that spikes and every step who has sent; nobody in step 0.
    sent: Vec<Vec<Sent>>,
    /// Of each readout.
    samples: Vec<Vec<f64>>,
}

/// What brings something to cells.
struct Ways<'n, T: Number> {
    /// For each projection.
    carriers: Vec<Carrier<'n, T>>,
    /// What samples bring.
    brought: Vec<Brought<'n, T>>,
}

impl<T: Number> Ways<'_, T> {
    fn new(net: &Net, threads: usize) -> Ways<'_, T> {
        let carriers = net.routes.iter().map(|route| route.tract.carrier()).collect();
        Ways { carriers, brought: brought(net, threads) }
    }
}

impl<T: Number> Host<T> {
    /// With an engine for each direction; so many threads carry events.
    pub fn new(net: &Net, forward: Box<dyn Engine>, back: Box<dyn Engine>, threads: usize) -> Host<T> {
        Host { forward, back, threads, tape: Tape::whole(net), frame: None, lost: None }
    }
}

impl<T: Number> Runner for Host<T> {
    fn samples(&mut self, net: &Net, given: &[Vec<f64>]) -> Result<(Vec<Vec<f64>>, Vec<u64>), EngineError> {
        let ran = self.forward(net, &Ways::new(net, self.threads), given, false)?;
        Ok((ran.samples, spikes(&ran.sent, net.trials)))
    }

    fn slopes(
        &mut self,
        net: &Net,
        given: &[Vec<f64>],
        loss: &mut dyn FnMut(&[Vec<f64>]) -> Loss,
    ) -> Result<Slopes, EngineError> {
        let mut ways = Ways::new(net, self.threads);
        let ran = self.forward(net, &ways, given, true)?;
        let found = loss(&ran.samples);
        self.back.init()?;
        for (field, values) in &net.begin {
            if let Some(field) = field.back {
                self.back.write(field, values)?;
            }
        }
        if let (Some(kept), Some(first)) = (net.kept, given.first()) {
            self.back.write(kept, first)?;
        }
        let mut frame = None;
        let of_edges = |route: &Route| vec![T::zero(); if route.learns { route.tract.edges() } else { 0 }];
        let mut weights: Vec<Vec<T>> = net.routes.iter().map(of_edges).collect();
        // What arrives one step later, two steps later, ...
        let mut later: Vec<VecDeque<Vec<T>>> = vec![VecDeque::new(); net.routes.len()];
        let (mut nothing, mut values, mut computed) = (Vec::new(), Vec::new(), Vec::new());
        for step in (0..=net.steps).rev() {
            let is_kept = self.visit(net, &ways, given, &ran.sent, step, &mut computed)?;
            let states = if is_kept { self.tape.last() } else { &computed };
            let is = net.given.at(step);
            if let Some(field) = net.given.of.and_then(|of| of.back).filter(|_| frame != Some(is)) {
                self.back.write(field, &given[is])?;
                frame = Some(is);
            }
            for ((field, _), values) in self.tape.held.iter().zip(states) {
                if let Some(field) = field.back {
                    T::write(&mut *self.back, field, values)?;
                }
            }
            for (readout, slopes) in net.readouts.iter().zip(&found.slopes) {
                let Readout::State(Both { back: Some(seed), .. }, count) = *readout else { continue };
                match of_step(slopes, step, count) {
                    Some(slopes) => self.back.write(seed, slopes)?,
                    None => self.back.write(seed, &vec![0.0; count])?,
                }
            }
            self.back.step(step as u64, 1, &mut nothing)?;
            nothing.clear();
            for there in &mut ways.brought {
                if let Some(adjoint) = there.arrived.back {
                    T::read(&*self.back, adjoint, there.targets, &mut values)?;
                    there.add(is, &values);
                }
            }
            for (route, later) in net.routes.iter().zip(&mut later).filter(|(route, _)| route.is_sent()) {
                let Some(adjoint) = route.arrived.back else { continue };
                let mut values = match later.len() < route.tract.longest() {
                    true => Vec::with_capacity(route.targets),
                    false => later.pop_back().unwrap_or_default(),
                };
                T::read(&*self.back, adjoint, route.targets, &mut values)?;
                later.push_front(values);
            }
            for (number, route) in net.routes.iter().enumerate().filter(|(_, route)| route.learns) {
                let (carrier, of_edges) = (&ways.carriers[number], &mut weights[number]);
                match (route.from, later[number].front()) {
                    (Origin::Spiking(from), _) => {
                        let later: Vec<&[T]> = later[number].iter().map(Vec::as_slice).collect();
                        carrier.back_to_weights(&ran.sent[from][step], &later, of_edges, self.threads);
                    }
                    (Origin::Passing(from), Some(slopes)) => {
                        let passed = net.passing[from].passed.forward;
                        let at = self.tape.held.iter().position(|(both, _)| both.forward == passed);
                        let passed = at.map_or(&[][..], |at| &states[at]);
                        carrier.back_to_bring(passed, slopes, of_edges, self.threads);
                    }
                    (Origin::Given(_) | Origin::Passing(_), _) => {}
                }
            }
            self.back_to_senders(net, &ways.carriers, step, &later, &found.slopes)?;
        }
        self.back.observe(0)?;
        let read = |of: &Vec<(FieldId, usize)>| {
            let mut all = Vec::new();
            for &(field, count) in of {
                self.back.read(field, 0..count, &mut all)?;
            }
            Ok(all)
        };
        for (number, of_edges) in ways.brought.iter().flat_map(|there| there.of_edges(net, self.threads)) {
            weights[number] = of_edges;
        }
        let edges = net.routes.iter().zip(weights).map(|(route, slopes)| route.tract.of_numbers(T::widened(slopes)));
        let parameters = net.gradients.iter().map(read).collect::<Result<_, EngineError>>()?;
        Ok(Slopes { loss: found.value, edges: edges.collect(), parameters, spikes: spikes(&ran.sent, net.trials) })
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

    fn lost(&self) -> Option<Lost> {
        self.lost
    }

    fn limit(&mut self, net: &Net, budget: f64) -> Result<Room, f64> {
        let room = Room::new(net, size_of::<T>(), budget)?;
        self.tape = Tape::new(net, room);
        Ok(room)
    }
}

impl<T: Number> Host<T> {
    /// From what arrives later back to who has sent in a step.
    fn back_to_senders(
        &mut self,
        net: &Net,
        carriers: &[Carrier<'_, T>],
        step: usize,
        later: &[VecDeque<Vec<T>>],
        slopes: &[Vec<f64>],
    ) -> Result<(), EngineError> {
        for (number, spiking) in net.spiking.iter().enumerate() {
            let Some(adjoint) = spiking.spiked.back else { continue };
            let count = spiking.cells * net.trials;
            let mut sum = vec![T::zero(); count];
            for (readout, slopes) in net.readouts.iter().zip(slopes) {
                let slopes = match *readout {
                    Readout::Count(of) if of == number && step > 0 => Some(slopes.as_slice()),
                    Readout::Spikes(of) if of == number => of_step(slopes, step, count),
                    Readout::Count(_) | Readout::Spikes(_) | Readout::State(..) => None,
                };
                let slopes = slopes.map(T::nearest);
                sum.iter_mut().zip(slopes.iter().flat_map(|slopes| slopes.iter())).for_each(|(sum, x)| *sum += *x);
            }
            self.along(net, carriers, Origin::Spiking(number), later, &mut sum);
            T::write(&mut *self.back, adjoint, &sum)?;
        }
        for (number, passing) in net.passing.iter().enumerate() {
            let Some(adjoint) = passing.passed.back else { continue };
            let mut sum = vec![T::zero(); passing.cells * net.trials];
            self.along(net, carriers, Origin::Passing(number), later, &mut sum);
            T::write(&mut *self.back, adjoint, &sum)?;
        }
        Ok(())
    }

    /// Adds what comes back along all projections that begin there.
    fn along(&self, net: &Net, carriers: &[Carrier<'_, T>], from: Origin, later: &[VecDeque<Vec<T>>], sum: &mut [T]) {
        let own =
            net.routes.iter().zip(carriers).zip(later).filter(|((route, _), _)| route.from == from && route.returns);
        for ((_, carrier), later) in own {
            let later: Vec<&[T]> = later.iter().map(Vec::as_slice).collect();
            carrier.back_to_senders(&later, sum, self.threads);
        }
    }

    /// All steps forward. If states are kept, going back is to come.
    fn forward(&mut self, net: &Net, ways: &Ways<'_, T>, given: &[Vec<f64>], keep: bool) -> Result<Ran, EngineError> {
        self.forward.init()?;
        for (field, values) in &net.begin {
            self.forward.write(field.forward, values)?;
        }
        (self.frame, self.lost) = (None, None);
        self.tape.clear();
        let begin = |readout: &Readout| match *readout {
            Readout::Count(of) => vec![0.0; net.spiking[of].cells * net.trials],
            Readout::Spikes(_) | Readout::State(..) => Vec::new(),
        };
        let mut ran = Ran {
            sent: net.spiking.iter().map(|_| vec![Sent::empty(net.trials)]).collect(),
            samples: net.readouts.iter().map(begin).collect(),
        };
        let mut values = Vec::new();
        for step in 0..=net.steps {
            self.bring(net, ways, &ran.sent, step)?;
            if keep && self.tape.wants(step as u64, net.steps as u64) {
                self.keep(step)?;
            }
            if step == net.steps {
                break;
            }
            self.take(net, given, step)?;
            for (number, spiking) in net.spiking.iter().enumerate() {
                T::read(&*self.forward, spiking.spiked.forward, spiking.cells * net.trials, &mut values)?;
                for (readout, samples) in net.readouts.iter().zip(&mut ran.samples) {
                    match *readout {
                        Readout::Count(of) if of == number => {
                            samples.iter_mut().zip(&values).for_each(|(count, x)| *count += (*x).into());
                        }
                        Readout::Spikes(of) if of == number => samples.extend(values.iter().map(|&x| x.into())),
                        Readout::Count(_) | Readout::Spikes(_) | Readout::State(..) => {}
                    }
                }
                ran.sent[number].push(Sent::spiked(&values, net.trials));
            }
            for (readout, samples) in net.readouts.iter().zip(&mut ran.samples) {
                if let Readout::State(field, count) = *readout {
                    self.forward.read(field.forward, 0..count, samples)?;
                }
            }
        }
        if !self.forward.all_finite() {
            self.lost = self.odd(net)?;
            return Err(EngineError("a state is no longer a finite number".into()));
        }
        Ok(ran)
    }

    /// The first state that is no finite number.
    fn odd(&self, net: &Net) -> Result<Option<Lost>, EngineError> {
        let mut values: Vec<T> = Vec::new();
        for (state, (field, count)) in net.states.iter().enumerate() {
            T::read(&*self.forward, field.forward, *count, &mut values)?;
            let is_odd = |x: &T| !Into::<f64>::into(*x).is_finite();
            if let Some(at) = values.iter().position(is_odd) {
                let cells = (count / net.trials.max(1)).max(1);
                return Ok(Some(Lost { state, trial: at / cells, cell: at % cells }));
            }
        }
        Ok(None)
    }

    /// Brings what arrives in a step, of what is sent in those before it.
    fn bring(&mut self, net: &Net, ways: &Ways<'_, T>, sent: &[Vec<Sent>], step: usize) -> Result<(), EngineError> {
        let is = net.given.at(step);
        for there in ways.brought.iter().filter(|_| self.frame != Some(is)) {
            T::write(&mut *self.forward, there.arrived.forward, &there.frames[is])?;
        }
        let mut passed = Vec::with_capacity(net.passing.len());
        for passing in &net.passing {
            let mut values = Vec::new();
            T::read(&*self.forward, passing.passed.forward, passing.cells * net.trials, &mut values)?;
            passed.push(values);
        }
        let mut values = Vec::new();
        for (number, first) in net.routes.iter().enumerate().filter(|(_, route)| route.is_sent()) {
            let together = |other: &Route| other.arrived.forward == first.arrived.forward;
            // Of those that lead to one receptor, the first one brings what arrives through all of them.
            if net.routes[..number].iter().any(together) {
                continue;
            }
            values.clear();
            values.resize(first.targets, T::zero());
            for (route, carrier) in net.routes.iter().zip(&ways.carriers).filter(|(route, _)| together(route)) {
                match route.from {
                    Origin::Spiking(from) => carrier.arrive(&sent[from], step + 1, &mut values, self.threads),
                    Origin::Passing(from) => carrier.bring(&passed[from], &mut values, self.threads),
                    Origin::Given(_) => {}
                }
            }
            T::write(&mut *self.forward, first.arrived.forward, &values)?;
        }
        Ok(())
    }

    /// Takes a step, of which has been brought what arrives.
    fn take(&mut self, net: &Net, given: &[Vec<f64>], step: usize) -> Result<(), EngineError> {
        let is = net.given.at(step);
        if let Some(of) = net.given.of.filter(|_| self.frame != Some(is)) {
            self.forward.write(of.forward, &given[is])?;
        }
        self.frame = Some(is);
        self.forward.step(step as u64, 1, &mut Vec::new())
    }

    /// Keeps the states as they are after a step.
    fn keep(&mut self, step: usize) -> Result<(), EngineError> {
        let mut values = self.tape.room();
        self.read(&mut values)?;
        self.tape.keep(step as u64, values);
        Ok(())
    }

    /// The states as they are.
    fn read(&self, states: &mut [Vec<T>]) -> Result<(), EngineError> {
        for ((field, count), values) in self.tape.held.iter().zip(states) {
            T::read(&*self.forward, field.forward, *count, values)?;
        }
        Ok(())
    }

    /// Comes to the states after a step. Are they the last that are kept? If there is no room for them they are in `computed`.
    fn visit(
        &mut self,
        net: &Net,
        ways: &Ways<'_, T>,
        given: &[Vec<f64>],
        sent: &[Vec<Sent>],
        step: usize,
        computed: &mut Vec<Vec<T>>,
    ) -> Result<bool, EngineError> {
        let from = self.tape.back_to(step as u64) as usize;
        if from == step {
            return Ok(true);
        }
        for ((field, _), values) in self.tape.held.iter().zip(self.tape.last()) {
            T::write(&mut *self.forward, field.forward, values)?;
        }
        self.frame = None;
        for again in from..step {
            self.take(net, given, again)?;
            self.bring(net, ways, sent, again + 1)?;
            if self.tape.wants(again as u64 + 1, step as u64) {
                self.keep(again + 1)?;
            }
        }
        let is_kept = self.tape.is_kept(step as u64);
        if !is_kept {
            computed.resize_with(self.tape.held.len(), Vec::new);
            self.read(computed)?;
        }
        Ok(is_kept)
    }
}

/// Of slopes with so many for each step, those behind a step; there are none before the first.
fn of_step(slopes: &[f64], step: usize, count: usize) -> Option<&[f64]> {
    slopes.get(step.checked_sub(1)? * count..step * count)
}

/// How many spikes there were in each trial.
fn spikes(sent: &[Vec<Sent>], trials: usize) -> Vec<u64> {
    let of_trial = |trial| sent.iter().flatten().map(|sent| sent.row(trial).len() as u64).sum();
    (0..trials).map(of_trial).collect()
}
