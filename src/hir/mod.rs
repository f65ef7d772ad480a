//! The resolved model: names are ids, every expression has a type.
//!
//! In come syntax trees; out goes a [`Model`] in which channels are already part of the cells they are inserted in, or
//! diagnostics for every mistake.
//! Never true here: an error was silently dropped, or a value has no dimension.

mod advice;
mod builtins;
mod calls;
mod cell;
mod channel;
mod compartment;
mod dimension;
mod domain;
mod draws;
mod error;
mod expr;
mod fit;
mod gate;
mod graded;
mod imports;
mod input;
mod insert;
mod items;
mod junction;
mod keys;
mod kinetics;
mod lower;
mod members;
mod morphology;
mod names;
mod network;
mod place;
mod plasticity;
mod print;
mod probe;
mod projection;
mod run;
mod scope;
mod spike;
mod sweep;
mod synapse;
mod train;
mod uses;
mod warnings;

pub use builtins::{Builtin, FUNCTIONS, FunctionInfo, RESERVED, stimulus_params};
pub use domain::{Demand, Domain, Whose, demand, of_param as demand_of_param};
pub use error::{SET_FROM_OUTSIDE, shown};
pub use fit::{Feature, Fit, FitSearch, FitTarget, Goal, Wanted};
pub use imports::{LoadedFile, Loader, NoFiles, Sources, load};
pub use keys::Block as KeyBlock;
pub use lower::{lower, lower_with_uses};
pub use print::{equation, print};
pub use sweep::{Spacing, Sweep, Swept, SweptNumber, SweptValues, Way};
pub use train::{Aim, Gradient, Keep, Learn, Loss, Optimizer, Read, Readout, Samples, Schedule, Slope, Test, Train};
pub use uses::{Block, Uses};

use crate::connect::RULES;
use crate::data::DataFile;
use crate::morphology::space;
use crate::morphology::swc::Soma;
use crate::morphology::{Measure, Section, Tree};
use crate::operators::Distribution;
use crate::source::Span;
use crate::units::{Dim, DisplayUnit};
use std::sync::Arc;

/// A symbol of a definition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SymbolId(pub u32);

/// The type of an expression.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Ty {
    /// A number of some dimension.
    Real(Dim),
    /// A condition.
    Bool,
}

impl Ty {
    /// The dimension of a number; a condition counts as a pure number.
    pub fn dim(self) -> Dim {
        match self {
            Ty::Real(dim) => dim,
            Ty::Bool => Dim::ONE,
        }
    }
}

/// A checked expression. Numbers are in canonical units. Two are equal that say the same, wherever they stand.
#[derive(Debug, Clone)]
pub struct Expr {
    /// What it is.
    pub kind: ExprKind,
    /// Its type.
    pub ty: Ty,
    /// The place.
    pub span: Span,
}

impl PartialEq for Expr {
    fn eq(&self, other: &Expr) -> bool {
        (&self.kind, self.ty) == (&other.kind, other.ty)
    }
}

/// What an expression is.
#[derive(Debug, Clone, PartialEq)]
pub enum ExprKind {
    /// A number in canonical units.
    Number(f64),
    /// A truth value.
    Bool(bool),
    /// A symbol of the definition the expression belongs to.
    Symbol(SymbolId),
    /// A parameter of the network (in inputs, initial values and parameter settings).
    NetworkParam(SymbolId),
    /// The time, in ms.
    Time,
    /// The temperature of the run, in K.
    Celsius,
    /// How long a step is, in `white_noise`.
    StepLength,
    /// As the initial value of a state: where its derivative is zero, all others having their initial values.
    SteadyState,
    /// The number of the cell in its population.
    Index,
    /// In an event of a synapse: what the events carry that arrive, added up; of a synapse that remembers, its weight.
    Weight,
    /// How much of a modulator reaches a synapse in a step.
    Amount,
    /// What every synapse has for itself: an index into [`Plastic::own`].
    OfEdge(u32),
    /// In a cell with sections: a number of the compartment.
    Measure(Measure),
    /// In a cell with sections: the current density that flows out through the membrane of the compartment.
    Outward,
    /// In a weight or a delay: how far the two cells are from each other; a length, or in steps of the grid.
    Distance,
    /// In a junction: the voltage here minus the voltage there, in mV.
    Dv,
    /// In a surrogate: how far a cell is above its threshold, as a number in canonical units.
    Beyond,
    /// `-x`, `not x`.
    Unary(crate::syntax::ast::UnaryOp, Arc<Expr>),
    /// `x + y`.
    Binary(crate::syntax::ast::BinaryOp, Arc<Expr>, Arc<Expr>),
    /// `if c then a else b`.
    If(Arc<Expr>, Arc<Expr>, Arc<Expr>),
    /// A built-in function of numbers.
    Call(Builtin, Vec<Expr>),
    /// A random draw per cell, from a standard distribution; `stream` keeps draws apart.
    Draw(Distribution, u64),
    /// A number per cell from a file.
    File(DataId),
    /// A standard normal number per cell that is drawn anew after each interval (in ms).
    Noise(u64, Arc<Expr>),
    /// White noise in an equation, of the variance 1 per time; which of all that the file has: where one stands several times, it is the same.
    Xi(u32),
    /// An Ornstein-Uhlenbeck process of mean 0 and variance 1 for each cell, with this time constant; the random streams of where it begins and of its steps.
    Wanders([u64; 2], Arc<Expr>),
    /// In the condition of a spike: true by chance in a step, so often in a time as a rate says, with draws of their own for each number.
    Chance(u64, Arc<Expr>),
    /// The value at time `t` of a series from a file.
    Series(DataId),
}

