//! Events on their way: from who emits them along edges, each edge with a delay and something to carry.
//!
//! In come a [`Delivery`] and, step by step, who has emitted an event; out comes, step by step, what arrives at every cell.
//! Never true here: a sum depends on the number of threads, or on how edges stand in rows: what arrives at a cell is added up in the order in which
//! it was sent, of one step by the space, the event, the delivery and the sender.
//!
//! Work is proportional to what happens. The edges of a sender stand by delay, all of them, wherever they lead, in one row. An event goes along its
//! row as time goes on: in each step those edges add what they carry that it has reached. So the sums of one step are all that is written, which a
//! cache holds however long delays are, and what edges carry is read in order. Targets take two bytes: they count from the first sum of a *chapter* of
//! `NEAR` sums, and of one delay the edges stand by chapter. Dense edges that are all alike stand as bits, too: in steps
//! in which much arrives, rows are counted instead.

use super::edges::Edges;
use super::lanes::{Scalar, ask_for};
use super::order::Order;
use super::pages::ask_for_large;
use super::remember::Remembering;
use std::ops::Range;
use std::sync::Arc;

mod bits;
#[cfg(test)]
mod tests;

use bits::Bits;

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

    /// How many steps an event takes at most.
    pub fn longest(&self) -> u64 {
        let all = self.deliveries.iter().map(|delivery| &delivery.delays);
        let back = self.remembering.iter().flat_map(|edges| edges.back.iter().map(|back| &back.delays));
        let all = all.chain(self.remembering.iter().map(|edges| &edges.delays)).chain(back);
        all.map(|delays| u64::from(delays.longest())).max().unwrap_or(0)
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

/// Some edges of a sender, which an event reaches in one step.
#[derive(Clone, Copy, Debug, Default)]
struct Run {
    /// How many steps after those before it in the row, of the first ones after it was sent; 0 where they are reached in the same step.
    wait: u32,
    /// Where they end, counted from the beginning of the row; 0 behind the last ones.
    end: u32,
    /// What their targets count from.
    base: u32,
}

/// The edges of deliveries of one event that lead to the cells of one part.
struct Rows<T> {
    from: usize,
    event: u64,
    /// Where the row of each sender begins, and the end of the last.
    first: Vec<usize>,
    /// Where its runs begin.
    first_run: Vec<usize>,
    runs: Vec<Run>,
    targets: Targets,
    carried: Carried<T>,
    /// The same edges once more, where there may be steps in which counting them pays.
    bits: Option<Bits>,
}

/// The sum that each edge adds to, counted from the base of its run.
enum Targets {
    /// There is a run for every [`NEAR`] sums that a row leads to in one step.
    Near(Vec<u16>),
    Far(Vec<u32>),
}

/// So many sums can be told apart in two bytes.
const NEAR: usize = 1 << 16;

/// What the edges of rows carry.
enum Carried<T> {
    Same(T),
    /// In the order of the targets.
    Each(Vec<T>),
}

/// What of deliveries is known before their edges stand in rows.
struct Draft<'d, T> {
    from: usize,
    event: u64,
    /// With the number of the sum.
    deliveries: Vec<(&'d Delivery<T>, usize)>,
}

/// Where the sums of a space are.
#[derive(Clone, Debug)]
pub struct Receiver {
    /// The places of the part, in whole blocks.
    pub places: Range<usize>,
    /// Where its temps begin among all of the part.
    pub begin: usize,
    /// How many a cell has.
    pub slots: usize,
    /// Of so many cells they stand in a block, slot after slot.
    pub lanes: usize,
    /// Are its sums set to 0 by who reads them?
    pub swept: bool,
}

/// The sums of a temp slot.
#[derive(Clone, Debug)]
struct Sums {
    /// The number of the receiving space.
    to: usize,
    slot: usize,
    receiver: Receiver,
}

impl Sums {
    /// The same as bits tell of them.
    fn plain(&self) -> bits::Sums {
        let Receiver { places, begin, slots, lanes, .. } = &self.receiver;
        bits::Sums { first: begin + self.slot * lanes, lanes: *lanes, stride: slots * lanes, count: places.len() }
    }

    /// The place of each block of them among the temps.
    fn blocks(&self) -> impl Iterator<Item = Range<usize>> + use<> {
        let Receiver { places, begin, slots, lanes, .. } = self.receiver.clone();
        let first = begin + self.slot * lanes;
        (0..places.len() / lanes).map(move |block| first + block * slots * lanes).map(move |at| at..at + lanes)
    }
}

/// An event on its way along its row.
#[derive(Clone, Copy, Debug)]
struct Travel {
    /// The step in which it reaches its next edges, without its upper half.
    due: u32,
    /// Which rows.
    rows: u32,
    /// Whose row.
    sender: u32,
    /// Where the row begins.
    row: usize,
    /// The edges that it reaches then, counted from there.
    edges: [u32; 2],
    /// The run that they are.
    run: usize,
}

/// All that arrives at the cells of one part.
pub struct Arrivals<T> {
    /// In the order in which what is sent in one step is added.
    rows: Vec<Rows<T>>,
    /// Where the sums are among the temps of the part that a step begins with 0.
    sums: Vec<Range<usize>>,
    /// In the order of sending.
    travels: Vec<Travel>,
    /// The senders whose rows are counted together; kept for its room.
    together: Vec<u32>,
}

/// How many travels ahead the edges of one are asked for, and where they go on.
const AHEAD: usize = 6;

/// How many edges of a run are asked for so early; the others, line by line, while those of the travel before it are gone through.
const ASKED: usize = 64;

/// How many near targets are in a line of the cache.
const LINE: usize = 32;

impl<T: Scalar> Arrivals<T> {
    /// What arrives along these deliveries at the sums of each space. `senders` and `order` are those of each space, too.
    pub fn new<'o>(
        deliveries: &[&Delivery<T>],
        senders: impl Fn(usize) -> usize,
        receiver: impl Fn(usize) -> Receiver,
        order: impl Fn(usize) -> Option<&'o Order>,
    ) -> Arrivals<T> {
        let mut sums: Vec<Sums> = Vec::new();
        let mut drafts: Vec<Draft<'_, T>> = Vec::new();
        for &delivery in deliveries {
            let Delivery { from, event, to, slot, .. } = *delivery;
            let known = sums.iter().position(|sum| (sum.to, sum.slot) == (to, slot));
            let sum = known.unwrap_or_else(|| {
                sums.push(Sums { to, slot, receiver: receiver(to) });
                sums.len() - 1
            });
            let same = |draft: &Draft<'_, T>| (draft.from, draft.event) == (from, event);
            // Of one sender, what adds to one sum keeps its order: it stands in rows behind those before it.
            let adds = |draft: &Draft<'_, T>| same(draft) && draft.deliveries.iter().any(|(_, other)| *other == sum);
            let behind = drafts.iter().rposition(adds).map_or(0, |at| at + 1);
            let alike = |(other, _): &(&Delivery<T>, usize)| match (&other.carried, &delivery.carried) {
                (PerEdge::Each(_), PerEdge::Each(_)) => true,
                (PerEdge::Same(a), PerEdge::Same(b)) => a == b,
                (PerEdge::Each(_), PerEdge::Same(_)) | (PerEdge::Same(_), PerEdge::Each(_)) => false,
            };
            let joined = drafts[behind..].iter_mut().find(|draft| same(draft) && draft.deliveries.iter().all(alike));
            match joined {
                Some(draft) => draft.deliveries.push((delivery, sum)),
                None => drafts.push(Draft { from, event, deliveries: vec![(delivery, sum)] }),
            }
        }
        drafts.sort_by_key(|draft| (draft.from, draft.event));
        let rows = drafts.iter().map(|draft| Rows::new(draft, senders(draft.from), &sums, &order)).collect();
        let kept = sums.iter().filter(|sums| !sums.receiver.swept);
        let mut blocks: Vec<Range<usize>> = kept.flat_map(Sums::blocks).collect();
        blocks.sort_unstable_by_key(|block| block.start);
        // Those side by side are cleared at once.
        let mut all: Vec<Range<usize>> = Vec::new();
        for block in blocks {
            match all.last_mut() {
                Some(last) if last.end == block.start => last.end = block.end,
                _ => all.push(block),
            }
        }
        Arrivals { rows, sums: all, travels: Vec::new(), together: Vec::new() }
    }

    /// A run begins: nothing is on its way.
    pub fn forget(&mut self) {
        self.travels.clear();
    }

    /// What was due before a step has arrived already.
    pub fn pass(&mut self, step: u64) {
        let Arrivals { rows, travels, .. } = self;
        travels.retain_mut(|travel| {
            let rows = &rows[travel.rows as usize];
            while (travel.due.wrapping_sub(step as u32) as i32) < 0 {
                if !rows.go_on(travel) {
                    return false;
                }
            }
            true
        });
    }

    /// Adds up what arrives in a step, in the temps of the part.
    pub fn arrive(&mut self, step: u64, temps: &mut [T]) {
        let Arrivals { rows, sums, travels, together } = self;
        sums.iter().for_each(|sums| temps[sums.clone()].fill(T::default()));
        let now = step as u32;
        let (mut stay, mut next, mut fresh) = (0, 0, true);
        // Travels before this one go by themselves.
        let mut apart = 0;
        while let Some(&(mut travel)) = travels.get(next) {
            if let Some(soon) = travels.get(next + AHEAD).filter(|soon| soon.due == now) {
                rows[soon.rows as usize].ask(soon);
            }
            let stays = travel.due != now || {
                let own = &rows[travel.rows as usize];
                let first = std::mem::replace(&mut fresh, false);
                if let Some(bits) = own.bits.as_ref().filter(|_| next >= apart) {
                    let with = |other: &&Travel| (other.due, other.rows) == (now, travel.rows);
                    together.clear();
                    together.extend(travels[next..].iter().take_while(with).map(|travel| travel.sender));
                    apart = next + together.len();
                    if let (true, Carried::Same(value)) = (bits.pay(together.len()), &own.carried) {
                        bits.add(together, *value, first, temps);
                        next = apart;
                        continue;
                    }
                }
                let soon = travels.get(next + 1).filter(|soon| soon.due == now).copied();
                own.bring(&mut travel, temps, |edges| {
                    if let Some(soon) = &soon {
                        rows[soon.rows as usize].ask_further(soon, ASKED + edges);
                    }
                })
            };
            next += 1;
            if stays {
                travels[stay] = travel;
                stay += 1;
            }
        }
        travels.truncate(stay);
    }

    /// Sends what was emitted in a step, in the order of spaces, events and cells.
    pub fn send(&mut self, step: u64, sent: &[Sent]) {
        for (number, rows) in self.rows.iter().enumerate() {
            let own = |event: &Sent| (event.space, event.event).cmp(&(rows.from, rows.event));
            let begin = sent.partition_point(|event| own(event).is_lt());
            let end = sent.partition_point(|event| own(event).is_le());
            for event in &sent[begin..end] {
                let (row, run) = (rows.first[event.cell as usize], rows.first_run[event.cell as usize]);
                let Run { wait, end, .. } = rows.runs[run];
                if end > 0 {
                    let due = (step as u32).wrapping_add(wait);
                    let (rows, sender) = (number as u32, event.cell);
                    self.travels.push(Travel { due, rows, sender, row, edges: [0, end], run });
                }
            }
        }
    }
}

