//! What the values of entry points stand for.
//!
//! In comes a [`Slot`]; out go its name, the field it holds, and where an argument gets its numbers from ([`Feed`]).
//! Never true here: a number is known.

use crate::codegen::plan::{KernelId, Plan};
use crate::runtime::machine::Bank;
use crate::step::{FieldId, Role};

/// The type of the numbers in a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Part {
    /// Real numbers, in the kernel's precision.
    Real,
    /// Truth values.
    Truth,
    /// Counters of random numbers.
    Counter,
}

impl Part {
    /// All of them.
    pub const ALL: [Part; 3] = [Part::Real, Part::Truth, Part::Counter];

    fn name(self) -> &'static str {
        match self {
            Part::Real => "reals",
            Part::Truth => "truths",
            Part::Counter => "counters",
        }
    }
}

/// What a value of an entry point stands for. Spaces, slots and so on by their numbers in the plan. The order is that of arguments.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Slot {
    /// A state of every cell: space, slot.
    State(u32, u32),
    /// What arrives along a delivery, and those that share its ring, in the present step: `[cell]`.
    Arriving(u32),
    /// What is on its way along a delivery, and those that share its ring: a sum for every step to come and every cell, `[(step, cell)]`; or, where matrices are multiplied with it,
    /// 1 for who has emitted and 0 for others in every step that is remembered, `[(step, sender)]`.
    Ring(u32),
    /// Where in the ring of a delivery the present step stands.
    Turn(u32),
    /// Who has emitted in the steps that edges remember, 1 or 0, `[(step, cell)]`: delivery; 0 for those who send, from 1 on for what is
    /// emitted by those who receive, by its kind.
    Past(u32, u32),
    /// Where in it the present step stands.
    PastTurn(u32, u32),
    /// A number of every cell that only `init` writes: space, slot.
    Cell(u32, u32),
    /// An output of every cell: space, slot.
    Output(u32, u32),
    /// A temp of every cell: space, slot. Nothing remains of it after a step.
    Temp(u32, u32),
    /// A value of `cell`: kernel, local. An argument of [`Kind::Line`](super::Kind::Line) only, which is never run.
    Local(KernelId, u32),
    /// What does not change during a run.
    Fixed(Fixed),
    /// Numbers that do not change during a call: `[column]`.
    Numbers(Part),
    /// Numbers that depend on time: `[row, column]`. For `step` a row for every step, otherwise one for every sample.
    Rows(Role, Part),
    /// How many steps to take, at most [`Kind::STEPS`](super::Kind::STEPS).
    Steps,
    /// What only code within a function sees.
    Inside(Inside),
    /// Samples, `[sample, cell]`: an entry of [`Stretch::fields`](crate::codegen::plan::Stretch::fields).
    Record(u32),
    /// Events, `[word, cell]`, a bit for every step: space, event.
    /// [`Stretch::step_of_bit`](crate::codegen::plan::Stretch::step_of_bit) tells which; for `step` in order.
    Events(u32, u32),
    /// Is every state finite at the end?
    Finite,
    /// What all steps of many trials have besides.
    Trial(Trial),
}

