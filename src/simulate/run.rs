//! The loop over calls of the engine.
//!
//! In come a model, its program, its extent and an engine; rows and spikes go to a [`Sink`], and out comes how the run ended.
//! Never true here: a number is computed that belongs into a kernel, or one that is not finite is recorded.

use super::around::AroundSpikes;
use super::checkpoint::Start;
use super::culprit::Scene;
use super::cuts::{Call, Cuts};
use super::extent::Extent;
use super::pace::Pace;
use super::parameters::contents;
use super::records::{Records, records};
use super::sink::{Memory, Sink, SinkError};
use super::trap::{History, Search};
use crate::diag::Diagnostic;
use crate::engine::{Effort, Engine, EngineError, Spike};
use crate::ode::Model;
use crate::results::RunResult;
use crate::step::{Program, Source};
use std::time::Instant;

/// What a caller wants to know while a run goes on.
pub trait Watcher {
    /// Called after every window with the steps done so far; `false` stops the run. Where the run is done again to find out where
    /// a value became NaN, the steps begin from zero again.
    fn step(&mut self, done: u64) -> bool;
}

/// A watcher that only lets run.
#[derive(Debug, Clone, Copy, Default)]
pub struct Unwatched;

impl Watcher for Unwatched {
    fn step(&mut self, _done: u64) -> bool {
        true
    }
}

/// How a run ended.
#[derive(Debug, Clone, PartialEq)]
pub enum Ending {
    /// At its end.
    Done,
    /// The watcher stopped it.
    Stopped,
    /// A value was not finite.
    NotFinite(Box<Diagnostic>),
}

/// What became of a run, besides what it recorded.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    /// How it ended.
    pub ending: Ending,
    /// The steps that were done before it began.
    pub start: u64,
    /// Steps done, with those before it began.
    pub steps: u64,
    /// All spikes, recorded or not.
    pub spikes: u64,
    /// What it took the engine, if it chooses its steps.
    pub effort: Option<Effort>,
    /// The recorded spikes in short, one entry for each train.
    pub trains: Vec<Spiking>,
    /// What is probably wrong, as the run has shown.
    pub warning: Option<Box<Diagnostic>>,
    /// Wall time of set-up (initial values), in s.
    pub init_s: f64,
    /// Wall time of the steps with recording, in s.
    pub run_s: f64,
}

/// The spikes of a train in short.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Spiking {
    /// How many each cell had.
    pub counts: Vec<u64>,
    /// The first eight.
    pub first: Vec<Spike>,
}

/// Options of a run that change no number of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RunOptions {
    /// Steps between two looks at the clock and at Ctrl-C, at most.
    pub window: u32,
    /// Keep results in single precision.
    pub single: bool,
    /// After each window, look for NaN and infinities.
    pub trap: bool,
    /// How many of the last steps before a NaN to tell.
    pub trace: usize,
}

impl Default for RunOptions {
    fn default() -> RunOptions {
        RunOptions { window: 40, single: false, trap: true, trace: 1 }
    }
}

/// A run could not begin or go on.
#[derive(Debug, Clone, PartialEq)]
pub enum RunError {
    /// The engine cannot do it.
    Engine(EngineError),
    /// The model asks for something impossible.
    Model(Vec<Diagnostic>),
    /// What was recorded cannot be kept.
    Sink(SinkError),
}

impl From<EngineError> for RunError {
    fn from(error: EngineError) -> RunError {
        RunError::Engine(error)
    }
}

impl From<SinkError> for RunError {
    fn from(error: SinkError) -> RunError {
        RunError::Sink(error)
    }
}

/// Runs a model on an engine from its initial values to its end, and keeps what it records; `meta` is empty.
pub fn run(
    model: &Model,
    program: &Program,
    extent: &Extent,
    engine: &mut dyn Engine,
    options: &RunOptions,
    watcher: &mut dyn Watcher,
) -> Result<(RunResult, Outcome), RunError> {
    let records = records(model, program, extent).map_err(RunError::Model)?;
    let mut memory = Memory::new(&records, contents(model, extent, &records, 0, options.single))?;
    let start = &Start::default();
    let run = Run { model, program, extent, records: &records, engine, options, watcher, start, sink: &mut memory };
    let outcome = run.to_end()?;
    Ok((memory.result(records, extent.grid), outcome))
}

/// A run that is ready to begin.
pub struct Run<'a> {
    /// The continuous model, for messages.
    pub model: &'a Model,
    /// The program that the engine runs.
    pub program: &'a Program,
    /// Its cells and steps.
    pub extent: &'a Extent,
    /// What [`records`] says that it records.
    pub records: &'a Records,
    /// What runs it.
    pub engine: &'a mut dyn Engine,
    /// What changes no number; in which precision results are kept is the sink's business.
    pub options: &'a RunOptions,
    /// Who may stop it.
    pub watcher: &'a mut dyn Watcher,
    /// Where it begins.
    pub start: &'a Start,
    /// Where samples and spikes go.
    pub sink: &'a mut dyn Sink,
}

