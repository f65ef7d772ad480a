//! Every decision about the shape of the code, made once for all emitters.
//!
//! In comes a verified program; out goes a [`Plan`]: precision, lanes, buffer layout, which values are numbers and which are
//! lanes, what is computed per run, per step, per block and per block and step, and how cells are shared out among threads.
//! Never true here: a word of Rust, C or MLIR.
//!
//! # Shapes of values
//!
//! A value that depends on no cell is a *number*: it is computed once per run (or, if it depends on time, once per step, into
//! a row of a table) in `f64`, whatever the precision of the kernel, and rounded once where cells use it. Every other value is
//! *lanes*: one per cell, in the kernel's precision. Singles of the IR are in single precision in either case; among lanes in `f64`
//! they have vectors of their own, with as many lanes.
//!
//! An `exact` operation on numbers is also computed as lanes, once per block and from rounded numbers, where lanes are less precise and
//! use it: `max(v, vt) / k - vt / k` is 0 below the threshold only if both quotients are rounded alike. Numbers still use the number,
//! and so does what has to do with time, whose numbers lanes cannot compute as well. `init` has numbers only: it runs once.
//!
//! The mean of a Poisson distribution stays a number, rounded once: then all cells share the sums of its probabilities, and a cell only
//! finds its own among them.
//!
//! # Edges
//!
//! The regions of edges are part of the update of a block: its targets take their edges one row after the other, one
//! edge per lane, and add up in registers. What they read of other cells is in flat buffers of their own (see
//! [`crate::runtime::edges`]), which hold what was stored before the pass.
//!
//! # Passes
//!
//! Spaces that edges join take their steps together, each step in one or more [`Passes`]: in a pass every one of them works through its
//! blocks, and after it everybody sees what was stored. How the loops of a kernel stand to each other is its [`Nest`].
//!
//! # Registers
//!
//! A field that a kernel touches lives in a register while a block of cells is worked on. Reads before the first store of a
//! time step see the register, later ones the stored value; registers change at the end of the step only. So a temp field costs
//! nothing, and the order of stores does not matter.

mod build;
mod connected;
pub mod cost;
mod deliveries;
mod device;
mod elimination;
mod kernel;
mod lattice;
mod order;
mod passes;
mod print;
mod refuse;
mod remember;
mod slabs;
mod ties;
mod travel;
mod trees;

pub use build::identifier;
pub use connected::{Connected, Load, Prologue};
pub use deliveries::{Delivery, Effect, is_delivery};
pub use device::{DeviceClass, DevicePlan, GatherForm, Grouping, Stretch, pairs};
pub use elimination::{Elimination, StageParts};
pub use kernel::*;
pub use lattice::Lattice;
pub use passes::{Group, Passes};
pub use refuse::Unplanned;
pub use remember::{Heard, PASSES, PRE, Remembers};
pub use slabs::Slabs;
pub use ties::Tie;
pub use travel::{DeliveryForm, Dense, Events, Past, Remembered, Traffic, receivers};
pub use trees::Trees;

use crate::runtime::machine::Bank;
use crate::step::{FieldId, FieldKind, Map, Op, OpKind, Origin, Program, Role, SpaceId, SpaceKind, ValueId, Verified};
use build::{Builder, Part};
use remember::OfEdges;
use rustc_hash::FxHashMap as HashMap;
use std::collections::BTreeSet;

/// The number type of a kernel's lanes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Precision {
    /// 64 bits.
    F64,
    /// 32 bits.
    F32,
    /// 32 bits, and 16 of them (8 significant ones) where a device keeps what steps only read: values per cell that do not change,
    /// and the voltages that come along edges, as their difference from the first cell's.
    ///
    /// States stay in 32 bits: a step adds less to them than half a place of 8 bits, so that they would stand still. Nothing is
    /// computed in 16 bits. Both ends of an edge are rounded alike, so that what flows out of one cell flows into the other; with
    /// the neighbour's voltage rounded alone, a sum of junctions pulls a cell to the nearest rounded voltage. Native kernels
    /// have no such storage.
    Bf16,
}

