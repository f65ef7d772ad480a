//! `neuroc fit`.

use super::progress::{Interrupt, spinner};
use super::settings::{EngineName, EngineSettings, ModelSettings, PassSettings, PrecisionName};
use super::{Exit, complain, deliver, memory, report, say};
use crate::diag::{self, Diagnostic};
use crate::driver::{Differentiable, Fitted};
use crate::fit::{self, Bounds, Method, Outcome, Search, Target, Watcher};
use crate::ode;
use crate::simulate::Records;
use crate::units;
use clap::ValueEnum;
use indicatif::ProgressBar;
use serde_json::json;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Find values of parameters with which a run comes nearest to recorded traces.
#[derive(Debug, Clone, clap::Args)]
#[command(
    after_help = "Example: neuroc fit examples/squid_fit.neuro --free Na.gbar=50..300mS/cm2 --free K.gbar=10..80mS/cm2 --target squid.soma.v=examples/data/squid_fit.csv -o squid.set\n         neuroc run examples/squid_fit.neuro --params squid.set\n\nA trace is a .csv or .npy file of two columns: the time in ms, and what the run records in the unit that it is shown in. It covers the\nsamples of its record. Ctrl-C ends the search and keeps the best values so far (exit code 130)."
)]
pub struct Args {
    /// A model file; - is standard input
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// A parameter that is free between two values, such as Na.gbar=50..300mS/cm2 (repeatable)
    #[arg(long, value_name = "NAME=LOW..HIGH", required = true)]
    free: Vec<String>,
    /// What the run records and a file with the trace to come near to, such as squid.soma.v=trace.csv (repeatable)
    #[arg(long, value_name = "NAME=FILE", required = true)]
    target: Vec<String>,
    /// How the best values are looked for
    #[arg(long, value_enum, default_value = "lbfgs")]
    search: SearchName,
    /// From how many places: the model's own values, and others drawn between the bounds by the seed of the run
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    starts: u32,
    /// Steps of the search from each place, at most
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u64).range(1..))]
    iterations: u64,
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

/// A parameter and its bounds, as they are written.
struct Free {
    name: String,
    low: ode::Override,
    high: ode::Override,
}

/// Fits a model.
pub fn run(args: &Args) -> Exit {
    run_or_say(args).unwrap_or_else(|exit| exit)
}

