//! What a run recorded.
//!
//! In comes a result; out go arrays that NumPy owns, and, when Python hands them back, a file.
//! Never true here: a sample is copied to get to Python.

use crate::error::{self, guarded};
use crate::value::vector;
use neuroc::report::{self, About, Source, Thinned, Took};
use neuroc::results::{
    Contents, Found, ParameterValues, Reading, ResultsError, RunResult, Samples, SpikeTrain, SweptAxis, TrainHead,
    Writer, check_destination,
};
use numpy::{IntoPyArray, PyArray1, PyReadonlyArray1, PyReadonlyArray2};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use serde_json::{Map, Value};
use std::path::PathBuf;
use std::sync::Arc;

/// All of a result but its samples and spikes, for the files that it is saved to.
#[pyclass(frozen, module = "neuroc._core")]
pub struct Recorded {
    contents: Contents,
    meta: Map<String, Value>,
    /// The texts of the model, where they are known.
    sources: Vec<Source>,
}

/// Times and samples of a record.
type Timed<'py> = (PyReadonlyArray1<'py, f64>, Rows<'py>);

/// Times and cells of the spikes of a population, by its name.
type Spiked<'py> = (String, Bound<'py, PyAny>, Bound<'py, PyAny>);

/// The same as arrays.
type Train<'py> = (PyReadonlyArray1<'py, f64>, PyReadonlyArray1<'py, i64>);

