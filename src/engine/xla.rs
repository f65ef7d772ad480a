//! The XLA engine: entry points in StableHLO, compiled and run through PJRT.
//!
//! In come a [`Plan`], a [`Setup`] and a device; out comes an [`Engine`] whose states live on the device and which visits the host
//! once per stretch of steps.
//! Never true here: a parameter, a seed or an edge is compiled in, or the states are copied where their memory can be reused.

use super::executables::Compiler;
use super::inputs::{Inputs, Table};
use super::{Engine, EngineError, Recording, Setup, Spike, Stride};
use crate::codegen::plan::{DeviceClass, GatherForm, Plan, Stretch};
use crate::codegen::stablehlo::builder::TensorType;
use crate::codegen::stablehlo::{Entry, Feed, Kind, Part, Slot, mlir, slot_name};
use crate::pjrt::{Argument, Bf16, Buffer, Client, CompileOptions, ElementType, Error, Executable, Flag};
use crate::plugins::Kind as Device;
use crate::runtime::machine::Bank;
use crate::step::{FieldId, SpaceId};
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

/// An engine on a device.
pub struct XlaEngine {
    inputs: Inputs,
    compiler: Compiler,
    init: Ready,
    step: Ready,
    observe: Ready,
    stretch: Option<(Stretch, Ready)>,
    /// What does not change after `init`: data, edges, series, the seed and cell values.
    fixed: BTreeMap<Slot, Buffer>,
    /// The states, and what is on its way.
    states: BTreeMap<Slot, Arc<Buffer>>,
    outputs: BTreeMap<Slot, Buffer>,
    /// Whether all states are finite; none if nobody has looked.
    finite: Option<bool>,
    initialized: bool,
    /// Has a parameter another value than the numbers on the device were made of?
    stale: bool,
}

/// A compiled entry point and the numbers that do not change.
pub(super) struct Ready {
    pub entry: Entry,
    pub executable: Executable,
    pub numbers: BTreeMap<Part, Buffer>,
}

impl From<Error> for EngineError {
    fn from(error: Error) -> EngineError {
        EngineError(error.to_string())
    }
}

/// What shall be different from what suits the device; to measure.
#[derive(Debug, Clone, Copy, Default)]
pub struct Forms {
    /// Which form gathers along edges have.
    pub gather: Option<fn(&GatherForm) -> bool>,
    /// Steps in a straight line.
    pub unroll: Option<u32>,
}

impl XlaEngine {
    /// Compiles the entry points, or finds them in the compiler's cache, and brings what does not change to the device.
    pub fn new(plan: &Plan, setup: &Setup, compiler: impl Into<Compiler>) -> Result<XlaEngine, EngineError> {
        let compiler = compiler.into();
        XlaEngine::with_forms(setup, XlaEngine::inputs(plan, setup, compiler.client())?, compiler)
    }

    /// What is decided for a device.
    pub fn inputs(plan: &Plan, setup: &Setup, client: &Client) -> Result<Inputs, EngineError> {
        Inputs::new(plan, setup, XlaEngine::class(client))
    }

    /// As [`inputs`](XlaEngine::inputs), but for what was chosen.
    pub fn inputs_in(forms: &Forms, plan: &Plan, setup: &Setup, client: &Client) -> Result<Inputs, EngineError> {
        let mut inputs = XlaEngine::inputs(plan, setup, client)?;
        if let Some(unroll) = forms.unroll {
            inputs.device.unroll = unroll;
            inputs.device.rolled = false;
        }
        let Some(wanted) = forms.gather else { return Ok(inputs) };
        for (space, of_space) in plan.spaces.iter().enumerate() {
            for (at, &number) in of_space.edges.iter().enumerate() {
                let relation = plan.relation(number);
                let Some(edges) = setup.edges_of(relation.space) else { continue };
                let grid = setup.grids.get(space).map_or(&[][..], |grid| grid);
                let forms = GatherForm::candidates(edges, grid, relation, XlaEngine::class(client));
                let none = || EngineError(format!("the edges of `{}` cannot be gathered in this form", relation.name));
                inputs.device.gathers[space][at] = forms.into_iter().find(wanted).ok_or_else(none)?;
            }
        }
        Ok(inputs)
    }

