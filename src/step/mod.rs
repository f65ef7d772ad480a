//! The discrete IR: one time step as typed SSA dataflow over index spaces.
//!
//! In come equations that `discretize` has turned into updates; out goes a [`Program`] that passes rewrite, that
//! [`crate::interp`] runs and that [`crate::codegen`] plans. It is text too: `parse(print(p)) == p`.
//! Never true here: a unit, a derivative, or a detail of Rust or XLA.
//!
//! # Six concepts
//!
//! 1. **Spaces have a kind, and kinds give maps** ([`SpaceKind`], [`Map`]). What is said here does not grow with cells, compartments
//!    or synapses: how many elements a space has, which edges a relation holds, who is whose parent is set when the program runs.
//!
//!    | declared | elements | maps |
//!    |---|---|---|
//!    | `space @e` | any number, as cells of a population | |
//!    | `space @c of @e` | so many for every element of `@e`, as neurons of a trial | `of` |
//!    | `space @c of @e tree` | the same, joined to a tree, as compartments of a cell: all cells have the same tree | `of`, `parent` |
//!    | `space @s in @c` | some of those of `@c`, as the compartments that have a channel; of a space `of` another, the same in each | `in`, then also `of` |
//!    | `space @r from @e to @i` | edges, ordered by target; several of one pair and from an element to itself included | `source`, `target` |
//!
//! 2. **`gather` and `accumulate`**: `gather @f along map` reads the field at the element that the map leads to, `accumulate @f along map,
//!    %x` adds to it there, the elements in their order. A field over nothing is reached without a map: a value that all share is read by
//!    `field`, and `accumulate @f, %x` adds up over the whole space (a loss, a rate).
//! 3. **Functions of ordered stages**: `fn init` sets parameters and states, `fn step` is one time step, `fn observe` computes what is
//!    recorded. A stage is a [`Region`] of straight code or a [`Solve`]. What `init` emits was emitted in the step before the first.
//! 4. **Guarded stages**: `over @r when @e.spike along source delay @r.delay` runs for those elements whose mapped element emitted the
//!    event so many steps ago (without `delay`, or where it is 0, in an earlier stage of this step). Those whose event is the oldest come first, then
//!    the elements in their order. Events are remembered as long as the longest delay asks: delays are data. Stages that do nothing but add along
//!    maps what of an event from `source` arrives after a delay, one after the other, are taken together, so that a field that several of them add
//!    to gets what is older first, whichever of them it came through; what was sent in one step comes in the order of the spaces that emit, their
//!    events, the stages, the elements.
//! 5. **`solve tree @x: own @e, link @g, rhs @b, from @v`** solves, for each tree, `e[i] (x[i] - v[i]) + g[i] (x[i] - x[parent(i)]) + sum of
//!    g[c] (x[i] - x[c]) over the children c of i = b[i]`: what each element does by itself, and what its links do. Without `from`, `v` is 0. From
//!    the last element to the first one, with `d[i] = 1 / (e[i] + g[i])`, `e[p] += g[i] e[i] d[i]` and `b[p] += g[i] (b[i] + e[i] (v[i] - v[p])) d[i]`
//!    of its parent, of the root with `d[i] = 1 / e[i]`; then, from the first one on, `x[i] = v[i] + (b[i] + g[i] (x[p] - v[i])) d[i]`. Nothing
//!    is taken away from what stands beside strong links, so that what is weak beside them counts in single precision, too.
//! 6. **`history n` on a field, `back` on a read**: `back @f, %k` is what a state was at the start of the step k steps ago (k from 0 to n;
//!    before the run it was what `init` set). And `spike %x` is `x > 0`, of which differentiation sees a surrogate ([`Surrogate`]);
//!    `spike_by %x, %slope` is the same with a number in its place.
//!
//! # Meaning
//!
//! Calling `fn step` from step `s0` for `k` steps means
//!
//! ```text
//! for every region that runs `once`, in order:  run it, for every element if it is `over` a space     (does not see time)
//! for s in s0 .. s0 + k:
//!     temp fields that something accumulates to become 0
//!     for every other stage, in order:  run it, for every element if it is `over` a space             (time is s * dt)
//! ```
//!
//! Two laws say what a stage sees: **every store of earlier stages; and of its own only what the same element stored.** So the order of
//! elements does not matter, nor does it matter whether several stages run element by element or one after the other, as long as none
//! gathers what another stored. The verifier holds a stage to it: what it gathers or goes back to, it does not store.
//!
//! A value defined in a region may be used later in the same region. What a region defines that runs `once`, or over nothing, may be used
//! in later regions that run as often or more often: those over the same space, or all if it is over nothing. All else passes through
//! fields.
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
    BinaryOp, Distribution, Surrogate, Type, UnaryOp, Value, eval_binary, eval_fma, eval_series, eval_unary,
};
pub use crate::runtime::math::approximate::{Function as Elementary, Tolerance};
pub use build::RegionBuilder;
pub use eval::eval;
pub use parse::{ParseError, parse};
pub use print::{op_name, print};
pub use verify::{Rule, Verified, VerifyError, check, verify};

