//! What reaches sinks, and the search for the step in which a value became infinite.

use super::{Ending, Memory, Outcome, Run, RunError, RunOptions, Sink, SinkError, Unwatched, Watcher};
use super::{Extent, records};
use crate::driver::{self, CompileOptions, Compiled, Experiment};
use crate::engine::{Engine, EngineError, Recording, Spike, Stride};
use crate::hir::Sources;
use crate::interp::Interp;
use crate::results::RunResult;
use crate::step::FieldId;
use std::ops::Range;
use std::path::Path;

/// Grows by a half every step, spikes once, and passes the largest number in step 1751.
const GROWS: &str = "cell Grow { state x = 1; x' = x * 1 /ms; let y = 2 * x; spike when x crosses 100 }
    network main { population cells: Grow[3] }
    run {
        duration = 2000 ms; dt = 0.5 ms; method = euler
        record cells.x every 1 ms
        record cells.y every 3 ms
        record spikes of cells
    }";

/// An interpreter that may record by itself, and counts how often it begins.
struct Counted {
    interp: Interp,
    samples: u32,
    recording: Recording,
    begun: u32,
    recorded: u32,
}

impl Engine for Counted {
    fn init(&mut self) -> Result<(), EngineError> {
        self.begun += 1;
        self.interp.init()
    }

    fn step(&mut self, first_step: u64, steps: u32, spikes: &mut Vec<Spike>) -> Result<(), EngineError> {
        self.interp.step(first_step, steps, spikes)
    }

    fn observe(&mut self, step: u64) -> Result<(), EngineError> {
        self.interp.observe(step)
    }

    fn read(&self, field: FieldId, cells: Range<usize>, out: &mut Vec<f64>) -> Result<(), EngineError> {
        self.interp.read(field, cells, out)
    }

    fn write(&mut self, field: FieldId, values: &[f64]) -> Result<(), EngineError> {
        self.interp.write(field, values)
    }

    fn all_finite(&self) -> bool {
        self.interp.all_finite()
    }

    fn prepare(&mut self, recording: &Recording, _steps: u64) -> Result<Stride, EngineError> {
        self.recording = recording.clone();
        Ok(Stride { every: recording.every as u32, samples: self.samples })
    }

    fn record(&mut self, first: u64, rows: &mut [Vec<f64>], spikes: &mut Vec<Spike>) -> Result<(), EngineError> {
        self.recorded += 1;
        let every = self.recording.every;
        for sample in 0..u64::from(self.samples) {
            self.interp.step(first + sample * every, every as u32, spikes)?;
            self.interp.observe(first + (sample + 1) * every)?;
            for ((field, cells), rows) in self.recording.fields.iter().zip(&mut *rows) {
                self.interp.read(*field, cells.clone(), rows)?;
            }
        }
        Ok(())
    }
}

/// A compiled model with its extent, and the engine that runs it. Each call of its `record` takes so many samples.
fn ready(text: &str, samples: u32) -> (Compiled, Extent, Counted) {
    let checked = driver::check_text("m.neuro", Path::new(""), text, &Sources);
    let compiled = driver::compile(&checked, &CompileOptions::default(), &mut |_, _, _| {});
    let compiled = compiled.unwrap_or_else(|e| panic!("{e:?}"));
    let Experiment { compiled, extent, setup, .. } = Experiment::new(compiled).unwrap();
    let interp = Interp::new(compiled.program.clone(), &setup).unwrap();
    let recording = Recording { every: 1, fields: Vec::new() };
    (compiled, extent, Counted { interp, samples, recording, begun: 0, recorded: 0 })
}

fn to_sink(
    (compiled, extent, engine): (&Compiled, &Extent, &mut Counted),
    options: &RunOptions,
    watcher: &mut dyn Watcher,
    sink: &mut dyn Sink,
) -> Result<Outcome, RunError> {
    let (model, program) = (&compiled.ode, compiled.program.program());
    let records = &records(model, program, extent).unwrap();
    let start = &super::Start::default();
    Run { model, program, extent, records, engine, options, watcher, start, sink }.to_end()
}

/// What a run came to, and its engine.
fn kept(samples: u32, options: &RunOptions, watcher: &mut dyn Watcher) -> (RunResult, Outcome, Counted) {
    let (compiled, extent, mut engine) = ready(GROWS, samples);
    let records = records(&compiled.ode, compiled.program.program(), &extent).unwrap();
    let contents = super::contents(&compiled.ode, &extent, &records, 0, options.single);
    let mut memory = Memory::new(&records, contents).unwrap();
    let outcome = to_sink((&compiled, &extent, &mut engine), options, watcher, &mut memory).unwrap();
    (memory.result(records, extent.grid), outcome, engine)
}

/// Writes down what it is handed, and takes so many rows.
struct Log {
    rows: Vec<(usize, u64, Vec<f64>)>,
    spikes: Vec<(usize, u64, u64)>,
    most: usize,
}

