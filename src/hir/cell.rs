//! Cells: compartments with their channels and pools, couplings, point neurons, spike rules.

use super::channel::instantiate;
use super::lower::{Definition, ItemRef, Lowerer, finish};
use super::scope::{Entry, Role, Scope, ScopeKind, Status};
use super::{Cell, Compartment, Expr, PortKind, Spike, SpikeCondition, SymbolId, SymbolKind, Ty};
use crate::diag::{Code, Diagnostic, nearest};
use crate::source::Span;
use crate::syntax::ast::{self, AssignOp, BinaryOp, CellMember, CompartmentMember, SpikeAction};
use crate::units::Dim;

/// A compartment in the making.
struct Draft {
    name: String,
    v: Option<SymbolId>,
    port: Option<SymbolId>,
    area: Option<SymbolId>,
    cm: Option<SymbolId>,
    /// Outward currents.
    currents: Vec<SymbolId>,
    span: Span,
}

/// Equations of a pool, and the prefix of its compartment.
type PoolEquations<'a> = (Vec<&'a ast::Equation>, String);

impl<'a> Lowerer<'a> {
    /// Lowers a cell once; gives its index among all cells.
    pub(super) fn cell(&mut self, item: ItemRef<'a>, c: &'a ast::Cell) -> usize {
        if let Some(known) = self.cell_index(item) {
            return known;
        }
        let cell = self.cell_uncached(item, c);
        self.keep_cell(item, cell)
    }

    fn cell_uncached(&mut self, item: ItemRef<'a>, c: &'a ast::Cell) -> Definition<Cell> {
        let before = self.diagnostics.count();
        let mut scope = Scope::new(ScopeKind::Cell, item.file);
        let mut drafts: Vec<Draft> = Vec::new();
        let mut spikes = Vec::new();
        let mut couples = Vec::new();
        let mut equations = Vec::new();
        let mut pool_equations: Vec<PoolEquations<'a>> = Vec::new();
        let mut whole = true;
        let point = !c.members.iter().any(|m| matches!(m, CellMember::Compartment(_)));
        if point {
            let ty = Some(Ty::Real(Dim::CURRENT));
            scope.add(Entry::ready("i_syn".into(), c.name.span, Role::Port(PortKind::Outward), ty, None)).ok();
        }
        for member in &c.members {
            match member {
                CellMember::Param(p) => self.add_param(&mut scope, p, ""),
                CellMember::Let(l) => self.add_let(&mut scope, l, ""),
                CellMember::State(s) => self.add_state(&mut scope, s, ""),
                CellMember::Equation(e) => equations.push(e),
                CellMember::Port { name, unit } => {
                    if !self.check_reserved(name) && scope.get(&name.text).is_some() {
                        continue;
                    }
                    let unit = match unit {
                        Some(u) => self.unit(u).map(|x| (x.dim, Some(x.display(self.text(u.span).trim())))),
                        None => Some((Dim::ONE, None)),
                    };
                    let (ty, unit) = match unit {
                        Some((dim, unit)) => (Some(Ty::Real(dim)), unit),
                        None => (None, None),
                    };
                    let role = Role::Port(PortKind::Declared);
                    let mut entry = Entry::ready(name.text.clone(), name.span, role, ty, None);
                    entry.unit = unit;
                    self.add(&mut scope, name, entry);
                }
                CellMember::Compartment(k) => match self.add_compartment(&mut scope, k, &mut pool_equations) {
                    Some((draft, fine)) => {
                        whole &= fine;
                        drafts.push(draft);
                    }
                    None => whole = false,
                },
                CellMember::Couple { into, from, conductance, span } => couples.push((into, from, conductance, *span)),
                CellMember::Spike(s) => spikes.push(s),
            }
        }
        let equations = self.find_states(&mut scope, equations, "");
        let pool_equations: Vec<_> = pool_equations
            .into_iter()
            .map(|(own, prefix)| (self.find_states(&mut scope, own, &prefix), prefix))
            .collect();
        self.resolve_all(&mut scope);
        self.add_equations(&mut scope, equations, "");
        for (own, prefix) in pool_equations {
            self.add_equations(&mut scope, own, &prefix);
        }
        self.check_equations(&mut scope);
        for (into, from, conductance, span) in couples {
            self.couple(&mut scope, &mut drafts, into, from, conductance, span);
        }
        for draft in &drafts {
            self.voltage_equation(&mut scope, draft);
        }
        if let [_, second, ..] = spikes[..] {
            self.error(
                Diagnostic::new(Code::BadSpike, second.span, "a cell has one `spike` rule", "the second")
                    .see(spikes[0].span, "the first")
                    .help("join two conditions with `or`"),
            );
        }
        let spike = spikes.first().and_then(|s| self.spike(&mut scope, s));
        let nothing = self.diagnostics.since(before).iter().all(|d| !d.is_error());
        if point && nothing && !scope.entries.iter().any(|e| matches!(e.role, Role::State { .. })) {
            self.error(
                Diagnostic::new(
                    Code::MissingKey,
                    c.name.span,
                    format!("cell `{}` has neither a compartment nor a state", c.name.text),
                    "nothing would change in time",
                )
                .help("add `compartment soma { ... }`, or `state v: mV = -65 mV` and `v' = ...`"),
            );
            whole = false;
        }
        if self.is_main(item.file) {
            self.warn_unused(&scope, "cell", before);
        }
        let whole = whole && (spike.is_some() || spikes.is_empty());
        let compartments: Option<Vec<Compartment>> = drafts
            .iter()
            .map(|d| Some(Compartment { name: d.name.clone(), v: d.v?, port: d.port?, area: d.area }))
            .collect();
        let whole = whole && compartments.is_some();
        let (symbols, sound, unknown) = finish(scope);
        self.warn_magnitudes(&symbols);
        let cell = Cell {
            name: c.name.text.clone(),
            span: c.name.span,
            docs: c.docs.clone(),
            symbols,
            compartments: compartments.unwrap_or_default(),
            spike,
        };
        Definition { item: cell, sound: sound && whole, unknown }
    }

