//! pest's pairs to the syntax tree.
//!
//! In come the pairs of a text that follows the grammar; out go items of the tree, and the few mistakes that a
//! grammar of this kind cannot express (chained comparisons, numbers that do not fit, trees that are too tall).
//! Never true here: a name is looked up.

use super::ast::*;
use super::grammar::{Grammar, Rule, TokenKind, tokens};
use crate::diag::{Code, Diagnostic};
use crate::source::{FileId, Span};
use pest::Parser;
use pest::iterators::{Pair, Pairs};
use std::collections::HashMap;

/// The tallest expression tree that later phases, which recurse, have to cope with.
pub const MAX_HEIGHT: usize = 500;

/// Builds the tree of one parsed text.
pub struct Builder<'a> {
    /// The file that spans shall name.
    pub file: FileId,
    /// Where the parsed text begins in the file.
    pub base: usize,
    /// `///` lines by the byte (in the file) of the token behind them.
    pub docs: &'a HashMap<usize, Vec<String>>,
    /// What was found wrong.
    pub mistakes: Vec<Diagnostic>,
}

/// The children of a pair without keywords and punctuation.
struct Parts<'t>(Pairs<'t, Rule>);

impl<'t> Parts<'t> {
    fn of(pair: Pair<'t, Rule>) -> Parts<'t> {
        Parts(pair.into_inner())
    }

    fn peek(&mut self) -> Option<Pair<'t, Rule>> {
        while let Some(pair) = self.0.peek() {
            if !is_token(pair.as_rule()) {
                return Some(pair);
            }
            self.0.next();
        }
        None
    }

    /// The next part, if there is one.
    fn maybe(&mut self) -> Option<Pair<'t, Rule>> {
        let pair = self.peek();
        self.0.next();
        pair
    }

    /// The next part if it is of this rule.
    fn only(&mut self, rule: Rule) -> Option<Pair<'t, Rule>> {
        let pair = self.peek().filter(|p| p.as_rule() == rule);
        if pair.is_some() {
            self.0.next();
        }
        pair
    }

    /// The next part, which the grammar promises.
    fn part(&mut self) -> Pair<'t, Rule> {
        self.maybe().expect("the grammar has a part here")
    }
}

impl<'t> Iterator for Parts<'t> {
    type Item = Pair<'t, Rule>;

    fn next(&mut self) -> Option<Pair<'t, Rule>> {
        self.maybe()
    }
}

/// Keywords and punctuation: they shape the tree, but are not in it.
fn is_token(rule: Rule) -> bool {
    matches!(super::words::of(rule), super::words::Words::Token(_))
}

