//! What can be wrong with populations, values per cell and inputs of a network.

use crate::diag::{Code, Diagnostic, nearest};
use crate::hir::place::Place;
use crate::hir::{Cell, PortKind, SymbolKind};
use crate::source::Span;
use crate::syntax::ast::Name;

/// What is wrong with a network.
pub(in crate::hir) enum NetworkError<'e> {
    /// A clamp has a current, not a voltage.
    ClampOfCurrent { clamp: &'e Name, value: &'e str, span: Span },
    /// It has no population.
    NoPopulation { network: &'e Name, cell: &'e str },
    /// A population has too many sizes.
    Dimensions { count: usize, span: Span },
    /// A size is no count.
    Size { value: f64, span: Span },
    /// A size depends on something that is known while the model runs.
    SizeNotConstant { what: &'static str, span: Span },
    /// A random draw behind `=`.
    DrawWithoutTilde { span: Span },
    /// `~` without a random draw.
    TildeWithoutDraw { span: Span },
    /// An initial value of a state that each synapse has for itself.
    OfEachSynapse { synapse: &'e str, name: &'e str, span: Span },
    /// Something of a receptor is set by a path to synapses.
    OfReceptor { name: &'e str, path: &'e str, wanted: &'static str, span: Span },
    /// A parameter of a receptor is set, and all lines through it say it for their own synapses.
    SaidByAllLines { synapse: &'e str, span: Span, line: Span },
    /// A parameter or an initial value is set twice.
    SetTwice { target: &'e str, again: Span, first: Span },
    /// An input leads to something that it cannot drive.
    NotDriven { input: &'e Name, cell: &'e Cell, place: &'e Place<'e> },
    /// A clamp leads to something that it cannot hold.
    NotClamped { clamp: &'e Name, cell: &'e Cell, place: &'e Place<'e> },
    /// An electrode leads to something that has no voltage.
    NoVoltage { clamp: &'e Name, span: Span },
    /// An initial value of a state that is held.
    HeldFromTheStart { clamp: &'e str, init: Span, held: Span },
    /// An input is the current of a cell that does not read it.
    CurrentNotRead { input: &'e Name, cell: &'e str, span: Span },
    /// Cells are chosen behind two names of a path.
    ChosenTwice { again: Span, first: Span },
    /// A line gives a value to all cells, some of which a line before has given another.
    SetByAll { target: &'e str, lost: Span, all: Span },
    /// Two clamps hold one state.
    ClampedTwice { target: &'e str, again: Span, first: Span },
    /// A current is injected where only its density is of use.
    NoArea { compartment: &'e str, span: Span },
}

impl From<NetworkError<'_>> for Diagnostic {
    fn from(error: NetworkError<'_>) -> Diagnostic {
        use NetworkError as E;
        match error {
            E::ClampOfCurrent { clamp, value, span } => {
                Diagnostic::new(Code::DimensionMismatch, span, "a clamp holds a voltage, not a current", "a current")
                    .help(format!("a current is injected by an input: `input {}: {value} -> ...`", clamp.text))
            }
            E::NoPopulation { network, cell } => {
                let message = format!("network `{}` has no population", network.text);
                Diagnostic::new(Code::NoNetwork, network.span, message, "nothing to run")
                    .help(format!("add `population cells: {cell}[10]`"))
            }
            E::Dimensions { count, span } => {
                let message = "a population has one to three dimensions";
                Diagnostic::new(Code::BadValue, span, message, format!("{count} sizes"))
            }
            E::Size { value, span } => {
                let message = format!("a population cannot have {value} cells");
                Diagnostic::new(Code::BadValue, span, message, "a whole number from 1 on is needed")
            }
            E::SizeNotConstant { what, span } => {
                let message = format!("the size of a population cannot depend on {what}");
                Diagnostic::new(Code::NotConstant, span, message, "not known before the run")
                    .help("use a `param` of the network")
            }
            E::DrawWithoutTilde { span } => {
                let message = "a random value is written with `~`";
                Diagnostic::new(Code::BadRandom, span, message, "this is a random draw")
                    .help("write `~` instead of `=`")
            }
            E::TildeWithoutDraw { span } => {
                let label = "the same number for every cell";
                Diagnostic::new(Code::BadRandom, span, "`~` needs a random draw", label)
                    .help("write `=` instead of `~`, or draw: `~ normal(mean, sd)`")
            }
            E::OfEachSynapse { synapse, name, span } => {
                let message = format!("`{name}` belongs to each synapse, and begins with what `{synapse}` says");
                Diagnostic::new(Code::BadTarget, span, message, "what a network sets is of cells")
                    .help(format!("a line of connections says where its own begin: `connect ... {{ {name} = ... }}`"))
            }
            E::OfReceptor { name, path, wanted, span } => {
                let message = format!("the {wanted} `{name}` is of the cells behind the synapses, whoever sends");
                Diagnostic::new(Code::BadTarget, span, message, "the path begins with two populations")
                    .help(format!("write `{path}`"))
            }
            E::SaidByAllLines { synapse, span, line } => {
                let message = format!("every connection through `{synapse}` has a value of its own for this");
                Diagnostic::new(Code::NoEffect, span, message, "no synapse has this value").see(line, "said here")
            }
            E::SetTwice { target, again, first } => {
                Diagnostic::new(Code::DuplicateKey, again, format!("`{target}` is set twice"), "set again")
                    .see(first, "first set here")
            }
            E::NotDriven { input, cell, place } => not_driven(input, cell, place),
            E::NotClamped { clamp, cell, place } => not_clamped(clamp, cell, place),
            E::NoVoltage { clamp, span } => {
                let message = format!("`{}` has an electrode, and here is no compartment", clamp.text);
                Diagnostic::new(Code::BadTarget, span, message, "has no voltage of its own")
                    .help("lead it to a compartment")
            }
            E::HeldFromTheStart { clamp, init, held } => {
                let message = "this initial value has no effect";
                Diagnostic::new(Code::NoEffect, init, message, format!("`{clamp}` holds the state from the start"))
                    .see(held, "held here")
            }
            E::CurrentNotRead { input, cell, span } => {
                let message = format!("`{}` does nothing to cell `{cell}`", input.text);
                Diagnostic::new(Code::NoEffect, span, message, "the cell does not read `i_syn`").help(
                    "`i_syn` is the sum of all currents out of a point neuron, and those of inputs flow in: `v' = (-g_l * (v - e_l) - i_syn) / c`",
                )
            }
            E::ChosenTwice { again, first } => {
                Diagnostic::new(Code::BadTarget, again, "the cells of a path are chosen once", "chosen again")
                    .see(first, "first chosen here")
            }
            E::SetByAll { target, lost, all } => {
                let message = format!("`{target}` has another value: a later line gives one to all cells");
                Diagnostic::new(Code::NoEffect, lost, message, "this does nothing")
                    .see(all, "all cells have this")
                    .help("write the line for all cells first")
            }
            E::ClampedTwice { target, again, first } => {
                Diagnostic::new(Code::DuplicateKey, again, format!("`{target}` is clamped twice"), "clamped again")
                    .see(first, "first clamped here")
            }
            E::NoArea { compartment, span } => {
                let message = format!("a current is injected, but compartment `{compartment}` has no `area`");
                Diagnostic::new(Code::MissingKey, span, message, "a current (nA)")
                    .help("give the compartment an `area`, or the input as a density, such as `10 uA/cm2`")
            }
        }
    }
}

fn not_driven(input: &Name, cell: &Cell, place: &Place<'_>) -> Diagnostic {
    let (population, rest) = (&place.names[0].text, place.rest.as_str());
    let message = match rest.is_empty() {
        true => format!("which compartment of `{population}` does `{}` drive?", input.text),
        false => format!("`{rest}` is not something an input can drive"),
    };
    let label = "an input drives a compartment or an `input` port";
    let d = Diagnostic::new(Code::BadTarget, place.rest_span, message, label);
    let declared = cell.symbols.iter().filter(|s| matches!(s.kind, SymbolKind::Port(PortKind::Declared)));
    let ports = cell.compartments.iter().map(|c| c.name.as_str()).chain(declared.map(|s| s.name.as_str()));
    let ports: Vec<&str> = ports.collect();
    let inner = rest.split('.').next().unwrap_or("");
    match nearest(rest, ports.iter().copied()) {
        Some(near) => d.help(format!("did you mean `{population}.{near}`?")).fix(place.rest_span, rest, near),
        None if ports.contains(&inner) => d.help(format!("drive the compartment: `{population}.{inner}`")),
        None if ports.is_empty() => d.help(format!("drive the neuron: `-> {population}`")),
        None => d.note(format!("cell `{}` has {}", cell.name, ports.join(", "))),
    }
}

fn not_clamped(clamp: &Name, cell: &Cell, place: &Place<'_>) -> Diagnostic {
    let (population, rest) = (&place.names[0].text, place.rest.as_str());
    let message = match rest.is_empty() {
        true => format!("what of `{population}` does `{}` hold?", clamp.text),
        false => format!("`{rest}` is not something a clamp can hold"),
    };
    let label = "a clamp holds the voltage of a compartment, or a state";
    let d = Diagnostic::new(Code::BadTarget, place.rest_span, message, label);
    let states = cell.symbols.iter().filter(|s| matches!(s.kind, SymbolKind::State { .. })).map(|s| s.name.as_str());
    let known: Vec<&str> = cell.compartments.iter().map(|c| c.name.as_str()).chain(states).collect();
    match nearest(rest, known.iter().copied()) {
        Some(near) => d.help(format!("did you mean `{population}.{near}`?")).fix(place.rest_span, rest, near),
        None => d.note(format!("cell `{}` has {}", cell.name, known.join(", "))),
    }
}
