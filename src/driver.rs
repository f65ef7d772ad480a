//! The pipeline in one screen: [`check_file`], [`compile`], [`Experiment::new`], [`Experiment::plan_for`], [`Experiment::engine`],
//! [`Experiment::run`].
//!
//! In come source texts; out goes any stage of the compilation, an engine that is ready to run, or diagnostics.
//! Never true here: a phase runs on the output of a phase that failed.

mod engines;
mod experiment;
mod gradient;
mod repeated;
mod sweep;
mod training;
mod whole;

pub use engines::{EngineChoice, Ready};
pub use experiment::{Draft, Experiment, Made, planned};
pub use gradient::{Differentiable, Fitted, Mode, Outline, StepBack, Ways};
pub use repeated::Repeated;
pub use sweep::{Choose, Crew, Done, Sweep};
pub use training::{Found, Learner, Lesson, Read, Reads, Sample, frame, none_is_tested, reads, sample, samples};
pub use whole::check_whole;

use crate::adaptive;
use crate::codegen::rust::{self, Copy, Default as FieldDefault, Interface, InterfaceField, InterfaceSpace};
use crate::data;
use crate::diag::{Code, Diagnostic, Diagnostics};
use crate::discretize::discretize;
use crate::engine::Setup;
use crate::hir::{self, LoadedFile, Loader, Method, Model, Sources, Tolerances, Uses};
use crate::ode;
use crate::passes::{self, Backend, Keep, OptLevel, Pass, PassError};
use crate::runtime::named::Count;
use crate::simulate::Extent;
use crate::source::SourceMap;
use crate::step::{self, Field, FieldId, FieldKind, Program, Source, SpaceKind, Tolerance, Verified};
use crate::syntax;
use crate::units::DisplayUnit;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A checked (or rejected) source.
#[derive(Debug)]
pub struct Checked {
    /// All texts that were read.
    pub sources: SourceMap,
    /// The model; `None` if there are errors.
    pub model: Option<Model>,
    /// Errors and warnings in the order of their places.
    pub diagnostics: Vec<Diagnostic>,
}

impl Checked {
    fn failed(sources: SourceMap, diagnostic: Diagnostic) -> Checked {
        Checked { sources, model: None, diagnostics: vec![diagnostic] }
    }

    /// Every file that the model is read from, as texts, numbers or samples: they would be lost if something was written to them. What a `fit` comes near to
    /// is not among them, since runs may make it.
    pub fn files(&self) -> Vec<PathBuf> {
        let texts = self.sources.files().map(|(_, file)| PathBuf::from(&file.name));
        let Some(model) = &self.model else { return texts.collect() };
        let data = model.data.iter().filter_map(data::file);
        let samples = model.train.iter().flat_map(training::all_samples);
        let samples = samples.flat_map(|of| [Some(of.file), of.labels]).flatten().map(|(path, _)| path);
        texts.chain(data).chain(samples).collect()
    }

    /// Those that were not said of their places when the file was checked.
    pub fn not_said(&self, mut diagnostics: Vec<Diagnostic>) -> Vec<Diagnostic> {
        let place = |d: &Diagnostic| d.labels.first().map(|l| (d.code, l.span));
        diagnostics.retain(|d| place(d).is_none() || self.diagnostics.iter().all(|said| place(said) != place(d)));
        diagnostics
    }
}

/// Checks a model file and everything that it uses.
pub fn check_file(path: &Path) -> Checked {
    let name = path.display().to_string();
    let bytes = match std::fs::read(path) {
        Ok(bytes) => bytes,
        Err(error) => {
            let d = Diagnostic::without_place(Code::CannotRead, format!("cannot read `{name}`: {error}"));
            return Checked::failed(SourceMap::default(), d);
        }
    };
    check_bytes(&name, path.parent().unwrap_or(Path::new("")), bytes)
}

/// Checks a model given as bytes; names of files in it are relative to `directory`.
pub fn check_bytes(name: &str, directory: &Path, bytes: Vec<u8>) -> Checked {
    match syntax::read_text(name, bytes) {
        Ok(text) => check_text(name, directory, text, &Sources),
        Err(diagnostic) => Checked::failed(SourceMap::default(), diagnostic),
    }
}

/// Checks a model given as text; `name` is shown in messages, `directory` is where its data files and modules are.
pub fn check_text(name: &str, directory: &Path, text: impl Into<String>, loader: &dyn Loader) -> Checked {
    let mut sources = SourceMap::default();
    let main = sources.add(name, directory, text);
    let mut diagnostics = Diagnostics::default();
    let files = hir::load(&mut sources, main, loader, &mut diagnostics);
    let model = hir::lower(&sources, &files, &mut diagnostics);
    let model = if diagnostics.has_errors() { None } else { model };
    Checked { sources, model, diagnostics: diagnostics.sorted() }
}

