//! Networks of cells with linear equations, as numbers: for formats that know networks by their coefficients.
//!
//! In come a continuous model with all settings applied and its extent; out go, for each population, what its equations, its threshold and its resets
//! are made of for each cell, or why they are not linear, and for each projection its edges.
//! Never true here: a number depends on the time, or a cell is taken for linear that is not.

use super::edges::projected;
use super::extent::Extent;
use crate::data;
use crate::diag::{Code, Diagnostic};
use crate::engine::Edges;
use crate::ode::linear::{Row, row};
use crate::ode::{self, Condition, ConnectionRule, Kind, Model, Node, NodeId, Projection, StateId};
use crate::operators::BinaryOp;
use crate::step::Value;
use crate::units::DisplayUnit;
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// A network.
#[derive(Debug, Clone, PartialEq)]
pub struct Network {
    /// Its populations.
    pub populations: Vec<Population>,
    /// Its projections.
    pub projections: Vec<Wires>,
    /// The step, in ms.
    pub dt: f64,
}

/// A population.
#[derive(Debug, Clone, PartialEq)]
pub struct Population {
    /// Its name.
    pub name: String,
    /// Its sides, the fastest first.
    pub grid: Vec<usize>,
    /// Do its cells spike?
    pub spikes: bool,
    /// What its cells are, or why they cannot be said by coefficients.
    pub cells: Result<Cells, String>,
}

/// Cells whose equations, thresholds and resets are linear.
#[derive(Debug, Clone, PartialEq)]
pub struct Cells {
    /// The full names of the states.
    pub states: Vec<String>,
    /// Their values at the start.
    pub init: Vec<Vec<f64>>,
    /// For each state: which states its derivative reads, each with its factor for each cell.
    pub rates: Vec<Vec<(usize, Vec<f64>)>>,
    /// And what else there is in it.
    pub constants: Vec<Vec<f64>>,
    /// What makes a spike, if something does.
    pub spike: Option<Rule>,
    /// What an arriving weight of 1 adds: the projection that stands for the receptor, the state, and how much.
    pub jumps: Vec<(usize, usize, Vec<f64>)>,
}

/// A spike rule.
#[derive(Debug, Clone, PartialEq)]
pub struct Rule {
    /// The state that is compared.
    pub state: usize,
    /// With what, for each cell.
    pub level: Vec<f64>,
    /// Is a state that is at the level below it?
    pub strict: bool,
    /// New values: the state, and for each cell what it is multiplied by and what is added.
    pub resets: Vec<(usize, Vec<f64>, Vec<f64>)>,
    /// In ms, for each cell.
    pub refractory: Vec<f64>,
}

