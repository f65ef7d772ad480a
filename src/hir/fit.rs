//! The fit block: which parameters are free, and what a run is to come near to.
//!
//! In comes the block; out goes a [`Fit`], all of its numbers checked. Names of parameters, records and populations are kept as they are written: what they
//! stand for is known when the settings of a run are.
//! Never true here: a name of the network is resolved, or a file is opened.

use super::error::FitError;
use super::expr::constant_of;
use super::keys::Block;
use super::lower::Lowerer;
use super::scope::{Scope, ScopeKind};
use super::sweep::{Swept, swept};
use super::{Expr, ExprKind, Ty};
use crate::data::DataFile;
use crate::source::Span;
use crate::syntax::ast::{self, FitMember};
use crate::units::Dim;
use std::collections::HashMap;
use std::path::PathBuf;

/// Which values of parameters are looked for, and how.
#[derive(Debug, Clone, PartialEq)]
pub struct Fit {
    /// The parameters that are free, each with a range.
    pub free: Vec<Swept>,
    /// What a run is to come near to.
    pub targets: Vec<FitTarget>,
    /// The directory of the model file, to which files of traces are relative.
    pub directory: PathBuf,
    /// How the best values are looked for.
    pub search: Option<FitSearch>,
    /// From how many places.
    pub starts: Option<u32>,
    /// Steps of the search from each place, at most.
    pub iterations: Option<u64>,
    /// The word `fit`.
    pub span: Span,
}

/// Something that a run is to come near to.
#[derive(Debug, Clone, PartialEq)]
pub struct FitTarget {
    /// The record, or the population whose spikes are meant.
    pub of: String,
    /// What of it.
    pub goal: Goal,
    /// Where it stands, if in a file.
    pub span: Option<Span>,
}

/// What a record or a population is to come near to.
#[derive(Debug, Clone, PartialEq)]
pub enum Goal {
    /// The trace in a file.
    Trace {
        /// Its name.
        file: String,
        /// The column with the values, if the file has several.
        column: Option<String>,
    },
    /// A number that is read out of each cell.
    Number {
        /// Which.
        feature: Feature,
        /// From when on and until when (ms) it is read out; infinite where it is until the end.
        window: (f64, f64),
        /// What it should be.
        value: Wanted,
        /// Being off by so much counts 1; a tenth of the greatest number if absent.
        within: Option<f64>,
        /// The dimension of both.
        dim: Dim,
    },
}

/// What a number that is read out of each cell should be, in canonical units.
#[derive(Debug, Clone, PartialEq)]
pub enum Wanted {
    /// The same for all cells.
    Same(f64),
    /// A number for each cell, in a data file.
    Each {
        /// Which.
        file: DataFile,
        /// How much its 1 is.
        unit: f64,
    },
}

/// A number that is read out of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Feature {
    /// How often a cell spikes.
    SpikeCount,
    /// How often it does in a time.
    Rate,
    /// When it first does.
    FirstSpike,
    /// The mean time between its spikes.
    Interval,
    /// The least value of a record.
    Least,
    /// The greatest.
    Greatest,
    /// The mean.
    Mean,
    /// The last.
    Last,
    /// How long a record stays above the middle between its least and its greatest value, each time.
    Width,
}

impl Feature {
    /// Every feature.
    pub const ALL: [Feature; 9] = [
        Feature::SpikeCount,
        Feature::Rate,
        Feature::FirstSpike,
        Feature::Interval,
        Feature::Least,
        Feature::Greatest,
        Feature::Mean,
        Feature::Last,
        Feature::Width,
    ];

    /// Its name in the language.
    pub fn name(self) -> &'static str {
        match self {
            Feature::SpikeCount => "spike_count",
            Feature::Rate => "rate",
            Feature::FirstSpike => "first_spike",
            Feature::Interval => "interval",
            Feature::Least => "min",
            Feature::Greatest => "max",
            Feature::Mean => "mean",
            Feature::Last => "last",
            Feature::Width => "width",
        }
    }

    /// Is it read out of spikes?
    pub fn of_spikes(self) -> bool {
        match self {
            Feature::SpikeCount | Feature::Rate | Feature::FirstSpike | Feature::Interval => true,
            Feature::Least | Feature::Greatest | Feature::Mean | Feature::Last | Feature::Width => false,
        }
    }

    /// Its dimension; that of the record if absent.
    pub fn dim(self) -> Option<Dim> {
        match self {
            Feature::SpikeCount => Some(Dim::ONE),
            Feature::Rate => Some(Dim::RATE),
            Feature::FirstSpike | Feature::Interval | Feature::Width => Some(Dim::TIME),
            Feature::Least | Feature::Greatest | Feature::Mean | Feature::Last => None,
        }
    }
}

