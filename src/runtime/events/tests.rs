//! What arrives against sums over all edges in the order in which they add up.

use super::*;
use std::collections::HashSet;

const LANES: usize = 8;
const SLOTS: usize = 2;

/// A number below `below` that belongs to a counter.
fn below(below: u32, counter: u64) -> u32 {
    (counter.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 33) as u32 % below
}

/// So many edges to each of `cells` cells from any of `senders`.
fn edges(senders: usize, cells: usize, degree: u32) -> Arc<Edges> {
    let offsets: Vec<u32> = (0..=cells as u32).map(|cell| cell * degree).collect();
    let sources = (0..cells as u64 * u64::from(degree)).map(|edge| below(senders as u32, edge)).collect();
    Arc::new(Edges { offsets, sources })
}

/// Who emits in each step: by space and event, in order.
type All = Vec<Vec<Sent>>;

const SPACES: usize = 3;
const CELLS: [usize; SPACES] = [37, 23, 8];
const STEPS: usize = 50;

/// Some cells of every space and event in each step.
fn emitted() -> All {
    let of_step = |step: u64| {
        let of = move |(space, event): (usize, u64)| {
            let cells = 0..CELLS[space] as u32;
            let some =
                move |cell: &u32| below(4, step << 16 | (space as u64) << 12 | event << 8 | u64::from(*cell)) == 0;
            cells.filter(some).map(move |cell| Sent { space, event, cell })
        };
        let mut sent: Vec<Sent> =
            (0..SPACES).flat_map(|space| [0, 2].map(|event| (space, event))).flat_map(of).collect();
        sent.sort_unstable();
        sent
    };
    (0..STEPS as u64).map(of_step).collect()
}

/// What arrives in each step at each place of a sum, edge after edge.
fn expected(deliveries: &[Delivery<f64>], (to, slot): (usize, usize), sent: &All) -> Vec<Vec<f64>> {
    let mut sums = vec![vec![0.0; CELLS[to]]; STEPS];
    for (step, sent) in sent.iter().enumerate() {
        let mut sources: Vec<(usize, u64)> = sent.iter().map(|event| (event.space, event.event)).collect();
        sources.dedup();
        for (from, event) in sources {
            for delivery in deliveries.iter().filter(|d| (d.from, d.event, d.to, d.slot) == (from, event, to, slot)) {
                let senders = sent.iter().filter(|s| (s.space, s.event) == (from, event));
                for (sender, cell) in senders.flat_map(|s| (0..CELLS[to]).map(move |cell| (s.cell, cell))) {
                    for edge in delivery.edges.offsets[cell] as usize..delivery.edges.offsets[cell + 1] as usize {
                        let then = step + delivery.delays.of(edge) as usize;
                        if delivery.edges.sources[edge] == sender && then < STEPS {
                            sums[then][cell] += delivery.carried.of(edge);
                        }
                    }
                }
            }
        }
    }
    sums
}

fn arrive(deliveries: &[Delivery<f64>], sent: &All) {
    let temps = |space: usize| CELLS[space].next_multiple_of(LANES) * SLOTS;
    let begin = |space: usize| (0..space).map(temps).sum();
    let receiver = |space: usize| {
        let places = 0..CELLS[space].next_multiple_of(LANES);
        Receiver { places, begin: begin(space), slots: SLOTS, lanes: LANES, swept: false }
    };
    let mut arrivals = Arrivals::new(&deliveries.iter().collect::<Vec<_>>(), |space| CELLS[space], receiver, |_| None);
    let mut sums: Vec<(usize, usize)> = deliveries.iter().map(|d| (d.to, d.slot)).collect();
    sums.dedup();
    for (to, slot) in sums {
        arrivals.forget();
        let mut all = vec![f64::NAN; begin(SPACES)];
        for (step, expected) in (0..).zip(expected(deliveries, (to, slot), sent)) {
            arrivals.arrive(step, &mut all);
            let arrived = |cell: usize| all[begin(to) + (cell / LANES * SLOTS + slot) * LANES + cell % LANES];
            assert_eq!((0..CELLS[to]).map(arrived).collect::<Vec<_>>(), expected, "step {step}");
            arrivals.send(step, &sent[step as usize]);
        }
    }
}

/// Numbers whose sums tell in which order they were added up.
fn weights(edges: usize, salt: u64) -> PerEdge<f64> {
    PerEdge::Each((0..edges as u64).map(|edge| 0.1 + f64::from(below(1000, edge + salt)) * 1e-7).collect())
}

