//! Runs with gradients, and parameters that are fitted to traces.
//!
//! In come names of parameters, traces and losses; out go samples, gradients as arrays, and the best values.
//! Never true here: a number is in another unit than the one that the model shows.

use crate::error::{self, guarded, usage};
use crate::model::Model;
use crate::running::{Engine, Machine, Signals, lock};
use crate::value::{self, Given};
use neuroc::cli::memory;
use neuroc::codegen::plan::Precision;
use neuroc::diag::Diagnostic;
use neuroc::driver::{self, Checked, CompileOptions, Fitted};
use neuroc::engine::EngineError;
use neuroc::fit::{self, Bounds, Search, Target};
use neuroc::simulate::Loss;
use neuroc::units;
use numpy::{IntoPyArray, PyArray1, PyArrayMethods, PyReadonlyArray1};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard};

/// A run whose losses are differentiated in parameters.
#[pyclass(frozen, module = "neuroc._core")]
pub struct Differentiable {
    inner: Mutex<Inner>,
    checked: Arc<Checked>,
    fitted: Vec<Fitted>,
}

struct Inner {
    run: driver::Differentiable,
    /// The traces that it is compared with.
    targets: Vec<Target>,
}

/// Memory for states, as it is written.
pub fn budget(text: &str) -> PyResult<f64> {
    memory::size(text).map_err(|why| usage(format!("`memory` is \"{text}\": {why}")))
}

/// Refuses engines and numbers that gradients of runs are not made for.
fn suited(machine: &Machine, what: &str) -> PyResult<()> {
    if !matches!(machine.engine, Engine::Native | Engine::Interp) {
        return Err(usage(format!("so far {what} runs on the native engine and the interpreter")));
    }
    exact(machine, what)
}

/// Refuses less accuracy.
pub fn exact(machine: &Machine, what: &str) -> PyResult<()> {
    if machine.tolerance.is_some() {
        return Err(usage(format!("{what} computes exactly; leave `accuracy` out")));
    }
    Ok(())
}

impl Differentiable {
    pub fn new(
        py: Python<'_>,
        model: &Model,
        names: &[String],
        options: &Bound<'_, PyDict>,
        memory: &str,
    ) -> PyResult<Differentiable> {
        let (compile, machine) = model.options(&model.settings(), options)?;
        suited(&machine, "a gradient")?;
        if machine.precision != Precision::F64 {
            return Err(usage("gradients are computed in f64; leave `precision` out"));
        }
        let budget = budget(memory)?;
        let wrong = |d: Vec<Diagnostic>| model.wrong(&d);
        let (checked, compile): (&Checked, &CompileOptions) = (&model.checked, &compile);
        let fitted = driver::Differentiable::parameters(checked, compile, names).map_err(wrong)?;
        let mut values = Vec::new();
        for one in &fitted {
            let several =
                || usage(format!("`{}` is not one number; so far gradients are taken in such alone", one.name));
            values.push(one.value.ok_or_else(several)?);
        }
        let choice = || machine.choice().map_err(|e| EngineError(e.to_string()));
        let made = py.detach(|| {
            driver::Differentiable::new(checked, compile, &fitted, &values, &choice, budget as u64).map_err(wrong)
        });
        let inner = Inner { run: made?, targets: Vec::new() };
        Ok(Differentiable { inner: Mutex::new(inner), checked: Arc::clone(&model.checked), fitted })
    }

    fn lock(&self) -> PyResult<MutexGuard<'_, Inner>> {
        lock(&self.inner, "gradient")
    }

    fn wrong(&self, d: Diagnostic) -> PyErr {
        error::of_setting(error::model(&self.checked.sources, &[d]))
    }

    /// Numbers in shown units as canonical ones.
    fn canonical(&self, values: &[f64]) -> PyResult<Vec<f64>> {
        if values.len() != self.fitted.len() {
            let (given, needed) = (values.len(), self.fitted.len());
            return Err(usage(format!("{given} values are given for {needed} parameters")));
        }
        if let Some((one, x)) = self.fitted.iter().zip(values).find(|(_, x)| !x.is_finite()) {
            let message = format!("`{}` cannot be {x}; give it a finite number", one.name);
            return Err(error::exception("SettingError", (message,)));
        }
        Ok(self.fitted.iter().zip(values).map(|(one, &x)| value::canonical(x, &one.unit)).collect())
    }

    fn shown(&self, values: &[f64]) -> Vec<f64> {
        self.fitted.iter().zip(values).map(|(one, &x)| value::shown(x, &one.unit)).collect()
    }

    /// Derivatives by canonical numbers as those by shown ones.
    fn slopes(&self, slopes: &[f64]) -> Vec<f64> {
        self.fitted.iter().zip(slopes).map(|(one, &x)| units::scale(x, one.unit.exponent)).collect()
    }
}

