//! From parsed files to a model.

use super::imports::LoadedFile;
use super::scope::{Role, Scope, ScopeKind};
use super::{Channel, DataFile, DataId, Expr, Model, Symbol, SymbolKind};
use crate::diag::{Code, Diagnostic, Diagnostics, nearest};
use crate::source::{SourceMap, Span};
use crate::syntax::ast;
use std::collections::HashMap;

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
    Network(&'a ast::Network),
}

impl ItemKind<'_> {
    pub fn describe(&self) -> &'static str {
        match self {
            ItemKind::Const(_) => "a constant",
            ItemKind::Function(_) => "a function",
            ItemKind::Channel(_) => "a channel",
            ItemKind::Cell(_) => "a cell model",
            ItemKind::Junction(_) => "a junction model",
            ItemKind::Network(_) => "a network",
        }
    }
}

/// The most expression nodes a model may have after functions are expanded.
const BUDGET: usize = 2_000_000;

/// The state of lowering.
pub(super) struct Lowerer<'a> {
    files: &'a [LoadedFile],
    sources: &'a SourceMap,
    pub diagnostics: &'a mut Diagnostics,
    data: Vec<DataFile>,
    constants: HashMap<(usize, usize), Option<Expr>>,
    constant_stack: Vec<(usize, usize)>,
    pub function_stack: Vec<&'a ast::Function>,
    channels: Vec<((usize, usize), Option<Channel>)>,
    cells: Vec<((usize, usize), Option<super::Cell>)>,
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
            ast::Item::Junction(j) => l.unsupported(j.name.span, "gap junctions"),
            ast::Item::Network(n) => networks.push(n),
            ast::Item::Run(r) => runs.push(r),
        }
    }
    let lowered: Vec<_> = networks.iter().map(|n| l.network(n)).collect();
    if let Some(second) = runs.get(1) {
        let first = runs[0].span;
        l.error(
            Diagnostic::new(Code::DuplicateKey, second.span, "there are two `run` blocks", "the second")
                .see(first, "the first"),
        );
    }
    let mut network = None;
    let mut run = None;
    if let Some(block) = runs.first() {
        let chosen = l.choose_network(block, &networks);
        if let Some(chosen) = chosen
            && let Some(lowered) = lowered.into_iter().nth(chosen).flatten()
        {
            run = l.run(block, &lowered);
            network = Some(lowered);
        }
    } else {
        network = lowered.into_iter().flatten().next();
    }
    if l.diagnostics.has_errors() {
        return None;
    }
    let name = std::path::Path::new(&sources.file(main.id).name)
        .file_stem()
        .map_or_else(|| "model".to_string(), |s| s.to_string_lossy().into_owned());
    let channels = std::mem::take(&mut l.channels).into_iter().filter_map(|c| c.1).collect();
    let cells = std::mem::take(&mut l.cells).into_iter().filter_map(|c| c.1).collect();
    let docs = main.ast.docs.clone();
    let model = Model { name, docs, channels, cells, network, run, data: std::mem::take(&mut l.data) };
    super::warnings::magnitudes(&model, l.diagnostics);
    Some(model)
}

impl<'a> Lowerer<'a> {
    pub fn error(&mut self, diagnostic: Diagnostic) {
        self.diagnostics.push(diagnostic);
    }

