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
    /// The edges of each relation of the plan, in the same order, for populations of default size.
    pub relations: Vec<Arc<Edges>>,
    /// Of each delivery of the plan.
    pub deliveries: Vec<Wires>,
    /// Of each kind of branched cells.
    pub branched: Vec<Branched>,
}

/// Edges that events go along, for populations of default size.
#[derive(Debug, Clone, PartialEq)]
pub struct Wires {
    /// The edges.
    pub edges: Arc<Edges>,
    /// How many steps an event takes along each of them.
    pub delays: PerEdge<u32>,
    /// What it brings, or what edges that remember begin with.
    pub values: Vec<PerEdge<f64>>,
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
    /// One of this unit in canonical units.
    pub scale: f64,
    /// What it is, in one line; may be empty.
    pub doc: String,
    /// Its value before anybody sets it, in canonical units.
    pub default: Default,
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
