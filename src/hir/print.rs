//! The resolved model as text (`neuroc emit --stage hir`).
//!
//! In comes a model; out go all its definitions, with every number in the unit that its dimension is shown in.
//! Never true here: that something of the network is left out, or that two different expressions have one text.

use super::{
    Action, ActionOn, Arrivals, Cell, Channel, Coincident, Connection, ConnectionRule, Drive, DriveSource, End, Expr,
    ExprKind, Model, Network, Plastic, Population, Probe, Projection, Quantity, Record, Run, Spike, SpikeCondition,
    Symbol, SymbolId, SymbolKind, Ty,
};
use crate::syntax::ast::{AssignOp, BinaryOp, UnaryOp};
use std::fmt::Write;

/// Prints every definition with its symbols, types and expressions.
pub fn print(model: &Model) -> String {
    let mut out = format!("model {}\n", model.name);
    for c in &model.channels {
        channel(&mut out, c);
    }
    for (number, c) in model.cells.iter().enumerate() {
        cell(&mut out, model, number, c);
    }
    if let Some(n) = &model.network {
        network(&mut out, model, n);
        if let Some(r) = &model.run {
            run(&mut out, model, n, r);
        }
    }
    for (number, file) in model.data.iter().enumerate() {
        let column = file.column.as_ref().map_or(String::new(), |column| format!(", column {column}"));
        let _ = writeln!(out, "\nfile {number}: {}{column}", file.name);
    }
    out
}

fn channel(out: &mut String, c: &Channel) {
    let _ = writeln!(out, "\nchannel {}", c.name);
    symbols(out, &c.symbols, &[]);
}

fn cell(out: &mut String, model: &Model, number: usize, c: &Cell) {
    // Synapses make other cells of one and the same model.
    let of = model.network.iter().flat_map(|n| &n.populations).filter(|p| p.cell == number).map(|p| p.name.as_str());
    let of: Vec<&str> = of.collect();
    let of = if of.is_empty() { String::new() } else { format!(" of {}", of.join(", ")) };
    let _ = writeln!(out, "\ncell {}{of}", c.name);
    if let Some(m) = &c.morphology {
        let compartments: usize = m.sections.iter().map(|s| s.compartments).sum();
        let _ = writeln!(out, "    sections {}, compartments {compartments}", m.sections.len());
        for part in &m.parts {
            let _ = writeln!(out, "    part {}.{}, compartments {}", part.region, part.name, part.elements.len());
        }
        for pool in m.diffusions.iter().flat_map(|diffusion| &diffusion.pools) {
            let shell = pool.shell.map_or(String::new(), |depth| format!(", shell {depth} cm"));
            let _ =
                writeln!(out, "    diffuses {}: {}{shell}", c.symbol(pool.pool).name, c.symbol(pool.coefficient).name);
        }
    }
    symbols(out, &c.symbols, &[]);
    if let Some(s) = &c.spike {
        spike(out, s, c);
    }
}

fn spike(out: &mut String, s: &Spike, c: &Cell) {
    let show = |e: &Expr| show(e, &c.symbols, &[]);
    let condition = match &s.condition {
        SpikeCondition::Crosses(a, b) => format!("{} crosses {}", show(a), show(b)),
        SpikeCondition::When(e) => show(e),
    };
    let at = s.at.zip(c.morphology.as_ref()).map_or(String::new(), |(at, m)| format!(" at {}", m.tree.name(at)));
    let _ = writeln!(out, "    spike when {condition}{at}");
    for (id, e) in &s.resets {
        let _ = writeln!(out, "        {} = {}", c.symbol(*id).name, show(e));
    }
    if let Some(r) = &s.refractory {
        let names =
            |ids: &Vec<SymbolId>| ids.iter().map(|id| c.symbol(*id).name.clone()).collect::<Vec<_>>().join(", ");
        let holds = match &s.holds {
            None => String::new(),
            Some(ids) if ids.is_empty() => " holds nothing".to_string(),
            Some(ids) => format!(" holds {}", names(ids)),
        };
        let _ = writeln!(out, "        refractory {}{holds}", show(r));
    }
}