/// What the steps of many trials have besides; routes, senders and states by their numbers in the [`Course`](super::Course).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Trial {
    /// What the edges of a route carry: `[(delay, sender), target]`, or `[edge]` with a 0 behind the last: route.
    Carried(u32),
    /// By target, where the sender of each of its edges stands, `[row, target]`, of `[(delay, sender)]`: route.
    Senders(u32),
    /// The number of each of these edges, that of the 0 where there is none: route.
    EdgesIn(u32),
    /// By sender, where the target of each of its edges stands, `[row, sender]`, of `[(delay, target)]`: route.
    Targets(u32),
    /// The number of each of these edges: route.
    EdgesOut(u32),
    /// The sender of each edge: route.
    From(u32),
    /// Where its target stands, of `[(delay, target)]`: route.
    To(u32),
    /// Who has sent, `[row, (trial, cell)]`, row by step; the first rows stand for steps before the run: sender.
    Sent(u32),
    /// Who has sent in the last step, `[(trial, cell)]`; in a loop: sender.
    Last(u32),
    /// A state that going back reads, `[step, (trial, cell)]`: number.
    Tape(u32),
    /// The values of a parameter of cells that change, `[frame, (trial, cell)]`.
    Given,
    /// What samples bring without spikes in each step of a frame, `[frame, (trial, target)]`: drive.
    Brought(u32),
    /// The derivatives in that, added up over the steps of a frame: drive.
    Felt(u32),
    /// What is read out, `[sample, (trial, cell)]`: readout.
    Samples(u32),
    /// The slopes of a loss in that: readout.
    Slopes(u32),
    /// How many spikes there were in each trial; in a loop, of each cell: sender.
    Spikes(u32),
    /// The derivatives in what the edges carry, in the shape of that, without the 0: route.
    Weights(u32),
    /// What of the carried numbers stands where [`Trial::EdgesIn`] says; in a loop: route.
    CarriedIn(u32),
    /// And where [`Trial::EdgesOut`] says; in a loop: route.
    CarriedOut(u32),
    /// The derivatives in what arrives, `[step, (trial, target)]`, with rows of zeros for steps behind the end; in a loop: the first route to the receptor.
    Later(u32),
}

/// A table that is made from the set-up, once for a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Fixed {
    /// A loaded number of every cell: space, slot.
    Data(u32, u32),
    /// The sources of edges, `[row, target]` or, of slabs, `[row, place]`: space, entry of the edge table.
    Sources(u32, u32),
    /// Whether there is such an edge, `[row, target]`: space, entry of the edge table.
    Present(u32, u32),
    /// Which of the displacements of a word are edges, `[z, (y, x)]`: space, entry of the edge table, word.
    Mask(u32, u32, u32),
    /// The cells in the order of slabs, `[slab, place]`: space, entry of the edge table.
    Order(u32, u32),
    /// The place of every cell in that order: space, entry of the edge table.
    Places(u32, u32),
    /// The slab of every row of sources: space, entry of the edge table.
    Slabs(u32, u32),
    /// A number that each edge has for itself, `[row, target]` or, of slabs, `[row, place]`: space, entry of the edge table, number.
    OfEdge(u32, u32, u32),
    /// Which pairs are edges, `[source, target]`: space, entry of the edge table.
    Pairs(u32, u32),
    /// Where the edges of each sender begin, and the end of the last: delivery.
    Begins(u32),
    /// By sender, how far behind the present step of the ring an edge leads; as many places more as are looked at at once: delivery.
    Targets(u32),
    /// What each of them carries, or what all of them carry; or matrices, `[(delay, sender), cell]`: delivery.
    Carried(u32),
    /// How far behind the present step of [`Slot::Past`] it stands whether an event reaches an edge, `[edge]`: delivery, which past.
    Behind(u32, u32),
    /// The cell that each edge leads to, `[edge]`: delivery.
    Receivers(u32),
    /// The edges that lead to each cell, past the last of them the number of all edges, `[row, cell]`: delivery.
    Incoming(u32),
    /// What a state of each edge begins with, `[edge]`: delivery, slot.
    Begin(u32, u32),
    /// The times of the samples of a series, in ms.
    SeriesTimes(u32),
    /// Their values.
    SeriesValues(u32),
    /// Where a map of branched cells leads from each element, -1 for nowhere, `[element]`: branched cells, map.
    Tie(u32, u32),
    /// The elements that lead to each element, -1 for none, `[row, element]`: branched cells, map.
    Givers(u32, u32),
    /// The elements in the order of their elimination, the last ones first, `[place]`: branched cells, map.
    Elements(u32, u32),
    /// Where each element stands among these, `[element]`: branched cells, map.
    Standing(u32, u32),
    /// The place of the parent when a place is eliminated, -1 for none, `[place]`: branched cells, map.
    Parents(u32, u32),
    /// The place of the child then, -1 for none, `[place]`: branched cells, map.
    Children(u32, u32),
    /// The place of the parent that a stage eliminates, -1 for none, `[stage, place]`: branched cells, map.
    Above(u32, u32),
    /// The places of the children that a stage eliminates, -1 for none, `[stage, row, place]`: branched cells, map.
    Below(u32, u32),
    /// The key of all random numbers: its lower and its upper half.
    Seed,
}

