//! Models for other processes: what pickles hold.
//!
//! In comes a checked model with settings; out go its texts, those of the modules that it uses among them, and its settings; and back.
//! Never true here: a model comes back with other texts because a file has changed. Data files, which are read when a run begins, are read from the disk.

use crate::model::{Setting, Settings};
use neuroc::driver::{self, Checked};
use neuroc::hir::{Loader, Sources};
use neuroc::source::SourceMap;
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

/// Of each file its name and its text, the main one first, and the directory of that.
pub type Texts = (Vec<(String, String)>, PathBuf);

/// The texts of a model.
pub fn texts(sources: &SourceMap) -> Texts {
    let texts = sources.files().map(|(_, file)| (file.name.clone(), file.text.clone())).collect();
    (texts, sources.files().next().map(|(_, file)| file.directory.clone()).unwrap_or_default())
}

/// Checks a model that was packed.
pub fn checked((texts, directory): Texts) -> Checked {
    let (name, text) = texts.first().cloned().unwrap_or_default();
    let kept = Kept(texts.into_iter().skip(1).map(|(name, text)| (PathBuf::from(name), text)).collect());
    driver::check_text(&name, &directory, text, &kept)
}

/// The texts that were packed, before the files of the disk.
struct Kept(BTreeMap<PathBuf, String>);

impl Loader for Kept {
    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        match self.0.get(path) {
            Some(text) => Ok(text.clone().into_bytes()),
            None => Sources.read(path),
        }
    }
}

/// Settings by their names: texts, or numbers in canonical units.
pub type Packed = Vec<(String, Option<String>, Vec<f64>)>;

/// Settings as plain values.
pub fn settings(settings: &Settings) -> Packed {
    let plain = |(name, setting): &(String, Setting)| match setting {
        Setting::Text(text) => (name.clone(), Some(text.clone()), Vec::new()),
        Setting::Cells(values) => (name.clone(), None, values.to_vec()),
    };
    settings.0.iter().map(plain).collect()
}

/// Settings of plain values.
pub fn unpacked(packed: Packed) -> Settings {
    let setting = |(name, text, values): (String, Option<String>, Vec<f64>)| match text {
        Some(text) => (name, Setting::Text(text)),
        None => (name, Setting::Cells(values.into())),
    };
    Settings(packed.into_iter().map(setting).collect())
}
