//! Synapses in a network: directed connections, drives, and the receptors that they act on.
//!
//! In come `connect a -> b` and `drive` lines; out go receptors, which are part of the target's cells, and who sends them events.
//! Never true here: an event reaches a state that is not of a receptor, or of the cell that has it.
//!
//! Lines that name the same synapse with the same values act on one receptor. A population whose cells have receptors has a cell model of its
//! own, that of the file with the symbols of the receptors added.

mod graded;

use super::advice::EVENT_RATE;
use super::error::{MorphologyError, Signature, SynapseError};
use super::expr::constant_of;
use super::items::{ItemKind, Kind};
use super::keys::Block;
use super::lower::{Definition, Lowerer};
use super::network::NetworkDraft;
use super::place::{FlatPath, Place, flatten};
use super::scope::ScopeKind;
use super::{
    Cell, ConnectionRule, Domain, Drive, DriveSource, Expr, ExprKind, Given, GivenOf, Morphology, Part, Projection,
    Receptor, Sent, Symbol, SymbolId, SymbolKind, Synapse, Ty,
};
use crate::connect::MOST_POOLED;
use crate::source::Span;
use crate::syntax::ast::{self, ConnectKey, NetworkMember, SynapseMember, Through};
use crate::units::Dim;
use std::rc::Rc;
use std::sync::Arc;

/// A receptor of a population, with what tells whether another line means the same.
pub(super) struct Instance<'a> {
    population: usize,
    /// Its place in the cell, such as `dend.Ampa`.
    path: String,
    model: String,
    /// What the line says that made it.
    args: &'a [(ast::Name, ast::Expr)],
    /// The values of its parameters.
    values: Vec<Expr>,
    /// What it is.
    has: Has,
    /// Where its synapse is defined.
    span: Span,
}

/// What an instance of a synapse is on the cells of a population.
#[derive(Clone)]
enum Has {
    /// The receptor of this number among those of the population.
    Receptor(usize),
    /// The side before a graded synapse.
    Sender(Sent),
}

/// The instance that a line means.
enum Found {
    /// It is there.
    Known(Has),
    /// It is a new one, with this place in the cell.
    New(String),
}

/// Where on a cell a receptor sits.
struct Seat {
    /// The compartment; none for a point neuron.
    compartment: Option<String>,
    v: Option<SymbolId>,
    port: Option<SymbolId>,
    area: Option<SymbolId>,
    /// The elements of the tree, in a cell with sections: of a place one, of a region each of its compartments.
    elements: Option<Arc<[u32]>>,
}

impl Seat {
    /// The path of what sits there under a name.
    fn path(&self, name: &str) -> String {
        self.compartment.as_ref().map_or(name.to_string(), |under| format!("{under}.{name}"))
    }

    /// What sits there, as a part of a cell with sections.
    fn part(&self, path: &str, current: Option<SymbolId>, span: Span) -> Option<Part> {
        let (elements, region) = (self.elements.clone()?, self.compartment.clone()?);
        let name = path.strip_prefix(&region).and_then(|rest| rest.strip_prefix('.')).unwrap_or(path).to_string();
        Some(Part { region, name, elements, current, together: 0, span })
    }
}

/// What a line joins.
#[derive(Clone, Copy)]
struct Joins<'r> {
    rule: &'r ConnectionRule,
    /// The populations that send and receive.
    ends: [usize; 2],
    /// What of the synapse may stand beside the keys.
    names: &'r [String],
}

/// What `distance` is where no population says how far its cells are from each other.
const IN_STEPS: &str = "`distance` is a number of steps of the grid here; give both populations a spacing to have a length: `population e: Cell[40, 40] { spacing = 50 um }`";

/// The key that says what part of a delay is the way from a synapse to the soma.
const DENDRITIC: &str = "dendritic_fraction";

/// Of what events bring, and when.
const FINITE: &str = "a finite number is needed";

/// Why weights that are conductances have no sign.
const NO_INHIBITION: &str = "a conductance is not negative; a synapse inhibits by its `erev`";

impl<'a> Lowerer<'a> {
    /// The directed connections and drives of a network. Later lines can name the quantities of their receptors.
    pub(super) fn synapses(&mut self, draft: &mut NetworkDraft<'a>, n: &'a ast::Network) {
        // What modulates synapses finds those of all lines.
        let modulates = |member: &&NetworkMember| match member {
            NetworkMember::Connect { via, .. } | NetworkMember::Drive { via, .. } => via.modulating,
            _ => false,
        };
        let (later, first): (Vec<_>, Vec<_>) = n.members.iter().partition(modulates);
        for member in first.into_iter().chain(later) {
            match member {
                NetworkMember::Connect { directed: true, from, to, via, keys, span } => {
                    let fine = self.projection(draft, (from, to), via, keys, *span).is_some();
                    if !fine {
                        self.nothing_known(draft, to, via);
                    }
                    if !fine && self.is_graded(via) {
                        self.nothing_known(draft, from, via);
                    }
                    draft.whole &= fine;
                }
                NetworkMember::Drive { target, via, from, keys, span } => {
                    let fine = self.drive(draft, target, via, from, keys, *span).is_some();
                    if !fine {
                        self.nothing_known(draft, target, via);
                    }
                    draft.whole &= fine;
                }
                NetworkMember::Connect { directed: false, .. }
                | NetworkMember::Param(_)
                | NetworkMember::Population { .. }
                | NetworkMember::Probe(_)
                | NetworkMember::Set { .. }
                | NetworkMember::Input { .. } => {}
            }
        }
    }

    /// Warns of synapses that answer a modulator where none comes.
    pub(super) fn without_modulator(&mut self, draft: &NetworkDraft<'a>) {
        let comes = |to: usize, receptor: usize| {
            let of_cells = draft.projections.iter().filter(|p| p.modulates).map(|p| (p.to, p.receptor));
            let mut all =
                of_cells.chain(draft.drives.iter().filter(|d| d.modulates).map(|d| (d.population, d.receptor)));
            all.any(|other| other == (to, receptor))
        };
        let mut seen = Vec::new();
        for p in draft.projections.iter().filter(|p| !p.modulates) {
            let receptor = &draft.populations[p.to].receptors[p.receptor];
            let answers = receptor.plastic.as_ref().is_some_and(|plastic| plastic.modulator.is_some());
            if answers && !comes(p.to, p.receptor) && !seen.contains(&(p.to, p.receptor)) {
                seen.push((p.to, p.receptor));
                self.error(SynapseError::NoModulator { synapse: &receptor.name, span: p.span });
            }
        }
    }

