//! From a compiled model to what a run needs: sizes, values, a plan.
//!
//! In comes a [`Compiled`] model; out goes an [`Experiment`], which every engine, artefact and crate is made from.
//! Never true here: somebody else finds out how many cells there are or which values they get.

use super::{Compiled, interface};
use crate::codegen::plan::{self, Plan, PlanOptions, Precision};
use crate::codegen::rust::{Interface, Wiring};
use crate::diag::{Code, Diagnostic};
use crate::engine::{self, Engine, EngineError, Recording, Setup};
use crate::hir::Method;
use crate::ode;
use crate::passes::Backend;
use crate::results::{Checkpoint, Contents, RunResult};
use crate::simulate::{self, Extent, Outcome, Records, Run, RunError, RunOptions, Sink, Start, Stepping, Watcher};
use crate::source::SourceMap;
use crate::step::{FieldId, Program, Source};
use serde_json::{Map, Value, json};

/// A compiled model whose cells and steps are counted. It has got no values yet, which may take long and much memory.
#[derive(Debug, Clone)]
pub struct Draft {
    /// The model and its programs.
    pub compiled: Compiled,
    /// Its cells and steps.
    pub extent: Extent,
}

impl Draft {
    /// Counts cells and steps.
    pub fn new(compiled: Compiled) -> Result<Draft, Vec<Diagnostic>> {
        let extent = simulate::extent(&compiled.ode)?;
        Ok(Draft { compiled, extent })
    }

    /// How many bytes a run takes, about: for the cells, and for what is recorded.
    pub fn memory(&self, precision: Precision, backend: Backend) -> (f64, f64) {
        let real = match precision {
            Precision::F64 => 8,
            // Of bf16 only what steps merely read.
            Precision::F32 | Precision::Bf16 => 4,
        };
        let device = backend == Backend::Xla;
        simulate::memory(&self.compiled.ode, self.compiled.program.program(), &self.extent, real, device)
    }

    /// Reads files, draws edges and computes parameters.
    pub fn experiment(self) -> Result<Experiment, Vec<Diagnostic>> {
        let Draft { compiled, mut extent } = self;
        let program = compiled.program.program();
        let (setup, of_edges) = simulate::setup(&compiled.ode, program, &extent)?;
        extent.edges = setup.edges.clone();
        let recording = simulate::recording(&compiled.ode, program, &extent)?;
        let data = |population: usize, file: u32| {
            let field = program.bound(Source::Data(population as u32, file))?;
            setup.data.iter().find(|(id, _)| *id == field).map(|(_, values)| values.to_vec())
        };
        let mut found = of_edges;
        found.extend(ode::domains::per_cell(&compiled.ode, &extent.cells, &data));
        if found.iter().any(Diagnostic::is_error) {
            return Err(found);
        }
        Ok(Experiment { compiled, extent, setup, recording, warnings: found })
    }
}

/// How a run was made, as its results tell.
#[derive(Debug, Clone, Copy)]
pub struct Made<'a> {
    /// The name of the engine.
    pub engine: &'a str,
    /// The numbers of the run.
    pub precision: Precision,
    /// How accurate functions are, as it is written.
    pub accuracy: &'a str,
    /// The settings of parameters and initial values.
    pub set: &'a [String],
}

/// A compiled model with everything that belongs to a run of it, but for the engine.
#[derive(Debug, Clone)]
pub struct Experiment {
    /// The model and its programs.
    pub compiled: Compiled,
    /// Its cells and steps.
    pub extent: Extent,
    /// Its values.
    pub setup: Setup,
    /// What it records.
    pub recording: Recording,
    /// What is probably wrong with values that differ from cell to cell.
    pub warnings: Vec<Diagnostic>,
}

impl Experiment {
    /// Counts cells and steps, reads files, draws edges and computes parameters.
    pub fn new(compiled: Compiled) -> Result<Experiment, Vec<Diagnostic>> {
        Draft::new(compiled)?.experiment()
    }

    /// How many cells there are; their compartments do not count.
    pub fn cells(&self) -> usize {
        let populations = self.compiled.ode.populations.iter().zip(&self.extent.cells);
        populations.filter(|(p, _)| p.kind == ode::Kind::Cells).map(|(_, cells)| cells).sum()
    }

    /// The program that runs.
    pub fn program(&self) -> &Program {
        self.compiled.program.program()
    }

    /// The states that the program keeps, in the order of the model, with their numbers of cells.
    pub fn states(&self) -> Vec<(FieldId, usize)> {
        let (model, program) = (&self.compiled.ode, self.program());
        let field = |number: u32| {
            let field = program.bound(Source::State(number))?;
            Some((field, program.field(field).over.map_or(0, |space| self.extent.size(space))))
        };
        (0..model.states.len() as u32).filter_map(field).collect()
    }

    /// A plan that knows no sizes, as what runs elsewhere or on another device wants it.
    pub fn plan(&self, precision: Precision) -> Result<Plan, Vec<Diagnostic>> {
        planned(&self.compiled, &PlanOptions { precision, ..PlanOptions::default() })
    }

    /// A plan for as many cells as there are.
    pub fn plan_of_this_size(&self, precision: Precision) -> Result<Plan, Vec<Diagnostic>> {
        planned(&self.compiled, &PlanOptions { precision, vectors: None, sizes: Some(self.setup.sizes.clone()) })
    }