/// A projection.
#[derive(Debug, Clone, PartialEq)]
pub struct Wires {
    /// Its name, such as `e.i.Kick`.
    pub name: String,
    /// The populations, by index.
    pub ends: [usize; 2],
    /// The projection that stands for its receptor.
    pub arrives: usize,
    /// Do its synapses remember?
    pub remembers: bool,
    /// By target, and of each target by source.
    pub edges: Arc<Edges>,
    /// One for each edge, or for each number of a kernel, in canonical units.
    pub weights: Vec<f64>,
    /// In ms, one for each edge.
    pub delays: Vec<f64>,
    /// The sizes of the kernel that the edges share, if they share one, and which of its numbers each has.
    pub kernel: Option<([usize; 4], Vec<u32>)>,
    /// The rule with its arguments; the name is empty for a list of a file.
    pub rule: (&'static str, Vec<f64>),
}

/// A model in numbers. Wrong is what is wrong with its edges.
pub fn network(model: &Model, extent: &Extent) -> Result<Network, Diagnostic> {
    let mut scratch = model.clone();
    let of_cells = |p: &&usize| model.populations[**p].kind == Kind::Cells;
    let all: Vec<usize> = (0..model.populations.len()).collect();
    let populations = all.iter().filter(of_cells).map(|&at| {
        let p = &model.populations[at];
        let spikes = p.spike.is_some() || model.spikes_elsewhere(at).is_some();
        let cells = Reader { model: &mut scratch, extent, at }.cells();
        Population { name: p.name.clone(), grid: extent.grids[at].clone(), spikes, cells }
    });
    let populations = populations.collect();
    let projections = model.projections.iter().map(|p| wires(model, extent, p)).collect::<Result<_, _>>()?;
    Ok(Network { populations, projections, dt: extent.grid.dt })
}

fn wires(model: &Model, extent: &Extent, p: &Projection) -> Result<Wires, Diagnostic> {
    let of = projected(model, extent, p)?;
    let unknown = || unknown(p);
    let weights = match of.kernel {
        None => of.values(model, p.weight).ok_or_else(unknown)?,
        Some(_) => super::shared(model, extent, p)?.ok_or_else(unknown)?.values,
    };
    let delays = of.values(model, p.delay).ok_or_else(unknown)?;
    let number = |&node: &NodeId| match ode::evaluate(model, node) {
        Ok(Value::Real(x)) => Some(x),
        Ok(Value::Single(_) | Value::Mask(_)) | Err(_) => None,
    };
    let rule = match &p.rule {
        ConnectionRule::Named(name, arguments) => {
            (*name, arguments.iter().map(number).collect::<Option<_>>().ok_or_else(unknown)?)
        }
        ConnectionRule::File(_) => ("", Vec::new()),
        ConnectionRule::Spikes { .. } => {
            let message = "spikes from a file are an input, and no part of the network".to_string();
            let d = Diagnostic::new(Code::Unsupported, p.span, message, "brings spikes of a file");
            return Err(d.help("remove this `drive` line from the model that is exported"));
        }
    };
    Ok(Wires {
        name: p.name.clone(),
        ends: [model.cells_of(p.from), model.cells_of(p.to)],
        arrives: p.arrives as usize,
        remembers: p.plasticity.is_some(),
        weights,
        delays,
        kernel: of.kernel.map(|sizes| (sizes, of.rows)),
        edges: of.edges,
        rule,
    })
}

/// The connections of a projection, one after the other: by target, and of each target by source.
#[derive(Debug, Clone, PartialEq)]
pub struct Connections {
    /// The projection's name, such as `e.i.Kick`.
    pub name: String,
    /// The populations, by index.
    pub ends: [usize; 2],
    /// The numbers of the cells before the connections.
    pub sources: Vec<u32>,
    /// And of those behind them.
    pub targets: Vec<u32>,
    /// Their weights at the start, in `unit`.
    pub weights: Vec<f64>,
    /// The unit that the synapse has weights in.
    pub unit: DisplayUnit,
    /// Their delays, in ms.
    pub delays: Vec<f64>,
}

/// All connections that a network draws or reads from files. Gap junctions and drives are none.
///
/// # Errors
/// What is wrong with a rule or a file.
pub fn connections(model: &Model, extent: &Extent) -> Result<Vec<Connections>, Diagnostic> {
    let mut all: Vec<Connections> = Vec::new();
    let mut numbers = vec![0; model.projections.len()];
    for (number, p) in model.projections.iter().enumerate() {
        if matches!(p.rule, ConnectionRule::Spikes { .. }) {
            continue;
        }
        let own = of_projection(model, extent, p)?;
        match p.place.filter(|place| place.number > 0) {
            // The places that a target takes the largest of are those of one line.
            Some(place) => {
                let first = &mut all[numbers[place.first]];
                first.sources.extend(own.sources);
                first.targets.extend(own.targets);
                first.weights.extend(own.weights);
                first.delays.extend(own.delays);
            }
            None => {
                numbers[number] = all.len();
                all.push(own);
            }
        }
    }
    Ok(all)
}

fn of_projection(model: &Model, extent: &Extent, p: &Projection) -> Result<Connections, Diagnostic> {
    let of = projected(model, extent, p)?;
    let (unknown, shared) = (|| unknown(p), of.kernel.is_some());
    let own = |state: &&ode::State| state.name == format!("{}.weight", p.name) && state.edges.is_some();
    // Where synapses keep their weights, they begin with those.
    let weight = model.states.iter().find(own).map_or(p.weight, |state| state.init);
    let weights: Vec<f64> = match shared {
        false => of.values(model, weight).ok_or_else(unknown)?,
        true => {
            let kernel = super::shared(model, extent, p)?.ok_or_else(unknown)?;
            // Of a mean over places each has its part.
            of.rows.iter().map(|&at| kernel.values[at as usize] * kernel.share).collect()
        }
    };
    let delays = of.values(model, p.delay).ok_or_else(unknown)?;
    let degrees = of.edges.offsets.windows(2).map(|bounds| bounds[1] - bounds[0]);
    let targets = degrees.enumerate().flat_map(|(element, degree)| {
        // One of so many elements of each cell has the synapse.
        std::iter::repeat_n((element / of.each) as u32, degree as usize)
    });
    Ok(Connections {
        name: p.name.clone(),
        ends: [model.cells_of(p.from), model.cells_of(p.to)],
        sources: of.edges.sources.clone(),
        targets: targets.collect(),
        weights: weights.into_iter().map(|x| p.unit.show(x)).collect(),
        unit: p.unit.clone(),
        delays,
    })
}

fn unknown(p: &Projection) -> Diagnostic {
    Diagnostic::new(Code::Internal, p.span, "these connections are not known before the run".to_string(), "")
}

/// Reads the cells of a population.
struct Reader<'m> {
    model: &'m mut Model,
    extent: &'m Extent,
    at: usize,
}

