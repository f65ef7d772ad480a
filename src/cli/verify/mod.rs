//! `neuroc verify`: every engine against the interpreter without passes, and what no comparison of engines can see: smaller steps,
//! another method, states that are moved a little.
//!
//! In come arguments; out go a table with a verdict (or JSON) on stdout, and an exit code.
//! Never true here: a difference is judged; [`crate::compare`] does.

mod estimate;
mod json;
mod runs;
mod table;
mod words;

#[cfg(feature = "xla")]
use super::settings::DeviceName;
use super::settings::{AccuracyName, EngineName, ModelSettings, PassSettings, PrecisionName};
use super::{Exit, complain, deliver, say};
use crate::codegen::plan::Precision;
use crate::compare::judge::{self, Judgement, Meeting};
use crate::compare::{Difference, Differences, Shift, differences};
use crate::diag::Diagnostic;
use crate::driver;
use crate::hir::Method;
use crate::ode::{self, noise_intervals};
use crate::passes::OptLevel;
use crate::results::RunResult;
use crate::step::{Tolerance, Value};
use runs::{Change, Ended, Job, Parts, Problem, Runner};
use std::path::PathBuf;

/// Run a model on every engine at hand, with another method, smaller steps and states that are moved a little, and compare.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example: neuroc verify examples/squid.neuro\n         neuroc verify examples/squid.neuro --duration 20ms --within 1e-9\n\nEngines are compared with the interpreter without passes, which is slow: take few cells and a short time. What all engines share is tried natively in f64: the step is halved twice, another method takes these steps, and states are moved by 1e-9 of themselves now and then.\n\nThe exit code is 1 if the method does not converge to what the other one gives, if a run becomes NaN, or if --within says so. An error of the step is none of this."
)]
pub struct Args {
    /// A model file; - is standard input
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Fail (exit code 1) if an engine in double precision differs by more than this part of a variable's largest value, or in a spike
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

/// An engine beside the reference.
struct EngineColumn {
    name: String,
    double: bool,
    /// What its functions may be off by, relative to their values.
    rounding: f64,
    column: Column,
    /// Absent if the run did not come to its end.
    judged: Option<judge::Engine>,
}

/// The model's own method, another one and moved states, on one engine.
struct Extras {
    /// The engine of all of them.
    engine: &'static str,
    base: RunResult,
    /// At a half and at a quarter of the step; or why not.
    halved: Result<[Column; 2], String>,
    /// With another method at the same steps; or why not.
    other: Result<(Method, [Column; 2]), String>,
    /// The model's own method and the other one at a sixteenth of the step, where there is doubt.
    finest: [Option<Ended>; 2],
    moved: Column,
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
    let checked = super::check(&args.file);
    super::report(&checked.sources, &checked.diagnostics);
    let runner = Runner::new(args, &checked)?;
    let exact = PassSettings { accuracy: AccuracyName::Exact, ..args.opt.clone() };
    let reference = reference(&runner, &exact)?;
    let mut engines = engines(&runner, &exact, &reference)?;
    let mut extras = extras(&runner, &exact, &reference, &engines)?;
    let mut judgements = Vec::new();
    if let Ok((tried, extras)) = &mut extras {
        judgements = judge::judge(&extras.runs(&runner.model));
        if judge::doubtful(&judgements) {
            extras.finest = tried.finest(extras)?;
            judgements = judge::judge(&extras.runs(&runner.model));
        }
        judge_engines(&mut engines, &reference, &extras.runs(&runner.model));
    }
    let extras = extras.map(|(_, extras)| extras);
    Ok(Report { model: runner.model.clone(), reference, engines, extras, judgements })
}

/// Does the method go elsewhere than another one?
fn apart(judgements: &[Judgement]) -> bool {
    judgements.iter().any(|j| matches!(j.method, Some(Meeting::Apart { .. })))
}

/// The interpreter without passes. A model that it cannot run is wrong.
fn reference(runner: &Runner, exact: &PassSettings) -> Result<RunResult, Exit> {
    let plain = PassSettings { level: OptLevel::O0, ..exact.clone() };
    let (engine, precision) = (EngineName::Interp, PrecisionName::F64);
    match runner.run(&Job { label: "the interpreter", engine, precision, passes: &plain, change: Change::None }) {
        Ok(Ended::Done(reference)) => Ok(reference),
        Ok(Ended::NotFinite(diagnostic)) => {
            tell(runner, &diagnostic);
            Err(Exit::Model)
        }
        Err(Problem::Said(exit)) => Err(exit),
        Err(Problem::Engine(error)) => {
            complain(error);
            Err(Exit::Model)
        }
    }
}

fn tell(runner: &Runner, diagnostic: &Diagnostic) {
    super::report(&runner.checked.sources, std::slice::from_ref(diagnostic));
}

/// Every engine at hand, in every precision that was asked for.
fn engines(runner: &Runner, exact: &PassSettings, reference: &RunResult) -> Result<Vec<EngineColumn>, Exit> {
    let args = runner.args;
    let engines = [
        EngineName::Native,
        #[cfg(feature = "xla")]
        EngineName::Xla,
    ];
    let mut columns = Vec::new();
    for engine in engines {
        // Why the engine is not at hand is the same in every precision.
        let mut said = String::new();
        for &precision in args.precision.iter().filter(|&&precision| stores(engine, precision)) {
            let name = format!("{} {}", engine.name(), precision.name());
            // A tolerance is for native kernels in double precision.
            let passes = match (engine, precision) {
                (EngineName::Native, PrecisionName::F64) => &args.opt,
                (EngineName::Native | EngineName::Interp, _) => exact,
                #[cfg(feature = "xla")]
                (EngineName::Xla, _) => exact,
            };
            let ended = match runner.run(&Job { label: &name, engine, precision, passes, change: Change::None }) {
                Ok(ended) => ended,
                Err(Problem::Said(exit)) => return Err(exit),
                Err(Problem::Engine(error)) => {
                    say(if said == error {
                        format!("{name} is not at hand either")
                    } else {
                        format!("{name} is not at hand: {error}")
                    });
                    said = error;
                    continue;
                }
            };
            if let Ended::NotFinite(diagnostic) = &ended {
                say(format!("{name}, unlike the interpreter without passes:"));
                tell(runner, diagnostic);
            }
            columns.push(EngineColumn {
                double: precision == PrecisionName::F64,
                rounding: rounding(precision, passes.accuracy),
                name,
                column: Column::new(reference, ended),
                judged: None,
            });
        }
    }
    Ok(columns)
}

fn stores(engine: EngineName, precision: PrecisionName) -> bool {
    match Precision::from(precision) {
        Precision::F64 | Precision::F32 => true,
        Precision::Bf16 => engine != EngineName::Native,
    }
}

/// What the functions of an engine may be off by, relative to their values, with a margin.
fn rounding(precision: PrecisionName, accuracy: AccuracyName) -> f64 {
    match (Precision::from(precision), accuracy) {
        (Precision::F64, AccuracyName::Exact) => 1e-12,
        (Precision::F64, AccuracyName::Nano) => Tolerance::Nano.bound(),
        (Precision::F64, AccuracyName::Micro) | (Precision::F32, _) => Tolerance::Micro.bound(),
        // Eight significant digits in the binary system.
        (Precision::Bf16, _) => 4e-3,
    }
}

fn judge_engines(engines: &mut [EngineColumn], reference: &RunResult, runs: &judge::Runs) {
    for e in engines {
        e.judged = e.column.ended.done().map(|found| judge::engine(reference, found, e.rounding, runs));
    }
}

/// What all engines share, tried on the native engine if it is at hand, or else on the interpreter.
fn extras<'a>(
    runner: &'a Runner<'a>,
    exact: &PassSettings,
    reference: &RunResult,
    engines: &[EngineColumn],
) -> Result<Result<(Tried<'a>, Extras), String>, Exit> {
    let native = Tried { runner, engine: EngineName::Native, passes: exact.clone() };
    let name = format!("{} {}", EngineName::Native.name(), PrecisionName::F64.name());
    let known = engines.iter().find(|e| e.name == name && runner.args.opt.accuracy == AccuracyName::Exact);
    let base = match known {
        Some(known) => match &known.column.ended {
            Ended::Done(result) => Ok(Ended::Done(result.clone())),
            Ended::NotFinite(diagnostic) => Ok(Ended::NotFinite(diagnostic.clone())),
        },
        None => native.run("native f64", Change::None),
    };
    match base {
        Ok(Ended::Done(base)) => native.extras(base).map(|extras| Ok((native, extras))),
        Ok(Ended::NotFinite(diagnostic)) => Ok(Err(format!("not tried, because natively {}", diagnostic.message))),
        Err(Problem::Said(exit)) => Err(exit),
        Err(Problem::Engine(_)) => {
            say("the native engine is not at hand, so the interpreter does the other runs, too");
            let passes = PassSettings { level: OptLevel::O0, ..exact.clone() };
            let interpreter = Tried { runner, engine: EngineName::Interp, passes };
            interpreter.extras(reference.clone()).map(|extras| Ok((interpreter, extras)))
        }
    }
}

