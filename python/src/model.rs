//! Models: what they have, settings, runs, stages as text.
//!
//! In come files, texts and settings; out go numbers with names and units, results, simulators and texts.
//! Never true here: a setting is kept that the compiler refuses.

use crate::error::{self, guarded, usage};
use crate::fitting::{self, Differentiable};
use crate::learning::{Learning, Trained};
use crate::packed;
use crate::recorded::Recorded;
use crate::running::{Engine, Machine, Said, Signals};
use crate::simulator::Simulator;
use crate::value::{self, Given};
#[cfg(feature = "xla")]
use neuroc::artefact;
use neuroc::cli::memory;
use neuroc::codegen::plan::Precision;
use neuroc::data;
use neuroc::diag::Diagnostic;
use neuroc::driver::{self, Checked, CompileOptions, Draft, EngineChoice, Experiment, Made, Passes, Ready};
use neuroc::hir::{Method, Sources, StateKind};
use neuroc::ode::{self, PerCell};
use neuroc::passes::OptLevel;
use neuroc::results::RunResult;
use neuroc::simulate::{self, Ending, Memory, Outcome, RunError, RunOptions, Start};
use neuroc::stages::{self, Stage};
use neuroc::step::Value;
use numpy::{IntoPyArray, PyArray1};
use pyo3::prelude::*;
#[cfg(feature = "xla")]
use pyo3::types::PyBytes;
use pyo3::types::{PyDict, PyList};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

/// A checked model with settings.
#[pyclass(frozen, module = "neuroc._core")]
pub struct Model {
    pub(crate) checked: Arc<Checked>,
    settings: Mutex<Settings>,
}

/// Settings by full names, in the order in which they were made.
#[derive(Clone, Default)]
pub(crate) struct Settings(pub(crate) Vec<(String, Setting)>);

#[derive(Clone)]
pub(crate) enum Setting {
    /// As `--set` takes it.
    Text(String),
    /// In canonical units.
    Cells(Arc<[f64]>),
}

impl Settings {
    fn put(&mut self, name: String, setting: Setting) {
        self.0.retain(|(other, _)| *other != name);
        self.0.push((name, setting));
    }

    fn texts(&self) -> Vec<String> {
        let text = |(_, setting): &(String, Setting)| match setting {
            Setting::Text(text) => Some(text.clone()),
            Setting::Cells(_) => None,
        };
        self.0.iter().filter_map(text).collect()
    }

    fn per_cell(&self) -> Vec<PerCell> {
        let cells = |(name, setting): &(String, Setting)| match setting {
            Setting::Text(_) => None,
            Setting::Cells(values) => Some(PerCell { name: name.clone(), values: Arc::clone(values) }),
        };
        self.0.iter().filter_map(cells).collect()
    }

    /// As results tell them: of arrays the hash.
    fn told(&self) -> Vec<String> {
        let told = |(name, setting): &(String, Setting)| match setting {
            Setting::Text(text) => text.clone(),
            Setting::Cells(values) => {
                let bytes: Vec<u8> = values.iter().flat_map(|x| x.to_le_bytes()).collect();
                let hash = blake3::hash(&bytes).to_hex();
                format!("{name}=array of {} numbers, {}", values.len(), &hash[..16])
            }
        };
        self.0.iter().map(told).collect()
    }

    fn options(&self) -> CompileOptions {
        CompileOptions { set: self.texts(), per_cell: self.per_cell(), ..CompileOptions::default() }
    }
}

/// Everything up to the first step.
struct Prepared {
    experiment: Experiment,
    machine: Machine,
    warnings: Vec<Diagnostic>,
}

impl Model {
    fn of(checked: Checked) -> PyResult<Model> {
        if checked.model.is_none() {
            return Err(error::model(&checked.sources, &checked.diagnostics));
        }
        Ok(Model { checked: Arc::new(checked), settings: Mutex::default() })
    }

