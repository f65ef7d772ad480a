//! What has begun: times that should be equal, and differ by rounding.
//!
//! In comes the time at which a step begins; out goes a time a little later, with which others are compared, in whatever form formulas have.
//! Never true here: an eighth of a step or more lies between the two.

use super::{Graph, Node, NodeId};
use crate::operators::BinaryOp;
use crate::units::Dim;

/// How far apart (in ms) two times may be and still count as equal: steps are sums of rounded numbers.
pub const INSTANT: f64 = 1e-9;

/// Times that differ from cell to cell count as equal within this part of them, too, as long as that is less than an eighth of a step: in single
/// precision they have seven digits.
const DIGITS: f64 = 1.0 / (1u32 << 20) as f64;

/// What formulas of times are made with.
pub trait Formulas {
    /// What stands for a number.
    type Value: Copy;
    /// A number.
    fn number(&mut self, x: f64, dim: Dim) -> Self::Value;
    /// The length of a step.
    fn length(&mut self) -> Self::Value;
    /// `a op b`
    fn binary(&mut self, op: BinaryOp, a: Self::Value, b: Self::Value) -> Self::Value;
}

impl Formulas for Graph {
    type Value = NodeId;

    fn number(&mut self, x: f64, dim: Dim) -> NodeId {
        Graph::number(self, x, dim)
    }

    fn length(&mut self) -> NodeId {
        self.add(Node::StepLength)
    }

    fn binary(&mut self, op: BinaryOp, a: NodeId, b: NodeId) -> NodeId {
        Graph::binary(self, op, a, b)
    }
}

/// The time until which what should have begun has; `differ` says whether the times may differ from cell to cell that it is compared with.
pub fn begun_until<F: Formulas>(f: &mut F, time: F::Value, differ: bool) -> F::Value {
    let mut instant = f.number(INSTANT, Dim::TIME);
    if differ {
        let (digits, eighth) = (f.number(DIGITS, Dim::ONE), f.number(0.125, Dim::ONE));
        let length = f.length();
        let (last, part) = (f.binary(BinaryOp::Mul, digits, time), f.binary(BinaryOp::Mul, eighth, length));
        let slack = f.binary(BinaryOp::Min, last, part);
        instant = f.binary(BinaryOp::Add, instant, slack);
    }
    f.binary(BinaryOp::Add, time, instant)
}
