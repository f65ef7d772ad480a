//! What edges carry, and how long events take along them.
//!
//! In come a planned delivery and a set-up; out go the values of every edge.
//! Never true here: a value of an edge depends on the others, or on how they are stored.

use super::{EngineError, Setup};
use crate::codegen::plan::{Delivery, Plan};
use crate::runtime::events::PerEdge;
use crate::runtime::rng::Draw;
use crate::step::{FieldId, OpKind, Value, ValueId, eval};
use std::sync::Arc;

/// Delays in steps, and what is carried.
pub type EdgeValues = (PerEdge<u32>, PerEdge<f64>);

/// The values of the edges of all deliveries of a plan.
pub fn all(plan: &Plan, setup: &Setup) -> Result<Vec<EdgeValues>, EngineError> {
    let of =
        |delivery: &Delivery| values(delivery, setup, setup.edges_of(delivery.space).map_or(0, |e| e.sources.len()));
    plan.deliveries.iter().map(of).collect()
}

/// Computes the values of all edges of a delivery.
pub fn values(delivery: &Delivery, setup: &Setup, edges: usize) -> Result<EdgeValues, EngineError> {
    let mut row = Row { delivery, setup, values: vec![None; delivery.ops.len()], varies: Vec::new() };
    row.begin()?;
    let Row { varies, .. } = &row;
    let [delay_varies, carried_varies] = [delivery.delay, delivery.carried].map(|value| varies[value.0 as usize]);
    let count = |varies: bool| if varies { edges } else { 0 };
    let mut delays = Vec::with_capacity(count(delay_varies));
    let mut carried = Vec::with_capacity(count(carried_varies));
    if delay_varies || carried_varies {
        for edge in 0..edges {
            row.edge(edge)?;
            if delay_varies {
                delays.push(row.delay(Some(edge))?);
            }
            if carried_varies {
                carried.push(row.real(delivery.carried)?);
            }
        }
    }
    let delays = if delay_varies { PerEdge::Each(delays.into()) } else { PerEdge::Same(row.delay(None)?) };
    let carried = match carried_varies {
        true => PerEdge::Each(Arc::from(carried)),
        false => PerEdge::Same(row.real(delivery.carried)?),
    };
    Ok((delays, carried))
}

/// The values of an edge.
struct Row<'a> {
    delivery: &'a Delivery,
    setup: &'a Setup,
    values: Vec<Option<Value>>,
    /// Which of them differ from edge to edge.
    varies: Vec<bool>,
}

impl Row<'_> {
    /// Computes what is the same for all edges.
    fn begin(&mut self) -> Result<(), EngineError> {
        for (at, op) in self.delivery.ops.iter().enumerate() {
            let own = match op.kind {
                OpKind::Index | OpKind::Draw(..) => true,
                OpKind::Field(field) => self.data(field).is_some(),
                _ => false,
            };
            let varies = own || op.kind.operands().iter().any(|value| self.varies[value.0 as usize]);
            self.varies.push(varies);
            if !varies {
                self.values[at] = Some(self.op(&op.kind, 0)?);
            }
        }
        Ok(())
    }

    /// Computes the rest for an edge.
    fn edge(&mut self, edge: usize) -> Result<(), EngineError> {
        for at in 0..self.values.len() {
            if self.varies[at] {
                self.values[at] = Some(self.op(&self.delivery.ops[at].kind, edge)?);
            }
        }
        Ok(())
    }

    fn op(&self, kind: &OpKind, edge: usize) -> Result<Value, EngineError> {
        let broken = || EngineError(format!("what edges of `{}` carry is ill-typed", self.delivery.name));
        match *kind {
            OpKind::Index => Ok(Value::Real(edge as f64)),
            OpKind::Field(field) => {
                if let Some(values) = self.data(field) {
                    return values.get(edge).map(|value| Value::Real(*value)).ok_or_else(broken);
                }
                let value = self.setup.uniforms.iter().rfind(|(id, _)| *id == field);
                value.map(|(_, value)| Value::Real(*value)).ok_or_else(broken)
            }
            OpKind::Draw(distribution, stream, counter) => {
                let stream = u32::try_from(stream).map_err(|_| broken())?;
                let from = Draw { seed: self.setup.seed, stream };
                Ok(Value::Real(distribution.draw(from, edge as u32, self.real(counter)? as u64)))
            }
            _ => {
                let operands: Option<Vec<Value>> =
                    kind.operands().iter().map(|value| self.values[value.0 as usize]).collect();
                eval(kind, &operands.ok_or_else(broken)?).ok_or_else(broken)
            }
        }
    }

    /// The values of a data field.
    fn data(&self, field: FieldId) -> Option<&[f64]> {
        self.setup.data.iter().rfind(|(id, _)| *id == field).map(|(_, values)| &values[..])
    }

    fn real(&self, value: ValueId) -> Result<f64, EngineError> {
        let real = self.values[value.0 as usize].and_then(Value::real);
        real.ok_or_else(|| EngineError(format!("what edges of `{}` carry is no number", self.delivery.name)))
    }

    /// How many steps an event takes.
    fn delay(&self, edge: Option<usize>) -> Result<u32, EngineError> {
        let steps = self.real(self.delivery.delay)?;
        if (1.0..=f64::from(LONGEST)).contains(&steps) && steps.fract() == 0.0 {
            return Ok(steps as u32);
        }
        let which = edge.map_or(String::new(), |edge| format!("edge {edge} of "));
        Err(EngineError(format!(
            "along {which}`{}` an event takes {steps} steps; from 1 to {LONGEST} are possible",
            self.delivery.name
        )))
    }
}

/// The longest delay in steps: what is on its way is kept for every step to come.
const LONGEST: u32 = 1 << 20;