    pub(crate) fn settings(&self) -> Settings {
        self.settings.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn wrong(&self, diagnostics: &[Diagnostic]) -> PyErr {
        error::model(&self.checked.sources, diagnostics)
    }

    /// The continuous model with settings.
    pub(crate) fn flat(&self, settings: &Settings) -> PyResult<ode::Model> {
        let Some(model) = &self.checked.model else { return Err(self.wrong(&self.checked.diagnostics)) };
        driver::flatten(model, &settings.options()).map(|flat| flat.0).map_err(|d| self.wrong(&d))
    }

    /// Takes settings in the place of those there are, if the model allows them. `arrays` are those that are new, with their shapes; `help` is what
    /// to do where an array does not fit.
    fn keep(&self, settings: Settings, arrays: &[(String, Vec<usize>)], help: &str) -> PyResult<()> {
        // It was right with the others, so what is wrong now is what these say.
        let flat = self.flat(&settings).map_err(error::of_setting)?;
        for (name, setting) in &settings.0 {
            let Setting::Cells(values) = setting else { continue };
            // Weights and delays are there for edges; they have been counted.
            let of_edges = name.strip_suffix(".weight").or_else(|| name.strip_suffix(".delay"));
            if flat.projections.iter().any(|p| of_edges == Some(&p.name)) {
                continue;
            }
            let Some(population) = flat.populations.iter().find(|p| name.starts_with(&format!("{}.", p.name))) else {
                continue; // refused where it was set
            };
            // The last side is the first in NumPy's order.
            let sides = population.sizes.iter().rev().map(|&size| match ode::evaluate(&flat, size) {
                Ok(Value::Real(n)) => Some(n as usize),
                Ok(Value::Single(_) | Value::Mask(_)) | Err(_) => None,
            });
            let Some(sides) = sides.collect::<Option<Vec<usize>>>() else { continue };
            let cells: usize = sides.iter().product();
            let shape = arrays.iter().find(|(array, _)| array == name).map_or(vec![values.len()], |(_, s)| s.clone());
            if shape != [cells] && (shape != sides || sides.is_empty()) {
                let grid = if sides.len() > 1 { format!(" or {}", tuple(&sides)) } else { String::new() };
                let given = tuple(&shape);
                let message = format!(
                    "the array for `{name}` has the shape {given}, but the population `{}` needs ({cells},){grid}; {help}",
                    population.name
                );
                return Err(error::exception("SettingError", (message,)));
            }
        }
        *self.settings.lock().unwrap_or_else(PoisonError::into_inner) = settings;
        Ok(())
    }

    pub(crate) fn options(
        &self,
        settings: &Settings,
        options: &Bound<'_, PyDict>,
    ) -> PyResult<(CompileOptions, Machine)> {
        let get = |name: &str| -> PyResult<Option<Bound<'_, PyAny>>> {
            Ok(options.get_item(name)?.filter(|value| !value.is_none()))
        };
        let text = |name: &str| -> PyResult<Option<String>> {
            let given = get(name)?;
            let wrong = |_| usage(format!("`{name}` is a text"));
            given.map(|value| value.extract::<String>().map_err(wrong)).transpose()
        };
        let time = |name: &str| get(name)?.map(|value| value::time(name, &value)).transpose();
        let count = |name: &str| -> PyResult<Option<u64>> {
            let wrong = |_| usage(format!("`{name}` is a whole number from 0 on"));
            get(name)?.map(|value| value.extract::<u64>().map_err(wrong)).transpose()
        };
        let tolerance = |name: &str| -> PyResult<Option<f64>> {
            let wrong = || usage(format!("`{name}` is a number between 0 and 1, such as 1e-8"));
            let x = get(name)?.map(|value| value.extract::<f64>().map_err(|_| wrong())).transpose()?;
            if x.is_some_and(|x| !(x > 0.0 && x < 1.0)) { Err(wrong()) } else { Ok(x) }
        };
        let machine = Machine::new(Said {
            engine: text("engine")?,
            device: text("device")?,
            precision: text("precision")?,
            accuracy: text("accuracy")?,
            threads: count("threads")?.map(|n| usize::try_from(n).unwrap_or(usize::MAX)),
            cache: get("cache")?.map(|path| path.extract::<PathBuf>()).transpose()?,
        })?;
        let method = text("method")?.map(|name| {
            let names = || Method::ALL.iter().map(|m| m.1).collect::<Vec<_>>().join(", ");
            Method::named(&name)
                .ok_or_else(|| usage(format!("there is no method \"{name}\"; the methods are {}", names())))
        });
        let passes = match text("passes")?.as_deref() {
            None | Some("O2") => Passes::Level(OptLevel::O2),
            Some("O0") => Passes::Level(OptLevel::O0),
            Some(names) => Passes::Named(names.split(',').map(|name| name.trim().to_string()).collect()),
        };
        let compile = CompileOptions {
            dt: time("dt")?,
            duration: time("duration")?,
            every: time("every")?,
            method: method.transpose()?,
            tolerances: driver::GivenTolerances {
                rtol: tolerance("rtol")?,
                atol: tolerance("atol")?,
                max_step: time("max_step")?,
            },
            seed: count("seed")?,
            passes,
            backend: machine.engine.backend(),
            tolerance: machine.tolerance,
            ..settings.options()
        };
        Ok((compile, machine))
    }

