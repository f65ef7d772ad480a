//! The file's spelling as a tree.
//!
//! In comes nothing: these are plain types that the parser fills and `hir` reads.
//! Every node has a span.
//! Never true here: a name is resolved, a unit is known to exist, or a rule of the language is checked.

use crate::source::Span;

/// An identifier where it stands.
#[derive(Debug, Clone, PartialEq)]
pub struct Name {
    /// The spelling.
    pub text: String,
    /// The place.
    pub span: Span,
}

/// One parsed file.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct File {
    /// The `//!` lines, without the marker.
    pub docs: Vec<String>,
    /// The items in file order.
    pub items: Vec<Item>,
    /// The names of items that are in the file but could not be parsed (which has been reported), so that later
    /// phases do not call them unknown.
    pub broken: Vec<Name>,
}

impl File {
    /// Its `use` lines.
    pub fn uses(&self) -> impl DoubleEndedIterator<Item = &Use> {
        self.items.iter().filter_map(|item| match item {
            Item::Use(u) => Some(u),
            Item::Const(_)
            | Item::Function(_)
            | Item::Channel(_)
            | Item::Cell(_)
            | Item::Junction(_)
            | Item::Synapse(_)
            | Item::Network(_)
            | Item::Run(_)
            | Item::Train(_)
            | Item::Fit(_) => None,
        })
    }
}

/// A top-level item.
#[derive(Debug, Clone, PartialEq)]
pub enum Item {
    /// `use std.channels.hh.{Na, K}`
    Use(Use),
    /// `const ENa = 50 mV`
    Const(Const),
    /// `function boltzmann(v: mV, mid: mV, k: mV) = 1 / (1 + exp(-(v - mid) / k))`
    Function(Function),
    /// `channel Na { ... }`
    Channel(Channel),
    /// `cell Squid { ... }`
    Cell(Cell),
    /// `junction Cx36 { ... }`
    Junction(Junction),
    /// `synapse ExpCond { ... }`
    Synapse(Synapse),
    /// `network main { ... }`
    Network(Network),
    /// `run { ... }`
    Run(Run),
    /// `fit { ... }`
    Fit(Fit),
    /// `train { ... }`
    Train(Train),
}

/// `use a.b.c`, `use a.b.{X, Y}`; the last segment or the braces name items of the file `a/b.neuro`.
#[derive(Debug, Clone, PartialEq)]
pub struct Use {
    /// The path before the braces (at least one segment).
    pub path: Vec<Name>,
    /// The names in braces; empty when the last path segment is the item itself.
    pub names: Vec<Name>,
    /// The whole item.
    pub span: Span,
}

/// A named constant.
#[derive(Debug, Clone, PartialEq)]
pub struct Const {
    /// The `///` lines before it.
    pub docs: Vec<String>,
    /// Its name.
    pub name: Name,
    /// Its value.
    pub value: Expr,
}

/// A user function: one expression of its parameters.
#[derive(Debug, Clone, PartialEq)]
pub struct Function {
    /// The `///` lines before it.
    pub docs: Vec<String>,
    /// Its name.
    pub name: Name,
    /// Its parameters; without a unit the dimension is whatever the caller passes.
    pub params: Vec<(Name, Option<UnitExpr>)>,
    /// The declared unit of the result.
    pub unit: Option<UnitExpr>,
    /// The body.
    pub body: Expr,
}

/// `param name: unit = value` (the unit is optional).
#[derive(Debug, Clone, PartialEq)]
pub struct Param {
    /// The `///` lines before it.
    pub docs: Vec<String>,
    /// Its name.
    pub name: Name,
    /// The declared unit.
    pub unit: Option<UnitExpr>,
    /// The default.
    pub value: Expr,
}

/// `let name = value`: a named expression.
#[derive(Debug, Clone, PartialEq)]
pub struct Let {
    /// Its name.
    pub name: Name,
    /// Its value.
    pub value: Expr,
}

/// `state name: unit = init`.
#[derive(Debug, Clone, PartialEq)]
pub struct State {
    /// Its name.
    pub name: Name,
    /// The declared unit.
    pub unit: Option<UnitExpr>,
    /// The initial value.
    pub init: Option<Expr>,
    /// The whole declaration.
    pub span: Span,
}

/// `name' = value`.
#[derive(Debug, Clone, PartialEq)]
pub struct Equation {
    /// The state.
    pub name: Name,
    /// Its time derivative.
    pub value: Expr,
}

