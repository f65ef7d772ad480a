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

mod connected;
pub mod cost;
mod deliveries;
mod device;
mod lattice;
mod levels;
mod order;
mod passes;
mod print;
mod refuse;
mod remember;
mod slabs;
mod travel;
mod trees;

pub use connected::{Connected, Load, Prologue};
pub use deliveries::{Delivery, Effect, is_delivery};
pub use device::{DeviceClass, DevicePlan, GatherForm, Grouping, Stretch, pairs};
pub use lattice::Lattice;
pub use levels::{Levels, Tie};
pub use passes::{Group, Passes};
pub use refuse::Unplanned;
pub use remember::{POST, PRE, Remembers};
pub use slabs::Slabs;
pub use travel::{DeliveryForm, Dense, Events, Traffic};
pub use trees::Trees;

use crate::runtime::machine::Bank;
use crate::step::{
    BinaryOp, Distribution, Elementary, FieldId, FieldKind, Map, Op, OpKind, Origin, OriginId, Phase, Program, Region,
    Role, SpaceId, SpaceKind, Tolerance, Type, UnaryOp, ValueId, Verified,
};
use remember::OfEdges;
use std::collections::{BTreeMap, BTreeSet, HashMap};

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
    /// The pass that stores it, the last one if none does.
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

/// How the loops of a kernel stand to each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Nest {
    /// For every block, for every step: nobody reads anything of these cells.
    Blocks,
    /// For every step, for every block: the cells read of each other, so that the threads meet after every step. What edges bring is in a
    /// buffer `now`; the new values go to `next`, and the two change places.
    Steps,
    /// For every block, one step: the machine goes from pass to pass, and sees to it that what was stored is seen.
    Pass,
}

/// A loop nest: `call`; then for every step the numbers of `time` make a row; then for every block: load registers, `cell`,
/// for every step { `body`, `stores`, `updates` }; store the changed registers. With edges: for every step, for every block: load
/// registers, `cell`, the edges, `body`, `stores`, store the updated registers.
#[derive(Debug, Clone, PartialEq)]
pub struct KernelPlan {
    /// What it is for.
    pub role: Role,
    /// The pass of a step; 0 for other roles.
    pub pass: u32,
    /// Its loops.
    pub nest: Nest,
    /// How many steps one run advances at most.
    pub window: u32,
    /// Names and types of all computed values.
    pub locals: Vec<Local>,
    /// Numbers, once per run.
    pub call: Vec<Stmt>,
    /// Numbers, once per step.
    pub time: Vec<Stmt>,
    /// Numbers of `call` that lanes use.
    pub spread: Vec<Column>,
    /// Numbers of `time` that lanes use: the columns of a step's row.
    pub row: Vec<Column>,
    /// Fields in registers.
    pub registers: Vec<Register>,
    /// Lanes, once per block.
    pub cell: Vec<Stmt>,
    /// What edges do, every block and step, before the body.
    pub edges: Vec<EdgePlan>,
    /// With edges, how the loops over blocks get what they need.
    pub connected: Option<Connected>,
    /// Draws of the body whose counter stays the same over several steps: a block makes them anew only where it changes.
    pub held: Vec<u32>,
    /// Means of Poisson numbers that all cells share: the sums of these distributions are added up once for all of them.
    pub means: Vec<Mean>,
    /// Locals that the edges add to; they begin every step at 0.
    pub sums: Vec<u32>,
    /// Lanes, every block and step.
    pub body: Vec<Stmt>,
    /// Stored every step: fields that the body writes and never reads.
    pub stores: Vec<(FieldId, Operand)>,
    /// New values of registers, at the end of a step; no operand is a register that changes.
    pub updates: Vec<(u32, Operand)>,
    /// Added along maps of branched cells, at the end of a step.
    pub adds: Vec<Add>,
    /// The equations that it solves, if it does nothing else.
    pub solves: Option<Equations>,
    /// How many lane values of the body are live at once.
    pub pressure: u32,
}

impl Plan {
    /// All that has kernels: the plain spaces, then the edges that remember.
    pub fn all_kernels(&self) -> impl Iterator<Item = &SpacePlan> {
        self.spaces.iter().chain(self.deliveries.iter().filter_map(Delivery::kernels))
    }

    /// The most passes of a step.
    pub fn passes(&self) -> u32 {
        let of_edges = self.deliveries.iter().filter_map(Delivery::remembers).map(|_| POST + 1);
        let of_trees = self.trees.iter().map(Trees::passes);
        self.groups.iter().map(|group| group.passes).chain(of_trees).chain(of_edges).max().unwrap_or(1)
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

    /// The relation of a number.
    pub fn relation(&self, number: u32) -> &Relation {
        &self.relations[number as usize]
    }
}

impl KernelPlan {
    /// All operations on lanes.
    fn lanes(&self) -> impl Iterator<Item = &Stmt> {
        let of_edges = self.edges.iter().flat_map(|edges| &edges.body);
        self.cell.iter().chain(of_edges).chain(&self.body)
    }

    /// The distribution that all cells share, if they share this mean.
    pub fn distribution(&self, mean: Operand) -> Option<&Mean> {
        let (Operand::Call(number) | Operand::Time(number)) = mean else { return None };
        self.means.iter().find(|mean| mean.local == number)
    }

    /// Does it compute lanes in single precision between others in double precision?
    pub fn has_singles(&self) -> bool {
        self.lanes().filter_map(|stmt| stmt.local).any(|local| self.locals[local as usize].ty == Type::Single)
    }
}

/// What each element of a branched cell adds where a map leads.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Add {
    /// The map: a number of [`Trees::ties`].
    pub tie: u32,
    /// The sum: a number of [`Trees::fields`].
    pub sum: u32,
    /// What is added.
    pub value: Operand,
}

/// Linear equations along a tree: numbers of [`Trees::fields`], and of the map to the parent in [`Trees::ties`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Equations {
    /// What becomes the solution.
    pub x: u32,
    /// The diagonal.
    pub diag: u32,
    /// Between each element and its parent.
    pub off: u32,
    /// The right-hand side.
    pub rhs: u32,
    /// The map.
    pub parent: u32,
}

