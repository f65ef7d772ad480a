//! How events travel on devices that work on whole arrays.
//!
//! In come the edges of a [`Delivery`](super::Delivery), their delays and what they carry; out goes a [`DeliveryForm`].
//! Never true here: an event is lost.

use super::device::{DeviceClass, most_edges};
use crate::runtime::edges::Edges;
use crate::runtime::events::PerEdge;
use std::collections::BTreeSet;

/// What is known of a delivery before a run.
#[derive(Debug, Clone, Copy)]
pub struct Traffic<'a> {
    /// Its edges.
    pub edges: &'a Edges,
    /// How many cells emit.
    pub senders: usize,
    /// How many receive.
    pub cells: usize,
    /// How many steps an event takes along each edge, from 1 on.
    pub delays: &'a PerEdge<u32>,
}

/// How events get from those who emit them to those who receive them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DeliveryForm {
    /// There are no edges: nothing ever arrives.
    Nothing,
    /// A loop over those who have emitted, each of whose edges adds what it carries to a ring of sums, one for each step to come and each cell.
    /// Work is proportional to what happens.
    Events(Events),
    /// Who has emitted in the last steps, and in every step the product of that with a matrix for each delay that there is, of what is carried
    /// from each sender to each receiver. Work is the same in all steps: for chips that read a large matrix in the time of a few rounds of a loop.
    Dense(Dense),
    /// Edges that remember have states as cells do. In every step all of them are computed, and where no event comes to an edge it keeps what it
    /// had. Work is the same in all steps.
    Remembered(Remembered),
}

/// Edges that remember.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Remembered {
    /// How many there are.
    pub edges: usize,
    /// Who has sent.
    pub sent: Past,
    /// Who of those that the edges lead to has emitted, of every kind.
    pub told: Vec<Past>,
    /// The most edges of a cell, if what they bring is added up along a table of the edges of every cell, in their order. Otherwise it is scattered: where
    /// few cells have many edges, most of the table would be empty.
    pub rows: Option<usize>,
}

/// Which cells have emitted an event in the present step and those before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Past {
    /// Steps that are remembered: the longest delay and the present one.
    pub steps: usize,
    /// Cells that emit.
    pub cells: usize,
}

/// A loop over those who emit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Events {
    /// Steps of the ring: the longest delay. What is sent so far ahead takes the place of what arrives in the present step.
    pub steps: usize,
    /// Cells that receive.
    pub cells: usize,
    /// Cells that emit.
    pub senders: usize,
    /// How many edges there are.
    pub edges: usize,
    /// How many edges of a sender are looked at in a round of the loop. More than it has add nothing.
    pub width: usize,
    /// Senders are looked for in blocks of so many, a power of two.
    pub block: usize,
    /// Does each edge carry something of its own?
    pub each: bool,
}

/// Products with matrices.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dense {
    /// The delays, in order.
    pub delays: Vec<u32>,
    /// Cells that receive.
    pub cells: usize,
    /// Cells that emit.
    pub senders: usize,
}

/// More elements of the matrices of a delivery than this are too many: half a gigabyte in single precision.
const MOST_DENSE: usize = 1 << 27;

/// So many places for each edge may a table of the edges of every cell have.
const MOST_EMPTY: usize = 4;

/// What a round of the loop takes besides its edges, in edges: 2.5 us, where an edge takes 2.4 ns (a busy Xeon with AVX-512, f64).
const ROUND: usize = 1000;

impl DeliveryForm {
    /// Decides for a delivery and what it carries; the error says what is too large for a device.
    pub fn new(traffic: &Traffic<'_>, carried: &PerEdge<f64>, class: DeviceClass) -> Result<DeliveryForm, String> {
        if traffic.edges.sources.is_empty() {
            return Ok(DeliveryForm::Nothing);
        }
        match class {
            DeviceClass::Cpu => DeliveryForm::events(traffic, carried),
            DeviceClass::Accelerator => {
                let dense =
                    DeliveryForm::dense(traffic).filter(|dense| dense.rows().saturating_mul(dense.cells) <= MOST_DENSE);
                dense.map_or_else(|| DeliveryForm::events(traffic, carried), |dense| Ok(DeliveryForm::Dense(dense)))
            }
        }
    }

    /// Matrices, for a delivery that has edges; none if places among those who emit are too many to be counted in 31 bits.
    pub fn dense(traffic: &Traffic<'_>) -> Option<Dense> {
        let &Traffic { senders, cells, .. } = traffic;
        let delays = match traffic.delays {
            PerEdge::Same(delay) => vec![*delay],
            PerEdge::Each(delays) => delays.iter().copied().collect::<BTreeSet<u32>>().into_iter().collect(),
        };
        let dense = Dense { delays, cells, senders };
        (dense.steps().saturating_mul(2 * senders) <= i32::MAX as usize).then_some(dense)
    }

