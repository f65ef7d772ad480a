//! What has been learnt, in a file.
//!
//! In come weights and parameters; out goes an archive, or settings of a model from one.
//! Never true here: a file is half written.

use crate::ode::PerCell;
use crate::results;
use ndarray::Array1;
use ndarray_npy::{NpzReader, NpzWriter};
use std::fs::File;
use std::io::Cursor;
use std::path::Path;
use std::sync::Arc;

/// The array of the archive that holds parameters: lines of text as `--params` takes them.
const PARAMETERS: &str = "parameters";

/// What has been learnt.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Trained {
    /// The weights of projections, each called `NAME.weight`, by target and of each target by source, in canonical units.
    pub weights: Vec<PerCell>,
    /// Settings of parameters, such as `hidden.tau=8.5 ms`.
    pub parameters: Vec<String>,
}

impl Trained {
    /// Writes an archive with an array for each projection. The error is a sentence.
    pub fn write(&self, path: &Path) -> Result<(), String> {
        let told = |e: ndarray_npy::WriteNpzError| e.to_string();
        let mut archive = NpzWriter::new(Cursor::new(Vec::new()));
        for one in &self.weights {
            archive.add_array(one.name.as_str(), &Array1::from_iter(one.values.iter().copied())).map_err(told)?;
        }
        let lines: Vec<u8> = self.parameters.join("\n").into_bytes();
        archive.add_array(PARAMETERS, &Array1::from(lines)).map_err(told)?;
        let bytes = archive.finish().map_err(told)?.into_inner();
        results::replace_file(path, &bytes)
    }

    /// Reads one. The error is a sentence.
    pub fn read(path: &Path) -> Result<Trained, String> {
        let file = File::open(path).map_err(|e| format!("cannot read `{}`: {e}", path.display()))?;
        let wrong = |why: String| format!("`{}` is not what `neuroc train` writes: {why}", path.display());
        let mut archive = NpzReader::new(file).map_err(|e| wrong(e.to_string()))?;
        let mut trained = Trained::default();
        for entry in archive.names().map_err(|e| wrong(e.to_string()))? {
            let name = entry.strip_suffix(".npy").unwrap_or(&entry).to_string();
            let told = |e: ndarray_npy::ReadNpzError| wrong(format!("`{name}`: {e}"));
            if name == PARAMETERS {
                let lines: Array1<u8> = archive.by_name(&entry).map_err(told)?;
                let text = String::from_utf8_lossy(&lines.to_vec()).into_owned();
                trained.parameters = text.lines().map(String::from).collect();
                continue;
            }
            let values: Array1<f64> = archive.by_name(&entry).map_err(told)?;
            let values: Arc<[f64]> = values.iter().copied().collect();
            trained.weights.push(PerCell { name, values });
        }
        Ok(trained)
    }
}
