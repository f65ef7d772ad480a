//! DOC
//!
//! [`model::Model`] runs the model by name and in units; [`kernels`] are the functions that compute; [`runtime`] is what they
//! compute with. `include/` has the header for C, and [`ffi`] is what it declares. This crate depends on nothing but `std`.
#![deny(unsafe_code)]
#![warn(missing_docs)]

pub mod ffi;
// What passes of the compiler leave: constants they computed, offsets written out, values loaded for nothing; and names of places.
#[allow(clippy::approx_constant, clippy::identity_op, non_snake_case, unused_variables)]
pub mod kernels;
pub mod model;
pub mod runtime;
