//! What can be wrong with a channel's current.

use crate::diag::{Code, Diagnostic};
use crate::hir::scope::Entry;
use crate::source::Span;
use crate::syntax::ast::Name;

/// What is wrong with a channel's current.
pub(in crate::hir) enum ChannelError<'e> {
    /// It defines what its current is called, besides the current.
    CurrentTaken { first: Span },
    /// It is not called `i`.
    CurrentName { current: &'e Name },
    /// There are two.
    TwoCurrents { second: Span, first: Span },
    /// A gate is declared with a power, and counts with another.
    PowerLost { gate: &'e str, power: u32, counted: u32, span: Span, current: Span },
    /// There is none, and a scheme does not say which of its states conducts.
    WhichConducts { channel: &'e Name, states: Vec<&'e str> },
    /// There is none, and parameters are missing that would imply it; one may have another name.
    NoCurrent { channel: &'e Name, missing: &'e [&'static str], similar: Option<(&'e Entry<'e>, &'static str)> },
}

impl From<ChannelError<'_>> for Diagnostic {
    fn from(error: ChannelError<'_>) -> Diagnostic {
        use ChannelError as E;
        match error {
            E::CurrentTaken { first } => {
                let message = "`i` is a channel's current and cannot be defined otherwise";
                Diagnostic::new(Code::ReservedName, first, message, "something else of this name")
                    .help("choose another name, such as `i_0`; what the current is, `current i = ...` says")
            }
            E::CurrentName { current } => {
                let message = format!("a channel's current is called `i`, not `{}`", current.text);
                let label = "the ion is known from the channel's name";
                Diagnostic::new(Code::UnknownKey, current.span, message, label).help("write `current i = ...`")
            }
            E::TwoCurrents { second, first } => {
                Diagnostic::new(Code::DuplicateKey, second, "a channel has one current", "a second `current` line")
                    .see(first, "the first")
                    .help("add them up in one line, or write two channels")
            }
            E::PowerLost { gate, power, counted, span, current } => {
                let message = format!("the power of gate `{gate}` does not count: the `current` line says what flows");
                let times = if counted == 1 { "once".to_string() } else { format!("{counted} times") };
                Diagnostic::new(Code::NoEffect, span, message, format!("to the power of {power}"))
                    .see(current, format!("here it is a factor {times}"))
                    .help(format!("write `{gate}^{power}` in the `current` line, or leave the line out where it is `gbar` times all gates times `v - erev`"))
            }
            E::WhichConducts { channel, states } => {
                let message = format!("the current of channel `{}` is not determined", channel.text);
                let open = states.iter().find(|s| s.starts_with(['O', 'o'])).or(states.last()).unwrap_or(&"O");
                Diagnostic::new(
                    Code::MissingCurrent,
                    channel.span,
                    message,
                    "no `current` line says which state conducts",
                )
                .help(format!("add `current i = gbar * {open} * (v - erev)`, with the open state"))
            }
            E::NoCurrent { channel, missing, similar } => no_current(channel, missing, similar),
        }
    }
}

fn no_current(channel: &Name, missing: &[&str], similar: Option<(&Entry<'_>, &str)>) -> Diagnostic {
    let names: Vec<String> = missing.iter().map(|m| format!("`{m}`")).collect();
    let message = format!("the current of channel `{}` is not determined", channel.text);
    let label = format!("no {}, and no `current` line", names.join(" and "));
    let d = Diagnostic::new(Code::MissingCurrent, channel.span, message, label);
    if let Some((param, wanted)) = similar {
        return d
            .see(param.span, format!("is this the `{wanted}`?"))
            .help(format!("rename `{}` to `{wanted}`", param.name));
    }
    let example = |m: &&str| if *m == "gbar" { "`param gbar = 1 mS/cm2`" } else { "`param erev = -65 mV`" };
    let examples: Vec<&str> = missing.iter().map(example).collect();
    d.help(format!("add {}, or `current i = ...`", examples.join(" and ")))
}