/// `reads Ca: mM`: a quantity that the compartment's ion pool of that name provides.
#[derive(Debug, Clone, PartialEq)]
pub struct Reads {
    /// The pool's name.
    pub name: Name,
    /// The unit the channel expects; dimensionless if absent.
    pub unit: Option<UnitExpr>,
}

/// An ion channel.
#[derive(Debug, Clone, PartialEq)]
pub struct Channel {
    /// The `///` lines before it.
    pub docs: Vec<String>,
    /// Its name.
    pub name: Name,
    /// Its members in file order.
    pub members: Vec<ChannelMember>,
    /// The whole item.
    pub span: Span,
}

/// A member of a channel.
#[derive(Debug, Clone, PartialEq)]
pub enum ChannelMember {
    /// A parameter.
    Param(Param),
    /// A named expression.
    Let(Let),
    /// A pool that it reads.
    Reads(Reads),
    /// A gate.
    Gate(Gate),
    /// A scheme of states with reactions between them.
    Kinetics(Kinetics),
    /// A state with an equation of its own.
    State(State),
    /// The equation of a state.
    Equation(Equation),
    /// `current i = ...`: replaces the implied current.
    Current(Let),
}

/// `gate m^3 { ... }`, `gate m^3 instantaneous { ... }`.
#[derive(Debug, Clone, PartialEq)]
pub struct Gate {
    /// Its name.
    pub name: Name,
    /// The exponent in the implied current; 1 if absent.
    pub power: Option<(u32, Span)>,
    /// Where `instantaneous` stands.
    pub instantaneous: Option<Span>,
    /// The members, in file order.
    pub members: Vec<GateMember>,
    /// The whole gate.
    pub span: Span,
}

/// A member of a gate.
#[derive(Debug, Clone, PartialEq)]
pub enum GateMember {
    /// `alpha = ...`, `beta = ...`, `inf = ...`, `tau = ...`, `init = ...`; also any misspelt key.
    Key(Let),
    /// `q10 = 3 at 6.3 degC`, or a fixed factor `q10 = 0.2`; both multiply the gate's rates.
    Q10 {
        /// The factor.
        value: Expr,
        /// The temperature at which the rates were measured.
        at: Option<Expr>,
        /// The whole member.
        span: Span,
    },
    /// `fraction 0.7 { inf = ...; tau = ... }`: a part of the gate with kinetics of its own.
    Fraction {
        /// The weight of the part.
        weight: Expr,
        /// Its members.
        members: Vec<GateMember>,
        /// The whole member.
        span: Span,
    },
}

/// `kinetics { C <-> O (alpha, beta); ... }`
#[derive(Debug, Clone, PartialEq)]
pub struct Kinetics {
    /// The members, in file order.
    pub members: Vec<KineticsMember>,
    /// The whole block.
    pub span: Span,
}

/// A member of a `kinetics` block.
#[derive(Debug, Clone, PartialEq)]
pub enum KineticsMember {
    /// `C <-> O (forward, backward)`, `O -> I (rate)`.
    Reaction {
        /// The state that it leads from.
        from: Name,
        /// The state that it leads to.
        to: Name,
        /// Does it lead back, too?
        both: bool,
        /// Its rates: as many as are written.
        rates: Vec<Expr>,
        /// The whole member.
        span: Span,
    },
    /// `conserve C + O = 1`.
    Conserve {
        /// The states.
        states: Vec<Name>,
        /// Their sum.
        sum: Expr,
        /// The whole member.
        span: Span,
    },
    /// `init C = 1`.
    Init(Let),
    /// `q10 = 3 at 6.3 degC`, or a fixed factor; both multiply the rates of all reactions.
    Q10 {
        /// The factor.
        value: Expr,
        /// The temperature at which the rates were measured.
        at: Option<Expr>,
        /// The whole member.
        span: Span,
    },
}

/// A cell model.
#[derive(Debug, Clone, PartialEq)]
pub struct Cell {
    /// The `///` lines before it.
    pub docs: Vec<String>,
    /// Its name.
    pub name: Name,
    /// Its members in file order.
    pub members: Vec<CellMember>,
    /// The whole item.
    pub span: Span,
}

