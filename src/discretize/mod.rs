//! From the continuous model to the step IR.
//!
//! In comes an [`ode::Model`](crate::ode::Model); out goes a [`Program`] with the functions `init`, `step` and (if something other
//! than states is recorded) `observe`. Populations are its spaces, connections its relations. Each integration method is one file.
//! Never true here: an optimization (each state is updated in a region of its own; passes merge them).

mod cable;
mod cnexp;
mod crank_nicolson;
pub mod diffusion;
mod euler;
mod exact;
mod exp_euler;
mod graded;
mod heun;
mod kinetics;
mod noise;
mod order;
mod plasticity;
mod rk4;
mod stages;

use crate::hir::{Arrivals, Coincident, Method};
use crate::morphology::Measure;
use crate::ode::instant::{self, begun_until};
use crate::ode::{
    Clamp, Condition, Jump, Kind, Meets, Model, Node, NodeId, Param, ParamId, Projection, Record, STRETCH, Spike,
    StateId, Terminal,
};
use crate::source::{SourceMap, Span};
use crate::step::{
    BinaryOp, Distribution, Field, FieldId, FieldKind, Function, Guard, Map, OpKind, OriginId, Program, RegionBuilder,
    Role, Source, Space, SpaceId, SpaceKind, Surrogate, UnaryOp, ValueId,
};
use crate::units::Dim;
use plasticity::Remembered;
use rustc_hash::FxHashMap as HashMap;
use stages::{Flow, Stage, Stages, Target, Update};

/// Adds the stages of a step of a population; every state is updated in one of them.
type Scheme = fn(&mut Stages<'_>);

fn scheme(method: Method) -> Scheme {
    match method {
        Method::Euler => euler::step,
        Method::ExpEuler => exp_euler::step,
        Method::Cnexp => cnexp::step,
        Method::CrankNicolson => crank_nicolson::step,
        Method::Exact => exact::step,
        Method::Heun => heun::step,
        Method::Rk4 => rk4::step,
        // Nothing has a new value after a step of the grid; the equations are solved elsewhere.
        Method::Adaptive => |_| {},
    }
}

/// How spikes count where events are carried from outside the program, and gradients go back through them.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Carried {
    /// What stands for the derivative of a spike, where the model does not write it ([`Model::surrogate`]).
    pub surrogate: Surrogate,
    /// Has what a spike resets no part in the derivative?
    pub detached: bool,
}

/// Discretizes a model with its method. The time step stays a uniform field, `dt`.
pub fn discretize(model: &Model, sources: &SourceMap) -> Program {
    lowered(model, sources, None)
}

/// Discretizes a model whose events somebody else carries: there are no projections; what arrives at a cell is a state that is written before a step
/// ([`Source::Arrived`]), and whether it has spiked one that is read after it ([`Source::Spiked`]). No event is emitted.
pub fn discretize_carried(model: &Model, sources: &SourceMap, carried: Carried) -> Program {
    lowered(model, sources, Some(carried))
}

fn lowered(model: &Model, sources: &SourceMap, carried: Option<Carried>) -> Program {
    let mut model = model.clone();
    let projections = if carried.is_some() { 0 } else { model.projections.len() };
    let dt = add_dt(&mut model);
    let populations = 0..model.populations.len();
    let of_population = |population: usize| {
        let mut stages = Stages::new(&mut model, population, dt);
        match stages.model.populations[population].kind {
            Kind::Cells | Kind::Part { .. } => scheme(stages.model.method)(&mut stages),
            // The rows of its cable; nothing moves in a clock.
            Kind::Tree { .. } | Kind::Clock => {}
        }
        stages.finish()
    };
    let stages: Vec<Vec<Stage>> = populations.clone().map(of_population).collect();
    let mut sent = graded::sent(&mut model, &stages);
    let passed = if carried.is_some() {
        // What cells send is carried from outside, too.
        sent.iter_mut().for_each(Vec::clear);
        graded::passed(&mut model)
    } else {
        graded::passed_within(&model, sent.first().map_or(&[], Vec::as_slice))
    };
    let remembered: Vec<Option<Remembered>> =
        (0..projections).map(|projection| Remembered::new(&mut model, projection)).collect();
    if model.method == Method::CrankNicolson {
        crank_nicolson::membranes_in_the_middle(&mut model, dt);
    }
    let rows = cable::rows(&mut model);
    let predicted = diffusion::predicted(&mut model, &stages, dt);
    let slopes: Vec<Option<NodeId>> = (0..model.connections.len()).map(|c| cable::slope(&mut model, c)).collect();
    let mut spaces = spaces(&model);
    spaces.truncate(model.populations.len() + model.connections.len() + projections);
    let program = Program { name: model.name.clone(), spaces, ..Program::default() };
    let between = model.between_steps();
    let mut lowering =
        Lowering { program, model: &model, dt, sources, fields: HashMap::default(), carried, passed, between };

    let mut init = Draft::default();
    populations.clone().for_each(|population| lowering.init(&mut init, population));
    (0..model.cables.len()).for_each(|cable| lowering.axial(&mut init, cable));
    (0..model.cables.len()).for_each(|cable| lowering.at_rest(&mut init, cable));
    (0..model.diffusions.len()).for_each(|diffusion| lowering.passages(&mut init, diffusion));
    lowering.look(&mut init, |of, v| of.state(v));
    if carried.is_none() {
        lowering.first(&mut init);
    }
    (0..projections).for_each(|projection| lowering.edge_values(&mut init, projection));
    lowering.function(Role::Init, init);
    if model.method == Method::Adaptive {
        return lowering.without_steps(projections, &remembered);
    }

    let mut step = Draft::default();
    // What is added to one sum stands together.
    for projection in (0..projections).filter(|&projection| remembered[projection].is_none()) {
        lowering.arrivals(&mut step, projection);
    }
    let all = || (0..).zip(&remembered).filter_map(|(projection, remembered)| Some((projection, remembered.as_ref()?)));
    let post_first = model.coincident.0 != Coincident::PreFirst;
    for (projection, remembered) in all() {
        if post_first {
            lowering.post(&mut step, projection, remembered);
        }
        lowering.pre(&mut step, projection, remembered);
        if lowering.between[projection] {
            if !post_first {
                lowering.post(&mut step, projection, remembered);
            }
            lowering.modulated(&mut step, projection, remembered);
        }
    }
    populations.clone().for_each(|population| lowering.between(&mut step, population));
    // What flows through junctions is known before the rows of cables are made.
    lowering.edges(&mut step, Role::Step, 0, &slopes);
    lowering.graded(&mut step, Role::Step, 0, sent.first().map_or(&[], Vec::as_slice));
    lowering.diffuse(&mut step, &predicted, diffusion::PREDICTED);
    rows.iter().for_each(|row| lowering.solve(&mut step, row));
    for (stage, sent) in sent.iter().enumerate() {
        if stage > 0 {
            lowering.edges(&mut step, Role::Step, stage as u32, &[]);
            lowering.graded(&mut step, Role::Step, stage as u32, sent);
        }
        for (population, stages) in stages.iter().enumerate() {
            let updates = stages.get(stage).map_or(&[][..], |stage| &stage.updates);
            lowering.updates(&mut step, population, updates);
        }
        let here = || stages.iter().filter_map(|stages| stages.get(stage));
        let flows: Vec<Flow> = here().flat_map(|stage| &stage.flows).copied().collect();
        lowering.diffuse(&mut step, &flows, diffusion::SOLVED);
        for (population, stages) in stages.iter().enumerate() {
            let updates = stages.get(stage).map_or(&[][..], |stage| &stage.late);
            lowering.updates(&mut step, population, updates);
        }
    }
    // Places and parts look at the voltages before and after the step: they go first.
    let is_cells = |population: &usize| model.populations[*population].kind == Kind::Cells;
    let of_cells = populations.clone().filter(|p| !is_cells(p)).rev().chain(populations.clone().filter(is_cells));
    lowering.look(&mut step, |of, v| of.next(v));
    of_cells.for_each(|population| match model.populations[population].kind {
        Kind::Clock => lowering.tick(&mut step, population, Lowering::stretches),
        Kind::Cells | Kind::Tree { .. } | Kind::Part { .. } => lowering.commit(&mut step, population),
    });
    model.told().into_iter().for_each(|(place, spiking)| lowering.tell(&mut step, place, spiking));
    (0..model.modulators.len()).for_each(|modulator| lowering.modulate(&mut step, modulator));
    for (projection, remembered) in all() {
        if !lowering.between[projection] {
            if !post_first {
                lowering.post(&mut step, projection, remembered);
            }
            lowering.modulated(&mut step, projection, remembered);
        }
    }
    lowering.function(Role::Step, step);
    lowering.observed(&remembered, sent.first().map_or(&[], Vec::as_slice));
    lowering.program
}

