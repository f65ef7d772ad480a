//! How long the interpreter will take.
//!
//! In comes an engine and the time grid of its run; out goes a guess from a few steps, in words.
//! Never true here: a number of a run depends on it.

use crate::engine::{Engine, EngineError};
use crate::simulate::{Grid, moment};
use std::time::{Duration, Instant};

/// So long is the stretch of steps that is measured, at least.
const MEASURED: Duration = Duration::from_millis(50);
/// Below this, in s, nobody needs an estimate.
const SHORT: f64 = 2.0;
/// From here on, in s, something shorter is proposed,
const LONG: f64 = 20.0;
/// which takes as long as this at most.
const PROPOSED: f64 = 10.0;

/// Seconds per step: takes stretches of steps, each twice as long as the one before, until one is long enough to be measured. The run
/// begins anew afterwards.
pub fn pace(engine: &mut dyn Engine, steps: u64) -> Result<f64, EngineError> {
    engine.init()?;
    let (mut done, mut stretch) = (0, 1);
    loop {
        let window = stretch.min(steps - done);
        let begin = Instant::now();
        engine.step(done, window as u32, &mut Vec::new())?;
        let took = begin.elapsed();
        done += window;
        if took >= MEASURED || done == steps || stretch > u64::from(u16::MAX) {
            return Ok(took.as_secs_f64() / window as f64);
        }
        stretch *= 2;
    }
}

/// What to tell before a run of so many seconds, if anything.
pub fn words(who: &str, seconds: f64, grid: Grid) -> Option<String> {
    if seconds < SHORT {
        return None;
    }
    let about = format!("about {} for {who}", rounded(seconds));
    if seconds < LONG {
        return Some(about);
    }
    Some(match shorter(seconds, grid) {
        Some(duration) => format!("{about}; --duration {duration}ms would be shorter"),
        None => format!("{about}; fewer cells would be shorter"),
    })
}

fn rounded(seconds: f64) -> String {
    match seconds {
        s if s < 10.0 => format!("{s:.0} s"),
        s if s < 100.0 => format!("{:.0} s", (s / 5.0).round() * 5.0),
        s if s < 5400.0 => format!("{:.0} min", s / 60.0),
        s if s < 172_800.0 => format!("{:.0} h", s / 3600.0),
        s => format!("{:.0} days", s / 86400.0),
    }
}

/// A round duration (in ms, a multiple of the step) that would take some seconds.
fn shorter(seconds: f64, grid: Grid) -> Option<String> {
    let most = grid.steps as f64 * grid.dt * PROPOSED / seconds;
    let least = 10.0 * grid.dt;
    let round = |power: i32| [5.0, 2.0, 1.0].map(|first| first * 10f64.powi(power));
    let whole = |duration: f64| (duration / grid.dt - (duration / grid.dt).round()).abs() < 1e-6;
    let found = (-6..=12).rev().flat_map(round).find(|&d| d <= most && whole(d))?;
    (found >= least).then(|| moment(1, found))
}

#[cfg(test)]
mod tests {
    use super::words;
    use crate::simulate::Grid;

    #[test]
    fn long_runs_are_announced() {
        let grid = Grid { dt: 0.025, steps: 40_000 };
        assert_eq!(words("the interpreter", 1.9, grid), None);
        assert_eq!(words("the interpreter", 7.2, grid).unwrap(), "about 7 s for the interpreter");
        let shorter = "about 40 s for the interpreter; --duration 200ms would be shorter";
        assert_eq!(words("the interpreter", 41.0, grid).unwrap(), shorter);
        assert!(words("it", 1500.0, grid).unwrap().starts_with("about 25 min for it; --duration 5ms"));
        // 0.3 ms divides 3 ms, but no 5 or 2.
        let odd = words("it", 3600.0, Grid { dt: 0.3, steps: 10_000 }).unwrap();
        assert_eq!(odd, "about 60 min for it; fewer cells would be shorter");
        let days = words("it", 1e6, Grid { dt: 0.025, steps: 40_000 }).unwrap();
        assert_eq!(days, "about 12 days for it; fewer cells would be shorter");
    }
}
