//! The edges of connections: from a rule, or from a file.
//!
//! In come a connection of a model and the model's extent; out go its edges by target, or how many to expect.
//! Never true here: an edge depends on how the edges are going to be used, or the two sides of junctions differ in what they join.

use super::extent::Extent;
use crate::connect::{self, ConnectError, Csr, Ends, Entry, RULES, Rule, Shape};
use crate::data::{self, DataFile, Spikes};
use crate::diag::{Code, Diagnostic};
use crate::engine::Edges;
use crate::hir::{Method, shown};
use crate::ode::{self, Connection, ConnectionRule, Model, Node, NodeId, Projection, Side, Terminal};
use crate::runtime::rng::Draw;
use crate::source::Span;
use crate::step::Value;
use crate::units::Dim;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The edges of a connection, by target: in both directions, or those that lead to one side.
pub(super) fn edges(model: &Model, extent: &Extent, c: &Connection) -> Result<Edges, Diagnostic> {
    let shape = |end: Terminal| Shape { sizes: extent.grids[end.population].clone() };
    let csr = match c.side {
        Side::Both => both_ways(model, &shape(c.here), c)?,
        Side::Left => one_way(model, [&shape(c.here), &shape(c.there)], c)?,
        Side::Right => one_way(model, [&shape(c.there), &shape(c.here)], c)?,
    };
    Ok(Edges { offsets: csr.offsets, sources: csr.sources })
}

/// The edges of a projection.
pub(super) struct Projected {
    /// By target, and of each target by source.
    pub edges: Arc<Edges>,
    /// To so many compartments of each cell they may lead.
    pub each: usize,
    /// If cells of one population are joined: how many there are.
    pub within: Option<usize>,
    /// Where each stands among numbers that are given one by one.
    pub rows: Vec<u32>,
    /// The sizes of the kernel that such numbers are for, if they are not for the edges.
    pub kernel: Option<[usize; 4]>,
    /// If the edges are the spikes of a file: how many cells such numbers are for.
    pub spikes: Option<OfSpikes>,
    /// How far the two cells of each edge are from each other, in steps of the target's grid, if something depends on it.
    pub distances: Option<Vec<f64>>,
}

/// What edges are that are the spikes of a file.
pub(super) struct OfSpikes {
    /// How many cells they may lead to.
    pub cells: usize,
    /// How long each takes (ms).
    pub delays: Vec<f64>,
    /// What is probably wrong with them.
    pub warnings: Vec<Diagnostic>,
}

/// The edges of a projection: where a file lists them, with the row of each; where they share a kernel, with the place in it.
pub(super) fn projected(model: &Model, extent: &Extent, p: &Projection) -> Result<Projected, Diagnostic> {
    let fail = |e: ConnectError| refused(&p.name, p.span, e.to_string());
    let [source, target] = shapes(model, extent, p);
    apart(model, p, [&source, &target])?;
    let is_within = model.cells_of(p.from) == model.cells_of(p.to);
    let ends = Ends::new(&source, &target, is_within);
    let (mut entries, kernel, from_file) = match &p.rule {
        ConnectionRule::Named(name, arguments) => {
            let rule = rule(model, name, arguments).map_err(|why| refused(&p.name, p.span, why))?;
            let rule = rule.at_place(p.place.map_or(0, |place| u64::from(place.number)));
            let entries = connect::directed(&rule, ends, model.seed, stream(&p.name)).map_err(fail)?;
            (entries, connect::kernel(&rule, ends).map_err(fail)?, false)
        }
        ConnectionRule::File(file) => (connect::read_pairs(&model.data[*file as usize], ends, false)?, None, true),
        ConnectionRule::Spikes { file, cells, delay } => {
            return spikes_of_file(model, extent, p, &model.data[*file as usize], (*cells, *delay));
        }
    };
    let all: Vec<u32> = (0..entries.len() as u32).collect();
    let in_compartments = model.elements_per_cell(p.to) > 1;
    let (rows, each) = if from_file || kernel.is_some() || in_compartments {
        let by_ends = |entries: &[Entry], mut order: Vec<u32>| {
            order.sort_by_key(|&entry| entries[entry as usize]);
            order
        };
        let order = by_ends(&entries, all);
        // Where each entry stands among numbers that are given one by one: in a file as its line, in a kernel where that says, else by cell and source.
        let by_cell = (!from_file && kernel.is_none()).then(|| {
            let mut places = vec![0; order.len()];
            (0..).zip(&order).for_each(|(place, &entry)| places[entry as usize] = place);
            places
        });
        let each = spread(model, p, (target.cells(), &mut entries))?;
        let order = if each > 1 { by_ends(&entries, order) } else { order };
        let row = |entry: u32| match (&kernel, &by_cell) {
            (Some(kernel), _) => kernel.entry[entry as usize],
            (None, Some(places)) => places[entry as usize],
            (None, None) => entry,
        };
        (order.into_iter().map(row).collect(), each)
    } else {
        (all, 1)
    };
    let mut csr = Csr::from_entries(&entries, target.cells() * each, source.cells()).map_err(fail)?;
    csr.sort_sources();
    let edges = Arc::new(Edges { offsets: csr.offsets, sources: csr.sources });
    let distances = p.spacing.is_some().then(|| distances(&edges, [&source, &target], each));
    let (within, kernel) = (is_within.then(|| source.cells()), kernel.map(|kernel| kernel.sizes));
    Ok(Projected { edges, each, within, rows, kernel, spikes: None, distances })
}

