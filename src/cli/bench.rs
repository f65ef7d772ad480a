//! `neuroc bench`.

use super::run::{More, Prepared, prepare};
use super::settings::{EngineName, EngineSettings, ModelSettings, PassSettings};
use super::{Exit, complain, deliver};
#[cfg(feature = "xla")]
use crate::codegen::plan::DevicePlan;
use crate::codegen::plan::cost::{Bytes, Cost, Degree, StepCost, Work, costs};
use crate::engine::limits::{self, Bound, Limits, Load, Wanted};
use crate::engine::{Edges, EngineError, Recording};
use crate::runtime::edges::{Relation, Targets, orders};
use crate::runtime::order::Arrangement;
use crate::step::Role;
use serde_json::{Value, json};
use std::fmt::Write;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

/// Measure how fast a model runs, and what on this machine keeps it from running faster.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example: neuroc bench examples/squid.neuro --set n=10000 --threads 1 --steps 4000")]
pub struct Args {
    /// A model file
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Steps of one repetition; by default as many as the run has
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    steps: Option<u64>,
    /// Repetitions after a warm-up; the best counts
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    repeat: u32,
    /// Print one line of JSON on stdout
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    settings: ModelSettings,
    #[command(flatten)]
    engine: EngineSettings,
    #[command(flatten)]
    opt: PassSettings,
}

/// Measures without recording, and prints the best of some repetitions beside what the machine allows.
pub fn run(args: &Args) -> Exit {
    match bench(args) {
        Ok(text) => deliver(&text, None),
        Err(exit) => exit,
    }
}

fn bench(args: &Args) -> Result<String, Exit> {
    let model = |error: EngineError| {
        complain(error);
        Exit::Model
    };
    let mut p = prepare(&args.file, &args.settings, &args.engine, &args.opt, args.json, More::default())?;
    if p.plan.is_none() {
        complain("there is no plan of this model, so that nothing says what its steps should cost");
        return Err(Exit::Model);
    }
    let steps = args.steps.unwrap_or(p.experiment.extent.grid.steps);
    let (seconds, visit) = measure(args, &mut p, steps).map_err(model)?;
    if !p.ready.engine.all_finite() {
        complain("a value became NaN or infinite while measuring; `neuroc run` tells which");
        return Err(Exit::Model);
    }
    let best = seconds.iter().copied().fold(f64::INFINITY, f64::min);
    let cells: usize = p.experiment.cells();
    let rate = cells as f64 * steps as f64 / best;
    let factor = steps as f64 * p.experiment.extent.grid.dt / 1e3 / best;
    let populations = populations(&p, steps.min(u64::from(args.opt.fuse)));
    let limits = match args.engine.engine {
        EngineName::Native => Some(machine(args, &p, &populations).map_err(model)?),
        // What holds the interpreter up is the interpreter; what holds XLA up is not measured here.
        EngineName::Interp => None,
        #[cfg(feature = "xla")]
        EngineName::Xla => None,
    };
    let m = Measured { steps, visit, seconds, best, cells, rate, factor, populations, limits };
    if args.json {
        return Ok(format!("{}\n", line(args, &p, &m)));
    }
    let mut out = String::new();
    // Writing to a string cannot fail.
    let _ = table(&mut out, args, &p, &m);
    Ok(out)
}

/// What was measured and counted.
struct Measured<'a> {
    steps: u64,
    /// Of them, how many an engine takes by itself that needs no host in between.
    visit: u64,
    seconds: Vec<f64>,
    best: f64,
    cells: usize,
    rate: f64,
    factor: f64,
    populations: Vec<Population<'a>>,
    limits: Option<Limits>,
}

impl Measured<'_> {
    /// Nanoseconds per cell-step.
    fn each(&self) -> f64 {
        1e9 / self.rate
    }

    /// The least nanoseconds per cell-step that each bound allows, and the largest of them.
    fn predictions(&self) -> Option<([Prediction; 5], Prediction)> {
        let loads: Vec<Load> = self.populations.iter().map(|population| population.load.clone()).collect();
        let all = self.limits.as_ref()?.predict(&loads).map(|(bound, seconds)| (bound, seconds * 1e9));
        let largest = all.into_iter().reduce(|a, b| if b.1 > a.1 { b } else { a })?;
        Some((all, largest))
    }
}

