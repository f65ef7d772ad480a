//! Edges that remember: events change what they have for themselves.
//!
//! In come a [`Remembering`] and, step by step, who has emitted an event on either side; kernels work on the edges that events reach, and what
//! they answer arrives at the cells.
//! Never true here: an edge does anything in a step in which no event reaches it, or a sum depends on the number of threads.
//!
//! An edge has its place in the row of its sender. Where an event goes is noted when it is sent, and the row is gone through when it arrives: what has
//! happened to an edge on the way counts. Kernels see blocks of edges as they see cells; what they need is put there, and taken back, for every event.

use super::aligned::Aligned;
use super::branches::Branches;
use super::call::{Call, Cells, Order as Numbers, Window};
use super::edges::Edges;
use super::events::{PerEdge, Sent};
use super::lanes::{Scalar, all_finite};
use super::machine::{Bank, Fault, Kernels, Shape};
use super::order::Order;
use super::rows::Links;
use super::series::Series;
use std::ops::Range;
use std::sync::Arc;

/// Edges that remember.
#[derive(Clone, Debug)]
pub struct Remembering<T> {
    /// The number of the space whose cells emit.
    pub from: usize,
    /// The event field: its number among those of the space.
    pub event: u64,
    /// The number of the space whose cells receive.
    pub to: usize,
    /// What is emitted there and changes edges, in this order.
    pub back: Vec<Back>,
    /// The edges, which fit these spaces.
    pub edges: Arc<Edges>,
    /// How many steps an event takes along each edge, from 1 on.
    pub delays: PerEdge<u32>,
    /// What the state fields of an edge begin with.
    pub begin: Vec<PerEdge<T>>,
    /// How the numbers of its edges are laid out for kernels.
    pub shape: Shape,
    /// For each data field the place in the space that receives that it is a copy of.
    pub read: Vec<(Bank, usize)>,
    /// The output fields that are added to a temp slot of the space that receives. The others are recorded.
    pub sums: Vec<(usize, usize)>,
    /// The numbers of the kernels of events that arrive, and of each kind of events of cells that receive.
    pub step: [usize; PASSES],
    /// The number of that of what is recorded.
    pub observe: usize,
}

/// Events of cells that receive, on their way to the edges that lead to them.
#[derive(Clone, Debug)]
pub struct Back {
    /// The event field: its number among those of the space.
    pub event: u64,
    /// How many steps they take along each edge, from [`When::least`] on.
    pub delays: PerEdge<u32>,
    /// When the edges hear of them.
    pub when: When,
}

/// When in a step edges hear of the cells that they lead to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// As it begins, ahead of what arrives along them.
    Ahead,
    /// As it begins, behind that.
    Behind,
    /// As it ends.
    End,
}

impl When {
    /// How many steps what is emitted takes at least.
    pub fn least(self) -> u32 {
        match self {
            When::Ahead | When::Behind => 1,
            When::End => 0,
        }
    }
}

/// How many kinds of events of cells that receive can change edges: their spikes, and what modulates their synapses.
pub const BACK: usize = 2;
/// How many kernels a step has: one of events that arrive, and one of each of these.
pub const PASSES: usize = 1 + BACK;

/// Which of the kernels.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Of {
    Pre,
    /// Of which kind of events.
    Back(usize),
    Observe,
}

/// How many edges a kernel sees at once.
const BATCH: usize = 512;

/// The edges that lead to the cells of one part.
pub struct Remembered<T> {
    what: Arc<Remembering<T>>,
    /// The first place of the part.
    begin: usize,
    /// Of each edge its place in the part.
    places: Vec<u32>,
    /// Of each edge its number.
    numbers: Vec<u32>,
    /// Stretches of a row that take the same time: the delay and the end.
    runs: Vec<(u32, usize)>,
    /// Where the stretches of each sender begin, and the end of the last.
    first_run: Vec<usize>,
    /// The edges that lead to each place, in the order of their numbers: where they begin, and which they are.
    first_back: Vec<usize>,
    back: Vec<u32>,
    /// `[field][edge]`
    state: Vec<Vec<T>>,
    /// `[output field][edge]`: what is recorded.
    output: Vec<Vec<T>>,
    /// `[step % steps]`: stretches of rows that events reach in a step.
    due: Vec<Vec<Range<usize>>>,
    /// `[kind][step % steps]`: edges that are told of their cells in a step.
    due_back: Vec<Vec<Vec<u32>>>,
    blocks: Blocks<T>,
}

/// What a kernel sees.
struct Blocks<T> {
    /// Which edges.
    which: Vec<u32>,
    numbers: Vec<u32>,
    state: Aligned<T>,
    data: Aligned<T>,
    output: Aligned<T>,
}

