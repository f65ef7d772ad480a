//! What of a network learns: weights and delays of projections, and parameters, as the `learn` lines of a `train` block name them.
//!
//! In come a model and these lines; out goes what of each projection learns, which parameters do, and where they stay.
//! Never true here: a name fits several things without a word, or something learns twice.

use super::reads::{Read, readout};
use super::{Learner, at, given};
use crate::diag::{Code, Diagnostic, nearest};
use crate::driver::Fitted;
use crate::driver::gradient::{decides_sizes, fitted, range};
use crate::hir::{Gradient, Learn};
use crate::ode::{self, Model, Node, ParamId, Projection, places};
use crate::simulate::trials::Net;
use crate::source::Span;
use crate::step::{Program, Source};
use crate::units::{self, Dim, DisplayUnit};
use std::collections::BTreeSet;

/// Where something that learns stays, in canonical units.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Range {
    /// The least that it may be.
    pub low: f64,
    /// The most.
    pub high: f64,
}

impl Range {
    pub(super) const ANY: Range = Range { low: f64::NEG_INFINITY, high: f64::INFINITY };

    /// Brings what has left it back to its end.
    pub fn hold(self, values: &mut [f64]) {
        values.iter_mut().for_each(|x| *x = x.clamp(self.low, self.high));
    }
}

/// What of a projection learns, and where it stays.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct OfProjection {
    pub(super) weight: Option<Range>,
    pub(super) delay: Option<Range>,
}

/// Which numbers of a projection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Which {
    Weights,
    Delays,
}

/// What numbers that learn are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Of {
    /// The weights of a projection.
    Weights(usize),
    /// Its delays.
    Delays(usize),
    /// What each cell has: the number among [`Learner::cells`].
    Cells(usize),
}

/// Numbers that learn, each for itself: one for each edge of a projection, or for all that share a kernel; or one for each cell.
#[derive(Debug, Clone)]
pub(super) struct Numbers {
    /// `a.b.Kick.weight`, `hidden.tau`.
    pub(super) name: String,
    pub(super) of: Of,
    /// The other projections that have the same: those to the other places of which a target gets the largest.
    pub(super) same: Vec<usize>,
    pub(super) range: Range,
    /// What one of the unit that they are written in is in canonical units: they move in that.
    pub(super) unit: f64,
}

/// A parameter that learns for each cell.
pub(super) struct OfCells {
    pub(super) param: ParamId,
    /// Its number in [`Net::begin`].
    pub(super) begin: usize,
    /// In canonical units.
    pub(super) values: Vec<f64>,
}

impl OfCells {
    /// All trials begin with them.
    pub(super) fn tell(&self, net: &mut Net) {
        let trials = net.trials;
        if let Some((_, begin)) = net.begin.get_mut(self.begin) {
            *begin = self.values.repeat(trials);
        }
    }
}

impl Learner {
    /// What is wrong with what has been learnt: values that a run refuses. `parameters` are as in [`Learner::gradient`].
    pub fn outside(&self, parameters: &[f64]) -> Vec<Diagnostic> {
        let mut model = self.own.model.clone();
        for (one, &x) in self.own.fitted.iter().zip(parameters) {
            model.params[one.param.0 as usize].value = model.graph.number(x, one.dim);
        }
        // What each cell has is like the numbers of a file.
        let files = model.data.len() as u32;
        for (one, file) in self.own.cells.iter().zip(files..) {
            model.params[one.param.0 as usize].value = model.graph.add(Node::Data(file));
        }
        let numbers = |population: usize, file: u32| match file.checked_sub(files) {
            Some(number) => self.own.cells.get(number as usize).map(|one| one.values.clone()),
            None => self.own.files.get(&(population, file)).cloned(),
        };
        let mut found = ode::domains::uniform(&model);
        found.extend(ode::domains::per_cell(&model, &self.own.sizes, &numbers));
        for one in &self.own.numbers {
            if let Of::Weights(route) = one.of {
                found.extend(ode::domains::of_weights(&model, route, &self.own.net.routes[route].tract.weights()));
            }
        }
        found.retain(Diagnostic::is_error);
        found
    }
}

/// What learns, with where it stays.
pub(super) struct Learnt {
    /// What of each projection.
    pub(super) projections: Vec<OfProjection>,
    /// The parameters that are one number.
    pub(super) parameters: Vec<(Fitted, Range)>,
    /// Those that each cell has for itself.
    pub(super) cells: Vec<(Fitted, Range)>,
}

