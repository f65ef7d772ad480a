//! `neuroc devices`.

use super::{Exit, deliver};
use crate::codegen::plan::Precision;
use serde_json::{Value, json};
use std::fmt::Write as _;

/// List engines, plugins and devices; install plugins.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLE)]
pub struct Args {
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Look at this plugin, and at no other
    #[cfg(feature = "xla")]
    #[arg(long, value_name = "PATH", conflicts_with = "install")]
    plugin: Option<std::path::PathBuf>,
    /// Fetch XLA's plugin for this kind of device with pip: cpu, cuda or tpu (repeatable)
    #[cfg(feature = "xla")]
    #[arg(long, value_name = "KIND", value_parser = xla::kind)]
    install: Vec<crate::plugins::Kind>,
}

const EXAMPLE: &str = if cfg!(feature = "xla") {
    "Example: neuroc devices\n         neuroc devices --install cpu"
} else {
    "Example: neuroc devices"
};

/// Lists what can run a model here, or installs plugins.
pub fn run(args: &Args) -> Exit {
    #[cfg(feature = "xla")]
    if !args.install.is_empty() {
        return xla::install(&args.install, args.json);
    }
    let native = Native::of_this_machine();
    #[cfg_attr(not(feature = "xla"), expect(unused_mut, reason = "XLA adds to it"))]
    let mut object = json!({
        "engines": [
            {"name": "native", "vectors": native.vectors, "lanes": native.lanes, "threads": native.threads,
             "processor": native.processor},
            {"name": "interp"},
        ],
    });
    let mut out = String::new();
    // Writing to a string cannot fail.
    let _ = native.print(&mut out);
    #[cfg(feature = "xla")]
    {
        let listing = match xla::Listing::new(args.plugin.as_deref()) {
            Ok(listing) => listing,
            Err(exit) => return exit,
        };
        listing.add_to(&mut object);
        let _ = listing.print(&mut out);
    }
    #[cfg(not(feature = "xla"))]
    {
        let _ = writeln!(out, "xla      not in this build of neuroc (cargo feature `xla`)");
    }
    deliver(&if args.json { format!("{object}\n") } else { out }, None)
}

/// What kernels of the native engine can use.
struct Native {
    processor: Option<String>,
    vectors: &'static str,
    lanes: Value,
    threads: Option<usize>,
}

impl Native {
    fn of_this_machine() -> Native {
        let info = std::fs::read_to_string("/proc/cpuinfo").ok();
        let name = info.as_deref().and_then(|info| {
            let line = info.lines().find(|line| line.starts_with("model name"))?;
            Some(line.split_once(':')?.1.trim().to_string())
        });
        Native {
            processor: name,
            vectors: vectors(),
            lanes: json!({"f64": Precision::F64.lanes(), "f32": Precision::F32.lanes()}),
            threads: std::thread::available_parallelism().ok().map(usize::from),
        }
    }

    fn print(&self, out: &mut String) -> std::fmt::Result {
        let processor = self.processor.as_deref().unwrap_or(std::env::consts::ARCH);
        let (f64, f32) = (Precision::F64.lanes(), Precision::F32.lanes());
        writeln!(
            out,
            "native   {processor}: {}, {f64} lanes of f64 or {f32} of f32{}",
            self.vectors,
            match self.threads {
                Some(1) => ", 1 thread".to_string(),
                Some(threads) => format!(", {threads} threads"),
                None => String::new(),
            }
        )?;
        writeln!(out, "interp   the reference, f64, 1 thread")
    }
}

/// The instructions that kernels compiled for this machine use, as the lanes of the runtime choose them.
fn vectors() -> &'static str {
    #[cfg(target_arch = "x86_64")]
    {
        if std::arch::is_x86_feature_detected!("avx512f") && std::arch::is_x86_feature_detected!("avx512dq") {
            return "AVX-512";
        }
        if std::arch::is_x86_feature_detected!("avx2") && std::arch::is_x86_feature_detected!("fma") {
            return "AVX2";
        }
    }
    "portable vectors"
}

/// What needs XLA.
#[cfg(feature = "xla")]
mod xla {
    use super::super::memory::told;
    use super::super::{Exit, complain, deliver, say};
    use crate::pjrt::{Client, Error, Plugin};
    use crate::plugins::{self, Found, Kind, Search, install};
    use serde_json::{Value, json};
    use std::fmt::Write as _;
    use std::path::{Path, PathBuf};

    pub fn kind(name: &str) -> Result<Kind, String> {
        let names = Kind::ALL.map(Kind::name).join(", ");
        Kind::of(name).ok_or_else(|| format!("there are plugins for {names}"))
    }

    /// Installs plugins and prints where they are.
    pub fn install(kinds: &[Kind], json: bool) -> Exit {
        let folder = match plugins::folder() {
            Ok(folder) => folder,
            Err(why) => {
                complain(format!("there is no folder for plugins: {why}"));
                return Exit::Model;
            }
        };
        let mut paths = serde_json::Map::new();
        let mut out = String::new();
        for &kind in kinds {
            let fetching = || say(format!("fetching XLA's plugin for {kind} devices"));
            match install::install(kind, &folder, fetching) {
                Ok(path) => {
                    let _ = writeln!(out, "{:<7}  {}", kind.name(), path.display());
                    paths.insert(kind.name().into(), Value::from(path.display().to_string()));
                }
                Err(error) => {
                    complain(error);
                    return Exit::Model;
                }
            }
        }
        deliver(&if json { format!("{}\n", json!({"installed": paths})) } else { out }, None)
    }

