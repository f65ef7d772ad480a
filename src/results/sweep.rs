//! The results of a sweep: many runs of one model in one file.
//!
//! In come the contents of one run, axes, and results run by run; out goes an archive or a directory whose arrays have the axes in
//! front, and it comes back in.
//! Never true here: runs have different cells or sample times, or a run that was not done looks like one that was.
//!
//! See [the layout](super#sweeps).

use super::array::{Numbers, Plan};
use super::contents::{CELLS, KEYS, PARAMETER, SPIKE_CELLS, SPIKE_TIMES, TIMES};
use super::read::{self, Files, damaged, object, population, unreadable, wrong};
use super::writer::Form;
use super::{
    Contents, FileFormat, LAYOUT, Parameter, ParameterValues, Reading, ResultsError, RunResult, Samples, Series,
    SpikeTrain,
};
use serde_json::{Map, Value, json};
use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The values along the axes, and the runs that a spike belongs to.
const VALUES: &str = "sweep.";
const SPIKE_RUNS: &str = ".spikes.run";

/// Something that is set to other values from run to run.
#[derive(Debug, Clone, PartialEq)]
pub struct SweptAxis {
    /// The name as it was written.
    pub name: String,
    /// The full name of the parameter or state, or `seed`.
    pub parameter: String,
    /// The unit of the values.
    pub unit: String,
    /// Along which axis they lie: several things may share one.
    pub axis: usize,
    /// The values, as many as the axis is long.
    pub values: Vec<f64>,
}

/// Runs of one model with other values.
#[derive(Debug, Clone, PartialEq)]
pub struct SweepResult {
    /// How many values each axis has.
    pub shape: Vec<usize>,
    /// What was set.
    pub axes: Vec<SweptAxis>,
    /// The runs, the last axis the fastest. In one that was not done, or that failed, samples are NaN from there on; `steps` and `complete` in
    /// its `meta` tell.
    pub runs: Vec<RunResult>,
    /// Facts about all of them.
    pub meta: Map<String, Value>,
}

/// What a file holds.
#[derive(Debug, Clone, PartialEq)]
pub enum Found {
    /// One run.
    Run(RunResult),
    /// A sweep.
    Sweep(SweepResult),
}

/// The size of the file of a sweep in bytes, without its spikes.
pub fn sweep_bytes(contents: &Contents, runs: usize) -> f64 {
    contents.bytes() * runs as f64
}

/// A file of the runs of a sweep in the making.
pub struct SweepWriter {
    path: PathBuf,
    form: Form,
    contents: Contents,
    axes: Vec<SweptAxis>,
    /// The arrays of their values.
    values: Vec<String>,
    shape: Vec<usize>,
    /// The arrays of series, parameters and spikes begin here.
    first: [usize; 3],
    /// The parameters that are one number, in each run.
    numbers: Vec<Vec<f64>>,
    /// The steps of each run.
    steps: Vec<u64>,
    complete: bool,
    row: Vec<f64>,
}

impl SweepWriter {
    /// Begins a file for runs of the shape of the axes with these contents, whose series are sampled at `times` (ms).
    ///
    /// # Errors
    /// [`ResultsError::Inconsistent`] if the contents are, or if they have no fixed size; otherwise as [`Writer::new`](super::Writer::new).
    pub fn new(
        path: &Path,
        contents: Contents,
        times: &[Vec<f64>],
        axes: Vec<SweptAxis>,
        shape: Vec<usize>,
        compress: bool,
    ) -> Result<SweepWriter, ResultsError> {
        contents.check()?;
        let (plans, first) = plans(&contents, &axes, &shape)?;
        let values = plans[1..].iter().zip(&axes).map(|(plan, _)| plan.name.clone()).collect();
        let mut form = match FileFormat::of(path)? {
            FileFormat::Npz => Form::archive(path, plans, compress)?,
            FileFormat::Folder => Form::folder(path, plans)?,
            FileFormat::Csv => {
                return Err(ResultsError::Inconsistent("a table has no axes; write an .npz file".into()));
            }
        };
        for (at, axis) in axes.iter().enumerate() {
            form.append(1 + at, &axis.values)?;
        }
        for (at, (head, times)) in contents.series.iter().zip(times).enumerate() {
            let cells: Vec<f64> = head.cells.iter().map(|&cell| cell as f64).collect();
            let array = first[0] + 3 * at;
            form.append(array + 1, times)?;
            form.append(array + 2, &cells)?;
            if contents.clock() == Some(at) {
                form.append(0, times)?;
            }
        }
        let path = path.to_owned();
        let (numbers, steps, row) = (Vec::new(), Vec::new(), Vec::new());
        Ok(SweepWriter { path, form, contents, axes, values, shape, first, numbers, steps, complete: true, row })
    }