/// A data file that the model reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DataId(pub u32);

/// A named quantity of a definition.
#[derive(Debug, Clone, PartialEq)]
pub struct Symbol {
    /// Its name inside the definition, such as `soma.Na.m`.
    pub name: String,
    /// Where it is defined.
    pub span: Span,
    /// What the user wrote about it.
    pub docs: Vec<String>,
    /// What it is.
    pub kind: SymbolKind,
    /// Its type.
    pub ty: Ty,
    /// The unit it was declared with.
    pub unit: Option<DisplayUnit>,
}

impl Symbol {
    /// The unit in which its values are shown.
    pub fn display_unit(&self) -> DisplayUnit {
        self.unit.clone().unwrap_or_else(|| self.ty.dim().display_unit())
    }
}

/// What a symbol is.
#[derive(Debug, Clone, PartialEq)]
pub enum SymbolKind {
    /// A parameter with its default.
    Param(Expr),
    /// A named expression.
    Let(Expr),
    /// A state.
    State {
        /// The value at the start.
        init: Expr,
        /// The time derivative.
        rate: Expr,
        /// What it is to the methods.
        kind: StateKind,
        /// The first state of the kinetic scheme that it is of, if it is of one.
        scheme: Option<SymbolId>,
    },
    /// What the network drives: the sum of all inputs to this place.
    Port(PortKind),
    /// In a channel: the voltage of the compartment it will be inserted in.
    Voltage,
    /// In a channel: the state of a pool of the compartment it will be inserted in.
    Pool,
}

/// What a state is, where the methods tell states apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StateKind {
    /// A fraction of channels, expected in [0, 1].
    Gate,
    /// A concentration in a compartment.
    Pool,
    /// Any other.
    Plain,
}

impl StateKind {
    /// The word for it in printed models.
    pub(crate) fn word(self) -> &'static str {
        match self {
            StateKind::Gate => "gate",
            StateKind::Pool => "pool",
            StateKind::Plain => "state",
        }
    }
}

/// What drives a port, and how it enters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PortKind {
    /// Injected current density of a compartment; positive depolarizes.
    Injected,
    /// `i_syn` of a point neuron: total current, outward positive (injected current counts negative).
    Outward,
    /// A port declared with `input`.
    Declared,
    /// The sum of a graded synapse: what all connections bring to the cell. Before the synapse is parted, the weight of one of them, too.
    Summed,
    /// The current density that a clamp injects to hold the voltage of a compartment: `i_clamp`.
    Clamp {
        /// The voltage.
        v: SymbolId,
        /// The capacitance.
        cm: SymbolId,
        /// The injected current density.
        port: SymbolId,
    },
    /// The current through the electrodes at a place of a cell with sections: `i_clamp`.
    Electrode,
}

/// A channel, checked by itself.
#[derive(Debug, Clone, PartialEq)]
pub struct Channel {
    /// Its name.
    pub name: String,
    /// Where it is defined.
    pub span: Span,
    /// What the user wrote about it.
    pub docs: Vec<String>,
    /// Its symbols; `i` is the current.
    pub symbols: Vec<Symbol>,
}

/// A cell with everything that is inserted in it.
#[derive(Debug, Clone, PartialEq)]
pub struct Cell {
    /// Its name.
    pub name: String,
    /// Where it is defined.
    pub span: Span,
    /// What the user wrote about it.
    pub docs: Vec<String>,
    /// Its symbols.
    pub symbols: Vec<Symbol>,
    /// Its compartments; empty for a point neuron.
    pub compartments: Vec<Compartment>,
    /// Its spike rule.
    pub spike: Option<Spike>,
    /// Its sections, if it has some.
    pub morphology: Option<Morphology>,
}

/// A file with the shape of cells.
#[derive(Debug, Clone, PartialEq)]
pub struct ShapeFile {
    /// Its name, as written.
    pub name: String,
    /// How its soma was understood.
    pub soma: Soma,
    /// The lines of points that are at the place of their parent.
    pub doubled: Vec<usize>,
}

