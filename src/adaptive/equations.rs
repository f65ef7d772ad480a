//! All equations of a model at once: `M y' = f(t, y)`.
//!
//! In come the continuous model and its parameters; out go the rates of all states, their slopes in each other, and solutions of linear equations with these.
//! Never true here: a slope is approximated (but that in the time), or a time step exists.
//!
//! The unknowns are the states, element by element. The voltage of a node of a cable (it has no area) and what a clamp holds have no derivative: what flows
//! into a node flows out of it, and a clamp says what the state is.

use super::rodas::{self, GAMMA};
use super::sparse::{Factors, Pattern};
use super::tape::{Changes, Ground, Scene, Tape, changes};
use crate::engine::{Edges, EngineError};
use crate::ode::{Connection, Kind, Model, Node, NodeId, Terminal, derivative, derivative_in, derivative_in_dv};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Where the value of an expression goes.
#[derive(Debug, Clone)]
enum Goes {
    /// It is the rate of the unknowns from this one on.
    Rate(usize),
    /// The unknowns from this one on are held at it, or some of them.
    Held(usize, Vec<bool>),
    /// It flows out through the membrane of these compartments of a cable.
    Membrane(usize, Vec<u32>),
}

/// Where a slope goes.
#[derive(Debug, Clone)]
struct Slope {
    /// What it is multiplied by, for each element.
    factor: Option<Arc<Vec<f64>>>,
    to: SlopeTo,
}

#[derive(Debug, Clone)]
enum SlopeTo {
    /// One place for each element.
    Places(Vec<usize>),
    /// Through the junctions of a connection: places for each edge, of the voltage here and of that there.
    Junctions(usize, Vec<[usize; 2]>),
}

/// The expressions over a population.
#[derive(Debug, Clone)]
struct Part {
    rates: Tape,
    goes: Vec<Goes>,
    slopes: Tape,
    slopes_go: Vec<Slope>,
}

/// The junctions of a connection.
#[derive(Debug, Clone)]
struct Junctions {
    edges: Arc<Edges>,
    /// The voltages here and there, of each edge.
    ends: Vec<[u32; 2]>,
    /// The current, and its slope in the voltage across.
    current: Tape,
    across: Vec<f64>,
    slopes: Vec<f64>,
}

/// The compartments of a cable.
#[derive(Debug, Clone)]
struct Wire {
    /// The first voltage.
    v: usize,
    /// The parent of each compartment (itself, if it has none), and the conductance to it.
    joined: Vec<(usize, f64)>,
    /// What a current into a compartment does: one over its capacitance; 1 for nodes.
    per_current: Vec<f64>,
    /// The density of what flows out through each membrane, and one over its capacitance per area.
    membrane: Vec<f64>,
    per_density: Arc<Vec<f64>>,
    /// What does not change of the slopes.
    slopes: Vec<(usize, f64)>,
}

/// Two compartments between which ions diffuse.
#[derive(Debug, Clone)]
struct Passage {
    /// The concentrations.
    ends: [usize; 2],
    /// How fast each follows the other, per ms.
    speeds: [f64; 2],
    /// What that makes of their slopes: in themselves and in each other.
    slopes: Vec<(usize, f64)>,
}

/// How much has been computed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Work {
    /// Rates.
    pub rates: u64,
    /// Slopes.
    pub slopes: u64,
    /// Factored matrices.
    pub factored: u64,
}

/// The equations.
#[derive(Debug, Clone)]
pub struct Equations {
    parts: Vec<Part>,
    junctions: Vec<Junctions>,
    wires: Vec<Wire>,
    passages: Vec<Passage>,
    sums: Vec<Vec<f64>>,
    mass: Vec<f64>,
    pattern: Pattern,
    jacobian: Vec<f64>,
    matrix: Vec<f64>,
    factors: Factors,
    /// A time at which everything is switched as it is now.
    pub switched: f64,
    /// Which unknowns stand still because their cell is refractory, unless a clamp moves them.
    pub still: Vec<bool>,
    /// Does something change smoothly with the time?
    pub in_time: bool,
    /// What has been computed.
    pub work: Work,
}

