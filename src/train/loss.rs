//! Losses of what trials read out, and their slopes.
//!
//! In come samples of readouts `[sample][trial][cell]` and the class of each trial; out go the loss, its slope in every sample, and the class that each trial
//! is taken for.
//! Never true here: a trial without a class counts.

use crate::hir::{Loss, Readout};
use std::ops::Range;

/// A loss over a batch.
#[derive(Debug, Clone, PartialEq)]
pub struct Judge {
    /// Which loss, in the unit of what it sees.
    pub loss: Loss,
    /// What one of that unit is in canonical units, which samples have.
    pub unit: f64,
    /// What of the samples it sees.
    pub read: Reading,
    /// What is kept within bounds besides.
    pub kept: Vec<Kept>,
    /// The length of a step (ms).
    pub dt: f64,
}

/// What is read out of samples.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Reading {
    /// What.
    pub readout: Readout,
    /// Of which samples: a number.
    pub of: usize,
    /// The cells of a trial.
    pub cells: usize,
}

/// What is kept within bounds: of each cell the mean over trials.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Kept {
    /// What.
    pub read: Reading,
    /// The least value that costs nothing.
    pub low: f64,
    /// The largest.
    pub high: f64,
    /// How far outside a cell costs 1.
    pub within: f64,
}

/// What a loss says of a batch.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Judged {
    /// The mean over the trials that have a class, and what bounds cost.
    pub loss: f64,
    /// The slope in every sample.
    pub slopes: Vec<Vec<f64>>,
    /// How many trials are taken for their class.
    pub right: usize,
}

/// Samples as they are read.
struct Samples<'a> {
    values: &'a [f64],
    cells: usize,
    /// Values of one sample.
    each: usize,
}

impl Samples<'_> {
    fn steps(&self) -> usize {
        self.values.len().checked_div(self.each).unwrap_or(0).max(1)
    }

    fn at(&self, step: usize, trial: usize, cell: usize) -> usize {
        step * self.each + trial * self.cells + cell
    }

    /// What is read out of a cell in some steps, and what its slope in each of them is.
    fn read(&self, readout: Readout, steps: Range<usize>, (trial, cell): (usize, usize), dt: f64) -> (f64, Slope) {
        let mut values = steps.clone().map(|step| self.values[self.at(step, trial, cell)]);
        let last = steps.end - 1;
        match readout {
            Readout::SpikeCount | Readout::EveryStep => (values.sum(), Slope::All(1.0)),
            Readout::Mean => {
                let share = 1.0 / steps.len() as f64;
                (values.sum::<f64>() / steps.len() as f64, Slope::All(share))
            }
            Readout::Last => (self.values[self.at(last, trial, cell)], Slope::One(last, 1.0)),
            Readout::Max => {
                let more = |best: (f64, usize), (step, x): (usize, f64)| if x > best.0 { (x, step) } else { best };
                let best = steps.zip(values).fold((f64::NEG_INFINITY, 0), more);
                (best.0, Slope::One(best.1, 1.0))
            }
            // More of a spike makes it come a step earlier.
            Readout::FirstSpike => {
                let step = values.position(|x| x > 0.5).map_or(last, |at| steps.start + at);
                ((step + 1) as f64 * dt, Slope::One(step, -dt))
            }
        }
    }
}

/// The slope of a readout.
#[derive(Clone, Copy)]
enum Slope {
    /// The same in all steps.
    All(f64),
    /// In one step.
    One(usize, f64),
}

impl Judge {
    /// Judges a batch by the samples of each readout; `classes` may be fewer than there are trials: the others do not count.
    pub fn judge(&self, samples: &[Vec<f64>], trials: usize, classes: &[usize]) -> Judged {
        let slopes = samples.iter().map(|samples| vec![0.0; samples.len()]).collect();
        let mut judged = Judged { loss: 0.0, slopes, right: 0 };
        let of = |read: Reading| Samples { values: &samples[read.of], cells: read.cells, each: trials * read.cells };
        self.judge_classes(&of(self.read), classes, &mut judged);
        for kept in &self.kept {
            self.judge_bounds(kept, &of(kept.read), classes.len(), &mut judged);
        }
        judged
    }

