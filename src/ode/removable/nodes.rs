//! The graph under recognition: new nodes, their types, and what is known of each.
//!
//! In come a model and nodes; out go polynomials, products and new nodes of a given dimension.
//! Never true here: a node is added whose dimensions do not agree.

use super::poly::{Content, Monomial, Poly, times};
use super::product::{Base, Line, Product, product};
use crate::hir::Ty;
use crate::ode::verify::type_of;
use crate::ode::{Graph, Model, Node, NodeId};
use crate::operators::{BinaryOp, UnaryOp, Value, eval_binary, eval_unary};
use crate::units::Dim;
use rustc_hash::FxHashMap as HashMap;
use std::rc::Rc;

/// The graph of a model, with what has been found out about its nodes.
pub struct Nodes<'m> {
    model: &'m mut Model,
    types: Vec<Ty>,
    varying: Vec<bool>,
    /// Has a product that a node is a divisor that is no number, or may get one?
    divides: Vec<bool>,
    values: Vec<Option<Value>>,
    polys: HashMap<NodeId, Rc<Poly>>,
    lines: HashMap<NodeId, Line>,
    /// Sums of parameters that are atoms of contents.
    coefficients: HashMap<NodeId, Line>,
    products: HashMap<NodeId, Product>,
}

impl<'m> Nodes<'m> {
    /// The nodes of a model, if its types agree.
    pub fn new(model: &'m mut Model) -> Result<Nodes<'m>, String> {
        let mut nodes = Nodes {
            model,
            types: Vec::new(),
            varying: Vec::new(),
            divides: Vec::new(),
            values: Vec::new(),
            polys: HashMap::default(),
            lines: HashMap::default(),
            coefficients: HashMap::default(),
            products: HashMap::default(),
        };
        nodes.learn()?;
        Ok(nodes)
    }

    /// Learns about nodes that were added.
    fn learn(&mut self) -> Result<(), String> {
        for i in self.types.len() as u32..self.model.graph.len() as u32 {
            let id = NodeId(i);
            let ty = type_of(self.model, id, |n| self.types[n.0 as usize])?;
            self.types.push(ty);
            let graph = &self.model.graph;
            let varies = match graph.node(id) {
                Node::Const(..) | Node::Bool(_) | Node::Param(_) | Node::StepLength => false,
                Node::State(_)
                | Node::Next(_)
                | Node::Slope(..)
                | Node::Point(..)
                | Node::Refractory(_)
                | Node::Time
                | Node::StepTime
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
                | Node::Data(_)
                | Node::Series(..)
                | Node::White(_)
                | Node::Noise(..)
                | Node::Events(..) => true,
                Node::Unary(..) | Node::Binary(..) | Node::Select(..) => {
                    graph.operands(id).iter().any(|n| self.varying[n.0 as usize])
                }
            };
            self.varying.push(varies);
            let value = self.value(id);
            self.values.push(value);
            let divides = self.divides_by(id);
            self.divides.push(divides);
        }
        Ok(())
    }

    /// The graph.
    pub fn graph(&self) -> &Graph {
        &self.model.graph
    }

    /// Does it differ from cell to cell or from time to time?
    pub fn varies(&self, id: NodeId) -> bool {
        self.varying[id.0 as usize]
    }

    /// Can it be 0/0? Not without a divisor that is no number in what is multiplied and added.
    pub fn divides(&self, id: NodeId) -> bool {
        self.divides[id.0 as usize]
    }

    fn divides_by(&self, id: NodeId) -> bool {
        let at = |n: NodeId| self.divides[n.0 as usize];
        match self.graph().node(id) {
            Node::Unary(UnaryOp::Neg, a) => at(a),
            Node::Unary(UnaryOp::Tanh, _) => true,
            Node::Binary(BinaryOp::Add | BinaryOp::Sub | BinaryOp::Mul, a, b) => at(a) || at(b),
            Node::Binary(BinaryOp::Div, a, b) => at(a) || self.constant(b).is_none(),
            Node::Binary(BinaryOp::Pow, a, n) => at(a) || self.constant(n).is_some_and(|n| n <= 0.0),
            _ => false,
        }
    }

    /// What numbers alone make of a node.
    fn value(&self, id: NodeId) -> Option<Value> {
        let at = |n: NodeId| self.values[n.0 as usize];
        match self.graph().node(id) {
            Node::Const(bits, _) => Some(Value::Real(f64::from_bits(bits))),
            Node::Unary(op, a) => eval_unary(op, at(a)?),
            Node::Binary(op, a, b) => eval_binary(op, at(a)?, at(b)?),
            Node::Bool(_)
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
            | Node::Data(_)
            | Node::Series(..)
            | Node::Noise(..)
            | Node::Events(..)
            | Node::Select(..) => None,
        }
    }

    /// What nodes are where a sum has about a value, by one of its leaves, and all else that they read is some number: the value of the sum, and theirs.
    pub fn beside<const N: usize>(&mut self, nodes: [NodeId; N], x: &Line, value: f64) -> Option<(f64, [f64; N])> {
        let poly = self.poly(x.node);
        let leaf = poly.terms().find_map(|(monomial, _)| {
            let varying: Vec<_> = monomial.iter().filter(|(atom, _)| self.varies(*atom)).collect();
            match varying[..] {
                [&(atom, 1)] if self.graph().operands(atom).is_empty() => Some(atom),
                _ => None,
            }
        })?;
        let sum_at = |leaf_at: f64| self.with([x.node], leaf, leaf_at).map(|[sum]| sum);
        let (none, one) = (sum_at(0.0)?, sum_at(1.0)?);
        let leaf_at = (value - none) / (one - none);
        Some((sum_at(leaf_at)?, self.with(nodes, leaf, leaf_at)?))
    }

    /// What nodes are where a leaf has a value and all others have some.
    fn with<const N: usize>(&self, nodes: [NodeId; N], leaf: NodeId, value: f64) -> Option<[f64; N]> {
        let mut known: HashMap<NodeId, Value> = HashMap::default();
        for n in self.graph().reachable(nodes) {
            let found = match (self.values[n.0 as usize], self.graph().node(n)) {
                (Some(number), _) => number,
                (None, Node::Bool(b)) => Value::Mask(b),
                (None, Node::Unary(op, a)) => eval_unary(op, known[&a])?,
                (None, Node::Binary(op, a, b)) => eval_binary(op, known[&a], known[&b])?,
                (None, Node::Select(c, a, b)) => known[if known[&c].mask()? { &a } else { &b }],
                (None, _) if self.dim(n).is_none() => Value::Mask(false),
                (None, _) if n == leaf => Value::Real(value),
                // From 0.5 to 1.5, one so, one other.
                (None, _) => Value::Real(0.5 + (f64::from(n.0) * 0.618_033_988_749_894_8).fract()),
            };
            known.insert(n, found);
        }
        let mut values = [0.0; N];
        for (value, node) in values.iter_mut().zip(nodes) {
            *value = known.get(&node)?.real()?;
        }
        Some(values)
    }

    /// The number that a node is, or that it is computed from numbers alone to be.
    pub fn constant(&self, id: NodeId) -> Option<f64> {
        self.values[id.0 as usize].and_then(Value::real)
    }

    /// The dimension of a number.
    pub fn dim(&self, id: NodeId) -> Option<Dim> {
        match self.types[id.0 as usize] {
            Ty::Real(dim) => Some(dim),
            Ty::Bool => None,
        }
    }

    /// Adds a node, or finds it.
    pub fn add(&mut self, node: Node) -> NodeId {
        let id = self.model.graph.add(node);
        self.learn().expect("operands of agreeing dimensions");
        id
    }

    /// A pure number.
    pub fn number(&mut self, x: f64) -> NodeId {
        self.add(Node::Const(x.to_bits(), Dim::ONE))
    }

    /// `op a`
    pub fn unary(&mut self, op: UnaryOp, a: NodeId) -> NodeId {
        self.add(Node::Unary(op, a))
    }

    /// `a op b`
    pub fn binary(&mut self, op: BinaryOp, a: NodeId, b: NodeId) -> NodeId {
        self.add(Node::Binary(op, a, b))
    }

    /// The polynomial that a node is; what is none is an atom.
    pub fn poly(&mut self, id: NodeId) -> Rc<Poly> {
        let mut waiting = vec![id];
        while let Some(&n) = waiting.last() {
            let unknown = self.graph().operands(n).into_iter().filter(|n| !self.polys.contains_key(n));
            let before = waiting.len();
            waiting.extend(unknown.collect::<Vec<_>>());
            if waiting.len() == before {
                waiting.pop();
                let poly = self.poly_of(n).filter(Poly::is_low).unwrap_or_else(|| Poly::atom(n));
                self.polys.insert(n, Rc::new(poly));
            }
        }
        Rc::clone(&self.polys[&id])
    }

    /// The line that a node is.
    pub fn line(&mut self, id: NodeId) -> Line {
        if let Some(known) = self.lines.get(&id) {
            return known.clone();
        }
        let (mut content, mut primitive) = self.poly(id).primitive();
        if self.varies(id)
            && let Some((factor, rest)) = self.coefficient_of(&primitive)
        {
            content.number *= factor.number;
            content.monomial = times(&content.monomial, &factor.monomial, 1);
            primitive = rest;
        }
        let line = Line { node: id, content, primitive: Rc::new(primitive) };
        self.lines.insert(id, line.clone());
        line
    }

    /// A sum that varies without the sum of parameters that multiplies all of it, which is an atom of the content: `k x - m x` is `(k - m) x`.
    fn coefficient_of(&mut self, whole: &Poly) -> Option<(Content, Poly)> {
        let varies = |atom: NodeId| self.varies(atom);
        let (_, factor) = whole.leading(varies).primitive();
        if factor.constant().is_some() {
            return None;
        }
        let (mut content, rest) = whole.over(&factor)?.primitive();
        // The dimension of one term; those of the others differ from it by that of their numbers.
        let (of_one, _) = factor.terms().next()?;
        let dim = of_one.iter().try_fold(Dim::ONE, |d, (atom, power)| Some(d.times(self.dim(*atom)?.power(*power))))?;
        let node = self.sum(&factor, dim)?;
        let line = self.line(node);
        self.coefficients.insert(node, line);
        content.monomial = times(&content.monomial, &[(node, 1)], 1);
        Some((content, rest))
    }

    /// The factor that an atom of a content is.
    pub fn factor(&self, atom: NodeId) -> Base {
        self.coefficients.get(&atom).map_or(Base::Atom(atom), |line| Base::Sum(line.clone()))
    }

    fn poly_of(&self, id: NodeId) -> Option<Poly> {
        let at = |n: NodeId| &*self.polys[&n];
        let zero = |n: NodeId| self.constant(n) == Some(0.0);
        if let Some(c) = self.constant(id).filter(|c| *c != 0.0 && c.is_finite()) {
            return Some(Poly::number(c));
        }
        // A sum that is 0 because of the numbers in it stays what it is: 0/0 has a value if both sides vanish for one reason.
        let unless_zero = |sum: Poly| (!sum.is_zero()).then_some(sum);
        match self.graph().node(id) {
            Node::Unary(UnaryOp::Neg, a) => Some(Poly::default().plus(at(a), -1.0)),
            Node::Binary(BinaryOp::Add, a, b) if zero(a) => unless_zero(at(b).clone()),
            Node::Binary(BinaryOp::Add | BinaryOp::Sub, a, b) if zero(b) => unless_zero(at(a).clone()),
            Node::Binary(BinaryOp::Sub, a, b) if zero(a) => unless_zero(Poly::default().plus(at(b), -1.0)),
            Node::Binary(BinaryOp::Add, a, b) => unless_zero(at(a).plus(at(b), 1.0)),
            Node::Binary(BinaryOp::Sub, a, b) => unless_zero(at(a).plus(at(b), -1.0)),
            // Nothing is divided by what 0 was divided by.
            Node::Binary(BinaryOp::Mul | BinaryOp::Div, a, b) if zero(a) || zero(b) => None,
            Node::Binary(BinaryOp::Mul, a, b) => at(a).by(at(b)).and_then(unless_zero),
            Node::Binary(BinaryOp::Div, a, b) => match at(b).power(-1) {
                Some(inverse) => at(a).by(&inverse),
                None => at(a).by(&Poly::monomial(1.0, vec![(b, -1)])),
            },
            Node::Binary(BinaryOp::Pow, a, b) => {
                let n = self.constant(b).filter(|n| n.fract() == 0.0 && *n != 0.0 && n.abs() <= 8.0)?;
                at(a).power(n as i32)
            }
            _ => None,
        }
    }

    /// The product that a node is.
    pub fn product(&mut self, id: NodeId) -> Product {
        if let Some(known) = self.products.get(&id) {
            return known.clone();
        }
        // Operands first: chains of sums may be long.
        let mut waiting = vec![(id, false)];
        while let Some((node, ready)) = waiting.pop() {
            if self.products.contains_key(&node) {
                continue;
            }
            if ready {
                let found = product(self, node);
                self.products.insert(node, found);
                continue;
            }
            waiting.push((node, true));
            if self.constant(node).is_none() {
                waiting.extend(factors_and_terms(self.graph().node(node)).into_iter().flatten().map(|n| (n, false)));
            }
        }
        self.products[&id].clone()
    }

    /// A node for a polynomial of dimension 1; `None` if it is 0.
    pub fn pure(&mut self, poly: &Poly) -> Option<NodeId> {
        self.sum(poly, Dim::ONE)
    }

    /// A node for a polynomial that is a node divided by a monomial.
    pub fn quotient(&mut self, poly: &Poly, node: NodeId, by: &Monomial) -> Option<NodeId> {
        let of_atom = |dim: Option<Dim>, &(atom, power): &(NodeId, i32)| Some(dim?.times(self.dim(atom)?.power(power)));
        let dim = self.dim(node)?.over(by.iter().fold(Some(Dim::ONE), of_atom)?);
        self.sum(poly, dim)
    }

    fn sum(&mut self, poly: &Poly, dim: Dim) -> Option<NodeId> {
        let terms: Vec<(Monomial, f64)> = poly.terms().map(|(m, c)| (m.clone(), c)).collect();
        let mut sum = None;
        for (monomial, c) in terms {
            let factors = monomial.into_iter().map(|(atom, power)| (Base::Atom(atom), power)).collect();
            let term = self.emit(&Product { number: c, factors, cancelled: false }, dim);
            sum = Some(match sum {
                None => term,
                Some(sum) => self.binary(BinaryOp::Add, sum, term),
            });
        }
        sum
    }

    /// A node for a product of a dimension.
    pub fn emit(&mut self, p: &Product, dim: Dim) -> NodeId {
        let (mut above, mut below): (Vec<NodeId>, Vec<NodeId>) = (Vec::new(), Vec::new());
        for (base, power) in &p.factors {
            let (node, power) = match base {
                Base::Atom(n) => (*n, *power),
                Base::Sum(line) => (line.node, *power),
                Base::Exp(u) => (self.exponential(*u, *power), 1),
                Base::Difference(line) => {
                    let (e, one) = (self.unary(UnaryOp::Exp, line.node), self.number(1.0));
                    (self.binary(BinaryOp::Sub, e, one), *power)
                }
            };
            let raised = self.raised(node, power.unsigned_abs());
            if power > 0 { above.push(raised) } else { below.push(raised) }
        }
        let of = |nodes: &Nodes<'_>, list: &[NodeId]| {
            list.iter().filter_map(|n| nodes.dim(*n)).fold(Dim::ONE, |d, e| d.times(e))
        };
        let rest = dim.over(of(self, &above)).times(of(self, &below));
        let mut whole = None;
        if p.number != 1.0 || !rest.is_one() || above.is_empty() {
            whole = Some(self.add(Node::Const(p.number.to_bits(), rest)));
        }
        for node in above {
            whole = Some(whole.map_or(node, |w| self.binary(BinaryOp::Mul, w, node)));
        }
        let divisor = below.into_iter().reduce(|d, node| self.binary(BinaryOp::Mul, d, node));
        match (whole, divisor) {
            (Some(whole), Some(divisor)) => self.binary(BinaryOp::Div, whole, divisor),
            (Some(whole), None) => whole,
            (None, _) => unreachable!("a product without factors is its number"),
        }
    }

    /// `e^(power u)`
    fn exponential(&mut self, u: NodeId, power: i32) -> NodeId {
        let argument = match power {
            1 => u,
            -1 => self.unary(UnaryOp::Neg, u),
            _ => {
                let power = self.number(f64::from(power));
                self.binary(BinaryOp::Mul, power, u)
            }
        };
        self.unary(UnaryOp::Exp, argument)
    }

    fn raised(&mut self, node: NodeId, power: u32) -> NodeId {
        if power == 1 {
            return node;
        }
        let power = self.number(f64::from(power));
        self.binary(BinaryOp::Pow, node, power)
    }
}

/// What the product that a node is depends on.
fn factors_and_terms(node: Node) -> [Option<NodeId>; 2] {
    match node {
        Node::Unary(UnaryOp::Neg, a) | Node::Binary(BinaryOp::Pow, a, _) => [Some(a), None],
        Node::Binary(BinaryOp::Mul | BinaryOp::Div | BinaryOp::Add | BinaryOp::Sub, a, b) => [Some(a), Some(b)],
        _ => [None, None],
    }
}
