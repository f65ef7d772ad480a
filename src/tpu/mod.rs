//! TPUs without a TPU: compiling for chips that are elsewhere, and what is to be expected of them.
//!
//! In come a plan, its surroundings and a [`Target`]; out go serialized executables and a report of what they will cost.
//! Never true here: a number that is called measured; nothing runs.

mod advice;
mod build;
mod chip;
mod cost;
mod report;
mod target;

pub use build::Job;
pub use chip::{Chip, Chips, chips};
pub use cost::{Gathers, StepCost, Tried};
pub use report::{EntryMemory, Padding, Report};
pub use target::Target;
