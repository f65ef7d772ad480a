//! `neuroc run`.

use super::progress::{Interrupt, Progress};
use super::settings::{EngineName, EngineSettings, ModelSettings, PassSettings, PrecisionName};
use super::{Exit, accuracy, blamed, blamed_drawing, complain, deliver, memory, misused, report, say, sweep, writable};
use crate::codegen::plan::Plan;
use crate::diag::Diagnostic;
use crate::driver::{self, Checked, CompileOptions, Draft, Experiment, Made, Ready, Sample};
use crate::engine::{Effort, EngineError, Spike};
use crate::hir;
use crate::ode;
use crate::passes::Backend;
use crate::plot::{self, ImageFormat, PlotOptions};
use crate::report::{self as page, About, Thinned, Took};
use crate::results::{self, Checkpoint, FIRST_STEP, FileFormat, Found, Reading, RunResult, Writer};
use crate::simulate::{
    self, Ending, Outcome, Records, RunError, RunOptions, Sink, SinkError, Spiking, Start, Stream, Train,
};
use serde_json::json;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Compile and run a model.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example: neuroc run examples/squid.neuro\n         neuroc run examples/squid.neuro --set n=1000 --threads 2 -o squid.npz --plot squid.png\n         neuroc run examples/squid.neuro --sweep step.amplitude=0..20uA/cm2:41 -o fi.npz --plot fi.png\n\nCtrl-C stops a run and keeps what it has recorded (exit code 130); a second Ctrl-C ends it at once."
)]
pub struct Args {
    /// A model file; - is standard input
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// The result: .npz, .csv, or a directory of .npy files (a name that ends in /); without this and --plot, --report and --json:
    /// MODEL.npz and MODEL.svg
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// A picture of the result, .svg, .png or .pdf
    #[arg(long, value_name = "FILE")]
    pub(super) plot: Option<PathBuf>,
    /// A web page of the run, .html: the model, plots that zoom, spikes, parameters, in one file that needs no network
    #[arg(long, value_name = "FILE")]
    pub(super) report: Option<PathBuf>,
    /// Pack the numbers of the result when the run is over (for .npz)
    #[arg(long)]
    pub(super) compress: bool,
    /// Refuse to run if the cells take more memory than this, such as 2GB
    #[arg(long, value_name = "SIZE", value_parser = memory::size)]
    pub(super) memory: Option<f64>,
    /// Go on from a checkpoint instead of the initial values, up to the time --duration from 0 on
    #[arg(long, value_name = "STATE")]
    pub(super) load: Option<PathBuf>,
    /// When the run is over, save a checkpoint (.npz) for --load
    #[arg(long, value_name = "STATE")]
    pub(super) save: Option<PathBuf>,
    /// Run it for each of these values, such as Na.gbar=80..160mS/cm2:41 (41 values), x=1,2,5mV or seed=1..20; :7log for factors, :100samples for a
    /// Latin hypercube, :100random. Repeatable: every combination; names behind a comma go together. In place of the file's `sweep` lines; none: one run
    #[arg(long, value_name = "NAME=VALUES")]
    pub(super) sweep: Vec<String>,
    /// Show the cells this sample of the `train` block's data, the first being 0: its values, or one frame after the other
    #[arg(long, value_name = "N")]
    pub(super) sample: Option<usize>,
    /// Print errors only
    #[arg(long)]
    pub(super) quiet: bool,
    /// If a value becomes NaN or infinite, tell the ten steps before
    #[arg(long)]
    pub(super) trace_nan: bool,
    /// Print a summary as one line of JSON on stdout
    #[arg(long)]
    pub(super) json: bool,
    #[command(flatten)]
    pub(super) settings: ModelSettings,
    #[command(flatten)]
    pub(super) engine: EngineSettings,
    #[command(flatten)]
    pub(super) opt: PassSettings,
}

