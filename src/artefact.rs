//! A model as StableHLO that others run: modules, a manifest and the numbers that they are given.
//!
//! In come an experiment and its plan; out go the files of a directory, by name.
//! Never true here: a file depends on the machine or the time, or says less than a reader without this compiler needs.

use crate::codegen::plan::{DeviceClass, Plan, Stretch};
use crate::codegen::stablehlo::builder::Element;
use crate::codegen::stablehlo::{Entry, Feed, Kind, Port, mlir, slot_name};
use crate::driver::{Experiment, StepBack};
use crate::engine::inputs::{Inputs, Table};
use crate::engine::{EngineError, Setup};
use crate::step::FieldId;
use crate::units::scale;
use ndarray::{ArrayD, IxDyn};
use ndarray_npy::{NpzWriter, WritableElement, WriteNpzError};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::io::Cursor;

/// The version of the manifest's form.
const FORMAT: u32 = 4;

/// A file to write.
#[derive(Debug, Clone, PartialEq)]
pub struct File {
    /// Its name within the directory.
    pub name: String,
    /// Its bytes.
    pub bytes: Vec<u8>,
}

/// The files: for each entry point its module as text (`.mlir`) and as bytecode (`.mlirbc`), `manifest.json` and `inputs.npz`. They run
/// on every device, and are fast on those of a class.
pub fn files(experiment: &Experiment, plan: &Plan, class: DeviceClass) -> Result<Vec<File>, EngineError> {
    files_with(experiment, &Inputs::new(plan, &experiment.setup, class)?)
}

/// The same, with forms of gathers that somebody has chosen in the inputs.
pub fn files_with(experiment: &Experiment, inputs: &Inputs) -> Result<Vec<File>, EngineError> {
    let Experiment { compiled, extent, setup, recording, warnings: _ } = experiment;
    if let Some(record) = experiment.compiled.ode.records.iter().find(|record| record.probe.is_some()) {
        let why = "`{}` is a potential, which is computed outside of the program so far; leave it out";
        return Err(EngineError(why.replace("{}", &record.name)));
    }
    let plan = &inputs.plan;
    let stretch = Stretch::new(plan, &inputs.device, recording.every, &recording.fields, extent.grid.steps);
    let Some(stretch) = stretch else {
        let short =
            "the run is shorter than the time between two samples of its records: make it longer, or record more often";
        let empty = "a run without steps or without cells has no loop to write";
        return Err(EngineError(if extent.grid.steps < recording.every { short } else { empty }.into()));
    };
    let calls = extent.grid.steps / u64::from(stretch.steps());
    let kinds = [Kind::Init, Kind::Step, Kind::Stretch(stretch.clone()), Kind::Observe];
    let units = Units::new(experiment);
    let mut artefact =
        Artefact { inputs, setup, units: &units, calls, steps: extent.grid.steps, tables: BTreeMap::new() };
    let mut files = Vec::new();
    let mut functions = Map::new();
    for kind in kinds {
        let (name, described) = artefact.module(kind, &mut files);
        functions.insert(name, described);
    }
    let ode = &compiled.ode;
    let records = ode.records.iter().zip(&stretch.fields);
    let unroll = inputs.device.unroll;
    let manifest = json!({
        "format": FORMAT,
        "model": ode.name,
        "compiler": concat!("neuroc ", env!("CARGO_PKG_VERSION")),
        "precision": plan.precision.name(),
        "method": ode.method.name(),
        "dt_ms": extent.grid.dt,
        "steps": extent.grid.steps,
        "seed": setup.seed,
        "populations": ode.populations.iter().zip(&extent.cells)
            .map(|(p, cells)| json!({"name": p.name, "cells": cells})).collect::<Vec<_>>(),
        "parameters": units.parameters,
        "functions": functions,
        "stretch": {
            "steps": stretch.steps(),
            "every": stretch.every,
            "samples": stretch.samples,
            "calls": calls,
            "steps_left": extent.grid.steps % u64::from(stretch.steps()),
            // Of every line of steps: the word of events, the bit and the step that it begins with.
            "lines": (0..stretch.lines(unroll)).map(|line| {
                let of_word = stretch.lines_in_word(unroll);
                let bit = line % of_word * stretch.most_in_line(unroll);
                [line / of_word, bit, stretch.step_at(unroll, line, 0)]
            }).collect::<Vec<_>>(),
            "records": records.map(|(r, (_, cells))| json!({
                "name": r.name,
                "unit": r.unit.name,
                "scale": scale(1.0, r.unit.exponent),
                "cells": [cells.start, cells.end],
            })).collect::<Vec<_>>(),
        },
    });
    artefact.described(&manifest, files)
}

