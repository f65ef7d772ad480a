//! Time as a whole number of steps.
//!
//! In come times in ms and a time step; out go numbers of steps, and times as messages show them.
//! Never true here: a step is cut short, or a time is rounded without its caller's asking.

use crate::units::written;

/// The time grid of a run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Grid {
    /// The time step in ms.
    pub dt: f64,
    /// The number of steps.
    pub steps: u64,
}

/// Step numbers up to here are exact as f64.
pub(super) const MOST_STEPS: f64 = 9e15;

/// A number for a message: very large and very small ones with an exponent.
pub(super) fn shown(x: f64) -> String {
    if x != 0.0 && x.is_finite() && !(1e-5..1e16).contains(&x.abs()) { format!("{x:e}") } else { x.to_string() }
}

/// The time of a step in ms, to twelve digits, which hide the rounding of the product.
pub(crate) fn moment(step: u64, dt: f64) -> String {
    let rounded = format!("{:.11e}", step as f64 * dt).parse();
    shown(rounded.expect("a number that was just printed"))
}

/// How many whole `dt` are in `time`, if it is a multiple (to 1e-6 of a step).
pub(super) fn whole_steps(time: f64, dt: f64) -> Option<u64> {
    let steps = time / dt;
    let near = steps.round();
    ((steps - near).abs() <= 1e-6 * near.max(1.0) && near < MOST_STEPS).then_some(near as u64)
}

/// The multiple of `dt`, from one on, that is next to `time`.
pub(super) fn nearest_multiple(time: f64, dt: f64) -> f64 {
    written((time / dt).round().max(1.0) * dt, 0)
}

#[cfg(test)]
mod tests {
    use super::moment;

    #[test]
    fn moments_hide_the_rounding_of_steps() {
        assert_eq!((200_148.0 * 0.025).to_string(), "5003.700000000001");
        assert_eq!(moment(200_148, 0.025), "5003.7");
        assert_eq!(moment(0, 0.025), "0");
        assert_eq!(moment(3, 0.1), "0.3");
        assert_eq!(moment(7_200_000_001, 0.025), "180000000.025");
    }
}
