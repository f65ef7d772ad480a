//! The continuous model: populations of cells as flat lists of states with their derivatives.
//!
//! In come checked cells and networks; out goes a [`Model`] whose expressions form one hash-consed graph in canonical
//! units, with dimensions kept so that [`verify`] can check them again.
//! Never true here: an equation of a user depends on the time step (only switches and white noise know it).

mod build;
mod cable;
pub mod cells;
mod dendrite;
mod derivative;
pub mod domains;
mod eval;
mod fault;
mod graph;
mod initial;
pub mod instant;
mod late;
pub mod linear;
mod noise;
mod overrides;
mod parity;
mod passive;
pub(crate) mod places;
mod print;
mod removable;
mod rounded;
pub mod scheme;
mod sweep;
mod switch;
mod timescale;
mod verify;

pub use build::build;
pub use cable::not_solved;
pub use dendrite::not_in_order;
pub use derivative::{depends, derivative, derivative_in, derivative_in_dv, derivative_in_param};
pub use domains::CellRange;
pub use eval::{EvalError, evaluate, noise_intervals};
pub use fault::{Fault, fault};
pub use graph::{Graph, Node, Operands};
pub use initial::resolve;
pub use late::{Meets, not_late};
pub use noise::{Noisy, noisy, not_noise};
pub use overrides::{Override, PerCell, apply, full_name, parse_override, sets_initial_value};
pub use passive::Passive;
pub use print::{print, show};
pub use rounded::{at_the_end_of_a_step, in_steps, rounded};
pub use sweep::{Axis, Design, Set, design};
pub use switch::moves_a_switch;
pub use timescale::{slopes, step_became_too_long, step_too_long, time_constants};
pub use verify::verify;

use crate::data::DataFile;
pub use crate::hir::Tolerances;

use crate::hir::{Arrivals, Coincident, Demand, Method, StateKind};
use crate::morphology::space::{Line, Sources};
use crate::morphology::{Measure, Tree};
use crate::source::Span;
use crate::units::{Dim, DisplayUnit};
use std::collections::{BTreeMap, BTreeSet};

use std::sync::Arc;

/// A node of a [`Graph`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NodeId(pub u32);

/// A parameter of a [`Model`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ParamId(pub u32);

/// A state of a [`Model`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StateId(pub u32);

/// A model that can be integrated.
#[derive(Debug, Clone, PartialEq)]
pub struct Model {
    /// Its name.
    pub name: String,
    /// All expressions.
    pub graph: Graph,
    /// All parameters.
    pub params: Vec<Param>,
    /// All states.
    pub states: Vec<State>,
    /// The populations.
    pub populations: Vec<Population>,
    /// The cables of cells with sections.
    pub cables: Vec<Cable>,
    /// Ions that diffuse along these.
    pub diffusions: Vec<Diffusion>,
    /// Gap junctions.
    pub connections: Vec<Connection>,
    /// Who sends events to whom.
    pub projections: Vec<Projection>,
    /// What events add to states.
    pub jumps: Vec<Jump>,
    /// What modulates synapses.
    pub modulators: Vec<Modulator>,
    /// How long the events of drives take, and when those with a list of times are sent.
    pub waits: Vec<Wait>,
    /// What is recorded.
    pub records: Vec<Record>,
    /// What hears potentials.
    pub probes: Vec<Probe>,
    /// Populations (by index) whose spikes are recorded.
    pub spikes: Vec<usize>,
    /// What values must be; those that read states or the time are meant at the start.
    pub demands: Vec<Demand<NodeId>>,
    /// Arguments of stimuli that differ from cell to cell, for results to tell.
    pub arguments: Vec<Argument>,
    /// The cells that inputs, settings and records name.
    pub ranges: Vec<CellRange>,
    /// Data files; nodes refer to them by index.
    pub data: Vec<DataFile>,
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
    /// What stands for the derivative of a spike, a function of [`Node::Beyond`] alone, if a `train` block writes it as one.
    pub surrogate: Option<NodeId>,
    /// What comes first at a synapse, and where that is said.
    pub coincident: (Coincident, Option<Span>),
    /// The key of all random numbers.
    pub seed: u64,
}

