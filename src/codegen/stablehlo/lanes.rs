//! The operations of a plan, one after the other, as StableHLO.
//!
//! In come statements over lanes and what they read; out go values: a scalar for a number, `[cells]` for a value per cell, and for a
//! value per edge `[rows, cells]`, `[sources, cells]`, of a row of slabs `[width]` or, of one displacement, `[z, (y, x)]`, as the form of the gather has it.
//! Never true here: a number is computed (the host does that, in double precision), or the order of operations is changed.

use super::branches::Branches;
use super::builder::{Binary, Builder, Compare, Element, Literal, Unary, Value};
use super::entry::Slots;
use super::poisson::poisson;
use super::slot::{Fixed, Part, Slot, slot_name};
use crate::codegen::plan::{
    DevicePlan, EdgePlan, Expr, GatherForm, KernelId, KernelPlan, Lattice, Operand, Plan, Precision, Relation, Slabs,
    SpacePlan, Stmt, Trees, Usage,
};
use crate::runtime::machine::Bank;
use crate::runtime::math;
use crate::step::{BinaryOp, Distribution, Elementary, FieldId, Role, Type, UnaryOp};
use rustc_hash::FxHashMap as HashMap;

/// Tables of numbers: for each column its number.
pub(super) type Columns = HashMap<(KernelId, bool, u32, Usage), (Part, usize)>;

/// Where a field is found that has a value for every cell and that kernels read.
pub(super) fn slot_of(plan: &Plan, field: FieldId) -> Slot {
    match plan.slot(field).expect("the plan loads fields that have a slot") {
        (space, Bank::State, at) => Slot::State(space.0, at),
        (space, Bank::Cell, at) => Slot::Cell(space.0, at),
        (space, Bank::Data, at) => Slot::Fixed(Fixed::Data(space.0, at)),
        (space, Bank::Temp, at) => Slot::Temp(space.0, at),
        (_, Bank::Output, _) => panic!("the verifier checks that outputs are not read"),
    }
}

/// What one run of a kernel leaves.
#[derive(Debug, Default)]
pub(super) struct Effects {
    /// New values of fields.
    pub fields: Vec<(FieldId, Value)>,
    /// Events and where they happen.
    pub events: Vec<(u32, Value)>,
}

/// The element type of lanes.
pub fn real(precision: Precision) -> Element {
    match precision {
        Precision::F64 => Element::F64,
        Precision::F32 | Precision::Bf16 => Element::F32,
    }
}

/// The element type of the value per cell that a slot stands for, in memory.
pub fn stored(plan: &Plan, slot: Slot) -> Element {
    match slot.field(plan) {
        Some(field) if plan.narrow.contains(&field) => Element::Bf16,
        Some(_) | None => real(plan.precision),
    }
}

/// A state on its way along edges, in 16 bits.
#[derive(Debug, Clone, Copy)]
struct Sent {
    /// How much higher it is than in the first cell, rounded. Voltages of a network are closer to each other than to 0.
    difference: Value,
    /// The state of the first cell.
    first: Value,
    /// The state of every cell, as others see it.
    seen: Value,
}

/// Emits a kernel of a space.
pub(super) struct Lanes<'a> {
    plan: &'a Plan,
    device: &'a DevicePlan,
    space: &'a SpacePlan,
    kernel: &'a KernelPlan,
    columns: &'a Columns,
    /// Everything that is known in the block.
    slots: &'a Slots,
    /// For each role and part, the step's row of the tables of numbers.
    rows: &'a HashMap<(Role, Part), Value>,
    b: &'a mut Builder,
    real: Element,
    locals: HashMap<u32, Value>,
    numbers: HashMap<(bool, u32, Usage), Value>,
    there: HashMap<(u32, u32), Value>,
    /// While edges are at work: the numbers that they have for themselves.
    of_edges: HashMap<u32, Value>,
    /// Values per cell that were widened.
    wide: HashMap<Slot, Value>,
    /// States that go along edges in 16 bits.
    sent: HashMap<Slot, Sent>,
    /// While an edge is at work: the states that it brings.
    brought: Vec<Slot>,
    /// While edges are shifts of a lattice: it, and the values per cell that were brought into its layout.
    lattice: Option<(&'a Lattice, HashMap<Value, Value>)>,
    /// While edges are rows of slabs: the cells of a slab.
    slab: Option<Value>,
}

