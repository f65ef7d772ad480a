//! `neuroc run` of a sweep.
//!
//! In come the arguments of a run and what is swept, from `--sweep` or from the `sweep` lines of the file; out go one file with all
//! runs, and a picture.
//! Never true here: a run that failed stops the others, or is not told.

use super::progress::{self, Interrupt};
use super::run::{Args, draw, fits, fits_on_disk};
use super::{Exit, blamed, blamed_where, complain, deliver, memory, report, say};
use crate::diag::Diagnostic;
use crate::driver::{self, Checked, CompileOptions, Crew, Done, Draft, Made, Sweep};
use crate::engine::native::NativeOptions;
use crate::hir;
use crate::ode::{self, Design};
use crate::passes::Backend;
use crate::results::{FileFormat, SweepWriter, SweptAxis, sweep_bytes};
use crate::simulate::{self, Ending, RunError, RunOptions, Watcher};
use serde_json::json;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// What is swept: what the command line says, or else what the file says. `--sweep none` is nothing.
pub fn asked(args: &Args, checked: &Checked) -> Result<Vec<hir::Sweep>, Exit> {
    if args.sweep.is_empty() {
        let run = checked.model.as_ref().and_then(|model| model.run.as_ref());
        return Ok(run.map_or_else(Vec::new, |run| run.sweeps.clone()));
    }
    if let [one] = &args.sweep[..]
        && one == "none"
    {
        return Ok(Vec::new());
    }
    let parsed = args.sweep.iter().map(|text| hir::Sweep::parse(text));
    let (sweeps, errors): (Vec<_>, Vec<_>) = parsed.partition(Result::is_ok);
    let errors: Vec<Diagnostic> = errors.into_iter().filter_map(Result::err).collect();
    if errors.is_empty() {
        return Ok(sweeps.into_iter().flatten().collect());
    }
    report(&checked.sources, &errors);
    Err(Exit::Usage)
}

/// Stops a run at Ctrl-C.
struct Stop(Interrupt);

impl Watcher for Stop {
    fn step(&mut self, _done: u64) -> bool {
        !self.0.pressed()
    }
}

/// What has become of the runs so far.
#[derive(Default)]
struct Tally {
    done: usize,
    failed: usize,
    stopped: bool,
    spikes: u64,
    /// An engine gave up.
    ended: bool,
    /// Nothing can be written any more.
    broken: bool,
}

