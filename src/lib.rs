//! neuroc: a compiler for biophysical neuron models.
pub mod diag;
pub mod discretize;
pub mod driver;
pub mod engine;
pub mod hir;
pub mod interp;
pub mod ode;
pub mod passes;
pub mod plot;
pub mod results;
pub mod runtime;
pub mod source;
pub mod stdlib;
pub mod step;
pub mod syntax;
pub mod units;
