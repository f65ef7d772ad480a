//! Every vector body against the scalar one, bit for bit.

use super::portable::Array;
use super::{F32x16, F64x8, Indices, Lanes, Mask, Narrow, Pair, Scalar};

/// Numbers of every kind: special values, both signs, and magnitudes over the whole exponent range.
pub(crate) fn samples<S: Scalar>() -> Vec<S> {
    let mut samples: Vec<S> = [
        0.0,
        -0.0,
        0.25,
        0.5,
        0.75,
        1.0,
        1.5,
        2.0,
        2.5,
        3.5,
        -0.5,
        -1.0,
        -1.5,
        -2.5,
        88.7,
        89.5,
        -104.0,
        127.5,
        128.0,
        -149.5,
        709.5,
        710.2,
        -745.5,
        1023.5,
        1024.0,
        -1074.5,
        -1075.5,
        1e5,
        -1e5,
        1e-5,
        -1e-5,
        1e9,
        2.5e9,
        4.4e-40,
        1e-310,
        3e38,
        1e308,
        -1e308,
        f64::INFINITY,
        f64::NEG_INFINITY,
        f64::NAN,
    ]
    .map(S::from_f64)
    .to_vec();
    let mut state = 1u64;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 11) as f64 / (1u64 << 53) as f64
    };
    for span in [1.0, 10.0, 100.0, 800.0, 1200.0] {
        for _ in 0..150 {
            samples.push(S::from_f64((2.0 * next() - 1.0) * span));
            samples.push(S::from_f64((2.0 * next() - 1.0) * (next() * 2.0 * span - span).exp2()));
        }
    }
    samples
}

/// The same number: equal bits, or both NaN.
pub(crate) fn same<S: Scalar>(a: S, b: S) -> bool {
    a.to_f64().to_bits() == b.to_f64().to_bits() || Lanes::ne(a, a) && Lanes::ne(b, b)
}

/// Checks that `vector` gives in each lane what `scalar` gives, for all samples `x`, with several `y` each.
pub(crate) fn check<V: Lanes>(
    name: &str,
    vector: impl Fn(V, V) -> V,
    scalar: impl Fn(V::Scalar, V::Scalar) -> V::Scalar,
) {
    let xs = samples::<V::Scalar>();
    for shift in [0, 1, 7, 40, 333] {
        let mut x = vec![V::Scalar::from_f64(0.0); V::LANES];
        let (mut y, mut z) = (x.clone(), x.clone());
        for first in (0..xs.len()).step_by(V::LANES) {
            for i in 0..V::LANES {
                x[i] = xs[(first + i) % xs.len()];
                y[i] = xs[(first + i + shift) % xs.len()];
            }
            vector(V::load(&x), V::load(&y)).store(&mut z);
            for i in 0..V::LANES {
                let want = scalar(x[i], y[i]);
                assert!(
                    same(z[i], want),
                    "{name} of ({:e}, {:e}): {:e} in lane {i} of {}, {:e} alone",
                    x[i].to_f64(),
                    y[i].to_f64(),
                    z[i].to_f64(),
                    std::any::type_name::<V>(),
                    want.to_f64(),
                );
            }
        }
    }
}

/// Calls a generic test on every vector type of this build.
macro_rules! for_every_body {
    ($test:ident) => {
        $test::<Array<f64, 8>>();
        $test::<Array<f32, 16>>();
        $test::<F64x8>();
        $test::<F32x16>();
        $test::<Pair<Pair<F64x8>>>();
        $test::<Pair<Pair<F32x16>>>();
        #[cfg(all(target_arch = "x86_64", target_feature = "avx2", target_feature = "fma"))]
        {
            $test::<crate::runtime::lanes::avx2::F64x8>();
            $test::<crate::runtime::lanes::avx2::F32x16>();
        }
    };
}
pub(crate) use for_every_body;

/// Checks generic expressions of two arguments in `$v` against the same in its scalar.
macro_rules! same_in_lanes {
    ($v:ident: $(|$x:pat_param, $y:pat_param| $function:expr;)*) => {$({
        fn function<W: Lanes>($x: W, $y: W) -> W {
            $function
        }
        check::<$v>(stringify!($function), function::<$v>, function::<$v::Scalar>);
    })*};
}
pub(crate) use same_in_lanes;

