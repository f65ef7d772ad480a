//! What a run records: which fields of which cells, how often, under which names.
//!
//! In come a model, its program and its extent; out go [`Records`], or what is wrong with them.
//! Never true here: a value is read or kept.

use super::extent::Extent;
use super::potential::{Heard, heard};
use super::time::{MOST_STEPS, nearest_multiple, shown, whole_steps};
use crate::diag::{Code, Diagnostic, nearest};
use crate::discretize::{output, projection_space};
use crate::engine::{Recording, Spike};
use crate::ode::{self, Model, NodeId};
use crate::results::Compartment;
use crate::step::{FieldId, Program, Source, Value};
use crate::units::DisplayUnit;
use std::ops::Range;
use std::sync::Arc;

/// Everything that a run records.
#[derive(Debug, Clone, PartialEq)]
pub struct Records {
    /// Values at multiples of some steps, in the order of the model.
    pub series: Vec<Record>,
    /// Spikes, in the order of the model.
    pub trains: Vec<Train>,
    /// The event fields of places that are told of the spikes of their cells.
    pub(super) told: Vec<FieldId>,
}

/// A value that is sampled.
#[derive(Debug, Clone, PartialEq)]
pub struct Record {
    /// Its name, unique in the run: what the model says, such as `squid.soma.v` or, of some cells, `squid[0..10].soma.v`.
    pub name: String,
    /// The name of its population.
    pub population: String,
    /// The unit to show it in.
    pub unit: DisplayUnit,
    /// Where engines have it.
    pub field: FieldId,
    /// Which cells; what is of the compartments of cells, one by one, has a range of compartments here, what is of a probe one of contacts.
    pub cells: Range<usize>,
    /// What a probe hears, if it is of one; the fields are those of these then.
    pub(super) heard: Option<Arc<[Heard]>>,
    /// The compartments of a cell that it is of, if it is of compartments, or the contacts of a probe.
    pub compartments: Option<Arc<[Compartment]>>,
    /// Steps from one sample to the next.
    pub every: u64,
    /// The first and the last step after which there may be a sample.
    pub window: (u64, u64),
    /// Around which spikes; always if absent.
    pub around: Option<Around>,
    /// Is it computed for being observed only?
    pub(super) output: bool,
}

/// Spikes around which something is recorded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Around {
    /// Their train, by its place in [`Records::trains`].
    pub train: usize,
    /// The cells whose spikes count.
    pub cells: Range<usize>,
    /// Steps from the end of the one with the spike to the first and to the last sample.
    pub window: (i64, i64),
}

/// A population whose spikes are recorded.
#[derive(Debug, Clone, PartialEq)]
pub struct Train {
    /// Its name.
    pub population: String,
    /// How many cells it has.
    pub cells: usize,
    /// The event field.
    pub field: FieldId,
}

/// What a run of a model records.
pub fn records(model: &Model, program: &Program, extent: &Extent) -> Result<Records, Vec<Diagnostic>> {
    let mut series = Vec::new();
    let edges = |projection: usize| extent.size(projection_space(model, projection));
    for (i, (r, (name, cells))) in model.records.iter().zip(recorded(model, &extent.cells, &edges)?).enumerate() {
        let probe = r.probe.map(|probe| &model.probes[probe]);
        let heard: Option<Arc<[Heard]>> = match probe {
            Some(probe) => Some(heard(model, program, extent, probe).map_err(|wrong| vec![wrong])?.into()),
            None => None,
        };
        let (source, output) = match model.recorded_state(r) {
            _ if let Some(first) = heard.iter().flat_map(|heard| heard.iter()).next() => {
                (program.field(first.field).source, false)
            }
            Some(s) => (Source::State(s.0), false),
            None => (output(model, i), true),
        };
        let Some(field) = program.bound(source) else {
            let lost = format!("the program lost the recorded `{name}`");
            return Err(vec![Diagnostic::without_place(Code::Internal, lost)]);
        };
        let every = interval(r, extent.grid.dt);
        let window = window(r, extent);
        let population = match r.edges {
            _ if let Some(probe) = probe => probe.name.clone(),
            Some(projection) => model.projections[projection].name.clone(),
            None => model.populations[model.cells_of(r.population)].name.clone(),
        };
        let around = r.around.as_ref().map(|of| around(model, of, extent)).transpose()?;
        let compartments = match probe {
            Some(probe) => Some(contacts(probe)),
            None => compartments(model, r),
        };
        let unit = r.unit.clone();
        series.push(Record {
            name,
            population,
            unit,
            field,
            output,
            cells,
            heard,
            compartments,
            every,
            window,
            around,
        });
    }
    let train = |&population: &usize| {
        let name = &model.populations[model.cells_of(population)].name;
        let field = program.bound(Source::Spikes(population as u32))?;
        Some(Train { population: name.clone(), cells: extent.cells[population], field })
    };
    let told = model.told().into_keys();
    let told = told.filter_map(|place| program.bound(Source::Spikes(place as u32))).collect();
    Ok(Records { series, trains: model.spikes.iter().filter_map(train).collect(), told })
}

