//! Parameters and initial values set from outside: `--set Na.gbar=100mS/cm2`, `--set soma.v=-70mV`; in programs also with a number for
//! each cell.

use super::build::classify;
use super::{Model, Node, NodeId, Param, Projection, places};
use crate::data::{DataFile, Numbers};
use crate::diag::{Code, Diagnostic, nearest};
use crate::hir::{Demand, Domain, StateKind, Whose};
use crate::operators::BinaryOp;
use crate::source::Span;
use crate::units::{Dim, DisplayUnit, Unit};
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;

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

/// Numbers for the cells of a population, for the edges of a projection (by target, and of each target by source) or for the kernel that its edges share, in
/// canonical units.
#[derive(Debug, Clone, PartialEq)]
pub struct PerCell {
    /// The name of a parameter of cells or of a state, or the end of it; of the weights or the delays of a projection the whole name, `a.b.Kick.weight`.
    pub name: String,
    /// One for each cell or edge.
    pub values: Arc<[f64]>,
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
    if let (Some(option), true) = (option_of(name.trim()), number.is_empty()) {
        let message = format!("`{text}` is not a parameter setting: this is a key of the run");
        return Err(
            Diagnostic::without_place(Code::UnknownParameter, message).help(format!("write `{option} {value}`"))
        );
    }
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

/// Sets parameters and initial values, first to single numbers, then cell by cell. A name that fits none or several of them, or a value of
/// another dimension, is an error. How many cells there are is not looked at.
pub fn apply(model: &mut Model, overrides: &[Override], per_cell: &[PerCell]) -> Vec<Diagnostic> {
    let mut errors = Vec::new();
    for o in overrides {
        if let Err(error) = set(model, o) {
            errors.push(error);
        }
    }
    for given in per_cell {
        if let Err(error) = set_cells(model, given) {
            errors.push(error);
        }
    }
    for p in &mut model.params {
        p.population = None;
    }
    classify(&model.graph, &mut model.params);
    errors
}

/// What can be set from outside.
#[derive(Clone, Copy)]
enum Place {
    /// A parameter, by index.
    Param(usize),
    /// The initial value of a state, by index.
    Init(usize),
}

impl Place {
    /// All of a model, with their names.
    fn all(model: &Model) -> impl Iterator<Item = (Place, &str)> {
        let settable = model.params.iter().enumerate().filter(|(_, p)| p.settable);
        let states = model.states.iter().enumerate();
        let params = settable.map(|(i, p)| (Place::Param(i), p.name.as_str()));
        params.chain(states.map(|(i, s)| (Place::Init(i), s.name.as_str())))
    }
}

/// Does `name=value` set an initial value?
pub fn sets_initial_value(model: &Model, text: &str) -> bool {
    parse_override(text).is_ok_and(|o| matches!(find(model, &o.name), Ok(Place::Init(_))))
}

fn set(model: &mut Model, o: &Override) -> Result<(), Diagnostic> {
    let place = find(model, &o.name)?;
    let (name, dim, DisplayUnit { name: unit, .. }) = target(model, &o.name)?;
    if o.unit.dim != dim {
        let got = o.unit.dim.describe();
        let given = format!("{} {}", o.number, o.unit_text);
        let message = format!("`{name}` is {}, but `{}` is {got}", dim.describe(), given.trim());
        return Err(Diagnostic::without_place(Code::DimensionMismatch, message).help(format!(
            "write `--set {}={}{}`",
            o.name,
            o.number,
            if unit == "1" { "" } else { unit }
        )));
    }
    let Some(value) = o.unit.canonical(&o.number) else {
        let message = format!("`{}` is too large a number", o.number);
        return Err(Diagnostic::without_place(Code::BadValue, message));
    };
    let value = model.graph.add(Node::Const(value.to_bits(), dim));
    put(model, place, value, format!("--set {}={}{}", o.name, o.number, o.unit_text));
    Ok(())
}

/// Sets a parameter of cells or an initial value, cell by cell.
fn set_cells(model: &mut Model, given: &PerCell) -> Result<(), Diagnostic> {
    if let Some(at) =
        given.name.strip_suffix(".weight").and_then(|of| model.projections.iter().position(|p| p.name == of))
    {
        let p = &model.projections[at];
        if p.plasticity.is_some() {
            let message =
                format!("the weights of `{}` change in a run; they can be given by its `weight` alone", p.name);
            return Err(Diagnostic::without_place(Code::Unsupported, message));
        }
        let (dim, span, text) = (p.dim, p.span, format!("{} for each edge", given.name));
        let weight = values(model, given, text, dim, span);
        let same: Vec<usize> = model.same(at).collect();
        same.into_iter().for_each(|at| model.projections[at].weight = weight);
        return Ok(());
    }
    let of_delays = given.name.strip_suffix(".delay");
    if let Some(at) = of_delays.and_then(|of| model.projections.iter().position(|p| p.name == of)) {
        if model.projections[at].graded.is_some() {
            let message = format!("`{}` is none: what follows a voltage has no delay", given.name);
            return Err(Diagnostic::without_place(Code::Unsupported, message));
        }
        let (span, text) = (model.projections[at].span, format!("{} for each edge", given.name));
        if model.projections[at].place.is_some() {
            let message = format!(
                "the connections of `{}` have one delay, since `max_pool` takes the largest of what arrives",
                model.projections[at].name
            );
            return Err(Diagnostic::without_place(Code::Unsupported, message));
        }
        model.projections[at].delay = values(model, given, text, Dim::TIME, span);
        return Ok(());
    }
    let place = find(model, &given.name)?;
    let (name, dim, span) = match place {
        Place::Param(at) => (model.params[at].name.clone(), model.params[at].dim, model.params[at].span),
        Place::Init(at) => (model.states[at].name.clone(), model.states[at].dim, model.states[at].span),
    };
    if !model.populations.iter().any(|p| name.starts_with(&format!("{}.", p.name))) {
        let message = format!("`{name}` is one number for the whole model, and cannot differ from cell to cell");
        let help = "give it one number, or let cells have a parameter of their own";
        return Err(Diagnostic::without_place(Code::BadValue, message).help(help));
    }
    let text = format!("{name} for each cell");
    // All compartments of a cell have its number.
    let population = match place {
        Place::Param(at) => model.params[at].home,
        Place::Init(at) => Some(model.states[at].population),
    };
    let each = population.map_or(1, |population| model.elements_per_cell(population));
    let of_elements = given.values.iter().flat_map(|&x| std::iter::repeat_n(x, each)).collect();
    let given = &PerCell { name: given.name.clone(), values: of_elements };
    let value = values(model, given, text.clone(), dim, span);
    put(model, place, value, text);
    Ok(())
}

/// Numbers that are given one by one, as an expression.
fn values(model: &mut Model, given: &PerCell, name: String, dim: Dim, span: Span) -> NodeId {
    let (directory, numbers) = (PathBuf::new(), Numbers::Given(Arc::clone(&given.values)));
    let data = Node::Data(model.data.len() as u32);
    model.data.push(DataFile { name, directory, column: None, span, numbers });
    let (data, one) = (model.graph.add(data), model.graph.number(1.0, dim));
    model.graph.add(Node::Binary(BinaryOp::Mul, data, one))
}

/// Puts a value to its place; `how` tells how it was set.
fn put(model: &mut Model, place: Place, value: NodeId, how: String) {
    match place {
        Place::Param(at) => {
            model.params[at].value = value;
            model.params[at].set = Some(how);
        }
        Place::Init(at) => {
            let state = &mut model.states[at];
            let before = std::mem::replace(&mut state.init, value);
            state.set = Some(how);
            // What is demanded of what edges begin with is demanded of this.
            let of_edges = state.edges.map(Whose::Edges);
            let own = |demand: &&mut Demand<NodeId>| Some(demand.whose) == of_edges && demand.value == before;
            model.demands.iter_mut().filter(own).for_each(|demand| demand.value = value);
            // Gates that begin at `inf` are in their domain by themselves.
            if state.kind == StateKind::Gate {
                model.demands.push(Demand {
                    what: state.name.clone(),
                    value,
                    domain: Domain::Fraction,
                    why: "a gate is the fraction of open gates",
                    code: Code::GateRange,
                    unit: state.unit.clone(),
                    whose: Whose::Cells(state.population),
                    span: state.span,
                });
            }
        }
    }
}

/// The full name, the dimension and the unit of what a name, or the end of one, stands for.
pub(super) fn target<'m>(model: &'m Model, name: &str) -> Result<(&'m str, Dim, &'m DisplayUnit), Diagnostic> {
    Ok(match find(model, name)? {
        Place::Param(at) => (&model.params[at].name, model.params[at].dim, &model.params[at].unit),
        Place::Init(at) => (&model.states[at].name, model.states[at].dim, &model.states[at].unit),
    })
}

