//! The verdict of `neuroc verify` in words.
//!
//! In come all runs and their judgements; out goes a line for each engine, for the step, for the method and for moved states.
//! Never true here: something is judged.

use super::engines::EngineColumn;
use super::runs::{Ended, Parts};
use super::{Report, apart};
use crate::compare::judge::{self, Convergence, Judgement, Meeting};
use crate::compare::{Differences, Kind, Shift};
use crate::engine::moved::MOVED;
use crate::hir::Method;
use crate::ode;
use crate::simulate::moment;

/// Two digits; very large and very small numbers with an exponent.
pub fn few(x: f64) -> String {
    let rounded = format!("{x:.1e}");
    match rounded.parse::<f64>() {
        Ok(near) if near == 0.0 || (1e-3..1e5).contains(&near.abs()) => near.to_string(),
        Ok(_) | Err(_) => rounded,
    }
}

/// A smaller step, in ms.
pub fn step(model: &ode::Model, parts: Parts) -> String {
    moment(1, model.dt / parts.count())
}

/// What is verified, and what is true of it.
pub fn verdict(report: &Report) -> Vec<(String, String)> {
    let mut out: Vec<(String, String)> = report.engines.iter().map(|e| (e.name.clone(), engine_words(e))).collect();
    let extras = match &report.extras {
        Ok(extras) => extras,
        Err(why) => {
            out.extend(["step", "method", "moved"].map(|what| (what.into(), why.clone())));
            return out;
        }
    };
    let step = match &extras.halved {
        Ok(columns) => failure(columns.iter().map(|column| &column.ended).chain(&extras.finest[0]))
            .unwrap_or_else(|| step_words(report)),
        Err(why) => why.clone(),
    };
    let method = match &extras.other {
        Ok((method, _)) => method_words(report, method.name()),
        Err(why) => why.clone(),
    };
    let moved = failure([&extras.moved.ended]).unwrap_or_else(|| moved_words(report));
    out.extend([("step".into(), step), ("method".into(), method), ("moved".into(), moved)]);
    out
}

fn failure<'e>(runs: impl IntoIterator<Item = &'e Ended>) -> Option<String> {
    runs.into_iter().find_map(Ended::failure).map(|message| format!("fails: {message}"))
}

fn engine_words(engine: &EngineColumn) -> String {
    let Some(differences) = &engine.column.differences else {
        return format!("fails: {}", engine.column.ended.failure().map_or("it did not run", |message| message));
    };
    let part = differences.variables.iter().map(|d| if d.part.is_nan() { f64::INFINITY } else { d.part });
    let part = part.reduce(f64::max);
    let far = part.map_or(String::new(), |part| format!("{} of a variable's largest value", few(part)));
    let leaps = part.is_some_and(|part| part > 0.01);
    let agrees = match part {
        None => "agrees".into(),
        Some(_) if leaps => format!("agrees but where it leaps, {far}"),
        Some(_) => format!("agrees within {far}"),
    };
    let spikes = spike_words(differences);
    match &engine.judged {
        None | Some(judge::Engine::Rounding) => agrees + &spikes,
        Some(judge::Engine::Sensitive) => format!("{agrees}{spikes}: what the model makes of rounding, see `moved`"),
        Some(judge::Engine::Differs { name, since }) => {
            let since = moment(1, *since);
            let far = if far.is_empty() { far } else { format!(" by {far}") };
            format!("DIFFERS{far}{spikes}: in `{name}` from {since} ms on, more than rounding and sensitivity explain")
        }
    }
}

/// How near spikes are, if they are recorded.
fn spike_words(differences: &Differences) -> String {
    let mut most: Option<f64> = None;
    for shift in &differences.spikes {
        match shift {
            Shift::Count(_) => return ", not the same number of spikes".into(),
            Shift::By(time) => most = Some(most.map_or(*time, |known| known.max(*time))),
        }
    }
    match most {
        None => String::new(),
        Some(0.0) => ", spikes equal".into(),
        Some(time) => format!(", spikes within {} ms", few(time)),
    }
}

/// The worst quantity first: traces by their part of the range, then spikes.
fn worst_step<'r>(report: &'r Report, chosen: &dyn Fn(Convergence) -> bool) -> Option<(&'r Judgement, judge::Step)> {
    let of = |j: &'r Judgement| j.step.filter(|s| chosen(s.convergence)).map(|s| (j, s));
    report.judgements.iter().filter_map(of).max_by(|a, b| part(a.0, a.1.error).total_cmp(&part(b.0, b.1.error)))
}

