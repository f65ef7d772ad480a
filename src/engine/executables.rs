//! Programs to executables, through XLA and a cache.
//!
//! In come modules; out go executables, compiled now or found in the cache, where the plugin can serialize them.
//! Never true here: that a missing, broken or unwritable cache is a failure, or that an entry is loaded which another plugin, other flags
//! of XLA, another kind of device or another processor made.

use super::EngineError;
use super::rustc::{processor, stamp};
use crate::pjrt::{Client, CompileOptions, Executable};
use crate::results::replace_file;
use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// A client, and where the executables that it compiles are kept. Clones count together.
#[derive(Debug, Clone)]
pub struct Compiler {
    client: Client,
    cache: Option<PathBuf>,
    spent: Arc<Mutex<Spent>>,
}

/// What it took to compile or find all executables so far.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Spent {
    /// How many were compiled.
    pub made: u32,
    /// How many were found.
    pub found: u32,
    /// How long both took.
    pub seconds: f64,
}

/// Nothing is kept.
impl From<Client> for Compiler {
    fn from(client: Client) -> Compiler {
        Compiler { client, cache: None, spent: Arc::default() }
    }
}

impl Compiler {
    /// Keeps executables in a folder, which is made when there is one to keep.
    pub fn new(client: Client, cache: PathBuf) -> Compiler {
        Compiler { client, cache: Some(cache), spent: Arc::default() }
    }

    /// The devices that executables are for.
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// What it took so far.
    pub fn spent(&self) -> Spent {
        *self.count()
    }

    /// What has been counted; a number that another thread left half-way there is none.
    fn count(&self) -> MutexGuard<'_, Spent> {
        self.spent.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Finds or makes the executable of a module.
    pub fn compile(&self, module: &[u8], options: &CompileOptions) -> Result<Executable, EngineError> {
        let begin = Instant::now();
        let entry = self.cache.as_ref().map(|cache| cache.join(self.key(module, options)));
        let found = entry.as_deref().and_then(|entry| self.find(entry));
        let was_found = found.is_some();
        let executable = match found {
            Some(executable) => executable,
            None => self.make(module, options, entry.as_deref())?,
        };
        let mut spent = self.count();
        spent.seconds += begin.elapsed().as_secs_f64();
        *(if was_found { &mut spent.found } else { &mut spent.made }) += 1;
        drop(spent);
        Ok(executable)
    }

    fn make(&self, module: &[u8], options: &CompileOptions, entry: Option<&Path>) -> Result<Executable, EngineError> {
        let executable = self.client.compile(module, options)?;
        // Not every plugin can serialize, and not every folder can be written: the next run compiles again.
        if let Some(entry) = entry
            && let Ok(bytes) = executable.serialize()
        {
            let _ = keep(entry, &bytes);
        }
        Ok(executable)
    }

    /// An intact entry that the plugin loads.
    fn find(&self, entry: &Path) -> Option<Executable> {
        if !crate::cache::trusted(entry) {
            return None;
        }
        let all = fs::read(entry).ok()?;
        let (checksum, bytes) = all.split_at_checked(blake3::OUT_LEN)?;
        if blake3::hash(bytes).as_bytes() != checksum {
            return None;
        }
        self.client.load(bytes).ok()
    }

    /// What an executable depends on: the module, the options, the plugin with the flags that it reads from the environment, and the
    /// device; on processors the machine too.
    fn key(&self, module: &[u8], options: &CompileOptions) -> String {
        let plugin = self.client.plugin();
        let device = options.device.map_or_else(
            || self.client.devices().first(),
            |id| self.client.devices().iter().find(|device| device.id() == id),
        );
        let mut hasher = blake3::Hasher::new();
        let mut part = |bytes: &[u8]| {
            hasher.update(&(bytes.len() as u64).to_le_bytes());
            hasher.update(bytes);
        };
        part(module);
        part(format!("{options:?}").as_bytes());
        part(self.client.platform_name().as_bytes());
        part(self.client.platform_version().as_bytes());
        part(device.map_or("", |device| device.kind()).as_bytes());
        part(stamp(plugin.path()).as_bytes());
        for flags in ["XLA_FLAGS", "LIBTPU_INIT_ARGS"] {
            part(env::var_os(flags).unwrap_or_default().as_encoded_bytes());
        }
        part(processor().as_bytes());
        format!("{}.xla", &hasher.finalize().to_hex()[..32])
    }
}

/// Writes an entry, whole or not at all: its checksum, then its bytes.
fn keep(entry: &Path, bytes: &[u8]) -> Result<(), String> {
    if let Some(folder) = entry.parent() {
        fs::create_dir_all(folder).map_err(|error| error.to_string())?;
    }
    replace_file(entry, &[blake3::hash(bytes).as_bytes().as_slice(), bytes].concat())
}