impl<'a> Lanes<'a> {
    #[allow(clippy::too_many_arguments)]
    pub fn new(
        b: &'a mut Builder,
        plan: &'a Plan,
        device: &'a DevicePlan,
        space: &'a SpacePlan,
        kernel: &'a KernelPlan,
        columns: &'a Columns,
        slots: &'a Slots,
        rows: &'a HashMap<(Role, Part), Value>,
    ) -> Lanes<'a> {
        let real = real(plan.precision);
        let (locals, numbers, there) = (HashMap::default(), HashMap::default(), HashMap::default());
        let (wide, sent, brought) = (HashMap::default(), HashMap::default(), Vec::new());
        Lanes {
            plan,
            device,
            space,
            kernel,
            columns,
            slots,
            rows,
            b,
            real,
            locals,
            numbers,
            there,
            of_edges: HashMap::default(),
            wide,
            sent,
            brought,
            lattice: None,
            slab: None,
        }
    }

    fn cells(&self) -> usize {
        match self.slab {
            Some(slab) => self.b.of(slab).len(),
            None => self.device.sizes[self.space.space.0 as usize],
        }
    }

    /// The number of every cell.
    fn index(&mut self, element: Element, dims: &[usize]) -> Value {
        match self.slab {
            Some(slab) => {
                let cells = self.b.convert(slab, element);
                self.fit(cells, dims)
            }
            None => self.b.iota(element, dims),
        }
    }

    /// The values of `cell` that the rest of the kernel reads, by their locals.
    pub fn cell(mut self) -> Vec<(u32, Value)> {
        self.statements(&self.kernel.cell);
        let kernel = self.kernel;
        let used = used_by_steps(kernel);
        let made = kernel.cell.iter().filter_map(|stmt| stmt.local).filter(|local| used.contains(local));
        made.map(|local| (local, self.locals[&local])).collect()
    }

    /// One run of edges, body and stores. Values of `cell` are known to the block.
    pub fn step(mut self) -> Effects {
        let kernel = self.space.id(self.kernel);
        for stmt in &self.kernel.cell {
            if let Some(local) = stmt.local
                && let Some(&value) = self.slots.get(&Slot::Local(kernel, local))
            {
                self.locals.insert(local, value);
            }
        }
        let cells = self.cells();
        for &sum in &self.kernel.sums {
            let zero = self.constant(0.0, &[cells]);
            self.locals.insert(sum, zero);
        }
        for edges in &self.kernel.edges {
            self.edges(edges);
        }
        if let Some(equations) = self.kernel.solves {
            let trees = self.trees();
            let field = |at: u32| trees.fields[at as usize];
            let value = |at: u32| self.slots[&self.slot_of(field(at))];
            let [own, link, rhs] = [equations.own, equations.link, equations.rhs].map(value);
            let from = equations.from.map(value);
            let x = self.branches().solve(self.b, self.slots, equations.parent, [own, link, rhs], from);
            return Effects { fields: vec![(field(equations.x), x)], events: Vec::new() };
        }
        let mut effects = Effects { events: self.statements(&self.kernel.body), ..Effects::default() };
        self.b.at(None);
        for &(field, operand) in &self.kernel.stores {
            effects.fields.push((field, self.operand(operand, &[cells])));
        }
        for &(register, operand) in &self.kernel.updates {
            let field = self.kernel.registers[register as usize].field;
            effects.fields.push((field, self.operand(operand, &[cells])));
        }
        let mut sums: Vec<(FieldId, Value)> = Vec::new();
        for add in &self.kernel.adds {
            let field = self.trees().fields[add.sum as usize];
            let known = sums.iter().position(|(other, _)| *other == field);
            let sum = known.map_or_else(|| self.slots[&self.slot_of(field)], |at| sums[at].1);
            let value = self.operand(add.value, &[cells]);
            let sum = self.branches().add(self.b, self.slots, add.tie, sum, value);
            match known {
                Some(at) => sums[at].1 = sum,
                None => sums.push((field, sum)),
            }
        }
        effects.fields.extend(sums);
        effects
    }

    /// The branched cells that the space belongs to.
    fn tree(&self) -> u32 {
        self.plan.tree(self.space.space).expect("only branched cells have maps")
    }

    fn trees(&self) -> &'a Trees {
        &self.plan.trees[self.tree() as usize]
    }

    fn branches(&self) -> Branches<'a> {
        Branches { device: self.device, tree: self.tree() }
    }

    fn edges(&mut self, plan: &EdgePlan) {
        let (space, at, cells) = (self.space.space.0, plan.edges, self.cells());
        let device = self.device;
        match &device.gathers[space as usize][at as usize] {
            GatherForm::Padded { rows: 0 } | GatherForm::Rows { rows: 0 } => {}
            GatherForm::Padded { rows } => {
                let sources = self.slots[&Slot::Fixed(Fixed::Sources(space, at))];
                let present = self.slots[&Slot::Fixed(Fixed::Present(space, at))];
                self.of_edges = self.of_edges(plan).into_iter().collect();
                let values = self.along(plan, present, &[*rows, cells], |b, from| b.gather(from, sources));
                self.add_up(plan, values);
            }
            GatherForm::Rows { rows } => {
                let own = self.of_edges(plan);
                for row in 0..*rows {
                    let mut of_row = |all: Value| {
                        let row = self.b.slice(all, &[row, 0], &[row + 1, cells]);
                        self.b.reshape(row, &[cells])
                    };
                    let [sources, present] = [Fixed::Sources(space, at), Fixed::Present(space, at)]
                        .map(|table| of_row(self.slots[&Slot::Fixed(table)]));
                    self.of_edges = own.iter().map(|&(number, all)| (number, of_row(all))).collect();
                    let values = self.along(plan, present, &[cells], |b, from| b.gather(from, sources));
                    self.add(plan, values);
                }
            }
            GatherForm::Slabs(slabs) => self.slabs(plan, slabs),
            GatherForm::Shifts(lattice) => self.shifts(plan, lattice),
            GatherForm::Pairs => {
                let pairs = self.slots[&Slot::Fixed(Fixed::Pairs(space, at))];
                let all = [cells, cells];
                let values = self.along(plan, pairs, &all, |b, from| b.broadcast(from, &all, &[0]));
                self.add_up(plan, values);
            }
        }
    }

    /// The tables of the numbers that edges have for themselves and compute with.
    fn of_edges(&self, plan: &EdgePlan) -> Vec<(u32, Value)> {
        let read = |number: &u32| plan.body.iter().any(|stmt| stmt.expr == Expr::OfEdge(*number));
        let numbers = 0..self.relation(plan).numbers.fields.len() as u32;
        let table = |number| Slot::Fixed(Fixed::OfEdge(self.space.space.0, plan.edges, number));
        numbers.filter(read).map(|number| (number, self.slots[&table(number)])).collect()
    }

    /// What some edges of every cell add to the sums: what is not `present` adds 0. `get` brings a state to the edges.
    fn along(
        &mut self,
        plan: &EdgePlan,
        present: Value,
        dims: &[usize],
        mut get: impl FnMut(&mut Builder, Value) -> Value,
    ) -> Vec<Value> {
        let outside: Vec<u32> = self.locals.keys().copied().collect();
        self.there = HashMap::default();
        for (entry, slot) in self.exchanged(plan) {
            let from = self.source(plan, slot);
            let value = get(self.b, from);
            let value = self.received(slot, value);
            self.there.insert((plan.edges, entry), value);
            self.brought.push(slot);
        }
        let added = self.added(plan, present, dims);
        self.locals.retain(|local, _| outside.contains(local));
        added
    }

    /// The same where what edges bring is there.
    fn added(&mut self, plan: &EdgePlan, present: Value, dims: &[usize]) -> Vec<Value> {
        self.at_edges(plan);
        self.brought.clear();
        let mut added = Vec::new();
        for &(_, operand) in &plan.adds {
            let value = self.operand(operand, dims);
            let zero = self.constant(0.0, dims);
            added.push(self.b.select(present, value, zero));
        }
        added
    }

    fn relation(&self, plan: &EdgePlan) -> &'a Relation {
        self.plan.relation(self.space.edges[plan.edges as usize])
    }

    /// The fields that edges bring.
    fn exchanged(&self, plan: &EdgePlan) -> Vec<(u32, Slot)> {
        let shared = &self.plan.spaces[self.relation(plan).from.0 as usize].shared;
        let brought =
            (0..).zip(shared).filter(|(entry, _)| plan.body.iter().any(|stmt| stmt.expr == Expr::There(*entry)));
        brought.map(|(entry, shared)| (entry, self.slot_of(shared.field))).collect()
    }

    /// What is brought along edges for a field.
    fn source(&mut self, plan: &EdgePlan, slot: Slot) -> Value {
        let state = self.slots[&slot];
        if !self.relation(plan).narrow {
            return state;
        }
        if let Some(sent) = self.sent.get(&slot) {
            return sent.difference;
        }
        let first = self.b.slice(state, &[0], &[1]);
        let first = self.b.reshape(first, &[]);
        let dims = self.b.dims(state);
        let everywhere = self.b.broadcast(first, &dims, &[]);
        let difference = self.b.binary(Binary::Subtract, state, everywhere);
        let difference = self.b.narrow(difference);
        let wide = self.b.convert(difference, self.real);
        let seen = self.b.binary(Binary::Add, everywhere, wide);
        self.sent.insert(slot, Sent { difference, first, seen });
        difference
    }

    /// The state of other cells, from what was brought.
    fn received(&mut self, slot: Slot, brought: Value) -> Value {
        match self.sent.get(&slot) {
            Some(&Sent { first, .. }) => self.above(first, brought),
            None => brought,
        }
    }

    /// How much higher than in the first cell to how high.
    fn above(&mut self, first: Value, difference: Value) -> Value {
        let dims = self.b.dims(difference);
        let everywhere = self.b.broadcast(first, &dims, &[]);
        let difference = self.b.convert(difference, self.real);
        self.b.binary(Binary::Add, everywhere, difference)
    }

    fn add(&mut self, plan: &EdgePlan, values: Vec<Value>) {
        for (&(sum, _), value) in plan.adds.iter().zip(values) {
            let sum = self.locals.get_mut(&sum).expect("sums begin at 0");
            *sum = self.b.binary(Binary::Add, *sum, value);
        }
    }

    /// Adds the rows of values.
    fn add_up(&mut self, plan: &EdgePlan, values: Vec<Value>) {
        let values = values.into_iter().map(|value| self.b.reduce(Binary::Add, value, 0)).collect();
        self.add(plan, values);
    }

    /// A loop over the rows of all slabs. Inside, a value per cell has those of one slab.
    fn slabs(&mut self, edges: &EdgePlan, slabs: &Slabs) {
        let (space, at, rows) = (self.space.space.0, edges.edges, slabs.all_rows());
        if rows == 0 {
            return;
        }
        let order = self.slots[&Slot::Fixed(Fixed::Order(space, at))];
        let tables = [Slot::Fixed(Fixed::Sources(space, at)), Slot::Fixed(Fixed::Slabs(space, at))]
            .map(|slot| self.slots[&slot]);
        let zero = self.b.constant(Literal::Whole(0), Element::I32, &[]);
        let empty = self.constant(0.0, &[slabs.rows.len(), slabs.width]);
        let exchanged = self.exchanged(edges);
        let from: Vec<Value> = exchanged.iter().map(|&(_, slot)| self.source(edges, slot)).collect();
        let sent: Vec<Sent> = exchanged.iter().filter_map(|(_, slot)| self.sent.get(slot).copied()).collect();
        let firsts: Vec<Value> = sent.iter().map(|sent| sent.first).collect();
        // Values per cell, in the order of slabs, and what all cells share.
        let (mut spread, mut shared) = (Vec::new(), Vec::new());
        for outside in self.outside(edges) {
            let value = match outside {
                Outside::Slot(slot) => match exchanged.iter().zip(&sent).find(|((_, sent), _)| *sent == slot) {
                    Some((_, sent)) => sent.seen,
                    None => self.slots[&slot],
                },
                Outside::Local(local) => self.locals[&local],
                Outside::Row(key) => self.rows[&key],
            };
            let of_cells = match outside {
                Outside::Slot(slot) => {
                    matches!(slot, Slot::State(..) | Slot::Cell(..) | Slot::Temp(..) | Slot::Fixed(Fixed::Data(..)))
                }
                Outside::Local(_) => !self.b.dims(value).is_empty(),
                Outside::Row(_) => false,
            };
            if of_cells {
                spread.push((outside, self.b.gather(value, order)));
            } else {
                shared.push((outside, value));
            }
        }
        let own = self.of_edges(edges);
        let sums = vec![empty; edges.adds.len()];
        let values = |known: &[(Outside, Value)]| known.iter().map(|(_, value)| *value).collect::<Vec<_>>();
        let own_tables: Vec<Value> = own.iter().map(|(_, table)| *table).collect();
        let (spread_values, shared_values) = (values(&spread), values(&shared));
        let carried =
            [&[zero, order], &tables[..], &sums, &from, &own_tables, &firsts, &spread_values, &shared_values].concat();
        let (plan, device, of_space, kernel, columns) = (self.plan, self.device, self.space, self.kernel, self.columns);
        let below = |b: &mut Builder, given: &[Value]| {
            let end = b.constant(Literal::Whole(rows as u64), Element::I32, &[]);
            b.compare(Compare::Lt, given[0], end)
        };
        let after = self.b.repeat(&carried, below, |b, given| {
            let (row, order, sources, slab) = (given[0], given[1], given[2], given[3]);
            let (sums, rest) = given[4..].split_at(sums.len());
            let (from, rest) = rest.split_at(from.len());
            let (own_tables, rest) = rest.split_at(own.len());
            let (firsts, rest) = rest.split_at(firsts.len());
            let slab = b.row(slab, row);
            let sources = b.row(sources, row);
            let (mut slots, mut rows, mut locals) = (Slots::new(), HashMap::default(), HashMap::default());
            for (at, ((outside, _), &value)) in spread.iter().chain(&shared).zip(rest).enumerate() {
                let value = if at < spread.len() { b.row(value, slab) } else { value };
                match *outside {
                    Outside::Slot(slot) => drop(slots.insert(slot, value)),
                    Outside::Local(local) => drop(locals.insert(local, value)),
                    Outside::Row(key) => drop(rows.insert(key, value)),
                }
            }
            let cells = b.row(order, slab);
            let of_edges =
                own.iter().zip(own_tables).map(|(&(number, _), &table)| (number, b.row(table, row))).collect();
            let mut inside = Lanes::new(b, plan, device, of_space, kernel, columns, &slots, &rows);
            inside.locals = locals;
            inside.slab = Some(cells);
            inside.of_edges = of_edges;
            for (at, ((entry, _), &from)) in exchanged.iter().zip(from).enumerate() {
                let mut value = inside.b.gather(from, sources);
                if let Some(&first) = firsts.get(at) {
                    value = inside.above(first, value);
                }
                inside.there.insert((edges.edges, *entry), value);
            }
            let dims = inside.b.dims(sources);
            let none = inside.b.constant(Literal::Whole(0), Element::I32, &dims);
            let present = inside.b.compare(Compare::Ge, sources, none);
            let added = inside.added(edges, present, &dims);
            let mut after = given.to_vec();
            let one = b.constant(Literal::Whole(1), Element::I32, &[]);
            after[0] = b.binary(Binary::Add, row, one);
            for ((after, &all), value) in after[4..].iter_mut().zip(sums).zip(added) {
                let sum = b.row(all, slab);
                let sum = b.binary(Binary::Add, sum, value);
                *after = b.set_row(all, slab, sum);
            }
            after
        });
        let places = self.slots[&Slot::Fixed(Fixed::Places(space, at))];
        let mut values = Vec::new();
        for &sum in &after[4..4 + edges.adds.len()] {
            let all = self.b.reshape(sum, &[slabs.rows.len() * slabs.width]);
            values.push(self.b.gather(all, places));
        }
        self.add(edges, values);
    }

    /// What edges read besides what they bring, each thing once.
    fn outside(&self, edges: &EdgePlan) -> Vec<Outside> {
        let kernel = self.space.id(self.kernel);
        let inside: Vec<u32> = edges.body.iter().filter_map(|stmt| stmt.local).collect();
        let mut found = Vec::new();
        let of_number = |of_time: bool, local: u32, usage: Usage| {
            let (part, _) = self.columns[&(kernel, of_time, local, usage)];
            if of_time { Outside::Row((kernel.role, part)) } else { Outside::Slot(Slot::Numbers(part)) }
        };
        let operand = |operand: Operand, usage: Usage| match operand {
            Operand::Real(_) | Operand::Single(_) | Operand::Bool(_) => None,
            Operand::Lanes(local) => (!inside.contains(&local)).then_some(Outside::Local(local)),
            Operand::Call(local) => Some(of_number(false, local, usage)),
            Operand::Time(local) => Some(of_number(true, local, usage)),
            Operand::Register(register) => Some(Outside::Slot(self.slot_of_register(register))),
        };
        for stmt in &edges.body {
            let usage = if let Expr::Draw(..) = stmt.expr { Usage::Counter } else { Usage::Spread };
            found.extend(stmt.expr.operands().into_iter().filter_map(|o| operand(o, usage)));
            match stmt.expr {
                Expr::Sample(series, _) => {
                    found.extend(
                        [Slot::Fixed(Fixed::SeriesTimes(series)), Slot::Fixed(Fixed::SeriesValues(series))]
                            .map(Outside::Slot),
                    );
                }
                Expr::Draw(..) => found.push(Outside::Slot(Slot::Fixed(Fixed::Seed))),
                Expr::Uniform(_)
                | Expr::Time(_)
                | Expr::StepIndex
                | Expr::Index
                | Expr::There(_)
                | Expr::OfEdge(_)
                | Expr::Along(..)
                | Expr::Copy(_)
                | Expr::Unary(..)
                | Expr::Approximate(..)
                | Expr::Binary(..)
                | Expr::Fma(..)
                | Expr::Select(..)
                | Expr::Emit(..) => {}
            }
        }
        found.extend(edges.adds.iter().filter_map(|&(_, value)| operand(value, Usage::Spread)));
        let mut once = Vec::new();
        for outside in found {
            if !once.contains(&outside) {
                once.push(outside);
            }
        }
        once
    }

    fn shifts(&mut self, plan: &EdgePlan, lattice: &'a Lattice) {
        let (space, cells) = (self.space.space.0, self.cells());
        let dims = lattice.dims();
        let [planes, plane] = dims;
        let mut halos = HashMap::default();
        for (_, slot) in self.exchanged(plan) {
            let from = self.source(plan, slot);
            let halo = halo(self.b, lattice, from);
            halos.insert(from, halo);
        }
        self.lattice = Some((lattice, HashMap::default()));
        let zero = self.constant(0.0, &dims);
        let no_bit = self.b.constant(Literal::Whole(0), Element::U32, &dims);
        let mut sums = vec![zero; plan.adds.len()];
        for word in 0..lattice.words() {
            let mask = self.slots[&Slot::Fixed(Fixed::Mask(space, plan.edges, word as u32))];
            for (shift, bit) in lattice.of_word(word) {
                let bit = self.b.constant(Literal::Whole(u64::from(bit)), Element::U32, &dims);
                let bit = self.b.binary(Binary::And, mask, bit);
                let present = self.b.compare(Compare::Ne, bit, no_bit);
                let start = lattice.start(shift);
                let end = [start[0] + planes, start[1] + plane];
                let values = self.along(plan, present, &dims, |b, from| b.slice(halos[&from], &start, &end));
                for (sum, value) in sums.iter_mut().zip(values) {
                    *sum = self.b.binary(Binary::Add, *sum, value);
                }
            }
            // A loop for each word: of more displacements XLA makes loops whose masks it computes and stores beforehand, a truth
            // value for each displacement, or whose intermediate values do not fit into registers.
            for sum in &mut sums {
                *sum = self.b.barrier(*sum);
            }
        }
        self.lattice = None;
        let [x, y, z] = lattice.sizes;
        let mut values = Vec::new();
        for sum in sums {
            let sum = self.b.reshape(sum, &[z, y, lattice.width()]);
            let sum = self.b.slice(sum, &[0, 0, 0], &[z, y, x]);
            values.push(self.b.reshape(sum, &[cells]));
        }
        self.add(plan, values);
    }

    /// A value per cell in the layout of the lattice that edges are shifts of. What lies behind rows is never used.
    fn in_layout(&mut self, value: Value) -> Value {
        let cells = self.cells();
        let Some((lattice, known)) = &mut self.lattice else { return value };
        if self.b.dims(value) != [cells] {
            return value;
        }
        if let Some(&known) = known.get(&value) {
            return known;
        }
        let [x, y, z] = lattice.sizes;
        let rows = self.b.reshape(value, &[z, y, x]);
        let mut parts = vec![rows];
        if lattice.halo[0] > 0 {
            let element = self.b.of(value).element;
            let nothing = match element {
                Element::Bool => Literal::Bool(false),
                Element::Bf16 | Element::F32 | Element::F64 => Literal::Real(0.0),
                Element::I32 | Element::U32 | Element::U64 => Literal::Whole(0),
            };
            parts.push(self.b.constant(nothing, element, &[z, y, 2 * lattice.halo[0]]));
        }
        let rows = self.b.concatenate(&parts, 2);
        let placed = self.b.reshape(rows, &lattice.dims());
        let placed = self.b.barrier(placed);
        known.insert(value, placed);
        placed
    }

    fn at_edges(&mut self, plan: &EdgePlan) {
        for stmt in &plan.body {
            self.b.at(stmt.origin);
            let value = match stmt.expr {
                Expr::There(entry) => self.there[&(plan.edges, entry)],
                Expr::OfEdge(number) => self.of_edges[&number],
                Expr::Uniform(_)
                | Expr::Time(_)
                | Expr::StepIndex
                | Expr::Index
                | Expr::Along(..)
                | Expr::Copy(_)
                | Expr::Unary(..)
                | Expr::Approximate(..)
                | Expr::Binary(..)
                | Expr::Fma(..)
                | Expr::Select(..)
                | Expr::Draw(..)
                | Expr::Sample(..)
                | Expr::Emit(..) => self.expression(stmt.expr),
            };
            self.locals.insert(stmt.local.expect("what an edge computes has a name"), value);
        }
    }

    fn statements(&mut self, stmts: &[Stmt]) -> Vec<(u32, Value)> {
        let mut events = Vec::new();
        for stmt in stmts {
            self.b.at(stmt.origin);
            if let Expr::Emit(event, mask) = stmt.expr {
                let cells = self.cells();
                events.push((event, self.operand(mask, &[cells])));
                continue;
            }
            let value = self.expression(stmt.expr);
            self.locals.insert(stmt.local.expect("what is no event has a name"), value);
        }
        self.b.at(None);
        events
    }

    fn constant(&mut self, x: f64, dims: &[usize]) -> Value {
        self.b.constant(Literal::Real(x), self.real, dims)
    }

    /// The shape that operands have together.
    fn shape(&mut self, operands: &[Operand]) -> Vec<usize> {
        let mut shape = Vec::new();
        for &operand in operands {
            let dims = match operand {
                Operand::Real(_) | Operand::Single(_) | Operand::Bool(_) | Operand::Call(_) | Operand::Time(_) => {
                    Vec::new()
                }
                Operand::Lanes(local) => self.layout_of(self.b.dims(self.locals[&local])),
                Operand::Register(_) => self.layout_of(vec![self.cells()]),
            };
            if dims.len() > shape.len() {
                shape = dims;
            }
        }
        shape
    }

    /// The shape of a value where edges read it.
    fn layout_of(&self, dims: Vec<usize>) -> Vec<usize> {
        match &self.lattice {
            Some((lattice, _)) if dims == [self.cells()] => lattice.dims().to_vec(),
            Some(_) | None => dims,
        }
    }

    /// Repeats a value along what it lacks of a shape: a number everywhere, a value per cell in every row.
    fn fit(&mut self, value: Value, dims: &[usize]) -> Value {
        let value = self.in_layout(value);
        let missing = dims.len() - self.b.of(value).dims.len();
        let along: Vec<usize> = (missing..dims.len()).collect();
        self.b.broadcast(value, dims, &along)
    }

    fn operand(&mut self, operand: Operand, dims: &[usize]) -> Value {
        let value = match operand {
            Operand::Real(x) => return self.constant(x, dims),
            Operand::Single(x) => return self.b.constant(Literal::Real(f64::from(x)), Element::F32, dims),
            Operand::Bool(truth) => return self.b.constant(Literal::Bool(truth), Element::Bool, dims),
            Operand::Call(local) => self.number(false, local, Usage::Spread),
            Operand::Time(local) => self.number(true, local, Usage::Spread),
            Operand::Lanes(local) => self.locals[&local],
            Operand::Register(register) => {
                let slot = self.slot_of_register(register);
                self.loaded(slot)
            }
        };
        self.fit(value, dims)
    }

    fn slot_of_register(&self, register: u32) -> Slot {
        self.slot_of(self.kernel.registers[register as usize].field)
    }

    fn slot_of(&self, field: FieldId) -> Slot {
        slot_of(self.plan, field)
    }

    /// A value per cell, as it is computed with: at an edge both ends as others see them.
    fn loaded(&mut self, slot: Slot) -> Value {
        if self.brought.contains(&slot)
            && let Some(sent) = self.sent.get(&slot)
        {
            return sent.seen;
        }
        if let Some(&known) = self.wide.get(&slot) {
            return known;
        }
        let value = self.slots.get(&slot).copied();
        let value =
            value.unwrap_or_else(|| panic!("{} has no value of `{}`", self.space.name, slot_name(self.plan, slot)));
        let value = self.b.convert(value, self.real);
        self.wide.insert(slot, value);
        value
    }

    fn number(&mut self, of_time: bool, local: u32, usage: Usage) -> Value {
        if let Some(&known) = self.numbers.get(&(of_time, local, usage)) {
            return known;
        }
        let kernel = self.space.id(self.kernel);
        let (part, column) = self.columns[&(kernel, of_time, local, usage)];
        let table = if of_time { self.rows[&(kernel.role, part)] } else { self.slots[&Slot::Numbers(part)] };
        let one = self.b.slice(table, &[column], &[column + 1]);
        let mut value = self.b.reshape(one, &[]);
        if usage == Usage::Spread && self.kernel.locals[local as usize].ty == Type::Single {
            value = self.b.convert(value, Element::F32);
        }
        self.numbers.insert((of_time, local, usage), value);
        value
    }

    fn expression(&mut self, expr: Expr) -> Value {
        let operands = expr.operands();
        let dims = self.shape(&operands);
        let values = |lanes: &mut Self| -> Vec<Value> { operands.iter().map(|&o| lanes.operand(o, &dims)).collect() };
        match expr {
            Expr::Uniform(_) | Expr::Time(_) | Expr::StepIndex => panic!("the plan computes it as a number"),
            Expr::Along(tie, field) => {
                let slot = self.slot_of(self.trees().fields[field as usize]);
                let value = self.loaded(slot);
                let cells = self.branches();
                cells.along(self.b, self.slots, tie, value)
            }
            Expr::There(_) | Expr::OfEdge(_) | Expr::Emit(..) => panic!("it stands where its region allows it"),
            Expr::Index => {
                let (real, cells) = (self.real, self.cells());
                self.index(real, &[cells])
            }
            Expr::Copy(_) => values(self)[0],
            Expr::Unary(op, _) => {
                let x = values(self)[0];
                self.unary(op, x)
            }
            // XLA's own functions, which are as accurate as they are.
            Expr::Approximate(function, ..) => {
                let x = values(self)[0];
                self.unary(
                    match function {
                        Elementary::Exp => UnaryOp::Exp,
                        Elementary::Exp2 => UnaryOp::Exp2,
                        Elementary::Expm1 => UnaryOp::Expm1,
                        Elementary::Exp2m1 => UnaryOp::Exp2m1,
                        Elementary::Exp2rel => UnaryOp::Exp2rel,
                        Elementary::Ln => UnaryOp::Ln,
                        Elementary::Log2 => UnaryOp::Log2,
                        Elementary::Log10 => UnaryOp::Log10,
                    },
                    x,
                )
            }
            Expr::Binary(op, ..) => {
                let operands = values(self);
                self.binary(op, operands[0], operands[1])
            }
            Expr::Fma(..) => {
                let operands = values(self);
                let product = self.b.binary(Binary::Multiply, operands[0], operands[1]);
                self.b.binary(Binary::Add, product, operands[2])
            }
            Expr::Select(..) => {
                let operands = values(self);
                self.b.select(operands[0], operands[1], operands[2])
            }
            Expr::Draw(distribution, stream, counter) => self.draw(distribution, stream, counter),
            Expr::Sample(series, _) => {
                let t = values(self)[0];
                self.sample(series, t)
            }
        }
    }

    /// A number like `x`, and as many.
    fn like(&mut self, x: Value, number: f64) -> Value {
        let ty = self.b.of(x).clone();
        self.b.constant(Literal::Real(number), ty.element, &ty.dims)
    }

    fn times(&mut self, x: Value, factor: f64) -> Value {
        let factor = self.like(x, factor);
        self.b.binary(Binary::Multiply, x, factor)
    }

    fn unary(&mut self, op: UnaryOp, x: Value) -> Value {
        let simple = match op {
            UnaryOp::Neg => Unary::Negate,
            UnaryOp::Abs => Unary::Abs,
            UnaryOp::Sqrt => Unary::Sqrt,
            UnaryOp::Floor => Unary::Floor,
            UnaryOp::Ceil => Unary::Ceil,
            UnaryOp::Exp => Unary::Exponential,
            UnaryOp::Expm1 => Unary::ExponentialMinusOne,
            UnaryOp::Ln => Unary::Log,
            UnaryOp::Sin => Unary::Sine,
            UnaryOp::Cos => Unary::Cosine,
            UnaryOp::Tan => Unary::Tan,
            UnaryOp::Tanh => Unary::Tanh,
            UnaryOp::Not => Unary::Not,
            UnaryOp::Exp2 => {
                let x = self.times(x, std::f64::consts::LN_2);
                return self.b.unary(Unary::Exponential, x);
            }
            UnaryOp::Exp2m1 => {
                let x = self.times(x, std::f64::consts::LN_2);
                return self.b.unary(Unary::ExponentialMinusOne, x);
            }
            UnaryOp::Exp2rel => {
                let x = self.nonzero(x);
                let power = self.unary(UnaryOp::Exp2m1, x);
                return self.b.binary(Binary::Divide, power, x);
            }
            UnaryOp::Log2 => {
                let x = self.b.unary(Unary::Log, x);
                return self.times(x, std::f64::consts::LOG2_E);
            }
            UnaryOp::Log10 => {
                let x = self.b.unary(Unary::Log, x);
                return self.times(x, std::f64::consts::LOG10_E);
            }
            UnaryOp::Sinh => return self.sinh(x),
            UnaryOp::Cosh => return self.cosh(x),
            UnaryOp::Linoid => return self.linoid(x),
            UnaryOp::Nonzero => return self.nonzero(x),
            UnaryOp::Finite => return self.finite(x),
            UnaryOp::Narrow => return self.b.convert(x, Element::F32),
            UnaryOp::Widen => return self.b.convert(x, self.real),
        };
        self.b.unary(simple, x)
    }

    /// `x / (e^x - 1)`; below 1/2, where the difference cancels, its series in Bernoulli's numbers, to the last place. XLA's own
    /// `e^x - 1` is an exponential and a hyperbolic tangent, and takes longer.
    fn linoid(&mut self, x: Value) -> Value {
        const SERIES: [f64; 8] = [
            1.0 / 12.0,
            -1.0 / 720.0,
            1.0 / 30_240.0,
            -1.0 / 1_209_600.0,
            1.0 / 47_900_160.0,
            -691.0 / 1_307_674_368_000.0,
            1.0 / 74_724_249_600.0,
            -3617.0 / 10_670_622_842_880_000.0,
        ];
        let terms = if self.b.of(x).element == Element::F32 { 4 } else { SERIES.len() };
        let one = self.like(x, 1.0);
        let square = self.b.binary(Binary::Multiply, x, x);
        let mut sum = self.like(x, SERIES[terms - 1]);
        for &factor in SERIES[..terms - 1].iter().rev() {
            let product = self.b.binary(Binary::Multiply, sum, square);
            let factor = self.like(x, factor);
            sum = self.b.binary(Binary::Add, product, factor);
        }
        let product = self.b.binary(Binary::Multiply, sum, square);
        let half = self.times(x, -0.5);
        let near = self.b.binary(Binary::Add, product, half);
        let near = self.b.binary(Binary::Add, near, one);
        let power = self.b.unary(Unary::Exponential, x);
        let below = self.b.binary(Binary::Subtract, power, one);
        // The bound keeps infinity out of the numerator; past it the denominator is infinite.
        let most = self.like(x, 1024.0);
        let above = self.binary(BinaryOp::Min, most, x);
        let far = self.b.binary(Binary::Divide, above, below);
        let (magnitude, border) = (self.b.unary(Unary::Abs, x), self.like(x, 0.5));
        let cancels = self.b.compare(Compare::Lt, magnitude, border);
        self.b.select(cancels, near, far)
    }

    fn nonzero(&mut self, x: Value) -> Value {
        let (magnitude, nearly) = (self.b.unary(Unary::Abs, x), self.like(x, math::NEARLY_ZERO));
        let is_zero = self.b.compare(Compare::Lt, magnitude, nearly);
        self.b.select(is_zero, nearly, x)
    }

    fn finite(&mut self, x: Value) -> Value {
        let (zero, infinity) = (self.like(x, 0.0), self.like(x, f64::INFINITY));
        let magnitude = self.b.unary(Unary::Abs, x);
        let is_finite = self.b.compare(Compare::Lt, magnitude, infinity);
        self.b.select(is_finite, x, zero)
    }

    /// `e^(|x| - ln 2)`: half the exponential, finite as long as the hyperbolic functions are.
    fn half_exponential(&mut self, magnitude: Value) -> Value {
        let ln2 = self.like(magnitude, std::f64::consts::LN_2);
        let less = self.b.binary(Binary::Subtract, magnitude, ln2);
        self.b.unary(Unary::Exponential, less)
    }

    /// With `m = e^|x| - 1`: `(m + m / (m + 1)) / 2`, which does not cancel near 0; far from it half the exponential.
    fn sinh(&mut self, x: Value) -> Value {
        let magnitude = self.b.unary(Unary::Abs, x);
        let large = self.half_exponential(magnitude);
        let m = self.b.unary(Unary::ExponentialMinusOne, magnitude);
        let one = self.like(x, 1.0);
        let power = self.b.binary(Binary::Add, m, one);
        let quotient = self.b.binary(Binary::Divide, m, power);
        let sum = self.b.binary(Binary::Add, m, quotient);
        let small = self.times(sum, 0.5);
        let border = self.like(x, 30.0);
        let far = self.b.compare(Compare::Gt, magnitude, border);
        let result = self.b.select(far, large, small);
        let zero = self.like(x, 0.0);
        let negative = self.b.compare(Compare::Lt, x, zero);
        let minus = self.b.unary(Unary::Negate, result);
        self.b.select(negative, minus, result)
    }

    fn cosh(&mut self, x: Value) -> Value {
        let magnitude = self.b.unary(Unary::Abs, x);
        let half = self.half_exponential(magnitude);
        let quarter = self.like(x, 0.25);
        let other = self.b.binary(Binary::Divide, quarter, half);
        self.b.binary(Binary::Add, half, other)
    }

    fn binary(&mut self, op: BinaryOp, x: Value, y: Value) -> Value {
        match op {
            BinaryOp::Add => self.b.binary(Binary::Add, x, y),
            BinaryOp::Sub => self.b.binary(Binary::Subtract, x, y),
            BinaryOp::Mul => self.b.binary(Binary::Multiply, x, y),
            BinaryOp::Div => self.b.binary(Binary::Divide, x, y),
            BinaryOp::Pow => self.b.binary(Binary::Power, x, y),
            // StableHLO's own minimum keeps NaN; ours is the second operand then.
            BinaryOp::Min => {
                let less = self.b.compare(Compare::Lt, x, y);
                self.b.select(less, x, y)
            }
            BinaryOp::Max => {
                let more = self.b.compare(Compare::Gt, x, y);
                self.b.select(more, x, y)
            }
            BinaryOp::Lt => self.b.compare(Compare::Lt, x, y),
            BinaryOp::Le => self.b.compare(Compare::Le, x, y),
            BinaryOp::Gt => self.b.compare(Compare::Gt, x, y),
            BinaryOp::Ge => self.b.compare(Compare::Ge, x, y),
            BinaryOp::Eq => self.b.compare(Compare::Eq, x, y),
            BinaryOp::Ne => self.b.compare(Compare::Ne, x, y),
            BinaryOp::And => self.b.binary(Binary::And, x, y),
            BinaryOp::Or => self.b.binary(Binary::Or, x, y),
            BinaryOp::Poisson => poisson(self.b, x, y, self.device.poisson_ahead),
        }
    }

    // ------------------------------------------------------------------------------------------------ random numbers

    /// A draw of every cell: the words of [`crate::runtime::rng`], and its formulas.
    fn draw(&mut self, distribution: Distribution, stream: u64, counter: Operand) -> Value {
        let mut dims = self.shape(&[counter]);
        if dims.is_empty() {
            dims = vec![self.cells()];
        }
        let counter = match counter {
            Operand::Real(x) => self.b.constant(Literal::Whole(x as u64), Element::U64, &dims),
            Operand::Call(local) => {
                let number = self.number(false, local, Usage::Counter);
                self.fit(number, &dims)
            }
            Operand::Time(local) => {
                let number = self.number(true, local, Usage::Counter);
                self.fit(number, &dims)
            }
            Operand::Single(_) | Operand::Bool(_) | Operand::Lanes(_) | Operand::Register(_) => {
                let value = self.operand(counter, &dims);
                self.b.convert(value, Element::U64)
            }
        };
        let [a, b] = self.words(stream as u32, counter, &dims);
        let wide = if self.device.wide_draws { Element::F64 } else { self.real };
        let one = self.b.constant(Literal::Real(1.0), wide, &dims);
        let result = match distribution {
            Distribution::Uniform => {
                // A whole number below 2^53 rounds to f32 as its quotient does.
                let real = self.real;
                return self.unit(a, real);
            }
            Distribution::Exponential => {
                let uniform = self.unit(a, wide);
                let rest = self.b.binary(Binary::Subtract, one, uniform);
                let log = self.b.unary(Unary::Log, rest);
                self.b.unary(Unary::Negate, log)
            }
            Distribution::Normal => {
                let (radius, angle) = (self.unit(a, wide), self.unit(b, wide));
                let rest = self.b.binary(Binary::Subtract, one, radius);
                let log = self.b.unary(Unary::Log, rest);
                let square = self.times(log, -2.0);
                let length = self.b.unary(Unary::Sqrt, square);
                let angle = self.times(angle, std::f64::consts::TAU);
                let cosine = self.b.unary(Unary::Cosine, angle);
                self.b.binary(Binary::Multiply, length, cosine)
            }
        };
        self.b.convert(result, self.real)
    }

    /// The upper 53 bits as a number in `[0, 1)`.
    fn unit(&mut self, word: Value, element: Element) -> Value {
        let dims = self.b.dims(word);
        let eleven = self.b.constant(Literal::Whole(11), Element::U64, &dims);
        let bits = self.b.binary(Binary::ShiftRightLogical, word, eleven);
        let number = self.b.convert(bits, element);
        self.times(number, 1.0 / (1u64 << 53) as f64)
    }

    /// Both 64-bit words of every cell: Philox4x32 with 10 rounds.
    fn words(&mut self, stream: u32, counter: Value, dims: &[usize]) -> [Value; 2] {
        let whole = |lanes: &mut Self, n: u32| lanes.b.constant(Literal::Whole(u64::from(n)), Element::U32, dims);
        let seed = self.slots[&Slot::Fixed(Fixed::Seed)];
        let mut key = [0, 1].map(|at| {
            let word = self.b.slice(seed, &[at], &[at + 1]);
            let word = self.b.reshape(word, &[]);
            self.b.broadcast(word, dims, &[])
        });
        let index = self.index(Element::U32, dims);
        let low = self.b.convert(counter, Element::U32);
        let high = self.upper(counter);
        let mut words = [whole(self, stream), index, low, high];
        for round in 0..10 {
            let [a, b, c, d] = words;
            let left = self.wide_product(a, 0xD251_1F53);
            let right = self.wide_product(c, 0xCD9E_8D57);
            let (left_high, right_high) = (self.upper(left), self.upper(right));
            let (left, right) = (self.b.convert(left, Element::U32), self.b.convert(right, Element::U32));
            let first = self.b.binary(Binary::Xor, right_high, b);
            let first = self.b.binary(Binary::Xor, first, key[0]);
            let third = self.b.binary(Binary::Xor, left_high, d);
            let third = self.b.binary(Binary::Xor, third, key[1]);
            words = [first, right, third, left];
            if round < 9 {
                let steps = [whole(self, 0x9E37_79B9), whole(self, 0xBB67_AE85)];
                key = [0, 1].map(|at| self.b.binary(Binary::Add, key[at], steps[at]));
            }
        }
        [self.joined(words[0], words[1]), self.joined(words[2], words[3])]
    }

    fn wide_product(&mut self, a: Value, factor: u32) -> Value {
        let a = self.b.convert(a, Element::U64);
        let dims = self.b.dims(a);
        let factor = self.b.constant(Literal::Whole(u64::from(factor)), Element::U64, &dims);
        self.b.binary(Binary::Multiply, a, factor)
    }

    fn upper(&mut self, word: Value) -> Value {
        let dims = self.b.dims(word);
        let half = self.b.constant(Literal::Whole(32), Element::U64, &dims);
        let upper = self.b.binary(Binary::ShiftRightLogical, word, half);
        self.b.convert(upper, Element::U32)
    }

    fn joined(&mut self, low: Value, high: Value) -> Value {
        let (low, high) = (self.b.convert(low, Element::U64), self.b.convert(high, Element::U64));
        let dims = self.b.dims(low);
        let half = self.b.constant(Literal::Whole(32), Element::U64, &dims);
        let high = self.b.binary(Binary::ShiftLeft, high, half);
        self.b.binary(Binary::Or, high, low)
    }

    // ------------------------------------------------------------------------------------------------ functions of time

    /// A series at a time of every cell, computed in double precision. The segment is found by counting the samples that are not
    /// after the time.
    fn sample(&mut self, series: u32, t: Value) -> Value {
        let (times, values) = (
            self.slots[&Slot::Fixed(Fixed::SeriesTimes(series))],
            self.slots[&Slot::Fixed(Fixed::SeriesValues(series))],
        );
        let samples = self.device.samples[series as usize];
        let dims = self.b.dims(t);
        let t = self.b.convert(t, Element::F64);
        let table: Vec<usize> = std::iter::once(samples).chain(dims.iter().copied()).collect();
        let along: Vec<usize> = (1..table.len()).collect();
        let each = self.b.broadcast(t, &table, &along);
        let all = self.b.broadcast(times, &table, &[0]);
        // Not `time > t`, so that all samples count at NaN.
        let after = self.b.compare(Compare::Gt, all, each);
        let passed = self.b.unary(Unary::Not, after);
        let passed = self.b.convert(passed, Element::I32);
        let passed = self.b.reduce(Binary::Add, passed, 0);
        let whole = |lanes: &mut Self, n: usize| lanes.b.constant(Literal::Whole(n as u64), Element::I32, &dims);
        let (zero, one, last) = (whole(self, 0), whole(self, 1), whole(self, samples - 1));
        let any = self.b.compare(Compare::Gt, passed, zero);
        let more = self.b.compare(Compare::Le, passed, last);
        let between = self.b.binary(Binary::And, any, more);
        let before = self.b.binary(Binary::Subtract, passed, one);
        let before = self.b.select(any, before, zero);
        let after = self.b.select(more, passed, last);
        let [t0, y0] = [times, values].map(|from| self.b.gather(from, before));
        let [t1, y1] = [times, values].map(|from| self.b.gather(from, after));
        let rise = self.b.binary(Binary::Subtract, y1, y0);
        let passed = self.b.binary(Binary::Subtract, t, t0);
        let width = self.b.binary(Binary::Subtract, t1, t0);
        let share = self.b.binary(Binary::Divide, passed, width);
        let part = self.b.binary(Binary::Multiply, rise, share);
        let inside = self.b.binary(Binary::Add, y0, part);
        let outside = self.b.select(any, y0, y1);
        let result = self.b.select(between, inside, outside);
        self.b.convert(result, self.real)
    }
}

