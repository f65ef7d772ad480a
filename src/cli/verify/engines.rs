//! The engines that `neuroc verify` compares.
//!
//! In comes a model; out go the results of the interpreter without passes and of every engine at hand.
//! Never true here: an engine is chosen for its speed.

use super::super::settings::{AccuracyName, EngineName, PassSettings, PrecisionName};
use super::super::{Exit, complain, say};
use super::Column;
use super::runs::{Change, Ended, Job, Problem, Runner};
use crate::codegen::plan::Precision;
use crate::compare::judge;
use crate::passes::OptLevel;
use crate::results::RunResult;
use crate::step::Tolerance;

/// An engine beside the reference.
pub struct EngineColumn {
    pub name: String,
    pub double: bool,
    /// What its functions may be off by, relative to their values.
    pub rounding: f64,
    pub column: Column,
    /// Absent if the run did not come to its end.
    pub judged: Option<judge::Engine>,
}

impl EngineColumn {
    /// Judges it by what other runs say.
    pub fn judge(&mut self, reference: &RunResult, runs: &judge::Runs) {
        self.judged = self.column.ended.done().map(|found| judge::engine(reference, found, self.rounding, runs));
    }
}

/// The interpreter without passes. A model that it cannot run is wrong.
pub fn reference(runner: &Runner, exact: &PassSettings) -> Result<RunResult, Exit> {
    let plain = PassSettings { level: OptLevel::O0, ..exact.clone() };
    let (engine, precision) = (EngineName::Interp, PrecisionName::F64);
    match runner.run(&Job { label: "the interpreter", engine, precision, passes: &plain, change: Change::None }) {
        Ok(Ended::Done(reference)) => Ok(reference),
        Ok(Ended::NotFinite(diagnostic)) => {
            runner.tell(&diagnostic);
            Err(Exit::Model)
        }
        Err(Problem::Said(exit)) => Err(exit),
        Err(Problem::Engine(error)) => {
            complain(error);
            Err(Exit::Model)
        }
    }
}

/// Every engine at hand, in every precision that was asked for.
pub fn engines(runner: &Runner, exact: &PassSettings, reference: &RunResult) -> Result<Vec<EngineColumn>, Exit> {
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
                runner.tell(diagnostic);
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

pub fn stores(engine: EngineName, precision: PrecisionName) -> bool {
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