    fn prepare(&self, options: CompileOptions, machine: Machine, recorded: bool) -> PyResult<Prepared> {
        let wrong = |d: Vec<Diagnostic>| self.wrong(&d);
        let compiled = driver::compile(&self.checked, &options, &mut |_, _, _| {}).map_err(wrong)?;
        let mut warnings = compiled.warnings.clone();
        let draft = Draft::new(compiled).map_err(wrong)?;
        let (cells, records) = draft.memory(machine.precision, machine.engine.backend());
        let needed = if recorded { cells + records } else { cells };
        if let Some(most) = memory::most().filter(|&most| needed > most) {
            let (needed, most) = (memory::told(needed), memory::told(most));
            let help = "take fewer cells or connections, or record less, or less often (`every`)";
            return Err(error::engine(format!(
                "the run needs about {needed} of memory, but the machine has {most}; {help}"
            )));
        }
        let experiment = draft.experiment().map_err(wrong)?;
        warnings.extend(experiment.warnings.clone());
        Ok(Prepared { experiment, machine, warnings })
    }

    /// The engine of a run.
    fn ready(&self, experiment: &Experiment, choice: EngineChoice, precision: Precision) -> PyResult<Ready> {
        match experiment.plan_for(&choice, precision) {
            Ok(plan) => experiment.engine(&plan, choice).map_err(error::engine),
            Err(_) if experiment.is_adaptive() && experiment.needs_no_plan(&choice) => {
                experiment.interpreter().map_err(error::engine)
            }
            Err(errors) => Err(self.wrong(&errors)),
        }
    }

    fn warn(&self, py: Python<'_>, warnings: &[Diagnostic]) -> PyResult<()> {
        if warnings.is_empty() {
            return Ok(());
        }
        let (text, _, _) = error::texts(&self.checked.sources, warnings);
        let class = py.import("neuroc.errors")?.getattr("ModelWarning")?;
        py.import("warnings")?.call_method1("warn", (text, class, 2)).map(drop)
    }
}

#[pymethods]
impl Model {
    /// Checks a file.
    #[staticmethod]
    fn load(py: Python<'_>, path: PathBuf) -> PyResult<Model> {
        guarded(|| {
            let model = Model::of(py.detach(|| driver::check_file(&path)))?;
            model.warn(py, &model.checked.diagnostics)?;
            Ok(model)
        })
    }

