//! What has been learnt, in a file.
//!
//! In come weights and parameters; out goes an archive, or settings of a model from one.
//! Never true here: a file is half written.

use crate::data::Archive;
use crate::ode::PerCell;
use crate::results;
use ndarray::Array1;
use ndarray_npy::NpzWriter;
use std::io::Cursor;
use std::path::Path;

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
        let mut archive = Archive::open(path).map_err(|why| format!("cannot read `{}`: {why}", path.display()))?;
        let wrong = |why: String| format!("`{}` is not what `neuroc train` writes: {why}", path.display());
        let mut trained = Trained::default();
        for name in archive.names() {
            let values: Vec<f64> = archive.array(&name).map_err(wrong)?.into_iter().collect();
            if name == PARAMETERS {
                let lines: Vec<u8> = values.iter().map(|&byte| byte as u8).collect();
                let text = String::from_utf8(lines).map_err(|_| wrong(format!("`{name}` is no text")))?;
                trained.parameters = text.lines().map(String::from).collect();
            } else if name.ends_with(".weight") {
                trained.weights.push(PerCell { name, values: values.into() });
            } else {
                return Err(wrong(format!("`{name}` are no weights")));
            }
        }
        Ok(trained)
    }
}