impl<T> Draft<'_, T> {
    /// How many chapters the targets of so many edges are in, and room for them: near ones, where the runs that this takes need less than it saves.
    fn targets(&self, sums: &[Sums], senders: usize, edges: usize) -> (u32, Targets) {
        let own = || self.deliveries.iter().map(|&(delivery, sum)| (delivery, &sums[sum]));
        let end = own().flat_map(|(_, sums)| sums.blocks().last()).map(|block| block.end).max().unwrap_or(0);
        let longest = own().map(|(delivery, _)| delivery.delays.longest()).max().unwrap_or(0);
        let delays = if own().all(|(delivery, _)| matches!(delivery.delays, PerEdge::Same(_))) {
            self.deliveries.len()
        } else {
            longest as usize
        };
        let chapters = end.div_ceil(NEAR).max(1);
        let runs = |chapters: usize| senders.saturating_mul(chapters).saturating_mul(delays).min(edges);
        let more = (runs(chapters) - runs(1)).saturating_mul(size_of::<Run>());
        let keys = (u64::from(longest) + 1) * chapters as u64;
        if more <= edges * (size_of::<u32>() - size_of::<u16>()) && u32::try_from(keys).is_ok() {
            (chapters as u32, Targets::Near(vec![0; edges]))
        } else {
            (1, Targets::Far(vec![0; edges]))
        }
    }

    /// So many edges of so many senders as bits; none where they are not alike, where targets take less memory, or where nothing of it pays.
    fn bits<'o>(
        &self,
        senders: usize,
        edges: usize,
        sums: &[Sums],
        order: impl Fn(usize) -> Option<&'o Order>,
    ) -> Option<Bits> {
        let first = self.deliveries[0].0;
        let (PerEdge::Same(_), PerEdge::Same(delay)) = (&first.carried, &first.delays) else { return None };
        let as_long = |(other, _): &(&Delivery<T>, usize)| other.delays == PerEdge::Same(*delay);
        let own: Vec<bits::Sums> = self.deliveries.iter().map(|&(_, sum)| sums[sum].plain()).collect();
        let needed = own.iter().map(bits::Sums::bits).sum::<usize>().saturating_mul(senders);
        let dense = needed <= edges.saturating_mul(u16::BITS as usize);
        if !dense || !bits::counting_pays() || !self.deliveries.iter().all(as_long) || !own.iter().all(bits::Sums::fit)
        {
            return None;
        }
        let (mut bits, mut once) = (Bits::new(&own, senders, edges), true);
        self.visit(sums, order, |(kind, delivery), edge, (number, _)| {
            once &= bits.join(delivery.edges.sources[edge] as usize, (kind, number));
        });
        once.then_some(bits)
    }

    /// Tells of every edge to places of the part, cell after cell, the delivery, its own number, and the sum that it adds to: which one of the delivery's, and
    /// its place.
    fn visit<'o>(
        &self,
        sums: &[Sums],
        order: impl Fn(usize) -> Option<&'o Order>,
        mut tell: impl FnMut((usize, &Delivery<T>), usize, (usize, u32)),
    ) {
        for (kind, &(delivery, sum)) in self.deliveries.iter().enumerate() {
            let sums = &sums[sum];
            let order = order(delivery.to);
            for (number, (place, target)) in sums.receiver.places.clone().zip(sums.blocks().flatten()).enumerate() {
                let cell = Order::cell(order, place);
                // Past the last cell there are none.
                let bounds = delivery.edges.offsets.get(cell..cell + 2).unwrap_or(&[0, 0]);
                for edge in bounds[0] as usize..bounds[1] as usize {
                    tell((kind, delivery), edge, (number, target as u32));
                }
            }
        }
    }
}

