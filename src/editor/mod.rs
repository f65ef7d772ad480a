//! Help while a model is written: a language server.
//!
//! In come the messages of an editor: texts as they change, and questions about places in them; out go what is wrong with a text, and answers. The answers
//! are those of the compiler: what `neuroc check` says, and the table of names that it kept while it did.
//! Never true here: an answer about a text that is not the newest.

mod addresses;
mod analysis;
mod completion;
mod declared;
mod messages;
mod names;
mod outline;
mod positions;
mod server;

pub use positions::Columns;
pub use server::serve;

use crate::diag::Diagnostics;
use crate::hir::{Loader, Sources};
use crate::source::FileId;
use crate::syntax::{self, ast};
use analysis::Analysis;
use lsp_types::{
    CodeActionOrCommand, CompletionItem, Diagnostic, DocumentSymbol, FoldingRange, Hover, InlayHint, Location,
    Position, PrepareRenameResponse, Range, SemanticToken, SignatureHelp, TextDocumentContentChangeEvent, TextEdit,
    Uri, WorkspaceEdit,
};
use positions::Lines;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;

/// Trees of texts that others use, by the number of the file and the text: these seldom change while somebody types.
type Trees = RefCell<HashMap<(FileId, String), Arc<ast::File>>>;

/// So many trees are kept.
const MOST_TREES: usize = 256;

/// The open texts by their paths, and the files of the disk behind them.
struct Texts<'e> {
    open: BTreeMap<PathBuf, &'e str>,
    disk: &'e dyn Loader,
    trees: &'e Trees,
}

impl Loader for Texts<'_> {
    fn read(&self, path: &Path) -> std::io::Result<Vec<u8>> {
        match self.open.get(path) {
            Some(text) => Ok(text.as_bytes().to_vec()),
            None => self.disk.read(path),
        }
    }

    fn parse(&self, id: FileId, text: &str, diagnostics: &mut Diagnostics) -> Arc<ast::File> {
        // The first file is the one that is written.
        if id == FileId(0) {
            return Arc::new(syntax::parse(id, text, diagnostics));
        }
        let key = (id, text.to_string());
        if let Some(known) = self.trees.borrow().get(&key) {
            return Arc::clone(known);
        }
        let before = diagnostics.count();
        let tree = Arc::new(syntax::parse(id, text, diagnostics));
        // What is wrong with a text is said each time.
        if diagnostics.count() == before && diagnostics.has_room() {
            let mut trees = self.trees.borrow_mut();
            if trees.len() >= MOST_TREES {
                trees.clear();
            }
            trees.insert(key, Arc::clone(&tree));
        }
        tree
    }
}

/// An open text.
#[derive(Debug)]
struct Document {
    uri: Uri,
    version: i32,
    text: String,
    path: Option<PathBuf>,
    analysis: Option<Rc<Analysis>>,
    /// Has what is wrong with it to be told?
    untold: bool,
}

/// All that an editor has open.
#[derive(Debug)]
pub struct Editor {
    columns: Columns,
    /// The folders that the editor has open.
    folders: Vec<PathBuf>,
    documents: BTreeMap<String, Document>,
    trees: Trees,
}

/// What is wrong with a document.
#[derive(Debug, Clone)]
pub struct Told {
    /// Which.
    pub uri: Uri,
    /// Of which version.
    pub version: i32,
    /// What.
    pub diagnostics: Vec<Diagnostic>,
}

/// So many files and folders are looked at for users of a name, and so many models that may be such.
const MOST_ENTRIES: usize = 100_000;
const MOST_MODELS: usize = 500;