/// Populations, then connections, then projections.
fn spaces(model: &Model) -> Vec<Space> {
    let plain = model.populations.iter().map(|p| {
        let kind = match &p.kind {
            Kind::Cells | Kind::Clock => SpaceKind::Plain,
            Kind::Tree { of, .. } => SpaceKind::Product { of: population_space(*of), tree: true },
            Kind::Part { of, .. } => SpaceKind::Subset { of: population_space(*of) },
        };
        Space { name: p.name.clone(), kind }
    });
    let relation = model.connections.iter().map(|c| {
        let [from, to] = [c.there, c.here].map(|end| population_space(end.population));
        // No population has a name with a dot.
        Space { name: format!("edges.{}", c.name), kind: SpaceKind::Relation { from, to } }
    });
    let projection = model.projections.iter().map(|p| {
        let [from, to] = [p.from, p.to].map(population_space);
        Space { name: format!("edges.{}", p.name), kind: SpaceKind::Relation { from, to } }
    });
    plain.chain(relation).chain(projection).collect()
}

/// The space of a population.
pub fn population_space(population: usize) -> SpaceId {
    SpaceId(population as u32)
}

/// The space of a connection's edges.
pub fn connection_space(model: &Model, connection: usize) -> SpaceId {
    SpaceId((model.populations.len() + connection) as u32)
}

/// The space of a projection's edges.
pub fn projection_space(model: &Model, projection: usize) -> SpaceId {
    SpaceId((model.populations.len() + model.connections.len() + projection) as u32)
}

/// The parameter that [`add_dt`] has added.
fn dt_param(model: &Model) -> ParamId {
    ParamId(model.params.len() as u32 - 1)
}

fn add_dt(model: &mut Model) -> NodeId {
    let value = model.graph.number(model.dt, Dim::TIME);
    model.params.push(Param {
        name: "dt".into(),
        value,
        population: None,
        home: None,
        dim: Dim::TIME,
        unit: Dim::TIME.display_unit(),
        span: Span::default(),
        docs: Vec::new(),
        settable: false,
        set: None,
    });
    let dt = dt_param(model);
    model.graph.add(Node::Param(dt))
}

/// A function in the making.
#[derive(Default)]
struct Draft {
    stages: Vec<crate::step::Stage>,
    next: u32,
}

impl Draft {
    /// A region over a space, run every step.
    fn over(&self, space: SpaceId) -> RegionBuilder {
        RegionBuilder::new(Some(space), ValueId(self.next))
    }

    /// Appends a finished region.
    fn push(&mut self, b: RegionBuilder) {
        self.next = b.next().0;
        self.stages.push(crate::step::Stage::Region(b.finish()));
    }
}

struct Lowering<'s> {
    program: Program,
    model: &'s Model,
    dt: NodeId,
    sources: &'s SourceMap,
    fields: HashMap<Source, FieldId>,
    carried: Option<Carried>,
    /// What cells pass on through graded synapses, where that is kept from step to step.
    passed: Vec<graded::Passed>,
    /// For each projection, whether what it brings arrives between two steps.
    between: Vec<bool>,
}

/// Node values inside one region.
struct Values {
    space: SpaceId,
    role: Role,
    /// The time, where it is not that of the step's beginning.
    time: Option<ValueId>,
    memo: HashMap<NodeId, ValueId>,
}

impl Values {
    fn new(space: SpaceId, role: Role) -> Values {
        Values { space, role, time: None, memo: HashMap::default() }
    }
}

impl<'s> Lowering<'s> {
    /// The function `observe`, if it has something to do.
    fn observed(&mut self, remembered: &[Option<Remembered>], sent: &[graded::Sent]) {
        let mut observe = Draft::default();
        let model = self.model;
        let recorded = model.graph.reachable(model.records.iter().map(|r| r.value));
        let reads = |which: fn(Node) -> bool| recorded.iter().any(|&n| which(model.graph.node(n)));
        if reads(|node| matches!(node, Node::Junction(..))) {
            self.edges(&mut observe, Role::Observe, 0, &[]);
        }
        if reads(|node| matches!(node, Node::Arrived(..))) {
            self.graded(&mut observe, Role::Observe, 0, sent);
        }
        (0..self.model.populations.len()).for_each(|population| self.observe(&mut observe, population));
        for (projection, remembered) in remembered.iter().enumerate() {
            remembered.iter().for_each(|remembered| self.observe_edges(&mut observe, projection, remembered));
        }
        if !observe.stages.is_empty() {
            self.function(Role::Observe, observe);
        }
    }

    /// The program of a model that is not solved in steps of a grid: there is no `step`. The fields are there that whoever solves it reads and emits.
    fn without_steps(mut self, projections: usize, remembered: &[Option<Remembered>]) -> Program {
        let model = self.model;
        self.observed(remembered, &[]);
        // Samples are taken on the grid.
        let recorded = model.graph.reachable(model.records.iter().map(|r| r.value));
        if recorded.iter().any(|&node| matches!(model.graph.node(node), Node::Time | Node::StepTime)) {
            self.param(dt_param(model));
        }
        for (population, p) in model.populations.iter().enumerate() {
            if let Some(spike) = &p.spike {
                self.spikes(population, spike.span);
            }
        }
        for id in (0..model.graph.len() as u32).map(NodeId) {
            if let Node::Series(file, _) = model.graph.node(id) {
                let name = format!("'series{file}");
                self.field(Source::Series(file), name, FieldKind::Series, None, Span::default());
            }
        }
        debug_assert!(projections == model.projections.len());
        self.program
    }

