//! What goes along the edges of a tract, in the numbers of a run.
//!
//! In comes who has sent when; out goes what arrives, and backward the derivatives in weights and in having sent.
//! Never true here: the order of a sum depends on the number of threads.

use super::Tract;
use crate::simulate::trials::number::Number;
use crate::simulate::trials::rows::{Matrix, Rows, add_rows};
use ndarray::{ArrayView2, ArrayViewMut2, linalg::general_mat_mul, s};
use std::borrow::Cow;
use std::ops::Range;

/// So many rows are turned into columns at once: as many as fit into lines of a cache, and streams that a processor follows.
const TILE: usize = 16;

/// From so many edges in all trials on, threads share what events bring: fewer are done before a thread begins. (In tests they share everything.)
const WORTH_EVENTS: usize = if cfg!(test) { 0 } else { 1 << 22 };
/// The same where every edge counts, whoever has sent.
const WORTH_EDGES: usize = if cfg!(test) { 0 } else { 1 << 19 };

/// Who has sent in a step: for each trial the cells, in order.
pub type Sent = Rows;

/// A tract with its weights.
pub struct Carrier<'t, T: Number> {
    tract: &'t Tract,
    weights: Weights<'t, T>,
}

enum Weights<'t, T: Number> {
    /// Of a dense tract, a row for each sender.
    Dense(Matrix<T>),
    /// One for each edge.
    Each(Cow<'t, [T]>),
}

impl Tract {
    /// With its weights as they are now.
    pub fn carrier<T: Number>(&self) -> Carrier<'_, T> {
        let weights = match self.is_dense {
            true => Weights::Dense(Matrix::new(&self.weights, self.targets, T::of)),
            false => Weights::Each(T::nearest(&self.weights)),
        };
        Carrier { tract: self, weights }
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
}

