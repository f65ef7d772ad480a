//! The runs of `neuroc verify`.
//!
//! In comes a checked model and what is to be different in a run; out comes what it recorded, or how it failed.
//! Never true here: results are compared.

use super::super::progress::{Interrupt, Progress};
use super::super::run::fits;
use super::super::settings::{EngineName, EngineSettings, PassSettings, PrecisionName};
use super::super::{Exit, blamed, blamed_drawing, report, say};
use super::{Args, estimate};
use crate::diag::Diagnostic;
use crate::driver::{self, Checked, Compiled, Draft, Experiment};
use crate::engine::moved::Moved;
use crate::engine::{Engine, EngineError};
use crate::hir::Method;
use crate::ode;
use crate::results::RunResult;
use crate::simulate::{Ending, RunError, RunOptions};

/// What runs.
pub struct Job<'a> {
    /// As a user is told.
    pub label: &'a str,
    pub engine: EngineName,
    pub precision: PrecisionName,
    pub passes: &'a PassSettings,
    pub change: Change,
}

/// How a run differs from what the model and the command line say.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Change {
    /// Not at all.
    None,
    /// Another method, and the step divided; what it records stays as it is.
    Method(Method, Parts),
    /// The states are moved now and then.
    Moved,
}

/// Into how many parts a step is divided.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Parts {
    Two,
    Four,
    Sixteen,
}

impl Parts {
    /// As a number.
    pub fn count(self) -> f64 {
        match self {
            Parts::Two => 2.0,
            Parts::Four => 4.0,
            Parts::Sixteen => 16.0,
        }
    }
}

/// How a run ended.
pub enum Ended {
    /// At its end.
    Done(RunResult),
    /// A value was not finite.
    NotFinite(Box<Diagnostic>),
}

impl Ended {
    /// What it recorded, if it came to its end.
    pub fn done(&self) -> Option<&RunResult> {
        match self {
            Ended::Done(result) => Some(result),
            Ended::NotFinite(_) => None,
        }
    }

    /// What became not finite, if it did not.
    pub fn failure(&self) -> Option<&str> {
        match self {
            Ended::Done(_) => None,
            Ended::NotFinite(diagnostic) => Some(&diagnostic.message),
        }
    }
}

/// Why there is nothing.
pub enum Problem {
    /// It has been said.
    Said(Exit),
    /// The engine cannot run here.
    Engine(String),
}

impl From<EngineError> for Problem {
    fn from(error: EngineError) -> Problem {
        Problem::Engine(error.0)
    }
}

/// Runs one model in many ways.
pub struct Runner<'a> {
    pub args: &'a Args,
    pub checked: &'a Checked,
    /// The model with the settings of the command line.
    pub model: ode::Model,
    interrupt: Interrupt,
}