/// Something that edges read and that is known before them.
#[derive(Clone, Copy, PartialEq)]
enum Outside {
    Slot(Slot),
    Local(u32),
    Row((Role, Part)),
}

/// A value per cell with the halo of a lattice. What lies before the first plane and behind the last one are planes that are there
/// already, so that whoever reads a rectangle can read it there.
fn halo(b: &mut Builder, lattice: &Lattice, value: Value) -> Value {
    let [x, y, z] = lattice.sizes;
    let [across_x, across_y, across_z] = lattice.halo;
    let wrapped = |b: &mut Builder, value: Value, along: usize, halo: usize| {
        if halo == 0 {
            return value;
        }
        let dims = b.dims(value);
        let size = dims[along];
        let mut part = |from: usize, to: usize| {
            let (mut start, mut end) = (vec![0; dims.len()], dims.clone());
            (start[along], end[along]) = (from, to);
            b.slice(value, &start, &end)
        };
        let parts = [part(size - halo, size), value, part(0, halo)];
        b.concatenate(&parts, along)
    };
    let rows = b.reshape(value, &[z, y, x]);
    let rows = wrapped(b, rows, 2, across_x);
    let planes = wrapped(b, rows, 1, across_y);
    let [_, plane] = lattice.padded();
    let mut planes = b.reshape(planes, &[z, plane - 2 * across_x]);
    if across_x > 0 {
        let more = b.slice(planes, &[0, 0], &[z, 2 * across_x]);
        planes = b.concatenate(&[planes, more], 1);
    }
    // Without the barrier compilers look through every rectangle at the parts of rows, which may take them minutes.
    let planes = b.barrier(planes);
    wrapped(b, planes, 0, across_z)
}

