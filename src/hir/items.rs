//! Items: what the names mean that a file defines or uses.
//!
//! In come a file and a name in it; out goes the item, its value if it is a constant, or a message with what there is.
//! Never true here: an item that could not be read is called unknown.

use super::error::{ItemError, LimitError, NameError};
use super::lower::{Lowerer, MAX_HEIGHT};
use super::scope::{Scope, ScopeKind};
use super::{Expr, builtins};
use crate::source::Span;
use crate::syntax::ast::{self, Name};

/// An item of one of the files.
#[derive(Clone, Copy)]
pub(super) struct ItemRef<'a> {
    pub file: usize,
    pub index: usize,
    pub kind: ItemKind<'a>,
}

/// An item that has a name.
#[derive(Clone, Copy)]
pub(super) enum ItemKind<'a> {
    Const(&'a ast::Const),
    Function(&'a ast::Function),
    Channel(&'a ast::Channel),
    Cell(&'a ast::Cell),
    Junction(&'a ast::Junction),
    Synapse(&'a ast::Synapse),
    Network,
}

/// A kind of items.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Const,
    Function,
    Channel,
    Cell,
    Junction,
    Synapse,
    Network,
}

impl ItemRef<'_> {
    /// Where its name stands.
    fn name(&self, of: &Lowerer<'_>) -> Option<Span> {
        super::imports::item_name(&of.files[self.file].ast.items[self.index]).map(|name| name.span)
    }
}

impl ItemKind<'_> {
    pub fn kind(&self) -> Kind {
        match self {
            ItemKind::Const(_) => Kind::Const,
            ItemKind::Function(_) => Kind::Function,
            ItemKind::Channel(_) => Kind::Channel,
            ItemKind::Cell(_) => Kind::Cell,
            ItemKind::Junction(_) => Kind::Junction,
            ItemKind::Synapse(_) => Kind::Synapse,
            ItemKind::Network => Kind::Network,
        }
    }
}

impl Kind {
    /// What it is called in messages, with an article.
    pub fn describe(self) -> &'static str {
        match self {
            Kind::Const => "a constant",
            Kind::Function => "a function",
            Kind::Channel => "a channel",
            Kind::Cell => "a cell model",
            Kind::Junction => "a junction model",
            Kind::Synapse => "a synapse model",
            Kind::Network => "a network",
        }
    }

    /// The same without an article.
    pub fn noun(self) -> &'static str {
        let described = self.describe();
        described.strip_prefix("a ").unwrap_or(described)
    }

    /// The word that its definitions begin with.
    pub fn keyword(self) -> &'static str {
        match self {
            Kind::Const => "const",
            Kind::Function => "function",
            Kind::Channel => "channel",
            Kind::Cell => "cell",
            Kind::Junction => "junction",
            Kind::Synapse => "synapse",
            Kind::Network => "network",
        }
    }
}

