//! `neuroc build`.

#[cfg(feature = "xla")]
use super::settings::DeviceName;
use super::settings::{ModelSettings, PassSettings, PrecisionName};
use super::{Exit, accuracy, blamed, blamed_drawing, complain, misused, report, say};
#[cfg(feature = "xla")]
use crate::artefact::File;
#[cfg(feature = "xla")]
use crate::codegen::plan::Plan;
use crate::codegen::rust::{self, InterfaceError, SourceFile};
use crate::diag::{Code, Diagnostic};
#[cfg(feature = "xla")]
use crate::driver::Experiment;
use crate::driver::{self, Draft};
#[cfg(feature = "xla")]
use crate::engine::EngineError;
use crate::engine::rustc::{self, CompileOptions as RustcOptions};
use crate::passes::Backend;
#[cfg(feature = "xla")]
use crate::pjrt::Plugin;
#[cfg(feature = "xla")]
use crate::plugins::{Kind, Search};
#[cfg(feature = "xla")]
use crate::tpu::{Job, Target};
use clap::ValueEnum;
use std::fs;
use std::path::{Path, PathBuf};

/// Write a Rust crate, a shared library, StableHLO or an executable for a TPU.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example: neuroc build examples/squid.neuro -o squid && cargo run --release --example run --manifest-path squid/Cargo.toml\n         neuroc build examples/squid.neuro -o lib --emit cdylib\n         neuroc build examples/squid.neuro -o tpu --target tpu:v5e:2x2"
)]
pub struct Args {
    /// A model file
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// The directory to write
    #[arg(short, long, value_name = "DIR")]
    output: PathBuf,
    /// What to write
    #[arg(long, value_enum, default_value = "crate")]
    emit: Artefact,
    /// Compile for TPUs, which need not be here: tpu:CHIP:TOPOLOGY, with v4, v5e, v5p or v6e as the chip. Writes the executables,
    /// what `--emit stablehlo` writes, and a report
    #[cfg(feature = "xla")]
    #[arg(long, value_name = "TARGET", value_parser = Target::parse, conflicts_with = "emit")]
    target: Option<Target>,
    /// The device that the modules of `--emit stablehlo` shall be fast on: the form of gathers and loops [default: cpu]
    #[cfg(feature = "xla")]
    #[arg(long, value_enum, conflicts_with = "target")]
    device: Option<DeviceName>,
    /// The libtpu to compile with, instead of one that is found (for --target)
    #[cfg(feature = "xla")]
    #[arg(long, value_name = "PATH", requires = "target")]
    plugin: Option<PathBuf>,
    /// The numbers of the kernels; bf16 is for --emit stablehlo and --target [default: f64; f32 with --target]
    #[arg(long, value_enum)]
    precision: Option<PrecisionName>,
    /// Directory for compiled kernels instead of the user's cache (for cdylib)
    #[arg(long, value_name = "DIR")]
    cache: Option<PathBuf>,
    #[command(flatten)]
    settings: ModelSettings,
    #[command(flatten)]
    opt: PassSettings,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Artefact {
    /// A Cargo crate without dependencies
    Crate,
    /// A shared library with a C header
    Cdylib,
    /// StableHLO modules, their inputs and a manifest
    #[cfg(feature = "xla")]
    Stablehlo,
}

/// Compiles and writes.
pub fn run(args: &Args) -> Exit {
    #[cfg(feature = "xla")]
    if args.device.is_some() && args.emit != Artefact::Stablehlo {
        complain("`--device` chooses what StableHLO is for; add `--emit stablehlo`");
        return Exit::Usage;
    }
    if args.backend() == Backend::Native
        && let Err(exit) = args.precision().for_native("`--emit stablehlo` and `--target`")
    {
        return exit;
    }
    let checked = super::check(&args.file);
    report(&checked.sources, &checked.diagnostics);
    if checked.model.is_none() {
        return Exit::of(&checked.diagnostics);
    }
    let fail = |errors: &[Diagnostic]| {
        report(&checked.sources, errors);
        Exit::of(errors)
    };
    let settings = match args.settings.options(&args.opt, args.precision(), args.backend()) {
        Ok(settings) => settings,
        Err(exit) => return exit,
    };
    let options = driver::CompileOptions { keep_all: true, ..settings };
    let compiled = match driver::compile(&checked, &options, &mut |_, _, _| {}) {
        Ok(compiled) => compiled,
        Err(errors) => return blamed(&checked, &options, &errors),
    };
    report(&checked.sources, &compiled.warnings);
    if args.opt.explain {
        say(accuracy::explain(compiled.program.program(), args.opt.accuracy, args.precision()));
    }
    let draft = match Draft::new(compiled) {
        Ok(draft) => draft,
        Err(errors) => return blamed(&checked, &options, &errors),
    };
    let experiment = match draft.experiment() {
        Ok(experiment) => experiment,
        Err(errors) => return blamed_drawing(&checked, &options, &errors),
    };
    report(&checked.sources, &experiment.warnings);
    let plan = match experiment.plan(args.precision().into()) {
        Ok(plan) => plan,
        Err(errors) => return fail(&errors),
    };
    #[cfg(feature = "xla")]
    if let Some(target) = &args.target {
        return executables(args, target, Job { experiment: &experiment, plan: &plan });
    }
    #[cfg(feature = "xla")]
    if args.emit == Artefact::Stablehlo {
        return modules(args, &experiment, &plan);
    }
    let interface = experiment.interface(checked.model.as_ref().map_or(&[][..], |m| &m.docs));
    let name = interface.crate_name.clone();
    let wiring = match experiment.wiring(&plan) {
        Ok(wiring) => wiring,
        Err(errors) => return fail(&errors),
    };
    let files = match rust::crate_files(&plan, &interface, &wiring) {
        Ok(files) => files,
        Err(InterfaceError::NotYet(what)) => return fail(&[Diagnostic::without_place(Code::Unsupported, what)]),
        Err(error @ InterfaceError::Misfit(_)) => {
            complain(format!("internal error: {error}"));
            return Exit::Bug;
        }
    };
    let written = match args.emit {
        Artefact::Crate => write(&args.output, &files),
        Artefact::Cdylib => {
            let options = RustcOptions { cache: args.cache.clone(), ..RustcOptions::default() };
            match rustc::compile(&files, &options) {
                Ok(compiled) => library(args, &name, &files, &compiled.library),
                Err(error) => {
                    complain(error);
                    return Exit::Model;
                }
            }
        }
        #[cfg(feature = "xla")]
        Artefact::Stablehlo => Ok(()), // written above
    };
    finish(args, written)
}

fn finish(args: &Args, written: Result<(), String>) -> Exit {
    match written {
        Ok(()) => {
            say(format!("wrote {}", args.output.display()));
            Exit::Fine
        }
        Err(message) => misused(message),
    }
}

impl Args {
    fn backend(&self) -> Backend {
        #[cfg(feature = "xla")]
        if self.target.is_some() {
            return Backend::Xla;
        }
        self.emit.backend()
    }

