//! What values must be, once they are known.
//!
//! In comes a flat model with all settings applied, and for values per cell what data files hold; out goes a message for everything that is
//! outside of its domain (`src/hir/domain.rs` declares them), and for every range of cells that a population does not have.
//! Never true here: a state or the time is read; what depends on them is what it is at the start.

use super::{Condition, EvalError, Kind, Model, Node, NodeId, Spike, StateId, cells, evaluate};
use crate::diag::{Code, Diagnostic, Diagnostics, Severity};
use crate::hir::{Arrivals, Demand, Domain, Method, Whose, shown};
use crate::operators::Value;
use crate::source::Span;
use crate::units::Dim;
use rustc_hash::FxHashMap as HashMap;

/// Cells of a population that a line of the model names.
#[derive(Debug, Clone, PartialEq)]
pub struct CellRange {
    /// The population, by index.
    pub population: usize,
    /// The first cell: a function of uniform parameters.
    pub first: NodeId,
    /// One past the last.
    pub end: NodeId,
    /// Where it stands.
    pub span: Span,
}

/// What is wrong with values that are the same for all cells, and with ranges of cells.
pub fn uniform(model: &Model) -> Vec<Diagnostic> {
    let mut found = Diagnostics::default();
    for demand in &model.demands {
        // Steps that are as long as the error allows begin and end where something is switched, and where an event arrives.
        let any_time;
        let demand = match demand.domain {
            Domain::Steps if model.method == Method::Adaptive => continue,
            Domain::Delay | Domain::DelayOrNone if model.method == Method::Adaptive => {
                let why = "with adaptive steps a spike arrives any time later, but later";
                any_time = Demand { domain: Domain::AboveZero, why, ..demand.clone() };
                &any_time
            }
            _ => demand,
        };
        let at_once = |x: f64| demand.domain == Domain::DelayOrNone && x == 0.0;
        if let Ok(Value::Real(x)) = evaluate(model, demand.value)
            && (!demand.domain.has(x, Some((model.dt, model.duration)))
                || (at_once(x) && model.arrivals.0 != Arrivals::AfterThreshold))
        {
            let from_outside = set_from_outside(model, demand.value);
            found.push(demand.outside(x, None, from_outside));
        }
    }
    for range in &model.ranges {
        if let Some(wrong) = outside(model, range) {
            found.push(wrong);
        }
    }
    let spikes: Vec<&Spike> = model.populations.iter().filter_map(|p| p.spike.as_ref()).collect();
    if !spikes.is_empty() {
        let mut at_reset = model.clone();
        spikes.iter().filter_map(|spike| keeps_spiking(model, &mut at_reset, spike)).for_each(|d| found.push(d));
    }
    for r in &model.records {
        if let Some(every) = r.every
            && every > model.duration * (1.0 + 1e-9)
        {
            let message = format!("`{}` is recorded once, at the start", r.name);
            let ms = Dim::TIME.display_unit();
            let [every, duration] = [every, model.duration].map(|x| shown(x, &ms));
            let label = format!("samples are {every} apart, and the run takes {duration}");
            found.push(Diagnostic::new(Code::NoEffect, r.span, message, label));
        }
    }
    found.sorted()
}

/// A warning if what makes a spike is true again after its reset, as far as that is known before the run. `at_reset` is the model with any
/// nodes behind its own.
fn keeps_spiking(model: &Model, at_reset: &mut Model, spike: &Spike) -> Option<Diagnostic> {
    let Condition::When(condition) = spike.condition else { return None };
    let warning =
        |label: &str| Diagnostic::new(Code::KeepsSpiking, spike.span, "these spikes follow each other", label);
    let read = model.graph.states_read([condition]);
    if !spike.resets.iter().any(|(state, _)| read.contains(state)) {
        let names: Vec<&str> = read.iter().map(|s| model.state(*s).name.rsplit('.').next().unwrap_or("")).collect();
        let d = warning("nothing resets what the condition reads");
        return names.first().map(|name| d.help(format!("reset it: `{name} = ...`")));
    }
    let zero = at_reset.graph.number(0.0, Dim::TIME);
    let start = |node: Node| match node {
        Node::State(s) => Some(model.state(s).init),
        Node::Time | Node::StepTime => Some(zero),
        _ => None,
    };
    let after: HashMap<StateId, NodeId> = spike
        .resets
        .iter()
        .map(|&(state, value)| (state, at_reset.graph.replace(value, &start, &mut HashMap::default())))
        .collect();
    let reset = |node: Node| match node {
        Node::State(s) => after.get(&s).copied().or_else(|| start(node)),
        _ => start(node),
    };
    let again = at_reset.graph.replace(condition, &reset, &mut HashMap::default());
    (evaluate(at_reset, again) == Ok(Value::Mask(true)))
        .then(|| warning("the condition is still true after the reset").help("reset below what the condition asks for"))
}

