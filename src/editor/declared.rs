//! What a file defines: its items, their members, and what is in these.
//!
//! In comes a tree of a file; out go its definitions with their places, nested as they are written.
//! Never true here: a name is resolved.

use crate::source::Span;
use crate::syntax::ast::{
    self, CellMember, ChannelMember, CompartmentMember, File, GateMember, Item, KineticsMember, Name, NetworkMember,
    SectionMember, SynapseMember, UnitExpr,
};
use lsp_types::SymbolKind;

/// What a definition is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)] // `word` says what each is
pub enum What {
    Constant,
    Function,
    Argument,
    Channel,
    Cell,
    Junction,
    Synapse,
    Network,
    Run,
    Train,
    Fit,
    Parameter,
    Let,
    State,
    Current,
    Gate,
    Key,
    Reads,
    Pool,
    Port,
    Compartment,
    Instance,
    Section,
    Sum,
    Weight,
    Amount,
    Population,
    Input,
    Clamp,
    Probe,
}

impl What {
    /// What it is called.
    pub fn word(self) -> &'static str {
        match self {
            What::Constant => "const",
            What::Function => "function",
            What::Argument => "argument",
            What::Channel => "channel",
            What::Cell => "cell",
            What::Junction => "junction",
            What::Synapse => "synapse",
            What::Network => "network",
            What::Run => "run",
            What::Train => "train",
            What::Fit => "fit",
            What::Parameter => "param",
            What::Let => "let",
            What::State => "state",
            What::Current => "current",
            What::Gate => "gate",
            What::Key => "key",
            What::Reads => "reads",
            What::Pool => "pool",
            What::Port => "input",
            What::Compartment => "compartment",
            What::Instance => "instance of",
            What::Section => "section",
            What::Sum => "sum",
            What::Weight => "weight of a connection",
            What::Amount => "amount of a modulator",
            What::Population => "population",
            What::Input => "input",
            What::Clamp => "clamp",
            What::Probe => "probe",
        }
    }

    /// Can it stand for a value?
    pub fn has_value(self) -> bool {
        match self {
            What::Constant
            | What::Argument
            | What::Parameter
            | What::Let
            | What::State
            | What::Current
            | What::Gate
            | What::Key
            | What::Reads
            | What::Pool
            | What::Port
            | What::Sum
            | What::Weight
            | What::Amount => true,
            What::Function
            | What::Channel
            | What::Cell
            | What::Junction
            | What::Synapse
            | What::Network
            | What::Run
            | What::Train
            | What::Fit
            | What::Compartment
            | What::Instance
            | What::Section
            | What::Population
            | What::Input
            | What::Clamp
            | What::Probe => false,
        }
    }

    /// The nearest kind that the protocol knows.
    pub fn kind(self) -> SymbolKind {
        match self {
            What::Constant => SymbolKind::CONSTANT,
            What::Function => SymbolKind::FUNCTION,
            What::Channel | What::Cell | What::Junction | What::Synapse => SymbolKind::CLASS,
            What::Network => SymbolKind::MODULE,
            What::Run | What::Train | What::Fit | What::Input | What::Clamp | What::Probe | What::Port => {
                SymbolKind::EVENT
            }
            What::Argument | What::Parameter | What::Weight | What::Amount => SymbolKind::PROPERTY,
            What::Let | What::Current | What::Reads | What::Sum => SymbolKind::VARIABLE,
            What::State | What::Gate | What::Pool => SymbolKind::FIELD,
            What::Key => SymbolKind::KEY,
            What::Compartment | What::Section => SymbolKind::STRUCT,
            What::Instance => SymbolKind::OBJECT,
            What::Population => SymbolKind::ARRAY,
        }
    }
}

/// A definition.
#[derive(Debug, Clone)]
pub struct Declared {
    /// What it is.
    pub what: What,
    /// Its name.
    pub name: String,
    /// Where that stands.
    pub span: Span,
    /// All of it.
    pub whole: Span,
    /// What the user wrote about it.
    pub docs: Vec<String>,
    /// What it is made of, as written, where that is short.
    pub detail: Option<Span>,
    /// What it contains.
    pub inside: Vec<Declared>,
}

impl Declared {
    fn new(what: What, name: &Name, whole: Span) -> Declared {
        let (docs, inside) = Default::default();
        Declared {
            what,
            name: name.text.clone(),
            span: name.span,
            whole: name.span.to(whole),
            docs,
            detail: None,
            inside,
        }
    }

