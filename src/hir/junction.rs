//! Gap junctions: a model of the current, and which cells it joins.
//!
//! In come junction models and `connect` lines; out go connections, their current a function of `dv`.
//! Never true here: it is known which cells a rule joins.

use super::calls::Env;
use super::error::{JunctionError, NameError, NetworkError, Signature, SynapseError};
use super::items::{ItemKind, Kind};
use super::keys::Block;
use super::lower::{Definition, Lowerer};
use super::network::NetworkDraft;
use super::place::{FlatPath, flatten};
use super::projection::{free_name, reads, voltage};
use super::scope::{Entry, Role, Scope, ScopeKind};
use super::{Cell, Connection, ConnectionRule, End, Expr, ExprKind, SymbolId, Ty};
use crate::connect::{Absent, RULES};
use crate::source::Span;
use crate::syntax::ast::{self, ConnectKey};
use crate::units::Dim;
use std::collections::{HashMap, HashSet};

/// A junction model whose parameters are known to a network.
pub(super) struct Joined<'a> {
    /// Its name in the network.
    name: String,
    /// The name of the model here.
    own: String,
    model: &'a ast::Junction,
    file: usize,
}

impl<'a> Lowerer<'a> {
    /// Checks a junction model by itself, with its default parameters.
    pub(super) fn check_junction(&mut self, j: &'a ast::Junction) {
        let mut scope = Scope::new(ScopeKind::Network, 0);
        for p in &j.params {
            self.add_param(&mut scope, p, "");
        }
        self.resolve_all(&mut scope);
        self.note_junction(j.name.span, &scope);
        let mut own: Vec<&ast::Name> = j.params.iter().map(|p| &p.name).collect();
        for l in j.lets.iter().chain(&j.currents) {
            match own.iter().find(|known| known.text == l.name.text) {
                Some(first) => self.duplicate(&l.name, first.span),
                None if self.check_reserved(&l.name) && l.name.text == "dv" => {
                    self.error(NameError::Reserved { name: &l.name, function: false });
                }
                None => own.push(&l.name),
            }
        }
        if self.junction_current(&mut scope, "", 0, j).is_none() {
            return;
        }
        for p in &j.params {
            if let Some(id) = scope.get(&p.name.text)
                && !scope.entry(id).used
            {
                self.error(JunctionError::Unused { param: &p.name });
            }
        }
    }

