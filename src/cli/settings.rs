//! Options that several commands share.

use super::{Exit, complain, say};
use crate::codegen::plan::Precision;
#[cfg(feature = "xla")]
use crate::codegen::plan::{DeviceClass, GatherForm};
use crate::driver::{CompileOptions, EngineChoice, FUSE, GivenTolerances, Passes};
use crate::engine::EngineError;
use crate::engine::native::NativeOptions;
use crate::engine::rustc::CompileOptions as RustcOptions;
#[cfg(feature = "xla")]
use crate::engine::rustc::default_cache;
#[cfg(feature = "xla")]
use crate::engine::{executables::Compiler, xla::Forms};
use crate::hir::Method;
use crate::ode;
use crate::passes::{Backend, OptLevel};
#[cfg(feature = "xla")]
use crate::pjrt::{Client, Plugin};
#[cfg(feature = "xla")]
use crate::plugins::{Kind, Search};
use crate::runtime::order::Arrangement;
use crate::step::Tolerance;
use crate::train::Trained;
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
    /// Time from one sample to the next, in place of every `every` of the file
    #[arg(long, value_name = "TIME", value_parser = time, allow_hyphen_values = true)]
    pub every: Option<f64>,
    /// Integration method
    #[arg(long, value_name = "NAME", value_parser = method, help = format!("Integration method: {}", methods()))]
    pub method: Option<Method>,
    /// With adaptive steps: how far a state may be off in a step, in parts of its value
    #[arg(long, value_name = "X", value_parser = tolerance)]
    pub rtol: Option<f64>,
    /// With adaptive steps: the same in mV, or in parts of the largest value that a state has had
    #[arg(long, value_name = "X", value_parser = tolerance)]
    pub atol: Option<f64>,
    /// With adaptive steps: the longest step, such as 1ms
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub max_step: Option<f64>,
    /// Key of all random numbers
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// A file of settings, one a line, as `neuroc fit` writes them; --set comes after them
    #[arg(long, value_name = "FILE")]
    pub params: Option<PathBuf>,
    /// Weights and parameters that `neuroc train` has learnt; --params and --set come after them
    #[arg(long, value_name = "FILE")]
    pub trained: Option<PathBuf>,
    /// Set a parameter or an initial value, such as Na.gbar=100mS/cm2, n=50 or soma.v=-70mV (repeatable)
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
        match (self, precision == PrecisionName::F64) {
            (AccuracyName::Exact, _) | (AccuracyName::Micro, false) => Ok(None),
            (AccuracyName::Nano, true) => Ok(Some(Tolerance::Nano)),
            (AccuracyName::Micro, true) => Ok(Some(Tolerance::Micro)),
            (AccuracyName::Nano, false) => {
                let name = precision.name();
                complain(format!("`--precision {name}` has seven digits; `--accuracy 1e-9` needs `--precision f64`"));
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
    /// StableHLO, compiled and run by XLA on the device that --device or --plugin says
    #[cfg(feature = "xla")]
    Xla,
}

impl EngineName {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            EngineName::Native => "native",
            EngineName::Interp => "interp",
            #[cfg(feature = "xla")]
            EngineName::Xla => "xla",
        }
    }

    /// What the passes prepare a program for.
    pub fn backend(self) -> Backend {
        match self {
            EngineName::Native | EngineName::Interp => Backend::Native,
            #[cfg(feature = "xla")]
            EngineName::Xla => Backend::Xla,
        }
    }
}

/// The numbers of the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum PrecisionName {
    /// 64 bits
    F64,
    /// 32 bits
    F32,
    /// 32 bits; in 16 is kept what steps of an XLA device only read: cells' parameters, and voltages on their way along edges
    #[cfg(feature = "xla")]
    Bf16,
}

impl PrecisionName {
    /// Its name.
    pub fn name(self) -> &'static str {
        Precision::from(self).name()
    }

    /// Refuses what native code cannot store; `instead` says what can.
    pub fn for_native(self, instead: &str) -> Result<(), Exit> {
        match Precision::from(self) {
            Precision::F64 | Precision::F32 => Ok(()),
            Precision::Bf16 => {
                complain(format!("native code stores f64 or f32; `--precision bf16` is for {instead}"));
                Err(Exit::Usage)
            }
        }
    }
}