/// A parameter.
#[derive(Debug, Clone, PartialEq)]
pub struct Param {
    /// Its full name, such as `squid.soma.Na.gbar`.
    pub name: String,
    /// Its value: a function of other parameters, and for cell parameters of the cell's index, draws and files.
    pub value: NodeId,
    /// The population for whose cells it may differ; `None` if it is one number.
    pub population: Option<usize>,
    /// The population for whose cells it may be made to differ, if it is of one.
    pub home: Option<usize>,
    /// Its dimension.
    pub dim: Dim,
    /// The unit it is shown in.
    pub unit: DisplayUnit,
    /// Where its value stands.
    pub span: Span,
    /// What the user wrote about it.
    pub docs: Vec<String>,
    /// Can it be set from outside? (Draws of inputs cannot.)
    pub settable: bool,
    /// How it was set from outside, if it was.
    pub set: Option<String>,
}

/// An argument of a stimulus that differs from cell to cell.
#[derive(Debug, Clone, PartialEq)]
pub struct Argument {
    /// Its full name, such as `squid.step.amplitude`.
    pub name: String,
    /// The population.
    pub population: usize,
    /// Its value: a function of parameters, the cell's index, draws and files; NaN for cells that the stimulus does not reach.
    pub value: NodeId,
    /// The unit it is shown in.
    pub unit: DisplayUnit,
}

/// A state.
#[derive(Debug, Clone, PartialEq)]
pub struct State {
    /// Its full name, such as `squid.soma.Na.m`.
    pub name: String,
    /// The population, by index; of a state of edges the one that they lead to.
    pub population: usize,
    /// The projection whose edges have it, by index; none if cells have it.
    pub edges: Option<usize>,
    /// The value at the start: a function of parameters, index, draws and files; until [`resolve`] also of other states.
    pub init: NodeId,
    /// The time derivative.
    pub rate: NodeId,
    /// Its dimension.
    pub dim: Dim,
    /// The unit it is shown in.
    pub unit: DisplayUnit,
    /// Where its equation stands.
    pub span: Span,
    /// What it is to the methods.
    pub kind: StateKind,
    /// The currents that its rate reads, if it is a pool.
    pub currents: Vec<NodeId>,
    /// The first state of the kinetic scheme that it is of, if it is of one.
    pub scheme: Option<StateId>,
    /// What holds it, if something does.
    pub clamp: Option<Clamp>,
    /// How its initial value was set from outside, if it was.
    pub set: Option<String>,
}

/// What holds a state: in place of moving by its equation, it has a value that is given as a function of time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Clamp {
    /// Which cells it holds, a condition on their index; all if absent.
    pub cells: Option<NodeId>,
    /// The value.
    pub value: NodeId,
}

/// Cells of one kind, or what of them has states: the compartments of cells with sections, and those that have a channel.
#[derive(Debug, Clone, PartialEq)]
pub struct Population {
    /// Its name.
    pub name: String,
    /// What its elements are.
    pub kind: Kind,
    /// Its sizes; the number of cells is their product. Only of [`Kind::Cells`].
    pub sizes: Vec<NodeId>,
    /// Its spike rule.
    pub spike: Option<Spike>,
    /// Where it is defined.
    pub span: Span,
}

/// What the elements of a population are. Those of a cell follow each other.
#[derive(Debug, Clone, PartialEq)]
pub enum Kind {
    /// Cells.
    Cells,
    /// The compartments (and nodes) of the cells of another.
    Tree {
        /// The cells.
        of: usize,
        /// What each of them consists of.
        tree: Arc<Tree>,
    },
    /// Some of those of another, the same in every cell. Where there is one for each cell, it is a place, which stands for the cell.
    Part {
        /// The whole.
        of: usize,
        /// Which of the elements that a cell has in the whole.
        elements: Arc<[u32]>,
    },
    /// Stretches of [`STRETCH`] steps, one after the other until the run ends. Each emits an event in the step before it, the first one before the run.
    Clock,
}

