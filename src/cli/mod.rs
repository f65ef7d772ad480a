//! The command line: one file per subcommand.
//!
//! In come arguments; out go artefacts on stdout or in files, messages on stderr, and an exit code: 0 fine, 1 the model is
//! wrong, 2 the command line is wrong, 101 a bug of the compiler, 130 a run was stopped by Ctrl-C (or another request to end)
//! and what it had recorded was written.
//! Never true here: an environment variable changes what a model means.

mod accuracy;
mod bench;
mod build;
mod check;
mod devices;
mod emit;
mod explain;
mod fit;
mod fmt;
mod info;
mod lib_browser;
mod lsp;
pub mod memory;
mod opt;
mod passes;
mod plot;
mod progress;
mod run;
mod settings;
mod sweep;
mod train;
mod verify;

use crate::codegen::plan::Precision;
use crate::diag::{self, Diagnostic};
use crate::driver::{self, Checked, CompileOptions, Draft};
use crate::passes::Backend;
use crate::source::SourceMap;
use clap::{Parser, Subcommand};
use std::ffi::OsString;
use std::io::{IsTerminal, Read, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// How a command ended. Of two ends the one is told that stands later here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Exit {
    /// Fine.
    Fine,
    /// The command line is at fault, also where a file that it names is not there or not what it should be; it has been said.
    Usage,
    /// The model (or its data, or the machine) is at fault; it has been said.
    Model,
    /// The user stopped a run.
    Stopped,
    /// The compiler is at fault; it has been said.
    Bug,
}

impl Exit {
    /// After these messages. A wrong value or a file that is not there has a place in the model; where it has none, it was given
    /// on the command line.
    fn of(messages: &[Diagnostic]) -> Exit {
        use diag::Code::{
            AmbiguousParameter, BadValue, CannotRead, DimensionMismatch, DuplicateKey, UnknownParameter, UnknownUnit,
        };
        let given =
            [UnknownParameter, AmbiguousParameter, BadValue, CannotRead, DimensionMismatch, DuplicateKey, UnknownUnit];
        let mut errors = messages.iter().filter(|d| d.is_error()).peekable();
        if errors.peek().is_none() {
            Exit::Fine
        } else if errors.clone().any(|d| d.code == diag::Code::Internal) {
            Exit::Bug
        } else if errors.all(|d| d.labels.is_empty() && given.contains(&d.code)) {
            Exit::Usage
        } else {
            Exit::Model
        }
    }
}

impl Exit {
    /// The exit code.
    pub fn code(self) -> u8 {
        match self {
            Exit::Fine => 0,
            Exit::Model => 1,
            Exit::Usage => 2,
            Exit::Bug => 101,
            Exit::Stopped => 130,
        }
    }
}

#[derive(Debug, Parser)]
#[command(
    name = "neuroc",
    version,
    about = "A compiler for biophysical neuron models",
    after_help = "Example: neuroc run examples/squid.neuro --plot squid.svg"
)]
struct Cli {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Check models: syntax, names, units, semantics; all errors at once
    Check(check::Args),
    /// Compile and run a model
    Run(Box<run::Args>),
    /// Find values of parameters with which a run comes nearest to traces
    Fit(Box<fit::Args>),
    /// Let a network learn, as the `train` block of its model says
    Train(Box<train::Args>),
    /// Run a model on every engine and with other methods and steps; compare
    Verify(Box<verify::Args>),
    /// Write a Rust crate, a shared library or StableHLO
    Build(build::Args),
    /// Print one stage of the compilation
    Emit(emit::Args),
    /// Run passes on IR in text form
    Opt(opt::Args),
    /// List the passes
    Passes(passes::Args),
    /// Tell how large a model is: cells, their geometry, what they resist
    Info(info::Args),
    /// Explain a diagnostic code
    Explain(explain::Args),
    /// List engines, plugins and devices; install plugins
    Devices(devices::Args),
    /// Browse the standard library
    Lib(lib_browser::Args),
    /// Draw a result
    Plot(plot::Args),
    /// Format models
    Fmt(fmt::Args),
    /// Help editors while models are written: a language server on stdin and stdout
    Lsp(lsp::Args),
    /// Measure how fast a model runs
    Bench(Box<bench::Args>),
}

