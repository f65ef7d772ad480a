//! The voltages of cables: one system of linear equations for each cell and step.
//!
//! In come the cables of the model; out go, in `init`, the conductances between compartments, and in `step` the rows of the system and its solution.
//! Never true here: a row knows of more than one parent.
//!
//! Backward Euler with the currents of the membrane linearized at the old voltage, gates held (Hines 1984): in a compartment of area `A`
//!
//! ```text
//! A (cm / dt + g) (v' - v) + sum of G (v' - v'_neighbour) = -A i
//! ```
//!
//! where `i` is what flows out through the membrane and `g` its slope in `v`. A slope that lets the voltage run away counts as half of
//! `-cm / dt` at most, so that the system has a solution, as in `cnexp` of other cells. A node has no area: what flows in flows out.
//!
//! What flows out through the membrane of a compartment, where a probe hears it, is what comes from its neighbours and through electrodes and junctions, at the voltages
//! that were solved for: its sum over a cell is what electrodes and junctions bring. Before the first step it is 0.
//!
//! With `crank_nicolson` the solution is that of half a step, with the currents in its middle, and the voltages go as far again. A node has what
//! it has in the middle of the step: it would ring for ever if it went as far again, and nothing reads its old voltage.

use super::{Draft, Lowering, Values, population_space};
use crate::hir::Method;
use crate::morphology::Measure;
use crate::ode::{
    Cable, Connection, Graph, MembraneCurrent, Model, Node, NodeId, Through, derivative, derivative_in_dv,
};
use crate::step::{BinaryOp, FieldId, FieldKind, Map, RegionBuilder, Role, Solve, Source, Stage, UnaryOp};
use crate::units::Dim;

/// The currents of a cable, each with its slope in the voltage, and whether it flows elsewhere than through the membrane.
pub(super) struct Row {
    cable: usize,
    currents: Vec<(usize, NodeId, Option<NodeId>, bool)>,
}

/// What the rows of each cable are made of.
pub(super) fn rows(model: &mut Model) -> Vec<Row> {
    let cables = model.cables.clone();
    let row = |(cable, c): (usize, &Cable)| {
        let current = |m: &MembraneCurrent| {
            let slope = m.slope.or_else(|| derivative(&mut model.graph, m.outward, c.v));
            let slope = slope.map(|slope| finite(&mut model.graph, slope, |node| node == Node::State(c.v)));
            (m.population, m.outward, slope, m.through != Through::Membrane)
        };
        Row { cable, currents: c.currents.iter().map(current).collect() }
    };
    cables.iter().enumerate().map(row).collect()
}

/// The slope of a connection's current in the voltage here, if that is one of a cable.
pub(super) fn slope(model: &mut Model, connection: usize) -> Option<NodeId> {
    let &Connection { here, current, dim, .. } = &model.connections[connection];
    if model.state(here.v).population == here.population {
        return None;
    }
    let slope = derivative_in_dv(&mut model.graph, current);
    let slope = slope.map(|slope| finite(&mut model.graph, slope, |node| node == Node::Dv));
    Some(slope.unwrap_or_else(|| model.graph.number(0.0, dim.over(Dim::VOLTAGE))))
}

/// A slope in a leaf; where the tangent may be vertical, 0 there, which takes the current as it is.
fn finite(g: &mut Graph, slope: NodeId, leaf: impl Fn(Node) -> bool) -> NodeId {
    let reads = |n: NodeId| g.reachable([n]).into_iter().any(|n| leaf(g.node(n)));
    let may_be_infinite = g.reachable([slope]).into_iter().any(|n| match g.node(n) {
        Node::Binary(BinaryOp::Div, _, divisor) => reads(divisor),
        Node::Binary(BinaryOp::Pow, base, exponent) => reads(base) && g.constant(exponent).is_none_or(|n| n < 0.0),
        Node::Unary(UnaryOp::Ln | UnaryOp::Log2 | UnaryOp::Log10, a) => reads(a),
        _ => false,
    });
    if may_be_infinite { g.unary(UnaryOp::Finite, slope) } else { slope }
}

