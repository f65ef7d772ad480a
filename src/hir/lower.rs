//! From parsed files to a model.
//!
//! In come the main file and the files that it uses; out goes the model, lowered item by item by the other files of this module.
//! Never true here: a model that something was said to be wrong with.

use super::error::{FitError, LimitError, RunError, TrainError};
use super::imports::LoadedFile;
use super::items::{ItemKind, ItemRef};
use super::junction::names_in;
use super::scope::{Role, Scope};
use super::uses::{Places, Uses};
use super::{Channel, DataId, Demand, Expr, Model, Symbol, SymbolKind, Synapse, Ty};
use crate::data::{DataFile, Numbers};
use crate::diag::{Diagnostic, Diagnostics};
use crate::source::{SourceMap, Span};
use crate::syntax::ast;
use crate::units::Dim;
use std::collections::{HashMap, HashSet};
use std::rc::Rc;

/// The most expression nodes a model may have after functions are expanded.
const BUDGET: usize = 2_000_000;

/// How many operations may stand on top of each other after functions and constants are expanded.
pub(super) const MAX_HEIGHT: usize = 256;

/// A lowered channel or cell, with what is wrong in it.
pub(super) struct Definition<T> {
    pub item: T,
    /// Is nothing wrong with it?
    pub sound: bool,
    /// Names in it that nothing is known about because of a mistake that has been said.
    pub unknown: HashSet<String>,
}

impl<T> Definition<T> {
    /// Is nothing known about this name of it?
    pub fn is_unknown(&self, name: &str) -> bool {
        super::scope::below(&self.unknown, name)
    }
}

type Key = (usize, usize);

/// The state of lowering.
pub(super) struct Lowerer<'a> {
    pub files: &'a [LoadedFile],
    pub sources: &'a SourceMap,
    pub diagnostics: &'a mut Diagnostics,
    data: Vec<DataFile>,
    pub constants: HashMap<Key, Option<Expr>>,
    pub constant_stack: Vec<Key>,
    pub function_stack: Vec<&'a ast::Function>,
    /// Functions that call themselves, which has been said.
    pub cyclic_functions: Vec<&'a ast::Function>,
    /// Definitions that are being resolved, from the outermost on.
    pub resolving: Vec<(String, Span)>,
    /// How many expressions contain the one that is being lowered.
    pub depth: usize,
    channels: Vec<(Key, Rc<Definition<Channel>>)>,
    cells: Vec<(Key, Rc<Definition<super::Cell>>)>,
    synapses: Vec<(Key, Rc<Definition<Synapse>>)>,
    streams: u64,
    /// How many sources of white noise equations have so far.
    pub sources_of_noise: u32,
    stream_base: u64,
    /// What is demanded of the network that is being lowered.
    pub demands: Vec<Demand<Expr>>,
    budget: usize,
    /// What names mean, if somebody asks.
    pub uses: Option<Uses>,
    /// For these uses: names of cells that are no symbols, and names that only the body knows which is being lowered.
    pub cell_places: HashMap<Span, Places>,
    pub inner_names: Places,
}

/// Lowers the main file (the first) with all that it uses. Gives a model only if nothing is wrong.
pub fn lower(sources: &SourceMap, files: &[LoadedFile], diagnostics: &mut Diagnostics) -> Option<Model> {
    lowered(&mut Lowerer::new(sources, files, diagnostics))
}

/// The same, and what every name in it means.
pub fn lower_with_uses(
    sources: &SourceMap,
    files: &[LoadedFile],
    diagnostics: &mut Diagnostics,
) -> (Option<Model>, Uses) {
    let mut l = Lowerer::new(sources, files, diagnostics);
    l.uses = Some(Uses::default());
    l.note_imports();
    let model = lowered(&mut l);
    l.note_constants();
    (model, l.uses.unwrap_or_default())
}