    fn add_compartment(
        &mut self,
        scope: &mut Scope<'a>,
        k: &'a ast::Compartment,
        equations: &mut Vec<PoolEquations<'a>>,
    ) -> Option<(Draft, bool)> {
        self.check_reserved(&k.name);
        let prefix = format!("{}.", k.name.text);
        if scope.not_values.contains_key(&k.name.text) || scope.get(&k.name.text).is_some() {
            let message = format!("`{}` is defined twice", k.name.text);
            let first = scope.get(&k.name.text).or_else(|| scope.get(&format!("{prefix}<input>")));
            let d = Diagnostic::new(Code::DuplicateName, k.name.span, message, "defined again");
            self.error(match first {
                Some(first) => d.see(scope.entry(first).span, "first defined here"),
                None => d,
            });
            return None;
        }
        scope.not_values.insert(k.name.text.clone(), "a compartment");
        let mut draft = Draft {
            name: k.name.text.clone(),
            v: None,
            port: None,
            area: None,
            cm: None,
            currents: vec![],
            span: k.name.span,
        };
        let mut fine = true;
        // Keys and pools first: channels refer to them.
        for member in &k.members {
            match member {
                CompartmentMember::Key(l) => {
                    let (role, dim, why, slot) = match l.name.text.as_str() {
                        "v_init" => (Role::State { gate: false }, Dim::VOLTAGE, "`v_init`", &mut draft.v),
                        "cm" => (Role::Param, Dim::SPECIFIC_CAPACITANCE, "`cm`", &mut draft.cm),
                        "area" => (Role::Param, Dim::AREA, "`area`", &mut draft.area),
                        _ => {
                            let keys = ["area", "cm", "v_init", "insert", "pool", "param", "let"];
                            self.unknown_key(&l.name, "a compartment", &keys);
                            fine = false;
                            continue;
                        }
                    };
                    let name = if l.name.text == "v_init" { "v" } else { l.name.text.as_str() };
                    let entry = Entry::pending(format!("{prefix}{name}"), l.name.span, role, &l.value, &prefix);
                    let entry = Entry { used: true, written: false, ..entry.want(dim, why) };
                    match scope.add(entry) {
                        Ok(id) => *slot = Some(id),
                        Err(first) => self.duplicate_key(&l.name, first),
                    }
                }
                CompartmentMember::Param(p) => self.add_param(scope, p, &prefix),
                CompartmentMember::Let(l) => self.add_let(scope, l, &prefix),
                CompartmentMember::Pool { name, unit, keys, equations: own, .. } => {
                    fine &= self.add_pool(scope, &prefix, name, unit.as_ref(), keys, own, equations);
                }
                CompartmentMember::Insert { .. } => {}
            }
        }
        let mut lacking = Vec::new();
        for (given, key, example) in
            [(draft.cm.is_some(), "cm", "cm = 1 uF/cm2"), (draft.v.is_some(), "v_init", "v_init = -65 mV")]
        {
            if given {
                continue;
            }
            if fine {
                self.error(
                    Diagnostic::new(
                        Code::MissingKey,
                        k.name.span,
                        format!("compartment `{}` lacks `{key}`", k.name.text),
                        "needed to integrate its voltage",
                    )
                    .help(format!("add `{example}`")),
                );
            }
            lacking.push(key);
        }
        // What is missing is still known to be a voltage and a capacitance.
        for key in lacking {
            fine = false;
            let (name, role, dim, slot) = match key {
                "cm" => ("cm", Role::Param, Dim::SPECIFIC_CAPACITANCE, &mut draft.cm),
                _ => ("v", Role::State { gate: false }, Dim::VOLTAGE, &mut draft.v),
            };
            let entry = Entry::ready(format!("{prefix}{name}"), k.name.span, role, Some(Ty::Real(dim)), None);
            *slot = scope.add(entry).ok();
        }
        let ty = Some(Ty::Real(Dim::CURRENT_DENSITY));
        let port = Entry::ready(format!("{prefix}<input>"), k.name.span, Role::Port(PortKind::Injected), ty, None);
        draft.port = scope.add(port).ok();
        for member in &k.members {
            if let CompartmentMember::Insert { channel, alias, args, span } = member {
                fine &= self.insert(scope, &mut draft, channel, alias.as_ref(), args, *span).is_some();
            }
        }
        Some((draft, fine))
    }

