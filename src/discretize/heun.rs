//! Heun's explicit trapezoidal rule: x + dt/2 (f(x) + f(x + dt f(x))). Order 2.

use super::euler::advance;
use super::stages::Stages;
use crate::ode::StateId;
use crate::step::BinaryOp;
use crate::units::Dim;

pub(super) fn step(stages: &mut Stages<'_>) {
    let states = stages.states();
    let dt = stages.dt;
    let k1 = stages.slopes();
    let k2 = stages.slopes_at(&k1, dt);
    let half = stages.model.graph.number(0.5, Dim::ONE);
    let half = stages.model.graph.binary(BinaryOp::Mul, half, dt);
    let update = |(i, &s): (usize, &StateId)| {
        let sum = stages.model.graph.binary(BinaryOp::Add, k1[i], k2[i]);
        (s, advance(stages.model, s, half, sum))
    };
    let updates = states.iter().enumerate().map(update).collect();
    stages.update(updates);
}
