//! Advice in plain words.
//!
//! In comes a [`Report`] without advice; out come sentences, each with the numbers it follows from.
//! Never true here: advice that is given whatever the numbers are.

use super::cost::StepCost;
use super::report::{Report, bytes, time};
use crate::codegen::plan::Precision;

/// A state array with more than this part of it empty is worth a word.
const WASTE: f64 = 0.02;
/// Fewer bytes than this part of the others' are worth a word.
const WORTH: f64 = 0.95;

pub(super) fn advice(report: &Report, single: &StepCost, precision: Precision) -> Vec<String> {
    let mut advice = Vec::new();
    let chip = &report.chip;
    if let Some(largest) = report.largest() {
        let share = largest.total as f64 / report.hbm_bytes_of_device;
        let all = bytes(largest.total as f64);
        if share > 1.0 {
            advice.push(format!(
                "It does not fit: `{}` takes {all} of {}. Take fewer cells or record less.",
                largest.entry,
                bytes(report.hbm_bytes_of_device)
            ));
        } else if share < 0.5 {
            let code = largest.code.unwrap_or_default() as f64;
            let data = (largest.total as f64 - code).max(1.0);
            advice.push(format!(
                "`{}` takes {all}, {:.2} % of the memory: about {:.0} times the cells would fit.",
                largest.entry,
                share * 100.0,
                ((report.hbm_bytes_of_device - code) / data).floor()
            ));
        }
    }
    for p in report.padding.iter().filter(|p| p.waste > WASTE) {
        advice.push(format!(
            "`{}` has {} cells; up to {} cost the same memory and the same time, since arrays are in whole tiles.",
            p.population, p.cells, p.padded
        ));
    }
    match precision {
        Precision::F64 => advice.push(
            "TPUs have no 64-bit arithmetic: XLA imitates it with pairs of 32-bit numbers. `--precision f32` is what the chip computes with."
                .into(),
        ),
        Precision::F32 | Precision::Bf16 => {}
    }
    if report.intensity < chip.ridge() {
        advice.push(format!(
            "{:.2} operations per byte are below the ridge of {:.0}: memory limits before matrix units would. Whether the \
             vector units limit before memory, nothing public tells.",
            report.intensity,
            chip.ridge()
        ));
    } else {
        advice.push(format!(
            "{:.2} operations per byte are above the ridge of {:.0}, and no operation runs on the matrix units: the vector units limit.",
            report.intensity,
            chip.ridge()
        ));
    }
    if report.steps_in_line > 1 {
        let ratio = report.step.bytes / single.bytes;
        if ratio < WORTH {
            advice.push(format!(
                "{} steps in a line move {} a step instead of {}: the states stay on the chip in between.",
                report.steps_in_line,
                bytes(report.step.bytes),
                bytes(single.bytes)
            ));
        } else {
            advice.push(format!(
                "{} steps in a line move {} a step, single steps {}: more in a line would only take longer to compile.",
                report.steps_in_line,
                bytes(report.step.bytes),
                bytes(single.bytes)
            ));
        }
    }
    for g in &report.gathers {
        let of = |form: &super::Tried| form.cost.as_ref().ok().copied();
        let Some((chosen, cost)) = g.forms.iter().find(|form| form.chosen).and_then(|form| Some((form, of(form)?)))
        else {
            continue;
        };
        let others = g.forms.iter().filter(|form| !form.chosen).filter_map(|form| Some((form, of(form)?)));
        if let Some((worst, most)) = others.max_by(|a, b| a.1.bytes.total_cmp(&b.1.bytes)) {
            advice.push(format!(
                "Along {} the form `{}` moves {} a step ({}), `{}` {} ({}).",
                g.edges,
                chosen.form,
                bytes(cost.bytes),
                time(cost.seconds),
                worst.form,
                bytes(most.bytes),
                time(most.seconds)
            ));
        }
        let lattice = g.forms.iter().any(|form| form.form == "shifts of a lattice");
        if !lattice && cost.bytes > 10.0 * report.padding.iter().map(|p| p.padded as f64 * 4.0).sum::<f64>() * 20.0 {
            advice.push(format!(
                "The edges of {} are no shifts of the population's grid (too many displacements), so they must be gathered: give the \
                 population the sizes of its grid, or connect neighbours only.",
                g.edges
            ));
        }
    }
    advice
}
