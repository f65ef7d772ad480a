//! The gradient of a loss: a run forward, and back again.
//!
//! In come an engine of a program, an engine of the program that goes back ([`crate::differentiate`]), and a loss of what is sampled; out go the loss
//! and its gradients, the same bits whatever memory there is.
//! Never true here: a derivative is computed, or more bytes of states are kept than the budget allows.
//!
//! States are kept where binomial checkpoints want them: with room for all of them nothing is computed twice; with room for `c` states no step is
//! taken more than `r` times in a run of up to `(c + r)! / c! r!` steps.

pub(super) mod schedule;

use super::sampling::{Course, Loss, Sampled, Sampling};
use crate::engine::{Edges, Engine, EngineError, Setup};
use crate::step::{FieldId, FieldKind, Program, Source, SpaceId, SpaceKind};
use schedule::Kept;
use std::sync::Arc;

/// A loss and its gradient.
#[derive(Debug, Clone, PartialEq)]
pub struct Gradient {
    /// The loss.
    pub loss: f64,
    /// For each parameter that the program that goes back was made for, by the numbers of spaces, what every element contributes; for each direction
    /// of a program that goes forward the derivative along it. Empty if nothing that is sampled depends on it.
    pub parts: Vec<Vec<(u32, Vec<f64>)>>,
    /// How many bytes of states were kept at the same time.
    pub kept: u64,
    /// How many steps forward were taken.
    pub steps: u64,
}

impl Gradient {
    /// The derivative in a parameter that is one number, or along a direction.
    pub fn total(&self, parameter: usize) -> f64 {
        self.parts.get(parameter).into_iter().flatten().flat_map(|(_, values)| values).sum()
    }
}

/// Adds what the program that goes back has besides: the edges of every relation of the program that goes forward, turned round.
pub fn turn_edges(forward: &Program, setup: &mut Setup) -> Result<(), String> {
    let mut next = forward.spaces.len();
    for (space, id) in forward.spaces.iter().zip(0..) {
        let SpaceKind::Relation { from, .. } = space.kind else { continue };
        let (Some(edges), Some(&sources)) = (setup.edges_of(SpaceId(id)), setup.sizes.get(from.0 as usize)) else {
            return Err(format!("the space `{}` has no edges", space.name));
        };
        let edges = turned(edges, sources);
        setup.sizes.push(edges.sources.len());
        setup.edges.push((SpaceId(next as u32), Arc::new(edges)));
        next += 1;
    }
    Ok(())
}

/// The same edges from their targets to their sources, of which there are so many.
fn turned(edges: &Edges, sources: usize) -> Edges {
    let mut rows: Vec<Vec<u32>> = vec![Vec::new(); sources];
    for (target, bounds) in edges.offsets.windows(2).enumerate() {
        for &source in &edges.sources[bounds[0] as usize..bounds[1] as usize] {
            if let Some(row) = rows.get_mut(source as usize) {
                row.push(target as u32);
            }
        }
    }
    let mut offsets = vec![0];
    let mut end = 0;
    for row in &rows {
        end += row.len() as u32;
        offsets.push(end);
    }
    Edges { offsets, sources: rows.concat() }
}

/// A state of the program that goes forward, and of the one that goes back if that reads it.
struct State {
    forward: FieldId,
    back: Option<FieldId>,
    elements: usize,
}

/// A run forward and back.
pub struct Backward {
    states: Vec<State>,
    sampling: Sampling,
    /// The seed of each, with the elements of its space.
    seeds: Vec<Option<(FieldId, usize)>>,
    gradients: Vec<Vec<(u32, FieldId, usize)>>,
    steps: u64,
    /// How many states can be kept, besides those of the start.
    slots: u64,
}