/// The traces that a run is compared with: pairs of a record and a file, or two arrays.
fn targets(run: &driver::Differentiable, given: &Bound<'_, PyDict>, whole: &Differentiable) -> PyResult<Vec<Target>> {
    let mut targets: Vec<Target> = Vec::new();
    for (name, trace) in given {
        let name: String = name.extract().map_err(|_| usage("targets are named as the records are: a text"))?;
        let record = fit::find_record(run.records(), &name).map_err(|d| whole.wrong(d))?;
        let times = &run.times()[record];
        let target = if let Ok(path) = trace.extract::<PathBuf>() {
            Target::read(run.records(), record, &path, times)
        } else {
            let wrong =
                |_| usage(format!("the trace for `{name}` is a file, or a pair of arrays: times in ms, values"));
            type Pair<'py> = (PyReadonlyArray1<'py, f64>, PyReadonlyArray1<'py, f64>);
            let (t, x) = trace.extract::<Pair<'_>>().map_err(wrong)?;
            let (t, x) = (t.as_array(), x.as_array());
            if t.len() != x.len() {
                let (t, x) = (t.len(), x.len());
                return Err(usage(format!("the trace for `{name}` has {t} times and {x} values")));
            }
            let samples: Vec<(f64, f64)> = t.iter().copied().zip(x.iter().copied()).collect();
            Target::given(run.records(), record, &samples, times)
        };
        let target = target.map_err(|d| whole.wrong(d))?;
        if targets.iter().any(|other| other.record == target.record) {
            return Err(usage(format!("`{name}` is a target twice")));
        }
        targets.push(target);
    }
    if targets.is_empty() {
        return Err(usage("name at least one target: a record of the model, and its trace"));
    }
    Ok(targets)
}

#[pymethods]
impl Differentiable {
    /// The parameters: full name, unit, the value that they are set to.
    fn parameters(&self) -> Vec<(String, String, f64)> {
        let of = |one: &Fitted| {
            let value = value::shown(one.value.unwrap_or(f64::NAN), &one.unit);
            (one.name.clone(), one.unit.name.clone(), value)
        };
        self.fitted.iter().map(of).collect()
    }

