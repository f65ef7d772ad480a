//! `neuroc lib`.

use super::{Exit, complain, deliver};
use crate::stdlib;

/// Browse the standard library.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example: neuroc lib\n         neuroc lib std.channels.hh")]
pub struct Args {
    /// A module, such as std.channels.hh; all are listed without it
    #[arg(value_name = "NAME")]
    name: Option<String>,
}

/// Lists modules with their items, or prints the source of one.
pub fn run(args: &Args) -> Exit {
    match &args.name {
        None => {
            let mut out = String::new();
            for module in stdlib::modules() {
                let text = stdlib::source(&module).unwrap_or("");
                let about = text.lines().next().and_then(|l| l.strip_prefix("//!")).unwrap_or("").trim();
                out.push_str(&format!("{module}: {about}\n"));
                for item in stdlib::items(text) {
                    out.push_str(&format!("    {item}\n"));
                }
            }
            deliver(&out, None)
        }
        Some(name) => {
            let full = if name.starts_with("std.") { name.clone() } else { format!("std.{name}") };
            match stdlib::source(&full) {
                Some(text) => deliver(text, None),
                None => {
                    complain(format!("the standard library has no module `{name}`; `neuroc lib` lists all"));
                    Exit::Usage
                }
            }
        }
    }
}
