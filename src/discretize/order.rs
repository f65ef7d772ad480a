//! What moves when in a step of a population, for methods that take potentials, pools and gates one after the other.
//!
//! In come the states, and how a method moves potentials; out go their updates, as stages. Never true here: a state moves by more than its own exponential
//! (or, of a kinetic scheme, its rational function), others held.
//!
//! Potentials move first, and pools beside them, with the currents and gates of the step's beginning: what flows in (unless a method lets a pool move freely) is
//! what flowed when the new potential was found. Gates and other states follow, with the new potentials and concentrations. NEURON has this order: its ions keep the currents of the step's
//! beginning, and mechanisms that write concentrations come before those that read them.
//!
//! With order 2, potentials and pools are known at whole steps and all else half a step later. So both are moved with the gates in the middle of their step; pools
//! with the mean of the old and the new potential. A current that reads a pool by itself, such as by its Nernst potential, or a pool that
//! reads another one, takes what that has come to half a step after the old values.
//!
//! Pools whose ions diffuse move at the same time and with the same rates, but together along the sections (`diffusion.rs`): what is late waits for them.

use super::diffusion::{PREDICTED, SOLVED};
use super::exp_euler::{advance, exponential};
use super::stages::{Flow, Stages};
use super::{kinetics, noise};
use crate::hir::StateKind;
use crate::ode::{Graph, Kind, Model, Node, NodeId, State, StateId};
use crate::step::BinaryOp;
use crate::units::Dim;
use rustc_hash::FxHashMap as HashMap;

/// What moves when: potentials and pools from the old values, then what is `late`, such as gates, from the new ones of the others.
pub(super) struct Order {
    /// Does a state follow with the new potentials?
    pub late: fn(&State) -> bool,
    /// The new value of an early state, given its rate and the time step.
    pub potential: fn(&mut Graph, StateId, NodeId, NodeId) -> NodeId,
    /// How wide the noise of early states is, but for pools.
    pub spread: noise::Spread,
    /// How kinetic schemes move.
    pub schemes: &'static kinetics::Rational,
    /// How pools move.
    pub pools: Pools,
}

/// How pools move.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Pools {
    /// As all other early states: what currents depend on is part of their tangent.
    Free,
    /// The currents of the step's beginning are held.
    Held,
    /// So are those of its middle, where late states are known half a step later than the others, and all have order 2: currents and pools see the middle
    /// of the step, and late states its end.
    Middle,
}

