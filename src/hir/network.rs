//! Networks: sizes, populations, values per cell, inputs.

use super::builtins::{self, FunctionKind};
use super::lower::{Definition, ItemKind, Lowerer, finish};
use super::scope::{Entry, Role, Scope, ScopeKind};
use super::{Expr, ExprKind, Input, Network, Population, PortKind, Setting, Symbol, SymbolKind, Ty};
use crate::diag::{Code, Diagnostic, nearest};
use crate::source::Span;
use crate::syntax::ast::{self, NetworkMember, Segment};
use crate::units::Dim;
use std::collections::HashSet;

/// One way through a path: names with the selection of cells behind the first.
pub(super) struct FlatPath<'a> {
    pub names: Vec<&'a ast::Name>,
    pub selection: Option<&'a ast::Selection>,
    pub span: Span,
}

/// A lowered network, with what is wrong in it.
pub(super) struct Lowered {
    pub network: Network,
    pub sound: bool,
    /// Populations and parameters that nothing is known about because of a mistake that has been said.
    pub unknown: HashSet<String>,
}

/// What a path leads to: population (index), cells, rest of the names.
pub(super) struct Place<'a> {
    pub population: usize,
    pub cells: Option<(Expr, Expr)>,
    pub rest: String,
    pub rest_span: Span,
    pub names: Vec<&'a ast::Name>,
}

/// All ways through a path with groups.
pub(super) fn flatten(path: &ast::Path) -> Vec<FlatPath<'_>> {
    let mut out = vec![FlatPath { names: Vec::new(), selection: None, span: path.span }];
    for segment in &path.segments {
        match segment {
            Segment::Name(name, selection) => {
                for flat in &mut out {
                    flat.names.push(name);
                    flat.selection = flat.selection.or(selection.as_ref());
                }
            }
            Segment::Group(paths, _) => {
                let tails: Vec<_> = paths.iter().flat_map(flatten).collect();
                out = out
                    .iter()
                    .flat_map(|head| {
                        tails.iter().map(|tail| FlatPath {
                            names: head.names.iter().chain(&tail.names).copied().collect(),
                            selection: head.selection.or(tail.selection),
                            span: tail.names.first().map_or(path.span, |n| n.span.to(tail.span)),
                        })
                    })
                    .collect();
            }
        }
    }
    out
}