    /// Checks a text; `name` is shown in messages, and files that it names are looked for in `directory`.
    #[staticmethod]
    fn parse(py: Python<'_>, text: String, name: &str, directory: PathBuf) -> PyResult<Model> {
        guarded(|| {
            let model = Model::of(py.detach(|| driver::check_text(name, &directory, text, &Sources)))?;
            model.warn(py, &model.checked.diagnostics)?;
            Ok(model)
        })
    }

    /// The same with settings of its own.
    fn copy(&self) -> Model {
        Model { checked: Arc::clone(&self.checked), settings: Mutex::new(self.settings()) }
    }

    /// What another process needs to have the same model.
    fn packed(&self) -> (packed::Texts, packed::Packed) {
        (packed::texts(&self.checked.sources), packed::settings(&self.settings()))
    }

    /// A model that was packed.
    #[staticmethod]
    fn unpacked(py: Python<'_>, texts: packed::Texts, settings: packed::Packed) -> PyResult<Model> {
        guarded(|| {
            let model = Model::of(py.detach(|| packed::checked(texts)))?;
            Ok(Model { settings: Mutex::new(packed::unpacked(settings)), ..model })
        })
    }

    /// The name of the model, the lines at its head, and the file as it was named.
    fn about(&self) -> PyResult<(String, String, String)> {
        guarded(|| {
            let file = self.checked.sources.files().next().map(|(_, file)| file.name.clone()).unwrap_or_default();
            let Some(model) = &self.checked.model else { return Err(self.wrong(&self.checked.diagnostics)) };
            Ok((model.name.clone(), model.docs.join("\n"), file))
        })
    }

    /// The files that it is read from.
    fn files(&self) -> Vec<PathBuf> {
        self.checked.files()
    }

    /// Settings as they were made, by full names.
    fn told(&self) -> Vec<String> {
        self.settings().told()
    }