impl From<PrecisionName> for Precision {
    fn from(name: PrecisionName) -> Precision {
        match name {
            PrecisionName::F64 => Precision::F64,
            PrecisionName::F32 => Precision::F32,
            #[cfg(feature = "xla")]
            PrecisionName::Bf16 => Precision::Bf16,
        }
    }
}

/// The kinds of devices that XLA has plugins for.
#[cfg(feature = "xla")]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum DeviceName {
    /// This machine's processor
    #[default]
    Cpu,
    /// An NVIDIA GPU
    Cuda,
    /// A Google TPU
    Tpu,
}

#[cfg(feature = "xla")]
impl DeviceName {
    /// What plugins call it.
    pub fn kind(self) -> Kind {
        match self {
            DeviceName::Cpu => Kind::Cpu,
            DeviceName::Cuda => Kind::Cuda,
            DeviceName::Tpu => Kind::Tpu,
        }
    }

    /// What plans distinguish.
    pub fn class(self) -> DeviceClass {
        match self {
            DeviceName::Cpu => DeviceClass::Cpu,
            DeviceName::Cuda | DeviceName::Tpu => DeviceClass::Accelerator,
        }
    }
}

/// The forms of gathers.
#[cfg(feature = "xla")]
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum GatherName {
    /// A padded list of sources, gathered at once
    Padded,
    /// The same list, a gather for each of its rows
    Rows,
    /// Slabs of cells sorted by their number of edges, a gather for each row
    Slabs,
    /// Shifts of a lattice
    Shifts,
    /// Every cell with every other
    Pairs,
}

#[cfg(feature = "xla")]
impl GatherName {
    /// Which forms it means.
    fn means(self) -> fn(&GatherForm) -> bool {
        match self {
            GatherName::Padded => |form| matches!(form, GatherForm::Padded { .. }),
            GatherName::Rows => |form| matches!(form, GatherForm::Rows { .. }),
            GatherName::Slabs => |form| matches!(form, GatherForm::Slabs(_)),
            GatherName::Shifts => |form| matches!(form, GatherForm::Shifts(_)),
            GatherName::Pairs => |form| matches!(form, GatherForm::Pairs),
        }
    }
}

/// Options that change where it runs.
#[derive(Debug, Clone, Args)]
pub struct EngineSettings {
    /// What runs the program
    #[arg(long, value_enum, default_value = "native")]
    pub engine: EngineName,
    /// The numbers of the run: f64 unless an accelerator runs it (f32)
    #[arg(long, value_enum)]
    pub precision: Option<PrecisionName>,
    /// The device of the XLA engine; cpu by default
    #[cfg(feature = "xla")]
    #[arg(long, value_enum)]
    pub device: Option<DeviceName>,
    /// XLA's plugin for the device, a PJRT library, instead of one that is found
    #[cfg(feature = "xla")]
    #[arg(long, value_name = "FILE")]
    pub plugin: Option<PathBuf>,
    /// The form of the XLA engine's gathers along edges, instead of what suits the device; to measure
    #[cfg(feature = "xla")]
    #[arg(long, value_enum, hide = true)]
    pub gather: Option<GatherName>,
    /// Steps that the XLA engine puts in a straight line, instead of what suits the device; to measure
    #[cfg(feature = "xla")]
    #[arg(long, value_name = "K", hide = true, value_parser = clap::value_parser!(u32).range(1..=32))]
    pub unroll: Option<u32>,
    /// Threads of the native engine; all processors by default
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=4096))]
    pub threads: Option<u32>,
    /// Directory for compiled kernels instead of the user's cache
    #[arg(long, value_name = "DIR")]
    pub cache: Option<PathBuf>,
}