/// A member of a cell.
#[derive(Debug, Clone, PartialEq)]
pub enum CellMember {
    /// A parameter.
    Param(Param),
    /// A named expression.
    Let(Let),
    /// A state (point neurons).
    State(State),
    /// The equation of a state.
    Equation(Equation),
    /// `input i_app: nA`: a port that network inputs can drive.
    Port {
        /// Its name.
        name: Name,
        /// Its unit; dimensionless if absent.
        unit: Option<UnitExpr>,
    },
    /// A compartment.
    Compartment(Compartment),
    /// `couple soma <- dend: g`: conductance density as seen by the left-hand side.
    Couple {
        /// The compartment that receives the current.
        into: Name,
        /// The other one.
        from: Name,
        /// Conductance density.
        conductance: Expr,
        /// The whole member.
        span: Span,
    },
    /// `morphology = swc("cell.swc")`: a shape from a file.
    Morphology {
        /// Which, as a call.
        value: Expr,
        /// The whole member.
        span: Span,
    },
    /// A section of a cell with a morphology.
    Section(Section),
    /// `compartments { max_length = 20 um }`: how sections are cut.
    Compartments {
        /// Its keys.
        keys: Vec<Let>,
        /// The whole member.
        span: Span,
    },
    /// `region soma, axon { ... }`: what the membrane of some sections has.
    Region(Region),
    /// `spike when ...`.
    Spike(Spike),
}

/// `section dend { from soma(1); length = 200 um; diam = 2 um .. 1 um }`.
#[derive(Debug, Clone, PartialEq)]
pub struct Section {
    /// Its name.
    pub name: Name,
    /// Its members in file order.
    pub members: Vec<SectionMember>,
    /// The whole member.
    pub span: Span,
}

/// A member of a section.
#[derive(Debug, Clone, PartialEq)]
pub enum SectionMember {
    /// `from soma(1)`: where it begins.
    From(Located),
    /// `toward (0, 1, 0)`: its direction.
    Toward(Point),
    /// `length = ...`, `diam = ... .. ...`, `compartments = ...`; also any misspelt key.
    Key {
        /// Its name.
        name: Name,
        /// The value, or where it begins.
        value: Expr,
        /// What it goes to.
        end: Option<Expr>,
    },
}

/// `soma(0.5)`: a place in a cell.
#[derive(Debug, Clone, PartialEq)]
pub struct Located {
    /// The section, with its index if it has one: `dend[3]`.
    pub section: Name,
    /// How far along it, from 0 to 1.
    pub at: Box<Expr>,
    /// All of it.
    pub span: Span,
}

/// A region of a cell with a morphology.
#[derive(Debug, Clone, PartialEq)]
pub struct Region {
    /// Which sections: their names, with or without index, or `all`.
    pub sections: Vec<Name>,
    /// `cm`, `ra`, `v_init`, and what is inserted.
    pub members: Vec<CompartmentMember>,
    /// The whole member.
    pub span: Span,
}

/// A compartment of a cell.
#[derive(Debug, Clone, PartialEq)]
pub struct Compartment {
    /// Its name.
    pub name: Name,
    /// Its members in file order.
    pub members: Vec<CompartmentMember>,
    /// The whole member.
    pub span: Span,
}

/// A member of a compartment.
#[derive(Debug, Clone, PartialEq)]
pub enum CompartmentMember {
    /// `area = ...`, `cm = ...`, `v_init = ...`; also any misspelt key.
    Key(Let),
    /// `param`.
    Param(Param),
    /// `let`.
    Let(Let),
    /// One channel of an `insert` line.
    Insert {
        /// The channel.
        channel: Name,
        /// `as name`: the instance's own name.
        alias: Option<Name>,
        /// Parameter overrides.
        args: Vec<(Name, Expr)>,
        /// The whole entry.
        span: Span,
    },
    /// `pool Ca { init = 3.715; Ca' = ... }`.
    Pool {
        /// Its name, also the name of its state.
        name: Name,
        /// The declared unit.
        unit: Option<UnitExpr>,
        /// `init = ...` and `let`s, parsed as keys.
        keys: Vec<Let>,
        /// `Ca' = ...`.
        equations: Vec<Equation>,
        /// The whole member.
        span: Span,
    },
}

/// `spike when v > -50 mV { v = -60 mV; refractory 5 ms }`.
#[derive(Debug, Clone, PartialEq)]
pub struct Spike {
    /// What makes a spike.
    pub condition: SpikeCondition,
    /// What a spike does.
    pub actions: Vec<SpikeAction>,
    /// The whole member.
    pub span: Span,
}

