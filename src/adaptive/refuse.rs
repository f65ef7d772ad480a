//! What cannot be solved with adaptive steps.
//!
//! In comes a flat model; out go errors with their places.
//! Never true here: a model is refused for its size.

use super::margin_of;
use crate::diag::{Code, Diagnostic};
use crate::hir::Method;
use crate::ode::{Condition, Model, Node, NodeId};
use crate::source::Span;

/// Errors where a model whose method is [`Method::Adaptive`] has what is known at steps only.
pub fn refused(model: &Model) -> Vec<Diagnostic> {
    if model.method != Method::Adaptive {
        return Vec::new();
    }
    let mut found = Vec::new();
    // What is read, where it stands, and by whom.
    let mut read: Vec<(NodeId, Span, String)> = Vec::new();
    let named = |name: &str| format!("`{name}`");
    for state in model.states.iter().filter(|state| state.edges.is_none()) {
        read.push((state.rate, state.span, named(&state.name)));
        read.extend(state.clamp.map(|clamp| (clamp.value, state.span, named(&state.name))));
    }
    for cable in &model.cables {
        let name = &model.state(cable.v).name;
        read.extend(cable.currents.iter().map(|current| (current.outward, cable.span, named(name))));
    }
    for jump in &model.jumps {
        let state = model.state(jump.state);
        read.push((jump.amount, state.span, named(&state.name)));
    }
    for population in &model.populations {
        let Some(spike) = &population.spike else { continue };
        let who = format!("the spike rule of `{}`", population.name);
        read.extend(spike.reads().into_iter().map(|root| (root, spike.span, who.clone())));
    }
    read.extend(model.records.iter().map(|record| (record.value, record.span, named(&record.name))));
    for record in model.records.iter().filter(|record| record.probe.is_some()) {
        let why = "`{}` is made by the currents of a step, which are those of the voltages that it is solved for";
        found.push(error(record.span, &why.replace("{}", &record.name)));
    }
    for (root, span, who) in read {
        let reason = model.graph.reachable([root]).into_iter().find_map(|id| match model.graph.node(id) {
            Node::Noise(..) | Node::White(_) => Some(format!("{who} reads noise, which is drawn anew step by step")),
            Node::Events(..) => Some(format!("{who} reads Poisson events, which are drawn step by step")),
            _ => None,
        });
        found.extend(reason.map(|reason| error(span, &reason)));
    }
    for p in model.projections.iter().filter(|p| p.plasticity.is_some()) {
        found.push(error(p.span, &format!("the synapses of `{}` change with spikes", p.name)));
    }
    for p in model.projections.iter().filter(|p| p.is_first() && p.place.is_some()) {
        found.push(error(p.span, &format!("`{}` brings the largest of what arrives at some places in a step", p.name)));
    }
    for (_, p, _) in model.graded() {
        let message = format!("`adaptive` does not solve this so far: the synapses of `{}` are graded", p.name);
        let d = Diagnostic::new(Code::AdaptiveMethod, p.span, message, "what they pass on follows a voltage");
        found.push(d.help("choose a method with steps of `dt`, such as `method = exp_euler`"));
    }
    for population in &model.populations {
        let Some(spike) = &population.spike else { continue };
        if let Condition::When(condition) = spike.condition
            && margin_of(&mut model.clone(), condition).is_none()
        {
            let why = "this condition does not compare numbers, so that it cannot be found out how near it is";
            found.push(error(spike.span, why));
        }
    }
    found.sort_by_key(|d| d.labels.first().map(|label| label.span.start));
    found.dedup_by(|a, b| {
        a.message == b.message && a.labels.first().map(|l| l.span) == b.labels.first().map(|l| l.span)
    });
    found
}

fn error(span: Span, reason: &str) -> Diagnostic {
    let message = format!("`adaptive` does not solve this: {reason}");
    let d = Diagnostic::new(Code::AdaptiveMethod, span, message, "it has no equation between two steps");
    d.help("choose a method with steps of `dt`, such as `method = cnexp`")
}
