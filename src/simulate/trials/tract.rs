//! The edges of a projection as events go along them, and as gradients come back.
//!
//! In come edges with their delays and weights, and who has sent when; out goes what arrives, and backward the derivatives in weights, delays and in having sent.
//! Never true here: the order of a sum depends on the number of threads.

mod arrays;
mod between;

pub use arrays::Lists;

use crate::engine::Edges;
use between::Between;
use ndarray::{ArrayView2, ArrayViewMut2, linalg::general_mat_mul};
use std::ops::Range;

/// So many rows are turned into columns at once: as many as fit into lines of a cache, and streams that a processor follows.
const TILE: usize = 16;

/// From so many edges in all trials on, threads share what events bring: fewer are done before a thread begins. (In tests they share everything.)
const WORTH_EVENTS: usize = if cfg!(test) { 0 } else { 1 << 22 };
/// The same where every edge counts, whoever has sent.
const WORTH_EDGES: usize = if cfg!(test) { 0 } else { 1 << 19 };

/// Who has sent in a step: for each trial the cells, in order.
pub type Sent = Vec<Vec<u32>>;

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

    /// How many threads share work on all edges of so many trials.
    fn crew(&self, threads: usize, trials: usize, worth: usize) -> usize {
        if self.target.len() * trials < worth { 1 } else { threads.max(1) }
    }

    /// The edges of a sender with a delay.
    fn row(&self, sender: usize, delay: u32) -> Range<usize> {
        let (first, end) = (self.offsets[sender], self.offsets[sender + 1]);
        if self.delays.len() == 1 {
            return first..end;
        }
        let row = &self.delay[first..end];
        first + row.partition_point(|&d| d < delay)..first + row.partition_point(|&d| d <= delay)
    }

    /// Adds what arrives at the targets of each trial in step `step`. `sent` has for every step who has sent in it, from step 1 on at index 1.
    pub fn arrive(&self, sent: &[Sent], step: usize, out: &mut [f64], threads: usize) {
        let trials = out.len().checked_div(self.targets).unwrap_or(0);
        let threads = self.crew(threads, trials, WORTH_EVENTS);
        split(out, trials, self.targets, threads, |first, out| {
            let count = out.len().checked_div(self.targets).unwrap_or(0);
            for &delay in &self.delays {
                let Some(sent) = step.checked_sub(delay as usize).and_then(|then| sent.get(then)) else { continue };
                // A sender's row is used by all trials while it is near.
                for (sender, trials) in by_sender(sent, first..first + count, 0..self.senders) {
                    let row = self.row(sender, delay);
                    let (targets, weights) = (&self.target[row.clone()], &self.weights[row]);
                    for trial in trials {
                        let out = &mut out[(trial - first) * self.targets..][..self.targets];
                        if self.is_dense {
                            add(out, weights);
                        } else {
                            targets.iter().zip(weights).for_each(|(&target, w)| out[target as usize] += w);
                        }
                    }
                }
            }
        });
    }

    /// Adds the derivatives in having sent in a step, for each trial and sender. `later[d - 1]` is the derivative in what arrives `d` steps later.
    pub fn back_to_senders(&self, later: &[&[f64]], out: &mut [f64], threads: usize) {
        let trials = out.len().checked_div(self.senders).unwrap_or(0);
        let threads = self.crew(threads, trials, WORTH_EDGES);
        split(out, trials, self.senders, threads, |first, out| {
            let count = out.len().checked_div(self.senders).unwrap_or(0);
            if self.is_dense {
                let Some(later) = self.delays.first().and_then(|&delay| later.get(delay as usize - 1)) else { return };
                let later = &later[first * self.targets..(first + count) * self.targets];
                let later = ArrayView2::from_shape((count, self.targets), later);
                let weights = ArrayView2::from_shape((self.senders, self.targets), &self.weights);
                let out = ArrayViewMut2::from_shape((count, self.senders), out);
                if let (Ok(later), Ok(weights), Ok(mut out)) = (later, weights, out) {
                    general_mat_mul(1.0, &later, &weights.t(), 1.0, &mut out);
                }
                return;
            }
            let later: Vec<Vec<f64>> =
                later.iter().map(|later| self.side_by_side(later, first..first + count)).collect();
            let mut sums = vec![0.0; TILE * count];
            for begin in (0..self.senders).step_by(TILE) {
                let senders = begin..(begin + TILE).min(self.senders);
                sums.fill(0.0);
                for (sender, sums) in senders.clone().zip(sums.chunks_exact_mut(count)) {
                    self.add_later(sender, &later, sums);
                }
                for (trial, out) in out.chunks_mut(self.senders).enumerate() {
                    for (out, sums) in out[senders.clone()].iter_mut().zip(sums.chunks_exact(count)) {
                        *out += sums[trial];
                    }
                }
            }
        });
    }

    /// What is there trial by trial, target by target: of some trials.
    fn side_by_side(&self, later: &[f64], trials: Range<usize>) -> Vec<f64> {
        let count = trials.len();
        let mut all = vec![0.0; self.targets * count];
        for begin in (0..count).step_by(TILE) {
            let part = begin..(begin + TILE).min(count);
            for (target, all) in all.chunks_exact_mut(count).enumerate() {
                for (trial, x) in part.clone().zip(&mut all[part.clone()]) {
                    *x = later[(trials.start + trial) * self.targets + target];
                }
            }
        }
        all
    }

    /// Adds what arrives later at the targets of a sender, each times the weight, edge by edge. `later` has the trials of a target side by side.
    fn add_later(&self, sender: usize, later: &[Vec<f64>], sums: &mut [f64]) {
        let count = sums.len();
        let edges = (self.offsets[sender]..self.offsets[sender + 1]).filter_map(|edge| {
            let later = later.get(self.delay[edge] as usize - 1)?;
            Some((self.weights[edge], &later[self.target[edge] as usize * count..][..count]))
        });
        pulp::Arch::new().dispatch(|| {
            let mut edges = edges;
            while let Some((weight, values)) = edges.next() {
                // Two at once, in their order.
                match edges.next() {
                    Some((next, others)) => {
                        for ((sum, x), y) in sums.iter_mut().zip(values).zip(others) {
                            *sum = (*sum + weight * x) + next * y;
                        }
                    }
                    None => sums.iter_mut().zip(values).for_each(|(sum, x)| *sum += weight * x),
                }
            }
        });
    }

    /// Adds the derivatives in the weights that have been sent along in a step.
    pub fn back_to_weights(&self, sent: &Sent, later: &[&[f64]], out: &mut [f64], threads: usize) {
        // Rows of as many senders for each thread; the trials in order for each edge.
        let threads = self.crew(threads, sent.len(), WORTH_EVENTS);
        let bounds: Vec<usize> = (0..=threads).map(|part| part * self.senders / threads).collect();
        let mut parts = Vec::new();
        let mut rest = out;
        for part in bounds.windows(2) {
            let (own, behind) = rest.split_at_mut(self.offsets[part[1]] - self.offsets[part[0]]);
            parts.push((part[0]..part[1], own));
            rest = behind;
        }
        let work = |senders: Range<usize>, out: &mut [f64]| {
            let begin = self.offsets[senders.start];
            for (sender, trials) in by_sender(sent, 0..sent.len(), senders) {
                for &delay in &self.delays {
                    let Some(later) = later.get(delay as usize - 1) else { continue };
                    let row = self.row(sender, delay);
                    let targets = &self.target[row.clone()];
                    let sums = &mut out[row.start - begin..row.end - begin];
                    for &trial in &trials {
                        let later = &later[trial * self.targets..(trial + 1) * self.targets];
                        if self.is_dense {
                            add(sums, later);
                        } else {
                            sums.iter_mut().zip(targets).for_each(|(sum, &target)| *sum += later[target as usize]);
                        }
                    }
                }
            }
        };
        std::thread::scope(|scope| {
            let mut parts = parts.into_iter();
            let own = parts.next();
            for (senders, out) in parts {
                scope.spawn(|| work(senders, out));
            }
            own.into_iter().for_each(|(senders, out)| work(senders, out));
        });
    }
}

