//! neuroc: a compiler for biophysical neuron models.
pub mod codegen;
pub mod diag;
pub mod engine;
pub mod interp;
pub mod passes;
pub mod runtime;
pub mod source;
pub mod step;
pub mod syntax;