fn network(out: &mut String, model: &Model, n: &Network) {
    let _ = writeln!(out, "\nnetwork {}", n.name);
    symbols(out, &n.params, &n.params);
    let of_network = |e: &Expr| show(e, &n.params, &n.params);
    let cell_of = |population: usize| &model.cells[n.populations[population].cell];
    // A value of the cells of a population, and a place in them.
    let value = |population: usize, e: &Expr| show(e, &cell_of(population).symbols, &n.params);
    let place = |population: usize, cells: &Option<(Expr, Expr)>, symbol: SymbolId| {
        format!("{}.{}", some_of(n, population, cells), cell_of(population).symbol(symbol).name)
    };
    for p in &n.populations {
        population(out, model, n, p);
    }
    for s in &n.settings {
        let what = if s.init { "init" } else { "param" };
        let _ =
            writeln!(out, "    {what} {} = {}", place(s.population, &s.cells, s.symbol), value(s.population, &s.value));
    }
    for i in &n.inputs {
        let at = i.at.zip(cell_of(i.population).morphology.as_ref());
        let at = at.map_or(String::new(), |(at, m)| format!(" at {}", m.tree.name(at)));
        let _ = writeln!(
            out,
            "    input {}: {} -> {}{at}",
            i.name,
            value(i.population, &i.value),
            place(i.population, &i.cells, i.port)
        );
    }
    for c in &n.clamps {
        let (held, state) = (value(c.population, &c.value), place(c.population, &c.cells, c.state));
        let _ = writeln!(out, "    clamp {}: {held} -> {state}", c.name);
    }
    for c in &n.connections {
        connection(out, model, n, c);
    }
    for p in &n.projections {
        projection(out, model, n, p);
    }
    for d in &n.drives {
        drive(out, model, n, d);
    }
    for Probe { name, of, contacts, sigma, .. } in &n.probes {
        let of: Vec<&str> = of.iter().map(|&p| n.populations[p].name.as_str()).collect();
        let (of, count) = (of.join(", "), contacts.len());
        let _ = writeln!(out, "    probe {name} of {of}: contacts {count}, sigma {}", of_network(sigma));
    }
}

fn population(out: &mut String, model: &Model, n: &Network, p: &Population) {
    let of_network = |e: &Expr| show(e, &n.params, &n.params);
    let cell = &model.cells[p.cell];
    let sizes: Vec<_> = p.sizes.iter().map(of_network).collect();
    let sizes = if sizes.is_empty() { String::new() } else { format!("[{}]", sizes.join(", ")) };
    let _ = writeln!(out, "    population {}: {}{sizes}", p.name, cell.name);
    if let Some(spacing) = &p.spacing {
        let _ = writeln!(out, "        spacing {}", of_network(spacing));
    }
    for (axis, offset) in ["x", "y", "z"].iter().zip(&p.offset) {
        if let Some(offset) = offset {
            let _ = writeln!(out, "        {axis} {}", show(offset, &cell.symbols, &n.params));
        }
    }
    for receptor in &p.receptors {
        let _ = writeln!(out, "        receptor {}", receptor.name);
        for (state, jump) in &receptor.jumps {
            let (state, jump) = (&cell.symbol(*state).name, show(jump, &cell.symbols, &n.params));
            let _ = writeln!(out, "            on event {state} += {jump}");
        }
        if let Some(plastic) = &receptor.plastic {
            remembered(out, cell, plastic);
        }
        if let Some(sum) = receptor.sum {
            let _ = writeln!(out, "            sum {}", cell.symbol(sum).name);
        }
    }
}

/// What every synapse has for itself, and what changes it.
fn remembered(out: &mut String, cell: &Cell, plastic: &Plastic) {
    let show = |e: &Expr| show_of(e, &Names { symbols: &cell.symbols, network: &[], own: &plastic.own });
    for s in &plastic.own {
        let unit = s.display_unit().name;
        let _ = match &s.kind {
            SymbolKind::State { init, rate, .. } => {
                let (name, init, rate) = (&s.name, show(init), show(rate));
                writeln!(out, "            own {name}: {unit} = {init}\n            {name}' = {rate}")
            }
            SymbolKind::Let(e) => writeln!(out, "            own let {}: {unit} = {}", s.name, show(e)),
            SymbolKind::Param(_) | SymbolKind::Port(_) | SymbolKind::Voltage | SymbolKind::Pool => Ok(()),
        };
    }
    let mut act = |on: &str, actions: &[Action]| {
        for action in actions {
            let target = match action.on {
                ActionOn::Weight => "weight",
                ActionOn::Own(number) => &plastic.own[number as usize].name,
                ActionOn::Shared(id) => &cell.symbol(id).name,
            };
            let op = match action.op {
                AssignOp::Set => "=",
                AssignOp::Add => "+=",
                AssignOp::Sub => "-=",
            };
            let _ = writeln!(out, "            on {on} {target} {op} {}", show(&action.value));
        }
    };
    act("pre", &plastic.pre);
    act("post", &plastic.post);
    if let Some(modulator) = &plastic.modulator {
        act("modulator", &modulator.actions);
    }
}

