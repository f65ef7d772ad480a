//! Every stage of a compilation as text: what `neuroc emit` prints, and what a scientist's own tests keep as snapshots.
//!
//! In comes a model file or source text; out goes the text of a [`Stage`], or an [`Error`] that reads like the compiler's
//! messages.
//! Never true here: a text depends on the machine, the time or the directory it was made in (beyond the file name as given).

use crate::codegen::plan::{PlanOptions, Precision};
use crate::codegen::rust;
#[cfg(feature = "xla")]
use crate::codegen::{
    plan::{DeviceClass, Stretch},
    stablehlo::{Entry, Kind, mlir},
};
use crate::diag::{self, Code, Diagnostic, Diagnostics};
#[cfg(feature = "xla")]
use crate::driver::Experiment;
use crate::driver::{self, Checked, CompileOptions, Passes};
#[cfg(feature = "xla")]
use crate::engine::EngineError;
use crate::hir::{self, Sources};
use crate::passes::{Backend, Pass};
use crate::step::{self, Program, Verified};
use crate::{ode, syntax};
use clap::ValueEnum;
use std::fmt;
use std::path::Path;
use std::time::Duration;

/// A stage of the compilation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Stage {
    /// The syntax tree
    Ast,
    /// Names resolved, dimensions checked
    Hir,
    /// Differential equations
    Ode,
    /// The step IR
    Ir,
    /// The step IR after passes
    IrOpt,
    /// Decisions about code shape
    Plan,
    /// Rust kernels
    Rust,
    /// StableHLO: the entry points of the whole simulation, of as many cells as the model has
    #[cfg(feature = "xla")]
    Stablehlo,
}

impl Stage {
    /// What the passes prepare a program for.
    pub fn backend(self) -> Backend {
        match self {
            Stage::Ast | Stage::Hir | Stage::Ode | Stage::Ir | Stage::IrOpt | Stage::Plan | Stage::Rust => {
                Backend::Native
            }
            #[cfg(feature = "xla")]
            Stage::Stablehlo => Backend::Xla,
        }
    }
}

/// The text of a stage.
#[derive(Debug, Clone, PartialEq)]
pub struct Emitted {
    /// The text; it ends with a line break.
    pub text: String,
    /// The program after passes, for the stages that have one.
    pub program: Option<Verified>,
    /// Warnings.
    pub diagnostics: Vec<Diagnostic>,
}

/// Compiles a checked source as far as a stage. `observer` sees the program after every pass.
///
/// The syntax tree needs a file without mistakes of syntax only. With passes named one by one, [`Stage::Ir`] is as they leave it.
pub fn emit(
    checked: &Checked,
    stage: Stage,
    options: &CompileOptions,
    precision: Precision,
    observer: &mut dyn FnMut(&Pass, &Program, Duration),
) -> Result<Emitted, Vec<Diagnostic>> {
    if stage == Stage::Ast {
        return tree(checked);
    }
    let Some(model) = &checked.model else { return Err(checked.diagnostics.clone()) };
    let mut diagnostics = checked.diagnostics.clone();
    if stage == Stage::Hir {
        return Ok(Emitted { text: hir::print(model), program: None, diagnostics });
    }
    if stage == Stage::Ode {
        let (flat, warnings) = driver::flatten(model, options)?;
        diagnostics.extend(checked.not_said(warnings));
        return Ok(Emitted { text: ode::print(&flat), program: None, diagnostics });
    }
    #[cfg(feature = "xla")]
    if stage == Stage::Stablehlo {
        let options = CompileOptions { backend: Backend::Xla, ..options.clone() };
        let compiled = driver::compile(checked, &options, observer)?;
        diagnostics.extend(compiled.warnings.clone());
        let experiment = Experiment::new(compiled)?;
        let text = entry_points(&experiment, precision)?;
        return Ok(Emitted { text, program: Some(experiment.compiled.program), diagnostics });
    }
    if stage == Stage::Rust && precision == Precision::Bf16 {
        let why = "native code stores f64 or f32, not bf16";
        return Err(vec![Diagnostic::without_place(Code::BadValue, why)]);
    }
    let compiled = driver::compile(checked, options, observer)?;
    diagnostics.extend(compiled.warnings.clone());
    let planned = || driver::planned(&compiled, &PlanOptions { precision, ..PlanOptions::default() });
    let text = match stage {
        Stage::Ast | Stage::Hir | Stage::Ode => String::new(), // returned above
        Stage::Ir if matches!(options.passes, Passes::Level(_)) => step::print(compiled.plain.program()),
        Stage::Ir | Stage::IrOpt => step::print(compiled.program.program()),
        Stage::Plan => planned()?.to_string(),
        Stage::Rust => rust::kernel_files(&planned()?)
            .into_iter()
            .find(|f| f.path == "src/kernels.rs")
            .map_or_else(String::new, |f| f.text),
        #[cfg(feature = "xla")]
        Stage::Stablehlo => String::new(), // returned above
    };
    Ok(Emitted { text, program: Some(compiled.program), diagnostics })
}