/// What of each projection learns, and the parameters that do; samples give `input`.
pub(super) fn learnt(model: &Model, learn: &[Learn], input: &(String, Span)) -> Result<Learnt, Vec<Diagnostic>> {
    let mut learns = vec![OfProjection::default(); model.projections.len()];
    let (mut errors, mut parameters): (Vec<Diagnostic>, Vec<(Fitted, Range)>) = (Vec::new(), Vec::new());
    for one in learn {
        // A parameter may be called `delay`, too.
        let named = of_projection(&one.name)
            .filter(|(of, _)| !projections(model, of).is_empty() || fitted(model, &one.name, "learnt").is_err());
        let found = match named {
            Some(named) => named_projection(model, one, named).and_then(|number| {
                let (projection, known) = (&model.projections[number], &mut learns[number]);
                let (known, range) = match named.1 {
                    Which::Weights => (&mut known.weight, weight_range(projection, one)),
                    Which::Delays => (&mut known.delay, delay_range(model, projection, one)),
                };
                match known.replace(range?) {
                    Some(_) => Err(one.wrong(Code::BadValue, format!("`{}` learns twice", one.name))),
                    None => Ok(()),
                }
            }),
            None => parameter(model, one, &parameters).map(|found| parameters.push(found)),
        };
        errors.extend(found.err());
    }
    for (number, p) in model.projections.iter().enumerate() {
        learns[number] = p.place.map_or(learns[number], |place| learns[place.first]);
    }
    if !errors.is_empty() {
        return Err(errors);
    }
    let given = given(model, input).unwrap_or_default();
    if parameters.iter().any(|(one, _)| one.name == given) {
        let d = Diagnostic::without_place(Code::BadTarget, format!("samples give `{given}`, so that it cannot learn"));
        return Err(vec![at(place_of(learn, &given), d)]);
    }
    for (one, _) in &parameters {
        let alone = BTreeSet::from([one.param]);
        let mut given = model.graded_given();
        if let Some((_, p, _)) = given.find(|(.., graded)| model.follows(graded.sent, &alone)) {
            let d = Diagnostic::without_place(Code::Unsupported, format!("`{}` cannot learn", one.name));
            let d = d.note(format!("what the graded synapses of `{}` pass on depends on it", p.name));
            return Err(vec![at(place_of(learn, &one.name), d)]);
        }
    }
    let (cells, parameters) = parameters.into_iter().partition(|(one, _)| one.value.is_none());
    Ok(Learnt { projections: learns, parameters, cells })
}

/// Where it stands that something of this full name learns.
pub(super) fn place_of(learn: &[Learn], name: &str) -> Span {
    let is_end = |end: &str, name: &str| name == end || name.ends_with(&format!(".{end}"));
    let is_end_but_for_places = |end: &str| is_end(&places::left_out(end), &places::left_out(name));
    let named = learn.iter().find(|one| is_end(&one.name, name));
    let named = named.or_else(|| learn.iter().find(|one| is_end_but_for_places(&one.name)));
    named.map_or(Span::default(), |named| named.span)
}

/// The projection that a name of something that learns names, and what of it.
pub(super) fn of_projection(name: &str) -> Option<(&str, Which)> {
    let weights = name.strip_suffix(".weight").map(|of| (of, Which::Weights));
    weights.or_else(|| name.strip_suffix(".delay").map(|of| (of, Which::Delays)))
}

/// The projections that have this name, or end with it; if there are none, those that do but for the places that they lead to.
pub(super) fn projections(model: &Model, of: &str) -> Vec<usize> {
    let fits = |name: &str, of: &str| name == of || name.strip_suffix(of).is_some_and(|rest| rest.ends_with('.'));
    let all = |fit: &dyn Fn(&ode::Projection) -> bool| -> Vec<usize> {
        (0..).zip(&model.projections).filter(|(_, p)| fit(p)).map(|(number, _)| number).collect()
    };
    let found = all(&|p| fits(&p.name, &places::called(model, p.to, of)));
    if found.is_empty() { all(&|p| fits(&places::left_out(&p.name), of)) } else { found }
}