/// The order of the edges of a row by a key, which keeps that of equal ones.
#[derive(Default)]
struct ByKey {
    /// Each key that there is, in order, and how many edges have it or a lower one.
    runs: Vec<(u32, u32)>,
    /// For every edge its new place.
    places: Vec<u32>,
    /// By key, where the next one with it goes.
    next: Vec<u32>,
}

/// Keys below this are counted; others are compared.
const COUNTED: u32 = 1 << 12;

impl ByKey {
    fn sort(&mut self, keys: &[u32]) {
        let ByKey { runs, places, next } = self;
        runs.clear();
        places.clear();
        let highest = keys.iter().copied().max().unwrap_or(0);
        if highest > COUNTED {
            let mut by_key: Vec<u32> = (0..keys.len() as u32).collect();
            by_key.sort_by_key(|&edge| keys[edge as usize]);
            places.resize(keys.len(), 0);
            for (place, &edge) in (0..).zip(&by_key) {
                places[edge as usize] = place;
                match runs.last_mut() {
                    Some((key, end)) if *key == keys[edge as usize] => *end = place + 1,
                    _ => runs.push((keys[edge as usize], place + 1)),
                }
            }
            return;
        }
        next.clear();
        next.resize(highest as usize + 2, 0);
        keys.iter().for_each(|&key| next[key as usize + 1] += 1);
        for key in 0..=highest as usize {
            next[key + 1] += next[key];
            if next[key + 1] > next[key] {
                runs.push((key as u32, next[key + 1]));
            }
        }
        places.extend(keys.iter().map(|&key| {
            let place = &mut next[key as usize];
            *place += 1;
            *place - 1
        }));
    }