    #[allow(clippy::too_many_arguments)] // one per part of the syntax
    fn add_pool(
        &mut self,
        scope: &mut Scope<'a>,
        prefix: &str,
        name: &'a ast::Name,
        unit: Option<&'a ast::UnitExpr>,
        keys: &'a [ast::Let],
        own: &'a [ast::Equation],
        equations: &mut Vec<PoolEquations<'a>>,
    ) -> bool {
        if !self.check_reserved(name) {
            return false;
        }
        let mut init: Option<&ast::Let> = None;
        let mut fine = true;
        for key in keys {
            if key.name.text == "init" {
                match init {
                    Some(first) => self.duplicate_key(&key.name, first.name.span),
                    None => init = Some(key),
                }
            } else {
                self.unknown_key(&key.name, "a pool", &["init"]);
                fine = false;
            }
        }
        let full = format!("{prefix}{}", name.text);
        let role = Role::State { gate: false };
        let dim = unit.map(|u| (self.unit(u), u));
        let entry = match init {
            Some(init) => {
                let mut entry = Entry::pending(full, name.span, role, &init.value, prefix);
                match dim {
                    Some((Some(u), unit)) => {
                        entry = entry.want(u.dim, "the initial value of this pool");
                        entry.unit = Some(u.display(self.text(unit.span).trim()));
                    }
                    Some((None, _)) => entry.status = Status::Done,
                    None => {}
                }
                entry
            }
            None => {
                if fine {
                    let message = format!("pool `{}` has no initial value", name.text);
                    let example = unit.map_or("0.05".to_string(), |u| format!("0 {}", self.text(u.span).trim()));
                    self.error(
                        Diagnostic::new(Code::MissingInit, name.span, message, "there are no silent zeros")
                            .help(format!("add `init = {example}` to it")),
                    );
                }
                fine = false;
                let ty = dim.and_then(|d| d.0).map(|u| Ty::Real(u.dim));
                Entry { written: true, ..Entry::ready(full, name.span, role, ty, None) }
            }
        };
        self.add(scope, name, entry);
        equations.push((own.iter().collect(), prefix.to_string()));
        if !fine {
            return false;
        }
        true
    }

