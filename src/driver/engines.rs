//! The engine that runs an experiment.
//!
//! In come an [`Experiment`] and an [`EngineChoice`]; out comes an engine that is ready for the first step, with what it took.
//! Never true here: an engine is chosen, or a plan is changed by what happens to be installed.

use super::Experiment;
use crate::adaptive::Adaptive;
#[cfg(feature = "xla")]
use crate::codegen::plan::DevicePlan;
use crate::codegen::plan::{Plan, Precision};
use crate::diag::Diagnostic;
use crate::engine::native::{NativeEngine, NativeOptions};
use crate::engine::{Engine, EngineError};
#[cfg(feature = "xla")]
use crate::engine::{
    executables::Compiler,
    xla::{Forms, XlaEngine},
};
use crate::hir::Method;
use crate::interp::Interp;
#[cfg(feature = "xla")]
use crate::pjrt::Client;
use std::time::Instant;

/// What runs an experiment.
pub enum EngineChoice {
    /// The interpreter.
    Interp,
    /// Kernels that rustc compiles.
    Native(NativeOptions),
    /// Entry points that XLA compiles for the compiler's device, in these forms.
    #[cfg(feature = "xla")]
    Xla(Compiler, Forms),
}

/// An engine that is ready for the first step.
pub struct Ready {
    /// The engine.
    pub engine: Box<dyn Engine>,
    /// Was the kernel, or all of XLA's executables, in the cache? The interpreter has none.
    pub cached: Option<bool>,
    /// What it took to make or find them, in s.
    pub kernel_s: Option<f64>,
    /// How many threads it uses.
    pub threads: usize,
    /// What XLA runs on, and what it was given to run.
    #[cfg(feature = "xla")]
    pub xla: Option<(Client, DevicePlan)>,
    /// Wall time of making it, in s.
    pub compile_s: f64,
}

impl Ready {
    fn new(engine: impl Engine + 'static) -> Ready {
        Ready {
            engine: Box::new(engine),
            cached: None,
            kernel_s: None,
            threads: 1,
            #[cfg(feature = "xla")]
            xla: None,
            compile_s: 0.0,
        }
    }
}

impl EngineChoice {
    /// Is it the interpreter?
    pub fn is_interpreter(&self) -> bool {
        match self {
            EngineChoice::Interp => true,
            EngineChoice::Native(_) => false,
            #[cfg(feature = "xla")]
            EngineChoice::Xla(..) => false,
        }
    }
}

impl Experiment {
    /// The plan for an engine.
    pub fn plan_for(&self, choice: &EngineChoice, precision: Precision) -> Result<Plan, Vec<Diagnostic>> {
        match choice {
            EngineChoice::Interp | EngineChoice::Native(_) => self.plan_of_this_size(precision),
            #[cfg(feature = "xla")]
            EngineChoice::Xla(..) => self.plan(precision),
        }
    }

    /// Are its steps chosen by the error?
    pub fn is_adaptive(&self) -> bool {
        self.compiled.ode.method == Method::Adaptive
    }

    /// Does what is chosen need no plan: the interpreter, and what solves a model with adaptive steps here?
    pub fn needs_no_plan(&self, choice: &EngineChoice) -> bool {
        match choice {
            EngineChoice::Interp => true,
            EngineChoice::Native(_) => self.is_adaptive(),
            #[cfg(feature = "xla")]
            EngineChoice::Xla(..) => false,
        }
    }

    /// The interpreter, or what solves a model with adaptive steps; they need no plan.
    pub fn interpreter(&self) -> Result<Ready, EngineError> {
        let interpreter = Interp::new(self.compiled.program.clone(), &self.setup)?;
        if self.is_adaptive() {
            let (model, program) = (&self.compiled.ode, self.program());
            return Ok(Ready::new(Adaptive::new(model, program, &self.setup, Box::new(interpreter))));
        }
        let mut ready = Ready::new(interpreter);
        ready.engine.prepare(&self.recording, self.extent.grid.steps)?;
        Ok(ready)
    }

    /// Makes the engine, with its kernels compiled for the plan and for what is recorded.
    pub fn engine(&self, plan: &Plan, choice: EngineChoice) -> Result<Ready, EngineError> {
        let begin = Instant::now();
        self.countable(plan)?;
        let mut ready = match choice {
            EngineChoice::Interp => Ready::new(Interp::new(self.compiled.program.clone(), &self.setup)?),
            EngineChoice::Native(options) => {
                let engine = NativeEngine::new(plan, &self.setup, &options)?;
                let (compiled, threads) = (engine.compiled().clone(), engine.threads());
                let (cached, kernel_s) = (Some(compiled.cached), Some(compiled.seconds));
                Ready { threads, cached, kernel_s, ..Ready::new(engine) }
            }
            #[cfg(feature = "xla")]
            EngineChoice::Xla(compiler, forms) => return self.on_device(plan, compiler, &forms, begin),
        };
        ready.engine.prepare(&self.recording, self.extent.grid.steps)?;
        ready.compile_s = begin.elapsed().as_secs_f64();
        Ok(ready)
    }

    /// Edges that remember know when they have seen their last event, in steps: in single precision whole numbers end early.
    fn countable(&self, plan: &Plan) -> Result<(), EngineError> {
        let most = match plan.precision {
            Precision::F64 => 1 << f64::MANTISSA_DIGITS,
            Precision::F32 | Precision::Bf16 => 1 << f32::MANTISSA_DIGITS,
        };
        match plan.deliveries.iter().find(|delivery| delivery.remembers().is_some()) {
            Some(delivery) if self.extent.grid.steps > most => Err(EngineError(format!(
                "the edges `{}` remember, and count steps: in {} no more than {most} of them",
                delivery.name,
                plan.precision.name()
            ))),
            Some(_) | None => Ok(()),
        }
    }

    #[cfg(feature = "xla")]
    fn on_device(&self, plan: &Plan, compiler: Compiler, forms: &Forms, begin: Instant) -> Result<Ready, EngineError> {
        let inputs = XlaEngine::inputs_in(forms, plan, &self.setup, compiler.client())?;
        let xla = Some((compiler.client().clone(), inputs.device.clone()));
        let mut engine = XlaEngine::with_forms(&self.setup, inputs, compiler.clone())?;
        engine.prepare(&self.recording, self.extent.grid.steps)?;
        let spent = compiler.spent();
        let (cached, kernel_s) = (Some(spent.made == 0), Some(spent.seconds));
        Ok(Ready { cached, kernel_s, xla, compile_s: begin.elapsed().as_secs_f64(), ..Ready::new(engine) })
    }
}
