//! Losses of what trials read out, and their slopes.
//!
//! In come samples of a readout `[sample][trial][cell]` and the class of each trial; out go the loss, its slope in every sample, and the class that each trial
//! is taken for.
//! Never true here: a trial without a class counts.

use crate::hir::{Loss, Readout};

/// A loss over a batch.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Judge {
    /// Which loss.
    pub loss: Loss,
    /// What of the samples it sees.
    pub readout: Readout,
    /// The cells of a trial.
    pub cells: usize,
}

/// What a loss says of a batch.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Judged {
    /// The mean over the trials that have a class.
    pub loss: f64,
    /// The slope in every sample.
    pub slopes: Vec<f64>,
    /// How many trials are taken for their class.
    pub right: usize,
}

impl Judge {
    /// Judges a batch; `classes` may be fewer than there are trials: the others do not count.
    pub fn judge(&self, samples: &[f64], trials: usize, classes: &[usize]) -> Judged {
        let each = trials * self.cells;
        let steps = samples.len().checked_div(each).unwrap_or(0).max(1);
        let mut judged = Judged { loss: 0.0, slopes: vec![0.0; samples.len()], right: 0 };
        let share = 1.0 / classes.len().max(1) as f64;
        for (trial, &class) in classes.iter().enumerate() {
            let at = |step: usize, cell: usize| step * each + trial * self.cells + cell;
            // What is read out of each cell, and which sample it is, if it is one.
            let read = |cell: usize| -> (f64, Option<usize>) {
                let values = (0..steps).map(|step| samples[at(step, cell)]);
                match self.readout {
                    Readout::SpikeCount => (values.sum(), None),
                    Readout::Mean => (values.sum::<f64>() / steps as f64, None),
                    Readout::Last => (samples[at(steps - 1, cell)], Some(steps - 1)),
                    Readout::Max => {
                        let best = values
                            .enumerate()
                            .fold((f64::NEG_INFINITY, 0), |best, (step, x)| if x > best.0 { (x, step) } else { best });
                        (best.0, Some(best.1))
                    }
                }
            };
            let found: Vec<(f64, Option<usize>)> = (0..self.cells).map(read).collect();
            let values: Vec<f64> = found.iter().map(|(x, _)| *x).collect();
            let (loss, slopes) = self.of_trial(&values, class);
            judged.loss += share * loss;
            judged.right += usize::from(largest(&values) == class);
            for (cell, ((_, one), slope)) in found.iter().zip(slopes).enumerate() {
                let slope = share * slope;
                match (one, self.readout) {
                    (Some(step), _) => judged.slopes[at(*step, cell)] = slope,
                    (None, Readout::Mean) => {
                        (0..steps).for_each(|step| judged.slopes[at(step, cell)] = slope / steps as f64);
                    }
                    (None, _) => (0..steps).for_each(|step| judged.slopes[at(step, cell)] = slope),
                }
            }
        }
        judged
    }

    fn of_trial(&self, values: &[f64], class: usize) -> (f64, Vec<f64>) {
        match self.loss {
            Loss::CrossEntropy => {
                let most = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
                let powers: Vec<f64> = values.iter().map(|x| (x - most).exp()).collect();
                let sum: f64 = powers.iter().sum();
                let slopes = powers.iter().enumerate().map(|(at, p)| p / sum - f64::from(at == class));
                (sum.ln() + most - values[class], slopes.collect())
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

/// The first of the largest values.
fn largest(values: &[f64]) -> usize {
    values.iter().enumerate().fold((f64::NEG_INFINITY, 0), |best, (at, &x)| if x > best.0 { (x, at) } else { best }).1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slopes_are_those_of_differences() {
        let losses = [Loss::CrossEntropy, Loss::MeanSquare { correct: 3.0, incorrect: -1.0 }];
        for loss in losses {
            for readout in [Readout::SpikeCount, Readout::Mean, Readout::Max, Readout::Last] {
                let judge = Judge { loss, readout, cells: 3 };
                let steps = if readout == Readout::SpikeCount { 1 } else { 4 };
                // Three trials, two with a class.
                let samples: Vec<f64> = (0..steps * 9).map(|i| ((i * i * 7 + i) % 23) as f64 / 7.0).collect();
                let found = judge.judge(&samples, 3, &[2, 0]);
                for at in 0..samples.len() {
                    let with = |by: f64| {
                        let mut samples = samples.clone();
                        samples[at] += by;
                        judge.judge(&samples, 3, &[2, 0]).loss
                    };
                    let difference = (with(1e-6) - with(-1e-6)) / 2e-6;
                    assert!((difference - found.slopes[at]).abs() < 1e-8, "{loss:?} {readout:?} {at}");
                }
            }
        }
    }

    #[test]
    fn the_largest_readout_is_the_class() {
        let judge = Judge { loss: Loss::CrossEntropy, readout: Readout::SpikeCount, cells: 2 };
        let found = judge.judge(&[3.0, 1.0, 0.0, 5.0, 2.0, 2.0], 3, &[0, 0, 0]);
        assert_eq!(found.right, 2);
        // No number is too large for a softmax.
        assert!(judge.judge(&[1e6, 0.0], 1, &[1]).loss == 1e6);
    }
}