    fn reorder<T: Copy>(&self, values: &mut [T], before: &mut Vec<T>) {
        before.clear();
        before.extend_from_slice(values);
        for (&place, &value) in self.places.iter().zip(&*before) {
            values[place as usize] = value;
        }
    }
}

impl<T: Scalar> Rows<T> {
    fn new<'o>(
        draft: &Draft<'_, T>,
        senders: usize,
        sums: &[Sums],
        order: impl Fn(usize) -> Option<&'o Order>,
    ) -> Rows<T> {
        let mut first = vec![0; senders + 1];
        draft.visit(sums, &order, |(_, delivery), edge, _| first[delivery.edges.sources[edge] as usize + 1] += 1);
        for sender in 0..senders {
            first[sender + 1] += first[sender];
        }
        let count = first[senders];
        let each = matches!(draft.deliveries[0].0.carried, PerEdge::Each(_));
        let (chapters, mut targets) = draft.targets(sums, senders, count);
        // The edges of a row stand by delay, and of one delay by the chapter of their target.
        let (mut next, mut keys) = (first.clone(), vec![0; count]);
        let mut carried = vec![T::default(); if each { count } else { 0 }];
        // Rows are read wherever their sender's edges happen to stand.
        targets.ask_for_large();
        ask_for_large(&mut keys);
        ask_for_large(&mut carried);
        draft.visit(sums, &order, |(_, delivery), edge, (_, target)| {
            let at = &mut next[delivery.edges.sources[edge] as usize];
            keys[*at] = delivery.delays.of(edge) * chapters + targets.set(*at, target);
            if each {
                carried[*at] = delivery.carried.of(edge);
            }
            *at += 1;
        });
        let (mut first_run, mut runs) = (Vec::with_capacity(senders), Vec::new());
        let (mut by_key, mut row, mut values) = (ByKey::default(), Spare::default(), Vec::new());
        for bounds in first.windows(2) {
            let range = bounds[0]..bounds[1];
            by_key.sort(&keys[range.clone()]);
            targets.reorder(range.clone(), &by_key, &mut row);
            if each {
                by_key.reorder(&mut carried[range], &mut values);
            }
            first_run.push(runs.len());
            let mut before = 0;
            for &(key, end) in &by_key.runs {
                let delay = key / chapters;
                runs.push(Run { wait: delay - before, end, base: key % chapters * NEAR as u32 });
                before = delay;
            }
            runs.push(Run::default());
        }
        let carried = match &draft.deliveries[0].0.carried {
            PerEdge::Same(value) => Carried::Same(*value),
            PerEdge::Each(_) => Carried::Each(carried),
        };
        let bits = draft.bits(senders, count, sums, &order);
        Rows { from: draft.from, event: draft.event, first, first_run, runs, targets, carried, bits }
    }

    /// Sends a travel to the next run of its row, if there is one.
    #[inline(always)]
    fn go_on(&self, travel: &mut Travel) -> bool {
        travel.run += 1;
        let Run { wait, end, .. } = self.runs[travel.run];
        travel.due = travel.due.wrapping_add(wait);
        travel.edges = [travel.edges[1], end];
        end > 0
    }

    /// Adds what edges carry that a travel reaches in the step in which it is due, and sends it on. Tells `ask` now and then how many they were. False if it
    /// has come to its end.
    #[inline(always)]
    fn bring(&self, travel: &mut Travel, temps: &mut [T], ask: impl Fn(usize)) -> bool {
        let (now, begin) = (travel.due, travel.edges[0]);
        loop {
            let done = (travel.edges[0] - begin) as usize;
            self.add(travel, temps, |edges| ask(done + edges));
            if !self.go_on(travel) {
                return false;
            }
            if travel.due != now {
                return true;
            }
        }
    }

    /// Asks for what a travel needs in this step.
    fn ask(&self, travel: &Travel) {
        let begin = travel.row + travel.edges[0] as usize;
        let len = ((travel.edges[1] - travel.edges[0]) as usize).min(ASKED);
        // They need not begin where a line does: the last of them may lie in one more.
        for (begin, len) in [(begin, len), (begin + len - 1, 1)] {
            self.targets.ask_for(begin, len);
            self.carried.ask_for(begin, len);
        }
        ask_for(&self.runs, travel.run, 1);
    }

    /// Asks for a line of the edges that a travel reaches in this step, from one of them on.
    #[inline(always)]
    fn ask_further(&self, travel: &Travel, from: usize) {
        if from < (travel.edges[1] - travel.edges[0]) as usize {
            let at = travel.row + travel.edges[0] as usize + from;
            self.targets.ask_for(at, LINE);
            self.carried.ask_for(at, LINE);
        }
    }

    /// Adds what the edges carry that a travel has reached. Tells `ask` at every line how far it is.
    #[inline(always)]
    fn add(&self, travel: &Travel, sums: &mut [T], ask: impl Fn(usize)) {
        let range = travel.row + travel.edges[0] as usize..travel.row + travel.edges[1] as usize;
        let sums = &mut sums[self.runs[travel.run].base as usize..];
        match (&self.targets, &self.carried) {
            (Targets::Near(targets), Carried::Same(value)) => add_same(sums, &targets[range], *value, ask),
            (Targets::Far(targets), Carried::Same(value)) => add_same(sums, &targets[range], *value, ask),
            (Targets::Near(targets), Carried::Each(values)) => {
                add_each(sums, &targets[range.clone()], &values[range], ask);
            }
            (Targets::Far(targets), Carried::Each(values)) => {
                add_each(sums, &targets[range.clone()], &values[range], ask);
            }
        }
    }
}