/// A population, or the cells of it that are meant.
fn some_of(n: &Network, population: usize, cells: &Option<(Expr, Expr)>) -> String {
    let name = &n.populations[population].name;
    let show = |e: &Expr| show(e, &n.params, &n.params);
    match cells {
        Some((first, end)) => format!("{name}[{} .. {}]", show(first), show(end)),
        None => name.clone(),
    }
}

fn rule(n: &Network, rule: &ConnectionRule) -> String {
    match rule {
        ConnectionRule::Named(name, arguments) if arguments.is_empty() => (*name).to_string(),
        ConnectionRule::Named(name, arguments) => {
            let arguments: Vec<_> = arguments.iter().map(|e| show(e, &n.params, &n.params)).collect();
            format!("{name}({})", arguments.join(", "))
        }
        ConnectionRule::File(data) => format!("edges(file {})", data.0),
    }
}

fn connection(out: &mut String, model: &Model, n: &Network, c: &Connection) {
    let end = |e: &End| {
        let (population, cell) = (&n.populations[e.population], &model.cells[n.populations[e.population].cell]);
        let at = e.at.zip(cell.morphology.as_ref()).map_or(String::new(), |(at, m)| format!(" at {}", m.tree.name(at)));
        format!("{}.{}{at}", population.name, cell.symbol(e.v).name)
    };
    let [left, right] = &c.ends;
    let current = show(&c.current, &n.params, &n.params);
    let _ = writeln!(out, "    junctions {}: {} -- {}, {}", c.name, end(left), end(right), rule(n, &c.rule));
    let _ = writeln!(out, "        current {current}");
}

fn projection(out: &mut String, model: &Model, n: &Network, p: &Projection) {
    let (from, to) = (&n.populations[p.from], &n.populations[p.to]);
    let of_edges = |e: &Expr| show(e, &model.cells[to.cell].symbols, &n.params);
    let way = if p.modulates { "modulating" } else { "via" };
    let receptor = &to.receptors[p.receptor].name;
    let _ = writeln!(out, "    connect {} -> {} {way} {receptor}, {}", from.name, to.name, rule(n, &p.rule));
    if let Some(sent) = &p.sent {
        let cell = &model.cells[from.cell];
        let part = sent.part.zip(cell.morphology.as_ref()).map(|(part, morphology)| &morphology.parts[part]);
        let at = part.map_or(String::new(), |part| format!(" at {}", part.region));
        let _ = writeln!(out, "        sends {}{at}", show(&sent.value, &cell.symbols, &n.params));
    }
    let _ = writeln!(out, "        weight {}\n        delay {}", of_edges(&p.weight), of_edges(&p.delay));
    if let Some(dendritic) = &p.dendritic {
        let _ = writeln!(out, "        dendritic_fraction {}", of_edges(dendritic));
    }
    for given in &p.given {
        let _ = writeln!(out, "        {} {}", given.name, of_edges(&given.value));
    }
    if p.max_pool > 1 {
        let _ = writeln!(out, "        max_pool {}", p.max_pool);
    }
}

fn drive(out: &mut String, model: &Model, n: &Network, d: &Drive) {
    let to = &n.populations[d.population];
    let value = |e: &Expr| show(e, &model.cells[to.cell].symbols, &n.params);
    let (way, receptor) = (if d.modulates { "modulating" } else { "via" }, &to.receptors[d.receptor].name);
    let source = match &d.source {
        DriveSource::Poisson { rate, stream } => format!("poisson({}) #{stream:x}", value(rate)),
        DriveSource::Times(times) => {
            let times: Vec<_> = times.iter().map(value).collect();
            format!("times({})", times.join(", "))
        }
        DriveSource::Spikes(data) => format!("spikes(file {})", data.0),
    };
    let _ = writeln!(out, "    drive {} {way} {receptor} from {source}", some_of(n, d.population, &d.cells));
    let _ = writeln!(out, "        weight {}", value(&d.weight));
    if let Some(delay) = &d.delay {
        let _ = writeln!(out, "        delay {}", value(delay));
    }
}

