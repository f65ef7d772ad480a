//! The expression graph: every expression once.

use super::{NodeId, Param, ParamId, StateId};
use crate::morphology::Measure;
use crate::operators::{BinaryOp, Distribution, UnaryOp};
use crate::units::Dim;
use arrayvec::ArrayVec;
use rustc_hash::FxHashMap as HashMap;

/// A node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Node {
    /// A number (its bits) with its dimension.
    Const(u64, Dim),
    /// A truth value.
    Bool(bool),
    /// A parameter.
    Param(ParamId),
    /// A state.
    State(StateId),
    /// In the update of one state: the new value of another, which an earlier stage of the step has computed.
    Next(StateId),
    /// In a method of several stages: the derivative of a state that a stage has computed.
    Slope(StateId, u32),
    /// And the value of a state that a stage looks at; stage 0 looks at the state itself.
    Point(StateId, u32),
    /// Whether a cell of a population, by index, is refractory, so that what it holds stays in the step.
    Refractory(u32),
    /// The time, in ms.
    Time,
    /// The time at which the current step began: what switches (pulses) is held within a step.
    StepTime,
    /// How long a step is (ms), for what is drawn anew in every step. No equation of a user reads it.
    StepLength,
    /// White noise of each cell in an equation, of the variance 1 per time; the operand keeps one apart from another.
    White(u64),
    /// The number of the cell in its population.
    Index,
    /// In a junction's current: the voltage here minus the voltage there.
    Dv,
    /// The sum of a connection's currents out of this cell, at the voltages that a stage looks at.
    Junction(u32, u32),
    /// The sum of the slopes of a connection's currents in the voltage here. Only rows of cables read it.
    Conductance(u32),
    /// What events bring that arrive in this step, added up: those of a projection and of all that [arrive](crate::ode::Projection::arrives) with it. The
    /// number among what its synapses send. If they are graded: what cells send at what a stage looks at, added up; the number is that of the stage.
    Arrived(u32, u32),
    /// At an edge: how much of a modulator reaches the synapses of its target in this step, an index into [`Model::modulators`](crate::ode::Model::modulators).
    Amount(u32),
    /// At an edge: how long ago (ms) an event came to it last. No equation of a user reads it.
    Since,
    /// In what stands for the derivative of a spike: how far its cell is above the threshold, as a number in canonical units.
    Beyond,
    /// A number of the compartment.
    Measure(Measure),
    /// The current density that flows out through the membrane of a compartment of a cable.
    Outward(u32),
    /// One operand.
    Unary(UnaryOp, NodeId),
    /// Two operands.
    Binary(BinaryOp, NodeId, NodeId),
    /// `c ? a : b`.
    Select(NodeId, NodeId, NodeId),
    /// A random number per cell.
    Draw(Distribution, u64),
    /// A number per cell from a data file.
    Data(u32),
    /// The value of a series from a data file at a time in ms.
    Series(u32, NodeId),
    /// A standard normal number per cell, drawn anew after each interval (the operand, in ms).
    Noise(u64, NodeId),
    /// How many events there are in this step, of a Poisson process per cell; the operand is how many are expected.
    Events(u64, NodeId),
}

/// What a node is made of.
pub type Operands = ArrayVec<NodeId, 3>;

/// Nodes in an order in which operands come first.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Graph {
    nodes: Vec<Node>,
    known: HashMap<Node, NodeId>,
}

impl Graph {
    /// The node of an id.
    pub fn node(&self, id: NodeId) -> Node {
        self.nodes[id.0 as usize]
    }

    /// How many nodes there are.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Are there none?
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// Adds a node, or finds it.
    pub fn add(&mut self, node: Node) -> NodeId {
        if let Some(&id) = self.known.get(&node) {
            return id;
        }
        let id = NodeId(self.nodes.len() as u32);
        self.nodes.push(node);
        self.known.insert(node, id);
        id
    }

    /// A number.
    pub fn number(&mut self, x: f64, dim: Dim) -> NodeId {
        self.add(Node::Const(x.to_bits(), dim))
    }

    /// A unary operation.
    pub fn unary(&mut self, op: UnaryOp, a: NodeId) -> NodeId {
        self.add(Node::Unary(op, a))
    }

    /// A binary operation.
    pub fn binary(&mut self, op: BinaryOp, a: NodeId, b: NodeId) -> NodeId {
        self.add(Node::Binary(op, a, b))
    }