    fn insert(
        &mut self,
        scope: &mut Scope<'a>,
        draft: &mut Draft,
        name: &'a ast::Name,
        alias: Option<&'a ast::Name>,
        args: &'a [(ast::Name, ast::Expr)],
        span: Span,
    ) -> Option<()> {
        let own = alias.unwrap_or(name);
        let path = format!("{}.{}", draft.name, own.text);
        let Some(definition) = self.inserted_channel(scope.file, name) else {
            // Elsewhere the channel may be called as it should be called here.
            if alias.is_none()
                && let Some(meant) = self.channel_near(scope.file, &name.text)
                && !scope.not_values.contains_key(&format!("{}.{meant}", draft.name))
            {
                scope.poisoned.insert(format!("{}.{meant}", draft.name));
            }
            scope.poisoned.insert(path);
            return None;
        };
        let channel = &definition.item;
        if scope.not_values.contains_key(&path) || scope.get(&path).is_some() {
            let message = format!("`{path}` is defined twice");
            self.error(
                Diagnostic::new(Code::DuplicateName, own.span, message, "the compartment has this already")
                    .help(format!("give this one a name of its own: `insert {} as {}2`", name.text, own.text)),
            );
            return None;
        }
        scope.not_values.insert(path.clone(), "a channel");
        // The compartment's own quantities stand in for the channel's placeholders.
        let mut places: Vec<Option<SymbolId>> = Vec::new();
        for s in &channel.symbols {
            let place = match s.kind {
                SymbolKind::Voltage => draft.v,
                SymbolKind::Pool => {
                    let pool = scope.get(&format!("{}.{}", draft.name, s.name));
                    let pool = pool.filter(|id| matches!(scope.entry(*id).role, Role::State { .. }));
                    let Some(pool) = pool else {
                        scope.poisoned.insert(path.clone());
                        if scope.is_poisoned("", &format!("{}.{}", draft.name, s.name)) {
                            return None;
                        }
                        let unit = s.ty.dim().display_unit().name;
                        let unit = if s.ty.dim().is_one() { String::new() } else { format!(": {unit}") };
                        self.error(
                            Diagnostic::new(
                                Code::MissingPool,
                                span,
                                format!(
                                    "channel `{}` reads `{}`, which compartment `{}` lacks",
                                    name.text, s.name, draft.name
                                ),
                                format!("needs a pool `{}`", s.name),
                            )
                            .see(s.span, "read here")
                            .help(format!(
                                "add to the compartment: `pool {0}{unit} {{ init = ...; {0}' = ... }}`",
                                s.name
                            )),
                        );
                        return None;
                    };
                    if definition.is_unknown(&s.name) {
                        places.push(Some(pool));
                        continue;
                    }
                    let pool_ty = self.resolve(scope, pool, None)?;
                    scope.entry_mut(pool).used = true;
                    if pool_ty != s.ty {
                        let message = format!(
                            "channel `{}` reads `{}` as {}, but the pool is {}",
                            name.text,
                            s.name,
                            s.ty.dim().describe(),
                            pool_ty.dim().describe()
                        );
                        let at = scope.entry(pool).span;
                        let unit = |ty: Ty| ty.dim().display_unit().name;
                        let help = match s.ty.dim().is_one() {
                            true => format!("write `reads {}: {}` in the channel", s.name, unit(pool_ty)),
                            false => format!("write `pool {}: {} {{ ... }}`", s.name, unit(s.ty)),
                        };
                        self.error(
                            Diagnostic::new(Code::DimensionMismatch, span, message, "inserted here")
                                .see(at, format!("the pool: {}", pool_ty.dim().describe()))
                                .see(s.span, format!("the channel: {}", s.ty.dim().describe()))
                                .help(help),
                        );
                        scope.poisoned.insert(path);
                        return None;
                    }
                    Some(pool)
                }
                _ => None,
            };
            places.push(place);
        }
        let base = scope.entries.len();
        let mut entries =
            instantiate(channel, &format!("{path}."), |i| places[i], base, |name| definition.is_unknown(name));
        scope.poisoned.extend(definition.unknown.iter().map(|u| format!("{path}.{u}")));
        for (i, (arg, value)) in args.iter().enumerate() {
            if let Some((first, _)) = args[..i].iter().find(|a| a.0.text == arg.text) {
                self.duplicate_key(arg, first.span);
                continue;
            }
            let full = format!("{path}.{}", arg.text);
            let params: Vec<String> = channel
                .symbols
                .iter()
                .filter(|s| matches!(s.kind, SymbolKind::Param(_)))
                .map(|s| s.name.clone())
                .collect();
            let entry = entries.iter_mut().find(|e| e.name == full && e.role == Role::Param);
            let Some(entry) = entry else {
                if definition.is_unknown(&arg.text) {
                    continue;
                }
                let message = format!("channel `{}` has no parameter `{}`", name.text, arg.text);
                let mut d = Diagnostic::new(Code::UnknownParameter, arg.span, message, "no such parameter");
                d = match nearest(&arg.text, params.iter().map(String::as_str)) {
                    Some(near) => d.help(format!("did you mean `{near}`?")),
                    None if params.is_empty() => d.note("it has none"),
                    None => d.note(format!("it has {}", params.join(", "))),
                };
                self.error(d);
                continue;
            };
            // Of a parameter that is wrong in the channel nothing is known.
            let Some(ty) = entry.ty else { continue };
            let dim = ty.dim();
            let docs = std::mem::take(&mut entry.docs);
            let unit = entry.unit.clone();
            *entry = Entry::pending(full, arg.span, Role::Param, value, &format!("{}.", draft.name))
                .want(
                    dim,
                    match arg.text.as_str() {
                        "gbar" => "`gbar`",
                        "erev" => "`erev`",
                        _ => "this parameter",
                    },
                )
                .docs(&docs);
            entry.unit = unit;
            entry.written = false;
        }
        for entry in entries {
            // Names are unique: the instance's is.
            scope.add(entry).ok();
        }
        draft.currents.push(scope.get(&format!("{path}.i"))?);
        Some(())
    }