fn run(out: &mut String, model: &Model, n: &Network, r: &Run) {
    let _ = writeln!(out, "\nrun duration {} ms, dt {} ms, {}, seed {}", r.duration, r.dt, r.method.name(), r.seed);
    if let Some(kelvin) = r.celsius {
        let _ = writeln!(out, "    celsius {} K", kelvin);
    }
    if r.arrivals.0 == Arrivals::AfterThreshold {
        let _ = writeln!(out, "    arrivals after_threshold");
    }
    if let Some((_, name)) = Coincident::ALL.iter().find(|(c, _)| *c == r.coincident.0 && *c != Coincident::PreFirst) {
        let _ = writeln!(out, "    coincident {name}");
    }
    for each in &r.records {
        record(out, model, n, each);
    }
    for &population in &r.spikes {
        let _ = writeln!(out, "    record spikes of {}", n.populations[population].name);
    }
    for sweep in &r.sweeps {
        let _ = writeln!(out, "    sweep {sweep}");
    }
}

fn record(out: &mut String, model: &Model, n: &Network, record: &Record) {
    let cell = &model.cells[n.populations[record.population].cell];
    let of = match record.quantity {
        Quantity::Potential(probe) => n.probes[probe].name.clone(),
        Quantity::OfCells(_)
        | Quantity::Junctions(_)
        | Quantity::Weight(_)
        | Quantity::Own(..)
        | Quantity::Given(..) => some_of(n, record.population, &record.cells),
    };
    let name = match record.quantity {
        Quantity::OfCells(symbol) => cell.symbol(symbol).name.clone(),
        Quantity::Junctions(port) => format!("<i_gap> of {}", cell.symbol(port).name),
        Quantity::Weight(p) => format!("<{}>.weight", n.projections[p].name),
        Quantity::Potential(_) => "potential".to_string(),
        Quantity::Given(p, number) => {
            let projection = &n.projections[p];
            format!("<{}>.{}", projection.name, projection.given[number as usize].name)
        }
        Quantity::Own(p, number) => {
            let projection = &n.projections[p];
            let plastic = n.populations[projection.to].receptors[projection.receptor].plastic.as_ref();
            let own = plastic.and_then(|plastic| plastic.own.get(number as usize)).map_or("?", |own| &own.name);
            format!("<{}>.{own}", projection.name)
        }
    };
    let at = record.at.as_ref().map_or(String::new(), |at| format!(" at {}", at.text));
    let every = record.sampling.every.map_or("every step".to_string(), |e| format!("every {e} ms"));
    let (first, last) = record.sampling.window;
    let from = if first > 0.0 { format!(" from {first} ms") } else { String::new() };
    let to = if last < f64::MAX { format!(" to {last} ms") } else { String::new() };
    let around = record.sampling.around.as_ref().map_or(String::new(), |around| {
        let (of, (first, last)) = (some_of(n, around.population, &around.cells), around.window);
        format!(" around spikes of {of} from {first} ms to {last} ms")
    });
    let _ = writeln!(out, "    record {of}.{name}{at} {every}{from}{to}{around}");
}

fn symbols(out: &mut String, list: &[Symbol], network: &[Symbol]) {
    for s in list {
        let ty = match s.ty {
            Ty::Real(_) => s.display_unit().name,
            Ty::Bool => "condition".into(),
        };
        let name = &s.name;
        let _ = match &s.kind {
            SymbolKind::Param(e) => writeln!(out, "    param {name}: {ty} = {}", show(e, list, network)),
            SymbolKind::Let(e) => writeln!(out, "    let {name}: {ty} = {}", show(e, list, network)),
            SymbolKind::State { init, rate, kind, .. } => writeln!(
                out,
                "    {} {name}: {ty} = {}\n    {name}' = {}",
                kind.word(),
                show(init, list, network),
                show(rate, list, network)
            ),
            SymbolKind::Port(_) => writeln!(out, "    port {name}: {ty}"),
            SymbolKind::Voltage | SymbolKind::Pool => writeln!(out, "    reads {name}: {ty}"),
        };
    }
}

