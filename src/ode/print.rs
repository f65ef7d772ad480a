//! The continuous model as text (`neuroc emit --stage ode`).

use super::{Condition, Kind, Model, Node, NodeId};
use crate::hir::{Arrivals, Coincident};
use crate::operators::{BinaryOp, UnaryOp};
use rustc_hash::FxHashMap as HashMap;
use std::fmt::Write;

/// Prints parameters, states and equations in canonical units (ms, mV, uA/cm2, mS/cm2, ...). Long parts of expressions are named `$1`, `$2`
/// and so on, and stand at the end.
pub fn print(model: &Model) -> String {
    let mut out = String::new();
    let mut printer = Printer { model, texts: Texts::default(), named: Vec::new() };
    let _ = writeln!(
        out,
        "model {}: {} ms in steps of {} ms, {}",
        model.name,
        model.duration,
        model.dt,
        model.method.name()
    );
    if model.arrivals.0 == Arrivals::AfterThreshold {
        let _ = writeln!(out, "events arrive behind the threshold");
    }
    match model.coincident.0 {
        Coincident::PreFirst => {}
        Coincident::PostFirst => _ = writeln!(out, "spikes of the target come first"),
        Coincident::Apart => _ = writeln!(out, "spikes of the target come first, and unseen"),
    }
    for p in model.params.iter().filter(|p| p.population.is_none()) {
        let _ = writeln!(out, "param {} = {}", p.name, printer.show(p.value));
    }
    for (i, population) in model.populations.iter().enumerate() {
        let sizes: Vec<_> = population.sizes.iter().map(|&s| printer.show(s)).collect();
        let _ = match &population.kind {
            Kind::Cells => writeln!(out, "\npopulation {}[{}]", population.name, sizes.join(", ")),
            Kind::Tree { tree, .. } => writeln!(out, "\ntree {} of {} elements", population.name, tree.len()),
            Kind::Clock => writeln!(out, "\nclock {}", population.name),
            Kind::Part { of, elements } => {
                let whole = &model.populations[*of].name;
                writeln!(out, "\npart {} of {whole}, {} elements", population.name, elements.len())
            }
        };
        for cable in model.cables.iter().filter(|cable| cable.population == i) {
            for current in &cable.currents {
                let part = &model.populations[current.population].name;
                let _ = writeln!(out, "  current through {part}: {}", printer.show(current.outward));
            }
        }
        for diffusion in model.diffusions.iter().filter(|diffusion| diffusion.population == i) {
            let pools: Vec<&str> = diffusion.pools.iter().map(|&pool| model.state(pool).name.as_str()).collect();
            let _ = writeln!(out, "  diffusion of {}: {}", pools.join(", "), printer.show(diffusion.coefficient));
        }
        for p in model.params.iter().filter(|p| p.population == Some(i)) {
            let _ = writeln!(out, "  cell param {} = {}", p.name, printer.show(p.value));
        }
        for id in model.states_of(i) {
            let s = model.state(id);
            let _ = writeln!(out, "  {} {} = {}", s.kind.word(), s.name, printer.show(s.init));
            let _ = writeln!(out, "  {}' = {}", s.name, printer.show(s.rate));
            if let Some(clamp) = s.clamp {
                let cells = clamp.cells.map_or(String::new(), |cells| format!(" where {}", printer.show(cells)));
                let _ = writeln!(out, "  clamp {} = {}{cells}", s.name, printer.show(clamp.value));
            }
        }
        for c in model.connections.iter().filter(|c| c.here.population == i) {
            let [here, there] = [c.here, c.there].map(|end| &model.state(end.v).name);
            let ends = if c.here == c.there { format!("between {here}") } else { format!("of {here} with {there}") };
            let _ = writeln!(out, "  junction {} {ends}: i = {}", c.name, printer.show(c.current));
        }
        for p in model.projections.iter().filter(|p| p.to == i) {
            let from = &model.populations[p.from].name;
            let (weight, delay) = (printer.show(p.weight), printer.show(p.delay));
            if let Some(graded) = p.graded {
                let _ = writeln!(
                    out,
                    "  graded {} from {from}: weight {weight}, sent {}",
                    p.name,
                    printer.show(graded.sent)
                );
                continue;
            }
            let _ = writeln!(out, "  events {} from {from}: weight {weight}, delay {delay} ms", p.name);
            let Some(plasticity) = &p.plasticity else { continue };
            if let Some((part, _)) = plasticity.dendritic {
                let _ = writeln!(out, "    dendrite: {} of the delay", printer.show(part));
            }
            for &id in &plasticity.states {
                let s = model.state(id);
                let _ = writeln!(out, "    state {} = {}", s.name, printer.show(s.init));
                let _ = writeln!(out, "    {}' = {}", s.name, printer.show(s.rate));
            }
            for (at, &(sent, _)) in plasticity.sent.iter().enumerate() {
                let _ = writeln!(out, "    on event send {at}: {}", printer.show(sent));
            }
            let changes =
                [("event", &plasticity.pre), ("post", &plasticity.post), ("modulator", &plasticity.modulated)];
            for (word, changes) in changes {
                for &(id, value) in changes {
                    let _ = writeln!(out, "    on {word} {} = {}", model.state(id).name, printer.show(value));
                }
            }
        }
        for m in model.modulators.iter().filter(|m| m.population == i) {
            let _ = writeln!(out, "  modulator {} = {}", m.name, printer.show(m.amount));
        }
        for jump in model.jumps.iter().filter(|j| model.state(j.state).population == i) {
            let _ = writeln!(out, "  on event {} += {}", model.state(jump.state).name, printer.show(jump.amount));
        }
        if let Some(spike) = &population.spike {
            let _ = match spike.condition {
                Condition::Crosses(a, b) => {
                    writeln!(out, "  spike when {} crosses {}", printer.show(a), printer.show(b))
                }
                Condition::When(a) => writeln!(out, "  spike when {}", printer.show(a)),
            };
            for &(state, value) in &spike.resets {
                let _ = writeln!(out, "    {} = {}", model.state(state).name, printer.show(value));
            }
            if let Some(refractory) = spike.refractory {
                let held: Vec<&str> = spike.held.iter().map(|state| model.state(*state).name.as_str()).collect();
                let held = if held.is_empty() { "nothing".to_string() } else { held.join(", ") };
                let _ = writeln!(out, "    refractory {} ms holds {held}", printer.show(refractory));
            }
        }
    }
    for r in &model.records {
        let every = r.every.map_or("step".to_string(), |e| format!("{e} ms"));
        let window = match r.window {
            (0.0, f64::INFINITY) => String::new(),
            (first, f64::INFINITY) => format!(" from {first} ms"),
            (first, last) => format!(" from {first} ms to {last} ms"),
        };
        let around = r.around.as_ref().map_or(String::new(), |around| {
            let (population, (first, last)) =
                (&model.populations[model.cells_of(around.population)].name, around.window);
            let cells = around.cells.map(|(a, b)| format!("[{}..{}]", printer.show(a), printer.show(b)));
            format!(" around spikes of {population}{} from {first} ms to {last} ms", cells.unwrap_or_default())
        });
        let value = match r.probe {
            Some(probe) => format!("what `{}` hears", model.probes[probe].name),
            None => printer.show(r.value),
        };
        let _ = writeln!(out, "record {} = {value} every {every}{window}{around}", r.name);
    }
    if !printer.named.is_empty() {
        out.push_str("\nwhere\n");
    }
    for (number, text) in printer.named.iter().enumerate() {
        let _ = writeln!(out, "  ${} = {text}", number + 1);
    }
    out
}