impl Run<'_> {
    /// Runs from its start to the end.
    pub fn to_end(self) -> Result<Outcome, RunError> {
        let Run { model, program, extent, records, engine, options, watcher, start, sink } = self;
        match AroundSpikes::before(records, sink) {
            Err(sink) => Run { model, program, extent, records, engine, options, watcher, start, sink }.go(),
            Ok(mut around) => {
                let sink = &mut around;
                let outcome = Run { model, program, extent, records, engine, options, watcher, start, sink }.go()?;
                around.finish()?;
                Ok(outcome)
            }
        }
    }

    fn go(self) -> Result<Outcome, RunError> {
        let mut going = Going::new(self)?;
        let begin = Instant::now();
        going.run.start.set(going.run.engine)?;
        let init_s = begin.elapsed().as_secs_f64();
        let begin = Instant::now();
        let mut ending = going.begin()?;
        while ending.is_none() && going.now < going.cuts.steps {
            ending = going.call()?;
        }
        Ok(Outcome {
            ending: ending.unwrap_or(Ending::Done),
            start: going.run.start.step,
            steps: going.now,
            spikes: going.count,
            warning: going.pace.and_then(|pace| pace.warning(going.run.model)).map(Box::new),
            effort: going.run.engine.effort(),
            trains: going.trains,
            init_s,
            run_s: begin.elapsed().as_secs_f64(),
        })
    }
}

/// A run that has begun.
struct Going<'a> {
    run: Run<'a>,
    cuts: Cuts,
    /// Steps done.
    now: u64,
    /// Spikes until then.
    count: u64,
    /// Of each field, whether its events are spikes of cells: others tell of modulators, and of spikes of files or of cells elsewhere once more.
    of_cells: Vec<bool>,
    trains: Vec<Spiking>,
    pace: Option<Pace>,
    /// What the last call brought: samples of each field that is recorded, and spikes.
    rows: Vec<Vec<f64>>,
    /// Room for a sample that is computed of several rows.
    computed: Vec<f64>,
    spikes: Vec<Spike>,
}