/// The models in the folders of files, and in the folders that the editor has open, with all that are inside; and whether these are all.
fn neighbours(files: &[PathBuf], open: &[PathBuf]) -> (BTreeSet<PathBuf>, bool) {
    let beside = files.iter().filter_map(|path| path.parent()).map(|folder| (folder.to_path_buf(), false));
    let mut folders: VecDeque<(PathBuf, bool)> =
        beside.chain(open.iter().map(|folder| (folder.clone(), true))).collect();
    let (mut models, mut entries) = (BTreeSet::new(), 0);
    while let Some((folder, inside)) = folders.pop_front() {
        let Ok(found) = std::fs::read_dir(folder) else { continue };
        for entry in found.filter_map(Result::ok) {
            entries += 1;
            if entries > MOST_ENTRIES {
                return (models, false);
            }
            let path = entry.path();
            let hidden = entry.file_name().to_string_lossy().starts_with('.');
            // Links are not followed into folders: they may lead round.
            if entry.file_type().is_ok_and(|t| t.is_dir()) {
                folders.extend((inside && !hidden).then_some((path, true)));
            } else if path.extension().is_some_and(|e| e == "neuro") && path.is_file() {
                models.insert(path);
            }
        }
    }
    (models, true)
}

/// Does a text bring something in from a module of one of these names?
fn brings_in(text: &str, stems: &[&str]) -> bool {
    // Most texts need no second look.
    if !text.contains("use") || !stems.iter().any(|stem| text.contains(stem)) {
        return false;
    }
    let Ok(text) = syntax::read_text("", text.as_bytes().to_vec()) else { return false };
    let tree = syntax::parse(FileId(0), &text, &mut Diagnostics::default());
    tree.uses().any(|u| u.path.iter().any(|name| stems.contains(&name.text.as_str())))
}

impl Editor {
    /// An editor without documents.
    pub fn new(columns: Columns) -> Editor {
        Editor { columns, folders: Vec::new(), documents: BTreeMap::new(), trees: Trees::default() }
    }

    /// One that has these folders open: files inside may use what a document defines.
    pub fn with_folders(self, folders: &[Uri]) -> Editor {
        Editor { folders: folders.iter().filter_map(addresses::path_of).collect(), ..self }
    }

    /// How columns are counted.
    pub fn columns(&self) -> Columns {
        self.columns
    }

    /// A document is opened, or has another text as a whole.
    pub fn open(&mut self, uri: Uri, version: i32, text: String) {
        let path = addresses::path_of(&uri);
        let key = uri.as_str().to_string();
        self.documents.insert(key, Document { uri: uri.clone(), version, text, path, analysis: None, untold: true });
        self.others_change(&uri);
    }

    /// A document changes.
    pub fn change(&mut self, uri: &Uri, version: i32, changes: Vec<TextDocumentContentChangeEvent>) {
        let columns = self.columns;
        let Some(document) = self.documents.get_mut(uri.as_str()) else { return };
        let text = std::mem::take(&mut document.text);
        document.text = changes.into_iter().fold(text, |text, change| positions::changed(text, change, columns));
        document.version = version;
        document.analysis = None;
        document.untold = true;
        self.others_change(uri);
    }

    /// A document is closed: what counts is the file again.
    pub fn close(&mut self, uri: &Uri) {
        if let Some(closed) = self.documents.remove(uri.as_str()) {
            self.users_change(closed.path.as_deref());
        }
    }

    /// Files have changed on the disk.
    pub fn disk_changed(&mut self) {
        for document in self.documents.values_mut() {
            document.analysis = None;
            document.untold = true;
        }
    }

    /// What other documents know of a document is not true any more.
    fn others_change(&mut self, uri: &Uri) {
        let path = self.documents.get(uri.as_str()).and_then(|document| document.path.clone());
        self.users_change(path.as_deref());
    }

    fn users_change(&mut self, path: Option<&Path>) {
        let Some(path) = path else { return };
        let name = path.display().to_string();
        for document in self.documents.values_mut().filter(|document| document.path.as_deref() != Some(path)) {
            // Also one that is not there yet may be the one that is missing.
            let beside = || document.path.as_deref().and_then(Path::parent) == path.parent();
            let uses = |a: &Rc<Analysis>| a.said_in.files().any(|(_, file)| file.name == name);
            if document.analysis.as_ref().is_some_and(|a| uses(a) || beside() && !a.diagnostics.is_empty()) {
                document.analysis = None;
                document.untold = true;
            }
        }
    }

