//! Relations that events go along.
//!
//! In comes a program; out go its [`Delivery`]s: for each relation that events reach cells along, after a delay, where they add what, or what they
//! make of what edges remember.
//! Never true here: how long an event takes changes in a run.

use super::refuse::refuse;
use super::remember::{OfEdges, Remembers};
use super::{EdgeNumbers, SpacePlan, Unplanned};
use crate::runtime::remember::{BACK, When};
use crate::step::{
    Field, FieldId, FieldKind, Guard, Map, Op, OpClass, OpKind, Program, Rate, Region, Role, SpaceId, SpaceKind, Stage,
    ValueId,
};
use rustc_hash::FxHashMap as HashMap;
use std::collections::BTreeSet;

/// A relation that events go along.
#[derive(Debug, Clone, PartialEq)]
pub struct Delivery {
    /// Its space.
    pub space: SpaceId,
    /// Its name.
    pub name: String,
    /// The space of those that emit.
    pub from: SpaceId,
    /// The space of those that receive.
    pub to: SpaceId,
    /// What they emit.
    pub event: FieldId,
    /// What is computed for every edge before a run: of constants, uniform and data fields, the number of the edge and draws.
    pub ops: Vec<Op>,
    /// The value among these that says how many steps an event takes.
    pub delay: ValueId,
    /// What it does.
    pub effect: Effect,
}

/// What an event does along an edge.
#[derive(Debug, Clone, PartialEq)]
pub enum Effect {
    /// It adds a value that is known before the run to a temp field of those that receive.
    Adds {
        /// The sums.
        sum: FieldId,
        /// The value among the `ops`.
        carried: ValueId,
    },
    /// Kernels work on what the edge remembers.
    Remembers(Box<Remembers>),
}

impl Delivery {
    /// The values among its `ops` that edges begin a run with, but for the delay.
    pub fn values(&self) -> Vec<ValueId> {
        match &self.effect {
            Effect::Adds { carried, .. } => vec![*carried],
            Effect::Remembers(remembers) => remembers.begin.clone(),
        }
    }

    /// The values among its `ops` that say how many steps something takes: an event along the edge, and what goes back to it; none takes no time.
    pub fn delays(&self) -> Vec<Option<ValueId>> {
        let back = self.remembers().into_iter().flat_map(|remembers| remembers.back.iter().map(|back| back.delay));
        [Some(self.delay)].into_iter().chain(back).collect()
    }

    /// How many steps the [`delays`](Delivery::delays) are at least.
    pub fn least(&self) -> Vec<u32> {
        let back =
            self.remembers().into_iter().flat_map(|remembers| remembers.back.iter().map(|back| back.when.least()));
        [1].into_iter().chain(back).collect()
    }

    /// The fields that delays and [`values`](Delivery::values) are computed from.
    pub fn reads(&self) -> BTreeSet<FieldId> {
        reads(&self.ops, self.values().into_iter().chain(self.delays().into_iter().flatten()))
    }

    /// The fields of those that receive that it adds to.
    pub fn sums(&self) -> Vec<FieldId> {
        match &self.effect {
            Effect::Adds { sum, .. } => vec![*sum],
            Effect::Remembers(remembers) => remembers.sums.iter().map(|(_, sum)| *sum).collect(),
        }
    }

    /// What its edges remember, and the kernels of that.
    pub fn remembers(&self) -> Option<&Remembers> {
        match &self.effect {
            Effect::Adds { .. } => None,
            Effect::Remembers(remembers) => Some(remembers),
        }
    }

    /// The kernels of edges that remember.
    pub fn kernels(&self) -> Option<&SpacePlan> {
        Some(&self.remembers()?.space)
    }
}

/// The fields that some values are computed from.
pub(super) fn reads(ops: &[Op], roots: impl Iterator<Item = ValueId>) -> BTreeSet<FieldId> {
    let mut needed = vec![false; ops.len()];
    roots.for_each(|value| needed[value.0 as usize] = true);
    let mut reads = BTreeSet::new();
    // An operation stands behind those that it needs.
    for (number, op) in ops.iter().enumerate().rev() {
        if !needed[number] {
            continue;
        }
        op.kind.operands().iter().for_each(|operand| needed[operand.0 as usize] = true);
        if let OpKind::Field(field) = op.kind {
            reads.insert(field);
        }
    }
    reads
}

