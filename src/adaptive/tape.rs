//! Expressions of the continuous model as lists of operations over the elements of a population.
//!
//! In come expressions and what does not change in a run; out go their values for all elements, at any time and at any values of the states.
//! Never true here: what changes in no run is computed twice, or a random number is drawn.

use crate::engine::EngineError;
use crate::ode::instant::INSTANT;
use crate::ode::{Model, Node, NodeId, StateId};
use crate::operators::{BinaryOp, UnaryOp, Value, eval_binary, eval_series, eval_unary};
use rustc_hash::FxHashMap as HashMap;

/// So many elements are computed at once.
const CHUNK: usize = 64;
/// The largest whole exponent that means repeated multiplication, as in the step IR.
const MOST_FACTORS: f64 = 32.0;

/// What does not change in a run.
#[derive(Debug, Clone, Default)]
pub struct Ground {
    /// How many elements each population has.
    pub sizes: Vec<usize>,
    /// Where the unknowns of each state begin, if it has some.
    pub unknowns: Vec<Option<usize>>,
    /// The values of each parameter: one, or one for each element of its population.
    pub params: Vec<Vec<f64>>,
    /// The samples of each data file that is a function of time.
    pub series: Vec<Vec<(f64, f64)>>,
}

impl Ground {
    /// The unknowns that are a state, for each element of a population that sees it.
    pub fn unknowns(&self, model: &Model, state: StateId, population: usize) -> Option<Vec<u32>> {
        let first = self.unknowns[state.0 as usize]?;
        let of = model.state(state).population;
        let element = |e: usize| seen(model, of, population, e).map(|e| (first + e) as u32);
        (0..self.sizes[population]).map(element).collect()
    }
}

/// Which element of a population belongs to an element of another: itself, itself in the whole, or the cell.
fn seen(model: &Model, of: usize, population: usize, element: usize) -> Option<usize> {
    let own = model.element_in(of, population, element);
    own.or_else(|| (model.cells_of(population) == of).then(|| element / model.elements_per_cell(population).max(1)))
}

/// What expressions read.
#[derive(Debug, Clone, Copy)]
pub struct Scene<'a> {
    /// The unknowns.
    pub y: &'a [f64],
    /// The time.
    pub t: f64,
    /// A time at which everything is switched as it is now.
    pub switched: f64,
    /// The sums of the currents through the junctions of each connection.
    pub junctions: &'a [Vec<f64>],
    /// What has arrived through each projection.
    pub arrived: &'a [Vec<f64>],
    /// The voltages across the junctions of a connection.
    pub across: &'a [f64],
}

#[derive(Debug, Clone, Copy)]
enum Op {
    Number(f64),
    Array(usize),
    Unknown(usize),
    Time,
    Switched,
    Junction(usize),
    Arrived(usize),
    Across,
    Index,
    Series(usize, usize),
    Power(usize, i32),
    Unary(UnaryOp, usize),
    Binary(BinaryOp, usize, usize),
    Select(usize, usize, usize),
}

/// Operations, operands first.
#[derive(Debug, Clone, Default)]
pub struct Tape {
    elements: usize,
    ops: Vec<Op>,
    roots: Vec<usize>,
    arrays: Vec<Vec<f64>>,
    unknowns: Vec<Vec<u32>>,
    series: Vec<Vec<(f64, f64)>>,
    registers: Vec<f64>,
}

/// What a node depends on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Changes {
    /// Nothing that changes.
    Never,
    /// The time alone.
    InTime,
    /// The states.
    Always,
}

/// What each node of some expressions depends on.
pub(super) fn changes(model: &Model, roots: &[NodeId]) -> HashMap<NodeId, Changes> {
    let mut known: HashMap<NodeId, Changes> = HashMap::default();
    for id in model.graph.reachable(roots.iter().copied()) {
        let own = match model.graph.node(id) {
            Node::State(_) | Node::Junction(..) | Node::Arrived(..) | Node::Dv => Changes::Always,
            Node::Time | Node::StepTime | Node::Series(..) => Changes::InTime,
            _ => Changes::Never,
        };
        let operands = model.graph.operands(id).into_iter().map(|operand| known[&operand]);
        known.insert(id, operands.fold(own, Changes::max));
    }
    known
}

/// A tape in the making.
struct Maker<'a> {
    model: &'a Model,
    ground: &'a Ground,
    population: usize,
    tape: Tape,
    /// The places of nodes, as they are and with the time held where everything is switched as it is.
    places: [HashMap<NodeId, usize>; 2],
    changes: &'a HashMap<NodeId, Changes>,
    files: HashMap<u32, usize>,
}

