//! The discrete IR: one time step as typed SSA dataflow over index spaces.
//!
//! In come equations that `discretize` has turned into updates; out goes a [`Program`] that passes rewrite, that
//! [`crate::interp`] runs and that [`crate::codegen`] plans. It is text too: `parse(print(p)) == p`.
//! Never true here: a unit, a derivative, or a detail of Rust or XLA.
//!
//! # Meaning
//!
//! A program has index [`Space`]s (populations; their sizes are known only when it runs), [`Field`]s (values over a
//! space, or uniform) and [`Kernel`]s. Running a kernel from step `s0` for `k` steps means
//!
//! ```text
//! for every region of phase Call:  run it once                                  (uniform values only)
//! for every region of phase Cell:  run it for every cell                        (does not see time)
//! for s in s0 .. s0 + k:
//!     for every region of phase Time:  run it once, with time = s * dt          (uniform values only)
//!     for every region of phase Edge or Body, in order:  run it for every edge or for every cell
//! ```
//!
//! A value defined in a region may be used later in the same region, and in regions of later phases in the order
//! Call < Time, Call < Cell, Time < Body, Cell < Body, Call < Edge, Time < Edge. Values never pass between two regions of
//! one phase: that is what temp fields are for. In an Edge region, reading a field means that of the edge's target, `there`
//! reads the state of its source, and `accumulate` adds to a temp field of the target, which begins each step at 0; the
//! edges of a target are taken in their order. Inside a region, reading a field gives what the same cell stored last.
//!
//! An `exact` operation keeps every bit of its value, whatever passes do; any other may come out differently by some roundings
//! (see [`crate::passes`]).
//!
//! Numbers are of double precision, but for the *singles* between `narrow` and `widen`: arithmetic and functions of singles are
//! computed in single precision. Fields hold no singles, and comparisons and selections take none.

mod build;
mod eval;
mod parse;
mod print;
#[cfg(test)]
mod text_tests;
mod verify;

pub use crate::operators::{
    BinaryOp, Distribution, Type, UnaryOp, Value, eval_binary, eval_fma, eval_series, eval_unary,
};
pub use crate::runtime::math::approximate::{Function, Tolerance};
pub use build::RegionBuilder;
pub use eval::eval;
pub use parse::{ParseError, parse};
pub use print::{op_name, print};
pub use verify::{Rule, Verified, VerifyError, check, verify};

/// A space of a [`Program`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SpaceId(pub u32);

/// A field of a [`Program`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FieldId(pub u32);

/// An SSA value of a [`Kernel`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ValueId(pub u32);

/// A source place of a [`Program`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct OriginId(pub u32);

/// A whole model, discretized.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Program {
    /// The model's name.
    pub name: String,
    /// Source places that operations and fields refer to.
    pub origins: Vec<Origin>,
    /// Index spaces.
    pub spaces: Vec<Space>,
    /// Fields.
    pub fields: Vec<Field>,
    /// Kernels; for each space at most one of each [`Role`].
    pub kernels: Vec<Kernel>,
}

/// A line of a model file.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Origin {
    /// The file's name as messages show it.
    pub file: String,
    /// The line, counted from 1.
    pub line: u32,
}

/// An index space, such as the cells of a population.
#[derive(Debug, Clone, PartialEq)]
pub struct Space {
    /// Its name, such as `squid`.
    pub name: String,
}

/// A named value or array of values.
#[derive(Debug, Clone, PartialEq)]
pub struct Field {
    /// Its full name, such as `squid.soma.Na.m`.
    pub name: String,
    /// What it is.
    pub kind: FieldKind,
    /// Where it comes from.
    pub origin: Option<OriginId>,
}

/// What a field is. Numbers are in the canonical units of [`crate::units`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FieldKind {
    /// One number, set before the run.
    Uniform,
    /// Samples `(t, value)` of a function of time, set before the run, read by [`OpKind::Sample`].
    Series,
    /// One number per cell, loaded from a file before the run; read by `init` only.
    Data(SpaceId),
    /// One number per cell, stored by `init`, then constant.
    Cell(SpaceId),
    /// One number per cell, stored by `init` and by `step`.
    State(SpaceId),
    /// One number per cell that lives only inside one run of the step's body.
    Temp(SpaceId),
    /// One number per cell, stored by `observe`.
    Output(SpaceId),
    /// Events that `step` emits: (cell, step).
    Event(SpaceId),
    /// Directed edges between cells of a space, set before the run: for every target its sources.
    Edges(SpaceId),
}

impl FieldKind {
    /// The space it is over, if any.
    pub fn space(self) -> Option<SpaceId> {
        match self {
            FieldKind::Uniform | FieldKind::Series => None,
            FieldKind::Data(s)
            | FieldKind::Cell(s)
            | FieldKind::State(s)
            | FieldKind::Temp(s)
            | FieldKind::Output(s)
            | FieldKind::Event(s)
            | FieldKind::Edges(s) => Some(s),
        }
    }
}

