//! Which name means what: a table for those who show models in an editor.
//!
//! In come, while a model is lowered, names where they are used with the place where what they mean is defined, and the symbols of every block; out
//! goes a table of both. Nobody else needs it: it is only kept if it is asked for.
//! Never true here: a name is looked up. That has happened where a use is noted.

use super::lower::{Lowerer, finish};
use super::place::{FlatPath, flatten};
use super::scope::Scope;
use super::{Cell, Network, Symbol, SymbolKind};
use crate::source::Span;
use crate::syntax::ast::{self, Name};
use std::collections::{BTreeMap, HashMap, HashSet};

/// The symbols of a block, or of a population's cells.
#[derive(Debug, Clone)]
pub struct Block {
    /// The name of the channel, cell, junction, synapse, network or population.
    pub name: Span,
    /// Its symbols, by their names inside.
    pub symbols: Vec<Symbol>,
    /// Those that nothing is known about because of a mistake.
    pub unknown: HashSet<String>,
}

/// What names mean in all files of a model.
#[derive(Debug, Clone, Default)]
pub struct Uses {
    /// From the place of a name to that of a definition, which may be a use of another.
    meaning: BTreeMap<Span, Span>,
    /// Every block once, in the order in which they were lowered: what is used before what uses it.
    pub blocks: Vec<Block>,
}

/// So many names may stand between a use and its definition: argument, parameter of an instance, parameter of the channel.
const LONGEST: usize = 8;

impl Uses {
    /// Where that is defined which the name at `span` means; the place itself if it is a definition.
    pub fn definition(&self, span: Span) -> Span {
        let step = |at: &Span| self.meaning.get(at).copied();
        std::iter::successors(Some(span), step).take(LONGEST).last().unwrap_or(span)
    }

    /// Every use with its definition, in the order of files and places.
    pub fn all(&self) -> impl Iterator<Item = (Span, Span)> + '_ {
        self.meaning.keys().map(|&at| (at, self.definition(at)))
    }

    /// The symbol that is defined at a place, with the block that it is in.
    pub fn symbol(&self, definition: Span) -> Option<(&Block, &Symbol)> {
        let is_it = |s: &&Symbol| self.definition(s.span) == definition;
        // What the compiler makes of a symbol, such as `m.inf` of a gate, stands at the same place and has a longer name.
        let of = |block: &Block| {
            block.symbols.iter().position(|s| is_it(&s)).map(|first| {
                let all = (first..block.symbols.len()).filter(|at| is_it(&&block.symbols[*at]));
                all.min_by_key(|at| block.symbols[*at].name.len()).unwrap_or(first)
            })
        };
        self.blocks.iter().find_map(|block| Some((block, &block.symbols[of(block)?])))
    }

    /// The block of a name.
    pub fn block(&self, name: Span) -> Option<&Block> {
        self.blocks.iter().find(|block| block.name == name)
    }
}

/// Names of cells that are no symbols: compartments, instances of channels and synapses, sections.
pub(super) type Places = HashMap<String, Span>;

impl<'a> Lowerer<'a> {
    /// Notes that the name at `at` means what is defined at `definition`.
    pub(super) fn note(&mut self, at: Span, definition: Span) {
        if let Some(uses) = &mut self.uses
            && at != definition
        {
            uses.meaning.insert(at, definition);
        }
    }

    /// Does a name stand where what it means is defined? What every block has, such as the voltage of a channel, is defined nowhere: it has the place of the
    /// block.
    fn is_called_so(&self, definition: Span, name: &str) -> bool {
        let text = self.text(definition);
        text == name || text == "v_init" && name == "v"
    }

    /// Notes that the name of a state means what is defined at `definition`, if it is called so there.
    pub(super) fn note_state(&mut self, name: &Name, definition: Span) {
        if self.uses.is_some() && self.is_called_so(definition, &name.text) {
            self.note(name.span, definition);
        }
    }

    /// Notes what a name of an expression means, and the names before it that lead to it.
    pub(super) fn note_path(&mut self, scope: &Scope<'a>, full: &str, path: &[Name], definition: Span) {
        if self.uses.is_none() {
            return;
        }
        let mut rest = full;
        for (i, name) in path.iter().enumerate().rev() {
            let means = if i + 1 == path.len() { Some(definition) } else { scope.places.get(rest).copied() };
            let means = means.or_else(|| scope.get(rest).map(|id| scope.entry(id).span));
            if let Some(means) = means.filter(|means| self.is_called_so(*means, &name.text)) {
                self.note(name.span, means);
            }
            rest = rest.rsplit_once('.').map_or("", |(before, _)| before);
        }
    }