impl<T> Carried<T> {
    #[inline(always)]
    fn ask_for(&self, begin: usize, len: usize) {
        if let Carried::Each(values) = self {
            ask_for(values, begin, len);
        }
    }
}

/// Adds a value to sums, and tells at every line how far it is. Edges come eight at a time: so many need one test for the end.
#[inline(always)]
fn add_same<T: Scalar, I: Copy + Into<u32>>(sums: &mut [T], targets: &[I], value: T, ask: impl Fn(usize)) {
    for (line, targets) in targets.chunks(LINE).enumerate() {
        ask(line * LINE);
        let (eights, rest) = targets.as_chunks::<8>();
        eights.iter().for_each(|eight| eight.iter().for_each(|&target| add(sums, target, value)));
        rest.iter().for_each(|&target| add(sums, target, value));
    }
}

/// The same with a value for each.
#[inline(always)]
fn add_each<T: Scalar, I: Copy + Into<u32>>(sums: &mut [T], targets: &[I], values: &[T], ask: impl Fn(usize)) {
    for (line, (targets, values)) in targets.chunks(LINE).zip(values.chunks(LINE)).enumerate() {
        ask(line * LINE);
        let ((eights, rest), (of_eights, of_rest)) = (targets.as_chunks::<8>(), values.as_chunks::<8>());
        for (eight, values) in eights.iter().zip(of_eights) {
            eight.iter().zip(values).for_each(|(&target, &value)| add(sums, target, value));
        }
        rest.iter().zip(of_rest).for_each(|(&target, &value)| add(sums, target, value));
    }
}