/// How the best values are looked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FitSearch {
    /// With gradients: L-BFGS with a line search of Moré and Thuente.
    Lbfgs,
    /// Without gradients: the simplex of Nelder and Mead.
    NelderMead,
}

impl FitSearch {
    /// Every search.
    pub const ALL: [FitSearch; 2] = [FitSearch::Lbfgs, FitSearch::NelderMead];

    /// Its name in the language.
    pub fn name(self) -> &'static str {
        match self {
            FitSearch::Lbfgs => "lbfgs",
            FitSearch::NelderMead => "nelder_mead",
        }
    }
}

/// Is it `file(...)`?
fn is_file(e: &ast::Expr) -> bool {
    matches!(&e.kind, ast::ExprKind::Call(function, _) if function.text == "file")
}

impl<'a> Lowerer<'a> {
    /// Lowers the fit block.
    pub(super) fn fit(&mut self, fit: &'a ast::Fit) -> Option<Fit> {
        let before = self.diagnostics.count();
        let word = Span { end: fit.span.start + 3, ..fit.span };
        let mut keys: HashMap<&str, &ast::Let> = HashMap::new();
        let mut free: Vec<Swept> = Vec::new();
        let mut targets = Vec::new();
        for member in &fit.members {
            match member {
                FitMember::Key(l) if !Block::Fit.has_key(&l.name.text) => {
                    self.unknown_key(&l.name, Block::Fit);
                }
                FitMember::Key(l) => {
                    if let Some(first) = keys.insert(&l.name.text, l) {
                        self.duplicate_key(&l.name, first.name.span);
                    }
                }
                FitMember::Free(all) => free.extend(all.iter().map(swept)),
                FitMember::Target { feature, of, to, within, window, span } => {
                    targets.extend(self.fit_target(feature.as_ref(), &of.1, to, within.as_ref(), window, *span));
                }
            }
        }
        let has = |wanted: fn(&FitMember) -> bool| fit.members.iter().any(wanted);
        if !has(|m| matches!(m, FitMember::Free(_))) {
            self.error(FitError::NothingFree { span: word });
        }
        // One mistake at a place is enough.
        if has(|m| matches!(m, FitMember::Free(_))) && !has(|m| matches!(m, FitMember::Target { .. })) {
            self.error(FitError::NoTarget { span: word });
        }
        let search = keys.get("search").and_then(|l| self.fit_search(&l.value));
        let starts = keys.get("starts").and_then(|l| self.fit_count(&l.value, "starts", 10_000.0));
        let iterations = keys.get("iterations").and_then(|l| self.fit_count(&l.value, "iterations", 1e9));
        let feature = |target: &&FitTarget| matches!(target.goal, Goal::Number { .. });
        if search == Some(FitSearch::Lbfgs)
            && let (Some(target), Some(l)) = (targets.iter().find(feature), keys.get("search"))
        {
            self.error(FitError::NoGradient { search: l.value.span, target: target.span.unwrap_or(word) });
        }
        if self.diagnostics.since(before).iter().any(crate::diag::Diagnostic::is_error) {
            return None;
        }
        Some(Fit {
            free,
            targets,
            directory: self.sources.file(fit.span.file).directory.clone(),
            search,
            starts: starts.map(|x| x as u32),
            iterations: iterations.map(|x| x as u64),
            span: word,
        })
    }

    fn fit_target(
        &mut self,
        feature: Option<&'a ast::Name>,
        of: &'a ast::Name,
        to: &'a ast::Expr,
        within: Option<&'a ast::Expr>,
        window: &'a [Option<ast::Expr>; 2],
        span: Span,
    ) -> Option<FitTarget> {
        let target = |goal| Some(FitTarget { of: of.text.clone(), goal, span: Some(span) });
        let Some(name) = feature else {
            let (file, column) = match &to.kind {
                ast::ExprKind::Str(file) => (file.clone(), None),
                _ if is_file(to) => {
                    // Its names and kinds are checked as those of any file.
                    let mut scope = Scope::new(ScopeKind::PerCell, 0);
                    let ExprKind::File(data) = self.expr(&mut scope, "", to)?.kind else { return None };
                    let file = self.take_file(data)?;
                    (file.name, file.column)
                }
                _ => {
                    self.error(FitError::NotAFile { of: &of.text, span: to.span });
                    return None;
                }
            };
            if let Some(within) = within {
                self.error(FitError::TraceWithin { span: within.span });
                return None;
            }
            if let Some(e) = window.iter().flatten().next() {
                self.error(FitError::TraceWindow { of: &of.text, span: e.span });
                return None;
            }
            return target(Goal::Trace { file, column });
        };
        let Some(feature) = Feature::ALL.into_iter().find(|f| f.name() == name.text) else {
            let known = Feature::ALL.map(Feature::name);
            self.error(FitError::UnknownFeature { name: &name.text, known: &known, span: name.span });
            return None;
        };
        let (value, dim) = self.fit_wanted(to, feature.dim())?;
        let within = match (within, &value) {
            (Some(e), _) => {
                let (x, _) = self.fit_quantity(e, Some(dim))?;
                if x <= 0.0 {
                    self.error(FitError::Within { span: e.span });
                    return None;
                }
                Some(x)
            }
            (None, Wanted::Same(x)) if *x == 0.0 => {
                self.error(FitError::NoWithin { feature: &name.text, of: &of.text, span: to.span });
                return None;
            }
            (None, Wanted::Same(_) | Wanted::Each { .. }) => None,
        };
        let window = self.fit_window(window)?;
        target(Goal::Number { feature, window, value, within, dim })
    }

