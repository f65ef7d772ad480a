//! What runs a model, and what watches a run.
//!
//! In come the words that Python says for engines; out go engines, and the news that somebody pressed Ctrl-C.
//! Never true here: another engine runs than was asked for; where nothing was asked for and rustc is missing, that is said.

#[cfg(feature = "xla")]
use crate::error;
use crate::error::usage;
#[cfg(feature = "xla")]
use neuroc::codegen::plan::DeviceClass;
use neuroc::codegen::plan::Precision;
use neuroc::driver::EngineChoice;
use neuroc::engine::native::NativeOptions;
use neuroc::engine::rustc::{self, CompileOptions as RustcOptions};
#[cfg(feature = "xla")]
use neuroc::engine::{executables::Compiler, xla::Forms};
use neuroc::passes::Backend;
#[cfg(feature = "xla")]
use neuroc::pjrt::{Client, Plugin};
#[cfg(feature = "xla")]
use neuroc::plugins::{Kind, Search};
use neuroc::runtime::order::Arrangement;
use neuroc::simulate::Watcher;
use neuroc::step::Tolerance;
use pyo3::call::PyCallArgs;
use pyo3::prelude::*;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, TryLockError};
use std::time::Instant;

/// What runs a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Engine {
    Native,
    Interp,
    #[cfg(feature = "xla")]
    Xla,
}

/// The options of a run that are about its engine.
pub struct Machine {
    pub engine: Engine,
    pub precision: Precision,
    pub tolerance: Option<Tolerance>,
    pub accuracy: &'static str,
    pub threads: usize,
    cache: Option<PathBuf>,
    #[cfg(feature = "xla")]
    device: Kind,
}

/// The options as they are said.
#[derive(Default)]
pub struct Said {
    pub engine: Option<String>,
    pub device: Option<String>,
    pub precision: Option<String>,
    pub accuracy: Option<String>,
    pub threads: Option<usize>,
    pub cache: Option<PathBuf>,
}

impl Engine {
    pub fn name(self) -> &'static str {
        match self {
            Engine::Native => "native",
            Engine::Interp => "interp",
            #[cfg(feature = "xla")]
            Engine::Xla => "xla",
        }
    }

    pub fn backend(self) -> Backend {
        match self {
            Engine::Native | Engine::Interp => Backend::Native,
            #[cfg(feature = "xla")]
            Engine::Xla => Backend::Xla,
        }
    }

    /// What runs the programs that the passes prepare for a back end.
    pub fn of(backend: Backend) -> PyResult<Engine> {
        match backend {
            Backend::Native => Ok(Engine::Native),
            Backend::Xla => Engine::named("xla"),
        }
    }

    fn named(name: &str) -> PyResult<Engine> {
        match name {
            "native" => Ok(Engine::Native),
            "interp" => Ok(Engine::Interp),
            #[cfg(feature = "xla")]
            "xla" => Ok(Engine::Xla),
            #[cfg(not(feature = "xla"))]
            "xla" => Err(usage(WITHOUT_XLA)),
            _ => {
                Err(usage(format!("there is no engine \"{name}\"; the engines are \"native\", \"xla\" and \"interp\"")))
            }
        }
    }

    /// The fastest that can run here, if it is not the native one with what that costs.
    fn at_hand() -> (Engine, Option<String>) {
        if rustc::is_there(&RustcOptions::default()) {
            return (Engine::Native, None);
        }
        let cure = "install Rust from https://rustup.rs for the native engine";
        #[cfg(feature = "xla")]
        if Search::everywhere().plugin(Kind::Cpu).is_ok() {
            let cost = "compiling takes some seconds longer, and runs several times as long";
            return (Engine::Xla, Some(format!("rustc is not in PATH, so XLA runs the model: {cost}; {cure}")));
        }
        let cost = "which takes hundreds of times as long";
        let other = if cfg!(feature = "xla") { ", or XLA with `pip install xla-cpu-pjrt`" } else { "" };
        (
            Engine::Interp,
            Some(format!("rustc is not in PATH, so the interpreter runs the model, {cost}; {cure}{other}")),
        )
    }
}

