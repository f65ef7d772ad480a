//! `neuroc fmt`.

use super::{Exit, deliver, misused, report, say};
use crate::diag::Diagnostics;
use crate::source::SourceMap;
use crate::syntax;
use std::io::Read;
use std::path::{Path, PathBuf};

/// Format models.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example: neuroc fmt model.neuro\n         neuroc fmt --check examples/*.neuro")]
pub struct Args {
    /// Model files; - is standard input, which is formatted to standard output
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Change nothing; exit 1 if a file is not formatted
    #[arg(long)]
    check: bool,
}

fn standard_input() -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    std::io::stdin().read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Formats every file in place.
pub fn run(args: &Args) -> Exit {
    let mut exit = Exit::Fine;
    for path in &args.files {
        let standard = path == Path::new("-");
        let name = if standard { "standard input".to_string() } else { path.display().to_string() };
        let bytes = if standard { standard_input() } else { std::fs::read(path) };
        let text = match bytes {
            Ok(bytes) => match syntax::read_text(&name, bytes) {
                Ok(text) => text,
                Err(diagnostic) => {
                    report(&SourceMap::default(), &[diagnostic]);
                    exit = Exit::Model;
                    continue;
                }
            },
            Err(error) => {
                exit = exit.max(misused(format!("cannot read `{name}`: {error}")));
                continue;
            }
        };
        let mut sources = SourceMap::default();
        let file = sources.add(name.clone(), "", text.clone());
        let mut diagnostics = Diagnostics::default();
        match syntax::format(file, &text, &mut diagnostics) {
            None => {
                report(&sources, &diagnostics.sorted());
                exit = Exit::Model;
            }
            Some(formatted) if standard && !args.check => {
                exit = exit.max(deliver(&formatted, None));
            }
            Some(formatted) if formatted == text => {}
            Some(_) if args.check => {
                say(format!("{name} is not formatted"));
                exit = Exit::Model;
            }
            Some(formatted) => {
                if let Err(error) = crate::results::replace_file(path, formatted.as_bytes()) {
                    exit = exit.max(misused(format!("cannot write `{name}`: {error}")));
                }
            }
        }
    }
    exit
}
