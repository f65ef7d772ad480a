//! Thinning a long trace to what a row of pixels can show.
//!
//! Samples and a number of pixel columns come in; out go unbroken runs of points, at most four per column: the first,
//! the lowest, the highest and the last of the column, in the order of time. An extreme never vanishes, and a gap (a value
//! that is not finite, or a time for which there are no samples) is never bridged.

use std::ops::Range;

/// Points in data coordinates, joined by straight lines.
pub type Run = Vec<(f64, f64)>;

/// Thins the samples with the indices `samples`, whose times are in order and within `window`.
pub fn decimate(
    t: &[f64],
    value: impl Fn(usize) -> f64,
    samples: Range<usize>,
    window: (f64, f64),
    columns: usize,
) -> Vec<Run> {
    let every = samples.len() <= 4 * columns;
    let column = |k: usize| {
        let place = (t[k] - window.0) / (window.1 - window.0) * columns as f64;
        if every { k } else { (place as usize).min(columns.saturating_sub(1)) }
    };
    let mut runs = Vec::new();
    let mut run: Option<Thinner> = None;
    let longest = LONGEST * usual_interval(&t[samples.clone()]);
    let first = samples.start;
    for k in samples {
        let y = value(k);
        if !y.is_finite() || (k > first && t[k] - t[k - 1] > longest) {
            runs.extend(run.take().map(Thinner::finish));
        }
        if !y.is_finite() {
            continue;
        }
        run.get_or_insert_with(Thinner::default).add(column(k), (t[k], y));
    }
    runs.extend(run.map(Thinner::finish));
    runs
}

/// Samples that are so many times the usual interval apart are not joined.
const LONGEST: f64 = 3.5;

/// The median of the times from one sample to the next.
fn usual_interval(t: &[f64]) -> f64 {
    let mut intervals: Vec<f64> = t.windows(2).map(|pair| pair[1] - pair[0]).collect();
    let middle = intervals.len() / 2;
    if intervals.is_empty() { 0.0 } else { *intervals.select_nth_unstable_by(middle, f64::total_cmp).1 }
}

/// One run while it grows: the finished columns and the one being filled.
#[derive(Default)]
struct Thinner {
    done: Run,
    open: Option<Column>,
}

struct Column {
    number: usize,
    first: (f64, f64),
    last: (f64, f64),
    low: (f64, f64),
    high: (f64, f64),
}

impl Thinner {
    fn add(&mut self, number: usize, point: (f64, f64)) {
        match &mut self.open {
            Some(column) if column.number == number => {
                column.last = point;
                if point.1 < column.low.1 {
                    column.low = point;
                }
                if point.1 > column.high.1 {
                    column.high = point;
                }
            }
            _ => {
                self.close();
                self.open = Some(Column { number, first: point, last: point, low: point, high: point });
            }
        }
    }

    fn close(&mut self) {
        if let Some(Column { first, last, low, high, .. }) = self.open.take() {
            let (early, late) = if low.0 <= high.0 { (low, high) } else { (high, low) };
            for point in [first, early, late, last] {
                if self.done.last() != Some(&point) {
                    self.done.push(point);
                }
            }
        }
    }

    fn finish(mut self) -> Run {
        self.close();
        self.done
    }
}
