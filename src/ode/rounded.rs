//! Times that become whole steps.
//!
//! In comes a model; out go warnings where a delay or a refractory time is not a whole number of steps, by more than a hundredth of it.
//! Never true here: a time is warned of that differs from edge to edge or from cell to cell.

use super::{Model, NodeId, evaluate};
use crate::diag::{Code, Diagnostic};
use crate::hir::{Method, shown};
use crate::operators::Value;
use crate::source::Span;
use crate::units::Dim;

/// What a time (ms) becomes in whole steps, if that is another by more than a hundredth.
pub fn in_steps(time: f64, dt: f64) -> Option<f64> {
    let steps = (time / dt + 0.5).floor();
    let rounded = steps * dt;
    (steps >= 1.0 && (rounded - time).abs() > time / 100.0).then_some(rounded)
}

/// Delays of projections and drives and refractory times that are the same for all.
pub fn rounded(model: &Model) -> Vec<Diagnostic> {
    // No time becomes steps where steps are as long as the error allows.
    if model.method == Method::Adaptive {
        return Vec::new();
    }
    let unit = Dim::TIME.display_unit();
    let warned = |what: String, time: NodeId, span: Span| {
        let Ok(Value::Real(time)) = evaluate(model, time) else { return None };
        let taken = in_steps(time, model.dt)?;
        let message = format!("{what} is not a whole number of steps");
        let taken = format!("{} become {}", shown(time, &unit), shown(taken, &unit));
        let d = Diagnostic::new(Code::DelayRounded, span, message, taken);
        Some(d.note(format!("a step is {}", shown(model.dt, &unit))))
    };
    let delays = model
        .projections
        .iter()
        .filter(|p| p.is_first())
        .map(|p| warned(format!("the delay of `{}`", p.name), p.delay, p.span));
    let waits = model.waits.iter().map(|w| warned(format!("the delay of `{}`", w.drive), w.delay, w.span));
    let refractory = model.populations.iter().filter_map(|p| {
        let spike = p.spike.as_ref()?;
        warned(format!("the refractory time of `{}`", p.name), spike.refractory?, spike.span)
    });
    delays.chain(waits).flatten().chain(refractory).collect()
}