/// The samples of a record.
enum Rows<'py> {
    Single(PyReadonlyArray2<'py, f32>),
    Double(PyReadonlyArray2<'py, f64>),
}

impl Recorded {
    /// The arrays and everything else, by name.
    pub fn hand_over<'py>(py: Python<'py>, result: RunResult, sources: Vec<Source>) -> PyResult<Bound<'py, PyDict>> {
        let (contents, meta) = (result.contents(), result.meta);
        let all = PyDict::new(py);
        // Series that are sampled at the same times share them.
        let mut times: Vec<Arc<Vec<f64>>> = Vec::new();
        let mut rest = Vec::new();
        for s in result.series {
            let at = times.iter().position(|t| Arc::ptr_eq(t, &s.t));
            let at = at.unwrap_or_else(|| {
                times.push(Arc::clone(&s.t));
                times.len() - 1
            });
            let places: Option<Vec<_>> =
                (0..s.cells.len()).map(|column| s.compartment(column).map(|(_, c)| c)).collect();
            let places = places.filter(|_| s.compartments.is_some());
            let names: Option<Vec<String>> = places.as_ref().map(|all| all.iter().map(|c| c.name.clone()).collect());
            let distances: Option<Vec<f64>> = places.map(|all| all.iter().map(|c| c.distance).collect());
            rest.push(((s.name, s.population, s.unit, s.cells), (at, s.values), (names, distances)));
        }
        let own = |t: Arc<Vec<f64>>| Arc::try_unwrap(t).unwrap_or_else(|shared| shared.to_vec()).into_pyarray(py);
        let times: Vec<Bound<'py, PyArray1<f64>>> = times.into_iter().map(own).collect();
        let series = PyList::empty(py);
        for ((name, population, unit, cells), (at, values), (names, distances)) in rest {
            let values = match values {
                Samples::F32(x) => x.into_pyarray(py).into_any(),
                Samples::F64(x) => x.into_pyarray(py).into_any(),
            };
            let distances = distances.map(|um| um.into_pyarray(py));
            let (cells, t) = (numbers(py, cells), times[at].clone());
            series.append((name, population, unit, cells, t, values, names, distances))?;
        }
        all.set_item("series", series)?;
        let spikes = PyList::empty(py);
        for train in result.spikes {
            spikes.append((train.population, train.cells, train.t.into_pyarray(py), numbers(py, train.i)))?;
        }
        all.set_item("spikes", spikes)?;
        let populations = PyList::empty(py);
        for p in result.populations {
            populations.append((p.name, p.cells, pyo3::types::PyTuple::new(py, p.shape)?))?;
        }
        all.set_item("populations", populations)?;
        let parameters = PyList::empty(py);
        for p in result.parameters {
            match p.values {
                ParameterValues::One(x) => parameters.append((p.name, p.unit, x))?,
                ParameterValues::PerCell { values, .. } => {
                    parameters.append((p.name, p.unit, values.into_pyarray(py)))?
                }
            }
        }
        all.set_item("parameters", parameters)?;
        all.set_item("meta", Value::Object(meta.clone()).to_string())?;
        all.set_item("recorded", Recorded { contents, meta, sources })?;
        Ok(all)
    }

    /// The arrays that were handed over, as they are now.
    fn rows<'py>(&self, series: &[(Bound<'py, PyAny>, Bound<'py, PyAny>)]) -> PyResult<Vec<Timed<'py>>> {
        let mut rows = Vec::new();
        for (head, (t, values)) in self.contents.series.iter().zip(series) {
            let t = vector::<f64>(t)?;
            let changed = |_| error::usage(format!("the array of `{}` has another shape or kind now", head.name));
            let values = match values.extract::<PyReadonlyArray2<'_, f32>>() {
                Ok(single) => Rows::Single(single),
                Err(_) => Rows::Double(values.extract().map_err(changed)?),
            };
            let (times, shape) = (t.as_array().len() as u64, values.shape());
            if (Some(times), shape) != (head.samples, (times as usize, head.cells.len())) {
                return Err(error::usage(format!("the arrays of `{}` have another shape now", head.name)));
            }
            let t_now = t.as_array();
            if t_now.iter().any(|t| !t.is_finite()) || t_now.iter().zip(t_now.iter().skip(1)).any(|(a, b)| a > b) {
                let why = "times are finite numbers that do not go backwards";
                return Err(error::usage(format!("the array of the times of `{}` is none any more: {why}", head.name)));
            }
            rows.push((t, values));
        }
        Ok(rows)
    }

    /// The spikes that were handed over, as they are now, in the order of the populations that recorded them.
    fn trains<'py>(&self, spikes: &[Spiked<'py>]) -> PyResult<Vec<Train<'py>>> {
        let trains = &self.contents.trains;
        if let Some((name, ..)) = spikes.iter().find(|(name, ..)| trains.iter().all(|head| head.population != *name)) {
            return Err(error::usage(format!("`spikes` has `{name}` now, whose spikes were not recorded")));
        }
        let train = |head: &TrainHead| {
            let name = &head.population;
            let Some((_, t, cells)) = spikes.iter().find(|(now, ..)| now == name) else {
                return Err(error::usage(format!("`spikes` lacks `{name}` now, whose spikes were recorded")));
            };
            let (t, cells) = (vector::<f64>(t)?, vector::<i64>(cells)?);
            if t.len()? != cells.len()? {
                return Err(error::usage(format!("the arrays of the spikes of `{name}` have other lengths now")));
            }
            let is_cell = |cell: &i64| usize::try_from(*cell).is_ok_and(|cell| cell < head.cells);
            if !t.as_array().iter().all(|t| t.is_finite()) || !cells.as_array().iter().all(is_cell) {
                return Err(error::usage(format!(
                    "the arrays of the spikes of `{name}` are none any more: times are finite numbers, and cells those from 0 to {}",
                    head.cells.saturating_sub(1)
                )));
            }
            Ok((t, cells))
        };
        trains.iter().map(train).collect()
    }
}

