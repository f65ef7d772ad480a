//! The text of a page: what was run, tables, the model.
//!
//! In come thinned results and what is known of the run; out goes markup around the plots.
//! Never true here: a text of a model or a result that is not escaped.

use super::data::{self, PANELS};
use super::thin::Thinned;
use super::{About, code};
use crate::plot::unit;
use crate::results::{self, Parameter, ParameterValues, RunResult, SpikeTrain};
use serde_json::Value;

/// Rows of a table.
const ROWS: usize = 1000;
/// Bytes of the model's text.
const TEXT: usize = 120_000;
/// The text of a longer file is folded.
const FOLDED: usize = 400;

/// What stands before and after the plots.
pub struct Parts {
    pub before: String,
    pub after: String,
}

/// Text as markup.
pub fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out += "&amp;",
            '<' => out += "&lt;",
            '>' => out += "&gt;",
            '"' => out += "&quot;",
            '\'' => out += "&#39;",
            // What no text on a page may hold.
            '\0'..='\u{8}' | '\u{b}' | '\u{c}' | '\u{e}'..='\u{1f}' | '\u{7f}' => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}

/// Everything but the plots.
pub fn parts(thinned: &Thinned, about: &About, title: &str, window: (f64, f64)) -> Parts {
    let result = thinned.result();
    let sections =
        [spikes(result, window), records(thinned), parameters(result), origin(result, about), model(about, result)];
    let sections: Vec<(&str, &str, String)> = sections.into_iter().flatten().collect();
    let mut before = format!("<header>\n<h1>{}</h1>\n", escaped(title));
    if let Some(docs) = docs(about) {
        before += &format!("<p class=\"about\">{}</p>\n", escaped(&docs));
    }
    before += &format!("<p class=\"summary\">{}</p>\n", escaped(&summary(result, about)));
    if result.meta.get("complete") == Some(&Value::Bool(false)) {
        before += "<p class=\"warn\">The run was stopped before its end.</p>\n";
    }
    before += "<nav aria-label=\"parts of the page\"><a href=\"#plots-head\">Plots</a>";
    for (id, name, _) in &sections {
        before += &format!("<a href=\"#{id}\">{name}</a>");
    }
    before += "</nav>\n</header>\n";
    let section =
        |(id, name, body): &(&str, &str, String)| format!("<section id=\"{id}\">\n<h2>{name}</h2>\n{body}</section>\n");
    Parts { before, after: sections.iter().map(section).collect() }
}

type Section = Option<(&'static str, &'static str, String)>;

/// What the model's file says at its head.
fn docs(about: &About) -> Option<String> {
    let lines = about.sources.first()?.text.lines().map_while(|line| line.strip_prefix("//!"));
    let mut out = String::new();
    for line in lines {
        match (line.trim(), out.is_empty() || out.ends_with('\n')) {
            ("", true) => {}
            ("", false) => out.push('\n'),
            (text, true) => out += text,
            (text, false) => out = out + " " + text,
        }
    }
    let out = out.trim().to_owned();
    if out.is_empty() { None } else { Some(out) }
}

/// The run in a line.
fn summary(result: &RunResult, about: &About) -> String {
    let option = |name: &str| result.meta.get("options").and_then(|options| options.get(name));
    let text = |name: &str| option(name).and_then(Value::as_str);
    // Compartments and synapses are populations, too, which have dots in their names.
    let cells: usize = result.populations.iter().filter(|p| !p.name.contains('.')).map(|p| p.cells).sum();
    // Tolerances are those of steps that choose their length.
    let adaptive = option("rtol").is_some();
    let mut said = Vec::new();
    if cells > 0 {
        said.push(plural(cells as u64, "cell"));
    }
    if let (Some(steps), Some(dt)) =
        (result.meta.get("steps").and_then(Value::as_u64), option("dt_ms").and_then(Value::as_f64))
    {
        let (from, _) = result.extent();
        let time = number(steps as f64 * dt - from);
        let from = if from > 0.0 { format!(" from {} ms on", number(from)) } else { String::new() };
        let steps = if adaptive { String::new() } else { format!(" in steps of {} ms", number(dt)) };
        said.push(format!("{time} ms{from}{steps}"));
    }
    said.extend(text("method").map(str::to_owned));
    for (name, unit) in [("rtol", ""), ("atol", ""), ("max_step_ms", " ms")].into_iter().filter(|_| adaptive) {
        let shown = name.trim_end_matches("_ms").replace('_', " ");
        said.extend(option(name).and_then(Value::as_f64).map(|value| format!("{shown} {value}{unit}")));
    }
    said.extend(result.meta.get("trained").and_then(Value::as_str).map(|file| format!("with what learned in {file}")));
    if let Some(engine) = text("engine") {
        let precision = text("precision").map_or(String::new(), |p| format!(" in {p}"));
        said.push(format!("{engine} engine{precision}"));
    }
    if let Some(took) = &about.took {
        said.push(format!("computed in {} s", seconds(took.run_s)));
    }
    if !result.spikes.is_empty() {
        said.push(plural(result.spikes.iter().map(|train| train.t.len() as u64).sum(), "spike"));
    }
    said.join(" · ")
}

