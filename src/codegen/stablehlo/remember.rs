//! Edges that remember: what events make of their states, on whole arrays.
//!
//! In come the kernels of such edges and what cells emit in a step; out go new states of all edges, and what those bring that an event has reached.
//! Never true here: an edge that no event reaches changes, or it sees a cell at another time than in native runs ([`crate::runtime::remember`]).

use super::builder::{Binary, Builder, Compare, Element, Literal, TensorType, Value};
use super::deliveries::{advanced, happened, number_of, within};
use super::entry::Slots;
use super::lanes::{Columns, Lanes, real, slot_of, stored};
use super::slot::{Fixed, Part, Slot};
use crate::codegen::plan::{Delivery, DeliveryForm, DevicePlan, KernelPlan, PRE, Past, Plan, Remembered, Remembers};
use crate::runtime::machine::Bank;
use crate::runtime::remember::When;
use crate::step::{FieldId, Role};
use rustc_hash::FxHashMap as HashMap;

/// What entry points do about edges that remember.
#[derive(Clone, Copy)]
pub(super) struct Remembering<'a> {
    pub plan: &'a Plan,
    pub device: &'a DevicePlan,
}

/// The numbers that kernels of an entry point read.
#[derive(Clone, Copy)]
pub(super) struct Numbers<'a> {
    pub columns: &'a Columns,
    pub rows: &'a HashMap<(Role, Part), Value>,
}

/// Edges that remember, of which there are some.
#[derive(Clone, Copy)]
struct Edges<'a> {
    /// The number of the delivery.
    at: u32,
    delivery: &'a Delivery,
    remembers: &'a Remembers,
    form: &'a Remembered,
}

impl<'a> Edges<'a> {
    /// Which cells have emitted what the edges hear of, the event field of each: who sends, then what is told of those that receive.
    fn pasts(self) -> impl Iterator<Item = (u32, Past, FieldId)> {
        let sent = (self.form.sent, self.delivery.event);
        let told = self.form.told.iter().zip(&self.remembers.back).map(|(past, heard)| (*past, heard.event));
        (0..).zip(std::iter::once(sent).chain(told)).map(|(which, (past, event))| (which, past, event))
    }

    /// What is told of those that receive, at such a time of a step: which past, and the pass of its kernel.
    fn told(self, when: When) -> impl Iterator<Item = (u32, Past)> {
        let kinds = self.form.told.iter().zip(&self.remembers.back);
        (1..).zip(kinds).filter(move |(_, (_, heard))| heard.when == when).map(|(which, (past, _))| (which, *past))
    }
}