impl ModelSettings {
    /// All settings: those of the file, then those of the command line. What is wrong with the file has been said.
    pub fn all(&self) -> Result<Vec<String>, Exit> {
        let Some(path) = &self.params else { return Ok(self.set.clone()) };
        let text = std::fs::read_to_string(path).map_err(|error| {
            complain(format!("cannot read `{}`: {error}", path.display()));
            Exit::Usage
        })?;
        let lines = text.lines().map(str::trim).enumerate();
        let lines = lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
        let mut all = Vec::new();
        for (number, line) in lines {
            if let Err(wrong) = ode::parse_override(line) {
                complain(format!("{}:{}: {}", path.display(), number + 1, wrong.message));
                say("a file of parameters has a line for each, such as `Na.gbar = 100 mS/cm2`");
                return Err(Exit::Usage);
            }
            all.push(line.to_owned());
        }
        Ok([all, self.set.clone()].concat())
    }

    /// The files that they are read from.
    pub fn read(&self) -> impl Iterator<Item = &PathBuf> {
        self.params.iter().chain(&self.trained)
    }

    /// What results say about what has been learnt.
    pub fn trained_fact(&self) -> Option<(String, serde_json::Value)> {
        self.trained.as_ref().map(|path| ("trained".to_owned(), path.display().to_string().into()))
    }

    /// As the driver takes them, for a back end and a precision. What does not go together has been said.
    pub fn options(
        &self,
        passes: &PassSettings,
        precision: PrecisionName,
        backend: Backend,
    ) -> Result<CompileOptions, Exit> {
        let tolerance = passes.accuracy.tolerance(precision)?;
        if backend == Backend::Xla && passes.accuracy != AccuracyName::Exact {
            complain("`--accuracy` is for native kernels; XLA's functions have their own accuracy");
            return Err(Exit::Usage);
        }
        let trained = match &self.trained {
            Some(path) => Trained::read(path).map_err(|why| {
                complain(why);
                Exit::Usage
            })?,
            None => Trained::default(),
        };
        let mut set = trained.parameters;
        set.extend(self.all()?);
        Ok(CompileOptions {
            set,
            per_cell: trained.edges,
            dt: self.dt,
            duration: self.duration,
            every: self.every,
            method: self.method,
            tolerances: GivenTolerances { rtol: self.rtol, atol: self.atol, max_step: self.max_step },
            seed: self.seed,
            passes: Passes::Level(passes.level),
            backend,
            fuse: passes.fuse,
            keep_all: false,
            tolerance,
        })
    }
}

impl EngineSettings {
    /// The numbers of the run: what was asked for, or double precision where it is fast.
    pub fn precision(&self) -> PrecisionName {
        self.precision.unwrap_or(match self.engine {
            EngineName::Native | EngineName::Interp => PrecisionName::F64,
            #[cfg(feature = "xla")]
            EngineName::Xla => match self.device.unwrap_or_default() {
                DeviceName::Cpu => PrecisionName::F64,
                DeviceName::Cuda | DeviceName::Tpu => PrecisionName::F32,
            },
        })
    }

