//! Plans one kernel: what of a pass concerns a space, sorted into the loops of its nest.
//!
//! In comes a [`Part`] of a function; out goes its [`KernelPlan`]: every value a number or lanes, named, computed in the outermost
//! loop that can, and dropped if nothing uses it.
//! Never true here: that the order of stores in the text matters; registers change at the end of a step.

use super::kernel::*;
use super::{Connected, Home, Precision, Surroundings, order};
use crate::step::{
    BinaryOp, FieldId, FieldKind, Map, Op, OpKind, OriginId, Phase, Program, Region, Role, SpaceId, Type, UnaryOp,
    ValueId,
};
use rustc_hash::FxHashMap as HashMap;
use std::collections::{BTreeMap, BTreeSet};

/// What of a pass of a function concerns a space: its own regions, those over nothing, and those of the edges that lead to it.
pub struct Part<'a> {
    role: Role,
    pass: u32,
    nest: Nest,
    space: SpaceId,
    steps: u32,
    regions: Vec<&'a Region>,
    /// Regions of edges, with the entry of the space's edge table.
    edges: Vec<(u32, &'a Region)>,
    /// The equations that it solves, if it does nothing else.
    solves: Option<Equations>,
}

impl<'a> Part<'a> {
    /// None if the pass does nothing there.
    pub fn new(all: Surroundings<'a>, role: Role, pass: u32, space: SpaceId, edges: &[u32]) -> Option<Part<'a>> {
        let function = all.program.function(role)?;
        let stages = function.stages.iter().enumerate().filter_map(|(at, stage)| Some((at, stage.region()?)));
        // What runs once, or over nothing, is computed wherever it is used.
        let everywhere = |region: &Region| region.phase() != Phase::Body;
        let in_pass = |at: usize| all.passes.of(role, at) == pass;
        let of_space = |region: &Region| region.over.is_none_or(|over| over == space);
        let of_edge = |(at, region): (usize, &'a Region)| {
            let leads = |&number: &u32| region.over == Some(all.relations[number as usize].space);
            // What edges begin with is computed for each of them before a run.
            let entry = edges.iter().position(leads).filter(|_| in_pass(at) && role != Role::Init)?;
            Some((entry as u32, region))
        };
        let edges: Vec<(u32, &Region)> = stages.clone().filter_map(of_edge).collect();
        let regions: Vec<&Region> = stages
            .filter(|(at, region)| of_space(region) && (everywhere(region) || in_pass(*at)))
            .map(|(_, region)| region)
            .collect();
        let trees = all.passes.trees(space);
        let solves = trees.filter(|_| role == Role::Step).and_then(|trees| trees.equations(space, pass));
        let works = !edges.is_empty()
            || solves.is_some()
            || regions.iter().any(|region| region.over.is_some() && (pass == 0 || !everywhere(region)));
        let nest = match role {
            Role::Step if !all.passes.group(space).is_alone() => Nest::Pass,
            Role::Step if !edges.is_empty() => Nest::Steps,
            Role::Init | Role::Step | Role::Observe => Nest::Blocks,
        };
        let regions = if solves.is_some() { Vec::new() } else { regions };
        works.then_some(Part { role, pass, nest, space, steps: function.steps, regions, edges, solves })
    }

    /// All operations, in the order of the function.
    fn ops(&self) -> impl Iterator<Item = &'a crate::step::Op> {
        let early = self.regions.iter().filter(|region| region.phase() != Phase::Body);
        let bodies = self.regions.iter().filter(|region| region.phase() == Phase::Body);
        early.chain(self.edges.iter().map(|(_, region)| region)).chain(bodies).flat_map(|region| &region.ops)
    }
}

/// What is known of a field while a phase is walked through.
#[derive(Debug, Clone, Copy, Default)]
struct Touch {
    register: Option<u32>,
    /// The value stored last.
    now: Option<Operand>,
}