    fn docs(self, docs: &[String]) -> Declared {
        Declared { docs: docs.to_vec(), ..self }
    }

    fn with(self, inside: Vec<Declared>) -> Declared {
        Declared { inside, ..self }
    }

    fn detail(self, detail: Span) -> Declared {
        Declared { detail: Some(detail), ..self }
    }

    /// It and all that is in it.
    pub fn all(&self) -> Vec<&Declared> {
        std::iter::once(self).chain(self.inside.iter().flat_map(Declared::all)).collect()
    }
}

/// What a file defines.
pub fn declared(file: &File) -> Vec<Declared> {
    file.items.iter().filter_map(item).collect()
}

fn item(item: &Item) -> Option<Declared> {
    Some(match item {
        Item::Use(_) => return None,
        Item::Const(c) => Declared::new(What::Constant, &c.name, c.value.span).docs(&c.docs).detail(c.value.span),
        Item::Function(f) => {
            let inside = f.params.iter().map(|(name, _)| Declared::new(What::Argument, name, name.span)).collect();
            Declared::new(What::Function, &f.name, f.body.span).docs(&f.docs).with(inside).detail(f.body.span)
        }
        Item::Channel(c) => {
            let inside = c.members.iter().flat_map(channel_member).collect();
            Declared::new(What::Channel, &c.name, c.span).docs(&c.docs).with(inside)
        }
        Item::Cell(c) => {
            let inside = c.members.iter().flat_map(cell_member).collect();
            Declared::new(What::Cell, &c.name, c.span).docs(&c.docs).with(inside)
        }
        Item::Junction(j) => {
            let lets = j.lets.iter().map(|l| let_value(What::Let, l));
            let currents = j.currents.iter().map(|l| let_value(What::Current, l));
            let inside = j.params.iter().map(param).chain(lets).chain(currents).collect();
            Declared::new(What::Junction, &j.name, j.span).docs(&j.docs).with(inside)
        }
        Item::Synapse(s) => {
            let inside = s.members.iter().flat_map(synapse_member).collect();
            Declared::new(What::Synapse, &s.name, s.span).docs(&s.docs).with(inside)
        }
        Item::Network(n) => {
            let inside = n.members.iter().filter_map(network_member).collect();
            Declared::new(What::Network, &n.name, n.span).docs(&n.docs).with(inside)
        }
        Item::Run(r) => {
            let word = Span { end: (r.span.start + 3).min(r.span.end), ..r.span };
            Declared::new(What::Run, &Name { text: "run".into(), span: word }, r.span)
        }
        Item::Train(t) => {
            let word = Span { end: (t.span.start + 5).min(t.span.end), ..t.span };
            Declared::new(What::Train, &Name { text: "train".into(), span: word }, t.span)
        }
        Item::Fit(f) => {
            let word = Span { end: (f.span.start + 3).min(f.span.end), ..f.span };
            Declared::new(What::Fit, &Name { text: "fit".into(), span: word }, f.span)
        }
    })
}

fn param(p: &ast::Param) -> Declared {
    Declared::new(What::Parameter, &p.name, p.value.span).docs(&p.docs).detail(p.value.span)
}

fn let_value(what: What, l: &ast::Let) -> Declared {
    Declared::new(what, &l.name, l.value.span).detail(l.value.span)
}

fn state(s: &ast::State) -> Declared {
    Declared::new(What::State, &s.name, s.span)
}

fn channel_member(member: &ChannelMember) -> Vec<Declared> {
    vec![match member {
        ChannelMember::Param(p) => param(p),
        ChannelMember::Let(l) => let_value(What::Let, l),
        ChannelMember::Reads(r) => Declared::new(What::Reads, &r.name, r.name.span),
        ChannelMember::Gate(g) => Declared::new(What::Gate, &g.name, g.span).with(gate_members(&g.members)),
        ChannelMember::Kinetics(k) => return species(k),
        ChannelMember::State(s) => state(s),
        ChannelMember::Equation(_) => return Vec::new(),
        ChannelMember::Current(l) => let_value(What::Current, l),
    }]
}

/// The states of a scheme, each where it is named first.
fn species(k: &ast::Kinetics) -> Vec<Declared> {
    let mut found: Vec<Declared> = Vec::new();
    for member in &k.members {
        let KineticsMember::Reaction { from, to, span, .. } = member else { continue };
        for name in [from, to] {
            if found.iter().all(|known| known.name != name.text) {
                found.push(Declared::new(What::State, name, *span));
            }
        }
    }
    found
}

