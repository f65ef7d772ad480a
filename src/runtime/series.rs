//! Functions of time given by samples.
//!
//! In come samples with times that never go back, and a time; out goes the value: linear between samples, constant before the
//! first and after the last, at a jump (two samples at one time) the later.
//! Never true here: that there is no sample.

/// A sample of a function of time.
#[derive(Clone, Copy, Debug, PartialEq)]
#[repr(C)]
pub struct Sample {
    /// The time in ms.
    pub t: f64,
    /// The value.
    pub value: f64,
}

/// A function of time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Series<'a> {
    samples: &'a [Sample],
}

/// What is wrong with samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unordered {
    /// There are none.
    Empty,
    /// The time of this sample is before that of the one before it, or no number.
    Back(usize),
}

/// Are these the samples of a function?
pub fn check(samples: &[Sample]) -> Result<(), Unordered> {
    if samples.is_empty() {
        return Err(Unordered::Empty);
    }
    let in_order = |pair: &[Sample]| pair[0].t <= pair[1].t;
    if samples[0].t.is_nan() {
        return Err(Unordered::Back(0));
    }
    samples.windows(2).position(|pair| !in_order(pair)).map_or(Ok(()), |before| Err(Unordered::Back(before + 1)))
}

impl<'a> Series<'a> {
    /// The function through samples that [`check`] accepts; of others the values mean nothing.
    pub fn new(samples: &'a [Sample]) -> Series<'a> {
        Series { samples }
    }

    /// The samples.
    pub fn samples(self) -> &'a [Sample] {
        self.samples
    }

    /// The value at a time; the last one at NaN.
    pub fn at(self, t: f64) -> f64 {
        let after = if t.is_nan() { self.samples.len() } else { self.samples.partition_point(|sample| sample.t <= t) };
        let before = after.checked_sub(1).and_then(|before| self.samples.get(before));
        match (before, self.samples.get(after)) {
            (None, None) => f64::NAN,
            (Some(only), None) | (None, Some(only)) => only.value,
            (Some(a), Some(b)) => a.value + (b.value - a.value) * ((t - a.t) / (b.t - a.t)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn samples(pairs: &[(f64, f64)]) -> Vec<Sample> {
        pairs.iter().map(|&(t, value)| Sample { t, value }).collect()
    }

    #[test]
    fn linear_between_and_constant_outside() {
        let ramp = samples(&[(1.0, 10.0), (3.0, 20.0), (3.0, 30.0)]);
        let at = [0.0, 1.0, 1.5, 3.0, 9.0, f64::NAN].map(|t| Series::new(&ramp).at(t));
        assert_eq!(at, [10.0, 10.0, 12.5, 30.0, 30.0, 30.0]);
        assert_eq!(check(&ramp), Ok(()));
    }

    #[test]
    fn samples_in_disorder_are_refused() {
        assert_eq!(check(&[]), Err(Unordered::Empty));
        assert_eq!(check(&samples(&[(1.0, 0.0), (0.0, 2.0)])), Err(Unordered::Back(1)));
        assert_eq!(check(&samples(&[(f64::NAN, 0.0)])), Err(Unordered::Back(0)));
    }
}
