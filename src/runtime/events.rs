//! Events on their way: from who emits them along edges, each edge with a delay and something to carry.
//!
//! In come a [`Delivery`] and, step by step, who has emitted an event; out comes, step by step, what arrives at every cell.
//! Never true here: a sum depends on the number of threads: what arrives at a cell is added up in the order in which it was sent, and of one
//! step by the number of the sender.
//!
//! Work is proportional to what happens: an event goes through the row of its sender once, and adds what it carries to a ring of sums, one for
//! each step to come and each cell.

use super::edges::Edges;
use super::lanes::{Scalar, ask_for};
use super::order::Order;
use super::remember::Remembering;
use std::ops::Range;
use std::sync::Arc;

#[cfg(test)]
mod tests;

/// Edges that events go along.
#[derive(Clone, Debug)]
pub struct Delivery<T> {
    /// The number of the space whose cells emit.
    pub from: usize,
    /// The event field: its number among those of the space.
    pub event: u64,
    /// The number of the space whose cells receive.
    pub to: usize,
    /// The temp slot of the space that what arrives is added up in.
    pub slot: usize,
    /// The edges, which fit these spaces.
    pub edges: Arc<Edges>,
    /// How many steps an event takes along each edge, from 1 on.
    pub delays: PerEdge<u32>,
    /// What it carries.
    pub carried: PerEdge<T>,
}

/// All that events do.
#[derive(Clone, Debug)]
pub struct Traffic<T> {
    /// Edges along which they bring what is known before the run.
    pub deliveries: Vec<Delivery<T>>,
    /// Edges that remember.
    pub remembering: Vec<Arc<Remembering<T>>>,
}

impl<T> Default for Traffic<T> {
    fn default() -> Traffic<T> {
        Traffic { deliveries: Vec::new(), remembering: Vec::new() }
    }
}

impl<T> Traffic<T> {
    /// Is there none?
    pub fn is_empty(&self) -> bool {
        self.deliveries.is_empty() && self.remembering.is_empty()
    }
}

/// A value of every edge.
#[derive(Clone, Debug, PartialEq)]
pub enum PerEdge<T> {
    /// The same for all.
    Same(T),
    /// In the order of the edges.
    Each(Arc<[T]>),
}

impl<T: Copy> PerEdge<T> {
    /// The value of an edge.
    pub fn of(&self, edge: usize) -> T {
        match self {
            PerEdge::Same(value) => *value,
            PerEdge::Each(values) => values[edge],
        }
    }
}

impl PerEdge<u32> {
    /// The longest delay.
    pub fn longest(&self) -> u32 {
        match self {
            PerEdge::Same(delay) => *delay,
            PerEdge::Each(delays) => delays.iter().copied().max().unwrap_or(1),
        }
    }
}

/// An event as parts tell each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Sent {
    /// The number of the space.
    pub space: usize,
    /// The event field: its number among those of the space.
    pub event: u64,
    /// The number of the cell.
    pub cell: u32,
}

/// The rows of a delivery that lead to the cells of one part, and what is on its way to them.
pub struct Rows<T> {
    from: usize,
    event: u64,
    /// The number of the receiving space.
    pub to: usize,
    slot: usize,
    /// Where the row of each sender begins, and the end of the last.
    first: Vec<usize>,
    /// Delay and place of each edge: `delay * width + place`.
    targets: Vec<u32>,
    /// In the order of `targets`.
    carried: PerEdge<T>,
    /// `[step % steps][place]`
    ring: Vec<T>,
    /// The longest delay and one.
    steps: usize,
    /// Places of the part, in whole blocks.
    width: usize,
}

impl<T: Scalar> Rows<T> {
    /// The rows that lead to the places of a part.
    pub fn new(delivery: &Delivery<T>, senders: usize, places: Range<usize>, order: Option<&Order>) -> Rows<T> {
        let Delivery { edges, delays, .. } = delivery;
        let width = places.len();
        let edges_of = |place: usize| {
            let cell = Order::cell(order, place);
            // Past the last cell there are none.
            let bounds = edges.offsets.get(cell..cell + 2).unwrap_or(&[0, 0]);
            bounds[0] as usize..bounds[1] as usize
        };
        let mut first = vec![0; senders + 1];
        for edge in places.clone().flat_map(edges_of) {
            first[edges.sources[edge] as usize + 1] += 1;
        }
        for sender in 0..senders {
            first[sender + 1] += first[sender];
        }
        let count = first[senders];
        let (mut next, mut targets, mut which) = (first.clone(), vec![0; count], vec![0; count]);
        for (place, edge) in places.clone().flat_map(|place| edges_of(place).map(move |edge| (place, edge))) {
            let at = &mut next[edges.sources[edge] as usize];
            targets[*at] = delays.of(edge) * width as u32 + (place - places.start) as u32;
            which[*at] = edge as u32;
            *at += 1;
        }
        let mut row = Vec::new();
        for bounds in first.windows(2) {
            let range = bounds[0]..bounds[1];
            row.clear();
            row.extend(targets[range.clone()].iter().copied().zip(which[range.clone()].iter().copied()));
            // Edges of one pair keep their order.
            row.sort_by_key(|&(target, _)| target);
            for (at, &(target, edge)) in range.zip(&row) {
                (targets[at], which[at]) = (target, edge);
            }
        }
        let carried = match &delivery.carried {
            PerEdge::Same(value) => PerEdge::Same(*value),
            PerEdge::Each(values) => PerEdge::Each(which.iter().map(|&edge| values[edge as usize]).collect()),
        };
        let steps = delays.longest() as usize + 1;
        Rows {
            from: delivery.from,
            event: delivery.event,
            to: delivery.to,
            slot: delivery.slot,
            first,
            targets,
            carried,
            ring: vec![T::default(); steps * width],
            steps,
            width,
        }
    }