/// The least nanoseconds per cell-step that a bound allows.
type Prediction = (Bound, f64);

/// A population that takes steps.
struct Population<'a> {
    cost: Cost,
    /// How many steps are taken in one go.
    window: u32,
    load: Load,
    /// Bytes of one cell in memory.
    memory: f64,
    /// Its networks with their sizes.
    networks: Vec<(&'a Arc<Edges>, Degree)>,
}

/// What a step of each population does, where so many steps are asked for at once.
fn populations(p: &Prepared, steps: u64) -> Vec<Population<'_>> {
    // All populations go together.
    let kernels = p.plan().spaces.iter().flat_map(|space| &space.kernels).filter(|kernel| kernel.role == Role::Step);
    let window = kernels.map(|kernel| u64::from(kernel.window)).fold(steps, u64::min) as u32;
    let mut networks_before = 0;
    let population = |(space, cost): (usize, Cost)| {
        let plan = &p.plan().spaces[space];
        let (cells, block) = (p.experiment.extent.cells[space], plan.block as usize);
        let edges =
            plan.edges.iter().filter_map(|&number| p.experiment.setup.edges_of(p.plan().relation(number).space));
        let edges: Vec<&Arc<Edges>> = edges.collect();
        let grid = p.experiment.setup.grids.get(space).map_or(&[][..], |grid| grid);
        let relation = |(&number, edges): (&u32, &&Arc<Edges>)| {
            let within = p.plan().relation(number).is_within();
            Relation { from: usize::from(!within), to: 0, edges: Arc::clone(edges), numbers: Vec::new() }
        };
        let relations: Vec<Relation> = plan.edges.iter().zip(&edges).map(relation).collect();
        let orders = orders(Arrangement::default(), &relations, &[(cells, grid, block)]);
        let targets = Targets::new(&relations, 0, orders[0].as_ref());
        let networks = edges.into_iter().map(|edges| (edges, degree(&targets, edges, cells, block)));
        let networks: Vec<(&Arc<Edges>, Degree)> = networks.collect();
        let degrees: Vec<Degree> = networks.iter().map(|(_, degree)| *degree).collect();
        let threads = p.ready.threads;
        let load = Load {
            cells,
            busy_cells: cells.div_ceil(block).div_ceil(threads) * threads * block,
            step: cost.step(window, &degrees),
            networks: cost.edges.iter().map(|edge| (networks_before + edge.entry, edge.gathers)).collect(),
        };
        networks_before += networks.len();
        Population { memory: cost.memory(&degrees), cost, window, load, networks }
    };
    costs(p.plan()).into_iter().map(population).collect()
}

/// The size of the table that a kernel walks through.
fn degree(targets: &Targets, edges: &Edges, cells: usize, block: usize) -> Degree {
    let places = targets.table_places(edges, cells, block);
    Degree { edges: edges.sources.len() as f64 / cells as f64, places: places as f64 / cells as f64 }
}

/// What this machine can do.
fn machine(args: &Args, p: &Prepared, populations: &[Population]) -> Result<Limits, EngineError> {
    let draws = |population: &Population| population.load.step.done.draws() > 0.0;
    limits::measure(&Wanted {
        precision: p.plan().precision,
        native: args.engine.native(p.ready.threads),
        bytes: populations.iter().map(|population| population.memory * population.load.cells as f64).sum(),
        draws: populations.iter().any(draws),
        networks: populations.iter().flat_map(|population| &population.networks).map(|(edges, _)| *edges).collect(),
    })
}