impl Precision {
    /// Cells per vector.
    pub fn lanes(self) -> u32 {
        match self {
            Precision::F64 => 8,
            Precision::F32 | Precision::Bf16 => 16,
        }
    }

    /// `f64`, `f32` or `bf16`.
    pub fn name(self) -> &'static str {
        match self {
            Precision::F64 => "f64",
            Precision::F32 => "f32",
            Precision::Bf16 => "bf16",
        }
    }
}

/// What the user decides.
#[derive(Debug, Clone, PartialEq)]
pub struct PlanOptions {
    /// The number type.
    pub precision: Precision,
    /// Vectors per group of cells, 1, 2 or 4, instead of what [`plan`] would choose.
    pub vectors: Option<u32>,
    /// The number of cells of each space, where it is known: a group is not larger than the space needs.
    pub sizes: Option<Vec<usize>>,
}

impl Default for PlanOptions {
    fn default() -> PlanOptions {
        PlanOptions { precision: Precision::F64, vectors: None, sizes: None }
    }
}

/// The shape of the code of a program.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// The model's name.
    pub name: String,
    /// The number type of lanes.
    pub precision: Precision,
    /// Source places.
    pub origins: Vec<Origin>,
    /// The name of every field of the program.
    pub fields: Vec<String>,
    /// Where every field of the program lives.
    pub homes: Vec<Home>,
    /// The uniform table: always `f64`.
    pub uniforms: Vec<FieldId>,
    /// The series table.
    pub series: Vec<FieldId>,
    /// The spaces of cells and their parts, which are the first of the program.
    pub spaces: Vec<SpacePlan>,
    /// The relations.
    pub relations: Vec<Relation>,
    /// Relations that events go along.
    pub deliveries: Vec<Delivery>,
    /// Branched cells.
    pub trees: Vec<Trees>,
    /// Which of the spaces take their steps together; each is in one of them.
    pub groups: Vec<Group>,
    /// Values per cell that are kept in 16 bits, in their order.
    pub narrow: Vec<FieldId>,
    /// A thread is worth its while from this many cells on. Threads get contiguous ranges of whole blocks, as equal as can be.
    pub min_cells: u32,
}

/// Cells that a thread must have: below it waking a thread takes longer than its work.
const MIN_CELLS: u32 = 256;

/// How many blocks ahead a kernel with edges asks for memory.
pub const BLOCKS_AHEAD: usize = 3;

/// How many blocks of cells have their edges summed before they are updated. A processor looks some hundred instructions
/// ahead: it overlaps rows of edges with each other, and updates with each other, better than a few rows with one update.
pub const BATCH: usize = 32;

/// Where the values of a field are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Home {
    /// An entry of the uniform table.
    Uniform(u32),
    /// An entry of the series table.
    Series(u32),
    /// A slot of every block of a space's buffer.
    Slot(SpaceId, Bank, u32),
    /// An event number of a space.
    Event(SpaceId, u32),
    /// Of a space of branched cells, what their maps reach: a number of the group's [`Trees::fields`].
    Flat(SpaceId, u32),
    /// With the edges of a delivery, computed before the run.
    Edges,
    /// Nowhere but in a kernel's registers.
    Register,
}

/// Edges from the cells of a space to those of another, or of the same.
#[derive(Debug, Clone, PartialEq)]
pub struct Relation {
    /// Their space.
    pub space: SpaceId,
    /// Its name.
    pub name: String,
    /// The space of their sources.
    pub from: SpaceId,
    /// The space of their targets.
    pub to: SpaceId,
    /// Do states come along in 16 bits? Only within a space, where both ends are rounded alike.
    pub narrow: bool,
    /// What each edge has for itself.
    pub numbers: EdgeNumbers,
}

