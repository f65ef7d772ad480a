//! What arrives against sums over all edges in the order in which they add up.

use super::*;

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

/// What arrives in each step at each cell, edge after edge.
fn expected(delivery: &Delivery<f64>, sent: &[Vec<u32>], cells: usize) -> Vec<Vec<f64>> {
    let mut sums = vec![vec![0.0; cells]; sent.len()];
    for (step, sent) in sent.iter().enumerate() {
        for &sender in sent {
            for cell in 0..cells {
                for edge in delivery.edges.offsets[cell] as usize..delivery.edges.offsets[cell + 1] as usize {
                    let then = step + delivery.delays.of(edge) as usize;
                    if delivery.edges.sources[edge] == sender && then < sums.len() {
                        sums[then][cell] += delivery.carried.of(edge);
                    }
                }
            }
        }
    }
    sums
}

fn arrives(degree: u32, delays: PerEdge<u32>, carried: PerEdge<f64>) {
    let (senders, cells) = (23, 37);
    let delivery =
        Delivery { from: 1, event: 2, to: 0, slot: 1, edges: edges(senders, cells, degree), delays, carried };
    let many = |step: u64| (0..senders as u32).filter(move |&cell| below(4, step << 8 | u64::from(cell)) == 0);
    let sent: Vec<Vec<u32>> = (0..50).map(|step| many(step).collect()).collect();
    let mut rows = Rows::new(&delivery, senders, 0..cells.next_multiple_of(LANES), None);
    let mut temp = vec![f64::NAN; cells.next_multiple_of(LANES) * SLOTS];
    for (step, expected) in (0..).zip(expected(&delivery, &sent, cells)) {
        rows.arrive(step, &mut temp, (SLOTS, LANES));
        let slot = |cell: usize| temp[(cell / LANES * SLOTS + 1) * LANES + cell % LANES];
        assert_eq!((0..cells).map(slot).collect::<Vec<_>>(), expected, "step {step}");
        // Others that emit are of no account.
        let of = |space, event| move |&cell: &u32| Sent { space, event, cell };
        let own = &sent[step as usize];
        let all = own.iter().map(of(0, 2)).chain(own.iter().map(of(1, 1))).chain(own.iter().map(of(1, 2)));
        rows.send(step, &all.chain(own.iter().map(of(1, 3))).collect::<Vec<_>>());
    }
}

#[test]
fn what_arrives_is_added_up_in_the_order_of_sending() {
    for degree in [0, 1, 5, 40] {
        let edges = 37 * u64::from(degree);
        let weights = PerEdge::Each((0..edges).map(|edge| 0.1 + f64::from(below(1000, edge)) * 1e-7).collect());
        for carried in [PerEdge::Same(0.1), weights] {
            for delay in [1, 2, 7] {
                arrives(degree, PerEdge::Same(delay), carried.clone());
            }
            for longest in [2, 11, 60] {
                let delays = (0..edges).map(|edge| 1 + below(longest, edge + 99)).collect();
                arrives(degree, PerEdge::Each(delays), carried.clone());
            }
        }
    }
}
