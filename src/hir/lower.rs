//! From parsed files to a model.

use super::imports::LoadedFile;
use super::scope::{Role, Scope, ScopeKind};
use super::{Channel, DataId, Expr, Model, Symbol, SymbolKind, Ty};
use crate::data::DataFile;
use crate::diag::{Code, Diagnostic, Diagnostics, nearest};
use crate::source::{SourceMap, Span};
use crate::syntax::ast;
use crate::units::Dim;
use std::collections::{HashMap, HashSet};
use std::rc::Rc;

/// An item of one of the files.
#[derive(Clone, Copy)]
pub(super) struct ItemRef<'a> {
    pub file: usize,
    pub index: usize,
    pub kind: ItemKind<'a>,
}

/// An item by kind.
#[derive(Clone, Copy)]
pub(super) enum ItemKind<'a> {
    Const(&'a ast::Const),
    Function(&'a ast::Function),
    Channel(&'a ast::Channel),
    Cell(&'a ast::Cell),
    Junction(&'a ast::Junction),
    Network,
}

impl ItemKind<'_> {
    pub fn describe(&self) -> &'static str {
        match self {
            ItemKind::Const(_) => "a constant",
            ItemKind::Function(_) => "a function",
            ItemKind::Channel(_) => "a channel",
            ItemKind::Cell(_) => "a cell model",
            ItemKind::Junction(_) => "a junction model",
            ItemKind::Network => "a network",
        }
    }
}

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
    files: &'a [LoadedFile],
    sources: &'a SourceMap,
    pub diagnostics: &'a mut Diagnostics,
    data: Vec<DataFile>,
    constants: HashMap<Key, Option<Expr>>,
    constant_stack: Vec<Key>,
    pub function_stack: Vec<&'a ast::Function>,
    /// Functions that call themselves, which has been said.
    pub cyclic_functions: Vec<&'a ast::Function>,
    /// Definitions that are being resolved, from the outermost on.
    pub resolving: Vec<(String, Span)>,
    /// How many expressions contain the one that is being lowered.
    pub depth: usize,
    channels: Vec<(Key, Rc<Definition<Channel>>)>,
    cells: Vec<(Key, Rc<Definition<super::Cell>>)>,
    streams: u64,
    stream_base: u64,
    budget: usize,
}

/// Lowers the main file (the first) with all that it uses. Gives a model only if nothing is wrong.
pub fn lower(sources: &SourceMap, files: &[LoadedFile], diagnostics: &mut Diagnostics) -> Option<Model> {
    let main = files.first()?;
    let mut lowerer = Lowerer {
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
        streams: 0,
        stream_base: 0,
        budget: BUDGET,
    };
    let l = &mut lowerer;
    let mut networks = Vec::new();
    let mut runs = Vec::new();
    for (index, item) in main.ast.items.iter().enumerate() {
        if let Some(name) = super::imports::item_name(item) {
            l.check_reserved(name);
        }
        match item {
            ast::Item::Use(_) => {}
            ast::Item::Const(c) => {
                let item = ItemRef { file: 0, index, kind: ItemKind::Const(c) };
                l.constant(item, &c.name);
            }
            ast::Item::Function(f) => l.check_function(f),
            ast::Item::Channel(c) => {
                l.channel(ItemRef { file: 0, index, kind: ItemKind::Channel(c) }, c);
            }
            ast::Item::Cell(c) => {
                l.cell(ItemRef { file: 0, index, kind: ItemKind::Cell(c) }, c);
            }
            ast::Item::Junction(j) => l.check_junction(j),
            ast::Item::Network(n) => networks.push(n),
            ast::Item::Run(r) => runs.push(r),
        }
    }
    let mut lowered: Vec<_> = networks.iter().map(|n| l.network(n)).collect();
    if let Some(second) = runs.get(1) {
        let first = runs[0].span;
        l.error(
            Diagnostic::new(Code::DuplicateKey, second.span, "there are two `run` blocks", "the second")
                .see(first, "the first"),
        );
    }
    let mut chosen = (!lowered.is_empty()).then_some(0);
    let mut run = None;
    if let Some(block) = runs.first() {
        chosen = l.choose_network(block, &networks);
        run = l.run(block, chosen.map(|n| &lowered[n]));
    }
    let sound = l.channels.iter().all(|c| c.1.sound)
        && l.cells.iter().all(|c| c.1.sound)
        && lowered.iter().all(|n| n.sound)
        && runs.is_empty() == run.is_none();
    if !sound || l.diagnostics.has_errors() {
        return None;
    }
    let name = std::path::Path::new(&sources.file(main.id).name)
        .file_stem()
        .map_or_else(|| "model".to_string(), |s| s.to_string_lossy().into_owned());
    let channels = l.channels.iter().map(|c| c.1.item.clone()).collect();
    let cells = l.cells.iter().map(|c| c.1.item.clone()).collect();
    let network = chosen.map(|n| lowered.swap_remove(n).network);
    let docs = main.ast.docs.clone();
    Some(Model { name, docs, channels, cells, network, run, data: std::mem::take(&mut l.data) })
}

impl<'a> Lowerer<'a> {
    pub fn error(&mut self, diagnostic: Diagnostic) {
        self.diagnostics.push(diagnostic);
    }

    /// The source text under a span.
    pub fn text(&self, span: Span) -> &'a str {
        self.sources.text(span)
    }

    /// Does this definition stand in the main file? Only there things that are merely odd are worth a warning.
    pub fn is_main(&self, file: usize) -> bool {
        file == 0
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
            let message = "the model becomes too large when its functions are expanded";
            self.error(Diagnostic::new(Code::TooDeep, span, message, "given up here"));
        }
        self.budget > 0
    }

    pub fn unsupported(&mut self, span: Span, what: &str) {
        self.error(Diagnostic::new(
            Code::Unsupported,
            span,
            format!("{what} cannot be compiled by this version"),
            "understood, but not compiled",
        ));
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
        self.data.push(DataFile { name, directory, column, span });
        DataId(self.data.len() as u32 - 1)
    }

    /// Could a name of a file mean something that could not be read (which has been said)?
    pub fn is_unknown_item(&self, file: usize, name: &str) -> bool {
        let file = &self.files[file];
        let broken_use = |n: &ast::Name| {
            let text = &self.sources.file(n.span.file).text;
            text.get(..n.span.start as usize).is_some_and(|t| t.trim_end().ends_with("use"))
        };
        file.unknown.contains(name) || file.ast.broken.iter().any(|n| n.text == name || broken_use(n))
    }

    /// Are there items in the main file that could not be read (which has been said)?
    pub fn has_broken_items(&self) -> bool {
        !self.files[0].ast.broken.is_empty()
    }

    /// The pools of all compartments of all files: name and unit as written.
    pub fn pools(&self) -> Vec<(&'a str, Option<&'a str>)> {
        let cells = self.files.iter().flat_map(|f| &f.ast.items).filter_map(|item| match item {
            ast::Item::Cell(c) => Some(c),
            _ => None,
        });
        let compartments = cells.flat_map(|c| &c.members).filter_map(|m| match m {
            ast::CellMember::Compartment(k) => Some(k),
            _ => None,
        });
        let pools = compartments.flat_map(|k| &k.members).filter_map(|m| match m {
            ast::CompartmentMember::Pool { name, unit, .. } => Some((name.text.as_str(), unit.as_ref())),
            _ => None,
        });
        pools.map(|(name, unit)| (name, unit.map(|u| self.text(u.span).trim()))).collect()
    }

    /// The constant of a name, where it is defined.
    pub fn constant_item(&self, file: usize, name: &str) -> Option<&'a ast::Const> {
        match self.item(file, name)?.kind {
            ItemKind::Const(c) => Some(c),
            _ => None,
        }
    }

    /// The item that a name means in a file.
    pub fn item(&self, file: usize, name: &str) -> Option<ItemRef<'a>> {
        let &(file, index, _) = self.files[file].names.get(name)?;
        let kind = match &self.files[file].ast.items[index] {
            ast::Item::Const(x) => ItemKind::Const(x),
            ast::Item::Function(x) => ItemKind::Function(x),
            ast::Item::Channel(x) => ItemKind::Channel(x),
            ast::Item::Cell(x) => ItemKind::Cell(x),
            ast::Item::Junction(x) => ItemKind::Junction(x),
            ast::Item::Network(_) => ItemKind::Network,
            ast::Item::Use(_) | ast::Item::Run(_) => return None,
        };
        Some(ItemRef { file, index, kind })
    }

    pub(super) fn names_where(&self, file: usize, fits: impl Fn(&ItemKind<'a>) -> bool) -> Vec<String> {
        let mut names: Vec<String> = self.files[file]
            .names
            .keys()
            .filter(|n| self.item(file, n).is_some_and(|i| fits(&i.kind)))
            .cloned()
            .collect();
        names.sort();
        names
    }

    pub fn cell_names(&self, file: usize) -> Vec<String> {
        self.names_where(file, |k| matches!(k, ItemKind::Cell(_)))
    }

    pub fn constant_names(&self, file: usize) -> Vec<String> {
        self.names_where(file, |k| matches!(k, ItemKind::Const(_)))
    }

    pub fn function_names(&self, file: usize) -> Vec<String> {
        self.names_where(file, |k| matches!(k, ItemKind::Function(_)))
    }

    /// The channel or cell that a name means, or an error with what there is.
    pub fn find_item(
        &mut self,
        file: usize,
        name: &ast::Name,
        what: &str,
        fits: impl Fn(&ItemKind<'a>) -> bool,
    ) -> Option<ItemRef<'a>> {
        match self.item(file, &name.text) {
            Some(item) if fits(&item.kind) => Some(item),
            Some(item) => {
                let is = item.kind.describe();
                let message = format!("`{}` is {is}, not {what}", name.text);
                let d = Diagnostic::new(Code::UnknownItem, name.span, message, is);
                let names = self.names_where(file, fits);
                self.error(match names.is_empty() {
                    true => d,
                    false => d.note(format!(
                        "the file's {}s are {}",
                        what.split_once(' ').map_or(what, |w| w.1),
                        names.join(", ")
                    )),
                });
                None
            }
            None if self.is_unknown_item(file, &name.text) => None,
            None => {
                let mut d = Diagnostic::new(
                    Code::UnknownItem,
                    name.span,
                    format!("there is no {} `{}`", what.split_once(' ').map_or(what, |w| w.1), name.text),
                    "neither defined in this file nor brought in by `use`",
                );
                let names = self.names_where(file, fits);
                let word = what.split(' ').nth(1).unwrap_or("");
                let has = |module: &String| {
                    let text = crate::stdlib::source(module).unwrap_or("");
                    text.lines().any(|l| l.starts_with(&format!("{word} {} ", name.text)))
                };
                let modules: Vec<String> = crate::stdlib::modules().into_iter().filter(has).collect();
                if !modules.is_empty() {
                    let uses: Vec<String> = modules.iter().map(|m| format!("`use {m}.{{{}}}`", name.text)).collect();
                    d = d.help(format!("the standard library has it: {}", uses.join(" or ")));
                } else if let Some(near) = nearest(&name.text, names.iter().map(String::as_str)) {
                    d = d.help(format!("did you mean `{near}`?"));
                } else if names.is_empty() {
                    d = d.help(format!("define it, `{word} {} {{ ... }}`, or bring it in with `use`", name.text));
                } else {
                    d = d.note(format!("this file knows {}", names.join(", ")));
                }
                self.error(d);
                None
            }
        }
    }

    /// Says that a name is reserved, and gives back whether it is free.
    pub fn check_reserved(&mut self, name: &ast::Name) -> bool {
        let function = super::builtins::function(&name.text).is_some();
        if function || super::RESERVED.contains(&name.text.as_str()) {
            let message = format!("`{}` has a fixed meaning and cannot be defined", name.text);
            let label = if function {
                "a built-in function"
            } else {
                match name.text.as_str() {
                    "v" => "the voltage",
                    "t" => "the time",
                    "celsius" => "the temperature of the run",
                    "pi" => "the number 3.14159...",
                    "index" => "the number of a cell in its population",
                    "dt" => "the time step of the run",
                    "i_syn" => "the input current of a point neuron",
                    _ => "a reserved name",
                }
            };
            let d = Diagnostic::new(Code::ReservedName, name.span, message, label);
            self.error(d.help(format!("choose another name, such as `{}_0`", name.text)));
            return false;
        }
        true
    }

    pub fn duplicate(&mut self, name: &ast::Name, first: Span) {
        self.error(
            Diagnostic::new(
                Code::DuplicateName,
                name.span,
                format!("`{}` is defined twice", name.text),
                "defined again",
            )
            .see(first, "first defined here"),
        );
    }

    /// The value of a constant.
    pub fn constant(&mut self, item: ItemRef<'a>, user: &ast::Name) -> Option<Expr> {
        let key = (item.file, item.index);
        if let Some(known) = self.constants.get(&key) {
            return known.clone();
        }
        let ItemKind::Const(constant) = item.kind else { return None };
        if let Some(at) = self.constant_stack.iter().position(|k| *k == key) {
            let chain: Vec<&ast::Name> = self.constant_stack[at..]
                .iter()
                .filter_map(|&(file, index)| super::imports::item_name(&self.files[file].ast.items[index]))
                .collect();
            let names: Vec<(String, Span)> = chain.iter().map(|n| (n.text.clone(), n.span)).collect();
            self.cycle("constant", &names, user.span, "write its value as a number");
            return None;
        }
        self.constant_stack.push(key);
        let mut scope = Scope::new(ScopeKind::Constant, item.file);
        let value = self.expr(&mut scope, "", &constant.value);
        self.constant_stack.pop();
        let value = value.and_then(|v| self.not_too_high(v, constant.value.span));
        self.constants.insert(key, value.clone());
        value
    }

    /// Says that definitions depend on each other in a circle; `user` is the place that closes it.
    pub fn cycle(&mut self, what: &str, chain: &[(String, Span)], user: Span, help: &str) {
        let Some((name, span)) = chain.first() else { return };
        let what = if what.is_empty() { String::new() } else { format!("the {what} ") };
        let mut d =
            Diagnostic::new(Code::CyclicDefinition, *span, format!("{what}`{name}` depends on itself"), "defined here");
        if let [_, others @ ..] = chain
            && !others.is_empty()
        {
            let names: Vec<String> = chain.iter().chain([&chain[0]]).map(|c| format!("`{}`", c.0)).collect();
            d = d.note(format!("{} (each needs the next)", names.join(" -> ")));
        }
        self.error(d.see(user, "needed here for its own value").help(help));
    }

    /// Rejects expressions that became too high when functions and constants were put in.
    pub fn not_too_high(&mut self, x: Expr, span: Span) -> Option<Expr> {
        if x.height() <= MAX_HEIGHT {
            return Some(x);
        }
        let message =
            format!("more than {MAX_HEIGHT} operations stand on top of each other when functions are expanded");
        self.error(Diagnostic::new(Code::TooDeep, span, message, "given up here").help("name parts of it with `let`"));
        None
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
            Role::Param => SymbolKind::Param(must(e.value)),
            Role::Let => SymbolKind::Let(must(e.value)),
            Role::State { gate } => SymbolKind::State { init: must(e.value), rate: must(e.rate), gate },
            Role::Port(kind) => SymbolKind::Port(kind),
            Role::Voltage => SymbolKind::Voltage,
            Role::Pool => SymbolKind::Pool,
        };
        sound &= fine;
        symbols.push(Symbol { name: e.name, span: e.span, docs: e.docs, kind, ty, unit: e.unit });
    }
    (symbols, sound, unknown)
}