    /// The field that stands for something. Names of hidden ones have a `'`, which names in models cannot have.
    fn field(
        &mut self,
        source: Source,
        name: impl Into<String>,
        kind: FieldKind,
        over: Option<SpaceId>,
        span: Span,
    ) -> FieldId {
        if let Some(&id) = self.fields.get(&source) {
            return id;
        }
        let origin = self.origin(span);
        let id = self.program.add_field(Field { name: name.into(), kind, over, history: 0, source, origin });
        self.fields.insert(source, id);
        id
    }

    fn origin(&mut self, span: Span) -> Option<OriginId> {
        if span == Span::default() {
            return None;
        }
        let line = self.sources.position(span).0 as u32;
        Some(self.program.add_origin(&self.sources.file(span.file).name, line))
    }

    /// The space that a state lives in.
    fn space_of(&self, id: StateId) -> SpaceId {
        let state = self.model.state(id);
        state.edges.map_or(population_space(state.population), |p| projection_space(self.model, p))
    }

    fn state(&mut self, id: StateId) -> FieldId {
        let state = self.model.state(id);
        let space = self.space_of(id);
        self.field(Source::State(id.0), &state.name, FieldKind::State, Some(space), state.span)
    }

    /// The new value of a state.
    fn next(&mut self, id: StateId) -> FieldId {
        let state = self.model.state(id);
        let space = population_space(state.population);
        self.field(Source::Next(id.0), format!("{}'next", state.name), FieldKind::Temp, Some(space), state.span)
    }

    fn param(&mut self, id: ParamId) -> FieldId {
        let param = self.model.param(id);
        let (kind, over) = match param.population {
            None => (FieldKind::Uniform, None),
            Some(p) => (FieldKind::Const, Some(population_space(p))),
        };
        let source = if id == dt_param(self.model) { Source::Dt } else { Source::Param(id.0) };
        self.field(source, &param.name, kind, over, param.span)
    }

    /// A number of the compartments that are the elements of a space.
    fn measured(&mut self, b: &mut RegionBuilder, space: SpaceId, measure: Measure) -> ValueId {
        let name = format!("{}'{}", self.program.space(space).name, measure.name());
        let source = Source::Measure(space.0, measure.number());
        let field = self.field(source, name, FieldKind::Data, Some(space), Span::default());
        b.field(field)
    }

    /// What is computed for a state.
    fn target(&mut self, target: Target) -> FieldId {
        let (id, source, name) = match target {
            Target::Next(id) => return self.next(id),
            Target::Slope(id, stage) => (id, Source::Slope(id.0, stage), format!("slope{stage}")),
            Target::Point(id, stage) => (id, Source::Point(id.0, stage), format!("point{stage}")),
        };
        let state = self.model.state(id);
        let space = population_space(state.population);
        self.field(source, format!("{}'{name}", state.name), FieldKind::Temp, Some(space), state.span)
    }

    /// Where a connection's currents are added up, at what a stage looks at.
    fn sum(&mut self, connection: u32, stage: u32) -> FieldId {
        let c = &self.model.connections[connection as usize];
        let space = population_space(c.here.population);
        let number = if stage == 0 { String::new() } else { stage.to_string() };
        let name = format!("{}'sum{number}", c.name);
        self.field(Source::Sum(connection, stage), name, FieldKind::Temp, Some(space), c.span)
    }

    /// Where the slopes of a connection's currents are added up.
    fn conductance(&mut self, connection: u32) -> FieldId {
        let c = &self.model.connections[connection as usize];
        let space = population_space(c.here.population);
        let name = format!("{}'conductance", c.name);
        self.field(Source::Slopes(connection), name, FieldKind::Temp, Some(space), c.span)
    }

    /// The voltage at a terminal as edges see it: at a place, what the compartment had when the step began.
    fn at_terminal(&mut self, Terminal { population, v }: Terminal, span: Span) -> FieldId {
        if self.model.state(v).population == population {
            return self.state(v);
        }
        let state = self.model.state(v).name.rsplit('.').next().unwrap_or_default();
        let name = format!("{}'{state}", self.model.populations[population].name);
        let (source, space) = (Source::There(population as u32, v.0), population_space(population));
        self.field(source, name, FieldKind::State, Some(space), span)
    }

    /// Brings what edges see at places up to date: from the field that `now` tells of each state.
    fn look(&mut self, draft: &mut Draft, now: impl Fn(&mut Self, StateId) -> FieldId) {
        for place in self.model.seen_by_edges() {
            let space = population_space(place.population);
            let mut b = draft.over(space);
            let now = now(self, place.v);
            let v = b.gather(now, Map::In);
            let seen = self.at_terminal(place, Span::default());
            b.store(seen, v);
            draft.push(b);
        }
    }

    /// Where what arrives through a projection is added up.
    fn arrived(&mut self, projection: u32, number: u32) -> FieldId {
        let p = &self.model.projections[projection as usize];
        let which = if number == 0 { String::new() } else { number.to_string() };
        let (name, space) = (format!("{}'arrived{which}", p.name), population_space(p.to));
        let kind = if self.carried.is_some() { FieldKind::State } else { FieldKind::Temp };
        self.field(Source::Arrived(projection, number), name, kind, Some(space), p.span)
    }

    /// A value of every edge of a projection.
    fn of_edges(&mut self, projection: u32, source: Source, name: &str) -> FieldId {
        let p = &self.model.projections[projection as usize];
        let space = projection_space(self.model, projection as usize);
        self.field(source, format!("{}'{name}", p.name), FieldKind::Const, Some(space), p.span)
    }

    /// The spikes of a population.
    fn spikes(&mut self, population: usize, span: Span) -> FieldId {
        let name = format!("{}'spikes", self.model.populations[population].name);
        let source = Source::Spikes(population as u32);
        self.field(source, name, FieldKind::Event, Some(population_space(population)), span)
    }

    /// Whether the cells of a population have spiked in the last step.
    fn spiked(&mut self, population: usize, span: Span) -> FieldId {
        let name = format!("{}'spiked", self.model.populations[population].name);
        let space = population_space(population);
        self.field(Source::Spiked(population as u32), name, FieldKind::State, Some(space), span)
    }

    /// The hidden state that counts down the steps of a population's refractory time.
    fn refractory(&mut self, population: usize, span: Span) -> FieldId {
        let name = format!("{}'held", self.model.populations[population].name);
        let space = population_space(population);
        self.field(Source::Refractory(population as u32), name, FieldKind::State, Some(space), span)
    }

    /// Is a parameter one of the cells of a space?
    fn is_own(&self, space: SpaceId, param: ParamId) -> bool {
        self.model.param(param).population.is_some_and(|p| population_space(p) == space)
    }

