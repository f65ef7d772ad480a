//! Parameters set from outside: `--set Na.gbar=100mS/cm2`.

use super::build::classify;
use super::{Model, Node};
use crate::diag::{Code, Diagnostic, nearest};
use crate::units::Unit;

/// A parsed `name=value`.
#[derive(Debug, Clone, PartialEq)]
pub struct Override {
    /// The parameter's name or the end of it.
    pub name: String,
    /// The number as written.
    pub number: String,
    /// Its unit.
    pub unit: Unit,
    /// The unit as written.
    pub unit_text: String,
}

/// Reads `name=number unit` (the space may be missing).
pub fn parse_override(text: &str) -> Result<Override, Diagnostic> {
    let wrong = |why: &str| {
        Diagnostic::without_place(Code::BadValue, format!("`{text}` is not a parameter setting: {why}"))
            .help("write `--set name=value`, for example `--set Na.gbar=100mS/cm2` or `--set n=50`")
    };
    let (name, value) = text.split_once('=').ok_or_else(|| wrong("there is no `=`"))?;
    let value = value.trim();
    let mut end = 0;
    let bytes = value.as_bytes();
    while end < bytes.len() {
        let c = bytes[end];
        let exponent = matches!(c, b'e' | b'E')
            && bytes.get(end + 1).is_some_and(|n| {
                n.is_ascii_digit() || (matches!(n, b'+' | b'-') && bytes.get(end + 2).is_some_and(u8::is_ascii_digit))
            });
        let sign = matches!(c, b'+' | b'-') && (end == 0 || matches!(bytes[end - 1], b'e' | b'E'));
        if !(c.is_ascii_digit() || c == b'.' || exponent || sign) {
            break;
        }
        end += 1;
    }
    let (number, unit_text) = (value[..end].trim(), value[end..].trim());
    if number.parse::<f64>().is_err() {
        return Err(wrong("there is no number behind the `=`"));
    }
    let unit = match unit_text {
        "" => Unit::ONE,
        text if text.starts_with(',') => {
            return Err(wrong(&format!("a decimal point is a `.`: write `{number}.{}`", &text[1..])));
        }
        text => Unit::parse(text).ok_or_else(|| wrong(&format!("there is no unit `{text}`")))?,
    };
    Ok(Override { name: name.trim().into(), number: number.into(), unit, unit_text: unit_text.into() })
}

/// Sets parameters. A name that fits none or several parameters, or a value of another dimension, is an error.
pub fn apply(model: &mut Model, overrides: &[Override]) -> Vec<Diagnostic> {
    let mut errors = Vec::new();
    for o in overrides {
        match find(model, &o.name) {
            Err(diagnostic) => errors.push(diagnostic),
            Ok(at) => {
                let dim = model.params[at].dim;
                let name = model.params[at].name.clone();
                let unit = &model.params[at].unit.name;
                if o.unit.dim != dim {
                    let got = o.unit.dim.describe();
                    let message =
                        format!("`{name}` is {}, but `{} {}` is {got}", dim.describe(), o.number, o.unit_text);
                    errors.push(
                        Diagnostic::without_place(Code::DimensionMismatch, message)
                            .help(format!("write `--set {}={}{unit}`", o.name, o.number)),
                    );
                    continue;
                }
                let Some(value) = o.unit.canonical(&o.number) else {
                    let message = format!("`{}` is too large a number", o.number);
                    errors.push(Diagnostic::without_place(Code::BadValue, message));
                    continue;
                };
                model.params[at].value = model.graph.add(Node::Const(value.to_bits(), dim));
                model.params[at].set = Some(format!("--set {}={}{}", o.name, o.number, o.unit_text));
            }
        }
    }
    for p in &mut model.params {
        p.population = None;
    }
    let names: Vec<&str> = model.populations.iter().map(|p| p.name.as_str()).collect();
    classify(&model.graph, &mut model.params, &names);
    errors
}

fn find(model: &Model, name: &str) -> Result<usize, Diagnostic> {
    let settable = || model.params.iter().enumerate().filter(|(_, p)| p.settable);
    if let Some((i, _)) = settable().find(|(_, p)| p.name == name) {
        return Ok(i);
    }
    let suffix = format!(".{name}");
    let hits: Vec<(usize, &str)> =
        settable().filter(|(_, p)| p.name.ends_with(&suffix)).map(|(i, p)| (i, p.name.as_str())).collect();
    match hits[..] {
        [(i, _)] => Ok(i),
        [] => {
            let all: Vec<&str> = settable().map(|(_, p)| p.name.as_str()).collect();
            let tails: Vec<&str> =
                all.iter().flat_map(|n| n.match_indices('.').map(|(i, _)| &n[i + 1..]).chain([*n])).collect();
            let mut d =
                Diagnostic::without_place(Code::UnknownParameter, format!("the model has no parameter `{name}`"));
            if let Some(near) = nearest(name, tails) {
                d = d.help(format!("did you mean `{near}`?"));
            }
            Err(d.note(format!("it has {}", all.join(", "))))
        }
        _ => {
            let names: Vec<&str> = hits.iter().map(|h| h.1).collect();
            Err(Diagnostic::without_place(Code::AmbiguousParameter, format!("`{name}` fits several parameters"))
                .note(format!("they are {}", names.join(", ")))
                .help("write more of the name"))
        }
    }
}
