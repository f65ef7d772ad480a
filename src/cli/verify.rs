//! `neuroc verify`.

use super::run::{engine_of, plan_of};
#[cfg(feature = "xla")]
use super::settings::DeviceName;
use super::settings::{AccuracyName, EngineName, EngineSettings, ModelSettings, PassSettings, PrecisionName};
use super::{Exit, complain, deliver, report, say};
use crate::codegen::plan::Precision;
use crate::driver::{self, Checked, Compiled};
use crate::passes::OptLevel;
use crate::results::{RunResult, SpikeTrain};
use crate::simulate::{self, Ending, RunError, RunOptions, Unwatched};
use serde_json::json;
use std::fmt::Write;
use std::path::PathBuf;

/// Run a model on every engine at hand and compare.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example: neuroc verify examples/squid.neuro\n         neuroc verify examples/squid.neuro --duration 20ms --within 1e-9\n\nThe reference is the interpreter without passes, which is slow: take few cells and a short time."
)]
pub struct Args {
    /// A model file; - is standard input
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Fail (exit code 1) if double precision differs by more than this part of a variable's largest value, or in a spike
    #[arg(long, value_name = "PART", value_parser = part)]
    within: Option<f64>,
    /// Print one line of JSON on stdout
    #[arg(long)]
    json: bool,
    /// The numbers of the engines that are compared
    #[arg(long, value_enum, value_delimiter = ',', value_name = "A,B", default_values = ["f64", "f32"])]
    precision: Vec<PrecisionName>,
    /// The device of the XLA engine
    #[cfg(feature = "xla")]
    #[arg(long, value_enum, default_value = "cpu")]
    device: DeviceName,
    /// XLA's plugin for the device, a PJRT library, instead of one that is found
    #[cfg(feature = "xla")]
    #[arg(long, value_name = "FILE")]
    plugin: Option<PathBuf>,
    /// Directory for compiled kernels instead of the user's cache
    #[arg(long, value_name = "DIR")]
    cache: Option<PathBuf>,
    #[command(flatten)]
    settings: ModelSettings,
    #[command(flatten)]
    opt: PassSettings,
}

fn part(text: &str) -> Result<f64, String> {
    text.parse().ok().filter(|x| *x >= 0.0).ok_or_else(|| "a number from 0 on is needed, such as 1e-9".into())
}

/// How one engine differs from the reference.
struct Difference {
    engine: String,
    double: bool,
    /// For each recorded variable: the largest difference, as shown, and as part of the largest value.
    variables: Vec<(f64, f64)>,
    /// For each population whose spikes are recorded.
    spikes: Vec<Shift>,
}

/// How spikes differ.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Shift {
    /// The same number in every cell; how far the most distant pair is apart, in ms.
    By(f64),
    /// Not the same number in some cell: how many there are.
    Count(usize),
}

