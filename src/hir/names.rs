//! Names in expressions: from paths to symbols.
//!
//! In come paths and the scope they are looked up in; out go symbols, their values lowered first where that has not happened.
//! Never true here: that the order of definitions matters.

use super::calls::Env;
use super::lower::{ItemKind, Lowerer};
use super::scope::{Role, Scope, ScopeKind, Status};
use super::{Expr, ExprKind, SymbolId, Ty};
use crate::diag::{Code, Diagnostic, nearest};
use crate::source::Span;
use crate::syntax::ast::{self};
use crate::units::{Dim, Unit};

/// Joins a path's names with dots.
pub(super) fn join(path: &[ast::Name]) -> String {
    path.iter().map(|n| n.text.as_str()).collect::<Vec<_>>().join(".")
}

fn path_span(path: &[ast::Name]) -> Span {
    path[0].span.to(path[path.len() - 1].span)
}

impl<'a> Lowerer<'a> {
    pub(super) fn path(
        &mut self,
        scope: &mut Scope<'a>,
        prefix: &str,
        path: &[ast::Name],
        env: Option<&Env>,
    ) -> Option<Expr> {
        let name = join(path);
        let span = path_span(path);
        if let Some(env) = env {
            if let Some(value) = env.get(&name) {
                let value = value.as_ref()?;
                return if self.spend(value.size(), span) { Some(Expr { span, ..value.clone() }) } else { None };
            }
        } else if let Some(id) = scope.lookup(prefix, &name) {
            scope.entry_mut(id).used = true;
            let ty = self.resolve(scope, id, Some(span))?;
            let kind = match scope.kind {
                ScopeKind::Network | ScopeKind::PerCell | ScopeKind::Input => ExprKind::NetworkParam(id),
                ScopeKind::Constant | ScopeKind::Channel | ScopeKind::Cell => ExprKind::Symbol(id),
            };
            return Some(Expr { kind, ty, span });
        }
        let special = |kind, dim| Some(Expr { kind, ty: Ty::Real(dim), span });
        match name.as_str() {
            "pi" => return special(ExprKind::Number(std::f64::consts::PI), Dim::ONE),
            "celsius" if scope.kind != ScopeKind::Constant && env.is_none() => {
                return special(ExprKind::Celsius, Dim::TEMPERATURE);
            }
            "t" if env.is_none() && matches!(scope.kind, ScopeKind::Channel | ScopeKind::Cell | ScopeKind::Input) => {
                return special(ExprKind::Time, Dim::TIME);
            }
            "index" if env.is_none() && matches!(scope.kind, ScopeKind::PerCell | ScopeKind::Input) => {
                return special(ExprKind::Index, Dim::ONE);
            }
            _ => {}
        }
        if let [single] = path
            && let Some(item) = self.item(scope.file, &single.text)
        {
            if let ItemKind::Const(_) = item.kind {
                let value = self.constant(item, single)?;
                return if self.spend(value.size(), span) { Some(Expr { span, ..value }) } else { None };
            }
            let what = item.kind.describe();
            self.error(Diagnostic::new(
                Code::NotAValue,
                span,
                format!("`{name}` is {what}, not a value"),
                format!("{what} cannot be calculated with"),
            ));
            return None;
        }
        self.unknown_name(scope, prefix, &name, span, env);
        None
    }

