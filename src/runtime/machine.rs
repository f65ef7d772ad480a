//! A model in memory: its buffers, cut into parts, and the threads that run kernels over them.
//!
//! In come the shapes of the spaces, their sizes and something that runs a kernel; out go states, outputs and spikes.
//! Each part owns the buffers of a contiguous range of blocks of every space, so that no two threads share a number.
//! Never true here: a name or a unit, or that a result depends on the number of parts.

use super::call::{Call, Cells, Spike, Window};
use super::lanes::Scalar;
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
    /// How many steps one call of the step kernel may advance.
    pub window: u32,
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
    /// Runs one kernel once; a kernel that does not exist does nothing.
    fn run(&self, space: usize, role: Role, call: Call<'_, T>) -> Result<(), Fault>;
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
    kernels: Box<dyn Kernels<T>>,
    inputs: RwLock<Inputs>,
    parts: Vec<Mutex<Part<T>>>,
}

/// What every part reads.
struct Inputs {
    uniforms: Vec<f64>,
    series: Vec<Vec<Sample>>,
    role: Role,
    window: Window,
}

struct Part<T> {
    spaces: Vec<Slice<T>>,
    fault: Option<Fault>,
}

/// The blocks of one space in one part.
struct Slice<T> {
    cells: Cells,
    state: Aligned<T>,
    cell: Aligned<T>,
    output: Aligned<T>,
    data: Aligned<T>,
    saved: Vec<T>,
    spikes: Vec<Spike>,
}

/// Numbers that start at a multiple of 64 bytes.
struct Aligned<T> {
    store: Vec<T>,
    skip: usize,
    len: usize,
}

impl<T: Copy + Default> Aligned<T> {
    fn new(len: usize) -> Aligned<T> {
        let room = 64 / size_of::<T>();
        let store = vec![T::default(); len + room];
        // Where the alignment cannot be computed the numbers are right all the same.
        let skip = store.as_ptr().align_offset(64).min(room);
        Aligned { store, skip, len }
    }

    fn get(&self) -> &[T] {
        &self.store[self.skip..self.skip + self.len]
    }

    fn get_mut(&mut self) -> &mut [T] {
        &mut self.store[self.skip..self.skip + self.len]
    }
}

