//! `use`: from one file to all files that it needs.
//!
//! In comes the main file; out go all files that it uses, directly or not, each parsed once, and what their names mean.
//! Never true here: a name is looked up in a file that does not bring it in.

use super::error::{MorphologyError, NameError, UseError};
use crate::diag::{Diagnostic, Diagnostics};
use crate::source::{FileId, SourceMap, Span};
use crate::stdlib;
use crate::syntax;
use crate::syntax::ast::{self, Name};
use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Where the texts of used files come from, and their trees.
pub trait Loader {
    /// The bytes of a file.
    fn read(&self, path: &Path) -> std::io::Result<Vec<u8>>;

    /// The tree of a text. Mistakes go to `diagnostics`.
    fn parse(&self, id: FileId, text: &str, diagnostics: &mut Diagnostics) -> Arc<ast::File> {
        Arc::new(syntax::parse(id, text, diagnostics))
    }
}

/// The file system.
#[derive(Debug, Clone, Copy, Default)]
pub struct Sources;

impl Loader for Sources {
    fn read(&self, path: &Path) -> std::io::Result<Vec<u8>> {
        // A device or a pipe has no end, or none that is known.
        match std::fs::metadata(path)?.is_file() {
            true => std::fs::read(path),
            false => Err(std::io::Error::other("it is no regular file")),
        }
    }
}

/// No files but the standard library (for sources given as a string).
#[derive(Debug, Clone, Copy, Default)]
pub struct NoFiles;

impl Loader for NoFiles {
    fn read(&self, _path: &Path) -> std::io::Result<Vec<u8>> {
        Err(std::io::Error::new(std::io::ErrorKind::NotFound, "this model was given as text, without files"))
    }
}

/// A parsed file and what its names mean.
#[derive(Debug, Clone)]
pub struct LoadedFile {
    /// Its text.
    pub id: FileId,
    /// Its tree.
    pub ast: Arc<ast::File>,
    /// Item names to (file, item); the place where the name was brought in.
    pub(super) names: HashMap<String, (usize, usize, Span)>,
    /// Names that a `use` should have brought in, but could not (which has been said).
    pub(super) unknown: HashSet<String>,
    /// The texts of shapes by the names of their files; nothing for those that cannot be read (which has been said).
    pub(super) shapes: HashMap<String, Option<FileId>>,
}

/// The file that `swc("cell.swc")` names.
pub(super) fn shape_file(value: &ast::Expr) -> Option<(&str, Span)> {
    match &value.kind {
        ast::ExprKind::Call(function, args) if function.text == "swc" => match &args[..] {
            [ast::Arg { name: None, value: ast::Expr { kind: ast::ExprKind::Str(file), span } }] => Some((file, *span)),
            _ => None,
        },
        _ => None,
    }
}

/// The name of an item, if it has one.
pub(super) fn item_name(item: &ast::Item) -> Option<&Name> {
    match item {
        ast::Item::Const(x) => Some(&x.name),
        ast::Item::Function(x) => Some(&x.name),
        ast::Item::Channel(x) => Some(&x.name),
        ast::Item::Cell(x) => Some(&x.name),
        ast::Item::Junction(x) => Some(&x.name),
        ast::Item::Synapse(x) => Some(&x.name),
        ast::Item::Network(x) => Some(&x.name),
        ast::Item::Use(_) | ast::Item::Run(_) | ast::Item::Train(_) | ast::Item::Fit(_) => None,
    }
}

/// Parses the main file and everything it uses, directly or not. The main file is the first of the list.
pub fn load(
    sources: &mut SourceMap,
    main: FileId,
    loader: &dyn Loader,
    diagnostics: &mut Diagnostics,
) -> Vec<LoadedFile> {
    let mut state = Load { sources, loader, diagnostics, files: Vec::new(), known: HashMap::new(), stack: Vec::new() };
    // A file that uses the main file uses it in a circle.
    let source = state.sources.file(main);
    let path = Path::new(&source.name).file_name().map(|name| source.directory.join(name));
    state.stack.extend(path);
    state.file(main);
    state.files
}

struct Load<'s> {
    sources: &'s mut SourceMap,
    loader: &'s dyn Loader,
    diagnostics: &'s mut Diagnostics,
    files: Vec<LoadedFile>,
    known: HashMap<PathBuf, usize>,
    stack: Vec<PathBuf>,
}

