//! A kernel as emitters read it: a nest of loops, the values computed in each, and what is stored.
//!
//! In come statements, from what plans a kernel and the passes behind it; out goes nothing but their description.
//! Never true here: a decision.

use super::Connected;
use crate::step::{BinaryOp, Distribution, Elementary, FieldId, OriginId, Role, Tolerance, Type, UnaryOp};

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

impl KernelPlan {
    /// Is each of its runs a single step?
    pub fn takes_one_step(&self) -> bool {
        self.role != Role::Step || self.nest == Nest::Pass
    }

    /// All operations on lanes.
    pub(super) fn lanes(&self) -> impl Iterator<Item = &Stmt> {
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
    /// The map: a number of [`Trees::ties`](super::Trees::ties).
    pub tie: u32,
    /// The sum: a number of [`Trees::fields`](super::Trees::fields).
    pub sum: u32,
    /// What is added.
    pub value: Operand,
}

/// Linear equations along a tree: numbers of [`Trees::fields`](super::Trees::fields), and of the map to the parent in [`Trees::ties`](super::Trees::ties).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Equations {
    /// What becomes the solution.
    pub x: u32,
    /// What each element does by itself.
    pub own: u32,
    /// Between each element and its parent.
    pub link: u32,
    /// The right-hand side.
    pub rhs: u32,
    /// Where each element comes from; from 0 if absent.
    pub from: Option<u32>,
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
    /// Of the edge itself: an entry of the [`numbers`](super::Relation::numbers) of its relation.
    OfEdge(u32),
    /// Where a map of branched cells leads: a number of [`Trees::ties`](super::Trees::ties), and of [`Trees::fields`](super::Trees::fields).
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
            Expr::Uniform(_)
            | Expr::Time(_)
            | Expr::StepIndex
            | Expr::Index
            | Expr::There(_)
            | Expr::OfEdge(_)
            | Expr::Along(..) => vec![],
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
            Expr::Uniform(_)
            | Expr::Time(_)
            | Expr::StepIndex
            | Expr::Index
            | Expr::There(_)
            | Expr::OfEdge(_)
            | Expr::Along(..) => self,
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