/// A cell of sections: a cable whose compartments have the same equations wherever the same channels are.
#[derive(Debug, Clone, PartialEq)]
pub struct Morphology {
    /// The file that its shape is from, if it is from one.
    pub file: Option<ShapeFile>,
    /// Its sections.
    pub sections: Arc<[Section]>,
    /// Its compartments.
    pub tree: Arc<Tree>,
    /// The voltage.
    pub v: SymbolId,
    /// The capacitance.
    pub cm: SymbolId,
    /// The resistivity.
    pub ra: SymbolId,
    /// The area.
    pub area: SymbolId,
    /// What inputs drive: an injected current density.
    pub port: SymbolId,
    /// Where channels are.
    pub parts: Vec<Part>,
    /// Which ions diffuse along it.
    pub diffusions: Vec<Diffusion>,
    /// Of each symbol of the cell, where it has values.
    pub homes: Vec<Home>,
}

/// Ions that diffuse along the sections of a cell: the pools of a name that say so. What they diffuse in is the one of [`Tree::lumens`] with
/// the same number.
#[derive(Debug, Clone, PartialEq)]
pub struct Diffusion {
    /// The name of the pools.
    pub name: String,
    /// The diffusion coefficient in each compartment; 0 where there is none.
    pub coefficient: SymbolId,
    /// The pools, each of a region.
    pub pools: Vec<DiffusingPool>,
}

/// A pool whose ions diffuse.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DiffusingPool {
    /// The concentration.
    pub pool: SymbolId,
    /// The diffusion coefficient that its region says.
    pub coefficient: SymbolId,
    /// How deep beneath the membrane it is, in cm; none where it fills the whole cross-section.
    pub shell: Option<f64>,
}

/// A channel in some compartments of a cell, or a pool.
#[derive(Debug, Clone, PartialEq)]
pub struct Part {
    /// The name of the region, such as `soma`, which its symbols have in front.
    pub region: String,
    /// The name of the instance, such as `Na`.
    pub name: String,
    /// The compartments that it is in, among the elements of the tree.
    pub elements: Arc<[u32]>,
    /// Its current, outward positive. A pool has none, and the side before a graded synapse.
    pub current: Option<SymbolId>,
    /// Which parts have the same compartments and read each other's symbols: those of a region.
    pub together: usize,
    /// Where it is inserted.
    pub span: Span,
}

/// Where a symbol of a cell with sections has values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Home {
    /// One for the cell.
    Cell,
    /// One for each element of the tree.
    Tree,
    /// One for each compartment of a [`Part`].
    Part(usize),
}

impl Morphology {
    /// Is a symbol of the compartments computed from the shape or from what regions say?
    pub fn is_derived(&self, cell: &Cell, symbol: SymbolId) -> bool {
        self.homes[symbol.0 as usize] == Home::Tree && !cell.symbol(symbol).name.contains('.')
    }

    /// With another part, apart from all others, whose symbols follow those that are there.
    pub fn with_part(mut self, part: Part, symbols: usize) -> Morphology {
        let together = self.parts.iter().map(|p| p.together + 1).max().unwrap_or(0);
        self.parts.push(Part { together, ..part });
        self.homes.extend(std::iter::repeat_n(Home::Part(self.parts.len() - 1), symbols));
        self
    }

    /// The symbol that a name means in all compartments, such as `v`.
    pub fn find_everywhere(&self, cell: &Cell, name: &str) -> Option<SymbolId> {
        cell.find(name).filter(|id| self.homes[id.0 as usize] == Home::Tree)
    }
}

impl Part {
    /// The symbol that a name means in it, such as `Na.m`.
    pub fn find(&self, cell: &Cell, name: &str) -> Option<SymbolId> {
        // The symbol of a pool is its concentration.
        let own = |rest: &&str| rest.is_empty() || rest.starts_with('.');
        let rest = name.strip_prefix(&self.name).filter(own)?;
        cell.find(&format!("{}.{}{rest}", self.region, self.name))
    }
}

impl Cell {
    /// The symbol of a name.
    pub fn find(&self, name: &str) -> Option<SymbolId> {
        self.symbols.iter().position(|s| s.name == name).map(|i| SymbolId(i as u32))
    }

    /// The symbol of an id.
    pub fn symbol(&self, id: SymbolId) -> &Symbol {
        &self.symbols[id.0 as usize]
    }
}

/// A compartment of a cell.
#[derive(Debug, Clone, PartialEq)]
pub struct Compartment {
    /// Its name.
    pub name: String,
    /// Its voltage.
    pub v: SymbolId,
    /// Its injected current density.
    pub port: SymbolId,
    /// Its surface, if given.
    pub area: Option<SymbolId>,
}

/// A spike rule.
#[derive(Debug, Clone, PartialEq)]
pub struct Spike {
    /// What makes a spike.
    pub condition: SpikeCondition,
    /// In a cell with sections, the element of the tree that is looked at.
    pub at: Option<usize>,
    /// The states it sets, with the new values (functions of the states after the step).
    pub resets: Vec<(SymbolId, Expr)>,
    /// How long states are held.
    pub refractory: Option<Expr>,
    /// Which ones; those that the condition reads if absent.
    pub holds: Option<Vec<SymbolId>>,
    /// Where it stands.
    pub span: Span,
}

/// What makes a spike.
#[derive(Debug, Clone, PartialEq)]
pub enum SpikeCondition {
    /// An upward crossing of a level within a step.
    Crosses(Expr, Expr),
    /// A condition on the states after a step.
    When(Expr),
}