/// Is a space a relation that events go along?
pub fn is_delivery(program: &Program, space: SpaceId) -> bool {
    let step = program.function(Role::Step);
    let guarded = |region: &Region| region.guard.is_some() && region.over == Some(space);
    matches!(program.space(space).kind, SpaceKind::Relation { .. })
        && step.is_some_and(|step| step.regions().any(guarded))
}

/// A relation with the stages that events reach its edges in.
pub(super) struct Guarded<'p> {
    pub space: SpaceId,
    /// Events that come along the edges, after a delay.
    pub pre: (&'p Region, Guard),
    /// Events of those that the edges lead to: their spikes, and what modulates their synapses.
    pub back: Vec<Told<'p>>,
}

/// A stage in which edges hear of events of those that they lead to.
pub(super) struct Told<'p> {
    pub region: &'p Region,
    pub guard: Guard,
    pub when: When,
}

/// The relations of a program that events go along, in the order of their stages.
pub(super) fn guarded(program: &Program) -> Result<Vec<Guarded<'_>>, Unplanned> {
    let name = |field: FieldId| &program.field(field).name;
    let step = program.function(Role::Step).into_iter().flat_map(|step| &step.stages);
    let mut found: Vec<Guarded<'_>> = Vec::new();
    // Stages that stand ahead of those in which events come along the same edges.
    let mut ahead: Vec<(SpaceId, Told<'_>)> = Vec::new();
    for (region, guard) in step.filter_map(Stage::region).filter_map(|region| Some((region, region.guard?))) {
        let Some(space) = region.over else { continue };
        let is_relation = matches!(program.space(space).kind, SpaceKind::Relation { .. });
        let known = found.iter_mut().find(|other| other.space == space);
        match (guard.along, guard.delay, known) {
            (Some(Map::Source), Some(_), _) if !is_relation => {
                return refuse(format!("`{}` decides where a stage of cells runs", name(guard.event)));
            }
            (Some(Map::Source), Some(_), None) => {
                let own = ahead.extract_if(.., |(edges, _)| *edges == space);
                let back = own.map(|(_, told)| told).collect();
                found.push(Guarded { space, pre: (region, guard), back });
            }
            (Some(Map::Target), _, None) if is_relation => {
                ahead.push((space, Told { region, guard, when: When::Ahead }));
            }
            (Some(Map::Target), _, Some(known)) if known.back.len() < BACK => {
                let when = if of_cells_before(program, region) { When::End } else { When::Behind };
                known.back.push(Told { region, guard, when });
            }
            (Some(Map::Source), Some(_), Some(_)) | (Some(Map::Target), _, Some(_)) => {
                return refuse(format!("the edges `{}` do several things", program.space(space).name));
            }
            _ => {
                return refuse(format!(
                    "`{}` decides where a stage runs, without a delay along edges",
                    name(guard.event)
                ));
            }
        }
    }
    if let Some((_, Told { guard, .. })) = ahead.first() {
        return refuse(format!(
            "`{}` decides where a stage runs, and nothing comes along its edges",
            name(guard.event)
        ));
    }
    for Guarded { space, back, .. } in &found {
        let step = program.function(Role::Step).into_iter().flat_map(|step| step.regions());
        if step.filter(|other| other.over == Some(*space)).count() > 1 + back.len() {
            return refuse(format!("the edges `{}` do several things", program.space(*space).name));
        }
    }
    Ok(found)
}

/// Does a stage of cells stand before a region?
fn of_cells_before(program: &Program, region: &Region) -> bool {
    let step = program.function(Role::Step).into_iter().flat_map(|step| step.regions());
    let mut before = step.take_while(|other| !std::ptr::eq(*other, region));
    before.any(|other| other.rate == Rate::Every && other.guard.is_none() && other.over.is_some())
}

/// Which of the arrivals of a step an event along a relation belongs to, if it does nothing but add.
fn arrival(program: &Program, space: SpaceId) -> Option<usize> {
    let step = program.function(Role::Step)?;
    let own = |stage: &Stage| stage.region().is_some_and(|region| region.over == Some(space) && region.is_arrival());
    let at = step.stages.iter().position(own)?;
    step.arrivals().iter().position(|together| together.contains(&at))
}

/// Does `init` emit an event?
fn emits_before(program: &Program, event: FieldId) -> bool {
    let emits = |op: &Op| matches!(op.kind, OpKind::Emit(field, _) if field == event);
    program.function(Role::Init).is_some_and(|init| init.ops().any(emits))
}

