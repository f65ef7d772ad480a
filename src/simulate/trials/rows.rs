//! Sums of rows of a matrix: what spikes are to a product with it.
//!
//! In come, for each row of the result, the numbers of the rows that it is the sum of; out go the sums.
//! Never true here: a sum has another order than its list, whatever the vectors.

use super::number::Number;
use crate::runtime::aligned::Aligned;
use ndarray::{ArrayView2, ShapeBuilder, ShapeError};
use pulp::{Simd, WithSimd};
use std::ops::Range;

/// Bytes of a line of the cache; no vector is larger.
const LINE: usize = 64;

/// For each row some numbers, in order.
#[derive(Debug, Clone, PartialEq)]
pub struct Rows {
    bounds: Vec<usize>,
    numbers: Vec<u32>,
}

impl Rows {
    /// So many rows without a number.
    pub fn empty(rows: usize) -> Rows {
        Rows { bounds: vec![0; rows + 1], numbers: Vec::new() }
    }

    /// For each row which of its values say that a cell has spiked.
    pub fn spiked<T: Number>(values: &[T], rows: usize) -> Rows {
        let width = values.len().checked_div(rows).unwrap_or(0);
        let mut spiked = Rows { bounds: vec![0], numbers: Vec::new() };
        let mut room = vec![0; width];
        for row in 0..rows {
            // Each is written, but the place moves on behind those that count alone: no branch is guessed wrong.
            let mut count = 0;
            for (x, number) in values[row * width..(row + 1) * width].iter().zip(0..) {
                room[count] = number;
                count += usize::from(*x > T::HALF);
            }
            spiked.numbers.extend_from_slice(&room[..count]);
            spiked.bounds.push(spiked.numbers.len());
        }
        spiked
    }

    /// How many rows there are.
    pub fn count(&self) -> usize {
        self.bounds.len() - 1
    }

    /// How many numbers all rows have.
    pub fn numbers(&self) -> usize {
        self.numbers.len()
    }

    /// The numbers of a row.
    pub fn row(&self, row: usize) -> &[u32] {
        &self.numbers[self.bounds[row]..self.bounds[row + 1]]
    }

    /// For each of these numbers the rows, out of some, that have it: counted from the first of them.
    pub fn turned(&self, rows: Range<usize>, numbers: Range<usize>) -> Rows {
        let within = |row: usize| {
            let row = self.row(row);
            let first = row.partition_point(|&number| (number as usize) < numbers.start);
            &row[first..first + row[first..].partition_point(|&number| (number as usize) < numbers.end)]
        };
        let mut bounds = vec![0; numbers.len() + 1];
        let counted = rows.clone().flat_map(within);
        counted.for_each(|&number| bounds[number as usize - numbers.start + 1] += 1);
        for at in 1..bounds.len() {
            bounds[at] += bounds[at - 1];
        }
        let mut turned = vec![0; bounds[numbers.len()]];
        let mut next = bounds.clone();
        for (row, number) in rows.zip(0..) {
            for &own in within(row) {
                let place = &mut next[own as usize - numbers.start];
                turned[*place] = number;
                *place += 1;
            }
        }
        Rows { bounds, numbers: turned }
    }
}

/// Rows of numbers, each of which begins a line of the cache, so that vectors lie in one line; zeros fill up the last one.
pub struct Matrix<T> {
    numbers: Aligned<T>,
    width: usize,
    /// From one row to the next.
    stride: usize,
}

impl<T: Number> Matrix<T> {
    /// Rows that are so wide, of numbers that are there row by row.
    pub fn new<N: Copy>(values: &[N], width: usize, number: impl Fn(N) -> T) -> Matrix<T> {
        let stride = width.next_multiple_of(LINE / size_of::<T>());
        let rows = values.len().checked_div(width).unwrap_or(0);
        let mut numbers = Aligned::new(rows * stride);
        if width > 0 {
            for (own, values) in numbers.get_mut().chunks_exact_mut(stride).zip(values.chunks_exact(width)) {
                own.iter_mut().zip(values).for_each(|(own, x)| *own = number(*x));
            }
        }
        Matrix { numbers, width, stride }
    }

    /// All of it, for products of matrices.
    pub fn view(&self) -> Result<ArrayView2<'_, T>, ShapeError> {
        let rows = self.numbers.get().len().checked_div(self.stride).unwrap_or(0);
        let shape = (rows, self.width).strides((self.stride, 1));
        ArrayView2::from_shape(shape, self.numbers.get())
    }
}

/// Adds to rows of sums the rows of a matrix that `lists` has for each of them, beginning with the list `first`.
pub fn add_rows<T: Number>(sums: &mut [T], lists: &Rows, first: usize, matrix: &Matrix<T>) {
    if matrix.width > 0 {
        pulp::Arch::new().dispatch(AddRows { sums, lists, first, matrix });
    }
}