/// Reads what stands behind `target` in a `fit` block, `rate(s) = 40 Hz from 20 ms within 2 Hz`; names of files are relative to where the process is.
/// What is wrong with it comes with its source.
pub fn fit_target(text: &str) -> Result<hir::FitTarget, Box<Checked>> {
    let block = format!("fit {{ free it = 0 .. 1; target\n{text}\n}}");
    let mut checked = check_text("the target", Path::new(""), block, &Sources);
    let model = checked.model.take();
    if let Some(hir::Fit { targets, free, search: None, starts: None, iterations: None, .. }) =
        model.and_then(|m| m.fit)
        && let ([target], [_]) = (&targets[..], &free[..])
    {
        return Ok(hir::FitTarget { span: None, ..target.clone() });
    }
    if !checked.diagnostics.iter().any(Diagnostic::is_error) {
        let d = Diagnostic::without_place(Code::BadValue, format!("`{text}` is more than a target"));
        checked.diagnostics.push(d);
    }
    Err(Box::new(checked))
}

/// A checked source with what an editor asks of it.
#[derive(Debug)]
pub struct Studied {
    /// What is said about it.
    pub checked: Checked,
    /// The trees of all files, the main one first.
    pub files: Vec<LoadedFile>,
    /// What every name means.
    pub uses: Uses,
}

/// The same as [`check_text`], and what every name means.
pub fn study(name: &str, directory: &Path, text: impl Into<String>, loader: &dyn Loader) -> Studied {
    let mut sources = SourceMap::default();
    let main = sources.add(name, directory, text);
    let mut diagnostics = Diagnostics::default();
    let files = hir::load(&mut sources, main, loader, &mut diagnostics);
    let (model, uses) = hir::lower_with_uses(&sources, &files, &mut diagnostics);
    let model = if diagnostics.has_errors() { None } else { model };
    Studied { checked: Checked { sources, model, diagnostics: diagnostics.sorted() }, files, uses }
}

/// What turns a checked model into a program.
#[derive(Debug, Clone, PartialEq)]
pub struct CompileOptions {
    /// `name=value` settings of parameters and initial values.
    pub set: Vec<String>,
    /// Parameters and initial values that are set cell by cell.
    pub per_cell: Vec<ode::PerCell>,
    /// Replaces the run's time step (ms).
    pub dt: Option<f64>,
    /// Replaces the run's duration (ms).
    pub duration: Option<f64>,
    /// Replaces the interval (ms) of every record.
    pub every: Option<f64>,
    /// Replaces the run's method.
    pub method: Option<Method>,
    /// Replaces how accurate it is, if it chooses its steps.
    pub tolerances: GivenTolerances,
    /// Replaces the run's seed.
    pub seed: Option<u64>,
    /// Which passes run.
    pub passes: Passes,
    /// What they prepare the program for.
    pub backend: Backend,
    /// Steps per kernel call.
    pub fuse: u32,
    /// Keep states that nothing records or depends on.
    pub keep_all: bool,
    /// How far functions may be off; nothing means not at all. For kernels in `f64` only: in `f32` nothing can be gained.
    pub tolerance: Option<Tolerance>,
}

impl CompileOptions {
    /// The same of the model as it is written: nothing is set from outside, and its passes are the usual ones.
    pub fn as_written(&self) -> CompileOptions {
        let usual = CompileOptions::default();
        let (backend, fuse, keep_all, tolerance) = (self.backend, self.fuse, self.keep_all, self.tolerance);
        CompileOptions { backend, fuse, keep_all, tolerance, ..usual }
    }

    /// The full names of the parameters and initial values that are set; what is no setting, or names nothing, is told elsewhere.
    pub fn names_set(&self, model: &ode::Model) -> BTreeSet<String> {
        let overrides = self.set.iter().filter_map(|text| Some(ode::parse_override(text).ok()?.name));
        let names = overrides.chain(self.per_cell.iter().map(|one| one.name.clone()));
        names.filter_map(|name| ode::full_name(model, &name).ok().map(str::to_string)).collect()
    }
}

/// Tolerances that are set from outside.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct GivenTolerances {
    /// In place of the run's `rtol`.
    pub rtol: Option<f64>,
    /// In place of its `atol`.
    pub atol: Option<f64>,
    /// In place of its `max_step` (ms).
    pub max_step: Option<f64>,
}

