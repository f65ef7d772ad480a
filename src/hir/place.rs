//! Places in a network: from a population to a quantity of its cells.
//!
//! In come paths; out go a population, its cells, and what of them is meant.
//! Never true here: a path with groups is one place.

use super::error::{BadTarget, Meant, MorphologyError, NetworkError, UnknownPopulation};
use super::lower::{Definition, Lowerer};
use super::scope::Scope;
use super::{Cell, Expr, Population, PortKind, Symbol, SymbolKind};
use crate::source::Span;
use crate::syntax::ast::{self, Name, Segment};
use crate::units::Dim;

/// One way through a path: names with what is selected behind them.
pub(super) struct FlatPath<'a> {
    pub names: Vec<&'a Name>,
    /// Each with the index of its name: cells, or in a cell with sections one of them.
    pub selections: Vec<(usize, &'a ast::Selection)>,
    /// The place in the cell, if one is named.
    pub at: Option<&'a ast::Located>,
    /// A second one.
    pub again: Option<&'a ast::Located>,
    pub span: Span,
}

/// What a path leads to: population (index), cells, rest of the names.
pub(super) struct Place<'a> {
    pub population: usize,
    pub cells: Option<(Expr, Expr)>,
    pub rest: String,
    pub rest_span: Span,
    pub names: Vec<&'a Name>,
}

/// What a path should lead to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wanted {
    /// What `init` sets.
    State,
    /// What `param` sets.
    Parameter,
    /// What can be recorded.
    Quantity,
}

impl Wanted {
    /// What it is called in messages.
    pub fn name(self) -> &'static str {
        match self {
            Wanted::State => "state",
            Wanted::Parameter => "parameter",
            Wanted::Quantity => "quantity",
        }
    }

    /// Is a symbol of a cell one?
    pub fn fits(self, symbol: &Symbol) -> bool {
        match symbol.kind {
            SymbolKind::State { .. } => self != Wanted::Parameter,
            SymbolKind::Param(_) => self != Wanted::State,
            SymbolKind::Let(_) | SymbolKind::Port(PortKind::Summed) => self == Wanted::Quantity,
            SymbolKind::Port(_) | SymbolKind::Voltage | SymbolKind::Pool => false,
        }
    }
}

/// All ways through a path with groups.
pub(super) fn flatten(path: &ast::Path) -> Vec<FlatPath<'_>> {
    let mut out = vec![FlatPath { names: Vec::new(), selections: Vec::new(), at: None, again: None, span: path.span }];
    for segment in &path.segments {
        match segment {
            Segment::Name(name, selection) => {
                for flat in &mut out {
                    flat.selections.extend(selection.iter().map(|selection| (flat.names.len(), selection)));
                    flat.names.push(name);
                }
            }
            Segment::Located(located) => out.iter_mut().for_each(|flat| match flat.at {
                None => flat.at = Some(located),
                Some(_) => flat.again = flat.again.or(Some(located)),
            }),
            Segment::Group(paths, _) => {
                let tails: Vec<_> = paths.iter().flat_map(flatten).collect();
                out = out
                    .iter()
                    .flat_map(|head| {
                        tails.iter().map(|tail| FlatPath {
                            names: head.names.iter().chain(&tail.names).copied().collect(),
                            selections: head
                                .selections
                                .iter()
                                .copied()
                                .chain(tail.selections.iter().map(|(name, s)| (head.names.len() + name, *s)))
                                .collect(),
                            at: head.at.or(tail.at),
                            again: head.again.or(tail.again).or(head.at.and(tail.at)),
                            span: tail.names.first().map_or(path.span, |n| n.span.to(tail.span)),
                        })
                    })
                    .collect();
            }
        }
    }
    out
}

/// Names with dots between them.
pub(super) fn dotted<'a>(names: impl Iterator<Item = &'a Name>) -> String {
    names.map(|name| name.text.as_str()).collect::<Vec<_>>().join(".")
}

/// What a path to edges names: the populations that send and receive, and what stands behind them.
pub(super) struct EndsOfEdges {
    pub from: usize,
    pub to: usize,
    pub rest: String,
}

impl<'a> Lowerer<'a> {
    /// The two populations that a path begins with, if the second is no part of the cells of the first.
    pub(super) fn ends_of_edges(&self, populations: &[Population], flat: &FlatPath<'a>) -> Option<EndsOfEdges> {
        let [from, to, behind @ ..] = &flat.names[..] else { return None };
        let number = |name: &Name| populations.iter().position(|p| p.name == name.text);
        let (from, name, to) = (number(from)?, to.text.as_str(), number(to)?);
        let definition = self.lowered_cell(populations[from].cell);
        let cell = &definition.item;
        let is_it = |other: &str| other.split(['.', '[']).next() == Some(name);
        let sections = cell.morphology.iter().flat_map(|m| m.tree.sections.iter().map(|section| section.name.as_str()));
        let mut parts = cell.symbols.iter().map(|s| s.name.as_str());
        let is_part = definition.is_unknown(name)
            || parts.any(is_it)
            || cell.compartments.iter().any(|c| c.name == name)
            || sections.into_iter().any(is_it);
        let rest = dotted(behind.iter().copied());
        (!behind.is_empty() && !is_part).then_some(EndsOfEdges { from, to, rest })
    }