impl Order {
    pub fn step(&self, stages: &mut Stages<'_>) {
        let (dt, population) = (stages.dt, stages.population);
        let (late, early): (Vec<StateId>, Vec<StateId>) =
            stages.model.states_of(population).partition(|&s| (self.late)(stages.model.state(s)));
        let second = self.pools == Pools::Middle;
        let in_the_middle = early.iter().filter(|&&s| second && stages.model.state(s).kind == StateKind::Pool);
        let followers = late.iter().chain(in_the_middle).map(|&s| (s, stages.model.state(s).rate));
        let followers: Vec<(StateId, NodeId)> = followers.collect();
        // What is late sees what early states have become, and so do pools that are in the middle of the step.
        let kept = if followers.is_empty() { None } else { stages.held(followers) };
        let model = &mut *stages.model;
        let noise = noise::take(model, population, dt, |model, s| match model.state(s).kind {
            StateKind::Plain if !(self.late)(model.state(s)) => self.spread,
            StateKind::Plain | StateKind::Gate | StateKind::Pool => noise::exponential,
        });
        let mut together = kinetics::after(model, population, dt, self.schemes);
        // What a channel of a cable follows has its new voltage already.
        let whole: Vec<StateId> = match model.populations[population].kind {
            Kind::Part { of, .. } => model.states_of(of).collect(),
            Kind::Cells | Kind::Tree { .. } | Kind::Clock => Vec::new(),
        };
        let moved: Vec<StateId> = early.iter().chain(&whole).copied().collect();
        let next: HashMap<StateId, NodeId> = moved.iter().map(|&s| (s, model.graph.add(Node::Next(s)))).collect();
        let of_whole = |node: Node| match node {
            Node::State(s) if whole.contains(&s) => next.get(&s).copied(),
            _ => None,
        };
        let middle = second.then(|| Middle::of(model, population, dt));
        let mut first = Vec::new();
        let (mut pools, mut flows) = (Vec::new(), Vec::new());
        let mut memo = HashMap::default();
        for &s in &early {
            let &State { rate, kind, .. } = model.state(s);
            match kind {
                StateKind::Pool if self.pools != Pools::Free => {
                    let middle = middle.as_ref().map(|middle| (middle, &next));
                    if model.diffuses(s) {
                        let parts = |g: &mut Graph, s, rate, dt| <[NodeId; 2]>::from(exponential(g, s, rate, dt));
                        let [rate, reach] = pool(model, s, dt, middle, parts);
                        let (flow, new) = diffusing(&mut model.graph, Flow { state: s, rate, reach }, second);
                        flows.push(flow);
                        pools.push((s, new));
                        continue;
                    }
                    let [new] = pool(model, s, dt, middle, |g, s, rate, dt| [advance(g, s, rate, dt)]);
                    pools.push((s, new));
                }
                StateKind::Pool | StateKind::Gate | StateKind::Plain => {
                    let g = &mut model.graph;
                    let rate = middle.as_ref().map_or(rate, |middle| middle.of_time(g, rate));
                    let x = (self.potential)(g, s, rate, dt);
                    let x = middle.as_ref().map_or(x, |middle| middle.of_pools(g, x));
                    first.push((s, g.replace(x, &of_whole, &mut memo)));
                }
            }
        }
        let time = model.graph.add(Node::Time);
        let later = second.then(|| model.graph.binary(BinaryOp::Add, time, dt));
        let leaf = |node: Node| match node {
            Node::State(s) => next.get(&s).copied(),
            Node::Time => later,
            _ => None,
        };
        let mut memo = HashMap::default();
        let mut last = Vec::new();
        for s in late.into_iter().filter(|s| !together.iter().flatten().any(|(state, _)| state == s)) {
            let rate = model.state(s).rate;
            let advanced = advance(&mut model.graph, s, rate, dt);
            last.push((s, model.graph.replace(advanced, &leaf, &mut memo)));
        }
        for (_, value) in together.iter_mut().flatten() {
            *value = model.graph.replace(*value, &leaf, &mut memo);
        }
        for (mut updates, solved) in [(first, Vec::new()), (pools, flows), (last, Vec::new())] {
            stages.diffuse(solved);
            let g = &mut stages.model.graph;
            noise::add(g, &noise, &mut updates);
            for (s, value) in &mut updates {
                if let Some((_, refractory)) = kept.as_ref().filter(|(held, _)| held.contains(s)) {
                    let before = g.add(Node::State(*s));
                    *value = g.select(*refractory, before, *value);
                }
            }
            stages.update(updates);
        }
        together.into_iter().for_each(|scheme| stages.update_together(scheme));
    }
}

/// How a pool moves that diffuses, and its new value: where the middle of the step is solved for, it goes as far again.
fn diffusing(g: &mut Graph, mut flow: Flow, second: bool) -> (Flow, NodeId) {
    let solved = g.add(Node::Point(flow.state, SOLVED));
    if !second {
        return (flow, solved);
    }
    let two = g.number(2.0, Dim::ONE);
    flow.reach = g.binary(BinaryOp::Div, flow.reach, two);
    let old = g.add(Node::State(flow.state));
    let twice = g.binary(BinaryOp::Add, solved, solved);
    (flow, g.binary(BinaryOp::Sub, twice, old))
}

