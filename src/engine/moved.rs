//! Runs whose states are moved a little now and then, which tell how sensitive a model is.
//!
//! In comes an engine; out goes one that does the same, but moves all states by [`MOVED`] at the start and some times later.
//! Never true here: anything else differs; or what happens at a step depends on the steps that one call takes.
//!
//! The start alone would not do: a cell that rests for a while forgets it, before anything can become of it.

use super::{Engine, EngineError, Spike, UnderWay};
use crate::runtime::rng::Draw;
use crate::step::FieldId;
use std::ops::Range;

/// By which part of itself each state is moved, up or down; a state that is zero, by that part of its canonical unit.
pub const MOVED: f64 = 1e-9;

/// How many times states are moved, the start included, if there are as many steps.
pub const TIMES: u64 = 20;

/// The key of the signs. It has nothing to do with the seed of the run.
const SEED: u64 = 1;

/// An engine whose states are moved.
pub struct Moved<'e> {
    engine: &'e mut dyn Engine,
    /// What is moved, with numbers of cells.
    states: Vec<(FieldId, usize)>,
    /// Steps from one time to the next.
    every: u64,
}

impl<'e> Moved<'e> {
    /// Moves these states, given with their numbers of cells, in a run of so many steps. A state's place decides its signs.
    pub fn new(engine: &'e mut dyn Engine, states: Vec<(FieldId, usize)>, steps: u64) -> Moved<'e> {
        Moved { engine, states, every: steps.div_ceil(TIMES).max(1) }
    }

    /// Moves all states, as they are before a step.
    fn shift(&mut self, step: u64) -> Result<(), EngineError> {
        for (state, &(field, cells)) in self.states.iter().enumerate() {
            let mut values = Vec::with_capacity(cells);
            self.engine.read(field, 0..cells, &mut values)?;
            for (cell, x) in values.iter_mut().enumerate() {
                *x = moved(*x, state as u32, cell as u32, step);
            }
            self.engine.write(field, &values)?;
        }
        Ok(())
    }
}

/// The moved value of a state (by its place among the states) of a cell.
fn moved(x: f64, state: u32, cell: u32, step: u64) -> f64 {
    let up = Draw { seed: SEED, stream: state }.uniform(cell, step) < 0.5;
    let by = MOVED * if x == 0.0 { 1.0 } else { x.abs() };
    if up { x + by } else { x - by }
}

impl Engine for Moved<'_> {
    fn init(&mut self) -> Result<(), EngineError> {
        self.engine.init()?;
        self.shift(0)
    }

    fn step(&mut self, first_step: u64, steps: u32, spikes: &mut Vec<Spike>) -> Result<(), EngineError> {
        let end = first_step + u64::from(steps);
        let mut now = first_step;
        while now < end {
            if now > 0 && now.is_multiple_of(self.every) {
                self.shift(now)?;
            }
            let next = ((now / self.every + 1) * self.every).min(end);
            self.engine.step(now, (next - now) as u32, spikes)?;
            now = next;
        }
        Ok(())
    }

    fn observe(&mut self, step: u64) -> Result<(), EngineError> {
        self.engine.observe(step)
    }

    fn read(&self, field: FieldId, cells: Range<usize>, out: &mut Vec<f64>) -> Result<(), EngineError> {
        self.engine.read(field, cells, out)
    }

    fn write(&mut self, field: FieldId, values: &[f64]) -> Result<(), EngineError> {
        self.engine.write(field, values)
    }

    fn all_finite(&self) -> bool {
        self.engine.all_finite()
    }

    fn knows_events(&self) -> bool {
        self.engine.knows_events()
    }

    fn under_way(&self, step: u64) -> Vec<UnderWay> {
        self.engine.under_way(step)
    }

    fn resume(&mut self, step: u64, under_way: &[UnderWay]) -> Result<(), EngineError> {
        self.engine.resume(step, under_way)
    }
}

#[cfg(test)]
mod tests {
    use super::{MOVED, moved};

    #[test]
    fn states_move_up_and_down_by_a_part_of_themselves() {
        let up: Vec<bool> = (0..100).map(|cell| moved(-65.0, 0, cell, 0) > -65.0).collect();
        assert!(up.contains(&true) && up.contains(&false));
        let later: Vec<bool> = (0..100).map(|cell| moved(-65.0, 0, cell, 500) > -65.0).collect();
        assert_ne!(up, later);
        for cell in 0..100 {
            assert!(((moved(-65.0, 0, cell, 7) + 65.0).abs() - 65.0 * MOVED).abs() < 1e-13);
            assert_eq!(moved(0.0, 3, cell, 7).abs(), MOVED);
        }
    }
}