/// Numbers that edges have for themselves and steps only read.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct EdgeNumbers {
    /// The fields.
    pub fields: Vec<FieldId>,
    /// What is computed for every edge before a run, as of a [`Delivery`].
    pub ops: Vec<Op>,
    /// For each field its value among these.
    pub values: Vec<ValueId>,
}

impl EdgeNumbers {
    /// The fields that they are computed from.
    pub fn reads(&self) -> BTreeSet<FieldId> {
        deliveries::reads(&self.ops, self.values.iter().copied())
    }
}

impl Relation {
    /// Do they lead to the space that they come from?
    pub fn is_within(&self) -> bool {
        self.from == self.to
    }
}

/// A field that others read along edges.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shared {
    /// A state, or a temp that has a slot.
    pub field: FieldId,
    /// The pass of a step that stores it, the last one if none does; beyond all of them for a temp of what is recorded.
    pub pass: u32,
}

/// A space's layout and kernels.
#[derive(Debug, Clone, PartialEq)]
pub struct SpacePlan {
    /// The space.
    pub space: SpaceId,
    /// Its name.
    pub name: String,
    /// Vectors per group of cells: 1, 2 or 4.
    pub vectors: u32,
    /// Cells per block: vectors times the lanes of one.
    pub block: u32,
    /// How many lane values of the step kernel are live at once (the reason for `vectors`).
    pub pressure: u32,
    /// State slots. A buffer is `[block][slot][lane]`.
    pub state: Vec<FieldId>,
    /// Cell slots.
    pub cell: Vec<FieldId>,
    /// Output slots.
    pub output: Vec<FieldId>,
    /// Data slots.
    pub data: Vec<FieldId>,
    /// Temp slots: what a pass stores for a later one, or for others.
    pub temp: Vec<FieldId>,
    /// Those of the temps in which arrivals are added up that their only reader, a kernel of the step, sets to 0 again: all of them, or none. The
    /// machine need not, which would cost a turn through memory.
    pub swept: Vec<FieldId>,
    /// What maps of branched cells reach, and which bank would hold it if no map did.
    pub flat: Vec<(FieldId, Bank)>,
    /// Event numbers.
    pub events: Vec<FieldId>,
    /// The edge table: the relations that lead here.
    pub edges: Vec<u32>,
    /// What others read along edges.
    pub shared: Vec<Shared>,
    /// Its kernels in the order of their roles and passes.
    pub kernels: Vec<KernelPlan>,
}

impl SpacePlan {
    /// The kernel of a role and, of a step, of a pass.
    pub fn kernel(&self, role: Role, pass: u32) -> Option<&KernelPlan> {
        self.kernels.iter().find(|kernel| kernel.role == role && kernel.pass == pass)
    }

    /// The name of one of its kernels among all of the plan's.
    pub fn id(&self, kernel: &KernelPlan) -> KernelId {
        KernelId { space: self.space.0, role: kernel.role, pass: kernel.pass }
    }

    /// The fields of a bank where nothing lies flat, as on devices: the slots, then what maps of branched cells reach.
    pub fn fields(&self, bank: Bank) -> impl Iterator<Item = FieldId> {
        let flat = self.flat.iter().filter(move |(_, other)| *other == bank).map(|(field, _)| *field);
        self.slots(bank).iter().copied().chain(flat)
    }

    /// The slots of a bank.
    fn slots(&self, bank: Bank) -> &[FieldId] {
        match bank {
            Bank::State => &self.state,
            Bank::Cell => &self.cell,
            Bank::Output => &self.output,
            Bank::Data => &self.data,
            Bank::Temp => &self.temp,
        }
    }

    /// The kernels of a step, by pass.
    pub fn step(&self) -> impl Iterator<Item = &KernelPlan> {
        self.kernels.iter().filter(|kernel| kernel.role == Role::Step)
    }
}

/// Which of a plan's kernels.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct KernelId {
    /// The number of its space.
    pub space: u32,
    /// Its role.
    pub role: Role,
    /// Its pass.
    pub pass: u32,
}

