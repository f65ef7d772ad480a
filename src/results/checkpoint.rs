//! Files of states from which a run goes on.
//!
//! In come the states of a run after so many steps; out goes an `.npz` archive with an array `<f8` `[cell]` for each of them, hidden ones too, in
//! canonical units, and `meta` with `checkpoint` (the version of this layout, 1), `step`, `t_ms`, `seed` and facts about the run. It
//! comes back in as it was.
//! Never true here: it is known which states a model has.

use super::archive::Archive;
use super::array::{Numbers, Plan};
use super::read::Files;
use super::{LAYOUT, ResultsError};
use serde_json::{Map, Value, json};
use std::path::Path;

/// The version of the layout.
const VERSION: u64 = 1;

/// The states of a run after some steps.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Checkpoint {
    /// The steps that are done.
    pub step: u64,
    /// The time in ms.
    pub t: f64,
    /// The key of all random numbers.
    pub seed: u64,
    /// Every state by its name in the model, or a hidden name, with its values in canonical units, shape `[cell]`.
    pub states: Vec<(String, Vec<f64>)>,
    /// Facts about the run.
    pub meta: Map<String, Value>,
}

impl Checkpoint {
    /// Writes it, replacing what was there in one step.
    ///
    /// # Errors
    /// [`ResultsError::Write`] when the file cannot be written, and then nothing new is left on disk.
    pub fn write(&self, path: &Path) -> Result<(), ResultsError> {
        let plan = |(name, values): &(String, Vec<f64>)| Plan {
            name: name.clone(),
            numbers: Numbers::F64,
            columns: None,
            rows: Some(values.len() as u64),
            shape: Vec::new(),
        };
        let mut archive = Archive::new(path, self.states.iter().map(plan).collect(), false)?;
        for (at, (_, values)) in self.states.iter().enumerate() {
            archive.append(at, values)?;
        }
        let mut meta = self.meta.clone();
        meta.insert("checkpoint".into(), json!(VERSION));
        meta.insert("step".into(), json!(self.step));
        meta.insert("t_ms".into(), json!(self.t));
        // As text: a number of 64 bits is not exact everywhere.
        meta.insert("seed".into(), json!(self.seed.to_string()));
        Ok(archive.finish(&Value::Object(meta).to_string())?)
    }

    /// Reads a file that [`Checkpoint::write`] wrote.
    ///
    /// # Errors
    /// [`ResultsError::Read`], saying whether the file is missing, no checkpoint, or damaged.
    pub fn read(path: &Path) -> Result<Checkpoint, ResultsError> {
        Checkpoint::opened(path).map_err(|reason| ResultsError::Read { path: path.to_owned(), reason })
    }

    fn opened(path: &Path) -> Result<Checkpoint, String> {
        let mut files = Files::open(path)?;
        let mut meta = files.meta()?;
        match meta.remove("checkpoint").and_then(|v| v.as_u64()) {
            Some(VERSION) => {}
            Some(version) => {
                return Err(format!("it is a checkpoint of version {version}, but this neuroc reads {VERSION}"));
            }
            None if meta.contains_key("layout") => {
                return Err(format!("it holds results (layout {LAYOUT}) and no checkpoint; `--save` writes one"));
            }
            None => return Err("it is no checkpoint".into()),
        }
        let lacks = |what: &str| format!("its metadata is damaged: it has no `{what}`");
        let step = meta.remove("step").and_then(|v| v.as_u64()).ok_or_else(|| lacks("step"))?;
        let t = meta.remove("t_ms").and_then(|v| v.as_f64()).ok_or_else(|| lacks("t_ms"))?;
        let seed = meta.remove("seed").and_then(|v| v.as_str()?.parse().ok()).ok_or_else(|| lacks("seed"))?;
        let mut states = Vec::new();
        for name in files.names()?.into_iter().filter(|name| name != "meta") {
            let values = files.vector::<8>(&name, "<f8")?.into_iter().map(f64::from_le_bytes).collect();
            states.push((name, values));
        }
        Ok(Checkpoint { step, t, seed, states, meta })
    }
}