fn lowered(l: &mut Lowerer<'_>) -> Option<Model> {
    let main = l.files.first()?;
    let MainItems { networks, runs, trains, fits } = l.main_items(&main.ast);
    let mut lowered: Vec<_> = networks.iter().map(|n| l.network(n)).collect();
    if let [first, second, ..] = runs[..] {
        l.error(RunError::TwoRuns { second: second.span, first: first.span });
    }
    let mut chosen = (!lowered.is_empty()).then_some(0);
    let mut run = None;
    if let Some(block) = runs.first() {
        chosen = l.choose_network(block, &networks);
        run = l.run(block, chosen.map(|n| &lowered[n]));
        if let Some(n) = chosen {
            l.note_sweeps(block, networks[n], &lowered[n].network);
        }
    }
    if let [first, second, ..] = trains[..] {
        l.error(TrainError::TwoBlocks { second: second.span, first: first.span });
    }
    let train = trains.first().and_then(|block| l.train(block));
    if let (Some(block), Some(network)) = (trains.first(), chosen) {
        l.note_train(block, &lowered[network].network);
    }
    if let [first, second, ..] = fits[..] {
        l.error(FitError::TwoBlocks { second: second.span, first: first.span });
    }
    let fit = fits.first().and_then(|block| l.fit(block));
    if let (Some(block), Some(n)) = (fits.first(), chosen) {
        l.note_fit(block, networks[n], &lowered[n].network);
    }
    let sound = lowered.iter().all(|n| n.sound) && runs.is_empty() == run.is_none();
    if !sound || !l.is_sound() {
        return None;
    }
    let file = std::path::Path::new(&l.sources.file(main.id).name);
    Some(Model {
        name: file.file_stem().map_or_else(|| "model".to_string(), |s| s.to_string_lossy().into_owned()),
        docs: main.ast.docs.clone(),
        channels: l.channels.iter().map(|c| c.1.item.clone()).collect(),
        cells: l.cells.iter().map(|c| c.1.item.clone()).collect(),
        network: chosen.map(|n| lowered.swap_remove(n).network),
        run,
        train,
        fit,
        data: std::mem::take(&mut l.data),
    })
}

/// Networks, and what is done with them.
#[derive(Default)]
struct MainItems<'a> {
    networks: Vec<&'a ast::Network>,
    runs: Vec<&'a ast::Run>,
    trains: Vec<&'a ast::Train>,
    fits: Vec<&'a ast::Fit>,
}