fn spread(edges: usize, longest: u32, salt: u64) -> PerEdge<u32> {
    PerEdge::Each((0..edges as u64).map(|edge| 1 + below(longest, edge + salt)).collect())
}

#[test]
fn what_arrives_is_added_up_in_the_order_of_sending() {
    let sent = emitted();
    for degree in [0, 1, 5, 40] {
        let count = CELLS[0] * degree as usize;
        let delivery = |delays, carried| Delivery {
            from: 1,
            event: 2,
            to: 0,
            slot: 1,
            edges: edges(CELLS[1], CELLS[0], degree),
            delays,
            carried,
        };
        for carried in [PerEdge::Same(0.1), weights(count, 0)] {
            for delay in [1, 2, 7] {
                arrive(&[delivery(PerEdge::Same(delay), carried.clone())], &sent);
            }
            for longest in [2, 11, 60] {
                arrive(&[delivery(spread(count, longest, 99), carried.clone())], &sent);
            }
        }
    }
}

/// Several deliveries of one sender, to one sum and to several, each with a weight of its own or one for all, in any order.
#[test]
fn what_several_deliveries_bring_is_older_first() {
    let sent = emitted();
    let of = |(number, (from, event, to, slot, own)): (usize, (usize, u64, usize, usize, bool))| {
        let count = CELLS[to] * 6;
        let carried = if own { weights(count, number as u64) } else { PerEdge::Same(0.3 + number as f64 * 1e-8) };
        let edges = edges(CELLS[from], CELLS[to], 6);
        Delivery { from, event, to, slot, edges, delays: spread(count, 9, number as u64), carried }
    };
    let all = [
        (2, 0, 0, 1, true),
        (1, 2, 0, 1, true),
        (1, 2, 0, 1, false),
        (1, 0, 0, 1, false),
        (1, 2, 2, 0, true),
        (1, 2, 0, 0, false),
        (1, 2, 0, 1, true),
        (0, 0, 0, 1, false),
        (0, 0, 2, 0, false),
    ];
    let deliveries: Vec<Delivery<f64>> = all.into_iter().enumerate().map(of).collect();
    arrive(&deliveries, &sent);
    let backward: Vec<Delivery<f64>> = deliveries.into_iter().rev().collect();
    arrive(&backward, &sent);
}

/// More sums than two bytes tell apart: rows in chapters, and rows whose chapters would cost more than they save.
#[test]
fn what_arrives_far_away_is_the_same() {
    const CELLS: usize = 150_000;
    for (senders, longest, near) in [(7, 3, true), (7, 1, true), (40_000, 1, false), (CELLS, 50, true)] {
        let edges = edges(senders, CELLS, 2);
        let carried = weights(2 * CELLS, 5);
        let delays = spread(2 * CELLS, longest, 1);
        let delays = if longest == 1 { PerEdge::Same(1) } else { delays };
        let delivery = Delivery { from: 0, event: 0, to: 1, slot: 0, edges, delays, carried };
        let mut rows = vec![Vec::new(); senders];
        for cell in 0..CELLS {
            let bounds = [0, 1].map(|i| delivery.edges.offsets[cell + i] as usize);
            (bounds[0]..bounds[1]).for_each(|edge| rows[delivery.edges.sources[edge] as usize].push((cell, edge)));
        }
        let receiver = |_| Receiver { places: 0..CELLS, begin: 0, slots: 1, lanes: LANES, swept: false };
        let mut arrivals = Arrivals::new(&[&delivery], |_| senders, receiver, |_| None);
        assert_eq!(matches!(arrivals.rows[0].targets, Targets::Near(_)), near, "{senders} senders");
        let mut sent: Vec<Vec<u32>> = Vec::new();
        let mut all = vec![f64::NAN; CELLS];
        for step in 0..5 {
            arrivals.arrive(step as u64, &mut all);
            let mut expected = vec![0.0; CELLS];
            for (then, cells) in sent.iter().enumerate() {
                for &(cell, edge) in cells.iter().flat_map(|&cell| &rows[cell as usize]) {
                    if then + delivery.delays.of(edge) as usize == step {
                        expected[cell] += delivery.carried.of(edge);
                    }
                }
            }
            assert!(all == expected, "step {step} of {senders} senders");
            sent.push((0..senders as u32).filter(|cell| !(cell + step as u32).is_multiple_of(3)).collect());
            let of = |&cell: &u32| Sent { space: 0, event: 0, cell };
            arrivals.send(step as u64, &sent[step].iter().map(of).collect::<Vec<_>>());
        }
        assert!(all.iter().any(|&sum| sum != 0.0));
    }
}

