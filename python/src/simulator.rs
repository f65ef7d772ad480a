//! A run that Python advances.
//!
//! In come wishes: steps, names, numbers; out go numbers and spikes.
//! Never true here: one simulator takes two wishes at once.

use crate::error::{self, guarded, usage};
use crate::running::{Signals, lock};
use crate::value::{self, Given};
use neuroc::driver::Checked;
use neuroc::results::Checkpoint;
use neuroc::simulate::{Ending, Quantity, Stepping};
use neuroc::step::Source;
use numpy::{IntoPyArray, PyArray1};
use pyo3::exceptions::PyOverflowError;
use pyo3::prelude::*;
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard};

/// A run that is taken step by step, with states and parameters read and written in between.
///
/// `Model.simulator` makes one. Numbers have the units that the model shows (`unit(name)` tells); texts may have any unit of the same
/// kind. Use it in a `with` block, or `close` it, to give its memory and threads back at once.
///
/// >>> with model.simulator() as s:
/// ...     while s.time < 100:
/// ...         s.step(4)
/// ...         s["step.amplitude"] = 10.0 if s["squid.soma.v"][0] < -40 else 0.0
#[pyclass(frozen, module = "neuroc")]
pub struct Simulator {
    inner: Mutex<Option<Inner>>,
}

struct Inner {
    stepping: Stepping,
    checked: Arc<Checked>,
    names: HashMap<String, Quantity>,
    cells: usize,
    numbers: Vec<f64>,
}

/// The states of a simulator at one time; `Simulator.save` makes one, `Simulator.restore` goes back to it.
#[pyclass(frozen, module = "neuroc")]
pub struct Saved {
    checkpoint: Checkpoint,
}

#[pymethods]
impl Saved {
    /// The time in ms.
    #[getter]
    fn time(&self) -> f64 {
        self.checkpoint.t
    }

    /// The steps that were done.
    #[getter]
    fn steps(&self) -> u64 {
        self.checkpoint.step
    }

    /// Writes a checkpoint (.npz), which `Simulator.restore` and `neuroc run --load` take.
    fn write(&self, path: PathBuf) -> PyResult<()> {
        guarded(|| self.checkpoint.write(&path).map_err(|e| error::exception("SaveError", (e.to_string(),))))
    }

    fn __repr__(&self) -> String {
        format!("<neuroc.Saved at {} ms>", self.checkpoint.t)
    }
}

/// So many steps of a cell are done before the interpreter is let go.
const SHORT: u64 = 2_000;

impl Simulator {
    pub fn new(stepping: Stepping, checked: Arc<Checked>) -> Simulator {
        let cells = stepping.extent().cells.iter().sum();
        let inner = Inner { stepping, checked, names: HashMap::new(), cells, numbers: Vec::new() };
        Simulator { inner: Mutex::new(Some(inner)) }
    }

    fn lock(&self) -> PyResult<MutexGuard<'_, Option<Inner>>> {
        lock(&self.inner, "simulator")
    }

    fn with<T>(&self, work: impl FnOnce(&mut Inner) -> PyResult<T>) -> PyResult<T> {
        guarded(|| match self.lock()?.as_mut() {
            Some(inner) => work(inner),
            None => Err(error::exception(
                "ClosedError",
                ("this simulator is closed; make a new one with model.simulator()",),
            )),
        })
    }
}

impl Inner {
    fn find(&mut self, name: &str) -> PyResult<Quantity> {
        if let Some(&known) = self.names.get(name) {
            return Ok(known);
        }
        let found = self.stepping.find(name).map_err(|d| error::model(&self.checked.sources, &[d]))?;
        self.names.insert(name.to_string(), found);
        Ok(found)
    }

    fn failed(&self, error: neuroc::simulate::RunError) -> PyErr {
        error::run(&self.checked.sources, error)
    }

