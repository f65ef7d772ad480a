//! The table of `neuroc verify`.
//!
//! In come all runs and their judgements; out goes text, with the verdict below it.
//! Never true here: something is judged.

use super::extras::Extras;
use super::words::{few, verdict};
use super::{Column, Report};
use crate::compare::Shift;
use crate::compare::judge::{Convergence, Judgement};
use crate::engine::moved::MOVED;
use crate::results::RunResult;
use crate::simulate::moment;
use std::fmt::Write;

/// The table and the verdict.
pub fn table(report: &Report) -> String {
    let mut out = String::new();
    if !report.engines.is_empty() {
        out += "largest difference from the interpreter without passes\n";
        let engines = report.engines.iter().map(|e| (e.name.clone(), cells(&report.reference, &e.column)));
        out += &columns(&report.reference, engines.collect());
        out.push('\n');
    }
    if let Ok(extras) = &report.extras {
        let (method, dt) = (report.model.method.name(), moment(1, report.model.dt));
        let engine = extras.engine;
        // Writing to a string cannot fail.
        let _ = writeln!(out, "largest difference from {method} at {dt} ms ({engine} f64)");
        out += &columns(&extras.base, extra_columns(report, extras));
        out.push('\n');
    }
    out += "verdict\n";
    for (what, words) in verdict(report) {
        let _ = writeln!(out, "{what:12}{words}");
    }
    out
}

/// A row for each recorded thing, a column for each run.
fn columns(base: &RunResult, columns: Vec<(String, Vec<String>)>) -> String {
    let names = base.series.iter().map(|s| format!("{} ({})", s.name, s.unit));
    let trains = base.spikes.iter().map(|s| format!("spikes of {} ({}), ms", s.population, s.t.len()));
    let names: Vec<String> = names.chain(trains).collect();
    let width = names.iter().map(|name| name.chars().count()).max().map_or(0, |w| w + 2);
    let mut out = format!("{:width$}", "");
    let widths: Vec<usize> = columns.iter().map(|(head, _)| (head.chars().count() + 2).max(14)).collect();
    let row = |out: &mut String, texts: Vec<&str>| {
        for (text, width) in texts.iter().zip(&widths) {
            // Writing to a string cannot fail.
            let _ = write!(out, "{text:>width$}");
        }
        out.push('\n');
    };
    row(&mut out, columns.iter().map(|(head, _)| head.as_str()).collect());
    for (at, name) in names.iter().enumerate() {
        let _ = write!(out, "{name:width$}");
        row(&mut out, columns.iter().map(|(_, cells)| cells[at].as_str()).collect());
    }
    out
}

/// What a run shows in each row.
fn cells(base: &RunResult, column: &Column) -> Vec<String> {
    let Some(differences) = &column.differences else {
        return vec!["not finite".into(); base.series.len() + base.spikes.len()];
    };
    let variables = differences.variables.iter().map(|d| format!("{:.1e}", d.apart));
    let spikes = differences.spikes.iter().map(|shift| match shift {
        Shift::By(time) => format!("{time:.3}"),
        Shift::Count(count) => format!("{count} spikes"),
    });
    variables.chain(spikes).collect()
}

fn extra_columns(report: &Report, extras: &Extras) -> Vec<(String, Vec<String>)> {
    let base = &extras.base;
    let judged = |text: &dyn Fn(&Judgement) -> Option<String>| {
        report.judgements.iter().map(|j| text(j).unwrap_or_else(|| "-".into())).collect::<Vec<String>>()
    };
    let mut out = Vec::new();
    if let Ok([half, quarter]) = &extras.halved {
        out.push(("at dt/2".into(), cells(base, half)));
        out.push(("at dt/4".into(), cells(base, quarter)));
        let order = |j: &Judgement| match j.step?.convergence {
            Convergence::Order(order) | Convergence::Unsettled(order) => Some(format!("{order:.1}")),
            Convergence::Rounding | Convergence::Leaps | Convergence::Sensitive => None,
        };
        out.push(("order".into(), judged(&order)));
    }
    if let Ok((method, [_, quarter])) = &extras.other {
        out.push((format!("{}, dt/4", method.name()), cells(base, quarter)));
    }
    out.push((format!("moved {MOVED:e}"), cells(base, &extras.moved)));
    out.push(("grows by".into(), judged(&|j| j.sensitivity?.growth.map(few))));
    out
}