    /// A loop, for a delivery that has edges.
    pub fn events(traffic: &Traffic<'_>, carried: &PerEdge<f64>) -> Result<DeliveryForm, String> {
        let &Traffic { edges, senders, cells, delays } = traffic;
        let count = edges.sources.len();
        let mut degrees = vec![0usize; senders];
        edges.sources.iter().for_each(|&sender| degrees[sender as usize] += 1);
        let events = Events {
            steps: delays.longest() as usize,
            cells,
            senders,
            edges: count,
            width: width(&degrees),
            block: (senders as f64).sqrt().ceil() as usize,
            each: matches!(carried, PerEdge::Each(_)),
        };
        let events = Events { block: events.block.next_power_of_two(), ..events };
        // Places in the ring are counted in 31 bits, and one turn further; so are the edges.
        let most = i32::MAX as usize;
        if events.steps.saturating_mul(2 * cells) > most {
            return Err(format!("delays of {} steps are too long for {cells} cells", events.steps));
        }
        if count + events.width > most {
            return Err(format!("{count} edges are more than one array of a device takes"));
        }
        Ok(DeliveryForm::Events(events))
    }

    /// Decides for edges that remember and how many steps it takes until each hears of the cell that it leads to, for every kind of what is emitted
    /// there; the error says what is too large for a device.
    pub fn remembered(traffic: &Traffic<'_>, back: &[PerEdge<u32>]) -> Result<DeliveryForm, String> {
        let edges = traffic.edges.sources.len();
        if edges == 0 {
            return Ok(DeliveryForm::Nothing);
        }
        let past = |cells: usize, delays: &PerEdge<u32>| {
            let past = Past { steps: delays.longest() as usize + 1, cells };
            // Places are counted in 31 bits, and one turn further.
            match past.steps.saturating_mul(2 * cells) <= i32::MAX as usize {
                true => Ok(past),
                false => Err(format!("delays of {} steps are too long for {cells} cells", delays.longest())),
            }
        };
        let told = back.iter().map(|delays| past(traffic.cells, delays)).collect::<Result<_, _>>()?;
        let rows = most_edges(traffic.edges);
        let rows = (rows * traffic.cells <= MOST_EMPTY * edges).then_some(rows);
        Ok(DeliveryForm::Remembered(Remembered { edges, sent: past(traffic.senders, traffic.delays)?, told, rows }))
    }

    /// A few words for people.
    pub fn name(&self) -> &'static str {
        match self {
            DeliveryForm::Nothing => "no edges",
            DeliveryForm::Remembered(_) => "all edges in every step",
            DeliveryForm::Events(_) => "a loop over those who emit",
            DeliveryForm::Dense(_) => "matrix products",
        }
    }
}

/// The width with which it takes the least to go through the edges of everybody.
fn width(degrees: &[usize]) -> usize {
    let most = degrees.iter().copied().max().unwrap_or(0).max(1);
    let work =
        |width: usize| -> usize { degrees.iter().map(|degree| degree.div_ceil(width).max(1) * (ROUND + width)).sum() };
    let powers = (0..usize::BITS).map(|power| 1 << power).take_while(|width| *width < most);
    powers.chain([most]).min_by_key(|&width| work(width)).unwrap_or(most)
}

impl Events {
    /// Places of the ring.
    pub fn ring(&self) -> usize {
        self.steps * self.cells
    }

    /// How many blocks of senders there are.
    pub fn blocks(&self) -> usize {
        self.senders.div_ceil(self.block)
    }

    /// Where the edges of each sender begin, and the end of the last; and the edges in that order, which keeps the order of those that
    /// lead from one cell to another.
    fn by_sender(&self, edges: &Edges) -> (Vec<usize>, Vec<usize>) {
        let mut begins = vec![0; self.senders + 1];
        edges.sources.iter().for_each(|&sender| begins[sender as usize + 1] += 1);
        for sender in 0..self.senders {
            begins[sender + 1] += begins[sender];
        }
        let (mut next, mut order) = (begins.clone(), vec![0; edges.sources.len()]);
        for (edge, &sender) in edges.sources.iter().enumerate() {
            let at = &mut next[sender as usize];
            order[*at] = edge;
            *at += 1;
        }
        (begins, order)
    }

    /// Where the edges of each sender begin, and the end of the last.
    pub fn begins(&self, edges: &Edges) -> Vec<i32> {
        self.by_sender(edges).0.into_iter().map(|at| at as i32).collect()
    }

    /// By sender, how far behind the present step of the ring each edge leads; `width` more that are not looked at.
    pub fn targets(&self, edges: &Edges, delays: &PerEdge<u32>) -> Vec<i32> {
        let cells = receivers(edges);
        let order = self.by_sender(edges).1;
        let places =
            order.into_iter().map(|edge| (delays.of(edge) as usize * self.cells + cells[edge] as usize) as i32);
        places.chain(std::iter::repeat_n(0, self.width)).collect()
    }

    /// What each of these edges carries, or what all of them carry.
    pub fn carried(&self, edges: &Edges, carried: &PerEdge<f64>) -> Vec<f64> {
        match carried {
            PerEdge::Same(value) => vec![*value],
            PerEdge::Each(values) => {
                let order = self.by_sender(edges).1;
                order.into_iter().map(|edge| values[edge]).chain(std::iter::repeat_n(0.0, self.width)).collect()
            }
        }
    }
}