/// Text of this many bytes gets a name, or is left out: as a tree, a graph has exponentially many nodes.
const LONG: usize = 1000;

/// An expression as text, in canonical units. What is long in it is left out.
pub fn show(model: &Model, root: NodeId) -> String {
    let mut texts = Texts::default();
    shown(model, root, &mut texts, &mut |_| "(...)".into())
}

/// Nodes as text, and whether it needs parentheses.
type Texts = HashMap<NodeId, (String, bool)>;

/// Prints expressions; long parts of them get names.
struct Printer<'a> {
    model: &'a Model,
    texts: Texts,
    named: Vec<String>,
}

impl Printer<'_> {
    fn show(&mut self, root: NodeId) -> String {
        let Printer { model, texts, named } = self;
        shown(model, root, texts, &mut |text| {
            named.push(text);
            format!("${}", named.len())
        })
    }
}

/// An expression as text; `long` says what stands for a part that is long.
fn shown(model: &Model, root: NodeId, text: &mut Texts, long: &mut dyn FnMut(String) -> String) -> String {
    for id in model.graph.reachable([root]) {
        if text.contains_key(&id) {
            continue;
        }
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
            Node::StepLength => ("dt".into(), false),
            Node::White(stream) => (format!("xi(#{stream:x})"), false),
            Node::Index => ("index".into(), false),
            Node::Dv => ("dv".into(), false),
            Node::Slope(s, stage) => (format!("slope {stage} of {}", model.state(s).name), true),
            Node::Point(s, stage) => (format!("point {stage} of {}", model.state(s).name), true),
            Node::Refractory(p) => (format!("refractory {}", model.populations[p as usize].name), true),
            Node::Conductance(c) => (format!("slope of {}", model.connections[c as usize].name), true),
            Node::Junction(c, 0) => (format!("sum of {}", model.connections[c as usize].name), true),
            Node::Junction(c, stage) => (format!("sum {stage} of {}", model.connections[c as usize].name), true),
            Node::Draw(d, stream) => (format!("draw {d:?} #{stream:x}"), false),
            Node::Data(d) => (format!("file {d}"), false),
            Node::Series(d, t) => (format!("series {d}({})", text[&t].0), false),
            Node::Noise(stream, every) => (format!("noise(#{stream:x}, every {})", at(every)), false),
            Node::Arrived(p, number) => {
                let p = &model.projections[p as usize];
                let which = if number == 0 { String::new() } else { format!(", {number}") };
                (format!("arrived through {}{which}", p.name), true)
            }
            Node::Amount(m) => (format!("amount of {}", model.modulators[m as usize].name), true),
            Node::Since => ("since the last event".into(), true),
            Node::Beyond => ("x".into(), false),
            Node::Measure(measure) => (format!("{} of the compartment", measure.name()), true),
            Node::Outward(_) => ("current through the membrane".into(), true),
            Node::Events(stream, expected) => (format!("poisson(#{stream:x}, {})", text[&expected].0), false),
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
                    BinaryOp::Min | BinaryOp::Max | BinaryOp::Poisson => "",
                };
                match sign {
                    "" => (format!("{}({}, {})", name_of(BinaryOp::ALL, op), text[&a].0, text[&b].0), false),
                    sign => (format!("{} {sign} {}", at(a), at(b)), true),
                }
            }
            Node::Select(c, a, b) => (format!("if {} then {} else {}", at(c), at(a), at(b)), true),
        };
        let (s, compound) = if s.len() > LONG && id != root { (long(s), false) } else { (s, compound) };
        text.insert(id, (s, compound));
    }
    text[&root].0.clone()
}

fn name_of<T: Copy + PartialEq>(table: &[(T, &'static str)], op: T) -> &'static str {
    table.iter().find(|e| e.0 == op).map_or("?", |e| e.1)
}
