//! The numbers that trials compute with on the host: those of their engines.
//!
//! In come values in double precision and fields of engines; out go numbers of one type, and vectors of them.
//! Never true here: an `f32` is made of an `f32` by way of other memory.

use crate::engine::{Engine, EngineError};
use crate::step::FieldId;
use ndarray::LinalgScalar;
use pulp::Simd;
use std::borrow::Cow;
use std::fmt::Debug;
use std::ops::AddAssign;

/// `f64` or `f32`.
pub trait Number: LinalgScalar + AddAssign + PartialOrd + Default + Into<f64> + Debug + Send + Sync {
    /// Who has spiked holds more than this.
    const HALF: Self;

    /// As many of them as one instruction takes.
    type Vector<S: Simd>: Copy;

    /// The nearest number.
    fn of(x: f64) -> Self;

    /// The nearest numbers.
    fn nearest(values: &[f64]) -> Cow<'_, [Self]>;

    /// The same numbers in double precision.
    fn widened(values: Vec<Self>) -> Vec<f64>;

    /// Reads the first values of a field.
    fn read(engine: &dyn Engine, field: FieldId, count: usize, out: &mut Vec<Self>) -> Result<(), EngineError>;

    /// Writes a field.
    fn write(engine: &mut dyn Engine, field: FieldId, values: &[Self]) -> Result<(), EngineError>;

    /// As vectors, and what is left over.
    fn vectors<S: Simd>(values: &[Self]) -> (&[Self::Vector<S>], &[Self]);

    /// The same.
    fn vectors_mut<S: Simd>(values: &mut [Self]) -> (&mut [Self::Vector<S>], &mut [Self]);

    /// Lane by lane.
    fn add_lanes<S: Simd>(simd: S, a: Self::Vector<S>, b: Self::Vector<S>) -> Self::Vector<S>;

    /// Fewer than fill a vector.
    fn load_some<S: Simd>(simd: S, values: &[Self]) -> Self::Vector<S>;

    /// The same.
    fn store_some<S: Simd>(simd: S, values: &mut [Self], vector: Self::Vector<S>);
}

/// What the two types call their vectors.
macro_rules! vectors {
    ($vector:ident, $as_simd:ident, $as_mut_simd:ident, $add:ident, $load:ident, $store:ident) => {
        type Vector<S: Simd> = S::$vector;

        #[inline(always)]
        fn vectors<S: Simd>(values: &[Self]) -> (&[Self::Vector<S>], &[Self]) {
            S::$as_simd(values)
        }

        #[inline(always)]
        fn vectors_mut<S: Simd>(values: &mut [Self]) -> (&mut [Self::Vector<S>], &mut [Self]) {
            S::$as_mut_simd(values)
        }

        #[inline(always)]
        fn add_lanes<S: Simd>(simd: S, a: Self::Vector<S>, b: Self::Vector<S>) -> Self::Vector<S> {
            simd.$add(a, b)
        }

        #[inline(always)]
        fn load_some<S: Simd>(simd: S, values: &[Self]) -> Self::Vector<S> {
            simd.$load(values)
        }

        #[inline(always)]
        fn store_some<S: Simd>(simd: S, values: &mut [Self], vector: Self::Vector<S>) {
            simd.$store(values, vector);
        }
    };
}

impl Number for f64 {
    const HALF: f64 = 0.5;

    fn of(x: f64) -> f64 {
        x
    }

    fn nearest(values: &[f64]) -> Cow<'_, [f64]> {
        Cow::Borrowed(values)
    }

    fn widened(values: Vec<f64>) -> Vec<f64> {
        values
    }

    fn read(engine: &dyn Engine, field: FieldId, count: usize, out: &mut Vec<f64>) -> Result<(), EngineError> {
        out.clear();
        engine.read(field, 0..count, out)
    }

    fn write(engine: &mut dyn Engine, field: FieldId, values: &[f64]) -> Result<(), EngineError> {
        engine.write(field, values)
    }

    vectors!(f64s, as_simd_f64s, as_mut_simd_f64s, add_f64s, partial_load_f64s, partial_store_f64s);
}

impl Number for f32 {
    const HALF: f32 = 0.5;

    fn of(x: f64) -> f32 {
        x as f32
    }

    fn nearest(values: &[f64]) -> Cow<'_, [f32]> {
        Cow::Owned(values.iter().map(|&x| f32::of(x)).collect())
    }

    fn widened(values: Vec<f32>) -> Vec<f64> {
        values.into_iter().map(f64::from).collect()
    }

    fn read(engine: &dyn Engine, field: FieldId, count: usize, out: &mut Vec<f32>) -> Result<(), EngineError> {
        out.clear();
        engine.read_singles(field, 0..count, out)
    }

    fn write(engine: &mut dyn Engine, field: FieldId, values: &[f32]) -> Result<(), EngineError> {
        engine.write_singles(field, values)
    }

    vectors!(f32s, as_simd_f32s, as_mut_simd_f32s, add_f32s, partial_load_f32s, partial_store_f32s);
}