impl GivenTolerances {
    /// What counts, if a run says these.
    fn over(self, run: Tolerances) -> Tolerances {
        Tolerances {
            rtol: self.rtol.unwrap_or(run.rtol),
            atol: self.atol.unwrap_or(run.atol),
            max_step: self.max_step.unwrap_or(run.max_step),
        }
    }
}

/// Steps per kernel call where nothing else is said.
pub const FUSE: u32 = 40;

impl Default for CompileOptions {
    fn default() -> CompileOptions {
        CompileOptions {
            set: Vec::new(),
            per_cell: Vec::new(),
            dt: None,
            duration: None,
            every: None,
            method: None,
            tolerances: GivenTolerances::default(),
            seed: None,
            passes: Passes::Level(OptLevel::O2),
            backend: Backend::Native,
            fuse: FUSE,
            keep_all: false,
            tolerance: None,
        }
    }
}

/// Which passes run.
#[derive(Debug, Clone, PartialEq)]
pub enum Passes {
    /// Those of a level.
    Level(OptLevel),
    /// These.
    Named(Vec<String>),
}

/// A model as differential equations and as programs.
#[derive(Debug, Clone)]
pub struct Compiled {
    /// The continuous model with all settings applied.
    pub ode: ode::Model,
    /// The program before passes.
    pub plain: Verified,
    /// The program after passes.
    pub program: Verified,
    /// What is probably wrong.
    pub warnings: Vec<Diagnostic>,
}

/// Flattens a checked model and applies settings.
pub fn flatten(model: &Model, options: &CompileOptions) -> Result<(ode::Model, Vec<Diagnostic>), Vec<Diagnostic>> {
    let mut diagnostics = Diagnostics::default();
    let Some(mut flat) = ode::build(model, &mut diagnostics) else { return Err(diagnostics.sorted()) };
    let mut errors = Vec::new();
    let mut overrides = Vec::new();
    for text in &options.set {
        match ode::parse_override(text) {
            Ok(o) => overrides.push(o),
            Err(d) => errors.push(d),
        }
    }
    errors.extend(ode::apply(&mut flat, &overrides, &options.per_cell));
    if !ode::resolve(&mut flat, &mut diagnostics) {
        return Err(diagnostics.sorted());
    }
    flat.dt = options.dt.unwrap_or(flat.dt);
    flat.duration = options.duration.unwrap_or(flat.duration);
    for r in &mut flat.records {
        r.every = options.every.or(r.every);
    }
    flat.method = options.method.unwrap_or(flat.method);
    flat.names_method |= options.method.is_some();
    flat.tolerances = options.tolerances.over(flat.tolerances);
    flat.seed = options.seed.unwrap_or(flat.seed);
    if let Err(broken) = ode::verify(&flat) {
        errors.push(internal(format!("the continuous model is inconsistent: {broken}")));
    }
    if errors.is_empty() {
        let found = ode::domains::uniform(&flat).into_iter().chain(ode::step_too_long(&flat));
        let found = found
            .chain(ode::linear::not_linear(&flat))
            .chain(ode::not_solved(&flat))
            .chain(ode::not_noise(&flat))
            .chain(ode::not_late(&flat))
            .chain(ode::not_in_order(&flat))
            .chain(ode::rounded(&flat));
        let found = found.chain(adaptive::refused(&flat));
        found.for_each(|d| diagnostics.push(d));
        errors.extend(diagnostics.sorted().into_iter().filter(Diagnostic::is_error));
    }
    if errors.is_empty() { Ok((flat, diagnostics.sorted())) } else { Err(errors) }
}

/// A bug of the compiler.
fn internal(what: String) -> Diagnostic {
    Diagnostic::without_place(Code::Internal, what)
}

/// From a checked model to a program. `observer` sees the program after every pass.
pub fn compile(
    checked: &Checked,
    options: &CompileOptions,
    observer: &mut dyn FnMut(&Pass, &Program, Duration),
) -> Result<Compiled, Vec<Diagnostic>> {
    let Some(model) = &checked.model else { return Err(checked.diagnostics.clone()) };
    let (ode, warnings) = flatten(model, options)?;
    let warnings = checked.not_said(warnings);
    Ok(Compiled { warnings, ..compile_flat(ode, &checked.sources, options, observer)? })
}

