//! Events on their way between cells.
//!
//! In come the forms of deliveries and what cells emit in a step; out go the sums that arrive in a step, and rings of those that arrive later.
//! Never true here: an event is lost, or a form is chosen. Of loops over those who emit, what arrives at a cell is added up in the order of
//! sending, of one step by space, event, delivery, sender and edge, where the device scatters in order, as XLA's compiler for processors has it.
//!
//! Loops that add to the same sums share a ring, which stands in the slots of the first of them.

use super::builder::{Binary, Builder, Compare, Element, Literal, TensorType, Value};
use super::entry::{Slots, whole};
use super::lanes::real;
use super::slot::{Fixed, Slot};
use crate::codegen::plan::{DeliveryForm, Dense, DevicePlan, Effect, Events, Home, Plan};
use crate::runtime::machine::Bank;
use crate::step::FieldId;
use std::collections::BTreeMap;

/// What entry points do about deliveries.
#[derive(Clone, Copy)]
pub(super) struct Deliveries<'a> {
    pub plan: &'a Plan,
    pub device: &'a DevicePlan,
}

impl<'a> Deliveries<'a> {
    fn forms(self) -> impl Iterator<Item = (u32, &'a DeliveryForm)> {
        (0..).zip(&self.device.deliveries)
    }

    /// The deliveries that share the ring of a loop, and the loops.
    fn sharing(self, at: u32) -> impl Iterator<Item = (u32, &'a Events)> {
        let sums = self.plan.deliveries[at as usize].sums();
        self.forms().filter_map(move |(other, form)| match form {
            DeliveryForm::Events(events) if self.plan.deliveries[other as usize].sums() == sums => {
                Some((other, events))
            }
            DeliveryForm::Events(_) | DeliveryForm::Nothing | DeliveryForm::Dense(_) | DeliveryForm::Remembered(_) => {
                None
            }
        })
    }

    /// The first of these.
    fn lead(self, at: u32) -> u32 {
        self.sharing(at).next().map_or(at, |(lead, _)| lead)
    }

    /// Places of the ring that a loop shares.
    fn ring(self, at: u32) -> usize {
        self.sharing(at).map(|(_, events)| events.ring()).max().unwrap_or(0)
    }

    /// What a run carries from step to step.
    pub fn carried(self) -> Vec<(Slot, TensorType)> {
        let real = real(self.plan.precision);
        let of = |(at, form): (u32, &DeliveryForm)| {
            let (cells, ring) = match form {
                DeliveryForm::Nothing | DeliveryForm::Remembered(_) => return Vec::new(),
                DeliveryForm::Events(_) if self.lead(at) != at => return Vec::new(),
                DeliveryForm::Events(events) => (events.cells, self.ring(at)),
                DeliveryForm::Dense(dense) => (dense.cells, dense.steps() * dense.senders),
            };
            vec![
                (Slot::Arriving(at), TensorType::new(real, &[cells])),
                (Slot::Ring(at), TensorType::new(real, &[ring])),
                (Slot::Turn(at), TensorType::new(Element::I32, &[])),
            ]
        };
        self.forms().flat_map(of).collect()
    }

    /// What does not change during a run.
    pub fn fixed(self) -> Vec<(Slot, TensorType)> {
        let real = real(self.plan.precision);
        let of = |(at, form): (u32, &DeliveryForm)| match form {
            DeliveryForm::Nothing | DeliveryForm::Remembered(_) => Vec::new(),
            DeliveryForm::Events(events) => {
                let places = [events.edges + events.width];
                let carried: &[usize] = if events.each { &places } else { &[] };
                vec![
                    (Slot::Fixed(Fixed::Begins(at)), TensorType::new(Element::I32, &[events.senders + 1])),
                    (Slot::Fixed(Fixed::Targets(at)), TensorType::new(Element::I32, &places)),
                    (Slot::Fixed(Fixed::Carried(at)), TensorType::new(real, carried)),
                ]
            }
            DeliveryForm::Dense(dense) => {
                vec![(Slot::Fixed(Fixed::Carried(at)), TensorType::new(real, &[dense.rows(), dense.cells]))]
            }
        };
        self.forms().flat_map(of).collect()
    }