/// Runs and compares.
pub fn run(args: &Args) -> Exit {
    let checked = super::check(&args.file);
    report(&checked.sources, &checked.diagnostics);
    if checked.model.is_none() {
        return Exit::Model;
    }
    let exact = PassSettings { accuracy: AccuracyName::Exact, ..args.opt.clone() };
    let plain = PassSettings { level: OptLevel::O0, ..exact.clone() };
    let reference = match result(args, &checked, &plain, EngineName::Interp, PrecisionName::F64) {
        Ok(reference) => reference,
        Err(Problem::Said(exit)) => return exit,
        Err(Problem::Engine(error)) => {
            complain(error);
            return Exit::Model;
        }
    };
    let engines = [
        EngineName::Native,
        #[cfg(feature = "xla")]
        EngineName::Xla,
    ];
    let pairs = |&engine| args.precision.iter().map(move |&precision| (engine, precision));
    let stored = |(engine, precision): &(EngineName, PrecisionName)| match Precision::from(*precision) {
        Precision::F64 | Precision::F32 => true,
        Precision::Bf16 => *engine != EngineName::Native,
    };
    let mut differences = Vec::new();
    for (engine, precision) in engines.iter().flat_map(pairs).filter(stored) {
        let name = format!("{} {}", engine.name(), precision.name());
        // A tolerance is for native kernels in double precision.
        let opt = match (engine, precision) {
            (EngineName::Native, PrecisionName::F64) => &args.opt,
            (EngineName::Native | EngineName::Interp, _) => &exact,
            #[cfg(feature = "xla")]
            (EngineName::Xla, _) => &exact,
        };
        match result(args, &checked, opt, engine, precision) {
            Ok(result) => differences.push(difference(name, precision, &reference, &result)),
            Err(Problem::Said(exit)) => return exit,
            Err(Problem::Engine(error)) => say(format!("{name} is not at hand: {error}")),
        }
    }
    let printed = if args.json {
        deliver(&format!("{}\n", summary(&reference, &differences)), None)
    } else {
        deliver(&table(&reference, &differences), None)
    };
    if printed != Exit::Fine {
        return printed;
    }
    if differences.is_empty() {
        complain("no engine is at hand to be compared");
        return Exit::Model;
    }
    let Some(within) = args.within else { return Exit::Fine };
    let wrong = |d: &&Difference| {
        let shifted = d.spikes.iter().any(|shift| *shift != Shift::By(0.0));
        // A part that is not a number is wrong too.
        d.double && (shifted || d.variables.iter().any(|(_, part)| *part > within || part.is_nan()))
    };
    let wrong: Vec<&str> = differences.iter().filter(wrong).map(|d| d.engine.as_str()).collect();
    if wrong.is_empty() {
        return Exit::Fine;
    }
    complain(format!("{} differs by more than {within:e}", wrong.join(", ")));
    Exit::Model
}

/// Why there is no result.
enum Problem {
    /// It has been said.
    Said(Exit),
    /// The engine cannot run here.
    Engine(String),
}

fn result(
    args: &Args,
    checked: &Checked,
    opt: &PassSettings,
    engine: EngineName,
    precision: PrecisionName,
) -> Result<RunResult, Problem> {
    let fail = |errors: &[crate::diag::Diagnostic]| {
        report(&checked.sources, errors);
        Problem::Said(Exit::of(errors))
    };
    let settings = EngineSettings {
        engine,
        precision: Some(precision),
        #[cfg(feature = "xla")]
        device: Some(args.device),
        #[cfg(feature = "xla")]
        plugin: args.plugin.clone(),
        #[cfg(feature = "xla")]
        gather: None,
        #[cfg(feature = "xla")]
        unroll: None,
        threads: None,
        cache: args.cache.clone(),
    };
    let options = args.settings.options(opt, precision, engine.backend()).map_err(Problem::Said)?;
    let compiled: Compiled = driver::compile(checked, &options, &mut |_, _, _| {}).map_err(|e| fail(&e))?;
    let extent = simulate::extent(&compiled.ode).map_err(|e| fail(&e))?;
    let program = compiled.program.program();
    let setup = simulate::setup(&compiled.ode, program, &extent).map_err(|e| fail(&e))?;
    let mut ready = engine_of(&settings, &plan_of(&settings, &compiled, &setup), &compiled, &extent, &setup)
        .map_err(|error| Problem::Engine(error.to_string()))?;
    let options = RunOptions { window: opt.fuse, ..RunOptions::default() };
    let outcome = simulate::run(&compiled.ode, program, &extent, ready.engine.as_mut(), &options, &mut Unwatched);
    match outcome {
        Ok(outcome) => match outcome.ending {
            Ending::Done | Ending::Stopped => Ok(outcome.result),
            Ending::NotFinite(diagnostic) => Err(fail(&[*diagnostic])),
        },
        Err(RunError::Engine(error)) => Err(Problem::Engine(error.to_string())),
        Err(RunError::Model(errors)) => Err(fail(&errors)),
    }
}