/// The cells of a part that edges lead to.
pub struct Cell<'a, T> {
    /// Their states.
    pub state: &'a [T],
    /// The numbers per cell that only `init` writes.
    pub cell: &'a [T],
    /// Where sums are.
    pub temp: &'a mut [T],
    /// How all of this is laid out.
    pub shape: Shape,
}

/// What is the same for all kernels of a step.
#[derive(Clone, Copy)]
pub struct Step<'a> {
    /// The numbers that all cells share.
    pub uniforms: &'a [f64],
    /// The functions of time.
    pub series: &'a [Series<'a>],
    /// One step.
    pub window: Window,
}

impl<T: Scalar> Remembered<T> {
    /// The edges that lead to the places of a part.
    pub fn new(
        what: &Arc<Remembering<T>>,
        senders: usize,
        places: Range<usize>,
        order: Option<&Order>,
    ) -> Remembered<T> {
        let Remembering { edges, delays, shape, .. } = &**what;
        let edges_of = |place: usize| {
            let cell = Order::cell(order, place);
            // Past the last cell there are none.
            let bounds = edges.offsets.get(cell..cell + 2).unwrap_or(&[0, 0]);
            bounds[0] as usize..bounds[1] as usize
        };
        // By sender, then by delay, then by place; edges of one pair keep their order.
        let mut all: Vec<(u32, u32, u32, u32)> = Vec::new();
        for place in places.clone() {
            let own = (place - places.start) as u32;
            all.extend(edges_of(place).map(|edge| (edges.sources[edge], delays.of(edge), own, edge as u32)));
        }
        all.sort_unstable();
        let (mut first_run, mut runs): (Vec<usize>, Vec<(u32, usize)>) = (vec![0; senders + 1], Vec::new());
        let mut last = None;
        for (at, &(sender, delay, ..)) in all.iter().enumerate() {
            if last != Some((sender, delay)) {
                runs.push((delay, at));
                last = Some((sender, delay));
            }
            if let Some(run) = runs.last_mut() {
                run.1 = at + 1;
            }
            first_run[sender as usize + 1] = runs.len();
        }
        for sender in 0..senders {
            first_run[sender + 1] = first_run[sender + 1].max(first_run[sender]);
        }
        let mut first_back = vec![0; places.len() + 1];
        let mut back: Vec<(u32, u32, u32)> =
            (0..).zip(&all).map(|(at, &(_, _, place, edge))| (place, edge, at)).collect();
        back.sort_unstable();
        for &(place, ..) in &back {
            first_back[place as usize + 1] += 1;
        }
        for place in 0..places.len() {
            first_back[place + 1] += first_back[place];
        }
        let buffer = |slots: usize| Aligned::new(BATCH.next_multiple_of(shape.lanes) * slots);
        let mut remembered = Remembered {
            what: Arc::clone(what),
            begin: places.start,
            places: all.iter().map(|edge| edge.2).collect(),
            numbers: all.iter().map(|edge| edge.3).collect(),
            runs,
            first_run,
            first_back,
            back: back.into_iter().map(|(_, _, at)| at).collect(),
            state: Vec::new(),
            output: Vec::new(),
            due: vec![Vec::new(); delays.longest() as usize + 1],
            due_back: what.back.iter().map(|back| vec![Vec::new(); back.delays.longest() as usize + 1]).collect(),
            blocks: Blocks {
                which: Vec::with_capacity(BATCH),
                numbers: vec![0; BATCH.next_multiple_of(shape.lanes)],
                state: buffer(shape.state),
                data: buffer(shape.data),
                output: buffer(shape.output),
            },
        };
        remembered.forget();
        remembered
    }

    /// The number of the receiving space.
    pub fn to(&self) -> usize {
        self.what.to
    }

    /// A run begins: nothing is on its way, and edges are what they begin with.
    pub fn forget(&mut self) {
        self.pass();
        let numbers = &self.numbers;
        let begin = |values: &PerEdge<T>| numbers.iter().map(|&edge| values.of(edge as usize)).collect();
        self.state = self.what.begin.iter().map(begin).collect();
        self.output = vec![Vec::new(); self.what.shape.output];
    }

    /// Calls `visit` with the number of each edge and its value of a state, or of what is recorded.
    pub fn visit(&mut self, bank: Bank, slot: usize, mut visit: impl FnMut(usize, &mut T)) -> Result<(), Fault> {
        let values = match bank {
            Bank::State => self.state.get_mut(slot),
            Bank::Output => self.output.get_mut(slot),
            Bank::Cell | Bank::Data | Bank::Temp => None,
        };
        let values = values.ok_or(Fault::Range)?;
        self.numbers.iter().zip(values).for_each(|(&edge, value)| visit(edge as usize, value));
        Ok(())
    }

    /// Are all states finite?
    pub fn all_finite(&self) -> bool {
        self.state.iter().all(|values| all_finite(values))
    }