impl<'a> Lowerer<'a> {
    /// Lowers a network.
    pub(super) fn network(&mut self, n: &'a ast::Network) -> Lowered {
        let before = self.diagnostics.count();
        let mut scope = Scope::new(ScopeKind::Network, 0);
        self.start_streams(&n.name.text);
        let mut junctions = Vec::new();
        let mut joined = Vec::new();
        for member in &n.members {
            match member {
                NetworkMember::Param(p) => self.add_param(&mut scope, p, ""),
                NetworkMember::Input { name, value, .. } => self.add_stimulus_params(&mut scope, name, value),
                NetworkMember::Connect { via, args, .. } => {
                    let junction = self.junction_params(&mut scope, via, args, &mut joined);
                    junctions.push(junction);
                }
                NetworkMember::Population { .. } | NetworkMember::Set { .. } => {}
            }
        }
        self.resolve_all(&mut scope);
        let mut populations: Vec<Population> = Vec::new();
        let mut whole = true;
        for member in &n.members {
            if let NetworkMember::Population { name, cell, sizes, span } = member {
                self.check_reserved(name);
                if let Some(first) = populations.iter().find(|p| p.name == name.text) {
                    self.duplicate(name, first.span);
                    continue;
                }
                if let Some(first) = scope.get(&name.text) {
                    let first = scope.entry(first).span;
                    self.duplicate(name, first);
                }
                let item = self.find_item(0, cell, "a cell model", |k| matches!(k, ItemKind::Cell(_)));
                let mut lowered = Vec::new();
                if sizes.len() > 3 {
                    let message = "a population has one to three dimensions";
                    self.error(Diagnostic::new(Code::BadValue, *span, message, format!("{} sizes", sizes.len())));
                    whole = false;
                }
                for size in sizes {
                    match self.expr_of(&mut scope, "", size, Dim::ONE, "the size of a population") {
                        Some(x) => {
                            if let Some(value) = super::expr::constant_of(&x)
                                && (value < 0.0 || value.fract() != 0.0)
                            {
                                let message = format!("a population cannot have {value} cells");
                                let label = "a whole number from 0 on is needed";
                                self.error(Diagnostic::new(Code::BadValue, x.span, message, label));
                            }
                            if let Some(d) = not_constant(&x) {
                                self.error(d);
                            }
                            lowered.push(x);
                        }
                        None => whole = false,
                    }
                }
                let Some((item, c)) = item.and_then(|item| match item.kind {
                    ItemKind::Cell(c) => Some((item, c)),
                    _ => None,
                }) else {
                    whole = false;
                    scope.poisoned.insert(name.text.clone());
                    continue;
                };
                let index = self.cell(item, c);
                populations.push(Population { name: name.text.clone(), cell: index, sizes: lowered, span: name.span });
            }
        }
        if populations.is_empty() && whole {
            let message = format!("network `{}` has no population", n.name.text);
            let cell = self.cell_names(0).into_iter().next().unwrap_or_else(|| "Cell".into());
            self.error(
                Diagnostic::new(Code::NoNetwork, n.name.span, message, "nothing to run")
                    .help(format!("add `population cells: {cell}[10]`")),
            );
            whole = false;
        }
        let mut settings = Vec::new();
        let mut inputs: Vec<Input> = Vec::new();
        let mut input_names: Vec<(&str, Span)> = Vec::new();
        let mut connections = Vec::new();
        let mut junctions = junctions.into_iter();
        for member in &n.members {
            match member {
                NetworkMember::Param(_) | NetworkMember::Population { .. } => {}
                NetworkMember::Set { init, target, random, value, span } => {
                    self.setting(&mut scope, &populations, *init, target, *random, value, *span, &mut settings);
                }
                NetworkMember::Input { name, value, target, span } => {
                    if let Some((_, first)) = input_names.iter().find(|i| i.0 == name.text) {
                        self.duplicate(name, *first);
                        continue;
                    }
                    input_names.push((&name.text, name.span));
                    self.input(&mut scope, &populations, name, value, target, *span, &mut inputs);
                }
                NetworkMember::Connect { from, to, keys, span, .. } => {
                    let junction = junctions.next().flatten();
                    let connection = self.connection(&mut scope, &populations, junction, from, to, keys, *span);
                    whole &= connection.is_some();
                    connections.extend(connection);
                }
            }
        }
        self.warn_unused(&scope, "network", before);
        let (params, sound, unknown) = finish(scope);
        self.warn_magnitudes(&params);
        let sound = sound && whole;
        let network = Network {
            name: n.name.text.clone(),
            params,
            populations,
            settings,
            inputs,
            connections,
            span: n.name.span,
        };
        Lowered { network, sound, unknown }
    }

    /// `input step: pulse(delay = ...)` gives the parameters step.delay, step.duration and step.amplitude.
    fn add_stimulus_params(&mut self, scope: &mut Scope<'a>, name: &'a ast::Name, value: &'a ast::Expr) {
        self.check_reserved(name);
        let ast::ExprKind::Call(function, args) = &value.kind else { return };
        let Some(info) = builtins::function(&function.text) else { return };
        if !matches!(info.kind, FunctionKind::Stimulus(_)) {
            return;
        }
        let mut position = 0;
        for arg in args {
            let param = match &arg.name {
                Some(n) => info.params.iter().find(|p| **p == n.text),
                None => {
                    position += 1;
                    info.params.get(position - 1)
                }
            };
            let Some(param) = param else { continue };
            if per_cell(&arg.value) {
                continue;
            }
            let full = format!("{}.{param}", name.text);
            let mut entry = Entry::pending(full, arg.value.span, Role::Param, &arg.value, "");
            entry.written = false;
            entry.unit = None;
            scope.add(entry).ok();
        }
    }