    /// The open texts in front of the disk; `instead` are texts that count in their place.
    fn texts<'e>(&'e self, instead: &'e BTreeMap<PathBuf, String>) -> Texts<'e> {
        let own = self.documents.values().filter_map(|d| Some((d.path.clone()?, d.text.as_str())));
        let open = own.chain(instead.iter().map(|(path, text)| (path.clone(), text.as_str()))).collect();
        Texts { open, disk: &Sources, trees: &self.trees }
    }

    fn analyse(&self, document: &Document, text: &str, instead: &BTreeMap<PathBuf, String>) -> Option<Analysis> {
        let texts = self.texts(instead);
        let (name, directory) = match &document.path {
            Some(path) => (path.display().to_string(), path.parent().unwrap_or(Path::new("")).to_path_buf()),
            None => (document.uri.as_str().to_string(), PathBuf::new()),
        };
        // A bug of the compiler takes the answer, not the editor's session.
        catch_unwind(AssertUnwindSafe(|| Analysis::new(&name, &directory, text, &texts))).ok()
    }

    /// What is known of a document as it is now.
    fn analysis(&mut self, uri: &Uri) -> Option<Rc<Analysis>> {
        let document = self.documents.get(uri.as_str())?;
        if let Some(known) = &document.analysis {
            return Some(known.clone());
        }
        let analysis = Rc::new(self.analyse(document, &document.text, &BTreeMap::new())?);
        if let Some(document) = self.documents.get_mut(uri.as_str()) {
            document.analysis = Some(analysis.clone());
        }
        Some(analysis)
    }

    /// What is wrong with a document that has to be told, if there is one: each call gives another.
    pub fn tell(&mut self) -> Option<Told> {
        let document = self.documents.values_mut().find(|document| document.untold)?;
        document.untold = false;
        let (uri, version) = (document.uri.clone(), document.version);
        let analysis = self.analysis(&uri);
        let diagnostics = analysis.map(|a| messages::diagnostics(self, &uri, &a)).unwrap_or_default();
        Some(Told { uri, version, diagnostics })
    }

    /// The analysis and the text of a document, with the byte of a position.
    fn at(&mut self, uri: &Uri, position: Position) -> Option<(Rc<Analysis>, String, usize)> {
        let analysis = self.analysis(uri)?;
        let text = self.documents.get(uri.as_str())?.text.clone();
        let byte = Lines::new(&text, self.columns).byte(position);
        Some((analysis, text, byte))
    }

    /// Calls `f` with every document.
    fn each(&self, f: &mut dyn FnMut(&Uri, &Analysis)) {
        for document in self.documents.values() {
            if let Some(analysis) = &document.analysis {
                f(&document.uri, analysis);
            }
        }
    }

    /// Calls `f` when all documents have been looked at, and the files beside them or in open folders that may use what this one knows; with whether
    /// these are all.
    fn with_neighbours<R>(&mut self, analysis: &Analysis, f: impl FnOnce(&Editor, bool) -> R) -> R {
        let open: Vec<PathBuf> = self.documents.values().filter_map(|document| document.path.clone()).collect();
        let own = analysis.sources.files().map(|(_, file)| PathBuf::from(&file.name));
        let own: Vec<PathBuf> = own.filter(|path| path.extension().is_some_and(|e| e == "neuro")).collect();
        let stems: Vec<&str> = own.iter().filter_map(|path| path.file_stem()?.to_str()).collect();
        let mut met = Vec::new();
        let (models, mut all) = neighbours(&own, &self.folders);
        for path in models.into_iter().filter(|path| !open.contains(path)) {
            let Some((uri, text)) = addresses::uri_of(&path).zip(std::fs::read_to_string(&path).ok()) else { continue };
            if brings_in(&text, &stems) {
                if met.len() == MOST_MODELS {
                    all = false;
                    break;
                }
                let key = uri.as_str().to_string();
                let path = Some(path);
                let document = Document { uri, version: 0, text, path, analysis: None, untold: false };
                self.documents.insert(key.clone(), document);
                met.push(key);
            }
        }
        self.look_at_all();
        let result = f(self, all);
        met.iter().for_each(|key| {
            self.documents.remove(key);
        });
        result
    }