impl Load<'_> {
    fn error(&mut self, mistake: impl Into<Diagnostic>) {
        self.diagnostics.push(mistake.into());
    }

    fn file(&mut self, id: FileId) -> usize {
        let text = self.sources.file(id).text.clone();
        let ast = self.loader.parse(id, &text, self.diagnostics);
        let at = self.files.len();
        let mut names = HashMap::new();
        for (i, item) in ast.items.iter().enumerate() {
            if let Some(name) = item_name(item) {
                self.define(&mut names, name, (at, i));
            }
        }
        self.files.push(LoadedFile {
            id,
            ast: Arc::clone(&ast),
            names,
            unknown: HashSet::new(),
            shapes: HashMap::new(),
        });
        for item in &ast.items {
            if let ast::Item::Use(u) = item {
                self.bring_in(at, u);
            }
            if let ast::Item::Cell(cell) = item {
                self.shapes(at, cell);
            }
        }
        at
    }

    /// Reads the files that a cell's shape is in.
    fn shapes(&mut self, at: usize, cell: &ast::Cell) {
        for member in &cell.members {
            let ast::CellMember::Morphology { value, .. } = member else { continue };
            let Some((name, span)) = shape_file(value).filter(|(name, _)| !self.files[at].shapes.contains_key(*name))
            else {
                continue;
            };
            let path = self.sources.file(self.files[at].id).directory.join(name);
            let read =
                self.loader.read(&path).map_err(|error| MorphologyError::CannotRead { file: &path, error, span });
            let text = match read {
                Ok(bytes) => syntax::read_text(&path.display().to_string(), bytes),
                Err(error) => Err(error.into()),
            };
            let id = match text {
                Ok(text) => Some(self.sources.add(path.display().to_string(), PathBuf::new(), text)),
                Err(diagnostic) => {
                    self.diagnostics.push(diagnostic);
                    None
                }
            };
            self.files[at].shapes.insert(name.to_string(), id);
        }
    }

    fn define(&mut self, names: &mut HashMap<String, (usize, usize, Span)>, name: &Name, target: (usize, usize)) {
        match names.get(&name.text) {
            Some(&(file, item, _)) if (file, item) == target => {}
            Some(&(_, _, first)) => self.error(NameError::Twice { name, first: Some(first) }),
            None => {
                names.insert(name.text.clone(), (target.0, target.1, name.span));
            }
        }
    }

    fn bring_in(&mut self, at: usize, u: &ast::Use) {
        let (module, items): (&[Name], Vec<&Name>) = match (&u.names[..], u.path.split_last()) {
            ([], Some((last, module))) if !module.is_empty() => {
                let whole = super::names::join(&u.path);
                if let Some(text) = stdlib::source(&whole) {
                    self.error(UseError::NoItemOf { module: &whole, known: &stdlib::items(text), span: u.span });
                    return;
                }
                (module, vec![last])
            }
            ([], _) => {
                self.error(UseError::NoItem { span: u.span });
                return;
            }
            (names, _) => (&u.path, names.iter().collect()),
        };
        let Some(target) = self.module(at, module) else {
            self.files[at].unknown.extend(items.iter().map(|n| n.text.clone()));
            return;
        };
        for name in items {
            let is_meant = |item| item_name(item).is_some_and(|n| n.text == name.text);
            match self.files[target].ast.items.iter().position(is_meant) {
                Some(item) => {
                    let mut names = std::mem::take(&mut self.files[at].names);
                    self.define(&mut names, name, (target, item));
                    self.files[at].names = names;
                }
                None => {
                    self.files[at].unknown.insert(name.text.clone());
                    self.unknown_item(target, module, name);
                }
            }
        }
    }

    /// Says that a module lacks an item, unless it has one that could not be read (which has been said).
    fn unknown_item(&mut self, target: usize, module: &[Name], name: &Name) {
        let file = &self.files[target].ast;
        if !file.broken.iter().any(|n| n.text == name.text) {
            let known: Vec<&str> = file.items.iter().filter_map(item_name).map(|n| n.text.as_str()).collect();
            let error = UseError::UnknownItem { module: &super::names::join(module), name, known: &known };
            self.diagnostics.push(error.into());
        }
    }

    /// The file of a module, read if that has not happened yet.
    fn module(&mut self, at: usize, module: &[Name]) -> Option<usize> {
        let span = module[0].span.to(module[module.len() - 1].span);
        let path = super::names::join(module);
        if module[0].text == "std" {
            return self.library(&path, span);
        }
        let mut file = self.sources.file(self.files[at].id).directory.clone();
        module.iter().for_each(|n| file.push(&n.text));
        file.set_extension("neuro");
        if self.stack.contains(&file) {
            self.error(UseError::Circle { file: &file, span });
            return None;
        }
        if let Some(&known) = self.known.get(&file) {
            return Some(known);
        }
        let text = self.text(&path, &file, span)?;
        let parent = file.parent().map(Path::to_path_buf).unwrap_or_default();
        let id = self.sources.add(file.display().to_string(), parent, text);
        self.stack.push(file.clone());
        let index = self.file(id);
        self.stack.pop();
        self.known.insert(file, index);
        Some(index)
    }

    /// The file of a module of the standard library.
    fn library(&mut self, module: &str, span: Span) -> Option<usize> {
        let key = PathBuf::from(format!("<std>/{module}"));
        if let Some(&known) = self.known.get(&key) {
            return Some(known);
        }
        let Some(text) = stdlib::source(module) else {
            self.error(UseError::UnknownLibrary { module, span });
            return None;
        };
        let id = self.sources.add(format!("<{module}>"), PathBuf::new(), text);
        let index = self.file(id);
        self.known.insert(key, index);
        Some(index)
    }

    fn text(&mut self, module: &str, file: &Path, span: Span) -> Option<String> {
        let bytes = match self.loader.read(file) {
            Ok(bytes) => bytes,
            Err(error) => {
                self.error(UseError::CannotRead { module, file, error: &error, span });
                return None;
            }
        };
        match syntax::read_text(&file.display().to_string(), bytes) {
            Ok(text) => Some(text),
            Err(diagnostic) => {
                self.error(diagnostic);
                None
            }
        }
    }
}