fn run_or_say(args: &Args) -> Result<Exit, Exit> {
    args.engine.check()?;
    suited(args)?;
    let free = args.free.iter().map(|text| read_free(text)).collect::<Result<Vec<_>, _>>()?;
    let named = args.target.iter().map(|text| read_target(text)).collect::<Result<Vec<_>, _>>()?;
    let output = args.output.clone().or_else(|| (!args.json).then(|| args.file.with_extension("set")));
    let output = output.map(|path| if path == Path::new("-.set") { "model.set".into() } else { path });
    let begin = Instant::now();
    let checked = super::check(&args.file);
    if checked.model.is_none() || !args.quiet {
        report(&checked.sources, &checked.diagnostics);
    }
    if checked.model.is_none() {
        return Err(Exit::Model);
    }
    let fail = |errors: Vec<Diagnostic>| {
        report(&checked.sources, &errors);
        Exit::of(&errors)
    };
    let options = args.settings.options(&args.opt, args.engine.precision(), args.engine.engine.backend())?;
    let names: Vec<String> = free.iter().map(|one| one.name.clone()).collect();
    let fitted = Differentiable::parameters(&checked, &options, &names).map_err(fail)?;
    let bounds = free.iter().zip(&fitted).map(|(free, one)| bounds(free, one)).collect::<Result<Vec<_>, _>>()?;
    // What the model demands of its parameters it demands of both bounds.
    let ends: [fn(&Bounds) -> f64; 2] = [|bounds| bounds.low, |bounds| bounds.high];
    for end in ends {
        let values: Vec<f64> = bounds.iter().map(end).collect();
        Differentiable::checked(&checked, &options, &fitted, &values).map_err(fail)?;
    }
    let first: Vec<f64> = bounds.iter().map(|b| (b.low + b.high) / 2.0).collect();
    let choice = || args.engine.choice();
    let budget = args.memory as u64;
    let made = Differentiable::new(&checked, &options, &fitted, &first, &choice, budget);
    let mut run = made.map_err(fail)?;
    let targets = targets(&run, &named).map_err(fail)?;
    let compile_s = begin.elapsed().as_secs_f64();
    matters(&mut run, &first, &targets)?;
    let search =
        Search { method: args.search.method(), starts: args.starts, iterations: args.iterations, seed: run.seed() };
    if !args.quiet {
        say(format!("going back keeps states in {} bytes at most", run.memory()));
    }
    let mut progress = Progress::new(&search, args.quiet);
    let begin = Instant::now();
    let outcome = fit::fit(&mut run, &bounds, &targets, &search, &mut progress).map_err(|error| {
        complain(error);
        Exit::Model
    })?;
    progress.bar.finish_and_clear();
    let run_s = begin.elapsed().as_secs_f64();
    let found = Found { run: &run, bounds: &bounds, targets: &targets, outcome: &outcome };
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

/// Refuses engines and numbers that gradients are not made for.
fn suited(args: &Args) -> Result<(), Exit> {
    match args.engine.engine {
        EngineName::Native | EngineName::Interp => {}
        #[cfg(feature = "xla")]
        EngineName::Xla => {
            complain("so far `fit` runs on the native engine and the interpreter");
            return Err(Exit::Usage);
        }
    }
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

/// Reads `name=low..high`; a unit behind the second number counts for both.
fn read_free(text: &str) -> Result<Free, Exit> {
    let wrong = |why: String| {
        complain(format!("`--free {text}` says no range: {why}"));
        say("help: write `--free NAME=LOW..HIGH`, for example `--free Na.gbar=50..300mS/cm2`");
        Exit::Usage
    };
    let (name, range) = text.split_once('=').ok_or_else(|| wrong("there is no `=`".into()))?;
    let (low, high) = range.split_once("..").ok_or_else(|| wrong("there is no `..` between two numbers".into()))?;
    let read = |end: &str| ode::parse_override(&format!("{name}={end}")).map_err(|d| wrong(d.message));
    let high = read(high)?;
    let low = match read(low)? {
        low if low.unit_text.is_empty() => read(&format!("{}{}", low.number, high.unit_text))?,
        low => low,
    };
    Ok(Free { name: name.trim().to_string(), low, high })
}

/// Reads `name=file`.
fn read_target(text: &str) -> Result<(String, PathBuf), Exit> {
    match text.split_once('=') {
        Some((name, file)) if !name.trim().is_empty() && !file.is_empty() => Ok((name.trim().into(), file.into())),
        Some(_) | None => {
            complain(format!("`--target {text}` names no record and file"));
            say("help: write `--target NAME=FILE`, for example `--target squid.soma.v=trace.csv`");
            Err(Exit::Usage)
        }
    }
}

/// The bounds of a parameter in canonical units.
fn bounds(free: &Free, one: &Fitted) -> Result<Bounds, Exit> {
    let end = |end: &ode::Override| {
        if end.unit.dim != one.dim {
            let (is, got) = (one.dim.describe(), end.unit.dim.describe());
            complain(format!("`{}` is {is}, but `{}{}` is {got}", one.name, end.number, end.unit_text));
            return Err(Exit::Usage);
        }
        end.unit.canonical(&end.number).filter(|x| x.is_finite()).ok_or_else(|| {
            complain(format!("`{}` is too large a number", end.number));
            Exit::Usage
        })
    };
    let bounds = Bounds { low: end(&free.low)?, high: end(&free.high)? };
    if bounds.low < bounds.high {
        return Ok(bounds);
    }
    let [low, high] = [bounds.low, bounds.high].map(|x| one.shown(x));
    complain(format!(
        "`{}` cannot lie between {low} and {high}: the first bound must be less than the second",
        one.name
    ));
    Err(Exit::Usage)
}

/// Reads the traces.
fn targets(run: &Differentiable, named: &[(String, PathBuf)]) -> Result<Vec<Target>, Vec<Diagnostic>> {
    let mut errors = Vec::new();
    let mut targets: Vec<Target> = Vec::new();
    for (name, path) in named {
        let found = fit::find_record(run.records(), name);
        let read = found.and_then(|record| Target::read(run.records(), record, path, &run.times()[record]));
        match read {
            Ok(target) if targets.iter().any(|other| other.record == target.record) => {
                let message = format!("`{name}` is a target twice");
                errors.push(Diagnostic::without_place(diag::Code::BadValue, message));
            }
            Ok(target) => targets.push(target),
            Err(error) => errors.push(error),
        }
    }
    if errors.is_empty() { Ok(targets) } else { Err(errors) }
}

/// Refuses parameters that no target depends on.
fn matters(run: &mut Differentiable, values: &[f64], targets: &[Target]) -> Result<(), Exit> {
    let idle = fit::idle(run, values, targets).map_err(|error| {
        complain(error);
        Exit::Model
    })?;
    let Some(first) = idle.first() else { return Ok(()) };
    complain(format!("no target depends on `{}`", run.fitted()[*first].name));
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
    run: &'a Differentiable,
    bounds: &'a [Bounds],
    targets: &'a [Target],
    outcome: &'a Outcome,
}

impl Found<'_> {
    /// `name=value` with its unit, one a line.
    fn settings(&self, args: &Args) -> String {
        let mut out = format!("# fitted by neuroc fit {}: loss {:e}\n", args.file.display(), self.outcome.loss);
        for (one, &x) in self.run.fitted().iter().zip(&self.outcome.values) {
            let _ = writeln!(out, "{}={}", one.name, one.shown(x));
        }
        out
    }

    fn table(&self) -> String {
        let heading = ["parameter", "value", "low", "high", "unit"].map(String::from);
        let mut rows = vec![heading];
        for ((one, bounds), &x) in self.run.fitted().iter().zip(self.bounds).zip(&self.outcome.values) {
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
            let _ = writeln!(out, "{name} is off by {}{unit} (root of the mean square)", short(off));
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
    fn off<'r>(&'r self, target: &Target, off: f64) -> (&'r str, &'r str, f64) {
        let records: &Records = self.run.records();
        let record = &records.series[target.record];
        (&record.name, &record.unit.name, units::scale(off, -record.unit.exponent))
    }

    fn json(&self, args: &Args, compile_s: f64, run_s: f64) -> serde_json::Value {
        let values = |values: &[f64]| {
            let value = |(one, &x): (&Fitted, &f64)| (one.name.clone(), json!(units::scale(x, -one.unit.exponent)));
            self.run.fitted().iter().zip(values).map(value).collect::<serde_json::Map<_, _>>()
        };
        let of_units = self.run.fitted().iter().map(|one| (one.name.clone(), json!(one.unit.name)));
        let starts = self.outcome.starts.iter().map(|start| {
            json!({ "from": values(&start.from), "values": values(&start.values), "loss": start.loss, "runs": start.runs })
        });
        let off = self.targets.iter().zip(&self.outcome.off).map(|(target, off)| {
            let (name, unit, off) = self.off(target, *off);
            (name.to_string(), json!({ "rms": off, "unit": unit }))
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
            "memory_bytes": self.run.memory(),
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