fn step_words(report: &Report) -> String {
    let dt = moment(1, report.model.dt);
    if report.judgements.is_empty() {
        return "nothing is recorded that could tell".into();
    }
    let smaller = format!("try --dt {}ms", step(&report.model, Parts::Four));
    if let Some((j, s)) = worst_step(report, &|c| matches!(c, Convergence::Unsettled(_))) {
        return format!(
            "NOT SETTLED: differences in `{}` do not fall as {dt} ms is halved four times, {} on average; {smaller}",
            j.name,
            quantity(s.error, j)
        );
    }
    let error = step_error(report);
    let orders = report.judgements.iter().filter_map(|j| match j.step?.convergence {
        Convergence::Order(order) => Some(order),
        Convergence::Rounding | Convergence::Leaps | Convergence::Sensitive | Convergence::Unsettled(_) => None,
    });
    if let Some(order) = orders.reduce(f64::min) {
        let full = report.model.method.order();
        let jumps = order < f64::from(full) - 0.5;
        let at_best = match report.model.method {
            Method::CrankNicolson => "at best",
            _ => "where nothing jumps",
        };
        let less = if jumps { format!(" (of {full}, {at_best})") } else { String::new() };
        let until = report.judgements.iter().filter_map(|j| j.step?.until).reduce(f64::min).map(|t| moment(1, t));
        let until = until.map_or(String::new(), |t| format!("; from {t} ms on it is as large as what is computed"));
        if apart(&report.judgements) {
            return format!("converges with order {order:.1}{less}, but not to what `method` says");
        }
        return format!("converges with order {order:.1}{less}; {error}{until}");
    }
    if let Some((j, _)) = worst_step(report, &|c| c == Convergence::Sensitive) {
        return format!("differences in `{}` are what the model makes of any change, see `moved`; {error}", j.name);
    }
    if let Some((j, s)) = worst_step(report, &|c| c == Convergence::Leaps) {
        let when = s.until.map_or(String::new(), |t| format!(" from {} ms on", moment(1, t)));
        let name = &j.name;
        return format!("differences in `{name}` come in leaps{when}, so no order can be seen: {smaller}; {error}");
    }
    format!("makes no difference beyond rounding (spikes belong to ends of steps) as {dt} ms is halved twice; {error}")
}

/// The error of the step: on average, for the trace where it matters most, and for spikes.
fn step_error(report: &Report) -> String {
    let traces = report.judgements.iter().filter(|j| j.kind == Kind::Trace).filter_map(|j| Some((j, j.step?.error)));
    let worst = traces.max_by(|a, b| part(a.0, a.1).total_cmp(&part(b.0, b.1)));
    let mut errors = Vec::new();
    if let Some((j, error)) = worst {
        let percent = few(100.0 * part(j, error));
        errors.push(format!("{} on average in `{}`, {percent} % of its range", quantity(error, j), j.name));
    }
    errors.extend(spike_error(report));
    format!("its error at {} ms is about {}", moment(1, report.model.dt), errors.join(", and "))
}

/// How spikes differ at the smallest step.
fn spike_error(report: &Report) -> Option<String> {
    let extras = report.extras.as_ref().ok()?;
    let differences = extras.halved.as_ref().ok()?[1].differences.as_ref()?;
    let mut most: Option<f64> = None;
    for (train, shift) in extras.base.spikes.iter().zip(&differences.spikes) {
        match shift {
            Shift::Count(count) => {
                return Some(format!("{} instead of {count} spikes of `{}`", train.t.len(), train.population));
            }
            Shift::By(time) => most = Some(most.map_or(*time, |known| known.max(*time))),
        }
    }
    most.map(|time| format!("{} ms in spikes", few(time)))
}

/// A distance with its unit.
fn quantity(x: f64, j: &Judgement) -> String {
    if j.unit == "1" { few(x) } else { format!("{} {}", few(x), j.unit) }
}