    fn couple(
        &mut self,
        scope: &mut Scope<'a>,
        drafts: &mut [Draft],
        into: &'a ast::Name,
        from: &'a ast::Name,
        conductance: &'a ast::Expr,
        span: Span,
    ) -> Option<()> {
        let names: Vec<String> = drafts.iter().map(|d| d.name.clone()).collect();
        let mut find = |name: &ast::Name| {
            let at = names.iter().position(|n| *n == name.text);
            if at.is_none() {
                let message = format!("the cell has no compartment `{}`", name.text);
                let mut d = Diagnostic::new(Code::BadCoupling, name.span, message, "no such compartment");
                if let Some(near) = nearest(&name.text, names.iter().map(String::as_str)) {
                    d = d.help(format!("did you mean `{near}`?"));
                } else if names.is_empty() {
                    d = d.note("it has none");
                } else {
                    d = d.note(format!("it has {}", names.join(", ")));
                }
                self.error(d);
            }
            at
        };
        let (a, b) = (find(into), find(from));
        let (a, b) = (a?, b?);
        if a == b {
            let message = format!("`{}` is coupled to itself", into.text);
            let other = names.iter().find(|n| **n != into.text).map_or("dend", String::as_str);
            let d = Diagnostic::new(Code::BadCoupling, span, message, "two compartments are needed");
            self.error(d.help(format!(
                "for example `couple {} <- {other}: {}`",
                into.text,
                self.text(conductance.span)
            )));
            return None;
        }
        let g = self.expr_of(scope, "", conductance, Dim::CONDUCTANCE_DENSITY, "the conductance of a coupling")?;
        let (va, vb) = (drafts[a].v?, drafts[b].v?);
        let volt = |id| Expr::symbol(id, Ty::Real(Dim::VOLTAGE), span);
        let difference = Expr::binary(BinaryOp::Sub, volt(va), volt(vb));
        let current = Expr::binary(BinaryOp::Mul, g, difference);
        let name = format!("{}.i_{}", into.text, from.text);
        let entry = Entry::ready(name, span, Role::Let, Some(Ty::Real(Dim::CURRENT_DENSITY)), Some(current));
        match scope.add(entry) {
            Ok(id) => drafts[a].currents.push(id),
            Err(first) => {
                let message = format!("`{}` is coupled to `{}` twice", into.text, from.text);
                let d = Diagnostic::new(Code::BadCoupling, span, message, "again").see(first, "first");
                self.error(d.help(format!("the other direction is `couple {} <- {}: g`", from.text, into.text)));
            }
        }
        Some(())
    }