fn difference(engine: String, precision: PrecisionName, reference: &RunResult, found: &RunResult) -> Difference {
    let variable = |(expected, found): (&crate::results::Series, &crate::results::Series)| {
        let (rows, columns) = expected.values.shape();
        let (mut largest, mut apart) = (0.0f64, 0.0f64);
        for (row, column) in (0..rows).flat_map(|row| (0..columns).map(move |column| (row, column))) {
            let (e, f) = (expected.values.get(row, column), found.values.get(row, column));
            largest = largest.max(e.abs());
            // `max` would lose a NaN.
            apart = if (e - f).abs() > apart || (e - f).is_nan() { (e - f).abs() } else { apart };
        }
        (apart, if apart == 0.0 { 0.0 } else { apart / largest })
    };
    Difference {
        engine,
        double: precision == PrecisionName::F64,
        variables: reference.series.iter().zip(&found.series).map(variable).collect(),
        spikes: reference.spikes.iter().zip(&found.spikes).map(|(e, f)| shift(e, f)).collect(),
    }
}

/// The spikes of each cell, one after the other, compared in pairs.
fn shift(expected: &SpikeTrain, found: &SpikeTrain) -> Shift {
    let sorted = |train: &SpikeTrain| {
        let mut spikes: Vec<(u64, f64)> = train.i.iter().copied().zip(train.t.iter().copied()).collect();
        spikes.sort_by(|a, b| a.0.cmp(&b.0).then(a.1.total_cmp(&b.1)));
        spikes
    };
    let (expected, found) = (sorted(expected), sorted(found));
    if expected.len() != found.len() || expected.iter().zip(&found).any(|(e, f)| e.0 != f.0) {
        return Shift::Count(found.len());
    }
    Shift::By(expected.iter().zip(&found).map(|(e, f)| (e.1 - f.1).abs()).fold(0.0, f64::max))
}

fn table(reference: &RunResult, differences: &[Difference]) -> String {
    let names: Vec<String> = reference.series.iter().map(|s| format!("{} ({})", s.name, s.unit)).collect();
    let trains: Vec<String> =
        reference.spikes.iter().map(|s| format!("spikes of {} ({}), ms", s.population, s.t.len())).collect();
    let width = names.iter().chain(&trains).map(|name| name.chars().count()).max().map_or(0, |w| w + 2);
    let mut out = String::from("largest difference from the interpreter without passes\n");
    // Writing to a string cannot fail.
    let _ = write!(out, "{:width$}", "");
    for d in differences {
        let _ = write!(out, "{:>14}", d.engine);
    }
    out.push('\n');
    for (at, name) in names.iter().enumerate() {
        let _ = write!(out, "{name:width$}");
        for d in differences {
            let _ = write!(out, "{:>14}", format!("{:.1e}", d.variables[at].0));
        }
        out.push('\n');
    }
    for (at, name) in trains.iter().enumerate() {
        let _ = write!(out, "{name:width$}");
        for d in differences {
            let shown = match d.spikes[at] {
                Shift::By(time) => format!("{time:.3}"),
                Shift::Count(count) => format!("{count} spikes"),
            };
            let _ = write!(out, "{shown:>14}");
        }
        out.push('\n');
    }
    out
}

fn summary(reference: &RunResult, differences: &[Difference]) -> serde_json::Value {
    let engines: Vec<_> = differences
        .iter()
        .map(|d| {
            let variables = reference.series.iter().zip(&d.variables);
            let spikes = reference.spikes.iter().zip(&d.spikes);
            json!({
                "engine": d.engine,
                "variables": variables.map(|(s, (apart, part))| json!({
                    "name": s.name, "unit": s.unit, "difference": apart, "part": part,
                })).collect::<Vec<_>>(),
                "spikes": spikes.map(|(s, shift)| match shift {
                    Shift::By(time) => json!({"population": s.population, "count": s.t.len(), "shift_ms": time}),
                    Shift::Count(count) => {
                        json!({"population": s.population, "count": count, "expected_count": s.t.len()})
                    }
                }).collect::<Vec<_>>(),
            })
        })
        .collect();
    json!({ "reference": "interp f64, no passes", "engines": engines })
}