/// What a loop carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Inside {
    /// How many steps are done.
    Step,
    /// How many samples are taken.
    Taken,
    /// How many steps were done at the last sample.
    First,
    /// How many lines of steps were.
    Number,
    /// The word of events of every cell that is being filled: space, event.
    Word(u32, u32),
    /// How many lines of steps are done since the last sample.
    LineOfSample,
    /// How many samples of a line are taken.
    SampleOfLine,
    /// How many steps are done since the last sample.
    StepOfSample,
    /// How many steps of a line are done.
    Place,
    /// The events of a line, a bit for every step: space, event.
    LineOfEvents(u32, u32),
}

/// Where an argument of an entry point that runs gets its numbers from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Feed {
    /// From earlier calls: states, what is on its way, and what `init` has computed for every cell.
    Earlier,
    /// From the set-up, once for a run.
    Fixed(Fixed),
    /// From the set-up, once for an entry point.
    Numbers(Part),
    /// From the set-up and the time of each row, for every call.
    Rows(Role, Part),
    /// From whoever calls: how many steps to take.
    Steps,
    /// From whoever runs many trials.
    Trial(Trial),
}

impl Slot {
    /// Does a run carry it from each of its calls to the next?
    pub fn is_carried(self) -> bool {
        match self {
            Slot::State(..)
            | Slot::Arriving(_)
            | Slot::Ring(_)
            | Slot::Turn(_)
            | Slot::Past(..)
            | Slot::PastTurn(..) => true,
            Slot::Cell(..)
            | Slot::Output(..)
            | Slot::Temp(..)
            | Slot::Local(..)
            | Slot::Fixed(_)
            | Slot::Numbers(_)
            | Slot::Rows(..)
            | Slot::Steps
            | Slot::Inside(_)
            | Slot::Record(_)
            | Slot::Events(..)
            | Slot::Finite
            | Slot::Trial(_) => false,
        }
    }

    /// Where it comes from as an argument, if it can be one.
    pub fn feed(self) -> Option<Feed> {
        match self {
            Slot::State(..)
            | Slot::Arriving(_)
            | Slot::Ring(_)
            | Slot::Turn(_)
            | Slot::Past(..)
            | Slot::PastTurn(..)
            | Slot::Cell(..) => Some(Feed::Earlier),
            Slot::Fixed(fixed) => Some(Feed::Fixed(fixed)),
            Slot::Numbers(part) => Some(Feed::Numbers(part)),
            Slot::Rows(role, part) => Some(Feed::Rows(role, part)),
            Slot::Steps => Some(Feed::Steps),
            Slot::Trial(trial) => Some(Feed::Trial(trial)),
            Slot::Output(..)
            | Slot::Temp(..)
            | Slot::Local(..)
            | Slot::Inside(_)
            | Slot::Record(_)
            | Slot::Events(..)
            | Slot::Finite => None,
        }
    }

    /// The field whose values per cell it stands for, if it does.
    pub fn field(self, plan: &Plan) -> Option<FieldId> {
        let space = |s: u32| plan.space(s);
        match self {
            Slot::State(s, at) => space(s).fields(Bank::State).nth(at as usize),
            Slot::Cell(s, at) => space(s).fields(Bank::Cell).nth(at as usize),
            Slot::Output(s, at) => space(s).fields(Bank::Output).nth(at as usize),
            Slot::Temp(s, at) => space(s).fields(Bank::Temp).nth(at as usize),
            Slot::Fixed(fixed) => fixed.field(plan),
            Slot::Local(..)
            | Slot::Arriving(_)
            | Slot::Ring(_)
            | Slot::Turn(_)
            | Slot::Past(..)
            | Slot::PastTurn(..)
            | Slot::Numbers(_)
            | Slot::Rows(..)
            | Slot::Steps
            | Slot::Inside(_)
            | Slot::Record(_)
            | Slot::Events(..)
            | Slot::Finite
            | Slot::Trial(_) => None,
        }
    }
}

