//! The edges of a projection as events go along them, and as gradients come back.
//!
//! In come edges with their delays and weights; out go carriers of what happens, matrices and lists for devices, and numbers that learn.
//! Never true here: a weight that learns on the host is less than double precision.

mod arrays;
mod between;
mod carrier;

pub use arrays::Lists;
pub use carrier::{Carrier, Sent};

use crate::engine::Edges;
use between::Between;

/// The edges of a projection by their senders, each row by delay and target.
#[derive(Debug, Clone, PartialEq)]
pub struct Tract {
    senders: usize,
    targets: usize,
    offsets: Vec<usize>,
    target: Vec<u32>,
    delay: Vec<u32>,
    /// The number of each edge in the order of the projection, which is by target.
    number: Vec<u32>,
    /// All delays that there are.
    delays: Vec<u32>,
    /// Does every sender reach every target once, after the same delay?
    is_dense: bool,
    weights: Vec<f64>,
    shared: Option<Shared>,
    between: Option<Between>,
}

/// For what the edges of a projection have, one number each.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct OfEdges {
    /// In the order of the weights that learn, or for the numbers that they share.
    pub weights: Vec<f64>,
    /// For each step that a delay is longer, in the order of the delays; empty if they are whole numbers of steps.
    pub delays: Vec<f64>,
}

/// The numbers that edges share.
#[derive(Debug, Clone, PartialEq)]
struct Shared {
    values: Vec<f64>,
    /// Where those of each edge, in the order of the weights, begin in `of`; and where the last ones end.
    begins: Vec<u32>,
    /// Numbers that edges have: a weight is the sum of some.
    of: Vec<u32>,
    /// What part of it.
    share: f64,
}

impl Shared {
    /// Which numbers each edge has.
    fn edges(&self) -> impl Iterator<Item = &[u32]> {
        self.begins.windows(2).map(|ends| &self.of[ends[0] as usize..ends[1] as usize])
    }
}

impl Tract {
    /// From edges by target, and for each of them its delay in steps and its weight.
    pub fn new(edges: &Edges, senders: usize, delays: &[f64], weights: &[f64]) -> Tract {
        let targets = edges.offsets.len() - 1;
        let mut rows: Vec<Vec<(u32, u32, u32)>> = vec![Vec::new(); senders];
        for (target, bounds) in edges.offsets.windows(2).enumerate() {
            for at in bounds[0]..bounds[1] {
                let sender = edges.sources[at as usize] as usize;
                rows[sender].push((delays[at as usize].max(1.0) as u32, target as u32, at));
            }
        }
        rows.iter_mut().for_each(|row| row.sort_unstable());
        let mut offsets = vec![0];
        offsets.extend(rows.iter().scan(0, |end, row| {
            *end += row.len();
            Some(*end)
        }));
        let all = rows.concat();
        let mut known: Vec<u32> = all.iter().map(|edge| edge.0).collect();
        known.sort_unstable();
        known.dedup();
        let is_full = |row: &Vec<(u32, u32, u32)>| {
            row.len() == targets && row.iter().zip(0..).all(|(edge, target)| edge.1 == target)
        };
        Tract {
            senders,
            targets,
            is_dense: known.len() == 1 && rows.iter().all(is_full),
            offsets,
            target: all.iter().map(|edge| edge.1).collect(),
            delay: all.iter().map(|edge| edge.0).collect(),
            weights: all.iter().map(|edge| weights[edge.2 as usize]).collect(),
            number: all.iter().map(|edge| edge.2).collect(),
            delays: known,
            shared: None,
            between: None,
        }
    }

    /// With numbers that edges share: of each edge, in the order of the projection, which of them it has; and what part.
    pub fn sharing(mut self, values: Vec<f64>, of: &[u32], share: f64) -> Tract {
        let of: Vec<u32> = self.number.iter().map(|&number| of[number as usize]).collect();
        // Edges between the same cells, which follow each other, are one.
        let (mut firsts, mut offsets) = (Vec::new(), vec![0]);
        for ends in self.offsets.windows(2) {
            let is_first = |at: &usize| {
                *at == ends[0] || (self.target[*at], self.delay[*at]) != (self.target[*at - 1], self.delay[*at - 1])
            };
            firsts.extend((ends[0]..ends[1]).filter(is_first));
            offsets.push(firsts.len());
        }
        let begins = firsts.iter().chain([&of.len()]).map(|&at| at as u32).collect();
        let kept = |values: &[u32]| firsts.iter().map(|&at| values[at]).collect();
        (self.target, self.delay, self.number) = (kept(&self.target), kept(&self.delay), kept(&self.number));
        (self.offsets, self.weights) = (offsets, vec![0.0; firsts.len()]);
        self.shared = Some(Shared { values, begins, of, share });
        self.spread();
        self
    }