fn method_words(report: &Report, other: &str) -> String {
    let own = report.model.method.name();
    let mut open: Option<f64> = None;
    let mut same: Option<(&Judgement, f64)> = None;
    for j in &report.judgements {
        match j.method {
            Some(Meeting::Apart { since, distances, confirmed }) => {
                let distances: Vec<f64> = distances.into_iter().chain(confirmed).collect();
                return apart_words(report, other, j, since, &distances);
            }
            Some(Meeting::Missing { since, spikes, confirmed }) => {
                return missing_words(report, other, j, since, spikes, confirmed);
            }
            Some(Meeting::Open { until }) => open = Some(open.map_or(until, |t| t.min(until))),
            Some(Meeting::Same(distance)) => {
                let farther = same.is_none_or(|known| part(j, distance) > part(known.0, known.1));
                same = if farther { Some((j, distance)) } else { same };
            }
            None => {}
        }
    }
    let smallest = step(&report.model, Parts::Four);
    let same = same.map(|(j, distance)| {
        let distance = quantity(distance, j);
        format!(
            "{own} and {other} go to the same solution: {distance} apart on average in `{}` at {smallest} ms",
            j.name
        )
    });
    let hidden = "the errors of their steps hide more, and a smaller --dt tells";
    let open = open.map(|t| moment(1, t));
    match (same, open) {
        (None, None) => "nothing is recorded that could tell".into(),
        (Some(same), None) => same,
        (Some(same), Some(t)) => format!("{same}; from {t} ms on {hidden}"),
        (None, Some(t)) => format!("{own} and {other} go together until {t} ms; from there on {hidden}"),
    }
}

fn apart_words(report: &Report, other: &str, j: &Judgement, since: f64, distances: &[f64]) -> String {
    let own = report.model.method.name();
    let what = match j.kind {
        Kind::Trace => format!("`{}` stays away", j.name),
        Kind::Spikes => format!("spikes of `{}` stay away", j.name),
    };
    let unit = if j.unit == "1" { String::new() } else { format!(" {}", j.unit) };
    let away: Vec<String> = distances.iter().copied().map(few).collect();
    let parts = [Parts::Two, Parts::Four, Parts::Sixteen].into_iter().map(|parts| step(&report.model, parts));
    let steps: Vec<String> = std::iter::once(moment(1, report.model.dt)).chain(parts).take(away.len()).collect();
    format!(
        "{own} DOES NOT CONVERGE to what {other} gives: from {} ms on, {what}, on average by {}{unit} with steps of {} ms; \
         the method or a formula is at fault, not the step",
        moment(1, since),
        away.join(", "),
        steps.join(", ")
    )
}

fn missing_words(
    report: &Report,
    other: &str,
    j: &Judgement,
    since: f64,
    [own_spikes, others]: [usize; 2],
    confirmed: bool,
) -> String {
    let own = report.model.method.name();
    let smallest = step(&report.model, if confirmed { Parts::Sixteen } else { Parts::Four });
    let spikes = if own_spikes == 1 { "spike" } else { "spikes" };
    let lacks = if own_spikes < others { own } else { other };
    let steps = match lacks == Method::Adaptive.name() {
        true => "its steps may leap over what is short: a shorter `--max-step` tells",
        false => "a smaller --dt tells",
    };
    format!(
        "SPIKES ARE MISSING: {own} has {own_spikes} {spikes} of `{}` and {other} has {others}, from {} ms on, with steps of {smallest} ms, \
         too; {lacks} misses something, {steps}",
        j.name,
        moment(1, since)
    )
}

/// A distance as part of what the quantity does.
fn part(j: &Judgement, distance: f64) -> f64 {
    if j.range > 0.0 { distance / j.range } else { 0.0 }
}

fn moved_words(report: &Report) -> String {
    let all = || report.judgements.iter().filter_map(|j| Some((j, j.sensitivity?)));
    let growth = all().filter_map(|(j, s)| Some((j, s, s.growth?))).max_by(|a, b| a.2.total_cmp(&b.2));
    let spikes = all().filter(|(j, s)| j.kind == Kind::Spikes && s.sensitive);
    let spikes = spikes.max_by(|a, b| a.1.distance.total_cmp(&b.1.distance));
    let moved = format!("every state by {MOVED:e} now and then");
    match (growth, spikes) {
        (Some((j, s, growth)), _) if s.sensitive => {
            let distance = quantity(s.distance, j);
            format!(
                "{moved} grows by {} to {distance} in `{}`: SENSITIVE, any rounding does the same",
                few(growth),
                j.name
            )
        }
        (_, Some((j, s))) => {
            let distance = quantity(s.distance, j);
            format!("{moved} makes {distance} in spikes of `{}`: SENSITIVE, any rounding does the same", j.name)
        }
        (Some((_, _, growth)), None) => format!("{moved} grows by {} at most: not sensitive", few(growth)),
        (None, None) if all().next().is_some() => format!("{moved} moves no spike by more than a step: not sensitive"),
        (None, None) => "nothing is recorded that could tell".into(),
    }
}
