//! What a crate carries of connections and of branched cells.
//!
//! In come a plan and the set-up of a run; out goes a [`Wiring`] with the numbers that the run would have.
//! Never true here: that a run of the native engine and its crate differ in an edge, a delay or a weight.

use super::{EngineError, Setup, branches, deliveries};
use crate::codegen::plan::{Delivery, Plan, Relation};
use crate::codegen::rust::{Wires, Wiring};
use crate::runtime::edges::Edges;
use crate::step::SpaceId;
use std::sync::Arc;

/// The edges of relations and deliveries, and the trees of branched cells.
pub fn wiring(plan: &Plan, setup: &Setup) -> Result<Wiring, EngineError> {
    let edges = |space: SpaceId, name: &str| -> Result<Arc<Edges>, EngineError> {
        let edges = setup.edges_of(space).ok_or_else(|| EngineError(format!("the space `{name}`: it has no edges")))?;
        Ok(Arc::clone(edges))
    };
    let relation = |relation: &Relation| {
        let edges = edges(relation.space, &relation.name)?;
        let values = deliveries::numbers(relation, setup, edges.sources.len(), 1)?;
        Ok(Wires { values, ..Wires::bare(edges) })
    };
    let values = deliveries::all(plan, setup)?;
    let wires = |(delivery, of_edges): (&Delivery, deliveries::EdgeValues)| {
        let deliveries::EdgeValues { delays, back, values } = of_edges;
        Ok(Wires { edges: edges(delivery.space, &delivery.name)?, delays, back, values })
    };
    Ok(Wiring {
        relations: plan.relations.iter().map(relation).collect::<Result<_, EngineError>>()?,
        deliveries: plan.deliveries.iter().zip(values).map(wires).collect::<Result<_, EngineError>>()?,
        branched: plan.trees.iter().map(|trees| branches::branched(plan, trees, setup)).collect::<Result<_, _>>()?,
    })
}