/// How many steps a stretch of a clock has. Spikes of a file arrive so many steps after an event of the clock at most, which bounds what engines keep
/// of events on their way.
pub const STRETCH: u32 = 512;

/// The voltages of the compartments of cells, which are solved for together.
#[derive(Debug, Clone, PartialEq)]
pub struct Cable {
    /// The compartments, a population of [`Kind::Tree`].
    pub population: usize,
    /// The voltage.
    pub v: StateId,
    /// The capacitance.
    pub cm: NodeId,
    /// The resistivity.
    pub ra: NodeId,
    /// The area.
    pub area: NodeId,
    /// What flows out through the membrane.
    pub currents: Vec<MembraneCurrent>,
    /// Where it is defined.
    pub span: Span,
}

/// Ions that diffuse along the compartments of cells: with V the volume that they have in one of them, and f the rate of their pool,
/// V c' = V f + sum of G (c_neighbour - c). The resistance 1/G is that of two halves, each the integral of length over the cross-section that ions have,
/// over the coefficient there; where a coefficient is 0, or there is no pool, nothing flows.
#[derive(Debug, Clone, PartialEq)]
pub struct Diffusion {
    /// What the pools are called.
    pub name: String,
    /// The compartments, a population of [`Kind::Tree`].
    pub population: usize,
    /// What they diffuse in: which of the tree's [`lumens`](Tree::lumens).
    pub lumen: u32,
    /// The diffusion coefficient.
    pub coefficient: NodeId,
    /// The concentrations, each of other compartments, a population of [`Kind::Part`].
    pub pools: Vec<StateId>,
    /// Where the cell is defined.
    pub span: Span,
}

/// A current density through the membrane of some compartments.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MembraneCurrent {
    /// The compartments, a population of [`Kind::Part`].
    pub population: usize,
    /// What flows out: a function of the voltage and of states of the population.
    pub outward: NodeId,
    /// Its slope in the voltage, of what flows through junctions; else that of the expression.
    pub slope: Option<NodeId>,
    /// Through what it flows.
    pub through: Through,
}

/// Through what a current leaves a compartment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Through {
    /// The membrane: channels and synapses.
    Membrane,
    /// An electrode that injects a current.
    Input,
    /// The electrode of a clamp.
    Clamp,
    /// A gap junction.
    Junction,
}

/// Contacts that hear the potential around cells with sections.
#[derive(Debug, Clone, PartialEq)]
pub struct Probe {
    /// Its name.
    pub name: String,
    /// Where its contacts are, in cm.
    pub contacts: Vec<[f64; 3]>,
    /// How well the medium conducts: a function of uniform parameters.
    pub sigma: NodeId,
    /// What compartments are to it.
    pub sources: Sources,
    /// Which cells it hears.
    pub of: Vec<Heard>,
    /// Where it is defined.
    pub span: Span,
}

/// Cells that a probe hears.
#[derive(Debug, Clone, PartialEq)]
pub struct Heard {
    /// The population of their compartments.
    pub compartments: usize,
    /// Where these are in each cell.
    pub lines: Arc<[Line]>,
    /// How far neighbours on the grid are from each other, a function of uniform parameters.
    pub spacing: Option<NodeId>,
    /// How far each cell is from its place on the grid, or from the origin where there is no spacing, along each axis.
    pub offset: [Option<NodeId>; 3],
}

/// A spike rule.
#[derive(Debug, Clone, PartialEq)]
pub struct Spike {
    /// `x crosses level`: (x, level); or a condition on the states after a step.
    pub condition: Condition,
    /// New values, functions of the states after the step.
    pub resets: Vec<(StateId, NodeId)>,
    /// For how long (ms) the held states do not change.
    pub refractory: Option<NodeId>,
    /// The states that do not: those that the rule names, or those that the condition reads.
    pub held: Vec<StateId>,
    /// Where it stands.
    pub span: Span,
}

