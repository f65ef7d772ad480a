//! What can be wrong with the keys of a block.

use crate::diag::{Code, Diagnostic, nearest};
use crate::hir::keys::Block;
use crate::source::Span;
use crate::syntax::ast::Name;

/// What is wrong with a key.
pub(in crate::hir) enum KeyError<'e> {
    /// The block has no such key, nor does it stand for one of the names that are written like keys.
    Unknown { block: Block, key: &'e Name, names: &'e [String] },
    /// The block has it already.
    Repeated { key: &'e str, again: Span, first: Span },
}

impl From<KeyError<'_>> for Diagnostic {
    fn from(error: KeyError<'_>) -> Diagnostic {
        use KeyError as E;
        match error {
            E::Unknown { block, key, names } => unknown(block, key, names),
            E::Repeated { key, again, first } => {
                Diagnostic::new(Code::DuplicateKey, again, format!("`{key}` is given twice"), "given again")
                    .see(first, "first given here")
            }
        }
    }
}

fn unknown(block: Block, key: &Name, names: &[String]) -> Diagnostic {
    let written = |form: &str| format!("it is written `{form}`");
    if let Some(form) = block.form(&key.text) {
        let message = format!("`{}` has no `=` in {}", key.text, block.describe());
        return Diagnostic::new(Code::UnknownKey, key.span, message, "not a key").help(written(form));
    }
    let message = format!("{} has no `{}`", block.describe(), key.text);
    let d = Diagnostic::new(Code::UnknownKey, key.span, message, "no such key");
    let known = || block.keys().iter().copied().chain(names.iter().map(String::as_str));
    match elsewhere(block, &key.text).or_else(|| nearest(&key.text, known())) {
        Some(near) => match block.form(near) {
            Some(form) => d.help(written(form)),
            None => d.did_you_mean(&key.text, near),
        },
        None => match (block, key.text.as_str()) {
            (Block::Compartment, "diam" | "length" | "L" | "radius" | "nseg" | "ra" | "Ra") => d.help(
                "a compartment has a surface, `area = 1000 um2`, and no shape; a cable is a `section dend { length = 200 um; diam = 2 um }`",
            ),
            (Block::Section, "cm" | "ra" | "Ra" | "v_init" | "g_pas" | "e_pas") => {
                d.help("the membrane of sections stands in a region: `region dend { cm = 1 uF/cm2 }`")
            }
            (Block::Section, "radius" | "r") => d.help("its thickness is the diameter: `diam = 2 um`"),
            (Block::Region, "g_pas" | "e_pas" | "gbar" | "erev") => {
                d.help("a leak is a channel: `insert Leak(gbar = 0.05 mS/cm2, erev = -65 mV)`")
            }
            (Block::Run, "every" | "from" | "to") => d.help(format!(
                "it belongs to a `record` line, where it has no `=`: `record cells.v {} 1 ms`",
                key.text
            )),
            (Block::Projection, "p" | "probability") => d.help("it is an argument of a rule: `rule = probability(p = 0.1)`"),
            (Block::Projection, "autapses" | "allow_autapses" | "multapses" | "allow_multapses") => d.help(
                "it is an argument of a rule: `fixed_in_degree(n = 10, autapses = true, multapses = true)`, of `fixed_out_degree`, too; otherwise only `edges`, `one_to_one`, `fixed_total_number` and windows connect cells with themselves, and only `edges`, `fixed_total_number` and `convolution` twice",
            ),
            (Block::Population, name) => {
                let help = format!("a parameter of its cells has a line of its own in the network: `param cells.{name} = ...`");
                d.note(format!("it can have {}", block.keys().join(", "))).help(help)
            }
            _ => d.note(format!("it can have {}", known().collect::<Vec<_>>().join(", "))),
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
        (Block::Section, "l" | "len") => "length",
        (Block::Section, "d" | "diameter") => "diam",
        (Block::Section, "nseg" | "n_seg" | "segments" | "ncomp") => "compartments",
        (Block::Section, "parent" | "connect" | "attach") => "from",
        (Block::Region, "v0" | "e_m" | "vinit" | "v_rest") => "v_init",
        (Block::Region, "c" | "c_m" | "capacitance") => "cm",
        (Block::Region, "r_a" | "ri" | "resistivity" | "axial_resistance") => "ra",
        (Block::Population, "distance" | "step" | "pitch" | "grid_spacing" | "dx") => "spacing",
        (Block::Projection, "w" | "g" | "gbar" | "conductance" | "strength") | (Block::Drive, "w" | "g") => "weight",
        (Block::Projection | Block::Drive, "d" | "latency" | "syn_delay") => "delay",
        (Block::Projection, "dendritic_delay_fraction" | "dendritic" | "dendritic_delay") => "dendritic_fraction",
        (Block::Projection | Block::Junction, "pattern" | "conn_spec" | "connectivity") => "rule",
        (Block::Probe, "conductivity" | "cond" | "s") => "sigma",
        (Block::Probe, "method" | "kernel" | "sources") => "source",
        (Block::Probe, "contact" | "position" | "points" | "x") => "at",
        (Block::Section, "direction" | "to" | "axis") => "toward",
        (Block::Run, "tstop" | "t_stop" | "tend" | "t_end" | "length" | "time" | "stop") => "duration",
        (Block::Run, "step" | "timestep" | "time_step" | "delta_t") => "dt",
        (Block::Run, "temperature" | "temp" | "temperature_c") => "celsius",
        (Block::Run, "solver" | "integrator" | "integration") => "method",
        (Block::Run, "random_seed" | "rng") => "seed",
        _ => return None,
    })
}