/// A loop over the edges of the targets in a block.
#[derive(Debug, Clone, PartialEq)]
pub struct EdgePlan {
    /// The entry of the edge table.
    pub edges: u32,
    /// Lanes, for each edge.
    pub body: Vec<Stmt>,
    /// What each edge adds to which sum, in order.
    pub adds: Vec<(u32, Operand)>,
}

/// A computed value: its name is unique in its kernel, an identifier in snake case and at most [`NAME_WIDTH`] long.
#[derive(Debug, Clone, PartialEq)]
pub struct Local {
    /// Its name.
    pub name: String,
    /// Its type.
    pub ty: Type,
}

/// The longest name of a value.
pub const NAME_WIDTH: usize = 28;

/// A number that lanes use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Column {
    /// What the kernel calls it: the number's own name, or another one for a counter.
    pub name: String,
    /// The number.
    pub local: u32,
    /// As what.
    pub usage: Usage,
}

/// A number that is the mean of Poisson numbers of all cells.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mean {
    /// What the kernel calls the distribution.
    pub name: String,
    /// The number: of `call`, or of `time` where a call makes one step.
    pub local: u32,
    /// Is it nothing else? Then it need not be spread for native lanes.
    pub only: bool,
}

/// How lanes use a number. Of one number, the counter comes first in a list of columns: spreading it may take its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Usage {
    /// As the counter of random numbers: exact, whatever the precision.
    Counter,
    /// Rounded to the kernel's precision (or as a truth value), the same in every lane.
    Spread,
}

/// A field in a register.
#[derive(Debug, Clone, PartialEq)]
pub struct Register {
    /// The field.
    pub field: FieldId,
    /// The register's name.
    pub name: String,
    /// Whether anything uses it; otherwise it is not loaded.
    pub used: bool,
    /// Whether steps change it; then it is stored at the end of the block.
    pub changes: bool,
}

/// What an operation reads.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Operand {
    /// A constant.
    Real(f64),
    /// A constant of single precision.
    Single(f32),
    /// A truth constant.
    Bool(bool),
    /// A number of `call`.
    Call(u32),
    /// A number of `time`.
    Time(u32),
    /// Lanes of `cell`, of the same edges or of `body`; or a sum.
    Lanes(u32),
    /// A register: an index into `registers`.
    Register(u32),
}

impl Operand {
    /// Does it depend on no cell?
    pub fn is_number(self) -> bool {
        match self {
            Operand::Real(_) | Operand::Single(_) | Operand::Bool(_) | Operand::Call(_) | Operand::Time(_) => true,
            Operand::Lanes(_) | Operand::Register(_) => false,
        }
    }
}

/// One operation.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Stmt {
    /// The value it defines; none for an event.
    pub local: Option<u32>,
    /// What it computes.
    pub expr: Expr,
    /// Where it comes from.
    pub origin: Option<OriginId>,
}

/// What an operation computes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Expr {
    /// An entry of the uniform table.
    Uniform(u32),
    /// The time at the start of the step: the step times the entry of the uniform table that holds `dt`.
    Time(u32),
    /// The number of the step.
    StepIndex,
    /// The number of the cell.
    Index,
    /// Of the edge's source: an entry of the `shared` of its space.
    There(u32),
    /// Where a map of branched cells leads: a number of [`Trees::ties`], and of [`Trees::fields`].
    Along(u32, u32),
    /// The operand itself.
    Copy(Operand),
    /// One operand.
    Unary(UnaryOp, Operand),
    /// An elementary function within a tolerance.
    Approximate(Elementary, Tolerance, Operand),
    /// Two operands.
    Binary(BinaryOp, Operand, Operand),
    /// `a * b + c`, rounded once.
    Fma(Operand, Operand, Operand),
    /// Condition, then, else; both values are real.
    Select(Operand, Operand, Operand),
    /// Distribution, stream, counter.
    Draw(Distribution, u64, Operand),
    /// An entry of the series table at a time.
    Sample(u32, Operand),
    /// Event number of the space, mask.
    Emit(u32, Operand),
}

impl Expr {
    /// What it reads, in order.
    pub fn operands(&self) -> Vec<Operand> {
        match *self {
            Expr::Uniform(_) | Expr::Time(_) | Expr::StepIndex | Expr::Index | Expr::There(_) | Expr::Along(..) => {
                vec![]
            }
            Expr::Copy(a)
            | Expr::Unary(_, a)
            | Expr::Approximate(_, _, a)
            | Expr::Draw(_, _, a)
            | Expr::Sample(_, a)
            | Expr::Emit(_, a) => vec![a],
            Expr::Binary(_, a, b) => vec![a, b],
            Expr::Fma(a, b, c) | Expr::Select(a, b, c) => vec![a, b, c],
        }
    }

