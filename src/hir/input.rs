//! Inputs and clamps: what drives a compartment, a port or a point neuron, and what holds a state.
//!
//! In come `input` and `clamp` lines of a network; out go their values and what they drive or hold, one input or clamp per place.
//! Never true here: an input changes a state by itself.

use super::builtins::{self, FunctionKind};
use super::calls::stands_in;
use super::error::{KineticsError, MorphologyError, NetworkError};
use super::items::ItemKind;
use super::lower::{Definition, Lowerer};
use super::network::NetworkDraft;
use super::place::flatten;
use super::projection::reads;
use super::scope::{Entry, Role, Scope, ScopeKind};
use super::{
    Cell, Clamp, Domain, Expr, ExprKind, Input, Population, PortKind, SpikeCondition, StateKind, SymbolId, SymbolKind,
    Ty,
};
use crate::source::Span;
use crate::syntax::ast::{self, Name};
use crate::units::Dim;
use std::collections::HashSet;
use std::rc::Rc;

/// What the resistance of an electrode is called, behind the name of the clamp.
const RESISTANCE: &str = "resistance";

/// What a line of a network does where it leads to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Leads {
    /// It drives.
    Input,
    /// It holds a state.
    Clamp,
    /// It drives a voltage to what it should be, through a resistance.
    Electrode,
}

/// A place that an input drives, or a clamp holds.
struct Led {
    definition: Rc<Definition<Cell>>,
    population: usize,
    cells: Option<(Expr, Expr)>,
    /// The port, or the state.
    symbol: SymbolId,
    /// In a cell with sections, the element of the tree.
    at: Option<usize>,
    value: Expr,
}

impl<'a> Lowerer<'a> {
    /// `input step: pulse(delay = ...)` gives the parameters step.delay, step.duration and step.amplitude. The answer is where something of the same name is,
    /// if something is.
    pub(super) fn add_stimulus_params(
        &mut self,
        scope: &mut Scope<'a>,
        name: &'a Name,
        value: &'a ast::Expr,
        electrode: Option<&'a ast::Expr>,
    ) -> Option<Span> {
        self.check_reserved(name);
        let mut taken = None;
        if let Some(resistance) = electrode {
            let full = format!("{}.{RESISTANCE}", name.text);
            let entry = Entry::pending(full, resistance.span, Role::Param, resistance, "");
            let entry = entry.want(Dim::RESISTANCE, "the resistance of an electrode");
            taken = scope.add(Entry { written: false, ..entry }).err();
        }
        let ast::ExprKind::Call(function, args) = &value.kind else { return taken };
        let info = builtins::function(&function.text).filter(|info| matches!(info.kind, FunctionKind::Stimulus(_)));
        let Some(info) = info else { return taken };
        let (mut position, mut said) = (0, Vec::new());
        for arg in args {
            let param = match &arg.name {
                Some(n) => info.params.iter().find(|p| **p == n.text),
                None => {
                    position += 1;
                    info.params.get(position - 1)
                }
            };
            let Some(param) = param.filter(|_| !self.differs((0, false), &arg.value, &mut HashSet::new())) else {
                continue;
            };
            // That an argument is there twice is told where the call is read.
            if said.contains(&param) {
                continue;
            }
            said.push(param);
            let full = format!("{}.{param}", name.text);
            let entry = Entry::pending(full, arg.value.span, Role::Param, &arg.value, "");
            taken = taken.or(scope.add(Entry { written: false, ..entry }).err());
        }
        taken
    }

    /// `input step: value -> cells.soma`.
    pub(super) fn input(
        &mut self,
        draft: &mut NetworkDraft<'a>,
        name: &'a Name,
        value: &'a ast::Expr,
        target: &'a ast::Path,
        span: Span,
    ) {
        for to in self.led_to(draft, name, value, target, Leads::Input) {
            let Some(area) = self.input_area(&draft.scope, &to.definition, to.symbol, name, &to.value) else { return };
            self.current_not_read(&to, name, target.span);
            let Led { population, cells, symbol: port, at, value, .. } = to;
            let (name, electrode) = (name.text.clone(), false);
            draft.inputs.push(Input { name, population, cells, port, at, value, area, electrode, span });
        }
    }

