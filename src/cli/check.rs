//! `neuroc check`.

use super::Exit;
use crate::diag;
use clap::ValueEnum;
use std::path::PathBuf;

/// Check models.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example: neuroc check examples/squid.neuro\n         cat model.neuro | neuroc check - --message-format json"
)]
pub struct Args {
    /// Model files; - is standard input
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// How messages are written
    #[arg(long, value_enum, default_value = "human")]
    message_format: Format,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// For people, on stderr
    Human,
    /// One JSON object per line, on stdout
    Json,
}

/// Checks every file, also after a wrong one.
pub fn run(args: &Args) -> Exit {
    let mut exit = Exit::Fine;
    let mut written = Exit::Fine;
    for file in &args.files {
        let checked = crate::driver::check_whole(super::check(file));
        match args.message_format {
            Format::Human => super::report(&checked.sources, &checked.diagnostics),
            Format::Json => {
                let done = super::deliver(&diag::render_json(&checked.sources, &checked.diagnostics), None);
                written = if written == Exit::Fine { done } else { written };
            }
        }
        exit = exit.max(Exit::of(&checked.diagnostics));
    }
    exit.max(written)
}
