//! `neuroc fit`.

use super::progress::{Interrupt, spinner};
use super::settings::{EngineSettings, ModelSettings, PassSettings, PrecisionName};
use super::{Exit, blamed_where, complain, deliver, memory, report, say, writable};
use crate::data;
use crate::diag::{Code, Diagnostic};
use crate::driver::{self, CompileOptions, Differentiable, Fitted, Mode, Repeated, Ways};
use crate::fit::{self, Bounds, Method, Outcome, Runs, Search, Target, WHOLE, Watcher};
use crate::hir::{self, Feature, FitTarget, Goal, Swept, SweptNumber, SweptValues, Wanted};
use crate::ode;
use crate::units;
use clap::ValueEnum;
use indicatif::ProgressBar;
use serde_json::json;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

/// Find values of parameters with which a run comes nearest to recorded traces, or to numbers such as rates.
#[derive(Debug, Clone, clap::Args)]
#[command(
    after_help = "Example: neuroc fit examples/squid_fit.neuro --free Na.gbar=50..300mS/cm2 --free K.gbar=10..80mS/cm2 --target squid.axon.v=examples/data/squid_fit.csv -o squid.set\n         neuroc run examples/squid_fit.neuro --params squid.set\n\nA trace is a .csv or .npy file of two columns: the time in ms, and what the run records in the unit that it is shown in. It covers the\nsamples of its record. Ctrl-C ends the search and keeps the best values so far (exit code 130)."
)]
pub struct Args {
    /// A model file; - is standard input
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// A parameter that is free between two values, such as Na.gbar=50..300mS/cm2 (repeatable)
    #[arg(long, value_name = "NAME=LOW..HIGH")]
    free: Vec<String>,
    /// What the run records and a file with the trace to come near to, such as squid.soma.v=trace.csv; or a number that is read
    /// out of it, such as rate(squid)=40Hz; or what stands in a `fit` block, such as 'rate(squid) = 40 Hz from 20 ms within 2 Hz' or
    /// 'squid.soma.v = file("runs.csv", column = "second")' (repeatable)
    #[arg(long, value_name = "NAME=FILE")]
    target: Vec<String>,
    /// How the best values are looked for; lbfgs if neither this nor the file says it, nelder-mead where a target is a number
    #[arg(long, value_enum)]
    search: Option<SearchName>,
    /// From how many places: the model's own values, and others drawn between the bounds by the seed of the run; 1 if neither
    /// this nor the file says it
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    starts: Option<u32>,
    /// Steps of the search from each place, at most; 100 if neither this nor the file says it
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    iterations: Option<u64>,
    /// How gradients are found: back from the loss, which takes as long for any number of parameters, or forward beside the run,
    /// which keeps nothing; on XLA they go forward
    #[arg(long, value_enum, default_value = "auto")]
    mode: ModeName,
    /// Memory for the states that going back needs; where it is less than all of them take, steps are taken again
    #[arg(long, value_name = "SIZE", default_value = "1GB", value_parser = memory::size)]
    memory: f64,
    /// The best values, as `run --params` takes them; without this and --json: MODEL.set
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Print errors only
    #[arg(long)]
    quiet: bool,
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

/// How the best values are looked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum SearchName {
    /// With gradients: L-BFGS
    Lbfgs,
    /// Without gradients: the simplex of Nelder and Mead
    NelderMead,
}

impl SearchName {
    fn method(self) -> Method {
        match self {
            SearchName::Lbfgs => Method::Lbfgs,
            SearchName::NelderMead => Method::NelderMead,
        }
    }
}

/// How gradients are found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum ModeName {
    /// Forward for up to six parameters and on XLA, else back
    Auto,
    /// Back from the loss
    Reverse,
    /// Forward, beside the run
    Forward,
}

impl ModeName {
    fn mode(self) -> Mode {
        match self {
            ModeName::Auto => Mode::Auto,
            ModeName::Reverse => Mode::Reverse,
            ModeName::Forward => Mode::Forward,
        }
    }
}

/// Fits a model.
pub fn run(args: &Args) -> Exit {
    run_or_say(args).unwrap_or_else(|exit| exit)
}