    /// Warns of an input that is the current of a point neuron that does not read it.
    fn current_not_read(&mut self, to: &Led, input: &Name, span: Span) {
        let Definition { item: cell, sound, .. } = &*to.definition;
        let spike = cell.spike.iter().flat_map(|spike| {
            let condition = match &spike.condition {
                SpikeCondition::Crosses(a, b) => vec![a, b],
                SpikeCondition::When(x) => vec![x],
            };
            condition.into_iter().chain(spike.resets.iter().map(|(_, x)| x))
        });
        let mut read = reads(cell, to.symbol);
        spike.for_each(|x| x.visit(&mut |e| read |= e.kind == ExprKind::Symbol(to.symbol)));
        if *sound && !read && cell.symbol(to.symbol).kind == SymbolKind::Port(PortKind::Outward) {
            self.error(NetworkError::CurrentNotRead { input, cell: &cell.name, span });
        }
    }

    /// `clamp hold: value via 5 Mohm -> cells.soma(0.5)`: what flows through the resistance between the value and the voltage.
    pub(super) fn electrode(
        &mut self,
        draft: &mut NetworkDraft<'a>,
        name: &'a Name,
        value: &'a ast::Expr,
        target: &'a ast::Path,
        span: Span,
    ) {
        for to in self.led_to(draft, name, value, target, Leads::Electrode) {
            let cell = &to.definition.item;
            let compartment = cell.compartments.iter().find(|c| c.port == to.symbol);
            let morphology = cell.morphology.as_ref();
            let Some(v) = compartment.map(|c| c.v).or(morphology.map(|m| m.v)) else {
                self.error(NetworkError::NoVoltage { clamp: name, span: target.span });
                return;
            };
            let Some(value) = self.expect(&draft.scope, to.value, Dim::VOLTAGE, "what an electrode is held at") else {
                return;
            };
            let scope = &mut draft.scope;
            let Some(id) = scope.get(&format!("{}.{RESISTANCE}", name.text)) else { return };
            scope.entry_mut(id).used = true;
            let ty = Ty::Real(Dim::RESISTANCE);
            let resistance = Expr { kind: ExprKind::NetworkParam(id), ty, span: scope.entry(id).span };
            if scope.entry(id).value.is_none() {
                return;
            }
            let what = format!("{}.{RESISTANCE}", name.text);
            self.demand(what, resistance.clone(), Domain::AboveZero, "a resistance is above zero");
            draft.demand_of(std::mem::take(&mut self.demands), to.population);
            let v = Expr::symbol(v, Ty::Real(Dim::VOLTAGE), value.span);
            let current = Expr::binary(ast::BinaryOp::Div, Expr::binary(ast::BinaryOp::Sub, value, v), resistance);
            let Some(area) = self.input_area(&draft.scope, &to.definition, to.symbol, name, &current) else { return };
            let Led { population, cells, symbol: port, at, .. } = to;
            let (name, electrode) = (name.text.clone(), true);
            draft.inputs.push(Input { name, population, cells, port, at, value: current, area, electrode, span });
        }
    }

    /// `clamp hold: value -> cells.soma`: holds a voltage, or another state.
    pub(super) fn clamp(
        &mut self,
        draft: &mut NetworkDraft<'a>,
        name: &'a Name,
        value: &'a ast::Expr,
        target: &'a ast::Path,
        span: Span,
    ) {
        for to in self.led_to(draft, name, value, target, Leads::Clamp) {
            let held = to.definition.item.symbol(to.symbol);
            if matches!(to.value.ty, Ty::Real(Dim::CURRENT | Dim::CURRENT_DENSITY)) && held.ty == Ty::Real(Dim::VOLTAGE)
            {
                self.error(NetworkError::ClampOfCurrent {
                    clamp: name,
                    value: self.text(to.value.span),
                    span: to.value.span,
                });
                return;
            }
            let why = format!("what `{}` is held at", held.name);
            let Some(value) = self.expect(&draft.scope, to.value, held.ty.dim(), &why) else { return };
            let Led { population, cells, symbol: state, .. } = to;
            let same = |c: &&Clamp| c.population == population && c.state == state && c.cells == cells;
            if let Some(first) = draft.clamps.iter().find(same) {
                let target = format!("{}.{}", draft.populations[population].name, held.name);
                self.error(NetworkError::ClampedTwice { target: &target, again: span, first: first.span });
                return;
            }
            if let SymbolKind::State { scheme: Some(_), .. } = held.kind {
                self.error(KineticsError::Held { name: &held.name, span: target.span });
                return;
            }
            if let SymbolKind::State { kind: StateKind::Gate, .. } = held.kind {
                let what = format!("{}` of `{}", held.name, name.text);
                self.demand(what, value.clone(), Domain::Fraction, "a gate is the fraction of open gates");
                draft.demand_of(std::mem::take(&mut self.demands), population);
            }
            draft.clamps.push(Clamp { name: name.text.clone(), population, cells, state, value, span });
        }
    }

