//! Initial values in terms of parameters only.
//!
//! In comes a model whose initial values may read states and the time; out goes one in which a state there stands for its own initial
//! value, and the time for 0.
//! Never true here: an initial value depends on itself without a message.

use super::{Model, Node, NodeId, StateId};
use crate::diag::{Code, Diagnostic, Diagnostics};
use crate::units::Dim;
use rustc_hash::FxHashMap as HashMap;

/// Resolves all initial values. `false` if one depends on itself (and that has been said).
pub fn resolve(model: &mut Model, diagnostics: &mut Diagnostics) -> bool {
    let mut resolver = Resolver { done: vec![None; model.states.len()], model, diagnostics, failed: false };
    for i in 0..resolver.done.len() {
        resolver.value(StateId(i as u32), &mut Vec::new());
    }
    for i in 0..resolver.model.demands.len() {
        let at_the_start = resolver.at_the_start(resolver.model.demands[i].value, &mut Vec::new());
        resolver.model.demands[i].value = at_the_start;
    }
    let Resolver { done, model, failed, .. } = resolver;
    for (state, init) in model.states.iter_mut().zip(done) {
        state.init = init.unwrap_or(state.init);
    }
    !failed
}

struct Resolver<'m> {
    model: &'m mut Model,
    diagnostics: &'m mut Diagnostics,
    done: Vec<Option<NodeId>>,
    failed: bool,
}

impl Resolver<'_> {
    fn value(&mut self, id: StateId, stack: &mut Vec<StateId>) -> NodeId {
        if let Some(known) = self.done[id.0 as usize] {
            return known;
        }
        let state = self.model.state(id);
        let init = state.init;
        if stack.contains(&id) {
            let message = format!("the initial value of `{}` depends on itself", state.name);
            let label = "through the initial values of other states";
            let cyclic = Diagnostic::new(Code::CyclicDefinition, state.span, message, label);
            self.diagnostics.push(cyclic.help("give one of them a number: `init = 0.5`"));
            self.failed = true;
            return init;
        }
        stack.push(id);
        let init = self.at_the_start(init, stack);
        stack.pop();
        self.done[id.0 as usize] = Some(init);
        init
    }

    /// An expression with the initial values of the states that it reads, at time 0.
    fn at_the_start(&mut self, root: NodeId, stack: &mut Vec<StateId>) -> NodeId {
        let needed = self.model.graph.states_read([root]);
        let values: HashMap<StateId, NodeId> = needed.into_iter().map(|s| (s, self.value(s, stack))).collect();
        let zero = self.model.graph.number(0.0, Dim::TIME);
        let leaf = |node: Node| match node {
            Node::State(s) => values.get(&s).copied(),
            Node::Time | Node::StepTime => Some(zero),
            _ => None,
        };
        self.model.graph.replace(root, &leaf, &mut HashMap::default())
    }
}