    /// What kind of device it is for plans.
    pub fn class(client: &Client) -> DeviceClass {
        if client.platform_name() == Device::Cpu.name() { DeviceClass::Cpu } else { DeviceClass::Accelerator }
    }

    /// As [`new`](XlaEngine::new), with forms of gathers that somebody has chosen in the inputs.
    pub fn with_forms(setup: &Setup, inputs: Inputs, compiler: impl Into<Compiler>) -> Result<XlaEngine, EngineError> {
        let compiler = compiler.into();
        let ready = |kind| Ready::new(&inputs, &compiler, kind);
        let (init, step, observe) = (ready(Kind::Init)?, ready(Kind::Step)?, ready(Kind::Observe)?);
        let mut engine = XlaEngine {
            inputs,
            compiler,
            init,
            step,
            observe,
            stretch: None,
            fixed: BTreeMap::new(),
            states: BTreeMap::new(),
            outputs: BTreeMap::new(),
            finite: None,
            initialized: false,
            stale: false,
        };
        let ports = [&engine.init, &engine.step, &engine.observe].into_iter().flat_map(|ready| &ready.entry.arguments);
        let mut tables: BTreeMap<Slot, (TensorType, Table)> = BTreeMap::new();
        for port in ports {
            if let Some(Feed::Fixed(fixed)) = port.slot.feed() {
                tables.insert(port.slot, (port.ty.clone(), engine.inputs.fixed(fixed, setup)));
            }
        }
        for (slot, (ty, table)) in tables {
            let buffer = upload(engine.compiler.client(), &ty, table)?;
            engine.fixed.insert(slot, buffer);
        }
        Ok(engine)
    }

    /// Runs an entry point; `first` is the step of the first row of its tables. States become its results if it has new ones.
    fn execute(&mut self, which: Which, first: u64, steps: u32) -> Result<BTreeMap<Slot, Buffer>, EngineError> {
        if std::mem::take(&mut self.stale) {
            let stretch = self.stretch.as_mut().map(|(_, ready)| ready);
            let all = [&mut self.init, &mut self.step, &mut self.observe].into_iter().chain(stretch);
            for ready in all {
                ready.set_numbers(&self.inputs, &self.compiler)?;
            }
        }
        let ready = match which {
            Which::Init => &self.init,
            Which::Step => &self.step,
            Which::Observe => &self.observe,
            Which::Stretch => {
                let ready = self.stretch.as_ref().map(|(_, ready)| ready);
                ready.ok_or_else(|| EngineError("internal error: no stretch is prepared".into()))?
            }
        };
        let mut fresh: BTreeMap<Slot, Buffer> = BTreeMap::new();
        for port in &ready.entry.arguments {
            let table = match port.slot.feed() {
                Some(Feed::Steps) => Table::I32(vec![steps as i32]),
                Some(Feed::Rows(role, part)) => {
                    let all = port.ty.dims[0];
                    let needed = if ready.entry.kind == Kind::Step { steps as usize } else { all };
                    self.inputs.rows(&ready.entry, (role, part), first, all, needed)
                }
                Some(Feed::Earlier | Feed::Fixed(_) | Feed::Numbers(_) | Feed::Trial(_)) | None => continue,
            };
            fresh.insert(port.slot, upload(self.compiler.client(), &port.ty, table)?);
        }
        let changes = matches!(which, Which::Step | Which::Stretch);
        let mut old = if changes { std::mem::take(&mut self.states) } else { self.states.clone() };
        // A state that is kept, or that the entry point does not change, stays as it is; the others give up their memory.
        let mut kept: Vec<Arc<Buffer>> = Vec::new();
        let mut given: BTreeMap<Slot, Result<Buffer, usize>> = BTreeMap::new();
        for (slot, state) in std::mem::take(&mut old) {
            given.insert(
                slot,
                Arc::try_unwrap(state).map_err(|state| {
                    kept.push(state);
                    kept.len() - 1
                }),
            );
        }
        let missing =
            |slot: Slot| EngineError(format!("internal error: no value for `{}`", slot_name(&self.inputs.plan, slot)));
        let mut arguments: Vec<Argument<'_>> = Vec::new();
        for port in &ready.entry.arguments {
            arguments.push(match (given.remove(&port.slot), port.slot) {
                (Some(Ok(buffer)), _) => Argument::Donate(buffer),
                (Some(Err(at)), _) => Argument::Keep(&kept[at]),
                (None, Slot::Numbers(part)) => Argument::Keep(&ready.numbers[&part]),
                (None, slot) => {
                    let buffer = fresh.get(&slot).or_else(|| self.fixed.get(&slot));
                    Argument::Keep(buffer.ok_or_else(|| missing(slot))?)
                }
            });
        }
        let results = ready.executable.execute(arguments)?;
        let slots = ready.entry.results.iter().map(|port| port.slot);
        Ok(slots.zip(results).collect())
    }

