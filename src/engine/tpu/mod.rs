//! TPUs without a TPU: compiling for chips that are elsewhere, and what is to be expected of them.
//!
//! In come a plan, its surroundings and a [`Target`]; out go serialized executables and a report of what they will cost.
//! Never true here: a number that is called measured; nothing runs.

mod chip;
mod cost;
mod target;

pub use chip::{Chip, Chips, chips};
pub use cost::{Gathers, StepCost, Tried, choose_gathers, compile};
pub use target::Target;
