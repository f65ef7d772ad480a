//! Keys: which ones the blocks have that are made of them.
//!
//! In come keys as they are written; out goes a message for each that its block does not have, or has already.
//! Never true here: what a key means is known.

use super::error::KeyError;
use super::lower::Lowerer;
use crate::source::Span;
use crate::syntax::ast::Name;

/// A block that is made of keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)] // `describe` says what each is
pub enum Block {
    Gate,
    Compartment,
    Section,
    Compartments,
    Region,
    Pool,
    Junction,
    Population,
    Probe,
    Projection,
    Drive,
    Run,
    Train,
    Fit,
}

impl Block {
    /// What it is called in messages.
    pub fn describe(self) -> &'static str {
        match self {
            Block::Gate => "a gate",
            Block::Compartment => "a compartment",
            Block::Section => "a section",
            Block::Compartments => "a `compartments` block",
            Block::Region => "a region",
            Block::Pool => "a pool",
            Block::Junction => "a junction",
            Block::Population => "a population",
            Block::Probe => "a probe",
            Block::Projection => "a connection through a synapse",
            Block::Drive => "a drive",
            Block::Run => "a run",
            Block::Train => "a `train` block",
            Block::Fit => "a `fit` block",
        }
    }

    /// What can stand in it.
    pub fn keys(self) -> &'static [&'static str] {
        match self {
            Block::Gate => &["alpha", "beta", "inf", "tau", "init", "q10", "fraction"],
            Block::Compartment => &["area", "cm", "v_init", "insert", "pool", "param", "let"],
            Block::Section => &["from", "toward", "length", "diam", "compartments"],
            Block::Compartments => &["max_length", "count", "d_lambda"],
            Block::Region => &["ra", "cm", "v_init", "max_length", "count", "d_lambda", "insert", "pool"],
            Block::Pool => &["init", "diffusion", "shell"],
            Block::Junction => &["rule"],
            Block::Population => &["spacing", "x", "y", "z"],
            Block::Probe => &["at", "from", "sigma", "source"],
            Block::Projection => &["rule", "weight", "delay", "dendritic_fraction"],
            Block::Drive => &["weight", "delay"],
            Block::Run => &[
                "duration",
                "dt",
                "method",
                "rtol",
                "atol",
                "max_step",
                "arrivals",
                "coincident",
                "seed",
                "celsius",
                "network",
                "record",
                "sweep",
            ],
            Block::Fit => &["free", "target", "search", "starts", "iterations"],
            Block::Train => &[
                "data",
                "labels",
                "input",
                "frame",
                "learn",
                "keep",
                "loss",
                "optimizer",
                "schedule",
                "delay_lr",
                "clip",
                "surrogate",
                "reset",
                "gradient",
                "batch",
                "epochs",
                "patience",
                "test",
                "test_labels",
            ],
        }
    }
}

impl Block {
    /// How a word that can stand in it is written if it is no key.
    pub(super) fn form(self, word: &str) -> Option<&'static str> {
        match (self, word) {
            (Block::Section, "from") => Some("from soma(1)"),
            (Block::Probe, "from") => Some("from (0 um, 0 um, 0 um) to (0 um, 100 um, 0 um) in 16"),
            (Block::Probe, "at") => Some("at (0 um, 100 um, 0 um)"),
            (Block::Compartment | Block::Region, "insert") => Some("insert Leak(gbar = 0.1 mS/cm2)"),
            (Block::Compartment, "param") => Some("param name = value"),
            (Block::Compartment, "let") => Some("let name = value"),
            (Block::Run, "record") => Some("record cells.v"),
            (Block::Gate, "fraction")
            | (Block::Section, "toward")
            | (Block::Compartment | Block::Region, "pool")
            | (Block::Run, "sweep")
            | (Block::Train, "learn" | "keep")
            | (Block::Fit, "free" | "target") => crate::syntax::form(word),
            _ => None,
        }
    }
}

impl Block {
    /// Is this a key of it, and no word that begins a line of another form?
    pub(super) fn has_key(self, word: &str) -> bool {
        self.keys().contains(&word) && self.form(word).is_none()
    }
}

impl Lowerer<'_> {
    pub(super) fn unknown_key(&mut self, key: &Name, block: Block) {
        self.unknown_key_beside(key, block, &[]);
    }

    /// The same where names of the model stand beside the keys of the block.
    pub(super) fn unknown_key_beside(&mut self, key: &Name, block: Block, names: &[String]) {
        self.error(KeyError::Unknown { block, key, names });
    }

    pub(super) fn duplicate_key(&mut self, key: &Name, first: Span) {
        self.error(KeyError::Repeated { key: &key.text, again: key.span, first });
    }
}