/// Everything up to the first step.
pub(super) struct Prepared {
    pub checked: Checked,
    pub experiment: Experiment,
    /// What cells are shown, if they are shown a sample.
    pub sample: Option<Sample>,
    /// None where only the interpreter runs the program.
    pub plan: Option<Plan>,
    /// The engine; `compile_s` is counted from the file on.
    pub ready: Ready,
}

impl Prepared {
    /// The plan, where it is known that there is one.
    pub fn plan(&self) -> &Plan {
        self.plan.as_ref().expect("what has no plan has been refused")
    }
}

/// What some runs want besides.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct More {
    /// How much memory it may take at most.
    pub memory: Option<f64>,
    /// Keep states that nothing depends on.
    pub keep_all: bool,
    /// The seed, where the command line says none.
    pub seed: Option<u64>,
    /// The sample that cells are shown.
    pub sample: Option<usize>,
}

/// Checks, compiles and sets up. What goes wrong has been said.
pub(super) fn prepare(
    file: &Path,
    settings: &ModelSettings,
    engine: &EngineSettings,
    opt: &PassSettings,
    quiet: bool,
    more: More,
) -> Result<Prepared, Exit> {
    engine.check()?;
    let begin = Instant::now();
    prepared(super::check(file), begin, settings, engine, opt, quiet, more)
}

/// The same for what has been checked.
fn prepared(
    checked: Checked,
    begin: Instant,
    settings: &ModelSettings,
    engine: &EngineSettings,
    opt: &PassSettings,
    quiet: bool,
    more: More,
) -> Result<Prepared, Exit> {
    if checked.model.is_none() || !quiet {
        report(&checked.sources, &checked.diagnostics);
    }
    let fail = |errors: Vec<Diagnostic>| {
        report(&checked.sources, &errors);
        Exit::of(&errors)
    };
    if checked.model.is_none() {
        return Err(Exit::of(&checked.diagnostics));
    }
    let options = settings.options(opt, engine.precision(), engine.engine.backend())?;
    let backend = options.backend;
    let mut options = CompileOptions { keep_all: more.keep_all, seed: options.seed.or(more.seed), ..options };
    let sample = more.sample.map(|number| sampled(&checked, &options, number)).transpose()?;
    options.per_cell.extend(sample.iter().map(Sample::first));
    let blame = |errors: Vec<Diagnostic>| blamed(&checked, &options, &errors);
    let compiled = driver::compile(&checked, &options, &mut |_, _, _| {}).map_err(blame)?;
    if opt.explain {
        say(accuracy::explain(compiled.program.program(), opt.accuracy, engine.precision()));
    }
    if !quiet {
        report(&checked.sources, &compiled.warnings);
    }
    let draft = Draft::new(compiled).map_err(blame)?;
    let precision = engine.precision().into();
    // What is recorded goes to files while the run goes on.
    fits((draft.memory(precision, backend).0, 0.0), more.memory)?;
    let experiment = draft.experiment().map_err(|errors| blamed_drawing(&checked, &options, &errors))?;
    if !quiet {
        report(&checked.sources, &experiment.warnings);
    }
    let cannot = |error: EngineError| {
        complain(error);
        Exit::Model
    };
    let choice = engine.choice().map_err(cannot)?;
    let (plan, ready) = match experiment.plan_for(&choice, precision) {
        Ok(plan) => {
            let ready = experiment.engine(&plan, choice).map_err(cannot)?;
            (Some(plan), ready)
        }
        Err(_) if experiment.needs_no_plan(&choice) => (None, experiment.interpreter().map_err(cannot)?),
        Err(errors) => return Err(fail(errors)),
    };
    let shown = |engine| match &sample {
        Some(sample) => sample.shown(experiment.program(), engine).map_err(cannot),
        None => Ok(engine),
    };
    let ready = Ready { compile_s: begin.elapsed().as_secs_f64(), engine: shown(ready.engine)?, ..ready };
    Ok(Prepared { checked, experiment, sample, plan, ready })
}

