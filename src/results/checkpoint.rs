//! Files of states from which a run goes on.
//!
//! In come the states of a run after so many steps; out goes an `.npz` archive with an array `<f8` `[cell]` for each of them, hidden ones too, in
//! canonical units, and `meta` with `checkpoint` (the version of this layout), `step`, `t_ms`, `seed` and facts about the run. It
//! comes back in as it was. Of events on their way (version 2; without them it is 1) there are two arrays `<f8`: `NAME'ago`, how many steps ago each
//! was sent, and `NAME'cell`, by which cell. Of each projection `meta` has a digest of its edges and one of its delays in `ways`; files of older
//! versions have none.
//! Never true here: it is known which states a model has.

use super::archive::Archive;
use super::array::{Numbers, Plan};
use super::read::Files;
use super::{LAYOUT, ResultsError};
use serde_json::{Map, Value, json};
use std::path::Path;

/// The version of the layout without events on their way, and with them.
const VERSIONS: [u64; 2] = [1, 2];

/// How the names of the arrays of events end.
const ENDS: [&str; 2] = ["'ago", "'cell"];

/// Events of one kind that are on their way.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Sent {
    /// The name of the events in the program.
    pub event: String,
    /// How many steps ago each was sent, from 1 on.
    pub ago: Vec<u64>,
    /// The cell that sent it.
    pub cell: Vec<u64>,
}

/// Which way the events of a projection take, told by digests.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Way {
    /// The name of its edges in the program.
    pub name: String,
    /// Of which cell each edge comes from, and where it leads.
    pub edges: String,
    /// Of the steps that events take along each edge, if they are known.
    pub delays: Option<String>,
}

/// The states of a run after some steps.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Checkpoint {
    /// The steps that are done.
    pub step: u64,
    /// The time in ms.
    pub t: f64,
    /// The key of all random numbers.
    pub seed: u64,
    /// Every state by its name in the model, or a hidden name, with its values in canonical units, shape `[cell]`.
    pub states: Vec<(String, Vec<f64>)>,
    /// The events on their way, of every kind that takes its time.
    pub events: Vec<Sent>,
    /// The ways that events take in this run, if the file tells them.
    pub ways: Option<Vec<Way>>,
    /// Facts about the run.
    pub meta: Map<String, Value>,
}

impl Checkpoint {
    /// Writes it, replacing what was there in one step.
    ///
    /// # Errors
    /// [`ResultsError::Write`] when the file cannot be written, and then nothing new is left on disk.
    pub fn write(&self, path: &Path) -> Result<(), ResultsError> {
        let numbers = |values: &[u64]| values.iter().map(|&x| x as f64).collect();
        let of_events = |Sent { event, ago, cell }: &Sent| {
            let named = |end: &str, values: &[u64]| (format!("{event}{end}"), numbers(values));
            [named(ENDS[0], ago), named(ENDS[1], cell)]
        };
        let events: Vec<(String, Vec<f64>)> = self.events.iter().flat_map(of_events).collect();
        let all = || self.states.iter().chain(&events);
        let plan = |(name, values): &(String, Vec<f64>)| Plan {
            name: name.clone(),
            numbers: Numbers::F64,
            columns: None,
            rows: Some(values.len() as u64),
            shape: Vec::new(),
        };
        let mut archive = Archive::new(path, all().map(plan).collect(), false)?;
        for (at, (_, values)) in all().enumerate() {
            archive.append(at, values)?;
        }
        let mut meta = self.meta.clone();
        meta.insert("checkpoint".into(), json!(VERSIONS[usize::from(!self.events.is_empty())]));
        meta.insert("step".into(), json!(self.step));
        meta.insert("t_ms".into(), json!(self.t));
        // As text: a number of 64 bits is not exact everywhere.
        meta.insert("seed".into(), json!(self.seed.to_string()));
        if let Some(ways) = &self.ways {
            let told = |way: &Way| (way.name.clone(), json!({ "edges": way.edges, "delays": way.delays }));
            meta.insert("ways".into(), Value::Object(ways.iter().map(told).collect()));
        }
        Ok(archive.finish(&Value::Object(meta).to_string())?)
    }

