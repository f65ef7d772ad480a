//! Synapses that remember: states of every synapse, and a weight that events change.
//!
//! In come the blocks `on event`, `on post` and `on modulator` of a synapse whose names are resolved; out go the states that every synapse has for itself, and
//! what happens in which order.
//! Never true here: what all synapses on a cell share depends on what one of them has for itself, but for what events add to it.
//!
//! A state belongs to every synapse if an event sets it or reads it, if a spike of the cell behind or a modulator changes it, or if it drives one that does. All
//! others are summed up: the receptor has them.

use super::domain::stays_at_zero;
use super::error::SynapseError;
use super::lower::Lowerer;
use super::{Action, ActionOn, Expr, ExprKind, Modulator, Plastic, Symbol, SymbolId, SymbolKind};
use crate::source::Span;
use crate::syntax::ast::{AssignOp, EventOf, Name};
use crate::units::Dim;

/// An assignment with its names resolved.
pub(super) struct Resolved<'a> {
    pub of: EventOf,
    pub name: &'a Name,
    /// The state; none for the weight.
    pub state: Option<SymbolId>,
    pub op: AssignOp,
    pub value: Expr,
}

/// Why a synapse has a state, or the weight, for itself.
#[derive(Clone, Copy)]
enum Why {
    /// An event sets it.
    Set(Span),
    /// An event reads it.
    Read(Span),
    /// A spike of the cell behind changes it.
    Post(Span),
    /// A modulator changes it.
    Modulator(Span),
}

impl Lowerer<'_> {
    /// Splits a synapse that remembers: its symbols without those that every synapse has for itself, and these with what happens. `None` if it does
    /// not remember, or if something is wrong (then `fine` is false).
    pub(super) fn plastic(
        &mut self,
        symbols: &[Symbol],
        actions: &[Resolved<'_>],
        amount: Option<Dim>,
        fine: &mut bool,
    ) -> Option<Split> {
        let mut reads = Reads::new(symbols);
        let mut own: Vec<Option<Why>> = vec![None; symbols.len()];
        let mut weight_changes = false;
        let mut put = |state: SymbolId, why: Why| {
            let place = &mut own[state.0 as usize];
            if matches!(symbols[state.0 as usize].kind, SymbolKind::State { .. }) && place.is_none() {
                *place = Some(why);
            }
        };
        for action in actions {
            match (action.state, action.op, action.of) {
                (None, ..) => weight_changes = true,
                (Some(state), AssignOp::Set, _) => put(state, Why::Set(action.name.span)),
                (Some(state), _, EventOf::Post) => put(state, Why::Post(action.name.span)),
                (Some(state), _, EventOf::Modulator) => put(state, Why::Modulator(action.name.span)),
                (Some(_), AssignOp::Add | AssignOp::Sub, EventOf::Pre) => {}
            }
        }
        for action in actions {
            for (state, span) in reads.of(&action.value) {
                put(state, Why::Read(span));
            }
        }
        if own.iter().all(Option::is_none) && !weight_changes {
            return None;
        }
        // What drives such a state belongs to the synapse, too.
        let mut next = own.iter().position(Option::is_some);
        let mut looked = vec![false; symbols.len()];
        while let Some(at) = next {
            looked[at] = true;
            if let SymbolKind::State { rate, .. } = &symbols[at].kind {
                for (state, span) in reads.of(rate) {
                    own[state.0 as usize].get_or_insert(Why::Read(span));
                }
            }
            next = (0..own.len()).find(|&at| own[at].is_some() && !looked[at]);
        }
        // What depends on them belongs to every synapse, too, unless that cannot be.
        let mut of_edge: Vec<bool> = own.iter().map(Option::is_some).collect();
        for (at, symbol) in symbols.iter().enumerate() {
            if let SymbolKind::Let(x) = &symbol.kind {
                of_edge[at] = reads.of(x).iter().any(|(state, _)| own[state.0 as usize].is_some());
            }
        }
        let mut first_own = |e: &Expr| reads.of(e).into_iter().find_map(|(s, at)| Some((s, at, own[s.0 as usize]?)));
        for (at, symbol) in symbols.iter().enumerate() {
            let shared = match &symbol.kind {
                SymbolKind::State { rate, .. } if own[at].is_none() => Some(rate),
                SymbolKind::Let(x) if symbol.name == "i" => Some(x),
                _ => None,
            };
            if let Some((state, read, why)) = shared.and_then(&mut first_own) {
                let name = &symbols[state.0 as usize].name;
                self.error(match why {
                    Why::Set(span) => SynapseError::SetsShared { name, span, read },
                    Why::Read(span) => SynapseError::ReadsShared { name, span, read },
                    Why::Post(span) => {
                        SynapseError::PostChangesShared { name, by: ("a spike of the cell behind", "post"), span, read }
                    }
                    Why::Modulator(span) => {
                        SynapseError::PostChangesShared { name, by: ("a modulator", "modulator"), span, read }
                    }
                });
                *fine = false;
            }
        }
        for action in actions {
            let by_modulator = match action.of {
                EventOf::Pre => continue,
                EventOf::Post => false,
                EventOf::Modulator => true,
            };
            // Of the receptor only the voltage can be meant, which neither a spike of its own cell nor a modulator can make jump.
            if action.state.is_some_and(|state| symbols[state.0 as usize].kind == SymbolKind::Voltage) {
                self.error(SynapseError::PostMovesVoltage { name: action.name, by_modulator });
                *fine = false;
            }
        }
        if !*fine {
            return None;
        }
        for (at, symbol) in symbols.iter().enumerate().filter(|(at, _)| own[*at].is_some()) {
            let id = SymbolId(at as u32);
            let moved = actions.iter().any(|action| action.state == Some(id));
            if !moved && stays_at_zero(symbols, id) && self.is_main_place(symbol.span) {
                self.error(SynapseError::StaysAtZero { name: &symbol.name, span: symbol.span });
            }
        }
        Some(split(symbols, actions, amount, &of_edge))
    }
}