    /// Appends what `root` needs to the region.
    fn lower(&mut self, b: &mut RegionBuilder, values: &mut Values, root: NodeId) -> ValueId {
        let model = self.model;
        for id in model.graph.reachable([root]) {
            if values.memo.contains_key(&id) {
                continue;
            }
            let node = model.graph.node(id);
            let value = match node {
                Node::Param(p) if values.role == Role::Init && self.is_own(values.space, p) => {
                    // Cell parameters are being computed: take the value itself.
                    self.lower(b, values, model.param(p).value)
                }
                Node::Param(p) => {
                    let field = self.param(p);
                    self.read(b, values.space, field)
                }
                Node::State(s) => {
                    let field = match self.program.space(values.space).kind {
                        SpaceKind::Relation { to, .. } if model.state(s).edges.is_none() => {
                            self.at_terminal(Terminal { population: to.0 as usize, v: s }, Span::default())
                        }
                        _ => self.state(s),
                    };
                    self.read(b, values.space, field)
                }
                Node::Next(s) => {
                    let field = self.next(s);
                    self.read(b, values.space, field)
                }
                Node::Measure(measure) => self.measured(b, values.space, measure),
                Node::Slope(s, stage) => {
                    let field = self.target(Target::Slope(s, stage));
                    b.field(field)
                }
                Node::Point(s, stage) => {
                    let field = self.target(Target::Point(s, stage));
                    b.field(field)
                }
                Node::Refractory(population) => {
                    let span =
                        model.populations[population as usize].spike.as_ref().map_or(Span::default(), |s| s.span);
                    let field = self.refractory(population as usize, span);
                    is_held(b, field).1
                }
                Node::Data(d) => {
                    // Populations of different sizes may read one file.
                    let name = format!("{}'file{d}", self.program.space(values.space).name);
                    let source = Source::Data(values.space.0, d);
                    let field = self.field(source, name, FieldKind::Data, Some(values.space), Span::default());
                    b.field(field)
                }
                Node::Series(d, t) => {
                    let name = format!("'series{d}");
                    let field = self.field(Source::Series(d), name, FieldKind::Series, None, Span::default());
                    b.value(OpKind::Sample(field, values.memo[&t]))
                }
                Node::Const(bits, _) => b.constant(f64::from_bits(bits)),
                Node::Bool(x) => b.value(OpKind::Bool(x)),
                Node::Time | Node::StepTime => b.value(OpKind::Time),
                Node::StepLength => {
                    let dt = self.param(dt_param(model));
                    b.field(dt)
                }
                Node::Index => b.value(OpKind::Index),
                // Seeded by `edges`; elsewhere the verifier of the continuous model forbids it.
                Node::Dv => b.constant(f64::NAN),
                // The rows of the cable have it; nothing that is computed in a step reads it.
                Node::Outward(_) => b.constant(f64::NAN),
                Node::Junction(c, stage) => {
                    let sum = self.sum(c, stage);
                    b.field(sum)
                }
                Node::Conductance(c) => {
                    let sum = self.conductance(c);
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
                Node::Arrived(projection, number) => {
                    let sum = self.arrived(projection, number);
                    b.field(sum)
                }
                Node::Amount(modulator) => {
                    let amount = self.amount(modulator);
                    self.read(b, values.space, amount)
                }
                // Seeded where spikes are.
                Node::Beyond => b.constant(f64::NAN),
                // Seeded where edges are; elsewhere the verifier of the continuous model forbids it.
                Node::Since => b.constant(f64::NAN),
                Node::Events(stream, expected) => {
                    let step = b.value(OpKind::StepIndex);
                    let uniform = b.value(OpKind::Draw(Distribution::Uniform, stream, step));
                    b.binary(BinaryOp::Poisson, uniform, values.memo[&expected])
                }
                Node::White(stream) => {
                    let step = b.value(OpKind::StepIndex);
                    let normal = b.value(OpKind::Draw(Distribution::Normal, stream, step));
                    let dt = self.param(dt_param(model));
                    let dt = b.field(dt);
                    let root = b.unary(UnaryOp::Sqrt, dt);
                    b.binary(BinaryOp::Div, normal, root)
                }
                Node::Noise(stream, every) => {
                    let time = values.time.unwrap_or_else(|| b.value(OpKind::Time));
                    let differ = model.graph.may_differ(&model.params, &[every]);
                    let now = begun_until(&mut Times { lowering: self, region: b }, time, differ);
                    let count = b.binary(BinaryOp::Div, now, values.memo[&every]);
                    let count = b.unary(UnaryOp::Floor, count);
                    b.value(OpKind::Draw(Distribution::Normal, stream, count))
                }
            };
            values.memo.insert(id, value);
        }
        values.memo[&root]
    }

    /// Reads a field of the element itself, of the whole that it is a part of, of the cell that it belongs to, or of the cell that an edge leads to.
    fn read(&self, b: &mut RegionBuilder, space: SpaceId, field: FieldId) -> ValueId {
        let over = self.program.field(field).over;
        let map = match self.program.space(space).kind {
            SpaceKind::Relation { .. } => Map::Target,
            _ if over == self.program.map(space, Map::Of) => Map::Of,
            SpaceKind::Plain | SpaceKind::Product { .. } | SpaceKind::Subset { .. } => Map::In,
        };
        match over {
            Some(over) if over != space => b.gather(field, map),
            Some(_) | None => b.field(field),
        }
    }

    fn function(&mut self, role: Role, draft: Draft) {
        self.program.functions.push(Function { role, steps: 1, stages: draft.stages });
    }

    fn init(&mut self, draft: &mut Draft, population: usize) {
        let (model, space) = (self.model, population_space(population));
        if model.populations[population].kind == Kind::Clock {
            return self.tick(draft, population, |b| b.constant(0.0));
        }
        let mut b = draft.over(space);
        let mut values = Values::new(space, Role::Init);
        let is_carried = self.carried.is_some()
            && (model.populations[population].spike.is_some()
                || model.projections.iter().any(|p| p.to == population || p.from == population));
        let has_values = is_carried
            || model.params.iter().any(|p| p.population == Some(population))
            || model.states_of(population).next().is_some();
        if !has_values && (model.populations[population].kind != Kind::Cells || model.elements_inside(population)) {
            return;
        }
        for (i, param) in model.params.iter().enumerate() {
            if param.population == Some(population) {
                let origin = self.origin(param.span);
                b.set_origin(origin);
                let value = self.lower(&mut b, &mut values, param.value);
                let field = self.param(ParamId(i as u32));
                b.store(field, value);
            }
        }
        for id in model.states_of(population) {
            let origin = self.origin(model.state(id).span);
            b.set_origin(origin);
            let value = self.lower(&mut b, &mut values, model.state(id).init);
            let field = self.state(id);
            b.store(field, value);
        }
        b.set_origin(None);
        if let Some(spike) = model.populations[population].spike.as_ref().filter(|s| s.refractory.is_some()) {
            let field = self.refractory(population, spike.span);
            let begin = b.constant(self.least_left(population));
            b.store(field, begin);
        }
        if self.carried.is_none()
            && let Some(spike) = self.loses_to_reset(population)
        {
            let (zero, field) = (b.constant(0.0), self.spiked(population, spike.span));
            b.store(field, zero);
        }
        for (modulator, m) in (0..).zip(&model.modulators) {
            if m.population == population {
                let (zero, field) = (b.constant(0.0), self.amount(modulator));
                b.store(field, zero);
            }
        }
        if self.carried.is_some() {
            let zero = b.constant(0.0);
            for (projection, p) in (0..).zip(&model.projections).filter(|(_, p)| p.to == population) {
                let field = self.arrived(projection, 0);
                debug_assert!(p.plasticity.is_none());
                b.store(field, zero);
            }
            if let Some(spike) = &model.populations[population].spike {
                let field = self.spiked(population, spike.span);
                b.store(field, zero);
            }
            self.pass_on(&mut b, &mut values, population, |passed| passed.begin);
        }
        draft.push(b);
    }

    /// One region per connection: adds up the currents out of each cell, at the voltages that a stage looks at.
    fn edges(&mut self, draft: &mut Draft, role: Role, stage: u32, slopes: &[Option<NodeId>]) {
        for (i, c) in self.model.connections.iter().enumerate() {
            let space = connection_space(self.model, i);
            let origin = self.origin(c.span);
            let mut b = draft.over(space);
            b.set_origin(origin);
            let [here, there] = [c.here, c.there].map(|end| match stage {
                0 => self.at_terminal(end, c.span),
                stage => self.target(Target::Point(end.v, stage)),
            });
            let here = b.gather(here, Map::Target);
            let there = b.gather(there, Map::Source);
            let dv = b.binary(BinaryOp::Sub, here, there);
            let mut values = Values::new(space, role);
            let roots = [Some(c.current), slopes.get(i).copied().flatten()];
            for id in self.model.graph.reachable(roots.into_iter().flatten()) {
                if self.model.graph.node(id) == Node::Dv {
                    values.memo.insert(id, dv);
                }
            }
            let current = self.lower(&mut b, &mut values, c.current);
            let sum = self.sum(i as u32, stage);
            b.accumulate(sum, Some(Map::Target), current);
            if let Some(slope) = slopes.get(i).copied().flatten() {
                let slope = self.lower(&mut b, &mut values, slope);
                let sum = self.conductance(i as u32);
                b.accumulate(sum, Some(Map::Target), slope);
            }
            draft.push(b);
        }
    }

    /// The new values of the states of a population, in temps.
    fn updates(&mut self, draft: &mut Draft, population: usize, updates: &[Update]) {
        let space = population_space(population);
        let groups = |update: &'_ Update| match update.together {
            true => update.values.len().max(1),
            false => 1,
        };
        for group in updates.iter().flat_map(|update| update.values.chunks(groups(update))) {
            let mut b = draft.over(space);
            let mut values = Values::new(space, Role::Step);
            for &(target, value) in group {
                let (Target::Next(state) | Target::Slope(state, _) | Target::Point(state, _)) = target;
                let origin = self.origin(self.model.state(state).span);
                b.set_origin(origin);
                let value = self.lower(&mut b, &mut values, value);
                let temp = self.target(target);
                b.store(temp, value);
            }
            draft.push(b);
        }
    }

