//! What can be said of a model before it runs.
//!
//! In comes a checked model; out goes the same with everything that a run would refuse: values, ranges and data files, methods, rules of
//! connections, what no plan is made of, and what is not a number at the start.
//! Never true here: a step is taken, or edges of a large network are drawn.

use super::experiment::planned;
use super::{Checked, CompileOptions, Differentiable, Passes, Sweep, compile_flat, flatten};
use crate::codegen::plan::{PlanOptions, Precision};
use crate::data::{self, open};
use crate::diag::{Code, Diagnostic};
use crate::hir::{Fit, FitTarget, Goal, Method, Wanted};
use crate::ode::{self, Model, Node, NodeId};
use crate::passes::OptLevel;
use crate::simulate::{self, Records};
use crate::step::{Source, Value};

/// So many edges are drawn to look at them.
const MOST_EDGES: f64 = 100_000.0;

/// Larger arrays of samples (bytes) are not looked at: that is left to `neuroc train`.
const MOST_SAMPLES: u64 = 1 << 22;

/// Looks for all mistakes of a model that can run by itself, with the settings of its own file.
pub fn check_whole(mut checked: Checked) -> Checked {
    let runs = |m: &&crate::hir::Model| m.network.is_some() && m.run.is_some();
    let Some(model) = checked.model.as_ref().filter(runs) else { return checked };
    let found = match flatten(model, &CompileOptions::default()) {
        Err(errors) => errors,
        Ok((flat, mut found)) => {
            found.extend(before_a_run(&flat, &checked));
            found.extend(wrong_sweep(&flat, &checked));
            if let Some(fit) = &model.fit {
                found.extend(wrong_fit(&checked, fit));
                found.extend(missing_files(fit));
            }
            if let Some(train) = &model.train {
                found.extend(super::training::wrong_names(&flat, train));
                let bytes: Option<u64> = super::training::all_samples(train).map(|samples| samples.bytes()).sum();
                if bytes.is_none_or(|bytes| bytes < MOST_SAMPLES) {
                    match super::training::samples(&flat, train) {
                        Ok(data) => found.extend(super::training::none_is_tested(train, &data)),
                        Err(errors) => found.extend(errors),
                    }
                }
            }
            found
        }
    };
    let mut found = checked.not_said(found);
    found.dedup();
    checked.diagnostics.extend(found);
    checked.diagnostics.sort_by_key(|d| d.labels.first().map(|l| (l.span.file, l.span.start)));
    if checked.diagnostics.iter().any(Diagnostic::is_error) {
        checked.model = None;
    }
    checked
}

/// What is wrong with the sweep of a run: with its lines, or with the values of its first and its last run.
fn wrong_sweep(flat: &Model, checked: &Checked) -> Vec<Diagnostic> {
    let sweeps = checked.model.as_ref().and_then(|model| model.run.as_ref()).map_or(&[][..], |run| &run.sweeps);
    let design = match ode::design(flat, sweeps, &[], false) {
        Ok(design) if design.axes.is_empty() => return Vec::new(),
        Ok(design) => design,
        Err(errors) => return errors,
    };
    let options = CompileOptions::default();
    let sweep = Sweep { checked, options: &options, design: &design, precision: Precision::F64 };
    let ends = [0, design.runs() - 1];
    ends.iter().find_map(|&run| sweep.look(run).err()).unwrap_or_default()
}

/// What is wrong with the free parameters of a `fit` block.
fn wrong_fit(checked: &Checked, fit: &Fit) -> Vec<Diagnostic> {
    let names: Vec<_> = fit.free.iter().map(|free| (free.name.clone(), free.span)).collect();
    let options = CompileOptions::default();
    let fitted = match Differentiable::parameters(checked, &options, &names) {
        Ok(fitted) => fitted,
        Err(errors) => return errors,
    };
    let ranges = fit.free.iter().zip(&fitted).map(|(free, one)| one.range(free));
    let (mut bounds, mut errors) = (Vec::new(), Vec::new());
    ranges.for_each(|range| range.map_or_else(|d| errors.push(d), |range| bounds.push(range)));
    if errors.is_empty() {
        errors = Differentiable::within(checked, &options, &fitted, &bounds).unwrap_or_else(|errors| errors);
    }
    errors
}

/// The files of a `fit` block that cannot be read. Whether their numbers fit is known when a run is.
fn missing_files(fit: &Fit) -> impl Iterator<Item = Diagnostic> {
    fit.targets.iter().filter_map(|target| match &target.goal {
        Goal::Trace { file, .. } => open(&fit.directory.join(file), target.span.unwrap_or_default()).err(),
        Goal::Number { value: Wanted::Each { file, .. }, .. } => open(&data::path(file), file.span).err(),
        Goal::Number { value: Wanted::Same(_), .. } => None,
    })
}