impl<'a> Runner<'a> {
    /// What is wrong with the settings has been said.
    pub fn new(args: &'a Args, checked: &'a Checked) -> Result<Runner<'a>, Exit> {
        let Some(model) = &checked.model else { return Err(Exit::of(&checked.diagnostics)) };
        let interpreter = EngineName::Interp.backend();
        let options = args.settings.options(&args.opt, PrecisionName::F64, interpreter)?;
        let (mut model, _) = driver::flatten(model, &options).map_err(|errors| blamed(checked, &options, &errors))?;
        // Runs are compared at all times: their spikes may differ.
        model.records.iter_mut().for_each(|record| record.around = None);
        Ok(Runner { args, checked, model, interrupt: Interrupt::catch() })
    }

    /// Prints what went wrong in a run.
    pub fn tell(&self, diagnostic: &Diagnostic) {
        report(&self.checked.sources, std::slice::from_ref(diagnostic));
    }

    /// Compiles and runs.
    pub fn run(&self, job: &Job) -> Result<Ended, Problem> {
        let outcome = self.outcome(job);
        if self.interrupt.pressed() {
            // Where Ctrl-C has ended a compiler, the engine is not at fault.
            say("stopped; nothing was compared");
            return Err(Problem::Said(Exit::Stopped));
        }
        outcome
    }

    fn outcome(&self, job: &Job) -> Result<Ended, Problem> {
        let fail = |errors: Vec<Diagnostic>| Problem::Said(failed(self.checked, &errors));
        let draft = Draft::new(self.compiled(job)?).map_err(fail)?;
        let precision = job.precision.into();
        fits(draft.memory(precision, job.engine.backend()), None).map_err(Problem::Said)?;
        let blame = |errors: Vec<Diagnostic>| {
            let options = self.args.settings.options(job.passes, job.precision, job.engine.backend());
            Problem::Said(options.map_or_else(|exit| exit, |options| blamed_drawing(self.checked, &options, &errors)))
        };
        let experiment = draft.experiment().map_err(blame)?;
        let choice = self.engine_settings(job).choice()?;
        let mut engine = match experiment.plan_for(&choice, precision) {
            Ok(plan) => experiment.engine(&plan, choice)?.engine,
            Err(_) if experiment.needs_no_plan(&choice) => experiment.interpreter()?.engine,
            Err(errors) => return Err(fail(errors)),
        };
        match job.change {
            Change::None | Change::Method(..) => self.simulate(job, &experiment, engine.as_mut()),
            Change::Moved => {
                let steps = experiment.extent.grid.steps;
                let mut engine = Moved::new(engine.as_mut(), experiment.states(), steps);
                self.simulate(job, &experiment, &mut engine)
            }
        }
    }

    fn compiled(&self, job: &Job) -> Result<Compiled, Problem> {
        let mut model = self.model.clone();
        match job.change {
            Change::None | Change::Moved => {}
            Change::Method(method, parts) => {
                for record in &mut model.records {
                    record.every = record.every.or(Some(model.dt));
                }
                model.method = method;
                model.dt /= parts.count();
            }
        }
        let options = self.args.settings.options(job.passes, job.precision, job.engine.backend());
        driver::compile_flat(model, &self.checked.sources, &options.map_err(Problem::Said)?, &mut |_, _, _| {})
            .map_err(|errors| Problem::Said(failed(self.checked, &errors)))
    }

    fn engine_settings(&self, job: &Job) -> EngineSettings {
        EngineSettings {
            engine: job.engine,
            precision: Some(job.precision),
            #[cfg(feature = "xla")]
            device: Some(self.args.device),
            #[cfg(feature = "xla")]
            plugin: self.args.plugin.clone(),
            #[cfg(feature = "xla")]
            gather: None,
            #[cfg(feature = "xla")]
            unroll: None,
            threads: None,
            cache: self.args.cache.clone(),
        }
    }

    fn simulate(&self, job: &Job, experiment: &Experiment, engine: &mut dyn Engine) -> Result<Ended, Problem> {
        let grid = experiment.extent.grid;
        let mut options = RunOptions { window: job.passes.fuse, ..RunOptions::default() };
        if job.engine == EngineName::Interp {
            let pace = estimate::pace(engine, grid.steps)?;
            if let Some(words) = estimate::words(job.label, pace * grid.steps as f64, grid) {
                say(words);
            }
            // Ctrl-C is looked for between windows.
            options.window = options.window.min((0.1 / pace).ceil().max(1.0) as u32);
        }
        let label = format!("{}  ", job.label);
        let mut progress = Progress::new(&label, grid, &self.interrupt, self.args.json);
        let outcome = experiment.run(engine, &options, &mut progress);
        progress.finish();
        match outcome {
            Ok((result, outcome)) => match outcome.ending {
                Ending::Done | Ending::Stopped => Ok(Ended::Done(result)),
                Ending::NotFinite(diagnostic) => Ok(Ended::NotFinite(diagnostic)),
            },
            Err(RunError::Engine(error)) => Err(error.into()),
            Err(RunError::Sink(error)) => Err(Problem::Engine(error.0)),
            Err(RunError::Model(errors)) => Err(Problem::Said(failed(self.checked, &errors))),
        }
    }
}

fn failed(checked: &Checked, errors: &[Diagnostic]) -> Exit {
    report(&checked.sources, errors);
    Exit::of(errors)
}
