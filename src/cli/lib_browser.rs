//! `neuroc lib`.

use super::{Exit, complain, deliver};
use crate::stdlib;

/// Browse the standard library.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example: neuroc lib\n         neuroc lib std.channels.hh")]
pub struct Args {
    /// A module, such as std.channels.hh, one of its items, or what modules begin with; all are listed without it
    #[arg(value_name = "NAME")]
    name: Option<String>,
}

/// Lists modules with their items, or prints the source of a module or an item.
pub fn run(args: &Args) -> Exit {
    let Some(name) = &args.name else { return deliver(&listed(|_| true), None) };
    let full = if name == "std" || name.starts_with("std.") { name.clone() } else { format!("std.{name}") };
    if let Some(text) = stdlib::source(&full) {
        return deliver(text, None);
    }
    let below = listed(|module| module.strip_prefix(full.as_str()).is_some_and(|rest| rest.starts_with('.')));
    if !below.is_empty() {
        return deliver(&below, None);
    }
    let item = full.rsplit_once('.').and_then(|(module, item)| item_of(stdlib::source(module)?, item));
    match item {
        Some(text) => deliver(&text, None),
        None => {
            complain(format!("the standard library has no module `{name}`; `neuroc lib` lists all"));
            Exit::Usage
        }
    }
}

/// Modules with their items.
fn listed(wanted: impl Fn(&str) -> bool) -> String {
    let mut out = String::new();
    for module in stdlib::modules().into_iter().filter(|module| wanted(module)) {
        let text = stdlib::source(&module).unwrap_or("");
        let about = text.lines().next().and_then(|l| l.strip_prefix("//!")).unwrap_or("").trim();
        out.push_str(&format!("{module}: {about}\n"));
        for item in stdlib::items(text) {
            out.push_str(&format!("    {item}\n"));
        }
    }
    out
}

/// The source of an item with its description. In the library an item begins and ends at the margin.
fn item_of(text: &str, item: &str) -> Option<String> {
    let lines: Vec<&str> = text.lines().collect();
    let names = |line: &&str| {
        let mut words = line.split(|c: char| !(c.is_alphanumeric() || c == '_'));
        !line.starts_with([' ', '/']) && words.next().is_some_and(|w| w != "use") && words.next() == Some(item)
    };
    let head = lines.iter().position(names)?;
    let described = lines[..head].iter().rev().take_while(|line| line.starts_with("///")).count();
    let rest = lines[head..].iter();
    let end = match lines[head].ends_with('{') {
        true => rest.take_while(|line| **line != "}").count() + 1,
        false => rest.take_while(|line| !line.is_empty()).count(),
    };
    let mut shown = lines[head - described..(head + end).min(lines.len())].join("\n");
    shown.push('\n');
    Some(shown)
}
