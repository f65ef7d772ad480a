//! A model in memory: its buffers, cut into parts, and the threads that run kernels over them.
//!
//! In come the shapes of the spaces, their sizes and something that runs a kernel; out go states, outputs and spikes.
//! Each part owns the buffers of a contiguous range of blocks of every space, so that no two threads share a number.
//! Never true here: a name or a unit, or that a result depends on the number of parts.
//!
//! Spaces that edges join take their steps together: in every pass of a step each part works through its blocks of each of these spaces, then
//! the parts meet and see what was stored. The kernel of a space that stands alone takes many steps by itself.

use super::aligned::Aligned;
use super::branched::{Branched, Own, Turn, passes, unit};
use super::branches::Branches;
use super::call::{Call, Cells, Order, Spike, Window};
use super::edges::{CACHED, Meeting, Relation, Shared as SharedField, Table, Targets, View};
use super::events::{Arrivals, Delivery, Receiver, Sent, Traffic};
use super::lanes::{Scalar, all_finite};
use super::order::Order as CellOrder;
use super::remember::{Cell as EdgesCell, PASSES, Remembered, Remembering, Step as EdgesStep};
use super::rows::{Links, Rows};
use super::series::{Sample, Series};
use super::threads::Pool;
use std::fmt;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

/// What a kernel is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Sets cell parameters and initial states.
    Init,
    /// Advances the states.
    Step,
    /// Computes the outputs.
    Observe,
}

/// How the numbers of a space are laid out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Cells per block.
    pub lanes: usize,
    /// State fields.
    pub state: usize,
    /// Cell fields.
    pub cell: usize,
    /// Output fields.
    pub output: usize,
    /// Data fields.
    pub data: usize,
    /// Temp fields that live in memory.
    pub temp: usize,
    /// Do kernels set the temp fields to 0 again that arrivals are added up in, once they have read them?
    pub swept: bool,
    /// How many steps one call of the step kernel may advance.
    pub window: u32,
}

/// What a machine must know of a space.
#[derive(Clone, Debug)]
pub struct Space {
    /// How its numbers are laid out.
    pub shape: Shape,
    /// How many cells it has.
    pub size: usize,
    /// Where they stand in memory; none: in the order of their numbers. In whole blocks of the shape's lanes.
    pub order: Option<CellOrder>,
    /// What edges read of it.
    pub shared: Vec<SharedField>,
}

/// Spaces that take their steps together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// Their numbers.
    pub spaces: Vec<usize>,
    /// In how many passes a step is done.
    pub passes: usize,
    /// In how many passes what is recorded is computed, if anything of it comes along edges; else 0.
    pub observed: usize,
    /// Do events go from cell to cell?
    pub events: bool,
    /// Branched cells among them: numbers in [`Model::branched`].
    pub branched: Vec<usize>,
}

impl Group {
    /// Does the kernel of its only space take many steps by itself?
    fn is_alone(&self) -> bool {
        self.spaces.len() == 1 && self.passes == 1 && self.observed <= 1 && !self.events && self.branched.is_empty()
    }
}

/// All that a machine is made of.
#[derive(Clone, Debug, Default)]
pub struct Model {
    /// The spaces.
    pub spaces: Vec<Space>,
    /// What connects their cells.
    pub relations: Vec<Relation>,
    /// Which of them take their steps together: each is in one group, and both ends of a relation are in the same.
    pub groups: Vec<Group>,
    /// Which of their cells have branches.
    pub branched: Vec<Arc<Branched>>,
}

/// The number of a kernel: those of a space stand together, `init`, the passes of a step, `observe`; every space has as many places as
/// the group with the most passes needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Numbering {
    /// The most passes of a step.
    pub passes: usize,
    /// The most passes of `init` and `observe`.
    pub others: usize,
}

impl Numbering {
    /// The places of the kernels of these groups; edges that remember have [three](super::remember::PASSES) of a step.
    pub fn new(groups: &[Group], branched: &[Arc<Branched>], remembers: bool) -> Numbering {
        let of_branches = branched.iter().map(|branched| passes(&branched.tasks) as usize);
        let passes = groups.iter().map(|group| group.passes).chain(of_branches).max().unwrap_or(1);
        let passes = if remembers { passes.max(PASSES) } else { passes };
        let of_branches = if branched.is_empty() { 1 } else { passes };
        let others = groups.iter().map(|group| group.observed).chain([of_branches]).max().unwrap_or(1);
        Numbering { passes, others }
    }

    /// The kernel of a space for a role and a pass.
    pub fn kernel(self, space: usize, role: Role, pass: usize) -> usize {
        let Numbering { passes, others } = self;
        let place = match role {
            Role::Init => pass,
            Role::Step => others + pass,
            Role::Observe => others + passes + pass,
        };
        (2 * others + passes) * space + place
    }
}

/// Which of a space's buffers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bank {
    /// The states.
    State,
    /// The numbers per cell that only `init` writes.
    Cell,
    /// The recorded quantities.
    Output,
    /// The numbers per cell that were loaded from files.
    Data,
    /// What a pass of a step stores for a later one, or for edges.
    Temp,
}

/// Where the numbers of a field are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The number of the space.
    pub space: usize,
    /// The buffer.
    pub bank: Bank,
    /// The field's number in the buffer.
    pub slot: usize,
}

/// Runs kernels.
pub trait Kernels<T>: Send + Sync + 'static {
    /// Runs the kernel of a [`Numbering`] once; one that does not exist does nothing. A kernel that shares values with other parts runs in
    /// all of them at once.
    fn run(&self, kernel: usize, call: Call<'_, T>) -> Result<(), Fault>;

    /// Lets kernels take turns, step by step: each sees what those before it have stored in `flat`, the numbers that maps reach. The window of the calls is
    /// the same. Only cells with branches ask for it.
    fn take_turns(&self, turns: &[Turn], calls: &mut [Call<'_, T>], flat: &mut [T]) -> Result<(), Fault>
    where
        T: Scalar,
    {
        let Some(window) = calls.first().map(|call| call.window) else { return Ok(()) };
        for first_step in window.first_step..window.first_step + window.steps {
            for turn in turns {
                match *turn {
                    Turn::Clear { start, end } => flat[start..end].fill(T::default()),
                    Turn::Kernel { kernel, call } => self.run(kernel, calls[call].turn(first_step, flat))?,
                }
            }
        }
        Ok(())
    }
}

/// Something that the machine cannot do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// There are not as many numbers as cells: wanted, given.
    Length(usize, usize),
    /// There is no such field, cell or uniform.
    Range,
    /// A kernel failed: a bug of the compiler that made it.
    Kernel(String),
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::Length(wanted, given) => {
                write!(f, "{wanted} values are needed, one per cell, but there are {given}")
            }
            Fault::Range => f.write_str("there is no such field or cell"),
            Fault::Kernel(why) => write!(f, "a kernel failed ({why}); this is a bug of the compiler"),
        }
    }
}