    /// A run begins: nothing is on its way.
    pub fn begin(self, b: &mut Builder, slots: &mut Slots) {
        for (slot, ty) in self.carried() {
            let nothing = match ty.element {
                Element::I32 => Literal::Whole(0),
                Element::F64 | Element::F32 => Literal::Real(0.0),
                Element::Bool | Element::U32 | Element::U64 | Element::Bf16 => panic!("a sum is real"),
            };
            slots.insert(slot, b.constant(nothing, ty.element, &ty.dims));
        }
    }

    /// A step begins: what arrives in it becomes temps of the cells, and its row of a ring becomes free.
    ///
    /// A ring is written after it was read, in every order of operations that a compiler may choose, since the row of a step is read at the
    /// end of the step before: otherwise XLA copies rings in every step.
    pub fn arrive(self, b: &mut Builder, slots: &mut Slots) {
        let real = real(self.plan.precision);
        for (at, (delivery, form)) in (0..).zip(self.plan.deliveries.iter().zip(&self.device.deliveries)) {
            // What edges that remember bring, their kernels compute.
            let Effect::Adds { sum, .. } = delivery.effect else { continue };
            let Some((space, Bank::Temp, slot)) = self.plan.slot(sum) else { panic!("the plan keeps sums in temps") };
            let nothing = b.constant(Literal::Real(0.0), real, &[self.device.sizes[space.0 as usize]]);
            let arriving = match form {
                DeliveryForm::Nothing | DeliveryForm::Remembered(_) => nothing,
                DeliveryForm::Dense(_) => slots[&Slot::Arriving(at)],
                DeliveryForm::Events(_) if self.lead(at) != at => continue,
                DeliveryForm::Events(_) => {
                    let free = b.set_part(slots[&Slot::Ring(at)], slots[&Slot::Turn(at)], nothing);
                    slots.insert(Slot::Ring(at), free);
                    slots[&Slot::Arriving(at)]
                }
            };
            let sum = Slot::Temp(space.0, slot);
            let all = match slots.get(&sum) {
                Some(&other) => b.binary(Binary::Add, other, arriving),
                None => arriving,
            };
            slots.insert(sum, all);
        }
    }

    /// A step ends: what was emitted, told by space and event, is sent, and the rings move on.
    pub fn send(self, b: &mut Builder, slots: &mut Slots, emitted: &[(u32, u32, Value)]) {
        let mut lists: BTreeMap<(u32, u32), Emitters> = BTreeMap::new();
        let event_of = |at: u32| number_of(self.plan, self.plan.deliveries[at as usize].event);
        let mut forms: Vec<(u32, &DeliveryForm)> = self.forms().collect();
        forms.sort_by_key(|&(at, _)| (event_of(at), at));
        let mut rings: BTreeMap<u32, usize> = BTreeMap::new();
        for (at, form) in forms {
            let event = event_of(at);
            let Some(mask) = happened(b, emitted, event) else { continue };
            match form {
                DeliveryForm::Nothing | DeliveryForm::Remembered(_) => {}
                DeliveryForm::Events(events) => {
                    let list = *lists.entry(event).or_insert_with(|| Emitters::new(b, mask, events));
                    let lead = self.lead(at);
                    let ring = send(b, slots, (at, events), (lead, self.ring(at)), list);
                    slots.insert(Slot::Ring(lead), ring);
                    rings.insert(lead, events.cells);
                }
                DeliveryForm::Dense(dense) => self.multiply(b, slots, at, dense, mask),
            }
        }
        for (lead, cells) in rings {
            let turn = self.turn(b, slots, lead, cells, self.ring(lead));
            let arriving = b.part(slots[&Slot::Ring(lead)], turn, cells);
            slots.insert(Slot::Arriving(lead), arriving);
        }
    }

