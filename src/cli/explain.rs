//! `neuroc explain`.

use super::{Exit, complain, deliver};
use crate::diag::{Code, Severity};

/// Explain a diagnostic code.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example: neuroc explain NU0201")]
pub struct Args {
    /// A code such as NU0201; all are listed without it
    #[arg(value_name = "CODE")]
    code: Option<String>,
}

/// Prints the story of a code.
pub fn run(args: &Args) -> Exit {
    let Some(wanted) = &args.code else {
        let list: String = Code::ALL.iter().map(|c| format!("{}  {}\n", c.id(), c.title())).collect();
        return deliver(&list, None);
    };
    let Some(code) = Code::ALL.iter().find(|c| c.id().eq_ignore_ascii_case(wanted)) else {
        complain(format!("there is no code `{wanted}`; `neuroc explain` lists all"));
        return Exit::Usage;
    };
    let severity = match code.severity() {
        Severity::Error => "error",
        Severity::Warning => "warning",
    };
    deliver(&format!("{severity}[{}]: {}\n\n{}\n", code.id(), code.title(), code.explanation()), None)
}