/// From a flat model, whose settings count instead of those of `options`, to a program without warnings.
pub fn compile_flat(
    ode: ode::Model,
    sources: &SourceMap,
    options: &CompileOptions,
    observer: &mut dyn FnMut(&Pass, &Program, Duration),
) -> Result<Compiled, Vec<Diagnostic>> {
    let plain = discretize(&ode, sources);
    let plain = step::verify(plain).map_err(|e| vec![internal(format!("after discretization: {e}"))])?;
    let names: Vec<&str> = match &options.passes {
        // Whoever solves it asks for all of its states and parameters.
        _ if ode.method == Method::Adaptive => Vec::new(),
        Passes::Level(OptLevel::O0) if options.tolerance.is_some() => passes::RELAXING.to_vec(),
        Passes::Level(level) => passes::pipeline(*level, options.backend).to_vec(),
        Passes::Named(names) => names.iter().map(String::as_str).collect(),
    };
    let program = plain.program();
    let uniform = |source| program.bound(source).is_some_and(|f| program.field(f).kind == FieldKind::Uniform);
    let uniforms = ode
        .params
        .iter()
        .zip(0..)
        .map(|(p, i)| (p, Source::Param(i)))
        .filter(|(_, source)| uniform(*source))
        .filter_map(|(p, source)| match ode::evaluate(&ode, p.value) {
            Ok(step::Value::Real(x)) => Some((source, x)),
            _ => None,
        })
        .collect();
    let keep = if options.keep_all { Keep::AllStates } else { Keep::Only(recorded_states(&ode)) };
    let pass_options = passes::Options { fuse: options.fuse.max(1), uniforms, keep, tolerance: options.tolerance };
    let program = passes::run(plain.clone(), &names, &pass_options, observer).map_err(|e| {
        vec![match e {
            PassError::NoSuchPass(name) => {
                Diagnostic::without_place(Code::BadValue, format!("there is no pass `{name}`"))
                    .help("`neuroc passes` lists them")
            }
            PassError::NoSuchField(_) | PassError::Broken(..) => internal(e.to_string()),
        }]
    })?;
    Ok(Compiled { ode, plain, program, warnings: Vec::new() })
}

fn recorded_states(model: &ode::Model) -> Vec<Source> {
    let state = |r: &ode::Record| Some(Source::State(model.recorded_state(r)?.0));
    let heard = (0..).zip(&model.cables).filter(|(_, cable)| model.is_heard(cable.population));
    let heard = heard.map(|(cable, _)| Source::Transmembrane(cable));
    let mut states: Vec<Source> = model.records.iter().filter_map(state).chain(heard).collect();
    states.sort();
    states.dedup();
    states
}

