//! The resolved model as text (`neuroc emit --stage hir`).

use super::{
    Arrivals, Cell, Channel, Coincident, Expr, ExprKind, Model, Quantity, Spike, SpikeCondition, Symbol, SymbolKind, Ty,
};
use crate::syntax::ast::{BinaryOp, UnaryOp};
use std::fmt::Write;

/// Prints every definition with its symbols, types and expressions; numbers are in canonical units.
pub fn print(model: &Model) -> String {
    let mut out = format!("model {}\n", model.name);
    for c in &model.channels {
        channel(&mut out, c);
    }
    for c in &model.cells {
        cell(&mut out, c);
    }
    if let Some(n) = &model.network {
        let _ = writeln!(out, "\nnetwork {}", n.name);
        symbols(&mut out, &n.params, &n.params);
        for p in &n.populations {
            let sizes: Vec<_> = p.sizes.iter().map(|s| show(s, &n.params, &n.params)).collect();
            let _ = writeln!(out, "    population {}: {}[{}]", p.name, model.cells[p.cell].name, sizes.join(", "));
        }
        for s in &n.settings {
            let population = &n.populations[s.population];
            let cell = &model.cells[population.cell];
            let what = if s.init { "init" } else { "param" };
            let value = show(&s.value, &cell.symbols, &n.params);
            let _ = writeln!(out, "    {what} {}.{} = {value}", population.name, cell.symbol(s.symbol).name);
        }
        for i in &n.inputs {
            let population = &n.populations[i.population];
            let cell = &model.cells[population.cell];
            let value = show(&i.value, &cell.symbols, &n.params);
            let _ = writeln!(out, "    input {}: {value} -> {}.{}", i.name, population.name, cell.symbol(i.port).name);
        }
    }
    if let Some(r) = &model.run {
        let _ = writeln!(out, "\nrun duration {} ms, dt {} ms, {}, seed {}", r.duration, r.dt, r.method.name(), r.seed);
        if r.arrivals.0 == Arrivals::AfterThreshold {
            let _ = writeln!(out, "    arrivals after_threshold");
        }
        if let Some((_, name)) =
            Coincident::ALL.iter().find(|(c, _)| *c == r.coincident.0 && *c != Coincident::PreFirst)
        {
            let _ = writeln!(out, "    coincident {name}");
        }
        if let (Some(n), false) = (&model.network, r.records.is_empty()) {
            for record in &r.records {
                let population = &n.populations[record.population];
                let of = match record.quantity {
                    Quantity::Potential(probe) => &n.probes[probe].name,
                    Quantity::OfCells(_) | Quantity::Junctions(_) | Quantity::Weight(_) | Quantity::Own(..) => {
                        &population.name
                    }
                };
                let name = match record.quantity {
                    Quantity::OfCells(symbol) => model.cells[population.cell].symbol(symbol).name.clone(),
                    Quantity::Junctions(port) => {
                        format!("<i_gap> of {}", model.cells[population.cell].symbol(port).name)
                    }
                    Quantity::Weight(p) => format!("<{}>.weight", n.projections[p].name),
                    Quantity::Potential(_) => "potential".to_string(),
                    Quantity::Own(p, number) => format!("<{}>.{number}", n.projections[p].name),
                };
                let every = record.sampling.every.map_or("every step".to_string(), |e| format!("every {e} ms"));
                let around = record.sampling.around.as_ref().map_or(String::new(), |around| {
                    let (of, (first, last)) = (&n.populations[around.population].name, around.window);
                    format!(" around spikes of {of} from {first} ms to {last} ms")
                });
                let _ = writeln!(out, "    record {of}.{name} {every}{around}");
            }
        }
        for sweep in &r.sweeps {
            let _ = writeln!(out, "    sweep {sweep}");
        }
    }
    out
}

fn channel(out: &mut String, c: &Channel) {
    let _ = writeln!(out, "\nchannel {}", c.name);
    symbols(out, &c.symbols, &[]);
}

fn cell(out: &mut String, c: &Cell) {
    let _ = writeln!(out, "\ncell {}", c.name);
    symbols(out, &c.symbols, &[]);
    if let Some(s) = &c.spike {
        spike(out, s, &c.symbols);
    }
}

fn spike(out: &mut String, s: &Spike, symbols: &[Symbol]) {
    let condition = match &s.condition {
        SpikeCondition::Crosses(a, b) => format!("{} crosses {}", show(a, symbols, &[]), show(b, symbols, &[])),
        SpikeCondition::When(e) => show(e, symbols, &[]),
    };
    let _ = writeln!(out, "    spike when {condition}");
    for (id, e) in &s.resets {
        let _ = writeln!(out, "        {} = {}", symbols[id.0 as usize].name, show(e, symbols, &[]));
    }
    if let Some(r) = &s.refractory {
        let _ = writeln!(out, "        refractory {}", show(r, symbols, &[]));
    }
}

fn symbols(out: &mut String, list: &[Symbol], network: &[Symbol]) {
    for s in list {
        let ty = match s.ty {
            Ty::Real(dim) => dim.display_unit().name,
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
    let with_unit = |x: f64, ty: Ty| match ty {
        Ty::Real(dim) if !dim.is_one() => super::shown(x, &dim.display_unit()),
        Ty::Real(_) | Ty::Bool => format!("{x}"),
    };
    show_with(e, symbols, symbols, &with_unit)
}

/// An expression, fully bracketed where operators nest.
fn show(e: &Expr, symbols: &[Symbol], network: &[Symbol]) -> String {
    show_with(e, symbols, network, &|x, _| format!("{x}"))
}

/// The same with numbers as they are told.
fn show_with(e: &Expr, symbols: &[Symbol], network: &[Symbol], number: &dyn Fn(f64, Ty) -> String) -> String {
    let show = |e: &Expr, symbols: &[Symbol], network: &[Symbol]| show_with(e, symbols, network, number);
    let sub = |e: &Expr| match e.kind {
        ExprKind::Binary(..) | ExprKind::If(..) => format!("({})", show(e, symbols, network)),
        _ => show(e, symbols, network),
    };
    match &e.kind {
        ExprKind::Number(x) => number(*x, e.ty),
        ExprKind::Bool(b) => format!("{b}"),
        ExprKind::Symbol(id) => named(symbols, id.0),
        ExprKind::NetworkParam(id) => named(network, id.0),
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
        ExprKind::OfEdge(number) => format!("own {number}"),
        ExprKind::Unary(UnaryOp::Neg, a) => format!("-{}", sub(a)),
        ExprKind::Unary(UnaryOp::Not, a) => format!("not {}", sub(a)),
        ExprKind::Binary(op, a, b) => format!("{} {} {}", sub(a), symbol(*op), sub(b)),
        ExprKind::If(c, a, b) => format!("if {} then {} else {}", sub(c), sub(a), sub(b)),
        ExprKind::Call(b, args) => {
            let args: Vec<_> = args.iter().map(|a| show(a, symbols, network)).collect();
            format!("{b:?}({})", args.join(", "))
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