impl Plan {
    /// All that has kernels: the plain spaces, then the edges that remember.
    pub fn all_kernels(&self) -> impl Iterator<Item = &SpacePlan> {
        self.spaces.iter().chain(self.deliveries.iter().filter_map(Delivery::kernels))
    }

    /// What has kernels, by the number of its space.
    ///
    /// # Panics
    /// Where nothing with this number has kernels.
    pub fn space(&self, number: u32) -> &SpacePlan {
        let found = self.all_kernels().find(|space| space.space.0 == number);
        found.expect("the number is that of cells or of edges that remember")
    }

    /// The most passes of a step.
    pub fn passes(&self) -> u32 {
        let of_edges = self.deliveries.iter().filter_map(Delivery::remembers).map(|_| PASSES);
        let of_trees = self.trees.iter().map(Trees::passes);
        self.groups.iter().map(|group| group.passes).chain(of_trees).chain(of_edges).max().unwrap_or(1)
    }

    /// The most passes of `init` and of what is recorded.
    pub fn other_passes(&self) -> u32 {
        let of_trees = if self.trees.is_empty() { 1 } else { self.passes() };
        self.groups.iter().map(|group| group.observed).chain([of_trees]).max().unwrap_or(1)
    }

    /// Of a field that has a value for every element: its space, its bank and its place among the bank's [`SpacePlan::fields`].
    pub fn slot(&self, field: FieldId) -> Option<(SpaceId, Bank, u32)> {
        match *self.homes.get(field.0 as usize)? {
            Home::Slot(space, bank, slot) => Some((space, bank, slot)),
            Home::Flat(space, _) => {
                let of_space = &self.spaces[space.0 as usize];
                let (_, bank) = *of_space.flat.iter().find(|(other, _)| *other == field)?;
                let at = of_space.fields(bank).position(|other| other == field)?;
                Some((space, bank, at as u32))
            }
            Home::Uniform(_) | Home::Series(_) | Home::Event(..) | Home::Edges | Home::Register => None,
        }
    }

    /// The number of the branched cells that a space belongs to.
    pub fn tree(&self, space: SpaceId) -> Option<u32> {
        self.trees.iter().position(|trees| trees.spaces.contains(&space)).map(|at| at as u32)
    }

    /// Does a kernel add up what edges bring to branched cells? It sees what all had when the step began, so that it comes before the first pass where
    /// stores take the place of what was there.
    pub fn is_before_passes(&self, space: &SpacePlan, kernel: &KernelPlan) -> bool {
        !kernel.edges.is_empty() && self.tree(space.space).is_some()
    }

    /// The relation of a number.
    pub fn relation(&self, number: u32) -> &Relation {
        &self.relations[number as usize]
    }
}

/// How many vectors a group of cells has, by the number of live lane values of the step kernel.
///
/// Several vectors hide the latency of long chains (exponentials, divisions) at the price of spilled registers. Measured on
/// AVX-512 with its 32 registers: a Hodgkin-Huxley point cell (14 live values) runs 1.5 times as fast with 2 vectors and twice
/// as fast with 4; a cell with three times as many live values loses 10 % with 2.
fn vectors(pressure: u32) -> u32 {
    match pressure {
        0..=16 => 4,
        17..=24 => 2,
        25.. => 1,
    }
}