/// The trials, in order, in which each of these senders has sent; those that have in none are left out.
fn by_sender(sent: &Sent, trials: Range<usize>, senders: Range<usize>) -> Vec<(usize, Vec<usize>)> {
    let mut of = vec![Vec::new(); senders.len()];
    for trial in trials {
        let sent = &sent[trial];
        let first = sent.partition_point(|&sender| (sender as usize) < senders.start);
        for &sender in sent[first..].iter().take_while(|&&sender| (sender as usize) < senders.end) {
            of[sender as usize - senders.start].push(trial);
        }
    }
    senders.zip(of).filter(|(_, trials)| !trials.is_empty()).collect()
}

/// Adds numbers one by one, with the widest vectors that the machine has.
fn add(sums: &mut [f64], values: &[f64]) {
    pulp::Arch::new().dispatch(|| {
        for (sum, x) in sums.iter_mut().zip(values) {
            *sum += x;
        }
    });
}

/// Gives each thread as many trials of an array, with the number of the first of them.
fn split(out: &mut [f64], trials: usize, each: usize, threads: usize, work: impl Fn(usize, &mut [f64]) + Sync) {
    let share = trials.div_ceil(threads.max(1)).max(1);
    if share >= trials || each == 0 {
        return work(0, out);
    }
    std::thread::scope(|scope| {
        for (part, out) in out.chunks_mut(share * each).enumerate() {
            let work = &work;
            scope.spawn(move || work(part * share, out));
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Three senders, two targets; by target.
    fn tract(dense: bool) -> Tract {
        let edges = Edges { offsets: vec![0, 3, 6], sources: vec![0, 1, 2, 0, 1, 2] };
        let delays = if dense { [2.0; 6] } else { [1.0, 2.0, 3.0, 2.0, 2.0, 1.0] };
        Tract::new(&edges, 3, &delays, &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0])
    }

    #[test]
    fn events_arrive_after_their_delays() {
        // In step 1 the first trial's cells 0 and 2 have sent, in step 2 the second one's cell 1.
        let sent: Vec<Sent> = vec![vec![vec![], vec![]], vec![vec![0, 2], vec![]], vec![vec![], vec![1]]];
        for threads in [1, 2, 3] {
            let arrived = |tract: &Tract, step| {
                let mut out = vec![0.0; 4];
                tract.arrive(&sent, step, &mut out, threads);
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
            let sent: Vec<Sent> =
                (0..4).map(|_| (0..2).map(|_| (0..3).filter(|_| any() < 0.5).collect()).collect()).collect();
            // The loss weighs what arrives in steps 1 to 6.
            let by: Vec<Vec<f64>> = (0..7).map(|_| (0..4).map(|_| any()).collect()).collect();
            let loss = |tract: &Tract, sent: &[Sent]| -> f64 {
                let of_step = |step: usize| {
                    let mut out = vec![0.0; 4];
                    tract.arrive(sent, step, &mut out, 1);
                    out.iter().zip(&by[step]).map(|(x, by)| x * by).sum::<f64>()
                };
                (1..7).map(of_step).sum()
            };
            for threads in [1, 2, 5] {
                let mut of_weights = vec![0.0; 6];
                for (step, sent_then) in sent.iter().enumerate() {
                    let later: Vec<&[f64]> = by[step + 1..].iter().map(Vec::as_slice).collect();
                    tract.back_to_weights(sent_then, &later, &mut of_weights, threads);
                    let mut of_senders = vec![0.0; 6];
                    tract.back_to_senders(&later, &mut of_senders, threads);
                    for (at, found) in of_senders.iter().enumerate() {
                        let with = |there: bool| {
                            let mut sent = sent.clone();
                            let cells = &mut sent[step][at / 3];
                            cells.retain(|&cell| cell as usize != at % 3);
                            if there {
                                cells.push((at % 3) as u32);
                                cells.sort_unstable();
                            }
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

    /// A product of matrices may go about its sums in another way for other sizes: it does not.
    #[test]
    fn threads_change_no_bit_of_large_products() {
        let (senders, targets, trials) = (130, 611, 9);
        let edges = Edges {
            offsets: (0..=targets as u32).map(|at| at * senders as u32).collect(),
            sources: (0..targets).flat_map(|_| 0..senders as u32).collect(),
        };
        let weights: Vec<f64> = (0..senders * targets).map(|at| (at as f64).sin()).collect();
        let tract = Tract::new(&edges, senders, &vec![1.0; weights.len()], &weights);
        let later: Vec<f64> = (0..trials * targets).map(|at| (0.7 * at as f64).cos()).collect();
        let found = [1, 2, 4, 9].map(|threads| {
            let mut out = vec![0.0; trials * senders];
            tract.back_to_senders(&[&later], &mut out, threads);
            out
        });
        assert!(found[0].iter().any(|x| *x != 0.0));
        assert!(found.iter().all(|other| *other == found[0]));
    }
}
