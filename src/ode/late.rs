//! Events that arrive behind the test of the threshold.
//!
//! In comes a model; out go those that arrive between two steps, and errors where it cannot be said what that means.
//! Never true here: a model is refused in which nothing arrives behind a test.

use super::{Condition, Model, Node, NodeId, Spike, StateId, evaluate};
use crate::diag::{Code, Diagnostic};
use crate::hir::{Arrivals, Method};
use crate::operators::{BinaryOp, Value};
use crate::source::Span;

impl Model {
    /// For each projection, whether what it brings arrives between two steps: behind the threshold, the reset and the spikes of the step in which it is due.
    /// So it is where nothing can be known earlier, without a delay, and for all that leads to the same receptor. Only with [`Arrivals::AfterThreshold`].
    pub fn between_steps(&self) -> Vec<bool> {
        if self.arrivals.0 != Arrivals::AfterThreshold || self.method == Method::Adaptive {
            return vec![false; self.projections.len()];
        }
        let amounts = self.graph.reachable(self.modulators.iter().map(|m| m.amount));
        let modulates = |at: usize| {
            amounts.iter().any(|&id| matches!(self.graph.node(id), Node::Arrived(p, _) if p as usize == at))
        };
        let at_once = |delay| matches!(evaluate(self, delay), Ok(Value::Real(delay)) if delay < 0.5 * self.dt);
        let own = |(at, p): (usize, &super::Projection)| p.graded.is_none() && !modulates(at) && at_once(p.delay);
        let own: Vec<bool> = self.projections.iter().enumerate().map(own).collect();
        let shared =
            |p: &super::Projection| self.projections.iter().zip(&own).any(|(q, own)| *own && q.arrives == p.arrives);
        self.projections.iter().map(shared).collect()
    }

    /// Does a state certainly not change in the step behind a spike?
    pub fn surely_held(&self, spike: &Spike, state: StateId) -> bool {
        let lasts = |duration| matches!(evaluate(self, duration), Ok(Value::Real(x)) if x > 0.5 * self.dt);
        spike.held.contains(&state) && spike.refractory.is_some_and(lasts)
    }

    /// What the reset of a spike makes of what arrives between its step and the next.
    pub fn meets_reset(&self, reset: (StateId, NodeId), jumps: &[StateId]) -> Meets {
        let (state, value) = reset;
        let reads = |value: NodeId| {
            let nodes = self.graph.reachable([value]);
            nodes.iter().any(|&id| matches!(self.graph.node(id), Node::State(s) if jumps.contains(&s)))
        };
        let is_own = |id: NodeId| self.graph.node(id) == Node::State(state);
        match self.graph.node(value) {
            Node::Binary(BinaryOp::Add | BinaryOp::Sub, own, other) if is_own(own) && !reads(other) => Meets::Adds,
            _ if reads(value) => Meets::Reads,
            _ => Meets::Sets,
        }
    }
}

/// How the reset of a state goes with what is added to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Meets {
    /// Both are added: their order does not matter.
    Adds,
    /// It is set: what was added before is lost.
    Sets,
    /// The new value depends on what has been added.
    Reads,
}

/// Errors of a model with [`Arrivals::AfterThreshold`]: adaptive steps have no order within them, and a crossing that an event makes behind the test is
/// none for the next one, which sees both of its sides above.
pub fn not_late(model: &Model) -> Vec<Diagnostic> {
    let (Arrivals::AfterThreshold, Some(key)) = model.arrivals else { return Vec::new() };
    let error = |span, message: String, why| Diagnostic::new(Code::BadValue, span, message, why);
    if model.method == Method::Adaptive {
        let message = "`adaptive` has no order of arrivals and thresholds within a step".into();
        let d = error(key, message, "there it says nothing");
        return vec![
            d.help("leave `arrivals` out, or choose a method with steps of `dt`, such as `method = exp_euler`"),
        ];
    }
    let mut found = Vec::new();
    for spike in model.populations.iter().filter_map(|population| population.spike.as_ref()) {
        let Condition::Crosses(quantity, level) = spike.condition else { continue };
        let read = model.graph.reachable([quantity, level]);
        let jumps = |id: &NodeId| match model.graph.node(*id) {
            Node::State(state) if model.jumps.iter().any(|jump| jump.state == state) => Some(state),
            _ => None,
        };
        if let Some(state) = read.iter().find_map(jumps) {
            let message =
                format!("what events add to `{}` behind the threshold never crosses it", model.state(state).name);
            let d = error(spike.span, message, "a step begins with what has been added, so that it is no crossing");
            let d = d.see(key, "events arrive behind the threshold");
            found.push(d.help("write `spike when x >= level` and reset `x`, or let events arrive before: `arrivals = before_threshold`"));
        }
    }
    found.extend(not_between(model, key));
    found
}

/// Errors of resets that would have to see what arrives in their own step without a delay.
fn not_between(model: &Model, key: Span) -> Vec<Diagnostic> {
    let between = model.between_steps();
    let is_between = |id: &NodeId| matches!(model.graph.node(*id), Node::Arrived(p, _) if between[p as usize]);
    let jumps = model.jumps.iter().filter(|jump| model.graph.reachable([jump.amount]).iter().any(is_between));
    let jumps: Vec<StateId> = jumps.map(|jump| jump.state).collect();
    let spikes = model.populations.iter().filter_map(|population| population.spike.as_ref());
    let resets = spikes.flat_map(|spike| spike.resets.iter().map(move |&reset| (spike, reset)));
    let error = |(spike, reset): (&Spike, (StateId, NodeId))| {
        let jumps: Vec<StateId> = jumps.iter().copied().filter(|&state| !model.surely_held(spike, state)).collect();
        if model.meets_reset(reset, &jumps) != Meets::Reads {
            return None;
        }
        let message =
            format!("the reset of `{}` reads what events without a delay are added to", model.state(reset.0).name);
        let d = Diagnostic::new(Code::BadValue, spike.span, message, "they arrive behind the reset of their own step");
        let d = d.see(key, "events arrive behind the threshold");
        Some(d.help(
            "give the connections a delay of a step, or reset to a value or by a difference: `v = ...`, `v -= ...`",
        ))
    };
    resets.filter_map(error).collect()
}
