//! Runs that are done again with other values of parameters.
//!
//! In come a checked model and the names of parameters; out goes a [`Repeated`] run: what it records and who spikes. Whatever runs may be repeated: resets,
//! events, noise and sizes, too.
//! Never true here: a run is another than one with these settings.

use super::{Checked, CompileOptions, EngineChoice, Experiment, Fitted, Outline, compile};
use crate::codegen::plan::Precision;
use crate::diag::Diagnostic;
use crate::engine::EngineError;
use crate::results::RunResult;
use crate::simulate::{RunError, RunOptions, Unwatched};
use std::sync::Arc;

/// How the engine of a run is chosen.
pub type Choice<'a> = dyn Fn() -> Result<EngineChoice, EngineError> + Send + 'a;

/// A run that is done again and again.
pub struct Repeated<'a> {
    checked: Arc<Checked>,
    options: CompileOptions,
    choice: Box<Choice<'a>>,
    outline: Outline,
}

impl<'a> Repeated<'a> {
    /// Compiles a run with free parameters of these values (in canonical units).
    pub fn new(
        checked: &Arc<Checked>,
        options: &CompileOptions,
        fitted: &[Fitted],
        values: &[f64],
        choice: Box<Choice<'a>>,
    ) -> Result<Repeated<'a>, Vec<Diagnostic>> {
        let outline = Outline::new(&experiment(checked, options, fitted, values)?, fitted)?;
        Ok(Repeated { checked: Arc::clone(checked), options: options.clone(), choice, outline })
    }

    /// What is known of it.
    pub fn outline(&self) -> &Outline {
        &self.outline
    }

    /// Runs it with these values of the free parameters (in canonical units). What is not a finite number is not looked for.
    pub fn run(&self, values: &[f64]) -> Result<RunResult, EngineError> {
        let told = |errors: Vec<Diagnostic>| {
            let texts: Vec<String> = errors.into_iter().map(|d| d.message).collect();
            EngineError(texts.join("; "))
        };
        let experiment = experiment(&self.checked, &self.options, &self.outline.fitted, values).map_err(told)?;
        let choice = (self.choice)()?;
        let mut ready = match experiment.plan_for(&choice, Precision::F64) {
            Ok(plan) => experiment.engine(&plan, choice)?,
            Err(_) if experiment.needs_no_plan(&choice) => experiment.interpreter()?,
            Err(errors) => return Err(told(errors)),
        };
        let options = RunOptions { trap: false, ..RunOptions::default() };
        match experiment.run(ready.engine.as_mut(), &options, &mut Unwatched) {
            Ok((result, _)) => Ok(result),
            Err(RunError::Engine(error)) => Err(error),
            Err(RunError::Model(errors)) => Err(told(errors)),
            Err(RunError::Sink(error)) => Err(EngineError(error.to_string())),
        }
    }
}

fn experiment(
    checked: &Checked,
    options: &CompileOptions,
    fitted: &[Fitted],
    values: &[f64],
) -> Result<Experiment, Vec<Diagnostic>> {
    let mut options = options.clone();
    options.set.extend(fitted.iter().zip(values).map(|(one, &x)| format!("{}={}", one.name, one.shown(x))));
    Experiment::new(compile(checked, &options, &mut |_, _, _| {})?)
}
