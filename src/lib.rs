//! neuroc: a compiler for biophysical neuron models.

pub mod plot;
pub mod results;