/// Every expression over a population, with where it goes.
fn expressions(model: &Model, ground: &Ground, population: usize) -> Result<(Vec<NodeId>, Vec<Goes>), EngineError> {
    let (mut roots, mut goes) = (Vec::new(), Vec::new());
    for state in model.states_of(population) {
        let Some(first) = ground.unknowns[state.0 as usize] else { continue };
        if model.cables.iter().all(|cable| cable.v != state) {
            roots.push(model.state(state).rate);
            goes.push(Goes::Rate(first));
        }
        if let Some(clamp) = model.state(state).clamp {
            let count = ground.sizes[population];
            let held = match clamp.cells {
                None => vec![true; count],
                Some(cells) => {
                    let nothing = Scene { y: &[], t: 0.0, switched: 0.0, junctions: &[], arrived: &[], across: &[] };
                    let chosen = Tape::new(model, ground, population, &[cells])?.values(&nothing);
                    chosen[0].iter().map(|x| *x != 0.0).collect()
                }
            };
            roots.push(clamp.value);
            goes.push(Goes::Held(first, held));
        }
    }
    for (number, cable) in model.cables.iter().enumerate() {
        for current in cable.currents.iter().filter(|current| current.population == population) {
            let all = ground.unknowns(model, cable.v, population).ok_or_else(|| lost("a voltage"))?;
            let first = ground.unknowns[cable.v.0 as usize].unwrap_or_default();
            roots.push(current.outward);
            goes.push(Goes::Membrane(number, all.into_iter().map(|at| at - first as u32).collect()));
        }
    }
    Ok((roots, goes))
}

/// All expressions that depend on the time, by population: where they jump, steps end.
pub fn timed(model: &Model, ground: &Ground, population: usize) -> Result<Vec<NodeId>, EngineError> {
    Ok(expressions(model, ground, population)?.0)
}

fn lost(what: &str) -> EngineError {
    EngineError(format!("internal error: adaptive steps have lost {what}"))
}