/// What a run of a model records, for engines that do so by themselves.
pub fn recording(model: &Model, program: &Program, extent: &Extent) -> Result<Recording, Vec<Diagnostic>> {
    Ok(records(model, program, extent)?.recording(extent.grid.steps))
}

impl Records {
    /// Which record has a name, or the end of one.
    pub fn find(&self, name: &str) -> Result<usize, Diagnostic> {
        let suffix = format!(".{name}");
        let series = || self.series.iter().enumerate();
        if let Some((at, _)) = series().find(|(_, r)| r.name == name) {
            return Ok(at);
        }
        let found: Vec<(usize, &str)> =
            series().filter(|(_, r)| r.name.ends_with(&suffix)).map(|(at, r)| (at, r.name.as_str())).collect();
        match found[..] {
            [(at, _)] => Ok(at),
            [] => {
                let d = Diagnostic::without_place(Code::UnknownParameter, format!("the run does not record `{name}`"));
                let known: Vec<&str> = self.series.iter().map(|r| r.name.as_str()).collect();
                let d = match nearest(name, known.iter().copied()) {
                    Some(near) => d.help(format!("did you mean `{near}`?")),
                    None => d,
                };
                Err(match known.is_empty() {
                    true => d.help(format!("add `record {name}` to the run")),
                    false => d.note(format!("it records {}", known.join(", "))),
                })
            }
            _ => {
                let names: Vec<&str> = found.iter().map(|(_, name)| *name).collect();
                let message = format!("`{name}` fits several records");
                Err(Diagnostic::without_place(Code::AmbiguousParameter, message)
                    .note(format!("they are {}", names.join(", "))))
            }
        }
    }

    /// Which train has the spikes of a population.
    pub fn find_train(&self, population: &str) -> Result<usize, Diagnostic> {
        if let Some(at) = self.trains.iter().position(|train| train.population == population) {
            return Ok(at);
        }
        let message = format!("the run does not record spikes of `{population}`");
        let d = Diagnostic::without_place(Code::UnknownParameter, message);
        let near = nearest(population, self.trains.iter().map(|train| train.population.as_str()));
        Err(match near {
            Some(near) => d.help(format!("did you mean `{near}`?")),
            None => d.help(format!("add `record spikes of {population}` to the run")),
        })
    }

    /// Drops the spikes that places of cells are told of: the cells have had them.
    pub fn once(&self, spikes: &mut Vec<Spike>) {
        if !self.told.is_empty() {
            spikes.retain(|spike| !self.told.contains(&spike.field));
        }
    }

    /// The series as engines take them, in a run of so many steps.
    pub(super) fn recording(&self, steps: u64) -> Recording {
        fn common(a: u64, b: u64) -> u64 {
            if b == 0 { a } else { common(b, a % b) }
        }
        // Where nothing is sampled, the whole run is one interval.
        let every = self.series.iter().map(|r| r.every).reduce(common).unwrap_or(steps);
        Recording { every, fields: self.series.iter().flat_map(Record::fields).collect() }
    }
}