impl Reader<'_> {
    fn cells(&mut self) -> Result<Cells, String> {
        let at = self.at;
        if self.model.elements_inside(at) {
            return Err("its cells have sections".to_string());
        }
        let states: Vec<StateId> = self.model.states_of(at).collect();
        let names: Vec<String> = states.iter().map(|&s| self.model.state(s).name.clone()).collect();
        if let Some(held) = states.iter().find(|&&s| self.model.state(s).clamp.is_some()) {
            return Err(format!("`{}` is held by a clamp", self.model.state(*held).name));
        }
        let (mut rates, mut constants, mut init) = (Vec::new(), Vec::new(), Vec::new());
        for (&state, name) in states.iter().zip(&names) {
            let (rate, start) = (self.model.state(state).rate, self.model.state(state).init);
            let what = format!("the equation of `{name}`");
            let (of_states, constant) = self.sum(rate, &states, &what)?;
            rates.push(of_states);
            constants.push(constant);
            init.push(self.values(start, &format!("the initial value of `{name}`"))?);
        }
        let spike = match self.model.populations[at].spike.clone() {
            None => None,
            Some(spike) => Some(self.rule(&spike, &states)?),
        };
        let mut jumps = Vec::new();
        for jump in self.model.jumps.clone() {
            let Some(to) = states.iter().position(|&s| s == jump.state) else { continue };
            let arrived = |node| if let Node::Arrived(p, 0) = node { Some(p as usize) } else { None };
            let senders = self.model.graph.reachable([jump.amount]).into_iter();
            let senders: Vec<usize> = senders.filter_map(|id| arrived(self.model.graph.node(id))).collect();
            if senders.iter().any(|&p| self.model.projections[p].place.is_some()) {
                return Err("it gets the largest of what arrives at some places (`max_pool`)".to_string());
            }
            let [from] = senders[..] else {
                return Err(
                    "it is driven by Poisson spikes, by spikes of given times, or by synapses that remember".into()
                );
            };
            let one = self.model.graph.number(1.0, self.model.projections[from].dim);
            let leaf = |node| arrived(node).map(|_| one);
            let amount = self.model.graph.replace(jump.amount, &leaf, &mut FxHashMap::default());
            let amount = self.values(amount, &format!("what spikes add to `{}`", names[to]))?;
            jumps.push((from, to, amount));
        }
        Ok(Cells { states: names, init, rates, constants, spike, jumps })
    }

    fn rule(&mut self, spike: &ode::Spike, states: &[StateId]) -> Result<Rule, String> {
        const OTHER: &str = "its spike rule does not compare one state with a threshold";
        let (left, right, strict) = match spike.condition {
            Condition::Crosses(x, level) => (x, level, false),
            Condition::When(condition) => match self.model.graph.node(condition) {
                Node::Binary(BinaryOp::Gt, a, b) | Node::Binary(BinaryOp::Lt, b, a) => (a, b, true),
                Node::Binary(BinaryOp::Ge, a, b) | Node::Binary(BinaryOp::Le, b, a) => (a, b, false),
                _ => return Err(OTHER.to_string()),
            },
        };
        let above = self.model.graph.binary(BinaryOp::Sub, left, right);
        let (compared, rest) = self.sum(above, states, "its threshold")?;
        let [(state, ref factors)] = compared[..] else { return Err(OTHER.to_string()) };
        if factors.iter().any(|&x| x <= 0.0) {
            return Err(OTHER.to_string());
        }
        let level = rest.iter().zip(factors).map(|(&c, &x)| -c / x).collect();
        let cells = self.extent.cells[self.at];
        let mut resets = Vec::new();
        for &(to, value) in &spike.resets {
            let Some(at) = states.iter().position(|&s| s == to) else { return Err(OTHER.to_string()) };
            let (read, added) = self.sum(value, states, "its reset")?;
            let kept = match read.as_slice() {
                [] => vec![0.0; cells],
                [(from, factor)] if *from == at => factor.clone(),
                _ => return Err("a reset reads another state".to_string()),
            };
            resets.push((at, kept, added));
        }
        let refractory = match spike.refractory {
            Some(time) => self.values(time, "its refractory time")?,
            None => vec![0.0; cells],
        };
        Ok(Rule { state, level, strict, resets, refractory })
    }

    /// An expression as factors of states, and what is left.
    #[allow(clippy::type_complexity)]
    fn sum(
        &mut self,
        root: NodeId,
        states: &[StateId],
        what: &str,
    ) -> Result<(Vec<(usize, Vec<f64>)>, Vec<f64>), String> {
        let Row { coefficients, constant } = row(&mut self.model.graph, root, &|_| true)
            .map_err(|read| format!("{what} is not linear in `{}`", self.model.state(read).name))?;
        let mut of_states = Vec::new();
        for (state, factor) in coefficients {
            let Some(at) = states.iter().position(|&s| s == state) else {
                return Err(format!("{what} reads `{}`", self.model.state(state).name));
            };
            let factor = self.values(factor, what)?;
            if factor.iter().any(|&x| x != 0.0) {
                of_states.push((at, factor));
            }
        }
        let constant = match constant {
            Some(constant) => self.values(constant, what)?,
            None => vec![0.0; self.extent.cells[self.at]],
        };
        Ok((of_states, constant))
    }

    /// The values for each cell.
    fn values(&self, root: NodeId, what: &str) -> Result<Vec<f64>, String> {
        let (model, cells) = (&*self.model, self.extent.cells[self.at]);
        let read = |of: Option<usize>, file: u32| {
            let count = of.map_or(cells, |of| self.extent.cells[of]);
            data::per_cell(&model.data[file as usize], count, model.seed).ok()
        };
        ode::cells::values(model, root, Some(self.at), cells, &read)
            .ok_or_else(|| format!("{what} depends on the time, on gap junctions or on what is drawn in every step"))
    }
}
