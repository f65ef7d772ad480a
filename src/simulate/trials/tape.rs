//! What is kept of all steps on the way forward, within a budget.
//!
//! In come the states of all trials and a number of bytes; out goes of how many steps there is room for them, and which.
//! Never true here: more is kept than there is room for, but for who has spiked.
//!
//! Where there is no room for all steps, states are kept where binomial checkpoints want them, and steps are taken again on the way back.

use super::{Both, Net, Readout};
use crate::simulate::backward::schedule::{Kept, again};

/// For what there is room.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Room {
    /// Bytes that are kept.
    pub bytes: f64,
    /// Of how many steps states are kept at the same time, with the beginning.
    pub kept: u64,
    /// How many steps are taken again on the way back.
    pub again: u64,
}

impl Room {
    /// Of a net whose numbers have so many bytes. The error says how many bytes it takes at least.
    pub fn new(net: &Net, number: usize, budget: f64) -> Result<Room, f64> {
        let steps = net.steps as u64;
        let bytes = |all: bool| (number * held(net, all).iter().map(|(_, count)| count).sum::<usize>()) as f64;
        let read = |readout: &Readout| match *readout {
            Readout::Count(of) => net.spiking[of].cells * net.trials,
            Readout::Spikes(of) => net.spiking[of].cells * net.trials * net.steps,
            Readout::State(_, count) => count * net.steps,
        };
        // What is read out, and its slopes.
        let read = (2 * size_of::<f64>() * net.readouts.iter().map(read).sum::<usize>()) as f64;
        let whole = read + bytes(false) * (steps + 1) as f64;
        if whole <= budget {
            return Ok(Room { bytes: whole, kept: steps + 1, again: 0 });
        }
        // One of them is what is computed last, and not kept for long.
        let each = bytes(true);
        let slots = ((budget - read) / each.max(1.0)).min((steps + 1) as f64) as u64;
        match slots.saturating_sub(1) {
            0 => Err(whole.min(read + 2.0 * each)),
            kept => Ok(Room { bytes: read + slots as f64 * each, kept, again: again(steps, kept) }),
        }
    }

    /// Are steps taken again?
    fn takes_again(self) -> bool {
        self.again > 0
    }
}

/// The states that are kept: those that going back needs, or all, from which steps can be taken again.
fn held(net: &Net, all: bool) -> Vec<(Both, usize)> {
    let passed = |both: &Both| net.passing.iter().any(|passing| passing.passed.forward == both.forward);
    let states = net.states.iter().filter(|(both, _)| all || both.back.is_some() || passed(both));
    states.copied().collect()
}

/// States of some steps. The memory of those that are gone is used again.
pub struct Tape<T> {
    /// Which states.
    pub held: Vec<(Both, usize)>,
    /// The values of each.
    kept: Kept<Vec<Vec<T>>>,
    free: Vec<Vec<Vec<T>>>,
}

impl<T> Tape<T> {
    /// An empty one with room for all steps.
    pub fn whole(net: &Net) -> Tape<T> {
        Tape { held: held(net, false), kept: Kept::new(net.steps as u64 + 1), free: Vec::new() }
    }

    /// An empty one.
    pub fn new(net: &Net, room: Room) -> Tape<T> {
        Tape { held: held(net, room.takes_again()), kept: Kept::new(room.kept), free: Vec::new() }
    }

    /// Forgets all.
    pub fn clear(&mut self) {
        self.free.extend(self.kept.clear());
    }

    /// Forgets what lies behind a step, and answers with the step of the last state that is kept.
    pub fn back_to(&mut self, step: u64) -> u64 {
        while let Some(values) = self.kept.behind(step) {
            self.free.push(values);
        }
        self.kept.last().map_or(0, |(at, _)| at)
    }

    /// Is the last state that is kept that after so many steps?
    pub fn is_kept(&self, step: u64) -> bool {
        self.kept.last().is_some_and(|(at, _)| at == step)
    }

    /// Is the state after `step` steps to be kept, on the way from the last one that is to that after `to`?
    pub fn wants(&self, step: u64, to: u64) -> bool {
        self.kept.next(to) == Some(step)
    }

    /// Room for the values of the states of a step.
    pub fn room(&mut self) -> Vec<Vec<T>> {
        let mut values = self.free.pop().unwrap_or_default();
        values.resize_with(self.held.len(), Vec::new);
        values
    }

    /// Keeps the states after so many steps.
    pub fn keep(&mut self, step: u64, values: Vec<Vec<T>>) {
        self.kept.keep(step, values);
    }

    /// The last values that are kept.
    pub fn last(&self) -> &[Vec<T>] {
        self.kept.last().map_or(&[], |(_, values)| values)
    }
}
