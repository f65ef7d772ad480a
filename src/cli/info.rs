//! `neuroc info`.

use super::settings::{ModelSettings, PassSettings, PrecisionName};
use super::{Exit, blamed, deliver, memory, report};
use crate::diag::Diagnostic;
use crate::driver::{self, Checked, CompileOptions, Draft};
use crate::hir::{Cell, Morphology, SymbolKind, shown};
use crate::morphology::Tree;
use crate::ode;
use crate::passes::Backend;
use crate::simulate::{self, Grid};
use crate::units::Dim;
use std::fmt::Write;
use std::path::PathBuf;

/// Tell how large a model is.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example: neuroc info examples/ball_and_stick.neuro")]
pub struct Args {
    /// A model file; - is standard input
    #[arg(value_name = "FILE")]
    file: PathBuf,
    #[command(flatten)]
    settings: ModelSettings,
    #[command(flatten)]
    opt: PassSettings,
}

/// Prints the populations of a model with the shapes and time constants of their cells, and what a run takes.
pub fn run(args: &Args) -> Exit {
    let checked = super::check(&args.file);
    let options = match args.settings.options(&args.opt, PrecisionName::F64, Backend::Native) {
        Ok(options) => options,
        Err(exit) => return exit,
    };
    match told(&checked, &options) {
        Ok(text) => {
            report(&checked.sources, &checked.diagnostics);
            deliver(&text, None)
        }
        Err(errors) => blamed(&checked, &options, &errors),
    }
}

fn told(checked: &Checked, options: &CompileOptions) -> Result<String, Vec<Diagnostic>> {
    let Some(model) = &checked.model else { return Err(checked.diagnostics.clone()) };
    let draft = Draft::new(driver::compile(checked, options, &mut |_, _, _| {})?)?;
    let (flat, extent) = (&draft.compiled.ode, &draft.extent);
    let mut out = String::new();
    let constants = ode::time_constants(flat);
    let populations = model.network.iter().flat_map(|n| &n.populations).enumerate();
    for (at, population) in populations {
        let cell = &model.cells[population.cell];
        let cells = extent.cells[at];
        let noun = if cells == 1 { "cell" } else { "cells" };
        let _ = writeln!(out, "{}: {cells} {noun} {}", population.name, cell.name);
        let cable = flat.cables.iter().find(|cable| flat.cells_of(cable.population) == at);
        if let (Some(morphology), Some(cable)) = (&cell.morphology, cable) {
            geometry(&mut out, morphology);
            electrotonic(&mut out, flat, cable, &morphology.tree, cells);
        } else {
            states(&mut out, flat, &constants, at, cell);
        }
    }
    let (connections, exact) = simulate::connections(flat, extent);
    if connections > 0.0 {
        let about = if exact { "" } else { "about " };
        let noun = if connections == 1.0 { "connection" } else { "connections" };
        let _ = writeln!(out, "{about}{connections:.0} {noun}");
    }
    let Grid { dt, steps } = extent.grid;
    let duration = simulate::moment(steps, dt);
    let (cells, records) = draft.memory(PrecisionName::F64.into(), Backend::Native);
    let [cells, records] = [cells, records].map(memory::told);
    let _ = writeln!(
        out,
        "a run of {duration} ms takes {steps} steps of {dt} ms, about {cells} of memory for its cells, and {records} for what it records"
    );
    Ok(out)
}

/// How many states a cell without sections has, and the time constants that they begin with.
fn states(out: &mut String, model: &ode::Model, constants: &[(ode::StateId, f64)], population: usize, cell: &Cell) {
    const MOST: usize = 8;
    let count = cell.symbols.iter().filter(|s| matches!(s.kind, SymbolKind::State { .. })).count();
    let noun = if count == 1 { "state" } else { "states" };
    let prefix = format!("{}.", model.populations[population].name);
    let known = constants.iter().filter_map(|&(id, tau)| {
        let state = model.state(id);
        let own = state.population == population && state.edges.is_none() && !state.name.contains('\'');
        let name = state.name.strip_prefix(&prefix).filter(|_| own)?;
        Some(format!("{name} {}", shown(format!("{tau:.2e}").parse().unwrap_or(tau), &Dim::TIME.display_unit())))
    });
    let known: Vec<String> = known.collect();
    let more = if known.len() > MOST { ", ..." } else { "" };
    let told = known.iter().take(MOST).cloned().collect::<Vec<_>>().join(", ");
    let told = if known.is_empty() { told } else { format!("; time constants at the start: {told}{more}") };
    let _ = writeln!(out, "    {count} {noun}{told}");
}