    /// Moves the turn of a delivery on by a row of its ring.
    fn turn(self, b: &mut Builder, slots: &mut Slots, at: u32, row: usize, ring: usize) -> Value {
        let turn = advanced(b, slots[&Slot::Turn(at)], row, ring);
        slots.insert(Slot::Turn(at), turn);
        turn
    }

    /// Remembers who has emitted, and computes what arrives in the next step.
    fn multiply(self, b: &mut Builder, slots: &mut Slots, at: u32, dense: &Dense, mask: Value) {
        let now = b.convert(mask, real(self.plan.precision));
        let ring = b.set_part(slots[&Slot::Ring(at)], slots[&Slot::Turn(at)], now);
        slots.insert(Slot::Ring(at), ring);
        let size = dense.steps() * dense.senders;
        let turn = self.turn(b, slots, at, dense.senders, size);
        let rows: Vec<Value> = (dense.delays.iter())
            .map(|&delay| {
                let back = whole(b, ((dense.steps() - delay as usize) * dense.senders) as u32);
                let row = b.binary(Binary::Add, turn, back);
                let row = within(b, row, size);
                b.part(ring, row, dense.senders)
            })
            .collect();
        let emitted = b.concatenate(&rows, 0);
        let arriving = b.product(emitted, slots[&Slot::Fixed(Fixed::Carried(at))]);
        slots.insert(Slot::Arriving(at), arriving);
    }
}

/// The space and the number of an event.
pub(super) fn number_of(plan: &Plan, event: FieldId) -> (u32, u32) {
    match plan.homes[event.0 as usize] {
        Home::Event(space, event) => (space.0, event),
        _ => panic!("the plan gives events a number"),
    }
}

/// Which cells have emitted an event, if some can.
pub(super) fn happened(b: &mut Builder, emitted: &[(u32, u32, Value)], event: (u32, u32)) -> Option<Value> {
    let masks = emitted.iter().filter(|(space, number, _)| (*space, *number) == event).map(|(_, _, mask)| *mask);
    masks.reduce(|one, other| b.binary(Binary::Or, one, other))
}

/// Moves on by a row of a ring.
pub(super) fn advanced(b: &mut Builder, turn: Value, row: usize, ring: usize) -> Value {
    let by = whole(b, row as u32);
    let next = b.binary(Binary::Add, turn, by);
    within(b, next, ring)
}

/// Who has emitted in a step, so that each is found by looking at one block and at one number of every block.
#[derive(Clone, Copy)]
struct Emitters {
    /// The number of each cell that has emitted, [`NOBODY`] in the place of others; whole blocks.
    numbers: Value,
    /// The lowest of each block.
    firsts: Value,
    /// The lowest of all.
    first: Value,
}

/// A number that no cell has.
const NOBODY: u64 = i32::MAX as u64;

impl Emitters {
    fn new(b: &mut Builder, mask: Value, events: &Events) -> Emitters {
        let (blocks, block) = (events.blocks(), events.block);
        let all = blocks * block;
        let more = b.constant(Literal::Bool(false), Element::Bool, &[all - events.senders]);
        let mask = if all > events.senders { b.concatenate(&[mask, more], 0) } else { mask };
        let index = b.iota(Element::I32, &[all]);
        let nobody = b.constant(Literal::Whole(NOBODY), Element::I32, &[all]);
        let numbers = b.select(mask, index, nobody);
        let table = b.reshape(numbers, &[blocks, block]);
        let firsts = b.reduce(Binary::Minimum, table, 1);
        let first = b.reduce(Binary::Minimum, firsts, 0);
        Emitters { numbers, firsts, first }
    }
}

