//! `neuroc passes`.

use super::{Exit, deliver};
use crate::passes::{Backend, OptLevel, PASSES, pipeline};

/// List the passes.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example: neuroc passes")]
pub struct Args {}

/// Prints the table of passes and the pipelines.
pub fn run(_args: &Args) -> Exit {
    let width = PASSES.iter().map(|p| p.name.len()).max().unwrap_or(0);
    let mut out: String = PASSES.iter().map(|p| format!("{:<width$}  {}\n", p.name, p.sentence)).collect();
    let [native, xla] = [Backend::Native, Backend::Xla].map(|backend| pipeline(OptLevel::O2, backend).join(","));
    out.push_str(&format!("\n-O0: nothing\n-O2: {native}\n-O2 for XLA: {xla}\n"));
    deliver(&out, None)
}