    fn write(&mut self, name: &str, value: &Bound<'_, PyAny>) -> PyResult<()> {
        let what = self.find(name)?;
        let (full, dim, unit) = self.stepping.about(what);
        self.numbers.clear();
        match Given::new(name, value, Some(&unit.name))? {
            Given::Number(x) => self.numbers.push(value::canonical(x, unit)),
            Given::Text(text) => {
                let dim = dim
                    .ok_or_else(|| usage(format!("`{full}` is computed for being recorded, and cannot be written")))?;
                self.numbers.push(value::with_unit(full, &text, dim, unit)?);
            }
            Given::Array(values, shape) => {
                // A grid of cells is what Python's side makes flat; a single number is for all cells.
                if shape.len() > 1 {
                    return Err(usage(format!("`{full}` takes an array with one side, [cell]; use .ravel()")));
                }
                let cells = self.stepping.cells(what).map(|cells| cells.len());
                if values.len() == 1 && cells.is_some_and(|cells| cells != 1) {
                    let cells = cells.unwrap_or_default();
                    let help = "give a plain number for all cells";
                    return Err(usage(format!("`{full}` has {cells} cells, but 1 number is given; {help}")));
                }
                self.numbers.extend(values.into_iter().map(|x| value::canonical(x, unit)));
            }
        }
        self.stepping.write(what, &self.numbers).map_err(|e| error::run(&self.checked.sources, e))
    }
}

/// A number of steps.
fn steps(n: &Bound<'_, PyAny>) -> PyResult<u64> {
    let few = match n.extract::<i64>() {
        Ok(few) => u64::try_from(few).ok(),
        Err(error) if error.is_instance_of::<PyOverflowError>(n.py()) => None,
        Err(error) => return Err(error),
    };
    few.ok_or_else(|| usage(format!("{n} steps cannot be taken; 0 to {} can", i64::MAX)))
}

#[pymethods]
impl Simulator {
    /// Takes `n` steps of `dt`. Answers how many spikes there were, of all populations.
    ///
    /// Raises `NotFiniteError` if a state became NaN or infinite, and `KeyboardInterrupt` at Ctrl-C, after which it may go on.
    #[pyo3(signature = (n = 1, /))]
    fn step(&self, py: Python<'_>, #[pyo3(from_py_with = steps)] n: u64) -> PyResult<usize> {
        self.with(|inner| {
            let mut signals = Signals::new(None);
            let ended = if n.saturating_mul(inner.cells as u64) <= SHORT {
                inner.stepping.step(n, &mut signals)
            } else {
                py.detach(|| inner.stepping.step(n, &mut signals))
            };
            match ended.map_err(|e| inner.failed(e))? {
                Ending::Done => Ok(inner.stepping.spikes().len()),
                Ending::Stopped => Err(signals.error.unwrap_or_else(|| usage("the run was stopped"))),
                Ending::NotFinite(d) => {
                    let texts = error::texts(&inner.checked.sources, &[*d]);
                    Err(error::exception("NotFiniteError", texts))
                }
            }
        })
    }