/// Decides the shape of the code, or tells what no back end can do so far.
///
/// # Panics
/// Where the verifier let a program through that breaks a rule of the IR.
pub fn plan(program: &Verified, options: &PlanOptions) -> Result<Plan, Unplanned> {
    let program = program.program();
    let passes = refuse::check(program)?;
    let kept = passes.kept(program);
    let drafts = deliveries::drafts(program)?;
    let of_edges = OfEdges::new(program, &drafts)?;
    let uniforms = program.fields_where(|field| field.kind == FieldKind::Uniform);
    let series = program.fields_where(|field| field.kind == FieldKind::Series);
    let mut counts: HashMap<(SpaceId, FieldKind), u32> = HashMap::default();
    let mut next = |space: SpaceId, kind: FieldKind| {
        let count = counts.entry((space, kind)).or_default();
        *count += 1;
        *count - 1
    };
    let (mut uniform, mut one_series) = (0..uniforms.len() as u32, 0..series.len() as u32);
    let given = program.fields.len() as u32;
    let flat = |id: u32| passes.trees.iter().find_map(|trees| trees.flat(FieldId(id)));
    let are_edges = |space: SpaceId| matches!(program.space(space).kind, SpaceKind::Relation { .. });
    let home = |(id, field): (u32, &crate::step::Field)| match (field.kind, field.over) {
        (_, Some(s)) if id < given && flat(id).is_some() => Home::Flat(s, flat(id).unwrap_or_default()),
        (FieldKind::Uniform, _) => Home::Uniform(uniform.next().expect("as many as fields")),
        (FieldKind::Series, _) => Home::Series(one_series.next().expect("as many as fields")),
        (FieldKind::Const | FieldKind::Data, Some(s)) if id < given && are_edges(s) => Home::Edges,
        (FieldKind::Event, Some(s)) => Home::Event(s, next(s, field.kind)),
        (FieldKind::Temp, _) if !kept.contains(&FieldId(id)) => Home::Register,
        (kind, Some(s)) => Home::Slot(s, bank(kind).expect("has one"), next(s, kind)),
        (_, None) => panic!("`refuse` refuses values over nothing"),
    };
    let homes: Vec<Home> = (0..).zip(&of_edges.program.fields).map(home).collect();
    let spaces = || (0..program.spaces.len() as u32).map(SpaceId);
    let relations: Vec<Relation> = spaces()
        .filter_map(|space| match program.space(space).kind {
            SpaceKind::Relation { .. } if is_delivery(program, space) => None,
            SpaceKind::Relation { from, to } => {
                let narrow = options.precision == Precision::Bf16 && from == to;
                let name = program.space(space).name.clone();
                let relation = |numbers| Relation { space, name, from, to, narrow, numbers };
                Some(deliveries::numbers_of_edges(program, space).map(relation))
            }
            SpaceKind::Plain | SpaceKind::Product { .. } | SpaceKind::Subset { .. } => None,
        })
        .collect::<Result<_, Unplanned>>()?;
    let plain: Vec<SpaceId> = spaces().filter(|&space| !are_edges(space)).collect();
    let shared: Vec<Vec<Shared>> = plain.iter().map(|&space| shared(program, &passes, space)).collect();
    let surroundings = Surroundings { program, homes: &homes, relations: &relations, passes: &passes, shared: &shared };
    let mut spaces: Vec<SpacePlan> = plain.iter().map(|&space| surroundings.space_plan(space, options)).collect();
    let none: Vec<Vec<Shared>> = vec![Vec::new(); program.spaces.len()];
    let edges = Surroundings {
        program: &of_edges.program,
        homes: &homes,
        relations: &[],
        passes: &of_edges.passes,
        shared: &none,
    };
    let by_themselves = PlanOptions { sizes: None, ..options.clone() };
    let deliveries =
        deliveries::deliveries(program, drafts, &of_edges, |space| edges.space_plan(space, &by_themselves))?;
    for space in &mut spaces {
        space.swept = swept(space, &deliveries);
    }
    let narrow = match options.precision {
        Precision::Bf16 => narrow(&homes, &spaces, &passes),
        Precision::F64 | Precision::F32 => Vec::new(),
    };
    Ok(Plan {
        name: program.name.clone(),
        precision: options.precision,
        origins: program.origins.clone(),
        fields: of_edges.program.fields.iter().map(|field| field.name.clone()).collect(),
        uniforms,
        series,
        spaces,
        relations,
        deliveries,
        trees: passes.trees,
        groups: passes.groups,
        narrow,
        homes,
        min_cells: MIN_CELLS,
    })
}