    /// Makes the parameters of a connection's junction known to the network, as `Cx36.g`.
    pub(super) fn junction_params(
        &mut self,
        scope: &mut Scope<'a>,
        through: &'a ast::Through,
        span: Span,
        joined: &mut Vec<String>,
    ) -> Option<Joined<'a>> {
        let ast::Through { modulating, model: via, alias, args } = through;
        if *modulating {
            self.error(SynapseError::JunctionModulates { span });
            return None;
        }
        if self.is_synapse(through) {
            self.error(SynapseError::Synapse { via, span });
            return None;
        }
        let item = self.find_item(0, via, Kind::Junction)?;
        let ItemKind::Junction(model) = item.kind else { return None };
        let called = &alias.as_ref().unwrap_or(via).text;
        let name = free_name(called.clone(), |name| joined.iter().any(|known| known == name));
        joined.push(name.clone());
        self.check_junction_args(model, via, args);
        self.note_arguments(
            args.iter().map(|a| &a.0),
            model.params.iter().map(|p| (p.name.text.as_str(), p.name.span)),
        );
        // Defaults are lowered where the junction is defined, arguments where they stand.
        let mut own = Scope::new(ScopeKind::Network, item.file);
        for p in &model.params {
            self.add_param(&mut own, p, "");
        }
        self.resolve_all(&mut own);
        let mut known: HashMap<SymbolId, SymbolId> = HashMap::new();
        let mut taken = None;
        let mut defaults = Vec::new();
        for p in &model.params {
            let here = own.get(&p.name.text)?;
            let default = own.entry(here).clone();
            let full = format!("{name}.{}", p.name.text);
            let dim = default.ty?.dim();
            let entry = match args.iter().find(|a| a.0.text == p.name.text) {
                Some((_, value)) => {
                    Entry::pending(full, value.span, Role::Param, value, "").want(dim, "this parameter")
                }
                None => Entry::made(full, p.name.span, Role::Param, default.value.clone()?, Vec::new()),
            };
            let follows = entry.source.is_none();
            let entry = Entry { unit: default.unit, written: false, used: true, ..entry };
            let there = match scope.add(entry.docs(&p.docs)) {
                Ok(there) => there,
                Err(first) => {
                    // What a model has twice has been said.
                    taken = taken.or((!known.contains_key(&here)).then_some(first));
                    continue;
                }
            };
            known.insert(here, there);
            if follows {
                defaults.push(there);
            }
        }
        if let Some(first) = taken {
            self.duplicate(alias.as_ref().unwrap_or(via), first);
        }
        // Defaults that name each other name those of this junction, which arguments may stand for.
        for id in defaults {
            let entry = scope.entry_mut(id);
            let Some(value) = &entry.value else { continue };
            let param = |kind: &ExprKind| match kind {
                ExprKind::NetworkParam(own) => known.get(own).copied(),
                _ => None,
            };
            let mut made_of = Vec::new();
            value.visit(&mut |e| made_of.extend(param(&e.kind)));
            let value = value.map_leaf_kinds(&|kind| param(kind).map(ExprKind::NetworkParam));
            (entry.value, entry.made_of) = (Some(value), made_of);
        }
        Some(Joined { name, own: called.clone(), model, file: item.file })
    }

    fn check_junction_args(&mut self, model: &ast::Junction, junction: &ast::Name, args: &[(ast::Name, ast::Expr)]) {
        let known: Vec<&str> = model.params.iter().map(|p| p.name.text.as_str()).collect();
        for (i, (argument, _)) in args.iter().enumerate() {
            if let Some((first, _)) = args[..i].iter().find(|a| a.0.text == argument.text) {
                self.duplicate_key(argument, first.span);
            } else if !known.contains(&argument.text.as_str()) {
                self.error(JunctionError::UnknownParameter { junction, argument, known: &known });
            }
        }
    }

    /// The current of a junction, or its density: positive from left to right.
    fn junction_current(
        &mut self,
        scope: &mut Scope<'a>,
        prefix: &str,
        file: usize,
        j: &'a ast::Junction,
    ) -> Option<Expr> {
        let mut env = Env::new();
        let dv = Expr { kind: ExprKind::Dv, ty: Ty::Real(Dim::VOLTAGE), span: j.name.span };
        env.insert("dv".into(), Some(dv));
        for p in &j.params {
            let id = scope.get(&format!("{prefix}{}", p.name.text))?;
            let ty = scope.entry(id).ty?;
            let read = Expr { kind: ExprKind::NetworkParam(id), ty, span: p.name.span };
            env.insert(p.name.text.clone(), Some(read));
        }
        self.inner_names = j.lets.iter().map(|l| (l.name.text.clone(), l.name.span)).collect();
        let current =
            self.junction_lets(&j.lets, file, &mut env).and_then(|()| self.junction_own_current(file, j, &env));
        self.inner_names.clear();
        let x = current?;
        x.visit(&mut |e| {
            if let ExprKind::NetworkParam(id) = e.kind {
                scope.entry_mut(id).used = true;
            }
        });
        if x.ty == Ty::Real(Dim::CURRENT) {
            return Some(x);
        }
        self.expect(scope, x, Dim::CURRENT_DENSITY, "a junction's current")
    }

    /// What the `current` line of a junction says.
    fn junction_own_current(&mut self, file: usize, j: &'a ast::Junction, env: &Env) -> Option<Expr> {
        let current = match &j.currents[..] {
            [one] => one,
            [] => {
                self.error(JunctionError::NoCurrent { junction: &j.name });
                return None;
            }
            [_, second, ..] => {
                self.error(JunctionError::TwoCurrents { second: second.name.span });
                return None;
            }
        };
        self.expr_with(file, &current.value, env)
    }

    /// Named expressions in any order: one is lowered when those it names are.
    fn junction_lets(&mut self, lets: &'a [ast::Let], file: usize, env: &mut Env) -> Option<()> {
        let mut pending: Vec<&'a ast::Let> = lets.iter().collect();
        let names: HashSet<&str> = lets.iter().map(|l| l.name.text.as_str()).collect();
        while let Some(first) = pending.first() {
            let ready = pending.iter().position(|l| {
                let mut used = HashSet::new();
                names_in(&l.value, &mut used);
                used.iter().all(|n| !names.contains(n) || env.contains_key(*n))
            });
            let Some(at) = ready else {
                self.error(JunctionError::NeedsItself { name: &first.name });
                return None;
            };
            let l = pending.remove(at);
            let value = self.expr_with(file, &l.value, env)?;
            env.insert(l.name.text.clone(), Some(value));
        }
        Some(())
    }

    /// A `connect` line.
    pub(super) fn connection(
        &mut self,
        draft: &mut NetworkDraft<'a>,
        junction: Option<Joined<'a>>,
        from: &'a ast::Path,
        to: &'a ast::Path,
        keys: &'a [ConnectKey],
        span: Span,
    ) -> Option<Connection> {
        let left = self.end(draft, from);
        // What is wrong with both sides is said once.
        let alike = left.is_none() && is_same(from, to);
        let right = if alike { None } else { self.end(draft, to) };
        let scope = &mut draft.scope;
        let rule = self.rule(scope, keys, (Block::Junction, &[]), span);
        let Joined { name, own, model, file } = junction?;
        let current = self.junction_current(scope, &format!("{name}."), file, model)?;
        let ends = [left?, right?];
        for (end, side) in ends.iter().zip([from, to]).filter(|(end, _)| end.area.is_none()) {
            let definition = self.lowered_cell(draft.populations[end.population].cell);
            let compartment = definition.item.compartments.iter().find(|c| c.v == end.v);
            match (compartment, current.ty == Ty::Real(Dim::CURRENT)) {
                (Some(compartment), true) => {
                    self.error(JunctionError::NoArea { compartment: &compartment.name, side: side.span });
                }
                (None, false) => self.error(JunctionError::OfArea { side: side.span }),
                (Some(_), false) | (None, true) => continue,
            }
            return None;
        }
        let [left, right] = ends.map(|end| draft.populations[end.population].name.as_str());
        let stream = super::projection::free_name(format!("{own} {left} {right}"), |name| {
            draft.connections.iter().any(|c| c.stream == name)
        });
        Some(Connection { name, stream, ends, current, rule: rule?, span })
    }

    /// One side of a connection.
    fn end(&mut self, draft: &mut NetworkDraft<'a>, path: &'a ast::Path) -> Option<End> {
        let flats = flatten(path);
        let [flat] = &flats[..] else {
            self.error(JunctionError::SeveralCompartments { side: path.span });
            return None;
        };
        let place = self.place_within(&mut draft.scope, &draft.populations, flat)?;
        if place.cells.is_some() {
            self.error(JunctionError::Selection { side: path.span });
            return None;
        }
        let definition = self.lowered_cell(draft.populations[place.population].cell);
        let cell = &definition.item;
        if let Some(morphology) = &cell.morphology {
            let at = self.driven_place(&definition, morphology, &place, "a junction", flat)?;
            let (v, port, area) = (morphology.v, morphology.port, Some(morphology.area));
            return Some(End { population: place.population, v, port, area, at: Some(at) });
        }
        if let Some(located) = flat.at {
            self.no_sections(&definition, located.span);
            return None;
        }
        let compartment = match (&place.rest[..], &cell.compartments[..]) {
            ("", []) => return self.point_neuron(&definition, place.population, flat.span),
            ("", [only]) => Some(only),
            (name, all) => all.iter().find(|c| c.name == name),
        };
        if compartment.is_none() && !definition.is_unknown(&cell.name) {
            self.error(JunctionError::NotACompartment { cell, path: &place.rest, span: place.rest_span });
        }
        compartment.map(|c| End { population: place.population, v: c.v, port: c.port, area: c.area, at: None })
    }

    /// A point neuron as one side of a connection: what flows out of it is part of `i_syn`.
    fn point_neuron(&mut self, definition: &Definition<Cell>, population: usize, span: Span) -> Option<End> {
        let cell = &definition.item;
        let Some(v) = voltage(cell) else {
            self.error(JunctionError::NoVoltage { cell: &cell.name, span });
            return None;
        };
        let Some(port) = cell.find("i_syn").filter(|port| reads(cell, *port)) else {
            // What a cell reads is not known if something is wrong with it.
            if definition.sound && !definition.is_unknown("i_syn") {
                self.error(JunctionError::NoCurrentRead { cell: &cell.name, span });
            }
            return None;
        };
        Some(End { population, v, port, area: None, at: None })
    }

    /// The rule of a `connect` line.
    pub(super) fn rule(
        &mut self,
        scope: &mut Scope<'a>,
        keys: &'a [ConnectKey],
        (block, names): (Block, &[String]),
        span: Span,
    ) -> Option<ConnectionRule> {
        let Some(l) = self.rule_key(keys, block, names) else {
            // A key that does not exist, which has been said, may be what is missing.
            if keys.iter().all(|key| block.keys().contains(&key.name.text.as_str()) || names.contains(&key.name.text)) {
                self.error(JunctionError::NoRule { span });
            }
            return None;
        };
        let span = l.value.span;
        let (name, args) = match &l.value.kind {
            ast::ExprKind::Call(name, args) => (name.text.as_str(), &args[..]),
            ast::ExprKind::Path(path) if path.len() == 1 => (path[0].text.as_str(), &[][..]),
            _ => {
                self.error(JunctionError::NotARule { span });
                return None;
            }
        };
        if name == "edges" {
            return self.edge_file(args, span);
        }
        let Some(info) = RULES.iter().find(|r| r.name == name) else {
            self.error(JunctionError::UnknownRule { name, span });
            return None;
        };
        let params: Vec<&str> = info.arguments.iter().map(|p| p.name).collect();
        let absent = info.arguments.iter().filter(|p| p.absent.is_some()).map(|p| p.name);
        let optional: Vec<&str> = absent.collect();
        let signature = Signature { function: info.name, params: &params, optional: &optional, variadic: false };
        let args = self.arguments(&signature, args, span)?;
        let mut values: Vec<Option<Expr>> = Vec::new();
        for (argument, p) in args.into_iter().zip(info.arguments) {
            values.push(match (argument, p.absent) {
                (Some(a), Some(Absent::No)) => match a.kind {
                    ast::ExprKind::Bool(yes) => Some(Expr::number(f64::from(u8::from(yes)), Dim::ONE, a.span)),
                    _ => {
                        self.error(JunctionError::NotYesOrNo { argument: p.name, span: a.span });
                        None
                    }
                },
                (Some(a), _) => self.expr_of(scope, "", a, Dim::ONE, &format!("argument `{}`", p.name)),
                (None, Some(Absent::Number(x))) => Some(Expr::number(x, Dim::ONE, span)),
                (None, Some(Absent::As(other))) => values[other].clone(),
                (None, Some(Absent::No)) => Some(Expr::number(0.0, Dim::ONE, span)),
                (None, None) => None,
            });
        }
        Some(ConnectionRule::Named(info.name, values.into_iter().collect::<Option<_>>()?))
    }

    /// The `rule` among the keys of a connection, beside which `names` may stand.
    fn rule_key(&mut self, keys: &'a [ConnectKey], block: Block, names: &[String]) -> Option<&'a ConnectKey> {
        for (i, key) in keys.iter().enumerate() {
            match keys[..i].iter().find(|first| first.name.text == key.name.text) {
                _ if !block.keys().contains(&key.name.text.as_str()) && !names.contains(&key.name.text) => {
                    self.unknown_key_beside(&key.name, block, names);
                }
                Some(first) => self.duplicate_key(&key.name, first.name.span),
                None => {}
            }
        }
        let rule = keys.iter().find(|key| key.name.text == "rule")?;
        if rule.random {
            self.error(NetworkError::TildeWithoutDraw { span: rule.value.span });
        }
        Some(rule)
    }

    /// The arguments of `edges`: a file, and which of its lists.
    fn edge_file(&mut self, args: &'a [ast::Arg], span: Span) -> Option<ConnectionRule> {
        let text = |arg: &'a ast::Arg| match &arg.value.kind {
            ast::ExprKind::Str(text) => Some(text.clone()),
            _ => None,
        };
        let is_column = |arg: &ast::Arg| arg.name.as_ref().is_some_and(|name| name.text == "column");
        let (file, column) = match args {
            [file] if file.name.is_none() => (text(file), Some(None)),
            [file, column] if file.name.is_none() && is_column(column) => (text(file), text(column).map(Some)),
            _ => (None, None),
        };
        if let (Some(file), Some(column)) = (file, column) {
            return Some(ConnectionRule::File(self.data_file(file, column, span)));
        }
        // Data per cell are named by `file("...")`.
        let inside = args.iter().find_map(|arg| match &arg.value.kind {
            ast::ExprKind::Call(_, inner) => inner.iter().find_map(text),
            _ => text(arg),
        });
        self.error(JunctionError::NotAFile { example: inside.as_deref(), span });
        None
    }
}

