//! Runs with gradients, and parameters that are fitted to traces.
//!
//! In come names of parameters, traces and losses; out go samples, gradients as arrays, and the best values.
//! Never true here: a number is in another unit than the one that the model shows.

use crate::error::{self, guarded, usage};
use crate::model::Model;
use crate::running::{Machine, Signals, lock};
use crate::value::{self, Given};
use neuroc::cli::memory;
use neuroc::codegen::plan::Precision;
use neuroc::diag::Diagnostic;
use neuroc::driver::{self, Checked, CompileOptions, Fitted, Mode, Ways};
use neuroc::engine::EngineError;
use neuroc::fit::{self, Bounds, Number, Observed, Runs, Search, Target, Trace, WHOLE};
use neuroc::hir::{Feature, Goal};
use neuroc::simulate::Loss;
use neuroc::source::SourceMap;
use neuroc::units;
use numpy::{IntoPyArray, PyArray1, PyArrayMethods, PyReadonlyArray1};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyTuple};
use std::path::{Path, PathBuf};
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

/// How gradients are found, as it is written.
fn ways(mode: &str, memory: &str) -> PyResult<Ways> {
    let known = || usage(format!("there is no mode \"{mode}\"; write \"auto\", \"reverse\" or \"forward\""));
    Ok(Ways { mode: Mode::named(mode).ok_or_else(known)?, memory: budget(memory)? as u64 })
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
        (mode, memory): (&str, &str),
    ) -> PyResult<Differentiable> {
        let (compile, machine) = model.options(&model.settings(), options)?;
        exact(&machine, "a gradient")?;
        if machine.precision != Precision::F64 {
            return Err(usage("gradients are computed in f64; leave `precision` out"));
        }
        let ways = ways(mode, memory)?;
        let wrong = |d: Vec<Diagnostic>| model.wrong(&d);
        let (checked, compile): (&Checked, &CompileOptions) = (&model.checked, &compile);
        let names: Vec<_> = names.iter().map(|name| (name.clone(), None)).collect();
        let fitted = driver::Differentiable::parameters(checked, compile, &names).map_err(wrong)?;
        let mut values = Vec::new();
        for one in &fitted {
            let several =
                || usage(format!("`{}` is not one number; so far gradients are taken in such alone", one.name));
            values.push(one.value.ok_or_else(several)?);
        }
        let choice = || machine.choice().map_err(|e| EngineError(e.to_string()));
        let made =
            py.detach(|| driver::Differentiable::new(checked, compile, &fitted, &values, &choice, ways).map_err(wrong));
        let inner = Inner { run: made?, targets: Vec::new() };
        Ok(Differentiable { inner: Mutex::new(inner), checked: Arc::clone(&model.checked), fitted })
    }

    fn lock(&self) -> PyResult<MutexGuard<'_, Inner>> {
        lock(&self.inner, "gradient")
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

    /// Derivatives by canonical numbers as those by shown ones.
    fn slopes(&self, slopes: &[f64]) -> Vec<f64> {
        self.fitted.iter().zip(slopes).map(|(one, &x)| units::scale(x, one.unit.exponent)).collect()
    }
}

/// What a run is compared with: pairs of a record and a file, or two arrays; of a number that is read out of it, such as `rate(squid)`, and
/// what it should be, one for all cells or an array with one for each, or that and what counts as far.
fn targets(run: &dyn Runs, given: &Bound<'_, PyDict>, checked: &Checked) -> PyResult<Vec<Target>> {
    let wrong = |d: Diagnostic| error::of_setting(error::model(&checked.sources, &[d]));
    let mut targets: Vec<Target> = Vec::new();
    for (name, to) in given {
        let name: String = name.extract().map_err(|_| usage("targets are named as the records are: a text"))?;
        let words = to.extract::<String>().ok().filter(|text| in_words(text, feature(&name).is_some()));
        let target = match (words, feature(&name)) {
            (Some(text), _) => as_in_a_file(run, &format!("{name} = {text}"), checked)?,
            (None, Some((feature, of))) => number(run, &name, feature, of, &to, &wrong)?,
            (None, None) => trace(run, &name, &to, &wrong)?,
        };
        let shown = |target: &Target| target.shown(&run.outline().records).0;
        if targets.iter().any(|other| shown(other) == shown(&target)) {
            return Err(usage(format!("`{name}` is a target twice")));
        }
        targets.push(target);
    }
    if targets.is_empty() {
        return Err(usage("name at least one target: a record of the model, and its trace"));
    }
    Ok(targets)
}

/// `rate(squid)`: what is read out, and of what.
fn feature(name: &str) -> Option<(Feature, &str)> {
    let (word, of) = name.split_once('(')?;
    let feature = Feature::ALL.into_iter().find(|feature| feature.name() == word.trim())?;
    Some((feature, of.strip_suffix(')')?.trim()))
}

