//! What entry points of a device are given: tables, brought into the shape of their arguments.
//!
//! In come a plan and a [`Setup`]; out go [`Table`]s for the arguments of [`crate::codegen::stablehlo::Entry`].
//! Never true here: a table depends on the device that will read it, or on what ran before.

use super::deliveries::{self, EdgeValues};
use super::numbers::{Numbers, Surroundings};
use super::{Edges, EngineError, Setup};
use crate::codegen::plan::{
    self, DeliveryForm, DeviceClass, DevicePlan, Events, GatherForm, KernelId, KernelPlan, Past, Plan, Precision,
    Remembered,
};
use crate::codegen::stablehlo::builder::Element;
use crate::codegen::stablehlo::{Column, Entry, Fixed, Kind, Part, Slot, stored};
use crate::pjrt::Bf16;
use crate::runtime::events::PerEdge;
use crate::runtime::machine::Bank;
use crate::runtime::series::{Sample, check};
use crate::step::{FieldId, Role, Value};
use std::collections::BTreeMap;

/// Numbers on their way to a device, in the order of the last dimension.
#[derive(Debug, Clone, PartialEq)]
#[allow(missing_docs)] // the names are those of the elements
pub enum Table {
    F64(Vec<f64>),
    Bf16(Vec<Bf16>),
    F32(Vec<f32>),
    I32(Vec<i32>),
    U32(Vec<u32>),
    U64(Vec<u64>),
    Bool(Vec<bool>),
}

impl Table {
    /// The type of its elements.
    pub fn element(&self) -> Element {
        match self {
            Table::F64(_) => Element::F64,
            Table::Bf16(_) => Element::Bf16,
            Table::F32(_) => Element::F32,
            Table::I32(_) => Element::I32,
            Table::U32(_) => Element::U32,
            Table::U64(_) => Element::U64,
            Table::Bool(_) => Element::Bool,
        }
    }
}

/// A plan and its surroundings, which fit each other.
#[derive(Debug, Clone)]
pub struct Inputs {
    /// The plan.
    pub plan: Plan,
    /// What a device needs besides.
    pub device: DevicePlan,
    surroundings: Surroundings,
    /// For every delivery.
    edge_values: Vec<EdgeValues>,
    /// For every relation its numbers.
    edge_numbers: Vec<Vec<PerEdge<f64>>>,
    seed: u64,
}

impl Inputs {
    /// Checks that a set-up has all that a plan needs, and plans for a device.
    pub fn new(plan: &Plan, setup: &Setup, class: DeviceClass) -> Result<Inputs, EngineError> {
        let all = plan.spaces.len() + plan.relations.len() + plan.deliveries.len();
        if setup.sizes.len() != all {
            return Err(EngineError(format!("{} sizes for {all} spaces", setup.sizes.len())));
        }
        if let Some(size) = setup.sizes.iter().find(|&&size| i32::try_from(size).is_err()) {
            return Err(EngineError(format!("{size} cells are more than one array of a device takes")));
        }
        let name = |field: FieldId| &plan.fields[field.0 as usize];
        let given = |field: FieldId, what: &str| EngineError(format!("the field `{}` has no {what}", name(field)));
        let uniform = |&field: &FieldId| {
            let value = setup.uniforms.iter().rfind(|(id, _)| *id == field);
            value.map(|(_, value)| *value).ok_or_else(|| given(field, "value"))
        };
        let series = |&field: &FieldId| {
            let samples = setup.series.iter().rfind(|(id, _)| *id == field).ok_or_else(|| given(field, "samples"))?;
            let samples: Vec<Sample> = samples.1.iter().map(|&(t, value)| Sample { t, value }).collect();
            let disorder = |_| EngineError(format!("the samples of `{}` are none or go back in time", name(field)));
            check(&samples).map_err(disorder)?;
            Ok(samples)
        };
        let surroundings = Surroundings {
            uniforms: plan.uniforms.iter().map(uniform).collect::<Result<_, _>>()?,
            series: plan.series.iter().map(series).collect::<Result<_, EngineError>>()?,
        };
        let relations = plan.relations.iter().map(|r| (&r.name, r.space, r.from, r.to));
        let deliveries = plan.deliveries.iter().map(|d| (&d.name, d.space, d.from, d.to));
        for (name, space, from, to) in relations.chain(deliveries) {
            let wrong = |why: &str| EngineError(format!("the space `{name}`: {why}"));
            let edges = setup.edges_of(space).ok_or_else(|| wrong("it has no edges"))?;
            let [targets, sources] = [to, from].map(|space| setup.sizes[space.0 as usize]);
            edges.check(targets, sources).map_err(|why| wrong(&why))?;
        }
        for (space, &size) in plan.spaces.iter().zip(&setup.sizes) {
            for field in space.fields(Bank::Data) {
                let data = setup.data.iter().rfind(|(id, _)| *id == field).ok_or_else(|| given(field, "values"))?;
                if data.1.len() != size {
                    return Err(EngineError(format!(
                        "{} values for the {size} cells of `{}`",
                        data.1.len(),
                        name(field)
                    )));
                }
            }
        }
        let edge_values = deliveries::all(plan, setup)?;
        let edge_numbers = deliveries::all_numbers(plan, setup)?;
        let device = setup.device_plan_for(plan, class, &edge_values)?;
        Ok(Inputs { plan: plan.clone(), device, surroundings, edge_values, edge_numbers, seed: setup.seed })
    }