    /// `connect a -> b via S { ... }`: one projection for each target.
    fn projection(
        &mut self,
        draft: &mut NetworkDraft<'a>,
        (from, to): (&'a ast::Path, &'a ast::Path),
        via: &'a Through,
        keys: &'a [ConnectKey],
        span: Span,
    ) -> Option<()> {
        let is_graded = self.is_graded(via);
        let synapse = if via.modulating { None } else { self.synapse_of(via, span) };
        // Whether what comes is spikes is not known if something is wrong with the synapse.
        let spikes = via.modulating || synapse.is_some();
        let sources = if is_graded { Some(Vec::new()) } else { self.event_sources(draft, from, spikes) };
        // Of a synapse that is not known nobody knows what it has.
        let of_unknown = || keys.iter().filter(|_| !via.modulating).map(|key| key.name.text.clone()).collect();
        let names = synapse.as_ref().map_or_else(of_unknown, |synapse| own_names(&synapse.item));
        let rule = self.rule(&mut draft.scope, keys, (Block::Projection, &names), span);
        if via.modulating {
            return self.modulation(draft, (&sources?, to), via, keys, &rule?, span);
        }
        let synapse = synapse?;
        if is_graded {
            return self.graded_projection(draft, (from, to), via, &synapse, keys, (&rule?, span));
        }
        let (sources, rule) = (sources?, rule?);
        let answers = synapse.item.plastic.as_ref().is_some_and(|plastic| !plastic.post.is_empty());
        self.no_dendrite(keys, via, answers)?;
        if synapse.item.plastic.is_some() && rule.shares() {
            self.error(SynapseError::SharedRemembers { synapse: &via.model, span });
            return None;
        }
        self.may_differ(keys, via, &synapse.item)?;
        let max_pool = self.max_pool(&rule)?;
        for from in sources {
            for flat in flatten(to) {
                let place = self.place_within(&mut draft.scope, &draft.populations, &flat)?;
                if place.cells.is_some() {
                    self.error(SynapseError::Selection { span: flat.span });
                    return None;
                }
                let seat = self.receiving_seat(draft, (&place, &flat), &synapse.item)?;
                let receptor = self.receptor(draft, (place.population, &seat), (via, &via.args), &synapse)?;
                let name = draft.line_name([from, place.population], receptor);
                let joins = Joins { rule: &rule, ends: [from, place.population], names: &names };
                let weight = self.weight(draft, &name, (synapse.item.weight, via), keys, Some(joins), span);
                let delay = self.delay(draft, &name, keys, (joins, Domain::DelayOrNone), span);
                let dendritic = self.dendritic(draft, &name, keys);
                let given = self.given(draft, &name, (keys, &synapse.item), (joins, receptor));
                draft.demand_of_edges(std::mem::take(&mut self.demands));
                let (weight, delay, dendritic, given) = (weight?, delay?, dendritic?, given?);
                if max_pool > 1 && delay.differs_among_edges() {
                    self.error(SynapseError::PooledDelays { span: delay.span });
                    return None;
                }
                let (to, rule) = (place.population, rule.clone());
                let (modulates, sent, unit) = (false, None, synapse.item.unit_of(&weight));
                draft.projections.push(Projection {
                    name,
                    from,
                    to,
                    receptor,
                    modulates,
                    sent,
                    weight,
                    unit,
                    delay,
                    dendritic,
                    given,
                    rule,
                    max_pool,
                    span,
                });
            }
        }
        Some(())
    }