    /// From when on and until when (ms) something is read out; all of the run if that is not said.
    fn fit_window(&mut self, [from, to]: &'a [Option<ast::Expr>; 2]) -> Option<(f64, f64)> {
        let mut time = |e: &'a Option<ast::Expr>, absent: f64| match e {
            Some(e) => self.fit_quantity(e, Some(Dim::TIME)).map(|(ms, _)| ms),
            None => Some(absent),
        };
        let (first, last) = (time(from, 0.0), time(to, f64::INFINITY));
        let (first, last) = (first?, last?);
        let span = from.iter().chain(to).map(|e| e.span).reduce(|a, b| a.to(b));
        if let Some(span) = span.filter(|_| !(0.0 <= first && first < last)) {
            self.error(FitError::Window { first, last, span });
            return None;
        }
        Some((first, last))
    }

    /// What a number should be: `40 Hz`, or for each cell `file("fi.csv") * 1 Hz`.
    fn fit_wanted(&mut self, e: &'a ast::Expr, wanted: Option<Dim>) -> Option<(Wanted, Dim)> {
        let (call, unit) = match &e.kind {
            ast::ExprKind::Binary(ast::BinaryOp::Mul, a, b) if is_file(a) => (&**a, Some(&**b)),
            ast::ExprKind::Binary(ast::BinaryOp::Mul, a, b) if is_file(b) => (&**b, Some(&**a)),
            _ if is_file(e) => (e, None),
            _ => return self.fit_quantity(e, wanted).map(|(x, dim)| (Wanted::Same(x), dim)),
        };
        let (unit, dim) = match unit {
            Some(unit) => self.fit_quantity(unit, wanted)?,
            None => (1.0, Dim::ONE),
        };
        if let Some(wanted) = wanted.filter(|wanted| *wanted != dim) {
            self.error(FitError::FileDimension { got: dim, wanted, span: e.span });
            return None;
        }
        // Its names and kinds are checked as those of any file.
        let mut scope = Scope::new(ScopeKind::PerCell, 0);
        let ExprKind::File(data) = self.expr(&mut scope, "", call)?.kind else { return None };
        Some((Wanted::Each { file: self.take_file(data)?, unit }, dim))
    }

    /// A number that is known before the run, and its dimension.
    fn fit_quantity(&mut self, e: &'a ast::Expr, wanted: Option<Dim>) -> Option<(f64, Dim)> {
        let mut scope = Scope::new(ScopeKind::Constant, 0);
        let value: Expr = self.expr(&mut scope, "", e)?;
        let (Some(x), Ty::Real(dim)) = (constant_of(&value).filter(|x| x.is_finite()), value.ty) else {
            self.error(FitError::NotConstant { span: e.span });
            return None;
        };
        if let Some(wanted) = wanted.filter(|wanted| *wanted != dim) {
            self.error(FitError::Dimension { got: dim, wanted, span: e.span });
            return None;
        }
        Some((x, dim))
    }

    fn fit_count(&mut self, e: &'a ast::Expr, what: &'static str, most: f64) -> Option<f64> {
        let (x, _) = self.fit_quantity(e, Some(Dim::ONE))?;
        if x >= 1.0 && x.fract() == 0.0 && x <= most {
            return Some(x);
        }
        self.error(FitError::Count { what, value: x, most, span: e.span });
        None
    }

    fn fit_search(&mut self, e: &ast::Expr) -> Option<FitSearch> {
        let name = match &e.kind {
            ast::ExprKind::Path(path) => super::names::join(path),
            _ => String::new(),
        };
        let found = FitSearch::ALL.into_iter().find(|search| search.name() == name);
        if found.is_none() {
            let known = FitSearch::ALL.map(FitSearch::name);
            self.error(FitError::UnknownSearch { name: &name, known: &known, span: e.span });
        }
        found
    }
}