use std::ops::Range;

/// A space of a [`Program`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SpaceId(pub u32);

/// A field of a [`Program`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FieldId(pub u32);

/// An SSA value of a [`Function`].
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
    /// Index spaces; a space comes after those that its kind names.
    pub spaces: Vec<Space>,
    /// Fields.
    pub fields: Vec<Field>,
    /// Functions; at most one of each [`Role`].
    pub functions: Vec<Function>,
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
    /// What its elements are.
    pub kind: SpaceKind,
}

/// What the elements of a space are, and which maps lead from them; see the module documentation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SpaceKind {
    /// Elements of their own: cells, trials.
    Plain,
    /// For every element of another space the same number of elements.
    Product {
        /// The other space.
        of: SpaceId,
        /// Are they joined to a tree, the same for every element of the other space?
        tree: bool,
    },
    /// Some of the elements of another space.
    Subset {
        /// The other space.
        of: SpaceId,
    },
    /// Directed edges.
    Relation {
        /// The space of their sources.
        from: SpaceId,
        /// The space of their targets.
        to: SpaceId,
    },
}

/// A map from the elements of a space to those of another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Map {
    /// From an edge to the element that it comes from.
    Source,
    /// From an edge to the element that it leads to.
    Target,
    /// From an element of a product, or of some of them, to the one that it belongs to.
    Of,
    /// From an element of a tree to its parent; the root has none: what is gathered there is 0, what is accumulated is lost.
    Parent,
    /// From an element of a subset to itself in the whole.
    In,
}

impl Map {
    /// Every map with its name in the text form.
    pub const ALL: &'static [(Map, &'static str)] =
        &[(Map::Source, "source"), (Map::Target, "target"), (Map::Of, "of"), (Map::Parent, "parent"), (Map::In, "in")];

    /// Its name in the text form.
    pub fn name(self) -> &'static str {
        // ALL is in the order of the declaration; a test checks it.
        Map::ALL[self as usize].1
    }
}

impl SpaceKind {
    /// The spaces that it names.
    pub fn spaces(self) -> Vec<SpaceId> {
        match self {
            SpaceKind::Plain => vec![],
            SpaceKind::Product { of, .. } | SpaceKind::Subset { of } => vec![of],
            SpaceKind::Relation { from, to } => vec![from, to],
        }
    }
}

/// A named value or array of values.
#[derive(Debug, Clone, PartialEq)]
pub struct Field {
    /// Its full name, such as `squid.soma.Na.m`.
    pub name: String,
    /// What it is.
    pub kind: FieldKind,
    /// The space that it has a value for each element of; none if there is one value.
    pub over: Option<SpaceId>,
    /// How many steps back its values are remembered.
    pub history: u32,
    /// What of the continuous model it stands for.
    pub source: Source,
    /// Where it comes from.
    pub origin: Option<OriginId>,
}

