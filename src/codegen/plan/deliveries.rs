//! Relations that events go along.
//!
//! In comes a program; out go its [`Delivery`]s: for each stage that an event reaches along edges, after a delay, where it adds what.
//! Never true here: what an edge carries, or how long an event takes, changes in a run.

use super::Unplanned;
use super::refuse::refuse;
use crate::step::{
    Field, FieldId, FieldKind, Guard, Map, Op, OpClass, OpKind, Program, Rate, Region, Role, SpaceId, SpaceKind, Stage,
    ValueId,
};
use std::collections::HashMap;

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
    /// What is added up at those that receive, a temp field.
    pub sum: FieldId,
    /// What is computed for every edge before a run: of constants, uniform and data fields, the number of the edge and draws.
    pub ops: Vec<Op>,
    /// The value among these that says how many steps an event takes.
    pub delay: ValueId,
    /// The value that it carries.
    pub carried: ValueId,
}

/// Is a space a relation that events go along?
pub fn is_delivery(program: &Program, space: SpaceId) -> bool {
    let step = program.function(Role::Step);
    let guarded = |region: &Region| region.guard.is_some() && region.over == Some(space);
    matches!(program.space(space).kind, SpaceKind::Relation { .. })
        && step.is_some_and(|step| step.regions().any(guarded))
}

/// All deliveries of a program, in the order of their stages.
pub fn deliveries(program: &Program) -> Result<Vec<Delivery>, Unplanned> {
    let step = program.function(Role::Step).into_iter().flat_map(|step| &step.stages);
    let guarded = step.filter_map(Stage::region).filter_map(|region| Some((region, region.guard?)));
    let mut found: Vec<Delivery> = Vec::new();
    for (region, guard) in guarded {
        let delivery = delivery(program, region, guard)?;
        // The sums of each wait in a ring of their own, and there is one place that they arrive at.
        if found.iter().any(|other| other.sum == delivery.sum) {
            return refuse(format!("events along several relations add to `{}`", program.field(delivery.sum).name));
        }
        found.push(delivery);
    }
    Ok(found)
}

fn delivery(program: &Program, region: &Region, guard: Guard) -> Result<Delivery, Unplanned> {
    let name = |field: FieldId| &program.field(field).name;
    let (Some(space), Some(Map::Source), Some(delay)) = (region.over, guard.along, guard.delay) else {
        return refuse(format!("`{}` decides where a stage runs, without a delay along edges", name(guard.event)));
    };
    let SpaceKind::Relation { from, to } = program.space(space).kind else {
        return refuse(format!("`{}` decides where a stage of cells runs", name(guard.event)));
    };
    let step = program.function(Role::Step).into_iter().flat_map(|step| step.regions());
    if step.filter(|other| other.over == Some(space)).count() > 1 {
        return refuse(format!("the edges `{}` do several things", program.space(space).name));
    }
    let mut edge = Edge { program, space, ops: Vec::new(), stored: HashMap::new() };
    edge.function(Role::Init, None)?;
    let added = edge.function(Role::Step, Some(region))?;
    let [(sum, carried)] = added[..] else {
        return refuse(format!("events along `{}` do other things than add to one sum", program.space(space).name));
    };
    let Some(&delay) = edge.stored.get(&delay) else {
        return refuse(format!("`{}` is not set before the run", name(delay)));
    };
    let (name, ops) = (program.space(space).name.clone(), edge.ops);
    Ok(Delivery { space, name, from, to, event: guard.event, sum, ops, delay, carried })
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
        let mut values: HashMap<ValueId, ValueId> = HashMap::new();
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