/// The one projection that is named.
pub(super) fn named_projection(model: &Model, learn: &Learn, (of, which): (&str, Which)) -> Result<usize, Diagnostic> {
    match projections(model, of)[..] {
        [one] => Ok(one),
        [] => {
            let learns = |p: &&ode::Projection| matches!(which, Which::Weights) || p.graded.is_none();
            let named = model.projections.iter().filter(|p| p.is_first()).filter(learns);
            let known: Vec<String> = named.map(|p| format!("{}.{}", p.name, which.key())).collect();
            let d = learn.wrong(Code::UnknownParameter, format!("there is no projection `{of}`"));
            let near = nearest(&learn.name, known.iter().map(String::as_str));
            let d = near.map_or(d.clone(), |near| d.help(format!("did you mean `{near}`?")));
            Err(d.note(format!("{}s that may learn are {}", which.key(), known.join(", "))))
        }
        ref fits => {
            let all: Vec<&str> = fits.iter().map(|&p| model.projections[p].name.as_str()).collect();
            let d = learn.wrong(Code::AmbiguousParameter, format!("`{}` fits several projections", learn.name));
            Err(d.note(format!("they are {}", all.join(", "))).help("write more of the name"))
        }
    }
}

impl Which {
    pub(super) fn key(self) -> &'static str {
        match self {
            Which::Weights => "weight",
            Which::Delays => "delay",
        }
    }
}

impl Learn {
    fn wrong(&self, code: Code, message: String) -> Diagnostic {
        at(self.span, Diagnostic::without_place(code, message))
    }

    /// Where it stays.
    fn range(&self, dim: Dim, unit: &DisplayUnit) -> Result<Range, Diagnostic> {
        let Some((low, high)) = &self.range else { return Ok(Range::ANY) };
        let place = Some(self.span).filter(|span| *span != Span::default());
        let (low, high) = range((&self.name, dim, unit), (low, high), place)?;
        Ok(Range { low, high })
    }
}

pub(super) fn weight_range(projection: &ode::Projection, learn: &Learn) -> Result<Range, Diagnostic> {
    learn.range(projection.dim, &projection.unit)
}

/// Where delays stay: they move from one step on.
pub(super) fn delay_range(model: &Model, projection: &ode::Projection, learn: &Learn) -> Result<Range, Diagnostic> {
    let (name, dt) = (&projection.name, model.dt);
    if projection.share.is_some() {
        let message = format!("the connections of `{name}` share a kernel; so far their delays do not learn");
        return Err(learn.wrong(Code::Unsupported, message));
    }
    if projection.graded.is_some() {
        let message = format!("`{}` is none: what follows a voltage has no delay", learn.name);
        return Err(learn.wrong(Code::Unsupported, message));
    }
    let at = model.projections.iter().position(|p| std::ptr::eq(p, projection));
    if at.is_some_and(|at| model.between_steps()[at]) {
        let message = format!("the delays of `{name}` do not learn, since what it brings arrives between two steps");
        let d = learn.wrong(Code::Unsupported, message);
        return Err(
            d.note("a connection without a delay leads to the same receptor, with `arrivals = after_threshold`")
        );
    }
    if learn.range.is_none() {
        let message = format!("it is not said between which bounds the delays of `{name}` learn");
        return Err(learn.wrong(Code::BadValue, message).help(format!("write `learn {} = {dt} .. 20 ms`", learn.name)));
    }
    let range = learn.range(Dim::TIME, &Dim::TIME.display_unit())?;
    if range.low < dt * (1.0 - 1e-9) {
        let message =
            format!("the delays of `{name}` may fall to {} ms, less than the time step of {dt} ms", range.low);
        return Err(learn
            .wrong(Code::OutOfDomain, message)
            .note("a spike arrives a step later at the earliest")
            .help(format!("write `learn {} = {dt} .. {} ms`", learn.name, range.high)));
    }
    if range.high > model.duration {
        let message =
            format!("the delays of `{name}` may grow to {} ms, but the run lasts {} ms", range.high, model.duration);
        return Err(learn
            .wrong(Code::OutOfDomain, message)
            .help("what arrives behind the end of a run teaches nothing"));
    }
    Ok(range)
}

/// Refuses delays, in steps, that begin outside of their range.
pub(super) fn begins_within(
    p: &ode::Projection,
    delays: &[f64],
    [low, high]: [f64; 2],
    dt: f64,
) -> Result<(), Vec<Diagnostic>> {
    // They begin with the whole steps that a run takes, which are half a step off at most.
    let is_outside = |steps: &f64| *steps < low - 0.5 || *steps > high + 0.5;
    let Some(edge) = delays.iter().position(is_outside) else { return Ok(()) };
    let [begins, low, high] = [delays[edge], low, high].map(|steps| steps * dt);
    let message =
        format!("the delay of edge {edge} of `{}` begins at {begins} ms, but learns from {low} to {high} ms", p.name);
    let d = Diagnostic::new(Code::OutOfDomain, p.span, message, "delays begin with what is said here");
    Err(vec![d.help(format!("write `delay ~ uniform({low} ms, {high} ms)`, or other bounds in the `train` block"))])
}