/// Runs the command line of this process.
pub fn main() -> ExitCode {
    ExitCode::from(run_line(std::env::args_os()).code())
}

/// Runs a command line, whose first word is the name of the program.
pub fn run_line(line: impl IntoIterator<Item = OsString>) -> Exit {
    let cli = match Cli::try_parse_from(line) {
        Ok(cli) => cli,
        Err(error) => {
            let _ = error.print();
            // Help and version are not errors.
            return if error.use_stderr() { Exit::Usage } else { Exit::Fine };
        }
    };
    std::panic::set_hook(Box::new(|info| {
        let _ = writeln!(
            std::io::stderr(),
            "neuroc: this is a bug of the compiler, not of your model: {info}\nPlease report it with the model file."
        );
    }));
    let outcome = std::panic::catch_unwind(|| match cli.verb {
        Verb::Check(args) => check::run(&args),
        Verb::Run(args) => run::run(&args),
        Verb::Fit(args) => fit::run(&args),
        Verb::Train(args) => train::run(&args),
        Verb::Verify(args) => verify::run(&args),
        Verb::Build(args) => build::run(&args),
        Verb::Emit(args) => emit::run(&args),
        Verb::Opt(args) => opt::run(&args),
        Verb::Passes(args) => passes::run(&args),
        Verb::Info(args) => info::run(&args),
        Verb::Explain(args) => explain::run(&args),
        Verb::Devices(args) => devices::run(&args),
        Verb::Lib(args) => lib_browser::run(&args),
        Verb::Plot(args) => plot::run(&args),
        Verb::Fmt(args) => fmt::run(&args),
        Verb::Lsp(args) => lsp::run(&args),
        Verb::Bench(args) => bench::run(&args),
    });
    outcome.unwrap_or(Exit::Bug)
}

/// Checks a file, or standard input for `-`.
fn check(path: &Path) -> Checked {
    if path != Path::new("-") {
        return driver::check_file(path);
    }
    let mut bytes = Vec::new();
    if let Err(error) = std::io::stdin().read_to_end(&mut bytes) {
        let d = Diagnostic::without_place(diag::Code::CannotRead, format!("cannot read standard input: {error}"));
        return Checked { sources: SourceMap::default(), model: None, diagnostics: vec![d] };
    }
    driver::check_bytes("<stdin>", Path::new(""), bytes)
}

/// Says what is wrong on the way to a draft with these options: where the model is right as it is written, the command line is at fault.
fn blamed(checked: &Checked, options: &CompileOptions, errors: &[Diagnostic]) -> Exit {
    report(&checked.sources, errors);
    match Exit::of(errors) {
        Exit::Model | Exit::Usage if checked.model.is_some() => at_fault(options, |w| draft(checked, w).is_ok()),
        exit => exit,
    }
}

/// The same of what goes wrong when files are read, edges drawn and parameters computed.
fn blamed_drawing(checked: &Checked, options: &CompileOptions, errors: &[Diagnostic]) -> Exit {
    blamed_where(checked, options, errors, |written| draft(checked, written).is_ok_and(can_be_drawn))
}

/// The same of anything else, unless it is the command line's in any case; `right` tells whether it goes well with the options of the model as it is
/// written.
fn blamed_where(
    checked: &Checked,
    options: &CompileOptions,
    errors: &[Diagnostic],
    right: impl FnOnce(&CompileOptions) -> bool,
) -> Exit {
    report(&checked.sources, errors);
    match Exit::of(errors) {
        Exit::Model if checked.model.is_some() => at_fault(options, right),
        exit => exit,
    }
}

fn at_fault(options: &CompileOptions, right: impl FnOnce(&CompileOptions) -> bool) -> Exit {
    let written = options.as_written();
    if written != *options && right(&written) { Exit::Usage } else { Exit::Model }
}

fn draft(checked: &Checked, options: &CompileOptions) -> Result<Draft, Vec<Diagnostic>> {
    driver::compile(checked, options, &mut |_, _, _| {}).and_then(Draft::new)
}

/// Do files, edges and parameters go well? Of what the machine has no memory for, nothing bad is known.
fn can_be_drawn(draft: Draft) -> bool {
    let (cells, _) = draft.memory(Precision::F64, Backend::Native);
    memory::most().is_some_and(|most| cells > most) || draft.experiment().is_ok()
}