/// Runs everything and writes it.
pub fn run(
    args: &Args,
    checked: &Checked,
    sweeps: &[hir::Sweep],
    output: Option<PathBuf>,
    picture: Option<PathBuf>,
) -> Result<Exit, Exit> {
    suited(args, sweeps.len(), output.as_deref())?;
    let begin = Instant::now();
    if checked.model.is_none() || !args.quiet {
        report(&checked.sources, &checked.diagnostics);
    }
    let Some(model) = &checked.model else { return Err(Exit::of(&checked.diagnostics)) };
    let fail = |errors: Vec<Diagnostic>| {
        report(&checked.sources, &errors);
        Exit::of(&errors)
    };
    let options = args.settings.options(&args.opt, args.engine.precision(), Backend::Native)?;
    let (flat, _) = driver::flatten(model, &options).map_err(|errors| blamed(checked, &options, &errors))?;
    let design = ode::design(&flat, sweeps, &args.settings.set, args.settings.seed.is_some());
    let design = design.map_err(|errors| {
        let alone = |written: &CompileOptions| {
            let (flat, _) = driver::flatten(model, written).ok()?;
            ode::design(&flat, sweeps, &[], false).ok()
        };
        blamed_where(checked, &options, &errors, |written| alone(written).is_some())
    })?;
    let precision = args.engine.precision().into();
    let sweep = Sweep { checked, options: &options, design: &design, precision };
    let draft = look_at_all(&sweep, args)?;
    let runs = design.runs();
    let crew = crew(&draft, args, runs, precision)?;
    let experiment = draft.experiment().map_err(|errors| {
        let errors = sweep.told(0, errors);
        blamed_in(&sweep, args, 0, &errors, super::can_be_drawn)
    })?;
    if !args.quiet {
        report(&checked.sources, &experiment.warnings);
    }
    let single = precision != crate::codegen::plan::Precision::F64;
    let records = experiment.records().map_err(fail)?;
    let contents = experiment.contents(&records, 0, single);
    let grid = experiment.extent.grid;
    let times: Vec<Vec<f64>> = records
        .series
        .iter()
        .map(|r| {
            let (first, samples) = r.samples(0);
            (0..samples).map(|i| (first + i * r.every) as f64 * grid.dt).collect()
        })
        .collect();
    let scratch = match &output {
        None if picture.is_some() => {
            Some(tempfile::tempdir().map_err(|e| wrong(format!("cannot make a temporary directory: {e}")))?)
        }
        Some(_) | None => None,
    };
    let file = output.clone().or_else(|| scratch.as_ref().map(|folder| folder.path().join("sweep.npz")));
    let mut writer = match &file {
        None => None,
        Some(path) => {
            fits_on_disk(path, sweep_bytes(&contents, runs), args.quiet)?;
            let compress = args.compress && output.is_some();
            Some(SweepWriter::new(path, contents, &times, axes(&design), design.shape(), compress).map_err(wrong)?)
        }
    };
    let set = args.settings.all()?;
    let engine = args.engine.engine.name();
    let made = Made { engine, precision, accuracy: args.opt.accuracy.name(), set: &set };
    let mut meta = experiment.facts(&checked.sources, &made);
    meta.extend(args.settings.trained_fact());
    meta.insert("steps".into(), grid.steps.into());
    let (cells, name) = (experiment.cells(), experiment.compiled.ode.name.clone());
    if !args.quiet {
        say(announced(&design, crew));
    }

    let interrupt = Interrupt::catch();
    let bar = progress::runs(runs, args.quiet || args.json);
    let mut tally = Tally::default();
    let choose = |threads: usize| match args.engine.choice()? {
        driver::EngineChoice::Native(options) => Ok(driver::EngineChoice::Native(NativeOptions { threads, ..options })),
        other => Ok(other),
    };
    let run_options =
        RunOptions { window: args.opt.fuse, single, trap: true, trace: if args.trace_nan { 10 } else { 1 } };
    let compiled = Instant::now();
    let mut take = |run: usize, done: Done| {
        if tally.broken || tally.ended {
            return false;
        }
        let (result, steps, complete) = match done {
            Ok((result, outcome)) => {
                let steps = outcome.steps;
                match outcome.ending {
                    Ending::Done => {
                        tally.done += 1;
                        tally.spikes += outcome.spikes;
                        (Some(result), steps, true)
                    }
                    Ending::Stopped => {
                        tally.stopped = true;
                        (None, 0, false)
                    }
                    Ending::NotFinite(diagnostic) => {
                        tally.failed += 1;
                        bar.suspend(|| report(&checked.sources, &sweep.told(run, vec![*diagnostic])));
                        (Some(result), steps, false)
                    }
                }
            }
            Err(RunError::Model(errors)) => {
                tally.failed += 1;
                bar.suspend(|| report(&checked.sources, &sweep.told(run, errors)));
                (None, 0, false)
            }
            Err(RunError::Engine(error)) => {
                tally.ended = true;
                bar.suspend(|| complain(format!("{error}, in the run with {}", design.told(run))));
                return false;
            }
            Err(RunError::Sink(error)) => {
                tally.broken = true;
                bar.suspend(|| complain(error));
                return false;
            }
        };
        bar.inc(1);
        if let Some(Err(error)) = writer.as_mut().map(|writer| writer.run(result.as_ref(), steps, complete)) {
            tally.broken = true;
            bar.suspend(|| complain(format!("{error}, in the run with {}", design.told(run))));
        }
        !(tally.broken || tally.stopped || interrupt.pressed())
    };
    let watcher = || Box::new(Stop(interrupt.clone())) as Box<dyn Watcher>;
    sweep.run(crew, experiment, &choose, &run_options, &watcher, &mut take);
    bar.finish_and_clear();
    if tally.broken || tally.ended && tally.done == 0 {
        return Err(Exit::Model);
    }
    let run_s = compiled.elapsed().as_secs_f64();
    tally.stopped |= tally.done + tally.failed < runs;
    let mut exit = match (tally.stopped, tally.failed) {
        (true, _) if tally.ended => Exit::Model,
        (true, _) => Exit::Stopped,
        (false, 0) => Exit::Fine,
        (false, _) => Exit::Model,
    };
    if tally.stopped {
        say(format!("stopped: {} of {runs} runs are done; they are kept, and all others are NaN", tally.done));
    } else if tally.failed > 0 {
        say(format!(
            "{} of {runs} runs failed; their samples are NaN from there on, and the others are kept",
            tally.failed
        ));
    }
    if let Some(writer) = writer {
        let files = writer.finish(&meta).map_err(wrong)?;
        if let (Some(path), false) = (files.first().filter(|_| output.is_some()), args.quiet) {
            say(format!("wrote {}", path.display()));
        }
    }
    if let (Some(picture), Some(file)) = (&picture, &file) {
        match draw(file, picture) {
            Ok(_) if args.quiet => {}
            Ok(true) => say(format!("wrote {}", picture.display())),
            Ok(false) => say("nothing was recorded, so there is nothing to draw"),
            // Who asked for no picture is told why there is none.
            Err(why) if args.plot.is_none() => say(why),
            Err(why) => exit = exit.max(wrong(why)),
        }
    }
    let steps = tally.done as u64 * grid.steps;
    let ready = compiled.duration_since(begin).as_secs_f64();
    if !args.quiet {
        let each = plural(cells, "cell");
        let spikes = plural(tally.spikes as usize, "spike");
        say(format!(
            "{name}: {} of {each}, {} ms each, done in {run_s:.3} s (ready after {ready:.2} s), {spikes}",
            plural(tally.done, "run"),
            grid.dt * grid.steps as f64
        ));
    }
    if args.json {
        let line = json!({
            "model": name, "engine": engine, "device": args.engine.device(), "precision": args.engine.precision().name(),
            "threads": crew.runs * crew.threads, "dt": grid.dt, "steps": grid.steps, "cells": cells,
            "runs": runs, "done": tally.done, "failed": tally.failed, "shape": design.shape(),
            "compile_s": ready, "run_s": run_s, "cell_steps_per_s": cells as f64 * steps as f64 / run_s.max(1e-9),
            "realtime_factor": steps as f64 * grid.dt / 1e3 / run_s.max(1e-9), "spikes": tally.spikes,
        });
        let printed = deliver(&format!("{line}\n"), None);
        exit = if exit == Exit::Fine { printed } else { exit };
    }
    Ok(exit)
}