impl Record {
    /// What engines read for it.
    pub(super) fn fields(&self) -> Vec<(FieldId, Range<usize>)> {
        match &self.heard {
            Some(heard) => heard.iter().map(|heard| (heard.field, heard.elements.clone())).collect(),
            None => vec![(self.field, self.cells.clone())],
        }
    }

    /// The sample that follows from what engines have read: a row for each of the fields; the last buffer is for what is computed.
    pub(super) fn sample<'r>(&self, rows: &[&'r [f64]], computed: &'r mut Vec<f64>) -> &'r [f64] {
        let Some(heard) = &self.heard else { return rows[0] };
        computed.clear();
        computed.resize(self.cells.len(), 0.0);
        heard.iter().zip(rows).for_each(|(heard, currents)| heard.add(currents, computed));
        computed
    }

    /// Is there a sample after so many steps?
    pub fn has(&self, step: u64) -> bool {
        step.is_multiple_of(self.every) && (self.window.0..=self.window.1).contains(&step)
    }

    /// The steps after which there is a sample in a run that begins after `start`: the first one, and how many there are.
    pub fn samples(&self, start: u64) -> (u64, u64) {
        let first = self.window.0.max(start).div_ceil(self.every);
        (first * self.every, (self.window.1 / self.every + 1).saturating_sub(first))
    }
}

/// The compartments of a cell that a record is of, one by one.
fn compartments(model: &Model, r: &ode::Record) -> Option<Arc<[Compartment]>> {
    let (tree, elements) = model.elements(r.population).filter(|_| r.of_compartments)?;
    let here = |element: usize| elements.binary_search(&(element as u32)).ok();
    // The next on the way to the root that is recorded, too.
    let before = |element: usize| {
        let mut at = element;
        loop {
            let parent = tree.parents[at] as usize;
            match here(parent) {
                _ if parent == at => return None,
                Some(column) => return Some(column as u64),
                None => at = parent,
            }
        }
    };
    let compartment = |&element: &u32| {
        let element = element as usize;
        // From cm; to 12 digits, which hide the rounding.
        let distance = format!("{:.11e}", 1e4 * tree.distance[element]).parse().unwrap_or(f64::NAN);
        Compartment { name: tree.name(element), distance, before: before(element), at: None }
    };
    Some(elements.iter().filter(|&&e| tree.is_compartment(e as usize)).map(compartment).collect())
}

/// The contacts of a probe, each behind the one before it.
fn contacts(probe: &ode::Probe) -> Arc<[Compartment]> {
    let mut way = 0.0;
    let mut last = probe.contacts[0];
    let mut all = Vec::new();
    // From cm; to 12 digits, which hide the rounding.
    let um = |x: f64| format!("{:.11e}", 1e4 * x).parse().unwrap_or(f64::NAN);
    for (number, contact) in probe.contacts.iter().enumerate() {
        way += (0..3).map(|axis| (contact[axis] - last[axis]).powi(2)).sum::<f64>().sqrt();
        last = *contact;
        let at: [f64; 3] = contact.map(um);
        let name = format!("({}, {}, {})", shown(at[0]), shown(at[1]), shown(at[2]));
        all.push(Compartment { name, distance: um(way), before: (number as u64).checked_sub(1), at: Some(at) });
    }
    all.into()
}

/// The spikes around which something is recorded.
fn around(model: &Model, around: &ode::Around, extent: &Extent) -> Result<Around, Vec<Diagnostic>> {
    let cells = around.cells.map(|range| named(model, range)).transpose().map_err(|lost| vec![lost])?;
    let cells = cells.unwrap_or(0..extent.cells[around.population]);
    let train = model.spikes.iter().position(|&population| population == around.population);
    let Some(train) = train else {
        let lost = "the model lost the spikes around which it records";
        return Err(vec![Diagnostic::without_place(Code::Internal, lost)]);
    };
    // More steps than a run has are as good as any number of them.
    let steps = |ms: f64| (ms / extent.grid.dt).clamp(-MOST_STEPS, MOST_STEPS);
    let window = ((steps(around.window.0) - 1e-6).ceil() as i64, (steps(around.window.1) + 1e-6).floor() as i64);
    Ok(Around { train, cells, window })
}