impl Sink for Log {
    fn row(&mut self, record: usize, step: u64, values: &[f64]) -> Result<(), SinkError> {
        if self.rows.len() == self.most {
            return Err(SinkError("the disk is full".into()));
        }
        self.rows.push((record, step, values.to_vec()));
        Ok(())
    }

    fn spike(&mut self, train: usize, spike: Spike) -> Result<(), SinkError> {
        self.spikes.push((train, spike.step, spike.cell));
        Ok(())
    }
}

#[test]
fn sinks_get_rows_and_spikes_while_the_run_goes_on() {
    let text = GROWS.replace("2000 ms", "12 ms");
    for samples in [0, 2, 5] {
        let (compiled, extent, mut engine) = ready(&text, samples);
        let mut log = Log { rows: Vec::new(), spikes: Vec::new(), most: usize::MAX };
        let run = (&compiled, &extent, &mut engine);
        let outcome = to_sink(run, &RunOptions::default(), &mut Unwatched, &mut log).unwrap();
        assert_eq!((outcome.ending, outcome.steps, outcome.spikes), (Ending::Done, 24, 3));
        assert_eq!(engine.recorded > 0, samples > 0);
        let x = |step: u64| 1.5f64.powi(step as i32);
        let of = |record| log.rows.iter().filter(move |row| row.0 == record);
        let steps = |record| of(record).map(|row| row.1).collect::<Vec<_>>();
        assert_eq!(steps(0), (0..=12).map(|n| 2 * n).collect::<Vec<_>>());
        assert_eq!(steps(1), [0, 6, 12, 18, 24]);
        assert!(of(0).all(|(_, step, row)| *row == [x(*step); 3]), "{samples}: {:?}", log.rows);
        assert!(of(1).all(|(_, step, row)| *row == [2.0 * x(*step); 3]), "{samples}: {:?}", log.rows);
        // 1.5^12 is the first above 100.
        assert_eq!(log.spikes, [(0, 11, 0), (0, 11, 1), (0, 11, 2)]);
    }
}

#[test]
fn a_sink_that_takes_no_more_ends_the_run() {
    let (compiled, extent, mut engine) = ready(GROWS, 0);
    let mut log = Log { rows: Vec::new(), spikes: Vec::new(), most: 7 };
    let run = (&compiled, &extent, &mut engine);
    let error = to_sink(run, &RunOptions::default(), &mut Unwatched, &mut log).unwrap_err();
    assert_eq!(error, RunError::Sink(SinkError("the disk is full".into())));
    assert_eq!(log.rows.len(), 7);
}

#[test]
fn a_value_that_is_not_finite_is_found_by_running_again() {
    for (samples, window) in [(0, 1), (0, 40), (0, 1000), (3, 40), (100, 7)] {
        for trace in [1, 10] {
            let options = RunOptions { window, trace, ..RunOptions::default() };
            let (result, outcome, engine) = kept(samples, &options, &mut Unwatched);
            let Ending::NotFinite(why) = outcome.ending else { panic!("{:?}", outcome.ending) };
            assert!(why.message.contains("became infinite at t = 875.5 ms"), "{}", why.message);
            // 1.5^n passes the largest f64 at n = 1751.
            assert_eq!((outcome.steps, outcome.spikes), (1750, 3));
            assert_eq!(result.series[0].t.last(), Some(&875.0));
            assert_eq!(result.series[0].t.len(), 876);
            assert_eq!(result.spikes[0].t, [6.0; 3]);
            let told: Vec<&String> = why.notes.iter().filter(|n| n.starts_with("at t = ")).collect();
            assert_eq!(told.len(), trace);
            assert!(told[trace - 1].starts_with("at t = 875 ms"), "{told:?}");
            // To the call in which it was recorded, and to the window.
            assert_eq!(engine.begun, if samples == 0 { 2 } else { 3 });
        }
    }
}

#[test]
fn nothing_is_done_twice_while_all_is_finite() {
    let (compiled, extent, mut engine) = ready(&GROWS.replace("2000 ms", "12 ms"), 0);
    let mut log = Log { rows: Vec::new(), spikes: Vec::new(), most: usize::MAX };
    to_sink((&compiled, &extent, &mut engine), &RunOptions::default(), &mut Unwatched, &mut log).unwrap();
    assert_eq!(engine.begun, 1);
}

/// Stops the run when steps begin from zero again.
struct Impatient(u64);

impl Watcher for Impatient {
    fn step(&mut self, done: u64) -> bool {
        let on = done > self.0;
        self.0 = done;
        on
    }
}

#[test]
fn a_search_that_is_stopped_leaves_what_was_recorded() {
    for samples in [0, 100] {
        let (result, outcome, _) = kept(samples, &RunOptions::default(), &mut Impatient(0));
        assert_eq!(outcome.ending, Ending::Stopped);
        assert!((1550..=1750).contains(&outcome.steps), "{}", outcome.steps);
        assert_eq!(result.series[0].t.last(), Some(&(outcome.steps as f64 * 0.5)));
        assert!(matches!(&result.series[0].values, crate::results::Samples::F64(x) if x.iter().all(|x| x.is_finite())));
    }
}
