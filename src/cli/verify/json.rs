//! The JSON of `neuroc verify`.
//!
//! In come all runs and their judgements; out goes one object.
//! Never true here: a key that was once there has gone, or means something else.

use super::engines::EngineColumn;
use super::extras::Extras;
use super::runs::Parts;
use super::words::verdict;
use super::{Column, Report};
use crate::compare::judge::{self, Convergence, Judgement, Meeting};
use crate::compare::{Difference, Kind, Shift};
use crate::hir::Method;
use crate::results::RunResult;
use serde_json::{Value, json};

/// The same as one object. `engines` is what it was before there were other runs.
pub fn summary(report: &Report) -> Value {
    let engines: Vec<Value> = report.engines.iter().map(|e| engine_json(report, e)).collect();
    let verdict: Vec<String> = verdict(report).into_iter().map(|(what, words)| format!("{what}: {words}")).collect();
    let mut out = json!({
        "reference": "interp f64, no passes",
        "engines": engines,
        "verdict": verdict,
        "judgements": report.judgements.iter().map(judgement_json).collect::<Vec<_>>(),
    });
    out["runs"] = match &report.extras {
        Ok(extras) => json!(runs_json(report, extras)),
        Err(_) => json!([]),
    };
    out
}

fn engine_json(report: &Report, engine: &EngineColumn) -> Value {
    let mut out = column_json(&report.reference, &engine.column);
    out["engine"] = json!(engine.name);
    out["judgement"] = json!(engine.judged.as_ref().map(|judged| match judged {
        judge::Engine::Rounding => "rounding",
        judge::Engine::Sensitive => "sensitive",
        judge::Engine::Differs { .. } => "differs",
    }));
    out
}

fn runs_json(report: &Report, extras: &Extras) -> Vec<Value> {
    let model = &report.model;
    let run = |kind: &str, method: Method, dt: f64, column: &Column| {
        let mut out = column_json(&extras.base, column);
        out["run"] = json!(kind);
        out["method"] = json!(method.name());
        out["dt_ms"] = json!(dt);
        out["engine"] = json!(format!("{} f64", extras.engine));
        out
    };
    let parts = [Parts::Two, Parts::Four];
    let mut out = Vec::new();
    if let Ok(columns) = &extras.halved {
        out.extend(parts.iter().zip(columns).map(|(p, c)| run("step", model.method, model.dt / p.count(), c)));
    }
    if let Ok((method, columns)) = &extras.other {
        out.extend(parts.iter().zip(columns).map(|(p, c)| run("method", *method, model.dt / p.count(), c)));
    }
    out.push(run("moved", model.method, model.dt, &extras.moved));
    out
}

/// What a run differs by; `not_finite` if it did not come to its end.
fn column_json(base: &RunResult, column: &Column) -> Value {
    let Some(differences) = &column.differences else {
        return json!({ "variables": [], "spikes": [], "not_finite": column.ended.failure() });
    };
    let variables = base.series.iter().zip(&differences.variables);
    let spikes = base.spikes.iter().zip(&differences.spikes);
    json!({
        "variables": variables.map(|(s, Difference { apart, part })| json!({
            "name": s.name, "unit": s.unit, "difference": apart, "part": part,
        })).collect::<Vec<_>>(),
        "spikes": spikes.map(|(s, shift)| match shift {
            Shift::By(time) => json!({"population": s.population, "count": s.t.len(), "shift_ms": time}),
            Shift::Count(count) => json!({"population": s.population, "count": count, "expected_count": s.t.len()}),
        }).collect::<Vec<_>>(),
    })
}

fn judgement_json(j: &Judgement) -> Value {
    let kind = match j.kind {
        Kind::Trace => "variable",
        Kind::Spikes => "spikes",
    };
    let mut out = json!({ "name": j.name, "unit": j.unit, "of": kind });
    if let Some(step) = j.step {
        let (verdict, order) = match step.convergence {
            Convergence::Rounding => ("rounding", None),
            Convergence::Order(order) => ("converges", Some(order)),
            Convergence::Leaps => ("leaps", None),
            Convergence::Sensitive => ("sensitive", None),
            Convergence::Unsettled(order) => ("not settled", Some(order)),
        };
        out["step"] = json!({ "verdict": verdict, "order": order, "error": step.error, "until_ms": step.until });
    }
    if let Some(method) = j.method {
        out["method"] = match method {
            Meeting::Same(distance) => json!({ "verdict": "same", "distance": distance }),
            Meeting::Open { until } => json!({ "verdict": "open", "until_ms": until }),
            Meeting::Apart { since, distances, confirmed } => {
                json!({ "verdict": "apart", "since_ms": since, "distances": distances, "confirmed": confirmed })
            }
            Meeting::Missing { since, spikes, confirmed } => {
                json!({ "verdict": "missing spikes", "since_ms": since, "spikes": spikes, "confirmed": confirmed })
            }
        };
    }
    if let Some(s) = j.sensitivity {
        out["moved"] = json!({ "distance": s.distance, "growth": s.growth, "sensitive": s.sensitive });
    }
    out
}
