//! Fitting: for which values of free parameters a run comes nearest to given traces and numbers.
//!
//! In come a run that can be repeated ([`Runs`]), bounds of its free parameters and [`Target`]s; out go the best values that were found, with how near they come.
//! Never true here: a value leaves its bounds, a run that is not finite counts as near, or what is found is worse than what a search begins with.
//!
//! The loss is the mean over the targets. Of a trace it is the mean squared error, divided by the variance of the trace: 1 if a run is no nearer than the
//! trace's mean. Of a number it is the mean over cells of the squared difference, divided by the square of what counts as far. Bounds are kept by a
//! transform: `x = low + (high - low) / (1 + e^-u)` with `u` unbounded.

mod number;
mod runs;
mod search;
mod target;
mod trace;

pub use number::{Number, WHOLE, tenth};
pub use runs::{Observed, Runs};
pub use search::{Outcome, Search, Start, Unwatched, Watcher, fit, idle, loss};
pub use target::{Target, cells, targets};
pub use trace::Trace;

pub use crate::hir::FitSearch as Method;

/// No search begins with an unbounded number that is farther from 0. It is a ten-thousandth of the way from a bound to the other one; a loss hardly
/// changes with what is nearer.
const FAR: f64 = 9.2;

/// The values that a free parameter can have, in canonical units.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bounds {
    /// The least.
    pub low: f64,
    /// The greatest.
    pub high: f64,
}

impl Bounds {
    /// The value that belongs to an unbounded number, and the derivative in it.
    fn inside(self, u: f64) -> (f64, f64) {
        let width = self.high - self.low;
        let s = 1.0 / (1.0 + (-u).exp());
        // A sum is rounded.
        ((self.low + width * s).clamp(self.low, self.high), width * s * (1.0 - s))
    }

    /// The unbounded number that belongs to a value between the bounds; infinite for the bounds themselves.
    fn outside(self, x: f64) -> f64 {
        ((x - self.low) / (self.high - x)).ln()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_stay_inside() {
        let bounds = Bounds { low: -3.0, high: 7.0 };
        for u in [-1e9, -800.0, -3.0, 0.0, 0.2, 5.0, 800.0, 1e9] {
            let (x, slope) = bounds.inside(u);
            assert!((-3.0..=7.0).contains(&x) && slope.is_finite(), "{u} {x} {slope}");
            let near = (bounds.inside(u + 1e-6).0 - bounds.inside(u - 1e-6).0) / 2e-6;
            assert!((slope - near).abs() < 1e-6, "{u}: {slope}, not {near}");
        }
        for x in [-3.0, -3.0 + 1e-9, -2.8, 0.0, 6.5, 7.0] {
            assert!((bounds.inside(bounds.outside(x)).0 - x).abs() < 1e-12, "{x}");
        }
        let rounded = Bounds { low: 0.3, high: 0.9 };
        assert_eq!([f64::NEG_INFINITY, f64::INFINITY].map(|u| rounded.inside(u).0), [0.3, 0.9]);
        assert!(bounds.inside(-FAR).0 < -2.99 && bounds.inside(-FAR).1 > 1e-4);
    }
}
