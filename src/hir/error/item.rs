//! What can be wrong with the name of an item: a channel, a cell, a junction.

use crate::diag::{Code, Diagnostic, nearest};
use crate::hir::items::Kind;
use crate::syntax::ast::Name;

/// What is wrong with the name of an item.
pub(in crate::hir) enum ItemError<'e> {
    /// It is an item of another kind.
    OtherKind { name: &'e Name, is: Kind, wanted: Kind, known: &'e [String] },
    /// The file has none of the name; modules of the standard library may.
    Unknown { name: &'e Name, wanted: Kind, known: &'e [String], modules: &'e [String] },
}

impl From<ItemError<'_>> for Diagnostic {
    fn from(error: ItemError<'_>) -> Diagnostic {
        use ItemError as E;
        match error {
            E::OtherKind { name, is, wanted, known } => {
                let message = format!("`{}` is {}, not {}", name.text, is.describe(), wanted.describe());
                let d = Diagnostic::new(Code::UnknownItem, name.span, message, is.describe());
                if known.is_empty() {
                    return d;
                }
                d.note(format!("the file's {}s are {}", wanted.noun(), known.join(", ")))
            }
            E::Unknown { name, wanted, known, modules } => unknown(name, wanted, known, modules),
        }
    }
}

fn unknown(name: &Name, wanted: Kind, known: &[String], modules: &[String]) -> Diagnostic {
    let name_text = &name.text;
    let message = format!("there is no {} `{name_text}`", wanted.noun());
    let label = "neither defined in this file nor brought in by `use`";
    let d = Diagnostic::new(Code::UnknownItem, name.span, message, label);
    if !modules.is_empty() {
        // The first of these is what everybody begins with; those of single cells come last.
        let mut modules: Vec<&String> = modules.iter().collect();
        modules.sort_by_key(|m| (*m != "std.channels.hh", m.starts_with("std.cells."), *m));
        let lines: Vec<String> = modules.iter().take(3).map(|m| format!("use {m}.{{{name_text}}}")).collect();
        let uses: Vec<String> = lines.iter().map(|line| format!("`{line}`")).collect();
        let more = match modules.len().saturating_sub(3) {
            0 => String::new(),
            more => format!(" ({more} more: `neuroc lib`)"),
        };
        return d.help(format!("the standard library has it: {}{more}", uses.join(" or "))).fix_by_use(lines);
    }
    match (wanted, name_text.as_str()) {
        (Kind::Channel, "hh") => {
            return d.help(
                "NEURON's `hh` is three channels here: `use std.channels.hh.{Na, K, Leak}` and `insert Na, K, Leak`",
            );
        }
        (Kind::Channel, "pas") => {
            let help = "NEURON's `pas` is a leak: `use std.channels.hh.{Leak}` and `insert Leak(gbar = 0.1 mS/cm2, erev = -65 mV)`";
            return d.help(help);
        }
        _ => {}
    }
    match nearest(name_text, known.iter().map(String::as_str)) {
        Some(near) => d.did_you_mean(name_text, near),
        None if known.is_empty() => {
            d.help(format!("define it, `{} {name_text} {{ ... }}`, or bring it in with `use`", wanted.keyword()))
        }
        None => d.note(format!("this file knows {}", known.join(", "))),
    }
}
