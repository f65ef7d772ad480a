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

    /// Are the edges better matrices, one for each delay, than lists? Edges whose delays learn have to be: they move from one to the next, and lists stay.
    pub fn are_matrices(&self) -> bool {
        self.is_dense || self.between.is_some() || self.places_in_matrices() <= SMALL.max(PLACES * self.edges())
    }

    /// How many places matrices of the edges have.
    pub fn places_in_matrices(&self) -> usize {
        self.delays.len() * self.senders * self.targets
    }

    /// For each edge its sender, the number of its delay and its target.
    fn places(&self) -> impl Iterator<Item = (usize, usize, usize)> {
        let all = (0..self.senders)
            .flat_map(|sender| (self.offsets[sender]..self.offsets[sender + 1]).map(move |edge| (sender, edge)));
        all.map(|(sender, edge)| {
            let delay = self.delays.partition_point(|&delay| delay < self.delay[edge]);
            (sender, delay, self.target[edge] as usize)
        })
    }

    /// What the edges carry: matrices `[(delay, sender), target]`, or the weight of each edge with a 0 behind the last.
    pub fn carried(&self) -> Vec<f64> {
        self.laid_out(&self.weights)
    }

    /// Values of the edges where their weights are in what they carry, with 0 elsewhere.
    pub fn laid_out(&self, values: &[f64]) -> Vec<f64> {
        if self.is_dense {
            return values.to_vec();
        }
        if !self.are_matrices() {
            return values.iter().copied().chain([0.0]).collect();
        }
        let mut matrices = vec![0.0; self.places_in_matrices()];
        for (at, value) in self.places().zip(values) {
            matrices[self.place(at)] += value;
        }
        matrices
    }

    /// Where an edge is in matrices.
    fn place(&self, (sender, delay, target): (usize, usize, usize)) -> usize {
        (delay * self.senders + sender) * self.targets + target
    }

    /// Is there an edge, for each place of what edges carry? Nothing if several edges are in one place, or if what learns is not one weight for each edge.
    pub fn filled(&self) -> Option<Vec<bool>> {
        if self.shared.is_some() || self.between.is_some() {
            return None;
        }
        let edges = self.laid_out(&vec![1.0; self.edges()]);
        edges.iter().all(|count| *count <= 1.0).then(|| edges.into_iter().map(|count| count == 1.0).collect())
    }

    /// Values of the edges, of those in what they carry.
    pub fn of_carried(&self, mut values: Vec<f64>) -> Vec<f64> {
        if self.is_dense || !self.are_matrices() {
            values.truncate(self.edges());
            return values;
        }
        self.places().map(|at| values[self.place(at)]).collect()
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::Edges;
    use crate::simulate::trials::Sent;

    /// Edges by target, of `each` sources, with delays of 1 to 3 steps.
    fn tract(senders: usize, targets: usize, each: usize) -> Tract {
        let source = |target: usize, at: usize| (target * 7 + at * 31) % senders;
        let sources: Vec<u32> = (0..targets).flat_map(|t| (0..each).map(move |at| source(t, at) as u32)).collect();
        let offsets = (0..=targets).map(|target| (target * each) as u32).collect();
        let delays: Vec<f64> = (0..sources.len()).map(|edge| (edge % 3 + 1) as f64).collect();
        let weights: Vec<f64> = (0..sources.len()).map(|edge| (0.3 * edge as f64).sin()).collect();
        Tract::new(&Edges { offsets, sources }, senders, &delays, &weights)
    }

    /// What arrives and what comes back along arrays is what does along edges.
    #[test]
    fn arrays_carry_what_edges_do() {
        let edges = Edges { offsets: vec![0, 3, 5], sources: vec![0, 1, 1, 0, 1] };
        let delays = [1.25, 2.0, 1.5, 1.0, 1.75];
        let moving = Tract::moving(&edges, 2, &delays, &[1.0, 2.0, 4.0, 8.0, 16.0], [1.0, 2.0]);
        for (tract, matrices) in [(tract(20, 30, 6), true), (tract(300, 400, 5), false), (moving, true)] {
            assert_eq!(tract.are_matrices(), matrices);
            let [senders, targets] = tract.ends();
            let spiked =
                |step: usize| (0..senders).map(move |cell| f64::from(u8::from((cell * 5 + step).is_multiple_of(3))));
            let sent: Vec<Vec<f64>> = (0..4).map(|step| spiked(step).collect()).collect();
            let of_trial: Vec<Sent> = sent.iter().map(|spiked| Sent::spiked(spiked, 1)).collect();
            let mut arrives = vec![0.0; targets];
            let carrier = tract.carrier();
            carrier.arrive(&of_trial, 3, &mut arrives, 1);
            let later: Vec<Vec<f64>> =
                (0..3).map(|d| (0..targets).map(|t| ((t + 17 * d) as f64).cos()).collect()).collect();
            let later: Vec<&[f64]> = later.iter().map(Vec::as_slice).collect();
            let mut back = vec![0.0; senders];
            carrier.back_to_senders(&later, &mut back, 1);
            let mut slopes = vec![0.0; tract.edges()];
            carrier.back_to_weights(&of_trial[1], &later, &mut slopes, 1);
            // The same through arrays.
            let (delays, carried, lists) = (tract.delays(), tract.carried(), tract.lists());
            let was = |place: usize| sent[3 - delays[place / senders]][place % senders];
            let is = |place: usize| later[delays[place / targets] - 1][place % targets];
            let now = |sender: usize| sent[1][sender];
            let [there, here, of_edges] = if matrices {
                let places = delays.len() * senders;
                let there = |t: usize| (0..places).map(|place| was(place) * carried[place * targets + t]).sum();
                let here = |s: usize| {
                    let all = (0..delays.len()).flat_map(|d| (0..targets).map(move |t| (d, t)));
                    all.map(|(d, t)| is(d * targets + t) * carried[(d * senders + s) * targets + t]).sum()
                };
                let of = |at: usize| {
                    let (place, t) = (at / targets, at % targets);
                    now(place % senders) * is(place / senders * targets + t)
                };
                let slopes = tract.of_carried((0..places * targets).map(of).collect());
                [(0..targets).map(there).collect(), (0..senders).map(here).collect(), slopes]
            } else {
                let along = |[places, edges]: &[Vec<i32>; 2], width: usize, of: &dyn Fn(usize) -> f64| -> Vec<f64> {
                    let mut sums = vec![0.0; width];
                    for (at, (&place, &edge)) in places.iter().zip(edges).enumerate() {
                        sums[at % width] += of(place as usize) * carried[edge as usize];
                    }
                    sums
                };
                let [from, to] = &lists.ends;
                let of_edges = from.iter().zip(to).map(|(&s, &t)| now(s as usize) * is(t as usize)).collect();
                [along(&lists.into, targets, &was), along(&lists.out_of, senders, &is), tract.of_carried(of_edges)]
            };
            for (found, expected) in [(there, arrives), (here, back), (of_edges, slopes)] {
                assert_eq!(found.len(), expected.len());
                assert!(expected.iter().any(|x| *x != 0.0));
                found.iter().zip(&expected).for_each(|(a, b): (&f64, &f64)| assert!((a - b).abs() < 1e-12, "{a} {b}"));
            }
        }
    }
}
