//! Removable singularities: quotients that are 0/0 at one place and smooth around it.
//!
//! In comes a model as it was written; out goes one in which a rate such as `(v + 40 mV) / (1 - exp(-(v + 40 mV) / 10 mV))` is
//! `10 mV * linoid(-(v + 40 mV) / 10 mV)`, with `linoid(u) = u / (e^u - 1)` and 1 at 0, before any method takes a derivative or any pass
//! rounds anything in another way.
//! Never true here: a quotient is rewritten that is not provably regular (a pole stays one), or one that cannot be 0/0.
//!
//! Whatever the spelling, an expression is a product of powers ([`product`]), in which a difference of exponentials is `e^u - 1` times
//! something without zeros (`sinh` and `tanh` too), and sums show what they are multiples of ([`poly`]). Since `e^u - 1 = u / linoid(u)`,
//! every such difference becomes a power of u, and the powers of u cancel against those of the other factors. Where the result has
//! no negative power of u left, the singularity was removable ([`exponentials`]). Any other quotient of functions of one such sum, as
//! `sin(x) / x`, has a series there, and near its zero a polynomial stands for it ([`limits`]). Both go on with what they made until nothing is left. A guard such as
//! `if abs(x) < 1e-6 then 1 - x / 2 else ...` around what is regular now goes ([`guards`]), so that it has no wrong slope at that place.
//! One whose reach is a parameter stays: what is computed inside of it, and its slope, is what is written there.

mod exponentials;
mod guards;
mod limits;
mod nodes;
mod poly;
mod product;
mod series;

use super::{Condition, Model, Node, NodeId};
use crate::operators::BinaryOp;
use limits::Poles;
use nodes::Nodes;
use rustc_hash::FxHashMap as HashMap;

/// Rewrites every expression of a model. (One whose types do not agree stays as it is; the verifier says so.)
pub fn recognise(model: &mut Model) {
    let end = model.graph.len() as u32;
    let Ok(mut nodes) = Nodes::new(model) else { return };
    let mut new: HashMap<NodeId, NodeId> = HashMap::default();
    let mut poles = Poles::default();
    for id in (0..end).map(NodeId) {
        let rebuilt = rebuild(&mut nodes, id, &new);
        let better = match nodes.graph().node(rebuilt) {
            Node::Binary(BinaryOp::Mul | BinaryOp::Div, _, _) if nodes.divides(rebuilt) => {
                let better = exponentials::regular(&mut nodes, rebuilt).unwrap_or(rebuilt);
                poles.without(&mut nodes, better)
            }
            Node::Binary(BinaryOp::Add | BinaryOp::Sub, _, _) => poles.without(&mut nodes, rebuilt),
            Node::Select(c, a, b) if rebuilt != id => guards::without_guard(&mut nodes, c, a, b).unwrap_or(rebuilt),
            _ => rebuilt,
        };
        new.insert(id, better);
    }
    replace(model, &new);
}

/// The node with its operands replaced.
fn rebuild(nodes: &mut Nodes<'_>, id: NodeId, new: &HashMap<NodeId, NodeId>) -> NodeId {
    let at = |n: NodeId| new[&n];
    let node = match nodes.graph().node(id) {
        Node::Unary(op, a) => Node::Unary(op, at(a)),
        Node::Binary(op, a, b) => Node::Binary(op, at(a), at(b)),
        Node::Select(c, a, b) => Node::Select(at(c), at(a), at(b)),
        Node::Series(d, t) => Node::Series(d, at(t)),
        Node::Noise(stream, every) => Node::Noise(stream, at(every)),
        Node::Events(stream, expected) => Node::Events(stream, at(expected)),
        leaf @ (Node::Const(..)
        | Node::Bool(_)
        | Node::Param(_)
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
        | Node::Data(_)) => leaf,
    };
    nodes.add(node)
}

/// Puts new nodes wherever the model names one.
fn replace(model: &mut Model, new: &HashMap<NodeId, NodeId>) {
    let put = |node: &mut NodeId| *node = new[node];
    model.params.iter_mut().for_each(|p| put(&mut p.value));
    for s in &mut model.states {
        put(&mut s.init);
        put(&mut s.rate);
        s.currents.iter_mut().for_each(put);
        if let Some(clamp) = &mut s.clamp {
            clamp.cells.iter_mut().for_each(put);
            put(&mut clamp.value);
        }
    }
    for p in &mut model.populations {
        p.sizes.iter_mut().for_each(put);
        let Some(spike) = &mut p.spike else { continue };
        match &mut spike.condition {
            Condition::Crosses(a, b) => {
                put(a);
                put(b);
            }
            Condition::When(a) => put(a),
        }
        spike.resets.iter_mut().for_each(|(_, value)| put(value));
        spike.refractory.iter_mut().for_each(put);
    }
    for cable in &mut model.cables {
        put(&mut cable.cm);
        put(&mut cable.ra);
        put(&mut cable.area);
        cable.currents.iter_mut().for_each(|current| put(&mut current.outward));
    }
    model.diffusions.iter_mut().for_each(|diffusion| put(&mut diffusion.coefficient));
    model.surrogate.iter_mut().for_each(put);
    for c in &mut model.connections {
        put(&mut c.current);
        c.rule.arguments_mut().into_iter().for_each(put);
    }
    for p in &mut model.projections {
        put(&mut p.weight);
        put(&mut p.delay);
        if let Some(plasticity) = &mut p.plasticity {
            plasticity.sent.iter_mut().for_each(|(value, _)| put(value));
            let crate::ode::Plasticity { pre, post, modulated, .. } = plasticity;
            pre.iter_mut().chain(post).chain(modulated).for_each(|(_, value)| put(value));
        }
        p.graded.iter_mut().for_each(|graded| put(&mut graded.sent));
        p.spacing.iter_mut().flatten().for_each(put);
        p.rule.arguments_mut().into_iter().for_each(put);
    }
    for p in &mut model.probes {
        put(&mut p.sigma);
        p.of.iter_mut()
            .flat_map(|heard| heard.spacing.iter_mut().chain(heard.offset.iter_mut().flatten()))
            .for_each(put);
    }
    model.modulators.iter_mut().for_each(|m| put(&mut m.amount));
    model.jumps.iter_mut().for_each(|j| put(&mut j.amount));
    model.waits.iter_mut().for_each(|w| put(&mut w.time));
    model.demands.iter_mut().for_each(|d| put(&mut d.value));
    model.arguments.iter_mut().for_each(|a| put(&mut a.value));
    for range in &mut model.ranges {
        put(&mut range.first);
        put(&mut range.end);
    }
    for r in &mut model.records {
        put(&mut r.value);
        let around = r.around.iter_mut().filter_map(|around| around.cells.as_mut());
        for (first, end) in r.cells.iter_mut().chain(around) {
            put(first);
            put(end);
        }
    }
}