    /// The same with other operands.
    pub fn map_operands(self, map: impl Fn(Operand) -> Operand) -> Expr {
        match self {
            Expr::Uniform(_) | Expr::Time(_) | Expr::StepIndex | Expr::Index | Expr::There(_) | Expr::Along(..) => self,
            Expr::Copy(a) => Expr::Copy(map(a)),
            Expr::Unary(op, a) => Expr::Unary(op, map(a)),
            Expr::Approximate(function, tolerance, a) => Expr::Approximate(function, tolerance, map(a)),
            Expr::Binary(op, a, b) => Expr::Binary(op, map(a), map(b)),
            Expr::Fma(a, b, c) => Expr::Fma(map(a), map(b), map(c)),
            Expr::Select(a, b, c) => Expr::Select(map(a), map(b), map(c)),
            Expr::Draw(distribution, stream, counter) => Expr::Draw(distribution, stream, map(counter)),
            Expr::Sample(series, time) => Expr::Sample(series, map(time)),
            Expr::Emit(event, mask) => Expr::Emit(event, map(mask)),
        }
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
    let mut counts: HashMap<(SpaceId, u8), u32> = HashMap::new();
    let mut next = |space: SpaceId, kind: u8| {
        let count = counts.entry((space, kind)).or_default();
        *count += 1;
        *count - 1
    };
    let (mut uniform, mut one_series) = (0..uniforms.len() as u32, 0..series.len() as u32);
    let given = program.fields.len() as u32;
    let flat = |id: u32| passes.trees.iter().find_map(|trees| trees.flat(FieldId(id)));
    let home = |(id, field): (u32, &crate::step::Field)| match (field.kind, field.over) {
        (_, Some(s)) if id < given && flat(id).is_some() => Home::Flat(s, flat(id).unwrap_or_default()),
        (FieldKind::Uniform, _) => Home::Uniform(uniform.next().expect("as many as fields")),
        (FieldKind::Series, _) => Home::Series(one_series.next().expect("as many as fields")),
        (FieldKind::Const | FieldKind::Data, Some(s)) if id < given && is_delivery(program, s) => Home::Edges,
        (FieldKind::Data, Some(s)) => Home::Slot(s, Bank::Data, next(s, 0)),
        (FieldKind::Const, Some(s)) => Home::Slot(s, Bank::Cell, next(s, 1)),
        (FieldKind::State, Some(s)) => Home::Slot(s, Bank::State, next(s, 2)),
        (FieldKind::Output, Some(s)) => Home::Slot(s, Bank::Output, next(s, 3)),
        (FieldKind::Event, Some(s)) => Home::Event(s, next(s, 4)),
        (FieldKind::Temp, Some(s)) if kept.contains(&FieldId(id)) => Home::Slot(s, Bank::Temp, next(s, 5)),
        (FieldKind::Temp, _) => Home::Register,
        (FieldKind::Data | FieldKind::Const | FieldKind::State | FieldKind::Output | FieldKind::Event, None) => {
            panic!("`refuse` refuses values over nothing")
        }
    };
    let homes: Vec<Home> = (0..).zip(&of_edges.program.fields).map(home).collect();
    let spaces = || (0..program.spaces.len() as u32).map(SpaceId);
    let relations: Vec<Relation> = spaces()
        .filter_map(|space| match program.space(space).kind {
            SpaceKind::Relation { .. } if is_delivery(program, space) => None,
            SpaceKind::Relation { from, to } => {
                let narrow = options.precision == Precision::Bf16 && from == to;
                Some(Relation { space, name: program.space(space).name.clone(), from, to, narrow })
            }
            SpaceKind::Plain | SpaceKind::Product { .. } | SpaceKind::Subset { .. } => None,
        })
        .collect();
    let are_edges = |space: SpaceId| matches!(program.space(space).kind, SpaceKind::Relation { .. });
    let plain: Vec<SpaceId> = spaces().filter(|&space| !are_edges(space)).collect();
    let shared: Vec<Vec<Shared>> = plain.iter().map(|&space| shared(program, &passes, space)).collect();
    let surroundings = Surroundings { program, homes: &homes, relations: &relations, passes: &passes, shared: &shared };
    let spaces: Vec<SpacePlan> = plain.iter().map(|&space| surroundings.space_plan(space, options)).collect();
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

/// What of a pass of a function concerns a space: its own regions, those over nothing, and those of the edges that lead to it.
struct Part<'a> {
    role: Role,
    pass: u32,
    nest: Nest,
    space: SpaceId,
    steps: u32,
    regions: Vec<&'a Region>,
    /// Regions of edges, with the entry of the space's edge table.
    edges: Vec<(u32, &'a Region)>,
    /// The equations that it solves, if it does nothing else.
    solves: Option<Equations>,
}

impl<'a> Part<'a> {
    /// None if the pass does nothing there.
    fn new(all: Surroundings<'a>, role: Role, pass: u32, space: SpaceId, edges: &[u32]) -> Option<Part<'a>> {
        let function = all.program.function(role)?;
        let stages = function.stages.iter().enumerate().filter_map(|(at, stage)| Some((at, stage.region()?)));
        // What runs once, or over nothing, is computed wherever it is used.
        let everywhere = |region: &Region| region.phase() != Phase::Body;
        let in_pass = |at: usize| all.passes.of(role, at) == pass;
        let of_space = |region: &Region| region.over.is_none_or(|over| over == space);
        let of_edge = |(at, region): (usize, &'a Region)| {
            let leads = |&number: &u32| region.over == Some(all.relations[number as usize].space);
            let entry = edges.iter().position(leads).filter(|_| in_pass(at))?;
            Some((entry as u32, region))
        };
        let edges: Vec<(u32, &Region)> = stages.clone().filter_map(of_edge).collect();
        let regions: Vec<&Region> = stages
            .filter(|(at, region)| of_space(region) && (everywhere(region) || in_pass(*at)))
            .map(|(_, region)| region)
            .collect();
        let trees = all.passes.trees(space);
        let solves = trees.filter(|_| role == Role::Step).and_then(|trees| trees.equations(space, pass));
        let works = !edges.is_empty()
            || solves.is_some()
            || regions.iter().any(|region| region.over.is_some() && (pass == 0 || !everywhere(region)));
        let nest = match role {
            Role::Step if !all.passes.group(space).is_alone() => Nest::Pass,
            Role::Step if !edges.is_empty() => Nest::Steps,
            Role::Init | Role::Step | Role::Observe => Nest::Blocks,
        };
        let regions = if solves.is_some() { Vec::new() } else { regions };
        works.then_some(Part { role, pass, nest, space, steps: function.steps, regions, edges, solves })
    }

    /// All operations, in the order of the function.
    fn ops(&self) -> impl Iterator<Item = &'a crate::step::Op> {
        let early = self.regions.iter().filter(|region| region.phase() != Phase::Body);
        let bodies = self.regions.iter().filter(|region| region.phase() == Phase::Body);
        early.chain(self.edges.iter().map(|(_, region)| region)).chain(bodies).flat_map(|region| &region.ops)
    }
}

impl Surroundings<'_> {
    fn space_plan(self, space: SpaceId, options: &PlanOptions) -> SpacePlan {
        let is_flat = |field: &FieldId| matches!(self.homes[field.0 as usize], Home::Flat(..));
        let of = |kind: FieldKind| {
            let mut fields = self.program.fields_where(|field| field.kind == kind && field.over == Some(space));
            fields.retain(|field| !is_flat(field));
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
            None => vectors(pressure).max(least),
        };
        let chosen = [4, 2, 1].into_iter().find(|&n| n <= most && (n == 1 || !too_large(n)));
        let vectors = options.vectors.or(chosen).unwrap_or(1);
        let flat = |id: u32| -> Option<(FieldId, Bank)> {
            let field = FieldId(id);
            let bank = match self.program.field(field).kind {
                FieldKind::State => Bank::State,
                FieldKind::Const => Bank::Cell,
                FieldKind::Output => Bank::Output,
                FieldKind::Data => Bank::Data,
                FieldKind::Temp => Bank::Temp,
                FieldKind::Uniform | FieldKind::Series | FieldKind::Event => return None,
            };
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
            flat: (0..self.program.fields.len() as u32).filter_map(flat).collect(),
            events: of(FieldKind::Event),
            edges,
            shared: self.shared[space.0 as usize].clone(),
            kernels,
        }
    }
}

/// What a device keeps in 16 bits, if it keeps anything so: what steps only read. Of branched cells nothing: currents between
/// compartments are small differences of large numbers.
fn narrow(homes: &[Home], spaces: &[SpacePlan], passes: &Passes) -> Vec<FieldId> {
    let is_read = |space: SpaceId, field: FieldId| {
        // What only `init` reads makes states.
        let later = spaces[space.0 as usize].kernels.iter().filter(|kernel| kernel.role != Role::Init);
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
    let pass = |field: FieldId| passes.stores(program, field).last().copied().unwrap_or(last);
    fields.into_iter().map(|field| Shared { field, pass: pass(field) }).collect()
}

/// What is known of a field while a phase is walked through.
#[derive(Debug, Clone, Copy, Default)]
struct Touch {
    register: Option<u32>,
    /// The value stored last.
    now: Option<Operand>,
}

struct Builder<'a> {
    program: &'a Program,
    homes: &'a [Home],
    all: Surroundings<'a>,
    /// The edge table of the space.
    edges: &'a [u32],
    part: &'a Part<'a>,
    plan: KernelPlan,
    values: HashMap<ValueId, Operand>,
    /// Numbers of `call` as lanes compute them.
    alike: HashMap<u32, Operand>,
    /// Are numbers as precise as lanes, or is that of no account?
    one_precision: bool,
    hints: HashMap<ValueId, String>,
    taken: BTreeSet<String>,
    touched: BTreeMap<FieldId, Touch>,
    /// Numbers that exist already: uniform fields, time, step.
    numbers: Vec<(Expr, Operand)>,
    /// While a region of edges is planned: the space of their sources.
    from: Option<SpaceId>,
}

impl<'a> Builder<'a> {
    fn new(all: Surroundings<'a>, edges: &'a [u32], part: &'a Part<'a>, precision: Precision) -> Builder<'a> {
        let most = part.ops().count();
        let numbered = NUMBERED.iter().flat_map(|word| (0..most).map(move |number| format!("{word}{number}")));
        let taken = RESERVED.iter().map(|word| word.to_string()).chain(numbered).collect();
        let plan = KernelPlan {
            role: part.role,
            pass: part.pass,
            nest: part.nest,
            window: part.steps,
            locals: Vec::new(),
            call: Vec::new(),
            time: Vec::new(),
            spread: Vec::new(),
            row: Vec::new(),
            registers: Vec::new(),
            cell: Vec::new(),
            edges: Vec::new(),
            connected: None,
            held: Vec::new(),
            means: Vec::new(),
            sums: Vec::new(),
            body: Vec::new(),
            stores: Vec::new(),
            updates: Vec::new(),
            adds: Vec::new(),
            solves: part.solves,
            pressure: 0,
        };
        Builder {
            program: all.program,
            homes: all.homes,
            all,
            edges,
            part,
            plan,
            values: HashMap::new(),
            alike: HashMap::new(),
            one_precision: precision == Precision::F64 || part.role == Role::Init,
            hints: HashMap::new(),
            taken,
            touched: BTreeMap::new(),
            numbers: Vec::new(),
            from: None,
        }
    }

