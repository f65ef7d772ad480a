//! Compiled programs: what they cost, and running them.
//!
//! In come handles of programs and arguments; out go results and what XLA estimates.
//! Never true here: a result that is read before it is computed.

use super::buffer::{Buffer, array_type};
use super::element::ArrayType;
use super::error::{Error, Failure};
use super::ffi::{CompiledHandle, EventHandle, LoadedHandle};
use super::options::Value;
use std::collections::BTreeMap;
use std::ops::Deref;

/// A compiled program, for whatever device.
pub struct Compiled {
    handle: CompiledHandle,
    name: String,
    outputs: Vec<ArrayType>,
}

impl Compiled {
    pub(super) fn new(handle: CompiledHandle) -> Result<Compiled, Error> {
        let outputs = handle.outputs().map_err(Failure::running)?;
        let outputs = outputs.iter().map(|(element, dims)| array_type(*element, dims)).collect::<Result<_, _>>()?;
        Ok(Compiled { name: handle.name().map_err(Failure::running)?, outputs, handle })
    }

    /// The name of its module.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The types of its results.
    pub fn outputs(&self) -> &[ArrayType] {
        &self.outputs
    }

    /// What XLA estimates that one run costs, such as `flops`, `bytes accessed`, `transcendentals`; each plugin has
    /// its own properties. The body of a loop is counted once.
    pub fn cost_analysis(&self) -> Result<BTreeMap<String, Value>, Error> {
        Ok(self.handle.cost().map_err(Failure::running)?.into_iter().collect())
    }

    /// The memory that one run takes.
    pub fn memory(&self) -> Result<CompiledMemory, Error> {
        let [code, arguments, outputs, aliased, temporaries] = self.handle.memory().map_err(Failure::running)?;
        Ok(CompiledMemory { code, arguments, outputs, aliased, temporaries })
    }

    /// The executable as bytes, for [`Client::load`](super::Client::load) with the same plugin.
    pub fn serialize(&self) -> Result<Vec<u8>, Error> {
        self.handle.serialize().map_err(Failure::running)
    }
}

impl std::fmt::Debug for Compiled {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Compiled({})", self.name)
    }
}

/// The memory that one run of a program takes on its device, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CompiledMemory {
    /// Machine code; negative where the plugin does not tell.
    pub code: i64,
    /// Arguments.
    pub arguments: i64,
    /// Results.
    pub outputs: i64,
    /// Results in the place of donated arguments.
    pub aliased: i64,
    /// In between.
    pub temporaries: i64,
}

/// An argument of a run.
#[derive(Debug)]
pub enum Argument<'a> {
    /// It is as it was afterwards. Where the program would overwrite it, it is copied.
    Keep(&'a Buffer),
    /// Its memory goes to the result that the program says (`tf.aliasing_output`, `jax.buffer_donor`), and is freed
    /// if to none.
    Donate(Buffer),
}

/// A compiled program on its device.
pub struct Executable {
    loaded: LoadedHandle,
    compiled: Compiled,
}

impl Executable {
    pub(super) fn new(loaded: LoadedHandle) -> Result<Executable, Error> {
        let compiled = Compiled::new(loaded.compiled().map_err(Failure::running)?)?;
        Ok(Executable { loaded, compiled })
    }

    /// Runs the program and waits until it is done.
    pub fn execute(&self, arguments: Vec<Argument<'_>>) -> Result<Vec<Buffer>, Error> {
        let (outputs, done) = self.launch(arguments)?;
        done.wait()?;
        Ok(outputs)
    }

    /// Starts the program. Its results can be arguments of the next run, or read, at once: the device keeps the
    /// order. A failure shows where something is waited for.
    pub fn launch(&self, arguments: Vec<Argument<'_>>) -> Result<(Vec<Buffer>, Event), Error> {
        let buffers: Vec<_> = arguments
            .iter()
            .map(|argument| match argument {
                Argument::Keep(buffer) => &buffer.handle,
                Argument::Donate(buffer) => &buffer.handle,
            })
            .collect();
        let kept: Vec<i64> = (0..)
            .zip(&arguments)
            .filter_map(|(index, argument)| matches!(argument, Argument::Keep(_)).then_some(index))
            .collect();
        let run = self.loaded.execute(&self.compiled.handle, &buffers, &kept);
        let (outputs, done) = run.map_err(Failure::running)?;
        let outputs = outputs.into_iter().map(Buffer::new).collect::<Result<_, _>>()?;
        Ok((outputs, Event { handle: done }))
    }
}

impl Deref for Executable {
    type Target = Compiled;

    fn deref(&self) -> &Compiled {
        &self.compiled
    }
}

impl std::fmt::Debug for Executable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Executable({})", self.name())
    }
}

/// The end of a run.
#[must_use = "a failure shows only to those who wait"]
pub struct Event {
    handle: EventHandle,
}

impl Event {
    /// Waits for it.
    pub fn wait(self) -> Result<(), Error> {
        self.handle.wait().map_err(Failure::running)
    }

    /// Whether it has come.
    pub fn is_ready(&self) -> Result<bool, Error> {
        self.handle.is_ready().map_err(Failure::running)
    }
}

impl std::fmt::Debug for Event {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Event")
    }
}
