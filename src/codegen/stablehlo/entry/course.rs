//! All steps of many trials in one entry point: forward with what going back needs, and back.
//!
//! In comes a [`Course`], whose fields are those of the program of its direction; out go loops over the steps, with what events bring between cells
//! inside of them.
//! Never true here: a weight is part of a function, or a loss is known.
//!
//! In step `k` there arrives what was sent `d` steps before along an edge with a delay of `d` steps, as in [`crate::simulate::trials`]. Who has sent is kept for
//! all steps, and so is what arrives on the way back, so that derivatives in the weights of matrices are one product behind the loop.

use super::{Binary, Builder, Compare, Element, Emitter, Literal, Port, Role, STEP, Slot, Slots, Tables};
use super::{TensorType, Value, advance, below, real, repeat, stored, whole};
use crate::codegen::stablehlo::slot::Trial;
use crate::runtime::machine::Bank;
use crate::step::FieldId;

/// Many trials of a network, in one direction.
#[derive(Debug, Clone, PartialEq)]
pub struct Course {
    /// How many trials there are. The cells of a population stand trial by trial.
    pub trials: usize,
    /// How many steps they take.
    pub steps: usize,
    /// The populations that send.
    pub senders: Vec<Sender>,
    /// Edges between cells of a trial.
    pub routes: Vec<Route>,
    /// Values of cells that change.
    pub given: Option<Given>,
    /// What samples bring without spikes.
    pub drives: Vec<Drive>,
    /// The states that going back reads, with their elements in all trials.
    pub tape: Vec<(FieldId, usize)>,
    /// What a loss reads.
    pub readouts: Vec<Readout>,
}

/// A population that sends.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sender {
    /// Its cells in a trial.
    pub cells: usize,
    /// The state that tells who has sent, or what; on the way back its adjoint, if that is wanted.
    pub sent: Option<FieldId>,
    /// Does it send spikes, and not what it has computed?
    pub spikes: bool,
}

/// Values of cells that change from frame to frame.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Given {
    /// Which values.
    pub of: FieldId,
    /// How many there are in all trials.
    pub elements: usize,
    /// How many frames there are.
    pub frames: usize,
    /// How many steps each of them lasts.
    pub steps: usize,
}

/// What samples bring at a receptor at every moment, without spikes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Drive {
    /// The state that what arrives is written into; on the way back its adjoint, if that is wanted.
    pub arrived: Option<FieldId>,
    /// Its targets in all trials.
    pub elements: usize,
    /// How many frames there are.
    pub frames: usize,
    /// How many steps each of them lasts.
    pub steps: usize,
}

/// A projection.
#[derive(Debug, Clone, PartialEq)]
pub struct Route {
    /// The number of the sender.
    pub from: usize,
    /// Its targets in a trial.
    pub targets: usize,
    /// The state that what arrives is written into; on the way back its adjoint, if that is wanted.
    pub arrived: Option<FieldId>,
    /// Are derivatives in what its edges carry wanted?
    pub learns: bool,
    /// Do derivatives go back along it to the sender?
    pub returns: bool,
    /// All delays, in steps, in order.
    pub delays: Vec<usize>,
    /// How its edges are stored.
    pub form: Form,
}

/// How the edges of a route are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// A matrix for each delay, with 0 where there is no edge.
    Matrices,
    /// Lists of edges, for targets and for senders: so many edges, and so many rows of both lists.
    Lists {
        /// How many edges there are.
        edges: usize,
        /// The most edges of a target.
        into: usize,
        /// The most edges of a sender.
        out_of: usize,
    },
}

/// What a loss reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Readout {
    /// How often each cell of a sender has sent: one sample.
    Count(usize),
    /// Whether each of them sends: a sample for each step.
    Spikes(usize),
    /// A state of so many elements after each step; on the way back the field of the slopes in it, if that is wanted.
    State(Option<FieldId>, usize),
}