/// The engine that the extra runs use, and its passes.
struct Tried<'a> {
    runner: &'a Runner<'a>,
    engine: EngineName,
    passes: PassSettings,
}

impl Tried<'_> {
    fn run(&self, label: &str, change: Change) -> Result<Ended, Problem> {
        let job = Job { label, engine: self.engine, precision: PrecisionName::F64, passes: &self.passes, change };
        self.runner.run(&job)
    }

    /// As [`Tried::run`]; the engine has run already.
    fn again(&self, label: &str, change: Change) -> Result<Ended, Exit> {
        self.run(label, change).map_err(|problem| match problem {
            Problem::Said(exit) => exit,
            Problem::Engine(error) => {
                complain(error);
                Exit::Model
            }
        })
    }

    fn extras(&self, base: RunResult) -> Result<Extras, Exit> {
        let own = self.runner.model.method;
        let moved = Column::new(&base, self.again("moved states", Change::Moved)?);
        let (halved, other) = match frequent_noise(&self.runner.model) {
            Some(why) => (Err(why.clone()), Err(why)),
            None => {
                let halved = self.at_smaller_steps(own, &base)?;
                let other = match halved.iter().any(|column| column.ended.failure().is_some()) {
                    true => Err("not tried, because the smaller steps fail".into()),
                    false => self.other(&base)?,
                };
                (Ok(halved), other)
            }
        };
        for column in halved.iter().flatten().chain([&moved]) {
            if let Ended::NotFinite(diagnostic) = &column.ended {
                tell(self.runner, diagnostic);
            }
        }
        Ok(Extras { engine: self.engine.name(), base, halved, other, finest: [None, None], moved })
    }

    fn at_smaller_steps(&self, method: Method, base: &RunResult) -> Result<[Column; 2], Exit> {
        let half = self.divided(method, Parts::Two)?;
        let quarter = self.divided(method, Parts::Four)?;
        Ok([half, quarter].map(|ended| Column::new(base, ended)))
    }

    fn divided(&self, method: Method, parts: Parts) -> Result<Ended, Exit> {
        let label = format!("{} at {} ms", method.name(), words::step(&self.runner.model, parts));
        self.again(&label, Change::Method(method, parts))
    }

    /// The method and the other one, if there is one, at the smallest step.
    fn finest(&self, extras: &Extras) -> Result<[Option<Ended>; 2], Exit> {
        let own = self.divided(self.runner.model.method, Parts::Sixteen)?;
        if let Ended::NotFinite(diagnostic) = &own {
            tell(self.runner, diagnostic);
        }
        let other = match &extras.other {
            Ok((method, _)) => Some(self.divided(*method, Parts::Sixteen)?),
            Err(_) => None,
        };
        Ok([Some(own), other])
    }

    /// The first other method that stays finite.
    fn other(&self, base: &RunResult) -> Result<Result<(Method, [Column; 2]), String>, Exit> {
        for &method in others(self.runner.model.method) {
            if !driver::integrates(method, &self.runner.model) {
                continue;
            }
            let columns = self.at_smaller_steps(method, base)?;
            if columns.iter().all(|column| column.ended.failure().is_none()) {
                return Ok(Ok((method, columns)));
            }
        }
        Ok(Err("no other method stays finite at these steps".into()))
    }
}