/// A network.
#[derive(Debug, Clone, PartialEq)]
pub struct Network {
    /// Its name.
    pub name: String,
    /// Its parameters (and those of its inputs, such as `step.amplitude`).
    pub params: Vec<Symbol>,
    /// Its populations.
    pub populations: Vec<Population>,
    /// Values per cell.
    pub settings: Vec<Setting>,
    /// Its inputs.
    pub inputs: Vec<Input>,
    /// States that are held.
    pub clamps: Vec<Clamp>,
    /// Its gap junctions.
    pub connections: Vec<Connection>,
    /// Its directed connections.
    pub projections: Vec<Projection>,
    /// Events from outside.
    pub drives: Vec<Drive>,
    /// Its probes.
    pub probes: Vec<Probe>,
    /// What arguments of draws, noise and stimuli must be.
    pub demands: Vec<Demand<Expr>>,
    /// Where it is defined.
    pub span: Span,
}

/// Cells of one model.
#[derive(Debug, Clone, PartialEq)]
pub struct Population {
    /// Its name.
    pub name: String,
    /// Index into [`Model::cells`].
    pub cell: usize,
    /// One to three sizes, functions of network parameters.
    pub sizes: Vec<Expr>,
    /// How far neighbours on the grid are from each other, a function of network parameters.
    pub spacing: Option<Expr>,
    /// How far each cell stands along x, y and z from its place on the grid, or from the origin where that has no spacing; values of cells.
    pub offset: [Option<Expr>; 3],
    /// The receptors of its cells.
    pub receptors: Vec<Receptor>,
    /// Where it is defined.
    pub span: Span,
}

/// Contacts that hear the potential around cells with sections.
#[derive(Debug, Clone, PartialEq)]
pub struct Probe {
    /// Its name.
    pub name: String,
    /// The populations that it hears (indices into [`Network::populations`]), each once.
    pub of: Vec<usize>,
    /// Where its contacts are, in cm.
    pub contacts: Vec<[f64; 3]>,
    /// How well the medium conducts, a function of network parameters.
    pub sigma: Expr,
    /// What compartments are to it.
    pub sources: space::Sources,
    /// Where it is defined.
    pub span: Span,
}

/// A synapse model, checked by itself.
#[derive(Debug, Clone, PartialEq)]
pub struct Synapse {
    /// Its name.
    pub name: String,
    /// Where it is defined.
    pub span: Span,
    /// Its symbols.
    pub symbols: Vec<Symbol>,
    /// The dimension of what its events carry; nothing if absent.
    pub weight: Option<Dim>,
    /// The unit that this is written in.
    pub unit: Option<DisplayUnit>,
    /// What is added to which states when events arrive, a multiple of [`ExprKind::Weight`].
    pub jumps: Vec<(SymbolId, Expr)>,
    /// Its current, if it has one: outward positive.
    pub current: Option<SymbolId>,
    /// What every synapse has for itself, if it remembers; there are no `jumps` then.
    pub plastic: Option<Plastic>,
    /// What it passes on at every moment, if it is graded; there are no events then.
    pub graded: Option<Graded>,
}

impl Synapse {
    /// The unit of a weight: that of the synapse.
    pub fn unit_of(&self, weight: &Expr) -> DisplayUnit {
        self.unit.clone().unwrap_or_else(|| weight.ty.dim().display_unit())
    }

    /// Where an event moves the voltage of the cell, if one does.
    pub fn moves_voltage(&self) -> Option<Span> {
        let jumps = self.jumps.iter().map(|(state, x)| (*state, x.span));
        let actions = self.plastic.iter().flat_map(Plastic::actions).filter_map(|action| match action.on {
            ActionOn::Shared(state) => Some((state, action.value.span)),
            ActionOn::Weight | ActionOn::Own(_) => None,
        });
        let is_voltage = |state: SymbolId| self.symbols[state.0 as usize].kind == SymbolKind::Voltage;
        jumps.chain(actions).find(|(state, _)| is_voltage(*state)).map(|(_, span)| span)
    }

    /// What there is of it on both sides.
    pub fn all_symbols(&self) -> impl Iterator<Item = &Symbol> {
        self.symbols.iter().chain(self.graded.iter().flat_map(|graded| &graded.symbols))
    }
}

/// What a synapse passes on that follows the voltage of the cell before it.
#[derive(Debug, Clone, PartialEq)]
pub struct Graded {
    /// What each cell that sends has for it; the voltage is that of this cell.
    pub symbols: Vec<Symbol>,
    /// What one connection brings, a function of these: a multiple of [`ExprKind::Weight`].
    pub sent: Expr,
    /// The sum of that over all connections to a cell, among the symbols of the synapse.
    pub sum: SymbolId,
}