impl Course {
    /// How many rows of [`Trial::Sent`] stand for steps before the first, in which nobody sends; row `ahead - 1` is of step 0.
    pub fn ahead(&self, sender: usize) -> usize {
        let from = self.routes.iter().filter(|route| route.from == sender);
        from.filter_map(|route| route.delays.last().copied()).max().unwrap_or(1)
    }

    /// How many samples each readout has, and the elements of a sample.
    pub fn samples(&self) -> impl Iterator<Item = [usize; 2]> {
        let of_sender = |sender: usize| self.senders[sender].cells * self.trials;
        self.readouts.iter().map(move |readout| match *readout {
            Readout::Count(sender) => [1, of_sender(sender)],
            Readout::Spikes(sender) => [self.steps, of_sender(sender)],
            Readout::State(_, elements) => [self.steps, elements],
        })
    }

    /// The readouts, with their numbers.
    fn readouts(&self) -> impl Iterator<Item = (u32, Readout)> {
        (0..).zip(self.readouts.iter().copied())
    }

    /// Those that send along edges.
    fn sending(&self) -> impl Iterator<Item = (usize, &Sender)> {
        let sends = |at: usize| self.routes.iter().any(|route| route.from == at && !route.delays.is_empty());
        self.senders.iter().enumerate().filter(move |(at, _)| sends(*at))
    }

    /// How many numbers are kept for all steps: states, who has sent, what is read out with the slopes in it, and what arrives on the way back.
    pub fn kept(&self) -> usize {
        let tape: usize = self.tape.iter().map(|(_, elements)| (self.steps + 1) * elements).sum();
        let sent = |(at, sender): (usize, &Sender)| (self.steps + self.ahead(at)) * self.trials * sender.cells;
        let sent: usize = self.sending().map(sent).sum();
        let firsts = self.routes().filter(|route| self.first(route.2) == route.1);
        let later = firsts.map(|(_, _, to, route)| (self.steps + self.longest(to)) * self.trials * route.targets);
        let samples: usize = self.samples().map(|[samples, elements]| 2 * samples * elements).sum();
        tape + sent + later.sum::<usize>() + samples
    }

    /// What samples bring in a direction, with its number.
    fn drives(&self) -> impl Iterator<Item = (u32, FieldId, &Drive)> {
        let all = (0..).zip(&self.drives).filter(|(_, drive)| drive.elements > 0);
        all.filter_map(|(at, drive)| Some((at, drive.arrived?, drive)))
    }

    /// The shape of what the edges of a route carry, as derivatives have it.
    pub fn carried(&self, route: usize) -> Vec<usize> {
        let Route { from, targets, ref delays, form, .. } = self.routes[route];
        match form {
            Form::Matrices => vec![delays.len() * self.senders[from].cells, targets],
            Form::Lists { edges, .. } => vec![edges],
        }
    }

    /// The routes that bring something in a direction; those without edges bring nothing.
    fn routes(&self) -> impl Iterator<Item = (usize, u32, FieldId, &Route)> {
        let all = self.routes.iter().enumerate().filter(|(_, route)| !route.delays.is_empty());
        all.filter_map(|(at, route)| Some((at, at as u32, route.arrived?, route)))
    }

    /// The first of the routes that lead to the same receptor.
    fn first(&self, arrived: FieldId) -> u32 {
        self.routes().find(|route| route.2 == arrived).map_or(0, |route| route.1)
    }

    /// The longest delay of the routes that lead to a receptor.
    fn longest(&self, arrived: FieldId) -> usize {
        let there = self.routes().filter(|route| route.2 == arrived);
        there.filter_map(|route| route.3.delays.last().copied()).max().unwrap_or(1)
    }

    /// Those that hand on what has come back to having sent.
    fn sends_back(&self, route: &Route) -> bool {
        route.returns && self.senders[route.from].sent.is_some()
    }
}

/// A table of whole numbers.
fn table(trial: Trial, dims: &[usize]) -> Port {
    Port { slot: Slot::Trial(trial), ty: TensorType::new(Element::I32, dims) }
}