/// Sections, compartments, lengths and areas, by what sections are called.
fn geometry(out: &mut String, morphology: &Morphology) {
    let tree = &morphology.tree;
    if let Some(file) = &morphology.file {
        let _ = writeln!(out, "    shape: {}", file.name);
        let _ = writeln!(out, "    soma: {}", file.soma.describe());
        if !file.doubled.is_empty() {
            let lines: Vec<String> = file.doubled.iter().take(10).map(ToString::to_string).collect();
            let more = if file.doubled.len() > lines.len() { ", ..." } else { "" };
            let _ = writeln!(out, "    points at the place of their parent: lines {}{more}", lines.join(", "));
        }
    }
    let mut regions: Vec<(&str, [usize; 2], [f64; 2])> = Vec::new();
    for section in &tree.sections {
        let name = section.name.split('[').next().unwrap_or(&section.name);
        let at = regions.iter().position(|r| r.0 == name).unwrap_or_else(|| {
            regions.push((name, [0; 2], [0.0; 2]));
            regions.len() - 1
        });
        let elements = section.first..section.first + section.count;
        let (_, counts, sizes) = &mut regions[at];
        counts[0] += 1;
        counts[1] += section.count;
        sizes[0] += tree.length[elements.clone()].iter().sum::<f64>();
        sizes[1] += tree.area[elements].iter().sum::<f64>();
    }
    if let [_, _, ..] = regions[..] {
        let all = regions
            .iter()
            .fold(([0; 2], [0.0; 2]), |(n, x), r| ([n[0] + r.1[0], n[1] + r.1[1]], [x[0] + r.2[0], x[1] + r.2[1]]));
        regions.push(("all", all.0, all.1));
    }
    let width = regions.iter().map(|r| r.0.len()).max().unwrap_or(0).max("region".len());
    let _ = writeln!(out, "    {:<width$}  sections  compartments  length (um)  area (um2)", "region");
    for (name, [sections, compartments], [length, area]) in regions {
        // From cm.
        let (length, area) = (format!("{:.1}", length * 1e4), format!("{:.1}", area * 1e8));
        let _ = writeln!(out, "    {name:<width$}  {sections:>8}  {compartments:>12}  {length:>11}  {area:>10}");
    }
}

/// What a small current in the middle of the root section would meet if gates stayed where they begin.
fn electrotonic(out: &mut String, model: &ode::Model, cable: &ode::Cable, tree: &Tree, cells: usize) {
    let passive = ode::Passive::of(model, cable);
    // The middle of the root section.
    let root = &tree.sections[tree.section[0] as usize];
    let middle = root.at(0.5);
    let known = passive.as_ref().and_then(|p| Some((p, p.input_resistance(tree, middle)?, p.electrotonic(tree)?)));
    let Some((passive, resistance, lengths)) = known else {
        let nothing = passive.is_some_and(|p| p.conductance.iter().all(|&g| g == 0.0));
        let why = if nothing {
            "nothing leaks through the membrane"
        } else {
            "before the first step the membrane is not passive"
        };
        let _ = writeln!(out, "    no input resistance: {why}");
        return;
    };
    let place = tree.name(middle);
    let tau = passive.capacitance[middle] / passive.conductance[middle];
    let whose = if cells > 1 { "of the first cell, " } else { "" };
    let _ = writeln!(out, "    {whose}with gates held where they begin:");
    let _ = writeln!(out, "    input resistance at {place}: {:.2} Mohm", resistance * 1e-3);
    let _ = writeln!(out, "    membrane time constant at {place}: {tau:.2} ms");
    // The way from the first compartment to each element, from middle to middle. What begins in the middle of one passes nothing of it.
    let mut ways = vec![0.0; tree.len()];
    for e in 1..tree.len() {
        let parent = tree.parents[e] as usize;
        let half = if tree.far[e] > 0.0 { 0.5 * lengths[parent] } else { 0.0 };
        ways[e] = ways[parent] + half + 0.5 * lengths[e];
    }
    // Where the way from the first compartment leaves the one from there to the middle: both lie in a row.
    let leaves = |mut e: usize| {
        while e > middle {
            e = tree.parents[e] as usize;
        }
        e
    };
    let end = |e: usize| ways[e] + ways[middle] - 2.0 * ways[leaves(e)] + 0.5 * lengths[e];
    let all = (middle..tree.len()).chain(0..middle);
    let farthest = all.fold(middle, |a, b| if end(b) > end(a) { b } else { a });
    let section = &tree.sections[tree.section[farthest] as usize].name;
    let side = u8::from(farthest >= middle);
    let _ = writeln!(out, "    electrotonic length: {:.3} from there to {section}({side})", end(farthest));
}