fn gate_members(members: &[GateMember]) -> Vec<Declared> {
    let of = |member: &GateMember| match member {
        GateMember::Key(l) => vec![let_value(What::Key, l)],
        GateMember::Q10 { .. } => Vec::new(),
        GateMember::Fraction { members, .. } => gate_members(members),
    };
    members.iter().flat_map(of).collect()
}

fn cell_member(member: &CellMember) -> Vec<Declared> {
    vec![match member {
        CellMember::Param(p) => param(p),
        CellMember::Let(l) => let_value(What::Let, l),
        CellMember::State(s) => state(s),
        CellMember::Port { name, .. } => Declared::new(What::Port, name, name.span),
        CellMember::Compartment(c) => {
            let inside = c.members.iter().filter_map(compartment_member).collect();
            Declared::new(What::Compartment, &c.name, c.span).with(inside)
        }
        CellMember::Section(s) => {
            let inside = s.members.iter().filter_map(section_member).collect();
            Declared::new(What::Section, &s.name, s.span).with(inside)
        }
        CellMember::Compartments { keys, .. } => return keys.iter().map(|l| let_value(What::Key, l)).collect(),
        CellMember::Region(r) => return r.members.iter().filter_map(compartment_member).collect(),
        CellMember::Equation(_) | CellMember::Couple { .. } | CellMember::Morphology { .. } | CellMember::Spike(_) => {
            return Vec::new();
        }
    }]
}

fn section_member(member: &SectionMember) -> Option<Declared> {
    match member {
        SectionMember::From(_) | SectionMember::Toward(_) => None,
        SectionMember::Key { name, value, .. } => Some(Declared::new(What::Key, name, value.span).detail(value.span)),
    }
}

fn compartment_member(member: &CompartmentMember) -> Option<Declared> {
    Some(match member {
        CompartmentMember::Key(l) => let_value(What::Key, l),
        CompartmentMember::Param(p) => param(p),
        CompartmentMember::Let(l) => let_value(What::Let, l),
        CompartmentMember::Insert { channel, alias, span, .. } => {
            let name = alias.as_ref().unwrap_or(channel);
            Declared::new(What::Instance, name, *span).detail(channel.span)
        }
        CompartmentMember::Pool { name, keys, span, .. } => {
            let inside = keys.iter().map(|l| let_value(What::Key, l)).collect();
            Declared::new(What::Pool, name, *span).with(inside)
        }
    })
}

fn synapse_member(member: &SynapseMember) -> Vec<Declared> {
    match member {
        SynapseMember::Param(p) => vec![param(p)],
        SynapseMember::Let(l) => vec![let_value(What::Let, l)],
        SynapseMember::State(s) => vec![state(s)],
        SynapseMember::Equation(_) => Vec::new(),
        SynapseMember::Current(l) => vec![let_value(What::Current, l)],
        SynapseMember::Event(e) => {
            let of = |what: What, carried: &Option<(Name, Option<UnitExpr>)>| {
                carried.as_ref().map(|(name, _)| Declared::new(what, name, name.span))
            };
            of(What::Weight, &e.weight).into_iter().chain(of(What::Amount, &e.amount)).collect()
        }
        SynapseMember::Sum(s) => {
            let weight = s.weight.as_ref().map(|(name, _)| Declared::new(What::Weight, name, name.span));
            let sum = Declared::new(What::Sum, &s.name, s.span).detail(s.value.span);
            [sum].into_iter().chain(weight).collect()
        }
    }
}

fn network_member(member: &NetworkMember) -> Option<Declared> {
    Some(match member {
        NetworkMember::Param(p) => param(p),
        NetworkMember::Population { name, cell, span, .. } => {
            Declared::new(What::Population, name, *span).detail(cell.span)
        }
        NetworkMember::Set { .. } => return None,
        NetworkMember::Probe(p) => Declared::new(What::Probe, &p.name, p.span).detail(p.of.span),
        NetworkMember::Input { clamp, name, span, value, .. } => {
            let what = if *clamp { What::Clamp } else { What::Input };
            Declared::new(what, name, *span).detail(value.span)
        }
        NetworkMember::Connect { via, .. } | NetworkMember::Drive { via, .. } => {
            let name = via.alias.as_ref()?;
            Declared::new(What::Instance, name, name.span).detail(via.model.span)
        }
    })
}