    /// Population and cells of a path.
    pub(super) fn place(
        &mut self,
        scope: &mut Scope<'a>,
        populations: &[Population],
        flat: &FlatPath<'a>,
    ) -> Option<Place<'a>> {
        let first = flat.names.first()?;
        let Some(population) = populations.iter().position(|p| p.name == first.text) else {
            if scope.is_poisoned("", &first.text) {
                return None;
            }
            let message = format!("there is no population `{}`", first.text);
            let mut d = Diagnostic::new(Code::BadTarget, first.span, message, "not a population of this network");
            let names: Vec<&str> = populations.iter().map(|p| p.name.as_str()).collect();
            let of_cell = populations.iter().find(|p| self.lowered_cell(p.cell).item.name == first.text);
            let of_compartment = populations
                .iter()
                .find(|p| self.lowered_cell(p.cell).item.compartments.iter().any(|c| c.name == first.text));
            let rest: String = flat.names[1..].iter().map(|n| format!(".{}", n.text)).collect();
            if let Some(p) = of_cell {
                d = d.help(format!("`{}` is a cell model; write its population: `{}{rest}`", first.text, p.name));
            } else if let Some(p) = of_compartment {
                d = d.help(format!("`{0}` is a compartment; write its path: `{1}.{0}{rest}`", first.text, p.name));
            } else if let Some(near) = nearest(&first.text, names.iter().copied()) {
                d = d.help(format!("did you mean `{near}`?"));
            } else if !names.is_empty() {
                d = d.note(format!("it has {}", names.join(", ")));
            }
            self.error(d);
            return None;
        };
        let cells = match flat.selection {
            None => None,
            Some(s) => {
                let first = self.expr_of(scope, "", &s.first, Dim::ONE, "a cell's number")?;
                let end = match &s.end {
                    Some(end) => self.expr_of(scope, "", end, Dim::ONE, "a cell's number")?,
                    None => Expr::binary(ast::BinaryOp::Add, first.clone(), Expr::number(1.0, Dim::ONE, s.span)),
                };
                Some((first, end))
            }
        };
        let rest = flat.names[1..].iter().map(|n| n.text.as_str()).collect::<Vec<_>>().join(".");
        let rest_span = match (flat.names.get(1), flat.names.last()) {
            // The names of a group do not stand behind those before it.
            (Some(a), Some(b)) if !self.text(a.span.to(b.span)).contains('{') => a.span.to(b.span),
            (Some(_), _) => flat.span,
            _ => first.span,
        };
        Some(Place { population, cells, rest, rest_span, names: flat.names.clone() })
    }

    /// Says that a path leads nowhere useful.
    pub(super) fn bad_target(
        &mut self,
        definition: &Definition<super::Cell>,
        place: &Place<'a>,
        what: &str,
        fits: impl Fn(&Symbol) -> bool,
    ) {
        let cell = &definition.item;
        if definition.is_unknown(&place.rest) && !place.rest.is_empty() {
            return;
        }
        let found = cell.find(&place.rest).map(|id| cell.symbol(id));
        let message = if place.rest.is_empty() {
            format!("`{}` is a population; which {what} of it?", place.names[0].text)
        } else if cell.compartments.iter().any(|c| c.name == place.rest) {
            format!("`{}` is a compartment; which {what} of it?", place.rest)
        } else {
            format!("cell `{}` has no {what} `{}`", cell.name, place.rest)
        };
        let label = match found {
            Some(s) => match s.kind {
                SymbolKind::Param(_) => "this is a parameter",
                SymbolKind::Let(_) => "this is a named expression",
                SymbolKind::State { .. } => "this is a state",
                SymbolKind::Port(_) => "this is an input port",
                SymbolKind::Voltage | SymbolKind::Pool => "this is a channel's own",
            },
            None if cell.compartments.iter().any(|c| c.name == place.rest) => "a compartment",
            None if place.rest.is_empty() => "a population",
            None => "not found",
        };
        let mut d = Diagnostic::new(Code::BadTarget, place.rest_span, message, label);
        let population = &place.names[0].text;
        let mut fitting: Vec<&Symbol> = cell.symbols.iter().filter(|s| fits(s) && !s.name.contains('<')).collect();
        fitting.sort_by_key(|s| !matches!(s.kind, SymbolKind::State { .. }));
        let names: Vec<&str> = fitting.iter().map(|s| s.name.as_str()).collect();
        let under = |prefix: &str| -> Vec<&str> {
            let inside = names.iter().filter_map(|n| n.strip_prefix(prefix)?.strip_prefix('.'));
            inside.filter(|n| !n.contains('.')).collect()
        };
        let rest = place.rest.as_str();
        let (parent, last) = rest.rsplit_once('.').unwrap_or(("", rest));
        // A compartment that does not exist: the compartments are what matters.
        let head = rest.split('.').next().unwrap_or("");
        let compartments: Vec<&str> = cell.compartments.iter().map(|c| c.name.as_str()).collect();
        let lost = rest.contains('.') && !compartments.is_empty() && !compartments.contains(&head);
        let deeper: Vec<&&str> =
            names.iter().filter(|n| !rest.is_empty() && n.ends_with(&format!(".{rest}"))).collect();
        // One letter is not a misspelling of another.
        let near = nearest(rest, names.iter().copied())
            .filter(|n| last.chars().count() > 1 || n.rsplit_once('.').is_none_or(|n| n.0 != parent));
        let listed = |list: &[&str]| {
            let shown: Vec<&str> = list.iter().take(12).copied().collect();
            format!("{}{}", shown.join(", "), if list.len() > 12 { ", ..." } else { "" })
        };
        let setter = match found.map(|s| &s.kind) {
            Some(SymbolKind::Param(_)) if what == "state" => Some(("parameter", "param")),
            Some(SymbolKind::State { .. }) if what == "parameter" => Some(("initial value", "init")),
            _ => None,
        };
        d = if let Some((kind, word)) = setter {
            d.help(format!("the {kind} is set with `{word} {population}.{rest} = ...`"))
        } else if lost {
            match nearest(head, compartments.iter().copied()) {
                Some(near) => d.help(format!("did you mean `{population}.{near}{}`?", &rest[head.len()..])),
                None => d.note(format!("its compartments are {}", compartments.join(", "))),
            }
        } else if rest.is_empty() || !under(rest).is_empty() {
            let inside = if rest.is_empty() { names.clone() } else { under(rest) };
            let dot = if rest.is_empty() { String::new() } else { format!("{rest}.") };
            match inside.first() {
                Some(first) => d
                    .help(format!("for example `{population}.{dot}{first}`"))
                    .note(format!("it has {}", listed(&inside))),
                None => d,
            }
        } else if let [one] = deeper[..] {
            d.help(format!("did you mean `{population}.{one}`?"))
        } else if let Some(near) = near {
            d.help(format!("did you mean `{population}.{near}`?"))
        } else if !under(parent).is_empty() && !parent.is_empty() {
            d.note(format!("`{parent}` has {}", listed(&under(parent))))
        } else if names.is_empty() {
            d.note(format!("it has no {what} at all"))
        } else {
            d.note(format!("it has {}", listed(&names)))
        };
        self.error(d);
    }

    #[allow(clippy::too_many_arguments)] // one per part of the syntax
    fn setting(
        &mut self,
        scope: &mut Scope<'a>,
        populations: &[Population],
        init: bool,
        target: &'a ast::Path,
        random: bool,
        value: &'a ast::Expr,
        span: Span,
        out: &mut Vec<Setting>,
    ) {
        for flat in flatten(target) {
            let Some(place) = self.place(scope, populations, &flat) else { return };
            let definition = self.lowered_cell(populations[place.population].cell);
            let cell = &definition.item;
            let fits = |s: &Symbol| match s.kind {
                SymbolKind::State { .. } => init,
                SymbolKind::Param(_) => !init,
                SymbolKind::Let(_) | SymbolKind::Port(_) | SymbolKind::Voltage | SymbolKind::Pool => false,
            };
            let symbol = cell.find(&place.rest).filter(|id| fits(cell.symbol(*id)));
            let Some(symbol) = symbol else {
                self.bad_target(&definition, &place, if init { "state" } else { "parameter" }, fits);
                continue;
            };
            if definition.is_unknown(&place.rest) {
                continue;
            }
            // Each target has draws of its own, that do not depend on other lines.
            let name = format!("{}.{}", populations[place.population].name, place.rest);
            self.start_streams(&name);
            scope.kind = ScopeKind::PerCell;
            let why = format!("the value of `{}`", place.rest);
            let x = self.expr_of(scope, "", value, cell.symbol(symbol).ty.dim(), &why);
            scope.kind = ScopeKind::Network;
            let Some(x) = x else { return };
            let mut draws = false;
            x.visit(&mut |e| draws |= matches!(e.kind, ExprKind::Draw(..)));
            if draws != random {
                let (message, help) = if draws {
                    ("a random value is written with `~`", "write `~` instead of `=`")
                } else {
                    ("`~` needs a random draw", "write `=` instead of `~`, or draw: `~ normal(mean, sd)`")
                };
                let label = if draws { "this is a random draw" } else { "the same number for every cell" };
                self.error(Diagnostic::new(Code::BadRandom, value.span, message, label).help(help));
                return;
            }
            let whole = place.cells.is_none();
            let earlier = out.iter().find(|s| {
                s.population == place.population && s.symbol == symbol && s.init == init && (whole || s.cells.is_none())
            });
            if let Some(earlier) = earlier
                && (whole && earlier.cells.is_none())
            {
                let message = format!("`{name}` is set twice");
                self.error(
                    Diagnostic::new(Code::DuplicateKey, span, message, "set again").see(earlier.span, "first set here"),
                );
                return;
            }
            out.push(Setting { population: place.population, cells: place.cells, symbol, init, value: x, span });
        }
    }

    #[allow(clippy::too_many_arguments)] // one per part of the syntax
    fn input(
        &mut self,
        scope: &mut Scope<'a>,
        populations: &[Population],
        name: &'a ast::Name,
        value: &'a ast::Expr,
        target: &'a ast::Path,
        span: Span,
        out: &mut Vec<Input>,
    ) {
        for flat in flatten(target) {
            let Some(place) = self.place(scope, populations, &flat) else { return };
            let definition = self.lowered_cell(populations[place.population].cell);
            let cell = &definition.item;
            let port = if place.rest.is_empty() {
                match &cell.compartments[..] {
                    [] => cell.find("i_syn"),
                    [only] => Some(only.port),
                    _ => None,
                }
            } else {
                cell.compartments.iter().find(|c| c.name == place.rest).map(|c| c.port).or_else(|| {
                    cell.find(&place.rest).filter(|id| matches!(cell.symbol(*id).kind, SymbolKind::Port(_)))
                })
            };
            let Some(port) = port else {
                let mut ports: Vec<String> = cell.compartments.iter().map(|c| c.name.clone()).collect();
                let declared = cell.symbols.iter().filter(|s| matches!(s.kind, SymbolKind::Port(PortKind::Declared)));
                ports.extend(declared.map(|s| s.name.clone()));
                let message = match place.rest.is_empty() {
                    true => format!("which compartment of `{}` does `{}` drive?", place.names[0].text, name.text),
                    false => format!("`{}` is not something an input can drive", place.rest),
                };
                let label = "an input drives a compartment or an `input` port";
                if definition.is_unknown(&place.rest) {
                    continue;
                }
                let d = Diagnostic::new(Code::BadTarget, place.rest_span, message, label);
                let population = &place.names[0].text;
                let inner = place.rest.split('.').next().unwrap_or("");
                self.error(match nearest(&place.rest, ports.iter().map(String::as_str)) {
                    Some(near) => d.help(format!("did you mean `{population}.{near}`?")),
                    None if ports.iter().any(|p| p == inner) => {
                        d.help(format!("drive the compartment: `{population}.{inner}`"))
                    }
                    None if ports.is_empty() => d.help(format!("drive the neuron: `-> {population}`")),
                    None => d.note(format!("cell `{}` has {}", cell.name, ports.join(", "))),
                });
                continue;
            };
            if definition.is_unknown(&cell.symbol(port).name) {
                continue;
            }
            self.start_streams(&format!("{}.{}", populations[place.population].name, name.text));
            let Some(x) = self.input_value(scope, name, value) else { return };
            let dim = cell.symbol(port).ty.dim();
            let mut area = None;
            if dim == Dim::CURRENT_DENSITY && x.ty == Ty::Real(Dim::CURRENT) {
                area = cell.compartments.iter().find(|c| c.port == port).and_then(|c| c.area);
                if area.is_none() {
                    let compartment = cell.compartments.iter().find(|c| c.port == port).map_or("", |c| &c.name);
                    if !definition.sound {
                        return;
                    }
                    let x = self.blame(&x);
                    self.error(
                        Diagnostic::new(
                            Code::MissingKey,
                            x.span,
                            format!("a current is injected, but compartment `{compartment}` has no `area`"),
                            "a current (nA)",
                        )
                        .help("give the compartment an `area`, or the input as a density, such as `10 uA/cm2`"),
                    );
                    return;
                }
            } else if self.expect(scope, x.clone(), dim, &format!("input `{}`", name.text)).is_none() {
                return;
            }
            out.push(Input {
                name: name.text.clone(),
                population: place.population,
                cells: place.cells,
                port,
                value: x,
                area,
                span,
            });
        }
    }

    fn input_value(&mut self, scope: &mut Scope<'a>, name: &ast::Name, value: &'a ast::Expr) -> Option<Expr> {
        scope.kind = ScopeKind::Input;
        let x = self.expr(scope, "", value);
        scope.kind = ScopeKind::Network;
        let mut x = x?;
        // Arguments that are parameters of the input are read as such, so that they can be set from outside.
        let reads = |scope: &mut Scope<'a>, param: &str, e: &Expr| {
            let id = scope.get(&format!("{}.{param}", name.text))?;
            scope.entry_mut(id).used = true;
            Some(Expr { kind: ExprKind::NetworkParam(id), ty: scope.entry(id).ty?, span: e.span })
        };
        if let (ast::ExprKind::Call(function, _), ExprKind::Call(_, args)) = (&value.kind, &mut x.kind)
            && let Some(info) = builtins::function(&function.text)
        {
            for (param, arg) in info.params.iter().zip(args) {
                if let Some(read) = reads(scope, param, arg) {
                    *arg = read;
                }
            }
        }
        Some(x)
    }

    /// Which of the networks a run block means.
    pub(super) fn choose_network(&mut self, run: &'a ast::Run, networks: &[&'a ast::Network]) -> Option<usize> {
        let word = Span { end: run.span.start + 3, ..run.span };
        let key = run.members.iter().find_map(|m| match m {
            ast::RunMember::Key(l) if l.name.text == "network" => Some(l),
            ast::RunMember::Key(_) | ast::RunMember::Record { .. } | ast::RunMember::RecordSpikes { .. } => None,
        });
        match (key, networks) {
            (None, []) if self.has_broken_items() => None,
            (None, []) => {
                let message = "there is no network to run";
                self.error(Diagnostic::new(Code::NoNetwork, word, message, "this block needs one").help(format!(
                    "add `network main {{ population cells: {}[1] }}`",
                    self.cell_names(0).first().map_or("Cell", String::as_str)
                )));
                None
            }
            (None, [_]) => Some(0),
            (None, _) => {
                let names: Vec<String> = networks.iter().map(|n| format!("`network = {}`", n.name.text)).collect();
                let d = Diagnostic::new(Code::NoNetwork, word, "which network shall run?", "there are several");
                self.error(d.help(format!("add {}", names.join(" or "))));
                None
            }
            (Some(l), _) => {
                let ast::ExprKind::Path(path) = &l.value.kind else {
                    let message = "`network` needs the name of a network";
                    self.error(Diagnostic::new(Code::BadTarget, l.value.span, message, "not a name"));
                    return None;
                };
                let name = super::names::join(path);
                let at = networks.iter().position(|n| n.name.text == name);
                if at.is_none() && !self.is_unknown_item(0, &name) {
                    let message = format!("there is no network `{name}`");
                    let names: Vec<&str> = networks.iter().map(|n| n.name.text.as_str()).collect();
                    let d = Diagnostic::new(Code::BadTarget, l.value.span, message, "not defined in this file");
                    self.error(match (nearest(&name, names.iter().copied()), names.is_empty()) {
                        (Some(near), _) => d.help(format!("did you mean `{near}`?")),
                        (None, false) => d.note(format!("there is {}", names.join(", "))),
                        (None, true) => d,
                    });
                }
                at
            }
        }
    }
}

