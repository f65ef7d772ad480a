//! Compiling for devices that are not here.
//!
//! In come a plugin, the name of a topology and programs; out go executables as bytes and what XLA estimates.
//! Never true here: a device that could run them.

use super::error::{Error, Failure};
use super::executable::Compiled;
use super::ffi::TopologyHandle;
use super::options::CompileOptions;
use super::plugin::Plugin;

/// Devices by description, such as `v5e:2x2` (four TPUs).
#[derive(Clone)]
pub struct Topology {
    name: String,
    handle: TopologyHandle,
    device_kinds: Vec<String>,
}

impl Topology {
    /// Asks a plugin for a topology; which names there are, each plugin decides.
    pub fn new(plugin: &Plugin, name: &str) -> Result<Topology, Error> {
        let none = |failure: Failure| {
            let held = matches!(failure.clone().starting(plugin.path()), Error::DeviceBusy { .. });
            if held {
                failure.starting(plugin.path())
            } else {
                Error::NoTopology { name: name.to_string(), text: failure.text }
            }
        };
        let handle = plugin.library.topology(name, &[]).map_err(none)?;
        let device_kinds = handle.kinds().map_err(Failure::running)?;
        Ok(Topology { name: name.to_string(), handle, device_kinds })
    }

    /// As it was asked for.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What the vendor calls each of its devices.
    pub fn device_kinds(&self) -> &[String] {
        &self.device_kinds
    }

    /// The kind of its devices.
    pub fn platform_name(&self) -> Result<String, Error> {
        self.handle.platform_name().map_err(Failure::running)
    }

    /// What compiles for them.
    pub fn platform_version(&self) -> Result<String, Error> {
        self.handle.platform_version().map_err(Failure::running)
    }

    /// Compiles a program, MLIR as text or bytecode, for one of its devices.
    pub fn compile(&self, program: &[u8], options: &CompileOptions) -> Result<Compiled, Error> {
        Compiled::new(self.handle.compile(program, &options.encode()).map_err(Failure::compiling)?)
    }
}

impl std::fmt::Debug for Topology {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Topology({}, {} devices)", self.name, self.device_kinds.len())
    }
}