impl Equations {
    /// The equations of a model. `edges` are those of its connections, `axial` the conductances of its cables, `ions` those of what diffuses.
    pub fn new(
        model: &mut Model,
        ground: &Ground,
        edges: &[Arc<Edges>],
        axial: &[Vec<f64>],
        ions: &[Vec<f64>],
    ) -> Result<Equations, EngineError> {
        let size = size(model, ground);
        let mut mass = vec![1.0; size];
        let mut places: Vec<(u32, u32)> = Vec::new();
        let mut in_time = false;
        let mut junctions = Vec::new();
        for (at, edges) in edges.iter().enumerate() {
            junctions.push(of_connection(model, ground, at, edges)?);
        }
        let mut wires = Vec::new();
        for (cable, axial) in axial.iter().enumerate() {
            let wire = of_cable(model, ground, cable, axial)?;
            for (at, per) in wire.per_current.iter().enumerate() {
                let (own, parent) = ((wire.v + at) as u32, (wire.v + wire.joined[at].0) as u32);
                places.extend([(own, parent), (parent, own)]);
                if wire.per_density[at] == 0.0 {
                    debug_assert_eq!(*per, 1.0);
                    mass[own as usize] = 0.0;
                }
            }
            wires.push(wire);
        }
        let mut passages = Vec::new();
        for (diffusion, conductances) in ions.iter().enumerate() {
            passages.extend(of_diffusion(model, ground, diffusion, conductances)?);
        }
        for [a, b] in passages.iter().map(|passage: &Passage| passage.ends.map(|end| end as u32)) {
            places.extend([(a, a), (a, b), (b, b), (b, a)]);
        }
        // Slopes as pairs of row and column first.
        let mut drafts = Vec::new();
        for population in 0..model.populations.len() {
            let (roots, goes) = expressions(model, ground, population)?;
            if roots.is_empty() {
                continue;
            }
            let known = changes(model, &roots);
            in_time |= known.iter().any(|(id, change)| {
                *change == Changes::InTime && matches!(model.graph.node(*id), Node::Time | Node::Series(..))
            });
            let rates = Tape::new(model, ground, population, &roots)?;
            let (mut slopes, mut go) = (Vec::new(), Vec::new());
            for (&root, goes) in roots.iter().zip(&goes) {
                let count = ground.sizes[population];
                let (rows, factor): (Vec<u32>, Option<Arc<Vec<f64>>>) = match goes {
                    Goes::Rate(first) => ((*first..first + count).map(|row| row as u32).collect(), None),
                    Goes::Held(first, held) => {
                        (0..count).filter(|&at| held[at]).for_each(|at| mass[first + at] = 0.0);
                        continue;
                    }
                    Goes::Membrane(cable, into) => {
                        let wire = &wires[*cable];
                        let factor = into.iter().map(|&at| -wire.per_density[at as usize]).collect();
                        let rows = into.iter().map(|&at| wire.v as u32 + at).collect();
                        (rows, Some(Arc::new(factor)))
                    }
                };
                for node in model.graph.reachable([root]) {
                    match model.graph.node(node) {
                        Node::State(state) => {
                            let Some(slope) = derivative(&mut model.graph, root, state) else { continue };
                            let columns = ground.unknowns(model, state, population).ok_or_else(|| lost("a state"))?;
                            let pairs: Vec<(u32, u32)> = rows.iter().copied().zip(columns).collect();
                            places.extend(&pairs);
                            slopes.push(slope);
                            go.push((factor.clone(), Pairs::Elements(pairs)));
                        }
                        leaf @ Node::Junction(c, _) => {
                            let Some(slope) = derivative_in(&mut model.graph, root, leaf) else { continue };
                            let of = &junctions[c as usize];
                            let mut pairs = Vec::new();
                            for (element, &row) in rows.iter().enumerate() {
                                for edge in edge_range(&of.edges, element) {
                                    pairs.push(of.ends[edge].map(|end| (row, end)));
                                }
                            }
                            places.extend(pairs.iter().flatten());
                            slopes.push(slope);
                            go.push((factor.clone(), Pairs::Junctions(c as usize, pairs)));
                        }
                        _ => {}
                    }
                }
            }
            let slopes = Tape::new(model, ground, population, &slopes)?;
            drafts.push((rates, goes, slopes, go));
        }
        let pattern = Pattern::new(size, places);
        let place = |&(row, column): &(u32, u32)| pattern.place(row, column).ok_or_else(|| lost("a slope"));
        let mut parts = Vec::new();
        for (rates, goes, slopes, go) in drafts {
            let mut slopes_go = Vec::new();
            for (factor, pairs) in go {
                let to = match pairs {
                    Pairs::Elements(pairs) => SlopeTo::Places(pairs.iter().map(place).collect::<Result<_, _>>()?),
                    Pairs::Junctions(c, pairs) => {
                        let both = |[a, b]: &[(u32, u32); 2]| Ok([place(a)?, place(b)?]);
                        SlopeTo::Junctions(c, pairs.iter().map(both).collect::<Result<_, EngineError>>()?)
                    }
                };
                slopes_go.push(Slope { factor, to });
            }
            parts.push(Part { rates, goes, slopes, slopes_go });
        }
        for wire in &mut wires {
            for (at, &(parent, conductance)) in wire.joined.iter().enumerate().filter(|(at, j)| j.0 != *at) {
                let [own, above] = [wire.v + at, wire.v + parent].map(|x| x as u32);
                let [to_own, to_above] = [at, parent].map(|x| conductance * wire.per_current[x]);
                let entries =
                    [(own, own, -to_own), (own, above, to_own), (above, above, -to_above), (above, own, to_above)];
                for (row, column, slope) in entries {
                    wire.slopes.push((place(&(row, column))?, slope));
                }
            }
        }
        for passage in &mut passages {
            let ([a, b], [of_a, of_b]) = (passage.ends.map(|end| end as u32), passage.speeds);
            for (row, column, slope) in [(a, a, -of_a), (a, b, of_a), (b, b, -of_b), (b, a, of_b)] {
                passage.slopes.push((place(&(row, column))?, slope));
            }
        }
        let factors = Factors::new(&pattern);
        let numbers = pattern.columns.len();
        Ok(Equations {
            parts,
            sums: junctions.iter().map(|of: &Junctions| vec![0.0; of.edges.offsets.len() - 1]).collect(),
            junctions,
            wires,
            passages,
            mass,
            jacobian: vec![0.0; numbers],
            matrix: vec![0.0; numbers],
            pattern,
            factors,
            switched: 0.0,
            still: vec![false; size],
            in_time,
            work: Work::default(),
        })
    }

