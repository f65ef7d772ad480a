//! What can be wrong where a channel is inserted in a compartment.

use super::instead;
use crate::diag::{Code, Diagnostic};
use crate::hir::{Symbol, Ty};
use crate::source::Span;
use crate::syntax::ast::Name;

/// What is wrong with an inserted channel.
pub(in crate::hir) enum InsertError<'e> {
    /// The compartment has something of its name.
    Twice { path: &'e str, channel: &'e Name, own: &'e Name, first: Option<Span> },
    /// The compartment lacks a pool that the channel reads: what it has of that name, where and of which word, and another pool of it.
    NoPool {
        channel: &'e Name,
        read: &'e Symbol,
        compartment: &'e str,
        own: Option<(Span, &'static str)>,
        other: Option<&'e str>,
        span: Span,
    },
    /// The pool is not what the channel reads.
    OtherPool { channel: &'e Name, read: &'e Symbol, pool: (Ty, Span), span: Span },
    /// The channel has no such parameter.
    UnknownParameter { channel: &'e Name, argument: &'e Name, known: &'e [&'e str] },
}

impl From<InsertError<'_>> for Diagnostic {
    fn from(error: InsertError<'_>) -> Diagnostic {
        use InsertError as E;
        match error {
            E::Twice { path, channel, own, first } => {
                let message = format!("`{path}` is defined twice");
                let d = Diagnostic::new(Code::DuplicateName, own.span, message, "the compartment has this already");
                let d = match first {
                    Some(first) => d.see(first, "this has the name"),
                    None => d,
                };
                d.help(format!("give this one a name of its own: `insert {} as {}2`", channel.text, own.text))
            }
            E::NoPool { channel, read, compartment, own, other, span } => {
                let instead = (own, other);
                no_pool(channel, read, compartment, instead, span)
            }
            E::OtherPool { channel, read, pool: (ty, at), span } => other_pool(channel, read, ty, at, span),
            E::UnknownParameter { channel, argument, known } => {
                let message = format!("channel `{}` has no parameter `{}`", channel.text, argument.text);
                let d = Diagnostic::new(Code::UnknownParameter, argument.span, message, "no such parameter");
                instead(d, &argument.text, known)
            }
        }
    }
}

fn no_pool(
    channel: &Name,
    read: &Symbol,
    compartment: &str,
    (own, other): (Option<(Span, &str)>, Option<&str>),
    span: Span,
) -> Diagnostic {
    let (pool, dim) = (&read.name, read.ty.dim());
    let message = format!("channel `{}` reads `{pool}`, which `{compartment}` lacks", channel.text);
    let unit = if dim.is_one() { String::new() } else { format!(": {}", dim.display_unit().name) };
    let d = Diagnostic::new(Code::MissingPool, span, message, format!("needs a pool `{pool}`"));
    let d = d.see(read.span, "read here");
    if let Some((at, word)) = own {
        return d.see(at, format!("this is a `{word}`, and a channel reads pools")).help(format!(
            "make it a pool, `pool {pool}{unit} {{ init = ...; {pool}' = ... }}`, or a parameter of the channel: `param {pool} = ...`"
        ));
    }
    if let Some(other) = other {
        return d.help(format!("`{compartment}` has a pool `{other}`: write `reads {other}{unit}` in the channel"));
    }
    d.help(format!("add to it: `pool {pool}{unit} {{ init = ...; {pool}' = ... }}`"))
}

fn other_pool(channel: &Name, read: &Symbol, ty: Ty, at: Span, span: Span) -> Diagnostic {
    let (name, wanted, found) = (&read.name, read.ty.dim(), ty.dim());
    let (reads, is) = (wanted.describe(), found.describe());
    let message = format!("channel `{}` reads `{name}` as {reads}, but the pool is {is}", channel.text);
    // A concentration is what a pool is meant to be.
    let help = match wanted.is_one() || found == crate::units::Dim::CONCENTRATION {
        true => format!("write `reads {name}: {}` in the channel", found.display_unit().name),
        false => format!("write `pool {name}: {} {{ ... }}`", wanted.display_unit().name),
    };
    Diagnostic::new(Code::DimensionMismatch, span, message, "inserted here")
        .see(at, format!("the pool: {is}"))
        .see(read.span, format!("the channel: {reads}"))
        .help(help)
}