fn run_or_say(args: &Args) -> Result<Exit, Exit> {
    args.engine.check()?;
    suited(args)?;
    let output = args.output.clone().or_else(|| (!args.json).then(|| args.file.with_extension("set")));
    let output = output.map(|path| if path == Path::new("-.set") { "model.set".into() } else { path });
    output.as_deref().map_or(Ok(()), writable)?;
    let begin = Instant::now();
    let checked = Arc::new(super::check(&args.file));
    if checked.model.is_none() || !args.quiet {
        report(&checked.sources, &checked.diagnostics);
    }
    let Some(model) = &checked.model else { return Err(Exit::of(&checked.diagnostics)) };
    let asked = Asked::new(args, model.fit.as_ref())?;
    // What it starts from may be replaced by what comes out of it, what it comes near to may not.
    let targets: Vec<PathBuf> = asked.targets.iter().filter_map(|target| file(&asked.directory, target)).collect();
    super::spared(&checked, targets.iter().map(PathBuf::as_path), output.as_deref())?;
    let fail = |errors: Vec<Diagnostic>| {
        report(&checked.sources, &errors);
        Exit::of(&errors)
    };
    let options = args.settings.options(&args.opt, args.engine.precision(), args.engine.engine.backend())?;
    let names: Vec<_> = asked.free.iter().map(|one| (one.name.clone(), one.span)).collect();
    // Bounds on the command line are settings, too.
    let given = CompileOptions { set: [&options.set[..], &args.free].concat(), ..options.clone() };
    let right = |written: &CompileOptions| {
        let within = || {
            let fitted = Differentiable::parameters(&checked, written, &names).ok()?;
            let bounds = bounds(&asked.free, &fitted).ok()?;
            Differentiable::within(&checked, written, &fitted, &ends(&bounds)).ok()
        };
        super::draft(&checked, written).is_ok_and(super::can_be_drawn) && (!args.free.is_empty() || within().is_some())
    };
    let blame = |errors: Vec<Diagnostic>| match errors.iter().any(|d| d.code == Code::Unsupported) {
        true => fail(errors),
        false => blamed_where(&checked, &given, &errors, right),
    };
    let fitted = Differentiable::parameters(&checked, &options, &names).map_err(blame)?;
    let bounds = bounds(&asked.free, &fitted).map_err(|errors| match errors.iter().all(|d| d.labels.is_empty()) {
        // What is wrong with the command line.
        true => {
            errors.iter().for_each(|d| complain(&d.message));
            Exit::Usage
        }
        false => fail(errors),
    })?;
    let warnings = Differentiable::within(&checked, &options, &fitted, &ends(&bounds)).map_err(blame)?;
    if !args.quiet {
        report(&checked.sources, &warnings);
    }
    let first: Vec<f64> = bounds.iter().map(|b| (b.low + b.high) / 2.0).collect();
    let choice = || args.engine.choice();
    let mut memory = 0;
    let (mut run, targets): (Box<dyn Runs>, Vec<Target>) = match asked.method {
        Method::Lbfgs => {
            let ways = Ways { mode: args.mode.mode(), memory: args.memory as u64 };
            let made = Differentiable::new(&checked, &options, &fitted, &first, &choice, ways);
            let mut run = made.map_err(blame)?;
            let targets = fit::targets(&asked.targets, &asked.directory, &run).map_err(fail)?;
            matters(&mut run, &bounds, &targets)?;
            memory = run.memory().unwrap_or(0);
            if !args.quiet {
                say(match run.memory() {
                    Some(bytes) => {
                        format!("gradients go back from the loss; that keeps states in {bytes} bytes at most")
                    }
                    None => "gradients go forward with the run, which keeps no states".into(),
                });
            }
            (Box::new(run), targets)
        }
        Method::NelderMead => {
            let run = Repeated::new(&checked, &options, &fitted, &first, Box::new(choice)).map_err(blame)?;
            let targets = fit::targets(&asked.targets, &asked.directory, &run).map_err(fail)?;
            (Box::new(run), targets)
        }
    };
    let compile_s = begin.elapsed().as_secs_f64();
    let Asked { method, starts, iterations, .. } = asked;
    let search = Search { method, starts, iterations, seed: run.outline().seed };
    let mut progress = Progress::new(&search, args.quiet);
    let begin = Instant::now();
    let outcome = fit::fit(run.as_mut(), &bounds, &targets, &search, &mut progress).map_err(|error| {
        complain(error);
        Exit::Model
    })?;
    progress.bar.finish_and_clear();
    let run_s = begin.elapsed().as_secs_f64();
    if let (Some(remark), false) = (outcome.remark(), args.quiet) {
        say(format!("warning: {remark}"));
    }
    let found = Found { run: run.as_ref(), bounds: &bounds, targets: &targets, outcome: &outcome, memory };
    if let Some(path) = &output {
        match deliver(&found.settings(args), Some(path)) {
            Exit::Fine => {}
            other => return Err(other),
        }
    }
    let written = if args.json {
        deliver(&format!("{}\n", found.json(args, compile_s, run_s)), None)
    } else {
        deliver(&found.table(), None)
    };
    if let (Some(path), false) = (&output, args.quiet) {
        say(format!(
            "wrote {}; `neuroc run {} --params {}` takes it",
            path.display(),
            args.file.display(),
            path.display()
        ));
    }
    Ok(if written == Exit::Fine && outcome.stopped { Exit::Stopped } else { written })
}

