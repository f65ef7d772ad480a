//! The search for the step in which a value became NaN or infinite.
//!
//! In comes an engine whose states were finite before its last call and are not behind it; out go the step, and the states before it.
//! Never true here: a copy of the states is kept while all goes well. A run is the same every time, so it is done again instead:
//! that costs time once, where something is wrong anyway, and no engine needs to know what makes up its past.

use super::checkpoint::Start;
use super::cuts::{Call, Cuts};
use super::extent::Extent;
use super::run::Watcher;
use crate::engine::{Engine, EngineError, Spike};
use crate::step::{FieldId, FieldKind, Program};
use std::collections::{HashMap, VecDeque};

/// The states of all cells at the start of a step.
pub(super) type States = HashMap<FieldId, Vec<f64>>;

/// The states at the start of some steps, the last at the end.
pub(super) type History = VecDeque<(u64, States)>;

/// Where the states stopped being finite.
pub(super) struct Found {
    /// The last step at whose start all states are finite; the engine has just done it.
    pub(super) step: u64,
    /// The states at its start, and at the start of the steps before that were asked for.
    pub(super) history: History,
}

/// Reads all states of all cells.
pub(super) fn states(program: &Program, extent: &Extent, engine: &dyn Engine) -> Result<States, EngineError> {
    program
        .fields_where(|field| field.kind == FieldKind::State)
        .into_iter()
        .map(|field| {
            let cells = program.field(field).over.map_or(0, |space| extent.size(space));
            let mut values = Vec::new();
            engine.read(field, 0..cells, &mut values)?;
            Ok((field, values))
        })
        .collect()
}

/// A run whose states are not finite.
pub(super) struct Search<'a> {
    pub(super) program: &'a Program,
    pub(super) extent: &'a Extent,
    pub(super) engine: &'a mut dyn Engine,
    pub(super) cuts: &'a Cuts,
    pub(super) start: &'a Start,
    pub(super) watcher: &'a mut dyn Watcher,
}

impl Search<'_> {
    /// Does the run again from its beginning, as it was done, up to the step `until`. False if the watcher stopped it.
    pub(super) fn again(&mut self, until: u64) -> Result<bool, EngineError> {
        let mut rows: Vec<Vec<f64>> = vec![Vec::new(); self.cuts.every.len()];
        let mut spikes = Vec::new();
        self.start.set(self.engine)?;
        let mut now = self.start.step;
        while now < until {
            let left = until - now;
            let call = match self.cuts.at(now) {
                call if call.steps() <= left => call,
                Call::Record(_) | Call::Steps(_) => self.cuts.window(left),
            };
            rows.iter_mut().for_each(Vec::clear);
            spikes.clear();
            call.ask(self.engine, now, &mut rows, &mut spikes)?;
            now += call.steps();
            if !self.watcher.step(now) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Finds the step among the `steps` from `now` on, with the states at the start of the last `trace` steps. Leaves the spikes from
    /// `now` to that step in `spikes`. Nothing is found if the watcher stopped the search.
    pub(super) fn find(
        &mut self,
        now: u64,
        steps: u64,
        trace: usize,
        spikes: &mut Vec<Spike>,
    ) -> Result<Option<Found>, EngineError> {
        let trace = trace.max(1);
        let first = (now + 1).saturating_sub(trace as u64).max(self.start.step);
        if !self.again(first)? {
            return Ok(None);
        }
        let mut history = History::new();
        spikes.clear();
        for step in first..now + steps {
            if history.len() == trace {
                history.pop_front();
            }
            history.push_back((step, states(self.program, self.extent, self.engine)?));
            let before = spikes.len();
            self.engine.step(step, 1, spikes)?;
            if step < now {
                // Known already.
                spikes.clear();
            } else if !self.engine.all_finite() {
                spikes.truncate(before);
                return Ok(Some(Found { step, history }));
            }
        }
        Err(EngineError("internal error: a window of steps was not finite, but each of its steps is".into()))
    }
}