    fn precision(&self) -> PrecisionName {
        self.precision.unwrap_or(match (self.backend(), self.emit.backend()) {
            (Backend::Xla, Backend::Native) => PrecisionName::F32,
            (Backend::Native, _) | (Backend::Xla, Backend::Xla) => PrecisionName::F64,
        })
    }
}

/// Executables for a TPU, and the report.
#[cfg(feature = "xla")]
fn executables(args: &Args, target: &Target, job: Job) -> Exit {
    if let Err(exit) = super::there(args.plugin.as_deref()) {
        return exit;
    }
    let path = match &args.plugin {
        Some(path) => Ok(path.clone()),
        None => Search::everywhere().plugin(Kind::Tpu).map(|found| found.path.clone()),
    };
    let built = path
        .map_err(EngineError)
        .and_then(|path| Ok(Plugin::load(&path)?))
        .and_then(|plugin| job.build(&plugin, target));
    match built {
        Ok((files, report)) => {
            let written = place_all(&args.output, &files);
            if written.is_ok() {
                say(&report);
            }
            finish(args, written)
        }
        Err(error) => {
            complain(error);
            Exit::Model
        }
    }
}

#[cfg(feature = "xla")]
fn place_all(directory: &Path, files: &[File]) -> Result<(), String> {
    let names: Vec<&str> = files.iter().map(|file| file.name.as_str()).collect();
    replaceable(directory, &names, "manifest.json", "\"compiler\": \"neuroc ")?;
    fs::create_dir_all(directory).map_err(|e| format!("cannot create `{}`: {e}", directory.display()))?;
    files.iter().try_for_each(|file| place(&directory.join(&file.name), &file.bytes))
}

impl Artefact {
    fn backend(self) -> Backend {
        match self {
            Artefact::Crate | Artefact::Cdylib => Backend::Native,
            #[cfg(feature = "xla")]
            Artefact::Stablehlo => Backend::Xla,
        }
    }
}

/// Modules, manifest and inputs.
#[cfg(feature = "xla")]
fn modules(args: &Args, experiment: &Experiment, plan: &Plan) -> Exit {
    let files = match crate::artefact::files(experiment, plan, args.device.unwrap_or_default().class()) {
        Ok(files) => files,
        Err(error) => {
            complain(error);
            return Exit::Model;
        }
    };
    finish(args, place_all(&args.output, &files))
}

/// The library and its header.
fn library(args: &Args, name: &str, files: &[SourceFile], compiled: &Path) -> Result<(), String> {
    let bytes = fs::read(compiled).map_err(|e| format!("cannot read `{}`: {e}", compiled.display()))?;
    let file = format!("{}{name}{}", std::env::consts::DLL_PREFIX, std::env::consts::DLL_SUFFIX);
    let header = format!("include/{name}.h");
    let own = format!("{name}.h");
    replaceable(&args.output, &[&file, &own], &own, "/* Made by neuroc.")?;
    fs::create_dir_all(&args.output).map_err(|e| format!("cannot create `{}`: {e}", args.output.display()))?;
    place(&args.output.join(file), &bytes)?;
    match files.iter().find(|f| f.path == header) {
        Some(f) => place(&args.output.join(format!("{name}.h")), f.text.as_bytes()),
        None => Err("internal error: the crate has no header".into()),
    }
}

/// Writes a crate. A directory with other things in it is left alone.
fn write(directory: &Path, files: &[SourceFile]) -> Result<(), String> {
    let begins = |file: &str, what: &dyn Fn(&str) -> bool| {
        fs::read_to_string(directory.join(file)).is_ok_and(|text| text.lines().take(8).any(what))
    };
    let ours =
        begins("src/kernels.rs", &|line| line.starts_with("//! The kernels of `") && line.ends_with("made by neuroc."))
            && begins("Cargo.toml", &|line| line == "description = \"A neuron model, compiled by neuroc\"");
    let empty = match fs::read_dir(directory) {
        Ok(mut entries) => entries.next().is_none(),
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => true,
        Err(e) => return Err(format!("cannot write `{}`: {e}", directory.display())),
    };
    if !ours && !empty {
        return Err(format!(
            "`{}` is not empty and no crate that neuroc wrote; choose another directory",
            directory.display()
        ));
    }
    let paths: Vec<&str> = files.iter().map(|file| file.path.as_str()).collect();
    no_links(directory, &paths)?;
    for file in files {
        let path = directory.join(&file.path);
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent).map_err(|e| format!("cannot create `{}`: {e}", parent.display()))?;
        }
        place(&path, file.text.as_bytes())?;
    }
    Ok(())
}

