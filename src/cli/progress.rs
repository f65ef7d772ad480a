//! What users see of a long run, and how they end it.
//!
//! In come the steps done; out go a bar on a terminal (nothing when piped) and the news that Ctrl-C was pressed.
//! Never true here: a number of a run depends on it.

use crate::simulate::{Grid, Watcher};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::IsTerminal;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Has Ctrl-C been pressed (or another request to end come)?
#[derive(Debug, Clone)]
pub struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// From now on, Ctrl-C is remembered. A second one ends the process at once.
    pub fn catch() -> Interrupt {
        let pressed = Arc::new(AtomicBool::new(false));
        let flag = pressed.clone();
        // If no handler can be set, Ctrl-C does what it always does.
        let _ = ctrlc::set_handler(move || {
            if flag.swap(true, Ordering::SeqCst) {
                std::process::exit(130);
            }
        });
        Interrupt(pressed)
    }

    /// It has.
    pub fn pressed(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// Where bars are drawn.
fn target(quiet: bool) -> ProgressDrawTarget {
    let hidden = quiet || !std::io::stderr().is_terminal();
    if hidden { ProgressDrawTarget::hidden() } else { ProgressDrawTarget::stderr() }
}

/// A line that turns on a terminal for what has no known end, nothing when piped.
pub fn spinner(quiet: bool) -> ProgressBar {
    let bar = ProgressBar::with_draw_target(None, target(quiet));
    if let Ok(style) = ProgressStyle::with_template("{spinner} {msg}, {elapsed}") {
        bar.set_style(style);
    }
    bar.enable_steady_tick(Duration::from_millis(200));
    bar
}

/// A bar that counts runs on a terminal, nothing when piped.
pub fn runs(count: usize, quiet: bool) -> ProgressBar {
    let bar = ProgressBar::with_draw_target(Some(count as u64), target(quiet));
    if let Ok(style) = ProgressStyle::with_template("{bar:32} {pos} of {len} runs  {eta} left") {
        bar.set_style(style);
    }
    bar
}

/// A progress bar on a terminal, nothing when piped; stops at Ctrl-C.
pub struct Progress {
    bar: ProgressBar,
    interrupt: Interrupt,
    dt: f64,
    begin: Instant,
    last: Instant,
}

impl Progress {
    /// A bar that begins with `label`.
    pub fn new(label: &str, grid: Grid, interrupt: &Interrupt, quiet: bool) -> Progress {
        let bar = ProgressBar::with_draw_target(Some(grid.steps), target(quiet));
        if let Ok(style) = ProgressStyle::with_template("{prefix}{bar:32} {percent:>3} %  {msg}  {eta} left") {
            bar.set_style(style);
        }
        bar.set_prefix(label.to_string());
        let now = Instant::now();
        Progress { bar, interrupt: interrupt.clone(), dt: grid.dt, begin: now, last: now }
    }

    /// Removes the bar.
    pub fn finish(&self) {
        self.bar.finish_and_clear();
    }
}

impl Watcher for Progress {
    fn step(&mut self, done: u64) -> bool {
        if self.last.elapsed().as_millis() >= 100 {
            self.last = Instant::now();
            let model_ms = done as f64 * self.dt;
            let factor = model_ms / 1e3 / self.begin.elapsed().as_secs_f64();
            self.bar.set_position(done);
            self.bar.set_message(format!("{model_ms:.1} ms, real-time factor {factor:.3}"));
        }
        !self.interrupt.pressed()
    }
}
