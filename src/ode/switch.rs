//! Parameters that move switches in time.
//!
//! In come a model and a parameter; out goes whether it decides when something is switched, such as the end of a pulse or of a ramp: derivatives know of
//! both sides of such an edge, and nothing of the edge.
//! Never true here: a threshold that a state meets counts.

use super::{Model, Node, NodeId, ParamId, derivative_in_param};
use crate::operators::{BinaryOp, UnaryOp};

/// Does the parameter decide when something is switched that is a function of time? With `surrogate`, what makes a spike has a slope, and only what it
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
    let switches: Vec<NodeId> = model.graph.reachable(roots).into_iter().filter(|&id| switches(&model, id)).collect();
    // A time in whole steps decides, too.
    let jumping = model.graph.reachable(switches).into_iter().filter(|&id| jumps(&model, id));
    jumping
        .flat_map(|id| model.graph.operands(id))
        .collect::<Vec<_>>()
        .into_iter()
        .any(|operand| derivative_in_param(&mut model, operand, param).is_some())
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
    let reads = model.graph.reachable([id]);
    let is = |what: fn(Node) -> bool| reads.iter().any(|&n| what(model.graph.node(n)));
    is(|node| matches!(node, Node::Time | Node::StepTime)) && !is(|node| matches!(node, Node::State(_)))
}
