//! The native engine: compiled kernels over the bundled machine.
//!
//! In come a [`Plan`] and a [`Setup`]; out comes an [`Engine`] that runs at the processor's speed.
//! Never true here: that results depend on the number of threads or on whether the library came from the cache.

use super::load::Library;
use super::rustc::{CompileOptions, Compiled, compile};
use super::{Engine, EngineError, Setup, Spike, UnderWay, branches, deliveries};
use crate::codegen::plan::{Delivery, Effect, Heard, Home, Plan, Precision, Relation, SpacePlan};
use crate::codegen::rust::{groups, kernel_files, shape, shared};
use crate::runtime::edges;
use crate::runtime::events::{self, PerEdge, Sent, Traffic};
use crate::runtime::lanes::Scalar;
use crate::runtime::machine::{Bank, Fault, Machine, Model, Numbering, Place, Role, Space};
use crate::runtime::order::Arrangement;
use crate::runtime::remember::{Back, Remembering};
use crate::runtime::series::{Sample, check};
use crate::step::{FieldId, SpaceId};
use std::fs;
use std::ops::Range;
use std::sync::Arc;

/// How to compile and run.
#[derive(Debug, Clone, PartialEq)]
pub struct NativeOptions {
    /// How many threads to use at most.
    pub threads: usize,
    /// How the cells of connected spaces are arranged in memory.
    pub arrangement: Arrangement,
    /// Where and with what to compile.
    pub compile: CompileOptions,
}

/// An engine whose numbers have whatever precision the plan says.
pub struct NativeEngine {
    engine: Box<dyn Engine>,
    compiled: Compiled,
    threads: usize,
}

impl NativeEngine {
    /// Compiles the plan's kernels (or finds them in the cache) and sets up the buffers.
    pub fn new(plan: &Plan, setup: &Setup, options: &NativeOptions) -> Result<NativeEngine, EngineError> {
        match plan.precision {
            Precision::F64 => NativeEngine::of::<f64>(plan, setup, options),
            Precision::F32 => NativeEngine::of::<f32>(plan, setup, options),
            Precision::Bf16 => Err(EngineError("native code stores f64 or f32, not bf16".into())),
        }
    }

    fn of<T: Scalar + Send + Sync + 'static>(
        plan: &Plan,
        setup: &Setup,
        options: &NativeOptions,
    ) -> Result<NativeEngine, EngineError> {
        let files = kernel_files(plan);
        let mut compiled = compile(&files, &options.compile)?;
        let library = match Library::<T>::open(&compiled.library) {
            Ok(library) => library,
            // As made, and yet not loadable: the machine has changed around the cache.
            Err(_) if compiled.cached => {
                let entry = compiled.library.parent().unwrap_or(&compiled.library);
                fs::remove_dir_all(entry).map_err(|e| EngineError(format!("{}: {e}", entry.display())))?;
                compiled = compile(&files, &options.compile)?;
                Library::open(&compiled.library).map_err(|e| EngineError(format!("the compiled kernel: {e}")))?
            }
            Err(error) => return Err(EngineError(format!("the compiled kernel: {error}"))),
        };
        let native = Native::new(plan, setup, library, options)?;
        let threads = native.machine.threads();
        Ok(NativeEngine { engine: Box::new(native), compiled, threads })
    }

    /// Where the library is and what it took.
    pub fn compiled(&self) -> &Compiled {
        &self.compiled
    }

    /// How many threads it uses: no more than there is work for.
    pub fn threads(&self) -> usize {
        self.threads
    }
}

impl Engine for NativeEngine {
    fn init(&mut self) -> Result<(), EngineError> {
        self.engine.init()
    }

    fn step(&mut self, first_step: u64, steps: u32, spikes: &mut Vec<Spike>) -> Result<(), EngineError> {
        self.engine.step(first_step, steps, spikes)
    }

    fn observe(&mut self, step: u64) -> Result<(), EngineError> {
        self.engine.observe(step)
    }

    fn read(&self, field: FieldId, cells: Range<usize>, out: &mut Vec<f64>) -> Result<(), EngineError> {
        self.engine.read(field, cells, out)
    }

