//! What the machine of the runtime knows of a space.
//!
//! In comes the plan of a space; out goes the [`Shape`] of its buffers.
//! Never true here: a size is known.

use crate::codegen::plan::SpacePlan;
use crate::runtime::machine::Shape;
use crate::step::Role;

/// How a space's numbers are laid out.
pub fn shape(space: &SpacePlan) -> Shape {
    let step = space.kernels.iter().find(|kernel| kernel.role == Role::Step);
    Shape {
        lanes: space.block as usize,
        state: space.state.len(),
        cell: space.cell.len(),
        output: space.output.len(),
        data: space.data.len(),
        window: step.map_or(u32::MAX, |kernel| kernel.window),
    }
}