    /// Notes what a parameter of a function, or a name that only a body knows, means there.
    pub(super) fn note_inner(&mut self, name: &str, at: Span, value: Option<Span>) {
        if self.uses.is_none() {
            return;
        }
        let inside =
            |f: &&&'a ast::Function| f.body.span.file == at.file && f.body.span.range().contains(&(at.start as usize));
        let function = self.function_stack.last().filter(inside);
        let parameter = function.and_then(|f| f.params.iter().find(|p| p.0.text == name)).map(|p| p.0.span);
        let is_name = |span: &Span| self.text(*span) == name;
        let local = self.inner_names.get(name).copied();
        if let Some(means) = parameter.or(local).or(value.filter(is_name)) {
            self.note(at, means);
        }
    }

    /// Notes the names of arguments, each of which is one of `parameters`.
    pub(super) fn note_arguments<'n>(
        &mut self,
        arguments: impl Iterator<Item = &'n Name>,
        parameters: impl Iterator<Item = (&'n str, Span)> + Clone,
    ) {
        for argument in arguments {
            if let Some((_, means)) = parameters.clone().find(|(name, _)| *name == argument.text) {
                self.note(argument.span, means);
            }
        }
    }

    /// Keeps the symbols of a block.
    pub(super) fn note_block(&mut self, name: Span, symbols: &[Symbol], unknown: &HashSet<String>) {
        if let Some(uses) = &mut self.uses {
            uses.blocks.push(Block { name, symbols: symbols.to_vec(), unknown: unknown.clone() });
        }
    }

    /// Keeps the parameters of a junction.
    pub(super) fn note_junction(&mut self, name: Span, scope: &Scope<'a>) {
        if self.uses.is_some() {
            let (symbols, _, unknown) = finish(scope.clone());
            self.note_block(name, &symbols, &unknown);
        }
    }

    /// Keeps the constants, each a block of its own with one symbol.
    pub(super) fn note_constants(&mut self) {
        let mut known: Vec<_> = self.constants.iter().map(|(key, value)| (*key, value.clone())).collect();
        known.sort_by_key(|(key, _)| *key);
        for ((file, item), value) in known {
            if let (ast::Item::Const(c), Some(value)) = (&self.files[file].ast.items[item], value) {
                let (ty, unit) = (value.ty, self.unit_of_literal(&c.value));
                let (name, docs, kind) = (c.name.text.clone(), c.docs.clone(), SymbolKind::Param(value));
                let symbol = Symbol { name, span: c.name.span, docs, kind, ty, unit };
                self.note_block(c.name.span, &[symbol], &HashSet::new());
            }
        }
    }

    /// Keeps the names of a cell that are no symbols.
    pub(super) fn note_places(&mut self, cell: Span, places: Places) {
        if self.uses.is_some() {
            self.cell_places.entry(cell).or_default().extend(places);
        }
    }

    /// Notes the names of a path in a network: `population` is where the first is defined.
    pub(super) fn note_place(&mut self, flat: &FlatPath<'a>, population: Span, cell: &Cell) {
        if self.uses.is_none() {
            return;
        }
        let Some((first, behind)) = flat.names.split_first() else { return };
        self.note(first.span, population);
        self.note_section(flat, cell);
        let places = self.cell_places.get(&cell.span).cloned().unwrap_or_default();
        let mut path = String::new();
        for name in behind {
            path.push_str(if path.is_empty() { "" } else { "." });
            path.push_str(&name.text);
            let own = |s: &Symbol| Some(s.span).filter(|span| self.is_called_so(*span, &name.text));
            let symbol = || cell.symbols.iter().find(|s| s.name == path).and_then(own);
            // Channels of cells with sections are in regions, which no path names.
            let in_region = |path: &str| {
                let below = format!(".{path}");
                let instance = places.iter().filter(|p| p.0.ends_with(&below)).map(|p| *p.1).min();
                let found = instance.or_else(|| cell.symbols.iter().find(|s| s.name.ends_with(&below)).and_then(own));
                found.filter(|_| cell.morphology.is_some())
            };
            // What is recorded in sections stands behind their name.
            let in_sections = || path.split_once('.').and_then(|(_, quantity)| in_region(quantity));
            let found = places.get(&path).copied().or_else(symbol);
            if let Some(means) = found.or_else(|| in_region(&path)).or_else(in_sections) {
                self.note(name.span, means);
            }
        }
    }

