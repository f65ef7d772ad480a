//! neuroc: a compiler for biophysical neuron models.
pub mod runtime;