    fn build(mut self) -> KernelPlan {
        self.name_registers();
        for phase in [Phase::Call, Phase::Time, Phase::Cell] {
            self.phase(phase);
        }
        self.edge_regions();
        self.phase(Phase::Body);
        for (field, touch) in std::mem::take(&mut self.touched) {
            match (touch.now, touch.register) {
                (Some(value), Some(register)) => self.plan.updates.push((register, value)),
                (Some(value), None) if self.homes[field.0 as usize] != Home::Register => {
                    self.plan.stores.push((field, value));
                }
                (Some(_), None) | (None, _) => {}
            }
        }
        self.keep_updates_apart();
        for &(register, _) in &self.plan.updates {
            self.plan.registers[register as usize].changes = true;
        }
        prune(&mut self.plan);
        order::order(&mut self.plan);
        if self.plan.nest == Nest::Steps {
            // What others read next must be written in every step, changed or not.
            let shared = &self.all.shared[self.part.space.0 as usize];
            let read = |field: FieldId| shared.iter().any(|shared| shared.field == field);
            let registers = self.plan.registers.iter_mut().filter(|register| read(register.field));
            registers.for_each(|register| register.used = true);
        }
        self.columns();
        self.plan.held = held(&self.plan);
        self.means();
        if !self.plan.edges.is_empty() {
            let shared = &self.all.shared[self.part.space.0 as usize];
            self.plan.connected = Some(Connected::new(&self.plan, shared, self.homes));
        }
        self.plan.pressure = pressure(&self.plan);
        self.plan
    }