    /// Gives edges the numbers that they share, or their parts of a weight.
    fn spread(&mut self) {
        if let Some(between) = &self.between {
            between.spread(&mut self.weights);
        }
        if let Some(shared) = &self.shared {
            let sum = |of: &[u32]| of.iter().map(|&of| shared.values[of as usize]).sum::<f64>();
            let weights = self.weights.iter_mut().zip(shared.edges());
            weights.for_each(|(weight, of)| *weight = shared.share * sum(of));
        }
    }

    /// How many numbers learn.
    pub fn numbers(&self) -> usize {
        self.own().len()
    }

    /// The weights that learn.
    fn own(&self) -> &[f64] {
        match (&self.shared, &self.between) {
            (Some(shared), _) => &shared.values,
            (None, Some(between)) => &between.weights,
            (None, None) => &self.weights,
        }
    }

    /// How many edges there are; one whose delay lies between two steps counts twice.
    pub fn edges(&self) -> usize {
        self.weights.len()
    }

    /// The longest delay, in steps; 0 without edges.
    pub fn longest(&self) -> usize {
        self.delays.last().map_or(0, |&delay| delay as usize)
    }

    /// The weights in the order of the projection, or the numbers that edges share.
    pub fn weights(&self) -> Vec<f64> {
        self.in_order(self.own())
    }

    /// Values of what learns in the order of the projection.
    pub fn in_order(&self, values: &[f64]) -> Vec<f64> {
        if self.shared.is_some() {
            return values.to_vec();
        }
        let number = self.between.as_ref().map_or(&self.number, |between| &between.number);
        let mut out = vec![0.0; values.len()];
        number.iter().zip(values).for_each(|(&number, &x)| out[number as usize] = x);
        out
    }

    /// Changes what learns, which is in the order of gradients.
    pub fn change(&mut self, change: impl FnOnce(&mut [f64])) {
        match (&mut self.shared, &mut self.between) {
            (Some(shared), _) => change(&mut shared.values),
            (None, Some(between)) => change(&mut between.weights),
            (None, None) => change(&mut self.weights),
        }
        self.spread();
    }

    /// Derivatives in what learns, of those in the weights of the edges.
    pub fn of_numbers(&self, slopes: Vec<f64>) -> OfEdges {
        if slopes.is_empty() {
            return OfEdges::default();
        }
        if let Some(between) = &self.between {
            return between.slopes(&slopes);
        }
        let Some(shared) = &self.shared else { return OfEdges { weights: slopes, delays: Vec::new() } };
        let mut sums = vec![0.0; shared.values.len()];
        for (slope, of) in slopes.iter().zip(shared.edges()) {
            of.iter().for_each(|&of| sums[of as usize] += shared.share * slope);
        }
        OfEdges { weights: sums, delays: Vec::new() }
    }

    /// Gives the edges weights, in the order of the projection, or the numbers that they share.
    pub fn set_weights(&mut self, weights: &[f64]) {
        if let Some(shared) = &mut self.shared {
            shared.values.copy_from_slice(weights);
            return self.spread();
        }
        let (number, own) = match &mut self.between {
            Some(between) => (&between.number, &mut between.weights),
            None => (&self.number, &mut self.weights),
        };
        number.iter().zip(own).for_each(|(&number, weight)| *weight = weights[number as usize]);
        self.spread();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulate::trials::Number;

    /// Three senders, two targets; by target.
    fn tract(dense: bool) -> Tract {
        let edges = Edges { offsets: vec![0, 3, 6], sources: vec![0, 1, 2, 0, 1, 2] };
        let delays = if dense { [2.0; 6] } else { [1.0, 2.0, 3.0, 2.0, 2.0, 1.0] };
        Tract::new(&edges, 3, &delays, &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0])
    }

    #[test]
    fn events_arrive_after_their_delays() {
        // In step 1 the first trial's cells 0 and 2 have sent, in step 2 the second one's cell 1.
        let sent = [[0.0; 6], [1.0, 0.0, 1.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0, 1.0, 0.0]];
        let sent = sent.map(|spiked| Sent::spiked(&spiked, 2));
        for threads in [1, 2, 3] {
            let arrived = |tract: &Tract, step| {
                let mut out = vec![0.0; 4];
                tract.carrier().arrive(&sent, step, &mut out, threads);
                out
            };
            let expected = [[0.0, 0.0, 0.0, 0.0], [1.0, 6.0, 0.0, 0.0], [0.0, 4.0, 0.0, 0.0], [3.0, 0.0, 2.0, 5.0]];
            for (step, expected) in (1..).zip(expected) {
                assert_eq!(arrived(&tract(false), step), expected, "step {step}");
            }
            assert_eq!(arrived(&tract(true), 3), [1.0 + 3.0, 4.0 + 6.0, 0.0, 0.0]);
        }
    }

