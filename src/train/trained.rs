//! What has been learnt, in a file.
//!
//! In come weights and parameters, and how far the training has come; out goes an archive, or settings of a model from one.
//! Never true here: a file is half written.

use crate::data::{Archive, Split};
use crate::ode::PerCell;
use crate::results;
use ndarray::Array1;
use ndarray_npy::NpzWriter;
use std::io::Cursor;
use std::path::Path;

/// The array of the archive that holds parameters: lines of text as `--params` takes them.
const PARAMETERS: &str = "parameters";

/// What has been learnt.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Trained {
    /// The weights and delays of projections, called `NAME.weight` and `NAME.delay`, by target and of each target by source, and parameters of each cell for
    /// itself, called as they are; in canonical units.
    pub edges: Vec<PerCell>,
    /// Settings of parameters, such as `hidden.tau=8.5 ms`.
    pub parameters: Vec<String>,
    /// How far the training has come, if it can be continued.
    pub progress: Option<Progress>,
}

/// What a training needs to go on as if it had not been interrupted.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Progress {
    /// How many epochs there have been.
    pub epochs: u64,
    /// How many steps the optimizers have made.
    pub steps: i32,
    /// How many lists of numbers each of them remembers; 0 if that is not known.
    pub lists: usize,
    /// The key of the random numbers, which chose the samples that nothing learns from.
    pub seed: u64,
    /// How the samples were split; none if that is not known.
    pub split: Option<Split>,
    /// The parameters, in canonical units.
    pub parameters: Vec<f64>,
    /// What the optimizers remember, two lists for each projection and two for the parameters; those of weights in the order of gradients.
    pub remembered: Vec<[Vec<f64>; 2]>,
}

impl Progress {
    /// The name of the array with the counts: epochs, steps, the halves of the seed, lists, samples, and those of them that were tested.
    const COUNTS: &str = "progress";
    const PARAMETERS: &str = "progress.parameters";

    /// The lists that optimizers remember, with the names of their arrays.
    fn lists(&self) -> Vec<(String, &[f64])> {
        let mut all = Vec::new();
        for (number, [first, second]) in self.remembered.iter().enumerate() {
            all.push((format!("progress.{number}.first"), first.as_slice()));
            all.push((format!("progress.{number}.second"), second.as_slice()));
        }
        all
    }

    fn counts(&self) -> Vec<f64> {
        let [high, low] = [self.seed >> 32, self.seed & 0xffff_ffff].map(|half| half as f64);
        let counts = [self.epochs as f64, f64::from(self.steps), high, low, self.lists as f64];
        let split = self.split.iter().flat_map(|split| [split.samples as f64, split.tested as f64]);
        counts.into_iter().chain(split).collect()
    }

    /// Is there an array of this name?
    fn has(name: &str) -> bool {
        let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        name == Progress::PARAMETERS
            || name
                .strip_prefix("progress.")
                .and_then(|rest| rest.split_once('.'))
                .is_some_and(|(number, list)| is_number(number) && matches!(list, "first" | "second"))
    }

    /// Takes an array of this name; false if it is none of a progress.
    fn take(&mut self, name: &str, values: Vec<f64>) -> bool {
        if name == Progress::COUNTS {
            let [epochs, steps, high, low, ref rest @ ..] = values[..] else { return false };
            // Older files do not say it.
            self.lists = rest.first().map_or(0, |&lists| lists as usize);
            self.split = match *rest {
                [_, samples, tested, ..] => Some(Split { samples: samples as usize, tested: tested as usize }),
                _ => None,
            };
            (self.epochs, self.steps) = (epochs as u64, steps as i32);
            self.seed = (high as u64) << 32 | low as u64;
            return true;
        }
        if name == Progress::PARAMETERS {
            self.parameters = values;
            return true;
        }
        let Some((number, list)) = name.strip_prefix("progress.").and_then(|rest| rest.split_once('.')) else {
            return false;
        };
        let (Ok(number), Some(list)) = (number.parse::<usize>(), ["first", "second"].iter().position(|l| *l == list))
        else {
            return false;
        };
        // As many as projections could have been counted.
        if number > 1 << 16 {
            return false;
        }
        if self.remembered.len() <= number {
            self.remembered.resize_with(number + 1, Default::default);
        }
        self.remembered[number][list] = values;
        true
    }
}

impl Trained {
    /// Writes an archive with an array for each projection. The error is a sentence.
    pub fn write(&self, path: &Path) -> Result<(), String> {
        let told = |e: ndarray_npy::WriteNpzError| e.to_string();
        let mut archive = NpzWriter::new(Cursor::new(Vec::new()));
        for one in &self.edges {
            archive.add_array(one.name.as_str(), &Array1::from_iter(one.values.iter().copied())).map_err(told)?;
        }
        if let Some(progress) = &self.progress {
            let counts = progress.counts();
            let all =
                [(Progress::COUNTS.to_string(), &counts[..]), (Progress::PARAMETERS.to_string(), &progress.parameters)];
            for (name, values) in all.into_iter().chain(progress.lists()) {
                archive.add_array(name.as_str(), &Array1::from_iter(values.iter().copied())).map_err(told)?;
            }
        }
        let lines: Vec<u8> = self.parameters.join("\n").into_bytes();
        archive.add_array(PARAMETERS, &Array1::from(lines)).map_err(told)?;
        let bytes = archive.finish().map_err(told)?.into_inner();
        results::replace_file(path, &bytes)
    }

    /// Reads one. The error is a sentence.
    pub fn read(path: &Path) -> Result<Trained, String> {
        let mut archive = Archive::open(path).map_err(|why| format!("cannot read `{}`: {why}", path.display()))?;
        let wrong = |why: String| format!("`{}` is not what `neuroc train` writes: {why}", path.display());
        let mut trained = Trained::default();
        for name in archive.names() {
            let values: Vec<f64> = archive.array(&name).map_err(wrong)?.into_iter().collect();
            if name == PARAMETERS {
                let lines: Vec<u8> = values.iter().map(|&byte| byte as u8).collect();
                let text = String::from_utf8(lines).map_err(|_| wrong(format!("`{name}` is no text")))?;
                trained.parameters = text.lines().map(String::from).collect();
            } else if name.contains('.') && !Progress::has(&name) {
                trained.edges.push(PerCell { name, values: values.into() });
            } else if !trained.progress.get_or_insert_default().take(&name, values) {
                return Err(wrong(format!("`{name}` are no weights or delays")));
            }
        }
        Ok(trained)
    }
}