fn inner(pair: Pair<'_, Rule>) -> Pair<'_, Rule> {
    pair.into_inner().next().expect("the grammar has one alternative here")
}

fn has(pair: &Pair<'_, Rule>, rule: Rule) -> bool {
    pair.clone().into_inner().any(|p| p.as_rule() == rule)
}

fn is_right(op: BinaryOp) -> bool {
    op == BinaryOp::Pow
}

/// How tightly an operator binds; `not` stands between `and` and the comparisons.
fn strength(op: BinaryOp) -> u8 {
    match op {
        BinaryOp::Or => 1,
        BinaryOp::And => 2,
        BinaryOp::Lt | BinaryOp::Le | BinaryOp::Gt | BinaryOp::Ge | BinaryOp::Eq | BinaryOp::Ne => COMPARISON,
        BinaryOp::Add | BinaryOp::Sub => 5,
        BinaryOp::Mul | BinaryOp::Div => 6,
        BinaryOp::Pow => POWER,
    }
}

const NOT: u8 = 3;
const COMPARISON: u8 = 4;
const POWER: u8 = 8;

/// An operation as the grammar matches it: a flat list.
enum Piece<'t> {
    Not(Span),
    Neg(Span),
    Infix(BinaryOp, Span),
    Operand(Pair<'t, Rule>),
}

/// An expression with the height of its tree.
type Tall = (Expr, usize);

impl Builder<'_> {
    /// The place of a pair, without the blanks and comments that a rule may have taken in behind its last token.
    fn span(&self, pair: &Pair<'_, Rule>) -> Span {
        let span = pair.as_span();
        let mut end = span.end();
        let mut last = pair.clone().into_inner().next_back();
        while let Some(inner) = last {
            end = inner.as_span().end();
            last = inner.into_inner().next_back();
        }
        Span::new(self.file, self.base + span.start(), self.base + end)
    }

    fn name(&self, pair: Pair<'_, Rule>) -> Name {
        Name { text: pair.as_str().to_owned(), span: self.span(&pair) }
    }

    fn docs(&self, pair: &Pair<'_, Rule>) -> Vec<String> {
        self.docs.get(&(self.base + pair.as_span().start())).cloned().unwrap_or_default()
    }

    // ------------------------------------------------------------------------------------------ items

    /// An `item`.
    pub fn item(&mut self, pair: Pair<'_, Rule>) -> Item {
        let pair = inner(pair);
        let docs = self.docs(&pair);
        let span = self.span(&pair);
        let rule = pair.as_rule();
        let mut parts = Parts::of(pair);
        match rule {
            Rule::use_item => {
                let mut path = Vec::new();
                let mut names = Vec::new();
                for part in parts {
                    if part.as_rule() == Rule::use_names {
                        names = Parts::of(part).map(|p| self.name(p)).collect();
                    } else {
                        path.push(self.name(part));
                    }
                }
                Item::Use(Use { path, names, span })
            }
            Rule::const_item => {
                Item::Const(Const { docs, name: self.name(parts.part()), value: self.expr(parts.part()) })
            }
            Rule::function => {
                let name = self.name(parts.part());
                let mut params = Vec::new();
                while let Some(param) = parts.only(Rule::function_param) {
                    let mut param = Parts::of(param);
                    params.push((self.name(param.part()), param.maybe().map(|u| self.unit_note(u))));
                }
                let unit = parts.only(Rule::unit_note).map(|u| self.unit_note(u));
                Item::Function(Function { docs, name, params, unit, body: self.expr(parts.part()) })
            }
            Rule::channel => {
                let name = self.name(parts.part());
                Item::Channel(Channel { docs, name, members: parts.map(|p| self.channel_member(p)).collect(), span })
            }
            Rule::cell => {
                let name = self.name(parts.part());
                Item::Cell(Cell { docs, name, members: parts.map(|p| self.cell_member(p)).collect(), span })
            }
            Rule::junction => {
                let name = self.name(parts.part());
                let (mut params, mut lets, mut currents) = (Vec::new(), Vec::new(), Vec::new());
                for member in parts.map(inner) {
                    match member.as_rule() {
                        Rule::param => params.push(self.param(member)),
                        Rule::let_value => lets.push(self.named_value(member)),
                        _ => currents.push(self.named_value(member)),
                    }
                }
                Item::Junction(Junction { docs, name, params, lets, currents, span })
            }
            Rule::synapse => {
                let name = self.name(parts.part());
                Item::Synapse(Synapse { docs, name, members: parts.map(|p| self.synapse_member(p)).collect(), span })
            }
            Rule::network => {
                let name = self.name(parts.part());
                Item::Network(Network { docs, name, members: parts.map(|p| self.network_member(p)).collect(), span })
            }
            Rule::run => Item::Run(Run { members: parts.map(|p| self.run_member(p)).collect(), span }),
            Rule::fit => Item::Fit(Fit { members: parts.map(|p| self.fit_member(p)).collect(), span }),
            Rule::train => Item::Train(Train { members: parts.map(|p| self.train_member(p)).collect(), span }),
            other => unreachable!("{other:?} is not an item"),
        }
    }

    fn param(&mut self, pair: Pair<'_, Rule>) -> Param {
        let docs = self.docs(&pair);
        let mut parts = Parts::of(pair);
        let name = self.name(parts.part());
        let unit = parts.only(Rule::unit_note).map(|u| self.unit_note(u));
        Param { docs, name, unit, value: self.expr(parts.part()) }
    }

    /// `let x = e`, `current i = e`, `key = e`, `v' = e`.
    fn named_value(&mut self, pair: Pair<'_, Rule>) -> Let {
        let mut parts = Parts::of(pair);
        Let { name: self.name(parts.part()), value: self.expr(parts.part()) }
    }

    fn equation(&mut self, pair: Pair<'_, Rule>) -> Equation {
        let Let { name, value } = self.named_value(pair);
        Equation { name, value }
    }

    fn state(&mut self, pair: Pair<'_, Rule>) -> State {
        let span = self.span(&pair);
        let mut parts = Parts::of(pair);
        let name = self.name(parts.part());
        let unit = parts.only(Rule::unit_note).map(|u| self.unit_note(u));
        State { name, unit, init: parts.maybe().map(|e| self.expr(e)), span }
    }

    fn overrides(&mut self, pair: Option<Pair<'_, Rule>>) -> Vec<(Name, Expr)> {
        let keys = pair.into_iter().flat_map(Parts::of);
        keys.map(|key| self.named_value(key)).map(|Let { name, value }| (name, value)).collect()
    }

    // ------------------------------------------------------------------------------------------ channels

    fn channel_member(&mut self, pair: Pair<'_, Rule>) -> ChannelMember {
        let pair = inner(pair);
        match pair.as_rule() {
            Rule::param => ChannelMember::Param(self.param(pair)),
            Rule::let_value => ChannelMember::Let(self.named_value(pair)),
            Rule::reads => {
                let mut parts = Parts::of(pair);
                let name = self.name(parts.part());
                ChannelMember::Reads(Reads { name, unit: parts.maybe().map(|u| self.unit_note(u)) })
            }
            Rule::gate => ChannelMember::Gate(self.gate(pair)),
            Rule::kinetics => {
                let span = self.span(&pair);
                let members = Parts::of(pair).map(|p| self.kinetics_member(p)).collect();
                ChannelMember::Kinetics(Kinetics { members, span })
            }
            Rule::state => ChannelMember::State(self.state(pair)),
            Rule::current => ChannelMember::Current(self.named_value(pair)),
            Rule::equation => ChannelMember::Equation(self.equation(pair)),
            other => unreachable!("{other:?} is not a member of a channel"),
        }
    }

    fn gate(&mut self, pair: Pair<'_, Rule>) -> Gate {
        let span = self.span(&pair);
        let instantaneous =
            pair.clone().into_inner().find(|p| p.as_rule() == Rule::kw_instantaneous).map(|p| self.span(&p));
        let mut parts = Parts::of(pair);
        let name = self.name(parts.part());
        let power = parts.only(Rule::gate_power).map(|p| {
            let span = self.span(&p);
            match p.as_str().parse::<u32>() {
                Ok(power) => (power, span),
                Err(_) => {
                    self.mistakes.push(Diagnostic::new(
                        Code::Syntax,
                        span,
                        "this power is too large",
                        "does not fit 32 bits",
                    ));
                    (1, span)
                }
            }
        });
        Gate { name, power, instantaneous, members: parts.map(|p| self.gate_member(p)).collect(), span }
    }

    fn gate_member(&mut self, pair: Pair<'_, Rule>) -> GateMember {
        let pair = inner(pair);
        let span = self.span(&pair);
        match pair.as_rule() {
            Rule::q10 => {
                let mut parts = Parts::of(pair);
                let value = self.expr(parts.part());
                GateMember::Q10 { value, at: parts.maybe().map(|e| self.expr(e)), span }
            }
            Rule::fraction => {
                let mut parts = Parts::of(pair);
                let weight = self.expr(parts.part());
                GateMember::Fraction { weight, members: parts.map(|p| self.gate_member(p)).collect(), span }
            }
            Rule::key => GateMember::Key(self.named_value(pair)),
            other => unreachable!("{other:?} is not a member of a gate"),
        }
    }

    fn kinetics_member(&mut self, pair: Pair<'_, Rule>) -> KineticsMember {
        let pair = inner(pair);
        let span = self.span(&pair);
        match pair.as_rule() {
            Rule::reaction => {
                let both = has(&pair, Rule::both_arrow);
                let mut parts = Parts::of(pair);
                let (from, to) = (self.name(parts.part()), self.name(parts.part()));
                KineticsMember::Reaction { from, to, both, rates: parts.map(|p| self.expr(p)).collect(), span }
            }
            Rule::conserve => {
                let mut parts = Parts::of(pair);
                let mut states = Vec::new();
                while let Some(name) = parts.only(Rule::name) {
                    states.push(self.name(name));
                }
                KineticsMember::Conserve { states, sum: self.expr(parts.part()), span }
            }
            Rule::start => KineticsMember::Init(self.named_value(pair)),
            Rule::q10 => {
                let mut parts = Parts::of(pair);
                let value = self.expr(parts.part());
                KineticsMember::Q10 { value, at: parts.maybe().map(|e| self.expr(e)), span }
            }
            other => unreachable!("{other:?} is not a member of a `kinetics` block"),
        }
    }

    // ------------------------------------------------------------------------------------------ synapses

    fn synapse_member(&mut self, pair: Pair<'_, Rule>) -> SynapseMember {
        let pair = inner(pair);
        match pair.as_rule() {
            Rule::param => SynapseMember::Param(self.param(pair)),
            Rule::let_value => SynapseMember::Let(self.named_value(pair)),
            Rule::state => SynapseMember::State(self.state(pair)),
            Rule::current => SynapseMember::Current(self.named_value(pair)),
            Rule::equation => SynapseMember::Equation(self.equation(pair)),
            Rule::on_event => {
                let span = self.span(&pair);
                let of = match () {
                    () if has(&pair, Rule::kw_post) => EventOf::Post,
                    () if has(&pair, Rule::kw_modulator) => EventOf::Modulator,
                    () => EventOf::Pre,
                };
                let mut parts = Parts::of(pair);
                let (weight, amount) = (self.carried(&mut parts), self.carried(&mut parts));
                let actions = parts.map(|action| self.assign(inner(action))).collect();
                SynapseMember::Event(OnEvent { of, weight, amount, actions, span })
            }
            Rule::sum => {
                let span = self.span(&pair);
                let mut parts = Parts::of(pair);
                let (name, weight) = (self.name(parts.part()), self.carried(&mut parts));
                SynapseMember::Sum(Sum { name, weight, value: self.expr(parts.part()), span })
            }
            other => unreachable!("{other:?} is not a member of a synapse"),
        }
    }

    /// A name in brackets with its unit, such as `weight: nS`, if there is one.
    fn carried(&mut self, parts: &mut Parts<'_>) -> Option<(Name, Option<UnitExpr>)> {
        let mut carried = Parts::of(parts.only(Rule::function_param)?);
        Some((self.name(carried.part()), carried.maybe().map(|u| self.unit_note(u))))
    }

    // ------------------------------------------------------------------------------------------ cells

    fn cell_member(&mut self, pair: Pair<'_, Rule>) -> CellMember {
        let pair = inner(pair);
        let span = self.span(&pair);
        match pair.as_rule() {
            Rule::param => CellMember::Param(self.param(pair)),
            Rule::let_value => CellMember::Let(self.named_value(pair)),
            Rule::state => CellMember::State(self.state(pair)),
            Rule::equation => CellMember::Equation(self.equation(pair)),
            Rule::port => {
                let mut parts = Parts::of(pair);
                let name = self.name(parts.part());
                CellMember::Port { name, unit: parts.maybe().map(|u| self.unit_note(u)) }
            }
            Rule::compartment => {
                let mut parts = Parts::of(pair);
                let name = self.name(parts.part());
                let mut members = Vec::new();
                for member in parts {
                    self.compartment_member(member, &mut members);
                }
                CellMember::Compartment(Compartment { name, members, span })
            }
            Rule::morphology => CellMember::Morphology { value: self.expr(Parts::of(pair).part()), span },
            Rule::section => {
                let mut parts = Parts::of(pair);
                let name = self.name(parts.part());
                let members = parts.map(|member| self.section_member(member)).collect();
                CellMember::Section(Section { name, members, span })
            }
            Rule::compartments => {
                let keys = Parts::of(pair).map(|member| self.named_value(inner(member))).collect();
                CellMember::Compartments { keys, span }
            }
            Rule::region => {
                let mut parts = Parts::of(pair);
                let mut sections = Vec::new();
                while let Some(name) = parts.only(Rule::section_name) {
                    sections.push(self.section_name(name));
                }
                let mut members = Vec::new();
                for member in parts {
                    self.compartment_member(member, &mut members);
                }
                CellMember::Region(Region { sections, members, span })
            }
            Rule::couple => {
                let mut parts = Parts::of(pair);
                let (into, from) = (self.name(parts.part()), self.name(parts.part()));
                CellMember::Couple { into, from, conductance: self.expr(parts.part()), span }
            }
            Rule::spike => {
                let crosses = has(&pair, Rule::kw_crosses);
                let mut parts = Parts::of(pair);
                let first = self.expr(parts.part());
                let condition = if crosses {
                    SpikeCondition::Crosses(first, self.expr(parts.part()))
                } else {
                    SpikeCondition::When(first)
                };
                CellMember::Spike(Spike { condition, actions: parts.map(|p| self.spike_action(p)).collect(), span })
            }
            other => unreachable!("{other:?} is not a member of a cell"),
        }
    }

    fn section_member(&mut self, pair: Pair<'_, Rule>) -> SectionMember {
        let pair = inner(pair);
        let rule = pair.as_rule();
        let span = self.span(&pair);
        let mut parts = Parts::of(pair);
        if rule == Rule::attach {
            let name = self.section_name(parts.part());
            return SectionMember::From(self.located(name, parts.part(), span));
        }
        if rule == Rule::toward {
            return SectionMember::Toward(self.point(parts.part()));
        }
        let name = self.name(parts.part());
        let value = self.expr(parts.part());
        SectionMember::Key { name, value, end: parts.maybe().map(|end| self.expr(end)) }
    }

    /// `(x, y, z)`.
    fn point(&mut self, pair: Pair<'_, Rule>) -> Point {
        let span = self.span(&pair);
        let mut parts = Parts::of(pair);
        Point { axes: [0, 1, 2].map(|_| self.expr(parts.part())), span }
    }

    fn probe_member(&mut self, pair: Pair<'_, Rule>) -> ProbeMember {
        let pair = inner(pair);
        let rule = pair.as_rule();
        if rule == Rule::key {
            return ProbeMember::Key(self.named_value(pair));
        }
        let mut parts = Parts::of(pair);
        match rule {
            Rule::contact => ProbeMember::Contact(Box::new(self.point(parts.part()))),
            Rule::contacts => {
                let ends = Box::new([0, 1].map(|_| self.point(parts.part())));
                ProbeMember::Contacts { ends, count: self.name(parts.part()) }
            }
            other => unreachable!("{other:?} is not a member of a probe"),
        }
    }

    /// `dend` or `dend[3]`.
    fn section_name(&mut self, pair: Pair<'_, Rule>) -> Name {
        let mut parts = Parts::of(pair);
        let name = self.name(parts.part());
        match parts.maybe() {
            Some(index) => self.indexed(name, index),
            None => name,
        }
    }

    /// A name with the `[3]` behind it.
    fn indexed(&mut self, name: Name, index: Pair<'_, Rule>) -> Name {
        let span = name.span.to(self.span(&index));
        Name { text: format!("{}[{}]", name.text, Parts::of(index).part().as_str()), span }
    }

    /// A name with the `(x)` behind it.
    fn located(&mut self, section: Name, location: Pair<'_, Rule>, span: Span) -> Located {
        let at = self.expr(Parts::of(location).part());
        Located { span: section.span.to(span), section, at: Box::new(at) }
    }

    fn compartment_member(&mut self, pair: Pair<'_, Rule>, members: &mut Vec<CompartmentMember>) {
        let pair = inner(pair);
        let span = self.span(&pair);
        match pair.as_rule() {
            Rule::param => members.push(CompartmentMember::Param(self.param(pair))),
            Rule::let_value => members.push(CompartmentMember::Let(self.named_value(pair))),
            Rule::key => members.push(CompartmentMember::Key(self.named_value(pair))),
            Rule::insert => {
                for insertion in Parts::of(pair) {
                    let span = self.span(&insertion);
                    let mut parts = Parts::of(insertion);
                    let channel = self.name(parts.part());
                    let alias = parts.only(Rule::name).map(|n| self.name(n));
                    members.push(CompartmentMember::Insert {
                        channel,
                        alias,
                        args: self.overrides(parts.maybe()),
                        span,
                    });
                }
            }
            Rule::pool => {
                let mut parts = Parts::of(pair);
                let name = self.name(parts.part());
                let unit = parts.only(Rule::unit_note).map(|u| self.unit_note(u));
                let (mut keys, mut equations) = (Vec::new(), Vec::new());
                for member in parts.map(inner) {
                    match member.as_rule() {
                        Rule::equation => equations.push(self.equation(member)),
                        _ => keys.push(self.named_value(member)),
                    }
                }
                members.push(CompartmentMember::Pool { name, unit, keys, equations, span });
            }
            other => unreachable!("{other:?} is not a member of a compartment"),
        }
    }

    fn spike_action(&mut self, pair: Pair<'_, Rule>) -> SpikeAction {
        let pair = inner(pair);
        let rule = pair.as_rule();
        if rule == Rule::refractory {
            let mut parts = Parts::of(pair);
            let time = self.expr(parts.part());
            let holds = parts.next().map(|held| Parts::of(held).map(|name| self.name(name)).collect());
            return SpikeAction::Refractory { time, holds };
        }
        SpikeAction::Assign(self.assign(pair))
    }

    fn assign(&mut self, pair: Pair<'_, Rule>) -> Assign {
        let mut parts = Parts::of(pair);
        let name = self.name(parts.part());
        let op = match inner(parts.part()).as_rule() {
            Rule::plus_eq => AssignOp::Add,
            Rule::minus_eq => AssignOp::Sub,
            _ => AssignOp::Set,
        };
        Assign { name, op, value: self.expr(parts.part()) }
    }

    // ------------------------------------------------------------------------------------------ networks and runs

    fn network_member(&mut self, pair: Pair<'_, Rule>) -> NetworkMember {
        let pair = inner(pair);
        let span = self.span(&pair);
        let random = has(&pair, Rule::tilde);
        let directed = has(&pair, Rule::to_arrow);
        let rule = pair.as_rule();
        if rule == Rule::param {
            return NetworkMember::Param(self.param(pair));
        }
        let mut parts = Parts::of(pair);
        match rule {
            Rule::set_param | Rule::set_init => {
                let target = self.path(parts.part());
                NetworkMember::Set {
                    init: rule == Rule::set_init,
                    target,
                    random,
                    value: self.expr(parts.part()),
                    span,
                }
            }
            Rule::population => {
                let (name, cell) = (self.name(parts.part()), self.name(parts.part()));
                let sizes: Vec<Expr> =
                    parts.only(Rule::sizes).into_iter().flat_map(Parts::of).map(|e| self.expr(e)).collect();
                if let Some(fourth) = sizes.get(3) {
                    let diagnostic = Diagnostic::new(
                        Code::Syntax,
                        fourth.span,
                        "a population has at most three sizes",
                        "this is a fourth size",
                    );
                    self.mistakes.push(
                        diagnostic.help("a population is a line, a rectangle or a box of cells: `Olive[10, 10, 10]`"),
                    );
                }
                let keys = parts.map(|k| self.connect_key(k)).collect();
                NetworkMember::Population { name, cell, sizes, keys, span }
            }
            Rule::drive_input | Rule::voltage_clamp => {
                let name = self.name(parts.part());
                let value = self.expr(parts.part());
                let clamp = rule == Rule::voltage_clamp;
                let mut next = parts.part();
                let mut electrode = None;
                if next.as_rule() == Rule::electrode {
                    electrode = Some(self.expr(Parts::of(next).part()));
                    next = parts.part();
                }
                NetworkMember::Input { clamp, name, value, electrode, target: self.path(next), span }
            }
            Rule::connect => {
                let (from, to) = (self.path(parts.part()), self.path(parts.part()));
                let via = self.through(&mut parts);
                let keys = parts.map(|k| self.connect_key(k)).collect();
                NetworkMember::Connect { from, to, directed, via, keys, span }
            }
            Rule::drive => {
                let target = self.path(parts.part());
                let via = self.through(&mut parts);
                let from = self.expr(parts.part());
                let keys = parts.map(|k| self.connect_key(k)).collect();
                NetworkMember::Drive { target, via, from, keys, span }
            }
            Rule::probe => {
                let (name, of) = (self.name(parts.part()), self.path(parts.part()));
                NetworkMember::Probe(Probe { name, of, members: parts.map(|p| self.probe_member(p)).collect(), span })
            }
            other => unreachable!("{other:?} is not a member of a network"),
        }
    }

    /// `via Ampa as fast(tau = 2 ms)`, `modulating Stdp`.
    fn through(&mut self, parts: &mut Parts<'_>) -> Through {
        if let Some(modulating) = parts.only(Rule::modulating) {
            let model = self.name(Parts::of(modulating).part());
            return Through { modulating: true, model, alias: None, args: Vec::new() };
        }
        let model = self.name(parts.part());
        let alias = parts.only(Rule::name).map(|n| self.name(n));
        let args = parts.only(Rule::overrides);
        Through { modulating: false, model, alias, args: self.overrides(args) }
    }

    fn connect_key(&mut self, pair: Pair<'_, Rule>) -> ConnectKey {
        let random = has(&pair, Rule::tilde);
        let Let { name, value } = self.named_value(pair);
        ConnectKey { name, random, value }
    }

    fn run_member(&mut self, pair: Pair<'_, Rule>) -> RunMember {
        let pair = inner(pair);
        let span = self.span(&pair);
        let rule = pair.as_rule();
        if rule == Rule::run_key {
            return RunMember::Key(self.named_value(pair));
        }
        if rule == Rule::sweep {
            return RunMember::Sweep(self.sweep(pair));
        }
        let mut parts = Parts::of(pair);
        let target = self.path(parts.part());
        match rule {
            Rule::record => {
                let [mut every, mut from, mut to] = [None, None, None];
                let mut around = None;
                for part in parts {
                    let place = self.span(&part);
                    let (slot, word) = match part.as_rule() {
                        Rule::record_every => (&mut every, "every"),
                        Rule::record_from => (&mut from, "from"),
                        Rule::record_to => (&mut to, "to"),
                        _ => {
                            let given = Box::new(self.around(part));
                            if around.replace(given).is_some() {
                                self.twice("around", place);
                            }
                            continue;
                        }
                    };
                    let value = self.expr(Parts::of(part).part());
                    if slot.is_some() {
                        self.twice(word, value.span);
                    }
                    *slot = Some(value);
                }
                RunMember::Record { target, every, from, to, around, span }
            }
            _ => RunMember::RecordSpikes { target, span },
        }
    }

    /// `sweep Na.gbar = 80 .. 160 mS/cm2 in 41 steps`.
    fn sweep(&mut self, pair: Pair<'_, Rule>) -> Sweep {
        let span = self.span(&pair);
        let (mut swept, mut count) = (Vec::new(), None);
        for part in Parts::of(pair) {
            if part.as_rule() != Rule::sweep_count {
                swept.push(self.swept(part));
                continue;
            }
            let [log, random, samples] =
                [Rule::kw_log, Rule::kw_random, Rule::kw_samples].map(|which| has(&part, which));
            let span = self.span(&part);
            let digits = Parts::of(part).part().as_str().to_owned();
            count = Some(SweepCount { count: digits, log, random, samples, span });
        }
        Sweep { swept, count, span }
    }

    fn swept(&mut self, pair: Pair<'_, Rule>) -> Swept {
        let mut parts = Parts::of(pair);
        let (path, name) = self.named_path(parts.part());
        let values = parts.part();
        let list = values.as_rule() == Rule::swept_list;
        let mut numbers = Vec::new();
        let mut unit = None;
        for part in Parts::of(values) {
            if part.as_rule() == Rule::swept_unit {
                unit = Some((part.as_str().trim().to_owned(), self.span(&part)));
                continue;
            }
            numbers.push(self.swept_number(part));
        }
        // The unit behind a list is that of its last number.
        if let (Some(last), Some((unit, span))) = (numbers.last_mut(), unit) {
            if let Some(own) = &last.unit {
                let d = Diagnostic::new(Code::Syntax, span, "these numbers have units of their own", "a second unit");
                self.mistakes.push(d.help(format!("leave it out, or write `{}` without `{own}`", last.number)));
            }
            last.unit = Some(unit);
        }
        let values = match (list, numbers.len()) {
            (false, 2) => SweptValues::Range(numbers.remove(0), numbers.remove(0)),
            _ => SweptValues::List(numbers),
        };
        Swept { name, path, values }
    }

    fn swept_number(&mut self, pair: Pair<'_, Rule>) -> SweptNumber {
        let (span, negative) = (self.span(&pair), has(&pair, Rule::neg));
        let mut number = Parts::of(Parts::of(pair).part());
        let sign = if negative { "-" } else { "" };
        let text = format!("{sign}{}", number.part().as_str());
        let unit = number.maybe().map(|unit| unit.as_str().trim().to_owned());
        SweptNumber { number: text, unit, span }
    }

    /// A path, and its text without blanks and comments.
    fn named_path(&mut self, path: Pair<'_, Rule>) -> (Path, Name) {
        let tokens = tokens(path.as_str()).into_iter().filter(|token| token.kind != TokenKind::Comment);
        let name = Name { text: tokens.map(|token| token.text).collect(), span: self.span(&path) };
        (self.path(path), name)
    }

    /// `around spikes of squid[0] from -2 ms to 5 ms`.
    fn around(&mut self, pair: Pair<'_, Rule>) -> Around {
        let span = self.span(&pair);
        let mut parts = Parts::of(pair);
        let of = self.path(parts.part());
        let [mut from, mut to] = [None, None];
        for part in parts {
            let (slot, word) = if part.as_rule() == Rule::record_from { (&mut from, "from") } else { (&mut to, "to") };
            let place = self.span(&part);
            if slot.replace(self.expr(Parts::of(part).part())).is_some() {
                self.twice(word, place);
            }
        }
        Around { of, from, to, span }
    }

    fn twice(&mut self, word: &str, span: Span) {
        let message = format!("`{word}` is given twice");
        self.mistakes.push(Diagnostic::new(Code::Syntax, span, message, "given again"));
    }

    fn train_member(&mut self, pair: Pair<'_, Rule>) -> TrainMember {
        let pair = inner(pair);
        let span = self.span(&pair);
        match pair.as_rule() {
            Rule::learn => {
                let mut parts = Parts::of(pair);
                let target = self.path(parts.part());
                let range = parts.maybe().map(|range| self.swept_ends(range));
                TrainMember::Learn { target, range, span }
            }
            Rule::keep => {
                let mut parts = Parts::of(pair);
                let mut feature = Parts::of(parts.part());
                let readout = self.name(feature.part());
                let of = self.named_path(feature.part());
                let range = self.swept_ends(parts.part());
                let within = self.swept_number(Parts::of(parts.part()).part());
                TrainMember::Keep { readout, of, range, within, span }
            }
            _ => TrainMember::Key(self.named_value(pair)),
        }
    }

    /// The ends of a range.
    fn swept_ends(&mut self, range: Pair<'_, Rule>) -> (SweptNumber, SweptNumber) {
        let mut ends = Parts::of(range);
        (self.swept_number(ends.part()), self.swept_number(ends.part()))
    }

    fn fit_member(&mut self, pair: Pair<'_, Rule>) -> FitMember {
        let pair = inner(pair);
        let span = self.span(&pair);
        match pair.as_rule() {
            Rule::free => FitMember::Free(Parts::of(pair).map(|p| self.swept(p)).collect()),
            Rule::target => {
                let mut parts = Parts::of(pair);
                let (feature, path) = match parts.only(Rule::feature) {
                    Some(feature) => {
                        let mut parts = Parts::of(feature);
                        (Some(self.name(parts.part())), parts.part())
                    }
                    None => (None, parts.part()),
                };
                let of = self.named_path(path);
                let to = self.expr(parts.part());
                let [mut within, mut from, mut until] = [None, None, None];
                for part in parts {
                    let place = self.span(&part);
                    let (slot, word) = match part.as_rule() {
                        Rule::record_from => (&mut from, "from"),
                        Rule::record_to => (&mut until, "to"),
                        _ => (&mut within, "within"),
                    };
                    if slot.replace(self.expr(Parts::of(part).part())).is_some() {
                        self.twice(word, place);
                    }
                }
                FitMember::Target { feature, of, to, within, window: Box::new([from, until]), span }
            }
            _ => FitMember::Key(self.named_value(pair)),
        }
    }

    fn path(&mut self, pair: Pair<'_, Rule>) -> Path {
        let span = self.span(&pair);
        Path { segments: Parts::of(pair).map(|p| self.segment(inner(p))).collect(), span }
    }

    fn segment(&mut self, pair: Pair<'_, Rule>) -> Segment {
        let span = self.span(&pair);
        let rule = pair.as_rule();
        let mut parts = Parts::of(pair);
        if rule == Rule::group {
            return Segment::Group(parts.map(|p| self.path(p)).collect(), span);
        }
        let name = self.name(parts.part());
        if let Some(location) = parts.only(Rule::location) {
            return Segment::Located(self.located(name, location, span));
        }
        let selection = parts.only(Rule::selection).map(|selection| {
            let span = self.span(&selection);
            let mut parts = Parts::of(selection);
            Selection { first: self.expr(parts.part()), end: parts.maybe().map(|e| self.expr(e)), span }
        });
        if let (Some(selection), Some(location)) = (&selection, parts.maybe()) {
            let section = self.selected_section(&name, selection);
            return Segment::Located(self.located(section, location, span));
        }
        Segment::Name(name, selection)
    }

    /// The section `dend[3]` before a place.
    fn selected_section(&mut self, name: &Name, selection: &Selection) -> Name {
        let span = name.span.to(selection.span);
        let index = match (&selection.first.kind, &selection.end) {
            (ExprKind::Number { text, unit: None }, None) if text.bytes().all(|b| b.is_ascii_digit()) => text.as_str(),
            _ => {
                let message = format!("a place is in one section, such as `{}[0](0.5)`", name.text);
                self.mistakes.push(Diagnostic::new(Code::Syntax, selection.span, message, "no number of a section"));
                "0"
            }
        };
        Name { text: format!("{}[{index}]", name.text), span }
    }

    // ------------------------------------------------------------------------------------------ expressions

    /// An `expr`.
    pub fn expr(&mut self, pair: Pair<'_, Rule>) -> Expr {
        self.tall_expr(pair).0
    }

    /// `soma(0.5).v`, which may have names before it.
    fn quantity_at(
        &mut self,
        before: Vec<Name>,
        section: Name,
        mut args: Vec<Arg>,
        behind: Vec<Name>,
        span: Span,
    ) -> Expr {
        let at = match args.pop() {
            Some(Arg { name: None, value }) if args.is_empty() => value,
            _ => {
                let message = format!("a place in `{}` is one number from 0 to 1", section.text);
                let d = Diagnostic::new(Code::Syntax, span, message, "a place in a section");
                self.mistakes.push(d.help(format!("its middle is `{}(0.5)`", section.text)));
                let unit = None;
                Expr { kind: ExprKind::Number { text: "0".into(), unit }, span }
            }
        };
        let place = Located { span: section.span.to(at.span), section, at: Box::new(at) };
        Expr { kind: ExprKind::At(before, Box::new(place), behind), span }
    }

    /// What follows the name of a section of other cells: `[0](0.5).v`.
    fn at_place(&mut self, before: Vec<Name>, section: Name, pair: Pair<'_, Rule>, span: Span) -> Tall {
        let mut parts = Parts::of(pair);
        let section = match parts.only(Rule::section_index) {
            Some(index) => self.indexed(section, index),
            None => section,
        };
        let (args, height) = self.arguments(parts.part());
        let behind: Vec<Name> = parts.map(|p| self.name(p)).collect();
        (self.quantity_at(before, section, args, behind, span), height)
    }

    /// Arguments, and the height of the tallest.
    fn arguments(&mut self, pair: Pair<'_, Rule>) -> (Vec<Arg>, usize) {
        let (mut args, mut height) = (Vec::new(), 0);
        for argument in Parts::of(pair) {
            let mut argument = Parts::of(argument);
            let name = argument.only(Rule::name).map(|n| self.name(n));
            let (value, argument_height) = self.tall_expr(argument.part());
            height = height.max(argument_height);
            args.push(Arg { name, value });
        }
        (args, height)
    }

    fn too_tall(&mut self, span: Span) -> Tall {
        let diagnostic = Diagnostic::new(
            Code::TooDeep,
            span,
            format!("this expression has more than {MAX_HEIGHT} operations on top of each other"),
            "",
        );
        if self.mistakes.iter().all(|d| d.code != Code::TooDeep) {
            self.mistakes.push(diagnostic.help("name parts of it with `let` and use the names"));
        }
        (Expr { kind: ExprKind::Bool(false), span }, 1)
    }

    fn tall_expr(&mut self, pair: Pair<'_, Rule>) -> Tall {
        let span = self.span(&pair);
        let pair = inner(pair);
        if pair.as_rule() == Rule::conditional {
            let mut parts = Parts::of(pair);
            let (condition, h1) = self.tall_expr(parts.part());
            let (yes, h2) = self.tall_expr(parts.part());
            let (no, h3) = self.tall_expr(parts.part());
            let kind = ExprKind::If(Box::new(condition), Box::new(yes), Box::new(no));
            return self.limited(Expr { kind, span }, h1.max(h2).max(h3) + 1);
        }
        let mut pieces = Vec::new();
        for piece in pair.into_inner() {
            let span = self.span(&piece);
            pieces.push(match piece.as_rule() {
                Rule::kw_not => Piece::Not(span),
                Rule::neg => Piece::Neg(span),
                Rule::infix => Piece::Infix(infix(inner(piece).as_rule()), span),
                _ => Piece::Operand(piece),
            });
        }
        if pieces.iter().filter(|p| !matches!(p, Piece::Operand(_))).count() > MAX_HEIGHT {
            return self.too_tall(span);
        }
        pieces.reverse();
        self.climb(&mut pieces, 0)
    }

    fn limited(&mut self, expr: Expr, height: usize) -> Tall {
        if height > MAX_HEIGHT { self.too_tall(expr.span) } else { (expr, height) }
    }

    /// Precedence climbing: takes from the end of `pieces` what binds at least as tightly as `least`.
    fn climb(&mut self, pieces: &mut Vec<Piece<'_>>, least: u8) -> Tall {
        let (mut left, mut height) = self.prefixed(pieces, least);
        let mut compared = false;
        while let Some(&Piece::Infix(op, op_span)) = pieces.last() {
            let strength = strength(op);
            if strength < least {
                break;
            }
            pieces.pop();
            let (right, right_height) = self.climb(pieces, if is_right(op) { strength } else { strength + 1 });
            if strength == COMPARISON {
                if compared {
                    self.mistakes.push(
                        Diagnostic::new(Code::Syntax, op_span, "comparisons do not chain", "a second comparison")
                            .help("join two comparisons: `a < b and b < c`"),
                    );
                }
                compared = true;
            }
            let span = left.span.to(right.span);
            let kind = ExprKind::Binary(op, Box::new(left), Box::new(right));
            (left, height) = self.limited(Expr { kind, span }, height.max(right_height) + 1);
        }
        (left, height)
    }

    fn prefixed(&mut self, pieces: &mut Vec<Piece<'_>>, least: u8) -> Tall {
        let (op, op_span, operand_strength) = match pieces.pop().expect("the grammar has an operand here") {
            Piece::Operand(operand) => return self.operand(inner(operand)),
            Piece::Neg(span) => (UnaryOp::Neg, span, POWER),
            Piece::Not(span) => {
                if least > NOT {
                    self.mistakes.push(
                        Diagnostic::new(Code::Syntax, span, "`not` binds more loosely than the operator before it", "")
                            .help("put it in parentheses: `(not x)`"),
                    );
                }
                (UnaryOp::Not, span, NOT)
            }
            Piece::Infix(..) => unreachable!("the grammar has an operand between two operators"),
        };
        let (operand, height) = self.climb(pieces, operand_strength);
        let span = op_span.to(operand.span);
        self.limited(Expr { kind: ExprKind::Unary(op, Box::new(operand)), span }, height + 1)
    }

    fn operand(&mut self, pair: Pair<'_, Rule>) -> Tall {
        let span = self.span(&pair);
        let kind = match pair.as_rule() {
            Rule::number => {
                let mut parts = Parts::of(pair);
                let text = parts.part().as_str().to_owned();
                ExprKind::Number { text, unit: parts.maybe().map(|u| self.unit(u)) }
            }
            Rule::string => {
                let text = pair.as_str();
                ExprKind::Str(text[1..text.len() - 1].to_owned())
            }
            Rule::truth => ExprKind::Bool(pair.as_str() == "true"),
            Rule::parenthesized => {
                // The parentheses belong to the place of the expression, so that messages underline them.
                let (mut expr, height) = self.tall_expr(Parts::of(pair).part());
                expr.span = span;
                return (expr, height);
            }
            Rule::reference => {
                let mut parts = Parts::of(pair);
                let name = self.name(parts.part());
                let index = parts.only(Rule::section_index);
                let is_place = index.is_some();
                let name = match index {
                    Some(index) => self.indexed(name, index),
                    None => name,
                };
                if let Some(arguments) = parts.only(Rule::arguments) {
                    let (args, height) = self.arguments(arguments);
                    let behind: Vec<Name> = parts.map(|p| self.name(p)).collect();
                    if is_place || !behind.is_empty() {
                        let quantity = self.quantity_at(Vec::new(), name, args, behind, span);
                        return self.limited(quantity, height + 1);
                    }
                    return self.limited(Expr { kind: ExprKind::Call(name, args), span }, height + 1);
                }
                let mut names = vec![name];
                for part in parts {
                    if part.as_rule() == Rule::at_place {
                        let section = names.pop().expect("a section is before its place");
                        let (quantity, height) = self.at_place(names, section, part, span);
                        return self.limited(quantity, height + 1);
                    }
                    names.push(self.name(part));
                }
                ExprKind::Path(names)
            }
            other => unreachable!("{other:?} is not an operand"),
        };
        (Expr { kind, span }, 1)
    }

    // ------------------------------------------------------------------------------------------ units

    fn unit_note(&mut self, pair: Pair<'_, Rule>) -> UnitExpr {
        self.unit(Parts::of(pair).part())
    }

    /// The factors of any of the unit rules.
    fn unit(&mut self, pair: Pair<'_, Rule>) -> UnitExpr {
        let span = self.span(&pair);
        let mut factors = Vec::new();
        let mut sign = 1;
        for piece in pair.into_inner() {
            match piece.as_rule() {
                Rule::unit_per => sign = -1,
                Rule::unit_times => sign = 1,
                Rule::unit_one => {}
                _ => self.unit_factor(&piece, sign, &mut factors),
            }
        }
        UnitExpr { factors, span }
    }

    /// `cm`, `cm2`, `cm^-2`, `mS_per_cm2`.
    fn unit_factor(&mut self, pair: &Pair<'_, Rule>, sign: i32, factors: &mut Vec<(Name, i32)>) {
        let start = self.base + pair.as_span().start();
        let (word, power) = match pair.as_str().split_once('^') {
            Some((word, power)) => (word, Some(power)),
            None => (pair.as_str(), None),
        };
        let mut offset = 0;
        let mut piece_sign = sign;
        let mut pieces = Vec::new();
        for piece in word.split('_') {
            if piece == "per" {
                piece_sign = -sign;
            } else {
                pieces.push((piece, start + offset, piece_sign));
                piece_sign = sign;
            }
            offset += piece.len() + 1;
        }
        let known = |piece: &str| Grammar::parse(Rule::lone_unit, piece).is_ok();
        let dangling = piece_sign != sign || pieces.iter().any(|(piece, ..)| piece.is_empty());
        let splits = word.contains("per_") || pieces.iter().all(|(piece, ..)| known(piece));
        if dangling || !splits {
            pieces = vec![(word, start, sign)];
        }
        let last = pieces.len() - 1;
        for (i, (piece, start, sign)) in pieces.into_iter().enumerate() {
            let stem = piece.trim_end_matches(|c: char| c.is_ascii_digit());
            let digits = &piece[stem.len()..];
            let (stem, power) = match power.filter(|_| i == last) {
                Some(power) => (piece, power),
                None if digits.is_empty() => (piece, "1"),
                None => (stem, digits),
            };
            let name = Name { text: stem.to_owned(), span: Span::new(self.file, start, start + stem.len()) };
            // Larger powers than this have no use and would overflow sums of powers later.
            match power.parse::<i32>().ok().filter(|p| p.abs() <= 99) {
                Some(power) => factors.push((name, sign * power)),
                None => self.mistakes.push(Diagnostic::new(
                    Code::Syntax,
                    self.span(pair),
                    format!("the power {power} of a unit is too large"),
                    "the largest is 99",
                )),
            }
        }
    }
}

fn infix(rule: Rule) -> BinaryOp {
    match rule {
        Rule::plus => BinaryOp::Add,
        Rule::minus => BinaryOp::Sub,
        Rule::times => BinaryOp::Mul,
        Rule::divide => BinaryOp::Div,
        Rule::caret => BinaryOp::Pow,
        Rule::less => BinaryOp::Lt,
        Rule::less_eq => BinaryOp::Le,
        Rule::greater => BinaryOp::Gt,
        Rule::greater_eq => BinaryOp::Ge,
        Rule::eq_eq => BinaryOp::Eq,
        Rule::not_eq => BinaryOp::Ne,
        Rule::kw_and => BinaryOp::And,
        Rule::kw_or => BinaryOp::Or,
        other => unreachable!("{other:?} is not an operator"),
    }
}