/// A sample that cells are to be shown. What is wrong with it has been said.
fn sampled(checked: &Checked, options: &CompileOptions, number: usize) -> Result<Sample, Exit> {
    let Some(model) = &checked.model else { return Err(Exit::of(&checked.diagnostics)) };
    let usage = |message: String| {
        complain(message);
        Err(Exit::Usage)
    };
    let Some(train) = &model.train else {
        return usage("`--sample` shows a sample of a `train` block, and this model has none".into());
    };
    let fail = |errors: Vec<Diagnostic>| {
        report(&checked.sources, &errors);
        Exit::of(&errors)
    };
    let (flat, _) = driver::flatten(model, options).map_err(fail)?;
    let sample = driver::sample(&flat, train, number).map_err(fail)?;
    let names = |text: &&String| {
        let name = ode::parse_override(text).map(|o| o.name).unwrap_or_default();
        ode::full_name(&flat, &name).is_ok_and(|full| full == sample.parameter)
    };
    if let Some(text) = options.set.iter().find(names) {
        return usage(format!("`--set {text}` sets what `--sample {number}` gives values to; leave one of them out"));
    }
    if sample.frames.len() > 1 && options.backend == Backend::Xla {
        return usage(
            "XLA takes all steps of a run by itself, and sees no frames; `--engine native` shows them".into(),
        );
    }
    if sample.frames.len() > 1 && flat.method == hir::Method::Adaptive {
        return usage("frames change at whole steps, and adaptive ones have their own; take another `--method`".into());
    }
    Ok(sample)
}

/// Refuses what the machine has no memory for, or more than `--memory` allows: asking for it would end the process without a word.
pub(super) fn fits((cells, records): (f64, f64), limit: Option<f64>) -> Result<(), Exit> {
    let most = memory::most().unwrap_or(f64::INFINITY);
    let (most, who) = match limit {
        Some(limit) if limit < most => (limit, "`--memory` allows"),
        Some(_) | None => (most, "the machine has"),
    };
    if cells + records <= most {
        return Ok(());
    }
    let recorded = match records {
        0.0 => String::new(),
        _ => format!(", and {} for what it records", memory::told(records)),
    };
    complain(format!(
        "the run needs about {} of memory for its cells and connections{recorded}, but {who} {}",
        memory::told(cells),
        memory::told(most)
    ));
    say(match records {
        0.0 => "help: take fewer cells or connections",
        _ => {
            "help: take fewer cells or connections, or record fewer cells (`record cells[0..10].soma.v`) less often (`every 1 ms`)"
        }
    });
    Err(Exit::Model)
}

/// Says how large a file is going to be, and refuses what the disk has no space for.
pub(super) fn fits_on_disk(path: &Path, bytes: f64, quiet: bool) -> Result<(), Exit> {
    let text = matches!(FileFormat::of(path), Ok(FileFormat::Csv));
    // A number is about twice as long as text.
    let bytes = bytes * if text { 2.0 } else { 1.0 };
    const HELP: &str = "record fewer cells (`record cells[0..10].soma.v`) or less often (`every 1 ms`)";
    if let Some(free) = memory::free(path).filter(|&free| bytes > free) {
        let (bytes, free) = (memory::told(bytes), memory::told(free));
        complain(format!(
            "`{}` would take about {bytes} for what it records, but the disk has {free} left",
            path.display()
        ));
        say(format!("help: {HELP}"));
        return Err(Exit::Model);
    }
    if bytes > ANNOUNCED && !quiet {
        say(format!("{} is going to take about {}; for less, {HELP}", path.display(), memory::told(bytes)));
    }
    Ok(())
}

/// Files from so many bytes on are announced.
const ANNOUNCED: f64 = 1e8;
/// So many samples and columns of a record are enough for a picture.
pub(super) const DRAWN: (usize, usize) = (40_000, 64);

/// Runs a model and writes its results.
pub fn run(args: &Args) -> Exit {
    run_or_say(args).unwrap_or_else(|exit| exit)
}