impl Spike {
    /// All that it reads: what makes a spike, and what a spike does.
    pub fn reads(&self) -> Vec<NodeId> {
        let does = self.resets.iter().map(|reset| reset.1).chain(self.refractory);
        self.condition.reads().into_iter().chain(does).collect()
    }
}

impl Condition {
    /// What it reads.
    pub fn reads(self) -> Vec<NodeId> {
        match self {
            Condition::Crosses(x, level) => vec![x, level],
            Condition::When(condition) => vec![condition],
        }
    }
}

/// What makes a spike.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Condition {
    /// An upward crossing within a step: quantity and level.
    Crosses(NodeId, NodeId),
    /// True after a step.
    When(NodeId),
}

/// Gap junctions, as the cells on one side see them.
#[derive(Debug, Clone, PartialEq)]
pub struct Connection {
    /// Its name: that of the junctions, if both sides are one; `J.left` or `J.right` otherwise.
    pub name: String,
    /// Those that the current flows out of.
    pub here: Terminal,
    /// Those on the other side.
    pub there: Terminal,
    /// What flows out of the cell here, a function of [`Node::Dv`] and uniform parameters.
    pub current: NodeId,
    /// Its dimension: that of a current, or of its density.
    pub dim: Dim,
    /// Which side is here.
    pub side: Side,
    /// The name of the junctions, the same for both sides.
    pub junctions: String,
    /// What is drawn is drawn for this name, the same for both sides.
    pub stream: String,
    /// Which cells are connected.
    pub rule: ConnectionRule,
    /// Where it stands.
    pub span: Span,
}

/// Where junctions are: in a compartment of cells, or at a place of cells with sections.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Terminal {
    /// The cells or the place, by index.
    pub population: usize,
    /// The voltage (edges may read other states): a state of the cells, or of the whole that the place is a part of.
    pub v: StateId,
}

/// The sides of `connect left -- right`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// Each cell is on both: what flows out of one end flows out of the other with the opposite sign.
    Both,
    /// The left one.
    Left,
    /// The right one.
    Right,
}

/// Edges along which the spikes of a population arrive at the cells of another, or of the same; or what its cells send at every moment.
#[derive(Debug, Clone, PartialEq)]
pub struct Projection {
    /// Its name, such as `e.i.Ampa`.
    pub name: String,
    /// The population that sends, by index.
    pub from: usize,
    /// The population that receives.
    pub to: usize,
    /// What a spike carries, for every edge: a function of parameters and draws.
    pub weight: NodeId,
    /// Its dimension.
    pub dim: Dim,
    /// The unit that the synapse has it in.
    pub unit: DisplayUnit,
    /// If edges share the numbers of a kernel, what `weight` is for every one of: what part of it an edge has.
    pub share: Option<NodeId>,
    /// How long a spike takes (ms), for every edge: a function of parameters and draws.
    pub delay: NodeId,
    /// How far neighbours are from each other where edges come from and where they lead, if something of them depends on how far cells are from each
    /// other; 1 if that is in steps of the grid.
    pub spacing: Option<[NodeId; 2]>,
    /// The projection whose number stands for all that arrives at its receptor: the first of those that lead there and remember nothing. Its own if
    /// its synapses remember, or if it leads to places of which a target gets the largest.
    pub arrives: u32,
    /// What its synapses remember, if they do.
    pub plasticity: Option<Plasticity>,
    /// What its synapses pass on at every moment, if they are graded. Nothing takes time along them then, and spikes do nothing.
    pub graded: Option<Graded>,
    /// Which cells are connected.
    pub rule: ConnectionRule,
    /// Of a target that gets the largest of what arrives at some places: the place whose connections these are.
    pub place: Option<Pooled>,
    /// What its line says of each connection, besides its weight and its delay, by name.
    pub given: Vec<String>,
    /// Where it stands.
    pub span: Span,
}

impl Projection {
    /// Does its line say this of each connection?
    pub fn says(&self, name: &str) -> bool {
        matches!(name, "weight" | "delay") || self.given.iter().any(|given| given == name)
    }

    /// Is it one that the network has? Those to all places but the first are made with it.
    pub fn is_first(&self) -> bool {
        self.place.is_none_or(|place| place.number == 0)
    }
}