    /// Where an input (or a clamp) leads to, each place with its value; what leads nowhere has been said.
    fn led_to(
        &mut self,
        draft: &mut NetworkDraft<'a>,
        name: &'a Name,
        value: &'a ast::Expr,
        target: &'a ast::Path,
        leads: Leads,
    ) -> Vec<Led> {
        let mut found = Vec::new();
        if let Some(first) = draft.input_names.iter().find(|first| first.text == name.text) {
            self.duplicate(name, first.span);
            return found;
        }
        draft.input_names.push(name);
        for flat in flatten(target) {
            let Some(place) = self.place_within(&mut draft.scope, &draft.populations, &flat) else { break };
            let population = &draft.populations[place.population];
            let definition = self.lowered_cell(population.cell);
            let cell = &definition.item;
            // Of what is no cell nothing is known.
            if definition.is_unknown(&cell.name) {
                continue;
            }
            if let Some(morphology) = &cell.morphology {
                let what = if leads == Leads::Input { "an input" } else { "a clamp" };
                let Some(at) = self.driven_place(&definition, morphology, &place, what, &flat) else { continue };
                if let (Leads::Clamp, Some(located)) = (leads, flat.at) {
                    self.error(MorphologyError::NoElectrode { clamp: &name.text, span: located.span });
                    continue;
                }
                self.start_streams(&stream(population, cell, &name.text));
                let Some(value) = self.input_value(&mut draft.scope, name, value) else { break };
                draft.demand_of(std::mem::take(&mut self.demands), place.population);
                let (population, cells, symbol) = (place.population, place.cells, morphology.port);
                found.push(Led { definition: definition.clone(), population, cells, symbol, at: Some(at), value });
                continue;
            }
            if let Some(located) = flat.at {
                self.no_sections(&definition, located.span);
                continue;
            }
            let symbol = match leads {
                Leads::Clamp => held(cell, &place.rest),
                Leads::Input | Leads::Electrode => port(cell, &place.rest),
            };
            let Some(symbol) = symbol else {
                if !definition.is_unknown(&place.rest) {
                    self.error(match leads {
                        Leads::Clamp | Leads::Electrode => {
                            NetworkError::NotClamped { clamp: name, cell, place: &place }
                        }
                        Leads::Input => NetworkError::NotDriven { input: name, cell, place: &place },
                    });
                }
                continue;
            };
            if definition.is_unknown(&cell.symbol(symbol).name) {
                continue;
            }
            self.start_streams(&stream(population, cell, &name.text));
            let Some(value) = self.input_value(&mut draft.scope, name, value) else { break };
            draft.demand_of(std::mem::take(&mut self.demands), place.population);
            found.push(Led { definition, population: place.population, cells: place.cells, symbol, at: None, value });
        }
        found
    }