fn run_or_say(args: &Args) -> Result<Exit, Exit> {
    let (output, picture) = destinations(args);
    all_writable(args, output.as_deref(), picture.as_deref())?;
    args.engine.check()?;
    let begin = Instant::now();
    let checked = super::check(&args.file);
    let read = args.load.iter().chain(args.settings.read()).map(PathBuf::as_path);
    let written = output.iter().chain(&picture).chain(&args.report).map(PathBuf::as_path);
    super::spared(&checked, read, written)?;
    // A checkpoint may take the place of the one that the run goes on from.
    super::spared(&checked, args.settings.read().map(PathBuf::as_path), args.save.as_deref())?;
    let sweeps = sweep::asked(args, &checked)?;
    if !sweeps.is_empty() {
        if args.sample.is_some() {
            complain("a sample is shown in one run, and this is a sweep; `--sweep none` makes it one");
            return Err(Exit::Usage);
        }
        return sweep::run(args, &checked, &sweeps, output, picture);
    }
    let loaded = args.load.as_deref().map(|path| Checkpoint::read(path).map_err(misused)).transpose()?;
    let more = More {
        memory: args.memory,
        // A checkpoint has all states: another engine may keep others.
        keep_all: args.save.is_some() || args.load.is_some(),
        seed: loaded.as_ref().map(|state| state.seed),
        sample: args.sample,
    };
    let mut p = prepared(checked, begin, &args.settings, &args.engine, &args.opt, args.quiet, more)?;
    if let (Some(number), Some(sample), false) = (args.sample, &p.sample, args.quiet) {
        let kept = if sample.is_test { "is for testing" } else { "is learnt from" };
        say(format!("sample {number} {kept} and has the class {}", sample.class));
    }
    if p.experiment.is_adaptive() && (args.save.is_some() || args.load.is_some()) {
        return Err(misused(
            "a run with adaptive steps begins at its beginning and is not saved: leave out `--load` and `--save`",
        ));
    }
    if let (Some(path), Err(why)) = (&args.save, simulate::past(p.experiment.program(), p.ready.engine.as_ref())) {
        return Err(misused(format!("cannot save `{}`: {why}", path.display())));
    }
    let start = match (&args.load, &loaded) {
        (Some(path), Some(state)) => {
            let initial = |text: &&String| ode::sets_initial_value(&p.experiment.compiled.ode, text);
            if let Some(text) = args.settings.all()?.iter().find(initial) {
                complain(format!(
                    "`--set {text}` sets an initial value, but the run goes on from `{}`",
                    path.display()
                ));
                return Err(Exit::Usage);
            }
            let why = |why| misused(format!("cannot go on from `{}`: {why}", path.display()));
            p.experiment.start(state).map_err(why)?
        }
        _ => Start::default(),
    };
    let single = args.engine.precision() != PrecisionName::F64;
    let fail = |errors: Vec<Diagnostic>| {
        report(&p.checked.sources, &errors);
        Exit::Model
    };
    let records = p.experiment.records().map_err(fail)?;
    // Pictures and pages are made from a file, too: what is recorded need not fit into memory.
    let scratch = match &output {
        _ if picture.is_none() && args.report.is_none() => None,
        Some(path) if !matches!(FileFormat::of(path), Ok(FileFormat::Csv)) => None,
        Some(_) | None => Some(tempfile::tempdir().map_err(|e| {
            complain(format!("cannot make a temporary directory: {e}"));
            Exit::Model
        })?),
    };
    let scratch_file = scratch.as_ref().map(|folder| folder.path().join("result.npz"));
    let mut sinks = Vec::new();
    for path in output.iter().chain(&scratch_file) {
        let contents = p.experiment.contents(&records, start.step, single);
        fits_on_disk(path, contents.bytes(), args.quiet)?;
        let writer = Writer::new(path, contents, args.compress && Some(path) == output.as_ref()).map_err(wrong)?;
        sinks.push(Stream::new(writer, &records, p.experiment.extent.grid, meta(args, &p, start.step)));
    }
    let options = RunOptions { window: args.opt.fuse, single, trap: true, trace: if args.trace_nan { 10 } else { 1 } };
    let mut watcher = Progress::new("", p.experiment.extent.grid, &Interrupt::catch(), args.quiet || args.json);
    let mut both = Both(&mut sinks);
    let outcome = p.experiment.run_into(&records, p.ready.engine.as_mut(), &options, &mut watcher, &start, &mut both);
    watcher.finish();
    let outcome = outcome.map_err(|error| match error {
        RunError::Engine(error) => wrong(error),
        RunError::Sink(error) => wrong(error),
        RunError::Model(errors) => {
            report(&p.checked.sources, &errors);
            Exit::Model
        }
    })?;
    let mut exit = Exit::Fine;
    if let Some(odd) = outcome.warning.as_deref().filter(|_| !args.quiet) {
        report(&p.checked.sources, std::slice::from_ref(odd));
    }
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
    for sink in sinks {
        match sink.finish(outcome.steps, outcome.ending == Ending::Done) {
            Ok(files) if !args.quiet => {
                let shown = files.iter().filter(|file| Some(*file) != scratch_file.as_ref());
                shown.for_each(|file| say(format!("wrote {}", file.display())));
            }
            Ok(_) => {}
            Err(error) => exit = wrong(error),
        }
    }
    if let Some(path) = &args.save
        && !matches!(outcome.ending, Ending::NotFinite(_))
    {
        let state = p
            .experiment
            .checkpoint(p.ready.engine.as_ref(), outcome.steps, meta(args, &p, outcome.start))
            .map_err(wrong)?;
        match state.write(path) {
            Ok(()) if !args.quiet => say(format!(
                "saved {} at {} ms",
                path.display(),
                simulate::moment(state.step, p.experiment.extent.grid.dt)
            )),
            Ok(()) => {}
            Err(error) => exit = wrong(error),
        }
    }
    let file = scratch_file.as_ref().or(output.as_ref());
    if let (Some(picture), Some(file)) = (&picture, file) {
        match draw(file, picture) {
            Ok(true) if !args.quiet => say(format!("wrote {}", picture.display())),
            Ok(true) => {}
            Ok(false) => {
                let nothing = "nothing was recorded, so there is nothing to draw";
                // Who asked for no picture misses none.
                if args.plot.is_some() {
                    exit = exit.max(wrong(nothing.to_owned()));
                } else if !args.quiet {
                    say(nothing);
                }
            }
            Err(message) if args.plot.is_some() => exit = exit.max(wrong(message)),
            // The results are there, and nobody has asked for the picture.
            Err(message) if !args.quiet => say(format!("no picture: {message}")),
            Err(_) => {}
        }
    }
    if let (Some(path), Some(file)) = (&args.report, file) {
        let took = Took { compile_s: p.ready.compile_s, run_s: outcome.run_s, threads: p.ready.threads };
        let about = About { title: None, sources: page::sources(&p.checked.sources), took: Some(took) };
        let thinned = Thinned::read(file).map_err(|e| e.to_string());
        match thinned.and_then(|thinned| page::write(path, &thinned, &about)) {
            Ok(()) if !args.quiet => say(format!("wrote {}", path.display())),
            Ok(()) => {}
            Err(message) => exit = exit.max(wrong(message)),
        }
    }
    if !args.quiet {
        summarize(args.engine.engine, &p, &records, &outcome);
    }
    if args.json {
        let printed = deliver(&format!("{}\n", summary(args, &p, &outcome)), None);
        exit = if exit == Exit::Fine { printed } else { exit };
    }
    Ok(exit)
}