    /// How many runs have been taken.
    pub fn taken(&self) -> usize {
        self.steps.len()
    }

    /// Takes the next run: what it recorded, and how many steps it did; nothing of one that was not done.
    ///
    /// # Errors
    /// [`ResultsError::Inconsistent`] if it has other series or cells than the first one, or more samples; [`ResultsError::Write`].
    pub fn run(&mut self, run: Option<&RunResult>, steps: u64, complete: bool) -> Result<(), ResultsError> {
        self.complete &= complete;
        let number = self.steps.len() as f64;
        self.steps.push(steps);
        if let Some(odd) = run.and_then(|run| self.unlike(run)) {
            return Err(ResultsError::Inconsistent(odd));
        }
        for (at, head) in self.contents.series.iter().enumerate() {
            let array = self.first[0] + 3 * at;
            let (wanted, width) = (head.samples.unwrap_or(0) as usize, head.cells.len());
            let series = run.map(|run| &run.series[at]);
            let there = series.map_or(0, |s| s.values.shape().0);
            for sample in 0..wanted {
                self.row.clear();
                match series.filter(|_| sample < there) {
                    Some(s) => self.row.extend((0..width).map(|column| s.values.get(sample, column))),
                    None => self.row.resize(width, f64::NAN),
                }
                self.form.append(array, &self.row)?;
            }
        }
        for (at, (p, values)) in self.contents.per_cell().enumerate() {
            let own = run.and_then(|run| run.parameters.iter().find(|own| own.name == p.name));
            match own.map(|own| &own.values) {
                Some(ParameterValues::PerCell { values, .. }) => self.form.append(self.first[1] + at, values)?,
                Some(ParameterValues::One(_)) | None => {
                    self.form.append(self.first[1] + at, &vec![f64::NAN; values.len()])?;
                }
            }
        }
        let own = |name: &str| run?.parameters.iter().filter_map(one).find(|(own, _)| *own == name).map(|(_, x)| x);
        let numbers = self.contents.parameters.iter().filter_map(one).map(|(name, _)| own(name).unwrap_or(f64::NAN));
        self.numbers.push(numbers.collect());
        for (at, train) in run.iter().flat_map(|run| run.spikes.iter().enumerate()) {
            let array = self.first[2] + 3 * at;
            let cells: Vec<f64> = train.i.iter().map(|&cell| cell as f64).collect();
            self.form.append(array, &train.t)?;
            self.form.append(array + 1, &cells)?;
            self.form.append(array + 2, &vec![number; train.t.len()])?;
        }
        Ok(())
    }

    /// What of a run does not fit those before it.
    fn unlike(&self, run: &RunResult) -> Option<String> {
        let of = run.contents();
        let mut pairs = of.series.iter().zip(&self.contents.series);
        if let Some((series, _)) = pairs.find(|(a, b)| a.cells != b.cells) {
            return Some(format!(
                "a run of the sweep has other cells or edges of `{}` than the first one",
                series.name
            ));
        }
        let same_series = of.series.len() == self.contents.series.len()
            && of.series.iter().zip(&self.contents.series).all(|(a, b)| a.name == b.name && a.samples <= b.samples);
        let parameters = of.per_cell().all(|(p, values)| {
            let mut before = self.contents.per_cell().filter(|(other, _)| other.name == p.name);
            before.next().is_some_and(|(_, others)| others.len() == values.len())
        });
        let same = same_series
            && parameters
            && of.trains == self.contents.trains
            && of.populations == self.contents.populations;
        (!same).then(|| "a run of the sweep has other cells, edges or samples than the first one".to_owned())
    }