fn line(args: &Args, p: &Prepared, m: &Measured) -> Value {
    let work = |work: &Work| {
        json!({
            "flops": work.flops,
            "exponentials": work.exponentials,
            "functions": work.functions,
            "divisions": work.divisions,
            "draws": work.draws(),
            "samples": work.samples,
        })
    };
    let population = |population: &Population| {
        let Population { cost, window, load, memory, networks } = population;
        let Load { cells, busy_cells: _, step, networks: _ } = load;
        let Bytes { loaded, stored, table, gathered, exchanged } = step.bytes;
        json!({
            "name": cost.space,
            "cells": cells,
            "steps_in_registers": if cost.fused { *window } else { 1 },
            "per_cell_step": work(&step.work),
            "per_cell_step_with_idle_lanes": work(&step.done),
            "bytes_per_cell_step": {
                "total": step.bytes.total(),
                "loaded": loaded,
                "stored": stored,
                "edge_table": table,
                "gathered": gathered,
                "exchanged": exchanged,
            },
            "flops_per_byte": intensity(step),
            "bytes_per_cell": memory,
            "edges_per_cell": networks.iter().map(|(_, degree)| degree.edges).collect::<Vec<_>>(),
            "edge_places_per_cell": networks.iter().map(|(_, degree)| degree.places).collect::<Vec<_>>(),
        })
    };
    let predictions = m.predictions().map(|(all, (largest, _))| {
        let named = |(bound, ns): &(Bound, f64)| (name(*bound).to_string(), json!(ns));
        json!({
            "ns_per_cell_step": all.iter().map(named).collect::<serde_json::Map<String, Value>>(),
            "nearest": name(largest),
        })
    });
    let machine = m.limits.as_ref().map(|limits| {
        json!({
            "operation_ns": limits.operation * 1e9,
            "division_ns": limits.division * 1e9,
            "exponential_ns": limits.exponential * 1e9,
            "byte_ns": limits.byte * 1e9,
            "meeting_ns": limits.meeting * 1e9,
            "networks_ns": limits.networks.iter().map(|seconds| seconds * 1e9).collect::<Vec<_>>(),
        })
    });
    json!({
        "model": p.experiment.compiled.ode.name,
        "engine": args.engine.engine.name(),
        "device": args.engine.device(),
        "precision": p.plan().precision.name(),
        "threads": p.ready.threads,
        "dt": p.experiment.extent.grid.dt,
        "steps": m.steps,
        "cells": m.cells,
        "compile_s": p.ready.compile_s,
        "kernel_s": p.ready.kernel_s,
        "kernel_cached": p.ready.cached,
        "run_s": m.best,
        "all_run_s": m.seconds,
        "cell_steps_per_s": m.rate,
        "ns_per_cell_step": m.each(),
        "realtime_factor": m.factor,
        "steps_per_visit": m.visit,
        "xla": on_device(p),
        "populations": m.populations.iter().map(population).collect::<Vec<_>>(),
        "predictions": predictions,
        "machine": machine,
    })
}

/// What XLA runs it on, and in what shape.
#[cfg(feature = "xla")]
fn on_device(p: &Prepared) -> Option<Value> {
    let (client, plan) = p.ready.xla.as_ref()?;
    let device = &client.devices()[0];
    let memory = device.memory_stats().ok().flatten().map(
        |memory| json!({"bytes_in_use": memory.in_use, "peak_bytes_in_use": memory.peak, "bytes_limit": memory.limit}),
    );
    Some(json!({
        "platform": client.platform_name(),
        "platform_version": client.platform_version(),
        "device": device.kind(),
        "memory": memory,
        "gathers": gathers(p, plan).map(|(edges, form)| (edges, json!(form))).collect::<serde_json::Map<_, _>>(),
        "deliveries": deliveries(p, plan).map(|(edges, form)| (edges, json!(form))).collect::<serde_json::Map<_, _>>(),
        "steps_in_line": plan.unroll,
    }))
}

#[cfg(not(feature = "xla"))]
fn on_device(_: &Prepared) -> Option<Value> {
    None
}

/// The form of the gathers along each relation.
#[cfg(feature = "xla")]
fn gathers<'a>(p: &'a Prepared, plan: &'a DevicePlan) -> impl Iterator<Item = (String, &'static str)> + 'a {
    let spaces = p.plan().spaces.iter().zip(&plan.gathers);
    let forms = spaces.flat_map(|(space, forms)| space.edges.iter().zip(forms));
    forms.map(|(&number, form)| (p.plan().relation(number).name.clone(), form.name()))
}

