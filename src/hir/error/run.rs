//! What can be wrong with a run.

use super::instead;
use crate::diag::{Code, Diagnostic, nearest};
use crate::hir::run::LARGEST_SEED;
use crate::hir::{Arrivals, Cell, Coincident, Method};
use crate::source::Span;

/// What is wrong with a run block, or with what it runs.
pub(in crate::hir) enum RunError<'e> {
    /// What edges have is recorded, and others through the same synapse are not.
    OneOfSeveral { line: &'e str, others: &'e [&'e str], span: Span, other: Span },
    /// There are two.
    TwoRuns { second: Span, first: Span },
    /// Nothing can be run; the file may define a cell.
    NoNetwork { cell: Option<&'e str>, run: Span },
    /// It does not say which network.
    WhichNetwork { known: &'e [&'e str], run: Span },
    /// `network` is not a name.
    NotANetwork { span: Span },
    /// No network has the name.
    UnknownNetwork { name: &'e str, known: &'e [&'e str], span: Span },
    /// A key is missing.
    NoKey { key: &'static str, example: &'static str, run: Span },
    /// A time is not above zero.
    NotPositive { key: &'static str, example: &'static str, value: f64, span: Span },
    /// The step is longer than the run: times in ms, with their places.
    LongStep { dt: (f64, Span), duration: (f64, Span) },
    /// The seed is no whole number, or too large.
    Seed { value: f64, span: Span },
    /// A value is NaN or infinite.
    NotFinite { what: &'e str, span: Span },
    /// A value is not known before the run.
    NotConstant { what: &'e str, span: Span },
    /// No method has the name.
    UnknownMethod { name: &'e str, span: Span },
    /// Events arrive at no moment of that name.
    UnknownArrivals { name: &'e str, span: Span },
    /// Nothing of that name can come first at a synapse.
    UnknownCoincident { name: &'e str, span: Span },
    /// The run has no `record` line.
    RecordsNothing { population: &'e str, place: Option<String>, run: Span },
    /// A recording interval is not above zero.
    Interval { span: Span },
    /// A time window of a record begins before the run or after its own end (ms).
    Window { first: f64, last: f64, span: Span },
    /// A time window begins after the end of the run (ms).
    AfterTheRun { first: f64, duration: f64, span: Span },
    /// The current of a clamp where nothing is clamped.
    NoClamp { quantity: &'e str, compartment: &'e str, span: Span },
    /// The same at a place without an electrode.
    NoElectrode { compartment: &'e str, span: Span },
    /// The current through gap junctions where there are none.
    NoJunctions { compartment: &'e str, span: Span },
    /// A quantity is recorded twice.
    RecordedTwice { quantity: &'e str, again: Span, first: Span },
    /// Two places of a section are the same compartment.
    OneCompartment { quantity: &'e str, compartment: &'e str, again: Span, first: Span },
    /// The edges of a projection have nothing of this name.
    NotOfEdges { edges: &'e str, name: &'e str, known: &'e [&'e str], span: Span },
    /// Edges are named without their synapse, or without its place: what may be meant.
    PathOfEdges { meant: &'e [String], span: Span },
    /// Edges are named that there are not: what lines join the two populations, and what the cells behind have of the name.
    NoSuchEdges { ends: [&'e str; 2], known: &'e [&'e str], of_cells: Option<String>, span: Span },
    /// Some of the synapses of a line are chosen.
    SomeEdges { edges: &'e str, span: Span },
    /// What a cell sends is looked for in the cell that gets it.
    OfTheSender { quantity: &'e str, sender: &'e str, span: Span },
    /// Spikes are to be recorded of a part of a population.
    SpikesOfPart { population: &'e str, span: Span },
    /// Something is recorded around the spikes of a part of cells.
    AroundPart { population: &'e str, span: Span },
    /// Something is recorded around the spikes of several populations.
    AroundSeveral { span: Span },
    /// It is not said from when, or to when, counted from a spike.
    AroundWhen { missing: &'e str, span: Span },
    /// A window around spikes ends before it begins (ms).
    AroundWindow { first: f64, last: f64, span: Span },
    /// Spikes are to be recorded of cells that have none.
    NoSpikes { cell: &'e Cell, span: Span },
}

impl From<RunError<'_>> for Diagnostic {
    fn from(error: RunError<'_>) -> Diagnostic {
        use RunError as E;
        match error {
            E::TwoRuns { second, first } => {
                Diagnostic::new(Code::DuplicateKey, second, "there are two `run` blocks", "the second")
                    .see(first, "the first")
            }
            E::NoNetwork { cell, run } => {
                let cell = cell.unwrap_or("Cell");
                Diagnostic::new(Code::NoNetwork, run, "there is no network to run", "this block needs one")
                    .help(format!("add `network main {{ population cells: {cell}[1] }}`"))
            }
            E::WhichNetwork { known, run } => {
                let keys: Vec<String> = known.iter().map(|name| format!("`network = {name}`")).collect();
                Diagnostic::new(Code::NoNetwork, run, "which network shall run?", "there are several")
                    .help(format!("add {}", keys.join(" or ")))
            }
            E::NotANetwork { span } => {
                Diagnostic::new(Code::BadTarget, span, "`network` needs the name of a network", "not a name")
            }
            E::UnknownNetwork { name, known, span } => unknown_network(name, known, span),
            E::NoKey { key, example, run } => {
                Diagnostic::new(Code::MissingKey, run, format!("the run has no `{key}`"), "in this block")
                    .help(format!("add `{example}`"))
            }
            E::NotPositive { key, example, value, span } => {
                let label = if value == 0.0 { "this is zero" } else { "this is negative" };
                let what = if example.ends_with("ms") { "a time" } else { "a number" };
                Diagnostic::new(Code::BadValue, span, format!("`{key}` must be {what} above zero"), label)
                    .help(format!("for example `{example}`"))
            }
            E::LongStep { dt, duration } => {
                let message = "the time step is longer than the run";
                Diagnostic::new(Code::BadValue, dt.1, message, format!("{} ms", dt.0))
                    .see(duration.1, format!("{} ms", duration.0))
                    .help("was another unit meant, such as `us`?")
            }
            E::Seed { value, span } => {
                let message = format!("the seed cannot be {value}");
                if value > LARGEST_SEED {
                    let label = format!("the largest that a file says is {LARGEST_SEED}");
                    let d = Diagnostic::new(Code::BadValue, span, message, label);
                    return d.help("leave it out, and give it on the command line: `--seed`");
                }
                Diagnostic::new(Code::BadValue, span, message, "a whole number from 0 on is needed")
            }
            E::NotFinite { what, span } => {
                let message = format!("{what} is not a finite number");
                Diagnostic::new(Code::BadValue, span, message, "a division by zero, or too large")
            }
            E::NotConstant { what, span } => {
                Diagnostic::new(Code::NotConstant, span, format!("{what} must be a number"), "not known before the run")
                    .help("use numbers and constants only; `neuroc run` can override it from outside")
            }
            E::UnknownMethod { name, span } => unknown_method(name, span),
            E::UnknownArrivals { name, span } => {
                let message = format!("events cannot arrive `{name}`");
                let known = Arrivals::ALL.iter().map(|(_, name)| *name);
                let hints = [
                    ("brian", "after_threshold"),
                    ("after", "after_threshold"),
                    ("nest", "before_threshold"),
                    ("before", "before_threshold"),
                ];
                let note = "there are before_threshold and after_threshold: as in NEST, and as in Brian2";
                unknown_setting((name, span), message, known, &hints, note)
            }
            E::UnknownCoincident { name, span } => {
                let message = format!("spikes that reach a synapse at the same time cannot be `{name}`");
                let known = Coincident::ALL.iter().map(|(_, name)| *name);
                let hints = [("brian", "pre_first"), ("pre", "pre_first"), ("nest", "apart"), ("post", "post_first")];
                let note =
                    "there are pre_first as in Brian2, post_first, and apart as in NEST, where such spikes are no pair";
                unknown_setting((name, span), message, known, &hints, note)
            }
            E::RecordsNothing { population, place, run } => {
                let v = place.map_or("v".to_string(), |place| format!("{place}.v"));
                Diagnostic::new(Code::NothingRecorded, run, "this run records nothing", "no `record` line")
                    .help(format!("add `record {population}.{v} every 0.1 ms`"))
            }
            E::Interval { span } => {
                let message = "the recording interval must be positive";
                Diagnostic::new(Code::BadValue, span, message, "a time above zero is needed")
            }
            E::Window { first, last, span } => {
                let message = format!("a record cannot go from {first} ms to {last} ms");
                Diagnostic::new(Code::BadValue, span, message, "no such time window").help(
                    "a window begins at 0 ms or later, and ends after that: `record p.soma.v from 100 ms to 200 ms`",
                )
            }
            E::AfterTheRun { first, duration, span } => {
                let message = format!("nothing is recorded: the run ends at {duration} ms, before {first} ms");
                Diagnostic::new(Code::NoEffect, span, message, "this window is not reached")
            }
            E::NoClamp { quantity, compartment, span } => {
                let message = format!("nothing clamps the voltage of `{compartment}`");
                Diagnostic::new(Code::BadTarget, span, message, format!("`{quantity}` is the current of a clamp"))
                    .help(format!("add `clamp hold: -60 mV -> {compartment}` to the network"))
            }
            E::NoElectrode { compartment, span } => {
                let message = format!("nothing clamps the voltage of `{compartment}`");
                Diagnostic::new(Code::BadTarget, span, message, "`i_clamp` is the current through an electrode")
                    .help(format!("add `clamp hold: -60 mV via 1 Mohm -> {compartment}` to the network"))
            }
            E::NoJunctions { compartment, span } => {
                let message = format!("no gap junctions join `{compartment}`");
                Diagnostic::new(Code::BadTarget, span, message, "`i_gap` is the current through gap junctions")
                    .help(format!("add `connect {compartment} -- {compartment} via Gap {{ ... }}` to the network"))
            }
            E::RecordedTwice { quantity, again, first } => {
                Diagnostic::new(Code::DuplicateKey, again, format!("`{quantity}` is recorded twice"), "again")
                    .see(first, "first here")
            }
            E::OneCompartment { quantity, compartment, again, first } => {
                let message = format!("`{quantity}` of one compartment is recorded twice");
                Diagnostic::new(Code::DuplicateKey, again, message, format!("in the compartment {compartment}, too"))
                    .see(first, "first here")
            }
            E::OneOfSeveral { line, others, span, other } => {
                let message = format!("`{line}` is one of {} lines through this synapse", others.len() + 1);
                Diagnostic::new(Code::OneOfSeveral, span, message, "the connections of one line are recorded here")
                    .see(other, "this line connects the same cells")
                    .help(format!(
                        "record {}, too",
                        others.iter().map(|o| format!("`{o}`")).collect::<Vec<_>>().join(" and ")
                    ))
            }
            E::NotOfEdges { edges, name, known, span } => {
                let message = format!("the synapses `{edges}` have no `{name}` for themselves");
                let d = Diagnostic::new(Code::UnknownName, span, message, "nothing that they remember");
                match known {
                    [] => d.note(
                        "events change nothing of them; what all synapses of a cell share is recorded with the cell",
                    ),
                    known => instead(d, name, known),
                }
            }
            E::PathOfEdges { meant, span } => {
                let message = "what synapses have for themselves is named by the two populations and the synapse";
                let listed: Vec<String> = meant.iter().map(|path| format!("`{path}`")).collect();
                Diagnostic::new(Code::BadTarget, span, message, "not the whole name of a synapse")
                    .help(format!("write {}", listed.join(" or ")))
            }
            E::NoSuchEdges { ends: [from, to], known, of_cells, span } => {
                let message = format!("no synapses of this name lead from `{from}` to `{to}`");
                let d = Diagnostic::new(Code::BadTarget, span, message, "the path begins with two populations");
                match (of_cells, known) {
                    (Some(path), _) => d.help(format!("write `{path}`: the cells of `{to}` have it, whoever sends")),
                    (None, []) => d.help(format!("connect them: `connect {from} -> {to} via Synapse {{ ... }}`")),
                    (None, known) => d.note(format!("the lines between them are {}", known.join(", "))),
                }
            }
            E::SomeEdges { edges, span } => {
                let message = format!("all synapses of `{edges}` are recorded, or none");
                Diagnostic::new(Code::BadTarget, span, message, "brackets choose cells")
                    .help("leave the brackets out, and choose columns of the result")
            }
            E::OfTheSender { quantity, sender, span } => {
                let message = format!("`{quantity}` is of the cells before the synapse");
                Diagnostic::new(Code::BadTarget, span, message, "these are behind it").help(format!("write `{sender}`"))
            }
            E::SpikesOfPart { population, span } => {
                let message = "spikes are recorded of whole populations";
                Diagnostic::new(Code::BadTarget, span, message, "name the population only")
                    .help(format!("write `record spikes of {population}`"))
            }
            E::AroundPart { population, span } => Diagnostic::new(
                Code::BadTarget,
                span,
                "spikes are those of cells, not of their parts",
                "a part of cells",
            )
            .help(format!("write `around spikes of {population}`, or of one cell, `{population}[0]`")),
            E::AroundSeveral { span } => {
                let message = "one record goes around the spikes of one population";
                Diagnostic::new(Code::BadTarget, span, message, "several populations")
            }
            E::AroundWhen { missing, span } => {
                let message = format!("`{missing}` is missing: which times around a spike are recorded?");
                Diagnostic::new(Code::BadValue, span, message, "no such time window")
                    .help("say both ends, counted from the spike: `around spikes of p from -2 ms to 5 ms`")
            }
            E::AroundWindow { first, last, span } => {
                let message = format!("a record cannot go from {first} ms to {last} ms");
                Diagnostic::new(Code::BadValue, span, message, "it ends before it begins")
                    .help("`from` comes first: `around spikes of p from -2 ms to 5 ms`")
            }
            E::NoSpikes { cell, span } => {
                let message = format!("cell `{}` has no spike rule", cell.name);
                Diagnostic::new(Code::BadTarget, span, message, "there are no spikes to record")
                    .help(format!("add `{}` to the cell", spike_rule(cell)))
            }
        }
    }
}

/// A spike rule that a cell might have.
pub(super) fn spike_rule(cell: &Cell) -> String {
    let place = match (&cell.morphology, cell.compartments.first()) {
        (Some(morphology), _) => format!("{}(0.5).", morphology.tree.sections[0].name),
        (None, Some(compartment)) => format!("{}.", compartment.name),
        (None, None) => String::new(),
    };
    format!("spike when {place}v crosses 0 mV")
}

fn unknown_network(name: &str, known: &[&str], span: Span) -> Diagnostic {
    let message = format!("there is no network `{name}`");
    let d = Diagnostic::new(Code::BadTarget, span, message, "not defined in this file");
    match nearest(name, known.iter().copied()) {
        Some(near) => d.did_you_mean(name, near),
        None if known.is_empty() => d,
        None => d.note(format!("there is {}", known.join(", "))),
    }
}

/// A setting has no such word; one that has a hint in it, such as the name of another simulator, means what stands beside that.
fn unknown_setting(
    (name, span): (&str, Span),
    message: String,
    known: impl Iterator<Item = &'static str>,
    hints: &[(&str, &'static str)],
    note: &str,
) -> Diagnostic {
    let lower = name.to_lowercase();
    let hinted = hints.iter().find(|(hint, _)| lower.contains(hint)).map(|(_, meant)| *meant);
    let d = Diagnostic::new(Code::BadValue, span, message, "not known");
    let d = match hinted.or_else(|| nearest(&lower, known)) {
        Some(meant) => d.did_you_mean(name, meant),
        None => d,
    };
    d.note(note)
}

fn unknown_method(name: &str, span: Span) -> Diagnostic {
    let message = format!("there is no integration method `{name}`");
    let d = Diagnostic::new(Code::UnknownMethod, span, message, "not a method");
    let known: Vec<&str> = Method::ALL.iter().map(|m| m.1).collect();
    let meant = match name.to_lowercase().replace(['_', '-'], "").as_str() {
        "exponentialeuler" | "expeuler" => Some("exp_euler"),
        "derivimplicit" | "backwardeuler" | "implicit" | "impliciteuler" => Some("cnexp"),
        "cn" | "cranknicholson" | "cranknicolson" | "secondorder" | "trapezoidal" => Some("crank_nicolson"),
        "linear" | "analytic" | "exactintegration" => Some("exact"),
        "forwardeuler" | "eulerforward" => Some("euler"),
        "rungekutta" | "rungekutta4" | "rk" => Some("rk4"),
        _ => None,
    };
    let near = meant.or_else(|| nearest(name, known.iter().copied()));
    let d = near.into_iter().fold(d, |d, near| d.did_you_mean(name, near));
    d.note(format!("the methods are {}", known.join(", ")))
}