/// One of the places of which a target gets the largest. Connections to each are a projection, all with the same weights and delays.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pooled {
    /// The projection of the first place, which has the name, by index.
    pub first: usize,
    /// Which of the places of a target, row by row.
    pub number: u32,
}

/// What graded synapses pass on.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Graded {
    /// What a cell sends, for a weight of 1: a function of its states and parameters, and of the time.
    pub sent: NodeId,
    /// The dimension of what arrives.
    pub dim: Dim,
}

/// What spikes do at synapses that remember.
#[derive(Debug, Clone, PartialEq)]
pub struct Plasticity {
    /// What every edge has for itself. Between events its equations are solved as a whole.
    pub states: Vec<StateId>,
    /// What a spike that arrives brings the target, with the dimension: functions of the states of the edge and of the target before it arrives.
    pub sent: Vec<(NodeId, Dim)>,
    /// What becomes of states of the edge when a spike arrives.
    pub pre: Vec<(StateId, NodeId)>,
    /// And when the target spikes.
    pub post: Vec<(StateId, NodeId)>,
    /// And when some of a modulator arrives at the target.
    pub modulated: Vec<(StateId, NodeId)>,
    /// Which modulator, an index into [`Model::modulators`], if one comes.
    pub modulator: Option<u32>,
    /// What part of the delay is the way from the synapse to the soma, a function of parameters, and where that is said.
    pub dendritic: Option<(NodeId, Span)>,
}

impl Plasticity {
    /// What becomes of states of the edge, whatever happens.
    pub fn changes(&self) -> impl Iterator<Item = &(StateId, NodeId)> {
        self.pre.iter().chain(&self.post).chain(&self.modulated)
    }
}

/// What reaches the synapses of a receptor from a third side.
#[derive(Debug, Clone, PartialEq)]
pub struct Modulator {
    /// The name of the receptor, with its population.
    pub name: String,
    /// Whose elements have the receptor.
    pub population: usize,
    /// How much arrives in a step: a function of [`Node::Arrived`], [`Node::Events`], parameters and the time.
    pub amount: NodeId,
    /// Its dimension.
    pub dim: Dim,
    /// Where the first line stands that brings some.
    pub span: Span,
}

/// What is added to a state at the end of every step, for the events that arrive in it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Jump {
    /// The state.
    pub state: StateId,
    /// How much: a function of [`Node::Arrived`], [`Node::Events`], parameters and the time.
    pub amount: NodeId,
}

/// How long the events of a drive take, or when one of them is sent.
#[derive(Debug, Clone, PartialEq)]
pub struct Wait {
    /// The name of the drive.
    pub drive: String,
    /// The delay, or the time since the start (ms).
    pub time: NodeId,
    /// Is it a time since the start?
    pub since_start: bool,
    /// Where it stands.
    pub span: Span,
}

/// Which cells are connected.
#[derive(Debug, Clone, PartialEq)]
pub enum ConnectionRule {
    /// A rule with its arguments in the rule's order.
    Named(&'static str, Vec<NodeId>),
    /// A list from a data file.
    File(u32),
    /// The spikes of a data file: from the clock to the cells that they are for.
    Spikes {
        /// The file.
        file: u32,
        /// The cells that it may name (first, one past the last), functions of uniform parameters; all if absent.
        cells: Option<(NodeId, NodeId)>,
        /// How long each spike takes (ms), for every cell: a function of parameters and draws.
        delay: NodeId,
    },
}

impl ConnectionRule {
    /// What it is a function of.
    pub fn arguments(&self) -> Vec<NodeId> {
        match self {
            ConnectionRule::Named(_, arguments) => arguments.clone(),
            ConnectionRule::File(_) => Vec::new(),
            ConnectionRule::Spikes { cells, delay, .. } => {
                cells.iter().flat_map(|&(first, end)| [first, end]).chain([*delay]).collect()
            }
        }
    }