/// What makes a spike.
#[derive(Debug, Clone, PartialEq)]
pub enum SpikeCondition {
    /// `x crosses level`: an upward crossing within a step.
    Crosses(Expr, Expr),
    /// A condition on the state after a step.
    When(Expr),
}

/// What a spike does.
#[derive(Debug, Clone, PartialEq)]
pub enum SpikeAction {
    /// `v = c`, `u += d`, `u -= d`.
    Assign(Assign),
    /// `refractory 5 ms`, `refractory 5 ms holds v`, `refractory 5 ms holds nothing`.
    Refractory {
        /// How long.
        time: Expr,
        /// The states that are held meanwhile; those that the condition reads if absent.
        holds: Option<Vec<Name>>,
    },
}

/// How a spike changes a state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AssignOp {
    /// `=`
    Set,
    /// `+=`
    Add,
    /// `-=`
    Sub,
}

/// A gap junction model: parameters and a current of `dv` (v here minus v there), outward positive.
#[derive(Debug, Clone, PartialEq)]
pub struct Junction {
    /// The `///` lines before it.
    pub docs: Vec<String>,
    /// Its name.
    pub name: Name,
    /// Parameters.
    pub params: Vec<Param>,
    /// Named expressions.
    pub lets: Vec<Let>,
    /// `current i = ...` (exactly one is right; `hir` checks).
    pub currents: Vec<Let>,
    /// The whole item.
    pub span: Span,
}

/// A synapse model: what arriving events do, or what is brought at every moment, and the current that flows.
#[derive(Debug, Clone, PartialEq)]
pub struct Synapse {
    /// The `///` lines before it.
    pub docs: Vec<String>,
    /// Its name.
    pub name: Name,
    /// Its members in file order.
    pub members: Vec<SynapseMember>,
    /// The whole item.
    pub span: Span,
}

/// A member of a synapse.
#[derive(Debug, Clone, PartialEq)]
pub enum SynapseMember {
    /// `param tau = 5 ms`.
    Param(Param),
    /// `let x = ...`.
    Let(Let),
    /// `state g: nS = 0 nS`.
    State(State),
    /// `g' = -g / tau`.
    Equation(Equation),
    /// `current i = ...`.
    Current(Let),
    /// `on event(weight: nS) { g += weight }`.
    Event(OnEvent),
    /// `sum g(weight: nS) = weight * s`.
    Sum(Sum),
}

/// What all connections bring a cell at every moment.
#[derive(Debug, Clone, PartialEq)]
pub struct Sum {
    /// Its name.
    pub name: Name,
    /// The weight of a connection, with its unit (none: a pure number).
    pub weight: Option<(Name, Option<UnitExpr>)>,
    /// What one connection brings.
    pub value: Expr,
    /// The whole line.
    pub span: Span,
}

/// What an event does.
#[derive(Debug, Clone, PartialEq)]
pub struct OnEvent {
    /// Whose.
    pub of: EventOf,
    /// The weight of the synapse, with its unit (none: a pure number).
    pub weight: Option<(Name, Option<UnitExpr>)>,
    /// How much of a modulator there is, with its unit.
    pub amount: Option<(Name, Option<UnitExpr>)>,
    /// Its assignments.
    pub actions: Vec<Assign>,
    /// The whole block.
    pub span: Span,
}

/// Whose events a synapse answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EventOf {
    /// `on event`, `on pre`: those that arrive from the cell before it.
    Pre,
    /// `on post`: the spikes of the cell behind it.
    Post,
    /// `on modulator`: what reaches the synapses from a third side.
    Modulator,
}

/// `v = e`, `v += e`, `v -= e`.
#[derive(Debug, Clone, PartialEq)]
pub struct Assign {
    /// The state.
    pub name: Name,
    /// How it is set.
    pub op: AssignOp,
    /// The value.
    pub value: Expr,
}

/// A network.
#[derive(Debug, Clone, PartialEq)]
pub struct Network {
    /// The `///` lines before it.
    pub docs: Vec<String>,
    /// Its name.
    pub name: Name,
    /// Its members in file order.
    pub members: Vec<NetworkMember>,
    /// The whole item.
    pub span: Span,
}