/// The spikes of each population in numbers.
fn spikes(result: &RunResult, window: (f64, f64)) -> Section {
    let span = (window.1 - window.0) / 1e3;
    let row = |train: &SpikeTrain| {
        let mut counts = vec![0u64; train.cells];
        let (mut last, mut sums) = (vec![f64::NAN; train.cells], vec![(0.0, 0.0); train.cells]);
        for (&t, &cell) in train.t.iter().zip(&train.i) {
            let Some(count) = counts.get_mut(cell as usize) else { continue };
            *count += 1;
            let interval = t - std::mem::replace(&mut last[cell as usize], t);
            if interval.is_finite() {
                sums[cell as usize].0 += interval;
                sums[cell as usize].1 += interval * interval;
            }
        }
        let active = counts.iter().filter(|&&n| n > 0).count();
        let hertz = |n: f64| short(n / span);
        // Of two intervals and more.
        let variation = counts.iter().zip(&sums).filter(|&(&n, _)| n > 2).map(|(&n, &(sum, squares))| {
            let intervals = (n - 1) as f64;
            let mean: f64 = sum / intervals;
            (squares / intervals - mean * mean).max(0.0).sqrt() / mean
        });
        let unrounded = variation.map(|cv| if cv < results::ROUNDED_CV { 0.0 } else { cv });
        let variations: Vec<f64> = unrounded.filter(|cv| cv.is_finite()).collect();
        let intervals = counts.iter().map(|n| n.saturating_sub(1)).sum::<u64>();
        let mean = |sum: f64, n: f64| if n > 0.0 { short(sum / n) } else { "–".to_owned() };
        let cells = [
            format!("<td class=\"name\">{}</td>", escaped(&train.population)),
            amount(train.cells),
            amount(train.t.len()),
            amount(active),
            right(hertz(train.t.len() as f64 / train.cells.max(1) as f64)),
            right(hertz(counts.iter().min().copied().unwrap_or(0) as f64)),
            right(hertz(counts.iter().max().copied().unwrap_or(0) as f64)),
            right(mean(sums.iter().map(|s| s.0).sum(), intervals as f64)),
            right(mean(variations.iter().sum(), variations.len() as f64)),
        ];
        cells.concat()
    };
    let names = [
        "population",
        "cells",
        "spikes",
        "cells that spike",
        "mean rate (Hz)",
        "least (Hz)",
        "largest (Hz)",
        "mean interval (ms)",
        "CV of intervals",
    ];
    let table = table(&names, 1, result.spikes.iter().map(|train| (false, row(train))))?;
    let over = format!(
        "<p class=\"note\">Rates are over {} to {} ms. The coefficient of variation is the mean of those of cells with three spikes and more.</p>\n",
        number(window.0),
        number(window.1)
    );
    Some(("spikes", "Spikes", table + &over))
}

/// What was recorded.
fn records(thinned: &Thinned) -> Section {
    let rows = thinned.series().map(|(series, (rows, columns))| {
        let (kept_rows, kept_columns) = series.values.shape();
        let all = (0..kept_rows).flat_map(|row| (0..kept_columns).map(move |column| series.values.get(row, column)));
        let finite = all.filter(|x| x.is_finite()).fold(None, |range: Option<(f64, f64)>, x| {
            Some(range.map_or((x, x), |(low, high)| (low.min(x), high.max(x))))
        });
        let (low, high) =
            finite.map_or(("–".to_owned(), "–".to_owned()), |(low, high)| (digits(low, 4), digits(high, 4)));
        let cells = [
            format!("<td class=\"name\">{}</td>", escaped(&series.name)),
            format!("<td>{}</td>", escaped(&unit(&series.unit))),
            amount(rows),
            amount(columns),
            right(low),
            right(high),
            format!("<td class=\"note\">{}</td>", escaped(&data::note(series, thinned))),
        ];
        (false, cells.concat())
    });
    let names = ["record", "unit", "samples", "cells or synapses", "least", "largest", "kept on this page"];
    let table = table(&names, 2, rows)?;
    let panels = format!(
        "<p class=\"note\">Samples stand on this page in single precision; where some are left out, least and largest are those of what is kept. There are {PANELS} plots at most.</p>\n"
    );
    Some(("records", "Records", table + &panels))
}