    /// The value of a state, a parameter or something recorded, by its name or the end of it: an array of shape `[cell]`, or a float for a
    /// parameter that all cells share; in the unit that `unit` tells.
    fn __getitem__<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
        self.with(|inner| {
            let what = inner.find(name)?;
            let mut values = Vec::with_capacity(inner.stepping.cells(what).map_or(1, |cells| cells.len()));
            inner.stepping.read(what, &mut values).map_err(error::engine)?;
            let unit = inner.stepping.about(what).2;
            if unit.exponent != 0 {
                values.iter_mut().for_each(|x| *x = value::shown(*x, unit));
            }
            match (inner.stepping.cells(what), &values[..]) {
                (None, &[x]) => Ok(x.into_pyobject(py)?.into_any()),
                _ => Ok(values.into_pyarray(py).into_any()),
            }
        })
    }

    /// Writes a state or a parameter: a number (in the unit that `unit` tells), a text with a unit, or an array of shape `[cell]`.
    ///
    /// What says how many cells there are or how they are connected, and weights and delays, cannot be written once a run has begun.
    fn __setitem__(&self, name: &str, value: &Bound<'_, PyAny>) -> PyResult<()> {
        self.with(|inner| inner.write(name, value))
    }

    /// The full name and the unit of a state, a parameter or something recorded.
    fn about(&self, name: &str) -> PyResult<(String, String)> {
        self.with(|inner| {
            let what = inner.find(name)?;
            let (full, _, unit) = inner.stepping.about(what);
            Ok((full.to_string(), unit.name.clone()))
        })
    }

    /// The unit in which a state, a parameter or something recorded is read and written.
    fn unit(&self, name: &str) -> PyResult<String> {
        Ok(self.about(name)?.1)
    }

    /// The spikes of a population in the last call of `step`: times in ms, shape `[spike]`, and cells from 0, shape `[spike]`.
    #[allow(clippy::type_complexity)]
    fn spikes<'py>(
        &self,
        py: Python<'py>,
        population: &str,
    ) -> PyResult<(Bound<'py, PyArray1<f64>>, Bound<'py, PyArray1<i64>>)> {
        self.with(|inner| {
            let stepping = &inner.stepping;
            let populations = &stepping.model().populations;
            let at = populations.iter().position(|p| p.name == population).ok_or_else(|| {
                let names = populations.iter().map(|p| format!("\"{}\"", p.name)).collect::<Vec<_>>().join(", ");
                usage(format!("there is no population \"{population}\"; the populations are {names}"))
            })?;
            let field = stepping.program().bound(Source::Spikes(at as u32));
            let Some(field) = field.filter(|_| populations[at].spike.is_some()) else {
                return Err(usage(format!(
                    "cells of \"{population}\" have no spikes: the model says nothing of when they spike"
                )));
            };
            let dt = stepping.extent().grid.dt;
            let own = || stepping.spikes().iter().filter(|spike| spike.field == field);
            let t: Vec<f64> = own().map(|spike| spike.time(dt)).collect();
            let cells: Vec<i64> = own().map(|spike| spike.cell as i64).collect();
            Ok((t.into_pyarray(py), cells.into_pyarray(py)))
        })
    }

    /// The time in ms.
    #[getter]
    fn time(&self) -> PyResult<f64> {
        self.with(|inner| Ok(inner.stepping.time()))
    }

    /// The steps that are done.
    #[getter]
    fn steps(&self) -> PyResult<u64> {
        self.with(|inner| Ok(inner.stepping.now()))
    }

    /// The time step in ms.
    #[getter]
    fn dt(&self) -> PyResult<f64> {
        self.with(|inner| Ok(inner.stepping.extent().grid.dt))
    }

    /// Keeps the states as they are now, for `restore`. Parameters are not part of it.
    fn save(&self) -> PyResult<Saved> {
        self.with(|inner| {
            let checkpoint = inner.stepping.save().map_err(|why| usage(format!("this run cannot be saved: {why}")))?;
            Ok(Saved { checkpoint })
        })
    }

    /// Goes back, or forward, to saved states: what `save` gave, or a checkpoint file. Parameters stay as they are.
    fn restore(&self, saved: &Bound<'_, PyAny>) -> PyResult<()> {
        self.with(|inner| {
            let read;
            let held;
            let checkpoint = match saved.cast::<Saved>() {
                Ok(saved) => {
                    held = saved.clone();
                    &held.get().checkpoint
                }
                Err(_) => {
                    let path = saved.extract::<PathBuf>();
                    let path = path.map_err(|_| usage("restore takes what save gave, or the path of a checkpoint"))?;
                    read = Checkpoint::read(&path).map_err(|e| error::exception("SaveError", (e.to_string(),)))?;
                    &read
                }
            };
            inner.stepping.restore(checkpoint).map_err(|why| usage(format!("it cannot go on from there: {why}")))
        })
    }

    /// Gives memory and threads back. Closing twice does nothing.
    fn close(&self) -> PyResult<()> {
        guarded(|| {
            *self.lock()? = None;
            Ok(())
        })
    }

    /// Is it closed?
    #[getter]
    fn closed(&self) -> PyResult<bool> {
        Ok(self.lock()?.is_none())
    }

    fn __enter__(this: Py<Self>) -> Py<Self> {
        this
    }

    #[pyo3(signature = (*_error))]
    fn __exit__(&self, _error: &Bound<'_, pyo3::types::PyTuple>) -> PyResult<()> {
        self.close()
    }

    fn __repr__(&self) -> PyResult<String> {
        Ok(match self.lock()?.as_ref() {
            Some(inner) => {
                let (name, cells) = (&inner.stepping.model().name, inner.cells);
                format!("<neuroc.Simulator of {name}: {cells} cells at {} ms>", inner.stepping.time())
            }
            None => "<neuroc.Simulator: closed>".into(),
        })
    }
}