    /// Computes the slopes of all rates in all unknowns. A vertical tangent counts as level: it says nothing of where the solution leads.
    pub fn slopes(&mut self, t: f64, y: &[f64]) {
        self.work.slopes += 1;
        self.across(t, y, true);
        let Equations { parts, junctions, wires, passages, sums, jacobian, pattern, switched, still, mass, .. } = self;
        jacobian.fill(0.0);
        let scene = Scene { y, t, switched: *switched, junctions: sums, arrived: &[], across: &[] };
        for part in parts {
            let Part { goes, slopes, slopes_go, .. } = part;
            slopes.run(&scene, |number, first, values| {
                let Slope { factor, to } = &slopes_go[number];
                for (element, value) in (first..).zip(values) {
                    let value = factor.as_ref().map_or(*value, |factor| value * factor[element]);
                    match to {
                        SlopeTo::Places(places) => jacobian[places[element]] += finite(value),
                        SlopeTo::Junctions(c, places) => {
                            let of = &junctions[*c];
                            for edge in edge_range(&of.edges, element) {
                                let slope = finite(value * of.slopes[edge]);
                                jacobian[places[edge][0]] += slope;
                                jacobian[places[edge][1]] -= slope;
                            }
                        }
                    }
                }
            });
            for goes in goes.iter() {
                if let Goes::Held(first, held) = goes {
                    for at in (0..held.len()).filter(|&at| held[at]).map(|at| first + at) {
                        jacobian[pattern.starts[at]..pattern.starts[at + 1]].fill(0.0);
                        jacobian[pattern.diagonal[at]] = -1.0;
                    }
                }
            }
        }
        let of_passages = passages.iter().flat_map(|passage| &passage.slopes);
        for &(place, slope) in wires.iter().flat_map(|wire| &wire.slopes).chain(of_passages) {
            jacobian[place] += slope;
        }
        // A clamp holds what is refractory, too: the state follows it.
        for at in (0..still.len()).filter(|&at| still[at] && mass[at] != 0.0) {
            jacobian[pattern.starts[at]..pattern.starts[at + 1]].fill(0.0);
        }
    }

    /// Factors the matrix of a step of a length. False if that cannot be done.
    pub fn factor(&mut self, h: f64) -> bool {
        self.work.factored += 1;
        self.matrix.iter_mut().zip(&self.jacobian).for_each(|(x, slope)| *x = -slope);
        for (&place, mass) in self.pattern.diagonal.iter().zip(&self.mass) {
            self.matrix[place] += mass / (GAMMA * h);
        }
        self.factors.factor(&self.matrix)
    }

    /// Brings what has no derivative to where it belongs: nodes and clamps. `room` has a number for each unknown.
    pub fn settle(&mut self, t: f64, y: &mut [f64], room: &mut [f64]) -> Result<(), EngineError> {
        if self.mass.iter().all(|mass| *mass != 0.0) {
            return Ok(());
        }
        // Twice: what a membrane carries is no straight line.
        for _ in 0..2 {
            self.slopes(t, y);
            rodas::Equations::rates(self, t, y, room);
            room.iter_mut().zip(&self.mass).filter(|(_, mass)| **mass != 0.0).for_each(|(x, _)| *x = 0.0);
            if !self.factor(1e-12) {
                return Err(EngineError(format!(
                    "at {t} ms the voltages of nodes of cables, or what clamps hold, do not follow from the other states"
                )));
            }
            self.factors.solve(room);
            let fixed = y.iter_mut().zip(room.iter()).zip(&self.mass).filter(|(_, mass)| **mass == 0.0);
            fixed.for_each(|((y, change), _)| *y += change);
        }
        Ok(())
    }

    /// The currents through junctions, and their slopes where they are wanted.
    fn across(&mut self, t: f64, y: &[f64], slopes: bool) {
        for (of, sums) in self.junctions.iter_mut().zip(&mut self.sums) {
            let Junctions { edges, ends, current, across, slopes: kept } = of;
            across.iter_mut().zip(&*ends).for_each(|(x, [here, there])| *x = y[*here as usize] - y[*there as usize]);
            let scene = Scene { y, t, switched: self.switched, junctions: &[], arrived: &[], across: &*across };
            let mut values = current.values(&scene).into_iter();
            if let Some(currents) = values.next() {
                for (element, sum) in sums.iter_mut().enumerate() {
                    *sum = currents[edge_range(edges, element)].iter().sum();
                }
            }
            if let (true, Some(values)) = (slopes, values.next()) {
                *kept = values;
            }
        }
    }
}