/// Sizes are needed before anything runs.
fn not_constant(x: &Expr) -> Option<Diagnostic> {
    let mut found = None;
    x.visit(&mut |e| {
        let what = match e.kind {
            ExprKind::Celsius => "the temperature",
            ExprKind::Time => "the time",
            _ => return,
        };
        found = Some((e.span, what));
    });
    let (span, what) = found?;
    let message = format!("the size of a population cannot depend on {what}");
    Some(
        Diagnostic::new(Code::NotConstant, span, message, "not known before the run")
            .help("use a `param` of the network"),
    )
}

/// Does an expression differ from cell to cell?
fn per_cell(e: &ast::Expr) -> bool {
    match &e.kind {
        ast::ExprKind::Number { .. } | ast::ExprKind::Bool(_) | ast::ExprKind::Str(_) => false,
        ast::ExprKind::Path(path) => matches!(&path[..], [n] if n.text == "index"),
        ast::ExprKind::Unary(_, a) => per_cell(a),
        ast::ExprKind::Binary(_, a, b) => per_cell(a) || per_cell(b),
        ast::ExprKind::If(c, a, b) => per_cell(c) || per_cell(a) || per_cell(b),
        ast::ExprKind::Call(name, args) => {
            let draws = builtins::function(&name.text).is_some_and(|f| {
                matches!(f.kind, FunctionKind::Draw(_) | FunctionKind::DrawExponential | FunctionKind::File)
            });
            draws || args.iter().any(|a| per_cell(&a.value))
        }
    }
}