/// How far the two cells of each edge are from each other, in steps of the target's grid. An edge leads to one of so many elements of each cell.
fn distances(edges: &Edges, [source, target]: [&Shape; 2], each: usize) -> Vec<f64> {
    let targets = edges.offsets.windows(2).enumerate();
    let of_target = targets.flat_map(|(at, rows)| {
        let sources = &edges.sources[rows[0] as usize..rows[1] as usize];
        sources.iter().map(move |&from| Shape::distance((source, from), (target, (at / each) as u32)))
    });
    of_target.collect()
}

/// What is wrong with the grids of a projection whose weights or delays depend on how far cells are from each other.
fn apart(model: &Model, p: &Projection, [source, target]: [&Shape; 2]) -> Result<(), Diagnostic> {
    let Some(spacing) = p.spacing else { return Ok(()) };
    let number = |node: NodeId| match ode::evaluate(model, node) {
        Ok(Value::Real(x)) => Ok(x),
        Ok(Value::Single(_) | Value::Mask(_)) | Err(_) => {
            Err(refused(&p.name, p.span, "a spacing is not known before the run".to_string()))
        }
    };
    let [from, to] = [number(spacing[0])?, number(spacing[1])?];
    if source.covers(from, target, to) {
        return Ok(());
    }
    let is_length = !matches!(model.graph.node(spacing[0]), Node::Const(_, Dim::ONE));
    let said = |shape: &Shape, spacing: f64| {
        let sizes: Vec<String> = shape.sizes.iter().map(usize::to_string).collect();
        match is_length {
            true => format!("[{}] with a spacing of {}", sizes.join(", "), shown(spacing, &Dim::LENGTH.display_unit())),
            false => format!("[{}]", sizes.join(", ")),
        }
    };
    let why = format!(
        "`distance` is between grids that cover the same space: {} and {} do not",
        said(source, from),
        said(target, to)
    );
    let d = refused(&p.name, p.span, why);
    Err(match is_length {
        true => d.help("along each dimension the size times the spacing is the same for both"),
        false => d.help("give both populations a spacing, with which sizes and spacings make up the same space: `{ spacing = 50 um }`"),
    })
}