    /// The source text under a span.
    pub fn text(&self, span: Span) -> &'a str {
        self.sources.text(span)
    }

    /// Counts one expression node; false (and said, once) when there are too many.
    pub fn spend(&mut self, span: Span) -> bool {
        if self.budget == 0 {
            return false;
        }
        self.budget -= 1;
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

    /// The item that a name means in a file.
    pub fn item(&self, file: usize, name: &str) -> Option<ItemRef<'a>> {
        let &(file, index, _) = self.files[file].names.get(name)?;
        let kind = match &self.files[file].ast.items[index] {
            ast::Item::Const(x) => ItemKind::Const(x),
            ast::Item::Function(x) => ItemKind::Function(x),
            ast::Item::Channel(x) => ItemKind::Channel(x),
            ast::Item::Cell(x) => ItemKind::Cell(x),
            ast::Item::Junction(x) => ItemKind::Junction(x),
            ast::Item::Network(x) => ItemKind::Network(x),
            ast::Item::Use(_) | ast::Item::Run(_) => return None,
        };
        Some(ItemRef { file, index, kind })
    }

    fn names_where(&self, file: usize, fits: impl Fn(&ItemKind<'a>) -> bool) -> Vec<String> {
        let mut names: Vec<String> = self.files[file]
            .names
            .keys()
            .filter(|n| self.item(file, n).is_some_and(|i| fits(&i.kind)))
            .cloned()
            .collect();
        names.sort();
        names
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
                self.error(Diagnostic::new(Code::UnknownItem, name.span, message, is));
                None
            }
            None => {
                let mut d = Diagnostic::new(
                    Code::UnknownItem,
                    name.span,
                    format!("there is no {} `{}`", what.split_once(' ').map_or(what, |w| w.1), name.text),
                    "neither defined in this file nor brought in by `use`",
                );
                let names = self.names_where(file, fits);
                if let Some(near) = nearest(&name.text, names.iter().map(String::as_str)) {
                    d = d.help(format!("did you mean `{near}`?"));
                } else {
                    for module in crate::stdlib::modules() {
                        let text = crate::stdlib::source(&module).unwrap_or("");
                        let word = what.split(' ').nth(1).unwrap_or("");
                        if text.lines().any(|l| l.starts_with(&format!("{word} {} ", name.text))) {
                            d = d.help(format!("the standard library has it: `use {module}.{{{}}}`", name.text));
                            break;
                        }
                    }
                }
                self.error(d);
                None
            }
        }
    }

    pub fn check_reserved(&mut self, name: &ast::Name) {
        let function = super::builtins::function(&name.text).is_some();
        if function || super::RESERVED.contains(&name.text.as_str()) {
            let message = format!("`{}` has a fixed meaning and cannot be defined", name.text);
            let label = if function { "a built-in function" } else { "a reserved name" };
            self.error(Diagnostic::new(Code::ReservedName, name.span, message, label));
        }
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
        if self.constant_stack.contains(&key) {
            let message = format!("the constant `{}` depends on itself", constant.name.text);
            self.error(
                Diagnostic::new(Code::CyclicDefinition, constant.name.span, message, "needs its own value")
                    .see(user.span, "used here while it is being computed"),
            );
            return None;
        }
        self.constant_stack.push(key);
        let mut scope = Scope::new(ScopeKind::Constant, item.file);
        let value = self.expr(&mut scope, "", &constant.value);
        self.constant_stack.pop();
        self.constants.insert(key, value.clone());
        value
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
        // With all units given, the body can be checked without a call.
        if f.params.iter().all(|p| p.1.is_some()) {
            let mut env = super::expr::Env::new();
            for (name, unit) in &f.params {
                let dim = match unit.as_ref().and_then(|u| self.unit(u)) {
                    Some(unit) => unit.dim,
                    None => return,
                };
                env.insert(name.text.clone(), Expr::number(1.0, dim, name.span));
            }
            self.check_body(f, env);
        }
    }

    pub fn cached_channel(&self, item: ItemRef<'a>) -> Option<&Option<Channel>> {
        self.channels.iter().find(|c| c.0 == (item.file, item.index)).map(|c| &c.1)
    }

    pub fn keep_channel(&mut self, item: ItemRef<'a>, channel: Option<Channel>) {
        self.channels.push(((item.file, item.index), channel));
    }

    pub fn cell_index(&self, item: ItemRef<'a>) -> Option<usize> {
        self.cells.iter().position(|c| c.0 == (item.file, item.index))
    }

    pub fn keep_cell(&mut self, item: ItemRef<'a>, cell: Option<super::Cell>) -> usize {
        self.cells.push(((item.file, item.index), cell));
        self.cells.len() - 1
    }

    pub fn lowered_cell(&self, index: usize) -> Option<&super::Cell> {
        self.cells[index].1.as_ref()
    }

    /// For each cell of the model, its index among all cells.
    pub fn model_cells(&self) -> Vec<usize> {
        (0..self.cells.len()).filter(|&i| self.cells[i].1.is_some()).collect()
    }

    /// How many cells before `index` were lowered without error (the index it has in the model).
    pub fn model_cell(&self, index: usize) -> usize {
        self.cells[..index].iter().filter(|c| c.1.is_some()).count()
    }
}

/// The finished symbols of a scope; `None` if one of them is wrong.
pub(super) fn finish(scope: Scope<'_>) -> Option<Vec<Symbol>> {
    scope
        .entries
        .into_iter()
        .map(|e| {
            let kind = match e.role {
                Role::Param => SymbolKind::Param(e.value?),
                Role::Let => SymbolKind::Let(e.value?),
                Role::State { gate } => SymbolKind::State { init: e.value?, rate: e.rate?, gate },
                Role::Port(kind) => SymbolKind::Port(kind),
                Role::Voltage => SymbolKind::Voltage,
                Role::Pool => SymbolKind::Pool,
            };
            Some(Symbol { name: e.name, span: e.span, docs: e.docs, kind, ty: e.ty?, unit: e.unit })
        })
        .collect()
}