/// The form of each delivery.
#[cfg(feature = "xla")]
fn deliveries<'a>(p: &'a Prepared, plan: &'a DevicePlan) -> impl Iterator<Item = (String, &'static str)> + 'a {
    let forms = p.plan().deliveries.iter().zip(&plan.deliveries);
    forms.map(|(delivery, form)| (delivery.name.clone(), form.name()))
}

fn name(bound: Bound) -> &'static str {
    match bound {
        Bound::Arithmetic => "arithmetic",
        Bound::Division => "division",
        Bound::Memory => "memory",
        Bound::Gather => "gather",
        Bound::Barrier => "barrier",
    }
}

/// Flops per byte moved; none where nothing moves.
fn intensity(step: &StepCost) -> Option<f64> {
    let bytes = step.bytes.total();
    (bytes > 0.0).then(|| step.work.flops / bytes)
}

fn table(out: &mut String, args: &Args, p: &Prepared, m: &Measured) -> std::fmt::Result {
    writeln!(out, "model              {}", p.experiment.compiled.ode.name)?;
    writeln!(
        out,
        "cells, steps       {}, {} (dt {} ms), best of {}",
        m.cells, m.steps, p.experiment.extent.grid.dt, args.repeat
    )?;
    writeln!(out, "threads            {}", p.ready.threads)?;
    let kernel = match (p.ready.cached, p.ready.kernel_s) {
        (Some(true), Some(seconds)) => format!("the kernel, from the cache: {seconds:.3} s"),
        (Some(false), Some(seconds)) => format!("the kernel, by {}: {seconds:.3} s", args.engine.compiles()),
        (_, None) | (None, _) => "interpreted".to_string(),
    };
    writeln!(out, "compile time       {:.3} s from the file to the first step ({kernel})", p.ready.compile_s)?;
    writeln!(out, "run                {:.4} s", m.best)?;
    writeln!(out, "cell-steps per s   {:.1} million, {:.2} ns each", m.rate / 1e6, m.each())?;
    writeln!(out, "real-time factor   {:.3}", m.factor)?;
    #[cfg(feature = "xla")]
    if let Some((client, plan)) = &p.ready.xla {
        writeln!(out, "device             {}: {}", client.platform_name(), client.devices()[0].kind())?;
        writeln!(out, "steps              {} a visit of the host, at most {} in a line", m.visit, plan.unroll)?;
        for (edges, form) in gathers(p, plan) {
            writeln!(out, "gathers            {edges}: {form}")?;
        }
        for (edges, form) in deliveries(p, plan) {
            writeln!(out, "events             {edges}: {form}")?;
        }
    }
    for population in &m.populations {
        work(out, population)?;
    }
    let (Some((all, (largest, most))), Some(limits)) = (m.predictions(), &m.limits) else {
        return Ok(());
    };
    writeln!(out, "\nat least           ns per cell-step, of the measured")?;
    for (bound, ns) in all {
        let why = reason(bound, limits, p.ready.threads);
        writeln!(out, "  {:<16} {ns:>10.3} {:>6.1} %   {why}", name(bound), 100.0 * ns / m.each())?;
    }
    writeln!(out, "  {:<16} {:>10.3}", "measured", m.each())?;
    let nearest = match largest {
        Bound::Arithmetic => "arithmetic",
        Bound::Division => "divisions",
        Bound::Memory => "memory bandwidth",
        Bound::Gather => "gathering values of other cells",
        Bound::Barrier => "threads waiting for each other",
    };
    writeln!(out, "nearest limit      {nearest} ({:.0} % of the measured time)", 100.0 * most / m.each())
}