impl std::error::Error for Fault {}

/// A spike and the space of its cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SpaceSpike {
    /// The step in which it happened.
    pub step: u64,
    /// The number of the space.
    pub space: usize,
    /// The event field: its number among those of the space.
    pub event: u64,
    /// The cell.
    pub cell: u64,
}

/// A model in memory.
pub struct Machine<T> {
    shapes: Vec<Shape>,
    /// Per space the first block of each part, and the number of blocks.
    cuts: Vec<Vec<usize>>,
    sizes: Vec<usize>,
    shared: Arc<Shared<T>>,
    pool: Pool,
}

struct Shared<T> {
    kernels: Arc<dyn Kernels<T>>,
    numbering: Numbering,
    inputs: RwLock<Inputs>,
    parts: Vec<Mutex<Part<T>>>,
    shapes: Vec<Shape>,
    groups: Vec<Group>,
    branched: Vec<Arc<Branched>>,
    /// Where the parts meet: one for each group.
    meetings: Vec<Meeting<T>>,
    /// How many steps an event takes at most.
    longest: u64,
    /// For each space the relations that lead to it, and where each comes from.
    edges: Vec<Vec<(usize, usize)>>,
    /// In which order the cells of each space stand in memory; none: in that of their numbers.
    orders: Vec<Option<CellOrder>>,
}

/// What every part reads.
struct Inputs {
    uniforms: Vec<f64>,
    series: Vec<Vec<Sample>>,
    role: Role,
    window: Window,
    /// Whether states have changed but by steps, so that what edges carry is out of date.
    stale: bool,
}

struct Part<T> {
    spaces: Vec<Slice<T>>,
    /// What is added up within a step, of one space after the other.
    temps: Aligned<T>,
    /// What it sees of each space.
    views: Vec<View<T>>,
    /// The edges of each relation that lead to its cells.
    tables: Vec<Table<T>>,
    /// Of every group, the events on their way to its cells.
    arrivals: Vec<Arrivals<T>>,
    /// And those that remember.
    remembered: Vec<Remembered<T>>,
    /// The branched cells of each kind.
    branches: Vec<Own<T>>,
    /// What was sent lately, with the step, as long as the longest delay at least.
    lately: Vec<(u64, Sent)>,
    fault: Option<Fault>,
}

/// The blocks of one space in one part.
struct Slice<T> {
    cells: Cells,
    state: Aligned<T>,
    cell: Aligned<T>,
    output: Aligned<T>,
    data: Aligned<T>,
    /// Its own among the temps of the part.
    temp: Range<usize>,
    spikes: Vec<Spike>,
}

/// A slice and its temps.
struct Working<'a, T> {
    slice: &'a mut Slice<T>,
    temp: &'a mut [T],
}

/// The slices of a part, with the temps of each.
fn apart<'a, T>(slices: &'a mut [Slice<T>], mut temps: &'a mut [T]) -> impl Iterator<Item = Working<'a, T>> {
    let mut begin = 0;
    slices.iter_mut().map(move |slice| {
        let Range { start, end } = slice.temp;
        let (before, rest) = std::mem::take(&mut temps).split_at_mut(end - begin);
        let temp = &mut before[start - begin..];
        (temps, begin) = (rest, end);
        Working { slice, temp }
    })
}

/// How many branched cells fill whole blocks.
fn unit_of(branched: &Branched, lanes: impl Fn(usize) -> usize) -> usize {
    unit(branched.side.width, branched.each.iter().map(|&(space, _)| lanes(space)))
}

impl<T: Scalar> Slice<T> {
    /// With its own among the temps of the part.
    fn with<'a>(&'a mut self, temps: &'a mut [T]) -> Working<'a, T> {
        let temp = &mut temps[self.temp.clone()];
        Working { slice: self, temp }
    }

    /// What its states and the numbers that steps read take.
    fn bytes(&self) -> usize {
        let banks = [&self.state, &self.cell, &self.data].map(|bank| size_of_val(bank.get()));
        banks.iter().sum::<usize>() + self.temp.len() * size_of::<T>()
    }

    fn bank<'a>(&'a self, bank: Bank, temps: &'a [T]) -> &'a [T] {
        match bank {
            Bank::State => self.state.get(),
            Bank::Cell => self.cell.get(),
            Bank::Output => self.output.get(),
            Bank::Data => self.data.get(),
            Bank::Temp => &temps[self.temp.clone()],
        }
    }
}

impl Shape {
    fn slots(&self, bank: Bank) -> usize {
        match bank {
            Bank::State => self.state,
            Bank::Cell => self.cell,
            Bank::Output => self.output,
            Bank::Data => self.data,
            Bank::Temp => self.temp,
        }
    }
}

