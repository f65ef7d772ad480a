//! Delays that lie between two steps: they learn.
//!
//! In come edges whose delays are numbers of steps, whole or not; out go edges with whole delays, two for each: of what an edge with a delay
//! of `d + f` steps carries, `1 - f` arrives after `d` steps and `f` a step later. So what arrives is a continuous function of the delay, linear
//! from step to step.
//! Never true here: a delay is less than a step.

use super::{OfEdges, Tract};
use crate::engine::Edges;

/// Edges with delays of any length, in the order of their senders, targets and numbers. It stays while delays move.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Between {
    /// The number of each edge in the order of the projection.
    pub(super) number: Vec<u32>,
    pub(super) weights: Vec<f64>,
    /// In steps.
    delays: Vec<f64>,
    /// The least and the most that they may be.
    range: [f64; 2],
    target: Vec<u32>,
    /// Where the two halves of each edge are among the edges of the tract.
    halves: Vec<[u32; 2]>,
}

impl Between {
    /// The whole part of a delay, and the rest.
    fn parts(&self) -> impl Iterator<Item = (u32, f64)> {
        self.delays.iter().map(|delay| (delay.floor() as u32, delay - delay.floor()))
    }

    /// Gives the halves of edges their parts.
    pub(super) fn spread(&self, carried: &mut [f64]) {
        for ((weight, (_, rest)), half) in self.weights.iter().zip(self.parts()).zip(&self.halves) {
            carried[half[0] as usize] = weight * (1.0 - rest);
            carried[half[1] as usize] = weight * rest;
        }
    }

    /// Derivatives in weights and delays, of those in what the halves of edges carry.
    pub(super) fn slopes(&self, carried: &[f64]) -> OfEdges {
        let mut of = OfEdges::default();
        for ((weight, (_, rest)), half) in self.weights.iter().zip(self.parts()).zip(&self.halves) {
            let [first, second] = half.map(|at| carried[at as usize]);
            of.weights.push((1.0 - rest) * first + rest * second);
            of.delays.push(weight * (second - first));
        }
        of
    }
}

impl Tract {
    /// From edges by target, for each of them its delay, which moves in a range, and its weight. Delays are numbers of steps, one at least.
    pub fn moving(edges: &Edges, senders: usize, delays: &[f64], weights: &[f64], range: [f64; 2]) -> Tract {
        let together = Tract::new(edges, senders, &vec![1.0; delays.len()], weights);
        let of_edge = |of: &[f64]| together.number.iter().map(|&number| of[number as usize]).collect();
        let between = Between {
            delays: of_edge(delays),
            range,
            weights: of_edge(weights),
            number: together.number.clone(),
            target: together.target.clone(),
            halves: vec![[0, 0]; delays.len()],
        };
        let known = (range[0] as u32..=range[1] as u32 + 1).collect();
        let offsets = together.offsets.iter().map(|end| 2 * end).collect();
        let twice = |values: &[u32]| values.repeat(2);
        let mut tract = Tract {
            is_dense: false,
            offsets,
            delays: known,
            target: twice(&together.target),
            delay: twice(&together.delay),
            number: twice(&together.number),
            weights: together.weights.repeat(2),
            between: Some(between),
            ..together
        };
        tract.change_delays(|_| {});
        tract
    }

    /// Do delays lie between steps?
    pub fn is_moving(&self) -> bool {
        self.between.is_some()
    }

    /// Delays that lie between steps, in steps, in the order of the projection; none if they are whole numbers.
    pub fn moved_delays(&self) -> Vec<f64> {
        self.between.as_ref().map_or_else(Vec::new, |between| self.in_order(&between.delays))
    }

    /// Changes delays that lie between steps, which are in the order of gradients; what leaves their range is brought back to its end.
    pub fn change_delays(&mut self, change: impl FnOnce(&mut [f64])) {
        if let Some(between) = &mut self.between {
            change(&mut between.delays);
            let [least, most] = between.range;
            // What is no number becomes the least.
            between.delays.iter_mut().for_each(|delay| *delay = delay.max(least).min(most));
        }
        self.arrange();
    }

    /// Gives edges delays between steps, in steps, in the order of the projection.
    pub fn set_delays(&mut self, delays: &[f64]) {
        let number = self.between.as_ref().map_or_else(Vec::new, |between| between.number.clone());
        self.change_delays(|own| own.iter_mut().zip(number).for_each(|(own, number)| *own = delays[number as usize]));
    }

    /// Makes delays that lie between steps the nearest whole numbers of them, as a run does; the answer is what they were, as [`Tract::moved_delays`].
    pub fn round_delays(&mut self) -> Vec<f64> {
        let delays = self.moved_delays();
        if let Some(between) = &mut self.between {
            // Whole steps may lie behind an end of the range that is none.
            between.delays.iter_mut().for_each(|delay| *delay = (*delay + 0.5).floor());
        }
        self.arrange();
        delays
    }