    /// Gives every field that is read before it is stored its register, before other values take its name, and finds out
    /// which values are stored where.
    fn name_registers(&mut self) {
        let mut written = BTreeSet::new();
        for op in self.part.ops() {
            if let OpKind::Accumulate(field, ..) = op.kind {
                written.insert(field);
            }
            let loads = match op.kind {
                OpKind::Gather(_, Map::In | Map::Of | Map::Parent) => None,
                OpKind::Field(field) | OpKind::Gather(field, Map::Target) => Some(field),
                // Of each other cells read what they have in registers.
                OpKind::Gather(field, _) if self.plan.nest == Nest::Steps => Some(field),
                _ => None,
            };
            if let Some(field) = loads
                && !self.is_uniform(field)
                && !written.contains(&field)
                && !self.touched.contains_key(&field)
            {
                assert!(
                    self.homes[field.0 as usize] != Home::Register,
                    "the verifier checks that temps are stored before they are read"
                );
                let name = self.short_name(field);
                let name = self.fresh(&name);
                self.plan.registers.push(Register { field, name, used: true, changes: false });
                let register = Some(self.plan.registers.len() as u32 - 1);
                self.touched.insert(field, Touch { register, now: None });
            }
            if let OpKind::Store(field, value) = op.kind {
                written.insert(field);
                let suffix = if self.touched.contains_key(&field) { "_next" } else { "" };
                let hint = format!("{}{suffix}", self.short_name(field));
                self.hints.entry(value).or_insert(hint);
            }
        }
    }

    fn is_uniform(&self, field: FieldId) -> bool {
        self.program.field(field).kind == FieldKind::Uniform
    }

    fn phase(&mut self, phase: Phase) {
        let part = self.part;
        for op in part.regions.iter().filter(|region| region.phase() == phase).flat_map(|region| &region.ops) {
            let value = self.op(phase, op);
            if let (Some(result), Some(value)) = (op.result, value) {
                self.values.insert(result, value);
            }
        }
    }

    fn edge_regions(&mut self) {
        let part = self.part;
        for &(edges, region) in &part.edges {
            for op in &region.ops {
                if let OpKind::Accumulate(field, ..) = op.kind {
                    self.sum(field);
                }
            }
            self.from = Some(self.all.relations[self.edges[edges as usize] as usize].from);
            self.plan.edges.push(EdgePlan { edges, body: Vec::new(), adds: Vec::new() });
            for op in &region.ops {
                let value = self.op(Phase::Body, op);
                if let (Some(result), Some(value)) = (op.result, value) {
                    self.values.insert(result, value);
                }
            }
        }
        self.from = None;
        // What arrives is there before anything is computed of it.
        for edges in &mut self.plan.edges {
            edges.body.sort_by_key(|stmt| !matches!(stmt.expr, Expr::There(_)));
        }
    }

    /// Makes the local that a temp field adds up in.
    fn sum(&mut self, field: FieldId) {
        if self.touched.get(&field).is_none_or(|touch| touch.now.is_none()) {
            let local = self.plan.locals.len() as u32;
            let name = self.short_name(field);
            let name = self.fresh(&name);
            self.plan.locals.push(Local { name, ty: Type::Real });
            self.plan.sums.push(local);
            self.touched.entry(field).or_default().now = Some(Operand::Lanes(local));
        }
    }

    fn operand(&self, value: ValueId) -> Operand {
        *self.values.get(&value).expect("the verifier checks that values are defined before they are used")
    }

    /// Plans one operation; the answer is what stands for its result.
    fn op(&mut self, phase: Phase, op: &Op) -> Option<Operand> {
        let Op { result, origin, .. } = *op;
        let at = |v: ValueId| self.operand(v);
        let expr = match op.kind {
            OpKind::Const(x) => return Some(Operand::Real(x)),
            OpKind::Bool(b) => return Some(Operand::Bool(b)),
            OpKind::Field(f) => return Some(self.read(f, origin)),
            OpKind::Time => return Some(self.number(self.time(), "t", origin)),
            OpKind::StepIndex => return Some(self.number(Expr::StepIndex, "step_index", origin)),
            OpKind::Store(f, value) => {
                let value = at(value);
                self.touched.entry(f).or_default().now = Some(value);
                return None;
            }
            OpKind::Emit(f, mask) => {
                let Home::Event(_, event) = self.homes[f.0 as usize] else {
                    panic!("the verifier checks that emit names an event field")
                };
                let stmt = Stmt { local: None, expr: Expr::Emit(event, at(mask)), origin };
                self.plan.body.push(stmt);
                return None;
            }
            OpKind::Accumulate(f, Some(map @ (Map::In | Map::Of | Map::Parent)), value) => {
                let (tie, sum) = self.along(f, map);
                self.plan.adds.push(Add { tie, sum, value: at(value) });
                return None;
            }
            OpKind::Accumulate(f, _, value) => {
                let value = at(value);
                let Some(Operand::Lanes(sum)) = self.touched[&f].now else { panic!("a sum has a local") };
                self.plan.edges.last_mut().expect("the region has begun").adds.push((sum, value));
                return None;
            }
            OpKind::Gather(f, Map::Target) => return Some(self.read(f, origin)),
            OpKind::Gather(f, map @ (Map::In | Map::Of | Map::Parent)) => {
                let (tie, field) = self.along(f, map);
                Expr::Along(tie, field)
            }
            OpKind::Gather(f, _) => {
                let from = self.from.expect("`refuse` lets only edges read what others have");
                let entry = self.all.shared[from.0 as usize].iter().position(|shared| shared.field == f);
                Expr::There(entry.expect("all fields that are read there are listed") as u32)
            }
            OpKind::Back(..) => panic!("`refuse` refuses what looks back"),
            OpKind::Spike(_, a) => Expr::Binary(BinaryOp::Gt, at(a), Operand::Real(0.0)),
            OpKind::Index => Expr::Index,
            OpKind::Unary(op, a) => match (op, at(a)) {
                (UnaryOp::Narrow, Operand::Real(x)) => return Some(Operand::Single(x as f32)),
                (op, a) => Expr::Unary(op, a),
            },
            OpKind::Approximate(function, tolerance, a) => Expr::Approximate(function, tolerance, at(a)),
            OpKind::Binary(op, a, b) => Expr::Binary(op, at(a), at(b)),
            OpKind::Fma(a, b, c) => Expr::Fma(at(a), at(b), at(c)),
            OpKind::Select(c, a, b) => Expr::Select(at(c), at(a), at(b)),
            OpKind::Draw(distribution, stream, counter) => Expr::Draw(distribution, stream, at(counter)),
            OpKind::Sample(f, t) => {
                let Home::Series(series) = self.homes[f.0 as usize] else {
                    panic!("the verifier checks that sample names a series")
                };
                Expr::Sample(series, at(t))
            }
        };
        let result = result.expect("an operation without effect has a result");
        let hint = self.hints.get(&result).cloned().unwrap_or_else(|| format!("x{}", result.0));
        let operand = self.compute(phase, expr, &hint, origin);
        if let (Operand::Call(number), true) = (operand, op.exact && !self.one_precision) {
            self.also_as_lanes(number, expr, &hint, origin);
        }
        Some(operand)
    }