    fn unknown_name(&mut self, scope: &mut Scope<'a>, prefix: &str, name: &str, span: Span, env: Option<&Env>) {
        let mut p = prefix;
        loop {
            if let Some(what) = scope.not_values.get(&format!("{p}{name}")) {
                let d = Diagnostic::new(
                    Code::NotAValue,
                    span,
                    format!("`{name}` is {what}, not a value"),
                    "name one of its quantities",
                );
                let inside: Vec<_> = scope
                    .entries
                    .iter()
                    .filter_map(|e| e.name.strip_prefix(&format!("{p}{name}.")))
                    .filter(|rest| !rest.contains(".") && !rest.starts_with('<'))
                    .take(6)
                    .map(|rest| format!("`{name}.{rest}`"))
                    .collect();
                let d = if inside.is_empty() { d } else { d.help(format!("it has {}", inside.join(", "))) };
                self.error(d);
                return;
            }
            if p.is_empty() {
                break;
            }
            let trimmed = &p[..p.len() - 1];
            p = trimmed.rfind('.').map_or("", |at| &trimmed[..=at]);
        }
        // What is said to be wrong already is not wrong again here.
        if scope.is_poisoned(prefix, name) || self.is_unknown_item(scope.file, name) {
            return;
        }
        if scope.kind == ScopeKind::Constant && env.is_none() && matches!(name, "v" | "t" | "celsius" | "index") {
            let what = match name {
                "v" => "a voltage",
                "t" => "the time",
                "index" => "the number of a cell",
                _ => "the temperature of a run",
            };
            let message = format!("`{name}` is not known before the run");
            let d = Diagnostic::new(Code::NotConstant, span, message, format!("{what} is not a constant"));
            self.error(d.help("only numbers, functions and constants can stand here"));
            return;
        }
        let mut d = Diagnostic::new(Code::UnknownName, span, format!("`{name}` is not known here"), "not defined");
        d = match self.name_help(scope, prefix, name, env) {
            Some(help) => d.help(help),
            None => d,
        };
        self.error(d);
        // Once is enough.
        if env.is_none() {
            scope.poisoned.insert(name.to_string());
        }
    }

    /// What an unknown name may stand for.
    pub(super) fn name_help(&self, scope: &Scope<'a>, prefix: &str, name: &str, env: Option<&Env>) -> Option<String> {
        let visible = |e: &&super::scope::Entry<'a>| env.is_none() && !e.name.contains('<');
        // A name inside a compartment or channel, used outside without its path.
        let suffix = format!(".{name}");
        let short = |full: &str| full.strip_prefix(prefix).unwrap_or(full).to_string();
        let deeper: Vec<String> = scope
            .entries
            .iter()
            .filter(visible)
            .filter(|e| e.name.ends_with(&suffix))
            .map(|e| short(&e.name))
            .collect();
        match &deeper[..] {
            [] => {}
            [one] => return Some(format!("write its path: `{one}`")),
            some => {
                let list: Vec<String> = some.iter().take(4).map(|n| format!("`{n}`")).collect();
                return Some(format!("write which one: {}", list.join(", ")));
            }
        }
        if scope.kind == ScopeKind::Channel
            && let Some((pool, unit)) = self.pools().into_iter().find(|p| p.0 == name)
        {
            let unit = unit.map(|u| format!(": {u}")).unwrap_or_default();
            return Some(format!("`{pool}` is a pool of a compartment; add `reads {pool}{unit}` to the channel"));
        }
        let has = |wanted: &str| env.is_none() && scope.get(wanted).is_some();
        match name {
            "i" if scope.kind == ScopeKind::Channel => {
                return Some("a channel's current cannot be read inside the channel; `let` names a part of it".into());
            }
            "V" | "Vm" | "vm" | "V_m" | "v_m" | "voltage" if has("v") => {
                return Some("the voltage is called `v`".into());
            }
            "time" | "T" if env.is_none() => return Some("the time is called `t`, the temperature `celsius`".into()),
            "temperature" | "temp" | "degC" if env.is_none() => {
                return Some("the temperature is called `celsius`".into());
            }
            "dt" => return Some("equations do not see the time step; `t` is the time".into()),
            "dv" => return Some("`dv` exists in a `junction` only".into()),
            "index" => {
                return Some(
                    "`index`, a cell's number, exists in inputs and in `param` and `init` lines of a network".into(),
                );
            }
            "cai" | "cao" | "ca" if scope.kind == ScopeKind::Channel => {
                return Some("a concentration is a pool of the compartment: add `reads Ca: mM` to the channel".into());
            }
            _ if has("erev")
                && ["ek", "ena", "eca", "eleak", "el"].contains(&name.replace('_', "").to_lowercase().as_str()) =>
            {
                return Some("the reversal potential of this channel is `erev`".into());
            }
            _ if has("gbar") && name.to_lowercase().starts_with('g') && name.to_lowercase().ends_with("bar") => {
                return Some("the conductance of this channel is `gbar`".into());
            }
            _ => {}
        }
        let mut candidates: Vec<String> = match env {
            Some(env) => env.keys().cloned().collect(),
            None => scope.entries.iter().filter(visible).flat_map(|e| [short(&e.name), e.name.clone()]).collect(),
        };
        candidates.extend(self.constant_names(scope.file));
        candidates.extend(["celsius", "pi"].map(str::to_string));
        candidates.sort();
        if let Some(near) = nearest(name, candidates.iter().map(String::as_str)) {
            return Some(format!("did you mean `{near}`?"));
        }
        if Unit::parse(name).is_some() {
            return Some(format!(
                "`{name}` is a unit; a unit stands directly behind a number: `1 {name}`, or `0.1 /{name}` with a space before the slash"
            ));
        }
        if env.is_some() {
            return Some("a function sees its own parameters and constants only; pass the value as a parameter".into());
        }
        if scope.kind == ScopeKind::Constant {
            return Some("only numbers, functions and constants can stand here".into());
        }
        let block = match scope.kind {
            ScopeKind::Channel => "channel",
            ScopeKind::Cell => "cell",
            ScopeKind::Network | ScopeKind::PerCell | ScopeKind::Input => "network",
            ScopeKind::Constant => return None,
        };
        (!name.contains('.')).then(|| format!("define it in the {block}: `param {name} = ...`"))
    }