    fn judge_classes(&self, samples: &Samples<'_>, classes: &[usize], judged: &mut Judged) {
        let Reading { readout, of, cells } = self.read;
        let (steps, trials) = (samples.steps(), classes.len().max(1) as f64);
        // Every step by itself, or all of them together.
        let stretch = if readout == Readout::EveryStep { 1 } else { steps };
        let share = stretch as f64 / (steps as f64 * trials);
        for (trial, &class) in classes.iter().enumerate() {
            let mut sum = vec![0.0; cells];
            for begin in (0..steps).step_by(stretch) {
                let stretch = begin..begin + stretch;
                let read = |cell: usize| samples.read(readout, stretch.clone(), (trial, cell), self.dt);
                let found: Vec<(f64, Slope)> = (0..cells).map(read).collect();
                // The earlier, the larger.
                let sign = if readout == Readout::FirstSpike { -1.0 } else { 1.0 };
                sum.iter_mut().zip(&found).for_each(|(sum, (x, _))| *sum += sign * x);
                let values: Vec<f64> = found.iter().map(|(x, _)| *x / self.unit).collect();
                let (loss, slopes) = self.of_trial(&values, class, sign);
                judged.loss += share * loss;
                for (cell, ((_, one), slope)) in found.iter().zip(slopes).enumerate() {
                    let slope = share * slope / self.unit;
                    add(&mut judged.slopes[of], samples, stretch.clone(), (trial, cell), *one, slope);
                }
            }
            judged.right += usize::from(largest(&sum) == class);
        }
    }

    fn judge_bounds(&self, kept: &Kept, samples: &Samples<'_>, trials: usize, judged: &mut Judged) {
        let Reading { readout, of, cells } = kept.read;
        let (steps, share) = (0..samples.steps(), 1.0 / trials.max(1) as f64);
        for cell in 0..cells {
            let read = |trial: usize| samples.read(readout, steps.clone(), (trial, cell), self.dt);
            let found: Vec<(f64, Slope)> = (0..trials).map(read).collect();
            let mean = share * found.iter().map(|(x, _)| x).sum::<f64>();
            let off = (mean - mean.clamp(kept.low, kept.high)) / kept.within;
            judged.loss += off * off / cells as f64;
            let slope = 2.0 * off * share / (kept.within * cells as f64);
            for (trial, (_, one)) in found.iter().enumerate().filter(|_| slope != 0.0) {
                add(&mut judged.slopes[of], samples, steps.clone(), (trial, cell), *one, slope);
            }
        }
    }

    /// The loss of a trial, and its slopes; with a sign of -1 small values are likely.
    fn of_trial(&self, values: &[f64], class: usize, sign: f64) -> (f64, Vec<f64>) {
        match self.loss {
            Loss::CrossEntropy => {
                let most = values.iter().map(|x| sign * x).fold(f64::NEG_INFINITY, f64::max);
                let powers: Vec<f64> = values.iter().map(|x| (sign * x - most).exp()).collect();
                let sum: f64 = powers.iter().sum();
                let slopes = powers.iter().enumerate().map(|(at, p)| sign * (p / sum - f64::from(at == class)));
                (sum.ln() + most - sign * values[class], slopes.collect())
            }
            Loss::MeanSquare { correct, incorrect } => {
                let count = values.len() as f64;
                let off = |(at, x): (usize, &f64)| x - if at == class { correct } else { incorrect };
                let off: Vec<f64> = values.iter().enumerate().map(off).collect();
                (off.iter().map(|x| x * x).sum::<f64>() / count, off.iter().map(|x| 2.0 * x / count).collect())
            }
        }
    }
}

/// Adds the slope in what is read out of a cell to those in its samples.
fn add(
    slopes: &mut [f64],
    samples: &Samples<'_>,
    steps: Range<usize>,
    (trial, cell): (usize, usize),
    one: Slope,
    slope: f64,
) {
    match one {
        Slope::All(share) => steps.for_each(|step| slopes[samples.at(step, trial, cell)] += slope * share),
        Slope::One(step, share) => slopes[samples.at(step, trial, cell)] += slope * share,
    }
}

