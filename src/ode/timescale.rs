//! The time step against the time constants of a model.
//!
//! In comes a flat model with its step and method; out go its time constants at the start, and a warning if the step is too long for the fastest state, as
//! that is at the start, or as a run has found it.
//! Never true here: a state is taken to be fast whose rate is not known at the time.

use super::{Graph, Model, Node, NodeId, StateId, derivative, evaluate};
use crate::diag::{Code, Diagnostic};
use crate::hir::{Method, shown};
use crate::operators::Value;
use crate::units::Dim;
use rustc_hash::FxHashMap as HashMap;

/// A warning if the time step is too long for the method at the start.
pub fn step_too_long(model: &Model) -> Option<Diagnostic> {
    let (state, tau) = shortest(model)?;
    // Where an exponential method takes the fastest state to its end in a step.
    let most = most(model.method, 1.0)?;
    (model.dt > most * tau).then(|| too_long(model, state, tau, "at the start", tau / 5.0))
}

/// A warning if the time step is too long for the shortest time constant `tau` (ms) that was seen in a run, `when` says where.
pub fn step_became_too_long(model: &Model, state: StateId, tau: f64, when: &str) -> Option<Diagnostic> {
    // The steep part of a spike is short: a squid's spikes come half a percent late where a step is as long as 3 of its shortest time constants, and 2 % where it is as long as 6.
    let most = most(model.method, 4.0)?;
    (model.dt > most * tau).then(|| too_long(model, state, tau, when, tau * most / 2.0))
}

/// The longest step of a method, in time constants of the fastest state: where an explicit one becomes unstable, or what is given for those that do not.
fn most(method: Method, stable: f64) -> Option<f64> {
    match method {
        Method::Euler | Method::Heun => Some(2.0),
        Method::Rk4 => Some(2.785),
        // What decays is where it should be, however long the step.
        Method::Exact => None,
        // Its steps are as short as they have to be.
        Method::Adaptive => None,
        Method::ExpEuler | Method::Cnexp | Method::CrankNicolson => Some(stable),
    }
}

fn too_long(model: &Model, state: StateId, tau: f64, when: &str, better: f64) -> Diagnostic {
    let why = match model.method {
        Method::Euler | Method::Heun => "is unstable with steps longer than two time constants",
        Method::Rk4 => "is unstable with steps longer than 2.8 time constants",
        Method::ExpEuler | Method::Cnexp | Method::CrankNicolson | Method::Exact | Method::Adaptive => {
            "is stable, but follows nothing that is faster than a step"
        }
    };
    let ms = Dim::TIME.display_unit();
    let [dt, shown_tau] = [model.dt, rounded(tau)].map(|x| shown(x, &ms));
    let name = &model.state(state).name;
    let message = format!("the time step, {dt}, is too long for `{name}`");
    let label = format!("its time constant is {shown_tau} {when}");
    Diagnostic::new(Code::StepTooLong, model.state(state).span, message, label)
        .note(format!("`{}` {why}", model.method.name()))
        .help(format!("try `dt = {}`", shown(shorter(model.duration, better), &ms)))
}

/// The derivative of each state's rate in the state itself, where it has one, and the graph that has them.
pub fn slopes(model: &Model) -> (Graph, Vec<(StateId, NodeId)>) {
    let mut graph = model.graph.clone();
    let states = (0..model.states.len() as u32).map(StateId);
    let found = states.filter_map(|s| Some((s, derivative(&mut graph, model.state(s).rate, s)?))).collect();
    (graph, found)
}

/// The state with the shortest time constant (in ms) at the start.
fn shortest(model: &Model) -> Option<(StateId, f64)> {
    time_constants(model).into_iter().min_by(|a, b| a.1.total_cmp(&b.1))
}

/// The time constants (in ms) of states at the start: of those that return by themselves, in a time that is the same for all cells. What every
/// synapse has for itself is none of them: it is solved from one event to the next, however long the step.
pub fn time_constants(model: &Model) -> Vec<(StateId, f64)> {
    let (graph, slopes) = slopes(model);
    let mut with_slopes = Model { graph, ..model.clone() };
    let zero = with_slopes.graph.number(0.0, Dim::TIME);
    let step = with_slopes.graph.number(model.dt, Dim::TIME);
    let at_the_start = |node: Node| match node {
        Node::State(s) => Some(model.state(s).init),
        Node::Time | Node::StepTime => Some(zero),
        Node::StepLength => Some(step),
        _ => None,
    };
    let mut memo = HashMap::default();
    let constant = |(state, slope): (StateId, NodeId)| {
        let slope = with_slopes.graph.replace(slope, &at_the_start, &mut memo);
        match evaluate(&with_slopes, slope) {
            Ok(Value::Real(x)) if x < 0.0 && x.is_finite() => Some((state, -1.0 / x)),
            Ok(Value::Real(_) | Value::Single(_) | Value::Mask(_)) | Err(_) => None,
        }
    };
    slopes.into_iter().filter(|(state, _)| model.state(*state).edges.is_none()).filter_map(constant).collect()
}

/// A time to three digits.
fn rounded(x: f64) -> f64 {
    format!("{x:.2e}").parse().unwrap_or(x)
}

/// A round step not longer than `most` of which a duration has a whole number.
fn shorter(duration: f64, most: f64) -> f64 {
    let decade = most.log10().floor() as i32;
    let round = |power: i32| [5.0, 2.5, 2.0, 1.0].map(|digit| crate::units::scale(digit, power));
    let steps = [decade, decade - 1].into_iter().flat_map(round).filter(|step| *step <= most);
    let whole = |step: &f64| (duration / step - (duration / step).round()).abs() < 1e-6;
    steps.clone().find(whole).or_else(|| steps.into_iter().next()).unwrap_or(most)
}