    /// The type of an entry, lowering it first if that has not happened yet.
    pub(super) fn resolve(&mut self, scope: &mut Scope<'a>, id: SymbolId, user: Option<Span>) -> Option<Ty> {
        let entry = scope.entry_mut(id);
        match entry.status {
            Status::Done => return entry.ty,
            Status::Busy => {
                let (name, span) = (entry.name.clone(), entry.span);
                let at = self.resolving.iter().position(|r| r.0 == name && r.1 == span).unwrap_or(0);
                let chain = self.resolving[at..].to_vec();
                let help = match scope.kind {
                    ScopeKind::Channel | ScopeKind::Cell => {
                        "a quantity that feeds back on itself in time is a `state` with an equation"
                    }
                    _ => "give one of them a value of its own",
                };
                self.cycle("", &chain, user.unwrap_or(span), help);
                return None;
            }
            Status::New => {}
        }
        // A state's type is known from its unit, before its initial value is looked at.
        if let (Role::State { .. }, Some((dim, _))) = (entry.role, entry.want) {
            entry.status = Status::Done;
            entry.ty = Some(Ty::Real(dim));
            return entry.ty;
        }
        entry.status = Status::Busy;
        let (source, prefix) = entry.source.clone()?;
        let want = entry.want;
        let place = (entry.name.clone(), entry.span);
        self.resolving.push(place);
        let value = self.expr(scope, &prefix, source);
        self.resolving.pop();
        let value = match (value, want) {
            (Some(x), Some((dim, why))) => self.expect(scope, x, dim, why),
            (value, _) => value,
        };
        let entry = scope.entry_mut(id);
        entry.status = Status::Done;
        entry.ty = value.as_ref().map(|v| v.ty);
        entry.source = None;
        entry.value = value;
        entry.ty
    }

    /// Lowers everything in a scope that has not been lowered yet.
    pub(super) fn resolve_all(&mut self, scope: &mut Scope<'a>) {
        for id in scope.ids() {
            self.resolve(scope, id, None);
            // Initial values of states whose unit was declared.
            if let Some((source, prefix)) = scope.entry(id).source.clone() {
                let want = scope.entry(id).want;
                let value = self.expr(scope, &prefix, source);
                let value = match (value, want) {
                    (Some(x), Some((dim, why))) => self.expect(scope, x, dim, why),
                    (value, _) => value,
                };
                let entry = scope.entry_mut(id);
                entry.source = None;
                entry.value = value;
            }
        }
    }
}
