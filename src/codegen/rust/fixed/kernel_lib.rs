//! Kernels for the native engine of neuroc.

pub mod ffi_kernels;
pub mod kernels;
pub mod runtime;
