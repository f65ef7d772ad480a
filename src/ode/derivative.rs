//! Derivatives of expressions in a state or in a parameter.
//!
//! In come an expression and a state or a parameter; out goes the derivative while everything else (other states, parameters, the time) is held.
//! Never true here: something is dropped or approximated, or the derivative is 0/0 where the expression is smooth.
//!
//! Where an expression has a corner or jumps (`abs`, `min`, `floor`, a condition), the derivative is that of the side it is on.

use super::{Graph, Model, Node, NodeId, ParamId, StateId};
use crate::operators::{BinaryOp, UnaryOp};
use crate::units::Dim;
use rustc_hash::FxHashMap as HashMap;

/// Does `root` read the state?
pub fn depends(g: &Graph, root: NodeId, state: StateId) -> bool {
    g.reachable([root]).into_iter().any(|n| g.node(n) == Node::State(state))
}

/// The derivative of `root` in the state; `None` if it does not read the state. (Numbers in it have no dimensions of their own.)
pub fn derivative(g: &mut Graph, root: NodeId, state: StateId) -> Option<NodeId> {
    let leaf = |g: &mut Graph, node| match node {
        Node::State(s) => (s == state).then(|| g.number(1.0, Dim::ONE)),
        _ => None,
    };
    differentiated(g, root, &leaf)
}

/// The derivative of `root` in [`Node::Dv`]; `None` if it does not depend on it.
pub fn derivative_in_dv(g: &mut Graph, root: NodeId) -> Option<NodeId> {
    differentiated(g, root, &|g, node| (node == Node::Dv).then(|| g.number(1.0, Dim::ONE)))
}

/// The derivative of `root` in a leaf: a state, a parameter, [`Node::Dv`] or the current through junctions.
pub fn derivative_in(g: &mut Graph, root: NodeId, leaf: Node) -> Option<NodeId> {
    differentiated(g, root, &|g, node| (node == leaf).then(|| g.number(1.0, Dim::ONE)))
}

/// The derivative of `root` in a parameter, through all parameters that depend on it; `None` if none does that `root` reads.
pub fn derivative_in_param(model: &mut Model, root: NodeId, param: ParamId) -> Option<NodeId> {
    let mut slopes: HashMap<ParamId, Option<NodeId>> = HashMap::default();
    let one = model.graph.number(1.0, Dim::ONE);
    slopes.insert(param, Some(one));
    let mut open = params_of(&model.graph, root);
    while let Some(&next) = open.last() {
        let value = model.param(next).value;
        let before: Vec<ParamId> = match slopes.contains_key(&next) {
            true => Vec::new(),
            false => params_of(&model.graph, value).into_iter().filter(|p| !slopes.contains_key(p)).collect(),
        };
        // What depends on itself has been refused; it must not keep this from ending.
        if !before.is_empty() && open.len() <= model.params.len() {
            open.extend(before);
            continue;
        }
        open.pop();
        if !slopes.contains_key(&next) {
            let slope = differentiated(&mut model.graph, value, &|_, node| of_params(&slopes, node));
            slopes.insert(next, slope);
        }
    }
    differentiated(&mut model.graph, root, &|_, node| of_params(&slopes, node))
}

fn of_params(slopes: &HashMap<ParamId, Option<NodeId>>, node: Node) -> Option<NodeId> {
    if let Node::Param(p) = node { slopes.get(&p).copied().flatten() } else { None }
}

/// The parameters that an expression reads.
fn params_of(g: &Graph, root: NodeId) -> Vec<ParamId> {
    let param = |n| if let Node::Param(p) = g.node(n) { Some(p) } else { None };
    g.reachable([root]).into_iter().filter_map(param).collect()
}

/// The derivative of `root`, where `leaf` has those of states and parameters.
fn differentiated(g: &mut Graph, root: NodeId, leaf: &dyn Fn(&mut Graph, Node) -> Option<NodeId>) -> Option<NodeId> {
    let mut slopes: HashMap<NodeId, NodeId> = HashMap::default();
    for id in g.reachable([root]) {
        let slope = match g.node(id) {
            node @ (Node::State(_) | Node::Param(_) | Node::Dv | Node::Junction(..)) => leaf(g, node),
            Node::Unary(op, a) => slopes.get(&a).copied().and_then(|slope| unary(g, id, op, a, slope)),
            Node::Binary(op, a, b) => {
                let both = [slopes.get(&a).copied(), slopes.get(&b).copied()];
                binary(g, id, op, [a, b], both)
            }
            Node::Select(c, a, b) => match (slopes.get(&a).copied(), slopes.get(&b).copied()) {
                (None, None) => None,
                (x, y) => Some(select(g, c, x, y)),
            },
            // Files and noise are functions of the time.
            Node::Const(..)
            | Node::Bool(_)
            | Node::Next(_)
            | Node::Slope(..)
            | Node::Point(..)
            | Node::Refractory(_)
            | Node::Time
            | Node::StepTime
            | Node::StepLength
            | Node::White(_)
            | Node::Index
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
            | Node::Noise(..)
            | Node::Events(..) => None,
        };
        slopes.extend(slope.map(|slope| (id, slope)));
    }
    slopes.get(&root).copied()
}