/// What a `fit` block compares with that a run does not record.
fn unrecorded(fit: &Fit, records: &Records) -> Vec<Diagnostic> {
    let of = |target: &FitTarget| {
        let found = match &target.goal {
            Goal::Number { feature, .. } if feature.of_spikes() => records.find_train(&target.of),
            Goal::Number { .. } | Goal::Trace { .. } => records.find(&target.of),
        };
        let labelled = |d: Diagnostic, span| Diagnostic {
            labels: Diagnostic::new(d.code, span, "", "of this target").labels,
            ..d
        };
        found.err().map(|d| target.span.into_iter().fold(d, labelled))
    };
    fit.targets.iter().filter_map(of).collect()
}

fn before_a_run(model: &Model, checked: &Checked) -> Vec<Diagnostic> {
    let extent = match simulate::extent(model) {
        Ok(extent) => extent,
        Err(errors) => return errors.into_iter().map(|d| of_the_file(d, checked)).collect(),
    };
    let mut found = not_finite(model);
    found.extend(model.connections.iter().filter_map(|c| simulate::wrong_connection(model, &extent, c)));
    found.extend(model.projections.iter().filter_map(|p| simulate::wrong_projection(model, &extent, p)));
    let options = CompileOptions { passes: Passes::Level(OptLevel::O0), ..CompileOptions::default() };
    let compiled = match compile_flat(model.clone(), &checked.sources, &options, &mut |_, _, _| {}) {
        Ok(compiled) => compiled,
        Err(errors) => {
            found.extend(errors);
            return found;
        }
    };
    if model.method != Method::Adaptive {
        found.extend(planned(&compiled, &PlanOptions::default()).err().unwrap_or_default());
    }
    // Many edges take time and memory: of those the rules have been checked.
    let many = found.iter().any(Diagnostic::is_error) || simulate::expected_edges(model, &extent) > MOST_EDGES;
    let alone = || Model { connections: Vec::new(), projections: Vec::new(), ..compiled.ode.clone() };
    let apart = if many { alone() } else { compiled.ode.clone() };
    let program = compiled.program.program();
    if let (Some(fit), Ok(records)) =
        (checked.model.as_ref().and_then(|m| m.fit.as_ref()), simulate::records(&compiled.ode, program, &extent))
    {
        found.extend(unrecorded(fit, &records));
    }
    match simulate::setup(&apart, program, &extent) {
        Err(errors) => found.extend(errors),
        Ok((setup, odd)) => {
            found.extend(odd);
            let data = |population: usize, file: u32| {
                let field = program.bound(Source::Data(population as u32, file))?;
                setup.data.iter().find(|(id, _)| *id == field).map(|(_, values)| values.to_vec())
            };
            found.extend(ode::domains::per_cell(model, &extent.cells, &data));
        }
    }
    found
}

/// What is wrong with the times of a run, which stand in the file where nothing is set from outside.
fn of_the_file(d: Diagnostic, checked: &Checked) -> Diagnostic {
    let run = checked.model.as_ref().and_then(|model| model.run.as_ref());
    let Some(run) = run.filter(|_| d.labels.is_empty()) else { return d };
    let placed = Diagnostic::new(d.code, run.duration_span, "", "no whole number of steps");
    let labels = placed.see(run.dt_span, "the time step").labels;
    Diagnostic { labels, ..d }
}

/// Initial values and derivatives that are not numbers at the start.
fn not_finite(model: &Model) -> Vec<Diagnostic> {
    let number = |node: NodeId| ode::evaluate(model, node).ok();
    let leaf = |node: Node| match node {
        Node::Param(p) => number(model.param(p).value).filter(|_| model.param(p).population.is_none()),
        Node::State(s) => number(model.state(s).init),
        Node::Time | Node::StepTime => Some(Value::Real(0.0)),
        Node::StepLength => Some(Value::Real(model.dt)),
        _ => None,
    };
    let mut found = Vec::new();
    for state in &model.states {
        for (root, what) in [(state.init, "the initial value of"), (state.rate, "at the start the derivative of")] {
            let Some(fault) = ode::fault(model, &[root], leaf) else { continue };
            let message = format!("{what} `{}` is not a finite number", state.name);
            let d = Diagnostic::new(Code::NotFinite, state.span, message, "of this state");
            let d = d.note(simulate::said(&fault));
            found.push(fault.help.into_iter().fold(d, |d, help| d.help(help)));
            break;
        }
    }
    found
}