    /// What arrives is bilinear: its derivatives are what it is made of.
    #[test]
    fn derivatives_are_those_of_what_arrives() {
        let mut state = 1u32;
        let mut any = || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            f64::from(state >> 16) / 65_536.0
        };
        for dense in [false, true] {
            let tract = tract(dense);
            // Of each step, trial by trial.
            let sent: Vec<Vec<f64>> =
                (0..4).map(|_| (0..6).map(|_| f64::from(u8::from(any() < 0.5))).collect()).collect();
            // The loss weighs what arrives in steps 1 to 6.
            let by: Vec<Vec<f64>> = (0..7).map(|_| (0..4).map(|_| any()).collect()).collect();
            let loss = |tract: &Tract, sent: &[Vec<f64>]| -> f64 {
                let sent: Vec<Sent> = sent.iter().map(|spiked| Sent::spiked(spiked, 2)).collect();
                let of_step = |step: usize| {
                    let mut out = vec![0.0; 4];
                    tract.carrier().arrive(&sent, step, &mut out, 1);
                    out.iter().zip(&by[step]).map(|(x, by)| x * by).sum::<f64>()
                };
                (1..7).map(of_step).sum()
            };
            for threads in [1, 2, 5] {
                let mut of_weights = vec![0.0; 6];
                for (step, spiked) in sent.iter().enumerate() {
                    let later: Vec<&[f64]> = by[step + 1..].iter().map(Vec::as_slice).collect();
                    tract.carrier().back_to_weights(&Sent::spiked(spiked, 2), &later, &mut of_weights, threads);
                    let mut of_senders = vec![0.0; 6];
                    tract.carrier().back_to_senders(&later, &mut of_senders, threads);
                    for (at, found) in of_senders.iter().enumerate() {
                        let with = |there: bool| {
                            let mut sent = sent.clone();
                            sent[step][at] = f64::from(u8::from(there));
                            loss(&tract, &sent)
                        };
                        assert!((with(true) - with(false) - found).abs() < 1e-12, "{dense} {step} {at}");
                    }
                }
                for (at, slope) in of_weights.iter().enumerate() {
                    let mut more = tract.clone();
                    more.change(|weights| weights[at] += 1.0);
                    assert!((loss(&more, &sent) - loss(&tract, &sent) - slope).abs() < 1e-12);
                }
            }
        }
    }

    /// A product of matrices may go about its sums in another way for other sizes: it does not. Sums of rows have one order.
    #[test]
    fn threads_change_no_bit_of_large_products() {
        fn check<T: Number>(number: fn(f64) -> T) {
            let (senders, targets, trials) = (130, 611, 9);
            let edges = Edges {
                offsets: (0..=targets as u32).map(|at| at * senders as u32).collect(),
                sources: (0..targets).flat_map(|_| 0..senders as u32).collect(),
            };
            let weights: Vec<f64> = (0..senders * targets).map(|at| (at as f64).sin()).collect();
            let tract = Tract::new(&edges, senders, &vec![1.0; weights.len()], &weights);
            let numbers = |count: usize, by: f64| (0..count).map(|at| number((by * at as f64).cos())).collect();
            let later: Vec<T> = numbers(trials * targets, 0.7);
            let spiked: Vec<T> = numbers(trials * senders, 0.9);
            let sent = Sent::spiked(&spiked, trials);
            let found = [1, 2, 4, 9].map(|threads| {
                let (carrier, zeros) = (tract.carrier(), |count| vec![T::zero(); count]);
                let (mut arrived, mut slopes) = (zeros(trials * targets), zeros(senders * targets));
                let mut back = zeros(trials * senders);
                carrier.arrive(std::slice::from_ref(&sent), 1, &mut arrived, threads);
                carrier.back_to_senders(&[&later], &mut back, threads);
                carrier.back_to_weights(&sent, &[&later], &mut slopes, threads);
                [arrived, back, slopes]
            });
            assert!(found[0].iter().all(|sums| sums.iter().any(|x| *x != T::zero())));
            assert!(found.iter().all(|other| *other == found[0]));
        }
        check::<f64>(|x| x);
        check::<f32>(|x| x as f32);
    }
}