    fn write(&mut self, field: FieldId, values: &[f64]) -> Result<(), EngineError> {
        self.engine.write(field, values)
    }

    fn read_singles(&self, field: FieldId, cells: Range<usize>, out: &mut Vec<f32>) -> Result<(), EngineError> {
        self.engine.read_singles(field, cells, out)
    }

    fn write_singles(&mut self, field: FieldId, values: &[f32]) -> Result<(), EngineError> {
        self.engine.write_singles(field, values)
    }

    fn set_uniform(&mut self, field: FieldId, value: f64) -> Result<(), EngineError> {
        self.engine.set_uniform(field, value)
    }

    fn all_finite(&self) -> bool {
        self.engine.all_finite()
    }

    fn knows_events(&self) -> bool {
        self.engine.knows_events()
    }

    fn under_way(&self, step: u64) -> Vec<UnderWay> {
        self.engine.under_way(step)
    }

    fn resume(&mut self, step: u64, under_way: &[UnderWay]) -> Result<(), EngineError> {
        self.engine.resume(step, under_way)
    }
}

/// The machine and the names of its places.
struct Native<T> {
    machine: Machine<T>,
    homes: Vec<Home>,
    names: Vec<String>,
    /// Per space the event fields.
    events: Vec<Vec<FieldId>>,
    /// The spaces of edges that remember, with their numbers of edges.
    remembering: Vec<(SpaceId, usize)>,
    initialized: bool,
}

impl From<Fault> for EngineError {
    fn from(fault: Fault) -> EngineError {
        EngineError(fault.to_string())
    }
}