    /// Stores the new states; detects spikes, resets and holds what is refractory.
    fn commit(&mut self, draft: &mut Draft, population: usize) {
        let (model, space) = (self.model, population_space(population));
        let moves = model.states_of(population).next().is_some() || model.populations[population].spike.is_some();
        if !moves && !self.passes(population) {
            return;
        }
        let mut b = draft.over(space);
        let mut after: Vec<(StateId, ValueId)> =
            model.states_of(population).map(|s| (s, b.field(self.next(s)))).collect();
        let spikes = model.populations[population].spike.is_some();
        let late = spikes && model.arrivals.0 == Arrivals::AfterThreshold;
        if !late {
            self.jump(&mut b, space, &mut after);
        }
        let clamps = self.clamps(&mut b, population);
        hold(&mut b, &clamps, &mut after);
        let Some(spike) = &model.populations[population].spike else {
            self.last(&mut b, population, &after);
            for (state, value) in after {
                let field = self.state(state);
                let origin = self.origin(model.state(state).span);
                b.set_origin(origin);
                b.store(field, value);
            }
            return draft.push(b);
        };
        let origin = self.origin(spike.span);
        b.set_origin(origin);
        let mut old = Values::new(space, Role::Step);
        let dt = self.lower(&mut b, &mut old, self.dt);
        // A refractory cell keeps the states that make it spike.
        let mut refractory = None;
        if let Some(duration) = spike.refractory {
            let field = self.refractory(population, spike.span);
            let (left, held) = is_held(&mut b, field);
            for (state, value) in &mut after {
                if spike.held.contains(state) {
                    let field = self.state(*state);
                    let before = b.field(field);
                    *value = b.select(held, before, *value);
                }
            }
            refractory = Some((field, left, held, duration));
        }
        let mut new = self.with_states(&mut b, population, dt, &after);
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
            let free = b.unary(UnaryOp::Not, held);
            spiking = b.binary(BinaryOp::And, spiking, free);
        }
        let counted = spiking;
        let mut sent = None;
        if let Some(carried) = self.carried {
            let mut soft = match spike.condition {
                Condition::Crosses(quantity, level) => {
                    let [before, level_before] = [quantity, level].map(|node| self.lower(&mut b, &mut old, node));
                    let [now, level_now] = [quantity, level].map(|node| self.lower(&mut b, &mut new, node));
                    let below = b.binary(BinaryOp::Lt, before, level_before);
                    let above = self.compared(&mut b, &new, (carried.surrogate, true), BinaryOp::Ge, [now, level_now]);
                    above.map(|above| b.binary(BinaryOp::And, below, above))
                }
                Condition::When(condition) => self.soft(&mut b, &mut new, (carried.surrogate, true), condition),
            };
            if let (Some(soft), Some((_, _, held, _))) = (&mut soft, refractory) {
                let free = b.unary(UnaryOp::Not, held);
                *soft = b.binary(BinaryOp::And, *soft, free);
            }
            let soft = soft.unwrap_or(spiking);
            if !carried.detached {
                spiking = soft;
            }
            sent = Some(soft);
        }
        if late {
            // What is held is not added to, and a cell with a refractory time that spikes is held from now on.
            let lost = refractory.map(|(_, _, held, _)| b.binary(BinaryOp::Or, held, counted));
            let before = after.clone();
            self.jump(&mut b, space, &mut after);
            for ((state, value), (_, before)) in after.iter_mut().zip(before) {
                if let Some(lost) = lost.filter(|_| spike.held.contains(state)) {
                    *value = b.select(lost, before, *value);
                }
            }
            new = self.with_states(&mut b, population, dt, &after);
        }
        let resets: Vec<(StateId, ValueId)> =
            spike.resets.iter().map(|&(s, value)| (s, self.lower(&mut b, &mut new, value))).collect();
        let countdown = refractory.map(|(field, left, _, duration)| {
            let duration = self.lower(&mut b, &mut new, duration);
            let steps = b.binary(BinaryOp::Div, duration, dt);
            let [one, least] = [1.0, self.least_left(population)].map(|x| b.constant(x));
            let less = b.binary(BinaryOp::Sub, left, one);
            let less = b.binary(BinaryOp::Max, less, least);
            (field, b.select(counted, steps, less))
        });
        for (state, value) in &mut after {
            if let Some(&(_, reset)) = resets.iter().find(|r| r.0 == *state) {
                *value = b.select(spiking, reset, *value);
            }
        }
        hold(&mut b, &clamps, &mut after);
        self.last(&mut b, population, &after);
        for (state, value) in after {
            let field = self.state(state);
            b.store(field, value);
        }
        if let Some((field, value)) = countdown {
            b.store(field, value);
        }
        match sent {
            Some(sent) => {
                let [one, none] = [1.0, 0.0].map(|x| b.constant(x));
                let value = b.select(sent, one, none);
                let field = self.spiked(population, spike.span);
                b.store(field, value);
            }
            None => {
                let event = self.spikes(population, spike.span);
                b.effect(OpKind::Emit(event, spiking));
                if self.loses_to_reset(population).is_some() {
                    let [one, none] = [1.0, 0.0].map(|x| b.constant(x));
                    let value = b.select(spiking, one, none);
                    let field = self.spiked(population, spike.span);
                    b.store(field, value);
                }
                if model.told().values().any(|&spiking| spiking == population) {
                    let [one, none] = [1.0, 0.0].map(|x| b.constant(x));
                    let value = b.select(spiking, one, none);
                    let told = self.told(model.cells_of(population), spike.span);
                    b.accumulate(told, Some(Map::Of), value);
                }
            }
        }
        draft.push(b);
    }

    /// A condition whose comparisons are spikes with a surrogate: the same truth, of what spikes where it `is` true. None if it compares nothing.
    fn soft(
        &mut self,
        b: &mut RegionBuilder,
        values: &mut Values,
        (surrogate, is): (Surrogate, bool),
        node: NodeId,
    ) -> Option<ValueId> {
        if let Node::Unary(UnaryOp::Not, x) = self.model.graph.node(node) {
            let x = self.soft(b, values, (surrogate, !is), x)?;
            return Some(b.unary(UnaryOp::Not, x));
        }
        let Node::Binary(op, x, y) = self.model.graph.node(node) else { return None };
        if !matches!(op, BinaryOp::And | BinaryOp::Or) {
            let sides = [x, y].map(|side| self.lower(b, values, side));
            return self.compared(b, values, (surrogate, is), op, sides);
        }
        let [soft_x, soft_y] = [x, y].map(|side| self.soft(b, values, (surrogate, is), side));
        soft_x.or(soft_y)?;
        let x = soft_x.unwrap_or_else(|| self.lower(b, values, x));
        let y = soft_y.unwrap_or_else(|| self.lower(b, values, y));
        Some(b.binary(op, x, y))
    }

    /// A comparison as a spike with a surrogate, or as that there is none; what spikes is the cell where it `is` true. None of what is no order.
    fn compared(
        &mut self,
        b: &mut RegionBuilder,
        values: &Values,
        (surrogate, is): (Surrogate, bool),
        op: BinaryOp,
        [x, y]: [ValueId; 2],
    ) -> Option<ValueId> {
        let (more, less) = if matches!(op, BinaryOp::Gt | BinaryOp::Le) { (x, y) } else { (y, x) };
        let is_strict = match op {
            BinaryOp::Gt | BinaryOp::Lt => true,
            BinaryOp::Ge | BinaryOp::Le => false,
            BinaryOp::Add
            | BinaryOp::Sub
            | BinaryOp::Mul
            | BinaryOp::Div
            | BinaryOp::Pow
            | BinaryOp::Min
            | BinaryOp::Max
            | BinaryOp::Poisson
            | BinaryOp::Eq
            | BinaryOp::Ne
            | BinaryOp::And
            | BinaryOp::Or => return None,
        };
        let over = b.binary(BinaryOp::Sub, more, less);
        let spike = match self.model.surrogate {
            Some(slope) => {
                let beyond = if is_strict == is { over } else { b.unary(UnaryOp::Neg, over) };
                let mut values = Values::new(values.space, values.role);
                for id in self.model.graph.reachable([slope]) {
                    if self.model.graph.node(id) == Node::Beyond {
                        values.memo.insert(id, beyond);
                    }
                }
                let slope = self.lower(b, &mut values, slope);
                b.value(OpKind::SpikeBy(over, slope))
            }
            None => b.value(OpKind::Spike(surrogate, over)),
        };
        Some(if is_strict { spike } else { b.unary(UnaryOp::Not, spike) })
    }

    /// The stretch of a clock whose number this is emits its event; those that are no numbers of stretches are nobody's.
    fn tick(&mut self, draft: &mut Draft, clock: usize, number: impl FnOnce(&mut RegionBuilder) -> ValueId) {
        let p = &self.model.populations[clock];
        let mut b = draft.over(population_space(clock));
        let origin = self.origin(p.span);
        b.set_origin(origin);
        let number = number(&mut b);
        let index = b.value(OpKind::Index);
        let now = b.binary(BinaryOp::Eq, index, number);
        let event = self.spikes(clock, p.span);
        b.effect(OpKind::Emit(event, now));
        draft.push(b);
    }

    /// How many stretches of a clock are over when this step is; -1 inside a stretch.
    fn stretches(b: &mut RegionBuilder) -> ValueId {
        let step = b.value(OpKind::StepIndex);
        let one = b.constant(1.0);
        let done = b.binary(BinaryOp::Add, step, one);
        let stretch = b.constant(f64::from(STRETCH));
        let stretches = b.binary(BinaryOp::Div, done, stretch);
        let whole = b.unary(UnaryOp::Floor, stretches);
        let over = b.binary(BinaryOp::Eq, stretches, whole);
        let none = b.constant(-1.0);
        b.select(over, whole, none)
    }

    /// What edges of a projection carry, and how many steps it takes.
    fn edge_values(&mut self, draft: &mut Draft, projection: usize) {
        let (p, space) = (&self.model.projections[projection], projection_space(self.model, projection));
        let number = projection as u32;
        let mut b = draft.over(space);
        let origin = self.origin(p.span);
        b.set_origin(origin);
        let mut values = Values::new(space, Role::Init);
        if p.plasticity.is_some() {
            self.remember(&mut b, &mut values, projection);
        } else if self.model.method == Method::Adaptive || self.model.graph.differs(p.weight) {
            let weight = self.lower_weight(&mut b, &mut values, p);
            let field = self.of_edges(number, Source::Weight(number), "weight");
            b.store(field, weight);
        }
        if p.graded.is_some() {
            if self.model.graph.differs(p.weight) {
                draft.push(b);
            }
            return;
        }
        let delay = self.lower(&mut b, &mut values, p.delay);
        let field = self.of_edges(number, Source::Delay(number), "delay");
        if self.model.method == Method::Adaptive {
            // In ms: no event waits for the end of a step.
            b.store(field, delay);
            return draft.push(b);
        }
        let dt = self.lower(&mut b, &mut values, self.dt);
        let steps = b.binary(BinaryOp::Div, delay, dt);
        let half = b.constant(0.5);
        let steps = b.binary(BinaryOp::Add, steps, half);
        let steps = b.unary(UnaryOp::Floor, steps);
        let mut found = steps;
        if self.between[projection] {
            // What arrives between two steps is found by the second one.
            let one = b.constant(1.0);
            found = b.binary(BinaryOp::Add, steps, one);
        }
        b.store(field, found);
        self.back(&mut b, &mut values, projection, steps);
        draft.push(b);
    }

    /// What an edge of a projection carries.
    fn lower_weight(&mut self, b: &mut RegionBuilder, values: &mut Values, p: &Projection) -> ValueId {
        let weight = self.lower(b, values, p.weight);
        match p.share {
            Some(share) => {
                let share = self.lower(b, values, share);
                b.binary(BinaryOp::Mul, weight, share)
            }
            None => weight,
        }
    }

    /// A region for each projection: adds up what arrives at each cell.
    fn arrivals(&mut self, draft: &mut Draft, projection: usize) {
        let (p, space) = (&self.model.projections[projection], projection_space(self.model, projection));
        if p.graded.is_some() {
            return;
        }
        let from = &self.model.populations[p.from];
        let span = match &from.spike {
            Some(spike) => spike.span,
            None if from.kind == Kind::Clock => from.span,
            None => return,
        };
        let number = projection as u32;
        let event = self.spikes(p.from, span);
        let delay = self.of_edges(number, Source::Delay(number), "delay");
        let mut b = draft.over(space);
        b.set_guard(Guard { event, along: Some(Map::Source), delay: Some(delay) });
        let origin = self.origin(p.span);
        b.set_origin(origin);
        let weight = match self.model.graph.differs(p.weight) {
            true => {
                let weight = self.of_edges(number, Source::Weight(number), "weight");
                b.field(weight)
            }
            false => self.lower_weight(&mut b, &mut Values::new(space, Role::Step), p),
        };
        let sum = self.arrived(p.arrives, 0);
        b.accumulate(sum, Some(Map::Target), weight);
        draft.push(b);
    }

    /// Does an amount come between two steps?
    fn comes_between(&self, amount: NodeId) -> bool {
        let arrived = |id: &NodeId| match self.model.graph.node(*id) {
            Node::Arrived(projection, _) => self.between[projection as usize],
            _ => false,
        };
        self.between.contains(&true) && self.model.graph.reachable([amount]).iter().any(arrived)
    }

    /// What is added to states of a population between two steps.
    fn jumps_between(&self, population: usize) -> impl Iterator<Item = &'s Jump> {
        let model = self.model;
        let own = model.jumps.iter().filter(move |jump| model.state(jump.state).population == population);
        own.filter(|jump| self.comes_between(jump.amount))
    }

    /// Is it asked between two steps whether a cell was held in the first of them?
    fn looks_back(&self, population: usize) -> bool {
        let model = self.model;
        let is_refractory =
            model.populations[population].spike.as_ref().is_some_and(|spike| spike.refractory.is_some());
        is_refractory && self.jumps_between(population).next().is_some()
    }

    /// How many steps are left to a cell that is not refractory, at the least: one below none where it is asked whether the step before was the last.
    fn least_left(&self, population: usize) -> f64 {
        if self.looks_back(population) { -1.0 } else { 0.0 }
    }

    /// Does the reset of a spike take back what is added to a state between the step of the spike and the next, where no refractory time does?
    fn resets(&self, spike: &Spike, state: StateId) -> bool {
        let sets =
            |&reset: &(StateId, NodeId)| reset.0 == state && self.model.meets_reset(reset, &[state]) == Meets::Sets;
        !self.model.surely_held(spike, state) && spike.resets.iter().any(sets)
    }

    /// The spike rule of a population whose [resets](Self::resets) take back what arrives.
    fn loses_to_reset(&self, population: usize) -> Option<&'s Spike> {
        let model = self.model;
        let spike = model.populations[population].spike.as_ref()?;
        let lost = |jump: &&Jump| self.resets(spike, jump.state);
        model.jumps.iter().filter(lost).any(|jump| self.comes_between(jump.amount)).then_some(spike)
    }

    /// What has arrived between the step before and this one is added to the states that it begins with: not to those that are held, nor to those that
    /// the step before has reset.
    fn between(&mut self, draft: &mut Draft, population: usize) {
        let (model, space) = (self.model, population_space(population));
        let jumps: Vec<&Jump> = self.jumps_between(population).collect();
        if jumps.is_empty() {
            return;
        }
        let mut b = draft.over(space);
        let mut values = Values::new(space, Role::Step);
        let spike = model.populations[population].spike.as_ref();
        let held = spike.filter(|spike| spike.refractory.is_some()).map(|spike| {
            let field = self.refractory(population, spike.span);
            // In the step before, a step more was left.
            let (left, half) = (b.field(field), b.constant(-0.5));
            (&spike.held, b.binary(BinaryOp::Gt, left, half))
        });
        let reset = self.loses_to_reset(population).map(|spike| {
            let field = self.spiked(population, spike.span);
            let (spiked, none) = (b.field(field), b.constant(0.0));
            (spike, b.binary(BinaryOp::Gt, spiked, none))
        });
        let states: Vec<StateId> = model.states_of(population).collect();
        for state in states.into_iter().filter(|state| jumps.iter().any(|jump| jump.state == *state)) {
            let origin = self.origin(model.state(state).span);
            b.set_origin(origin);
            let field = self.state(state);
            let before = b.field(field);
            let mut after = before;
            for jump in jumps.iter().filter(|jump| jump.state == state) {
                let amount = self.lower(&mut b, &mut values, jump.amount);
                after = b.binary(BinaryOp::Add, after, amount);
            }
            let held = held.filter(|(states, _)| states.contains(&state)).map(|(_, held)| held);
            let reset = reset.filter(|(spike, _)| self.resets(spike, state)).map(|(_, spiked)| spiked);
            for lost in held.into_iter().chain(reset) {
                after = b.select(lost, before, after);
            }
            b.store(field, after);
        }
        draft.push(b);
    }

    /// Adds to states what events bring in this step.
    fn jump(&mut self, b: &mut RegionBuilder, space: SpaceId, after: &mut [(StateId, ValueId)]) {
        let model = self.model;
        let mut values = Values::new(space, Role::Step);
        for (state, value) in after {
            for jump in model.jumps.iter().filter(|jump| jump.state == *state) {
                if self.comes_between(jump.amount) {
                    continue;
                }
                let origin = self.origin(model.state(*state).span);
                b.set_origin(origin);
                let amount = self.lower(b, &mut values, jump.amount);
                *value = b.binary(BinaryOp::Add, *value, amount);
            }
        }
    }

    /// The values of the clamps of a population at the end of the step, each with the condition on the cells that it holds.
    fn clamps(&mut self, b: &mut RegionBuilder, population: usize) -> Vec<(StateId, Option<ValueId>, ValueId)> {
        let (model, space) = (self.model, population_space(population));
        let held: Vec<_> = model.states_of(population).filter_map(|s| Some((s, model.state(s).clamp?))).collect();
        if held.is_empty() {
            return Vec::new();
        }
        let dt = self.lower(b, &mut Values::new(space, Role::Step), self.dt);
        let mut new = self.at_the_end(b, space, dt);
        let mut of = |b: &mut RegionBuilder, new: &mut Values, (state, clamp): (StateId, Clamp)| {
            let origin = self.origin(model.state(state).span);
            b.set_origin(origin);
            let cells = clamp.cells.map(|cells| self.lower(b, new, cells));
            (state, cells, self.lower(b, new, clamp.value))
        };
        // What others are held at sees what has become of noise that remembers, which is drawn for the end of the step.
        let (noise, others): (Vec<_>, Vec<_>) = held.into_iter().partition(|(state, _)| model.wanders(*state));
        if !noise.is_empty() && new.time.is_none() {
            let time = b.value(OpKind::Time);
            new.time = Some(b.binary(BinaryOp::Add, time, dt));
        }
        let mut found: Vec<_> = noise.into_iter().map(|held| of(b, &mut new, held)).collect();
        for id in (0..model.graph.len() as u32).map(NodeId) {
            let Node::State(state) = model.graph.node(id) else { continue };
            if let Some((_, _, value)) = found.iter().find(|(noise, ..)| *noise == state) {
                new.memo.insert(id, *value);
            }
        }
        found.extend(others.into_iter().map(|held| of(b, &mut new, held)));
        found
    }

    /// Values at the end of a step, after which the states of a population are these.
    fn with_states(
        &mut self,
        b: &mut RegionBuilder,
        population: usize,
        dt: ValueId,
        states: &[(StateId, ValueId)],
    ) -> Values {
        let (model, space) = (self.model, population_space(population));
        let mut values = self.at_the_end(b, space, dt);
        for id in (0..model.graph.len() as u32).map(NodeId) {
            let Node::State(s) = model.graph.node(id) else { continue };
            if let Some(&(_, value)) = states.iter().find(|a| a.0 == s) {
                values.memo.insert(id, value);
            } else if model.state(s).population != population && model.sees(population, model.state(s).population) {
                let field = self.next(s);
                values.memo.insert(id, self.read(b, space, field));
            }
        }
        values
    }

    /// Values at the end of the step, of which the times are known.
    fn at_the_end(&self, b: &mut RegionBuilder, space: SpaceId, dt: ValueId) -> Values {
        let mut values = Values::new(space, Role::Step);
        for id in (0..self.model.graph.len() as u32).map(NodeId) {
            if let Node::Time | Node::StepTime = self.model.graph.node(id) {
                let time = *values.time.get_or_insert_with(|| {
                    let time = b.value(OpKind::Time);
                    b.binary(BinaryOp::Add, time, dt)
                });
                values.memo.insert(id, time);
            }
        }
        values
    }

    fn observe(&mut self, draft: &mut Draft, population: usize) {
        let (model, space) = (self.model, population_space(population));
        if let Kind::Part { of, .. } = model.populations[population].kind {
            return self.observe_place(draft, population, of);
        }
        let mut b = draft.over(space);
        let mut values = Values::new(space, Role::Observe);
        let mut any = false;
        for (i, r) in model
            .records
            .iter()
            .enumerate()
            .filter(|(_, r)| r.population == population && r.edges.is_none() && r.probe.is_none())
        {
            let source = output(model, i);
            if model.recorded_state(r).is_some() || self.fields.contains_key(&source) {
                continue;
            }
            any = true;
            let origin = self.origin(r.span);
            b.set_origin(origin);
            let value = self.lower(&mut b, &mut values, r.value);
            let field = self.field(source, format!("{}'out", r.name), FieldKind::Output, Some(space), r.span);
            b.store(field, value);
        }
        if any {
            draft.push(b);
        }
    }
}

