//! From a compiled model to files for a TPU.
//!
//! In come an experiment, its plan and a [`Target`]; out go the files of a directory and the [`Report`].
//! Never true here: a chip is needed, or a form of gather is chosen that was not compiled for this chip.

use super::cost::{StepCost, choose_gathers, compile};
use super::report::{EntryMemory, Findings, Report};
use super::target::Target;
use crate::artefact::{self, File};
use crate::codegen::plan::{DeviceClass, Plan, Stretch};
use crate::codegen::stablehlo::Kind;
use crate::driver::Experiment;
use crate::engine::EngineError;
use crate::engine::inputs::Inputs;
use crate::pjrt::{Plugin, Topology};

/// What is compiled.
#[derive(Clone, Copy)]
pub struct Job<'a> {
    /// The model.
    pub experiment: &'a Experiment,
    /// Its plan.
    pub plan: &'a Plan,
}

impl Job<'_> {
    /// Chooses the gathers, compiles all entry points for one device of the target and reports. The files are those of
    /// [`artefact::files`] with the chosen gathers, and a serialized executable (`.tpu`) for each entry point.
    pub fn build(self, plugin: &Plugin, target: &Target) -> Result<(Vec<File>, Report), EngineError> {
        let (inputs, report, executables) = self.compile(plugin, target)?;
        let mut files = artefact::files_with(self.experiment, &inputs)?;
        files.extend(executables);
        files.push(File { name: "report.txt".into(), bytes: report.to_string().into_bytes() });
        files.push(File { name: "report.json".into(), bytes: report.json().into_bytes() });
        Ok((files, report))
    }

    /// The same without the files that do not depend on the compiler of the chip.
    pub fn compile(self, plugin: &Plugin, target: &Target) -> Result<(Inputs, Report, Vec<File>), EngineError> {
        let Experiment { extent, setup, recording, .. } = self.experiment;
        let topology = Topology::new(plugin, &target.topology_name())?;
        let plan = self.plan;
        let mut inputs = Inputs::new(plan, setup, DeviceClass::Accelerator)?;
        let gathers = choose_gathers(plan, &mut inputs.device, &setup.edges, &setup.grids, &topology)?;
        if !gathers.is_empty() {
            // Cells wait for each other after every step, so that nothing is gained from several of them in a line.
            inputs.device.unroll = 1;
        }
        let device = &inputs.device;
        let stretch = Stretch::new(plan, device, recording.every, &recording.fields, extent.grid.steps);
        let in_line = stretch.as_ref().map_or(1, |stretch| stretch.most_in_line(device.unroll));
        let line = |steps: u32| -> Result<StepCost, EngineError> {
            Ok(StepCost::of(&compile(plan, device, Kind::Line(steps), &topology)?.1, steps)?)
        };
        // With one gather the trial of its form was a step of the whole model.
        let tried = match gathers.as_slice() {
            [only] => only.forms.iter().find(|form| form.chosen).and_then(|form| form.cost.as_ref().ok().copied()),
            _ => None,
        };
        let single = tried.map_or_else(|| line(1), Ok)?;
        let step = if in_line == 1 { single } else { line(in_line)? };
        let kinds = [Some(Kind::Init), Some(Kind::Step), stretch.map(Kind::Stretch), Some(Kind::Observe)];
        let (mut memory, mut files) = (Vec::new(), Vec::new());
        for kind in kinds.into_iter().flatten() {
            let name = kind.name();
            let (entry, compiled) = compile(plan, device, kind, &topology)?;
            if entry.results.is_empty() {
                continue; // nothing is observed
            }
            let bytes = compiled.serialize()?;
            memory.push(EntryMemory::new(name, bytes.len(), compiled.memory()?));
            files.push(File { name: format!("{name}.tpu"), bytes });
        }
        let report = Report::new(Findings {
            plan,
            sizes: &setup.sizes,
            dt_ms: extent.grid.dt,
            target,
            compiler: topology.platform_version()?,
            device_kinds: topology.device_kinds(),
            steps_in_line: in_line,
            memory,
            step,
            single,
            gathers,
            deliveries: &device.deliveries,
        });
        Ok((inputs, report, files))
    }
}