    /// Takes the states and the flag out of results.
    fn take_states(&mut self, results: &mut BTreeMap<Slot, Buffer>) -> Result<(), EngineError> {
        let states: Vec<Slot> = results.keys().copied().filter(|slot| slot.is_carried()).collect();
        for slot in states {
            if let Some(buffer) = results.remove(&slot) {
                self.states.insert(slot, Arc::new(buffer));
            }
        }
        self.finite = match results.remove(&Slot::Finite) {
            Some(flag) => Some(flag.to_vec::<bool>()?.iter().all(|finite| *finite)),
            None => None,
        };
        Ok(())
    }

    /// Adds the events of results, given the step of every word and bit.
    fn take_spikes(
        &self,
        results: &BTreeMap<Slot, Buffer>,
        step_at: impl Fn(u32, u32) -> u64,
        spikes: &mut Vec<Spike>,
    ) -> Result<(), EngineError> {
        let before = spikes.len();
        for (slot, buffer) in results {
            let Slot::Events(space, event) = *slot else { continue };
            let (space, cells) = (&self.inputs.plan.spaces[space as usize], self.inputs.device.sizes[space as usize]);
            let field = space.events[event as usize];
            for (at, &word) in buffer.to_vec::<u32>()?.iter().enumerate().filter(|(_, word)| **word != 0) {
                let (row, cell) = ((at / cells) as u32, (at % cells) as u64);
                let bits = (0..32).filter(|bit| word >> bit & 1 == 1);
                spikes.extend(bits.map(|bit| Spike { step: step_at(row, bit), field, cell, early: 0 }));
            }
        }
        spikes[before..].sort_unstable();
        Ok(())
    }

    fn place(&self, field: FieldId) -> Result<(SpaceId, Slot), EngineError> {
        match self.inputs.plan.slot(field) {
            Some((space, Bank::State, slot)) => Ok((space, Slot::State(space.0, slot))),
            Some((space, Bank::Cell, slot)) => Ok((space, Slot::Cell(space.0, slot))),
            Some((space, Bank::Output, slot)) => Ok((space, Slot::Output(space.0, slot))),
            Some((_, Bank::Data | Bank::Temp, _)) | None => match self.inputs.plan.fields.get(field.0 as usize) {
                Some(name) => Err(EngineError(format!("`{name}` holds no values that outlive a step"))),
                None => Err(EngineError(format!("field {} does not exist", field.0))),
            },
        }
    }