/// How a value, or a parameter that it depends on, was set from outside.
fn set_from_outside(model: &Model, value: NodeId) -> Option<&str> {
    let begins = |state: &&super::State| state.edges.is_some() && state.init == value;
    if let Some(text) = model.states.iter().filter(begins).find_map(|state| state.set.as_deref()) {
        return Some(text);
    }
    reached(model, value).into_iter().find_map(|node| match node {
        Node::Param(p) => model.param(p).set.as_deref(),
        _ => None,
    })
}

/// All that a value is made of, that of its parameters, too.
fn reached(model: &Model, value: NodeId) -> Vec<Node> {
    let (mut waiting, mut seen, mut all) = (vec![value], Vec::new(), Vec::new());
    while let Some(node) = waiting.pop() {
        for node in model.graph.reachable([node]).into_iter().map(|id| model.graph.node(id)) {
            if let Node::Param(p) = node
                && !seen.contains(&p)
            {
                seen.push(p);
                waiting.push(model.param(p).value);
            }
            all.push(node);
        }
    }
    all
}

/// What is wrong with a range of cells, if its population has a size.
fn outside(model: &Model, range: &CellRange) -> Option<Diagnostic> {
    let number = |node: NodeId| match evaluate(model, node) {
        Ok(Value::Real(x)) => Some(x),
        Ok(Value::Single(_) | Value::Mask(_)) | Err(_) => None,
    };
    let population = &model.populations[range.population];
    let all: f64 = population.sizes.iter().map(|&size| number(size)).product::<Option<f64>>()?;
    let whole = |x: &f64| *x >= 0.0 && x.fract() == 0.0;
    let (first, end) = (number(range.first), number(range.end));
    if let (Some(first), Some(end)) = (first.filter(whole), end.filter(whole))
        && first < end
        && end <= all
    {
        return None;
    }
    let message = format!("`{}` has no such cells", population.name);
    let label = match all {
        _ if first.zip(end).is_some_and(|(first, end)| first >= end && first <= all) => {
            format!("{}..{} is empty: the end is not included", first.unwrap_or(0.0), end.unwrap_or(0.0))
        }
        1.0 => "it has one cell, number 0".to_string(),
        _ => format!("cells are counted from 0 to {}", all - 1.0),
    };
    Some(Diagnostic::new(Code::BadCells, range.span, message, label))
}

/// So many edges of a projection are looked at: a draw that is outside now and then is outside among them.
const EDGES: usize = 100_000;

/// And so many where a single one may be infinite: a quotient by a distance of 0.
const MOST: usize = 10_000_000;

/// What is wrong with values that differ from cell to cell: `sizes` are the numbers of each population's cells, `data` gives the numbers of a file
/// for the cells of a population.
pub fn per_cell(model: &Model, sizes: &[usize], data: &dyn Fn(usize, u32) -> Option<Vec<f64>>) -> Vec<Diagnostic> {
    let mut found = Diagnostics::default();
    for demand in &model.demands {
        let Whose::Cells(population) = demand.whose else { continue };
        // What is drawn is no whole number of steps, and need not be.
        if demand.domain == Domain::Steps {
            continue;
        }
        if evaluate(model, demand.value) != Err(EvalError::NotUniform) {
            continue;
        }
        let of_population = |of: Option<usize>, file: u32| data(of.unwrap_or(population), file);
        let values = cells::values(model, demand.value, Some(population), sizes[population], &of_population);
        let Some(mut values) = values else { continue };
        if let (Domain::WithinLimits, Some((first, end))) = (demand.domain, chosen(model, population, demand.span)) {
            // Other cells do not have this draw.
            let others = (0..values.len()).filter(|cell| !(first..end).contains(cell));
            others.for_each(|cell| values[cell] = f64::NAN);
        }
        let whose = |first: usize| match model.populations[population].kind {
            Kind::Cells | Kind::Clock => format!("cell {first} of `{}`", model.populations[population].name),
            Kind::Tree { .. } | Kind::Part { .. } => model.element_name(population, first),
        };
        let one = match model.populations[population].kind {
            Kind::Cells | Kind::Clock => "cell",
            Kind::Tree { .. } | Kind::Part { .. } => "compartment",
        };
        if let Some(wrong) = of_many(model, demand, &values, one, whose) {
            found.push(wrong);
        }
    }
    found.sorted()
}