pub struct Builder<'a> {
    program: &'a Program,
    homes: &'a [Home],
    all: Surroundings<'a>,
    /// The edge table of the space.
    edges: &'a [u32],
    part: &'a Part<'a>,
    plan: KernelPlan,
    values: HashMap<ValueId, Operand>,
    /// Numbers of `call` as lanes compute them.
    alike: HashMap<u32, Operand>,
    /// Are numbers as precise as lanes, or is that of no account?
    one_precision: bool,
    hints: HashMap<ValueId, String>,
    taken: BTreeSet<String>,
    touched: BTreeMap<FieldId, Touch>,
    /// Numbers that exist already: uniform fields, time, step.
    numbers: Vec<(Expr, Operand)>,
    /// While a region of edges is planned: the space of their sources.
    from: Option<SpaceId>,
}

impl<'a> Builder<'a> {
    pub fn new(all: Surroundings<'a>, edges: &'a [u32], part: &'a Part<'a>, precision: Precision) -> Builder<'a> {
        let most = part.ops().count();
        let numbered = NUMBERED.iter().flat_map(|word| (0..most).map(move |number| format!("{word}{number}")));
        let taken = RESERVED.iter().chain(CALLED).map(|word| word.to_string()).chain(numbered).collect();
        let plan = KernelPlan {
            role: part.role,
            pass: part.pass,
            nest: part.nest,
            window: part.steps,
            locals: Vec::new(),
            call: Vec::new(),
            time: Vec::new(),
            spread: Vec::new(),
            row: Vec::new(),
            registers: Vec::new(),
            cell: Vec::new(),
            edges: Vec::new(),
            connected: None,
            held: Vec::new(),
            means: Vec::new(),
            sums: Vec::new(),
            body: Vec::new(),
            stores: Vec::new(),
            updates: Vec::new(),
            adds: Vec::new(),
            solves: part.solves,
            pressure: 0,
        };
        Builder {
            program: all.program,
            homes: all.homes,
            all,
            edges,
            part,
            plan,
            values: HashMap::default(),
            alike: HashMap::default(),
            one_precision: precision == Precision::F64 || part.role == Role::Init,
            hints: HashMap::default(),
            taken,
            touched: BTreeMap::new(),
            numbers: Vec::new(),
            from: None,
        }
    }

    pub fn build(mut self) -> KernelPlan {
        self.name_registers();
        for phase in [Phase::Call, Phase::Time, Phase::Cell] {
            self.phase(phase);
        }
        self.edge_regions();
        self.phase(Phase::Body);
        for (field, touch) in std::mem::take(&mut self.touched) {
            match (touch.now, touch.register) {
                (Some(value), Some(register)) => self.plan.updates.push((register, value)),
                (Some(value), None) if self.homes[field.0 as usize] != Home::Register => {
                    self.plan.stores.push((field, value));
                }
                (Some(_), None) | (None, _) => {}
            }
        }
        self.keep_updates_apart();
        for &(register, _) in &self.plan.updates {
            self.plan.registers[register as usize].changes = true;
        }
        prune(&mut self.plan);
        order::order(&mut self.plan);
        if self.plan.nest == Nest::Steps {
            // What others read next must be written in every step, changed or not.
            let shared = &self.all.shared[self.part.space.0 as usize];
            let read = |field: FieldId| shared.iter().any(|shared| shared.field == field);
            let registers = self.plan.registers.iter_mut().filter(|register| read(register.field));
            registers.for_each(|register| register.used = true);
        }
        self.columns();
        self.plan.held = held(&self.plan);
        self.means();
        if !self.plan.edges.is_empty() {
            let shared = &self.all.shared[self.part.space.0 as usize];
            self.plan.connected = Some(Connected::new(&self.plan, shared, self.homes));
        }
        self.plan.pressure = pressure(&self.plan);
        self.plan
    }

    /// Gives every field that is read before it is stored its register, before other values take its name, and finds out
    /// which values are stored where.
    fn name_registers(&mut self) {
        let mut written = BTreeSet::new();
        for op in self.part.ops() {
            if let OpKind::Accumulate(field, ..) = op.kind {
                written.insert(field);
            }
            let loads = match op.kind {
                OpKind::Gather(_, Map::In | Map::Of | Map::Parent) => None,
                OpKind::Field(field) | OpKind::Gather(field, Map::Target) => Some(field),
                // Of each other cells read what they have in registers.
                OpKind::Gather(field, _) if self.plan.nest == Nest::Steps => Some(field),
                _ => None,
            };
            if let Some(field) = loads
                && !self.is_uniform(field)
                && self.homes[field.0 as usize] != Home::Edges
                && !written.contains(&field)
                && !self.touched.contains_key(&field)
            {
                assert!(
                    self.homes[field.0 as usize] != Home::Register,
                    "the verifier checks that temps are stored before they are read"
                );
                let name = self.short_name(field);
                let name = self.fresh(&name);
                self.plan.registers.push(Register { field, name, used: true, changes: false });
                let register = Some(self.plan.registers.len() as u32 - 1);
                self.touched.insert(field, Touch { register, now: None });
            }
            if let OpKind::Store(field, value) = op.kind {
                written.insert(field);
                let suffix = if self.touched.contains_key(&field) { "_next" } else { "" };
                let hint = format!("{}{suffix}", self.short_name(field));
                self.hints.entry(value).or_insert(hint);
            }
        }
    }

    fn is_uniform(&self, field: FieldId) -> bool {
        self.program.field(field).kind == FieldKind::Uniform
    }

    fn phase(&mut self, phase: Phase) {
        let part = self.part;
        for op in part.regions.iter().filter(|region| region.phase() == phase).flat_map(|region| &region.ops) {
            let value = self.op(phase, op);
            if let (Some(result), Some(value)) = (op.result, value) {
                self.values.insert(result, value);
            }
        }
    }

    fn edge_regions(&mut self) {
        let part = self.part;
        for &(edges, region) in &part.edges {
            for op in &region.ops {
                if let OpKind::Accumulate(field, ..) = op.kind {
                    self.sum(field);
                }
            }
            self.from = Some(self.all.relations[self.edges[edges as usize] as usize].from);
            self.plan.edges.push(EdgePlan { edges, body: Vec::new(), adds: Vec::new() });
            for op in &region.ops {
                let value = self.op(Phase::Body, op);
                if let (Some(result), Some(value)) = (op.result, value) {
                    self.values.insert(result, value);
                }
            }
        }
        self.from = None;
        // What arrives is there before anything is computed of it.
        for edges in &mut self.plan.edges {
            edges.body.sort_by_key(|stmt| !matches!(stmt.expr, Expr::There(_)));
        }
    }

    /// Makes the local that a temp field adds up in.
    fn sum(&mut self, field: FieldId) {
        if self.touched.get(&field).is_none_or(|touch| touch.now.is_none()) {
            let local = self.plan.locals.len() as u32;
            let name = self.short_name(field);
            let name = self.fresh(&name);
            self.plan.locals.push(Local { name, ty: Type::Real });
            self.plan.sums.push(local);
            self.touched.entry(field).or_default().now = Some(Operand::Lanes(local));
        }
    }

    fn operand(&self, value: ValueId) -> Operand {
        *self.values.get(&value).expect("the verifier checks that values are defined before they are used")
    }

    /// Plans one operation; the answer is what stands for its result.
    fn op(&mut self, phase: Phase, op: &Op) -> Option<Operand> {
        let Op { result, origin, .. } = *op;
        let at = |v: ValueId| self.operand(v);
        let expr = match op.kind {
            OpKind::Const(x) => return Some(Operand::Real(x)),
            OpKind::Bool(b) => return Some(Operand::Bool(b)),
            OpKind::Field(f) if self.homes[f.0 as usize] == Home::Edges => {
                let number = self.numbers_there().iter().position(|field| *field == f);
                Expr::OfEdge(number.expect("all fields of edges that steps read are listed") as u32)
            }
            OpKind::Field(f) => return Some(self.read(f, origin)),
            OpKind::Time => return Some(self.number(self.time(), "t", origin)),
            OpKind::StepIndex => return Some(self.number(Expr::StepIndex, "step_index", origin)),
            OpKind::Store(f, value) => {
                let value = at(value);
                self.touched.entry(f).or_default().now = Some(value);
                return None;
            }
            OpKind::Emit(f, mask) => {
                let Home::Event(_, event) = self.homes[f.0 as usize] else {
                    panic!("the verifier checks that emit names an event field")
                };
                let stmt = Stmt { local: None, expr: Expr::Emit(event, at(mask)), origin };
                self.plan.body.push(stmt);
                return None;
            }
            OpKind::Accumulate(f, Some(map @ (Map::In | Map::Of | Map::Parent)), value) => {
                let (tie, sum) = self.along(f, map);
                self.plan.adds.push(Add { tie, sum, value: at(value) });
                return None;
            }
            OpKind::Accumulate(f, _, value) => {
                let value = at(value);
                let Some(Operand::Lanes(sum)) = self.touched[&f].now else { panic!("a sum has a local") };
                self.plan.edges.last_mut().expect("the region has begun").adds.push((sum, value));
                return None;
            }
            OpKind::Gather(f, Map::Target) => return Some(self.read(f, origin)),
            OpKind::Gather(f, map @ (Map::In | Map::Of | Map::Parent)) => {
                let (tie, field) = self.along(f, map);
                Expr::Along(tie, field)
            }
            OpKind::Gather(f, _) => {
                let from = self.from.expect("`refuse` lets only edges read what others have");
                let entry = self.all.shared[from.0 as usize].iter().position(|shared| shared.field == f);
                Expr::There(entry.expect("all fields that are read there are listed") as u32)
            }
            OpKind::Back(..) => panic!("`refuse` refuses what looks back"),
            OpKind::Spike(_, a) | OpKind::SpikeBy(a, _) => Expr::Binary(BinaryOp::Gt, at(a), Operand::Real(0.0)),
            OpKind::Index => Expr::Index,
            OpKind::Unary(op, a) => match (op, at(a)) {
                (UnaryOp::Narrow, Operand::Real(x)) => return Some(Operand::Single(x as f32)),
                (op, a) => Expr::Unary(op, a),
            },
            OpKind::Approximate(function, tolerance, a) => Expr::Approximate(function, tolerance, at(a)),
            OpKind::Binary(op, a, b) => Expr::Binary(op, at(a), at(b)),
            OpKind::Fma(a, b, c) => Expr::Fma(at(a), at(b), at(c)),
            OpKind::Select(c, a, b) => Expr::Select(at(c), at(a), at(b)),
            OpKind::Draw(distribution, stream, counter) => Expr::Draw(distribution, stream, at(counter)),
            OpKind::Sample(f, t) => {
                let Home::Series(series) = self.homes[f.0 as usize] else {
                    panic!("the verifier checks that sample names a series")
                };
                Expr::Sample(series, at(t))
            }
        };
        let result = result.expect("an operation without effect has a result");
        let hint = self.hints.get(&result).cloned().unwrap_or_else(|| format!("x{}", result.0));
        let operand = self.compute(phase, expr, &hint, origin);
        if let (Operand::Call(number), true) = (operand, op.exact && !self.one_precision) {
            self.also_as_lanes(number, expr, &hint, origin);
        }
        Some(operand)
    }

    /// The fields that the edges have whose region is planned.
    fn numbers_there(&self) -> &'a [FieldId] {
        let edges = self.plan.edges.last().map(|edges| self.edges[edges.edges as usize]);
        edges.map_or(&[], |number| &self.all.relations[number as usize].numbers.fields)
    }

    /// The numbers of a map of the space, and of a field that it reaches.
    fn along(&self, field: FieldId, map: Map) -> (u32, u32) {
        let space = self.part.space;
        let trees = self.all.passes.trees(space).expect("`refuse` lets only branched cells have such maps");
        (trees.tie(space, map), trees.flat(field).expect("all fields that maps reach are listed"))
    }

    /// Computes a number of `call` once more, in the precision of lanes.
    fn also_as_lanes(&mut self, number: u32, expr: Expr, hint: &str, origin: Option<OriginId>) {
        let expr = expr.map_operands(|operand| self.alike(operand));
        let lanes = self.local(&expr, hint);
        self.plan.cell.push(Stmt { local: Some(lanes), expr, origin });
        self.alike.insert(number, Operand::Lanes(lanes));
    }

    /// What lanes use in place of an operand.
    fn alike(&self, operand: Operand) -> Operand {
        match operand {
            Operand::Call(number) => self.alike.get(&number).copied().unwrap_or(operand),
            Operand::Real(_)
            | Operand::Single(_)
            | Operand::Bool(_)
            | Operand::Time(_)
            | Operand::Lanes(_)
            | Operand::Register(_) => operand,
        }
    }

    /// A new local for what an expression gives.
    fn local(&mut self, expr: &Expr, hint: &str) -> u32 {
        let ty = self.type_of_expr(expr);
        let name = self.fresh(hint);
        self.plan.locals.push(Local { name, ty });
        self.plan.locals.len() as u32 - 1
    }

    fn time(&self) -> Expr {
        let dt = self.program.find_field("dt").expect("the verifier checks that time needs a uniform named dt");
        let Home::Uniform(index) = self.homes[dt.0 as usize] else { panic!("the verifier checks that dt is uniform") };
        Expr::Time(index)
    }

    /// A number that may exist already.
    fn number(&mut self, expr: Expr, hint: &str, origin: Option<OriginId>) -> Operand {
        if let Some(&(_, operand)) = self.numbers.iter().find(|(e, _)| *e == expr) {
            return operand;
        }
        let operand = self.compute(Phase::Call, expr, hint, origin);
        self.numbers.push((expr, operand));
        operand
    }

    /// Appends an operation where its operands allow and its region asks.
    fn compute(&mut self, phase: Phase, expr: Expr, hint: &str, origin: Option<OriginId>) -> Operand {
        let local = self.local(&expr, hint);
        let stmt = Stmt { local: Some(local), expr, origin };
        let of_cells = match expr {
            Expr::Index | Expr::There(_) | Expr::OfEdge(_) | Expr::Along(..) | Expr::Draw(..) => true,
            Expr::Uniform(_)
            | Expr::Time(_)
            | Expr::StepIndex
            | Expr::Copy(_)
            | Expr::Unary(..)
            | Expr::Approximate(..)
            | Expr::Binary(..)
            | Expr::Fma(..)
            | Expr::Select(..)
            | Expr::Sample(..)
            | Expr::Emit(..) => !expr.operands().iter().all(|o| o.is_number()),
        };
        let reads_time = || expr.operands().iter().any(|operand| matches!(operand, Operand::Time(_)));
        if of_cells {
            // A counter is exact, whatever the precision.
            let as_numbers = matches!(expr, Expr::Draw(..)) || reads_time();
            let expr = match expr {
                // So is the mean of a distribution, which then is the same for all cells.
                Expr::Binary(BinaryOp::Poisson, u, mean) => Expr::Binary(BinaryOp::Poisson, self.alike(u), mean),
                expr if as_numbers => expr,
                expr => expr.map_operands(|operand| self.alike(operand)),
            };
            let stmt = Stmt { expr, ..stmt };
            match phase {
                Phase::Cell => self.plan.cell.push(stmt),
                Phase::Body if self.from.is_some() => {
                    self.plan.edges.last_mut().expect("the region has begun").body.push(stmt);
                }
                Phase::Body => self.plan.body.push(stmt),
                Phase::Call | Phase::Time => {
                    panic!("the verifier checks that values of cells stay out of uniform regions")
                }
            }
            return Operand::Lanes(local);
        }
        if matches!(expr, Expr::Time(_) | Expr::StepIndex) || reads_time() {
            self.plan.time.push(stmt);
            Operand::Time(local)
        } else {
            self.plan.call.push(stmt);
            Operand::Call(local)
        }
    }

    fn read(&mut self, field: FieldId, origin: Option<OriginId>) -> Operand {
        if let Home::Uniform(index) = self.homes[field.0 as usize] {
            let hint = self.short_name(field);
            return self.number(Expr::Uniform(index), &hint, origin);
        }
        let touch = self.touched[&field];
        touch.now.or(touch.register.map(Operand::Register)).expect("every field that is read has a value or a register")
    }

    /// Copies registers that another register is to become, so that updates can be done in any order.
    fn keep_updates_apart(&mut self) {
        let changing: BTreeSet<u32> = self.plan.updates.iter().map(|(register, _)| *register).collect();
        for at in 0..self.plan.updates.len() {
            let (register, value) = self.plan.updates[at];
            if let Operand::Register(other) = value
                && other != register
                && changing.contains(&other)
            {
                let hint = format!("{}_next", self.plan.registers[register as usize].name);
                self.plan.updates[at].1 = self.compute(Phase::Body, Expr::Copy(value), &hint, None);
            }
        }
        self.plan.updates.retain(|&(register, value)| value != Operand::Register(register));
    }

    /// Lists the numbers that lanes use.
    fn columns(&mut self) {
        let plan = &self.plan;
        let mut used: BTreeSet<(bool, u32, Usage)> = BTreeSet::new();
        let mut note = |operand: Operand, usage: Usage| match operand {
            Operand::Call(local) => {
                used.insert((false, local, usage));
            }
            Operand::Time(local) => {
                used.insert((true, local, usage));
            }
            Operand::Real(_) | Operand::Single(_) | Operand::Bool(_) | Operand::Lanes(_) | Operand::Register(_) => {}
        };
        for stmt in plan.cell.iter().chain(plan.edges.iter().flat_map(|edges| &edges.body)).chain(&plan.body) {
            let usage = if matches!(stmt.expr, Expr::Draw(..)) { Usage::Counter } else { Usage::Spread };
            stmt.expr.operands().into_iter().for_each(|operand| note(operand, usage));
        }
        let adds = plan.edges.iter().flat_map(|edges| &edges.adds).map(|(_, value)| *value);
        let adds = adds.chain(plan.adds.iter().map(|add| add.value));
        let stores = adds.chain(plan.stores.iter().map(|(_, value)| *value));
        stores.chain(plan.updates.iter().map(|(_, value)| *value)).for_each(|value| note(value, Usage::Spread));
        for (of_time, local, usage) in used {
            let own = self.plan.locals[local as usize].name.clone();
            let name = match usage {
                Usage::Spread => own,
                Usage::Counter => self.fresh(&format!("{own}_counter")),
            };
            let column = Column { name, local, usage };
            if of_time { self.plan.row.push(column) } else { self.plan.spread.push(column) }
        }
    }

    /// Lists the distributions that all cells share. One that changes in time is added up for every step, which pays where all cells
    /// make the step before the next one.
    fn means(&mut self) {
        let every_step = self.plan.nest == Nest::Pass;
        let mut found: BTreeMap<u32, bool> = BTreeMap::new();
        for stmt in self.plan.lanes() {
            if let Expr::Binary(BinaryOp::Poisson, _, mean) = stmt.expr {
                match mean {
                    Operand::Call(local) => found.insert(local, true),
                    Operand::Time(local) if every_step => found.insert(local, true),
                    Operand::Time(_)
                    | Operand::Real(_)
                    | Operand::Single(_)
                    | Operand::Bool(_)
                    | Operand::Lanes(_)
                    | Operand::Register(_) => None,
                };
            }
        }
        let stored = self.plan.stores.iter().map(|(_, value)| *value);
        let results = stored.chain(self.plan.updates.iter().map(|(_, value)| *value));
        let added = self.plan.edges.iter().flat_map(|edges| &edges.adds).map(|(_, value)| *value);
        let added = added.chain(self.plan.adds.iter().map(|add| add.value));
        let of_lanes = self.plan.lanes().flat_map(|stmt| match stmt.expr {
            Expr::Binary(BinaryOp::Poisson, u, _) => vec![u],
            // Counters are columns of their own.
            Expr::Draw(..) => vec![],
            expr => expr.operands(),
        });
        for operand in of_lanes.chain(results).chain(added) {
            if let Operand::Call(local) | Operand::Time(local) = operand
                && let Some(only) = found.get_mut(&local)
            {
                *only = false;
            }
        }
        for (local, only) in found {
            let name = self.fresh(&format!("{}_distribution", self.plan.locals[local as usize].name));
            self.plan.means.push(Mean { name, local, only });
        }
    }

    fn type_of(&self, operand: Operand) -> Type {
        match operand {
            Operand::Real(_) | Operand::Register(_) => Type::Real,
            Operand::Single(_) => Type::Single,
            Operand::Bool(_) => Type::Mask,
            Operand::Call(local) | Operand::Time(local) | Operand::Lanes(local) => self.plan.locals[local as usize].ty,
        }
    }

    fn type_of_expr(&self, expr: &Expr) -> Type {
        match *expr {
            Expr::Uniform(_)
            | Expr::Time(_)
            | Expr::StepIndex
            | Expr::Index
            | Expr::There(_)
            | Expr::OfEdge(_)
            | Expr::Along(..)
            | Expr::Approximate(..)
            | Expr::Select(..)
            | Expr::Draw(..)
            | Expr::Sample(..) => Type::Real,
            Expr::Copy(a) | Expr::Fma(a, ..) => self.type_of(a),
            // Arithmetic of singles gives singles.
            Expr::Unary(op, a) if op.types() == (Type::Real, Type::Real) => self.type_of(a),
            Expr::Unary(op, _) => op.types().1,
            Expr::Binary(op, a, _) if op.types() == (Type::Real, Type::Real) => self.type_of(a),
            Expr::Binary(op, ..) => op.types().1,
            Expr::Emit(..) => Type::Mask,
        }
    }

    /// A field's name without its space, as an identifier.
    fn short_name(&self, field: FieldId) -> String {
        let name = &self.program.field(field).name;
        let space = &self.program.space(self.part.space).name;
        let own = name.strip_prefix(space.as_str()).and_then(|rest| rest.strip_prefix(['.', '\'']));
        identifier(own.unwrap_or(name))
    }

    /// A name that nothing else in the kernel has.
    fn fresh(&mut self, hint: &str) -> String {
        let hint = &hint[..hint.len().min(NAME_WIDTH - 4)];
        let numbered = (2..).map(|n| format!("{hint}_{n}"));
        let name = std::iter::once(hint.to_string()).chain(numbered).find(|name| !self.taken.contains(name));
        let name = name.expect("there are more numbers than names");
        self.taken.insert(name.clone());
        name
    }
}