/// Refuses weights, in canonical units, that begin outside of their range.
pub(super) fn weights_begin_within(p: &ode::Projection, weights: &[f64], range: Range) -> Result<(), Vec<Diagnostic>> {
    let Some(edge) = weights.iter().position(|x| !(range.low..=range.high).contains(x)) else { return Ok(()) };
    let shown = |x: f64| crate::hir::shown(x, &p.unit);
    let [begins, low, high] = [weights[edge], range.low, range.high].map(shown);
    let whose = if p.share.is_some() { "a number of the kernel" } else { "a weight" };
    let message = format!("{whose} of `{}` begins at {begins}, but learns from {low} to {high}", p.name);
    let d = Diagnostic::new(Code::OutOfDomain, p.span, message, "weights begin with what is said here");
    Err(vec![d.help("draw weights within the bounds (`truncated(..., low, high)` cuts a draw off), or write other bounds in the `train` block")])
}

/// A parameter that learns, and where it stays.
pub(super) fn parameter(
    model: &Model,
    learn: &Learn,
    others: &[(Fitted, Range)],
) -> Result<(Fitted, Range), Diagnostic> {
    let one = fitted(model, &learn.name, "learnt").map_err(|error| at(learn.span, error))?;
    let name = &one.name;
    if others.iter().any(|(other, _)| other.name == *name) {
        return Err(learn.wrong(Code::BadValue, format!("`{name}` learns twice")));
    }
    if decides_sizes(model, &one) {
        let message = format!(
            "`{name}` says how many cells there are, who is connected, how strongly or when events arrive, and cannot learn"
        );
        return Err(learn.wrong(Code::Unsupported, message));
    }
    if let Some(why) = without_slope(model, one.param) {
        let d = learn.wrong(Code::Unsupported, format!("`{name}` {why}, and cannot learn"));
        return Err(d.note("gradients know of both sides of such a moment, and not of the moment"));
    }
    let range = learn.range(one.dim, &one.unit)?;
    let parts = model.param(one.param).population.map_or(1, |population| model.elements_per_cell(population));
    match one.value {
        Some(value) => begins_in(&one, range, value).map_err(|d| at(learn.span, d))?,
        None if model.param(one.param).population.is_none() => {
            return Err(
                learn.wrong(Code::Unsupported, format!("`{name}` is no number that is known, and cannot learn"))
            );
        }
        None if parts > 1 => {
            let message = format!("`{name}` differs from cell to cell, and each cell has it in {parts} compartments");
            let d = learn.wrong(Code::Unsupported, message);
            return Err(d.note("so far what each cell has for itself learns in one compartment; one number for all cells learns in any"));
        }
        // The values of cells are looked at when they are there.
        None => {
            let alone = BTreeSet::from([one.param]);
            let others = (0..).map(ParamId).zip(&model.params).filter(|(id, _)| *id != one.param);
            let of_params = others.map(|(_, p)| (p.value, &p.name));
            let of_states = model.states.iter().map(|s| (s.init, &s.name));
            if let Some((_, other)) = of_params.chain(of_states).find(|(value, _)| model.follows(*value, &alone)) {
                let message = format!("`{name}` differs from cell to cell, and `{other}` follows it");
                let d = learn.wrong(Code::Unsupported, message);
                return Err(d.note("so far what each cell has for itself learns where equations alone read it"));
            }
        }
    }
    Ok((one, range))
}

/// What a parameter decides that has no gradient, if there is something.
fn without_slope(model: &Model, param: ParamId) -> Option<&'static str> {
    let mut scratch = model.clone();
    let refractory = model.populations.iter().filter_map(|p| p.spike.as_ref()?.refractory);
    if refractory.into_iter().any(|time| ode::derivative_in_param(&mut scratch, time, param).is_some()) {
        return Some("says how long cells are refractory");
    }
    ode::moves_a_switch(model, param, true).then_some("moves the time at which something is switched")
}