/// What is wrong with values that differ from edge to edge of a projection, by index, which has so many; `data` gives the numbers of a file for them.
pub fn per_edge(
    model: &Model,
    projection: usize,
    edges: usize,
    data: &dyn Fn(Option<usize>, u32) -> Option<Vec<f64>>,
) -> Vec<Diagnostic> {
    let mut found = Diagnostics::default();
    for demand in model.demands.iter().filter(|demand| demand.whose == Whose::Edges(projection)) {
        // What draws within limits cannot be below them, and is not drawn to see that.
        let never = match demand.domain {
            Domain::Finite => cells::is_finite(model, demand.value),
            Domain::NotNegative => cells::least(model, demand.value) >= 0.0,
            _ => false,
        };
        if never || evaluate(model, demand.value) != Err(EvalError::NotUniform) {
            continue;
        }
        // A quotient may be infinite on a single one.
        let most = if demand.domain == Domain::Finite { MOST } else { EDGES };
        let Some(values) = cells::values(model, demand.value, None, edges.min(most), data) else { continue };
        // The demand names the projection.
        let whose = |first: usize| format!("edge {first}");
        if let Some(wrong) = of_many(model, demand, &values, "edge", whose) {
            found.push(wrong);
        }
    }
    found.sorted()
}

/// What is wrong with weights that the edges of a projection have in place of what it says.
pub fn of_weights(model: &Model, projection: usize, weights: &[f64]) -> Option<Diagnostic> {
    let weight = model.projections[projection].weight;
    let of_weight = |demand: &&Demand<NodeId>| demand.whose == Whose::Edges(projection) && demand.value == weight;
    let wrong = |demand| of_many(model, demand, weights, "edge", |first| format!("edge {first}"));
    model.demands.iter().filter(of_weight).find_map(wrong)
}

/// The cells that the line at a place names, from the first to one past the last; `None` if it names all.
fn chosen(model: &Model, population: usize, place: Span) -> Option<(usize, usize)> {
    let within = |r: &&CellRange| {
        (r.population, r.span.file) == (population, place.file)
            && r.span.start <= place.start
            && place.end <= r.span.end
    };
    let range = model.ranges.iter().find(within)?;
    let number = |node: NodeId| match evaluate(model, node) {
        Ok(Value::Real(x)) => Some(x as usize),
        Ok(Value::Single(_) | Value::Mask(_)) | Err(_) => None,
    };
    Some((number(range.first)?, number(range.end)?))
}

/// What is said of the first of many values that is outside of its domain.
fn of_many(
    model: &Model,
    demand: &Demand<NodeId>,
    values: &[f64],
    one: &str,
    whose: impl Fn(usize) -> String,
) -> Option<Diagnostic> {
    let run = Some((model.dt, model.duration));
    let outside = || (0..values.len()).filter(|&at| !demand.domain.has(values[at], run));
    let (first, count) = (outside().next()?, outside().count());
    if demand.domain == Domain::WithinLimits {
        let all = count == values.iter().filter(|x| !x.is_nan()).count();
        return Some(demand.not_within(values[first], (!all).then(|| whose(first)).as_deref(), count, one));
    }
    let d = demand.outside(values[first], Some(&whose(first)), set_from_outside(model, demand.value));
    let is_finite = values[first].is_finite();
    let drawn = || reached(model, demand.value).iter().any(|node| matches!(node, Node::Draw(..)));
    let d = match count - 1 {
        0 => d,
        1 => d.note(format!("another {one} has such a value, too")),
        more => d.note(format!("{more} other {one}s have such values, too")),
    };
    Some(match (d.code.severity(), demand.domain) {
        (_, Domain::BeforeTheEnd) => d,
        _ if !is_finite || !drawn() => d,
        (Severity::Error, _) if !matches!(demand.whose, Whose::Edges(_)) => d,
        (Severity::Error, _) => d.help("cut the draw off: `truncated(..., low, high)`"),
        (Severity::Warning, _) => d.help("a draw can be cut off: `truncated(..., low, high)`"),
    })
}