/// What was measured for a bound.
fn reason(bound: Bound, limits: &Limits, threads: usize) -> String {
    match bound {
        Bound::Arithmetic => format!(
            "{:.1} Gflop/s with multiply-adds; an exponential {:.3} ns",
            2e-9 / limits.operation,
            limits.exponential * 1e9
        ),
        Bound::Division => format!("{:.3} ns each, beside other operations", limits.division * 1e9),
        Bound::Memory => format!("{:.1} GB/s in order, in as much memory", 1e-9 / limits.byte),
        Bound::Gather => match limits.networks.len() {
            0 => "no edges".to_string(),
            1 => "the same edges, gathered and added up, nothing else".to_string(),
            n => format!("the same edges of {n} networks, gathered and added up, nothing else"),
        },
        Bound::Barrier => match (limits.networks.is_empty(), threads) {
            (true, _) | (false, 1) => "nobody waits".to_string(),
            (false, _) => format!("{:.0} ns for a meeting of {threads} threads", limits.meeting * 1e9),
        },
    }
}

/// The work of a population.
fn work(out: &mut String, population: &Population) -> std::fmt::Result {
    let Population { cost, window, load, memory, networks } = population;
    let Load { cells, busy_cells: _, step, networks: _ } = load;
    let w = &step.work;
    writeln!(out, "\n{}, each of {cells} cells", cost.space)?;
    let of_functions = w.flops - w.plain - 2.0 * w.fused - w.divisions;
    writeln!(out, "  flops            {:.1} a step, {of_functions:.1} of them inside functions", w.flops)?;
    let mut parts = vec![format!("{:.1} exponentials", w.exponentials), format!("{:.1} other functions", w.functions)];
    parts.push(format!("{:.1} divisions", w.divisions));
    if w.draws() > 0.0 {
        parts.push(format!("{:.1} random numbers (not in the flops)", w.draws()));
    }
    if w.samples > 0.0 {
        parts.push(format!("{:.1} series looked up (not in the flops or predictions)", w.samples));
    }
    writeln!(out, "  among them       {}", parts.join(", "))?;
    for (_, degree) in networks {
        let Degree { edges, places } = degree;
        writeln!(out, "  edges            {edges:.2} in {places:.2} places of the table; the others are idle lanes")?;
    }
    let Bytes { loaded, stored, table, gathered, exchanged } = step.bytes;
    let mut moved = vec![format!("{loaded:.2} loaded"), format!("{stored:.2} stored")];
    if !networks.is_empty() {
        moved.push(format!("{table:.2} edge table"));
        moved.push(format!("{gathered:.2} gathered"));
        moved.push(format!("{exchanged:.2} for other cells"));
    }
    writeln!(out, "  bytes            {:.2} a step: {}", step.bytes.total(), moved.join(", "))?;
    let states = match cost.fused {
        true => format!("in registers, moved once in {window} steps"),
        false => "streamed every step".to_string(),
    };
    writeln!(out, "  states           {states}; {memory:.0} bytes of memory a cell")?;
    match intensity(step) {
        Some(intensity) => writeln!(out, "  intensity        {intensity:.2} flops per byte"),
        None => writeln!(out, "  intensity        nothing is moved"),
    }
}

/// Wall seconds of each repetition, each from the initial state, after one warm-up; and how many steps an engine takes by itself.
fn measure(args: &Args, p: &mut Prepared, steps: u64) -> Result<(Vec<f64>, u64), EngineError> {
    let engine = p.ready.engine.as_mut();
    let mut spikes = Vec::new();
    let mut out = Vec::new();
    // Engines that record by themselves take many steps at once; here they record nothing.
    let nothing = Recording { every: u64::from(args.opt.fuse).min(steps), fields: Vec::new() };
    let stride = engine.prepare(&nothing, steps)?.steps();
    for repetition in 0..=args.repeat {
        engine.init()?;
        let begin = Instant::now();
        let mut now = 0;
        while now < steps {
            if stride > 0 && now + stride <= steps {
                spikes.clear();
                engine.record(now, &mut [], &mut spikes)?;
                now += stride;
                continue;
            }
            let window = (steps - now).min(u64::from(args.opt.fuse)) as u32;
            spikes.clear();
            engine.step(now, window, &mut spikes)?;
            now += u64::from(window);
        }
        if repetition > 0 {
            out.push(begin.elapsed().as_secs_f64());
        }
    }
    Ok((out, stride))
}