/// Numbers of cells as NumPy counts.
fn numbers(py: Python<'_>, cells: Vec<u64>) -> Bound<'_, PyArray1<i64>> {
    cells.into_iter().map(|cell| cell as i64).collect::<Vec<i64>>().into_pyarray(py)
}

#[pymethods]
impl Recorded {
    /// Reads an archive or a directory of results: the same as a run answers; of a sweep its shape, what was set (name, unit, axis, values) and the
    /// runs.
    #[staticmethod]
    fn read<'py>(py: Python<'py>, path: PathBuf) -> PyResult<Bound<'py, PyAny>> {
        let found = guarded(|| {
            let read = || Found::read(&path, &Reading::default());
            py.detach(read).map_err(|e| error::exception("SaveError", (e.to_string(),)))
        })?;
        match found {
            Found::Run(result) => Ok(Recorded::hand_over(py, result, Vec::new())?.into_any()),
            Found::Sweep(sweep) => {
                let set = |axis: SweptAxis| (axis.name, axis.unit, axis.axis, axis.values.into_pyarray(py));
                let axes: Vec<_> = sweep.axes.into_iter().map(set).collect();
                let runs = sweep.runs.into_iter().map(|run| Recorded::hand_over(py, run, Vec::new()));
                let runs = runs.collect::<PyResult<Vec<_>>>()?;
                Ok((sweep.shape, axes, runs).into_pyobject(py)?.into_any())
            }
        }
    }

    /// Writes a file. `series` are the times and samples in the order in which they were handed over, `spikes` the names of the populations with
    /// times and cells.
    fn save(
        &self,
        path: PathBuf,
        compress: bool,
        series: Vec<(Bound<'_, PyAny>, Bound<'_, PyAny>)>,
        spikes: Vec<Spiked<'_>>,
    ) -> PyResult<Vec<PathBuf>> {
        guarded(|| {
            let wrong = |e: ResultsError| error::exception("SaveError", (e.to_string(),));
            check_destination(&path).map_err(wrong)?;
            let (rows, trains) = (self.rows(&series)?, self.trains(&spikes)?);
            let mut writer = Writer::new(&path, self.contents.clone(), compress).map_err(wrong)?;
            let mut next = vec![0; rows.len()];
            let mut row = Vec::new();
            loop {
                let waiting = rows.iter().zip(&next).filter_map(|((t, _), &at)| t.as_array().get(at).copied());
                let Some(t) = waiting.min_by(f64::total_cmp) else { break };
                for (at, ((times, values), next)) in rows.iter().zip(&mut next).enumerate() {
                    if times.as_array().get(*next) == Some(&t) {
                        values.row(*next, &mut row);
                        writer.row(at, t, &row).map_err(wrong)?;
                        *next += 1;
                    }
                }
            }
            for (at, (t, cells)) in trains.iter().enumerate() {
                for (&t, &cell) in t.as_array().iter().zip(cells.as_array()) {
                    writer.spike(at, t, cell as u64).map_err(wrong)?;
                }
            }
            writer.finish(&self.meta).map_err(wrong)
        })
    }

    /// The page of the run; with a path it is written there instead. Arrays as for `save`; `took`: until it was ready and from then on, in
    /// s, and its threads.
    fn report(
        &self,
        path: Option<PathBuf>,
        series: Vec<(Bound<'_, PyAny>, Bound<'_, PyAny>)>,
        spikes: Vec<Spiked<'_>>,
        took: Option<(f64, f64, usize)>,
    ) -> PyResult<Option<String>> {
        guarded(|| {
            let wrong = |e: String| error::exception("SaveError", (e,));
            if let Some(path) = path.as_deref().filter(|path| !report::is_page(path)) {
                let message = format!("cannot write `{}`: the name of a page must end in .html", path.display());
                return Err(wrong(message));
            }
            let rows = self.rows(&series)?;
            let times = rows.iter().map(|(t, _)| t.as_slice()).collect::<Result<Vec<&[f64]>, _>>()?;
            let mut trains = Vec::new();
            for (head, (t, cells)) in self.contents.trains.iter().zip(self.trains(&spikes)?) {
                let i = cells.as_array().iter().map(|&cell| cell as u64).collect();
                let (population, t) = (head.population.clone(), t.as_array().to_vec());
                trains.push(SpikeTrain { population, cells: head.cells, t, i });
            }
            let rest = RunResult {
                series: Vec::new(),
                spikes: trains,
                populations: self.contents.populations.clone(),
                parameters: self.contents.parameters.clone(),
                meta: self.meta.clone(),
            };
            let thinned =
                Thinned::new(&self.contents.series, &times, rest, |series, at, out| rows[series].1.row(at, out));
            let thinned = thinned.map_err(|e| wrong(e.to_string()))?;
            let took = took.map(|(compile_s, run_s, threads)| Took { compile_s, run_s, threads });
            let about = About { title: None, sources: self.sources.clone(), took };
            match path {
                Some(path) => report::write(&path, &thinned, &about).map(|()| None).map_err(wrong),
                None => Ok(Some(report::page(&thinned, &about))),
            }
        })
    }
}

impl Rows<'_> {
    fn shape(&self) -> (usize, usize) {
        match self {
            Rows::Single(x) => x.as_array().dim(),
            Rows::Double(x) => x.as_array().dim(),
        }
    }

    fn row(&self, at: usize, out: &mut Vec<f64>) {
        out.clear();
        match self {
            Rows::Single(x) => out.extend(x.as_array().row(at).iter().map(|&x| f64::from(x))),
            Rows::Double(x) => out.extend(x.as_array().row(at).iter()),
        }
    }
}