    /// Gives a uniform field another value; false if nothing reads the field.
    pub fn set_uniform(&mut self, field: FieldId, value: f64) -> bool {
        let at = self.plan.uniforms.iter().position(|uniform| *uniform == field);
        if let Some(at) = at {
            self.surroundings.uniforms[at] = value;
        }
        at.is_some()
    }

    /// What does not change during a run; `setup` is the one that was checked.
    pub fn fixed(&self, fixed: Fixed, setup: &Setup) -> Table {
        let edges = |space: u32, entry: u32| -> &Edges {
            let number = self.plan.spaces[space as usize].edges[entry as usize];
            setup.edges_of(self.plan.relation(number).space).expect("checked before")
        };
        let form = |space: u32, entry: u32| &self.device.gathers[space as usize][entry as usize];
        let padded = |space: u32, entry: u32| {
            let rows = match *form(space, entry) {
                GatherForm::Padded { rows } | GatherForm::Rows { rows } => rows,
                GatherForm::Slabs(_) | GatherForm::Shifts(_) | GatherForm::Pairs => panic!("the form has no list"),
            };
            let cells = self.device.sizes[space as usize];
            (0..rows).flat_map(move |row| (0..cells).map(move |cell| (row, cell)))
        };
        let slabs = |space: u32, entry: u32| match form(space, entry) {
            GatherForm::Slabs(slabs) => slabs,
            GatherForm::Padded { .. } | GatherForm::Rows { .. } | GatherForm::Shifts(_) | GatherForm::Pairs => {
                panic!("the form has no slabs")
            }
        };
        let source = |edges: &Edges, row: usize, cell: usize| {
            let bounds = edges.offsets[cell] as usize..edges.offsets[cell + 1] as usize;
            edges.sources[bounds].get(row).copied()
        };
        let delivery = |at: u32| -> (&DeliveryForm, &Edges, &EdgeValues) {
            let edges = setup.edges_of(self.plan.deliveries[at as usize].space).expect("checked before");
            (&self.device.deliveries[at as usize], edges, &self.edge_values[at as usize])
        };
        let tie = |tree: u32, at: u32| &self.device.ties[tree as usize][at as usize];
        let elimination =
            |tree: u32, at: u32| tie(tree, at).elimination.as_ref().expect("equations are solved along it");
        match fixed {
            Fixed::Begins(at) => {
                let (form, edges, _) = delivery(at);
                Table::I32(rows(form).begins(edges))
            }
            Fixed::Targets(at) => {
                let (form, edges, EdgeValues { delays, .. }) = delivery(at);
                Table::I32(rows(form).targets(edges, delays))
            }
            Fixed::Carried(at) => {
                let (form, edges, EdgeValues { delays, values, .. }) = delivery(at);
                let carried = &values[0];
                let values = match form {
                    DeliveryForm::Nothing | DeliveryForm::Remembered(_) => Vec::new(),
                    DeliveryForm::Events(events) => events.carried(edges, carried),
                    DeliveryForm::Dense(dense) => dense.matrices(edges, delays, carried),
                };
                self.stored(Slot::Fixed(fixed), &values)
            }
            Fixed::Behind(at, which) => {
                let (form, edges, EdgeValues { delays, back, .. }) = delivery(at);
                let remembered = remembered(form);
                let behind = |past: &Past, cells: &[u32], delays: &PerEdge<u32>| {
                    let of_edge = |(edge, &cell): (usize, &u32)| past.behind(cell as usize, delays.of(edge));
                    Table::I32(cells.iter().enumerate().map(of_edge).collect())
                };
                match (which as usize).checked_sub(1) {
                    None => behind(&remembered.sent, &edges.sources, delays),
                    Some(kind) => behind(&remembered.told[kind], &plan::receivers(edges), &back[kind]),
                }
            }
            Fixed::Receivers(at) => {
                let receivers = plan::receivers(delivery(at).1);
                Table::I32(receivers.into_iter().map(|cell| cell as i32).collect())
            }
            Fixed::Incoming(at) => {
                let (form, edges, _) = delivery(at);
                let remembered = remembered(form);
                Table::I32(remembered.incoming(edges, remembered.rows.expect("the form adds up along a table")))
            }
            Fixed::Begin(at, slot) => {
                let (_, edges, EdgeValues { values, .. }) = delivery(at);
                let values = &values[slot as usize];
                let values: Vec<f64> = (0..edges.sources.len()).map(|edge| values.of(edge)).collect();
                self.stored(Slot::Fixed(fixed), &values)
            }
            Fixed::Tie(tree, at) => Table::I32(tie(tree, at).targets()),
            Fixed::Givers(tree, at) => Table::I32(tie(tree, at).givers()),
            Fixed::Elements(tree, at) => Table::I32(elimination(tree, at).elements()),
            Fixed::Standing(tree, at) => Table::I32(elimination(tree, at).standing()),
            Fixed::Parents(tree, at) => Table::I32(elimination(tree, at).parents()),
            Fixed::Children(tree, at) => Table::I32(elimination(tree, at).children()),
            Fixed::Above(tree, at) => Table::I32(elimination(tree, at).above()),
            Fixed::Below(tree, at) => Table::I32(elimination(tree, at).below()),
            Fixed::Seed => Table::U32(vec![self.seed as u32, (self.seed >> 32) as u32]),
            Fixed::SeriesTimes(at) => Table::F64(self.surroundings.series[at as usize].iter().map(|s| s.t).collect()),
            Fixed::SeriesValues(at) => {
                Table::F64(self.surroundings.series[at as usize].iter().map(|s| s.value).collect())
            }
            Fixed::Data(space, at) => {
                let field = self.plan.spaces[space as usize].fields(Bank::Data).nth(at as usize);
                let field = field.expect("slots stand for fields of the plan");
                let data = setup.data.iter().rfind(|(id, _)| *id == field).expect("checked before");
                self.stored(Slot::Fixed(fixed), &data.1)
            }
            Fixed::Sources(space, entry) => {
                if let GatherForm::Slabs(slabs) = form(space, entry) {
                    return Table::I32(slabs.sources(edges(space, entry)));
                }
                let within = self.plan.relation(self.plan.spaces[space as usize].edges[entry as usize]).is_within();
                let edges = edges(space, entry);
                // Where there is no edge, a cell of the space that edges come from.
                let none = |cell: usize| if within { cell as i32 } else { 0 };
                let of = |(row, cell): (usize, usize)| source(edges, row, cell).map_or(none(cell), |from| from as i32);
                Table::I32(padded(space, entry).map(of).collect())
            }
            Fixed::Present(space, entry) => {
                let edges = edges(space, entry);
                Table::Bool(padded(space, entry).map(|(row, cell)| source(edges, row, cell).is_some()).collect())
            }
            Fixed::OfEdge(space, entry, number) => {
                let relation = self.plan.spaces[space as usize].edges[entry as usize];
                let values = &self.edge_numbers[relation as usize][number as usize];
                let edges = edges(space, entry);
                let values = match form(space, entry) {
                    GatherForm::Slabs(slabs) => slabs.by_row(edges, 0.0, |edge| values.of(edge)),
                    _ => {
                        let edge = |(row, cell): (usize, usize)| edges.range(cell).nth(row);
                        padded(space, entry).map(|at| edge(at).map_or(0.0, |edge| values.of(edge))).collect()
                    }
                };
                self.stored(Slot::Fixed(fixed), &values)
            }
            Fixed::Order(space, entry) => Table::I32(slabs(space, entry).cells()),
            Fixed::Places(space, entry) => Table::I32(slabs(space, entry).places()),
            Fixed::Slabs(space, entry) => Table::I32(slabs(space, entry).slab_of_row()),
            Fixed::Mask(space, entry, word) => {
                let GatherForm::Shifts(lattice) = form(space, entry) else { panic!("the form has no mask") };
                Table::U32(lattice.mask(edges(space, entry), word as usize))
            }
            Fixed::Pairs(space, entry) => {
                Table::Bool(plan::pairs(edges(space, entry)).expect("the form was chosen for such edges"))
            }
        }
    }

