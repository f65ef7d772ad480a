//! DOC
//!
//! [`model::Model`] runs the model by name and in units; [`kernels`] are the functions that compute; [`runtime`] is what they
//! compute with. `include/` has the header for C, and [`ffi`] is what it declares. This crate depends on nothing but `std`.
#![deny(unsafe_code)]
#![warn(missing_docs)]

pub mod ffi;
#[allow(clippy::approx_constant)] // constants that passes of the compiler have made
pub mod kernels;
pub mod model;
pub mod runtime;