/// Methods to compare one with, the best first: accurate ones, and ones that share no formula with it.
fn others(method: Method) -> &'static [Method] {
    match method {
        Method::Euler => &[Method::Rk4, Method::Heun, Method::ExpEuler, Method::Cnexp],
        Method::ExpEuler => &[Method::Rk4, Method::Heun, Method::Euler, Method::Cnexp],
        Method::Cnexp => &[Method::Rk4, Method::Heun, Method::Euler, Method::ExpEuler],
        Method::Heun => &[Method::Rk4, Method::ExpEuler, Method::Cnexp, Method::Euler],
        Method::Rk4 => &[Method::Heun, Method::ExpEuler, Method::Cnexp, Method::Euler],
    }
}

/// Why runs with other steps see other noise, if they do.
fn frequent_noise(model: &ode::Model) -> Option<String> {
    noise_intervals(model).into_iter().find_map(|interval| match interval {
        Ok(Value::Real(every)) if every >= model.dt * (1.0 - 1e-6) => None,
        Ok(Value::Real(every)) => Some(format!(
            "not tried: noise is drawn anew every {} ms, within a step, so runs with smaller steps see other numbers",
            words::few(every)
        )),
        Ok(Value::Single(_) | Value::Mask(_)) | Err(_) => {
            Some("not tried: noise is drawn anew at intervals that are not known before the run".into())
        }
    })
}

impl Extras {
    /// As they are judged.
    fn runs<'r>(&'r self, model: &ode::Model) -> judge::Runs<'r> {
        fn both(columns: &[Column; 2]) -> Option<[&RunResult; 2]> {
            Some([columns[0].ended.done()?, columns[1].ended.done()?])
        }
        judge::Runs {
            dt: model.dt,
            duration: model.duration,
            base: &self.base,
            halved: self.halved.as_ref().ok().and_then(both),
            other: self.other.as_ref().ok().and_then(|(_, columns)| both(columns)),
            finest: self.finest[0].as_ref().and_then(Ended::done),
            finest_other: self.finest[1].as_ref().and_then(Ended::done),
            moved: self.moved.ended.done(),
        }
    }

    /// Runs of the model itself that did not come to their end.
    fn failed(&self) -> bool {
        let columns = self.halved.iter().flatten().chain([&self.moved]).map(|column| &column.ended);
        columns.chain(&self.finest[0]).any(|ended| ended.failure().is_some())
    }
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
