//! `neuroc emit`.

use super::settings::{ModelSettings, PassSettings, PrecisionName};
use super::{Exit, accuracy, blamed, complain, deliver, report, say};
use crate::codegen::plan::Precision;
use crate::driver::Passes;
use crate::stages::{self, Stage};
use crate::{passes, step};
use std::fmt::Write;
use std::path::PathBuf;

/// Print one stage of the compilation.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example: neuroc emit squid.neuro --stage ir-opt\n         neuroc emit squid.neuro --stage ir --passes fold,cse --print-ir-after all"
)]
pub struct Args {
    /// A model file; - is standard input
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// The stage
    #[arg(long, value_enum)]
    stage: Stage,
    /// Run these passes instead of the level's
    #[arg(long, value_delimiter = ',', value_name = "A,B")]
    passes: Option<Vec<String>>,
    /// Print the IR to stderr after this pass, or after all
    #[arg(long, value_name = "PASS|all")]
    print_ir_after: Option<String>,
    /// Print to stderr how long each pass takes
    #[arg(long)]
    time_passes: bool,
    /// Write here instead of to standard output
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// The numbers of the plan, the Rust and the StableHLO
    #[arg(long, value_enum, default_value = "f64")]
    precision: PrecisionName,
    #[command(flatten)]
    settings: ModelSettings,
    #[command(flatten)]
    opt: PassSettings,
}

/// Compiles as far as the stage and prints it.
pub fn run(args: &Args) -> Exit {
    let unknown = |name: &&String| passes::find(name).is_none();
    let after = args.print_ir_after.as_ref().filter(|after| *after != "all");
    if let Some(name) = args.passes.iter().flatten().chain(after).find(unknown) {
        complain(format!("there is no pass `{name}`; `neuroc passes` lists them"));
        return Exit::Usage;
    }
    if args.stage == Stage::Rust
        && let Err(exit) = args.precision.for_native("`--stage stablehlo`")
    {
        return exit;
    }
    let checked = super::check(&args.file);
    if let Err(exit) = super::spared(&checked, None, args.output.as_deref()) {
        return exit;
    }
    let mut options = match args.settings.options(&args.opt, args.precision, args.stage.backend()) {
        Ok(options) => options,
        Err(exit) => return exit,
    };
    if let Some(names) = &args.passes {
        options.passes = Passes::Named(names.clone());
    }
    let precision: Precision = args.precision.into();
    let mut times = String::new();
    let mut observer = |pass: &passes::Pass, program: &step::Program, took: std::time::Duration| {
        let _ = writeln!(times, "{:>9.3} ms  {}", took.as_secs_f64() * 1e3, pass.name);
        if args.print_ir_after.as_deref().is_some_and(|after| after == "all" || after == pass.name) {
            say(format!("// after {}\n{}", pass.name, step::print(program)));
        }
    };
    match stages::emit(&checked, args.stage, &options, precision, &mut observer) {
        Ok(emitted) => {
            report(&checked.sources, &emitted.diagnostics);
            if args.time_passes {
                say(times.trim_end());
            }
            match emitted.program.as_ref().filter(|_| args.opt.explain) {
                Some(program) => say(accuracy::explain(program.program(), args.opt.accuracy, args.precision)),
                None if args.opt.explain => say("this stage comes before passes, so that the accuracy does not matter"),
                None => {}
            }
            deliver(&emitted.text, args.output.as_deref())
        }
        Err(errors) => blamed(&checked, &options, &errors),
    }
}