    /// `c ? a : b`.
    pub fn select(&mut self, c: NodeId, a: NodeId, b: NodeId) -> NodeId {
        self.add(Node::Select(c, a, b))
    }

    /// The number that a node is, if it is one.
    pub fn constant(&self, id: NodeId) -> Option<f64> {
        match self.node(id) {
            Node::Const(bits, _) => Some(f64::from_bits(bits)),
            _ => None,
        }
    }

    /// Does a value of edges differ from edge to edge?
    pub fn differs(&self, value: NodeId) -> bool {
        self.reachable([value]).into_iter().any(|id| matches!(self.node(id), Node::Draw(..) | Node::Data(_)))
    }

    /// Do some values differ from cell to cell, or may they be made to?
    pub fn may_differ(&self, params: &[Param], values: &[NodeId]) -> bool {
        self.reachable(values.iter().copied()).into_iter().any(|id| match self.node(id) {
            Node::Param(p) => params[p.0 as usize].home.is_some(),
            node => matches!(node, Node::Index | Node::Draw(..) | Node::Data(_)),
        })
    }

    /// The operands of a node.
    pub fn operands(&self, id: NodeId) -> Operands {
        let list = |operands: &[NodeId]| operands.iter().copied().collect();
        match self.node(id) {
            Node::Const(..)
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
            | Node::Data(_) => Operands::new(),
            Node::Unary(_, a) | Node::Noise(_, a) | Node::Events(_, a) | Node::Series(_, a) => list(&[a]),
            Node::Binary(_, a, b) => list(&[a, b]),
            Node::Select(c, a, b) => list(&[c, a, b]),
        }
    }

    /// The states that `roots` depend on, or are.
    pub fn states_read(&self, roots: impl IntoIterator<Item = NodeId>) -> Vec<StateId> {
        let state = |id: NodeId| match self.node(id) {
            Node::State(state) => Some(state),
            _ => None,
        };
        self.reachable(roots).into_iter().filter_map(state).collect()
    }

    /// The nodes that `roots` depend on (and themselves), operands first. Takes time for these, and next to none for the rest of the graph: a
    /// bit for each node.
    pub fn reachable(&self, roots: impl IntoIterator<Item = NodeId>) -> Vec<NodeId> {
        let mut stack: Vec<NodeId> = roots.into_iter().collect();
        // Operands are older than what is made of them.
        let words = stack.iter().map(|id| id.0 as usize / 64 + 1).max().unwrap_or(0);
        let (mut seen, mut count) = (vec![0u64; words], 0);
        while let Some(id) = stack.pop() {
            let (word, bit) = (&mut seen[id.0 as usize / 64], 1 << (id.0 % 64));
            if *word & bit == 0 {
                *word |= bit;
                count += 1;
                stack.extend(self.operands(id));
            }
        }
        let mut found = Vec::with_capacity(count);
        for (at, mut word) in seen.into_iter().enumerate() {
            while word != 0 {
                found.push(NodeId(at as u32 * 64 + word.trailing_zeros()));
                word &= word - 1;
            }
        }
        found
    }

    /// Rebuilds `root` with some leaves replaced. `memo` can be shared between calls with the same `leaf`.
    pub fn replace(
        &mut self,
        root: NodeId,
        leaf: &impl Fn(Node) -> Option<NodeId>,
        memo: &mut HashMap<NodeId, NodeId>,
    ) -> NodeId {
        for id in self.reachable([root]) {
            if memo.contains_key(&id) {
                continue;
            }
            let node = self.node(id);
            let at = |x: NodeId| memo[&x];
            let new = match node {
                Node::Unary(op, a) => self.add(Node::Unary(op, at(a))),
                Node::Binary(op, a, b) => self.add(Node::Binary(op, at(a), at(b))),
                Node::Select(c, a, b) => self.add(Node::Select(at(c), at(a), at(b))),
                Node::Noise(stream, a) => self.add(Node::Noise(stream, at(a))),
                Node::Events(stream, a) => self.add(Node::Events(stream, at(a))),
                Node::Series(d, a) => self.add(Node::Series(d, at(a))),
                Node::Const(..)
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
                | Node::Data(_) => leaf(node).unwrap_or(id),
            };
            memo.insert(id, new);
        }
        memo[&root]
    }
}
