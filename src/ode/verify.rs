//! The verifier: dimensions and types of every expression, recomputed.

use super::{Condition, Kind, Model, Node, NodeId, State, StateId};
use crate::hir::Ty;
use crate::morphology::Measure;
use crate::operators::{BinaryOp, Type, UnaryOp};
use crate::units::Dim;

/// Checks every rule of the continuous model; the message names what breaks it.
pub fn verify(model: &Model) -> Result<(), String> {
    let types = types(model)?;
    let real = |what: &str, id: NodeId, dim: Dim| match types[id.0 as usize] {
        Ty::Real(got) if got == dim => Ok(()),
        got => Err(format!("{what} is {got:?}, not a number of dimension {dim}")),
    };
    for p in &model.params {
        real(&format!("parameter {}", p.name), p.value, p.dim)?;
    }
    for (id, s) in model.states.iter().zip(0..).map(|(s, i)| (StateId(i), s)) {
        real(&format!("the initial value of {}", s.name), s.init, s.dim)?;
        real(&format!("the derivative of {}", s.name), s.rate, s.dim.over(Dim::TIME))?;
        if let Some(clamp) = s.clamp {
            real(&format!("what holds {}", s.name), clamp.value, s.dim)?;
            for n in model.graph.reachable([clamp.value]) {
                if let Node::State(other) = model.graph.node(n)
                    && other != id
                    && !model.wanders(other)
                {
                    return Err(format!("what holds {} reads a state", s.name));
                }
                if let Node::Next(_)
                | Node::Slope(..)
                | Node::Point(..)
                | Node::Refractory(_)
                | Node::Dv
                | Node::Junction(..)
                | Node::Conductance(_)
                | Node::Arrived(..)
                | Node::Amount(_)
                | Node::Since
                | Node::Beyond
                | Node::Outward(_) = model.graph.node(n)
                {
                    return Err(format!("what holds {} reads {:?}", s.name, model.graph.node(n)));
                }
            }
        }
        for n in model.graph.reachable([s.init]) {
            if let Node::State(_)
            | Node::Next(_)
            | Node::Slope(..)
            | Node::Point(..)
            | Node::Refractory(_)
            | Node::Time
            | Node::StepTime
            | Node::StepLength
            | Node::White(_)
            | Node::Noise(..)
            | Node::Events(..)
            | Node::Series(..)
            | Node::Dv
            | Node::Junction(..)
            | Node::Conductance(_)
            | Node::Arrived(..)
            | Node::Amount(_)
            | Node::Since
            | Node::Beyond
            | Node::Outward(_) = model.graph.node(n)
            {
                return Err(format!("the initial value of {} reads {:?}", s.name, model.graph.node(n)));
            }
        }
        for n in model.graph.reachable([s.rate]) {
            match model.graph.node(n) {
                Node::State(other) if !model.sees(s.population, model.state(other).population) => {
                    return Err(format!("the derivative of {} reads a state of another population", s.name));
                }
                Node::Param(p) if model.param(p).population.is_some_and(|q| !model.sees(s.population, q)) => {
                    return Err(format!("the derivative of {} reads a parameter of another population", s.name));
                }
                Node::Draw(..)
                | Node::Data(_)
                | Node::Measure(_)
                | Node::Dv
                | Node::Next(_)
                | Node::Slope(..)
                | Node::Point(..)
                | Node::Refractory(_) => {
                    return Err(format!("the derivative of {} draws, reads a file or what a step computes", s.name));
                }
                _ => {}
            }
        }
    }
    for cable in &model.cables {
        real("the capacitance of a cable", cable.cm, Dim::SPECIFIC_CAPACITANCE)?;
        real("the resistivity of a cable", cable.ra, Dim::RESISTIVITY)?;
        real("the area of a cable", cable.area, Dim::AREA)?;
        for current in &cable.currents {
            real("a current of a cable", current.outward, Dim::CURRENT_DENSITY)?;
            for n in model.graph.reachable([current.outward]) {
                let reads = match model.graph.node(n) {
                    Node::State(s) => Some(model.state(s).population),
                    Node::Param(p) => model.param(p).population,
                    Node::Draw(..) | Node::Data(_) | Node::Measure(_) => {
                        return Err("a current of a cable draws or reads what is known before the run".into());
                    }
                    _ => None,
                };
                if reads.is_some_and(|population| !model.sees(current.population, population)) {
                    return Err("a current of a cable reads what is not where it flows".into());
                }
            }
        }
    }
    for diffusion in &model.diffusions {
        real("a diffusion coefficient", diffusion.coefficient, Dim::DIFFUSION)?;
        for &pool in &diffusion.pools {
            let State { name, population, .. } = model.state(pool);
            if !matches!(model.populations[*population].kind, Kind::Part { of, .. } if of == diffusion.population) {
                return Err(format!("{name} diffuses elsewhere than it is"));
            }
        }
    }
    for c in &model.connections {
        real(&format!("the current of {}", c.name), c.current, c.dim)?;
        for n in model.graph.reachable([c.current]) {
            match model.graph.node(n) {
                Node::Const(..) | Node::Bool(_) | Node::Dv | Node::Unary(..) | Node::Binary(..) | Node::Select(..) => {}
                Node::Param(p) if model.param(p).population.is_none() => {}
                other => return Err(format!("the current of {} reads {other:?}", c.name)),
            }
        }
    }
    if let Some(slope) = model.surrogate {
        real("what stands for the derivative of a spike", slope, Dim::ONE)?;
        for n in model.graph.reachable([slope]) {
            match model.graph.node(n) {
                Node::Const(..) | Node::Bool(_) | Node::Beyond => {}
                Node::Unary(..) | Node::Binary(..) | Node::Select(..) => {}
                other => return Err(format!("what stands for the derivative of a spike reads {other:?}")),
            }
        }
    }
    for p in &model.projections {
        real(&format!("the weight of {}", p.name), p.weight, p.dim)?;
        real(&format!("the delay of {}", p.name), p.delay, Dim::TIME)?;
        for n in model.graph.reachable([p.weight, p.delay]) {
            match model.graph.node(n) {
                Node::Const(..)
                | Node::Bool(_)
                | Node::Draw(..)
                | Node::Data(_)
                | Node::Unary(..)
                | Node::Binary(..)
                | Node::Select(..)
                | Node::StepLength => {}
                Node::Param(p) if model.param(p).population.is_none() => {}
                other => return Err(format!("the edges of {} read {other:?}", p.name)),
            }
        }
    }
    for (_, p, graded) in model.graded() {
        real(&format!("what is sent through {}", p.name), graded.sent, graded.dim.over(p.dim))?;
        for n in model.graph.reachable([graded.sent]) {
            let reads = match model.graph.node(n) {
                Node::State(s) => Some(model.state(s).population),
                Node::Param(param) => model.param(param).population,
                Node::Const(..)
                | Node::Bool(_)
                | Node::Time
                | Node::StepTime
                | Node::Series(..)
                | Node::Unary(..)
                | Node::Binary(..)
                | Node::Select(..) => None,
                other => return Err(format!("what is sent through {} reads {other:?}", p.name)),
            };
            if reads.is_some_and(|population| !model.sees(p.from, population)) {
                return Err(format!("what is sent through {} is of another population", p.name));
            }
        }
    }
    for p in &model.projections {
        if let Some(plasticity) = &p.plasticity {
            if let Some((part, _)) = plasticity.dendritic {
                real(&format!("the dendrite of {}", p.name), part, Dim::ONE)?;
                for n in model.graph.reachable([part]) {
                    match model.graph.node(n) {
                        Node::Const(..) | Node::Bool(_) | Node::Unary(..) | Node::Binary(..) | Node::Select(..) => {}
                        Node::Param(param) if model.param(param).population.is_none() => {}
                        other => return Err(format!("the dendrite of {} reads {other:?}", p.name)),
                    }
                }
            }
            for (at, &(sent, dim)) in plasticity.sent.iter().enumerate() {
                real(&format!("what {} sends ({at})", p.name), sent, dim)?;
            }
            for &(state, value) in plasticity.changes() {
                let state = model.state(state);
                real(&format!("what events make of {}", state.name), value, state.dim)?;
            }
        }
    }
    for m in &model.modulators {
        real(&format!("what modulates {}", m.name), m.amount, m.dim)?;
    }
    for j in &model.jumps {
        let state = model.state(j.state);
        real(&format!("what events add to {}", state.name), j.amount, state.dim)?;
    }
    for p in &model.populations {
        for &size in &p.sizes {
            real(&format!("the size of {}", p.name), size, Dim::ONE)?;
        }
        let Some(spike) = &p.spike else { continue };
        match spike.condition {
            Condition::Crosses(a, b) => {
                if types[a.0 as usize] != types[b.0 as usize] {
                    return Err(format!("the spike rule of {} compares different dimensions", p.name));
                }
            }
            Condition::When(a) => {
                if types[a.0 as usize] != Ty::Bool {
                    return Err(format!("the spike condition of {} is not a condition", p.name));
                }
            }
        }
        for &(state, value) in &spike.resets {
            let state = model.state(state);
            real(&format!("the reset of {}", state.name), value, state.dim)?;
        }
        if let Some(refractory) = spike.refractory {
            real(&format!("the refractory time of {}", p.name), refractory, Dim::TIME)?;
        }
    }
    Ok(())
}

