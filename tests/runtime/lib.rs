//! The bundled runtime by itself, so that its tests can be compiled for any instruction set: `make lanes`.
#![allow(dead_code)]

#[path = "../../src/runtime/mod.rs"]
pub mod runtime;
