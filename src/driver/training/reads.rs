//! What a loss reads of a network.

use super::super::gradient::ends;
use super::{Range, at};
use crate::diag::{Code, Diagnostic, nearest};
use crate::hir::{self, Readout, Train};
use crate::ode::{Model, StateId};
use crate::source::Span;
use crate::units::Dim;

/// What a loss reads of a network.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Read {
    /// How often each cell of a population spikes.
    SpikeCount(String),
    /// Whether it spikes, after every step.
    Spikes(String),
    /// A state of the cells of a population after every step.
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
}

/// What the loss of a `train` block reads.
pub fn reads(model: &Model, train: &Train) -> Result<Reads, Vec<Diagnostic>> {
    let mut reads = Reads { each: Vec::new(), of: Vec::new(), kept: Vec::new() };
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
                match keep.map(|keep| kept_within(model, keep, &read)) {
                    Some(Ok(within)) => reads.kept.push(within),
                    Some(Err(wrong)) => errors.push(wrong),
                    None => {}
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

/// Where a readout is kept, and how far outside it costs 1.
fn kept_within(model: &Model, keep: &hir::Keep, read: &Read) -> Result<(Range, f64), Diagnostic> {
    let state = match read {
        Read::State(name) => model.states.iter().find(|s| s.edges.is_none() && s.name == *name),
        Read::SpikeCount(_) | Read::Spikes(_) => None,
    };
    let of_time = keep.read.readout == Readout::FirstSpike;
    let dim = match state {
        Some(state) => state.dim,
        None if of_time => Dim::TIME,
        None => Dim::ONE,
    };
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
    State(StateId),
}

impl Place {
    /// The population whose cells are read out.
    pub(super) fn population(self, model: &Model) -> usize {
        match self {
            Place::Count(population) | Place::Spikes(population) => population,
            Place::State(state) => model.state(state).population,
        }
    }

    /// The same with its full name.
    pub(super) fn full(self, model: &Model) -> Read {
        match self {
            Place::Count(population) => Read::SpikeCount(model.populations[population].name.clone()),
            Place::Spikes(population) => Read::Spikes(model.populations[population].name.clone()),
            Place::State(state) => Read::State(model.state(state).name.clone()),
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
    match read {
        Read::SpikeCount(name) | Read::Spikes(name) => match model.populations.iter().position(|p| p.name == *name) {
            Some(population) if model.populations[population].spike.is_some() => Ok(match read {
                Read::SpikeCount(_) => Place::Count(population),
                Read::Spikes(_) | Read::State(_) => Place::Spikes(population),
            }),
            Some(_) => {
                let d = wrong(Code::BadTarget, format!("`{name}` does not spike, so that nothing can be counted"));
                Err(vec![d.help("read a state of its cells, such as `mean(out.v)`, or give the cell a `spike` line")])
            }
            None => unknown(name, "population", model.populations.iter().map(|p| p.name.as_str()).collect()),
        },
        Read::State(name) => {
            let suffix = format!(".{name}");
            let states = || (0..).map(StateId).zip(&model.states).filter(|(_, s)| s.edges.is_none());
            let fits: Vec<StateId> = states()
                .filter(|(_, s)| s.name == *name || s.name.ends_with(&suffix))
                .map(|(number, _)| number)
                .collect();
            match fits[..] {
                [one] => Ok(Place::State(one)),
                [] => unknown(name, "state", states().map(|(_, s)| s.name.as_str()).collect()),
                _ => {
                    let d = wrong(Code::AmbiguousParameter, format!("`{name}` fits several states"));
                    Err(vec![d.help("write more of the name")])
                }
            }
        }
    }
}