    /// The same, to be changed.
    pub fn arguments_mut(&mut self) -> Vec<&mut NodeId> {
        match self {
            ConnectionRule::Named(_, arguments) => arguments.iter_mut().collect(),
            ConnectionRule::File(_) => Vec::new(),
            ConnectionRule::Spikes { cells, delay, .. } => {
                cells.iter_mut().flat_map(|(first, end)| [first, end]).chain([delay]).collect()
            }
        }
    }
}

/// A recorded quantity.
#[derive(Debug, Clone, PartialEq)]
pub struct Record {
    /// Its name in the results, such as `squid.soma.v`.
    pub name: String,
    /// The population, by index; of what edges have the one that they lead to.
    pub population: usize,
    /// The projection whose edges have it, by index; none if cells have it.
    pub edges: Option<usize>,
    /// The cells (first, one past the last), functions of uniform parameters; all if absent.
    pub cells: Option<(NodeId, NodeId)>,
    /// Its value.
    pub value: NodeId,
    /// The probe that hears it, by index, if it is a potential; it has no value then.
    pub probe: Option<usize>,
    /// Is it a value of the place as such, what flows through an electrode? All else is one of the compartment that the place is.
    pub of_place: bool,
    /// Is it of the compartments of cells, one by one?
    pub of_compartments: bool,
    /// In ms; every step if absent.
    pub every: Option<f64>,
    /// The first and the last time (ms) at which it is recorded.
    pub window: (f64, f64),
    /// Around which spikes; always if absent.
    pub around: Option<Around>,
    /// The unit it is shown in.
    pub unit: DisplayUnit,
    /// Where it stands.
    pub span: Span,
}

/// Spikes around which something is recorded. They are recorded, too.
#[derive(Debug, Clone, PartialEq)]
pub struct Around {
    /// The population, by index; one of [`Model::spikes`].
    pub population: usize,
    /// The cells (first, one past the last), functions of uniform parameters; all if absent.
    pub cells: Option<(NodeId, NodeId)>,
    /// From when to when (ms), counted from a spike.
    pub window: (f64, f64),
}

impl Model {
    /// The parameter behind an id.
    pub fn param(&self, id: ParamId) -> &Param {
        &self.params[id.0 as usize]
    }

    /// The state behind an id.
    pub fn state(&self, id: StateId) -> &State {
        &self.states[id.0 as usize]
    }

    /// Are there compartments of a population's cells?
    pub fn elements_inside(&self, population: usize) -> bool {
        self.populations.iter().any(|p| matches!(p.kind, Kind::Tree { of, .. } if of == population))
    }

    /// The cells that the elements of a population belong to.
    pub fn cells_of(&self, population: usize) -> usize {
        match self.populations[population].kind {
            Kind::Cells | Kind::Clock => population,
            Kind::Tree { of, .. } | Kind::Part { of, .. } => self.cells_of(of),
        }
    }

    /// The tree that the elements of a population are of, and which of its elements a cell has in it.
    pub fn elements(&self, population: usize) -> Option<(&Tree, Vec<u32>)> {
        match &self.populations[population].kind {
            Kind::Cells | Kind::Clock => None,
            Kind::Tree { tree, .. } => Some((tree, (0..tree.len() as u32).collect())),
            Kind::Part { of, elements } => {
                let (tree, whole) = self.elements(*of)?;
                Some((tree, elements.iter().map(|&e| whole[e as usize]).collect()))
            }
        }
    }

    /// How many elements of a population belong to each cell.
    pub fn elements_per_cell(&self, population: usize) -> usize {
        self.elements(population).map_or(1, |(_, elements)| elements.len())
    }

    /// The element of `other` that is one of a population: itself, or itself in the whole.
    pub fn element_in(&self, other: usize, population: usize, element: usize) -> Option<usize> {
        match &self.populations[population].kind {
            _ if population == other => Some(element),
            Kind::Part { of, elements } if *of == other => {
                let (cell, own) = (element / elements.len(), element % elements.len());
                Some(cell * self.elements_per_cell(other) + elements[own] as usize)
            }
            Kind::Cells | Kind::Tree { .. } | Kind::Part { .. } | Kind::Clock => None,
        }
    }