/// The spikes of a file as edges from a clock: each from the stretch that it arrives in. A receptor in several compartments gets it in each.
fn spikes_of_file(
    model: &Model,
    extent: &Extent,
    p: &Projection,
    file: &DataFile,
    (chosen, delay): (Option<(NodeId, NodeId)>, NodeId),
) -> Result<Projected, Diagnostic> {
    let spikes = data::spikes(file)?;
    let (dt, end) = (extent.grid.dt, extent.grid.steps as f64);
    let (cells, each) = (extent.cells[model.cells_of(p.to)], model.elements_per_cell(p.to));
    let number = |node: NodeId| match ode::evaluate(model, node) {
        Ok(Value::Real(x)) if (0.0..=cells as f64).contains(&x) => Some(x as usize),
        _ => None,
    };
    // What is wrong with a range is told elsewhere.
    let chosen = chosen.and_then(|(first, end)| Some(number(first)?..number(end)?)).unwrap_or(0..cells);
    if let Some(at) = spikes.cells.iter().position(|&cell| !chosen.contains(&(cell as usize))) {
        let (place, cell) = (spikes.place(at), spikes.cells[at]);
        let why = match cell as usize {
            outside if outside >= cells => format!("but the population has {cells} cells (the first is 0)"),
            _ => format!("but the drive leads to the cells {}..{} (the end is not included)", chosen.start, chosen.end),
        };
        return Err(data::wrong(file, format!("{place} is for cell {cell}, {why}")));
    }
    let delays = ode::cells::values(model, delay, None, cells, &|_, _| None);
    let delays =
        delays.ok_or_else(|| Diagnostic::new(Code::Internal, p.span, "this delay is not known before the run", ""))?;
    let adaptive = model.method == Method::Adaptive;
    let steps = |time: f64| if adaptive { time / dt } else { (time / dt + 0.5).floor() };
    let delays: Vec<f64> = delays.into_iter().map(steps).collect();
    // What comes before the middle of the first step arrives in it; where steps are as long as the error allows, everything at its own time.
    let first = if adaptive { 0.0 } else { 1.0 };
    let arrival = |(&t, &cell): (&f64, &u32)| (cell, steps(t).max(first) + delays[cell as usize]);
    let arrivals = spikes.times.iter().zip(&spikes.cells).map(arrival).filter(|(_, step)| *step <= end);
    let mut arrivals: Vec<(u32, f64)> = arrivals.collect();
    arrivals.sort_unstable_by(|a, b| a.0.cmp(&b.0).then(a.1.total_cmp(&b.1)));
    let mut entries: Vec<Entry> = Vec::with_capacity(arrivals.len() * each);
    let (mut of_cells, mut taken) = (Vec::new(), Vec::new());
    for same in arrivals.chunk_by(|a, b| a.0 == b.0) {
        for element in 0..each as u32 {
            for &(cell, step) in same {
                let stretch = ((step - 1.0).max(0.0) / f64::from(ode::STRETCH)).floor();
                entries.push((cell * each as u32 + element, stretch as u32));
                of_cells.push(cell);
                taken.push((step - stretch * f64::from(ode::STRETCH)) * dt);
            }
        }
    }
    let csr = Csr::from_entries(&entries, cells * each, extent.cells[p.from]);
    let csr = csr.map_err(|e| refused(&p.name, p.span, e.to_string()))?;
    let edges = Arc::new(Edges { offsets: csr.offsets, sources: csr.sources });
    let late = spikes.times.len() - arrivals.len();
    let warnings = [
        nothing(&spikes, file),
        after_the_end(&spikes, file, late, end * dt),
        between_steps(&spikes, file, dt).filter(|_| !adaptive),
    ];
    let warnings = warnings.into_iter().flatten().collect();
    Ok(Projected {
        edges,
        each,
        within: None,
        rows: of_cells,
        kernel: None,
        spikes: Some(OfSpikes { cells, delays: taken, warnings }),
        distances: None,
    })
}

/// A warning if a file has no spikes.
fn nothing(spikes: &Spikes, file: &DataFile) -> Option<Diagnostic> {
    if !spikes.times.is_empty() {
        return None;
    }
    let of = file.column.as_ref().map_or(String::new(), |wanted| format!(" of `{wanted}`"));
    let message = format!("`{}` has no spikes{of}", file.name);
    let d = Diagnostic::new(Code::NoEffect, file.span, message, "nothing arrives");
    Some(match &spikes.populations[..] {
        [] => d,
        others => d.note(format!("it has spikes of `{}`", others.join("`, `"))),
    })
}