/// A member of a network.
#[derive(Debug, Clone, PartialEq)]
pub enum NetworkMember {
    /// `param n = 1`.
    Param(Param),
    /// `population squid: Squid[n]`, `population e: Lif[40, 40] { spacing = 50 um }`.
    Population {
        /// Its name.
        name: Name,
        /// The cell model.
        cell: Name,
        /// One to three sizes; none means one cell.
        sizes: Vec<Expr>,
        /// `spacing = 50 um`.
        keys: Vec<ConnectKey>,
        /// The whole member.
        span: Span,
    },
    /// `param io.g_cal ~ uniform(...)` (`init` false), `init io.soma.v = ...` (`init` true).
    Set {
        /// Is it an initial value?
        init: bool,
        /// What is set.
        target: Path,
        /// Was it written with `~`?
        random: bool,
        /// The value per cell.
        value: Expr,
        /// The whole member.
        span: Span,
    },
    /// `input step: pulse(...) -> squid.soma` (`clamp` false), `clamp hold: -60 mV -> squid.soma` (`clamp` true).
    Input {
        /// Does it hold a state, in place of driving it?
        clamp: bool,
        /// Its name.
        name: Name,
        /// Its value as a function of time.
        value: Expr,
        /// The resistance of the electrode that a clamp holds through.
        electrode: Option<Expr>,
        /// What it drives.
        target: Path,
        /// The whole member.
        span: Span,
    },
    /// `connect io.dend -- io.dend via Cx36(g = ...) { rule = ... }`, `connect e -> i via Ampa { rule = ...; weight = ...; delay = ... }`.
    Connect {
        /// One side, or the source.
        from: Path,
        /// The other side, or the target.
        to: Path,
        /// Was it written with `->`?
        directed: bool,
        /// The model of the junction or synapse.
        via: Through,
        /// `rule = ...` and other keys.
        keys: Vec<ConnectKey>,
        /// The whole member.
        span: Span,
    },
    /// `probe shaft of pyr { ... }`.
    Probe(Probe),
    /// `drive e via Ampa from poisson(rate = 300 Hz) { weight = 1 nS }`.
    Drive {
        /// What is driven.
        target: Path,
        /// The synapse.
        via: Through,
        /// Where the events come from.
        from: Expr,
        /// `weight = ...`.
        keys: Vec<ConnectKey>,
        /// The whole member.
        span: Span,
    },
}

/// `probe shaft of pyr { from (0 um, -200 um, 0 um) to (0 um, 600 um, 0 um) in 16 }`.
#[derive(Debug, Clone, PartialEq)]
pub struct Probe {
    /// Its name.
    pub name: Name,
    /// The cells that it hears.
    pub of: Path,
    /// Its members in file order.
    pub members: Vec<ProbeMember>,
    /// The whole member.
    pub span: Span,
}

/// A member of a probe.
#[derive(Debug, Clone, PartialEq)]
pub enum ProbeMember {
    /// `at (10 um, 0 um, 0 um)`.
    Contact(Box<Point>),
    /// `from (0 um, 0 um, 0 um) to (0 um, 600 um, 0 um) in 16`.
    Contacts {
        /// The first and the last.
        ends: Box<[Point; 2]>,
        /// How many, as written.
        count: Name,
    },
    /// `sigma = 0.3 S/m`.
    Key(Let),
}

/// A place or a direction in space: `(x, y, z)`.
#[derive(Debug, Clone, PartialEq)]
pub struct Point {
    /// Its coordinates.
    pub axes: [Expr; 3],
    /// With its parentheses.
    pub span: Span,
}

/// `via Ampa as fast(tau = 2 ms)`, `modulating Stdp`.
#[derive(Debug, Clone, PartialEq)]
pub struct Through {
    /// Do events modulate synapses that are there? Then the model is what these are called.
    pub modulating: bool,
    /// The model.
    pub model: Name,
    /// What it is called here.
    pub alias: Option<Name>,
    /// Parameter overrides.
    pub args: Vec<(Name, Expr)>,
}

/// `rule = ...`, `delay ~ uniform(...)`.
#[derive(Debug, Clone, PartialEq)]
pub struct ConnectKey {
    /// Its name.
    pub name: Name,
    /// Was it written with `~`?
    pub random: bool,
    /// Its value.
    pub value: Expr,
}

/// The `run` block.
#[derive(Debug, Clone, PartialEq)]
pub struct Run {
    /// Its members in file order.
    pub members: Vec<RunMember>,
    /// The whole item.
    pub span: Span,
}

