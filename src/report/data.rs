//! What the plots of a page are drawn from.
//!
//! In come thinned results and the time that the plots share; out goes JSON for `page.js`: panels from top to bottom, grouped as figures
//! group them, and numbers as base64.
//! Never true here: a `<`, which could end the element that the JSON stands in.
//!
//! | entry | meaning |
//! |---|---|
//! | `from`, `to` | the time of all plots in ms |
//! | `series` | `columns`; `values`: single precision, column by column; times in ms: `first` and `step`, or `times` in double precision |
//! | `trains` | spikes in the order of time: `t` counts steps of `step` ms from `first`, in 32 bits; `i` are the cells, in 16 bits or, if `wide`, 32 |
//! | `panels` | `kind`: `traces` (`lines`: series, column, label, what its row of a map is called), `raster` (`train`), `rate` (`counts` of spikes in bins of `bin` ms, 32 bits) |

use super::thin::{Drawn, Thinned};
use crate::plot::{Group, bin_of, common_parts, groups, parts, quantity, round_up, unit};
use crate::results::{Series, SpikeTrain, spread};
use base64::Engine;
use base64::prelude::BASE64_STANDARD as BASE64;
use serde_json::{Value, json};

/// A page has so many panels at most.
pub const PANELS: usize = 64;
/// So many lines of a plot at most, as in figures; of more there is a map.
const LINES: usize = 8;
/// The rate of a population is drawn from this many cells on, as in figures.
const CELLS_FOR_A_RATE: usize = 20;
/// So many bins of a rate at most; the page joins them where they are narrower than can be seen.
const BINS: f64 = 4000.0;

/// The text of the JSON.
pub fn payload(thinned: &Thinned, window: (f64, f64)) -> String {
    let result = thinned.result();
    let mut all = Payload { thinned, series: Vec::new(), trains: Vec::new(), panels: Vec::new() };
    for population in populations(thinned) {
        let own = result.series.iter().filter(|s| s.population == population);
        // What has more cells than lines can show is a map of its own.
        let (wide, narrow): (Vec<&Series>, Vec<&Series>) = own.partition(|s| s.cells.len() > LINES);
        let alone = wide.iter().flat_map(|series| groups(std::slice::from_ref(series), window));
        for group in groups(&narrow, window).into_iter().chain(alone) {
            all.traces(&group);
        }
        for train in result.spikes.iter().filter(|s| s.population == population && s.cells > 0) {
            all.raster(train, window);
            if train.cells >= CELLS_FOR_A_RATE && !train.t.is_empty() {
                all.rate(train, window);
            }
        }
    }
    let Payload { series, trains, panels, .. } = all;
    let data = json!({ "from": window.0, "to": window.1, "series": series, "trains": trains, "panels": panels });
    data.to_string().replace('<', "\\u003c")
}

/// In the order in which they were recorded.
fn populations(thinned: &Thinned) -> Vec<&str> {
    let mut all: Vec<&str> = Vec::new();
    let result = thinned.result();
    let of_series = result.series.iter().map(|s| s.population.as_str());
    for population in of_series.chain(result.spikes.iter().map(|s| s.population.as_str())) {
        if !all.contains(&population) {
            all.push(population);
        }
    }
    all
}

struct Payload<'a> {
    thinned: &'a Thinned,
    series: Vec<Value>,
    trains: Vec<Value>,
    panels: Vec<Value>,
}