/// What every synapse has for itself, and what events do with it.
#[derive(Debug, Clone, PartialEq)]
pub struct Plastic {
    /// States, and what is computed of them.
    pub own: Vec<Symbol>,
    /// What happens, in this order, when a spike arrives.
    pub pre: Vec<Action>,
    /// What happens when the cell behind the synapse spikes.
    pub post: Vec<Action>,
    /// What a modulator does, if one can do anything.
    pub modulator: Option<Modulator>,
}

/// What a modulator does to a synapse.
#[derive(Debug, Clone, PartialEq)]
pub struct Modulator {
    /// The dimension of how much there is of it.
    pub amount: Dim,
    /// What happens, in this order, when some of it arrives.
    pub actions: Vec<Action>,
}

/// An assignment of an event.
#[derive(Debug, Clone, PartialEq)]
pub struct Action {
    /// What changes.
    pub on: ActionOn,
    /// How.
    pub op: crate::syntax::ast::AssignOp,
    /// The value, a function of what there is then.
    pub value: Expr,
}

/// What an event changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ActionOn {
    /// The weight.
    Weight,
    /// A state that every synapse has for itself: an index into [`Plastic::own`].
    Own(u32),
    /// A state that all share: it is added to.
    Shared(SymbolId),
}

impl Plastic {
    /// Do events change the weight?
    pub fn changes_weight(&self) -> bool {
        self.actions().any(|action| action.on == ActionOn::Weight)
    }

    /// All that happens.
    pub fn actions(&self) -> impl Iterator<Item = &Action> + Clone {
        self.pre.iter().chain(&self.post).chain(self.modulator.iter().flat_map(|modulator| &modulator.actions))
    }

    /// With what all share under other numbers.
    fn map_symbols(&self, f: &impl Fn(SymbolId) -> SymbolId) -> Plastic {
        let kind = |kind: &SymbolKind| match kind {
            SymbolKind::Let(x) => SymbolKind::Let(x.map_symbols(f)),
            SymbolKind::State { init, rate, kind, scheme } => {
                let (init, rate) = (init.map_symbols(f), rate.map_symbols(f));
                SymbolKind::State { init, rate, kind: *kind, scheme: scheme.map(f) }
            }
            SymbolKind::Param(_) | SymbolKind::Port(_) | SymbolKind::Voltage | SymbolKind::Pool => kind.clone(),
        };
        let action = |a: &Action| {
            let on = match a.on {
                ActionOn::Shared(id) => ActionOn::Shared(f(id)),
                ActionOn::Weight | ActionOn::Own(_) => a.on,
            };
            Action { on, op: a.op, value: a.value.map_symbols(f) }
        };
        Plastic {
            own: self.own.iter().map(|s| Symbol { kind: kind(&s.kind), ..s.clone() }).collect(),
            pre: self.pre.iter().map(action).collect(),
            post: self.post.iter().map(action).collect(),
            modulator: self.modulator.as_ref().map(|modulator| Modulator {
                amount: modulator.amount,
                actions: modulator.actions.iter().map(action).collect(),
            }),
        }
    }
}

/// A synapse model where it sits on the cells of a population: all who send it events act on one sum.
#[derive(Debug, Clone, PartialEq)]
pub struct Receptor {
    /// Its place in the cell, such as `dend.Ampa`.
    pub name: String,
    /// What is added to which states of the cell when events arrive, a multiple of [`ExprKind::Weight`].
    pub jumps: Vec<(SymbolId, Expr)>,
    /// Its current, if it has one: outward positive.
    pub current: Option<SymbolId>,
    /// What the current drives.
    pub port: Option<SymbolId>,
    /// The area of the membrane, where the port is a current density.
    pub area: Option<SymbolId>,
    /// What every synapse has for itself, if they remember.
    pub plastic: Option<Plastic>,
    /// The sum of what cells send it at every moment, if it is graded.
    pub sum: Option<SymbolId>,
}

/// Events from the spikes of a population, or what its cells send at every moment.
#[derive(Debug, Clone, PartialEq)]
pub struct Projection {
    /// Its name, such as `e.i.Ampa`.
    pub name: String,
    /// Who sends: index into [`Network::populations`].
    pub from: usize,
    /// Who receives.
    pub to: usize,
    /// Through which of the receptors of `to`.
    pub receptor: usize,
    /// Do the events modulate the synapses of the receptor?
    pub modulates: bool,
    /// What a cell sends at every moment through a graded synapse; there are no events then.
    pub sent: Option<Sent>,
    /// What an event carries, for every edge.
    pub weight: Expr,
    /// The unit that the synapse has it in.
    pub unit: DisplayUnit,
    /// How long it takes (ms), for every edge.
    pub delay: Expr,
    /// What part of that is the way from a synapse to the soma, which the spikes of the target take to it, too; none if absent.
    pub dendritic: Option<Expr>,
    /// What its synapses have for themselves that others take from the synapse's model.
    pub given: Vec<Given>,
    /// Which cells are connected.
    pub rule: ConnectionRule,
    /// Of so many places in each direction a target gets the largest of what arrives at each in a step; 1 if all is added up.
    pub max_pool: u32,
    /// Where it stands.
    pub span: Span,
}