    /// Events arrive in a step.
    pub fn arrive(&mut self, step: Step<'_>, mut cell: Cell<'_, T>, with: &dyn Kernels<T>) -> Result<(), Fault> {
        for &(_, sum) in self.what.sums.iter().filter(|_| !cell.shape.swept) {
            for block in cell.temp.chunks_mut(cell.shape.temp * cell.shape.lanes) {
                block[sum * cell.shape.lanes..][..cell.shape.lanes].fill(T::default());
            }
        }
        self.tell(When::Ahead, step, &mut cell, with)?;
        let at = (step.window.first_step % self.due.len() as u64) as usize;
        let mut due = std::mem::take(&mut self.due[at]);
        for mut stretch in due.drain(..) {
            while !stretch.is_empty() {
                let free = BATCH - self.blocks.which.len();
                let end = stretch.end.min(stretch.start + free);
                self.blocks.which.extend(stretch.start as u32..end as u32);
                stretch.start = end;
                if self.blocks.which.len() == BATCH {
                    self.work(Of::Pre, step, &mut cell, with)?;
                }
            }
        }
        self.due[at] = due;
        self.work(Of::Pre, step, &mut cell, with)?;
        self.tell(When::Behind, step, &mut cell, with)
    }

    /// Computes what is recorded at the start of a step.
    pub fn observe(&mut self, step: Step<'_>, mut cell: Cell<'_, T>, with: &dyn Kernels<T>) -> Result<(), Fault> {
        let edges = self.numbers.len();
        self.output.iter_mut().for_each(|values| values.resize(edges, T::default()));
        for begin in (0..edges).step_by(BATCH) {
            self.blocks.which.extend(begin as u32..edges.min(begin + BATCH) as u32);
            self.work(Of::Observe, step, &mut cell, with)?;
        }
        Ok(())
    }

    /// Goes on at a step: nothing is on its way.
    pub fn pass(&mut self) {
        self.due.iter_mut().for_each(Vec::clear);
        self.due_back.iter_mut().flatten().for_each(Vec::clear);
    }

    /// What was emitted so many steps before a step, and arrives in it or later, is on its way. `place` knows where in the space a cell stands.
    pub fn resume(&mut self, step: u64, ago: u64, sent: &[Sent], place: impl Fn(usize) -> usize) {
        for event in emitted(sent, self.what.from, self.what.event) {
            self.post(step.wrapping_sub(ago), event.cell as usize, ago);
        }
        self.note(step.wrapping_sub(ago), ago, sent, place);
    }

    /// Notes when edges are told of what their cells have emitted in a step, if it takes so long.
    fn note(&mut self, step: u64, least: u64, sent: &[Sent], place: impl Fn(usize) -> usize) {
        let what = &self.what;
        for (Back { event, delays, .. }, due) in what.back.iter().zip(&mut self.due_back) {
            for event in emitted(sent, what.to, *event) {
                let Some(own) = place(event.cell as usize).checked_sub(self.begin) else { continue };
                let Some(&[begin, end]) = self.first_back.get(own..own + 2) else { continue };
                for &edge in &self.back[begin..end] {
                    let delay = u64::from(delays.of(self.numbers[edge as usize] as usize));
                    if delay >= least {
                        let at = step.wrapping_add(delay) % due.len() as u64;
                        due[at as usize].push(edge);
                    }
                }
            }
        }
    }

    /// Tells edges of their cells what is due then in a step.
    fn tell(&mut self, when: When, step: Step<'_>, cell: &mut Cell<'_, T>, with: &dyn Kernels<T>) -> Result<(), Fault> {
        for kind in 0..self.due_back.len() {
            if self.what.back[kind].when != when {
                continue;
            }
            let at = (step.window.first_step % self.due_back[kind].len() as u64) as usize;
            let mut due = std::mem::take(&mut self.due_back[kind][at]);
            for batch in due.chunks(BATCH) {
                self.blocks.which.extend_from_slice(batch);
                self.work(Of::Back(kind), step, cell, with)?;
            }
            due.clear();
            self.due_back[kind][at] = due;
        }
        Ok(())
    }

    /// Sends an event along the edges of a sender whose delay is so long.
    fn post(&mut self, step: u64, sender: usize, least: u64) {
        let first = self.first_run[sender];
        let mut begin = if first == 0 { 0 } else { self.runs[first - 1].1 };
        for &(delay, end) in &self.runs[first..self.first_run[sender + 1]] {
            let delay = u64::from(delay);
            if delay >= least {
                let due = step.wrapping_add(delay) % self.due.len() as u64;
                self.due[due as usize].push(begin..end);
            }
            begin = end;
        }
    }

