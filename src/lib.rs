//! neuroc: a compiler for biophysical neuron models.
pub mod diag;
pub mod driver;
pub mod engine;
pub mod hir;
pub mod plot;
pub mod results;
pub mod source;
pub mod stdlib;
pub mod step;
pub mod syntax;
pub mod units;