/// What a field is. Numbers are in the canonical units of [`crate::units`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FieldKind {
    /// One number, set before the run; over no space.
    Uniform,
    /// Samples `(t, value)` of a function of time, set before the run, read by [`OpKind::Sample`]; over no space.
    Series,
    /// Numbers that are loaded before the run; read by `init` only.
    Data,
    /// Numbers that `init` stores and that are then constant.
    Const,
    /// Numbers that `init` and `step` store.
    State,
    /// Numbers that live only inside one run of the stages of `step` or `observe`.
    Temp,
    /// Numbers that `observe` stores.
    Output,
    /// Events that `step` emits: (element, step). `init` may emit some in the step before the first.
    Event,
}

/// What of the continuous model a field stands for; names are for people.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Source {
    /// Nothing: the program was written by hand.
    None,
    /// The time step.
    Dt,
    /// A parameter.
    Param(u32),
    /// A state.
    State(u32),
    /// The value that a stage of a method has computed for a state.
    Next(u32),
    /// The derivative of a state that a stage of a method has computed.
    Slope(u32, u32),
    /// The value of a state that a stage of a method looks at.
    Point(u32, u32),
    /// The currents that a connection brings to a cell, at what a stage of a method looks at.
    Sum(u32, u32),
    /// The slopes of the currents of a connection in the voltage of a cell, added up.
    Slopes(u32),
    /// A state of the whole as edges see it that lead to a place of it, or come from there: the place, and the state.
    There(u32, u32),
    /// Whether a cell has spiked in this step, as its other places are told.
    Told(u32),
    /// What the events of a projection bring that arrive at a cell, added up: the number among what its synapses send.
    Arrived(u32, u32),
    /// What the cells of a projection send through graded synapses, at what a stage of a method looks at.
    Sent(u32, u32),
    /// How much of a modulator reaches the synapses of an element.
    Amount(u32),
    /// The elements whose synapses a modulator reaches.
    Modulated(u32),
    /// What an event carries along an edge of a projection.
    Weight(u32),
    /// How many steps an event takes along an edge of a projection.
    Delay(u32),
    /// After how many steps an edge of a projection hears of what the element behind it emits.
    Back(u32),
    /// After how many steps an edge of a projection has seen its last event.
    Seen(u32),
    /// How many steps the cells of a population stay refractory.
    Refractory(u32),
    /// Whether a cell of a population has spiked in the last step, 1 or 0, where events are carried from outside the program.
    Spiked(u32),
    /// The spikes of a population.
    Spikes(u32),
    /// Numbers from a file, for the elements of a space.
    Data(u32, u32),
    /// A function of time from a file.
    Series(u32),
    /// Something recorded.
    Output(u32),
    /// The same where it is computed, before a place takes it from there.
    Observed(u32),
    /// A number of the compartments that are the elements of a space.
    Measure(u32, u32),
    /// Of a cable: the conductance between each compartment and its parent.
    Axial(u32),
    /// Of a cable: the current density through the membrane.
    Membrane(u32),
    /// Of a cable: the slope of that in the voltage.
    Conductance(u32),
    /// Of a cable: what each compartment does by itself in the solve.
    Own(u32),
    /// Of a cable: the right-hand side of the solve.
    Rhs(u32),
    /// Of a cable: the solution where it is that of half a step.
    Middle(u32),
    /// Of a cable: what flows out of each compartment through its membrane, in the step before.
    Transmembrane(u32),
    /// Of a cable: the same in the making.
    Escaping(u32),
    /// Of a cable: the current density that leaves through electrodes and junctions.
    Injected(u32),
    /// Of a cable: the slope of that in the voltage.
    InjectedSlope(u32),
    /// Of ions that diffuse: what the number says ([`crate::discretize`]).
    Diffusion(u32, u32),
    /// The derivative of a loss in a state or a constant: the number of its field in the program that is differentiated ([`crate::differentiate`]).
    Adjoint(u32),
    /// The derivative of a loss in what it reads: its number among them.
    Seed(u32),
    /// The derivative of a loss in a parameter: its number among them, and the space whose elements contribute.
    Gradient(u32, u32),
    /// The derivative of a field along a direction: the number of the field in the program that is differentiated, and the direction.
    Tangent(u32, u32),
}