    /// Population and cells of a path that leads to cells as a whole, or to quantities of them.
    pub(super) fn place(
        &mut self,
        scope: &mut Scope<'a>,
        populations: &[Population],
        flat: &FlatPath<'a>,
    ) -> Option<Place<'a>> {
        if let Some(located) = flat.at {
            self.error(MorphologyError::NoPlaceHere { span: located.span });
            return None;
        }
        self.place_within(scope, populations, flat)
    }

    /// Population and cells of a path that may lead to a place in cells.
    pub(super) fn place_within(
        &mut self,
        scope: &mut Scope<'a>,
        populations: &[Population],
        flat: &FlatPath<'a>,
    ) -> Option<Place<'a>> {
        self.one_place(flat)?;
        let (first, behind) = match (flat.names.split_first(), flat.at) {
            (Some((first, behind)), None) => (first, behind),
            (Some((first, behind)), Some(located)) if first.span.start < located.span.start => (first, behind),
            (_, Some(located)) => {
                let sections = |p: &&Population| self.lowered_cell(p.cell).item.morphology.is_some();
                let population = populations.iter().find(sections).map(|p| p.name.as_str());
                let place = self.text(located.span);
                self.error(MorphologyError::PlaceOfNoCells { place, population, span: located.span });
                return None;
            }
            (None, None) => return None,
        };
        let Some(population) = populations.iter().position(|p| p.name == first.text) else {
            if !scope.is_poisoned("", &first.text) {
                self.unknown_population(populations, first, behind);
            }
            return None;
        };
        let of = &populations[population];
        self.note_place(flat, of.span, &self.lowered_cell(of.cell).item);
        // In a cell with sections, `dend[3]` is one of them.
        let sections = self.lowered_cell(populations[population].cell).item.morphology.is_some();
        let is_cells = |at: &usize| *at == 0 || !sections;
        let mut chosen = flat.selections.iter().filter(|(at, _)| is_cells(at));
        let cells = match (chosen.next(), chosen.next()) {
            (None, _) => None,
            (Some((_, selection)), None) => Some(self.selected_cells(scope, selection)?),
            (Some((_, first)), Some((_, again))) => {
                self.error(NetworkError::ChosenTwice { again: again.span, first: first.span });
                return None;
            }
        };
        let mut rest = String::new();
        for (at, name) in (1..).zip(behind) {
            let dot = if rest.is_empty() { "" } else { "." };
            rest.push_str(&format!("{dot}{}", name.text));
            if let Some((_, index)) = flat.selections.iter().find(|(of, _)| *of == at && !is_cells(of)) {
                rest.extend(self.text(index.span).split_whitespace());
            }
        }
        let rest_span = match (behind.first(), behind.last()) {
            // The names of a group do not stand behind those before it.
            (Some(a), Some(b)) if !self.text(a.span.to(b.span)).contains('{') => a.span.to(b.span),
            (Some(_), _) => flat.span,
            _ => first.span,
        };
        Some(Place { population, cells, rest, rest_span, names: flat.names.clone() })
    }

    /// Says that a path names two places in a cell, if it does.
    pub(super) fn one_place(&mut self, flat: &FlatPath<'a>) -> Option<()> {
        let (Some(first), Some(again)) = (flat.at, flat.again) else { return Some(()) };
        self.error(MorphologyError::PlacedTwice { again: again.span, first: first.span });
        None
    }

    fn unknown_population(&mut self, populations: &[Population], name: &Name, behind: &[&Name]) {
        let cell_of = |p: &Population| self.lowered_cell(p.cell);
        let of_cell = populations.iter().find(|p| cell_of(p).item.name == name.text);
        let has_compartment = |p: &&Population| cell_of(p).item.compartments.iter().any(|c| c.name == name.text);
        let has_receptor = |p: &&Population| p.receptors.iter().any(|receptor| receptor.name == name.text);
        let receptor = populations.iter().find(has_receptor).filter(|_| !behind.is_empty());
        let meant = match (of_cell, populations.iter().find(has_compartment), receptor) {
            (Some(p), ..) => Meant::CellOf(&p.name),
            (None, Some(p), _) => Meant::CompartmentOf(&p.name),
            (None, None, Some(p)) => Meant::ReceptorOf(&p.name),
            (None, None, None) => Meant::Unknown,
        };
        let known: Vec<&str> = populations.iter().map(|p| p.name.as_str()).collect();
        let rest = behind.iter().map(|n| format!(".{}", n.text)).collect();
        self.error(UnknownPopulation { name, rest, meant, known: &known });
    }

    /// The first cell of a selection, and one past the last.
    fn selected_cells(&mut self, scope: &mut Scope<'a>, s: &'a ast::Selection) -> Option<(Expr, Expr)> {
        let first = self.expr_of(scope, "", &s.first, Dim::ONE, "a cell's number")?;
        let end = match &s.end {
            Some(end) => self.expr_of(scope, "", end, Dim::ONE, "a cell's number")?,
            None => Expr::binary(ast::BinaryOp::Add, first.clone(), Expr::number(1.0, Dim::ONE, s.span)),
        };
        Some((first, end))
    }

    /// Says that a path does not lead to what is wanted, unless that follows from what has been said.
    pub(super) fn bad_target(&mut self, definition: &Definition<Cell>, place: &Place<'a>, wanted: Wanted) {
        if place.rest.is_empty() || !definition.is_unknown(&place.rest) {
            self.error(BadTarget { cell: &definition.item, place, wanted });
        }
    }
}
