//! What the machine of the runtime knows of a space.
//!
//! In comes the plan of a space; out go the [`Shape`] of its buffers, and what edges read of it.
//! Never true here: a size is known.

use crate::codegen::plan::{Group, Home, Plan, SpacePlan};
use crate::runtime::edges::Shared;
use crate::runtime::machine::{self, Shape};

/// How a space's numbers are laid out.
pub fn shape(space: &SpacePlan) -> Shape {
    Shape {
        lanes: space.block as usize,
        state: space.state.len(),
        cell: space.cell.len(),
        output: space.output.len(),
        data: space.data.len(),
        temp: space.temp.len(),
        swept: !space.swept.is_empty(),
        window: space.step().map(|kernel| kernel.window).min().unwrap_or(u32::MAX),
    }
}

/// Where what edges read of a space is stored.
pub fn shared(plan: &Plan, space: &SpacePlan) -> Vec<Shared> {
    let place = |shared: &crate::codegen::plan::Shared| {
        let Home::Slot(_, bank, slot) = plan.homes[shared.field.0 as usize] else {
            panic!("the plan shares fields that have a slot")
        };
        Shared { bank, slot: slot as usize, pass: shared.pass as usize }
    };
    space.shared.iter().map(place).collect()
}

/// The spaces that take their steps together.
pub fn groups(plan: &Plan) -> Vec<machine::Group> {
    let group = |group: &Group| machine::Group {
        spaces: group.spaces.iter().map(|&space| space as usize).collect(),
        passes: group.passes as usize,
        observed: group.observed as usize,
        events: group.events,
        branched: group.trees.iter().map(|&at| at as usize).collect(),
    };
    plan.groups.iter().map(group).collect()
}