/// What `made` makes of the rate of a pool and of the time step, such as its new value by its own exponential; with all currents held: they are
/// not part of its tangent.
fn pool<const N: usize>(
    model: &mut Model,
    s: StateId,
    dt: NodeId,
    middle: Option<(&Middle, &HashMap<StateId, NodeId>)>,
    made: impl FnOnce(&mut Graph, StateId, NodeId, NodeId) -> [NodeId; N],
) -> [NodeId; N] {
    let State { rate, currents, .. } = model.state(s).clone();
    let g = &mut model.graph;
    // No method that has this order has slopes.
    let held = |at: usize| Node::Slope(s, at as u32);
    let mut memo: HashMap<NodeId, NodeId> =
        currents.iter().enumerate().map(|(at, &current)| (current, g.add(held(at)))).collect();
    let rate = g.replace(rate, &|_| None, &mut memo);
    let mut new = made(g, s, rate, dt);
    let mut flowing = currents;
    if let Some((middle, next)) = middle {
        new = new.map(|new| middle.of_all(g, new, Some(s), next));
        flowing.iter_mut().for_each(|current| *current = middle.of_all(g, *current, None, next));
    }
    let leaf = |node: Node| (0..flowing.len()).find(|&at| node == held(at)).map(|at| flowing[at]);
    new.map(|new| g.replace(new, &leaf, &mut HashMap::default()))
}

/// The middle of a step, in terms of what is known at its beginning and of the new potentials.
pub(super) struct Middle {
    half: NodeId,
    /// The concentrations half a step after the old values.
    pools: HashMap<StateId, NodeId>,
}

impl Middle {
    pub fn of(model: &mut Model, population: usize, dt: NodeId) -> Middle {
        let pools: Vec<StateId> =
            model.states_of(population).filter(|&s| model.state(s).kind == StateKind::Pool).collect();
        let g = &mut model.graph;
        let two = g.number(2.0, Dim::ONE);
        let half = g.binary(BinaryOp::Div, dt, two);
        // What diffuses is looked for along the sections, before all else.
        let later = |s: StateId| match model.diffuses(s) {
            true => (s, model.graph.add(Node::Point(s, PREDICTED))),
            false => (s, advance(&mut model.graph, s, model.states[s.0 as usize].rate, half)),
        };
        Middle { half, pools: pools.into_iter().map(later).collect() }
    }

    /// An expression with the concentrations of the middle.
    pub fn of_pools(&self, g: &mut Graph, root: NodeId) -> NodeId {
        let leaf = |node: Node| match node {
            Node::State(s) => self.pools.get(&s).copied(),
            _ => None,
        };
        g.replace(root, &leaf, &mut HashMap::default())
    }

    /// An expression at the time of the middle.
    pub fn of_time(&self, g: &mut Graph, root: NodeId) -> NodeId {
        let time = g.add(Node::Time);
        let middle = g.binary(BinaryOp::Add, time, self.half);
        let leaf = |node: Node| (node == Node::Time).then_some(middle);
        g.replace(root, &leaf, &mut HashMap::default())
    }

    /// An expression with all in the middle but one state, given what the new potentials are.
    fn of_all(&self, g: &mut Graph, root: NodeId, but: Option<StateId>, next: &HashMap<StateId, NodeId>) -> NodeId {
        let root = self.of_time(g, root);
        let mut means = self.pools.clone();
        but.map(|own| means.remove(&own));
        for (&s, &new) in next.iter().filter(|(s, _)| !self.pools.contains_key(s)) {
            let old = g.add(Node::State(s));
            let sum = g.binary(BinaryOp::Add, old, new);
            let two = g.number(2.0, Dim::ONE);
            means.insert(s, g.binary(BinaryOp::Div, sum, two));
        }
        let leaf = |node: Node| match node {
            Node::State(s) => means.get(&s).copied(),
            _ => None,
        };
        g.replace(root, &leaf, &mut HashMap::default())
    }
}
