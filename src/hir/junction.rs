//! Gap junctions: a model of the current, and which cells it joins.

use super::calls::Env;
use super::lower::{ItemKind, Lowerer};
use super::network::flatten;
use super::scope::{Entry, Role, Scope, ScopeKind};
use super::{Connection, ConnectionRule, Expr, ExprKind, Population, Ty};
use crate::connect::RULES;
use crate::diag::{Code, Diagnostic, nearest};
use crate::source::Span;
use crate::syntax::ast;
use crate::units::Dim;
use std::collections::HashSet;

/// A junction model whose parameters are known to a network.
pub(super) struct Joined<'a> {
    /// Its name in the network.
    name: String,
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
        if self.junction_current(&mut scope, "", 0, j).is_none() {
            return;
        }
        for p in &j.params {
            if let Some(id) = scope.get(&p.name.text)
                && !scope.entry(id).used
            {
                let message = format!("parameter `{}` is never used", p.name.text);
                let label = "the current does not depend on it";
                self.error(Diagnostic::new(Code::Unused, p.name.span, message, label));
            }
        }
    }

    /// Makes the parameters of a connection's junction known to the network, as `Cx36.g`.
    pub(super) fn junction_params(
        &mut self,
        scope: &mut Scope<'a>,
        via: &'a ast::Name,
        args: &'a [(ast::Name, ast::Expr)],
        joined: &mut Vec<String>,
    ) -> Option<Joined<'a>> {
        let item = self.find_item(0, via, "a junction model", |k| matches!(k, ItemKind::Junction(_)))?;
        let ItemKind::Junction(model) = item.kind else { return None };
        joined.push(via.text.clone());
        let count = joined.iter().filter(|n| **n == via.text).count();
        let name = if count == 1 { via.text.clone() } else { format!("{}_{count}", via.text) };
        for (i, (arg, _)) in args.iter().enumerate() {
            if let Some((first, _)) = args[..i].iter().find(|a| a.0.text == arg.text) {
                self.duplicate_key(arg, first.span);
            } else if !model.params.iter().any(|p| p.name.text == arg.text) {
                let params: Vec<&str> = model.params.iter().map(|p| p.name.text.as_str()).collect();
                let message = format!("junction `{}` has no parameter `{}`", via.text, arg.text);
                let d = Diagnostic::new(Code::UnknownParameter, arg.span, message, "no such parameter");
                self.error(match nearest(&arg.text, params.iter().copied()) {
                    Some(near) => d.help(format!("did you mean `{near}`?")),
                    None => d.note(format!("it has {}", params.join(", "))),
                });
            }
        }
        // Defaults are lowered where the junction is defined, arguments where they stand.
        let mut own = Scope::new(ScopeKind::Network, item.file);
        for p in &model.params {
            self.add_param(&mut own, p, "");
        }
        self.resolve_all(&mut own);
        for p in &model.params {
            let default = own.get(&p.name.text).map(|id| own.entry(id).clone())?;
            let full = format!("{name}.{}", p.name.text);
            let dim = default.ty?.dim();
            let mut entry = match args.iter().find(|a| a.0.text == p.name.text) {
                Some((_, value)) => {
                    Entry::pending(full, value.span, Role::Param, value, "").want(dim, "this parameter")
                }
                None => Entry::ready(full, p.name.span, Role::Param, default.ty, default.value),
            };
            entry.docs = p.docs.clone();
            entry.unit = default.unit;
            entry.written = false;
            entry.used = true;
            scope.add(entry).ok();
        }
        Some(Joined { name, model, file: item.file })
    }

    /// The current of a junction: a density, outward positive.
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
        // Named expressions in any order: one is lowered when those it names are.
        let mut pending: Vec<&'a ast::Let> = j.lets.iter().collect();
        let names: HashSet<&str> = j.lets.iter().map(|l| l.name.text.as_str()).collect();
        while !pending.is_empty() {
            let ready = pending.iter().position(|l| {
                let mut used = HashSet::new();
                names_in(&l.value, &mut used);
                used.iter().all(|n| !names.contains(n) || env.contains_key(*n))
            });
            let Some(at) = ready else {
                let l = pending[0];
                let message = format!("`{}` depends on itself", l.name.text);
                self.error(Diagnostic::new(Code::CyclicDefinition, l.name.span, message, "needs its own value"));
                return None;
            };
            let l = pending.remove(at);
            self.check_reserved(&l.name);
            let value = self.expr_with(file, &l.value, &env)?;
            env.insert(l.name.text.clone(), Some(value));
        }
        let current = match &j.currents[..] {
            [one] => one,
            [] => {
                let message = format!("junction `{}` has no current", j.name.text);
                self.error(
                    Diagnostic::new(Code::MissingCurrent, j.name.span, message, "no `current` line")
                        .help("add `current i = g * dv`, where dv is the voltage here minus the voltage there"),
                );
                return None;
            }
            [_, second, ..] => {
                let message = "a junction has one current";
                self.error(Diagnostic::new(Code::DuplicateKey, second.name.span, message, "a second `current` line"));
                return None;
            }
        };
        let x = self.expr_with(file, &current.value, &env)?;
        x.visit(&mut |e| {
            if let ExprKind::NetworkParam(id) = e.kind {
                scope.entry_mut(id).used = true;
            }
        });
        self.expect(scope, x, Dim::CURRENT_DENSITY, "a junction's current")
    }

    /// A `connect` line.
    #[allow(clippy::too_many_arguments)] // one per part of the syntax
    pub(super) fn connection(
        &mut self,
        scope: &mut Scope<'a>,
        populations: &[Population],
        junction: Option<Joined<'a>>,
        from: &'a ast::Path,
        to: &'a ast::Path,
        keys: &'a [ast::Let],
        span: Span,
    ) -> Option<Connection> {
        let a = self.side(scope, populations, from);
        let b = self.side(scope, populations, to);
        let rule = self.rule(scope, keys, span);
        let junction = junction?;
        let current = self.junction_current(scope, &format!("{}.", junction.name), junction.file, junction.model)?;
        let ((population, v, port), other) = (a?, b?);
        if (population, v, port) != other {
            self.unsupported(span, "junctions between different populations or compartments");
            return None;
        }
        Some(Connection { name: junction.name, population, v, port, current, rule: rule?, span })
    }

    /// The population, voltage and port of one side.
    fn side(
        &mut self,
        scope: &mut Scope<'a>,
        populations: &[Population],
        path: &'a ast::Path,
    ) -> Option<(usize, super::SymbolId, super::SymbolId)> {
        let flats = flatten(path);
        let [flat] = &flats[..] else {
            let message = "each side of a connection is one compartment";
            self.error(Diagnostic::new(Code::BadTarget, path.span, message, "several"));
            return None;
        };
        let place = self.place(scope, populations, flat)?;
        if place.cells.is_some() {
            let message = "the rule decides which cells are connected";
            self.error(
                Diagnostic::new(Code::BadTarget, path.span, message, "no selection of cells can stand here")
                    .help("give the pairs in a file: `rule = edges(\"pairs.csv\")`"),
            );
            return None;
        }
        let cell = self.lowered_cell(populations[place.population].cell).item.clone();
        let compartment = match (&place.rest[..], &cell.compartments[..]) {
            ("", [only]) => Some(only),
            (name, all) => all.iter().find(|c| c.name == name),
        };
        match compartment {
            Some(c) => Some((place.population, c.v, c.port)),
            None => {
                let names: Vec<&str> = cell.compartments.iter().map(|c| c.name.as_str()).collect();
                let message =
                    format!("a junction joins compartments, and cell `{}` has no `{}`", cell.name, place.rest);
                let d = Diagnostic::new(Code::BadTarget, place.rest_span, message, "not a compartment");
                self.error(match names.is_empty() {
                    true => d.note("it has none"),
                    false => d.note(format!("it has {}", names.join(", "))),
                });
                None
            }
        }
    }

    fn rule(&mut self, scope: &mut Scope<'a>, keys: &'a [ast::Let], span: Span) -> Option<ConnectionRule> {
        let mut rule: Option<&'a ast::Let> = None;
        for l in keys {
            if l.name.text != "rule" {
                self.unknown_key(&l.name, "a junction", &["rule"]);
            } else if let Some(first) = rule {
                self.duplicate_key(&l.name, first.name.span);
            } else {
                rule = Some(l);
            }
        }
        let names: Vec<&str> = RULES.iter().map(|r| r.name).collect();
        let Some(l) = rule else {
            let message = "which cells are connected?";
            self.error(
                Diagnostic::new(Code::MissingKey, span, message, "no `rule`")
                    .help("add `{ rule = torus_radial(degree = 10, r_max = 4, width = 4) }`")
                    .note(format!("the rules are {} and edges", names.join(", "))),
            );
            return None;
        };
        let (name, args) = match &l.value.kind {
            ast::ExprKind::Call(name, args) => (name.text.as_str(), &args[..]),
            ast::ExprKind::Path(path) if path.len() == 1 => (path[0].text.as_str(), &[][..]),
            _ => {
                let d = Diagnostic::new(Code::BadValue, l.value.span, "this is not a connection rule", "not a rule");
                self.error(d.note(format!("the rules are {} and edges", names.join(", "))));
                return None;
            }
        };
        if name == "edges" {
            let [ast::Arg { name: None, value: ast::Expr { kind: ast::ExprKind::Str(file), .. } }] = args else {
                let message = "`edges` needs a file name in quotes";
                self.error(Diagnostic::new(Code::WrongArguments, l.value.span, message, "not one text"));
                return None;
            };
            return Some(ConnectionRule::File(self.data_file(file.clone(), None, l.value.span)));
        }
        let Some(info) = RULES.iter().find(|r| r.name == name) else {
            let message = format!("there is no connection rule `{name}`");
            let d = Diagnostic::new(Code::UnknownFunction, l.value.span, message, "not a rule");
            self.error(match nearest(name, names.iter().copied()) {
                Some(near) => d.help(format!("did you mean `{near}`?")),
                None => d.note(format!("the rules are {} and edges", names.join(", "))),
            });
            return None;
        };
        let params: Vec<&str> = info.arguments.iter().map(|p| p.name).collect();
        let args = self.arguments(info.name, &params, args, l.value.span, |_| false, false)?;
        let values: Vec<Option<Expr>> = args
            .into_iter()
            .zip(&params)
            .map(|(a, p)| self.expr_of(scope, "", a?, Dim::ONE, &format!("argument `{p}`")))
            .collect();
        Some(ConnectionRule::Named(info.name, values.into_iter().collect::<Option<_>>()?))
    }
}

/// The single names that an expression mentions.
fn names_in<'e>(e: &'e ast::Expr, out: &mut HashSet<&'e str>) {
    match &e.kind {
        ast::ExprKind::Number { .. } | ast::ExprKind::Bool(_) | ast::ExprKind::Str(_) => {}
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