/// Is it in the words of a `fit` block, `40 Hz from 20 ms within 2 Hz` or `file("runs.csv", column = "second")`?
fn in_words(text: &str, number: bool) -> bool {
    let windowed = text.split_whitespace().any(|word| ["from", "to", "within"].contains(&word));
    text.trim_start().starts_with("file(") || number && windowed
}

/// A target as a `fit` block has it; files are relative to where the process is.
fn as_in_a_file(run: &dyn Runs, text: &str, checked: &Checked) -> PyResult<Target> {
    let wrong = |sources: &SourceMap, errors: &[Diagnostic]| error::of_setting(error::model(sources, errors));
    let asked = driver::fit_target(text).map_err(|found| wrong(&found.sources, &found.diagnostics))?;
    let found = fit::targets(&[asked], Path::new(""), run).map_err(|errors| wrong(&checked.sources, &errors))?;
    found.into_iter().next().ok_or_else(|| usage(format!("`{text}` is no target")))
}

fn number(
    run: &dyn Runs,
    name: &str,
    feature: Feature,
    of: &str,
    to: &Bound<'_, PyAny>,
    wrong: &dyn Fn(Diagnostic) -> PyErr,
) -> PyResult<Target> {
    let records = &run.outline().records;
    let of = if feature.of_spikes() { records.find_train(of) } else { records.find(of) }.map_err(wrong)?;
    let times = if feature.of_spikes() { Vec::new() } else { run.outline().times[of].clone() };
    let (window, duration) = (WHOLE, run.outline().duration);
    let mut number = Number { feature, of, window, value: vec![0.0], within: 1.0, times, duration };
    let unit = Target::Number(number.clone()).shown(records).1;
    let canonical = |x: &Bound<'_, PyAny>| -> PyResult<Vec<f64>> {
        Ok(match Given::new(name, x, None)? {
            Given::Number(x) => vec![value::canonical(x, &unit)],
            Given::Text(text) => vec![value::in_unit(name, &text, &unit)?],
            Given::Array(numbers, ..) => numbers.iter().map(|&x| value::canonical(x, &unit)).collect(),
        })
    };
    let (value, within) = match to.cast::<PyTuple>() {
        Ok(pair) if pair.len() == 2 => (canonical(&pair.get_item(0)?)?, Some(canonical(&pair.get_item(1)?)?)),
        Ok(_) | Err(_) => (canonical(to)?, None),
    };
    let cells = fit::cells(records, feature, of);
    if value.len() != 1 && value.len() != cells {
        let (numbers, cells) = (value.len(), if cells == 1 { "one cell".into() } else { format!("{cells} cells") });
        return Err(usage(format!("there are {numbers} numbers for `{name}`, which is read out of {cells}")));
    }
    if value.iter().any(|x| !x.is_finite()) {
        return Err(usage(format!("`{name}` comes near to finite numbers")));
    }
    number.within = match within.as_deref() {
        Some(&[far]) if far.is_finite() && far > 0.0 => far,
        Some(_) => return Err(usage(format!("what counts as far of `{name}` is one number greater than zero"))),
        None => fit::tenth(&value).ok_or_else(|| {
            let help = "give a pair: the number, and what counts as far, such as (0, 1)";
            usage(format!("it is not said what is near for `{name}`: a tenth of zero is nothing; {help}"))
        })?,
    };
    number.value = value;
    Ok(Target::Number(number))
}

fn trace(run: &dyn Runs, name: &str, to: &Bound<'_, PyAny>, wrong: &dyn Fn(Diagnostic) -> PyErr) -> PyResult<Target> {
    let record = run.outline().records.find(name).map_err(wrong)?;
    let times = &run.outline().times[record];
    let trace = if let Ok(path) = to.extract::<PathBuf>() {
        Trace::read(&run.outline().records, record, (&path, None), times)
    } else {
        let neither = |_| usage(format!("the trace for `{name}` is a file, or a pair of arrays: times in ms, values"));
        type Pair<'py> = (PyReadonlyArray1<'py, f64>, PyReadonlyArray1<'py, f64>);
        let (t, x) = to.extract::<Pair<'_>>().map_err(neither)?;
        let (t, x) = (t.as_array(), x.as_array());
        if t.len() != x.len() {
            let (t, x) = (t.len(), x.len());
            return Err(usage(format!("the trace for `{name}` has {t} times and {x} values")));
        }
        let samples: Vec<(f64, f64)> = t.iter().copied().zip(x.iter().copied()).collect();
        Trace::given(&run.outline().records, record, &samples, times)
    };
    trace.map(Target::Trace).map_err(wrong)
}