/// Even if a thread panicked with the lock in hand: the pool has reported that already.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<T: Scalar + Send + Sync + 'static> Machine<T> {
    /// A machine with all numbers zero. It uses at most `threads` threads, and only so many that each has `min_cells` cells.
    pub fn new(
        model: Model,
        traffic: Arc<Traffic<T>>,
        uniforms: Vec<f64>,
        series: Vec<Vec<Sample>>,
        kernels: Arc<dyn Kernels<T>>,
        threads: usize,
        min_cells: usize,
    ) -> Machine<T> {
        let Model { spaces, relations, groups, branched } = &model;
        let cells: usize = spaces.iter().map(|space| space.size).sum();
        let parts = threads.min(cells / min_cells.max(1)).max(1);
        let cut = |(at, space): (usize, &Space)| {
            let (lanes, targets) = (space.shape.lanes, Targets::new(relations, at, space.order.as_ref()));
            targets.cuts(space.size.div_ceil(lanes), lanes, parts)
        };
        let mut cuts: Vec<Vec<usize>> = spaces.iter().enumerate().map(cut).collect();
        for branched in branched {
            // Whole cells, and whole blocks.
            let lanes = |space: usize| spaces[space].shape.lanes;
            let (cells, unit) = (branched.side.cells, unit_of(branched, lanes));
            let part = |part: usize| (cells.div_ceil(unit) * part / parts * unit).min(cells);
            for &(space, each) in &branched.each {
                cuts[space] = (0..=parts).map(|at| (part(at) * each).div_ceil(lanes(space))).collect();
            }
        }
        let made: Vec<Part<T>> = (0..parts).map(|part| Part::new(&model, &traffic, &cuts, part)).collect();
        let meeting = |group: &Group| {
            let parts = made.iter().map(|part| group.spaces.iter().map(|&space| &part.views[space]).collect());
            Meeting::new(&parts.collect::<Vec<Vec<&View<T>>>>())
        };
        let meetings = groups.iter().map(meeting).collect();
        let shapes: Vec<Shape> = spaces.iter().map(|space| space.shape).collect();
        let leads_to = |space: usize| {
            let edges = relations.iter().enumerate().filter(|(_, relation)| relation.to == space);
            edges.map(|(number, relation)| (number, relation.from)).collect()
        };
        let shared = Arc::new(Shared {
            kernels: Arc::clone(&kernels),
            numbering: Numbering::new(groups, branched, !traffic.remembering.is_empty()),
            inputs: RwLock::new(Inputs {
                uniforms: uniforms.clone(),
                series: series.clone(),
                role: Role::Init,
                window: Window { first_step: 0, steps: 0, seed: 0 },
                stale: true,
            }),
            parts: made.into_iter().map(Mutex::new).collect(),
            shapes: shapes.clone(),
            groups: groups.clone(),
            branched: branched.clone(),
            meetings,
            longest: traffic.longest(),
            edges: (0..spaces.len()).map(leads_to).collect(),
            orders: spaces.iter().map(|space| space.order.clone()).collect(),
        });
        let job = Arc::clone(&shared);
        let pool = Pool::new(parts, move |worker| job.run(worker));
        if pool.threads() < parts && !(relations.is_empty() && traffic.is_empty()) {
            // The system gave fewer threads, and parts that wait for each other cannot run one after the other.
            return Machine::new(model, traffic, uniforms, series, kernels, pool.threads(), min_cells);
        }
        let sizes = spaces.iter().map(|space| space.size).collect();
        Machine { shapes, cuts, sizes, shared, pool }
    }

    /// How many threads it uses.
    pub fn threads(&self) -> usize {
        self.shared.parts.len()
    }

    /// How many cells a space has.
    pub fn size(&self, space: usize) -> Option<usize> {
        self.sizes.get(space).copied()
    }

    fn inputs(&self, change: impl FnOnce(&mut Inputs)) {
        change(&mut self.shared.inputs.write().unwrap_or_else(PoisonError::into_inner));
    }

    /// Sets the seed of all random numbers.
    pub fn set_seed(&mut self, seed: u64) {
        self.inputs(|inputs| inputs.window.seed = seed);
    }

    /// Sets a number that all cells share.
    pub fn set_uniform(&mut self, index: usize, value: f64) -> Result<(), Fault> {
        let mut set = Err(Fault::Range);
        self.inputs(|inputs| {
            if let Some(uniform) = inputs.uniforms.get_mut(index) {
                *uniform = value;
                set = Ok(());
            }
        });
        set
    }

    /// Sets a function of time; `super::series::check` says which samples make one.
    pub fn set_series(&mut self, index: usize, series: Vec<Sample>) -> Result<(), Fault> {
        let mut set = Err(Fault::Range);
        self.inputs(|inputs| {
            if let Some(place) = inputs.series.get_mut(index) {
                *place = series;
                set = Ok(());
            }
        });
        set
    }

    /// Runs the kernels of a role, of all spaces, in all parts.
    fn run(&mut self, role: Role, first_step: u64, steps: u64) -> Result<(), Fault> {
        self.inputs(|inputs| {
            inputs.role = role;
            inputs.window.first_step = first_step;
            inputs.window.steps = steps;
        });
        self.shared.meetings.iter().for_each(|meeting| meeting.barrier.mend());
        let fine = self.pool.run();
        // Each part keeps its own fault; the first is as good as any.
        let faults: Vec<Fault> = self.shared.parts.iter().filter_map(|part| lock(part).fault.take()).collect();
        let result = match faults.into_iter().next() {
            Some(fault) => Err(fault),
            None if fine => Ok(()),
            None => Err(Fault::Kernel("a thread panicked".to_string())),
        };
        let stale = match role {
            Role::Init => true,
            Role::Step => result.is_err(),
            Role::Observe => return result,
        };
        self.inputs(|inputs| inputs.stale = stale);
        result
    }

    /// Sets cell parameters and initial states.
    pub fn init(&mut self) -> Result<(), Fault> {
        self.run(Role::Init, 0, 1)
    }

    /// Advances all spaces and appends the spikes, in no order.
    pub fn step(&mut self, first_step: u64, steps: u64, spikes: &mut Vec<SpaceSpike>) -> Result<(), Fault> {
        let window = u64::from(self.shapes.iter().map(|shape| shape.window).min().unwrap_or(1).max(1));
        let end = first_step + steps;
        let mut at = first_step;
        while at < end {
            let steps = window.min(end - at);
            self.run(Role::Step, at, steps)?;
            at += steps;
        }
        for part in &self.shared.parts {
            for (space, slice) in lock(part).spaces.iter_mut().enumerate() {
                let order = self.shared.orders[space].as_ref();
                let number = |place: u64| order.map_or(place, |order| u64::from(order.cells()[place as usize]));
                let of_space =
                    |Spike { step, event, cell: place }: Spike| SpaceSpike { step, space, event, cell: number(place) };
                spikes.extend(slice.spikes.drain(..).map(of_space));
            }
        }
        Ok(())
    }

    /// What may not have arrived everywhere before a step, the next one: with how many steps ago it was sent, by space, event and cell.
    pub fn under_way(&self, step: u64) -> Vec<(u64, Sent)> {
        let mut all = Vec::new();
        for part in &self.shared.parts {
            all.extend(lock(part).lately.iter().map(|&(sent, event)| (step.wrapping_sub(sent), event)));
        }
        all.retain(|(ago, _)| *ago <= self.shared.longest);
        // Every part has heard of all.
        all.sort_unstable_by(|(a, one), (b, other)| b.cmp(a).then(one.cmp(other)));
        all.dedup();
        all
    }

    /// Goes on at a step, when this was sent so many steps before it, in whatever order.
    ///
    /// # Errors
    /// If there is no such cell.
    pub fn resume(&mut self, step: u64, under_way: &[(u64, Sent)]) -> Result<(), Fault> {
        if under_way.iter().any(|(_, sent)| self.sizes.get(sent.space).is_none_or(|&size| sent.cell as usize >= size)) {
            return Err(Fault::Range);
        }
        let mut all = under_way.to_vec();
        all.sort_unstable_by(|(a, one), (b, other)| b.cmp(a).then(one.cmp(other)));
        for part in &self.shared.parts {
            let Part { arrivals, remembered, lately, .. } = &mut *lock(part);
            arrivals.iter_mut().for_each(Arrivals::forget);
            remembered.iter_mut().for_each(Remembered::pass);
            *lately = all.iter().map(|&(ago, sent)| (step.wrapping_sub(ago), sent)).collect();
            for of_step in all.chunk_by(|(a, _), (b, _)| a == b) {
                let ago = of_step[0].0;
                let sent: Vec<Sent> = of_step.iter().map(|&(_, sent)| sent).collect();
                arrivals.iter_mut().for_each(|arrivals| arrivals.send(step.wrapping_sub(ago), &sent));
                // Edges that remember do not hear of what was sent before the first step.
                if ago <= step {
                    for edges in &mut *remembered {
                        let order = self.shared.orders[edges.to()].as_ref();
                        edges.resume(step, ago, &sent, |cell| CellOrder::place(order, cell as u32) as usize);
                    }
                }
            }
            arrivals.iter_mut().for_each(|arrivals| arrivals.pass(step));
        }
        Ok(())
    }

    /// Computes the outputs at the start of a step.
    pub fn observe(&mut self, step: u64) -> Result<(), Fault> {
        self.run(Role::Observe, step, 1)
    }

    /// Calls `visit` with the numbers of a field of the cells of a range, in their order: as many at once as stand side by side, with the first cell.
    fn visit(&self, at: Place, cells: Range<usize>, mut visit: impl FnMut(usize, &mut [T])) -> Result<(), Fault> {
        let shape = self.shapes.get(at.space).ok_or(Fault::Range)?;
        let (lanes, slots, size) = (shape.lanes, shape.slots(at.bank), self.sizes[at.space]);
        if at.slot >= slots || cells.start > cells.end || cells.end > size.next_multiple_of(lanes) {
            return Err(Fault::Range);
        }
        let order = self.shared.orders[at.space].as_ref().map(CellOrder::places);
        let mut parts: Vec<MutexGuard<'_, Part<T>>> = self.shared.parts.iter().map(lock).collect();
        let mut banks: Vec<&mut [T]> = parts.iter_mut().map(|part| part.bank_mut(at.space, at.bank)).collect();
        let cuts = &self.cuts[at.space];
        let mut part = 0;
        // Without an order the cells of a block stand side by side.
        let mut next = cells.start;
        let (mut block, mut lane) = (next / lanes, next % lanes);
        while order.is_none() && next < cells.end {
            while block >= cuts[part + 1] {
                part += 1;
            }
            let begin = ((block - cuts[part]) * slots + at.slot) * lanes + lane;
            let end = cells.end.min(next + lanes - lane);
            visit(next, &mut banks[part][begin..begin + end - next]);
            (next, block, lane) = (end, block + 1, 0);
        }
        for cell in next..cells.end {
            let place = order.and_then(|places| places.get(cell)).map_or(cell, |&place| place as usize);
            let (block, lane) = (place / lanes, place % lanes);
            while block < cuts[part] {
                part -= 1;
            }
            while block >= cuts[part + 1] {
                part += 1;
            }
            let at = ((block - cuts[part]) * slots + at.slot) * lanes + lane;
            visit(cell, std::slice::from_mut(&mut banks[part][at]));
        }
        Ok(())
    }

    /// Appends the numbers of a field for a range of cells.
    pub fn read<N: Scalar>(&self, place: Place, cells: Range<usize>, out: &mut Vec<N>) -> Result<(), Fault> {
        if cells.end > self.size(place.space).ok_or(Fault::Range)? {
            return Err(Fault::Range);
        }
        out.reserve(cells.len());
        self.visit(place, cells, |_, numbers| out.extend(numbers.iter().map(|number| N::from_f64(number.to_f64()))))
    }

    /// Calls `visit` with the number of a field that the maps of branched cells reach, of each element of a range.
    fn visit_branches(
        &self,
        (space, field): (usize, usize),
        elements: Range<usize>,
        mut visit: impl FnMut(usize, &mut T),
    ) -> Result<(), Fault> {
        let of = |branched: &Arc<Branched>| branched.each.iter().any(|(other, _)| *other == space);
        let kind = self.shared.branched.iter().position(of).ok_or(Fault::Range)?;
        let order = self.shared.orders[space].as_ref();
        let (lanes, cuts) = (self.shapes[space].lanes, &self.cuts[space]);
        let mut parts: Vec<MutexGuard<'_, Part<T>>> = self.shared.parts.iter().map(lock).collect();
        for element in elements {
            let place = CellOrder::place(order, element as u32) as usize;
            let part = cuts.partition_point(|&cut| cut * lanes <= place) - 1;
            let own = parts.get_mut(part).and_then(|part| part.branches.get_mut(kind)).ok_or(Fault::Range)?;
            visit(element, own.value(field, place - cuts[part] * lanes));
        }
        Ok(())
    }

    /// Appends the numbers of such a field, given with its space, for a range of elements.
    pub fn read_branches<N: Scalar>(
        &self,
        at: (usize, usize),
        elements: Range<usize>,
        out: &mut Vec<N>,
    ) -> Result<(), Fault> {
        if elements.end > self.size(at.0).ok_or(Fault::Range)? {
            return Err(Fault::Range);
        }
        self.visit_branches(at, elements, |_, number| out.push(N::from_f64(number.to_f64())))
    }

    /// Overwrites such a field of all elements.
    pub fn write_branches<N: Scalar>(&mut self, at: (usize, usize), values: &[N]) -> Result<(), Fault> {
        let size = self.size(at.0).ok_or(Fault::Range)?;
        if values.len() != size {
            return Err(Fault::Length(size, values.len()));
        }
        self.visit_branches(at, 0..size, |element, number| *number = T::from_f64(values[element].to_f64()))
    }

    /// Appends the numbers of a field of some edges that remember: states, or what is recorded. `place` has the number of their kind as its space.
    pub fn read_edges<N: Scalar>(&self, place: Place, edges: Range<usize>, out: &mut Vec<N>) -> Result<(), Fault> {
        let begin = out.len();
        out.resize(begin + edges.len(), N::default());
        let numbers = &mut out[begin..];
        self.visit_edges(place, |edge, number| {
            if edges.contains(&edge) {
                numbers[edge - edges.start] = N::from_f64(number.to_f64());
            }
        })
    }

    /// Overwrites a state field of all edges of a kind that remember.
    pub fn write_edges<N: Scalar>(&mut self, place: Place, values: &[N]) -> Result<(), Fault> {
        self.visit_edges(place, |edge, number| *number = T::from_f64(values[edge].to_f64()))
    }

    fn visit_edges(&self, place: Place, mut visit: impl FnMut(usize, &mut T)) -> Result<(), Fault> {
        self.shared.parts.iter().try_for_each(|part| {
            let mut part = lock(part);
            part.remembered.get_mut(place.space).ok_or(Fault::Range)?.visit(place.bank, place.slot, &mut visit)
        })
    }

    /// Overwrites a field of all cells, and the lanes past the last cell with the last number.
    pub fn write<N: Scalar>(&mut self, place: Place, values: &[N]) -> Result<(), Fault> {
        self.inputs(|inputs| inputs.stale = true);
        let size = self.size(place.space).ok_or(Fault::Range)?;
        if values.len() != size {
            return Err(Fault::Length(size, values.len()));
        }
        let end = size.next_multiple_of(self.shapes[place.space].lanes);
        self.visit(place, 0..end, |first, numbers| {
            let given = &values[first.min(size)..(first + numbers.len()).min(size)];
            let (own, behind) = numbers.split_at_mut(given.len());
            own.iter_mut().zip(given).for_each(|(number, x)| *number = T::from_f64(x.to_f64()));
            // What fills a block up is like the last cell.
            behind.fill(T::from_f64(values[size - 1].to_f64()));
        })
    }

    /// Is every state of every cell finite?
    pub fn all_finite(&self) -> bool {
        let of_space = |(shape, slice): (&Shape, &Slice<T>)| {
            let states = slice.state.get();
            let lanes = shape.lanes;
            let whole = slice.cells.count as usize / lanes * lanes * shape.state;
            let rest = slice.cells.count as usize % lanes;
            all_finite(&states[..whole]) && states[whole..].chunks(lanes).all(|slot| all_finite(&slot[..rest]))
        };
        self.shared.parts.iter().all(|part| {
            let part = lock(part);
            self.shapes.iter().zip(&part.spaces).all(of_space)
                && part.remembered.iter().all(Remembered::all_finite)
                && part.branches.iter().all(Own::all_finite)
        })
    }
}

