//! Functions of time given by samples.
//!
//! In come samples `(t, value)` with increasing `t`, and times; out go values, linear between samples and constant before the
//! first and after the last.
//! Never true here: that there is no sample.

/// Samples of a function of time.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    samples: Vec<(f64, f64)>,
}

impl Series {
    /// The function through these samples; `None` where there are none or the times do not increase.
    pub fn new(samples: Vec<(f64, f64)>) -> Option<Series> {
        let increasing = samples.windows(2).all(|pair| pair[0].0 < pair[1].0);
        (increasing && !samples.is_empty()).then_some(Series { samples })
    }

    /// The samples.
    pub fn samples(&self) -> &[(f64, f64)] {
        &self.samples
    }

    /// The value at a time; NaN at NaN.
    pub fn at(&self, t: f64) -> f64 {
        sample(&self.samples, t)
    }
}

/// The value at a time of the function through samples with increasing times; NaN at NaN or without samples.
pub fn sample(samples: &[(f64, f64)], t: f64) -> f64 {
    let after = samples.partition_point(|&(at, _)| at <= t);
    match (after.checked_sub(1).map(|before| samples[before]), samples.get(after)) {
        _ if t.is_nan() => f64::NAN,
        (None, None) => f64::NAN,
        (Some((_, value)), None) | (None, Some(&(_, value))) => value,
        (Some((t0, v0)), Some(&(t1, v1))) => v0 + (v1 - v0) * ((t - t0) / (t1 - t0)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn linear_between_and_constant_outside() {
        let ramp = Series::new(vec![(1.0, 10.0), (3.0, 20.0)]).unwrap();
        let at = [0.0, 1.0, 1.5, 3.0, 9.0].map(|t| ramp.at(t));
        assert_eq!(at, [10.0, 10.0, 12.5, 20.0, 20.0]);
        assert!(ramp.at(f64::NAN).is_nan());
        assert_eq!(Series::new(vec![]), None);
        assert_eq!(Series::new(vec![(1.0, 0.0), (1.0, 2.0)]), None);
    }
}