/// A parameter and its bounds.
type Ranged = (String, Py<PyAny>, Py<PyAny>);

/// How a fit goes, as it is asked for; what is absent is what the `fit` block of the model says.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub struct Asked {
    free: Option<Vec<Ranged>>,
    targets: Option<Py<PyDict>>,
    search: Option<String>,
    starts: Option<u32>,
    iterations: Option<u64>,
    mode: String,
    memory: String,
}

/// Looks for the values of parameters with which a run comes nearest to traces and numbers. `news` is called with the
/// number of the start, its runs so far, and its least loss so far.
pub fn fit<'py>(
    py: Python<'py>,
    model: &Model,
    asked: &Asked,
    options: &Bound<'_, PyDict>,
    news: Option<Py<PyAny>>,
) -> PyResult<Bound<'py, PyDict>> {
    let (compile, machine) = model.options(&model.settings(), options)?;
    exact(&machine, "a fit")?;
    if machine.precision != Precision::F64 {
        return Err(usage("fits are computed in f64; leave `precision` out"));
    }
    let ways = ways(&asked.mode, &asked.memory)?;
    let wrong = |d: Vec<Diagnostic>| model.wrong(&d);
    let checked = &model.checked;
    let block = checked.model.as_ref().and_then(|model| model.fit.as_ref());
    let names: Vec<_> = match (&asked.free, block) {
        (Some(free), _) => free.iter().map(|(name, ..)| (name.clone(), None)).collect(),
        (None, Some(block)) => block.free.iter().map(|free| (free.name.clone(), free.span)).collect(),
        (None, None) => Vec::new(),
    };
    if names.is_empty() {
        let help = "give their bounds, such as {\"Na.gbar\": (50, 300)}, or write a `fit` block in the model";
        return Err(usage(format!("no parameter is free; {help}")));
    }
    let fitted = driver::Differentiable::parameters(checked, &compile, &names).map_err(wrong)?;
    let bounds = match (&asked.free, block) {
        (Some(free), _) => {
            let all = fitted.iter().zip(free).map(|(one, (_, low, high))| bounds(one, low.bind(py), high.bind(py)));
            all.collect::<PyResult<Vec<_>>>()?
        }
        (None, Some(block)) => {
            let all = fitted.iter().zip(&block.free).map(|(one, free)| one.range(free).map_err(|d| wrong(vec![d])));
            all.map(|range| range.map(|(low, high)| Bounds { low, high })).collect::<PyResult<Vec<_>>>()?
        }
        (None, None) => Vec::new(),
    };
    let middle: Vec<f64> = bounds.iter().map(|b| (b.low + b.high) / 2.0).collect();
    let numbers = match (&asked.targets, block) {
        (Some(given), _) => {
            given.bind(py).keys().iter().any(|name| name.extract().is_ok_and(|name: String| feature(&name).is_some()))
        }
        (None, Some(block)) => block.targets.iter().any(|target| matches!(target.goal, Goal::Number { .. })),
        (None, None) => return Err(usage("name at least one target: a record of the model, and its trace")),
    };
    let method = match asked.search.as_deref() {
        None => block.and_then(|block| block.search),
        Some("lbfgs") => Some(fit::Method::Lbfgs),
        Some("nelder-mead" | "nelder_mead") => Some(fit::Method::NelderMead),
        Some(search) => {
            return Err(usage(format!("there is no search \"{search}\"; write \"lbfgs\" or \"nelder-mead\"")));
        }
    };
    let method = method.unwrap_or(if numbers { fit::Method::NelderMead } else { fit::Method::Lbfgs });
    if numbers && method == fit::Method::Lbfgs {
        return Err(usage(
            "\"lbfgs\" needs gradients, and a target is a number that is read out of a run; write search=\"nelder-mead\"",
        ));
    }
    let starts = asked.starts.or(block.and_then(|block| block.starts)).unwrap_or(1);
    let iterations = asked.iterations.or(block.and_then(|block| block.iterations)).unwrap_or(100);
    if starts == 0 || iterations == 0 {
        return Err(usage("`starts` and `iterations` are at least 1"));
    }
    let choice = move || machine.choice().map_err(|e| EngineError(e.to_string()));
    let aimed = |run: &dyn Runs| match (&asked.targets, block) {
        (Some(given), _) => targets(run, given.bind(py), checked),
        (None, Some(block)) => fit::targets(&block.targets, &block.directory, run).map_err(wrong),
        (None, None) => Ok(Vec::new()),
    };
    let (mut run, targets): (Box<dyn Runs + Send>, Vec<Target>) = match method {
        fit::Method::Lbfgs => {
            let made =
                || driver::Differentiable::new(checked, &compile, &fitted, &middle, &choice, ways).map_err(wrong);
            let mut run = py.detach(made)?;
            let targets = aimed(&run)?;
            let idle = py.detach(|| fit::idle(&mut run, &bounds, &targets)).map_err(error::engine)?;
            if let Some(&first) = idle.first() {
                let help = "leave it out, or record something that it changes";
                return Err(usage(format!("no target depends on `{}`; {help}", fitted[first].name)));
            }
            (Box::new(run), targets)
        }
        fit::Method::NelderMead => {
            let choice = Box::new(choice);
            let made = || driver::Repeated::new(checked, &compile, &fitted, &middle, choice).map_err(wrong);
            let run = py.detach(made)?;
            let targets = aimed(&run)?;
            (Box::new(run), targets)
        }
    };
    let mut watcher = Signals::new(news);
    let outcome = py.detach(|| {
        let search = Search { method, starts, iterations, seed: run.outline().seed };
        fit::fit(run.as_mut(), &bounds, &targets, &search, &mut watcher).map_err(error::engine)
    })?;
    let shown = |values: &[f64]| -> Vec<f64> {
        fitted.iter().zip(values).map(|(one, &x)| value::shown(x, &one.unit)).collect()
    };
    let all = PyDict::new(py);
    let off = targets.iter().zip(&outcome.off).map(|(target, &off)| {
        let (name, unit) = target.shown(&run.outline().records);
        (name, units::scale(off, -unit.exponent), unit.name)
    });
    all.set_item("off", off.collect::<Vec<_>>())?;
    let named = fitted.iter().map(|one| (one.name.clone(), one.unit.name.clone()));
    all.set_item("parameters", named.collect::<Vec<_>>())?;
    all.set_item("values", shown(&outcome.values))?;
    all.set_item("loss", outcome.loss)?;
    let starts = PyList::empty(py);
    for start in &outcome.starts {
        starts.append((shown(&start.from), shown(&start.values), start.loss, start.runs))?;
    }
    all.set_item("remark", outcome.remark())?;
    all.set_item("starts", starts)?;
    all.set_item("stopped", watcher.error.map(|error| error.into_value(py)))?;
    Ok(all)
}