/// One module with all entry points, as an engine would run them one by one.
#[cfg(feature = "xla")]
fn entry_points(experiment: &Experiment, precision: Precision) -> Result<String, Vec<Diagnostic>> {
    let plan = experiment.plan(precision)?;
    let refused = |why: EngineError| vec![Diagnostic::without_place(Code::Unsupported, why.to_string())];
    let device = experiment.setup.device_plan(&plan, DeviceClass::Cpu).map_err(refused)?;
    let recording = &experiment.recording;
    let stretch = Stretch::new(&plan, &device, recording.every, &recording.fields, experiment.extent.grid.steps);
    let kinds = [Some(Kind::Init), Some(Kind::Step), stretch.map(Kind::Stretch), Some(Kind::Observe)];
    let functions: Vec<_> = kinds
        .into_iter()
        .flatten()
        .map(|kind| Entry::new(&plan, &device, kind.clone(), kind.name()).function)
        .collect();
    let text = mlir::write(&plan.name, &functions, &plan.origins, mlir::Format::Plain);
    Ok(String::from_utf8_lossy(&text).into_owned())
}

fn tree(checked: &Checked) -> Result<Emitted, Vec<Diagnostic>> {
    let Some((id, file)) = checked.sources.files().next() else { return Err(checked.diagnostics.clone()) };
    let mut diagnostics = Diagnostics::default();
    let tree = syntax::parse(id, &file.text, &mut diagnostics);
    let failed = diagnostics.has_errors();
    let diagnostics = diagnostics.sorted();
    if failed { Err(diagnostics) } else { Ok(Emitted { text: format!("{tree:#?}\n"), program: None, diagnostics }) }
}

/// A checked model, for tests of one's own models.
///
/// Three lines keep the optimized step of a model as a snapshot; the test fails when it changes. A file is looked for from
/// where the test runs: with cargo, the root of the package.
///
/// ```no_run
/// # fn main() -> Result<(), neuroc::Error> {
/// let model = neuroc::Model::from_file("models/my.neuro")?.set("Na.gbar=100mS/cm2");
/// let text = model.stage(neuroc::Stage::IrOpt)?;
/// // insta::assert_snapshot!(text);
/// # assert!(!text.is_empty());
/// # Ok(())
/// # }
/// ```
///
/// A mistake in the model is an error that reads like the compiler's message:
///
/// ```
/// let wrong = neuroc::Model::from_source("cell C { state x: mV = 1 mV; x' = x }");
/// assert!(wrong.unwrap_err().to_string().starts_with("error[NU0201]"));
/// ```
#[derive(Debug)]
pub struct Model {
    checked: Checked,
    options: CompileOptions,
    precision: Precision,
}

impl Model {
    /// Checks a model file and everything that it uses.
    pub fn from_file(path: impl AsRef<Path>) -> Result<Model, Error> {
        Model::new(driver::check_file(path.as_ref()))
    }

    /// Checks a model given as text, which messages call `model.neuro`. Files that it names are looked for from where the
    /// program runs.
    pub fn from_source(text: impl Into<String>) -> Result<Model, Error> {
        Model::new(driver::check_text("model.neuro", Path::new(""), text, &Sources))
    }

    fn new(checked: Checked) -> Result<Model, Error> {
        if checked.model.is_none() {
            return Err(Error::new(&checked, &checked.diagnostics));
        }
        Ok(Model { checked, options: CompileOptions::default(), precision: Precision::F64 })
    }

    /// Sets a parameter, as `--set` does: `Na.gbar=100mS/cm2`. A setting that does not fit is an error of [`Model::stage`].
    pub fn set(mut self, setting: impl Into<String>) -> Model {
        self.options.set.push(setting.into());
        self
    }

    /// Replaces all options: time step, method, passes and so on, and what [`Model::set`] has set.
    pub fn options(mut self, options: CompileOptions) -> Model {
        self.options = options;
        self
    }

    /// Chooses the numbers of [`Stage::Plan`], [`Stage::Rust`] and StableHLO (double precision otherwise).
    pub fn precision(mut self, precision: Precision) -> Model {
        self.precision = precision;
        self
    }

    /// The text of a stage. All but [`Stage::Ast`] and [`Stage::Hir`] need a `network` and a `run` block.
    pub fn stage(&self, stage: Stage) -> Result<String, Error> {
        emit(&self.checked, stage, &self.options, self.precision, &mut |_, _, _| {})
            .map(|e| e.text)
            .map_err(|d| Error::new(&self.checked, &d))
    }

    /// What is probably wrong with the model, as the compiler says it; empty if nothing is.
    pub fn warnings(&self) -> String {
        diag::render_human(&self.checked.sources, &self.checked.diagnostics, false)
    }
}

/// Why a model does not compile: all messages, as people read them. `Debug` shows the same, so that `unwrap` is readable.
#[derive(Clone, PartialEq, Eq)]
pub struct Error {
    text: String,
}

impl Error {
    fn new(checked: &Checked, diagnostics: &[Diagnostic]) -> Error {
        Error { text: diag::render_human(&checked.sources, diagnostics, false) }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text.trim_end())
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\n{self}")
    }
}

impl std::error::Error for Error {}