impl Lowering<'_> {
    /// What is recorded at a place: states of the whole are taken from there, all else is computed there first.
    fn observe_place(&mut self, draft: &mut Draft, place: usize, whole: usize) {
        let model = self.model;
        for (i, r) in model.records.iter().enumerate().filter(|(_, r)| r.population == place) {
            let source = output(model, i);
            if self.fields.contains_key(&source) {
                continue;
            }
            let origin = self.origin(r.span);
            if r.of_place {
                let space = population_space(place);
                let mut b = draft.over(space);
                b.set_origin(origin);
                let value = self.lower(&mut b, &mut Values::new(space, Role::Observe), r.value);
                let out = self.field(source, format!("{}'out", r.name), FieldKind::Output, Some(space), r.span);
                b.store(out, value);
                draft.push(b);
                continue;
            }
            let space = population_space(whole);
            let field = match model.graph.node(r.value) {
                Node::State(s) if model.state(s).population == whole => self.state(s),
                _ => {
                    let mut b = draft.over(space);
                    b.set_origin(origin);
                    let value = self.lower(&mut b, &mut Values::new(space, Role::Observe), r.value);
                    let name = format!("{}'there", r.name);
                    let temp = self.field(Source::Observed(i as u32), name, FieldKind::Temp, Some(space), r.span);
                    b.store(temp, value);
                    draft.push(b);
                    temp
                }
            };
            let space = population_space(place);
            let mut b = draft.over(space);
            b.set_origin(origin);
            let value = b.gather(field, Map::In);
            let out = self.field(source, format!("{}'out", r.name), FieldKind::Output, Some(space), r.span);
            b.store(out, value);
            draft.push(b);
        }
    }
}

