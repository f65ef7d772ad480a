//! The pipeline in one screen.
//!
//! In come source texts; out goes any stage of the compilation, or diagnostics.
//! Never true here: a phase runs on the output of a phase that failed.

use crate::diag::{Code, Diagnostic, Diagnostics};
use crate::hir::{self, Loader, Model, Sources};
use crate::source::SourceMap;
use crate::syntax;
use std::path::Path;

/// A checked (or rejected) source.
#[derive(Debug)]
pub struct Checked {
    /// All texts that were read.
    pub sources: SourceMap,
    /// The model; `None` if there are errors.
    pub model: Option<Model>,
    /// Errors and warnings in the order of their places.
    pub diagnostics: Vec<Diagnostic>,
}

impl Checked {
    fn failed(sources: SourceMap, diagnostic: Diagnostic) -> Checked {
        Checked { sources, model: None, diagnostics: vec![diagnostic] }
    }
}

/// Checks a model file and everything that it uses.
pub fn check_file(path: &Path) -> Checked {
    let name = path.display().to_string();
    let bytes = match std::fs::read(path) {
        Ok(bytes) => bytes,
        Err(error) => {
            let d = Diagnostic::without_place(Code::CannotRead, format!("cannot read `{name}`: {error}"));
            return Checked::failed(SourceMap::default(), d);
        }
    };
    let text = match syntax::read_text(&name, bytes) {
        Ok(text) => text,
        Err(diagnostic) => return Checked::failed(SourceMap::default(), diagnostic),
    };
    let directory = path.parent().unwrap_or(Path::new("")).to_path_buf();
    check_text(&name, &directory, text, &Sources)
}

/// Checks a model given as text; `name` is shown in messages, `directory` is where its data files and modules are.
pub fn check_text(name: &str, directory: &Path, text: impl Into<String>, loader: &dyn Loader) -> Checked {
    let mut sources = SourceMap::default();
    let main = sources.add(name, directory, text);
    let mut diagnostics = Diagnostics::default();
    let files = hir::load(&mut sources, main, loader, &mut diagnostics);
    let model = hir::lower(&sources, &files, &mut diagnostics);
    let model = if diagnostics.has_errors() { None } else { model };
    Checked { sources, model, diagnostics: diagnostics.sorted() }
}
