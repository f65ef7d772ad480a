//! From a plan to StableHLO.
//!
//! In come a [`crate::codegen::plan::Plan`] and a [`crate::codegen::plan::DevicePlan`]; out go [`Entry`] points, functions over whole
//! arrays, and MLIR for them.
//! Never true here: an operation is built whose types were not checked, or MLIR is known outside of `mlir`.

mod branches;
pub mod builder;
mod deliveries;
mod entry;
mod lanes;
#[cfg(feature = "xla")]
pub mod mlir;
mod poisson;
mod remember;
mod slot;

pub use entry::{Column, Course, Drive, Entry, Form, Given, Kind, Port, Readout, Route, Sender};
pub use lanes::{real, stored};
pub use slot::{Feed, Fixed, Inside, Part, Slot, Trial, slot_name};