impl Payload<'_> {
    fn traces(&mut self, group: &Group<'_>) {
        if self.panels.len() >= PANELS {
            return;
        }
        let names: Vec<Vec<&str>> = group.series.iter().map(|s| parts(&s.name)).collect();
        let (before, after) = common_parts(&names);
        let alone = names.len() == 1;
        let (mut lines, mut notes) = (Vec::new(), Vec::new());
        for (series, parts) in group.series.iter().zip(&names) {
            let own = parts[before..parts.len() - after].join(".");
            let element = series.element();
            let columns = series.cells.len();
            let one_cell = series.compartments.as_ref().is_some_and(|all| all.len() == series.whole);
            let most = if alone { columns } else { (LINES / names.len()).max(1) };
            for column in spread(columns, most) {
                let cell = series.cells[column];
                let label = match (alone, series.cells.len()) {
                    (true, 1) => own.clone(),
                    (true, _) => series.column(column),
                    (false, 1) => own.clone(),
                    (false, _) if let (Some((_, at)), true) = (series.compartment(column), one_cell) => at.name.clone(),
                    (false, _) => format!("{own} [{cell}]"),
                };
                // What a row of a map is called.
                let row = match (series.compartment(column), element) {
                    (Some((at, _)), "contact") => at.to_string(),
                    (Some(_), _) => series.column(column),
                    (None, _) => cell.to_string(),
                };
                lines.push(json!([self.series.len(), column, label, row]));
            }
            let mut note = note(series, self.thinned);
            if columns > most {
                note = format!("{most} of {columns} {element}s; {note}").trim_end_matches("; ").to_owned();
            }
            if !note.is_empty() && !notes.contains(&note) {
                notes.push(note);
            }
            self.series.push(numbers(series));
        }
        let first = group.series[0];
        let last = |name: &str| parts(name).pop().unwrap_or_default().to_owned();
        let same = group.series.iter().all(|s| last(&s.name) == last(&first.name));
        let title = if alone { first.name.clone() } else { names[0][..before].join(".") };
        let name = if same { last(&first.name) } else { "gates".to_owned() };
        let title = if title.is_empty() { name.clone() } else { title };
        self.panels.push(json!({
            "kind": "traces",
            "title": title,
            "note": notes.join("; "),
            "label": quantity(&name, &first.unit),
            "unit": if first.unit == "1" { String::new() } else { unit(&first.unit) },
            "element": first.element(),
            "fraction": group.fraction,
            "map": alone && lines.len() > LINES,
            "lines": lines,
        }));
    }

    fn raster(&mut self, train: &SpikeTrain, window: (f64, f64)) {
        if self.panels.len() >= PANELS {
            return;
        }
        let drawn = self.thinned.spikes(train);
        let (spikes, cells) = (train.t.len(), train.cells);
        let plural = |n: usize| if n == 1 { "" } else { "s" };
        let mut note = format!("{spikes} spike{} of {cells} cell{}", plural(spikes), plural(cells));
        if drawn.each > 1 {
            note += &format!("; those of every {} cell are drawn", ordinal(drawn.each));
        }
        if drawn.every > 1 {
            let of = if drawn.each > 1 { "of these " } else { "" };
            note += &format!("; {of}every {} spike is drawn", ordinal(drawn.every as u64));
        }
        self.panels.push(json!({
            "kind": "raster",
            "title": format!("{} spikes", train.population),
            "note": note,
            "cells": cells,
            "train": self.trains.len(),
        }));
        self.trains.push(self.spikes(train, &drawn, window));
    }

    fn spikes(&self, train: &SpikeTrain, drawn: &Drawn, window: (f64, f64)) -> Value {
        let options = self.thinned.result().meta.get("options");
        let dt = options.and_then(|options| options.get("dt_ms")).and_then(Value::as_f64);
        let most = f64::from(u32::MAX);
        // Spikes happen at steps, so that most often their numbers say all.
        let counts = |dt: &f64| {
            let at_step = |&(t, _): &(f64, u64)| {
                let steps = t / dt;
                (0.0..=most).contains(&steps) && (steps - steps.round()).abs() < 1e-6
            };
            *dt > 0.0 && drawn.spikes.iter().all(at_step)
        };
        let (first, step) = match dt.filter(counts) {
            Some(dt) => (0.0, dt),
            None => (window.0, (window.1 - window.0) / most),
        };
        let count = |t: f64| ((t - first) / step).round() as u32;
        let wide = train.cells > usize::from(u16::MAX) + 1;
        let cell = |&(_, cell): &(f64, u64)| (cell as u32).to_le_bytes().into_iter().take(if wide { 4 } else { 2 });
        let t: Vec<u8> = drawn.spikes.iter().flat_map(|&(t, _)| count(t).to_le_bytes()).collect();
        let i: Vec<u8> = drawn.spikes.iter().flat_map(cell).collect();
        json!({ "first": first, "step": step, "wide": wide, "t": BASE64.encode(&t), "i": BASE64.encode(&i) })
    }

    fn rate(&mut self, train: &SpikeTrain, window: (f64, f64)) {
        if self.panels.len() >= PANELS {
            return;
        }
        let span = window.1 - window.0;
        let bin = round_up(span / BINS).max(1.0);
        let mut counts = vec![0u32; ((span / bin - 1e-9).ceil() as usize).max(1)];
        let last = counts.len() - 1;
        for t in &train.t {
            counts[bin_of(*t, window.0, bin).min(last)] += 1;
        }
        let counts: Vec<u8> = counts.iter().flat_map(|n| n.to_le_bytes()).collect();
        self.panels.push(json!({
            "kind": "rate",
            "title": format!("{} rate", train.population),
            "note": "spikes per second and cell, of all spikes",
            "label": "rate (Hz)",
            "cells": train.cells,
            "bin": bin,
            "counts": BASE64.encode(&counts),
        }));
    }
}

/// What is not drawn of a series.
pub fn note(series: &Series, thinned: &Thinned) -> String {
    let place = thinned.result().series.iter().position(|other| other.name == series.name);
    let (rows, columns) = place.map_or((0, 0), |place| thinned.whole(place));
    let (kept_rows, kept_columns) = series.values.shape();
    let mut notes = Vec::new();
    if kept_columns < columns {
        notes.push(format!("{kept_columns} of {columns} {}s", series.element()));
    }
    if kept_rows < rows {
        notes.push(format!("{kept_rows} of {rows} samples: the least and the largest of every few"));
    }
    notes.join("; ")
}

fn ordinal(n: u64) -> String {
    match n {
        2 => "second".into(),
        3 => "third".into(),
        n => format!("{n}th"),
    }
}

/// Times and samples.
fn numbers(series: &Series) -> Value {
    let (rows, columns) = series.values.shape();
    let values = (0..columns).flat_map(|column| (0..rows).map(move |row| series.values.get(row, column)));
    let values: Vec<u8> = values.flat_map(|x| (x as f32).to_le_bytes()).collect();
    let mut out = json!({ "columns": columns, "values": BASE64.encode(&values) });
    let t = &series.t;
    let first = t.first().copied().unwrap_or(0.0);
    let step = if rows > 1 { (t[rows - 1] - first) / (rows - 1) as f64 } else { 0.0 };
    let even = t.iter().enumerate().all(|(k, t)| (t - (first + k as f64 * step)).abs() <= 1e-6 * step);
    if even {
        out["first"] = json!(first);
        out["step"] = json!(step);
    } else {
        out["times"] = json!(BASE64.encode(t.iter().flat_map(|t| t.to_le_bytes()).collect::<Vec<u8>>()));
    }
    out
}