    /// The numbers of a map of the space, and of a field that it reaches.
    fn along(&self, field: FieldId, map: Map) -> (u32, u32) {
        let space = self.part.space;
        let trees = self.all.passes.trees(space).expect("`refuse` lets only branched cells have such maps");
        (trees.tie(space, map), trees.flat(field).expect("all fields that maps reach are listed"))
    }

    /// Computes a number of `call` once more, in the precision of lanes.
    fn also_as_lanes(&mut self, number: u32, expr: Expr, hint: &str, origin: Option<OriginId>) {
        let expr = expr.map_operands(|operand| self.alike(operand));
        let lanes = self.local(&expr, hint);
        self.plan.cell.push(Stmt { local: Some(lanes), expr, origin });
        self.alike.insert(number, Operand::Lanes(lanes));
    }

    /// What lanes use in place of an operand.
    fn alike(&self, operand: Operand) -> Operand {
        match operand {
            Operand::Call(number) => self.alike.get(&number).copied().unwrap_or(operand),
            Operand::Real(_)
            | Operand::Single(_)
            | Operand::Bool(_)
            | Operand::Time(_)
            | Operand::Lanes(_)
            | Operand::Register(_) => operand,
        }
    }

    /// A new local for what an expression gives.
    fn local(&mut self, expr: &Expr, hint: &str) -> u32 {
        let ty = self.type_of_expr(expr);
        let name = self.fresh(hint);
        self.plan.locals.push(Local { name, ty });
        self.plan.locals.len() as u32 - 1
    }

    fn time(&self) -> Expr {
        let dt = self.program.find_field("dt").expect("the verifier checks that time needs a uniform named dt");
        let Home::Uniform(index) = self.homes[dt.0 as usize] else { panic!("the verifier checks that dt is uniform") };
        Expr::Time(index)
    }

    /// A number that may exist already.
    fn number(&mut self, expr: Expr, hint: &str, origin: Option<OriginId>) -> Operand {
        if let Some(&(_, operand)) = self.numbers.iter().find(|(e, _)| *e == expr) {
            return operand;
        }
        let operand = self.compute(Phase::Call, expr, hint, origin);
        self.numbers.push((expr, operand));
        operand
    }

    /// Appends an operation where its operands allow and its region asks.
    fn compute(&mut self, phase: Phase, expr: Expr, hint: &str, origin: Option<OriginId>) -> Operand {
        let local = self.local(&expr, hint);
        let stmt = Stmt { local: Some(local), expr, origin };
        let of_cells = match expr {
            Expr::Index | Expr::There(_) | Expr::Along(..) | Expr::Draw(..) => true,
            Expr::Uniform(_)
            | Expr::Time(_)
            | Expr::StepIndex
            | Expr::Copy(_)
            | Expr::Unary(..)
            | Expr::Approximate(..)
            | Expr::Binary(..)
            | Expr::Fma(..)
            | Expr::Select(..)
            | Expr::Sample(..)
            | Expr::Emit(..) => !expr.operands().iter().all(|o| o.is_number()),
        };
        let reads_time = || expr.operands().iter().any(|operand| matches!(operand, Operand::Time(_)));
        if of_cells {
            // A counter is exact, whatever the precision.
            let as_numbers = matches!(expr, Expr::Draw(..)) || reads_time();
            let expr = match expr {
                // So is the mean of a distribution, which then is the same for all cells.
                Expr::Binary(BinaryOp::Poisson, u, mean) => Expr::Binary(BinaryOp::Poisson, self.alike(u), mean),
                expr if as_numbers => expr,
                expr => expr.map_operands(|operand| self.alike(operand)),
            };
            let stmt = Stmt { expr, ..stmt };
            match phase {
                Phase::Cell => self.plan.cell.push(stmt),
                Phase::Body if self.from.is_some() => {
                    self.plan.edges.last_mut().expect("the region has begun").body.push(stmt);
                }
                Phase::Body => self.plan.body.push(stmt),
                Phase::Call | Phase::Time => {
                    panic!("the verifier checks that values of cells stay out of uniform regions")
                }
            }
            return Operand::Lanes(local);
        }
        if matches!(expr, Expr::Time(_) | Expr::StepIndex) || reads_time() {
            self.plan.time.push(stmt);
            Operand::Time(local)
        } else {
            self.plan.call.push(stmt);
            Operand::Call(local)
        }
    }

    fn read(&mut self, field: FieldId, origin: Option<OriginId>) -> Operand {
        if let Home::Uniform(index) = self.homes[field.0 as usize] {
            let hint = self.short_name(field);
            return self.number(Expr::Uniform(index), &hint, origin);
        }
        let touch = self.touched[&field];
        touch.now.or(touch.register.map(Operand::Register)).expect("every field that is read has a value or a register")
    }

    /// Copies registers that another register is to become, so that updates can be done in any order.
    fn keep_updates_apart(&mut self) {
        let changing: BTreeSet<u32> = self.plan.updates.iter().map(|(register, _)| *register).collect();
        for at in 0..self.plan.updates.len() {
            let (register, value) = self.plan.updates[at];
            if let Operand::Register(other) = value
                && other != register
                && changing.contains(&other)
            {
                let hint = format!("{}_next", self.plan.registers[register as usize].name);
                self.plan.updates[at].1 = self.compute(Phase::Body, Expr::Copy(value), &hint, None);
            }
        }
        self.plan.updates.retain(|&(register, value)| value != Operand::Register(register));
    }

