//! The edges of connections: from a rule, or from a file.
//!
//! In come a connection of a model and the model's extent; out go its edges by target, or how many to expect.
//! Never true here: an edge depends on how the edges are going to be used.

use super::extent::Extent;
use crate::connect::{self, ConnectError, RULES, Rule, Shape};
use crate::data;
use crate::diag::{Code, Diagnostic};
use crate::engine::Edges;
use crate::ode::{self, Connection, ConnectionRule, Model, NodeId};
use crate::step::Value;

/// The edges of a connection, in both directions, by target.
pub(super) fn edges(model: &Model, extent: &Extent, c: &Connection) -> Result<Edges, Diagnostic> {
    let wrong = |why: String| Diagnostic::new(Code::BadValue, c.span, format!("`{}` cannot be connected", c.name), why);
    let shape = Shape { sizes: extent.grids[model.state(c.here).population].clone() };
    let fail = |e: ConnectError| wrong(e.to_string());
    let csr = match &c.rule {
        ConnectionRule::Named(name, arguments) => {
            let rule = rule(model, name, arguments).map_err(wrong)?;
            let pairs = connect::undirected(&rule, &shape, model.seed, stream(&c.name)).map_err(fail)?;
            connect::directed_csr(&pairs, shape.cells()).map_err(fail)?
        }
        ConnectionRule::File(file) => connect::read_junctions(&model.data[*file as usize], &shape)?,
    };
    Ok(Edges { offsets: csr.offsets, sources: csr.sources })
}

/// The random stream of a connection, of its name alone.
fn stream(name: &str) -> u32 {
    let hash = blake3::hash(name.as_bytes());
    let mut stream = [0; 4];
    stream.copy_from_slice(&hash.as_bytes()[..4]);
    u32::from_le_bytes(stream)
}

/// How many edges a connection has, about. What is wrong with it is said when the edges are made.
pub(super) fn expected(model: &Model, extent: &Extent, c: &Connection) -> f64 {
    match &c.rule {
        ConnectionRule::Named(name, arguments) => rule(model, name, arguments)
            .map_or(0.0, |rule| connect::expected_entries(&rule, extent.cells[model.state(c.here).population] as f64)),
        // Two for a row of two numbers of four bytes.
        ConnectionRule::File(file) => {
            std::fs::metadata(data::path(&model.data[*file as usize])).map_or(0.0, |file| file.len() as f64 / 4.0)
        }
    }
}

/// A rule with its arguments, or what is wrong with them.
fn rule(model: &Model, name: &str, arguments: &[NodeId]) -> Result<Rule, String> {
    let names = RULES.iter().find(|r| r.name == name).map_or(&[][..], |r| r.arguments);
    let number = |node| match ode::evaluate(model, node) {
        Ok(Value::Real(x)) => Ok(x),
        Ok(Value::Single(_) | Value::Mask(_)) | Err(_) => {
            Err("an argument of the rule is not known before the run".to_string())
        }
    };
    let given =
        names.iter().zip(arguments).map(|(n, &a)| Ok((n.name, number(a)?))).collect::<Result<Vec<_>, String>>()?;
    Rule::named(name, &given).map_err(|e| e.to_string())
}