    /// Notes the name of the section that a path has a place in.
    fn note_section(&mut self, flat: &FlatPath<'a>, cell: &Cell) {
        let places = self.cell_places.get(&cell.span);
        if let Some(located) = flat.at
            && let Some(&section) = places.and_then(|places| places.get(&located.section.text))
        {
            self.note(located.section.span, section);
        }
    }

    /// Notes the names of a receptor, which stand behind those of two populations and before that of what edges have.
    pub(super) fn note_receptor(&mut self, names: &[&'a Name], cell: &Cell) {
        let places = self.cell_places.get(&cell.span).cloned().unwrap_or_default();
        let mut path = String::new();
        for name in names {
            path.push_str(if path.is_empty() { "" } else { "." });
            path.push_str(&name.text);
            let below = format!(".{path}");
            let in_section = || places.iter().filter(|p| p.0.ends_with(&below)).map(|p| *p.1).min();
            let in_section = || in_section().filter(|_| cell.morphology.is_some());
            if let Some(means) = places.get(&path).copied().or_else(in_section) {
                self.note(name.span, means);
            }
        }
    }

    /// Notes the name of synapses in a cell that a line modulates.
    pub(super) fn note_modulated(&mut self, name: &Name, path: &str, cell: &Cell) {
        if let Some(means) = self.cell_places.get(&cell.span).and_then(|places| places.get(path).copied()) {
            self.note(name.span, means);
        }
    }

    /// Notes the names of what learns, of what gets samples and of what a loss reads.
    pub(super) fn note_train(&mut self, train: &'a ast::Train, network: &Network) {
        if self.uses.is_none() {
            return;
        }
        for member in &train.members {
            let flats = match member {
                ast::TrainMember::Learn { target, .. } => flatten(target),
                ast::TrainMember::Keep { of, .. } => flatten(&of.0),
                ast::TrainMember::Key(l) => paths_in(&l.value),
            };
            for flat in &flats {
                self.note_learnt(flat, network);
            }
        }
    }

    /// Notes the names of what is swept: whole ones, and ends of them.
    pub(super) fn note_sweeps(&mut self, run: &'a ast::Run, written: &'a ast::Network, network: &Network) {
        if self.uses.is_none() {
            return;
        }
        let sweeps = run.members.iter().filter_map(|member| match member {
            ast::RunMember::Sweep(sweep) => Some(sweep),
            ast::RunMember::Key(_) | ast::RunMember::Record { .. } | ast::RunMember::RecordSpikes { .. } => None,
        });
        let paths: Vec<&ast::Path> = sweeps.flat_map(|sweep| &sweep.swept).map(|swept| &swept.path).collect();
        self.note_set(&paths, written, network);
    }

    /// Notes the names of what is free, of what is compared with traces and of whose spikes count.
    pub(super) fn note_fit(&mut self, fit: &'a ast::Fit, written: &'a ast::Network, network: &Network) {
        if self.uses.is_none() {
            return;
        }
        let mut paths: Vec<&ast::Path> = Vec::new();
        for member in &fit.members {
            match member {
                ast::FitMember::Free(all) => paths.extend(all.iter().map(|swept| &swept.path)),
                ast::FitMember::Target { of, .. } => paths.push(&of.0),
                ast::FitMember::Key(_) => {}
            }
        }
        self.note_set(&paths, written, network);
    }

    /// Notes the names of parameters and states: whole ones, and ends of them.
    fn note_set(&mut self, paths: &[&'a ast::Path], written: &'a ast::Network, network: &Network) {
        for flat in paths.iter().flat_map(|path| flatten(path)) {
            let Some((first, behind)) = flat.names.split_first() else { continue };
            let input = written.members.iter().find_map(|member| match member {
                ast::NetworkMember::Input { name, .. } if name.text == first.text && !behind.is_empty() => {
                    Some(name.span)
                }
                _ => None,
            });
            let own = network.params.iter().find(|p| behind.is_empty() && p.name == first.text).map(|p| p.span);
            if let Some(means) = input.or(own) {
                self.note(first.span, means);
            } else if let Some(of) = network.populations.iter().find(|p| p.name == first.text) {
                self.note_place(&flat, of.span, &self.lowered_cell(of.cell).item);
            } else {
                let cells: Vec<_> = network.populations.iter().map(|p| self.lowered_cell(p.cell)).collect();
                cells.iter().for_each(|cell| self.note_end(&flat.names, &cell.item));
            }
        }
    }

    /// Notes the names of an end of a path in a cell.
    fn note_end(&mut self, names: &[&'a Name], cell: &Cell) {
        let texts: Vec<&str> = names.iter().map(|name| name.text.as_str()).collect();
        let (end, below) = (texts.join("."), format!(".{}", texts.join(".")));
        let Some(symbol) = cell.symbols.iter().find(|s| s.name == end || s.name.ends_with(&below)) else { return };
        let places = self.cell_places.get(&cell.span).cloned().unwrap_or_default();
        let before = symbol.name.len() - end.len();
        let mut reached = before;
        for (at, name) in names.iter().enumerate() {
            reached += name.text.len() + usize::from(at > 0);
            let last = at + 1 == names.len();
            let means = if last { Some(symbol.span) } else { places.get(&symbol.name[..reached]).copied() };
            if let Some(means) = means.filter(|means| !last || self.is_called_so(*means, &name.text)) {
                self.note(name.span, means);
            }
        }
    }

    fn note_learnt(&mut self, flat: &FlatPath<'a>, network: &Network) {
        let population = |name: &Name| network.populations.iter().position(|p| p.name == name.text);
        let Some((first, behind)) = flat.names.split_first() else { return };
        let Some(from) = population(first) else { return };
        let to = behind.first().and_then(|name| Some((name, population(name)?)));
        match to.filter(|(_, to)| network.projections.iter().any(|p| (p.from, p.to) == (from, *to))) {
            Some((name, to)) => {
                let to = &network.populations[to];
                self.note(first.span, network.populations[from].span);
                self.note(name.span, to.span);
                let cell = self.lowered_cell(to.cell);
                self.note_section(flat, &cell.item);
                self.note_receptor(&behind[1..], &cell.item);
            }
            None => {
                let of = &network.populations[from];
                self.note_place(flat, of.span, &self.lowered_cell(of.cell).item);
            }
        }
    }

    /// Notes what `use` lines bring in.
    pub(super) fn note_imports(&mut self) {
        if self.uses.is_none() {
            return;
        }
        for file in self.files {
            for item in &file.ast.items {
                let ast::Item::Use(u) = item else { continue };
                let (names, module) = match (&u.names[..], u.path.split_last()) {
                    ([], Some((last, module))) => (std::slice::from_ref(last), module),
                    (names, _) => (names, &u.path[..]),
                };
                for name in names {
                    let Some(&(target, index, _)) = file.names.get(&name.text) else { continue };
                    let target = &self.files[target];
                    if let Some(means) = super::imports::item_name(&target.ast.items[index]) {
                        self.note(name.span, means.span);
                    }
                    if let Some(last) = module.last() {
                        self.note(last.span, Span::new(target.id, 0, 0));
                    }
                }
            }
        }
    }
}

/// The names with dots in an expression.
fn paths_in(e: &ast::Expr) -> Vec<FlatPath<'_>> {
    match &e.kind {
        ast::ExprKind::Path(path) => {
            vec![FlatPath { names: path.iter().collect(), selections: Vec::new(), at: None, again: None, span: e.span }]
        }
        ast::ExprKind::At(before, place, behind) if !before.is_empty() => {
            let names = before.iter().chain(behind).collect();
            vec![FlatPath { names, selections: Vec::new(), at: Some(place), again: None, span: e.span }]
        }
        ast::ExprKind::Call(_, args) => args.iter().flat_map(|arg| paths_in(&arg.value)).collect(),
        ast::ExprKind::Number { .. }
        | ast::ExprKind::Bool(_)
        | ast::ExprKind::Str(_)
        | ast::ExprKind::Unary(..)
        | ast::ExprKind::Binary(..)
        | ast::ExprKind::If(..)
        | ast::ExprKind::At(..) => Vec::new(),
    }
}