/// A warning if so many spikes arrive after the end of the run.
fn after_the_end(spikes: &Spikes, file: &DataFile, late: usize, end: f64) -> Option<Diagnostic> {
    if late == 0 {
        return None;
    }
    let unit = Dim::TIME.display_unit();
    let last = shown(spikes.times.iter().copied().fold(0.0, f64::max), &unit);
    let message = format!("{late} of {} spikes of `{}` arrive after the end of the run", spikes.times.len(), file.name);
    let d = Diagnostic::new(Code::NoEffect, file.span, message, "they are left out");
    Some(d.note(format!("the last is at {last}, and the run ends at {}", shown(end, &unit))))
}

/// A warning if times are not whole numbers of steps, by more than a hundredth of one.
fn between_steps(spikes: &Spikes, file: &DataFile, dt: f64) -> Option<Diagnostic> {
    let unit = Dim::TIME.display_unit();
    let taken = |t: &f64| ode::at_the_end_of_a_step(*t, dt);
    let (first, moved) = spikes.times.iter().enumerate().find_map(|(at, t)| Some((at, taken(t)?)))?;
    let count = spikes.times.iter().filter_map(taken).count();
    let message = format!("{count} of {} times in `{}` are not whole numbers of steps", spikes.times.len(), file.name);
    let [t, taken] = [spikes.times[first], moved].map(|t| shown(t, &unit));
    let d = Diagnostic::new(
        Code::DelayRounded,
        file.span,
        message,
        format!("{t} of {} become {taken}", spikes.place(first)),
    );
    Some(d.note(format!("a step is {}", shown(dt, &unit))))
}

/// Lets entries that lead to cells lead to compartments, where the receptor is in several of each cell: each to one that is drawn, in proportion to
/// its length. Answers how many of these compartments a cell has.
fn spread(model: &Model, p: &Projection, (cells, entries): (usize, &mut [Entry])) -> Result<usize, Diagnostic> {
    let Some((tree, elements)) = model.elements(p.to).filter(|(_, elements)| elements.len() > 1) else { return Ok(1) };
    if cells as u64 * elements.len() as u64 > u64::from(u32::MAX) {
        return Err(refused(&p.name, p.span, format!("{cells} cells have too many compartments to be counted")));
    }
    let mut ends = Vec::with_capacity(elements.len());
    let mut length = 0.0;
    for &element in &elements {
        length += tree.length[element as usize];
        ends.push(length);
    }
    let draw = Draw { seed: model.seed, stream: stream(&format!("{}'place", p.name)) };
    for (row, (target, _)) in (0..).zip(entries) {
        let along = draw.uniform(row, 0) * length;
        let at = ends.partition_point(|&end| end <= along).min(elements.len() - 1);
        *target = *target * elements.len() as u32 + at as u32;
    }
    Ok(elements.len())
}