impl Tape {
    /// The tape of some expressions over the elements of a population. Whatever has no value at any time is refused.
    pub fn new(model: &Model, ground: &Ground, population: usize, roots: &[NodeId]) -> Result<Tape, EngineError> {
        Tape::over(model, ground, population, ground.sizes[population], roots)
    }

    /// The same over so many edges that lead to a population; they read uniform parameters and the voltage across alone.
    pub fn over(
        model: &Model,
        ground: &Ground,
        population: usize,
        elements: usize,
        roots: &[NodeId],
    ) -> Result<Tape, EngineError> {
        let changes = changes(model, roots);
        let order = model.graph.reachable(roots.iter().copied());
        let still = |id: &NodeId| changes[id] == Changes::Never;
        let mut edge: Vec<NodeId> = roots.iter().copied().filter(still).collect();
        for &id in order.iter().filter(|id| !still(id)) {
            edge.extend(model.graph.operands(id).into_iter().filter(|id| still(id)));
        }
        edge.sort_unstable();
        edge.dedup();
        let make = |elements: usize| Maker {
            model,
            ground,
            population,
            tape: Tape { elements, ..Tape::default() },
            places: Default::default(),
            changes: &changes,
            files: HashMap::default(),
        };
        let mut before = make(elements);
        for &id in order.iter().filter(|id| still(id)) {
            before.add(id, 0)?;
        }
        before.tape.roots = edge.iter().map(|id| before.places[0][id]).collect();
        let values = before.tape.once();
        let mut now = make(elements);
        for (id, values) in edge.iter().zip(values) {
            let op = match model.graph.constant(*id) {
                Some(x) => Op::Number(x),
                None => {
                    now.tape.arrays.push(values);
                    Op::Array(now.tape.arrays.len() - 1)
                }
            };
            let place = now.push(op);
            now.places.iter_mut().for_each(|places| {
                places.insert(*id, place);
            });
        }
        for &id in order.iter().filter(|id| !still(id)) {
            now.add(id, 0)?;
        }
        now.tape.roots = roots.iter().map(|id| now.places[0][id]).collect();
        let mut tape = now.tape;
        tape.registers = vec![0.0; tape.ops.len() * CHUNK];
        Ok(tape)
    }

    /// The values of expressions that do not change.
    fn once(mut self) -> Vec<Vec<f64>> {
        self.registers = vec![0.0; self.ops.len() * CHUNK];
        let nothing = Scene { y: &[], t: 0.0, switched: 0.0, junctions: &[], arrived: &[], across: &[] };
        self.values(&nothing)
    }

    /// The values of all expressions.
    pub fn values(&mut self, scene: &Scene<'_>) -> Vec<Vec<f64>> {
        let mut values = vec![Vec::with_capacity(self.elements); self.roots.len()];
        self.run(scene, |root, _, part| values[root].extend_from_slice(part));
        values
    }

    /// Computes all expressions; for some elements after the others, `take` gets the number of an expression, the first element and the values.
    pub fn run(&mut self, scene: &Scene<'_>, mut take: impl FnMut(usize, usize, &[f64])) {
        let Tape { elements, ops, roots, arrays, unknowns, series, registers } = self;
        for first in (0..*elements).step_by(CHUNK) {
            let count = CHUNK.min(*elements - first);
            for (at, op) in ops.iter().enumerate() {
                let (known, rest) = registers.split_at_mut(at * CHUNK);
                let out = &mut rest[..count];
                let of = |place: usize| &known[place * CHUNK..place * CHUNK + count];
                match *op {
                    Op::Number(x) => out.fill(x),
                    Op::Array(array) => out.copy_from_slice(&arrays[array][first..first + count]),
                    Op::Unknown(list) => {
                        let list = &unknowns[list][first..first + count];
                        out.iter_mut().zip(list).for_each(|(x, &at)| *x = scene.y[at as usize]);
                    }
                    Op::Time => out.fill(scene.t),
                    Op::Switched => out.fill(scene.switched),
                    Op::Junction(c) => out.copy_from_slice(&scene.junctions[c][first..first + count]),
                    Op::Arrived(p) => out.copy_from_slice(&scene.arrived[p][first..first + count]),
                    Op::Across => out.copy_from_slice(&scene.across[first..first + count]),
                    Op::Index => out.iter_mut().zip(first..).for_each(|(x, index)| *x = index as f64),
                    Op::Series(file, t) => {
                        let value = |t: &f64| eval_series(&series[file], *t).unwrap_or(f64::NAN);
                        out.iter_mut().zip(of(t)).for_each(|(x, t)| *x = value(t));
                    }
                    Op::Power(x, n) => out.iter_mut().zip(of(x)).for_each(|(out, x)| *out = x.powi(n)),
                    Op::Unary(op, x) => unary(op, of(x), out),
                    Op::Binary(op, x, y) => binary(op, of(x), of(y), out),
                    Op::Select(c, x, y) => {
                        let both = of(x).iter().zip(of(y));
                        let all = out.iter_mut().zip(of(c).iter().zip(both));
                        all.for_each(|(out, (c, (x, y)))| *out = if *c != 0.0 { *x } else { *y });
                    }
                }
            }
            for (number, &root) in roots.iter().enumerate() {
                take(number, first, &registers[root * CHUNK..root * CHUNK + count]);
            }
        }
    }
}

