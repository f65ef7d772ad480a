//! Where an expression stops to be a finite number.
//!
//! In come expressions and the values of what they read; out goes the first operation in them that makes something infinite or NaN of
//! finite numbers, and what it is.
//! Never true here: a value that is not known is guessed at; what depends on one is passed over.

use super::{Model, Node, NodeId, Operands, show};
use crate::operators::{BinaryOp, UnaryOp, Value, eval_binary, eval_unary};
use rustc_hash::FxHashMap as HashMap;

/// An operation without a finite result.
#[derive(Debug, Clone, PartialEq)]
pub struct Fault {
    /// What it is, such as `0 / 0`.
    pub what: &'static str,
    /// The operation as text, in canonical units.
    pub text: String,
    /// What can be done about it, unless a smaller time step would.
    pub help: Option<&'static str>,
}

const LIMIT: &str = "a quotient that has a limit there is seen in forms such as `x / (exp(x) - 1)`, with one `x` in both places, \
    or `exp_linear_rate(v, rate, midpoint, scale)`; any other needs a guard: `if abs(x) < 1e-6 then ... else ...`";

const POLE: &str = "the divisor must not become 0; what has a limit there as a whole is seen in forms such as `x / (exp(x) - 1)` or \
    `x / tanh(x)`, with one `x` in both places, or `exp_linear_rate(v, rate, midpoint, scale)`";

/// The first fault in expressions, given the values of leaves.
pub fn fault(model: &Model, roots: &[NodeId], leaf: impl Fn(Node) -> Option<Value>) -> Option<Fault> {
    let mut values: HashMap<NodeId, Value> = HashMap::default();
    for id in model.graph.reachable(roots.iter().copied()) {
        let node = model.graph.node(id);
        let at = |n: NodeId| values.get(&n).copied();
        let value = match node {
            Node::Const(bits, _) => Some(Value::Real(f64::from_bits(bits))),
            Node::Bool(b) => Some(Value::Mask(b)),
            Node::Unary(op, a) => at(a).and_then(|a| eval_unary(op, a)),
            Node::Binary(op, a, b) => at(a).zip(at(b)).and_then(|(a, b)| eval_binary(op, a, b)),
            Node::Select(c, a, b) => match at(c).and_then(Value::mask) {
                Some(true) => at(a),
                Some(false) => at(b),
                None => None,
            },
            Node::Param(_)
            | Node::State(_)
            | Node::Next(_)
            | Node::Slope(..)
            | Node::Point(..)
            | Node::Refractory(_)
            | Node::Time
            | Node::StepTime
            | Node::StepLength
            | Node::White(_)
            | Node::Index
            | Node::Dv
            | Node::Junction(..)
            | Node::Conductance(_)
            | Node::Arrived(..)
            | Node::Amount(_)
            | Node::Since
            | Node::Beyond
            | Node::Measure(_)
            | Node::Outward(_)
            | Node::Draw(..)
            | Node::Data(_)
            | Node::Series(..)
            | Node::Noise(..) => leaf(node),
            // How many are drawn is not known, but whether any number can be: the median tells.
            Node::Events(_, mean) => at(mean)
                .and_then(|mean| eval_binary(BinaryOp::Poisson, Value::Real(0.5), mean))
                .filter(|median| median.real().is_some_and(f64::is_nan))
                .or_else(|| leaf(node)),
        };
        values.extend(value.map(|value| (id, value)));
    }
    // What a condition leaves out may be anything.
    let mut waiting = roots.to_vec();
    let mut culprit: Option<NodeId> = None;
    while let Some(id) = waiting.pop() {
        if values.get(&id).and_then(|v| v.real()).is_none_or(f64::is_finite) {
            continue;
        }
        culprit = Some(id);
        let operands = match model.graph.node(id) {
            Node::Select(c, a, b) => match values.get(&c).and_then(|c| c.mask()) {
                Some(chosen) => Operands::from_iter([if chosen { a } else { b }]),
                None => Operands::new(),
            },
            _ => model.graph.operands(id),
        };
        waiting.clear();
        waiting.extend(operands);
    }
    let id = culprit?;
    let (what, help) = describe(&values, model.graph.node(id))?;
    Some(Fault { what, text: show(model, id), help })
}

fn describe(values: &HashMap<NodeId, Value>, node: Node) -> Option<(&'static str, Option<&'static str>)> {
    const FLOOR: &str = "`max(x, 0)` keeps it from falling below 0";
    let at = |n: NodeId| values.get(&n).and_then(|v| v.real());
    Some(match node {
        Node::Binary(BinaryOp::Div, a, b) if at(b) == Some(0.0) => match at(a) {
            Some(0.0) => ("0 / 0", Some(LIMIT)),
            _ => ("a division by 0", Some(POLE)),
        },
        Node::Binary(BinaryOp::Add | BinaryOp::Sub, ..) => ("the difference of two infinities", None),
        Node::Binary(BinaryOp::Mul | BinaryOp::Div, ..) => ("a result beyond the largest number", None),
        Node::Binary(BinaryOp::Pow, a, _) if at(a).is_some_and(|a| a < 0.0) => {
            ("a fractional power of a negative number", Some(FLOOR))
        }
        Node::Binary(BinaryOp::Poisson, ..) => ("a Poisson number whose mean is below 0 or above 708", None),
        Node::Events(..) => (
            "a Poisson number of events in a step whose mean is below 0 or above 708",
            Some("a rate must not fall below 0: `max(rate, 0 Hz)`; for more events at once take several drives"),
        ),
        Node::Unary(UnaryOp::Sqrt, _) => ("the root of a negative number", Some(FLOOR)),
        Node::Unary(UnaryOp::Ln | UnaryOp::Log10, _) => {
            ("the logarithm of a number that is not positive", Some("its argument must stay above 0"))
        }
        Node::Unary(UnaryOp::Exp | UnaryOp::Sinh | UnaryOp::Cosh, _) => {
            ("an exponential beyond the largest number", None)
        }
        _ => return None,
    })
}
