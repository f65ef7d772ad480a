//! `neuroc opt`.

use super::{Exit, complain, deliver, misused};
use crate::passes::{self, Options, PassError};
use crate::step;
use std::path::PathBuf;

/// Run passes on IR in text form.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example: neuroc emit squid.neuro --stage ir -o squid.ir && neuroc opt squid.ir --passes fold,cse,dce\n\nParameters have no values in a text: `specialize` finds none, and `exact` marks more than where a model says which sums cannot cancel."
)]
pub struct Args {
    /// A file of IR
    #[arg(value_name = "FILE.ir")]
    file: PathBuf,
    /// Names of passes, in order
    #[arg(long, value_delimiter = ',', value_name = "A,B")]
    passes: Vec<String>,
    /// Steps that one kernel call may take
    #[arg(long, value_name = "K", default_value_t = crate::driver::FUSE)]
    fuse: u32,
    /// Write here instead of to standard output
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

/// Reads, verifies, transforms and prints.
pub fn run(args: &Args) -> Exit {
    let name = args.file.display();
    let read = match args.file.as_os_str() == "-" {
        true => std::io::read_to_string(std::io::stdin()),
        false => std::fs::read_to_string(&args.file),
    };
    let text = match read {
        Ok(text) => text,
        Err(error) => {
            return misused(format!("cannot read `{name}`: {error}"));
        }
    };
    let program = match step::parse(&text) {
        Ok(program) => program,
        Err(error) => {
            complain(format!("{name}:{}: {}", error.line, error.message));
            return Exit::Model;
        }
    };
    let verified = match step::verify(program) {
        Ok(verified) => verified,
        Err(error) => {
            complain(format!("{name}: {error}"));
            return Exit::Model;
        }
    };
    let names: Vec<&str> = args.passes.iter().map(String::as_str).collect();
    let options = Options { fuse: args.fuse.max(1), ..Options::default() };
    match passes::run(verified, &names, &options, &mut |_, _, _| {}) {
        Ok(program) => deliver(&step::print(program.program()), args.output.as_deref()),
        Err(error @ PassError::NoSuchPass(_)) => {
            complain(format!("{error}; `neuroc passes` lists them"));
            Exit::Usage
        }
        Err(error) => {
            complain(error);
            Exit::Model
        }
    }
}