impl<'a> Lowerer<'a> {
    /// The item that a name means in a file.
    pub(super) fn item(&self, file: usize, name: &str) -> Option<ItemRef<'a>> {
        let &(file, index, _) = self.files[file].names.get(name)?;
        let kind = match &self.files[file].ast.items[index] {
            ast::Item::Const(x) => ItemKind::Const(x),
            ast::Item::Function(x) => ItemKind::Function(x),
            ast::Item::Channel(x) => ItemKind::Channel(x),
            ast::Item::Cell(x) => ItemKind::Cell(x),
            ast::Item::Junction(x) => ItemKind::Junction(x),
            ast::Item::Synapse(x) => ItemKind::Synapse(x),
            ast::Item::Network(_) => ItemKind::Network,
            ast::Item::Use(_) | ast::Item::Run(_) | ast::Item::Train(_) | ast::Item::Fit(_) => return None,
        };
        Some(ItemRef { file, index, kind })
    }

    /// The names of all items of a kind in a file, in alphabetical order.
    pub(super) fn names_of(&self, file: usize, kind: Kind) -> Vec<String> {
        let names = self.files[file].names.keys();
        let fitting = names.filter(|n| self.item(file, n).is_some_and(|i| i.kind.kind() == kind));
        let mut names: Vec<String> = fitting.cloned().collect();
        names.sort();
        names
    }

    /// The item of a kind that a name means, or an error with what there is.
    pub(super) fn find_item(&mut self, file: usize, name: &Name, wanted: Kind) -> Option<ItemRef<'a>> {
        let item = self.item(file, &name.text);
        let is = item.map(|i| i.kind.kind());
        if let Some(means) = item.and_then(|item| item.name(self)) {
            self.note(name.span, means);
        }
        if is == Some(wanted) {
            return item;
        }
        let known = &self.names_of(file, wanted);
        match is {
            Some(is) => self.error(ItemError::OtherKind { name, is, wanted, known }),
            None if self.is_unknown_item(file, &name.text) => {}
            None => {
                let modules = library_modules(wanted.keyword(), &name.text);
                self.error(ItemError::Unknown { name, wanted, known, modules: &modules });
            }
        }
        None
    }

    /// Could a name of a file mean something that could not be read (which has been said)?
    pub(super) fn is_unknown_item(&self, file: usize, name: &str) -> bool {
        let file = &self.files[file];
        let broken_use = |n: &Name| {
            let text = &self.sources.file(n.span.file).text;
            text.get(..n.span.start as usize).is_some_and(|t| t.trim_end().ends_with("use"))
        };
        file.unknown.contains(name) || file.ast.broken.iter().any(|n| n.text == name || broken_use(n))
    }

    /// Are there items in the main file that could not be read (which has been said)?
    pub(super) fn has_broken_items(&self) -> bool {
        !self.files[0].ast.broken.is_empty()
    }

    /// The pools of all compartments of all files: name and unit as written.
    pub(super) fn pools(&self) -> Vec<(&'a str, Option<&'a str>)> {
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

    /// Says that a name is reserved, and gives back whether it is free.
    pub(super) fn check_reserved(&mut self, name: &Name) -> bool {
        let function = builtins::function(&name.text).is_some();
        let reserved = function || builtins::RESERVED.contains(&name.text.as_str());
        if reserved {
            self.error(NameError::Reserved { name, function });
        }
        !reserved
    }

    /// Says that a name is one of these, which mean something where it stands, and gives back whether it is free.
    pub(super) fn check_not(&mut self, taken: &[&str], name: &Name) -> bool {
        let is_free = !taken.contains(&name.text.as_str());
        if !is_free {
            self.error(NameError::Reserved { name, function: false });
        }
        is_free
    }

    /// Says that a name is defined twice.
    pub(super) fn duplicate(&mut self, name: &Name, first: Span) {
        self.error(NameError::Twice { name, first: Some(first) });
    }

    /// The constant of a name, where it is defined.
    pub(super) fn constant_item(&self, file: usize, name: &str) -> Option<&'a ast::Const> {
        match self.item(file, name)?.kind {
            ItemKind::Const(c) => Some(c),
            _ => None,
        }
    }

    /// The value of a constant.
    pub(super) fn constant(&mut self, item: ItemRef<'a>, user: &Name) -> Option<Expr> {
        let key = (item.file, item.index);
        if let Some(known) = self.constants.get(&key) {
            return known.clone();
        }
        let ItemKind::Const(constant) = item.kind else { return None };
        if let Some(at) = self.constant_stack.iter().position(|k| *k == key) {
            let circle = self.constant_stack[at..].iter();
            let names = circle.filter_map(|&(file, i)| super::imports::item_name(&self.files[file].ast.items[i]));
            let chain: Vec<(String, Span)> = names.map(|n| (n.text.clone(), n.span)).collect();
            self.cycle("the constant ", &chain, user.span, "write its value as a number");
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
    pub(super) fn cycle(&mut self, what: &'static str, chain: &[(String, Span)], user: Span, help: &'static str) {
        if let Some((first, others)) = chain.split_first() {
            self.error(NameError::Cycle { what, first, others, user, help });
        }
    }

    /// Rejects expressions that became too high when functions and constants were put in.
    pub(super) fn not_too_high(&mut self, x: Expr, span: Span) -> Option<Expr> {
        if x.height() <= MAX_HEIGHT {
            return Some(x);
        }
        self.error(LimitError::High { span, most: MAX_HEIGHT });
        None
    }
}

/// The modules of the standard library that define something.
pub(super) fn library_modules(keyword: &str, name: &str) -> Vec<String> {
    let defines = format!("{keyword} {name}");
    let is_it = |line: &str| line.strip_prefix(&defines).is_some_and(|rest| rest.starts_with([' ', '(', ':']));
    let has = |module: &String| crate::stdlib::source(module).is_some_and(|text| text.lines().any(is_it));
    crate::stdlib::modules().into_iter().filter(has).collect()
}
