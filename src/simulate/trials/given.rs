//! What samples bring without spikes: along graded synapses, from cells whose potentials they give.
//!
//! In come the projections of a network that begin at such cells, and what these send in each frame; out goes what arrives as long as a frame lasts, and
//! derivatives in weights.
//! Never true here: something that a cell has computed is sent, or a sum depends on the number of threads.
//!
//! What arrives is the same in all steps of a frame, so that one product of matrices brings it, and one takes derivatives back to the weights.

use super::number::Number;
use super::{Both, Carrier, Net, Origin, Route};

/// What arrives at one receptor.
pub struct Brought<'n, T: Number> {
    /// Where it is written to, and its adjoint.
    pub arrived: Both,
    /// How many targets there are in all trials.
    pub targets: usize,
    /// What arrives in each step of a frame, `[frame][trial and target]`.
    pub frames: Vec<Vec<T>>,
    /// The derivatives in that: the sum over the steps of a frame.
    pub slopes: Vec<Vec<T>>,
    /// The projections that lead there.
    ways: Vec<Way<'n, T>>,
}

/// A projection, with its weights as they are.
struct Way<'n, T: Number> {
    /// Its number.
    route: usize,
    carrier: Carrier<'n, T>,
    /// What is sent along it, `[frame][trial and cell]`.
    sent: &'n [Vec<f64>],
}

/// The receptors to which such cells lead, each with how many targets there are in all trials.
pub fn receptors(net: &Net) -> Vec<(Both, usize)> {
    let mut all: Vec<(Both, usize)> = Vec::new();
    for (_, route, _) in routes(net) {
        if all.iter().all(|(known, _)| *known != route.arrived) {
            all.push((route.arrived, route.targets));
        }
    }
    all
}

/// What such cells bring, receptor by receptor.
pub fn brought<T: Number>(net: &Net, threads: usize) -> Vec<Brought<'_, T>> {
    let at = |(arrived, targets): (Both, usize)| {
        let none = vec![vec![T::zero(); targets]; net.given.frames];
        let mut there = Brought { arrived, targets, frames: none.clone(), slopes: none, ways: Vec::new() };
        for (number, route, sent) in routes(net).filter(|(_, route, _)| route.arrived == arrived) {
            let carrier = route.tract.carrier();
            for (sum, sent) in there.frames.iter_mut().zip(sent) {
                carrier.bring(&T::nearest(sent), sum, threads);
            }
            there.ways.push(Way { route: number, carrier, sent });
        }
        there
    };
    receptors(net).into_iter().map(at).collect()
}

impl<T: Number> Brought<'_, T> {
    /// Adds the derivatives in what arrives in a step of a frame.
    pub fn add(&mut self, frame: usize, slopes: &[T]) {
        self.slopes[frame].iter_mut().zip(slopes).for_each(|(sum, x)| *sum += *x);
    }

    /// The derivatives in what the edges of its projections carry, each with the number of the projection that learns.
    pub fn of_edges(&self, net: &Net, threads: usize) -> Vec<(usize, Vec<T>)> {
        let own = self.ways.iter().filter(|way| net.routes[way.route].learns);
        own.map(|way| {
            let mut of_edges = vec![T::zero(); net.routes[way.route].tract.edges()];
            for (slopes, sent) in self.slopes.iter().zip(way.sent) {
                way.carrier.back_to_bring(&T::nearest(sent), slopes, &mut of_edges, threads);
            }
            (way.route, of_edges)
        })
        .collect()
    }
}

/// The projections that begin at such cells, with what these send.
fn routes(net: &Net) -> impl Iterator<Item = (usize, &Route, &[Vec<f64>])> {
    net.routes.iter().enumerate().filter_map(|(number, route)| match route.from {
        Origin::Given(sent) => Some((number, route, net.sent[sent].as_slice())),
        Origin::Spiking(_) | Origin::Passing(_) => None,
    })
}
