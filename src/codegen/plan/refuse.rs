//! What back ends cannot do so far.
//!
//! In comes any verified program; out goes nothing, or what in it only the interpreter runs.
//! Never true here: a plan is made of what is refused.

use crate::step::{FieldKind, Map, OpKind, Program, Rate, Region, SpaceId, SpaceKind, Stage};
use std::collections::BTreeSet;
use std::fmt;

/// Why there is no plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unplanned(pub String);

impl fmt::Display for Unplanned {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}; so far only the interpreter (`--engine interp`) runs this", self.0)
    }
}

impl std::error::Error for Unplanned {}

/// Refuses what no plan is made of.
pub fn check(program: &Program) -> Result<(), Unplanned> {
    program.spaces.iter().try_for_each(|space| match space.kind {
        SpaceKind::Plain => Ok(()),
        SpaceKind::Relation { from, to } if from == to => Ok(()),
        SpaceKind::Relation { .. } => refuse(format!("`{}` joins two spaces", space.name)),
        SpaceKind::Product { .. } => refuse(format!("every element of another space has its own `{}`", space.name)),
        SpaceKind::Subset { .. } => refuse(format!("`{}` is part of another space", space.name)),
    })?;
    for field in &program.fields {
        let array = match field.kind {
            FieldKind::Uniform | FieldKind::Series => false,
            FieldKind::Data
            | FieldKind::Const
            | FieldKind::State
            | FieldKind::Temp
            | FieldKind::Output
            | FieldKind::Event => true,
        };
        if field.history > 0 {
            return refuse(format!("`{}` has a history", field.name));
        }
        match field.over {
            None if array => return refuse(format!("`{}` is one value that a function stores", field.name)),
            Some(space) if program.space(space).kind != SpaceKind::Plain => {
                return refuse(format!("`{}` has a value for every edge", field.name));
            }
            None | Some(_) => {}
        }
    }
    program.functions.iter().try_for_each(|function| stages(program, &function.stages))
}

fn refuse(what: String) -> Result<(), Unplanned> {
    Err(Unplanned(what))
}

fn stages(program: &Program, stages: &[Stage]) -> Result<(), Unplanned> {
    // The spaces whose cells have begun their update.
    let mut begun: BTreeSet<SpaceId> = BTreeSet::new();
    for stage in stages {
        match stage {
            Stage::Solve(solve) => return refuse(format!("`{}` is solved for", program.field(solve.x).name)),
            Stage::Region(region) => {
                check_region(program, region)?;
                let (Some(space), Rate::Every) = (region.over, region.rate) else { continue };
                match program.space(space).kind {
                    SpaceKind::Relation { to, .. } if begun.contains(&to) => {
                        let name = &program.space(space).name;
                        return refuse(format!("the edges `{name}` come after an update of their cells"));
                    }
                    SpaceKind::Relation { .. } => {}
                    SpaceKind::Plain | SpaceKind::Product { .. } | SpaceKind::Subset { .. } => {
                        begun.insert(space);
                    }
                }
            }
        }
    }
    Ok(())
}

fn check_region(program: &Program, region: &Region) -> Result<(), Unplanned> {
    if let Some(guard) = &region.guard {
        return refuse(format!("`{}` decides where a stage runs", program.field(guard.event).name));
    }
    let of_edges = region.over.is_some_and(|space| program.space(space).kind != SpaceKind::Plain);
    region.ops.iter().try_for_each(|op| match op.kind {
        OpKind::Index | OpKind::Draw(..) if of_edges => refuse("an edge asks for its number".into()),
        OpKind::Back(field, ..) => refuse(format!("`{}` is read of an earlier step", program.field(field).name)),
        OpKind::Gather(_, Map::Target) => Ok(()),
        OpKind::Gather(field, Map::Source) if program.field(field).kind == FieldKind::State => Ok(()),
        OpKind::Gather(field, _) => refuse(format!("`{}` is gathered and no state", program.field(field).name)),
        OpKind::Accumulate(_, Some(Map::Target), _) => Ok(()),
        OpKind::Accumulate(field, ..) => {
            refuse(format!("what is added to `{}` comes from no edges", program.field(field).name))
        }
        OpKind::Const(_)
        | OpKind::Bool(_)
        | OpKind::Field(_)
        | OpKind::Time
        | OpKind::StepIndex
        | OpKind::Index
        | OpKind::Unary(..)
        | OpKind::Approximate(..)
        | OpKind::Binary(..)
        | OpKind::Fma(..)
        | OpKind::Select(..)
        | OpKind::Spike(..)
        | OpKind::Draw(..)
        | OpKind::Sample(..)
        | OpKind::Store(..)
        | OpKind::Emit(..) => Ok(()),
    })
}
