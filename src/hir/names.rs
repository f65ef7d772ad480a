//! Names in expressions: from paths to symbols.
//!
//! In come paths and the scope they are looked up in; out go symbols, their values lowered first where that has not happened.
//! Never true here: that the order of definitions matters.

use super::calls::Env;
use super::error::{NameError, NameHelp};
use super::items::{ItemKind, Kind};
use super::junction::names_in;
use super::lower::Lowerer;
use super::scope::{Role, Scope, ScopeKind, Status, outwards};
use super::{Expr, ExprKind, SymbolId, Ty};
use crate::diag::nearest;
use crate::source::Span;
use crate::syntax::ast::{self};
use crate::units::{Dim, Unit};
use std::collections::HashSet;

/// Joins a path's names with dots.
pub(super) fn join(path: &[ast::Name]) -> String {
    path.iter().map(|n| n.text.as_str()).collect::<Vec<_>>().join(".")
}

fn path_span(path: &[ast::Name]) -> Span {
    path[0].span.to(path[path.len() - 1].span)
}

impl<'a> Lowerer<'a> {
    /// What a path means in an expression, in a function's body if there is an `env`.
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
                self.note_inner(&name, span, value.as_ref().map(|x| x.span));
                return self.put_in(value.as_ref()?, span);
            }
        } else if let Some(id) = scope.lookup(prefix, &name) {
            self.note_path(scope, &scope.entry(id).name, path, scope.entry(id).span);
            return self.symbol(scope, id, span);
        }
        if let Some(special) = special(scope.kind, &name, env.is_some(), span) {
            return Some(special);
        }
        if let [single] = path
            && let Some(item) = self.item(scope.file, &single.text)
        {
            if let ItemKind::Const(constant) = item.kind {
                self.note(single.span, constant.name.span);
                let value = self.constant(item, single)?;
                return self.put_in(&value, span);
            }
            self.error(NameError::ItemWithoutValue { name: &name, span, item: item.kind.kind().describe() });
            return None;
        }
        self.unknown_name(scope, prefix, &name, span, env);
        None
    }

    /// The type of the value that a name has here, and where that is defined; nothing is said if there is none.
    pub(super) fn value_called(
        &mut self,
        scope: &mut Scope<'a>,
        prefix: &str,
        name: &ast::Name,
        env: Option<&Env>,
    ) -> Option<(Ty, Span)> {
        let found = match env {
            Some(env) => env.get(&name.text).map(|value| value.as_ref().map(|x| (x.ty, x.span))),
            None => scope.lookup(prefix, &name.text).map(|id| {
                let busy = scope.entry(id).status == Status::Busy;
                let ty = if busy { None } else { self.resolve(scope, id, Some(name.span)) };
                ty.map(|ty| (ty, scope.entry(id).span))
            }),
        };
        found.unwrap_or_else(|| {
            let item = self.item(scope.file, &name.text)?;
            let ItemKind::Const(constant) = item.kind else { return None };
            if self.constant_stack.contains(&(item.file, item.index)) {
                return None;
            }
            Some((self.constant(item, name)?.ty, constant.name.span))
        })
    }

    /// A value in place of its name.
    fn put_in(&mut self, value: &Expr, span: Span) -> Option<Expr> {
        self.spend(value.size(), span).then(|| Expr { span, ..value.clone() })
    }

    fn symbol(&mut self, scope: &mut Scope<'a>, id: SymbolId, span: Span) -> Option<Expr> {
        scope.entry_mut(id).used = true;
        let ty = self.resolve(scope, id, Some(span))?;
        let kind = match scope.kind {
            ScopeKind::Network | ScopeKind::PerCell | ScopeKind::PerEdge(_) | ScopeKind::Input => {
                ExprKind::NetworkParam(id)
            }
            ScopeKind::Constant
            | ScopeKind::Function
            | ScopeKind::Drawing
            | ScopeKind::Body
            | ScopeKind::Channel
            | ScopeKind::Cell
            | ScopeKind::Spiking => ExprKind::Symbol(id),
        };
        Some(Expr { kind, ty, span })
    }

    /// Says that a name is not known, unless that follows from what has been said.
    fn unknown_name(&mut self, scope: &mut Scope<'a>, prefix: &str, name: &str, span: Span, env: Option<&Env>) {
        if let Some((full, what)) = not_a_value(scope, prefix, name) {
            if let Some(means) = scope.places.get(&full) {
                self.note(span, *means);
            }
            let inside = quantities_of(scope, &full).take(6).collect();
            self.error(NameError::NotAValue { name, span, what, inside });
            return;
        }
        // What is said to be wrong already is not wrong again here.
        if scope.is_poisoned(prefix, name) || self.is_unknown_item(scope.file, name) {
            return;
        }
        let before_the_run = scope.kind == ScopeKind::Constant;
        if before_the_run && (name == "celsius" || env.is_none() && matches!(name, "v" | "t" | "index")) {
            self.error(NameError::NotConstant { name, span });
            return;
        }
        // Of very many mistakes only some are shown.
        let help = if self.diagnostics.has_room() { self.name_help(scope, prefix, name, env) } else { None };
        self.error(NameError::Unknown { name, span, help });
        // Once is enough.
        if env.is_none() {
            scope.poisoned.insert(name.to_string());
        }
    }

    /// What an unknown name may stand for.
    fn name_help(&self, scope: &Scope<'a>, prefix: &str, name: &str, env: Option<&Env>) -> Option<NameHelp> {
        let elsewhere = || called_elsewhere(scope, name, env.is_some()).map(str::to_string);
        let known = deeper(scope, prefix, name).or_else(|| self.unread_pool(scope, name)).or_else(elsewhere);
        let known = known.or_else(|| self.not_inserted(scope, prefix, name));
        let near = || {
            let near = self.near_name(scope, prefix, name, env).map(NameHelp::Meant);
            let habit = || current_of_channel(scope, prefix, name).or_else(|| weight_called(name, env?));
            near.or_else(|| habit().map(NameHelp::Said))
        };
        let told = || a_unit(name).or_else(|| self.where_it_stands(scope, name, env)).map(NameHelp::Said);
        known.map(NameHelp::Said).or_else(near).or_else(told)
    }

    /// How a quantity of a channel is read that is not inserted where it is read.
    fn not_inserted(&self, scope: &Scope<'a>, prefix: &str, name: &str) -> Option<String> {
        let channel = name.rsplit('.').nth(1).filter(|_| scope.kind == ScopeKind::Cell)?;
        self.item(scope.file, channel).filter(|item| item.kind.kind() == Kind::Channel)?;
        let (place, what) = (prefix.trim_end_matches('.'), if scope.has_regions { "region" } else { "compartment" });
        (!place.is_empty()).then(|| format!("have `insert {channel}` in {what} `{place}`, where it is read"))
    }

    /// The pool of this name that a channel does not say it reads.
    fn unread_pool(&self, scope: &Scope<'a>, name: &str) -> Option<String> {
        if scope.kind != ScopeKind::Channel {
            return None;
        }
        let (pool, unit) = self.pools().into_iter().find(|p| p.0 == name)?;
        let unit = unit.map(|u| format!(": {u}")).unwrap_or_default();
        Some(format!("`{pool}` is a pool of a compartment; add `reads {pool}{unit}` to the channel"))
    }

    /// Which names can stand in a scope, or how a new one is defined there.
    fn where_it_stands(&self, scope: &Scope<'a>, name: &str, env: Option<&Env>) -> Option<String> {
        // The first name of a channel and of a synapse is the voltage, which has the place of the block.
        let block = scope.entries.first().and_then(|e| self.item(scope.file, self.text(e.span)));
        let is_synapse = block.is_some_and(|item| item.kind.kind() == Kind::Synapse);
        where_it_stands(scope.kind, if is_synapse { "synapse" } else { "channel" }, name, env)
    }

    /// The name that may have been misspelt.
    fn near_name(&self, scope: &Scope<'a>, prefix: &str, name: &str, env: Option<&Env>) -> Option<String> {
        let mut known: Vec<String> = match env {
            Some(env) => env.keys().cloned().collect(),
            None => visible(scope).flat_map(|full| [short(full, prefix), full.to_string()]).collect(),
        };
        known.extend(self.names_of(scope.file, Kind::Const));
        known.extend(["celsius", "pi"].map(str::to_string));
        known.sort();
        nearest(name, known.iter().map(String::as_str)).map(str::to_string)
    }

    /// The type of an entry, lowering it first if that has not happened yet.
    pub(super) fn resolve(&mut self, scope: &mut Scope<'a>, id: SymbolId, user: Option<Span>) -> Option<Ty> {
        let entry = scope.entry_mut(id);
        match entry.status {
            Status::Done => return entry.ty,
            Status::Busy => {
                self.needs_itself(scope, id, user);
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
        let place = (entry.name.clone(), entry.span);
        self.resolving.push(place);
        for other in scope.entry(id).made_of.clone() {
            self.resolve(scope, other, user);
        }
        self.lower_source(scope, id);
        self.resolving.pop();
        let entry = scope.entry_mut(id);
        entry.status = Status::Done;
        entry.ty = entry.value.as_ref().map(|v| v.ty);
        entry.ty
    }

    /// Says that an entry which is being lowered needs itself.
    fn needs_itself(&mut self, scope: &Scope<'a>, id: SymbolId, user: Option<Span>) {
        let entry = scope.entry(id);
        let at = self.resolving.iter().position(|r| r.0 == entry.name && r.1 == entry.span).unwrap_or(0);
        let chain = self.resolving[at..].to_vec();
        let help = match scope.kind {
            ScopeKind::Channel | ScopeKind::Cell | ScopeKind::Spiking => {
                "a quantity that feeds back on itself in time is a `state` with an equation"
            }
            ScopeKind::Constant
            | ScopeKind::Function
            | ScopeKind::Drawing
            | ScopeKind::Body
            | ScopeKind::Network
            | ScopeKind::PerCell
            | ScopeKind::PerEdge(_)
            | ScopeKind::Input => "give one of them a value of its own",
        };
        self.cycle("", &chain, user.unwrap_or(entry.span), help);
    }

    /// Lowers the expression of an entry, if that has not happened yet.
    fn lower_source(&mut self, scope: &mut Scope<'a>, id: SymbolId) {
        let Some((source, prefix)) = scope.entry(id).source.clone() else { return };
        let want = scope.entry(id).want;
        let value = match scope.entry(id).role {
            Role::State { .. } if is_steady_state(scope, source) => self.steady_state(source.span, want),
            _ => self.expr(scope, &prefix, source),
        };
        let value = match (value, want) {
            (Some(x), Some((dim, why))) => self.expect(scope, x, dim, why),
            (value, _) => value,
        };
        let entry = scope.entry_mut(id);
        entry.source = None;
        entry.value = value;
    }

    /// `init = steady_state` of a state whose dimension is known.
    fn steady_state(&mut self, span: Span, want: Option<(Dim, &'static str)>) -> Option<Expr> {
        let Some((dim, _)) = want else {
            self.error(NameError::SteadyStateOfWhat { span });
            return None;
        };
        Some(Expr { kind: ExprKind::SteadyState, ty: Ty::Real(dim), span })
    }

    /// Lowers everything in a scope that has not been lowered yet.
    pub(super) fn resolve_all(&mut self, scope: &mut Scope<'a>) {
        for id in scope.ids() {
            // What a long chain of definitions needs comes first: names are looked up inside each other.
            let needed = needed(scope, id);
            if needed.len() > LONG_CHAIN {
                needed.into_iter().for_each(|id| {
                    self.resolve(scope, id, None);
                });
            }
            self.resolve(scope, id, None);
            // Initial values of states whose unit was declared.
            self.lower_source(scope, id);
        }
    }
}

/// So many definitions may be looked up inside each other.
const LONG_CHAIN: usize = 100;

/// What the expression of an entry needs that has not been lowered, what is needed for it first.
fn needed(scope: &Scope<'_>, id: SymbolId) -> Vec<SymbolId> {
    let read = |id: SymbolId| -> Vec<SymbolId> {
        let entry = scope.entry(id);
        let Some((source, prefix)) = entry.source.as_ref().filter(|_| entry.status == Status::New) else {
            return Vec::new();
        };
        let mut names = HashSet::new();
        names_in(source, &mut names);
        let mut found: Vec<SymbolId> = names
            .into_iter()
            .filter_map(|name| scope.lookup(prefix, name))
            .filter(|id| scope.entry(*id).status == Status::New)
            .collect();
        found.sort_by_key(|id| id.0);
        found
    };
    let mut order = Vec::new();
    let mut seen = HashSet::from([id]);
    let mut waiting = vec![(id, read(id))];
    while let Some((top, needs)) = waiting.last_mut() {
        match needs.pop() {
            Some(next) if seen.insert(next) => waiting.push((next, read(next))),
            Some(_) => {}
            None => {
                order.push(*top);
                waiting.pop();
            }
        }
    }
    order
}

/// Is an initial value the word `steady_state`, and no name of the user's?
fn is_steady_state(scope: &Scope<'_>, e: &ast::Expr) -> bool {
    let word =
        matches!(&e.kind, ast::ExprKind::Path(path) if matches!(&path[..], [name] if name.text == "steady_state"));
    word && scope.get("steady_state").is_none()
}

/// What has a fixed meaning where an expression stands.
fn special(kind: ScopeKind, name: &str, in_function: bool, span: Span) -> Option<Expr> {
    use ScopeKind::{Body, Cell, Channel, Constant, Drawing, Function, Input, Network, PerCell, PerEdge, Spiking};
    let (value, dim) = match name {
        "pi" => (ExprKind::Number(std::f64::consts::PI), Dim::ONE),
        "celsius" if kind != Constant => (ExprKind::Celsius, Dim::TEMPERATURE),
        _ if in_function => return None,
        "t" if matches!(kind, Channel | Cell | Spiking | Input) => (ExprKind::Time, Dim::TIME),
        "index" if matches!(kind, PerCell | PerEdge(_) | Input) => (ExprKind::Index, Dim::ONE),
        "distance" => match kind {
            PerEdge(dim) => (ExprKind::Distance, dim),
            Constant | Body | Drawing | Function | Channel | Cell | Spiking | Network | PerCell | Input => return None,
        },
        _ => return None,
    };
    Some(Expr { kind: value, ty: Ty::Real(dim), span })
}

/// The compartment or channel that a name means from `prefix`, and what it is.
fn not_a_value(scope: &Scope<'_>, prefix: &str, name: &str) -> Option<(String, &'static str)> {
    outwards(prefix).find_map(|p| {
        let full = format!("{p}{name}");
        let what = *scope.not_values.get(&full)?;
        Some((full, what))
    })
}

/// The quantities of a compartment or channel.
fn quantities_of<'s>(scope: &'s Scope<'_>, path: &str) -> impl Iterator<Item = &'s str> {
    let inside = format!("{path}.");
    let names = scope.entries.iter().filter_map(move |e| e.name.strip_prefix(&inside));
    names.filter(|rest| !rest.contains('.') && !rest.starts_with('<'))
}

/// The full names that can be written in expressions.
fn visible<'s>(scope: &'s Scope<'_>) -> impl Iterator<Item = &'s str> {
    scope.entries.iter().map(|e| e.name.as_str()).filter(|name| !name.contains('<'))
}

/// A full name as it can be written behind a prefix.
fn short(full: &str, prefix: &str) -> String {
    full.strip_prefix(prefix).unwrap_or(full).to_string()
}

/// A name inside a compartment or channel, used outside without its path.
fn deeper(scope: &Scope<'_>, prefix: &str, name: &str) -> Option<String> {
    let suffix = format!(".{name}");
    let found: Vec<&str> = visible(scope).filter(|full| full.ends_with(&suffix)).collect();
    // What a region has is read in it alone.
    let region = prefix.split_inclusive('.').next().filter(|_| scope.has_regions);
    let is_read = |full: &str| !scope.has_regions || region.is_some_and(|region| full.starts_with(region));
    let paths: Vec<String> = found.iter().filter(|full| is_read(full)).map(|n| short(n, prefix)).collect();
    if let (Some(other), []) = (found.first(), &paths[..]) {
        return Some(format!("`{other}` is read in its own region alone; what reads it stands there"));
    }
    match &paths[..] {
        [] => None,
        [one] => Some(format!("write its path: `{one}`")),
        some => {
            let list: Vec<String> = some.iter().take(4).map(|n| format!("`{n}`")).collect();
            Some(format!("write which one: {}", list.join(", ")))
        }
    }
}

/// What a name of other simulators, or one that exists elsewhere, is here.
fn called_elsewhere(scope: &Scope<'_>, name: &str, in_function: bool) -> Option<&'static str> {
    let has = |wanted: &str| !in_function && scope.get(wanted).is_some();
    let channel = scope.kind == ScopeKind::Channel;
    let lower = name.to_lowercase();
    Some(match name {
        "i" if channel => "a channel's current cannot be read inside the channel; `let` names a part of it",
        "V" | "Vm" | "vm" | "V_m" | "v_m" | "voltage" if has("v") => "the voltage is called `v`",
        "v_post" | "V_post" | "vpost" if channel => "the voltage of the cell behind a synapse is called `v`",
        "xi" => "white noise is called with brackets: `xi()`",
        "time" | "T" if !in_function => "the time is called `t`, the temperature `celsius`",
        "T" | "temperature" | "temp" | "degC" => "the temperature is called `celsius`",
        "below" | "downwards" | "above" | "upwards" => {
            "`crosses` looks upwards only; downwards is `spike when v < -50 mV { ... }`"
        }
        "dt" => "equations do not see the time step; `t` is the time",
        "dv" => "`dv` exists in a `junction` only",
        "index" => "`index`, a cell's number, exists in inputs and in `param` and `init` lines of a network",
        "distance" => {
            "`distance`, how far two cells are from each other, exists in `weight` and `delay` of `connect a -> b`; in regions of a cell with sections it is the way from the root"
        }
        "cai" | "cao" | "ca" if channel => {
            "a concentration is a pool of the compartment: add `reads Ca: mM` to the channel"
        }
        _ if has("erev") && ["ek", "ena", "eca", "eleak", "el"].contains(&lower.replace('_', "").as_str()) => {
            "the reversal potential of this channel is `erev`"
        }
        _ if has("gbar") && lower.starts_with('g') && lower.ends_with("bar") => {
            "the conductance of this channel is `gbar`"
        }
        _ => return None,
    })
}

/// The currents that a name such as `ica`, which is NEURON's, may mean in a cell.
fn current_of_channel(scope: &Scope<'_>, prefix: &str, name: &str) -> Option<String> {
    let ion = name.strip_prefix(['i', 'I']).filter(|ion| (1..=4).contains(&ion.len()))?.trim_start_matches('_');
    if !matches!(scope.kind, ScopeKind::Cell | ScopeKind::Spiking) {
        return None;
    }
    let currents = visible(scope).filter(|full| full.ends_with(".i")).map(|full| short(full, prefix));
    let currents: Vec<String> = currents.filter(|current| current.matches('.').count() == 1).collect();
    let of_ion = currents.iter().filter(|current| current.to_lowercase().starts_with(&ion.to_lowercase()));
    let of_ion: Vec<&String> = of_ion.collect();
    let is_ion = matches!(&*ion.to_lowercase(), "na" | "k" | "ca" | "cl" | "h" | "l" | "leak" | "pas");
    let meant: Vec<&String> = match (of_ion.is_empty(), is_ion) {
        (false, _) => of_ion,
        (true, true) => currents.iter().collect(),
        (true, false) => return None,
    };
    let list: Vec<String> = meant.into_iter().take(4).map(|current| format!("`{current}`")).collect();
    (!list.is_empty()).then(|| format!("the current of a channel has the channel's name: {}", list.join(", ")))
}

/// Says what an event calls its weight, where another name may mean it.
pub(super) fn means_weight(name: &str, weight: &str) -> Option<String> {
    matches!(name, "w" | "W" | "weights" | "wgt" | "weight").then(|| format!("the weight is called `{weight}` here"))
}

/// The same where the weight is among what an expression sees.
fn weight_called(name: &str, env: &Env) -> Option<String> {
    let weight = env.iter().find(|(_, value)| matches!(value, Some(Expr { kind: ExprKind::Weight, .. })))?.0;
    means_weight(name, weight)
}

/// A unit that is used as a name.
fn a_unit(name: &str) -> Option<String> {
    Unit::parse(name)?;
    Some(format!(
        "`{name}` is a unit; a unit stands directly behind a number: `1 {name}`, or `0.1 /{name}` with a space before the slash"
    ))
}

/// Which names can stand in a place, or how a new one is defined; `channel` is what a block like a channel is.
fn where_it_stands(kind: ScopeKind, channel: &str, name: &str, env: Option<&Env>) -> Option<String> {
    if let Some(env) = env {
        let is = |kind: &ExprKind| env.values().flatten().any(|value| value.kind == *kind);
        let sees = if is(&ExprKind::Dv) {
            "a junction sees `dv`, the voltage on its left less that on its right, and its own parameters: `g * dv`"
        } else if is(&ExprKind::Weight) {
            "an event sees its weight, and the parameters and states of the synapse"
        } else if is(&ExprKind::Beyond) {
            "a surrogate sees `x`, how far a cell is above its threshold, as a number, and constants"
        } else {
            "a function sees its own parameters, constants and `celsius` only; pass the value as a parameter"
        };
        return Some(sees.into());
    }
    if matches!(kind, ScopeKind::Network | ScopeKind::PerCell | ScopeKind::PerEdge(_) | ScopeKind::Input)
        && name.contains('.')
    {
        let sees = "a line of a network reads parameters of the network, not those of cells: \
                    give it a `param` of its own and use that in both lines";
        return Some(sees.into());
    }
    if name == "v_pre" && kind == ScopeKind::Channel {
        let sees =
            "the voltage before a synapse is known where something of it is summed: `sum g(weight: nS) = weight * s`";
        return Some(sees.into());
    }
    let block = match kind {
        ScopeKind::Constant | ScopeKind::Function | ScopeKind::Drawing | ScopeKind::Body => {
            return Some("only numbers, functions and constants can stand here".into());
        }
        ScopeKind::Channel => channel,
        ScopeKind::Cell | ScopeKind::Spiking => "cell",
        ScopeKind::Network | ScopeKind::PerCell | ScopeKind::PerEdge(_) | ScopeKind::Input => "network",
    };
    (!name.contains('.')).then(|| format!("define it in the {block}: `param {name} = ...`"))
}