/// Dense edges that are all alike: counted, in lines that are full and not, more rows than are counted at once, to sums that are 0 before and that are not.
/// With an edge twice, or with a delay of its own, they are listed.
#[test]
fn what_dense_rows_bring_is_added_up_one_by_one() {
    const SENDERS: usize = 300;
    const TO: [(usize, usize); 2] = [(700, 8), (40, 16)];
    let dense = |to: usize, twice: bool| {
        let of = |cell: usize| {
            let some = move |sender: &u32| below(10, (cell * SENDERS) as u64 + u64::from(*sender)) < 4;
            (0..SENDERS as u32).filter(some).flat_map(move |sender| vec![sender; if twice { 2 } else { 1 }])
        };
        let cells: Vec<Vec<u32>> = (0..TO[to].0).map(|cell| of(cell).collect()).collect();
        let ends = cells.iter().scan(0, |end, cell| {
            *end += cell.len() as u32;
            Some(*end)
        });
        let offsets = std::iter::once(0).chain(ends).collect();
        Arc::new(Edges { offsets, sources: cells.concat() })
    };
    let begin = [0, TO[0].0.next_multiple_of(TO[0].1) * SLOTS];
    let receiver = |to: usize| {
        let (cells, lanes) = TO[to];
        Receiver { places: 0..cells.next_multiple_of(lanes), begin: begin[to], slots: SLOTS, lanes, swept: false }
    };
    for (twice, own_delays) in [(false, false), (true, false), (false, true)] {
        let delivery = |event: u64, to: usize, carried: f32, delay: u32| {
            let edges = dense(to, twice);
            let delays = match own_delays {
                true => spread(edges.sources.len(), 3, event),
                false => PerEdge::Same(delay),
            };
            Delivery { from: 0, event, to, slot: 1, edges, delays, carried: PerEdge::Same(carried) }
        };
        let all = [delivery(0, 0, 0.1, 2), delivery(0, 1, 0.1, 2), delivery(1, 0, -0.7, 3), delivery(2, 0, 0.3, 2)];
        let mut arrivals = Arrivals::new(&all.iter().collect::<Vec<_>>(), |_| SENDERS, receiver, |_| None);
        let counted = arrivals.rows.iter().filter(|rows| rows.bits.is_some()).count();
        assert_eq!(counted, if twice || own_delays || !bits::counting_pays() { 0 } else { 3 });
        let mut temps = vec![f32::NAN; begin[1] + TO[1].0.next_multiple_of(TO[1].1) * SLOTS];
        let mut sent: Vec<HashSet<(u64, u32)>> = Vec::new();
        // None, few and nearly all of them emit.
        for (step, some) in
            [(0, 0), (1, 1), (2, 40), (3, 1000), (4, 999), (5, 500), (6, 0), (7, 3), (8, 0), (9, 0), (10, 0)]
        {
            arrivals.arrive(step, &mut temps);
            for (to, &(cells, lanes)) in TO.iter().enumerate() {
                for cell in 0..cells {
                    let mut expected = 0.0;
                    for (then, sent) in (0..).zip(&sent) {
                        for event in 0..3 {
                            for of in all.iter().filter(|of| (of.event, of.to) == (event, to)) {
                                let bounds = [0, 1].map(|i| of.edges.offsets[cell + i] as usize);
                                for edge in bounds[0]..bounds[1] {
                                    let from = (event, of.edges.sources[edge]);
                                    if then + u64::from(of.delays.of(edge)) == step && sent.contains(&from) {
                                        expected += of.carried.of(edge);
                                    }
                                }
                            }
                        }
                    }
                    let arrived = temps[begin[to] + (cell / lanes * SLOTS + 1) * lanes + cell % lanes];
                    assert_eq!(arrived.to_bits(), expected.to_bits(), "step {step}, {to}, {cell}");
                }
            }
            let emits = |&(event, cell): &(u64, u32)| below(1000, step << 20 | event << 10 | u64::from(cell)) < some;
            let all = (0..3).flat_map(|event| (0..SENDERS as u32).map(move |cell| (event, cell)));
            let now: Vec<Sent> = all.filter(emits).map(|(event, cell)| Sent { space: 0, event, cell }).collect();
            arrivals.send(step, &now);
            sent.push(now.iter().map(|sent| (sent.event, sent.cell)).collect());
        }
    }
}