/// A name as a lower-case ASCII identifier.
pub fn identifier(name: &str) -> String {
    let letter = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '_' };
    let mut name: String = name.chars().map(letter).collect();
    if name.starts_with(|c: char| !c.is_ascii_lowercase()) {
        name.insert_str(0, "n_");
    }
    name
}

/// Words that name no value: those of the target languages, and those that the surroundings of an emitted loop use.
const RESERVED: &[&str] = &[
    "abstract", "all", "arrived", "as", "async", "at", "await", "auto", "become", "block", "blocks", "bool", "box",
    "break", "call", "case", "cell", "cells", "char", "const", "continue", "crate", "data", "default", "do", "double",
    "dyn", "edge", "edges", "else", "enum", "extern", "f32", "f64", "false", "final", "first", "flat", "float", "fn",
    "for", "gen", "goto", "if", "impl", "in", "init", "int", "let", "links", "long", "loop", "macro", "map", "match",
    "math", "mod", "move", "mut", "next", "now", "observe", "order", "output", "override", "own", "priv", "pub", "ref",
    "return", "row", "rows", "self", "series", "share", "short", "signed", "sizeof", "some", "spikes", "state",
    "static", "step", "steps", "struct", "super", "sums", "switch", "temp", "ties", "trait", "true", "try", "type",
    "typeof", "uniforms", "union", "unsafe", "unsigned", "unsized", "use", "virtual", "void", "volatile", "where",
    "while", "width", "window", "yield",
];

