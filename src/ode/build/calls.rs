//! Calls of built-in functions, stimuli among them.
//!
//! In come a function and its arguments; out goes what it means in terms of operators and of the time.
//! Never true here: a function that differs from cell to cell in more than its arguments.

use super::Builder;
use crate::hir::Builtin;
use crate::ode::instant::begun_until;
use crate::ode::{Graph, Node, NodeId};
use crate::operators::{BinaryOp, UnaryOp};
use crate::units::Dim;

impl Builder<'_> {
    pub(super) fn call(&mut self, builtin: Builtin, args: &[NodeId], dims: &[Dim]) -> NodeId {
        let g = &mut self.graph;
        if let Some(op) = builtin.operation() {
            return g.unary(op, args[0]);
        }
        match builtin {
            Builtin::Min | Builtin::Max => {
                let op = if builtin == Builtin::Min { BinaryOp::Min } else { BinaryOp::Max };
                args[1..].iter().fold(args[0], |x, &y| g.binary(op, x, y))
            }
            Builtin::Clamp => {
                let low = g.binary(BinaryOp::Max, args[0], args[1]);
                g.binary(BinaryOp::Min, low, args[2])
            }
            Builtin::Heaviside => {
                let zero = g.number(0.0, dims[0]);
                let (none, one) = (g.number(0.0, Dim::ONE), g.number(1.0, Dim::ONE));
                let c = g.binary(BinaryOp::Ge, args[0], zero);
                g.select(c, one, none)
            }
            // With y = (midpoint - v) / scale: rate exp(-y), rate / (1 + exp(y)), rate y / (exp(y) - 1).
            Builtin::ExpRate => {
                let x = g.binary(BinaryOp::Sub, args[0], args[2]);
                let x = g.binary(BinaryOp::Div, x, args[3]);
                let e = g.unary(UnaryOp::Exp, x);
                g.binary(BinaryOp::Mul, args[1], e)
            }
            Builtin::SigmoidRate => {
                let y = g.binary(BinaryOp::Sub, args[2], args[0]);
                let y = g.binary(BinaryOp::Div, y, args[3]);
                let e = g.unary(UnaryOp::Exp, y);
                let one = g.number(1.0, Dim::ONE);
                let sum = g.binary(BinaryOp::Add, one, e);
                g.binary(BinaryOp::Div, args[1], sum)
            }
            Builtin::ExpLinearRate => {
                let y = g.binary(BinaryOp::Sub, args[2], args[0]);
                let y = g.binary(BinaryOp::Div, y, args[3]);
                let l = g.unary(UnaryOp::Linoid, y);
                g.binary(BinaryOp::Mul, args[1], l)
            }
            _ => self.stimulus(builtin, args, dims),
        }
    }

    fn stimulus(&mut self, builtin: Builtin, args: &[NodeId], dims: &[Dim]) -> NodeId {
        let g = &mut self.graph;
        let (delay, duration) = (args[0], args[1]);
        let step_time = g.add(Node::StepTime);
        let period = if builtin == Builtin::Train { args[3] } else { duration };
        let differ = g.may_differ(&self.params, &[delay, duration, period]);
        let now = begun_until(g, step_time, differ);
        let begun = g.binary(BinaryOp::Ge, now, delay);
        let time = g.add(Node::Time);
        let since = g.binary(BinaryOp::Sub, time, delay);
        // Of what comes again and again: how many went before, and what is left of the time.
        let again = |g: &mut Graph, period: NodeId| {
            let gone = g.binary(BinaryOp::Sub, now, delay);
            let turns = g.binary(BinaryOp::Div, gone, period);
            let whole = g.unary(UnaryOp::Floor, turns);
            let before = g.binary(BinaryOp::Mul, whole, period);
            (whole, g.binary(BinaryOp::Sub, gone, before))
        };
        let (going, value) = match builtin {
            Builtin::Train => {
                let (whole, part) = again(g, args[3]);
                let within = g.binary(BinaryOp::Lt, part, duration);
                let counted = g.binary(BinaryOp::Lt, whole, args[4]);
                (g.binary(BinaryOp::And, within, counted), args[2])
            }
            Builtin::Staircase => {
                let (whole, _) = again(g, duration);
                let risen = g.binary(BinaryOp::Mul, args[3], whole);
                (g.binary(BinaryOp::Lt, whole, args[4]), g.binary(BinaryOp::Add, args[2], risen))
            }
            Builtin::Sine => {
                // Whole turns go before the angle is rounded: late in a long run it would have few digits left.
                let turns = g.binary(BinaryOp::Div, since, args[3]);
                let whole = g.unary(UnaryOp::Floor, turns);
                let part = g.binary(BinaryOp::Sub, turns, whole);
                let turn = g.number(std::f64::consts::TAU, Dim::ONE);
                let angle = g.binary(BinaryOp::Mul, turn, part);
                let angle = g.binary(BinaryOp::Add, angle, args[4]);
                let sine = g.unary(UnaryOp::Sin, angle);
                (until(g, now, delay, duration), g.binary(BinaryOp::Mul, args[2], sine))
            }
            Builtin::Ramp => {
                let rise = g.binary(BinaryOp::Sub, args[3], args[2]);
                let part = g.binary(BinaryOp::Div, since, duration);
                let gone = g.binary(BinaryOp::Mul, rise, part);
                (until(g, now, delay, duration), g.binary(BinaryOp::Add, args[2], gone))
            }
            _ => (until(g, now, delay, duration), args[2]),
        };
        let on = g.binary(BinaryOp::And, begun, going);
        let zero = g.number(0.0, dims[2]);
        g.select(on, value, zero)
    }
}

/// Is the end not reached of what lasts from `delay` on for `duration`?
fn until(g: &mut Graph, now: NodeId, delay: NodeId, duration: NodeId) -> NodeId {
    let end = g.binary(BinaryOp::Add, delay, duration);
    g.binary(BinaryOp::Lt, now, end)
}