/// A member of a `run` block.
#[derive(Debug, Clone, PartialEq)]
pub enum RunMember {
    /// `duration = 100 ms`, `dt = ...`, `method = exp_euler`, `seed = 42`, `celsius = 6.3 degC`, `network = main`.
    Key(Let),
    /// `record squid.soma.{v, Na.m} every 0.1 ms`.
    Record {
        /// What.
        target: Path,
        /// How often; every step if absent.
        every: Option<Expr>,
        /// From when on; from the start if absent.
        from: Option<Expr>,
        /// Until when; to the end if absent.
        to: Option<Expr>,
        /// Around which spikes; always if absent.
        around: Option<Box<Around>>,
        /// The whole member.
        span: Span,
    },
    /// `record spikes of squid`.
    RecordSpikes {
        /// The population.
        target: Path,
        /// The whole member.
        span: Span,
    },
    /// `sweep Na.gbar = 80 .. 160 mS/cm2 in 41 steps`.
    Sweep(Sweep),
}

/// `sweep Na.gbar = 80 .. 160 mS/cm2, K.gbar = 20 .. 50 mS/cm2 in 100 samples`: an axis of a sweep.
#[derive(Debug, Clone, PartialEq)]
pub struct Sweep {
    /// What is set along the axis, one thing or several together.
    pub swept: Vec<Swept>,
    /// How many values ranges have; as many whole numbers as there are if absent.
    pub count: Option<SweepCount>,
    /// The whole member.
    pub span: Span,
}

/// `Na.gbar = 80 .. 160 mS/cm2`, `x = [1, 2, 5] mV`.
#[derive(Debug, Clone, PartialEq)]
pub struct Swept {
    /// The parameter or state, as `--set` calls it.
    pub name: Name,
    /// The same with its parts.
    pub path: Path,
    /// Its values.
    pub values: SweptValues,
}

/// What a `sweep` line says of values.
#[derive(Debug, Clone, PartialEq)]
pub enum SweptValues {
    /// From the first to the last.
    Range(SweptNumber, SweptNumber),
    /// These.
    List(Vec<SweptNumber>),
}

/// `-65 mV`, as it is written.
#[derive(Debug, Clone, PartialEq)]
pub struct SweptNumber {
    /// The number with its sign.
    pub number: String,
    /// Its unit, where it has one.
    pub unit: Option<String>,
    /// Both.
    pub span: Span,
}

/// `in 41 steps`, `in 7 log steps`, `in 100 samples`, `in 100 random samples`.
#[derive(Debug, Clone, PartialEq)]
pub struct SweepCount {
    /// The number, digits only.
    pub count: String,
    /// Are neighbours a factor apart?
    pub log: bool,
    /// Is every sample drawn without a look at the others?
    pub random: bool,
    /// Are values drawn?
    pub samples: bool,
    /// The whole of it.
    pub span: Span,
}

/// `around spikes of squid[0] from -2 ms to 5 ms`.
#[derive(Debug, Clone, PartialEq)]
pub struct Around {
    /// Whose spikes.
    pub of: Path,
    /// From when on, counted from a spike.
    pub from: Option<Expr>,
    /// Until when, counted from a spike.
    pub to: Option<Expr>,
    /// The whole of it.
    pub span: Span,
}

/// The `train` block.
#[derive(Debug, Clone, PartialEq)]
pub struct Train {
    /// Its members in file order.
    pub members: Vec<TrainMember>,
    /// The whole item.
    pub span: Span,
}

/// A member of a `train` block.
#[derive(Debug, Clone, PartialEq)]
pub enum TrainMember {
    /// `data = "digits.npz"`, `loss = cross_entropy(spike_count(out))`, `batch = 32`, ...
    Key(Let),
    /// `learn a.b.Kick.weight`, `learn a.b.Kick.delay = 1 .. 20 ms`.
    Learn {
        /// What.
        target: Path,
        /// Where it stays, if that is said: from the first number to the second.
        range: Option<(SweptNumber, SweptNumber)>,
        /// The whole member.
        span: Span,
    },
    /// `keep spike_count(hidden) = 1 .. 20 within 10`.
    Keep {
        /// What is read out.
        readout: Name,
        /// Of what: the path, and its text without blanks.
        of: (Path, Name),
        /// Between which values it costs nothing.
        range: (SweptNumber, SweptNumber),
        /// How far outside it costs 1.
        within: SweptNumber,
        /// The whole member.
        span: Span,
    },
}