/// What a function is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Role {
    /// Sets constants and initial states; runs once.
    Init,
    /// Advances the states.
    Step,
    /// Computes recorded quantities from the states.
    Observe,
}

/// Ordered stages; see the module documentation for what running them means.
#[derive(Debug, Clone, PartialEq)]
pub struct Function {
    /// What it is for.
    pub role: Role,
    /// How many time steps one call advances at most (1 unless `fuse-steps` raised it).
    pub steps: u32,
    /// Its stages in order.
    pub stages: Vec<Stage>,
}

/// A part of a function: it sees what earlier stages stored.
#[derive(Debug, Clone, PartialEq)]
pub enum Stage {
    /// A straight line of operations.
    Region(Region),
    /// Linear equations along trees.
    Solve(Solve),
}

/// A straight line of operations, run for every element of a space or once.
#[derive(Debug, Clone, PartialEq)]
pub struct Region {
    /// How often it runs.
    pub rate: Rate,
    /// For every element of which space; none: once.
    pub over: Option<SpaceId>,
    /// For which of them only.
    pub guard: Option<Guard>,
    /// Its operations in order.
    pub ops: Vec<Op>,
}

/// How often a region runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Rate {
    /// Once per call.
    Once,
    /// Every time step.
    Every,
}

/// Runs a region only for elements that an event reaches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Guard {
    /// The event field.
    pub event: FieldId,
    /// From the elements of the region to those of the event; none if they are the same.
    pub along: Option<Map>,
    /// A constant over the region's space: how many steps ago; none: in an earlier stage of this step.
    pub delay: Option<FieldId>,
}

/// `solve tree`: for the elements of a tree, `e[i] (x[i] - v[i]) + g[i] (x[i] - x[parent(i)]) + sum of g[c] (x[i] - x[c]) over children c = b[i]`.
/// All fields are over the same tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Solve {
    /// The state or temp field that becomes the solution.
    pub x: FieldId,
    /// What each element does by itself.
    pub own: FieldId,
    /// What links each element with its parent; that of the root does not matter.
    pub link: FieldId,
    /// The right-hand side.
    pub rhs: FieldId,
    /// Where each element comes from; from 0 if absent.
    pub from: Option<FieldId>,
    /// Where it comes from.
    pub origin: Option<OriginId>,
}

/// How a region stands in time and space, as far as values are concerned.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Phase {
    /// Once per call.
    Call,
    /// Once per time step.
    Time,
    /// Once per call and element.
    Cell,
    /// Every time step and element.
    Body,
}

impl Phase {
    /// Can a value of phase `self` be used in a region of phase `user` over the same space?
    pub fn reaches(self, user: Phase) -> bool {
        match (self, user) {
            (Phase::Call, _) | (Phase::Time | Phase::Cell | Phase::Body, Phase::Body) => true,
            (Phase::Time, Phase::Time) | (Phase::Cell, Phase::Cell) => true,
            (Phase::Time | Phase::Cell | Phase::Body, Phase::Call)
            | (Phase::Time | Phase::Body, Phase::Cell)
            | (Phase::Cell | Phase::Body, Phase::Time) => false,
        }
    }
}

impl Region {
    /// Its phase.
    pub fn phase(&self) -> Phase {
        match (self.rate, self.over) {
            (Rate::Once, None) => Phase::Call,
            (Rate::Every, None) => Phase::Time,
            (Rate::Once, Some(_)) => Phase::Cell,
            (Rate::Every, Some(_)) => Phase::Body,
        }
    }