/// Says what is wrong.
fn wrong(error: impl std::fmt::Display) -> Exit {
    complain(error);
    Exit::Model
}

/// Before a long run: can the files be written at all?
fn all_writable(args: &Args, output: Option<&Path>, picture: Option<&Path>) -> Result<(), Exit> {
    if let Some(path) = output {
        results::check_destination(path).map_err(misused)?;
    }
    super::apart(&[
        ("results", output),
        ("checkpoint", args.save.as_deref()),
        ("picture", picture),
        ("page", args.report.as_deref()),
    ])?;
    if let Some(path) = &args.save {
        writable(path)?;
    }
    if let Some(path) = picture {
        ImageFormat::of(path).map_err(misused)?;
        writable(path)?;
    }
    if let Some(path) = &args.report {
        if !page::is_page(path) {
            return Err(misused(format!("cannot write `{}`: the name of a page must end in .html", path.display())));
        }
        writable(path)?;
    }
    let packs = output.is_some_and(|path| matches!(FileFormat::of(path), Ok(FileFormat::Npz)));
    if args.compress && !packs {
        return Err(misused("`--compress` is for an .npz file (`-o out.npz`)"));
    }
    Ok(())
}

/// Hands everything to all of them.
struct Both<'a>(&'a mut Vec<Stream>);