impl Maker<'_> {
    fn push(&mut self, op: Op) -> usize {
        self.tape.ops.push(op);
        self.tape.ops.len() - 1
    }

    /// Appends a node whose operands are there; `held`: with the time held.
    fn add(&mut self, id: NodeId, held: usize) -> Result<(), EngineError> {
        if self.places[held].contains_key(&id) {
            return Ok(());
        }
        let graph = &self.model.graph;
        let node = graph.node(id);
        // What jumps in time jumps at times where steps end: until then it is as it is.
        if held == 0 && jumps(node) && self.changes[&id] == Changes::InTime {
            for node in graph.reachable([id]) {
                if self.changes[&node] != Changes::Never {
                    self.add(node, 1)?;
                }
            }
            let place = self.places[1][&id];
            self.places[0].insert(id, place);
            return Ok(());
        }
        let at = |x: NodeId| self.places[held][&x];
        let same = match node {
            Node::Unary(UnaryOp::Floor, x) => in_steps(self.model, x),
            Node::Binary(BinaryOp::Add, x, y) if is_instant(self.model, x, y) => Some(x),
            _ => None,
        };
        if let Some(same) = same {
            let place = at(same);
            self.places[held].insert(id, place);
            return Ok(());
        }
        let op = match node {
            Node::Const(bits, _) => Op::Number(f64::from_bits(bits)),
            Node::Bool(x) => Op::Number(f64::from(x)),
            Node::Param(p) => {
                let values = &self.ground.params[p.0 as usize];
                let own = match (self.model.param(p).population, &values[..]) {
                    (_, []) => return Err(missing(&self.model.param(p).name)),
                    (None, &[x]) => Some(vec![x; self.tape.elements]),
                    (None, _) => None,
                    (Some(of), _) => {
                        let value = |e: usize| values.get(seen(self.model, of, self.population, e)?).copied();
                        (0..self.tape.elements).map(value).collect()
                    }
                };
                self.tape.arrays.push(own.ok_or_else(|| missing(&self.model.param(p).name))?);
                Op::Array(self.tape.arrays.len() - 1)
            }
            Node::State(s) => {
                let own = self.ground.unknowns(self.model, s, self.population);
                self.tape.unknowns.push(own.ok_or_else(|| missing(&self.model.state(s).name))?);
                Op::Unknown(self.tape.unknowns.len() - 1)
            }
            Node::Measure(measure) => {
                let own = self.model.measures(self.population, measure, self.tape.elements);
                self.tape.arrays.push(own.ok_or_else(|| missing("a measure"))?);
                Op::Array(self.tape.arrays.len() - 1)
            }
            Node::Time if held == 0 => Op::Time,
            Node::Time | Node::StepTime => Op::Switched,
            // Drives alone read it.
            Node::StepLength => Op::Number(super::TINY),
            Node::Index => Op::Index,
            Node::Dv => Op::Across,
            Node::Junction(c, _) => Op::Junction(c as usize),
            Node::Arrived(p, 0) => Op::Arrived(p as usize),
            Node::Series(file, t) => {
                let t = at(t);
                let file = *self.files.entry(file).or_insert_with(|| {
                    self.tape.series.push(self.ground.series[file as usize].clone());
                    self.tape.series.len() - 1
                });
                Op::Series(file, t)
            }
            Node::Unary(op, x) => Op::Unary(op, at(x)),
            Node::Binary(BinaryOp::Pow, x, y) => match graph.constant(y) {
                Some(n) if n.fract() == 0.0 && n != 0.0 && n.abs() <= MOST_FACTORS => Op::Power(at(x), n as i32),
                _ => Op::Binary(BinaryOp::Pow, at(x), at(y)),
            },
            Node::Binary(op, x, y) => Op::Binary(op, at(x), at(y)),
            Node::Select(c, x, y) => Op::Select(at(c), at(x), at(y)),
            Node::Next(_)
            | Node::Slope(..)
            | Node::Point(..)
            | Node::Refractory(_)
            | Node::Conductance(_)
            | Node::Arrived(..)
            | Node::Amount(_)
            | Node::Since
            | Node::Beyond
            | Node::Outward(_)
            | Node::Draw(..)
            | Node::Data(_)
            | Node::Noise(..)
            | Node::White(_)
            | Node::Events(..) => return Err(missing("a value that is known at every time")),
        };
        let place = self.push(op);
        self.places[held].insert(id, place);
        Ok(())
    }
}

