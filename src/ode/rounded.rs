//! Times that become whole steps.
//!
//! In comes a model; out go warnings where a delay or a refractory time is not a whole number of steps, by more than a hundredth of it, and
//! where listed times of spikes are not, by more than a hundredth of a step.
//! Never true here: a time is warned of that differs from edge to edge or from cell to cell.

use super::{Model, NodeId, Wait, evaluate};
use crate::diag::{Code, Diagnostic};
use crate::hir::{Domain, Method, shown};
use crate::operators::Value;
use crate::source::Span;
use crate::units::Dim;

/// What a time (ms) becomes in whole steps, if that is another by more than a hundredth.
pub fn in_steps(time: f64, dt: f64) -> Option<f64> {
    (!Domain::Steps.has(time, Some((dt, f64::INFINITY)))).then(|| (time / dt + 0.5).floor() * dt)
}

/// When a spike sent at a time (ms) counts, if that is another time by more than a hundredth of a step: the first step ends at `dt`.
pub fn at_the_end_of_a_step(time: f64, dt: f64) -> Option<f64> {
    let rounded = (time / dt + 0.5).floor().max(1.0) * dt;
    ((rounded - time).abs() > dt / 100.0).then_some(rounded)
}

/// Delays of projections and drives, listed times of spikes and refractory times that are the same for all.
pub fn rounded(model: &Model) -> Vec<Diagnostic> {
    // No time becomes steps where steps are as long as the error allows.
    if model.method == Method::Adaptive {
        return Vec::new();
    }
    let unit = Dim::TIME.display_unit();
    let number = |time: NodeId| match evaluate(model, time) {
        Ok(Value::Real(time)) => Some(time),
        Ok(_) | Err(_) => None,
    };
    let told = |message: String, (time, taken): (f64, f64), span: Span| {
        let taken = format!("{} become {}", shown(time, &unit), shown(taken, &unit));
        let d = Diagnostic::new(Code::DelayRounded, span, message, taken);
        d.note(format!("a step is {}", shown(model.dt, &unit)))
    };
    let warned = |what: String, time: NodeId, span: Span| {
        let time = number(time)?;
        let taken = in_steps(time, model.dt)?;
        Some(told(format!("{what} is not a whole number of steps"), (time, taken), span))
    };
    let delays = model
        .projections
        .iter()
        .filter(|p| p.is_first())
        .map(|p| warned(format!("the delay of `{}`", p.name), p.delay, p.span));
    let of_drives = model.waits.iter().filter(|w| !w.since_start);
    let waits = of_drives.map(|w| warned(format!("the delay of `{}`", w.drive), w.time, w.span));
    let refractory = model.populations.iter().filter_map(|p| {
        let spike = p.spike.as_ref()?;
        warned(format!("the refractory time of `{}`", p.name), spike.refractory?, spike.span)
    });
    // One message for each list, which stands in one piece.
    let listed: Vec<_> = model.waits.iter().filter(|w| w.since_start).collect();
    let lists = listed.chunk_by(|a, b| a.drive == b.drive).filter_map(|list| {
        let off = |w: &&&Wait| number(w.time).and_then(|time| at_the_end_of_a_step(time, model.dt)).is_some();
        let (first, count) = (list.iter().find(off)?, list.iter().filter(off).count());
        let message = format!("{count} of {} times of `{}` are not whole numbers of steps", list.len(), first.drive);
        let time = number(first.time)?;
        Some(told(message, (time, at_the_end_of_a_step(time, model.dt)?), first.span))
    });
    delays.chain(waits).flatten().chain(refractory).chain(lists).collect()
}