/// A ring, of so many places, with what these cells send along a delivery. Each round of the loop adds some edges of one of them.
fn send(
    b: &mut Builder,
    slots: &Slots,
    (at, events): (u32, &Events),
    (lead, places): (u32, usize),
    emitters: Emitters,
) -> Value {
    let Emitters { numbers, firsts, first } = emitters;
    let tables = [Fixed::Begins(at), Fixed::Targets(at), Fixed::Carried(at)].map(|fixed| slots[&Slot::Fixed(fixed)]);
    let (edge, end) = bounds(b, tables[0], first);
    let (ring, turn) = (slots[&Slot::Ring(lead)], slots[&Slot::Turn(lead)]);
    let carried = [&[first, edge, end, ring, turn, numbers, firsts], &tables[..]].concat();
    let somebody = |b: &mut Builder, given: &[Value]| {
        let nobody = b.constant(Literal::Whole(NOBODY), Element::I32, &[]);
        b.compare(Compare::Lt, given[0], nobody)
    };
    b.repeat(&carried, somebody, |b, given| round(b, given, events, places))[3]
}

/// The next sender, edge and end of its edges, the ring; and what stays: the turn, who has emitted, where edges begin, their targets, what they carry.
fn round(b: &mut Builder, given: &[Value], events: &Events, places: usize) -> Vec<Value> {
    let &[sender, edge, end, ring, turn, numbers, firsts, begins, targets, carried] = given else {
        panic!("the loop carries ten values")
    };
    let width = [events.width];
    let target = b.part(targets, edge, events.width);
    let turns = b.broadcast(turn, &width, &[]);
    let place = b.binary(Binary::Add, turns, target);
    let place = within(b, place, places);
    let index = b.iota(Element::I32, &width);
    let edges = b.broadcast(edge, &width, &[]);
    let index = b.binary(Binary::Add, edges, index);
    let ends = b.broadcast(end, &width, &[]);
    let own = b.compare(Compare::Lt, index, ends);
    let outside = b.constant(Literal::Whole(places as u64), Element::I32, &width);
    let place = b.select(own, place, outside);
    let value = if events.each { b.part(carried, edge, events.width) } else { b.broadcast(carried, &width, &[]) };
    let ring = b.scatter_add(ring, place, value);
    let by = whole(b, events.width as u32);
    let further = b.binary(Binary::Add, edge, by);
    let more = b.compare(Compare::Lt, further, end);
    let next = next(b, sender, numbers, firsts, events);
    let (first, last) = bounds(b, begins, next);
    let sender = b.select(more, sender, next);
    let edge = b.select(more, further, first);
    let end = b.select(more, end, last);
    vec![sender, edge, end, ring, turn, numbers, firsts, begins, targets, carried]
}

/// Who has emitted next after somebody.
fn next(b: &mut Builder, sender: Value, numbers: Value, firsts: Value, events: &Events) -> Value {
    let later = |b: &mut Builder, of: Value, than: Value, among: Value| {
        let dims = b.dims(of);
        let than = b.broadcast(than, &dims, &[]);
        let later = b.compare(Compare::Gt, of, than);
        let nobody = b.constant(Literal::Whole(NOBODY), Element::I32, &dims);
        let among = b.select(later, among, nobody);
        b.reduce(Binary::Minimum, among, 0)
    };
    let power = whole(b, events.block.trailing_zeros());
    let block = b.binary(Binary::ShiftRightLogical, sender, power);
    let begin = b.binary(Binary::ShiftLeft, block, power);
    let near = b.part(numbers, begin, events.block);
    let near = later(b, near, sender, near);
    let blocks = b.iota(Element::I32, &[events.blocks()]);
    let far = later(b, blocks, block, firsts);
    b.binary(Binary::Minimum, near, far)
}

/// Where the edges of a sender begin and end; of nobody, those of the last.
fn bounds(b: &mut Builder, begins: Value, sender: Value) -> (Value, Value) {
    let both = b.part(begins, sender, 2);
    let mut one = |at: usize| {
        let one = b.slice(both, &[at], &[at + 1]);
        b.reshape(one, &[])
    };
    (one(0), one(1))
}

/// A place of the ring, where it was counted on beyond its end.
pub(super) fn within(b: &mut Builder, place: Value, ring: usize) -> Value {
    let dims = b.dims(place);
    let size = b.constant(Literal::Whole(ring as u64), Element::I32, &dims);
    let beyond = b.compare(Compare::Ge, place, size);
    let again = b.binary(Binary::Subtract, place, size);
    b.select(beyond, again, place)
}
