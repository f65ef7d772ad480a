//! `neuroc emit`.

use super::settings::{ModelSettings, PassSettings, PrecisionName};
use super::{Exit, complain, deliver, report, say};
use crate::codegen::plan::{self, PlanOptions, Precision};
use crate::codegen::rust;
use crate::driver::{self, Passes};
use crate::passes;
use crate::{hir, ode, step, syntax};
use clap::ValueEnum;
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
    /// The numbers of the plan and of the Rust
    #[arg(long, value_enum, default_value = "f64")]
    precision: PrecisionName,
    #[command(flatten)]
    settings: ModelSettings,
    #[command(flatten)]
    opt: PassSettings,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Stage {
    /// The syntax tree
    Ast,
    /// Names resolved, dimensions checked
    Hir,
    /// Differential equations
    Ode,
    /// The step IR
    Ir,
    /// The step IR after passes
    IrOpt,
    /// Decisions about code shape
    Plan,
    /// Rust kernels
    Rust,
}

/// Compiles as far as the stage and prints it.
pub fn run(args: &Args) -> Exit {
    let checked = super::check(&args.file);
    if let Stage::Ast = args.stage {
        let Some((id, file)) = checked.sources.files().next() else {
            report(&checked.sources, &checked.diagnostics);
            return Exit::Model;
        };
        let text = file.text.clone();
        let mut diagnostics = crate::diag::Diagnostics::default();
        let tree = syntax::parse(id, &text, &mut diagnostics);
        report(&checked.sources, &diagnostics.sorted());
        let exit = deliver(&format!("{tree:#?}\n"), args.output.as_deref());
        return if diagnostics.has_errors() { Exit::Model } else { exit };
    }
    report(&checked.sources, &checked.diagnostics);
    let Some(model) = &checked.model else { return Exit::Model };
    if let Stage::Hir = args.stage {
        return deliver(&hir::print(model), args.output.as_deref());
    }
    let mut options = args.settings.options(&args.opt);
    if let Some(names) = &args.passes {
        options.passes = Passes::Named(names.clone());
        if let Some(unknown) = names.iter().find(|n| passes::find(n).is_none()) {
            complain(format!("there is no pass `{unknown}`; `neuroc passes` lists them"));
            return Exit::Usage;
        }
    }
    if let Some(after) = &args.print_ir_after
        && after != "all"
        && passes::find(after).is_none()
    {
        complain(format!("there is no pass `{after}`; `neuroc passes` lists them"));
        return Exit::Usage;
    }
    if let Stage::Ode = args.stage {
        return match driver::flatten(model, &options) {
            Ok((flat, warnings)) => {
                report(&checked.sources, &warnings);
                deliver(&ode::print(&flat), args.output.as_deref())
            }
            Err(errors) => {
                report(&checked.sources, &errors);
                Exit::of(&errors)
            }
        };
    }
    let mut times = String::new();
    let mut observer = |pass: &passes::Pass, program: &step::Program, took: std::time::Duration| {
        let _ = writeln!(times, "{:>9.3} ms  {}", took.as_secs_f64() * 1e3, pass.name);
        if args.print_ir_after.as_deref().is_some_and(|after| after == "all" || after == pass.name) {
            say(format!("// after {}\n{}", pass.name, step::print(program)));
        }
    };
    let compiled = match driver::compile(&checked, &options, &mut observer) {
        Ok(compiled) => compiled,
        Err(errors) => {
            report(&checked.sources, &errors);
            return Exit::of(&errors);
        }
    };
    report(&checked.sources, &compiled.warnings);
    if args.time_passes {
        say(times.trim_end());
    }
    let precision = match args.precision {
        PrecisionName::F64 => Precision::F64,
        PrecisionName::F32 => Precision::F32,
    };
    let planned = || plan::plan(&compiled.program, &PlanOptions { precision, ..PlanOptions::default() });
    let text = match args.stage {
        // With passes named, the IR is printed as they leave it.
        Stage::Ir if args.passes.is_none() => step::print(compiled.plain.program()),
        Stage::Ir | Stage::IrOpt => step::print(compiled.program.program()),
        Stage::Plan => planned().to_string(),
        Stage::Rust => rust::kernel_files(&planned())
            .into_iter()
            .find(|f| f.path == "src/kernels.rs")
            .map_or_else(String::new, |f| f.text),
        Stage::Ast | Stage::Hir | Stage::Ode => String::new(),
    };
    deliver(&text, args.output.as_deref())
}