/// The frame of a step, of so many that last for so many steps; the last one stays.
fn frame(b: &mut Builder, step: Value, (frames, steps): (usize, usize)) -> Value {
    let each = whole(b, steps as u32);
    let frame = if steps > 1 { b.binary(Binary::Divide, step, each) } else { step };
    let last = whole(b, frames as u32 - 1);
    b.binary(Binary::Minimum, frame, last)
}

impl Emitter<'_> {
    /// The state of a plan that a field is.
    fn state(&self, field: FieldId) -> Slot {
        match self.plan.slot(field) {
            Some((space, Bank::State, slot)) => Slot::State(space.0, slot),
            other => panic!("what goes between trials is a state, not {other:?}"),
        }
    }

    fn real(&self) -> Element {
        real(self.plan.precision)
    }

    fn zeros(&self, b: &mut Builder, dims: &[usize]) -> Value {
        b.constant(Literal::Real(0.0), self.real(), dims)
    }

    /// What the edges of a route carry, as an argument.
    fn carried(&self, course: &Course, at: usize) -> Port {
        let mut dims = course.carried(at);
        if let Form::Lists { .. } = course.routes[at].form {
            dims[0] += 1;
        }
        Port { slot: Slot::Trial(Trial::Carried(at as u32)), ty: TensorType::new(self.real(), &dims) }
    }

    /// The values of cells that change, if the program reads them, and where.
    fn given(&self, course: &Course) -> Option<(Given, Slot)> {
        let given = course.given.filter(|given| given.elements > 0)?;
        match self.plan.slot(given.of) {
            Some((space, Bank::Cell, slot)) => Some((given, Slot::Cell(space.0, slot))),
            Some((_, Bank::State | Bank::Data | Bank::Output | Bank::Temp, _)) | None => None,
        }
    }

    /// The frames of what changes, as an argument.
    fn frames(&self, course: &Course) -> Option<Port> {
        let (given, _) = self.given(course)?;
        let ty = TensorType::new(self.real(), &[given.frames, given.elements]);
        Some(Port { slot: Slot::Trial(Trial::Given), ty })
    }

    /// An array with a row for each frame.
    fn drive(&self, trial: Trial, drive: &Drive) -> Port {
        Port { slot: Slot::Trial(trial), ty: TensorType::new(self.real(), &[drive.frames, drive.elements]) }
    }

    /// The frame of a step takes the place of the one before, and all that follows from it is computed anew.
    fn show(&self, b: &mut Builder, tables: &Tables, slots: &mut Slots, course: &Course, step: Value) {
        let Some((given, slot)) = self.given(course) else { return };
        let frame = frame(b, step, (given.frames, given.steps));
        let values = b.row(slots[&Slot::Trial(Trial::Given)], frame);
        slots.insert(slot, values);
        self.cells_once(b, tables, slots);
    }

    /// The arguments of the way forward, besides those of any step.
    pub(super) fn given_forward(&self, course: &Course) -> Vec<Port> {
        let mut ports: Vec<Port> = self.frames(course).into_iter().collect();
        ports.extend(course.drives().map(|(number, _, drive)| self.drive(Trial::Brought(number), drive)));
        for (at, number, _, route) in course.routes() {
            ports.push(self.carried(course, at));
            if let Form::Lists { into, .. } = route.form {
                ports.push(table(Trial::Senders(number), &[into, route.targets]));
                ports.push(table(Trial::EdgesIn(number), &[into, route.targets]));
            }
        }
        ports
    }

    /// What going back is given of the way forward.
    fn left(&self, course: &Course) -> Vec<Port> {
        let tape = (0..).zip(&course.tape).map(|(at, &(field, elements))| {
            let ty = TensorType::new(stored(self.plan, self.state(field)), &[course.steps + 1, elements]);
            Port { slot: Slot::Trial(Trial::Tape(at)), ty }
        });
        let sent = course.sending().map(|(at, sender)| {
            let dims = [course.steps + course.ahead(at), course.trials * sender.cells];
            Port { slot: Slot::Trial(Trial::Sent(at as u32)), ty: TensorType::new(self.real(), &dims) }
        });
        tape.chain(sent).collect()
    }

    /// The results of the way forward.
    pub(super) fn results_forward(&self, course: &Course) -> Vec<Slot> {
        let mut slots: Vec<Slot> = self.left(course).iter().map(|port| port.slot).collect();
        slots.extend((0..course.senders.len() as u32).map(|at| Slot::Trial(Trial::Spikes(at))));
        slots.extend(course.readouts().map(|(at, _)| Slot::Trial(Trial::Samples(at))));
        slots.push(Slot::Finite);
        slots
    }

    /// The arguments of the way back, besides those of any step.
    pub(super) fn given_back(&self, course: &Course) -> Vec<Port> {
        let mut ports = self.left(course);
        ports.extend(self.frames(course));
        for (at, number, _, route) in course.routes() {
            let sends_back = course.sends_back(route);
            if sends_back {
                ports.push(self.carried(course, at));
            }
            if let Form::Lists { out_of, edges, .. } = route.form {
                if sends_back {
                    let dims = [out_of, course.senders[route.from].cells];
                    ports.push(table(Trial::Targets(number), &dims));
                    ports.push(table(Trial::EdgesOut(number), &dims));
                }
                if route.learns {
                    ports.push(table(Trial::From(number), &[edges]));
                    ports.push(table(Trial::To(number), &[edges]));
                }
            }
        }
        let slopes = |(at, dims): (u32, [usize; 2])| Port {
            slot: Slot::Trial(Trial::Slopes(at)),
            ty: TensorType::new(self.real(), &dims),
        };
        ports.extend((0..).zip(course.samples()).map(slopes));
        ports
    }

    /// The results of the way back.
    pub(super) fn results_back(&self, course: &Course) -> Vec<Slot> {
        let learn = course.routes().filter(|route| route.3.learns);
        let mut slots: Vec<Slot> = learn.map(|route| Slot::Trial(Trial::Weights(route.1))).collect();
        slots.extend(course.drives().map(|(number, ..)| Slot::Trial(Trial::Felt(number))));
        slots.extend(self.bank(Bank::Output, Slot::Output).iter().map(|port| port.slot));
        slots
    }

    /// All steps forward.
    pub(super) fn forward(&self, b: &mut Builder, tables: &Tables, slots: &mut Slots, course: &Course) {
        self.cells_once(b, tables, slots);
        for (_, number, _, route) in course.routes() {
            if let Form::Lists { .. } = route.form {
                let carried = slots[&Slot::Trial(Trial::Carried(number))];
                let edges = slots[&Slot::Trial(Trial::EdgesIn(number))];
                slots.insert(Slot::Trial(Trial::CarriedIn(number)), b.gather(carried, edges));
            }
        }
        for port in self.left(course) {
            let zeros = match port.ty.element {
                Element::Bf16 => {
                    let zeros = b.constant(Literal::Real(0.0), Element::F32, &port.ty.dims);
                    b.narrow(zeros)
                }
                element => b.constant(Literal::Real(0.0), element, &port.ty.dims),
            };
            slots.insert(port.slot, zeros);
        }
        for (at, dims) in (0..).zip(course.samples()) {
            let none = self.zeros(b, &dims);
            slots.insert(Slot::Trial(Trial::Samples(at)), none);
        }
        for (at, sender) in course.senders.iter().enumerate() {
            // Nobody has spiked before the first step, but others pass on what they begin with.
            let last = match sender.sent.filter(|_| !sender.spikes) {
                Some(field) => b.convert(slots[&self.state(field)], self.real()),
                None => self.zeros(b, &[course.trials * sender.cells]),
            };
            slots.insert(Slot::Trial(Trial::Last(at as u32)), last);
            let none = b.constant(Literal::Whole(0), Element::I32, &[course.trials * sender.cells]);
            slots.insert(Slot::Trial(Trial::Spikes(at as u32)), none);
        }
        let zero = whole(b, 0);
        slots.insert(STEP, zero);
        repeat(b, slots, below(STEP, course.steps as u32), |b, slots| {
            let step = slots[&STEP];
            self.arrive(b, slots, course, step);
            self.keep(b, slots, course, step);
            self.show(b, tables, slots, course, step);
            self.run(b, tables, slots, Role::Step, step);
            self.sent(b, slots, course, step);
            advance(b, slots, STEP, 1);
        });
        let end = slots[&STEP];
        self.arrive(b, slots, course, end);
        self.keep(b, slots, course, end);
        self.finite(b, slots);
        for (at, sender) in (0..).zip(&course.senders) {
            let each = b.convert(slots[&Slot::Trial(Trial::Spikes(at))], Element::U64);
            let each = b.reshape(each, &[course.trials, sender.cells]);
            let of_trials = b.reduce(Binary::Add, each, 1);
            slots.insert(Slot::Trial(Trial::Spikes(at)), of_trials);
        }
    }

    /// What arrives in the next step, the number `step` counted from 0. Who has sent is noted first, and read from what has been noted: XLA copies an
    /// array that is read before it is written in the same turn of a loop.
    fn arrive(&self, b: &mut Builder, slots: &mut Slots, course: &Course, step: Value) {
        for (number, _) in course.sending() {
            let by = whole(b, course.ahead(number) as u32 - 1);
            let row = b.binary(Binary::Add, step, by);
            let [all, last] = [Trial::Sent(number as u32), Trial::Last(number as u32)].map(Slot::Trial);
            slots.insert(all, b.set_row(slots[&all], row, slots[&last]));
        }
        let mut sums: Vec<(FieldId, Value)> = Vec::new();
        for (number, arrived, drive) in course.drives() {
            let frame = frame(b, step, (drive.frames, drive.steps));
            sums.push((arrived, b.row(slots[&Slot::Trial(Trial::Brought(number))], frame)));
        }
        for (_, number, arrived, route) in course.routes() {
            let cells = course.senders[route.from].cells;
            let all = slots[&Slot::Trial(Trial::Sent(route.from as u32))];
            let ahead = course.ahead(route.from);
            // Sent in step `step + 1 - d`, whose row is `ahead - 1` further on.
            let parts: Vec<Value> = route
                .delays
                .iter()
                .map(|&delay| {
                    if delay == 1 {
                        let last = slots[&Slot::Trial(Trial::Last(route.from as u32))];
                        return b.reshape(last, &[course.trials, cells]);
                    }
                    let by = whole(b, (ahead - delay) as u32);
                    let row = b.binary(Binary::Add, step, by);
                    let row = b.row(all, row);
                    b.reshape(row, &[course.trials, cells])
                })
                .collect();
            let sent = b.concatenate(&parts, 1);
            let there = match route.form {
                Form::Matrices => {
                    let carried = slots[&Slot::Trial(Trial::Carried(number))];
                    b.contract((sent, 1), (carried, 0))
                }
                Form::Lists { .. } => {
                    let [carried, at] = [Trial::CarriedIn(number), Trial::Senders(number)].map(Slot::Trial);
                    self.weigh(b, sent, slots[&at], slots[&carried])
                }
            };
            let there = b.reshape(there, &[course.trials * route.targets]);
            match sums.iter_mut().find(|(other, _)| *other == arrived) {
                Some((_, sum)) => *sum = b.binary(Binary::Add, *sum, there),
                None => sums.push((arrived, there)),
            }
        }
        self.store(b, slots, sums);
    }

    /// Of what stands in `values`, `[trial, place]`, for each element the sum of what its list says, each times its weight: `[trial, element]`.
    fn weigh(&self, b: &mut Builder, values: Value, list: Value, weights: Value) -> Value {
        let values = b.transpose(values);
        let taken = b.gather_rows(values, list);
        let dims = b.dims(taken);
        let weights = b.broadcast(weights, &dims, &[0, 1]);
        let weighed = b.binary(Binary::Multiply, taken, weights);
        let sum = b.reduce(Binary::Add, weighed, 0);
        b.transpose(sum)
    }

    /// Keeps the states that going back reads.
    fn keep(&self, b: &mut Builder, slots: &mut Slots, course: &Course, step: Value) {
        for (at, (field, _)) in (0..).zip(&course.tape) {
            let tape = Slot::Trial(Trial::Tape(at));
            let kept = b.set_row(slots[&tape], step, slots[&self.state(*field)]);
            slots.insert(tape, kept);
        }
    }

    /// Who has sent in a step, and what is read out after it.
    fn sent(&self, b: &mut Builder, slots: &mut Slots, course: &Course, step: Value) {
        for (number, sender) in course.senders.iter().enumerate() {
            let Some(field) = sender.sent else { continue };
            let spiked = b.convert(slots[&self.state(field)], self.real());
            if !sender.spikes {
                slots.insert(Slot::Trial(Trial::Last(number as u32)), spiked);
                continue;
            }
            let half = b.constant(Literal::Real(0.5), self.real(), &b.dims(spiked));
            let mask = b.compare(Compare::Gt, spiked, half);
            let sent = b.convert(mask, self.real());
            slots.insert(Slot::Trial(Trial::Last(number as u32)), sent);
            let count = Slot::Trial(Trial::Spikes(number as u32));
            let more = b.convert(mask, Element::I32);
            slots.insert(count, b.binary(Binary::Add, slots[&count], more));
            for (at, readout) in course.readouts() {
                let samples = Slot::Trial(Trial::Samples(at));
                let known = slots.get(&samples).copied();
                match (readout, known) {
                    (Readout::Count(of), Some(known)) if of == number => {
                        let sent = b.reshape(sent, &b.dims(known));
                        slots.insert(samples, b.binary(Binary::Add, known, sent));
                    }
                    (Readout::Spikes(of), Some(known)) if of == number => {
                        slots.insert(samples, b.set_row(known, step, sent));
                    }
                    (Readout::Count(_) | Readout::Spikes(_) | Readout::State(..), _) => {}
                }
            }
        }
        for (at, readout) in course.readouts() {
            let Readout::State(Some(field), _) = readout else { continue };
            let samples = Slot::Trial(Trial::Samples(at));
            let sample = b.convert(slots[&self.state(field)], self.real());
            slots.insert(samples, b.set_row(slots[&samples], step, sample));
        }
    }

    /// All steps back, from behind the last one to before the first.
    pub(super) fn back(&self, b: &mut Builder, tables: &Tables, slots: &mut Slots, course: &Course) {
        self.cells_once(b, tables, slots);
        for (_, number, arrived, route) in course.routes() {
            if let Form::Lists { edges, .. } = route.form {
                if course.sends_back(route) {
                    let carried = slots[&Slot::Trial(Trial::Carried(number))];
                    let edges = slots[&Slot::Trial(Trial::EdgesOut(number))];
                    slots.insert(Slot::Trial(Trial::CarriedOut(number)), b.gather(carried, edges));
                }
                if route.learns {
                    let none = self.zeros(b, &[edges]);
                    slots.insert(Slot::Trial(Trial::Weights(number)), none);
                }
            }
            let dims = [course.steps + course.longest(arrived), course.trials * route.targets];
            let none = self.zeros(b, &dims);
            slots.insert(Slot::Trial(Trial::Later(course.first(arrived))), none);
        }
        for (number, _, drive) in course.drives() {
            let none = self.zeros(b, &[drive.frames, drive.elements]);
            slots.insert(Slot::Trial(Trial::Felt(number)), none);
        }
        for ((at, readout), [_, elements]) in course.readouts().zip(course.samples()) {
            if let Readout::Spikes(_) | Readout::State(Some(_), _) = readout {
                // Nothing is read out before the first step.
                let none = self.zeros(b, &[1, elements]);
                let slopes = Slot::Trial(Trial::Slopes(at));
                slots.insert(slopes, b.concatenate(&[none, slots[&slopes]], 0));
            }
        }
        let zero = whole(b, 0);
        slots.insert(STEP, zero);
        repeat(b, slots, below(STEP, course.steps as u32 + 1), |b, slots| {
            let end = whole(b, course.steps as u32);
            let step = b.binary(Binary::Subtract, end, slots[&STEP]);
            for (at, (field, _)) in (0..).zip(&course.tape) {
                let then = b.row(slots[&Slot::Trial(Trial::Tape(at))], step);
                slots.insert(self.state(*field), then);
            }
            for (at, readout) in course.readouts() {
                if let Readout::State(Some(seed), _) = readout {
                    let slopes = b.row(slots[&Slot::Trial(Trial::Slopes(at))], step);
                    self.store(b, slots, vec![(seed, slopes)]);
                }
            }
            self.show(b, tables, slots, course, step);
            self.run(b, tables, slots, Role::Step, step);
            for (number, arrived, drive) in course.drives() {
                let felt = Slot::Trial(Trial::Felt(number));
                let frame = frame(b, step, (drive.frames, drive.steps));
                let (sum, now) = (b.row(slots[&felt], frame), b.convert(slots[&self.state(arrived)], self.real()));
                let sum = b.binary(Binary::Add, sum, now);
                slots.insert(felt, b.set_row(slots[&felt], frame, sum));
            }
            self.send_back(b, slots, course, step);
            advance(b, slots, STEP, 1);
        });
        for (_, number, arrived, route) in course.routes().filter(|route| route.3.learns) {
            if route.form == Form::Matrices {
                let later = slots[&Slot::Trial(Trial::Later(course.first(arrived)))];
                let sent = slots[&Slot::Trial(Trial::Sent(route.from as u32))];
                let weights = self.matrices(b, course, route, sent, later);
                slots.insert(Slot::Trial(Trial::Weights(number)), weights);
            }
        }
        let zero = whole(b, 0);
        self.run(b, tables, slots, Role::Observe, zero);
    }

    /// The derivatives in matrices: of all steps and trials at once.
    fn matrices(&self, b: &mut Builder, course: &Course, route: &Route, sent: Value, later: Value) -> Value {
        let (sender, ahead) = (&course.senders[route.from], course.ahead(route.from));
        // Of the steps 1 and later: in step 0 nobody has spiked.
        let first = usize::from(sender.spikes);
        let steps = course.steps + 1 - first;
        let rows = |b: &mut Builder, all: Value, first: usize, each: usize| {
            let part = b.slice(all, &[first, 0], &[first + steps, course.trials * each]);
            b.reshape(part, &[steps * course.trials, each])
        };
        let sent = rows(b, sent, ahead - 1 + first, sender.cells);
        let of_delay = |&delay: &usize| {
            let there = rows(b, later, delay - 1 + first, route.targets);
            b.contract((sent, 0), (there, 0))
        };
        let parts: Vec<Value> = route.delays.iter().map(of_delay).collect();
        b.concatenate(&parts, 0)
    }

    /// From what arrives later back to who has sent in a step.
    fn send_back(&self, b: &mut Builder, slots: &mut Slots, course: &Course, step: Value) {
        for (_, number, arrived, _) in course.routes() {
            if course.first(arrived) == number {
                let later = Slot::Trial(Trial::Later(number));
                let now = b.convert(slots[&self.state(arrived)], self.real());
                slots.insert(later, b.set_row(slots[&later], step, now));
            }
        }
        let mut sums: Vec<Option<Value>> = vec![None; course.senders.len()];
        for (_, number, arrived, route) in course.routes() {
            let (cells, all) =
                (course.senders[route.from].cells, slots[&Slot::Trial(Trial::Later(course.first(arrived)))]);
            let sends_back = course.sends_back(route);
            // Derivatives in the weights of matrices come behind the loop.
            let learns_here = route.learns && route.form != Form::Matrices;
            if !(sends_back || learns_here) {
                continue;
            }
            let mut parts: Vec<Value> = Vec::new();
            for delay in &route.delays {
                let by = whole(b, (delay - 1) as u32);
                let row = b.binary(Binary::Add, step, by);
                let row = b.row(all, row);
                parts.push(b.reshape(row, &[course.trials, route.targets]));
            }
            if sends_back {
                let sum = match route.form {
                    Form::Matrices => {
                        let carried = slots[&Slot::Trial(Trial::Carried(number))];
                        let of_delay = |(at, &part): (usize, &Value)| {
                            let matrix = b.slice(carried, &[at * cells, 0], &[(at + 1) * cells, route.targets]);
                            b.contract((part, 1), (matrix, 1))
                        };
                        let all: Vec<Value> = parts.iter().enumerate().map(of_delay).collect();
                        all.into_iter().reduce(|sum, x| b.binary(Binary::Add, sum, x))
                    }
                    Form::Lists { .. } => {
                        let [carried, at] = [Trial::CarriedOut(number), Trial::Targets(number)].map(Slot::Trial);
                        let there = b.concatenate(&parts, 1);
                        Some(self.weigh(b, there, slots[&at], slots[&carried]))
                    }
                };
                let own = sums[route.from].take();
                sums[route.from] = match (own, sum) {
                    (Some(own), Some(sum)) => Some(b.binary(Binary::Add, own, sum)),
                    (own, sum) => own.or(sum),
                };
            }
            if learns_here {
                let by = whole(b, course.ahead(route.from) as u32 - 1);
                let row = b.binary(Binary::Add, step, by);
                let sent = b.row(slots[&Slot::Trial(Trial::Sent(route.from as u32))], row);
                let sent = b.reshape(sent, &[course.trials, cells]);
                let there = b.concatenate(&parts, 1);
                let of_edges = |b: &mut Builder, values: Value, at: Trial| {
                    let values = b.transpose(values);
                    b.gather_rows(values, slots[&Slot::Trial(at)])
                };
                let sent = of_edges(b, sent, Trial::From(number));
                let there = of_edges(b, there, Trial::To(number));
                let both = b.binary(Binary::Multiply, sent, there);
                let more = b.reduce(Binary::Add, both, 1);
                let weights = Slot::Trial(Trial::Weights(number));
                slots.insert(weights, b.binary(Binary::Add, slots[&weights], more));
            }
        }
        for (number, (sender, sum)) in course.senders.iter().zip(sums).enumerate() {
            let Some(adjoint) = sender.sent else { continue };
            let elements = course.trials * sender.cells;
            let mut sum = match sum {
                Some(sum) => b.reshape(sum, &[elements]),
                None => self.zeros(b, &[elements]),
            };
            for (at, readout) in course.readouts() {
                let slopes = slots.get(&Slot::Trial(Trial::Slopes(at))).copied();
                let slopes = match (readout, slopes) {
                    (Readout::Count(of), Some(slopes)) if of == number => {
                        let zero = whole(b, 0);
                        let counts = b.compare(Compare::Gt, step, zero);
                        let counts = b.broadcast(counts, &[elements], &[]);
                        let none = self.zeros(b, &[elements]);
                        let slopes = b.reshape(slopes, &[elements]);
                        b.select(counts, slopes, none)
                    }
                    (Readout::Spikes(of), Some(slopes)) if of == number => {
                        let slopes = b.row(slopes, step);
                        b.reshape(slopes, &[elements])
                    }
                    (Readout::Count(_) | Readout::Spikes(_) | Readout::State(..), _) => continue,
                };
                sum = b.binary(Binary::Add, sum, slopes);
            }
            self.store(b, slots, vec![(adjoint, sum)]);
        }
    }
}