    /// Lists the numbers that lanes use.
    fn columns(&mut self) {
        let plan = &self.plan;
        let mut used: BTreeSet<(bool, u32, Usage)> = BTreeSet::new();
        let mut note = |operand: Operand, usage: Usage| match operand {
            Operand::Call(local) => {
                used.insert((false, local, usage));
            }
            Operand::Time(local) => {
                used.insert((true, local, usage));
            }
            Operand::Real(_) | Operand::Single(_) | Operand::Bool(_) | Operand::Lanes(_) | Operand::Register(_) => {}
        };
        for stmt in plan.cell.iter().chain(plan.edges.iter().flat_map(|edges| &edges.body)).chain(&plan.body) {
            let usage = if matches!(stmt.expr, Expr::Draw(..)) { Usage::Counter } else { Usage::Spread };
            stmt.expr.operands().into_iter().for_each(|operand| note(operand, usage));
        }
        let adds = plan.edges.iter().flat_map(|edges| &edges.adds).map(|(_, value)| *value);
        let adds = adds.chain(plan.adds.iter().map(|add| add.value));
        let stores = adds.chain(plan.stores.iter().map(|(_, value)| *value));
        stores.chain(plan.updates.iter().map(|(_, value)| *value)).for_each(|value| note(value, Usage::Spread));
        for (of_time, local, usage) in used {
            let own = self.plan.locals[local as usize].name.clone();
            let name = match usage {
                Usage::Spread => own,
                Usage::Counter => self.fresh(&format!("{own}_counter")),
            };
            let column = Column { name, local, usage };
            if of_time { self.plan.row.push(column) } else { self.plan.spread.push(column) }
        }
    }

    /// Lists the distributions that all cells share. One that changes in time is added up for every step, which pays where all cells
    /// make the step before the next one.
    fn means(&mut self) {
        let every_step = self.plan.nest == Nest::Pass;
        let mut found: BTreeMap<u32, bool> = BTreeMap::new();
        for stmt in self.plan.lanes() {
            if let Expr::Binary(BinaryOp::Poisson, _, mean) = stmt.expr {
                match mean {
                    Operand::Call(local) => found.insert(local, true),
                    Operand::Time(local) if every_step => found.insert(local, true),
                    Operand::Time(_)
                    | Operand::Real(_)
                    | Operand::Single(_)
                    | Operand::Bool(_)
                    | Operand::Lanes(_)
                    | Operand::Register(_) => None,
                };
            }
        }
        let stored = self.plan.stores.iter().map(|(_, value)| *value);
        let results = stored.chain(self.plan.updates.iter().map(|(_, value)| *value));
        let added = self.plan.edges.iter().flat_map(|edges| &edges.adds).map(|(_, value)| *value);
        let added = added.chain(self.plan.adds.iter().map(|add| add.value));
        let of_lanes = self.plan.lanes().flat_map(|stmt| match stmt.expr {
            Expr::Binary(BinaryOp::Poisson, u, _) => vec![u],
            // Counters are columns of their own.
            Expr::Draw(..) => vec![],
            expr => expr.operands(),
        });
        for operand in of_lanes.chain(results).chain(added) {
            if let Operand::Call(local) | Operand::Time(local) = operand
                && let Some(only) = found.get_mut(&local)
            {
                *only = false;
            }
        }
        for (local, only) in found {
            let name = self.fresh(&format!("{}_distribution", self.plan.locals[local as usize].name));
            self.plan.means.push(Mean { name, local, only });
        }
    }

    fn type_of(&self, operand: Operand) -> Type {
        match operand {
            Operand::Real(_) | Operand::Register(_) => Type::Real,
            Operand::Single(_) => Type::Single,
            Operand::Bool(_) => Type::Mask,
            Operand::Call(local) | Operand::Time(local) | Operand::Lanes(local) => self.plan.locals[local as usize].ty,
        }
    }

    fn type_of_expr(&self, expr: &Expr) -> Type {
        match *expr {
            Expr::Uniform(_)
            | Expr::Time(_)
            | Expr::StepIndex
            | Expr::Index
            | Expr::There(_)
            | Expr::Along(..)
            | Expr::Approximate(..)
            | Expr::Select(..)
            | Expr::Draw(..)
            | Expr::Sample(..) => Type::Real,
            Expr::Copy(a) | Expr::Fma(a, ..) => self.type_of(a),
            // Arithmetic of singles gives singles.
            Expr::Unary(op, a) if op.types() == (Type::Real, Type::Real) => self.type_of(a),
            Expr::Unary(op, _) => op.types().1,
            Expr::Binary(op, a, _) if op.types() == (Type::Real, Type::Real) => self.type_of(a),
            Expr::Binary(op, ..) => op.types().1,
            Expr::Emit(..) => Type::Mask,
        }
    }

    /// A field's name without its space, as an identifier.
    fn short_name(&self, field: FieldId) -> String {
        let name = &self.program.field(field).name;
        let space = &self.program.space(self.part.space).name;
        let own = name.strip_prefix(space.as_str()).and_then(|rest| rest.strip_prefix(['.', '\'']));
        identifier(own.unwrap_or(name))
    }

    /// A name that nothing else in the kernel has.
    fn fresh(&mut self, hint: &str) -> String {
        let hint = &hint[..hint.len().min(NAME_WIDTH - 4)];
        let numbered = (2..).map(|n| format!("{hint}_{n}"));
        let name = std::iter::once(hint.to_string()).chain(numbered).find(|name| !self.taken.contains(name));
        let name = name.expect("there are more numbers than names");
        self.taken.insert(name.clone());
        name
    }
}

/// A name as a lower-case ASCII identifier.
pub fn identifier(name: &str) -> String {
    let letter = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '_' };
    let mut name: String = name.chars().map(letter).collect();
    if name.starts_with(|c: char| !c.is_ascii_lowercase()) {
        name.insert_str(0, "n_");
    }
    name
}