impl Fixed {
    fn field(self, plan: &Plan) -> Option<FieldId> {
        match self {
            Fixed::Data(s, at) => plan.space(s).fields(Bank::Data).nth(at as usize),
            Fixed::Sources(..)
            | Fixed::Present(..)
            | Fixed::Mask(..)
            | Fixed::Order(..)
            | Fixed::Places(..)
            | Fixed::Slabs(..)
            | Fixed::OfEdge(..)
            | Fixed::Pairs(..)
            | Fixed::Begins(_)
            | Fixed::Targets(_)
            | Fixed::Carried(_)
            | Fixed::Behind(..)
            | Fixed::Receivers(_)
            | Fixed::Incoming(_)
            | Fixed::Begin(..)
            | Fixed::Tie(..)
            | Fixed::Givers(..)
            | Fixed::Elements(..)
            | Fixed::Standing(..)
            | Fixed::Parents(..)
            | Fixed::Children(..)
            | Fixed::Above(..)
            | Fixed::Below(..)
            | Fixed::SeriesTimes(_)
            | Fixed::SeriesValues(_)
            | Fixed::Seed => None,
        }
    }
}

/// What a slot is called: unique among the arguments, and among the results, of an entry point.
pub fn slot_name(plan: &Plan, slot: Slot) -> String {
    let space = |space: u32| plan.space(space);
    let of = |s: u32, bank: Bank, at: u32| field_name(plan, space(s).fields(bank), at);
    match slot {
        Slot::State(s, at) => of(s, Bank::State, at),
        Slot::Arriving(at) => format!("{}.arriving", delivery_name(plan, at)),
        Slot::Ring(at) => format!("{}.ring", delivery_name(plan, at)),
        Slot::Turn(at) => format!("{}.turn", delivery_name(plan, at)),
        Slot::Past(at, which) => past_name(plan, at, which, "emitted"),
        Slot::PastTurn(at, which) => past_name(plan, at, which, "turn"),
        Slot::Cell(s, at) => of(s, Bank::Cell, at),
        Slot::Output(s, at) => of(s, Bank::Output, at),
        Slot::Temp(s, at) => of(s, Bank::Temp, at),
        Slot::Local(kernel, local) => format!("{}.{local}", space(kernel.space).name),
        Slot::Fixed(fixed) => fixed_name(plan, fixed),
        Slot::Numbers(part) => format!("numbers.{}", part.name()),
        Slot::Rows(Role::Observe, part) => format!("sample_rows.{}", part.name()),
        Slot::Rows(Role::Init | Role::Step, part) => format!("rows.{}", part.name()),
        Slot::Steps => "steps".into(),
        Slot::Inside(inside) => inside_name(plan, inside),
        Slot::Record(at) => format!("record.{at}"),
        Slot::Events(s, at) => field_name(plan, space(s).events.iter().copied(), at),
        Slot::Finite => "finite".into(),
        Slot::Trial(trial) => trial_name(trial),
    }
}

fn field_name(plan: &Plan, mut fields: impl Iterator<Item = FieldId>, at: u32) -> String {
    let field = fields.nth(at as usize).expect("slots stand for fields of the plan");
    plan.fields[field.0 as usize].clone()
}

fn delivery_name(plan: &Plan, at: u32) -> &str {
    &plan.deliveries[at as usize].name
}

fn past_name(plan: &Plan, at: u32, which: u32, what: &str) -> String {
    let side = if which == 0 { "senders".to_string() } else { format!("receivers.{}", which - 1) };
    format!("{}.{side}.{what}", delivery_name(plan, at))
}