impl<T: Number> Carrier<'_, T> {
    /// How many threads share work on all edges of so many trials.
    fn crew(&self, threads: usize, trials: usize, worth: usize) -> usize {
        if self.tract.edges() * trials < worth { 1 } else { threads.max(1) }
    }

    /// Adds what arrives at the targets of each trial in step `step`. `sent` has for every step who has sent in it, from step 1 on at index 1.
    pub fn arrive(&self, sent: &[Sent], step: usize, out: &mut [T], threads: usize) {
        let tract = self.tract;
        let trials = out.len().checked_div(tract.targets).unwrap_or(0);
        let threads = self.crew(threads, trials, WORTH_EVENTS);
        split(out, trials, tract.targets, threads, |first, out| {
            let count = out.len().checked_div(tract.targets).unwrap_or(0);
            for &delay in &tract.delays {
                let Some(sent) = step.checked_sub(delay as usize).and_then(|then| sent.get(then)) else { continue };
                let weights = match &self.weights {
                    Weights::Dense(weights) => {
                        add_rows(out, sent, first, weights);
                        continue;
                    }
                    Weights::Each(weights) => weights,
                };
                // A sender's row is used by all trials while it is near.
                let by_sender = sent.turned(first..first + count, 0..tract.senders);
                for sender in 0..tract.senders {
                    let trials = by_sender.row(sender);
                    if trials.is_empty() {
                        continue;
                    }
                    let row = tract.row(sender, delay);
                    let (targets, weights) = (&tract.target[row.clone()], &weights[row]);
                    for &trial in trials {
                        let out = &mut out[trial as usize * tract.targets..][..tract.targets];
                        targets.iter().zip(weights).for_each(|(&target, w)| out[target as usize] += *w);
                    }
                }
            }
        });
    }

    /// Adds what arrives where senders send numbers, trial by trial, instead of spikes. Delays do not count.
    pub fn bring(&self, sent: &[T], out: &mut [T], threads: usize) {
        let tract = self.tract;
        let trials = out.len().checked_div(tract.targets).unwrap_or(0);
        let threads = self.crew(threads, trials, WORTH_EDGES);
        split(out, trials, tract.targets, threads, |first, out| {
            let count = out.len().checked_div(tract.targets).unwrap_or(0);
            let sent = &sent[first * tract.senders..(first + count) * tract.senders];
            match &self.weights {
                Weights::Dense(weights) => {
                    let sent = ArrayView2::from_shape((count, tract.senders), sent);
                    let out = ArrayViewMut2::from_shape((count, tract.targets), out);
                    if let (Ok(sent), Ok(weights), Ok(mut out)) = (sent, weights.view(), out) {
                        general_mat_mul(T::one(), &sent, &weights, T::one(), &mut out);
                    }
                }
                Weights::Each(weights) => {
                    for (sent, out) in sent.chunks(tract.senders.max(1)).zip(out.chunks_mut(tract.targets)) {
                        for (sender, x) in sent.iter().enumerate() {
                            let row = tract.offsets[sender]..tract.offsets[sender + 1];
                            let edges = tract.target[row.clone()].iter().zip(&weights[row]);
                            edges.for_each(|(&target, weight)| out[target as usize] += *weight * *x);
                        }
                    }
                }
            }
        });
    }

    /// Adds the derivatives in the weights, of those in what [`Carrier::bring`] brings.
    pub fn back_to_bring(&self, sent: &[T], slopes: &[T], out: &mut [T], threads: usize) {
        let tract = self.tract;
        let trials = slopes.len().checked_div(tract.targets).unwrap_or(0);
        let threads = self.crew(threads, trials, WORTH_EDGES);
        self.by_senders(out, threads, |senders, out| {
            let views = (
                ArrayView2::from_shape((trials, tract.senders), sent),
                ArrayView2::from_shape((trials, tract.targets), slopes),
                ArrayViewMut2::from_shape((senders.len(), tract.targets), &mut *out),
            );
            if let ((Ok(sent), Ok(slopes), Ok(mut out)), true) = (views, tract.is_dense) {
                let own = sent.slice(s![.., senders]);
                return general_mat_mul(T::one(), &own.t(), &slopes, T::one(), &mut out);
            }
            let begin = tract.offsets[senders.start];
            for sender in senders {
                for edge in tract.offsets[sender]..tract.offsets[sender + 1] {
                    let sum = &mut out[edge - begin];
                    for trial in 0..trials {
                        let slope = slopes[trial * tract.targets + tract.target[edge] as usize];
                        *sum += sent[trial * tract.senders + sender] * slope;
                    }
                }
            }
        });
    }

    /// Adds the derivatives in having sent in a step, for each trial and sender. `later[d - 1]` is the derivative in what arrives `d` steps later.
    pub fn back_to_senders(&self, later: &[&[T]], out: &mut [T], threads: usize) {
        let tract = self.tract;
        let trials = out.len().checked_div(tract.senders).unwrap_or(0);
        let threads = self.crew(threads, trials, WORTH_EDGES);
        split(out, trials, tract.senders, threads, |first, out| {
            let count = out.len().checked_div(tract.senders).unwrap_or(0);
            let weights = match &self.weights {
                Weights::Dense(weights) => {
                    let later = tract.delays.first().and_then(|&delay| later.get(delay as usize - 1));
                    let later = later.map(|later| &later[first * tract.targets..(first + count) * tract.targets]);
                    let later = later.map(|later| ArrayView2::from_shape((count, tract.targets), later));
                    let out = ArrayViewMut2::from_shape((count, tract.senders), out);
                    if let (Some(Ok(later)), Ok(weights), Ok(mut out)) = (later, weights.view(), out) {
                        general_mat_mul(T::one(), &later, &weights.t(), T::one(), &mut out);
                    }
                    return;
                }
                Weights::Each(weights) => weights,
            };
            let later: Vec<Vec<T>> =
                later.iter().map(|later| tract.side_by_side(later, first..first + count)).collect();
            let mut sums = vec![T::zero(); TILE * count];
            for begin in (0..tract.senders).step_by(TILE) {
                let senders = begin..(begin + TILE).min(tract.senders);
                sums.fill(T::zero());
                for (sender, sums) in senders.clone().zip(sums.chunks_exact_mut(count)) {
                    tract.add_later(sender, weights, &later, sums);
                }
                for (trial, out) in out.chunks_mut(tract.senders).enumerate() {
                    for (out, sums) in out[senders.clone()].iter_mut().zip(sums.chunks_exact(count)) {
                        *out += sums[trial];
                    }
                }
            }
        });
    }

    /// Adds the derivatives in the weights that have been sent along in a step.
    pub fn back_to_weights(&self, sent: &Sent, later: &[&[T]], out: &mut [T], threads: usize) {
        let tract = self.tract;
        // Rows of as many senders for each thread; the trials in order for each edge.
        let threads = self.crew(threads, sent.count(), WORTH_EVENTS);
        let of_delay = |&delay: &u32| later.get(delay as usize - 1).map(|later| (delay, *later));
        let later: Vec<(u32, &[T])> = tract.delays.iter().filter_map(of_delay).collect();
        let rows = later.first().filter(|_| tract.is_dense).map(|(_, later)| Matrix::new(later, tract.targets, |x| x));
        self.by_senders(out, threads, |senders, out| {
            let by_sender = sent.turned(0..sent.count(), senders.clone());
            match &rows {
                Some(rows) => add_rows(out, &by_sender, 0, rows),
                None => later.iter().for_each(|&(delay, later)| {
                    tract.add_along(senders.clone(), delay, &by_sender, later, out);
                }),
            }
        });
    }

    /// Gives each thread the edges of as many senders.
    fn by_senders(&self, out: &mut [T], threads: usize, work: impl Fn(Range<usize>, &mut [T]) + Sync) {
        let tract = self.tract;
        let bounds: Vec<usize> = (0..=threads).map(|part| part * tract.senders / threads).collect();
        let mut parts = Vec::new();
        let mut rest = out;
        for part in bounds.windows(2) {
            let (own, behind) = rest.split_at_mut(tract.offsets[part[1]] - tract.offsets[part[0]]);
            parts.push((part[0]..part[1], own));
            rest = behind;
        }
        std::thread::scope(|scope| {
            let mut parts = parts.into_iter();
            let own = parts.next();
            for (senders, out) in parts {
                let work = &work;
                scope.spawn(move || work(senders, out));
            }
            own.into_iter().for_each(|(senders, out)| work(senders, out));
        });
    }
}