impl<'a> Lowerer<'a> {
    fn new(sources: &'a SourceMap, files: &'a [LoadedFile], diagnostics: &'a mut Diagnostics) -> Lowerer<'a> {
        Lowerer {
            files,
            sources,
            diagnostics,
            data: Vec::new(),
            constants: HashMap::new(),
            constant_stack: Vec::new(),
            function_stack: Vec::new(),
            cyclic_functions: Vec::new(),
            resolving: Vec::new(),
            depth: 0,
            channels: Vec::new(),
            cells: Vec::new(),
            synapses: Vec::new(),
            streams: 0,
            sources_of_noise: 0,
            stream_base: 0,
            demands: Vec::new(),
            budget: BUDGET,
            uses: None,
            cell_places: HashMap::new(),
            inner_names: Places::new(),
        }
    }

    /// Lowers the items of the main file but for its networks and what is done with them, which need the others and are given back.
    fn main_items(&mut self, main: &'a ast::File) -> MainItems<'a> {
        let mut given = MainItems::default();
        for (index, item) in main.items.iter().enumerate() {
            if let Some(name) = super::imports::item_name(item) {
                self.check_reserved(name);
            }
            let at = |kind| ItemRef { file: 0, index, kind };
            match item {
                ast::Item::Use(_) => {}
                ast::Item::Const(c) => {
                    self.check_not(&["distance"], &c.name);
                    self.constant(at(ItemKind::Const(c)), &c.name);
                }
                ast::Item::Function(f) => self.check_function(f),
                ast::Item::Channel(c) => {
                    self.channel(at(ItemKind::Channel(c)), c);
                }
                ast::Item::Cell(c) => {
                    self.cell(at(ItemKind::Cell(c)), c);
                }
                ast::Item::Junction(j) => self.check_junction(j),
                ast::Item::Synapse(s) => {
                    self.synapse(at(ItemKind::Synapse(s)), s);
                }
                ast::Item::Network(n) => given.networks.push(n),
                ast::Item::Run(r) => given.runs.push(r),
                ast::Item::Train(t) => given.trains.push(t),
                ast::Item::Fit(f) => given.fits.push(f),
            }
        }
        given
    }

    /// Is nothing wrong with any channel or cell, and was nothing said to be wrong?
    fn is_sound(&self) -> bool {
        let channels = self.channels.iter().all(|c| c.1.sound);
        channels
            && self.synapses.iter().all(|s| s.1.sound)
            && self.cells.iter().all(|c| c.1.sound)
            && !self.diagnostics.has_errors()
    }

    /// Says that something is wrong.
    pub fn error(&mut self, mistake: impl Into<Diagnostic>) {
        self.diagnostics.push(mistake.into());
    }

    /// The source text under a span.
    pub fn text(&self, span: Span) -> &'a str {
        self.sources.text(span)
    }

    /// Does this definition stand in the main file? Only there things that are merely odd are worth a warning.
    pub fn is_main(&self, file: usize) -> bool {
        file == 0
    }

    /// Does a `record` line of the main file have a name for its own sake? What is recorded is of use.
    pub fn is_recorded(&self, name: &str) -> bool {
        fn last_is(path: &ast::Path, name: &str) -> bool {
            match path.segments.last() {
                Some(ast::Segment::Name(last, _)) => last.text == name,
                Some(ast::Segment::Located(_)) => false,
                Some(ast::Segment::Group(paths, _)) => paths.iter().any(|path| last_is(path, name)),
                None => false,
            }
        }
        /// Do the cells that are chosen depend on the name?
        fn selects(path: &ast::Path, name: &str) -> bool {
            path.segments.iter().any(|segment| match segment {
                ast::Segment::Name(_, selection) => selection.iter().any(|s| {
                    let mut names = HashSet::new();
                    [Some(&s.first), s.end.as_ref()].into_iter().flatten().for_each(|e| names_in(e, &mut names));
                    names.contains(name)
                }),
                ast::Segment::Located(_) => false,
                ast::Segment::Group(paths, _) => paths.iter().any(|path| selects(path, name)),
            })
        }
        let name = name.rsplit('.').next().unwrap_or(name);
        let runs = self.files[0].ast.items.iter().filter_map(|item| match item {
            ast::Item::Run(run) => Some(run),
            ast::Item::Use(_)
            | ast::Item::Const(_)
            | ast::Item::Function(_)
            | ast::Item::Channel(_)
            | ast::Item::Cell(_)
            | ast::Item::Junction(_)
            | ast::Item::Synapse(_)
            | ast::Item::Network(_)
            | ast::Item::Train(_)
            | ast::Item::Fit(_) => None,
        });
        runs.flat_map(|run| &run.members).any(|member| match member {
            ast::RunMember::Record { target, around, .. } => {
                last_is(target, name)
                    || selects(target, name)
                    || around.as_ref().is_some_and(|around| selects(&around.of, name))
            }
            ast::RunMember::Key(_) | ast::RunMember::RecordSpikes { .. } | ast::RunMember::Sweep(_) => false,
        })
    }

    /// Is this a place in the main file?
    pub fn is_main_place(&self, span: Span) -> bool {
        span.file == self.files[0].id
    }

    /// Counts expression nodes; false (and said, once) when there are too many.
    pub fn spend(&mut self, nodes: usize, span: Span) -> bool {
        if self.budget == 0 {
            return false;
        }
        self.budget = self.budget.saturating_sub(nodes);
        if self.budget == 0 {
            self.error(LimitError::Large { span });
        }
        self.budget > 0
    }

    /// A number that keeps the random draws of different places apart: it depends on the definition and the order of
    /// draws in it, so a new input does not change the draws of another.
    pub fn stream(&mut self) -> u64 {
        self.streams += 1;
        (self.stream_base + self.streams) & u64::from(u32::MAX)
    }

    /// Starts the streams of a definition.
    pub fn start_streams(&mut self, name: &str) {
        let hash = blake3::hash(name.as_bytes());
        let mut bytes = [0; 4];
        bytes.copy_from_slice(&hash.as_bytes()[..4]);
        self.stream_base = u64::from(u32::from_le_bytes(bytes));
        self.streams = 0;
    }

    pub fn data_file(&mut self, name: String, column: Option<String>, span: Span) -> DataId {
        let directory = self.sources.file(span.file).directory.clone();
        self.data.push(DataFile { name, directory, column, span, numbers: Numbers::File });
        DataId(self.data.len() as u32 - 1)
    }

    /// The last data file, which the model does not have then.
    pub fn take_file(&mut self, id: DataId) -> Option<DataFile> {
        debug_assert_eq!(id.0 as usize + 1, self.data.len(), "it is the last");
        self.data.pop()
    }

    /// Are two data files one?
    pub fn is_same_file(&self, a: DataId, b: DataId) -> bool {
        let of = |id: DataId| (&self.data[id.0 as usize].name, &self.data[id.0 as usize].directory);
        of(a) == of(b)
    }

    /// Checks what can be checked of a function that nothing may call: the units and names of its parameters.
    fn check_function(&mut self, f: &'a ast::Function) {
        for (i, (name, unit)) in f.params.iter().enumerate() {
            if let Some(unit) = unit {
                self.unit(unit);
            }
            if let Some(first) = f.params[..i].iter().find(|p| p.0.text == name.text) {
                self.duplicate(name, first.0.span);
            }
        }
        // Parameters with a unit are checked here once; what depends on the others is checked at each call.
        let mut env = super::calls::Env::new();
        for (name, unit) in &f.params {
            let unit = unit.as_ref().and_then(|u| self.unit(u));
            env.insert(name.text.clone(), unit.map(|u| Expr::number(1.0, u.dim, name.span)));
        }
        self.check_body(f, env);
    }

    pub fn cached_channel(&self, item: ItemRef<'a>) -> Option<Rc<Definition<Channel>>> {
        self.channels.iter().find(|c| c.0 == (item.file, item.index)).map(|c| c.1.clone())
    }

    pub fn keep_channel(&mut self, item: ItemRef<'a>, channel: Definition<Channel>) -> Rc<Definition<Channel>> {
        let channel = Rc::new(channel);
        self.channels.push(((item.file, item.index), channel.clone()));
        channel
    }

    pub fn cached_synapse(&self, item: ItemRef<'a>) -> Option<Rc<Definition<Synapse>>> {
        self.synapses.iter().find(|s| s.0 == (item.file, item.index)).map(|s| s.1.clone())
    }

    pub fn keep_synapse(&mut self, item: ItemRef<'a>, synapse: Definition<Synapse>) -> Rc<Definition<Synapse>> {
        let synapse = Rc::new(synapse);
        self.synapses.push(((item.file, item.index), synapse.clone()));
        synapse
    }

    /// A cell of a population's own, made of one of a file.
    pub fn own_cell(&mut self, of: usize, cell: Definition<super::Cell>) -> usize {
        let key = self.cells[of].0;
        self.cells.push((key, Rc::new(cell)));
        self.cells.len() - 1
    }

    /// Another cell in its place.
    pub fn change_cell(&mut self, index: usize, cell: Definition<super::Cell>) {
        self.cells[index].1 = Rc::new(cell);
    }

    pub fn cell_index(&self, item: ItemRef<'a>) -> Option<usize> {
        self.cells.iter().position(|c| c.0 == (item.file, item.index))
    }

    pub fn keep_cell(&mut self, item: ItemRef<'a>, cell: Definition<super::Cell>) -> usize {
        self.cells.push(((item.file, item.index), Rc::new(cell)));
        self.cells.len() - 1
    }

    pub fn lowered_cell(&self, index: usize) -> Rc<Definition<super::Cell>> {
        self.cells[index].1.clone()
    }
}

/// The symbols of a scope: sound or not, names nothing is known about. What is missing is a zero.
pub(super) fn finish(scope: Scope<'_>) -> (Vec<Symbol>, bool, HashSet<String>) {
    let mut unknown = scope.poisoned;
    let mut sound = unknown.is_empty();
    let mut symbols = Vec::new();
    for e in scope.entries {
        if e.ty.is_none() {
            unknown.insert(e.name.clone());
        }
        let ty = e.ty.unwrap_or(Ty::Real(Dim::ONE));
        let mut fine = e.ty.is_some();
        let mut must = |x: Option<Expr>| {
            fine &= x.is_some();
            x.unwrap_or_else(|| Expr { ty, ..Expr::number(0.0, ty.dim(), e.span) })
        };
        let kind = match e.role {
            Role::Param => {
                // It is lacking, which has been said: it has no value to look at.
                if e.value.is_none() {
                    unknown.insert(e.name.clone());
                }
                SymbolKind::Param(must(e.value))
            }
            Role::Let => SymbolKind::Let(must(e.value)),
            Role::State(kind) => SymbolKind::State { init: must(e.value), rate: must(e.rate), kind, scheme: e.scheme },
            Role::Port(kind) => SymbolKind::Port(kind),
            Role::Voltage => SymbolKind::Voltage,
            Role::Pool => SymbolKind::Pool,
        };
        sound &= fine;
        symbols.push(Symbol { name: e.name, span: e.span, docs: e.docs, kind, ty, unit: e.unit });
    }
    (symbols, sound, unknown)
}
