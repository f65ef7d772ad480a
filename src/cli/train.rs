//! `neuroc train`.

use super::progress::{Interrupt, spinner};
use super::settings::{EngineSettings, ModelSettings, PassSettings};
use super::{Exit, blamed_where, complain, deliver, memory, report, say, writable};
use crate::diag::Diagnostic;
use crate::driver::CompileOptions;
use crate::train::{Score, Session, Trained, Watcher};
use indicatif::ProgressBar;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::time::Instant;

/// What is said below the options.
fn help() -> String {
    let on_device = if cfg!(feature = "xla") {
        " With `--engine xla` the device takes\nall steps of a batch in one call, and goes back in another."
    } else {
        ""
    };
    format!(
        "Example: neuroc train examples/digits.neuro -o digits.npz\n         neuroc run examples/digits.neuro --trained digits.npz\n\nThe samples are the arrays `x` (samples by cells) and `y` (classes from 0 on) of an .npz archive. After each epoch what has been learnt is\nwritten. Ctrl-C ends the training behind the last whole epoch (exit code 130); `--resume` goes on with it, to the same bits.{on_device}"
    )
}

/// Let a network learn, as the `train` block of its model says.
#[derive(Debug, Clone, clap::Args)]
#[command(after_help = help())]
pub struct Args {
    /// A model file; - is standard input
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// How often all samples are seen, instead of what the file says
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    epochs: Option<u32>,
    /// Go on with a training that was interrupted, from the file that it wrote; as many epochs in all
    #[arg(long, value_name = "FILE", conflicts_with = "trained")]
    resume: Option<PathBuf>,
    /// Memory for what going back needs of all steps; with less than that, steps are taken again
    #[arg(long, value_name = "SIZE", default_value = "4GB", value_parser = memory::size)]
    memory: f64,
    /// What has been learnt, as `run --trained` takes it; without this and --json: MODEL.trained.npz
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Print errors only
    #[arg(long)]
    quiet: bool,
    /// Print a summary as one line of JSON on stdout
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    settings: ModelSettings,
    #[command(flatten)]
    engine: EngineSettings,
    #[command(flatten)]
    opt: PassSettings,
}

/// Trains a model.
pub fn run(args: &Args) -> Exit {
    run_or_say(args).unwrap_or_else(|exit| exit)
}

fn run_or_say(args: &Args) -> Result<Exit, Exit> {
    args.engine.check()?;
    suited(args)?;
    let output = args.output.clone().or_else(|| (!args.json).then(|| args.file.with_extension("trained.npz")));
    let output = output.map(|path| if path == Path::new("-.trained.npz") { "model.trained.npz".into() } else { path });
    output.as_deref().map_or(Ok(()), writable)?;
    let begin = Instant::now();
    let checked = super::check(&args.file);
    // What it starts from may be replaced by what comes out of it.
    super::spared(&checked, None, output.as_deref())?;
    if checked.model.is_none() || !args.quiet {
        report(&checked.sources, &checked.diagnostics);
    }
    let Some(model) = &checked.model else { return Err(Exit::of(&checked.diagnostics)) };
    let options = args.settings.options(&args.opt, args.engine.precision(), args.engine.engine.backend())?;
    let choice = || args.engine.choice();
    let threads = args.engine.threads.map_or_else(processors, |threads| threads as usize);
    let precision = args.engine.precision().into();
    let begun = |options: &CompileOptions| Session::new(&checked, options, &choice, threads, precision, args.memory);
    let blame = |errors: Vec<Diagnostic>| blamed_where(&checked, &options, &errors, |written| begun(written).is_ok());
    let mut session = begun(&options).map_err(blame)?;
    let compile_s = begin.elapsed().as_secs_f64();
    let epochs = args.epochs.map_or_else(|| model.train.as_ref().map_or(1, |t| t.epochs as u64), u64::from);
    session.plan(epochs as usize);
    // What is kept if no epoch is better.
    let mut resumed = None;
    if let Some(path) = &args.resume {
        let begun = Trained::read(path).and_then(|trained| {
            let resumed = session.resume(&trained);
            resumed.map(|()| trained).map_err(|why| format!("cannot go on from `{}`: {why}", path.display()))
        });
        resumed = Some(begun.map_err(|why| {
            complain(why);
            Exit::Usage
        })?);
        if session.epochs() >= epochs {
            complain(format!(
                "`{}` has seen all samples {} times, and {epochs} are asked for; a larger --epochs goes on",
                path.display(),
                session.epochs()
            ));
            return Err(Exit::Usage);
        }
    }
    if !args.quiet {
        session.warning().into_iter().for_each(|d| report(&checked.sources, std::slice::from_ref(d)));
        let (train, test) = (session.data().train().len(), session.data().test().len());
        let room = memory::told(session.room().bytes);
        let (kept, again, steps) = (session.room().kept, session.room().again, session.steps());
        let states = match again {
            0 => format!("states take {room}"),
            _ => {
                let times = steps as f64 / (steps - again) as f64;
                let all = steps - again + 1;
                format!("{kept} of {all} states take {room}, and each step is taken {times:.1} times")
            }
        };
        say(format!("{} numbers learn from {train} samples, {test} are for testing; {states}", session.count()));
    }
    let mut progress = Progress::new(args.quiet);
    let mut history: Vec<(Score, Option<Score>)> = Vec::new();
    let mut stopped = false;
    for epoch in session.epochs() + 1..=epochs {
        progress.epoch = (epoch, epochs);
        let broken = |error: crate::engine::EngineError| {
            complain(error);
            Exit::Model
        };
        let Some(score) = session.epoch(&mut progress).map_err(broken)? else {
            stopped = true;
            break;
        };
        let test = session.test().map_err(broken)?;
        if !args.quiet && !args.json {
            let said = format!("{}\n", line(epoch, &score, test.as_ref()));
            match progress.bar.suspend(|| deliver(&said, None)) {
                Exit::Fine => {}
                other => return Err(other),
            }
        }
        history.push((score, test));
        if let Some(path) = &output {
            // What a training that goes on began with counts until something is better.
            let before = resumed.take();
            let best = if session.is_best() { Some(session.trained().map_err(broken)?) } else { before };
            if let Some(Err(why)) = best.map(|best| best.write(path)) {
                complain(why);
                return Err(Exit::Model);
            }
        }
        if session.gives_up() {
            break;
        }
    }
    progress.bar.finish_and_clear();
    if args.json {
        let run_s = begin.elapsed().as_secs_f64() - compile_s;
        let mut summary = json(args, &session, &history, output.as_deref(), compile_s, run_s);
        if let Some(best) = session.best() {
            summary["best_epoch"] = best.into();
        }
        let written = deliver(&format!("{summary}\n"), None);
        if written != Exit::Fine {
            return Ok(written);
        }
    }
    if let Some(best) = session.best().filter(|best| !args.quiet && *best < session.epochs()) {
        let ends = if session.gives_up() { ", so that the training ends" } else { "" };
        say(format!(
            "the loss of the test samples was least in epoch {best}{ends}; what was learnt until then is kept"
        ));
    }
    if let (Some(path), false, false) = (&output, args.quiet, history.is_empty()) {
        let (file, path) = (args.file.display(), path.display());
        say(format!("wrote {path}; `neuroc run {file} --trained {path}` takes it"));
    }
    Ok(if stopped { Exit::Stopped } else { Exit::Fine })
}

