//! What can be wrong in a model, in words: one enum per idea.
//!
//! In come mistakes, which hold the names and places that their messages need; out goes each as a [`Diagnostic`]: code, place,
//! what is true there, and an edit that helps.
//! Never true here: it is decided whether something is a mistake.

mod call;
mod cell;
mod channel;
mod dimension;
mod domain;
mod expr;
mod fit;
mod gate;
mod import;
mod insert;
mod item;
mod junction;
mod key;
mod kinetics;
mod limit;
mod member;
mod morphology;
mod name;
mod network;
mod probe;
mod run;
mod spike;
mod synapse;
mod target;
mod train;

pub(super) use call::{CallError, Signature, Wrong};
pub(super) use cell::CellError;
pub(super) use channel::ChannelError;
pub(super) use dimension::DimensionError;
pub use domain::{SET_FROM_OUTSIDE, shown};
pub(super) use expr::ExprError;
pub(super) use fit::FitError;
pub(super) use gate::GateError;
pub(super) use import::UseError;
pub(super) use insert::InsertError;
pub(super) use item::ItemError;
pub(super) use junction::JunctionError;
pub(super) use key::KeyError;
pub(super) use kinetics::KineticsError;
pub(super) use limit::LimitError;
pub(super) use member::{About, MemberError};
pub(super) use morphology::MorphologyError;
pub(super) use name::{NameError, NameHelp};
pub(super) use network::NetworkError;
pub(super) use probe::ProbeError;
pub(super) use run::RunError;
pub(super) use spike::SpikeError;
pub(super) use synapse::SynapseError;
pub(super) use target::{BadTarget, Meant, UnknownPopulation};
pub(super) use train::TrainError;

use crate::diag::{Diagnostic, nearest};

/// What may be meant by a name that is not known: the nearest that is, or else all of them.
fn instead(d: Diagnostic, name: &str, known: &[&str]) -> Diagnostic {
    match nearest(name, known.iter().copied()) {
        Some(near) => d.did_you_mean(name, near),
        None if known.is_empty() => d.note("it has none"),
        None => d.note(format!("it has {}", known.join(", "))),
    }
}
