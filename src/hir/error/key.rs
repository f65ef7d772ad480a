//! What can be wrong with the keys of a block.

use crate::diag::{Code, Diagnostic, nearest};
use crate::hir::keys::Block;
use crate::source::Span;
use crate::syntax::ast::Name;

/// What is wrong with a key.
pub(in crate::hir) enum KeyError<'e> {
    /// The block has no such key.
    Unknown { block: Block, key: &'e Name },
    /// The block has it already.
    Repeated { key: &'e str, again: Span, first: Span },
}

impl From<KeyError<'_>> for Diagnostic {
    fn from(error: KeyError<'_>) -> Diagnostic {
        use KeyError as E;
        match error {
            E::Unknown { block, key } => unknown(block, key),
            E::Repeated { key, again, first } => {
                Diagnostic::new(Code::DuplicateKey, again, format!("`{key}` is given twice"), "given again")
                    .see(first, "first given here")
            }
        }
    }
}

fn unknown(block: Block, key: &Name) -> Diagnostic {
    let message = format!("{} has no `{}`", block.describe(), key.text);
    let d = Diagnostic::new(Code::UnknownKey, key.span, message, "no such key");
    match elsewhere(block, &key.text).or_else(|| nearest(&key.text, block.keys().iter().copied())) {
        Some(near) => d.did_you_mean(&key.text, near),
        None => match (block, key.text.as_str()) {
            (Block::Compartment, "diam" | "length" | "L" | "radius") => {
                d.help("a compartment has a surface, not a shape: `area = 1000 um2`")
            }
            (Block::Compartment, "ra" | "Ra") => {
                d.help("the conductance between compartments is given by `couple a <- b: g`")
            }
            _ => d.note(format!("it can have {}", block.keys().join(", "))),
        },
    }
}

/// What a key of other simulators is called here.
fn elsewhere(block: Block, key: &str) -> Option<&'static str> {
    Some(match (block, key.to_lowercase().as_str()) {
        (Block::Gate, "steady_state" | "steadystate" | "minf" | "hinf" | "ninf" | "x_inf" | "infinity") => "inf",
        (Block::Gate, "mtau" | "htau" | "ntau" | "time_constant") => "tau",
        (Block::Gate, "a" | "alphan" | "forward" | "forwardrate") => "alpha",
        (Block::Gate, "b" | "betan" | "reverse" | "reverserate") => "beta",
        (Block::Compartment, "v0" | "v" | "e_m" | "vinit" | "v_rest") => "v_init",
        (Block::Compartment, "c" | "c_m" | "capacitance") => "cm",
        (Block::Run, "tstop" | "t_stop" | "tend" | "t_end" | "length" | "time" | "stop") => "duration",
        (Block::Run, "step" | "timestep" | "time_step" | "delta_t") => "dt",
        (Block::Run, "temperature" | "temp" | "temperature_c") => "celsius",
        (Block::Run, "solver" | "integrator" | "integration") => "method",
        (Block::Run, "random_seed" | "rng") => "seed",
        _ => return None,
    })
}