impl Sink for Both<'_> {
    fn row(&mut self, record: usize, step: u64, values: &[f64]) -> Result<(), SinkError> {
        self.0.iter_mut().try_for_each(|sink| sink.row(record, step, values))
    }

    fn spike(&mut self, train: usize, spike: Spike) -> Result<(), SinkError> {
        self.0.iter_mut().try_for_each(|sink| sink.spike(train, spike))
    }

    fn reached(&mut self, step: u64) -> Result<(), SinkError> {
        self.0.iter_mut().try_for_each(|sink| sink.reached(step))
    }
}

/// Where results go: what was asked for, or MODEL.npz and MODEL.svg.
fn destinations(args: &Args) -> (Option<PathBuf>, Option<PathBuf>) {
    if args.output.is_some() || args.plot.is_some() || args.report.is_some() || args.json {
        return (args.output.clone(), args.plot.clone());
    }
    // What is behind the last dot is the extension: `net.v1.neuro` and `net.v2.neuro` have results of their own.
    let name = match args.file.file_name() {
        Some(name) if args.file != Path::new("-") => PathBuf::from(name),
        _ => "model".into(),
    };
    (Some(name.with_extension("npz")), Some(name.with_extension("svg")))
}

/// Draws what a file holds; false if that is nothing.
pub(super) fn draw(file: &Path, picture: &Path) -> Result<bool, String> {
    let (samples, columns) = DRAWN;
    let reading = Reading { samples: Some(samples), columns: Some(columns), no_parameters: true };
    let result = Found::read(file, &reading).map_err(|e| e.to_string())?;
    let nothing = |r: &RunResult| r.series.iter().all(|s| s.t.is_empty()) && r.spikes.iter().all(|s| s.t.is_empty());
    let empty = match &result {
        Found::Run(run) => nothing(run),
        Found::Sweep(sweep) => sweep.runs.iter().all(|run| run.series.is_empty() && run.spikes.is_empty()),
    };
    if empty {
        return Ok(false);
    }
    plot::draw_found(&result, picture, &PlotOptions::default()).map(|()| true).map_err(|e| e.to_string())
}

fn meta(args: &Args, p: &Prepared, first_step: u64) -> serde_json::Map<String, serde_json::Value> {
    // It has been read before.
    let set = args.settings.all().unwrap_or_default();
    let mut facts = p.experiment.facts(
        &p.checked.sources,
        &Made {
            engine: args.engine.engine.name(),
            precision: args.engine.precision().into(),
            accuracy: args.opt.accuracy.name(),
            set: &set,
        },
    );
    facts.extend(args.settings.trained_fact());
    facts.extend(args.sample.map(|number| ("sample".to_string(), json!(number))));
    facts.extend((first_step > 0).then(|| (FIRST_STEP.to_string(), json!(first_step))));
    facts
}

