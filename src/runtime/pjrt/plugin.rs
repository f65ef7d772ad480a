//! Plugins: XLA for one kind of device, as a shared library.
//!
//! In comes a path; out goes a [`Plugin`] whose version fits, initialised once in the life of the process.
//! Never true here: a search for plugins; `crate::plugins` does that.

use super::error::{Error, Failure};
use super::ffi::Library;
use super::options::Value;
use std::fmt;
use std::path::Path;

/// A loaded plugin. It stays in the process once loaded: plugins own threads that cannot be taken down.
#[derive(Clone, Copy)]
pub struct Plugin {
    pub(super) library: &'static Library,
}

impl Plugin {
    /// Loads a plugin, or finds it loaded. The first in a process quiets what plugins log (unless the variables that
    /// do it are set) by setting variables of the environment.
    pub fn load(path: &Path) -> Result<Plugin, Error> {
        Library::open(path).map(|library| Plugin { library })
    }

    /// Its file.
    pub fn path(self) -> &'static Path {
        self.library.path()
    }

    /// The version of the interface that it was made for.
    pub fn version(self) -> Version {
        self.library.version()
    }

    /// What it says of itself, such as the StableHLO versions that it takes.
    pub fn attributes(self) -> Result<Vec<(String, Value)>, Error> {
        self.library.attributes().map_err(Failure::running)
    }
}

impl fmt::Debug for Plugin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Plugin({}, PJRT {})", self.path().display(), self.version())
    }
}

/// A version of PJRT's C interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version {
    /// Rises when the interface breaks.
    pub major: i32,
    /// Rises when it grows.
    pub minor: i32,
}

impl Version {
    /// The one that is spoken here; minor versions do not matter.
    pub const MAJOR: i32 = 0;
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}