/// What the plans of all spaces look at.
#[derive(Clone, Copy)]
struct Surroundings<'a> {
    program: &'a Program,
    homes: &'a [Home],
    relations: &'a [Relation],
    passes: &'a Passes,
    /// For every plain space what others read of it.
    shared: &'a [Vec<Shared>],
}

impl Surroundings<'_> {
    fn space_plan(self, space: SpaceId, options: &PlanOptions) -> SpacePlan {
        let is_flat = |field: &FieldId| matches!(self.homes[field.0 as usize], Home::Flat(..));
        let of = |kind: FieldKind| {
            let mut fields = self.program.fields_where(|field| field.kind == kind && field.over == Some(space));
            fields.retain(|field| !matches!(self.homes[field.0 as usize], Home::Flat(..) | Home::Edges));
            fields
        };
        let edges: Vec<u32> =
            (0..).zip(self.relations).filter(|(_, relation)| relation.to == space).map(|(number, _)| number).collect();
        let roles = [Role::Init, Role::Step, Role::Observe].map(|role| (role, self.passes.count(role, space)));
        let kernels: Vec<KernelPlan> = roles
            .into_iter()
            .flat_map(|(role, passes)| (0..passes).map(move |pass| (role, pass)))
            .filter_map(|(role, pass)| Part::new(self, role, pass, space, &edges))
            .map(|part| Builder::new(self, &edges, &part, options.precision).build())
            .collect();
        let step = || kernels.iter().filter(|kernel| kernel.role == Role::Step);
        let pressure = step().map(|kernel| kernel.pressure).max().unwrap_or(0);
        let lanes = options.precision.lanes();
        let needed = options.sizes.as_ref().and_then(|sizes| sizes.get(space.0 as usize));
        let too_large = |vectors: u32| needed.is_some_and(|&cells| cells <= (lanes * vectors / 2) as usize);
        // The rows of edges hide the latency of each other, and several sums in flight cost registers.
        let connected = step().any(|kernel| !kernel.edges.is_empty());
        // Two vectors of doubles are one of singles.
        let narrow = options.precision == Precision::F64 && step().any(KernelPlan::has_singles);
        let least = if narrow { 2 } else { 1 };
        // Equations along a tree are a long chain, which several vectors of cells side by side hide the latency of.
        let trees = self.passes.trees(space).filter(|trees| trees.solves.iter().any(|s| s.0 == space));
        let cells = trees.and_then(|trees| options.sizes.as_ref()?.get(trees.cells.0 as usize));
        let most = match cells {
            Some(&cells) => [4, 2].into_iter().find(|n| (lanes * n) as usize <= cells).unwrap_or(1).max(least),
            None if connected => least,
            // Passes go over block after block, whose chains hide each other's latency.
            None if self.passes.trees(space).is_some() => vectors(pressure).min(2).max(least),
            None => vectors(pressure).max(least),
        };
        let chosen = [4, 2, 1].into_iter().find(|&n| n <= most && (n == 1 || !too_large(n)));
        let vectors = options.vectors.or(chosen).unwrap_or(1);
        let flat = |id: u32| -> Option<(FieldId, Bank)> {
            let field = FieldId(id);
            let bank = bank(self.program.field(field).kind)?;
            (is_flat(&field) && self.program.field(field).over == Some(space)).then_some((field, bank))
        };
        let in_slot = |field: &FieldId| matches!(self.homes[field.0 as usize], Home::Slot(..));
        SpacePlan {
            space,
            name: self.program.space(space).name.clone(),
            vectors,
            block: vectors * lanes,
            pressure,
            state: of(FieldKind::State),
            cell: of(FieldKind::Const),
            output: of(FieldKind::Output),
            data: of(FieldKind::Data),
            temp: of(FieldKind::Temp).into_iter().filter(in_slot).collect(),
            swept: Vec::new(),
            flat: (0..self.program.fields.len() as u32).filter_map(flat).collect(),
            events: of(FieldKind::Event),
            edges,
            shared: self.shared[space.0 as usize].clone(),
            kernels,
        }
    }
}

