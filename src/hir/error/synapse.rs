//! What can be wrong with synapse models, with directed connections and with drives.

use super::instead;
use super::run::spike_rule;
use crate::diag::{Code, Diagnostic, nearest};
use crate::hir::Cell;
use crate::hir::names::means_weight;
use crate::hir::projection::Shared;
use crate::hir::scope::{Role, Scope};
use crate::source::Span;
use crate::syntax::ast::Name;

/// What is wrong with a synapse, or where it is used.
pub(in crate::hir) enum SynapseError<'e> {
    /// No event does anything.
    NoEvent { synapse: &'e Name },
    /// There are two `on event` blocks.
    TwoEvents { second: Span, first: Span },
    /// An `on event` block is empty.
    EventDoesNothing { span: Span },
    /// An event sets what all synapses share.
    SetsShared { name: &'e str, span: Span, read: Span },
    /// An event reads what all synapses share.
    ReadsShared { name: &'e str, span: Span, read: Span },
    /// A spike of the cell behind, or a modulator, changes what all synapses share: who, and the name of the block.
    PostChangesShared { name: &'e str, by: (&'e str, &'e str), span: Span, read: Span },
    /// A state that events read begins at 0, and nothing moves it.
    StaysAtZero { name: &'e str, span: Span },
    /// A spike of the cell behind moves its voltage, or a modulator does.
    PostMovesVoltage { name: &'e Name, by_modulator: bool },
    /// Nothing says how much of a modulator there is.
    NoAmount { span: Span },
    /// An event carries more than a weight.
    TwoCarried { name: &'e Name },
    /// A modulator comes to a synapse that answers none.
    NotModulated { synapse: &'e Name, at: Span, span: Span },
    /// There is no synapse of a name at a place.
    NothingToModulate { synapse: &'e Name, known: &'e [&'e str] },
    /// A gap junction modulates.
    JunctionModulates { span: Span },
    /// A rule whose edges share numbers modulates.
    SharedModulates { span: Span },
    /// Synapses answer a modulator, and none comes.
    NoModulator { synapse: &'e str, span: Span },
    /// The weight has two units.
    TwoWeights { name: &'e Name },
    /// Events from outside come to a synapse that remembers.
    DriveRemembers { synapse: &'e Name, span: Span },
    /// A synapse that remembers would share its weight with others.
    SharedRemembers { synapse: &'e Name, span: Span },
    /// An event adds to what is no state.
    NotAState { name: &'e Name, synapse: &'e Scope<'e>, weight: Option<&'e str> },
    /// An event reads a weight that it does not have: how the event begins, and the unit that the weight needs.
    WeightNotNamed { head: &'e str, unit: &'e str, span: Span },
    /// A weight is a pure number, and what is added is none.
    WeightWithoutUnit { weight: &'e Name, unit: &'e str, span: Span },
    /// What an event adds depends on what changes.
    EventReads { what: &'e str, span: Span },
    /// What an event adds is not proportional to the weight.
    NotProportional { span: Span },
    /// The current has a name of its own.
    CurrentName { current: &'e Name },
    /// Something else is called `i`.
    CurrentTaken { first: Span },
    /// The synapse has no current, and does nothing to the voltage.
    NoEffect { synapse: &'e Name },
    /// A junction stands where a synapse is needed.
    Junction { via: &'e Name, span: Span },
    /// A synapse stands where a junction is needed.
    Synapse { via: &'e Name, span: Span },
    /// The model has no such parameter.
    UnknownParameter { synapse: &'e Name, argument: &'e Name, known: &'e [&'e str] },
    /// The cells that the events come from make no spikes.
    NoSpikes { cell: &'e Cell, span: Span },
    /// The source is more than the name of a population.
    SourceIsNoPopulation { span: Span },
    /// The target is no place for a synapse.
    NotAPlace { cell: &'e str, path: &'e str, known: &'e [&'e str], span: Span },
    /// The target has cells chosen.
    Selection { span: Span },
    /// The cell does not read `i_syn`.
    NoCurrentRead { cell: &'e str, span: Span },
    /// The cell has no potential called `v`.
    NoVoltage { cell: &'e str, read: Span, span: Span, sends: bool },
    /// A current per area flows into a cell without one, or a current into a compartment whose area is not known.
    NoArea { place: Option<&'e str>, span: Span },
    /// The connection lacks a key.
    Lacks { key: &'static str, example: String, span: Span },
    /// The events of this synapse have no weight.
    NoWeight { synapse: &'e Name, span: Span },
    /// The sum of this graded synapse has no weight: its name, and what it is of as it is written.
    SumWithoutWeight { synapse: &'e Name, sum: &'e str, value: &'e str, unit: &'e str, span: Span },
    /// A weight or a delay depends on a cell's number or a file.
    NotOfAnEdge { what: &'e str, span: Span },
    /// One of two populations does not say how far its cells are from each other.
    NoSpacing { population: &'e str, at: Span, span: Span },
    /// A weight that edges share depends on how far cells are from each other.
    DistanceOfAKernel { span: Span },
    /// How many places the largest is of depends on a parameter.
    PoolNotKnown { span: Span },
    /// Spikes of different steps meet where the largest of some sums is taken.
    PooledDelays { span: Span },
    /// Graded synapses lead to the places of which a target takes the largest.
    PooledGraded { synapse: &'e Name, span: Span },
    /// The name of an instance is that of something else in the cell.
    InstanceTaken { name: &'e Name, cell: &'e str },
    /// A line through a synapse of the same cells is called like that.
    LineTaken { name: &'e Name },
    /// An instance that is there already has other arguments.
    OtherArguments { name: &'e Name, span: Span },
    /// The times of a drive stand in a file.
    TimesOfAFile { span: Span },
    /// A synapse has two sums.
    TwoSums { second: Span, first: Span },
    /// A synapse passes on the voltage and answers events.
    SumAndEvent { sum: Span, event: Span },
    /// What a connection brings is not a multiple of its weight.
    SumNotProportional { span: Span },
    /// The weight of a connection is read by what is not of a connection.
    WeightOutsideSum { name: &'e str, span: Span },
    /// What is sent depends on the voltage of the cell that gets it.
    SendsVoltageBehind { span: Span, sum: &'e Name },
    /// What is sent depends on what comes.
    SumOfItself { span: Span, sum: &'e Name },
    /// What a cell that sends has is read by one that receives.
    OfTheSender { name: &'e str, span: Span, sum: &'e Name },
    /// A graded synapse has a delay.
    GradedDelay { span: Span },
    /// A connection tells of its dendrite where no spike of the target comes to the synapse.
    NoDendrite { synapse: &'e Name, modulates: bool, span: Span },
    /// A line gives its synapses a value of what all on a cell share.
    NotForItself { synapse: &'e Name, name: &'e Name, why: Shared },
    /// Events from outside come to a graded synapse.
    GradedDrive { synapse: &'e Name, span: Span },
    /// Events come from what is no source of events.
    NotASource { name: Option<&'e str>, span: Span },
}

impl From<SynapseError<'_>> for Diagnostic {
    fn from(error: SynapseError<'_>) -> Diagnostic {
        use SynapseError as E;
        match error {
            E::NoEvent { synapse } => {
                let message = format!("nothing happens in synapse `{}` when a spike arrives", synapse.text);
                Diagnostic::new(Code::MissingKey, synapse.span, message, "no `on event` block")
                    .help("add `on event(weight: nS) { g += weight }`")
            }
            E::TwoEvents { second, first } => Diagnostic::new(
                Code::DuplicateKey,
                second,
                "a synapse has one block for each kind of event",
                "a second one",
            )
            .see(first, "the first"),
            E::EventDoesNothing { span } => {
                Diagnostic::new(Code::BadEvent, span, "this event does nothing", "it is empty")
                    .help("write what is added to a state: `on event(weight: nS) { g += weight }`")
            }
            E::SetsShared { name, span, read } => {
                let message = format!("an event cannot set `{name}`");
                Diagnostic::new(Code::BadEvent, span, message, "several events may arrive at once")
                    .see(read, "all synapses of a cell share it, since this adds up what they do")
                    .help(format!("add to it: `{name} += ...`"))
            }
            E::ReadsShared { name, span, read } => {
                let message = format!("what an event does cannot depend on `{name}`");
                Diagnostic::new(Code::BadEvent, span, message, "several events may arrive at once")
                    .see(read, "all synapses of a cell share it, since this adds up what they do")
                    .note("an event reads its weight, parameters, and states that every synapse has for itself: what only events read")
            }
            E::PostChangesShared { name, by: (who, block), span, read } => {
                let message = format!("{who} cannot change `{name}`");
                Diagnostic::new(Code::BadEvent, span, message, "once for every synapse")
                    .see(read, "all synapses of a cell share it, since this adds up what they do")
                    .note(format!("`on {block}` changes the weight and states that every synapse has for itself"))
            }
            E::StaysAtZero { name, span } => {
                let message = format!("`{name}` is 0 for ever: it begins there, and no event changes it");
                Diagnostic::new(Code::NoEffect, span, message, "events read it")
                    .help(format!("change it in `on pre` or `on post`: `{name} += 1`"))
            }
            E::PostMovesVoltage { name, by_modulator: true } => {
                let message = "a modulator cannot move the voltage of the cell behind";
                Diagnostic::new(Code::BadEvent, name.span, message, "once for every synapse").help(
                    "connect its source through a synapse of its own, too: `on event(weight: mV) { v += weight }`",
                )
            }
            E::NoAmount { span } => {
                let message = "nothing says how much of the modulator there is";
                Diagnostic::new(Code::BadEvent, span, message, "no amount")
                    .help("give the weight of the synapse and the amount names: `on modulator(weight: nS, amount: 1) { ... }`")
            }
            E::TwoCarried { name } => {
                let message = "an event carries one number, its weight";
                Diagnostic::new(Code::BadEvent, name.span, message, "a second one")
                    .help("what else the synapse needs is a `param` of it; only `on modulator(weight: nS, amount: 1)` has two")
            }
            E::NotModulated { synapse, at, span } => {
                let message = format!("synapse `{}` answers no modulator", synapse.text);
                Diagnostic::new(Code::BadTarget, span, message, "nothing would happen")
                    .see(at, "no `on modulator` in here")
                    .help("say in the synapse what it does: `on modulator(weight: nS, amount: 1) { ... }`; spikes that arrive themselves come `via` a synapse")
            }
            E::NothingToModulate { synapse, known } => {
                let message = format!("there is no synapse `{}` here to modulate", synapse.text);
                let d = Diagnostic::new(
                    Code::UnknownName,
                    synapse.span,
                    message,
                    "no connection leads to the target through it",
                );
                match known {
                    [] => d.help(format!("connect it first: `connect a -> b via {} {{ ... }}`", synapse.text)),
                    known => instead(d, &synapse.text, known),
                }
            }
            E::JunctionModulates { span } => {
                let message = "spikes modulate synapses, and `--` joins compartments by gap junctions";
                Diagnostic::new(Code::BadTarget, span, message, "no spikes go along it")
                    .help("write `connect reward -> cells modulating Synapse { ... }`")
            }
            E::SharedModulates { span } => {
                let message = "a modulator has no kernel";
                Diagnostic::new(Code::BadTarget, span, message, "the connections of this rule share their weights")
                    .help("take a rule that gives each connection its own, such as `all_to_all`")
            }
            E::NoModulator { synapse, span } => {
                let message =
                    format!("no modulator reaches the synapses `{synapse}`: what they do `on modulator` never happens");
                let (place, own) = synapse
                    .rsplit_once('.')
                    .map_or((String::new(), synapse), |(place, own)| (format!(".{place}"), own));
                let line = format!(
                    "connect reward -> cells{place} modulating {own} {{ rule = all_to_all; weight = 1; delay = 1 ms }}"
                );
                Diagnostic::new(Code::NoEffect, span, message, "this answers one")
                    .help(format!("connect a source of events: `{line}`; or `drive` them"))
            }
            E::PostMovesVoltage { name, by_modulator: false } => {
                let message = "a spike of the cell behind cannot move its own voltage";
                Diagnostic::new(Code::BadEvent, name.span, message, "once for every synapse")
                    .help("what a spike does to its own cell stands in the cell: `spike when ... { v = -65 mV }`")
            }
            E::TwoWeights { name } => Diagnostic::new(
                Code::BadEvent,
                name.span,
                "a synapse has one weight",
                "another unit than in `on event`",
            ),
            E::DriveRemembers { synapse, span } => {
                let message =
                    format!("synapse `{}` changes with the spikes of the two cells that it joins", synapse.text);
                Diagnostic::new(Code::BadTarget, span, message, "events from outside come from no cell")
                    .help("connect a population, such as one of `std.cells.generators.Poisson`, or drive through a synapse that keeps its weight")
            }
            E::SharedRemembers { synapse, span } => {
                let message = format!(
                    "the connections of this rule share their weights, and `{}` changes each of them",
                    synapse.text
                );
                Diagnostic::new(Code::BadTarget, span, message, "a shared weight has no spikes of its own to learn from")
                    .help("take a synapse that keeps its weight, or a rule that gives each connection its own, such as `pooling`")
            }
            E::NotAState { name, synapse, weight } => {
                let message = format!("`{}` is not a state of this synapse", name.text);
                let is_state = |role: Role| matches!(role, Role::State { .. } | Role::Voltage);
                let states: Vec<&str> = synapse
                    .entries
                    .iter()
                    .filter(|e| is_state(e.role))
                    .map(|e| e.name.as_str())
                    .chain(weight)
                    .collect();
                let d =
                    Diagnostic::new(Code::UnknownName, name.span, message, "an event changes states and the weight");
                match weight.and_then(|weight| means_weight(&name.text, weight)) {
                    Some(help) => d.help(help),
                    None => instead(d, &name.text, &states),
                }
            }
            E::WeightNotNamed { head, unit, span } => {
                let message = "this event has no `weight`";
                Diagnostic::new(Code::UnknownName, span, message, "a weight is not known here")
                    .help(format!("give the event its weight, with its unit: `{head}(weight{unit})`"))
            }
            E::WeightWithoutUnit { weight, unit, span } => {
                let name = &weight.text;
                let message = format!("`{name}` needs a unit");
                Diagnostic::new(Code::MissingUnit, weight.span, message, "a pure number as it stands")
                    .see(span, "this needs more than a number")
                    .help(format!("write the unit behind it: `{name}{unit}`"))
                    .fix(weight.span, name, format!("{name}{unit}"))
            }
            E::EventReads { what, span } => {
                let message = format!("what an event adds depends on `{what}`");
                Diagnostic::new(Code::BadEvent, span, message, "this changes while the model runs")
                    .note("so far an event adds a multiple of its weight, the factor made of parameters")
            }
            E::NotProportional { span } => {
                let message = "what an event adds is not a multiple of its weight";
                Diagnostic::new(Code::BadEvent, span, message, "twice the weight must add twice as much")
                    .note("events that arrive together are added up before they act")
            }
            E::CurrentName { current } => {
                let message = format!("the current of a synapse is `i`, not `{}`", current.text);
                Diagnostic::new(Code::UnknownName, current.span, message, "another name")
                    .help("write `current i = ...`")
            }
            E::CurrentTaken { first } => Diagnostic::new(
                Code::DuplicateName,
                first,
                "`i` is the current of a synapse",
                "this needs another name",
            ),
            E::NoEffect { synapse } => {
                let message = format!("synapse `{}` has no current", synapse.text);
                Diagnostic::new(Code::MissingCurrent, synapse.span, message, "nothing of it reaches the cell").help(
                    "add `current i = g * (v - erev)`, outward positive, or let events add to the voltage: `v += weight`",
                )
            }
            E::Junction { via, span } => {
                let message = format!("`{}` is a gap junction, which joins two sides", via.text);
                Diagnostic::new(Code::BadTarget, span, message, "one direction only")
                    .help("write `--` in place of `->`")
            }
            E::Synapse { via, span } => {
                let message = format!("`{}` is a synapse, which leads one way", via.text);
                Diagnostic::new(Code::BadTarget, span, message, "no direction").help("write `->` in place of `--`")
            }
            E::UnknownParameter { synapse, argument, known } => {
                let message = format!("synapse `{}` has no parameter `{}`", synapse.text, argument.text);
                let d = Diagnostic::new(Code::UnknownParameter, argument.span, message, "no such parameter");
                instead(d, &argument.text, known)
            }
            E::NoSpikes { cell, span } => {
                let message = format!("cell `{}` makes no spikes", cell.name);
                Diagnostic::new(Code::BadTarget, span, message, "no events come from here")
                    .help(format!("add a rule to the cell: `{}`", spike_rule(cell)))
            }
            E::SourceIsNoPopulation { span } => {
                let message = "events come from the spikes of a population";
                Diagnostic::new(Code::BadTarget, span, message, "more than the name of one")
            }
            E::NotAPlace { cell, path, known, span } => {
                let message = match path {
                    "" => format!("cell `{cell}` has several compartments, and a synapse sits on one"),
                    path => format!("a synapse sits on a cell or a compartment, and cell `{cell}` has no `{path}`"),
                };
                let d = Diagnostic::new(Code::BadTarget, span, message, "not a compartment");
                if known.is_empty() { d.note("it has none") } else { d.note(format!("it has {}", known.join(", "))) }
            }
            E::Selection { span } => {
                let message = "the rule decides which cells are connected";
                Diagnostic::new(Code::BadTarget, span, message, "no selection of cells can stand here")
                    .help("give the pairs in a file: `rule = edges(\"pairs.csv\")`")
            }
            E::NoCurrentRead { cell, span } => {
                let message = format!("the current of this synapse does not reach cell `{cell}`");
                Diagnostic::new(Code::BadTarget, span, message, "the cell does not read `i_syn`").help(
                    "`i_syn` is the sum of all currents out of a point neuron: `v' = (-g_l * (v - e_l) - i_syn) / c`",
                )
            }
            E::NoVoltage { cell, read, span, sends } => {
                let message = format!("this synapse needs a potential `v`, and cell `{cell}` has none");
                let label = if sends { "no `v` in mV" } else { "no state `v` in mV" };
                let d = Diagnostic::new(Code::BadTarget, span, message, label).see(read, "`v` is needed here");
                if sends { d.help("a potential may be given: `param v = 0 mV`") } else { d }
            }
            E::NoArea { place, span } => {
                let whose = place.map_or("a point neuron".to_string(), |name| format!("compartment `{name}`"));
                let message = format!("this current needs the area of the membrane, and {whose} has none");
                let d = Diagnostic::new(Code::BadTarget, span, message, "no `area`");
                match place {
                    None => d.help("on a point neuron the current is one in amperes: weights in nS, not in mS/cm2"),
                    Some(_) => d.help("add an area such as `area = 1000 um2` to the compartment"),
                }
            }
            E::Lacks { key, example, span } => {
                let message = format!("this connection has no {key}");
                Diagnostic::new(Code::MissingKey, span, message, format!("no `{key}`"))
                    .help(format!("add `{example}` in braces behind it"))
            }
            E::NoWeight { synapse, span } => {
                let message = format!("the events of synapse `{}` carry no weight", synapse.text);
                Diagnostic::new(Code::UnknownKey, span, message, "nothing reads it")
                    .help("declare it in the synapse: `on event(weight: nS) { g += weight }`")
            }
            E::SumWithoutWeight { synapse, sum, value, unit, span } => {
                let message = format!("the sum of synapse `{}` has no weight", synapse.text);
                Diagnostic::new(Code::UnknownKey, span, message, "nothing reads it")
                    .help(format!("declare it in the synapse: `sum {sum}(weight{unit}) = weight * {value}`"))
            }
            E::NotOfAnEdge { what, span } => {
                let message = format!("{what} is of an edge, not of a cell");
                Diagnostic::new(Code::BadValue, span, message, "this differs from cell to cell")
                    .note("it is a number, drawn for every edge (`weight ~ normal(1 nS, 0.1 nS)`), in the file that lists the edges, or of `all_to_all` and `one_to_one` in a file with a number for each edge")
            }
            E::NoSpacing { population, at, span } => {
                let message = format!("the distance of cells is not known, since `{population}` has no spacing");
                Diagnostic::new(Code::BadValue, span, message, "between this population and one with a spacing")
                    .see(at, "no spacing")
                    .help("say how far its cells are from each other: `{ spacing = 50 um }` behind its sizes")
            }
            E::DistanceOfAKernel { span } => {
                let message = "connections of a convolution share their weights";
                Diagnostic::new(Code::BadValue, span, message, "this differs from connection to connection")
                    .note("delays may depend on the distance; a kernel may come from a file")
            }
            E::PoolNotKnown { span } => {
                let message = "how many places `max_pool` takes the largest of is not known";
                Diagnostic::new(Code::BadValue, span, message, "this can be set from outside")
                    .note("what arrives is added up at each place for itself, so that the equations depend on their number")
                    .help("write a number: `max_pool = 2`")
            }
            E::PooledDelays { span } => {
                let message = "connections of a convolution with `max_pool` have one delay";
                Diagnostic::new(Code::BadValue, span, message, "this differs from connection to connection")
                    .note("the largest is that of the sums of one step, which spikes of one step make up")
                    .help("write `delay = 1 ms`, or take the mean: `pool` in place of `max_pool`")
            }
            E::PooledGraded { synapse, span } => {
                let message = format!(
                    "synapse `{}` is graded, and `max_pool` takes the largest of what spikes bring",
                    synapse.text
                );
                Diagnostic::new(Code::BadTarget, span, message, "no spikes go along it")
                    .help("take the mean: `pool` in place of `max_pool`")
            }
            E::InstanceTaken { name, cell } => {
                let message = format!("cell `{cell}` has something else called `{}`", name.text);
                Diagnostic::new(Code::DuplicateName, name.span, message, "this name is taken")
                    .help("give the synapse another name: `via Model as other`")
            }
            E::LineTaken { name } => {
                let message = format!("`{}` is what a line above is called", name.text);
                Diagnostic::new(Code::DuplicateName, name.span, message, "this name is taken")
                    .note("lines that connect the same cells through one synapse have a number behind its name")
                    .help("give the synapse another name")
            }
            E::OtherArguments { name, span } => {
                let message = format!("`{}` is there already, with other values", name.text);
                Diagnostic::new(Code::DuplicateName, span, message, "these differ from the first ones")
                    .help("give the synapse another name: `via Model as other`")
            }
            E::TimesOfAFile { span } => {
                let message = "`times` takes times that are written out, such as `times(5 ms, 10 ms)`";
                Diagnostic::new(Code::BadValue, span, message, "a file").help(
                    "spikes of a file, which has a row for each with its time and its cell: `from spikes(\"spikes.csv\")`",
                )
            }
            E::TwoSums { second, first } => {
                Diagnostic::new(Code::DuplicateKey, second, "a synapse has one sum", "a second one")
                    .see(first, "the first")
            }
            E::SumAndEvent { sum, event } => {
                let message = "a synapse follows the voltage of the cell before it, or its spikes";
                Diagnostic::new(Code::BadEvent, event, message, "this answers events")
                    .see(sum, "and this follows the voltage")
                    .help("make two synapses of it, and connect the cells through both")
            }
            E::SumNotProportional { span } => {
                let message = "what a connection brings is not a multiple of its weight";
                Diagnostic::new(Code::BadEvent, span, message, "twice the weight must bring twice as much")
                    .help("write `sum g(weight: nS) = weight * s`, where `s` follows from `v_pre`")
            }
            E::WeightOutsideSum { name, span } => {
                let message = format!("`{name}` is of a connection: only the sum reads it");
                Diagnostic::new(Code::BadEvent, span, message, "of one of many connections")
            }
            E::SendsVoltageBehind { span, sum } => {
                let message = "what a cell sends cannot depend on the voltage of the one that gets it";
                Diagnostic::new(Code::BadEvent, span, message, "the voltage of the cell behind the synapse")
                    .see(sum.span, "this sum is made of it")
                    .help("`v_pre` is that of the cell before it; what depends on `v` stands in the current: `current i = g * (v - erev)`")
            }
            E::SumOfItself { span, sum } => {
                let message = format!("what a cell sends cannot depend on `{}`, which others get", sum.text);
                Diagnostic::new(Code::BadEvent, span, message, "what comes to the cell behind the synapse")
                    .see(sum.span, "this sum is made of it")
            }
            E::OfTheSender { name, span, sum } => {
                let message = format!("`{name}` is of each cell before the synapse, and this is of the cell behind it");
                Diagnostic::new(Code::BadEvent, span, message, "several cells may send")
                    .see(sum.span, "what they bring is added up here")
                    .help(format!("let it come through the sum: `sum {}(weight: nS) = weight * ...`", sum.text))
            }
            E::GradedDelay { span } => {
                let message = "what follows a voltage has no delay";
                Diagnostic::new(Code::UnknownKey, span, message, "a delay")
                    .note("so far delays are those of spikes; a graded synapse passes on the voltage of this moment")
                    .help("leave it out")
            }
            E::NoDendrite { synapse, modulates, span } => {
                let name = &synapse.text;
                let message = match modulates {
                    true => format!("what modulates `{name}` comes along no dendrite"),
                    false => format!("synapse `{name}` does not answer the spikes of its target"),
                };
                let label = "how much of the delay they take to the synapse, too";
                Diagnostic::new(Code::UnknownKey, span, message, label).help(match modulates {
                    true => "write it where the synapses are connected",
                    false => "leave it out: only the whole delay matters here",
                })
            }
            E::NotForItself { synapse, name, why } => {
                let message = format!("the synapses on a cell share `{}`", name.text);
                let d = Diagnostic::new(Code::BadTarget, name.span, message, "a line cannot have its own");
                match why {
                    Shared::RemembersNothing => d.note(format!(
                        "`{}` remembers nothing of a single synapse: all of them on a cell act on one sum",
                        synapse.text
                    )),
                    Shared::Sum => d.note("it is a sum: every event adds to it, and none reads it"),
                    Shared::ReadBy(span) => d.see(span, "what they share depends on it"),
                }
                .help(match why {
                    Shared::Sum => "leave it out".to_string(),
                    Shared::RemembersNothing | Shared::ReadBy(_) => format!(
                        "say it behind the synapse, `via {}({} = ...)`: what differs has a sum of its own",
                        synapse.text, name.text
                    ),
                })
            }
            E::GradedDrive { synapse, span } => {
                let message = format!("synapse `{}` follows the voltage of the cell before it", synapse.text);
                Diagnostic::new(Code::BadTarget, span, message, "events from outside come from no cell")
            }
            E::NotASource { name, span } => {
                let message = "a drive needs a source of events";
                let d = Diagnostic::new(Code::BadValue, span, message, "not a source of events");
                match name.and_then(|name| nearest(name, ["poisson", "times", "spikes"])) {
                    Some(near) => d.help(format!("did you mean `{near}`?")),
                    None => d.help("write `from poisson(rate = 300 Hz)`, `from times(10 ms, 20 ms)` or `from spikes(\"spikes.csv\")`"),
                }
            }
        }
    }
}
