//! Samples and their classes.
//!
//! In comes an archive with the arrays `x` and `y`; out go samples in random order, cut into batches, or what is wrong with the arrays.
//! Never true here: a sample is changed, or an order depends on more than the seed and the epoch.

use super::Archive;
use crate::diag::{Code, Diagnostic};
use crate::source::Span;
use std::path::Path;

/// Samples with a class each, and which of them are for testing.
#[derive(Debug, Clone, PartialEq)]
pub struct Dataset {
    /// `[sample][frame][value]`
    x: Vec<f64>,
    frames: usize,
    values: usize,
    /// Of a sample, as the array has it.
    shape: Vec<usize>,
    y: Vec<usize>,
    train: Vec<usize>,
    test: Vec<usize>,
}

impl Dataset {
    /// Reads the arrays `x` (samples first, then frames if there are any) and `y` of an archive. `span` is where the file is named; a share `test` of the
    /// samples, drawn with the seed, is kept for testing.
    pub fn read(path: &Path, span: Span, framed: bool, test: f64, seed: u64) -> Result<Dataset, Diagnostic> {
        let name = path.display();
        let wrong = |why: String| Diagnostic::new(Code::BadData, span, format!("`{name}` cannot be used"), why);
        let mut archive = Archive::open(path).map_err(|why| {
            let d = Diagnostic::new(Code::CannotRead, span, format!("cannot read `{name}`"), why);
            d.note("file names are relative to the model file")
        })?;
        let [x, y] = ["x", "y"].map(|name| archive.array(name));
        let (x, y) = (x.map_err(wrong)?, y.map_err(wrong)?);
        let samples = x.shape().first().copied().unwrap_or(0);
        if samples == 0 || x.is_empty() {
            return Err(wrong("`x` has no samples".into()));
        }
        if framed && x.ndim() < 3 {
            return Err(wrong(format!(
                "in frames `x` is samples by frames by cells, but its shape is {:?}",
                x.shape()
            )));
        }
        let frames = if framed { x.shape()[1] } else { 1 };
        if y.shape() != [samples] {
            return Err(wrong(format!("`x` has {samples} samples, but the shape of `y` is {:?}", y.shape())));
        }
        if let Some(at) = x.iter().position(|x| !x.is_finite()) {
            let values = x.len() / samples;
            return Err(wrong(format!("value {} of sample {} is not a finite number", at % values, at / values)));
        }
        if let Some((at, class)) = y.iter().enumerate().find(|(_, y)| **y < 0.0 || y.fract() != 0.0 || **y > 1e9) {
            return Err(wrong(format!("the class of sample {at} is {class}, not a whole number from 0 on")));
        }
        let order = shuffled(samples, seed, u64::MAX);
        let (test, train) = order.split_at(share(samples, test).min(samples - 1));
        let [mut test, mut train] = [test, train].map(<[usize]>::to_vec);
        test.sort_unstable();
        train.sort_unstable();
        let values = x.len() / samples / frames;
        let y = y.iter().map(|&class| class as usize).collect();
        let shape = x.shape()[1..].to_vec();
        Ok(Dataset { x: x.iter().copied().collect(), frames, values, shape, y, train, test })
    }

    /// How many bytes the arrays of an archive have when they are unpacked; none if it cannot be opened.
    pub fn bytes(path: &Path) -> Option<u64> {
        Archive::open(path).ok()?.unpacked()
    }

    /// How many samples there are.
    pub fn count(&self) -> usize {
        self.y.len()
    }

    /// How many frames a sample has, one after the other; one if it does not change.
    pub fn frames(&self) -> usize {
        self.frames
    }

    /// The shape of a sample in its array.
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// How many values a frame of a sample has.
    pub fn values(&self) -> usize {
        self.values
    }

    /// One more than the largest class.
    pub fn classes(&self) -> usize {
        self.y.iter().max().map_or(0, |most| most + 1)
    }

    /// The smallest class.
    pub fn least_class(&self) -> usize {
        self.y.iter().min().copied().unwrap_or(0)
    }

    /// The samples that are learnt from, in order.
    pub fn train(&self) -> &[usize] {
        &self.train
    }

    /// The samples that are kept for testing, in order.
    pub fn test(&self) -> &[usize] {
        &self.test
    }

    /// The samples that are learnt from, in the order of an epoch.
    pub fn epoch(&self, seed: u64, epoch: u64) -> Vec<usize> {
        shuffled(self.train.len(), seed, epoch).into_iter().map(|at| self.train[at]).collect()
    }

    /// A frame of a sample.
    pub fn frame(&self, sample: usize, frame: usize) -> &[f64] {
        let at = sample * self.frames + frame;
        &self.x[at * self.values..(at + 1) * self.values]
    }

    /// The class of a sample.
    pub fn class(&self, at: usize) -> usize {
        self.y[at]
    }
}

/// So many of some samples are a share of them. One such as 0.29 is a little less than what is meant.
fn share(samples: usize, share: f64) -> usize {
    (samples as f64 * share * (1.0 + 4.0 * f64::EPSILON)).floor() as usize
}

/// The numbers below `count` in a random order: sorted by a hash of seed, epoch and number.
fn shuffled(count: usize, seed: u64, epoch: u64) -> Vec<usize> {
    let key = |at: usize| {
        let mut hasher = blake3::Hasher::new();
        for number in [seed, epoch, at as u64] {
            hasher.update(&number.to_le_bytes());
        }
        *hasher.finalize().as_bytes()
    };
    let mut order: Vec<usize> = (0..count).collect();
    order.sort_by_cached_key(|&at| key(at));
    order
}

#[cfg(test)]
mod tests {
    use super::share;

    #[test]
    fn shares_are_those_that_are_written() {
        let wrong = (0..=100).find(|&percent| share(100, f64::from(percent) / 100.0) != percent as usize);
        assert_eq!(wrong, None);
        assert_eq!((share(10, 0.25), share(3, 1.0 / 3.0), share(7, 0.0)), (2, 1, 0));
    }
}