impl Going<'_> {
    fn new(run: Run<'_>) -> Result<Going<'_>, EngineError> {
        let steps = run.extent.grid.steps;
        let stride = run.engine.prepare(&run.records.recording(steps), steps)?;
        let every = run.records.series.iter().map(|r| r.every).collect();
        let cuts = Cuts { steps, window: run.options.window, stride, every, careful: Vec::new() };
        let rows = vec![Vec::new(); run.records.series.iter().map(|r| r.fields().len()).sum()];
        let trains = run.records.trains.iter();
        let trains = trains.map(|train| Spiking { counts: vec![0; train.cells], first: Vec::new() }).collect();
        let now = run.start.step;
        let pace = Pace::new(run.model);
        let spiking =
            |population: u32| run.model.populations.get(population as usize).is_some_and(|p| p.spike.is_some());
        let of_cells = run.program.fields.iter().map(|f| match f.source {
            Source::Spikes(population) => spiking(population),
            source => source == Source::None,
        });
        let of_cells = of_cells.collect();
        Ok(Going { run, cuts, now, count: 0, of_cells, trains, pace, rows, computed: Vec::new(), spikes: Vec::new() })
    }

    /// Samples the initial values.
    fn begin(&mut self) -> Result<Option<Ending>, RunError> {
        if self.trapped() {
            return Ok(Some(self.not_finite(self.now, &History::new())?));
        }
        self.sample()
    }

    /// Does the next call of the engine. Answers how the run ended, if it did before its time.
    fn call(&mut self) -> Result<Option<Ending>, RunError> {
        self.rows.iter_mut().for_each(Vec::clear);
        self.spikes.clear();
        let call = self.cuts.at(self.now);
        call.ask(self.run.engine, self.now, &mut self.rows, &mut self.spikes)?;
        self.run.records.once(&mut self.spikes);
        if self.trapped() {
            return self.search(call);
        }
        let before = self.now;
        self.now += call.steps();
        let ending = match call {
            Call::Record(_) => self.keep_rows(before)?,
            Call::Steps(_) => self.sample()?,
        };
        self.keep_spikes()?;
        if let Some(pace) = &mut self.pace {
            let Run { model, program, extent, engine, .. } = &self.run;
            pace.look((model, program, extent), &**engine, self.now, &self.spikes);
        }
        if ending.is_some() {
            return Ok(ending);
        }
        self.run.sink.reached(self.now)?;
        Ok((!self.run.watcher.step(self.now)).then_some(Ending::Stopped))
    }

    /// Is there a value that is not finite, and is that of interest?
    fn trapped(&self) -> bool {
        self.run.options.trap && !self.run.engine.all_finite()
    }

    /// Finds out where a value stopped being finite in the call that was just done.
    fn search(&mut self, call: Call) -> Result<Option<Ending>, RunError> {
        let Run { program, extent, ref mut engine, options, ref mut watcher, start, .. } = self.run;
        let mut search =
            Search { program, extent, engine: &mut **engine, cuts: &self.cuts, start, watcher: &mut **watcher };
        match call {
            Call::Record(_) => {
                // Once more in windows: samples are due in this call.
                let reached = search.again(self.now)?;
                self.cuts.careful.push(self.now);
                Ok((!reached).then_some(Ending::Stopped))
            }
            Call::Steps(steps) => {
                let found = search.find(self.now, u64::from(steps), options.trace, &mut self.spikes)?;
                let Some(found) = found else { return Ok(Some(Ending::Stopped)) };
                self.run.records.once(&mut self.spikes);
                // The steps before count, and so do their spikes. No sample was due in them.
                self.now = found.step;
                self.keep_spikes()?;
                Ok(Some(self.not_finite(found.step + 1, &found.history)?))
            }
        }
    }

    fn not_finite(&self, step: u64, history: &History) -> Result<Ending, EngineError> {
        Ok(Ending::NotFinite(Box::new(self.scene().diagnostic(step, history)?)))
    }

    /// Hands over what is due now. The run ends where an expression is not finite that is computed for being recorded only.
    fn sample(&mut self) -> Result<Option<Ending>, RunError> {
        let Run { records, engine, sink, options, .. } = &mut self.run;
        let now = self.now;
        if records.series.iter().any(|r| r.output && r.has(now)) {
            engine.observe(now)?;
        }
        let mut rows = self.rows.iter_mut();
        for (at, r) in records.series.iter().enumerate() {
            let fields = r.fields();
            let rows: Vec<&mut Vec<f64>> = rows.by_ref().take(fields.len()).collect();
            if r.has(now) {
                let mut read: Vec<&[f64]> = Vec::new();
                for (row, (field, elements)) in rows.into_iter().zip(fields) {
                    row.clear();
                    engine.read(field, elements, row)?;
                    read.push(row);
                }
                let row = r.sample(&read, &mut self.computed);
                if options.trap
                    && r.output
                    && let Some(wrong) = row.iter().position(|x| !x.is_finite())
                {
                    let (cell, value) = (r.cells.start + wrong, row[wrong]);
                    return Ok(Some(self.scene().recorded(at, cell, value, now)?));
                }
                sink.row(at, now, row)?;
            }
        }
        Ok(None)
    }

    fn scene(&self) -> Scene<'_> {
        let Run { model, program, extent, ref engine, .. } = self.run;
        Scene { model, program, extent, engine: &**engine }
    }

    /// Hands over the rows that the engine has recorded since the step `before`, sample by sample.
    fn keep_rows(&mut self, before: u64) -> Result<Option<Ending>, RunError> {
        for sample in 0..u64::from(self.cuts.stride.samples) {
            let step = before + (sample + 1) * u64::from(self.cuts.stride.every);
            let mut rows = self.rows.iter();
            for (at, r) in self.run.records.series.iter().enumerate() {
                let fields = r.fields();
                let rows: Vec<&Vec<f64>> = rows.by_ref().take(fields.len()).collect();
                let read: Option<Vec<&[f64]>> = rows
                    .iter()
                    .zip(&fields)
                    .map(|(rows, (_, cells))| {
                        let first = sample as usize * cells.len();
                        rows.get(first..first + cells.len())
                    })
                    .collect();
                if r.has(step)
                    && let Some(read) = read
                {
                    let row = r.sample(&read, &mut self.computed);
                    if self.run.options.trap
                        && r.output
                        && let Some(wrong) = row.iter().position(|x| !x.is_finite())
                    {
                        // The engine has gone further.
                        self.now = step;
                        self.spikes.retain(|spike| spike.step < step);
                        let (cell, value) = (r.cells.start + wrong, row[wrong]);
                        return Ok(Some(self.scene().recorded(at, cell, value, step)?));
                    }
                    self.run.sink.row(at, step, row)?;
                }
            }
        }
        Ok(None)
    }

    /// Hands over the spikes of the last call that are recorded, and counts all of them.
    fn keep_spikes(&mut self) -> Result<(), SinkError> {
        for spike in &self.spikes {
            if let Some(train) = self.run.records.trains.iter().position(|train| train.field == spike.field) {
                self.run.sink.spike(train, *spike)?;
                let Spiking { counts, first } = &mut self.trains[train];
                if let Some(count) = counts.get_mut(spike.cell as usize) {
                    *count += 1;
                }
                if first.len() < 8 {
                    first.push(*spike);
                }
            }
        }
        let is_of_cells = |spike: &&Spike| self.of_cells.get(spike.field.0 as usize).is_none_or(|is| *is);
        self.count += self.spikes.iter().filter(is_of_cells).count() as u64;
        Ok(())
    }
}
