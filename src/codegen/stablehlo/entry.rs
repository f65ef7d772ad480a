//! The entry points of a simulation: whole functions with their arguments and results.
//!
//! In come a plan and what a device needs besides; out goes an [`Entry`]: a function and, for each of its arguments and results,
//! what it stands for.
//! Never true here: the value of a parameter, a seed or an edge is part of a function; they are arguments, so that changing one
//! needs no new compilation.

mod course;

pub use course::{Course, Drive, Form, Given, Readout, Route, Sender};

use super::branches::Branches;
use super::builder::{Binary, Builder, Compare, Element, Function, Literal, TensorType, Value};
use super::deliveries::Deliveries;
use super::lanes::{Columns, Effects, Lanes, part, real, slot_of, stored};
use super::remember::{Numbers, Remembering};
use super::slot::{Fixed, Inside, Part, Slot, slot_name};
use crate::codegen::plan::{
    DevicePlan, Expr, GatherForm, Grouping, KernelId, KernelPlan, Plan, SpacePlan, Stmt, Stretch, Usage,
};
use crate::runtime::branched::Task;
use crate::runtime::machine::Bank;
use crate::step::{FieldId, Role};
use rustc_hash::FxHashMap as HashMap;
use std::collections::BTreeMap;

/// The counters of loops.
const STEP: Slot = Slot::Inside(Inside::Step);
const TAKEN: Slot = Slot::Inside(Inside::Taken);
const FIRST: Slot = Slot::Inside(Inside::First);
const NUMBER: Slot = Slot::Inside(Inside::Number);
const LINE_OF_SAMPLE: Slot = Slot::Inside(Inside::LineOfSample);
const SAMPLE_OF_LINE: Slot = Slot::Inside(Inside::SampleOfLine);
const STEP_OF_SAMPLE: Slot = Slot::Inside(Inside::StepOfSample);
const PLACE: Slot = Slot::Inside(Inside::Place);

/// Values by what they stand for.
pub(super) type Slots = BTreeMap<Slot, Value>;

/// What an entry point does.
#[derive(Debug, Clone, PartialEq)]
pub enum Kind {
    /// Sets states and cell values.
    Init,
    /// Takes some steps, their number being an argument.
    Step,
    /// Takes many steps, their number being fixed, and samples on the way.
    Stretch(Stretch),
    /// Takes so many steps in a straight line and does nothing else, to see what steps cost. What a run computes once is an argument.
    Line(u32),
    /// Computes outputs.
    Observe,
    /// Takes all steps of many trials, and keeps what going back needs.
    Forward(Course),
    /// Goes back through all steps of many trials, and computes outputs.
    Back(Course),
}

impl Kind {
    /// How many steps [`Kind::Step`] takes at most: as many as a word has bits for events.
    pub const STEPS: u32 = 32;

    /// The name of its function.
    pub fn name(&self) -> &'static str {
        match self {
            Kind::Init => "init",
            Kind::Step => "step",
            Kind::Stretch(_) => "stretch",
            Kind::Line(_) => "line",
            Kind::Observe => "observe",
            Kind::Forward(_) => "forward",
            Kind::Back(_) => "back",
        }
    }

    fn roles(&self, plan: &Plan) -> Vec<Role> {
        match self {
            Kind::Init => vec![Role::Init],
            Kind::Step | Kind::Line(_) | Kind::Forward(_) => vec![Role::Step],
            Kind::Observe => vec![Role::Observe],
            Kind::Back(_) => vec![Role::Step, Role::Observe],
            Kind::Stretch(stretch) => {
                let output = |(field, _): &(FieldId, _)| matches!(plan.slot(*field), Some((_, Bank::Output, _)));
                let observes = stretch.fields.iter().any(output);
                if observes { vec![Role::Step, Role::Observe] } else { vec![Role::Step] }
            }
        }
    }

    /// How many rows the tables of numbers of a role have.
    fn rows(&self, role: Role) -> usize {
        match (self, role) {
            (Kind::Init | Kind::Observe, _) => 1,
            (Kind::Step, _) => Kind::STEPS as usize,
            (Kind::Line(steps), _) => *steps as usize,
            (Kind::Stretch(stretch), Role::Observe) => stretch.samples as usize,
            (Kind::Stretch(stretch), Role::Init | Role::Step) => stretch.steps() as usize,
            (Kind::Forward(course), _) => course.steps,
            (Kind::Back(_), Role::Observe) => 1,
            (Kind::Back(course), Role::Init | Role::Step) => course.steps + 1,
        }
    }
}

/// A column of a table of numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Column {
    /// The kernel.
    pub kernel: KernelId,
    /// The number.
    pub local: u32,
    /// As what it is used.
    pub usage: Usage,
}

/// An argument or a result.
#[derive(Debug, Clone, PartialEq)]
pub struct Port {
    /// What it stands for.
    pub slot: Slot,
    /// Its type.
    pub ty: TensorType,
}

