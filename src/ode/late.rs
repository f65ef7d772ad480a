//! Events that arrive behind the test of the threshold.
//!
//! In comes a model; out go errors where it cannot be said what that means.
//! Never true here: a model is refused in which nothing arrives behind a test.

use super::{Condition, Model, Node, NodeId};
use crate::diag::{Code, Diagnostic};
use crate::hir::{Arrivals, Method};

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
    found
}