fn processors() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// Refuses settings that networks do not learn with.
fn suited(args: &Args) -> Result<(), Exit> {
    if args.opt.accuracy.name() != "exact" {
        complain("`train` computes exactly; leave `--accuracy` out");
        return Err(Exit::Usage);
    }
    Ok(())
}

fn line(epoch: u64, score: &Score, test: Option<&Score>) -> String {
    let percent = |share: f64| format!("{:.2} %", 100.0 * share);
    let mut text = format!("epoch {epoch}: loss {:.4}, {} right", score.loss, percent(score.accuracy));
    if let Some(test) = test {
        text += &format!("; test: loss {:.4}, {} right", test.loss, percent(test.accuracy));
    }
    text + &format!("; {:.1} spikes a sample, {:.0} samples/s", score.spikes, score.samples as f64 / score.seconds)
}

fn json(
    args: &Args,
    session: &Session,
    history: &[(Score, Option<Score>)],
    output: Option<&Path>,
    compile_s: f64,
    run_s: f64,
) -> Value {
    let of = |score: &Score| json!({"loss": score.loss, "accuracy": score.accuracy, "spikes_per_sample": score.spikes, "samples": score.samples, "seconds": score.seconds});
    let epochs: Vec<Value> =
        history.iter().map(|(train, test)| json!({"train": of(train), "test": test.as_ref().map(of)})).collect();
    json!({
        "model": args.file.display().to_string(),
        "epochs": epochs,
        "memory_bytes": session.room().bytes,
        "steps_forward": session.steps(),
        "output": output.map(|path| path.display().to_string()),
        "compile_s": compile_s,
        "run_s": run_s,
    })
}

/// A line on a terminal, nothing when piped; stops at Ctrl-C.
struct Progress {
    bar: ProgressBar,
    interrupt: Interrupt,
    epoch: (u64, u64),
}

impl Progress {
    fn new(quiet: bool) -> Progress {
        let bar = spinner(quiet);
        Progress { bar, interrupt: Interrupt::catch(), epoch: (0, 0) }
    }
}

impl Watcher for Progress {
    fn batch(&mut self, seen: usize, of: usize, loss: f64) -> bool {
        let (epoch, epochs) = self.epoch;
        self.bar.set_message(format!("epoch {epoch} of {epochs}, {seen} of {of} samples, loss {loss:.4}"));
        !self.interrupt.pressed()
    }
}
