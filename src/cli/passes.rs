//! `neuroc passes`.

use super::{Exit, deliver};
use crate::passes::{OptLevel, PASSES, pipeline};

/// List the passes.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example: neuroc passes")]
pub struct Args {}

/// Prints the table of passes and the pipelines.
pub fn run(_args: &Args) -> Exit {
    let width = PASSES.iter().map(|p| p.name.len()).max().unwrap_or(0);
    let mut out: String = PASSES.iter().map(|p| format!("{:<width$}  {}\n", p.name, p.sentence)).collect();
    out.push_str(&format!("\n-O0: nothing\n-O2: {}\n", pipeline(OptLevel::O2).join(",")));
    deliver(&out, None)
}
