//! Quantiles of Poisson distributions against those of probabilities from logarithms, and against a table.

use super::*;

/// The smallest whole number of which the sum of probabilities exceeds each of `UNIFORM`, computed with 60 decimal digits.
const TABLE: [(f64, [f64; 8]); 7] = [
    (0.0, [0.0; 8]),
    (1e-6, [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0]),
    (0.03, [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 4.0]),
    (1.6, [0.0, 0.0, 0.0, 0.0, 1.0, 3.0, 7.0, 14.0]),
    (10.0, [0.0, 0.0, 2.0, 6.0, 10.0, 14.0, 21.0, 34.0]),
    (100.0, [0.0, 46.0, 71.0, 87.0, 100.0, 113.0, 132.0, 166.0]),
    (500.0, [0.0, 372.0, 432.0, 471.0, 500.0, 529.0, 571.0, 640.0]),
];
const UNIFORM: [f64; 8] = [0.0, 1e-9, 1e-3, 0.1, 0.5, 0.9, 0.999, 0.999_999_999];

#[test]
fn quantiles_are_those_of_the_table() {
    for (mean, quantiles) in TABLE {
        for (u, quantile) in UNIFORM.into_iter().zip(quantiles) {
            assert_eq!(poisson(u, mean), quantile, "{u} of mean {mean}");
        }
    }
}

/// `P(N <= k)` for `k` = 0, 1, ... by logarithms of the terms, far past where it is 1.
fn distribution(mean: f64) -> Vec<f64> {
    let (mut factorial, mut sum) = (0.0, 0.0);
    let mut all = Vec::new();
    for k in 0..(2.0 * mean) as u32 + 200 {
        factorial += f64::from(k.max(1)).ln();
        let power = if k == 0 { 0.0 } else { f64::from(k) * mean.ln() };
        sum += (power - mean - factorial).exp();
        all.push(sum);
    }
    all
}

/// Every number whose probability exceeds four times `margin`, from the bottom to the top of its uniform numbers.
fn quantiles_are_exact<S: Scalar>(mean: f64, margin: f64) {
    let mean = S::from_f64(mean);
    let mut below = 0.0;
    for (k, sum) in distribution(mean.to_f64()).into_iter().enumerate() {
        if sum - below > 4.0 * margin {
            for u in [below + margin, 0.5 * (below + sum), sum.min(1.0) - margin] {
                let found = poisson(S::from_f64(u), mean).to_f64();
                assert_eq!(found, k as f64, "{u} of mean {}", mean.to_f64());
            }
        }
        below = sum;
    }
    assert!((below - 1.0).abs() < margin);
}

#[test]
fn quantiles_are_exact_but_next_to_a_sum() {
    for mean in [0.0, 1e-6, 0.03, 1.0, 1.6, 10.0, 33.3, 87.0, 100.0, 500.0, 708.0] {
        quantiles_are_exact::<f64>(mean, 1e-11);
    }
    for mean in [0.0, 1e-6, 0.03, 1.0, 1.6, 10.0, 33.3, 87.0] {
        quantiles_are_exact::<f32>(mean, 2e-5);
    }
}

fn limits<S: Scalar>(highest: f64) {
    let [inf, nan] = [f64::INFINITY, f64::NAN];
    let p = |u: f64, mean: f64| poisson(S::from_f64(u), S::from_f64(mean)).to_f64();
    for u in [-1.0, 0.0, 0.5, 1.0, 2.0, inf] {
        for mean in [nan, -inf, -1.0, -1e-30, highest * 1.0001, 1000.0, inf] {
            assert!(p(u, mean).is_nan(), "{u} of mean {mean}");
        }
        assert_eq!([p(u, 0.0), p(u, -0.0)], [0.0; 2]);
    }
    // The last number below 1, and numbers that no sum exceeds.
    for mean in [1e-30, 1e-6, 1.0, 10.0, highest] {
        for u in [0.999_999_999_999_999_9, 1.0, 2.0, inf] {
            let most = p(u, mean);
            assert!(most >= p(0.999, mean) && most <= 2.0 * mean + 30.0, "{u} of mean {mean}: {most}");
        }
        assert!(p(nan, mean).is_nan());
        assert_eq!([p(-1.0, mean), p(0.0, mean)], [0.0; 2]);
    }
    assert_eq!(p(0.0, highest), 0.0);
}

#[test]
fn limits_are_right() {
    limits::<f64>(f64::POISSON_HIGH);
    limits::<f32>(f64::from(f32::POISSON_HIGH));
    assert!(exp(-f64::POISSON_HIGH).is_normal() && exp(-f32::POISSON_HIGH).is_normal());
}

/// Numbers of one distribution are those of its mean, bit for bit, in every lane.
fn one_mean_for_all_lanes<V: Lanes>() {
    let highest = V::Scalar::POISSON_HIGH.to_f64();
    let numbers = samples::<V::Scalar>();
    let of_rates = [1e-6, 0.03, 0.5, 2.0, 20.0, 80.0, 0.9 * highest, highest, 1.001 * highest].map(V::Scalar::from_f64);
    for mean in of_rates.into_iter().chain(numbers.iter().copied().step_by(11)) {
        let distribution = Poisson::new(mean);
        let sums = (0..300).map(|k| V::Scalar::from_f64(f64::from(k) / 299.0));
        let all: Vec<V::Scalar> = numbers.iter().copied().chain(sums).collect();
        for u in all.chunks_exact(V::LANES) {
            let (mut found, mut wanted) = (u.to_vec(), u.to_vec());
            distribution.number(V::load(u)).store(&mut found);
            poisson(V::load(u), V::splat(mean)).store(&mut wanted);
            for ((&u, &found), &wanted) in u.iter().zip(&found).zip(&wanted) {
                assert!(same(found, wanted), "{} of mean {}: {}", u.to_f64(), mean.to_f64(), found.to_f64());
            }
        }
    }
}

#[test]
fn distributions_are_those_of_their_means() {
    one_mean_for_all_lanes::<f64>();
    one_mean_for_all_lanes::<f32>();
    for_every_body!(one_mean_for_all_lanes);
}

/// The sums themselves, where two of them are as near to each other as numbers are.
#[test]
fn uniform_numbers_that_are_sums_count_alike() {
    for mean in [0.5_f64, 2.0, 50.0, 708.0] {
        let distribution = Poisson::new(mean);
        let (mut term, mut sum) = (exp(-mean), exp(-mean));
        for k in 1..1100 {
            for u in [sum.next_down(), sum, sum.next_up()] {
                assert_eq!(distribution.number(u), poisson(u, mean), "{u} of mean {mean}");
            }
            term *= mean / f64::from(k);
            sum += term;
        }
    }
}