/// The bounds of a parameter: numbers in its unit, or texts.
fn bounds(one: &Fitted, low: &Bound<'_, PyAny>, high: &Bound<'_, PyAny>) -> PyResult<Bounds> {
    let end = |end: &Bound<'_, PyAny>| match Given::new(&one.name, end, None)? {
        Given::Number(x) => Ok(value::canonical(x, &one.unit)),
        Given::Text(text) => value::with_unit(&one.name, &text, one.dim, &one.unit),
        Given::Array(..) => Err(usage(format!("a bound of `{}` is one number", one.name))),
    };
    let both = Bounds { low: end(low)?, high: end(high)? };
    if both.low < both.high && both.low.is_finite() && both.high.is_finite() {
        return Ok(both);
    }
    let [low, high] = [both.low, both.high].map(|x| one.shown(x));
    let name = &one.name;
    let why = "the first bound must be less than the second";
    Err(usage(format!("`{name}` cannot lie between {low} and {high}: {why}")))
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
        let all = run.outline().records.series.iter().zip(&run.outline().times);
        Ok(all.map(|(r, t)| (r.name.clone(), r.unit.name.clone(), t.clone().into_pyarray(py))).collect())
    }

    /// How many bytes of states are kept at the same time, at most; 0 if derivatives go forward with the run.
    fn memory(&self) -> PyResult<u64> {
        Ok(self.lock()?.run.memory().unwrap_or(0))
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
                let exponents: Vec<i32> = run.outline().records.series.iter().map(|r| r.unit.exponent).collect();
                let lengths: Vec<usize> = run.outline().times.iter().map(Vec::len).collect();
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
            inner.targets = targets(&inner.run, given, &self.checked)?;
            if inner.targets.iter().any(|target| matches!(target, Target::Number(_))) {
                return Err(usage("numbers that are read out of a run have no gradient; compare it with traces"));
            }
            Ok(())
        })
    }

    /// The loss of [`fit()`], and its gradient.
    fn with_targets<'py>(&self, py: Python<'py>, values: Vec<f64>) -> PyResult<(f64, Bound<'py, PyArray1<f64>>)> {
        guarded(|| {
            let values = self.canonical(&values)?;
            let found = py.detach(|| {
                let Inner { run, targets } = &mut *self.lock()?;
                run.gradient(&values, &mut |samples| fit::loss(targets, Observed { samples, spikes: &[] }))
                    .map_err(error::engine)
            });
            let (found, gradient) = found?;
            Ok((found.loss, self.slopes(&gradient).into_pyarray(py)))
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
