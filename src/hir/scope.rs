//! Symbols of one definition while it is being lowered.

use super::{Expr, PortKind, StateKind, SymbolId, Ty};
use crate::source::Span;
use crate::syntax::ast;
use crate::units::{Dim, DisplayUnit};
use std::collections::{HashMap, HashSet};

/// What kind of definition a scope belongs to; decides which special names mean something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ScopeKind {
    /// Constants, and function bodies where constants call them: no symbols at all.
    Constant,
    /// Other function bodies: no symbols, but the temperature.
    Function,
    /// The same where draws may stand: what is called for a value per cell or edge.
    Drawing,
    /// Function bodies by themselves: who calls them is not known.
    Body,
    /// A channel.
    Channel,
    /// A cell.
    Cell,
    /// The condition of a cell's spikes.
    Spiking,
    /// Parameters of a network and keys of a run.
    Network,
    /// A value per cell.
    PerCell,
    /// A value per edge, of two cells whose distance has this dimension.
    PerEdge(Dim),
    /// An input: a value per cell and time.
    Input,
}

/// What an entry will become.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    Param,
    Let,
    State(StateKind),
    Port(PortKind),
    Voltage,
    Pool,
}

/// How far an entry is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Status {
    New,
    Busy,
    Done,
}

/// A symbol in the making.
#[derive(Debug, Clone)]
pub(super) struct Entry<'a> {
    pub name: String,
    pub span: Span,
    pub docs: Vec<String>,
    pub role: Role,
    /// The expression still to be lowered (default, value or initial value) and the prefix its names are looked up with.
    pub source: Option<(&'a ast::Expr, String)>,
    /// The dimension it must have, and why.
    pub want: Option<(Dim, &'static str)>,
    pub unit: Option<DisplayUnit>,
    pub status: Status,
    /// `None` when done: the definition is wrong, and that has been said.
    pub ty: Option<Ty>,
    /// The lowered default, value or initial value.
    pub value: Option<Expr>,
    /// The lowered derivative.
    pub rate: Option<Expr>,
    /// Of a state of a kinetic scheme the first one of that.
    pub scheme: Option<SymbolId>,
    pub used: bool,
    /// Is it written in the file (and not made by the compiler)?
    pub written: bool,
    /// What a value that the compiler has made is made of.
    pub made_of: Vec<SymbolId>,
}

impl<'a> Entry<'a> {
    /// An entry whose expression is lowered later.
    pub fn pending(name: String, span: Span, role: Role, source: &'a ast::Expr, prefix: &str) -> Entry<'a> {
        Entry {
            name,
            span,
            docs: Vec::new(),
            role,
            source: Some((source, prefix.to_string())),
            want: None,
            unit: None,
            status: Status::New,
            ty: None,
            value: None,
            rate: None,
            scheme: None,
            used: false,
            written: true,
            made_of: Vec::new(),
        }
    }

    /// An entry that is complete.
    pub fn ready(name: String, span: Span, role: Role, ty: Option<Ty>, value: Option<Expr>) -> Entry<'a> {
        Entry {
            name,
            span,
            docs: Vec::new(),
            role,
            source: None,
            want: None,
            unit: None,
            status: Status::Done,
            ty,
            value,
            rate: None,
            scheme: None,
            used: false,
            written: false,
            made_of: Vec::new(),
        }
    }

    /// An entry whose value is made of others, which are lowered first.
    pub fn made(name: String, span: Span, role: Role, value: Expr, made_of: Vec<SymbolId>) -> Entry<'a> {
        Entry { status: Status::New, made_of, ..Entry::ready(name, span, role, Some(value.ty), Some(value)) }
    }

    /// Demands a dimension.
    pub fn want(mut self, dim: Dim, why: &'static str) -> Entry<'a> {
        self.want = Some((dim, why));
        self
    }

    /// The last part of its name.
    pub fn short_name(&self) -> &str {
        self.name.rsplit('.').next().unwrap_or(&self.name)
    }

    /// Records the documentation.
    pub fn docs(mut self, docs: &[String]) -> Entry<'a> {
        self.docs = docs.to_vec();
        self
    }
}

/// The symbols of one definition.
#[derive(Debug, Clone)]
pub(super) struct Scope<'a> {
    pub kind: ScopeKind,
    /// The file whose items its expressions can name.
    pub file: usize,
    /// Is it of a cell with sections? What a region has is read in it alone then.
    pub has_regions: bool,
    pub entries: Vec<Entry<'a>>,
    names: HashMap<String, usize>,
    /// Names that exist but are not values (compartments, instances), with what they are.
    pub not_values: HashMap<String, &'static str>,
    /// Where these are defined.
    pub places: HashMap<String, Span>,
    /// Names that nothing is known about because of a mistake that has been said, and all names below them.
    pub poisoned: HashSet<String>,
}

impl<'a> Scope<'a> {
    pub fn new(kind: ScopeKind, file: usize) -> Scope<'a> {
        Scope {
            kind,
            file,
            has_regions: false,
            entries: Vec::new(),
            names: HashMap::new(),
            not_values: HashMap::new(),
            places: HashMap::new(),
            poisoned: HashSet::new(),
        }
    }

    /// Adds an entry; gives back the place of an earlier one of the same name instead if there is one.
    pub fn add(&mut self, entry: Entry<'a>) -> Result<SymbolId, Span> {
        if let Some(&at) = self.names.get(&entry.name) {
            return Err(self.entries[at].span);
        }
        let id = self.entries.len();
        self.names.insert(entry.name.clone(), id);
        self.entries.push(entry);
        Ok(SymbolId(id as u32))
    }

    /// The entry of a full name.
    pub fn get(&self, name: &str) -> Option<SymbolId> {
        self.names.get(name).map(|&i| SymbolId(i as u32))
    }

    /// The entry that `name` means where names are prefixed by `prefix` (such as `soma.`). What a gate follows by, without saying so, hides no name
    /// that is written further out.
    pub fn lookup(&self, prefix: &str, name: &str) -> Option<SymbolId> {
        let found = || outwards(prefix).filter_map(|p| self.get(&format!("{p}{name}")));
        found().find(|&id| self.entry(id).made_of.is_empty()).or_else(|| found().next())
    }

    /// Is `name`, seen from `prefix`, or a name above it poisoned?
    pub fn is_poisoned(&self, prefix: &str, name: &str) -> bool {
        outwards(prefix).any(|p| below(&self.poisoned, &format!("{p}{name}")))
    }

    pub fn entry(&self, id: SymbolId) -> &Entry<'a> {
        &self.entries[id.0 as usize]
    }

    pub fn entry_mut(&mut self, id: SymbolId) -> &mut Entry<'a> {
        &mut self.entries[id.0 as usize]
    }

    pub fn ids(&self) -> impl Iterator<Item = SymbolId> + use<> {
        (0..self.entries.len() as u32).map(SymbolId)
    }
}

/// A prefix without its innermost segments: "soma.Ca.", "soma.", "".
pub(super) fn outwards(prefix: &str) -> impl Iterator<Item = &str> {
    std::iter::successors(Some(prefix), |p| {
        let trimmed = p.strip_suffix('.')?;
        Some(trimmed.rfind('.').map_or("", |at| &trimmed[..=at]))
    })
}

/// Is `name`, or a name above it, in a set?
pub(super) fn below(set: &HashSet<String>, name: &str) -> bool {
    let dots = name.match_indices('.').map(|(at, _)| &name[..at]);
    dots.chain([name]).any(|n| set.contains(n))
}