/// Do two paths have the same names, and name no place along a section?
fn is_same(a: &ast::Path, b: &ast::Path) -> bool {
    let [a, b] = [a, b].map(|path| {
        let flats = flatten(path);
        let names = |flat: &FlatPath<'_>| flat.names.iter().map(|name| name.text.clone()).collect::<Vec<_>>();
        flats.iter().map(|flat| flat.at.is_none().then(|| names(flat))).collect::<Option<Vec<_>>>()
    });
    a.is_some() && a == b
}

/// The single names that an expression mentions.
pub(super) fn names_in<'e>(e: &'e ast::Expr, out: &mut HashSet<&'e str>) {
    match &e.kind {
        ast::ExprKind::Number { .. } | ast::ExprKind::Bool(_) | ast::ExprKind::Str(_) | ast::ExprKind::At(..) => {}
        ast::ExprKind::Path(path) => {
            if let [one] = &path[..] {
                out.insert(&one.text);
            }
        }
        ast::ExprKind::Unary(_, a) => names_in(a, out),
        ast::ExprKind::Binary(_, a, b) => {
            names_in(a, out);
            names_in(b, out);
        }
        ast::ExprKind::If(c, a, b) => {
            names_in(c, out);
            names_in(a, out);
            names_in(b, out);
        }
        ast::ExprKind::Call(_, args) => args.iter().for_each(|a| names_in(&a.value, out)),
    }
}