    /// Looks at all documents that have not been looked at.
    fn look_at_all(&mut self) {
        let uris: Vec<Uri> = self.documents.values().map(|document| document.uri.clone()).collect();
        for uri in &uris {
            self.analysis(uri);
        }
    }

    /// What the name at a position means.
    pub fn hover(&mut self, uri: &Uri, position: Position) -> Option<Hover> {
        let (analysis, text, byte) = self.at(uri, position)?;
        names::hover(self, &analysis, &text, byte)
    }

    /// Where the name at a position is defined.
    pub fn definition(&mut self, uri: &Uri, position: Position) -> Option<Location> {
        let (analysis, _, byte) = self.at(uri, position)?;
        names::definition(self, uri, &analysis, byte)
    }

    /// Where the name at a position is used, and defined if that is wanted.
    pub fn references(&mut self, uri: &Uri, position: Position, definition: bool) -> Option<Vec<Location>> {
        let (analysis, _, byte) = self.at(uri, position)?;
        let found = self.with_neighbours(&analysis, |editor, _| names::references(editor, uri, &analysis, byte));
        let (means, mut places) = found?;
        let defined = names::location(self, uri, &analysis, means);
        places.retain(|place| definition || Some(place) != defined.as_ref());
        Some(places)
    }

    /// The name that can be changed at a position, or why it cannot.
    pub fn can_rename(&mut self, uri: &Uri, position: Position) -> Result<PrepareRenameResponse, String> {
        let (analysis, _, byte) = self.at(uri, position).ok_or("this document is not open")?;
        names::can_rename(self, &analysis, byte).map(PrepareRenameResponse::Range)
    }

    /// The edits that give the name at a position another spelling, or why that cannot be.
    pub fn rename(&mut self, uri: &Uri, position: Position, new: &str) -> Result<WorkspaceEdit, String> {
        let (analysis, _, byte) = self.at(uri, position).ok_or("this document is not open")?;
        self.with_neighbours(&analysis, |editor, all| {
            if !all {
                return Err("too many files may use it to look at all of them: open a smaller folder".to_string());
            }
            names::rename(editor, uri, &analysis, byte, new)
        })
    }

    /// The first open document among these in which something cannot be parsed.
    fn broken(&self, places: &[Location]) -> Option<String> {
        let mut all = places.iter().filter_map(|place| self.documents.get(place.uri.as_str()));
        let broken = |document: &&Document| document.analysis.as_ref().is_some_and(|analysis| !analysis.is_parsed());
        let document = all.find(broken)?;
        let name = document.path.as_ref().and_then(|path| path.file_name()).map(|name| name.to_string_lossy().into());
        Some(name.unwrap_or_else(|| document.uri.as_str().to_string()))
    }