/// What a cell sends at every moment through a graded synapse.
#[derive(Debug, Clone, PartialEq)]
pub struct Sent {
    /// A function of symbols of the cell, a multiple of [`ExprKind::Weight`].
    pub value: Expr,
    /// Of a cell with sections, the number of the [`Part`] that sends it: one place.
    pub part: Option<usize>,
}

/// A line of a receptor's, if each of them says a parameter of it for its own synapses: then none takes what the receptor has.
pub fn said_by_all_lines(projections: &[Projection], population: usize, symbol: SymbolId) -> Option<&Projection> {
    let says = |p: &Projection| p.given.iter().any(|given| given.of == GivenOf::Param(symbol));
    let of_population = || projections.iter().filter(|p| p.to == population && !p.modulates);
    let line = of_population().find(|p| says(p))?;
    of_population().filter(|p| p.receptor == line.receptor).all(says).then_some(line)
}

/// A value that each synapse of a line has for itself.
#[derive(Debug, Clone, PartialEq)]
pub struct Given {
    /// Of what.
    pub of: GivenOf,
    /// Its name in the synapse's model.
    pub name: String,
    /// The value, for every edge.
    pub value: Expr,
    /// The unit that the model has it in.
    pub unit: DisplayUnit,
}

impl Given {
    /// Does it differ from edge to edge?
    pub fn differs(&self) -> bool {
        self.value.differs_among_edges()
    }
}

/// What the synapses of a line are given values of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GivenOf {
    /// A state, which begins with it: an index into [`Plastic::own`].
    State(u32),
    /// A parameter of the receptor, which other lines may leave as it is.
    Param(SymbolId),
}

/// Events from outside.
#[derive(Debug, Clone, PartialEq)]
pub struct Drive {
    /// Its name, such as `e.Ampa.drive`.
    pub name: String,
    /// Who receives: index into [`Network::populations`].
    pub population: usize,
    /// The cells; all if absent.
    pub cells: Option<(Expr, Expr)>,
    /// Through which of its receptors.
    pub receptor: usize,
    /// Do the events modulate the synapses of the receptor?
    pub modulates: bool,
    /// What an event carries.
    pub weight: Expr,
    /// How long it takes (ms); nothing if absent.
    pub delay: Option<Expr>,
    /// Where they come from.
    pub source: DriveSource,
    /// Where it stands.
    pub span: Span,
}

/// Where events from outside come from.
#[derive(Debug, Clone, PartialEq)]
pub enum DriveSource {
    /// At random, for every cell its own, at a rate (kHz).
    Poisson {
        /// The rate, which may change in time.
        rate: Expr,
        /// Keeps the numbers apart from others.
        stream: u64,
    },
    /// At these times (ms), for all cells.
    Times(Vec<Expr>),
    /// From a file of times and cells.
    Spikes(DataId),
}

/// A parameter or an initial value given per cell.
#[derive(Debug, Clone, PartialEq)]
pub struct Setting {
    /// Index into [`Network::populations`].
    pub population: usize,
    /// The cells it applies to (first, one past the last), functions of network parameters; all if absent.
    pub cells: Option<(Expr, Expr)>,
    /// The parameter or state of the cell model.
    pub symbol: SymbolId,
    /// Is it an initial value?
    pub init: bool,
    /// The value.
    pub value: Expr,
    /// Where it stands.
    pub span: Span,
}

/// An input.
#[derive(Debug, Clone, PartialEq)]
pub struct Input {
    /// Its name.
    pub name: String,
    /// Index into [`Network::populations`].
    pub population: usize,
    /// The cells it drives; all if absent.
    pub cells: Option<(Expr, Expr)>,
    /// The port it drives.
    pub port: SymbolId,
    /// In a cell with sections, the element of the tree that it drives.
    pub at: Option<usize>,
    /// Its value in the port's dimension, or a current where the port is a current density (then divided by `area`).
    pub value: Expr,
    /// The area to divide by, if the input is an absolute current and the port a density.
    pub area: Option<SymbolId>,
    /// Is it what flows through the electrode of a clamp?
    pub electrode: bool,
    /// Where it stands.
    pub span: Span,
}

/// Gap junctions between compartments, or point neurons.
#[derive(Debug, Clone, PartialEq)]
pub struct Connection {
    /// Its name: that of the junction model, with a number from the second connection of the model on.
    pub name: String,
    /// What is drawn for it is drawn for this name: that of the junctions and of both populations, with a number where such a line came before.
    pub stream: String,
    /// The left side and the right one.
    pub ends: [End; 2],
    /// What flows out of the left side and into the right one: a current (then each side has an area, or is a point neuron), or a current density, a function of
    /// [`ExprKind::Dv`], the voltage on the left minus that on the right, and network parameters.
    pub current: Expr,
    /// Which cells are connected.
    pub rule: ConnectionRule,
    /// Where it stands.
    pub span: Span,
}