impl<T: Scalar> Part<T> {
    /// A part, given with the first blocks of every part of every space.
    fn new(model: &Model, traffic: &Traffic<T>, cuts: &[Vec<usize>], part: usize) -> Part<T> {
        let Model { spaces, relations, groups, branched } = model;
        // Of each space they begin where a line of the cache begins.
        let mut temps = 0;
        let slice = |(Space { shape, size, .. }, cuts): (&Space, &Vec<usize>)| {
            let blocks = cuts[part + 1] - cuts[part];
            let first = cuts[part] * shape.lanes;
            let count = (cuts[part + 1] * shape.lanes).min(*size) - first.min(*size);
            let buffer = |slots: usize| Aligned::new(blocks * slots * shape.lanes);
            let temp = temps..temps + blocks * shape.temp * shape.lanes;
            temps = temp.end.next_multiple_of(16);
            Slice {
                cells: Cells { first: first as u64, count: count as u64 },
                state: buffer(shape.state),
                cell: buffer(shape.cell),
                output: buffer(shape.output),
                data: buffer(shape.data),
                temp,
                spikes: Vec::new(),
            }
        };
        let spaces_of_part: Vec<Slice<T>> = spaces.iter().zip(cuts).map(slice).collect();
        let temps = Aligned::new(temps);
        let order = |space: usize| spaces[space].order.as_ref();
        let table = |relation: &Relation| {
            let cuts = &cuts[relation.to];
            let orders = [relation.to, relation.from].map(order);
            Table::new(relation, orders, cuts[part]..cuts[part + 1], spaces[relation.to].shape.lanes)
        };
        let tables: Vec<Table<T>> = relations.iter().map(table).collect();
        let view = |(at, space): (usize, &Space)| {
            let lanes = space.shape.lanes;
            let all: Vec<Range<usize>> = cuts[at].windows(2).map(|cut| cut[0] * lanes..cut[1] * lanes).collect();
            let from = tables.iter().zip(relations).filter(|(_, relation)| relation.from == at);
            let alone = groups.iter().any(|group| group.is_alone() && group.spaces[0] == at);
            View::new(&space.shared, part, (&all, lanes), from.map(|(table, _)| table), alone)
        };
        let views = spaces.iter().enumerate().map(view).collect();
        let places = |space: usize| {
            let lanes = spaces[space].shape.lanes;
            cuts[space][part] * lanes..cuts[space][part + 1] * lanes
        };
        let arrivals = |group: &Group| {
            let own = traffic.deliveries.iter().filter(|delivery| group.spaces.contains(&delivery.to));
            let own: Vec<&Delivery<T>> = own.collect();
            let receiver = |space: usize| {
                let Shape { temp: slots, lanes, swept, .. } = spaces[space].shape;
                Receiver { places: places(space), begin: spaces_of_part[space].temp.start, slots, lanes, swept }
            };
            Arrivals::new(&own, |space| spaces[space].size, receiver, order)
        };
        let remembered = |r: &Arc<Remembering<T>>| Remembered::new(r, spaces[r.from].size, places(r.to), order(r.to));
        let arrivals = groups.iter().map(arrivals).collect();
        let remembered = traffic.remembering.iter().map(remembered).collect();
        let branches = |of: &Arc<Branched>| {
            let lanes = |space: usize| spaces[space].shape.lanes;
            // Every space is cut at the same cells.
            let (space, each) = of.each.first().copied().unwrap_or_default();
            let cell = |cut: usize| (cut * lanes(space) / each.max(1)).min(of.side.cells);
            let cells = cell(cuts[space][part])..cell(cuts[space][part + 1]);
            let bytes = of.each.iter().map(|&(space, _)| spaces_of_part[space].bytes()).sum();
            Own::new(of, cells, lanes, bytes)
        };
        let branches = branched.iter().map(branches).collect();
        Part {
            spaces: spaces_of_part,
            temps,
            views,
            tables,
            arrivals,
            remembered,
            branches,
            lately: Vec::new(),
            fault: None,
        }
    }