/// An entry point.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// What it does.
    pub kind: Kind,
    /// Its arguments.
    pub arguments: Vec<Port>,
    /// Its results.
    pub results: Vec<Port>,
    /// The columns of `Numbers(part)`.
    pub numbers: BTreeMap<Part, Vec<Column>>,
    /// The columns of `Rows(role, part)`.
    pub rows: BTreeMap<(Role, Part), Vec<Column>>,
    /// Its code.
    pub function: Function,
}

impl Entry {
    /// Emits an entry point; in a module with others it has its own name, alone it is `main`.
    pub fn new(plan: &Plan, device: &DevicePlan, kind: Kind, name: &str) -> Entry {
        let roles = kind.roles(plan);
        let emitter = Emitter { plan, device, roles, kind };
        emitter.entry(name)
    }
}

struct Emitter<'a> {
    plan: &'a Plan,
    device: &'a DevicePlan,
    roles: Vec<Role>,
    kind: Kind,
}

/// The tables of numbers: their columns, and where each number is.
#[derive(Default)]
struct Tables {
    numbers: BTreeMap<Part, Vec<Column>>,
    rows: BTreeMap<(Role, Part), Vec<Column>>,
    columns: Columns,
}

impl<'a> Emitter<'a> {
    /// All that has elements, edges that remember too, and their kernels of the entry point.
    fn kernels(&self) -> impl Iterator<Item = (&'a SpacePlan, &'a KernelPlan)> + '_ {
        let all = self.plan.all_kernels().flat_map(|space| space.kernels.iter().map(move |kernel| (space, kernel)));
        all.filter(|(space, kernel)| self.cells(space) > 0 && self.roles.contains(&kernel.role))
    }

    /// Those of cells.
    fn kernels_of_cells(&self) -> impl Iterator<Item = (&'a SpacePlan, &'a KernelPlan)> + '_ {
        self.kernels().filter(|(space, _)| !self.are_edges(space))
    }

    fn are_edges(&self, space: &SpacePlan) -> bool {
        space.space.0 as usize >= self.plan.spaces.len()
    }

    fn cells(&self, space: &SpacePlan) -> usize {
        self.device.sizes[space.space.0 as usize]
    }

    fn deliveries(&self) -> Deliveries<'a> {
        Deliveries { plan: self.plan, device: self.device }
    }

    fn remembering(&self) -> Remembering<'a> {
        Remembering { plan: self.plan, device: self.device }
    }

    fn spaces(&self) -> impl Iterator<Item = &'a SpacePlan> + '_ {
        self.plan.all_kernels().filter(|space| self.cells(space) > 0)
    }

    fn tables(&self) -> Tables {
        let mut tables = Tables::default();
        for (space, kernel) in self.kernels() {
            let both = kernel
                .spread
                .iter()
                .map(|column| (false, column))
                .chain(kernel.row.iter().map(|column| (true, column)));
            for (of_time, column) in both {
                let id = space.id(kernel);
                let part = part(kernel, column.local, column.usage);
                let table = match of_time {
                    false => tables.numbers.entry(part).or_default(),
                    true => tables.rows.entry((kernel.role, part)).or_default(),
                };
                tables.columns.insert((id, of_time, column.local, column.usage), (part, table.len()));
                table.push(Column { kernel: id, local: column.local, usage: column.usage });
            }
        }
        tables
    }

    fn element(&self, part: Part) -> Element {
        match part {
            Part::Real => real(self.plan.precision),
            Part::Truth => Element::Bool,
            Part::Counter => Element::U64,
        }
    }

    /// All arguments but states and the number of steps.
    fn surroundings(&self, tables: &Tables) -> Vec<Port> {
        let mut slots: BTreeMap<Slot, TensorType> = BTreeMap::new();
        for (space, kernel) in self.kernels() {
            let (number, cells) = (space.space.0, self.cells(space));
            // States and temps are no arguments of this kind.
            let given = |slot: Slot, cells: usize| {
                let from_outside = match slot {
                    // `init` computes them.
                    Slot::Cell(..) => self.kind != Kind::Init,
                    // What cells have.
                    Slot::Fixed(Fixed::Data(..)) if self.are_edges(space) => false,
                    _ => matches!(slot, Slot::Fixed(_)),
                };
                from_outside.then(|| (slot, TensorType::new(stored(self.plan, slot), &[cells])))
            };
            for register in kernel.registers.iter().filter(|register| register.used) {
                slots.extend(given(slot_of(self.plan, register.field), cells));
            }
            if let Some(branches) = self.branches(space) {
                let fields = &self.plan.trees[branches.tree as usize].fields;
                let along = lane_statements(kernel).filter_map(|stmt| match stmt.expr {
                    Expr::Along(tie, field) => Some((tie, fields[field as usize])),
                    _ => None,
                });
                for (tie, field) in along {
                    let of = self.plan.slot(field).expect("maps lead to fields that have a slot").0;
                    slots.extend(given(slot_of(self.plan, field), self.device.sizes[of.0 as usize]));
                    slots.extend(branches.tables_along(tie));
                }
                slots.extend(kernel.adds.iter().flat_map(|add| branches.tables_of_sums(add.tie)));
                if let Some(equations) = kernel.solves {
                    slots.extend(branches.tables_of_equations(equations.parent, equations.from.is_some()));
                    for field in [equations.own, equations.link, equations.rhs].into_iter().chain(equations.from) {
                        slots.extend(given(slot_of(self.plan, fields[field as usize]), cells));
                    }
                }
            }
            for edges in &kernel.edges {
                let at = edges.edges;
                let own = edges.body.iter().filter_map(|stmt| match stmt.expr {
                    Expr::OfEdge(own) => Some(Slot::Fixed(Fixed::OfEdge(number, at, own))),
                    _ => None,
                });
                let own_as =
                    |dims: [usize; 2]| own.map(move |slot| (slot, TensorType::new(real(self.plan.precision), &dims)));
                match &self.device.gathers[number as usize][at as usize] {
                    GatherForm::Padded { rows: 0 } | GatherForm::Rows { rows: 0 } => {}
                    GatherForm::Padded { rows } | GatherForm::Rows { rows } => {
                        slots.extend(own_as([*rows, cells]));
                        slots.insert(
                            Slot::Fixed(Fixed::Sources(number, at)),
                            TensorType::new(Element::I32, &[*rows, cells]),
                        );
                        slots.insert(
                            Slot::Fixed(Fixed::Present(number, at)),
                            TensorType::new(Element::Bool, &[*rows, cells]),
                        );
                    }
                    GatherForm::Slabs(slabs) => {
                        let (rows, width) = (slabs.all_rows(), slabs.width);
                        slots.extend(own_as([rows, width]));
                        let mut table = |slot, dims: &[usize]| slots.insert(slot, TensorType::new(Element::I32, dims));
                        table(Slot::Fixed(Fixed::Sources(number, at)), &[rows, width]);
                        table(Slot::Fixed(Fixed::Order(number, at)), &[slabs.rows.len(), width]);
                        table(Slot::Fixed(Fixed::Places(number, at)), &[cells]);
                        table(Slot::Fixed(Fixed::Slabs(number, at)), &[rows]);
                    }
                    GatherForm::Shifts(lattice) => {
                        let ty = TensorType::new(Element::U32, &lattice.dims());
                        let words = 0..lattice.words() as u32;
                        slots.extend(words.map(|word| (Slot::Fixed(Fixed::Mask(number, at, word)), ty.clone())));
                    }
                    GatherForm::Pairs => {
                        slots.insert(
                            Slot::Fixed(Fixed::Pairs(number, at)),
                            TensorType::new(Element::Bool, &[cells, cells]),
                        );
                    }
                }
            }
            for stmt in lane_statements(kernel) {
                if let Expr::Sample(series, _) = stmt.expr {
                    let ty = TensorType::new(Element::F64, &[self.device.samples[series as usize]]);
                    slots.insert(Slot::Fixed(Fixed::SeriesTimes(series)), ty.clone());
                    slots.insert(Slot::Fixed(Fixed::SeriesValues(series)), ty);
                }
                if let Expr::Draw(..) = stmt.expr {
                    slots.insert(Slot::Fixed(Fixed::Seed), TensorType::new(Element::U32, &[2]));
                }
            }
        }
        let emits = |(_, kernel): (&SpacePlan, &KernelPlan)| {
            kernel.role == Role::Init && kernel.body.iter().any(|stmt| matches!(stmt.expr, Expr::Emit(..)))
        };
        if self.roles.contains(&Role::Step) || self.kernels().any(emits) {
            slots.extend(self.deliveries().fixed());
        }
        slots.extend(self.remembering().fixed(&self.roles));
        for (&part, columns) in &tables.numbers {
            slots.insert(Slot::Numbers(part), TensorType::new(self.element(part), &[columns.len()]));
        }
        for (&(role, part), columns) in &tables.rows {
            let dims = [self.kind.rows(role), columns.len()];
            slots.insert(Slot::Rows(role, part), TensorType::new(self.element(part), &dims));
        }
        slots.into_iter().map(|(slot, ty)| Port { slot, ty }).collect()
    }

    fn bank(&self, bank: Bank, slot: impl Fn(u32, u32) -> Slot) -> Vec<Port> {
        self.ports(|space| space.fields(bank).count(), slot)
    }

    fn ports(&self, count: impl Fn(&SpacePlan) -> usize, slot: impl Fn(u32, u32) -> Slot) -> Vec<Port> {
        let real = real(self.plan.precision);
        let of_space = |space: &SpacePlan| -> Vec<Port> {
            let ty = TensorType::new(real, &[self.cells(space)]);
            (0..count(space) as u32).map(|at| Port { slot: slot(space.space.0, at), ty: ty.clone() }).collect()
        };
        self.spaces().flat_map(of_space).collect()
    }

    fn entry(self, name: &str) -> Entry {
        let tables = self.tables();
        let states = self.bank(Bank::State, Slot::State);
        let on_its_way = [self.deliveries().carried(), self.remembering().carried()].concat();
        let on_its_way = on_its_way.into_iter().map(|(slot, ty)| Port { slot, ty });
        let carried: Vec<Port> = match self.kind {
            Kind::Observe => states,
            Kind::Init | Kind::Step | Kind::Stretch(_) | Kind::Line(_) | Kind::Forward(_) | Kind::Back(_) => {
                states.into_iter().chain(on_its_way).collect()
            }
        };
        let outside = self.surroundings(&tables);
        let mut arguments = match self.kind {
            Kind::Init => Vec::new(),
            Kind::Step | Kind::Stretch(_) | Kind::Line(_) | Kind::Observe | Kind::Forward(_) | Kind::Back(_) => {
                carried.clone()
            }
        };
        arguments.extend(outside);
        match &self.kind {
            Kind::Forward(course) => arguments.extend(self.given_forward(course)),
            Kind::Back(course) => arguments.extend(self.given_back(course)),
            Kind::Init | Kind::Step | Kind::Stretch(_) | Kind::Line(_) | Kind::Observe => {}
        }
        if let Kind::Line(_) = self.kind {
            let once = self.computed_once(&tables, &arguments);
            arguments.extend(once);
        }
        if self.kind == Kind::Step {
            arguments.push(Port { slot: Slot::Steps, ty: TensorType::new(Element::I32, &[]) });
        }
        let results: Vec<Slot> = match &self.kind {
            Kind::Init => {
                let cells = self.bank(Bank::Cell, Slot::Cell);
                carried.iter().chain(&cells).map(|port| port.slot).collect()
            }
            Kind::Observe => {
                let outputs = self.bank(Bank::Output, Slot::Output).into_iter().map(|port| port.slot);
                outputs.filter(|&slot| !self.remembering().is_brought(slot)).collect()
            }
            Kind::Line(_) => {
                let events = self.ports(|space| space.events.len(), Slot::Events);
                carried.iter().chain(&events).map(|port| port.slot).collect()
            }
            Kind::Step | Kind::Stretch(_) => {
                let events = self.ports(|space| space.events.len(), Slot::Events);
                let mut slots: Vec<Slot> = carried.iter().chain(&events).map(|port| port.slot).collect();
                if let Kind::Stretch(stretch) = &self.kind {
                    slots.extend((0..stretch.fields.len() as u32).map(Slot::Record));
                }
                slots.push(Slot::Finite);
                slots
            }
            Kind::Forward(course) => self.results_forward(course),
            Kind::Back(course) => self.results_back(course),
        };
        let mut b = Builder::new(name);
        let mut slots = Slots::new();
        for port in &arguments {
            let changes = matches!(self.kind, Kind::Step | Kind::Stretch(_) | Kind::Line(_)) && port.slot.is_carried();
            let heir = results.iter().position(|slot| changes && *slot == port.slot);
            slots.insert(port.slot, b.argument(port.ty.clone(), heir));
        }
        match &self.kind {
            Kind::Init | Kind::Observe => self.once(&mut b, &tables, &mut slots),
            Kind::Step => self.some_steps(&mut b, &tables, &mut slots),
            Kind::Line(steps) => {
                for ((space, event), word) in self.steps_in_line(&mut b, &tables, &mut slots, *steps, |_, _, _, _| {}) {
                    slots.insert(Slot::Events(space, event), word);
                }
            }
            Kind::Stretch(stretch) => self.stretch(&mut b, &tables, &mut slots, stretch),
            Kind::Forward(course) => self.forward(&mut b, &tables, &mut slots, course),
            Kind::Back(course) => self.back(&mut b, &tables, &mut slots, course),
        }
        let value = |slot: &Slot| {
            let known = slots.get(slot).copied();
            known.unwrap_or_else(|| {
                panic!("`{}` has no value at the end of {}", slot_name(self.plan, *slot), self.kind.name())
            })
        };
        let values: Vec<Value> = results.iter().map(value).collect();
        let results =
            results.iter().zip(&values).map(|(&slot, &value)| Port { slot, ty: b.of(value).clone() }).collect();
        let function = b.finish(values);
        let Tables { numbers, rows, .. } = tables;
        Entry { kind: self.kind, arguments, results, numbers, rows, function }
    }

    /// One row of each table of a role: the rows of the tables with this number.
    fn rows(
        &self,
        b: &mut Builder,
        tables: &Tables,
        slots: &Slots,
        role: Role,
        row: Value,
    ) -> HashMap<(Role, Part), Value> {
        let keys = tables.rows.keys().filter(|key| key.0 == role);
        keys.map(|&(role, part)| ((role, part), b.row(slots[&Slot::Rows(role, part)], row))).collect()
    }

    /// Runs the kernels of a role once. Events are told by space.
    fn run(
        &self,
        b: &mut Builder,
        tables: &Tables,
        slots: &mut Slots,
        role: Role,
        row: Value,
    ) -> Vec<(u32, u32, Value)> {
        let rows = self.rows(b, tables, slots, role, row);
        let numbers = Numbers { columns: &tables.columns, rows: &rows };
        match role {
            Role::Step => {
                self.deliveries().arrive(b, slots);
                self.remembering().arrive(b, slots, numbers);
            }
            Role::Init => {
                self.deliveries().begin(b, slots);
                self.remembering().begin(b, slots);
            }
            Role::Observe => self.remembering().observe(b, slots, numbers),
        }
        let mut events = Vec::new();
        let of_role = || self.kernels_of_cells().filter(|(_, kernel)| kernel.role == role);
        let passes = of_role().map(|(_, kernel)| kernel.pass + 1).max().unwrap_or(0);
        let mut effects = |b: &mut Builder, slots: &Slots, space: &'a SpacePlan, kernel: &'a KernelPlan| {
            let lanes = Lanes::new(b, self.plan, self.device, space, kernel, &tables.columns, slots, &rows);
            let effects: Effects = lanes.step();
            events.extend(effects.events.into_iter().map(|(event, mask)| (space.space.0, event, mask)));
            effects.fields
        };
        // What edges bring to branched cells is what the others had when the step began.
        let mut added = Vec::new();
        for (space, kernel) in of_role().filter(|(space, kernel)| self.plan.is_before_passes(space, kernel)) {
            added.extend(effects(b, slots, space, kernel));
        }
        self.store(b, slots, added);
        for pass in 0..passes {
            let mut fields = Vec::new();
            let here = of_role().filter(|(space, kernel)| kernel.pass == pass && self.branches(space).is_none());
            for (space, kernel) in here {
                fields.extend(effects(b, slots, space, kernel));
            }
            self.store(b, slots, fields);
        }
        for trees in self.plan.trees.iter().filter(|trees| self.device.sizes[trees.cells.0 as usize] > 0) {
            for task in trees.of_role(role) {
                let fields = match *task {
                    Task::Clear { field } => {
                        let field = trees.fields[field as usize];
                        let (space, ..) = self.plan.slot(field).expect("sums have a slot");
                        let cells = self.device.sizes[space.0 as usize];
                        vec![(field, b.constant(Literal::Real(0.0), real(self.plan.precision), &[cells]))]
                    }
                    Task::Kernel { space, pass } => {
                        let space = &self.plan.spaces[space as usize];
                        match space.kernel(role, pass) {
                            Some(kernel) if self.cells(space) > 0 && !self.plan.is_before_passes(space, kernel) => {
                                effects(b, slots, space, kernel)
                            }
                            Some(_) | None => Vec::new(),
                        }
                    }
                };
                self.store(b, slots, fields);
            }
        }
        slots.retain(|slot, _| !matches!(slot, Slot::Temp(..)));
        match role {
            Role::Init | Role::Step => {
                self.deliveries().send(b, slots, &events);
                self.remembering().send(b, slots, &events, (role == Role::Step).then_some(numbers));
            }
            Role::Observe => {}
        }
        events
    }

    /// New values of fields take the place of the old ones.
    fn store(&self, b: &mut Builder, slots: &mut Slots, fields: Vec<(FieldId, Value)>) {
        for (field, value) in fields {
            let slot = match self.plan.slot(field).expect("the plan stores fields that have a slot") {
                (space, Bank::State, slot) => Slot::State(space.0, slot),
                (space, Bank::Cell, slot) => Slot::Cell(space.0, slot),
                (space, Bank::Output, slot) => Slot::Output(space.0, slot),
                (space, Bank::Temp, slot) => Slot::Temp(space.0, slot),
                (_, Bank::Data, _) => panic!("the verifier checks that data are not stored"),
            };
            let value = if stored(self.plan, slot) == Element::Bf16 { b.narrow(value) } else { value };
            slots.insert(slot, value);
        }
    }

    /// The branched cells that a space belongs to, if it does.
    fn branches(&self, space: &SpacePlan) -> Option<Branches<'a>> {
        self.plan.tree(space.space).map(|tree| Branches { device: self.device, tree })
    }

    /// Computes what depends on cells, but not on time.
    fn cells_once(&self, b: &mut Builder, tables: &Tables, slots: &mut Slots) {
        let none = HashMap::default();
        for (space, kernel) in self.kernels_of_cells() {
            let lanes = Lanes::new(b, self.plan, self.device, space, kernel, &tables.columns, slots, &none);
            let values = lanes.cell();
            let slot = |(local, value)| (Slot::Local(space.id(kernel), local), value);
            slots.extend(values.into_iter().map(slot));
        }
    }

    fn once(&self, b: &mut Builder, tables: &Tables, slots: &mut Slots) {
        self.cells_once(b, tables, slots);
        let zero = whole(b, 0);
        self.run(b, tables, slots, self.roles[0], zero);
    }

    /// Looks at all states. Those of a space are joined cell by cell first: on a GPU every reduction is a kernel of its own.
    fn finite(&self, b: &mut Builder, slots: &mut Slots) {
        let mut finite = b.constant(Literal::Bool(true), Element::Bool, &[]);
        for space in self.spaces() {
            let each: Vec<Value> = (0..space.fields(Bank::State).count() as u32)
                .map(|slot| b.is_finite(slots[&Slot::State(space.space.0, slot)]))
                .collect();
            let Some(joined) = each.into_iter().reduce(|all, one| b.binary(Binary::And, all, one)) else { continue };
            let all = b.reduce(Binary::And, joined, 0);
            finite = b.binary(Binary::And, finite, all);
        }
        slots.insert(Slot::Finite, finite);
    }

    /// The events of every space, each with a word of every cell in which no bit is set.
    fn no_events(&self, b: &mut Builder, words: Option<usize>) -> Vec<(Slot, Value)> {
        let mut made = Vec::new();
        for space in self.spaces() {
            let dims: Vec<usize> = words.into_iter().chain([self.cells(space)]).collect();
            for event in 0..space.events.len() as u32 {
                let zero = b.constant(Literal::Whole(0), Element::U32, &dims);
                made.push((Slot::Events(space.space.0, event), zero));
            }
        }
        made
    }

    /// Adds what happened at a place in a line to the line's words.
    fn note(
        &self,
        b: &mut Builder,
        words: &mut BTreeMap<(u32, u32), Value>,
        happened: Vec<(u32, u32, Value)>,
        place: Value,
    ) {
        for (space, event, mask) in happened {
            let dims = b.dims(mask);
            let bit = b.convert(mask, Element::U32);
            let place = b.broadcast(place, &dims, &[]);
            let bit = b.binary(Binary::ShiftLeft, bit, place);
            let word = match words.get(&(space, event)) {
                Some(&word) => b.binary(Binary::Or, word, bit),
                None => bit,
            };
            words.insert((space, event), word);
        }
    }

    fn some_steps(&self, b: &mut Builder, tables: &Tables, slots: &mut Slots) {
        self.cells_once(b, tables, slots);
        slots.extend(self.no_events(b, Some(1)));
        let zero = whole(b, 0);
        slots.insert(STEP, zero);
        repeat(
            b,
            slots,
            |b, given| b.compare(Compare::Lt, given[&STEP], given[&Slot::Steps]),
            |b, slots| {
                let step = slots[&STEP];
                let happened = self.run(b, tables, slots, Role::Step, step);
                let mut words = BTreeMap::new();
                for (slot, &word) in &*slots {
                    if let Slot::Events(space, event) = *slot {
                        let dims = b.dims(word);
                        words.insert((space, event), b.reshape(word, &dims[1..]));
                    }
                }
                let place = b.convert(step, Element::U32);
                self.note(b, &mut words, happened, place);
                for ((space, event), word) in words {
                    let dims: Vec<usize> = std::iter::once(1).chain(b.dims(word)).collect();
                    slots.insert(Slot::Events(space, event), b.reshape(word, &dims));
                }
                advance(b, slots, STEP, 1);
            },
        );
        self.finite(b, slots);
    }

    /// What a run computes once, as arguments of an entry point that does not compute it.
    fn computed_once(&self, tables: &Tables, arguments: &[Port]) -> Vec<Port> {
        let mut scratch = Builder::new("once");
        let mut slots: Slots =
            arguments.iter().map(|port| (port.slot, scratch.argument(port.ty.clone(), None))).collect();
        self.cells_once(&mut scratch, tables, &mut slots);
        let computed = slots.iter().filter(|(slot, _)| matches!(slot, Slot::Local(..)));
        computed.map(|(&slot, &value)| Port { slot, ty: scratch.of(value).clone() }).collect()
    }

    /// Steps in a straight line; tells the words of events. Where cells read each other, a step is computed whole before the next: XLA otherwise
    /// computes what is gathered of all steps first, and the rest of them in one kernel that has registers for a fraction of a GPU's threads.
    fn steps_in_line(
        &self,
        b: &mut Builder,
        tables: &Tables,
        slots: &mut Slots,
        steps: u32,
        mut after: impl FnMut(&Self, &mut Builder, &mut Slots, u32),
    ) -> BTreeMap<(u32, u32), Value> {
        let mut words = BTreeMap::new();
        let coupled = self.plan.spaces.iter().any(|space| !space.edges.is_empty());
        for place in 0..steps {
            let step = match slots.get(&STEP) {
                Some(&step) => step,
                None => whole(b, place),
            };
            let happened = self.run(b, tables, slots, Role::Step, step);
            let bit = b.constant(Literal::Whole(u64::from(place)), Element::U32, &[]);
            self.note(b, &mut words, happened, bit);
            if coupled {
                for (_, value) in slots.iter_mut().filter(|(slot, _)| matches!(slot, Slot::State(..))) {
                    *value = b.barrier(*value);
                }
            }
            after(self, b, slots, place);
        }
        words
    }

    /// Steps in a straight line, inside a loop: which line it is, and its first step. Between two samples there are `every` steps, if the
    /// line holds more than one sample.
    fn line(&self, b: &mut Builder, tables: &Tables, slots: &mut Slots, line: Line, stretch: &Stretch) {
        let Line { number, first, steps, samples } = line;
        slots.insert(STEP, first);
        let words = if self.device.rolled {
            self.rolled_line(b, tables, slots, steps, stretch, samples)
        } else {
            self.steps_in_line(b, tables, slots, steps, |emitter, b, slots, place| {
                advance(b, slots, STEP, 1);
                if samples > 0 && (place + 1).is_multiple_of(stretch.every) {
                    emitter.take_sample(b, tables, slots, stretch);
                }
            })
        };
        slots.remove(&STEP);
        if words.is_empty() {
            return;
        }
        // Which word of events is noted, and which bit of it is the line's first step.
        let in_word = stretch.lines_in_word(self.device.unroll);
        let row = with(b, Binary::Divide, number, in_word);
        let before = with(b, Binary::Multiply, row, in_word);
        let place = b.binary(Binary::Subtract, number, before);
        let last = whole(b, in_word - 1);
        let full = b.compare(Compare::Ge, place, last);
        let bit = with(b, Binary::Multiply, place, stretch.most_in_line(self.device.unroll));
        let bit = b.convert(bit, Element::U32);
        for ((space, event), word) in words {
            let dims = b.dims(word);
            let shift = b.broadcast(bit, &dims, &[]);
            let word = b.binary(Binary::ShiftLeft, word, shift);
            let word = b.binary(Binary::Or, slots[&Slot::Inside(Inside::Word(space, event))], word);
            // A word is written again with every line that it holds, and never read: arrays that are read while they are written
            // may be copied.
            let all = slots[&Slot::Events(space, event)];
            slots.insert(Slot::Events(space, event), b.set_row(all, row, word));
            let empty = b.constant(Literal::Whole(0), Element::U32, &dims);
            let full = b.broadcast(full, &dims, &[]);
            slots.insert(Slot::Inside(Inside::Word(space, event)), b.select(full, empty, word));
        }
    }

    /// The same with a loop over samples, if there are any, and one over steps; tells the words of events.
    fn rolled_line(
        &self,
        b: &mut Builder,
        tables: &Tables,
        slots: &mut Slots,
        steps: u32,
        stretch: &Stretch,
        samples: u32,
    ) -> BTreeMap<(u32, u32), Value> {
        for (slot, zero) in self.no_events(b, None) {
            if let Slot::Events(space, event) = slot {
                slots.insert(Slot::Inside(Inside::LineOfEvents(space, event)), zero);
            }
        }
        let zero = whole(b, 0);
        slots.insert(PLACE, zero);
        if samples > 0 {
            slots.insert(SAMPLE_OF_LINE, zero);
            repeat(b, slots, below(SAMPLE_OF_LINE, samples), |b, slots| {
                self.rolled_steps(b, tables, slots, stretch.every);
                self.take_sample(b, tables, slots, stretch);
                advance(b, slots, SAMPLE_OF_LINE, 1);
            });
            slots.remove(&SAMPLE_OF_LINE);
        } else {
            self.rolled_steps(b, tables, slots, steps);
        }
        slots.remove(&PLACE);
        let words = slots.iter().filter_map(|(slot, &word)| match *slot {
            Slot::Inside(Inside::LineOfEvents(space, event)) => Some(((space, event), word)),
            _ => None,
        });
        let words = words.collect();
        slots.retain(|slot, _| !matches!(slot, Slot::Inside(Inside::LineOfEvents(..))));
        words
    }

    fn rolled_steps(&self, b: &mut Builder, tables: &Tables, slots: &mut Slots, steps: u32) {
        let one = |b: &mut Builder, slots: &mut Slots| {
            let happened = self.run(b, tables, slots, Role::Step, slots[&STEP]);
            let mut words = BTreeMap::new();
            for (space, event, _) in &happened {
                words.insert((*space, *event), slots[&Slot::Inside(Inside::LineOfEvents(*space, *event))]);
            }
            let place = b.convert(slots[&PLACE], Element::U32);
            self.note(b, &mut words, happened, place);
            slots.extend(
                words
                    .into_iter()
                    .map(|((space, event), word)| (Slot::Inside(Inside::LineOfEvents(space, event)), word)),
            );
            advance(b, slots, STEP, 1);
            advance(b, slots, PLACE, 1);
        };
        if steps == 1 {
            return one(b, slots);
        }
        let zero = whole(b, 0);
        slots.insert(STEP_OF_SAMPLE, zero);
        repeat(b, slots, below(STEP_OF_SAMPLE, steps), |b, slots| {
            one(b, slots);
            advance(b, slots, STEP_OF_SAMPLE, 1);
        });
        slots.remove(&STEP_OF_SAMPLE);
    }

    fn take_sample(&self, b: &mut Builder, tables: &Tables, slots: &mut Slots, stretch: &Stretch) {
        let taken = slots[&TAKEN];
        if self.roles.contains(&Role::Observe) {
            self.run(b, tables, slots, Role::Observe, taken);
        }
        for (entry, (field, cells)) in stretch.fields.iter().enumerate() {
            // Of a connection that has no edges nothing is computed.
            if cells.is_empty() {
                continue;
            }
            let (space, bank, slot) = self.plan.slot(*field).expect("only fields that have a slot are sampled");
            let value = match bank {
                Bank::State => slots[&Slot::State(space.0, slot)],
                Bank::Output => slots[&Slot::Output(space.0, slot)],
                Bank::Cell | Bank::Data | Bank::Temp => panic!("only states and outputs are sampled"),
            };
            let value = b.slice(value, &[cells.start], &[cells.end]);
            let record = slots[&Slot::Record(entry as u32)];
            slots.insert(Slot::Record(entry as u32), b.set_row(record, taken, value));
        }
        // Outputs are not carried: nothing reads them before they are computed again.
        slots.retain(|slot, _| !matches!(slot, Slot::Output(..)));
        advance(b, slots, TAKEN, 1);
    }

    fn stretch(&self, b: &mut Builder, tables: &Tables, slots: &mut Slots, stretch: &Stretch) {
        self.cells_once(b, tables, slots);
        slots.extend(self.no_events(b, Some(stretch.words(self.device.unroll) as usize)));
        for (slot, empty) in self.no_events(b, None) {
            if let Slot::Events(space, event) = slot {
                slots.insert(Slot::Inside(Inside::Word(space, event)), empty);
            }
        }
        let element = real(self.plan.precision);
        for (entry, (_, cells)) in stretch.fields.iter().enumerate() {
            let empty = b.constant(Literal::Real(0.0), element, &[stretch.samples as usize, cells.len()]);
            slots.insert(Slot::Record(entry as u32), empty);
        }
        let zero = whole(b, 0);
        slots.insert(TAKEN, zero);
        // Other counters follow from those of the loops: each that is carried is a kernel of its own.
        repeat(b, slots, below(TAKEN, stretch.samples), |b, slots| {
            let first = with(b, Binary::Multiply, slots[&TAKEN], stretch.every);
            match stretch.grouping(self.device.unroll) {
                Grouping::Samples { samples } => {
                    let number = with(b, Binary::Divide, slots[&TAKEN], samples);
                    self.line(
                        b,
                        tables,
                        slots,
                        Line { number, first, steps: samples * stretch.every, samples },
                        stretch,
                    );
                }
                Grouping::Steps { lines, steps, rest } => {
                    let number = with(b, Binary::Multiply, slots[&TAKEN], lines + u32::from(rest > 0));
                    let zero = whole(b, 0);
                    slots.extend([(LINE_OF_SAMPLE, zero), (FIRST, first), (NUMBER, number)]);
                    repeat(b, slots, below(LINE_OF_SAMPLE, lines), |b, slots| {
                        let done = with(b, Binary::Multiply, slots[&LINE_OF_SAMPLE], steps);
                        let first = b.binary(Binary::Add, slots[&FIRST], done);
                        let number = b.binary(Binary::Add, slots[&NUMBER], slots[&LINE_OF_SAMPLE]);
                        self.line(b, tables, slots, Line { number, first, steps, samples: 0 }, stretch);
                        advance(b, slots, LINE_OF_SAMPLE, 1);
                    });
                    for slot in [LINE_OF_SAMPLE, FIRST, NUMBER] {
                        slots.remove(&slot);
                    }
                    if rest > 0 {
                        let (first, number) =
                            (with(b, Binary::Add, first, lines * steps), with(b, Binary::Add, number, lines));
                        self.line(b, tables, slots, Line { number, first, steps: rest, samples: 0 }, stretch);
                    }
                    self.take_sample(b, tables, slots, stretch);
                }
            }
        });
        self.finite(b, slots);
    }
}