impl rodas::Equations for Equations {
    fn rates(&mut self, t: f64, y: &[f64], f: &mut [f64]) {
        self.work.rates += 1;
        self.across(t, y, false);
        let Equations { parts, wires, passages, sums, switched, still, mass, .. } = self;
        f.fill(0.0);
        wires.iter_mut().for_each(|wire| wire.membrane.fill(0.0));
        let scene = Scene { y, t, switched: *switched, junctions: sums, arrived: &[], across: &[] };
        for part in parts {
            let Part { rates, goes, .. } = part;
            rates.run(&scene, |number, first, values| match &goes[number] {
                Goes::Rate(unknown) => f[unknown + first..][..values.len()].copy_from_slice(values),
                Goes::Held(unknown, held) => {
                    for (element, value) in (first..).zip(values).filter(|(element, _)| held[*element]) {
                        f[unknown + element] = value - y[unknown + element];
                    }
                }
                Goes::Membrane(cable, into) => {
                    let membrane = &mut wires[*cable].membrane;
                    into[first..].iter().zip(values).for_each(|(&at, value)| membrane[at as usize] += value);
                }
            });
        }
        for wire in wires.iter() {
            let v = &y[wire.v..][..wire.joined.len()];
            let f = &mut f[wire.v..][..wire.joined.len()];
            for (at, &(parent, conductance)) in wire.joined.iter().enumerate() {
                let flows = conductance * (v[parent] - v[at]);
                f[at] += flows * wire.per_current[at];
                f[parent] -= flows * wire.per_current[parent];
                f[at] -= wire.membrane[at] * wire.per_density[at];
            }
        }
        for &Passage { ends: [a, b], speeds, .. } in passages.iter() {
            let fall = y[b] - y[a];
            f[a] += speeds[0] * fall;
            f[b] -= speeds[1] * fall;
        }
        let rests = f.iter_mut().zip(still).zip(mass).filter(|((_, still), mass)| **still && **mass != 0.0);
        rests.for_each(|((f, _), _)| *f = 0.0);
    }

    fn solve(&mut self, right: &mut [f64]) {
        self.factors.solve(right);
    }

    fn mass(&self) -> &[f64] {
        &self.mass
    }
}

/// Slopes before their places are known.
enum Pairs {
    Elements(Vec<(u32, u32)>),
    Junctions(usize, Vec<[(u32, u32); 2]>),
}

/// How many unknowns there are.
pub fn size(model: &Model, ground: &Ground) -> usize {
    let count =
        |(state, first): (&crate::ode::State, &Option<usize>)| first.map_or(0, |_| ground.sizes[state.population]);
    model.states.iter().zip(&ground.unknowns).map(count).sum()
}

/// A slope, or 0 for what is none.
fn finite(slope: f64) -> f64 {
    if slope.is_finite() { slope } else { 0.0 }
}

/// The edges that lead to an element.
fn edge_range(edges: &Edges, element: usize) -> std::ops::Range<usize> {
    edges.offsets[element] as usize..edges.offsets[element + 1] as usize
}

fn of_connection(model: &mut Model, ground: &Ground, at: usize, edges: &Arc<Edges>) -> Result<Junctions, EngineError> {
    let &Connection { here, there, current, .. } = &model.connections[at];
    let voltages = |end: Terminal| ground.unknowns(model, end.v, end.population).ok_or_else(|| lost("a voltage"));
    let (here_v, there_v) = (voltages(here)?, voltages(there)?);
    let mut ends = Vec::new();
    for (element, &v) in here_v.iter().enumerate() {
        ends.extend(edges.of(element).iter().map(|&source| [v, there_v[source as usize]]));
    }
    let slope = derivative_in_dv(&mut model.graph, current);
    let slope = slope.unwrap_or_else(|| model.graph.number(0.0, crate::units::Dim::ONE));
    let count = ends.len();
    let current = Tape::over(model, ground, here.population, count, &[current, slope])?;
    Ok(Junctions { edges: edges.clone(), ends, current, across: vec![0.0; count], slopes: vec![0.0; count] })
}