/// Refuses to replace files of a directory, unless one of them (`mark`) says that neuroc made them.
fn replaceable(directory: &Path, files: &[&str], mark: &str, words: &str) -> Result<(), String> {
    no_links(directory, files)?;
    let there = files.iter().find(|file| directory.join(file).exists());
    let ours = || fs::read_to_string(directory.join(mark)).is_ok_and(|text| text.contains(words));
    match there {
        Some(file) if !ours() => Err(format!(
            "`{}` is there and was not made by neuroc; choose another directory",
            directory.join(file).display()
        )),
        Some(_) | None => Ok(()),
    }
}

/// Refuses links where files are going to be: they would be written to what they lead to.
fn no_links(directory: &Path, files: &[&str]) -> Result<(), String> {
    for file in files {
        let mut path = directory.to_path_buf();
        for part in Path::new(file) {
            path.push(part);
            if fs::symlink_metadata(&path).is_ok_and(|m| m.is_symlink()) {
                return Err(format!("`{}` is a link; choose another directory, or remove it", path.display()));
            }
        }
    }
    Ok(())
}

fn place(path: &Path, bytes: &[u8]) -> Result<(), String> {
    crate::results::replace_file(path, bytes).map_err(|e| format!("cannot write `{}`: {e}", path.display()))
}
