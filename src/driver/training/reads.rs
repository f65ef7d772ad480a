//! What a loss reads of a network.

use super::super::gradient::ends;
use super::{Range, at};
use crate::diag::{Code, Diagnostic, nearest};
use crate::hir::{self, Aim, Loss, Readout, Train};
use crate::ode::places::{self, Written};
use crate::ode::{self, Kind, Model, StateId};
use crate::source::Span;
use crate::units::{self, Dim};

/// What a loss reads of a network.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Read {
    /// How often each cell of a population spikes.
    SpikeCount(String),
    /// Whether it spikes, after every step.
    Spikes(String),
    /// A state of the cells of a population after every step; where they have sections, of one of their compartments (`out.soma(0.5).v`).
    State(String),
}

/// What the parts of a loss read.
#[derive(Debug, Clone, PartialEq)]
pub struct Reads {
    /// Each once.
    pub each: Vec<(Read, Span)>,
    /// For the loss, and for each `keep` line: which of these.
    pub of: Vec<usize>,
    /// For each `keep` line: between which values (canonical) it costs nothing, and how far outside it costs 1.
    pub kept: Vec<(Range, f64)>,
    /// The loss, in the unit of its readout.
    pub loss: Loss,
    /// What one of that unit is in canonical units.
    pub unit: f64,
}

/// What the loss of a `train` block reads.
pub fn reads(model: &Model, train: &Train) -> Result<Reads, Vec<Diagnostic>> {
    let mut reads = Reads { each: Vec::new(), of: Vec::new(), kept: Vec::new(), loss: Loss::CrossEntropy, unit: 1.0 };
    let mut errors = Vec::new();
    let kept = train.keep.iter().map(|keep| (&keep.read, Some(keep)));
    for (hir::Read { readout: what, of, span, .. }, keep) in std::iter::once((&train.read, None)).chain(kept) {
        let name = of.clone();
        let is_population = model.populations.iter().any(|p| p.name == *of);
        let read = match what {
            Readout::SpikeCount => Read::SpikeCount(name),
            Readout::FirstSpike => Read::Spikes(name),
            Readout::EveryStep if is_population => Read::Spikes(name),
            Readout::EveryStep | Readout::Mean | Readout::Max | Readout::Last => Read::State(name),
        };
        match readout(model, &(read, *span)) {
            Ok(found) => {
                let read = found.full(model);
                match keep {
                    Some(keep) => match kept_within(model, keep, found) {
                        Ok(within) => reads.kept.push(within),
                        Err(wrong) => errors.push(wrong),
                    },
                    None => match loss(model, train, found) {
                        Ok(found) => (reads.loss, reads.unit) = found,
                        Err(wrong) => errors.extend(wrong),
                    },
                }
                let known = reads.each.iter().position(|(other, _)| *other == read);
                reads.of.push(known.unwrap_or(reads.each.len()));
                if known.is_none() {
                    reads.each.push((read, *span));
                }
            }
            Err(wrong) => errors.extend(wrong),
        }
    }
    if errors.is_empty() { Ok(reads) } else { Err(errors) }
}

/// The dimension of a readout.
fn dim(model: &Model, readout: Readout, read: Place) -> Dim {
    match read {
        Place::State(state, _) => model.state(state).dim,
        Place::Count(_) | Place::Spikes(_) if readout == Readout::FirstSpike => Dim::TIME,
        Place::Count(_) | Place::Spikes(_) => Dim::ONE,
    }
}

/// The loss, if what the readout shall be has its dimension, in its unit, and that in canonical units.
fn loss(model: &Model, train: &Train, read: Place) -> Result<(Loss, f64), Vec<Diagnostic>> {
    let unit = match read {
        Place::State(state, _) => units::scale(1.0, model.state(state).unit.exponent),
        Place::Count(_) | Place::Spikes(_) => 1.0,
    };
    let Loss::MeanSquare { correct, incorrect } = train.loss else { return Ok((Loss::CrossEntropy, unit)) };
    let (name, dim) = (&train.read.written, dim(model, train.read.readout, read));
    let wrong = |(key, aim): (&str, Aim)| {
        let (is, got) = (dim.describe(), aim.dim.describe());
        let message = format!("`{name}` is {is}, but `{key}` is {got}");
        let d = Diagnostic::new(Code::DimensionMismatch, aim.span, message, got);
        let unit = dim.display_unit().name;
        match aim.dim == Dim::ONE {
            true => d.help(format!("write the unit, for example `{key} = {} {unit}`", aim.value)),
            false => d,
        }
    };
    let aims = [("correct", correct), ("incorrect", incorrect)];
    let errors: Vec<Diagnostic> = aims.into_iter().filter(|(_, aim)| aim.dim != dim).map(wrong).collect();
    match errors.is_empty() {
        true => {
            let [correct, incorrect] = [correct, incorrect].map(|aim| aim.value / unit);
            Ok((Loss::MeanSquare { correct, incorrect }, unit))
        }
        false => Err(errors),
    }
}