/// How many steps a cell is refractory still, and whether it is held in this one. In single precision, too, such numbers count down exactly.
fn is_held(b: &mut RegionBuilder, refractory: FieldId) -> (ValueId, ValueId) {
    let (left, half) = (b.field(refractory), b.constant(0.5));
    (left, b.binary(BinaryOp::Gt, left, half))
}

/// Puts what clamps hold in place of what states have become.
fn hold(b: &mut RegionBuilder, clamps: &[(StateId, Option<ValueId>, ValueId)], values: &mut [(StateId, ValueId)]) {
    for &(state, cells, held) in clamps {
        if let Some((_, value)) = values.iter_mut().find(|(s, _)| *s == state) {
            *value = cells.map_or(held, |cells| b.select(cells, held, *value));
        }
    }
}

/// The largest whole exponent that means repeated multiplication.
const MOST_FACTORS: f64 = 32.0;

/// Formulas of times in a region.
struct Times<'a, 's> {
    lowering: &'a mut Lowering<'s>,
    region: &'a mut RegionBuilder,
}

impl instant::Formulas for Times<'_, '_> {
    type Value = ValueId;

    fn number(&mut self, x: f64, _: Dim) -> ValueId {
        self.region.constant(x)
    }

    fn length(&mut self) -> ValueId {
        let dt = dt_param(self.lowering.model);
        let length = self.lowering.param(dt);
        self.region.field(length)
    }

    fn binary(&mut self, op: BinaryOp, a: ValueId, b: ValueId) -> ValueId {
        self.region.binary(op, a, b)
    }
}

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

/// What stands for a recorded quantity that is not a state: the first record of the same value of the same cells.
pub fn output(model: &Model, record: usize) -> Source {
    let same = |r: &Record| (r.population, r.value) == (model.records[record].population, model.records[record].value);
    Source::Output(model.records.iter().position(same).unwrap_or(record) as u32)
}