    /// The records: name, unit, times of the samples in ms.
    #[allow(clippy::type_complexity)]
    fn records<'py>(&self, py: Python<'py>) -> PyResult<Vec<(String, String, Bound<'py, PyArray1<f64>>)>> {
        let run = &self.lock()?.run;
        let all = run.records().series.iter().zip(run.times());
        Ok(all.map(|(r, t)| (r.name.clone(), r.unit.name.clone(), t.clone().into_pyarray(py))).collect())
    }

    /// How many bytes of states are kept at the same time, at most.
    fn memory(&self) -> PyResult<u64> {
        Ok(self.lock()?.run.memory())
    }

    /// A loss and its gradient. `loss` is called with an array `[time, cell]` for each record, and answers the loss and its derivatives in
    /// each of these.
    fn with_loss<'py>(
        &self,
        py: Python<'py>,
        values: Vec<f64>,
        loss: &Bound<'py, PyAny>,
    ) -> PyResult<(f64, Bound<'py, PyArray1<f64>>)> {
        guarded(|| {
            let values = self.canonical(&values)?;
            let loss = loss.clone().unbind();
            let found = py.detach(|| {
                let run = &mut self.lock()?.run;
                let exponents: Vec<i32> = run.records().series.iter().map(|r| r.unit.exponent).collect();
                let lengths: Vec<usize> = run.times().iter().map(Vec::len).collect();
                let mut failed = None;
                let found = run.gradient(&values, &mut |samples| {
                    let asked = Python::attach(|py| ask(py, &loss, samples, &exponents, &lengths));
                    asked.unwrap_or_else(|error| {
                        failed = Some(error);
                        Loss { value: f64::NAN, slopes: samples.iter().map(|s| vec![0.0; s.len()]).collect() }
                    })
                });
                match failed {
                    Some(error) => Err(error),
                    None => found.map_err(error::engine),
                }
            });
            let (found, gradient) = found?;
            Ok((found.loss, self.slopes(&gradient).into_pyarray(py)))
        })
    }

    /// Compares the run with these traces from now on: a dict from records to files or pairs of arrays.
    fn aim(&self, given: &Bound<'_, PyDict>) -> PyResult<()> {
        guarded(|| {
            let mut inner = self.lock()?;
            inner.targets = targets(&inner.run, given, self)?;
            Ok(())
        })
    }

    /// The loss of [`fit`], and its gradient.
    fn with_targets<'py>(&self, py: Python<'py>, values: Vec<f64>) -> PyResult<(f64, Bound<'py, PyArray1<f64>>)> {
        guarded(|| {
            let values = self.canonical(&values)?;
            let found = py.detach(|| {
                let Inner { run, targets } = &mut *self.lock()?;
                run.gradient(&values, &mut |samples| fit::loss(targets, samples)).map_err(error::engine)
            });
            let (found, gradient) = found?;
            Ok((found.loss, self.slopes(&gradient).into_pyarray(py)))
        })
    }

    /// Looks for the values with which the run comes nearest to its traces; `bounds` are pairs of numbers or texts. `news` is called with the
    /// number of the start, its runs so far, and its least loss so far.
    fn fit<'py>(
        &self,
        py: Python<'py>,
        bounds: Vec<(Bound<'py, PyAny>, Bound<'py, PyAny>)>,
        search: &str,
        starts: u32,
        iterations: u64,
        news: Option<Py<PyAny>>,
    ) -> PyResult<Bound<'py, PyDict>> {
        guarded(|| {
            let method = match search {
                "lbfgs" => fit::Method::Lbfgs,
                "nelder-mead" => fit::Method::NelderMead,
                _ => return Err(usage(format!("there is no search \"{search}\"; write \"lbfgs\" or \"nelder-mead\""))),
            };
            if starts == 0 || iterations == 0 {
                return Err(usage("`starts` and `iterations` are at least 1"));
            }
            let mut ends = Vec::new();
            for (one, (low, high)) in self.fitted.iter().zip(&bounds) {
                let end = |end: &Bound<'py, PyAny>| match Given::new(&one.name, end)? {
                    Given::Number(x) => Ok(value::canonical(x, &one.unit)),
                    Given::Text(text) => value::with_unit(&one.name, &text, one.dim, &one.unit),
                    Given::Array(..) => Err(usage(format!("a bound of `{}` is one number", one.name))),
                };
                let both = Bounds { low: end(low)?, high: end(high)? };
                if !(both.low < both.high && both.low.is_finite() && both.high.is_finite()) {
                    let [low, high] = [both.low, both.high].map(|x| one.shown(x));
                    let name = &one.name;
                    let why = "the first bound must be less than the second";
                    return Err(usage(format!("`{name}` cannot lie between {low} and {high}: {why}")));
                }
                ends.push(both);
            }
            let bounds = ends;
            let mut watcher = Signals::new(news);
            let outcome = py.detach(|| {
                let Inner { run, targets } = &mut *self.lock()?;
                let middle: Vec<f64> = bounds.iter().map(|b| (b.low + b.high) / 2.0).collect();
                let idle = fit::idle(run, &middle, targets).map_err(error::engine)?;
                if let Some(&first) = idle.first() {
                    let help = "leave it out, or record something that it changes";
                    return Err(usage(format!("no target depends on `{}`; {help}", self.fitted[first].name)));
                }
                let search = Search { method, starts, iterations, seed: run.seed() };
                fit::fit(run, &bounds, targets, &search, &mut watcher).map_err(error::engine)
            });
            let outcome = outcome?;
            let all = PyDict::new(py);
            let Inner { run, targets } = &*self.lock()?;
            let off = targets.iter().zip(&outcome.off).map(|(target, &off)| {
                let record = &run.records().series[target.record];
                (record.name.clone(), units::scale(off, -record.unit.exponent), record.unit.name.clone())
            });
            all.set_item("off", off.collect::<Vec<_>>())?;
            all.set_item("values", self.shown(&outcome.values))?;
            all.set_item("loss", outcome.loss)?;
            let starts = PyList::empty(py);
            for start in &outcome.starts {
                starts.append((self.shown(&start.from), self.shown(&start.values), start.loss, start.runs))?;
            }
            all.set_item("starts", starts)?;
            all.set_item("stopped", watcher.error.map(|error| error.into_value(py)))?;
            Ok(all)
        })
    }
}

/// Asks a loss in Python, whose arrays are in shown units.
fn ask(py: Python<'_>, loss: &Py<PyAny>, samples: &[Vec<f64>], exponents: &[i32], lengths: &[usize]) -> PyResult<Loss> {
    let shown = PyList::empty(py);
    for ((of, &exponent), &length) in samples.iter().zip(exponents).zip(lengths) {
        let values: Vec<f64> = of.iter().map(|&x| units::scale(x, -exponent)).collect();
        let cells = of.len().checked_div(length).unwrap_or(0);
        shown.append(values.into_pyarray(py).reshape([length, cells])?)?;
    }
    let (value, slopes): (f64, Vec<PyReadonlyArray1<'_, f64>>) = loss.bind(py).call1((shown,))?.extract()?;
    let slopes = slopes.iter().zip(exponents).map(|(slopes, &exponent)| {
        let canonical = |&x: &f64| units::scale(x, -exponent);
        slopes.as_array().iter().map(canonical).collect()
    });
    Ok(Loss { value, slopes: slopes.collect() })
}

impl fit::Watcher for Signals {
    fn run(&mut self, start: u32, runs: u64, loss: f64) -> bool {
        self.look(false, (start, runs, loss))
    }
}