/// Words that name no value: those of the target languages, and those that the surroundings of an emitted loop use.
const RESERVED: &[&str] = &[
    "abstract", "all", "arrived", "as", "async", "at", "await", "auto", "become", "block", "blocks", "bool", "box",
    "break", "call", "case", "cell", "cells", "char", "const", "continue", "crate", "data", "default", "do", "double",
    "dyn", "edge", "edges", "else", "enum", "extern", "f32", "f64", "false", "final", "first", "flat", "float", "fn",
    "for", "gen", "goto", "if", "impl", "in", "init", "int", "let", "links", "long", "loop", "macro", "map", "match",
    "math", "mod", "move", "mut", "next", "now", "observe", "order", "output", "override", "own", "priv", "pub", "ref",
    "return", "row", "rows", "self", "series", "share", "short", "signed", "sizeof", "some", "spikes", "state",
    "static", "step", "steps", "struct", "super", "sums", "switch", "temp", "ties", "trait", "true", "try", "type",
    "typeof", "uniforms", "union", "unsafe", "unsigned", "unsized", "use", "virtual", "void", "volatile", "where",
    "while", "width", "window", "yield",
];

/// Words that generated code uses with a number behind, one at most for each operation.
const NUMBERED: &[&str] = &["arriving", "draw", "from", "held", "width"];

/// Draws that several steps may share: lanes live as long as the loop over steps where blocks are outermost.
fn held(plan: &KernelPlan) -> Vec<u32> {
    let every_step =
        |counter: u32| plan.time.iter().any(|time| time.local == Some(counter) && time.expr == Expr::StepIndex);
    let shared = |stmt: &&Stmt| match stmt.expr {
        Expr::Draw(_, _, Operand::Time(counter)) => plan.edges.is_empty() && !every_step(counter),
        _ => false,
    };
    plan.body.iter().filter(shared).filter_map(|stmt| stmt.local).collect()
}

/// Drops operations that nothing uses.
fn prune(plan: &mut KernelPlan) {
    let mut used: BTreeSet<u32> = BTreeSet::new();
    let note = |operand: Operand, used: &mut BTreeSet<u32>| {
        if let Operand::Call(local) | Operand::Time(local) | Operand::Lanes(local) = operand {
            used.insert(local);
        }
    };
    plan.stores.iter().for_each(|(_, value)| note(*value, &mut used));
    plan.updates.iter().for_each(|(_, value)| note(*value, &mut used));
    plan.edges.iter().flat_map(|edges| &edges.adds).for_each(|(_, value)| note(*value, &mut used));
    plan.adds.iter().for_each(|add| note(add.value, &mut used));
    let of_edges = plan.edges.iter_mut().map(|edges| &mut edges.body);
    for stmts in [&mut plan.body].into_iter().chain(of_edges).chain([&mut plan.cell, &mut plan.time, &mut plan.call]) {
        let mut kept = Vec::new();
        for stmt in stmts.drain(..).rev() {
            if stmt.local.is_none_or(|local| used.contains(&local)) {
                stmt.expr.operands().into_iter().for_each(|operand| note(operand, &mut used));
                kept.push(stmt);
            }
        }
        kept.reverse();
        *stmts = kept;
    }
    let mut read: BTreeSet<u32> = plan.updates.iter().map(|(register, _)| *register).collect();
    let of_edges = plan.edges.iter().flat_map(|edges| &edges.body);
    let stmts = plan.cell.iter().chain(of_edges).chain(&plan.body).flat_map(|stmt| stmt.expr.operands());
    let adds = plan.edges.iter().flat_map(|edges| &edges.adds).map(|(_, value)| *value);
    let adds = adds.chain(plan.adds.iter().map(|add| add.value));
    let stores = adds.chain(plan.stores.iter().map(|(_, value)| *value));
    for operand in stmts.chain(stores).chain(plan.updates.iter().map(|(_, value)| *value)) {
        if let Operand::Register(register) = operand {
            read.insert(register);
        }
    }
    for (index, register) in plan.registers.iter_mut().enumerate() {
        register.used = read.contains(&(index as u32));
    }
}

/// The most lane values of edges and body that are live at once: registers that change, until they are read last, and values of the
/// body. What only `cell` computes or loads is not counted: it can stay in memory at no cost.
fn pressure(plan: &KernelPlan) -> u32 {
    let stmts: Vec<&Stmt> = plan.edges.iter().flat_map(|edges| &edges.body).chain(&plan.body).collect();
    let end = stmts.len();
    // For registers and for locals of the body: first and last position where they must be kept.
    let mut registers: BTreeMap<u32, usize> = BTreeMap::new();
    let mut locals: BTreeMap<u32, (usize, usize)> = BTreeMap::new();
    locals.extend(plan.sums.iter().map(|&sum| (sum, (0, 0))));
    for (at, stmt) in stmts.into_iter().enumerate() {
        for operand in stmt.expr.operands() {
            match operand {
                Operand::Register(r) if plan.registers[r as usize].changes => {
                    registers.insert(r, at);
                }
                Operand::Lanes(local) => {
                    if let Some((_, last)) = locals.get_mut(&local) {
                        *last = at;
                    }
                }
                Operand::Register(_)
                | Operand::Real(_)
                | Operand::Single(_)
                | Operand::Bool(_)
                | Operand::Call(_)
                | Operand::Time(_) => {}
            }
        }
        if let Some(local) = stmt.local {
            locals.insert(local, (at, at));
        }
    }
    let updates = plan.updates.iter().map(|(_, value)| value);
    for value in updates.chain(plan.adds.iter().map(|add| &add.value)) {
        if let Operand::Lanes(local) = value
            && let Some((_, last)) = locals.get_mut(local)
        {
            *last = end;
        }
    }
    let live = |at: usize| {
        let locals = locals.values().filter(|(first, last)| *first <= at && at < *last).count();
        let registers = registers.values().filter(|last| **last > at).count();
        (locals + registers) as u32
    };
    (0..end).map(live).max().unwrap_or(0)
}