    /// The numbers of all slots of a bank.
    fn bank_mut(&mut self, space: usize, bank: Bank) -> &mut [T] {
        let Part { spaces, temps, .. } = self;
        let Working { slice, temp } = spaces[space].with(temps.get_mut());
        match bank {
            Bank::State => slice.state.get_mut(),
            Bank::Cell => slice.cell.get_mut(),
            Bank::Output => slice.output.get_mut(),
            Bank::Data => slice.data.get_mut(),
            Bank::Temp => temp,
        }
    }

    /// The bytes that a step of a group goes through, about.
    fn bytes(&self, group: &Group, edges: &[Vec<(usize, usize)>]) -> usize {
        let of_space = |&space: &usize| {
            let slice = &self.spaces[space];
            let tables: usize = edges[space].iter().map(|&(number, _)| self.tables[number].bytes()).sum();
            tables + self.views[space].bytes() + size_of_val(slice.state.get()) + size_of_val(slice.cell.get())
        };
        group.spaces.iter().map(of_space).sum()
    }

    /// Sees of a space what its own cells have in some shared fields.
    fn look(&mut self, space: usize, shape: &Shape, which: impl Fn(&SharedField) -> bool) {
        let Part { spaces, temps, views, .. } = self;
        let (slice, temps) = (&spaces[space], temps.get());
        views[space].take(which, |bank| (slice.bank(bank, temps), shape.slots(bank)));
    }
}

