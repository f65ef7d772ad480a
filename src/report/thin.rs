//! Results as far as a page shows them.
//!
//! In come results in memory, the path of results, or rows one by one; out go the same with so few samples, columns and spikes that a page
//! of them has a few megabytes at most, and what there was before.
//! Never true here: the least or the largest sample of a drawn column vanishes, or what is left out is not known.
//!
//! | what | at most |
//! |---|---|
//! | numbers of all records together | [`VALUES`]; of too many samples the least and the largest of every few are kept |
//! | columns of a record | [`COLUMNS`], fewer of each where there are more than 20 records, from the first to the last |
//! | spikes of all populations together | [`SPIKES`]; of too many, those of every second (third, ...) cell are kept |
//! | panels of the page, rows of its tables, bytes of the model's text | `data.rs`, `html.rs` |

use crate::results::{Reading, ResultsError, RunResult, Series, SeriesHead, SpikeTrain, thin};
use std::path::Path;

/// Numbers of all records together, four bytes each.
pub const VALUES: usize = 280_000;
/// Columns of a record.
pub const COLUMNS: usize = 100;
/// Columns of all records together, about.
const ALL_COLUMNS: usize = 2_000;
/// Spikes of all populations together, six or eight bytes each.
pub const SPIKES: usize = 120_000;

/// A result as far as a page shows it.
#[derive(Debug, Clone)]
pub struct Thinned {
    /// Fewer samples and columns; all spikes.
    result: RunResult,
    /// How many samples and columns each series had.
    whole: Vec<(usize, usize)>,
}

impl Thinned {
    /// Of a result in memory.
    ///
    /// # Errors
    /// [`ResultsError::Inconsistent`] if the result contradicts itself.
    pub fn of(result: &RunResult) -> Result<Thinned, ResultsError> {
        result.check()?;
        let rest = RunResult { series: Vec::new(), ..result.clone() };
        let times: Vec<&[f64]> = result.series.iter().map(|s| s.t.as_slice()).collect();
        Thinned::new(&result.contents().series, &times, rest, |series, row, out| {
            let values = &result.series[series].values;
            out.extend((0..values.shape().1).map(|column| values.get(row, column)));
        })
    }

    /// Of rows one by one: `row` is asked for a series and a place in its times and gives a number for each cell. All else is in `rest`.
    ///
    /// # Errors
    /// As [`Thinned::of`].
    pub fn new(
        heads: &[SeriesHead],
        times: &[&[f64]],
        rest: RunResult,
        mut row: impl FnMut(usize, usize, &mut Vec<f64>),
    ) -> Result<Thinned, ResultsError> {
        let whole: Vec<(usize, usize)> = heads.iter().zip(times).map(|(head, t)| (t.len(), head.cells.len())).collect();
        let reading = reading(&whole);
        let series = heads.iter().zip(times).enumerate();
        let series = series.map(|(at, (head, t))| thin(head, t, &reading, |place, out| row(at, place, out))).collect();
        let result = RunResult { series, ..rest };
        result.check()?;
        Ok(Thinned { result, whole })
    }

    /// Of results in a file or a folder.
    ///
    /// # Errors
    /// [`ResultsError::Read`] if they cannot be read.
    pub fn read(path: &Path) -> Result<Thinned, ResultsError> {
        let whole = RunResult::shapes(path)?;
        let result = RunResult::read(path, &reading(&whole))?;
        Ok(Thinned { result, whole })
    }

    /// What is left of the result.
    pub fn result(&self) -> &RunResult {
        &self.result
    }

    /// The series with the numbers of samples and columns that they had.
    pub fn series(&self) -> impl Iterator<Item = (&Series, (usize, usize))> {
        self.result.series.iter().zip(self.whole.iter().copied())
    }

    /// How many samples and columns a series had.
    pub fn whole(&self, series: usize) -> (usize, usize) {
        self.whole.get(series).copied().unwrap_or((0, 0))
    }

    /// From where the run began to the last that is known of it, in ms.
    pub fn window(&self) -> (f64, f64) {
        let (from, to) = self.result.extent();
        let ends = self.result.series.iter().filter_map(|s| s.t.last());
        let starts = self.result.series.iter().filter_map(|s| s.t.first());
        let spikes = || self.result.spikes.iter().flat_map(|train| &train.t);
        let low = starts.chain(spikes()).copied().fold(from, f64::min);
        let high = ends.chain(spikes()).copied().fold(to.unwrap_or(from), f64::max);
        if high > low && (high - low).is_finite() { (low, high) } else { (low, low + 1.0) }
    }

    /// The spikes of a population that are drawn.
    pub fn spikes(&self, train: &SpikeTrain) -> Drawn {
        let all: usize = self.result.spikes.iter().map(|train| train.t.len()).sum();
        let each = all.div_ceil(SPIKES).clamp(1, train.cells.max(1)) as u64;
        let spikes = train.t.iter().copied().zip(train.i.iter().copied());
        let mut spikes: Vec<(f64, u64)> = spikes.filter(|(_, cell)| cell.is_multiple_of(each)).collect();
        spikes.sort_by(|a, b| a.0.total_cmp(&b.0));
        // Few cells may have most of the spikes.
        let share = (SPIKES as f64 * train.t.len() as f64 / all.max(1) as f64).ceil() as usize;
        let every = if spikes.len() > share + share / 4 { spikes.len().div_ceil(share) } else { 1 };
        Drawn { spikes: spikes.into_iter().step_by(every).collect(), each, every }
    }
}

/// Spikes that are drawn: times in ms and cells, in the order of their times.
#[derive(Debug, Clone, PartialEq)]
pub struct Drawn {
    /// Time and cell.
    pub spikes: Vec<(f64, u64)>,
    /// Those of every so many-th cell,
    pub each: u64,
    /// and of these every so many-th.
    pub every: usize,
}

/// What is kept of records with so many samples and columns.
fn reading(whole: &[(usize, usize)]) -> Reading {
    let columns = (ALL_COLUMNS / whole.len().max(1)).clamp(1, COLUMNS);
    // Times that are not even take as much as two columns.
    let kept = |samples: usize| -> usize {
        whole
            .iter()
            .map(|&(rows, width)| rows.min(samples).saturating_mul(width.min(columns) + 2))
            .fold(0, usize::saturating_add)
    };
    let (mut fits, mut beyond) = (2, VALUES + 1);
    while beyond - fits > 1 {
        let middle = fits.midpoint(beyond);
        if kept(middle) <= VALUES { fits = middle } else { beyond = middle }
    }
    Reading { samples: Some(fits), columns: Some(columns), no_parameters: false }
}
