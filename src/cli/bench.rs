//! `neuroc bench`.

use super::run::{Prepared, prepare};
use super::settings::{EngineSettings, ModelSettings, PassSettings, PrecisionName};
use super::{Exit, complain, deliver};
use crate::engine::{EngineError, Recording};
use crate::step::{BinaryOp, FieldKind, OpKind, Phase, Program, Role, UnaryOp};
use serde_json::json;
use std::fmt::Write;
use std::path::PathBuf;
use std::time::Instant;

/// Measure how fast a model runs.
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

/// Work of one step of one cell, counted in the IR.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Work {
    /// Additions, multiplications, comparisons, selections; a fused multiply-add counts two.
    flops: u64,
    /// Exponentials and other elementary functions.
    elementary: u64,
    /// Divisions and square roots.
    divisions: u64,
    /// Numbers kept per cell.
    numbers: u64,
}

/// Measures without recording and prints the best of some repetitions.
pub fn run(args: &Args) -> Exit {
    let mut p = match prepare(&args.file, &args.settings, &args.engine, &args.opt, args.json) {
        Ok(prepared) => prepared,
        Err(exit) => return exit,
    };
    let steps = args.steps.unwrap_or(p.extent.grid.steps);
    let seconds = match measure(args, &mut p, steps) {
        Ok(seconds) => seconds,
        Err(error) => {
            complain(error);
            return Exit::Model;
        }
    };
    if !p.ready.engine.all_finite() {
        complain("a value became NaN or infinite while measuring; `neuroc run` tells which");
        return Exit::Model;
    }
    let best = seconds.iter().copied().fold(f64::INFINITY, f64::min);
    let cells: usize = p.extent.cells.iter().sum();
    let rate = cells as f64 * steps as f64 / best;
    let factor = steps as f64 * p.extent.grid.dt / 1e3 / best;
    let work = works(p.compiled.program.program());
    let bytes = match args.engine.precision() {
        PrecisionName::F64 => 8,
        PrecisionName::F32 => 4,
    };
    if args.json {
        let object = json!({
            "model": p.compiled.ode.name,
            "engine": args.engine.engine.name(),
            "device": args.engine.device(),
            "precision": if bytes == 8 { "f64" } else { "f32" },
            "threads": p.ready.threads,
            "dt": p.extent.grid.dt,
            "steps": steps,
            "cells": cells,
            "compile_s": p.ready.compile_s,
            "run_s": best,
            "all_run_s": seconds,
            "cell_steps_per_s": rate,
            "realtime_factor": factor,
        });
        return deliver(&format!("{object}\n"), None);
    }
    let mut out = String::new();
    // Writing to a string cannot fail.
    let _ = table(&mut out, args, &p, Measured { steps, best, cells, rate, factor, work, bytes });
    deliver(&out, None)
}

/// What was measured.
struct Measured {
    steps: u64,
    best: f64,
    cells: usize,
    rate: f64,
    factor: f64,
    work: Vec<(String, Work)>,
    bytes: u64,
}

fn table(out: &mut String, args: &Args, p: &Prepared, m: Measured) -> std::fmt::Result {
    let Measured { steps, best, cells, rate, factor, work, bytes } = m;
    writeln!(out, "model              {}", p.compiled.ode.name)?;
    writeln!(out, "cells, steps       {cells}, {steps} (dt {} ms), best of {}", p.extent.grid.dt, args.repeat)?;
    writeln!(out, "threads            {}", p.ready.threads)?;
    writeln!(
        out,
        "ready after        {:.3} s ({})",
        p.ready.compile_s,
        match p.ready.cached {
            None => "interpreted",
            Some(true) => "from the cache",
            Some(false) => "compiled",
        }
    )?;
    writeln!(out, "run                {best:.4} s")?;
    writeln!(out, "cell-steps per s   {:.1} million ({:.2} ns each)", rate / 1e6, 1e9 / rate)?;
    writeln!(out, "real-time factor   {factor:.3}")?;
    for (space, w) in work {
        writeln!(
            out,
            "{:<18} {} flops, {} exponentials and the like, {} divisions per cell and step; {} bytes per cell",
            space,
            w.flops,
            w.elementary,
            w.divisions,
            w.numbers * bytes
        )?;
    }
    Ok(())
}

/// Wall seconds of each repetition, each from the initial state, after one warm-up.
fn measure(args: &Args, p: &mut Prepared, steps: u64) -> Result<Vec<f64>, EngineError> {
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
    Ok(out)
}

/// The work of every population's step.
fn works(program: &Program) -> Vec<(String, Work)> {
    program
        .kernels
        .iter()
        .filter(|k| k.role == Role::Step)
        .map(|k| {
            let mut work = Work::default();
            for region in k.regions.iter().filter(|r| r.phase == Phase::Body) {
                region.ops.iter().for_each(|op| count(&op.kind, &mut work));
            }
            let kept =
                |f: &&crate::step::Field| matches!(f.kind, FieldKind::State(s) | FieldKind::Cell(s) if s == k.space);
            work.numbers = program.fields.iter().filter(kept).count() as u64;
            (program.space(k.space).name.clone(), work)
        })
        .collect()
}

fn count(kind: &OpKind, work: &mut Work) {
    match kind {
        OpKind::Unary(op, _) => match op {
            UnaryOp::Neg | UnaryOp::Abs | UnaryOp::Floor | UnaryOp::Ceil | UnaryOp::Not => work.flops += 1,
            UnaryOp::Sqrt => work.divisions += 1,
            UnaryOp::Exp
            | UnaryOp::Exp2
            | UnaryOp::Expm1
            | UnaryOp::Exp2m1
            | UnaryOp::Ln
            | UnaryOp::Log2
            | UnaryOp::Log10
            | UnaryOp::Sin
            | UnaryOp::Cos
            | UnaryOp::Tan
            | UnaryOp::Sinh
            | UnaryOp::Cosh
            | UnaryOp::Tanh => work.elementary += 1,
            UnaryOp::Linoid => {
                work.elementary += 1;
                work.divisions += 1;
            }
        },
        OpKind::Binary(op, ..) => match op {
            BinaryOp::Div => work.divisions += 1,
            BinaryOp::Pow => work.elementary += 2,
            BinaryOp::Add
            | BinaryOp::Sub
            | BinaryOp::Mul
            | BinaryOp::Min
            | BinaryOp::Max
            | BinaryOp::Lt
            | BinaryOp::Le
            | BinaryOp::Gt
            | BinaryOp::Ge
            | BinaryOp::Eq
            | BinaryOp::Ne
            | BinaryOp::And
            | BinaryOp::Or => work.flops += 1,
        },
        OpKind::Fma(..) => work.flops += 2,
        OpKind::Select(..) => work.flops += 1,
        OpKind::Draw(..) => work.elementary += 1,
        OpKind::Const(_)
        | OpKind::Bool(_)
        | OpKind::Field(_)
        | OpKind::There(_)
        | OpKind::Time
        | OpKind::StepIndex
        | OpKind::Index
        | OpKind::Sample(..)
        | OpKind::Store(..)
        | OpKind::Accumulate(..)
        | OpKind::Emit(..) => {}
    }
}
