//! neuroc: a compiler for biophysical neuron models.