    /// The values per cell that a slot stands for, as a device keeps them.
    pub fn stored(&self, slot: Slot, values: &[f64]) -> Table {
        match stored(&self.plan, slot) {
            Element::Bf16 => Table::Bf16(values.iter().map(|&x| Bf16::from(x as f32)).collect()),
            Element::F32 => Table::F32(values.iter().map(|&x| x as f32).collect()),
            Element::F64 => Table::F64(values.to_vec()),
            Element::Bool | Element::I32 | Element::U32 | Element::U64 => panic!("values per cell are real numbers"),
        }
    }

    /// The numbers of an entry point that do not change.
    pub fn numbers(&self, entry: &Entry, part: Part) -> Table {
        self.table(&entry.numbers[&part], part, 1, 1, |_| 0)
    }

    /// The numbers of an entry point that depend on time, for calls from the step `first` on: the first `needed` of `all` rows are
    /// filled.
    pub fn rows(&self, entry: &Entry, (role, part): (Role, Part), first: u64, all: usize, needed: usize) -> Table {
        let step = |row: u64| match (role, &entry.kind) {
            // A sample is taken after the steps that lead to it.
            (Role::Observe, Kind::Stretch(stretch)) => first + (row + 1) * u64::from(stretch.every),
            (Role::Init | Role::Step | Role::Observe, _) => first + row,
        };
        self.table(&entry.rows[&(role, part)], part, all, needed, step)
    }

