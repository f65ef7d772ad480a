//! What is known of one text: what is wrong with it, and what its names mean.
//!
//! In comes a text with its place; out goes everything that answers are made of. Where a text cannot be parsed, names are those of what can be.
//! Never true here: something is said that `neuroc check` does not say of the same text.

use super::declared::{Declared, declared};
use crate::diag::{Code, Diagnostic};
use crate::driver::{self, Studied};
use crate::hir::{LoadedFile, Loader, Uses};
use crate::source::{FileId, SourceMap, Span};
use crate::syntax;
use std::path::Path;

/// What is known of a text.
#[derive(Debug)]
pub struct Analysis {
    /// The texts that messages stand in.
    pub said_in: SourceMap,
    /// What is wrong, in the order of places.
    pub diagnostics: Vec<Diagnostic>,
    /// The texts that names stand in: the main one may have blanks where nothing can be understood.
    pub sources: SourceMap,
    /// The trees of these.
    pub files: Vec<LoadedFile>,
    /// What each of the files defines.
    pub declared: Vec<Vec<Declared>>,
    /// What names mean.
    pub uses: Uses,
}

impl Analysis {
    /// Looks at a text of a name in a folder.
    pub fn new(name: &str, directory: &Path, text: &str, loader: &dyn Loader) -> Analysis {
        // Bytes come from an editor as text; line ends are made the same as in a file.
        let text = match syntax::read_text(name, text.as_bytes().to_vec()) {
            Ok(text) => text,
            Err(said) => {
                let Studied { checked, files, uses } = driver::study(name, directory, "", loader);
                return Analysis::of(checked.sources.clone(), vec![said], checked.sources, files, uses);
            }
        };
        let Studied { checked, files, uses } = driver::study(name, directory, text.as_str(), loader);
        let checked = driver::check_whole(checked);
        let (said_in, diagnostics) = (checked.sources, checked.diagnostics);
        // Texts that can be parsed are not parsed once more.
        let main = files.first().map(|file| file.id);
        let of_form = |d: &Diagnostic| {
            matches!(d.code, Code::Syntax | Code::TooDeep) && d.labels.first().map(|label| label.span.file) == main
        };
        let mended = if diagnostics.iter().any(of_form) { syntax::mended(&text) } else { None };
        match mended {
            None => Analysis::of(said_in.clone(), diagnostics, said_in, files, uses),
            Some(mended) => {
                let Studied { checked, files, uses } = driver::study(name, directory, mended, loader);
                Analysis::of(said_in, diagnostics, checked.sources, files, uses)
            }
        }
    }

    fn of(
        said_in: SourceMap,
        diagnostics: Vec<Diagnostic>,
        sources: SourceMap,
        files: Vec<LoadedFile>,
        uses: Uses,
    ) -> Analysis {
        let declared = files.iter().map(|file| declared(&file.ast)).collect();
        Analysis { said_in, diagnostics, sources, files, declared, uses }
    }

    /// Can all of the text be parsed?
    pub fn is_parsed(&self) -> bool {
        !self.diagnostics.iter().any(|d| matches!(d.code, Code::Syntax | Code::TooDeep))
    }

    /// The main file.
    pub fn main(&self) -> FileId {
        self.files.first().map_or(FileId(0), |file| file.id)
    }

    /// What the main file defines.
    pub fn own(&self) -> &[Declared] {
        self.declared.first().map_or(&[], Vec::as_slice)
    }

    /// The name that stands at a byte of the main file: its place, and that of its definition.
    pub fn name_at(&self, byte: usize) -> Option<(Span, Span)> {
        let here = |span: &Span| span.file == self.main() && (span.start as usize..=span.end as usize).contains(&byte);
        let used = self.uses.all().find(|(at, _)| here(at));
        let defined = || self.definitions().map(|d| d.span).find(here).map(|span| (span, self.uses.definition(span)));
        used.or_else(defined)
    }

    /// All definitions of all files.
    pub fn definitions(&self) -> impl Iterator<Item = &Declared> {
        self.declared.iter().flatten().flat_map(Declared::all)
    }

    /// The definition at a place.
    pub fn definition(&self, span: Span) -> Option<&Declared> {
        self.definitions().find(|d| d.span == span)
    }

    /// The item that a place is in.
    pub fn item_of(&self, span: Span) -> Option<&Declared> {
        let around =
            |d: &&Declared| d.whole.file == span.file && d.whole.start <= span.start && span.end <= d.whole.end;
        self.declared.iter().flatten().find(around)
    }

    /// All places that mean what is defined at one, and that place itself.
    pub fn references(&self, definition: Span) -> Vec<Span> {
        let used = self.uses.all().filter(|(_, means)| *means == definition).map(|(at, _)| at);
        std::iter::once(definition).chain(used).collect()
    }
}