/// Functions that generated code calls by their names alone.
const CALLED: &[&str] = &["all_lanes", "ask_for"];

/// Words that generated code uses with a number behind, one at most for each operation.
const NUMBERED: &[&str] = &["arriving", "draw", "from", "held", "width"];

/// Draws that several steps may share: lanes live as long as the loop over steps where blocks are outermost.
fn held(plan: &KernelPlan) -> Vec<u32> {
    let every_step =
        |counter: u32| plan.time.iter().any(|time| time.local == Some(counter) && time.expr == Expr::StepIndex);
    let shared = |stmt: &&Stmt| match stmt.expr {
        Expr::Draw(_, _, Operand::Time(counter)) => plan.edges.is_empty() && !every_step(counter),
        _ => false,
    };
    plan.body.iter().filter(shared).filter_map(|stmt| stmt.local).collect()
}

/// Drops operations that nothing uses.
fn prune(plan: &mut KernelPlan) {
    let mut used: BTreeSet<u32> = BTreeSet::new();
    let note = |operand: Operand, used: &mut BTreeSet<u32>| {
        if let Operand::Call(local) | Operand::Time(local) | Operand::Lanes(local) = operand {
            used.insert(local);
        }
    };
    plan.stores.iter().for_each(|(_, value)| note(*value, &mut used));
    plan.updates.iter().for_each(|(_, value)| note(*value, &mut used));
    plan.edges.iter().flat_map(|edges| &edges.adds).for_each(|(_, value)| note(*value, &mut used));
    plan.adds.iter().for_each(|add| note(add.value, &mut used));
    let of_edges = plan.edges.iter_mut().map(|edges| &mut edges.body);
    for stmts in [&mut plan.body].into_iter().chain(of_edges).chain([&mut plan.cell, &mut plan.time, &mut plan.call]) {
        let mut kept = Vec::new();
        for stmt in stmts.drain(..).rev() {
            if stmt.local.is_none_or(|local| used.contains(&local)) {
                stmt.expr.operands().into_iter().for_each(|operand| note(operand, &mut used));
                kept.push(stmt);
            }
        }
        kept.reverse();
        *stmts = kept;
    }
    let mut read: BTreeSet<u32> = plan.updates.iter().map(|(register, _)| *register).collect();
    let of_edges = plan.edges.iter().flat_map(|edges| &edges.body);
    let stmts = plan.cell.iter().chain(of_edges).chain(&plan.body).flat_map(|stmt| stmt.expr.operands());
    let adds = plan.edges.iter().flat_map(|edges| &edges.adds).map(|(_, value)| *value);
    let adds = adds.chain(plan.adds.iter().map(|add| add.value));
    let stores = adds.chain(plan.stores.iter().map(|(_, value)| *value));
    for operand in stmts.chain(stores).chain(plan.updates.iter().map(|(_, value)| *value)) {
        if let Operand::Register(register) = operand {
            read.insert(register);
        }
    }
    for (index, register) in plan.registers.iter_mut().enumerate() {
        register.used = read.contains(&(index as u32));
    }
}