/// A compartment of the cells of a population, or point neurons, as a side of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct End {
    /// Index into [`Network::populations`].
    pub population: usize,
    /// Its voltage.
    pub v: SymbolId,
    /// Its injected current density; of a point neuron, `i_syn`.
    pub port: SymbolId,
    /// Its surface, if given.
    pub area: Option<SymbolId>,
    /// In a cell with sections, the element of the tree.
    pub at: Option<usize>,
}

/// Which cells are connected.
#[derive(Debug, Clone, PartialEq)]
pub enum ConnectionRule {
    /// A rule of [`crate::connect`] with its arguments, functions of network parameters, in the rule's order.
    Named(&'static str, Vec<Expr>),
    /// A list from a file.
    File(DataId),
}

impl ConnectionRule {
    /// Do connections share their weights?
    pub fn shares(&self) -> bool {
        match self {
            ConnectionRule::Named(name, _) => RULES.iter().any(|info| info.name == *name && info.shares),
            ConnectionRule::File(_) => false,
        }
    }

    /// The argument that says of how many places in each direction a target gets the largest.
    pub fn max_pool(&self) -> Option<&Expr> {
        let ConnectionRule::Named(name, arguments) = self else { return None };
        let info = RULES.iter().find(|info| info.name == *name)?;
        arguments.get(info.arguments.iter().position(|argument| argument.name == "max_pool")?)
    }

    /// Are its connections known before they are made, so that a file can have a number for each: by target, and of each target by source?
    pub fn is_whole(&self) -> bool {
        matches!(self, ConnectionRule::Named("all_to_all" | "one_to_one", _))
    }
}

/// What to run and record.
#[derive(Debug, Clone, PartialEq)]
pub struct Run {
    /// In ms.
    pub duration: f64,
    /// In ms.
    pub dt: f64,
    /// The integration method.
    pub method: Method,
    /// Is that named, and not the one of a run that names none?
    pub names_method: bool,
    /// How accurate it is, if it chooses its steps.
    pub tolerances: Tolerances,
    /// When events arrive within a step, and where that is said.
    pub arrivals: (Arrivals, Option<Span>),
    /// What comes first at a synapse, and where that is said.
    pub coincident: (Coincident, Option<Span>),
    /// The key of all random numbers.
    pub seed: u64,
    /// In K; `None` if the run does not say.
    pub celsius: Option<f64>,
    /// Recorded quantities.
    pub records: Vec<Record>,
    /// Populations (by index) whose spikes are recorded.
    pub spikes: Vec<usize>,
    /// The axes along which `neuroc run` runs it again and again.
    pub sweeps: Vec<Sweep>,
    /// Where it stands.
    pub span: Span,
    /// Where `dt` and `duration` stand.
    pub dt_span: Span,
    /// Where `duration` stands.
    pub duration_span: Span,
}

/// A state that is held.
#[derive(Debug, Clone, PartialEq)]
pub struct Clamp {
    /// Its name.
    pub name: String,
    /// Index into [`Network::populations`].
    pub population: usize,
    /// The cells; all if absent.
    pub cells: Option<(Expr, Expr)>,
    /// The state.
    pub state: SymbolId,
    /// What it is held at, as a function of time.
    pub value: Expr,
    /// Where it stands.
    pub span: Span,
}

/// What is recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Quantity {
    /// A symbol of the cells.
    OfCells(SymbolId),
    /// What flows out through all gap junctions of a compartment, given its port: `i_gap`.
    Junctions(SymbolId),
    /// The weight of the edges of a projection (its index).
    Weight(usize),
    /// What these have for themselves otherwise: an index into [`Plastic::own`].
    Own(usize, u32),
    /// A parameter that differs among them: an index into [`Projection::given`].
    Given(usize, u32),
    /// What a probe (its index) hears; the population is the first of those that it does.
    Potential(usize),
}

/// A recorded quantity.
#[derive(Debug, Clone, PartialEq)]
pub struct Record {
    /// Index into [`Network::populations`]; of edges the one that they lead to.
    pub population: usize,
    /// The cells; all if absent.
    pub cells: Option<(Expr, Expr)>,
    /// The quantity.
    pub quantity: Quantity,
    /// In a cell with sections, where; one value of the cell if absent.
    pub at: Option<RecordedAt>,
    /// When.
    pub sampling: Sampling,
    /// Where it stands.
    pub span: Span,
}

/// Where in cells with sections something is recorded.
#[derive(Debug, Clone, PartialEq)]
pub struct RecordedAt {
    /// The elements of the tree; one where it is a place.
    pub elements: Arc<[u32]>,
    /// What was written, such as `soma(0.5)` or `apic`.
    pub text: String,
    /// Is it each compartment of some sections, and no place?
    pub each: bool,
}

/// The times at which something is recorded.
#[derive(Debug, Clone, PartialEq)]
pub struct Sampling {
    /// In ms; every step if absent.
    pub every: Option<f64>,
    /// The first and the last time (ms).
    pub window: (f64, f64),
    /// Around which spikes; always if absent.
    pub around: Option<Around>,
}