#[inline(always)]
fn add<T: Scalar, I: Into<u32>>(sums: &mut [T], target: I, value: T) {
    let sum = &mut sums[target.into() as usize];
    *sum = *sum + value;
}

impl Targets {
    /// Sets the target of an edge. Gives the number of its chapter.
    fn set(&mut self, edge: usize, target: u32) -> u32 {
        match self {
            Targets::Near(targets) => {
                targets[edge] = target as u16;
                target / NEAR as u32
            }
            Targets::Far(targets) => {
                targets[edge] = target;
                0
            }
        }
    }

    fn reorder(&mut self, row: Range<usize>, by_key: &ByKey, spare: &mut Spare) {
        match self {
            Targets::Near(targets) => by_key.reorder(&mut targets[row], &mut spare.near),
            Targets::Far(targets) => by_key.reorder(&mut targets[row], &mut spare.far),
        }
    }

    fn ask_for_large(&mut self) {
        match self {
            Targets::Near(targets) => ask_for_large(targets),
            Targets::Far(targets) => ask_for_large(targets),
        }
    }

    #[inline(always)]
    fn ask_for(&self, begin: usize, len: usize) {
        match self {
            Targets::Near(targets) => ask_for(targets, begin, len),
            Targets::Far(targets) => ask_for(targets, begin, len),
        }
    }
}

/// Room for the targets of a row.
#[derive(Default)]
struct Spare {
    near: Vec<u16>,
    far: Vec<u32>,
}