fn wrong(error: impl std::fmt::Display) -> Exit {
    complain(error);
    Exit::Model
}

fn plural(n: usize, word: &str) -> String {
    format!("{n} {word}{}", if n == 1 { "" } else { "s" })
}

/// Refuses what does not go together with a sweep.
fn suited(args: &Args, axes: usize, output: Option<&Path>) -> Result<(), Exit> {
    let usage = |message: &str| {
        complain(message);
        Err(Exit::Usage)
    };
    if args.engine.engine.backend() != Backend::Native {
        return usage("so far sweeps run on the native engine and the interpreter");
    }
    let given = [("--load", args.load.is_some()), ("--save", args.save.is_some()), ("--report", args.report.is_some())];
    if let Some((option, _)) = given.iter().find(|(_, given)| *given) {
        return usage(&format!("`{option}` is for one run, and this is a sweep; `--sweep none` runs the model once"));
    }
    if output.is_some_and(|path| matches!(FileFormat::of(path), Ok(FileFormat::Csv))) {
        return usage(
            "a sweep has no table: write it as .npz, or as a directory of .npy files (a name that ends in /)",
        );
    }
    if args.plot.is_some() && axes > 2 {
        return usage(&format!(
            "a picture has one or two axes, and this sweep has {axes}: write it as .npz (`-o`), and leave out `--plot`"
        ));
    }
    Ok(())
}

/// So many runs are looked at before the first one; of more, those in which one axis has another value.
const LOOKED_AT: usize = 2000;
/// So many warnings of other runs than the first one are shown.
const WARNINGS: usize = 10;

/// Says what is wrong with a run: where it is right as it is written, the command line is at fault. A run of the file's own sweep is written, too.
fn blamed_in(
    sweep: &Sweep<'_>,
    args: &Args,
    run: usize,
    errors: &[Diagnostic],
    right: impl FnOnce(Draft) -> bool,
) -> Exit {
    let from_file = args.sweep.is_empty();
    let given = if from_file { sweep.options.clone() } else { sweep.options(run) };
    let draft = |written: &CompileOptions| match from_file {
        true => Sweep { options: written, ..*sweep }.draft(run),
        false => super::draft(sweep.checked, written),
    };
    blamed_where(sweep.checked, &given, errors, |written| draft(written).is_ok_and(right))
}