/// Refuses numbers that gradients are not made for.
fn suited(args: &Args) -> Result<(), Exit> {
    if args.engine.precision() != PrecisionName::F64 {
        complain("gradients are computed in f64; leave `--precision` out");
        return Err(Exit::Usage);
    }
    if args.opt.accuracy.name() != "exact" {
        complain("`fit` computes exactly; leave `--accuracy` out");
        return Err(Exit::Usage);
    }
    Ok(())
}

/// The bounds of free parameters, in canonical units.
fn bounds(free: &[Swept], fitted: &[Fitted]) -> Result<Vec<Bounds>, Vec<Diagnostic>> {
    let found = free.iter().zip(fitted).map(|(free, one)| one.range(free));
    let (bounds, errors): (Vec<_>, Vec<_>) = found.partition(Result::is_ok);
    let errors: Vec<Diagnostic> = errors.into_iter().filter_map(Result::err).collect();
    if !errors.is_empty() {
        return Err(errors);
    }
    Ok(bounds.into_iter().flatten().map(|(low, high)| Bounds { low, high }).collect())
}

fn ends(bounds: &[Bounds]) -> Vec<(f64, f64)> {
    bounds.iter().map(|b| (b.low, b.high)).collect()
}

/// What is fitted, and how: what the command line says, or else what the file says.
struct Asked {
    free: Vec<Swept>,
    targets: Vec<FitTarget>,
    /// To which files of traces are relative.
    directory: PathBuf,
    method: Method,
    starts: u32,
    iterations: u64,
}

impl Asked {
    fn new(args: &Args, block: Option<&hir::Fit>) -> Result<Asked, Exit> {
        let free = args.free.iter().map(|text| read_free(text)).collect::<Result<Vec<_>, _>>()?;
        let targets = args.target.iter().map(|text| read_target(text)).collect::<Result<Vec<_>, _>>()?;
        let free = if free.is_empty() { block.map_or_else(Vec::new, |block| block.free.clone()) } else { free };
        let (targets, directory) = match block {
            Some(block) if targets.is_empty() => (block.targets.clone(), block.directory.clone()),
            Some(_) | None => (targets, PathBuf::new()),
        };
        for (nothing, what, option) in [
            (free.is_empty(), "no parameter is free", "--free NAME=LOW..HIGH"),
            (targets.is_empty(), "there is nothing to come near to", "--target NAME=FILE"),
        ] {
            if nothing {
                complain(what);
                say(format!("help: write `{option}`, or a `fit` block in the model"));
                return Err(Exit::Usage);
            }
        }
        let number = targets.iter().any(|target| matches!(target.goal, Goal::Number { .. }));
        let method = args.search.map(SearchName::method).or(block.and_then(|block| block.search));
        // Numbers that are read out of a run have no gradients.
        let method = method.unwrap_or(if number { Method::NelderMead } else { Method::Lbfgs });
        if number && method == Method::Lbfgs {
            complain("`--search lbfgs` needs gradients, and a target is a number that is read out of a run");
            say("help: write `--search nelder-mead`");
            return Err(Exit::Usage);
        }
        Ok(Asked {
            free,
            targets,
            directory,
            method,
            starts: args.starts.or(block.and_then(|block| block.starts)).unwrap_or(1),
            iterations: args.iterations.or(block.and_then(|block| block.iterations)).unwrap_or(100),
        })
    }
}

/// Reads `name=low..high`; a unit behind the second number counts for both.
fn read_free(text: &str) -> Result<Swept, Exit> {
    let wrong = |why: String| {
        complain(format!("`--free {text}` says no range: {why}"));
        say("help: write `--free NAME=LOW..HIGH`, for example `--free Na.gbar=50..300mS/cm2`");
        Exit::Usage
    };
    let (name, range) = text.split_once('=').ok_or_else(|| wrong("there is no `=`".into()))?;
    let (low, high) = range.split_once("..").ok_or_else(|| wrong("there is no `..` between two numbers".into()))?;
    let read = |end: &str| {
        let read = ode::parse_override(&format!("{name}={end}")).map_err(|d| wrong(d.message))?;
        let unit = Some(read.unit_text).filter(|unit| !unit.is_empty());
        Ok(SweptNumber { number: read.number, unit, span: None })
    };
    let high = read(high)?;
    Ok(Swept { name: name.trim().to_string(), values: SweptValues::Range(read(low)?, high), span: None })
}