/// What a kernel is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Role {
    /// Sets cell parameters and initial states; runs once.
    Init,
    /// Advances the states.
    Step,
    /// Computes recorded quantities from the states.
    Observe,
}

/// Loop nests over one space; see the module documentation for what running one means.
#[derive(Debug, Clone, PartialEq)]
pub struct Kernel {
    /// What it is for.
    pub role: Role,
    /// The space it runs over.
    pub space: SpaceId,
    /// How many time steps one call advances at most (1 unless `fuse-steps` raised it).
    pub steps: u32,
    /// Its regions.
    pub regions: Vec<Region>,
}

/// When a region runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Phase {
    /// Once per call.
    Call,
    /// Once per time step.
    Time,
    /// Once per call and cell.
    Cell,
    /// Every time step and edge.
    Edge(FieldId),
    /// Every time step and cell.
    Body,
}

impl Phase {
    /// Can a value of phase `self` be used in a region of phase `user`?
    pub fn reaches(self, user: Phase) -> bool {
        match (self, user) {
            (Phase::Call, _) | (Phase::Time | Phase::Cell | Phase::Body, Phase::Body) => true,
            (Phase::Time, Phase::Time | Phase::Edge(_)) | (Phase::Cell, Phase::Cell) => true,
            (Phase::Edge(a), Phase::Edge(b)) => a == b,
            (Phase::Time | Phase::Cell | Phase::Body, Phase::Call)
            | (Phase::Time | Phase::Body | Phase::Edge(_), Phase::Cell)
            | (Phase::Cell | Phase::Body | Phase::Edge(_), Phase::Time)
            | (Phase::Cell | Phase::Body, Phase::Edge(_))
            | (Phase::Edge(_), Phase::Call | Phase::Body) => false,
        }
    }
}

/// A straight line of operations.
#[derive(Debug, Clone, PartialEq)]
pub struct Region {
    /// When it runs.
    pub phase: Phase,
    /// Its operations in order.
    pub ops: Vec<Op>,
}

/// One operation.
#[derive(Debug, Clone, PartialEq)]
pub struct Op {
    /// The value it defines (none for `store` and `emit`).
    pub result: Option<ValueId>,
    /// What it does.
    pub kind: OpKind,
    /// Must every bit of its value stay, because a later operation can tell a sum of exactly 0 from one that rounds to nearly 0?
    pub exact: bool,
    /// Where it comes from.
    pub origin: Option<OriginId>,
}

/// What an operation does.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum OpKind {
    /// A real constant.
    Const(f64),
    /// A truth constant.
    Bool(bool),
    /// Reads a uniform, data, cell, state or temp field.
    Field(FieldId),
    /// The time at the start of the step, in ms (`step * dt`).
    Time,
    /// The number of the step, counted from the start of the run.
    StepIndex,
    /// The number of the cell in its space.
    Index,
    /// One operand.
    Unary(UnaryOp, ValueId),
    /// An elementary function within a tolerance.
    Approximate(Function, Tolerance, ValueId),
    /// Two operands.
    Binary(BinaryOp, ValueId, ValueId),
    /// `a * b + c`, rounded once.
    Fma(ValueId, ValueId, ValueId),
    /// `c ? a : b`.
    Select(ValueId, ValueId, ValueId),
    /// A counter-based random number: a function of the run's seed, `stream`, the cell and the counter operand
    /// (a non-negative whole number).
    Draw(Distribution, u64, ValueId),
    /// The series at a time in ms, linear between samples.
    Sample(FieldId, ValueId),
    /// In an Edge region: reads a state of the edge's source.
    There(FieldId),
    /// In an Edge region: adds to a temp field of the edge's target.
    Accumulate(FieldId, ValueId),
    /// Writes a cell, state, temp or output field.
    Store(FieldId, ValueId),
    /// Appends (cell, step) to an event field where the mask is true.
    Emit(FieldId, ValueId),
}

impl OpKind {
    /// The values it reads, in order.
    pub fn operands(&self) -> Vec<ValueId> {
        match *self {
            OpKind::Const(_)
            | OpKind::Bool(_)
            | OpKind::Field(_)
            | OpKind::There(_)
            | OpKind::Time
            | OpKind::StepIndex
            | OpKind::Index => vec![],
            OpKind::Unary(_, a)
            | OpKind::Approximate(_, _, a)
            | OpKind::Draw(_, _, a)
            | OpKind::Sample(_, a)
            | OpKind::Accumulate(_, a)
            | OpKind::Store(_, a)
            | OpKind::Emit(_, a) => vec![a],
            OpKind::Binary(_, a, b) => vec![a, b],
            OpKind::Fma(a, b, c) | OpKind::Select(a, b, c) => vec![a, b, c],
        }
    }