    /// Can a value that `self` defines be used in the later region `user`?
    pub fn reaches(&self, user: &Region) -> bool {
        let shared = self.rate == Rate::Once || self.over.is_none();
        shared && self.guard.is_none() && self.rate <= user.rate && (self.over.is_none() || self.over == user.over)
    }

    /// Does it do nothing but add along maps, where events arrive after a delay?
    pub fn is_arrival(&self) -> bool {
        let of_source = |guard: Guard| guard.along == Some(Map::Source) && guard.delay.is_some();
        let only_adds = |op: &Op| match op.kind.class() {
            OpClass::Leaf | OpClass::Pure | OpClass::Draw => true,
            OpClass::Read => matches!(op.kind, OpKind::Field(_)),
            OpClass::Write => matches!(op.kind, OpKind::Accumulate(_, Some(_), _)),
        };
        self.guard.is_some_and(of_source) && self.ops.iter().all(only_adds)
    }
}

impl Stage {
    /// The region that it is, if it is one.
    pub fn region(&self) -> Option<&Region> {
        match self {
            Stage::Region(region) => Some(region),
            Stage::Solve(_) => None,
        }
    }

    /// The region that it is, to be changed.
    pub fn region_mut(&mut self) -> Option<&mut Region> {
        match self {
            Stage::Region(region) => Some(region),
            Stage::Solve(_) => None,
        }
    }
}

impl Solve {
    /// The fields that it reads.
    pub fn reads(&self) -> impl Iterator<Item = FieldId> + use<> {
        [self.own, self.link, self.rhs].into_iter().chain(self.from)
    }

    /// The same on other fields.
    pub fn map_fields(self, mut map: impl FnMut(FieldId) -> FieldId) -> Solve {
        let [x, own, link, rhs] = [self.x, self.own, self.link, self.rhs].map(&mut map);
        Solve { x, own, link, rhs, from: self.from.map(map), ..self }
    }
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
    /// Reads a uniform, data, constant, state or temp field: of the element itself, or what all share.
    Field(FieldId),
    /// The time at the start of the step, in ms (`step * dt`).
    Time,
    /// The number of the step, counted from the start of the run.
    StepIndex,
    /// The number of the element in its space.
    Index,
    /// One operand.
    Unary(UnaryOp, ValueId),
    /// An elementary function within a tolerance.
    Approximate(Elementary, Tolerance, ValueId),
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
    /// Reads a constant, state or temp field of the element that the map leads to.
    Gather(FieldId, Map),
    /// What a state was, at the element itself or the one that the map leads to, at the start of the step so many steps ago.
    Back(FieldId, Option<Map>, ValueId),
    /// `x > 0`, with a derivative of its own.
    Spike(Surrogate, ValueId),
    /// The same, of which differentiation sees the second operand as the derivative.
    SpikeBy(ValueId, ValueId),
    /// Adds to a temp or output field of the element that the map leads to; without a map, to the one value of the field.
    Accumulate(FieldId, Option<Map>, ValueId),
    /// Writes a constant, state, temp or output field.
    Store(FieldId, ValueId),
    /// Appends (element, step) to an event field where the mask is true.
    Emit(FieldId, ValueId),
}

/// Where the value of an operation comes from: all that most passes need to know of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OpClass {
    /// It is a number, the time, the number of the step or of the element.
    Leaf,
    /// It is computed from the operands alone.
    Pure,
    /// It is read from a field.
    Read,
    /// It is drawn at random.
    Draw,
    /// There is none: something is written to a field, in its turn.
    Write,
}

