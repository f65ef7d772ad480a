//! What a model shows to the people who use its crate.
//!
//! In come, from the model, names, units, defaults and descriptions; out they go into the crate's tables and documents.
//! Never true here: a number that a kernel computes.

use crate::runtime::branched::Branched;
use crate::runtime::edges::Edges;
use crate::runtime::events::PerEdge;
use crate::runtime::named::Count;
use crate::step::FieldId;
use std::sync::Arc;

/// The outside of a model.
#[derive(Debug, Clone, PartialEq)]
pub struct Interface {
    /// The crate's name: lower-case letters, digits and `_`.
    pub crate_name: String,
    /// What the model is, in Markdown.
    pub doc: String,
    /// One for each space of the program, in the same order.
    pub spaces: Vec<InterfaceSpace>,
    /// Fields of the program that people may see. Every uniform, series and data field must be here.
    pub fields: Vec<InterfaceField>,
    /// The default seed of random numbers.
    pub seed: u64,
    /// How many steps the crate's example runs.
    pub example_steps: u64,
}

/// A population, or what the cells of one consist of.
#[derive(Debug, Clone, PartialEq)]
pub struct InterfaceSpace {
    /// The default number of elements.
    pub size: usize,
    /// What decides it.
    pub count: Count,
    /// What it is, in one line; may be empty.
    pub doc: String,
}

/// What a crate carries of how its cells are connected, and of how they branch.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Wiring {
    /// Of each relation of the plan, in the same order.
    pub relations: Vec<Wires>,
    /// Of each delivery of the plan.
    pub deliveries: Vec<Wires>,
    /// Of each kind of branched cells.
    pub branched: Vec<Branched>,
}

/// Edges, for populations of default size, and what each of them has.
#[derive(Debug, Clone, PartialEq)]
pub struct Wires {
    /// The edges.
    pub edges: Arc<Edges>,
    /// How many steps an event takes along each of them, if events do.
    pub delays: PerEdge<u32>,
    /// And what goes back to it, of each kind.
    pub back: Vec<PerEdge<u32>>,
    /// What it brings, what edges that remember begin with, or what edges compute with that no events go along.
    pub values: Vec<PerEdge<f64>>,
}

impl Wires {
    /// Edges without anything of their own, which no events go along.
    pub fn bare(edges: Arc<Edges>) -> Wires {
        Wires { edges, delays: PerEdge::Same(0), back: Vec::new(), values: Vec::new() }
    }

    /// Has each edge something of its own?
    pub fn has_own(&self) -> bool {
        let steps = |delays: &PerEdge<u32>| matches!(delays, PerEdge::Each(_));
        let each = |values: &PerEdge<f64>| matches!(values, PerEdge::Each(_));
        steps(&self.delays) || self.back.iter().any(steps) || self.values.iter().any(each)
    }
}

/// A field.
#[derive(Debug, Clone, PartialEq)]
pub struct InterfaceField {
    /// The field of the program.
    pub field: FieldId,
    /// What people call it.
    pub name: String,
    /// Its unit, such as `mS/cm2`; empty for pure numbers.
    pub unit: String,
    /// One of this unit is ten to this power in canonical units.
    pub exponent: i32,
    /// What it is, in one line; may be empty.
    pub doc: String,
    /// Its value before anybody sets it, in canonical units.
    pub default: Default,
    /// Of a parameter: others whose defaults are computed from it.
    pub computes: Vec<FieldId>,
    /// Of a state of branched cells: what others see of it, which has to be written with it.
    pub copies: Vec<Copy>,
}

/// Some elements of every cell of a state, in another field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Copy {
    /// The other field.
    pub field: FieldId,
    /// How many elements a cell of the state has.
    pub each: usize,
    /// Which of them.
    pub elements: Vec<u32>,
}

/// A default value.
#[derive(Debug, Clone, PartialEq)]
pub enum Default {
    /// For states, cell parameters, outputs and events, which are computed.
    None,
    /// For uniform fields.
    Number(f64),
    /// For series: `(t in ms, value)`.
    Series(Vec<(f64, f64)>),
    /// For data: one number per cell of a population of default size.
    Data(Vec<f64>),
}

/// There is no crate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum InterfaceError {
    /// Crates cannot do so far what the plan asks for.
    NotYet(String),
    /// An interface does not fit its plan.
    Misfit(String),
}

impl std::fmt::Display for InterfaceError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            InterfaceError::NotYet(what) | InterfaceError::Misfit(what) => f.write_str(what),
        }
    }
}

impl std::error::Error for InterfaceError {}