    /// Sends what was emitted in a step, in the order of spaces, events and cells; and cells that have emitted tell the edges that lead to them.
    /// `place` knows where in the space a cell stands.
    pub fn send(
        &mut self,
        step: Step<'_>,
        sent: &[Sent],
        mut cell: Cell<'_, T>,
        place: impl Fn(usize) -> usize,
        with: &dyn Kernels<T>,
    ) -> Result<(), Fault> {
        for event in emitted(sent, self.what.from, self.what.event) {
            self.post(step.window.first_step, event.cell as usize, 0);
        }
        self.note(step.window.first_step, 0, sent, place);
        self.tell(When::End, step, &mut cell, with)
    }

    /// Runs a kernel over the edges of the batch, of which no two are the same.
    fn work(&mut self, of: Of, step: Step<'_>, cell: &mut Cell<'_, T>, with: &dyn Kernels<T>) -> Result<(), Fault> {
        let Blocks { which: edges, numbers, state, data, output } = &mut self.blocks;
        if edges.is_empty() {
            return Ok(());
        }
        let (Remembering { shape, read, sums, .. }, lanes) = (&*self.what, self.what.shape.lanes);
        let blocks = edges.len().div_ceil(lanes);
        // Lanes are a power of two, and a division would cost more than the rest.
        let (shift, cell_shift) = (lanes.trailing_zeros(), cell.shape.lanes.trailing_zeros());
        let at = |slot: usize, slots: usize, number: usize| {
            ((((number >> shift) * slots) + slot) << shift) + (number & (lanes - 1))
        };
        let cell_lanes = cell.shape.lanes;
        let of_cell = |place: u32, slot: usize, slots: usize| {
            let place = place as usize;
            ((((place >> cell_shift) * slots) + slot) << cell_shift) + (place & (cell_lanes - 1))
        };
        for (number, &edge) in numbers.iter_mut().zip(edges.iter()) {
            *number = self.numbers[edge as usize];
        }
        for (slot, values) in self.state.iter().enumerate() {
            let state = state.get_mut();
            for (number, &edge) in edges.iter().enumerate() {
                state[at(slot, shape.state, number)] = values[edge as usize];
            }
        }
        for (slot, &(bank, from)) in read.iter().enumerate() {
            let (values, slots) = match bank {
                Bank::Cell => (cell.cell, cell.shape.cell),
                Bank::State | Bank::Output | Bank::Data | Bank::Temp => (cell.state, cell.shape.state),
            };
            let data = data.get_mut();
            for (number, &edge) in edges.iter().enumerate() {
                let place = self.places[edge as usize];
                data[at(slot, shape.data, number)] = values[of_cell(place, from, slots)];
            }
        }
        let call = Call {
            state: &mut state.get_mut()[..blocks * shape.state * lanes],
            cell: &mut [],
            output: &mut output.get_mut()[..blocks * shape.output * lanes],
            data: &data.get()[..blocks * shape.data * lanes],
            temp: &mut [],
            uniforms: step.uniforms,
            series: step.series,
            window: step.window,
            cells: Cells { first: 0, count: edges.len() as u64 },
            spikes: &mut Vec::new(),
            order: Numbers { numbers: &numbers[..blocks * lanes] },
            links: Links { now: &mut [], next: &mut [], edges: &[], far: false, share: &mut |_| true },
            branches: Branches::none(),
        };
        let kernel = match of {
            Of::Pre => self.what.step[0],
            Of::Back(kind) => self.what.step[1 + kind],
            Of::Observe => self.what.observe,
        };
        with.run(kernel, call)?;
        if of == Of::Observe {
            let output = output.get();
            for (slot, values) in self.output.iter_mut().enumerate() {
                for (number, &edge) in edges.iter().enumerate() {
                    values[edge as usize] = output[at(slot, shape.output, number)];
                }
            }
            edges.clear();
            return Ok(());
        }
        for (slot, values) in self.state.iter_mut().enumerate() {
            let state = state.get();
            for (number, &edge) in edges.iter().enumerate() {
                values[edge as usize] = state[at(slot, shape.state, number)];
            }
        }
        // Only what arrives is added.
        let added = if of == Of::Pre { &sums[..] } else { &[] };
        for &(slot, sum) in added {
            let output = output.get();
            for (number, &edge) in edges.iter().enumerate() {
                let place = &mut cell.temp[of_cell(self.places[edge as usize], sum, cell.shape.temp)];
                *place = *place + output[at(slot, shape.output, number)];
            }
        }
        edges.clear();
        Ok(())
    }
}

/// The events of a field of a space.
fn emitted(sent: &[Sent], space: usize, event: u64) -> &[Sent] {
    let own = |sent: &Sent| (sent.space, sent.event).cmp(&(space, event));
    let begin = sent.partition_point(|sent| own(sent).is_lt());
    let end = sent.partition_point(|sent| own(sent).is_le());
    &sent[begin..end]
}
