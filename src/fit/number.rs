//! Numbers that are read out of a run: counts and times of spikes, extremes, means, widths.
//!
//! In comes what a run shows; out goes a number for each cell, where it has one, and what the run is off by.
//! Never true here: a cell that does not spike has a first spike.

use super::Observed;
use crate::hir::Feature;

/// Off by so many times what counts as far is a cell that has no such number.
const NONE: f64 = 100.0;

/// A sum of steps is that much (ms) more or less than the time that is written.
const SLACK: f64 = 1e-9;

/// All of a run.
pub const WHOLE: (f64, f64) = (0.0, f64::INFINITY);

/// A number that each cell is to come near to.
#[derive(Debug, Clone, PartialEq)]
pub struct Number {
    /// What is read out.
    pub feature: Feature,
    /// The record or the train, by its place in the [`Records`](crate::simulate::Records).
    pub of: usize,
    /// From when on and until when (ms) it is read out; infinite where it is until the end.
    pub window: (f64, f64),
    /// What the number should be, in canonical units: one for all cells, or one for each.
    pub value: Vec<f64>,
    /// Being off by so much counts 1.
    pub within: f64,
    /// When the record is sampled (ms).
    pub times: Vec<f64>,
    /// How long the run is (ms).
    pub duration: f64,
}

/// What counts as far if nobody says it: a tenth of the greatest number. Nothing of zeros alone.
pub fn tenth(value: &[f64]) -> Option<f64> {
    value.iter().map(|x| x.abs() / 10.0).reduce(f64::max).filter(|far| *far > 0.0)
}

impl Number {
    /// Why no run has such numbers, if none has.
    pub fn cannot_be(&self) -> Option<&'static str> {
        let any = |wrong: &dyn Fn(f64) -> bool| self.value.iter().any(|&x| wrong(x));
        match self.feature {
            Feature::SpikeCount | Feature::Rate | Feature::Interval | Feature::Width if any(&|x| x < 0.0) => {
                Some("is not negative")
            }
            Feature::FirstSpike if any(&|x| x < 0.0 || x > self.duration) => Some("is a time within the run"),
            Feature::FirstSpike if any(&|x| x < self.window.0 || x > self.window.1) => {
                Some("is a time within its window")
            }
            _ => None,
        }
    }

    /// The number of each cell.
    pub fn of_cells(&self, seen: Observed<'_>) -> Vec<Option<f64>> {
        if self.feature.of_spikes() {
            let cells = seen.spikes.get(self.of).map_or(&[][..], Vec::as_slice);
            let lasts = self.window.1.min(self.duration) - self.window.0;
            // In order: of two windows that follow each other a spike between them is in one.
            let within = |spikes: &'_ [f64]| {
                let before = |end: f64| spikes.partition_point(|t| *t < end - SLACK);
                before(self.window.0)..before(self.window.1)
            };
            return cells.iter().map(|spikes| of_spikes(self.feature, &spikes[within(spikes)], lasts)).collect();
        }
        let samples = seen.samples.get(self.of).map_or(&[][..], Vec::as_slice);
        let cells = samples.len().checked_div(self.times.len()).unwrap_or(0);
        let of_cell = |cell: usize| {
            let values = samples.iter().skip(cell).step_by(cells.max(1)).copied();
            let counted = self.times.iter().copied().zip(values).filter(|(t, _)| self.is_within(*t));
            let (times, values): (Vec<f64>, Vec<f64>) = counted.unzip();
            of_record(self.feature, &times, &values)
        };
        (0..cells).map(of_cell).collect()
    }

    /// Does a sample of this time (ms) count? Those at both ends do, as in a record.
    pub(super) fn is_within(&self, t: f64) -> bool {
        t >= self.window.0 - SLACK && t <= self.window.1 + SLACK
    }

    /// The mean over cells of the squared differences by what counts as far, and the root of their mean, in canonical units: infinite if a cell has no such number.
    pub fn error(&self, seen: Observed<'_>) -> (f64, f64) {
        let cells = self.of_cells(seen);
        let wanted = self.value.iter().cycle();
        let off: Vec<f64> =
            cells.iter().zip(wanted).map(|(x, wanted)| x.map_or(f64::INFINITY, |x| x - wanted)).collect();
        let count = cells.len().max(1) as f64;
        let capped = |x: f64| if x.is_infinite() { NONE } else { x / self.within };
        let loss = off.iter().map(|&x| capped(x).powi(2)).sum::<f64>() / count;
        let square = off.iter().map(|x| x.powi(2)).sum::<f64>() / count;
        (loss, square.sqrt())
    }
}

fn of_spikes(feature: Feature, spikes: &[f64], duration: f64) -> Option<f64> {
    let count = spikes.len() as f64;
    match feature {
        Feature::SpikeCount => Some(count),
        Feature::Rate => Some(count / duration),
        Feature::FirstSpike => spikes.first().copied(),
        Feature::Interval => match spikes {
            [first, .., last] => Some((last - first) / (count - 1.0)),
            _ => None,
        },
        Feature::Least | Feature::Greatest | Feature::Mean | Feature::Last | Feature::Width => None,
    }
}

fn of_record(feature: Feature, times: &[f64], values: &[f64]) -> Option<f64> {
    let count = values.len() as f64;
    let least = values.iter().copied().reduce(f64::min)?;
    let greatest = values.iter().copied().reduce(f64::max)?;
    // An infinite value, or none, is no number of a record.
    let sum: f64 = values.iter().sum();
    if !sum.is_finite() {
        return None;
    }
    match feature {
        Feature::Least => Some(least),
        Feature::Greatest => Some(greatest),
        Feature::Mean => Some(sum / count),
        Feature::Last => values.last().copied(),
        Feature::Width => width(times, values, (least + greatest) / 2.0),
        Feature::SpikeCount | Feature::Rate | Feature::FirstSpike | Feature::Interval => None,
    }
}