/// The first of the largest values.
fn largest(values: &[f64]) -> usize {
    values.iter().enumerate().fold((f64::NEG_INFINITY, 0), |best, (at, &x)| if x > best.0 { (x, at) } else { best }).1
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reading(readout: Readout, of: usize, cells: usize) -> Reading {
        Reading { readout, of, cells }
    }

    #[test]
    fn slopes_are_those_of_differences() {
        let losses = [Loss::CrossEntropy, Loss::MeanSquare { correct: 3.0, incorrect: -1.0 }];
        let readouts = [Readout::SpikeCount, Readout::Mean, Readout::Max, Readout::Last, Readout::EveryStep];
        for (loss, unit) in losses.into_iter().zip([1.0, 0.25]) {
            for readout in readouts {
                // Of two cells, above and below their bounds, by both kinds of readouts.
                let kept = |readout: Readout, low: f64, high: f64| Kept {
                    read: reading(readout, 1, 2),
                    low,
                    high,
                    within: 0.5,
                };
                let kept = vec![kept(Readout::Mean, 1.2, 1.4), kept(Readout::Max, 0.0, 1.0)];
                let judge = Judge { loss, unit, read: reading(readout, 0, 3), kept, dt: 0.5 };
                let steps = if readout == Readout::SpikeCount { 1 } else { 4 };
                // Three trials, two with a class.
                let number = |i: usize| ((i * i * 7 + i) % 23) as f64 / 7.0;
                let samples: Vec<Vec<f64>> =
                    vec![(0..steps * 9).map(number).collect(), (0..5 * 6).map(|i| number(i + 3)).collect()];
                let found = judge.judge(&samples, 3, &[2, 0]);
                for (of, at) in (0..samples.len()).flat_map(|of| (0..samples[of].len()).map(move |at| (of, at))) {
                    let with = |by: f64| {
                        let mut samples = samples.clone();
                        samples[of][at] += by;
                        judge.judge(&samples, 3, &[2, 0]).loss
                    };
                    let difference = (with(1e-6) - with(-1e-6)) / 2e-6;
                    assert!(
                        (difference - found.slopes[of][at]).abs() < 1e-8 / (unit * unit),
                        "{loss:?} {readout:?} {of} {at}"
                    );
                }
                assert!(found.slopes[1].iter().any(|slope| *slope != 0.0));
            }
        }
    }

    #[test]
    fn the_largest_readout_is_the_class() {
        let read = reading(Readout::SpikeCount, 0, 2);
        let judge = Judge { loss: Loss::CrossEntropy, unit: 1.0, read, kept: Vec::new(), dt: 1.0 };
        let found = judge.judge(&[vec![3.0, 1.0, 0.0, 5.0, 2.0, 2.0]], 3, &[0, 0, 0]);
        assert_eq!(found.right, 2);
        // No number is too large for a softmax.
        assert!(judge.judge(&[vec![1e6, 0.0]], 1, &[1]).loss == 1e6);
    }

    #[test]
    fn the_earliest_spike_is_the_class() {
        let read = reading(Readout::FirstSpike, 0, 3);
        let judge = Judge { loss: Loss::CrossEntropy, unit: 1.0, read, kept: Vec::new(), dt: 0.5 };
        // After 1 ms, not at all, and after 0.5 ms and again.
        let samples = vec![vec![0.0, 0.0, 1.0, 1.0, 0.0, 0.0, 0.0, 0.0, 1.0]];
        let found = judge.judge(&samples, 1, &[2]);
        assert_eq!(found.right, 1);
        let sum: f64 = [-1.0f64, -1.5, -0.5].iter().map(|x| x.exp()).sum();
        assert!((found.loss - (sum.ln() + 0.5)).abs() < 1e-15);
        // Where they are, or at the end: those of other classes shall come later, that of the class earlier.
        let p = [-1.0f64, -1.5, -0.5].map(|x| x.exp() / sum);
        let expected = [0.0, 0.0, 0.5 * (p[2] - 1.0), 0.5 * p[0], 0.0, 0.0, 0.0, 0.5 * p[1], 0.0];
        for (slope, expected) in found.slopes[0].iter().zip(expected) {
            assert!((slope - expected).abs() < 1e-15, "{:?}", found.slopes);
        }
    }
}