struct AddRows<'a, T> {
    sums: &'a mut [T],
    lists: &'a Rows,
    first: usize,
    matrix: &'a Matrix<T>,
}

impl<T: Number> WithSimd for AddRows<'_, T> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(mut self, simd: S) {
        let lanes = size_of::<T::Vector<S>>() / size_of::<T>();
        let width = self.matrix.width;
        let mut begin = 0;
        // A few columns of all rows stay in the cache; their sums are in registers.
        while begin < width {
            begin += match (width - begin) / lanes {
                8.. => self.columns::<S, 8>(simd, begin),
                4.. => self.columns::<S, 4>(simd, begin),
                1.. => self.columns::<S, 1>(simd, begin),
                0 => self.last(simd, begin),
            };
        }
    }
}

impl<T: Number> AddRows<'_, T> {
    /// So many vectors of columns; the answer is how many columns that is.
    #[inline(always)]
    fn columns<S: Simd, const N: usize>(&mut self, simd: S, begin: usize) -> usize {
        let Matrix { numbers, width, stride } = self.matrix;
        let columns = N * (size_of::<T::Vector<S>>() / size_of::<T>());
        for (row, sums) in (self.first..).zip(self.sums.chunks_exact_mut(*width)) {
            let list = self.lists.row(row);
            let sums = T::vectors_mut::<S>(&mut sums[begin..begin + columns]).0.first_chunk_mut::<N>();
            let Some(sums) = sums.filter(|_| !list.is_empty()) else { continue };
            let mut own = *sums;
            for &number in list {
                let values = &numbers.get()[number as usize * stride + begin..][..columns];
                let Some(values) = T::vectors::<S>(values).0.first_chunk::<N>() else { continue };
                for at in 0..N {
                    own[at] = T::add_lanes(simd, own[at], values[at]);
                }
            }
            *sums = own;
        }
        columns
    }

    /// The last columns, which are fewer than a vector has lanes.
    #[inline(always)]
    fn last<S: Simd>(&mut self, simd: S, begin: usize) -> usize {
        let Matrix { numbers, width, stride } = self.matrix;
        let lanes = size_of::<T::Vector<S>>() / size_of::<T>();
        for (row, sums) in (self.first..).zip(self.sums.chunks_exact_mut(*width)) {
            let (list, sums) = (self.lists.row(row), &mut sums[begin..]);
            if list.is_empty() {
                continue;
            }
            let mut own = T::load_some(simd, sums);
            for &number in list {
                // Zeros stand behind the row.
                let values = &numbers.get()[number as usize * stride + begin..][..lanes];
                let Some(values) = T::vectors::<S>(values).0.first() else { continue };
                own = T::add_lanes(simd, own, *values);
            }
            T::store_some(simd, sums, own);
        }
        width - begin
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows() -> Rows {
        // Three rows of five values.
        let values = [1.0, 0.0, 1.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 1.0, 0.0];
        Rows::spiked(&values, 3)
    }

    #[test]
    fn rows_are_turned() {
        let rows = rows();
        assert_eq!([0, 1, 2].map(|row| rows.row(row)), [&[0, 2, 4][..], &[], &[2, 3]]);
        let turned = rows.turned(0..3, 0..5);
        assert_eq!(turned, Rows { bounds: vec![0, 1, 1, 3, 4, 5], numbers: vec![0, 0, 2, 2, 0] });
        assert_eq!(rows.turned(1..3, 2..4), Rows { bounds: vec![0, 1, 2], numbers: vec![1, 1] });
        assert_eq!(turned.turned(0..5, 0..3), rows);
        assert_eq!(Rows::spiked::<f32>(&[], 2), Rows::empty(2));
    }

    /// Of all widths: whole groups of vectors, single ones, and what is left over.
    #[test]
    fn sums_have_the_order_of_their_lists() {
        fn check<T: Number>(number: fn(f64) -> T) {
            let rows = rows();
            for width in 0..301 {
                let matrix =
                    |phase: f64| (0..5 * width).map(|at| number((at as f64 + phase).sin())).collect::<Vec<T>>();
                let (of, begin) = (matrix(0.0), matrix(0.25));
                let mut expected = begin[..3 * width].to_vec();
                for (row, sums) in expected.chunks_exact_mut(width.max(1)).enumerate() {
                    for &number in rows.row(row) {
                        sums.iter_mut().zip(&of[number as usize * width..]).for_each(|(sum, x)| *sum += *x);
                    }
                }
                let mut sums = begin[..3 * width].to_vec();
                let matrix = Matrix::new(&of, width, |x| x);
                assert!(matrix.view().unwrap().iter().eq(&of));
                add_rows(&mut sums[..width], &rows, 0, &matrix);
                add_rows(&mut sums[width..], &rows, 1, &matrix);
                assert_eq!(sums, expected, "{width}");
            }
        }
        check::<f64>(|x| x);
        check::<f32>(|x| x as f32);
    }
}