/// Names, values and units of parameters; those that were set are marked.
fn parameters(result: &RunResult) -> Section {
    let set = result.meta.get("options").and_then(|options| options.get("set")).and_then(Value::as_array);
    let set: Vec<&str> = set.into_iter().flatten().filter_map(Value::as_str).collect();
    let set: Vec<&str> = set.iter().map(|text| text.split('=').next().unwrap_or(text).trim()).collect();
    let is_set = |p: &Parameter| {
        set.iter().any(|&name| p.name.strip_suffix(name).is_some_and(|rest| rest.is_empty() || rest.ends_with('.')))
    };
    let row = |p: &Parameter| {
        let value = match &p.values {
            ParameterValues::One(x) => number(*x),
            ParameterValues::PerCell { population, values } => {
                let finite = || values.iter().copied().filter(|x| x.is_finite());
                let (low, high) = (finite().fold(f64::INFINITY, f64::min), finite().fold(f64::NEG_INFINITY, f64::max));
                let range = if low > high { "none".to_owned() } else { format!("{} to {}", number(low), number(high)) };
                // Synapses and compartments are populations, too, which have dots in their names.
                let of = if population.contains('.') { "value" } else { "cell" };
                format!("{range} ({} of {population})", plural(values.len() as u64, of))
            }
        };
        let unit = if p.unit == "1" { String::new() } else { unit(&p.unit) };
        let mark = if is_set(p) { "set for this run" } else { "" };
        let cells = [
            format!("<td class=\"name\">{}</td>", escaped(&p.name)),
            right(escaped(&value)),
            format!("<td>{}</td><td class=\"note\">{mark}</td>", escaped(&unit)),
        ];
        (is_set(p), cells.concat())
    };
    let count = result.parameters.len();
    let table = table(&["parameter", "value", "unit", ""], 1, result.parameters.iter().map(row))?;
    let filter = match count {
        0..15 => "",
        _ => "<input type=\"search\" id=\"filter\" placeholder=\"find a parameter\" aria-label=\"find a parameter\">\n",
    };
    Some(("parameters", "Parameters", format!("{filter}{table}")))
}

/// What is told first.
const ORDER: [&str; 12] = [
    "model",
    "compiler",
    "engine",
    "precision",
    "accuracy",
    "method",
    "dt_ms",
    "duration_ms",
    "steps",
    "complete",
    "seed",
    "set",
];

/// Everything that the results know about how they were made.
fn origin(result: &RunResult, about: &About) -> Section {
    let mut facts: Vec<(&str, &Value)> = Vec::new();
    for (key, value) in &result.meta {
        match value {
            Value::Object(options) => facts.extend(options.iter().map(|(key, value)| (key.as_str(), value))),
            value => facts.push((key, value)),
        }
    }
    let place = |name: &str| ORDER.iter().position(|known| *known == name).unwrap_or(ORDER.len());
    facts.sort_by_key(|(key, _)| place(key));
    let mut facts: Vec<(String, String)> = facts.iter().map(|(key, value)| fact(key, value)).collect();
    if let Some(took) = &about.took {
        facts.push(("ready after".into(), format!("{} s", seconds(took.compile_s))));
        facts.push(("computed in".into(), format!("{} s", seconds(took.run_s))));
        if took.threads > 0 {
            facts.push(("threads".into(), took.threads.to_string()));
        }
    }
    let row = |(name, value): &(String, String)| {
        (false, format!("<th scope=\"row\">{}</th><td><code>{}</code></td>", escaped(name), escaped(value)))
    };
    let table = table(&[], 0, facts.iter().map(row))?;
    Some(("origin", "How it was made", table))
}