fn summary(args: &Args, p: &Prepared, outcome: &Outcome) -> serde_json::Value {
    let cells: usize = p.experiment.cells();
    let seconds = outcome.run_s.max(1e-9);
    let steps = outcome.steps - outcome.start;
    let mut all = json!({
        "model": p.experiment.compiled.ode.name,
        "engine": args.engine.engine.name(),
        "device": args.engine.device(),
        "precision": args.engine.precision().name(),
        "threads": p.ready.threads,
        "dt": p.experiment.extent.grid.dt,
        "steps": steps,
        "cells": cells,
        "compile_s": p.ready.compile_s,
        "run_s": outcome.run_s,
        "cell_steps_per_s": cells as f64 * steps as f64 / seconds,
        "realtime_factor": steps as f64 * p.experiment.extent.grid.dt / 1e3 / seconds,
        "spikes": outcome.spikes,
    });
    if let (Some(number), Some(sample)) = (args.sample, &p.sample) {
        all["sample"] = json!({"number": number, "class": sample.class, "test": sample.is_test});
    }
    if let Some(Effort { steps, rejected, rates, slopes, factored }) = outcome.effort {
        all["adaptive"] = json!({
            "steps": steps, "rejected": rejected, "rates": rates, "slopes": slopes, "factored": factored,
        });
    }
    all
}

fn summarize(engine: EngineName, p: &Prepared, records: &Records, outcome: &Outcome) {
    let cells: usize = p.experiment.cells();
    let steps = outcome.steps - outcome.start;
    let model_ms = steps as f64 * p.experiment.extent.grid.dt;
    let shown = simulate::moment(steps, p.experiment.extent.grid.dt);
    let how = match engine {
        _ if outcome.effort.is_some() => "adaptive",
        EngineName::Interp => "interpreted",
        EngineName::Native if p.ready.cached == Some(true) => "kernel from the cache",
        EngineName::Native => "kernel compiled",
        #[cfg(feature = "xla")]
        EngineName::Xla if p.ready.cached == Some(true) => "XLA's executables from the cache",
        #[cfg(feature = "xla")]
        EngineName::Xla => "compiled by XLA",
    };
    let any = p.experiment.compiled.ode.populations.iter().any(|p| p.spike.is_some());
    let plural = |n: u64, word: &str| format!("{n} {word}{}", if n == 1 { "" } else { "s" });
    say(format!(
        "{}: {}, {shown} ms in {}, computed in {:.3} s (ready after {:.2} s, {how}; real-time factor {:.3}){}",
        p.experiment.compiled.ode.name,
        plural(cells as u64, "cell"),
        match outcome.effort {
            None => plural(steps, "step"),
            Some(Effort { steps, rejected, rates, .. }) => {
                format!("{} (and {rejected} too long), {rates} evaluations", plural(steps, "adaptive step"))
            }
        },
        outcome.run_s,
        p.ready.compile_s,
        model_ms / 1e3 / outcome.run_s.max(1e-9),
        if any { format!(", {}", plural(outcome.spikes, "spike")) } else { String::new() },
    ));
    for (train, spiking) in records.trains.iter().zip(&outcome.trains) {
        say(spikes(train, spiking, p.experiment.extent.grid.dt, model_ms));
    }
}

/// The spikes of a population in a line.
fn spikes(train: &Train, spiking: &Spiking, dt: f64, model_ms: f64) -> String {
    let all: u64 = spiking.counts.iter().sum();
    let hertz = |spikes: f64| format!("{:.2}", spikes / (model_ms / 1e3).max(1e-9));
    match (&spiking.counts[..], all) {
        (_, 0) => format!("{}: no spikes", train.population),
        (&[_], _) => {
            let first: Vec<String> = spiking.first.iter().map(|spike| format!("{:.3}", spike.time(dt))).collect();
            let more = if all > first.len() as u64 { ", ..." } else { "" };
            format!("{}: {} Hz, spikes at {}{more} ms", train.population, hertz(all as f64), first.join(", "))
        }
        (counts, _) => format!(
            "{}: {all} spike{} of {} of {} cells; a cell has {} Hz on average, {} to {} Hz",
            train.population,
            if all == 1 { "" } else { "s" },
            counts.iter().filter(|&&n| n > 0).count(),
            counts.len(),
            hertz(all as f64 / counts.len() as f64),
            hertz(counts.iter().copied().min().unwrap_or(0) as f64),
            hertz(counts.iter().copied().max().unwrap_or(0) as f64),
        ),
    }
}