/// The full name of what a name, or the end of one, stands for.
pub fn full_name<'m>(model: &'m Model, name: &str) -> Result<&'m str, Diagnostic> {
    Ok(target(model, name)?.0)
}

fn find(model: &Model, name: &str) -> Result<Place, Diagnostic> {
    let called = places::called_in_cells(model, name);
    let name = called.as_deref().unwrap_or(name);
    if let Some((place, _)) = Place::all(model).find(|(_, full)| *full == name) {
        return Ok(place);
    }
    // What a file calls `v_init` is the voltage at the start.
    let name = match name.strip_suffix("v_init") {
        Some(compartment) if compartment.is_empty() || compartment.ends_with('.') => &format!("{compartment}v"),
        _ => name,
    };
    if let Some((place, _)) = Place::all(model).find(|(_, full)| *full == name) {
        return Ok(place);
    }
    let suffix = format!(".{name}");
    let mut hits: Vec<(Place, &str)> = Place::all(model).filter(|(_, full)| full.ends_with(&suffix)).collect();
    if let (Some(option), Some((_, first))) = (option_of(name), hits.first()) {
        let message = format!("`{name}` may be that of the run, or `{first}`");
        let d = Diagnostic::without_place(Code::AmbiguousParameter, message);
        return Err(d.help(format!("write `{option}` for the run, or the whole name")));
    }
    // Parameters come first.
    if hits.iter().any(|(place, _)| matches!(place, Place::Param(_))) {
        hits.retain(|(place, _)| matches!(place, Place::Param(_)));
    }
    match hits[..] {
        [(place, _)] => Ok(place),
        [] => Err(unknown(model, name)),
        _ => {
            let names: Vec<&str> = hits.iter().map(|h| h.1).collect();
            Err(Diagnostic::without_place(Code::AmbiguousParameter, format!("`{name}` fits several parameters"))
                .note(format!("they are {}", names.join(", ")))
                .help("write more of the name"))
        }
    }
}