/// What is known of a relation before its effect is.
pub(super) struct Draft<'p> {
    pub guarded: Guarded<'p>,
    from: SpaceId,
    to: SpaceId,
    ops: Vec<Op>,
    delay: ValueId,
    /// What `init` stores for every edge.
    stored: HashMap<FieldId, ValueId>,
    /// What events add, where that is known before the run; or why not.
    added: Result<(FieldId, ValueId), Unplanned>,
}

impl Draft<'_> {
    /// Do its edges change in a run?
    pub fn remembers(&self, program: &Program) -> bool {
        let fields = program.fields_where(|field| field.over == Some(self.guarded.space));
        !self.guarded.back.is_empty() || fields.iter().any(|field| program.field(*field).kind == FieldKind::State)
    }

    /// The value that a field of an edge begins with.
    pub fn begins(&self, field: FieldId) -> Option<ValueId> {
        self.stored.get(&field).copied()
    }
}

/// All relations that events go along.
pub(super) fn drafts(program: &Program) -> Result<Vec<Draft<'_>>, Unplanned> {
    guarded(program)?.into_iter().map(|guarded| draft(program, guarded)).collect()
}

/// All deliveries of a program, in the order of their stages; those that remember are given with their kernels.
pub(super) fn deliveries(
    program: &Program,
    drafts: Vec<Draft<'_>>,
    of_edges: &OfEdges,
    kernels: impl Fn(SpaceId) -> SpacePlan,
) -> Result<Vec<Delivery>, Unplanned> {
    let mut found: Vec<Delivery> = Vec::new();
    for draft in drafts {
        let space = draft.guarded.space;
        let effect = match draft.remembers(program) {
            true if emits_before(program, draft.guarded.pre.1.event) => {
                return refuse(format!(
                    "the edges `{}` remember what is emitted before the run",
                    program.space(space).name
                ));
            }
            true => Effect::Remembers(Box::new(of_edges.remembers(&draft, kernels(space))?)),
            false => {
                let (sum, carried) = draft.added?;
                Effect::Adds { sum, carried }
            }
        };
        let (name, event) = (program.space(space).name.clone(), draft.guarded.pre.1.event);
        let Draft { from, to, ops, delay, .. } = draft;
        let delivery = Delivery { space, name, from, to, event, ops, delay, effect };
        // What is added to one sum is taken together; what edges remember has a sum of its own.
        let sums = delivery.sums();
        let together =
            |other: &Delivery| arrival(program, space).is_some_and(|at| arrival(program, other.space) == Some(at));
        let shares = |other: &&Delivery| other.sums().iter().any(|sum| sums.contains(sum));
        if let Some(other) = found.iter().filter(shares).find(|other| !together(other)) {
            let [one, other] = [&other.name, &delivery.name];
            return refuse(format!(
                "events along `{one}` and `{other}` add to one field, with other stages between them"
            ));
        }
        found.push(delivery);
    }
    Ok(found)
}

fn draft<'p>(program: &'p Program, guarded: Guarded<'p>) -> Result<Draft<'p>, Unplanned> {
    let name = |field: FieldId| &program.field(field).name;
    let space = guarded.space;
    let SpaceKind::Relation { from, to } = program.space(space).kind else {
        return refuse(format!("`{}` decides where a stage of cells runs", name(guarded.pre.1.event)));
    };
    let mut edge = Edge { program, space, ops: Vec::new(), stored: HashMap::default() };
    edge.function(Role::Init, None)?;
    // What the stage of an event stores is not what edges begin with.
    let (before, stored) = (edge.ops.len(), edge.stored.clone());
    let added = edge.function(Role::Step, Some(guarded.pre.0)).and_then(|added| match added[..] {
        [(sum, carried)] => Ok((sum, carried)),
        _ => refuse(format!("events along `{}` do other things than add to one sum", program.space(space).name)),
    });
    if added.is_err() {
        edge.ops.truncate(before);
    }
    let Some(&delay) = guarded.pre.1.delay.and_then(|delay| stored.get(&delay)) else {
        return refuse(format!("`{}` is not set before the run", guarded.pre.1.delay.map_or("", |delay| name(delay))));
    };
    let ops = edge.ops;
    Ok(Draft { guarded, from, to, ops, delay, stored, added })
}