/// An expression of a block with these symbols, as it is after all functions and constants were put in.
pub fn equation(e: &Expr, symbols: &[Symbol]) -> String {
    show(e, symbols, symbols)
}

/// An expression, fully bracketed where operators nest.
fn show(e: &Expr, symbols: &[Symbol], network: &[Symbol]) -> String {
    show_of(e, &Names { symbols, network, own: &[] })
}

/// What expressions refer to by number.
struct Names<'m> {
    symbols: &'m [Symbol],
    network: &'m [Symbol],
    /// What every synapse has for itself.
    own: &'m [Symbol],
}

fn show_of(e: &Expr, names: &Names<'_>) -> String {
    let show = |e: &Expr| show_of(e, names);
    let sub = |e: &Expr| match e.kind {
        ExprKind::Binary(..) | ExprKind::If(..) | ExprKind::Unary(..) => format!("({})", show(e)),
        ExprKind::Number(x) if x.is_sign_negative() => format!("({})", show(e)),
        _ => show(e),
    };
    match &e.kind {
        ExprKind::Number(x) => match e.ty {
            Ty::Real(dim) if !dim.is_one() => super::shown(*x, &dim.display_unit()),
            Ty::Real(_) | Ty::Bool => format!("{x}"),
        },
        ExprKind::Bool(b) => format!("{b}"),
        ExprKind::Symbol(id) => named(names.symbols, id.0),
        ExprKind::NetworkParam(id) => named(names.network, id.0),
        ExprKind::Time => "t".into(),
        ExprKind::Celsius => "celsius".into(),
        ExprKind::StepLength => "dt".into(),
        ExprKind::SteadyState => "steady_state".into(),
        ExprKind::Index => "index".into(),
        ExprKind::Distance => "distance".into(),
        ExprKind::Dv => "dv".into(),
        ExprKind::Beyond => "x".into(),
        ExprKind::Measure(measure) => format!("{} of the compartment", measure.name()),
        ExprKind::Outward => "outward".into(),
        ExprKind::Weight => "weight".into(),
        ExprKind::Amount => "amount".into(),
        ExprKind::OfEdge(number) => named(names.own, *number),
        ExprKind::Unary(UnaryOp::Neg, a) => format!("-{}", sub(a)),
        ExprKind::Unary(UnaryOp::Not, a) => format!("not {}", sub(a)),
        ExprKind::Binary(op, a, b) => {
            // A sign in front is that of the first operand, but for powers.
            let signed = matches!(a.kind, ExprKind::Unary(UnaryOp::Neg, _) | ExprKind::Number(_));
            let a = if signed && *op != BinaryOp::Pow { show(a) } else { sub(a) };
            format!("{a} {} {}", symbol(*op), sub(b))
        }
        ExprKind::If(c, a, b) => format!("if {} then {} else {}", sub(c), sub(a), sub(b)),
        ExprKind::Call(b, args) => {
            let args: Vec<_> = args.iter().map(show).collect();
            format!("{}({})", b.name(), args.join(", "))
        }
        ExprKind::Draw(d, stream) => format!("draw {d:?} #{stream:x}"),
        ExprKind::File(d) => format!("file {}", d.0),
        ExprKind::Series(d) => format!("series {}", d.0),
        ExprKind::Chance(number, rate) => format!("poisson #{number:x} at {}", sub(rate)),
        ExprKind::Xi(number) => format!("xi #{number}"),
        ExprKind::Noise(stream, every) => format!("noise #{stream:x} every {}", sub(every)),
        ExprKind::Wanders([_, stream], tau) => format!("ornstein_uhlenbeck #{stream:x} tau {}", sub(tau)),
    }
}

/// The name of a symbol; of another block it has none.
fn named(symbols: &[Symbol], id: u32) -> String {
    symbols.get(id as usize).map_or_else(|| "?".to_string(), |s| s.name.clone())
}

fn symbol(op: BinaryOp) -> &'static str {
    match op {
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
    }
}