    /// The same operation on other values.
    pub fn map_operands(self, mut f: impl FnMut(ValueId) -> ValueId) -> OpKind {
        match self {
            OpKind::Const(_)
            | OpKind::Bool(_)
            | OpKind::Field(_)
            | OpKind::There(_)
            | OpKind::Time
            | OpKind::StepIndex
            | OpKind::Index => self,
            OpKind::Unary(op, a) => OpKind::Unary(op, f(a)),
            OpKind::Approximate(function, tolerance, a) => OpKind::Approximate(function, tolerance, f(a)),
            OpKind::Binary(op, a, b) => OpKind::Binary(op, f(a), f(b)),
            OpKind::Fma(a, b, c) => OpKind::Fma(f(a), f(b), f(c)),
            OpKind::Select(c, a, b) => OpKind::Select(f(c), f(a), f(b)),
            OpKind::Draw(d, stream, a) => OpKind::Draw(d, stream, f(a)),
            OpKind::Sample(s, a) => OpKind::Sample(s, f(a)),
            OpKind::Accumulate(field, a) => OpKind::Accumulate(field, f(a)),
            OpKind::Store(field, a) => OpKind::Store(field, f(a)),
            OpKind::Emit(field, a) => OpKind::Emit(field, f(a)),
        }
    }

    /// The field that it reads, samples, stores or emits.
    pub fn named_field(&self) -> Option<FieldId> {
        match *self {
            OpKind::Field(f)
            | OpKind::There(f)
            | OpKind::Sample(f, _)
            | OpKind::Store(f, _)
            | OpKind::Accumulate(f, _)
            | OpKind::Emit(f, _) => Some(f),
            OpKind::Const(_)
            | OpKind::Bool(_)
            | OpKind::Time
            | OpKind::StepIndex
            | OpKind::Index
            | OpKind::Unary(..)
            | OpKind::Approximate(..)
            | OpKind::Binary(..)
            | OpKind::Fma(..)
            | OpKind::Select(..)
            | OpKind::Draw(..) => None,
        }
    }

    /// The same operation on another field.
    pub fn map_field(self, map: impl FnOnce(FieldId) -> FieldId) -> OpKind {
        match self {
            OpKind::Field(f) => OpKind::Field(map(f)),
            OpKind::There(f) => OpKind::There(map(f)),
            OpKind::Accumulate(f, v) => OpKind::Accumulate(map(f), v),
            OpKind::Sample(f, v) => OpKind::Sample(map(f), v),
            OpKind::Store(f, v) => OpKind::Store(map(f), v),
            OpKind::Emit(f, v) => OpKind::Emit(map(f), v),
            OpKind::Const(_)
            | OpKind::Bool(_)
            | OpKind::Time
            | OpKind::StepIndex
            | OpKind::Index
            | OpKind::Unary(..)
            | OpKind::Approximate(..)
            | OpKind::Binary(..)
            | OpKind::Fma(..)
            | OpKind::Select(..)
            | OpKind::Draw(..) => self,
        }
    }

    /// Does it change something besides its result (and must therefore be kept, in order)?
    pub fn has_effect(&self) -> bool {
        matches!(self, OpKind::Store(..) | OpKind::Accumulate(..) | OpKind::Emit(..))
    }
}

impl Program {
    /// The field behind an id of this program.
    pub fn field(&self, id: FieldId) -> &Field {
        &self.fields[id.0 as usize]
    }

    /// The space behind an id of this program.
    pub fn space(&self, id: SpaceId) -> &Space {
        &self.spaces[id.0 as usize]
    }

    /// The field of a name.
    pub fn find_field(&self, name: &str) -> Option<FieldId> {
        self.fields.iter().position(|f| f.name == name).map(|i| FieldId(i as u32))
    }

    /// Adds a field.
    pub fn add_field(&mut self, name: impl Into<String>, kind: FieldKind, origin: Option<OriginId>) -> FieldId {
        self.fields.push(Field { name: name.into(), kind, origin });
        FieldId(self.fields.len() as u32 - 1)
    }

    /// Adds a source place, or finds it.
    pub fn add_origin(&mut self, file: &str, line: u32) -> OriginId {
        let origin = Origin { file: file.into(), line };
        let at = self.origins.iter().position(|o| *o == origin).unwrap_or_else(|| {
            self.origins.push(origin);
            self.origins.len() - 1
        });
        OriginId(at as u32)
    }

    /// The kernel of a role over a space.
    pub fn kernel(&self, role: Role, space: SpaceId) -> Option<&Kernel> {
        self.kernels.iter().find(|k| k.role == role && k.space == space)
    }

    /// The ids of the fields that `select` accepts, in order.
    pub fn fields_where(&self, select: impl Fn(&FieldKind) -> bool) -> Vec<FieldId> {
        (0..self.fields.len() as u32).map(FieldId).filter(|&f| select(&self.field(f).kind)).collect()
    }
}

impl Kernel {
    /// All operations, in the order of the regions.
    pub fn ops(&self) -> impl Iterator<Item = &Op> {
        self.regions.iter().flat_map(|r| &r.ops)
    }

    /// One more than the largest value id in use.
    pub fn next_value(&self) -> ValueId {
        let used = self.ops().filter_map(|o| o.result);
        ValueId(used.map(|v| v.0 + 1).max().unwrap_or(0))
    }
}