impl Tract {
    /// What is there trial by trial, target by target: of some trials.
    fn side_by_side<T: Number>(&self, later: &[T], trials: Range<usize>) -> Vec<T> {
        let count = trials.len();
        let mut all = vec![T::zero(); self.targets * count];
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
    fn add_later<T: Number>(&self, sender: usize, weights: &[T], later: &[Vec<T>], sums: &mut [T]) {
        let count = sums.len();
        let edges = (self.offsets[sender]..self.offsets[sender + 1]).filter_map(|edge| {
            let later = later.get(self.delay[edge] as usize - 1)?;
            Some((weights[edge], &later[self.target[edge] as usize * count..][..count]))
        });
        pulp::Arch::new().dispatch(|| {
            let mut edges = edges;
            while let Some((weight, values)) = edges.next() {
                // Two at once, in their order.
                match edges.next() {
                    Some((next, others)) => {
                        for ((sum, x), y) in sums.iter_mut().zip(values).zip(others) {
                            *sum = (*sum + weight * *x) + next * *y;
                        }
                    }
                    None => sums.iter_mut().zip(values).for_each(|(sum, x)| *sum += weight * *x),
                }
            }
        });
    }

    /// Adds the derivatives in the weights of the edges of some senders that have a delay; `by_sender` are their trials.
    fn add_along<T: Number>(&self, senders: Range<usize>, delay: u32, by_sender: &Rows, later: &[T], out: &mut [T]) {
        let begin = self.offsets[senders.start];
        for (number, sender) in senders.enumerate() {
            let trials = by_sender.row(number);
            if trials.is_empty() {
                continue;
            }
            let row = self.row(sender, delay);
            let targets = &self.target[row.clone()];
            let sums = &mut out[row.start - begin..row.end - begin];
            for &trial in trials {
                let later = &later[trial as usize * self.targets..][..self.targets];
                sums.iter_mut().zip(targets).for_each(|(sum, &target)| *sum += later[target as usize]);
            }
        }
    }
}

/// Gives each thread as many trials of an array, with the number of the first of them.
fn split<T: Send>(out: &mut [T], trials: usize, each: usize, threads: usize, work: impl Fn(usize, &mut [T]) + Sync) {
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