/// The file of a target that has one.
fn file(directory: &Path, target: &FitTarget) -> Option<PathBuf> {
    match &target.goal {
        Goal::Trace { file, .. } => Some(directory.join(file)),
        Goal::Number { value: Wanted::Each { file, .. }, .. } => Some(data::path(file)),
        Goal::Number { value: Wanted::Same(_), .. } => None,
    }
}

/// Reads `name=file`, `rate(name)=40Hz`, or the words of a `fit` block.
fn read_target(text: &str) -> Result<FitTarget, Exit> {
    let wrong = || {
        complain(format!("`--target {text}` names no record and file"));
        say(
            "help: write `--target NAME=FILE`, for example `--target squid.soma.v=trace.csv`, or a number that is read out of a run, `--target 'rate(squid)=40Hz'`",
        );
        Exit::Usage
    };
    let in_words = || {
        driver::fit_target(text).map_err(|checked| {
            report(&checked.sources, &checked.diagnostics);
            Exit::Usage
        })
    };
    let (name, value) = text.split_once('=').ok_or_else(wrong)?;
    let (name, value) = (name.trim(), value.trim());
    if name.is_empty() || value.is_empty() {
        return Err(wrong());
    }
    let trace = || {
        let goal = Goal::Trace { file: value.into(), column: None };
        Ok(FitTarget { of: name.into(), goal, span: None })
    };
    let quoted = value.starts_with('"') || value.starts_with("file(");
    let Some((feature, of)) = name.split_once('(').and_then(|(f, of)| Some((f.trim(), of.strip_suffix(')')?.trim())))
    else {
        return if quoted { in_words() } else { trace() };
    };
    let Some(known) = Feature::ALL.into_iter().find(|known| known.name() == feature) else {
        // A place in a section looks like it.
        if quoted {
            return in_words();
        }
        if value.parse::<f64>().is_err() && !value.starts_with(|c: char| c.is_ascii_digit() || c == '-') {
            return trace();
        }
        complain(format!("there is no `{feature}` that is read out of a run"));
        say(format!("help: there are {}", Feature::ALL.map(Feature::name).join(", ")));
        return Err(Exit::Usage);
    };
    // A number with a unit is all that need not be in the words of a file: `rate(squid)=40Hz`.
    let Ok(read) = ode::parse_override(&format!("x={value}")) else { return in_words() };
    let number = read.unit.canonical(&read.number).filter(|x| x.is_finite() && *x != 0.0);
    let Some(number) = number else {
        complain(format!("`--target {text}`: a tenth of it says nothing of how near is near"));
        say("help: say it: `--target 'max(a.v) = 0 mV within 1 mV'`");
        return Err(Exit::Usage);
    };
    let (value, dim) = (Wanted::Same(number), read.unit.dim);
    let goal = Goal::Number { feature: known, window: WHOLE, value, within: None, dim };
    Ok(FitTarget { of: of.into(), goal, span: None })
}

/// Refuses parameters that no target depends on.
fn matters(run: &mut Differentiable, bounds: &[Bounds], targets: &[Target]) -> Result<(), Exit> {
    let idle = fit::idle(run, bounds, targets).map_err(|error| {
        complain(error);
        Exit::Model
    })?;
    let Some(first) = idle.first() else { return Ok(()) };
    complain(format!("no target depends on `{}`", run.outline().fitted[*first].name));
    say("help: leave it out, or record something that it changes");
    Err(Exit::Usage)
}

/// A line on a terminal, nothing when piped; stops at Ctrl-C.
struct Progress {
    bar: ProgressBar,
    interrupt: Interrupt,
    starts: u32,
    quiet: bool,
    last: Option<(u32, u64, f64)>,
}

impl Progress {
    fn new(search: &Search, quiet: bool) -> Progress {
        let bar = spinner(quiet);
        Progress { bar, interrupt: Interrupt::catch(), starts: search.starts, quiet, last: None }
    }
}

impl Watcher for Progress {
    fn run(&mut self, start: u32, runs: u64, loss: f64) -> bool {
        if let Some((before, runs, loss)) = self.last
            && before != start
            && !self.quiet
        {
            self.bar
                .suspend(|| say(format!("start {} of {}: loss {loss:.4e} after {runs} runs", before + 1, self.starts)));
        }
        self.last = Some((start, runs, loss));
        self.bar.set_message(format!("start {} of {}, run {runs}: loss {loss:.4e}", start + 1, self.starts));
        !self.interrupt.pressed()
    }
}