/// Prints diagnostics for people.
fn report(sources: &SourceMap, diagnostics: &[Diagnostic]) {
    let color = std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none();
    let _ = std::io::stderr().write_all(diag::render_human(sources, diagnostics, color).as_bytes());
}

/// Prints a message. Where nobody can read it, it is lost.
fn say(message: impl std::fmt::Display) {
    let _ = writeln!(std::io::stderr(), "{}", diag::harmless(&message.to_string()));
}

/// Prints what is wrong.
fn complain(message: impl std::fmt::Display) {
    say(format!("error: {message}"));
}

/// Says what is wrong with what the command line asks for.
fn misused(error: impl std::fmt::Display) -> Exit {
    complain(error);
    Exit::Usage
}

/// Is there the plugin that the command line names?
#[cfg(feature = "xla")]
fn there(plugin: Option<&Path>) -> Result<(), Exit> {
    match plugin.filter(|path| !path.is_file()) {
        Some(path) => Err(misused(format!("there is no plugin `{}`", path.display()))),
        None => Ok(()),
    }
}

/// Before long work: can a file be written at all?
fn writable(path: &Path) -> Result<(), Exit> {
    crate::results::check_writable(path)
        .map_err(|reason| misused(format!("cannot write `{}`: {reason}", path.display())))
}

/// Before anything is written: is it to replace a file that the model, or what runs it, is read from? Results may be several files, or a directory.
fn spared<'p>(
    checked: &Checked,
    read: impl IntoIterator<Item = &'p Path>,
    written: impl IntoIterator<Item = &'p Path>,
) -> Result<(), Exit> {
    let read = read.into_iter().map(Path::to_path_buf);
    // What does not exist is not read.
    let known: Vec<PathBuf> = checked.files().into_iter().chain(read).filter_map(|p| p.canonicalize().ok()).collect();
    for path in written.into_iter().flat_map(crate::results::files) {
        let place = place(&path);
        if let Some(lost) = known.iter().find(|known| known.starts_with(&place)) {
            let lost = if *lost == place { "it".into() } else { format!("`{}`", lost.display()) };
            return Err(misused(format!(
                "cannot write `{}`: {lost} is read for this, and would be lost; choose another name",
                path.display()
            )));
        }
    }
    Ok(())
}

/// Is one of the outputs of a command to be written over another? With what each is, in the plural where it is.
fn apart(outputs: &[(&str, Option<&Path>)]) -> Result<(), Exit> {
    let files = outputs.iter().filter_map(|(what, path)| Some((what, (*path)?)));
    let all: Vec<(&str, PathBuf)> =
        files.flat_map(|(what, path)| crate::results::files(path).into_iter().map(move |file| (*what, file))).collect();
    for (at, (what, path)) in all.iter().enumerate() {
        let within = |other: &PathBuf| place(path).starts_with(place(other)) || place(other).starts_with(place(path));
        if let Some((other, _)) = all[..at].iter().find(|(other, path)| other != what && within(path)) {
            let shown = path.display();
            return Err(misused(format!("{other} and {what} cannot both be written to `{shown}`")));
        }
    }
    Ok(())
}

/// Where a path leads, whether or not something is there.
fn place(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| {
        let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let parent = parent.canonicalize().unwrap_or_else(|_| parent.to_path_buf());
        path.file_name().map_or(parent.clone(), |name| parent.join(name))
    })
}

/// Writes an artefact to a file, all of it or nothing, or to stdout, which `-` is, too. A closed pipe is not an error.
fn deliver(text: &str, file: Option<&Path>) -> Exit {
    let file = file.filter(|path| *path != Path::new("-"));
    if let Some(Err(exit)) = file.map(writable) {
        return exit;
    }
    let written = match file {
        Some(path) => crate::results::replace_file(path, text.as_bytes())
            .map_err(|reason| format!("cannot write `{}`: {reason}", path.display())),
        None => match std::io::stdout().write_all(text.as_bytes()).and_then(|()| std::io::stdout().flush()) {
            Err(e) if e.kind() != std::io::ErrorKind::BrokenPipe => Err(format!("cannot write to stdout: {e}")),
            Ok(()) | Err(_) => Ok(()),
        },
    };
    match written {
        Ok(()) => Exit::Fine,
        Err(message) => {
            complain(message);
            Exit::Model
        }
    }
}