/// What a model shows to the users of its crate. `docs` are the lines at the head of its file.
pub fn interface(docs: &[String], compiled: &Compiled, extent: &Extent, setup: &Setup) -> Interface {
    let (ode, program) = (&compiled.ode, compiled.program.program());
    let space = |(i, (&size, p)): (usize, (&usize, &ode::Population))| {
        let count = match p.kind {
            ode::Kind::Cells => Count::Free,
            ode::Kind::Clock => Count::Fixed,
            ode::Kind::Tree { .. } | ode::Kind::Part { .. } => {
                Count::PerCell { of: ode.cells_of(i), each: ode.elements_per_cell(i) }
            }
        };
        InterfaceSpace { size, count, doc: format!("Population `{}`.", p.name) }
    };
    let spaces = extent.cells.iter().zip(&ode.populations).enumerate().map(space).collect();
    let is_of_edges =
        |field: &Field| field.over.is_some_and(|space| matches!(program.space(space).kind, SpaceKind::Relation { .. }));
    let mut fields = Vec::new();
    for (i, field) in program.fields.iter().enumerate() {
        let id = FieldId(i as u32);
        let param = if let Source::Param(p) = field.source { Some(&ode.params[p as usize]) } else { None };
        let unit = match field.source {
            Source::Param(p) => ode.params[p as usize].unit.clone(),
            Source::State(s) => ode.states[s as usize].unit.clone(),
            Source::Output(r) => ode.records[r as usize].unit.clone(),
            Source::None
            | Source::Dt
            | Source::Next(_)
            | Source::Slope(..)
            | Source::Point(..)
            | Source::Sum(..)
            | Source::Slopes(..)
            | Source::There(..)
            | Source::Told(..)
            | Source::Arrived(..)
            | Source::Sent(..)
            | Source::Amount(_)
            | Source::Modulated(_)
            | Source::Weight(_)
            | Source::Delay(_)
            | Source::Back(_)
            | Source::Seen(_)
            | Source::Refractory(_)
            | Source::Spiked(_)
            | Source::Spikes(_)
            | Source::Data(..)
            | Source::Series(_)
            | Source::Observed(..)
            | Source::Measure(..)
            | Source::Axial(..)
            | Source::Membrane(..)
            | Source::Conductance(..)
            | Source::Own(..)
            | Source::Rhs(..)
            | Source::Middle(..)
            | Source::Transmembrane(..)
            | Source::Escaping(..)
            | Source::Injected(..)
            | Source::InjectedSlope(..)
            | Source::Diffusion(..)
            | Source::Adjoint(_)
            | Source::Seed(_)
            | Source::Gradient(..)
            | Source::Tangent(..) => DisplayUnit { name: "1".into(), exponent: 0 },
        };
        let default = match field.kind {
            FieldKind::Uniform => setup.uniforms.iter().find(|u| u.0 == id).map(|u| FieldDefault::Number(u.1)),
            FieldKind::Series => setup.series.iter().find(|s| s.0 == id).map(|s| FieldDefault::Series(s.1.clone())),
            // What edges have is computed before a run, and part of the wiring.
            FieldKind::Data if is_of_edges(field) => None,
            FieldKind::Data => setup.data.iter().find(|d| d.0 == id).map(|d| FieldDefault::Data(d.1.clone())),
            FieldKind::Const | FieldKind::State | FieldKind::Output | FieldKind::Event => None,
            FieldKind::Temp => continue,
        };
        let (unit_name, exponent) = match field.source {
            Source::Dt => ("ms".to_string(), 0),
            _ if unit.name == "1" => (String::new(), 0),
            _ => (unit.name.clone(), unit.exponent),
        };
        fields.push(InterfaceField {
            field: id,
            name: shown_name(program, field),
            unit: unit_name,
            exponent,
            doc: param.map(|p| p.docs.join(" ")).unwrap_or_default(),
            default: default.unwrap_or(FieldDefault::None),
            computes: computed_from(program, ode, field),
            copies: copies(program, ode, field),
        });
    }
    let doc = if docs.is_empty() { format!("The model `{}`.", ode.name) } else { docs.join("\n") };
    Interface {
        crate_name: crate_name(&ode.name),
        doc,
        spaces,
        fields,
        seed: ode.seed,
        example_steps: extent.grid.steps,
    }
}

/// The uniform parameters whose values are computed from one of them.
fn computed_from(program: &Program, ode: &ode::Model, field: &Field) -> Vec<FieldId> {
    let (FieldKind::Uniform, Source::Param(param)) = (field.kind, field.source) else { return Vec::new() };
    let of_param = BTreeSet::from([ode::ParamId(param)]);
    let of = |other: &Field| match (other.kind, other.source) {
        (FieldKind::Uniform, Source::Param(at)) => {
            at != param && ode.follows(ode.param(ode::ParamId(at)).value, &of_param)
        }
        _ => false,
    };
    (0..).map(FieldId).zip(&program.fields).filter(|(_, other)| of(other)).map(|(id, _)| id).collect()
}

/// What other cells see of a state of branched cells.
fn copies(program: &Program, ode: &ode::Model, field: &Field) -> Vec<Copy> {
    let Source::State(state) = field.source else { return Vec::new() };
    let copy = |(id, other): (FieldId, &Field)| match other.source {
        Source::There(place, of) if of == state => {
            let ode::Kind::Part { of, elements } = &ode.populations[place as usize].kind else { return None };
            let elements = elements.to_vec();
            Some(Copy { field: id, each: ode.elements_per_cell(*of), elements })
        }
        _ => None,
    };
    (0..).map(FieldId).zip(&program.fields).filter_map(copy).collect()
}

/// What users call a field: the names of hidden ones have a `'`, which gives way to a `.` where nothing else is called so.
fn shown_name(program: &Program, field: &Field) -> String {
    let shown = field.name.replace('\'', ".");
    if program.find_field(&shown).is_none() { shown } else { field.name.clone() }
}

/// Names of crates that every crate knows, and of what Cargo makes in its target folder.
const CRATES: &[&str] = &["alloc", "build", "core", "deps", "examples", "incremental", "proc_macro", "std", "test"];

/// Lower-case letters, digits and `_`, beginning with a letter; no name that Rust or Cargo refuse.
fn crate_name(model: &str) -> String {
    let name: String =
        model.chars().map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '_' }).collect();
    let taken = rust::KEYWORDS.contains(&name.as_str()) || CRATES.contains(&name.as_str());
    if name.starts_with(|c: char| c.is_ascii_lowercase()) && !taken { name } else { format!("model_{name}") }
}
