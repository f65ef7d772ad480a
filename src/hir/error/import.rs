//! What can be wrong with a `use`.

use super::instead;
use crate::diag::{Code, Diagnostic, nearest};
use crate::source::Span;
use crate::stdlib;
use crate::syntax::ast::Name;
use std::path::Path;

/// What is wrong with a `use`.
pub(in crate::hir) enum UseError<'e> {
    /// It names a file, but nothing of it.
    NoItem { span: Span },
    /// It names a module of the library, but nothing of it.
    NoItemOf { module: &'e str, known: &'e [String], span: Span },
    /// The module has no item of the name.
    UnknownItem { module: &'e str, name: &'e Name, known: &'e [&'e str] },
    /// The standard library has no such module.
    UnknownLibrary { module: &'e str, span: Span },
    /// The module is being read already.
    Circle { file: &'e Path, span: Span },
    /// The module cannot be read.
    CannotRead { module: &'e str, file: &'e Path, error: &'e std::io::Error, span: Span },
}

impl From<UseError<'_>> for Diagnostic {
    fn from(error: UseError<'_>) -> Diagnostic {
        use UseError as E;
        match error {
            E::NoItem { span } => {
                let message = "this `use` names no item";
                Diagnostic::new(Code::UnknownModule, span, message, "a module and an item are needed")
                    .help("write `use file.{Name}` or `use std.channels.hh.{Na, K}`")
            }
            E::NoItemOf { module, known, span } => {
                let message = format!("this `use` names no item of `{module}`");
                let names: Vec<&str> = known.iter().filter_map(|item| item.split(' ').nth(1)).take(3).collect();
                Diagnostic::new(Code::UnknownModule, span, message, "a module, and no item of it")
                    .help(format!("write what is meant: `use {module}.{{{}}}`", names.join(", ")))
            }
            E::UnknownItem { module, name, known } => {
                let message = format!("`{module}` has no `{}`", name.text);
                let d = Diagnostic::new(Code::UnknownItem, name.span, message, "not defined there");
                match known {
                    [] => d.note("it defines nothing"),
                    known => instead(d, &name.text, known),
                }
            }
            E::UnknownLibrary { module, span } => {
                let message = format!("the standard library has no module `{module}`");
                let d = Diagnostic::new(Code::UnknownModule, span, message, "no such module");
                let known = stdlib::modules();
                let d = near_module(module, &known).into_iter().fold(d, |d, near| d.did_you_mean(module, near));
                d.note(format!("it has {}", known.join(", ")))
            }
            E::Circle { file, span } => {
                let label = format!("`{}` is already being read", file.display());
                Diagnostic::new(Code::CyclicUse, span, "these files use each other in a circle", label)
            }
            E::CannotRead { module, file, error, span } => cannot_read(module, file, error, span),
        }
    }
}

/// The module that is meant: of the same folder the one with a similar name, else one that is similar as a whole.
fn near_module<'k>(module: &str, known: &'k [String]) -> Option<&'k str> {
    let Some((folder, name)) = module.rsplit_once('.') else {
        return nearest(module, known.iter().map(String::as_str));
    };
    let beside = |k: &'k String| k.strip_prefix(folder)?.strip_prefix('.');
    match name {
        "hodgkin_huxley" | "HH" => known.iter().map(String::as_str).find(|k| *k == "std.channels.hh"),
        _ if known.iter().any(|k| beside(k).is_some()) => {
            let near = nearest(name, known.iter().filter_map(beside))?;
            known
                .iter()
                .map(String::as_str)
                .find(|k| k.strip_prefix(folder).is_some_and(|k| k.strip_prefix('.') == Some(near)))
        }
        _ => nearest(module, known.iter().map(String::as_str)),
    }
}

fn cannot_read(module: &str, file: &Path, error: &std::io::Error, span: Span) -> Diagnostic {
    let file = file.display();
    let (message, label) = match error.kind() == std::io::ErrorKind::NotFound {
        true => (format!("there is no module `{module}`"), format!("`{file}` does not exist")),
        false => (format!("cannot read the module `{module}`"), format!("{file}: {error}")),
    };
    let d = Diagnostic::new(Code::UnknownModule, span, message, label);
    let library = stdlib::modules();
    let in_library = format!("std.{module}");
    let inside = library.iter().find(|m| **m == in_library || m.ends_with(&format!(".{module}")));
    match inside.map(String::as_str).or_else(|| nearest(&in_library, library.iter().map(String::as_str))) {
        Some(near) => d.help(format!("the standard library has `{near}`")),
        None => d.help("modules are files beside this one; the standard library's begin with `std.`"),
    }
}