/// The derivative of `op a`, whose value is `value`, where that of `a` is `slope`.
fn unary(g: &mut Graph, value: NodeId, op: UnaryOp, a: NodeId, slope: NodeId) -> Option<NodeId> {
    let outer = match op {
        UnaryOp::Neg => return Some(negate(g, slope)),
        UnaryOp::Abs => {
            let (zero, minus) = (g.number(0.0, Dim::ONE), negate(g, slope));
            let below = g.binary(BinaryOp::Lt, a, zero);
            return Some(g.select(below, minus, slope));
        }
        UnaryOp::Narrow | UnaryOp::Widen | UnaryOp::Nonzero | UnaryOp::Finite => return Some(slope),
        UnaryOp::Floor | UnaryOp::Ceil | UnaryOp::Not => return None,
        UnaryOp::Sqrt => {
            let half = g.number(0.5, Dim::ONE);
            g.binary(BinaryOp::Div, half, value)
        }
        UnaryOp::Exp => value,
        UnaryOp::Expm1 => g.unary(UnaryOp::Exp, a),
        UnaryOp::Exp2 | UnaryOp::Exp2m1 => {
            let power = g.unary(UnaryOp::Exp2, a);
            scaled(g, std::f64::consts::LN_2, power)
        }
        UnaryOp::Ln => return Some(g.binary(BinaryOp::Div, slope, a)),
        UnaryOp::Log2 | UnaryOp::Log10 => {
            let per = if op == UnaryOp::Log2 { std::f64::consts::LOG2_E } else { std::f64::consts::LOG10_E };
            let slope = scaled(g, per, slope);
            return Some(g.binary(BinaryOp::Div, slope, a));
        }
        UnaryOp::Sin => g.unary(UnaryOp::Cos, a),
        UnaryOp::Cos => {
            let sine = g.unary(UnaryOp::Sin, a);
            g.unary(UnaryOp::Neg, sine)
        }
        UnaryOp::Sinh => g.unary(UnaryOp::Cosh, a),
        UnaryOp::Cosh => g.unary(UnaryOp::Sinh, a),
        UnaryOp::Tan | UnaryOp::Tanh => {
            let (one, square) = (g.number(1.0, Dim::ONE), g.binary(BinaryOp::Mul, value, value));
            g.binary(if op == UnaryOp::Tan { BinaryOp::Add } else { BinaryOp::Sub }, one, square)
        }
        UnaryOp::Linoid => linoid(g, value, a),
        // ln 2 over the linoid of x ln 2.
        UnaryOp::Exp2rel => {
            let ln2 = g.number(std::f64::consts::LN_2, Dim::ONE);
            let (in_e, inverse) = (g.binary(BinaryOp::Mul, a, ln2), g.binary(BinaryOp::Div, ln2, value));
            let (rise, square) = (linoid(g, inverse, in_e), g.binary(BinaryOp::Mul, value, value));
            let fall = g.binary(BinaryOp::Mul, rise, square);
            negate(g, fall)
        }
    };
    Some(times(g, slope, outer))
}

/// The derivative of `l = x / (e^x - 1)`: `l (1 - (l + x)) / x`, and where that cancels (`|x| < 1/2`) its series in Bernoulli's
/// numbers, `-1/2 + x/6 - x^3/180 + ...`, to the last place. Its own derivative is smooth in the same way.
fn linoid(g: &mut Graph, l: NodeId, x: NodeId) -> NodeId {
    const SERIES: [f64; 8] = [
        1.0 / 6.0,
        -1.0 / 180.0,
        1.0 / 5040.0,
        -1.0 / 151_200.0,
        1.0 / 4_790_016.0,
        -691.0 / 108_972_864_000.0,
        1.0 / 5_337_446_400.0,
        -3617.0 / 666_913_927_680_000.0,
    ];
    let (one, half, border) = (g.number(1.0, Dim::ONE), g.number(-0.5, Dim::ONE), g.number(0.5, Dim::ONE));
    let square = g.binary(BinaryOp::Mul, x, x);
    let mut sum = g.number(SERIES[SERIES.len() - 1], Dim::ONE);
    for &coefficient in SERIES[..SERIES.len() - 1].iter().rev() {
        let coefficient = g.number(coefficient, Dim::ONE);
        sum = g.binary(BinaryOp::Mul, sum, square);
        sum = g.binary(BinaryOp::Add, sum, coefficient);
    }
    let near = g.binary(BinaryOp::Mul, sum, x);
    let near = g.binary(BinaryOp::Add, near, half);
    // l + x is the linoid of -x.
    let reverse = g.binary(BinaryOp::Add, l, x);
    let rest = g.binary(BinaryOp::Sub, one, reverse);
    let product = g.binary(BinaryOp::Mul, l, rest);
    let far = g.binary(BinaryOp::Div, product, x);
    let size = g.unary(UnaryOp::Abs, x);
    let cancels = g.binary(BinaryOp::Lt, size, border);
    g.select(cancels, near, far)
}

