//! Options that several commands share.

use super::{Exit, complain};
use crate::codegen::plan::Precision;
use crate::driver::{CompileOptions, FUSE, Passes};
use crate::engine::rustc::CompileOptions as RustcOptions;
use crate::hir::Method;
use crate::passes::OptLevel;
use crate::step::Tolerance;
use crate::units::{Dim, Unit};
use clap::{Args, ValueEnum};
use std::path::PathBuf;

/// Options that change what is integrated.
#[derive(Debug, Clone, Args)]
pub struct ModelSettings {
    /// Time step, such as 0.025ms
    #[arg(long, value_name = "TIME", value_parser = time, allow_hyphen_values = true)]
    pub dt: Option<f64>,
    /// Model time, such as 1s
    #[arg(long, value_name = "TIME", value_parser = time, allow_hyphen_values = true)]
    pub duration: Option<f64>,
    /// Integration method
    #[arg(long, value_name = "NAME", value_parser = method, help = format!("Integration method: {}", methods()))]
    pub method: Option<Method>,
    /// Key of all random numbers
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// Set a parameter, such as Na.gbar=100mS/cm2 or n=50 (repeatable)
    #[arg(long, value_name = "NAME=VALUE")]
    pub set: Vec<String>,
}

/// Options that change how it is compiled.
#[derive(Debug, Clone, Args)]
pub struct PassSettings {
    /// Optimization level: 0 or 2
    #[arg(short = 'O', value_name = "LEVEL", value_parser = level, default_value = "2")]
    pub level: OptLevel,
    /// Steps that one kernel call may take
    #[arg(long, value_name = "K", default_value_t = FUSE, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub fuse: u32,
    /// How accurate exponentials and logarithms are in f64
    #[arg(long, value_enum, default_value = "exact")]
    pub accuracy: AccuracyName,
    /// Tell on stderr what the accuracy means for this model: functions, degrees, errors
    #[arg(long)]
    pub explain: bool,
}

/// How accurate functions are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum AccuracyName {
    /// To the last places of the numbers
    Exact,
    /// Within 1e-9, relative: shorter polynomials
    #[value(name = "1e-9")]
    Nano,
    /// Within 1e-6, relative: shorter polynomials, and rates in f32 around states in f64. What f32 gives anyway
    #[value(name = "1e-6")]
    Micro,
}

impl AccuracyName {
    /// The tolerance of kernels in a precision. In f32 all functions are as accurate as f32 is, which is within 1e-6.
    fn tolerance(self, precision: PrecisionName) -> Result<Option<Tolerance>, Exit> {
        match (self, precision) {
            (AccuracyName::Exact, _) | (AccuracyName::Micro, PrecisionName::F32) => Ok(None),
            (AccuracyName::Nano, PrecisionName::F64) => Ok(Some(Tolerance::Nano)),
            (AccuracyName::Micro, PrecisionName::F64) => Ok(Some(Tolerance::Micro)),
            (AccuracyName::Nano, PrecisionName::F32) => {
                complain("`--precision f32` has seven digits; `--accuracy 1e-9` needs `--precision f64`");
                Err(Exit::Usage)
            }
        }
    }

    /// As it is written.
    pub fn name(self) -> &'static str {
        match self {
            AccuracyName::Exact => "exact",
            AccuracyName::Nano => Tolerance::Nano.name(),
            AccuracyName::Micro => Tolerance::Micro.name(),
        }
    }
}

/// What runs the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum EngineName {
    /// Generated Rust, compiled by rustc
    Native,
    /// The interpreter: slow, f64, needs no compiler
    Interp,
}

/// The numbers of the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum PrecisionName {
    /// 64 bits
    F64,
    /// 32 bits
    F32,
}

/// Options that change where it runs.
#[derive(Debug, Clone, Args)]
pub struct EngineSettings {
    /// What runs the program
    #[arg(long, value_enum, default_value = "native")]
    pub engine: EngineName,
    /// The numbers of the run
    #[arg(long, value_enum, default_value = "f64")]
    pub precision: PrecisionName,
    /// Threads; all processors by default
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=4096))]
    pub threads: Option<u32>,
    /// Directory for compiled kernels instead of the user's cache
    #[arg(long, value_name = "DIR")]
    pub cache: Option<PathBuf>,
}

impl PrecisionName {
    /// As the plan takes it.
    pub fn number_type(self) -> Precision {
        match self {
            PrecisionName::F64 => Precision::F64,
            PrecisionName::F32 => Precision::F32,
        }
    }
}

impl ModelSettings {
    /// As the driver takes them, for kernels in a precision. What does not go together has been said.
    pub fn options(&self, passes: &PassSettings, precision: PrecisionName) -> Result<CompileOptions, Exit> {
        Ok(CompileOptions {
            set: self.set.clone(),
            dt: self.dt,
            duration: self.duration,
            method: self.method,
            seed: self.seed,
            passes: Passes::Level(passes.level),
            fuse: passes.fuse,
            keep_all: false,
            tolerance: passes.accuracy.tolerance(precision)?,
        })
    }
}

impl EngineSettings {
    /// Threads to use.
    pub fn threads(&self) -> usize {
        self.threads.map_or_else(|| std::thread::available_parallelism().map_or(1, usize::from), |n| n as usize)
    }

    /// Where kernels are compiled.
    pub fn rustc(&self) -> RustcOptions {
        RustcOptions { cache: self.cache.clone(), ..RustcOptions::default() }
    }

    /// Refuses what does not go together.
    pub fn check(&self) -> Result<(), Exit> {
        if self.engine == EngineName::Interp && self.precision == PrecisionName::F32 {
            complain("the interpreter computes in f64 only; use `--engine native` for `--precision f32`");
            return Err(Exit::Usage);
        }
        Ok(())
    }
}

fn time(text: &str) -> Result<f64, String> {
    let at = text.find(|c: char| c.is_ascii_alphabetic() && c != 'e' && c != 'E').unwrap_or(text.len());
    let (number, unit) = (text[..at].trim(), text[at..].trim());
    let example = "write a time such as `0.025ms` or `1s`";
    if unit.is_empty() {
        return Err(format!("the unit is missing; {example}"));
    }
    let unit =
        Unit::parse(unit).filter(|u| u.dim == Dim::TIME).ok_or(format!("`{unit}` is no unit of time; {example}"))?;
    let value = number
        .parse::<f64>()
        .ok()
        .and_then(|_| unit.canonical(number))
        .ok_or(format!("`{number}` is not a number; {example}"))?;
    if value > 0.0 { Ok(value) } else { Err(format!("a time above zero is needed; {example}")) }
}

fn method(text: &str) -> Result<Method, String> {
    Method::named(text).ok_or_else(|| format!("the methods are {}", methods()))
}

fn methods() -> String {
    Method::ALL.iter().map(|m| m.1).collect::<Vec<_>>().join(", ")
}

fn level(text: &str) -> Result<OptLevel, String> {
    match text {
        "0" => Ok(OptLevel::O0),
        "2" => Ok(OptLevel::O2),
        _ => Err("the levels are 0 and 2".into()),
    }
}
