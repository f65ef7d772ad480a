//! Parameters that move switches in time.
//!
//! In come a model and a parameter; out goes whether it decides when something is switched, such as the end of a pulse or of a ramp, or the moment at which
//! a state meets a threshold: derivatives know of both sides of such an edge, and nothing of the edge.
//! Never true here: a threshold counts that the sides read, too. They may meet there, as those of a rate around its 0/0 do.

use super::{Model, Node, NodeId, ParamId, derivative_in_param};
use crate::operators::{BinaryOp, UnaryOp};

/// Does the parameter decide when something is switched? With `surrogate`, what makes a spike has a slope, and only what it
/// compares is looked at.
pub fn moves_a_switch(model: &Model, param: ParamId, surrogate: bool) -> bool {
    let mut roots: Vec<NodeId> = Vec::new();
    for state in &model.states {
        roots.push(state.rate);
        roots.extend(state.clamp.iter().map(|clamp| clamp.value));
    }
    roots.extend(model.cables.iter().flat_map(|cable| &cable.currents).map(|current| current.outward));
    for spike in model.populations.iter().filter_map(|population| population.spike.as_ref()) {
        let compared = |root| if surrogate { compared(model, root) } else { vec![root] };
        roots.extend(spike.condition.reads().into_iter().flat_map(compared));
        roots.extend(spike.resets.iter().map(|reset| reset.1).chain(spike.refractory));
    }
    roots.extend(model.jumps.iter().map(|jump| jump.amount));
    roots.extend(model.graded().map(|(_, _, graded)| graded.sent));
    roots.extend(model.records.iter().map(|record| record.value));
    let mut model = model.clone();
    let reached = model.graph.reachable(roots);
    let whole_turns: Vec<NodeId> = reached.iter().filter_map(|&id| whole_turns(&model, id)).collect();
    let mut moved = Vec::new();
    for id in reached {
        if switches(&model, id) && !whole_turns.contains(&id) {
            // A time in whole steps decides, too.
            let mut decide = model.graph.reachable([id]);
            decide.retain(|id| jumps(&model, *id) && !whole_turns.contains(id));
            moved.extend(decide.into_iter().flat_map(|id| model.graph.operands(id)));
        }
        if let Node::Select(condition, ..) = model.graph.node(id)
            && reads(&model, condition, |node| matches!(node, Node::State(_)))
            && derivative_in_param(&mut model, id, param).is_none()
        {
            moved.extend(compared(&model, condition));
        }
    }
    moved.into_iter().any(|operand| derivative_in_param(&mut model, operand, param).is_some())
}

/// The whole turns that a sine leaves out of its angle, which nobody sees.
fn whole_turns(model: &Model, sine: NodeId) -> Option<NodeId> {
    let node = |id| model.graph.node(id);
    let Node::Unary(UnaryOp::Sin, angle) = node(sine) else { return None };
    let Node::Binary(BinaryOp::Add, turned, _) = node(angle) else { return None };
    let Node::Binary(BinaryOp::Mul, turn, part) = node(turned) else { return None };
    let Node::Binary(BinaryOp::Sub, turns, whole) = node(part) else { return None };
    let is_turn = matches!(node(turn), Node::Const(x, _) if x == std::f64::consts::TAU.to_bits());
    (is_turn && node(whole) == Node::Unary(UnaryOp::Floor, turns)).then_some(whole)
}

/// The numbers that the comparisons of a condition compare.
fn compared(model: &Model, condition: NodeId) -> Vec<NodeId> {
    match model.graph.node(condition) {
        Node::Binary(BinaryOp::And | BinaryOp::Or, a, b) => [a, b].iter().flat_map(|&x| compared(model, x)).collect(),
        Node::Unary(UnaryOp::Not, x) => compared(model, x),
        Node::Binary(BinaryOp::Lt | BinaryOp::Le | BinaryOp::Gt | BinaryOp::Ge, a, b) => vec![a, b],
        _ => vec![condition],
    }
}

/// Is it a comparison or a whole number?
fn jumps(model: &Model, id: NodeId) -> bool {
    match model.graph.node(id) {
        Node::Binary(op, ..) => {
            matches!(op, BinaryOp::Lt | BinaryOp::Le | BinaryOp::Gt | BinaryOp::Ge | BinaryOp::Eq | BinaryOp::Ne)
        }
        Node::Unary(op, _) => matches!(op, UnaryOp::Floor | UnaryOp::Ceil),
        _ => false,
    }
}

/// Is it such a thing of the time and no state?
fn switches(model: &Model, id: NodeId) -> bool {
    if !jumps(model, id) {
        return false;
    }
    reads(model, id, |node| matches!(node, Node::Time | Node::StepTime))
        && !reads(model, id, |node| matches!(node, Node::State(_)))
}

/// Does an expression read something like this?
fn reads(model: &Model, id: NodeId, what: fn(Node) -> bool) -> bool {
    model.graph.reachable([id]).into_iter().any(|n| what(model.graph.node(n)))
}
