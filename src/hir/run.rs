//! The run block: how long, in which steps, of which network, and what is recorded.
//!
//! In come the block and the network that it runs; out goes a [`Run`], all of its numbers in canonical units.
//! Never true here: a number of a run depends on the network.

use super::error::{ProbeError, RunError};
use super::expr::constant_of;
use super::items::Kind;
use super::keys::Block;
use super::lower::{Definition, Lowerer};
use super::network::Lowered;
use super::place::{FlatPath, Place, Wanted, flatten};
use super::scope::{Entry, Role, Scope, ScopeKind};
use super::{
    Around, Arrivals, Cell, Clamp, Coincident, Connection, Expr, Input, Method, Plastic, Population, PortKind, Probe,
    Projection, Quantity, Record, RecordedAt, Run, Sampling, Symbol, SymbolId, SymbolKind, Tolerances,
};
use crate::diag::Diagnostic;
use crate::source::Span;
use crate::syntax::ast::{self, RunMember};
use crate::units::Dim;
use std::collections::HashMap;

type Keys<'a> = HashMap<&'a str, &'a ast::Let>;

/// A key whose value is a number, with an example if a run must have it.
struct NumberKey {
    key: &'static str,
    dim: Dim,
    example: Option<&'static str>,
}

const DURATION: NumberKey = NumberKey { key: "duration", dim: Dim::TIME, example: Some("duration = 100 ms") };
const DT: NumberKey = NumberKey { key: "dt", dim: Dim::TIME, example: Some("dt = 0.025 ms") };
const CELSIUS: NumberKey = NumberKey { key: "celsius", dim: Dim::TEMPERATURE, example: None };
const RTOL: NumberKey = NumberKey { key: "rtol", dim: Dim::ONE, example: None };
const ATOL: NumberKey = NumberKey { key: "atol", dim: Dim::ONE, example: None };
const MAX_STEP: NumberKey = NumberKey { key: "max_step", dim: Dim::TIME, example: None };
const SEED: NumberKey = NumberKey { key: "seed", dim: Dim::ONE, example: None };

/// The largest seed that a file says: of numbers far above it not all are whole ones of their own.
pub(super) const LARGEST_SEED: f64 = 9e15;

/// What a run records, in the making.
struct Recorder<'a, 'n> {
    scope: Scope<'a>,
    populations: &'n [Population],
    clamps: &'n [Clamp],
    inputs: &'n [Input],
    connections: &'n [Connection],
    projections: &'n [Projection],
    probes: &'n [Probe],
    /// Is all of the network known? Else what is missing has been said, and what would follow from it is not.
    sound: bool,
    records: Vec<Record>,
    spikes: Vec<usize>,
}

impl<'a> Lowerer<'a> {
    /// Lowers the run block of a network.
    ///
    /// Without a network (which has been said to be missing or wrong) the keys are still checked.
    pub(super) fn run(&mut self, run: &'a ast::Run, lowered: Option<&Lowered>) -> Option<Run> {
        let before = self.diagnostics.count();
        let (keys, fine) = self.run_keys(run);
        let duration = self.run_number(run, &keys, DURATION);
        let dt = self.run_number(run, &keys, DT);
        let celsius = self.run_number(run, &keys, CELSIUS);
        let seed = self.run_number(run, &keys, SEED);
        let method = match keys.get("method") {
            None => Some(Method::ExpEuler),
            Some(l) => self.method(&l.value),
        };
        let tolerances = self.tolerances(run, &keys);
        let arrivals =
            self.one_of(&keys, "arrivals", Arrivals::ALL, |name, span| RunError::UnknownArrivals { name, span });
        let coincident =
            self.one_of(&keys, "coincident", Coincident::ALL, |name, span| RunError::UnknownCoincident { name, span });
        let seed = self.seed(&keys, seed);
        let span_of = |key: &str| keys.get(key).map_or(run.span, |l| l.value.span);
        let (dt_span, duration_span) = (span_of("dt"), span_of("duration"));
        if let (Some(Some(duration)), Some(Some(dt))) = (duration, dt)
            && dt > duration
        {
            self.error(RunError::LongStep { dt: (dt, dt_span), duration: (duration, duration_span) });
        }
        let (records, spikes) = self.recorded(run, lowered);
        let sweeps = self.sweeps(run);
        for r in &records {
            if let Some(Some(duration)) = duration
                && r.sampling.window.0 > duration
            {
                self.error(RunError::AfterTheRun { first: r.sampling.window.0, duration, span: r.span });
            }
        }
        let wrong = self.diagnostics.since(before).iter().any(Diagnostic::is_error);
        let population = lowered.and_then(|l| l.network.populations.first());
        if let (false, Some(population)) = (wrong || records_anything(run), population) {
            self.records_nothing(run, population);
        }
        if !fine {
            return None;
        }
        let (duration, dt, celsius) = (duration??, dt??, celsius?);
        let (method, tolerances, seed, span) = (method?, tolerances?, seed?, run.span);
        let (arrivals, coincident) = (arrivals?, coincident?);
        Some(Run {
            duration,
            dt,
            method,
            names_method: keys.contains_key("method"),
            tolerances,
            arrivals,
            coincident,
            seed,
            celsius,
            records,
            spikes,
            sweeps,
            span,
            dt_span,
            duration_span,
        })
    }