impl<'a> Remembering<'a> {
    fn all(self) -> impl Iterator<Item = Edges<'a>> {
        let all = (0..).zip(self.plan.deliveries.iter().zip(&self.device.deliveries));
        all.filter_map(|(at, (delivery, form))| match (delivery.remembers(), form) {
            (Some(remembers), DeliveryForm::Remembered(form)) => Some(Edges { at, delivery, remembers, form }),
            _ => None,
        })
    }

    /// Is it an output that edges bring the cells that they lead to? Nothing remains of it.
    pub fn is_brought(self, slot: Slot) -> bool {
        let Slot::Output(space, at) = slot else { return false };
        let brings = |edges: Edges<'a>| edges.remembers.sums.iter().any(|(own, _)| *own == at);
        self.all().any(|edges| edges.remembers.space.space.0 == space && brings(edges))
    }

    /// What a run carries from step to step, besides the states of edges.
    pub fn carried(self) -> Vec<(Slot, TensorType)> {
        let real = real(self.plan.precision);
        let of = |edges: Edges<'a>| {
            edges.pasts().flat_map(move |(which, past, _)| {
                [
                    (Slot::Past(edges.at, which), TensorType::new(real, &[past.ring()])),
                    (Slot::PastTurn(edges.at, which), TensorType::new(Element::I32, &[])),
                ]
            })
        };
        self.all().flat_map(of).collect()
    }

    /// What does not change during a run and kernels of cells need not know, for an entry point of such roles.
    pub fn fixed(self, roles: &[Role]) -> Vec<(Slot, TensorType)> {
        let real = real(self.plan.precision);
        let mut fixed = Vec::new();
        for edges in self.all() {
            let size = [edges.form.edges];
            let cells = self.device.sizes[edges.delivery.to.0 as usize];
            let mut table = |table: Fixed, element: Element| {
                fixed.push((Slot::Fixed(table), TensorType::new(element, &size)));
            };
            if roles.contains(&Role::Init) {
                (0..edges.remembers.begin.len() as u32).for_each(|slot| table(Fixed::Begin(edges.at, slot), real));
            }
            if roles.contains(&Role::Step) {
                edges.pasts().for_each(|(which, ..)| table(Fixed::Behind(edges.at, which), Element::I32));
            }
            let kernels = || edges.remembers.space.kernels.iter().filter(|kernel| roles.contains(&kernel.role));
            let adds = roles.contains(&Role::Step) && !edges.remembers.sums.is_empty();
            let scatters = adds && edges.form.rows.is_none();
            if scatters || kernels().any(|kernel| self.read(edges, kernel).next().is_some()) {
                table(Fixed::Receivers(edges.at), Element::I32);
            }
            if let Some(rows) = edges.form.rows.filter(|_| adds) {
                let ty = TensorType::new(Element::I32, &[rows, cells]);
                fixed.push((Slot::Fixed(Fixed::Incoming(edges.at)), ty));
            }
            for (_, field) in kernels().flat_map(|kernel| self.read(edges, kernel)) {
                let slot = slot_of(self.plan, field);
                if matches!(slot, Slot::Cell(..)) {
                    fixed.push((slot, TensorType::new(stored(self.plan, slot), &[cells])));
                }
            }
        }
        fixed
    }

    /// What a kernel reads of the cells that edges lead to: the data slot of the edge, and the field of the cell.
    fn read(self, edges: Edges<'a>, kernel: &'a KernelPlan) -> impl Iterator<Item = (u32, FieldId)> {
        let own = (0..).zip(edges.remembers.space.data.iter().zip(&edges.remembers.read));
        let used = |own: FieldId| kernel.registers.iter().any(|register| register.used && register.field == own);
        own.filter(move |(_, (own, _))| used(**own)).map(|(slot, (_, of_cell))| (slot, *of_cell))
    }

    /// A run begins: edges are what they begin with, and nobody has emitted.
    pub fn begin(self, b: &mut Builder, slots: &mut Slots) {
        for (slot, ty) in self.carried() {
            let nothing = if ty.element == Element::I32 { Literal::Whole(0) } else { Literal::Real(0.0) };
            slots.insert(slot, b.constant(nothing, ty.element, &ty.dims));
        }
        for edges in self.all() {
            for slot in 0..edges.remembers.begin.len() as u32 {
                let begin = slots[&Slot::Fixed(Fixed::Begin(edges.at, slot))];
                slots.insert(Slot::State(edges.remembers.space.space.0, slot), begin);
            }
        }
    }

    /// A step begins: what arrives in it changes edges, and what they bring becomes temps of the cells.
    pub fn arrive(self, b: &mut Builder, slots: &mut Slots, numbers: Numbers<'_>) {
        for sum in self.plan.deliveries.iter().filter(|d| d.remembers().is_some()).flat_map(Delivery::sums) {
            let Some((space, Bank::Temp, slot)) = self.plan.slot(sum) else { panic!("the plan keeps sums in temps") };
            let cells = self.device.sizes[space.0 as usize];
            let nothing = || b.constant(Literal::Real(0.0), real(self.plan.precision), &[cells]);
            slots.entry(Slot::Temp(space.0, slot)).or_insert_with(nothing);
        }
        for edges in self.all() {
            self.tell(b, slots, numbers, edges, When::Ahead);
            self.work(b, slots, numbers, edges, (0, edges.form.sent));
            self.tell(b, slots, numbers, edges, When::Behind);
        }
    }

    /// A step ends: what was emitted, told by space and event, is remembered, and edges hear of it that need no time for that. Before the first step no
    /// edge hears of anything.
    pub fn send(self, b: &mut Builder, slots: &mut Slots, emitted: &[(u32, u32, Value)], numbers: Option<Numbers<'_>>) {
        let real = real(self.plan.precision);
        for edges in self.all() {
            let mut moved = Vec::new();
            for (which, past, event) in edges.pasts() {
                let Some(mask) = happened(b, emitted, number_of(self.plan, event)) else { continue };
                let now = b.convert(mask, real);
                let slot = Slot::Past(edges.at, which);
                let ring = b.set_part(slots[&slot], slots[&Slot::PastTurn(edges.at, which)], now);
                slots.insert(slot, ring);
                moved.push((which, past));
            }
            if let Some(numbers) = numbers {
                self.tell(b, slots, numbers, edges, When::End);
            }
            for (which, past) in moved {
                let slot = Slot::PastTurn(edges.at, which);
                let turn = advanced(b, slots[&slot], past.cells, past.ring());
                slots.insert(slot, turn);
            }
        }
    }

    /// Computes what is recorded of edges.
    pub fn observe(self, b: &mut Builder, slots: &mut Slots, numbers: Numbers<'_>) {
        for edges in self.all() {
            let Some(kernel) = edges.remembers.space.kernel(Role::Observe, 0) else { continue };
            for (field, value) in self.run(b, slots, numbers, edges, kernel) {
                if let Some((space, Bank::Output, slot)) = self.plan.slot(field) {
                    slots.insert(Slot::Output(space.0, slot), value);
                }
            }
        }
    }

    /// Edges hear of the cells that they lead to.
    fn tell(self, b: &mut Builder, slots: &mut Slots, numbers: Numbers<'_>, edges: Edges<'a>, when: When) {
        for past in edges.told(when) {
            self.work(b, slots, numbers, edges, past);
        }
    }

    /// Events reach edges, of one past. Only those of the senders bring something.
    fn work(
        self,
        b: &mut Builder,
        slots: &mut Slots,
        numbers: Numbers<'_>,
        edges: Edges<'a>,
        (which, past): (u32, Past),
    ) {
        let Some(kernel) = edges.remembers.space.kernel(Role::Step, PRE + which) else { return };
        let real = real(self.plan.precision);
        let size = [edges.form.edges];
        let turn = b.broadcast(slots[&Slot::PastTurn(edges.at, which)], &size, &[]);
        let place = b.binary(Binary::Add, turn, slots[&Slot::Fixed(Fixed::Behind(edges.at, which))]);
        let place = within(b, place, past.ring());
        let emitted = b.gather(slots[&Slot::Past(edges.at, which)], place);
        let none = b.constant(Literal::Real(0.0), real, &size);
        let reached = b.compare(Compare::Gt, emitted, none);
        for (field, value) in self.run(b, slots, numbers, edges, kernel) {
            match self.plan.slot(field) {
                Some((space, Bank::State, slot)) => {
                    let slot = Slot::State(space.0, slot);
                    let value = b.select(reached, value, slots[&slot]);
                    slots.insert(slot, value);
                }
                Some((_, Bank::Output, slot)) if which == 0 => {
                    let sum = edges.remembers.sums.iter().find(|(own, _)| *own == slot);
                    let Some((space, _, sum)) = sum.and_then(|&(_, sum)| self.plan.slot(sum)) else { continue };
                    let (sum, brought) = (Slot::Temp(space.0, sum), b.select(reached, value, none));
                    let all = match edges.form.rows {
                        None => {
                            let receivers = slots[&Slot::Fixed(Fixed::Receivers(edges.at))];
                            b.scatter_add(slots[&sum], receivers, brought)
                        }
                        Some(_) => {
                            let nothing = b.constant(Literal::Real(0.0), real, &[1]);
                            let brought = b.concatenate(&[brought, nothing], 0);
                            let brought = b.gather(brought, slots[&Slot::Fixed(Fixed::Incoming(edges.at))]);
                            let brought = b.reduce(Binary::Add, brought, 0);
                            b.binary(Binary::Add, slots[&sum], brought)
                        }
                    };
                    slots.insert(sum, all);
                }
                Some(_) | None => {}
            }
        }
    }

    /// Runs a kernel over all edges; nothing is stored.
    fn run(
        self,
        b: &mut Builder,
        slots: &Slots,
        Numbers { columns, rows }: Numbers<'_>,
        edges: Edges<'a>,
        kernel: &'a KernelPlan,
    ) -> Vec<(FieldId, Value)> {
        let (Remembering { plan, device }, space) = (self, &edges.remembers.space);
        let mut known = slots.clone();
        for (slot, field) in self.read(edges, kernel) {
            let of_cells = b.convert(slots[&slot_of(plan, field)], real(plan.precision));
            let of_edges = b.gather(of_cells, slots[&Slot::Fixed(Fixed::Receivers(edges.at))]);
            known.insert(Slot::Fixed(Fixed::Data(space.space.0, slot)), of_edges);
        }
        // What depends on cells alone: they change.
        let cell = Lanes::new(b, plan, device, space, kernel, columns, &known, rows).cell();
        known.extend(cell.into_iter().map(|(local, value)| (Slot::Local(space.id(kernel), local), value)));
        Lanes::new(b, plan, device, space, kernel, columns, &known, rows).step().fields
    }
}