    /// Sets parameters and initial values, all of them or none: pairs of a name and a str, a float or an array of float64.
    fn set(&self, pairs: Vec<(String, Bound<'_, PyAny>)>) -> PyResult<()> {
        guarded(|| {
            let mut settings = self.settings();
            let plain = self.flat(&settings)?;
            let mut arrays: Vec<(String, Vec<usize>)> = Vec::new();
            let mut given: Vec<(String, String)> = Vec::new();
            for (name, value) in pairs {
                let full = ode::full_name(&plain, &name).map_err(|d| self.wrong(&[d]))?.to_string();
                if let Some((other, _)) = given.iter().find(|(_, known)| *known == full) {
                    let message = format!("`{other}` and `{name}` are one parameter, `{full}`; give it once");
                    return Err(error::exception("SettingError", (message,)));
                }
                given.push((name.clone(), full.clone()));
                let param = plain.params.iter().find(|p| p.name == full).map(|p| &p.unit);
                let unit = param.or_else(|| plain.states.iter().find(|s| s.name == full).map(|s| &s.unit));
                let unit = unit.ok_or_else(|| usage(format!("`{full}` has no unit")))?;
                match Given::new(&name, &value, None)? {
                    Given::Text(text) => settings.put(full, Setting::Text(format!("{name}={text}"))),
                    Given::Number(x) if !x.is_finite() => {
                        return Err(error::exception(
                            "SettingError",
                            (format!("`{full}` cannot be {x}; give it a finite number"),),
                        ));
                    }
                    Given::Number(x) => {
                        let unit = if unit.name == "1" { "" } else { &unit.name };
                        settings.put(full, Setting::Text(format!("{name}={}{unit}", digits(x))));
                    }
                    Given::Array(values, shape) => {
                        if let Some(at) = values.iter().position(|x| !x.is_finite()) {
                            let x = values[at];
                            let message = format!("number {at} of the array for `{full}` is {x}; all must be finite");
                            return Err(error::exception("SettingError", (message,)));
                        }
                        let values = values.into_iter().map(|x| value::canonical(x, unit)).collect();
                        settings.put(full.clone(), Setting::Cells(values));
                        arrays.push((full, shape));
                    }
                }
            }
            let help = "give arrays of this shape in the same call that changes the number of cells";
            self.keep(settings, &arrays, help)
        })
    }

    /// Takes what a training has learnt, as `neuroc run --trained` does.
    fn take(&self, trained: &Trained) -> PyResult<()> {
        guarded(|| {
            let mut settings = self.settings();
            for text in &trained.0.parameters {
                let name = text.split('=').next().unwrap_or_default().to_string();
                settings.put(name, Setting::Text(text.clone()));
            }
            for one in &trained.0.edges {
                settings.put(one.name.clone(), Setting::Cells(Arc::clone(&one.values)));
            }
            self.flat(&settings).map_err(error::of_setting)?;
            *self.settings.lock().unwrap_or_else(PoisonError::into_inner) = settings;
            Ok(())
        })
    }

    /// The model as a run whose losses have gradients in these parameters.
    fn differentiable(
        &self,
        py: Python<'_>,
        names: Vec<String>,
        options: &Bound<'_, PyDict>,
        mode: &str,
        memory: &str,
    ) -> PyResult<Differentiable> {
        guarded(|| Differentiable::new(py, self, &names, options, (mode, memory)))
    }

    /// Looks for the values of parameters with which a run comes nearest to traces and numbers.
    fn fit<'py>(
        &self,
        py: Python<'py>,
        asked: fitting::Asked,
        options: &Bound<'_, PyDict>,
        news: Option<Py<PyAny>>,
    ) -> PyResult<Bound<'py, PyDict>> {
        guarded(|| fitting::fit(py, self, &asked, options, news))
    }

    /// The model as a network that learns, as its `train` block says.
    fn learning(
        &self,
        py: Python<'_>,
        options: &Bound<'_, PyDict>,
        memory: &str,
        resume: Option<&Trained>,
        epochs: Option<u64>,
    ) -> PyResult<Learning> {
        guarded(|| Learning::new(py, self, options, memory, resume, epochs))
    }

    /// Forgets settings: those of these names, or all.
    fn unset(&self, names: Vec<String>) -> PyResult<()> {
        guarded(|| {
            let mut settings = self.settings();
            let plain = self.flat(&settings)?;
            let full = names.iter().map(|name| ode::full_name(&plain, name).map_err(|d| self.wrong(&[d])));
            let full = full.collect::<PyResult<Vec<&str>>>()?;
            settings.0.retain(|(name, _)| !full.is_empty() && !full.contains(&name.as_str()));
            self.keep(settings, &[], "forget it in the same call")
        })
    }

    /// Parameters that can be set: name, value (a float, an array `[cell]` or None), unit, docs, population or None.
    fn params<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        guarded(|| {
            let flat = self.flat(&self.settings())?;
            let all = PyList::empty(py);
            for p in flat.params.iter().filter(|p| p.settable && !p.name.contains('\'')) {
                let value = number(py, &flat, p.value, p.population, &p.unit)?;
                let population = p.population.map(|at| flat.populations[flat.cells_of(at)].name.clone());
                all.append((&p.name, value, &p.unit.name, p.docs.join("\n"), population))?;
            }
            Ok(all)
        })
    }

    /// The unit of a parameter or a state, by its name or the end of it; none if it fits none, or several.
    fn unit(&self, name: &str) -> PyResult<Option<String>> {
        guarded(|| {
            let flat = self.flat(&self.settings())?;
            let Ok(full) = neuroc::ode::full_name(&flat, name) else { return Ok(None) };
            let param = flat.params.iter().find(|p| p.name == full).map(|p| &p.unit);
            let unit = param.or_else(|| flat.states.iter().find(|s| s.name == full).map(|s| &s.unit));
            Ok(unit.map(|unit| unit.name.clone()))
        })
    }

    /// States: name, value at the start (as parameters), unit, population, whether it is a gate.
    fn states<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        guarded(|| {
            let flat = self.flat(&self.settings())?;
            let all = PyList::empty(py);
            // Names of hidden ones have a `'`.
            for s in flat.states.iter().filter(|s| !s.name.contains('\'')) {
                // How many edges there are is not known before they are drawn.
                let (value, population) = match s.edges {
                    Some(projection) => (number(py, &flat, s.init, None, &s.unit)?, &flat.projections[projection].name),
                    None => {
                        let population = &flat.populations[flat.cells_of(s.population)].name;
                        (number(py, &flat, s.init, Some(s.population), &s.unit)?, population)
                    }
                };
                all.append((&s.name, value, &s.unit.name, population, s.kind == StateKind::Gate))?;
            }
            Ok(all)
        })
    }

    /// Populations: name, number of cells, shape in NumPy's order, whether cells spike.
    fn populations<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        guarded(|| {
            let flat = self.flat(&self.settings())?;
            let extent = simulate::extent(&flat).map_err(|d| self.wrong(&d))?;
            let all = PyList::empty(py);
            let of_cells = flat.populations.iter().zip(&extent.cells).zip(&extent.grids);
            for ((p, cells), sides) in of_cells.filter(|((p, _), _)| p.kind == ode::Kind::Cells) {
                let shape: Vec<usize> = sides.iter().rev().copied().collect();
                all.append((&p.name, *cells, pyo3::types::PyTuple::new(py, shape)?, p.spike.is_some()))?;
            }
            Ok(all)
        })
    }

    /// What a run records: name and unit; and the populations whose spikes are recorded; duration and dt in ms.
    #[allow(clippy::type_complexity)]
    fn records(&self) -> PyResult<(Vec<(String, String)>, Vec<String>, f64, f64)> {
        guarded(|| {
            let flat = self.flat(&self.settings())?;
            let records = flat.records.iter().map(|r| (r.name.clone(), r.unit.name.clone())).collect();
            let spikes = flat.spikes.iter().map(|&at| flat.populations[at].name.clone()).collect();
            Ok((records, spikes, flat.duration, flat.dt))
        })
    }

    /// The populations and the projections in numbers.
    fn network<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        crate::network::described(py, self)
    }

    /// The connections of projections: name, populations before and behind, cells before and behind, weights, their unit, delays in ms.
    fn connections<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        crate::network::connections(py, self)
    }

    /// A stage of the compilation as text.
    fn stage(&self, py: Python<'_>, name: &str, options: &Bound<'_, PyDict>) -> PyResult<String> {
        guarded(|| {
            let stage = match name {
                "ast" => Stage::Ast,
                "hir" => Stage::Hir,
                "ode" => Stage::Ode,
                "ir" => Stage::Ir,
                "ir-opt" => Stage::IrOpt,
                "plan" => Stage::Plan,
                "rust" => Stage::Rust,
                #[cfg(feature = "xla")]
                "stablehlo" => Stage::Stablehlo,
                #[cfg(not(feature = "xla"))]
                "stablehlo" => return Err(usage(crate::running::WITHOUT_XLA)),
                _ => {
                    let names = "\"ast\", \"hir\", \"ode\", \"ir\", \"ir-opt\", \"plan\", \"rust\" and \"stablehlo\"";
                    return Err(usage(format!("there is no stage \"{name}\"; the stages are {names}")));
                }
            };
            // Which precisions and accuracies there are depends on what the text is for.
            options.set_item("engine", Engine::of(stage.backend())?.name())?;
            let (compile, machine) = self.options(&self.settings(), options)?;
            let emitted =
                py.detach(|| stages::emit(&self.checked, stage, &compile, machine.precision, &mut |_, _, _| {}));
            emitted.map(|e| e.text).map_err(|d| self.wrong(&d))
        })
    }

    /// Without XLA there are no modules.
    #[cfg(not(feature = "xla"))]
    fn artefact(&self, options: &Bound<'_, PyDict>, back: bool) -> PyResult<Py<PyDict>> {
        let _ = (options, back);
        Err(usage(crate::running::WITHOUT_XLA))
    }

    /// The files that `neuroc build --emit stablehlo` writes, by name; or those of a step that goes back.
    #[cfg(feature = "xla")]
    fn artefact<'py>(&self, py: Python<'py>, options: &Bound<'py, PyDict>, back: bool) -> PyResult<Bound<'py, PyDict>> {
        guarded(|| {
            options.set_item("engine", "xla")?;
            let (compile, machine) = self.options(&self.settings(), options)?;
            let class = machine.device_class();
            let compile = CompileOptions { keep_all: true, ..compile };
            let plan = |experiment: &Experiment, machine: &Machine| {
                experiment.plan(machine.precision).map_err(|d| self.wrong(&d))
            };
            let files = py.detach(|| {
                let Prepared { experiment, machine, warnings: _ } = self.prepare(compile.clone(), machine, false)?;
                let files = if back {
                    let back = driver::StepBack::new(experiment, &compile).map_err(|d| self.wrong(&d))?;
                    artefact::step_back(&back, &plan(&back.experiment, &machine)?, class)
                } else {
                    artefact::files(&experiment, &plan(&experiment, &machine)?, class)
                };
                files.map_err(error::engine)
            });
            let all = PyDict::new(py);
            for file in files? {
                all.set_item(file.name, PyBytes::new(py, &file.bytes))?;
            }
            Ok(all)
        })
    }

    /// Runs the model: what was recorded; the exception that stopped it (None if nothing did); and facts about the run.
    fn run<'py>(&self, py: Python<'py>, options: &Bound<'py, PyDict>) -> PyResult<Bound<'py, PyDict>> {
        guarded(|| {
            let settings = self.settings();
            let (compile, machine) = self.options(&settings, options)?;
            let told = settings.told();
            let trace = match options.get_item("trace_nan")?.is_some_and(|flag| flag.is_truthy().unwrap_or(false)) {
                true => 10,
                false => 1,
            };
            let news = options.get_item("progress")?.filter(|function| !function.is_none()).map(Bound::unbind);
            let mut signals = Signals::new(news);
            let done = py.detach(|| -> PyResult<(RunResult, Outcome, Vec<Diagnostic>, f64, usize)> {
                let Prepared { experiment, machine, warnings } = self.prepare(compile, machine, true)?;
                let choice = machine.choice()?;
                let mut ready = self.ready(&experiment, choice, machine.precision)?;
                let single = machine.precision != neuroc::codegen::plan::Precision::F64;
                let records = experiment.records().map_err(|d| self.wrong(&d))?;
                let failed = |error: RunError| error::run(&self.checked.sources, error);
                let contents = experiment.contents(&records, 0, single);
                let mut memory = Memory::new(&records, contents).map_err(|e| failed(e.into()))?;
                let run = RunOptions { window: driver::FUSE, single, trap: true, trace };
                let grid = experiment.extent.grid;
                signals.run = (grid.dt, grid.steps as f64 * grid.dt);
                let (engine, start) = (ready.engine.as_mut(), Start::default());
                let outcome = experiment.run_into(&records, engine, &run, &mut signals, &start, &mut memory);
                let outcome = outcome.map_err(failed)?;
                let mut result = memory.result(records, experiment.extent.grid);
                let (engine, precision) = (machine.engine.name(), machine.precision);
                let made = Made { engine, precision, accuracy: machine.accuracy, set: &told };
                result.meta = experiment.facts(&self.checked.sources, &made);
                result.meta.insert("steps".into(), outcome.steps.into());
                result.meta.insert("complete".into(), (outcome.ending == Ending::Done).into());
                Ok((result, outcome, warnings, ready.compile_s, ready.threads))
            });
            // A signal ends rustc, too; then that is what happened.
            py.check_signals()?;
            let (result, outcome, warnings, compile_s, threads) = done?;
            let odd = outcome.warning.iter().map(|odd| (**odd).clone());
            self.warn(py, &warnings.into_iter().chain(odd).collect::<Vec<_>>())?;
            let all = Recorded::hand_over(py, result, neuroc::report::sources(&self.checked.sources))?;
            all.set_item("compile_s", compile_s)?;
            all.set_item("run_s", outcome.run_s)?;
            all.set_item("threads", threads)?;
            all.set_item("stopped", signals.error.map(|error| error.into_value(py)))?;
            let wrong = match &outcome.ending {
                Ending::Done | Ending::Stopped => None,
                Ending::NotFinite(d) => Some(error::texts(&self.checked.sources, std::slice::from_ref(d))),
            };
            all.set_item("not_finite", wrong)?;
            Ok(all)
        })
    }

    /// Begins a run that is taken step by step.
    fn simulator(&self, py: Python<'_>, options: &Bound<'_, PyDict>) -> PyResult<Simulator> {
        guarded(|| {
            let settings = self.settings();
            let (compile, machine) = self.options(&settings, options)?;
            // Whatever a model has can be read.
            let compile = CompileOptions { keep_all: true, ..compile };
            let (stepping, warnings) = py.detach(|| {
                let Prepared { experiment, machine, warnings } = self.prepare(compile, machine, false)?;
                let choice = machine.choice()?;
                let ready = self.ready(&experiment, choice, machine.precision)?;
                let failed = |error: RunError| error::run(&self.checked.sources, error);
                let stepping = experiment.stepping(ready.engine, driver::FUSE).map_err(failed)?;
                Ok::<_, PyErr>((stepping, warnings))
            })?;
            self.warn(py, &warnings)?;
            Ok(Simulator::new(stepping, Arc::clone(&self.checked)))
        })
    }
}