    /// `connect a -> b modulating S { ... }`: one projection for each target, onto synapses that other lines have made.
    fn modulation(
        &mut self,
        draft: &mut NetworkDraft<'a>,
        (sources, to): (&[usize], &'a ast::Path),
        via: &'a Through,
        keys: &'a [ConnectKey],
        rule: &ConnectionRule,
        span: Span,
    ) -> Option<()> {
        self.no_dendrite(keys, via, false)?;
        if rule.shares() {
            self.error(SynapseError::SharedModulates { span });
            return None;
        }
        for &from in sources {
            for flat in flatten(to) {
                let place = self.place_within(&mut draft.scope, &draft.populations, &flat)?;
                if place.cells.is_some() {
                    self.error(SynapseError::Selection { span: flat.span });
                    return None;
                }
                let (receptor, amount) = self.modulated(draft, &place, &flat, via)?;
                let names = [from, place.population].map(|p| draft.populations[p].name.clone());
                let own = &draft.populations[place.population].receptors[receptor].name;
                let name = free_name(format!("{}.{}.{own}.modulator", names[0], names[1]), |name| {
                    draft.projections.iter().any(|p| p.name == name)
                });
                let joins = Joins { rule, ends: [from, place.population], names: &[] };
                let weight = self.weight(draft, &name, (Some(amount), via), keys, Some(joins), span);
                let delay = self.delay(draft, &name, keys, (joins, Domain::Delay), span);
                draft.demand_of_edges(std::mem::take(&mut self.demands));
                let (weight, delay) = (weight?, delay?);
                let (to, rule, modulates, sent, max_pool) = (place.population, rule.clone(), true, None, 1);
                let unit = weight.ty.dim().display_unit();
                draft.projections.push(Projection {
                    name,
                    from,
                    to,
                    receptor,
                    modulates,
                    sent,
                    weight,
                    unit,
                    delay,
                    dendritic: None,
                    given: Vec::new(),
                    rule,
                    max_pool,
                    span,
                });
            }
        }
        Some(())
    }

    /// The receptor whose synapses a line modulates, and the dimension of how much of the modulator it brings.
    fn modulated(
        &mut self,
        draft: &mut NetworkDraft<'a>,
        place: &Place<'a>,
        flat: &FlatPath<'a>,
        via: &'a Through,
    ) -> Option<(usize, Dim)> {
        let definition = self.lowered_cell(draft.populations[place.population].cell);
        let cell = &definition.item;
        let under = match (&cell.morphology, flat.at, &place.rest[..], &cell.compartments[..]) {
            (Some(morphology), Some(_), ..) => {
                let element = self.driven_place(&definition, morphology, place, "a synapse", flat)?;
                morphology.tree.name(element)
            }
            (None, Some(located), ..) => {
                self.no_sections(&definition, located.span);
                return None;
            }
            (None, None, "", [only]) => only.name.clone(),
            (_, None, rest, _) => rest.to_string(),
        };
        let under = if under.is_empty() { under } else { format!("{under}.") };
        let receptors = &draft.populations[place.population].receptors;
        let path = format!("{under}{}", via.model.text);
        let Some(at) = receptors.iter().position(|receptor| receptor.name == path) else {
            let known: Vec<&str> = receptors.iter().filter_map(|r| r.name.strip_prefix(&under)).collect();
            if !definition.is_unknown(&path) {
                self.error(SynapseError::NothingToModulate { synapse: &via.model, known: &known });
            }
            return None;
        };
        let instance = draft
            .instances
            .iter()
            .find(|i| i.population == place.population && matches!(i.has, Has::Receptor(receptor) if receptor == at));
        self.note_modulated(&via.model, &path, cell);
        match receptors[at].plastic.as_ref().and_then(|plastic| plastic.modulator.as_ref()) {
            Some(modulator) => Some((at, modulator.amount)),
            None => {
                let at = instance.map_or(flat.span, |instance| instance.span);
                self.error(SynapseError::NotModulated { synapse: &via.model, at, span: via.model.span });
                None
            }
        }
    }

    /// `drive a via S from poisson(...) { ... }`: one drive for each target.
    fn drive(
        &mut self,
        draft: &mut NetworkDraft<'a>,
        target: &'a ast::Path,
        via: &'a Through,
        from: &'a ast::Expr,
        keys: &'a [ConnectKey],
        span: Span,
    ) -> Option<()> {
        for (i, key) in keys.iter().enumerate() {
            match keys[..i].iter().find(|first| first.name.text == key.name.text) {
                _ if !Block::Drive.keys().contains(&key.name.text.as_str()) => {
                    self.unknown_key(&key.name, Block::Drive);
                }
                Some(first) => self.duplicate_key(&key.name, first.name.span),
                None => {}
            }
        }
        let synapse = if via.modulating { None } else { self.synapse_of(via, span) };
        if synapse.is_none() && !via.modulating {
            return None;
        }
        for flat in flatten(target) {
            let place = self.place_within(&mut draft.scope, &draft.populations, &flat)?;
            let (receptor, carried) = match &synapse {
                Some(synapse) if synapse.item.plastic.is_some() => {
                    self.error(SynapseError::DriveRemembers { synapse: &via.model, span });
                    return None;
                }
                Some(synapse) if synapse.item.graded.is_some() => {
                    self.error(SynapseError::GradedDrive { synapse: &via.model, span });
                    return None;
                }
                Some(synapse) => {
                    let seat = self.receiving_seat(draft, (&place, &flat), &synapse.item)?;
                    let receptor = self.receptor(draft, (place.population, &seat), (via, &via.args), synapse)?;
                    (receptor, synapse.item.weight)
                }
                None => {
                    let (receptor, amount) = self.modulated(draft, &place, &flat, via)?;
                    (receptor, Some(amount))
                }
            };
            let (population, modulates) = (place.population, via.modulating);
            let receptor_name = &draft.populations[population].receptors[receptor].name;
            let what = if modulates { "modulator" } else { "drive" };
            let name = free_name(format!("{}.{receptor_name}.{what}", draft.populations[population].name), |name| {
                draft.drives.iter().any(|d| d.name == name)
            });
            let weight = self.weight(draft, &name, (carried, via), keys, None, span);
            let delay = match keys.iter().find(|k| k.name.text == "delay") {
                None => Some(None),
                Some(key) => self.delay_of_drive(draft, &name, key).map(Some),
            };
            draft.demand_of(std::mem::take(&mut self.demands), population);
            let source = self.drive_source(draft, &name, from, population);
            let (weight, delay, source) = (weight?, delay?, source?);
            let cells = place.cells;
            draft.drives.push(Drive { name, population, cells, receptor, modulates, weight, delay, source, span });
        }
        Some(())
    }

    /// How long the events of a drive take: a time, or drawn for every cell.
    fn delay_of_drive(&mut self, draft: &mut NetworkDraft<'a>, name: &str, key: &'a ConnectKey) -> Option<Expr> {
        let x = self.of_edge(draft, &format!("{name}.delay"), key, Dim::TIME, ("a delay", None))?;
        let what = format!("delay` of `{name}");
        self.demand(what.clone(), x.clone(), Domain::Finite, FINITE);
        self.demand(what.clone(), x.clone(), Domain::NotNegative, "no event arrives before it is sent");
        self.demand(what, x.clone(), Domain::BeforeTheEnd, "nothing arrives in this run");
        Some(x)
    }

    /// `poisson(rate = 300 Hz)`, `times(10 ms, 20 ms)`, `spikes("spikes.csv")`.
    fn drive_source(
        &mut self,
        draft: &mut NetworkDraft<'a>,
        name: &str,
        from: &'a ast::Expr,
        population: usize,
    ) -> Option<DriveSource> {
        self.start_streams(name);
        match &from.kind {
            ast::ExprKind::Call(function, args) if function.text == "poisson" => {
                let signature = Signature { function: "poisson", params: &["rate"], optional: &[], variadic: false };
                let rate = self.arguments(&signature, args, from.span)?.into_iter().next().flatten()?;
                let stream = self.stream();
                draft.scope.kind = ScopeKind::Input;
                let rate = self.expr_of(&mut draft.scope, "", rate, Dim::RATE, EVENT_RATE);
                draft.scope.kind = ScopeKind::Network;
                let rate = rate?;
                self.demand(format!("rate` of `{name}"), rate.clone(), Domain::NotNegative, "a rate is not negative");
                self.demand(
                    format!("rate` of `{name}"),
                    rate.clone(),
                    Domain::Drawable,
                    "more events in one step than are drawn, 708 on average",
                );
                draft.demand_of(std::mem::take(&mut self.demands), population);
                Some(DriveSource::Poisson { rate, stream })
            }
            ast::ExprKind::Call(function, args) if function.text == "times" && !args.is_empty() => {
                if let Some(arg) = args.iter().find(|arg| reads_a_file(&arg.value)) {
                    self.error(SynapseError::TimesOfAFile { span: arg.value.span });
                    return None;
                }
                let time = |arg: &'a ast::Arg| {
                    let time = self.expr_of(&mut draft.scope, "", &arg.value, Dim::TIME, "the time of an event")?;
                    self.demand("t` of `times".into(), time.clone(), Domain::Finite, FINITE);
                    self.demand(
                        "t` of `times".into(),
                        time.clone(),
                        Domain::AboveZero,
                        "the first spike that can be comes at the end of the first step",
                    );
                    self.demand("t` of `times".into(), time.clone(), Domain::BeforeTheEnd, "nothing arrives");
                    Some(time)
                };
                let times: Vec<Option<Expr>> = args.iter().map(time).collect();
                draft.demand_of(std::mem::take(&mut self.demands), population);
                times.into_iter().collect::<Option<_>>().map(DriveSource::Times)
            }
            ast::ExprKind::Call(function, args) if function.text == "spikes" => {
                let (params, optional) = (&["name", "column"], &["column"]);
                let signature = Signature { function: "spikes", params, optional, variadic: false };
                let args = self.arguments(&signature, args, from.span)?;
                self.data_named("spikes", &args, from.span).map(DriveSource::Spikes)
            }
            ast::ExprKind::Call(function, _) => {
                self.error(SynapseError::NotASource { name: Some(&function.text), span: from.span });
                None
            }
            ast::ExprKind::Number { .. }
            | ast::ExprKind::Bool(_)
            | ast::ExprKind::Str(_)
            | ast::ExprKind::Path(_)
            | ast::ExprKind::Unary(..)
            | ast::ExprKind::Binary(..)
            | ast::ExprKind::If(..)
            | ast::ExprKind::At(..) => {
                self.error(SynapseError::NotASource { name: None, span: from.span });
                None
            }
        }
    }

