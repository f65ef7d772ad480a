//! Many runs of one model: those of a sweep.
//!
//! In come a checked model, options and a [`Design`]; out go results, run by run in the order of the design, each the same as that of
//! a single run with its settings.
//! Never true here: a kernel is compiled again because a value is another one, or more threads work than were asked for.

use super::{Checked, CompileOptions, Draft, EngineChoice, Experiment, compile, flatten};
use crate::codegen::plan::Precision;
use crate::diag::Diagnostic;
use crate::engine::EngineError;
use crate::ode::{self, Design};
use crate::results::RunResult;
use crate::simulate::{self, Extent, Outcome, RunError, RunOptions, Watcher};
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, mpsc};
use std::thread;

/// A sweep of a checked model.
#[derive(Debug, Clone, Copy)]
pub struct Sweep<'a> {
    /// The model.
    pub checked: &'a Checked,
    /// What is the same in all runs.
    pub options: &'a CompileOptions,
    /// What is not.
    pub design: &'a Design,
    /// The numbers of the runs.
    pub precision: Precision,
}

/// Who does the runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Crew {
    /// So many runs go on at the same time.
    pub runs: usize,
    /// So many threads has each.
    pub threads: usize,
}

impl Crew {
    /// As many runs at once as there are threads, and all threads if there are fewer runs than that.
    pub fn new(threads: usize, runs: usize) -> Crew {
        let at_once = threads.min(runs).max(1);
        Crew { runs: at_once, threads: (threads / at_once).max(1) }
    }
}

/// What became of a run: results and how it ended, or why it did not begin.
pub type Done = Result<(RunResult, Outcome), RunError>;

/// How an engine is chosen for so many threads.
pub type Choose<'a> = dyn Fn(usize) -> Result<EngineChoice, EngineError> + Sync + 'a;

impl Sweep<'_> {
    /// The options of a run.
    pub fn options(&self, run: usize) -> CompileOptions {
        let (set, seed) = self.design.settings(run);
        let mut options = self.options.clone();
        options.set.extend(set);
        options.seed = seed.or(options.seed);
        options
    }

    /// Looks at the values of a run, and at how many cells and steps it has. Answers its model, too, and what is probably wrong with it.
    pub fn look(&self, run: usize) -> Result<(ode::Model, Extent, Vec<Diagnostic>), Vec<Diagnostic>> {
        let told = |errors| self.told(run, errors);
        let Some(model) = &self.checked.model else { return Err(self.checked.diagnostics.clone()) };
        let (flat, warnings) = flatten(model, &self.options(run)).map_err(told)?;
        let extent = simulate::extent(&flat).map_err(told)?;
        Ok((flat, extent, self.told(run, self.checked.not_said(warnings))))
    }

    /// With a note which run it is.
    pub fn told(&self, run: usize, mut diagnostics: Vec<Diagnostic>) -> Vec<Diagnostic> {
        let note = format!("in the run with {}", self.design.told(run));
        diagnostics.iter_mut().for_each(|d| d.notes.push(note.clone()));
        diagnostics
    }

    /// A run without its values, which may take long and much memory.
    pub fn draft(&self, run: usize) -> Result<Draft, Vec<Diagnostic>> {
        Draft::new(compile(self.checked, &self.options(run), &mut |_, _, _| {})?)
    }

    /// Does one run.
    fn one(
        &self,
        run: usize,
        threads: usize,
        choose: &Choose,
        options: &RunOptions,
        watcher: &mut dyn Watcher,
    ) -> Done {
        let experiment = self.draft(run).and_then(Draft::experiment).map_err(RunError::Model)?;
        self.go(&experiment, threads, choose, options, watcher)
    }

    /// Does the run of an experiment.
    fn go(
        &self,
        experiment: &Experiment,
        threads: usize,
        choose: &Choose,
        options: &RunOptions,
        watcher: &mut dyn Watcher,
    ) -> Done {
        let choice = choose(threads)?;
        let mut ready = match experiment.plan_for(&choice, self.precision) {
            Ok(plan) => experiment.engine(&plan, choice)?,
            Err(_) if experiment.needs_no_plan(&choice) => experiment.interpreter()?,
            Err(errors) => return Err(RunError::Model(errors)),
        };
        experiment.run(ready.engine.as_mut(), options, watcher)
    }

    /// Does all runs. The first one, whose experiment is given, goes alone: it may compile a kernel, which the others find. `take` gets
    /// them in their order, and no more than twice as many as go on at once wait for it. It answers whether to begin more of them; what
    /// is going on by then is still taken. What `watcher` makes looks at a run while it goes on.
    pub fn run(
        &self,
        crew: Crew,
        first: Experiment,
        choose: &Choose,
        options: &RunOptions,
        watcher: &(dyn Fn() -> Box<dyn Watcher> + Sync),
        take: &mut dyn FnMut(usize, Done) -> bool,
    ) {
        let runs = self.design.runs();
        let all = crew.runs * crew.threads;
        if !take(0, self.go(&first, all, choose, options, &mut *watcher())) {
            return;
        }
        drop(first);
        let (order, orders) = mpsc::channel::<usize>();
        let (answer, answers) = mpsc::channel::<(usize, thread::Result<Done>)>();
        let (orders, over) = (&Mutex::new(orders), &AtomicBool::new(false));
        thread::scope(|scope| {
            for _ in 0..crew.runs {
                let answer = answer.clone();
                scope.spawn(move || {
                    loop {
                        let next = orders.lock().map(|orders| orders.recv());
                        let Ok(Ok(run)) = next else { return };
                        // Nobody begins what is not begun.
                        if over.load(Ordering::Relaxed) {
                            return;
                        }
                        let one = || self.one(run, crew.threads, choose, options, &mut *watcher());
                        // A bug in one of them is one of all.
                        let done = catch_unwind(AssertUnwindSafe(one));
                        if answer.send((run, done)).is_err() {
                            return;
                        }
                    }
                });
            }
            drop(answer);
            let mut order = Some(order);
            let (mut next, mut taken) = (1, 1);
            let mut waiting: BTreeMap<usize, Done> = BTreeMap::new();
            while taken < runs {
                while let Some(order) = order.as_ref().filter(|_| next < runs && next < taken + 2 * crew.runs) {
                    // There is somebody to do it as long as answers are waited for.
                    let _ = order.send(next);
                    next += 1;
                }
                let Ok((run, done)) = answers.recv() else { break };
                match done {
                    Ok(done) => drop(waiting.insert(run, done)),
                    Err(panic) => {
                        over.store(true, Ordering::Relaxed);
                        drop(order);
                        resume_unwind(panic);
                    }
                }
                while let Some(done) = waiting.remove(&taken) {
                    taken += 1;
                    if !take(taken - 1, done) {
                        over.store(true, Ordering::Relaxed);
                        order = None;
                    }
                }
            }
        });
    }
}
