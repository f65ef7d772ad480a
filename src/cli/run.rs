//! `neuroc run`.

use super::progress::{Interrupt, Progress};
use super::settings::{EngineName, EngineSettings, ModelSettings, PassSettings, PrecisionName};
use super::{Exit, accuracy, complain, deliver, memory, report, say};
use crate::codegen::plan::Plan;
use crate::diag::Diagnostic;
use crate::driver::{self, Checked, Draft, Experiment, Ready};
use crate::engine::EngineError;
use crate::plot::{self, ImageFormat, PlotOptions};
use crate::results::{self, RunResult};
use crate::simulate::{self, Ending, Outcome, RunError, RunOptions};
use serde_json::json;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Compile and run a model.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example: neuroc run examples/squid.neuro\n         neuroc run examples/squid.neuro --set n=1000 --threads 2 -o squid.npz --plot squid.png\n\nCtrl-C stops a run and keeps what it has recorded (exit code 130); a second Ctrl-C ends it at once."
)]
pub struct Args {
    /// A model file; - is standard input
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// The result, .npz or .csv; without this and --plot and --json: MODEL.npz and MODEL.svg
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// A picture of the result, .svg or .png
    #[arg(long, value_name = "FILE")]
    plot: Option<PathBuf>,
    /// Print errors only
    #[arg(long)]
    quiet: bool,
    /// If a value becomes NaN or infinite, tell the ten steps before
    #[arg(long)]
    trace_nan: bool,
    /// Print a summary as one line of JSON on stdout
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    settings: ModelSettings,
    #[command(flatten)]
    engine: EngineSettings,
    #[command(flatten)]
    opt: PassSettings,
}

/// Everything up to the first step.
pub(super) struct Prepared {
    pub checked: Checked,
    pub experiment: Experiment,
    pub plan: Plan,
    /// The engine; `compile_s` is counted from the file on.
    pub ready: Ready,
}

/// Checks, compiles and sets up. What goes wrong has been said.
pub(super) fn prepare(
    file: &Path,
    settings: &ModelSettings,
    engine: &EngineSettings,
    opt: &PassSettings,
    quiet: bool,
) -> Result<Prepared, Exit> {
    engine.check()?;
    let begin = Instant::now();
    let checked = super::check(file);
    if checked.model.is_none() || !quiet {
        report(&checked.sources, &checked.diagnostics);
    }
    let fail = |errors: Vec<Diagnostic>| {
        report(&checked.sources, &errors);
        Exit::of(&errors)
    };
    if checked.model.is_none() {
        return Err(Exit::Model);
    }
    let options = settings.options(opt, engine.precision(), engine.engine.backend())?;
    let compiled = driver::compile(&checked, &options, &mut |_, _, _| {}).map_err(fail)?;
    if opt.explain {
        say(accuracy::explain(compiled.program.program(), opt.accuracy, engine.precision()));
    }
    if !quiet {
        report(&checked.sources, &compiled.warnings);
    }
    let draft = Draft::new(compiled).map_err(|errors| {
        // A time step that the model itself chose badly has no place either.
        let given = settings.dt.is_some() || settings.duration.is_some();
        let exit = fail(errors);
        if given || exit != Exit::Usage { exit } else { Exit::Model }
    })?;
    let precision = engine.precision().into();
    fits(draft.memory(precision))?;
    let experiment = draft.experiment().map_err(fail)?;
    if !quiet {
        report(&checked.sources, &experiment.warnings);
    }
    let cannot = |error: EngineError| {
        complain(error);
        Exit::Model
    };
    let choice = engine.choice().map_err(cannot)?;
    let plan = experiment.plan_for(&choice, precision).map_err(fail)?;
    let ready = experiment.engine(&plan, choice).map_err(cannot)?;
    let ready = Ready { compile_s: begin.elapsed().as_secs_f64(), ..ready };
    Ok(Prepared { checked, experiment, plan, ready })
}