    /// Of what a line would have made on its targets nothing is known, since something is wrong with its synapse.
    fn nothing_known(&mut self, draft: &mut NetworkDraft<'a>, to: &'a ast::Path, via: &'a Through) {
        let own = via.alias.as_ref().unwrap_or(&via.model);
        for flat in flatten(to) {
            let Some((population, behind)) = flat.names.split_first() else { continue };
            // What is wrong with the path has been said.
            let Some(population) = draft.populations.iter().position(|p| p.name == population.text) else { continue };
            let receptor = super::place::dotted(behind.iter().copied().chain([own]));
            let Definition { item, unknown, .. } = &*self.lowered_cell(draft.populations[population].cell);
            let unknown = unknown.iter().cloned().chain([receptor]).collect();
            let cell = Definition { item: item.clone(), sound: false, unknown };
            let population = &mut draft.populations[population];
            population.cell = self.own_cell(population.cell, cell);
        }
    }

    /// Does a line go through a synapse?
    pub(super) fn is_synapse(&self, via: &Through) -> bool {
        self.item(0, &via.model.text).is_some_and(|item| item.kind.kind() == Kind::Synapse)
    }

    /// Does a line go through a graded synapse?
    fn is_graded(&self, via: &Through) -> bool {
        let is_sum = |member: &SynapseMember| matches!(member, SynapseMember::Sum(_));
        match self.item(0, &via.model.text).map(|item| item.kind) {
            Some(ItemKind::Synapse(synapse)) => !via.modulating && synapse.members.iter().any(is_sum),
            _ => false,
        }
    }

    /// The synapse that a line goes through.
    fn synapse_of(&mut self, via: &'a Through, span: Span) -> Option<Rc<Definition<Synapse>>> {
        if self.item(0, &via.model.text).is_some_and(|item| item.kind.kind() == Kind::Junction) {
            self.error(SynapseError::Junction { via: &via.model, span });
            return None;
        }
        let item = self.find_item(0, &via.model, Kind::Synapse)?;
        let ItemKind::Synapse(model) = item.kind else { return None };
        let synapse = self.synapse(item, model);
        // What is wrong with it has been said.
        synapse.sound.then_some(synapse)
    }

    /// The populations whose spikes are sent; `spikes` says whether they must have some.
    fn event_sources(&mut self, draft: &mut NetworkDraft<'a>, path: &'a ast::Path, spikes: bool) -> Option<Vec<usize>> {
        let mut sources = Vec::new();
        for flat in flatten(path) {
            let place = self.place(&mut draft.scope, &draft.populations, &flat)?;
            if !place.rest.is_empty() {
                self.error(SynapseError::SourceIsNoPopulation { span: flat.span });
                return None;
            }
            if place.cells.is_some() {
                self.error(SynapseError::Selection { span: flat.span });
                return None;
            }
            let definition = self.lowered_cell(draft.populations[place.population].cell);
            if definition.item.spike.is_none() && definition.sound && spikes {
                self.error(SynapseError::NoSpikes { cell: &definition.item, span: flat.span });
                return None;
            }
            sources.push(place.population);
        }
        Some(sources)
    }

    /// Where the receptor of a line sits, if the synapse fits there.
    fn receiving_seat(
        &mut self,
        draft: &NetworkDraft<'a>,
        (place, flat): (&Place<'a>, &FlatPath<'a>),
        synapse: &Synapse,
    ) -> Option<Seat> {
        let definition = self.lowered_cell(draft.populations[place.population].cell);
        // Of what is no cell nothing is known.
        if flat.at.is_some() && definition.is_unknown(&definition.item.name) {
            return None;
        }
        match &definition.item.morphology {
            Some(morphology) => self.seat_at(&definition, morphology, (place, flat), synapse),
            None => self.seat(&definition, (place, flat), synapse),
        }
    }

    /// The receptor that a line means: one that is there, or a new one.
    fn receptor(
        &mut self,
        draft: &mut NetworkDraft<'a>,
        (population, seat): (usize, &Seat),
        (via, args): (&'a Through, &'a [(ast::Name, ast::Expr)]),
        synapse: &Rc<Definition<Synapse>>,
    ) -> Option<usize> {
        let definition = self.lowered_cell(draft.populations[population].cell);
        let cell = &definition.item;
        self.check_arguments(via, &synapse.item)?;
        let values = self.values(draft, args, &synapse.item.symbols)?;
        let wanted = via.alias.as_ref().unwrap_or(&via.model);
        let path = seat.path(&wanted.text);
        let path = match self.instance(draft, (population, false), (path, cell), via, &values)? {
            Found::Known(Has::Receptor(known)) => return Some(known),
            Found::Known(Has::Sender(_)) => return None,
            Found::New(path) => path,
        };
        let (symbols, receptor) = instantiate(&synapse.item, &path, seat, &values, cell.symbols.len());
        self.note_places(cell.span, [(path.clone(), wanted.span)].into());
        let part = receptor.current.and_then(|current| seat.part(&path, Some(current), via.model.span));
        let morphology = cell.morphology.clone().map(|known| match part {
            Some(part) => known.with_part(part, symbols.len()),
            None => known,
        });
        let cell = Cell { symbols: [cell.symbols.clone(), symbols].concat(), morphology, ..cell.clone() };
        let changed = Definition { item: cell, sound: definition.sound, unknown: definition.unknown.clone() };
        self.put_on(draft, population, changed);
        let receptors = &mut draft.populations[population].receptors;
        receptors.push(receptor);
        let (receptor, model) = (receptors.len() - 1, synapse.item.name.clone());
        let (has, span) = (Has::Receptor(receptor), synapse.item.span);
        draft.instances.push(Instance { population, path, model, args, values, has, span });
        Some(receptor)
    }

    /// Gives a population a cell model of its own, or another one in its place.
    fn put_on(&mut self, draft: &mut NetworkDraft<'a>, population: usize, cell: Definition<Cell>) {
        let has_own = draft.instances.iter().any(|known| known.population == population);
        let population = &mut draft.populations[population];
        if has_own {
            self.change_cell(population.cell, cell);
        } else {
            population.cell = self.own_cell(population.cell, cell);
        }
    }

