//! Probes: where their contacts are, and which cells they hear. Places and directions in space.
//!
//! In come the probes of a network; out go [`Probe`]s, all places in cm.
//! Never true here: a cell is heard of which a section has no place.

use super::Probe;
use super::error::ProbeError;
use super::expr::constant_of;
use super::keys::Block;
use super::lower::Lowerer;
use super::network::NetworkDraft;
use super::place::flatten;
use super::scope::{Scope, ScopeKind};
use super::{Domain, Expr};
use crate::morphology::space::Sources;
use crate::source::Span;
use crate::syntax::ast::{self, ExprKind, ProbeMember};
use crate::units::Dim;

/// The most contacts of a row.
const MOST: usize = 10_000;

/// How well a medium conducts of which nothing is said, in mS/cm: 0.3 S/m, as in grey matter (Goto et al., J Neurophysiol 104:3388, 2010).
const SIGMA: f64 = 3.0;

impl<'a> Lowerer<'a> {
    /// Lowers a probe.
    pub(super) fn probe(&mut self, draft: &mut NetworkDraft<'a>, p: &'a ast::Probe) {
        let before = self.diagnostics.count();
        self.check_reserved(&p.name);
        let populations = draft.populations.iter().map(|other| (&other.name, other.span));
        let first = populations.chain(draft.probes.iter().map(|other| (&other.name, other.span)));
        let first = first.chain(draft.scope.get(&p.name.text).map(|id| {
            let entry = draft.scope.entry(id);
            (&p.name.text, entry.span)
        }));
        if let Some((_, first)) = first.into_iter().find(|(name, _)| **name == p.name.text) {
            self.duplicate(&p.name, first);
        }
        let of = self.heard(draft, p);
        let (mut contacts, mut keys): (Vec<[f64; 3]>, Vec<&'a ast::Let>) = (Vec::new(), Vec::new());
        for member in &p.members {
            match member {
                ProbeMember::Contact(point) => contacts.extend(self.point(point, Dim::LENGTH)),
                ProbeMember::Contacts { ends, count } => contacts.extend(self.row(ends, count)),
                ProbeMember::Key(key) => match keys.iter().find(|first| first.name.text == key.name.text) {
                    Some(first) => self.duplicate_key(&key.name, first.name.span),
                    None if !matches!(key.name.text.as_str(), "sigma" | "source") => {
                        self.unknown_key(&key.name, Block::Probe);
                    }
                    None => keys.push(key),
                },
            }
        }
        let key = |name: &str| keys.iter().find(|key| key.name.text == name).map(|key| &key.value);
        let sigma = match key("sigma") {
            None => Some(Expr::number(SIGMA, Dim::CONDUCTIVITY, p.name.span)),
            Some(e) => self.expr_of(&mut draft.scope, "", e, Dim::CONDUCTIVITY, "the conductivity of a medium"),
        };
        if let Some(sigma) = &sigma {
            let what = format!("sigma` of `{}", p.name.text);
            self.demand(what, sigma.clone(), Domain::AboveZero, "a medium conducts");
            draft.keep_demands(&mut self.demands);
        }
        let sources = match key("source") {
            None => Some(Sources::Lines),
            Some(e) => self.sources(e),
        };
        let wrong = self.diagnostics.since(before).iter().any(crate::diag::Diagnostic::is_error);
        if contacts.is_empty() && !wrong {
            self.error(ProbeError::NoContact { probe: &p.name });
        }
        let name = p.name.text.clone();
        match (sigma, sources) {
            // What it hears may have been said to be wrong before.
            (Some(sigma), Some(sources)) if !wrong && !contacts.is_empty() && !of.is_empty() => {
                draft.probes.push(Probe { name, of, contacts, sigma, sources, span: p.name.span });
            }
            _ => {
                draft.whole = false;
                draft.scope.poisoned.insert(name);
            }
        }
    }

    /// The populations that a probe hears.
    fn heard(&mut self, draft: &mut NetworkDraft<'a>, p: &'a ast::Probe) -> Vec<usize> {
        let mut heard: Vec<(usize, Span)> = Vec::new();
        for flat in flatten(&p.of) {
            let Some(place) = self.place(&mut draft.scope, &draft.populations, &flat) else { continue };
            let population = &draft.populations[place.population];
            let (name, span) = (&population.name, flat.span);
            let definition = self.lowered_cell(population.cell);
            if place.cells.is_some() || !place.rest.is_empty() {
                self.error(ProbeError::Part { population: name, span });
                continue;
            }
            if let Some((_, first)) = heard.iter().find(|(other, _)| *other == place.population) {
                self.error(ProbeError::HeardTwice { population: name, again: span, first: *first });
                continue;
            }
            heard.push((place.population, span));
            let cell = &definition.item;
            match &cell.morphology {
                // Of what is no cell nothing is known.
                _ if definition.is_unknown(&cell.name) => {}
                None => self.error(ProbeError::NoSections { population: name, cell: &cell.name, span }),
                Some(morphology) => {
                    let nowhere = morphology.sections.iter().find(|section| section.points.is_empty());
                    if let Some(section) = nowhere {
                        let (cell, section, here) = (&cell.name, &section.name, cell.span);
                        self.error(ProbeError::NoPlace { cell, section, here, span });
                    }
                }
            }
        }
        heard.into_iter().map(|(population, _)| population).collect()
    }

    /// A row of contacts, both ends among them.
    fn row(&mut self, [from, to]: &'a [ast::Point; 2], count: &ast::Name) -> Vec<[f64; 3]> {
        let ends = (self.point(from, Dim::LENGTH), self.point(to, Dim::LENGTH));
        let count = match count.text.parse::<usize>() {
            Ok(n) if (2..=MOST).contains(&n) => n,
            Ok(_) | Err(_) => {
                self.error(ProbeError::Count { span: count.span, most: MOST });
                return Vec::new();
            }
        };
        let (Some(a), Some(b)) = ends else { return Vec::new() };
        if a == b {
            self.error(ProbeError::OnePlace { span: from.span.to(to.span) });
            return Vec::new();
        }
        let last = (count - 1) as f64;
        // Either end is what was written.
        let at = |k: usize| [0, 1, 2].map(|axis| (a[axis] * (last - k as f64) + b[axis] * k as f64) / last);
        (0..count).map(at).collect()
    }

    /// A place (with the dimension of a length) or a direction (without one).
    pub(super) fn point(&mut self, point: &'a ast::Point, dim: Dim) -> Option<[f64; 3]> {
        let mut axes = [None; 3];
        for (axis, e) in axes.iter_mut().zip(&point.axes) {
            let mut scope = Scope::new(ScopeKind::Constant, 0);
            scope.file = self.files.iter().position(|f| f.id == e.span.file).unwrap_or(0);
            let what = if dim == Dim::LENGTH { "a place in space" } else { "a direction" };
            let Some(x) = self.expr_of(&mut scope, "", e, dim, what) else { continue };
            *axis = constant_of(&x).filter(|x| x.is_finite());
            if axis.is_none() {
                self.error(ProbeError::NotConstant { span: e.span });
            }
        }
        let [Some(x), Some(y), Some(z)] = axes else { return None };
        Some([x, y, z])
    }

    fn sources(&mut self, e: &ast::Expr) -> Option<Sources> {
        let name = match &e.kind {
            ExprKind::Path(path) => super::names::join(path),
            _ => self.text(e.span).to_string(),
        };
        let known = Sources::ALL.iter().find(|(other, _)| *other == name);
        if known.is_none() {
            self.error(ProbeError::Source { span: e.span });
        }
        known.map(|(_, sources)| *sources)
    }
}
