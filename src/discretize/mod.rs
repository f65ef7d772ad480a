//! From the continuous model to the step IR.
//!
//! In comes an [`ode::Model`](crate::ode::Model); out goes a [`Program`] with an `init`, a `step` and (if something other
//! than states is recorded) an `observe` kernel per population. Each integration method is one file.
//! Never true here: an optimization (each state is updated in a region of its own; passes merge them).

mod cnexp;
mod euler;
mod exp_euler;
mod heun;
mod rk4;

use crate::hir::Method;
use crate::ode::{Condition, Model, Node, NodeId, Param, ParamId, StateId};
use crate::source::{SourceMap, Span};
use crate::step::{
    BinaryOp, Distribution, FieldId, FieldKind, Kernel, OpKind, OriginId, Phase, Program, Region, RegionBuilder, Role,
    Space, SpaceId, ValueId,
};
use crate::units::Dim;
use std::collections::HashMap;

/// How far (in ms) before an interval's end a time may lie and still count as its end.
const INSTANT: f64 = 1e-9;

/// New values of states, as nodes of the model's graph. They may read, as [`Node::Next`], what earlier stages have computed.
type Stage = Vec<(StateId, NodeId)>;

/// The stages of a step of `dt` of a population; every state is in one of them.
type Scheme = fn(&mut Model, population: usize, dt: NodeId) -> Vec<Stage>;

fn scheme(method: Method) -> Scheme {
    match method {
        Method::Euler => euler::step,
        Method::ExpEuler => exp_euler::step,
        Method::Cnexp => cnexp::step,
        Method::Heun => heun::step,
        Method::Rk4 => rk4::step,
    }
}

/// Discretizes a model with its method. The time step stays a uniform field, `dt`.
pub fn discretize(model: &Model, sources: &SourceMap) -> Program {
    let mut model = model.clone();
    let dt = add_dt(&mut model);
    let mut program = Program { name: model.name.clone(), ..Program::default() };
    program.spaces = model.populations.iter().map(|p| Space { name: p.name.clone() }).collect();
    let mut lowering = Lowering { program, sources, fields: HashMap::new() };
    for population in 0..model.populations.len() {
        let stages = scheme(model.method)(&mut model, population, dt);
        let together = matches!(model.method, Method::Heun | Method::Rk4);
        lowering.init(&model, population);
        lowering.step(&model, population, dt, &stages, together);
        lowering.observe(&model, population);
    }
    lowering.program
}

fn add_dt(model: &mut Model) -> NodeId {
    let value = model.graph.number(model.dt, Dim::TIME);
    model.params.push(Param {
        name: "dt".into(),
        value,
        population: None,
        dim: Dim::TIME,
        unit: Dim::TIME.display_unit(),
        span: Span::default(),
        docs: Vec::new(),
        settable: false,
    });
    model.graph.add(Node::Param(ParamId(model.params.len() as u32 - 1)))
}

/// The name of the hidden state that counts down a population's refractory time.
fn refractory_name(model: &Model, population: usize) -> String {
    format!("{}.refractory", model.populations[population].name)
}

struct Lowering<'s> {
    program: Program,
    sources: &'s SourceMap,
    fields: HashMap<String, FieldId>,
}

/// Node values inside one region.
struct Values<'m> {
    model: &'m Model,
    space: SpaceId,
    role: Role,
    memo: HashMap<NodeId, ValueId>,
}