/// The sums of arrivals that kernels of a space can set to 0 again: each has one reader, which goes through all cells once in every step.
fn swept(space: &SpacePlan, deliveries: &[Delivery]) -> Vec<FieldId> {
    let mut sums: Vec<FieldId> =
        deliveries.iter().flat_map(Delivery::sums).filter(|sum| space.temp.contains(sum)).collect();
    sums.sort_unstable();
    sums.dedup();
    let told = |&sum: &FieldId| space.shared.iter().any(|shared| shared.field == sum);
    let reads = |kernel: &&KernelPlan, sum: FieldId| kernel.registers.iter().any(|r| r.used && r.field == sum);
    let once = |&sum: &FieldId| {
        let mut readers = space.kernels.iter().filter(|kernel| reads(kernel, sum));
        let (reader, other) = (readers.next(), readers.next());
        other.is_none() && reader.is_some_and(|kernel| kernel.nest == Nest::Pass && kernel.connected.is_none())
    };
    if sums.iter().all(once) && !sums.iter().any(told) { sums } else { Vec::new() }
}

/// The bank of a field that has a value for every element.
fn bank(kind: FieldKind) -> Option<Bank> {
    match kind {
        FieldKind::Data => Some(Bank::Data),
        FieldKind::Const => Some(Bank::Cell),
        FieldKind::State => Some(Bank::State),
        FieldKind::Output => Some(Bank::Output),
        FieldKind::Temp => Some(Bank::Temp),
        FieldKind::Uniform | FieldKind::Series | FieldKind::Event => None,
    }
}

/// What a device keeps in 16 bits, if it keeps anything so: what steps only read. Of branched cells nothing: currents between
/// compartments are small differences of large numbers.
fn narrow(homes: &[Home], spaces: &[SpacePlan], passes: &Passes) -> Vec<FieldId> {
    let is_read = |space: SpaceId, field: FieldId| {
        // What only `init` reads makes states.
        // Edges that remember see copies of what cells have.
        let of_space = spaces.get(space.0 as usize).map_or(&[][..], |space| &space.kernels);
        let later = of_space.iter().filter(|kernel| kernel.role != Role::Init);
        later.flat_map(|kernel| &kernel.registers).any(|register| register.used && register.field == field)
    };
    let is_narrow = |(field, home): &(FieldId, &Home)| match **home {
        Home::Slot(space, ..) if passes.trees(space).is_some() => false,
        Home::Slot(_, Bank::Cell, _) => true,
        Home::Slot(space, Bank::Data, _) => is_read(space, *field),
        Home::Slot(_, Bank::State | Bank::Output | Bank::Temp, _)
        | Home::Uniform(_)
        | Home::Series(_)
        | Home::Event(..)
        | Home::Flat(..)
        | Home::Edges
        | Home::Register => false,
    };
    (0..).map(FieldId).zip(homes).filter(is_narrow).map(|(field, _)| field).collect()
}

/// What others read of a space along edges.
fn shared(program: &Program, passes: &Passes, space: SpaceId) -> Vec<Shared> {
    let ops = program.functions.iter().flat_map(|function| function.ops());
    let along_source = |op: &crate::step::Op| match op.kind {
        OpKind::Gather(field, Map::Source) => Some(field),
        _ => None,
    };
    let of_space = |field: &FieldId| program.field(*field).over == Some(space);
    let fields: BTreeSet<FieldId> = ops.filter_map(along_source).filter(of_space).collect();
    let last = passes.group(space).passes - 1;
    let pass = |field: FieldId| match passes.trees(space) {
        // Branched cells have taken their step before the first pass of the others.
        Some(_) => 0,
        None => match passes.stores(program, Role::Step, field).last() {
            Some(&pass) => pass,
            // What is computed where it is recorded, no step has.
            None if program.field(field).kind == FieldKind::Temp => u32::MAX,
            None => last,
        },
    };
    fields.into_iter().map(|field| Shared { field, pass: pass(field) }).collect()
}