/// How long values stay above a level, on the mean of all times that they begin and cease to; between samples they are linear.
fn width(times: &[f64], values: &[f64], level: f64) -> Option<f64> {
    let (mut began, mut sum, mut count) = (None, 0.0, 0.0);
    for (t, x) in times.windows(2).zip(values.windows(2)) {
        let crossed = || t[0] + (level - x[0]) / (x[1] - x[0]) * (t[1] - t[0]);
        match (x[0] > level, x[1] > level) {
            (false, true) => began = Some(crossed()),
            (true, false) => {
                if let Some(began) = began.take() {
                    sum += crossed() - began;
                    count += 1.0;
                }
            }
            (true, true) | (false, false) => {}
        }
    }
    (count > 0.0).then(|| sum / count)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(feature: Feature, value: f64, within: f64) -> Number {
        let times = vec![0.0, 1.0, 2.0, 3.0, 4.0];
        Number { feature, of: 0, window: WHOLE, value: vec![value], within, times, duration: 20.0 }
    }

    #[test]
    fn numbers_of_spikes_are_those_of_each_cell() {
        let spikes = [vec![vec![1.0, 4.0, 9.0], vec![], vec![5.0]]];
        let seen = Observed { samples: &[], spikes: &spikes };
        let cells = |feature| number(feature, 0.0, 1.0).of_cells(seen);
        assert_eq!(cells(Feature::SpikeCount), [Some(3.0), Some(0.0), Some(1.0)]);
        assert_eq!(cells(Feature::Rate), [Some(3.0 / 20.0), Some(0.0), Some(1.0 / 20.0)]);
        assert_eq!(cells(Feature::FirstSpike), [Some(1.0), None, Some(5.0)]);
        assert_eq!(cells(Feature::Interval), [Some(4.0), None, None]);
        let (loss, off) = number(Feature::SpikeCount, 2.0, 0.5).error(seen);
        assert_eq!((loss, off), ((4.0 + 16.0 + 4.0) / 3.0, (6.0f64 / 3.0).sqrt()));
        let each = Number { value: vec![4.0, 0.0, 0.0], ..number(Feature::SpikeCount, 0.0, 0.5) };
        assert_eq!(each.error(seen), ((4.0 + 0.0 + 4.0) / 3.0, (2.0f64 / 3.0).sqrt()));
        let (loss, off) = number(Feature::FirstSpike, 2.0, 0.5).error(seen);
        assert_eq!((loss, off), ((4.0 + NONE * NONE + 36.0) / 3.0, f64::INFINITY));
    }

    #[test]
    fn numbers_are_those_of_a_window() {
        let spikes = [vec![vec![1.0, 4.0, 9.0, 10.0], vec![2.0]]];
        let seen = Observed { samples: &[], spikes: &spikes };
        let cells = |feature, window| Number { window, ..number(feature, 0.0, 1.0) }.of_cells(seen);
        assert_eq!(cells(Feature::SpikeCount, (4.0, 10.0)), [Some(2.0), Some(0.0)]);
        assert_eq!(cells(Feature::SpikeCount, (10.0, f64::INFINITY)), [Some(1.0), Some(0.0)]);
        assert_eq!(cells(Feature::Rate, (2.0, 10.0)), [Some(2.0 / 8.0), Some(1.0 / 8.0)]);
        assert_eq!(cells(Feature::Rate, (8.0, 100.0)), [Some(2.0 / 12.0), Some(0.0)]);
        assert_eq!(cells(Feature::FirstSpike, (3.0, 10.0)), [Some(4.0), None]);
        assert_eq!(cells(Feature::Interval, (0.0, 9.5)), [Some(4.0), None]);
        let samples = [vec![0.0, 2.0, 6.0, 2.0, 1.0]];
        let seen = Observed { samples: &samples, spikes: &[] };
        let cells = |feature, window| Number { window, ..number(feature, 0.0, 1.0) }.of_cells(seen);
        assert_eq!(cells(Feature::Mean, (1.0, 2.0)), [Some(4.0)]);
        assert_eq!(cells(Feature::Greatest, (3.0, f64::INFINITY)), [Some(2.0)]);
        assert_eq!(cells(Feature::Last, (0.0, 3.0)), [Some(2.0)]);
        assert_eq!(cells(Feature::Least, (2.2, 2.8)), [None]);
    }

    #[test]
    fn numbers_of_records_are_those_of_each_column() {
        // Two cells: 0 2 6 2 0 and the negative.
        let samples = [vec![0.0, 0.0, 2.0, -2.0, 6.0, -6.0, 2.0, -2.0, 0.0, 0.0]];
        let seen = Observed { samples: &samples, spikes: &[] };
        let cells = |feature| number(feature, 0.0, 1.0).of_cells(seen);
        assert_eq!(cells(Feature::Least), [Some(0.0), Some(-6.0)]);
        assert_eq!(cells(Feature::Greatest), [Some(6.0), Some(0.0)]);
        assert_eq!(cells(Feature::Mean), [Some(2.0), Some(-2.0)]);
        assert_eq!(cells(Feature::Last), [Some(0.0), Some(0.0)]);
        // Above 3 from 1.25 to 2.75; the other begins above, which is no whole time, and never comes back down.
        assert_eq!(cells(Feature::Width), [Some(1.5), None]);
    }
}
