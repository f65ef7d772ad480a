//! White noise in equations.
//!
//! In come derivatives; out go what is left without noise and what multiplies each source, or why a model cannot be solved with its noise.
//! Never true here: noise is read in another way than multiplied by something and added (Ito's integral has no other).

use super::linear::row_in;
use super::{Graph, Model, Node, NodeId, derivative};
use crate::diag::{Code, Diagnostic};
use crate::hir::Method;
use crate::source::Span;

/// A derivative with noise in it.
#[derive(Debug, Clone, PartialEq)]
pub struct Noisy {
    /// What is left without noise, unless nothing is.
    pub drift: Option<NodeId>,
    /// The sources, each with what multiplies it.
    pub sources: Vec<(NodeId, NodeId)>,
}

/// A derivative as drift and noise; none if there is no noise in it, or it is no such sum.
pub fn noisy(g: &mut Graph, rate: NodeId) -> Option<Noisy> {
    let row = row_in(g, rate, &source).ok()?;
    let sources: Vec<(NodeId, NodeId)> =
        row.coefficients.into_iter().map(|(stream, by)| (g.add(Node::White(stream)), by)).collect();
    (!sources.is_empty()).then_some(Noisy { drift: row.constant, sources })
}

fn source(node: Node) -> Option<u64> {
    if let Node::White(stream) = node { Some(stream) } else { None }
}

/// Errors where noise stands that the method cannot solve, or where there is no equation.
pub fn not_noise(model: &Model) -> Vec<Diagnostic> {
    let mut scratch = model.clone();
    let has = |root: NodeId| model.graph.reachable([root]).into_iter().any(|n| source(model.graph.node(n)).is_some());
    let mut found: Vec<(Span, &str, &str, String)> = Vec::new();
    let refused = matches!(model.method, Method::CrankNicolson | Method::Exact | Method::Heun | Method::Rk4);
    let method = format!("`method = {}` does not solve white noise", model.method.name());
    let product = "white noise can be multiplied by what it is not part of, and added, and nothing else";
    for state in &model.states {
        if has(state.rate) {
            let why = match (state.edges, state.scheme) {
                (Some(_), _) => "what a synapse has for itself moves between events only as a whole",
                (None, Some(_)) => "a kinetic scheme has no noise",
                (None, None) if row_in(&mut scratch.graph, state.rate, &source).is_err() => product,
                (None, None) if refused => &method,
                (None, None) => continue,
            };
            found.push((state.span, &state.name, "its equation has `xi()`", why.to_string()));
        }
        if state.clamp.is_some_and(|clamp| has(clamp.value)) {
            found.push((state.span, &state.name, "it is held at noise", "use `noise` or `ornstein_uhlenbeck`".into()));
        }
    }
    for cable in &model.cables {
        let name = &model.state(cable.v).name;
        for current in cable.currents.iter().filter(|current| has(current.outward)) {
            let why = match row_in(&mut scratch.graph, current.outward, &source) {
                Err(_) => product,
                Ok(_) if refused => &method,
                Ok(row) => {
                    let mut by = row.coefficients.into_values();
                    if by.all(|by| derivative(&mut scratch.graph, by, cable.v).is_none()) {
                        continue;
                    }
                    "along a cable, what multiplies noise cannot depend on the voltage"
                }
            };
            found.push((cable.span, name, "a current has `xi()`", why.to_string()));
        }
    }
    for p in &model.populations {
        let Some(spike) = &p.spike else { continue };
        if spike.reads().into_iter().any(has) {
            let why = "a value at one time has no white noise: that has no variance at a time".to_string();
            found.push((spike.span, &p.name, "its spikes read `xi()`", why));
        }
    }
    for (_, p, _) in model.graded().filter(|(.., graded)| has(graded.sent)) {
        found.push((p.span, &p.name, "what it sends has `xi()`", "white noise stands in equations".into()));
    }
    let error = |(span, name, label, why): (Span, &str, &str, String)| {
        let d =
            Diagnostic::new(Code::BadNoise, span, format!("`{name}` cannot be solved with its noise: {why}"), label);
        d.help(
            "`method = euler`, `exp_euler` and `cnexp` solve `x' = a + b * xi()`, with a and b of anything but noise",
        )
    };
    found.into_iter().map(error).collect()
}