    /// Plugins and what they answer.
    pub struct Listing {
        plugins: Vec<Answer>,
        search: Option<Search>,
    }

    struct Answer {
        kind: Option<Kind>,
        path: PathBuf,
        plugin: Result<Plugin, Error>,
        /// If the plugin could be loaded.
        client: Option<Result<Client, Error>>,
    }

    impl Listing {
        /// Asks all plugins that are found, or the one that is named, which must be one.
        pub fn new(plugin: Option<&Path>) -> Result<Listing, Exit> {
            if let Some(path) = plugin {
                let plugin = Plugin::load(path).map_err(|error| {
                    complain(error);
                    Exit::Usage
                })?;
                let answer = Answer {
                    kind: None,
                    path: path.to_path_buf(),
                    client: Some(Client::new(&plugin, &[])),
                    plugin: Ok(plugin),
                };
                return Ok(Listing { plugins: vec![answer], search: None });
            }
            let search = Search::everywhere();
            let ask = |found: &Found| {
                let plugin = Plugin::load(&found.path);
                let client = plugin.as_ref().ok().map(|plugin| Client::new(plugin, found.kind.client_options()));
                Answer { kind: Some(found.kind), path: found.path.clone(), plugin, client }
            };
            Ok(Listing { plugins: search.found.iter().map(ask).collect(), search: Some(search) })
        }

        pub fn add_to(&self, object: &mut Value) {
            if let Some(engines) = object["engines"].as_array_mut() {
                engines.push(json!({"name": "xla"}));
            }
            let plugins = self.plugins.iter().map(|Answer { kind, path, plugin, client }| {
                let mut entry = json!({"kind": kind.map(Kind::name), "path": path.display().to_string()});
                match plugin {
                    Ok(plugin) => entry["pjrt"] = Value::from(plugin.version().to_string()),
                    Err(error) => entry["error"] = Value::from(error.to_string()),
                }
                match client {
                    Some(Ok(client)) => {
                        entry["platform"] = Value::from(client.platform_name());
                        entry["platform_version"] = Value::from(client.platform_version());
                        entry["devices"] = client.devices().iter().map(device).collect();
                    }
                    Some(Err(error)) => entry["error"] = Value::from(error.to_string()),
                    None => {}
                }
                entry
            });
            object["plugins"] = plugins.collect();
            object["places"] = (self.search.iter().flat_map(|search| &search.places))
                .map(|place| match &place.folder {
                    Ok(folder) => json!({"place": place.name, "folder": folder.display().to_string()}),
                    Err(why) => json!({"place": place.name, "skipped": why}),
                })
                .collect();
        }

        pub fn print(&self, out: &mut String) -> std::fmt::Result {
            if let Some(search) = self.search.as_ref().filter(|_| self.plugins.is_empty()) {
                writeln!(out, "xla      no plugin found; `neuroc devices --install cpu` fetches one (or cuda, tpu)")?;
                return search.looked().lines().try_for_each(|line| writeln!(out, "         {line}"));
            }
            for Answer { kind, path, plugin, client } in &self.plugins {
                let version = plugin.as_ref().map(|plugin| format!(" (PJRT {})", plugin.version())).unwrap_or_default();
                writeln!(out, "xla      {}{version}", path.display())?;
                match (plugin, client) {
                    (Ok(_), Some(Err(Error::NoDevice { text, .. }))) => {
                        writeln!(out, "         no device that it can use: {text}")?;
                    }
                    (Err(error), _) | (Ok(_), Some(Err(error))) => writeln!(out, "         {error}")?,
                    (Ok(_), Some(Ok(client))) => {
                        for device in client.devices() {
                            let memory = match device.memory_stats() {
                                Ok(Some(stats)) => {
                                    stats.limit.map(|limit| format!(", {}", told(limit as f64))).unwrap_or_default()
                                }
                                Ok(None) => String::new(),
                                Err(error) => format!(", {error}"),
                            };
                            let (platform, id) = (client.platform_name(), device.id());
                            writeln!(out, "         {platform}:{id}  {}{memory}", device.kind())?;
                        }
                    }
                    (Ok(_), None) => {}
                }
                if *kind == Some(Kind::Tpu) {
                    writeln!(out, "         it can compile for TPUs elsewhere")?;
                }
            }
            Ok(())
        }
    }

    fn device(device: &crate::pjrt::Device) -> Value {
        let mut entry = json!({"id": device.id(), "kind": device.kind(), "description": device.description()});
        match device.memory_stats() {
            Ok(Some(stats)) => {
                entry["memory"] =
                    json!({"bytes_in_use": stats.in_use, "peak_bytes_in_use": stats.peak, "bytes_limit": stats.limit});
            }
            Ok(None) => {}
            Err(error) => entry["error"] = Value::from(error.to_string()),
        }
        entry
    }
}
