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
        let about: Vec<&str> = text.lines().map_while(|l| l.strip_prefix("//!")).map(str::trim).collect();
        out.push_str(&wrapped(&format!("{module}: {}", first_sentence(&about.join(" ")))));
        for item in stdlib::items(text) {
            out.push_str(&format!("    {item}\n"));
        }
    }
    out
}

/// The text up to the first full stop that ends a sentence: outside brackets, behind a word of more than one letter, before a capital.
fn first_sentence(text: &str) -> &str {
    let ends = text.match_indices(". ").map(|(at, _)| at).find(|&at| {
        let (before, behind) = (&text[..at], &text[at + 2..]);
        let word = before.rsplit(|c: char| !c.is_alphanumeric()).next().unwrap_or("");
        let inside = before.matches('(').count() > before.matches(')').count();
        !inside && word.chars().count() != 1 && word != "al" && behind.starts_with(|c: char| c.is_uppercase())
    });
    let until_blank = text.split("  ").next().unwrap_or(text);
    match ends {
        Some(end) if end < until_blank.len() => &text[..=end],
        _ => until_blank.trim_end(),
    }
}

/// Lines of at most 100 letters, those behind the first further in than its begin, and less so than items.
fn wrapped(text: &str) -> String {
    let (mut out, mut line) = (String::new(), 0);
    for word in text.split_whitespace() {
        let length = word.chars().count();
        if line > 0 && line + 1 + length > 100 {
            out.push_str("\n  ");
            line = 2;
        } else if line > 0 {
            out.push(' ');
            line += 1;
        }
        out.push_str(word);
        line += length;
    }
    out.push('\n');
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modules_are_described_by_whole_sentences() {
        assert_eq!(
            first_sentence("A cell: Hodgkin et al., J Physiol 117:500 (1952). The rest."),
            "A cell: Hodgkin et al., J Physiol 117:500 (1952)."
        );
        assert_eq!(
            first_sentence("By A. Smith (1950. Not yet) and B. Jones. Then"),
            "By A. Smith (1950. Not yet) and B. Jones."
        );
        assert_eq!(first_sentence("A title  A paragraph. Another"), "A title");
        assert_eq!(first_sentence("No end at all"), "No end at all");
        let all = listed(|_| true);
        let heads: Vec<&str> = all.lines().filter(|l| l.starts_with("std.")).collect();
        assert_eq!(heads.len(), stdlib::modules().len());
        assert!(all.lines().all(|l| l.chars().count() <= 100), "{all}");
        // Every description ends as a sentence does.
        let lines: Vec<&str> = all.lines().collect();
        for (at, line) in lines.iter().enumerate().filter(|(_, l)| !l.starts_with("    ")) {
            let last = lines.get(at + 1).is_none_or(|next| next.starts_with("    ") || next.starts_with("std."));
            assert!(!last || line.ends_with(['.', ':', ')']), "{line}");
        }
    }
}