/// The files of a step that goes back: its module, `manifest.json` with the name of the adjoint of each state and constant, and `inputs.npz`.
pub fn step_back(back: &StepBack, plan: &Plan, class: DeviceClass) -> Result<Vec<File>, EngineError> {
    let StepBack { experiment, adjoints } = back;
    let inputs = Inputs::new(plan, &experiment.setup, class)?;
    let units = Units::new(experiment);
    let steps = experiment.extent.grid.steps;
    let (setup, tables) = (&experiment.setup, BTreeMap::new());
    let mut artefact = Artefact { inputs: &inputs, setup, units: &units, calls: 0, steps, tables };
    let mut files = Vec::new();
    let (name, described) = artefact.module(Kind::Step, &mut files);
    let functions = Map::from_iter([(name, described)]);
    let adjoints: Map<String, Value> = adjoints.iter().map(|(of, adjoint)| (of.clone(), json!(adjoint))).collect();
    artefact.described(&json!({ "format": FORMAT, "functions": functions, "adjoints": adjoints }), files)
}

/// Units of fields, and the parameters with their values.
struct Units {
    /// For a field the name of its unit, and one of it in the numbers of the program.
    of: BTreeMap<FieldId, (String, f64)>,
    parameters: Vec<Value>,
}

impl Units {
    fn new(experiment: &Experiment) -> Units {
        let interface = experiment.interface(&[]);
        let mut units = Units { of: BTreeMap::new(), parameters: Vec::new() };
        for field in &interface.fields {
            let unit = if field.unit.is_empty() { "1" } else { &field.unit };
            units.of.insert(field.field, (unit.to_string(), scale(1.0, field.exponent)));
            if let Some((_, value)) = experiment.setup.uniforms.iter().find(|(id, _)| *id == field.field) {
                let name = &experiment.program().field(field.field).name;
                let value =
                    json!({"name": name, "value": scale(*value, -field.exponent), "unit": unit, "doc": field.doc});
                units.parameters.push(value);
            }
        }
        units
    }
}

struct Artefact<'a> {
    inputs: &'a Inputs,
    setup: &'a Setup,
    units: &'a Units,
    calls: u64,
    steps: u64,
    /// The arrays of `inputs.npz`.
    tables: BTreeMap<String, (Vec<usize>, Table)>,
}

