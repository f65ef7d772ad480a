//! Many trials of a network at once, forward and back.
//!
//! In come a program whose events are carried ([`crate::discretize::discretize_carried`]) for all trials together, the program that goes back, the edges
//! between cells and a loss of what the trials read out; out go the loss and its gradients. On the host ([`Host`]) engines take each step, and events go
//! along edges between them; on a device (`Device`, feature `xla`) one entry point takes all steps of a direction.
//! Never true here: trials know of each other.
//!
//! The cells of a population stand trial by trial: those of trial `b` are `b * cells .. (b + 1) * cells`. In step `k` there arrives what was sent in
//! step `k - d` along an edge with a delay of `d` steps, as in any run; where delays learn, `d` lies between two steps, and a part arrives in each.

#[cfg(feature = "xla")]
mod device;
mod given;
mod held;
mod host;
mod number;
mod rows;
mod tape;
mod tract;

#[cfg(feature = "xla")]
pub use device::{Device, kinds};
pub use held::{Gaps, Held, Settled, Settling, Update};
pub use host::Host;
pub use number::Number;
pub use rows::Rows;
pub use tape::Room;
pub use tract::{Carrier, Lists, OfEdges, Sent, Tract};

use super::Loss;
use crate::engine::EngineError;
use crate::step::FieldId;

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
    /// Where it begins.
    pub from: Origin,
    /// What arrives at the targets of all trials: the state, and its adjoint.
    pub arrived: Both,
    /// How many targets there are in all trials.
    pub targets: usize,
    /// Are derivatives in its weights or delays wanted?
    pub learns: bool,
    /// Do derivatives go back along it to those who send?
    pub returns: bool,
}

impl Route {
    /// Does it carry what cells send in a step, and not what samples give?
    pub fn is_sent(&self) -> bool {
        !matches!(self.from, Origin::Given(_))
    }
}

/// Who sends along a projection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// One of the populations that spike: its number in [`Net::spiking`].
    Spiking(usize),
    /// Cells whose potentials samples give, at every moment: the number in [`Net::sent`].
    Given(usize),
    /// Cells that pass on what they have computed, from one step to the next: the number in [`Net::passing`].
    Passing(usize),
}

/// A population that spikes.
#[derive(Debug, Clone, Copy)]
pub struct Spiking {
    /// Its cells.
    pub cells: usize,
    /// Whether they have spiked: the state, and its adjoint.
    pub spiked: Both,
}

/// A population that passes on what it computes, through graded synapses.
#[derive(Debug, Clone, Copy)]
pub struct Passing {
    /// Its cells.
    pub cells: usize,
    /// What they pass on: the state, and its adjoint.
    pub passed: Both,
}

/// What a loss reads.
#[derive(Debug, Clone, Copy)]
pub enum Readout {
    /// How often each cell of one of the populations that spike has spiked: one sample.
    Count(usize),
    /// Whether each of them spikes: as many samples as steps.
    Spikes(usize),
    /// A state after each step: as many samples as steps. With the number of its values, and the seed.
    State(Both, usize),
}

/// A network in many trials.
pub struct Net {
    /// All states, with the number of values in all trials; in the program that goes back are those that it reads.
    pub states: Vec<(Both, usize)>,
    /// What cells and states begin with, for all trials.
    pub begin: Vec<(Both, Vec<f64>)>,
    /// Which of these change from call to call.
    pub follow: Vec<usize>,
    /// In the program that goes back: what samples give, where what cells begin with is made of it.
    pub kept: Option<FieldId>,
    /// What differs from trial to trial.
    pub given: Given,
    /// The populations that spike.
    pub spiking: Vec<Spiking>,
    /// The populations that pass on what they compute.
    pub passing: Vec<Passing>,
    /// What cells send whose potentials samples give, for each projection through graded synapses `[frame][trial and cell]`.
    pub sent: Vec<Vec<Vec<f64>>>,
    /// The projections.
    pub routes: Vec<Route>,
    /// What the loss reads: no state twice.
    pub readouts: Vec<Readout>,
    /// For each parameter that is free the fields of its gradient, with the number of values.
    pub gradients: Vec<Vec<(FieldId, usize)>>,
    /// How many trials there are.
    pub trials: usize,
    /// How many steps they take.
    pub steps: usize,
}

/// Values of cells that differ from trial to trial.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Given {
    /// Which parameter of the cells has them, if a step reads it.
    pub of: Option<Both>,
    /// How many there are in all trials.
    pub elements: usize,
    /// How many frames there are, one after the other; one if the values stay.
    pub frames: usize,
    /// How many steps a frame lasts.
    pub steps: usize,
}

impl Given {
    /// The frame of a step, counted from 0; the last one stays.
    pub fn at(&self, step: usize) -> usize {
        (step / self.steps.max(1)).min(self.frames.saturating_sub(1))
    }
}

/// What takes the steps of all trials. `given` are the values of [`Net::given`], `[frame][trial and cell]`.
pub trait Runner: Send {
    /// Runs all trials; the answer are the samples of each readout, `[sample][trial][cell]`, and the number of spikes in each trial.
    fn samples(&mut self, net: &Net, given: &[Vec<f64>]) -> Result<(Vec<Vec<f64>>, Vec<u64>), EngineError>;

    /// Runs all trials forward and back. `loss` gets the samples of each readout, `[sample][trial][cell]`, and answers with slopes in the same shape.
    fn slopes(
        &mut self,
        net: &Net,
        given: &[Vec<f64>],
        loss: &mut dyn FnMut(&[Vec<f64>]) -> Loss,
    ) -> Result<Slopes, EngineError>;

    /// Gives a parameter that is the same for all cells another value, in the program of each direction that has it.
    fn set_uniform(&mut self, forward: Option<FieldId>, back: Option<FieldId>, value: f64) -> Result<(), EngineError>;

    /// Lets weights live where steps are taken, of those of these routes that can; `lists` lists are remembered of each, which begin at 0.
    /// From then on slopes tell nothing of them, and the net's own are out of date. The answer are the routes.
    fn settle(
        &mut self,
        _net: &Net,
        _routes: &[Settling],
        _lists: usize,
        _update: Update<'_>,
    ) -> Result<Vec<usize>, EngineError> {
        Ok(Vec::new())
    }

    /// What lives where steps are taken.
    fn settled(&mut self) -> Option<&mut dyn Settled> {
        None
    }

    /// Where the last call has lost a state, if it has and knows.
    fn lost(&self) -> Option<Lost> {
        None
    }

    /// Keeps no more than so many bytes of all steps. The error says how many it takes at least.
    fn limit(&mut self, net: &Net, budget: f64) -> Result<Room, f64>;
}

/// Where a state is no longer a finite number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lost {
    /// Which of [`Net::states`].
    pub state: usize,
    /// The trial.
    pub trial: usize,
    /// The cell, or the compartment, among those of a trial.
    pub cell: usize,
}

/// The derivatives of a loss.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Slopes {
    /// The loss.
    pub loss: f64,
    /// For each projection the derivatives in what its edges have; empty where they are not wanted.
    pub edges: Vec<OfEdges>,
    /// For each free parameter what every element contributes.
    pub parameters: Vec<Vec<f64>>,
    /// How many spikes there were in each trial.
    pub spikes: Vec<u64>,
}
