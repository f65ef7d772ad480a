//! Known answers, moments, and vector draws against scalar ones.

use super::*;
use std::array::from_fn;

#[test]
fn philox_gives_the_known_answers() {
    // From the kat_vectors file of the Random123 distribution.
    assert_eq!(philox([0; 4], [0; 2]), [0x6627_e8d5, 0xe169_c58d, 0xbc57_ac4c, 0x9b00_dbd8]);
    assert_eq!(philox([u32::MAX; 4], [u32::MAX; 2]), [0x408f_276d, 0x41c8_3b0e, 0xa20b_c7c6, 0x6d54_51fd]);
    assert_eq!(
        philox([0x243f_6a88, 0x85a3_08d3, 0x1319_8a2e, 0x0370_7344], [0xa409_3822, 0x299f_31d0]),
        [0xd16c_fe09, 0x94fd_cceb, 0x5001_e420, 0x2412_6ea1]
    );
}

/// Mean, variance and fourth moment (about the mean) of many draws.
fn moments(draw: impl Fn(u32, u64) -> f64) -> [f64; 3] {
    let draws: Vec<f64> =
        (0..400u64).flat_map(|step| (0..500).map(move |index| (index, step))).map(|(i, s)| draw(i, s)).collect();
    let mean_of = |f: &dyn Fn(f64) -> f64| draws.iter().map(|&x| f(x)).sum::<f64>() / draws.len() as f64;
    let mean = mean_of(&|x| x);
    [mean, mean_of(&|x| (x - mean).powi(2)), mean_of(&|x| (x - mean).powi(4))]
}

#[test]
fn moments_are_right() {
    let draw = Draw { seed: 7, stream: 3 };
    for (got, want) in [
        (moments(|i, s| draw.uniform(i, s)), [0.5, 1.0 / 12.0, 1.0 / 80.0]),
        (moments(|i, s| draw.normal(i, s)), [0.0, 1.0, 3.0]),
        (moments(|i, s| draw.exponential(i, s)), [1.0, 1.0, 9.0]),
    ] {
        // About five standard errors of 200 000 draws.
        let near = got.iter().zip(want).all(|(g, w)| (g - w).abs() < 0.012 * (1.0 + w * w));
        assert!(near, "{got:?}, not {want:?}");
    }
    assert!((0..100_000).all(|i| (0.0..1.0).contains(&draw.uniform(i, 0))));
}

#[test]
fn every_argument_matters() {
    let draw = |seed, stream, index, step| Draw { seed, stream }.uniform(index, step);
    let base = draw(1, 2, 3, 4);
    for other in [
        draw(1 << 40, 2, 3, 4),
        draw(2, 2, 3, 4),
        draw(1, 3, 3, 4),
        draw(1, 2, 4, 4),
        draw(1, 2, 3, 5),
        draw(1, 2, 3, 4 + (1 << 32)),
    ] {
        assert_ne!(base, other);
    }
}

#[test]
fn vector_draws_are_the_scalar_ones() {
    let draw = Draw { seed: 0x0123_4567_89ab_cdef, stream: 9 };
    for (first, step) in [(0, 0), (100, 1 << 33), (u32::MAX - 2, 5), (7, u64::MAX)] {
        let index = from_fn(|lane| u32::wrapping_add(first, lane as u32));
        // One vector, and two side by side of which neither is like the other.
        let two = [index, index.map(|index| index.wrapping_mul(3))];
        type Scalar = fn(Draw, u32, u64) -> f64;
        let second: Scalar = |draw, index, step| unit(draw.words(index, step)[1]);
        let draws: [([F64x8; 1], [F64x8; 2], Scalar); 4] = [
            (draw.uniform_lanes([index], step), draw.uniform_lanes(two, step), Draw::uniform),
            (draw.normal_lanes([index], step), draw.normal_lanes(two, step), Draw::normal),
            (draw.exponential_lanes([index], step), draw.exponential_lanes(two, step), Draw::exponential),
            (draw.units([index], step)[1], draw.units(two, step)[1], second),
        ];
        for ([alone], side_by_side, scalar) in draws {
            for (vector, index) in side_by_side.into_iter().chain([alone]).zip([two[0], two[1], index]) {
                let mut lanes = [0.0; 8];
                vector.store(&mut lanes);
                assert_eq!(lanes.map(f64::to_bits), index.map(|index| scalar(draw, index, step).to_bits()));
            }
        }
    }
}

#[test]
fn held_draws_are_drawn_once_for_each_counter() {
    let drawn = std::cell::RefCell::new(Vec::new());
    let mut held = Held::new(|counter| {
        drawn.borrow_mut().push(counter);
        counter as f64 / 2.0
    });
    assert_eq!([4, 4, 5, 5, 4].map(|counter| held.at(counter)), [2.0, 2.0, 2.5, 2.5, 2.0]);
    assert_eq!(drawn.into_inner(), [4, 5, 4]);
}
