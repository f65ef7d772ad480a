//! The continuous model as text (`neuroc emit --stage ode`).

use super::{Condition, Model, Node, NodeId};
use crate::operators::{BinaryOp, UnaryOp};
use std::collections::HashMap;
use std::fmt::Write;

/// Prints parameters, states and equations in canonical units (ms, mV, uA/cm2, mS/cm2, ...).
pub fn print(model: &Model) -> String {
    let mut out = String::new();
    let _ = writeln!(
        out,
        "model {}: {} ms in steps of {} ms, {}",
        model.name,
        model.duration,
        model.dt,
        model.method.name()
    );
    for p in model.params.iter().filter(|p| p.population.is_none()) {
        let _ = writeln!(out, "param {} = {}", p.name, show(model, p.value));
    }
    for (i, population) in model.populations.iter().enumerate() {
        let sizes: Vec<_> = population.sizes.iter().map(|&s| show(model, s)).collect();
        let _ = writeln!(out, "\npopulation {}[{}]", population.name, sizes.join(", "));
        for p in model.params.iter().filter(|p| p.population == Some(i)) {
            let _ = writeln!(out, "  cell param {} = {}", p.name, show(model, p.value));
        }
        for id in model.states_of(i) {
            let s = model.state(id);
            let _ = writeln!(out, "  {} {} = {}", if s.gate { "gate" } else { "state" }, s.name, show(model, s.init));
            let _ = writeln!(out, "  {}' = {}", s.name, show(model, s.rate));
        }
        for c in model.connections.iter().filter(|c| model.state(c.here).population == i) {
            let [here, there] = [c.here, c.there].map(|v| &model.state(v).name);
            let ends = if c.here == c.there { format!("between {here}") } else { format!("of {here} with {there}") };
            let _ = writeln!(out, "  junction {} {ends}: i = {}", c.name, show(model, c.current));
        }
        if let Some(spike) = &population.spike {
            let _ = match spike.condition {
                Condition::Crosses(a, b) => writeln!(out, "  spike when {} crosses {}", show(model, a), show(model, b)),
                Condition::When(a) => writeln!(out, "  spike when {}", show(model, a)),
            };
            for &(state, value) in &spike.resets {
                let _ = writeln!(out, "    {} = {}", model.state(state).name, show(model, value));
            }
            if let Some(refractory) = spike.refractory {
                let _ = writeln!(out, "    refractory {} ms", show(model, refractory));
            }
        }
    }
    for r in &model.records {
        let every = r.every.map_or("step".to_string(), |e| format!("{e} ms"));
        let _ = writeln!(out, "record {} = {} every {every}", r.name, show(model, r.value));
    }
    out
}

/// An expression as text, in canonical units.
pub fn show(model: &Model, root: NodeId) -> String {
    let mut text: HashMap<NodeId, (String, bool)> = HashMap::new();
    for id in model.graph.reachable([root]) {
        let at = |n: NodeId| {
            let (s, compound) = &text[&n];
            if *compound { format!("({s})") } else { s.clone() }
        };
        let (s, compound) = match model.graph.node(id) {
            Node::Const(bits, _) => (format!("{}", f64::from_bits(bits)), false),
            Node::Bool(b) => (format!("{b}"), false),
            Node::Param(p) => (model.param(p).name.clone(), false),
            Node::State(s) => (model.state(s).name.clone(), false),
            Node::Next(s) => (format!("next {}", model.state(s).name), true),
            Node::Time => ("t".into(), false),
            Node::StepTime => ("t_step".into(), false),
            Node::Index => ("index".into(), false),
            Node::Dv => ("dv".into(), false),
            Node::Slope(s, stage) => (format!("slope {stage} of {}", model.state(s).name), true),
            Node::Point(s, stage) => (format!("point {stage} of {}", model.state(s).name), true),
            Node::Junction(c, 0) => (format!("sum of {}", model.connections[c as usize].name), true),
            Node::Junction(c, stage) => (format!("sum {stage} of {}", model.connections[c as usize].name), true),
            Node::Draw(d, stream) => (format!("draw {d:?} #{stream:x}"), false),
            Node::Data(d) => (format!("file {d}"), false),
            Node::Series(d, t) => (format!("series {d}({})", text[&t].0), false),
            Node::Noise(stream, every) => (format!("noise(#{stream:x}, every {})", at(every)), false),
            Node::Unary(op, a) => match op {
                UnaryOp::Neg => (format!("-{}", at(a)), true),
                UnaryOp::Not => (format!("not {}", at(a)), true),
                _ => (format!("{}({})", name_of(UnaryOp::ALL, op), text[&a].0), false),
            },
            Node::Binary(op, a, b) => {
                let sign = match op {
                    BinaryOp::Add => "+",
                    BinaryOp::Sub => "-",
                    BinaryOp::Mul => "*",
                    BinaryOp::Div => "/",
                    BinaryOp::Pow => "^",
                    BinaryOp::Lt => "<",
                    BinaryOp::Le => "<=",
                    BinaryOp::Gt => ">",
                    BinaryOp::Ge => ">=",
                    BinaryOp::Eq => "==",
                    BinaryOp::Ne => "!=",
                    BinaryOp::And => "and",
                    BinaryOp::Or => "or",
                    BinaryOp::Min | BinaryOp::Max => "",
                };
                match sign {
                    "" => (format!("{}({}, {})", name_of(BinaryOp::ALL, op), text[&a].0, text[&b].0), false),
                    sign => (format!("{} {sign} {}", at(a), at(b)), true),
                }
            }
            Node::Select(c, a, b) => (format!("if {} then {} else {}", at(c), at(a), at(b)), true),
        };
        text.insert(id, (s, compound));
    }
    text[&root].0.clone()
}

fn name_of<T: Copy + PartialEq>(table: &[(T, &'static str)], op: T) -> &'static str {
    table.iter().find(|e| e.0 == op).map_or("?", |e| e.1)
}
