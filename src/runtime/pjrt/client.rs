//! Devices of this machine, and what is made on them.
//!
//! In come a plugin, programs and numbers; out go devices, executables and buffers.
//! Never true here: more than one device in one computation.

use super::buffer::Buffer;
use super::error::{Error, Failure};
use super::executable::Executable;
use super::ffi::{ClientHandle, DeviceHandle, Element};
use super::options::{CompileOptions, Value};
use super::plugin::Plugin;
use std::fmt;

/// A plugin with its devices set up. Cheap to clone; the devices are given back when the last clone and everything
/// made on them is dropped.
#[derive(Clone)]
pub struct Client {
    plugin: Plugin,
    handle: ClientHandle,
    platform_name: String,
    platform_version: String,
    devices: Vec<Device>,
}

impl Client {
    /// Sets up a plugin's devices. Options are the plugin's own, by name; none are needed.
    pub fn new(plugin: &Plugin, options: &[(&str, Value)]) -> Result<Client, Error> {
        let starting = |failure: Failure| failure.starting(plugin.path());
        let handle = plugin.library.client(options).map_err(starting)?;
        let device = |handle: DeviceHandle| -> Result<Device, Failure> {
            Ok(Device { id: handle.id()?, kind: handle.kind()?, description: handle.description()?, handle })
        };
        let devices = handle.devices().and_then(|all| all.into_iter().map(device).collect::<Result<Vec<_>, _>>());
        let devices = devices.map_err(starting)?;
        if devices.is_empty() {
            let text = "it has none that this process may use".into();
            return Err(Error::NoDevice { path: plugin.path().to_path_buf(), text });
        }
        Ok(Client {
            plugin: *plugin,
            platform_name: handle.platform_name().map_err(starting)?,
            platform_version: handle.platform_version().map_err(starting)?,
            handle,
            devices,
        })
    }

    /// The plugin.
    pub fn plugin(&self) -> Plugin {
        self.plugin
    }

    /// The kind of its devices: `cpu`, `cuda`, `tpu`.
    pub fn platform_name(&self) -> &str {
        &self.platform_name
    }

    /// What it is made of, such as the version of CUDA; free text.
    pub fn platform_version(&self) -> &str {
        &self.platform_version
    }

    /// The devices that this process may use: one at least. The first is the default.
    pub fn devices(&self) -> &[Device] {
        &self.devices
    }

    /// Compiles a program, MLIR as text or bytecode, for one device.
    pub fn compile(&self, program: &[u8], options: &CompileOptions) -> Result<Executable, Error> {
        let loaded = self.handle.compile(program, &options.encode()).map_err(Failure::compiling)?;
        Executable::new(loaded)
    }

    /// Loads what [`Compiled::serialize`](super::Compiled::serialize) gave for a device of this kind.
    pub fn load(&self, serialized: &[u8]) -> Result<Executable, Error> {
        Executable::new(self.handle.load(serialized).map_err(Failure::running)?)
    }

    /// Copies numbers, row-major, to the default device. No dimensions are needed for a single number.
    pub fn buffer<T: Element>(&self, numbers: &[T], dims: &[usize]) -> Result<Buffer, Error> {
        self.devices[0].buffer(numbers, dims)
    }

    /// How many buffers, executables and events of this client are alive in this process.
    pub fn live_objects(&self) -> usize {
        self.handle.children()
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Client({}, {} devices)", self.platform_name, self.devices.len())
    }
}

/// A device of this machine.
#[derive(Clone)]
pub struct Device {
    handle: DeviceHandle,
    id: i32,
    kind: String,
    description: String,
}

impl Device {
    /// Its number, for [`CompileOptions::device`].
    pub fn id(&self) -> i32 {
        self.id
    }

    /// What the vendor calls this kind of device.
    pub fn kind(&self) -> &str {
        &self.kind
    }

    /// In words.
    pub fn description(&self) -> &str {
        &self.description
    }

    /// Its memory; `None` where the plugin does not count it.
    pub fn memory_stats(&self) -> Result<Option<MemoryStats>, Error> {
        match self.handle.memory().map_err(Failure::running) {
            Ok((in_use, peak, limit)) => Ok(Some(MemoryStats { in_use, peak, limit })),
            Err(Error::Unsupported(_)) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Copies numbers, row-major, to this device. No dimensions are needed for a single number.
    pub fn buffer<T: Element>(&self, numbers: &[T], dims: &[usize]) -> Result<Buffer, Error> {
        if dims.iter().product::<usize>() != numbers.len() {
            let text = format!("{} numbers cannot fill an array of shape {dims:?}", numbers.len());
            return Err(Error::Mismatch(text));
        }
        let dims: Vec<i64> = dims.iter().map(|&dim| dim as i64).collect();
        Buffer::new(self.handle.buffer(numbers, &dims).map_err(Failure::running)?)
    }
}

impl fmt::Debug for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Device({}, {})", self.id, self.kind)
    }
}

/// The memory of a device, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MemoryStats {
    /// In use now.
    pub in_use: i64,
    /// The most that was in use.
    pub peak: Option<i64>,
    /// The most that can be.
    pub limit: Option<i64>,
}