/// The derivative of `a op b`, whose value is `value`, from those of `a` and `b`.
fn binary(
    g: &mut Graph,
    value: NodeId,
    op: BinaryOp,
    [a, b]: [NodeId; 2],
    slopes: [Option<NodeId>; 2],
) -> Option<NodeId> {
    match op {
        BinaryOp::Add => sum(g, slopes[0], slopes[1]),
        BinaryOp::Sub => match slopes {
            [Some(x), Some(y)] => Some(g.binary(BinaryOp::Sub, x, y)),
            [x, None] => x,
            [None, Some(y)] => Some(negate(g, y)),
        },
        BinaryOp::Mul => {
            let [x, y] = slopes;
            let (left, right) = (x.map(|x| times(g, x, b)), y.map(|y| times(g, y, a)));
            sum(g, left, right)
        }
        BinaryOp::Div => {
            // (a' - (a / b) b') / b
            let above = match slopes {
                [None, None] => return None,
                [Some(x), None] => x,
                [x, Some(y)] => {
                    let of_divisor = times(g, y, value);
                    match x {
                        Some(x) => g.binary(BinaryOp::Sub, x, of_divisor),
                        None => g.unary(UnaryOp::Neg, of_divisor),
                    }
                }
            };
            Some(g.binary(BinaryOp::Div, above, b))
        }
        BinaryOp::Pow => {
            let of_base = slopes[0].map(|x| {
                let less = match g.constant(b) {
                    Some(n) => g.number(n - 1.0, Dim::ONE),
                    None => {
                        let one = g.number(1.0, Dim::ONE);
                        g.binary(BinaryOp::Sub, b, one)
                    }
                };
                let power = g.binary(BinaryOp::Pow, a, less);
                let outer = g.binary(BinaryOp::Mul, b, power);
                times(g, x, outer)
            });
            let of_exponent = slopes[1].map(|y| {
                let ln = g.unary(UnaryOp::Ln, a);
                let outer = g.binary(BinaryOp::Mul, value, ln);
                times(g, y, outer)
            });
            sum(g, of_base, of_exponent)
        }
        BinaryOp::Min | BinaryOp::Max => {
            if slopes == [None, None] {
                return None;
            }
            let first = g.binary(if op == BinaryOp::Min { BinaryOp::Lt } else { BinaryOp::Gt }, a, b);
            Some(select(g, first, slopes[0], slopes[1]))
        }
        BinaryOp::Lt
        | BinaryOp::Le
        | BinaryOp::Gt
        | BinaryOp::Ge
        | BinaryOp::Eq
        | BinaryOp::Ne
        | BinaryOp::And
        | BinaryOp::Or => None,
        // A whole number: its derivative is 0 wherever it has one.
        BinaryOp::Poisson => None,
    }
}

fn sum(g: &mut Graph, a: Option<NodeId>, b: Option<NodeId>) -> Option<NodeId> {
    match (a, b) {
        (Some(a), Some(b)) => Some(g.binary(BinaryOp::Add, a, b)),
        (a, None) => a,
        (None, b) => b,
    }
}

fn select(g: &mut Graph, c: NodeId, a: Option<NodeId>, b: Option<NodeId>) -> NodeId {
    let zero = g.number(0.0, Dim::ONE);
    g.select(c, a.unwrap_or(zero), b.unwrap_or(zero))
}

fn negate(g: &mut Graph, a: NodeId) -> NodeId {
    match g.node(a) {
        // Keeps the dimension of a number.
        Node::Const(bits, dim) => g.number(-f64::from_bits(bits), dim),
        _ => g.unary(UnaryOp::Neg, a),
    }
}

fn scaled(g: &mut Graph, by: f64, a: NodeId) -> NodeId {
    let by = g.number(by, Dim::ONE);
    g.binary(BinaryOp::Mul, by, a)
}

/// A product; where the slope is 0 on one side of a condition, it is 0 there whatever the factor is (a vertical tangent, say).
fn times(g: &mut Graph, slope: NodeId, factor: NodeId) -> NodeId {
    let is_zero = |g: &Graph, n: NodeId| g.constant(n) == Some(0.0);
    match (g.node(slope), g.constant(slope)) {
        (_, Some(1.0)) => factor,
        (_, Some(-1.0)) => negate(g, factor),
        (Node::Select(c, a, b), _) if is_zero(g, a) || is_zero(g, b) => {
            let [a, b] = [a, b].map(|side| if is_zero(g, side) { side } else { times(g, side, factor) });
            g.select(c, a, b)
        }
        _ => g.binary(BinaryOp::Mul, slope, factor),
    }
}