/// A number as people write it.
fn digits(x: f64) -> String {
    if x == 0.0 || (1e-5..1e15).contains(&x.abs()) { x.to_string() } else { format!("{x:e}") }
}

/// A shape as Python writes it.
fn tuple(sides: &[usize]) -> String {
    match sides {
        [side] => format!("({side},)"),
        _ => format!("({})", sides.iter().map(usize::to_string).collect::<Vec<_>>().join(", ")),
    }
}

/// The value of an expression in a unit: a float, an array `[cell]`, or None if it is not known before the run.
fn number<'py>(
    py: Python<'py>,
    flat: &ode::Model,
    value: ode::NodeId,
    population: Option<usize>,
    unit: &neuroc::units::DisplayUnit,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    if let Ok(Value::Real(x)) = ode::evaluate(flat, value) {
        return Ok(Some(value::shown(x, unit).into_pyobject(py)?.into_any()));
    }
    let Some(population) = population else { return Ok(None) };
    let sides = flat.populations[flat.cells_of(population)].sizes.iter().map(|&size| match ode::evaluate(flat, size) {
        Ok(Value::Real(n)) => Some(n as usize),
        Ok(Value::Single(_) | Value::Mask(_)) | Err(_) => None,
    });
    let Some(cells) = sides.product::<Option<usize>>() else { return Ok(None) };
    let elements = cells * flat.elements_per_cell(population);
    let read = |of: Option<usize>, file: u32| {
        let count = of.map_or(elements, |of| cells * flat.elements_per_cell(of));
        data::per_cell(&flat.data[file as usize], count, flat.seed).ok()
    };
    let Some(values) = ode::cells::values(flat, value, Some(population), elements, &read) else { return Ok(None) };
    let values: Vec<f64> = values.into_iter().map(|x| value::shown(x, unit)).collect();
    let array: Bound<'py, PyArray1<f64>> = values.into_pyarray(py);
    Ok(Some(array.into_any()))
}
