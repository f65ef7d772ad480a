//! `use`: from one file to all files that it needs.

use crate::diag::{Code, Diagnostic, Diagnostics, nearest};
use crate::source::{FileId, SourceMap, Span};
use crate::stdlib;
use crate::syntax::{self, ast};
use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

/// Where the texts of used files come from.
pub trait Loader {
    /// The bytes of a file.
    fn read(&self, path: &Path) -> std::io::Result<Vec<u8>>;
}

/// The file system.
#[derive(Debug, Clone, Copy, Default)]
pub struct Sources;

impl Loader for Sources {
    fn read(&self, path: &Path) -> std::io::Result<Vec<u8>> {
        std::fs::read(path)
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
    pub ast: ast::File,
    /// Item names to (file, item); the place where the name was brought in.
    pub(super) names: HashMap<String, (usize, usize, Span)>,
    /// Names that a `use` should have brought in, but could not (which has been said).
    pub(super) unknown: HashSet<String>,
}

/// The name of an item, if it has one.
pub(super) fn item_name(item: &ast::Item) -> Option<&ast::Name> {
    match item {
        ast::Item::Const(x) => Some(&x.name),
        ast::Item::Function(x) => Some(&x.name),
        ast::Item::Channel(x) => Some(&x.name),
        ast::Item::Cell(x) => Some(&x.name),
        ast::Item::Junction(x) => Some(&x.name),
        ast::Item::Network(x) => Some(&x.name),
        ast::Item::Use(_) | ast::Item::Run(_) => None,
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
    fn file(&mut self, id: FileId) -> usize {
        let text = self.sources.file(id).text.clone();
        let ast = syntax::parse(id, &text, self.diagnostics);
        let at = self.files.len();
        let mut names = HashMap::new();
        for (i, item) in ast.items.iter().enumerate() {
            if let Some(name) = item_name(item) {
                self.define(&mut names, name, (at, i));
            }
        }
        self.files.push(LoadedFile { id, ast: ast.clone(), names, unknown: HashSet::new() });
        for item in &ast.items {
            if let ast::Item::Use(u) = item {
                self.bring_in(at, u);
            }
        }
        at
    }

    fn define(&mut self, names: &mut HashMap<String, (usize, usize, Span)>, name: &ast::Name, target: (usize, usize)) {
        if let Some(&(file, item, first)) = names.get(&name.text) {
            if (file, item) == target {
                return;
            }
            self.diagnostics.push(
                Diagnostic::new(
                    Code::DuplicateName,
                    name.span,
                    format!("`{}` is defined twice", name.text),
                    "defined again",
                )
                .see(first, "first defined here"),
            );
        } else {
            names.insert(name.text.clone(), (target.0, target.1, name.span));
        }
    }

    fn bring_in(&mut self, at: usize, u: &ast::Use) {
        let (module, items): (&[ast::Name], Vec<&ast::Name>) = if u.names.is_empty() {
            let (last, module) = match u.path.split_last() {
                Some((last, module)) if !module.is_empty() => (last, module),
                _ => {
                    self.diagnostics.push(
                        Diagnostic::new(
                            Code::UnknownModule,
                            u.span,
                            "this `use` names no item",
                            "a module and an item are needed",
                        )
                        .help("write `use file.{Name}` or `use std.channels.hh.{Na, K}`"),
                    );
                    return;
                }
            };
            (module, vec![last])
        } else {
            (&u.path, u.names.iter().collect())
        };
        let Some(target) = self.module(at, module) else {
            self.files[at].unknown.extend(items.iter().map(|n| n.text.clone()));
            return;
        };
        for name in items {
            let Some(item) =
                self.files[target].ast.items.iter().position(|i| item_name(i).is_some_and(|n| n.text == name.text))
            else {
                self.files[at].unknown.insert(name.text.clone());
                if self.files[target].ast.broken.iter().any(|n| n.text == name.text) {
                    continue;
                }
                let has: Vec<String> =
                    self.files[target].ast.items.iter().filter_map(item_name).map(|n| n.text.clone()).collect();
                let path = super::names::join(module);
                let mut d = Diagnostic::new(
                    Code::UnknownItem,
                    name.span,
                    format!("`{path}` has no `{}`", name.text),
                    "not defined there",
                );
                if let Some(near) = nearest(&name.text, has.iter().map(String::as_str)) {
                    d = d.help(format!("did you mean `{near}`?"));
                } else if has.is_empty() {
                    d = d.note("it defines nothing");
                } else {
                    d = d.note(format!("it has {}", has.join(", ")));
                }
                self.diagnostics.push(d);
                continue;
            };
            let mut names = std::mem::take(&mut self.files[at].names);
            self.define(&mut names, name, (target, item));
            self.files[at].names = names;
        }
    }

    fn module(&mut self, at: usize, module: &[ast::Name]) -> Option<usize> {
        let span = module[0].span.to(module[module.len() - 1].span);
        let path = super::names::join(module);
        if module[0].text == "std" {
            let key = PathBuf::from(format!("<std>/{path}"));
            if let Some(&known) = self.known.get(&key) {
                return Some(known);
            }
            let Some(text) = stdlib::source(&path) else {
                let names = stdlib::modules();
                let mut d = Diagnostic::new(
                    Code::UnknownModule,
                    span,
                    format!("the standard library has no module `{path}`"),
                    "no such module",
                );
                if let Some(near) = nearest(&path, names.iter().map(String::as_str)) {
                    d = d.help(format!("did you mean `{near}`?"));
                }
                self.diagnostics.push(d.note(format!("it has {}", names.join(", "))));
                return None;
            };
            let id = self.sources.add(format!("<{path}>"), PathBuf::new(), text);
            let index = self.file(id);
            self.known.insert(key, index);
            return Some(index);
        }
        let directory = self.sources.file(self.files[at].id).directory.clone();
        let mut file = directory;
        module.iter().for_each(|n| file.push(&n.text));
        file.set_extension("neuro");
        if self.stack.contains(&file) {
            let d = Diagnostic::new(
                Code::CyclicUse,
                span,
                "these files use each other in a circle",
                format!("`{}` is already being read", file.display()),
            );
            self.diagnostics.push(d);
            return None;
        }
        if let Some(&known) = self.known.get(&file) {
            return Some(known);
        }
        let bytes = match self.loader.read(&file) {
            Ok(bytes) => bytes,
            Err(error) => {
                let missing = error.kind() == std::io::ErrorKind::NotFound;
                let (message, label) = match missing {
                    true => (format!("there is no module `{path}`"), format!("`{}` does not exist", file.display())),
                    false => (format!("cannot read the module `{path}`"), format!("{}: {error}", file.display())),
                };
                let mut d = Diagnostic::new(Code::UnknownModule, span, message, label);
                let library = stdlib::modules();
                let in_std = format!("std.{path}");
                let near = library.iter().find(|m| **m == in_std || m.ends_with(&format!(".{path}")));
                d = match near.map(String::as_str).or_else(|| nearest(&in_std, library.iter().map(String::as_str))) {
                    Some(near) => d.help(format!("the standard library has `{near}`")),
                    None => d.help("modules are files beside this one; the standard library's begin with `std.`"),
                };
                self.diagnostics.push(d);
                return None;
            }
        };
        let name = file.display().to_string();
        let text = match syntax::read_text(&name, bytes) {
            Ok(text) => text,
            Err(diagnostic) => {
                self.diagnostics.push(diagnostic);
                return None;
            }
        };
        let parent = file.parent().map(Path::to_path_buf).unwrap_or_default();
        let id = self.sources.add(name, parent, text);
        self.stack.push(file.clone());
        let index = self.file(id);
        self.stack.pop();
        self.known.insert(file, index);
        Some(index)
    }
}