/// A fact in words: `dt_ms` is the `dt` in `ms`.
fn fact(key: &str, value: &Value) -> (String, String) {
    let (name, unit) = key.strip_suffix("_ms").map_or((key, ""), |name| (name, " ms"));
    let name = match name {
        "dt" => "time step".to_owned(),
        "set" => "settings".to_owned(),
        "source_hash" => "hash of the sources (BLAKE3)".to_owned(),
        "steps" => "steps done".to_owned(),
        name => name.replace('_', " "),
    };
    let value = match value {
        Value::String(text) => text.clone(),
        Value::Bool(yes) => if *yes { "yes" } else { "no" }.to_owned(),
        Value::Array(all) if all.is_empty() => "none".to_owned(),
        Value::Array(all) => {
            let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            all.iter().map(text).collect::<Vec<String>>().join(", ")
        }
        Value::Null => "none".to_owned(),
        Value::Number(n) => n.as_f64().filter(|_| n.is_f64()).map_or_else(|| n.to_string(), number),
        Value::Object(_) => value.to_string(),
    };
    (name, value + unit)
}

/// The texts of the model.
fn model(about: &About, result: &RunResult) -> Section {
    if about.sources.is_empty() {
        let hash = result.meta.get("source_hash").and_then(Value::as_str)?;
        let text = format!(
            "<p>The results do not hold the text of the model, only its hash: <code>{}</code>. `neuroc run --report` shows it.</p>\n",
            escaped(hash)
        );
        return Some(("model", "Model", text));
    }
    let mut out = String::new();
    let mut room = TEXT;
    for source in &about.sources {
        let shown = source.text.len().min(room);
        // A whole line is the least that is shown.
        let end = if shown == source.text.len() {
            shown
        } else {
            source.text.as_bytes()[..shown].iter().rposition(|&b| b == b'\n').unwrap_or(0)
        };
        let text = source.text.get(..end).unwrap_or("");
        room -= shown;
        let count = source.text.lines().count();
        let open = if count <= FOLDED { " open" } else { "" };
        out += &format!(
            "<details{open}>\n<summary>{} ({})</summary>\n<div class=\"code\"><pre>{}</pre></div>\n",
            escaped(&source.name),
            plural(count as u64, "line"),
            code::lines(text)
        );
        if end < source.text.len() {
            out += "<p class=\"warn\">The rest of this file is not on the page.</p>\n";
        }
        out += "</details>\n";
    }
    Some(("model", "Model", out))
}

/// A table; columns from `numbers` on are numbers in their headings. None without rows.
fn table(names: &[&str], numbers: usize, rows: impl Iterator<Item = (bool, String)>) -> Option<String> {
    let (mut body, mut count) = (String::new(), 0);
    for (marked, row) in rows {
        count += 1;
        if count <= ROWS {
            body += &format!("<tr{}>{row}</tr>\n", if marked { " class=\"set\"" } else { "" });
        }
    }
    if count == 0 {
        return None;
    }
    let tall = if count > 25 { "tall" } else { "scroll" };
    let mut out = format!("<div class=\"{tall}\"><table>\n");
    if !names.is_empty() {
        let class = |k: usize| if k >= numbers { " class=\"n\"" } else { "" };
        let plain = |name: &&str| matches!(*name, "unit" | "" | "kept on this page");
        let heads = names.iter().enumerate();
        let heads =
            heads.map(|(k, name)| format!("<th scope=\"col\"{}>{name}</th>", if plain(name) { "" } else { class(k) }));
        out += &format!("<thead><tr>{}</tr></thead>\n", heads.collect::<String>());
    }
    out += &format!("<tbody>\n{body}</tbody>\n</table></div>\n");
    if count > ROWS {
        out += &format!("<p class=\"warn\">{} more are not on this page.</p>\n", count - ROWS);
    }
    Some(out)
}

fn right(text: String) -> String {
    format!("<td class=\"n\">{text}</td>")
}

fn amount(n: usize) -> String {
    right(n.to_string())
}

fn plural(n: u64, word: &str) -> String {
    format!("{n} {word}{}", if n == 1 { "" } else { "s" })
}

/// A number to seven digits.
fn number(x: f64) -> String {
    digits(x, 6)
}

/// A number to four digits.
fn short(x: f64) -> String {
    digits(x, 3)
}

fn digits(x: f64, after: usize) -> String {
    let rounded: f64 = format!("{x:.after$e}").parse().unwrap_or(x);
    match rounded.abs() {
        0.0 => "0".to_owned(),
        1e-4..1e9 => rounded.to_string(),
        _ if rounded.is_finite() => format!("{rounded:e}"),
        _ => "not a number".to_owned(),
    }
}

fn seconds(s: f64) -> String {
    if s < 10.0 { format!("{s:.3}") } else { format!("{s:.1}") }
}