    /// Reads a file that [`Checkpoint::write`] wrote.
    ///
    /// # Errors
    /// [`ResultsError::Read`], saying whether the file is missing, no checkpoint, or damaged.
    pub fn read(path: &Path) -> Result<Checkpoint, ResultsError> {
        Checkpoint::opened(path).map_err(|reason| ResultsError::Read { path: path.to_owned(), reason })
    }

    fn opened(path: &Path) -> Result<Checkpoint, String> {
        let mut files = Files::open(path)?;
        let mut meta = files.meta()?;
        match meta.remove("checkpoint").and_then(|v| v.as_u64()) {
            Some(version) if VERSIONS.contains(&version) => {}
            Some(version) => {
                let newest = VERSIONS[1];
                return Err(format!(
                    "it is a checkpoint of version {version}, but this neuroc reads those up to {newest}"
                ));
            }
            None if meta.contains_key("layout") => {
                return Err(format!("it holds results (layout {LAYOUT}) and no checkpoint; `--save` writes one"));
            }
            None => return Err("it is no checkpoint".into()),
        }
        let lacks = |what: &str| format!("its metadata is damaged: it has no `{what}`");
        let step = meta.remove("step").and_then(|v| v.as_u64()).ok_or_else(|| lacks("step"))?;
        let t = meta.remove("t_ms").and_then(|v| v.as_f64()).ok_or_else(|| lacks("t_ms"))?;
        let seed = meta.remove("seed").and_then(|v| v.as_str()?.parse().ok()).ok_or_else(|| lacks("seed"))?;
        let ways = match meta.remove("ways") {
            None => None,
            Some(Value::Object(all)) => Some(all.iter().map(way).collect::<Option<_>>().ok_or_else(|| lacks("ways"))?),
            Some(_) => return Err(lacks("ways")),
        };
        let (mut states, mut events) = (Vec::new(), Vec::new());
        let names: Vec<String> = files.names()?.into_iter().filter(|name| name != "meta").collect();
        for name in &names {
            let mut numbers = |name: &str| -> Result<Vec<f64>, String> {
                Ok(files.vector::<8>(name, "<f8")?.into_iter().map(f64::from_le_bytes).collect())
            };
            match name.strip_suffix(ENDS[0]) {
                Some(event) => {
                    let cells = format!("{event}{}", ENDS[1]);
                    let whole = [whole(name, &numbers(name)?)?, whole(&cells, &numbers(&cells)?)?];
                    let [ago, cell] = whole;
                    if ago.len() != cell.len() || ago.contains(&0) {
                        return Err(format!("`{name}` and `{cells}` do not fit each other"));
                    }
                    events.push(Sent { event: event.into(), ago, cell });
                }
                None if name.ends_with(ENDS[1]) => {}
                None => states.push((name.clone(), numbers(name)?)),
            }
        }
        Ok(Checkpoint { step, t, seed, states, events, ways, meta })
    }
}

/// A way as `meta` tells it.
fn way((name, told): (&String, &Value)) -> Option<Way> {
    let text = |key: &str| told.get(key)?.as_str().map(str::to_owned);
    Some(Way { name: name.clone(), edges: text("edges")?, delays: text("delays") })
}

/// Whole numbers from 0 on that a number holds exactly.
fn whole(name: &str, values: &[f64]) -> Result<Vec<u64>, String> {
    let whole = |&x: &f64| ((0.0..=9_007_199_254_740_992.0).contains(&x) && x.fract() == 0.0).then_some(x as u64);
    let all: Option<Vec<u64>> = values.iter().map(whole).collect();
    all.ok_or_else(|| format!("`{name}` holds numbers that are not whole"))
}
