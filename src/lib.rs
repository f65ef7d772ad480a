//! neuroc: a compiler for biophysical neuron models.
pub mod diag;
pub mod source;
pub mod syntax;