/// Where a line of steps is in its stretch.
struct Line {
    /// How many lines are before it.
    number: Value,
    /// How many steps are.
    first: Value,
    steps: u32,
    samples: u32,
}

/// All statements over lanes.
fn lane_statements(kernel: &KernelPlan) -> impl Iterator<Item = &Stmt> {
    kernel.cell.iter().chain(kernel.edges.iter().flat_map(|edges| &edges.body)).chain(&kernel.body)
}

pub(super) fn whole(b: &mut Builder, n: u32) -> Value {
    b.constant(Literal::Whole(u64::from(n)), Element::I32, &[])
}

fn with(b: &mut Builder, operation: Binary, value: Value, n: u32) -> Value {
    let n = whole(b, n);
    b.binary(operation, value, n)
}

/// The condition of a loop that counts to an end.
fn below(counter: Slot, end: u32) -> impl FnOnce(&mut Builder, &Slots) -> Value {
    move |b, given| {
        let end = whole(b, end);
        b.compare(Compare::Lt, given[&counter], end)
    }
}

fn advance(b: &mut Builder, slots: &mut Slots, counter: Slot, by: u32) {
    let next = with(b, Binary::Add, slots[&counter], by);
    slots.insert(counter, next);
}

/// A loop that carries everything that is known.
fn repeat(
    b: &mut Builder,
    slots: &mut Slots,
    condition: impl FnOnce(&mut Builder, &Slots) -> Value,
    body: impl FnOnce(&mut Builder, &mut Slots),
) {
    let keys: Vec<Slot> = slots.keys().copied().collect();
    let carried: Vec<Value> = slots.values().copied().collect();
    let known = |given: &[Value]| -> Slots { keys.iter().copied().zip(given.iter().copied()).collect() };
    let after = b.repeat(
        &carried,
        |b, given| condition(b, &known(given)),
        |b, given| {
            let mut inside = known(given);
            body(b, &mut inside);
            assert!(inside.keys().eq(keys.iter()), "a loop carries the same all along");
            inside.into_values().collect()
        },
    );
    *slots = known(&after);
}
