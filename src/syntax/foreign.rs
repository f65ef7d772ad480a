//! Texts of other languages.
//!
//! In comes a text that the grammar does not match; out goes a message that says which language it looks like, and how a model of that
//! language is written here, if it looks like one.
//! Never true here: a text with an item of this language in it is taken for another.

use crate::diag::{Code, Diagnostic};
use crate::source::{FileId, Span};

/// Another language.
struct Foreign {
    /// What a message calls it.
    name: &'static str,
    /// Beginnings of lines that belong to it and not to this language.
    lines: &'static [&'static str],
    /// How many lines must begin so.
    enough: usize,
    /// What to do.
    help: &'static str,
}

const LANGUAGES: &[Foreign] = &[
    Foreign {
        name: "NeuroML or LEMS, which is XML",
        lines: &["<?xml", "<neuroml", "<Lems", "<ComponentType", "<ionChannel", "<cell"],
        enough: 1,
        help: "a model is text: `ionChannelHH` is a `channel`, a `gateHHrates` a `gate` with `alpha` and `beta`, a `cell` a `cell`",
    },
    Foreign {
        name: "NMODL",
        lines: &[
            "TITLE",
            "NEURON",
            "PARAMETER",
            "STATE",
            "ASSIGNED",
            "BREAKPOINT",
            "INITIAL",
            "DERIVATIVE",
            "UNITS",
            "PROCEDURE",
            "FUNCTION",
            "SUFFIX",
            "USEION",
            "RANGE",
            "SOLVE",
            "COMMENT",
            "INDEPENDENT",
            "NET_RECEIVE",
        ],
        enough: 2,
        help: "a mechanism is `channel Name { param gbar = ...; param erev = ...; gate m^3 { alpha = ...; beta = ... } }`",
    },
    Foreign {
        name: "Python, perhaps of Brian2, NEURON or NEST",
        lines: &["from ", "import ", "h.", "nest.", "print("],
        enough: 1,
        help: "a model describes a cell and does not build it: `cell Lif { state v: mV = -65 mV; v' = ...; spike when v > -50 mV { v = -65 mV } }`",
    },
    Foreign {
        name: "hoc",
        lines: &["create ", "access ", "proc ", "load_file(", "xopen(", "objref ", "forall ", "connect ", "insert "],
        enough: 2,
        help: "a section is a compartment of a cell: `cell C { compartment soma { cm = 1 uF/cm2; v_init = -65 mV; insert Na } }`",
    },
    Foreign {
        name: "JSON",
        lines: &["{\"", "[{", "{"],
        enough: 1,
        help: "a model is made of blocks such as `cell Name { ... }` and `run { ... }`",
    },
];

/// Words that items begin with.
const OWN: &[&str] =
    &["use", "const", "function", "channel", "cell", "junction", "synapse", "network", "run", "train", "fit"];

/// What another language a text looks like, said of its first line.
pub fn foreign(file: FileId, text: &str) -> Option<Diagnostic> {
    let lines = || text.lines().map(str::trim_start).filter(|line| !line.is_empty());
    let word = |line: &str| line.split(|c: char| !c.is_alphanumeric() && c != '_').next().map(str::to_owned);
    let own =
        |line: &str| word(line).is_some_and(|word| OWN.contains(&word.as_str())) && line.contains(['{', '=', '.']);
    if lines().any(own) {
        return None;
    }
    let of = |language: &Foreign, line: &str| {
        let begins = |start: &str| {
            let whole = !start.ends_with(|c: char| c.is_alphanumeric());
            line.strip_prefix(start)
                .is_some_and(|rest| whole || !rest.starts_with(|c: char| c.is_alphanumeric() || c == '_'))
        };
        language.lines.iter().any(|start| begins(start))
    };
    let language = LANGUAGES.iter().find(|l| {
        let first = lines().next().is_some_and(|line| of(l, line));
        (l.enough > 1 || first) && lines().filter(|line| of(l, line)).take(l.enough).count() == l.enough
    })?;
    let first = lines().next()?;
    let start = text.find(first)?;
    let shown: usize = first.trim_end().chars().take(60).map(char::len_utf8).sum();
    let span = Span::new(file, start, start + shown);
    let message = format!("this looks like {}", language.name);
    Some(
        Diagnostic::new(Code::Syntax, span, message, "not a model of this language")
            .help(language.help)
            .help("`Coming from another simulator` in `grammar/README.md` has them side by side"),
    )
}
