//! Spikes of a cell on their way back to its synapses.
//!
//! In comes a model; out go how far synapses are from the soma, and errors where it cannot be said what that means.
//! Never true here: a synapse that answers no spike of its target is looked at.
//!
//! A spike that arrives takes the delay; what lies behind the synapse, it spends in the dendrite. A spike of the target takes as long to the synapse.
//! All that happens at a synapse is told when it would have come to the soma: one that arrives behind the whole delay, one of the target behind
//! twice the part of the dendrite. So both stand in the order in which they reach the synapse, and its states are those of then.

use super::{Model, Node, NodeId, Plasticity, Projection, StateId, evaluate};
use crate::diag::{Code, Diagnostic};
use crate::hir::Coincident;
use crate::operators::Value;
use crate::source::Span;

impl Plasticity {
    /// What part of the delay is the way from the synapse to the soma.
    fn part(&self, model: &Model) -> f64 {
        match self.dendritic.map(|(part, _)| evaluate(model, part)) {
            Some(Ok(Value::Real(part))) => part,
            // What is not known has had an error.
            Some(_) | None => 0.0,
        }
    }

    /// Does a dendrite lie between the synapse and the soma?
    pub fn has_dendrite(&self, model: &Model) -> bool {
        self.part(model) != 0.0
    }
}

/// Errors of models in which what comes to a synapse cannot be told in its order.
pub fn not_in_order(model: &Model) -> Vec<Diagnostic> {
    let mut found = Vec::new();
    for (p, between) in model.projections.iter().zip(model.between_steps()) {
        let Some(plasticity) = p.plasticity.as_ref().filter(|plasticity| !plasticity.post.is_empty()) else { continue };
        if let (true, Some((_, span))) = (plasticity.has_dendrite(model), plasticity.dendritic) {
            found.extend(behind_the_dendrite(model, p, plasticity, span));
        }
        // A spike of the target has to be told in a step behind its own.
        if let (Coincident::PostFirst | Coincident::Apart, Some(key)) = model.coincident
            && !between
            && plasticity.part(model) < 0.5
        {
            found.push(too_early(model, p, plasticity, key));
        }
    }
    found
}

/// What happens at a synapse is told later than it happens: it cannot read what the soma has by then.
fn behind_the_dendrite(model: &Model, p: &Projection, plasticity: &Plasticity, span: Span) -> Vec<Diagnostic> {
    let error = |message: String, label| Diagnostic::new(Code::BadTarget, span, message, label);
    let of_target = |value: NodeId| {
        let of = |id: NodeId| match model.graph.node(id) {
            Node::State(state) if model.state(state).edges.is_none() => Some(state),
            _ => None,
        };
        model.graph.reachable([value]).into_iter().find_map(of)
    };
    let reads = |&(own, value): &(StateId, NodeId)| Some((own, of_target(value)?));
    let mut found = Vec::new();
    if let Some((own, state)) = plasticity.pre.iter().chain(&plasticity.post).find_map(reads) {
        let [own, state] = [own, state].map(|state| &model.state(state).name);
        let d = error(format!("what spikes make of `{own}` depends on `{state}`"), "a dendrite lies between the two");
        found.push(d.help("leave it out: so far what a synapse reads of its cell takes no time"));
    }
    if plasticity.modulator.is_some() {
        let d = error(format!("a modulator reaches the synapses of `{}`", p.name), "they lie behind a dendrite");
        found.push(d.help("leave it out: so far what modulates a synapse meets spikes that take no time to it"));
    }
    found
}

fn too_early(model: &Model, p: &Projection, plasticity: &Plasticity, key: Span) -> Diagnostic {
    let at = plasticity.dendritic.map_or(p.span, |(_, span)| span);
    let message = format!("a spike of the target cannot come before one that arrives through `{}`", p.name);
    let d = Diagnostic::new(Code::BadValue, at, message, "it comes to the synapse in the step that it is made in");
    let d = d.see(key, "it should come first");
    d.help(match behind_the_dendrite(model, p, plasticity, at)[..] {
        [] => {
            "say that it takes time to the synapse, as in NEST: `dendritic_fraction = 1`, at least 0.5; or leave `coincident` out"
        }
        _ => "leave `coincident` out, or let spikes arrive without a delay: `delay = 0 ms`, and `arrivals = after_threshold` in the run",
    })
}