/// What the edges of a relation that no events go along have for themselves.
pub(super) fn numbers_of_edges(program: &Program, space: SpaceId) -> Result<EdgeNumbers, Unplanned> {
    let mut edge = Edge { program, space, ops: Vec::new(), stored: HashMap::default() };
    edge.function(Role::Init, None)?;
    let step = program.function(Role::Step).into_iter().flat_map(|step| step.regions());
    let read: BTreeSet<FieldId> = (step.filter(|region| region.over == Some(space)))
        .flat_map(|region| &region.ops)
        .filter_map(|op| match op.kind {
            OpKind::Field(field) if program.field(field).over == Some(space) => Some(field),
            _ => None,
        })
        .collect();
    let mut numbers = EdgeNumbers { ops: edge.ops, ..EdgeNumbers::default() };
    for field in read {
        let Some(&value) = edge.stored.get(&field) else {
            return refuse(format!("`{}` is not set before the run", program.field(field).name));
        };
        numbers.fields.push(field);
        numbers.values.push(value);
    }
    if numbers.fields.is_empty() {
        numbers.ops.clear();
    }
    Ok(numbers)
}

/// What is computed for an edge.
struct Edge<'p> {
    program: &'p Program,
    space: SpaceId,
    ops: Vec<Op>,
    /// What constants of the edge are.
    stored: HashMap<FieldId, ValueId>,
}

impl Edge<'_> {
    /// Appends what a function computes once, or for every edge in one of its regions; the answer is what that adds to which fields.
    fn function(&mut self, role: Role, region: Option<&Region>) -> Result<Vec<(FieldId, ValueId)>, Unplanned> {
        let mut values: HashMap<ValueId, ValueId> = HashMap::default();
        let mut added = Vec::new();
        for own in self.program.function(role).into_iter().flat_map(|function| function.regions()) {
            let of_edge = match (role, region) {
                (Role::Init, _) => own.over == Some(self.space),
                (Role::Step | Role::Observe, None) => false,
                (Role::Step | Role::Observe, Some(region)) => std::ptr::eq(own, region),
            };
            let once = own.over.is_none() && (own.rate == Rate::Once || role == Role::Init);
            if !of_edge && !once {
                continue;
            }
            for op in &own.ops {
                self.op(op, &mut values, &mut added)?;
            }
        }
        Ok(added)
    }

    fn changes(&self) -> Unplanned {
        Unplanned(format!("what events do along `{}` changes in a run", self.program.space(self.space).name))
    }

    /// Appends an operation whose value is known before a run.
    fn op(
        &mut self,
        op: &Op,
        values: &mut HashMap<ValueId, ValueId>,
        added: &mut Vec<(FieldId, ValueId)>,
    ) -> Result<(), Unplanned> {
        let Edge { program, space, .. } = *self;
        let known = |value: ValueId| values.get(&value).copied();
        let of_edge = |field: FieldId, kind: FieldKind| {
            let Field { over, kind: own, .. } = program.field(field);
            *over == Some(space) && *own == kind
        };
        match op.kind {
            OpKind::Store(field, value) if program.field(field).over == Some(space) => {
                self.stored.insert(field, known(value).ok_or_else(|| self.changes())?);
                return Ok(());
            }
            OpKind::Accumulate(field, Some(Map::Target), value) => {
                added.push((field, known(value).ok_or_else(|| self.changes())?));
                return Ok(());
            }
            OpKind::Field(field) if of_edge(field, FieldKind::Const) => {
                if let (Some(result), Some(&value)) = (op.result, self.stored.get(&field)) {
                    values.insert(result, value);
                }
                return Ok(());
            }
            _ => {}
        }
        let from_outside =
            |field: FieldId| program.field(field).kind == FieldKind::Uniform || of_edge(field, FieldKind::Data);
        let knowable = match (op.kind.class(), op.kind) {
            (OpClass::Pure | OpClass::Draw, _) => true,
            (OpClass::Leaf, kind) => !matches!(kind, OpKind::Time | OpKind::StepIndex),
            (OpClass::Read, kind) => matches!(kind, OpKind::Field(field) if from_outside(field)),
            (OpClass::Write, _) => return Err(self.changes()),
        };
        // What is computed of something else is not known either; it matters if an edge stores or adds it.
        let operands: Option<Vec<ValueId>> = op.kind.operands().into_iter().map(known).collect();
        let (true, Some(operands), Some(result)) = (knowable, operands, op.result) else { return Ok(()) };
        let mut operands = operands.into_iter();
        let kind = op.kind.map_operands(|value| operands.next().unwrap_or(value));
        let id = ValueId(self.ops.len() as u32);
        values.insert(result, id);
        self.ops.push(Op { result: Some(id), kind, ..*op });
        Ok(())
    }
}
