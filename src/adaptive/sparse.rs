//! Sparse linear equations whose pattern does not change.
//!
//! In come the places of a matrix that may hold something; out go, for any numbers at these places, its factors and solutions.
//! Never true here: rows change places for their numbers. Whoever asks takes a shorter step where a pivot is bad.
//!
//! The order is that of minimum degree: states that only one voltage reads go first, and compartments from the tips of a tree on, so that next to
//! nothing is filled in (Hines 1984 is the case of a tree alone).

use std::collections::BTreeSet;

/// The places of a square matrix, row by row.
#[derive(Debug, Clone, Default)]
pub struct Pattern {
    /// Where each row begins.
    pub starts: Vec<usize>,
    /// The columns of each row, in order.
    pub columns: Vec<u32>,
    /// Where the diagonal is.
    pub diagonal: Vec<usize>,
}

impl Pattern {
    /// Of so many rows, with these places and the diagonal.
    pub fn new(size: usize, mut places: Vec<(u32, u32)>) -> Pattern {
        places.extend((0..size as u32).map(|i| (i, i)));
        places.sort_unstable();
        places.dedup();
        let mut starts = vec![0; size + 1];
        places.iter().for_each(|&(row, _)| starts[row as usize + 1] += 1);
        (0..size).for_each(|row| starts[row + 1] += starts[row]);
        let columns = places.into_iter().map(|(_, column)| column).collect();
        let mut pattern = Pattern { starts, columns, diagonal: Vec::new() };
        pattern.diagonal = (0..size as u32).filter_map(|i| pattern.place(i, i)).collect();
        pattern
    }

    /// How many rows there are.
    pub fn size(&self) -> usize {
        self.diagonal.len()
    }

    /// Where an entry is among the numbers.
    pub fn place(&self, row: u32, column: u32) -> Option<usize> {
        let start = self.starts[row as usize];
        let columns = &self.columns[start..self.starts[row as usize + 1]];
        columns.binary_search(&column).ok().map(|at| start + at)
    }
}

/// The factors of a matrix: unit lower and upper triangles of the rows in another order.
#[derive(Debug, Clone, Default)]
pub struct Factors {
    /// Which row comes when.
    order: Vec<u32>,
    /// Where the columns of each row begin, and where among them the diagonal is.
    starts: Vec<usize>,
    diagonal: Vec<usize>,
    columns: Vec<u32>,
    values: Vec<f64>,
    /// For each entry of the matrix, in its rows: the column in the order of elimination.
    sources: Vec<Vec<(usize, u32)>>,
    work: Vec<f64>,
}

impl Factors {
    /// Finds an order, and where the factors have something.
    pub fn new(pattern: &Pattern) -> Factors {
        let size = pattern.size();
        let mut beside: Vec<BTreeSet<u32>> = vec![BTreeSet::new(); size];
        for row in 0..size {
            for &column in &pattern.columns[pattern.starts[row]..pattern.starts[row + 1]] {
                if column as usize != row {
                    beside[row].insert(column);
                    beside[column as usize].insert(row as u32);
                }
            }
        }
        let mut waiting: BTreeSet<(usize, u32)> = (0..size as u32).map(|i| (beside[i as usize].len(), i)).collect();
        let (mut order, mut after) = (Vec::with_capacity(size), Vec::with_capacity(size));
        while let Some((_, next)) = waiting.pop_first() {
            let around = std::mem::take(&mut beside[next as usize]);
            for &a in &around {
                let own = &mut beside[a as usize];
                waiting.remove(&(own.len(), a));
                own.remove(&next);
                own.extend(around.iter().copied().filter(|&b| b != a));
                waiting.insert((own.len(), a));
            }
            order.push(next);
            after.push(around);
        }
        let mut when = vec![0u32; size];
        order.iter().zip(0..).for_each(|(&row, at)| when[row as usize] = at);
        let mut rows: Vec<Vec<u32>> = vec![Vec::new(); size];
        for (at, around) in after.iter().enumerate() {
            rows[at].push(at as u32);
            for &other in around {
                let other = when[other as usize];
                rows[at].push(other);
                rows[other as usize].push(at as u32);
            }
        }
        let mut factors = Factors { work: vec![0.0; size], ..Factors::default() };
        factors.starts.push(0);
        for (at, row) in rows.iter_mut().enumerate() {
            row.sort_unstable();
            let before = row.iter().take_while(|&&column| (column as usize) < at).count();
            factors.diagonal.push(factors.columns.len() + before);
            factors.columns.extend(row.iter());
            factors.starts.push(factors.columns.len());
        }
        factors.values = vec![0.0; factors.columns.len()];
        let source = |&row: &u32| {
            let row = row as usize;
            let places = pattern.starts[row]..pattern.starts[row + 1];
            places.map(|place| (place, when[pattern.columns[place] as usize])).collect()
        };
        factors.sources = order.iter().map(source).collect();
        factors.order = order;
        factors
    }