/// The locals that edges, body, stores and updates read.
fn used_by_steps(kernel: &KernelPlan) -> std::collections::BTreeSet<u32> {
    let edges = kernel.edges.iter().flat_map(|edges| &edges.body);
    let of_stmts = edges.chain(&kernel.body).flat_map(|stmt| stmt.expr.operands());
    let adds = kernel.edges.iter().flat_map(|edges| &edges.adds).map(|(_, value)| *value);
    let adds = adds.chain(kernel.adds.iter().map(|add| add.value));
    let stores = kernel.stores.iter().map(|(_, value)| *value);
    let updates = kernel.updates.iter().map(|(_, value)| *value);
    let operands = of_stmts.chain(adds).chain(stores).chain(updates);
    operands
        .filter_map(|operand| match operand {
            Operand::Lanes(local) => Some(local),
            Operand::Real(_)
            | Operand::Single(_)
            | Operand::Bool(_)
            | Operand::Call(_)
            | Operand::Time(_)
            | Operand::Register(_) => None,
        })
        .collect()
}

/// The table that a column of numbers is in.
pub(super) fn part(kernel: &KernelPlan, local: u32, usage: Usage) -> Part {
    match (usage, kernel.locals[local as usize].ty) {
        (Usage::Counter, _) => Part::Counter,
        (Usage::Spread, Type::Real | Type::Single) => Part::Real,
        (Usage::Spread, Type::Mask) => Part::Truth,
    }
}