    /// Looks whether all names mean after these edits what they mean now: each edit puts `new` in the place of `old`.
    // The protocol's type: an address is compared by its text, which nobody changes.
    #[allow(clippy::mutable_key_type)]
    fn keeps_meaning(&self, changes: &HashMap<Uri, Vec<TextEdit>>, old: &str, new: &str) -> Result<(), String> {
        let mut instead = BTreeMap::new();
        let mut of_uri = BTreeMap::new();
        // Of each file the places that change.
        let mut moved: BTreeMap<String, Vec<usize>> = BTreeMap::new();
        for (uri, edits) in changes {
            let path = addresses::path_of(uri);
            let text = match (self.documents.get(uri.as_str()), &path) {
                (Some(document), _) => document.text.clone(),
                (None, Some(path)) => {
                    std::fs::read_to_string(path).map_err(|e| format!("cannot read `{}`: {e}", path.display()))?
                }
                (None, None) => return Err("a file that is not open cannot be changed".into()),
            };
            let lines = Lines::new(&text, self.columns);
            let mut places: Vec<usize> = edits.iter().map(|edit| lines.byte(edit.range.start)).collect();
            places.sort_unstable();
            let mut changed = text.clone();
            for at in places.iter().rev() {
                if changed.get(*at..at + old.len()) != Some(old) {
                    return Err(format!("`{old}` does not stand where it should"));
                }
                changed.replace_range(*at..at + old.len(), new);
            }
            let name = path.as_ref().map_or_else(|| uri.as_str().to_string(), |path| path.display().to_string());
            moved.insert(name, places);
            of_uri.insert(uri.as_str().to_string(), changed.clone());
            instead.extend(path.map(|path| (path, changed)));
        }
        let shifted = |file: &str, at: u32| {
            let before = moved.get(file).map_or(0, |places| places.partition_point(|place| *place < at as usize));
            i64::from(at) + before as i64 * (new.len() as i64 - old.len() as i64)
        };
        for document in self.documents.values() {
            let text = of_uri.get(document.uri.as_str()).unwrap_or(&document.text);
            let (Some(before), Some(after)) = (&document.analysis, self.analyse(document, text, &instead)) else {
                continue;
            };
            let known = |d: &crate::diag::Diagnostic| {
                let same =
                    |b: &&crate::diag::Diagnostic| b.message == d.message || b.message.replace(old, new) == d.message;
                before.diagnostics.iter().any(|b| same(&b))
            };
            if let Some(mistake) = after.diagnostics.iter().find(|d| d.is_error() && !known(d)) {
                return Err(format!("`{new}` cannot be its name: {}", mistake.message));
            }
            let meaning = |a: &Analysis, place: &dyn Fn(&str, u32) -> i64| -> Vec<_> {
                let at = |span: crate::source::Span| {
                    let name = a.sources.file(span.file).name.clone();
                    let start = place(&name, span.start);
                    (name, start)
                };
                a.uses.all().map(|(used, means)| (at(used), at(means))).collect()
            };
            if meaning(before, &shifted) != meaning(&after, &|_, at| i64::from(at)) {
                return Err(format!("with the name `{new}` something else would be meant somewhere"));
            }
        }
        Ok(())
    }

    /// What can be written at a position.
    pub fn complete(&mut self, uri: &Uri, position: Position) -> Option<Vec<CompletionItem>> {
        let (analysis, text, byte) = self.at(uri, position)?;
        Some(completion::complete(self, &analysis, &text, byte))
    }

    /// The parameters of the call at a position.
    pub fn signature(&mut self, uri: &Uri, position: Position) -> Option<SignatureHelp> {
        let (analysis, text, byte) = self.at(uri, position)?;
        completion::signature(&analysis, &text, byte)
    }

    /// The edits that mend what is wrong in a range.
    pub fn actions(&mut self, uri: &Uri, range: Range) -> Option<Vec<CodeActionOrCommand>> {
        let analysis = self.analysis(uri)?;
        Some(messages::actions(self, uri, &analysis, range))
    }

    /// What a document defines.
    pub fn symbols(&mut self, uri: &Uri) -> Option<Vec<DocumentSymbol>> {
        let (analysis, text, _) = self.at(uri, Position::default())?;
        Some(outline::symbols(&analysis, &Lines::new(&text, self.columns)))
    }

    /// What of a document can be folded.
    pub fn folds(&mut self, uri: &Uri) -> Option<Vec<FoldingRange>> {
        let text = &self.documents.get(uri.as_str())?.text;
        Some(outline::folds(text, &Lines::new(text, self.columns)))
    }

    /// What each word of a document is.
    pub fn words(&mut self, uri: &Uri) -> Option<Vec<SemanticToken>> {
        let (analysis, text, _) = self.at(uri, Position::default())?;
        Some(outline::words(&analysis, &text, self.columns))
    }

    /// Units of values in a range that are named without one.
    pub fn hints(&mut self, uri: &Uri, range: Range) -> Option<Vec<InlayHint>> {
        let (analysis, text, _) = self.at(uri, Position::default())?;
        Some(outline::hints(&analysis, &Lines::new(&text, self.columns), range))
    }

    /// The edits that lay a document out; none if it has mistakes.
    pub fn formatted(&mut self, uri: &Uri) -> Option<Vec<TextEdit>> {
        let text = &self.documents.get(uri.as_str())?.text;
        outline::formatted(text, &Lines::new(text, self.columns))
    }
}
