//! Files and spans.
//!
//! In come paths or texts; out go [`FileId`]s, byte [`Span`]s and line/column positions.
//! Never true here: a span points outside its file.

use std::ops::Range;
use std::path::PathBuf;

/// A file of a [`SourceMap`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct FileId(pub u32);

/// A byte range of one file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Span {
    /// The file.
    pub file: FileId,
    /// First byte.
    pub start: u32,
    /// One past the last byte.
    pub end: u32,
}

impl Span {
    /// A span of `file` from byte `start` to byte `end`.
    pub fn new(file: FileId, start: usize, end: usize) -> Span {
        Span { file, start: start as u32, end: end as u32 }
    }

    /// The smallest span that covers both (which must be of one file).
    pub fn to(self, other: Span) -> Span {
        Span { file: self.file, start: self.start.min(other.start), end: self.end.max(other.end) }
    }

    /// The bytes as a range.
    pub fn range(self) -> Range<usize> {
        self.start as usize..self.end as usize
    }
}

/// One source text.
#[derive(Debug, Clone)]
pub struct SourceFile {
    /// The name shown in messages, as the user wrote it.
    pub name: String,
    /// The directory that relative names inside the file are resolved against.
    pub directory: PathBuf,
    /// The text.
    pub text: String,
    line_starts: Vec<u32>,
}

impl SourceFile {
    /// The line of a byte, from 0.
    pub fn line_of(&self, byte: usize) -> usize {
        self.line_starts.partition_point(|&start| start as usize <= byte).max(1) - 1
    }

    /// The bytes of a line (counted from 0) with its end; nothing behind the last.
    pub fn line_range(&self, line: usize) -> Range<usize> {
        let start = |line: usize| self.line_starts.get(line).map_or(self.text.len(), |&start| start as usize);
        start(line)..start(line + 1)
    }
}

/// All the texts of one compilation.
#[derive(Debug, Clone, Default)]
pub struct SourceMap {
    files: Vec<SourceFile>,
}

impl SourceMap {
    /// Adds a text under the name that messages shall show.
    pub fn add(&mut self, name: impl Into<String>, directory: impl Into<PathBuf>, text: impl Into<String>) -> FileId {
        let text = text.into();
        let line_starts = std::iter::once(0)
            .chain(text.bytes().enumerate().filter(|&(_, b)| b == b'\n').map(|(i, _)| i as u32 + 1))
            .collect();
        self.files.push(SourceFile { name: name.into(), directory: directory.into(), text, line_starts });
        FileId(self.files.len() as u32 - 1)
    }

    /// The file behind an id of this map.
    pub fn file(&self, id: FileId) -> &SourceFile {
        &self.files[id.0 as usize]
    }

    /// All files, in the order they were added.
    pub fn files(&self) -> impl Iterator<Item = (FileId, &SourceFile)> {
        self.files.iter().enumerate().map(|(i, f)| (FileId(i as u32), f))
    }

    /// The text under a span.
    pub fn text(&self, span: Span) -> &str {
        self.file(span.file).text.get(span.range()).unwrap_or("")
    }

    /// `(line, column)` of the start of a span, both counted from 1; columns count characters.
    pub fn position(&self, span: Span) -> (usize, usize) {
        let file = self.file(span.file);
        let line = file.line_of(span.start as usize);
        let start = file.line_range(line).start;
        let column = file.text.get(start..span.start as usize).map_or(0, |s| s.chars().count());
        (line + 1, column + 1)
    }

    /// `name:line` of the start of a span.
    pub fn place(&self, span: Span) -> String {
        format!("{}:{}", self.file(span.file).name, self.position(span).0)
    }
}