/// What is the same for all kernels of a run.
struct Surroundings<'a> {
    inputs: &'a Inputs,
    series: &'a [Series<'a>],
}

impl<T: Scalar> Shared<T> {
    /// One part of one run, on whatever thread.
    fn run(&self, part: usize) {
        let inputs = self.inputs.read().unwrap_or_else(PoisonError::into_inner);
        let series: Vec<Series> = inputs.series.iter().map(|samples| Series::new(samples)).collect();
        let surroundings = Surroundings { inputs: &inputs, series: &series };
        let mut leaving = Leaving { meetings: &self.meetings, early: true };
        let own = &mut *lock(&self.parts[part]);
        if inputs.role == Role::Init {
            own.arrivals.iter_mut().for_each(Arrivals::forget);
            own.remembered.iter_mut().for_each(Remembered::forget);
            own.lately.clear();
        }
        for (number, (group, meeting)) in self.groups.iter().zip(&self.meetings).enumerate() {
            let ran = match inputs.role {
                Role::Init | Role::Observe => self.apart(group, meeting, &surroundings, (part, own)),
                Role::Step => self.steps((number, group), meeting, &surroundings, (part, own)),
            };
            if let Err(why) = ran {
                own.fault = Some(why);
                return;
            }
            if inputs.role == Role::Init && group.events && !self.begin((number, group), meeting, (part, own)) {
                return;
            }
        }
        if inputs.role == Role::Step {
            let end = inputs.window.first_step + inputs.window.steps;
            own.lately.retain(|(sent, _)| end.wrapping_sub(*sent) <= self.longest);
        }
        if inputs.role == Role::Observe {
            for group in &self.groups {
                let observed = self.remember(group, &surroundings, inputs.window, own, |edges, step, cells, _| {
                    edges.observe(step, cells, &*self.kernels)
                });
                if let Err(why) = observed {
                    own.fault = Some(why);
                    return;
                }
            }
        }
        leaving.early = false;
    }

    /// Sends what `init` has emitted, as if in the step before the first; false if another part has failed.
    fn begin(
        &self,
        (number, group): (usize, &Group),
        meeting: &Meeting<T>,
        (part, own): (usize, &mut Part<T>),
    ) -> bool {
        if group.spaces.iter().all(|&space| own.spaces[space].cells.count == 0) {
            return true;
        }
        let mut sent = Vec::new();
        self.emitted(group, &vec![0; group.spaces.len()], own, &mut sent);
        group.spaces.iter().for_each(|&space| own.spaces[space].spikes.clear());
        if !meeting.tell(part, &mut sent) {
            return false;
        }
        sent.sort_unstable();
        let before = 0_u64.wrapping_sub(1);
        own.arrivals[number].send(before, &sent);
        own.lately.extend(sent.iter().map(|&event| (before, event)));
        true
    }

    /// Lets the spaces of a group do what is asked for once: `init`, or `observe`, for which cells may see what others have.
    fn apart(
        &self,
        group: &Group,
        meeting: &Meeting<T>,
        surroundings: &Surroundings<'_>,
        (part, own): (usize, &mut Part<T>),
    ) -> Result<(), Fault> {
        let inputs = surroundings.inputs;
        let empty = group.spaces.iter().all(|&space| own.spaces[space].cells.count == 0);
        let passes = if inputs.role == Role::Observe && !empty { group.observed } else { 0 };
        if passes > 0 && inputs.stale && !self.share_states(group, meeting, (part, own)) {
            return Ok(());
        }
        self.branches(group, false, surroundings, inputs.window, own)?;
        for pass in 0..passes.max(1) {
            if pass > 0 {
                for &space in &group.spaces {
                    own.look(space, &self.shapes[space], |shared| shared.bank == Bank::Temp);
                }
                if !self.exchange(group, meeting, (part, own)) {
                    return Ok(());
                }
            }
            for space in self.without_branches(group) {
                let number = self.numbering.kernel(space, inputs.role, pass);
                self.pass((number, space), false, surroundings, inputs.window, own)?;
            }
        }
        Ok(())
    }

    /// Shows to others the states of a group as they are; false if another part has failed.
    fn share_states(&self, group: &Group, meeting: &Meeting<T>, (part, own): (usize, &mut Part<T>)) -> bool {
        for &space in &group.spaces {
            own.look(space, &self.shapes[space], |shared| shared.bank == Bank::State);
        }
        self.exchange(group, meeting, (part, own))
    }

    /// Runs a kernel of a space for one pass: its cells see what others have shown before.
    fn pass(
        &self,
        (number, space): (usize, usize),
        far: bool,
        surroundings: &Surroundings<'_>,
        window: Window,
        own: &mut Part<T>,
    ) -> Result<(), Fault> {
        let Part { spaces, temps, views, tables, .. } = own;
        let rows = |&(number, from): &(usize, usize)| tables[number].view(views[from].values());
        let edges: Vec<Rows<'_, T>> = self.edges[space].iter().map(rows).collect();
        let slice = (space, spaces[space].with(temps.get_mut()));
        Links::apart(&edges, far, |links| self.kernel(number, surroundings, window, slice, links))
    }