/// What a build without XLA says.
#[cfg(not(feature = "xla"))]
pub const WITHOUT_XLA: &str = "this build of neuroc has no XLA; install LLVM and MLIR 22 and build it with \
    `pip install . --config-settings=build-args=\"--features xla\"`";

impl Machine {
    /// What was asked for, and for what was not: the fastest engine at hand, in double precision on processors.
    pub fn new(said: Said) -> PyResult<Machine> {
        let (engine, warning) = match &said.engine {
            Some(name) => (Engine::named(name)?, None),
            None if said.device.is_some() => (Engine::named("xla")?, None),
            None => Engine::at_hand(),
        };
        #[cfg(feature = "xla")]
        let device = match said.device.as_deref() {
            None | Some("cpu") => Kind::Cpu,
            Some("cuda") => Kind::Cuda,
            Some("tpu") => Kind::Tpu,
            Some(name) => {
                return Err(usage(format!("there is no device \"{name}\"; they are \"cpu\", \"cuda\" and \"tpu\"")));
            }
        };
        #[cfg(feature = "xla")]
        let on_xla = engine == Engine::Xla;
        #[cfg(not(feature = "xla"))]
        let on_xla = false;
        if said.device.is_some() && !on_xla {
            return Err(usage("`device` is what the XLA engine runs on; add engine=\"xla\""));
        }
        #[cfg(feature = "xla")]
        let usual = if on_xla && device != Kind::Cpu { Precision::F32 } else { Precision::F64 };
        #[cfg(not(feature = "xla"))]
        let usual = Precision::F64;
        let precision = match said.precision.as_deref() {
            None => usual,
            Some("f64") => Precision::F64,
            Some("f32") => Precision::F32,
            Some("bf16") => Precision::Bf16,
            Some(name) => {
                return Err(usage(format!("there is no precision \"{name}\"; they are \"f64\", \"f32\" and \"bf16\"")));
            }
        };
        if engine == Engine::Interp && precision != Precision::F64 {
            let name = precision.name();
            return Err(usage(format!(
                "the interpreter computes in f64 only; take another engine for precision=\"{name}\""
            )));
        }
        if !on_xla && precision == Precision::Bf16 {
            let instead = "engine=\"xla\", or the stage \"stablehlo\"";
            return Err(usage(format!("native code stores f64 or f32; precision=\"bf16\" is for {instead}")));
        }
        let single = precision != Precision::F64;
        let (tolerance, accuracy) = match said.accuracy.as_deref() {
            None | Some("exact") => (None, "exact"),
            Some(_) if on_xla => return Err(usage("`accuracy` is for native kernels; XLA's functions have their own")),
            Some("1e-6") => ((!single).then_some(Tolerance::Micro), "1e-6"),
            Some("1e-9") if single => {
                return Err(usage("f32 has seven digits; accuracy=\"1e-9\" needs precision=\"f64\""));
            }
            Some("1e-9") => (Some(Tolerance::Nano), "1e-9"),
            Some(name) => {
                return Err(usage(format!(
                    "there is no accuracy \"{name}\"; they are \"exact\", \"1e-9\" and \"1e-6\""
                )));
            }
        };
        let threads = match said.threads {
            Some(0) => return Err(usage("a run needs a thread: threads=1")),
            Some(threads) if threads <= 4096 => threads,
            Some(threads) => return Err(usage(format!("{threads} threads are too many; take at most 4096"))),
            None => std::thread::available_parallelism().map_or(1, usize::from),
        };
        if let Some(warning) = warning {
            warn_once(&warning)?;
        }
        Ok(Machine {
            engine,
            precision,
            tolerance,
            accuracy,
            threads,
            cache: said.cache,
            #[cfg(feature = "xla")]
            device,
        })
    }

