//! What a run is to come near to: traces, and numbers that are read out of it.
//!
//! In come targets as they are written, and what a run records; out go [`Target`]s.
//! Never true here: two targets are the same.

use super::number::tenth;
use super::{Number, Observed, Runs, Trace};
use crate::data;
use crate::diag::{Code, Diagnostic};
use crate::hir::{Feature, FitTarget, Goal, Wanted};
use crate::simulate::Records;
use crate::units::{Dim, DisplayUnit, Unit};
use std::path::Path;

/// Something that a run is to come near to.
#[derive(Debug, Clone, PartialEq)]
pub enum Target {
    /// A trace that a record comes near to.
    Trace(Trace),
    /// A number of each cell.
    Number(Number),
}

impl Target {
    /// What it is called, and the unit that it is shown in.
    pub fn shown(&self, records: &Records) -> (String, DisplayUnit) {
        match self {
            Target::Trace(trace) => {
                let record = &records.series[trace.record];
                (record.name.clone(), record.unit.clone())
            }
            Target::Number(number) => {
                let of = match number.feature.of_spikes() {
                    true => &records.trains[number.of].population,
                    false => &records.series[number.of].name,
                };
                let unit = match number.feature.dim() {
                    Some(Dim::RATE) => DisplayUnit { name: "Hz".into(), exponent: -3 },
                    Some(dim) => dim.display_unit(),
                    None => records.series[number.of].unit.clone(),
                };
                let (first, last) = number.window;
                let from = if first > 0.0 { format!(" from {first} ms") } else { String::new() };
                let to = if last.is_finite() { format!(" to {last} ms") } else { String::new() };
                (format!("{}({of}){from}{to}", number.feature.name()), unit)
            }
        }
    }

    /// The root of the mean squared difference, in canonical units; infinite if a cell has no such number.
    pub fn off(&self, seen: Observed<'_>) -> f64 {
        match self {
            Target::Trace(trace) => trace.error(&seen.samples[trace.record]).0.sqrt(),
            Target::Number(number) => number.error(seen).1,
        }
    }
}

/// What targets as they are written mean in a run; files are relative to a directory.
pub fn targets(wanted: &[FitTarget], directory: &Path, run: &dyn Runs) -> Result<Vec<Target>, Vec<Diagnostic>> {
    let mut errors = Vec::new();
    let mut found: Vec<Target> = Vec::new();
    for one in wanted {
        match target(one, directory, run) {
            Ok(target) if found.iter().any(|other| same(other, &target)) => {
                let message = format!("`{}` is a target twice", target.shown(&run.outline().records).0);
                errors.push(placed(one, Diagnostic::without_place(Code::BadValue, message)));
            }
            Ok(target) => found.push(target),
            Err(error) => errors.push(placed(one, error)),
        }
    }
    if errors.is_empty() { Ok(found) } else { Err(errors) }
}

fn same(a: &Target, b: &Target) -> bool {
    match (a, b) {
        (Target::Trace(a), Target::Trace(b)) => a.record == b.record,
        (Target::Number(a), Target::Number(b)) => (a.feature, a.of, a.window) == (b.feature, b.of, b.window),
        (Target::Trace(_), Target::Number(_)) | (Target::Number(_), Target::Trace(_)) => false,
    }
}

/// With the place of the target, if it has one.
fn placed(one: &FitTarget, d: Diagnostic) -> Diagnostic {
    match one.span {
        Some(span) if d.labels.is_empty() => {
            Diagnostic { labels: Diagnostic::new(d.code, span, "", "of this target").labels, ..d }
        }
        Some(_) | None => d,
    }
}

/// How many cells, or compartments of cells, have a number.
pub fn cells(records: &Records, feature: Feature, of: usize) -> usize {
    if feature.of_spikes() { records.trains[of].cells } else { records.series[of].cells.len() }
}

fn target(one: &FitTarget, directory: &Path, run: &dyn Runs) -> Result<Target, Diagnostic> {
    let records = &run.outline().records;
    match &one.goal {
        Goal::Trace { file, column } => {
            let record = records.find(&one.of)?;
            let (path, times) = (directory.join(file), &run.outline().times[record]);
            let read = Trace::read(records, record, (&path, column.as_deref()), times).map(Target::Trace);
            read.map_err(|d| match d.message.ends_with(data::NOT_TWO) {
                true => d.help(format!("say which one has the values: `file(\"{file}\", column = \"...\")`")),
                false => d,
            })
        }
        Goal::Number { feature, window, value, within, dim } => {
            let of = if feature.of_spikes() { records.find_train(&one.of)? } else { records.find(&one.of)? };
            let times = if feature.of_spikes() { Vec::new() } else { run.outline().times[of].clone() };
            let value = match value {
                Wanted::Same(x) => vec![*x],
                Wanted::Each { file, unit } => {
                    let count = cells(records, *feature, of);
                    // The seed is that of draws.
                    let read =
                        data::numbers(file, count, 0, |_| format!("there are {count} cells to come near to them"))?;
                    read.into_iter().map(|x| x * unit).collect()
                }
            };
            let far = |value: &[f64]| {
                let message = format!("a tenth of nothing but zeros says nothing of how near `{}` is", one.of);
                let help = "say what counts as far, such as `within 2 Hz`";
                tenth(value).ok_or_else(|| Diagnostic::without_place(Code::BadValue, message).help(help))
            };
            let within = within.map_or_else(|| far(&value), Ok)?;
            let (window, duration) = (*window, run.outline().duration);
            let number = Number { feature: *feature, of, window, value, within, times, duration };
            let target = Target::Number(number);
            let (name, unit) = target.shown(records);
            if Unit::parse(&unit.name).map_or(Dim::ONE, |unit| unit.dim) != *dim {
                let message = format!("`{name}` is in {}, but its value here is {}", unit.name, dim.describe());
                return Err(Diagnostic::without_place(Code::DimensionMismatch, message));
            }
            let ends = window.1;
            if window.0 >= duration || ends.is_finite() && ends > duration * (1.0 + 1e-12) {
                let message = format!("`{name}` cannot be read out: the run ends at {duration} ms");
                let d = Diagnostic::without_place(Code::BadValue, message);
                return Err(match window.0 < duration {
                    true => d.help(format!(
                        "let the run last {ends} ms, or leave `to {ends} ms` out: a window without it lasts to the end"
                    )),
                    false => d,
                });
            }
            if let Target::Number(number) = &target
                && !feature.of_spikes()
                && records.series[of].around.is_none()
                && !number.times.iter().any(|t| number.is_within(*t))
            {
                let message = format!("`{}` has no sample for `{name}`", one.of);
                return Err(Diagnostic::without_place(Code::BadValue, message));
            }
            if let Target::Number(number) = &target
                && let Some(why) = number.cannot_be()
            {
                return Err(Diagnostic::without_place(Code::BadValue, format!("`{name}` {why}")));
            }
            if !feature.of_spikes() && records.series[of].around.is_some() {
                let message = format!("`{}` is recorded around spikes only, which has no such number", one.of);
                return Err(Diagnostic::without_place(Code::BadValue, message));
            }
            Ok(target)
        }
    }
}
