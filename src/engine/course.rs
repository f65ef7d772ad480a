//! All steps of many trials on a device, in one direction.
//!
//! In come a [`Plan`](crate::codegen::plan::Plan) with its set-up, a [`Course`](crate::codegen::stablehlo::Course) and values to begin with; out go the results of its entry point, which stay
//! on the device until somebody reads them.
//! Never true here: the host is visited between two steps.

use super::descent::reals;
use super::executables::Compiler;
use super::inputs::{Inputs, Table};
use super::xla::{Ready, numbers, upload};
use super::{EngineError, Setup};
use crate::codegen::stablehlo::builder::TensorType;
use crate::codegen::stablehlo::{Feed, Kind, Slot, Trial, real, slot_name};
use crate::pjrt::{Argument, Buffer};
use crate::runtime::machine::Bank;
use crate::step::FieldId;
use std::collections::BTreeMap;

/// All steps in one direction.
pub struct Direction {
    inputs: Inputs,
    compiler: Compiler,
    init: Ready,
    all: Ready,
    /// Data, edges, the seed, and what values begin with.
    fixed: BTreeMap<Slot, Buffer>,
    /// What `init` has computed, with the numbers of both entry points that the values of parameters decide; none if they have changed.
    begun: Option<Begun>,
}

struct Begun {
    values: BTreeMap<Slot, Buffer>,
    rows: BTreeMap<Slot, Buffer>,
}

impl Direction {
    /// Compiles the entry points, or finds them in the compiler's cache; `kind` is the direction.
    pub fn new(setup: &Setup, inputs: Inputs, compiler: Compiler, kind: Kind) -> Result<Direction, EngineError> {
        let (init, all) = (Ready::new(&inputs, &compiler, Kind::Init)?, Ready::new(&inputs, &compiler, kind)?);
        let mut fixed = BTreeMap::new();
        for port in init.entry.arguments.iter().chain(&all.entry.arguments) {
            if let Some(Feed::Fixed(of)) = port.slot.feed()
                && !fixed.contains_key(&port.slot)
            {
                fixed.insert(port.slot, upload(compiler.client(), &port.ty, inputs.fixed(of, setup))?);
            }
        }
        Ok(Direction { inputs, compiler, init, all, fixed, begun: None })
    }

    /// The bytes of what is kept for all steps.
    pub fn bytes(&self) -> usize {
        match &self.all.entry.kind {
            Kind::Forward(course) | Kind::Back(course) => course.kept() * real(self.inputs.plan.precision).bytes(),
            Kind::Init | Kind::Step | Kind::Stretch(_) | Kind::Line(_) | Kind::Observe => 0,
        }
    }

    /// Gives a parameter another value.
    pub fn set_uniform(&mut self, field: FieldId, value: f64) {
        if self.inputs.set_uniform(field, value) {
            self.begun = None;
        }
    }

    /// What a state or a value of cells begins with in every run, whatever `init` says.
    pub fn begin(&mut self, field: FieldId, values: &[f64]) -> Result<(), EngineError> {
        let slot = match self.inputs.plan.slot(field) {
            Some((space, Bank::State, slot)) => Slot::State(space.0, slot),
            Some((space, Bank::Cell, slot)) => Slot::Cell(space.0, slot),
            // Nothing of the direction reads it.
            Some((_, Bank::Data | Bank::Output | Bank::Temp, _)) | None => return Ok(()),
        };
        if !values.is_empty() {
            let table = self.inputs.stored(slot, values);
            let ty = TensorType::new(table.element(), &[values.len()]);
            self.fixed.insert(slot, upload(self.compiler.client(), &ty, table)?);
        }
        Ok(())
    }

    /// Brings real numbers for an argument to the device.
    pub fn reals(&self, trial: Trial, values: &[f64]) -> Result<Option<Buffer>, EngineError> {
        let Some(ty) = self.argument(trial) else { return Ok(None) };
        upload(self.compiler.client(), ty, reals(ty, values)).map(Some)
    }