/// Refuses what the machine has no memory for: asking for it would end the process without a word.
pub(super) fn fits((cells, records): (f64, f64)) -> Result<(), Exit> {
    match memory::most() {
        Some(most) if cells + records > most => {
            complain(format!(
                "the run needs about {} of memory for its cells and {} for what it records, but the machine has {}",
                memory::gigabytes(cells),
                memory::gigabytes(records),
                memory::gigabytes(most)
            ));
            say(
                "help: take fewer cells, or record fewer cells (`record cells[0..10].soma.v`) less often (`every 1 ms`)",
            );
            Err(Exit::Model)
        }
        Some(_) | None => Ok(()),
    }
}

/// Runs a model and writes its results.
pub fn run(args: &Args) -> Exit {
    let (output, picture) = destinations(args);
    // Before a long run: can the files be written at all?
    if let Some(path) = &output
        && let Err(error) = results::check_destination(path)
    {
        complain(error);
        return Exit::Usage;
    }
    if let Some(path) = &picture
        && let Err(error) = ImageFormat::of(path)
    {
        complain(error);
        return Exit::Usage;
    }
    if let Some(path) = &picture
        && let Err(reason) = results::check_writable(path)
    {
        complain(format!("cannot write `{}`: {reason}", path.display()));
        return Exit::Usage;
    }
    let mut p = match prepare(&args.file, &args.settings, &args.engine, &args.opt, args.quiet) {
        Ok(prepared) => prepared,
        Err(exit) => return exit,
    };
    let single = args.engine.precision() != PrecisionName::F64;
    let options = RunOptions { window: args.opt.fuse, single, trap: true, trace: if args.trace_nan { 10 } else { 1 } };
    let mut watcher = Progress::new("", p.experiment.extent.grid, &Interrupt::catch(), args.quiet || args.json);
    let outcome = p.experiment.run(p.ready.engine.as_mut(), &options, &mut watcher);
    watcher.finish();
    let (mut result, outcome) = match outcome {
        Ok(done) => done,
        Err(RunError::Engine(error)) => {
            complain(error);
            return Exit::Model;
        }
        Err(RunError::Sink(error)) => {
            complain(error);
            return Exit::Model;
        }
        Err(RunError::Model(errors)) => {
            report(&p.checked.sources, &errors);
            return Exit::Model;
        }
    };
    result.meta = meta(args, &p, &outcome);
    let mut exit = Exit::Fine;
    match &outcome.ending {
        Ending::Done => {}
        Ending::Stopped => {
            let t = simulate::moment(outcome.steps, p.experiment.extent.grid.dt);
            say(format!("stopped at t = {t} ms; what was recorded until then is kept"));
            exit = Exit::Stopped;
        }
        Ending::NotFinite(diagnostic) => {
            report(&p.checked.sources, std::slice::from_ref(diagnostic));
            exit = Exit::Model;
        }
    }
    for written in [write(&result, output.as_deref()), draw(&result, picture.as_deref())] {
        match written {
            Ok(Some(path)) if !args.quiet => say(format!("wrote {}", path.display())),
            Ok(_) => {}
            Err(message) => {
                complain(message);
                exit = Exit::Model;
            }
        }
    }
    if !args.quiet {
        summarize(args.engine.engine, &p, &outcome, &result);
    }
    if args.json {
        let printed = deliver(&format!("{}\n", summary(args, &p, &outcome)), None);
        exit = if exit == Exit::Fine { printed } else { exit };
    }
    exit
}

/// Where results go: what was asked for, or MODEL.npz and MODEL.svg.
fn destinations(args: &Args) -> (Option<PathBuf>, Option<PathBuf>) {
    if args.output.is_some() || args.plot.is_some() || args.json {
        return (args.output.clone(), args.plot.clone());
    }
    let stem = match args.file.file_stem() {
        Some(stem) if args.file != Path::new("-") => stem.to_owned(),
        _ => "model".into(),
    };
    let stem = PathBuf::from(stem);
    (Some(stem.with_extension("npz")), Some(stem.with_extension("svg")))
}

fn write(result: &RunResult, path: Option<&Path>) -> Result<Option<PathBuf>, String> {
    let Some(path) = path else { return Ok(None) };
    let Err(error) = result.write(path) else { return Ok(Some(path.to_path_buf())) };
    // A long run is not lost because a disk became full.
    let name = path.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
    let refuge = std::env::temp_dir().join(format!("neuroc-{}-{name}", std::process::id()));
    match result.write(&refuge) {
        Ok(_) => Err(format!("{error}; the results are kept in `{}`", refuge.display())),
        Err(_) => Err(error.to_string()),
    }
}