    /// The instance of a synapse that a line means at a place of a population: a receptor, or the side that sends.
    fn instance(
        &mut self,
        draft: &NetworkDraft<'a>,
        (population, sends): (usize, bool),
        (path, cell): (String, &Cell),
        via: &'a Through,
        values: &[Expr],
    ) -> Option<Found> {
        let same = |known: &&Instance<'_>| {
            let defaults = via.args.is_empty() && via.alias.is_some();
            let equal =
                |(a, b): (&Expr, &Expr)| constant_of(a) == constant_of(b) && (constant_of(a).is_some() || a == b);
            known.model == via.model.text && (defaults || known.values.iter().zip(values).all(equal))
        };
        let here =
            |known: &&Instance<'_>| known.population == population && matches!(known.has, Has::Sender(_)) == sends;
        let of_name = |known: &&Instance<'_>| {
            let number = known.path.strip_prefix(path.as_str()).map(|rest| rest.trim_start_matches('_'));
            number.is_some_and(|n| n.is_empty() || via.alias.is_none() && n.bytes().all(|b| b.is_ascii_digit()))
        };
        if let Some(known) = draft.instances.iter().filter(here).filter(of_name).find(same) {
            return Some(Found::Known(known.has.clone()));
        }
        let wanted = via.alias.as_ref().unwrap_or(&via.model);
        if via.alias.is_some() && draft.instances.iter().filter(here).any(|known| known.path == path) {
            self.error(SynapseError::OtherArguments { name: wanted, span: wanted.span });
            return None;
        }
        // Lines through one receptor are numbered: these names are taken, too.
        let is_line = |path: &str| {
            let of =
                |from: usize| format!("{}.{}.{path}", draft.populations[from].name, draft.populations[population].name);
            draft.projections.iter().any(|p| p.to == population && p.name == of(p.from))
        };
        if !sends && via.alias.is_some() && is_line(&path) {
            self.error(SynapseError::LineTaken { name: wanted });
            return None;
        }
        let is_taken =
            |path: &str| draft.instances.iter().filter(here).any(|known| known.path == path) || !sends && is_line(path);
        let path = free_name(path.clone(), is_taken);
        // The two sides of a synapse may have one name.
        let below = format!("{path}.");
        let is_other_side = draft.instances.iter().any(|known| known.population == population && known.path == path);
        if !is_other_side && cell.symbols.iter().any(|s| s.name == path || s.name.starts_with(&below)) {
            self.error(SynapseError::InstanceTaken { name: wanted, cell: &cell.name });
            return None;
        }
        Some(Found::New(path))
    }

    /// Where a receptor sits, if the synapse fits there.
    fn seat(
        &mut self,
        definition: &Definition<Cell>,
        (place, flat): (&Place<'a>, &FlatPath<'a>),
        synapse: &Synapse,
    ) -> Option<Seat> {
        let cell = &definition.item;
        let span = place.rest_span;
        let seat = self.seat_only(definition, (place, flat))?;
        if let (None, Some(read)) = (seat.v, Lowerer::reads_voltage(synapse)) {
            if definition.is_unknown("v") {
                return None;
            }
            self.error(SynapseError::NoVoltage { cell: &cell.name, read, span, sends: false });
            return None;
        }
        let Some(i) = synapse.current else { return Some(seat) };
        let is_density = synapse.symbols[i.0 as usize].ty == Ty::Real(Dim::CURRENT_DENSITY);
        let wrong = match &seat.compartment {
            None if is_density => Some(SynapseError::NoArea { place: None, span }),
            None if !reads(cell, seat.port?) => Some(SynapseError::NoCurrentRead { cell: &cell.name, span }),
            Some(name) if !is_density && seat.area.is_none() => Some(SynapseError::NoArea { place: Some(name), span }),
            None | Some(_) => None,
        };
        match wrong {
            // What a cell reads is not known if something is wrong with it.
            Some(SynapseError::NoCurrentRead { .. }) if !definition.sound || definition.is_unknown("i_syn") => None,
            Some(wrong) => {
                self.error(wrong);
                None
            }
            None => Some(seat),
        }
    }

    /// A place on a cell without sections, whatever sits there.
    fn seat_only(&mut self, definition: &Definition<Cell>, (place, flat): (&Place<'a>, &FlatPath<'a>)) -> Option<Seat> {
        let cell = &definition.item;
        let span = place.rest_span;
        if let Some(located) = flat.at {
            self.no_sections(definition, located.span);
            return None;
        }
        let seat = match (&place.rest[..], &cell.compartments[..]) {
            ("", []) => {
                Seat { compartment: None, v: voltage(cell), port: cell.find("i_syn"), area: None, elements: None }
            }
            ("", [only]) => seat_on(only),
            (name, all) => match all.iter().find(|c| c.name == name) {
                Some(compartment) => seat_on(compartment),
                None if definition.is_unknown(&cell.name) => return None,
                None => {
                    let known: Vec<&str> = all.iter().map(|c| c.name.as_str()).collect();
                    self.error(SynapseError::NotAPlace { cell: &cell.name, path: name, known: &known, span });
                    return None;
                }
            },
        };
        Some(seat)
    }

    /// Where a receptor sits on a cell with sections, if the synapse fits there.
    fn seat_at(
        &mut self,
        definition: &Definition<Cell>,
        morphology: &Morphology,
        (place, flat): (&Place<'a>, &FlatPath<'a>),
        synapse: &Synapse,
    ) -> Option<Seat> {
        let (name, elements): (String, Arc<[u32]>) = match (flat.at, &place.rest[..]) {
            (None, word) if !word.is_empty() => (word.to_string(), self.compartments_of(morphology, word, flat)?),
            (Some(_), _) | (None, _) => {
                let element = self.driven_place(definition, morphology, place, "a synapse", flat)?;
                (morphology.tree.name(element), [element as u32].into())
            }
        };
        if synapse.current.is_none() {
            self.error(MorphologyError::NoCurrent { span: flat.span });
            return None;
        }
        if let Some(moved) = synapse.moves_voltage() {
            self.error(MorphologyError::MovesVoltage { moved, span: flat.span });
            return None;
        }
        let (v, elements) = (Some(morphology.v), Some(elements));
        Some(Seat { compartment: Some(name), v, port: None, area: None, elements })
    }

    /// Checks the arguments of a line.
    fn check_arguments(&mut self, via: &'a Through, synapse: &Synapse) -> Option<()> {
        let mut params: Vec<&Symbol> = Vec::new();
        for symbol in synapse.all_symbols().filter(|s| matches!(s.kind, SymbolKind::Param(_))) {
            if params.iter().all(|known| known.name != symbol.name) {
                params.push(symbol);
            }
        }
        self.note_arguments(via.args.iter().map(|a| &a.0), params.iter().map(|s| (s.name.as_str(), s.span)));
        let known: Vec<&str> = params.iter().map(|s| s.name.as_str()).collect();
        let mut fine = true;
        for (i, (argument, _)) in via.args.iter().enumerate() {
            if let Some((first, _)) = via.args[..i].iter().find(|a| a.0.text == argument.text) {
                self.duplicate_key(argument, first.span);
                fine = false;
            } else if !known.contains(&argument.text.as_str()) {
                self.error(SynapseError::UnknownParameter { synapse: &via.model, argument, known: &known });
                fine = false;
            }
        }
        fine.then_some(())
    }

    /// The values of some parameters of a synapse: those of a line, or the model's own.
    fn values(
        &mut self,
        draft: &mut NetworkDraft<'a>,
        args: &'a [(ast::Name, ast::Expr)],
        symbols: &[Symbol],
    ) -> Option<Vec<Expr>> {
        let mut values = Vec::new();
        for symbol in symbols {
            let SymbolKind::Param(default) = &symbol.kind else { continue };
            let value = match args.iter().find(|a| a.0.text == symbol.name) {
                Some((_, value)) => self.expr_of(&mut draft.scope, "", value, symbol.ty.dim(), "this parameter"),
                None => Some(default.clone()),
            };
            values.push(value);
        }
        values.into_iter().collect()
    }

    /// Of how many places in each direction a target gets the largest. What no rule can have is told where rules are made.
    fn max_pool(&mut self, rule: &ConnectionRule) -> Option<u32> {
        let Some(written) = rule.max_pool() else { return Some(1) };
        let Some(number) = constant_of(written) else {
            self.error(SynapseError::PoolNotKnown { span: written.span });
            return None;
        };
        Some(number.clamp(1.0, MOST_POOLED as f64) as u32)
    }

    /// The weight of a line: a number, or drawn for every edge.
    fn weight(
        &mut self,
        draft: &mut NetworkDraft<'a>,
        name: &str,
        (carried, via): (Option<Dim>, &'a Through),
        keys: &'a [ConnectKey],
        joins: Option<Joins<'_>>,
        span: Span,
    ) -> Option<Expr> {
        let key = keys.iter().find(|k| k.name.text == "weight");
        let Some(dim) = carried else {
            if let Some(key) = key {
                self.error(SynapseError::NoWeight { synapse: &via.model, span: key.name.span });
                return None;
            }
            return Some(Expr::number(1.0, Dim::ONE, span));
        };
        let Some(key) = key else {
            if has_strange(keys, joins.map_or(&[], |joins| joins.names)) {
                return None;
            }
            let example = format!("weight = 1 {}", super::advice::usual_unit(dim));
            self.error(SynapseError::Lacks { key: "weight", example: example.trim_end().to_string(), span });
            return None;
        };
        let x = self.of_edge(draft, &format!("{name}.weight"), key, dim, ("a weight", joins))?;
        if joins.is_some_and(|joins| joins.rule.shares())
            && let Some(span) = reads_distance(&x)
        {
            self.error(SynapseError::DistanceOfAKernel { span });
            return None;
        }
        self.demand(format!("weight` of `{name}"), x.clone(), Domain::Finite, FINITE);
        if [Dim::CONDUCTANCE, Dim::CONDUCTANCE_DENSITY].contains(&dim) && !via.modulating {
            self.demand(format!("weight` of `{name}"), x.clone(), Domain::NotNegative, NO_INHIBITION);
        }
        Some(x)
    }

    /// The delay of a line: a time, or drawn for every edge; with what it can be where it is the same for all.
    fn delay(
        &mut self,
        draft: &mut NetworkDraft<'a>,
        name: &str,
        keys: &'a [ConnectKey],
        (joins, domain): (Joins<'_>, Domain),
        span: Span,
    ) -> Option<Expr> {
        let Some(key) = keys.iter().find(|k| k.name.text == "delay") else {
            if has_strange(keys, joins.names) {
                return None;
            }
            self.error(SynapseError::Lacks { key: "delay", example: "delay = 1 ms".to_string(), span });
            return None;
        };
        let x = self.of_edge(draft, &format!("{name}.delay"), key, Dim::TIME, ("a delay", Some(joins)))?;
        self.demand(format!("delay` of `{name}"), x.clone(), Domain::Finite, FINITE);
        if !x.differs_among_edges() {
            self.demand(
                format!("delay` of `{name}"),
                x.clone(),
                domain,
                "a spike arrives a step later at the earliest",
            );
        }
        self.demand(format!("delay` of `{name}"), x.clone(), Domain::BeforeTheEnd, "no spike arrives in this run");
        Some(x)
    }

    /// What part of the delay of a line is the way from a synapse to the soma.
    fn dendritic(&mut self, draft: &mut NetworkDraft<'a>, name: &str, keys: &'a [ConnectKey]) -> Option<Option<Expr>> {
        let Some(key) = keys.iter().find(|key| key.name.text == DENDRITIC) else { return Some(None) };
        let what = format!("{name}.{DENDRITIC}");
        let x = self.known_before(&mut draft.scope, ScopeKind::Network, &what, &key.value, (Dim::ONE, "a fraction"))?;
        if !self.draws_as_written(&x, key.random, key.value.span) {
            return None;
        }
        self.demand(
            format!("{DENDRITIC}` of `{name}"),
            x.clone(),
            Domain::Fraction,
            "a part of the delay, from 0 to 1",
        );
        Some(Some(x))
    }

    /// Sees to it that a line tells of its dendrite only if its synapses answer spikes of the target.
    fn no_dendrite(&mut self, keys: &'a [ConnectKey], via: &'a Through, answers: bool) -> Option<()> {
        let key = keys.iter().find(|key| key.name.text == DENDRITIC && !answers);
        let Some(key) = key else { return Some(()) };
        let (synapse, modulates, span) = (&via.model, via.modulating, key.name.span);
        self.error(SynapseError::NoDendrite { synapse, modulates, span });
        None
    }

    /// Sees to it that what a line says of its synapses beside weight and delay is something that each of them can have for itself.
    fn may_differ(&mut self, keys: &'a [ConnectKey], via: &'a Through, synapse: &Synapse) -> Option<()> {
        let mut fine = true;
        let of_synapse = |key: &&ConnectKey| !Block::Projection.keys().contains(&key.name.text.as_str());
        for key in keys.iter().filter(of_synapse) {
            let name = &key.name;
            let Some((why, means)) = shared_because(synapse, &name.text) else { continue };
            self.note(name.span, means);
            if let Some((argument, _)) = via.args.iter().find(|(argument, _)| argument.text == name.text) {
                self.duplicate_key(name, argument.span);
                fine = false;
            } else if let Some(why) = why {
                self.error(SynapseError::NotForItself { synapse: &via.model, name, why });
                fine = false;
            }
        }
        fine.then_some(())
    }

    /// What the synapses of a line have for themselves that others take from the model.
    fn given(
        &mut self,
        draft: &mut NetworkDraft<'a>,
        line: &str,
        (keys, synapse): (&'a [ConnectKey], &Synapse),
        (joins, receptor): (Joins<'_>, usize),
    ) -> Option<Vec<Given>> {
        let Some(plastic) = &synapse.plastic else { return Some(Vec::new()) };
        let population = &draft.populations[joins.ends[1]];
        let (cell, path) = (self.lowered_cell(population.cell), population.receptors[receptor].name.clone());
        let mut all = Some(Vec::new());
        for key in keys {
            let name = &key.name.text;
            let own = plastic.own.iter().position(|s| s.name == *name);
            let shared = || cell.item.find(&format!("{path}.{name}"));
            let (of, symbol) = match own {
                Some(number) => (GivenOf::State(number as u32), &plastic.own[number]),
                None => match shared() {
                    Some(id) => (GivenOf::Param(id), cell.item.symbol(id)),
                    None => continue,
                },
            };
            let (dim, unit) = (symbol.ty.dim(), symbol.display_unit());
            let what = format!("`{name}`");
            let Some(value) = self.of_edge(draft, &format!("{line}.{name}"), key, dim, (&what, Some(joins))) else {
                all = None;
                continue;
            };
            let what = format!("{name}` of `{line}");
            self.demand(what.clone(), value.clone(), Domain::Finite, FINITE);
            self.demand_as_declared(what, &value, symbol);
            if let Some(all) = &mut all {
                all.push(Given { of, name: name.clone(), value, unit });
            }
        }
        all
    }

    /// A value of every edge.
    fn of_edge(
        &mut self,
        draft: &mut NetworkDraft<'a>,
        name: &str,
        key: &'a ConnectKey,
        dim: Dim,
        (what, joins): (&str, Option<Joins<'_>>),
    ) -> Option<Expr> {
        let rule = joins.map(|joins| joins.rule);
        let ends = joins.map(|joins| joins.ends.map(|p| &draft.populations[p]));
        let spaced = ends.map(|ends| ends.map(|p| p.spacing.is_some()));
        let kind = match spaced {
            None => ScopeKind::PerCell,
            Some([false, false]) => ScopeKind::PerEdge(Dim::ONE),
            Some([true, _] | [_, true]) => ScopeKind::PerEdge(Dim::LENGTH),
        };
        let before = self.diagnostics.count();
        let x = self.known_before(&mut draft.scope, kind, name, &key.value, (dim, what));
        if kind == ScopeKind::PerEdge(Dim::ONE) && mentions(&key.value, "distance") {
            for d in self.diagnostics.since(before) {
                d.help.push(IN_STEPS.to_string());
            }
        }
        let x = x?;
        if let (Some([from, to]), Some(span)) = (ends, reads_distance(&x))
            && from.spacing.is_some() != to.spacing.is_some()
        {
            let without = if from.spacing.is_none() { from } else { to };
            self.error(SynapseError::NoSpacing { population: &without.name, at: without.span, span });
            return None;
        }
        if !self.draws_as_written(&x, key.random, key.value.span) {
            return None;
        }
        let mut of_cell = None;
        x.visit(&mut |e| {
            of_cell = match (&e.kind, rule) {
                // A file that lists the edges may say more about them.
                (ExprKind::File(values), Some(ConnectionRule::File(edges))) if self.is_same_file(*values, *edges) => {
                    of_cell
                }
                // Nor does a kernel say less of its numbers, or a matrix.
                (ExprKind::File(_), Some(rule)) if rule.shares() || rule.is_whole() => of_cell,
                (ExprKind::Index | ExprKind::File(_), _) => Some(e.span),
                _ => of_cell,
            };
        });
        if let Some(span) = of_cell {
            self.error(SynapseError::NotOfAnEdge { what, span });
            return None;
        }
        Some(x)
    }
}

fn seat_on(compartment: &super::Compartment) -> Seat {
    Seat {
        compartment: Some(compartment.name.clone()),
        v: Some(compartment.v),
        port: Some(compartment.port),
        area: compartment.area,
        elements: None,
    }
}

/// The potential of a point neuron, if it has one: a state `v`.
pub(super) fn voltage(cell: &Cell) -> Option<SymbolId> {
    cell.find("v").filter(|id| {
        let symbol = cell.symbol(*id);
        matches!(symbol.kind, SymbolKind::State { .. }) && symbol.ty == Ty::Real(Dim::VOLTAGE)
    })
}

/// Does anything of a cell read a symbol?
pub(super) fn reads(cell: &Cell, symbol: SymbolId) -> bool {
    let mut found = false;
    let mut look = |e: &Expr| e.visit(&mut |e| found |= e.kind == ExprKind::Symbol(symbol));
    for s in &cell.symbols {
        match &s.kind {
            SymbolKind::Param(x) | SymbolKind::Let(x) => look(x),
            SymbolKind::State { init, rate, .. } => {
                look(init);
                look(rate);
            }
            SymbolKind::Port(_) | SymbolKind::Voltage | SymbolKind::Pool => {}
        }
    }
    found
}

/// The names of a synapse that may stand beside the keys of a connection: what it can have for itself, and, to be told why not, what it shares.
fn own_names(synapse: &Synapse) -> Vec<String> {
    let own = synapse.plastic.iter().flat_map(|plastic| &plastic.own);
    let all = own.chain(synapse.all_symbols()).filter(|s| match s.kind {
        SymbolKind::Param(_) | SymbolKind::State { .. } => true,
        SymbolKind::Let(_) | SymbolKind::Port(_) | SymbolKind::Voltage | SymbolKind::Pool => false,
    });
    all.map(|s| s.name.clone()).filter(|name| !Block::Projection.keys().contains(&name.as_str())).collect()
}

/// Why the synapses on a cell share something.
#[derive(Clone, Copy)]
pub(super) enum Shared {
    /// No synapse has anything for itself.
    RemembersNothing,
    /// It is a state to which all of them add.
    Sum,
    /// What they share depends on it here.
    ReadBy(Span),
}

/// Why a parameter or a state of a synapse is no synapse's own, if it is not, and where it is declared; none if the synapse has none of this name.
fn shared_because(synapse: &Synapse, name: &str) -> Option<(Option<Shared>, Span)> {
    let Some(plastic) = &synapse.plastic else {
        let symbol = synapse.all_symbols().find(|s| s.name == name)?;
        return Some((Some(Shared::RemembersNothing), symbol.span));
    };
    if let Some(own) = plastic.own.iter().find(|s| s.name == name) {
        return Some((None, own.span));
    }
    let number = synapse.symbols.iter().position(|s| s.name == name)?;
    let (id, span) = (SymbolId(number as u32), synapse.symbols[number].span);
    if matches!(synapse.symbols[number].kind, SymbolKind::State { .. }) {
        return Some((Some(Shared::Sum), span));
    }
    // What is read through names counts where these are.
    let current = synapse.current.map(|i| i.0 as usize);
    let shared = synapse.symbols.iter().enumerate().find_map(|(at, s)| match &s.kind {
        SymbolKind::State { init, rate, .. } => [init, rate].into_iter().find_map(|x| read_in(&synapse.symbols, x, id)),
        SymbolKind::Let(x) if Some(at) == current => read_in(&synapse.symbols, x, id),
        SymbolKind::Param(x) => read_in(&synapse.symbols, x, id),
        SymbolKind::Let(_) | SymbolKind::Port(_) | SymbolKind::Voltage | SymbolKind::Pool => None,
    });
    Some((shared.map(Shared::ReadBy), span))
}

/// Where an expression reads a symbol, itself or through names.
fn read_in(symbols: &[Symbol], x: &Expr, id: SymbolId) -> Option<Span> {
    let mut found = None;
    let mut looked = vec![false; symbols.len()];
    let mut waiting: Vec<(&Expr, Option<Span>)> = vec![(x, None)];
    while let Some((x, begin)) = waiting.pop() {
        x.visit(&mut |e| {
            let ExprKind::Symbol(read) = e.kind else { return };
            let (at, place) = (read.0 as usize, begin.unwrap_or(e.span));
            if read == id {
                found.get_or_insert(place);
            } else if let SymbolKind::Let(inner) | SymbolKind::Param(inner) = &symbols[at].kind
                && !std::mem::replace(&mut looked[at], true)
            {
                waiting.push((inner, Some(place)));
            }
        });
    }
    found
}

/// Is one of the keys none that there is, which has been said, and may be what is missing?
fn has_strange(keys: &[ConnectKey], names: &[String]) -> bool {
    let is_known =
        |key: &ConnectKey| Block::Projection.keys().contains(&key.name.text.as_str()) || names.contains(&key.name.text);
    !keys.iter().all(is_known)
}

/// Where a value of an edge depends on how far its cells are from each other, if it does.
fn reads_distance(x: &Expr) -> Option<Span> {
    let mut read = None;
    x.visit(&mut |e| {
        if e.kind == ExprKind::Distance {
            read = Some(e.span);
        }
    });
    read
}

impl<'a> NetworkDraft<'a> {
    /// What a line between two populations through a receptor of the second is called. A number behind it makes no name of another receptor.
    fn line_name(&self, ends: [usize; 2], receptor: usize) -> String {
        let [from, to] = ends.map(|end| &self.populations[end]);
        let full = |receptor: &Receptor| format!("{}.{}.{}", from.name, to.name, receptor.name);
        let others = || to.receptors.iter().enumerate().filter(|(number, _)| *number != receptor);
        free_name(full(&to.receptors[receptor]), |name| {
            self.projections.iter().any(|p| p.name == name) || others().any(|(_, other)| full(other) == name)
        })
    }
}

/// A name, with a number behind it if it is taken.
pub(super) fn free_name(name: String, is_taken: impl Fn(&str) -> bool) -> String {
    let numbered = (2..).map(|n| format!("{name}_{n}"));
    std::iter::once(name.clone()).chain(numbered).find(|name| !is_taken(name)).unwrap_or(name)
}

/// The symbols of a receptor, which follow each other from `base` on, and the receptor.
fn instantiate(synapse: &Synapse, path: &str, seat: &Seat, values: &[Expr], base: usize) -> (Vec<Symbol>, Receptor) {
    let (copied, map) = copied(&synapse.symbols, path, seat.v, values, base);
    let f = |id: SymbolId| map[id.0 as usize];
    let receptor = Receptor {
        name: path.to_string(),
        jumps: synapse.jumps.iter().map(|(state, x)| (f(*state), x.map_symbols(&f))).collect(),
        current: synapse.current.map(f),
        port: seat.port,
        area: seat.area,
        plastic: synapse.plastic.as_ref().map(|plastic| plastic.map_symbols(&f)),
        sum: synapse.graded.as_ref().map(|graded| f(graded.sum)),
    };
    (copied, receptor)
}

/// Symbols of a synapse as symbols of a cell under a path, which follow each other from `base` on, and what has become of each.
fn copied(
    symbols: &[Symbol],
    path: &str,
    v: Option<SymbolId>,
    values: &[Expr],
    base: usize,
) -> (Vec<Symbol>, Vec<SymbolId>) {
    let mut next = base;
    let place = |s: &Symbol| match (&s.kind, v) {
        (SymbolKind::Voltage, Some(v)) => v,
        // Without a voltage nothing reads it.
        (SymbolKind::Voltage, None) => SymbolId(base as u32),
        (
            SymbolKind::Param(_)
            | SymbolKind::Let(_)
            | SymbolKind::State { .. }
            | SymbolKind::Port(_)
            | SymbolKind::Pool,
            _,
        ) => {
            next += 1;
            SymbolId(next as u32 - 1)
        }
    };
    let map: Vec<SymbolId> = symbols.iter().map(place).collect();
    let f = |id: SymbolId| map[id.0 as usize];
    let mut values = values.iter();
    let copied = symbols.iter().filter(|s| s.kind != SymbolKind::Voltage).map(|s| {
        let kind = match &s.kind {
            // A value that stands in the network names nothing of the synapse; a default may.
            SymbolKind::Param(default) => match values.next() {
                Some(value) if value != default => SymbolKind::Param(value.clone()),
                Some(_) | None => SymbolKind::Param(default.map_symbols(&f)),
            },
            SymbolKind::Let(e) => SymbolKind::Let(e.map_symbols(&f)),
            SymbolKind::State { init, rate, kind, scheme } => {
                let (init, rate) = (init.map_symbols(&f), rate.map_symbols(&f));
                SymbolKind::State { init, rate, kind: *kind, scheme: scheme.map(f) }
            }
            SymbolKind::Port(kind) => SymbolKind::Port(*kind),
            SymbolKind::Voltage => SymbolKind::Voltage,
            SymbolKind::Pool => SymbolKind::Pool,
        };
        Symbol { name: format!("{path}.{}", s.name), kind, ..s.clone() }
    });
    (copied.collect(), map)
}

/// Is an expression a file, or the product of one?
fn reads_a_file(e: &ast::Expr) -> bool {
    match &e.kind {
        ast::ExprKind::Call(function, _) => matches!(&*function.text, "file" | "series"),
        ast::ExprKind::Binary(_, a, b) => reads_a_file(a) || reads_a_file(b),
        _ => false,
    }
}

/// Does an expression mention a name?
pub(super) fn mentions(e: &ast::Expr, name: &str) -> bool {
    match &e.kind {
        ast::ExprKind::Path(path) => matches!(&path[..], [only] if only.text == name),
        ast::ExprKind::Call(_, args) => args.iter().any(|arg| mentions(&arg.value, name)),
        ast::ExprKind::Unary(_, a) => mentions(a, name),
        ast::ExprKind::Binary(_, a, b) => mentions(a, name) || mentions(b, name),
        ast::ExprKind::If(c, a, b) => [c, a, b].into_iter().any(|e| mentions(e, name)),
        ast::ExprKind::Number { .. } | ast::ExprKind::Bool(_) | ast::ExprKind::Str(_) | ast::ExprKind::At(..) => false,
    }
}