impl Lowering<'_> {
    /// A field over the compartments of a cable.
    fn of_cable(&mut self, cable: usize, source: Source, name: &str, kind: FieldKind) -> FieldId {
        let c = &self.model.cables[cable];
        let name = format!("{}'{name}", self.model.populations[c.population].name);
        self.field(source, name, kind, Some(population_space(c.population)), c.span)
    }

    /// The conductances between compartments: half of each resists.
    pub(super) fn axial(&mut self, draft: &mut Draft, cable: usize) {
        let c = &self.model.cables[cable];
        let (number, space) = (cable as u32, population_space(c.population));
        let mut b = draft.over(space);
        let origin = self.origin(c.span);
        b.set_origin(origin);
        let near = self.measured(&mut b, space, Measure::Near);
        let far = self.measured(&mut b, space, Measure::Far);
        let joined = self.measured(&mut b, space, Measure::Joined);
        let ra = match self.model.graph.node(c.ra) {
            Node::Param(p) if self.model.param(p).population.is_some() => {
                let field = self.param(p);
                (b.field(field), b.gather(field, Map::Parent))
            }
            // The same everywhere.
            _ => {
                let ra = self.lower(&mut b, &mut Values::new(space, Role::Step), c.ra);
                (ra, ra)
            }
        };
        let near = b.binary(BinaryOp::Mul, ra.0, near);
        let far = b.binary(BinaryOp::Mul, ra.1, far);
        let resistance = b.binary(BinaryOp::Add, near, far);
        let conductance = b.binary(BinaryOp::Div, joined, resistance);
        let axial = self.of_cable(cable, Source::Axial(number), "axial", FieldKind::Const);
        b.store(axial, conductance);
        draft.push(b);
    }

    /// The new voltages of a cable.
    pub(super) fn solve(&mut self, draft: &mut Draft, row: &Row) {
        let (model, number) = (self.model, row.cable as u32);
        let c = &model.cables[row.cable];
        let space = population_space(c.population);
        let origin = self.origin(c.span);
        let sum = (!row.currents.is_empty())
            .then(|| self.of_cable(row.cable, Source::Membrane(number), "membrane", FieldKind::Temp));
        let slopes = (row.currents.iter().any(|(_, _, slope, _)| slope.is_some()))
            .then(|| self.of_cable(row.cable, Source::Conductance(number), "conductance", FieldKind::Temp));
        let is_heard = model.is_heard(c.population);
        // What flows elsewhere than through the membrane is known by itself where somebody hears the rest.
        let elsewhere = || row.currents.iter().filter(|current| current.3 && is_heard);
        let (any, sloping) = (elsewhere().next().is_some(), elsewhere().any(|current| current.2.is_some()));
        let injected = any.then(|| self.of_cable(row.cable, Source::Injected(number), "injected", FieldKind::Temp));
        let injected_slope =
            sloping.then(|| self.of_cable(row.cable, Source::InjectedSlope(number), "injected_slope", FieldKind::Temp));
        for &(population, current, slope, is_injected) in &row.currents {
            let space = population_space(population);
            let mut b = draft.over(space);
            b.set_origin(origin);
            let mut values = Values::new(space, Role::Step);
            let current = self.lower(&mut b, &mut values, current);
            let slope = slope.map(|slope| self.lower(&mut b, &mut values, slope));
            let own = if is_injected { [injected, injected_slope] } else { [None, None] };
            let sums = [(sum, Some(current)), (slopes, slope), (own[0], Some(current)), (own[1], slope)];
            for (field, value) in sums {
                if let (Some(field), Some(value)) = (field, value) {
                    b.accumulate(field, Some(Map::In), value);
                }
            }
            draft.push(b);
        }
        let link = self.of_cable(row.cable, Source::Axial(number), "axial", FieldKind::Const);
        let [own, rhs] = [(Source::Own(number), "own"), (Source::Rhs(number), "rhs")]
            .map(|(source, name)| self.of_cable(row.cable, source, name, FieldKind::Temp));
        let mut b = draft.over(space);
        b.set_origin(origin);
        let mut values = Values::new(space, Role::Step);
        let [cm, area, dt] = [c.cm, c.area, self.dt].map(|x| self.lower(&mut b, &mut values, x));
        let mut held = b.binary(BinaryOp::Div, cm, dt);
        let halves = model.method == Method::CrankNicolson;
        if halves {
            held = b.binary(BinaryOp::Add, held, held);
        }
        if let Some(slopes) = slopes {
            let half = b.constant(-0.5);
            let least = b.binary(BinaryOp::Mul, held, half);
            let slope = b.field(slopes);
            let slope = b.binary(BinaryOp::Max, slope, least);
            held = b.binary(BinaryOp::Add, held, slope);
        }
        let right = match sum {
            Some(sum) => {
                let current = b.field(sum);
                let inward = b.unary(UnaryOp::Neg, current);
                b.binary(BinaryOp::Mul, area, inward)
            }
            None => b.constant(0.0),
        };
        let held = b.binary(BinaryOp::Mul, area, held);
        b.store(own, held);
        b.store(rhs, right);
        draft.push(b);
        let (v_field, next) = (self.state(c.v), self.next(c.v));
        let x = match halves {
            true => self.of_cable(row.cable, Source::Middle(number), "middle", FieldKind::Temp),
            false => next,
        };
        draft.stages.push(Stage::Solve(Solve { x, own, link, rhs, from: Some(v_field), origin }));
        if is_heard {
            self.escape(draft, row.cable, x, [injected, injected_slope]);
        }
        if halves {
            let mut b = draft.over(space);
            b.set_origin(origin);
            let area = self.lower(&mut b, &mut Values::new(space, Role::Step), c.area);
            let (old, middle, none) = (b.field(v_field), b.field(x), b.constant(0.0));
            let twice = b.binary(BinaryOp::Add, middle, middle);
            let further = b.binary(BinaryOp::Sub, twice, old);
            let is_node = b.binary(BinaryOp::Le, area, none);
            let new = b.select(is_node, middle, further);
            b.store(next, new);
            draft.push(b);
        }
    }

    /// Before the first step nothing has flowed.
    pub(super) fn at_rest(&mut self, draft: &mut Draft, cable: usize) {
        let c = &self.model.cables[cable];
        if !self.model.is_heard(c.population) {
            return;
        }
        let mut b = draft.over(population_space(c.population));
        let out = self.of_cable(cable, Source::Transmembrane(cable as u32), "transmembrane", FieldKind::State);
        let none = b.constant(0.0);
        b.store(out, none);
        draft.push(b);
    }

    /// What flows out through the membrane of each compartment of a cable at the voltages `x`, in uA.
    fn escape(&mut self, draft: &mut Draft, cable: usize, x: FieldId, [injected, slope]: [Option<FieldId>; 2]) {
        let (c, number) = (&self.model.cables[cable], cable as u32);
        let space = population_space(c.population);
        let origin = self.origin(c.span);
        let axial = self.of_cable(cable, Source::Axial(number), "axial", FieldKind::Const);
        let escaping = self.of_cable(cable, Source::Escaping(number), "escaping", FieldKind::Temp);
        // What comes from the parent, and what is injected.
        let from_parent = |b: &mut RegionBuilder| {
            let (conductance, own, parent) = (b.field(axial), b.field(x), b.gather(x, Map::Parent));
            let fall = b.binary(BinaryOp::Sub, parent, own);
            b.binary(BinaryOp::Mul, conductance, fall)
        };
        let mut b = draft.over(space);
        b.set_origin(origin);
        let mut sum = from_parent(&mut b);
        if let Some(injected) = injected {
            let mut leaves = b.field(injected);
            if let Some(slope) = slope {
                let v = self.state(c.v);
                let (slope, new, old) = (b.field(slope), b.field(x), b.field(v));
                let rise = b.binary(BinaryOp::Sub, new, old);
                let more = b.binary(BinaryOp::Mul, slope, rise);
                leaves = b.binary(BinaryOp::Add, leaves, more);
            }
            let area = self.lower(&mut b, &mut Values::new(space, Role::Step), c.area);
            let leaves = b.binary(BinaryOp::Mul, area, leaves);
            sum = b.binary(BinaryOp::Sub, sum, leaves);
        }
        b.store(escaping, sum);
        draft.push(b);
        // What goes to the children.
        let mut b = draft.over(space);
        b.set_origin(origin);
        let flow = from_parent(&mut b);
        let flow = b.unary(UnaryOp::Neg, flow);
        b.accumulate(escaping, Some(Map::Parent), flow);
        draft.push(b);
        let mut b = draft.over(space);
        b.set_origin(origin);
        let out = self.of_cable(cable, Source::Transmembrane(number), "transmembrane", FieldKind::State);
        let sum = b.field(escaping);
        b.store(out, sum);
        draft.push(b);
    }
}
