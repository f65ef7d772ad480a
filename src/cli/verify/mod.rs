//! `neuroc verify`: every engine against the interpreter without passes, and what no comparison of engines can see: smaller steps,
//! another method, states that are moved a little.
//!
//! In come arguments; out go a table with a verdict (or JSON) on stdout, and an exit code.
//! Never true here: a difference is judged; [`crate::compare`] does.

mod engines;
mod estimate;
mod extras;
mod json;
mod runs;
mod table;
mod words;

#[cfg(feature = "xla")]
use super::settings::DeviceName;
use super::settings::{AccuracyName, ModelSettings, PassSettings, PrecisionName, method};
use super::{Exit, complain, deliver};
use crate::compare::judge::{self, Judgement, Meeting};
use crate::compare::{Difference, Differences, Shift, differences};
use crate::hir::Method;
use crate::ode;
use crate::results::RunResult;
use engines::EngineColumn;
use extras::Extras;
use runs::{Ended, Runner};
use std::path::PathBuf;

/// Run a model on every engine at hand, with another method, smaller steps and states that are moved a little, and compare.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example: neuroc verify examples/squid.neuro\n         neuroc verify examples/squid.neuro --duration 20ms --within 1e-9\n\nEngines are compared with the interpreter without passes, which is slow: take few cells and a short time. What all engines share is tried natively in f64: the step is halved twice, another method takes these steps, and states are moved by 1e-9 of themselves now and then.\n\nThe exit code is 1 if the method does not converge to what the other one gives, if one of them lacks spikes of the other, if a run becomes NaN, or if --within says so. Any other error of the step is none of this."
)]
pub struct Args {
    /// A model file; - is standard input
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Fail (exit code 1) if an engine in double precision differs by more than this part of a variable's largest value, or in a spike
    #[arg(long, value_name = "PART", value_parser = part)]
    within: Option<f64>,
    /// The other method at smaller steps, instead of one that is chosen; adaptive is the converged solution of one cell or a small network
    #[arg(long, value_name = "NAME", value_parser = method)]
    other: Option<Method>,
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

/// A run beside the one that it is compared with.
struct Column {
    ended: Ended,
    /// Absent if the run did not come to its end.
    differences: Option<Differences>,
}

impl Column {
    fn new(base: &RunResult, ended: Ended) -> Column {
        let differences = ended.done().map(|found| differences(base, found));
        Column { ended, differences }
    }
}

/// All runs and what they mean.
struct Report {
    model: ode::Model,
    reference: RunResult,
    engines: Vec<EngineColumn>,
    /// Or why there are none.
    extras: Result<Extras, String>,
    judgements: Vec<Judgement>,
}

/// Runs and compares.
pub fn run(args: &Args) -> Exit {
    match verify(args) {
        Ok(report) => conclude(args, &report),
        Err(exit) => exit,
    }
}

fn verify(args: &Args) -> Result<Report, Exit> {
    if args.within.is_some() && !args.precision.contains(&PrecisionName::F64) {
        return Err(super::misused("`--within` is for engines in double precision: add f64 to `--precision`"));
    }
    let checked = super::check(&args.file);
    super::report(&checked.sources, &checked.diagnostics);
    let runner = Runner::new(args, &checked)?;
    if args.other == Some(runner.model.method) {
        return Err(super::misused(format!(
            "the model's own method is {0}: `--other {0}` compares nothing",
            runner.model.method.name()
        )));
    }
    let exact = PassSettings { accuracy: AccuracyName::Exact, ..args.opt.clone() };
    let reference = engines::reference(&runner, &exact)?;
    let mut engines = engines::engines(&runner, &exact, &reference)?;
    let mut extras = extras::extras(&runner, &exact, &reference, &engines)?;
    let mut judgements = Vec::new();
    if let Ok((tried, extras)) = &mut extras {
        judgements = judge::judge(&extras.runs(&runner.model));
        if judge::doubtful(&judgements) {
            extras.finest = tried.finest(extras)?;
            judgements = judge::judge(&extras.runs(&runner.model));
        }
        engines.iter_mut().for_each(|engine| engine.judge(&reference, &extras.runs(&runner.model)));
    }
    let extras = extras.map(|(_, extras)| extras);
    Ok(Report { model: runner.model.clone(), reference, engines, extras, judgements })
}

/// Does the method go elsewhere than another one?
fn apart(judgements: &[Judgement]) -> bool {
    judgements.iter().any(|j| matches!(j.method, Some(Meeting::Apart { .. })))
}

/// Does one of two methods lack spikes?
fn lacks_spikes(judgements: &[Judgement]) -> bool {
    judgements.iter().any(|j| matches!(j.method, Some(Meeting::Missing { .. })))
}

/// Prints the report and tells what is wrong.
fn conclude(args: &Args, report: &Report) -> Exit {
    let text = if args.json { format!("{}\n", json::summary(report)) } else { table::table(report) };
    let printed = deliver(&text, None);
    if printed != Exit::Fine {
        return printed;
    }
    if report.engines.is_empty() {
        complain("no engine is at hand to be compared");
        return Exit::Model;
    }
    let mut exit = Exit::Fine;
    if apart(&report.judgements) {
        complain(format!("{} does not converge to the solution of the model", report.model.method.name()));
        exit = Exit::Model;
    } else if lacks_spikes(&report.judgements) {
        complain("one method has spikes that the other one lacks");
        exit = Exit::Model;
    }
    let failed = report.engines.iter().any(|e| e.column.ended.failure().is_some());
    if failed || report.extras.as_ref().is_ok_and(Extras::failed) {
        exit = Exit::Model;
    }
    let Some(within) = args.within else { return exit };
    let wrong: Vec<&str> =
        report.engines.iter().filter(|e| e.double && beyond(e, within)).map(|e| e.name.as_str()).collect();
    if !wrong.is_empty() {
        complain(format!("{} differs by more than {within:e}", wrong.join(", ")));
        exit = Exit::Model;
    }
    exit
}

/// Does an engine differ by more than a part of the largest value, or in a spike?
fn beyond(engine: &EngineColumn, within: f64) -> bool {
    let Some(differences) = &engine.column.differences else { return true };
    let shifted = differences.spikes.iter().any(|shift| *shift != Shift::By(0.0));
    // A part that is not a number is wrong too.
    shifted || differences.variables.iter().any(|Difference { part, .. }| *part > within || part.is_nan())
}