    /// Brings the halves of edges into the order of their delays.
    fn arrange(&mut self) {
        let Some(between) = &mut self.between else { return };
        let parts: Vec<u32> = between.parts().map(|(whole, _)| whole).collect();
        for bounds in self.offsets.windows(2) {
            let edges = bounds[0] / 2..bounds[1] / 2;
            let halves =
                edges.flat_map(|edge| [0, 1].map(|half| (parts[edge] + half, between.target[edge], edge, half)));
            let mut row: Vec<(u32, u32, usize, u32)> = halves.collect();
            row.sort_unstable();
            for (at, (delay, target, edge, half)) in (bounds[0]..).zip(row) {
                (self.delay[at], self.target[at], self.number[at]) = (delay, target, between.number[edge]);
                between.halves[edge][half as usize] = at as u32;
            }
        }
        self.spread();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulate::trials::Sent;

    /// Two senders, two targets, of which the first gets two edges from the second sender.
    fn tract() -> Tract {
        let edges = Edges { offsets: vec![0, 3, 5], sources: vec![0, 1, 1, 0, 1] };
        Tract::moving(&edges, 2, &[1.25, 2.0, 3.5, 1.0, 2.75], &[1.0, 2.0, 4.0, 8.0, 16.0], [1.0, 3.6])
    }

    /// What arrives in steps 1 to 7, one trial.
    fn arrives(tract: &Tract, sent: &[Sent], threads: usize) -> Vec<f64> {
        let in_step = |step| {
            let mut out = vec![0.0; 2];
            tract.carrier().arrive(sent, step, &mut out, threads);
            out
        };
        (1..8).flat_map(in_step).collect()
    }

    #[test]
    fn a_part_arrives_in_each_of_two_steps() {
        let mut tract = tract();
        // The first cell has sent in step 1, the second one in step 2.
        let sent = [[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]].map(|spiked| Sent::spiked(&spiked, 1));
        let expected = [[0.0, 0.0], [0.75, 8.0], [0.25, 0.0], [2.0, 4.0], [2.0, 12.0], [2.0, 0.0], [0.0, 0.0]];
        for threads in [1, 2, 3] {
            assert_eq!(arrives(&tract, &sent, threads), expected.concat());
        }
        let between = tract.round_delays();
        assert_eq!(between, [1.25, 2.0, 3.5, 1.0, 2.75]);
        let expected = [[0.0, 0.0], [1.0, 8.0], [0.0, 0.0], [2.0, 0.0], [0.0, 16.0], [4.0, 0.0], [0.0, 0.0]];
        assert_eq!(arrives(&tract, &sent, 1), expected.concat());
        tract.set_delays(&between);
        assert_eq!(tract, self::tract());
        // They stay in their range, what is no number, too.
        tract.set_delays(&[9.0, -1.0, f64::NAN, 2.0, 3.6]);
        assert_eq!(tract.moved_delays(), [3.6, 1.0, 1.0, 2.0, 3.6]);
    }

    /// Between two steps what arrives is linear in a delay, in a weight it always is.
    #[test]
    fn derivatives_are_those_of_what_arrives() {
        let sent = [[0.0, 0.0], [1.0, 1.0], [0.0, 1.0], [1.0, 0.0]].map(|spiked| Sent::spiked(&spiked, 1));
        // The loss weighs what arrives.
        let by: Vec<f64> = (0..14).map(|at| (1.3 * f64::from(at)).sin()).collect();
        let loss = |tract: &Tract| arrives(tract, &sent, 1).iter().zip(&by).map(|(x, by)| x * by).sum::<f64>();
        let tract = tract();
        let mut carried = vec![0.0; tract.edges()];
        for (step, sent) in sent.iter().enumerate().skip(1) {
            let later: Vec<&[f64]> = by[2 * step..].chunks(2).collect();
            tract.carrier().back_to_weights(sent, &later, &mut carried, 2);
        }
        let OfEdges { weights, delays } = tract.of_numbers(carried);
        for (at, (of_weight, of_delay)) in weights.into_iter().zip(delays).enumerate() {
            let mut more = tract.clone();
            more.change(|weights| weights[at] += 1.0);
            assert!((loss(&more) - loss(&tract) - of_weight).abs() < 1e-12, "{at}");
            let mut later = tract.clone();
            later.change_delays(|delays| delays[at] += 0.0625);
            assert!(of_delay.abs() > 1e-3 && ((loss(&later) - loss(&tract)) / 0.0625 - of_delay).abs() < 1e-11, "{at}");
        }
    }
}