impl OpKind {
    /// The values it reads, in order.
    pub fn operands(&self) -> Vec<ValueId> {
        match *self {
            OpKind::Const(_)
            | OpKind::Bool(_)
            | OpKind::Field(_)
            | OpKind::Gather(..)
            | OpKind::Time
            | OpKind::StepIndex
            | OpKind::Index => vec![],
            OpKind::Unary(_, a)
            | OpKind::Approximate(_, _, a)
            | OpKind::Draw(_, _, a)
            | OpKind::Sample(_, a)
            | OpKind::Back(_, _, a)
            | OpKind::Spike(_, a)
            | OpKind::Accumulate(_, _, a)
            | OpKind::Store(_, a)
            | OpKind::Emit(_, a) => vec![a],
            OpKind::Binary(_, a, b) | OpKind::SpikeBy(a, b) => vec![a, b],
            OpKind::Fma(a, b, c) | OpKind::Select(a, b, c) => vec![a, b, c],
        }
    }

    /// The same operation on other values.
    pub fn map_operands(self, mut f: impl FnMut(ValueId) -> ValueId) -> OpKind {
        match self {
            OpKind::Const(_)
            | OpKind::Bool(_)
            | OpKind::Field(_)
            | OpKind::Gather(..)
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
            OpKind::Back(field, map, a) => OpKind::Back(field, map, f(a)),
            OpKind::Spike(surrogate, a) => OpKind::Spike(surrogate, f(a)),
            OpKind::SpikeBy(a, slope) => OpKind::SpikeBy(f(a), f(slope)),
            OpKind::Accumulate(field, map, a) => OpKind::Accumulate(field, map, f(a)),
            OpKind::Store(field, a) => OpKind::Store(field, f(a)),
            OpKind::Emit(field, a) => OpKind::Emit(field, f(a)),
        }
    }

    /// The field that it reads, samples, stores, adds to or emits.
    pub fn named_field(&self) -> Option<FieldId> {
        match *self {
            OpKind::Field(f)
            | OpKind::Gather(f, _)
            | OpKind::Back(f, ..)
            | OpKind::Sample(f, _)
            | OpKind::Store(f, _)
            | OpKind::Accumulate(f, ..)
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
            | OpKind::Spike(..)
            | OpKind::SpikeBy(..)
            | OpKind::Draw(..) => None,
        }
    }

    /// The same operation on another field.
    pub fn map_field(self, map: impl FnOnce(FieldId) -> FieldId) -> OpKind {
        match self {
            OpKind::Field(f) => OpKind::Field(map(f)),
            OpKind::Gather(f, along) => OpKind::Gather(map(f), along),
            OpKind::Back(f, along, v) => OpKind::Back(map(f), along, v),
            OpKind::Accumulate(f, along, v) => OpKind::Accumulate(map(f), along, v),
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
            | OpKind::Spike(..)
            | OpKind::SpikeBy(..)
            | OpKind::Draw(..) => self,
        }
    }

    /// Where its value comes from, or that it has an effect instead.
    pub fn class(&self) -> OpClass {
        match self {
            OpKind::Const(_) | OpKind::Bool(_) | OpKind::Time | OpKind::StepIndex | OpKind::Index => OpClass::Leaf,
            OpKind::Unary(..)
            | OpKind::Approximate(..)
            | OpKind::Binary(..)
            | OpKind::Fma(..)
            | OpKind::Select(..)
            | OpKind::Spike(..)
            | OpKind::SpikeBy(..) => OpClass::Pure,
            OpKind::Field(_) | OpKind::Sample(..) | OpKind::Gather(..) | OpKind::Back(..) => OpClass::Read,
            OpKind::Draw(..) => OpClass::Draw,
            OpKind::Accumulate(..) | OpKind::Store(..) | OpKind::Emit(..) => OpClass::Write,
        }
    }