/// The `fit` block.
#[derive(Debug, Clone, PartialEq)]
pub struct Fit {
    /// Its members in file order.
    pub members: Vec<FitMember>,
    /// The whole item.
    pub span: Span,
}

/// A member of a `fit` block.
#[derive(Debug, Clone, PartialEq)]
pub enum FitMember {
    /// `search = nelder_mead`, `starts = 4`, ...
    Key(Let),
    /// `free Na.gbar = 50 .. 300 mS/cm2`, each with a range.
    Free(Vec<Swept>),
    /// `target squid.axon.v = "trace.csv"`, `target rate(squid) = 40 Hz from 20 ms to 80 ms within 2 Hz`.
    Target {
        /// What is read out of it; the trace itself if absent.
        feature: Option<Name>,
        /// What is recorded, or whose spikes: the path, and its text without blanks.
        of: (Path, Name),
        /// What it comes near to.
        to: Expr,
        /// How far off is as good as another target off by as much of its own.
        within: Option<Expr>,
        /// From when on it is read out, and until when.
        window: Box<[Option<Expr>; 2]>,
        /// The whole member.
        span: Span,
    },
}

/// A dotted path with optional cell selection and groups: `io[0..10].{soma, axon}.v`.
#[derive(Debug, Clone, PartialEq)]
pub struct Path {
    /// The segments, at least one.
    pub segments: Vec<Segment>,
    /// The place.
    pub span: Span,
}

/// A segment of a [`Path`].
#[derive(Debug, Clone, PartialEq)]
pub enum Segment {
    /// A name, with an optional selection of cells behind it.
    Name(Name, Option<Selection>),
    /// `soma(0.5)`: a place in a cell.
    Located(Located),
    /// `{a, b.c}`.
    Group(Vec<Path>, Span),
}

/// `[3]`, `[0..10]`: flat cell indices.
#[derive(Debug, Clone, PartialEq)]
pub struct Selection {
    /// The first cell.
    pub first: Expr,
    /// One past the last; a single cell if absent.
    pub end: Option<Expr>,
    /// The place.
    pub span: Span,
}

/// An expression.
#[derive(Debug, Clone, PartialEq)]
pub struct Expr {
    /// What it is.
    pub kind: ExprKind,
    /// The place.
    pub span: Span,
}

/// What an expression is.
#[derive(Debug, Clone, PartialEq)]
pub enum ExprKind {
    /// A number with its unit.
    Number {
        /// The digits as written (no sign).
        text: String,
        /// The unit behind it.
        unit: Option<UnitExpr>,
    },
    /// `true`, `false`.
    Bool(bool),
    /// `"file.npy"`.
    Str(String),
    /// `v`, `soma.Na.m`.
    Path(Vec<Name>),
    /// `-x`, `not x`.
    Unary(UnaryOp, Box<Expr>),
    /// `x + y`.
    Binary(BinaryOp, Box<Expr>, Box<Expr>),
    /// `if c then a else b`.
    If(Box<Expr>, Box<Expr>, Box<Expr>),
    /// `f(x, name = y)`.
    Call(Name, Vec<Arg>),
    /// `soma(0.5).v`; of other cells `cells.soma(0.5).v`: what is before the place, the place, and what is behind it.
    At(Vec<Name>, Box<Located>, Vec<Name>),
}

/// An argument of a call.
#[derive(Debug, Clone, PartialEq)]
pub struct Arg {
    /// `name =`.
    pub name: Option<Name>,
    /// The value.
    pub value: Expr,
}

/// Unary operators.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum UnaryOp {
    /// `-`
    Neg,
    /// `not`
    Not,
}

/// Binary operators.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum BinaryOp {
    /// `+`
    Add,
    /// `-`
    Sub,
    /// `*`
    Mul,
    /// `/`
    Div,
    /// `^`
    Pow,
    /// `<`
    Lt,
    /// `<=`
    Le,
    /// `>`
    Gt,
    /// `>=`
    Ge,
    /// `==`
    Eq,
    /// `!=`
    Ne,
    /// `and`
    And,
    /// `or`
    Or,
}

/// `mS/cm^2`, `/ms`, `1`: a product of unit powers.
#[derive(Debug, Clone, PartialEq)]
pub struct UnitExpr {
    /// Unit names as written with their signed powers (`/` already turned into a sign); empty for `1`.
    pub factors: Vec<(Name, i32)>,
    /// The place.
    pub span: Span,
}