/// The first and the last step of a record.
fn window(r: &ode::Record, extent: &Extent) -> (u64, u64) {
    let steps = |ms: f64| ms / extent.grid.dt;
    let last = (steps(r.window.1) + 1e-6).floor().min(extent.grid.steps as f64);
    ((steps(r.window.0) - 1e-6).ceil().max(0.0) as u64, last as u64)
}

/// Steps between two samples.
pub(super) fn interval(r: &ode::Record, dt: f64) -> u64 {
    r.every.map_or(Some(1), |e| whole_steps(e, dt)).unwrap_or(1).max(1)
}

/// Recording intervals that the time step does not divide, one error for each.
pub(super) fn wrong_intervals(model: &Model) -> Vec<Diagnostic> {
    let mut errors: Vec<(f64, Diagnostic)> = Vec::new();
    for r in &model.records {
        let Some(every) = r.every.filter(|&e| whole_steps(e, model.dt).is_none_or(|n| n == 0)) else { continue };
        if let Some((_, error)) = errors.iter_mut().find(|e| e.0 == every) {
            *error = error.clone().see(r.span, "this too");
            continue;
        }
        let (shown_every, dt) = (shown(every), shown(model.dt));
        let message =
            format!("`{}` is recorded every {shown_every} ms, which is not a multiple of dt, {dt} ms", r.name);
        let help = format!("{} ms would be", shown(nearest_multiple(every, model.dt)));
        errors.push((every, Diagnostic::new(Code::BadValue, r.span, message, "recorded here").help(help)));
    }
    errors.into_iter().map(|e| e.1).collect()
}

/// The array name and the cells of every record of a model; `edges` knows how many edges a projection has.
pub(super) fn recorded(
    model: &Model,
    cells: &[usize],
    edges: &dyn Fn(usize) -> usize,
) -> Result<Vec<(String, Range<usize>)>, Vec<Diagnostic>> {
    let mut out: Vec<(String, Range<usize>)> = Vec::new();
    let mut errors = Vec::new();
    for r in &model.records {
        let all = r.edges.map_or(cells[r.population], edges);
        // How many elements each cell has.
        let each = if r.edges.is_some() || r.probe.is_some() { 1 } else { model.elements_per_cell(r.population) };
        let chosen = match r.cells {
            None if let Some(probe) = r.probe => 0..model.probes[probe].contacts.len(),
            None => 0..all / each,
            Some(range) => named(model, range).map_err(|lost| vec![lost])?,
        };
        let name = match (&r.cells, r.name.split_once('.')) {
            (Some(_), Some((population, quantity))) if chosen.len() == 1 => {
                format!("{population}[{}].{quantity}", chosen.start)
            }
            (Some(_), Some((population, quantity))) => {
                format!("{population}[{}..{}].{quantity}", chosen.start, chosen.end)
            }
            _ => r.name.clone(),
        };
        if out.iter().any(|o| o.0 == name) {
            let message = format!("`{name}` is recorded twice");
            errors.push(Diagnostic::new(Code::DuplicateKey, r.span, message, "again"));
        }
        out.push((name, chosen.start * each..chosen.end * each));
    }
    if errors.is_empty() { Ok(out) } else { Err(errors) }
}

/// The cells that a line names, which have been looked at with the populations.
fn named(model: &Model, (first, end): (NodeId, NodeId)) -> Result<Range<usize>, Diagnostic> {
    let number = |node| match ode::evaluate(model, node) {
        Ok(Value::Real(x)) => Some(x as usize),
        Ok(Value::Single(_) | Value::Mask(_)) | Err(_) => None,
    };
    let range = number(first).zip(number(end)).map(|(first, end)| first..end);
    range.ok_or_else(|| Diagnostic::without_place(Code::Internal, "a record lost which cells it names"))
}