    /// Does it change something besides its result (and must therefore be kept, in order)?
    pub fn has_effect(&self) -> bool {
        self.class() == OpClass::Write
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

    /// The space of the cells that an element belongs to.
    pub fn cells_of(&self, space: SpaceId) -> SpaceId {
        match self.space(space).kind {
            SpaceKind::Product { of, .. } | SpaceKind::Subset { of } => self.cells_of(of),
            SpaceKind::Plain | SpaceKind::Relation { .. } => space,
        }
    }

    /// Is it a space of branched cells: theirs, or one of their parts?
    pub fn is_branched(&self, space: SpaceId) -> bool {
        let of = self.cells_of(space);
        let spaces = (0..self.spaces.len() as u32).map(SpaceId);
        self.space(of).kind == SpaceKind::Plain
            && spaces.filter(|other| *other != of).any(|other| self.cells_of(other) == of)
    }

    /// The field of a name.
    pub fn find_field(&self, name: &str) -> Option<FieldId> {
        self.fields.iter().position(|f| f.name == name).map(|i| FieldId(i as u32))
    }

    /// The field that stands for something of the continuous model.
    pub fn bound(&self, source: Source) -> Option<FieldId> {
        self.fields.iter().position(|f| f.source == source).map(|i| FieldId(i as u32))
    }

    /// Adds a field.
    pub fn add_field(&mut self, field: Field) -> FieldId {
        self.fields.push(field);
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

    /// The function of a role.
    pub fn function(&self, role: Role) -> Option<&Function> {
        self.functions.iter().find(|f| f.role == role)
    }

    /// The ids of the fields that `select` accepts, in order.
    pub fn fields_where(&self, select: impl Fn(&Field) -> bool) -> Vec<FieldId> {
        (0..self.fields.len() as u32).map(FieldId).filter(|&f| select(self.field(f))).collect()
    }

    /// Where a map leads from a space; nowhere if the space has no such map.
    pub fn map(&self, space: SpaceId, map: Map) -> Option<SpaceId> {
        match (map, self.space(space).kind) {
            (Map::Source, SpaceKind::Relation { from, .. }) => Some(from),
            (Map::Target, SpaceKind::Relation { to, .. }) => Some(to),
            (Map::Of, SpaceKind::Product { of, .. }) => Some(of),
            (Map::Of, SpaceKind::Subset { of }) => self.map(of, Map::Of),
            (Map::Parent, SpaceKind::Product { tree: true, .. }) => Some(space),
            (Map::In, SpaceKind::Subset { of }) => Some(of),
            (
                Map::Source | Map::Target | Map::Of | Map::Parent | Map::In,
                SpaceKind::Plain | SpaceKind::Product { .. } | SpaceKind::Subset { .. } | SpaceKind::Relation { .. },
            ) => None,
        }
    }
}

impl Function {
    /// Its regions, in order.
    pub fn regions(&self) -> impl DoubleEndedIterator<Item = &Region> {
        self.stages.iter().filter_map(Stage::region)
    }

    /// Which of its stages are arrivals that are taken together. Between them stand none but those that run once.
    pub fn arrivals(&self) -> Vec<Range<usize>> {
        let mut found: Vec<Range<usize>> = Vec::new();
        let mut goes_on = false;
        for (at, stage) in self.stages.iter().enumerate() {
            let region = stage.region();
            if region.is_some_and(|region| region.rate == Rate::Once) {
                continue;
            }
            let arrives = region.is_some_and(Region::is_arrival);
            match found.last_mut() {
                Some(last) if goes_on && arrives => last.end = at + 1,
                _ if arrives => found.push(at..at + 1),
                _ => {}
            }
            goes_on = arrives;
        }
        found
    }

    /// Its regions, to be changed.
    pub fn regions_mut(&mut self) -> impl DoubleEndedIterator<Item = &mut Region> {
        self.stages.iter_mut().filter_map(Stage::region_mut)
    }

    /// All operations, in the order of the regions.
    pub fn ops(&self) -> impl DoubleEndedIterator<Item = &Op> {
        self.regions().flat_map(|r| &r.ops)
    }

    /// One more than the largest value id in use.
    pub fn next_value(&self) -> ValueId {
        let used = self.ops().filter_map(|o| o.result);
        ValueId(used.map(|v| v.0 + 1).max().unwrap_or(0))
    }
}