    /// Completes the file; runs that have not come are told as not done. Answers which files hold the results.
    pub fn finish(mut self, meta: &Map<String, Value>) -> Result<Vec<PathBuf>, ResultsError> {
        let runs: usize = self.shape.iter().product();
        while self.taken() < runs {
            self.run(None, 0, false)?;
        }
        let mut all = meta.clone();
        all.extend(self.contents.described());
        all.insert("complete".into(), self.complete.into());
        if let Some(Value::Object(units)) = all.get_mut("units") {
            for axis in &self.axes {
                units.insert(format!("{VALUES}{}", axis.name), json!(axis.unit));
            }
        }
        if let Some(Value::Object(parameters)) = all.get_mut("parameters") {
            let ones = self.contents.parameters.iter().filter(|p| matches!(p.values, ParameterValues::One(_)));
            for (at, p) in ones.enumerate() {
                let values: Vec<f64> = self.numbers.iter().map(|run| run[at]).collect();
                let mut known = values.iter().filter(|x| !x.is_nan());
                let first = known.next().copied().unwrap_or(f64::NAN);
                let entry = match known.all(|&x| x == first) {
                    true => json!({ "value": first, "unit": p.unit }),
                    false => json!({ "values": values, "unit": p.unit }),
                };
                parameters.insert(p.name.clone(), entry);
            }
        }
        let axes: Vec<Value> = self
            .axes
            .iter()
            .zip(&self.values)
            .map(|(a, array)| json!({ "name": a.name, "parameter": a.parameter, "unit": a.unit, "axis": a.axis, "array": array }))
            .collect();
        all.insert("sweep".into(), json!({ "shape": self.shape, "axes": axes, "steps": self.steps }));
        let meta = Value::Object(all).to_string();
        self.form.finish(&meta)?;
        Ok(vec![self.path])
    }
}

/// The name and value of a parameter that is one number.
fn one(p: &Parameter) -> Option<(&str, f64)> {
    match p.values {
        ParameterValues::One(x) => Some((&p.name, x)),
        ParameterValues::PerCell { .. } => None,
    }
}

/// The arrays, and where those of series, parameters and spikes begin.
fn plans(contents: &Contents, axes: &[SweptAxis], shape: &[usize]) -> Result<(Vec<Plan>, [usize; 3]), ResultsError> {
    let runs = shape.iter().product::<usize>() as u64;
    let vector = |name: String, numbers, rows| Plan { name, numbers, columns: None, rows, shape: Vec::new() };
    let in_front = |inner: &[u64]| shape.iter().map(|&n| n as u64).chain(inner.iter().copied()).collect::<Vec<u64>>();
    let mut plans = Vec::new();
    let clock = contents.clock().map_or(0, |series| contents.series[series].samples.unwrap_or(0));
    plans.push(vector("t".into(), Numbers::F64, Some(clock)));
    // What a population of the name `sweep` records has its name first.
    let mut taken: HashSet<String> = contents.arrays().into_iter().map(|plan| plan.name).collect();
    for axis in axes {
        let mut name = format!("{VALUES}{}", axis.name);
        while !taken.insert(name.clone()) {
            name.insert_str(0, VALUES);
        }
        plans.push(vector(name, Numbers::F64, Some(axis.values.len() as u64)));
    }
    let mut first = [plans.len(), 0, 0];
    for head in &contents.series {
        let numbers = if contents.single { Numbers::F32 } else { Numbers::F64 };
        let Some(samples) = head.samples else {
            let what = "is recorded around spikes, whose times are others in every run";
            return Err(ResultsError::Inconsistent(format!("`{}` {what}", head.name)));
        };
        let cells = head.cells.len() as u64;
        let (rows, shape) = (Some(runs * samples), in_front(&[samples, cells]));
        plans.push(Plan { name: head.name.clone(), numbers, columns: Some(cells), rows, shape });
        plans.push(vector(format!("{}{TIMES}", head.name), Numbers::F64, Some(samples)));
        plans.push(vector(format!("{}{CELLS}", head.name), Numbers::I64, Some(cells)));
    }
    first[1] = plans.len();
    for (p, values) in contents.per_cell() {
        let (name, cells) = (format!("{PARAMETER}{}", p.name), values.len() as u64);
        let shape = in_front(&[cells]);
        plans.push(Plan { name, numbers: Numbers::F64, columns: Some(cells), rows: Some(runs), shape });
    }
    first[2] = plans.len();
    for train in &contents.trains {
        plans.push(vector(format!("{}{SPIKE_TIMES}", train.population), Numbers::F64, None));
        plans.push(vector(format!("{}{SPIKE_CELLS}", train.population), Numbers::I64, None));
        plans.push(vector(format!("{}{SPIKE_RUNS}", train.population), Numbers::I64, None));
    }
    let twice = plans.iter().enumerate().find(|(at, plan)| plans[..*at].iter().any(|other| other.name == plan.name));
    match twice {
        Some((_, plan)) => Err(ResultsError::Inconsistent(format!("two arrays are named `{}`", plan.name))),
        None => Ok((plans, first)),
    }
}