/// The option of the command line that sets a key of the run.
fn option_of(name: &str) -> Option<&'static str> {
    Some(match name {
        "dt" => "--dt",
        "duration" => "--duration",
        "method" => "--method",
        "seed" => "--seed",
        "every" => "--every",
        _ => return None,
    })
}

/// No parameter has the name.
fn unknown(model: &Model, name: &str) -> Diagnostic {
    let d = Diagnostic::without_place(Code::UnknownParameter, format!("the model has no parameter `{name}`"));
    if let Some(option) = option_of(name) {
        return d.help(format!("write `{option}`"));
    }
    if name == "celsius" {
        return d.help("nothing in this model depends on the temperature");
    }
    if let Some(d) = of_connections(model, name, &d) {
        return d;
    }
    let params: Vec<&str> = model.params.iter().filter(|p| p.settable).map(|p| p.name.as_str()).collect();
    // The dot of a number in a place parts no names.
    let is_whole = |tail: &&str| tail.matches('(').count() == tail.matches(')').count();
    let tails = Place::all(model).flat_map(|(_, n)| n.match_indices('.').map(|(i, _)| &n[i + 1..]).chain([n]));
    let mut tails: Vec<&str> = tails.filter(is_whole).collect();
    let mut fits: HashMap<&str, usize> = HashMap::new();
    tails.iter().for_each(|tail| *fits.entry(tail).or_default() += 1);
    // What fits several names is no help.
    tails.retain(|tail| fits[tail] == 1);
    // A name of which some parts are left out.
    let is_inside = |full: &&str| {
        let mut parts = full.split('.');
        name.split('.').all(|part| parts.any(|other| other == part))
    };
    let inside: Vec<&str> = Place::all(model).map(|(_, n)| n).filter(is_inside).collect();
    let meant = match inside[..] {
        [one] => Some(one),
        _ => nearest(name, tails),
    };
    let d = match meant {
        Some(near) => d.help(format!("did you mean `{near}`?")),
        None => d,
    };
    let d = if params.is_empty() { d } else { d.note(format!("it has {}", params.join(", "))) };
    d.note("initial values of states can be set, too")
}

/// What is said of a name that stands for what lines of connections say.
fn of_connections(model: &Model, name: &str, d: &Diagnostic) -> Option<Diagnostic> {
    let (d, (before, key)) = (d.clone(), name.rsplit_once('.').unwrap_or(("", name)));
    let lines: Vec<&Projection> = model.projections.iter().filter(|p| p.says(key)).collect();
    let hidden = |p: &Param| !p.settable && (p.name == name || p.name.ends_with(&format!(".{name}")));
    let note = if lines.iter().any(|line| line.name == before) {
        format!("`{key}` is what the line of these connections says")
    } else if !lines.is_empty() && model.params.iter().any(hidden) {
        format!("every line of connections says `{key}` for its own")
    } else {
        return None;
    };
    Some(d.note(note).help(format!("give the network a parameter, say `{key} = ...` with it, and set that")))
}