/// Looks at the values of the runs before any of them begins. Answers the first one.
fn look_at_all(sweep: &Sweep<'_>, args: &Args) -> Result<Draft, Exit> {
    let fail = |run: usize, errors: Vec<Diagnostic>| blamed_in(sweep, args, run, &errors, |_| true);
    // Values that do not go together.
    let apart = if args.sweep.is_empty() { Exit::Model } else { Exit::Usage };
    let runs = sweep.design.runs();
    let shape = sweep.design.shape();
    let looked_at: Vec<usize> = if runs <= LOOKED_AT {
        (0..runs).collect()
    } else {
        let along = |axis: usize| {
            let stride: usize = shape[axis + 1..].iter().product();
            (0..shape[axis]).map(move |k| k * stride)
        };
        (0..shape.len()).flat_map(along).chain([runs - 1]).collect()
    };
    let (mut first, mut of_first) = (None, None);
    let mut warnings: Vec<Diagnostic> = Vec::new();
    for run in looked_at {
        let (flat, extent, odd) = sweep.look(run).map_err(|errors| fail(run, errors))?;
        for d in odd {
            let known = |other: &Diagnostic| {
                (other.code, &other.message) == (d.code, &d.message) || other.labels == d.labels && other.code == d.code
            };
            if warnings.len() < WARNINGS && !warnings.iter().any(known) {
                warnings.push(d);
            }
        }
        let edges = simulate::recorded_edges(&flat, &extent);
        let sizes = (extent.cells, extent.grids);
        if *first.get_or_insert_with(|| sizes.clone()) != sizes {
            complain(format!("the run with {} has other numbers of cells than the first one", sweep.design.told(run)));
            say("help: the runs of a sweep have one shape; run the model once for each size");
            return Err(apart);
        }
        let of_first = of_first.get_or_insert_with(|| edges.clone());
        if let Some(((name, count), (_, before))) = edges.iter().zip(&*of_first).find(|(now, first)| now.1 != first.1) {
            complain(format!(
                "`{name}` is recorded of {count} edges in the run with {}, and of {before} in the first one: edges are drawn anew",
                sweep.design.told(run)
            ));
            say(
                "help: record something of cells instead, take a rule that draws as many edges for every seed (`fixed_in_degree`, \
                 `fixed_total_number`), or run the model once for each value",
            );
            return Err(apart);
        }
    }
    if !args.quiet {
        report(&sweep.checked.sources, &warnings);
    }
    sweep.draft(0).map_err(|errors| fail(0, sweep.told(0, errors)))
}

/// As many runs at once as there are threads, and as the memory allows.
fn crew(draft: &Draft, args: &Args, runs: usize, precision: crate::codegen::plan::Precision) -> Result<Crew, Exit> {
    let (cells, records) = draft.memory(precision, Backend::Native);
    // What a run has recorded, and what waits to be written.
    let each = cells + 3.0 * records;
    let most = memory::most().unwrap_or(f64::INFINITY).min(args.memory.unwrap_or(f64::INFINITY));
    let threads = args.engine.threads();
    let affordable = (most / each.max(1.0)).min(threads as f64) as usize;
    let at_once = affordable.clamp(1, threads.max(1)).min(runs);
    fits((cells * at_once as f64, 3.0 * records * at_once as f64), args.memory)?;
    Ok(Crew { runs: at_once, threads: Crew::new(threads, at_once).threads })
}

/// What is set, as files have it.
fn axes(design: &Design) -> Vec<SweptAxis> {
    let of = |(axis, set): (usize, &ode::Set)| SweptAxis {
        name: set.name.clone(),
        parameter: set.parameter.clone(),
        unit: set.unit.clone(),
        axis,
        values: set.values.clone(),
    };
    design.axes.iter().enumerate().flat_map(|(at, axis)| axis.sets.iter().map(move |set| (at, set))).map(of).collect()
}

/// The runs in words, before they begin.
fn announced(design: &Design, crew: Crew) -> String {
    let set = |set: &ode::Set| {
        let unit = if set.unit == "1" { String::new() } else { format!(" {}", set.unit) };
        let ends = set.values.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), &x| (l.min(x), h.max(x)));
        let values = plural(set.values.len(), "value");
        if ends.0 == ends.1 {
            return format!("{} = {}{unit}", set.name, ends.0);
        }
        format!("{values} of {} from {} to {}{unit}", set.name, ends.0, ends.1)
    };
    let axis = |axis: &ode::Axis| axis.sets.iter().map(set).collect::<Vec<_>>().join(" with ");
    let axes: Vec<String> = design.axes.iter().map(axis).collect();
    let at_once = if crew.runs > 1 { format!(", {} at once", crew.runs) } else { String::new() };
    format!("{}: {}{at_once}", plural(design.runs(), "run"), axes.join(" x "))
}
