//! The time step against the time constants of a model.
//!
//! In comes a flat model with its step and method; out goes a warning if the step is too long for the fastest state, as that is at the start.
//! Never true here: a state is taken to be fast that differs from cell to cell, or whose rate is not known at the start.

use super::{Model, Node, NodeId, StateId, derivative, evaluate};
use crate::diag::{Code, Diagnostic};
use crate::hir::{Method, shown};
use crate::operators::Value;
use crate::units::Dim;
use std::collections::HashMap;

/// A warning if the time step is too long for the method.
pub fn step_too_long(model: &Model) -> Option<Diagnostic> {
    let (state, tau) = shortest(model)?;
    // In time constants: where an explicit method becomes unstable, and where an exponential one takes the fastest state to its end in a step.
    let (most, why) = match model.method {
        Method::Euler | Method::Heun => (2.0, "is unstable with steps longer than two time constants"),
        Method::Rk4 => (2.785, "is unstable with steps longer than 2.8 time constants"),
        // What decays is where it should be, however long the step.
        Method::Exact => return None,
        Method::ExpEuler | Method::Cnexp => (1.0, "is stable, but follows nothing that is faster than a step"),
    };
    if model.dt <= most * tau {
        return None;
    }
    let ms = Dim::TIME.display_unit();
    let [dt, shown_tau] = [model.dt, rounded(tau)].map(|x| shown(x, &ms));
    let name = &model.state(state).name;
    let message = format!("the time step, {dt}, is too long for `{name}`");
    let label = format!("its time constant is {shown_tau} at the start");
    Some(
        Diagnostic::new(Code::StepTooLong, model.state(state).span, message, label)
            .note(format!("`{}` {why}", model.method.name()))
            .help(format!("try `dt = {}`", shown(shorter(model.duration, tau / 5.0), &ms))),
    )
}

/// The state with the shortest time constant (in ms) at the start.
fn shortest(model: &Model) -> Option<(StateId, f64)> {
    let mut with_slopes = model.clone();
    let states = (0..model.states.len() as u32).map(StateId);
    let slopes: Vec<(StateId, NodeId)> =
        states.filter_map(|s| Some((s, derivative(&mut with_slopes.graph, model.state(s).rate, s)?))).collect();
    let zero = with_slopes.graph.number(0.0, Dim::TIME);
    let step = with_slopes.graph.number(model.dt, Dim::TIME);
    let at_the_start = |node: Node| match node {
        Node::State(s) => Some(model.state(s).init),
        Node::Time | Node::StepTime => Some(zero),
        Node::StepLength => Some(step),
        _ => None,
    };
    let mut memo = HashMap::new();
    let mut found: Option<(StateId, f64)> = None;
    for (state, slope) in slopes {
        let slope = with_slopes.graph.replace(slope, &at_the_start, &mut memo);
        if let Ok(Value::Real(x)) = evaluate(&with_slopes, slope)
            && x < 0.0
            && x.is_finite()
            && found.is_none_or(|(_, tau)| -1.0 / x < tau)
        {
            found = Some((state, -1.0 / x));
        }
    }
    found
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