impl<T: Scalar + Send + Sync + 'static> Native<T> {
    fn new(plan: &Plan, setup: &Setup, library: Library<T>, options: &NativeOptions) -> Result<Native<T>, EngineError> {
        let all = plan.spaces.len() + plan.relations.len() + plan.deliveries.len();
        if setup.sizes.len() != all {
            return Err(EngineError(format!("{} sizes for {all} spaces", setup.sizes.len())));
        }
        if let Some(size) = setup.sizes.iter().find(|&&size| u32::try_from(size).is_err()) {
            return Err(EngineError(format!("{size} cells are more than random numbers can tell apart")));
        }
        let name = |field: FieldId| &plan.fields[field.0 as usize];
        let given = |field: FieldId, what: &str| EngineError(format!("the field `{}` has no {what}", name(field)));
        let uniform = |&field: &FieldId| {
            let value = setup.uniforms.iter().rfind(|(id, _)| *id == field);
            value.map(|(_, value)| *value).ok_or_else(|| given(field, "value"))
        };
        let series = |&field: &FieldId| {
            let (_, samples) =
                setup.series.iter().rfind(|(id, _)| *id == field).ok_or_else(|| given(field, "samples"))?;
            let samples: Vec<Sample> = samples.iter().map(|&(t, value)| Sample { t, value }).collect();
            let disorder = |_| EngineError(format!("the samples of `{}` are none or go back in time", name(field)));
            check(&samples).map_err(disorder)?;
            Ok(samples)
        };
        let relation = |relation: &Relation| {
            let wrong = |why: &str| EngineError(format!("the space `{}`: {why}", relation.name));
            let edges = setup.edges_of(relation.space).ok_or_else(|| wrong("it has no edges"))?;
            let [from, to] = [relation.from, relation.to].map(|space| space.0 as usize);
            edges.check(setup.sizes[to], setup.sizes[from]).map_err(|why| wrong(&why))?;
            let numbers = deliveries::numbers(relation, setup, edges.sources.len(), options.threads)?;
            Ok(edges::Relation { from, to, edges: Arc::clone(edges), numbers })
        };
        let relations = plan.relations.iter().map(relation).collect::<Result<Vec<_>, EngineError>>()?;
        let groups = groups(plan);
        let branched = plan.trees.iter().map(|trees| Ok(Arc::new(branches::branched(plan, trees, setup)?)));
        let branched = branched.collect::<Result<Vec<_>, EngineError>>()?;
        let numbering = Numbering::new(&groups, &branched, plan.deliveries.iter().any(|d| d.remembers().is_some()));
        let mut traffic = Traffic::default();
        let mut remembering: Vec<(SpaceId, usize)> = Vec::new();
        let mut delivery = |delivery: &Delivery| {
            let wrong = |why: &str| EngineError(format!("the space `{}`: {why}", delivery.name));
            let edges = setup.edges_of(delivery.space).ok_or_else(|| wrong("it has no edges"))?;
            let [from, to] = [delivery.from, delivery.to].map(|space| space.0 as usize);
            edges.check(setup.sizes[to], setup.sizes[from]).map_err(|why| wrong(&why))?;
            let of_edges = deliveries::values(delivery, setup, edges.sources.len(), options.threads)?;
            let deliveries::EdgeValues { delays, back, values } = of_edges;
            let rounded = |values: PerEdge<f64>| match values {
                PerEdge::Same(value) => PerEdge::Same(T::from_f64(value)),
                PerEdge::Each(values) => PerEdge::Each(values.iter().map(|&value| T::from_f64(value)).collect()),
            };
            let mut values: Vec<PerEdge<T>> = values.into_iter().map(rounded).collect();
            let home = |field: FieldId| plan.homes[field.0 as usize];
            let number = |field: FieldId| match home(field) {
                Home::Event(_, event) => Ok(u64::from(event)),
                _ => Err(wrong("its events have no place")),
            };
            let slot = |field: FieldId| match home(field) {
                Home::Slot(_, bank, slot) => Ok((bank, slot as usize)),
                _ => Err(wrong("what its events bring has no place")),
            };
            let (event, edges) = (number(delivery.event)?, Arc::clone(edges));
            let remembers = match &delivery.effect {
                Effect::Adds { sum, .. } => {
                    let (Some(carried), (_, slot)) = (values.pop(), slot(*sum)?) else {
                        return Err(wrong("its events carry nothing"));
                    };
                    traffic.deliveries.push(events::Delivery { from, event, to, slot, edges, delays, carried });
                    return Ok(());
                }
                Effect::Remembers(remembers) => remembers,
            };
            let at = plan.spaces.len() + remembering.len();
            remembering.push((delivery.space, edges.sources.len()));
            let told = |(own, delays): (&Heard, _)| {
                Ok::<_, EngineError>(Back { event: number(own.event)?, delays, when: own.when })
            };
            let sums = remembers.sums.iter().map(|&(own, sum)| Ok((own as usize, slot(sum)?.1)));
            traffic.remembering.push(Arc::new(Remembering {
                from,
                event,
                to,
                back: remembers.back.iter().zip(back).map(told).collect::<Result<_, _>>()?,
                edges,
                delays,
                begin: values,
                shape: shape(&remembers.space),
                read: remembers.read.iter().map(|&field| slot(field)).collect::<Result<_, _>>()?,
                sums: sums.collect::<Result<_, EngineError>>()?,
                step: std::array::from_fn(|pass| numbering.kernel(at, Role::Step, pass)),
                observe: numbering.kernel(at, Role::Observe, 0),
            }));
            Ok(())
        };
        plan.deliveries.iter().try_for_each(&mut delivery)?;
        let cells = |(space, &size): (&SpacePlan, &usize)| {
            let grid = setup.grids.get(space.space.0 as usize).map_or(&[][..], |grid| grid);
            (size, grid, space.block as usize)
        };
        let cells: Vec<(usize, &[usize], usize)> = plan.spaces.iter().zip(&setup.sizes).map(cells).collect();
        let mut orders = edges::orders(options.arrangement, &relations, &cells);
        branched.iter().for_each(|of| of.arrange(&mut orders, |space| plan.spaces[space].block as usize));
        let space = |((space, &size), order): ((&SpacePlan, &usize), _)| Space {
            shape: shape(space),
            size,
            order,
            shared: shared(plan, space),
        };
        let spaces = plan.spaces.iter().zip(&setup.sizes).zip(orders).map(space).collect();
        let mut machine = Machine::new(
            Model { spaces, relations, groups, branched },
            Arc::new(traffic),
            plan.uniforms.iter().map(uniform).collect::<Result<_, _>>()?,
            plan.series.iter().map(series).collect::<Result<_, EngineError>>()?,
            Arc::new(library),
            options.threads,
            plan.min_cells as usize,
        );
        machine.set_seed(setup.seed);
        for space in &plan.spaces {
            for (slot, &field) in space.data.iter().enumerate() {
                let values = setup.data.iter().rfind(|(id, _)| *id == field).ok_or_else(|| given(field, "values"))?;
                let place = Place { space: space.space.0 as usize, bank: Bank::Data, slot };
                let written = machine.write(place, &values.1);
                written.map_err(|e| EngineError(format!("`{}`: {e}", name(field))))?;
            }
        }
        Ok(Native {
            machine,
            homes: plan.homes.clone(),
            names: plan.fields.clone(),
            events: plan.spaces.iter().map(|space| space.events.clone()).collect(),
            remembering,
            initialized: false,
        })
    }

    fn place(&self, field: FieldId) -> Result<Place, EngineError> {
        match self.homes.get(field.0 as usize) {
            Some(&Home::Slot(SpaceId(space), bank @ (Bank::State | Bank::Cell | Bank::Output), slot)) => {
                Ok(Place { space: space as usize, bank, slot: slot as usize })
            }
            Some(
                Home::Slot(_, Bank::Data | Bank::Temp, _)
                | Home::Uniform(_)
                | Home::Series(_)
                | Home::Event(..)
                | Home::Flat(..)
                | Home::Edges
                | Home::Register,
            ) => Err(EngineError(format!("`{}` holds no values that outlive a step", self.names[field.0 as usize]))),
            None => Err(EngineError(format!("field {} does not exist", field.0))),
        }
    }

    /// Where the edges of a field are that remember it (the number of their kind as the space), and how many they are.
    fn of_edges(&self, field: FieldId) -> Option<(Place, usize)> {
        let Home::Slot(space, bank, slot) = *self.homes.get(field.0 as usize)? else { return None };
        let kind = self.remembering.iter().position(|(other, _)| *other == space)?;
        Some((Place { space: kind, bank, slot: slot as usize }, self.remembering[kind].1))
    }

    /// The space and the number of a field that maps of branched cells reach.
    fn of_branches(&self, field: FieldId) -> Option<(usize, usize)> {
        let Home::Flat(space, number) = *self.homes.get(field.0 as usize)? else { return None };
        Some((space.0 as usize, number as usize))
    }

    fn initialized(&self, what: &str) -> Result<(), EngineError> {
        if self.initialized {
            return Ok(());
        }
        Err(EngineError(format!("{what} asked for before the states were set")))
    }

    /// Appends numbers of a field, in either precision.
    fn read_as<N: Scalar>(&self, field: FieldId, cells: Range<usize>, out: &mut Vec<N>) -> Result<(), EngineError> {
        if let Some((place, edges)) = self.of_edges(field) {
            let known = if cells.end <= edges { Ok(()) } else { Err(Fault::Range) };
            let read = known.and_then(|()| self.machine.read_edges(place, cells, out));
            return read.map_err(self.named(field));
        }
        if let Some(at) = self.of_branches(field) {
            return self.machine.read_branches(at, cells, out).map_err(self.named(field));
        }
        self.machine.read(self.place(field)?, cells, out).map_err(self.named(field))
    }

    /// Overwrites a field with numbers in either precision.
    fn write_as<N: Scalar>(&mut self, field: FieldId, values: &[N]) -> Result<(), EngineError> {
        if let Some((place, edges)) = self.of_edges(field).filter(|(place, _)| place.bank == Bank::State) {
            let known = if values.len() == edges { Ok(()) } else { Err(Fault::Length(edges, values.len())) };
            let named = self.named(field);
            return known.and_then(|()| self.machine.write_edges(place, values)).map_err(named);
        }
        if let Some(at) = self.of_branches(field) {
            let named = self.named(field);
            return self.machine.write_branches(at, values).map_err(named);
        }
        let place = self.place(field)?;
        if place.bank == Bank::Output {
            let name = &self.names[field.0 as usize];
            return Err(EngineError(format!("`{name}` is an output and cannot be written")));
        }
        let named = self.named(field);
        self.machine.write(place, values).map_err(named)
    }

    fn named(&self, field: FieldId) -> impl Fn(Fault) -> EngineError + use<T> {
        let name = self.names[field.0 as usize].clone();
        move |fault| EngineError(format!("`{name}`: {fault}"))
    }
}

