//! How the cells of a run branch.
//!
//! In come the plan of branched cells and the set-up of a run; out goes what the machine, or the plan for a device, knows of them.
//! Never true here: cells of one population differ in their tree.

use super::{EngineError, Setup};
use crate::codegen::plan::{Elimination, Home, Plan, Tie, Trees};
use crate::runtime::branched::{Branched, Field, Link};
use crate::runtime::branches::{NONE, Side};
use crate::step::{FieldId, Map, SpaceId};
use std::sync::Arc;

/// The maps of some branched cells for a device.
pub fn ties(plan: &Plan, trees: &Trees, setup: &Setup) -> Result<Vec<Tie>, EngineError> {
    let branched = branched(plan, trees, setup)?;
    let cells = branched.side.cells;
    let tie = |(link, &(from, map, _)): (&Link, &(SpaceId, Map, SpaceId))| {
        let solved = map == Map::Parent && trees.solves.iter().any(|(space, ..)| *space == from);
        let elimination = solved.then(|| Elimination::new(cells, &link.elements));
        Tie { cells, to: branched.each(link.to), elements: link.elements.clone(), elimination }
    };
    Ok(branched.links.iter().zip(&trees.ties).map(tie).collect())
}

/// The cells of a group. As many of them stand side by side as a block of the space that equations are solved in has lanes.
pub fn branched(plan: &Plan, trees: &Trees, setup: &Setup) -> Result<Branched, EngineError> {
    let wrong =
        |space: SpaceId, why: &str| EngineError(format!("the space `{}`: {why}", plan.spaces[space.0 as usize].name));
    let solved = trees.solves.first().map_or(trees.cells, |(space, ..)| *space);
    let width = plan.spaces[solved.0 as usize].block as usize;
    let cells = setup.sizes[trees.cells.0 as usize];
    let each = |&space: &SpaceId| {
        let size = setup.sizes[space.0 as usize];
        let each = size.checked_div(cells).unwrap_or(0);
        if each * cells != size {
            return Err(wrong(space, "its cells differ in the number of elements"));
        }
        Ok((space.0 as usize, each))
    };
    let each: Vec<(usize, usize)> = trees.spaces.iter().map(each).collect::<Result<_, _>>()?;
    let count = |space: SpaceId| each.iter().find(|(at, _)| *at == space.0 as usize).map_or(0, |(_, each)| *each);
    let link = |&(from, map, to): &(SpaceId, Map, SpaceId)| {
        let listed = |all: &[(SpaceId, Arc<[u32]>)]| {
            all.iter().rfind(|(space, _)| *space == from).map(|(_, list)| list.to_vec())
        };
        let elements = match map {
            Map::Of => Some(vec![0; count(from)]),
            Map::In => listed(&setup.subsets),
            Map::Parent => listed(&setup.trees).map(|mut parents| {
                // The root names itself.
                for (element, parent) in (0..).zip(&mut parents) {
                    if *parent == element {
                        *parent = NONE;
                    }
                }
                parents
            }),
            Map::Source | Map::Target => None,
        };
        let elements = elements.ok_or_else(|| wrong(from, "nothing says where its elements belong"))?;
        if elements.len() != count(from)
            || elements.iter().any(|&to_element| to_element != NONE && to_element as usize >= count(to))
        {
            return Err(wrong(from, "it has other elements than what says where they belong"));
        }
        Ok(Link { from: from.0 as usize, to: to.0 as usize, elements })
    };
    let field = |(&field, &state): (&FieldId, &bool)| match plan.homes[field.0 as usize] {
        Home::Flat(space, _) => Ok(Field { space: space.0 as usize, state }),
        _ => Err(EngineError(format!("`{}` has no place", plan.fields[field.0 as usize]))),
    };
    Ok(Branched {
        side: Side { cells, width },
        fields: trees.fields.iter().zip(&trees.states).map(field).collect::<Result<_, EngineError>>()?,
        links: trees.ties.iter().map(link).collect::<Result<_, EngineError>>()?,
        tasks: trees.tasks.clone(),
        each,
    })
}