/// Is it the time at which a step begins, and the instant that it may begin too early?
pub(super) fn is_instant(model: &Model, x: NodeId, y: NodeId) -> bool {
    let is_number = |n: NodeId| model.graph.constant(n) == Some(INSTANT);
    // Of times that differ from cell to cell it is longer.
    let is_longer = matches!(model.graph.node(y), Node::Binary(BinaryOp::Add, y, _) if is_number(y));
    model.graph.node(x) == Node::StepTime && (is_number(y) || is_longer)
}

/// If a number of steps is about to become whole: the number. Here a time is no number of steps, and stays as it is.
fn in_steps(model: &Model, x: NodeId) -> Option<NodeId> {
    let Node::Binary(BinaryOp::Add, steps, half) = model.graph.node(x) else { return None };
    let Node::Binary(BinaryOp::Div, _, dt) = model.graph.node(steps) else { return None };
    (model.graph.node(dt) == Node::StepLength && model.graph.constant(half) == Some(0.5)).then_some(steps)
}

/// Does it jump where its operands need not?
pub(super) fn jumps(node: Node) -> bool {
    match node {
        Node::Unary(op, _) => matches!(op, UnaryOp::Floor | UnaryOp::Ceil),
        Node::Binary(op, ..) => is_comparison(op),
        _ => false,
    }
}

/// Does it compare numbers?
pub(super) fn is_comparison(op: BinaryOp) -> bool {
    matches!(op, BinaryOp::Lt | BinaryOp::Le | BinaryOp::Gt | BinaryOp::Ge | BinaryOp::Eq | BinaryOp::Ne)
}

fn missing(what: &str) -> EngineError {
    EngineError(format!("internal error: adaptive steps do not find {what}"))
}

fn unary(op: UnaryOp, x: &[f64], out: &mut [f64]) {
    let each = |out: &mut [f64], f: fn(f64) -> f64| out.iter_mut().zip(x).for_each(|(out, x)| *out = f(*x));
    match op {
        UnaryOp::Neg => each(out, |x| -x),
        UnaryOp::Not => each(out, |x| 1.0 - x),
        UnaryOp::Narrow => each(out, |x| f64::from(x as f32)),
        UnaryOp::Widen => each(out, |x| x),
        _ => {
            let value = |x: f64| eval_unary(op, Value::Real(x)).and_then(Value::real).unwrap_or(f64::NAN);
            out.iter_mut().zip(x).for_each(|(out, x)| *out = value(*x));
        }
    }
}

fn binary(op: BinaryOp, x: &[f64], y: &[f64], out: &mut [f64]) {
    let each = |out: &mut [f64], f: fn(f64, f64) -> f64| {
        out.iter_mut().zip(x.iter().zip(y)).for_each(|(out, (x, y))| *out = f(*x, *y));
    };
    match op {
        BinaryOp::Add => each(out, |x, y| x + y),
        BinaryOp::Sub => each(out, |x, y| x - y),
        BinaryOp::Mul => each(out, |x, y| x * y),
        BinaryOp::Div => each(out, |x, y| x / y),
        BinaryOp::And => each(out, |x, y| x * y),
        BinaryOp::Or => each(out, f64::max),
        BinaryOp::Lt => each(out, |x, y| f64::from(x < y)),
        BinaryOp::Le => each(out, |x, y| f64::from(x <= y)),
        BinaryOp::Gt => each(out, |x, y| f64::from(x > y)),
        BinaryOp::Ge => each(out, |x, y| f64::from(x >= y)),
        BinaryOp::Eq => each(out, |x, y| f64::from(x == y)),
        BinaryOp::Ne => each(out, |x, y| f64::from(x != y)),
        BinaryOp::Pow | BinaryOp::Min | BinaryOp::Max | BinaryOp::Poisson => {
            let value = |x: f64, y: f64| {
                eval_binary(op, Value::Real(x), Value::Real(y)).and_then(Value::real).unwrap_or(f64::NAN)
            };
            out.iter_mut().zip(x.iter().zip(y)).for_each(|(out, (x, y))| *out = value(*x, *y));
        }
    }
}