/// Spikes around which something is recorded. They are recorded, too.
#[derive(Debug, Clone, PartialEq)]
pub struct Around {
    /// Index into [`Network::populations`].
    pub population: usize,
    /// The cells whose spikes count; all if absent.
    pub cells: Option<(Expr, Expr)>,
    /// From when to when (ms), counted from a spike.
    pub window: (f64, f64),
    /// Where it stands.
    pub span: Span,
}

/// An integration method.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Method {
    /// Forward Euler, order 1.
    Euler,
    /// Exponential Euler: exact for states that are linear in themselves while the others are held; gates after
    /// potentials; order 1.
    ExpEuler,
    /// NEURON's default: backward Euler for potentials, exponentials for gates after them; order 1.
    Cnexp,
    /// Crank and Nicolson's rule for potentials, exponentials for gates after them; order 2.
    CrankNicolson,
    /// Linear equations exactly, what drives them from outside held for a step: of order 1 in that.
    Exact,
    /// Heun's explicit trapezoidal rule, order 2.
    Heun,
    /// The classical Runge-Kutta method, order 4.
    Rk4,
    /// Steps as long as the error allows, ended by events: an implicit method of order 5 for all equations together.
    Adaptive,
}

/// How accurate a method is that chooses its steps.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Tolerances {
    /// How far a state may be off in a step, in parts of its value.
    pub rtol: f64,
    /// And in mV, or in parts of the largest value that the state has had.
    pub atol: f64,
    /// The longest step, in ms.
    pub max_step: f64,
}

impl Default for Tolerances {
    fn default() -> Tolerances {
        Tolerances { rtol: 1e-8, atol: 1e-8, max_step: f64::INFINITY }
    }
}

/// When what events bring in a step is added to states.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Arrivals {
    /// Behind the integration, before the threshold is looked at, as in NEST.
    #[default]
    BeforeThreshold,
    /// Behind the threshold, before cells that spike are reset, as in Brian2: it is looked at in the next step.
    AfterThreshold,
}

impl Arrivals {
    /// All with their names.
    pub const ALL: &'static [(Arrivals, &'static str)] =
        &[(Arrivals::BeforeThreshold, "before_threshold"), (Arrivals::AfterThreshold, "after_threshold")];
}

/// What synapses that remember make of a spike that arrives and one of the target, if both reach them at the same time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Coincident {
    /// The one that arrives comes first, as in Brian2.
    #[default]
    PreFirst,
    /// The one of the target comes first.
    PostFirst,
    /// It comes first, and what nothing but the target changes is for the one that arrives as it was before, as in NEST: they are no pair.
    Apart,
}

impl Coincident {
    /// All with their names.
    pub const ALL: &'static [(Coincident, &'static str)] =
        &[(Coincident::PreFirst, "pre_first"), (Coincident::PostFirst, "post_first"), (Coincident::Apart, "apart")];
}

impl Method {
    /// Every method with its name.
    pub const ALL: &'static [(Method, &'static str)] = &[
        (Method::Euler, "euler"),
        (Method::ExpEuler, "exp_euler"),
        (Method::Cnexp, "cnexp"),
        (Method::CrankNicolson, "crank_nicolson"),
        (Method::Exact, "exact"),
        (Method::Heun, "heun"),
        (Method::Rk4, "rk4"),
        (Method::Adaptive, "adaptive"),
    ];

    /// The method of a name.
    pub fn named(name: &str) -> Option<Method> {
        Method::ALL.iter().find(|m| m.1 == name).map(|m| m.0)
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Method::Euler => "euler",
            Method::ExpEuler => "exp_euler",
            Method::Cnexp => "cnexp",
            Method::CrankNicolson => "crank_nicolson",
            Method::Exact => "exact",
            Method::Heun => "heun",
            Method::Rk4 => "rk4",
            Method::Adaptive => "adaptive",
        }
    }

    /// Does it take every model? Others want equations of a kind, or have no step that could be compiled.
    pub fn takes_every_model(self) -> bool {
        !matches!(self, Method::Exact | Method::Adaptive)
    }

    /// Its order of convergence where nothing jumps.
    pub fn order(self) -> u32 {
        match self {
            Method::Euler | Method::ExpEuler | Method::Cnexp | Method::Exact => 1,
            Method::CrankNicolson | Method::Heun => 2,
            Method::Rk4 => 4,
            Method::Adaptive => 5,
        }
    }
}

/// A checked model.
#[derive(Debug, Clone, PartialEq)]
pub struct Model {
    /// The main file's name without directory and ending.
    pub name: String,
    /// The `//!` lines of the main file.
    pub docs: Vec<String>,
    /// Channels that the main file defines or uses.
    pub channels: Vec<Channel>,
    /// Cells that the main file defines or uses.
    pub cells: Vec<Cell>,
    /// The network, if there is one.
    pub network: Option<Network>,
    /// The run block, if there is one.
    pub run: Option<Run>,
    /// The fit block, if there is one.
    pub fit: Option<Fit>,
    /// The train block, if there is one.
    pub train: Option<Train>,
    /// Data files, in the order of [`DataId`].
    pub data: Vec<DataFile>,
}