    /// The keys of a run, and whether there is nothing wrong with them.
    fn run_keys(&mut self, run: &'a ast::Run) -> (Keys<'a>, bool) {
        let mut keys = Keys::new();
        let mut fine = true;
        for member in &run.members {
            if let RunMember::Key(l) = member {
                if !Block::Run.has_key(&l.name.text) {
                    self.unknown_key(&l.name, Block::Run);
                    fine = false;
                } else if let Some(first) = keys.insert(&l.name.text, l) {
                    self.duplicate_key(&l.name, first.name.span);
                    fine = false;
                }
            }
        }
        (keys, fine)
    }

    /// The value of a key; `Some(None)` if it is absent and need not be there, `None` if something is wrong.
    fn run_number(&mut self, run: &ast::Run, keys: &Keys<'a>, number: NumberKey) -> Option<Option<f64>> {
        let NumberKey { key, dim, example } = number;
        let Some(l) = keys.get(key) else {
            let Some(example) = example else { return Some(None) };
            self.error(RunError::NoKey { key, example, run: word(run) });
            return None;
        };
        let span = l.value.span;
        let x = self.constant_of_run(&l.value, dim, &format!("`{key}`"))?;
        if let Some(example) = example
            && x <= 0.0
        {
            self.error(RunError::NotPositive { key, example, value: x, span });
            return None;
        }
        if dim == Dim::TEMPERATURE {
            self.warn_magnitude(key, &Expr::number(x, dim, span), dim);
        }
        Some(Some(x))
    }

    /// A number that is known before the run; `what` it is stands in messages.
    fn constant_of_run(&mut self, e: &ast::Expr, dim: Dim, what: &str) -> Option<f64> {
        let mut scope = Scope::new(ScopeKind::Constant, 0);
        let x = self.expr_of(&mut scope, "", e, dim, what)?;
        let value = constant_of(&x);
        match value {
            Some(x) if x.is_finite() => return value,
            Some(_) => self.error(RunError::NotFinite { what, span: e.span }),
            None => self.error(RunError::NotConstant { what, span: e.span }),
        }
        None
    }

    /// How accurate a method is that chooses its steps.
    fn tolerances(&mut self, run: &ast::Run, keys: &Keys<'a>) -> Option<Tolerances> {
        let mut tolerances = Tolerances::default();
        let mut fine = true;
        let all = [
            (RTOL, "rtol = 1e-8", &mut tolerances.rtol),
            (ATOL, "atol = 1e-8", &mut tolerances.atol),
            (MAX_STEP, "max_step = 1 ms", &mut tolerances.max_step),
        ];
        for (number, example, value) in all {
            let key = number.key;
            match self.run_number(run, keys, number) {
                Some(Some(x)) if x > 0.0 => *value = x,
                Some(Some(value)) => {
                    self.error(RunError::NotPositive { key, example, value, span: keys[key].value.span });
                    fine = false;
                }
                Some(None) => {}
                None => fine = false,
            }
        }
        fine.then_some(tolerances)
    }

    /// The seed, 0 if it is absent.
    fn seed(&mut self, keys: &Keys<'a>, value: Option<Option<f64>>) -> Option<u64> {
        let Some(value) = value? else { return Some(0) };
        if value < 0.0 || value.fract() != 0.0 || value > LARGEST_SEED {
            self.error(RunError::Seed { value, span: keys["seed"].value.span });
            return None;
        }
        Some(value as u64)
    }