fn operations<V: Lanes>() {
    same_in_lanes! { V:
        |x, y| x + y;
        |x, y| x - y;
        |x, y| x * y;
        |x, y| x / y;
        |x, _| -x;
        |x, y| x.mul_add(y, x);
        |x, y| x.mul_add(x, y);
        |x, y| Lanes::min(x, y);
        |x, y| Lanes::max(x, y);
        |x, _| x.abs();
        |x, _| x.sqrt();
        |x, _| x.floor();
        |x, _| x.ceil();
        |x, _| x.round_even();
        |x, y| W::select(x.lt(y), x, y);
        |x, y| W::select(x.le(y), x, y);
        |x, y| W::select(x.gt(y), x, y);
        |x, y| W::select(x.ge(y), x, y);
        |x, y| W::select(x.eq(y), x, y);
        |x, y| W::select(x.ne(y), x, y);
        |x, y| W::select(x.lt(y).not().and(y.eq(y)), x, y);
        |x, y| W::select(x.lt(y).or(y.lt(x)), x, y);
        |x, _| { let (n, r) = x.split_exp2(); (r + W::splat(W::Scalar::from_f64(1.0))).scale(n) };
        |x, _| W::select(positive(x), x.frexp().0, x);
        |x, _| W::select(positive(x), x.frexp().1, x);
    }
}

fn positive<W: Lanes>(x: W) -> W::Mask {
    x.gt(W::splat(W::Scalar::from_f64(0.0))).and(x.lt(W::splat(W::Scalar::from_f64(f64::INFINITY))))
}

#[test]
fn every_operation_is_the_scalar_one_in_each_lane() {
    for_every_body!(operations);
}

fn conversions<V: Narrow>() {
    let xs = samples::<f64>();
    for first in (0..xs.len() - V::LANES).step_by(V::LANES) {
        let x = V::load(&xs[first..]);
        let (mut single, mut wide) = (vec![0.0f32; V::LANES], vec![0.0; V::LANES]);
        x.narrow().store(&mut single);
        V::widen(x.narrow()).store(&mut wide);
        for (i, &x) in xs[first..first + V::LANES].iter().enumerate() {
            assert!(same(single[i], x as f32), "{x:e} in lane {i} of {}", std::any::type_name::<V>());
            assert!(same(wide[i], f64::from(x as f32)), "{x:e} in lane {i} of {}", std::any::type_name::<V>());
        }
    }
}

#[test]
fn every_lane_is_narrowed_and_widened_in_its_place() {
    conversions::<f64>();
    conversions::<Array<f64, 8>>();
    conversions::<Pair<Array<f64, 8>>>();
    conversions::<F64x8>();
    conversions::<Pair<F64x8>>();
    conversions::<Pair<Pair<F64x8>>>();
    #[cfg(all(target_arch = "x86_64", target_feature = "avx2", target_feature = "fma"))]
    {
        conversions::<super::avx2::F64x8>();
        conversions::<Pair<super::avx2::F64x8>>();
    }
}

fn masks<V: Lanes>() {
    let lanes: Vec<V::Scalar> = (0..V::LANES).map(|i| V::Scalar::from_f64(i as f64)).collect();
    let x = V::load(&lanes);
    let number = |x: usize| V::splat(V::Scalar::from_f64(x as f64));
    assert_eq!(x.lt(number(3)).bits(), 0b111);
    assert_eq!(x.lt(number(3)).not().bits(), (u64::MAX >> (64 - V::LANES)) & !0b111);
    assert!(x.lt(number(V::LANES)).all() && !x.lt(number(V::LANES - 1)).all());
    assert!(x.ge(number(V::LANES - 1)).any() && !x.ge(number(V::LANES)).any());
    assert_eq!(<V::Mask as Mask>::LANES, V::LANES);

    let index: Vec<u32> = (0..V::LANES as u32).rev().collect();
    let mut out = lanes.clone();
    V::gather(&lanes, Indices::new(&index)).store(&mut out);
    assert!(out.iter().rev().zip(&lanes).all(|(&a, &b)| same(a, b)));
    assert!(std::panic::catch_unwind(|| V::load(&vec![V::Scalar::default(); V::LANES - 1])).is_err());
    assert!(
        std::panic::catch_unwind(
            || V::splat(V::Scalar::default()).store(&mut vec![V::Scalar::default(); V::LANES - 1])
        )
        .is_err()
    );
    assert!(
        std::panic::catch_unwind(|| V::gather(
            &vec![V::Scalar::default(); V::LANES - 1],
            Indices::new(&(0..V::LANES as u32).collect::<Vec<_>>())
        ))
        .is_err()
    );
}

#[test]
fn masks_loads_and_gathers() {
    for_every_body!(masks);
}

#[test]
fn minimum_and_maximum_give_the_second_operand_on_nan_and_equal_zeros() {
    assert!(same(Lanes::min(f64::NAN, 1.0), 1.0) && same(Lanes::max(f64::NAN, 1.0), 1.0));
    assert!(same(Lanes::min(1.0, f64::NAN), f64::NAN) && same(Lanes::max(1.0, f64::NAN), f64::NAN));
    assert!(same(Lanes::min(0.0, -0.0), -0.0) && same(Lanes::min(-0.0, 0.0), 0.0));
}