fn fixed_name(plan: &Plan, fixed: Fixed) -> String {
    let edges = |s: u32, at: u32| &plan.relation(plan.spaces[s as usize].edges[at as usize]).name;
    match fixed {
        Fixed::Data(s, at) => field_name(plan, plan.space(s).fields(Bank::Data), at),
        Fixed::Sources(s, at) => format!("{}.sources", edges(s, at)),
        Fixed::Present(s, at) => format!("{}.present", edges(s, at)),
        Fixed::Mask(s, at, word) => format!("{}.mask.{word}", edges(s, at)),
        Fixed::Order(s, at) => format!("{}.order", edges(s, at)),
        Fixed::Places(s, at) => format!("{}.places", edges(s, at)),
        Fixed::Slabs(s, at) => format!("{}.slabs", edges(s, at)),
        Fixed::OfEdge(s, at, number) => {
            let relation = plan.relation(plan.spaces[s as usize].edges[at as usize]);
            field_name(plan, relation.numbers.fields.iter().copied(), number)
        }
        Fixed::Pairs(s, at) => format!("{}.pairs", edges(s, at)),
        Fixed::Begins(at) => format!("{}.begins", delivery_name(plan, at)),
        Fixed::Targets(at) => format!("{}.targets", delivery_name(plan, at)),
        Fixed::Carried(at) => format!("{}.carried", delivery_name(plan, at)),
        Fixed::Behind(at, which) => past_name(plan, at, which, "behind"),
        Fixed::Receivers(at) => format!("{}.receivers", delivery_name(plan, at)),
        Fixed::Incoming(at) => format!("{}.incoming", delivery_name(plan, at)),
        Fixed::Begin(at, slot) => {
            let states = plan.deliveries[at as usize].kernels().map_or(&[][..], |space| &space.state);
            format!("{}.begin", field_name(plan, states.iter().copied(), slot))
        }
        Fixed::Tie(tree, tie) => format!("{}.elements", tie_name(plan, tree, tie)),
        Fixed::Givers(tree, tie) => format!("{}.givers", tie_name(plan, tree, tie)),
        Fixed::Elements(tree, tie) => format!("{}.order", tie_name(plan, tree, tie)),
        Fixed::Standing(tree, tie) => format!("{}.standing", tie_name(plan, tree, tie)),
        Fixed::Parents(tree, tie) => format!("{}.parents", tie_name(plan, tree, tie)),
        Fixed::Children(tree, tie) => format!("{}.children", tie_name(plan, tree, tie)),
        Fixed::Above(tree, tie) => format!("{}.above", tie_name(plan, tree, tie)),
        Fixed::Below(tree, tie) => format!("{}.below", tie_name(plan, tree, tie)),
        Fixed::SeriesTimes(at) => format!("{}.t", field_name(plan, plan.series.iter().copied(), at)),
        Fixed::SeriesValues(at) => format!("{}.values", field_name(plan, plan.series.iter().copied(), at)),
        Fixed::Seed => "seed".into(),
    }
}

fn tie_name(plan: &Plan, tree: u32, tie: u32) -> String {
    let (from, map, _) = plan.trees[tree as usize].ties[tie as usize];
    format!("{}.{}", plan.spaces[from.0 as usize].name, map.name())
}

fn inside_name(plan: &Plan, inside: Inside) -> String {
    let event = |s: u32, at: u32| field_name(plan, plan.spaces[s as usize].events.iter().copied(), at);
    match inside {
        Inside::Step
        | Inside::Taken
        | Inside::First
        | Inside::Number
        | Inside::LineOfSample
        | Inside::SampleOfLine
        | Inside::StepOfSample
        | Inside::Place => "counter".into(),
        Inside::Word(s, at) => format!("{}.word", event(s, at)),
        Inside::LineOfEvents(s, at) => format!("{}.line", event(s, at)),
    }
}

fn trial_name(trial: Trial) -> String {
    let (name, number) = match trial {
        Trial::Carried(route) => ("carried", route),
        Trial::Senders(route) => ("senders", route),
        Trial::EdgesIn(route) => ("edges_in", route),
        Trial::Targets(route) => ("targets", route),
        Trial::EdgesOut(route) => ("edges_out", route),
        Trial::From(route) => ("from", route),
        Trial::To(route) => ("to", route),
        Trial::Sent(sender) => ("sent", sender),
        Trial::Last(sender) => ("last", sender),
        Trial::Tape(state) => ("tape", state),
        Trial::Given => return "given".into(),
        Trial::Brought(drive) => ("brought", drive),
        Trial::Felt(drive) => ("felt", drive),
        Trial::Samples(readout) => ("samples", readout),
        Trial::Slopes(readout) => ("slopes", readout),
        Trial::Spikes(sender) => ("spikes", sender),
        Trial::Weights(route) => ("weights", route),
        Trial::CarriedIn(route) => ("carried_in", route),
        Trial::CarriedOut(route) => ("carried_out", route),
        Trial::Later(route) => ("later", route),
    };
    format!("{name}.{number}")
}
