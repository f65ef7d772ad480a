//! Traces that a run is to come near to.
//!
//! In come a data file and the times of samples; out goes a [`Trace`], and what a run is off by.
//! Never true here: a trace is extended beyond its samples.

use crate::data::{self, DataFile, Numbers};
use crate::diag::{Code, Diagnostic};
use crate::operators::eval_series;
use crate::simulate::Records;
use crate::source::Span;
use crate::units::{self, Dim, Unit};
use std::path::Path;

/// A trace that a record is to come near to.
#[derive(Debug, Clone, PartialEq)]
pub struct Trace {
    /// Which record, by its place in the [`Records`].
    pub record: usize,
    /// A number for each sample, in canonical units.
    pub trace: Vec<f64>,
    /// The variance of the trace; 1 where it does not vary.
    pub variance: f64,
}

impl Trace {
    /// Reads a file of two columns, times in ms and values in the unit that the record is shown in, if its heading says no others, or of more, of which one is
    /// named; between its samples it is linear. `times` (ms) are those of the record's samples.
    pub fn read(
        records: &Records,
        record: usize,
        (path, column): (&Path, Option<&str>),
        times: &[f64],
    ) -> Result<Trace, Diagnostic> {
        let name = path.display().to_string();
        // Names are relative to where the program runs: there is no model file that names it.
        let (column, numbers) = (column.map(str::to_owned), Numbers::File);
        let file = DataFile { name, directory: "".into(), column, span: Span::default(), numbers };
        let without_place = |d: Diagnostic| {
            let why = d.labels.first().map(|label| label.message.clone()).filter(|why| !why.is_empty());
            let message = why.map_or(d.message.clone(), |why| format!("{}: {why}", d.message));
            Diagnostic::without_place(d.code, message)
        };
        let needed = Trace::ends(records, record, times)?;
        let series = data::series(&file, needed).map_err(without_place)?;
        let head = &records.series[record];
        let exponent = match (series.unit, Unit::parse(&head.unit.name)) {
            (Some(given), Some(own)) if given.dim != own.dim || (given.dim == Dim::TEMPERATURE && given != own) => {
                let (name, is, got) = (&head.name, own.dim.describe(), given.dim.describe());
                let message = format!("`{name}` is {is}, but by its heading `{}` has {got}", path.display());
                return Err(Diagnostic::without_place(Code::DimensionMismatch, message));
            }
            (Some(given), _) => given.display("").exponent,
            (None, _) => head.unit.exponent,
        };
        Ok(Trace::new(record, &series.samples, exponent, times))
    }

    /// The same from samples: times in ms, and values in the unit that the record is shown in.
    pub fn given(records: &Records, record: usize, samples: &[(f64, f64)], times: &[f64]) -> Result<Trace, Diagnostic> {
        let needed = Trace::ends(records, record, times)?;
        data::covers(samples, needed).map_err(|why| {
            let message = format!("the trace for `{}` does not fit: {why}", records.series[record].name);
            Diagnostic::without_place(Code::BadData, message)
        })?;
        Ok(Trace::new(record, samples, records.series[record].unit.exponent, times))
    }

    /// From when on and until when (ms) a trace for a record has to go, if there can be one.
    fn ends(records: &Records, record: usize, times: &[f64]) -> Result<[f64; 2], Diagnostic> {
        let head = &records.series[record];
        let wrong = |why: &str| Diagnostic::without_place(Code::BadValue, format!("`{}` {why}", head.name));
        if head.around.is_some() {
            return Err(wrong("is recorded around spikes only, and cannot be compared with a trace"));
        }
        match times {
            [first, .., last] => Ok([*first, *last]),
            [only] => Ok([*only; 2]),
            [] => Err(wrong("has no samples to compare with a trace")),
        }
    }

    /// `exponent` is that of the unit of the values.
    fn new(record: usize, samples: &[(f64, f64)], exponent: i32, times: &[f64]) -> Trace {
        // A sum of steps is a little more or less than the time that is written.
        let at = |t: &f64| eval_series(samples, *t).unwrap_or(f64::NAN);
        let trace: Vec<f64> = times.iter().map(|t| units::scale(at(t), exponent)).collect();
        let mean = trace.iter().sum::<f64>() / trace.len() as f64;
        let variance = trace.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / trace.len() as f64;
        let variance = if variance > 0.0 { variance } else { 1.0 };
        Trace { record, trace, variance }
    }

    /// The mean squared error of samples (`[sample][cell]`), and what adds up to its derivative in each of them.
    pub(super) fn error(&self, samples: &[f64]) -> (f64, Vec<f64>) {
        let cells = samples.len() / self.trace.len().max(1);
        let count = samples.len().max(1) as f64;
        let off: Vec<f64> = samples.iter().enumerate().map(|(at, x)| x - self.trace[at / cells.max(1)]).collect();
        let square = off.iter().map(|d| d * d).sum::<f64>() / count;
        (square, off.into_iter().map(|d| 2.0 * d / count).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_means_over_samples_and_cells() {
        let target = Trace { record: 0, trace: vec![1.0, 3.0], variance: 1.0 };
        let (square, slopes) = target.error(&[1.0, 2.0, 3.0, 1.0]);
        assert_eq!(square, (0.0 + 1.0 + 0.0 + 4.0) / 4.0);
        assert_eq!(slopes, [0.0, 0.5, 0.0, -1.0]);
    }
}