    fn initialized(&self, what: &str) -> Result<(), EngineError> {
        if self.initialized {
            return Ok(());
        }
        Err(EngineError(format!("{what} asked for before the states were set")))
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Which {
    Init,
    Step,
    Stretch,
    Observe,
}

impl Ready {
    pub fn new(inputs: &Inputs, compiler: &Compiler, kind: Kind) -> Result<Ready, EngineError> {
        let Inputs { plan, device, .. } = inputs;
        let entry = Entry::new(plan, device, kind, "main");
        let name = format!("{}_{}", plan.name, entry.kind.name());
        let module = mlir::write(&name, std::slice::from_ref(&entry.function), &plan.origins, mlir::Format::Text);
        let executable = compile(compiler, &module)?;
        let mut ready = Ready { entry, executable, numbers: BTreeMap::new() };
        ready.set_numbers(inputs, compiler)?;
        Ok(ready)
    }

    /// Computes the numbers that do not change, of the values that parameters have now.
    pub fn set_numbers(&mut self, inputs: &Inputs, compiler: &Compiler) -> Result<(), EngineError> {
        for port in &self.entry.arguments {
            if let Slot::Numbers(part) = port.slot {
                let table = inputs.numbers(&self.entry, part);
                self.numbers.insert(part, upload(compiler.client(), &port.ty, table)?);
            }
        }
        Ok(())
    }
}

/// On a GPU: loops go back and forth between two sets of buffers. Otherwise XLA copies states that a later kernel of the same turn
/// reads while they have new values (compiled for an H100, connected olive, four steps in a line: 7 launches instead of 15).
const TWO_BUFFERS: (&str, &str) = ("xla_gpu_enable_while_loop_unrolling", "WHILE_LOOP_UNROLLING_DOUBLE_BUFFER");

/// Compiles for the first device of a client.
pub(super) fn compile(compiler: &Compiler, module: &[u8]) -> Result<Executable, EngineError> {
    if compiler.client().platform_name() == Device::Cuda.name() {
        let (name, value) = TWO_BUFFERS;
        let flags = vec![(name.into(), Flag::Text(value.into()))];
        match compiler.compile(module, &CompileOptions { flags, ..CompileOptions::default() }) {
            // A plugin of another version does without.
            Err(error) if error.to_string().contains(name) => {}
            compiled => return compiled,
        }
    }
    compiler.compile(module, &CompileOptions::default())
}

/// The real numbers of a buffer. What holds no real numbers is refused.
pub fn numbers(buffer: &Buffer) -> Result<Vec<f64>, EngineError> {
    Ok(if buffer.array_type().element == ElementType::Bf16 {
        buffer.to_vec::<Bf16>()?.into_iter().map(|x| f64::from(f32::from(x))).collect()
    } else if buffer.array_type().element == ElementType::F32 {
        buffer.to_vec::<f32>()?.into_iter().map(f64::from).collect()
    } else {
        buffer.to_vec::<f64>()?
    })
}

pub(super) fn upload(client: &Client, ty: &TensorType, table: Table) -> Result<Buffer, EngineError> {
    assert!(table.element() == ty.element, "{:?} for {ty}", table.element());
    Ok(match table {
        Table::F64(values) => client.buffer(&values, &ty.dims),
        Table::Bf16(values) => client.buffer(&values, &ty.dims),
        Table::F32(values) => client.buffer(&values, &ty.dims),
        Table::I32(values) => client.buffer(&values, &ty.dims),
        Table::U32(values) => client.buffer(&values, &ty.dims),
        Table::U64(values) => client.buffer(&values, &ty.dims),
        Table::Bool(values) => client.buffer(&values, &ty.dims),
    }?)
}

impl Engine for XlaEngine {
    fn set_uniform(&mut self, field: FieldId, value: f64) -> Result<(), EngineError> {
        self.stale |= self.inputs.set_uniform(field, value);
        Ok(())
    }

    fn init(&mut self) -> Result<(), EngineError> {
        let mut results = self.execute(Which::Init, 0, 0)?;
        self.take_states(&mut results)?;
        self.fixed.extend(results);
        self.initialized = true;
        Ok(())
    }

    fn step(&mut self, first_step: u64, steps: u32, spikes: &mut Vec<Spike>) -> Result<(), EngineError> {
        self.initialized("a step was")?;
        let mut at = 0;
        while at < steps {
            let some = (steps - at).min(Kind::STEPS);
            let first = first_step + u64::from(at);
            let mut results = self.execute(Which::Step, first, some)?;
            self.take_states(&mut results)?;
            self.take_spikes(&results, |_, place| first + u64::from(place), spikes)?;
            at += some;
        }
        Ok(())
    }

    fn observe(&mut self, step: u64) -> Result<(), EngineError> {
        self.initialized("outputs were")?;
        self.outputs = self.execute(Which::Observe, step, 0)?;
        Ok(())
    }

    fn read(&self, field: FieldId, cells: Range<usize>, out: &mut Vec<f64>) -> Result<(), EngineError> {
        let (space, slot) = self.place(field)?;
        let name = || &self.inputs.plan.fields[field.0 as usize];
        if cells.end > self.inputs.device.sizes[space.0 as usize] || cells.start > cells.end {
            return Err(EngineError(format!("`{}` has no cells {cells:?}", name())));
        }
        if cells.is_empty() {
            return Ok(());
        }
        let of_state = self.states.get(&slot).map(Arc::as_ref);
        let buffer = of_state.or_else(|| self.fixed.get(&slot)).or_else(|| self.outputs.get(&slot));
        let buffer = buffer.ok_or_else(|| EngineError(format!("`{}` has no values yet", name())))?;
        out.extend_from_slice(&numbers(buffer)?[cells]);
        Ok(())
    }

    fn write(&mut self, field: FieldId, values: &[f64]) -> Result<(), EngineError> {
        let (space, slot) = self.place(field)?;
        let (name, cells) = (&self.inputs.plan.fields[field.0 as usize], self.inputs.device.sizes[space.0 as usize]);
        if values.len() != cells {
            return Err(EngineError(format!("{} values for the {cells} cells of `{name}`", values.len())));
        }
        if let Slot::Output(..) = slot {
            return Err(EngineError(format!("`{name}` is an output and cannot be written")));
        }
        if cells == 0 {
            return Ok(());
        }
        let table = self.inputs.stored(slot, values);
        let buffer = upload(self.compiler.client(), &TensorType::new(table.element(), &[cells]), table)?;
        if let Slot::State(..) = slot {
            self.states.insert(slot, Arc::new(buffer));
            self.finite = None;
        } else {
            self.fixed.insert(slot, buffer);
        }
        Ok(())
    }

    fn all_finite(&self) -> bool {
        let finite = |buffer: &Arc<Buffer>| numbers(buffer).is_ok_and(|values| values.iter().all(|x| x.is_finite()));
        let states = || self.states.iter().filter(|(slot, _)| matches!(slot, Slot::State(..)));
        self.finite.unwrap_or_else(|| states().all(|(_, buffer)| finite(buffer)))
    }

    fn prepare(&mut self, recording: &Recording, steps: u64) -> Result<Stride, EngineError> {
        let stretch = Stretch::new(&self.inputs.plan, &self.inputs.device, recording.every, &recording.fields, steps);
        let Some(stretch) = stretch else {
            self.stretch = None;
            return Ok(Stride::default());
        };
        let stride = Stride { every: stretch.every, samples: stretch.samples };
        if self.stretch.as_ref().is_none_or(|(known, _)| *known != stretch) {
            let kind = Kind::Stretch(stretch.clone());
            let ready = Ready::new(&self.inputs, &self.compiler, kind)?;
            self.stretch = Some((stretch, ready));
        }
        Ok(stride)
    }

    fn record(
        &mut self,
        first_step: u64,
        samples: &mut [Vec<f64>],
        spikes: &mut Vec<Spike>,
    ) -> Result<(), EngineError> {
        self.initialized("a sample was")?;
        let mut results = self.execute(Which::Stretch, first_step, 0)?;
        self.take_states(&mut results)?;
        let Some((stretch, _)) = &self.stretch else {
            return Err(EngineError("internal error: no stretch is prepared".into()));
        };
        let unroll = self.inputs.device.unroll;
        let step_at = |word, bit| first_step + u64::from(stretch.step_of_bit(unroll, word, bit));
        self.take_spikes(&results, step_at, spikes)?;
        for (entry, samples) in samples.iter_mut().enumerate() {
            let buffer = results.get(&Slot::Record(entry as u32));
            let buffer = buffer.ok_or_else(|| EngineError("internal error: a record without an entry".into()))?;
            samples.extend(numbers(buffer)?);
        }
        Ok(())
    }
}
