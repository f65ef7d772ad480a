//! The classical Runge-Kutta method. Order 4 (Kutta 1901).

use super::euler::advance;
use super::stages::Stages;
use crate::ode::StateId;
use crate::step::BinaryOp;
use crate::units::Dim;

pub(super) fn step(stages: &mut Stages<'_>) {
    let states = stages.states();
    let dt = stages.dt;
    let half = stages.model.graph.number(0.5, Dim::ONE);
    let half = stages.model.graph.binary(BinaryOp::Mul, half, dt);
    let k1 = stages.slopes();
    let k2 = stages.slopes_at(&k1, half);
    let k3 = stages.slopes_at(&k2, half);
    let k4 = stages.slopes_at(&k3, dt);
    let g = &mut stages.model.graph;
    let two = g.number(2.0, Dim::ONE);
    let sixth = g.number(6.0, Dim::ONE);
    let sixth = g.binary(BinaryOp::Div, dt, sixth);
    let update = |(i, &s): (usize, &StateId)| {
        let g = &mut stages.model.graph;
        let middle = g.binary(BinaryOp::Add, k2[i], k3[i]);
        let middle = g.binary(BinaryOp::Mul, two, middle);
        let ends = g.binary(BinaryOp::Add, k1[i], k4[i]);
        let sum = g.binary(BinaryOp::Add, ends, middle);
        (s, advance(stages.model, s, sixth, sum))
    };
    let updates = states.iter().enumerate().map(update).collect();
    stages.update(updates);
}