impl Backward {
    /// A run of so many steps. `sizes` has the elements of every space; `parameters` tells how many gradients there are. Of states at
    /// most `budget` bytes are kept; the error is a sentence.
    pub fn new(
        forward: &Program,
        back: &Program,
        sizes: &[usize],
        sampled: Vec<Sampled>,
        parameters: usize,
        steps: u64,
        budget: u64,
    ) -> Result<Backward, String> {
        let elements = |field: FieldId, program: &Program| {
            program.field(field).over.map_or(1, |space| sizes.get(space.0 as usize).copied().unwrap_or(0))
        };
        // All of them decide how a run goes on from what is kept.
        let state = |field: FieldId| {
            let there = back.find_field(&forward.field(field).name).filter(|&f| back.field(f).kind == FieldKind::State);
            State { forward: field, back: there, elements: elements(field, forward) }
        };
        let states: Vec<State> = forward.fields_where(|f| f.kind == FieldKind::State).into_iter().map(state).collect();
        let seed = |i: usize| back.bound(Source::Seed(i as u32)).map(|f| (f, elements(f, back)));
        let gradients = (0..parameters as u32)
            .map(|i| {
                let of = |f: FieldId| match back.field(f).source {
                    Source::Gradient(parameter, space) if parameter == i => Some((space, f, elements(f, back))),
                    _ => None,
                };
                let mut of: Vec<_> = (0..back.fields.len() as u32).filter_map(|f| of(FieldId(f))).collect();
                of.sort_unstable();
                of
            })
            .collect();
        let slot = 8 * states.iter().map(|s| s.elements as u64).sum::<u64>();
        // The state that is computed from is one of them.
        let slots = budget.checked_div(slot).unwrap_or(u64::MAX);
        let Some(slots) = slots.checked_sub(1) else {
            return Err(format!(
                "going back takes at least {slot} bytes, for the states at one time, and {budget} may be used; with {} it takes no step twice",
                slot.saturating_mul(steps + 1)
            ));
        };
        let seeds = (0..sampled.len()).map(seed).collect();
        let sampling = Sampling::new(forward, sampled);
        Ok(Backward { states, sampling, seeds, gradients, steps, slots: slots.min(steps) })
    }

    /// How many bytes of states are kept at the same time, at most.
    pub fn memory(&self) -> u64 {
        (self.slots + 1) * 8 * self.states.iter().map(|s| s.elements as u64).sum::<u64>()
    }

    /// Runs forward only: the samples of each, `[sample][cell]`.
    pub fn samples(&self, forward: &mut dyn Engine) -> Result<Vec<Vec<f64>>, EngineError> {
        self.sampling.run(forward, self.steps)
    }

    /// Runs from the initial values to the end and back. `loss` gets the samples of each, `[sample][cell]`.
    pub fn run(
        &self,
        forward: &mut dyn Engine,
        back: &mut dyn Engine,
        loss: &mut dyn FnMut(&[Vec<f64>]) -> Loss,
    ) -> Result<Gradient, EngineError> {
        forward.init()?;
        back.init()?;
        let mut tape = Tape { of: self, kept: Kept::new(self.slots + 1), course: Course::new(&self.sampling), most: 0 };
        let mut samples = vec![Vec::new(); self.sampling.sampled.len()];
        tape.keep(forward)?;
        tape.course.sample(&self.sampling, forward, &mut samples)?;
        tape.descend(forward, self.steps, Some(&mut samples))?;
        let loss = loss(&samples);
        let mut spikes = Vec::new();
        let mut seeded = vec![false; self.sampling.sampled.len()];
        for step in (0..=self.steps).rev() {
            tape.descend(forward, step, None)?;
            let now = tape.state(forward, step)?;
            for (state, values) in self.states.iter().zip(&now) {
                if let Some(field) = state.back {
                    back.write(field, values)?;
                }
            }
            self.seed(back, step, &loss, &mut seeded)?;
            back.step(step, 1, &mut spikes)?;
            spikes.clear();
        }
        back.observe(0)?;
        let read = |of: &Vec<(u32, FieldId, usize)>| {
            let values = |&(space, field, elements): &(u32, FieldId, usize)| {
                let mut out = Vec::new();
                back.read(field, 0..elements, &mut out)?;
                Ok((space, out))
            };
            of.iter().map(values).collect::<Result<Vec<_>, EngineError>>()
        };
        let parts = self.gradients.iter().map(read).collect::<Result<Vec<_>, EngineError>>()?;
        Ok(Gradient { loss: loss.value, parts, kept: tape.most, steps: tape.course.steps })
    }