impl Found {
    /// Reads an archive or a directory, whichever it holds.
    ///
    /// # Errors
    /// As [`RunResult::read_npz`].
    pub fn read(path: &Path, reading: &Reading) -> Result<Found, ResultsError> {
        let wrong = |reason| ResultsError::Read { path: path.to_owned(), reason };
        let mut files = Files::open(path).map_err(wrong)?;
        let meta = files.meta().map_err(wrong)?;
        // What is wrong with its layout is told there.
        let layout = meta.get("layout").and_then(Value::as_u64) == Some(u64::from(LAYOUT));
        match meta.contains_key("sweep") && layout {
            true => Ok(Found::Sweep(read_sweep(files, meta, reading).map_err(wrong)?)),
            false => RunResult::read(path, reading).map(Found::Run),
        }
    }
}

fn read_sweep(mut files: Files, mut meta: Map<String, Value>, reading: &Reading) -> Result<SweepResult, String> {
    let [sweep, units, records, populations, parameters] =
        ["sweep", "units", "records", "populations", "parameters"].map(|key| object(&meta, key));
    let (sweep, units, records, populations, parameters) = (sweep?, units?, records?, populations?, parameters?);
    let odd = || damaged("`sweep`");
    let whole = |value: &Value| usize::try_from(value.as_u64()?).ok();
    let list = |key: &str| sweep.get(key).and_then(Value::as_array).ok_or_else(odd);
    let shape: Vec<usize> = list("shape")?.iter().map(whole).collect::<Option<_>>().ok_or_else(odd)?;
    let steps: Vec<u64> = list("steps")?.iter().map(Value::as_u64).collect::<Option<_>>().ok_or_else(odd)?;
    let runs = shape.iter().try_fold(1usize, |n, &side| n.checked_mul(side)).ok_or_else(odd)?;
    if steps.len() != runs || runs == 0 {
        return Err(odd());
    }
    let mut axes = Vec::new();
    for entry in list("axes")? {
        let text = |key: &str| entry.get(key).and_then(Value::as_str).map(str::to_owned).ok_or_else(odd);
        let (name, parameter, unit) = (text("name")?, text("parameter")?, text("unit")?);
        let axis = entry.get("axis").and_then(whole).ok_or_else(odd)?;
        let values: Vec<f64> = files.vector::<8>(&text("array")?, "<f8")?.into_iter().map(f64::from_le_bytes).collect();
        if shape.get(axis) != Some(&values.len()) {
            return Err(odd());
        }
        axes.push(SweptAxis { name, parameter, unit, axis, values });
    }
    for key in KEYS.iter().chain(&["sweep", "complete"]) {
        meta.remove(*key);
    }
    let full = meta.remove("steps");
    let whole_run = full.as_ref().and_then(Value::as_u64);
    let of_run = |(run, &steps): (usize, &u64)| {
        let mut meta = meta.clone();
        for axis in axes.iter().filter(|axis| axis.parameter == "seed") {
            let behind: usize = shape[axis.axis + 1..].iter().product();
            meta.insert("seed".into(), (axis.values[run / behind % axis.values.len()] as u64).into());
        }
        meta.insert("steps".into(), steps.into());
        meta.insert("complete".into(), (Some(steps) == whole_run).into());
        let populations = populations.iter().map(population).collect::<Option<_>>();
        Ok(RunResult {
            meta,
            populations: populations.ok_or_else(|| damaged("`populations`"))?,
            ..RunResult::default()
        })
    };
    let mut results: Vec<RunResult> = steps.iter().enumerate().map(of_run).collect::<Result<_, String>>()?;
    let names = files.names()?;
    for name in &names {
        if let Some(record) = records.get(name) {
            let unit = units.get(name).and_then(Value::as_str);
            let unit = unit.ok_or_else(|| damaged(&format!("it states no unit for `{name}`")))?;
            let population = record.get("population").and_then(Value::as_str);
            let population = population.ok_or_else(|| damaged(&format!("it states no population for `{name}`")))?;
            let (t, few) = files.times(&format!("{name}{TIMES}"), reading.samples)?;
            let (t, cells) = (Arc::new(t), files.cells(&format!("{name}{CELLS}"))?);
            let columns = read::spread(cells.len(), reading.columns.unwrap_or(cells.len()));
            let chosen: Vec<u64> = columns.iter().map(|&column| cells[column]).collect();
            let sides: Vec<u64> = [&shape[..], &[few.rows, cells.len()]].concat().iter().map(|&n| n as u64).collect();
            let tables: Vec<Samples> = files.with(name, |header, from| {
                let size = match (header.dtype.as_str(), header.fortran) {
                    ("<f4", false) if header.shape == sides => 4,
                    ("<f8", false) if header.shape == sides => 8,
                    _ => return Err(wrong(name, header, &format!("<f4 or <f8 of the shape {sides:?}"))),
                };
                let table = |_| read::table(from, cells.len(), size, &columns, few).map_err(|e| unreadable(name, e));
                (0..runs).map(table).collect()
            })?;
            let compartments = read::compartments(record).map_err(|what| damaged(&format!("`{name}`: {what}")))?;
            for (result, values) in results.iter_mut().zip(tables) {
                let (name, population, unit) = (name.clone(), population.to_owned(), unit.to_owned());
                let (columns, whole, compartments) = (columns.clone(), cells.len(), compartments.clone());
                let (cells, t) = (chosen.clone(), Arc::clone(&t));
                let series = Series { name, population, unit, cells, columns, whole, compartments, t, values };
                result.series.push(series);
            }
        } else if let Some(of) = name.strip_suffix(SPIKE_TIMES) {
            let cells = populations.get(of).and_then(|p| p.get("cells")).and_then(whole);
            let cells = cells.ok_or_else(|| damaged(&format!("it does not count the cells of `{of}`")))?;
            let t: Vec<f64> = files.vector::<8>(name, "<f8")?.into_iter().map(f64::from_le_bytes).collect();
            let i = files.cells(&format!("{of}{SPIKE_CELLS}"))?;
            let run = files.cells(&format!("{of}{SPIKE_RUNS}"))?;
            if t.len() != i.len() || t.len() != run.len() {
                return Err(format!(
                    "the spikes of `{of}` have {} times, {} cells and {} runs",
                    t.len(),
                    i.len(),
                    run.len()
                ));
            }
            for result in &mut results {
                result.spikes.push(SpikeTrain { population: of.to_owned(), cells, t: Vec::new(), i: Vec::new() });
            }
            for ((t, i), run) in t.into_iter().zip(i).zip(run) {
                let result = usize::try_from(run).ok().and_then(|run| results.get_mut(run));
                let train = result.and_then(|result| result.spikes.last_mut());
                let train = train.ok_or_else(|| format!("a spike of `{of}` belongs to run {run} of {runs}"))?;
                train.t.push(t);
                train.i.push(i);
            }
        }
    }
    if let Some(name) = records.keys().find(|name| !names.contains(name)) {
        return Err(format!("it has no array `{name}`"));
    }
    for (name, entry) in &parameters {
        let unit = entry.get("unit").and_then(Value::as_str).unwrap_or("1").to_owned();
        let all: Vec<ParameterValues> = if let Some(values) = entry.get("values").and_then(Value::as_array) {
            values.iter().map(|x| ParameterValues::One(x.as_f64().unwrap_or(f64::NAN))).collect()
        } else if let Some(population) = entry.get("population").and_then(Value::as_str) {
            if reading.no_parameters {
                continue;
            }
            let array = format!("{PARAMETER}{name}");
            let numbers: Vec<f64> = files.with(&array, |header, from| {
                let cells = header.shape.last().copied().unwrap_or(0) as usize;
                if header.dtype != "<f8" || header.fortran || header.numbers() != Some((runs * cells) as u64) {
                    return Err(wrong(&array, header, "<f8 with the axes of the sweep in front"));
                }
                let mut bytes = Vec::new();
                from.read_to_end(&mut bytes).map_err(|e| unreadable(&array, e))?;
                Ok(bytes.as_chunks::<8>().0.iter().map(|x| f64::from_le_bytes(*x)).collect())
            })?;
            let cells = numbers.len() / runs;
            let of_run = |at: usize| ParameterValues::PerCell {
                population: population.to_owned(),
                values: numbers[at * cells..(at + 1) * cells].to_vec(),
            };
            (0..runs).map(of_run).collect()
        } else {
            let value = entry.get("value").and_then(Value::as_f64).unwrap_or(f64::NAN);
            vec![ParameterValues::One(value); runs]
        };
        for (result, values) in results.iter_mut().zip(all) {
            result.parameters.push(Parameter { name: name.clone(), unit: unit.clone(), values });
        }
    }
    if let Some(full) = full {
        meta.insert("steps".into(), full);
    }
    meta.insert("complete".into(), steps.iter().all(|&steps| Some(steps) == whole_run).into());
    let contradiction = results.iter().find_map(RunResult::contradiction);
    contradiction.map_or(Ok(SweepResult { shape, axes, runs: results, meta }), Err)
}