/// Where a readout is kept, and how far outside it costs 1.
fn kept_within(model: &Model, keep: &hir::Keep, read: Place) -> Result<(Range, f64), Diagnostic> {
    let dim = dim(model, keep.read.readout, read);
    let name = &keep.read.written;
    let (low, high) = &keep.range;
    let [low, high] = ends((name, dim), (low, high), Some(keep.span))?;
    if low > high {
        let message = format!("`{name}` cannot lie between {} and {}", keep.range.0, keep.range.1);
        return Err(Diagnostic::new(Code::BadValue, keep.span, message, "the first bound is the larger one"));
    }
    let [_, within] = ends((name, dim), (&keep.within, &keep.within), Some(keep.span))?;
    if within <= 0.0 {
        let message = format!("`within` says how far off costs 1, and cannot be {}", keep.within);
        return Err(Diagnostic::new(Code::BadValue, keep.within.span.unwrap_or(keep.span), message, "above 0"));
    }
    Ok((Range { low, high }, within))
}

/// What is read, with its place in the model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// How often the cells of a population spike.
    Count(usize),
    /// Whether they do.
    Spikes(usize),
    /// A state; where each cell has several values of it, which of them.
    State(StateId, Option<Picked>),
}

/// One of several values that each cell has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Picked {
    /// How many values a cell has.
    pub(super) each: usize,
    /// Which it is.
    pub(super) at: usize,
}

impl Picked {
    /// Of all values those that are read.
    pub(super) fn picked(self, all: &[f64]) -> Vec<f64> {
        all.iter().skip(self.at).step_by(self.each).copied().collect()
    }

    /// What has no slope has 0.
    pub(super) fn spread(self, slopes: &[f64]) -> Vec<f64> {
        let mut all = vec![0.0; slopes.len() * self.each];
        all.iter_mut().skip(self.at).step_by(self.each).zip(slopes).for_each(|(own, slope)| *own = *slope);
        all
    }
}

impl Place {
    /// Which of several values of each cell is read.
    pub(super) fn picked(self) -> Option<Picked> {
        match self {
            Place::State(_, picked) => picked,
            Place::Count(_) | Place::Spikes(_) => None,
        }
    }

    /// The population whose cells are read out.
    pub(super) fn population(self, model: &Model) -> usize {
        match self {
            Place::Count(population) | Place::Spikes(population) => population,
            Place::State(state, Some(_)) => model.cells_of(model.state(state).population),
            Place::State(state, None) => model.state(state).population,
        }
    }

    /// The same with its full name.
    pub(super) fn full(self, model: &Model) -> Read {
        let of_cells = |population: usize| model.populations[model.cells_of(population)].name.clone();
        match self {
            Place::Count(population) => Read::SpikeCount(of_cells(population)),
            Place::Spikes(population) => Read::Spikes(of_cells(population)),
            Place::State(state, picked) => {
                let state = model.state(state);
                let place = picked.and_then(|Picked { at, .. }| {
                    let (tree, elements) = model.elements(state.population)?;
                    Some(tree.name(elements[at] as usize))
                });
                let cells = of_cells(state.population);
                let own = |of: &str| state.name.strip_prefix(of)?.strip_prefix('.');
                let quantity = own(&model.populations[state.population].name).or_else(|| own(&cells));
                Read::State(match place.zip(quantity) {
                    Some((place, quantity)) => format!("{cells}.{place}.{quantity}"),
                    None => state.name.clone(),
                })
            }
        }
    }
}