    /// Writes the derivatives of the loss in what was sampled after a step.
    fn seed(&self, back: &mut dyn Engine, step: u64, loss: &Loss, seeded: &mut [bool]) -> Result<(), EngineError> {
        for (i, sampled) in self.sampling.sampled.iter().enumerate() {
            let Some((field, elements)) = self.seeds[i] else { continue };
            let cells = sampled.cells.len();
            let sample = sampled.steps.binary_search(&step).ok();
            let slopes = sample.and_then(|sample| loss.slopes.get(i)?.get(sample * cells..(sample + 1) * cells));
            if slopes.is_none() && !seeded[i] {
                continue;
            }
            let mut all = vec![0.0; elements];
            if let (Some(slopes), Some(all)) = (slopes, all.get_mut(sampled.cells.clone())) {
                all.copy_from_slice(slopes);
            }
            back.write(field, &all)?;
            seeded[i] = slopes.is_some();
        }
        Ok(())
    }
}

/// Kept states on the way.
struct Tape<'a> {
    of: &'a Backward,
    /// The values of each state.
    kept: Kept<Vec<Vec<f64>>>,
    course: Course,
    /// The most bytes so far.
    most: u64,
}

impl Tape<'_> {
    fn read(&self, forward: &dyn Engine) -> Result<Vec<Vec<f64>>, EngineError> {
        let read = |state: &State| {
            let mut values = Vec::with_capacity(state.elements);
            forward.read(state.forward, 0..state.elements, &mut values)?;
            Ok(values)
        };
        self.of.states.iter().map(read).collect()
    }

    /// Keeps what the engine has come to.
    fn keep(&mut self, forward: &dyn Engine) -> Result<(), EngineError> {
        let values = self.read(forward)?;
        let bytes: u64 = values.iter().map(|v| 8 * v.len() as u64).sum();
        self.kept.keep(self.course.at, values);
        self.most = self.most.max(self.kept.count() * bytes);
        Ok(())
    }

    /// Goes towards the state after `target` steps from the last one that is kept, and keeps those that checkpoints want; only if there
    /// is room for none more does it stay where it is.
    fn descend(
        &mut self,
        forward: &mut dyn Engine,
        target: u64,
        mut samples: Option<&mut Vec<Vec<f64>>>,
    ) -> Result<(), EngineError> {
        while self.kept.behind(target).is_some() {}
        while let Some(to) = self.kept.next(target) {
            self.restore(forward)?;
            self.forward(forward, to, samples.as_deref_mut())?;
            self.keep(forward)?;
        }
        match samples {
            Some(samples) => self.forward(forward, target, Some(samples)),
            None => Ok(()),
        }
    }

    /// The states after so many steps, no fewer than of the last one that is kept.
    fn state(&mut self, forward: &mut dyn Engine, step: u64) -> Result<Vec<Vec<f64>>, EngineError> {
        if let Some((at, values)) = self.kept.last()
            && at == step
        {
            return Ok(values.clone());
        }
        self.restore(forward)?;
        self.forward(forward, step, None)?;
        self.read(forward)
    }

    /// Sets the engine back to the last state that is kept, where it is not there.
    fn restore(&mut self, forward: &mut dyn Engine) -> Result<(), EngineError> {
        let Some((from, values)) = self.kept.last() else {
            return Err(EngineError("internal error: no state is kept".into()));
        };
        if self.course.at == from {
            return Ok(());
        }
        for (state, values) in self.of.states.iter().zip(values) {
            forward.write(state.forward, values)?;
        }
        self.course.at = from;
        Ok(())
    }

    /// Lets the engine take steps, and samples on the way.
    fn forward(
        &mut self,
        forward: &mut dyn Engine,
        to: u64,
        samples: Option<&mut Vec<Vec<f64>>>,
    ) -> Result<(), EngineError> {
        self.course.forward(&self.of.sampling, forward, to, samples)
    }
}