    /// What the model shows to the users of its crate. `docs` are the lines at the head of its file.
    pub fn interface(&self, docs: &[String]) -> Interface {
        interface(docs, &self.compiled, &self.extent, &self.setup)
    }

    /// What a crate of a plan carries of how its cells are connected, and of how they branch; the error says why there is no crate.
    pub fn wiring(&self, plan: &Plan) -> Result<Wiring, Vec<Diagnostic>> {
        let refused = |why: String| vec![Diagnostic::without_place(Code::Unsupported, why)];
        if let Some(record) = self.compiled.ode.records.iter().find(|record| record.probe.is_some()) {
            let why = "is a potential, which is computed outside of the program so far; leave it out";
            return Err(refused(format!("`{}` {why}", record.name)));
        }
        engine::wiring(plan, &self.setup).map_err(|why| refused(why.to_string()))
    }

    /// What it records.
    pub fn records(&self) -> Result<Records, Vec<Diagnostic>> {
        simulate::records(&self.compiled.ode, self.program(), &self.extent)
    }

    /// What a file of its results holds, if it begins after `start` steps; `single`: samples in single precision.
    pub fn contents(&self, records: &Records, start: u64, single: bool) -> Contents {
        simulate::contents(&self.compiled.ode, &self.extent, records, start, single)
    }

    /// Where it begins, to go on from a checkpoint; the error says what does not fit.
    pub fn start(&self, checkpoint: &Checkpoint) -> Result<Start, String> {
        Start::new(checkpoint, &self.compiled.ode, self.program(), &self.extent)
    }

    /// What it has come to on an engine after so many steps, and facts about the run.
    pub fn checkpoint(
        &self,
        engine: &dyn Engine,
        step: u64,
        meta: Map<String, Value>,
    ) -> Result<Checkpoint, EngineError> {
        simulate::checkpoint(&self.compiled.ode, self.program(), &self.extent, engine, step, meta)
    }

    /// As [`Experiment::run`], but from `start` on, and what `records` says goes to `sink`.
    pub fn run_into(
        &self,
        records: &Records,
        engine: &mut dyn Engine,
        options: &RunOptions,
        watcher: &mut dyn Watcher,
        start: &Start,
        sink: &mut dyn Sink,
    ) -> Result<Outcome, RunError> {
        let (model, program, extent) = (&self.compiled.ode, self.program(), &self.extent);
        Run { model, program, extent, records, engine, options, watcher, start, sink }.to_end()
    }

    /// Begins a run that its caller advances, on an engine that was made for it; a call of the engine takes at most `window` steps.
    pub fn stepping(self, engine: Box<dyn Engine>, window: u32) -> Result<Stepping, RunError> {
        let Compiled { ode, program, .. } = self.compiled;
        Stepping::new(ode, program.into_inner(), self.extent, engine, window)
    }

    /// The facts that its results keep about it: the model, the compiler, the options and the seed.
    pub fn facts(&self, sources: &SourceMap, made: &Made<'_>) -> Map<String, Value> {
        let mut hasher = blake3::Hasher::new();
        for (_, file) in sources.files() {
            hasher.update(file.text.as_bytes());
            hasher.update(&[0]);
        }
        let ode = &self.compiled.ode;
        let mut value = json!({
            "model": ode.name,
            "source_hash": hasher.finalize().to_hex().as_str(),
            "compiler": concat!("neuroc ", env!("CARGO_PKG_VERSION")),
            "options": {
                "engine": made.engine,
                "precision": made.precision.name(),
                "accuracy": made.accuracy,
                "method": ode.method.name(),
                "dt_ms": ode.dt,
                "duration_ms": ode.duration,
                "set": made.set,
            },
            "seed": ode.seed,
        });
        if ode.method == Method::Adaptive {
            value["options"]["rtol"] = ode.tolerances.rtol.into();
            value["options"]["atol"] = ode.tolerances.atol.into();
            // There may be no longest step.
            if ode.tolerances.max_step.is_finite() {
                value["options"]["max_step_ms"] = ode.tolerances.max_step.into();
            }
        }
        match value {
            Value::Object(map) => map,
            _ => Map::new(),
        }
    }

    /// Runs it from the initial values to the end, on an engine that was made for it, and keeps what it records in memory.
    pub fn run(
        &self,
        engine: &mut dyn Engine,
        options: &RunOptions,
        watcher: &mut dyn Watcher,
    ) -> Result<(RunResult, Outcome), RunError> {
        simulate::run(&self.compiled.ode, self.program(), &self.extent, engine, options, watcher)
    }
}

/// The plan of a program, or why it has none.
pub fn planned(compiled: &Compiled, options: &PlanOptions) -> Result<Plan, Vec<Diagnostic>> {
    if compiled.ode.method == Method::Adaptive {
        let message = "a model with adaptive steps is not compiled: it has no step that is the same each time";
        let d = Diagnostic::without_place(Code::Unsupported, message);
        return Err(vec![d.help("run it as it is, or choose a method with steps of `dt`, such as `--method cnexp`")]);
    }
    let refused = |why: plan::Unplanned| vec![Diagnostic::without_place(Code::Unsupported, why.to_string())];
    plan::plan(&compiled.program, options).map_err(refused)
}