    /// Does an argument differ from cell to cell, or in time? `seen` are the functions that have been looked into.
    fn differs(&self, (file, in_function): (usize, bool), e: &ast::Expr, seen: &mut HashSet<(usize, usize)>) -> bool {
        let here = (file, in_function);
        match &e.kind {
            ast::ExprKind::Number { .. } | ast::ExprKind::Bool(_) | ast::ExprKind::Str(_) | ast::ExprKind::At(..) => {
                false
            }
            // In a function it is a name like others.
            ast::ExprKind::Path(path) => !in_function && matches!(&path[..], [n] if n.text == "index" || n.text == "t"),
            ast::ExprKind::Unary(_, a) => self.differs(here, a, seen),
            ast::ExprKind::Binary(_, a, b) => [a, b].into_iter().any(|e| self.differs(here, e, seen)),
            ast::ExprKind::If(c, a, b) => [c, a, b].into_iter().any(|e| self.differs(here, e, seen)),
            ast::ExprKind::Call(name, args) => {
                if args.iter().any(|a| self.differs(here, &a.value, seen)) {
                    return true;
                }
                let Some(item) = self.item(file, &name.text) else {
                    // What cannot stand in a parameter of the network.
                    return builtins::function(&name.text).is_some_and(|f| !stands_in(f.kind, ScopeKind::Network));
                };
                let ItemKind::Function(function) = item.kind else { return false };
                seen.insert((item.file, item.index)) && self.differs((item.file, true), &function.body, seen)
            }
        }
    }

    fn input_value(&mut self, scope: &mut Scope<'a>, name: &Name, value: &'a ast::Expr) -> Option<Expr> {
        let before = self.demands.len();
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
            for (param, arg) in info.params.iter().zip(&mut *args) {
                if let Some(read) = reads(scope, param, arg) {
                    *arg = read;
                }
            }
            // What was demanded of the numbers in the file is demanded of the parameters that they are.
            let of_function = format!("` of `{}", info.name);
            let own = self.demands.split_off(before);
            self.demands.extend(own.into_iter().filter(|demand| !demand.what.ends_with(&of_function)));
            self.demand_arguments(info.name, info.params, args);
        }
        Some(x)
    }

    /// The area that a current is divided by where its density drives a compartment, if that is so; `None` if the input
    /// does not fit its port.
    fn input_area(
        &mut self,
        scope: &Scope<'a>,
        definition: &Definition<Cell>,
        port: SymbolId,
        name: &Name,
        value: &Expr,
    ) -> Option<Option<SymbolId>> {
        let compartment = definition.item.compartments.iter().find(|c| c.port == port);
        if let Some(compartment) = compartment
            && value.ty == Ty::Real(Dim::CURRENT)
        {
            if compartment.area.is_none() && definition.sound {
                let span = self.blame(value).span;
                self.error(NetworkError::NoArea { compartment: &compartment.name, span });
            }
            return compartment.area.map(Some);
        }
        if let Some(morphology) = &definition.item.morphology
            && value.ty == Ty::Real(Dim::CURRENT)
        {
            return Some(Some(morphology.area));
        }
        let dim = definition.item.symbol(port).ty.dim();
        self.expect(scope, value.clone(), dim, &format!("input `{}`", name.text)).map(|_| None)
    }
}

/// The name of the random numbers of an input. What a line of the network sets by the same name has numbers of its own, and so have the places of cells.
fn stream(population: &Population, cell: &Cell, input: &str) -> String {
    let own = if cell.find(input).is_some() || ["x", "y", "z"].contains(&input) { "'input" } else { "" };
    format!("{}.{input}{own}", population.name)
}

/// What an input drives that leads to a population, or to something of its cells.
fn port(cell: &Cell, rest: &str) -> Option<SymbolId> {
    match (rest, &cell.compartments[..]) {
        ("", []) => cell.find("i_syn"),
        ("", [only]) => Some(only.port),
        ("", _) => None,
        (name, all) => all
            .iter()
            .find(|c| c.name == name)
            .map(|c| c.port)
            .or_else(|| cell.find(name).filter(|id| matches!(cell.symbol(*id).kind, SymbolKind::Port(_)))),
    }
}

/// What a clamp holds that leads to a population, or to something of its cells.
fn held(cell: &Cell, rest: &str) -> Option<SymbolId> {
    let compartment = match (rest, &cell.compartments[..]) {
        ("", [only]) => Some(only),
        ("", _) => None,
        (name, all) => all.iter().find(|c| c.name == name),
    };
    let state = |id: &SymbolId| matches!(cell.symbol(*id).kind, SymbolKind::State { .. });
    compartment.map(|c| c.v).or_else(|| cell.find(rest).filter(state))
}
