//! Runs a compiled model: how large it is, what it is given, the loop over calls of an engine, what is recorded, the trap for NaN.
//!
//! In come a continuous model, its step program and an engine; rows and spikes go to a [`Sink`] while the run goes on, and a
//! [`RunResult`](crate::results::RunResult) or what went wrong comes out.
//! Never true here: a number is computed that belongs into a kernel.

mod along;
mod around;
mod backward;
mod checkpoint;
mod culprit;
mod cuts;
mod edges;
mod extent;
mod memory;
pub mod network;
mod pace;
mod parameters;
mod potential;
mod records;
mod run;
mod sampling;
mod setup;
mod sink;
mod stepping;
#[cfg(test)]
mod tests;
mod time;
mod trap;
pub mod trials;
mod ways;

pub use along::Along;
pub use backward::{Backward, Gradient, turn_edges};
pub use checkpoint::{Start, checkpoint, past};
pub(crate) use culprit::said;
pub use edges::recorded_edges;
pub(crate) use edges::{connections, expected_edges, wrong_connection, wrong_projection};
pub use extent::{Extent, extent};
pub use memory::memory;
pub use parameters::{contents, parameters};
pub use records::{Record, Records, Train, recording, records};
pub use run::{Ending, Outcome, Run, RunError, RunOptions, Spiking, Unwatched, Watcher, run};
pub use sampling::{Loss, Sampled};
pub use setup::{Shared, setup, shared};
pub use sink::{Memory, Nowhere, Sink, SinkError, Stream};
pub use stepping::{Quantity, Stepping};
pub use time::Grid;
pub(crate) use time::moment;