impl Dense {
    /// Steps that are remembered: the longest delay. The present one takes the place of the one so long ago.
    pub fn steps(&self) -> usize {
        self.delays.last().map_or(1, |&delay| delay as usize)
    }

    /// Rows of all matrices, one below the other.
    pub fn rows(&self) -> usize {
        self.delays.len() * self.senders
    }

    /// The matrices, `[(delay, sender), cell]`. What several edges carry from one cell to another is added up.
    pub fn matrices(&self, edges: &Edges, delays: &PerEdge<u32>, carried: &PerEdge<f64>) -> Vec<f64> {
        let mut all = vec![0.0; self.rows() * self.cells];
        for (cell, bounds) in edges.offsets.windows(2).enumerate() {
            for edge in bounds[0] as usize..bounds[1] as usize {
                let before = self.delays.partition_point(|&delay| delay < delays.of(edge));
                let row = before * self.senders + edges.sources[edge] as usize;
                all[row * self.cells + cell] += carried.of(edge);
            }
        }
        all
    }
}

impl Past {
    /// Places of the ring: a row of cells for every step that is remembered.
    pub fn ring(&self) -> usize {
        self.steps * self.cells
    }

    /// How far behind the row of the present step it stands in the ring whether the `cell` of an edge has emitted what reaches the edge now.
    pub fn behind(&self, cell: usize, delay: u32) -> i32 {
        ((self.steps - delay as usize) % self.steps * self.cells + cell) as i32
    }
}

impl Remembered {
    /// The edges of every cell, `[row, cell]`; past the last of them one more than there are.
    pub fn incoming(&self, edges: &Edges, rows: usize) -> Vec<i32> {
        let edge = |row: usize, cell: usize| edges.range(cell).nth(row).unwrap_or(self.edges) as i32;
        (0..rows).flat_map(|row| (0..edges.offsets.len() - 1).map(move |cell| edge(row, cell))).collect()
    }
}

/// The cell that each edge leads to.
pub fn receivers(edges: &Edges) -> Vec<u32> {
    let mut cells = vec![0; edges.sources.len()];
    (0..edges.offsets.len() - 1).for_each(|cell| cells[edges.range(cell)].fill(cell as u32));
    cells
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_by_sender_and_keep_their_order() -> Result<(), String> {
        let edges = Edges { offsets: vec![0, 2, 2, 5], sources: vec![1, 0, 1, 1, 0] };
        let (delays, carried) =
            (PerEdge::Each([1, 2, 3, 1, 2].into()), PerEdge::Each([0.5, 1.5, 2.5, 3.5, 4.5].into()));
        let traffic = Traffic { edges: &edges, senders: 3, cells: 3, delays: &delays };
        let DeliveryForm::Events(events) = DeliveryForm::new(&traffic, &carried, DeviceClass::Cpu)? else {
            panic!("a loop")
        };
        assert_eq!((events.steps, events.width, events.block, events.blocks()), (3, 3, 2, 2));
        assert_eq!(events.begins(&edges), [0, 2, 5, 5]);
        assert_eq!(events.targets(&edges, &delays), [6, 8, 3, 11, 5, 0, 0, 0]);
        assert_eq!(events.carried(&edges, &carried), [1.5, 4.5, 0.5, 2.5, 3.5, 0.0, 0.0, 0.0]);
        let DeliveryForm::Dense(dense) = DeliveryForm::new(&traffic, &carried, DeviceClass::Accelerator)? else {
            panic!("few cells")
        };
        assert_eq!((dense.steps(), dense.rows()), (3, 9));
        let matrices = dense.matrices(&edges, &delays, &carried);
        let found =
            matrices.iter().enumerate().filter(|(_, value)| **value != 0.0).map(|(at, value)| (at / 3, at % 3, *value));
        // Delays of 1, 2 and 3 steps, three senders each.
        assert_eq!(found.collect::<Vec<_>>(), [(1, 0, 0.5), (1, 2, 3.5), (3, 0, 1.5), (3, 2, 4.5), (7, 2, 2.5)]);
        Ok(())
    }

    #[test]
    fn a_few_large_senders_do_not_widen_the_rounds_of_all() {
        assert_eq!(width(&[80, 79, 81, 0]), 81);
        assert!(width(&[vec![3; 10_000], vec![100_000]].concat()) < 2000);
        assert_eq!(width(&[0]), 1);
    }

    #[test]
    fn what_is_too_large_is_told() {
        let edges = Edges { offsets: vec![0, 1], sources: vec![0] };
        let traffic = Traffic { edges: &edges, senders: 1, cells: 40_000, delays: &PerEdge::Same(1 << 20) };
        let why = DeliveryForm::new(&traffic, &PerEdge::Same(1.0), DeviceClass::Cpu).err();
        assert_eq!(why.as_deref(), Some("delays of 1048576 steps are too long for 40000 cells"));
    }
}