    /// A setting that is one of a few words, and where that is said; what it is otherwise if it is absent.
    fn one_of<S: Copy + Default>(
        &mut self,
        keys: &Keys<'a>,
        key: &str,
        all: &[(S, &str)],
        unknown: for<'n> fn(&'n str, Span) -> RunError<'n>,
    ) -> Option<(S, Option<Span>)> {
        let Some(l) = keys.get(key) else { return Some(Default::default()) };
        let (name, span) = (self.word_of(&l.value), l.value.span);
        let found = all.iter().find(|(_, known)| *known == name);
        if found.is_none() {
            self.error(unknown(&name, span));
        }
        found.map(|&(setting, _)| (setting, Some(span)))
    }

    /// The text of what should be one word.
    fn word_of(&self, e: &ast::Expr) -> String {
        match &e.kind {
            ast::ExprKind::Path(path) => super::names::join(path),
            _ => self.text(e.span).to_string(),
        }
    }

    fn method(&mut self, e: &ast::Expr) -> Option<Method> {
        let name = self.word_of(e);
        let method = Method::named(&name);
        if method.is_none() {
            self.error(RunError::UnknownMethod { name: &name, span: e.span });
        }
        method
    }

    /// What the `record` lines of a run name in its network.
    fn recorded(&mut self, run: &'a ast::Run, lowered: Option<&Lowered>) -> (Vec<Record>, Vec<usize>) {
        let Some(lowered) = lowered else { return Default::default() };
        let mut scope = Scope::new(ScopeKind::Network, 0);
        for param in &lowered.network.params {
            scope.add(Entry::ready(param.name.clone(), param.span, Role::Param, Some(param.ty), None)).ok();
        }
        scope.poisoned.extend(lowered.unknown.iter().cloned());
        let (populations, clamps) = (&lowered.network.populations[..], &lowered.network.clamps[..]);
        let inputs = &lowered.network.inputs[..];
        let connections = &lowered.network.connections[..];
        let projections = &lowered.network.projections[..];
        let probes = &lowered.network.probes[..];
        let mut recorder = Recorder {
            scope,
            populations,
            clamps,
            inputs,
            connections,
            projections,
            probes,
            sound: lowered.sound,
            records: Vec::new(),
            spikes: Vec::new(),
        };
        for member in &run.members {
            match member {
                RunMember::Key(_) | RunMember::Sweep(_) => {}
                RunMember::RecordSpikes { target, span } => {
                    for flat in flatten(target) {
                        self.record_spikes(&mut recorder, &flat, *span);
                    }
                }
                RunMember::Record { target, every, from, to, around, .. } => {
                    let every = self.interval(every.as_ref());
                    let window = self.window(from.as_ref(), to.as_ref());
                    let around = match around {
                        None => Some(None),
                        Some(around) => self.around(&mut recorder, around).map(Some),
                    };
                    let (Some(every), Some(window), Some(around)) = (every, window, around) else { continue };
                    let sampling = Sampling { every, window, around };
                    for flat in flatten(target) {
                        self.record(&mut recorder, &flat, &sampling);
                    }
                }
            }
        }
        self.left_out(&recorder);
        (recorder.records, recorder.spikes)
    }

    /// Says of lines through one synapse of which some are recorded that there are others.
    fn left_out(&mut self, recorder: &Recorder<'a, '_>) {
        let all = recorder.projections;
        let of_line = |quantity: Quantity| match quantity {
            Quantity::Weight(line) | Quantity::Own(line, _) | Quantity::Given(line, _) => Some(line),
            _ => None,
        };
        for record in &recorder.records {
            let Some(line) = of_line(record.quantity) else { continue };
            let same =
                |p: &Projection| (p.from, p.to, p.receptor) == (all[line].from, all[line].to, all[line].receptor);
            let recorded = |at: usize| recorder.records.iter().any(|r| of_line(r.quantity) == Some(at));
            let lines = || (0..).zip(all).filter(|(_, p)| same(p) && !p.modulates);
            let others = || lines().filter(|&(at, _)| at != line && !recorded(at));
            // Who names another one by its number knows of the first.
            let is_first = lines().next().is_some_and(|(at, _)| at == line);
            if let Some((_, other)) = others().next().filter(|_| is_first) {
                let all_others: Vec<&str> = others().map(|(_, p)| p.name.as_str()).collect();
                self.error(RunError::OneOfSeveral {
                    line: &all[line].name,
                    others: &all_others,
                    span: record.span,
                    other: other.span,
                });
            }
        }
    }

    /// The interval of a `record` line, `Some(None)` if it has none.
    fn interval(&mut self, every: Option<&ast::Expr>) -> Option<Option<f64>> {
        let Some(e) = every else { return Some(None) };
        let x = self.constant_of_run(e, Dim::TIME, "the recording interval")?;
        if x <= 0.0 {
            self.error(RunError::Interval { span: e.span });
            return None;
        }
        Some(Some(x))
    }

    /// The first and the last time (ms) of a `record` line.
    fn window(&mut self, from: Option<&ast::Expr>, to: Option<&ast::Expr>) -> Option<(f64, f64)> {
        let mut time = |e: Option<&ast::Expr>, what: &str, absent: f64| match e {
            None => Some(absent),
            Some(e) => self.constant_of_run(e, Dim::TIME, what),
        };
        let first = time(from, "the start of recording", 0.0);
        let last = time(to, "the end of recording", f64::INFINITY);
        let (first, last) = (first?, last?);
        let span = from.into_iter().chain(to).map(|e| e.span).reduce(|a, b| a.to(b));
        if let Some(span) = span
            && !(0.0 <= first && first <= last)
        {
            self.error(RunError::Window { first, last, span });
            return None;
        }
        Some((first, last))
    }

    /// The spikes around which something is recorded.
    fn around(&mut self, recorder: &mut Recorder<'a, '_>, around: &'a ast::Around) -> Option<Around> {
        let window = self.around_window(around);
        let flats = flatten(&around.of);
        let [flat] = &flats[..] else {
            self.error(RunError::AroundSeveral { span: around.of.span });
            return None;
        };
        let place = self.place(&mut recorder.scope, recorder.populations, flat)?;
        let population = place.population;
        let definition = self.lowered_cell(recorder.populations[population].cell);
        if !place.rest.is_empty() {
            self.error(RunError::AroundPart { population: &place.names[0].text, span: flat.span });
            return None;
        }
        if definition.item.spike.is_none() {
            if definition.sound {
                self.error(RunError::NoSpikes { cell: &definition.item, span: flat.span });
            }
            return None;
        }
        if !recorder.spikes.contains(&population) {
            recorder.spikes.push(population);
        }
        Some(Around { population, cells: place.cells, window: window?, span: around.of.span })
    }

    /// From when to when (ms), counted from a spike.
    fn around_window(&mut self, around: &'a ast::Around) -> Option<(f64, f64)> {
        let (Some(from), Some(to)) = (&around.from, &around.to) else {
            let missing = if around.from.is_none() { "from" } else { "to" };
            self.error(RunError::AroundWhen { missing, span: around.span });
            return None;
        };
        let first = self.constant_of_run(from, Dim::TIME, "the start of recording");
        let last = self.constant_of_run(to, Dim::TIME, "the end of recording");
        let (first, last) = (first?, last?);
        if first > last {
            self.error(RunError::AroundWindow { first, last, span: from.span.to(to.span) });
            return None;
        }
        Some((first, last))
    }

    fn record_spikes(&mut self, recorder: &mut Recorder<'a, '_>, flat: &FlatPath<'a>, span: Span) {
        let Some(place) = self.place(&mut recorder.scope, recorder.populations, flat) else { return };
        let definition = self.lowered_cell(recorder.populations[place.population].cell);
        if !place.rest.is_empty() || place.cells.is_some() {
            self.error(RunError::SpikesOfPart { population: &place.names[0].text, span: flat.span });
        } else if definition.item.spike.is_none() && definition.sound {
            self.error(RunError::NoSpikes { cell: &definition.item, span });
        } else if !recorder.spikes.contains(&place.population) {
            recorder.spikes.push(place.population);
        }
    }

    fn record(&mut self, recorder: &mut Recorder<'a, '_>, flat: &FlatPath<'a>, sampling: &Sampling) {
        if let Some(quantity) = self.of_edges(recorder, flat) {
            return self.record_edges(recorder, flat, quantity, sampling);
        }
        let is_named = |probe: &Probe| flat.names.first().is_some_and(|name| name.text == probe.name);
        if let Some(probe) = recorder.probes.iter().position(is_named) {
            return self.record_potential(recorder, flat, probe, sampling);
        }
        let ends = self.ends_of_edges(recorder.populations, flat);
        if let Some(ends) = &ends
            && self.lowered_cell(recorder.populations[ends.to].cell).is_unknown(&ends.rest)
        {
            return;
        }
        if let Some(meant) = self.of_other_edges(recorder, flat) {
            self.error(RunError::PathOfEdges { meant: &meant, span: flat.span });
            return;
        }
        if let Some(ends) = ends.filter(|_| recorder.sound) {
            let between = |p: &&Projection| (p.from, p.to) == (ends.from, ends.to) && !p.modulates;
            let known: Vec<&str> = recorder.projections.iter().filter(between).map(|p| p.name.as_str()).collect();
            let behind = &recorder.populations[ends.to];
            let of_cells = self.lowered_cell(behind.cell).item.find(&ends.rest).is_some();
            let of_cells = of_cells.then(|| format!("{}.{}", behind.name, ends.rest));
            let ends = [ends.from, ends.to].map(|end| recorder.populations[end].name.as_str());
            self.error(RunError::NoSuchEdges { ends, known: &known, of_cells, span: flat.span });
            return;
        }
        let Some(place) = self.place_within(&mut recorder.scope, recorder.populations, flat) else { return };
        let definition = self.lowered_cell(recorder.populations[place.population].cell);
        let cell = &definition.item;
        if let (true, Some(sender)) = (flat.at.is_none(), self.sender_of(recorder, &place)) {
            self.error(RunError::OfTheSender { quantity: &place.rest, sender: &sender, span: flat.span });
            return;
        }
        // Of what is no cell nothing is known.
        if definition.is_unknown(&cell.name) {
            return;
        }
        if cell.morphology.is_some() || flat.at.is_some() {
            return self.record_at(recorder, &definition, place, flat, sampling);
        }
        let symbol = cell.find(&place.rest).filter(|id| Wanted::Quantity.fits(cell.symbol(*id)));
        let symbol = symbol.or_else(|| current_of_clamp(cell, &place.rest));
        let (population, span) = (place.population, flat.span);
        let (quantity, symbol) = match (symbol, port_of_junctions(cell, &place.rest)) {
            (Some(symbol), _) => (Quantity::OfCells(symbol), symbol),
            (None, Some(port)) => (Quantity::Junctions(port), port),
            (None, None) => {
                self.bad_target(&definition, &place, Wanted::Quantity);
                return;
            }
        };
        let cells = place.cells;
        let owner = || {
            let (compartment, _) = place.rest.rsplit_once('.').unwrap_or(("", &place.rest));
            let name = &recorder.populations[population].name;
            if compartment.is_empty() { name.clone() } else { format!("{name}.{compartment}") }
        };
        let joins = |c: &Connection| c.ends.iter().any(|end| (end.population, end.port) == (population, symbol));
        if matches!(quantity, Quantity::Junctions(_)) && !recorder.connections.iter().any(joins) {
            if recorder.sound {
                self.error(RunError::NoJunctions { compartment: &owner(), span });
            }
            return;
        }
        if let SymbolKind::Port(PortKind::Clamp { v, port, .. }) = cell.symbol(symbol).kind
            && !recorder.clamps.iter().any(|c| c.population == population && c.state == v)
            && !recorder.inputs.iter().any(|i| i.electrode && i.population == population && i.port == port)
        {
            if recorder.sound {
                self.error(RunError::NoClamp { quantity: &place.rest, compartment: &owner(), span });
            }
            return;
        }
        let same = |r: &&Record| r.population == population && r.quantity == quantity && r.cells == cells;
        if let Some(first) = recorder.records.iter().find(same) {
            self.error(RunError::RecordedTwice { quantity: &place.rest, again: span, first: first.span });
            return;
        }
        let sampling = sampling.clone();
        recorder.records.push(Record { population, cells, quantity, at: None, sampling, span });
    }

    /// The projection whose edges a path leads to, and what of them it names.
    fn of_edges(&mut self, recorder: &Recorder<'a, '_>, flat: &FlatPath<'a>) -> Option<(usize, String)> {
        let (last, names) = flat.names.split_last()?;
        let mut names: Vec<String> = names.iter().map(|name| name.text.clone()).collect();
        if let (Some(located), Some(to)) = (flat.at, flat.names.get(1)) {
            let to = recorder.populations.iter().find(|p| p.name == to.text).filter(|_| names.len() > 2)?;
            let definition = self.lowered_cell(to.cell);
            let morphology = definition.item.morphology.as_ref()?;
            names.insert(2, morphology.tree.name(self.element_of(morphology, located)?));
        }
        let name = names.join(".");
        let projection = recorder.projections.iter().position(|p| p.name == name)?;
        Some((projection, last.text.clone()))
    }

    /// What a path to edges should be that begins with the two populations, and names the synapse in part or not at all.
    fn of_other_edges(&self, recorder: &Recorder<'a, '_>, flat: &FlatPath<'a>) -> Option<Vec<String>> {
        let (last, names) = flat.names.split_last()?;
        let number = |name: &ast::Name| recorder.populations.iter().position(|p| p.name == name.text);
        let first = number(names.first()?)?;
        // Who sends may be missing.
        let second = names.get(1).and_then(|name| number(name));
        let (from, to) = second.map_or((None, first), |second| (Some(first), second));
        let between = &names[if from.is_some() { 2 } else { 1 }..];
        let is_whole = flat.at.is_none() && flat.selections.is_empty();
        let rest: Vec<&str> = flat.names[1..].iter().map(|name| name.text.as_str()).collect();
        let own = self.lowered_cell(recorder.populations[first].cell);
        if !is_whole || own.item.find(&rest.join(".")).is_some() {
            return None;
        }
        let between: String = between.iter().map(|name| format!(".{}", name.text)).collect();
        let has = |p: &&Projection| {
            let plastic = recorder.populations[p.to].receptors[p.receptor].plastic.as_ref();
            let is_own = |s: &Symbol| s.name == last.text && matches!(s.kind, SymbolKind::State { .. });
            let is_given = p.given.iter().any(|given| given.name == last.text && given.differs());
            plastic.is_some_and(|plastic| {
                is_given || plastic.own.iter().any(is_own) || last.text == "weight" && plastic.changes_weight()
            })
        };
        let joins = |p: &&Projection| from.is_none_or(|from| from == p.from) && p.to == to && !p.modulates;
        let between_them = recorder.projections.iter().filter(joins);
        let meant = between_them.filter(|p| p.name.ends_with(&between)).filter(has);
        let meant: Vec<String> = meant.map(|p| format!("{}.{}", p.name, last.text)).collect();
        (!meant.is_empty()).then_some(meant)
    }

    /// The path of what a cell sends, if the path leads to the cell that gets it.
    fn sender_of(&self, recorder: &Recorder<'a, '_>, place: &Place<'a>) -> Option<String> {
        let has = |p: &&Population| self.lowered_cell(p.cell).item.find(&place.rest).is_some();
        let own = &recorder.populations[place.population];
        if !place.rest.contains(".pre.") || has(&own) {
            return None;
        }
        let senders = recorder.projections.iter().filter(|p| p.to == place.population && p.sent.is_some());
        let mut senders = senders.map(|p| &recorder.populations[p.from]);
        senders.find(has).map(|p| format!("{}.{}", p.name, place.rest))
    }

    /// What edges have for themselves.
    fn record_edges(
        &mut self,
        recorder: &mut Recorder<'a, '_>,
        flat: &FlatPath<'a>,
        (projection, name): (usize, String),
        sampling: &Sampling,
    ) {
        let span = flat.span;
        let p = &recorder.projections[projection];
        if !flat.selections.is_empty() {
            self.error(RunError::SomeEdges { edges: &p.name, span });
            return;
        }
        let ends = [p.from, p.to].map(|end| recorder.populations[end].span);
        for (name, means) in flat.names.iter().zip(ends) {
            self.note(name.span, means);
        }
        let cell = self.lowered_cell(recorder.populations[p.to].cell);
        self.note_receptor(&flat.names[2..], &cell.item);
        let plastic = recorder.populations[p.to].receptors[p.receptor].plastic.as_ref();
        let own = plastic.map_or(&[][..], |plastic| &plastic.own);
        let is_state = |s: &Symbol| matches!(s.kind, SymbolKind::State { .. });
        let quantity = match own.iter().position(|s| s.name == name && is_state(s)) {
            Some(number) => {
                if let Some(last) = flat.names.last() {
                    self.note(last.span, own[number].span);
                }
                Quantity::Own(projection, number as u32)
            }
            None if name == "weight" && plastic.is_some_and(Plastic::changes_weight) => Quantity::Weight(projection),
            None if p.given.iter().any(|given| given.name == name && given.differs()) => {
                let number = p.given.iter().take_while(|given| given.name != name).count();
                Quantity::Given(projection, number as u32)
            }
            None => {
                let weight = plastic.filter(|plastic| plastic.changes_weight()).map(|_| "weight");
                let states = own.iter().filter(|s| is_state(s)).map(|s| s.name.as_str());
                let given = p.given.iter().filter(|given| given.differs()).map(|given| given.name.as_str());
                let given = given.filter(|name| own.iter().all(|s| s.name != *name));
                let known: Vec<&str> = states.chain(given).chain(weight).collect();
                self.error(RunError::NotOfEdges { edges: &p.name, name: &name, known: &known, span });
                return;
            }
        };
        if let Some(first) = recorder.records.iter().find(|r| r.quantity == quantity) {
            self.error(RunError::RecordedTwice { quantity: &name, again: span, first: first.span });
            return;
        }
        let (population, sampling) = (p.to, sampling.clone());
        recorder.records.push(Record { population, cells: None, quantity, at: None, sampling, span });
    }

    /// What a probe hears.
    fn record_potential(
        &mut self,
        recorder: &mut Recorder<'a, '_>,
        flat: &FlatPath<'a>,
        number: usize,
        sampling: &Sampling,
    ) {
        let (probe, span) = (&recorder.probes[number], flat.span);
        self.note(flat.names[0].span, probe.span);
        let is_potential = matches!(&flat.names[..], [_, quantity] if quantity.text == "potential");
        if !is_potential || !flat.selections.is_empty() || flat.at.is_some() {
            self.error(ProbeError::NotRecorded { probe: &probe.name, span });
            return;
        }
        let quantity = Quantity::Potential(number);
        if let Some(first) = recorder.records.iter().find(|r| r.quantity == quantity) {
            self.error(RunError::RecordedTwice { quantity: "potential", again: span, first: first.span });
            return;
        }
        let (population, sampling) = (probe.of[0], sampling.clone());
        recorder.records.push(Record { population, cells: None, quantity, at: None, sampling, span });
    }

    /// Records a quantity at a place in cells with sections.
    fn record_at(
        &mut self,
        recorder: &mut Recorder<'a, '_>,
        definition: &Definition<Cell>,
        place: Place<'a>,
        flat: &FlatPath<'a>,
        sampling: &Sampling,
    ) {
        let cell = &definition.item;
        let Some((symbol, at)) = self.quantity_at(definition, &place, flat) else { return };
        let (population, cells, span) = (place.population, place.cells, flat.span);
        let element = at.as_ref().map(|at| at.elements[0] as usize);
        let clamped = |i: &Input| i.electrode && i.population == population && i.at == element;
        let joined = |c: &Connection| c.ends.iter().any(|end| end.population == population && end.at == element);
        let whole = || format!("{}.{}", recorder.populations[population].name, at.as_ref().map_or("", |at| &at.text));
        let recorded = match cell.symbol(symbol).kind {
            SymbolKind::Port(PortKind::Electrode) if !recorder.inputs.iter().any(clamped) => {
                if recorder.sound {
                    self.error(RunError::NoElectrode { compartment: &whole(), span });
                }
                return;
            }
            SymbolKind::Port(PortKind::Injected) if !recorder.connections.iter().any(joined) => {
                if recorder.sound {
                    self.error(RunError::NoJunctions { compartment: &whole(), span });
                }
                return;
            }
            SymbolKind::Port(PortKind::Injected) => Quantity::Junctions(symbol),
            _ => Quantity::OfCells(symbol),
        };
        let same = |r: &&Record| {
            let elements = |at: &Option<RecordedAt>| at.as_ref().map(|at| at.elements.clone());
            r.population == population && r.quantity == recorded && r.cells == cells && elements(&r.at) == elements(&at)
        };
        if let Some(first) = recorder.records.iter().find(same) {
            let quantity = cell.symbol(symbol).name.replace(['<', '>'], "");
            let (again, first_span) = (span, first.span);
            let text = |at: &Option<RecordedAt>| at.as_ref().map(|at| at.text.clone());
            let tree = cell.morphology.as_ref().map(|morphology| &morphology.tree);
            match (tree, &at) {
                (Some(tree), Some(here)) if !here.each && text(&first.at) != text(&at) => {
                    let name = quantity.rsplit('.').next().unwrap_or(&quantity);
                    let (quantity, compartment) = (name, &tree.name(here.elements[0] as usize));
                    self.error(RunError::OneCompartment { quantity, compartment, again, first: first_span });
                }
                _ => self.error(RunError::RecordedTwice { quantity: &quantity, again, first: first_span }),
            }
            return;
        }
        let sampling = sampling.clone();
        recorder.records.push(Record { population, cells, quantity: recorded, at, sampling, span });
    }

    /// Warns of a run that records nothing.
    fn records_nothing(&mut self, run: &ast::Run, population: &Population) {
        let definition = self.lowered_cell(population.cell);
        let place = match &definition.item.morphology {
            Some(morphology) => Some(format!("{}(0.5)", morphology.tree.sections[0].name)),
            None => definition.item.compartments.first().map(|c| c.name.clone()),
        };
        self.error(RunError::RecordsNothing { population: &population.name, place, run: word(run) });
    }

    /// Which of the networks a run block means.
    pub(super) fn choose_network(&mut self, run: &'a ast::Run, networks: &[&'a ast::Network]) -> Option<usize> {
        let key = run.members.iter().find_map(|m| match m {
            RunMember::Key(l) if l.name.text == "network" => Some(&l.value),
            RunMember::Key(_) | RunMember::Record { .. } | RunMember::RecordSpikes { .. } | RunMember::Sweep(_) => None,
        });
        let known: Vec<&str> = networks.iter().map(|n| n.name.text.as_str()).collect();
        match (key, &known[..]) {
            (Some(value), known) => self.named_network(value, known, networks),
            (None, [_]) => Some(0),
            (None, []) => {
                if !self.has_broken_items() {
                    let cells = self.names_of(0, Kind::Cell);
                    self.error(RunError::NoNetwork { cell: cells.first().map(String::as_str), run: word(run) });
                }
                None
            }
            (None, known) => {
                self.error(RunError::WhichNetwork { known, run: word(run) });
                None
            }
        }
    }

    fn named_network(&mut self, value: &ast::Expr, known: &[&str], networks: &[&'a ast::Network]) -> Option<usize> {
        let ast::ExprKind::Path(path) = &value.kind else {
            self.error(RunError::NotANetwork { span: value.span });
            return None;
        };
        let name = super::names::join(path);
        let at = known.iter().position(|n| *n == name);
        if let (Some(at), [single]) = (at, &path[..]) {
            self.note(single.span, networks[at].name.span);
        }
        if at.is_none() && !self.is_unknown_item(0, &name) {
            self.error(RunError::UnknownNetwork { name: &name, known, span: value.span });
        }
        at
    }
}

/// The current that holds a voltage, called `i_clamp` as long as nothing of the user's is.
fn current_of_clamp(cell: &Cell, rest: &str) -> Option<SymbolId> {
    cell.find(&format!("{}.<i_clamp>", rest.strip_suffix(".i_clamp")?))
}

/// Where the current through the gap junctions of a compartment or of a point neuron flows, called `i_gap` as long as nothing of the user's is.
fn port_of_junctions(cell: &Cell, rest: &str) -> Option<SymbolId> {
    if cell.compartments.is_empty() && rest == "i_gap" {
        return cell.find("i_syn");
    }
    cell.find(&format!("{}.<input>", rest.strip_suffix(".i_gap")?))
}

/// The word `run`.
fn word(run: &ast::Run) -> Span {
    Span { end: run.span.start + 3, ..run.span }
}

fn records_anything(run: &ast::Run) -> bool {
    run.members.iter().any(|m| !matches!(m, RunMember::Key(_) | RunMember::Sweep(_)))
}