impl<T> Slice<T> {
    fn bank_mut(&mut self, bank: Bank) -> &mut Aligned<T> {
        match bank {
            Bank::State => &mut self.state,
            Bank::Cell => &mut self.cell,
            Bank::Output => &mut self.output,
            Bank::Data => &mut self.data,
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
        shapes: Vec<Shape>,
        sizes: Vec<usize>,
        uniforms: Vec<f64>,
        series: Vec<Vec<Sample>>,
        kernels: Box<dyn Kernels<T>>,
        threads: usize,
        min_cells: usize,
    ) -> Machine<T> {
        let cells: usize = sizes.iter().sum();
        let parts = threads.min(cells / min_cells.max(1)).max(1);
        let cut = |(shape, &cells): (&Shape, &usize)| {
            let blocks = cells.div_ceil(shape.lanes);
            (0..=parts).map(|part| blocks * part / parts).collect::<Vec<_>>()
        };
        let cuts: Vec<Vec<usize>> = shapes.iter().zip(&sizes).map(cut).collect();
        let part = |part: usize| {
            let slice = |((shape, &size), cuts): ((&Shape, &usize), &Vec<usize>)| {
                let blocks = cuts[part + 1] - cuts[part];
                let first = cuts[part] * shape.lanes;
                let count = (cuts[part + 1] * shape.lanes).min(size) - first.min(size);
                let buffer = |slots: usize| Aligned::new(blocks * slots * shape.lanes);
                Slice {
                    cells: Cells { first: first as u64, count: count as u64 },
                    state: buffer(shape.state),
                    cell: buffer(shape.cell),
                    output: buffer(shape.output),
                    data: buffer(shape.data),
                    saved: Vec::new(),
                    spikes: Vec::new(),
                }
            };
            let spaces = shapes.iter().zip(&sizes).zip(&cuts).map(slice).collect();
            Mutex::new(Part { spaces, fault: None })
        };
        let window = Window { first_step: 0, steps: 0, seed: 0 };
        let shared = Arc::new(Shared {
            kernels,
            inputs: RwLock::new(Inputs { uniforms, series, role: Role::Init, window }),
            parts: (0..parts).map(part).collect(),
        });
        let job = Arc::clone(&shared);
        let pool = Pool::new(parts, move |worker| job.run(worker));
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
        let fine = self.pool.run();
        let fault = self.shared.parts.iter().find_map(|part| lock(part).fault.take());
        match fault {
            Some(fault) => Err(fault),
            None if fine => Ok(()),
            None => Err(Fault::Kernel("a thread panicked".to_string())),
        }
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
                let of_space = |Spike { step, event, cell }: Spike| SpaceSpike { step, space, event, cell };
                spikes.extend(slice.spikes.drain(..).map(of_space));
            }
        }
        Ok(())
    }

    /// Computes the outputs at the start of a step.
    pub fn observe(&mut self, step: u64) -> Result<(), Fault> {
        self.run(Role::Observe, step, 1)
    }

    /// Calls `visit(part, cells)` with the parts that have cells of a range.
    fn visit(
        &self,
        place: Place,
        cells: Range<usize>,
        mut visit: impl FnMut(&mut [T], usize, usize, Range<usize>),
    ) -> Result<(), Fault> {
        let shape = self.shapes.get(place.space).ok_or(Fault::Range)?;
        let slots = shape.slots(place.bank);
        if place.slot >= slots || cells.start > cells.end || cells.end > self.sizes[place.space] {
            return Err(Fault::Range);
        }
        for (part, cut) in self.shared.parts.iter().zip(self.cuts[place.space].windows(2)) {
            let (first, end) = (cut[0] * shape.lanes, cut[1] * shape.lanes);
            let here = cells.start.max(first)..cells.end.min(end);
            if here.start < here.end {
                let mut part = lock(part);
                let numbers = part.spaces[place.space].bank_mut(place.bank).get_mut();
                visit(numbers, slots, first, here);
            }
        }
        Ok(())
    }

    /// Appends the numbers of a field for a range of cells.
    pub fn read(&self, place: Place, cells: Range<usize>, out: &mut Vec<f64>) -> Result<(), Fault> {
        let lanes = self.shapes.get(place.space).ok_or(Fault::Range)?.lanes;
        self.visit(place, cells, |numbers, slots, first, cells| {
            out.extend(cells.map(|cell| {
                let (block, lane) = ((cell - first) / lanes, (cell - first) % lanes);
                numbers[(block * slots + place.slot) * lanes + lane].to_f64()
            }));
        })
    }

    /// Overwrites a field of all cells, and the lanes past the last cell with its number.
    pub fn write(&mut self, place: Place, values: &[f64]) -> Result<(), Fault> {
        let size = self.size(place.space).ok_or(Fault::Range)?;
        let lanes = self.shapes[place.space].lanes;
        if values.len() != size {
            return Err(Fault::Length(size, values.len()));
        }
        self.visit(place, 0..size, |numbers, slots, first, cells| {
            let end = if cells.end == size { size.next_multiple_of(lanes) } else { cells.end };
            for cell in cells.start..end {
                let (block, lane) = ((cell - first) / lanes, (cell - first) % lanes);
                numbers[(block * slots + place.slot) * lanes + lane] = T::from_f64(values[cell.min(size - 1)]);
            }
        })
    }

    /// Is every state of every cell finite?
    pub fn all_finite(&self) -> bool {
        let finite = |(shape, slice): (&Shape, &Slice<T>)| {
            let states = slice.state.get();
            let lanes = shape.lanes;
            let whole = slice.cells.count as usize / lanes * lanes * shape.state;
            let rest = slice.cells.count as usize % lanes;
            let is_finite = |x: &T| x.to_f64().is_finite();
            states[..whole].iter().all(is_finite)
                && states[whole..].chunks(lanes).all(|slot| slot.iter().take(rest).all(is_finite))
        };
        self.shared.parts.iter().all(|part| self.shapes.iter().zip(&lock(part).spaces).all(finite))
    }

    /// Keeps a copy of all states.
    pub fn save(&mut self) {
        for part in &self.shared.parts {
            for slice in &mut lock(part).spaces {
                slice.saved.clear();
                slice.saved.extend_from_slice(slice.state.get());
            }
        }
    }

    /// Goes back to the kept copy; without one nothing changes.
    pub fn restore(&mut self) {
        for part in &self.shared.parts {
            for slice in &mut lock(part).spaces {
                let Slice { state, saved, .. } = slice;
                if saved.len() == state.len {
                    state.get_mut().copy_from_slice(saved);
                }
            }
        }
    }
}

impl<T: Scalar> Shared<T> {
    /// One part of one run, on whatever thread.
    fn run(&self, part: usize) {
        let inputs = self.inputs.read().unwrap_or_else(PoisonError::into_inner);
        let series: Vec<Series> = inputs.series.iter().map(|samples| Series::new(samples)).collect();
        let mut part = lock(&self.parts[part]);
        let Part { spaces, fault } = &mut *part;
        for (space, slice) in spaces.iter_mut().enumerate() {
            if slice.cells.count == 0 {
                continue;
            }
            let call = Call {
                state: slice.state.get_mut(),
                cell: slice.cell.get_mut(),
                output: slice.output.get_mut(),
                data: slice.data.get(),
                uniforms: &inputs.uniforms,
                series: &series,
                window: inputs.window,
                cells: slice.cells,
                spikes: &mut slice.spikes,
            };
            if let Err(why) = self.kernels.run(space, inputs.role, call) {
                *fault = Some(why);
            }
        }
    }
}
