//! Samples and their classes.
//!
//! In come an archive with the arrays `x` and `y`, or files of them; out go samples in random order, cut into batches, or what is wrong with the arrays.
//! Never true here: a sample is changed, or an order depends on more than the seed and the epoch.

use super::{Archive, array, idx, whole};
use crate::diag::{Code, Diagnostic};
use crate::source::Span;
use ndarray::ArrayD;
use std::path::{Path, PathBuf};

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
    split: Split,
}

/// How the samples of a file are split, for the seed that they are drawn with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Split {
    /// How many samples the file has.
    pub samples: usize,
    /// How many of them are kept for testing.
    pub tested: usize,
}

/// Where samples are, and where that is said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Samples {
    /// An archive with the arrays `x` (samples first, then frames if there are any) and `y`, or one array in NumPy's format or as IDX.
    pub file: (PathBuf, Span),
    /// Their classes, if they are in a file of their own.
    pub labels: Option<(PathBuf, Span)>,
}

/// What is kept for testing.
#[derive(Debug, Clone, PartialEq)]
pub enum Kept {
    /// A share of the samples.
    Share(f64),
    /// Other samples, whose numbers come behind those that are learnt from.
    Samples(Samples),
}

/// Samples of one file.
struct Part {
    x: ArrayD<f64>,
    y: Vec<usize>,
}

impl Samples {
    /// How many bytes their arrays have, as far as the files tell; none if one cannot be opened.
    pub fn bytes(&self) -> Option<u64> {
        let files = [Some(&self.file), self.labels.as_ref()];
        let bytes = |path: &Path| match is_archive(path) {
            true => Archive::open(path).ok()?.unpacked(),
            false => Some(std::fs::metadata(path).ok()?.len()),
        };
        files.into_iter().flatten().map(|(path, _)| bytes(path)).sum()
    }

    fn read(&self, framed: bool) -> Result<Part, Diagnostic> {
        let (path, span) = &self.file;
        let wrong = |why: String| cannot_be_used(path, *span, why);
        let (x, y, of_classes) = match (&self.labels, is_archive(path)) {
            (Some(labels), _) => (numbers(path, *span, "x")?, numbers(&labels.0, labels.1, "y")?, labels),
            (None, true) => (numbers(path, *span, "x")?, numbers(path, *span, "y")?, &self.file),
            (None, false) => {
                let why = "it has samples only: say where their classes are, `labels = \"labels.npy\"`";
                numbers(path, *span, "x")?;
                return Err(wrong(why.into()));
            }
        };
        let wrong_class = |why: String| cannot_be_used(&of_classes.0, of_classes.1, why);
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
        if y.shape() != [samples] {
            return Err(wrong_class(format!("`x` has {samples} samples, but the shape of `y` is {:?}", y.shape())));
        }
        if let Some(at) = x.iter().position(|x| !x.is_finite()) {
            let values = x.len() / samples;
            return Err(wrong(format!("value {} of sample {} is not a finite number", at % values, at / values)));
        }
        if let Some((at, class)) = y.iter().enumerate().find(|(_, y)| **y < 0.0 || y.fract() != 0.0 || **y > 1e9) {
            return Err(wrong_class(format!("the class of sample {at} is {class}, not a whole number from 0 on")));
        }
        Ok(Part { x, y: y.iter().map(|&class| class as usize).collect() })
    }
}

fn cannot_be_used(path: &Path, span: Span, why: String) -> Diagnostic {
    Diagnostic::new(Code::BadData, span, format!("`{}` cannot be used", path.display()), why)
}

fn ends_with(path: &Path, extension: &str) -> bool {
    path.extension().is_some_and(|found| found.eq_ignore_ascii_case(extension))
}

fn is_archive(path: &Path) -> bool {
    ends_with(path, "npz")
}

/// The numbers of an array: one of an archive, or all of another file.
fn numbers(path: &Path, span: Span, name: &str) -> Result<ArrayD<f64>, Diagnostic> {
    let numbers = if is_archive(path) {
        let mut archive = Archive::open(path).map_err(|why| {
            let d = Diagnostic::new(Code::CannotRead, span, format!("cannot read `{}`", path.display()), why);
            d.note("file names are relative to the model file")
        })?;
        archive.array(name)
    } else if ends_with(path, "npy") {
        array(&whole(path, span)?)
    } else {
        idx::array(&whole(path, span)?)
    };
    numbers.map_err(|why| cannot_be_used(path, span, why))
}

impl Dataset {
    /// Reads samples and what is kept for testing: a share of them, drawn with the seed, or others.
    pub fn read(samples: &Samples, framed: bool, test: &Kept, seed: u64) -> Result<Dataset, Diagnostic> {
        let Part { x, mut y } = samples.read(framed)?;
        let (count, shape) = (y.len(), x.shape()[1..].to_vec());
        let frames = if framed { shape[0] } else { 1 };
        let values = x.len() / count / frames;
        let mut x: Vec<f64> = x.into_iter().collect();
        let (train, test) = match test {
            Kept::Share(part) => {
                let order = shuffled(count, seed, u64::MAX);
                let (test, train) = order.split_at(share(count, *part).min(count - 1));
                let [mut test, mut train] = [test, train].map(<[usize]>::to_vec);
                test.sort_unstable();
                train.sort_unstable();
                (train, test)
            }
            Kept::Samples(others) => {
                let part = others.read(framed)?;
                let (path, span) = &others.file;
                if part.x.shape()[1..] != shape {
                    let there = samples.file.0.display();
                    let of_sample = &part.x.shape()[1..];
                    let why = format!("its samples have the shape {of_sample:?}, those of `{there}` {shape:?}");
                    return Err(cannot_be_used(path, *span, why));
                }
                x.extend(part.x);
                y.extend(part.y);
                ((0..count).collect(), (count..y.len()).collect())
            }
        };
        let split = Split { samples: count, tested: count - train.len() };
        Ok(Dataset { x, frames, values, shape, y, train, test, split })
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

    /// How the file with the samples that are learnt from is split.
    pub fn split(&self) -> Split {
        self.split
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
