//! Arrays in the memory of a device.
//!
//! In come handles that a client or an execution gave; out go numbers on the host.
//! Never true here: numbers of another type than the array's.

use super::element::{ArrayType, ElementType};
use super::error::{Error, Failure};
use super::ffi::{self, BufferHandle, Element};
use std::fmt;

/// An array on a device; freed when dropped. It may still be being computed: reading waits.
pub struct Buffer {
    pub(super) handle: BufferHandle,
    array: ArrayType,
}

impl Buffer {
    pub(super) fn new(handle: BufferHandle) -> Result<Buffer, Error> {
        let (element, dims) = handle.array().map_err(Failure::running)?;
        let array = array_type(element, &dims)?;
        Ok(Buffer { handle, array })
    }

    /// Its type and dimensions.
    pub fn array_type(&self) -> &ArrayType {
        &self.array
    }

    /// The bytes that it takes on its device, padding included.
    pub fn bytes_on_device(&self) -> Result<usize, Error> {
        self.handle.bytes_on_device().map_err(Failure::running)
    }

    /// The device that holds it.
    pub fn device_id(&self) -> Result<i32, Error> {
        self.handle.device_id().map_err(Failure::running)
    }

    /// Where it lies in its device's memory, as a number to compare.
    pub fn address(&self) -> Result<usize, Error> {
        self.handle.address().map_err(Failure::running)
    }

    /// Waits until its numbers are computed.
    pub fn wait(&self) -> Result<(), Error> {
        self.handle.wait().map_err(Failure::running)
    }

    /// Copies its numbers, row-major.
    pub fn to_vec<T: Element>(&self) -> Result<Vec<T>, Error> {
        let mut numbers = vec![T::default(); self.array.len()];
        self.read(&mut numbers)?;
        Ok(numbers)
    }

    /// Copies its numbers, row-major, to where there is room for exactly them.
    pub fn read<T: Element>(&self, out: &mut [T]) -> Result<(), Error> {
        if T::TYPE != self.array.element || out.len() != self.array.len() {
            let text = format!("{} numbers of type {} cannot take a {}", out.len(), T::TYPE, self.array);
            return Err(Error::Mismatch(text));
        }
        self.handle.read(out).map_err(Failure::running)
    }

    /// Whether its memory was given to the result of an execution.
    pub fn is_deleted(&self) -> Result<bool, Error> {
        self.handle.is_deleted().map_err(Failure::running)
    }
}

impl fmt::Debug for Buffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Buffer({})", self.array)
    }
}

/// From the interface's numbers.
pub(super) fn array_type(element: i32, dims: &[i64]) -> Result<ArrayType, Error> {
    let known = ElementType::ALL.into_iter().find(|&known| ffi::code(known) == element);
    let Some(element) = known else {
        return Err(Error::Unsupported(format!("arrays whose elements have PJRT's type {element}")));
    };
    let dims = dims.iter().map(|&dim| {
        usize::try_from(dim).map_err(|_| Error::Unsupported(format!("an array with a dimension of {dim}")))
    });
    Ok(ArrayType { element, dims: dims.collect::<Result<_, _>>()? })
}
