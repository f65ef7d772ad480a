//! Networks that learn classes of samples.
//!
//! In come models with a `train` block; out go scores of epochs, and what has been learnt.
//! Never true here: a network learns otherwise than under `neuroc train`.

use crate::error::{self, guarded, usage};
use crate::fitting::{budget, exact};
use crate::model::Model;
use crate::running::{Signals, lock};
use neuroc::engine::EngineError;
use neuroc::train::{self, Score, Session};
use numpy::{IntoPyArray, PyArray1};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard};

/// What a training has learnt.
#[pyclass(frozen, module = "neuroc._core")]
pub struct Trained(pub train::Trained);

/// A network that learns, an epoch at a time.
#[pyclass(frozen, module = "neuroc._core")]
pub struct Learning {
    session: Mutex<Session>,
    /// How many epochs there are to be in all.
    #[pyo3(get)]
    epochs: u64,
}

/// Loss, share of samples that are right, spikes for each sample, samples, wall time in s.
type Numbers = (f64, f64, f64, usize, f64);

fn numbers(score: &Score) -> Numbers {
    (score.loss, score.accuracy, score.spikes, score.samples, score.seconds)
}

#[pymethods]
impl Trained {
    /// Reads what `neuroc train` or `write` wrote.
    #[staticmethod]
    fn read(path: PathBuf) -> PyResult<Trained> {
        guarded(|| train::Trained::read(&path).map(Trained).map_err(|why| error::exception("SaveError", (why,))))
    }

    /// Writes an archive that `neuroc run --trained` and `neuroc train --resume` take.
    fn write(&self, path: PathBuf) -> PyResult<()> {
        guarded(|| self.0.write(&path).map_err(|why| error::exception("SaveError", (why,))))
    }

    /// The weights and delays of projections, in canonical units.
    fn weights<'py>(&self, py: Python<'py>) -> Vec<(String, Bound<'py, PyArray1<f64>>)> {
        self.0.edges.iter().map(|one| (one.name.clone(), one.values.to_vec().into_pyarray(py))).collect()
    }

    /// The parameters as settings.
    fn parameters(&self) -> Vec<String> {
        self.0.parameters.clone()
    }

    /// How many epochs there have been.
    fn epochs(&self) -> u64 {
        self.0.progress.as_ref().map_or(0, |progress| progress.epochs)
    }
}

impl Learning {
    pub fn new(
        py: Python<'_>,
        model: &Model,
        options: &Bound<'_, PyDict>,
        memory: &str,
        resume: Option<&Trained>,
        epochs: Option<u64>,
    ) -> PyResult<Learning> {
        let (compile, machine) = model.options(&model.settings(), options)?;
        exact(&machine, "training")?;
        let budget = budget(memory)?;
        let choice = || machine.choice().map_err(|e| EngineError(e.to_string()));
        let checked = &model.checked;
        let session =
            py.detach(|| Session::new(checked, &compile, &choice, machine.threads, machine.precision, budget));
        let mut session = session.map_err(|d| model.wrong(&d))?;
        let block = checked.model.as_ref().and_then(|m| m.train.as_ref());
        let epochs = epochs.unwrap_or_else(|| block.map_or(1, |t| t.epochs as u64));
        if epochs == 0 {
            return Err(usage("`epochs` is at least 1"));
        }
        session.plan(epochs as usize);
        if let Some(trained) = resume {
            session.resume(&trained.0).map_err(|why| usage(format!("cannot go on from what was learnt: {why}")))?;
            if session.epochs() >= epochs {
                let seen = session.epochs();
                return Err(usage(format!(
                    "all samples have been seen {seen} times, and {epochs} are asked for; a larger `epochs` goes on"
                )));
            }
        }
        Ok(Learning { session: Mutex::new(session), epochs })
    }

    fn lock(&self) -> PyResult<MutexGuard<'_, Session>> {
        lock(&self.session, "training")
    }
}

#[pymethods]
impl Learning {
    /// Numbers that learn, samples that they learn from, samples for testing, bytes that are kept of all steps.
    fn about(&self) -> PyResult<(usize, usize, usize, f64)> {
        let session = self.lock()?;
        Ok((session.count(), session.data().train().len(), session.data().test().len(), session.room().bytes))
    }

    /// How many epochs there have been.
    fn done(&self) -> PyResult<u64> {
        Ok(self.lock()?.epochs())
    }

    /// Is there an epoch to come? With `patience` there may be none before the last.
    fn goes_on(&self) -> PyResult<bool> {
        let session = self.lock()?;
        Ok(session.epochs() < self.epochs && !session.gives_up())
    }

    /// Is what has been learnt to be kept?
    fn is_best(&self) -> PyResult<bool> {
        Ok(self.lock()?.is_best())
    }

    /// Learns from all samples once, and tries those for testing. `news` is called with the samples seen, of how many, and the loss so far.
    fn epoch<'py>(&self, py: Python<'py>, news: Option<Py<PyAny>>) -> PyResult<(Numbers, Option<Numbers>)> {
        guarded(|| {
            let mut watcher = Signals::new(news);
            let scores = py.detach(|| {
                let mut session = self.lock()?;
                let Some(score) = session.epoch(&mut watcher).map_err(error::engine)? else { return Ok(None) };
                Ok::<_, PyErr>(Some((score, session.test().map_err(error::engine)?)))
            });
            match (scores?, watcher.error) {
                (_, Some(error)) => Err(error),
                (Some((score, test)), None) => Ok((numbers(&score), test.as_ref().map(numbers))),
                (None, None) => Err(usage("the epoch was stopped")),
            }
        })
    }

    /// What has been learnt so far.
    fn trained(&self) -> PyResult<Trained> {
        self.lock()?.trained().map(Trained).map_err(error::engine)
    }
}

impl train::Watcher for Signals {
    fn batch(&mut self, seen: usize, of: usize, loss: f64) -> bool {
        self.look(seen == of, (seen, of, loss))
    }
}
