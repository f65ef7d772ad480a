//! The bundled runtime: what the compiler's own interpreter and every generated kernel compute with.
//!
//! Numbers come in as scalars or as groups of SIMD lanes; the same numbers come out of each, bit for bit, whatever the machine.
//! These files use `std` alone and are embedded as they stand in each generated crate, so they name each other by relative
//! paths only and work under any parent module. What kernels themselves use needs none of the rest, which the native engine leaves out of
//! what it compiles.
//! Never true here: that a result depends on the vector width, on the instruction set, on the number of threads or on the
//! platform's mathematics library (the sign and the payload of a NaN excepted, which are unspecified).

pub mod abi;
pub mod aligned;
pub mod branched;
pub mod branches;
pub mod call;
pub mod edge_text;
pub mod edges;
pub mod elementwise;
pub mod events;
pub mod lanes;
pub mod machine;
pub mod math;
pub mod named;
pub mod order;
pub mod pages;
pub mod remember;
pub mod rng;
pub mod rows;
pub mod series;
pub mod threads;