impl Lowering<'_> {
    fn field(&mut self, name: &str, kind: FieldKind, origin: Option<OriginId>) -> FieldId {
        if let Some(&id) = self.fields.get(name) {
            return id;
        }
        let id = self.program.add_field(name, kind, origin);
        self.fields.insert(name.to_string(), id);
        id
    }

    fn origin(&mut self, span: Span) -> Option<OriginId> {
        if span == Span::default() {
            return None;
        }
        let line = self.sources.position(span).0 as u32;
        Some(self.program.add_origin(&self.sources.file(span.file).name, line))
    }

    fn state(&mut self, model: &Model, id: StateId) -> FieldId {
        let state = model.state(id);
        let origin = self.origin(state.span);
        self.field(&state.name, FieldKind::State(SpaceId(state.population as u32)), origin)
    }

    fn param(&mut self, model: &Model, id: ParamId) -> FieldId {
        let param = model.param(id);
        let kind = match param.population {
            None => FieldKind::Uniform,
            Some(p) => FieldKind::Cell(SpaceId(p as u32)),
        };
        let origin = self.origin(param.span);
        self.field(&param.name, kind, origin)
    }

    /// Appends what `root` needs to the region.
    fn lower(&mut self, b: &mut RegionBuilder, values: &mut Values<'_>, root: NodeId) -> ValueId {
        let model = values.model;
        for id in model.graph.reachable([root]) {
            if values.memo.contains_key(&id) {
                continue;
            }
            let node = model.graph.node(id);
            let value = match node {
                Node::Param(p) if values.role == Role::Init && model.param(p).population.is_some() => {
                    // Cell parameters are being computed: take the value itself.
                    self.lower(b, values, model.param(p).value)
                }
                Node::Param(p) => {
                    let field = self.param(model, p);
                    b.field(field)
                }
                Node::State(s) => {
                    let field = self.state(model, s);
                    b.field(field)
                }
                Node::Next(s) => {
                    let field = self.next(model, s);
                    b.field(field)
                }
                Node::Data(d) => {
                    let name = format!("{}.file{d}", self.program.space(values.space).name);
                    let field = self.field(&name, FieldKind::Data(values.space), None);
                    b.field(field)
                }
                Node::Series(d, t) => {
                    let field = self.field(&format!("series{d}"), FieldKind::Series, None);
                    b.value(OpKind::Sample(field, values.memo[&t]))
                }
                Node::Const(bits, _) => b.constant(f64::from_bits(bits)),
                Node::Bool(x) => b.value(OpKind::Bool(x)),
                Node::Time | Node::StepTime => b.value(OpKind::Time),
                Node::Index => b.value(OpKind::Index),
                // Seeded by `edges`; elsewhere the verifier of the continuous model forbids it.
                Node::Dv => b.constant(f64::NAN),
                Node::Junction(c) => {
                    let sum = self.sum(model, c);
                    b.field(sum)
                }
                Node::Unary(op, a) => b.unary(op, values.memo[&a]),
                Node::Binary(BinaryOp::Pow, x, y) => match model.graph.constant(y).and_then(few) {
                    Some(n) => power(b, values.memo[&x], n),
                    None => b.binary(BinaryOp::Pow, values.memo[&x], values.memo[&y]),
                },
                Node::Binary(op, x, y) => b.binary(op, values.memo[&x], values.memo[&y]),
                Node::Select(c, x, y) => b.select(values.memo[&c], values.memo[&x], values.memo[&y]),
                Node::Draw(distribution, stream) => {
                    let zero = b.constant(0.0);
                    b.value(OpKind::Draw(distribution, stream, zero))
                }
                Node::Noise(stream, every) => {
                    let time = b.value(OpKind::Time);
                    let instant = b.constant(INSTANT);
                    let now = b.binary(BinaryOp::Add, time, instant);
                    let count = b.binary(BinaryOp::Div, now, values.memo[&every]);
                    let count = b.unary(crate::step::UnaryOp::Floor, count);
                    b.value(OpKind::Draw(Distribution::Normal, stream, count))
                }
            };
            values.memo.insert(id, value);
        }
        values.memo[&root]
    }

    fn kernel(&mut self, role: Role, space: SpaceId, regions: Vec<Region>) {
        self.program.kernels.push(Kernel { role, space, steps: 1, regions });
    }

    fn init(&mut self, model: &Model, population: usize) {
        let space = SpaceId(population as u32);
        let mut b = RegionBuilder::new(Phase::Body, ValueId(0));
        let mut values = Values { model, space, role: Role::Init, memo: HashMap::new() };
        for i in 0..model.params.len() as u32 {
            let param = model.param(ParamId(i));
            if param.population == Some(population) {
                let origin = self.origin(param.span);
                b.set_origin(origin);
                let value = self.lower(&mut b, &mut values, param.value);
                let field = self.param(model, ParamId(i));
                b.store(field, value);
            }
        }
        for id in model.states_of(population) {
            let origin = self.origin(model.state(id).span);
            b.set_origin(origin);
            let value = self.lower(&mut b, &mut values, model.state(id).init);
            let field = self.state(model, id);
            b.store(field, value);
        }
        b.set_origin(None);
        if model.populations[population].spike.as_ref().is_some_and(|s| s.refractory.is_some()) {
            let field = self.field(&refractory_name(model, population), FieldKind::State(space), None);
            let zero = b.constant(0.0);
            b.store(field, zero);
        }
        self.kernel(Role::Init, space, vec![b.finish()]);
    }

    fn step(&mut self, model: &Model, population: usize, dt: NodeId, stages: &[Stage], together: bool) {
        let space = SpaceId(population as u32);
        let (mut regions, mut next) = self.edges(model, population);
        for group in stages.iter().flat_map(|stage| stage.chunks(if together { stage.len().max(1) } else { 1 })) {
            let mut b = RegionBuilder::new(Phase::Body, next);
            let mut values = Values { model, space, role: Role::Step, memo: HashMap::new() };
            for &(state, value) in group {
                let origin = self.origin(model.state(state).span);
                b.set_origin(origin);
                let value = self.lower(&mut b, &mut values, value);
                let temp = self.next(model, state);
                b.store(temp, value);
            }
            next = b.next();
            regions.push(b.finish());
        }
        let temps: Vec<(StateId, FieldId)> = model.states_of(population).map(|s| (s, self.next(model, s))).collect();
        regions.push(self.commit(model, population, dt, &temps, next));
        self.kernel(Role::Step, space, regions);
    }

    /// The temp field of a state's new value.
    fn next(&mut self, model: &Model, id: StateId) -> FieldId {
        let state = model.state(id);
        let origin = self.origin(state.span);
        self.field(&format!("next.{}", state.name), FieldKind::Temp(SpaceId(state.population as u32)), origin)
    }

    /// The temp field in which a connection's currents are added up.
    fn sum(&mut self, model: &Model, connection: u32) -> FieldId {
        let c = &model.connections[connection as usize];
        let origin = self.origin(c.span);
        self.field(&format!("sum.{}", c.name), FieldKind::Temp(SpaceId(c.population as u32)), origin)
    }

    /// One edge region per connection of a population: adds up the currents out of each cell.
    fn edges(&mut self, model: &Model, population: usize) -> (Vec<Region>, ValueId) {
        let space = SpaceId(population as u32);
        let mut regions = Vec::new();
        let mut next = ValueId(0);
        for (i, c) in model.connections.iter().enumerate() {
            if c.population != population {
                continue;
            }
            let origin = self.origin(c.span);
            let edges = self.field(&edges_name(&c.name), FieldKind::Edges(space), origin);
            let mut b = RegionBuilder::new(Phase::Edge(edges), next);
            b.set_origin(origin);
            let v = self.state(model, c.v);
            let here = b.field(v);
            let there = b.value(OpKind::There(v));
            let dv = b.binary(BinaryOp::Sub, here, there);
            let mut values = Values { model, space, role: Role::Step, memo: HashMap::new() };
            for id in model.graph.reachable([c.current]) {
                if model.graph.node(id) == Node::Dv {
                    values.memo.insert(id, dv);
                }
            }
            let current = self.lower(&mut b, &mut values, c.current);
            let sum = self.sum(model, i as u32);
            b.effect(OpKind::Accumulate(sum, current));
            next = b.next();
            regions.push(b.finish());
        }
        (regions, next)
    }

    /// Stores the new states; detects spikes, resets and holds what is refractory.
    fn commit(
        &mut self,
        model: &Model,
        population: usize,
        dt: NodeId,
        temps: &[(StateId, FieldId)],
        next: ValueId,
    ) -> Region {
        let space = SpaceId(population as u32);
        let mut b = RegionBuilder::new(Phase::Body, next);
        let mut after: Vec<(StateId, ValueId)> = temps.iter().map(|&(s, temp)| (s, b.field(temp))).collect();
        let Some(spike) = &model.populations[population].spike else {
            for (state, value) in after {
                let field = self.state(model, state);
                let origin = self.origin(model.state(state).span);
                b.set_origin(origin);
                b.store(field, value);
            }
            return b.finish();
        };
        let origin = self.origin(spike.span);
        b.set_origin(origin);
        let mut old = Values { model, space, role: Role::Step, memo: HashMap::new() };
        let dt = self.lower(&mut b, &mut old, dt);
        // A refractory cell keeps the states that make it spike.
        let mut refractory = None;
        if let Some(duration) = spike.refractory {
            let field = self.field(&refractory_name(model, population), FieldKind::State(space), origin);
            let left = b.field(field);
            let half = b.constant(0.5);
            let half = b.binary(BinaryOp::Mul, dt, half);
            let held = b.binary(BinaryOp::Gt, left, half);
            for (state, value) in &mut after {
                if spike.held.contains(state) {
                    let field = self.state(model, *state);
                    let before = b.field(field);
                    *value = b.select(held, before, *value);
                }
            }
            refractory = Some((field, left, held, duration));
        }
        let mut new = Values { model, space, role: Role::Step, memo: HashMap::new() };
        let graph = &model.graph;
        for id in (0..graph.len() as u32).map(NodeId) {
            if let Node::State(s) = graph.node(id)
                && let Some(&(_, value)) = after.iter().find(|a| a.0 == s)
            {
                new.memo.insert(id, value);
            }
            if let Node::Time | Node::StepTime = graph.node(id) {
                let time = b.value(OpKind::Time);
                let time = b.binary(BinaryOp::Add, time, dt);
                new.memo.insert(id, time);
            }
        }
        let mut spiking = match spike.condition {
            Condition::Crosses(quantity, level) => {
                let before = self.lower(&mut b, &mut old, quantity);
                let level_before = self.lower(&mut b, &mut old, level);
                let now = self.lower(&mut b, &mut new, quantity);
                let level_now = self.lower(&mut b, &mut new, level);
                let below = b.binary(BinaryOp::Lt, before, level_before);
                let above = b.binary(BinaryOp::Ge, now, level_now);
                b.binary(BinaryOp::And, below, above)
            }
            Condition::When(condition) => self.lower(&mut b, &mut new, condition),
        };
        if let Some((_, _, held, _)) = refractory {
            let free = b.unary(crate::step::UnaryOp::Not, held);
            spiking = b.binary(BinaryOp::And, spiking, free);
        }
        let resets: Vec<(StateId, ValueId)> =
            spike.resets.iter().map(|&(s, value)| (s, self.lower(&mut b, &mut new, value))).collect();
        let countdown = refractory.map(|(field, left, _, duration)| {
            let duration = self.lower(&mut b, &mut new, duration);
            let less = b.binary(BinaryOp::Sub, left, dt);
            let zero = b.constant(0.0);
            let less = b.binary(BinaryOp::Max, less, zero);
            (field, b.select(spiking, duration, less))
        });
        for (state, mut value) in after {
            if let Some(&(_, reset)) = resets.iter().find(|r| r.0 == state) {
                value = b.select(spiking, reset, value);
            }
            let field = self.state(model, state);
            b.store(field, value);
        }
        if let Some((field, value)) = countdown {
            b.store(field, value);
        }
        let name = format!("{}.spikes", model.populations[population].name);
        let event = self.field(&name, FieldKind::Event(space), origin);
        b.effect(OpKind::Emit(event, spiking));
        b.finish()
    }

    fn observe(&mut self, model: &Model, population: usize) {
        let space = SpaceId(population as u32);
        let mut b = RegionBuilder::new(Phase::Body, ValueId(0));
        let mut values = Values { model, space, role: Role::Observe, memo: HashMap::new() };
        let mut any = false;
        for r in model.records.iter().filter(|r| r.population == population) {
            if matches!(model.graph.node(r.value), Node::State(_)) || self.fields.contains_key(&output_name(&r.name)) {
                continue;
            }
            any = true;
            let origin = self.origin(r.span);
            b.set_origin(origin);
            let value = self.lower(&mut b, &mut values, r.value);
            let field = self.field(&output_name(&r.name), FieldKind::Output(space), origin);
            b.store(field, value);
        }
        if any {
            self.kernel(Role::Observe, space, vec![b.finish()]);
        }
    }
}

/// The largest whole exponent that means repeated multiplication.
const MOST_FACTORS: f64 = 32.0;

/// A whole exponent that is small enough to be multiplied out.
fn few(exponent: f64) -> Option<i32> {
    (exponent.fract() == 0.0 && exponent != 0.0 && exponent.abs() <= MOST_FACTORS).then_some(exponent as i32)
}

/// `x^n` as products, for a whole `n` other than 0: what a power with such an exponent means, on every engine and at every level.
fn power(b: &mut RegionBuilder, x: ValueId, n: i32) -> ValueId {
    if n < 0 {
        let (one, power) = (b.constant(1.0), power(b, x, -n));
        return b.binary(BinaryOp::Div, one, power);
    }
    if n == 1 {
        return x;
    }
    let half = power(b, x, n / 2);
    let square = b.binary(BinaryOp::Mul, half, half);
    if n % 2 == 0 { square } else { b.binary(BinaryOp::Mul, square, x) }
}

/// The name of a connection's edges field.
pub fn edges_name(connection: &str) -> String {
    format!("edges.{connection}")
}

/// The name of the output field of a recorded quantity that is not a state.
pub fn output_name(record: &str) -> String {
    format!("out.{record}")
}
