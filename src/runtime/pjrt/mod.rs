//! PJRT: compiling and running StableHLO through XLA's plugins.
//!
//! In come the path of a plugin (one shared library per kind of device) and programs as MLIR; out go compiled
//! executables, what they cost, and numbers.
//! Never true here: that an object outlives what it belongs to, that a failure of XLA is reported without XLA's own
//! words, or that anything is known of neurons.
//!
//! These files lie beside the bundled runtime and are not part of it: they need `libloading` and are in no generated
//! crate. `abi` declares the C interface, `ffi` alone calls it, the other files are safe.
//!
//! ```no_run
//! use neuroc::pjrt::{Argument, Client, CompileOptions, Plugin};
//!
//! # fn main() -> Result<(), neuroc::pjrt::Error> {
//! let plugin = Plugin::load("xla_cpu_pjrt.so".as_ref())?;
//! let client = Client::new(&plugin, &[])?;
//! let twice = b"func.func @main(%x: tensor<3xf64> {tf.aliasing_output = 0 : i32}) -> tensor<3xf64> {
//!   %y = stablehlo.add %x, %x : tensor<3xf64>
//!   return %y : tensor<3xf64>
//! }";
//! let twice = client.compile(twice, &CompileOptions::default())?;
//! let x = client.buffer(&[1.0, 2.0, 3.0], &[3])?;
//! // A kept argument is copied where the program would overwrite it; a donated one is overwritten in place.
//! let y = twice.execute(vec![Argument::Keep(&x)])?.remove(0);
//! let z = twice.execute(vec![Argument::Donate(y)])?.remove(0);
//! assert_eq!(z.to_vec::<f64>()?, [4.0, 8.0, 12.0]);
//! # Ok(())
//! # }
//! ```
//!
//! [`Topology::compile`] compiles for devices that are not here.

mod abi;
mod buffer;
mod client;
mod element;
mod error;
mod executable;
mod ffi;
mod options;
mod plugin;
mod topology;

pub use buffer::Buffer;
pub use client::{Client, Device, MemoryStats};
pub use element::{ArrayType, Bf16, ElementType};
pub use error::{Code, Error};
pub use executable::{Argument, Compiled, CompiledMemory, Event, Executable};
pub use ffi::Element;
pub use options::{CompileOptions, Flag, Value};
pub use plugin::{Plugin, Version};
pub use topology::Topology;