/// The type of every node.
fn types(model: &Model) -> Result<Vec<Ty>, String> {
    let mut types: Vec<Ty> = Vec::with_capacity(model.graph.len());
    for i in 0..model.graph.len() as u32 {
        let ty = type_of(model, NodeId(i), |n| types[n.0 as usize])?;
        types.push(ty);
    }
    Ok(types)
}

/// The type of a node whose operands have the types `at`, or what does not agree.
pub(super) fn type_of(model: &Model, id: NodeId, at: impl Fn(NodeId) -> Ty) -> Result<Ty, String> {
    let node = model.graph.node(id);
    let wrong = |why: &str| Err(format!("node {} ({node:?}): {why}", id.0));
    Ok(match node {
        Node::Const(_, dim) => Ty::Real(dim),
        Node::Bool(_) | Node::Refractory(_) => Ty::Bool,
        Node::Param(p) => Ty::Real(model.param(p).dim),
        Node::State(s) | Node::Next(s) | Node::Point(s, _) => Ty::Real(model.state(s).dim),
        Node::Slope(s, _) => Ty::Real(model.state(s).dim.over(Dim::TIME)),
        Node::Time | Node::StepTime | Node::StepLength => Ty::Real(Dim::TIME),
        Node::White(_) => Ty::Real(Dim::WHITE),
        Node::Dv => Ty::Real(Dim::VOLTAGE),
        Node::Arrived(p, number) => {
            let p = &model.projections[p as usize];
            let events = || p.plasticity.as_ref().map_or(p.dim, |plasticity| plasticity.sent[number as usize].1);
            Ty::Real(p.graded.map_or_else(events, |graded| graded.dim))
        }
        Node::Amount(m) => Ty::Real(model.modulators[m as usize].dim),
        Node::Since => Ty::Real(Dim::TIME),
        Node::Beyond => Ty::Real(Dim::ONE),
        Node::Measure(measure) => Ty::Real(match measure {
            Measure::Area => Dim::AREA,
            Measure::Distance => Dim::LENGTH,
            Measure::Near | Measure::Far | Measure::IonsNear(_) | Measure::IonsFar(_) => Dim::ONE.over(Dim::LENGTH),
            Measure::Volume(_) => Dim::VOLUME,
            Measure::Joined | Measure::Group(_) => Dim::ONE,
        }),
        Node::Outward(_) => Ty::Real(Dim::CURRENT_DENSITY),
        Node::Events(_, expected) => {
            if at(expected) != Ty::Real(Dim::ONE) {
                return wrong("the expected number has a dimension");
            }
            Ty::Real(Dim::ONE)
        }
        Node::Junction(c, _) => Ty::Real(model.connections[c as usize].dim),
        Node::Conductance(c) => Ty::Real(model.connections[c as usize].dim.over(Dim::VOLTAGE)),
        Node::Index | Node::Draw(..) | Node::Data(_) => Ty::Real(Dim::ONE),
        Node::Series(_, t) => {
            if at(t) != Ty::Real(Dim::TIME) {
                return wrong("not at a time");
            }
            Ty::Real(Dim::ONE)
        }
        Node::Noise(_, every) => {
            if at(every) != Ty::Real(Dim::TIME) {
                return wrong("the interval is not a time");
            }
            Ty::Real(Dim::ONE)
        }
        Node::Unary(op, a) => match (op, at(a), op.types().0) {
            (UnaryOp::Neg | UnaryOp::Abs, Ty::Real(dim), _) => Ty::Real(dim),
            (UnaryOp::Sqrt, Ty::Real(dim), _) => match dim.root() {
                Some(dim) => Ty::Real(dim),
                None => return wrong("no square root"),
            },
            (_, Ty::Real(dim), Type::Real) if dim.is_one() => Ty::Real(dim),
            (_, Ty::Bool, Type::Mask) => Ty::Bool,
            _ => return wrong("operand of the wrong type"),
        },
        Node::Binary(op, a, b) => match (op, at(a), at(b)) {
            (BinaryOp::And | BinaryOp::Or, Ty::Bool, Ty::Bool) => Ty::Bool,
            (BinaryOp::Mul, Ty::Real(x), Ty::Real(y)) => Ty::Real(x.times(y)),
            (BinaryOp::Div, Ty::Real(x), Ty::Real(y)) => Ty::Real(x.over(y)),
            (BinaryOp::Pow, Ty::Real(x), Ty::Real(y)) if y.is_one() => {
                if x.is_one() {
                    Ty::Real(x)
                } else {
                    match exponent(model, b) {
                        Some(n) if n.fract() == 0.0 => Ty::Real(x.power(n as i32)),
                        Some(0.5) if x.root().is_some() => Ty::Real(x.root().unwrap_or(x)),
                        _ => return wrong("the exponent of a quantity is not constant"),
                    }
                }
            }
            (BinaryOp::Add | BinaryOp::Sub | BinaryOp::Min | BinaryOp::Max, Ty::Real(x), Ty::Real(y)) if x == y => {
                Ty::Real(x)
            }
            (BinaryOp::Poisson, Ty::Real(x), Ty::Real(y)) if x.is_one() && y.is_one() => Ty::Real(x),
            (
                BinaryOp::Lt | BinaryOp::Le | BinaryOp::Gt | BinaryOp::Ge | BinaryOp::Eq | BinaryOp::Ne,
                Ty::Real(x),
                Ty::Real(y),
            ) if x == y => Ty::Bool,
            _ => return wrong("operands that do not agree"),
        },
        Node::Select(c, a, b) => {
            if at(c) != Ty::Bool || at(a) != at(b) {
                return wrong("branches that do not agree");
            }
            at(a)
        }
    })
}

fn exponent(model: &Model, id: NodeId) -> Option<f64> {
    match super::evaluate(model, id) {
        Ok(crate::operators::Value::Real(x)) => Some(x),
        Ok(crate::operators::Value::Single(_) | crate::operators::Value::Mask(_)) | Err(_) => None,
    }
}