    /// Brings whole numbers for an argument to the device.
    pub fn places(&self, trial: Trial, values: Vec<i32>) -> Result<Option<Buffer>, EngineError> {
        let Some(ty) = self.argument(trial) else { return Ok(None) };
        upload(self.compiler.client(), ty, Table::I32(values)).map(Some)
    }

    /// The type of an argument, if there is this one.
    pub fn argument(&self, trial: Trial) -> Option<&TensorType> {
        let arguments = &self.all.entry.arguments;
        arguments.iter().find(|port| port.slot == Slot::Trial(trial)).map(|port| &port.ty)
    }

    /// Is there such a result?
    pub fn finds(&self, trial: Trial) -> bool {
        self.all.entry.results.iter().any(|port| port.slot == Slot::Trial(trial))
    }

    /// Takes all steps.
    pub fn run(&mut self, given: &BTreeMap<Trial, &Buffer>) -> Result<BTreeMap<Slot, Buffer>, EngineError> {
        let begun = match self.begun.take() {
            Some(begun) => begun,
            None => self.begun()?,
        };
        let begun = self.begun.insert(begun);
        let mut arguments = Vec::new();
        for port in &self.all.entry.arguments {
            let found = match port.slot {
                Slot::Trial(trial) => given.get(&trial).copied(),
                Slot::Numbers(part) => self.all.numbers.get(&part),
                slot => self.fixed.get(&slot).or_else(|| begun.values.get(&slot)).or_else(|| begun.rows.get(&slot)),
            };
            let missing =
                || EngineError(format!("internal error: no value for `{}`", slot_name(&self.inputs.plan, port.slot)));
            arguments.push(Argument::Keep(found.ok_or_else(missing)?));
        }
        let results = self.all.executable.execute(arguments)?;
        let slots = self.all.entry.results.iter().map(|port| port.slot);
        Ok(slots.zip(results).collect())
    }

    /// Computes what the values of parameters decide.
    fn begun(&mut self) -> Result<Begun, EngineError> {
        let (inputs, compiler) = (&self.inputs, &self.compiler);
        for ready in [&mut self.init, &mut self.all] {
            ready.set_numbers(inputs, compiler)?;
        }
        let rows = |ready: &Ready| -> Result<BTreeMap<Slot, Buffer>, EngineError> {
            let mut tables = BTreeMap::new();
            for port in &ready.entry.arguments {
                if let Some(Feed::Rows(role, part)) = port.slot.feed() {
                    let all = port.ty.dims[0];
                    let table = inputs.rows(&ready.entry, (role, part), 0, all, all);
                    tables.insert(port.slot, upload(compiler.client(), &port.ty, table)?);
                }
            }
            Ok(tables)
        };
        let of_init = rows(&self.init)?;
        let mut arguments = Vec::new();
        for port in &self.init.entry.arguments {
            let found = match port.slot {
                Slot::Numbers(part) => self.init.numbers.get(&part),
                slot => self.fixed.get(&slot).or_else(|| of_init.get(&slot)),
            };
            let missing =
                || EngineError(format!("internal error: no value for `{}`", slot_name(&inputs.plan, port.slot)));
            arguments.push(Argument::Keep(found.ok_or_else(missing)?));
        }
        let results = self.init.executable.execute(arguments)?;
        let slots = self.init.entry.results.iter().map(|port| port.slot);
        Ok(Begun { values: slots.zip(results).collect(), rows: rows(&self.all)? })
    }

    /// The numbers of an output.
    pub fn output(&self, field: FieldId, results: &BTreeMap<Slot, Buffer>) -> Result<Vec<f64>, EngineError> {
        let found = match self.inputs.plan.slot(field) {
            Some((space, Bank::Output, slot)) => results.get(&Slot::Output(space.0, slot)),
            Some((_, Bank::State | Bank::Cell | Bank::Data | Bank::Temp, _)) | None => None,
        };
        numbers(found.ok_or_else(|| EngineError("internal error: an output has no values".into()))?)
    }
}