    /// Advances the spaces of a group.
    fn steps(
        &self,
        (number, group): (usize, &Group),
        meeting: &Meeting<T>,
        surroundings: &Surroundings<'_>,
        (part, own): (usize, &mut Part<T>),
    ) -> Result<(), Fault> {
        if group.spaces.iter().all(|&space| own.spaces[space].cells.count == 0) {
            return Ok(());
        }
        let window = surroundings.inputs.window;
        let shares = group.spaces.iter().any(|&space| !self.edges[space].is_empty());
        if surroundings.inputs.stale && shares && !self.share_states(group, meeting, (part, own)) {
            return Ok(());
        }
        // The parts are alike, and their threads share the largest cache.
        let far = own.bytes(group, &self.edges) * self.parts.len() > CACHED;
        if group.is_alone() {
            let space = group.spaces[0];
            let Part { spaces, temps, views, tables, .. } = own;
            let edges: Vec<Rows<'_, T>> =
                self.edges[space].iter().map(|&(number, _)| tables[number].view(&[])).collect();
            let number = self.numbering.kernel(space, Role::Step, 0);
            let slice = (space, spaces[space].with(temps.get_mut()));
            views[space]
                .with_links(meeting, &edges, far, |links| self.kernel(number, surroundings, window, slice, links))?;
            views[space].advance(window.steps);
            return Ok(());
        }
        if !group.events && !group.branched.is_empty() && !shares {
            return self.branches(group, far, surroundings, window, own);
        }
        let (mut before, mut sent) = (Vec::new(), Vec::new());
        for step in window.first_step..window.first_step + window.steps {
            if group.events {
                before.clear();
                before.extend(group.spaces.iter().map(|&space| own.spaces[space].spikes.len()));
                let Part { arrivals, temps, .. } = &mut *own;
                arrivals[number].arrive(step, temps.get_mut());
                let one = Window { first_step: step, steps: 1, ..window };
                self.remember(group, surroundings, one, own, |edges, step, cells, _| {
                    edges.arrive(step, cells, &*self.kernels)
                })?;
            }
            self.branches(group, far, surroundings, Window { first_step: step, steps: 1, ..window }, own)?;
            for pass in 0..group.passes {
                for space in self.without_branches(group) {
                    let number = self.numbering.kernel(space, Role::Step, pass);
                    let one = Window { first_step: step, steps: 1, ..window };
                    self.pass((number, space), far, surroundings, one, own)?;
                }
                if !group.spaces.iter().any(|&space| own.views[space].changes_in(pass)) {
                    continue;
                }
                for &space in &group.spaces {
                    own.look(space, &self.shapes[space], |shared| shared.pass == pass);
                }
                if !self.exchange(group, meeting, (part, own)) {
                    return Ok(());
                }
            }
            if group.events {
                self.emitted(group, &before, own, &mut sent);
                if !meeting.tell(part, &mut sent) {
                    return Ok(());
                }
                sent.sort_unstable();
                own.arrivals[number].send(step, &sent);
                own.lately.extend(sent.iter().map(|&event| (step, event)));
                let one = Window { first_step: step, steps: 1, ..window };
                self.remember(group, surroundings, one, own, |edges, step, cells, order| {
                    let place = |cell: usize| CellOrder::place(order, cell as u32) as usize;
                    edges.send(step, &sent, cells, place, &*self.kernels)
                })?;
            }
        }
        Ok(())
    }

    /// The spaces of a group that are not of branched cells.
    fn without_branches<'g>(&'g self, group: &'g Group) -> impl Iterator<Item = usize> + 'g {
        let of_branches = |space: usize| {
            group.branched.iter().any(|&kind| self.branched[kind].each.iter().any(|(other, _)| *other == space))
        };
        group.spaces.iter().copied().filter(move |&space| !of_branches(space))
    }

    /// Lets the branched cells of a group do what a run asks for, in some steps.
    fn branches(
        &self,
        group: &Group,
        far: bool,
        surroundings: &Surroundings<'_>,
        window: Window,
        part: &mut Part<T>,
    ) -> Result<(), Fault> {
        group.branched.iter().try_for_each(|&kind| self.branches_of(kind, far, surroundings, window, part))
    }

    /// Lets branched cells of a kind do what a run asks for, in some steps.
    fn branches_of(
        &self,
        kind: usize,
        far: bool,
        surroundings: &Surroundings<'_>,
        window: Window,
        part: &mut Part<T>,
    ) -> Result<(), Fault> {
        let Part { spaces, temps, branches, views, tables, .. } = part;
        let (of, own) = (&self.branched[kind], &mut branches[kind]);
        let role = surroundings.inputs.role;
        let number = |space: usize, pass: usize| self.numbering.kernel(space, role, pass);
        let rows = |&(number, from): &(usize, usize)| tables[number].view(views[from].values());
        let edges: Vec<Vec<Rows<'_, T>>> =
            of.each.iter().map(|&(space, _)| self.edges[space].iter().map(rows).collect()).collect();
        own.run(&of.tasks[role as usize], number, |turns, seen, flat| {
            // They share nothing by themselves.
            let mut alone: Vec<_> = seen.iter().map(|_| |_: &mut [T]| true).collect();
            let mut slices: Vec<Option<Working<'_, T>>> = apart(spaces, temps.get_mut()).map(Some).collect();
            let calls = seen.into_iter().zip(&edges).zip(&mut alone).map(|(((space, branches), edges), share)| {
                let slice = slices[space].take().expect("a space is in a kind of cells once");
                let links = Links { now: &mut [], next: &mut [], edges, far, share };
                self.call(surroundings, window, (space, slice), (links, branches))
            });
            self.kernels.take_turns(turns, &mut calls.collect::<Vec<_>>(), flat)
        })
    }

    /// Lets events reach edges that remember.
    fn remember(
        &self,
        group: &Group,
        surroundings: &Surroundings<'_>,
        window: Window,
        own: &mut Part<T>,
        events: impl Fn(&mut Remembered<T>, EdgesStep<'_>, EdgesCell<'_, T>, Option<&CellOrder>) -> Result<(), Fault>,
    ) -> Result<(), Fault> {
        let step = EdgesStep { uniforms: &surroundings.inputs.uniforms, series: surroundings.series, window };
        for edges in own.remembered.iter_mut().filter(|edges| group.spaces.contains(&edges.to())) {
            let (to, slice) = (edges.to(), own.spaces[edges.to()].with(own.temps.get_mut()));
            let Working { slice: Slice { state, cell, .. }, temp } = slice;
            let (state, cell, shape) = (state.get(), cell.get(), self.shapes[to]);
            events(edges, step, EdgesCell { state, cell, temp, shape }, self.orders[to].as_ref())?;
        }
        Ok(())
    }

