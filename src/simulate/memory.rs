//! How much memory a run takes, estimated before anything is made for it.
//!
//! In come a model, a program of it and its extent; out go numbers of bytes.
//! Never true here: memory is asked for.

use super::edges;
use super::extent::Extent;
use super::records::{interval, recorded};
use super::time::Grid;
use crate::ode::{self, Model};
use crate::step::{Field, FieldKind, Program, Value};
use std::ops::Range;

/// How many bytes a run takes, about: what the engine keeps for the cells in numbers of `real` bytes, and what is recorded. A `device` has a sum for
/// every step that something is on its way.
pub fn memory(model: &Model, program: &Program, extent: &Extent, real: usize, device: bool) -> (f64, f64) {
    let kept = |field: &Field| match field.kind {
        FieldKind::State | FieldKind::Const | FieldKind::Output | FieldKind::Data => {
            // What edges have is counted with them.
            field.over.and_then(|space| extent.cells.get(space.0 as usize)).map_or(0.0, |cells| (cells * real) as f64)
        }
        FieldKind::Uniform | FieldKind::Series | FieldKind::Temp | FieldKind::Event => 0.0,
    };
    let kept: f64 = program.fields.iter().map(kept).sum();
    let connections = model.connections.iter().map(|c| {
        let cells = extent.cells[c.here.population] as f64;
        // The list and the table that a kernel reads; the order; and what travels, before and after a step.
        edges::expected(model, extent, c) * 8.0 + cells * (16.0 + 3.0 * real as f64)
    });
    let projections = model.projections.iter().enumerate().map(|(at, p)| {
        // Of delays that are drawn it is not known before how long they are, and they are short.
        let steps = match ode::evaluate(model, p.delay) {
            Ok(Value::Real(delay)) => delay / extent.grid.dt + 1.0,
            Ok(Value::Single(_) | Value::Mask(_)) | Err(_) => 32.0,
        };
        // The list, the rows that events take, a weight; or what is remembered, now and at the beginning, and where the edge leads.
        let each = match &p.plasticity {
            None => 6.0 + real as f64,
            Some(plasticity) => 32.0 + 2.0 * real as f64 * (plasticity.states.len() + 1) as f64,
        };
        let edges = edges::expected_events(model, extent, p);
        // Where the edges of each delay stand in the row of a sender; sums of what arrives.
        let runs = 12.0 * edges.min(extent.cells[p.from] as f64 * steps);
        let rows = if device { steps } else { 1.0 };
        let sums = if p.arrives as usize == at { extent.cells[p.to] as f64 * rows * real as f64 } else { 0.0 };
        edges * each + runs + sums
    });
    let connected: f64 = connections.chain(projections).sum();
    let (waiting, recorded) = samples(model, extent);
    (kept + connected + waiting * size_of::<f64>() as f64, recorded * size_of::<f64>() as f64)
}

/// How many numbers wait for spikes, and how many are recorded. How many are kept of a record around spikes nobody knows; for as long as its
/// window reaches back, all of them wait. What is wrong with a record is said when the run begins.
fn samples(model: &Model, extent: &Extent) -> (f64, f64) {
    let Grid { dt, steps } = extent.grid;
    let edges = |projection: usize| edges::expected_events(model, extent, &model.projections[projection]) as usize;
    let records = model.records.iter().zip(recorded(model, &extent.cells, &edges).unwrap_or_default());
    let back = model.records.iter().filter_map(|r| r.around.as_ref()).map(|around| -around.window.0.min(0.0) / dt);
    let back = back.fold(0.0, f64::max).min(steps as f64);
    let of_record = |(r, (_, cells)): (&ode::Record, (String, Range<usize>))| {
        let (cells, interval) = (cells.len() as f64, interval(r, dt));
        let kept = if r.around.is_some() { 0.0 } else { (steps / interval + 1) as f64 };
        (cells * back / interval as f64, cells * kept)
    };
    records.map(of_record).fold((0.0, 0.0), |sum, one| (sum.0 + one.0, sum.1 + one.1))
}