/// A synapse that remembers, in two parts.
pub(super) struct Split {
    /// What all synapses on a cell share.
    pub symbols: Vec<Symbol>,
    pub plastic: Plastic,
}

fn split(symbols: &[Symbol], actions: &[Resolved<'_>], amount: Option<Dim>, of_edge: &[bool]) -> Split {
    let before = |at: usize, which: bool| of_edge[..at].iter().filter(|own| **own == which).count() as u32;
    let own = |id: SymbolId| of_edge[id.0 as usize].then(|| before(id.0 as usize, true));
    let place = |id: SymbolId| match own(id) {
        Some(number) => ExprKind::OfEdge(number),
        None => ExprKind::Symbol(SymbolId(before(id.0 as usize, false))),
    };
    let moved = |e: &Expr| e.map_leaves(&place);
    let kind = |kind: &SymbolKind| match kind {
        SymbolKind::Param(x) => SymbolKind::Param(moved(x)),
        SymbolKind::Let(x) => SymbolKind::Let(moved(x)),
        // Schemes are of channels.
        SymbolKind::State { init, rate, kind, .. } => {
            SymbolKind::State { init: moved(init), rate: moved(rate), kind: *kind, scheme: None }
        }
        SymbolKind::Port(port) => SymbolKind::Port(*port),
        SymbolKind::Voltage => SymbolKind::Voltage,
        SymbolKind::Pool => SymbolKind::Pool,
    };
    let of = |which: bool| {
        let all = symbols.iter().zip(of_edge).filter(move |(_, own)| **own == which);
        all.map(|(s, _)| Symbol { kind: kind(&s.kind), ..s.clone() }).collect::<Vec<Symbol>>()
    };
    let action = |a: &Resolved<'_>| {
        let on = match a.state {
            None => ActionOn::Weight,
            Some(state) => match own(state) {
                Some(number) => ActionOn::Own(number),
                None => ActionOn::Shared(SymbolId(before(state.0 as usize, false))),
            },
        };
        Action { on, op: a.op, value: moved(&a.value) }
    };
    let of_events = |of: EventOf| actions.iter().filter(|a| a.of == of).map(action).collect();
    let modulator = amount.map(|amount| Modulator { amount, actions: of_events(EventOf::Modulator) });
    let (pre, post) = (of_events(EventOf::Pre), of_events(EventOf::Post));
    let plastic = Plastic { own: of(true), pre, post, modulator };
    Split { symbols: of(false), plastic }
}

/// The states that expressions read, also through names.
struct Reads<'s> {
    symbols: &'s [Symbol],
    /// Of the named values that have been looked at.
    known: Vec<Option<Vec<SymbolId>>>,
}

impl<'s> Reads<'s> {
    fn new(symbols: &'s [Symbol]) -> Reads<'s> {
        Reads { symbols, known: vec![None; symbols.len()] }
    }

    /// What an expression reads, each state once, with the place where the expression does.
    fn of(&mut self, value: &Expr) -> Vec<(SymbolId, Span)> {
        let mut found: Vec<(SymbolId, Span)> = Vec::new();
        value.visit(&mut |e| {
            let ExprKind::Symbol(id) = e.kind else { return };
            found.extend(self.of_symbol(id).into_iter().map(|state| (state, e.span)));
        });
        found.sort_by_key(|(state, _)| *state);
        found.dedup_by_key(|(state, _)| *state);
        found
    }

    fn of_symbol(&mut self, id: SymbolId) -> Vec<SymbolId> {
        let at = id.0 as usize;
        if let Some(known) = &self.known[at] {
            return known.clone();
        }
        let symbols = self.symbols;
        match &symbols[at].kind {
            SymbolKind::State { .. } => vec![id],
            SymbolKind::Let(inner) => {
                self.known[at] = Some(Vec::new());
                let all: Vec<SymbolId> = self.of(inner).into_iter().map(|(state, _)| state).collect();
                self.known[at] = Some(all.clone());
                all
            }
            SymbolKind::Param(_) | SymbolKind::Port(_) | SymbolKind::Voltage | SymbolKind::Pool => Vec::new(),
        }
    }
}