    /// The device that runs it.
    pub fn device(&self) -> &'static str {
        match self.engine {
            EngineName::Native | EngineName::Interp => "cpu",
            #[cfg(feature = "xla")]
            EngineName::Xla => self.device.unwrap_or_default().kind().name(),
        }
    }

    /// What runs it, as the driver takes it.
    pub fn choice(&self) -> Result<EngineChoice, EngineError> {
        Ok(match self.engine {
            EngineName::Interp => EngineChoice::Interp,
            EngineName::Native => EngineChoice::Native(self.native(self.threads())),
            #[cfg(feature = "xla")]
            EngineName::Xla => {
                let forms = Forms { gather: self.gather.map(GatherName::means), unroll: self.unroll };
                EngineChoice::Xla(self.compiler()?, forms)
            }
        })
    }

    /// How the native engine compiles and runs, with so many threads.
    pub fn native(&self, threads: usize) -> NativeOptions {
        let compile = RustcOptions { cache: self.cache.clone(), ..RustcOptions::default() };
        NativeOptions { threads, arrangement: Arrangement::default(), compile }
    }

    /// The device of the XLA engine, ready to be used.
    #[cfg(feature = "xla")]
    fn client(&self) -> Result<Client, EngineError> {
        let kind = self.device.unwrap_or_default().kind();
        let plugin = match &self.plugin {
            Some(path) => Plugin::load(path)?,
            None => Plugin::load(&Search::everywhere().plugin(kind).map_err(EngineError)?.path)?,
        };
        // What a plugin given by its path is for is known only if `--device` tells.
        let options = if self.plugin.is_some() && self.device.is_none() { &[] } else { kind.client_options() };
        Ok(Client::new(&plugin, options)?)
    }

    /// XLA's compiler for that device, with a cache where there is a folder for one.
    #[cfg(feature = "xla")]
    fn compiler(&self) -> Result<Compiler, EngineError> {
        let client = self.client()?;
        Ok(match self.cache.clone().map_or_else(default_cache, Ok) {
            Ok(cache) => Compiler::new(client, cache),
            Err(_) => client.into(),
        })
    }

    /// What compiles kernels.
    pub fn compiles(&self) -> &'static str {
        match self.engine {
            EngineName::Interp => "nobody",
            EngineName::Native => "rustc",
            #[cfg(feature = "xla")]
            EngineName::Xla => "XLA",
        }
    }

    /// Threads to use.
    pub fn threads(&self) -> usize {
        self.threads.map_or_else(|| std::thread::available_parallelism().map_or(1, usize::from), |n| n as usize)
    }

    /// Refuses what does not go together.
    pub fn check(&self) -> Result<(), Exit> {
        let precision = self.precision();
        match self.engine {
            EngineName::Interp if precision != PrecisionName::F64 => {
                let engine = if precision == PrecisionName::F32 { "native" } else { "xla" };
                let name = precision.name();
                complain(format!(
                    "the interpreter computes in f64 only; use `--engine {engine}` for `--precision {name}`"
                ));
                return Err(Exit::Usage);
            }
            EngineName::Native => precision.for_native("`--engine xla`")?,
            EngineName::Interp => {}
            #[cfg(feature = "xla")]
            EngineName::Xla => {}
        }
        #[cfg(feature = "xla")]
        if self.engine != EngineName::Xla && (self.device.is_some() || self.plugin.is_some()) {
            complain("`--device` and `--plugin` choose what the XLA engine runs on; add `--engine xla`");
            return Err(Exit::Usage);
        }
        #[cfg(feature = "xla")]
        super::there(self.plugin.as_deref())?;
        #[cfg(feature = "xla")]
        if self.engine != EngineName::Xla && (self.gather.is_some() || self.unroll.is_some()) {
            complain("`--gather` and `--unroll` choose what the XLA engine compiles; add `--engine xla`");
            return Err(Exit::Usage);
        }
        Ok(())
    }
}

pub(super) fn time(text: &str) -> Result<f64, String> {
    match moment(text) {
        Ok(value) if value > 0.0 => Ok(value),
        Ok(_) => Err("a time above zero is needed; write a time such as `0.025ms` or `1s`".into()),
        Err(error) => Err(error),
    }
}

/// A time that may be zero or negative, in ms.
pub(super) fn moment(text: &str) -> Result<f64, String> {
    let at = text.find(|c: char| c.is_alphabetic() && c != 'e' && c != 'E').unwrap_or(text.len());
    let (number, unit) = (text[..at].trim(), text[at..].trim());
    let example = "write a time such as `0.025ms` or `1s`";
    if unit.is_empty() {
        return Err(format!("the unit is missing; {example}"));
    }
    let unit =
        Unit::parse(unit).filter(|u| u.dim == Dim::TIME).ok_or(format!("`{unit}` is no unit of time; {example}"))?;
    number.parse::<f64>().map_err(|_| format!("`{number}` is not a number; {example}"))?;
    unit.canonical(number).ok_or(format!("`{number}` is too large a number; {example}"))
}

fn tolerance(text: &str) -> Result<f64, String> {
    let value = text.parse::<f64>().ok().filter(|x| *x > 0.0 && *x < 1.0);
    value.ok_or_else(|| "a number between 0 and 1 is needed, such as 1e-8".into())
}

pub(super) fn method(text: &str) -> Result<Method, String> {
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