/// Between which compartments ions diffuse. What meets in a node, which has no volume, passes straight from each to each: a star of conductances is a
/// mesh of `G_i G_j` over their sum.
fn of_diffusion(
    model: &Model,
    ground: &Ground,
    diffusion: usize,
    conductances: &[f64],
) -> Result<Vec<Passage>, EngineError> {
    let d = &model.diffusions[diffusion];
    let Kind::Tree { tree, .. } = &model.populations[d.population].kind else { return Err(lost("a tree")) };
    let count = ground.sizes[d.population];
    let mut unknowns: Vec<Option<usize>> = vec![None; count];
    for &pool in &d.pools {
        let population = model.state(pool).population;
        let (_, own) = model.elements(population).ok_or_else(|| lost("a pool"))?;
        let first = ground.unknowns[pool.0 as usize].ok_or_else(|| lost("a pool"))?;
        for at in 0..ground.sizes[population] {
            let element = at / own.len() * tree.len() + own[at % own.len()] as usize;
            unknowns[element] = Some(first + at);
        }
    }
    let volume = |at: usize| tree.lumens[d.lumen as usize].volume[at % tree.len()];
    let mut found = Vec::new();
    let mut join = |[a, b]: [usize; 2], conductance: f64| {
        if let (Some(x), Some(y)) = (unknowns[a], unknowns[b]) {
            let speeds = [a, b].map(|at| conductance / volume(at));
            found.push(Passage { ends: [x, y], speeds, slopes: Vec::new() });
        }
    };
    // What meets in each node.
    let mut nodes: BTreeMap<usize, Vec<(usize, f64)>> = BTreeMap::new();
    for (at, &conductance) in conductances.iter().enumerate().filter(|(_, conductance)| **conductance > 0.0) {
        let parent = at - at % tree.len() + tree.parents[at % tree.len()] as usize;
        let is_node = |at: usize| !tree.is_compartment(at % tree.len());
        match (is_node(at), is_node(parent)) {
            (false, false) => join([at, parent], conductance),
            (true, _) => nodes.entry(at).or_default().push((parent, conductance)),
            (false, true) => nodes.entry(parent).or_default().push((at, conductance)),
        }
    }
    for around in nodes.values() {
        let sum: f64 = around.iter().map(|(_, conductance)| conductance).sum();
        for (number, &(a, first)) in around.iter().enumerate() {
            around[..number].iter().for_each(|&(b, second)| join([a, b], first * second / sum));
        }
    }
    Ok(found)
}

fn of_cable(model: &Model, ground: &Ground, cable: usize, axial: &[f64]) -> Result<Wire, EngineError> {
    let c = &model.cables[cable];
    let Kind::Tree { tree, .. } = &model.populations[c.population].kind else { return Err(lost("a tree")) };
    let nothing = Scene { y: &[], t: 0.0, switched: 0.0, junctions: &[], arrived: &[], across: &[] };
    let values = Tape::new(model, ground, c.population, &[c.cm, c.area])?.values(&nothing);
    let count = ground.sizes[c.population];
    let of_node = |at: usize| values[1][at] <= 0.0;
    let per_density: Vec<f64> = (0..count).map(|at| if of_node(at) { 0.0 } else { 1.0 / values[0][at] }).collect();
    let per_current = |at: usize| if of_node(at) { 1.0 } else { per_density[at] / values[1][at] };
    let joined = |at: usize| {
        let (cell, own) = (at / tree.len(), at % tree.len());
        let parent = cell * tree.len() + tree.parents[own] as usize;
        (parent, if parent == at { 0.0 } else { axial[at] })
    };
    Ok(Wire {
        v: ground.unknowns[c.v.0 as usize].ok_or_else(|| lost("a voltage"))?,
        joined: (0..count).map(joined).collect(),
        per_current: (0..count).map(per_current).collect(),
        membrane: vec![0.0; count],
        per_density: Arc::new(per_density),
        slopes: Vec::new(),
    })
}