impl Artefact<'_> {
    /// Writes the module of an entry point, and describes it.
    fn module(&mut self, kind: Kind, files: &mut Vec<File>) -> (String, Value) {
        let plan = &self.inputs.plan;
        let entry = Entry::new(plan, &self.inputs.device, kind, "main");
        let name = entry.kind.name();
        for (ending, format) in [("mlir", mlir::Format::Text), ("mlirbc", mlir::Format::Bytecode)] {
            let module = format!("{}_{name}", plan.name);
            let bytes = mlir::write(&module, std::slice::from_ref(&entry.function), &plan.origins, format);
            files.push(File { name: format!("{name}.{ending}"), bytes });
        }
        (name.into(), self.function(&entry))
    }

    /// The files with the manifest and the numbers.
    fn described(&self, manifest: &Value, mut files: Vec<File>) -> Result<Vec<File>, EngineError> {
        let text = serde_json::to_string_pretty(manifest).map_err(|e| EngineError(e.to_string()))?;
        files.push(File { name: "manifest.json".into(), bytes: format!("{text}\n").into_bytes() });
        files.push(File { name: "inputs.npz".into(), bytes: npz(&self.tables)? });
        Ok(files)
    }

    fn function(&mut self, entry: &Entry) -> Value {
        let name = entry.kind.name();
        let arguments: Vec<Value> = entry.arguments.iter().map(|port| self.argument(entry, port)).collect();
        let donated = entry.function.donated.iter();
        let arguments: Vec<Value> = (arguments.into_iter().zip(donated))
            .map(|(mut argument, donated)| {
                argument["donated_to"] = json!(donated);
                argument
            })
            .collect();
        let results: Vec<Value> = entry.results.iter().map(|port| self.port(port)).collect();
        json!({
            "text": format!("{name}.mlir"),
            "bytecode": format!("{name}.mlirbc"),
            "arguments": arguments,
            "results": results,
        })
    }

    fn port(&self, port: &Port) -> Value {
        let plan = &self.inputs.plan;
        let field = port.slot.field(plan);
        let mut described =
            json!({"name": slot_name(plan, port.slot), "shape": port.ty.dims, "dtype": port.ty.element.numpy()});
        if let Some((unit, scale)) = field.and_then(|field| self.units.of.get(&field)) {
            described["unit"] = json!(unit);
            described["scale"] = json!(scale);
        }
        described
    }

    /// Describes an argument and keeps its numbers.
    fn argument(&mut self, entry: &Entry, port: &Port) -> Value {
        let mut described = self.port(port);
        let name = slot_name(&self.inputs.plan, port.slot);
        let function = entry.kind.name();
        let (from, kept) = match port.slot.feed().expect("an argument of an entry point that runs comes from somewhere")
        {
            Feed::Earlier => ("init", None),
            Feed::Steps | Feed::Trial(_) => ("caller", None),
            Feed::Fixed(fixed) => ("inputs", Some((name, port.ty.dims.clone(), self.inputs.fixed(fixed, self.setup)))),
            Feed::Numbers(part) => {
                let table = self.inputs.numbers(entry, part);
                ("inputs", Some((format!("{function}.{name}"), port.ty.dims.clone(), table)))
            }
            Feed::Rows(role, part) => {
                let rows = port.ty.dims[0];
                let (from, all) = match entry.kind {
                    // All rows of the run: the call of number `k` takes `rows` of them from `k * rows` on.
                    Kind::Stretch(_) => ("rows", rows * self.calls as usize),
                    // The call that begins with step `k`, or observes what is there before it, takes `rows` of them from
                    // `k` on, for any step of the run and for its end.
                    Kind::Step | Kind::Observe => ("steps", rows + self.steps as usize),
                    Kind::Init | Kind::Line(_) | Kind::Forward(_) | Kind::Back(_) => ("inputs", rows),
                };
                let table = self.inputs.rows(entry, (role, part), 0, all, all);
                let dims = vec![all, entry.rows[&(role, part)].len()];
                (from, Some((format!("{function}.{name}"), dims, table)))
            }
        };
        described["from"] = json!(from);
        if let Some((key, dims, table)) = kept {
            described["key"] = json!(key);
            if let Table::Bf16(_) = table {
                // NumPy's files know no bfloat16; the numbers are rounded already.
                described["key_dtype"] = json!(Element::F32.numpy());
            }
            self.tables.insert(key, (dims, table));
        }
        described
    }
}

fn npz(tables: &BTreeMap<String, (Vec<usize>, Table)>) -> Result<Vec<u8>, EngineError> {
    let mut bytes = Cursor::new(Vec::new());
    let mut writer = NpzWriter::new(&mut bytes);
    let wrong = |e: WriteNpzError| EngineError(format!("inputs.npz: {e}"));
    for (name, (dims, table)) in tables {
        match table {
            Table::F64(values) => add(&mut writer, name, dims, values),
            Table::F32(values) => add(&mut writer, name, dims, values),
            Table::Bf16(values) => {
                add(&mut writer, name, dims, &values.iter().map(|&x| f32::from(x)).collect::<Vec<_>>())
            }
            Table::I32(values) => add(&mut writer, name, dims, values),
            Table::U32(values) => add(&mut writer, name, dims, values),
            Table::U64(values) => add(&mut writer, name, dims, values),
            Table::Bool(values) => add(&mut writer, name, dims, values),
        }
        .map_err(wrong)?;
    }
    writer.finish().map_err(wrong)?;
    Ok(bytes.into_inner())
}

fn add<T: WritableElement + Clone>(
    writer: &mut NpzWriter<&mut Cursor<Vec<u8>>>,
    name: &str,
    dims: &[usize],
    values: &[T],
) -> Result<(), WriteNpzError> {
    let array = ArrayD::from_shape_vec(IxDyn(dims), values.to_vec()).expect("as many numbers as the type says");
    writer.add_array(name, &array)
}