/// What is read.
pub(super) fn readout(model: &Model, (read, span): &(Read, Span)) -> Result<Place, Vec<Diagnostic>> {
    let wrong = |code, message: String| at(*span, Diagnostic::without_place(code, message));
    let unknown = |name: &str, what: &str, known: Vec<&str>| {
        let d = wrong(Code::UnknownParameter, format!("there is no {what} `{name}`"));
        let d = nearest(name, known.clone()).map_or(d.clone(), |near| d.help(format!("did you mean `{near}`?")));
        Err(vec![d.note(format!("it may be {}", known.join(", ")))])
    };
    let cells = || model.populations.iter().filter(|p| p.kind == Kind::Cells);
    match read {
        Read::SpikeCount(name) | Read::Spikes(name) => match model.populations.iter().position(|p| p.name == *name) {
            Some(population) => match spiking(model, population) {
                Some(spiking) => Ok(match read {
                    Read::SpikeCount(_) => Place::Count(spiking),
                    Read::Spikes(_) | Read::State(_) => Place::Spikes(spiking),
                }),
                None => {
                    let d = wrong(Code::BadTarget, format!("`{name}` does not spike, so that nothing can be counted"));
                    Err(vec![
                        d.help("read a state of its cells, such as `mean(out.v)`, or give the cell a `spike` line"),
                    ])
                }
            },
            None => unknown(name, "population", cells().map(|p| p.name.as_str()).collect()),
        },
        Read::State(name) => {
            if let Some((cells, written, quantity)) = places::split(name) {
                let found = state_at(model, (name, &cells, written, &quantity));
                return found.map_err(|(code, message)| vec![wrong(code, message)]);
            }
            let suffix = format!(".{name}");
            let states = || (0..).map(StateId).zip(&model.states).filter(|(_, s)| s.edges.is_none());
            let fits: Vec<StateId> = states()
                .filter(|(_, s)| s.name == *name || s.name.ends_with(&suffix))
                .map(|(number, _)| number)
                .collect();
            match fits[..] {
                [one] => match model.elements(model.state(one).population).filter(|(_, elements)| elements.len() > 1) {
                    Some((tree, elements)) => {
                        let message = format!("`{name}` has a value in each compartment");
                        let (cells, own) = name.rsplit_once('.').unwrap_or(("out", name));
                        let place = elements.first().map(|&first| tree.name(first as usize)).unwrap_or_default();
                        let d = wrong(Code::BadTarget, message);
                        Err(vec![
                            d.help(format!("say where: `{}.{place}.{own}`", cells.split('.').next().unwrap_or(cells))),
                        ])
                    }
                    None => Ok(Place::State(one, None)),
                },
                [] => unknown(name, "state", states().map(|(_, s)| s.name.as_str()).collect()),
                _ => {
                    let d = wrong(Code::AmbiguousParameter, format!("`{name}` fits several states"));
                    Err(vec![d.help("write more of the name")])
                }
            }
        }
    }
}

/// The population that has the spikes of cells: they themselves, or a place in them.
fn spiking(model: &Model, population: usize) -> Option<usize> {
    let spikes = |other: &usize| model.populations[*other].spike.is_some() && model.cells_of(*other) == population;
    (0..model.populations.len()).find(spikes)
}

/// A state of a compartment.
fn state_at(
    model: &Model,
    (name, cells, written, quantity): (&str, &str, Written<'_>, &str),
) -> Result<Place, (Code, String)> {
    let population = model.populations.iter().position(|p| p.name == cells && p.kind == Kind::Cells);
    let population = population.ok_or_else(|| (Code::UnknownName, format!("there is no population `{cells}`")))?;
    let tree = places::tree(model, population);
    let tree = tree.ok_or_else(|| (Code::BadTarget, format!("the cells of `{cells}` have no sections")))?;
    let element = written.element(tree).map_err(|has_section| match has_section {
        true => (Code::BadValue, format!("a place in `{}` is a number from 0 to 1", written.section)),
        false => (Code::UnknownName, format!("the cells of `{cells}` have no section `{}`", written.section)),
    })?;
    let suffix = format!(".{quantity}");
    let here = |(_, s): &(StateId, &ode::State)| {
        s.edges.is_none() && model.cells_of(s.population) == population && s.name.ends_with(&suffix)
    };
    let picked = |(id, s): (StateId, &ode::State)| {
        let (_, elements) = model.elements(s.population)?;
        let at = elements.iter().position(|e| *e as usize == element)?;
        Some(Place::State(id, Some(Picked { each: elements.len(), at })))
    };
    let found: Vec<Place> = (0..).map(StateId).zip(&model.states).filter(here).filter_map(picked).collect();
    match found[..] {
        [one] => Ok(one),
        [] => Err((Code::UnknownName, format!("there is no state `{quantity}` at `{}`", tree.name(element)))),
        _ => Err((Code::AmbiguousParameter, format!("`{name}` fits several states"))),
    }
}
