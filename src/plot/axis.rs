//! Axes: a range of values, the places of its ticks, and their labels.
//!
//! The extremes of the data and the room on paper come in; out comes an axis with round ticks that maps values to 0..1.
//! A range is never empty and never contains a value that is not a number.

/// One axis, horizontal or vertical.
#[derive(Debug, Clone)]
pub struct Axis {
    pub low: f64,
    pub high: f64,
    /// Values that get a tick, and its label; ascending.
    pub ticks: Vec<(f64, String)>,
    /// The power of ten that the labels leave out and the axis label has to state; 0 for none.
    pub exponent: i32,
}

/// The borders of cells around values in order: halfway between two, and as far beyond the ends.
pub fn borders(values: &[f64]) -> Vec<f64> {
    let [first, .., last] = values else { return values.iter().flat_map(|x| [x - 0.5, x + 0.5]).collect() };
    let middles: Vec<f64> = values.windows(2).map(|w| w[0] / 2.0 + w[1] / 2.0).collect();
    let (low, high) = (middles[0], middles[middles.len() - 1]);
    [&[2.0 * first - low][..], &middles, &[2.0 * last - high]].concat()
}

impl Axis {
    /// An axis from `low` to `high` exactly, with at most `most` ticks (at least two if any round value allows).
    pub fn exact(low: f64, high: f64, most: usize) -> Axis {
        let (low, high) = widened(low, high);
        let step = step(low, high, most);
        Axis::with_step(low, high, step)
    }

    /// An axis around the data, with some room above and below.
    pub fn around(low: f64, high: f64, most: usize) -> Axis {
        let (low, high) = widened(low, high);
        let room = 0.06 * (high - low);
        Axis::exact(low - room, high + room, most)
    }

    /// An axis of counting numbers from 0 to below `count`, with half a row of room.
    pub fn rows(count: usize, most: usize) -> Axis {
        let high = count as f64 - 0.5;
        let step = step(-0.5, high, most).max(1.0);
        Axis::with_step(-0.5, high, step)
    }

    fn with_step(low: f64, high: f64, step: f64) -> Axis {
        let (first, last) = ((low / step - 1e-9).ceil(), (high / step + 1e-9).floor());
        let largest = low.abs().max(high.abs());
        let magnitude = largest.log10().floor() as i32;
        // Six characters are what a reader takes in: 12000 and 0.0005 are spelled out, anything beyond is scaled.
        let exponent = if (-3..5).contains(&magnitude) { 0 } else { magnitude.div_euclid(3) * 3 };
        let scaled_step = step / 10f64.powi(exponent);
        let digits = (-(scaled_step.log10() + 1e-9).floor()).clamp(0.0, 17.0) as usize;
        let ticks = (0..=(last - first).max(0.0) as usize).map(|k| {
            let units = first + k as f64;
            let label = format!("{:.digits$}", units * scaled_step);
            // A real minus sign, and no negative zero.
            let label = if units == 0.0 { label.replace('-', "") } else { label.replace('-', "−") };
            (units * step, label)
        });
        Axis { low, high, ticks: ticks.filter(|_| last >= first).collect(), exponent }
    }

    /// Where a value is, 0 at `low` and 1 at `high`.
    pub fn place(&self, value: f64) -> f64 {
        // Halved first: the span of two huge values is not a number.
        (value / 2.0 - self.low / 2.0) / (self.high / 2.0 - self.low / 2.0)
    }

    /// The range without its ticks' factor, for an axis label: `×1e−6 ` or nothing.
    pub fn factor(&self) -> String {
        if self.exponent == 0 { String::new() } else { format!("×1e{} ", self.exponent).replace('-', "−") }
    }
}

/// A range that can be divided: a single value gets a neighbourhood.
fn widened(low: f64, high: f64) -> (f64, f64) {
    // Values that a drawing could not tell apart from infinity would overflow below.
    let (low, high) = (low.clamp(-1e300, 1e300), high.clamp(-1e300, 1e300));
    let least = 1e-9 * low.abs().max(high.abs());
    if high - low > least && high - low > 1e-300 {
        return (low, high);
    }
    let middle = low / 2.0 + high / 2.0;
    let half = if middle == 0.0 { 1.0 } else { (0.05 * middle.abs()).max(1e-290) };
    (middle - half, middle + half)
}

/// The smallest of 1, 2 and 5 times a power of ten that gives at most `most` ticks.
fn step(low: f64, high: f64, most: usize) -> f64 {
    let rough = (high - low) / most.max(1) as f64;
    let decade = 10f64.powf(rough.log10().floor());
    [1.0, 2.0, 5.0, 10.0].map(|m| m * decade).into_iter().find(|s| *s >= rough * 0.999_999).unwrap_or(10.0 * decade)
}

/// The largest of 1, 2 and 5 times a power of ten that is at most `value`.
pub fn round_down(value: f64) -> f64 {
    let decade = 10f64.powf(value.log10().floor());
    [5.0, 2.0, 1.0].map(|m| m * decade).into_iter().find(|s| *s <= value * 1.000_001).unwrap_or(decade)
}

/// The smallest of 1, 2 and 5 times a power of ten that is at least `value`.
pub fn round_up(value: f64) -> f64 {
    step(0.0, value, 1)
}