impl<T: Scalar + Send + Sync + 'static> Engine for Native<T> {
    fn init(&mut self) -> Result<(), EngineError> {
        self.machine.init()?;
        self.initialized = true;
        Ok(())
    }

    fn step(&mut self, first_step: u64, steps: u32, spikes: &mut Vec<Spike>) -> Result<(), EngineError> {
        self.initialized("a step was")?;
        let mut found = Vec::new();
        self.machine.step(first_step, u64::from(steps), &mut found)?;
        let before = spikes.len();
        spikes.extend(found.into_iter().map(|spike| Spike {
            step: spike.step,
            field: self.events[spike.space][spike.event as usize],
            cell: spike.cell,
            early: 0,
        }));
        spikes[before..].sort_unstable();
        Ok(())
    }

    fn observe(&mut self, step: u64) -> Result<(), EngineError> {
        self.initialized("outputs were")?;
        Ok(self.machine.observe(step)?)
    }

    fn read(&self, field: FieldId, cells: Range<usize>, out: &mut Vec<f64>) -> Result<(), EngineError> {
        self.read_as(field, cells, out)
    }

    fn write(&mut self, field: FieldId, values: &[f64]) -> Result<(), EngineError> {
        self.write_as(field, values)
    }

    fn read_singles(&self, field: FieldId, cells: Range<usize>, out: &mut Vec<f32>) -> Result<(), EngineError> {
        self.read_as(field, cells, out)
    }

    fn write_singles(&mut self, field: FieldId, values: &[f32]) -> Result<(), EngineError> {
        self.write_as(field, values)
    }

    fn set_uniform(&mut self, field: FieldId, value: f64) -> Result<(), EngineError> {
        match self.homes.get(field.0 as usize) {
            Some(&Home::Uniform(index)) => self.machine.set_uniform(index as usize, value).map_err(self.named(field)),
            Some(_) => Err(EngineError(format!("`{}` is not the same for all cells", self.names[field.0 as usize]))),
            None => Err(EngineError(format!("field {} does not exist", field.0))),
        }
    }

    fn all_finite(&self) -> bool {
        self.machine.all_finite()
    }

    fn knows_events(&self) -> bool {
        true
    }

    fn under_way(&self, step: u64) -> Vec<UnderWay> {
        let named = |(ago, Sent { space, event, cell }): (u64, Sent)| {
            let field = self.events[space][event as usize];
            UnderWay { field, ago, cell: u64::from(cell) }
        };
        let mut all: Vec<UnderWay> = self.machine.under_way(step).into_iter().map(named).collect();
        all.sort_unstable();
        all
    }

    fn resume(&mut self, step: u64, under_way: &[UnderWay]) -> Result<(), EngineError> {
        let sent = |event: &UnderWay| {
            let lost = || EngineError(format!("the event field {} does not exist", event.field.0));
            let of = |fields: &Vec<FieldId>| fields.iter().position(|&field| field == event.field);
            let found = self.events.iter().enumerate().find_map(|(space, fields)| Some((space, of(fields)?)));
            let (space, number) = found.ok_or_else(lost)?;
            let cell = u32::try_from(event.cell).map_err(|_| lost())?;
            Ok((event.ago, Sent { space, event: number as u64, cell }))
        };
        let all: Vec<(u64, Sent)> = under_way.iter().map(sent).collect::<Result<_, EngineError>>()?;
        self.machine.resume(step, &all).map_err(EngineError::from)
    }
}