/// The most lane values of edges and body that are live at once: registers that change, until they are read last, and values of the
/// body. What only `cell` computes or loads is not counted: it can stay in memory at no cost.
pub fn pressure(plan: &KernelPlan) -> u32 {
    let stmts: Vec<&Stmt> = plan.edges.iter().flat_map(|edges| &edges.body).chain(&plan.body).collect();
    let end = stmts.len();
    // For registers and for locals of the body: first and last position where they must be kept.
    let mut registers: BTreeMap<u32, usize> = BTreeMap::new();
    let mut locals: BTreeMap<u32, (usize, usize)> = BTreeMap::new();
    locals.extend(plan.sums.iter().map(|&sum| (sum, (0, 0))));
    for (at, stmt) in stmts.into_iter().enumerate() {
        for operand in stmt.expr.operands() {
            match operand {
                Operand::Register(r) if plan.registers[r as usize].changes => {
                    registers.insert(r, at);
                }
                Operand::Lanes(local) => {
                    if let Some((_, last)) = locals.get_mut(&local) {
                        *last = at;
                    }
                }
                Operand::Register(_)
                | Operand::Real(_)
                | Operand::Single(_)
                | Operand::Bool(_)
                | Operand::Call(_)
                | Operand::Time(_) => {}
            }
        }
        if let Some(local) = stmt.local {
            locals.insert(local, (at, at));
        }
    }
    let updates = plan.updates.iter().map(|(_, value)| value);
    for value in updates.chain(plan.adds.iter().map(|add| &add.value)) {
        if let Operand::Lanes(local) = value
            && let Some((_, last)) = locals.get_mut(local)
        {
            *last = end;
        }
    }
    // At how many positions more values begin to be live than end.
    let mut change = vec![0_i64; end + 1];
    for (first, last) in locals.into_values().chain(registers.into_values().map(|last| (0, last))) {
        change[first] += 1;
        change[last] -= 1;
    }
    let mut live = 0;
    let counts = change[..end].iter().map(|change| {
        live += change;
        live
    });
    counts.max().unwrap_or(0) as u32
}