fn draw(result: &RunResult, path: Option<&Path>) -> Result<Option<PathBuf>, String> {
    let Some(path) = path else { return Ok(None) };
    if result.series.iter().all(|s| s.t.is_empty()) && result.spikes.iter().all(|s| s.t.is_empty()) {
        return Err("nothing was recorded, so there is nothing to draw".into());
    }
    plot::draw(result, path, &PlotOptions::default()).map_err(|e| e.to_string())?;
    Ok(Some(path.to_path_buf()))
}

fn meta(args: &Args, p: &Prepared, outcome: &Outcome) -> serde_json::Map<String, serde_json::Value> {
    let mut hasher = blake3::Hasher::new();
    for (_, file) in p.checked.sources.files() {
        hasher.update(file.text.as_bytes());
        hasher.update(&[0]);
    }
    let ode = &p.experiment.compiled.ode;
    let value = json!({
        "model": ode.name,
        "source_hash": hasher.finalize().to_hex().as_str(),
        "compiler": concat!("neuroc ", env!("CARGO_PKG_VERSION")),
        "options": {
            "engine": args.engine.engine.name(),
            "precision": args.engine.precision().name(),
            "accuracy": args.opt.accuracy.name(),
            "method": ode.method.name(),
            "dt_ms": ode.dt,
            "duration_ms": ode.duration,
            "set": args.settings.set,
        },
        "seed": ode.seed,
        "steps": outcome.steps,
        "complete": outcome.ending == Ending::Done,
    });
    match value {
        serde_json::Value::Object(map) => map,
        _ => serde_json::Map::new(),
    }
}

fn summary(args: &Args, p: &Prepared, outcome: &Outcome) -> serde_json::Value {
    let cells: usize = p.experiment.extent.cells.iter().sum();
    let seconds = outcome.run_s.max(1e-9);
    json!({
        "model": p.experiment.compiled.ode.name,
        "engine": args.engine.engine.name(),
        "device": args.engine.device(),
        "precision": args.engine.precision().name(),
        "threads": p.ready.threads,
        "dt": p.experiment.extent.grid.dt,
        "steps": outcome.steps,
        "cells": cells,
        "compile_s": p.ready.compile_s,
        "run_s": outcome.run_s,
        "cell_steps_per_s": cells as f64 * outcome.steps as f64 / seconds,
        "realtime_factor": outcome.steps as f64 * p.experiment.extent.grid.dt / 1e3 / seconds,
        "spikes": outcome.spikes,
    })
}

fn summarize(engine: EngineName, p: &Prepared, outcome: &Outcome, result: &RunResult) {
    let cells: usize = p.experiment.extent.cells.iter().sum();
    let model_ms = outcome.steps as f64 * p.experiment.extent.grid.dt;
    let how = match engine {
        EngineName::Interp => "interpreted",
        EngineName::Native if p.ready.cached == Some(true) => "kernel from the cache",
        EngineName::Native => "kernel compiled",
        #[cfg(feature = "xla")]
        EngineName::Xla if p.ready.cached == Some(true) => "XLA's executables from the cache",
        #[cfg(feature = "xla")]
        EngineName::Xla => "compiled by XLA",
    };
    let plural = |n: u64, word: &str| format!("{n} {word}{}", if n == 1 { "" } else { "s" });
    say(format!(
        "{}: {}, {model_ms} ms in {}, computed in {:.3} s (ready after {:.2} s, {how}; real-time factor {:.3}), {}",
        p.experiment.compiled.ode.name,
        plural(cells as u64, "cell"),
        plural(outcome.steps, "step"),
        outcome.run_s,
        p.ready.compile_s,
        model_ms / 1e3 / outcome.run_s.max(1e-9),
        plural(outcome.spikes, "spike"),
    ));
    for train in &result.spikes {
        if train.t.is_empty() {
            continue;
        }
        let first: Vec<String> = train.t.iter().take(8).map(|t| format!("{t:.3}")).collect();
        let more = if train.t.len() > 8 { ", ..." } else { "" };
        say(format!("{} spikes at {}{more} ms", train.population, first.join(", ")));
    }
}