    /// cm v' = injected - sum of outward currents.
    fn voltage_equation(&mut self, scope: &mut Scope<'a>, draft: &Draft) -> Option<()> {
        let span = draft.span;
        let (v, cm) = (draft.v?, draft.cm?);
        let mut total = Expr::symbol(draft.port?, Ty::Real(Dim::CURRENT_DENSITY), span);
        for &id in &draft.currents {
            let entry = scope.entry(id);
            let mut i = Expr::symbol(id, entry.ty?, span);
            if i.ty == Ty::Real(Dim::CURRENT) {
                let Some(area) = draft.area else {
                    let at = entry.span;
                    self.error(
                        Diagnostic::new(
                            Code::MissingKey,
                            span,
                            format!("compartment `{}` lacks `area`", draft.name),
                            "needed to turn a current into a current density",
                        )
                        .see(at, "this is a current, not a density")
                        .help("add `area = 1000 um2`"),
                    );
                    return None;
                };
                i = Expr::binary(BinaryOp::Div, i, Expr::symbol(area, Ty::Real(Dim::AREA), span));
            }
            total = Expr::binary(BinaryOp::Sub, total, i);
        }
        let cm = Expr::symbol(cm, Ty::Real(Dim::SPECIFIC_CAPACITANCE), span);
        scope.entry_mut(v).rate = Some(Expr::binary(BinaryOp::Div, total, cm));
        Some(())
    }

