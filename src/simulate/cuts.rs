//! How a run is cut into calls of its engine.
//!
//! In comes how many steps are done; out goes the next [`Call`].
//! Never true here: the answer depends on anything that happened, so that a run can be done again call by call.

use crate::engine::{Engine, EngineError, Spike, Stride};

/// What an engine is asked for at once.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Call {
    /// So many steps, recorded by the engine itself.
    Record(u64),
    /// So many steps. No sample is due in them but at their end.
    Steps(u32),
}

impl Call {
    /// How many steps these are.
    pub(super) fn steps(self) -> u64 {
        match self {
            Call::Record(steps) => steps,
            Call::Steps(steps) => u64::from(steps),
        }
    }

    /// Asks for it, from the step `now` on. Samples are appended to `rows`, and spikes to `spikes`.
    pub(super) fn ask(
        self,
        engine: &mut dyn Engine,
        now: u64,
        rows: &mut [Vec<f64>],
        spikes: &mut Vec<Spike>,
    ) -> Result<(), EngineError> {
        match self {
            Call::Record(_) => engine.record(now, rows, spikes),
            Call::Steps(steps) => engine.step(now, steps, spikes),
        }
    }
}

/// The calls of a run.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Cuts {
    /// Steps of the run.
    pub(super) steps: u64,
    /// Steps of a call at most, where the engine does not record by itself.
    pub(super) window: u32,
    /// How the engine records by itself.
    pub(super) stride: Stride,
    /// Steps from one sample to the next, of every record.
    pub(super) every: Vec<u64>,
    /// Where a call in which the engine records is done in windows instead.
    pub(super) careful: Vec<u64>,
}

impl Cuts {
    /// What to ask for after so many steps.
    pub(super) fn at(&self, now: u64) -> Call {
        let long = self.stride.steps();
        let careful = self.careful.iter().any(|&from| (from..from + long).contains(&now));
        if long > 0 && !careful && now + long <= self.steps && now.is_multiple_of(u64::from(self.stride.every)) {
            return Call::Record(long);
        }
        let due = self.every.iter().map(|every| (now / every + 1) * every).min().unwrap_or(self.steps);
        self.window(due.min(self.steps) - now)
    }

    /// A window of at most so many steps.
    pub(super) fn window(&self, most: u64) -> Call {
        Call::Steps(most.min(u64::from(self.window.max(1))) as u32)
    }
}