    /// Factors a matrix. False if it cannot be done in this order.
    pub fn factor(&mut self, matrix: &[f64]) -> bool {
        let Factors { starts, diagonal, columns, values, sources, work, .. } = self;
        for row in 0..diagonal.len() {
            let own = starts[row]..starts[row + 1];
            columns[own.clone()].iter().for_each(|&column| work[column as usize] = 0.0);
            sources[row].iter().for_each(|&(place, column)| work[column as usize] = matrix[place]);
            for place in own.start..diagonal[row] {
                let before = columns[place] as usize;
                let share = work[before] * values[diagonal[before]];
                work[before] = share;
                if share != 0.0 {
                    for place in diagonal[before] + 1..starts[before + 1] {
                        work[columns[place] as usize] -= share * values[place];
                    }
                }
            }
            for place in own {
                values[place] = work[columns[place] as usize];
            }
            // One over the diagonal is what is needed of it.
            let pivot = values[diagonal[row]];
            let inverse = 1.0 / pivot;
            if !(pivot.is_finite() && inverse.is_finite()) {
                return false;
            }
            values[diagonal[row]] = inverse;
        }
        true
    }

    /// Solves the equations for a right side, in its place.
    pub fn solve(&mut self, right: &mut [f64]) {
        let Factors { order, starts, diagonal, columns, values, work, .. } = self;
        for row in 0..diagonal.len() {
            let places = starts[row]..diagonal[row];
            let known: f64 = places.map(|place| values[place] * work[columns[place] as usize]).sum();
            work[row] = right[order[row] as usize] - known;
        }
        for row in (0..diagonal.len()).rev() {
            let places = diagonal[row] + 1..starts[row + 1];
            let known: f64 = places.map(|place| values[place] * work[columns[place] as usize]).sum();
            work[row] = (work[row] - known) * values[diagonal[row]];
        }
        order.iter().zip(work.iter()).for_each(|(&row, &x)| right[row as usize] = x);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn solutions_solve_the_equations() {
        // A ring with a chord, so that something is filled in; no symmetry.
        let size = 40u32;
        let mut places: Vec<(u32, u32)> = (0..size).flat_map(|i| [(i, (i + 1) % size), ((i + 7) % size, i)]).collect();
        places.push((3, 30));
        let pattern = Pattern::new(size as usize, places);
        let number = |k: usize| ((k as f64) * 0.7371).sin();
        let mut matrix: Vec<f64> = (0..pattern.columns.len()).map(number).collect();
        pattern.diagonal.iter().for_each(|&at| matrix[at] += 5.0);
        let expected: Vec<f64> = (0..size as usize).map(|k| number(3 * k + 1)).collect();
        let row = |row: usize| {
            let places = pattern.starts[row]..pattern.starts[row + 1];
            places.map(|at| matrix[at] * expected[pattern.columns[at] as usize]).sum::<f64>()
        };
        let mut right: Vec<f64> = (0..size as usize).map(row).collect();
        let mut factors = Factors::new(&pattern);
        assert!(factors.factor(&matrix));
        factors.solve(&mut right);
        for (x, expected) in right.iter().zip(&expected) {
            assert!((x - expected).abs() < 1e-13, "{x} is not {expected}");
        }
        // A tree is not filled in: each row has itself, its parent and its children.
        let tree = Pattern::new(100, (1..100).flat_map(|i| [(i, i / 2), (i / 2, i)]).collect());
        assert_eq!(Factors::new(&tree).columns.len(), tree.columns.len());
    }
}