/// What was found, for people and programs.
struct Found<'a> {
    run: &'a dyn Runs,
    bounds: &'a [Bounds],
    targets: &'a [Target],
    outcome: &'a Outcome,
    /// How many bytes of states are kept for going back.
    memory: u64,
}

impl Found<'_> {
    /// `name=value` with its unit, one a line.
    fn settings(&self, args: &Args) -> String {
        let mut out = format!("# fitted by neuroc fit {}: loss {:e}\n", args.file.display(), self.outcome.loss);
        for (one, &x) in self.run.outline().fitted.iter().zip(&self.outcome.values) {
            let _ = writeln!(out, "{}={}", one.name, one.shown(x));
        }
        out
    }

    fn table(&self) -> String {
        let heading = ["parameter", "value", "low", "high", "unit"].map(String::from);
        let mut rows = vec![heading];
        for ((one, bounds), &x) in self.run.outline().fitted.iter().zip(self.bounds).zip(&self.outcome.values) {
            let number = |x: f64| short(units::scale(x, -one.unit.exponent));
            let unit = if one.unit.name == "1" { String::new() } else { one.unit.name.clone() };
            rows.push([one.name.clone(), number(x), number(bounds.low), number(bounds.high), unit]);
        }
        let mut out = String::new();
        let width = |at: usize| rows.iter().map(|row| row[at].chars().count()).max().unwrap_or(0);
        let widths: Vec<usize> = (0..5).map(width).collect();
        for row in &rows {
            let [name, value, low, high, unit] = row;
            let line = format!(
                "{name:<a$}  {value:>b$}  {low:>c$}  {high:>d$}  {unit}",
                a = widths[0],
                b = widths[1],
                c = widths[2],
                d = widths[3]
            );
            let _ = writeln!(out, "{}", line.trim_end());
        }
        for (target, off) in self.targets.iter().zip(&self.outcome.off) {
            let (name, unit, off) = self.off(target, *off);
            let unit = if unit == "1" { String::new() } else { format!(" {unit}") };
            let _ = match off.is_finite() {
                true => writeln!(out, "{name} is off by {}{unit} (root of the mean square)", short(off)),
                false => writeln!(out, "{name} is not there, in one cell at least"),
            };
        }
        let runs: u64 = self.outcome.starts.iter().map(|start| start.runs).sum();
        let starts = self.outcome.starts.len();
        let _ = writeln!(
            out,
            "loss {:.4e} after {runs} runs from {starts} start{}",
            self.outcome.loss,
            if starts == 1 { "" } else { "s" }
        );
        out
    }

    /// The name and the unit of a target, and by how much the run is off it in that unit.
    fn off(&self, target: &Target, off: f64) -> (String, String, f64) {
        let (name, unit) = target.shown(&self.run.outline().records);
        (name, unit.name, units::scale(off, -unit.exponent))
    }

    fn json(&self, args: &Args, compile_s: f64, run_s: f64) -> serde_json::Value {
        let values = |values: &[f64]| {
            let value = |(one, &x): (&Fitted, &f64)| (one.name.clone(), json!(units::scale(x, -one.unit.exponent)));
            self.run.outline().fitted.iter().zip(values).map(value).collect::<serde_json::Map<_, _>>()
        };
        let of_units = self.run.outline().fitted.iter().map(|one| (one.name.clone(), json!(one.unit.name)));
        let starts = self.outcome.starts.iter().map(|start| {
            json!({
                "from": values(&start.from), "values": values(&start.values), "loss": start.loss, "runs": start.runs, "flat": start.flat,
            })
        });
        let off = self.targets.iter().zip(&self.outcome.off).map(|(target, off)| {
            let (name, unit, off) = self.off(target, *off);
            (name, json!({ "rms": off, "unit": unit }))
        });
        json!({
            "engine": args.engine.engine.name(),
            "values": values(&self.outcome.values),
            "units": of_units.collect::<serde_json::Map<_, _>>(),
            "loss": self.outcome.loss,
            "off": off.collect::<serde_json::Map<_, _>>(),
            "runs": self.outcome.starts.iter().map(|start| start.runs).sum::<u64>(),
            "starts": starts.collect::<Vec<_>>(),
            "stopped": self.outcome.stopped,
            "memory_bytes": self.memory,
            "compile_s": compile_s,
            "run_s": run_s,
        })
    }
}

/// A number with seven digits.
fn short(x: f64) -> String {
    let rounded: f64 = format!("{x:.6e}").parse().unwrap_or(x);
    if rounded != 0.0 && !(1e-4..1e7).contains(&rounded.abs()) { format!("{rounded:e}") } else { rounded.to_string() }
}