/// Refuses a parameter that begins outside of its range.
pub(super) fn begins_in(one: &Fitted, range: Range, value: f64) -> Result<(), Diagnostic> {
    if value >= range.low && value <= range.high {
        return Ok(());
    }
    let [begins, low, high] = [value, range.low, range.high].map(|x| one.shown(x));
    let message = format!("`{}` begins at {begins}, but learns from {low} to {high}", one.name);
    Err(Diagnostic::without_place(Code::OutOfDomain, message))
}

/// A parameter that each cell has for itself, as the cells of a trial begin.
pub(super) fn of_each_cell(one: &Fitted, range: Range, program: &Program, net: &Net) -> Result<OfCells, Diagnostic> {
    let field = program.bound(Source::Param(one.param.0));
    let begin = net.begin.iter().position(|(both, _)| Some(both.forward) == field);
    let Some(begin) = begin else {
        let message = format!("`{}` cannot learn: no step reads it", one.name);
        return Err(Diagnostic::without_place(Code::Unsupported, message));
    };
    let (_, all) = &net.begin[begin];
    let values = all[..all.len() / net.trials.max(1)].to_vec();
    values.iter().try_for_each(|&value| begins_in(one, range, value))?;
    Ok(OfCells { param: one.param, begin, values })
}

/// All that learns of projections, in their order.
pub(super) fn numbers(model: &Model, learns: &[OfProjection]) -> Vec<Numbers> {
    let of_each = |(projection, (p, learns)): (usize, (&ode::Projection, &OfProjection))| {
        let both = [(Which::Weights, learns.weight), (Which::Delays, learns.delay)];
        both.map(|(which, range)| {
            let (name, range) = (format!("{}.{}", p.name, which.key()), range?);
            let same = model.same(projection).filter(|&other| other != projection).collect();
            let (of, unit) = match which {
                Which::Weights => (Of::Weights(projection), units::scale(1.0, p.unit.exponent)),
                Which::Delays => (Of::Delays(projection), 1.0),
            };
            Some(Numbers { name, of, same, range, unit })
        })
    };
    let all = model.projections.iter().zip(learns).enumerate();
    all.filter(|(_, (p, _))| p.is_first()).flat_map(of_each).flatten().collect()
}

/// Do derivatives go back along a projection? `answer` are the cells that the loss reads.
pub(super) fn goes_back(model: &Model, p: &Projection, gradient: Gradient, answer: Option<usize>) -> bool {
    let [from, to] = [p.from, p.to].map(|end| model.cells_of(end));
    match gradient {
        Gradient::Bptt => true,
        Gradient::Eprop => answer == Some(to) && from != to,
    }
}

/// Refuses weights and delays that nothing which is read out depends on.
pub(super) fn idle(
    model: &Model,
    learns: &[OfProjection],
    learn: &[Learn],
    (reads, gradient): (&[(Read, Span)], Gradient),
) -> Result<(), Vec<Diagnostic>> {
    // Parts of cells reach each other.
    let cells = |population: usize| model.cells_of(population);
    let mut reached = vec![false; model.populations.len()];
    let mut answer = None;
    for read in reads {
        let population = cells(readout(model, read)?.population(model));
        reached[population] = true;
        answer = answer.or(Some(population));
    }
    // Each round reaches one population more, at least.
    for _ in &model.populations {
        for p in model.projections.iter().filter(|p| goes_back(model, p, gradient, answer)) {
            reached[cells(p.from)] |= reached[cells(p.to)];
        }
        for c in &model.connections {
            let [here, there] = [c.here, c.there].map(|end| cells(end.population));
            reached[there] |= reached[here];
        }
    }
    let errors: Vec<Diagnostic> = numbers(model, learns)
        .into_iter()
        .filter_map(|one| {
            let (projection, what) = match one.of {
                Of::Weights(projection) => (projection, Which::Weights.key()),
                Of::Delays(projection) => (projection, Which::Delays.key()),
                Of::Cells(_) => return None,
            };
            let p = &model.projections[projection];
            let message = format!("the {what}s of `{}` cannot learn: nothing that is read out depends on them", p.name);
            let mut d = Diagnostic::without_place(Code::BadTarget, message);
            if gradient == Gradient::Eprop {
                let to = &model.populations[cells(p.to)].name;
                d = d.note(format!(
                    "with `eprop` learn cells that the loss reads and those that send to them, and `{to}` does not"
                ));
            }
            (!reached[cells(p.to)]).then(|| at(place_of(learn, &one.name), d))
        })
        .collect();
    if errors.is_empty() { Ok(()) } else { Err(errors) }
}
