//! What a time step costs on a chip, as XLA's cost model has it.
//!
//! In come a plan, the form of its gathers and a topology; out go flops, bytes and so on of one step, and for each form of gather
//! what a step would cost with it.
//! Never true here: a cost of a loop. XLA counts the body of a loop once, however often it runs, so what is compiled here is a
//! straight line of steps without a loop, and its cost is divided by their number.

use crate::codegen::plan::{DeviceClass, DevicePlan, GatherForm, Plan};
use crate::codegen::stablehlo::{Entry, Kind, mlir};
use crate::engine::Edges;
use crate::pjrt::{CompileOptions, Compiled, Error, Topology, Value};
use crate::step::SpaceId;
use serde::Serialize;
use std::sync::Arc;

/// What one step costs.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct StepCost {
    /// Arithmetic operations, transcendental functions not among them.
    pub flops: f64,
    /// Bytes that operations read and write. Fast memory on the chip may serve part of them.
    pub bytes: f64,
    /// Exponentials, logarithms and so on.
    pub transcendentals: f64,
    /// The time that XLA's model of the chip expects; none where it does not know. For all programs tried it is proportional to the
    /// bytes, at a bandwidth of the model's own: arithmetic does not enter.
    pub seconds: Option<f64>,
}

impl StepCost {
    /// The cost of a program, shared out among its steps.
    pub fn of(compiled: &Compiled, steps: u32) -> Result<StepCost, Error> {
        let costs = compiled.cost_analysis()?;
        let of_step = |name: &str| match costs.get(name) {
            Some(Value::Float(x)) => Some(f64::from(*x) / f64::from(steps)),
            Some(Value::Text(_) | Value::Int(_) | Value::Ints(_) | Value::Bool(_)) | None => None,
        };
        let missing = |name: &str| Error::Mismatch(format!("the plugin's cost analysis has no `{name}`"));
        let counted = |name: &str| of_step(name).ok_or_else(|| missing(name));
        Ok(StepCost {
            flops: counted("flops")?,
            bytes: counted("bytes accessed")?,
            // The property is absent where there are none.
            transcendentals: of_step("transcendentals").map_or(0.0, |x| x.max(0.0)),
            // The model answers with a negative number, or with 0, where it does not know an operation.
            seconds: of_step("optimal_seconds").filter(|&seconds| seconds > 0.0),
        })
    }
}

/// Compiles an entry point for one device of a topology.
pub(super) fn compile(
    plan: &Plan,
    device: &DevicePlan,
    kind: Kind,
    topology: &Topology,
) -> Result<(Entry, Compiled), Error> {
    let entry = Entry::new(plan, device, kind, "main");
    let name = format!("{}_{}", plan.name, entry.kind.name());
    let module = mlir::write(&name, std::slice::from_ref(&entry.function), &plan.origins, mlir::Format::Bytecode);
    let compiled = topology.compile(&module, &CompileOptions::default())?;
    Ok((entry, compiled))
}

/// A form of gather, tried.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Tried {
    /// The form's name.
    pub form: &'static str,
    /// What a step costs with it, or why it cannot be compiled.
    pub cost: Result<StepCost, String>,
    /// Bytes of all arguments of a step.
    pub arguments: Option<i64>,
    /// Is it the one that is used?
    pub chosen: bool,
}

/// The forms of the gathers along the edges of one field.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Gathers {
    /// The field.
    pub edges: String,
    /// What was tried.
    pub forms: Vec<Tried>,
    /// By what the best was found.
    pub chosen_by: &'static str,
}

/// Tries all forms of gathers, one step each, and leaves the best in the plan: that of the shortest time if the time of each is known,
/// otherwise that of the fewest bytes. `grids` has the sizes of every population's grid.
pub(super) fn choose_gathers(
    plan: &Plan,
    device: &mut DevicePlan,
    edges: &[(SpaceId, Arc<Edges>)],
    grids: &[Vec<usize>],
    topology: &Topology,
) -> Result<Vec<Gathers>, Error> {
    let mut tables = Vec::new();
    for (space, of_space) in plan.spaces.iter().enumerate() {
        for (at, &number) in of_space.edges.iter().enumerate() {
            let relation = plan.relation(number);
            let Some((_, edges)) = edges.iter().rfind(|(id, _)| *id == relation.space) else { continue };
            let mut tried = Vec::new();
            for form in GatherForm::candidates(edges, &grids[space], relation, DeviceClass::Accelerator) {
                device.gathers[space][at] = form.clone();
                let compiled = compile(plan, device, Kind::Line(1), topology);
                let measured = match compiled {
                    Ok((_, compiled)) => (Ok(StepCost::of(&compiled, 1)?), Some(compiled.memory()?.arguments)),
                    // A form that is too large for the chip is no reason to give up.
                    Err(error) => (Err(error), None),
                };
                tried.push((form, measured));
            }
            let costs = || tried.iter().enumerate().filter_map(|(at, (_, (cost, _)))| Some((at, cost.as_ref().ok()?)));
            let timed = costs().all(|(_, cost)| cost.seconds.is_some());
            let measure = |cost: &StepCost| match cost.seconds {
                Some(seconds) if timed => seconds,
                Some(_) | None => cost.bytes,
            };
            let best = costs().min_by(|a, b| measure(a.1).total_cmp(&measure(b.1))).map(|(at, _)| at);
            let Some(best) = best else {
                match tried.into_iter().find_map(|(_, (cost, _))| cost.err()) {
                    Some(error) => return Err(error),
                    None => continue,
                }
            };
            device.gathers[space][at] = tried[best].0.clone();
            let forms = tried.into_iter().enumerate().map(|(at, (form, (cost, arguments)))| Tried {
                form: form.name(),
                cost: cost.map_err(|error| error.to_string()),
                arguments,
                chosen: at == best,
            });
            tables.push(Gathers {
                edges: relation.name.clone(),
                forms: forms.collect(),
                chosen_by: if timed { "estimated time" } else { "bytes accessed" },
            });
        }
    }
    Ok(tables)
}