    fn spike(&mut self, scope: &mut Scope<'a>, s: &'a ast::Spike) -> Option<Spike> {
        let condition = self.spike_condition(scope, s);
        let mut resets: Vec<(SymbolId, Expr)> = Vec::new();
        let mut refractory = None;
        let mut seen_refractory = false;
        let mut fine = true;
        for action in &s.actions {
            match action {
                SpikeAction::Refractory(e) => {
                    if seen_refractory {
                        let message = "`refractory` is given twice";
                        self.error(Diagnostic::new(Code::DuplicateKey, e.span, message, "given again"));
                    }
                    seen_refractory = true;
                    refractory = self.expr_of(scope, "", e, Dim::TIME, "`refractory`");
                    fine &= refractory.is_some();
                }
                SpikeAction::Assign { name, op, value } => {
                    let id = scope.get(&name.text).filter(|id| matches!(scope.entry(*id).role, Role::State { .. }));
                    let Some(id) = id else {
                        let states: Vec<&str> = scope
                            .entries
                            .iter()
                            .filter(|e| matches!(e.role, Role::State { .. }))
                            .map(|e| e.name.as_str())
                            .collect();
                        let message = format!("a spike cannot set `{}`: it is not a state", name.text);
                        let mut d = Diagnostic::new(Code::BadSpike, name.span, message, "not a state of this cell");
                        if scope.is_poisoned("", &name.text) {
                            fine = false;
                            continue;
                        }
                        let other = scope.get(&name.text).map(|id| scope.entry(id).role);
                        let compartments = scope.not_values.values().any(|w| *w == "a compartment");
                        if matches!(other, Some(Role::Param)) {
                            let rate = match scope.get(&name.text).and_then(|id| scope.entry(id).ty) {
                                Some(Ty::Real(dim)) => dim.over(Dim::TIME).display_unit().name,
                                _ => "/ms".to_string(),
                            };
                            let state = format!("`state {0} = ...` with `{0}' = 0 {rate}`", name.text);
                            d = d.help(format!("make it a state: {state}"));
                        } else if name.text == "v" && compartments {
                            d = d.help("only point neurons are reset; a compartment repolarizes by its channels");
                        } else if let Some(near) = nearest(&name.text, states.iter().copied()) {
                            d = d.help(format!("did you mean `{near}`?"));
                        } else if !states.is_empty() {
                            d = d.note(format!("its states are {}", states.join(", ")));
                        }
                        self.error(d);
                        fine = false;
                        continue;
                    };
                    let Some(ty) = self.resolve(scope, id, None) else {
                        fine = false;
                        continue;
                    };
                    if resets.iter().any(|r| r.0 == id) {
                        let message = format!("`{}` is set twice", name.text);
                        self.error(Diagnostic::new(Code::DuplicateKey, name.span, message, "set again"));
                        fine = false;
                    }
                    let why = format!("the new value of `{}`", name.text);
                    let Some(x) = self.expr_of(scope, "", value, ty.dim(), &why) else {
                        fine = false;
                        continue;
                    };
                    let old = Expr::symbol(id, ty, name.span);
                    let x = match op {
                        AssignOp::Set => x,
                        AssignOp::Add => Expr::binary(BinaryOp::Add, old, x),
                        AssignOp::Sub => Expr::binary(BinaryOp::Sub, old, x),
                    };
                    resets.push((id, x));
                }
            }
        }
        let condition = condition?;
        if let (SpikeCondition::When(_), true) = (&condition, s.actions.is_empty()) {
            self.error(
                Diagnostic::new(
                    Code::BadSpike,
                    s.span,
                    "this condition would make a spike in every step in which it holds",
                    "nothing resets it",
                )
                .help("write `x crosses level` to count upward crossings, or add a reset `{ v = ... }`"),
            );
            return None;
        }
        fine.then_some(Spike { condition, resets, refractory, span: s.span })
    }
    fn spike_condition(&mut self, scope: &mut Scope<'a>, s: &'a ast::Spike) -> Option<SpikeCondition> {
        match &s.condition {
            ast::SpikeCondition::Crosses(a, b) => {
                let (a, b) = (self.expr(scope, "", a), self.expr(scope, "", b));
                let (a, b) = (a?, b?);
                if a.ty == Ty::Bool {
                    let message = "`crosses` compares two quantities, not conditions";
                    let d = Diagnostic::new(Code::WrongType, a.span, message, "a condition");
                    self.error(d.help("write `spike when condition { v = ... }`"));
                    return None;
                }
                let level = self.expect(scope, b, a.ty.dim(), "the level that is crossed")?;
                Some(SpikeCondition::Crosses(a, level))
            }
            ast::SpikeCondition::When(e) => {
                let e = self.expr(scope, "", e)?;
                if e.ty != Ty::Bool {
                    self.error(
                        Diagnostic::new(
                            Code::WrongType,
                            e.span,
                            "`spike when` needs a condition",
                            e.ty.dim().describe(),
                        )
                        .help("for example `spike when v > -50 mV` or `spike when soma.v crosses 0 mV`"),
                    );
                    return None;
                }
                Some(SpikeCondition::When(e))
            }
        }
    }
}
