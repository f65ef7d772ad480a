//! The edges of a projection as arrays of a fixed shape, for devices.
//!
//! In come the edges of a [`Tract`]; out go a matrix for each delay, or lists of edges for targets and for senders.
//! Never true here: an edge is left out, or the weight of an edge that is not there is other than 0.

use super::Tract;

/// Matrices may have so many places for each edge: a device multiplies matrices that much faster than it follows lists.
const PLACES: usize = 32;
/// Matrices of up to so many places are small.
const SMALL: usize = 1 << 16;

/// Edges by target and by sender. Rows have the edges of each in order; where there are fewer, the edge behind the last stands, which weighs nothing.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Lists {
    /// The most edges of a target, and of a sender.
    pub rows: [usize; 2],
    /// For each row and target where the sender stands, `delay * senders + sender`, delays by their number; and the edge.
    pub into: [Vec<i32>; 2],
    /// For each row and sender where the target stands, `delay * targets + target`; and the edge.
    pub out_of: [Vec<i32>; 2],
    /// For each edge its sender, and where its target stands.
    pub ends: [Vec<i32>; 2],
}

impl Tract {
    /// All delays, in steps, in order.
    pub fn delays(&self) -> Vec<usize> {
        self.delays.iter().map(|&delay| delay as usize).collect()
    }

    /// How many senders and targets there are.
    pub fn ends(&self) -> [usize; 2] {
        [self.senders, self.targets]
    }

    /// Are the edges better matrices, one for each delay, than lists?
    pub fn are_matrices(&self) -> bool {
        let places = self.delays.len() * self.senders * self.targets;
        self.is_dense || places <= SMALL.max(PLACES * self.edges())
    }

    /// For each edge its sender, the number of its delay and its target.
    fn places(&self) -> impl Iterator<Item = (usize, usize, usize)> {
        let all = (0..self.senders).flat_map(|sender| {
            (self.offsets[sender]..self.offsets[sender + 1]).map(move |edge| (sender, edge))
        });
        all.map(|(sender, edge)| {
            let delay = self.delays.partition_point(|&delay| delay < self.delay[edge]);
            (sender, delay, self.target[edge] as usize)
        })
    }

    /// What the edges carry: matrices `[(delay, sender), target]`, or the weight of each edge with a 0 behind the last.
    pub fn carried(&self) -> Vec<f64> {
        if self.is_dense {
            return self.weights.clone();
        }
        if !self.are_matrices() {
            return self.weights.iter().copied().chain([0.0]).collect();
        }
        let mut matrices = vec![0.0; self.delays.len() * self.senders * self.targets];
        for ((sender, delay, target), weight) in self.places().zip(&self.weights) {
            matrices[(delay * self.senders + sender) * self.targets + target] += weight;
        }
        matrices
    }

    /// Derivatives in the weights of the edges, of those in what they carry.
    pub fn of_carried(&self, slopes: Vec<f64>) -> Vec<f64> {
        if self.is_dense || !self.are_matrices() {
            return slopes;
        }
        let place = |(sender, delay, target): (usize, usize, usize)| (delay * self.senders + sender) * self.targets + target;
        self.places().map(|at| slopes[place(at)]).collect()
    }

    /// The edges as lists.
    pub fn lists(&self) -> Lists {
        let mut into: Vec<Vec<[i32; 2]>> = vec![Vec::new(); self.targets];
        let mut out_of: Vec<Vec<[i32; 2]>> = vec![Vec::new(); self.senders];
        let mut ends = [Vec::new(), Vec::new()];
        for (edge, (sender, delay, target)) in (0..).zip(self.places()) {
            let there = (delay * self.targets + target) as i32;
            into[target].push([(delay * self.senders + sender) as i32, edge]);
            out_of[sender].push([there, edge]);
            ends[0].push(sender as i32);
            ends[1].push(there);
        }
        let none = [0, self.edges() as i32];
        let rows = [&into, &out_of].map(|lists| lists.iter().map(Vec::len).max().unwrap_or(0));
        let table = |lists: &[Vec<[i32; 2]>], rows: usize| {
            let all = (0..rows).flat_map(|row| lists.iter().map(move |list| list.get(row).copied().unwrap_or(none)));
            let all: Vec<[i32; 2]> = all.collect();
            [0, 1].map(|part| all.iter().map(|both| both[part]).collect())
        };
        Lists { into: table(&into, rows[0]), out_of: table(&out_of, rows[1]), rows, ends }
    }
}