    /// A run begins: nothing is on its way.
    pub fn forget(&mut self) {
        self.ring.fill(T::default());
    }

    /// Puts what arrives in a step where the kernel reads it: in a slot of blocks of `lanes` cells and so many slots.
    pub fn arrive(&mut self, step: u64, temp: &mut [T], (slots, lanes): (usize, usize)) {
        let at = (step % self.steps as u64) as usize * self.width;
        let arrived = &mut self.ring[at..at + self.width];
        for (block, sums) in temp.chunks_mut(slots * lanes).zip(arrived.chunks_mut(lanes)) {
            for (place, sum) in block[self.slot * lanes..][..lanes].iter_mut().zip(sums) {
                *place = std::mem::take(sum);
            }
        }
    }

    /// Sends what was emitted in a step, in the order of spaces, events and cells.
    pub fn send(&mut self, step: u64, sent: &[Sent]) {
        let own = |event: &Sent| (event.space, event.event).cmp(&(self.from, self.event));
        let begin = sent.partition_point(|event| own(event).is_lt());
        let end = sent.partition_point(|event| own(event).is_le());
        let base = (step % self.steps as u64) as usize * self.width;
        let left = self.ring.len() - base;
        // Targets count from the step: those below `left` stand behind `base`, the others from the beginning of the ring on.
        let (again, behind) = self.ring.split_at_mut(base);
        let row = |event: &Sent| self.first[event.cell as usize]..self.first[event.cell as usize + 1];
        let sent = &sent[begin..end];
        for (at, event) in sent.iter().enumerate() {
            // While a row is gone through, the next one is asked for, and where the one after that is.
            if let Some(soon) = sent.get(at + 2) {
                ask_for(&self.first, soon.cell as usize, 2);
            }
            let next = sent.get(at + 1).map_or(0..0, row);
            let range = row(event);
            let targets = &self.targets[range.clone()];
            let (first, last) = targets.split_at(cut(targets, left));
            let ask = |at: usize| ask_for(&self.targets[next.clone()], at, 1);
            match &self.carried {
                PerEdge::Same(value) => {
                    add(behind, first, 0, std::iter::repeat(*value), ask);
                    add(again, last, left, std::iter::repeat(*value), |at| ask(first.len() + at));
                }
                PerEdge::Each(values) => {
                    let ask = |at: usize| {
                        ask(at);
                        ask_for(&values[next.clone()], at, LINE);
                    };
                    let (of_first, of_last) = values[range].split_at(first.len());
                    add(behind, first, 0, of_first.iter().copied(), ask);
                    add(again, last, left, of_last.iter().copied(), |at| ask(first.len() + at));
                }
            }
        }
    }
}

/// How many targets are in a line of the cache.
const LINE: usize = 16;

/// How many targets of a row are below a bound. Most rows are on one side of it, where delays are alike.
fn cut(targets: &[u32], bound: usize) -> usize {
    match targets {
        [.., last] if (*last as usize) < bound => targets.len(),
        [first, ..] if *first as usize >= bound => 0,
        _ => targets.partition_point(|&target| (target as usize) < bound),
    }
}

/// Adds what is carried to sums, which begin with that of the target `begin`. Tells `ask` at every line how far it is.
#[inline(always)]
fn add<T: Scalar>(
    sums: &mut [T],
    targets: &[u32],
    begin: usize,
    mut carried: impl Iterator<Item = T>,
    ask: impl Fn(usize),
) {
    for (line, targets) in targets.chunks(LINE).enumerate() {
        ask(line * LINE);
        for (&target, value) in targets.iter().zip(carried.by_ref()) {
            let sum = &mut sums[target as usize - begin];
            *sum = *sum + value;
        }
    }
}
