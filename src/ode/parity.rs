//! Does an expression change its sign with `dv`?
//!
//! In comes an expression of a junction's current; out goes whether it is odd or even in [`Node::Dv`], if that can be read from its form.
//! Never true here: an answer that depends on a value.

use super::{Graph, Node, NodeId};
use crate::operators::{BinaryOp, UnaryOp};
use rustc_hash::FxHashMap as HashMap;

/// What becomes of a value when `dv` changes its sign.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Parity {
    /// Nothing.
    Even,
    /// It changes its sign, too.
    Odd,
}

impl Parity {
    /// That of a product.
    fn times(self, other: Parity) -> Parity {
        if self == other { Parity::Even } else { Parity::Odd }
    }
}

impl Graph {
    /// The parity of an expression in `dv`; none if it has none, or none that its form tells.
    pub fn parity(&self, root: NodeId) -> Option<Parity> {
        let mut known: HashMap<NodeId, Option<Parity>> = HashMap::default();
        for id in self.reachable([root]) {
            known.insert(id, self.parity_of(id, |operand| known[&operand]));
        }
        known[&root]
    }

    fn parity_of(&self, id: NodeId, at: impl Fn(NodeId) -> Option<Parity>) -> Option<Parity> {
        use Parity::{Even, Odd};
        let all_even = || self.operands(id).into_iter().all(|operand| at(operand) == Some(Even)).then_some(Even);
        match self.node(id) {
            Node::Dv => Some(Odd),
            Node::Unary(op, a) => match op {
                UnaryOp::Neg | UnaryOp::Sin | UnaryOp::Tan | UnaryOp::Sinh | UnaryOp::Tanh => at(a),
                UnaryOp::Abs | UnaryOp::Cos | UnaryOp::Cosh => at(a).map(|_| Even),
                _ => all_even(),
            },
            Node::Binary(op, a, b) => match op {
                BinaryOp::Add | BinaryOp::Sub => at(a).filter(|parity| Some(*parity) == at(b)),
                BinaryOp::Mul | BinaryOp::Div => Some(at(a)?.times(at(b)?)),
                BinaryOp::Pow => match (at(a)?, self.constant(b)?) {
                    (Odd, n) if n % 2.0 == 1.0 || n % 2.0 == -1.0 => Some(Odd),
                    (Odd, n) if n % 2.0 != 0.0 => None,
                    (Odd | Even, _) => Some(Even),
                },
                _ => all_even(),
            },
            Node::Select(c, a, b) => at(a).filter(|parity| Some(*parity) == at(b) && at(c) == Some(Even)),
            _ => all_even(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::Dim;

    #[test]
    fn parity_is_read_from_the_form() {
        let mut g = Graph::default();
        let dv = g.add(Node::Dv);
        let (one, three) = (g.number(1.0, Dim::ONE), g.number(3.0, Dim::ONE));
        let half = g.number(0.5, Dim::ONE);
        let square = g.binary(BinaryOp::Mul, dv, dv);
        let bell = g.unary(UnaryOp::Neg, square);
        let bell = g.unary(UnaryOp::Exp, bell);
        let shifted = g.binary(BinaryOp::Sub, dv, one);
        let grows = g.unary(UnaryOp::Exp, dv);
        let zero = g.number(0.0, Dim::ONE);
        let forward = g.binary(BinaryOp::Gt, dv, zero);
        let magnitude = g.unary(UnaryOp::Abs, dv);
        let far = g.binary(BinaryOp::Gt, magnitude, one);
        let tanh = g.unary(UnaryOp::Tanh, dv);
        let cases = [
            (dv, Some(Parity::Odd)),
            (square, Some(Parity::Even)),
            (g.binary(BinaryOp::Mul, dv, bell), Some(Parity::Odd)),
            (shifted, None),
            (grows, None),
            (g.binary(BinaryOp::Pow, dv, three), Some(Parity::Odd)),
            (g.binary(BinaryOp::Pow, dv, half), None),
            (g.select(forward, dv, zero), None),
            (g.select(far, dv, tanh), Some(Parity::Odd)),
            (g.binary(BinaryOp::Max, dv, one), None),
            (one, Some(Parity::Even)),
        ];
        for (expression, parity) in cases {
            assert_eq!(g.parity(expression), parity, "{:?}", g.node(expression));
        }
    }
}