    /// Rows of a table of numbers, the first `needed` of `all` filled, each for its step.
    fn table(&self, columns: &[Column], part: Part, all: usize, needed: usize, step: impl Fn(u64) -> u64) -> Table {
        let kernel = |id: KernelId| -> &KernelPlan {
            let kernel = self.plan.space(id.space).kernel(id.role, id.pass);
            kernel.expect("a column belongs to a kernel")
        };
        let mut kernels: BTreeMap<KernelId, Numbers<'_>> = BTreeMap::new();
        for column in columns {
            let id = column.kernel;
            kernels.entry(id).or_insert_with(|| Numbers::new(kernel(id), &self.surroundings));
        }
        let mut values: Vec<Value> = Vec::with_capacity(needed * columns.len());
        for row in 0..needed as u64 {
            kernels.values_mut().for_each(|numbers| numbers.at(step(row)));
            values.extend(columns.iter().map(|column| kernels[&column.kernel].get(column.local)));
        }
        let padding = (all - needed) * columns.len();
        let real = |value: &Value| match *value {
            Value::Real(x) => x,
            Value::Single(x) => f64::from(x),
            Value::Mask(_) => panic!("the verifier checks the types of operands"),
        };
        match part {
            Part::Truth => {
                let mask = |value: &Value| value.mask().expect("the verifier checks the types of operands");
                Table::Bool(values.iter().map(mask).chain(std::iter::repeat_n(false, padding)).collect())
            }
            Part::Counter => {
                Table::U64(values.iter().map(|v| real(v) as u64).chain(std::iter::repeat_n(0, padding)).collect())
            }
            Part::Real => match self.plan.precision {
                Precision::F64 => {
                    Table::F64(values.iter().map(real).chain(std::iter::repeat_n(0.0, padding)).collect())
                }
                Precision::F32 | Precision::Bf16 => {
                    Table::F32(values.iter().map(|v| real(v) as f32).chain(std::iter::repeat_n(0.0, padding)).collect())
                }
            },
        }
    }
}

/// The loop over those who emit of a form that has one.
fn rows(form: &DeliveryForm) -> &Events {
    match form {
        DeliveryForm::Events(events) => events,
        DeliveryForm::Nothing | DeliveryForm::Dense(_) | DeliveryForm::Remembered(_) => panic!("the form has no rows"),
    }
}

/// What a form remembers of events.
fn remembered(form: &DeliveryForm) -> &Remembered {
    match form {
        DeliveryForm::Remembered(remembered) => remembered,
        DeliveryForm::Nothing | DeliveryForm::Dense(_) | DeliveryForm::Events(_) => {
            panic!("the form remembers nothing")
        }
    }
}