/// The edges of all projections, drawn side by side where they are many.
pub(super) fn all_projected(model: &Model, extent: &Extent) -> Vec<Result<Projected, Diagnostic>> {
    let all = &model.projections;
    let expected: f64 = all.iter().map(|p| expected_events(model, extent, p)).sum();
    let cores = std::thread::available_parallelism().map_or(1, |n| n.get());
    let threads = if expected < MANY { 1 } else { cores.min(all.len()) };
    let next = AtomicUsize::new(0);
    let some = || {
        let mut found = Vec::new();
        while let Some((at, p)) = Some(next.fetch_add(1, Ordering::Relaxed)).and_then(|at| Some((at, all.get(at)?))) {
            found.push((at, projected(model, extent, p)));
        }
        found
    };
    let mut found = std::thread::scope(|scope| {
        let others: Vec<_> = (1..threads).map(|_| scope.spawn(some)).collect();
        let mut found = some();
        for other in others {
            found.extend(other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        }
        found
    });
    found.sort_by_key(|(at, _)| *at);
    found.into_iter().map(|(_, projected)| projected).collect()
}

/// Fewer edges are not worth a thread.
const MANY: f64 = 1e5;

/// The grids of the cells that send and of those that receive.
fn shapes(model: &Model, extent: &Extent, p: &Projection) -> [Shape; 2] {
    [p.from, p.to].map(|population| Shape { sizes: extent.grids[model.cells_of(population)].clone() })
}

/// What is wrong with the rule or the file of a connection; no edge is drawn.
pub(crate) fn wrong_connection(model: &Model, extent: &Extent, c: &Connection) -> Option<Diagnostic> {
    match &c.rule {
        ConnectionRule::Named(name, arguments) => rule(model, name, arguments).err().map(|why| wrong(c, why)),
        ConnectionRule::File(_) | ConnectionRule::Spikes { .. } => edges(model, extent, c).err(),
    }
}

/// What is wrong with the rule or the file of a projection; no edge is drawn.
pub(crate) fn wrong_projection(model: &Model, extent: &Extent, p: &Projection) -> Option<Diagnostic> {
    match &p.rule {
        _ if !p.is_first() => None,
        ConnectionRule::Named(name, arguments) => {
            let [source, target] = shapes(model, extent, p);
            let ends = Ends::Between { source: &source, target: &target };
            let fits = |rule: Rule| connect::windows_fit(&rule, ends).map_err(|e| e.to_string());
            let wrong = rule(model, name, arguments).and_then(fits).err().map(|why| refused(&p.name, p.span, why));
            wrong.or_else(|| apart(model, p, [&source, &target]).err())
        }
        ConnectionRule::File(_) | ConnectionRule::Spikes { .. } => projected(model, extent, p).err(),
    }
}

fn both_ways(model: &Model, shape: &Shape, c: &Connection) -> Result<Csr, Diagnostic> {
    let fail = |e: ConnectError| {
        let d = wrong(c, e.to_string());
        match model.elements(c.here.population) {
            Some((tree, elements)) if e == ConnectError::OnlySelf => {
                let place = elements.first().map_or(String::new(), |&element| tree.name(element as usize));
                d.help(format!("both ends are in one compartment, {place}: more of them tell the two places apart"))
            }
            Some(_) | None => d,
        }
    };
    match &c.rule {
        ConnectionRule::Named(name, arguments) => {
            let rule = rule(model, name, arguments).map_err(|why| wrong(c, why))?;
            let pairs = connect::undirected(&rule, shape, model.seed, stream(&c.stream)).map_err(fail)?;
            connect::directed_csr(&pairs, shape.cells()).map_err(fail)
        }
        ConnectionRule::File(file) => connect::read_junctions(&model.data[*file as usize], shape),
        ConnectionRule::Spikes { .. } => Err(no_junctions(c)),
    }
}

/// The edges that lead to one side. Both sides of junctions come from the same pairs (right, left).
fn one_way(model: &Model, [left, right]: [&Shape; 2], c: &Connection) -> Result<Csr, Diagnostic> {
    let fail = |e: ConnectError| wrong(c, e.to_string());
    let [here, there] = [c.here, c.there].map(|end| model.cells_of(end.population));
    let ends = Ends::new(left, right, here == there);
    // Of two cells with one junction between the same compartments, the one that a rule names first is the right one.
    let once = c.here == c.there;
    let pairs: Vec<Entry> = match &c.rule {
        ConnectionRule::Named(name, arguments) => {
            let rule = rule(model, name, arguments).map_err(|why| wrong(c, why))?;
            let stream = stream(&c.stream);
            match once {
                true => connect::undirected(&rule, left, model.seed, stream).map_err(fail)?,
                false => connect::directed(&rule, ends, model.seed, stream).map_err(fail)?,
            }
        }
        ConnectionRule::File(file) => connect::read_pairs(&model.data[*file as usize], ends, once)?,
        ConnectionRule::Spikes { .. } => return Err(no_junctions(c)),
    };
    match c.side {
        Side::Left => {
            let turned: Vec<Entry> = pairs.into_iter().map(|(right, left)| (left, right)).collect();
            Csr::from_entries(&turned, left.cells(), right.cells()).map_err(fail)
        }
        Side::Right | Side::Both => Csr::from_entries(&pairs, right.cells(), left.cells()).map_err(fail),
    }
}

/// Spikes join nothing.
fn no_junctions(c: &Connection) -> Diagnostic {
    Diagnostic::new(Code::Internal, c.span, "spikes are no junctions", "")
}

fn wrong(c: &Connection, why: String) -> Diagnostic {
    refused(&c.junctions, c.span, why)
}

fn refused(name: &str, span: Span, why: String) -> Diagnostic {
    Diagnostic::new(Code::BadValue, span, format!("`{name}` cannot be connected"), why)
}

/// The random stream of a connection, of its name alone.
fn stream(name: &str) -> u32 {
    let hash = blake3::hash(name.as_bytes());
    let mut stream = [0; 4];
    stream.copy_from_slice(&hash.as_bytes()[..4]);
    u32::from_le_bytes(stream)
}

/// How many edges a model has, about.
pub(crate) fn expected_edges(model: &Model, extent: &Extent) -> f64 {
    let projections = model.projections.iter().map(|p| expected_events(model, extent, p));
    projections.chain(model.connections.iter().map(|c| expected(model, extent, c))).sum()
}

/// Of what is recorded of edges that a rule makes: its name, and how many edges there are.
pub fn recorded_edges(model: &Model, extent: &Extent) -> Vec<(String, usize)> {
    let of = |r: &ode::Record| {
        let p = &model.projections[r.edges?];
        match p.rule {
            ConnectionRule::Named(..) => Some((r.name.clone(), projected(model, extent, p).ok()?.edges.sources.len())),
            ConnectionRule::File(_) | ConnectionRule::Spikes { .. } => None,
        }
    };
    model.records.iter().filter_map(of).collect()
}

/// How many connections a model has; a junction counts at both of its ends. Those that files list are counted, and where there are no others the
/// number is exact, as the second answer says. The spikes of a file are no connections.
pub(crate) fn connections(model: &Model, extent: &Extent) -> (f64, bool) {
    let of_projection = |p: &Projection| match p.rule {
        ConnectionRule::Named(..) => (expected_events(model, extent, p), false),
        // What is wrong with a file has been said.
        ConnectionRule::File(_) => (projected(model, extent, p).map_or(0, |of| of.edges.sources.len()) as f64, true),
        ConnectionRule::Spikes { .. } => (0.0, true),
    };
    let of_connection = |c: &Connection| match c.rule {
        ConnectionRule::Named(..) => (expected(model, extent, c), false),
        ConnectionRule::File(_) => (edges(model, extent, c).map_or(0, |edges| edges.sources.len()) as f64, true),
        ConnectionRule::Spikes { .. } => (0.0, true),
    };
    let all = model.projections.iter().map(of_projection).chain(model.connections.iter().map(of_connection));
    all.fold((0.0, true), |(sum, exact), (count, known)| (sum + count, exact && known))
}

/// How many edges a projection has, about.
pub(super) fn expected_events(model: &Model, extent: &Extent, p: &Projection) -> f64 {
    let [source, target] = shapes(model, extent, p);
    expected_of(model, &p.rule, |rule| connect::expected_directed(rule, &source, &target))
}

/// How many edges a connection has, about. What is wrong with it is said when the edges are made.
pub(super) fn expected(model: &Model, extent: &Extent, c: &Connection) -> f64 {
    let cells = |end: Terminal| extent.cells[end.population] as f64;
    expected_of(model, &c.rule, |rule| connect::expected_entries(rule, cells(c.here).max(cells(c.there))))
}

fn expected_of(model: &Model, of: &ConnectionRule, count: impl FnOnce(&Rule) -> f64) -> f64 {
    match of {
        ConnectionRule::Named(name, arguments) => rule(model, name, arguments).map_or(0.0, |rule| count(&rule)),
        // Two for a row of two numbers of four bytes.
        ConnectionRule::File(file) | ConnectionRule::Spikes { file, .. } => {
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