    /// Is a value made of one of these parameters?
    pub fn follows(&self, value: NodeId, params: &BTreeSet<ParamId>) -> bool {
        !self.made_of(value).0.is_disjoint(params)
    }

    /// The parameters and the files that a value is made of, by itself or through other parameters.
    pub fn made_of(&self, value: NodeId) -> (BTreeSet<ParamId>, BTreeSet<u32>) {
        let (mut params, mut files, mut left) = (BTreeSet::new(), BTreeSet::new(), vec![value]);
        while let Some(value) = left.pop() {
            for id in self.graph.reachable([value]) {
                match self.graph.node(id) {
                    Node::Param(param) if params.insert(param) => left.push(self.param(param).value),
                    Node::Data(file) => _ = files.insert(file),
                    _ => {}
                }
            }
        }
        (params, files)
    }

    /// What an element of a population is called in messages, such as `cell 3` or `dend(0.25) of cell 3`.
    pub fn element_name(&self, population: usize, element: usize) -> String {
        match self.elements(population) {
            None => format!("cell {element}"),
            Some((tree, own)) => {
                let (cell, at) = (element / own.len(), own[element % own.len()]);
                format!("{} of cell {cell}", tree.name(at as usize))
            }
        }
    }

    /// A number of the compartments that the elements of a population are, for so many elements; none if they are no compartments.
    pub fn measures(&self, population: usize, measure: Measure, elements: usize) -> Option<Vec<f64>> {
        let (tree, own) = self.elements(population)?;
        let of_cell: Vec<f64> = own.iter().map(|&e| tree.measure(measure, e as usize)).collect();
        Some(of_cell.iter().copied().cycle().take(elements).collect())
    }

    /// Can what happens to the elements of a population read what another has: itself, the whole that it is a part of, or the cells?
    pub fn sees(&self, population: usize, other: usize) -> bool {
        population == other
            || self.cells_of(population) == other
            || matches!(self.populations[population].kind, Kind::Part { of, .. } if of == other)
    }

    /// Is a state held at what follows from its last value, as noise that remembers is? Others are held at what follows from the time.
    pub fn wanders(&self, state: StateId) -> bool {
        let own = |clamp: Clamp| {
            self.graph.reachable([clamp.value]).into_iter().any(|n| self.graph.node(n) == Node::State(state))
        };
        self.state(state).clamp.is_some_and(own)
    }

    /// Has a state between steps the value that an engine keeps? What edges have is brought up to date by events.
    fn stands_still(&self, state: StateId) -> bool {
        let state = self.state(state);
        state.edges.is_none() || self.graph.constant(state.rate) == Some(0.0)
    }

    /// The state that a record is, if it is one of the population that it is taken from.
    pub fn recorded_state(&self, record: &Record) -> Option<StateId> {
        match self.graph.node(record.value) {
            Node::State(s) if self.state(s).population == record.population && self.stands_still(s) => Some(s),
            _ => None,
        }
    }

    /// Is the potential recorded that the currents of a population of compartments make?
    pub fn is_heard(&self, compartments: usize) -> bool {
        let probes = self.records.iter().filter_map(|r| Some(&self.probes[r.probe?]));
        probes.flat_map(|probe| &probe.of).any(|heard| heard.compartments == compartments)
    }

    /// A projection, and those to the other places if it leads to places of which a target gets the largest.
    pub fn same(&self, projection: usize) -> impl Iterator<Item = usize> {
        let is =
            move |&at: &usize| at == projection || self.projections[at].place.is_some_and(|p| p.first == projection);
        (0..self.projections.len()).filter(is)
    }