    /// What modules for other programs are made for.
    #[cfg(feature = "xla")]
    pub fn device_class(&self) -> DeviceClass {
        match self.device {
            Kind::Cpu => DeviceClass::Cpu,
            Kind::Cuda | Kind::Tpu => DeviceClass::Accelerator,
        }
    }

    /// What runs it, as the driver takes it.
    pub fn choice(&self) -> PyResult<EngineChoice> {
        Ok(match self.engine {
            Engine::Interp => EngineChoice::Interp,
            Engine::Native => {
                let compile = RustcOptions { cache: self.cache.clone(), ..RustcOptions::default() };
                let arrangement = Arrangement::default();
                EngineChoice::Native(NativeOptions { threads: self.threads, arrangement, compile })
            }
            #[cfg(feature = "xla")]
            Engine::Xla => {
                let search = Search::everywhere();
                let found = search.plugin(self.device).map_err(error::engine)?;
                let plugin = Plugin::load(&found.path).map_err(error::engine)?;
                let client = Client::new(&plugin, self.device.client_options()).map_err(error::engine)?;
                let cache = self.cache.clone().map_or_else(rustc::default_cache, Ok);
                let compiler = match cache {
                    Ok(cache) => Compiler::new(client, cache),
                    Err(_) => client.into(),
                };
                EngineChoice::Xla(compiler, Forms::default())
            }
        })
    }
}

/// Says, as Python's warning, which engine runs in place of the native one; once in a process.
fn warn_once(text: &str) -> PyResult<()> {
    static SAID: std::sync::Once = std::sync::Once::new();
    let mut result = Ok(());
    SAID.call_once(|| {
        result = Python::attach(|py| {
            let class = py.import("neuroc.errors")?.getattr("EngineWarning")?;
            py.import("warnings")?.call_method1("warn", (text, class, 2)).map(drop)
        });
    });
    result
}

/// Stops what takes long when a signal has come that Python makes an exception of, such as Ctrl-C; and tells a Python function how far it is.
pub struct Signals {
    last: Instant,
    /// The exception.
    pub error: Option<PyErr>,
    news: Option<Py<PyAny>>,
    /// How long a step and the whole of a run are, in ms: of runs the function is told the time that is done, and that of the whole.
    pub run: (f64, f64),
}

impl Signals {
    pub fn new(news: Option<Py<PyAny>>) -> Signals {
        Signals { last: Instant::now(), error: None, news, run: (f64::NAN, f64::NAN) }
    }

    /// Looks now and then, and whenever it `must`; the answer is whether to go on. What has come is not forgotten, however often somebody asks.
    pub fn look(&mut self, must: bool, told: impl for<'py> PyCallArgs<'py>) -> bool {
        if self.error.is_none() && (must || self.last.elapsed().as_millis() >= 50) {
            let news = &self.news;
            self.error = Python::attach(|py| {
                py.check_signals()?;
                news.as_ref().map_or(Ok(()), |function| function.call1(py, told).map(drop))
            })
            .err();
            self.last = Instant::now();
        }
        self.error.is_none()
    }
}

impl Watcher for Signals {
    fn step(&mut self, done: u64) -> bool {
        let (dt, whole) = self.run;
        self.look(false, (done as f64 * dt, whole))
    }
}

/// One thread at a time; `what` it is.
pub fn lock<'a, T>(mutex: &'a Mutex<T>, what: &str) -> PyResult<MutexGuard<'a, T>> {
    match mutex.try_lock() {
        Ok(guard) => Ok(guard),
        Err(TryLockError::Poisoned(_)) => Err(usage(format!("this {what} is broken after a bug; make a new one"))),
        Err(TryLockError::WouldBlock) => {
            Err(usage(format!("this {what} is being used by another thread; give each thread its own")))
        }
    }
}