    /// What the cells of a part have emitted since there were so many spikes of each space.
    fn emitted(&self, group: &Group, before: &[usize], own: &Part<T>, sent: &mut Vec<Sent>) {
        sent.clear();
        for (&space, &before) in group.spaces.iter().zip(before) {
            let order = self.orders[space].as_ref();
            let new = own.spaces[space].spikes[before..].iter();
            sent.extend(new.map(|spike| {
                let cell = CellOrder::cell(order, spike.cell as usize) as u32;
                Sent { space, event: spike.event, cell }
            }));
        }
    }

    /// Meets the other parts; false if one of them has failed.
    fn exchange(&self, group: &Group, meeting: &Meeting<T>, (part, own): (usize, &mut Part<T>)) -> bool {
        let views = own.views.iter_mut().enumerate().filter(|(space, _)| group.spaces.contains(space));
        meeting.exchange(part, &mut views.map(|(_, view)| view).collect::<Vec<_>>())
    }

    /// Runs a kernel over the cells of a part.
    fn kernel(
        &self,
        number: usize,
        surroundings: &Surroundings<'_>,
        window: Window,
        slice: (usize, Working<'_, T>),
        links: Links<'_, T>,
    ) -> Result<(), Fault> {
        if slice.1.slice.cells.count == 0 {
            return Ok(());
        }
        // A place where the lifetime of `share` may become shorter.
        let links = Links { share: links.share, ..links };
        self.kernels.run(number, self.call(surroundings, window, slice, (links, Branches::none())))
    }

    /// What a kernel is given that works on the cells of a part, or on some branched ones.
    fn call<'a>(
        &'a self,
        surroundings: &'a Surroundings<'_>,
        window: Window,
        (space, Working { slice, temp }): (usize, Working<'a, T>),
        (links, branches): (Links<'a, T>, Branches<'a, T>),
    ) -> Call<'a, T> {
        let Slice { cells, state, cell, output, data, spikes, .. } = slice;
        let numbers = match &self.orders[space] {
            Some(order) => {
                let lanes = self.shapes[space].lanes;
                &order.cells()[cells.first as usize..][..cells.blocks(lanes) * lanes]
            }
            None => &[],
        };
        Call {
            state: state.get_mut(),
            cell: cell.get_mut(),
            output: output.get_mut(),
            data: data.get(),
            temp,
            uniforms: &surroundings.inputs.uniforms,
            series: surroundings.series,
            window,
            cells: *cells,
            spikes,
            order: Order { numbers },
            links,
            branches,
        }
    }
}

/// Sees to it that nobody waits for a part that left early, by a fault or by a panic.
struct Leaving<'a, T> {
    meetings: &'a [Meeting<T>],
    early: bool,
}

impl<T> Drop for Leaving<'_, T> {
    fn drop(&mut self) {
        if self.early {
            self.meetings.iter().for_each(|meeting| meeting.barrier.break_up());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::edges::{Edges, orders};
    use super::super::order::Arrangement;
    use super::*;
    use std::sync::atomic::{AtomicU64, Ordering};

    /// Each cell of a ring takes the value of the one before it and adds one. The last part fails before this step.
    struct Ring {
        fails_before: AtomicU64,
    }

    impl Kernels<f64> for Ring {
        fn run(&self, kernel: usize, call: Call<'_, f64>) -> Result<(), Fault> {
            let Call { state, cells, window, order, links, .. } = call;
            if kernel == (Numbering { passes: 1, others: 1 }).kernel(0, Role::Init, 0) {
                (0..).zip(state).for_each(|(i, x)| *x = f64::from(order.numbers[i]));
                return Ok(());
            }
            let Links { mut now, mut next, edges, share, .. } = links;
            for step in window.first_step..window.first_step + window.steps {
                if cells.first > 0 && step == self.fails_before.load(Ordering::Relaxed) {
                    return Err(Fault::Kernel("on purpose".into()));
                }
                for (i, x) in state.iter_mut().enumerate() {
                    *x = now[edges[0].sources.list()[i] as usize] + 1.0;
                    next[cells.first as usize + i] = *x;
                }
                if !share(next) {
                    return Ok(());
                }
                std::mem::swap(&mut now, &mut next);
            }
            Ok(())
        }
    }

    /// Sixteen cells in two parts, after so many steps.
    fn ring(fails_before: u64, steps: u64) -> (Machine<f64>, Result<(), Fault>) {
        let edges = Edges { offsets: (0..=16).collect(), sources: (0..16).map(|cell| (cell + 15) % 16).collect() };
        let relations = vec![Relation { from: 0, to: 0, edges: Arc::new(edges), numbers: Vec::new() }];
        let order = orders(Arrangement::Listed, &relations, &[(16, &[], 8)]).remove(0);
        let shape = Shape { lanes: 8, state: 1, cell: 0, output: 0, data: 0, temp: 0, swept: false, window: 40 };
        let kernels = Arc::new(Ring { fails_before: AtomicU64::new(fails_before) });
        let shared = vec![SharedField { bank: Bank::State, slot: 0, pass: 0 }];
        let groups = vec![Group { spaces: vec![0], passes: 1, observed: 0, events: false, branched: vec![] }];
        let model =
            Model { spaces: vec![Space { shape, size: 16, order, shared }], relations, groups, branched: vec![] };
        let mut machine = Machine::new(model, Arc::default(), vec![], vec![], kernels, 2, 1);
        assert_eq!(machine.threads(), 2);
        machine.init().unwrap();
        let result = machine.step(0, steps, &mut Vec::new());
        (machine, result)
    }

    fn states(machine: &Machine<f64>) -> Vec<f64> {
        let mut out = Vec::new();
        machine.read(Place { space: 0, bank: Bank::State, slot: 0 }, 0..16, &mut out).unwrap();
        out
    }

    #[test]
    fn parts_meet_again_in_step_after_one_has_failed() {
        let (fine, result) = ring(u64::MAX, 7);
        assert_eq!(result, Ok(()));
        let expected: Vec<f64> = (0..16).map(|cell| f64::from((cell + 9) % 16 + 7)).collect();
        assert_eq!(states(&fine), expected);
        // After an even and after an odd number of meetings, while the other part waits.
        for fails_before in [0, 3, 4] {
            let (mut failed, result) = ring(fails_before, 7);
            assert_eq!(result, Err(Fault::Kernel("on purpose".into())));
            failed.init().unwrap();
            // It has failed before; these steps are behind that one.
            failed.step(10, 7, &mut Vec::new()).unwrap();
            assert_eq!(states(&failed), expected, "failed before step {fails_before}");
        }
    }
}