    /// What edges read of the compartments that places are, each once: junctions, and synapses that remember.
    pub fn seen_by_edges(&self) -> Vec<Terminal> {
        let mut seen: Vec<Terminal> = self.connections.iter().flat_map(|c| [c.here, c.there]).collect();
        for (p, plasticity) in self.projections.iter().filter_map(|p| Some((p, p.plasticity.as_ref()?))) {
            let changes = plasticity.changes().map(|change| change.1);
            let rates = plasticity.states.iter().map(|&s| self.state(s).rate);
            for n in self.graph.reachable(plasticity.sent.iter().map(|sent| sent.0).chain(changes).chain(rates)) {
                if let Node::State(v) = self.graph.node(n)
                    && self.state(v).edges.is_none()
                {
                    seen.push(Terminal { population: p.to, v });
                }
            }
        }
        let mut places: Vec<Terminal> = Vec::new();
        for end in seen {
            if self.state(end.v).population != end.population && !places.contains(&end) {
                places.push(end);
            }
        }
        places
    }

    /// The places whose synapses change when their cells spike elsewhere, each with the population that spikes.
    pub fn told(&self) -> BTreeMap<usize, usize> {
        let changes = |p: &&Projection| p.plasticity.as_ref().is_some_and(|plasticity| !plasticity.post.is_empty());
        let told = |p: &Projection| Some((p.to, self.spikes_elsewhere(p.to)?));
        self.projections.iter().filter(changes).filter_map(told).collect()
    }

    /// The population whose spikes are those of the cells that a place is of, if that is not the place itself.
    pub fn spikes_elsewhere(&self, place: usize) -> Option<usize> {
        let cells = self.cells_of(place);
        let spikes = |&other: &usize| self.populations[other].spike.is_some() && self.cells_of(other) == cells;
        (0..self.populations.len()).find(spikes).filter(|&other| other != place)
    }

    /// The projections whose synapses are graded, each with what it passes on.
    pub fn graded(&self) -> impl Iterator<Item = (usize, &Projection, Graded)> {
        self.projections.iter().enumerate().filter_map(|(at, p)| Some((at, p, p.graded?)))
    }

    /// Does a value stay what it was when the run began?
    pub fn stays(&self, value: NodeId) -> bool {
        use Node::{Binary, Bool, Const, Data, Draw, Index, Param, Select, Unary};
        let stays = |id: NodeId| {
            matches!(
                self.graph.node(id),
                Const(..) | Bool(_) | Param(_) | Index | Unary(..) | Binary(..) | Select(..) | Draw(..) | Data(_)
            )
        };
        self.graph.reachable([value]).into_iter().all(stays)
    }

    /// Those of them that pass on what stays: what samples may give.
    pub fn graded_given(&self) -> impl Iterator<Item = (usize, &Projection, Graded)> {
        self.graded().filter(|(.., graded)| self.stays(graded.sent))
    }

    /// What cells pass on through graded synapses and compute in a run, each once: the first projection that it goes along, and what it is.
    pub fn passed_on(&self) -> Vec<(usize, NodeId)> {
        let mut all: Vec<(usize, NodeId)> = Vec::new();
        for (at, p, graded) in self.graded().filter(|(.., graded)| !self.stays(graded.sent)) {
            if all.iter().all(|&(first, sent)| (self.projections[first].from, sent) != (p.from, graded.sent)) {
                all.push((at, graded.sent));
            }
        }
        all
    }

    /// A value as it is when a run begins: states are what they begin with.
    pub fn at_the_beginning(&mut self, value: NodeId) -> NodeId {
        let (states, mut memo) = (&self.states, rustc_hash::FxHashMap::default());
        for id in self.graph.reachable([value]) {
            if let Node::State(state) = self.graph.node(id) {
                memo.insert(id, states[state.0 as usize].init);
            }
        }
        self.graph.replace(value, &|_| None, &mut memo)
    }

    /// Is a state a concentration of ions that diffuse?
    pub fn diffuses(&self, state: StateId) -> bool {
        self.diffusions.iter().any(|diffusion| diffusion.pools.contains(&state))
    }

    /// The states of the cells of a population, in order.
    pub fn states_of(&self, population: usize) -> impl Iterator<Item = StateId> {
        let of_cells = move |s: &State| s.population == population && s.edges.is_none();
        (0..self.states.len() as u32).map(StateId).filter(move |s| of_cells(self.state(*s)))
    }
}
